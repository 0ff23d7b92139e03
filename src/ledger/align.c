/* SPDX-License-Identifier: MIT */
#include "ledger/align.h"

#include <stdlib.h>

#include "base/identity.h"
#include "base/size.h"
#include "base/team.h"

#define SEAMS_MAX ((size_t)1 << 27)
#define HEADS_MAX (1u << 20) /* samples looked up over all seams, about */
#define HEAD_MOST 4096u
#define HEAD_LEAST 16u
#define HITS_MAX (1u << 22)
#define BLOCK 8192u
#define AHEAD 16u      /* samples between asking for a slot and looking into it */
#define IN_ORDER 0.8   /* share of the votes from which on an offset explains the samples */
#define RUN_PROVES 16u /* samples in a row that are no chance, whatever the others do */

/* Looking up heads ----------------------------------------------------------------------------- */

struct head {
	uint64_t mark;
	uint32_t seam, i;
};

struct hit {
	uint32_t seam, i;
	uint64_t where; /* place on the line, or in the key with KEY_BIT */
};

#define KEY_BIT ((uint64_t)1 << 63)

struct search {
	struct alignments *a;
	const struct ledger *ledger;
	ARRAY(struct head) heads; /* by mark, seam, i */
	uint32_t *index;          /* hash table of the first head of each mark + 1; 0: free */
	size_t mask;
	uint32_t most; /* heads a seam */
	unsigned threads;
};

struct searcher {
	struct search *s;
	unsigned number;
	int status;
	struct error error;
	struct sample_buffer *buffer;
	ARRAY(struct hit) hits;
	bool full;
};

static int compare_heads(const void *a, const void *b)
{
	const struct head *x = a, *y = b;
	if (x->mark != y->mark)
		return x->mark > y->mark ? 1 : -1;
	if (x->seam != y->seam)
		return x->seam > y->seam ? 1 : -1;
	return (x->i > y->i) - (x->i < y->i);
}

static int compare_hits(const void *a, const void *b)
{
	const struct hit *x = a, *y = b;
	if (x->seam != y->seam)
		return x->seam > y->seam ? 1 : -1;
	if (x->i != y->i)
		return x->i > y->i ? 1 : -1;
	return (x->where > y->where) - (x->where < y->where);
}

static int take_heads(struct search *s, struct error *e)
{
	struct sample_source line = lineage_line(s->a->lineage);
	struct sample_buffer *buffer = sample_buffer_new();
	struct sample_block b;
	int status = buffer ? RP_OK : fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory to read");

	s->heads.count = 0;
	for (size_t k = 0; k < s->a->seams.count && status == RP_OK; k++) {
		struct seam *m = &s->a->seams.items[k];
		m->head = m->inside < s->most ? m->inside : s->most;
		for (uint64_t i = 0; i < m->head && status == RP_OK; i += b.n) {
			status = line.read(&line, m->at + i, (size_t)(m->head - i), buffer, &b, e);
			for (size_t j = 0; j < b.n && status == RP_OK; j++) {
				struct head *h = array_push(&s->heads, (size_t)UINT32_MAX);
				if (!h) {
					status = fail(e, RP_E_MEMORY, ERROR_NO_OFFSET,
						"no memory for the samples after seams");
					break;
				}
				*h = (struct head){block_mark(s->ledger, &b, j), (uint32_t)k,
					(uint32_t)(i + j)};
			}
		}
	}
	sample_buffer_free(buffer);
	return status;
}

