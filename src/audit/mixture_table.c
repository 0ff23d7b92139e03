/* SPDX-License-Identifier: MIT */
#include "audit/mixture_table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "ledger/lineage.h"
#include "ledger/mixture.h"

void mixture_table_release(struct mixture_table *t)
{
	free(t->n);
	free((void *)t->step);
	free(t->total);
	array_release(&t->pieces);
}

const struct ledger_share *mixture_shares_of(const struct ledger *l, const struct ledger_step *s)
{
	return l->shares.items + s->first_share;
}

bool mixture_table_build(struct mixture_table *t, const struct audit_case *c)
{
	const struct lineage *g = c->lineage;
	size_t at = 0;
	*t = (struct mixture_table){
		.ledger = c->ledger, .k = c->ledger->sources.count, .steps = (size_t)g->steps};
	t->n = calloc(t->steps * t->k + 1, sizeof *t->n);
	t->step = calloc(t->steps + 1, sizeof *t->step);
	t->total = calloc(t->k + 1, sizeof *t->total);
	if (!t->n || !t->step || !t->total)
		return false;
	for (size_t p = 0; p < g->line.count; p++) {
		const struct line_part *part = &g->line.items[p];
		struct mixture_piece *piece = array_push(&t->pieces, SIZE_MAX);
		if (!piece)
			return false;
		*piece = (struct mixture_piece){part->attempt, at, part->steps};
		for (uint32_t i = 0; i < part->steps; i++, at++) {
			const struct ledger_step *s = &t->ledger->steps.items[part->first + i];
			t->step[at] = s;
			for (uint32_t j = 0; j < s->shares; j++) {
				const struct ledger_share *share =
					&mixture_shares_of(t->ledger, s)[j];
				if (share->source == LEDGER_NONE) {
					t->without_source += share->n;
					continue;
				}
				t->n[at * t->k + share->source] += share->n;
				t->total[share->source] += share->n;
				t->samples += share->n;
			}
		}
	}
	return true;
}

const char *mixture_absent(const struct audit_case *c)
{
	if (c->ledger->sources.count == 0)
		return "no source in the log";
	if (c->ledger->sources.count == 1)
		return "one source only";
	if (c->lineage->steps > c->limits->memory / 4 / sizeof(uint64_t) / c->ledger->sources.count)
		return "steps times sources are beyond the memory limit";
	return NULL;
}

void mixture_add_rows(const struct mixture_table *t, size_t first, size_t steps, uint64_t *sum)
{
	memset(sum, 0, t->k * sizeof *sum);
	for (size_t r = first; r < first + steps; r++)
		for (size_t i = 0; i < t->k; i++)
			sum[i] += t->n[r * t->k + i];
}

bool mixture_target(const struct ledger *l, uint32_t attempt, double *w)
{
	const struct ledger_attempt *a = &l->attempts.items[attempt];
	double sum = 0;
	for (size_t i = 0; i < l->sources.count; i++)
		w[i] = a->weights ? 0 : l->sources.items[i].weight;
	for (uint32_t i = 0; i < a->weights; i++)
		w[l->weights.items[a->first_weight + i].source] =
			l->weights.items[a->first_weight + i].weight;
	for (size_t i = 0; i < l->sources.count; i++) {
		if (!isfinite(w[i]) || w[i] < 0)
			return false;
		sum += w[i];
	}
	for (size_t i = 0; i < l->sources.count; i++)
		w[i] /= sum;
	return sum > 0;
}

bool mixture_same_target(const struct ledger *l, uint32_t a, uint32_t b, double *x, double *y)
{
	return mixture_target(l, a, x) == mixture_target(l, b, y) &&
	       (!mixture_target(l, a, x) || mixture_distance(x, y, l->sources.count) < 1e-9);
}

const char *mixture_source_name(const struct ledger *l, struct findings *sink, size_t source)
{
	return findings_escaped(sink, slice_of(l->sources.items[source].name));
}

const char *mixture_percent(struct findings *sink, double share)
{
	return findings_text(sink, "%s %%", rounded_text(sink, 100 * share, 3));
}

uint64_t mixture_samples(const struct mixture_table *t, size_t first, size_t steps)
{
	uint64_t sum = 0;
	for (size_t i = first * t->k; i < (first + steps) * t->k; i++)
		sum += t->n[i];
	return sum;
}

void mixture_place(struct finding *f, const struct mixture_table *t, size_t first, size_t steps)
{
	f->place.step_first = t->step[first]->step;
	f->place.step_last = t->step[first + steps - 1]->step;
}
