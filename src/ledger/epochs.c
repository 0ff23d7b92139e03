/* SPDX-License-Identifier: MIT */
#include "ledger/epochs.h"

#define EPOCHS_MAX ((size_t)1 << 26)

size_t tally_epoch_at(const struct tally *t, uint64_t at)
{
	size_t low = 0, high = t->epochs.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (t->epochs.items[middle].at <= at)
			low = middle + 1;
		else
			high = middle;
	}
	return low > 0 ? low - 1 : 0;
}

int epochs_add(struct tally *t, uint64_t at, int32_t label, struct error *e)
{
	struct line_epoch *p = array_push(&t->epochs, EPOCHS_MAX);

	if (!p)
		return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for the epochs");
	*p = (struct line_epoch){.at = at, .label = label};
	return RP_OK;
}

bool epochs_logged(const struct lineage *g)
{
	for (size_t i = 0; i < g->line.count; i++) {
		const struct line_part *p = &g->line.items[i];
		for (uint32_t k = 0; k < p->steps; k++)
			if (g->ledger->steps.items[p->first + k].epoch < 0)
				return false;
	}
	return g->line.count > 0;
}

/*
 * A new label begins a new epoch. After a resume the count of epochs may have begun again: a lower
 * label at a seam goes on with the epoch that was running, unless that was whole.
 */
int epochs_take_logged(struct tally *t, struct error *e)
{
	const struct lineage *g = t->lineage;
	int32_t label = -1;
	int status = RP_OK;

	for (size_t i = 0; i < g->line.count && status == RP_OK; i++) {
		const struct line_part *p = &g->line.items[i];
		for (uint32_t k = 0; k < p->steps && status == RP_OK; k++) {
			const struct ledger_step *s = &g->ledger->steps.items[p->first + k];
			uint64_t at = p->at + (s->row - p->row);
			bool begins = s->epoch != label;
			if (i > 0 && k == 0 && s->epoch <= label) {
				uint64_t rows = at - t->epochs.items[t->epochs.count - 1].at;
				begins = t->size > 0 && rows >= t->size * t->repeat;
			}
			if (begins || t->epochs.count == 0)
				status = epochs_add(t, at, s->epoch, e);
			label = s->epoch;
		}
	}
	return status;
}

/* Samples that are consumed until the next epoch begins, in steps of `n`. */
static uint64_t epoch_period(uint64_t length, uint32_t n, enum epoch_end how)
{
	if (how == END_WRAPS || n == 0 || n > length)
		return length;
	return how == END_DROPS ? length / n * n : (length + n - 1) / n * n;
}

/* How far into an epoch steps lead that the log does not hold; whether they end one. */
static uint64_t pass_gap(uint64_t into, uint64_t samples, uint64_t period, bool *ended)
{
	*ended |= into + samples >= period;
	return (into + samples) % period;
}

/* Epochs that go on inside a step begin at any sample: those of the line up to `end`. */
static int take_wrapped(struct tally *t, uint64_t at, uint64_t end, uint64_t *into, uint64_t length,
	struct error *e)
{
	int status = RP_OK;

	for (at += length - *into; at < end && status == RP_OK; at += length)
		status = epochs_add(t, at, -1, e);
	*into = length - (at - end);
	return status;
}

static int take_wrapped_epochs(struct tally *t, uint64_t length, struct error *e)
{
	const struct lineage *g = t->lineage;
	uint64_t at = 0, into = 0;
	int status = epochs_add(t, 0, -1, e);

	for (size_t i = 0; i <= g->gaps.count && status == RP_OK; i++) {
		bool last = i == g->gaps.count, ended = false;
		uint64_t end = last ? g->rows : g->gaps.items[i].at;
		if (end > at)
			status = take_wrapped(t, at, end, &into, length, e);
		at = end;
		if (last)
			break;
		into = pass_gap(into, g->gaps.items[i].samples, length, &ended);
		if (ended && at > 0 && at < g->rows && status == RP_OK)
			status = epochs_add(t, at, -1, e);
	}
	return status;
}

