/* SPDX-License-Identifier: MIT */
/* Digests of a checkpoint's smaller files, whole: whether a copy is the same byte for byte. */
#ifndef STATE_FILE_DIGESTS_H
#define STATE_FILE_DIGESTS_H

#include "base/error.h"
#include "state/state.h"

/* The longest file that is digested. One that holds tensors is told by their digests when it is
 * longer than a leaf. */
#define DIGESTED_BYTES ((uint64_t)64 << 20)

/* XXH3-128 of each file of at most DIGESTED_BYTES; of those with tensors, of at most LEAF_BYTES.
 * Files are relative to the folder `dirfd`, below `prefix`. What may not be read, has gone or changed
 * has no digest; where the system fails, that is an error. */
int file_digests(struct state *s, int dirfd, const char *prefix, struct error *e);

#endif
