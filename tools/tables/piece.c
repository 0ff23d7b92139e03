/* SPDX-License-Identifier: MIT */
#include "tables.h"

#include <string.h>

#include "audit/case.h"
#include "audit/policy.h"
#include "base/limits.h"
#include "cli/options.h"
#include "columns/frame.h"
#include "rng/mt19937.h"
#include "state/run_file.h"

#define LINE_MAX_BYTES 76u
#define TODAY 0 /* built-in policies have no dates */

/* Text of a table, in which mdoc takes nothing for a request of its own. */
static void add_text(struct strbuf *b, const char *text)
{
	for (const char *c = text; *c != '\0'; c++) {
		if (*c == '"')
			strbuf_add_text(b, "\\(dq");
		else
			strbuf_add_char(b, *c);
	}
}

/* The same as lines of the length that pages have, broken at spaces: one line of text to mdoc. */
static void add_lines(struct strbuf *b, const char *text)
{
	size_t start = b->n;

	add_text(b, text);
	for (size_t at = start, last = 0; at < b->n; at++) {
		if (b->p[at] == ' ')
			last = at;
		if (at - start < LINE_MAX_BYTES || last <= start)
			continue;
		b->p[last] = '\n';
		start = last + 1;
	}
	strbuf_add_char(b, '\n');
}

static void exit_statuses(struct strbuf *b)
{
	strbuf_add_text(b,
		"The same for every command: the first of 5, 2, 1, 4, 3, 0 that applies.\n"
		"What is proven to be wrong is never hidden by something that could not be read.\n"
		".Pp\n"
		".Bl -tag -width 2n -compact\n");
#define STATUS(id, number, when) strbuf_printf(b, ".It %d\n%s\n", number, when);
#include "audit/statuses.def"
#undef STATUS
	strbuf_add_text(b, ".El\n");
}

static void limits_piece(struct strbuf *b)
{
	strbuf_add_text(b, ".Bl -tag -width directory-bytes\n");
	for (size_t i = 0; i < limit_row_count; i++) {
		strbuf_printf(b, ".It Cm %s\n", limit_rows[i].name);
		add_text(b, limit_rows[i].text);
		strbuf_printf(b, "\n.Pq %llu\n", (unsigned long long)limit_rows[i].value);
	}
	strbuf_add_text(b, ".El\n");
}

static const char *need_word(enum policy_need need)
{
	static const char *const words[] = {"\\(en", "run", "some", "whole", "whole"};

	return words[need];
}

/* What each shipped policy asks of each rule. */
static bool rules_piece(struct strbuf *b)
{
	static const char *const names[] = {"quick", "full", "strict"};
	struct policy policies[3];
	struct error e = ERROR_INIT;

	strbuf_add_text(b, ".Bl -column moments-continue quickly fully stricter\n"
			   ".It Em rule Ta Em quick Ta Em full Ta Em strict\n");
	for (size_t p = 0; p < 3; p++)
		if (policy_load(&policies[p], names[p], TODAY, &e) != RP_OK)
			return false;
	for (size_t i = 0; i < RULE_COUNT; i++) {
		strbuf_printf(b, ".It Cm %s", rules[i]->name);
		for (size_t p = 0; p < 3; p++)
			strbuf_printf(b, " Ta %s", need_word(policies[p].needs[i]));
		strbuf_add_char(b, '\n');
	}
	strbuf_add_text(b, ".El\n");
	for (size_t p = 0; p < 3; p++)
		policy_release(&policies[p]);
	return true;
}

static void commands_piece(struct strbuf *b)
{
	strbuf_add_text(b, ".Bl -tag -width reprise-snapshot(1)\n");
	for (size_t i = 0; i < COMMAND_COUNT; i++)
		strbuf_printf(
			b, ".It Xr reprise-%s 1\n%s\n", commands[i].name, commands[i].summary);
	strbuf_add_text(b, ".El\n");
}

