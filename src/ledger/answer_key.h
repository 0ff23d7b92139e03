/* SPDX-License-Identifier: MIT */
/*
 * What shows how a resume should go on: the steps that the interrupted attempt, a sister or a
 * reference run took after the same checkpoint. Their digests prove or refute a resume without
 * reading samples.
 */
#ifndef LEDGER_ANSWER_KEY_H
#define LEDGER_ANSWER_KEY_H

#include "ledger/lineage.h"

enum key_origin {
	KEY_NONE,
	KEY_TAIL,      /* the dead part of the attempt that was interrupted */
	KEY_SISTER,    /* another attempt that resumed from the same step and is dead now */
	KEY_REFERENCE, /* an uninterrupted run */
};

/* What a right resume would consume. */
struct answer_key {
	uint8_t origin; /* enum key_origin */
	uint32_t attempt;
	uint32_t first, steps; /* rows in ledger.steps */
	uint64_t row, rows;    /* samples in the ledger */
};

/* A stretch held against an answer key from their first steps on. */
struct key_match {
	uint32_t steps;   /* that could be compared */
	uint32_t equal;   /* of the first ones, equal sample by sample, each on its rank */
	uint32_t same;    /* of the first ones, with the same samples */
	uint32_t empty;   /* of those, without any sample: they prove nothing */
	uint64_t samples; /* in the equal or same ones */
	bool by_samples;  /* the batch differs: sums were compared at common numbers of samples */
	bool differs;     /* a difference was found, and it is in: */
	int64_t step;     /* the step of the attempt that differs first */
	uint32_t at;      /* its row in ledger.steps */
	uint32_t key_at;  /* the row of the key's */
};

/* The attempts from the first to the last one that is a reference: most logs have none. */
struct answer_references {
	uint32_t first, end;
};

struct answer_references answer_references(const struct ledger *l);

/* The answer key of an attempt's resume: the longest of the best kind. */
struct answer_key answer_find(
	const struct lineage *g, uint32_t attempt, const struct answer_references *references);

/* Hold steps against those of an answer key, of this ledger or of another. */
struct key_match answer_match(const struct ledger_step *own, uint32_t steps,
	const struct ledger_step *key, uint32_t key_steps);

#endif
