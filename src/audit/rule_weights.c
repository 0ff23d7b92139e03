/* SPDX-License-Identifier: MIT */
/* Family T: the weights: did they move, and have they the types and shapes that they should? */
#include "audit/case.h"
#include "base/text.h"

#define DIGITS 7 /* significant ones, of numbers in messages */

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

/* Whether a rate is saved and all of them are 0: no update moves a weight then. */
static bool rates_are_zero(const struct state *s)
{
	size_t rates = 0;
	double v;

	for (size_t i = 0; i < s->facts.count; i++) {
		if (s->facts.items[i].key != FACT_LR)
			continue;
		if (!fact_to_double(&s->facts.items[i], &v) || v != 0)
			return false;
		rates++;
	}
	return rates > 0;
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
		if (f->place.step_last != PLACE_NO_STEP)
			f->place.step_first = f->place.step_last - steps;
		f->observed = quantity_count((int64_t)w.same);
		f->unit = "identical weights";
		f->meaning = "a stale copy of the model was saved, or training did not update it";
		if (rates_are_zero(c->previous) && rates_are_zero(c->current)) {
			f->severity = SEVERITY_WARNING;
			f->cause = "the learning rate is 0 in both";
			f->meaning = "training goes on without effect, as behind a schedule's end";
		}
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
