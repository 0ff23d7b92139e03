/* SPDX-License-Identifier: MIT */
/*
 * What the counters of the checkpoints of one line say one after the other: where on the way a
 * counter started again, and since when it lags behind the step. Of each checkpoint only a few
 * numbers are kept, which a look at its metadata gives, so a line of any length costs 56 B a
 * checkpoint and one pass.
 */
#ifndef AUDIT_TRAIL_H
#define AUDIT_TRAIL_H

#include "state/state.h"

enum trail_counter {
	TRAIL_UPDATES,  /* the optimizer's own count */
	TRAIL_SCHEDULE, /* the schedule's position */
	TRAIL_COUNTERS
};

struct trail_point {
	const char *name; /* of the checkpoint, for messages; borrowed */
	double step;      /* NAN: not known, as the others */
	double epoch;     /* which orders those whose step is not known */
	double counter[TRAIL_COUNTERS];
	uint64_t setup[TRAIL_COUNTERS]; /* digests of the settings beside each: other ones are
					   another optimizer or schedule, made on purpose */
};

/* The checkpoints that lead to the judged one, which is the last. */
struct trail {
	const struct trail_point *points; /* by step */
	size_t count;
};

struct trail_point trail_point_of(const struct state *s, const char *name);

/* Where a counter started again. */
struct trail_restart {
	bool found;
	bool newest;      /* between the last two points: others see that as well */
	bool mended;      /* at the last point it is where the step is again */
	bool replaced;    /* with other settings: it was made anew on purpose */
	size_t sound;     /* the newest point before the first such place */
	size_t last_good; /* the point before the newest one; */
	size_t first_bad; /* and the first one behind it */
	double zero;      /* the step at which it counted from zero; NAN: it counts no steps */
	size_t earlier;   /* how often it had started again before */
};

/*
 * The newest place where a counter started again: it went back though the step went on, or, where
 * it counted steps, it counts those since the point before. O(points).
 */
struct trail_restart trail_find_restart(const struct trail *t, enum trail_counter which);

/* How far behind the step a counter is that moves with it one for one. */
struct trail_lag {
	bool known; /* it moved one for one up to the last point, from the point before at least */
	double steps; /* negative: it is ahead */
	size_t since; /* the first point of those with this lag */
};

struct trail_lag trail_find_lag(const struct trail *t, enum trail_counter which);

#endif
