/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "ledger/strand.h"

#include <stdlib.h>
#include <string.h>

/*
 * A run may leave out this many steps between two of its lines. More would make a sweep carry runs
 * through steps in which they have no line, without bound.
 */
#define STRIDE_MAX 64

static int no_room(struct error *e)
{
	return fail(e, RP_E_LIMIT, ERROR_NO_OFFSET,
		"the lines of this log are too irregular or too many for the memory allowed "
		"(limit memory)");
}

void strands_init(struct strands *s, size_t max_bytes)
{
	*s = (struct strands){.newest = STRAND_NONE, .max_bytes = max_bytes};
}

void strands_release(struct strands *s)
{
	array_release(&s->list);
	array_release(&s->runs);
	array_release(&s->tracks);
	lookup_release(&s->by_place);
	lookup_release(&s->by_track);
	free(s->seen);
	s->seen = NULL;
}

size_t strands_bytes(const struct strands *s)
{
	return s->list.capacity * sizeof *s->list.items + s->runs.capacity * sizeof *s->runs.items +
	       s->tracks.capacity * sizeof *s->tracks.items +
	       (s->by_place.capacity + s->by_track.capacity) * sizeof(struct lookup_slot) +
	       s->seen_capacity * sizeof *s->seen;
}

/* Places --------------------------------------------------------------------------------------- */

static uint64_t hash_place(uint32_t attempt, uint32_t dp, uint16_t micro, uint32_t worker)
{
	return lookup_mix(
		lookup_mix((uint64_t)attempt << 32 | dp) + ((uint64_t)micro << 32 | worker));
}

static bool same_track(const void *of, uint32_t row, const void *key)
{
	const struct track *t = &((const struct strands *)of)->tracks.items[row], *k = key;

	return t->attempt == k->attempt && t->dp == k->dp && t->micro == k->micro;
}

static bool same_strand(const void *of, uint32_t row, const void *key)
{
	const struct strand *t = &((const struct strands *)of)->list.items[row], *k = key;

	return t->attempt == k->attempt && t->dp == k->dp && t->micro == k->micro &&
	       t->worker == k->worker;
}

struct track *strands_track(struct strands *s, uint32_t attempt, uint32_t dp, uint16_t micro)
{
	struct track key = {.attempt = attempt, .dp = dp, .micro = micro};

	/* Where ranks alternate, the line behind the newest one's is the one of the next track. */
	for (uint32_t i = s->newest; i != STRAND_NONE && i < s->newest + 2; i++)
		if (i < s->tracks.count && same_track(s, i, &key)) {
			s->newest = i;
			return &s->tracks.items[i];
		}
	uint64_t hash = hash_place(attempt, dp, micro, UINT32_MAX);
	uint32_t found = lookup_find(&s->by_track, hash, same_track, s, &key);
	if (found == LOOKUP_NONE) {
		found = (uint32_t)s->tracks.count;
		struct track *t = array_push(&s->tracks, s->max_bytes / sizeof *t);
		if (!t || !lookup_add(&s->by_track, hash, found))
			return NULL;
		*t = key;
		t->first = INT64_MAX;
		t->last = t->newest = INT64_MIN;
		t->strand = STRAND_NONE;
		t->row = STRAND_NONE;
	}
	s->newest = found;
	return &s->tracks.items[found];
}

const struct track *strands_find(
	const struct strands *s, uint32_t attempt, uint32_t dp, uint16_t micro)
{
	struct track key = {.attempt = attempt, .dp = dp, .micro = micro};
	uint32_t found = lookup_find(
		&s->by_track, hash_place(attempt, dp, micro, UINT32_MAX), same_track, s, &key);

	return found == LOOKUP_NONE ? NULL : &s->tracks.items[found];
}

static struct strand *strand_of(struct strands *s, struct track *t, uint16_t worker)
{
	struct strand key = {
		.attempt = t->attempt, .dp = t->dp, .micro = t->micro, .worker = worker};

	if (t->strand != STRAND_NONE && s->list.items[t->strand].worker == worker)
		return &s->list.items[t->strand];
	uint64_t hash = hash_place(t->attempt, t->dp, t->micro, worker);
	uint32_t found = lookup_find(&s->by_place, hash, same_strand, s, &key);
	if (found == LOOKUP_NONE) {
		found = (uint32_t)s->list.count;
		struct strand *strand = array_push(&s->list, s->max_bytes / sizeof *strand);
		if (!strand || !lookup_add(&s->by_place, hash, found))
			return NULL;
		*strand = key;
		strand->last = strand->before = STRAND_NONE;
	}
	t->strand = found;
	return &s->list.items[found];
}

