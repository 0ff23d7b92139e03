/* SPDX-License-Identifier: MIT */
/*
 * Tables: CSV and TSV with a header row, by commas, semicolons (with decimal commas) or tabs; names
 * may be padded or quoted, cells blank. A header in the middle is a writer that was launched anew.
 * Lightning's metrics.csv, Keras' CSVLogger, YOLO's results.csv, DeepSpeed's monitor and the
 * exports of wandb and TensorBoard are such tables.
 */
#include <math.h>
#include <stdlib.h>

#include "curve/number.h"
#include "curve/rows.h"

#define CELLS_MAX 4096u /* of one row */
#define ROW_MAX 65536u  /* bytes of a row with line ends in quotes */
#define NUMBER_MAX 64u  /* bytes of a number with a decimal comma */

struct table {
	struct rows rows;
	struct lines lines;
	char separator;
	size_t count; /* of columns */
	uint32_t columns[CELLS_MAX];
	struct slice value; /* what the column Value of a TensorBoard export is of; p NULL: none */
	struct slice cells[CELLS_MAX];
	char *unquoted; /* room for a row's quoted cells */
	size_t unquoted_n;
};

/* Cells ---------------------------------------------------------------------------------------- */

/*
 * A quoted cell at `p`, its text to `out`; where it ends, or NULL where its quote stays open or
 * something stands behind it.
 */
static const char *quoted_cell(
	const char *p, const char *end, char separator, char *out, struct slice *cell)
{
	cell->p = out;
	for (p++; p < end; p++) {
		if (*p == '"' && (p + 1 == end || p[1] != '"'))
			break;
		p += *p == '"';
		*out++ = *p;
	}
	cell->n = (size_t)(out - cell->p);
	if (p >= end)
		return NULL;
	for (p++; p < end && *p == ' '; p++)
		;
	return p == end || *p == separator ? p : NULL;
}

/*
 * The cells of a row; `unquoted` has room for line.n bytes. SIZE_MAX where there are too many, or a
 * quote is wrong.
 */
