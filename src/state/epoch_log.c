/* SPDX-License-Identifier: MIT */
#include "state/epoch_log.h"

#include <math.h>

#define EPOCH_ROUNDING 0.011 /* old releases of Transformers log the epoch with two decimals */
#define BEHIND_SHARE 0.2     /* of the updates taken */
#define LENGTH_ROOM 0.02     /* relative, of an epoch, which that rounding has wrong */

double epoch_stretch_length(const struct epoch_stretch *t)
{
	return t->last_step > t->first_step && t->last_epoch > t->first_epoch
		       ? (t->last_step - t->first_step) / (t->last_epoch - t->first_epoch)
		       : (double)NAN;
}

/* By how many updates an entry's epoch is behind what the stretch leads to; below 0: ahead. */
static double updates_behind(const struct epoch_stretch *t, double step, double epoch)
{
	return step - t->last_step - (epoch - t->last_epoch) * epoch_stretch_length(t);
}

/*
 * Whether an entry does not go on from those before it. At each end of an epoch an accumulation
 * group may be cut short, which shortens an update; the ends of the stretch have its length a
 * little wrong then.
 */
static bool goes_back(const struct epoch_stretch *t, double step, double epoch)
{
	double length = epoch_stretch_length(t), behind = updates_behind(t, step, epoch);
	double ends = fmax(0, floor(epoch) - floor(t->last_epoch)) + 1;

	if (isnan(length))
		return epoch < t->last_epoch;
	return behind > ends && behind > BEHIND_SHARE * (step - t->last_step) &&
	       behind > EPOCH_ROUNDING * length;
}

bool epoch_log_take(struct epoch_log *g, double step, double epoch)
{
	bool back = false;

	if (!isfinite(step) || !isfinite(epoch) || (g->begun && step <= g->now.last_step))
		return false;
	if (g->begun && goes_back(&g->now, step, epoch)) {
		g->before = g->now;
		g->went_back = back = true;
	}
	if (!g->begun || back)
		g->now = (struct epoch_stretch){.first_step = step, .first_epoch = epoch};
	g->begun = true;
	g->now.last_step = step;
	g->now.last_epoch = epoch;
	return back;
}

bool epoch_log_set_back(const struct epoch_log *g, double *updates)
{
	double length = epoch_stretch_length(&g->now), was = epoch_stretch_length(&g->before);

	*updates = updates_behind(&g->before, g->now.first_step, g->now.first_epoch);
	return g->went_back && fabs(length - was) <= LENGTH_ROOM * was;
}
