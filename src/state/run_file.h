/* SPDX-License-Identifier: MIT */
/*
 * The run file: what checkpoints do not hold and the user knows (sizes, sources, stages, batch,
 * sampler), as a strict INI file. What it tells becomes facts with how = HOW_TOLD; they stand
 * behind what was read, so that a rule takes what the checkpoint says and another rule holds the
 * two against each other. run_keys.def is the table of its single values.
 */
#ifndef STATE_RUN_FILE_H
#define STATE_RUN_FILE_H

#include "state/state.h"

#define RUN_FILE_NAME "reprise.run"

enum run_kind {
	RUN_COUNT,  /* 1, 2, 3, ... */
	RUN_NUMBER, /* 0, 1, 2, ... */
	RUN_YESNO,
	RUN_WORD,
};

struct run_key {
	const char *section, *key;
	enum fact_key fact;
	enum run_kind kind;
	const char *example, *comment; /* for a draft */
};

extern const struct run_key run_keys[];
extern const size_t run_key_count;

/* One value that a key of run_keys tells. */
struct run_value {
	const struct run_key *key;
	int64_t number;   /* COUNT, NUMBER, YESNO */
	const char *word; /* WORD */
	unsigned line;
};

/* A data set of the mixture: [source.NAME]. */
struct run_source {
	const char *name;
	int64_t samples; /* 0: not told */
	double weight; /* its share of the samples drawn, against the other weights; 0: not told */
	double epochs; /* how often it is to be read, at most; 0: not told */
	unsigned line;
};

struct run_weight {
	size_t source; /* index in sources */
	double weight;
};

/* A stretch of steps with a mixture of its own: [stage.NAME]. */
struct run_stage {
	const char *name;
	int64_t from, until; /* of the steps after `from`, up to `until`; INT64_MAX: to the end */
	struct run_weight *weights;
	size_t weight_count;
	unsigned line;
};

/* What a resume does with the data, where the user says so. */
enum run_resume {
	RUN_RESUME_UNKNOWN,
	RUN_RESUME_SKIPS,    /* the script passes over what was consumed, from its counters */
	RUN_RESUME_RESTARTS, /* the epoch's data starts again */
};

struct run_file {
	struct arena arena;
	const char *path; /* as it was opened */
	ARRAY(struct run_value) values;
	ARRAY(struct run_source) sources;
	ARRAY(struct run_stage) stages; /* by their first step */
	ARRAY(const char *) unused;     /* owners of streams that nothing draws from */
	enum run_resume on_resume;
	bool expects_parameters;
	int64_t parameters_least, parameters_most;
	unsigned parameters_line;
};

/*
 * Read it. RP_E_ARGUMENT for what makes no sense, with the line; RP_E_NOT_FOUND where there is no
 * such file. Release it also after an error.
 */
int run_file_read(struct run_file *r, const char *path, struct error *e);

/* The same from memory; `text` need not outlive the call. */
int run_file_parse(struct run_file *r, struct slice text, const char *path, struct error *e);

void run_file_release(struct run_file *r);

/* What it tells under a key, or NULL. */
const struct run_value *run_file_value(const struct run_file *r, enum fact_key fact);

/* Whether it says that nothing draws from streams of this owner; false where `r` is NULL. */
bool run_file_unused(const struct run_file *r, const char *owner);

/* The stage that the step after `step` belongs to, or NULL. */
const struct run_stage *run_file_stage(const struct run_file *r, int64_t step);

/*
 * Add what it tells to a finished state, and what follows: data-parallel ranks, global batch, the
 * length of an epoch. What an earlier call told is dropped.
 */
void run_file_tell(const struct run_file *r, struct state *s);

/* Drop what was told. */
void run_file_untell(struct state *s);

/*
 * How long an epoch is, from the data set, the batch and the ranks that a state knows: the least
 * and the most, since frameworks differ in what they do with remainders. False where something is
 * not known.
 */
struct epoch_length {
	int64_t batches_least, batches_most; /* of one rank; 0: not known */
	int64_t updates_least, updates_most;
};

bool epoch_length(const struct state *s, struct epoch_length *length);

#endif
