/* SPDX-License-Identifier: MIT */
/* Family T: is the learning rate schedule where the step is, and does the optimizer use its rate?
 */
#include <math.h>

#include "audit/case.h"
#include "audit/counting.h"

#define DIGITS 7 /* significant ones, of numbers in messages */

static struct finding *schedule_finding(struct audit_case *c, struct findings *sink,
	enum finding_code code, int64_t observed, int64_t expected, const char *message)
{
	struct finding *f = finding_add(sink, code, "%s", message);

	place_fact(sink, f, c->current, state_fact(c->current, FACT_SCHEDULE_STEP));
	f->place.step_last = case_step(c);
	f->place.step_first = f->place.step_last;
	if (c->previous)
		state_int(c->previous, FACT_STEP, &f->place.step_first);
	f->observed = quantity_count(observed);
	f->expected = quantity_count(expected);
	f->unit = "schedule steps";
	return f;
}

/* From the previous checkpoint to this one: it must advance as it did before. */
static bool schedule_moves(struct audit_case *c, struct findings *sink, int64_t at, int64_t step)
{
	int64_t before, step_before, steps;

	if (!c->previous || !state_int(c->previous, FACT_SCHEDULE_STEP, &before))
		return false;
	bool known = case_steps_between(c, &steps);
	/* Going backwards needs no count of steps to be wrong. */
	if (at < before) {
		struct finding *f = schedule_finding(c, sink, FINDING_T101, at,
			before + (known ? steps : 0),
			findings_text(sink,
				"the learning rate schedule restarted: position %lld, %lld at the previous checkpoint",
				(long long)at, (long long)before));
		int64_t warmup;
		if (state_int(c->current, FACT_WARMUP_STEPS, &warmup) && warmup > 0)
			f->cause = findings_text(
				sink, "the warm-up of %lld steps was replayed", (long long)warmup);
		f->meaning =
			"warm-up and decay start again: the learning rate is not the planned one from here on";
		return true;
	}
	if (!known || steps <= 0)
		return false;
	/* In a script's own unit (epochs, processes, …) the rate up to the previous checkpoint is
	 * the measure. */
	if (!state_int(c->previous, FACT_STEP, &step_before) || step_before <= 0 ||
		step <= step_before)
		return true;
	double expected = (double)before / (double)step_before * (double)steps;
	if (before == step_before && at - before != steps) {
		schedule_finding(c, sink, FINDING_T102, at, before + steps,
			findings_text(sink, "the schedule advanced by %lld over %s",
				(long long)(at - before),
				counted_text(sink, (uint64_t)steps, "step")));
	} else if (before != step_before && fabs((double)(at - before) - expected) > 1.5 &&
		   expected >= 4) {
		struct finding *f = schedule_finding(c, sink, FINDING_T102, at - before,
			(int64_t)round(expected),
			findings_text(sink,
				"the schedule advanced by %lld where its pace so far gives %lld",
				(long long)(at - before), (long long)round(expected)));
		f->severity = SEVERITY_WARNING;
	}
	return true;
}

/* The schedules of further optimizers, which none of the counters above is held against: a position
 * that went back is one that started again. */
static void check_other_schedules(struct audit_case *c, struct findings *sink)
{
	const struct fact *first = state_fact(c->current, FACT_SCHEDULE_STEP);

	for (size_t i = 0; c->previous && i < c->current->facts.count; i++) {
		const struct fact *now = &c->current->facts.items[i];
		if (now->key != FACT_SCHEDULE_STEP || now == first)
			continue;
		const struct fact *was = state_same_fact(c->previous, c->current, now);
		if (!was || was->type != FACT_INT || now->type != FACT_INT || now->i >= was->i)
			continue;
		struct finding *f = schedule_finding(c, sink, FINDING_T101, now->i, was->i,
			findings_text(sink,
				"another learning rate schedule restarted: position %lld, %lld at the previous checkpoint",
				(long long)now->i, (long long)was->i));
		place_fact(sink, f, c->current, now);
		f->meaning =
			"the learning rate of its optimizer is not the planned one from here on";
	}
}

