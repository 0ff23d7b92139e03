/* SPDX-License-Identifier: MIT */
#include "ledger/plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Stages --------------------------------------------------------------------------------------- */

struct plan_mark plan_begin(const struct ledger *l)
{
	return (struct plan_mark){l->stages.count, l->weights.count};
}

static int compare_stages(const void *pa, const void *pb)
{
	const struct ledger_stage *a = pa, *b = pb;

	if (a->from != b->from)
		return a->from < b->from ? -1 : 1;
	return (a->first_weight > b->first_weight) - (a->first_weight < b->first_weight);
}

static const char *put_in_order(struct ledger_stage *s, size_t n)
{
	qsort(s, n, sizeof *s, compare_stages);
	for (size_t i = 0; i < n; i++) {
		if (s[i].until == INT64_MAX && i + 1 < n)
			s[i].until = s[i + 1].from;
		if (s[i].until <= s[i].from)
			return "a stage that ends before it begins";
		if (i > 0 && s[i].from < s[i - 1].until)
			return "a stage that begins before the one before it ends";
		if (s[i].weights == 0)
			return "a stage without weights";
	}
	return NULL;
}

static bool same_stage(
	const struct ledger *l, const struct ledger_stage *a, const struct ledger_stage *b)
{
	if (strcmp(a->name, b->name) != 0 || a->from != b->from || a->until != b->until ||
		a->weights != b->weights)
		return false;
	const struct ledger_weight *x = &l->weights.items[a->first_weight],
				   *y = &l->weights.items[b->first_weight];
	for (uint32_t i = 0; i < a->weights; i++)
		if (x[i].source != y[i].source || x[i].weight < y[i].weight ||
			x[i].weight > y[i].weight)
			return false;
	return true;
}

static const char *hold_against_first(const struct ledger *l, size_t first)
{
	static const char other[] = "other stages than an earlier header's, which count";

	if (l->stages.count - first != first)
		return other;
	for (size_t i = 0; i < first; i++)
		if (!same_stage(l, &l->stages.items[i], &l->stages.items[first + i]))
			return other;
	return NULL;
}

const char *plan_settle(struct ledger *l, struct plan_mark mark)
{
	size_t n = l->stages.count - mark.stages;

	if (n == 0)
		return NULL;
	const char *wrong = put_in_order(l->stages.items + mark.stages, n);
	if (!wrong && mark.stages == 0)
		return NULL;
	if (!wrong)
		wrong = hold_against_first(l, mark.stages);
	l->stages.count = mark.stages;
	l->weights.count = mark.weights;
	return wrong;
}

uint32_t plan_stage_at(const struct ledger *l, int64_t step)
{
	size_t low = 0, high = l->stages.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (l->stages.items[middle].until < step)
			low = middle + 1;
		else
			high = middle;
	}
	return low < l->stages.count && l->stages.items[low].from < step ? (uint32_t)low
									 : LEDGER_NONE;
}

/* What a run file tells ------------------------------------------------------------------------ */

struct telling {
	struct ledger *l;
	const struct run_file *r;
	struct error *e;
};

static void contradict(struct telling *t, unsigned line, const char *what, const char *of,
	double told, double said)
{
	ledger_note(t->l, t->r->path, line,
		"%s%s%s is %.12g here, and %.12g in the log, which counts", what, *of ? " of " : "",
		of, told, said);
}

static void tell_size(
	struct telling *t, uint64_t *size, int64_t told, unsigned line, const char *of)
{
	if (told <= 0)
		return;
	if (*size > 0 && *size != (uint64_t)told)
		contradict(t, line, "samples", of, (double)told, (double)*size);
	else
		*size = (uint64_t)told;
}

static void tell_real(double *value, double told)
{
	if (told > 0 && isnan(*value))
		*value = told;
}

