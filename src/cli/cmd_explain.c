/* SPDX-License-Identifier: MIT */
#include "report/explain.h"

#include "cli/answer.h"

#define COMPLAINT_MAX 4096u

int cmd_explain(const struct options *o)
{
	struct render_options style = answer_style(o);
	struct strbuf out, complaint;

	if (o->defects && o->operand_count > 0)
		return answer_usage(o, "--defects lists all of them and takes no CODE");
	answer_init(&out, o);
	strbuf_init(&complaint, COMPLAINT_MAX);
	int status = o->defects ? explain_defects(o->json, &style, &out)
				: explain_words(o->operands, (size_t)o->operand_count, o->json,
					  &style, &out, &complaint);
	if (status == EXIT_STATUS_USAGE) {
		status = answer_usage(o, strbuf_text(&complaint));
		strbuf_release(&out);
	} else {
		status = answer_write(&out, status);
	}
	strbuf_release(&complaint);
	return status;
}