/* Which steps were seen ------------------------------------------------------------------------ */

/* Never 0, which marks a free slot. */
static uint64_t seen_hash(size_t track, int64_t step)
{
	return lookup_mix(lookup_mix((uint64_t)track + 1) + (uint64_t)step) | 1;
}

static size_t seen_slot(const struct strands *s, uint64_t hash)
{
	size_t mask = s->seen_capacity - 1, i = (size_t)(hash >> 1) & mask;

	while (s->seen[i] != 0 && s->seen[i] != hash)
		i = (i + 1) & mask;
	return i;
}

static bool seen_put(struct strands *s, uint64_t hash)
{
	if (s->seen_count >= s->seen_capacity / 2) {
		struct strands bigger = {
			.seen_capacity = s->seen_capacity ? s->seen_capacity * 2 : 1024};
		if (bigger.seen_capacity > s->max_bytes / sizeof *s->seen)
			return false;
		bigger.seen = calloc(bigger.seen_capacity, sizeof *bigger.seen);
		if (!bigger.seen)
			return false;
		for (size_t i = 0; i < s->seen_capacity; i++)
			if (s->seen[i])
				bigger.seen[seen_slot(&bigger, s->seen[i])] = s->seen[i];
		free(s->seen);
		s->seen = bigger.seen;
		s->seen_capacity = bigger.seen_capacity;
	}
	size_t i = seen_slot(s, hash);
	s->seen_count += s->seen[i] == 0;
	s->seen[i] = hash;
	return true;
}

static uint32_t track_of(const struct strands *s, const struct strand *strand)
{
	struct track key = {.attempt = strand->attempt, .dp = strand->dp, .micro = strand->micro};

	return lookup_find(&s->by_track,
		hash_place(strand->attempt, strand->dp, strand->micro, UINT32_MAX), same_track, s,
		&key);
}

/* Begin to keep all steps: those of the lines so far. */
static bool seen_begin(struct strands *s)
{
	for (size_t i = 0; i < s->runs.count; i++) {
		const struct run *r = &s->runs.items[i];
		if (r->strand == STRAND_NONE)
			continue;
		uint32_t track = track_of(s, &s->list.items[r->strand]);
		for (uint32_t k = 0; k < r->count; k++)
			if (!seen_put(s, seen_hash(track, r->step + (int64_t)k * r->step_stride)))
				return false;
	}
	return true;
}

int strands_seen(struct strands *s, const struct track *t, int64_t step, struct error *e)
{
	if (step > t->last || step < t->first)
		return 0;
	/* Each step between the first and the last one has come. */
	if ((uint64_t)(t->last - t->first) + 1 == t->steps)
		return 1;
	if (!s->seen && !seen_begin(s))
		return no_room(e);
	return s->seen[seen_slot(s, seen_hash((size_t)(t - s->tracks.items), step))] != 0;
}

static bool note_step(struct strands *s, struct track *t, int64_t step)
{
	if (step > t->last || step < t->first)
		t->steps++;
	t->first = step < t->first ? step : t->first;
	t->last = step > t->last ? step : t->last;
	t->newest = step;
	return !s->seen || seen_put(s, seen_hash((size_t)(t - s->tracks.items), step));
}

/* Runs ----------------------------------------------------------------------------------------- */

static int64_t last_step(const struct run *r)
{
	return r->step + (int64_t)(r->count - 1) * r->step_stride;
}

/* Whether lines from (step, row) on, `n` samples each, go on where a run ends. */
static bool goes_on(const struct run *r, int64_t step, uint64_t row, uint32_t n)
{
	if (r->n != n || step <= last_step(r) || r->count == UINT32_MAX)
		return false;
	if (r->count == 1)
		return step - r->step <= STRIDE_MAX;
	return step == r->step + (int64_t)r->count * r->step_stride &&
	       (n == 0 || row == r->row + r->count * r->row_stride);
}

static void append(struct run *r, int64_t step, uint64_t row)
{
	if (r->count == 1) {
		r->step_stride = (uint32_t)(step - r->step);
		r->row_stride = row - r->row;
	}
	r->count++;
}

