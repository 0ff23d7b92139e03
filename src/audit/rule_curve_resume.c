/* SPDX-License-Identifier: MIT */
/* Family L at resumes: did the curve go on as the interrupted attempt's did? */
#include <math.h>

#include "audit/case.h"
#include "audit/curve_words.h"

#define SAME_SHARE 0.5   /* of a depth, by which the dead branch is low itself */
#define SAME_LEAST 8u    /* of its points that say so */
#define LEVEL_POINTS 64u /* before a resume */

static const char *number(struct findings *sink, double v)
{
	return rounded_text(sink, v, 6);
}

/* "attempt 2, resumed from step 480" */
static const char *resume_name(
	struct findings *sink, const struct case_curve *c, const struct curve_resume *r)
{
	const struct stitch_attempt *a = &c->stitch.attempts.items[r->check.attempt];

	return findings_text(sink, "attempt %u, resumed from %s", a->number,
		a->parent == CURVE_NONE ? curve_at_in(sink, c, r->check.attempt, r->check.from)
					: curve_at_in(sink, c, a->parent, r->check.from));
}

/* Against the dead branch -----------------------------------------------------------------------
 */

static void tell_match(
	struct findings *sink, const struct case_curve *c, const struct curve_resume *r)
{
	const struct resume_check *k = &r->check;
	struct finding *f = finding_add(sink, FINDING_L190,
		"%s: the loss of %s is that of attempt %u; the largest difference is %s",
		resume_name(sink, c, r),
		k->loss.matched == 1 ? "the first logged step"
				     : findings_text(sink, "the first %s logged steps",
					       count_text(sink, (int64_t)k->loss.matched)),
		c->stitch.attempts.items[k->reference].number, number(sink, k->loss.worst));

	curve_place(f, c, k->loss.first_x, k->loss.last_x);
	f->observed = quantity_count((int64_t)k->loss.matched);
	f->unit = "steps";
	if (k->grad_norm.pairs > 0 && k->grad_norm.matched > 0)
		f->meaning = findings_text(sink, "the gradient norm matches for %s of %s too",
			count_text(sink, (int64_t)k->grad_norm.matched),
			counted_text(sink, k->grad_norm.pairs, "step"));
}

/* Over the same samples -------------------------------------------------------------------------
 */

/* A batch, which is mostly a whole number. */
static const char *size_text(struct findings *sink, double v)
{
	return fabs(v - round(v)) < 1e-3 * v ? count_text(sink, llround(v))
					     : rounded_text(sink, v, 4);
}

/* "with 32 samples a step for 16 before" */
static const char *batch_words(
	struct findings *sink, const struct case_curve *c, const struct resume_check *k)
{
	if (k->guessed)
		return findings_text(sink, "if a step has %s times the samples, as it seems",
			rounded_text(sink, k->after, 3));
	return findings_text(sink, "with %s %s a step for %s before", size_text(sink, k->after),
		curve_unit_name(c->stitch.unit), size_text(sink, k->before));
}

static const char *unit_of(const struct case_curve *c, const struct resume_check *k)
{
	return k->guessed ? "samples" : curve_unit_name(c->stitch.unit);
}

/* What the comparison rests on. */
static const char *amount_evidence(
	struct findings *sink, const struct case_curve *c, const struct resume_check *k)
{
	const char *unit = unit_of(c, k);
	const char *text = findings_text(sink,
		"%s of the same %s: the loss differs by %s there, and other %s would differ by about "
		"%s",
		counted_text(sink, k->loss.pairs, "window"), unit, rounded_text(sink, k->rms, 2),
		unit, rounded_text(sink, k->expected_by_chance, 2));

	return isnan(k->correlation)
		       ? text
		       : findings_text(sink,
				 "%s; the changes from window to window correlate with r = %s",
				 text, rounded_text(sink, k->correlation, 3));
}

