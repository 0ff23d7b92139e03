/* SPDX-License-Identifier: MIT */
#include "ledger/seen.h"

#include <stdlib.h>

#include "base/identity.h"

static void add(struct seen *to, uint64_t samples, const uint64_t sum[2])
{
	to->samples += samples;
	identity_sum(to->sum, sum);
}

static void sum_up_steps(struct seen_table *t, const struct ledger *l)
{
	for (size_t i = 0; i < l->steps.count; i++) {
		const struct ledger_step *s = &l->steps.items[i];
		bool first = i == 0 || s[-1].attempt != s->attempt;
		t->steps[i] = first ? (struct seen){0} : t->steps[i - 1];
		t->steps[i].gaps |= ledger_missing_before(l, (uint32_t)i) > 0 ||
				    !ledger_step_said(l, (uint32_t)i);
		add(&t->steps[i], s->n, s->sum);
	}
}

static bool is_fresh(const struct lineage_attempt *a)
{
	return a->parent == LEDGER_NONE && a->from_step <= 0 && a->from_step != LEDGER_NO_STEP;
}

bool seen_build(struct seen_table *t, const struct lineage *g)
{
	const struct ledger *l = g->ledger;

	*t = (struct seen_table){.lineage = g,
		.steps = calloc(l->steps.count + 1, sizeof *t->steps),
		.before = calloc(l->attempts.count + 1, sizeof *t->before),
		.known = calloc(l->attempts.count + 1, sizeof *t->known)};
	if (!t->steps || !t->before || !t->known) {
		seen_release(t);
		return false;
	}
	sum_up_steps(t, l);
	/* An attempt continues one that stands before it. */
	for (uint32_t i = 0; i < l->attempts.count; i++) {
		const struct lineage_attempt *a = &g->attempts.items[i];
		if (!a->member || a->gap > 0)
			continue;
		t->known[i] = is_fresh(a) ||
			      (a->parent < i && seen_by(t, a->parent, a->from_step, &t->before[i]));
	}
	return true;
}

void seen_release(struct seen_table *t)
{
	free(t->steps);
	free(t->before);
	free(t->known);
	*t = (struct seen_table){0};
}

bool seen_by(const struct seen_table *t, uint32_t attempt, int64_t step, struct seen *out)
{
	const struct ledger *l = t->lineage->ledger;
	const struct ledger_attempt *a = &l->attempts.items[attempt];

	if (!t->known[attempt])
		return false;
	*out = t->before[attempt];
	if (step == t->lineage->attempts.items[attempt].from_step)
		return true;
	uint32_t end = ledger_step_after(l, a, step);
	if (end <= a->first || l->steps.items[end - 1].step != step || t->steps[end - 1].gaps)
		return false;
	add(out, t->steps[end - 1].samples, t->steps[end - 1].sum);
	return true;
}
