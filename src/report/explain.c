/* SPDX-License-Identifier: MIT */
#include "report/explain.h"

#include <string.h>

#include "base/error.h"
#include "report/page.h"

#define NEEDS_MAX 200u

/* What a letter of a code stands for. */
static const struct {
	char letter;
	const char *name, *heading; /* in the list and in the manual page */
} families[] = {
	{'I', "Integrity: what is on disk", "INTEGRITY"},
	{'R', "Random number streams", "RANDOM NUMBER STREAMS"},
	{'P', "Data position", "DATA POSITION"},
	{'D', "Data consumed", "DATA CONSUMED"},
	{'M', "Mixture", "MIXTURE"},
	{'T', "Training state", "TRAINING STATE"},
	{'L', "Loss curve", "LOSS CURVE"},
	{'O', "Optimizer health", "OPTIMIZER HEALTH"},
};

static const struct {
	const char *word, *text;
} needs[] = {
	{"CC", "two checkpoints of one line"},
	{"C", "a checkpoint"},
	{"G", "the sample log"},
	{"L", "a loss log"},
	{"X", "the planned launch"},
	{"K", "facts from the run file"},
};

#define COUNT(array) (sizeof(array) / sizeof *(array))

static size_t family_of(const struct finding_row *row)
{
	for (size_t i = 0; i < COUNT(families); i++)
		if (families[i].letter == row->code[0])
			return i;
	BUG("a code of no family");
}

/* "C,CC,L" in words. */
static void add_needs(struct strbuf *b, const char *list)
{
	bool first = true;

	while (*list != '\0') {
		size_t n = strcspn(list, ",");

		for (size_t i = 0; i < COUNT(needs); i++) {
			if (!slice_is((struct slice){list, n}, needs[i].word))
				continue;
			strbuf_add_text(b, first ? "" : ", ");
			strbuf_add_text(b, needs[i].text);
			first = false;
		}
		list += n + (list[n] == ',');
	}
}

static const char *word_text(const struct finding_row *row)
{
	return row->word < VERDICT_COUNT ? verdict_rows[row->word].word : NULL;
}

static enum page_style severity_style(enum severity severity)
{
	return severity == SEVERITY_ERROR     ? STYLE_RED
	       : severity == SEVERITY_WARNING ? STYLE_YELLOW
					      : STYLE_DIM;
}

static void show_part(struct page *p, const char *heading, const char *text)
{
	page_line(p);
	page_pad(p, 2);
	page_put(p, STYLE_BOLD, heading);
	page_line(p);
	page_pad(p, 4);
	page_flow(p, 4, STYLE_PLAIN, text);
	page_line(p);
}

void explain_render_text(enum finding_code code, const struct render_options *o, struct strbuf *out)
{
	const struct finding_row *row = &finding_rows[code];
	struct page p = {.out = out, .width = o->width, .color = o->color};
	struct strbuf b;

	page_put(&p, STYLE_BOLD, row->code);
	page_put(&p, STYLE_PLAIN, "  ");
	page_flow(&p, 6, STYLE_PLAIN, row->summary);
	page_line(&p);
	if (o->quiet)
		return;

	strbuf_init(&b, NEEDS_MAX);
	strbuf_add_text(&b, "· ");
	if (word_text(row))
		strbuf_printf(&b, "verdict %s · ", word_text(row));
	strbuf_add_text(&b, "found in ");
	add_needs(&b, row->needs);
	strbuf_printf(&b, " · %s", row->id);
	page_pad(&p, 6);
	page_put(&p, severity_style(row->severity), severity_name(row->severity));
	page_put(&p, STYLE_PLAIN, " ");
	page_flow(&p, 6, STYLE_DIM, strbuf_text(&b));
	page_line(&p);
	out->failed |= b.failed;
	strbuf_release(&b);

	show_part(&p, "what it means", row->explain);
	show_part(&p, "how to confirm it", row->confirm);
	show_part(&p, "what to do", row->remedy);
}

void explain_render_list(const struct render_options *o, struct strbuf *out)
{
	struct page p = {.out = out, .width = o->width, .color = o->color};
	size_t family = SIZE_MAX;

	for (int i = 0; i < FINDING_COUNT; i++) {
		const struct finding_row *row = &finding_rows[i];

		if (family_of(row) != family) {
			if (i > 0)
				page_line(&p);
			family = family_of(row);
			page_put(&p, STYLE_BOLD, families[family].name);
			page_line(&p);
		}
		page_pad(&p, 2);
		page_put(&p, STYLE_PLAIN, row->code);
		page_pad(&p, 7);
		page_put(&p, severity_style(row->severity), severity_name(row->severity));
		page_pad(&p, 16);
		page_flow(&p, 16, STYLE_PLAIN, row->summary);
		page_line(&p);
	}
}

