/* SPDX-License-Identifier: MIT */
/*
 * Which attempt continues which, from which step: the surviving line, which is what the final
 * weights have seen, and the dead parts, which were rolled back. Attempts of one kind make one
 * lineage: validation goes on over restarts as training does; rehearsals and references stand
 * alone.
 *
 * Parents come, in this order, from what the user tells, from what the log says, and from steps
 * that go back. Where two attempts reached the step, the checkpoint's path and digest decide, else
 * the newest is taken and the others are counted as rivals, so that the doubt can be said.
 */
#ifndef LEDGER_LINEAGE_H
#define LEDGER_LINEAGE_H

#include "ledger/ledger.h"

enum lineage_how {
	LINEAGE_COUNTED, /* worked out from the step counter */
	LINEAGE_SAID,    /* the log says from which step it resumed */
	LINEAGE_TOLD,    /* the user does (--resume) */
};

/* One attempt of the kind; others of the ledger have `member` false and nothing else. */
struct lineage_attempt {
	bool member;
	uint8_t how;       /* enum lineage_how, of from_step */
	uint32_t parent;   /* index in attempts, or LEDGER_NONE: a fresh start, or begun before the
			      log */
	int64_t from_step; /* step of the checkpoint it resumed from; LEDGER_NO_STEP: not known */
	uint32_t rivals;   /* other attempts that reached from_step and might be the parent too */
	/* Steps that the log does not hold between what the parent consumed up to from_step, or the
	 * run's beginning, and the attempt's own first one; which ones. */
	int64_t gap, gap_first, gap_last;
	uint32_t killed_by; /* the attempt whose rollback made its tail dead; LEDGER_NONE: none */
	uint32_t alive;     /* of its steps, how many survive: always the first ones */
	uint64_t alive_rows;
};

/* A stretch of one attempt's steps. */
struct line_part {
	uint32_t attempt;      /* index in ledger.attempts */
	uint32_t first, steps; /* rows in ledger.steps */
	uint64_t row, rows;    /* samples in the ledger */
	uint64_t at;           /* samples of the line before this part; for dead parts: of the dead
				  parts before it */
	int64_t first_step, last_step;
};

/* Steps of the surviving line that the log does not hold: nobody knows what they consumed. */
struct line_gap {
	uint64_t at;         /* samples of the line before it */
	int64_t first, last; /* steps */
	uint64_t steps;
	uint64_t samples; /* about as many as they consumed, by the steps on their side */
};

struct lineage {
	const struct ledger *ledger;
	uint8_t kind;                           /* enum attempt_kind */
	ARRAY(struct lineage_attempt) attempts; /* one per attempt of the ledger */
	ARRAY(struct line_part) line;           /* the surviving line, in its order */
	ARRAY(struct line_part) dead;           /* by attempt */
	ARRAY(struct line_gap) gaps;            /* of the line, in its order */
	uint64_t rows, dead_rows;               /* samples of either */
	uint64_t steps, dead_steps;
	/* In all gaps; of samples, about as many. Some of these steps are logged, without samples.
	 */
	uint64_t missing_steps, missing_samples, unsaid_steps;
	uint32_t members; /* attempts of the kind */
	uint32_t last;    /* index of the attempt at the line's end, or
			     LEDGER_NONE */
};

/* What the user tells with --resume ATTEMPT:STEP. */
struct lineage_told {
	int64_t attempt, step;
};

/*
 * Work out the lineage of one kind of attempt. The ledger must outlive it. O(n log n) in attempts.
 * RP_E_ARGUMENT where the user tells of an attempt that is not there.
 */
int lineage_build(struct lineage *g, const struct ledger *l, enum attempt_kind kind,
	const struct lineage_told *told, size_t count, struct error *e);

/*
 * The same with the line that ends in attempt `tip` rather than in the last one: what a rehearsal
 * would make of it.
 */
int lineage_build_to(struct lineage *g, const struct ledger *l, enum attempt_kind kind,
	uint32_t tip, const struct lineage_told *told, size_t count, struct error *e);
void lineage_release(struct lineage *g);

/* The line, or all dead parts one after the other, as samples. They borrow the lineage. */
struct sample_source lineage_line(const struct lineage *g);
struct sample_source lineage_dead(const struct lineage *g);

/* Index of the part that holds sample `at` of the line. */
size_t lineage_part_at(const struct lineage *g, uint64_t at);

/*
 * How far a step is from the next, as the log counts them: some hold every tenth only. Taken from
 * the first of `n` steps; INT64_MAX where there are not two. Steps that lie further apart have
 * others between them that the log does not hold.
 */
int64_t steps_distance(const struct ledger_step *steps, uint32_t n);

/* Of `n` steps, how many of the first ones follow one another without a hole. */
uint32_t steps_unbroken(const struct ledger_step *steps, uint32_t n);

/* Samples of the line before the first step after `step`, and whether the line reached it. */
uint64_t lineage_consumed(const struct lineage *g, int64_t step, bool *reached);

/* Where a checkpoint stands. */
struct lineage_branch {
	uint32_t attempt; /* that wrote it, or LEDGER_NONE */
	bool alive;       /* it lies on the surviving line */
	uint32_t rivals;  /* other attempts that reached its step */
};

/*
 * Which branch a checkpoint of that step belongs to: by its digest or path where the log names it,
 * else the newest attempt that reached the step. `path` and `digest` may be NULL.
 */
struct lineage_branch lineage_branch_of(
	const struct lineage *g, int64_t step, const char *path, const char *digest);

/* The first row in ledger.steps of an attempt whose step is greater than `step`. */
uint32_t ledger_step_after(const struct ledger *l, const struct ledger_attempt *a, int64_t step);

/* The row in ledger.steps that holds a sample of the ledger. */
uint32_t ledger_step_of_row(const struct ledger *l, uint64_t row);

#endif
