/* SPDX-License-Identifier: MIT */
/* JSON lines: the hot loop over step lines; all others go to said.c. */
#include <stdlib.h>
#include <string.h>

#include "base/lines.h"
#include "ledger/read.h"
#include "ledger/said.h"
#include "base/scan.h"
#include "ledger/step_line.h"

static bool is_blank(struct slice text)
{
	return scan_space(text.p) == text.p + text.n;
}

/* Whether a line has one of the keys that only sample logs have. */
static bool has_key(struct slice line)
{
	static const char *const keys[] = {"\"ids\"", "\"keys\"", "\"attempt\"", "\"reprise\""};

	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
		if (slice_find(line, slice_of(keys[i])) != SIZE_MAX)
			return true;
	return false;
}

/*
 * An object at the beginning. Of a file that was only found in a folder, one of the first lines
 * must also have what loss logs and other JSON lines do not have.
 */
static bool probe(const char *head, size_t n, bool named)
{
	struct slice rest = slice_without_mark((struct slice){head, n});
	bool first = true;

	while (rest.n > 0) {
		const char *end = memchr(rest.p, '\n', rest.n);
		struct slice line = {rest.p, end ? (size_t)(end - rest.p) : rest.n};
		while (line.n > 0 && (*line.p == ' ' || *line.p == '\t' || *line.p == '\r')) {
			line.p++;
			line.n--;
		}
		if (line.n > 0) {
			if (first && (*line.p != '{' || named))
				return *line.p == '{';
			first = false;
			if (*line.p == '{' && has_key(line))
				return true;
		}
		rest = end ? (struct slice){end + 1, rest.n - (size_t)(end + 1 - rest.p)}
			   : (struct slice){"", 0};
	}
	return false;
}

static int read_header(struct reading *r, struct error *e)
{
	struct slice head = slice_without_mark((struct slice){r->head, r->head_n});
	const char *end = head.n ? memchr(head.p, '\n', head.n) : NULL;
	struct arena scratch;
	bool is_header;

	if (!end)
		return RP_OK;
	arena_init(&scratch, r->ledger->limits->memory);
	r->line = 1;
	return said_header(
		r, &scratch, (struct slice){head.p, (size_t)(end - head.p)}, &is_header, e);
}

/* One file. */
struct jsonl {
	struct reading *r;
	struct lines lines;
	struct step_line step;
	struct arena scratch;
};

static int bad_step(struct jsonl *j, struct error *e)
{
	struct step_line *s = &j->step;

	if (s->column > 0)
		reading_lost(j->r, "%s (column %zu)", s->what, s->column);
	else
		reading_lost(j->r, "%s", s->what);
	/* Where the step was still understood, it is known of which one samples are missing. */
	return s->has_step ? reading_irregular(j->r, s->attempt, s->line.step, e) : RP_OK;
}

static int take_line(struct jsonl *j, struct slice text, struct error *e)
{
	struct reading *r = j->r;

	r->ledger->lines++;
	switch (step_line_scan(&j->step, text, r->ledger, e)) {
	case STEP_LINE:
		return reading_line(r, j->step.attempt, &j->step.line, e);
	case STEP_LINE_RARE:
		return said_line(r, &j->scratch, text, e);
	case STEP_LINE_OTHER:
		r->ledger->lines_other++;
		return RP_OK;
	case STEP_LINE_BAD:
		return bad_step(j, e);
	case STEP_LINE_FAILED:
		break;
	}
	return e->status;
}

/* The last line has no end. An object that is whole is taken; Python's "\n".join() writes such. */
static int take_last(struct jsonl *j, struct slice text, struct error *e)
{
	const char *p = scan_any(scan_space(text.p));

	if (is_blank(text))
		return RP_OK;
	if (*scan_space(text.p) == '{' && p && scan_space(p) == text.p + text.n)
		return take_line(j, text, e);
	j->r->ledger->lines++;
	reading_lost(j->r, "the last line is torn: %zu bytes without a line end", text.n);
	return RP_OK;
}

static int take_next(struct jsonl *j, enum line_state state, struct error *e)
{
	struct slice text = j->lines.text;

	j->r->line = j->lines.number;
	j->r->offset = j->lines.offset;
	if (j->lines.number == 1)
		text = slice_without_mark(text);
	if (state == LINE_LAST)
		return take_last(j, text, e);
	if (state == LINE_TOO_LONG) {
		j->r->ledger->lines++;
		reading_lost(j->r, "the line is longer than %llu bytes (limit line-bytes)",
			(unsigned long long)j->r->ledger->limits->line_bytes);
		return RP_OK;
	}
	return is_blank(text) ? RP_OK : take_line(j, text, e);
}

static int read_jsonl(struct reading *r, struct error *e)
{
	struct jsonl j = {.r = r};
	struct error why = ERROR_INIT;
	enum line_state state;
	int status = RP_OK;

	lines_init(&j.lines, r->source, r->ledger->limits->line_bytes);
	step_line_init(&j.step);
	arena_init(&j.scratch, r->ledger->limits->memory);
	while (status == RP_OK && (state = lines_next(&j.lines, &why)) < LINE_NONE)
		status = take_next(&j, state, e);
	if (status == RP_OK && state == LINE_FAILED) {
		if (error_of_system(&why))
			status = fail(e, why.status, why.offset, "%s", why.text);
		else
			reading_lost(r, "the rest was not read: %s", why.text);
	}
	arena_release(&j.scratch);
	step_line_release(&j.step);
	lines_release(&j.lines);
	return status;
}

const struct reader reader_jsonl = {
	.name = "jsonl", .probe = probe, .read_header = read_header, .read = read_jsonl};