static size_t split(struct slice line, char separator, struct slice *cells, char *unquoted)
{
	const char *p = line.p, *end = line.p + line.n;
	size_t n = 0;

	for (;; p++) {
		if (n == CELLS_MAX)
			return SIZE_MAX;
		while (p < end && *p == ' ' && *p != separator)
			p++;
		if (p < end && *p == '"') {
			p = quoted_cell(p, end, separator, unquoted, &cells[n]);
			if (!p)
				return SIZE_MAX;
			unquoted += cells[n].n;
		} else {
			const char *to = memchr(p, separator, (size_t)(end - p));
			to = to ? to : end;
			cells[n] = slice_trim((struct slice){p, (size_t)(to - p)});
			p = to;
		}
		n++;
		if (p >= end)
			return n;
	}
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

/* A number of the row at hand; between semicolons, the comma is the decimal point. */
static bool cell_number(struct slice cell, char separator, double *value, float *resolution)
{
	char plain[NUMBER_MAX];

	if (separator == ',' || cell.n > NUMBER_MAX || cell.n == 0 || !memchr(cell.p, ',', cell.n))
		return number_whole(cell, value, resolution);
	if (separator == '\t' && curve_number(cell, false, value, resolution))
		return true;
	for (size_t i = 0; i < cell.n; i++)
		plain[i] = cell.p[i] == ',' ? '.' : cell.p[i];
	return curve_number((struct slice){plain, cell.n}, false, value, resolution);
}

/* What separates most names of the header row. */
static char separator_of(struct slice line)
{
	static const char separators[] = {',', ';', '\t'};
	size_t counts[3] = {0};
	bool quoted = false;
	unsigned best = 0;

	for (size_t i = 0; i < line.n; i++) {
		quoted ^= line.p[i] == '"';
		for (unsigned k = 0; k < 3 && !quoted; k++)
			counts[k] += line.p[i] == separators[k];
	}
	for (unsigned k = 1; k < 3; k++)
		if (counts[k] > counts[best])
			best = k;
	return separators[best];
}

/* Telling -------------------------------------------------------------------------------------- */

struct header {
	bool x, role, sample_log, number, wall, value, epoch, step, export;
};

static void look_at_name(struct header *h, struct slice name)
{
	double value;
	float resolution;
	enum curve_role role = curve_meaning_of(name).role;

	h->x |= rows_x_of(name) > 0;
	h->role |= role != CURVE_OTHER && role != CURVE_EPOCH_COUNT && role != CURVE_SAMPLE_COUNT &&
		   role != CURVE_TOKEN_COUNT && role != CURVE_BATCH;
	h->sample_log |= slice_is(name, "id") || slice_is(name, "key");
	h->number |= curve_number(name, false, &value, &resolution);
	h->wall |= slice_is(name, "Wall time");
	h->value |= slice_is(name, "Value");
	h->epoch |= slice_is(name, "epoch");
	h->step |= slice_is(name, "step");
	h->export |= slice_find(name, SLICE(" - ")) != SIZE_MAX;
}

static struct header look_at_header(const struct slice *names, size_t n)
{
	struct header h = {0};

	for (size_t i = 0; i < n; i++)
		look_at_name(&h, names[i]);
	return h;
}

static int probe(const char *name, const char *head, size_t n)
{
	struct slice line = slice_without_mark((struct slice){head, n});
	const char *end = line.n ? memchr(line.p, '\n', line.n) : NULL;

	if (!end || end == line.p)
		return 0;
	line = slice_without_return((struct slice){line.p, (size_t)(end - line.p)});
	struct slice *cells = malloc(CELLS_MAX * sizeof *cells + line.n);
	if (!cells)
		return 0;
	size_t count = split(line, separator_of(line), cells, (char *)(cells + CELLS_MAX));
	struct header h = {0};
	if (count != SIZE_MAX)
		h = look_at_header(cells, count);
	free(cells);
	if (h.number || h.sample_log)
		return 0;
	if (h.x && (h.role || (h.wall && h.value)))
		return 2;
	return h.role && (slice_ends(slice_of(name), SLICE(".csv")) ||
				 slice_ends(slice_of(name), SLICE(".tsv")));
}

/* Reading -------------------------------------------------------------------------------------- */

/* DeepSpeed's monitor: a file for each series, called so with '_' for '/', and x is samples. */
static bool is_monitor(const char *name, size_t count)
{
	return count == 2 && slice_starts(slice_of(name), SLICE("Train_Samples_"));
}

/*
 * What the file is of: an export of TensorBoard is called run-<run>-tag-<tag>.csv, a file of
 * DeepSpeed's monitor <tag>.csv.
 */
static struct slice tag_of_name(const char *name)
{
	struct slice tag = slice_of(name);
	size_t at = slice_find(tag, SLICE("-tag-"));

	if (at != SIZE_MAX)
		tag = (struct slice){tag.p + at + 5, tag.n - at - 5};
	if (slice_ends(tag, SLICE(".csv")))
		tag.n -= 4;
	return tag;
}

static int take_header(struct table *t, size_t count, struct error *e)
{
	struct curve_reading *r = t->rows.r;
	struct header h = look_at_header(t->cells, count);

	t->count = count;
	if (h.export) {
		t->rows.unit_of_step = CURVE_CALLS;
		curve_writer(r, "wandb");
	}
	if (h.wall && h.value)
		curve_writer(r, "TensorBoard");
	if (is_monitor(r->name, count)) {
		t->rows.unit_of_step = CURVE_SAMPLES;
		curve_writer(r, "DeepSpeed");
	}
	if (h.epoch && h.step && strcmp(r->name, "metrics.csv") == 0) {
		t->rows.plus = 1;
		curve_writer(r, "Lightning");
		curve_note(r, "Lightning counts steps from 0: 1 is added");
	}
	rows_drop(&t->rows);
	for (size_t i = 0; i < count; i++) {
		struct slice name = t->cells[i];
		if ((h.wall && slice_is(name, "Value")) ||
			(is_monitor(r->name, count) && !rows_x_of(name)))
			name = tag_of_name(r->name);
		if (rows_column(&t->rows, name, &t->columns[i], e) < 0)
			return e->status;
	}
	return RP_OK;
}

/* Whether the row's cells are names again, one of which says where rows stand. */
static bool is_header(const struct table *t, size_t count)
{
	double value;
	float resolution;
	bool x = false;

	for (size_t i = 0; i < count; i++) {
		if (number_whole(t->cells[i], &value, &resolution))
			return false;
		x |= rows_x_of(t->cells[i]) > 0;
	}
	return x;
}

static int take_cells(struct table *t, size_t count, struct error *e)
{
	double value;
	float resolution;
	int status = RP_OK;

	for (size_t i = 0; i < count && status == RP_OK; i++)
		if (cell_number(t->cells[i], t->separator, &value, &resolution))
			status = rows_cell(&t->rows, t->columns[i], value, resolution, e);
	return status == RP_OK ? rows_end(&t->rows, e) : status;
}

static int take_row(struct table *t, struct slice line, enum line_state state, struct error *e)
{
	struct curve_reading *r = t->rows.r;
	struct curve_file *file = &r->log->files.items[r->file];

	file->lines++;
	if (line.n > t->unquoted_n) {
		free(t->unquoted);
		t->unquoted_n = 0;
		t->unquoted = calloc(1, line.n + LINES_PADDING);
		if (!t->unquoted)
			return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET,
				"no memory for a row of %zu bytes", line.n);
		t->unquoted_n = line.n;
	}
	size_t count = split(line, t->separator, t->cells, t->unquoted);
	if (t->count == 0 && count != SIZE_MAX)
		return take_header(t, count, e);
	if (count != SIZE_MAX && is_header(t, count)) {
		if (curve_mark(r, CURVE_LAUNCH, CURVE_STEPS, (double)NAN, (double)NAN,
			    (struct slice){0}, e) < 0)
			return e->status;
		return take_header(t, count, e);
	}
	if (count == t->count && (state != LINE_LAST || t->cells[count - 1].n > 0))
		return take_cells(t, count, e);
	file->torn |= state == LINE_LAST;
	if (count == SIZE_MAX)
		curve_lost(r, "a quote that is not closed, or more than %u cells", CELLS_MAX);
	else
		curve_lost(r, "%zu cells, but %zu in the header row", count, t->count);
	return RP_OK;
}

