/* SPDX-License-Identifier: MIT */
#define XXH_INLINE_ALL
#include "recorder/step_block.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/identity.h"
#include "base/journal.h"

bool samples_init(struct samples *of, const struct rp_record_options *o)
{
	of->dp = o->dp;
	of->source_count = o->source_count;
	of->spaces = calloc(o->source_count + 1, sizeof *of->spaces);
	if (!of->spaces)
		return false;
	for (size_t i = 0; i <= o->source_count; i++)
		of->spaces[i] = identity_space(o->dataset, o->unit, o->order,
			i < o->source_count ? o->sources[i].name : NULL, o->keys);
	return true;
}

void samples_release(struct samples *of)
{
	free(of->spaces);
	free(of->wide);
}

const char *step_block_fault(const struct samples *of, const struct rp_record_step *s)
{
	if (s->step < 0)
		return "a step's number is below zero";
	if (s->n && !s->ids)
		return "a step has samples but no ids";
	if (s->n > UINT32_MAX)
		return "a step has more than 2^32 samples";
	if (s->source >= 0 && (size_t)s->source >= of->source_count)
		return "a step's source is not one of those that were declared";
	for (size_t i = 0; s->sources && i < s->n; i++)
		if (s->sources[i] >= of->source_count)
			return "a sample's source is not one of those that were declared";
	if (s->micro_count > UINT16_MAX || (s->micro_count && !s->micro))
		return "a step's micro-batches make no sense";
	uint64_t sum = 0;
	for (size_t i = 0; i < s->micro_count; i++)
		sum += s->micro[i];
	if (s->micro_count && sum != s->n)
		return "a step's micro-batches do not add up to its samples";
	return NULL;
}

/* Columns. ---------------------------------------------------------------------------------------
 */

static uint64_t double_bits(double v)
{
	uint64_t bits;
	memcpy(&bits, &v, sizeof bits);
	return bits;
}

/* Room for a column of n values, widened. */
static uint64_t *column_room(struct samples *of, size_t n)
{
	if (n > of->capacity) {
		uint64_t *grown = realloc(of->wide, n * sizeof *grown);
		if (!grown)
			return NULL;
		of->wide = grown;
		of->capacity = n;
	}
	return of->wide;
}

static bool put_keys(struct block *b, const int64_t *ids, size_t n)
{
	/* int64_t and uint64_t may alias; ids below zero wrap and come back. */
	return block_column(b, JOURNAL_KEYS, (const uint64_t *)ids, n);
}

static bool put_sources(
	struct samples *of, struct block *b, const struct rp_record_step *s, size_t from, size_t n)
{
	if (!s->sources)
		return s->source < 0 || block_value(b, JOURNAL_SOURCES, (uint64_t)s->source);
	uint64_t *v = column_room(of, n);
	for (size_t i = 0; v && i < n; i++)
		v[i] = s->sources[from + i];
	return v && block_column(b, JOURNAL_SOURCES, v, n);
}

static bool put_tokens(
	struct samples *of, struct block *b, const struct rp_record_step *s, size_t from, size_t n)
{
	if (!s->tokens)
		return true;
	uint64_t *v = column_room(of, n);
	for (size_t i = 0; v && i < n; i++)
		v[i] = s->tokens[from + i];
	return v && block_column(b, JOURNAL_TOKENS, v, n);
}

static bool put_losses(
	struct samples *of, struct block *b, const struct rp_record_step *s, size_t from, size_t n)
{
	if (!s->losses)
		return true;
	uint64_t *v = column_room(of, n);
	for (size_t i = 0; v && i < n; i++) {
		uint32_t bits;
		memcpy(&bits, s->losses + from + i, sizeof bits);
		v[i] = bits;
	}
	return v && block_column(b, JOURNAL_LOSSES, v, n);
}

static bool put_micro(struct samples *of, struct block *b, const struct rp_record_step *s)
{
	if (!s->micro || s->micro_count < 2)
		return true;
	uint64_t *v = column_room(of, s->micro_count);
	for (size_t i = 0; v && i < s->micro_count; i++)
		v[i] = s->micro[i];
	return v && block_column(b, JOURNAL_MICRO, v, s->micro_count);
}

