/* SPDX-License-Identifier: MIT */
#include "cli/answer.h"

int cmd_ls(const struct options *o)
{
	return answer_usage(o, "not yet");
}
