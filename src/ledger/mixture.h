/* SPDX-License-Identifier: MIT */
/*
 * Statistics of a mixture of sources: how far what was consumed is from a target or from what was
 * consumed before, and whether chance explains it. Counts are samples per source; `k` is the number
 * of sources. Nothing here knows a log.
 *
 * A deterministic blend is held against its proven bound, never against a p-value. Draws are tested
 * by an e-value, which may be looked at after every step, and finite windows by the likelihood
 * ratio G. Streams that come in clumps (shards, shuffle buffers) vary more than independent draws:
 * their counts are divided by the overdispersion that clean windows show.
 */
#ifndef LEDGER_MIXTURE_H
#define LEDGER_MIXTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Half the sum of the absolute differences of two distributions: 0.01 is one point. */
double mixture_distance(const double *p, const double *q, size_t k);

/* Shares of counts; all zero where the counts are. */
void mixture_shares(const uint64_t *n, size_t k, double *share);

/*
 * Natural logarithm of the e-value of counts against target shares p: a Dirichlet prior of weight c
 * around the target against the target itself. Under the target its expectation is at most 1 at any
 * time that one stops to look, so 1/alpha is crossed with a chance of at most alpha (Ville).
 * `scale` divides the counts (overdispersion). Infinite where a source with share 0 gave samples.
 * Lindon and Malek, arXiv 2011.03567, with alpha0 = c p.
 */
double mixture_log_evalue(const double *p, const uint64_t *n, size_t k, double c, double scale);

/*
 * Likelihood ratio of two windows having one and the same mixture: G, and its degrees of freedom
 * through `df` (sources that occur, less one).
 */
double mixture_ratio(const uint64_t *a, const uint64_t *b, size_t k, double *df);

/* Natural logarithm of the chance that a chi-square variable with df degrees exceeds x. */
double chi_square_log_tail(double x, double df);

/*
 * Overdispersion of the rows (counts of k sources each) of a table around its own mean: the median
 * over rows of X^2/df, over the median that independent draws would give; at least 1. A few rows
 * that are off (a transient) do not move it. 1 where too little is there to tell.
 */
double mixture_overdispersion(const uint64_t *rows, size_t count, size_t k);

/*
 * How far counts are outside what a greedy blend can give after t samples: n - w t <= 1, and
 * w t - n <= 1 + 1/2 + ... + 1/(k-1). At most 0: inside for every source. Proof: each pick takes a
 * source whose deficit is the largest, hence not negative, and sums of the j largest deficits grow
 * by at most (1 + 1/j).
 */
double mixture_blend_excess(const double *w, const uint64_t *n, size_t k, uint64_t t);

/*
 * The greedy blend itself, one pick at a time: the first source with the largest w max(t, 1) - n.
 * IEEE double, product then subtraction, as Megatron-LM's build_blending_indices computes it
 * (megatron/core/datasets/helpers.cpp). Adds the pick to n and returns it.
 */
size_t mixture_blend_next(const double *w, uint64_t *n, size_t k, uint64_t t);

/* Where a series left its usual level from its start on. */
struct mixture_transient {
	size_t steps;    /* length */
	double distance; /* from the reference, over those steps */
	double log_p;    /* of the chance that the two are the same mixture */
	bool returns;    /* the steps after it are at the reference again */
	bool open;       /* the series ends before it could return */
};

/*
 * Find the length of the deviation with which a series of steps (rows of k counts) begins, against
 * a reference window; false where chance explains what there is. At most `longest` steps are looked
 * at. O(steps * k).
 */
bool mixture_find_transient(const uint64_t *reference, const uint64_t *rows, size_t count, size_t k,
	size_t longest, double overdispersion, double log_alpha, struct mixture_transient *out);

/*
 * The same for a quantity with one value a step (a ratio of counts inside the samples): a robust
 * shift of its mean against earlier values. distance is then relative: (mean - usual) / |usual|,
 * signed. NAN values are steps without one. O(n log n).
 */
bool mixture_find_shift(const double *before, size_t n_before, const double *after, size_t n_after,
	size_t longest, double log_alpha, struct mixture_transient *out, double *usual);

/* Correlation of two series over the steps where both have a value; NAN below 8 of them. */
double mixture_correlation(const double *a, const double *b, size_t n);

#endif