/* Whether a schedule may count in a unit that divides the step: batches, processes, or what is not
 * known. */
static bool steps_of_its_own(const struct state *s, int64_t step, int64_t at)
{
	/* accelerate advances a prepared schedule once per process. */
	if (state_world(s) > 1 && at == step * state_world(s))
		return true;
	if (step % at != 0)
		return false;
	return !state_fact(s, FACT_ACCUMULATION) || counting_known(s, (double)step, (double)at);
}

/* Whether a schedule gave `used` last: any of them, since a script may have several for several
 * optimizers. */
static bool rate_given(const struct state *s, const struct fact *used)
{
	for (size_t i = 0; i < s->facts.count; i++) {
		const struct fact *given = &s->facts.items[i];
		double x, y;
		if (given->key == FACT_SCHEDULE_LR && given->group == used->group &&
			fact_to_double(given, &x) && fact_to_double(used, &y) &&
			fabs(x - y) <= 1e-9 * (fabs(x) + fabs(y)))
			return true;
	}
	return false;
}

/*
 * What the schedule gave last is what the optimizer uses, unless something wrote over it. Returns
 * the number of rates held against each other.
 */
static uint64_t check_rates(struct audit_case *c, struct findings *sink)
{
	struct state *s = c->current;
	uint64_t rates = 0;
	bool any = false;
	const struct fact *odd = NULL, *wanted = NULL;

	for (size_t i = 0; i < s->facts.count; i++) {
		const struct fact *used = &s->facts.items[i];
		const struct fact *given =
			used->key == FACT_LR ? state_group_fact(s, FACT_SCHEDULE_LR, used->group)
					     : NULL;
		if (!given || given->type == FACT_TEXT || used->type == FACT_TEXT)
			continue;
		rates++;
		if (rate_given(s, used)) {
			any = true;
		} else if (!odd) {
			odd = used;
			wanted = given;
		}
	}
	/* Of several optimizers one may have no schedule. */
	if (!odd || (any && s->optimizers.count > 1))
		return rates;
	double x = 0, y = 0;
	fact_to_double(wanted, &x);
	fact_to_double(odd, &y);
	struct finding *f = finding_add(sink, FINDING_T103,
		"the optimizer's learning rate is %s, the schedule's %s",
		rounded_text(sink, y, DIGITS), rounded_text(sink, x, DIGITS));
	f->severity = SEVERITY_WARNING;
	place_fact(sink, f, s, odd);
	f->observed = quantity_real(y);
	f->expected = quantity_real(x);
	return rates;
}

/* Whether a missing file of this role is said by the rule for parts. */
static bool promises(const struct state *s, enum file_role role)
{
	for (const struct part *p = s->profile->parts; p && p->name; p++)
		if (p->role == role)
			return true;
	return false;
}

/* The rates were moved by a schedule that is not saved. */
static void check_unsaved(struct audit_case *c, struct findings *sink)
{
	struct state *s = c->current;

	for (size_t i = 0; i < s->facts.count; i++) {
		const struct fact *rate = &s->facts.items[i];
		const struct fact *initial =
			rate->key == FACT_LR ? state_group_fact(s, FACT_INITIAL_LR, rate->group)
					     : NULL;
		double x, y;
		if (!fact_to_double(initial, &x) || !fact_to_double(rate, &y) || x == y)
			continue;
		struct finding *f = finding_add(sink, FINDING_T101,
			"no learning rate schedule is saved, and one was in use: "
			"the rate is %s, it scales %s",
			rounded_text(sink, y, DIGITS), rounded_text(sink, x, DIGITS));
		f->severity = SEVERITY_WARNING;
		place_fact(sink, f, s, rate);
		f->meaning =
			"the schedule starts again with its first step at a resume, unless the script sets it";
		return;
	}
}

