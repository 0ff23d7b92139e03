/* SPDX-License-Identifier: MIT */
#include "columns/table.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/names.h"
#include "base/size.h"

#define BLOCK_BYTES ((size_t)64 << 10)
#define STRINGS_MAX ((size_t)1 << 28)
#define VALUES_MAX 65536u /* of an enumeration */

static const char ends_path[] = "/strings/ends", bytes_path[] = "/strings/bytes";

/* Writing -------------------------------------------------------------------------------------- */

struct pooled {
	struct slice text; /* first, so that what the set finds can be cast back */
	uint32_t number;
};

struct pool {
	struct arena arena;
	struct names set;
	ARRAY(struct pooled *) list;
	bool failed;
};

static uint32_t pool_number(struct pool *p, const char *text)
{
	if (!text)
		return TABLE_NONE;
	struct slice s = slice_of(text);
	struct slice *there = names_find(&p->set, s);
	if (there)
		return ((struct pooled *)(void *)there)->number;
	struct pooled *new = arena_new(&p->arena, struct pooled);
	struct pooled **slot = new ? array_push(&p->list, STRINGS_MAX) : NULL;
	if (!slot) {
		p->failed = true;
		return TABLE_NONE;
	}
	*new = (struct pooled){.text = s, .number = (uint32_t)p->list.count - 1};
	*slot = new;
	if (!names_add(&p->set, &new->text))
		p->failed = true;
	return new->number;
}

static size_t stored_bytes(const struct table_column *c)
{
	return (size_t)column_type_size(c->type) * c->width;
}

/* One value of a row as it stands in the file. */
static void gather(
	struct pool *pool, const struct table_column *c, const uint8_t *row, uint8_t *out)
{
	const uint8_t *member = row + c->offset;
	const char *text;
	bool set;
	uint32_t number;

	switch ((enum table_role)c->role) {
	case TABLE_TEXT:
		memcpy(&text, member, sizeof text);
		number = pool_number(pool, text);
		memcpy(out, &number, sizeof number);
		break;
	case TABLE_BOOL:
		memcpy(&set, member, sizeof set);
		*out = set;
		break;
	case TABLE_NUMBER:
	case TABLE_NAME:
	case TABLE_ROW:
		memcpy(out, member, stored_bytes(c));
		break;
	}
}

static void write_column(struct colfile_writer *w, struct pool *pool, const struct table_column *c,
	const struct table *t, size_t row_size)
{
	uint8_t block[BLOCK_BYTES];
	size_t size = stored_bytes(c), held = 0, room = sizeof block / size;

	colfile_put_column(w, c->path, (enum column_type)c->type, c->width, t->count);
	for (size_t i = 0; i < t->count && w->error.status == RP_OK; i++) {
		gather(pool, c, (const uint8_t *)t->rows + i * row_size, block + held * size);
		if (++held == room || i + 1 == t->count) {
			colfile_put_rows(w, block, held);
			held = 0;
		}
	}
}

static void write_names(struct colfile_writer *w, struct pool *pool, const struct table_names *n)
{
	char path[COLUMN_PATH_MAX];

	snprintf(path, sizeof path, "/names/%s", n->name);
	colfile_put_column(w, path, COLUMN_U32, 1, n->count);
	for (unsigned i = 0; i < n->count; i++) {
		uint32_t number = pool_number(pool, n->of(i));
		colfile_put_rows(w, &number, 1);
	}
}

static void write_strings(struct colfile_writer *w, const struct pool *pool)
{
	uint64_t end = 0;

	colfile_put_column(w, ends_path, COLUMN_U64, 1, pool->list.count);
	for (size_t i = 0; i < pool->list.count; i++) {
		end += pool->list.items[i]->text.n;
		colfile_put_rows(w, &end, 1);
	}
	colfile_put_column(w, bytes_path, COLUMN_U8, 1, end);
	for (size_t i = 0; i < pool->list.count; i++)
		colfile_put_rows(w, pool->list.items[i]->text.p, pool->list.items[i]->text.n);
}

void tables_write(
	struct colfile_writer *w, const struct table_schema *schema, const struct table *tables)
{
	struct pool pool = {0};

