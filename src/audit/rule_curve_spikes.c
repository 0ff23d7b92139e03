/* SPDX-License-Identifier: MIT */
/* Family L: spikes, shifts and divergences, placed against what else happened. */
#include <math.h>

#include "audit/case.h"
#include "audit/curve_words.h"

#define NEAR_EDGE 2.0      /* intervals from the end of a replay that are its step up */
#define SAME_PLACE 0.03    /* of an epoch, within which two places in it are one */
#define EPOCHS_LEAST 2u    /* others that have it there, so that it is the data's */
#define SAME_IN_BRANCH 0.5 /* of the height, which the dead branch has at the same step too */

/* Explanations ----------------------------------------------------------------------------------
 */

/* Whether an event is the fall into a replay or the step up at its end. */
static bool is_replay_edge(const struct case_curve *c, const struct spike *k)
{
	for (size_t i = 0; i < c->resumes.count; i++) {
		const struct curve_resume *r = &c->resumes.items[i];
		double room = NEAR_EDGE * fmax(1, c->spikes.interval) +
			      0.05 * (r->low.last_x - r->check.from);
		/* What repeats earlier steps is too low, and rises when it no longer does. */
		if (r->repeat.found && k->attempt == r->check.attempt && k->x > r->check.from &&
			(k->class == SPIKE_DRIFT || k->class == SPIKE_SHIFT ||
				k->class == SPIKE_PARTIAL))
			return true;
		if (!r->low.found)
			continue;
		if (fabs(k->x - r->low.last_x) <= room ||
			(k->class == SPIKE_DROP && fabs(k->x - r->check.from) <= room))
			return true;
	}
	return false;
}

/* Whether an attempt that took the same step in another branch has the height too. */
static const struct stitch_value *same_elsewhere(const struct case_curve *c, const struct spike *k)
{
	const struct stitch_track *t = stitch_track_of(&c->stitch, CURVE_LOSS);
	double x = isnan(k->peak_x) ? k->x : k->peak_x;

	for (size_t i = 0; t && i < t->values.count; i++) {
		const struct stitch_value *v = &t->values.items[i];
		if (v->x == x && v->attempt != k->attempt &&
			v->value - k->baseline > SAME_IN_BRANCH * (k->peak - k->baseline))
			return v;
	}
	return NULL;
}

/* The epoch at x with its fraction, as the nearest point of the line says it; NAN: not known. */
static double epoch_at(const struct case_curve *c, double x)
{
	const struct stitch_track *t = stitch_track_of(&c->stitch, CURVE_EPOCH_COUNT);
	size_t low = 0, high = t ? t->line.count : 0;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (t->values.items[t->line.items[middle]].x < x)
			low = middle + 1;
		else
			high = middle;
	}
	return t && low < t->line.count ? t->values.items[t->line.items[low]].value : NAN;
}

static bool rises(const struct spike *k)
{
	return k->class <= SPIKE_OPEN || k->class == SPIKE_SHIFT;
}

/*
 * How many other rises begin at the same place of another epoch, where they do so more often than
 * by accident, else 0: data that is sorted within epochs makes a saw of the loss.
 */
static size_t in_other_epochs(const struct case_curve *c, const struct spike *k)
{
	double epoch = rises(k) ? epoch_at(c, k->x) : NAN;
	size_t there = 0, all = 0;

	for (size_t i = 0; !isnan(epoch) && i < c->spikes.list.count; i++) {
		const struct spike *o = &c->spikes.list.items[i];
		double apart = fabs(epoch_at(c, o->x) - epoch), whole = round(apart);
		if (!rises(o) || !(whole >= 1))
			continue;
		all++;
		there += fabs(apart - whole) <= SAME_PLACE;
	}
	double chance = 2 * SAME_PLACE * (double)all;
	return there >= EPOCHS_LEAST && (double)there > 3 * chance ? there : 0;
}