static void tell_match_by_amount(
	struct findings *sink, const struct case_curve *c, const struct curve_resume *r)
{
	const struct resume_check *k = &r->check;
	struct finding *f = finding_add(sink, FINDING_L190,
		"%s: %s, the loss over the same %s is that of attempt %u", resume_name(sink, c, r),
		batch_words(sink, c, k), unit_of(c, k),
		c->stitch.attempts.items[k->reference].number);

	curve_place(f, c, k->loss.first_x, k->loss.last_x);
	f->observed = quantity_count((int64_t)k->loss.matched);
	f->unit = "windows";
	f->meaning = amount_evidence(sink, c, k);
}

static const char *cause_by_amount(
	struct findings *sink, const struct case_curve *c, const struct curve_resume *r)
{
	const struct resume_check *k = &r->check;
	const char *data = curve_data_cause(sink, k->from + 1, k->loss.x);

	if (r->explained)
		return findings_text(sink, "the launch was changed: %s", r->changes);
	if (data)
		return data;
	if (r->repeat.found)
		return findings_text(sink, "earlier %s again (L114)", unit_of(c, k));
	if (k->outcome == RESUME_SAME_BATCHES)
		return findings_text(sink,
			"the same %s, with other randomness, weights or arithmetic", unit_of(c, k));
	return k->weak ? "the data went on elsewhere, or the loader deals it out in another order with this "
			 "batch or number of ranks"
		       : NULL;
}

static void tell_difference_by_amount(
	struct findings *sink, const struct case_curve *c, const struct curve_resume *r)
{
	const struct resume_check *k = &r->check;
	const char *unit = curve_unit_name(c->stitch.unit);
	const char *who = resume_name(sink, c, r), *batch = batch_words(sink, c, k);
	uint32_t other = c->stitch.attempts.items[k->reference].number;
	struct finding *f;

	if (k->outcome == RESUME_DIFFERS && k->weak)
		f = finding_add(sink, FINDING_L116,
			"%s: %s, the loss over the same %s is not that of attempt %u", who, batch,
			unit, other);
	else
		f = finding_add(sink, FINDING_L116,
			"%s: %s, the loss over the first %s is %s, and attempt %u had %s over the same "
			"ones (tolerance %s)",
			who, batch, unit, number(sink, k->loss.observed), other,
			number(sink, k->loss.expected), rounded_text(sink, k->loss.tolerance, 2));
	curve_place(f, c, k->loss.x, k->loss.x);
	if (!(k->outcome == RESUME_DIFFERS && k->weak)) {
		f->observed = quantity_real(k->loss.observed);
		f->expected = quantity_real(k->loss.expected);
	}
	f->meaning = amount_evidence(sink, c, k);
	f->cause = cause_by_amount(sink, c, r);
	f->severity = r->explained                                   ? SEVERITY_INFO
		      : k->weak || k->outcome == RESUME_SAME_BATCHES ? SEVERITY_WARNING
								     : SEVERITY_ERROR;
}

/* By steps --------------------------------------------------------------------------------------
 */

/* The quantity that does not match, the most telling one first. */
static const struct resume_series *mismatch(const struct resume_check *k, const char **name)
{
	if (k->lr.pairs > 0 && k->lr.matched < k->lr.pairs) {
		*name = "learning rate";
		return &k->lr;
	}
	*name = "loss";
	return &k->loss;
}

static const char *mismatch_cause(struct findings *sink, const struct case_curve *c,
	const struct curve_resume *r, const struct resume_series *s)
{
	const struct resume_check *k = &r->check;

	if (r->explained)
		return findings_text(sink, "the launch was changed: %s", r->changes);
	if (s == &k->lr)
		return "the learning rate schedule did not continue";
	if (r->repeat.found && !r->repeat.renumbered)
		return findings_text(sink, "other batches: those of earlier steps (%s)",
			r->repeat.equal ? "L112" : "L114");
	if (k->outcome == RESUME_SAME_BATCHES && isnan(k->correlation))
		return "the same batches (two others differ by far more), with other randomness, weights or "
		       "arithmetic";
	if (k->outcome == RESUME_SAME_BATCHES)
		return findings_text(sink,
			"the same batches (the changes from step to step correlate, r = %s), with other "
			"randomness, weights or arithmetic",
			rounded_text(sink, k->correlation, 3));
	if (k->updates)
		return "the first step matches, later ones leave to one side: weights and data went on, the "
		       "optimizer's state did not";
	if (!isnan(k->diverges))
		return findings_text(sink, "other batches from %s on",
			curve_at_in(sink, c, k->attempt, k->diverges));
	if (!isnan(k->correlation))
		return findings_text(sink,
			"other batches: the changes from step to step do not correlate (r = %s)",
			rounded_text(sink, k->correlation, 3));
	return NULL;
}

