/* SPDX-License-Identifier: MIT */
#include "ledger/search.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/text.h"

static int no_memory(struct error *e)
{
	return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory to search the sample log");
}

struct search_key search_id(struct slice id)
{
	struct search_key k = {.has = {[KEY_TEXT] = true}};

	k.key[KEY_TEXT] = XXH3_64bits(id.p, id.n);
	k.has[KEY_ID] = text_parse_u64(id, UINT64_MAX, &k.key[KEY_ID]);
	return k;
}

struct search_key search_hash(uint64_t hash)
{
	return (struct search_key){.has = {[KEY_TEXT] = true, [KEY_CONTENT] = true},
		.key = {[KEY_TEXT] = hash, [KEY_CONTENT] = hash}};
}

int search_lines_build(struct search_lines *s, const struct ledger *l,
	const struct lineage_told *told, size_t told_count, struct error *e)
{
	*s = (struct search_lines){0};
	for (unsigned kind = 0; kind < 4; kind++) {
		if (lineage_build(&s->of[kind], l, (enum attempt_kind)kind, told,
			    kind == ATTEMPT_TRAIN ? told_count : 0, e) < 0) {
			search_lines_release(s);
			return e->status;
		}
		s->built[kind] = true;
	}
	return RP_OK;
}

void search_lines_release(struct search_lines *s)
{
	for (unsigned kind = 0; kind < 4; kind++)
		if (s->built[kind])
			lineage_release(&s->of[kind]);
	*s = (struct search_lines){0};
}

bool search_alive(const struct search_lines *s, const struct ledger *l, uint32_t step)
{
	uint32_t attempt = l->steps.items[step].attempt;
	const struct ledger_attempt *a = &l->attempts.items[attempt];

	return step - a->first < s->of[a->kind].attempts.items[attempt].alive;
}

/* Finding -------------------------------------------------------------------------------------- */

struct finder {
	const struct ledger *l;
	const struct search_lines *lines;
	const struct search_key *key;
	const struct place_index *places;
	struct search_hits *out;
	size_t keep;
	struct error *e;
};

static int add_hit(struct finder *f, uint64_t row, uint16_t space)
{
	const struct ledger *l = f->l;

	if (f->out->total++ >= f->keep)
		return RP_OK;
	uint32_t step = ledger_step_of_row(l, row);
	struct sample_place p = place_in(f->places, row, step, 1);
	struct search_hit *h = array_push(&f->out->list, SIZE_MAX);
	if (!h)
		return no_memory(f->e);
	*h = (struct search_hit){.row = row,
		.step = step,
		.part = *p.of,
		.slot = p.slot,
		.space = space,
		.alive = search_alive(f->lines, l, step)};
	return RP_OK;
}

static int look_at(struct finder *f, const struct sample_block *b)
{
	for (size_t i = 0; i < b->n; i++) {
		uint64_t key = b->keys[i];
		/* Nearly no sample is wanted, so the kinds are only looked at behind that. */
		if (key != f->key->key[0] && key != f->key->key[1] && key != f->key->key[2])
			continue;
		uint16_t space = b->spaces ? b->spaces[i] : 0;
		uint8_t kind = f->l->spaces.items[space].kind;
		if (f->key->has[kind] && f->key->key[kind] == key &&
			add_hit(f, b->row + i, space) < 0)
			return f->e->status;
	}
	return RP_OK;
}

int search_find(struct search_hits *out, const struct ledger *l, const struct search_lines *lines,
	const struct search_key *key, size_t keep, struct error *e)
{
	struct place_index places;
	struct sample_source source = ledger_samples(l);
	struct sample_block block;
	struct finder f = {.l = l,
		.lines = lines,
		.key = key,
		.places = &places,
		.out = out,
		.keep = keep,
		.e = e};

	*out = (struct search_hits){0};
	if (place_index_init(&places, l, e) < 0)
		return e->status;
	struct sample_buffer *buffer = sample_buffer_new();
	int status = buffer ? RP_OK : no_memory(e);
	for (uint64_t row = 0; status == RP_OK && row < source.rows; row += block.n) {
		status = source.read(&source, row, SIZE_MAX, buffer, &block, e);
		if (status == RP_OK)
			status = look_at(&f, &block);
	}
	sample_buffer_free(buffer);
	place_index_release(&places);
	if (status < 0)
		search_hits_release(out);
	return status;
}

