/* SPDX-License-Identifier: MIT */
/* Draft the run file beside a checkpoint, on stdout, or where the user wants it. */
#include <errno.h>
#include <string.h>

#include "api/init.h"
#include "base/replace.h"
#include "base/text.h"
#include "cli/answer.h"

/* Where it was written and how much of it is left to do. */
static int tell(const struct options *o, const struct init_draft *d, const char *file)
{
	struct json_writer w;
	struct strbuf out;

	answer_init(&out, o);
	if (o->json) {
		answer_open_json(&w, &out, "init");
		json_key(&w, "file");
		json_text(&w, file);
		json_key(&w, "checkpoint");
		json_text(&w, d->checkpoint);
		json_key(&w, "found");
		json_u64(&w, d->found);
		json_key(&w, "open");
		json_u64(&w, d->open);
		json_key(&w, "exit");
		json_i64(&w, EXIT_STATUS_FINE);
		json_close_object(&w);
		strbuf_add_char(&out, '\n');
	} else {
		strbuf_add_text(&out, "wrote ");
		text_add_escaped(&out, slice_of(file), o->verify.limits.text_bytes);
		strbuf_printf(&out, ": %u value%s found in ", d->found, d->found == 1 ? "" : "s");
		text_add_escaped(&out, slice_of(d->checkpoint), o->verify.limits.text_bytes);
		strbuf_printf(&out, ", %u to fill in\n", d->open);
	}
	return answer_write(&out, EXIT_STATUS_FINE);
}

static int write_draft(const struct options *o, const struct init_draft *d, struct strbuf *text)
{
	const char *file = o->output ? o->output : d->place;
	struct error e = ERROR_INIT;

	if (strcmp(file, "-") == 0)
		return answer_write(text, EXIT_STATUS_FINE);
	if (text->failed)
		fail(&e, RP_E_LIMIT, ERROR_NO_OFFSET,
			"the draft is longer than memory or --limit text-bytes allows");
	else if (o->force)
		file_replace(file, strbuf_slice(text), &e);
	else
		file_create(file, strbuf_slice(text), &e);
	strbuf_release(text);
	if (e.os_error == EEXIST) {
		e = ERROR_INIT;
		fail(&e, RP_E_ARGUMENT, ERROR_NO_OFFSET,
			"it is there already; --force replaces it");
	}
	return e.status == RP_OK ? tell(o, d, file) : answer_unwritten(o, file, &e);
}

int cmd_init(const struct options *o)
{
	struct init_draft draft;
	struct report r;
	struct strbuf text;
	struct error e = ERROR_INIT;

	report_init(&r, o->command->name);
	answer_init(&text, o);
	int status;
	if (init_path(&draft, &text, &r, o->operands[0], &o->verify, &e) < 0) {
		strbuf_release(&text);
		status = answer_error(o, o->operands[0], &e);
	} else {
		status = write_draft(o, &draft, &text);
	}
	report_release(&r);
	return status;
}
