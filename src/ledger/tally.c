/* SPDX-License-Identifier: MIT */
#include "ledger/tally.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ledger/tally_count.h"
#include "ledger/epochs.h"

#define ANCHORS 4000000u /* most keys that are anchors, about */

/* What the log declares ------------------------------------------------------------------------ */

/* How often each sample of a space is meant to be seen in an epoch. */
static int read_factors(struct tally *t, uint8_t **factors, struct error *e)
{
	const struct ledger *l = t->lineage->ledger;

	t->repeat = 1;
	*factors = calloc(l->spaces.count + 1, sizeof **factors);
	if (!*factors)
		return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for repeat factors");
	(*factors)[0] = 1;
	for (size_t i = 0; i < l->spaces.count; i++) {
		const struct ledger_space *s = &l->spaces.items[i];
		double times = 1;
		if (s->dataset < l->datasets.count) {
			const struct ledger_dataset *d = &l->datasets.items[s->dataset];
			times = d->repeat >= 1 ? d->repeat : 1;
			t->replacement = t->replacement || d->sampling != SAMPLING_WITHOUT;
		}
		if (s->source < l->sources.count && l->sources.items[s->source].epochs > 1)
			times *= l->sources.items[s->source].epochs;
		(*factors)[i] = times >= 255 ? 255 : (uint8_t)ceil(times - 1e-9);
		t->repeat = (*factors)[i] > t->repeat ? (*factors)[i] : t->repeat;
	}
	return RP_OK;
}

/* Samples of all data sets; 0: not known. One data set in two orders is not two of them, and what
 * was consumed of it in both cannot be told. */
static uint64_t size_said(const struct ledger *l)
{
	uint64_t size = 0;

	/* Where there are ids that the data cannot have, it is not of that size. */
	for (size_t i = 0; i < l->spaces.count; i++)
		if (l->spaces.items[i].beyond > 0)
			return 0;
	for (size_t i = 0; i < l->datasets.count; i++) {
		if (l->datasets.items[i].size == 0)
			return 0;
		for (size_t k = 0; k < i; k++)
			if (strcmp(l->datasets.items[i].name, l->datasets.items[k].name) == 0)
				return 0;
		size += l->datasets.items[i].size;
	}
	return size;
}

/*
 * Nothing says how long an epoch is. Where the samples of a line come round again as a whole, the
 * first one that does begins the second epoch. One that does so at a seam is no proof: a stream
 * that was started again looks the same.
 */
static uint64_t learned_length(const struct tally *t)
{
	const struct lineage *g = t->lineage;
	uint64_t first = UINT64_MAX;

	for (size_t i = 0; i < t->repeats.count && first == UINT64_MAX; i++)
		first = t->repeats.items[i].at;
	if (first == UINT64_MAX || first < 2 || g->rows - first < 2)
		return 0;
	return g->line.items[lineage_part_at(g, first)].at == first && first > 0 ? 0 : first;
}

/* Whether the epochs that were tried are epochs: hardly a repeat inside, hardly a new sample after
 * the first. */
static bool epochs_hold(const struct tally *t)
{
	uint64_t again = 0, fresh = 0, later = 0;

	for (size_t i = 0; i < t->epochs.count; i++) {
		const struct line_epoch *p = &t->epochs.items[i];
		again += p->again - p->tail_own - p->tail_across;
		if (i == 0)
			continue;
		fresh += p->fresh;
		later += p->rows;
	}
	return later > 0 && again * 50 <= t->lineage->rows && fresh * 20 <= later;
}

static int one_epoch(struct tally *t, struct error *e)
{
	t->epochs.count = 0;
	t->how = EPOCHS_NONE;
	/* Steps that consumed nothing are in an epoch too. */
	int status = t->lineage->line.count > 0 ? epochs_add(t, 0, -1, e) : RP_OK;
	epochs_settle(t);
	return status;
}

/* What counting needs again and again. */
struct task {
	struct tally *t;
	struct place_index places;
	uint8_t *factors;
	uint64_t memory;
	unsigned threads;
};

static uint64_t largest_step(const struct lineage *g)
{
	uint64_t most = 0;

	for (size_t i = 0; i < g->line.count; i++) {
		uint32_t n = g->ledger->steps.items[g->line.items[i].first].n;
		most = n > most ? n : most;
	}
	return most;
}

