/* SPDX-License-Identifier: MIT */
/* Family T: is the learning rate schedule where the step is, and does the optimizer use its rate?
 */
#include <math.h>
#include <stdlib.h>

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

static const char *number(struct findings *sink, double v)
{
	return rounded_text(sink, v, DIGITS);
}

/* "200 behind the step (300 at step 500)" */
static const char *apart_text(struct findings *sink, int64_t at, int64_t step)
{
	return findings_text(sink, "%s %s the step (%s at step %s)",
		count_text(sink, llabs(step - at)), at < step ? "behind" : "ahead of",
		count_text(sink, at), count_text(sink, step));
}

/* "ckpt_200.pt (step 200)" */
static const char *point_text(struct findings *sink, const struct trail_point *p)
{
	const char *name = findings_escaped(sink, slice_of(p->name));

	return isnan(p->step) ? name
			      : findings_text(sink, "%s (step %s)", name, number(sink, p->step));
}

/* "it was at 200 in ckpt_200.pt (step 200), and at 100 in ckpt_300.pt (step 300)" */
static const char *restart_text(
	struct findings *sink, const struct trail *t, const struct trail_restart *r)
{
	const struct trail_point *a = &t->points[r->last_good], *b = &t->points[r->first_bad];

	return findings_text(sink, "it was at %s in %s, and at %s in %s%s",
		number(sink, a->counter[TRAIL_SCHEDULE]), point_text(sink, a),
		number(sink, b->counter[TRAIL_SCHEDULE]), point_text(sink, b),
		r->earlier == 0   ? ""
		: r->earlier == 1 ? "; it had started again once before"
				  : findings_text(sink, "; it had started again %zu times before",
					    r->earlier));
}

/*
 * On the way here the schedule started again, and it goes on from there: between checkpoints that
 * lie further back than the two that are compared.
 */
static bool check_trail(struct audit_case *c, struct findings *sink, int64_t at, int64_t step)
{
	const struct trail *t = &c->trail;
	struct trail_restart r = trail_find_restart(t, TRAIL_SCHEDULE);

	if (!r.found || r.newest)
		return false;
	const char *good = findings_escaped(sink, slice_of(t->points[r.last_good].name));
	const char *place =
		isnan(r.zero)
			? findings_text(sink, "between %s and %s", good,
				  findings_escaped(sink, slice_of(t->points[r.first_bad].name)))
			: findings_text(sink, "at step %s", number(sink, r.zero));
	struct finding *f;
	if (r.mended)
		f = schedule_finding(c, sink, FINDING_T101, at, at,
			findings_text(sink,
				"the learning rate schedule had started again %s; it is where the step is now",
				place));
	else if (isnan(r.zero))
		f = schedule_finding(c, sink, FINDING_T101, at, step,
			findings_text(sink, "the learning rate schedule started again %s", place));
	else
		f = schedule_finding(c, sink, FINDING_T101, at, at + (int64_t)r.zero,
			findings_text(sink, "the learning rate schedule is %s: it started again %s",
				apart_text(sink, at, step), place));
	if (isnan(r.zero) && !r.mended)
		f->expected = (struct quantity){0};
	if (!isnan(t->points[r.last_good].step))
		f->place.step_first = (int64_t)t->points[r.last_good].step;
	f->cause = restart_text(sink, t, &r);
	if (r.mended || (r.replaced && !c->current->profile->schedule_counts_steps)) {
		f->severity = SEVERITY_INFO;
		if (r.replaced)
			f->cause = findings_text(sink,
				"%s, with other settings: another schedule took its place",
				f->cause);
		return true;
	}
	f->meaning =
		"the resume there did not restore the schedule: every step since then had the rate of an "
		"earlier one, and the next resume does the same unless the script is mended";
	f->remedy = findings_text(sink,
		"Resume from %s, the newest one before that, with the schedule's state restored; or "
		"go on from here with its position set to the step.",
		findings_escaped(sink, slice_of(t->points[r.sound].name)));
	return true;
}

/* It went backwards from the previous checkpoint to this one, or counts the steps since then. */
static void tell_restart(struct audit_case *c, struct findings *sink, int64_t at, int64_t before,
	int64_t steps, bool known)
{
	bool since = known && at == steps && steps > 0;
	const char *message =
		at < before
			? findings_text(sink,
				  "the learning rate schedule restarted: position %lld, %lld at the previous checkpoint",
				  (long long)at, (long long)before)
			: findings_text(sink,
				  "the learning rate schedule restarted: it is at %lld, the steps since %s, where it was at %lld",
				  (long long)at, checkpoint_name(c->previous), (long long)before);
	struct finding *f =
		schedule_finding(c, sink, FINDING_T101, at, before + (known ? steps : 0), message);
	int64_t warmup;

	if (since)
		f->cause = findings_text(sink,
			"it counted from zero since %s: that resume did not restore it",
			checkpoint_name(c->previous));
	if (state_int(c->current, FACT_WARMUP_STEPS, &warmup) && warmup > 0)
		f->cause = findings_text(sink, "%s%sthe warm-up of %lld steps was replayed",
			f->cause ? f->cause : "", f->cause ? "; " : "", (long long)warmup);
	f->meaning =
		"warm-up and decay start again: the learning rate is not the planned one from here on";
}

