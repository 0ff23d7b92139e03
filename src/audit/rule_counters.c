/* SPDX-License-Identifier: MIT */
/* Family T: do the step counters agree with each other, and did they go on? */
#include <math.h>

#include "audit/case.h"
#include "audit/counting.h"
#include "base/text.h"

#define DIGITS 7 /* significant ones, of numbers in messages */

/* A new loss scaler halves its scale with each overflow, so about as many updates are skipped at
 * the start. */
#define SKIPS_AT_START 24

static bool is_ratio(double a, double b, double ratio)
{
	return b > 0 && ratio > 0 && fabs(a / b / ratio - 1) < 1e-9;
}

/* Smallest and largest step counter of the parameters, and how many have one. */
static uint64_t step_range(const struct state *s, double *least, double *most)
{
	uint64_t count = 0;

	for (size_t i = 0; i < s->optimizers.count; i++) {
		const struct optimizer *o = &s->optimizers.items[i];
		for (size_t k = 0; k < o->params.count; k++) {
			const struct opt_param *p = &o->params.items[k];
			if (!p->has_step)
				continue;
			if (count == 0 || p->step < *least)
				*least = p->step;
			if (count == 0 || p->step > *most)
				*most = p->step;
			count++;
		}
	}
	return count;
}

static void place_counters(
	struct findings *sink, struct finding *f, struct state *s, const struct optimizer *o)
{
	place_file(sink, f, s, o->file);
	f->place.path = findings_text(sink, "%s%sstate[*].step", o->path, *o->path ? "." : "");
}

static void place_optimizer(struct findings *sink, struct finding *f, struct state *s)
{
	if (s->optimizers.count == 0)
		place_file(sink, f, s, NO_FILE);
	else
		place_counters(sink, f, s, &s->optimizers.items[0]);
}

/* The largest of one optimizer's step counters; 0 where it keeps none. */
static double updates_of(const struct optimizer *o)
{
	double most = 0;

	for (size_t k = 0; k < o->params.count; k++)
		if (o->params.items[k].has_step && o->params.items[k].step > most)
			most = o->params.items[k].step;
	return most;
}

/* The updates of each optimizer, added up. */
static double updates_of_all(const struct state *s)
{
	double sum = 0;

	for (size_t i = 0; i < s->optimizers.count; i++)
		sum += updates_of(&s->optimizers.items[i]);
	return sum;
}

/*
 * The framework's count of the epoch's batches is behind the script's: it started again, with
 * whatever else should have been loaded.
 */
static bool count_restarted(const struct state *s)
{
	int64_t counted, batch;

	return state_int(s, FACT_MICRO_STEP, &counted) &&
	       state_int(s, FACT_BATCH_IN_EPOCH, &batch) && counted > 0 && batch - 1 > counted;
}

/* Whether all first moments of the optimizer are those of an earlier state, and known to be. */
static bool has_moments_of(const struct state *earlier, const struct state *s)
{
	struct tensor_changes w;

	return earlier && tensors_compare(earlier, TENSOR_MOMENT1, s, TENSOR_MOMENT1, &w) &&
	       w.both > 0 && w.same == w.both && w.single == 0;
}

/*
 * The earlier checkpoint whose optimizer lies in this one: same counter, same moments, in a file
 * apart from the step. The save that wrote the rest did not write it. NULL where it is its own.
 */
static const struct state *stale_optimizer(const struct audit_case *c, double updates)
{
	const struct state *s = c->current, *earlier[] = {c->previous, c->older};
	const struct fact *step = state_fact(s, FACT_STEP);

	for (size_t i = 0; i < 2; i++) {
		double then;
		if (earlier[i] && s->optimizers.count > 0 && step &&
			step->file != s->optimizers.items[0].file &&
			optimizer_step(earlier[i], &then) && then == updates &&
			has_moments_of(earlier[i], s))
			return earlier[i];
	}
	return NULL;
}

/*
 * The optimizer was made anew on the way here, further back than the two checkpoints that are
 * compared, and its count goes on from there.
 */
