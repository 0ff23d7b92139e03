/* SPDX-License-Identifier: MIT */
/* A gate's answer: one line for a job's log, with what a reader of it must not miss. */
#include "base/text.h"
#include "report/page.h"
#include "report/report.h"

#define TEXT_MAX ((size_t)1 << 16)

static const struct {
	const char *word;
	enum page_style style;
} outcomes[] = {
	[EXIT_STATUS_FINE] = {"PASS", STYLE_GREEN},
	[EXIT_STATUS_FINDINGS] = {"FAIL", STYLE_RED},
	[EXIT_STATUS_USAGE] = {"FAILED", STYLE_RED},
	[EXIT_STATUS_UNDECIDED] = {"UNDECIDED", STYLE_YELLOW},
	[EXIT_STATUS_NOT_READY] = {"NOT READY", STYLE_YELLOW},
	[EXIT_STATUS_FAILED] = {"FAILED", STYLE_RED},
};

static const struct report_input *input_of(const struct report *r, const char *role)
{
	for (size_t i = 0; i < r->inputs.count; i++)
		if (slice_is(slice_of(r->inputs.items[i].role), role))
			return &r->inputs.items[i];
	return NULL;
}

/* What was judged: its step, or its path where that is not known. */
static void add_subject(struct strbuf *b, const struct report_input *input, bool as_step)
{
	if (!input)
		return;
	if (input->has_step) {
		strbuf_add_text(b, as_step ? "step " : "");
		text_add_signed_count(b, input->step);
	} else {
		strbuf_add_text(b, input->path ? input->path : "");
	}
}

/* ", accepted R101 T105": the codes of which there is a finding of that kind, whatever its number.
 */
static void add_codes(struct strbuf *b, const struct report *r, const char *label, bool accepted)
{
	bool any = false;

	for (int code = 0; code < FINDING_COUNT; code++) {
		for (size_t i = 0; i < r->findings.list.count; i++) {
			const struct finding *f = &r->findings.list.items[i];
			if ((int)f->code != code || (f->accepted != NULL) != accepted ||
				(!accepted && f->severity < SEVERITY_WARNING))
				continue;
			strbuf_printf(b, "%s%s%s",
				any    ? ""
				: b->n ? ", "
				       : "",
				any ? " " : label, finding_rows[code].code);
			any = true;
			break;
		}
	}
}

/* What stands in parentheses behind a pass: ranks, what was told of the run, warnings, what was
 * accepted. */
static void add_notes(struct strbuf *b, const struct report *r)
{
	const struct report_input *run = input_of(r, "run file");

	if (r->world > 1)
		strbuf_printf(b, "%u/%u ranks", r->ranks, r->world);
	if (r->previous_from)
		strbuf_printf(b, "%sthe earlier one as %s", b->n ? ", " : "", r->previous_from);
	if (run && run->path)
		strbuf_printf(b, "%srun file %s", b->n ? ", " : "", run->path);
	add_codes(b, r, "warnings ", false);
	add_codes(b, r, "accepted ", true);
}

void report_render_gate(const struct report *r, const struct render_options *o, struct strbuf *out)
{
	struct page p = {.out = out, .color = o->color};
	const struct report_input *checkpoint = input_of(r, "checkpoint"),
				  *judged = checkpoint ? checkpoint : input_of(r, "snapshot"),
				  *before = input_of(r, "against");
	struct strbuf line, notes;

	strbuf_init(&line, TEXT_MAX);
	strbuf_init(&notes, TEXT_MAX);
	page_put(&p, outcomes[r->exit].style, outcomes[r->exit].word);
	strbuf_add_text(&line, "  ");
	const struct report_input *run = input_of(r, "run");
	add_subject(&line, judged ? judged : run ? run : input_of(r, "root"), true);
	strbuf_printf(&line, ": %s", report_word(r));
	if (r->exit == EXIT_STATUS_FINE && r->word == VERDICT_CONSISTENT && !run) {
		strbuf_add_text(
			&line, before ? " with " : " with itself, nothing earlier was compared");
		add_subject(&line, before, false);
	} else {
		strbuf_printf(
			&line, "  %s", r->evidence ? r->evidence : verdict_rows[r->word].text);
	}
	if (r->instead)
		strbuf_printf(&line, "; %s is whole, by its metadata", r->instead);
	if (r->exit == EXIT_STATUS_FINE)
		add_notes(&notes, r);
	if (notes.n > 0)
		strbuf_printf(&line, " (%s)", strbuf_text(&notes));
	page_put(&p, STYLE_PLAIN, strbuf_text(&line));
	page_line(&p);
	out->failed |= line.failed || notes.failed;
	strbuf_release(&line);
	strbuf_release(&notes);
}
