/* SPDX-License-Identifier: MIT */
/*
 * The sample log in tables: which attempts there were, which steps each took, and which samples
 * each step consumed. Every reader (JSONL, CSV, sealed ledger, journal) fills the same tables
 * through the same builder, so that lineage, rules and exports never see a format.
 *
 * A sample's identity is (space, key). A space is a data set, unit, order and source: keys of two
 * spaces are never compared. The key is the user's integer id itself, or XXH3-64 of a string id, or
 * the content hash as logged.
 *
 * Memory: attempts, steps and shares stay in memory (about 120 B a step). The samples' columns (8
 * to 14 B a sample) do too while they fit into the budget; beyond it they move to an unlinked
 * temporary file and are read in blocks. What is read is the same either way.
 */
#ifndef LEDGER_LEDGER_H
#define LEDGER_LEDGER_H

#include "base/arena.h"
#include "base/array.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/slice.h"
#include "base/strbuf.h"
#include "finding/finding.h"

#define LEDGER_NO_STEP INT64_MIN
#define LEDGER_NONE UINT32_MAX

enum key_kind {
	KEY_ID,      /* integer ids */
	KEY_TEXT,    /* XXH3-64 of string ids */
	KEY_CONTENT, /* content hashes as logged */
};

enum ledger_sampling {
	SAMPLING_WITHOUT, /* the default: an epoch sees each sample `repeat` times */
	SAMPLING_WITH,    /* with replacement: repeats are expected */
	SAMPLING_STREAM,  /* no epochs */
};

/* One data set of the mixture. */
struct ledger_source {
	const char *name;
	uint64_t size;    /* samples; 0: not known */
	double weight;    /* target share, or NAN */
	double epochs;    /* how often each sample is meant to be seen, or NAN */
	uint64_t samples; /* consumed, over all attempts */
	uint32_t first_attempt, last_attempt; /* indices; LEDGER_NONE: never consumed */
};

struct ledger_space {
	uint32_t source;  /* index in sources, or LEDGER_NONE */
	uint32_t dataset; /* index in datasets */
	uint8_t kind;     /* enum key_kind */
	uint64_t id; /* of the same namespace in every ledger: hash of data set, source and kind */
	uint64_t samples; /* consumed, over all attempts */
	uint64_t max_key; /* the largest key */
	/* Samples with an id that the size of the source or data set does not allow; the first one.
	 */
	uint64_t beyond, beyond_row;
};

/* What a header line says of the data. Logs without a header have one row of unknowns. */
struct ledger_dataset {
	const char *name, *fingerprint, *unit, *order; /* "" where not said */
	uint64_t size;                                 /* samples; 0: not known */
	uint8_t sampling;                              /* enum ledger_sampling */
	double repeat; /* how often a sample is meant to be seen per epoch; 1 */
};

enum attempt_kind {
	ATTEMPT_TRAIN,
	ATTEMPT_REHEARSAL,
	ATTEMPT_REFERENCE, /* an uninterrupted run to compare with */
	ATTEMPT_VALIDATION,
};

/* A change that the user declared: a skip of steps or samples, inclusive. */
struct ledger_skip {
	int64_t from, to;
	bool samples;   /* else steps */
	bool new_order; /* of the new order; else of the dead branch */
};

struct ledger_intent {
	bool any; /* an intent was given at all */
	bool seed, lr, weights, batch, order, world, code,
		rewarmup;             /* declared, whatever the value */
	int64_t seed_from, seed_to;   /* INT64_MIN: any */
	double lr_from, lr_to;        /* NAN: any */
	int64_t batch_from, batch_to; /* INT64_MIN: any */
	uint32_t first_skip, skips;   /* in ledger.skips */
};

