/* SPDX-License-Identifier: MIT */
/* Family T: do the counters, the optimizer, the schedule and the weights continue? */
#include <math.h>
#include <stdlib.h>

#include "audit/case.h"
#include "base/text.h"

#define DIGITS 7 /* significant ones, of numbers in messages */

static bool is_ratio(double a, double b, double ratio)
{
	return b > 0 && ratio > 0 && fabs(a / b / ratio - 1) < 1e-9;
}

/*
 * Whether `fine` counts `factor` for each one of `coarse`. The last of them need not be complete,
 * nor the last one of each epoch.
 */
static bool counts_by(double fine, double coarse, double factor, double epochs)
{
	double more = coarse - fine / factor;

	return factor > 0 && coarse > 0 && more > -1 && more < 1 + (factor > 1 ? epochs : 0);
}

/* Whether the two counts differ by what a script may count instead of updates: micro-batches or
 * processes. */
static bool known_factor(const struct state *s, double fine, double coarse)
{
	int64_t v;
	double epoch = 0;

	state_real(s, FACT_EPOCH, &epoch);
	if (state_int(s, FACT_ACCUMULATION, &v) &&
		counts_by(fine, coarse, (double)v, epoch > 0 ? ceil(epoch) : 0))
		return true;
	return state_world(s) > 1 && counts_by(fine, coarse, state_world(s), 0);
}

/*
 * A step in a unit that nothing names: micro-batches under an accumulation that is not saved. One
 * whole factor must explain the counts of this checkpoint, and those of the previous one where
 * there is one.
 */
static bool counts_micro_batches(
	double step, double updates, bool had, double step_before, double before)
{
	/* Or one that changed: so it was before, and so it went on. */
	if (had && before > 0 && step_before >= 1.5 * before &&
		step - step_before >= 1.5 * (updates - before) && updates > before)
		return true;

	double least = ceil(step / (updates + 1)),
	       most = floor(step / (updates > 1 ? updates - 1 : 1));

	for (double k = least > 2 ? least : 2; k <= most && k <= 1024; k++)
		if (counts_by(step, updates, k, 0) &&
			(!had || before <= 0 || counts_by(step_before, before, k, 0)))
			return true;
	return false;
}

/* A new loss scaler halves its scale with each overflow, so about as many updates are skipped at
 * the start. */
#define SKIPS_AT_START 24

/* ---- counters ---------------------------------------------------------------------------------
 */

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

static void place_optimizer(struct findings *sink, struct finding *f, struct state *s)
{
	if (s->optimizers.count == 0) {
		place_file(sink, f, s, NO_FILE);
		return;
	}
	const struct optimizer *o = &s->optimizers.items[0];
	place_file(sink, f, s, o->file);
	f->place.path = findings_text(sink, "%s%sstate[*].step", o->path, *o->path ? "." : "");
}