static void tell_difference(
	struct findings *sink, const struct case_curve *c, const struct curve_resume *r)
{
	const struct resume_check *k = &r->check;
	const char *name;
	const struct resume_series *s = mismatch(k, &name);
	struct finding *f = finding_add(sink, FINDING_L116,
		"%s: at %s the %s is %s, and attempt %u had %s (tolerance %s)",
		resume_name(sink, c, r), curve_at_in(sink, c, k->attempt, s->x), name,
		number(sink, s->observed), c->stitch.attempts.items[k->reference].number,
		number(sink, s->expected), rounded_text(sink, s->tolerance, 2));

	curve_place(f, c, s->x, s->x);
	f->observed = quantity_real(s->observed);
	f->expected = quantity_real(s->expected);
	f->cause = curve_data_cause(sink, r->check.from + 1, s->x + c->spikes.interval);
	if (!f->cause || r->explained || s == &k->lr)
		f->cause = mismatch_cause(sink, c, r, s);
	if (r->explained)
		f->severity = SEVERITY_INFO;
	else if (k->outcome == RESUME_SAME_BATCHES || k->weak)
		f->severity = SEVERITY_WARNING;
	if (k->loss.pairs > 1 && s == &k->loss)
		f->meaning = findings_text(sink,
			"over %s the loss differs by %s on average; two other batches differ by about %s",
			counted_text(sink, k->loss.pairs, "point"), number(sink, k->offset),
			rounded_text(sink, k->noise, 3));
}

static bool tell_check(
	struct findings *sink, const struct case_curve *c, const struct curve_resume *r)
{
	switch (r->check.outcome) {
	case RESUME_MATCHES:
		(r->check.by_amount ? tell_match_by_amount : tell_match)(sink, c, r);
		return true;
	case RESUME_SAME_BATCHES:
	case RESUME_DIFFERS:
		(r->check.by_amount ? tell_difference_by_amount : tell_difference)(sink, c, r);
		return true;
	default:
		return false;
	}
}

/* Earlier steps again ---------------------------------------------------------------------------
 */

/* From where in the earlier attempt to where in this one. */
static double lag_shown(const struct case_curve *c, const struct curve_resume *r)
{
	const struct resume_repeat *p = &r->repeat;

	if (c->stitch.by == c->stitch.axis)
		return p->lag;
	return stitch_amount(&c->stitch, r->check.attempt, p->first_x - 1) -
	       stitch_amount(&c->stitch, p->source, p->source_x - 1);
}

static void tell_repeat(
	struct findings *sink, const struct case_curve *c, const struct curve_resume *r)
{
	const struct resume_repeat *p = &r->repeat;
	const char *source = findings_text(sink, "those of %s of attempt %u",
		curve_steps_in(sink, c, p->source, p->source_x, p->source_last_x),
		c->stitch.attempts.items[p->source].number);
	const char *who = resume_name(sink, c, r);
	const char *what = curve_steps_in(sink, c, r->check.attempt, p->first_x, p->last_x);
	struct finding *f;

