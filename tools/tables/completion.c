/* SPDX-License-Identifier: MIT */
#include "tables.h"

#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "base/slice.h"
#include "cli/options.h"
#include "finding/finding.h"

enum files { FILES_NONE, FILES_FILES, FILES_FOLDERS };

static const struct argument {
	const char *name;
	enum files files;
	const char *words;
} arguments[] = {
#define ARGUMENT(name, files, words) {name, FILES_##files, words},
#include "arguments.def"
#undef ARGUMENT
};

#define ARGUMENT_COUNT (sizeof arguments / sizeof *arguments)

static const struct argument *argument_named(struct slice name)
{
	for (size_t i = 0; i < ARGUMENT_COUNT; i++)
		if (slice_is(name, arguments[i].name))
			return &arguments[i];
	fprintf(stderr, "tables: arguments.def has no row %.*s\n", (int)name.n, name.p);
	return NULL;
}

/* The option takes each word, or the table is wrong. */
static bool try_words(const struct option_row *row, const char *words)
{
	while (*words) {
		char word[64];
		size_t n = strcspn(words, " ");
		struct options o = {0};

		snprintf(word, sizeof word, "%.*s", (int)n, words);
		if (!row->take(&o, word)) {
			fprintf(stderr, "tables: --%s does not take %s\n", row->name, word);
			return false;
		}
		words += n + (words[n] == ' ');
	}
	return true;
}

/* The operand's name at `*p` without brackets and dots, "[CODE...]" → CODE; moves on to the next.
 */
static struct slice next_operand(const char **p, bool *repeats)
{
	size_t n = strcspn(*p, " ");
	struct slice word = {*p, n};

	*p += n + ((*p)[n] == ' ');
	if (word.n > 2 && word.p[0] == '[')
		word = (struct slice){word.p + 1, word.n - 2};
	*repeats = word.n > 3 && memcmp(word.p + word.n - 3, "...", 3) == 0;
	if (*repeats)
		word.n -= 3;
	return word;
}

static void add_words(struct strbuf *b, const struct argument *a)
{
	if (strcmp(a->name, "NAME=VALUE") == 0) {
		for (size_t i = 0; i < limit_row_count; i++)
			strbuf_printf(b, "%s%s=", i ? " " : "", limit_rows[i].name);
	} else {
		strbuf_add_text(b, a->words);
	}
}

/* Codes, and behind them their names, which are offered where no code begins like what is typed. */
static void add_codes(struct strbuf *b)
{
	strbuf_add_text(b, "_reprise_codes '");
	for (size_t i = 0; i < FINDING_COUNT; i++)
		strbuf_printf(b, "%s%s", i ? " " : "", finding_rows[i].code);
	strbuf_add_text(b, "' '");
	for (size_t i = 0; i < FINDING_COUNT; i++)
		strbuf_printf(b, "%s%s", i ? " " : "", finding_rows[i].id);
	strbuf_add_char(b, '\'');
}

/* How the words and files of an argument are offered: a function of the script and its words. */
static void add_offer(struct strbuf *b, const struct argument *a)
{
	static const char *const functions[] = {"words", "files", "folders"};

	if (strcmp(a->name, "CODE") == 0) {
		add_codes(b);
		return;
	}
	strbuf_printf(b, "_reprise_%s '", functions[a->files]);
	add_words(b, a);
	strbuf_add_char(b, '\'');
}

static void add_commands(struct strbuf *b)
{
	strbuf_add_text(b, "_reprise_commands='");
	for (size_t c = 0; c < COMMAND_COUNT; c++)
		strbuf_printf(b, "%s%s", c ? " " : "", commands[c].name);
	strbuf_add_text(b, "'\n");
}

static void add_name(struct strbuf *b, const struct option_row *row, const char *between)
{
	if (row->letter)
		strbuf_printf(b, "-%c%s", row->letter, between);
	strbuf_printf(b, "--%s", row->name);
}

/* The options of each command. */
static void add_options(struct strbuf *b)
{
	strbuf_add_text(b, "_reprise_options()\n{\n\tcase $1 in\n");
	for (size_t c = 0; c < COMMAND_COUNT; c++) {
		strbuf_printf(b, "\t%s) echo '", commands[c].name);
		for (size_t i = 0, n = 0; i < option_row_count; i++) {
			if (!(option_rows[i].commands & 1u << c))
				continue;
			strbuf_add_text(b, n++ ? " " : "");
			add_name(b, &option_rows[i], " ");
		}
		strbuf_add_text(b, "' ;;\n");
	}
	strbuf_add_text(b, "\t*) echo '--help --version' ;;\n\tesac\n}\n\n");
}

/* What follows an option; fails for one that takes no value. */
static bool add_values(struct strbuf *b)
{
	strbuf_add_text(b, "_reprise_value()\n{\n\tcase $1 in\n");
	for (size_t i = 0; i < option_row_count; i++) {
		const struct option_row *row = &option_rows[i];
		if (!row->argument)
			continue;
		const struct argument *a = argument_named(slice_of(row->argument));
		if (!a || !try_words(row, a->words))
			return false;
		strbuf_add_char(b, '\t');
		add_name(b, row, " | ");
		strbuf_add_text(b, ") ");
		add_offer(b, a);
		strbuf_add_text(b, " ;;\n");
	}
	strbuf_add_text(b, "\t*) return 1 ;;\n\tesac\n}\n\n");
	return true;
}

/* The n-th operand of a command, from 0. */
static bool add_operands(struct strbuf *b)
{
	strbuf_add_text(b, "_reprise_operand()\n{\n\tcase \"$1 $2\" in\n");
	for (size_t c = 0; c < COMMAND_COUNT; c++) {
		const char *p = commands[c].operands;
		for (unsigned n = 0; *p; n++) {
			bool repeats;
			const struct argument *a = argument_named(next_operand(&p, &repeats));
			if (!a)
				return false;
			if (repeats)
				strbuf_printf(b, "\t\"%s \"*) ", commands[c].name);
			else
				strbuf_printf(b, "\t'%s %u') ", commands[c].name, n);
			add_offer(b, a);
			strbuf_add_text(b, " ;;\n");
		}
	}
	strbuf_add_text(b, "\tesac\n}\n");
	return true;
}

static bool is_repeatable(const struct option_row *row)
{
	return row->repeatable;
}

static bool takes_value(const struct option_row *row)
{
	return row->argument != NULL;
}

static void add_list(
	struct strbuf *b, const char *variable, bool (*wanted)(const struct option_row *row))
{
	strbuf_printf(b, "%s='", variable);
	for (size_t i = 0, n = 0; i < option_row_count; i++) {
		if (!wanted(&option_rows[i]))
			continue;
		strbuf_add_text(b, n++ ? " " : "");
		add_name(b, &option_rows[i], " ");
	}
	strbuf_add_text(b, "'\n");
}

bool completion_render(struct strbuf *b)
{
	add_commands(b);
	add_list(b, "_reprise_repeatable", is_repeatable);
	add_list(b, "_reprise_valued", takes_value);
	strbuf_add_char(b, '\n');
	add_options(b);
	return add_values(b) && add_operands(b);
}
