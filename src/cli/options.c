/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "cli/options.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "audit/verdict.h"
#include "base/text.h"
#include "cli/option_table.h"

#define SHOWN_MAX 200u /* bytes of an argument that a complaint shows */
#define ROW_VALUE 256  /* of the first row, for getopt */
#define HELP_COLUMN 28 /* where the summaries of options begin */

#define PATH_HELP                                                                                                  \
	"\n"                                                                                                       \
	"PATH is made of .name, [\"any text\"], [1] (index or integer key), * (any one part) and ** (any number\n" \
	"of parts, none included); the first dot may be left out: optimizer.**.step, state[1][\"step\"].\n"        \
	"A name with dots of its own may be typed as it is: model.layers.0.weight.\n"

#define GATE_HELP                                                                                               \
	"\n"                                                                                                    \
	"  [policy]\n"                                                                                          \
	"  base = full\n"                                                                                       \
	"  # the least severity that fails: info, warning or error\n"                                           \
	"  fail = warning\n"                                                                                    \
	"  # rules that must have looked at all there is, and rules that need not have run (names: --report)\n" \
	"  require = rng-continues checksums\n"                                                                 \
	"  optional = position-saved\n"                                                                         \
	"  bytes = yes\n"                                                                                       \
	"  [severity]\n"                                                                                        \
	"  R101 = error\n"                                                                                      \
	"  [accept]\n"                                                                                          \
	"  # the finding is shown and does not fail; the date is the last day on which that holds\n"            \
	"  I108 = we prune half-written saves by hand; until 2027-01-31\n"                                      \
	"  [expect]\n"                                                                                          \
	"  # a number or a range, else T110 is an error\n"                                                      \
	"  parameters = 103900000\n"                                                                            \
	"  [launch]\n"                                                                                          \
	"  # what will resume, for known defects; --env and --with go before it\n"                              \
	"  env = /opt/train\n"                                                                                  \
	"  with = accelerate=1.10.1 torch=2.6.0\n"

#define LEDGER_HELP                                                                                       \
	"ACTION is one of:\n"                                                                             \
	"  show    attempts, sources, what ids mean, a digest of what was seen by each checkpoint, and\n" \
	"          what was left out while reading\n"                                                     \
	"  find    where a sample was consumed (--id, --key), what a step consumed (--step), how much\n"  \
	"          of a source was (--source); exits with 1 where there is nothing of it\n"               \
	"  export  the log as text, to stdout or -o FILE\n"                                               \
	"  import  the log as one sealed file, -o FILE\n"                                                 \
	"  seal    the same, as it is called for journals of the recorder\n"

const struct command commands[COMMAND_COUNT] = {
#define COMMAND(name, operands, summary, details, run) {#name, operands, summary, details, run},
#include "cli/commands.def"
#undef COMMAND
};

/* Complaints ----------------------------------------------------------------------------------- */

/* An argument as it was typed, safe for a terminal. */
static void show(struct strbuf *b, const char *argument)
{
	strbuf_add_char(b, '\'');
	text_add_escaped(b, slice_of(argument), SHOWN_MAX);
	strbuf_add_char(b, '\'');
}

static bool complain(struct strbuf *b, const char *text, const char *argument)
{
	strbuf_add_text(b, text);
	strbuf_add_char(b, ' ');
	show(b, argument);
	return false;
}

static void suggest(struct strbuf *b, const char *prefix, const char *nearest)
{
	if (nearest)
		strbuf_printf(b, "; did you mean %s%s?", prefix, nearest);
}

static bool complain_unknown_option(struct strbuf *b, const char *element)
{
	const char *names[OPTION_ROWS_MAX], *nearest = NULL;
	char word[64];
	size_t n = strncmp(element, "--", 2) == 0 ? strcspn(element + 2, "=") : sizeof word;

	complain(b, "there is no option", element);
	if (n >= sizeof word)
		return false;
	memcpy(word, element + 2, n);
	word[n] = '\0';
	/* What other tools have. */
	if (strcmp(word, "json") == 0) {
		suggest(b, "--", "format json");
		return false;
	}
	for (size_t i = 0; i < option_row_count; i++) {
		names[i] = option_rows[i].name;
		/* Abbreviations are refused, since they change their meaning when options are
		 * added. */
		if (n > 0 && strncmp(word, names[i], n) == 0 && !nearest)
			nearest = names[i];
	}
	suggest(b, "--", nearest ? nearest : text_nearest(word, names, option_row_count));
	return false;
}

