/* SPDX-License-Identifier: MIT */
#include "support/ledgers.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static char what[300];

/* Bytes, so that NANs are equal. */
static bool differ(const void *a, const void *b, size_t n)
{
	return n > 0 && memcmp(a, b, n) != 0;
}

#define SAME(x, member)                                                                            \
	do {                                                                                       \
		if (differ(&(x##a)->member, &(x##b)->member, sizeof(x##a)->member))                \
			return #member;                                                            \
	} while (0)
#define SAME_TEXT(x, member)                                                                       \
	do {                                                                                       \
		if (strcmp((x##a)->member, (x##b)->member) != 0)                                   \
			return #member;                                                            \
	} while (0)

static const char *attempt(
	const struct ledger *la, const struct ledger *lb, size_t i, enum ledgers_part part)
{
	const struct ledger_attempt *xa = &la->attempts.items[i], *xb = &lb->attempts.items[i];

	SAME(x, number);
	SAME(x, again);
	SAME(x, first);
	SAME(x, steps);
	SAME(x, row);
	SAME(x, rows);
	SAME(x, first_step);
	SAME(x, last_step);
	if (part == LEDGERS_SAMPLES)
		return NULL;
	SAME(x, kind);
	SAME(x, implied);
	SAME_TEXT(x, launch);
	SAME_TEXT(x, code);
	SAME_TEXT(x, versions);
	SAME_TEXT(x, config);
	SAME(x, from_step);
	SAME(x, from_attempt);
	SAME_TEXT(x, from_path);
	SAME_TEXT(x, from_digest);
	SAME(x, world);
	SAME(x, dp);
	SAME(x, global_batch);
	SAME(x, micro_batch);
	SAME(x, accumulation);
	SAME(x, workers);
	SAME(x, prefetch);
	SAME(x, epoch);
	SAME(x, seed);
	SAME(x, has_seed);
	SAME(x, drop_last);
	SAME(x, weights);
	SAME_TEXT(x, end);
	SAME(x, end_step);
	for (uint32_t k = 0; k < xa->weights; k++)
		if (differ(&la->weights.items[xa->first_weight + k].weight,
			    &lb->weights.items[xb->first_weight + k].weight, sizeof(double)))
			return "weight";
	const struct ledger_intent *ia = &xa->intent, *ib = &xb->intent;
	SAME(i, any);
	SAME(i, seed);
	SAME(i, lr);
	SAME(i, weights);
	SAME(i, batch);
	SAME(i, order);
	SAME(i, world);
	SAME(i, code);
	SAME(i, rewarmup);
	SAME(i, seed_from);
	SAME(i, seed_to);
	SAME(i, lr_from);
	SAME(i, lr_to);
	SAME(i, batch_from);
	SAME(i, batch_to);
	SAME(i, skips);
	for (uint32_t k = 0; k < ia->skips; k++) {
		const struct ledger_skip *ka = &la->skips.items[ia->first_skip + k],
					 *kb = &lb->skips.items[ib->first_skip + k];
		SAME(k, from);
		SAME(k, to);
		SAME(k, samples);
		SAME(k, new_order);
	}
	return NULL;
}

static const char *source_of(const struct ledger *l, uint32_t source)
{
	return source == LEDGER_NONE ? "" : l->sources.items[source].name;
}

/* Sources may be numbered otherwise. */
static const char *shares(const struct ledger *la, const struct ledger *lb,
	const struct ledger_step *a, const struct ledger_step *b)
{
	if (a->shares != b->shares)
		return "shares";
	for (uint32_t i = 0; i < a->shares; i++) {
		const struct ledger_share *xa = &la->shares.items[a->first_share + i], *xb = NULL;
		for (uint32_t k = 0; k < b->shares; k++) {
			const struct ledger_share *y = &lb->shares.items[b->first_share + k];
			if (strcmp(source_of(la, xa->source), source_of(lb, y->source)) == 0)
				xb = y;
		}
		if (!xb)
			return "share's source";
		SAME(x, n);
		SAME(x, tokens);
		SAME(x, with_loss);
		SAME(x, loss);
	}
	return NULL;
}

static const char *parts(const struct ledger *la, const struct ledger *lb,
	const struct ledger_step *a, const struct ledger_step *b)
{
	const struct ledger_geometry *xa = &la->geometries.items[a->geometry],
				     *xb = &lb->geometries.items[b->geometry];

	SAME(x, parts);
	SAME(x, samples);
	SAME(x, ranks);
	if (xa->parts > 0 && differ(&la->parts.items[xa->first], &lb->parts.items[xb->first],
				     xa->parts * sizeof *la->parts.items))
		return "parts";
	return NULL;
}

static const char *step(
	const struct ledger *la, const struct ledger *lb, size_t i, enum ledgers_part part)
{
	const struct ledger_step *xa = &la->steps.items[i], *xb = &lb->steps.items[i];
	const char *other = parts(la, lb, xa, xb);

	SAME(x, step);
	SAME(x, row);
	SAME(x, n);
	SAME(x, attempt);
	SAME(x, epoch);
	SAME(x, tokens);
	if (other)
		return other;
	if (part == LEDGERS_SAMPLES)
		return NULL;
	SAME(x, sum);
	SAME(x, chain);
	SAME(x, applied);
	SAME(x, loss);
	SAME(x, lr);
	SAME(x, grad_norm);
	SAME(x, position);
	if ((xa->first_count == LEDGER_NONE) != (xb->first_count == LEDGER_NONE))
		return "first_count";
	if (xa->first_count != LEDGER_NONE &&
		differ(la->counts.items + xa->first_count, lb->counts.items + xb->first_count,
			la->count_names.count * sizeof(double)))
		return "counts";
	return shares(la, lb, xa, xb);
}

static const char *rows(const struct ledger *la, const struct ledger *lb)
{
	struct sample_source a = ledger_samples(la), b = ledger_samples(lb);
	struct sample_buffer *buffer_a = sample_buffer_new(), *buffer_b = sample_buffer_new();
	struct sample_block xa, xb;
	struct error e = ERROR_INIT;
	const char *found = NULL;

	for (uint64_t row = 0; !found && row < a.rows; row += xa.n) {
		if (a.read(&a, row, SIZE_MAX, buffer_a, &xa, &e) < 0 ||
			b.read(&b, row, SIZE_MAX, buffer_b, &xb, &e) < 0 || xa.n != xb.n)
			found = "rows";
		for (size_t i = 0; !found && i < xa.n; i++) {
			const struct ledger_space
				*sa = &la->spaces.items[xa.spaces ? xa.spaces[i] : 0],
				*sb = &lb->spaces.items[xb.spaces ? xb.spaces[i] : 0];
			if (xa.keys[i] != xb.keys[i])
				found = "key";
			if (sa->kind != sb->kind ||
				strcmp(source_of(la, sa->source), source_of(lb, sb->source)) != 0)
				found = "space";
			if ((xa.tokens ? xa.tokens[i] : 0) != (xb.tokens ? xb.tokens[i] : 0))
				found = "tokens";
			float loss_a = xa.losses ? xa.losses[i] : NAN;
			float loss_b = xb.losses ? xb.losses[i] : NAN;
			if (differ(&loss_a, &loss_b, sizeof loss_a) &&
				!(isnan(loss_a) && isnan(loss_b)))
				found = "loss";
		}
	}
	sample_buffer_free(buffer_a);
	sample_buffer_free(buffer_b);
	return found;
}

static const char *checkpoint(const struct ledger *la, const struct ledger *lb, size_t i)
{
	const struct ledger_checkpoint *xa = &la->checkpoints.items[i],
				       *xb = &lb->checkpoints.items[i];

	SAME(x, attempt);
	SAME(x, step);
	SAME(x, position);
	SAME_TEXT(x, path);
	SAME_TEXT(x, digest);
	return NULL;
}

static const char *dataset(const struct ledger *la, const struct ledger *lb, size_t i)
{
	const struct ledger_dataset *xa = &la->datasets.items[i], *xb = &lb->datasets.items[i];

	SAME_TEXT(x, name);
	SAME_TEXT(x, fingerprint);
	SAME_TEXT(x, unit);
	SAME_TEXT(x, order);
	SAME(x, size);
	SAME(x, sampling);
	SAME(x, repeat);
	return NULL;
}

static const char *source(const struct ledger *la, const struct ledger *lb, size_t i)
{
	const struct ledger_source *xa = &la->sources.items[i], *xb = NULL;

	for (size_t k = 0; k < lb->sources.count; k++)
		if (strcmp(lb->sources.items[k].name, xa->name) == 0)
			xb = &lb->sources.items[k];
	if (!xb)
		return "name";
	SAME(x, samples);
	SAME(x, first_attempt);
	SAME(x, last_attempt);
	SAME(x, size);
	SAME(x, weight);
	SAME(x, epochs);
	return NULL;
}

#define EACH(name, table, call)                                                                    \
	do {                                                                                       \
		if (a->table.count != b->table.count) {                                            \
			snprintf(what, sizeof what, "%zu and %zu %s", a->table.count,              \
				b->table.count, #table);                                           \
			return what;                                                               \
		}                                                                                  \
		for (size_t i = 0; i < a->table.count; i++) {                                      \
			const char *in = call;                                                     \
			if (!in)                                                                   \
				continue;                                                          \
			snprintf(what, sizeof what, "%s %zu: %s", #name, i, in);                   \
			return what;                                                               \
		}                                                                                  \
	} while (0)

const char *ledgers_differ(const struct ledger *a, const struct ledger *b, enum ledgers_part part)
{
	EACH(attempt, attempts, attempt(a, b, i, part));
	EACH(step, steps, step(a, b, i, part));
	if (a->rows != b->rows)
		return "rows";
	const char *other = rows(a, b);
	if (other || part == LEDGERS_SAMPLES)
		return other;
	if (a->stages.count != b->stages.count)
		return "stages";
	for (size_t i = 0; i < a->stages.count; i++) {
		const struct ledger_stage *x = &a->stages.items[i], *y = &b->stages.items[i];
		if (strcmp(x->name, y->name) != 0 || x->from != y->from || x->until != y->until ||
			x->weights != y->weights)
			return "stage";
		for (uint32_t k = 0; k < x->weights; k++)
			if (differ(&a->weights.items[x->first_weight + k].weight,
				    &b->weights.items[y->first_weight + k].weight, sizeof(double)))
				return "weight of a stage";
	}
	if (strcmp(a->run, b->run) != 0 || a->max_steps != b->max_steps)
		return "run";
	EACH(checkpoint, checkpoints, checkpoint(a, b, i));
	EACH(dataset, datasets, dataset(a, b, i));
	EACH(source, sources, source(a, b, i));
	return NULL;
}
