/* SPDX-License-Identifier: MIT */
/*
 * Steps and epochs as a log gives them, entry by entry: how long an epoch is, and where the epoch
 * was set back though the steps went on, which is a resume that read the epoch's data again.
 */
#ifndef STATE_EPOCH_LOG_H
#define STATE_EPOCH_LOG_H

#include <stdbool.h>

/* Entries over which step and epoch grow together. */
struct epoch_stretch {
	double first_step, last_step;
	double first_epoch, last_epoch;
};

/* All zero before the first entry. */
struct epoch_log {
	struct epoch_stretch now, before; /* the running one, and the one that ended last */
	bool begun;
	bool went_back; /* one ended because the epoch was set back */
};

/* Take an entry; true where the epoch was set back before it. A step that does not grow is no
 * entry.
 */
bool epoch_log_take(struct epoch_log *g, double step, double epoch);

/* Updates of an epoch, by the ends of a stretch; NAN where it is one entry. */
double epoch_stretch_length(const struct epoch_stretch *t);

/* By how many updates an entry's epoch is behind what the stretch leads to; below 0: ahead. */
double epoch_stretch_behind(const struct epoch_stretch *t, double step, double epoch);

#endif
