/* SPDX-License-Identifier: MIT */
/*
 * PCG64 and PCG64DXSM, numpy's newer bit generators: a linear congruential generator modulo 2^128
 * with an output function on top. The increment selects the stream; all 2^128 states of one
 * increment lie on one cycle, and how far apart two of them are is computed at once.
 */
#ifndef RNG_PCG64_H
#define RNG_PCG64_H

#include <stddef.h>
#include <stdint.h>

__extension__ typedef unsigned __int128 u128;

enum pcg64_kind {
	PCG64_XSL_RR, /* numpy.random.PCG64, what default_rng() makes */
	PCG64_DXSM,   /* numpy.random.PCG64DXSM: another multiplier, and output before the step */
};

struct pcg64 {
	u128 state, inc; /* inc is odd */
	enum pcg64_kind kind;
};

/* PCG64(seed) and PCG64DXSM(seed): an integer's 32-bit words as for seed_sequence_init(). */
void pcg64_seed(struct pcg64 *g, enum pcg64_kind kind, const uint32_t *words, size_t n);

/* The same for an integer seed. */
void pcg64_seed_u64(struct pcg64 *g, enum pcg64_kind kind, uint64_t seed);

/* The next 64 bits: one step. */
uint64_t pcg64_u64(struct pcg64 *g);

/* `steps` steps at once; backwards is 2^128 minus as many. */
void pcg64_advance(struct pcg64 *g, u128 steps);

/* The steps that lead from `from` to `to`, modulo 2^128. Both have the same kind and increment. */
u128 pcg64_distance(const struct pcg64 *from, const struct pcg64 *to);

#endif
