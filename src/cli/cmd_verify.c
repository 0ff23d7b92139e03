/* SPDX-License-Identifier: MIT */
#include "cli/answer.h"

int cmd_verify(const struct options *o)
{
	struct report r;
	struct error e = ERROR_INIT;

	report_init(&r, o->command->name);
	if (verify_path(&r, o->operands[0], &o->verify, &e) == RP_OK) {
		answer_unkept(&r);
		return answer_report(o, &r);
	}
	report_release(&r);
	return answer_error(o, o->operands[0], &e);
}