static void tell_sources(struct telling *t)
{
	for (size_t i = 0; i < t->r->sources.count; i++) {
		const struct run_source *told = &t->r->sources.items[i];
		uint32_t index;
		if (ledger_source_named(t->l, slice_of(told->name), &index, t->e) < 0)
			return;
		struct ledger_source *s = &t->l->sources.items[index];
		tell_size(t, &s->size, told->samples, told->line, s->name);
		tell_real(&s->weight, told->weight);
		tell_real(&s->epochs, told->epochs);
	}
}

static void tell_stages(struct telling *t)
{
	struct ledger *l = t->l;
	struct plan_mark mark = plan_begin(l);
	uint32_t source;

	for (size_t i = 0; i < t->r->stages.count; i++) {
		const struct run_stage *told = &t->r->stages.items[i];
		struct ledger_stage *s = array_push(&l->stages, UINT32_MAX);
		if (!s)
			return;
		*s = (struct ledger_stage){.name = ledger_keep(l, slice_of(told->name)),
			.from = told->from,
			.until = told->until,
			.first_weight = (uint32_t)l->weights.count};
		for (size_t k = 0; k < told->weight_count; k++) {
			struct ledger_weight *w = array_push(&l->weights, UINT32_MAX);
			const char *name = t->r->sources.items[told->weights[k].source].name;
			if (!w || ledger_source_named(l, slice_of(name), &source, t->e) < 0)
				return;
			*w = (struct ledger_weight){source, told->weights[k].weight};
			s->weights++;
		}
	}
	const char *wrong = plan_settle(l, mark);
	if (wrong)
		ledger_note(l, t->r->path, t->r->stages.items[0].line, "%s", wrong);
}

/* Launches that say nothing of a size are as the run file says. */
static void tell_launches(struct telling *t)
{
	static const struct {
		enum fact_key fact;
		size_t member;
	} rows[] = {
		{FACT_LOADER_WORKERS, offsetof(struct ledger_attempt, workers)},
		{FACT_MICRO_BATCH, offsetof(struct ledger_attempt, micro_batch)},
		{FACT_ACCUMULATION, offsetof(struct ledger_attempt, accumulation)},
		{FACT_WORLD_SIZE, offsetof(struct ledger_attempt, world)},
		{FACT_DP_SIZE, offsetof(struct ledger_attempt, dp)},
	};
	const struct run_value *drop = run_file_value(t->r, FACT_DROP_LAST);

	for (size_t i = 0; i < t->l->attempts.count; i++) {
		struct ledger_attempt *a = &t->l->attempts.items[i];
		for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
			const struct run_value *v = run_file_value(t->r, rows[k].fact);
			int64_t *value = (int64_t *)(void *)((char *)a + rows[k].member);
			if (v && *value < 0)
				*value = v->number;
		}
		if (drop && a->drop_last < 0)
			a->drop_last = drop->number != 0;
	}
}

void plan_tell(struct ledger *l, const struct run_file *r, struct error *e)
{
	struct telling t = {l, r, e};
	const struct run_value *size = run_file_value(r, FACT_DATASET_SIZE),
			       *replacement = run_file_value(r, FACT_REPLACEMENT),
			       *steps = run_file_value(r, FACT_MAX_STEPS);
	struct ledger_dataset *d = l->datasets.items;

	tell_sources(&t);
	if (e->status == RP_OK)
		tell_stages(&t);
	/* Of several data sets nobody knows which one is meant. */
	if (size && l->datasets.count == 1)
		tell_size(&t, &d->size, size->number, size->line, "");
	if (replacement && replacement->number && l->datasets.count == 1 &&
		d->sampling == SAMPLING_WITHOUT)
		d->sampling = SAMPLING_WITH;
	if (steps && l->max_steps < 0)
		l->max_steps = steps->number;
	else if (steps && l->max_steps != steps->number)
		contradict(&t, steps->line, "planned steps", "", (double)steps->number,
			(double)l->max_steps);
	tell_launches(&t);
}