struct ledger_attempt {
	int64_t number;
	uint32_t again; /* of several launches under one number: 0 the first, 1 the second, … */
	uint8_t kind;   /* enum attempt_kind */
	bool implied;   /* no attempt line: found because lines went on without one */
	const char *launch, *code, *versions,
		*config;   /* "" where not said; the latter two as JSON text */
	int64_t from_step; /* the step of the checkpoint it resumed from; 0 fresh; LEDGER_NO_STEP */
	int64_t from_attempt; /* number of the attempt that wrote that checkpoint, or LEDGER_NO_STEP
			       */
	const char *from_path, *from_digest;
	int64_t world, dp, global_batch, micro_batch, accumulation, workers, prefetch,
		epoch; /* -1: not said */
	int64_t seed;
	bool has_seed;
	int8_t drop_last; /* -1: not said */
	uint32_t first_weight,
		weights; /* in ledger.weights: (source, weight) pairs; 0: as the sources say */
	struct ledger_intent intent;
	const char *end; /* "killed", …; "" where not said */
	int64_t end_step;
	/* Filled when the ledger is finished. */
	uint32_t first, steps;         /* rows in ledger.steps, by step */
	uint64_t row, rows;            /* samples */
	int64_t first_step, last_step; /* LEDGER_NO_STEP: consumed nothing */
	int64_t stride; /* the least distance of its steps: a log may hold every tenth one only */
	uint32_t ranks_missing; /* of its data-parallel ranks, how many are not in the log */
	const char *file;       /* the log file in which it begins */
	uint64_t line;
};

struct ledger_weight {
	uint32_t source;
	double weight;
};

/* What one data-parallel rank consumed in one micro-batch. */
struct ledger_part {
	uint32_t dp;
	uint16_t micro;
	uint16_t worker; /* UINT16_MAX: not said */
	uint32_t n;
};

/* A stretch of steps that has a mixture of its own by plan. */
struct ledger_stage {
	const char *name;
	int64_t from, until; /* of the steps after `from`, up to `until`; INT64_MAX: to the end */
	uint32_t first_weight, weights; /* in ledger.weights; sources without one give nothing */
};

/* The parts of a step in the order of its rows. Interned: most steps of an attempt share one. */
struct ledger_geometry {
	uint32_t first, parts; /* in ledger.parts */
	uint32_t samples;
	uint32_t ranks; /* distinct dp */
};

/* What a step consumed of one source. */
struct ledger_share {
	uint32_t source; /* LEDGER_NONE: no source was said */
	uint32_t n;
	uint64_t tokens;
	double loss; /* sum over the samples that have one of their own */
	uint32_t with_loss;
};

struct ledger_step {
	int64_t step;
	uint64_t row; /* first sample; rows of one attempt are contiguous and in step order */
	uint32_t n;
	uint32_t attempt; /* index */
	int32_t epoch;    /* -1: not said */
	uint32_t geometry;
	uint32_t first_share, shares;
	uint32_t first_count; /* in ledger.counts: count_names.count values; LEDGER_NONE: none */
	bool applied;         /* false: overflow, or the update was skipped */
	bool irregular; /* lines of this step came in twice, or its samples could not all be read */
	float loss, lr, grad_norm; /* NAN: not said */
	uint64_t tokens;
	int64_t position; /* the loader's own position as logged, or -1 */
	uint64_t sum[2];  /* sum of XXH3-128(space, key) mod 2^128: order-free */
	uint64_t chain;   /* order-sensitive over (dp, micro, space, key) */
};

struct ledger_checkpoint {
	uint32_t attempt;
	int64_t step, position; /* position -1: not said */
	const char *path, *digest;
};

/* What was left out or is odd, for coverage and for the report. */
struct ledger_loss {
	const char *file; /* as given, or below the folder that was given; "" where it is none */
	uint64_t line, offset; /* line 0: the file as a whole; offset in bytes of where it begins */
	const char *what;      /* one clause */
};

/* Where the samples' columns are held, for the builder's eyes only. */
struct store;
struct ledger_build;
struct store_budget {
	uint64_t limit, used; /* bytes of memory */
};

