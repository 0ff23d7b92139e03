/* SPDX-License-Identifier: MIT */
#include "ledger/tally.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "base/team.h"

#define EPOCHS_MAX ((size_t)1 << 26)
#define REPEATS_MAX ((size_t)1 << 26)
#define ANCHORS 4000000u /* most keys that are anchors, about */
#define BLOCK 8192u
#define BUCKET 32768u /* records of a bucket, about: its table stays in the second cache */
#define BUCKETS_MAX 2048u
#define DENSE_PASSES 8u /* more than that, and a table by id is not worth its gaps */
#define AT_BITS 40      /* of a place in a record; the count or repeat factor is above it */
#define AT_MASK (((uint64_t)1 << AT_BITS) - 1)
#define COUNT_MAX ((1u << (64 - AT_BITS)) - 1)
#define AHEAD 16u /* samples between asking for a table's line and using it */

/* Places --------------------------------------------------------------------------------------- */

int place_index_init(struct place_index *x, const struct ledger *l, struct error *e)
{
	*x = (struct place_index){
		.ledger = l, .starts = calloc(l->parts.count + 1, sizeof *x->starts)};
	if (!x->starts)
		return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for the parts of steps");
	for (size_t i = 0; i < l->geometries.count; i++) {
		const struct ledger_geometry *g = &l->geometries.items[i];
		uint32_t before = 0;
		for (uint32_t k = 0; k < g->parts; k++) {
			x->starts[g->first + k] = before;
			before += l->parts.items[g->first + k].n;
		}
	}
	return RP_OK;
}

void place_index_release(struct place_index *x)
{
	free(x->starts);
	x->starts = NULL;
}

/* Steps of an attempt are mostly of one size, so that a guess is mostly right. */
static uint32_t step_of(const struct ledger *l, uint64_t row, uint32_t first, uint32_t steps)
{
	const struct ledger_step *s = l->steps.items;
	uint32_t low = first, high = first + steps;
	uint32_t size = s[first].n > 0 ? s[first].n : 1;
	uint64_t guess = first + (row - s[first].row) / size;

	if (guess < high && s[guess].row <= row && row < s[guess].row + s[guess].n)
		return (uint32_t)guess;
	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;
		if (s[middle].row <= row)
			low = middle;
		else
			high = middle;
	}
	return low;
}

struct sample_place place_in(
	const struct place_index *x, uint64_t row, uint32_t first, uint32_t steps)
{
	const struct ledger *l = x->ledger;
	struct sample_place p = {.step = step_of(l, row, first, steps)};
	const struct ledger_step *s = &l->steps.items[p.step];
	const struct ledger_geometry *g = &l->geometries.items[s->geometry];
	uint32_t inside = (uint32_t)(row - s->row), low = 0, high = g->parts;

	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;
		if (x->starts[g->first + middle] <= inside)
			low = middle;
		else
			high = middle;
	}
	p.part = low;
	p.slot = inside - x->starts[g->first + low];
	p.of = &l->parts.items[g->first + low];
	return p;
}

/* Epochs --------------------------------------------------------------------------------------- */

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

static int add_epoch(struct tally *t, uint64_t at, int32_t label, struct error *e)
{
	struct line_epoch *p = array_push(&t->epochs, EPOCHS_MAX);

	if (!p)
		return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for the epochs");
	*p = (struct line_epoch){.at = at, .label = label};
	return RP_OK;
}

/* Whether each step of the line says its epoch. */
static bool epochs_logged(const struct lineage *g)
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
static int take_logged_epochs(struct tally *t, struct error *e)
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
				status = add_epoch(t, at, s->epoch, e);
			label = s->epoch;
		}
	}
	return status;
}

/* How a sampler ends an epoch whose size is no multiple of the batch. */
enum epoch_end {
	END_WRAPS, /* inside a step, which goes on with the next epoch */
	END_DROPS, /* before the step that would go beyond it */
	END_PADS,  /* with the step that reaches it */
	END_COUNT
};

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
		status = add_epoch(t, at, -1, e);
	*into = length - (at - end);
	return status;
}