static bool complain_unknown_command(struct strbuf *b, const char *word)
{
	const char *names[COMMAND_COUNT];

	complain(b, "there is no command", word);
	for (size_t i = 0; i < COMMAND_COUNT; i++)
		names[i] = commands[i].name;
	const char *nearest = text_nearest(word, names, COMMAND_COUNT);
	suggest(b, "", nearest);
	if (!nearest && access(word, F_OK) == 0) {
		strbuf_printf(b, "; did you mean %s ", commands[0].name);
		show(b, word);
		strbuf_add_char(b, '?');
	}
	return false;
}

static void complain_limit(struct strbuf *b, const char *value)
{
	const char *names[32];
	char word[64];
	size_t n = strcspn(value, "="), count = 0;
	struct limits ignored;

	if (n < sizeof word && value[n] == '=' &&
		!limits_set(&ignored, (struct slice){value, n}, 1)) {
		memcpy(word, value, n);
		word[n] = '\0';
		for (; count < limit_row_count && count < 32; count++)
			names[count] = limit_rows[count].name;
		complain(b, "--limit: there is no limit", word);
		suggest(b, "", text_nearest(word, names, count));
		return;
	}
	complain(b, "--limit wants NAME=VALUE with a positive whole number, not", value);
}

static bool complain_value(
	struct strbuf *b, const struct options *o, const struct option_row *row, const char *value)
{
	const char *other =
		row->take == option_take_with
			? environment_contradiction(o->with, o->verify.with_count, slice_of(value))
			: NULL;

	if (row->take == option_take_limit) {
		complain_limit(b, value);
		return false;
	}
	if (other) {
		strbuf_printf(b, "--%s ", row->name);
		show(b, other);
		strbuf_printf(b, " and --%s ", row->name);
		show(b, value);
		strbuf_add_text(b, " contradict each other");
		return false;
	}
	strbuf_printf(b, "--%s wants %s, not ", row->name, row->wanted);
	show(b, value);
	return false;
}

/* Parsing -------------------------------------------------------------------------------------- */

struct parsing {
	struct options *o;
	struct strbuf *complaint;
	unsigned char given[OPTION_ROWS_MAX]; /* how often */
};

static const struct option_row *row_of_letter(int letter)
{
	for (size_t i = 0; i < option_row_count; i++)
		if (option_rows[i].letter && option_rows[i].letter == letter)
			return &option_rows[i];
	return NULL;
}

static const struct option_row *row_of(int value)
{
	if (value >= ROW_VALUE && (size_t)(value - ROW_VALUE) < option_row_count)
		return &option_rows[value - ROW_VALUE];
	return row_of_letter(value);
}

/* What getopt refused. */
static bool refuse(struct parsing *p, int why, const char *element)
{
	const struct option_row *row = row_of(optopt);

	if (why == ':' && row) {
		strbuf_printf(p->complaint, "--%s wants %s, and nothing follows it", row->name,
			row->wanted);
		return false;
	}
	if (row && row->argument == NULL) {
		strbuf_printf(p->complaint, "--%s takes no value: ", row->name);
		show(p->complaint, element);
		return false;
	}
	if (optopt > 0 && optopt < ROW_VALUE) {
		char letter[3] = {'-', (char)optopt, '\0'};
		complain(p->complaint, "there is no option", letter);
		if (element[0] == '-' && strcmp(element, letter) != 0) {
			strbuf_add_text(p->complaint, " in ");
			show(p->complaint, element);
		}
		return false;
	}
	return complain_unknown_option(p->complaint, element);
}

static bool take_option(struct parsing *p, const struct option_row *row, const char *element)
{
	size_t name = strlen(row->name);

	/* getopt_long takes abbreviations. */
	if (strncmp(element, "--", 2) == 0 &&
		(strncmp(element + 2, row->name, name) != 0 ||
			(element[2 + name] != '\0' && element[2 + name] != '=')))
		return complain_unknown_option(p->complaint, element);
	if (p->given[row - option_rows]++ && !row->repeatable) {
		strbuf_printf(p->complaint, "--%s is given twice", row->name);
		if (row->argument) {
			strbuf_add_text(p->complaint, ", the second time as ");
			show(p->complaint, optarg);
		}
		return false;
	}
	return row->take(p->o, row->argument ? optarg : NULL) ||
	       complain_value(p->complaint, p->o, row, optarg);
}

