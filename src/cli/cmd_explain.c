/* SPDX-License-Identifier: MIT */
#include "report/explain.h"

#include "cli/answer.h"

#define COMPLAINT_MAX 4096u

int cmd_explain(const struct options *o)
{
	struct render_options style = answer_style(o);
	struct strbuf out, complaint;

	answer_init(&out, o);
	strbuf_init(&complaint, COMPLAINT_MAX);
	int status = explain_words(
		o->operands, (size_t)o->operand_count, o->json, &style, &out, &complaint);
	if (status == EXIT_STATUS_USAGE) {
		status = answer_usage(o, strbuf_text(&complaint));
		strbuf_release(&out);
	} else {
		status = answer_write(&out, status);
	}
	strbuf_release(&complaint);
	return status;
}