static int take_wrapped_epochs(struct tally *t, uint64_t length, struct error *e)
{
	const struct lineage *g = t->lineage;
	uint64_t at = 0, into = 0;
	int status = add_epoch(t, 0, -1, e);

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
			status = add_epoch(t, at, -1, e);
	}
	return status;
}

static int take_even_epochs(struct tally *t, uint64_t length, enum epoch_end how, struct error *e)
{
	const struct lineage *g = t->lineage;
	uint64_t into = 0;
	size_t gap = 0;
	int status;

	t->epochs.count = 0;
	if (how == END_WRAPS)
		return take_wrapped_epochs(t, length, e);
	status = add_epoch(t, 0, -1, e);
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
				status = add_epoch(t, at, -1, e);
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

/* Lengths, tails and seams of epochs whose beginnings are known. */
static void settle_epochs(struct tally *t)
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
		const struct ledger_step *s = &g->ledger->steps.items[step_of(
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

/* Counting ------------------------------------------------------------------------------------- */

struct worker;

/* What the threads share. */
struct counting {
	struct tally *t;
	const struct place_index *places;
	struct sample_source line;
	uint64_t anchor_below;
	uint8_t *factors; /* repeat factor of each space */
	bool counted;     /* some factor is above 1, so that occurrences are counted */
	unsigned threads;
	/* Ids in a table. */
	uint64_t low, high; /* the pass's range of ids */
	uint32_t *last;     /* place + 1 of each id's last occurrence */
	/* Hashes in buckets. */
	uint64_t pass, passes;
	struct record *records;
	uint32_t *fill; /* per thread and bucket */
	uint32_t buckets;
};

struct worker {
	struct counting *c;
	unsigned number;
	int status;
	struct error error;
	struct sample_buffer *buffer;
	struct line_epoch *epochs; /* own counts, added up at the end */
	struct part_tally *parts;
	ARRAY(struct repeat) repeats;
	uint64_t distinct;
	size_t epoch, part;   /* where the last sample was */
	uint64_t from, until; /* of the line, all in that epoch and part */
	struct slot *slots;
	size_t slot_count;
};

static void place_cursor(struct worker *w, uint64_t at)
{
	const struct tally *t = w->c->t;
	const struct lineage *g = t->lineage;

	if (w->epoch >= t->epochs.count || at < t->epochs.items[w->epoch].at ||
		(w->epoch + 1 < t->epochs.count && at >= t->epochs.items[w->epoch + 1].at)) {
		if (w->epoch + 2 < t->epochs.count && at >= t->epochs.items[w->epoch + 1].at &&
			at < t->epochs.items[w->epoch + 2].at)
			w->epoch++;
		else
			w->epoch = tally_epoch_at(t, at);
	}
	if (at < g->line.items[w->part].at ||
		at >= g->line.items[w->part].at + g->line.items[w->part].rows)
		w->part = lineage_part_at(g, at);
	const struct line_part *p = &g->line.items[w->part];
	uint64_t epoch = t->epochs.items[w->epoch].at, end = p->at + p->rows;
	w->from = epoch > p->at ? epoch : p->at;
	w->until = end;
	if (w->epoch + 1 < t->epochs.count && t->epochs.items[w->epoch + 1].at < end)
		w->until = t->epochs.items[w->epoch + 1].at;
}

/* The epoch and part of a place, which is mostly near the last one. */
static inline void go_to(struct worker *w, uint64_t at)
{
	if (at < w->from || at >= w->until)
		place_cursor(w, at);
}

/* A sample that its epoch has consumed before, beyond what was declared. */
static void count_again(struct worker *w, uint64_t at, uint64_t before, uint64_t mark)
{
	const struct counting *c = w->c;
	const struct lineage *g = c->t->lineage;
	const struct line_part *p = &g->line.items[w->part];
	struct part_tally *n = &w->parts[w->part];
	struct line_epoch *epoch = &w->epochs[w->epoch];
	bool tail = at >= c->t->epochs.items[w->epoch].tail, own = before >= p->at;

	epoch->again++;
	if (tail)
		*(own ? &epoch->tail_own : &epoch->tail_across) += 1;
	if (mark_mix(mark) <= c->anchor_below) {
		struct repeat *r = array_push(&w->repeats, REPEATS_MAX);
		if (r)
			*r = (struct repeat){at, before};
		else
			w->status = fail(&w->error, RP_E_MEMORY, ERROR_NO_OFFSET,
				"no memory for the places of repeated samples");
	}
	if (!own) {
		n->across += !tail;
		return;
	}
	struct sample_place x = place_in(c->places, line_row(p, at), p->first, p->steps),
			    y = place_in(c->places, line_row(p, before), p->first, p->steps);
	if (x.of->dp != y.of->dp) {
		n->in_ranks += !tail;
		n->tail_ranks += tail;
	} else if (x.of->worker != y.of->worker) {
		n->in_workers += !tail;
	} else if (x.step == y.step) {
		n->in_step += !tail;
	} else {
		n->in_rank += !tail;
	}
}

/* A sample whose latest occurrence is known; `before` is its place + 1, or 0. */
static inline void count_sample(
	struct worker *w, uint64_t at, uint64_t before, bool beyond, uint64_t mark)
{
	const struct tally *t = w->c->t;

	go_to(w, at);
	if (before == 0) {
		w->distinct++;
		w->epochs[w->epoch].fresh++;
		w->epochs[w->epoch].distinct++;
	} else if (before - 1 < t->epochs.items[w->epoch].at) {
		w->epochs[w->epoch].distinct++;
	} else if (beyond) {
		count_again(w, at, before - 1, mark);
	}
}

typedef void count_fn(struct worker *w);

struct member {
	struct worker *worker;
	count_fn *fn;
};

static void run_member(void *member)
{
	struct member *m = member;
	m->fn(m->worker);
}

/* All workers do their share of one thing; the first error of them is the answer. */
static int run_team(struct worker *workers, unsigned count, count_fn *fn, struct error *e)
{
	struct member *members = calloc(count, sizeof *members);

	if (!members)
		return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for threads");
	for (unsigned i = 0; i < count; i++)
		members[i] = (struct member){&workers[i], fn};
	team_run(members, sizeof *members, count, run_member);
	free(members);
	for (unsigned i = 0; i < count; i++) {
		if (workers[i].status < 0) {
			*e = workers[i].error;
			return workers[i].status;
		}
	}
	return RP_OK;
}

/* The share of the line that a thread reads. */
static void share_of(const struct worker *w, uint64_t *first, uint64_t *end)
{
	uint64_t rows = w->c->line.rows, n = w->c->threads;

	*first = rows / n * w->number + (w->number < rows % n ? w->number : rows % n);
	*end = *first + rows / n + (w->number < rows % n);
}

static bool read_block(struct worker *w, uint64_t at, uint64_t end, struct sample_block *b)
{
	uint64_t n = end - at < BLOCK ? end - at : BLOCK;

	if (w->status < 0)
		return false;
	w->status = w->c->line.read(&w->c->line, at, (size_t)n, w->buffer, b, &w->error);
	return w->status >= 0;
}

/* Which samples of a block have their ids in [low, low + span); without a branch for each. */
static size_t pick(const struct sample_block *b, uint64_t low, uint64_t span, uint16_t *picked)
{
	size_t n = 0;

	for (size_t i = 0; i < b->n; i++) {
		picked[n] = (uint16_t)i;
		n += b->keys[i] - low < span;
	}
	return n;
}

/* Each thread goes over all samples and counts those in its share of the pass's ids. */
static void count_dense(struct worker *w)
{
	const struct counting *c = w->c;
	uint64_t width = c->high - c->low, low = c->low + width / c->threads * w->number;
	uint64_t high = w->number + 1 == c->threads ? c->high : low + width / c->threads;
	uint32_t *last = c->last + (low - c->low);
	uint16_t picked[BLOCK];
	struct sample_block b;

	for (uint64_t at = 0; at < c->line.rows && read_block(w, at, c->line.rows, &b); at += b.n) {
		size_t n = pick(&b, low, high - low, picked);
		for (size_t k = 0; k < n; k++) {
			uint64_t key = b.keys[picked[k]], place = at + picked[k];
			if (k + AHEAD < n)
				__builtin_prefetch(&last[b.keys[picked[k + AHEAD]] - low], 1);
			count_sample(w, place, last[key - low], true, key);
			last[key - low] = (uint32_t)(place + 1);
		}
	}
}

/* A sample of a pass: its mixed key, and its place with the repeat factor above it. */
struct record {
	uint64_t key, at;
};

/* Its last place + 1 with the number of occurrences in that epoch above it; 0: free. */
struct slot {
	uint64_t key, last;
};

static inline bool in_pass(const struct counting *c, uint64_t key)
{
	return c->passes == 1 || (key >> 32) * c->passes >> 32 == c->pass;
}

/* Bits below those that choose the pass. */
static inline uint32_t bucket_of(const struct counting *c, uint64_t key)
{
	return (uint32_t)(key >> 20) & (c->buckets - 1);
}

static void fill_counts(struct worker *w)
{
	const struct counting *c = w->c;
	const struct ledger *l = c->t->lineage->ledger;
	uint32_t *fill = c->fill + (size_t)w->number * c->buckets;
	struct sample_block b;
	uint64_t at, end;

	for (share_of(w, &at, &end); at < end && read_block(w, at, end, &b); at += b.n) {
		for (size_t i = 0; i < b.n; i++) {
			uint64_t key = mark_mix(block_mark(l, &b, i));
			if (in_pass(c, key))
				fill[bucket_of(c, key)]++;
		}
	}
}

/* `fill` now says where each thread's records of each bucket begin, and is moved to their ends. */
static void fill_buckets(struct worker *w)
{
	const struct counting *c = w->c;
	const struct ledger *l = c->t->lineage->ledger;
	uint32_t *fill = c->fill + (size_t)w->number * c->buckets;
	struct sample_block b;
	uint64_t at, end;

	for (share_of(w, &at, &end); at < end && read_block(w, at, end, &b); at += b.n) {
		for (size_t i = 0; i < b.n; i++) {
			uint64_t key = mark_mix(block_mark(l, &b, i));
			if (!in_pass(c, key))
				continue;
			uint64_t factor = c->factors[b.spaces ? b.spaces[i] : 0];
			c->records[fill[bucket_of(c, key)]++] =
				(struct record){key, (at + i) | factor << AT_BITS};
		}
	}
}

static bool slots_ready(struct worker *w, size_t records)
{
	size_t want = 64;

	while (want < 2 * records)
		want *= 2;
	if (want > w->slot_count) {
		free(w->slots);
		w->slots = malloc(size_mul(want, sizeof *w->slots));
		w->slot_count = w->slots ? want : 0;
	}
	if (!w->slots) {
		w->status = fail(&w->error, RP_E_MEMORY, ERROR_NO_OFFSET,
			"no memory for a table of samples");
		return false;
	}
	memset(w->slots, 0, want * sizeof *w->slots);
	return true;
}

static void count_bucket(struct worker *w, const struct record *r, size_t count)
{
	const struct tally *t = w->c->t;
	size_t mask = 64;

	if (count == 0 || !slots_ready(w, count))
		return;
	while (mask < 2 * count)
		mask *= 2;
	mask--;
	for (size_t i = 0; i < count; i++) {
		uint64_t key = r[i].key, at = r[i].at & AT_MASK, factor = r[i].at >> AT_BITS;
		size_t s = (size_t)(key >> 31 ^ key) & mask;
		while (w->slots[s].last != 0 && w->slots[s].key != key)
			s = (s + 1) & mask;
		uint64_t last = w->slots[s].last & AT_MASK, times = w->slots[s].last >> AT_BITS;
		if (w->c->counted && last != 0) {
			go_to(w, at);
			if (last - 1 < t->epochs.items[w->epoch].at)
				times = 0;
		}
		count_sample(w, at, last, times >= factor, mark_mix(key));
		times += times < COUNT_MAX;
		w->slots[s] = (struct slot){key, (at + 1) | times << AT_BITS};
	}
}

/* Buckets are dealt out; the records of one lie in the order of the line. */
static void count_buckets(struct worker *w)
{
	const struct counting *c = w->c;

	for (uint32_t b = w->number; b < c->buckets && w->status >= 0; b += c->threads) {
		const uint32_t *ends = c->fill + (size_t)(c->threads - 1) * c->buckets;
		uint32_t first = b > 0 ? ends[b - 1] : 0;
		count_bucket(w, c->records + first, ends[b] - first);
	}
}

static int count_hashed_pass(struct counting *c, struct worker *workers, struct error *e)
{
	uint64_t sum = 0;
	int status;

	memset(c->fill, 0, (size_t)c->threads * c->buckets * sizeof *c->fill);
	if ((status = run_team(workers, c->threads, fill_counts, e)) < 0)
		return status;
	for (uint32_t b = 0; b < c->buckets; b++) {
		for (unsigned k = 0; k < c->threads; k++) {
			uint32_t *fill = &c->fill[(size_t)k * c->buckets + b], n = *fill;
			*fill = (uint32_t)sum;
			sum += n;
		}
	}
	if (sum > UINT32_MAX)
		return fail(e, RP_E_LIMIT, ERROR_NO_OFFSET, "too many samples in one pass");
	free(c->records);
	c->records = malloc(size_mul((size_t)sum + 1, sizeof *c->records));
	if (!c->records)
		return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for %llu samples",
			(unsigned long long)sum);
	if ((status = run_team(workers, c->threads, fill_buckets, e)) < 0)
		return status;
	return run_team(workers, c->threads, count_buckets, e);
}

static int count_hashed(
	struct counting *c, struct worker *workers, uint64_t memory, struct error *e)
{
	uint64_t rows = c->line.rows, fits = memory / 5 * 4 / sizeof(struct record);
	int status = RP_OK;

	if (fits < 1024)
		fits = 1024;
	if (fits > UINT32_MAX / 2)
		fits = UINT32_MAX / 2;
	c->passes = rows / fits + 1;
	c->buckets = 1;
	while (c->buckets < BUCKETS_MAX && (uint64_t)c->buckets * BUCKET < rows / c->passes)
		c->buckets *= 2;
	c->fill = calloc((size_t)c->threads * c->buckets, sizeof *c->fill);
	if (!c->fill)
		return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for buckets");
	for (c->pass = 0; c->pass < c->passes && status == RP_OK; c->pass++)
		status = count_hashed_pass(c, workers, e);
	c->t->passes += c->passes;
	return status;
}

static int count_dense_passes(
	struct counting *c, struct worker *workers, uint64_t ids, uint64_t memory, struct error *e)
{
	uint64_t fits = memory / sizeof *c->last, width = ids < fits ? ids : fits;
	int status = RP_OK;

	c->last = malloc(size_mul((size_t)width, sizeof *c->last));
	if (!c->last)
		return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for a table of %llu ids",
			(unsigned long long)width);
	arena_prefer_huge_pages(c->last, (size_t)width * sizeof *c->last);
	for (c->low = 0; c->low < ids && status == RP_OK; c->low += width) {
		c->high = c->low + width < ids ? c->low + width : ids;
		memset(c->last, 0, (size_t)(c->high - c->low) * sizeof *c->last);
		status = run_team(workers, c->threads, count_dense, e);
		c->t->passes++;
	}
	return status;
}

/* One space of integer ids, close together, each meant to be seen once: a table by id is best. */
static bool is_dense(const struct counting *c, uint64_t memory)
{
	const struct ledger *l = c->t->lineage->ledger;
	uint64_t largest = l->spaces.count == 1 ? l->spaces.items[0].max_key : 0;

	return l->spaces.count == 1 && l->spaces.items[0].kind == KEY_ID && !c->counted &&
	       c->line.rows < UINT32_MAX && largest < 4 * c->line.rows + 65536 &&
	       largest / (memory / sizeof *c->last + 1) < DENSE_PASSES;
}

static int compare_repeats(const void *a, const void *b)
{
	const struct repeat *x = a, *y = b;
	return (x->at > y->at) - (x->at < y->at);
}

static int add_up(struct tally *t, const struct worker *w, struct error *e)
{
	for (size_t i = 0; i < t->epochs.count; i++) {
		struct line_epoch *p = &t->epochs.items[i];
		p->distinct += w->epochs[i].distinct;
		p->fresh += w->epochs[i].fresh;
		p->again += w->epochs[i].again;
		p->tail_across += w->epochs[i].tail_across;
		p->tail_own += w->epochs[i].tail_own;
	}
	for (size_t i = 0; i < t->parts.count; i++) {
		struct part_tally *p = &t->parts.items[i];
		p->across += w->parts[i].across;
		p->in_step += w->parts[i].in_step;
		p->in_workers += w->parts[i].in_workers;
		p->in_rank += w->parts[i].in_rank;
		p->in_ranks += w->parts[i].in_ranks;
		p->tail_ranks += w->parts[i].tail_ranks;
	}
	t->distinct += w->distinct;
	if (w->repeats.count == 0)
		return RP_OK;
	if (!array_reserve(&t->repeats, t->repeats.count + w->repeats.count, REPEATS_MAX))
		return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET,
			"no memory for the places of repeated samples");
	memcpy(t->repeats.items + t->repeats.count, w->repeats.items,
		w->repeats.count * sizeof *w->repeats.items);
	t->repeats.count += w->repeats.count;
	return RP_OK;
}