	arena_init(&pool.arena, SIZE_MAX);
	names_init(&pool.set);
	pool_number(&pool, "");
	for (size_t i = 0; i < schema->column_count; i++) {
		const struct table_column *c = &schema->columns[i];
		write_column(w, &pool, c, &tables[c->table], schema->row_sizes[c->table]);
	}
	for (size_t i = 0; i < schema->name_count; i++)
		write_names(w, &pool, &schema->names[i]);
	if (pool.failed)
		fail(&w->error, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for its texts");
	write_strings(w, &pool);
	array_release(&pool.list);
	names_release(&pool.set);
	arena_release(&pool.arena);
}

/* Reading -------------------------------------------------------------------------------------- */

struct reading {
	struct colfile_reader *file;
	const struct table_schema *schema;
	struct table *tables;
	struct arena *arena;
	uint64_t left;      /* bytes that may still be taken */
	const char **texts; /* by number */
	size_t text_count;
	uint32_t *
		*values; /* of each enumeration: ours for the file's, TABLE_NONE: not known here */
	size_t *value_counts;
};

static int malformed(struct error *e, const char *path, const char *what)
{
	return fail(e, RP_E_FORMAT, ERROR_NO_OFFSET, "%s: %s", path, what);
}

/* Room for `count` things, out of what may be taken. NULL with an error. */
static void *take_room(struct reading *r, uint64_t count, size_t size, struct error *e)
{
	uint64_t bytes;

	if (__builtin_mul_overflow(count, size, &bytes) || bytes > r->left) {
		fail(e, RP_E_LIMIT, ERROR_NO_OFFSET,
			"its tables need more than --limit memory allows");
		return NULL;
	}
	r->left -= bytes;
	void *room = calloc(count ? (size_t)count : 1, size);
	if (!room)
		fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for its tables");
	return room;
}

/* A whole column that must be there. */
static void *read_whole(struct reading *r, const char *path, enum column_type type, uint64_t most,
	size_t *count, struct error *e)
{
	uint64_t rows;
	bool found;

	if (colfile_find(r->file, path, type, 1, &rows, &found, e) < 0)
		return NULL;
	if (!found || rows > most) {
		malformed(e, path, found ? "it is too long" : "it is missing");
		return NULL;
	}
	void *bytes = take_room(r, rows, column_type_size(type), e);
	if (bytes && colfile_read(r->file, 0, rows, bytes, e) < 0) {
		free(bytes);
		bytes = NULL;
	}
	*count = (size_t)rows;
	return bytes;
}

/* Cut the bytes at the ends, which must go up and end where the bytes do. */
static int cut_texts(
	struct reading *r, const uint64_t *ends, const char *bytes, size_t n, struct error *e)
{
	uint64_t start = 0;

	for (size_t i = 0; i < r->text_count; i++) {
		if (ends[i] < start || ends[i] > n)
			return malformed(e, ends_path, "the ends do not go up");
		r->texts[i] = arena_strdup(
			r->arena, (struct slice){bytes + start, (size_t)(ends[i] - start)});
		if (!r->texts[i])
			return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET,
				"no memory for its texts (--limit memory)");
		start = ends[i];
	}
	return start == n ? RP_OK : malformed(e, ends_path, "they do not cover the bytes");
}

static int read_texts(struct reading *r, struct error *e)
{
	size_t n = 0;
	uint64_t *ends = read_whole(r, ends_path, COLUMN_U64, STRINGS_MAX, &r->text_count, e);
	char *bytes = ends ? read_whole(r, bytes_path, COLUMN_U8, UINT32_MAX, &n, e) : NULL;
	int status = RP_OK;

	if (bytes)
		r->texts = take_room(r, r->text_count, sizeof *r->texts, e);
	if (r->texts)
		status = cut_texts(r, ends, bytes, n, e);
	free(ends);
	free(bytes);
	return r->texts ? status : e->status;
}

/* Which of our values each of the file's is. */
static int read_names(struct reading *r, size_t at, struct error *e)
{
	const struct table_names *n = &r->schema->names[at];
	char path[COLUMN_PATH_MAX];

	snprintf(path, sizeof path, "/names/%s", n->name);
	uint32_t *v = read_whole(r, path, COLUMN_U32, VALUES_MAX, &r->value_counts[at], e);
	if (!v)
		return e->status;
	r->values[at] = v;
	for (size_t i = 0; i < r->value_counts[at]; i++) {
		uint32_t mine = TABLE_NONE;
		if (v[i] != TABLE_NONE && v[i] >= r->text_count)
			return malformed(e, path, "a text that is not there");
		for (unsigned k = 0; v[i] != TABLE_NONE && k < n->count && mine == TABLE_NONE; k++)
			if (strcmp(n->of(k), r->texts[v[i]]) == 0)
				mine = k;
		v[i] = mine;
	}
	return RP_OK;
}

static int scatter_name(const struct reading *r, const struct table_column *c, const uint8_t *in,
	uint8_t *member, struct error *e)
{
	uint32_t value = c->type == COLUMN_U8 ? *in : load_le16(in);

	if (value >= r->value_counts[c->of])
		return malformed(e, c->path, "a value that its names do not have");
	uint32_t mine = r->values[c->of][value];
	if (mine == TABLE_NONE)
		return fail(e, RP_E_UNSUPPORTED, ERROR_NO_OFFSET,
			"%s: a value that this reprise does not know: a newer one wrote it",
			c->path);
	if (c->type == COLUMN_U8)
		*member = (uint8_t)mine;
	else
		memcpy(member, &(uint16_t){(uint16_t)mine}, sizeof(uint16_t));
	return RP_OK;
}

