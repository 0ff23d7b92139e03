/* SPDX-License-Identifier: MIT */
#include "cli/answer.h"

int cmd_compare(const struct options *o)
{
	struct report r;
	struct error e = ERROR_INIT;

	report_init(&r, o->command->name);
	if (compare_paths(&r, o->operands[0], o->operands[1], &o->verify, &e) == RP_OK)
		return answer_report(o, &r);
	report_release(&r);
	/* The error names which of the two it is about. */
	return answer_error(o, NULL, &e);
}
