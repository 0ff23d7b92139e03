/* SPDX-License-Identifier: MIT */
/* Sample logs: one command with actions of its own. */
#include <string.h>

#include "base/place.h"
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

struct export
{
	const char *const *paths;
	size_t n;
	struct log_options log;
	enum log_form form;
};

static int make_export(
	struct report *r, text_write_fn *write, void *out, const void *context, struct error *e)
{
	const struct export *x = context;

	return logs_export(r, x->paths, x->n, &x->log, x->form, write, out, e);
}

/* A log among those that it was made of would be read with them the next time, and each sample seen
 * twice. */
static bool spares_folders(const struct options *o, const char *const *paths, size_t n)
{
	for (size_t i = 0; o->output && i < n; i++)
		if (place_within(o->output, paths[i]))
			return false;
	return true;
}

static const char beside_itself[] =
	"--output lies in a folder that is read: the next reading would find each sample twice";

static int run_export(const struct options *o, const char *const *paths, size_t n)
{
	if (!spares_folders(o, paths, n))
		return answer_usage(o, beside_itself);
	bool csv = o->form ? strcmp(o->form, "csv") == 0
			   : o->output && slice_ends(slice_of(o->output), SLICE(".csv"));
	struct export x = {paths, n, log_options_of(o), csv ? LOG_CSV : LOG_JSONL};

	return answer_text(o, n == 1 ? paths[0] : NULL, "reprise ledger show", make_export, &x);
}

static int run_import(const struct options *o, const char *const *paths, size_t n)
{
	struct log_options log = log_options_of(o);
	struct error e = ERROR_INIT;
	struct report r;

	if (!o->output)
		return answer_usage(o, "ledger import and seal want -o FILE, the file to write");
	if (!spares_folders(o, paths, n))
		return answer_usage(o, beside_itself);
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
