/* SPDX-License-Identifier: MIT */
/*
 * From logs alone: did an attempt go on as the interrupted one did? Where both logged the same
 * steps after the checkpoint, the first values must be equal, tightly for the first step and less
 * so for later ones, since rounding grows. Whether the batches are the same shows in the
 * step-to-step changes even where the values differ.
 *
 * And: does what it logged repeat what was logged at other steps, and does it lie below the trend
 * for a while, as replayed data makes it?
 */
#ifndef CURVE_RESUME_H
#define CURVE_RESUME_H

#include "base/strbuf.h"
#include "curve/stitch.h"

/* The tolerance: so much of the value for each step since the checkpoint, and never more than the
 * most; ten times that for the gradient norm. */
#define RESUME_PER_STEP 1e-4
#define RESUME_MOST 5e-3

enum resume_outcome {
	RESUME_ALONE,        /* nothing was logged of the same steps */
	RESUME_INTERVALS,    /* the logged intervals do not coincide */
	RESUME_BATCH,        /* a step has another number of samples, and which is not known */
	RESUME_COARSE,       /* the values are too few, too smooth or too coarse to tell */
	RESUME_MATCHES,      /* the first steps match */
	RESUME_SAME_BATCHES, /* the values differ, their changes do not: the same batches */
	RESUME_DIFFERS,      /* they do not match */
};

/* One quantity at the steps that both have. */
struct resume_series {
	size_t pairs;   /* compared */
	size_t matched; /* of the first ones, how many lie within the tolerance */
	double first_x; /* of the pairs */
	double last_x;  /* of the matching ones, NAN without any */
	double worst;   /* the largest difference of those */
	/* The first one that does not match; NAN where all do. */
	double x, observed, expected, tolerance;
};

struct resume_check {
	uint32_t attempt;   /* that resumed */
	uint32_t reference; /* that it is held against, or CURVE_NONE */
	double from;
	uint8_t outcome; /* enum resume_outcome */
	bool first;      /* the first pair is the first step (or interval) after the checkpoint */
	bool weak;       /* RESUME_DIFFERS by less than the noise of the curve, in few points */
	bool updates;    /* RESUME_DIFFERS only behind the first step, and to one side */
	struct resume_series loss, grad_norm, lr;
	double offset;      /* mean of the differences of the loss */
	double correlation; /* of the step-to-step changes; NAN: too few */
	double noise;       /* how much two other batches usually differ; NAN: not known */
	double diverges;    /* from this x on the changes are no longer the same; NAN */
	/* Where a step has another number of samples than before: what both logged is compared over
	 * stretches of the same samples, which the pairs then are. */
	bool by_amount;
	bool guessed; /* the logs do not say it: `after` is 2 where a step has twice the samples */
	double before, after;      /* samples or tokens of a step, where they are known; NAN */
	double expected_by_chance; /* what the root mean square of their differences would be over
				      other samples */
	double rms;                /* and what it is */
	double chance;             /* that it is so small over other samples */
};

/* What an attempt repeats. */
struct resume_repeat {
	bool found;
	bool equal;             /* the values themselves are equal, not only their changes */
	bool renumbered;        /* and so are the learning rates: only the counter differs */
	double lag;             /* the attempt's x less that of the source */
	double first_x, last_x; /* of the attempt */
	double source_x;        /* where the source begins … */
	double source_last_x;   /* … and ends */
	uint32_t source;        /* attempt */
	double correlation;
	size_t points;
};

/* A stretch after a resume over which the loss is lower than the trend on both sides. */
struct resume_low {
	bool found;
	double last_x;   /* its last point */
	double depth;    /* below the trend */
	double down, up; /* of the two edges, in standard errors */
	double noise;    /* of a point */
	size_t points;
};

/* Check every attempt that went on from a step > 0. `list` has room for all attempts; the number of
 * checks is returned, SIZE_MAX where memory runs out. */
size_t resume_check_all(const struct stitch *s, struct resume_check *list);

/* Look for the first values of an attempt at other steps of earlier attempts. O(64 n). */
int resume_find_repeat(
	const struct stitch *s, uint32_t attempt, struct resume_repeat *out, struct error *e);

/*
 * Look for a low stretch behind a resume at x, in the values of an attempt. Where `until` is known
 * (from the sample log) the stretch ends there within an interval, else at its sharpest edge.
 */
int resume_find_low(const struct stitch *s, uint32_t attempt, double from, double until,
	struct resume_low *out, struct error *e);

/* The same for a stretch that is higher than the trend; `depth` is its height. */
int resume_find_high(const struct stitch *s, uint32_t attempt, double from, struct resume_low *out,
	struct error *e);

/* A batch that ramps up anew, as it did when the run began. */
struct resume_ramp {
	bool found;
	bool rises;           /* it is seen to; else the log is too short for that */
	double batch, before; /* samples of a step behind the resume, and before it */
	double last_x;        /* the last step with that batch */
};

void resume_find_ramp(const struct stitch *s, uint32_t attempt, struct resume_ramp *out);

/* The settings that the logs give for an attempt and, with another value, for its parent: "seed 42
 * -> 43"; those that only say how many samples a step has are left out unless `batch`. False where
 * there are none. */
bool resume_changes(const struct stitch *s, uint32_t attempt, bool batch, struct strbuf *out);

#endif