	if (p->equal)
		f = finding_add(
			sink, FINDING_L112, "%s: the losses of %s equal %s", who, what, source);
	else
		f = finding_add(sink, FINDING_L114,
			"%s: the changes of the loss over %s repeat %s (r = %s over %s)", who, what,
			source, rounded_text(sink, p->correlation, 4),
			counted_text(sink, p->points, "point"));
	curve_place(f, c, p->first_x, p->last_x);
	f->observed = quantity_real(lag_shown(c, r));
	f->expected = quantity_real(0);
	f->unit = c->stitch.by == c->stitch.axis
			  ? "steps of lag"
			  : findings_text(sink, "%s of lag", curve_unit_name(c->stitch.by));
	if (p->renumbered) {
		f->severity = SEVERITY_INFO;
		f->word = VERDICT_COUNT;
		f->cause =
			"the learning rates are shifted with it: only the steps were numbered anew";
	}
}

/* Falsely low -----------------------------------------------------------------------------------
 */

static double attempt_end(const struct case_curve *c, uint32_t attempt)
{
	return c->stitch.attempts.items[attempt].last_x;
}

/* The mean of the last points before the resume. */
static double level_before(
	const struct case_curve *c, const struct stitch_track *t, const struct curve_resume *r)
{
	uint32_t index[LEVEL_POINTS];
	size_t n =
		stitch_branch(&c->stitch, t, r->check.attempt, r->check.from, index, LEVEL_POINTS);
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += t->values.items[index[i]].value;
	return sum / (double)n;
}

/* Whether the dead branch is as low, or as high, behind the resume: then it is the data's own. */
static bool reference_has_it(const struct case_curve *c, const struct curve_resume *r,
	const struct resume_low *l, double sign)
{
	const struct stitch_track *t = stitch_track_of(&c->stitch, CURVE_LOSS);
	double sum = 0;
	size_t i, end, n = 0;

	if (r->check.reference == CURVE_NONE || !t)
		return false;
	stitch_values_of(t, r->check.reference, &i, &end);
	for (; i < end && t->values.items[i].x <= l->last_x; i++) {
		if (t->values.items[i].x <= r->check.from)
			continue;
		sum += t->values.items[i].value;
		n++;
	}
	return n >= SAME_LEAST &&
	       sign * (level_before(c, t, r) - sum / (double)n) > SAME_SHARE * l->depth;
}

/* What was trained in the low stretch: in steps, or in samples where the line is shown by them. */
static double low_length(const struct case_curve *c, const struct curve_resume *r)
{
	return stitch_shown(&c->stitch, r->check.attempt, r->low.last_x) -
	       stitch_shown(&c->stitch, r->check.attempt, r->check.from);
}

static const char *length_words(struct findings *sink, const struct case_curve *c, double length)
{
	return c->stitch.by == c->stitch.axis || c->stitch.by == CURVE_EPOCHS
		       ? counted_text(sink, (uint64_t)llround(length), "step")
		       : findings_text(sink, "%s %s", count_text(sink, llround(length)),
				 curve_unit_name(c->stitch.by));
}

static void tell_low(
	struct findings *sink, const struct case_curve *c, const struct curve_resume *r)
{
	const struct resume_low *l = &r->low;
	const char *who = resume_name(sink, c, r);
	uint32_t parent = c->stitch.attempts.items[r->check.attempt].parent;
	double first = r->check.from + 1;
	double length = low_length(c, r), before = stitch_shown(&c->stitch, parent, r->check.from);
	struct finding *f;

	if (!isnan(r->replayed_to)) {
		f = finding_add(sink, FINDING_L101,
			"%s: the loss is %s below its trend over %s, where the samples are replays, and "
			"steps back up behind them",
			who, rounded_text(sink, l->depth, 3),
			curve_steps_in(sink, c, r->check.attempt, first, l->last_x));
		f->observed = quantity_real(l->last_x - r->check.from);
		f->expected = quantity_real(r->replayed_to - r->check.from);
		f->unit = "steps until the loss is back, and of replay";
	} else {
		f = finding_add(sink, FINDING_L115,
			"%s: the loss is %s below its trend over %s, then back at it: consistent with a "
			"replay of about %s",
			who, rounded_text(sink, l->depth, 3),
			curve_steps_in(sink, c, r->check.attempt, first, l->last_x),
			length_words(sink, c, length));
		f->observed = quantity_real(l->depth);
		f->unit = "below the trend";
		if (fabs(length - before) <=
			2 * c->spikes.interval * length / (l->last_x - r->check.from))
			f->cause = "as long as the run was before the resume: from the start again";
	}
	curve_place(f, c, first, l->last_x);
	f->meaning = findings_text(sink,
		"the step up at %s is the end of it and no divergence (%s standard errors down at the "
		"resume, %s up)",
		curve_at_in(sink, c, r->check.attempt, l->last_x + 1),
		rounded_text(sink, l->down, 3), rounded_text(sink, l->up, 3));
}

