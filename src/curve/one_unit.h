/* SPDX-License-Identifier: MIT */
/*
 * Logs of one run of which some stand over steps and others over consumed samples or tokens
 * (DeepSpeed's monitor), brought onto what was consumed: where each file over steps counts that
 * too, its points are moved to it. Nothing is done where the files over samples hold no launch that
 * those over steps do not hold as well, as far as clocks or counts tell.
 */
#ifndef CURVE_ONE_UNIT_H
#define CURVE_ONE_UNIT_H

#include "curve/curve.h"

struct one_unit {
	struct curve_log log; /* shares all but series, points and marks with the log it is of */
	bool moved;           /* else there was nothing to do */
};

/* Release it also after errors. O(n) in the points of the log. */
int one_unit_make(struct one_unit *u, const struct curve_log *l, struct error *e);
void one_unit_release(struct one_unit *u);

#endif
