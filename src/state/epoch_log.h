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

/*
 * Whether the epoch was set back between the last two stretches, and by how many updates. Not where
 * the length of an epoch changed: a stream without a length is one epoch of all steps that are
 * planned, which shrinks where more are.
 */
bool epoch_log_set_back(const struct epoch_log *g, double *updates);

#endif
