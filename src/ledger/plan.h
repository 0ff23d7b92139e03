/* SPDX-License-Identifier: MIT */
/*
 * What is planned of a run: the stages of its mixture, and what a run file tells where the log does
 * not say.
 */
#ifndef LEDGER_PLAN_H
#define LEDGER_PLAN_H

#include "ledger/ledger.h"
#include "state/run_file.h"

/* How many stages and weights there were before those of one plan are added to the ledger. */
struct plan_mark {
	size_t stages, weights;
};

struct plan_mark plan_begin(const struct ledger *l);

/*
 * The stages since the mark are one plan: they are put in order, and an end that is not said is
 * where the next one begins. They are dropped again where they make no sense or an earlier plan
 * counts; then what is wrong, or NULL where they are the earlier ones once more.
 */
const char *plan_settle(struct ledger *l, struct plan_mark mark);

/* The stage that is scheduled for a step, as a row of ledger.stages; LEDGER_NONE: none is. */
uint32_t plan_stage_at(const struct ledger *l, int64_t step);

/*
 * Add what a run file tells of data set, sources, stages and launches where no log said it, before
 * the ledger is finished. What contradicts the log is noted, and the log counts.
 */
void plan_tell(struct ledger *l, const struct run_file *r, struct error *e);

#endif
