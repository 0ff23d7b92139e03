/* SPDX-License-Identifier: MIT */
#include "audit/counting.h"

#include <math.h>

#define FACTOR_MAX 1024 /* largest accumulation that is tried */

bool counting_by(double fine, double coarse, double factor, double epochs)
{
	double more = coarse - fine / factor;

	return factor > 0 && coarse > 0 && more > -1 && more < 1 + (factor > 1 ? epochs : 0);
}

bool counting_known(const struct state *s, double fine, double coarse)
{
	int64_t v;
	double epoch = 0;

	state_real(s, FACT_EPOCH, &epoch);
	if (state_int(s, FACT_ACCUMULATION, &v) &&
		counting_by(fine, coarse, (double)v, epoch > 0 ? ceil(epoch) : 0))
		return true;
	return state_world(s) > 1 && counting_by(fine, coarse, state_world(s), 0);
}

bool counting_micro_batches(
	double step, double updates, bool had, double step_before, double updates_before)
{
	/* Or one that changed: so it was before, and so it went on. */
	if (had && updates_before > 0 && step_before >= 1.5 * updates_before &&
		step - step_before >= 1.5 * (updates - updates_before) && updates > updates_before)
		return true;

	double least = ceil(step / (updates + 1)),
	       most = floor(step / (updates > 1 ? updates - 1 : 1));

	for (double k = least > 2 ? least : 2; k <= most && k <= FACTOR_MAX; k++)
		if (counting_by(step, updates, k, 0) &&
			(!had || updates_before <= 0 ||
				counting_by(step_before, updates_before, k, 0)))
			return true;
	return false;
}
