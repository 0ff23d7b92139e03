/* SPDX-License-Identifier: MIT */
/* Family I, values: are the numbers themselves ones that training can have left? */
#include <math.h>

#include "audit/case.h"

#define DIGITS 4 /* significant ones, of numbers in messages */

/* Weights of sound models are below this by many orders of magnitude, in every precision. */
#define ABSURD 1e15
/* Between two checkpoints neither the largest weight nor their scale grows by these factors. */
#define IMPLAUSIBLE_GROWTH 1e6
#define IMPLAUSIBLE_SCALE 1e3
/* First moments go with the gradients' scale, second moments with its square. */
#define IMPLAUSIBLE_MOMENT1 1e6
#define IMPLAUSIBLE_MOMENT2 1e12
/* Adam moves a weight by about the learning rate in an update; some times that, to be sure. */
#define UPDATES_OF_LR 10.0
/* What a weight that starts at zero may reach where the learning rate is not known. */
#define REACH_UNKNOWN 100.0
/* Before so many updates moments still find their scale: warm-up, LoRA, zero initialisation. */
#define SETTLED_UPDATES 100.0
/* Fewer elements may be anything together: zero, equal, or close to zero in passing. */
#define MANY_ELEMENTS 16u

static bool is_judged(const struct state_tensor *t)
{
	return t->role == TENSOR_WEIGHT || t->role == TENSOR_EMA || t->role == TENSOR_MOMENT1 ||
	       t->role == TENSOR_MOMENT2;
}

/* What is known of the values of a tensor of floats, or NULL. */
static const struct tensor_summary *floats_of(const struct state *s, const struct state_tensor *t)
{
	const struct tensor_summary *v = tensor_summary_of(s, t);

	return v && v->valued && dtype_rows[t->dtype].kind == DTYPE_KIND_FLOAT ? v : NULL;
}

/* The same of a tensor that rules judge by all its values. */
static const struct tensor_summary *values_of(const struct state *s, const struct state_tensor *t)
{
	return is_judged(t) ? floats_of(s, t) : NULL;
}

/* The largest magnitude of a finite element; 0 where there is none. */
static double largest(const struct tensor_summary *v)
{
	return isnan(v->max) ? 0 : fmax(fabs(v->min), fabs(v->max));
}

/* Zeros and one huge negative number: what some scripts mask with instead of -inf. */
static bool is_mask(const struct tensor_summary *v)
{
	return v->max <= 0 && v->min < -ABSURD;
}

static struct finding *place_tensor(struct audit_case *c, struct findings *sink, struct finding *f,
	const struct state_tensor *t)
{
	place_file(sink, f, c->current, t->file);
	f->place.path = findings_escaped(sink, slice_of(t->name));
	f->place.step_last = f->place.step_first = case_step(c);
	return f;
}

static void judge_values(struct audit_case *c, struct findings *sink, const struct state_tensor *t,
	const struct tensor_summary *v)
{
	uint64_t bad = v->nans + v->infinities;

	/* Masks are often kept as -inf among the weights; moments have no masks. */
	if (t->role == TENSOR_WEIGHT || t->role == TENSOR_EMA)
		bad -= v->negative_infinities;
	if (bad > 0) {
		struct finding *f = finding_add(sink, FINDING_I109,
			"%llu of %llu values are NaN or infinite in %s", (unsigned long long)bad,
			(unsigned long long)t->numel, findings_escaped(sink, slice_of(t->name)));
		place_tensor(c, sink, f, t);
		f->observed = quantity_count((int64_t)bad);
		f->expected = quantity_count(0);
		f->unit = "values";
	} else if (t->role == TENSOR_WEIGHT && largest(v) > ABSURD && !is_mask(v)) {
		struct finding *f = finding_add(sink, FINDING_I110,
			"a value of %s in %s: no training leaves such a weight",
			rounded_text(sink, largest(v), DIGITS),
			findings_escaped(sink, slice_of(t->name)));
		place_tensor(c, sink, f, t);
		f->severity = SEVERITY_ERROR;
		f->observed = quantity_real(largest(v));
		f->cause = "a flipped bit in an exponent gives such values";
	}
}

/* ---- NaN elsewhere ----------------------------------------------------------------------------
 */

/* State that training reads as it reads moments: a NaN spoils what comes after. An infinity may be
 * a bound or a start by design. */
static bool is_spoiled_by_nans(const struct state_tensor *t)
{
	struct slice name = slice_of(t->name);

	return t->role == TENSOR_OPTIMIZER ||
	       (t->role == TENSOR_BUFFER && (slice_ends(name, SLICE("running_mean")) ||
						    slice_ends(name, SLICE("running_var"))));
}

/* Whether a tensor whose part is not known has the shape of a parameter, and no name under which
 * measurements are kept, with NaN where there are none yet. */
