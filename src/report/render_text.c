/* SPDX-License-Identifier: MIT */
/* A report as text for people. The order: the answer, findings, tables, summary, coverage. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "report/page.h"
#include "report/report.h"

#define MESSAGE_COLUMN 16u  /* where a finding's text begins, behind code and severity */
#define ALIKE_SHOWN 2u      /* subjects named of those that were not checked for one reason */
#define COVERAGE_COLUMN 15u /* the same behind "not checked" */
#define SHOWN_PER_CODE 3u
#define SHOWN_ROWS 40u
#define NARROW_COLUMN 30u /* narrower, and a cell does not wrap in it */
#define EXPLAIN_CODES 4u
#define NEIGHBOURS 64u /* coverage that belongs together was added within so many entries */
#define TEXT_MAX ((size_t)1 << 20)

static const enum page_style tone_styles[] = {
	[TONE_PLAIN] = STYLE_PLAIN,
	[TONE_GOOD] = STYLE_GREEN,
	[TONE_WARNING] = STYLE_YELLOW,
	[TONE_BAD] = STYLE_RED,
	[TONE_DIM] = STYLE_DIM,
};

static enum page_style severity_style(const struct report *r, const struct finding *f)
{
	if (f->not_ready || f->accepted)
		return STYLE_YELLOW;
	if (f->severity >= report_failing(r))
		return STYLE_RED;
	return f->severity == SEVERITY_WARNING ? STYLE_YELLOW : STYLE_DIM;
}

static void show_answer(struct page *p, const struct report *r)
{
	enum page_style style = STYLE_BOLD;

	if (r->exit == EXIT_STATUS_FINDINGS || r->exit == EXIT_STATUS_FAILED)
		style = STYLE_RED;
	else if (r->exit != EXIT_STATUS_FINE || r->word == VERDICT_INEXACT)
		style = STYLE_YELLOW;
	page_put(p, style, report_word(r));
	page_put(p, STYLE_PLAIN, "  ");
	page_flow(p, 2, STYLE_PLAIN, r->evidence ? r->evidence : verdict_rows[r->word].text);
	page_line(p);
}

static void add_part(struct strbuf *b, const char *between)
{
	if (b->n > 0)
		strbuf_add_text(b, between);
}

/* Whether the message says it already: it is not said twice. */
static bool says(const char *message, const char *text)
{
	const char *at = strstr(message, text);

	if (!at || *text == '\0')
		return false;
	/* "step 1" is not said by "step 12", "step 1 200" and "step 1–4". */
	at += strlen(text);
	return *at == '\0' || strchr(",:;)", *at) || (*at == ' ' && !isdigit((unsigned char)at[1]));
}

static void add_steps(struct strbuf *b, const struct place *place)
{
	bool range = place->step_last != PLACE_NO_STEP && place->step_last != place->step_first;

	if (place->step_first == PLACE_NO_STEP)
		return;
	strbuf_add_text(b, range ? "steps " : "step ");
	text_add_signed_count(b, place->step_first);
	if (range) {
		strbuf_add_text(b, "–");
		text_add_signed_count(b, place->step_last);
	}
}

/* Where: file, path, byte, ranks, steps; what is the same for the whole report, or stands in the
 * message, is left out. */
static void add_place(
	struct strbuf *b, const struct report *r, const struct place *place, const char *message)
{
	bool only_file = place->file && r->inputs.count > 0 && r->inputs.items[0].path &&
			 slice_is(slice_of(place->file), r->inputs.items[0].path);

	/* Beside a run file it is still the only one; beside an earlier checkpoint it is not. */
	for (size_t i = 1; i < r->inputs.count && only_file; i++)
		only_file = r->inputs.items[i].role &&
			    slice_is(slice_of(r->inputs.items[i].role), "run file");

	if (place->file && !only_file)
		strbuf_add_text(b, place->file);
	if (place->path) {
		add_part(b, "  ");
		strbuf_add_text(b, place->path);
	}
	if (place->offset != PLACE_NO_OFFSET) {
		add_part(b, " · ");
		strbuf_add_text(b, "byte ");
		text_add_count(b, place->offset);
	}
	if (place->ranks) {
		add_part(b, " · ");
		strbuf_printf(b, "rank%s %s", strpbrk(place->ranks, "-,") ? "s" : "", place->ranks);
	}
	size_t begin = b->n;
	add_part(b, " · ");
	size_t text = b->n;
	add_steps(b, place);
	if (b->n == text || says(message, strbuf_text(b) + text))
		strbuf_truncate(b, begin);
}

