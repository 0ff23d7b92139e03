/* SPDX-License-Identifier: MIT */
/* How many samples or tokens each attempt consumed up to each of its steps. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "curve/stitch_parts.h"

#define FLOAT_WHOLE 16777216.0 /* up to here whole numbers are exact in float32 */
#define FLOAT_ROUNDING 6e-8    /* relative, beyond it */
#define EXACT 1e-9             /* relative, of what is whole */
#define SAME_BATCH 1.01        /* samples of a step that are no other batch */
#define SAME_TOKENS 1.25       /* likewise of tokens and epochs, which padding makes uneven */
#define RAMP_STEPS 8.0         /* steps of another size, and … */
#define RAMP_SHARE 0.01        /* … their share of all, that are no epochs' last batches */
#define OFF_BY 1.5             /* steps by which counters may be off */
#define STILL 3u               /* equal counts in a row that are none */
#define COARSE 20.0            /* roundings that counts are apart to tell their pace */
#define PARTS_MAX 4096u        /* of a line, of which the usual batch is told */

struct measuring {
	struct stitch_building *b;
	const struct stitch_options *o;
	enum curve_unit unit;
	bool twins; /* some series stands over that unit */
	ARRAY(struct consumed_count) counts;
};

/* What the logs hold --------------------------------------------------------------------------- */

static bool add_count(struct measuring *m, double x, double amount, float resolution)
{
	size_t n = m->counts.count;
	double room = fabs(amount) > FLOAT_WHOLE && resolution == 0 ? FLOAT_ROUNDING * amount : 0;

	if (!isfinite(x) || !isfinite(amount) || amount < 0 ||
		(n > 0 && !(x > m->counts.items[n - 1].x)))
		return true;
	if (resolution > 1 || amount != floor(amount))
		room = (double)resolution / 2;
	/* Of a count that stands still, or is as coarse, the last one is as good as all. */
	if (n > 0 && !(amount > m->counts.items[n - 1].amount))
		return true;
	struct consumed_count *c = array_push(&m->counts, SIZE_MAX);
	if (c)
		*c = (struct consumed_count){x, amount, fmax(room, EXACT * amount)};
	return c != NULL;
}

static enum curve_role role_of(enum curve_unit unit)
{
	return unit == CURVE_SAMPLES  ? CURVE_SAMPLE_COUNT
	       : unit == CURVE_TOKENS ? CURVE_TOKEN_COUNT
				      : CURVE_EPOCH_COUNT;
}

/* A series that counts, as the attempt logged it. */
static bool take_counter(struct measuring *m, uint32_t attempt)
{
	const struct stitch_track *t = stitch_track_of(m->b->s, role_of(m->unit));
	size_t i, end, parts = 0, falls = 0;

	if (!t)
		return true;
	stitch_values_of(t, attempt, &i, &end);
	for (size_t k = i; k < end; k++) {
		parts += t->values.items[k].value != floor(t->values.items[k].value);
		falls += k > i && t->values.items[k].value < t->values.items[k - 1].value;
	}
	/* An epoch's number alone says nothing of what is consumed within it, and what goes up and
	 * down is no count. */
	if ((m->unit == CURVE_EPOCHS && 2 * parts < end - i) || falls > 0)
		return true;
	size_t n = end - i;
	for (; i < end; i++)
		if (!add_count(m, t->values.items[i].x, t->values.items[i].value,
			    t->values.items[i].resolution))
			return false;
	/* Nor what stands still: the tokens of each step. */
	if (n > STILL && m->counts.count == 1)
		m->counts.count = 0;
	return true;
}

/* The series in a file's other unit that has the same values as one in steps: "lm loss" and "lm
 * loss vs samples". CURVE_NONE: there is none. */
static uint32_t twin_of(const struct measuring *m, uint32_t series)
{
	const struct curve_log *l = m->b->l;
	const struct curve_series *a = &l->series.items[series];
	size_t n = strlen(a->name);

	for (uint32_t i = 0; i < l->series.count; i++) {
		const struct curve_series *x = &l->series.items[i];
		if (x->file == a->file && x->role == a->role && x->unit == m->unit &&
			strncmp(x->name, a->name, n) == 0)
			return i;
	}
	return CURVE_NONE;
}

