/* SPDX-License-Identifier: MIT */
#include "ledger/tally_count.h"

#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "base/team.h"

#define REPEATS_MAX ((size_t)1 << 26)
#define BLOCK 8192u
#define BUCKET 32768u /* records of a bucket, about: its table stays in the second cache */
#define BUCKETS_MAX 2048u
#define DENSE_PASSES 8u /* more than that, and a table by id is not worth its gaps */
#define AT_BITS 40      /* of a place in a record; the count or repeat factor is above it */
#define AT_MASK (((uint64_t)1 << AT_BITS) - 1)
#define COUNT_MAX ((1u << (64 - AT_BITS)) - 1)
#define AHEAD 16u /* samples between asking for a table's line and using it */

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

int tally_count_samples(struct tally *t, const struct place_index *places, uint8_t *factors,
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
