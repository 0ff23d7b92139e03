/* SPDX-License-Identifier: MIT */
/* `reprise compare` of two sample logs: which steps consumed the same samples, and where not. */
#ifndef API_COMPARE_RUNS_H
#define API_COMPARE_RUNS_H

#include "api/verify.h"

/*
 * Hold the surviving line of `later` against that of `earlier`, step by step. `control` is the log
 * of a cold start, or NULL: it tells whether the last resume of `later` did no more than that.
 */
int compare_runs(struct report *r, const char *earlier, const char *later, const char *control,
	const struct verify_options *o, struct error *e);

#endif