static void worker_release(struct worker *w)
{
	sample_buffer_free(w->buffer);
	free(w->epochs);
	free(w->parts);
	free(w->slots);
	array_release(&w->repeats);
}

static int worker_init(struct worker *w, struct counting *c, unsigned number, struct error *e)
{
	const struct tally *t = c->t;

	*w = (struct worker){.c = c,
		.number = number,
		.error = ERROR_INIT,
		.buffer = sample_buffer_new(),
		.epochs = calloc(t->epochs.count + 1, sizeof *w->epochs),
		.parts = calloc(t->parts.count + 1, sizeof *w->parts)};
	if (!w->buffer || !w->epochs || !w->parts)
		return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for counting samples");
	return RP_OK;
}

/* Count with the epochs as they are. */
static int count(struct tally *t, const struct place_index *places, uint8_t *factors,
	uint64_t memory, unsigned threads, struct error *e)
{
	const struct lineage *g = t->lineage;
	struct counting c = {.t = t,
		.places = places,
		.line = lineage_line(g),
		.factors = factors,
		.counted = t->repeat > 1,
		.threads = threads,
		.anchor_below = UINT64_MAX / t->keys_per_anchor};
	struct worker *workers = calloc(threads, sizeof *workers);
	int status = RP_OK;

	if (!workers)
		return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for threads");
	t->distinct = t->passes = 0;
	t->repeats.count = 0;
	for (size_t i = 0; i < t->parts.count; i++)
		t->parts.items[i] = (struct part_tally){0};
	for (unsigned i = 0; i < threads && status == RP_OK; i++)
		status = worker_init(&workers[i], &c, i, e);
	if (status == RP_OK)
		status = is_dense(&c, memory)
				 ? count_dense_passes(&c, workers,
					   g->ledger->spaces.items[0].max_key + 1, memory, e)
				 : count_hashed(&c, workers, memory, e);
	for (unsigned i = 0; i < threads; i++) {
		if (status == RP_OK)
			status = add_up(t, &workers[i], e);
		worker_release(&workers[i]);
	}
	if (t->repeats.count > 1)
		qsort(t->repeats.items, t->repeats.count, sizeof *t->repeats.items,
			compare_repeats);
	free(workers);
	free(c.last);
	free(c.records);
	free(c.fill);
	return status;
}

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
	int status = t->lineage->line.count > 0 ? add_epoch(t, 0, -1, e) : RP_OK;
	settle_epochs(t);
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
	settle_epochs(k->t);
	int status = count(k->t, &k->places, k->factors, k->memory, k->threads, e);
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
	int status = take_even_epochs(t, length, END_WRAPS, e);
	if (status == RP_OK)
		status = count_task(k, e);
	if (status < 0 || 4 * misfit(t, END_WRAPS) < logged)
		return status;
	t->how = EPOCHS_LOGGED;
	t->epochs.count = 0;
	status = take_logged_epochs(t, e);
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
		status = take_even_epochs(t, length, (enum epoch_end)how, e);
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
		status = take_even_epochs(t, length, best, e);
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
	status = take_even_epochs(t, length, END_WRAPS, e);
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
		status = take_logged_epochs(t, e);
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
