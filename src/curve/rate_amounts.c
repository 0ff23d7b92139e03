/* SPDX-License-Identifier: MIT */
/* A learning rate that goes by samples and not by steps: with another batch it has another pace. */
#include <math.h>

#include "curve/rate.h"
#include "curve/resume_parts.h"

#define BEFORE 64u         /* rates up to the resume */
#define KNOWN (2 * BEFORE) /* with those of the dead branch */
#define LINE 8u            /* of the last ones, that a line is drawn through */
#define FIRST 20u          /* of the attempt, that are looked at */
#define LEAST 4u
#define SHARE 0.05 /* of what the rate has changed by since the resume */

struct known {
	double at[KNOWN], rate[KNOWN], room[KNOWN];
	size_t n;
};

static void add(struct known *k, const struct stitch_value *v)
{
	if (k->n == KNOWN || !isfinite(v->amount) || !isfinite(v->value) ||
		(k->n > 0 && !(v->amount > k->at[k->n - 1])))
		return;
	k->at[k->n] = v->amount;
	k->rate[k->n] = v->value;
	k->room[k->n++] = resume_rounding(v, v);
}

/* The rate after so much was consumed, between the known ones or on the line through the last of
 * them; NAN where nothing tells. */
static double rate_at(const struct known *k, double amount, double *room)
{
	size_t last = k->n - 1, from = k->n > LINE ? k->n - LINE : 0;

	*room = k->room[last];
	for (size_t i = 1; i < k->n; i++)
		if (amount <= k->at[i] && amount >= k->at[i - 1])
			return k->rate[i - 1] + (amount - k->at[i - 1]) *
							(k->rate[i] - k->rate[i - 1]) /
							(k->at[i] - k->at[i - 1]);
	if (amount < k->at[0] || last < LINE)
		return NAN;
	double slope = (k->rate[last] - k->rate[from]) / (k->at[last] - k->at[from]);
	*room *= 1 + 2 * (amount - k->at[last]) / (k->at[last] - k->at[from]);
	return k->rate[last] + slope * (amount - k->at[last]);
}

bool rate_goes_by_amounts(const struct stitch *s, uint32_t attempt, uint32_t reference, double from)
{
	const struct stitch_track *t = stitch_track_of(s, CURVE_LR);
	uint32_t parent = s->attempts.items[attempt].parent, index[BEFORE];
	struct known k = {.n = 0};
	size_t i, end, compared = 0;

	if (!t || !s->batch_changes || parent == CURVE_NONE)
		return false;
	size_t n = stitch_branch(s, t, parent, from, index, BEFORE);
	for (i = 0; i < n; i++)
		add(&k, &t->values.items[index[i]]);
	if (k.n == 0)
		return false;
	double begun = k.rate[k.n - 1];
	if (reference != CURVE_NONE) {
		stitch_values_of(t, reference, &i, &end);
		for (; i < end; i++)
			if (t->values.items[i].x > from)
				add(&k, &t->values.items[i]);
	}
	stitch_values_of(t, attempt, &i, &end);
	for (; i < end && compared < FIRST; i++) {
		const struct stitch_value *v = &t->values.items[i];
		double room, wanted = v->x > from ? rate_at(&k, v->amount, &room) : NAN;
		if (isnan(wanted))
			continue;
		room += resume_rounding(v, v) + SHARE * fabs(wanted - begun);
		if (!(fabs(v->value - wanted) <= room))
			return false;
		compared++;
	}
	return compared >= LEAST;
}