static int index_heads(struct search *s, struct error *e)
{
	size_t slots = 1024;

	if (s->heads.count > 1)
		qsort(s->heads.items, s->heads.count, sizeof *s->heads.items, compare_heads);
	while (slots < 4 * s->heads.count)
		slots *= 2;
	free(s->index);
	s->index = calloc(slots, sizeof *s->index);
	s->mask = slots - 1;
	if (!s->index)
		return fail(
			e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for the samples after seams");
	for (size_t i = 0; i < s->heads.count; i++) {
		if (i > 0 && s->heads.items[i].mark == s->heads.items[i - 1].mark)
			continue;
		size_t at = (size_t)mark_mix(s->heads.items[i].mark) & s->mask;
		while (s->index[at])
			at = (at + 1) & s->mask;
		s->index[at] = (uint32_t)i + 1;
	}
	return RP_OK;
}

static void add_hit(struct searcher *w, const struct head *h, uint64_t where)
{
	struct hit *hit = w->hits.count < HITS_MAX ? array_push(&w->hits, HITS_MAX) : NULL;

	if (hit)
		*hit = (struct hit){h->seam, h->i, where};
	else
		w->full = true;
}

/* All heads with the mark: `only` is the seam whose key is searched, or UINT32_MAX for the line. */
static inline void look_up(struct searcher *w, uint64_t mark, uint64_t where, uint32_t only)
{
	const struct search *s = w->s;
	size_t at = (size_t)mark_mix(mark) & s->mask;

	while (s->index[at] && s->heads.items[s->index[at] - 1].mark != mark)
		at = (at + 1) & s->mask;
	if (!s->index[at])
		return;
	for (size_t i = s->index[at] - 1; i < s->heads.count && s->heads.items[i].mark == mark;
		i++) {
		const struct head *h = &s->heads.items[i];
		if (only == UINT32_MAX ? where < s->a->seams.items[h->seam].at : h->seam == only)
			add_hit(w, h, only == UINT32_MAX ? where : where | KEY_BIT);
	}
}

static void search_rows(struct searcher *w, const struct sample_source *of, uint64_t first,
	uint64_t rows, uint64_t place, uint32_t only)
{
	struct sample_block b;

	for (uint64_t at = 0; at < rows && w->status >= 0 && !w->full; at += b.n) {
		w->status = of->read(of, first + at,
			rows - at < BLOCK ? (size_t)(rows - at) : BLOCK, w->buffer, &b, &w->error);
		if (w->status < 0)
			return;
		for (size_t i = 0; i < b.n; i++) {
			if (i + AHEAD < b.n)
				__builtin_prefetch(&w->s->index[mark_mix(block_mark(w->s->ledger,
									&b, i + AHEAD)) &
								w->s->mask]);
			look_up(w, block_mark(w->s->ledger, &b, i), place + at + i, only);
		}
	}
}

/* Each thread takes a share of the line before the last seam, and every so many of the keys. */
static void search_share(void *member)
{
	struct searcher *w = member;
	const struct alignments *a = w->s->a;
	struct sample_source line = lineage_line(a->lineage), all = ledger_samples(w->s->ledger);
	uint64_t rows = a->seams.count > 0 ? a->seams.items[a->seams.count - 1].at : 0;
	uint64_t share = rows / w->s->threads + 1, first = share * w->number;

	if (first < rows)
		search_rows(w, &line, first, rows - first < share ? rows - first : share, first,
			UINT32_MAX);
	for (size_t k = w->number; k < a->seams.count; k += w->s->threads) {
		const struct answer_key *key = &a->seams.items[k].key;
		uint64_t most = (uint64_t)1 << 24; /* a lag beyond that is no lag */
		if (key->origin != KEY_NONE)
			search_rows(w, &all, key->row, key->rows < most ? key->rows : most, 0,
				(uint32_t)k);
	}
}

/* All hits, sorted; false where there are too many. */
static int find_hits(
	struct search *s, struct hit **hits, size_t *count, bool *full, struct error *e)
{
	struct searcher *team = calloc(s->threads, sizeof *team);
	int status = RP_OK;

	*hits = NULL;
	*count = 0;
	*full = false;
	if (!team)
		return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for threads");
	for (unsigned i = 0; i < s->threads; i++) {
		team[i] = (struct searcher){
			.s = s, .number = i, .error = ERROR_INIT, .buffer = sample_buffer_new()};
		if (!team[i].buffer)
			status = fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory to read");
	}
	if (status == RP_OK)
		team_run(team, sizeof *team, s->threads, search_share);
	for (unsigned i = 0; i < s->threads; i++) {
		if (team[i].status < 0 && status == RP_OK) {
			*e = team[i].error;
			status = team[i].status;
		}
		*full = *full || team[i].full;
		*count += team[i].hits.count;
	}
	*full = *full || *count > HITS_MAX;
	if (status == RP_OK && !*full && *count > 0) {
		struct hit *all = malloc(size_mul(*count, sizeof *all));
		if (!all)
			status = fail(
				e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for places of samples");
		size_t n = 0;
		for (unsigned i = 0; i < s->threads && all; i++) {
			if (team[i].hits.count > 0)
				memcpy(all + n, team[i].hits.items,
					team[i].hits.count * sizeof *all);
			n += team[i].hits.count;
		}
		if (all)
			qsort(all, n, sizeof *all, compare_hits);
		*hits = all;
	}
	for (unsigned i = 0; i < s->threads; i++) {
		sample_buffer_free(team[i].buffer);
		array_release(&team[i].hits);
	}
	free(team);
	return status;
}

/* Votes ---------------------------------------------------------------------------------------- */

enum hit_class {
	HIT_AGAIN,
	HIT_BEFORE,
	HIT_AHEAD,
};

static enum hit_class class_of(const struct seam *s, const struct hit *h)
{
	if (h->where & KEY_BIT)
		return HIT_AHEAD;
	return h->where >= s->at - s->behind ? HIT_AGAIN : HIT_BEFORE;
}

struct vote {
	int64_t offset;
	uint32_t i;
};

static int compare_votes(const void *a, const void *b)
{
	const struct vote *x = a, *y = b;
	if (x->offset != y->offset)
		return x->offset > y->offset ? 1 : -1;
	return (x->i > y->i) - (x->i < y->i);
}

/*
 * The offset with the most votes; of several with as many `home`, which is that of the epoch's
 * start (after the second replay from the top, the first one is as good a source), else the nearest
 * one.
 */
static void count_votes(struct vote *votes, size_t count, int64_t home, struct alignment *best)
{
	qsort(votes, count, sizeof *votes, compare_votes);
	best->votes = 0;
	for (size_t i = 0; i < count;) {
		size_t end = i;
		while (end < count && votes[end].offset == votes[i].offset)
			end++;
		bool nearer =
			best->offset != home &&
			(votes[i].offset == home || llabs(votes[i].offset) < llabs(best->offset));
		if (end - i > best->votes || (end - i == best->votes && nearer)) {
			best->votes = end - i;
			best->offset = votes[i].offset;
			best->first = votes[i].i;
		}
		i = end;
	}
}

/* Steps of the line before each part, and where samples stand. */
struct ranks {
	const struct lineage *g;
	struct place_index places;
	uint64_t *steps_before; /* of each part of the line */
};

/* Where a sample is in what its rank reads: `place` counts samples of that rank as if all steps
 * were like its own. */
struct rank_place {
	uint32_t dp, n; /* rank, and its samples in the step */
	uint32_t ranks;
	int64_t place;
};

static struct rank_place rank_place_of(
	const struct ranks *r, struct sample_place p, int64_t ordinal)
{
	const struct ledger *l = r->g->ledger;
	const struct ledger_geometry *g = &l->geometries.items[l->steps.items[p.step].geometry];
	struct rank_place x = {.dp = p.of->dp, .ranks = g->ranks};
	uint32_t before = 0;

	for (uint32_t k = 0; k < g->parts; k++) {
		const struct ledger_part *part = &l->parts.items[g->first + k];
		if (part->dp != x.dp)
			continue;
		if (k < p.part)
			before += part->n;
		x.n += part->n;
	}
	x.place = ordinal * (int64_t)x.n + before + p.slot;
	return x;
}

static struct rank_place place_on_line(const struct ranks *r, uint64_t at)
{
	size_t k = lineage_part_at(r->g, at);
	const struct line_part *p = &r->g->line.items[k];
	struct sample_place s = place_in(&r->places, line_row(p, at), p->first, p->steps);

	return rank_place_of(r, s, (int64_t)(r->steps_before[k] + (s.step - p->first)));
}

static struct rank_place place_in_key(const struct ranks *r, const struct seam *m, uint64_t at)
{
	struct sample_place s = place_in(&r->places, m->key.row + at, m->key.first, m->key.steps);

	return rank_place_of(r, s, (int64_t)(r->steps_before[m->part] + (s.step - m->key.first)));
}

/* Votes within ranks, in samples of all ranks. */
static size_t rank_votes(const struct ranks *r, const struct seam *m, const struct hit *hits,
	size_t count, enum hit_class class, struct vote *votes)
{
	size_t n = 0;

	for (size_t k = 0; k < count; k++) {
		if (class_of(m, &hits[k]) != class ||
			(class == HIT_AGAIN && hits[k].i >= m->padded))
			continue;
		struct rank_place own = place_on_line(r, m->at + hits[k].i);
		struct rank_place other = class == HIT_AHEAD
						  ? place_in_key(r, m, hits[k].where & ~KEY_BIT)
						  : place_on_line(r, hits[k].where);
		if (own.dp == other.dp && own.n == other.n)
			votes[n++] = (struct vote){
				(other.place - own.place) * (int64_t)own.ranks, hits[k].i};
	}
	return n;
}

static uint32_t samples_of_step(const struct ranks *r, uint64_t at)
{
	const struct line_part *p = &r->g->line.items[lineage_part_at(r->g, at)];

	return r->g->ledger->steps.items[ledger_step_of_row(r->g->ledger, line_row(p, at))].n;
}

/*
 * Steps of another size, or shared out otherwise, hold the same samples in other places: the
 * offsets then scatter within a step around the true one, which is their mean.
 */
static void count_by_step(const struct ranks *r, const struct seam *m, const struct vote *votes,
	size_t count, struct alignment *best)
{
	uint64_t own = samples_of_step(r, m->at), before = samples_of_step(r, m->at - 1);
	int64_t width = (int64_t)(own > before ? own : before);
	uint32_t *in_window = calloc(m->head + 1, sizeof *in_window);
	uint64_t heads = 0;

	/* Where little lies behind, any order would do. */
	if (!in_window || m->behind < 4 * (uint64_t)width || best->heads < own) {
		free(in_window);
		return;
	}
	for (size_t first = 0, end = 0; first < count; first++) {
		while (end < count && votes[end].offset - votes[first].offset <= width)
			heads += in_window[votes[end++].i]++ == 0;
		if (heads > best->votes) {
			int64_t sum = 0;
			best->votes = heads;
			best->first = UINT64_MAX;
			for (size_t i = first; i < end; i++) {
				sum += votes[i].offset - votes[first].offset;
				best->first = votes[i].i < best->first ? votes[i].i : best->first;
			}
			int64_t n = (int64_t)(end - first);
			best->offset = votes[first].offset + (sum + n / 2) / n;
			best->by_step = true;
		}
		heads -= --in_window[votes[first].i] == 0;
	}
	free(in_window);
}

static void align_class(const struct ranks *r, const struct seam *m, const struct hit *hits,
	size_t count, enum hit_class class, struct vote *votes, struct alignment *out)
{
	size_t n = 0;
	uint32_t last = UINT32_MAX;
	int64_t home = class == HIT_AGAIN ? -(int64_t)m->behind : INT64_MAX;

	*out = (struct alignment){0};
	for (size_t k = 0; k < count; k++) {
		if (class_of(m, &hits[k]) != class ||
			(class == HIT_AGAIN && hits[k].i >= m->padded))
			continue;
		out->heads += hits[k].i != last;
		last = hits[k].i;
		int64_t own = class == HIT_AHEAD ? hits[k].i : (int64_t)(m->at + hits[k].i);
		votes[n++] = (struct vote){(int64_t)(hits[k].where & ~KEY_BIT) - own, hits[k].i};
	}
	if (n == 0)
		return;
	count_votes(votes, n, home, out);
	if (align_in_order(out))
		return;
	struct alignment by_step = {.heads = out->heads};
	if (class == HIT_AGAIN)
		count_by_step(r, m, votes, n, &by_step);
	struct alignment by_rank = {.heads = out->heads, .by_rank = true};
	n = rank_votes(r, m, hits, count, class, votes);
	if (n > 0)
		count_votes(votes, n, home, &by_rank);
	if (by_rank.votes > out->votes)
		*out = by_rank;
	if (!align_in_order(out) && align_in_order(&by_step))
		*out = by_step;
}

uint64_t align_source(const struct seam *s, const struct alignment *a)
{
	return s->at + a->first + (uint64_t)a->offset;
}

bool align_in_order(const struct alignment *a)
{
	return a->run >= RUN_PROVES ||
	       (a->votes > 0 && (double)a->votes >= IN_ORDER * (double)a->heads);
}

/* Verifying ------------------------------------------------------------------------------------ */

struct side {
	const struct sample_source *of;
	struct sample_buffer *buffer;
	struct sample_block block;
	size_t used;
	uint64_t next;
};

static int side_fill(struct side *s, uint64_t want, struct error *e)
{
	if (s->used < s->block.n)
		return RP_OK;
	int status = s->of->read(
		s->of, s->next, want < BLOCK ? (size_t)want : BLOCK, s->buffer, &s->block, e);
	s->used = 0;
	s->next += s->block.n;
	return status;
}

int64_t align_run(const struct sample_source *x, uint64_t a, const struct sample_source *y,
	uint64_t b, uint64_t most, const struct ledger *l, struct error *e)
{
	struct side one = {.of = x, .buffer = sample_buffer_new(), .next = a},
		    two = {.of = y, .buffer = sample_buffer_new(), .next = b};
	uint64_t run = 0;
	bool equal = true;
	int status = one.buffer && two.buffer
			     ? RP_OK
			     : fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory to read");

	if (a >= x->rows || b >= y->rows)
		most = 0;
	most = most < x->rows - a ? most : x->rows - a;
	most = most < y->rows - b ? most : y->rows - b;
	while (run < most && equal && status == RP_OK) {
		status = side_fill(&one, most - run, e);
		if (status == RP_OK)
			status = side_fill(&two, most - run, e);
		while (status == RP_OK && equal && one.used < one.block.n &&
			two.used < two.block.n) {
			equal = block_mark(l, &one.block, one.used) ==
				block_mark(l, &two.block, two.used);
			run += equal;
			one.used++;
			two.used++;
		}
	}
	sample_buffer_free(one.buffer);
	sample_buffer_free(two.buffer);
	return status < 0 ? status : (int64_t)run;
}

static int verify(struct alignments *a, struct seam *m, struct alignment *x, enum hit_class class,
	struct error *e)
{
	struct sample_source line = lineage_line(a->lineage),
			     all = ledger_samples(a->lineage->ledger);
	int64_t run;

	if ((!align_in_order(x) && x->votes < RUN_PROVES) || x->by_rank || x->by_step)
		return RP_OK;
	uint64_t own = m->at + x->first, left = m->rows - x->first;
	if (class == HIT_AHEAD) {
		uint64_t lag = x->first + (uint64_t)x->offset, most = m->key.rows - lag;
		run = align_run(&line, own, &all, m->key.row + lag, left < most ? left : most,
			a->lineage->ledger, e);
	} else {
		uint64_t source = own - (uint64_t)-x->offset, most = m->at - source;
		run = align_run(&line, own, &line, source, left < most ? left : most,
			a->lineage->ledger, e);
	}
	if (run < 0)
		return (int)run;
	x->run = (uint64_t)run;
	return RP_OK;
}

/* The sum of whole steps of the line; false where the stretch is not made of some. */
static bool sum_of_steps(const struct lineage *g, uint64_t at, uint64_t rows, uint64_t sum[2])
{
	const struct ledger_step *steps = g->ledger->steps.items;

	sum[0] = sum[1] = 0;
	for (size_t k = lineage_part_at(g, at); rows > 0 && k < g->line.count; k++) {
		const struct line_part *p = &g->line.items[k];
		for (uint32_t i = ledger_step_of_row(g->ledger, line_row(p, at)) - p->first;
			rows > 0 && i < p->steps; i++) {
			const struct ledger_step *s = &steps[p->first + i];
			if (line_row(p, at) != s->row || s->n > rows)
				return false;
			identity_sum(sum, s->sum);
			at += s->n;
			rows -= s->n;
		}
	}
	return rows == 0;
}

/* Whether the epoch had the order of that earlier one before the seam too, place by place. */
static int check_followed(struct alignments *a, struct seam *m, struct error *e)
{
	struct sample_source line = lineage_line(a->lineage);
	uint64_t most = m->behind < HEAD_MOST ? m->behind : HEAD_MOST;

	if (!align_in_order(&m->before))
		return RP_OK;
	uint64_t source = align_source(m, &m->before);
	m->earlier = tally_epoch_at(a->tally, source);
	const struct line_epoch *earlier = &a->tally->epochs.items[m->earlier];
	uint64_t distance = m->at - m->behind - earlier->at;
	m->lag = m->before.offset + (int64_t)distance;
	if (most == 0 || m->behind > earlier->rows)
		return RP_OK;
	int64_t run = align_run(
		&line, m->at - most, &line, m->at - most - distance, most, a->lineage->ledger, e);
	if (run < 0)
		return (int)run;
	m->followed = (uint64_t)run == most;
	/* Placed on other ranks the samples are the same. */
	uint64_t own[2], other[2];
	if (!m->followed && sum_of_steps(a->lineage, m->at - m->behind, m->behind, own) &&
		sum_of_steps(a->lineage, earlier->at, m->behind, other))
		m->followed = own[0] == other[0] && own[1] == other[1];
	return RP_OK;
}

static int align_seam(struct alignments *a, const struct ranks *r, struct seam *m,
	const struct hit *hits, size_t count, struct error *e)
{
	struct vote *votes = malloc(size_mul(count + 1, sizeof *votes));
	int status;

	if (!votes)
		return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for votes");
	align_class(r, m, hits, count, HIT_AGAIN, votes, &m->again);
	align_class(r, m, hits, count, HIT_BEFORE, votes, &m->before);
	align_class(r, m, hits, count, HIT_AHEAD, votes, &m->ahead);
	free(votes);
	status = verify(a, m, &m->again, HIT_AGAIN, e);
	if (status == RP_OK)
		status = verify(a, m, &m->before, HIT_BEFORE, e);
	if (status == RP_OK)
		status = verify(a, m, &m->ahead, HIT_AHEAD, e);
	return status == RP_OK ? check_followed(a, m, e) : status;
}

static int ranks_init(struct ranks *r, const struct lineage *g, struct error *e)
{
	uint64_t steps = 0;

	*r = (struct ranks){
		.g = g, .steps_before = calloc(g->line.count + 1, sizeof *r->steps_before)};
	if (!r->steps_before)
		return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for the line's parts");
	for (size_t i = 0; i < g->line.count; i++) {
		r->steps_before[i] = steps;
		steps += g->line.items[i].steps;
	}
	return place_index_init(&r->places, g->ledger, e);
}

static void find_seams(struct alignments *a)
{
	const struct lineage *g = a->lineage;
	const struct tally *t = a->tally;
	struct answer_references references = answer_references(g->ledger);

	for (size_t i = 1; i < g->line.count; i++) {
		const struct line_part *p = &g->line.items[i];
		struct seam *m = array_push(&a->seams, SEAMS_MAX);
		if (!m)
			return;
		*m = (struct seam){.part = i,
			.from = p[-1].attempt,
			.to = p->attempt,
			.at = p->at,
			.rows = p->rows,
			.epoch = tally_epoch_at(t, p->at)};
		const struct line_epoch *epoch = &t->epochs.items[m->epoch];
		m->opens = epoch->at == m->at;
		m->behind = m->at - epoch->at;
		uint64_t end = epoch->at + epoch->rows;
		m->inside = end - m->at < m->rows ? end - m->at : m->rows;
		m->torn = g->attempts.items[p->attempt].gap > 0;
		/* More repeats than fill a step are a replay that reaches the epoch's end. */
		m->padded = epoch->tail_across > 0 && epoch->tail_across <= t->padding &&
					    epoch->tail > m->at
				    ? epoch->tail - m->at
				    : UINT64_MAX;
		m->key = answer_find(g, m->to, &references);
		if (m->key.origin != KEY_NONE)
			m->match = answer_match(&g->ledger->steps.items[p->first], p->steps,
				&g->ledger->steps.items[m->key.first], m->key.steps);
	}
}

/* A key that ends inside the first step, of another size: none of its samples are in it, or near.
 */
static void refute_short_key(const struct alignments *a, struct seam *m)
{
	struct key_match *k = &m->match;

	if (m->key.origin == KEY_NONE || k->same > 0 || k->differs || m->key.rows == 0 ||
		m->ahead.heads > 0 || m->head < 2 * m->key.rows)
		return;
	k->differs = true;
	k->at = k->key_at = 0;
	k->step = a->lineage->ledger->steps.items[a->lineage->line.items[m->part].first].step;
}

int align_seams(struct alignments *a, const struct lineage *g, const struct tally *t,
	unsigned threads, struct error *e)
{
	struct search s = {.a = a, .ledger = g->ledger, .threads = threads, .most = HEAD_MOST};
	struct ranks ranks = {0};
	struct hit *hits = NULL;
	size_t count = 0, at = 0;
	bool full = true;
	int status = RP_OK;

	*a = (struct alignments){.lineage = g, .tally = t};
	find_seams(a);
	if (a->seams.count + 1 < g->line.count)
		return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for the seams");
	if (a->seams.count == 0)
		return RP_OK;
	while (s.most > HEAD_LEAST && a->seams.count > HEADS_MAX / s.most)
		s.most /= 2;
	for (; full && status == RP_OK; s.most /= 2) {
		free(hits);
		status = take_heads(&s, e);
		if (status == RP_OK)
			status = index_heads(&s, e);
		if (status == RP_OK)
			status = find_hits(&s, &hits, &count, &full, e);
		if (s.most <= 1 && full) {
			count = 0;
			break;
		}
	}
	if (status == RP_OK)
		status = ranks_init(&ranks, g, e);
	for (uint32_t k = 0; k < a->seams.count && status == RP_OK; k++) {
		size_t first = at;
		while (at < count && hits[at].seam == k)
			at++;
		if (at > first)
			status = align_seam(
				a, &ranks, &a->seams.items[k], hits + first, at - first, e);
		refute_short_key(a, &a->seams.items[k]);
	}
	place_index_release(&ranks.places);
	free(ranks.steps_before);
	free(hits);
	free(s.index);
	array_release(&s.heads);
	return status;
}

void align_release(struct alignments *a)
{
	array_release(&a->seams);
}