static void find_padding(struct tally *t)
{
	const struct lineage *g = t->lineage;
	uint64_t batch = largest_step(g);
	bool seen = false;

	t->padding = 0;
	for (size_t i = 0; i < t->epochs.count; i++) {
		const struct line_epoch *p = &t->epochs.items[i];
		if (!p->ended || p->seams > 0 || p->again != p->tail_own + p->tail_across)
			continue;
		t->padding = p->again > t->padding ? p->again : t->padding;
		seen = true;
	}
	if (!seen && batch > 0)
		t->padding = t->size > 0 ? (batch - t->size % batch) % batch : batch - 1;
}

static int count_task(struct task *k, struct error *e)
{
	epochs_settle(k->t);
	int status = tally_count_samples(k->t, &k->places, k->factors, k->memory, k->threads, e);
	find_padding(k->t);
	return status;
}

/*
 * How badly epochs of that kind fit: samples that they have twice, or lack beyond what the kind
 * drops. Repeats in the last step of an epoch that is whole are padding, and weigh just enough to
 * break ties.
 */
static double misfit(const struct tally *t, enum epoch_end how)
{
	uint64_t batch = largest_step(t->lineage);
	double sum = 0, drops = how == END_DROPS && batch > 0 ? (double)(t->size % batch) : 0;

	for (size_t i = 0; i < t->epochs.count; i++) {
		const struct line_epoch *p = &t->epochs.items[i];
		double tail = (double)(p->tail_own + p->tail_across);
		double missing = t->size > p->distinct ? (double)(t->size - p->distinct) : 0;
		sum += (double)p->again;
		if (how == END_PADS && missing == 0)
			sum -= 0.99 * tail;
		if (p->ended)
			sum += fabs(missing - drops);
	}
	return sum;
}

/* Whether the log says that epochs end that way: 1, or that they do not: 0; -1: neither. */
static int drops_said(const struct ledger *l)
{
	int said = -1;

	for (size_t i = 0; i < l->attempts.count; i++)
		said = l->attempts.items[i].drop_last >= 0 ? l->attempts.items[i].drop_last : said;
	return said;
}

/* Whether all steps are of one size that goes into an epoch, so that all kinds of end are one. */
static bool divides(const struct lineage *g, uint64_t length)
{
	for (size_t i = 0; i < g->line.count; i++) {
		const struct line_part *p = &g->line.items[i];
		for (uint32_t k = 0; k < p->steps; k++) {
			uint32_t n = g->ledger->steps.items[p->first + k].n;
			if (n == 0 || length % n != 0)
				return false;
		}
	}
	return true;
}

/*
 * Where an epoch ends inside a step that goes on with the next one, a label of the whole step is
 * wrong for a part of it. Such epochs are those of the size, where these fit and the labels do not.
 */
static int try_wrapped(struct task *k, struct error *e)
{
	struct tally *t = k->t;
	uint64_t length = t->size * t->repeat;
	double pads = misfit(t, END_PADS), drops = misfit(t, END_DROPS);
	double logged = pads < drops ? pads : drops;

	if (t->size == 0 || t->replacement || t->lineage->rows <= length ||
		4 * logged <= (double)largest_step(t->lineage) || divides(t->lineage, length))
		return RP_OK;
	t->how = EPOCHS_SIZED;
	int status = epochs_take_even(t, length, END_WRAPS, e);
	if (status == RP_OK)
		status = count_task(k, e);
	if (status < 0 || 4 * misfit(t, END_WRAPS) < logged)
		return status;
	t->how = EPOCHS_LOGGED;
	t->epochs.count = 0;
	status = epochs_take_logged(t, e);
	return status == RP_OK ? count_task(k, e) : status;
}

