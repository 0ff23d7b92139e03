/* SPDX-License-Identifier: MIT */
/* How fast random number streams are walked: the twist alone, and a search that finds nothing. */
#define _GNU_SOURCE
#include <stdio.h>
#include <time.h>

#include "rng/rng.h"
#include "rng/search.h"

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static struct rng_state seeded(uint32_t seed)
{
	struct mt19937 m;
	struct rng_state state;

	mt19937_seed(&m, seed);
	mt19937_skip(&m, 1000);
	rng_decode_words(RNG_LAYOUT_PYTHON, m.s, m.pos, false, 0, &state, NULL);
	return state;
}

int main(void)
{
	enum { ROUNDS = 7 };
	const uint64_t words = (uint64_t)1 << 28;
	double twist = 0, search = 0;

	for (int round = 0; round < ROUNDS; round++) {
		struct mt19937 m;
		mt19937_seed(&m, 5489);
		double start = now();
		mt19937_skip(&m, words);
		double rate = (double)words / (now() - start);
		twist = rate > twist ? rate : twist;

		struct rng_state a = seeded(1), b = seeded(2);
		struct rng_search s;
		struct rng_relation r;
		rng_search_init(&s, words);
		start = now();
		if (rng_search_relate(
			    &s, &a, &b, rng_common_seeds, rng_common_seed_count, &r, NULL) < 0)
			return 1;
		rate = (double)s.walked / (now() - start);
		search = rate > search ? rate : search;
		rng_search_release(&s);
	}
	printf("mt19937 twist   %6.2f e9 words/s (best of %d)\n", twist / 1e9, ROUNDS);
	printf("rng search      %6.2f e9 words/s\n", search / 1e9);
	return 0;
}