static bool check_trail(struct audit_case *c, struct findings *sink, double updates, int64_t step)
{
	const struct trail *t = &c->trail;
	struct trail_restart r = trail_find_restart(t, TRAIL_UPDATES);

	if (!r.found || r.newest || r.mended)
		return false;
	const struct trail_point *a = &t->points[r.last_good], *b = &t->points[r.first_bad];
	const char *good = findings_escaped(sink, slice_of(a->name)),
		   *bad = findings_escaped(sink, slice_of(b->name));
	struct finding *f = finding_add(sink, FINDING_T104,
		"the optimizer state was not restored %s: %s updates since it was made, at step %s",
		isnan(r.zero)
			? findings_text(sink, "between %s and %s", good, bad)
			: findings_text(sink, "at step %s", rounded_text(sink, r.zero, DIGITS)),
		rounded_text(sink, updates, DIGITS), count_text(sink, step));
	f->cause = findings_text(sink, "%s has %s updates at step %s, %s has %s at step %s", good,
		rounded_text(sink, a->counter[TRAIL_UPDATES], DIGITS),
		rounded_text(sink, a->step, DIGITS), bad,
		rounded_text(sink, b->counter[TRAIL_UPDATES], DIGITS),
		rounded_text(sink, b->step, DIGITS));
	place_optimizer(sink, f, c->current);
	f->place.step_first = (int64_t)a->step;
	f->place.step_last = step;
	f->observed = quantity_real(updates);
	f->unit = "updates";
	if (!isnan(r.zero))
		f->expected = quantity_real(updates + r.zero);
	f->meaning =
		"the moments started cold there, and the next resume does the same unless the script is mended";
	f->remedy = findings_text(sink,
		"Resume from %s, the newest one before that, and find out why the state was not loaded.",
		findings_escaped(sink, slice_of(t->points[r.sound].name)));
	/* An optimizer of another kind, or of other parameters, was made on purpose. */
	if (r.replaced) {
		f->severity = SEVERITY_INFO;
		f->cause = findings_text(sink, "%s; it is another optimizer", f->cause);
	}
	return true;
}

/* "both agreed up to ckpt_200.pt (step 200)", where they once did; else since when they are apart
 * by the same. NULL: they are not. */
static const char *since_text(const struct audit_case *c, struct findings *sink)
{
	const struct trail *t = &c->trail;
	struct trail_lag lag = trail_find_lag(t, TRAIL_UPDATES);

	if (!lag.known)
		return NULL;
	if (lag.since == 0 && lag.steps > 0)
		return findings_text(sink, "it counts from step %s, in %s already",
			rounded_text(sink, lag.steps, DIGITS),
			findings_escaped(sink, slice_of(t->points[0].name)));
	if (lag.since == 0)
		return NULL;
	const struct trail_point *p = &t->points[lag.since - 1];
	if (!(fabs(p->step - p->counter[TRAIL_UPDATES]) <= 1))
		return NULL;
	return findings_text(sink, "both agreed up to %s (step %s)",
		findings_escaped(sink, slice_of(p->name)), rounded_text(sink, p->step, DIGITS));
}

