/* SPDX-License-Identifier: MIT */
/* Family T from loss logs: did the learning rate go on at resumes as its schedule gave it? */
#include <math.h>

#include "audit/case.h"
#include "audit/curve_words.h"

static const char *number(struct findings *sink, double v)
{
	return rounded_text(sink, v, 6);
}

/* "attempt 2, resumed from step 480" */
static const char *who(
	struct findings *sink, const struct case_curve *c, const struct curve_resume *r)
{
	return findings_text(sink, "attempt %u, resumed from %s",
		c->stitch.attempts.items[r->check.attempt].number,
		curve_at(sink, c, r->check.from));
}

static const char *over(
	struct findings *sink, const struct case_curve *c, const struct rate_change *p)
{
	return curve_steps(sink, c, p->first_x, p->last_x);
}

/* "from 0.0005 to 0.00075" */
static const char *jump_words(struct findings *sink, const struct rate_change *p)
{
	return findings_text(
		sink, "from %s to %s", number(sink, p->before), number(sink, p->after));
}

static struct finding *tell_restart(
	struct findings *sink, const struct case_curve *c, const struct curve_resume *r)
{
	const struct rate_change *p = &r->rate;
	struct finding *f = finding_add(sink, FINDING_T101,
		"%s: the learning rates of %s are %sthose of %s, where the run began",
		who(sink, c, r), over(sink, c, p),
		isnan(p->factor)
			? ""
			: findings_text(sink, "%s times ", rounded_text(sink, p->factor, 3)),
		curve_steps(sink, c, p->source_x, p->source_x + p->last_x - p->first_x));

	f->cause =
		isnan(p->factor)
			? "the schedule was made anew and not restored"
			: "the schedule was made anew and not restored; it goes on from the rate that the "
			  "optimizer was left with";
	if (!p->ended)
		return f;
	f->severity = SEVERITY_WARNING;
	f->cause =
		"the schedule was made anew, or is one that begins again after it has come to its end";
	return f;
}

static struct finding *tell_lag(
	struct findings *sink, const struct case_curve *c, const struct curve_resume *r)
{
	const struct rate_change *p = &r->rate;
	bool steps = c->stitch.axis == CURVE_STEPS;
	const char *lag = steps ? counted_text(sink, (uint64_t)llround(fabs(p->lag)), "step")
				: findings_text(sink, "%s %s", number(sink, fabs(p->lag)),
					  curve_unit_name(c->stitch.axis));
	struct finding *f = finding_add(sink, FINDING_T102,
		"%s: the learning rate schedule is %s %s: the rates of %s are those of %s",
		who(sink, c, r), lag, p->lag > 0 ? "behind" : "ahead", over(sink, c, p),
		curve_steps(sink, c, p->first_x - p->lag, p->last_x - p->lag));

	f->cause = p->lag > 0 ? "the schedule's state is of an earlier step than the weights"
			      : "the schedule was advanced more often than the optimizer";
	f->remedy =
		"Stop, and go on from the same checkpoint with the schedule's state of that step.";
	if (p->skips) {
		f->severity = SEVERITY_INFO;
		f->cause = "updates that are skipped under a loss scale do not advance it";
	}
	return f;
}

static struct finding *tell_pace(
	struct findings *sink, const struct case_curve *c, const struct curve_resume *r)
{
	const struct rate_change *p = &r->rate;
	struct finding *f = finding_add(sink, FINDING_T102,
		"%s: over %s the learning rate schedule advances %s times as fast as before",
		who(sink, c, r), over(sink, c, p), rounded_text(sink, p->factor, 3));

	f->cause =
		p->factor > 1
			? "it is advanced once per process or micro-batch instead of once per step"
			: "it was advanced once per process or micro-batch before, and is no longer";
	if (!p->proven)
		f->severity = SEVERITY_WARNING;
	return f;
}

static struct finding *tell_jump(
	struct findings *sink, const struct case_curve *c, const struct curve_resume *r)
{
	const struct rate_change *p = &r->rate;
	bool up = p->after > p->before;
	struct finding *f = finding_add(sink, FINDING_T103, "%s: the learning rate jumps %s",
		who(sink, c, r), jump_words(sink, p));

	if (p->kind == RATE_LENGTH)
		f->cause = findings_text(sink,
			"the rates of %s are those of a schedule %s times as long: the number of training steps "
			"was changed",
			over(sink, c, p), rounded_text(sink, p->factor, 3));
	else if (p->stepped && !up && !p->proven)
		f->cause =
			"a schedule that goes down in steps does so, and so does a lower rate that was set";
	else if (p->kind == RATE_SCALED)
		f->cause = findings_text(sink,
			"over %s it is %s times what the schedule gave: the rate that it scales was changed",
			over(sink, c, p), rounded_text(sink, p->factor, 3));
	else if (p->highest && up)
		f->cause = "it is the run's highest rate: the optimizer's initial one, without the "
			   "schedule";
	if (p->kind == RATE_LENGTH)
		f->remedy =
			"Resume with the number of training steps that the schedule was made for, or mean "
			"the jump and declare it.";
	/* Nothing goes down by mistake but a warm-up that begins again; a rate is lowered on
	 * purpose. One that has come to its end begins another round. */
	if (!up || p->ended)
		f->severity = SEVERITY_WARNING;
	if (p->stepped && !up && !p->proven)
		f->severity = SEVERITY_INFO;
	return f;
}

