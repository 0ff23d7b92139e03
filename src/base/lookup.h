/* SPDX-License-Identifier: MIT */
/*
 * Numbers by the hash of what they stand for, for tables that are arrays: the rows of a table,
 * found by a key of any kind. The table itself stays with its owner, who says what is equal. 8
 * bytes a slot, at most half of them used.
 */
#ifndef BASE_LOOKUP_H
#define BASE_LOOKUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LOOKUP_NONE UINT32_MAX

struct lookup_slot {
	uint32_t hash, row; /* row LOOKUP_NONE: free */
};

struct lookup {
	struct lookup_slot *slots; /* NULL: empty */
	size_t count, capacity;    /* capacity is a power of two, or 0 */
};

void lookup_release(struct lookup *l);

/* Add a row that is not there yet. False when memory runs out. */
bool lookup_add(struct lookup *l, uint64_t hash, uint32_t row);

/* Whether the row `row` of the table `of` is what `key` asks for. */
typedef bool lookup_same_fn(const void *of, uint32_t row, const void *key);

/* The row that is `same`, or LOOKUP_NONE. */
static inline uint32_t lookup_find(const struct lookup *l, uint64_t hash, lookup_same_fn *same,
	const void *of, const void *key)
{
	size_t mask = l->capacity - 1;
	uint32_t high = (uint32_t)(hash >> 32);

	if (l->capacity == 0)
		return LOOKUP_NONE;
	for (size_t i = high & mask; l->slots[i].row != LOOKUP_NONE; i = (i + 1) & mask)
		if (l->slots[i].hash == high && same(of, l->slots[i].row, key))
			return l->slots[i].row;
	return LOOKUP_NONE;
}

/* Spread the bits of a key over a hash: the finalizer of MurmurHash3, a bijection. */
static inline uint64_t lookup_mix(uint64_t x)
{
	x = (x ^ x >> 33) * 0xff51afd7ed558ccdu;
	x = (x ^ x >> 33) * 0xc4ceb9fe1a85ec53u;
	return x ^ x >> 33;
}

#endif
