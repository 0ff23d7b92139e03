/* SPDX-License-Identifier: MIT */
#include "rng/seed_sequence.h"

#define POOL 4u

/* One word into the running hash; its constant changes with every call. */
static uint32_t hashed(uint32_t *constant, uint32_t v)
{
	v ^= *constant;
	*constant *= 0x931e8875u;
	v *= *constant;
	return v ^ (v >> 16);
}

static uint32_t mixed(uint32_t x, uint32_t y)
{
	uint32_t t = 0xca01f9ddu * x - 0x4973f715u * y;

	return t ^ (t >> 16);
}

void seed_sequence_init(struct seed_sequence *q, const uint32_t *words, size_t n)
{
	uint32_t *pool = q->pool;
	uint32_t constant = 0x43b0d7e5u;

	for (size_t i = 0; i < POOL; i++)
		pool[i] = hashed(&constant, i < n ? words[i] : 0);
	for (size_t from = 0; from < POOL; from++)
		for (size_t to = 0; to < POOL; to++)
			if (from != to)
				pool[to] = mixed(pool[to], hashed(&constant, pool[from]));
	for (size_t i = POOL; i < n; i++)
		for (size_t to = 0; to < POOL; to++)
			pool[to] = mixed(pool[to], hashed(&constant, words[i]));
}

void seed_sequence_init_u64(struct seed_sequence *q, uint64_t seed)
{
	const uint32_t words[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};

	seed_sequence_init(q, words, words[1] ? 2 : 1);
}

void seed_sequence_generate(const struct seed_sequence *q, uint32_t *out, size_t n)
{
	uint32_t constant = 0x8b51f9ddu;

	for (size_t i = 0; i < n; i++) {
		uint32_t v = q->pool[i % POOL] ^ constant;
		constant *= 0x58f38dedu;
		v *= constant;
		out[i] = v ^ (v >> 16);
	}
}