/* A step that came in several lines may have made the newest run like the one before it. */
static void join_newest(struct strands *s, struct strand *strand)
{
	if (strand->before == STRAND_NONE)
		return;
	struct run *r = &s->runs.items[strand->last], *before = &s->runs.items[strand->before];
	if (r->count != 1 || !goes_on(before, r->step, r->row, r->n))
		return;
	append(before, r->step, r->row);
	r->strand = STRAND_NONE;
	if (strand->last == s->runs.count - 1)
		s->runs.count--;
	strand->last = strand->before;
	strand->before = STRAND_NONE;
}

/* The step of the newest line goes on with more samples right behind it. */
static bool widen(struct strands *s, struct strand *strand, int64_t step, uint64_t row, uint32_t n)
{
	struct run *r = strand->last == STRAND_NONE ? NULL : &s->runs.items[strand->last];

	if (!r || last_step(r) != step || n > UINT32_MAX - r->n)
		return false;
	if (row != r->row + (r->count - 1) * r->row_stride + r->n)
		return false;
	if (r->count > 1) {
		struct run *one = array_push(&s->runs, s->max_bytes / sizeof *one);
		if (!one)
			return false;
		r = &s->runs.items[strand->last];
		*one = (struct run){.step = step,
			.row = row - r->n,
			.count = 1,
			.n = r->n,
			.strand = r->strand};
		r->count--;
		strand->before = strand->last;
		strand->last = (uint32_t)(s->runs.count - 1);
		r = one;
	}
	r->n += n;
	join_newest(s, strand);
	return true;
}

int strands_add(struct strands *s, struct track *t, uint16_t worker, int64_t step, uint64_t row,
	uint32_t n, struct error *e)
{
	struct strand *strand = strand_of(s, t, worker);

	if (!strand || !note_step(s, t, step))
		return no_room(e);
	if (widen(s, strand, step, row, n))
		return RP_OK;
	if (strand->last != STRAND_NONE && goes_on(&s->runs.items[strand->last], step, row, n)) {
		append(&s->runs.items[strand->last], step, row);
		return RP_OK;
	}
	struct run *r = array_push(&s->runs, s->max_bytes / sizeof *r);
	if (!r || s->runs.count > STRAND_NONE || strands_bytes(s) > s->max_bytes)
		return no_room(e);
	*r = (struct run){.step = step,
		.row = row,
		.count = 1,
		.n = n,
		.strand = (uint32_t)(strand - s->list.items)};
	strand->before = strand->last;
	strand->last = (uint32_t)(s->runs.count - 1);
	return RP_OK;
}

/* Ordering ------------------------------------------------------------------------------------- */

