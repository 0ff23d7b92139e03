/* SPDX-License-Identifier: MIT */
/* One curve out of many logs: as a report, or as a table of its own. */
#define _GNU_SOURCE
#include <langinfo.h>
#include <locale.h>
#include <string.h>
#include <unistd.h>

#include "api/curves.h"
#include "base/replace.h"
#include "cli/answer.h"
#include "curve/own.h"

#define PLOT_WIDTH_MAX 100u

/* A terminal that does not know UTF-8; what is piped is the same everywhere. */
static bool wants_ascii(const struct options *o)
{
	if (o->plot && strcmp(o->plot, "auto") != 0)
		return strcmp(o->plot, "ascii") == 0;
	if (!isatty(STDOUT_FILENO))
		return false;
	locale_t locale = newlocale(LC_CTYPE_MASK, "", (locale_t)0);
	bool ascii = locale == (locale_t)0 || strcmp(nl_langinfo_l(CODESET, locale), "UTF-8") != 0;
	if (locale != (locale_t)0)
		freelocale(locale);
	return ascii;
}

static struct curves_options curves_options_of(const struct options *o, struct stitch_told *told)
{
	unsigned width = answer_style(o).width;

	for (size_t i = 0; i < o->told_count; i++)
		told[i] = (struct stitch_told){o->told[i].attempt, (double)o->told[i].step};
	return (struct curves_options){.common = o->verify,
		.patterns = o->patterns,
		.pattern_count = o->pattern_count,
		.told = told,
		.told_count = o->told_count,
		.first = o->first_step,
		.last = o->log.until,
		.by = o->by,
		.by_is_told = o->by_is_told,
		.olmo = o->olmo,
		.plot = !o->json && !o->quiet && !(o->plot && strcmp(o->plot, "none") == 0),
		.ascii = wants_ascii(o),
		.width = (width < PLOT_WIDTH_MAX ? width : PLOT_WIDTH_MAX) - 4,
		.dead = o->dead};
}

/* What an error is about; of several logs it names the one itself. */
static const char *only_operand(const struct options *o)
{
	return o->operand_count == 1 ? o->operands[0] : NULL;
}

struct table {
	const struct options *options;
	const struct curves_options *curves;
};

static int make_table(
	struct report *r, text_write_fn *write, void *out, const void *context, struct error *e)
{
	const struct table *t = context;

	return curves_export(r, t->options->operands, (size_t)t->options->operand_count, t->curves,
		write, out, e);
}

int cmd_stitch(const struct options *o)
{
	struct stitch_told told[TOLD_MAX];
	struct curves_options c = curves_options_of(o, told);
	struct error e = ERROR_INIT;
	struct report r;

	if (o->csv && o->json)
		return answer_usage(o, "--csv and --format json contradict each other");
	if (o->output && replace_allowed(o->output, own_table, &e) < 0)
		return answer_unwritten(o, o->output, &e);
	if (o->csv || o->output)
		return answer_text(o, only_operand(o), "reprise stitch -v", make_table,
			&(struct table){o, &c});
	report_init(&r, o->command->name);
	if (curves_stitch(&r, o->operands, (size_t)o->operand_count, &c, &e) == RP_OK)
		return answer_report(o, &r);
	report_release(&r);
	return answer_error(o, only_operand(o), &e);
}
