/* SPDX-License-Identifier: MIT */
/*
 * What a model has seen by a checkpoint, as one digest: the sum over the samples of all steps that
 * led to it, attempt by attempt. Two runs with equal digests have seen the same samples equally
 * often, whatever their ranks, batches and order. No sample is read: steps have sums.
 */
#ifndef LEDGER_SEEN_H
#define LEDGER_SEEN_H

#include "ledger/lineage.h"

struct seen {
	uint64_t samples, sum[2]; /* as ledger_step.sum */
	bool gaps;                /* the log lacks steps among these */
};

struct seen_table {
	const struct lineage *lineage;
	struct seen *steps;  /* one per step of the ledger: since its attempt's start, with it */
	struct seen *before; /* one per attempt: by the checkpoint that it resumed from */
	bool *known;         /* one per attempt: that is known, from step 0 on */
};

/* O(steps + attempts). The lineage must outlive it. False when memory runs out. */
bool seen_build(struct seen_table *t, const struct lineage *g);
void seen_release(struct seen_table *t);

/* By the end of an attempt's step. False where the log does not hold all that led to it. */
bool seen_by(const struct seen_table *t, uint32_t attempt, int64_t step, struct seen *out);

#endif