/* Two series that logged the same values at the same time, over steps and over samples, say which
 * belong together: the first to the first, and so on. */
static bool take_twins(struct measuring *m, uint32_t attempt)
{
	const struct curve_log *l = m->b->l;

	for (size_t i = 0; m->twins && i < m->b->pieces.list.count && m->counts.count == 0; i++) {
		const struct piece *p = &m->b->pieces.list.items[i];
		if (m->b->attempt_of[i] != attempt || p->main == CURVE_NONE)
			continue;
		uint32_t twin = twin_of(m, p->main);
		for (size_t a = p->first, k = p->first; a < p->end && twin != CURVE_NONE; a++) {
			const struct curve_point *q = &l->points.items[a];
			if (q->series != p->main)
				continue;
			while (k < p->end && l->points.items[k].series != twin)
				k++;
			if (k == p->end || l->points.items[k].value != q->value)
				break;
			if (!add_count(m, q->x + p->offset, l->points.items[k].x,
				    l->points.items[k].resolution))
				return false;
			k++;
		}
	}
	return true;
}

/* What the sample log has of the attempt that went on from the same step. */
static bool take_ledger(struct measuring *m, uint32_t attempt, double base, size_t *used)
{
	const struct stitch_attempt *a = &m->b->s->attempts.items[attempt];

	for (size_t i = *used; i < m->o->amount_count && m->unit == CURVE_SAMPLES; i++) {
		const struct stitch_amounts *k = &m->o->amounts[i];
		if (k->from != a->from || k->n == 0 || k->list[k->n - 1].x < a->first_x)
			continue;
		*used = i + 1;
		for (size_t n = 0; n < k->n; n++)
			if (!add_count(m, k->list[n].x, base + k->list[n].amount, 0))
				return false;
		break;
	}
	return true;
}

/* Whether a series of sizes goes on like a counter: the number of a batch, and no size of it. */
static bool is_index(const struct stitch_track *t, size_t first, size_t end)
{
	size_t changes = 0;

	for (size_t i = first + 1; i < end; i++)
		changes += t->values.items[i].value != t->values.items[i - 1].value;
	return end - first > 2 && 2 * changes > end - first;
}

/* The batch of all ranks; what is only called the batch may be one rank's. */
static bool is_global(const struct curve_log *l, const struct curve_series *x)
{
	return strncmp(l->files.items[x->file].writer, "Megatron", 8) == 0 ||
	       strcasestr(x->name, "global") != NULL;
}

static bool take_sizes(
	struct measuring *m, uint32_t attempt, struct stitch_consumed *c, double base)
{
	const struct stitch_track *t = stitch_track_of(m->b->s, CURVE_BATCH);
	double from = m->b->s->attempts.items[attempt].from;
	size_t i, end;

	if (!t || m->unit != CURVE_SAMPLES)
		return true;
	stitch_values_of(t, attempt, &i, &end);
	if (is_index(t, i, end))
		return true;
	for (; i < end; i++) {
		const struct stitch_value *v = &t->values.items[i];
		if (!(v->value > 0) || !isfinite(v->value)) {
			m->counts.count = 0;
			return true;
		}
		base += v->value * (v->x - from);
		from = v->x;
		c->unsure = !is_global(m->b->l, &m->b->l->series.items[v->series]);
		if (!add_count(m, v->x, base, 0))
			return false;
	}
	return true;
}

/* Settings ------------------------------------------------------------------------------------- */

/* A setting that is a whole number, with or without commas; NAN: it is not said, or none. */
static double number_of(const struct stitch *s, uint32_t attempt, const char *name)
{
	const char *text = stitch_setting_of(s, attempt, name);
	double v = 0;

	if (!text || !*text)
		return NAN;
	for (; *text; text++) {
		if (*text == ',')
			continue;
		if (*text < '0' || *text > '9')
			return NAN;
		v = v * 10 + (*text - '0');
	}
	return v > 0 ? v : NAN;
}

