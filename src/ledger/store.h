/* SPDX-License-Identifier: MIT */
/*
 * The samples' columns: appended once, then read in blocks by any number of threads.
 *
 * Rows are kept in chunks of STORE_CHUNK. A chunk of a column is packed as the smallest value and
 * the differences to it in 0, 1, 2, 4 or 8 bytes, whichever is enough: sequential ids take 2 bytes,
 * permuted ids of up to four thousand million samples 4, a constant none. What is beyond the memory
 * budget goes to an unlinked temporary file.
 */
#ifndef LEDGER_STORE_H
#define LEDGER_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define STORE_CHUNK 8192u

enum store_column {
	STORE_KEYS,
	STORE_SPACES, /* 16 bits */
	STORE_TOKENS, /* 32 bits */
	STORE_LOSSES, /* the bits of a float, exclusive or STORE_NO_LOSS, so that zero says nothing
		       */
	STORE_COLUMNS,
};

#define STORE_NO_LOSS 0x7fc00000u /* the bits of NAN */

struct sample_block;
struct sample_buffer;
struct store;
struct store_budget;

/*
 * A new empty store, NULL when memory runs out. `budget`, which stores may share, and `path`,
 * beside which a temporary file may be made where there is no better place, must outlive it.
 */
struct store *store_new(struct store_budget *budget, const char *path);
void store_free(struct store *s);

uint64_t store_rows(const struct store *s);
bool store_has(const struct store *s, enum store_column column);

/* Have a column from here on; it is zero in all rows so far. All stores have STORE_KEYS. */
int store_begin_column(struct store *s, enum store_column column, struct error *e);

/*
 * Appending: write up to store_room() values (never 0) of each column that the store has to where
 * store_at() points, then advance. Values of a column that were not written are undefined.
 */
size_t store_room(const struct store *s);
uint64_t *store_at(struct store *s, enum store_column column);
int store_advance(struct store *s, size_t n, struct error *e);

/* Nothing more comes: pack the last chunk and write out what is buffered. */
int store_end(struct store *s, struct error *e);

/*
 * Read up to `n` rows (to the end of the chunk, at least one) from `row`, which must be < rows.
 * Pointers go into the buffer or the store.
 */
int store_read(const struct store *s, uint64_t row, size_t n, struct sample_buffer *buffer,
	struct sample_block *out, struct error *e);

/*
 * Copy `n` rows from `row` on to the end of another store, which has the same columns. Each row of
 * an ended store may be moved once: a chunk is freed when all its rows have been.
 */
int store_move(struct store *from, uint64_t row, uint64_t n, struct store *to, struct error *e);

/* Bytes that the columns take, in memory and in the temporary file. */
void store_sizes(const struct store *s, uint64_t *memory, uint64_t *disk);

#endif