static bool take_operand(struct parsing *p, const char *word)
{
	struct options *o = p->o;

	if (o->command) {
		o->operands[o->operand_count++] = word;
		return true;
	}
	for (size_t i = 0; i < COMMAND_COUNT; i++)
		if (strcmp(word, commands[i].name) == 0)
			o->command = &commands[i];
	return o->command || complain_unknown_command(p->complaint, word);
}

/* How many operands a command takes, from how its help names them. */
static void operand_bounds(const struct command *c, int *least, int *most)
{
	*least = *most = 0;
	for (const char *word = c->operands; *word;) {
		size_t n = strcspn(word, " ");
		*least += *word != '[';
		*most = memmem(word, n, "...", 3) ? INT32_MAX : *most + 1;
		word += n + (word[n] == ' ');
	}
}

/* What is read must not be replaced by what is made of it. */
static bool spares_operands(struct parsing *p, const char *name, const char *file)
{
	struct stat made, read;

	if (!file || stat(file, &made) < 0 || !S_ISREG(made.st_mode))
		return true;
	for (int i = 0; i < p->o->operand_count; i++) {
		if (stat(p->o->operands[i], &read) < 0 || read.st_ino != made.st_ino ||
			read.st_dev != made.st_dev)
			continue;
		strbuf_printf(p->complaint, "--%s would replace what is read: ", name);
		show(p->complaint, file);
		return false;
	}
	return true;
}

static bool check(struct parsing *p)
{
	const struct options *o = p->o;
	int least, most;

	for (size_t i = 0; i < option_row_count && o->command; i++) {
		if (!p->given[i] || option_rows[i].commands & 1u << (o->command - commands))
			continue;
		strbuf_printf(p->complaint, "%s has no option --%s", o->command->name,
			option_rows[i].name);
		return false;
	}
	if (o->help || o->version)
		return true;
	if (!o->command) {
		strbuf_add_text(p->complaint, "a command is missing");
		return false;
	}
	if (p->o->quiet && p->o->verbose) {
		strbuf_add_text(p->complaint, "--quiet and --verbose contradict each other");
		return false;
	}
	operand_bounds(o->command, &least, &most);
	if (o->operand_count > most)
		return complain(p->complaint, "this is one operand too many:", o->operands[most]);
	if (o->operand_count < least) {
		strbuf_printf(p->complaint, "%s wants %s", o->command->name, o->command->operands);
		return false;
	}
	/* `reprise gate "$CKPT"` in a script: the first operand is nowhere empty on purpose. */
	if (o->operand_count > 0 && least > 0 && *o->operands[0] == '\0') {
		size_t n = strcspn(o->command->operands, " .");
		strbuf_printf(p->complaint, "%.*s is empty: is a variable of a script not set?",
			(int)n, o->command->operands);
		return false;
	}
	return spares_operands(p, "output", o->output) && spares_operands(p, "report", o->report);
}

/* Whether JSON is asked for, seen ahead, so that complaints about what stands before it are JSON
 * too. */
static bool wants_json(int argc, char **argv)
{
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
		if (strcmp(argv[i], "--format=json") == 0 ||
			(strcmp(argv[i], "--format") == 0 && i + 1 < argc &&
				strcmp(argv[i + 1], "json") == 0))
			return true;
	return false;
}

/* The table as getopt wants it. */
static void fill_getopt(struct option *longs, char *shorts)
{
	/* '-': operands come in their place, whatever POSIXLY_CORRECT says; ':': we complain
	 * ourselves. */
	*shorts++ = '-';
	*shorts++ = ':';
	for (size_t i = 0; i < option_row_count; i++) {
		longs[i] = (struct option){.name = option_rows[i].name,
			.has_arg = option_rows[i].argument ? required_argument : no_argument,
			.val = ROW_VALUE + (int)i};
		if (!option_rows[i].letter)
			continue;
		*shorts++ = option_rows[i].letter;
		if (option_rows[i].argument)
			*shorts++ = ':';
	}
	longs[option_row_count] = (struct option){0};
	*shorts = '\0';
}

/* The environment that a shell has activated, or NULL. */
static const char *active_environment(void)
{
	static const char *const names[] = {"VIRTUAL_ENV", "CONDA_PREFIX"};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		const char *prefix = getenv(names[i]);
		if (prefix && *prefix != '\0')
			return prefix;
	}
	return NULL;
}

