/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "cli/options.h"

#include <getopt.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "audit/verdict.h"
#include "base/text.h"

#define SHOWN_MAX 200u /* bytes of an argument that a complaint shows */
#define YEAR 31536000  /* a year */
#define THREADS_MAX 1024
#define KEEP_MAX 1000000
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

/* The options ---------------------------------------------------------------------------------- */

#define OF(command) (1u << COMMAND_##command)
#define OF_ALL ((1u << COMMAND_COUNT) - 1)
#define OF_CHOOSING (OF(verify) | OF(gate))
#define OF_LOGS (OF(audit) | OF(ledger))
#define OF_CURVES (OF(stitch))
#define OF_TAKING (OF(verify) | OF(gate) | OF(snapshot) | OF(init))
#define OF_JUDGING (OF(verify) | OF(compare) | OF(snapshot))
#define OF_READING (OF_ALL & ~OF(explain))

static bool take_against(struct options *o, const char *value)
{
	o->verify.against = value;
	return *value != '\0';
}

static bool take_snapshot(struct options *o, const char *value)
{
	o->verify.snapshot = value;
	return *value != '\0';
}

static bool take_run(struct options *o, const char *value)
{
	o->verify.run = value;
	return *value != '\0';
}

static bool take_step(struct options *o, const char *value)
{
	return text_parse_i64(slice_of(value), 0, INT64_MAX, &o->verify.step);
}

static bool take_quick(struct options *o, const char *value)
{
	(void)value;
	return o->verify.quick = true;
}

static bool take_unsigned(unsigned *out, const char *value, uint64_t max)
{
	uint64_t n;

	if (!text_parse_u64(slice_of(value), max, &n))
		return false;
	*out = (unsigned)n;
	return true;
}

static bool take_settle(struct options *o, const char *value)
{
	return take_unsigned(&o->verify.settle, value, YEAR);
}

static bool take_history(struct options *o, const char *value)
{
	o->verify.history = value;
	return *value != '\0';
}

static bool take_history_keep(struct options *o, const char *value)
{
	return take_unsigned(&o->verify.history_keep, value, KEEP_MAX) &&
	       o->verify.history_keep > 0;
}

static bool take_max_seconds(struct options *o, const char *value)
{
	return text_parse_i64(slice_of(value), 0, YEAR, &o->verify.max_seconds);
}

static bool take_threads(struct options *o, const char *value)
{
	return take_unsigned(&o->verify.threads, value, THREADS_MAX) && o->verify.threads > 0;
}

/* Its complaints are made by complain_limit(). */
static bool take_limit(struct options *o, const char *value)
{
	const char *equals = strchr(value, '=');
	uint64_t n;

	return equals && text_parse_u64(slice_of(equals + 1), UINT64_MAX, &n) && n > 0 &&
	       limits_set(&o->verify.limits, (struct slice){value, (size_t)(equals - value)}, n);
}

static bool take_env(struct options *o, const char *value)
{
	o->verify.env = value;
	return *value != '\0';
}

static bool take_with(struct options *o, const char *value)
{
	struct environment one;

	environment_init(&one);
	bool sound = o->verify.with_count < WITH_MAX && environment_tell(&one, slice_of(value));
	environment_release(&one);
	if (!sound || environment_contradiction(o->with, o->verify.with_count, slice_of(value)))
		return false;
	o->with[o->verify.with_count++] = value;
	return true;
}

static bool take_policy(struct options *o, const char *value)
{
	o->policy = value;
	return *value != '\0';
}

static bool take_report(struct options *o, const char *value)
{
	o->report = value;
	return *value != '\0';
}

static bool take_output(struct options *o, const char *value)
{
	o->output = value;
	return *value != '\0';
}

static bool take_id(struct options *o, const char *value)
{
	o->log.id = value;
	return *value != '\0';
}

static bool take_key(struct options *o, const char *value)
{
	o->log.has_hash = true;
	o->log.hash = 0;
	for (const char *p = value; *p; p++) {
		int digit = text_hex_digit(*p);
		if (digit < 0 || p - value >= 16)
			return false;
		o->log.hash = o->log.hash << 4 | (uint64_t)digit;
	}
	return strlen(value) == 16;
}

static bool take_source(struct options *o, const char *value)
{
	o->log.source = value;
	return *value != '\0';
}

static bool take_before(struct options *o, const char *value)
{
	return text_parse_i64(slice_of(value), 0, INT64_MAX, &o->log.before);
}

static bool take_until(struct options *o, const char *value)
{
	return text_parse_i64(slice_of(value), 0, INT64_MAX, &o->log.until);
}

static bool take_as(struct options *o, const char *value)
{
	o->form = value;
	return strcmp(value, "jsonl") == 0 || strcmp(value, "csv") == 0;
}