/*
 * Behind or ahead of the step by the same in both checkpoints: it counts steps, and something
 * happened before the first of them.
 */
static void tell_lag(struct audit_case *c, struct findings *sink, int64_t at, int64_t step)
{
	const struct trail *t = &c->trail;
	struct trail_lag lag = trail_find_lag(t, TRAIL_SCHEDULE);
	const char *since = checkpoint_name(c->previous);
	bool strict = c->current->profile->schedule_counts_steps;

	if (lag.known)
		since = findings_escaped(sink, slice_of(t->points[lag.since].name));
	struct finding *f = schedule_finding(c, sink, FINDING_T102, at, step,
		findings_text(sink, "the schedule is %s, and was so in %s already",
			apart_text(sink, at, step), since));
	f->cause =
		at > step
			? "it is advanced once a step, and was advanced more often at some time"
			: findings_text(sink,
				  "it is advanced once a step, so it counts from step %s: a resume there "
				  "did not restore it%s",
				  count_text(sink, step - at),
				  strict ? "" : ", or the script begins it there");
	f->meaning = "the learning rate is the one of another step than this";
	if (!strict)
		f->severity = SEVERITY_WARNING;
}

/* "8 a step" */
static const char *pace_text(struct findings *sink, double moved, double steps)
{
	return findings_text(sink, "%s a step", rounded_text(sink, moved / steps, 4));
}

/* How far it should have moved by the pace up to the previous checkpoint: over the pair before,
 * where there is one, else from the start. */
static double paced(const struct audit_case *c, int64_t before, int64_t step_before, int64_t steps)
{
	int64_t at, step;

	if (c->older && state_int(c->older, FACT_SCHEDULE_STEP, &at) &&
		state_int(c->older, FACT_STEP, &step) && step < step_before && at <= before)
		return (double)(before - at) / (double)(step_before - step) * (double)steps;
	return (double)before / (double)step_before * (double)steps;
}

/* It moved by another number of steps than it should have. */
static struct finding *tell_pace(struct audit_case *c, struct findings *sink, int64_t moved,
	int64_t steps, double expected, const char *than)
{
	struct finding *f = schedule_finding(c, sink, FINDING_T102, moved, (int64_t)round(expected),
		findings_text(sink, "the schedule advanced by %lld over %s (%s), %s",
			(long long)moved, counted_text(sink, (uint64_t)steps, "step"),
			pace_text(sink, (double)moved, (double)steps), than));
	f->meaning = "the learning rate runs away from the one that the step should have";
	return f;
}

/* From the previous checkpoint to this one: it must advance as it did before. `told`: what happened
 * before the previous one was said. */
static bool schedule_moves(
	struct audit_case *c, struct findings *sink, int64_t at, int64_t step, bool told)
{
	int64_t before, step_before, steps = 0;
	double updates;

