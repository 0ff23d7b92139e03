/* SPDX-License-Identifier: MIT */
/* The table of options: what each takes, and of which commands. */
#define _GNU_SOURCE
#include "cli/option_table.h"

#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#define YEAR 31536000 /* a year */
#define THREADS_MAX 1024
#define KEEP_MAX 1000000

#define OF_CHOOSING (OF(verify) | OF(gate))
#define OF_LOGS (OF(audit) | OF(ledger))
#define OF_CURVES (OF(stitch))
#define OF_TAKING (OF(verify) | OF(gate) | OF(snapshot) | OF(init))
#define OF_JUDGING (OF(verify) | OF(compare) | OF(snapshot))

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

bool option_take_limit(struct options *o, const char *value)
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

bool option_take_with(struct options *o, const char *value)
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
		"a package that will resume: accelerate=1.10.1", option_take_with, "NAME=VERSION"},
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
		"bound what a file can make us do; see the names below", option_take_limit, "NAME=VALUE"},
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

_Static_assert(ROW_COUNT <= OPTION_ROWS_MAX, "there is no room for all options");

const size_t option_row_count = ROW_COUNT;

bool option_is_common(const struct option_row *row)
{
	return (row->commands & OF_READING) == OF_READING;
}
