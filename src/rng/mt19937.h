/* SPDX-License-Identifier: MIT */
/*
 * MT19937, the generator behind Python's random, numpy's RandomState and torch's CPU generator.
 * They share the twist and the tempering; they differ in how a seed becomes a block and in how they
 * store the position (rng.h).
 *
 * A state is a block of 624 words and a position in it. The words before the position have been
 * handed out; position 624 means that the next draw first twists the block into its successor. A
 * block is therefore a point on the generator's path, and the distance between two states of one
 * path is 624 times the blocks between them plus the difference of their positions.
 */
#ifndef RNG_MT19937_H
#define RNG_MT19937_H

#include <stddef.h>
#include <stdint.h>

#define MT19937_WORDS 624u

struct mt19937 {
	uint32_t s[MT19937_WORDS];
	uint32_t pos; /* 0 … 624 */
};

/*
 * The reference init_genrand: numpy.random.seed(int), and torch.manual_seed with the seed's low
 * half.
 */
void mt19937_seed(struct mt19937 *m, uint32_t seed);

/* The reference init_by_array. `n` is at least 1. */
void mt19937_seed_array(struct mt19937 *m, const uint32_t *key, size_t n);

/* Python's random.seed(±magnitude): the sign is ignored there. */
void mt19937_seed_python(struct mt19937 *m, uint64_t magnitude);

/*
 * numpy.random.MT19937(seed): words from a SeedSequence, of which one is used up before the first
 * twist.
 */
void mt19937_seed_sequence(struct mt19937 *m, uint64_t seed);

/* Turn the block into its successor on the path. The position stays as it is. */
void mt19937_twist(struct mt19937 *m);

/* The next word, tempered. */
uint32_t mt19937_u32(struct mt19937 *m);

/* The next two words as torch and numpy join them, the first on top. */
uint64_t mt19937_u64(struct mt19937 *m);

/*
 * A double in [0, 1) of 53 bits from two words, as Python's random() and numpy's random_sample()
 * make it.
 */
double mt19937_double(struct mt19937 *m);

/* Pass over `words` words; whole blocks are only twisted. */
void mt19937_skip(struct mt19937 *m, uint64_t words);

#endif
