/* SPDX-License-Identifier: MIT */
/* Family L: what the logs hold of the line, and what they do not. */
#include <math.h>

#include "audit/case.h"
#include "audit/curve_words.h"

#define GAP_INTERVALS 2.5 /* of what is usual on either side is a gap */
#define SOURCE_POINTS 64u /* of a source's loss before an event */
#define SOURCE_LEAST 8u
#define SOURCE_ERRORS 4.0
#define SOURCES_NAMED 4u
#define GAPS_MANY 20u /* more are told as one */

static const char *const unit_names[] = {[CURVE_STEPS] = "step",
	[CURVE_SAMPLES] = "sample",
	[CURVE_TOKENS] = "token",
	[CURVE_EPOCHS] = "epoch",
	[CURVE_CALLS] = "row"};

static const char *x_text(struct findings *sink, const struct case_curve *c, double x)
{
	return c->stitch.axis == CURVE_EPOCHS ? rounded_text(sink, x, 5)
					      : count_text(sink, llround(x));
}

static const char *amount_text(
	struct findings *sink, const struct case_curve *c, uint32_t attempt, double x)
{
	return count_text(sink, llround(stitch_amount(&c->stitch, attempt, x)));
}

/* Whether what was consumed is to be said beside the step. */
static bool says_amounts(const struct case_curve *c, uint32_t attempt, double x)
{
	return c->stitch.by != c->stitch.axis && c->stitch.by != CURVE_EPOCHS &&
	       isfinite(stitch_amount(&c->stitch, attempt, x));
}

const char *curve_at_in(
	struct findings *sink, const struct case_curve *c, uint32_t attempt, double x)
{
	const char *text =
		findings_text(sink, "%s %s", unit_names[c->stitch.axis], x_text(sink, c, x));

	return !says_amounts(c, attempt, x)
		       ? text
		       : findings_text(sink, "%s (%s %s)", text, amount_text(sink, c, attempt, x),
				 curve_unit_name(c->stitch.by));
}

const char *curve_steps_in(struct findings *sink, const struct case_curve *c, uint32_t attempt,
	double first, double last)
{
	if (first == last)
		return curve_at_in(sink, c, attempt, first);
	const char *text = findings_text(sink, "%ss %s–%s", unit_names[c->stitch.axis],
		x_text(sink, c, first), x_text(sink, c, last));
	if (!says_amounts(c, attempt, first) || !says_amounts(c, attempt, last))
		return text;
	double begin = stitch_amount(&c->stitch, attempt, first) -
		       stitch_batch(&c->stitch, attempt, first);
	return findings_text(sink, "%s, %s %s–%s", text, curve_unit_name(c->stitch.by),
		count_text(sink, llround(begin) + 1), amount_text(sink, c, attempt, last));
}

/* The attempt that the line is of at x. */
static uint32_t line_attempt(const struct case_curve *c, double x)
{
	uint32_t i = c->stitch.tip;

	while (i != CURVE_NONE && c->stitch.attempts.items[i].parent != CURVE_NONE &&
		x <= c->stitch.attempts.items[i].from)
		i = c->stitch.attempts.items[i].parent;
	return i == CURVE_NONE ? 0 : i;
}

const char *curve_at(struct findings *sink, const struct case_curve *c, double x)
{
	return curve_at_in(sink, c, line_attempt(c, x), x);
}

const char *curve_steps(
	struct findings *sink, const struct case_curve *c, double first, double last)
{
	return curve_steps_in(sink, c, line_attempt(c, last), first, last);
}

void curve_place(struct finding *f, const struct case_curve *c, double first, double last)
{
	if (c->stitch.axis == CURVE_EPOCHS || stitch_counts_amounts(&c->stitch))
		return;
	if (isfinite(first) && fabs(first) < 9e18)
		f->place.step_first = llround(first);
	if (isfinite(last) && fabs(last) < 9e18)
		f->place.step_last = llround(last);
}

const char *curve_data_cause(struct findings *sink, double first, double last)
{
	for (size_t i = 0; i < sink->list.count; i++) {
		const struct finding *f = &sink->list.items[i];
		const struct finding_row *row = &finding_rows[f->code];
		double from = (double)f->place.step_first, to = (double)f->place.step_last;
		if ((row->code[0] != 'D' && row->code[0] != 'M') ||
			f->severity < SEVERITY_WARNING || f->place.step_first == PLACE_NO_STEP ||
			from > last || to < first)
			continue;
		return findings_text(
			sink, "what the data did there: %s (%s)", row->summary, row->code);
	}
	return NULL;
}

/* By how much a track is higher over steps of the line than over the points before; NAN: cannot be
 * said, or no more than its noise. */
static double track_rise(const struct stitch_track *t, double first, double last, bool *known)
{
	double before = 0, square = 0, within = 0, n = 0, m = 0;
	size_t at = 0;

	while (at < t->line.count && t->values.items[t->line.items[at]].x < first)
		at++;
	for (size_t i = at > SOURCE_POINTS ? at - SOURCE_POINTS : 0; i < at; i++) {
		double v = t->values.items[t->line.items[i]].value;
		before += v;
		square += v * v;
		n++;
	}
	for (size_t i = at; i < t->line.count && t->values.items[t->line.items[i]].x <= last; i++) {
		within += t->values.items[t->line.items[i]].value;
		m++;
	}
	*known = n >= SOURCE_LEAST && m > 0;
	if (!*known)
		return NAN;
	double variance = fmax(0, square / n - before / n * (before / n));
	double rise = within / m - before / n;
	return rise > SOURCE_ERRORS * sqrt(variance * (1 / n + 1 / m)) ? rise : NAN;
}

