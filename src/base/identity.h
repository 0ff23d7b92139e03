/* SPDX-License-Identifier: MIT */
/*
 * A sample's identity as numbers, the same in the recorder and in every reader: (space, key), where
 * a space is a data set, unit, order, source and kind of key. A step's sum adds XXH3-128 of its
 * samples modulo 2^128, whatever their order.
 */
#ifndef BASE_IDENTITY_H
#define BASE_IDENTITY_H

#include <stdint.h>
#include <string.h>
#include <xxhash.h>

/* Add b to a, modulo 2^128; [0] is the low half. */
static inline void identity_sum(uint64_t a[2], const uint64_t b[2])
{
	uint64_t low = a[0] + b[0];
	a[1] += b[1] + (low < a[0]);
	a[0] = low;
}

/* The number of a space: XXH3-64 of its names, each ended by a zero byte, and the kind of its keys.
 */
static inline uint64_t identity_space(
	const char *dataset, const char *unit, const char *order, const char *source, uint32_t kind)
{
	const char *const names[] = {dataset, unit, order, source};
	uint64_t space = kind;
	for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
		const char *name = names[i] ? names[i] : "";
		space = XXH3_64bits_withSeed(name, strlen(name) + 1, space);
	}
	return space;
}

/* Add one sample: XXH3-128 over space and key, 8 bytes each, little-endian. */
static inline void identity_add(uint64_t sum[2], uint64_t space, uint64_t key)
{
	uint64_t pair[2] = {space, key};
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	pair[0] = __builtin_bswap64(space);
	pair[1] = __builtin_bswap64(key);
#endif
	XXH128_hash_t h = XXH3_128bits(pair, sizeof pair);
	const uint64_t one[2] = {h.low64, h.high64};
	identity_sum(sum, one);
}

#endif