static bool take_force(struct options *o, const char *value)
{
	(void)value;
	return o->force = true;
}

static bool take_digest(struct options *o, const char *value)
{
	o->verify.sha256 = strcmp(value, "sha256") == 0;
	return o->verify.sha256 || strcmp(value, "xxh3") == 0;
}

static bool take_print_path(struct options *o, const char *value)
{
	(void)value;
	return o->print_path = true;
}

/* ATTEMPT:STEP */
static bool take_resume(struct options *o, const char *value)
{
	const char *colon = strchr(value, ':');
	struct lineage_told told;

	if (!colon || o->told_count == TOLD_MAX ||
		!text_parse_i64((struct slice){value, (size_t)(colon - value)}, 0, INT64_MAX,
			&told.attempt) ||
		!text_parse_i64(slice_of(colon + 1), 0, INT64_MAX, &told.step))
		return false;
	o->told[o->told_count++] = told;
	return true;
}

/* What has no group is a name, as in read_console.c. */
static bool is_pattern(const char *text)
{
	regex_t compiled;

	if (!strchr(text, '('))
		return true;
	if (regcomp(&compiled, text, REG_EXTENDED) != 0)
		return false;
	regfree(&compiled);
	return true;
}

/* NAME=PATTERN */
static bool take_series(struct options *o, const char *value)
{
	const char *equals = strchr(value, '=');

	size_t n = equals ? (size_t)(equals - value) : 0;
	if (n == 0 || n >= PATTERN_NAME || equals[1] == '\0' || o->pattern_count == PATTERNS_MAX ||
		!is_pattern(equals + 1))
		return false;
	char *name = o->pattern_names[o->pattern_count];
	memcpy(name, value, n);
	name[n] = '\0';
	o->patterns[o->pattern_count++] = (struct curve_pattern){name, equals + 1};
	return true;
}

static bool take_plot(struct options *o, const char *value)
{
	o->plot = value;
	return strcmp(value, "auto") == 0 || strcmp(value, "ascii") == 0 ||
	       strcmp(value, "none") == 0;
}

static bool take_by(struct options *o, const char *value)
{
	static const enum curve_unit units[] = {CURVE_STEPS, CURVE_SAMPLES, CURVE_TOKENS};

	for (size_t i = 0; i < sizeof units / sizeof *units && !o->by_is_told; i++) {
		o->by_is_told = strcmp(value, curve_unit_name(units[i])) == 0;
		o->by = units[i];
	}
	return o->by_is_told || strcmp(value, "auto") == 0;
}

static bool take_from(struct options *o, const char *value)
{
	return text_parse_i64(slice_of(value), 0, INT64_MAX, &o->first_step);
}

static bool take_csv(struct options *o, const char *value)
{
	(void)value;
	return o->csv = true;
}

static bool take_dead(struct options *o, const char *value)
{
	(void)value;
	return o->dead = true;
}

static bool take_rule(struct options *o, const char *value)
{
	return o->olmo = strcmp(value, "olmo") == 0;
}

static bool take_confirm(struct options *o, const char *value)
{
	o->confirm = value;
	return *value != '\0';
}

static bool take_rollback(struct options *o, const char *value)
{
	(void)value;
	return o->rollback = true;
}

static bool take_rehearsal(struct options *o, const char *value)
{
	o->rehearsal = value;
	return *value != '\0';
}

static bool take_max_memory(struct options *o, const char *value)
{
	static const char suffixes[] = "KMGT";
	size_t n = strlen(value);
	const char *suffix = n > 1 ? strchr(suffixes, value[n - 1]) : NULL;
	unsigned shift = suffix ? 10 * (unsigned)(suffix - suffixes + 1) : 0;
	uint64_t bytes;

	if (!text_parse_u64(
		    (struct slice){value, n - (suffix != NULL)}, UINT64_MAX >> shift, &bytes) ||
		bytes == 0)
		return false;
	o->verify.limits.memory = bytes << shift;
	return true;
}

static bool take_defects(struct options *o, const char *value)
{
	(void)value;
	return o->defects = true;
}

static bool take_format(struct options *o, const char *value)
{
	o->json = strcmp(value, "json") == 0;
	return o->json || strcmp(value, "text") == 0;
}

static bool take_color(struct options *o, const char *value)
{
	static const char *const names[] = {"auto", "always", "never"};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		if (strcmp(value, names[i]) == 0) {
			o->color = (enum when)i;
			return true;
		}
	}
	return false;
}

static bool take_quiet(struct options *o, const char *value)
{
	(void)value;
	return o->quiet = true;
}

static bool take_verbose(struct options *o, const char *value)
{
	(void)value;
	return o->verbose = true;
}

