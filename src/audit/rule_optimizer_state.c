/* SPDX-License-Identifier: MIT */
/* Family T: the optimizer's state: is it there, warm, and of these parameters in this order? */
#include "audit/case.h"
#include "base/text.h"

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

static bool has_optimizer_file(const struct state *s)
{
	for (size_t i = 0; i < s->files.count; i++)
		if (s->files.items[i].role == FILE_OPTIMIZER)
			return true;
	return false;
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
		cover_not_checked(cover, name, subject,
			has_optimizer_file(s)
				? "its file could not be read, or is of a shape that is not known"
				: "there is none");
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
