/* SPDX-License-Identifier: MIT */
/*
 * MLflow's file store: a file for each metric of a run, .../<run>/metrics/<name>, with lines
 * "milliseconds value step". Lines of a model's metrics name the run behind that, and repeat what
 * its own file has; such files are read only where the user names them. Older ones have no step.
 */
#include <math.h>
#include <string.h>

#include "curve/read.h"

#define FIELDS_MAX 8u

struct metric_line {
	double wall, value, step;
	float resolution;
	size_t fields;
};

static bool is_whole(struct slice text)
{
	if (text.n > 0 && text.p[0] == '-')
		text = (struct slice){text.p + 1, text.n - 1};
	for (size_t i = 0; i < text.n; i++)
		if (text.p[i] < '0' || text.p[i] > '9')
			return false;
	return text.n > 0;
}

static size_t split(struct slice line, struct slice *fields)
{
	size_t n = 0;

	line = slice_without_return(slice_trim(line));
	while (line.n > 0 && n < FIELDS_MAX) {
		const char *space = memchr(line.p, ' ', line.n);
		size_t length = space ? (size_t)(space - line.p) : line.n;
		fields[n++] = (struct slice){line.p, length};
		size_t taken = length + (space != NULL);
		line = (struct slice){line.p + taken, line.n - taken};
	}
	return n;
}

static bool parse(struct slice line, struct metric_line *m)
{
	struct slice fields[FIELDS_MAX];
	float whole;

	*m = (struct metric_line){.step = NAN};
	m->fields = split(line, fields);
	if (m->fields < 2 || !is_whole(fields[0]) ||
		!curve_number(fields[0], false, &m->wall, &whole) ||
		!curve_number(fields[1], false, &m->value, &m->resolution))
		return false;
	m->wall /= 1000;
	return m->fields == 2 ||
	       (is_whole(fields[2]) && curve_number(fields[2], false, &m->step, &whole));
}

static bool first_line(const char *head, size_t n, struct metric_line *m)
{
	const char *end = n ? memchr(head, '\n', n) : NULL;

	/* Milliseconds of a day between 1973 and 2286: few other numbers are. */
	return end && parse((struct slice){head, (size_t)(end - head)}, m) && m->wall >= 1e8 &&
	       m->wall < 1e10;
}

static int probe(const char *name, const char *head, size_t n)
{
	struct metric_line m;

	(void)name;
	if (!first_line(head, n, &m))
		return 0;
	return m.fields == 3 ? 2 : 1;
}

static double begun(const char *name, const char *head, size_t n)
{
	struct metric_line m;

	(void)name;
	return first_line(head, n, &m) ? m.wall : (double)NAN;
}

/* The metric's name is its path below the folder metrics: names may have slashes. */
static struct slice metric_name(const struct curve_reading *r)
{
	struct slice path = slice_of(r->log->files.items[r->file].path);
	struct slice folder = SLICE("/metrics/"), name = slice_of(r->name);

	for (size_t at = slice_find(path, folder); at != SIZE_MAX; at = slice_find(path, folder)) {
		path = (struct slice){path.p + at + folder.n, path.n - at - folder.n};
		name = path;
	}
	return name;
}

static int take_line(
	struct curve_reading *r, const struct lines *lines, enum line_state state, struct error *e)
{
	struct curve_file *file = &r->log->files.items[r->file];
	struct metric_line m;
	uint32_t series;

	r->at = lines->number;
	if (slice_trim(lines->text).n == 0 && state != LINE_TOO_LONG)
		return RP_OK;
	file->lines++;
	if (state == LINE_TOO_LONG || !parse(lines->text, &m)) {
		file->torn |= state == LINE_LAST;
		curve_lost(r, "no line of a metric: milliseconds, value, step");
		return RP_OK;
	}
	/* A number that is cut off looks like one. */
	if (state == LINE_LAST) {
		file->torn = true;
		curve_lost(r, "the last line is torn");
		return RP_OK;
	}
	r->wall = m.wall;
	bool counted = isnan(m.step);
	if (curve_series_of(r, metric_name(r), CURVE_OTHER, counted ? CURVE_CALLS : CURVE_STEPS,
		    CURVE_OF_UNKNOWN, -1, &series, e) < 0)
		return e->status;
	return curve_add(
		r, series, counted ? (double)lines->number : m.step, m.value, m.resolution, e);
}

static int read_mlflow(struct curve_reading *r, struct error *e)
{
	struct lines lines;
	struct error why = ERROR_INIT;
	enum line_state state = LINE_NONE;
	int status = RP_OK;

	lines_init(&lines, r->source, r->log->limits->line_bytes);
	while (status == RP_OK && (state = lines_next(&lines, &why)) < LINE_NONE)
		status = take_line(r, &lines, state, e);
	if (status == RP_OK && state == LINE_FAILED)
		status = curve_broke(r, &why, e);
	lines_release(&lines);
	curve_writer(r, "MLflow");
	return status;
}

const struct curve_reader curve_reader_mlflow = {
	.name = "mlflow", .probe = probe, .read = read_mlflow, .begun = begun};
