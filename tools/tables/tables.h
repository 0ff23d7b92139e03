/* SPDX-License-Identifier: MIT */
/* What is made from the tables and is no part of the tool: pieces of the manual, bash completion.
 */
#ifndef TABLES_TABLES_H
#define TABLES_TABLES_H

#include "base/strbuf.h"

/* What the bash completion script knows of commands and options. False, having said why on stderr,
 * where a table lacks something. */
bool completion_render(struct strbuf *out);

/*
 * A piece of a manual page, as mdoc: "commands", "exit-statuses", "limits", "subjects" and "rules"
 * (of policies), or "options COMMAND" (those that every command has). False where there is none of
 * that name.
 */
bool piece_render(const char *name, struct strbuf *out);

#endif