static int take_line(struct table *t, enum line_state state, struct error *e)
{
	struct curve_reading *r = t->rows.r;

	r->at = t->lines.number;
	if (state == LINE_TOO_LONG) {
		r->log->files.items[r->file].lines++;
		curve_lost(r, "the line is longer than %llu bytes (limit line-bytes)",
			(unsigned long long)r->log->limits->line_bytes);
		return RP_OK;
	}
	if (is_open(t->lines.text)) {
		while (is_open(t->lines.text) && lines_join(&t->lines, ROW_MAX))
			;
		/* A stray quote must not take other rows with it. */
		if (is_open(t->lines.text))
			lines_part(&t->lines);
	}
	struct slice line = slice_without_return(t->lines.text);
	if (t->lines.offset == 0)
		line = slice_without_mark(line);
	if (slice_trim(line).n == 0)
		return RP_OK;
	if (t->separator == '\0')
		t->separator = separator_of(line);
	return take_row(t, line, state, e);
}

static int read_table(struct curve_reading *r, struct error *e)
{
	struct table *t = calloc(1, sizeof *t);
	struct error why = ERROR_INIT;
	enum line_state state = LINE_NONE;
	int status = RP_OK;

	if (!t)
		return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for a table");
	rows_init(&t->rows, r);
	lines_init(&t->lines, r->source, r->log->limits->line_bytes);
	while (status == RP_OK && (state = lines_next(&t->lines, &why)) < LINE_NONE)
		status = take_line(t, state, e);
	if (status == RP_OK && state == LINE_FAILED)
		status = curve_broke(r, &why, e);
	if (t->rows.counted)
		curve_note(r, "rows that do not say a step are counted");
	lines_release(&t->lines);
	rows_release(&t->rows);
	free(t->unquoted);
	free(t);
	return status;
}

const struct curve_reader curve_reader_table = {.name = "csv", .probe = probe, .read = read_table};
