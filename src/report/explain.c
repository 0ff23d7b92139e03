/* SPDX-License-Identifier: MIT */
#include "report/explain.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "audit/defects.h"
#include "base/error.h"
#include "base/text.h"
#include "report/page.h"

#define NEEDS_MAX 200u
#define MANUAL_TEXT_MAX 4096u
#define MANUAL_LINE 74 /* columns of a line of the page's source */

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

/* The codes that a word stands for, into `codes`, which has room for all; how many. */
static size_t codes_of_word(const char *word, enum finding_code *codes)
{
	size_t count = 0;

	for (int i = 0; i < FINDING_COUNT; i++) {
		const struct finding_row *row = &finding_rows[i];
		const char family[2] = {row->code[0], '\0'};

		if (strcasecmp(word, row->code) == 0 || strcasecmp(word, row->id) == 0 ||
			strcasecmp(word, family) == 0)
			codes[count++] = (enum finding_code)i;
	}
	return count;
}

static void complain(struct strbuf *b, const char *word)
{
	const char *names[2 * FINDING_COUNT];
	char upper[64];
	size_t n = 0;

	for (int i = 0; i < FINDING_COUNT; i++) {
		names[2 * i] = finding_rows[i].code;
		names[2 * i + 1] = finding_rows[i].id;
	}
	for (; word[n] != '\0' && n + 1 < sizeof upper; n++)
		upper[n] = word[n] >= 'a' && word[n] <= 'z' ? (char)(word[n] - 'a' + 'A') : word[n];
	upper[n] = '\0';
	const char *nearest = text_nearest(upper, names, COUNT(names));

	strbuf_add_text(b, "no finding is called '");
	text_add_escaped(b, slice_of(word), sizeof upper);
	strbuf_add_char(b, '\'');
	if (nearest)
		strbuf_printf(b, "; did you mean %s?", nearest);
	else
		strbuf_add_text(b, "; `reprise explain` lists all");
}

int explain_words(const char *const *words, size_t count, bool json, const struct render_options *o,
	struct strbuf *out, struct strbuf *complaint)
{
	enum finding_code found[FINDING_COUNT], codes[FINDING_COUNT];
	bool asked[FINDING_COUNT] = {false};
	size_t n = 0;

	for (size_t i = 0; i < count; i++) {
		size_t matches = codes_of_word(words[i], found);
		if (matches == 0) {
			complain(complaint, words[i]);
			return EXIT_STATUS_USAGE;
		}
		for (size_t m = 0; m < matches; m++) {
			if (!asked[found[m]])
				codes[n++] = found[m];
			asked[found[m]] = true;
		}
	}
	if (json) {
		struct report r;

		for (; count == 0 && n < FINDING_COUNT; n++)
			codes[n] = (enum finding_code)n;
		report_init(&r, "explain");
		explain_fill_report(&r, codes, n);
		report_finish(&r);
		report_render_json(&r, out);
		int status = r.exit;
		report_release(&r);
		return status;
	}
	if (count == 0)
		explain_render_list(o, out);
	for (size_t i = 0; i < n; i++) {
		if (i > 0)
			strbuf_add_text(out, o->quiet ? "" : "\n");
		explain_render_text(codes[i], o, out);
	}
	return EXIT_STATUS_FINE;
}

/* Known defects -------------------------------------------------------------------------------- */

/* The code of the finding, or why there is none. */
static const char *defect_code(const struct defect *d)
{
	return d->kind == DEFECT_UNSEEN ? NULL : finding_rows[d->code].code;
}

/* "resumed by accelerate>=1.7,<1.15; transformers<5". */
static void add_versions(struct strbuf *b, const struct defect *d)
{
	if (*d->saved)
		strbuf_printf(b, "saved by %s", d->saved);
	if (*d->saved && *d->resumed)
		strbuf_add_text(b, ", ");
	if (*d->resumed)
		strbuf_printf(b, "resumed by %s", d->resumed);
	if (!*d->saved && !*d->resumed)
		strbuf_add_text(b, "all versions");
}

static void show_below(struct page *p, enum page_style style, const char *text)
{
	page_pad(p, 7);
	page_flow(p, 7, style, text);
	page_line(p);
}

