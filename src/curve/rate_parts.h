/* SPDX-License-Identifier: MIT */
/* A schedule as it was logged: rates in order, what they give for a step, and which step they give.
 */
#ifndef CURVE_RATE_PARTS_H
#define CURVE_RATE_PARTS_H

#include "curve/rate.h"

#define RATES_MOST 512u
#define RATES_FIRST 20u /* of an attempt, that are compared */
#define RATES_LEAST 5u  /* that are looked up, to say anything */
#define RATES_LINE 8u   /* on a line, by which it is drawn out */
#define RATES_LAG                                                                                  \
	2.0            /* steps of a lag: one comes of logging before or after the schedule moves  \
			*/
#define RATES_PACE 1.5 /* times the steepest pace, that a step to the next rate may go */

/* Rates in order, with the room that rounding leaves each. */
struct rates {
	double x[RATES_MOST], v[RATES_MOST], room[RATES_MOST];
	size_t n;
};

/* With how many digits the rates of an attempt were logged. Writers leave out zeros at the end, so
 * one value does not tell. Begin with .attempt = CURVE_NONE. */
struct rate_digits {
	uint32_t attempt;
	double decimals;    /* the finest unit of any */
	double significant; /* the most of any */
};

/* The steps that a rate may belong to; `high` is infinite where nothing tells. */
struct looked_up {
	double low, high;
};

/* Add value i of a track, unless it is no rate, no later than the last one, or one too many. */
void rates_add(struct rates *r, const struct stitch_track *t, size_t i, struct rate_digits *digits);

/* Whether two values are of series of one name: groups of parameters have rates of their own. */
bool rates_same_series(
	const struct stitch *s, const struct stitch_value *a, const struct stitch_value *b);

/* By how much the rate bends around point i. */
double rates_bend(const struct rates *r, size_t i);

/* Whether the last points lie on a line, and its slope. */
bool rates_on_a_line(const struct rates *r, double *slope);

/* The rate at x, and how sure that is; NAN where nothing tells. */
double rates_at(const struct rates *r, double x, double *room);

/*
 * The steps of the rate v on the newest stretch of the known rates that goes one way, `direction`;
 * behind its end on the line that it ends with. Rates that were logged with few digits stand still
 * for many steps, and any of those may be meant. False where it is on neither.
 */
bool rates_look_up(
	const struct rates *r, double v, double v_room, double direction, struct looked_up *out);

/* The distances of `again` from the steps that its first n rates belong to, which all of them
 * allow. */
bool rates_common_lag(
	const struct rates *again, const struct looked_up *u, size_t n, double *low, double *high);

/* The steepest pace from point `first` on, over n points. */
double rates_steepest(const struct rates *r, size_t first, size_t n);

#endif
