/* SPDX-License-Identifier: MIT */
/*
 * One pass over the bytes of a checkpoint's tensors: CRC-32 against what the container stored,
 * XXH3-128, and whether all of them are zero. Each storage is read once, whole, in file order, on a
 * team of threads.
 */
#ifndef STATE_BYTES_H
#define STATE_BYTES_H

#include "base/error.h"
#include "state/state.h"

struct byte_totals {
	uint64_t bytes;    /* read */
	uint64_t storages; /* read */
	uint64_t storages_all;
	uint64_t with_checksum; /* of those read */
	uint64_t mismatches;
	uint64_t unreadable; /* could not be read in place, or the file changed */
};

/*
 * Stream the state's storages, filling in their crc_found, digest and zero. `dirfd` is the folder
 * that the state's files are relative to, `prefix` what stands before their names there. Memory: 1
 * MiB a thread.
 */
int bytes_read(struct state *s, int dirfd, const char *prefix, unsigned threads,
	struct byte_totals *totals, struct error *e);

/* The totals of a pass that was made before, from what it left in the state: that of a snapshot. */
void bytes_recount(const struct state *s, struct byte_totals *totals);

/* How many threads to read with: what the user wants, else one per core. */
unsigned team_size(unsigned wanted);

/* CRC-32 of `n` zero bytes, in O(log n): how a stored checksum proves that a tensor is all zero. */
uint32_t crc32_of_zeros(uint64_t n);

/* Whether a storage is all zero: known from its bytes, or else from its stored checksum. */
enum zero_known {
	ZERO_UNKNOWN,
	ZERO_NO,
	ZERO_YES,
};

enum zero_known storage_zero(const struct state_storage *s);

/*
 * Whether two storages hold the same bytes: 1 yes, 0 no, -1 not known (no checksum, bytes not
 * read). Without the bytes, equal lengths and stored checksums say yes (one chance in 2^32 of an
 * accident).
 */
int storage_same(const struct state_storage *a, const struct state_storage *b);

#endif