static void add_quantity(
	struct strbuf *b, const char *name, const struct quantity *q, const char *unit)
{
	if (q->kind == QUANTITY_NONE)
		return;
	add_part(b, ", ");
	strbuf_printf(b, "%s ", name);
	if (q->kind == QUANTITY_COUNT)
		text_add_signed_count(b, q->count);
	else if (q->kind == QUANTITY_REAL)
		text_add_rounded(b, q->real, 6);
	else
		strbuf_add_text(b, q->text ? q->text : "");
	if (unit && q->kind != QUANTITY_TEXT)
		strbuf_printf(b, " %s", unit);
}

/* What was expected and what was observed; the latter alone only if the message does not say it. */
static void add_numbers(struct strbuf *b, const struct finding *f)
{
	bool pair = f->expected.kind != QUANTITY_NONE;

	add_quantity(b, "expected", &f->expected, f->unit);
	add_quantity(b, "observed", &f->observed, pair ? NULL : f->unit);
	if (!pair && b->n > strlen("observed ") &&
		says(f->message, strbuf_text(b) + strlen("observed ")))
		strbuf_clear(b);
}

/* The ratio names the bug; so does its reciprocal where that is a small whole number. */
static void add_ratio(struct strbuf *b, const struct finding *f)
{
	double ratio;

	if (!finding_ratio(f, &ratio) || ratio == 0 || ratio == 1)
		return;
	strbuf_add_text(b, " (ratio ");
	text_add_rounded(b, ratio, 4);
	double inverse = 1 / ratio;
	if (inverse >= 1.5 && inverse <= 65536) {
		double whole = (double)(int64_t)(inverse + 0.5);
		if (inverse - whole < 1e-9 * whole && whole - inverse < 1e-9 * whole)
			strbuf_printf(b, " = 1/%d", (int)whole);
	}
	strbuf_add_char(b, ')');
}

static void show_detail(struct page *p, enum page_style style, const char *label, const char *text)
{
	if (!text || *text == '\0')
		return;
	page_pad(p, MESSAGE_COLUMN);
	if (label)
		page_put(p, STYLE_BOLD, label);
	page_flow(p, MESSAGE_COLUMN, style, text);
	page_line(p);
}

/* The first sentence of one of the table's texts. */
static struct slice first_sentence(const char *text)
{
	size_t end = slice_find(slice_of(text), SLICE(". "));
	struct slice all = slice_of(text);

	return end == SIZE_MAX ? all : (struct slice){text, end + 1};
}

static void show_finding(struct page *p, const struct report *r, const struct render_options *o,
	const struct finding *f, bool first_of_code, struct strbuf *scratch)
{
	const struct finding_row *row = &finding_rows[f->code];
	enum page_style style = severity_style(r, f);
	const char *meaning = f->meaning, *remedy = f->remedy;

	page_pad(p, 2);
	page_put(p, style, row->code);
	page_pad(p, 7);
	page_put(p, style,
		f->not_ready  ? "waiting"
		: f->accepted ? "accepted"
			      : severity_name(f->severity));
	page_pad(p, MESSAGE_COLUMN);
	page_flow(p, MESSAGE_COLUMN, STYLE_PLAIN, *f->message ? f->message : row->summary);
	page_line(p);

	strbuf_clear(scratch);
	add_place(scratch, r, &f->place, f->message);
	show_detail(p, STYLE_DIM, NULL, strbuf_text(scratch));

	strbuf_clear(scratch);
	add_numbers(scratch, f);
	add_ratio(scratch, f);
	if (f->cause) {
		add_part(scratch, " · ");
		strbuf_printf(scratch, "cause: %s", f->cause);
	}
	show_detail(p, STYLE_PLAIN, NULL, strbuf_text(scratch));

	show_detail(p, STYLE_PLAIN, "accepted: ", f->accepted);
	if (o->verbose && first_of_code) {
		meaning = meaning ? meaning : row->explain;
		remedy = remedy ? remedy : row->remedy;
	}
	show_detail(p, STYLE_PLAIN, NULL, meaning);
	if (!remedy && first_of_code && f->severity >= report_failing(r)) {
		strbuf_clear(scratch);
		strbuf_add_slice(scratch, first_sentence(row->remedy));
		remedy = strbuf_text(scratch);
	}
	show_detail(p, STYLE_PLAIN, "fix: ", remedy);
}