/* What the rules look at. */
static void subjects_piece(struct strbuf *b)
{
	strbuf_add_text(b, ".Bl -tag -width moments-continue\n");
	for (size_t i = 0; i < RULE_COUNT; i++) {
		strbuf_printf(b, ".It Cm %s\n%s", rules[i]->name, rules[i]->subject);
		if (rules[i]->needs & NEEDS_BYTES)
			strbuf_add_text(b, ";\nreads bytes");
		if (rules[i]->needs & NEEDS_PREVIOUS)
			strbuf_add_text(b, ";\nneeds an earlier checkpoint");
		strbuf_add_char(b, '\n');
	}
	strbuf_add_text(b, ".El\n");
}

/* What a run file tells as single values, section by section. */
static void run_keys_piece(struct strbuf *b)
{
	const char *section = "";

	for (size_t i = 0; i < run_key_count; i++) {
		const struct run_key *key = &run_keys[i];
		if (strcmp(key->section, section) != 0)
			strbuf_printf(b, "%s.Ss Section %s\n.Bl -tag -width Ds\n",
				i > 0 ? ".El\n" : "", section = key->section);
		strbuf_printf(b, ".It Cm %s\n", key->key);
		add_lines(b, key->comment);
	}
	strbuf_add_text(b, ".El\n");
}

static const char *role_word(const char *role, const char *of)
{
	static char text[64];

	if (strcmp(role, "TEXT") == 0)
		return ", a text";
	if (strcmp(role, "BOOL") == 0)
		return ", 0 or 1";
	if (strcmp(role, "NAME") != 0 && strcmp(role, "ROW") != 0)
		return "";
	snprintf(text, sizeof text, ", a %s of /%s%s", strcmp(role, "ROW") == 0 ? "row" : "value",
		strcmp(role, "ROW") == 0 ? "" : "names/", of);
	return text;
}

/* The columns of a snapshot: path, type, meaning. */
static void snapshot_piece(struct strbuf *b)
{
	strbuf_add_text(b, ".Bl -tag -width 4n\n");
#define COLUMN(table, member, type, role, of, meaning)                                             \
	strbuf_printf(b, ".It Pa /%s/%s\n%s%s:\n", #table, #member,                                \
		column_type_name(COLUMN_##type), role_word(#role, #of));                           \
	add_text(b, meaning);                                                                      \
	strbuf_add_char(b, '\n');
#define NUMBERS(table, member, type, width, meaning)                                               \
	strbuf_printf(b, ".It Pa /%s/%s\n%s[n][%d]:\n", #table, #member,                           \
		column_type_name(COLUMN_##type), (int)width);                                      \
	add_text(b, meaning);                                                                      \
	strbuf_add_char(b, '\n');
#include "state/snapshot_columns.def"
	strbuf_add_text(b, ".El\n");
}

static bool options_piece(const char *command, struct strbuf *b)
{
	size_t c = 0;

	while (c < COMMAND_COUNT && strcmp(commands[c].name, command) != 0)
		c++;
	if (c == COMMAND_COUNT)
		return false;
	for (size_t i = 0; i < option_row_count; i++) {
		const struct option_row *row = &option_rows[i];
		if (!(row->commands & 1u << c) || !option_is_common(row))
			continue;
		strbuf_add_text(b, ".It ");
		if (row->letter)
			strbuf_printf(b, "Fl %c , ", row->letter);
		strbuf_printf(b, "Fl \\-%s", row->name);
		if (row->argument)
			strbuf_printf(b, " Ar %s", row->argument);
		strbuf_add_char(b, '\n');
		add_text(b, row->summary);
		strbuf_add_char(b, '\n');
	}
	return true;
}

bool piece_render(const char *name, struct strbuf *out)
{
	if (strncmp(name, "options ", 8) == 0)
		return options_piece(name + 8, out);
	if (strcmp(name, "rules") == 0)
		return rules_piece(out);
	if (strcmp(name, "commands") == 0)
		commands_piece(out);
	else if (strcmp(name, "subjects") == 0)
		subjects_piece(out);
	else if (strcmp(name, "exit-statuses") == 0)
		exit_statuses(out);
	else if (strcmp(name, "limits") == 0)
		limits_piece(out);
	else if (strcmp(name, "run-keys") == 0)
		run_keys_piece(out);
	else if (strcmp(name, "snapshot-columns") == 0)
		snapshot_piece(out);
	return out->n > 0;
}
