/* SPDX-License-Identifier: MIT */
/* Numbers that all comparisons of attempts need. */
#ifndef CURVE_RESUME_PARTS_H
#define CURVE_RESUME_PARTS_H

#include "curve/resume.h"

#define RESUME_CLIP 4.0 /* noises: one spike must not decide a correlation */

int resume_no_memory(struct error *e);

/* By how much two values that were the same may differ as they were logged. */
double resume_rounding(const struct stitch_value *a, const struct stitch_value *b);

/* The standard deviation that the median size of `list`, which is reordered, stands for; NAN of
 * fewer than four. */
double resume_scale_of(double *list, size_t n);

/* A difference of at most `clip`. */
double resume_clipped(double d, double clip);

#endif
