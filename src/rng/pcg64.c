/* SPDX-License-Identifier: MIT */
/*
 * After M. O'Neill, "PCG: a family of simple fast space-efficient statistically good algorithms for
 * random number generation", HMC-CS-2014-0905; the jumps after F. Brown, "Random number generation
 * with arbitrary strides" (1994).
 */
#include "rng/pcg64.h"

#include "rng/seed_sequence.h"

static u128 wide(uint64_t high, uint64_t low)
{
	return (u128)high << 64 | low;
}

static u128 multiplier(enum pcg64_kind kind)
{
	return kind == PCG64_DXSM ? wide(0, 0xda942042e4dd58b5u)
				  : wide(0x2360ed051fc65da4u, 0x4385df649fccf645u);
}

static void step(struct pcg64 *g, enum pcg64_kind kind)
{
	g->state = g->state * multiplier(kind) + g->inc;
}

void pcg64_seed(struct pcg64 *g, enum pcg64_kind kind, const uint32_t *words, size_t n)
{
	struct seed_sequence sequence;
	uint32_t half[8];
	uint64_t w[4];

	seed_sequence_init(&sequence, words, n);
	seed_sequence_generate(&sequence, half, 8);
	for (int i = 0; i < 4; i++)
		w[i] = (uint64_t)half[2 * i + 1] << 32 | half[2 * i];
	*g = (struct pcg64){.inc = wide(w[2], w[3]) << 1 | 1, .kind = kind};
	/* numpy seeds both kinds with the same function, so with the multiplier of XSL-RR. */
	step(g, PCG64_XSL_RR);
	g->state += wide(w[0], w[1]);
	step(g, PCG64_XSL_RR);
}

void pcg64_seed_u64(struct pcg64 *g, enum pcg64_kind kind, uint64_t seed)
{
	const uint32_t words[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};

	pcg64_seed(g, kind, words, words[1] ? 2 : 1);
}

static uint64_t output_xsl_rr(u128 state)
{
	uint64_t x = (uint64_t)(state >> 64) ^ (uint64_t)state;
	unsigned turn = (unsigned)(state >> 122);

	return x >> turn | x << (-turn & 63);
}

static uint64_t output_dxsm(u128 state)
{
	uint64_t high = (uint64_t)(state >> 64), low = (uint64_t)state | 1;

	high ^= high >> 32;
	high *= (uint64_t)multiplier(PCG64_DXSM);
	high ^= high >> 48;
	return high * low;
}

uint64_t pcg64_u64(struct pcg64 *g)
{
	u128 before = g->state;

	step(g, g->kind);
	return g->kind == PCG64_DXSM ? output_dxsm(before) : output_xsl_rr(g->state);
}

/* The affine map of 2^i steps becomes that of 2^(i+1). */
static void square(u128 *times, u128 *plus)
{
	*plus *= *times + 1;
	*times *= *times;
}

void pcg64_advance(struct pcg64 *g, u128 steps)
{
	u128 times = multiplier(g->kind), plus = g->inc;

	for (; steps; steps >>= 1) {
		if (steps & 1)
			g->state = g->state * times + plus;
		square(&times, &plus);
	}
}

/*
 * Bit i of a state changes with every 2^i-th step and the bits below repeat sooner, so the distance
 * shows itself from the lowest bit up: where bit i still differs, 2^i steps are due.
 */
u128 pcg64_distance(const struct pcg64 *from, const struct pcg64 *to)
{
	u128 state = from->state, times = multiplier(from->kind), plus = from->inc, steps = 0;

	for (u128 bit = 1; bit; bit <<= 1) {
		if ((state ^ to->state) & bit) {
			state = state * times + plus;
			steps |= bit;
		}
		square(&times, &plus);
	}
	return steps;
}
