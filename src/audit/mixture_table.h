/* SPDX-License-Identifier: MIT */
/* The surviving line as a table of samples per step and source, for the rules about the mixture. */
#ifndef AUDIT_MIXTURE_TABLE_H
#define AUDIT_MIXTURE_TABLE_H

#include "audit/case.h"

/* A point of total variation is worth a warning; five, or 0.1 % of all samples in the wrong place,
 * an error. */
#define MIXTURE_NOTICEABLE 0.01
#define MIXTURE_SERIOUS 0.05
#define MIXTURE_SERIOUS_SHARE 0.001
#define MIXTURE_LOG_ALPHA (-13.8) /* one in a million, for every seam or stretch */

/* A stretch of the line between seams and changes of the stage, as rows of the table. */
struct mixture_piece {
	uint32_t attempt;
	bool resumed;       /* it begins at a seam */
	uint32_t scheduled; /* the stage by plan, a row of ledger.stages; LEDGER_NONE: none */
	uint32_t stage; /* the one that its samples come from; as scheduled where both would do */
	size_t first, steps;
};

struct mixture_table {
	const struct ledger *ledger;
	size_t k, steps;
	uint64_t *n; /* steps * k: samples of each source */
	const struct ledger_step **step;
	uint64_t *total; /* k */
	uint64_t samples, without_source;
	ARRAY(struct mixture_piece) pieces;
};

/* Why there is no mixture to look at, or NULL. */
const char *mixture_absent(const struct audit_case *c);

/*
 * Lay out the line, and find out which stage is in use where stages are planned; false where memory
 * ran out. Release it either way. O(steps * sources * (1 + stages)).
 */
bool mixture_table_build(struct mixture_table *t, const struct audit_case *c);
void mixture_table_release(struct mixture_table *t);

/* What a step consumed of each source. */
const struct ledger_share *mixture_shares_of(const struct ledger *l, const struct ledger_step *s);

/*
 * Overdispersion of a stretch: the largest over windows of 1, 2, 4, … steps while at least 16 of
 * them are left, since clumps show at their own size only. `room` is for steps * k counts.
 */
double mixture_overdispersion_of(
	const struct mixture_table *t, size_t first, size_t steps, uint64_t *room);

/* The same of what is usual: of the later halves of pieces, which no resume disturbs. */
double mixture_usual_overdispersion(const struct mixture_table *t, uint64_t *room);

/* The weights of a stage as shares of all sources. */
void mixture_stage_shares(const struct ledger *l, uint32_t stage, double *w);

/* The target shares of a piece: of its stage, else of its attempt. False where they are not known.
 */
bool mixture_piece_target(const struct mixture_table *t, const struct mixture_piece *p, double *w);

/* error or warning, by how far shares are off over how many of the line's samples. */
enum severity mixture_severity(const struct mixture_table *t, double distance, uint64_t samples);

/* Samples of each source in rows [first, first + steps), and of all sources together. */
void mixture_add_rows(const struct mixture_table *t, size_t first, size_t steps, uint64_t *sum);
uint64_t mixture_samples(const struct mixture_table *t, size_t first, size_t steps);

/*
 * The target shares of an attempt: its own weights, else those of the sources. False where not
 * every source has one, or they sum to nothing.
 */
bool mixture_target(const struct ledger *l, uint32_t attempt, double *w);

/* Whether two pieces have one target, or both none. `x` and `y` are room for it. */
bool mixture_same_target(const struct mixture_table *t, const struct mixture_piece *a,
	const struct mixture_piece *b, double *x, double *y);

/* A source's name and a share, for messages; the steps of some rows as a finding's place. */
const char *mixture_source_name(const struct ledger *l, struct findings *sink, size_t source);
const char *mixture_percent(struct findings *sink, double share);
void mixture_place(struct finding *f, const struct mixture_table *t, size_t first, size_t steps);

#endif