/* Whether the log says that the update of a step was skipped. */
static bool was_skipped(const struct case_curve *c, const struct spike *k)
{
	const struct stitch_track *t = stitch_track_of(&c->stitch, CURVE_SKIP_COUNT);
	double last = isnan(k->end_x) ? k->x + (double)k->points * c->spikes.interval : k->end_x;

	for (size_t i = 0; t && i < t->values.count; i++)
		if (t->values.items[i].x >= k->x && t->values.items[i].x <= last &&
			t->values.items[i].value > 0)
			return true;
	for (size_t i = 0; i < c->log->marks.count; i++) {
		const struct curve_mark *m = &c->log->marks.items[i];
		if ((m->kind == CURVE_SKIPPED || m->kind == CURVE_OVERFLOW) &&
			m->unit == c->stitch.axis && m->x >= k->x && m->x <= last)
			return true;
	}
	return false;
}

/* Words -----------------------------------------------------------------------------------------
 */

/* "12 steps", "0.25 epochs" */
static const char *distance(struct findings *sink, const struct case_curve *c, double d)
{
	if (c->stitch.axis == CURVE_STEPS)
		return counted_text(sink, (uint64_t)llround(d), "step");
	return findings_text(
		sink, "%s %s", rounded_text(sink, d, 3), curve_unit_name(c->stitch.axis));
}

static const char *place_words(
	struct findings *sink, const struct case_curve *c, const struct spike *k)
{
	const char *far = distance(sink, c, fabs(k->x - k->place_x));
	const char *side = k->x >= k->place_x ? "after" : "before";

	switch (k->place) {
	case SPIKE_AT_RESUME:
		return findings_text(sink, "%s after the resume from %s%s", far,
			curve_at(sink, c, k->place_x),
			k->alike == 0
				? ""
				: findings_text(sink,
					  ", where one may well lie by accident: the run has %s as high "
					  "elsewhere",
					  count_text(sink, (int64_t)k->alike)));
	case SPIKE_AT_WARMUP_END:
		return findings_text(sink, "%s %s the end of the warm-up at %s", far, side,
			curve_at(sink, c, k->place_x));
	case SPIKE_AT_LR_CHANGE:
		return findings_text(sink, "%s after the learning rate changed at %s", far,
			curve_at(sink, c, k->place_x));
	case SPIKE_AT_SCALER:
		return findings_text(sink, "%s %s the loss scaler lowered the scale at %s", far,
			side, curve_at(sink, c, k->place_x));
	case SPIKE_AT_EPOCH:
		return findings_text(
			sink, "at the epoch's end at %s", curve_at(sink, c, k->place_x));
	default:
		return "far from any resume: the model's or the data's own";
	}
}

static const char *lead_words(
	struct findings *sink, const struct case_curve *c, const struct spike *k)
{
	if (isnan(k->lead))
		return "";
	if (k->lead > 0)
		return findings_text(
			sink, "; the gradient norm rose %s before", distance(sink, c, k->lead));
	return k->lead == 0 ? "; the gradient norm rose with it"
			    : findings_text(sink, "; the gradient norm rose %s later",
				      distance(sink, c, -k->lead));
}

/* What a point is: said where one covers many steps, which flatten a spike. */
static const char *interval_words(struct findings *sink, const struct case_curve *c)
{
	const struct stitch_attempt *a =
		c->stitch.attempts.count ? &c->stitch.attempts.items[c->stitch.tip] : NULL;

	if (!a || !a->mean || !(c->spikes.interval > 1))
		return "";
	return findings_text(sink,
		"; a point is the mean of %s steps, in which one step's height shows as its %sth part",
		count_text(sink, llround(c->spikes.interval)),
		count_text(sink, llround(c->spikes.interval)));
}

static const char *height_words(struct findings *sink, const struct spike *k)
{
	return findings_text(sink, "from %s to %s", rounded_text(sink, k->baseline, 4),
		rounded_text(sink, k->peak, 4));
}