const char *curve_sources(
	struct findings *sink, const struct case_curve *c, double first, double last)
{
	const char *text = "";
	size_t rose = 0, others = 0;

	for (size_t i = 0; i < c->stitch.tracks.count; i++) {
		const struct stitch_track *t = &c->stitch.tracks.items[i];
		bool known;
		double rise =
			t->role == CURVE_SOURCE_LOSS ? track_rise(t, first, last, &known) : NAN;
		if (t->role != CURVE_SOURCE_LOSS || !known)
			continue;
		if (isnan(rise)) {
			others++;
			continue;
		}
		if (rose++ < SOURCES_NAMED)
			text = findings_text(sink, "%s%s %s rose by %s", text,
				rose == 1 ? "; of the sources" : ",",
				findings_escaped(sink, slice_of(t->name)),
				rounded_text(sink, rise, 3));
	}
	if (rose == 0)
		return others ? "; no source's own loss rose: the shares of the sources did" : "";
	return others ? findings_text(sink, "%s, the others did not", text) : text;
}

static void tell_dead(struct findings *sink, const struct case_curve *c, uint32_t i)
{
	const struct stitch_track *t = &c->stitch.tracks.items[0];
	const struct stitch_attempt *a = &c->stitch.attempts.items[i];
	double first = NAN, last = NAN;
	size_t k, end;

	stitch_values_of(t, i, &k, &end);
	for (; k < end; k++) {
		const struct stitch_value *v = &t->values.items[k];
		if (v->alive)
			continue;
		first = isnan(first) ? v->x : first;
		last = v->x;
	}
	struct finding *f = finding_add(sink, FINDING_L110, "%s of attempt %u (%s) %s rolled back",
		counted_text(sink, a->dead, "point"), a->number,
		curve_steps_in(sink, c, i, first, last), a->dead == 1 ? "was" : "were");
	curve_place(f, c, first, last);
	f->observed = quantity_count((int64_t)a->dead);
	f->unit = "points";
}

static size_t tell_gaps(struct findings *sink, const struct case_curve *c)
{
	const struct stitch_track *t = &c->stitch.tracks.items[0];
	const uint32_t *line = t->line.items;
	size_t gaps = 0, n = t->line.count;
	double lost = 0;

	for (size_t i = 2; i + 1 < n; i++) {
		const struct stitch_value *a = &t->values.items[line[i - 1]];
		const struct stitch_value *b = &t->values.items[line[i]];
		double before = a->x - t->values.items[line[i - 2]].x;
		double behind = t->values.items[line[i + 1]].x - b->x;
		if (b->x - a->x <= GAP_INTERVALS * fmax(fmax(before, behind), t->interval))
			continue;
		lost += b->x - a->x;
		if (gaps++ >= GAPS_MANY)
			continue;
		struct finding *f =
			finding_add(sink, FINDING_L111, "nothing is logged between %s and %s",
				curve_at(sink, c, a->x), curve_at(sink, c, b->x));
		curve_place(f, c, a->x, b->x);
		f->observed = quantity_real(b->x - a->x);
		f->expected = quantity_real(fmax(before, behind));
		f->unit = "from point to point";
	}
	if (gaps > GAPS_MANY)
		finding_add(sink, FINDING_L111, "%s in all, over %s",
			counted_text(sink, gaps, "gap"),
			counted_text(sink, (uint64_t)llround(lost), "step"));
	return gaps;
}

static void tell_hidden(
	struct findings *sink, const struct case_curve *c, const struct stitch_seam *s)
{
	struct finding *f = finding_add(sink, FINDING_L113,
		"the final row's mean loss covers only the steps behind %s: the last launch resumed "
		"there",
		curve_at(sink, c, s->x));

	curve_place(f, c, s->x, s->x);
}

static void run_line(struct audit_case *a, struct findings *sink, struct coverage *cover)
{
	const struct case_curve *c = a->curve;

	if (c->stitch.tracks.count == 0) {
		cover_not_checked(cover, "curve-line", "the logs' line", "the logs hold no curve");
		return;
	}
	for (uint32_t i = 0; i < c->stitch.attempts.count; i++)
		if (c->stitch.attempts.items[i].dead > 0)
			tell_dead(sink, c, i);
	tell_gaps(sink, c);
	for (size_t i = 0; i < c->stitch.seams.count; i++)
		if (c->stitch.seams.items[i].hidden)
			tell_hidden(sink, c, &c->stitch.seams.items[i]);
	uint64_t points = c->stitch.tracks.items[0].values.count;
	cover_ran(cover, "curve-line", "the logs' line", "points", points, points + c->log->dropped,
		c->log->dropped ? "more points than --limit curve-points" : NULL);
}

const struct rule rule_curve_line = {
	.name = "curve-line",
	.subject = "the logs' line",
	.needs = NEEDS_CURVE,
	.run = run_line,
};
