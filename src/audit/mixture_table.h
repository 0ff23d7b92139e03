/* SPDX-License-Identifier: MIT */
/* The surviving line as a table of samples per step and source, for the rules about the mixture. */
#ifndef AUDIT_MIXTURE_TABLE_H
#define AUDIT_MIXTURE_TABLE_H

#include "audit/case.h"

/* A stretch of the line between seams, as rows of the table. */
struct mixture_piece {
	uint32_t attempt;
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

/* Lay out the line; false where memory ran out. Release it either way. O(steps * sources). */
bool mixture_table_build(struct mixture_table *t, const struct audit_case *c);
void mixture_table_release(struct mixture_table *t);

/* What a step consumed of each source. */
const struct ledger_share *mixture_shares_of(const struct ledger *l, const struct ledger_step *s);

/* Samples of each source in rows [first, first + steps), and of all sources together. */
void mixture_add_rows(const struct mixture_table *t, size_t first, size_t steps, uint64_t *sum);
uint64_t mixture_samples(const struct mixture_table *t, size_t first, size_t steps);

/*
 * The target shares of an attempt: its own weights, else those of the sources. False where not
 * every source has one, or they sum to nothing.
 */
bool mixture_target(const struct ledger *l, uint32_t attempt, double *w);

/* Whether two attempts have one target, or both none. `x` and `y` are room for it. */
bool mixture_same_target(const struct ledger *l, uint32_t a, uint32_t b, double *x, double *y);

/* A source's name and a share, for messages; the steps of some rows as a finding's place. */
const char *mixture_source_name(const struct ledger *l, struct findings *sink, size_t source);
const char *mixture_percent(struct findings *sink, double share);
void mixture_place(struct finding *f, const struct mixture_table *t, size_t first, size_t steps);

#endif