bool options_parse(
	struct options *o, int argc, char **argv, const char **operands, struct strbuf *complaint)
{
	struct parsing p = {.o = o, .complaint = complaint};
	struct option longs[OPTION_ROWS_MAX + 1];
	char shorts[2 * OPTION_ROWS_MAX + 3];
	bool ok = true;
	int c;

	*o = (struct options){.operands = operands,
		.verify = verify_defaults(),
		.first_step = INT64_MIN,
		.log = {.before = 100, .until = INT64_MAX}};
	o->verify.env_default = active_environment();
	o->verify.with = o->with;
	fill_getopt(longs, shorts);
	opterr = 0;
	optind = 0;
	while (ok && (c = getopt_long(argc, argv, shorts, longs, NULL)) != -1) {
		/* The argument that the option stood in: the one before where its value is a whole
		 * one. */
		bool apart = c != '?' && c != ':' && c != 1 && optarg && optind >= 2 &&
			     optarg == argv[optind - 1];
		const char *element =
			optind > 0 && optind <= argc ? argv[optind - (apart ? 2 : 1)] : "";
		const struct option_row *row = row_of(c);
		if (c == 1)
			ok = take_operand(&p, optarg);
		else if (row)
			ok = take_option(&p, row, element);
		else
			ok = refuse(&p, c,
				optopt && optopt < ROW_VALUE && optind < argc &&
						argv[optind][0] == '-' && !strchr(element, optopt)
					? argv[optind]
					: element);
	}
	while (ok && optind < argc)
		ok = take_operand(&p, argv[optind++]);
	if (!ok)
		o->json = o->json || wants_json(argc, argv);
	return ok && check(&p);
}

/* Help ----------------------------------------------------------------------------------------- */

static void help_options(unsigned of, struct strbuf *b)
{
	for (size_t i = 0; i < option_row_count; i++) {
		const struct option_row *row = &option_rows[i];
		if ((row->commands & of) != of)
			continue;
		size_t start = b->n;
		if (row->letter)
			strbuf_printf(b, "  -%c, --%s", row->letter, row->name);
		else
			strbuf_printf(b, "      --%s", row->name);
		if (row->argument)
			strbuf_printf(b, " %s", row->argument);
		size_t used = b->n - start;
		strbuf_pad(b, ' ', used < HELP_COLUMN - 1 ? HELP_COLUMN - used : 1);
		strbuf_printf(b, "%s\n", row->summary);
	}
}

static void help_limits(struct strbuf *b)
{
	strbuf_add_text(b, "\nLimits (--limit NAME=VALUE):\n");
	for (size_t i = 0; i < limit_row_count; i++)
		strbuf_printf(b, "  %-16s %12llu  %s\n", limit_rows[i].name,
			(unsigned long long)limit_rows[i].value, limit_rows[i].text);
}

static void help_exit(struct strbuf *b)
{
	strbuf_add_text(b, "\nExit status:\n");
#define STATUS(id, number, when) strbuf_printf(b, "  %d  %s\n", number, when);
#include "audit/statuses.def"
#undef STATUS
}

void options_help(const struct command *command, struct strbuf *b)
{
	if (!command) {
		strbuf_add_text(b,
			"Usage: reprise COMMAND [OPTION...] ...\n"
			"Checkpoint and resume correctness, answered from the files.\n\nCommands:\n");
		for (size_t i = 0; i < COMMAND_COUNT; i++) {
			size_t start = b->n;
			strbuf_printf(b, "  %s %s", commands[i].name, commands[i].operands);
			size_t used = b->n - start;
			strbuf_pad(b, ' ', used < HELP_COLUMN - 1 ? HELP_COLUMN - used : 1);
			strbuf_printf(b, "%s\n", commands[i].summary);
		}
		strbuf_add_text(b, "\nOptions of every command:\n");
		help_options(OF_ALL, b);
		help_exit(b);
		strbuf_add_text(b, "\nreprise COMMAND --help says more of one.\n");
		return;
	}
	strbuf_printf(b, "Usage: reprise %s [OPTION...] %s\n", command->name, command->operands);
	size_t start = b->n;
	strbuf_printf(b, "%s.\n", command->summary);
	if (!b->failed && b->p[start] >= 'a' && b->p[start] <= 'z')
		b->p[start] = (char)(b->p[start] - 'a' + 'A');
	strbuf_printf(b, "\n%s\nOptions:\n", command->details);
	unsigned of = 1u << (command - commands);
	help_options(of, b);
	if (of & OF_READING)
		help_limits(b);
	help_exit(b);
}
