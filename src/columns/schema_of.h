/* SPDX-License-Identifier: MIT */
/*
 * The static `schema` (columns/table.h) of the tables that SCHEMA_FILE lists, and TABLE_OF_<table> for each of
 * them. To be included once, in the one file that writes and reads them. Rows of SCHEMA_FILE are TABLE, COLUMN,
 * NUMBERS and NAMES, each of which it leaves out where it is not defined, and forgets at its end.
 */
#include <stddef.h>

#include "columns/table.h"

enum table_id {
#define TABLE(id, row) TABLE_OF_##id,
#include SCHEMA_FILE
	TABLE_COUNT
};

enum names_id {
#define NAMES(id, count, function) NAMES_OF_##id,
#include SCHEMA_FILE
	NAMES_COUNT
};

/* So that a column can name its table's struct. */
#define TABLE(id, row) typedef row row_of_##id;
#include SCHEMA_FILE

#define OF_NUMBER(of) 0
#define OF_BOOL(of) 0
#define OF_TEXT(of) 0
#define OF_NAME(of) NAMES_OF_##of
#define OF_ROW(of) TABLE_OF_##of

/* clang-format off */
static const struct table_column columns[] = {
#define COLUMN(t, member, column_type, column_role, column_of, meaning)                                     \
	{.path = "/" #t "/" #member, .table = TABLE_OF_##t, .type = COLUMN_##column_type,                   \
		.role = TABLE_##column_role, .of = OF_##column_role(column_of), .width = 1,                 \
		.offset = offsetof(row_of_##t, member), .size = sizeof(((row_of_##t *)0)->member)},
#define NUMBERS(t, member, column_type, columns_wide, meaning)                                              \
	{.path = "/" #t "/" #member, .table = TABLE_OF_##t, .type = COLUMN_##column_type,                   \
		.role = TABLE_NUMBER, .width = columns_wide,                                                \
		.offset = offsetof(row_of_##t, member), .size = sizeof(((row_of_##t *)0)->member)},
#include SCHEMA_FILE
};
/* clang-format on */

static const size_t row_sizes[TABLE_COUNT] = {
#define TABLE(id, row) sizeof(row),
#include SCHEMA_FILE
};

static const struct table_names names[NAMES_COUNT] = {
#define NAMES(id, count, function) {#id, count, function},
#include SCHEMA_FILE
};

static const struct table_schema schema = {
	.row_sizes = row_sizes,
	.table_count = TABLE_COUNT,
	.columns = columns,
	.column_count = sizeof columns / sizeof columns[0],
	.names = names,
	.name_count = NAMES_COUNT,
};