static void tell_high(
	struct findings *sink, const struct case_curve *c, const struct curve_resume *r)
{
	const struct resume_low *l = &r->high;
	struct finding *f = finding_add(sink, FINDING_L108,
		"%s: the loss is %s above its trend over %s, then back at it",
		resume_name(sink, c, r), rounded_text(sink, l->depth, 3),
		curve_steps_in(sink, c, r->check.attempt, r->check.from + 1, l->last_x));

	curve_place(f, c, r->check.from + 1, l->last_x);
	f->observed = quantity_real(l->depth);
	f->unit = "above the trend";
	f->meaning = findings_text(sink, "%s standard errors up at the resume, %s down again%s",
		rounded_text(sink, l->down, 3), rounded_text(sink, l->up, 3),
		curve_sources(sink, c, r->check.from + 1, l->last_x));
	f->cause = curve_data_cause(sink, r->check.from + 1, l->last_x);
}

/* Whether a spike tells the same. */
static bool has_spike(const struct case_curve *c, const struct curve_resume *r)
{
	for (size_t i = 0; i < c->spikes.list.count; i++) {
		const struct spike *k = &c->spikes.list.items[i];
		if (k->place == SPIKE_AT_RESUME && k->place_x == r->check.from &&
			k->class != SPIKE_DROP)
			return true;
	}
	return false;
}

/* The rule --------------------------------------------------------------------------------------
 */

static void tell_not_checked(
	struct coverage *cover, const struct case_curve *c, const struct curve_resume *r)
{
	struct strbuf b;

	strbuf_init(&b, 1000);
	curve_resume_words(c, r, &b);
	cover_not_checked(cover, "curve-resume", "resumes against the dead branch",
		"attempt %u: %s", c->stitch.attempts.items[r->check.attempt].number,
		strncmp(strbuf_text(&b), "not checked: ", 13) == 0 ? strbuf_text(&b) + 13
								   : strbuf_text(&b));
	cover->lost += b.no_memory;
	strbuf_release(&b);
}

static void run_resume(struct audit_case *a, struct findings *sink, struct coverage *cover)
{
	const struct case_curve *c = a->curve;
	size_t checked = 0;

	for (size_t i = 0; i < c->resumes.count; i++) {
		const struct curve_resume *r = &c->resumes.items[i];
		if (tell_check(sink, c, r))
			checked++;
		else
			tell_not_checked(cover, c, r);
		if (r->repeat.found)
			tell_repeat(sink, c, r);
		/* Where the dead branch came again, both went on from the same trend. */
		if (r->check.outcome == RESUME_MATCHES)
			continue;
		if (r->low.found && attempt_end(c, r->check.attempt) > r->low.last_x &&
			!reference_has_it(c, r, &r->low, 1))
			tell_low(sink, c, r);
		if (r->high.found && !has_spike(c, r) &&
			attempt_end(c, r->check.attempt) > r->high.last_x &&
			!reference_has_it(c, r, &r->high, -1))
			tell_high(sink, c, r);
	}
	if (checked > 0)
		cover_ran(cover, "curve-resume", "resumes against the dead branch", "resumes",
			checked, checked, NULL);
	else if (c->resumes.count == 0)
		cover_not_checked(cover, "curve-resume", "resumes against the dead branch",
			"the logs hold no resume");
}

const struct rule rule_curve_resume = {
	.name = "curve-resume",
	.subject = "resumes against the dead branch",
	.needs = NEEDS_CURVE | NEEDS_RESUME,
	.run = run_resume,
};