static void tell(struct findings *sink, const struct case_curve *c, const struct curve_resume *r)
{
	const struct rate_change *p = &r->rate;
	struct finding *f = p->kind == RATE_RESTARTED ? tell_restart(sink, c, r)
			    : p->kind == RATE_LAG     ? tell_lag(sink, c, r)
			    : p->kind == RATE_PACE    ? tell_pace(sink, c, r)
						      : tell_jump(sink, c, r);

	curve_place(f, c, p->first_x, p->last_x);
	f->observed = quantity_real(p->after);
	f->expected = quantity_real(isnan(p->expected) ? p->before : p->expected);
	if (r->rate_by == RATE_UNDECLARED)
		return;
	f->cause = findings_text(sink, "the launch was changed: %s%s%s", r->rate_changes,
		f->cause ? "; " : "", f->cause ? f->cause : "");
	/* Who makes a run longer means the length, and may not mean the jump. */
	if (r->rate_by == RATE_BY_NAME || f->severity < SEVERITY_WARNING)
		f->severity = SEVERITY_INFO;
	else
		f->severity = SEVERITY_WARNING;
}

/* An attempt that looks fresh by its count, and is not by its loss and its rates. */
static struct finding *tell_other_count(struct findings *sink, const struct case_curve *c,
	uint32_t attempt, const struct rate_origin *p)
{
	const char *unit = curve_unit_name(c->stitch.axis);
	const char *about = p->about ? "about " : "";
	struct finding *f = finding_add(sink, FINDING_T108,
		"attempt %u counts %s from 0, and its learning rates go on from %s%s of attempt %u: it is no "
		"fresh start",
		c->stitch.attempts.items[attempt].number, unit, about, curve_at(sink, c, p->x),
		c->stitch.attempts.items[p->source].number);

	f->cause = "weights and schedule were restored, and the trainer's own count was not";
	f->meaning = findings_text(sink,
		"in the curve and the table of attempts it stands at the wrong %s: add %s%s to its own; whether "
		"its data went on, such a log does not show",
		unit, about, number(sink, p->x));
	f->remedy =
		"Before the next resume set the count to what was trained, or restore the trainer's own "
		"state with the rest, so that it stops where it should.";
	return f;
}

static struct finding *tell_weights_alone(struct findings *sink, const struct case_curve *c,
	uint32_t attempt, const struct rate_origin *p)
{
	uint32_t source = c->stitch.attempts.items[p->source].number;
	struct finding *f = finding_add(sink, FINDING_T101,
		"attempt %u begins with the count and the learning rates that attempt %u began with, and its "
		"loss goes on from where that ended (%s after %s; attempt %u began at %s)",
		c->stitch.attempts.items[attempt].number, source, rounded_text(sink, p->loss, 4),
		rounded_text(sink, p->ended, 4), source, rounded_text(sink, p->began, 4));

	f->cause =
		"the weights were loaded, and neither the schedule nor the count (nor the optimizer, most likely)";
	return f;
}

static void tell_origin(struct findings *sink, const struct case_curve *c, uint32_t attempt,
	const struct rate_origin *p)
{
	const struct stitch_attempt *a = &c->stitch.attempts.items[attempt];
	struct finding *f = p->anew ? tell_weights_alone(sink, c, attempt, p)
				    : tell_other_count(sink, c, attempt, p);

	/* Who trains on from finished weights does it on purpose. */
	f->severity = SEVERITY_WARNING;
	curve_place(f, c, a->first_x, a->first_x);
	f->observed = quantity_real(p->anew ? p->loss : p->first);
	f->expected = quantity_real(p->anew ? p->began : p->fresh);
	f->unit = p->anew ? "as the loss of a fresh start" : "as its first learning rate";
}

static void tell_origins(struct findings *sink, const struct case_curve *c)
{
	for (uint32_t i = 1; i < c->stitch.attempts.count; i++) {
		struct rate_origin origin;
		rate_find_origin(&c->stitch, i, &origin);
		if (origin.found)
			tell_origin(sink, c, i, &origin);
	}
}

static void run_rate(struct audit_case *a, struct findings *sink, struct coverage *cover)
{
	static const char *const name = "curve-rate", *const subject = "learning rates at resumes";
	const struct case_curve *c = a->curve;
	size_t judged = 0;

	tell_origins(sink, c);
	if (c->resumes.count == 0)
		return;
	for (size_t i = 0; i < c->resumes.count; i++) {
		const struct curve_resume *r = &c->resumes.items[i];
		if (r->rate.kind == RATE_UNKNOWN)
			continue;
		judged++;
		if (r->rate.kind != RATE_CONTINUES)
			tell(sink, c, r);
	}
	if (!stitch_track_of(&c->stitch, CURVE_LR))
		cover_not_checked(cover, name, subject, "the logs hold no learning rate");
	else if (judged == 0)
		cover_not_checked(
			cover, name, subject, "no learning rate was logged on both sides of one");
	else
		cover_ran(cover, name, subject, "resumes", judged, c->resumes.count,
			judged < c->resumes.count
				? "no rate was logged on both sides of the others, or none that tells"
				: NULL);
}

const struct rule rule_curve_rate = {
	.name = "curve-rate",
	.subject = "learning rates at resumes",
	.needs = NEEDS_CURVE,
	.run = run_rate,
};
