/* SPDX-License-Identifier: MIT */
/*
 * Statistics of tensor elements, block by block. Sums are taken in a fixed number of lanes and in a
 * fixed order, so that they are the same bit by bit for any number of threads, with and without
 * AVX2. Relative error of a sum: below 2^-50 times its length in blocks.
 */
#ifndef STATE_STATISTICS_H
#define STATE_STATISTICS_H

#include "state/state.h"

/* What a block of elements adds; blocks of one tensor are combined in their order. */
struct statistics {
	double min, max;     /* of finite elements; +inf and -inf where there are none */
	double sum, squares; /* of finite elements */
	uint64_t zeros, nans, infinities, negative_infinities, denormals;
};

extern const struct statistics statistics_none;

/* Whether elements of a type are real numbers. */
bool statistics_possible(enum dtype d);

/* Of `n` elements of a type that is possible, packed and little-endian at `p`. */
struct statistics statistics_of(enum dtype d, const uint8_t *p, size_t n);

/* The same without instructions that not every processor has: for tests. */
struct statistics statistics_of_plain(enum dtype d, const uint8_t *p, size_t n);

/* Take in the block that follows. */
void statistics_add(struct statistics *s, const struct statistics *next);

/* Fill a summary's statistics from those of all its `numel` elements. */
void statistics_conclude(const struct statistics *s, uint64_t numel, struct tensor_summary *out);

#endif
