/* SPDX-License-Identifier: MIT */
/* clang-format off */
/*
 * reprise: the command line. A map of the source, from bytes to verdict; a folder includes only what
 * stands above it.
 *
 * base/       what every other file stands on
 *   slice, strbuf, array, arena   text and memory, each with a cap from birth
 *   write                         where long texts go
 *   names, lookup                 sets of names; rows of tables by hash
 *   team                          threads that do the same to a member each
 *   size, cursor, source          arithmetic on sizes, bytes in hand, bytes in a file
 *   error                         "we could not look"
 *   lines, scan                   lines of a file; parts of a JSON line
 *   ini, replace, place, deadline a strict INI reader; writing a whole file or none; what lies where; when to stop
 *   packed                        files that hold a text in another form
 *   sha256, identity, journal     digests of bytes and of samples; the layout of the recorder's files
 *   version                       versions of Python packages in their order
 *   limits, limits.def            what a hostile file can make us do at the most
 *   text                          escaping, units, numbers, nearest words, natural order
 * finding/    finding, findings.def, verdicts.def: problems with a stable code, and what they amount to
 * value/      the inert graph that files decode into
 *   value, tensor, dtypes.def     its nodes; arrays, located and not loaded
 *   path, print                   what people type to look into it, and what they then see
 * container/  byte formats, without knowledge of any framework
 *   document, containers.def      opening any of them
 *   zip, torch, torch_legacy      what torch.save writes
 *   pickle, pickle_judge, pickle_classes.def, pickle_ops.def, rebuild, container_pickle
 *                                 pickles: decoding, what loading would run, what their calls mean
 *   foreign, foreign.def          formats that are not read, by name
 *   safetensors, npy, literal     tensors of others: safetensors; numpy.save and savez, and their headers
 *   json, container_json
 *   print_tensor                  the elements of small tensors, printed
 * rng/        random number generators: layout, seeding, stepping, distance
 *   rng, search                   a saved state; how two of them relate
 *   mt19937, pcg64, philox, seed_sequence
 * columns/    files of columns, written and read by the helper executable
 *   colfile, userblock            one file; the text block that stands before HDF5
 *   helper, frame                 the helper process, and what goes to and fro
 *   table, schema_of              tables of structs as columns
 * state/      the resume state of a checkpoint as tables
 *   listing                       names, sizes and times below a path
 *   state, facts.def              files, facts, streams, optimizers, tensors
 *   run_file, run_keys.def        what the user tells of the run
 *   relate                        streams and tensors of two states
 *   bytes, statistics, gather     the one pass over all bytes; values; elements that lie apart
 *   moments                       what Adam's moments must obey, element by element
 *   epoch_log                     steps and epochs of a log: where an epoch was set back
 *   snapshot, file_digests        a state as a file of columns; digests of a checkpoint's small files
 * profile/    frameworks
 *   profile, profiles.def         the table of them, and reading a checkpoint
 *   shapes.def                    scripts that save one dict of a shape of theirs
 *   candidate, folders            which files are one checkpoint; what lies in which folder
 *   in_name                       what names of files tell: steps, epochs, ranks
 *   collect, collect_walk         state by shape and name, whatever framework wrote it
 *   collect_parts                 what these share: collect_streams, collect_training, collect_weights,
 *                                 collect_totals
 *   profile_pytorch, profile_transformers, profile_lightning, profile_accelerate
 * ledger/     the sample log as tables
 *   ledger, build                 attempts, steps, shares, filled line by line
 *   store, strand, arrange        the samples' columns; where each line's lie; bringing all into order
 *   lineage, epochs               which attempt continues which, and what the log lacks of the line; where its
 *                                 epochs begin
 *   tally, tally_count, places    what the line covers, by one pass over the samples; where these stand
 *   answer_key, align             what a right resume would consume; what resumes repeat
 *   read, readers.def             files and folders into one ledger; which launch a line belongs to
 *   read_jsonl, step_line, said   JSON lines: those of steps, in one pass; all others
 *   read_csv, csv_rows            rows of samples, gathered step by step
 *   read_journal                  what the recorder writes
 *   sealed, sealed_columns.def    one checked file of columns
 *   search, seen                  where a sample was consumed; what a checkpoint had seen, as one digest
 *   mixture                       statistics of a mixture of sources
 *   plan                          stages, and what a run file tells of a log
 *   doubts                        what is odd in a ledger as a record
 * curve/      loss logs as tables, whatever wrote them
 *   find, own                     which files of a folder are logs; what this tool wrote is none
 *   curve, read, readers.def      the logs into one; what all readers share
 *   read_console, console.def     console logs of trainers; console_keys finds the lines that matter,
 *                                 console_shape recognises them, console_line takes them apart,
 *                                 console_points makes points of their fields, console_form those of
 *                                 rows like earlier ones in one pass, console_bars of progress bars,
 *                                 console_patterns of what the user describes; console_marks: launches,
 *                                 saves, …
 *   naming, names.def, words.def, roles.def
 *                                 what the name of a series says
 *   rows, xs.def                  records of names and numbers into points
 *   number                        numbers of lines, eight digits at a time
 *   writers, writers.def          who wrote a file, from the names of its series
 *   read_jsonl, members           JSON lines; the numbers of an object
 *   read_table                    CSV and TSV
 *   read_trainer_state            trainer_state.json, wandb-summary.json
 *   read_wandb, read_mlflow       wandb's own files; MLflow's file store
 *   read_tensorboard, tfrecord, crc32c, protobuf
 *                                 event files
 *   piece                         launches cut out of files; piece_carried: out of files that each
 *                                 launch carries on
 *   stitch                        the one line of all attempts: stitch_attempts made of pieces, stitch_order,
 *                                 stitch_lineage which continues which, stitch_tracks, stitch_hidden resumes
 *   resume, resume_repeat, resume_stretch
 *                                 first steps against the dead branch; earlier steps again; low stretches
 *   one_unit                      logs over steps and over samples brought together
 *   consumed, stitch_consumed     how many samples a step has; with another batch at a resume: resume_amounts,
 *                                 resume_ramp
 *   rate, rate_lookup, rate_amounts, rate_launch, rate_origin
 *                                 whether the learning rate goes on at a resume: a schedule as it was logged,
 *                                 one by samples, what launches say of it; launches that count from 0 and are
 *                                 not fresh
 *   spikes, spikes_place, spikes_olmo, window
 *                                 spikes and shifts; what is near them; another rule; running medians
 * audit/      the rules: audit, case, rules.def, rule_integrity, rule_position, rule_rng, rule_counters,
 *             rule_optimizer_state, rule_settings, rule_schedule, rule_scaler, rule_weights, rule_averages,
 *             rule_optimizer, rule_values, rule_replicas, rule_run, rule_copy; counting, trail: units of
 *             counters, and counters along a line of checkpoints;
 *             about sample logs: seams, duplicates, rule_data,
 *             rule_data_epochs, rule_data_ranks, rule_data_attempts; mixture_table, mixture_stages, rule_mixture,
 *             rule_stages, rule_ratios, rule_sources, rule_rank_mixture; about loss logs: curves, curve_words,
 *             rule_curve_line, rule_curve_batch, rule_curve_epochs, rule_curve_resume, rule_curve_rate,
 *             rule_curve_spikes;
 *             defects, defects.def, defect_conditions, rule_defects: what frameworks get wrong, and in
 *             which versions; environment: the versions that will resume;
 *             policy, policies.def: what a gate asks for; verdict: one word, its evidence, an exit status
 * report/     answers: report (the data), render_text, render_json, render_gate, page, json_writer, explain,
 *             plot (a curve as characters), write_log (a ledger as text)
 * api/        the commands as functions that fill a report: verify, compare, show, init, runs (audit:
 *             runs_parts, runs_tables, runs_checkpoints, runs_causes, runs_curve; rehearsal);
 *             run_paths (which paths are one run), compare_runs, curves (stitch: curves_parts, curves_tables, curves_rows,
 *             curves_confirm), logs (ledger), subject, choose,
 *             contender, conclude, overview, run (the run file), history, take_snapshot
 * cli/        this folder
 *   main                          streams, signals, dispatch
 *   options, option_table, commands.def
 *                                 parsing, help, the tables of options and commands
 *   answer                        stdout, stderr, exit status
 *   inside                        opening one or all files below a path, for ls and get
 *   cmd_*                         one command each
 *
 * Two programs beside it: h5/ is the helper that alone sees HDF5 (h5_main, h5_driver, h5_columns, h5_sandbox);
 * recorder/ is the library that trainers load (recorder, opening, launch, segment, step_block, block, json_text).
 */