void explain_fill_report(struct report *r, const enum finding_code *codes, size_t count)
{
	static const char *const columns[] = {"code", "id", "severity", "word", "needs", "summary",
		"meaning", "confirm", "remedy"};
	struct report_table *t = report_add_table(r, "codes", NULL, columns, COUNT(columns));

	for (size_t i = 0; i < count; i++) {
		const struct finding_row *row = &finding_rows[codes[i]];
		const char *const cells[COUNT(columns)] = {row->code, row->id,
			severity_name(row->severity), word_text(row), row->needs, row->summary,
			row->explain, row->confirm, row->remedy};
		report_add_row(r, t, TONE_PLAIN, cells);
	}
}

void explain_fill_report_all(struct report *r)
{
	enum finding_code all[FINDING_COUNT];

	for (int i = 0; i < FINDING_COUNT; i++)
		all[i] = (enum finding_code)i;
	explain_fill_report(r, all, FINDING_COUNT);
}

/*
 * Running text in mdoc: a sentence begins a line and lines are short, commands are bold, and
 * nothing is taken for a request.
 */
static void add_manual_text(struct strbuf *b, const char *text)
{
	bool command = false, line_start = true;
	size_t start = b->n;

	for (const char *c = text; *c != '\0'; c++) {
		if (line_start && (*c == '.' || *c == '\''))
			strbuf_add_text(b, "\\&");
		line_start = false;
		if (*c == '`') {
			command = !command;
			strbuf_add_text(b, command ? "\\fB" : "\\fR");
		} else if (*c == '\\') {
			strbuf_add_text(b, "\\e");
		} else if (*c == '-' && command) {
			strbuf_add_text(b, "\\-");
		} else if (*c == '\'' && command) {
			strbuf_add_text(b, "\\(aq");
		} else if (*c == ' ' && !command &&
			   ((c > text && c[-1] == '.') || b->n - start > 50)) {
			strbuf_add_char(b, '\n');
			start = b->n;
			line_start = true;
		} else {
			strbuf_add_char(b, *c);
		}
	}
	strbuf_add_char(b, '\n');
}

void explain_render_manual(struct strbuf *b)
{
	size_t family = SIZE_MAX;

	strbuf_add_text(b,
		".\\\" SPDX-License-Identifier: MIT\n"
		".\\\" Printed by reprise explain --man; change src/finding/findings.def instead.\n"
		".Dd $Mdocdate$\n"
		".Dt REPRISE-FINDINGS 7\n"
		".Os\n"
		".Sh NAME\n"
		".Nm reprise-findings\n"
		".Nd what reprise reports, what it means and what to do\n"
		".Sh DESCRIPTION\n"
		"A finding is one problem of a checkpoint or a run,\n"
		"with a code that never changes its meaning.\n"
		"Its severity is the one that holds unless a circumstance named below changes it.\n"
		"The verdict, the first word of a report, is chosen by the failing findings:\n"
		"the first of these that applies.\n"
		".Bl -tag -width CONSISTENT\n");
	for (int i = 0; i < VERDICT_COUNT; i++) {
		strbuf_printf(b, ".It Cm %s\n", verdict_rows[i].word);
		add_manual_text(b, verdict_rows[i].text);
	}
	strbuf_add_text(b, ".El\n"
			   ".Pp\n"
			   "Where nothing has been consumed yet, the words about data have\n"
			   ".Cm WOULD-\n"
			   "in front of them.\n");
	for (int i = 0; i < FINDING_COUNT; i++) {
		const struct finding_row *row = &finding_rows[i];

		if (family_of(row) != family) {
			family = family_of(row);
			strbuf_printf(b, ".Sh %s\n", families[family].heading);
		}
		strbuf_printf(b, ".Ss %s \\(em %s\n", row->code, row->summary);
		strbuf_printf(b, "Severity %s", severity_name(row->severity));
		if (word_text(row))
			strbuf_printf(b, ", verdict %s", word_text(row));
		strbuf_add_text(b, ",\nfound in ");
		add_needs(b, row->needs);
		strbuf_add_text(b, ".\n.Pp\n");
		add_manual_text(b, row->explain);
		strbuf_add_text(b, ".Pp\nTo confirm:\n");
		add_manual_text(b, row->confirm);
		strbuf_add_text(b, ".Pp\nTo do:\n");
		add_manual_text(b, row->remedy);
	}
	strbuf_add_text(b, ".Sh SEE ALSO\n.Xr reprise 1\n");
}
