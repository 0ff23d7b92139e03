/* SPDX-License-Identifier: MIT */
/* What the rules about consumed data share: words for their messages, and what explains what. */
#ifndef AUDIT_DATA_H
#define AUDIT_DATA_H

#include "audit/seams.h"

/* "30 %" */
const char *data_percent(struct findings *sink, double part, double whole);

/* "steps 481–780" */
const char *data_steps(struct findings *sink, int64_t first, int64_t last);

/* The steps that hold some samples of the line. */
const char *data_steps_of_line(
	struct findings *sink, const struct lineage *g, uint64_t at, uint64_t rows);

/* "attempt 2" */
const char *data_attempt(struct findings *sink, const struct ledger *l, uint32_t attempt);

/* A finding's steps are those that hold these samples of the line. */
void data_place(struct finding *f, const struct lineage *g, uint64_t at, uint64_t rows);

/*
 * Samples that a finished epoch lacks beyond what is dropped by design, was declared to be skipped,
 * and is explained by what a resume in it consumed instead. 0 too where that cannot be known.
 */
uint64_t epoch_hole(const struct case_line *c, size_t epoch);

/*
 * Whether ranks of a part of the line consume the same samples beyond what chance explains; how
 * many samples through `expected` (or NULL) chance does.
 */
bool data_ranks_overlap(const struct case_line *c, size_t part, double *expected);

#endif
