/* SPDX-License-Identifier: MIT */
/*
 * Spikes, shifts and divergences of a curve.
 *
 * Each point is held against a baseline: the line through the medians of the older and the newer
 * half of the last SPIKE_WINDOW accepted points, so that a curve that falls is no event; the scale
 * is 1.4826 times the median distance of their residuals, and never less than the resolution of
 * what was logged. What lies in an event is not accepted, so that a spike does not hide the next.
 *
 * Costs O(log W) a point.
 */
#ifndef CURVE_SPIKES_H
#define CURVE_SPIKES_H

#include "curve/stitch.h"

#define SPIKE_WINDOW 256u
#define SPIKE_LEARN 48u      /* points without which there is no baseline */
#define SPIKE_ONE 6.0        /* scales by which one point is an onset, … */
#define SPIKE_TWO 4.0        /* … and two of three */
#define SPIKE_BACK 2.0       /* within so many it is back, … */
#define SPIKE_BACK_POINTS 5u /* … for so many points in a row */
#define SPIKE_FAST_STEPS 200.0
#define SPIKE_SLOW_STEPS 3000.0
#define SPIKE_AFTER 512u /* points whose median is the level after an event */

enum spike_class {
	SPIKE_FAST,
	SPIKE_SLOW,
	SPIKE_PARTIAL,    /* did not come back to the trend */
	SPIKE_OPEN,       /* not back at the end of the log, which is too soon to say more */
	SPIKE_DIVERGED,   /* stays up, or becomes NaN */
	SPIKE_DRIFT,      /* rises without a spike */
	SPIKE_SHIFT,      /* another level without overshoot */
	SPIKE_DROP,       /* suddenly lower */
	SPIKE_NOT_FINITE, /* NaN or Inf */
	SPIKE_CLASSES
};

/* What happened near the onset. */
enum spike_place {
	SPIKE_ANYWHERE, /* nothing that the logs know of: the model's or the data's own */
	SPIKE_AT_RESUME,
	SPIKE_AT_WARMUP_END,
	SPIKE_AT_LR_CHANGE,
	SPIKE_AT_SCALER,
	SPIKE_AT_EPOCH,
};

struct spike {
	uint8_t class; /* enum spike_class */
	uint8_t place; /* enum spike_place */
	bool dead;     /* in points that were rolled back */
	bool rising;   /* SPIKE_OPEN: highest at the curve's last point */
	uint32_t attempt;
	double x;            /* onset */
	double peak_x, peak; /* NAN for classes without */
	double end_x;        /* the first point that is back; NAN: never */
	double baseline;     /* at the onset */
	double scale;        /* at the onset */
	double level;        /* after it: the median of what follows; NAN: too little */
	size_t points;       /* in it */
	double lead;         /* steps by which the gradient norm was first; NAN: not known */
	double place_x;      /* of what is near */
	size_t alike; /* SPIKE_AT_RESUME: spikes as high elsewhere, where they are so many that this
			 one is none of the resume's doing; else 0 */
};

/* A curve as arrays. */
struct spike_curve {
	const double *x, *v;
	const float *resolution; /* or NULL */
	const float *noise;      /* of each point in that of the others, or NULL: all alike */
	const uint32_t *attempt; /* or NULL */
	size_t n;
	bool down;   /* look for drops too */
	double step; /* x of a step; 0: 1 */
};

struct spikes {
	ARRAY(struct spike) list; /* by x */
	double coarse;   /* values come in steps of this, which is more than their noise; NAN */
	double interval; /* steps that one point covers, where more than one; else 1 */
	size_t odd;      /* single points far above that were back at once: odd batches */
	size_t judged;   /* points that had a baseline */
	size_t points;
};

/* Find the events in one curve. `interval`: usual distance of points. */
int spikes_find(struct spikes *out, const struct spike_curve *c, double interval, struct error *e);

/*
 * Find the events of the loss of a stitch, on the line and in its dead parts, and place them: what
 * else happened there, and whether the gradient norm was first.
 */
int spikes_of(struct spikes *out, const struct stitch *s, struct error *e);
void spikes_release(struct spikes *out);

const char *spike_class_name(enum spike_class class); /* "fast", "not recovered", … */

/* Where the first rise of the learning rate ends; NAN where there is none. */
double spikes_warmup_end(const struct stitch *s);

/*
 * The rule of OLMo-core's training code: a point is a spike that lies more than 6 standard
 * deviations (of the population) above the mean of the 128 before it. Those include earlier spikes,
 * there is no verdict before there are 128, nor where they deviate by less than 1e-10.
 */
#define OLMO_WINDOW 128u
#define OLMO_DEVIATIONS 6.0
#define OLMO_SCORE 10000u /* flags whose mean is the running score */

struct olmo {
	size_t points, spikes;
	double total; /* share of all points; NAN where there are fewer than a window */
	double score; /* share of the last OLMO_SCORE; NAN where there are fewer */
};

/*
 * Flag the steps of a run: one is a spike where its loss or its gradient norm is. Either array may
 * be NULL, and `has_grad_norm` (or NULL: all have) says which steps logged one. `flags` (or NULL)
 * has room for n. O(n W).
 */
struct olmo olmo_score(const double *loss, const double *grad_norm, const bool *has_grad_norm,
	size_t n, bool *flags);

#endif
