/* SPDX-License-Identifier: MIT */
/*
 * What a rule is given, and what a rule is. A rule looks at states that others have read; where an
 * input that it needs is missing it says "not checked" and why, never "ok".
 */
#ifndef AUDIT_CASE_H
#define AUDIT_CASE_H

#include "audit/environment.h"
#include "audit/trail.h"
#include "base/limits.h"
#include "ledger/ledger.h"
#include "profile/profile.h"
#include "state/bytes.h"
#include "state/moments.h"
#include "state/relate.h"
#include "state/run_file.h"
#include "state/state.h"

struct lineage;
struct case_line;
struct case_curve;

struct audit_case {
	struct state *current;
	struct state *previous; /* an earlier checkpoint of the same line, or NULL */
	struct state *older;    /* the one before that, or NULL: it tells how fast things go */
	struct trail trail; /* counters of all that lead to the current one; empty where none do */
	struct state_place current_place,
		previous_place;            /* where their files are, for rules that read bytes */
	struct stream_pairs streams;       /* previous against current; empty without previous */
	struct stream_pairs older_streams; /* older against previous */
	const struct byte_totals
		*bytes;              /* what was streamed of the current one; NULL: metadata only */
	const struct run_file *run;  /* what the user told, or NULL; the states know it too */
	const struct ledger *ledger; /* the sample log, or NULL */
	const struct lineage *lineage; /* of its training attempts; NULL without a log */
	const struct case_line *lines; /* training, then validation where there is any */
	size_t line_count;
	const struct case_curve *curve; /* the loss curve, or NULL */
	const struct limits *limits;
	bool bytes_late;              /* the deadline came before all bytes of both were read */
	bool search_late;             /* or before the random streams were related */
	const struct state *original; /* what the current one should be a copy of, or NULL */
	uint64_t copied;              /* tensors that are equal in it */
	bool compared;                /* all were compared */
	const char *no_bytes;         /* why bytes is NULL, for coverage */
	const struct environment
		*environment;    /* what will resume, as far as it is known; or NULL */
	const char *no_previous; /* why there is no previous one, for coverage */
	const char *undecided;   /* why nothing can be said of a resume at all, or NULL */
	const char *unread;      /* what a rule could not read, which is no defect of it; or NULL */
	const char
		*inexact; /* what an exact resume would need and is not there: the first reason */
};

enum rule_needs {
	NEEDS_ONE = 0,
	NEEDS_PREVIOUS = 1,
	NEEDS_BYTES = 2,
	NEEDS_LEDGER = 4,    /* a sample log, and no checkpoint */
	NEEDS_ORIGINAL = 16, /* silent where no original is named */
	NEEDS_CURVE = 32,    /* loss logs, and no checkpoint */
	NEEDS_RESUME = 64,   /* beside CURVE: steps that two launches logged */
	NEEDS_ELEMENTS = 8,  /* beside BYTES: elements of tensors in files that are still there */
};

struct rule {
	const char *name;    /* "rng-continues": in coverage, policies, `explain` */
	const char *subject; /* what it looks at, in words */
	unsigned needs;      /* enum rule_needs, or-ed */
	void (*run)(struct audit_case *c, struct findings *sink, struct coverage *cover);
};

extern const struct rule *const rules[]; /* ends with NULL */
#define RULE(id) extern const struct rule rule_##id;
#include "audit/rules.def"
#undef RULE

/* Run a rule whose needs are met; else it leaves "not checked" with the reason, or, where it needs
 * elements, what it saw when the snapshot was taken. */
void audit_rule(
	const struct rule *r, struct audit_case *c, struct findings *sink, struct coverage *cover);

/* Run every rule. */
void audit_run(struct audit_case *c, struct findings *sink, struct coverage *cover);

/* Why something was not looked at where the deadline came first. */
extern const char case_late[];

/* Helpers that rules share. ----------------------------------------------------------------------
 */

/* Put a file, or a fact's or stream's file, path and rank, into a finding's place. */
void place_file(struct findings *sink, struct finding *f, struct state *s, uint32_t file);
void place_fact(struct findings *sink, struct finding *f, struct state *s, const struct fact *fact);
void place_stream(
	struct findings *sink, struct finding *f, struct state *s, const struct stream *stream);

/* A number for a message, rounded to so many significant digits. */
const char *rounded_text(struct findings *sink, double v, int digits);

/* A fact's value for a message. */
const char *fact_text(struct findings *sink, const struct fact *fact);

/* A count for a message: "12 000"; and with its unit, which takes an s but for one: "3 steps". */
const char *count_text(struct findings *sink, int64_t n);
const char *counted_text(struct findings *sink, uint64_t n, const char *unit);

/*
 * Hold the number of parameters against what someone expects of it ("policy", "run file"); T110 is
 * then an error. False where the number is not known.
 */
bool expect_parameters(
	struct findings *sink, struct state *s, int64_t least, int64_t most, const char *who);

/* "0-3, 7" from a sorted list of ranks. */
const char *ranks_text(struct findings *sink, const int32_t *ranks, size_t count);

/* The step that a finding about the current checkpoint speaks of, or PLACE_NO_STEP. */
int64_t case_step(const struct audit_case *c);

/* The largest step counter in the optimizer's state; false where it keeps none. */
bool optimizer_step(const struct state *s, double *out);

/*
 * Whether a step that went back may count inside an epoch: its name does not say otherwise, no
 * batch is saved beside it, and a later epoch is running.
 */
bool case_new_epoch(const struct audit_case *c);

/*
 * Batches of the running epoch that are behind, by what counts them, else by the updates of the
 * epoch. False where nothing says so.
 */
bool case_batches_behind(const struct state *s, double *batches);

/*
 * Steps taken from the previous to the current checkpoint, never negative: where the counters
 * started again in between, those since then. False where they are not known.
 */
bool case_steps_between(const struct audit_case *c, int64_t *steps);

/*
 * Where in its epoch a state is: updates done in the epoch, and updates in an epoch. False where
 * the epoch's length is not known.
 */
bool epoch_place(const struct state *s, double *done, double *length);

/* The last part of a checkpoint's path, for messages. */
const char *checkpoint_name(const struct state *s);

#endif
