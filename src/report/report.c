/* SPDX-License-Identifier: MIT */
#include "report/report.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"

#define REPORT_MEMORY ((size_t)256 << 20)
#define INPUTS_MAX 100000u
#define TABLES_MAX 1000u
#define ROWS_MAX 10000000u
#define COLUMNS_MAX 70000u /* a curve has one for each source of loss */

void report_init(struct report *r, const char *command)
{
	*r = (struct report){.command = command};
	arena_init(&r->arena, REPORT_MEMORY);
	findings_init(&r->findings);
	coverage_init(&r->coverage);
}

void report_release(struct report *r)
{
	for (size_t i = 0; i < r->tables.count; i++)
		array_release(&r->tables.items[i].rows);
	array_release(&r->tables);
	array_release(&r->inputs);
	findings_release(&r->findings);
	coverage_release(&r->coverage);
	arena_release(&r->arena);
}

enum severity report_failing(const struct report *r)
{
	return r->failing == SEVERITY_OK ? SEVERITY_ERROR : r->failing;
}

void report_take_verdict(struct report *r, const struct verdict *v)
{
	r->has_verdict = true;
	r->word = v->word;
	r->evidence = v->evidence;
	r->exit = (int)v->exit;
}

void report_finish(struct report *r)
{
	findings_sort(&r->findings);
	if (r->findings.lost > 0 || r->coverage.lost > 0) {
		r->incomplete = true;
		r->exit = EXIT_STATUS_FAILED;
	}
}

const char *report_word(const struct report *r)
{
	static const char *const would[VERDICT_COUNT] = {
#define VERDICT(id, word, forecast, text) [VERDICT_##id] = "WOULD-" word,
#include "finding/verdicts.def"
#undef VERDICT
	};
	const struct verdict_row *row = &verdict_rows[r->word];

	return r->forecast && row->forecast ? would[r->word] : row->word;
}

/* A copy in the report's arena; NULL stays NULL. */
static const char *copy_text(struct report *r, const char *text)
{
	if (!text)
		return NULL;
	const char *copy = arena_strdup(&r->arena, slice_of(text));
	if (!copy)
		r->findings.lost++;
	return copy ? copy : "";
}

struct report_input *report_add_input(
	struct report *r, const char *path, const char *role, const char *kind)
{
	struct report_input *input = array_push(&r->inputs, INPUTS_MAX);

	if (!input) {
		r->findings.lost++;
		return NULL;
	}
	input->path = copy_text(r, path);
	input->role = copy_text(r, role);
	input->kind = copy_text(r, kind);
	return input;
}

struct report_table *report_add_table(struct report *r, const char *name, const char *title,
	const char *const *columns, size_t column_count)
{
	const char **names = arena_array(&r->arena, column_count, sizeof *names);
	struct report_table *t =
		names && column_count <= COLUMNS_MAX ? array_push(&r->tables, TABLES_MAX) : NULL;

	if (!t) {
		r->findings.lost++;
		return NULL;
	}
	for (size_t i = 0; i < column_count; i++)
		names[i] = copy_text(r, columns[i]);
	t->name = copy_text(r, name);
	t->title = copy_text(r, title);
	t->columns = names;
	t->column_count = column_count;
	return t;
}

void report_add_row_values(struct report *r, struct report_table *t, enum cell_tone tone,
	const char *const *cells, const struct quantity *values)
{
	if (!t)
		return;
	const char **copies = arena_array(&r->arena, t->column_count, sizeof *copies);
	struct quantity *kept = NULL;
	if (values)
		kept = arena_array(&r->arena, t->column_count, sizeof *kept);
	struct report_row *row =
		copies && (kept || !values) ? array_push(&t->rows, ROWS_MAX) : NULL;

	if (!row) {
		r->findings.lost++;
		return;
	}
	for (size_t i = 0; i < t->column_count; i++) {
		copies[i] = copy_text(r, cells[i]);
		if (!values)
			continue;
		kept[i] = values[i];
		if (values[i].kind == QUANTITY_TEXT)
			kept[i].text = copy_text(r, values[i].text);
	}
	*row = (struct report_row){.cells = copies, .values = kept, .tone = tone};
}

void report_add_row(
	struct report *r, struct report_table *t, enum cell_tone tone, const char *const *cells)
{
	report_add_row_values(r, t, tone, cells, NULL);
}

const char *report_text(struct report *r, const char *format, ...)
{
	char text[4096];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	return copy_text(r, text);
}

const char *report_take(struct report *r, struct strbuf *b)
{
	const char *text = report_text(r, "%s", strbuf_text(b));

	r->findings.lost += b->no_memory;
	strbuf_release(b);
	return text;
}

const char *report_number(struct report *r, int64_t n)
{
	struct strbuf b;

	strbuf_init(&b, 64);
	text_add_signed_count(&b, n);
	return report_take(r, &b);
}

const char *report_counted(struct report *r, uint64_t n, const char *unit)
{
	struct strbuf b;

	strbuf_init(&b, 200);
	text_add_count(&b, n);
	strbuf_printf(&b, " %s%s", unit, n == 1 ? "" : "s");
	return report_take(r, &b);
}
