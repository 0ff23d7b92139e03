/* SPDX-License-Identifier: MIT */
/* Earlier steps again: what an attempt logged, at other steps of earlier attempts. */
#include <math.h>
#include <stdlib.h>

#include "curve/resume_parts.h"

#define REPEAT_POINTS 64u /* that are looked for at other steps */
#define REPEAT_LEAST 24u
#define REPEAT_CORRELATION 0.9
#define REPEAT_CHANCE 1e-6 /* that any lag correlates as well by accident */
#define EQUAL_LEAST 8u     /* equal values in a row that are the same training */

#define GROUP_MOST 16u /* values of one batch that make one of another */
#define GROUP_ROOM 0.02

struct probe {
	const struct stitch_value *v; /* the first values of the attempt */
	size_t n;
	size_t group; /* of its own values that each is the mean of, where its batch is smaller */
	struct stitch_value grouped[REPEAT_POINTS];
	double change[REPEAT_POINTS]; /* v[i + 1] - v[i], clipped */
	double clip;
};

/* The correlation of the probe's changes with those of n values at `v`; NAN where steps differ. */
static double correlate(const struct probe *p, const struct stitch_value *v)
{
	double sx = 0, sy = 0, sxx = 0, syy = 0, sxy = 0, n = (double)(p->n - 1);

	for (size_t i = 0; i + 1 < p->n; i++) {
		double y = resume_clipped(v[i + 1].value - v[i].value, p->clip);
		if (v[i + 1].x - v[i].x != p->v[i + 1].x - p->v[i].x || !isfinite(y))
			return NAN;
		sx += p->change[i];
		sy += y;
		sxx += p->change[i] * p->change[i];
		syy += y * y;
		sxy += p->change[i] * y;
	}
	double vx = sxx - sx * sx / n, vy = syy - sy * sy / n;
	return vx > 0 && vy > 0 ? (sxy - sx * sy / n) / sqrt(vx * vy) : NAN;
}

static size_t equal_values(const struct probe *p, const struct stitch_value *v, size_t most)
{
	size_t n = 0;

	while (n < p->n && n < most &&
		fabs(p->v[n].value - v[n].value) <= resume_rounding(&p->v[n], &v[n]))
		n++;
	return n;
}

/* Whether the learning rates at both places are the same, and move. */
static bool same_rates(const struct stitch *s, const struct resume_repeat *r, uint32_t attempt)
{
	const struct stitch_track *t = stitch_track_of(s, CURVE_LR);
	size_t i, iend, k, kend, same = 0;
	bool moves = false;

	if (!t)
		return false;
	stitch_values_of(t, attempt, &i, &iend);
	stitch_values_of(t, r->source, &k, &kend);
	for (; i < iend && t->values.items[i].x <= r->last_x; i++) {
		while (k < kend && t->values.items[k].x < t->values.items[i].x - r->lag)
			k++;
		if (k == kend || t->values.items[k].x != t->values.items[i].x - r->lag)
			continue;
		if (fabs(t->values.items[k].value - t->values.items[i].value) >
			resume_rounding(&t->values.items[k], &t->values.items[i]))
			return false;
		moves = moves ||
			t->values.items[i].value != t->values.items[k > 0 ? k - 1 : 0].value;
		same++;
	}
	return same >= EQUAL_LEAST && moves;
}

/* Whether the curve repeats itself at that lag anyway, before the resume: sorted or short epochs.
 */
