/* SPDX-License-Identifier: MIT */
/* Family T from logs: whether what was consumed, and the batch, went on behind each resume. */
#include <math.h>
#include <string.h>

#include "audit/case.h"
#include "audit/curve_words.h"

#define RATIO_MOST 4096.0 /* of processes or accumulated batches */

static const char *amount(struct findings *sink, const struct case_curve *c, double v)
{
	return c->stitch.unit == CURVE_EPOCHS ? rounded_text(sink, v, 4)
					      : count_text(sink, llround(v));
}

static const char *resumed(
	struct findings *sink, const struct case_curve *c, const struct curve_resume *r)
{
	const struct stitch_attempt *a = &c->stitch.attempts.items[r->check.attempt];

	return findings_text(sink, "attempt %u, resumed from %s", a->number,
		curve_at_in(sink, c, a->parent, a->from));
}

/* The ramp --------------------------------------------------------------------------------------
 */

static void tell_ramp(
	struct findings *sink, const struct case_curve *c, const struct curve_resume *r)
{
	const struct resume_ramp *p = &r->ramp;
	const char *who = resumed(sink, c, r), *size = rounded_text(sink, p->batch, 6);
	struct finding *f;

	f = finding_add(sink, FINDING_T114,
		p->rises
			? "%s: the batch grows from %s again, as when the run began; it had reached %s"
			: "%s: the batch is %s, as when the run began; it had reached %s",
		who, size, rounded_text(sink, p->before, 6));
	curve_place(f, c, r->check.from + 1, p->last_x);
	f->observed = quantity_real(p->batch);
	f->expected = quantity_real(p->before);
	f->unit = "samples a step";
	if (!p->rises) {
		f->severity = SEVERITY_WARNING;
		f->meaning =
			"the log ends before it would rise again, so that a batch that was meant "
			"cannot be told from a ramp that began anew";
	}
	if (!r->explained)
		return;
	f->severity = SEVERITY_INFO;
	f->cause = findings_text(sink, "the launch was changed: %s", r->changes);
}

/* Counters --------------------------------------------------------------------------------------
 */

/* What there is to say of a counter at a resume. */
enum counter_state {
	COUNTER_UNKNOWN,
	COUNTER_CONTINUES,
	COUNTER_ANEW,    /* from 0 */
	COUNTER_BEHIND,  /* it is less than was consumed */
	COUNTER_TIMES,   /* a whole number of times that */
	COUNTER_PRODUCT, /* the steps times the batch, which is another one */
	COUNTER_AHEAD,
};

static enum counter_state state_of(const struct case_curve *c, uint32_t attempt, double *ratio)
{
	const struct stitch_attempt *a = &c->stitch.attempts.items[attempt];
	const struct stitch_consumed *k = &c->stitch.consumed.items[attempt];

	*ratio = k->said / k->expected;
	if (k->how != CONSUMED_BY_COUNTER || !(k->expected > 0) || isnan(k->said))
		return COUNTER_UNKNOWN;
	/* From where it went on is known to an interval. */
	double unsure = a->how == STITCH_COUNTED && a->interval > 1 ? a->interval : 0;
	double room = k->room + unsure * k->begin;
	if (!(fabs(k->said - k->expected) > room))
		return COUNTER_CONTINUES;
	if (fabs(k->said) <= room)
		return COUNTER_ANEW;
	if (k->said < k->expected)
		return COUNTER_BEHIND;
	if (k->product && a->parent != CURVE_NONE && c->stitch.consumed.items[a->parent].product)
		return COUNTER_PRODUCT;
	double whole = round(*ratio);
	return whole >= 2 && whole <= RATIO_MOST &&
			       fabs(k->said - whole * k->expected) <= whole * room
		       ? COUNTER_TIMES
		       : COUNTER_AHEAD;
}

/* Whether the data's position is that counter, as in the Megatron family. */
static bool is_position(const struct case_curve *c, uint32_t attempt)
{
	const struct curve_file *f = &c->log->files.items[c->stitch.attempts.items[attempt].file];

	return c->stitch.unit == CURVE_SAMPLES && strncmp(f->writer, "Megatron", 8) == 0;
}

static const char *counter_words(
	struct findings *sink, const struct case_curve *c, enum counter_state state, double ratio)
{
	const char *unit = curve_unit_name(c->stitch.unit);