static void run_schedule(struct audit_case *c, struct findings *sink, struct coverage *cover)
{
	static const char *const name = "schedule", *const subject = "learning rate schedule";
	struct state *s = c->current;
	int64_t at, step, epoch = -1;
	double updates = -1;
	const char *kind = state_fact_text(s, FACT_SCHEDULE);
	bool anew = false;

	state_bool(s, FACT_SCHEDULE_ANEW, &anew);
	if (!state_int(s, FACT_SCHEDULE_STEP, &at)) {
		if (c->previous && state_fact(c->previous, FACT_SCHEDULE_STEP) &&
			!(s->profile->parts && !s->single)) {
			struct finding *f = finding_add(sink, FINDING_T101,
				"the learning rate schedule is no longer saved");
			place_file(sink, f, s, NO_FILE);
		} else if (!promises(s, FILE_SCHEDULER) && !anew) {
			check_unsaved(c, sink);
		}
		cover_not_checked(cover, name, subject,
			anew ? "none is saved: a resume computes it from the step or epoch"
			     : "no schedule is saved");
		return;
	}
	check_other_schedules(c, sink);
	if (!state_int(s, FACT_STEP, &step)) {
		bool compared = schedule_moves(c, sink, at, 0) || sink->of_code[FINDING_T101] > 0;
		cover_ran(cover, name, subject, "values", compared, 1,
			"no step counter was recognised to hold it against");
		return;
	}
	bool moved = schedule_moves(c, sink, at, step);
	optimizer_step(s, &updates);
	state_int(s, FACT_EPOCH, &epoch);
	bool plateau = kind && strcmp(kind, "ReduceLROnPlateau") == 0;
	bool known_unit = s->profile->schedule_counts_steps && !plateau;
	int64_t world = state_world(s) > 0 ? state_world(s) : 1;
	bool restarted = sink->of_code[FINDING_T101] > 0 || sink->of_code[FINDING_T102] > 0;
	/* Updates that were skipped under a loss scale count in neither; else the step decides. */
	bool as_updates = (double)at == updates && (!known_unit || state_fact(s, FACT_SCALE));
	bool fits = at == step || as_updates || at == step + 1 || at + 1 == step;
	if (known_unit && !fits && at == step * world) {
		struct finding *f = schedule_finding(c, sink, FINDING_T102, at, step,
			findings_text(sink,
				"the schedule is at %lld times the step, the number of processes",
				(long long)world));
		f->severity = SEVERITY_INFO;
		f->cause =
			"accelerate advances a prepared schedule once per process; right where its horizon was scaled";
	} else if (known_unit && !fits && !restarted) {
		bool skipped =
			state_fact(s, FACT_SCALE) && at < step && (double)at >= 0.9 * (double)step;
		struct finding *f = schedule_finding(c, sink, FINDING_T102, at, step,
			findings_text(sink, "the schedule is at %lld, the trainer at step %lld",
				(long long)at, (long long)step));
		if (skipped)
			f->severity = SEVERITY_INFO;
		f->meaning = "the learning rate is not the one that this step should have";
		f->remedy =
			"Resume from a checkpoint whose schedule agrees with its step, and restore the "
			"schedule's state there.";
	} else if (!known_unit && !moved && !fits && !plateau && at != epoch && at != epoch + 1 &&
		   at > 0 && !steps_of_its_own(s, step, at)) {
		struct finding *f = schedule_finding(c, sink, FINDING_T102, at, step,
			findings_text(sink,
				"the schedule is at %lld: neither the step (%lld) nor the epoch",
				(long long)at, (long long)step));
		f->severity = SEVERITY_WARNING;
	}
	uint64_t rates = check_rates(c, sink);
	cover_ran(cover, name, subject, "values", 1 + rates, 1 + rates, NULL);
}

const struct rule rule_schedule = {
	.name = "schedule",
	.subject = "learning rate schedule",
	.run = run_schedule,
};
