/* SPDX-License-Identifier: MIT */
/* JSON lines of any trainer: each an object whose numbers are the series. */
#include <stdlib.h>
#include <string.h>

#include "base/scan.h"
#include "curve/members.h"
#include "curve/rows.h"

#define SNIFFED_LINES 64u /* of the file's beginning */

/* One object and nothing else. The text ends with '\n'. */
static bool scan_line(struct slice line, member_fn member, void *to, bool *taken)
{
	const char *p = scan_space(line.p);

	*taken = true;
	if (*p != '{')
		return false;
	p = members_scan(p, member, to, taken);
	return p && scan_space(p) == line.p + line.n;
}

/* Telling ------------------------------------------------------------------------------------- */

struct sniffed {
	bool x, role, sample_log;
};

static bool sniff_member(void *to, struct slice name, double value, float resolution)
{
	struct sniffed *s = to;
	struct curve_meaning m = curve_meaning_of(name);

	(void)value;
	(void)resolution;
	s->x |= rows_x_of(name) > 0;
	s->role |= m.role != CURVE_OTHER && m.role != CURVE_EPOCH_COUNT &&
		   m.role != CURVE_SAMPLE_COUNT && m.role != CURVE_TOKEN_COUNT;
	s->sample_log |= slice_is(name, "attempt") || slice_is(name, "dp");
	return true;
}

/* Whether the line is one of reprise's own sample logs. */
static bool of_sample_log(struct slice line)
{
	return slice_find(line, SLICE("\"reprise\"")) != SIZE_MAX ||
	       slice_find(line, SLICE("\"ids\"")) != SIZE_MAX ||
	       slice_find(line, SLICE("\"keys\"")) != SIZE_MAX;
}

static int probe(const char *name, const char *head, size_t n)
{
	struct sniffed found = {0};
	const char *p = head, *end = head + n, *newline;
	bool any = false, taken;

	(void)name;
	if (n == 0 || *scan_space(head) != '{')
		return 0;
	for (unsigned i = 0; i < SNIFFED_LINES; i++, p = newline + 1) {
		newline = p < end ? memchr(p, '\n', (size_t)(end - p)) : NULL;
		if (!newline)
			break;
		struct slice line = {p, (size_t)(newline - p)};
		found = (struct sniffed){0};
		if (!scan_line(line, sniff_member, &found, &taken))
			continue;
		any = true;
		if (found.sample_log || of_sample_log(line))
			return 0;
		if (found.x && found.role)
			return 2;
	}
	return any;
}

/* Reading -------------------------------------------------------------------------------------- */

struct jsonl {
	struct rows rows;
	struct error *e;
};

static bool take_member(void *to, struct slice name, double value, float resolution)
{
	struct jsonl *j = to;
	uint32_t column;

	return rows_column(&j->rows, name, &column, j->e) == RP_OK &&
	       rows_cell(&j->rows, column, value, resolution, j->e) == RP_OK;
}

/* Whether the object says of itself that it is about data that is not trained on. */
static bool of_held_out(struct slice line)
{
	static const char *const names[] = {"\"split\"", "\"mode\"", "\"phase\""};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		size_t at = slice_find(line, slice_of(names[i]));
		if (at == SIZE_MAX)
			continue;
		const char *p = scan_space(line.p + at + strlen(names[i]));
		if (*p != ':' || *(p = scan_space(p + 1)) != '"')
			continue;
		const char *end = line.p + line.n, *quote;
		p++;
		quote = p < end ? memchr(p, '"', (size_t)(end - p)) : NULL;
		if (quote && curve_is_held_out((struct slice){p, (size_t)(quote - p)}))
			return true;
	}
	return false;
}

static int take_line(struct jsonl *j, const struct lines *lines, enum line_state state)
{
	struct curve_reading *r = j->rows.r;
	struct curve_file *file = &r->log->files.items[r->file];
	struct slice line = slice_trim(lines->text);
	bool taken;

	r->at = lines->number;
	if (line.n == 0 && state != LINE_TOO_LONG)
		return RP_OK;
	file->lines++;
	if (state == LINE_TOO_LONG) {
		curve_lost(r, "the line is longer than %llu bytes (limit line-bytes)",
			(unsigned long long)r->log->limits->line_bytes);
		return RP_OK;
	}
	if (scan_line(lines->text, take_member, j, &taken)) {
		if (taken && of_held_out(line)) {
			rows_drop(&j->rows);
			return RP_OK;
		}
		return taken ? rows_end(&j->rows, j->e) : j->e->status;
	}
	rows_drop(&j->rows);
	if (!taken)
		return j->e->status;
	file->torn = state == LINE_LAST;
	curve_lost(r, state == LINE_LAST ? "the last line is torn: no whole JSON object"
					 : "no JSON object");
	return RP_OK;
}

static int read_jsonl(struct curve_reading *r, struct error *e)
{
	struct jsonl j = {.e = e};
	struct lines lines;
	struct error why = ERROR_INIT;
	enum line_state state = LINE_NONE;
	int status = RP_OK;

	rows_init(&j.rows, r);
	lines_init(&lines, r->source, r->log->limits->line_bytes);
	while (status == RP_OK && (state = lines_next(&lines, &why)) < LINE_NONE)
		status = take_line(&j, &lines, state);
	if (status == RP_OK && state == LINE_FAILED)
		status = curve_broke(r, &why, e);
	if (j.rows.counted)
		curve_note(r, "lines that do not say a step are counted");
	lines_release(&lines);
	rows_release(&j.rows);
	return status;
}

const struct curve_reader curve_reader_jsonl = {
	.name = "jsonl", .probe = probe, .read = read_jsonl};
