/* SPDX-License-Identifier: MIT */
#include "audit/mixture_stages.h"

#include <math.h>
#include <stdlib.h>

#include "ledger/mixture.h"
#include "ledger/plan.h"

#define STRAY                                                                                      \
	1e-4 /* the share of a source that a stage does not have: one sample proves nothing        \
	      */

struct search {
	const struct mixture_table *t;
	size_t stages;
	double *logs;   /* stages * k: minus the logarithms of shares, over the overdispersion */
	double *cost;   /* of the best way to each stage */
	uint32_t *from; /* steps * stages: the stage of the row before on that way */
	double change;  /* what a change away from the plan costs */
};

static void search_release(struct search *s)
{
	free(s->logs);
	free(s->cost);
	free(s->from);
}

static bool search_make(struct search *s, const struct mixture_table *t, double overdispersion)
{
	size_t k = t->k, stages = t->ledger->stages.count;
	double *shares = calloc(k + 1, sizeof *shares);

	*s = (struct search){.t = t,
		.stages = stages,
		.logs = calloc(stages * k + 1, sizeof *s->logs),
		.cost = calloc(stages + 1, sizeof *s->cost),
		.from = calloc(t->steps * stages + 1, sizeof *s->from),
		.change = log((double)t->steps + 1) - MIXTURE_LOG_ALPHA};
	bool made = shares && s->logs && s->cost && s->from;
	for (uint32_t j = 0; made && j < stages; j++) {
		mixture_stage_shares(t->ledger, j, shares);
		for (size_t i = 0; i < k; i++)
			s->logs[j * k + i] = -log((shares[i] + STRAY) / (1 + STRAY * (double)k)) /
					     overdispersion;
	}
	free(shares);
	return made;
}

static double row_cost(const struct search *s, size_t row, size_t stage)
{
	const uint64_t *n = s->t->n + row * s->t->k;
	const double *logs = s->logs + stage * s->t->k;
	double sum = 0;

	for (size_t i = 0; i < s->t->k; i++)
		sum += (double)n[i] * logs[i];
	return sum;
}

static size_t cheapest(const struct search *s)
{
	size_t best = 0;
	for (size_t j = 1; j < s->stages; j++)
		if (s->cost[j] < s->cost[best])
			best = j;
	return best;
}

/* Go on by a row. What the plan changes at it costs nothing. */
static void take_row(struct search *s, size_t row, uint32_t was, uint32_t is)
{
	size_t best = cheapest(s);
	double least = s->cost[best], planned = s->cost[was];

	for (size_t j = 0; j < s->stages; j++) {
		uint32_t from = (uint32_t)j;
		double cost = s->cost[j];
		if (least + s->change < cost) {
			from = (uint32_t)best;
			cost = least + s->change;
		}
		if (j == is && planned < cost) {
			from = was;
			cost = planned;
		}
		s->from[row * s->stages + j] = from;
		s->cost[j] = cost + row_cost(s, row, j);
	}
}

/* Rows of one attempt for which stages are scheduled. `stage` holds these, and then those in use.
 */
static void find_in(struct search *s, size_t first, size_t rows, uint32_t *stage)
{
	for (size_t j = 0; j < s->stages; j++)
		s->cost[j] = (j == stage[first] ? 0 : s->change) + row_cost(s, first, j);
	for (size_t r = first + 1; r < first + rows; r++)
		take_row(s, r, stage[r - 1], stage[r]);
	uint32_t at = (uint32_t)cheapest(s);
	for (size_t r = first + rows; r-- > first;) {
		stage[r] = at;
		at = s->from[r * s->stages + at];
	}
}

/* Stages that hardly differ cannot be told apart, and need not be. */
static bool alike(const struct mixture_table *t, uint32_t a, uint32_t b, double *x, double *y)
{
	mixture_stage_shares(t->ledger, a, x);
	mixture_stage_shares(t->ledger, b, y);
	return mixture_distance(x, y, t->k) < MIXTURE_NOTICEABLE;
}

bool mixture_stages_find(const struct mixture_table *t, double overdispersion, uint32_t *stage)
{
	struct search s;
	double *x = calloc(2 * t->k + 1, sizeof *x);
	bool made = search_make(&s, t, overdispersion) && x;

	for (size_t p = 0; p < t->pieces.count && made; p++) {
		size_t r = t->pieces.items[p].first, end = r + t->pieces.items[p].steps;
		while (r < end) {
			size_t last = r;
			while (last < end && (stage[last] = plan_stage_at(t->ledger,
						      t->step[last]->step)) != LEDGER_NONE)
				last++;
			if (last > r)
				find_in(&s, r, last - r, stage);
			r = last + (last < end);
		}
	}
	uint32_t was = LEDGER_NONE, planned = LEDGER_NONE;
	bool same = false;
	for (size_t r = 0; r < t->steps && made; r++) {
		uint32_t by_plan = plan_stage_at(t->ledger, t->step[r]->step);
		if (stage[r] == by_plan)
			continue;
		if (stage[r] != was || by_plan != planned)
			same = alike(t, was = stage[r], planned = by_plan, x, x + t->k);
		if (same)
			stage[r] = by_plan;
	}
	free(x);
	search_release(&s);
	return made;
}