static void show_findings(struct page *p, const struct report *r, const struct render_options *o,
	struct strbuf *scratch)
{
	size_t shown[FINDING_COUNT] = {0}, last[FINDING_COUNT] = {0}, total = 0;
	enum finding_code explained[EXPLAIN_CODES];
	size_t explain = 0;

	for (size_t i = 0; i < r->findings.list.count; i++)
		last[r->findings.list.items[i].code] = i;
	for (size_t i = 0; i < r->findings.list.count; i++) {
		const struct finding *f = &r->findings.list.items[i];

		if (f->severity == SEVERITY_OK && !o->verbose && !f->accepted)
			continue;
		if (total == 0)
			page_line(p);
		if (o->verbose || shown[f->code] < SHOWN_PER_CODE) {
			if (shown[f->code] == 0 && f->severity >= SEVERITY_WARNING &&
				explain < EXPLAIN_CODES)
				explained[explain++] = f->code;
			show_finding(p, r, o, f, shown[f->code] == 0, scratch);
			shown[f->code]++;
			total++;
		}
		size_t more = r->findings.of_code[f->code] - shown[f->code];
		if (i == last[f->code] && more > 0) {
			strbuf_clear(scratch);
			strbuf_add_text(scratch, "and ");
			text_add_count(scratch, more);
			strbuf_printf(scratch, " more %s", finding_rows[f->code].code);
			if (!o->verbose)
				strbuf_add_text(scratch, " (-v shows more)");
			show_detail(p, STYLE_DIM, NULL, strbuf_text(scratch));
		}
	}
	if (explain > 0) {
		strbuf_clear(scratch);
		strbuf_add_text(scratch, "reprise explain");
		for (size_t i = 0; i < explain; i++)
			strbuf_printf(scratch, " %s", finding_rows[explained[i]].code);
		page_pad(p, 2);
		page_put(p, STYLE_DIM, strbuf_text(scratch));
		page_line(p);
	}
}

static const char *cell_text(const char *cell)
{
	return cell ? cell : "";
}

/* Where the last cell of a row begins if the line has no room for it: below the second column. */
static unsigned start_below(const struct page *p, const unsigned *starts, size_t count)
{
	for (size_t i = 1; i < count; i++)
		if (starts[i] > starts[0] && starts[i] + NARROW_COLUMN <= p->width)
			return starts[i];
	return starts[0] + 2;
}

static void show_row(struct page *p, const char *const *cells, size_t count, const unsigned *starts,
	enum page_style style)
{
	while (count > 0 && *cell_text(cells[count - 1]) == '\0')
		count--;
	for (size_t i = 0; i < count; i++) {
		const char *cell = cell_text(cells[i]);
		unsigned start = starts[i];
		if (*cell == '\0')
			continue;
		/* The last cell wraps within its column, or below the row where that is narrow. A
		 * path is one word and stays in its row. */
		if (i > 0 && i + 1 == count && p->width > 0 && strchr(cell, ' ') &&
			start + NARROW_COLUMN > p->width && start + page_columns(cell) > p->width) {
			start = start_below(p, starts, count);
			page_line(p);
		}
		if (p->column < start)
			page_pad(p, start);
		if (i + 1 == count)
			page_flow(p, start, style, cell);
		else
			page_put(p, style, cell);
	}
	page_line(p);
}

