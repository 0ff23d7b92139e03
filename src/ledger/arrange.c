/* SPDX-License-Identifier: MIT */
/* ledger_finish(): from the order of lines to the order of attempts, steps and ranks. */
#define _GNU_SOURCE
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ledger/build.h"

static int no_memory(struct error *e)
{
	return fail(
		e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory to bring the sample log into order");
}

static int compare_i64(int64_t a, int64_t b)
{
	return (a > b) - (a < b);
}

/* Attempts ------------------------------------------------------------------------------------- */

static int compare_attempts(const void *pa, const void *pb, void *context)
{
	const struct ledger_attempt *all = context;
	const struct ledger_attempt *a = &all[*(const uint32_t *)pa];
	const struct ledger_attempt *b = &all[*(const uint32_t *)pb];

	if (a->number != b->number)
		return a->number < b->number ? -1 : 1;
	return compare_i64(a->again, b->again);
}

/*
 * Launches of logs without attempt lines: 1, 2, … where all are such, else the one before the first
 * that has a number. They are in order already, and come first.
 */
static void number_attempts(struct ledger *l)
{
	size_t unnumbered = 0;

	while (unnumbered < l->attempts.count &&
		l->attempts.items[unnumbered].number == LEDGER_UNNUMBERED)
		unnumbered++;
	bool all = unnumbered == l->attempts.count;
	for (size_t i = 0; i < unnumbered; i++) {
		struct ledger_attempt *a = &l->attempts.items[i];
		a->number = all ? (int64_t)i + 1 : l->attempts.items[unnumbered].number - 1;
		a->again = all ? 0 : a->again;
	}
}

/* Order the attempts; map[old index] is the new one. */
static int order_attempts(struct ledger *l, uint32_t **map, struct error *e)
{
	size_t n = l->attempts.count;
	uint32_t *order = calloc(n + 1, sizeof *order);
	struct ledger_attempt *sorted = calloc(n + 1, sizeof *sorted);

	*map = calloc(n + 1, sizeof **map);
	if (!order || !sorted || !*map) {
		free(order);
		free(sorted);
		return no_memory(e);
	}
	for (size_t i = 0; i < n; i++)
		order[i] = (uint32_t)i;
	if (n > 1)
		qsort_r(order, n, sizeof *order, compare_attempts, l->attempts.items);
	for (size_t i = 0; i < n; i++) {
		sorted[i] = l->attempts.items[order[i]];
		(*map)[order[i]] = (uint32_t)i;
	}
	free(l->attempts.items);
	l->attempts.items = sorted;
	l->attempts.capacity = n + 1;
	free(order);
	number_attempts(l);
	return RP_OK;
}

static int compare_checkpoints(const void *pa, const void *pb)
{
	const struct ledger_checkpoint *a = pa, *b = pb;

	if (a->attempt != b->attempt)
		return a->attempt < b->attempt ? -1 : 1;
	if (a->step != b->step)
		return a->step < b->step ? -1 : 1;
	return strcmp(a->path, b->path);
}

/* Each rank's log may have told of the same checkpoint. */
static void order_checkpoints(struct ledger *l, const uint32_t *map)
{
	size_t n = l->checkpoints.count, kept = 0;
	struct ledger_checkpoint *c = l->checkpoints.items;

	for (size_t i = 0; i < n; i++)
		c[i].attempt = map[c[i].attempt];
	if (n > 1)
		qsort(c, n, sizeof *c, compare_checkpoints);
	for (size_t i = 0; i < n; i++) {
		if (kept == 0 || compare_checkpoints(&c[kept - 1], &c[i]) != 0) {
			c[kept++] = c[i];
			continue;
		}
		if (c[i].position > c[kept - 1].position)
			c[kept - 1].position = c[i].position;
		if (c[kept - 1].digest[0] == '\0')
			c[kept - 1].digest = c[i].digest;
	}
	l->checkpoints.count = kept;
}

/* Steps ---------------------------------------------------------------------------------------- */

static int compare_steps(const void *pa, const void *pb)
{
	const struct ledger_step *a = pa, *b = pb;

	if (a->attempt != b->attempt)
		return a->attempt < b->attempt ? -1 : 1;
	return compare_i64(a->step, b->step);
}

static int compare_shares(const void *pa, const void *pb)
{
	const struct ledger_share *a = pa, *b = pb;

	/* No source comes first. */
	return compare_i64((uint32_t)(a->source + 1), (uint32_t)(b->source + 1));
}

/* Put the shares of each step side by side, by source. */
static int order_shares(struct ledger *l, struct error *e)
{
	struct ledger_build *b = l->build;
	struct ledger_share *from = l->shares.items, *to = from;

	if (b->shares_scattered) {
		to = malloc(l->shares.count * sizeof *to);
		if (!to)
			return no_memory(e);
	}
	uint32_t at = 0;
	for (size_t i = 0; i < l->steps.count; i++) {
		struct ledger_step *s = &l->steps.items[i];
		uint32_t share = b->steps.items[i].newest_share;
		s->first_share = at;
		/* Where they lie side by side already, in the order of steps, all is in place. */
		for (uint32_t k = 0; k < s->shares && b->shares_scattered; k++) {
			to[at + k] = from[share];
			share = b->next_share.items[share];
		}
		if (!b->shares_scattered && s->shares > 0)
			s->first_share = share + 1 - s->shares;
		if (s->shares > 1)
			qsort(to + s->first_share, s->shares, sizeof *to, compare_shares);
		at += s->shares;
	}
	if (b->shares_scattered) {
		free(from);
		l->shares.items = to;
		l->shares.capacity = l->shares.count;
	}
	return RP_OK;
}

/* Names of counts became more on the way: give all steps as many values. */
static int order_counts(struct ledger *l, struct error *e)
{
	struct ledger_build *b = l->build;
	size_t names = l->count_names.count, steps = 0, n = 0;

	for (size_t i = 0; i < l->steps.count; i++)
		steps += b->steps.items[i].counts > 0;
	if (steps * names == l->counts.count)
		return RP_OK;
	double *counts = calloc(steps * names, sizeof *counts);
	if (!counts)
		return no_memory(e);
	for (size_t i = 0; i < l->steps.count; i++) {
		if (b->steps.items[i].counts == 0)
			continue;
		memcpy(counts + n, l->counts.items + l->steps.items[i].first_count,
			b->steps.items[i].counts * sizeof *counts);
		l->steps.items[i].first_count = (uint32_t)n;
		n += names;
	}
	free(l->counts.items);
	l->counts.items = counts;
	l->counts.count = l->counts.capacity = steps * names;
	return RP_OK;
}

static void sum_step(struct ledger *l, size_t row, const uint32_t *map)
{
	struct ledger_step *s = &l->steps.items[row];
	const struct building_step *b = &l->build->steps.items[row];

	s->attempt = map[s->attempt];
	if (b->with_own > 0)
		s->loss = (float)(b->own / (double)b->with_own);
	else if (b->weight > 0)
		s->loss = (float)(b->loss / b->weight);
	for (uint32_t i = 0; i < s->shares; i++)
		s->tokens += l->shares.items[s->first_share + i].tokens;
}

static int order_steps(struct ledger *l, const uint32_t *map, struct error *e)
{
	bool sorted = true;

	if (order_shares(l, e) < 0 || order_counts(l, e) < 0)
		return e->status;
	for (size_t i = 0; i < l->steps.count; i++) {
		sum_step(l, i, map);
		sorted = sorted &&
			 (i == 0 || compare_steps(&l->steps.items[i - 1], &l->steps.items[i]) < 0);
	}
	if (!sorted)
		qsort(l->steps.items, l->steps.count, sizeof *l->steps.items, compare_steps);
	return RP_OK;
}

/* Samples -------------------------------------------------------------------------------------- */

static bool same_geometry(const void *of, uint32_t row, const void *key)
{
	const struct ledger *l = of;
	const struct ledger_geometry *a = &l->geometries.items[row], *b = key;

	return a->parts == b->parts &&
	       (a->parts == 0 || memcmp(&l->parts.items[a->first], &l->parts.items[b->first],
					 a->parts * sizeof *l->parts.items) == 0);
}

/* The parts of the pieces at hand, behind all others; `*g` is their geometry. */
static bool add_parts(struct ledger *l, const struct sweep *w, struct ledger_geometry *g)
{
	uint32_t newest = STRAND_NONE;

	*g = (struct ledger_geometry){.first = (uint32_t)l->parts.count};
	for (size_t i = 0; i < w->list.count; i++) {
		const struct piece *p = &w->list.items[i];
		const struct strand *strand = &w->strands->list.items[p->strand];
		g->samples += p->n;
		if (p->strand == newest) {
			l->parts.items[l->parts.count - 1].n += p->n;
			continue;
		}
		newest = p->strand;
		struct ledger_part *part = array_push(&l->parts, l->limits->memory / sizeof *part);
		if (!part || l->parts.count >= LEDGER_NONE)
			return false;
		g->ranks += g->parts == 0 || part[-1].dp != strand->dp;
		g->parts++;
		*part = (struct ledger_part){.dp = strand->dp,
			.micro = strand->micro,
			.worker = strand->worker,
			.n = p->n};
	}
	return true;
}

static bool intern_geometry(
	struct ledger *l, struct lookup *known, const struct sweep *w, uint32_t *index)
{
	struct ledger_geometry g;

	if (!add_parts(l, w, &g))
		return false;
	uint64_t hash =
		g.parts ? XXH3_64bits(&l->parts.items[g.first], g.parts * sizeof *l->parts.items)
			: 0;
	*index = lookup_find(known, hash, same_geometry, l, &g);
	if (*index != LOOKUP_NONE) {
		l->parts.count = g.first;
		return true;
	}
	*index = (uint32_t)l->geometries.count;
	struct ledger_geometry *kept = array_push(&l->geometries, l->limits->memory / sizeof *kept);
	if (!kept || !lookup_add(known, hash, *index))
		return false;
	*kept = g;
	return true;
}

/*
 * Give each step its geometry and its first row, and tell whether the rows lie in that order
 * already. One pass over the lines' runs; no sample is looked at.
 */
static int lay_out(struct ledger *l, bool *in_order, struct error *e)
{
	struct lookup known = {0};
	struct sweep w;
	uint64_t row = 0;
	bool ok = true;

	*in_order = true;
	sweep_init(&w, &l->build->strands);
	for (size_t i = 0; ok && i < l->steps.count; i++) {
		struct ledger_step *s = &l->steps.items[i];
		ok = sweep_next(&w, s->attempt, s->step);
		if (!ok)
			break;
		s->row = row;
		for (size_t k = 0; k < w.list.count; k++) {
			*in_order &= w.list.items[k].n == 0 || w.list.items[k].row == row;
			row += w.list.items[k].n;
		}
		if (w.same)
			s->geometry = s[-1].geometry;
		else
			ok = intern_geometry(l, &known, &w, &s->geometry);
	}
	sweep_release(&w);
	lookup_release(&known);
	if (ok && row != store_rows(l->store))
		BUG("rows do not add up");
	return ok ? RP_OK : no_memory(e);
}

/* Move all rows into their order. */
static int move_rows(struct ledger *l, struct store *to, struct error *e)
{
	struct sweep w;
	int status = RP_OK;

	sweep_init(&w, &l->build->strands);
	for (size_t i = 0; status == RP_OK && i < l->steps.count; i++) {
		if (!sweep_next(&w, l->steps.items[i].attempt, l->steps.items[i].step))
			status = no_memory(e);
		for (size_t k = 0; status == RP_OK && k < w.list.count; k++)
			status =
				store_move(l->store, w.list.items[k].row, w.list.items[k].n, to, e);
	}
	sweep_release(&w);
	return status;
}

static int rearrange(struct ledger *l, struct error *e)
{
	struct store *to = store_new(&l->budget, l->path);

	if (!to)
		return no_memory(e);
	for (enum store_column i = 0; i < STORE_COLUMNS; i++)
		if (store_has(l->store, i) && store_begin_column(to, i, e) < 0)
			goto failed;
	if (move_rows(l, to, e) < 0 || store_end(to, e) < 0)
		goto failed;
	store_free(l->store);
	l->store = to;
	return RP_OK;
failed:
	store_free(to);
	return e->status;
}

/* The chain digest goes on over rows. */
static int chain_rows(const struct ledger *l, struct sample_buffer *buffer, uint64_t row,
	uint64_t n, uint64_t *chain, struct error *e)
{
	struct sample_block block;

	while (n > 0) {
		if (store_read(l->store, row, (size_t)n, buffer, &block, e) < 0)
			return e->status;
		for (size_t i = 0; i < block.n; i++) {
			uint32_t space = block.spaces ? block.spaces[i] : 0;
			*chain = identity_chain(
				*chain, identity_hash(l->spaces.items[space].id, block.keys[i]));
		}
		row += block.n;
		n -= block.n;
	}
	return RP_OK;
}

/* The chain digests of steps whose lines did not come in the order of their parts. */
static int chain_steps(struct ledger *l, struct error *e)
{
	struct sample_buffer *buffer = sample_buffer_new();
	int status = buffer ? RP_OK : no_memory(e);

	for (size_t i = 0; status == RP_OK && i < l->steps.count; i++) {
		struct ledger_step *s = &l->steps.items[i];
		const struct ledger_geometry *g = &l->geometries.items[s->geometry];
		uint64_t row = s->row;
		const struct ledger_part *before = NULL;
		s->chain = 0;
		for (uint32_t k = 0; k < g->parts && status == RP_OK; k++) {
			const struct ledger_part *p = &l->parts.items[g->first + k];
			if (p->n == 0)
				continue;
			if (!before || before->dp != p->dp || before->micro != p->micro)
				s->chain = identity_chain_part(s->chain, p->dp, p->micro);
			before = p;
			status = chain_rows(l, buffer, row, p->n, &s->chain, e);
			row += p->n;
		}
	}
	sample_buffer_free(buffer);
	return status;
}

/* What attempts and sources consumed ------------------------------------------------------------
 */

static void sum_attempts(struct ledger *l)
{
	for (size_t i = 0; i < l->steps.count; i++) {
		const struct ledger_step *s = &l->steps.items[i];
		struct ledger_attempt *a = &l->attempts.items[s->attempt];
		if (a->steps == 0) {
			a->first = (uint32_t)i;
			a->row = s->row;
			a->first_step = s->step;
			a->stride = 1;
		} else if (a->steps == 1 || s->step - s[-1].step < a->stride) {
			a->stride = s->step - s[-1].step;
		}
		a->steps++;
		a->rows += s->n;
		a->last_step = s->step;
		for (uint32_t k = 0; k < s->shares; k++) {
			const struct ledger_share *share = &l->shares.items[s->first_share + k];
			if (share->source == LEDGER_NONE)
				continue;
			struct ledger_source *source = &l->sources.items[share->source];
			source->samples += share->n;
			if (source->first_attempt == LEDGER_NONE)
				source->first_attempt = s->attempt;
			source->last_attempt = s->attempt;
		}
	}
}

int64_t ledger_missing_before(const struct ledger *l, uint32_t step)
{
	const struct ledger_step *s = &l->steps.items[step];
	const struct ledger_attempt *a = &l->attempts.items[s->attempt];

	if (step == a->first || a->intent.skips > 0 || s->step - s[-1].step <= a->stride)
		return 0;
	return (s->step - s[-1].step - 1) / a->stride;
}

bool ledger_step_said(const struct ledger *l, uint32_t step)
{
	return l->geometries.items[l->steps.items[step].geometry].parts > 0;
}

uint64_t ledger_space_size(const struct ledger *l, uint32_t space)
{
	const struct ledger_space *s = &l->spaces.items[space];
	uint64_t size = l->datasets.items[s->dataset].size;

	if (s->kind != KEY_ID)
		return 0;
	if (s->source != LEDGER_NONE && l->sources.items[s->source].size > 0)
		size = l->sources.items[s->source].size;
	return size;
}

/* Count the samples that the sizes of the data do not allow; a pass only where there are any. */
static int count_beyond(struct ledger *l, struct error *e)
{
	struct sample_block block;
	bool any = false;

	for (size_t i = 0; i < l->spaces.count; i++) {
		uint64_t size = ledger_space_size(l, (uint32_t)i);
		any |= size > 0 && l->spaces.items[i].max_key >= size;
	}
	if (!any)
		return RP_OK;
	struct sample_buffer *buffer = sample_buffer_new();
	int status = buffer ? RP_OK : no_memory(e);
	for (uint64_t row = 0; status == RP_OK && row < l->rows; row += block.n) {
		status = store_read(l->store, row, SIZE_MAX, buffer, &block, e);
		for (size_t i = 0; status == RP_OK && i < block.n; i++) {
			uint32_t space = block.spaces ? block.spaces[i] : 0;
			struct ledger_space *s = &l->spaces.items[space];
			uint64_t size = ledger_space_size(l, space);
			if (size == 0 || block.keys[i] < size)
				continue;
			if (s->beyond++ == 0)
				s->beyond_row = row + i;
		}
	}
	sample_buffer_free(buffer);
	return status;
}

static int read_samples(const struct sample_source *self, uint64_t row, size_t n,
	struct sample_buffer *buffer, struct sample_block *out, struct error *e)
{
	const struct ledger *l = self->of;

	return store_read(l->store, row, n, buffer, out, e);
}

struct sample_source ledger_samples(const struct ledger *l)
{
	return (struct sample_source){.rows = l->rows, .read = read_samples, .of = l};
}

int ledger_finish(struct ledger *l, struct error *e)
{
	uint32_t *map = NULL;
	bool in_order;
	int status = store_end(l->store, e);

	l->rows = store_rows(l->store);
	if (status == RP_OK)
		status = order_attempts(l, &map, e);
	if (status == RP_OK) {
		order_checkpoints(l, map);
		status = order_steps(l, map, e);
	}
	if (status == RP_OK)
		status = strands_order(&l->build->strands, map, e);
	if (status == RP_OK)
		status = lay_out(l, &in_order, e);
	if (status == RP_OK && !in_order) {
		status = rearrange(l, e);
		if (status == RP_OK)
			status = chain_steps(l, e);
	}
	free(map);
	if (status < 0)
		return status;
	sum_attempts(l);
	build_free(l->build);
	l->build = NULL;
	return count_beyond(l, e);
}