struct ledger {
	struct arena arena;
	const char *path;  /* as given */
	const char *run;   /* "" */
	int64_t max_steps; /* planned; -1 */
	ARRAY(struct ledger_dataset) datasets;
	ARRAY(struct ledger_source) sources;
	ARRAY(struct ledger_space) spaces;
	ARRAY(struct ledger_attempt) attempts; /* by number */
	ARRAY(struct ledger_weight) weights;
	ARRAY(struct ledger_skip) skips;
	ARRAY(struct ledger_stage) stages; /* by their first step */
	ARRAY(struct ledger_geometry) geometries;
	ARRAY(struct ledger_part) parts;
	ARRAY(struct ledger_share) shares;
	ARRAY(struct ledger_step) steps; /* by attempt, then step */
	ARRAY(const char *) count_names;
	ARRAY(double) counts;
	ARRAY(struct ledger_checkpoint) checkpoints; /* by attempt, then step */
	/* Lines that were not understood. The first ones; all are counted in lines_lost. */
	ARRAY(struct ledger_loss) losses;
	/* What is odd though nothing was left out. The first ones; all are counted in noted. */
	ARRAY(struct ledger_loss) notes;
	uint64_t lines, lines_lost, noted, rows;
	/* Of the notes, those that a look at the whole ledger did not add. */
	uint64_t notes_read, noted_read;
	uint64_t lines_other; /* of other splits than training */
	uint64_t lines_late;  /* behind a later step of the same rank */
	bool has_tokens;      /* a tokens column per sample */
	bool has_losses;      /* a loss column per sample */
	bool no_memory;       /* a text, a loss or a note could not be kept */
	struct store_budget budget;
	struct store *store;
	struct ledger_build *build; /* NULL once finished */
	const struct limits *limits;
};

/* A block of consecutive samples. Pointers stay valid until the next read through the same block.
 */
struct sample_block {
	uint64_t row;
	size_t n;
	const uint64_t *keys;
	const uint16_t *spaces; /* NULL: all of space 0 */
	const uint32_t *tokens; /* NULL: not kept per sample. 0: not said */
	const float *losses;    /* NULL: not kept per sample. NAN: not said */
};

struct sample_buffer; /* what a reader of blocks reuses; one per thread */

struct sample_buffer *sample_buffer_new(void);
void sample_buffer_free(struct sample_buffer *b);

/*
 * Samples in their order, from anywhere: a log's rows, the surviving line, or an order computed by
 * a sampler's algorithm. `read` gives up to `n` samples from `row` on (at least one while row <
 * rows).
 */
struct sample_source {
	uint64_t rows;
	int (*read)(const struct sample_source *self, uint64_t row, size_t n,
		struct sample_buffer *buffer, struct sample_block *out, struct error *e);
	const void *of;
};

/* All rows of a finished ledger as a source. */
struct sample_source ledger_samples(const struct ledger *l);

/* How many steps the log lacks between a step and the one before it in the same attempt; a row of
 * ledger.steps. What was declared to be skipped is not lacking. */
int64_t ledger_missing_before(const struct ledger *l, uint32_t step);

/* Whether the log says what a step consumed, if only that it was nothing. */
bool ledger_step_said(const struct ledger *l, uint32_t step);

/* One number for (space, key) to compare and to sort by: the key itself where the ledger has one
 * space. */
uint64_t ledger_mark(const struct ledger *l, uint32_t space, uint64_t key);

/* The first id that a space cannot have, from what headers say; 0: not known. */
uint64_t ledger_space_size(const struct ledger *l, uint32_t space);

/*
 * Building. Readers call these in the order of their file; several files may come one after the
 * other, and the lines of a step may be spread over them. Nothing is complete before ledger_finish.
 */
struct run_file;
struct ledger_options {
	const struct limits *limits;
	uint64_t memory;            /* budget for the samples' columns in bytes */
	const struct run_file *run; /* what the user told, or NULL */
};

int ledger_init(
	struct ledger *l, const char *path, const struct ledger_options *o, struct error *e);
void ledger_release(struct ledger *l);

