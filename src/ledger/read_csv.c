/* SPDX-License-Identifier: MIT */
/*
 * CSV (RFC 4180) with a header row, one sample a row. The rows of a step are gathered, whatever the
 * order of ranks in it, and become one line a rank and micro-batch.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <xxhash.h>

#include "base/text.h"
#include "base/lines.h"
#include "ledger/csv_rows.h"
#include "base/scan.h"
#include "ledger/step_line.h"

#define COLUMNS_MAX 256u
#define PREFIX_MAX 128u   /* bytes that rows of a step begin with */
#define HEADER_MAX 4096u  /* bytes of a header row */
#define QUOTED_MAX 65536u /* bytes of a row with line ends in quotes */

#define CSV_COLUMNS(COLUMN)                                                                        \
	COLUMN(attempt)                                                                            \
	COLUMN(step)                                                                               \
	COLUMN(dp)                                                                                 \
	COLUMN(micro)                                                                              \
	COLUMN(worker)                                                                             \
	COLUMN(split)                                                                              \
	COLUMN(epoch)                                                                              \
	COLUMN(id)                                                                                 \
	COLUMN(key)                                                                                \
	COLUMN(source)                                                                             \
	COLUMN(tokens)                                                                             \
	COLUMN(loss)

enum csv_column {
#define COLUMN(name) CSV_##name,
	CSV_COLUMNS(COLUMN)
#undef COLUMN
		CSV_UNKNOWN,
};

struct header {
	enum csv_column columns[COLUMNS_MAX];
	size_t count;
	unsigned has;      /* bits by enum csv_column */
	const char *twice; /* a column that is there more than once */
};

struct csv {
	struct reading *r;
	struct lines lines;
	enum csv_column columns[COLUMNS_MAX];
	size_t count;
	struct step_line names; /* knows the newest sources */
	const char *what;       /* is wrong with the row at hand, and in which column */
	const char *what_column;
	/* What the newest row began with, before its first column of its own, and what that said.
	 */
	char prefix[PREFIX_MAX];
	size_t prefix_n, prefix_columns;
	struct csv_row prefix_row;
	bool plain;           /* the only column behind those is the id */
	struct csv_rows rows; /* of a step so far */
};

/* Fields --------------------------------------------------------------------------------------- */

static bool is_named(struct slice name, const char *word)
{
	return name.n == strlen(word) && strncasecmp(name.p, word, name.n) == 0;
}