	switch (state) {
	case COUNTER_ANEW:
		return findings_text(sink, "the count of %s began anew", unit);
	case COUNTER_BEHIND:
		return findings_text(sink, "the count of %s went back", unit);
	case COUNTER_TIMES:
		return findings_text(sink,
			"the count of %s is %s times what it was: as many processes, or accumulated "
			"batches, were counted twice",
			unit, rounded_text(sink, round(ratio), 6));
	case COUNTER_PRODUCT:
		return findings_text(sink,
			"the count of %s is the step times the new batch, as if all steps before had had "
			"it",
			unit);
	default:
		return findings_text(sink, "the count of %s went ahead", unit);
	}
}

static enum severity counter_severity(
	const struct case_curve *c, const struct curve_resume *r, enum counter_state state)
{
	/* Only the number is wrong where the same samples came again, and what is ahead may have
	 * been passed over on purpose. */
	if (state == COUNTER_AHEAD ||
		(state == COUNTER_PRODUCT && r->check.outcome == RESUME_MATCHES))
		return SEVERITY_INFO;
	return is_position(c, r->check.attempt) ? SEVERITY_ERROR : SEVERITY_WARNING;
}

static void tell_counter(struct findings *sink, const struct case_curve *c,
	const struct curve_resume *r, enum counter_state state, double ratio)
{
	const struct stitch_consumed *k = &c->stitch.consumed.items[r->check.attempt];
	const char *unit = curve_unit_name(c->stitch.unit);
	struct finding *f = finding_add(sink, FINDING_T108,
		"%s: its count goes on from %s %s, and attempt %u had consumed %s",
		resumed(sink, c, r), amount(sink, c, fmax(0, k->said)), unit,
		c->stitch.attempts.items[c->stitch.attempts.items[r->check.attempt].parent].number,
		amount(sink, c, k->expected));

	curve_place(f, c, r->check.from + 1, r->check.from + 1);
	f->observed = quantity_real(fmax(0, k->said));
	f->expected = quantity_real(k->expected);
	f->unit = unit;
	f->cause = counter_words(sink, c, state, ratio);
	f->severity = counter_severity(c, r, state);
	f->remedy =
		"Set the counter to what had been consumed, before a schedule or the data's position "
		"goes by it.";
	if (state == COUNTER_AHEAD)
		f->meaning = findings_text(sink,
			"where that count is the position in the data, %s %s were passed over: right, if "
			"that was meant",
			amount(sink, c, k->said - k->expected), unit);
	else if (state == COUNTER_PRODUCT && f->severity == SEVERITY_INFO)
		f->meaning = "only the number: the loss is that of the right samples";
}

/* Whether it is told already that the resume set the epoch back. */
static bool is_told(const struct findings *sink, const struct curve_resume *r)
{
	for (size_t i = 0; i < sink->list.count; i++)
		if (sink->list.items[i].code == FINDING_P103 &&
			sink->list.items[i].place.step_first == llround(r->check.from))
			return true;
	return false;
}

/* The rule --------------------------------------------------------------------------------------
 */

static void run_batch(struct audit_case *a, struct findings *sink, struct coverage *cover)
{
	const struct case_curve *c = a->curve;
	size_t checked = 0, resumes = 0;
	const char *reason = NULL;

	/* Most logs count nothing. */
	if (c->stitch.unit == CURVE_UNITS || c->stitch.consumed.count == 0)
		return;
	for (size_t i = 0; i < c->resumes.count; i++) {
		const struct curve_resume *r = &c->resumes.items[i];
		const struct stitch_attempt *b = &c->stitch.attempts.items[r->check.attempt];
		double ratio;
		if (b->parent == CURVE_NONE || r->check.from != b->from)
			continue;
		resumes++;
		enum counter_state state = state_of(c, r->check.attempt, &ratio);
		if (r->ramp.found)
			tell_ramp(sink, c, r);
		if (state > COUNTER_CONTINUES &&
			!(c->stitch.unit == CURVE_EPOCHS && is_told(sink, r)))
			tell_counter(sink, c, r, state, ratio);
		checked += state != COUNTER_UNKNOWN;
		if (state == COUNTER_UNKNOWN)
			reason = findings_text(
				sink, "attempt %u counts nothing of its own", b->number);
	}
	if (checked > 0)
		cover_ran(cover, "curve-batch", "counters of what was consumed", "resumes", checked,
			resumes, reason);
}

const struct rule rule_curve_batch = {
	.name = "curve-batch",
	.subject = "counters of what was consumed",
	.needs = NEEDS_CURVE,
	.run = run_batch,
};