static void show_table(struct page *p, const struct report_table *t, const struct render_options *o)
{
	size_t rows = t->rows.count, shown = rows;
	unsigned *starts = calloc(t->column_count + 1, sizeof *starts);

	if (!starts) {
		p->out->failed = true;
		return;
	}
	if (!o->verbose && shown > SHOWN_ROWS)
		shown = SHOWN_ROWS;
	starts[0] = t->title ? 4 : 2;
	for (size_t c = 0; c < t->column_count; c++) {
		unsigned widest = t->headings ? page_columns(cell_text(t->columns[c])) : 0;
		for (size_t i = 0; i < shown; i++) {
			unsigned columns = page_columns(cell_text(t->rows.items[i].cells[c]));
			widest = columns > widest ? columns : widest;
		}
		starts[c + 1] = starts[c] + widest + (widest > 0 ? 2 : 0);
	}
	page_line(p);
	if (t->title) {
		page_pad(p, 2);
		page_put(p, STYLE_BOLD, t->title);
		page_line(p);
	}
	if (t->headings)
		show_row(p, t->columns, t->column_count, starts, STYLE_DIM);
	for (size_t i = 0; i < shown; i++) {
		const struct report_row *row = &t->rows.items[i];
		show_row(p, row->cells, t->column_count, starts, tone_styles[row->tone]);
	}
	if (shown < rows) {
		struct strbuf more;

		strbuf_init(&more, TEXT_MAX);
		strbuf_add_text(&more, "and ");
		text_add_count(&more, rows - shown);
		strbuf_add_text(&more, " more (-v shows them)");
		page_pad(p, starts[0]);
		page_put(p, STYLE_DIM, strbuf_text(&more));
		page_line(p);
		strbuf_release(&more);
	}
	free(starts);
}

/* What a rule covered of one subject, entries of the same kind added up: one file each, say. */
struct covered {
	const char *rule, *subject, *unit, *reason;
	enum cover_status status;
	uint64_t done, total;
	bool said;
};

static bool same_text(const char *a, const char *b)
{
	return a && b ? slice_is(slice_of(a), b) : a == b;
}

/* Add up the coverage into `list`, which has room for all of it; the number of entries. */
static size_t add_up_coverage(const struct coverage *coverage, struct covered *list)
{
	size_t count = 0;

	for (size_t i = 0; i < coverage->list.count; i++) {
		const struct cover *c = &coverage->list.items[i];
		struct covered *known = NULL;

		for (size_t j = count; j > 0 && count - j < NEIGHBOURS && !known; j--) {
			struct covered *k = &list[j - 1];
			if (k->status == c->status && same_text(k->rule, c->rule) &&
				same_text(k->subject, c->subject) && same_text(k->unit, c->unit) &&
				same_text(k->reason, c->reason))
				known = k;
		}
		if (!known) {
			known = &list[count++];
			*known = (struct covered){
				.rule = c->rule,
				.subject = c->subject,
				.unit = c->unit,
				.reason = c->reason,
				.status = c->status,
			};
		}
		known->done += c->done;
		known->total += c->total;
	}
	return count;
}

/*
 * "7 of 8 ranks: rank 3's file is missing", as much of it as is known. What ran in full needs no
 * numbers unless they are asked for.
 */
static void add_covered(struct strbuf *b, const struct covered *c, bool verbose)
{
	if (c->total > 0 && (verbose || c->status != COVER_RAN)) {
		text_add_count(b, c->done);
		strbuf_add_text(b, " of ");
		text_add_count(b, c->total);
		if (c->unit)
			strbuf_printf(b, " %s", c->unit);
	}
	if (c->reason) {
		add_part(b, ": ");
		strbuf_add_text(b, c->reason);
	}
}

/* The entries of one status: subjects of which the same is to be said stand together. */
static bool show_covered(struct page *p, const char *label, enum cover_status status,
	struct covered *list, size_t count, bool verbose, struct strbuf *line, struct strbuf *what)
{
	struct strbuf other;