/* clang-format on */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/answer.h"

#define COMPLAINT_MAX 4096u

/*
 * A closed standard stream would become the first file that we open. Read-only for output, so that
 * writing still fails.
 */
static void hold_standard_streams(void)
{
	for (int fd = 0; fd <= 2; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDONLY) < 0)
			exit(EXIT_STATUS_FAILED);
}

static int print_version(void)
{
	struct strbuf out;

	strbuf_init(&out, 64);
	strbuf_add_text(&out, "reprise " RP_VERSION "\n");
	return answer_write(&out, EXIT_STATUS_FINE);
}

static int print_help(const struct options *o)
{
	struct strbuf out;

	answer_init(&out, o);
	options_help(o->command, &out);
	return answer_write(&out, EXIT_STATUS_FINE);
}

static int run(const struct options *o, bool sound, const char *complaint)
{
	if (!sound)
		return answer_usage(o, complaint);
	if (o->help)
		return print_help(o);
	if (o->version)
		return print_version();
	return o->command->run(o);
}

int main(int argc, char **argv)
{
	struct options o;
	struct strbuf complaint;
	const char **operands = calloc((size_t)argc + 1, sizeof *operands);

	if (!operands) {
		fputs("reprise: no memory\n", stderr);
		return EXIT_STATUS_FAILED;
	}
	hold_standard_streams();
	/* So that a reader who has gone, or a file that may not grow, is an error of write(), as
	 * any other. */
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	strbuf_init(&complaint, COMPLAINT_MAX);
	bool sound = options_parse(&o, argc, argv, operands, &complaint);
	int status = run(&o, sound, strbuf_text(&complaint));
	strbuf_release(&complaint);
	free(operands);
	return status;
}
