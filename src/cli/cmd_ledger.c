/* SPDX-License-Identifier: MIT */
/* Sample logs: one command with actions of its own. */
#include <string.h>

#include "base/replace.h"
#include "base/text.h"
#include "cli/answer.h"

struct action {
	const char *name;
	int (*run)(const struct options *o, const char *const *paths, size_t n);
};

static struct log_options log_options_of(const struct options *o)
{
	struct log_options log = o->log;

	log.limits = o->verify.limits;
	log.step = o->verify.step;
	log.told = o->told;
	log.told_count = o->told_count;
	log.all = o->json || o->verbose;
	return log;
}

typedef int logs_fn(struct report *r, const char *const *paths, size_t n,
	const struct log_options *o, struct error *e);

static int answer_logs(const struct options *o, const char *const *paths, size_t n, logs_fn *logs)
{
	struct log_options log = log_options_of(o);
	struct error e = ERROR_INIT;
	struct report r;

	report_init(&r, o->command->name);
	if (logs(&r, paths, n, &log, &e) == RP_OK)
		return answer_report(o, &r);
	report_release(&r);
	return answer_error(o, n == 1 ? paths[0] : NULL, &e);
}

static int run_show(const struct options *o, const char *const *paths, size_t n)
{
	return answer_logs(o, paths, n, logs_show);
}

static int run_find(const struct options *o, const char *const *paths, size_t n)
{
	const struct log_options *log = &o->log;
	int wanted =
		(log->id != NULL) + log->has_hash + (log->source != NULL) + (o->verify.step >= 0);

	if (wanted != 1)
		return answer_usage(o, "ledger find wants one of --id, --key, --step and --source");
	return answer_logs(o, paths, n, logs_find);
}

/* To stdout as it comes, or to a file that gets its name when it is whole. */
struct output {
	struct replacement file;
	struct strbuf out;
	const char *path;
	bool gone; /* whoever reads stdout has gone, or it cannot be written */
};

static int write_piece(void *context, struct slice text, struct error *e)
{
	struct output *out = context;

	if (out->path)
		return replacement_write(&out->file, text, e);
	strbuf_add_slice(&out->out, text);
	if (out->out.failed)
		return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for a piece of the log");
	if (answer_flush(&out->out, true))
		return RP_OK;
	out->gone = true;
	return fail(e, RP_E_IO, ERROR_NO_OFFSET, "cannot write to stdout");
}

/* What reading left out, on stderr: the log itself goes to stdout. */
static void complain_losses(const struct report *r)
{
	struct error e = ERROR_INIT;

	for (size_t i = 0; i < r->coverage.list.count; i++) {
		if (!r->coverage.list.items[i].reason)
			continue;
		fail(&e, RP_E_FORMAT, ERROR_NO_OFFSET, "%s; `reprise ledger show` lists them",
			r->coverage.list.items[i].reason);
		answer_complain(NULL, &e);
	}
}

static int run_export(const struct options *o, const char *const *paths, size_t n)
{
	struct log_options log = log_options_of(o);
	struct output out = {.path = o->output};
	struct error e = ERROR_INIT;
	struct report r;
	bool csv = o->form ? strcmp(o->form, "csv") == 0
			   : o->output && slice_ends(slice_of(o->output), SLICE(".csv"));

	if (out.path && replacement_open(&out.file, out.path, &e) < 0)
		return answer_error(o, out.path, &e);
	report_init(&r, o->command->name);
	answer_init(&out.out, o);
	int status =
		logs_export(&r, paths, n, &log, csv ? LOG_CSV : LOG_JSONL, write_piece, &out, &e);
	if (out.path && status == RP_OK)
		status = replacement_commit(&out.file, &e);
	else if (out.path)
		replacement_abandon(&out.file);
	strbuf_release(&out.out);
	if (status == RP_OK && r.exit == EXIT_STATUS_FAILED)
		status = fail(
			&e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory to say what was left out");
	if (status == RP_OK)
		complain_losses(&r);
	report_release(&r);
	if (status == RP_OK)
		return EXIT_STATUS_FINE;
	return out.gone ? EXIT_STATUS_FAILED : answer_error(o, n == 1 ? paths[0] : NULL, &e);
}

static int run_import(const struct options *o, const char *const *paths, size_t n)
{
	struct log_options log = log_options_of(o);
	struct error e = ERROR_INIT;
	struct report r;

	if (!o->output)
		return answer_usage(o, "ledger import and seal want -o FILE, the file to write");
	report_init(&r, o->command->name);
	if (logs_import(&r, paths, n, &log, o->output, &e) == RP_OK)
		return answer_report(o, &r);
	report_release(&r);
	return answer_error(o, NULL, &e);
}

static const struct action actions[] = {
	{"show", run_show},
	{"find", run_find},
	{"export", run_export},
	{"import", run_import},
	{"seal", run_import},
};

#define ACTIONS (sizeof actions / sizeof *actions)

static int complain_action(const struct options *o, const char *word)
{
	const char *names[ACTIONS];
	char text[200];

	for (size_t i = 0; i < ACTIONS; i++)
		names[i] = actions[i].name;
	const char *nearest = text_nearest(word, names, ACTIONS);
	snprintf(text, sizeof text, "ledger has no action of that name%s%s%s",
		nearest ? "; did you mean " : ": it wants show, find, export, import or seal",
		nearest ? nearest : "", nearest ? "?" : "");
	return answer_usage(o, text);
}

int cmd_ledger(const struct options *o)
{
	for (size_t i = 0; i < ACTIONS; i++)
		if (strcmp(o->operands[0], actions[i].name) == 0)
			return actions[i].run(o, o->operands + 1, (size_t)o->operand_count - 1);
	return complain_action(o, o->operands[0]);
}