	if (!c->previous || !state_int(c->previous, FACT_SCHEDULE_STEP, &before))
		return false;
	bool known = case_steps_between(c, &steps);
	bool counted = state_int(c->previous, FACT_STEP, &step_before) && step_before > 0 &&
		       step > step_before;
	/* Going backwards needs no count of steps to be wrong. */
	if (at < before ||
		(known && counted && before == step_before && before > 1 && at == steps)) {
		tell_restart(c, sink, at, before, steps, known);
		return true;
	}
	if (!known || steps <= 0)
		return false;
	if (!counted)
		return true;
	int64_t moved = at - before;
	if (moved == steps) {
		/* A step that starts again with each epoch is not what it counts; nor is one that
		 * counts skipped updates. */
		bool as_updates = optimizer_step(c->current, &updates) && updates == (double)at;
		bool late = before == 0 || (state_fact(c->current, FACT_SCALE) &&
						   (double)at >= 0.9 * (double)step);
		if (!told && llabs(step - at) > 1 && !as_updates && !late)
			tell_lag(c, sink, at, step);
		return true;
	}
	/* In a script's own unit (epochs, processes, …) the rate up to the previous checkpoint is
	 * the measure. */
	double overall = (double)before / (double)step_before * (double)steps;
	double lately = paced(c, before, step_before, steps);
	if (before == step_before) {
		tell_pace(c, sink, moved, steps, (double)steps, "and by 1 a step before");
	} else if (fabs((double)moved - overall) > 1.5 && overall >= 4 &&
		   fabs((double)moved - lately) > 1.5) {
		tell_pace(c, sink, moved, steps, lately,
			findings_text(sink, "where its pace so far gives %s",
				count_text(sink, (int64_t)round(lately))))
			->severity = SEVERITY_WARNING;
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

/* The position in one checkpoint against its step. `moved`: two checkpoints were compared, and said
 * what there is to say; `told`: something was. */
static void check_position(struct audit_case *c, struct findings *sink, int64_t at, int64_t step,
	bool moved, bool told)
{
	struct state *s = c->current;
	int64_t epoch = -1, world = state_world(s) > 0 ? state_world(s) : 1;
	double updates = -1;
	const char *kind = state_fact_text(s, FACT_SCHEDULE);
	bool plateau = kind && strcmp(kind, "ReduceLROnPlateau") == 0;
	bool known_unit = s->profile->schedule_counts_steps && !plateau;

	optimizer_step(s, &updates);
	state_int(s, FACT_EPOCH, &epoch);
	/* Updates that were skipped under a loss scale count in neither; else the step decides. */
	bool as_updates = (double)at == updates && (!known_unit || state_fact(s, FACT_SCALE));
	if (as_updates || llabs(at - step) <= 1)
		return;
	if (known_unit && at == step * world) {
		struct finding *f = schedule_finding(c, sink, FINDING_T102, at, step,
			findings_text(sink,
				"the schedule is at %lld times the step, the number of processes",
				(long long)world));
		f->severity = SEVERITY_INFO;
		f->cause =
			"accelerate advances a prepared schedule once per process; right where its horizon was scaled";
	} else if (known_unit && !told) {
		bool skipped =
			state_fact(s, FACT_SCALE) && at < step && (double)at >= 0.9 * (double)step;
		struct finding *f = schedule_finding(c, sink, FINDING_T102, at, step,
			findings_text(sink, "the schedule is %s", apart_text(sink, at, step)));
		if (skipped)
			f->severity = SEVERITY_INFO;
		else if (at < step)
			f->cause = findings_text(sink,
				"where it is advanced once a step, it counts from step %s: a resume "
				"there did not restore it",
				count_text(sink, step - at));
		f->meaning = "the learning rate is not the one that this step should have";
		f->remedy =
			"Resume from a checkpoint whose schedule agrees with its step, and restore the "
			"schedule's state there.";
	} else if (!known_unit && !moved && !plateau && at != epoch && at != epoch + 1 && at > 0 &&
		   !steps_of_its_own(s, step, at)) {
		struct finding *f = schedule_finding(c, sink, FINDING_T102, at, step,
			findings_text(sink,
				"the schedule is at %lld: neither the step (%lld) nor the epoch",
				(long long)at, (long long)step));
		f->severity = SEVERITY_WARNING;
		if (at < step)
			f->cause = findings_text(sink,
				"where it is advanced once a step, it counts from step %s; an earlier "
				"checkpoint would tell (--against)",
				count_text(sink, step - at));
	}
}

/* None is saved. */
static void check_missing(struct audit_case *c, struct findings *sink, struct coverage *cover)
{
	struct state *s = c->current;
	bool anew = false;

	state_bool(s, FACT_SCHEDULE_ANEW, &anew);
	if (c->previous && state_fact(c->previous, FACT_SCHEDULE_STEP) &&
		!(s->profile->parts && !s->single)) {
		struct finding *f = finding_add(
			sink, FINDING_T101, "the learning rate schedule is no longer saved");
		place_file(sink, f, s, NO_FILE);
	} else if (!promises(s, FILE_SCHEDULER) && !anew) {
		check_unsaved(c, sink);
	}
	cover_not_checked(cover, "schedule", "learning rate schedule",
		anew ? "none is saved: a resume computes it from the step or epoch"
		     : "no schedule is saved");
}

static void run_schedule(struct audit_case *c, struct findings *sink, struct coverage *cover)
{
	static const char *const name = "schedule", *const subject = "learning rate schedule";
	int64_t at, step;

	if (!state_int(c->current, FACT_SCHEDULE_STEP, &at)) {
		check_missing(c, sink, cover);
		return;
	}
	if (!state_int(c->current, FACT_STEP, &step)) {
		bool told = check_trail(c, sink, at, 0);
		bool compared = schedule_moves(c, sink, at, 0, told) || told;
		check_other_schedules(c, sink);
		cover_ran(cover, name, subject, "values", compared, 1,
			"no step counter was recognised to hold it against");
		return;
	}
	bool told = check_trail(c, sink, at, step);
	bool moved = schedule_moves(c, sink, at, step, told);
	told = sink->of_code[FINDING_T101] > 0 || sink->of_code[FINDING_T102] > 0;
	check_position(c, sink, at, step, moved, told);
	check_other_schedules(c, sink);
	uint64_t rates = check_rates(c, sink);
	cover_ran(cover, name, subject, "values", 1 + rates, 1 + rates, NULL);
}

const struct rule rule_schedule = {
	.name = "schedule",
	.subject = "learning rate schedule",
	.run = run_schedule,
};
