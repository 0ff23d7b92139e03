/* SPDX-License-Identifier: MIT */
/* Numbers that all comparisons of attempts need. */
#ifndef CURVE_RESUME_PARTS_H
#define CURVE_RESUME_PARTS_H

#include "curve/resume.h"

#define RESUME_CLIP 4.0 /* noises: one spike must not decide a correlation */

#define RESUME_PAIRS_MAX 512u

struct resume_pair {
	double x, a, b; /* of the reference, of the resumed attempt */
	double room;    /* by which rounding alone may make them differ */
	size_t n;       /* values of the reference that `a` is the mean of */
	double first_x; /* x is the last one of the resumed attempt, this its first one */
	double step;    /* x of a step */
};

struct resume_pairs {
	struct resume_pair list[RESUME_PAIRS_MAX];
	size_t n;
	double step; /* of all */
	bool first;  /* the first pair begins right behind the checkpoint */
	bool apart;  /* some x is in both, but covers other steps */
};

/*
 * Stretches behind x over which both attempts logged means of the same samples, as far as their
 * values lie close together: where the ends of two values differ they are added up until they do by
 * no more than a tenth of the stretch. `pace`: a step of the resumed attempt has so many times the
 * samples of one of the reference; NAN: as what each consumed says.
 */
void resume_stretches(const struct stitch *s, const struct stitch_track *t, uint32_t reference,
	uint32_t attempt, double from, double pace, struct resume_pairs *p);

/* Judge pairs over the same samples, where a step has another number of them than before. */
void resume_judge_amounts(struct resume_check *c, const struct resume_pairs *p);

/*
 * Whether the dead branch comes again if a step has 2, 3, 4 or 8 times the samples, or such a part
 * of them, where the logs do not say how many; *c is filled then. What else could make the same
 * changes over groups of steps is nothing but the same samples.
 */
bool resume_guess_batch(const struct stitch *s, const struct stitch_track *t,
	struct resume_check *c, struct resume_pairs *p);

/* The correlation of the changes of pairs [first, n); NAN of too few. */
double resume_correlation(const struct resume_pairs *p, size_t first);

int resume_no_memory(struct error *e);

/* By how much two values that were the same may differ as they were logged. */
double resume_rounding(const struct stitch_value *a, const struct stitch_value *b);

/* The standard deviation that the median size of `list`, which is reordered, stands for; NAN of
 * fewer than four. */
double resume_scale_of(double *list, size_t n);

/* A difference of at most `clip`. */
double resume_clipped(double d, double clip);

#endif
