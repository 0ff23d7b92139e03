/* SPDX-License-Identifier: MIT */
/*
 * A report: what a command answers, as data, and its renderings. The first line is the answer and
 * the number that proves it; what was not checked stands at the end, always.
 */
#ifndef REPORT_REPORT_H
#define REPORT_REPORT_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/array.h"
#include "audit/verdict.h"
#include "base/strbuf.h"
#include "finding/finding.h"

/*
 * A table that a command adds between the findings and the coverage: facts, streams, candidates of
 * a root, relations of two checkpoints. Cells are text without markup; NULL is an empty cell.
 */
enum cell_tone {
	TONE_PLAIN,
	TONE_GOOD,
	TONE_WARNING,
	TONE_BAD,
	TONE_DIM,
};

struct report_row {
	const char **cells;            /* one per column */
	const struct quantity *values; /* what JSON gets instead of the cells' text, or NULL */
	enum cell_tone tone;
};

struct report_table {
	const char *name;     /* the JSON key: "streams" */
	const char *title;    /* above it in text, or NULL: no heading */
	const char **columns; /* names: JSON keys; text headings where `headings` is set */
	size_t column_count;
	bool headings;
	bool verbose_only; /* shown in text only with -v; always in JSON */
	bool data_only;    /* never shown in text */
	ARRAY(struct report_row) rows;
};

struct report_input {
	const char *path; /* as given, or what a root's choice came to */
	const char *role; /* "checkpoint", "snapshot", "against", "control", "root" */
	const char *kind; /* profile or container: "transformers", "pytorch", … */
	bool has_step;
	int64_t step;
};

struct report {
	struct arena arena;
	const char *command;
	bool has_verdict; /* show, ls, get, explain have none */
	enum verdict_word word;
	bool forecast; /* WOULD- in front of the words that can carry it */
	const char *evidence;
	enum severity
		failing; /* from this severity on findings fail; SEVERITY_OK: the default, ERROR */
	const char
		*instead;   /* of a root: what to resume from in place of the judged one; or NULL */
	const char *unkept; /* why a history could not be kept, for stderr; or NULL */
	const char *previous_from; /* the snapshot that stood for an earlier checkpoint; or NULL */
	const char *policy;        /* of a gate, by name; or NULL */
	unsigned ranks, world; /* ranks whose state is there, of how many; 0 where that is one or
				  not known */
	const char *summary;   /* one line: framework, parameters, step, lr; or NULL */
	struct findings findings;
	struct coverage coverage;
	const char *picture; /* lines of text between findings and tables, in text only; or NULL */
	ARRAY(struct report_input) inputs;
	ARRAY(struct report_table) tables;
	bool incomplete; /* something could not be looked at */
	int exit;
};

void report_init(struct report *r, const char *command);
void report_release(struct report *r);

/*
 * Take over word, evidence and exit status of a verdict. Its texts must live as long as the report;
 * those of the report's own findings do.
 */
void report_take_verdict(struct report *r, const struct verdict *v);

/*
 * Nothing more will be added: sort the findings, and turn lost ones into a failure. To be called
 * before rendering.
 */
void report_finish(struct report *r);

/*
 * Add an input or a table; texts are copied. The pointer is good until the next one of its kind is
 * added. NULL when memory ran out (counted in findings.lost).
 */
struct report_input *report_add_input(
	struct report *r, const char *path, const char *role, const char *kind);
struct report_table *report_add_table(struct report *r, const char *name, const char *title,
	const char *const *columns, size_t column_count);

/*
 * Add a row of column_count cells, which are copied; cells may be NULL, and so may the table.
 * `values` (or NULL) are what JSON shows in their place, where of a kind other than QUANTITY_NONE:
 * "1 234" for people, 1234 for programs. The row is counted in findings.lost when memory ran out.
 */
void report_add_row(
	struct report *r, struct report_table *t, enum cell_tone tone, const char *const *cells);
void report_add_row_values(struct report *r, struct report_table *t, enum cell_tone tone,
	const char *const *cells, const struct quantity *values);

/* A formatted text that lives as long as the report. */
const char *report_text(struct report *r, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* The text of a buffer, which is released. */
const char *report_take(struct report *r, struct strbuf *b);

/* A count as people read it: "12 000"; and with its unit, which takes an s but for one: "3 steps".
 */
const char *report_number(struct report *r, int64_t n);
const char *report_counted(struct report *r, uint64_t n, const char *unit);

struct render_options {
	bool color;
	bool verbose;   /* ok findings and ran coverage too, all details */
	bool quiet;     /* the first line only */
	unsigned width; /* columns of the terminal; 0: do not wrap or cut */
};

/* The verdict word as shown: "WOULD-REPLAY" for a forecast about data, else "REPLAY". */
const char *report_word(const struct report *r);

/* The severity from which on findings fail, the default resolved. */
enum severity report_failing(const struct report *r);

void report_render_text(
	const struct report *r, const struct render_options *options, struct strbuf *out);
void report_render_json(const struct report *r, struct strbuf *out);

/* A gate's answer, one line: "PASS  step 41 000: CONSISTENT with 40 500 (512/512 ranks)". */
void report_render_gate(
	const struct report *r, const struct render_options *options, struct strbuf *out);

#endif
