/* SPDX-License-Identifier: MIT */
/* Family T: averaged weights (EMA): are they there, and do they follow the live ones? */
#include "audit/case.h"

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

	check_average_updates(c, sink);
	if (now == 0) {
		if (before > 0)
			averages_finding(
				c, sink, "the averaged weights (EMA) are no longer saved", 0);
		cover_ran(cover, name, subject, "tensors", 0, 0, NULL);
		return;
	}
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
