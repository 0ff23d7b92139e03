/* SPDX-License-Identifier: MIT */
/*
 * The canonical bytes of a tensor whose elements do not lie in a row: transposed, cut out,
 * repeated. They come in C order, in stretches, with bounded memory: a window of the result is
 * filled by reads that are as long as the strides allow, smallest strides first.
 */
#ifndef STATE_GATHER_H
#define STATE_GATHER_H

#include "base/source.h"
#include "state/state.h"

#define GATHER_WINDOW ((size_t)16 << 20) /* bytes of the result made at a time */
#define GATHER_SLAB ((size_t)1 << 20)    /* longest read, bytes */

/* Room to work in; zero at first, kept between tensors, released by whoever made it. */
struct gather {
	uint8_t *window, *slab;
};

void gather_release(struct gather *g);

/* Takes the next `n` bytes, in the storage's byte order. False ends the gathering. */
typedef bool gather_fn(void *context, uint8_t *bytes, size_t n);

/*
 * All elements of a tensor that lies inside its storage, which begins at byte `begin` of the
 * source. False where memory or a read failed, or the taker had enough.
 */
bool gather_tensor(struct gather *g, const struct source *source, uint64_t begin,
	const struct state_tensor *t, gather_fn *take, void *context);

#endif
