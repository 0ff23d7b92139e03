/* SPDX-License-Identifier: MIT */
#include "audit/mixture_table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "audit/mixture_stages.h"
#include "base/text.h"
#include "ledger/lineage.h"
#include "ledger/mixture.h"
#include "ledger/plan.h"

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

static void lay_out_step(struct mixture_table *t, size_t at, const struct ledger_step *s)
{
	t->step[at] = s;
	for (uint32_t j = 0; j < s->shares; j++) {
		const struct ledger_share *share = &mixture_shares_of(t->ledger, s)[j];
		if (share->source == LEDGER_NONE) {
			t->without_source += share->n;
			continue;
		}
		t->n[at * t->k + share->source] += share->n;
		t->total[share->source] += share->n;
		t->samples += share->n;
	}
}

static bool add_piece(struct mixture_table *t, const struct mixture_piece *piece)
{
	struct mixture_piece *kept = array_push(&t->pieces, SIZE_MAX);

	if (kept)
		*kept = *piece;
	return kept != NULL;
}

/* Cut the pieces between seams where the stage changes, by plan or in use. */
static bool cut_into_stages(struct mixture_table *t)
{
	struct mixture_table whole = *t;
	uint64_t *room = calloc(t->steps * t->k + 1, sizeof *room);
	uint32_t *stage = calloc(t->steps + 1, sizeof *stage);
	bool made = room && stage &&
		    mixture_stages_find(t, mixture_usual_overdispersion(t, room), stage);

	*(void **)&t->pieces.items = NULL;
	t->pieces.count = t->pieces.capacity = 0;
	for (size_t p = 0; p < whole.pieces.count && made; p++) {
		struct mixture_piece piece = whole.pieces.items[p];
		size_t end = piece.first + piece.steps;
		for (size_t r = piece.first; r < end && made; r = piece.first + piece.steps) {
			piece.first = r;
			piece.resumed = p > 0 && r == whole.pieces.items[p].first;
			piece.scheduled = plan_stage_at(t->ledger, t->step[r]->step);
			piece.stage = stage[r];
			while (r < end && stage[r] == piece.stage &&
				plan_stage_at(t->ledger, t->step[r]->step) == piece.scheduled)
				r++;
			piece.steps = r - piece.first;
			made = add_piece(t, &piece);
		}
	}
	array_release(&whole.pieces);
	free(room);
	free(stage);
	return made;
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
		const struct mixture_piece piece = {.attempt = part->attempt,
			.resumed = p > 0,
			.scheduled = LEDGER_NONE,
			.stage = LEDGER_NONE,
			.first = at,
			.steps = part->steps};
		if (!add_piece(t, &piece))
			return false;
		for (uint32_t i = 0; i < part->steps; i++)
			lay_out_step(t, at++, &t->ledger->steps.items[part->first + i]);
	}
	return c->ledger->stages.count == 0 || t->samples == 0 || cut_into_stages(t);
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

void mixture_stage_shares(const struct ledger *l, uint32_t stage, double *w)
{
	const struct ledger_stage *s = &l->stages.items[stage];
	double sum = 0;

	memset(w, 0, l->sources.count * sizeof *w);
	for (uint32_t i = 0; i < s->weights; i++) {
		const struct ledger_weight *x = &l->weights.items[s->first_weight + i];
		w[x->source] += x->weight;
		sum += x->weight;
	}
	for (size_t i = 0; i < l->sources.count && sum > 0; i++)
		w[i] /= sum;
}

bool mixture_piece_target(const struct mixture_table *t, const struct mixture_piece *p, double *w)
{
	if (p->stage == LEDGER_NONE)
		return mixture_target(t->ledger, p->attempt, w);
	mixture_stage_shares(t->ledger, p->stage, w);
	return true;
}

bool mixture_same_target(const struct mixture_table *t, const struct mixture_piece *a,
	const struct mixture_piece *b, double *x, double *y)
{
	bool known = mixture_piece_target(t, a, x);

	return known == mixture_piece_target(t, b, y) &&
	       (!known || mixture_distance(x, y, t->k) < 1e-9);
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

enum severity mixture_severity(const struct mixture_table *t, double distance, uint64_t samples)
{
	bool serious = distance >= MIXTURE_SERIOUS ||
		       distance * (double)samples >= MIXTURE_SERIOUS_SHARE * (double)t->samples;

	return serious ? SEVERITY_ERROR : SEVERITY_WARNING;
}

double mixture_overdispersion_of(
	const struct mixture_table *t, size_t first, size_t steps, uint64_t *room)
{
	double worst = 1;
	for (size_t width = 1; steps / width >= 16; width *= 2) {
		size_t count = steps / width;
		for (size_t w = 0; w < count; w++)
			mixture_add_rows(t, first + w * width, width, room + w * t->k);
		double phi = mixture_overdispersion(room, count, t->k);
		worst = phi > worst ? phi : worst;
	}
	return worst;
}

double mixture_usual_overdispersion(const struct mixture_table *t, uint64_t *room)
{
	double worst = 0;
	for (size_t p = 0; p < t->pieces.count; p++) {
		const struct mixture_piece *piece = &t->pieces.items[p];
		size_t half = piece->steps / 2;
		if (half < 16)
			continue;
		double phi = mixture_overdispersion_of(
			t, piece->first + piece->steps - half, half, room);
		worst = phi > worst ? phi : worst;
	}
	return worst > 0 ? worst : mixture_overdispersion_of(t, 0, t->steps, room);
}
