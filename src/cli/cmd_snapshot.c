/* SPDX-License-Identifier: MIT */
#include "base/replace.h"
#include "cli/answer.h"

static bool is_snapshot(struct slice head)
{
	return slice_starts(head, SLICE("reprise snapshot\n"));
}

int cmd_snapshot(const struct options *o)
{
	struct report r;
	struct error e = ERROR_INIT;
	bool unwritten;

	if (!o->output)
		return answer_usage(o, "snapshot wants -o FILE, the file to write");
	if (replace_allowed(o->output, is_snapshot, &e) < 0)
		return answer_unwritten(o, o->output, &e);
	report_init(&r, o->command->name);
	if (snapshot_path(&r, o->operands[0], o->output, &o->verify, &unwritten, &e) == RP_OK)
		return answer_report(o, &r);
	report_release(&r);
	return unwritten ? answer_unwritten(o, o->output, &e) : answer_error(o, o->operands[0], &e);
}