void search_hits_release(struct search_hits *h)
{
	array_release(&h->list);
}

/* Sources -------------------------------------------------------------------------------------- */

static const struct ledger_share *share_of(
	const struct ledger *l, const struct ledger_step *s, uint32_t source)
{
	for (uint32_t i = 0; i < s->shares; i++)
		if (l->shares.items[s->first_share + i].source == source)
			return &l->shares.items[s->first_share + i];
	return NULL;
}

static void count_step(struct search_consumed *out, const struct ledger *l,
	const struct ledger_step *s, uint32_t source)
{
	const struct ledger_share *share = share_of(l, s, source);

	out->of += s->n;
	if (!share || share->n == 0)
		return;
	out->samples += share->n;
	out->tokens += share->tokens;
	if (out->first_step == LEDGER_NO_STEP)
		out->first_step = s->step;
	out->last_step = s->step;
}

/* The bits of a source's ids: one for each up to the largest; NULL where that is too much. */
static uint64_t *bitmap(
	const struct ledger *l, uint32_t source, uint64_t memory, int *spaces, uint16_t *space)
{
	*spaces = 0;
	for (size_t i = 0; i < l->spaces.count; i++)
		if (l->spaces.items[i].source == source) {
			*space = (uint16_t)i;
			(*spaces)++;
		}
	if (*spaces != 1 || l->spaces.items[*space].kind != KEY_ID ||
		l->spaces.items[*space].max_key / 8 >= memory)
		return NULL;
	return calloc((size_t)(l->spaces.items[*space].max_key / 64) + 1, sizeof(uint64_t));
}

/* Different ids of a space in rows. */
static int count_rows(const struct ledger *l, uint64_t row, uint64_t rows, uint16_t space,
	uint64_t *bits, uint64_t *distinct, struct error *e)
{
	struct sample_source source = ledger_samples(l);
	struct sample_buffer *buffer = sample_buffer_new();
	struct sample_block b;
	int status = buffer ? RP_OK : no_memory(e);

	for (uint64_t end = row + rows; status == RP_OK && row < end; row += b.n) {
		status = source.read(&source, row, (size_t)(end - row), buffer, &b, e);
		for (size_t i = 0; status == RP_OK && i < b.n; i++) {
			if (b.spaces && b.spaces[i] != space)
				continue;
			uint64_t *word = &bits[b.keys[i] / 64], bit = (uint64_t)1 << b.keys[i] % 64;
			*distinct += !(*word & bit);
			*word |= bit;
		}
	}
	sample_buffer_free(buffer);
	return status;
}

int search_consumed(struct search_consumed *out, const struct ledger *l,
	const struct search_lines *lines, uint32_t source, int64_t until, uint64_t memory,
	struct error *e)
{
	const struct lineage *g = &lines->of[ATTEMPT_TRAIN];
	int spaces, status = RP_OK;
	uint16_t space = 0;
	uint64_t *bits = bitmap(l, source, memory, &spaces, &space);

	*out = (struct search_consumed){.first_step = LEDGER_NO_STEP, .last_step = LEDGER_NO_STEP};
	for (size_t i = 0; i < g->line.count && status == RP_OK; i++) {
		const struct line_part *p = &g->line.items[i];
		uint64_t rows = 0;
		for (uint32_t k = 0; k < p->steps; k++) {
			const struct ledger_step *s = &l->steps.items[p->first + k];
			if (s->step > until)
				break;
			count_step(out, l, s, source);
			rows += s->n;
		}
		if (bits)
			status = count_rows(l, p->row, rows, space, bits, &out->distinct, e);
	}
	for (size_t i = 0; i < g->dead.count; i++)
		for (uint32_t k = 0; k < g->dead.items[i].steps; k++) {
			const struct ledger_step *s = &l->steps.items[g->dead.items[i].first + k];
			const struct ledger_share *share =
				s->step <= until ? share_of(l, s, source) : NULL;
			out->dead += share ? share->n : 0;
		}
	free(bits);
	return status;
}
