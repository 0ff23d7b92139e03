/* SPDX-License-Identifier: MIT */
/* The table of findings, told to people: `reprise explain`, its JSON, and reprise-findings(7). */
#ifndef REPORT_EXPLAIN_H
#define REPORT_EXPLAIN_H

#include "base/strbuf.h"
#include "report/report.h"

/* One finding in full: what it means, how to confirm it, what to do. */
void explain_render_text(
	enum finding_code code, const struct render_options *options, struct strbuf *out);

/* One line for each finding, under the names of their families. */
void explain_render_list(const struct render_options *options, struct strbuf *out);

/* The same as the table "codes" of a report, for JSON: all findings, or those given. */
void explain_fill_report(struct report *r, const enum finding_code *codes, size_t count);
void explain_fill_report_all(struct report *r);

/* The manual page reprise-findings(7), as mdoc. */
void explain_render_manual(struct strbuf *out);

#endif