static bool take_help(struct options *o, const char *value)
{
	(void)value;
	return o->help = true;
}

static bool take_version(struct options *o, const char *value)
{
	(void)value;
	return o->version = true;
}

const struct option_row option_rows[] = {
	{"against", 0, false, "PREV", OF_CHOOSING,
		"the earlier checkpoint that CKPT should continue", take_against, "a path"},
	{"snapshot", 0, false, "ORIGINAL", OF_CHOOSING,
		"the snapshot (or checkpoint) that CKPT should be a copy of", take_snapshot,
		"a path"},
	{"step", 0, false, "N", OF_TAKING | OF(ledger),
		"the step: which checkpoint of a root to judge, or whose samples to find",
		take_step, "a step: 0, 1, 2, ..."},
	{"run", 0, false, "FILE", OF_CHOOSING | OF(compare) | OF(show) | OF(audit),
		"what is known of the run; else the nearest reprise.run, if any", take_run,
		"a file"},
	{"quick", 0, false, NULL, OF_JUDGING, "metadata only: read no tensor's bytes", take_quick,
		NULL},
	{"settle", 0, false, "SECONDS", OF_CHOOSING,
		"unfinished and younger is \"not ready\", older is damaged (600)", take_settle,
		"seconds, up to a year"},
	{"id", 0, false, "ID", OF(ledger), "find where the sample ID was consumed", take_id,
		"an id"},
	{"key", 0, false, "HEX", OF(ledger), "find a sample by its content key", take_key,
		"16 hexadecimal digits"},
	{"source", 0, false, "SOURCE", OF(ledger), "find how much of SOURCE was consumed",
		take_source, "a source's name"},
	{"before", 0, false, "N", OF(ledger), "steps listed before that of --step (100)",
		take_before, "a number of steps"},
	{"from", 0, false, "N", OF(stitch), "the first step that is kept", take_from,
		"a step: 0, 1, 2, ..."},
	{"until", 0, false, "N", OF(ledger) | OF(stitch),
		"the last step that is kept, or counts for --source", take_until,
		"a step: 0, 1, 2, ..."},
	{"by", 0, false, "UNIT", OF(stitch),
		"the line by steps, samples or tokens; auto (default): steps, unless the batch changes",
		take_by, "steps, samples, tokens or auto"},
	{"series", 0, true, "NAME=PATTERN", OF_CURVES,
		"take the series NAME (loss, lr, ...) from text: one group, the value; or step and value",
		take_series, "NAME=PATTERN, an extended regular expression, at most 64 times"},
	{"csv", 0, false, NULL, OF(stitch), "the curve as a table to stdout (or -o FILE)", take_csv,
		NULL},
	{"dead", 0, false, NULL, OF(stitch), "in the table: what was rolled back too", take_dead,
		NULL},
	{"plot", 0, false, "HOW", OF(stitch), "auto (default), ascii or none", take_plot,
		"auto, ascii or none"},
	{"rule", 0, false, "RULE", OF(stitch), "count spikes by OLMo-core's rule too: olmo",
		take_rule, "olmo"},
	{"as", 0, false, "FORM", OF(ledger), "export as jsonl (default) or csv", take_as,
		"jsonl or csv"},
	{"output", 'o', false, "FILE", OF(snapshot) | OF(init) | OF(ledger) | OF(stitch),
		"the file to write, all of it or nothing", take_output, "a file"},
	{"digest", 0, false, "DIGEST", OF(snapshot),
		"xxh3 (default), against accidents, or sha256 too, against attackers", take_digest,
		"xxh3 or sha256"},
	{"history", 0, false, "DIR", OF_CHOOSING,
		"keep what is judged in DIR, and find earlier checkpoints there", take_history,
		"a folder"},
	{"history-keep", 0, false, "N", OF_CHOOSING, "how many checkpoints a history keeps (20)",
		take_history_keep, "a number from 1 to 1000000"},
	{"max-seconds", 0, false, "SECONDS", OF_CHOOSING,
		"begin nothing more after so long; the rest is \"not checked\"", take_max_seconds,
		"seconds, up to a year"},
	{"threads", 'j', false, "N", OF_JUDGING | OF(gate) | OF(audit),
		"reading threads (one per core); never changes the output", take_threads,
		"a number from 1 to 1024"},
	{"resume", 0, true, "ATTEMPT:STEP", OF_LOGS | OF(gate) | OF(stitch),
		"ATTEMPT resumed from the checkpoint of STEP, where the log does not say it",
		take_resume, "ATTEMPT:STEP, two whole numbers, at most 64 times"},
	{"confirm", 0, false, "LOG", OF(gate),
		"judge a relaunch by the first steps in LOG, against the logs in CKPT's place",
		take_confirm, "a training log"},
	{"rollback-candidates", 0, false, NULL, OF(audit),
		"name the newest complete checkpoint before the first sign of trouble",
		take_rollback, NULL},
	{"rehearsal", 0, false, "LOG", OF(gate),
		"the log of what the launch would read, held against the run's log", take_rehearsal,
		"a sample log"},
	{"max-memory", 0, false, "BYTES", OF_LOGS,
		"memory to use (1G); less takes longer and finds the same", take_max_memory,
		"bytes, such as 500M or 2G"},
	{"env", 0, false, "PREFIX", OF_CHOOSING,
		"the Python environment that will resume ($VIRTUAL_ENV, $CONDA_PREFIX)", take_env,
		"a folder"},
	{"with", 0, true, "NAME=VERSION", OF_CHOOSING,
		"a package that will resume: accelerate=1.10.1", take_with, "NAME=VERSION"},
	{"policy", 0, false, "POLICY", OF(gate),
		"quick, full (default), strict, or a file that says what to ask for", take_policy,
		"quick, full, strict or a file"},
	{"report", 0, false, "FILE", OF(gate),
		"write the whole report to FILE as JSON, all of it or nothing", take_report,
		"a file"},
	{"force", 0, false, NULL, OF(init), "replace a file that is there", take_force, NULL},
	{"print-path", 0, false, NULL, OF(gate),
		"what passes: its path alone on stdout, the line on stderr", take_print_path, NULL},
	{"defects", 0, false, NULL, OF(explain),
		"list the known defects of frameworks, with versions and sources", take_defects,
		NULL},
	{"limit", 0, true, "NAME=VALUE", OF_READING,
		"bound what a file can make us do; see the names below", take_limit, "NAME=VALUE"},
	{"format", 0, false, "FORMAT", OF_ALL, "text (default) or json (schema reprise/1)",
		take_format, "text or json"},
	{"color", 0, false, "WHEN", OF_ALL, "auto (default), always or never; NO_COLOR is heeded",
		take_color, "auto, always or never"},
	{"quiet", 'q', false, NULL, OF_ALL, "the answer alone: the first line, the values",
		take_quiet, NULL},
	{"verbose", 'v', false, NULL, OF_ALL, "what is fine too, and all details", take_verbose,
		NULL},
	{"help", 'h', true, NULL, OF_ALL, "this text", take_help, NULL},
	{"version", 0, true, NULL, OF_ALL, "the version", take_version, NULL},
};

