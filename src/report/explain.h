/* SPDX-License-Identifier: MIT */
/*
 * The tables of findings and of known defects, told to people: `reprise explain`, its JSON, and
 * reprise-findings(7).
 */
#ifndef REPORT_EXPLAIN_H
#define REPORT_EXPLAIN_H

#include "base/strbuf.h"
#include "report/report.h"

/* One finding in full: what it means, how to confirm it, what to do. */
void explain_render_text(
	enum finding_code code, const struct render_options *options, struct strbuf *out);

/* One line for each finding, under the names of their families. */
void explain_render_list(const struct render_options *options, struct strbuf *out);

/* Findings as the table "codes" of a report, for JSON. */
void explain_fill_report(struct report *r, const enum finding_code *codes, size_t count);

/* The table of known defects: as text, in JSON as the table "defects" of a report. */
int explain_defects(bool json, const struct render_options *options, struct strbuf *out);

/* The manual page reprise-findings(7), as mdoc. */
void explain_render_manual(struct strbuf *out);

/*
 * What `reprise explain WORD…` answers. A word is a code (P101), a finding's id (NO_DATA_POSITION)
 * or a family (P), in any case; without words, all findings are listed, in JSON in full. Returns 0,
 * or, where a word is none of these, 2 with a sentence in `*complaint` and nothing in `out`.
 */
int explain_words(const char *const *words, size_t count, bool json,
	const struct render_options *options, struct strbuf *out, struct strbuf *complaint);

#endif
