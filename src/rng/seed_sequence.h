/* SPDX-License-Identifier: MIT */
/*
 * numpy.random.SeedSequence: hashes any amount of entropy into a pool of four words, from which
 * numpy's bit generators are seeded. Its output is frozen by numpy's NEP 19.
 */
#ifndef RNG_SEED_SEQUENCE_H
#define RNG_SEED_SEQUENCE_H

#include <stddef.h>
#include <stdint.h>

struct seed_sequence {
	uint32_t pool[4];
};

/*
 * Fill the pool from entropy words: an integer's 32-bit words from the least significant on (one
 * zero word for 0), a list's words one behind the other. With a spawn key, the words are first
 * padded with zeros to four and the key's words follow.
 */
void seed_sequence_init(struct seed_sequence *q, const uint32_t *words, size_t n);

/* The same for an integer seed. */
void seed_sequence_init_u64(struct seed_sequence *q, uint64_t seed);

/* generate_state(n): the same words each time. For 64-bit words take pairs, the low half first. */
void seed_sequence_generate(const struct seed_sequence *q, uint32_t *out, size_t n);

#endif
