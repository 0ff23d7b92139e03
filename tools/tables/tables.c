/* SPDX-License-Identifier: MIT */
/*
 * Print what is made from the tables and committed: `make generate` puts it in its place, `make
 * check-man` compares.
 *
 *   tables findings                          a whole file
 *   tables words                             lists for the JSON Schema, as JSON
 *   tables completion                        a piece of the completion script
 *   tables piece NAME                        a piece of a manual page
 *   tables commands                          NAME TAB OPERANDS TAB SUMMARY
 *   tables options                           COMMAND TAB LETTER TAB NAME TAB ARGUMENT TAB
 * common|own; "-" is none
 */
#include "tables.h"

#include <stdio.h>
#include <string.h>

#include "cli/options.h"
#include "report/explain.h"
#include "report/json_writer.h"

#define OUT_MAX ((size_t)16 << 20)

static void open_list(struct json_writer *w, const char *name)
{
	json_key(w, name);
	json_open_array(w);
}

/* The lists of words that the JSON Schema has from the tables. */
static bool render_words(struct strbuf *out)
{
	static const char *const would[] = {
#define VERDICT(id, word, forecast, text) "WOULD-" word,
#include "finding/verdicts.def"
#undef VERDICT
	};
	struct json_writer w;

	json_writer_init(&w, out, true);
	json_open_object(&w);
	open_list(&w, "code");
	for (int i = 0; i < FINDING_COUNT; i++)
		json_text(&w, finding_rows[i].code);
	json_close_array(&w);
	open_list(&w, "id");
	for (int i = 0; i < FINDING_COUNT; i++)
		json_text(&w, finding_rows[i].id);
	json_close_array(&w);
	open_list(&w, "severity");
	for (int s = SEVERITY_OK; s <= SEVERITY_ERROR; s++)
		json_text(&w, severity_name((enum severity)s));
	json_close_array(&w);
	open_list(&w, "verdict");
	for (int i = 0; i < VERDICT_COUNT; i++) {
		json_text(&w, verdict_rows[i].word);
		if (verdict_rows[i].forecast)
			json_text(&w, would[i]);
	}
	json_close_array(&w);
	open_list(&w, "coverage");
	for (int s = COVER_RAN; s <= COVER_NOT_CHECKED; s++)
		json_text(&w, cover_status_name((enum cover_status)s));
	json_close_array(&w);
	open_list(&w, "exit");
	for (int status = EXIT_STATUS_FINE; status <= EXIT_STATUS_FAILED; status++)
		json_i64(&w, status);
	json_close_array(&w);
	json_close_object(&w);
	strbuf_add_char(out, '\n');
	return true;
}

static bool render_findings(struct strbuf *out)
{
	explain_render_manual(out);
	return true;
}

static bool render_commands(struct strbuf *out)
{
	for (size_t i = 0; i < COMMAND_COUNT; i++)
		strbuf_printf(out, "%s\t%s\t%s\n", commands[i].name, commands[i].operands,
			commands[i].summary);
	return true;
}

static bool render_options(struct strbuf *out)
{
	for (size_t c = 0; c < COMMAND_COUNT; c++) {
		for (size_t i = 0; i < option_row_count; i++) {
			const struct option_row *row = &option_rows[i];
			if (row->commands & 1u << c)
				strbuf_printf(out, "%s\t%c\t%s\t%s\t%s\n", commands[c].name,
					row->letter ? row->letter : '-', row->name,
					row->argument ? row->argument : "-",
					option_is_common(row) ? "common" : "own");
		}
	}
	return true;
}

static const struct {
	const char *name;
	bool (*render)(struct strbuf *out);
} parts[] = {
	{"words", render_words},
	{"findings", render_findings},
	{"completion", completion_render},
	{"commands", render_commands},
	{"options", render_options},
};

static bool render(int argc, char **argv, struct strbuf *out)
{
	if (argc == 3 && strcmp(argv[1], "piece") == 0)
		return piece_render(argv[2], out);
	for (size_t i = 0; argc == 2 && i < sizeof parts / sizeof *parts; i++)
		if (strcmp(argv[1], parts[i].name) == 0)
			return parts[i].render(out);
	return false;
}

int main(int argc, char **argv)
{
	struct strbuf out;

	strbuf_init(&out, OUT_MAX);
	bool ok = render(argc, argv, &out) && !out.failed &&
		  fwrite(strbuf_text(&out), 1, out.n, stdout) == out.n && fflush(stdout) == 0;
	strbuf_release(&out);
	if (!ok)
		fputs("tables: there is no such table, or it could not be printed\n", stderr);
	return ok ? 0 : 1;
}
