/* SPDX-License-Identifier: MIT */
/*
 * Tables of C structs in files of columns: a schema says which member is which column, and writing
 * and reading are one loop over it. What the numbers of a file mean beyond themselves is checked
 * here, as the file is read: texts, names of enumerations, rows of other tables.
 *
 *    /strings/ends u64[n], /strings/bytes u8: text i ends before byte ends[i] and begins where the
 * one before it ends; the first is empty. A column of texts is u32, their numbers; TABLE_NONE:
 * none. /names/<enumeration> u32: the texts by which value i is known, so that a reader whose
 * values are numbered otherwise finds its own. Other columns of a table: /<table>/<column>.
 */
#ifndef COLUMNS_TABLE_H
#define COLUMNS_TABLE_H

#include "base/arena.h"
#include "columns/colfile.h"

#define TABLE_NONE UINT32_MAX

enum table_role {
	TABLE_NUMBER,
	TABLE_BOOL, /* bool; u8 in the file */
	TABLE_TEXT, /* const char *, NULL or in the caller's arena; u32 in the file */
	TABLE_NAME, /* a value of enumeration `of`, as wide as `type` */
	TABLE_ROW,  /* uint32_t: a row of table `of`, or TABLE_NONE */
};

struct table_column {
	const char *path; /* in the file: "/tensors/name" */
	uint8_t table, type, role, of;
	uint32_t width;      /* more than 1: an array member, of numbers */
	size_t offset, size; /* of the member */
};

/* An enumeration that columns hold values of. */
struct table_names {
	const char *name;
	unsigned count;
	const char *(*of)(unsigned value);
};

struct table_schema {
	const size_t *row_sizes; /* of each table's struct */
	size_t table_count;
	const struct table_column *columns; /* those of a table stand together */
	size_t column_count;
	const struct table_names *names;
	size_t name_count;
};

struct table {
	void *rows;
	size_t count;
};

/* Write all tables (one for each of the schema's). Errors stay in the writer. */
void tables_write(
	struct colfile_writer *w, const struct table_schema *schema, const struct table *tables);

/*
 * Read all tables. Rows are the caller's, to be released; texts are in the arena. Everything
 * together takes no more than `memory` bytes. `tables` is empty after an error.
 */
int tables_read(struct colfile_reader *r, const struct table_schema *schema, struct table *tables,
	struct arena *texts, uint64_t memory, struct error *e);
void tables_release(const struct table_schema *schema, struct table *tables);

#endif
