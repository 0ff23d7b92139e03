/* SPDX-License-Identifier: MIT */
#include "curve/window.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

bool window_init(struct window *w, size_t capacity)
{
	*w = (struct window){.capacity = capacity};
	w->ring = calloc(capacity, sizeof *w->ring);
	w->sorted = calloc(capacity, sizeof *w->sorted);
	if (w->ring && w->sorted)
		return true;
	window_release(w);
	return false;
}

void window_release(struct window *w)
{
	free(w->ring);
	free(w->sorted);
	*w = (struct window){0};
}

void window_clear(struct window *w)
{
	w->n = w->next = 0;
}

/* The index of the first value that is not less than v. */
static size_t place(const struct window *w, double v)
{
	size_t low = 0, high = w->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (w->sorted[middle] < v)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

double window_pop(struct window *w)
{
	if (w->n == 0)
		return NAN;
	double oldest = w->ring[(w->next + w->capacity - w->n) % w->capacity];
	size_t at = place(w, oldest);
	memmove(w->sorted + at, w->sorted + at + 1, (w->n - at - 1) * sizeof *w->sorted);
	w->n--;
	return oldest;
}

double window_add(struct window *w, double v)
{
	double oldest = w->n == w->capacity ? window_pop(w) : NAN;
	size_t at = place(w, v);

	memmove(w->sorted + at + 1, w->sorted + at, (w->n - at) * sizeof *w->sorted);
	w->sorted[at] = v;
	w->n++;
	w->ring[w->next] = v;
	w->next = (w->next + 1) % w->capacity;
	return oldest;
}

double window_median(const struct window *w)
{
	if (w->n == 0)
		return NAN;
	return (w->sorted[(w->n - 1) / 2] + w->sorted[w->n / 2]) / 2;
}

/*
 * The k-th smallest distance from the center, from 0. Distances grow away from the center on either
 * side, so that it is the k-th of two sorted lists: the number taken from the left one is found by
 * bisection.
 */
static double distance_at(const struct window *w, double center, size_t k)
{
	size_t left = place(w, center), right = w->n - left;
	size_t low = k + 1 > right ? k + 1 - right : 0, high = k + 1 < left ? k + 1 : left;

	while (low < high) {
		size_t a = low + (high - low) / 2, b = k + 1 - a;
		/* With a from the left there are b from the right. Too few from the left where the
		 * next one of it is nearer than the last one taken from the right. */
		if (b > 0 && center - w->sorted[left - 1 - a] < w->sorted[left + b - 1] - center)
			low = a + 1;
		else
			high = a;
	}
	size_t a = low, b = k + 1 - a;
	double from_left = a > 0 ? center - w->sorted[left - a] : -INFINITY;
	double from_right = b > 0 ? w->sorted[left + b - 1] - center : -INFINITY;
	return from_left > from_right ? from_left : from_right;
}

double window_distance(const struct window *w, double center)
{
	if (w->n == 0)
		return NAN;
	return (distance_at(w, center, (w->n - 1) / 2) + distance_at(w, center, w->n / 2)) / 2;
}

double window_quantile(const struct window *w, double q)
{
	if (w->n == 0)
		return NAN;
	return w->sorted[(size_t)(q * (double)(w->n - 1))];
}

size_t window_distinct(const struct window *w, double *least)
{
	size_t count = w->n > 0;

	*least = NAN;
	for (size_t i = 1; i < w->n; i++) {
		double gap = w->sorted[i] - w->sorted[i - 1];
		if (gap <= 0)
			continue;
		count++;
		*least = gap < *least || isnan(*least) ? gap : *least;
	}
	return count;
}
