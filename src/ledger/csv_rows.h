/* SPDX-License-Identifier: MIT */
/*
 * The rows of a step in a CSV log until the step is whole: whatever the order of ranks in it, they
 * become one line a rank, micro-batch and worker. What rows say themselves is kept in columns, so
 * that rows of one place that follow one another are a line as they lie.
 */
#ifndef LEDGER_CSV_ROWS_H
#define LEDGER_CSV_ROWS_H

#include "ledger/read.h"

#define CSV_ROWS_MAX ((size_t)1 << 20) /* rows of a step that wait for each other */

/* What tells the rows of one line from those of another in the same step. */
struct row_place {
	uint32_t dp; /* LEDGER_NONE: not said */
	uint16_t micro, worker;
	int32_t epoch;
	uint8_t kind; /* enum key_kind */
};

struct csv_row {
	struct row_place place;
	uint64_t key;
	uint32_t source, tokens;
	float loss;
	int64_t attempt, step;
	bool other; /* of another split */
};

/* Rows of one place that follow one another; what they say themselves is in the columns. */
struct stretch {
	struct row_place place;
	uint64_t line; /* of the first one */
	size_t first, n;
};

/* A value a row of what rows say themselves. The latter three only where the file has them. */
struct row_columns {
	ARRAY(uint64_t) keys;
	ARRAY(uint32_t) sources;
	ARRAY(uint32_t) tokens;
	ARRAY(float) losses;
};

struct csv_rows {
	struct reading *r;
	bool sources, tokens, losses;  /* which columns the file has */
	int64_t attempt, step;         /* of the rows at hand */
	struct row_columns rows, line; /* line: brought together from several stretches */
	ARRAY(struct stretch) stretches;
};

void csv_rows_release(struct csv_rows *c);

/* Add a row, which stands in line `line` of the file; those of another step become lines first. */
int csv_rows_add(struct csv_rows *c, const struct csv_row *row, uint64_t line, struct error *e);

/* Add a row that has the place of the newest one and says no more than its key. False where there
 * is no room for it. */
static inline bool csv_rows_join(struct csv_rows *c, uint64_t key)
{
	size_t n = c->rows.keys.count;

	if (n == c->rows.keys.capacity && !array_reserve(&c->rows.keys, n + 1, CSV_ROWS_MAX))
		return false;
	c->rows.keys.items[n] = key;
	c->rows.keys.count++;
	c->stretches.items[c->stretches.count - 1].n++;
	return true;
}

/* Make lines of the rows at hand. */
int csv_rows_flush(struct csv_rows *c, struct error *e);

#endif
