/* SPDX-License-Identifier: MIT */
/* After J. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011 (Random123). */
#include "rng/philox.h"

#include <string.h>

void philox4x32_10(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
	uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
	uint32_t k0 = key[0], k1 = key[1];

	for (int round = 0; round < 10; round++) {
		uint64_t p0 = (uint64_t)0xd2511f53u * c0, p1 = (uint64_t)0xcd9e8d57u * c2;
		c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
		c1 = (uint32_t)p1;
		c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
		c3 = (uint32_t)p0;
		k0 += 0x9e3779b9u;
		k1 += 0xbb67ae85u;
	}
	out[0] = c0;
	out[1] = c1;
	out[2] = c2;
	out[3] = c3;
}

uint64_t philox_find(uint64_t seed, const uint32_t words[4], uint64_t blocks)
{
	const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};

	for (uint64_t b = 0; b < blocks; b++) {
		const uint32_t counter[4] = {(uint32_t)b, (uint32_t)(b >> 32)};
		uint32_t out[4];
		philox4x32_10(counter, key, out);
		if (memcmp(out, words, sizeof out) == 0)
			return b;
	}
	return UINT64_MAX;
}
