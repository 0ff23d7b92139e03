/* SPDX-License-Identifier: MIT */
/* Family I, values: are the numbers themselves ones that training can have left? */
#include <math.h>

#include "audit/case.h"
#include "base/text.h"

#define DIGITS 4 /* significant ones, of numbers in messages */

/* Weights of sound models are below this by many orders of magnitude, in every precision. */
#define ABSURD 1e15
/* Between two checkpoints the largest weight does not grow by this factor. */
#define IMPLAUSIBLE_GROWTH 1e6

static bool is_judged(const struct state_tensor *t)
{
	return t->role == TENSOR_WEIGHT || t->role == TENSOR_MOMENT1 || t->role == TENSOR_MOMENT2;
}

/* The storage of a tensor that is all of it and whose values were looked at, or NULL. */
static const struct state_storage *values_of(const struct state *s, const struct state_tensor *t)
{
	if (!is_judged(t) || !t->whole || t->storage == NO_FILE ||
		!s->storages.items[t->storage].valued)
		return NULL;
	return &s->storages.items[t->storage];
}

static void run_values(struct audit_case *c, struct findings *sink, struct coverage *cover)
{
	struct state *s = c->current;
	uint64_t looked = 0, judged = 0;

	for (size_t i = 0; i < s->tensors.count; i++) {
		const struct state_tensor *t = &s->tensors.items[i];
		const struct state_storage *v = values_of(s, t);
		judged += is_judged(t);
		if (!v)
			continue;
		looked++;
		uint64_t bad = v->nans + v->infinities;
		/* Masks are often kept as -inf among the weights; moments have no masks. */
		if (t->role != TENSOR_WEIGHT)
			bad += v->negative_infinities;
		struct finding *f = NULL;
		if (bad > 0) {
			f = finding_add(sink, FINDING_I109,
				"%llu of %llu values are NaN or infinite in %s",
				(unsigned long long)bad, (unsigned long long)t->numel,
				findings_escaped(sink, slice_of(t->name)));
			f->observed = quantity_count((int64_t)bad);
			f->expected = quantity_count(0);
			f->unit = "values";
		} else if (t->role == TENSOR_WEIGHT && v->largest > ABSURD) {
			f = finding_add(sink, FINDING_I110,
				"a value of %s in %s: no training leaves such a weight",
				rounded_text(sink, v->largest, DIGITS),
				findings_escaped(sink, slice_of(t->name)));
			f->severity = SEVERITY_ERROR;
			f->observed = quantity_real(v->largest);
			f->cause = "a flipped bit in an exponent gives such values";
		}
		if (!f)
			continue;
		place_file(sink, f, s, t->file);
		f->place.path = findings_escaped(sink, slice_of(t->name));
	}
	if (judged == 0)
		cover_ran(cover, "values", "values of weights and moments", "tensors", 0, 0, NULL);
	else
		cover_ran(cover, "values", "values of weights and moments", "tensors", looked,
			judged,
			looked < judged
				? "the others are views, or of types that are not looked into"
				: NULL);
}

const struct rule rule_values = {
	.name = "values",
	.subject = "values of weights and moments",
	.needs = NEEDS_BYTES,
	.run = run_values,
};

static void jump_finding(struct audit_case *c, struct findings *sink, const struct state_tensor *t,
	double before, double after)
{
	struct finding *f =
		finding_add(sink, FINDING_I110, "the largest value in %s went from %s to %s",
			findings_escaped(sink, slice_of(t->name)),
			rounded_text(sink, before, DIGITS), rounded_text(sink, after, DIGITS));

	place_file(sink, f, c->current, t->file);
	f->place.path = findings_escaped(sink, slice_of(t->name));
	f->place.step_last = f->place.step_first = case_step(c);
	f->observed = quantity_real(after);
	f->expected = quantity_real(before);
}

static void run_values_change(struct audit_case *c, struct findings *sink, struct coverage *cover)
{
	static const char *const name = "values-change",
				 *const subject = "values since the previous checkpoint";
	struct tensor_pairs pairs;
	uint64_t compared = 0;

	if (!tensors_pair(c->previous, c->current, TENSOR_WEIGHT, &pairs)) {
		sink->lost++;
		return;
	}
	for (size_t i = 0; i < pairs.list.count; i++) {
		const struct state_tensor *b = pairs.list.items[i].later;
		const struct state_storage *x = values_of(c->previous, pairs.list.items[i].earlier);
		const struct state_storage *y = values_of(c->current, b);
		if (!x || !y)
			continue;
		compared++;
		if (x->largest > 0 && y->largest > x->largest * IMPLAUSIBLE_GROWTH &&
			y->largest <= ABSURD)
			jump_finding(c, sink, b, x->largest, y->largest);
		else if (x->largest > 0 && y->largest == 0 && b->numel > 1)
			jump_finding(c, sink, b, x->largest, 0);
	}
	if (pairs.list.count > 0 && compared == 0)
		cover_not_checked(cover, name, subject,
			"the previous one's bytes were not read: its stored checksums were enough");
	else
		cover_ran(cover, name, subject, "tensors", compared, pairs.list.count,
			compared < pairs.list.count
				? "the others are views, or of types that are not looked into"
				: NULL);
	tensor_pairs_release(&pairs);
}

const struct rule rule_values_change = {
	.name = "values-change",
	.subject = "values since the previous checkpoint",
	.needs = NEEDS_PREVIOUS | NEEDS_BYTES,
	.run = run_values_change,
};
