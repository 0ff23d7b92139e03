/* SPDX-License-Identifier: MIT */
/*
 * The median, and the median distance from it, of the last values of a stream. A value costs
 * O(log W) comparisons and a move of at most 8 W bytes, either statistic O(log W).
 */
#ifndef CURVE_WINDOW_H
#define CURVE_WINDOW_H

#include <stdbool.h>
#include <stddef.h>

struct window {
	double *ring, *sorted;
	size_t capacity, n, next;
};

/* False when memory runs out. */
bool window_init(struct window *w, size_t capacity);
void window_release(struct window *w);

/* Forget all values. */
void window_clear(struct window *w);

/* Add a finite value; the oldest one leaves where the window is full, and is returned (else NAN).
 */
double window_add(struct window *w, double v);

/* Take the oldest value out and return it; NAN where there is none. */
double window_pop(struct window *w);

/* The middle value (the mean of both where their number is even); NAN of nothing. */
double window_median(const struct window *w);

/* The median of |value - center|; NAN of nothing. */
double window_distance(const struct window *w, double center);

/* The value that a share q (0 to 1) of the values is below. NAN of nothing. */
double window_quantile(const struct window *w, double q);

/* How many of the values are different ones, and the least distance of two different ones (NAN: all
 * are equal). O(W). */
size_t window_distinct(const struct window *w, double *least);

#endif