/* The samples of a step as the launch says them, for all ranks together; NAN: it does not. */
static double batch_said(const struct stitch *s, uint32_t attempt, enum curve_unit unit)
{
	static const char *const names[] = {"global_batch_size", "total_train_batch_size"};
	const char *ramp = stitch_setting_of(s, attempt, "rampup_batch_size");

	if (unit == CURVE_TOKENS)
		return number_of(s, attempt, "tokens_per_iter");
	if (unit != CURVE_SAMPLES || (ramp && strcmp(ramp, "None") != 0))
		return NAN;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		double v = number_of(s, attempt, names[i]);
		if (!isnan(v))
			return v;
	}
	/* DeepSpeed's is the global one; the Trainer's is that of one device. */
	if (isnan(number_of(s, attempt, "train_micro_batch_size_per_gpu")))
		return NAN;
	return number_of(s, attempt, "train_batch_size");
}

/* One attempt ---------------------------------------------------------------------------------- */

/*
 * Bring the attempt's own counts and what its parent had consumed together: what its counter says
 * at `from`, by the pace of its first counts. A counter that is off by no more than a step, or that
 * began anew, is moved to where the parent was. One that is ahead is where the data went on.
 */
static double begin_counts(
	struct measuring *m, const struct stitch_attempt *a, struct stitch_consumed *c)
{
	const struct consumed_count *list = m->counts.items;
	size_t n = m->counts.count, k = 1;

	/* Coarse counts say a pace only far apart. */
	while (k + 1 < n && list[k].amount - list[0].amount < COARSE * list[k].room)
		k++;
	double pace = n > 1 ? (list[k].amount - list[0].amount) / (list[k].x - list[0].x)
		      : isnan(c->expected) || !(list[0].x > a->from)
			      ? list[0].amount / list[0].x
			      : (list[0].amount - c->expected) / (list[0].x - a->from);
	c->said = list[0].amount - pace * (list[0].x - a->from);
	double before = a->parent == CURVE_NONE ? 0 : stitch_batch(m->b->s, a->parent, a->from);
	c->room = OFF_BY * fmax(pace, isnan(before) ? 0 : before) + 2 * list[0].room;
	/* A count that is no more than the steps times the batch was not restored from anything. */
	c->product =
		fabs(list[0].amount - pace * list[0].x) <= list[0].room + EXACT * list[0].amount;
	if (isnan(c->expected))
		return 0;
	bool ahead = c->said - c->expected > c->room &&
		     !(c->product && a->from > 0 && m->b->s->consumed.items[a->parent].product);
	return ahead ? 0 : c->expected - c->said;
}

static bool lay_attempt(struct measuring *m, uint32_t i, struct stitch_consumed *c)
{
	struct stitch *s = m->b->s;
	const struct stitch_attempt *a = &s->attempts.items[i];
	double shift = 0, start = c->expected;

	if (c->how == CONSUMED_BY_COUNTER) {
		shift = begin_counts(m, a, c);
		start = c->said + shift;
	}
	struct consumed_count *list = m->counts.items;
	size_t n = m->counts.count;
	for (size_t k = 0; k < n; k++)
		list[k].amount += shift;
	/* The line begins at the checkpoint, where that is before the first count. */
	if (!(list[0].x > a->from) || !(list[0].amount > start) || isnan(start))
		return n > 1 ? consumed_lay(&s->knots, list, n, &c->line) : true;
	if (!array_push(&m->counts, SIZE_MAX))
		return false;
	list = m->counts.items;
	memmove(list + 1, list, n * sizeof *list);
	list[0] = (struct consumed_count){a->from, start, 0};
	return consumed_lay(&s->knots, list, n + 1, &c->line);
}

