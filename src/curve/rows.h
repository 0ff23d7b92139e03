/* SPDX-License-Identifier: MIT */
/*
 * Records of names and numbers, as JSON lines, tables and wandb's history hold them, into points:
 * which of the names says where the record stands (xs.def), when it was written, and what the
 * others are series of.
 */
#ifndef CURVE_ROWS_H
#define CURVE_ROWS_H

#include "curve/read.h"

#define ROWS_UNSET (CURVE_NONE - 1)

struct rows_column {
	const char *name;
	size_t name_n;
	uint8_t x; /* its place in xs.def, from 1; 0: it is no x */
	bool clock;
	uint32_t series[CURVE_UNITS]; /* by the unit of x; ROWS_UNSET before the first point */
	uint64_t row;                 /* the last row that had it */
};

struct rows_cell {
	uint32_t column;
	float resolution;
	double value;
};

struct rows {
	struct curve_reading *r;
	ARRAY(struct rows_column) columns;
	struct lookup by_name;
	ARRAY(struct rows_cell) cells; /* of the row at hand */
	uint64_t row;                  /* its number, from 1 */
	enum curve_mean mean;          /* of what no name says otherwise */
	enum curve_unit unit_of_step;  /* of an x called "step" */
	double plus;                   /* added to an x in steps */
	bool counted;                  /* there was a row without an x */
};

/* Nothing is allocated before the first column. */
void rows_init(struct rows *rows, struct curve_reading *r);
void rows_release(struct rows *rows);

/*
 * The column of a name, made where it is new. Asking for the columns in the order of the row before
 * costs a comparison each; any other order a look-up.
 */
int rows_column(struct rows *rows, struct slice name, uint32_t *column, struct error *e);

/* A value of the row at hand. Of two in one column the later counts. */
int rows_cell(struct rows *rows, uint32_t column, double value, float resolution, struct error *e);

/* The row is whole: its points, and the next one begins. */
int rows_end(struct rows *rows, struct error *e);

/* The row is not to be read. */
void rows_drop(struct rows *rows);

/* How well a name says where a record stands: its place in xs.def from 1, or 0. */
unsigned rows_x_of(struct slice name);

#endif
