/* SPDX-License-Identifier: MIT */
/* Running medians against sorting anew each time. */
#include "curve/window.h"

#include <math.h>
#include <stdlib.h>

#include "support/curve_maker.h"
#include "support/logs.h"

#include <check.h>

Suite *suite_window(void);

static int compare(const void *pa, const void *pb)
{
	double a = *(const double *)pa, b = *(const double *)pb;

	return (a > b) - (a < b);
}

static double middle(double *list, size_t n)
{
	qsort(list, n, sizeof *list, compare);
	return (list[(n - 1) / 2] + list[n / 2]) / 2;
}

static void check_stream(size_t capacity, size_t count, unsigned steps)
{
	double all[600], copy[600];
	uint64_t seed = capacity * 1000 + steps;
	struct window w;

	ck_assert(window_init(&w, capacity));
	for (size_t i = 0; i < count; i++) {
		/* Rounded, so that there are many equal values. */
		all[i] = round(noise_normal(&seed) * steps) / steps;
		window_add(&w, all[i]);
		size_t n = i + 1 < capacity ? i + 1 : capacity;
		for (size_t k = 0; k < n; k++)
			copy[k] = all[i + 1 - n + k];
		double m = middle(copy, n);
		ck_assert_double_eq(window_median(&w), m);
		for (size_t k = 0; k < n; k++)
			copy[k] = fabs(all[i + 1 - n + k] - m);
		ck_assert_double_eq_tol(window_distance(&w, m), middle(copy, n), 1e-12);
	}
	window_release(&w);
}

START_TEST(gives_what_sorting_gives)
{
	static const size_t capacities[] = {1, 2, 3, 16, 127, 256};

	for (size_t i = 0; i < sizeof capacities / sizeof *capacities; i++) {
		check_stream(capacities[i], 600, 4);
		check_stream(capacities[i], 600, 1000000);
	}
}
END_TEST

START_TEST(gives_the_oldest_back)
{
	struct window w;

	ck_assert(window_init(&w, 3));
	ck_assert_double_nan(window_pop(&w));
	ck_assert_double_nan(window_median(&w));
	for (int i = 0; i < 3; i++)
		ck_assert_double_nan(window_add(&w, 5 - i));
	ck_assert_double_eq(window_add(&w, 9), 5);
	ck_assert_double_eq(window_pop(&w), 4);
	ck_assert_double_eq(window_pop(&w), 3);
	ck_assert_double_eq(window_median(&w), 9);
	window_release(&w);
}
END_TEST

START_TEST(sees_how_coarse_values_are)
{
	struct window w;
	double least;

	ck_assert(window_init(&w, 64));
	for (int i = 0; i < 64; i++)
		window_add(&w, 2 + (i * 7 % 5) / 128.0);
	ck_assert_uint_eq(window_distinct(&w, &least), 5);
	ck_assert_double_eq_tol(least, 1 / 128.0, 1e-12);
	window_release(&w);
}
END_TEST

Suite *suite_window(void)
{
	Suite *s = suite_create("window");
	TCase *t = tcase_create("window");

	tcase_add_test(t, gives_what_sorting_gives);
	tcase_add_test(t, gives_the_oldest_back);
	tcase_add_test(t, sees_how_coarse_values_are);
	suite_add_tcase(s, t);
	return s;
}