/* From the best source that the attempt has. */
static bool measure(struct measuring *m, uint32_t i, size_t *used)
{
	struct stitch *s = m->b->s;
	const struct stitch_attempt *a = &s->attempts.items[i];
	struct stitch_consumed *c = &s->consumed.items[i];
	double base = a->parent != CURVE_NONE ? stitch_amount(s, a->parent, a->from)
		      : a->from <= 0          ? 0
					      : NAN;

	*c = (struct stitch_consumed){.said = NAN, .expected = base, .begin = NAN, .end = NAN};
	m->counts.count = 0;
	if (!take_counter(m, i) || (m->counts.count == 0 && !take_twins(m, i)))
		return false;
	c->how = m->counts.count > 0 ? CONSUMED_BY_COUNTER : CONSUMED_UNKNOWN;
	if (c->how != CONSUMED_UNKNOWN)
		return lay_attempt(m, i, c);
	if (isnan(base)) {
		c->unknown = a->parent == CURVE_NONE
				     ? "what was consumed before the logs begin is not known"
				     : "what the attempt before it consumed is not known";
		return true;
	}
	if (!take_ledger(m, i, base, used))
		return false;
	c->how = CONSUMED_BY_LEDGER;
	if (m->counts.count == 0) {
		c->how = CONSUMED_BY_SIZES;
		if (!take_sizes(m, i, c, base))
			return false;
	}
	if (m->counts.count == 0) {
		double batch = batch_said(s, i, m->unit);
		c->how = isnan(batch) ? CONSUMED_TOLD : CONSUMED_BY_SETTING;
		c->unsure = false;
		if (isnan(batch) && m->unit == CURVE_SAMPLES && m->o->batch > 0)
			batch = m->o->batch;
		if (!isnan(batch) &&
			!add_count(m, a->last_x, base + batch * (a->last_x - a->from), 0))
			return false;
	}
	if (m->counts.count == 0) {
		c->how = CONSUMED_UNKNOWN;
		c->unknown = "the logs say neither how many samples were consumed nor the batch";
		return true;
	}
	return lay_attempt(m, i, c);
}

/* The usual batch ------------------------------------------------------------------------------ */

struct part {
	double batch, steps;
};

static int compare_parts(const void *pa, const void *pb)
{
	const struct part *a = pa, *b = pb;

	return (a->batch > b->batch) - (a->batch < b->batch);
}

/* The median size of the steps in (first, last]. */
static double usual_batch(
	const struct stitch *s, const struct stitch_consumed *c, double first, double last)
{
	const struct consumed_knot *k = s->knots.list.items + c->line.first;
	struct part parts[PARTS_MAX];
	double all = 0, sum = 0;
	size_t n = 0;

	for (size_t i = 1; i < c->line.count && n < PARTS_MAX; i++) {
		double steps = fmin(k[i].x, last) - fmax(k[i - 1].x, first);
		if (!(steps > 0))
			continue;
		parts[n++] = (struct part){
			(k[i].amount - k[i - 1].amount) / (k[i].x - k[i - 1].x), steps};
		all += steps;
	}
	if (n == 0)
		return NAN;
	qsort(parts, n, sizeof *parts, compare_parts);
	for (size_t i = 0; i < n; i++) {
		sum += parts[i].steps;
		if (2 * sum >= all)
			return parts[i].batch;
	}
	return parts[n - 1].batch;
}

static double same_within(enum curve_unit unit)
{
	return unit == CURVE_SAMPLES ? SAME_BATCH : SAME_TOKENS;
}

static bool differs(enum curve_unit unit, double a, double b)
{
	return fmax(a, b) > same_within(unit) * fmin(a, b);
}

/* Whether many steps in a row are of another size than the last ones: an epoch's last batch is one
 * step alone. */
static bool is_ramp(const struct stitch *s, const struct stitch_consumed *c)
{
	const struct consumed_knot *k = s->knots.list.items + c->line.first;
	double other = 0, all = k[c->line.count - 1].x - k[0].x;

	if (s->unit != CURVE_SAMPLES)
		return differs(s->unit, c->begin, c->end);
	for (size_t i = 1; i < c->line.count; i++) {
		double steps = k[i].x - k[i - 1].x;
		if (steps > 1 && differs(s->unit, (k[i].amount - k[i - 1].amount) / steps, c->end))
			other += steps;
	}
	return other >= RAMP_STEPS && other >= RAMP_SHARE * all;
}

static void find_changes(struct stitch *s)
{
	s->batch_changes = false;
	for (uint32_t i = 0; i < s->attempts.count; i++) {
		const struct stitch_attempt *a = &s->attempts.items[i];
		struct stitch_consumed *c = &s->consumed.items[i];
		if (c->line.count < 2)
			continue;
		double first = s->knots.list.items[c->line.first].x;
		double last = s->knots.list.items[c->line.first + c->line.count - 1].x;
		double quarter = (last - first) / 4;
		c->begin = usual_batch(s, c, first, first + quarter);
		c->end = usual_batch(s, c, last - quarter, last);
		c->ramps = is_ramp(s, c);
		s->batch_changes = s->batch_changes || c->ramps;
		if (a->parent == CURVE_NONE)
			continue;
		double before = stitch_batch(s, a->parent, a->from);
		if (s->unit != CURVE_SAMPLES)
			before = s->consumed.items[a->parent].end;
		s->batch_changes = s->batch_changes ||
				   (isfinite(before) && differs(s->unit, before, c->begin));
	}
}

