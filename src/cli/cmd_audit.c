/* SPDX-License-Identifier: MIT */
#include "cli/answer.h"

int cmd_audit(const struct options *o)
{
	struct audit_options audit = {.common = o->verify,
		.told = o->told,
		.told_count = o->told_count,
		.rollback = o->rollback};
	struct report r;
	struct error e = ERROR_INIT;

	report_init(&r, o->command->name);
	if (audit_paths(&r, o->operands, (size_t)o->operand_count, &audit, &e) == RP_OK)
		return answer_report(o, &r);
	report_release(&r);
	/* The error names which of them it is about. */
	return answer_error(o, NULL, &e);
}