/* What there is one of per step; it stands in the step's first block. */
static bool put_scalars(struct samples *of, struct block *b, const struct rp_record_step *s)
{
	bool ok = put_micro(of, b, s);
	if (s->step_tokens)
		ok = ok && block_value(b, JOURNAL_STEP_TOKENS, s->step_tokens);
	if (!isnan(s->loss))
		ok = ok && block_value(b, JOURNAL_STEP_LOSS, double_bits(s->loss));
	if (!isnan(s->lr))
		ok = ok && block_value(b, JOURNAL_STEP_LR, double_bits(s->lr));
	if (!isnan(s->grad_norm))
		ok = ok && block_value(b, JOURNAL_STEP_GRAD_NORM, double_bits(s->grad_norm));
	if (s->position >= 0)
		ok = ok && block_value(b, JOURNAL_STEP_POSITION, (uint64_t)s->position);
	if (s->flags & RP_RECORD_SKIPPED)
		ok = ok && block_value(b, JOURNAL_STEP_SKIPPED, 1);
	return ok;
}

/* Digests. ---------------------------------------------------------------------------------------
 */

static uint64_t space_of(const struct samples *of, const struct rp_record_step *s, size_t i)
{
	int64_t source = s->sources ? s->sources[i] : s->source;
	return of->spaces[source < 0 ? of->source_count : (size_t)source];
}

/* Add rows [from, end) of one micro-batch to the sum, and go on with the chain. */
static void digest_part(const struct samples *of, const struct rp_record_step *s, size_t from,
	size_t end, struct step_digests *d)
{
	uint64_t sum[2] = {d->sum[0], d->sum[1]}, chain = d->chain, space = space_of(of, s, from);

	for (size_t i = from; i < end; i++) {
		if (s->sources)
			space = of->spaces[s->sources[i]];
		XXH128_hash_t h = identity_hash(space, (uint64_t)s->ids[i]);
		chain = identity_chain(chain, h);
		identity_add(sum, h);
	}
	*d = (struct step_digests){.sum = {sum[0], sum[1]}, .chain = chain};
}

/* Of rows [from, from + n): their sum, and the call's chain to their end. */
static struct step_digests digest_rows(
	const struct samples *of, const struct rp_record_step *s, size_t from, size_t n)
{
	struct step_digests d = {.chain = from == 0 ? 0 : of->chain};
	size_t begins = 0, at = from;

	for (uint32_t k = 0; at < from + n; k++) {
		size_t ends = k < s->micro_count ? begins + s->micro[k] : s->n;
		size_t end = ends < from + n ? ends : from + n;
		if (at == begins && at < end)
			d.chain = identity_chain_part(d.chain, of->dp, (uint16_t)k);
		if (at < end)
			digest_part(of, s, at, end, &d);
		at = at < end ? end : at;
		begins = ends;
	}
	return d;
}

int step_block_fill(const struct rp_record_step *s, size_t from, size_t n, struct samples *of,
	struct block *b, struct step_digests *digests)
{
	struct step_digests d = digest_rows(of, s, from, n);

	block_begin(b);
	if (!block_reserve(b, JOURNAL_STEP_BYTES))
		return ENOMEM;
	b->used += JOURNAL_STEP_BYTES;
	bool ok = n == 0 || (put_keys(b, s->ids + from, n) && put_sources(of, b, s, from, n) &&
				    put_tokens(of, b, s, from, n) && put_losses(of, b, s, from, n));
	if (from == 0)
		ok = ok && put_scalars(of, b, s);
	if (!ok)
		return ENOMEM;
	uint8_t *p = b->p + JOURNAL_HEAD_BYTES;
	little_endian(p, (uint64_t)s->step, 8);
	little_endian(p + 8, of->rows, 8);
	little_endian(p + 16, d.sum[0], 8);
	little_endian(p + 24, d.sum[1], 8);
	little_endian(p + 32, d.chain, 8);
	little_endian(p + 40, (uint32_t)s->epoch, 4);
	little_endian(p + 44, s->micro_count ? s->micro_count : 1, 2);
	little_endian(p + 46, b->columns, 2);
	*digests = d;
	return 0;
}

void step_block_written(struct samples *of, size_t n, const struct step_digests *d)
{
	identity_sum(of->sum, d->sum);
	of->chain = d->chain;
	of->rows += n;
}