/* The whole ------------------------------------------------------------------------------------ */

static int measure_all(struct measuring *m, size_t *known, struct error *e)
{
	struct stitch *s = m->b->s;
	size_t used = 0;

	*known = 0;
	m->twins = false;
	for (size_t i = 0; i < m->b->l->series.count; i++)
		m->twins = m->twins || m->b->l->series.items[i].unit == m->unit;
	s->unit = m->unit;
	s->knots.list.count = 0;
	s->consumed.count = 0;
	if (!array_reserve(&s->consumed, s->attempts.count, SIZE_MAX))
		return stitch_no_memory(e);
	for (uint32_t i = 0; i < s->attempts.count; i++) {
		s->consumed.count++;
		if (!measure(m, i, &used))
			return stitch_no_memory(e);
		*known += s->consumed.items[i].line.count > 1;
	}
	return RP_OK;
}

int stitch_measure_consumed(
	struct stitch_building *b, const struct stitch_options *o, struct error *e)
{
	static const enum curve_unit units[] = {CURVE_SAMPLES, CURVE_TOKENS, CURVE_EPOCHS};
	struct measuring m = {.b = b, .o = o};
	size_t most = 0, known, best = 0;
	int status = RP_OK;

	/* What is logged over samples says by itself how many there were. */
	if (b->s->axis != CURVE_STEPS) {
		b->s->unit = stitch_counts_amounts(b->s) ? b->s->axis : CURVE_UNITS;
		return array_reserve(&b->s->consumed, b->s->attempts.count, SIZE_MAX)
			       ? RP_OK
			       : stitch_no_memory(e);
	}
	for (size_t i = 0; i < 3 && status == RP_OK && most < b->s->attempts.count; i++) {
		m.unit = units[i];
		if (o->by_is_told && o->by != CURVE_STEPS && o->by != m.unit)
			continue;
		status = measure_all(&m, &known, e);
		if (known > most) {
			most = known;
			best = i;
		}
	}
	m.unit = units[best];
	if (status == RP_OK && (most == 0 || b->s->unit != m.unit))
		status = measure_all(&m, &known, e);
	if (most == 0)
		b->s->unit = CURVE_UNITS;
	else
		find_changes(b->s);
	array_release(&m.counts);
	return status;
}

/* Steps that are numbered anew ------------------------------------------------------------------
 */

static bool is_save(const struct stitch *s, double x)
{
	for (size_t i = 0; i < s->saves.count; i++)
		if (s->saves.items[i].x == x)
			return true;
	return false;
}

/* The newest earlier attempt that had consumed so much at a whole step within its log. */
static double step_with(const struct stitch *s, uint32_t attempt, double amount)
{
	for (uint32_t k = attempt; k-- > 0;) {
		const struct stitch_attempt *a = &s->attempts.items[k];
		double x = round(consumed_step(&s->knots, s->consumed.items[k].line, amount));
		double room = s->consumed.items[k].room;
		if (x > a->from && x <= a->last_x + a->interval &&
			fabs(stitch_amount(s, k, x) - amount) <= room)
			return x;
	}
	return NAN;
}

/*
 * By how much the steps of an attempt lie before those of the run, because it divides what was
 * consumed by another batch than the attempts before it. That its step was never saved, and that
 * another one had consumed just as much, tells it from a run that was rolled back.
 */
static double renumbered_by(const struct stitch *s, uint32_t i)
{
	const struct stitch_attempt *a = &s->attempts.items[i];
	const struct stitch_consumed *c = &s->consumed.items[i];

	if (i == 0 || a->renumbered != 0 || c->how != CONSUMED_BY_COUNTER || !c->product ||
		a->from <= 0 || a->how == STITCH_TOLD || is_save(s, a->from) ||
		(a->parent != CURVE_NONE && fabs(c->said - c->expected) <= c->room))
		return 0;
	double x = step_with(s, i, c->said);
	return isnan(x) ? 0 : x - a->from;
}