static bool periodic(
	const struct stitch *s, const struct stitch_track *t, uint32_t attempt, double lag)
{
	const struct stitch_attempt *a = &s->attempts.items[attempt];
	double x[2 * REPEAT_POINTS], y[2 * REPEAT_POINTS];
	size_t first, end, n = 0;

	if (a->parent == CURVE_NONE || lag <= 0)
		return false;
	stitch_values_of(t, a->parent, &first, &end);
	while (end > first && t->values.items[end - 1].x > a->from)
		end--;
	for (size_t i = end, k = end; i-- > first && n < REPEAT_POINTS;) {
		while (k > first && t->values.items[k - 1].x > t->values.items[i].x - lag)
			k--;
		if (k == first || t->values.items[k - 1].x != t->values.items[i].x - lag)
			continue;
		x[n] = t->values.items[i].value;
		y[n++] = t->values.items[k - 1].value;
	}
	if (n < REPEAT_LEAST)
		return false;
	double sx = 0, sy = 0, sxx = 0, syy = 0, sxy = 0, m = (double)(n - 1);
	for (size_t i = 0; i + 1 < n; i++) {
		double dx = x[i] - x[i + 1], dy = y[i] - y[i + 1];
		sx += dx;
		sy += dy;
		sxx += dx * dx;
		syy += dy * dy;
		sxy += dx * dy;
	}
	double vx = sxx - sx * sx / m, vy = syy - sy * sy / m;
	return vx > 0 && vy > 0 && (sxy - sx * sy / m) / sqrt(vx * vy) > 0.5;
}

/* Means of groups of values that follow each other, from the first on; how many there are. Their x
 * are as far apart as single ones'. */
static size_t make_groups(
	const struct stitch_value *v, size_t n, size_t group, struct stitch_value *out, size_t most)
{
	size_t count = 0;

	for (size_t i = 0; i + group <= n && count < most; i += group) {
		double sum = 0, width = v[i + group - 1].x - v[i].x;
		for (size_t k = 0; k < group; k++)
			sum += v[i + k].value;
		/* A hole breaks the run: NAN matches nothing. */
		bool whole = i == 0 || v[i].x - v[i - 1].x == width / (double)(group - 1);
		out[count] = v[i];
		out[count].value = whole ? sum / (double)group : NAN;
		out[count++].x = v[0].x + (v[i].x - v[0].x) / (double)group;
	}
	return count;
}

static bool begin_probe(
	struct probe *p, const struct stitch_track *t, uint32_t attempt, size_t group)
{
	size_t first, end;
	double changes[REPEAT_POINTS];

	stitch_values_of(t, attempt, &first, &end);
	p->v = t->values.items + first;
	p->n = end - first < REPEAT_POINTS ? end - first : REPEAT_POINTS;
	p->group = group;
	if (group > 1) {
		p->n = make_groups(p->v, end - first, group, p->grouped, REPEAT_POINTS);
		p->v = p->grouped;
	}
	if (p->n < REPEAT_LEAST)
		return false;
	for (size_t i = 0; i + 1 < p->n; i++) {
		changes[i] = p->change[i] = p->v[i + 1].value - p->v[i].value;
		if (!isfinite(changes[i]))
			return false;
	}
	p->clip = RESUME_CLIP * resume_scale_of(changes, p->n - 1);
	for (size_t i = 0; i + 1 < p->n; i++)
		p->change[i] = resume_clipped(p->change[i], p->clip);
	return p->clip > 0;
}

/* Whether `a` is about so many times `b`, and that a whole number. */
static size_t whole_times(double a, double b)
{
	double times = round(a / b);

	return times >= 2 && times <= GROUP_MOST && fabs(a / b - times) < GROUP_ROOM * times
		       ? (size_t)times
		       : 0;
}

/* Hold the probe against all stretches of n values of an earlier attempt. */
static void search(const struct probe *p, const struct stitch_value *v, size_t n, uint32_t source,
	struct resume_repeat *out, size_t *tried)
{
	for (size_t i = 0; i + p->n <= n; i++) {
		bool same = v[i].x == p->v[0].x;
		size_t equal = same ? 0 : equal_values(p, &v[i], p->n);
		(*tried)++;
		double r = same ? NAN : correlate(p, &v[i]);
		if (isnan(r) || (r <= out->correlation && !(equal >= EQUAL_LEAST && !out->equal)))
			continue;
		*out = (struct resume_repeat){.equal = equal >= EQUAL_LEAST,
			.lag = p->v[0].x - v[i].x,
			.first_x = p->v[0].x,
			.last_x = p->v[p->n - 1].x,
			.source_x = v[i].x,
			.source_last_x = v[i + p->n - 1].x,
			.source = source,
			.correlation = r,
			.points = p->n};
	}
}