static int compare_u64(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int compare_strands(const void *pa, const void *pb, void *context)
{
	const struct strand *all = context;
	const struct strand *a = &all[*(const uint32_t *)pa], *b = &all[*(const uint32_t *)pb];
	int order = compare_u64(a->attempt, b->attempt);

	if (order == 0)
		order = compare_u64(a->dp, b->dp);
	if (order == 0)
		order = compare_u64(a->micro, b->micro);
	return order ? order : compare_u64(a->worker, b->worker);
}

static int compare_runs(const void *pa, const void *pb, void *context)
{
	const struct strand *all = context;
	const struct run *a = pa, *b = pb;
	const struct strand *of_a = &all[a->strand], *of_b = &all[b->strand];

	if (of_a->attempt != of_b->attempt)
		return of_a->attempt < of_b->attempt ? -1 : 1;
	if (a->step != b->step)
		return a->step < b->step ? -1 : 1;
	if (of_a->rank != of_b->rank)
		return of_a->rank < of_b->rank ? -1 : 1;
	return compare_u64(a->row, b->row);
}

static void drop_merged(struct strands *s)
{
	size_t kept = 0;

	for (size_t i = 0; i < s->runs.count; i++)
		if (s->runs.items[i].strand != STRAND_NONE)
			s->runs.items[kept++] = s->runs.items[i];
	s->runs.count = kept;
}

int strands_order(struct strands *s, const uint32_t *attempts, struct error *e)
{
	size_t n = s->list.count;
	uint32_t *order = calloc(n ? n : 1, sizeof *order);

	if (!order)
		return no_room(e);
	for (size_t i = 0; i < n; i++) {
		s->list.items[i].attempt = attempts[s->list.items[i].attempt];
		order[i] = (uint32_t)i;
	}
	if (n > 1)
		qsort_r(order, n, sizeof *order, compare_strands, s->list.items);
	for (size_t i = 0; i < n; i++)
		s->list.items[order[i]].rank = (uint32_t)i;
	free(order);

	drop_merged(s);
	struct run *runs = s->runs.items;
	bool sorted = true;
	for (size_t i = 1; sorted && i < s->runs.count; i++)
		sorted = compare_runs(&runs[i - 1], &runs[i], s->list.items) <= 0;
	if (!sorted)
		qsort_r(runs, s->runs.count, sizeof *runs, compare_runs, s->list.items);
	return RP_OK;
}

/* Sweeping ------------------------------------------------------------------------------------- */

void sweep_init(struct sweep *w, const struct strands *s)
{
	*w = (struct sweep){.strands = s, .attempt = STRAND_NONE, .step = INT64_MIN};
}

void sweep_release(struct sweep *w)
{
	array_release(&w->open);
	array_release(&w->merged);
	array_release(&w->list);
}

static const struct run *run_at(const struct sweep *w, size_t i)
{
	return &w->strands->runs.items[i];
}

static uint32_t rank_of(const struct sweep *w, uint32_t run)
{
	return w->strands->list.items[run_at(w, run)->strand].rank;
}

static bool before(const struct sweep *w, uint32_t a, uint32_t b)
{
	uint32_t rank_a = rank_of(w, a), rank_b = rank_of(w, b);

	return rank_a != rank_b ? rank_a < rank_b : run_at(w, a)->row <= run_at(w, b)->row;
}

/* Runs that begin with the step at hand: their number. */
static size_t beginning(const struct sweep *w)
{
	size_t n = 0;

	for (; w->next + n < w->strands->runs.count; n++) {
		const struct run *r = run_at(w, w->next + n);
		if (w->strands->list.items[r->strand].attempt != w->attempt || r->step != w->step)
			break;
	}
	return n;
}

static void close_ended(struct sweep *w)
{
	size_t kept = 0;

	for (size_t i = 0; i < w->open.count; i++)
		if (last_step(run_at(w, w->open.items[i])) >= w->step)
			w->open.items[kept++] = w->open.items[i];
	w->open.count = kept;
}

/* Merge the runs that begin into those that go on; both are in order. */
static bool open_begun(struct sweep *w, size_t n)
{
	size_t i = 0;
	uint32_t end = (uint32_t)(w->next + n);

	w->merged.count = 0;
	if (!array_reserve(&w->merged, w->open.count + n, SIZE_MAX))
		return false;
	while (i < w->open.count || w->next < end) {
		bool old = w->next == end ||
			   (i < w->open.count && before(w, w->open.items[i], (uint32_t)w->next));
		w->merged.items[w->merged.count++] = old ? w->open.items[i++] : (uint32_t)w->next++;
	}
	uint32_t *items = w->open.items;
	size_t capacity = w->open.capacity;
	w->open.items = w->merged.items;
	w->open.count = w->merged.count;
	w->open.capacity = w->merged.capacity;
	w->merged.items = items;
	w->merged.capacity = capacity;
	return true;
}

static void look_ahead(struct sweep *w)
{
	w->first_end = INT64_MAX;
	w->strided = false;
	for (size_t i = 0; i < w->open.count; i++) {
		const struct run *r = run_at(w, w->open.items[i]);
		w->first_end = last_step(r) < w->first_end ? last_step(r) : w->first_end;
		w->strided |= r->count > 1 && r->step_stride > 1;
	}
}

/* The pieces at a step of the runs that have a line there. */
static bool fill(struct sweep *w)
{
	w->list.count = 0;
	if (!array_reserve(&w->list, w->open.count, SIZE_MAX))
		return false;
	for (size_t i = 0; i < w->open.count; i++) {
		const struct run *r = run_at(w, w->open.items[i]);
		uint64_t behind = (uint64_t)(w->step - r->step), line = behind;
		if (r->count > 1 && r->step_stride > 1) {
			if (behind % r->step_stride)
				continue;
			line = behind / r->step_stride;
		}
		w->list.items[w->list.count++] = (struct piece){
			.strand = r->strand, .n = r->n, .row = r->row + line * r->row_stride};
	}
	return true;
}

bool sweep_next(struct sweep *w, uint32_t attempt, int64_t step)
{
	bool changed = attempt != w->attempt;

	w->attempt = attempt;
	w->step = step;
	if (changed) {
		w->open.count = 0;
	} else if (w->open.count > 0 && w->first_end < step) {
		close_ended(w);
		changed = true;
	}
	size_t n = beginning(w);
	if (n > 0 && !open_begun(w, n))
		return false;
	w->same = !changed && n == 0 && !w->strided;
	if (changed || n > 0)
		look_ahead(w);
	return fill(w);
}
