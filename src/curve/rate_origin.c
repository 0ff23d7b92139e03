/* SPDX-License-Identifier: MIT */
#include <math.h>

#include "curve/rate_parts.h"

#define SOURCES 8u        /* attempts before it that are looked at */
#define LOSS_POINTS 8u    /* whose mean is where a loss begins or ends */
#define OTHER_SHARE 0.05  /* of the rate, by which it is not the run's first one */
#define ENDS 2.0          /* intervals behind the last rate, where another one ends */
#define ANEW_PART 0.25    /* of the way that a loss has come, which one that goes on may lack */
#define SLOPES_DIFFER 1.5 /* times, beyond which one pace does not go on as the other */

static double mean_of(const struct stitch_track *t, const uint32_t *index, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += t->values.items[index[i]].value;
	return sum / (double)n;
}

/* Where the loss of an attempt begins, and where that of another one began and ended; false where
 * too little was logged. */
static bool compare_losses(
	const struct stitch *s, uint32_t attempt, uint32_t source, struct rate_origin *out)
{
	const struct stitch_track *t = stitch_track_of(s, CURVE_LOSS);
	uint32_t last[LOSS_POINTS], first[LOSS_POINTS], own[LOSS_POINTS];
	size_t i, end, n = 0, m = 0;

	if (!t)
		return false;
	size_t ends = stitch_branch(s, t, source, INFINITY, last, LOSS_POINTS);
	stitch_values_of(t, source, &i, &end);
	for (; i < end && n < LOSS_POINTS; i++)
		first[n++] = (uint32_t)i;
	stitch_values_of(t, attempt, &i, &end);
	for (; i < end && m < LOSS_POINTS; i++)
		own[m++] = (uint32_t)i;
	if (ends < LOSS_POINTS || n < LOSS_POINTS || m < LOSS_POINTS)
		return false;
	out->loss = mean_of(t, own, m);
	out->ended = mean_of(t, last, ends);
	out->began = mean_of(t, first, n);
	return true;
}

/* Whether the loss goes on: it begins no further than that part of the way from where the other one
 * ended to where that began. */
static bool loss_goes_on(const struct rate_origin *p, double part)
{
	return fabs(p->loss - p->ended) < part * fabs(p->began - p->ended);
}

/* Whether the first rates are those that another attempt began with, at the same distances, and
 * move: a constant rate is the same anywhere. */
static bool begins_alike(const struct stitch_track *t, uint32_t attempt, uint32_t source)
{
	size_t i, iend, k, kend, same = 0;
	bool moves = false;

	stitch_values_of(t, attempt, &i, &iend);
	stitch_values_of(t, source, &k, &kend);
	for (; i < iend && k < kend && same < RATES_FIRST; i++, k++, same++) {
		const struct stitch_value *a = &t->values.items[i], *b = &t->values.items[k];
		if (a->x != b->x || a->value != b->value)
			return false;
		moves = moves || (same > 0 && a->value != a[-1].value);
	}
	return same >= RATES_LEAST && moves;
}

/* The pace over the first or last few of n rates. */
static double slope_of(const struct rates *r, size_t first)
{
	size_t last = first + RATES_LEAST - 1;

	return (r->v[last] - r->v[first]) / (r->x[last] - r->x[first]);
}

/* Whether the first rates follow the last known ones, where a step in between is like those on
 * either side. */
static bool follows(const struct rates *known, const struct rates *again)
{
	size_t last = known->n - 1;
	double step = known->x[last] - known->x[last - 1];
	double pace = fmax(rates_steepest(known, last - RATES_LEAST, RATES_LEAST + 1),
		rates_steepest(again, 0, RATES_LEAST));
	double before = slope_of(known, known->n - RATES_LEAST), after = slope_of(again, 0);
	double room = known->room[last] + again->room[0];

	return before * after > 0 && fabs(after / before) < SLOPES_DIFFER &&
	       fabs(before / after) < SLOPES_DIFFER &&
	       fabs(again->v[0] - known->v[last]) <= RATES_PACE * pace * step + room;
}

/* Find the first rates on a schedule as another attempt logged it. */
static bool find_on(const struct rates *known, const struct rates *again, struct rate_origin *out)
{
	struct looked_up u[RATES_FIRST];
	size_t n = 0, most = again->n < RATES_FIRST ? again->n : RATES_FIRST;
	double low, high, direction = again->v[most - 1] - again->v[0];

	if (fabs(direction) <= again->room[0] + again->room[most - 1])
		return false;
	direction = direction > 0 ? 1 : -1;
	while (n < most && rates_look_up(known, again->v[n], again->room[n], direction, &u[n]))
		n++;
	size_t last = known->n - 1;
	double step = known->x[last] - known->x[last - 1];
	out->about = n < RATES_LEAST || !rates_common_lag(again, u, n, &low, &high) ||
		     !((high - low) / 2 <= ENDS * step);
	if (out->about) {
		out->x = known->x[last];
		return follows(known, again);
	}
	/* The count that it has is behind the one that it should have, but no further than to where
	 * the other one ended. */
	out->x = -(low + high) / 2;
	return high < 0 && out->x > (high - low) / 2 &&
	       out->x - (high - low) / 2 <= known->x[last] + ENDS * step;
}

void rate_find_origin(const struct stitch *s, uint32_t attempt, struct rate_origin *out)
{
	const struct stitch_track *t = stitch_track_of(s, CURVE_LR);
	struct rate_digits digits = {.attempt = CURVE_NONE};
	struct rates again = {.n = 0};
	size_t i, end;

	*out = (struct rate_origin){.x = NAN};
	if (!t || attempt == 0 || s->attempts.items[attempt].parent != CURVE_NONE ||
		s->attempts.items[attempt].from > 0)
		return;
	stitch_values_of(t, attempt, &i, &end);
	const struct stitch_value *own = t->values.items + i;
	for (; i < end; i++)
		rates_add(&again, t, i, &digits);
	if (again.n < RATES_LEAST)
		return;
	for (uint32_t b = attempt; b-- > 0 && attempt - b <= SOURCES && !out->found;) {
		uint32_t index[RATES_MOST / 2];
		struct rates known = {.n = 0};
		size_t n = stitch_branch(s, t, b, INFINITY, index, sizeof index / sizeof *index);
		stitch_values_of(t, b, &i, &end);
		if (n <= RATES_LEAST || i == end || !rates_same_series(s, &t->values.items[i], own))
			continue;
		for (size_t k = 0; k < n; k++)
			rates_add(&known, t, index[k], &digits);
		out->source = b;
		out->first = again.v[0];
		out->fresh = t->values.items[i].value;
		if (known.n <= RATES_LEAST || !compare_losses(s, attempt, b, out))
			continue;
		out->anew = begins_alike(t, attempt, b) && loss_goes_on(out, ANEW_PART);
		out->found = out->anew ||
			     (fabs(out->first - out->fresh) > OTHER_SHARE * out->fresh &&
				     loss_goes_on(out, 0.5) && find_on(&known, &again, out));
	}
}