/* A search over groups: what of the attempt, and in how large groups the earlier values are. */
struct grouped_search {
	const struct stitch *s;
	uint32_t attempt, source;
	double from;
	size_t group;
};

/* The same where a step had another batch: the earlier values as means of groups, from each of the
 * first ones on. What begins at the very sample at which the attempt begins is the dead branch. */
static bool search_groups(const struct grouped_search *g, const struct probe *p,
	const struct stitch_value *v, size_t n, struct resume_repeat *out, size_t *tried)
{
	struct stitch_value *means = calloc(n / g->group + 1, sizeof *means);
	double start = stitch_amount(g->s, g->attempt, g->from);

	for (size_t k = 0; means && k < g->group && k < n; k++) {
		size_t count = g->group == 1 ? n : make_groups(v + k, n - k, g->group, means, n);
		const struct stitch_value *list = g->group == 1 ? v : means;
		for (size_t i = 0; i + p->n <= count; i++) {
			const struct stitch_value *first = &v[k + i * g->group];
			double batch = stitch_batch(g->s, g->source, first->x);
			double begin = stitch_amount(g->s, g->source, first->x) - batch;
			if (fabs(begin - start) < batch / 2)
				continue;
			(*tried)++;
			double r = correlate(p, &list[i]);
			if (isnan(r) || r <= out->correlation)
				continue;
			*out = (struct resume_repeat){.lag = g->from + 1 - first->x,
				.first_x = g->from + 1,
				.last_x = g->from + (double)(p->n * p->group),
				.source_x = first->x,
				.source_last_x = v[k + (i + p->n) * g->group - 1].x,
				.source = g->source,
				.correlation = r,
				.points = p->n};
		}
	}
	free(means);
	return means != NULL;
}

/* Hold an attempt, of which `single` are the first values, against an earlier one; false when
 * memory runs out. */
static bool search_attempt(const struct stitch *s, const struct stitch_track *t, uint32_t attempt,
	const struct probe *single, uint32_t source, struct resume_repeat *out, size_t *tried)
{
	double from = s->attempts.items[attempt].from;
	struct grouped_search g = {s, attempt, source, from, 1};
	size_t first, end, more = 0, fewer = 0;
	struct probe p;

	stitch_values_of(t, source, &first, &end);
	if (s->batch_changes) {
		double own = stitch_batch(s, attempt, from + 1);
		double other = stitch_batch(s, source, s->attempts.items[source].last_x);
		more = whole_times(own, other);
		fewer = whole_times(other, own);
	}
	if (more || fewer) {
		g.group = more ? more : 1;
		return !begin_probe(&p, t, attempt, fewer ? fewer : 1) ||
		       search_groups(&g, &p, t->values.items + first, end - first, out, tried);
	}
	search(single, t->values.items + first, end - first, source, out, tried);
	return true;
}

int resume_find_repeat(
	const struct stitch *s, uint32_t attempt, struct resume_repeat *out, struct error *e)
{
	const struct stitch_track *t = stitch_track_of(s, CURVE_LOSS);
	struct probe single;
	size_t tried = 0;

	*out = (struct resume_repeat){.correlation = -1};
	if (!t || s->attempts.items[attempt].parent == CURVE_NONE ||
		!begin_probe(&single, t, attempt, 1))
		return RP_OK;
	for (uint32_t a = 0; a < attempt; a++)
		if (!search_attempt(s, t, attempt, &single, a, out, &tried))
			return resume_no_memory(e);
	if (tried == 0 || out->correlation < REPEAT_CORRELATION)
		return RP_OK;
	/* Fisher's transform of a correlation of changes, whose variance is half as large again
	 * since each value is in two of them. */
	double z = atanh(fmin(out->correlation, 1 - 1e-12)) * sqrt(((double)out->points - 4) / 1.5);
	out->found = z > sqrt(2 * log((double)tried / REPEAT_CHANCE)) &&
		     !periodic(s, t, attempt, out->lag);
	out->renumbered = out->equal && same_rates(s, out, attempt);
	return RP_OK;
}
