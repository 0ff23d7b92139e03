/* SPDX-License-Identifier: MIT */
/* What the table of options and those who parse and print it share. */
#ifndef CLI_OPTION_TABLE_H
#define CLI_OPTION_TABLE_H

#include "cli/options.h"

#define OPTION_ROWS_MAX 96u /* room for all rows */

/* Sets of commands. */
#define OF(command) (1u << COMMAND_##command)
#define OF_ALL ((1u << COMMAND_COUNT) - 1)
#define OF_READING (OF_ALL & ~OF(explain))

/* Of --limit and --with, whose complaints say more than what is wanted. */
bool option_take_limit(struct options *o, const char *value);
bool option_take_with(struct options *o, const char *value);

#endif