int epochs_take_even(struct tally *t, uint64_t length, enum epoch_end how, struct error *e)
{
	const struct lineage *g = t->lineage;
	uint64_t into = 0;
	size_t gap = 0;
	int status;

	t->epochs.count = 0;
	if (how == END_WRAPS)
		return take_wrapped_epochs(t, length, e);
	status = epochs_add(t, 0, -1, e);
	for (size_t i = 0; i < g->line.count && status == RP_OK; i++) {
		const struct line_part *p = &g->line.items[i];
		for (uint32_t k = 0; k < p->steps && status == RP_OK; k++) {
			const struct ledger_step *s = &g->ledger->steps.items[p->first + k];
			uint64_t at = p->at + (s->row - p->row);
			uint64_t period = epoch_period(length, s->n, how);
			bool ended = into > 0 &&
				     (how == END_DROPS ? into + s->n > length : into >= length);
			if (ended)
				into = 0;
			for (; gap < g->gaps.count && g->gaps.items[gap].at <= at; gap++)
				into = pass_gap(into, g->gaps.items[gap].samples, period, &ended);
			if (ended && at > 0)
				status = epochs_add(t, at, -1, e);
			into += s->n;
		}
	}
	return status;
}

/* What the log does not hold cannot be missed: steps that were left out, lines that were lost. */
static void mark_gaps(struct tally *t)
{
	const struct lineage *g = t->lineage;

	for (size_t i = 0; i < g->gaps.count && t->epochs.count > 0; i++) {
		uint64_t at = g->gaps.items[i].at;
		/* Nobody knows on which side of an epoch's end the steps were. */
		for (size_t k = tally_epoch_at(t, at - (at > 0)); k <= tally_epoch_at(t, at); k++)
			t->epochs.items[k].gaps = true;
	}
	for (size_t i = 0; i < g->line.count; i++) {
		const struct line_part *p = &g->line.items[i];
		const struct ledger_attempt *a = &g->ledger->attempts.items[p->attempt];
		const struct ledger_step *first = &g->ledger->steps.items[p->first];
		uint32_t ranks = g->ledger->geometries.items[first->geometry].ranks;
		for (uint32_t k = 0; k < p->steps; k++) {
			const struct ledger_step *s = &g->ledger->steps.items[p->first + k];
			/* A rank whose log ends early lacks the last steps. */
			bool short_of_ranks =
				a->ranks_missing > 0 ||
				(k + 1 == p->steps &&
					g->ledger->geometries.items[s->geometry].ranks < ranks);
			if (s->irregular || short_of_ranks)
				t->epochs.items[tally_epoch_at(t, p->at + (s->row - p->row))].gaps =
					true;
		}
	}
}

void epochs_settle(struct tally *t)
{
	const struct lineage *g = t->lineage;

	for (size_t i = 0; i < t->epochs.count; i++) {
		struct line_epoch *p = &t->epochs.items[i];
		uint64_t end = i + 1 < t->epochs.count ? t->epochs.items[i + 1].at : g->rows;
		p->rows = end - p->at;
		p->ended = i + 1 < t->epochs.count;
		p->seams = 0;
		if (p->rows == 0)
			continue;
		const struct line_part *part = &g->line.items[lineage_part_at(g, end - 1)];
		const struct ledger_step *s = &g->ledger->steps.items[place_step_of(
			g->ledger, line_row(part, end - 1), part->first, part->steps)];
		p->tail = part->at + (s->row - part->row);
		if (p->tail < p->at)
			p->tail = p->at;
	}
	for (size_t i = 1; i < g->line.count; i++) {
		struct line_epoch *p = &t->epochs.items[tally_epoch_at(t, g->line.items[i].at)];
		p->seams += p->at < g->line.items[i].at;
	}
	mark_gaps(t);
}