/* The data set's size is known, and how the sampler ends an epoch is tried out. */
static int count_sized(struct task *k, struct error *e)
{
	struct tally *t = k->t;
	uint64_t length = t->size * t->repeat;
	enum epoch_end best = END_WRAPS;
	double least = INFINITY;
	int status = RP_OK, drops = drops_said(t->lineage->ledger);

	t->how = EPOCHS_SIZED;
	bool plain = t->lineage->rows + t->lineage->missing_samples <= length ||
		     divides(t->lineage, length);
	for (int how = END_WRAPS; how < END_COUNT && !plain && status == RP_OK; how++) {
		status = epochs_take_even(t, length, (enum epoch_end)how, e);
		if (status == RP_OK)
			status = count_task(k, e);
		double bad = misfit(t, (enum epoch_end)how);
		if (drops >= 0 && (how == END_DROPS) != drops)
			bad += (double)t->lineage->rows;
		if (bad < least) {
			least = bad;
			best = (enum epoch_end)how;
		}
	}
	if (status == RP_OK && (plain || best + 1 != END_COUNT)) {
		status = epochs_take_even(t, length, best, e);
		if (status == RP_OK)
			status = count_task(k, e);
	}
	return status;
}

/* Nothing says how long an epoch is; the samples may. */
static int count_unknown(struct task *k, struct error *e)
{
	struct tally *t = k->t;
	int status = one_epoch(t, e);

	if (status == RP_OK)
		status = count_task(k, e);
	uint64_t length = status == RP_OK && !t->replacement && t->lineage->gaps.count == 0
				  ? learned_length(t)
				  : 0;
	if (length == 0)
		return status;
	t->how = EPOCHS_LEARNED;
	status = epochs_take_even(t, length, END_WRAPS, e);
	if (status == RP_OK)
		status = count_task(k, e);
	if (status == RP_OK && epochs_hold(t)) {
		t->size = length / t->repeat;
		return RP_OK;
	}
	if (status == RP_OK)
		status = one_epoch(t, e);
	return status == RP_OK ? count_task(k, e) : status;
}

int tally_count(struct tally *t, const struct lineage *g, uint64_t memory, unsigned threads,
	struct error *e)
{
	struct task k = {.t = t, .memory = memory, .threads = threads};
	int status;

	*t = (struct tally){.lineage = g};
	if (g->line.count > 0 && !array_reserve(&t->parts, g->line.count, SIZE_MAX))
		return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for the line's parts");
	t->parts.count = g->line.count;
	/* Where no sample is, nothing is counted in them. */
	for (size_t i = 0; i < g->line.count; i++)
		memset(&t->parts.items[i], 0, sizeof t->parts.items[i]);
	t->keys_per_anchor = g->rows <= ANCHORS ? 1 : g->rows / ANCHORS + 1;
	t->size = size_said(g->ledger);
	t->size_said = t->size > 0;
	status = read_factors(t, &k.factors, e);
	if (status == RP_OK)
		status = place_index_init(&k.places, g->ledger, e);
	if (status == RP_OK && g->rows == 0) {
		status = one_epoch(t, e);
	} else if (status == RP_OK && epochs_logged(g)) {
		t->how = EPOCHS_LOGGED;
		status = epochs_take_logged(t, e);
		if (status == RP_OK)
			status = count_task(&k, e);
		if (status == RP_OK)
			status = try_wrapped(&k, e);
	} else if (status == RP_OK && t->size > 0 && !t->replacement) {
		status = count_sized(&k, e);
	} else if (status == RP_OK) {
		status = count_unknown(&k, e);
	}
	place_index_release(&k.places);
	free(k.factors);
	return status;
}

int tally_without_epochs(struct tally *t, uint64_t memory, unsigned threads, struct error *e)
{
	struct task k = {.t = t, .memory = memory, .threads = threads};
	int status = read_factors(t, &k.factors, e);

	if (status == RP_OK)
		status = place_index_init(&k.places, t->lineage->ledger, e);
	if (status == RP_OK)
		status = one_epoch(t, e);
	if (status == RP_OK)
		status = count_task(&k, e);
	place_index_release(&k.places);
	free(k.factors);
	return status;
}

uint64_t tally_repeats_inside(const struct tally *t)
{
	uint64_t n = 0;

	for (size_t i = 0; i < t->parts.count; i++) {
		const struct part_tally *p = &t->parts.items[i];
		n += p->in_step + p->in_rank + p->in_workers + p->in_ranks;
	}
	return n;
}

void tally_release(struct tally *t)
{
	array_release(&t->epochs);
	array_release(&t->parts);
	array_release(&t->repeats);
}