/* One value of the file into a row, if it is one that can be. */
static int scatter(const struct reading *r, const struct table_column *c, const uint8_t *in,
	uint8_t *row, struct error *e)
{
	uint8_t *member = row + c->offset;
	uint32_t number;
	const char *text;
	bool set = *in == 1;

	switch ((enum table_role)c->role) {
	case TABLE_TEXT:
		memcpy(&number, in, sizeof number);
		if (number != TABLE_NONE && number >= r->text_count)
			return malformed(e, c->path, "a text that is not there");
		text = number == TABLE_NONE ? NULL : r->texts[number];
		memcpy(member, &text, sizeof text);
		return RP_OK;
	case TABLE_BOOL:
		if (*in > 1)
			return malformed(e, c->path, "neither 0 nor 1");
		memcpy(member, &set, sizeof set);
		return RP_OK;
	case TABLE_NAME:
		return scatter_name(r, c, in, member, e);
	case TABLE_ROW:
		memcpy(&number, in, sizeof number);
		if (number != TABLE_NONE && number >= r->tables[c->of].count)
			return malformed(e, c->path, "a row that is not there");
		break;
	case TABLE_NUMBER:
		break;
	}
	memcpy(member, in, stored_bytes(c));
	return RP_OK;
}

static int read_column(struct reading *r, const struct table_column *c, struct error *e)
{
	uint8_t block[BLOCK_BYTES];
	struct table *t = &r->tables[c->table];
	size_t row_size = r->schema->row_sizes[c->table], size = stored_bytes(c);
	size_t room = sizeof block / size;
	uint64_t rows;
	bool found;
	int status = colfile_find(
		r->file, c->path, (enum column_type)c->type, c->width, &rows, &found, e);

	if (status == RP_OK && (!found || rows != t->count))
		return malformed(e, c->path,
			found ? "it has not as many rows as its table" : "it is missing");
	for (size_t first = 0; status == RP_OK && first < t->count; first += room) {
		size_t n = t->count - first < room ? t->count - first : room;
		status = colfile_read(r->file, first, n, block, e);
		for (size_t i = 0; status == RP_OK && i < n; i++)
			status = scatter(r, c, block + i * size,
				(uint8_t *)t->rows + (first + i) * row_size, e);
	}
	return status;
}

/* Rooms for all tables first, so that rows of one can be told by another's. */
static int size_tables(struct reading *r, struct error *e)
{
	const struct table_column *c = r->schema->columns;

	for (size_t i = 0; i < r->schema->column_count; i++) {
		uint64_t rows;
		bool found;
		if (i > 0 && c[i].table == c[i - 1].table)
			continue;
		if (colfile_find(r->file, c[i].path, (enum column_type)c[i].type, c[i].width, &rows,
			    &found, e) < 0)
			return e->status;
		if (!found)
			return malformed(e, c[i].path, "it is missing");
		struct table *t = &r->tables[c[i].table];
		t->rows = take_room(r, rows, r->schema->row_sizes[c[i].table], e);
		if (!t->rows)
			return e->status;
		t->count = (size_t)rows;
	}
	return RP_OK;
}

int tables_read(struct colfile_reader *file, const struct table_schema *schema,
	struct table *tables, struct arena *texts, uint64_t memory, struct error *e)
{
	struct reading r = {.file = file,
		.schema = schema,
		.tables = tables,
		.arena = texts,
		.left = memory,
		.values = calloc(schema->name_count + 1, sizeof *r.values),
		.value_counts = calloc(schema->name_count + 1, sizeof *r.value_counts)};
	struct error own = ERROR_INIT;
	int status = r.values && r.value_counts
			     ? read_texts(&r, &own)
			     : fail(&own, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for its tables");

	memset(tables, 0, schema->table_count * sizeof *tables);
	for (size_t i = 0; i < schema->name_count && status == RP_OK; i++)
		status = read_names(&r, i, &own);
	if (status == RP_OK)
		status = size_tables(&r, &own);
	for (size_t i = 0; i < schema->column_count && status == RP_OK; i++)
		status = read_column(&r, &schema->columns[i], &own);
	for (size_t i = 0; r.values && i < schema->name_count; i++)
		free(r.values[i]);
	free(r.values);
	free(r.value_counts);
	free(r.texts);
	if (status == RP_OK)
		return RP_OK;
	tables_release(schema, tables);
	return fail(e, own.status, own.offset, "%s", own.text);
}

void tables_release(const struct table_schema *schema, struct table *tables)
{
	for (size_t i = 0; i < schema->table_count; i++) {
		free(tables[i].rows);
		tables[i] = (struct table){0};
	}
}
