/* SPDX-License-Identifier: MIT */
/* The command line: which command, its operands and the options, from one table each. */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include <stdbool.h>

#include "api/logs.h"
#include "curve/curve.h"
#include "api/runs.h"
#include "base/strbuf.h"

#define WITH_MAX 64 /* versions that a command line names */

struct options;

enum command_id {
#define COMMAND(name, operands, summary, details, run) COMMAND_##name,
#include "cli/commands.def"
#undef COMMAND
	COMMAND_COUNT
};

struct command {
	const char *name, *operands, *summary, *details;
	int (*run)(const struct options *o); /* returns the exit status */
};

extern const struct command commands[COMMAND_COUNT];

#define COMMAND(name, operands, summary, details, run) int run(const struct options *o);
#include "cli/commands.def"
#undef COMMAND

#define TOLD_MAX 64u
#define PATTERNS_MAX 64u
#define PATTERN_NAME 32u

enum when {
	WHEN_AUTO,
	WHEN_ALWAYS,
	WHEN_NEVER,
};

struct options {
	const struct command *command; /* NULL: none was named */
	const char **operands;         /* operand_count of them, within the command's bounds */
	int operand_count;
	struct verify_options verify;       /* limits, against, step, quick, threads, settle */
	const char *with[WITH_MAX];         /* what verify.with points to */
	const char *policy, *report;        /* of gate: as typed, or NULL */
	const char *output;                 /* of init, snapshot and ledger: likewise */
	struct log_options log;             /* of ledger; limits and step are those of `verify` */
	const char *form;                   /* of ledger export: "jsonl", "csv", or NULL */
	struct lineage_told told[TOLD_MAX]; /* of audit: --resume */
	size_t told_count;
	struct curve_pattern patterns[PATTERNS_MAX]; /* of stitch: --series */
	char pattern_names[PATTERNS_MAX][PATTERN_NAME]; /* what patterns[].name points to */
	size_t pattern_count;
	enum curve_unit by;  /* of stitch: --by */
	bool by_is_told;     /* and not auto */
	const char *plot;    /* of stitch: "auto", "ascii", "none", or NULL */
	int64_t first_step;  /* of stitch: --from; INT64_MIN: none */
	bool csv, dead, olmo; /* of stitch */
	bool rollback;        /* of audit: --rollback-candidates */
	const char *confirm; /* of gate, or NULL */
	const char *rehearsal; /* of gate, or NULL */
	bool print_path, force;
	bool defects; /* of explain: list the known defects */
	bool json, quiet, verbose, help, version;
	enum when color;
};

/* A row of the table of options: parsing, help and complaints come from it, and so do the manual's
 * options and the completion. */
struct option_row {
	const char *name;
	char letter; /* 0: none */
	bool repeatable;
	const char *argument; /* what stands for it in the help, or NULL */
	unsigned commands;    /* that it belongs to: bits 1 << enum command_id */
	const char *summary;
	/* Take the value (NULL where there is no argument). False where it makes no sense. */
	bool (*take)(struct options *o, const char *value);
	const char *wanted; /* what a value must be, for complaints */
};

extern const struct option_row option_rows[];
extern const size_t option_row_count;

/* Whether it belongs to every command that reads something. */
bool option_is_common(const struct option_row *row);

/*
 * Parse the command line. False when it makes no sense: a sentence that shows the offending
 * argument is then in `complaint`, and o->json and o->command are set as far as they could be seen.
 * `operands` must have room for argc pointers. Arguments are shown, so they must outlive the
 * options.
 */
bool options_parse(
	struct options *o, int argc, char **argv, const char **operands, struct strbuf *complaint);

/* What --help prints: for one command, or, where that is NULL, for all. */
void options_help(const struct command *command, struct strbuf *out);

#endif
