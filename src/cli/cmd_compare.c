/* SPDX-License-Identifier: MIT */
#include "api/compare_runs.h"
#include "api/run_paths.h"
#include "cli/answer.h"

/* Two logs, or two checkpoints; a control only of logs. */
static int compare(struct report *r, const struct options *o, struct error *e)
{
	const char *control = o->operand_count > 2 ? o->operands[2] : NULL;
	struct paths_hold hold;
	int logs = 0;

	for (int i = 0; i < o->operand_count; i++) {
		if (run_paths_look(o->operands[i], &o->verify.limits, &hold, e) < 0)
			return fail_wrap(e, "%s", o->operands[i]);
		logs += hold.samples;
	}
	if (logs == o->operand_count)
		return compare_runs(r, o->operands[0], o->operands[1], control, &o->verify, e);
	if (logs > 0)
		return fail(e, RP_E_ARGUMENT, ERROR_NO_OFFSET,
			"sample logs are compared with sample logs, checkpoints with checkpoints");
	if (control)
		return fail(e, RP_E_ARGUMENT, ERROR_NO_OFFSET,
			"%s: checkpoints are compared without a control", control);
	return compare_paths(r, o->operands[0], o->operands[1], &o->verify, e);
}

int cmd_compare(const struct options *o)
{
	struct report r;
	struct error e = ERROR_INIT;

	report_init(&r, o->command->name);
	if (compare(&r, o, &e) == RP_OK)
		return answer_report(o, &r);
	report_release(&r);
	/* The error names which of the two it is about. */
	return answer_error(o, NULL, &e);
}
