/* SPDX-License-Identifier: MIT */
/*
 * One pass over the bytes of a checkpoint's tensors, on a team of threads: CRC-32 against what the
 * container stored, and the summary of each tensor (XXH3-128 and statistics). Each byte is read
 * once for all of these, in file order; a second time only for tensors that overlap others or whose
 * elements do not lie in a row. The work is shared out in stretches of at most LEAF_BYTES, so that
 * one large tensor occupies the whole team; results do not depend on its size.
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
	uint64_t late;       /* were not read, since the deadline came first */
};

/*
 * Stream the state's storages, filling in their crc_found, and summaries and leaves. `dirfd` is the
 * folder that the state's files are relative to, `prefix` what stands before their names there.
 * Memory: 1 MiB a thread, 17 more where it meets tensors that do not lie in a row, and for each MiB
 * of tensors about 130 bytes. Storages that the deadline (or NULL) left unread, whole or in part,
 * are counted and not read.
 */
int bytes_read(struct state *s, int dirfd, const char *prefix, unsigned threads,
	const struct deadline *deadline, struct byte_totals *totals, struct error *e);

/* The totals of a pass that was made before, from what it left in the state: that of a snapshot. */
void bytes_recount(const struct state *s, struct byte_totals *totals);

/* How many threads to read with: what the user wants, else one per core. */
unsigned team_size(unsigned wanted);

/* CRC-32 of `n` zero bytes, in O(log n): how a stored checksum proves that a tensor is all zero. */
uint32_t crc32_of_zeros(uint64_t n);

/* CRC-32 of two stretches, one behind the other, from those of each; `n` bytes are in the second.
 */
uint32_t crc32_joined(uint32_t first, uint32_t second, uint64_t n);

/* What is known of a tensor's elements, or NULL: its bytes were not or could not be read. */
const struct tensor_summary *tensor_summary_of(const struct state *s, const struct state_tensor *t);

/* Whether a tensor is all zero: known from its summary, or else from its stored checksum. */
enum zero_known {
	ZERO_UNKNOWN,
	ZERO_NO,
	ZERO_YES,
};

enum zero_known tensor_zero(const struct state *s, const struct state_tensor *t);

/*
 * Whether two tensors of one type and shape have the same elements: 1 yes, 0 no, -1 not known.
 * Without summaries, equal stored checksums say yes (one chance in 2^32 of an accident).
 */
int tensor_same(const struct state *a, const struct state_tensor *x, const struct state *b,
	const struct state_tensor *y);

#endif
