/* SPDX-License-Identifier: MIT */
/*
 * How two states of one generator relate, and how far each is from its seed.
 *
 * Philox and PCG64 answer by arithmetic. MT19937 has to be walked, block by block, from the states
 * and from the seeds that may have made them. One search serves a whole command: add every pair of
 * states, run it once, read the answers.
 *
 * - One budget of words for everything. All walks deepen together, so that near relations are found
 *   whatever the hopeless ones cost.
 * - Equal blocks are one starting point, however many states share them. A walk that meets a block
 *   which is known, as a state or from another walk, joins that path and is not walked again; a
 *   later query over the same ground costs next to nothing.
 * - A match is the digest of all 624 words, not of a few: a state with one flipped bit is on no
 *   path.
 *
 * States are borrowed: they must outlive the search.
 */
#ifndef RNG_SEARCH_H
#define RNG_SEARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/array.h"
#include "base/deadline.h"
#include "base/error.h"

struct rng_state;
struct rng_node;
struct rng_landmark;
struct rng_candidate;
struct rng_guesses;
struct rng_query;

#define RNG_SEARCH_BUDGET ((uint64_t)1 << 28)

enum rng_relation_kind {
	RNG_IDENTICAL,      /* same position on the same stream, same kept values */
	RNG_ADVANCED,       /* the later state follows from the earlier one */
	RNG_RESEEDED,       /* the later state follows from a known seed, not from the earlier */
	RNG_BEHIND,         /* the earlier state follows from the later one */
	RNG_UNRELATED,      /* none of these, as far as was searched */
	RNG_NOT_SEARCHED,   /* the deadline came first */
	RNG_NOT_COMPARABLE, /* of different kinds, or of a kind that tells nothing */
};

/*
 * Draws are counted in rng_unit(). Identical is said of the streams: two torch seeds that are equal
 * modulo 2^32 make the same one. Zero draws with RNG_ADVANCED or RNG_BEHIND: same position, and a
 * kept value (the second of a pair of normals, half a word) was handed out, or is there again.
 *
 * RNG_BEHIND with `seed_known` has two readings, which the rate of draws tells apart: an older
 * state was restored, or the generator was seeded again and `since_seed` draws were taken.
 */
struct rng_relation {
	enum rng_relation_kind kind;
	bool seed_known;         /* of the later state: `seed` and `since_seed` hold */
	bool earlier_seed_known; /* of the earlier state, likewise */
	bool exhausted;          /* the budget ended first; a larger one may find more */
	uint64_t draws;          /* ADVANCED, BEHIND: between the two; RESEEDED: since the seed */
	uint64_t seed, since_seed;
	uint64_t earlier_seed, earlier_since_seed;
	uint64_t searched; /* draws ahead of the earlier state that were looked through */
};

struct rng_search {
	const struct deadline *deadline; /* when to stop whatever the budget; or NULL */
	bool late;                       /* it stopped the search */
	uint64_t budget;                 /* words that may still be walked */
	uint64_t walked;                 /* words walked so far, by all queries together */
	ARRAY(struct rng_node) nodes;
	ARRAY(struct rng_candidate) candidates;
	ARRAY(struct rng_guesses) guesses;
	ARRAY(struct rng_query) queries;
	struct rng_landmark *table;
	size_t table_count, table_size;
	size_t first_open; /* the first query that was not run yet */
};

/* Start with a budget in words; 0 means RNG_SEARCH_BUDGET. Nothing is allocated. */
void rng_search_init(struct rng_search *s, uint64_t budget);
void rng_search_release(struct rng_search *s);

/*
 * Ask how `later` relates to `earlier`; `*query` is the number of the answer. With `earlier` NULL
 * only the way from the seed to `later` is looked for. States that hold their seed are searched
 * from it; `seeds` are tried for those that do not. The seeds are copied. Fails with RP_E_MEMORY.
 */
int rng_search_add(struct rng_search *s, const struct rng_state *earlier,
	const struct rng_state *later, const uint64_t *seeds, size_t seed_count, size_t *query,
	struct error *e);

/*
 * Answer all queries added since the last run, as far as the budget goes. Fails with RP_E_MEMORY.
 */
int rng_search_run(struct rng_search *s, struct error *e);

/* The answer to a query, once it was run. Valid until the next rng_search_add(). */
const struct rng_relation *rng_search_answer(const struct rng_search *s, size_t query);

/* Add one query, run it, and copy its answer. Where there are many pairs, add them all first. */
int rng_search_relate(struct rng_search *s, const struct rng_state *earlier,
	const struct rng_state *later, const uint64_t *seeds, size_t seed_count,
	struct rng_relation *relation, struct error *e);

/* Seeds that people use, to be tried beside those that a checkpoint mentions. */
extern const uint64_t rng_common_seeds[];
extern const size_t rng_common_seed_count;

/* "identical", "advanced", "re-seeded", "behind", "unrelated", "not-searched", "not-comparable". */
const char *rng_relation_name(enum rng_relation_kind kind);

#endif
