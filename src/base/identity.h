/* SPDX-License-Identifier: MIT */
/*
 * A sample's identity as numbers, the same in the recorder and in every reader: (space, key), where
 * a space is a data set, unit, order, source and kind of key. A step's sum adds XXH3-128 of its
 * samples modulo 2^128, whatever their order; its chain depends on the order too.
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

static inline uint64_t identity_little(uint64_t v)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	v = __builtin_bswap64(v);
#endif
	return v;
}

/* The hash of a sample of which digests are made: XXH3-128 over space and key, 8 bytes each,
 * little-endian. */
static inline XXH128_hash_t identity_hash(uint64_t space, uint64_t key)
{
	const uint64_t pair[2] = {identity_little(space), identity_little(key)};

	return XXH3_128bits(pair, sizeof pair);
}

/* Add one sample to a sum. */
static inline void identity_add(uint64_t sum[2], XXH128_hash_t h)
{
	const uint64_t one[2] = {h.low64, h.high64};

	identity_sum(sum, one);
}

#define IDENTITY_CHAIN 0x9e3779b97f4a7c15u /* odd, so that no sample's hash is ever lost */

/* A step's chain, which begins at 0, goes on with a sample. */
static inline uint64_t identity_chain(uint64_t chain, XXH128_hash_t h)
{
	return chain * IDENTITY_CHAIN + h.low64;
}

/* The same where the samples of a micro-batch of a data-parallel rank begin. */
static inline uint64_t identity_chain_part(uint64_t chain, uint32_t dp, uint16_t micro)
{
	uint64_t x = (((uint64_t)dp << 16 | micro) + 1) * IDENTITY_CHAIN;

	x = (x ^ x >> 32) * IDENTITY_CHAIN;
	return chain * IDENTITY_CHAIN + (x ^ x >> 29);
}

#endif
