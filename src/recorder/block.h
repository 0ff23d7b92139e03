/* SPDX-License-Identifier: MIT */
/* One block of a journal while it is put together: room for its head, then the payload. */
#ifndef RECORDER_BLOCK_H
#define RECORDER_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/journal.h"

struct block {
	uint8_t *p; /* freed by the caller */
	size_t used, capacity;
	unsigned columns;
};

/* Of 1, 2, 4 or 8 bytes; one store where `bytes` is a constant. */
static inline void little_endian(uint8_t *at, uint64_t v, size_t bytes)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	v = __builtin_bswap64(v << (64 - 8 * bytes));
#endif
	memcpy(at, &v, bytes);
}

void block_begin(struct block *b);

/* Make room for `more` bytes; false where memory or the longest payload would be passed. */
bool block_reserve(struct block *b, size_t more);

/* Append a column of n integers (n > 0) in the shortest of the encodings; one value. False as
 * above. */
bool block_column(struct block *b, enum journal_column name, const uint64_t *v, size_t n);
bool block_value(struct block *b, enum journal_column name, uint64_t v);

#endif
