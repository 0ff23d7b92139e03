/* SPDX-License-Identifier: MIT */
/*
 * Philox4x32-10, the counter-based generator of torch's CUDA and MPS devices. There is no state to
 * walk: a stream is (seed, offset), and block number c of it can be computed at once.
 */
#ifndef RNG_PHILOX_H
#define RNG_PHILOX_H

#include <stdint.h>

/* The four words of the block with this counter under this key. `out` may be `counter`. */
void philox4x32_10(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

/*
 * Which block of `seed`'s first stream (counter words 2 and 3 zero) consists of these words: its
 * number, or UINT64_MAX when none of the first `blocks` does.
 */
uint64_t philox_find(uint64_t seed, const uint32_t words[4], uint64_t blocks);

#endif
