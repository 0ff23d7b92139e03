/* SPDX-License-Identifier: MIT */
#include "audit/trail.h"

#include <math.h>
#include <string.h>
#include <xxhash.h>

#include "audit/case.h"

static const enum fact_key schedule_setup[] = {FACT_SCHEDULE, FACT_SCHEDULE_BASE_LR,
	FACT_SCHEDULE_HORIZON, FACT_WARMUP_STEPS, FACT_INITIAL_LR};

static uint64_t mix_number(uint64_t digest, double v)
{
	return XXH3_64bits_withSeed(&v, sizeof v, digest);
}

static uint64_t mix_text(uint64_t digest, const char *text)
{
	return XXH3_64bits_withSeed(text, strlen(text), digest);
}

/* All that is saved of the schedule but its position. */
static uint64_t digest_schedule(const struct state *s)
{
	uint64_t digest = 0;
	double v;

	for (size_t i = 0; i < s->facts.count; i++) {
		const struct fact *f = &s->facts.items[i];
		for (size_t k = 0; k < sizeof schedule_setup / sizeof *schedule_setup; k++) {
			if (f->key != schedule_setup[k])
				continue;
			digest = mix_number(digest, f->key);
			digest = fact_to_double(f, &v)  ? mix_number(digest, v)
				 : f->type == FACT_TEXT ? mix_text(digest, f->text)
							: digest;
		}
	}
	return digest;
}

/* What the optimizers are, and how many parameters they list. */
static uint64_t digest_optimizers(const struct state *s)
{
	uint64_t digest = 0;

	for (size_t i = 0; i < s->optimizers.count; i++) {
		digest = mix_text(digest, s->optimizers.items[i].name);
		digest = mix_number(digest, (double)s->optimizers.items[i].listed);
	}
	return digest;
}

struct trail_point trail_point_of(const struct state *s, const char *name)
{
	struct trail_point p = {.name = name, .step = NAN, .epoch = NAN, .counter = {NAN, NAN}};
	int64_t v;

	if (state_int(s, FACT_STEP, &v))
		p.step = (double)v;
	state_real(s, FACT_EPOCH, &p.epoch);
	if (state_int(s, FACT_SCHEDULE_STEP, &v))
		p.counter[TRAIL_SCHEDULE] = (double)v;
	optimizer_step(s, &p.counter[TRAIL_UPDATES]);
	p.setup[TRAIL_SCHEDULE] = digest_schedule(s);
	p.setup[TRAIL_UPDATES] = digest_optimizers(s);
	return p;
}

static bool is_known(const struct trail_point *p, enum trail_counter which)
{
	return (isfinite(p->step) || isfinite(p->epoch)) && isfinite(p->counter[which]);
}

/* By their steps where both have one, else by their epochs. */
static bool is_earlier(const struct trail_point *a, const struct trail_point *b)
{
	if (isfinite(a->step) && isfinite(b->step))
		return a->step < b->step;
	return a->epoch < b->epoch;
}

/* The newest point before `i` at which the counter is known, and which is earlier; SIZE_MAX: none.
 */
static size_t known_before(const struct trail *t, enum trail_counter which, size_t i)
{
	for (size_t k = i; k-- > 0;)
		if (is_known(&t->points[k], which) && is_earlier(&t->points[k], &t->points[i]))
			return k;
	return SIZE_MAX;
}

static double lag_of(const struct trail_point *p, enum trail_counter which)
{
	return p->step - p->counter[which];
}

/* Whether the counter counted steps up to a point: it stands at the step, or moved as the step did.
 */
static bool counts_steps(const struct trail *t, enum trail_counter which, size_t i)
{
	double lag = lag_of(&t->points[i], which);
	size_t before = known_before(t, which, i);

	return fabs(lag) <= 1 || (before != SIZE_MAX && lag == lag_of(&t->points[before], which));
}

/* Whether the counter started again between two points. */
static bool started_again(const struct trail *t, enum trail_counter which, size_t a, size_t b)
{
	double was = t->points[a].counter[which], is = t->points[b].counter[which];

	if (is < was)
		return true;
	return was > 1 && is == t->points[b].step - t->points[a].step && counts_steps(t, which, a);
}

/* Whether the counter's part of the step is at the last point what it was at point `a`. */
static bool is_mended(const struct trail *t, enum trail_counter which, size_t a)
{
	const struct trail_point *p = &t->points[t->count - 1], *was = &t->points[a];

	if (!is_known(p, which))
		return false;
	if (counts_steps(t, which, a))
		return fabs(lag_of(p, which) - lag_of(was, which)) <= 1;
	return fabs(p->counter[which] - was->counter[which] / was->step * p->step) <= 1;
}

struct trail_restart trail_find_restart(const struct trail *t, enum trail_counter which)
{
	struct trail_restart r = {.zero = NAN};

	for (size_t b = 1; b < t->count; b++) {
		size_t a = is_known(&t->points[b], which) ? known_before(t, which, b) : SIZE_MAX;
		if (a == SIZE_MAX || !started_again(t, which, a, b))
			continue;
		r = (struct trail_restart){.found = true,
			.newest = b + 1 == t->count,
			.sound = r.found ? r.sound : a,
			.last_good = a,
			.first_bad = b,
			.replaced = t->points[a].setup[which] != t->points[b].setup[which],
			.earlier = r.found ? r.earlier + 1 : 0,
			.zero = NAN};
		double zero = lag_of(&t->points[b], which);
		if (counts_steps(t, which, a) && zero >= t->points[a].step)
			r.zero = zero;
	}
	r.mended = r.found && is_mended(t, which, r.last_good);
	return r;
}

struct trail_lag trail_find_lag(const struct trail *t, enum trail_counter which)
{
	struct trail_lag l = {0};

	if (t->count < 2 || !is_known(&t->points[t->count - 1], which))
		return l;
	l.since = t->count - 1;
	l.steps = lag_of(&t->points[l.since], which);
	for (size_t k; (k = known_before(t, which, l.since)) != SIZE_MAX; l.since = k) {
		if (lag_of(&t->points[k], which) != l.steps)
			break;
		l.known = true;
	}
	return l;
}