static const char *back_words(
	struct findings *sink, const struct case_curve *c, const struct spike *k)
{
	if (!isnan(k->end_x))
		return findings_text(sink, "back after %s", distance(sink, c, k->end_x - k->x));
	if (k->rising)
		return "rising still at the end of the log";
	if (isnan(k->level) || k->class == SPIKE_OPEN)
		return "not back at the end of the log";
	return findings_text(sink, "then at %s", rounded_text(sink, k->level, 4));
}

/* Findings --------------------------------------------------------------------------------------
 */

static enum finding_code code_of(const struct spike *k, bool own)
{
	switch (k->class) {
	case SPIKE_FAST:
		return own ? FINDING_L103 : FINDING_L108;
	case SPIKE_OPEN:
		/* Highest at its last point: it is rising still. */
		if (own && k->rising)
			return FINDING_L106;
		return own ? FINDING_L104 : FINDING_L108;
	case SPIKE_SLOW:
		return own ? FINDING_L104 : FINDING_L108;
	case SPIKE_PARTIAL:
	case SPIKE_DIVERGED:
		return FINDING_L105;
	case SPIKE_DRIFT:
		return FINDING_L106;
	case SPIKE_SHIFT:
		return FINDING_L102;
	case SPIKE_DROP:
		return own ? FINDING_L109 : FINDING_L108;
	default:
		return FINDING_L107;
	}
}

static const char *message(struct findings *sink, const struct case_curve *c, const struct spike *k)
{
	const char *at = curve_at_in(sink, c, k->attempt, k->x);

	switch (k->class) {
	case SPIKE_NOT_FINITE:
		return findings_text(sink, "the loss is not a number from %s on, for %s%s", at,
			counted_text(sink, k->points, "point"),
			isnan(k->end_x) ? ", up to the end" : "");
	case SPIKE_DRIFT:
		return findings_text(sink, "the loss rises from %s at %s to %s without a spike",
			rounded_text(sink, k->baseline, 4), at, rounded_text(sink, k->level, 4));
	case SPIKE_SHIFT:
		return findings_text(sink, "at %s the loss goes from %s to %s and stays there", at,
			rounded_text(sink, k->baseline, 4), rounded_text(sink, k->level, 4));
	case SPIKE_DROP:
		return findings_text(sink, "at %s the loss falls from %s to %s at once", at,
			rounded_text(sink, k->baseline, 4), rounded_text(sink, k->level, 4));
	case SPIKE_DIVERGED:
		return findings_text(sink, "at %s the loss rises %s and does not come back: %s", at,
			height_words(sink, k), back_words(sink, c, k));
	default:
		return findings_text(sink, "at %s the loss rises %s, %s", at, height_words(sink, k),
			back_words(sink, c, k));
	}
}

static void tell_spike(struct findings *sink, const struct case_curve *c, const struct spike *k)
{
	const struct stitch_value *again =
		k->place == SPIKE_AT_RESUME ? same_elsewhere(c, k) : NULL;
	bool own = k->place != SPIKE_AT_RESUME || again != NULL || k->alike > 0;
	struct finding *f = finding_add(sink, code_of(k, own), "%s%s", message(sink, c, k),
		k->dead ? ", in a branch that was rolled back" : "");
	double last = !isnan(k->end_x) ? k->end_x : isnan(k->peak_x) ? k->x : k->peak_x;

	curve_place(f, c, k->x, last);
	f->observed = isnan(k->peak) ? quantity_real(k->level) : quantity_real(k->peak);
	f->expected = quantity_real(k->baseline);
	if (k->class == SPIKE_NOT_FINITE)
		f->observed = f->expected = (struct quantity){0};
	f->meaning =
		findings_text(sink, "%s%s%s%s", place_words(sink, c, k), lead_words(sink, c, k),
			interval_words(sink, c), k->dead ? "" : curve_sources(sink, c, k->x, last));
	if (again)
		f->cause = findings_text(sink, "attempt %u has it at the same step: the data's",
			c->stitch.attempts.items[again->attempt].number);
	else
		f->cause = curve_data_cause(sink, k->x, last);
	size_t epochs = in_other_epochs(c, k);
	if (epochs > 0)
		f->cause = findings_text(sink,
			"the loss rises at the same place of %s other epochs: their data does it",
			count_text(sink, (int64_t)epochs));
	/* What was rolled back is no trouble of the weights that survive. */
	if (k->dead || epochs > 0)
		f->severity = SEVERITY_INFO;
}