	strbuf_clear(line);
	strbuf_init(&other, TEXT_MAX);
	for (size_t i = 0; i < count; i++) {
		if (list[i].status != status || list[i].said)
			continue;
		/* A rule that found nothing to look at (no loss scaler, one rank) is no news. */
		if (status == COVER_RAN && list[i].total == 0 && !verbose)
			continue;
		strbuf_clear(what);
		add_covered(what, &list[i], verbose);
		add_part(line, "; ");
		strbuf_add_text(line, list[i].subject);
		size_t alike = 1, left_out = 0;
		for (size_t j = i + 1; j < count && j - i < NEIGHBOURS; j++) {
			if (list[j].status != status || list[j].said ||
				(status == COVER_RAN && list[j].total == 0 && !verbose))
				continue;
			strbuf_clear(&other);
			add_covered(&other, &list[j], verbose);
			if (!slice_eq(strbuf_slice(&other), strbuf_slice(what)))
				continue;
			list[j].said = true;
			if (same_text(list[j].subject, list[i].subject))
				continue;
			/* Many that lack the same thing are one fact; what ran is listed. */
			if (status != COVER_RAN && !verbose && alike >= ALIKE_SHOWN) {
				left_out++;
				continue;
			}
			alike++;
			strbuf_printf(line, ", %s", list[j].subject);
		}
		if (left_out)
			strbuf_printf(line, " and %zu more", left_out);
		if (what->n > 0)
			strbuf_printf(line, " (%s)", strbuf_text(what));
	}
	p->out->failed |= other.failed || other.no_memory;
	strbuf_release(&other);
	if (line->n == 0)
		return false;
	page_pad(p, 2);
	page_put(p, status == COVER_RAN ? STYLE_DIM : STYLE_YELLOW, label);
	page_pad(p, COVERAGE_COLUMN);
	page_flow(p, COVERAGE_COLUMN, STYLE_DIM, strbuf_text(line));
	page_line(p);
	return true;
}

static void show_coverage(struct page *p, const struct report *r, bool verbose, struct strbuf *line,
	struct strbuf *what)
{
	size_t count = r->coverage.list.count;
	struct covered *list = calloc(count + 1, sizeof *list);

	if (!list) {
		p->out->failed = true;
		return;
	}
	count = add_up_coverage(&r->coverage, list);
	bool ran = show_covered(p, "checked", COVER_RAN, list, count, verbose, line, what);
	bool partly = show_covered(p, "partly", COVER_PARTLY, list, count, verbose, line, what);
	bool left =
		show_covered(p, "not checked", COVER_NOT_CHECKED, list, count, verbose, line, what);
	free(list);
	if (r->has_verdict && !ran && !partly && !left) {
		page_put(p, STYLE_YELLOW, "  checked      nothing");
		page_line(p);
	}
	if (r->incomplete && !partly && !left) {
		page_put(p, STYLE_YELLOW, "  incomplete   something could not be looked at");
		page_line(p);
	}
}

/* Line by line, as it is: a drawing is not wrapped. */
static void show_picture(struct page *p, const char *text)
{
	struct strbuf line;

	if (!text)
		return;
	page_line(p);
	strbuf_init(&line, TEXT_MAX);
	while (*text) {
		size_t n = strcspn(text, "\n");
		strbuf_clear(&line);
		strbuf_add(&line, text, n);
		page_pad(p, 2);
		page_put(p, STYLE_PLAIN, strbuf_text(&line));
		page_line(p);
		text += n + (text[n] == '\n');
	}
	p->out->failed |= line.no_memory;
	strbuf_release(&line);
}

void report_render_text(const struct report *r, const struct render_options *o, struct strbuf *out)
{
	struct page p = {.out = out, .width = o->quiet ? 0 : o->width, .color = o->color};
	struct strbuf a, b;

	if (r->has_verdict)
		show_answer(&p, r);
	else if (r->summary) {
		page_flow(&p, 2, STYLE_BOLD, r->summary);
		page_line(&p);
	}
	if (o->quiet)
		return;
	strbuf_init(&a, TEXT_MAX);
	strbuf_init(&b, TEXT_MAX);
	show_findings(&p, r, o, &a);
	show_picture(&p, r->picture);
	for (size_t i = 0; i < r->tables.count; i++) {
		const struct report_table *t = &r->tables.items[i];
		if (t->rows.count > 0 && !t->data_only && (o->verbose || !t->verbose_only))
			show_table(&p, t, o);
	}
	if (r->has_verdict || r->coverage.list.count > 0 || r->incomplete)
		page_line(&p);
	if (r->has_verdict && r->summary) {
		page_pad(&p, 2);
		page_flow(&p, 2, STYLE_PLAIN, r->summary);
		page_line(&p);
	}
	show_coverage(&p, r, o->verbose, &a, &b);
	out->failed |= a.failed || b.failed || a.no_memory || b.no_memory;
	strbuf_release(&a);
	strbuf_release(&b);
}
