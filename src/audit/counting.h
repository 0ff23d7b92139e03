/* SPDX-License-Identifier: MIT */
/* In what unit one counter counts beside another: a script's step may count micro-batches or
 * processes where the optimizer counts updates. */
#ifndef AUDIT_COUNTING_H
#define AUDIT_COUNTING_H

#include "state/state.h"

/*
 * Whether `fine` counts `factor` for each one of `coarse`. The last of them need not be complete,
 * nor the last one of each of `epochs`.
 */
bool counting_by(double fine, double coarse, double factor, double epochs);

/* Whether the two counts differ by what a script may count instead of updates: micro-batches or
 * processes. */
bool counting_known(const struct state *s, double fine, double coarse);

/*
 * A step in a unit that nothing names: micro-batches under an accumulation that is not saved. One
 * whole factor must explain the counts of this checkpoint, and those of the previous one where
 * there is one (`had`).
 */
bool counting_micro_batches(
	double step, double updates, bool had, double step_before, double updates_before);

#endif