/* What one line of a step says. Arrays are as long as n, or NULL. */
struct ledger_line {
	uint32_t attempt; /* index */
	int64_t step;
	uint32_t dp;
	uint16_t micro, worker;
	int32_t epoch;
	uint8_t kind; /* enum key_kind */
	uint32_t dataset;
	bool samples; /* it says which samples, if only that there were none */
	size_t n;
	const uint64_t *keys;
	const uint32_t *sources; /* one per sample, or NULL and `source` */
	uint32_t source;         /* LEDGER_NONE */
	const uint32_t *tokens;  /* one per sample, or NULL and tokens_all */
	uint64_t tokens_all;     /* of the line, spread evenly over its samples; 0: not said */
	const float *losses;     /* one per sample, or NULL and `loss` */
	float loss, lr, grad_norm;
	int64_t position;
	bool applied;
	const double *counts; /* count_names.count values summed over the line, or NULL */
};

int ledger_add_line(struct ledger *l, const struct ledger_line *line, struct error *e);

/* A line with all that may be left out left out. */
struct ledger_line ledger_line_empty(void);

/*
 * Whether a rank goes back: a line for this step of it was added to the attempt before, and later
 * ones too. It is a launch of its own then, whatever number it has. 1 or 0, or an error.
 */
int ledger_goes_back(struct ledger *l, uint32_t attempt, uint32_t dp, uint16_t micro, int64_t step,
	struct error *e);

/* Whether the attempt has a line of this rank; the first step of those. */
bool ledger_rank_begins(
	const struct ledger *l, uint32_t attempt, uint32_t dp, uint16_t micro, int64_t *first);

/* Whether the attempt has any line of this rank. O(places). */
bool ledger_has_rank(const struct ledger *l, uint32_t attempt, uint32_t dp);

/* An attempt of which nothing was said yet. */
struct ledger_attempt ledger_attempt_empty(void);

/* Whether there is an attempt under a number. */
bool ledger_has_attempt(const struct ledger *l, int64_t number, uint32_t again, uint32_t *index);

/* A step was taken of which not all could be read. */
int ledger_irregular(struct ledger *l, uint32_t attempt, int64_t step, struct error *e);

/*
 * Index of an attempt by number, made (as implied) where it is new; the `again`th of that number.
 * Of a source or data set likewise; a data set is known by all that is said of it, and the first
 * one that is said is also that of logs without a header. Indices are for building: ledger_finish()
 * orders the attempts anew.
 */
int ledger_attempt(struct ledger *l, int64_t number, uint32_t *index, struct error *e);
int ledger_attempt_again(
	struct ledger *l, int64_t number, uint32_t again, uint32_t *index, struct error *e);
int ledger_source_named(struct ledger *l, struct slice name, uint32_t *index, struct error *e);
int ledger_dataset_said(
	struct ledger *l, const struct ledger_dataset *said, uint32_t *index, struct error *e);
int ledger_count_named(struct ledger *l, struct slice name, uint32_t *index, struct error *e);

/* The number under which logs without attempt lines are read; finished ledgers do not have it. */
#define LEDGER_UNNUMBERED INT64_MIN

/*
 * Bring all into order: attempts by number, steps by attempt and step, each step's samples in (dp,
 * micro, slot) order whatever the order of files and lines; intern geometries, sum shares, compute
 * digests.
 */
int ledger_finish(struct ledger *l, struct error *e);

/* Count a line that was not understood; the first ones are kept. Texts are copied. */
void ledger_lost(
	struct ledger *l, const char *file, uint64_t line, uint64_t offset, const char *what);

/* Whether something was lost of the file in which an attempt begins. */
bool ledger_lost_some(const struct ledger *l, const struct ledger_attempt *a);

/* Whether something of a file was lost, by its name as losses have it. */
bool ledger_lost_of(const struct ledger *l, const char *file);

/* Note what is odd, though nothing was left out. */
void ledger_note(struct ledger *l, const char *file, uint64_t line, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* A text that lives as long as the ledger; "" when memory runs out, which ledger_whole() tells. */
const char *ledger_keep(struct ledger *l, struct slice text);

/* Whether memory sufficed for all texts, losses and notes so far; else an error. */
int ledger_whole(const struct ledger *l, struct error *e);

/* "2", or "2 (second)" where two launches have one number. */
void ledger_attempt_name(const struct ledger *l, uint32_t attempt, struct strbuf *out);

#endif