static void run_spikes(struct audit_case *a, struct findings *sink, struct coverage *cover)
{
	const struct case_curve *c = a->curve;
	const char *reason = NULL;

	if (c->spikes.points == 0) {
		cover_not_checked(
			cover, "curve-spikes", "spikes of the loss", "the logs hold no loss");
		return;
	}
	for (size_t i = 0; i < c->spikes.list.count; i++) {
		const struct spike *k = &c->spikes.list.items[i];
		if ((k->class == SPIKE_NOT_FINITE && was_skipped(c, k)) || is_replay_edge(c, k))
			continue;
		/* A level shift is one without an explanation in the data. */
		if (k->class == SPIKE_SHIFT && curve_data_cause(sink, k->x, k->x))
			continue;
		/* The fall at an epoch's start, where data comes again, is expected. */
		if (k->class == SPIKE_DROP && k->place == SPIKE_AT_EPOCH)
			continue;
		tell_spike(sink, c, k);
	}
	if (!isnan(c->spikes.coarse))
		reason = findings_text(sink,
			"the loss was logged in steps of %s, more than its noise: smaller spikes cannot be "
			"seen",
			rounded_text(sink, c->spikes.coarse, 3));
	else if (c->spikes.judged == 0)
		reason = findings_text(sink, "%s %s too few for a baseline",
			counted_text(sink, c->spikes.points, "point"),
			c->spikes.points == 1 ? "is" : "are");
	cover_ran(cover, "curve-spikes", "spikes of the loss", "points", c->spikes.judged,
		c->spikes.points, reason);
}

const struct rule rule_curve_spikes = {
	.name = "curve-spikes",
	.subject = "spikes of the loss",
	.needs = NEEDS_CURVE,
	.run = run_spikes,
};

/* The loss scale --------------------------------------------------------------------------------
 */

static void run_scale(struct audit_case *a, struct findings *sink, struct coverage *cover)
{
	const struct case_curve *c = a->curve;
	const struct stitch_track *t = stitch_track_of(&c->stitch, CURVE_LOSS_SCALE);
	double before, after;

	/* Runs in bf16 have none. */
	if (!t)
		return;
	for (uint32_t i = 0; i < c->stitch.attempts.count; i++) {
		const struct stitch_attempt *b = &c->stitch.attempts.items[i];
		bool tip = i == c->stitch.tip;
		if (!tip && b->dead == 0)
			continue;
		double x = curve_scale_falls(c, i, &before, &after);
		if (isnan(x))
			continue;
		struct finding *f = finding_add(sink, FINDING_O105,
			"from %s on the loss scale falls from %s to %s%s", curve_at(sink, c, x),
			rounded_text(sink, before, 6), rounded_text(sink, after, 6),
			tip ? "" : ", in a branch that was rolled back");
		curve_place(f, c, x, b->last_x);
		f->observed = quantity_real(after);
		f->expected = quantity_real(before);
		if (!tip)
			f->severity = SEVERITY_INFO;
	}
	cover_ran(cover, "curve-scale", "the loss scale", "points", t->values.count,
		t->values.count, NULL);
}

const struct rule rule_curve_scale = {
	.name = "curve-scale",
	.subject = "the loss scale",
	.needs = NEEDS_CURVE,
	.run = run_scale,
};