/* The optimizer's counter and the trainer's step, where one update counts one in both. */
static void check_counter(struct audit_case *c, struct findings *sink, double updates, int64_t step)
{
	struct state *s = c->current;
	bool strict = s->profile->optimizer_counts_steps;
	double before = 0;
	int64_t step_before, steps = 0;
	struct finding *f;

	if (!strict)
		state_bool(s, FACT_STEP_COUNTS_UPDATES, &strict);
	bool had = c->previous && optimizer_step(c->previous, &before) &&
		   state_int(c->previous, FACT_STEP, &step_before);
	if (updates == (double)step || check_trail(c, sink, updates, step))
		return;
	/* A script whose step counts something else did so before as well. */
	if (!strict && had && step_before > 0 &&
		is_ratio(updates, (double)step, before / (double)step_before))
		return;
	if (!strict && updates > 0 && step > 0 &&
		(counting_known(s, (double)step, updates) ||
			counting_known(s, updates, (double)step)))
		return;
	/* With several optimizers the step may count the updates of all. */
	if (!strict && s->optimizers.count > 1 && updates_of_all(s) == (double)step)
		return;
	const struct state *stale = had ? stale_optimizer(c, updates) : NULL;
	double difference = updates - (double)step;
	bool scaled = state_fact(s, FACT_SCALE) != NULL,
	     free = !strict && !state_fact(s, FACT_ACCUMULATION) && !count_restarted(s);
	double gained = had ? updates - before : 0, passed = had ? (double)(step - step_before) : 0;
	/* Several updates a step (a critic's, those of a rollout) were done before the previous
	 * checkpoint as well. */
	if (free && had && before > (double)step_before && passed > 0 && gained > passed)
		return;
	bool micro = free && updates > 1 && updates < (double)step &&
		     counting_micro_batches(
			     (double)step, updates, had, had ? (double)step_before : 0, before);
	if (micro && had)
		return;
	if (stale) {
		f = finding_add(sink, FINDING_I105,
			"the optimizer's file is the one of %s: %s updates at step %lld, and the same moments",
			checkpoint_name(stale), rounded_text(sink, updates, DIGITS),
			(long long)step);
		f->cause = "the save that wrote the other parts did not write this one";
		f->meaning =
			"the resumed run would train these weights with moments and rates of another time";
	} else if (fabs(difference) == 1 && !strict) {
		f = finding_add(sink, FINDING_T108,
			"the step counter is off by one: step %lld, %s optimizer updates",
			(long long)step, rounded_text(sink, updates, DIGITS));
		f->severity = SEVERITY_INFO;
		f->cause = "the checkpoint was saved before or after the counter was advanced";
	} else if (updates > (double)step) {
		f = finding_add(sink, FINDING_T108,
			"the step counter says %lld, the optimizer has done %s updates",
			(long long)step, rounded_text(sink, updates, DIGITS));
		f->cause = "the step counter started again while the optimizer went on";
		const char *since = since_text(c, sink);
		if (since)
			f->cause = findings_text(sink, "%s; %s", f->cause, since);
		if (free && !had) {
			f->severity = fmod(updates, (double)(step > 0 ? step : 1)) == 0
					      ? SEVERITY_INFO
					      : SEVERITY_WARNING;
			f->cause =
				"the step counter started again while the optimizer went on, or a step has several updates";
		}
	} else if (micro) {
		f = finding_add(sink, FINDING_T105,
			"the optimizer has done %s updates, the trainer says %lld",
			rounded_text(sink, updates, DIGITS), (long long)step);
		f->severity = SEVERITY_INFO;
		f->cause =
			"the step counts micro-batches, or the optimizer was not restored at some resume";
	} else if (scaled && updates >= before &&
		   -difference <= fmax(0.1 * (double)step, SKIPS_AT_START)) {
		f = finding_add(sink, FINDING_T105, "%s updates at step %lld: %s were skipped",
			rounded_text(sink, updates, DIGITS), (long long)step,
			rounded_text(sink, -difference, DIGITS));
		f->severity = SEVERITY_INFO;
		f->cause = "updates whose gradients overflowed are skipped under a loss scale";
	} else if (had && case_steps_between(c, &steps) && updates < before) {
		f = finding_add(sink, FINDING_T104,
			"the optimizer state was not restored: %s updates since it was made, "
			"%s before the resume",
			rounded_text(sink, updates, DIGITS), rounded_text(sink, before, DIGITS));
		f->cause =
			updates == (double)steps
				? findings_text(sink,
					  "its counter started at zero %s ago, at the previous checkpoint",
					  counted_text(sink, (uint64_t)steps, "step"))
				: "it was made anew in between, or its file is of an earlier save";
		f->meaning =
			"the moments start cold: the first updates after the resume are far too large";
	} else {
		f = finding_add(sink, FINDING_T105,
			"the optimizer has done %s updates, the trainer says %lld",
			rounded_text(sink, updates, DIGITS), (long long)step);
		f->meaning =
			"its state is younger than the weights: it was not restored at some resume";
		f->cause = since_text(c, sink);
	}
	place_optimizer(sink, f, s);
	f->place.step_first = f->place.step_last = step;
	f->observed = quantity_real(updates);
	f->expected = quantity_count(step);
	f->unit = "updates";
}

/* The step itself went back: a run that was started anew, or the two checkpoints in the wrong
 * order. */
static void check_step(struct audit_case *c, struct findings *sink, int64_t step)
{
	int64_t before;

	if (!c->previous || !state_int(c->previous, FACT_STEP, &before) || step >= before ||
		case_new_epoch(c))
		return;
	struct finding *f =
		finding_add(sink, FINDING_T108, "the step counter started again: %lld, %lld in %s",
			(long long)step, (long long)before, checkpoint_name(c->previous));
	place_fact(sink, f, c->current, state_fact(c->current, FACT_STEP));
	f->observed = quantity_count(step);
	f->expected = quantity_text(findings_text(sink, "more than %lld", (long long)before));
	f->unit = "steps";
	f->cause =
		"the launch did not resume but started anew, or the two checkpoints were given in the wrong order";
}