static bool may_be_parameter(const struct state_tensor *t)
{
	static const char *const records[] = {
		"hist", "loss", "log", "metric", "eval", "best", "score", "record"};

	if (t->role != TENSOR_OTHER || t->ndim < 2 || t->numel < MANY_ELEMENTS)
		return false;
	for (size_t i = 0; i < sizeof records / sizeof records[0]; i++)
		if (strstr(t->name, records[i]))
			return false;
	return true;
}

/* The same tensor's values in the previous checkpoint, or NULL. O(tensors), for the few that need
 * it. */
static const struct tensor_summary *values_before(
	const struct audit_case *c, const struct state_tensor *t)
{
	for (size_t i = 0; c->previous && i < c->previous->tensors.count; i++) {
		const struct state_tensor *was = &c->previous->tensors.items[i];
		if (was->role == t->role && was->rank == t->rank &&
			strcmp(was->name, t->name) == 0 && tensor_same_shape(was, t))
			return floats_of(c->previous, was);
	}
	return NULL;
}

/*
 * NaN in what is neither weight nor moment. Where it is not known what a tensor is, NaN may stand
 * for "nothing yet" by design: that is no more than told, unless there was none before.
 */
static void judge_nans(struct audit_case *c, struct findings *sink, const struct state_tensor *t,
	const struct tensor_summary *v)
{
	bool spoils = is_spoiled_by_nans(t);
	const struct tensor_summary *before = spoils ? NULL : values_before(c, t);
	bool fresh = before && before->nans == 0;

	if (t->role == TENSOR_RNG || (!spoils && !fresh && !may_be_parameter(t)))
		return;
	struct finding *f = finding_add(sink, FINDING_I109, "%s of %s values are NaN in %s",
		count_text(sink, (int64_t)v->nans), count_text(sink, (int64_t)t->numel),
		findings_escaped(sink, slice_of(t->name)));
	place_tensor(c, sink, f, t);
	f->observed = quantity_count((int64_t)v->nans);
	f->expected = quantity_count(0);
	f->unit = "values";
	if (spoils)
		return;
	f->severity = fresh ? SEVERITY_WARNING : SEVERITY_INFO;
	f->cause =
		fresh ? findings_text(sink, "none was in %s; what this tensor is is not known",
				checkpoint_name(c->previous))
		      : "what this tensor is is not known: NaN may stand for \"nothing yet\" in it";
}

static void run_values(struct audit_case *c, struct findings *sink, struct coverage *cover)
{
	const struct state *s = c->current;
	uint64_t looked = 0, judged = 0;

	for (size_t i = 0; i < s->tensors.count; i++) {
		const struct state_tensor *t = &s->tensors.items[i];
		const struct tensor_summary *v = values_of(s, t);
		judged += is_judged(t);
		looked += v != NULL;
		if (v)
			judge_values(c, sink, t, v);
		else if (!is_judged(t) && (v = floats_of(s, t)) && v->nans > 0)
			judge_nans(c, sink, t, v);
	}
	cover_ran(cover, "values", "values of weights and moments", "tensors", looked, judged,
		looked == judged ? NULL
		: c->bytes_late  ? case_late
				 : "the others are no floats, or their bytes could not be read");
}

const struct rule rule_values = {
	.name = "values",
	.subject = "values of weights and moments",
	.needs = NEEDS_BYTES,
	.run = run_values,
};

/* ---- since the previous checkpoint ------------------------------------------------------------
 */

/* How far training may have moved a weight between the two, and by what factor shrunk it. */
struct reach {
	double far, shrink;
	bool settled; /* the earlier moments had found their scale */
};

/* The largest value of a fact of either state. */
static double largest_fact(const struct audit_case *c, enum fact_key key)
{
	const struct state *const states[] = {c->previous, c->current};
	double most = -1, v;

	for (size_t k = 0; k < 2; k++)
		for (size_t i = 0; i < states[k]->facts.count; i++)
			if (states[k]->facts.items[i].key == key &&
				fact_to_double(&states[k]->facts.items[i], &v) && v > most)
				most = v;
	return most;
}

/*
 * A weight that starts at zero grows by any factor, but not further than its updates carry it; and
 * decoupled weight decay shrinks one that gets no gradient by exp(-lr wd) in an update.
 */
static struct reach reach_of(const struct audit_case *c)
{
	struct reach r = {.far = REACH_UNKNOWN, .shrink = 1};
	double rate = fmax(largest_fact(c, FACT_LR), largest_fact(c, FACT_INITIAL_LR));
	double decay = largest_fact(c, FACT_WEIGHT_DECAY), updates;
	bool adam = c->current->optimizers.count > 0;
	int64_t steps;

	for (size_t i = 0; i < c->current->optimizers.count; i++)
		adam = adam && c->current->optimizers.items[i].adam;
	if (case_steps_between(c, &steps) && rate > 0) {
		if (adam)
			r.far = UPDATES_OF_LR * rate * (double)steps;
		r.shrink = decay > 0 ? exp(-2 * rate * decay * (double)steps) : 1;
	}
	r.settled = optimizer_step(c->previous, &updates) && updates >= SETTLED_UPDATES;
	return r;
}