static enum csv_column column_of(struct slice name)
{
	name = slice_trim(name);
#define COLUMN(word)                                                                               \
	if (is_named(name, #word))                                                                 \
		return CSV_##word;
	CSV_COLUMNS(COLUMN)
#undef COLUMN
	return CSV_UNKNOWN;
}

static const char *column_name(enum csv_column c)
{
	static const char *const names[] = {
#define COLUMN(word) #word,
		CSV_COLUMNS(COLUMN)
#undef COLUMN
	};

	return names[c];
}

enum field_end { FIELD_MORE, FIELD_LAST, FIELD_OPEN, FIELD_BAD };

/*
 * The field at *p, and *p behind its comma. FIELD_OPEN: a quote that the line does not close.
 * Doubled quotes are halved in place, since nobody reads the line again. Blanks around a field
 * without quotes are no part of it.
 */
static enum field_end next_field(char **p, char *end, char comma, struct slice *out)
{
	char *at = *p;

	if (at < end && *at == '"') {
		char *to = ++at;
		out->p = at;
		for (;; at++) {
			if (at >= end)
				return FIELD_OPEN;
			if (*at == '"') {
				if (at + 1 < end && at[1] == '"')
					at++;
				else
					break;
			}
			*to++ = *at;
		}
		out->n = (size_t)(to - out->p);
		at++;
		if (at < end && *at != comma)
			return FIELD_BAD;
	} else {
		char *stop = at;
		while (stop < end && *stop != comma)
			stop++;
		*out = slice_trim((struct slice){at, (size_t)(stop - at)});
		at = stop;
	}
	*p = at < end ? at + 1 : at;
	return at < end ? FIELD_MORE : FIELD_LAST;
}

/* Whether a quote stands open at the end of the line: it goes on in the next one then. */
static bool is_open(struct slice line)
{
	bool open = false;

	if (line.n == 0 || !memchr(line.p, '"', line.n))
		return false;
	for (size_t i = 0; i < line.n; i++)
		open ^= line.p[i] == '"';
	return open;
}

static bool wrong(struct csv *c, enum csv_column column, const char *what)
{
	c->what = what;
	c->what_column = column == CSV_UNKNOWN ? NULL : column_name(column);
	return false;
}

static bool whole(
	struct csv *c, enum csv_column column, struct slice field, uint64_t max, uint64_t *out)
{
	const char *end = scan_u64(field.p, out), *stop = field.p + field.n;

	/* 2.0 is what some writers make of 2. */
	if (end && end + 1 < stop && *end == '.')
		for (end++; end < stop && *end == '0'; end++)
			;
	/* A field ends with a comma, a quote or the line end: no digit stands behind it. */
	if (end != stop)
		return wrong(c, column, "no whole number from 0 on");
	return *out <= max ? true : wrong(c, column, "the number is too large");
}

static bool real(struct slice field, double *out)
{
	return scan_double(field.p, out) == field.p + field.n || text_parse_double(field, out);
}

static bool take_id(struct csv *c, struct csv_row *row, struct slice field)
{
	if (field.n == 0)
		return wrong(c, CSV_id, "an empty field");
	if (scan_u64(field.p, &row->key) == field.p + field.n) {
		row->place.kind = KEY_ID;
		return true;
	}
	if (field.n > 1 && field.p[0] == '-' && field.p[1] >= '0' && field.p[1] <= '9')
		return wrong(c, CSV_id, "an id below 0");
	row->place.kind = KEY_TEXT;
	row->key = XXH3_64bits(field.p, field.n);
	return true;
}

static bool take_key(struct csv *c, struct csv_row *row, struct slice field)
{
	row->place.kind = KEY_CONTENT;
	row->key = 0;
	if (field.n != 16)
		return wrong(c, CSV_key, "no 16 hexadecimal digits");
	for (size_t i = 0; i < 16; i++) {
		int digit = text_hex_digit(field.p[i]);
		if (digit < 0)
			return wrong(c, CSV_key, "no 16 hexadecimal digits");
		row->key = row->key << 4 | (uint64_t)digit;
	}
	return true;
}

/* False where the row is bad (c->what) or memory ran out (e). */
static bool take_field(struct csv *c, enum csv_column column, struct slice field,
	struct csv_row *row, struct error *e)
{
	uint64_t v = 0;
	double d;

	if (field.n == 0 && column != CSV_id && column != CSV_key && column != CSV_step)
		return true;
	switch (column) {
	case CSV_attempt:
		if (!whole(c, column, field, (uint64_t)LEDGER_STEP_MAX, &v))
			return false;
		row->attempt = (int64_t)v;
		return true;
	case CSV_step:
		if (!whole(c, column, field, (uint64_t)LEDGER_STEP_MAX, &v))
			return false;
		row->step = (int64_t)v;
		return true;
	case CSV_dp:
		if (!whole(c, column, field, INT32_MAX, &v))
			return false;
		row->place.dp = (uint32_t)v;
		return true;
	case CSV_micro:
		if (!whole(c, column, field, UINT16_MAX, &v))
			return false;
		row->place.micro = (uint16_t)v;
		return true;
	case CSV_worker:
		if (!whole(c, column, field, UINT16_MAX - 1, &v))
			return false;
		row->place.worker = (uint16_t)v;
		return true;
	case CSV_epoch:
		if (!real(field, &d) || !(d >= 0 && d <= INT32_MAX))
			return wrong(c, column, "no number from 0 on");
		row->place.epoch = (int32_t)d;
		return true;
	case CSV_split:
		row->other = !split_is_training(field);
		return true;
	case CSV_id:
		return take_id(c, row, field);
	case CSV_key:
		return take_key(c, row, field);
	case CSV_source:
		return step_line_source(&c->names, field, c->r->ledger, &row->source, e) == RP_OK;
	case CSV_tokens:
		if (!whole(c, column, field, UINT32_MAX, &v))
			return false;
		row->tokens = (uint32_t)v;
		return true;
	case CSV_loss:
		if (!real(field, &d))
			return wrong(c, column, "no number");
		row->loss = (float)d;
		return true;
	case CSV_UNKNOWN:
		break;
	}
	return true;
}

/* Rows of a rank and step begin alike: what the row before began with need not be read again. */
static size_t take_prefix(struct csv *c, struct slice line, struct csv_row *row)
{
	if (c->prefix_n == 0 || line.n <= c->prefix_n ||
		memcmp(line.p, c->prefix, c->prefix_n) != 0)
		return 0;
	*row = c->prefix_row;
	return c->prefix_n;
}

static void keep_prefix(struct csv *c, const struct csv_row *row, size_t n)
{
	c->prefix_n = n <= PREFIX_MAX ? n : 0;
	c->prefix_row = *row;
}

/* An integer id without quotes, which is what nearly all rows have. */
static bool take_plain_id(char **p, const char *end, struct csv_row *row, enum field_end *state)
{
	const char *q = scan_u64(*p, &row->key);

	if (!q || q > end || (q < end && *q != ','))
		return false;
	row->place.kind = KEY_ID;
	*state = q < end ? FIELD_MORE : FIELD_LAST;
	*p += q - *p + (q < end);
	return true;
}

static bool take_row(struct csv *c, struct slice line, struct csv_row *row, struct error *e)
{
	char *begin = c->lines.buffer + (line.p - c->lines.buffer), *p = begin, *end = p + line.n;
	enum field_end state = FIELD_MORE;
	struct slice field;

	c->what = NULL;
	size_t known = take_prefix(c, line, row), i = known ? c->prefix_columns : 0;
	p += known;
	if (!known) {
		/* Quotes are halved in place, so the bytes are taken before. */
		memcpy(c->prefix, begin, line.n < PREFIX_MAX ? line.n : PREFIX_MAX);
		c->prefix_n = 0;
		*row = (struct csv_row){.attempt = LEDGER_UNNUMBERED,
			.source = LEDGER_NONE,
			.loss = NAN,
			.place = {.dp = LEDGER_NONE, .worker = UINT16_MAX, .epoch = -1}};
	}
	for (; state == FIELD_MORE; i++) {
		if (!known && i == c->prefix_columns)
			keep_prefix(c, row, (size_t)(p - begin));
		if (i < c->count && c->columns[i] == CSV_id && take_plain_id(&p, end, row, &state))
			continue;
		state = next_field(&p, end, ',', &field);
		if (state == FIELD_OPEN)
			return wrong(c, CSV_UNKNOWN, "a quote that is not closed");
		if (state == FIELD_BAD)
			return wrong(c, CSV_UNKNOWN, "something behind a closing quote");
		if (i >= c->count)
			return wrong(c, CSV_UNKNOWN, "more fields than the header row has");
		if (!take_field(c, c->columns[i], field, row, e))
			return false;
	}
	return i == c->count || wrong(c, CSV_UNKNOWN, "fewer fields than the header row has");
}

/* Rows ----------------------------------------------------------------------------------------- */

/*
 * The rows behind the one at hand that differ from it in nothing but an integer id, which nearly
 * all rows of a step do: they join its stretch.
 */
static bool take_alike(struct csv *c)
{
	struct slice rest = lines_rest(&c->lines);
	const char *p = rest.p, *end = rest.p + rest.n;
	uint64_t taken = 0, key;

	while ((size_t)(end - p) > c->prefix_n && c->rows.rows.keys.count < CSV_ROWS_MAX &&
		memcmp(p, c->prefix, c->prefix_n) == 0) {
		const char *q = scan_u64(p + c->prefix_n, &key);
		if (q && *q == '\r')
			q++;
		if (!q || *q != '\n')
			break;
		if (!csv_rows_join(&c->rows, key))
			return false;
		taken++;
		p = q + 1;
	}
	c->r->ledger->lines += taken;
	lines_pass(&c->lines, (size_t)(p - rest.p), taken);
	return true;
}

/* Lines ---------------------------------------------------------------------------------------- */

/* The columns of a header row; their number, or 0 where it is none. */
static size_t read_columns(struct slice line, char comma, struct header *h)
{
	enum field_end state = FIELD_MORE;
	char copy[HEADER_MAX], *p = copy, *end = copy + line.n;
	struct slice field;

	*h = (struct header){0};
	if (line.n > sizeof copy)
		return 0;
	/* Quotes are halved in place. */
	memcpy(copy, line.p, line.n);
	while (state == FIELD_MORE) {
		state = next_field(&p, end, comma, &field);
		if (state == FIELD_OPEN || state == FIELD_BAD || h->count == COLUMNS_MAX)
			return 0;
		enum csv_column column = column_of(field);
		h->columns[h->count++] = column;
		if (column == CSV_UNKNOWN)
			continue;
		if (h->has & 1u << column)
			h->twice = column_name(column);
		h->has |= 1u << column;
	}
	return h->has & 1u << CSV_step && h->has & (1u << CSV_id | 1u << CSV_key) ? h->count : 0;
}

/* The comma of a file whose first line is a header row, or 0. */
static char find_comma(struct slice line, struct header *h)
{
	static const char commas[] = ",;\t";

	for (const char *p = commas; *p; p++)
		if (read_columns(line, *p, h) > 0)
			return *p;
	return 0;
}

static struct slice first_line(const char *head, size_t n)
{
	struct slice line = slice_without_mark((struct slice){head, n});
	const char *end = line.n ? memchr(line.p, '\n', line.n) : NULL;

	if (end)
		line.n = (size_t)(end - line.p);
	return slice_without_return(line);
}

static bool probe(const char *head, size_t n, bool named)
{
	struct header h;

	(void)named;
	return find_comma(first_line(head, n), &h) != 0;
}

/* What is wrong with a header row that is plainly meant as one. */
static int check_header(struct slice line, struct header *h, struct error *e)
{
	char comma = find_comma(line, h);

	if (comma != ',')
		return fail(e, RP_E_UNSUPPORTED, ERROR_NO_OFFSET,
			"its columns are separated by %s; commas are wanted",
			comma == ';' ? "semicolons" : "tabs");
	if (h->twice)
		return fail(e, RP_E_UNSUPPORTED, ERROR_NO_OFFSET,
			"its header row has the column %s twice", h->twice);
	if (h->has & 1u << CSV_id && h->has & 1u << CSV_key)
		return fail(e, RP_E_UNSUPPORTED, ERROR_NO_OFFSET,
			"its header row has both id and key: leave one of them out");
	return RP_OK;
}

static int read_header(struct reading *r, struct error *e)
{
	struct header h;

	return check_header(first_line(r->head, r->head_n), &h, e);
}

static int take_line(struct csv *c, struct error *e)
{
	struct reading *r = c->r;
	struct slice line = c->lines.text;
	struct csv_row row;

	if (slice_without_return(line).n == 0)
		return RP_OK;
	r->ledger->lines++;
	if (is_open(line)) {
		while (is_open(c->lines.text) && lines_join(&c->lines, QUOTED_MAX))
			;
		/* A stray quote must not take other rows with it. */
		if (is_open(c->lines.text))
			lines_part(&c->lines);
		line = c->lines.text;
	}
	if (!take_row(c, slice_without_return(line), &row, e)) {
		if (!c->what)
			return e->status;
		if (c->what_column)
			reading_lost(r, "%s: %s", c->what_column, c->what);
		else
			reading_lost(r, "%s", c->what);
		return RP_OK;
	}
	if (row.other) {
		r->ledger->lines_other++;
		return RP_OK;
	}
	if (csv_rows_add(&c->rows, &row, c->lines.number, e) < 0)
		return e->status;
	if (c->plain && c->prefix_n > 0 && row.place.kind == KEY_ID && !take_alike(c))
		return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for the rows of a step");
	return RP_OK;
}

static int take_header(struct csv *c, struct error *e)
{
	struct header h;

	if (check_header(first_line(c->lines.text.p, c->lines.text.n), &h, e) < 0)
		return e->status;
	c->count = h.count;
	c->rows.sources = h.has & 1u << CSV_source;
	c->rows.tokens = h.has & 1u << CSV_tokens;
	c->rows.losses = h.has & 1u << CSV_loss;
	memcpy(c->columns, h.columns, sizeof c->columns);
	while (c->prefix_columns < c->count && c->columns[c->prefix_columns] <= CSV_epoch)
		c->prefix_columns++;
	c->plain = c->prefix_columns + 1 == c->count && c->columns[c->prefix_columns] == CSV_id;
	for (size_t i = 0; i < c->count; i++)
		if (c->columns[i] == CSV_UNKNOWN) {
			ledger_note(c->r->ledger, c->r->file, 1,
				"a column whose name is not known here is left out (number %zu)",
				i + 1);
			break;
		}
	return RP_OK;
}

static int take_next(struct csv *c, enum line_state state, struct error *e)
{
	c->r->line = c->lines.number;
	c->r->offset = c->lines.offset;
	if (c->lines.number == 1)
		return take_header(c, e);
	if (state == LINE_WHOLE)
		return take_line(c, e);
	c->r->ledger->lines++;
	if (state == LINE_LAST)
		reading_lost(c->r, "the last row is torn: %zu bytes without a line end",
			c->lines.text.n);
	else
		reading_lost(c->r, "the line is longer than %llu bytes (limit line-bytes)",
			(unsigned long long)c->r->ledger->limits->line_bytes);
	return RP_OK;
}

static int read_csv(struct reading *r, struct error *e)
{
	struct csv *c = calloc(1, sizeof *c);
	struct error why = ERROR_INIT;
	enum line_state state = LINE_NONE;
	int status = RP_OK;

	if (!c)
		return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory to read rows");
	c->r = c->rows.r = r;
	lines_init(&c->lines, r->source, r->ledger->limits->line_bytes);
	step_line_init(&c->names);
	while (status == RP_OK && (state = lines_next(&c->lines, &why)) < LINE_NONE)
		status = take_next(c, state, e);
	if (status == RP_OK)
		status = csv_rows_flush(&c->rows, e);
	if (status == RP_OK && state == LINE_FAILED) {
		if (error_of_system(&why))
			status = fail(e, why.status, why.offset, "%s", why.text);
		else
			reading_lost(r, "the rest was not read: %s", why.text);
	}
	csv_rows_release(&c->rows);
	step_line_release(&c->names);
	lines_release(&c->lines);
	free(c);
	return status;
}

const struct reader reader_csv = {
	.name = "csv", .probe = probe, .read_header = read_header, .read = read_csv};