#define ROW_COUNT (sizeof option_rows / sizeof *option_rows)
#define ROW_VALUE 256 /* of the first row, for getopt */

const size_t option_row_count = ROW_COUNT;

bool option_is_common(const struct option_row *row)
{
	return (row->commands & OF_READING) == OF_READING;
}

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
	const char *names[ROW_COUNT], *nearest = NULL;
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
	for (size_t i = 0; i < ROW_COUNT; i++) {
		names[i] = option_rows[i].name;
		/* Abbreviations are refused, since they change their meaning when options are
		 * added. */
		if (n > 0 && strncmp(word, names[i], n) == 0 && !nearest)
			nearest = names[i];
	}
	suggest(b, "--", nearest ? nearest : text_nearest(word, names, ROW_COUNT));
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
	const char *other = row->take == take_with ? environment_contradiction(o->with,
							     o->verify.with_count, slice_of(value))
						   : NULL;

	if (row->take == take_limit) {
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
	unsigned char given[ROW_COUNT]; /* how often */
};

static const struct option_row *row_of_letter(int letter)
{
	for (size_t i = 0; i < ROW_COUNT; i++)
		if (option_rows[i].letter && option_rows[i].letter == letter)
			return &option_rows[i];
	return NULL;
}

static const struct option_row *row_of(int value)
{
	if (value >= ROW_VALUE && (size_t)(value - ROW_VALUE) < ROW_COUNT)
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

	for (size_t i = 0; i < ROW_COUNT && o->command; i++) {
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
	for (size_t i = 0; i < ROW_COUNT; i++) {
		longs[i] = (struct option){.name = option_rows[i].name,
			.has_arg = option_rows[i].argument ? required_argument : no_argument,
			.val = ROW_VALUE + (int)i};
		if (!option_rows[i].letter)
			continue;
		*shorts++ = option_rows[i].letter;
		if (option_rows[i].argument)
			*shorts++ = ':';
	}
	longs[ROW_COUNT] = (struct option){0};
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
	struct option longs[ROW_COUNT + 1];
	char shorts[2 * ROW_COUNT + 3];
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
	for (size_t i = 0; i < ROW_COUNT; i++) {
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