static bool grown(double before, double after, double factor, double far)
{
	return before > 0 && after > before * factor + far;
}

/* What a tensor's values have become, with a number of it before and after. */
struct change {
	const char *what; /* NULL: nothing implausible */
	double before, after;
};

static struct change change_of_weight(const struct state_tensor *t, const struct tensor_summary *x,
	const struct tensor_summary *y, const struct reach *r)
{
	const bool many = t->numel >= MANY_ELEMENTS;
	const bool wide = t->dtype == DTYPE_F64 || t->dtype == DTYPE_F32 || t->dtype == DTYPE_BF16;

	if (largest(x) == 0 || largest(y) > ABSURD)
		return (struct change){0};
	if (y->zeros == t->numel && t->numel > 1)
		return (struct change){"are all zero", largest(x), 0};
	/* In a narrow type, small weights are denormal as a matter of course. */
	if (many && wide && y->denormals > t->numel / 2 && x->denormals <= t->numel / 100)
		return (struct change){"are denormal", x->rms, y->rms};
	if (many && y->min == y->max && x->min < x->max)
		return (struct change){"are all the same", x->rms, y->rms};
	if (grown(largest(x), largest(y), IMPLAUSIBLE_GROWTH, r->far))
		return (struct change){"have outgrown training", largest(x), largest(y)};
	if (grown(x->rms, y->rms, IMPLAUSIBLE_SCALE, r->far))
		return (struct change){"are of another scale", x->rms, y->rms};
	if (many && y->rms < x->rms / IMPLAUSIBLE_SCALE * r->shrink)
		return (struct change){"are of another scale", x->rms, y->rms};
	return (struct change){0};
}

static struct change change_of_moment(const struct state_tensor *t, const struct tensor_summary *x,
	const struct tensor_summary *y, const struct reach *r)
{
	double factor = t->role == TENSOR_MOMENT1 ? IMPLAUSIBLE_MOMENT1 : IMPLAUSIBLE_MOMENT2;

	if (!r->settled || !grown(x->rms, y->rms, factor, 0))
		return (struct change){0};
	return (struct change){"are of another scale", x->rms, y->rms};
}

static void judge_change(struct audit_case *c, struct findings *sink, const struct tensor_pair *p,
	const struct reach *r)
{
	const struct state_tensor *t = p->later;
	const struct tensor_summary *x = tensor_summary_of(c->previous, p->earlier);
	const struct tensor_summary *y = tensor_summary_of(c->current, t);
	bool moment = t->role == TENSOR_MOMENT1 || t->role == TENSOR_MOMENT2;
	struct change w = moment ? change_of_moment(t, x, y, r) : change_of_weight(t, x, y, r);

	if (!w.what)
		return;
	struct finding *f = finding_add(sink, FINDING_I110, "the values of %s %s: from %s to %s",
		findings_escaped(sink, slice_of(t->name)), w.what,
		rounded_text(sink, w.before, DIGITS), rounded_text(sink, w.after, DIGITS));
	place_tensor(c, sink, f, t);
	f->observed = quantity_real(w.after);
	f->expected = quantity_real(w.before);
}

static void run_values_change(struct audit_case *c, struct findings *sink, struct coverage *cover)
{
	static const char *const name = "values-change",
				 *const subject = "values since the previous checkpoint";
	static const enum tensor_role roles[] = {
		TENSOR_WEIGHT, TENSOR_EMA, TENSOR_MOMENT1, TENSOR_MOMENT2};
	const struct reach r = reach_of(c);
	uint64_t compared = 0, both = 0;

	for (size_t k = 0; k < sizeof roles / sizeof roles[0]; k++) {
		struct tensor_pairs pairs;
		if (!tensors_pair(c->previous, c->current, roles[k], &pairs)) {
			sink->lost++;
			return;
		}
		both += pairs.list.count;
		for (size_t i = 0; i < pairs.list.count; i++) {
			const struct tensor_pair *p = &pairs.list.items[i];
			if (!values_of(c->previous, p->earlier) ||
				!values_of(c->current, p->later) ||
				!tensor_same_shape(p->earlier, p->later))
				continue;
			compared++;
			judge_change(c, sink, p, &r);
		}
		tensor_pairs_release(&pairs);
	}
	cover_ran(cover, name, subject, "tensors", compared, both,
		compared == both ? NULL
		: c->bytes_late  ? case_late
				 : "the others are no floats, or their bytes could not be read");
}

const struct rule rule_values_change = {
	.name = "values-change",
	.subject = "values since the previous checkpoint",
	.needs = NEEDS_PREVIOUS | NEEDS_BYTES,
	.run = run_values_change,
};
