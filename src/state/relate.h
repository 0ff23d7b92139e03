/* SPDX-License-Identifier: MIT */
/* How the random streams of two states relate: which pairs there are, and the relation of each. */
#ifndef STATE_RELATE_H
#define STATE_RELATE_H

#include "rng/search.h"
#include "state/state.h"

struct stream_pair {
	const struct stream *earlier; /* NULL where only the later state has such a stream */
	const struct stream *later;   /* NULL where only the earlier one has */
	struct rng_relation relation; /* of pairs that have both */
};

struct stream_pairs {
	ARRAY(struct stream_pair)
	list; /* in the order of the later state's streams, then the unmatched */
};

/*
 * Pair the streams of two states by rank, owner, device and path, and relate them, all within one
 * search budget. Distinct pairs of bodies are searched once. Seeds that the states mention
 * (settings, torch states) are tried for generators whose state does not hold its seed.
 */
int streams_relate(struct stream_pairs *pairs, const struct state *earlier,
	const struct state *later, struct rng_search *search, struct error *e);

/* Each stream alone: how far it is from its seed, where a seed is known or found. `earlier` is
 * NULL. */
int streams_since_seed(struct stream_pairs *pairs, const struct state *state,
	struct rng_search *search, struct error *e);

void stream_pairs_release(struct stream_pairs *pairs);

/* The tensors of one role that two states have in common, by name and rank. */
struct tensor_pair {
	const struct state_tensor *earlier, *later;
};

struct tensor_pairs {
	ARRAY(struct tensor_pair) list;
	uint64_t single; /* tensors that only one of them has */
};

/* O(n log n) in the tensors. False when memory ran out; `pairs` is then empty. */
bool tensors_pair(const struct state *earlier, const struct state *later, enum tensor_role role,
	struct tensor_pairs *pairs);
void tensor_pairs_release(struct tensor_pairs *pairs);

/* How the tensors of one role differ between two states, by name and rank. */
struct tensor_changes {
	uint64_t both, single;                 /* in both; in one only */
	uint64_t known, same;                  /* of those in both: bytes compared, and equal */
	uint64_t retyped, reshaped, odd_count; /* another dtype, another shape, either */
	const struct state_tensor *different, *odd,
		*was; /* examples, of `later`; `was` is the earlier `odd` */
};

/*
 * Compare the tensors of a role of one state with those of the same or another role of another, or
 * the same, state. O(n log n) in the tensors; no byte is read. False when memory ran out.
 */
bool tensors_compare(const struct state *earlier, enum tensor_role role, const struct state *later,
	enum tensor_role later_role, struct tensor_changes *changes);

/* The same for the weights that one file of `later` holds. */
bool tensors_compare_file(const struct state *earlier, const struct state *later, uint32_t file,
	struct tensor_changes *changes);

/* A tensor's name without the "module." that wrappers for training in parallel put in front. */
const char *tensor_bare_name(const struct state_tensor *t);

bool tensor_same_shape(const struct state_tensor *a, const struct state_tensor *b);

#endif