/* The updates of each optimizer, added up. */
static double updates_of_all(const struct state *s)
{
	double sum = 0;

	for (size_t i = 0; i < s->optimizers.count; i++) {
		const struct optimizer *o = &s->optimizers.items[i];
		double most = 0;
		for (size_t k = 0; k < o->params.count; k++)
			if (o->params.items[k].has_step && o->params.items[k].step > most)
				most = o->params.items[k].step;
		sum += most;
	}
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
	if (updates == (double)step)
		return;
	/* A script whose step counts something else did so before as well. */
	if (!strict && had && step_before > 0 &&
		is_ratio(updates, (double)step, before / (double)step_before))
		return;
	if (!strict && updates > 0 && step > 0 &&
		(known_factor(s, (double)step, updates) || known_factor(s, updates, (double)step)))
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
		     counts_micro_batches(
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

/* Without a step to hold it against, the optimizer's counter must at least not go backwards. */
static void check_updates(struct audit_case *c, struct findings *sink, double updates)
{
	double before;

	if (!c->previous || !optimizer_step(c->previous, &before) || updates >= before)
		return;
	struct finding *f = finding_add(sink, FINDING_T104,
		"the optimizer state was not restored: %s updates since it was made, %s in %s",
		rounded_text(sink, updates, DIGITS), rounded_text(sink, before, DIGITS),
		checkpoint_name(c->previous));
	place_optimizer(sink, f, c->current);
	f->observed = quantity_real(updates);
	f->expected = quantity_text(
		findings_text(sink, "more than %s", rounded_text(sink, before, DIGITS)));
	f->unit = "updates";
	f->meaning = "the moments start cold: the first updates after the resume are far too large";
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

/* ---- optimizer state --------------------------------------------------------------------------
 */

static bool keeps_state(const struct state *s, const struct optimizer *o)
{
	double momentum;

	if (o->adam || slice_starts(slice_of(o->name), SLICE("Adam")))
		return true;
	return strcmp(o->name, "SGD") == 0 && state_real(s, FACT_MOMENTUM, &momentum) &&
	       momentum > 0;
}

/* Every moment whose content is known is zero: an optimizer that was made and never stepped. */
static void check_cold(struct audit_case *c, struct findings *sink, const struct optimizer *o)
{
	struct state *s = c->current;
	uint64_t zero = 0, known = 0;
	int64_t step;

	if (!o->adam || !state_int(s, FACT_STEP, &step) || step <= 0)
		return;
	for (size_t i = 0; i < o->params.count; i++) {
		if (o->params.items[i].moment2 == NO_FILE)
			continue;
		enum zero_known z = tensor_zero(s, &s->tensors.items[o->params.items[i].moment2]);
		known += z != ZERO_UNKNOWN;
		zero += z == ZERO_YES;
	}
	if (known == 0 || zero < known)
		return;
	struct finding *f = finding_add(sink, FINDING_T104,
		"the optimizer's second moments are all zero at step %lld", (long long)step);
	place_file(sink, f, s, o->file);
	f->place.path =
		findings_text(sink, "%s%sstate[*].exp_avg_sq", o->path, *o->path ? "." : "");
	f->observed = quantity_count((int64_t)zero);
	f->expected = quantity_count(0);
	f->unit = "tensors of zeros";
}

/* One parameter's moment changed its shape since the previous checkpoint. */
static void check_shapes(struct audit_case *c, struct findings *sink, const struct optimizer *o,
	const struct optimizer *before)
{
	struct state *s = c->current;
	uint64_t odd = 0;
	const struct state_tensor *example = NULL, *was = NULL;
	size_t n = o->params.count < before->params.count ? o->params.count : before->params.count;

	for (size_t i = 0; i < n; i++) {
		const struct opt_param *p = &o->params.items[i], *q = &before->params.items[i];
		if (p->id != q->id || p->moment1 == NO_FILE || q->moment1 == NO_FILE)
			continue;
		const struct state_tensor *a = &s->tensors.items[p->moment1];
		const struct state_tensor *b = &c->previous->tensors.items[q->moment1];
		if (tensor_same_shape(a, b))
			continue;
		if (!example) {
			example = a;
			was = b;
		}
		odd++;
	}
	if (!example)
		return;
	struct finding *f = finding_add(sink, FINDING_T106,
		"the moments of %llu parameters have another shape than before: their order changed",
		(unsigned long long)odd);
	place_file(sink, f, s, example->file);
	f->place.path = findings_escaped(sink, slice_of(example->name));
	f->observed = quantity_count((int64_t)example->numel);
	f->expected = quantity_count((int64_t)was->numel);
	f->unit = "elements";
	f->cause = "optimizer state is matched to parameters by position, and the positions moved";
}

/* The one file that holds all weights, in the order of a pickled state_dict; NO_FILE where there is
 * none such. */
static uint32_t weights_file(const struct state *s, uint64_t *weights)
{
	uint32_t file = NO_FILE;

	*weights = 0;
	for (size_t i = 0; i < s->tensors.count; i++) {
		const struct state_tensor *t = &s->tensors.items[i];
		if (t->role != TENSOR_WEIGHT)
			continue;
		if (file != NO_FILE && t->file != file)
			return NO_FILE;
		file = t->file;
		(*weights)++;
	}
	if (file == NO_FILE || strcmp(s->files.items[file].container->name, "safetensors") == 0)
		return NO_FILE;
	return file;
}

/*
 * One group that lists every weight, in the order of the saved state_dict: then state i belongs to
 * weight i. Only a pickled state_dict keeps that order.
 */
static void check_order(struct audit_case *c, struct findings *sink, const struct optimizer *o)
{
	struct state *s = c->current;
	uint64_t odd = 0, weight = 0, weights = 0;
	const struct state_tensor *example = NULL, *wanted = NULL;
	uint32_t file = weights_file(s, &weights);

	if (file == NO_FILE || !o->adam || weights != o->listed || weights != o->params.count ||
		s->optimizers.count != 1 || state_group_fact(s, FACT_LR, 1))
		return;
	for (size_t i = 0; i < s->tensors.count; i++) {
		const struct state_tensor *t = &s->tensors.items[i];
		if (t->role != TENSOR_WEIGHT)
			continue;
		const struct opt_param *p = &o->params.items[weight];
		if (p->id != (int64_t)weight || p->moment1 == NO_FILE)
			return;
		const struct state_tensor *m = &s->tensors.items[p->moment1];
		if (!tensor_same_shape(t, m)) {
			odd++;
			if (!example) {
				example = m;
				wanted = t;
			}
		}
		weight++;
	}
	if (!example)
		return;
	struct finding *f = finding_add(sink, FINDING_T106,
		"the moments of %llu of %llu parameters do not have their parameter's shape",
		(unsigned long long)odd, (unsigned long long)weights);
	place_file(sink, f, s, example->file);
	f->place.path = findings_escaped(sink, slice_of(example->name));
	f->observed = quantity_count((int64_t)example->numel);
	f->expected = quantity_count((int64_t)wanted->numel);
	f->unit = findings_text(
		sink, "elements, as %s has", findings_escaped(sink, slice_of(wanted->name)));
}

/* The n-th weight of a file, in the order of the file, from index `from` on; SIZE_MAX: none. */
static size_t next_weight(const struct state *s, size_t from)
{
	for (size_t i = from; i < s->tensors.count; i++)
		if (s->tensors.items[i].role == TENSOR_WEIGHT)
			return i;
	return SIZE_MAX;
}

/*
 * The weights stand in another order than in the previous checkpoint: the model defines its
 * parameters in another order, and the optimizer's state, which goes by position, now steps other
 * parameters.
 */
static void check_name_order(struct audit_case *c, struct findings *sink, const struct optimizer *o)
{
	struct state *s = c->current;
	struct tensor_changes w;
	size_t a = next_weight(c->previous, 0), b = next_weight(s, 0);
	uint64_t odd = 0;
	const struct state_tensor *example = NULL, *was = NULL;

	/* Only where both hold the same names: then the order is all that changed. */
	if (!tensors_compare(c->previous, TENSOR_WEIGHT, s, TENSOR_WEIGHT, &w) || w.single > 0)
		return;
	for (; a != SIZE_MAX && b != SIZE_MAX;
		a = next_weight(c->previous, a + 1), b = next_weight(s, b + 1)) {
		const struct state_tensor *x = &c->previous->tensors.items[a],
					  *y = &s->tensors.items[b];
		if (strcmp(tensor_bare_name(x), tensor_bare_name(y)) == 0)
			continue;
		odd++;
		if (!example) {
			example = y;
			was = x;
		}
	}
	if (!example)
		return;
	struct finding *f = finding_add(sink, FINDING_T106,
		"%llu parameters stand in another order than before: %s where %s was",
		(unsigned long long)odd, findings_escaped(sink, slice_of(example->name)),
		findings_escaped(sink, slice_of(was->name)));
	place_file(sink, f, s, o->file);
	f->observed = quantity_count((int64_t)odd);
	f->expected = quantity_count(0);
	f->unit = "parameters moved";
	f->cause =
		"optimizer state is matched to parameters by position: each of these goes on with another one's moments";
}

static void run_optimizer_state(struct audit_case *c, struct findings *sink, struct coverage *cover)
{
	static const char *const name = "optimizer-state", *const subject = "optimizer state";
	struct state *s = c->current;
	bool only_model = false;
	uint64_t with_state = 0;
	int64_t step = 0;

	state_bool(s, FACT_SAVE_ONLY_MODEL, &only_model);
	if (s->optimizers.count == 0) {
		bool had = c->previous && c->previous->optimizers.count > 0;
		bool promised = s->profile->parts && !s->single && !only_model;
		/* A missing or broken file is said by other rules. */
		if (!promised && (only_model || had)) {
			struct finding *f = finding_add(sink, FINDING_T104,
				"no optimizer state is saved%s",
				only_model ? ": the framework was told to save only the model"
					   : "");
			place_file(sink, f, s, NO_FILE);
			f->meaning =
				"the optimizer starts cold after the resume: moments, step counters and bias correction";
		} else if (!promised && !c->inexact && !s->single) {
			c->inexact = "no optimizer state is in it";
		} else if (!promised && !c->inexact) {
			c->inexact = "no optimizer state is in this file";
		}
		cover_not_checked(cover, name, subject, "there is none");
		return;
	}
	state_int(s, FACT_STEP, &step);
	for (size_t i = 0; i < s->optimizers.count; i++) {
		const struct optimizer *o = &s->optimizers.items[i];
		with_state += o->params.count;
		if (o->params.count == 0 && o->listed > 0 && keeps_state(s, o) && step > 0) {
			struct finding *f = finding_add(sink, FINDING_T104,
				"the optimizer's state is empty: none of %llu parameters has moments",
				(unsigned long long)o->listed);
			place_file(sink, f, s, o->file);
			f->place.path =
				findings_text(sink, "%s%sstate", o->path, *o->path ? "." : "");
			f->observed = quantity_count(0);
			f->expected = quantity_count((int64_t)o->listed);
			f->unit = "parameters";
			continue;
		}
		check_cold(c, sink, o);
		check_order(c, sink, o);
		if (c->previous && i < c->previous->optimizers.count)
			check_shapes(c, sink, o, &c->previous->optimizers.items[i]);
		if (c->previous && i == 0 && c->previous->optimizers.count > 0)
			check_name_order(c, sink, o);
	}
	cover_ran(cover, name, subject, "parameters", with_state, with_state, NULL);
}

const struct rule rule_optimizer_state = {
	.name = "optimizer-state",
	.subject = "optimizer state",
	.run = run_optimizer_state,
};

/* ---- settings ---------------------------------------------------------------------------------
 */

static struct finding *setting_finding(struct audit_case *c, struct findings *sink,
	enum finding_code code, const struct fact *before, const struct fact *after,
	const char *name)
{
	double x = 0, y = 0;

	fact_to_double(before, &x);
	fact_to_double(after, &y);
	struct finding *f = finding_add(sink, code, "%s changed from %s to %s", name,
		rounded_text(sink, x, DIGITS), rounded_text(sink, y, DIGITS));
	place_fact(sink, f, c->current, after);
	f->observed = quantity_real(y);
	f->expected = quantity_real(x);
	f->place.step_last = case_step(c);
	state_int(c->previous, FACT_STEP, &f->place.step_first);
	return f;
}

/* What `after` was in the previous state. Another path is accepted only where there is one
 * optimizer in each. */
static const struct fact *earlier_setting(
	const struct state *previous, const struct state *s, const struct fact *after)
{
	const struct fact *same = state_same_fact(previous, after);

	if (same || previous->optimizers.count > 1 || s->optimizers.count > 1)
		return same;
	return state_group_fact(previous, (enum fact_key)after->key, after->group);
}

/* A number in the saved configuration, by its last name. */
static bool setting_number(const struct state *s, const char *name, double *out)
{
	for (size_t i = 0; i < s->facts.count; i++) {
		const struct fact *f = &s->facts.items[i];
		if (f->key == FACT_CONFIG && strcmp(path_last_name(f->path), name) == 0)
			return fact_to_double(f, out);
	}
	return false;
}

/* Whether one of the schedules (each optimizer may have its own) cycles the momentum too. */
static bool momentum_cycles(const struct state *s)
{
	for (size_t i = 0; i < s->facts.count; i++) {
		const struct fact *f = &s->facts.items[i];
		if (f->key == FACT_SCHEDULE && f->type == FACT_TEXT &&
			(strcmp(f->text, "OneCycleLR") == 0 || strcmp(f->text, "CyclicLR") == 0))
			return true;
	}
	return false;
}

/* A setting that a schedule of its own moves: a cycle of the momentum, or what moved before as
 * well. */
static bool moves_by_plan(const struct audit_case *c, const struct fact *before)
{
	const struct fact *older = c->older ? state_same_fact(c->older, before) : NULL;

	if ((before->key == FACT_BETA1 || before->key == FACT_MOMENTUM) &&
		momentum_cycles(c->current))
		return true;
	/* A framework whose settings say so warms the momentum up in the first epochs. */
	double epoch, warmup;
	if (before->key == FACT_MOMENTUM &&
		setting_number(c->current, "warmup_momentum", &warmup) &&
		setting_number(c->current, "warmup_epochs", &warmup) &&
		state_real(c->previous, FACT_EPOCH, &epoch) && epoch <= warmup)
		return true;
	return older && !fact_equal(older, before);
}

static void run_optimizer_settings(
	struct audit_case *c, struct findings *sink, struct coverage *cover)
{
	static const enum fact_key keys[] = {FACT_INITIAL_LR, FACT_BETA1, FACT_BETA2, FACT_EPSILON,
		FACT_WEIGHT_DECAY, FACT_MOMENTUM};
	struct state *s = c->current;
	uint64_t compared = 0;

	for (size_t k = 0; k < sizeof keys / sizeof keys[0]; k++) {
		/* One finding a setting: the groups of one optimizer usually change together. */
		bool said = false;
		for (size_t i = 0; i < s->facts.count; i++) {
			const struct fact *after = &s->facts.items[i];
			const struct fact *before = after->key == keys[k]
							    ? earlier_setting(c->previous, s, after)
							    : NULL;
			if (!before)
				continue;
			compared++;
			if (said || fact_equal(before, after) || moves_by_plan(c, before))
				continue;
			said = true;
			if (keys[k] == FACT_INITIAL_LR) {
				struct finding *f = setting_finding(c, sink, FINDING_T103, before,
					after, "the learning rate that the schedule scales");
				f->meaning = "the learning rate jumps at the resume";
			} else {
				setting_finding(c, sink, FINDING_T113, before, after,
					fact_rows[keys[k]].name);
			}
		}
	}
	/* Without a saved schedule a script may compute the rate; one that stood still until now it
	 * does not. */
	const struct fact *after = state_fact(s, FACT_LR),
			  *before = after ? earlier_setting(c->previous, s, after) : NULL;
	if (before && after && !moves_by_plan(c, before) && !state_fact(s, FACT_SCHEDULE_ANEW) &&
		!state_fact(s, FACT_SCHEDULE_STEP) &&
		!state_fact(c->previous, FACT_SCHEDULE_STEP) && !state_fact(s, FACT_INITIAL_LR) &&
		!fact_equal(before, after)) {
		struct finding *f =
			setting_finding(c, sink, FINDING_T103, before, after, "the learning rate");
		f->severity = c->older && state_same_fact(c->older, before) ? SEVERITY_WARNING
									    : SEVERITY_INFO;
		f->cause =
			"no schedule is saved that would change it; a script may compute its own";
	}
	if (compared == 0)
		cover_not_checked(cover, "optimizer-settings", "optimizer settings",
			"no optimizer is saved in both");
	else
		cover_ran(cover, "optimizer-settings", "optimizer settings", "settings", compared,
			compared, NULL);
}

const struct rule rule_optimizer_settings = {
	.name = "optimizer-settings",
	.subject = "optimizer settings",
	.needs = NEEDS_PREVIOUS,
	.run = run_optimizer_settings,
};

/* ---- schedule ---------------------------------------------------------------------------------
 */

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

/* Whether a schedule may count in a unit that divides the step: batches, processes, or what is not
 * known. */
static bool steps_of_its_own(const struct state *s, int64_t step, int64_t at)
{
	/* accelerate advances a prepared schedule once per process. */
	if (state_world(s) > 1 && at == step * state_world(s))
		return true;
	if (step % at != 0)
		return false;
	return !state_fact(s, FACT_ACCUMULATION) || known_factor(s, (double)step, (double)at);
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

/* ---- loss scaler ------------------------------------------------------------------------------
 */

static bool config_is_true(const struct state *s, const char *name)
{
	for (size_t i = 0; i < s->facts.count; i++) {
		const struct fact *f = &s->facts.items[i];
		if (f->key == FACT_CONFIG && f->type == FACT_BOOL && f->i &&
			slice_ends(slice_of(f->path), slice_of(name)))
			return true;
	}
	return false;
}

/*
 * Where the scale is what it was and has had no time to grow, no update has overflowed: one that
 * did would have halved it. The count of good updates has then grown by every update since.
 */
static void check_scale_tracker(struct audit_case *c, struct findings *sink, int64_t earlier)
{
	struct state *s = c->current;
	int64_t tracker, interval;
	double updates, then;

	if (!state_int(s, FACT_SCALE_TRACKER, &tracker) ||
		!state_int(s, FACT_SCALE_INTERVAL, &interval) || !optimizer_step(s, &updates) ||
		!optimizer_step(c->previous, &then) || updates < then || tracker >= earlier ||
		(double)earlier + updates - then >= (double)interval)
		return;
	struct finding *f = finding_add(sink, FINDING_T107,
		"the loss scaler was made anew: its count of good updates fell from %s to %s, and the scale did not",
		count_text(sink, earlier), count_text(sink, tracker));
	place_fact(sink, f, s, state_fact(s, FACT_SCALE_TRACKER));
	f->observed = quantity_count(tracker);
	f->expected = quantity_count(earlier + (int64_t)(updates - then));
	f->unit = "updates";
}

static void run_scaler(struct audit_case *c, struct findings *sink, struct coverage *cover)
{
	static const char *const name = "scaler", *const subject = "loss scaler";
	struct state *s = c->current;
	double scale, before;
	bool has = state_real(s, FACT_SCALE, &scale);
	bool had = c->previous && state_real(c->previous, FACT_SCALE, &before);

	if (!has && (had || config_is_true(s, ".fp16"))) {
		struct finding *f = finding_add(
			sink, FINDING_T107, "the run uses fp16 and no loss scaler is saved");
		place_file(sink, f, s, NO_FILE);
		f->meaning =
			"the scale starts at its default, the first updates overflow and are skipped, the schedule lags";
		cover_not_checked(cover, name, subject, "there is none");
		return;
	}
	if (!has) {
		cover_ran(cover, name, subject, "scalers", 0, 0, NULL);
		return;
	}
	int64_t steps = 0, interval, before_tracker = 0;
	if (c->previous)
		state_int(c->previous, FACT_SCALE_TRACKER, &before_tracker);
	if (had && scale == before)
		check_scale_tracker(c, sink, before_tracker);
	/* The scale doubles once in growth_interval steps without overflow, and that many steps
	 * have not passed. */
	if (had && scale > before && case_steps_between(c, &steps) && steps > 0 &&
		state_int(s, FACT_SCALE_INTERVAL, &interval) && interval > 0 &&
		log2(scale / before) > (double)(steps + before_tracker) / (double)interval + 1e-9) {
		struct finding *f = finding_add(sink, FINDING_T107,
			"the loss scale rose from %s to %s, faster than it can grow: it was made anew",
			rounded_text(sink, before, DIGITS), rounded_text(sink, scale, DIGITS));
		place_fact(sink, f, s, state_fact(s, FACT_SCALE));
		f->observed = quantity_real(scale);
		f->expected = quantity_real(before);
	}
	cover_ran(cover, name, subject, "scalers", 1, 1, NULL);
}

const struct rule rule_scaler = {
	.name = "scaler",
	.subject = "loss scaler",
	.run = run_scaler,
};

/* ---- weights ----------------------------------------------------------------------------------
 */

/*
 * A file all of whose weights are those of the previous checkpoint, while the others changed: a
 * shard of an earlier save. Frozen layers may fill a file as well, so this needs an optimizer that
 * trains every weight.
 */
static void check_stale_shards(struct audit_case *c, struct findings *sink, int64_t steps)
{
	struct state *s = c->current;
	uint64_t trained = 0, weights = 0;

	for (size_t i = 0; i < s->optimizers.count; i++)
		trained += s->optimizers.items[i].params.count;
	for (size_t i = 0; i < s->tensors.count; i++)
		weights += s->tensors.items[i].role == TENSOR_WEIGHT;
	if (trained < weights || s->single)
		return;
	for (uint32_t i = 0; i < s->files.count; i++) {
		struct tensor_changes w;
		if (s->files.items[i].role != FILE_WEIGHTS)
			continue;
		if (!tensors_compare_file(c->previous, s, i, &w)) {
			sink->lost++;
			return;
		}
		if (w.known == 0 || w.same < w.known)
			continue;
		struct finding *f = finding_add(sink, FINDING_I105,
			"the %llu weights in %s are those of %s earlier, while the others changed",
			(unsigned long long)w.same,
			findings_escaped(sink, slice_of(s->files.items[i].path)),
			counted_text(sink, (uint64_t)steps, "step"));
		place_file(sink, f, s, i);
		f->place.step_first = f->place.step_last = case_step(c);
		f->observed = quantity_count((int64_t)w.same);
		f->unit = "identical weights";
		f->cause = "the file is of an earlier save";
	}
}

static void run_tensors_change(struct audit_case *c, struct findings *sink, struct coverage *cover)
{
	static const char *const name = "weights-change",
				 *const subject = "weights since the previous checkpoint";
	struct tensor_changes w;
	int64_t steps;

	if (!tensors_compare(c->previous, TENSOR_WEIGHT, c->current, TENSOR_WEIGHT, &w)) {
		sink->lost++;
		return;
	}
	if (w.both == 0 || !case_steps_between(c, &steps)) {
		cover_not_checked(cover, name, subject, "%s",
			w.both ? "the steps between the two are not known"
			       : "no weight is in both");
		return;
	}
	if (w.known > 0 && w.same == w.known && steps > 0) {
		struct finding *f = finding_add(sink, FINDING_T115,
			"all %llu weights are what they were %s earlier",
			(unsigned long long)w.known, counted_text(sink, (uint64_t)steps, "step"));
		place_file(sink, f, c->current, NO_FILE);
		f->place.step_last = case_step(c);
		f->place.step_first = case_step(c) - steps;
		f->observed = quantity_count((int64_t)w.same);
		f->unit = "identical weights";
		f->meaning = "a stale copy of the model was saved, or training did not update it";
	} else if (w.different && steps == 0) {
		struct finding *f = finding_add(sink, FINDING_T115,
			"%llu of %llu weights differ at the same step",
			(unsigned long long)(w.known - w.same), (unsigned long long)w.known);
		place_file(sink, f, c->current, w.different->file);
		f->place.path = findings_escaped(sink, slice_of(w.different->name));
	}
	if (w.same > 0 && w.same < w.known && steps > 0)
		check_stale_shards(c, sink, steps);
	cover_ran(cover, name, subject, "weights", w.known, w.both,
		w.known < w.both
			? "the others are stored without a checksum and were not read, or changed their type"
			: NULL);
}

const struct rule rule_tensors_change = {
	.name = "weights-change",
	.subject = "weights since the previous checkpoint",
	.needs = NEEDS_PREVIOUS,
	.run = run_tensors_change,
};

static void run_tensor_types(struct audit_case *c, struct findings *sink, struct coverage *cover)
{
	static const char *const name = "weight-types", *const subject =
								"types and shapes of weights";
	struct tensor_changes w;

	if (!tensors_compare(c->previous, TENSOR_WEIGHT, c->current, TENSOR_WEIGHT, &w)) {
		sink->lost++;
		return;
	}
	if (w.both == 0) {
		cover_not_checked(cover, name, subject, "no weight is in both");
		return;
	}
	if (w.retyped > 0) {
		struct finding *f = finding_add(sink, FINDING_T111,
			"%llu of %llu weights changed their type from %s to %s",
			(unsigned long long)w.retyped, (unsigned long long)w.both,
			dtype_rows[w.was->dtype].name, dtype_rows[w.odd->dtype].name);
		place_file(sink, f, c->current, w.odd->file);
		f->place.path = findings_escaped(sink, slice_of(w.odd->name));
		f->observed = quantity_text(dtype_rows[w.odd->dtype].name);
		f->expected = quantity_text(dtype_rows[w.was->dtype].name);
	}
	if (w.reshaped > 0) {
		struct finding *f =
			finding_add(sink, FINDING_T110, "%llu of %llu weights changed their shape",
				(unsigned long long)w.reshaped, (unsigned long long)w.both);
		f->severity = SEVERITY_WARNING;
		place_file(sink, f, c->current, w.odd->file);
		f->place.path = findings_escaped(sink, slice_of(w.odd->name));
	}
	cover_ran(cover, name, subject, "weights", w.both, w.both, NULL);
}

const struct rule rule_tensor_types = {
	.name = "weight-types",
	.subject = "types and shapes of weights",
	.needs = NEEDS_PREVIOUS,
	.run = run_tensor_types,
};

/* ---- shapes -----------------------------------------------------------------------------------
 */

static const struct fact *config_int(
	const struct state *s, const char *const *names, int64_t *value)
{
	for (; *names; names++) {
		for (size_t i = 0; i < s->facts.count; i++) {
			const struct fact *f = &s->facts.items[i];
			if (f->key != FACT_CONFIG || f->type != FACT_INT || f->i <= 0)
				continue;
			if (strcmp(path_last_name(f->path), *names) == 0) {
				*value = f->i;
				return f;
			}
		}
	}
	return NULL;
}

static bool has_weight_named(const struct state *s, const char *part)
{
	for (size_t i = 0; i < s->tensors.count; i++)
		if (s->tensors.items[i].role == TENSOR_WEIGHT &&
			strstr(s->tensors.items[i].name, part))
			return true;
	return false;
}

/*
 * A feed-forward width that is not 4 x hidden: BLOOM's 104B run trained a 58B model for weeks
 * because one variable kept its old value. Gated layers have other ratios and are told by their
 * weights' names.
 */
static void run_shapes(struct audit_case *c, struct findings *sink, struct coverage *cover)
{
	static const char *const hidden_names[] = {"hidden_size", "n_embd", "d_model", NULL};
	static const char *const inner_names[] = {
		"ffn_hidden_size", "intermediate_size", "n_inner", "d_ff", "ffn_dim", NULL};
	struct state *s = c->current;
	int64_t hidden, inner;
	const struct fact *f = config_int(s, inner_names, &inner);

	if (!f || !config_int(s, hidden_names, &hidden)) {
		cover_ran(cover, "shapes", "unusual shapes", "ratios", 0, 0, NULL);
		return;
	}
	if (inner != 4 * hidden && !has_weight_named(s, "gate") && !has_weight_named(s, ".w3.")) {
		struct finding *found = finding_add(sink, FINDING_T110,
			"the feed-forward width is %s x the hidden size, usual is 4",
			rounded_text(sink, (double)inner / (double)hidden, DIGITS));
		place_fact(sink, found, s, f);
		found->observed = quantity_count(inner);
		found->expected = quantity_count(4 * hidden);
		found->unit = "units";
	}
	cover_ran(cover, "shapes", "unusual shapes", "ratios", 1, 1, NULL);
}

const struct rule rule_shapes = {
	.name = "shapes",
	.subject = "unusual shapes",
	.run = run_shapes,
};

/* ---- averaged weights -------------------------------------------------------------------------
 */

static uint64_t count_role(const struct state *s, enum tensor_role role)
{
	uint64_t count = 0;

	for (size_t i = 0; i < s->tensors.count; i++)
		count += s->tensors.items[i].role == (uint8_t)role;
	return count;
}

/* A count of updates that went down belongs to averages that were made anew. */
static void check_average_updates(struct audit_case *c, struct findings *sink)
{
	int64_t before, after;

	if (!c->previous || !state_int(c->previous, FACT_EMA_UPDATES, &before) ||
		!state_int(c->current, FACT_EMA_UPDATES, &after) || after >= before)
		return;
	struct finding *f = finding_add(sink, FINDING_T112,
		"the averaged weights (EMA) started again: %lld updates, %lld at the previous checkpoint",
		(long long)after, (long long)before);
	place_fact(sink, f, c->current, state_fact(c->current, FACT_EMA_UPDATES));
	f->place.step_first = f->place.step_last = case_step(c);
	f->observed = quantity_count(after);
	f->expected = quantity_count(before);
	f->unit = "updates";
}

static void averages_finding(
	struct audit_case *c, struct findings *sink, const char *message, uint64_t count)
{
	struct finding *f = finding_add(sink, FINDING_T112, "%s", message);

	place_file(sink, f, c->current, NO_FILE);
	f->place.step_first = f->place.step_last = case_step(c);
	f->observed = quantity_count((int64_t)count);
	f->unit = "averaged weights";
}

static void run_averages(struct audit_case *c, struct findings *sink, struct coverage *cover)
{
	static const char *const name = "averages", *const subject = "averaged weights (EMA)";
	struct state *s = c->current;
	uint64_t now = count_role(s, TENSOR_EMA);
	uint64_t before = c->previous ? count_role(c->previous, TENSOR_EMA) : 0;
	struct tensor_changes live, average;
	int64_t steps = 0;

	if (now == 0) {
		if (before > 0)
			averages_finding(
				c, sink, "the averaged weights (EMA) are no longer saved", 0);
		cover_ran(cover, name, subject, "tensors", 0, 0, NULL);
		return;
	}
	check_average_updates(c, sink);
	if (!tensors_compare(s, TENSOR_EMA, s, TENSOR_WEIGHT, &live)) {
		sink->lost++;
		return;
	}
	uint64_t known = live.known;
	bool waiting = false;
	if (known > 0 && live.same == known && c->previous) {
		/* Averages that were the live weights before as well have not begun yet. */
		if (!tensors_compare(
			    c->previous, TENSOR_EMA, c->previous, TENSOR_WEIGHT, &average)) {
			sink->lost++;
			return;
		}
		waiting = average.known > 0 && average.same == average.known;
	}
	if (known > 0 && live.same == known && !waiting)
		averages_finding(c, sink,
			"the averaged weights (EMA) are the live weights: they started again just now",
			known);
	if (c->previous && case_steps_between(c, &steps) && steps > 0) {
		if (!tensors_compare(c->previous, TENSOR_WEIGHT, s, TENSOR_WEIGHT, &live) ||
			!tensors_compare(c->previous, TENSOR_EMA, s, TENSOR_EMA, &average)) {
			sink->lost++;
			return;
		}
		if (average.known > 0 && average.same == average.known && live.same < live.known)
			averages_finding(c, sink,
				findings_text(sink,
					"the averaged weights (EMA) did not move over %s, while the live ones did",
					counted_text(sink, (uint64_t)steps, "step")),
				average.same);
	}
	cover_ran(cover, name, subject, "tensors", known, now,
		known < now ? "the others could not be compared" : NULL);
}

const struct rule rule_averages = {
	.name = "averages",
	.subject = "averaged weights (EMA)",
	.run = run_averages,
};