void stitch_renumber(struct stitch_building *b, bool *again)
{
	struct stitch *s = b->s;

	*again = false;
	if (s->unit != CURVE_SAMPLES && s->unit != CURVE_TOKENS)
		return;
	for (uint32_t i = 0; i < s->attempts.count && !*again; i++) {
		double by = renumbered_by(s, i);
		if (by == 0)
			continue;
		for (size_t k = 0; k < b->pieces.list.count; k++) {
			struct piece *p = &b->pieces.list.items[k];
			if (b->attempt_of[k] != i)
				continue;
			p->offset += by;
			p->renumbered += by;
		}
		*again = true;
	}
}

/* Shown ---------------------------------------------------------------------------------------- */

static void fill_amounts(struct stitch *s)
{
	for (size_t i = 0; i < s->tracks.count; i++) {
		struct stitch_track *t = &s->tracks.items[i];
		for (size_t k = 0; k < t->values.count; k++)
			t->values.items[k].amount =
				stitch_amount(s, t->values.items[k].attempt, t->values.items[k].x);
	}
}

static void note_renumbered(struct stitch *s)
{
	for (size_t i = 0; i < s->attempts.count; i++) {
		const struct stitch_attempt *a = &s->attempts.items[i];
		if (a->renumbered != 0)
			stitch_note(s,
				"attempt %u numbers its steps anew, as what was consumed divided by "
				"its batch: its step %.0f is shown as %.0f",
				a->number, a->first_x - a->renumbered, a->first_x);
	}
}

/* The least sure way in which what an attempt consumed is known. */
static enum consumed_how worst_how(const struct stitch *s)
{
	enum consumed_how worst = CONSUMED_BY_COUNTER;

	for (size_t i = 0; i < s->consumed.count; i++)
		worst = s->consumed.items[i].how < worst ? s->consumed.items[i].how : worst;
	return worst;
}

int stitch_choose_unit(struct stitch_building *b, const struct stitch_options *o, struct error *e)
{
	static const char *const hows[] = {[CONSUMED_UNKNOWN] = "",
		[CONSUMED_TOLD] = "the user tells the batch",
		[CONSUMED_BY_SETTING] = "the launches say their batch",
		[CONSUMED_BY_SIZES] = "the batch was logged",
		[CONSUMED_BY_LEDGER] = "the sample log has them",
		[CONSUMED_BY_COUNTER] = "the logs count them"};
	struct stitch *s = b->s;
	bool all = s->unit != CURVE_UNITS;

	fill_amounts(s);
	note_renumbered(s);
	s->by = s->axis;
	for (uint32_t i = 0; all && i < s->attempts.count; i++)
		all = isfinite(stitch_amount(s, i, s->attempts.items[i].last_x));
	if (!o->by_is_told) {
		s->by = all && s->batch_changes ? s->unit : s->axis;
		if (s->by != s->axis)
			stitch_note(s, "the batch changes: the line is shown by %s too, as %s",
				curve_unit_name(s->by), hows[worst_how(s)]);
		return RP_OK;
	}
	if (o->by == s->axis)
		return RP_OK;
	if (all && s->unit == o->by) {
		s->by = o->by;
		return RP_OK;
	}
	for (uint32_t i = 0; i < s->consumed.count; i++)
		if (s->unit == o->by && s->consumed.items[i].line.count < 2)
			return fail(e, RP_E_ARGUMENT, ERROR_NO_OFFSET, "--by %s: attempt %u: %s",
				curve_unit_name(o->by), s->attempts.items[i].number,
				s->consumed.items[i].unknown ? s->consumed.items[i].unknown
							     : "its batch is not known");
	return fail(e, RP_E_ARGUMENT, ERROR_NO_OFFSET,
		o->by == CURVE_STEPS ? "--by %s: what was logged has no steps"
		: o->by == CURVE_SAMPLES
			? "--by %s: the logs do not say how many were consumed; a run file can tell "
			  "the batch (reprise init)"
			: "--by %s: the logs do not say how many were consumed",
		curve_unit_name(o->by));
}