static struct finding *not_restored(
	struct audit_case *c, struct findings *sink, double updates, double before)
{
	struct finding *f = finding_add(sink, FINDING_T104,
		"the optimizer state was not restored: %s updates since it was made, %s in %s",
		rounded_text(sink, updates, DIGITS), rounded_text(sink, before, DIGITS),
		checkpoint_name(c->previous));
	f->observed = quantity_real(updates);
	f->expected = quantity_text(
		findings_text(sink, "more than %s", rounded_text(sink, before, DIGITS)));
	f->unit = "updates";
	f->meaning = "the moments start cold: the first updates after the resume are far too large";
	return f;
}

/* Without a step to hold it against, the optimizer's counter must at least not go backwards. */
static void check_updates(struct audit_case *c, struct findings *sink, double updates)
{
	double before;

	if (!c->previous || !optimizer_step(c->previous, &before) || updates >= before)
		return;
	place_optimizer(sink, not_restored(c, sink, updates, before), c->current);
}

/* Of several optimizers each must go on: the largest counter is that of another one. */
static void check_each_optimizer(struct audit_case *c, struct findings *sink)
{
	struct state *s = c->current;
	const struct state *was = c->previous;
	double most, most_before;

	if (!was || s->optimizers.count < 2 || s->optimizers.count != was->optimizers.count ||
		!optimizer_step(s, &most) || !optimizer_step(was, &most_before) ||
		most < most_before)
		return;
	for (size_t i = 0; i < s->optimizers.count; i++) {
		const struct optimizer *o = &s->optimizers.items[i], *p = &was->optimizers.items[i];
		double updates = updates_of(o), before = updates_of(p);
		if (updates >= before || strcmp(o->path, p->path) != 0)
			continue;
		place_counters(sink, not_restored(c, sink, updates, before), s, o);
	}
}

/* Without a step the epoch alone tells that training began anew. */
static void check_epoch(struct audit_case *c, struct findings *sink)
{
	double before, after;

	if (!c->previous || state_fact(c->current, FACT_STEP) ||
		state_fact(c->previous, FACT_STEP) ||
		!state_real(c->previous, FACT_EPOCH, &before) ||
		!state_real(c->current, FACT_EPOCH, &after) || after >= before)
		return;
	struct finding *f = finding_add(sink, FINDING_T108,
		"the epoch went back from %s to %s: training began anew",
		rounded_text(sink, before, DIGITS), rounded_text(sink, after, DIGITS));
	place_fact(sink, f, c->current, state_fact(c->current, FACT_EPOCH));
	f->observed = quantity_real(after);
	f->expected = quantity_text(
		findings_text(sink, "%s or more", rounded_text(sink, before, DIGITS)));
	f->unit = "epochs";
}

static void run_counters(struct audit_case *c, struct findings *sink, struct coverage *cover)
{
	struct state *s = c->current;
	double least = 0, most = 0;
	int64_t step;
	uint64_t count = step_range(s, &least, &most);
	bool has_step = state_int(s, FACT_STEP, &step);

	check_epoch(c, sink);
	if (has_step)
		check_step(c, sink, step);
	if (count > 0 && !has_step)
		check_updates(c, sink, most);
	check_each_optimizer(c, sink);
	if (count == 0 || !has_step) {
		cover_not_checked(cover, "counters", "step counters", "%s",
			has_step ? "the optimizer keeps none" : "no step counter was recognised");
		return;
	}
	check_counter(c, sink, most, step);
	if (least != most) {
		struct finding *f = finding_add(sink, FINDING_T105,
			"step counters of the parameters range from %s to %s",
			rounded_text(sink, least, DIGITS), rounded_text(sink, most, DIGITS));
		f->severity = SEVERITY_INFO;
		place_optimizer(sink, f, s);
		f->cause =
			"parameters that are trained only sometimes, or added later, count fewer";
	}
	cover_ran(cover, "counters", "step counters", "counters", count + 1, count + 1, NULL);
}

const struct rule rule_counters = {
	.name = "counters",
	.subject = "step counters",
	.run = run_counters,
};
