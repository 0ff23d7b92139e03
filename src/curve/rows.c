/* SPDX-License-Identifier: MIT */
#include "curve/rows.h"

#include <math.h>
#include <stdlib.h>
#include <xxhash.h>

#define COLUMNS_MAX 65536u

static const struct {
	struct slice name;
	enum curve_unit unit;
	double plus;
} xs[] = {
#define X(name, unit, plus) {{name, sizeof name - 1}, CURVE_##unit, plus},
#include "curve/xs.def"
#undef X
};

static int no_memory(struct error *e)
{
	return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for the columns of a loss log");
}

void rows_init(struct rows *rows, struct curve_reading *r)
{
	*rows = (struct rows){
		.r = r, .row = 1, .mean = CURVE_OF_UNKNOWN, .unit_of_step = CURVE_STEPS};
}

void rows_release(struct rows *rows)
{
	array_release(&rows->columns);
	array_release(&rows->cells);
	lookup_release(&rows->by_name);
}

/* Columns -------------------------------------------------------------------------------------- */

static bool same_letters(struct slice a, struct slice b)
{
	if (a.n != b.n)
		return false;
	for (size_t i = 0; i < a.n; i++)
		if ((a.p[i] >= 'A' && a.p[i] <= 'Z' ? a.p[i] + ('a' - 'A') : a.p[i]) != b.p[i])
			return false;
	return true;
}

unsigned rows_x_of(struct slice name)
{
	for (unsigned i = 0; i < sizeof xs / sizeof *xs; i++)
		if (same_letters(name, xs[i].name))
			return i + 1;
	return 0;
}

static bool is_clock(struct slice name)
{
	return same_letters(name, SLICE("_timestamp")) || same_letters(name, SLICE("timestamp")) ||
	       same_letters(name, SLICE("wall_time")) || same_letters(name, SLICE("wall time")) ||
	       same_letters(name, SLICE("time"));
}

static bool same_column(const void *of, uint32_t row, const void *key)
{
	const struct rows_column *c = &((const struct rows *)of)->columns.items[row];

	return slice_eq((struct slice){c->name, c->name_n}, *(const struct slice *)key);
}

static int new_column(struct rows *rows, struct slice name, uint32_t *column, struct error *e)
{
	*column = (uint32_t)rows->columns.count;
	if (rows->columns.count == COLUMNS_MAX) {
		*column = CURVE_NONE;
		return RP_OK;
	}
	struct rows_column *c = array_push(&rows->columns, COLUMNS_MAX);
	const char *kept = arena_strdup(&rows->r->log->arena, name);
	if (!c || !kept)
		return no_memory(e);
	*c = (struct rows_column){.name = kept,
		.name_n = name.n,
		.x = (uint8_t)rows_x_of(name),
		.clock = is_clock(name)};
	for (unsigned i = 0; i < CURVE_UNITS; i++)
		c->series[i] = ROWS_UNSET;
	return RP_OK;
}

int rows_column(struct rows *rows, struct slice name, uint32_t *column, struct error *e)
{
	/* Rows of one writer have their names in one order. */
	uint32_t next =
		rows->cells.count > 0 ? rows->cells.items[rows->cells.count - 1].column + 1 : 0;

	if (next < rows->columns.count && same_column(rows, next, &name)) {
		*column = next;
		return RP_OK;
	}
	uint64_t hash = XXH3_64bits(name.n ? name.p : "", name.n);
	*column = lookup_find(&rows->by_name, hash, same_column, rows, &name);
	if (*column != LOOKUP_NONE)
		return RP_OK;
	if (new_column(rows, name, column, e) < 0)
		return e->status;
	if (*column == CURVE_NONE || lookup_add(&rows->by_name, hash, *column))
		return RP_OK;
	return no_memory(e);
}

/* Rows ----------------------------------------------------------------------------------------- */

int rows_cell(struct rows *rows, uint32_t column, double value, float resolution, struct error *e)
{
	struct rows_cell cell = {column, resolution, value};

	if (column == CURVE_NONE) {
		rows->r->log->dropped++;
		return RP_OK;
	}
	struct rows_column *c = &rows->columns.items[column];
	if (c->row == rows->row) {
		for (size_t i = rows->cells.count; i-- > 0;)
			if (rows->cells.items[i].column == column)
				rows->cells.items[i] = cell;
		return RP_OK;
	}
	c->row = rows->row;
	struct rows_cell *new = array_push(&rows->cells, COLUMNS_MAX);
	if (!new)
		return no_memory(e);
	*new = cell;
	return RP_OK;
}

/* Seconds since 1970, from seconds or milliseconds; NAN for what is no time of day. */
static double time_of(double value)
{
	if (value >= 1e8 && value < 1e10)
		return value;
	return value >= 1e11 && value < 1e13 ? value / 1000 : (double)NAN;
}

/* The cell that says where the row stands, or NULL. */
static const struct rows_cell *find_x(const struct rows *rows)
{
	const struct rows_cell *best = NULL;
	unsigned best_x = UINT32_MAX;

	for (size_t i = 0; i < rows->cells.count; i++) {
		const struct rows_cell *cell = &rows->cells.items[i];
		unsigned x = rows->columns.items[cell->column].x;
		if (x == 0 || x >= best_x || !isfinite(cell->value))
			continue;
		best_x = x;
		best = cell;
	}
	return best;
}

static void find_time(struct rows *rows)
{
	rows->r->wall = NAN;
	for (size_t i = 0; i < rows->cells.count; i++)
		if (rows->columns.items[rows->cells.items[i].column].clock)
			rows->r->wall = time_of(rows->cells.items[i].value);
}

static int add_point(struct rows *rows, const struct rows_cell *cell, double x,
	enum curve_unit unit, struct error *e)
{
	struct rows_column *c = &rows->columns.items[cell->column];
	uint32_t *series = &c->series[unit];
	/* What is told once an epoch is of that epoch. */
	enum curve_mean mean = unit == CURVE_EPOCHS && rows->mean == CURVE_OF_UNKNOWN
				       ? CURVE_OF_EPOCH
				       : rows->mean;

	if (*series == ROWS_UNSET && curve_series_of(rows->r, (struct slice){c->name, c->name_n},
					     CURVE_OTHER, unit, mean, -1, series, e) < 0)
		return e->status;
	return curve_add(rows->r, *series, x, cell->value, cell->resolution, e);
}

int rows_end(struct rows *rows, struct error *e)
{
	const struct rows_cell *at = find_x(rows);
	enum curve_unit unit = CURVE_CALLS;
	double x = (double)rows->row;
	int status = RP_OK;

	find_time(rows);
	if (at) {
		unsigned row = rows->columns.items[at->column].x - 1u;
		unit = row == 0 ? rows->unit_of_step : xs[row].unit;
		x = at->value + xs[row].plus + (unit == CURVE_STEPS ? rows->plus : 0);
	} else if (rows->cells.count > 0) {
		rows->counted = true;
	}
	for (size_t i = 0; i < rows->cells.count && status == RP_OK; i++) {
		const struct rows_cell *cell = &rows->cells.items[i];
		if (cell != at && !rows->columns.items[cell->column].clock)
			status = add_point(rows, cell, x, unit, e);
	}
	rows_drop(rows);
	return status;
}

void rows_drop(struct rows *rows)
{
	rows->cells.count = 0;
	rows->row++;
}