static void list_defect(struct page *p, const struct defect *d)
{
	struct strbuf b;

	page_pad(p, 2);
	page_put(p, STYLE_PLAIN, defect_code(d) ? defect_code(d) : "·");
	page_pad(p, 7);
	page_put(p, STYLE_BOLD, d->id);
	page_line(p);
	strbuf_init(&b, MANUAL_TEXT_MAX);
	add_versions(&b, d);
	show_below(p, STYLE_PLAIN, strbuf_text(&b));
	show_below(p, STYLE_PLAIN, d->effect);
	strbuf_clear(&b);
	strbuf_printf(&b, "source: %s · known from: %s", d->source, d->proof);
	show_below(p, STYLE_DIM, strbuf_text(&b));
	p->out->failed |= b.failed;
	strbuf_release(&b);
}

static void fill_defects(struct report *r)
{
	static const char *const columns[] = {"id", "profile", "code", "saved by", "resumed by",
		"effect", "remedy", "source", "proof"};
	struct report_table *t = report_add_table(r, "defects", NULL, columns, COUNT(columns));

	for (size_t i = 0; i < defect_count; i++) {
		const struct defect *d = &defects[i];
		const char *const cells[COUNT(columns)] = {d->id, *d->profile ? d->profile : NULL,
			defect_code(d), *d->saved ? d->saved : NULL,
			*d->resumed ? d->resumed : NULL, d->effect, d->remedy, d->source, d->proof};
		report_add_row(r, t, TONE_PLAIN, cells);
	}
}

int explain_defects(bool json, const struct render_options *o, struct strbuf *out)
{
	struct page p = {.out = out, .width = o->width, .color = o->color};

	if (json) {
		struct report r;
		report_init(&r, "explain");
		fill_defects(&r);
		report_finish(&r);
		report_render_json(&r, out);
		int status = r.exit;
		report_release(&r);
		return status;
	}
	for (size_t i = 0; i < defect_count; i++) {
		if (i > 0 && !o->quiet)
			page_line(&p);
		if (o->quiet) {
			page_put(&p, STYLE_PLAIN, defects[i].id);
			page_line(&p);
		} else {
			list_defect(&p, &defects[i]);
		}
	}
	return EXIT_STATUS_FINE;
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
		} else if (*c == ' ' && ((!command && c > text && c[-1] == '.') ||
						b->n - start + strcspn(c + 1, " ") > MANUAL_LINE)) {
			strbuf_add_char(b, '\n');
			start = b->n;
			line_start = true;
		} else {
			strbuf_add_char(b, *c);
		}
	}
	strbuf_add_char(b, '\n');
}

static void add_manual_defects(struct strbuf *b)
{
	strbuf_add_text(b,
		".Sh KNOWN DEFECTS\n"
		"What frameworks are known to save or restore wrongly, in these versions.\n"
		"Where the version that will resume decides,\n"
		".Fl \\-with\n"
		"and\n"
		".Fl \\-env\n"
		"tell it.\n"
		".Bl -tag -width Ds\n");
	for (size_t i = 0; i < defect_count; i++) {
		const struct defect *d = &defects[i];
		struct strbuf text;

		strbuf_init(&text, MANUAL_TEXT_MAX);
		strbuf_printf(&text, "%s: ", defect_code(d) ? defect_code(d) : "Not to be seen");
		add_versions(&text, d);
		strbuf_printf(&text, ". %c%s. Source: %s.", toupper((unsigned char)d->effect[0]),
			d->effect + 1, d->source);
		strbuf_printf(b, ".It Cm %s\n", d->id);
		add_manual_text(b, strbuf_text(&text));
		b->failed |= text.failed;
		strbuf_release(&text);
	}
	strbuf_add_text(b, ".El\n");
}

void explain_render_manual(struct strbuf *b)
{
	size_t family = SIZE_MAX;

	strbuf_add_text(b,
		".\\\" SPDX-License-Identifier: MIT\n"
		".\\\" Made from src/finding/findings.def; change that instead.\n"
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
	add_manual_defects(b);
	strbuf_add_text(b, ".Sh SEE ALSO\n.Xr reprise 1\n");
}
