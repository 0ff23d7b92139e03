/* SPDX-License-Identifier: MIT */
/*
 * Spikes: none in clean curves, and each class in curves that were given one. Seeds are fixed; the
 * rates over thousands of other seeds are in the comments.
 */
#include "curve/spikes.h"

#include <math.h>
#include <stdlib.h>

#include "support/curve_maker.h"
#include "support/logs.h"

#include <check.h>

Suite *suite_spikes(void);

#define POINTS 6000u

static double x[POINTS], v[POINTS];
static struct spikes found;
static struct error e;

static void look(size_t n, float resolution, double interval)
{
	static float resolutions[POINTS];
	struct spike_curve c = {.x = x, .v = v, .resolution = resolutions, .n = n, .down = true};

	for (size_t i = 0; i < n; i++) {
		resolutions[i] = resolution;
		if (resolution > 0)
			v[i] = round(v[i] / (double)resolution) * (double)resolution;
	}
	found = (struct spikes){.coarse = NAN};
	e = ERROR_INIT;
	ck_assert_int_eq(spikes_find(&found, &c, interval, &e), RP_OK);
}

/* A clean curve of n points with noise of the deviation. */
static void clean(size_t n, uint64_t seed, double deviation)
{
	for (size_t i = 0; i < n; i++) {
		x[i] = (double)i + 1;
		v[i] = clean_loss(x[i]) + deviation * noise_normal(&seed);
	}
}

static void add_shape(size_t at, size_t n, double height, double decay)
{
	for (size_t i = at; i < n; i++)
		v[i] += height * exp(-(double)(i - at) / decay);
}

static const struct spike *only(enum spike_class class)
{
	ck_assert_uint_eq(found.list.count, 1);
	ck_assert_msg(found.list.items[0].class == class, "%s at %g",
		spike_class_name(found.list.items[0].class), found.list.items[0].x);
	return &found.list.items[0];
}

START_TEST(leaves_clean_curves_alone)
{
	/* Of 1000 other seeds: none. */
	for (uint64_t seed = 1; seed <= 30; seed++) {
		clean(4000, seed, 0.02 + 0.003 * (double)seed);
		look(4000, 1e-4f, 1);
		ck_assert_uint_eq(found.list.count, 0);
		ck_assert_uint_gt(found.judged, 3900);
		spikes_release(&found);
	}
}
END_TEST

START_TEST(leaves_steep_starts_alone)
{
	for (uint64_t seed = 1; seed <= 30; seed++) {
		uint64_t s = seed;
		for (size_t i = 0; i < 3000; i++) {
			x[i] = (double)i + 1;
			v[i] = 2 + 8 * exp(-x[i] / 100) + 0.5 * exp(-x[i] / 1500) +
			       0.03 * noise_normal(&s);
		}
		look(3000, 1e-4f, 1);
		ck_assert_uint_eq(found.list.count, 0);
		spikes_release(&found);
	}
}
END_TEST

START_TEST(tolerates_noise_that_remembers)
{
	size_t curves = 0;

	for (uint64_t seed = 1; seed <= 30; seed++) {
		uint64_t s = seed;
		double memory = 0;
		for (size_t i = 0; i < 3000; i++) {
			memory = 0.5 * memory + 0.04 * noise_normal(&s);
			x[i] = (double)i + 1;
			v[i] = clean_loss(x[i]) + memory;
		}
		look(3000, 1e-4f, 1);
		curves += found.list.count > 0;
		spikes_release(&found);
	}
	ck_assert_uint_eq(curves, 0);
}
END_TEST

START_TEST(counts_odd_batches_apart)
{
	clean(3000, 7, 0.03);
	v[2000] += 0.4;
	look(3000, 1e-4f, 1);
	ck_assert_uint_eq(found.list.count, 0);
	ck_assert_uint_eq(found.odd, 1);
	spikes_release(&found);
}
END_TEST

START_TEST(makes_no_spikes_of_coarse_values)
{
	uint64_t seed = 3;

	for (size_t i = 0; i < 2000; i++) {
		x[i] = (double)i + 1;
		v[i] = 2.5 - 1e-5 * x[i] + 0.003 * noise_normal(&seed);
		v[i] = round(v[i] * 128) / 128;
	}
	/* The reader cannot know it. */
	look(2000, 0, 1);
	ck_assert_uint_eq(found.list.count, 0);
	ck_assert_double_eq_tol(found.coarse, 1 / 128.0, 1e-9);
	spikes_release(&found);
}
END_TEST

START_TEST(names_a_fast_spike)
{
	clean(4000, 11, 0.03);
	add_shape(2500, 4000, 2, 10);
	look(4000, 1e-4f, 1);
	const struct spike *k = only(SPIKE_FAST);
	ck_assert_double_eq(k->x, x[2500]);
	ck_assert_double_eq_tol(k->peak - k->baseline, 2, 0.15);
	ck_assert_double_ge(k->end_x - k->x, 20);
	ck_assert_double_le(k->end_x - k->x, 80);
	spikes_release(&found);
}
END_TEST

START_TEST(names_a_slow_spike)
{
	clean(6000, 12, 0.03);
	add_shape(2500, 6000, 2, 300);
	look(6000, 1e-4f, 1);
	const struct spike *k = only(SPIKE_SLOW);
	ck_assert_double_eq(k->x, x[2500]);
	ck_assert_double_ge(k->end_x - k->x, 600);
	spikes_release(&found);
}
END_TEST

START_TEST(names_a_spike_that_stays_in_part)
{
	clean(6000, 13, 0.03);
	add_shape(2000, 6000, 3, 40);
	for (size_t i = 2000; i < 6000; i++)
		v[i] += 0.3;
	look(6000, 1e-4f, 1);
	const struct spike *k = only(SPIKE_PARTIAL);
	ck_assert_double_eq_tol(k->level - k->baseline, 0.3, 0.1);
	spikes_release(&found);
}
END_TEST

START_TEST(names_a_divergence)
{
	clean(4000, 14, 0.03);
	for (size_t i = 3000; i < 4000; i++)
		v[i] = 6 + 1.5 * tanh((double)(i - 3000) / 200) + 0.3 * (v[i] - clean_loss(x[i]));
	look(4000, 1e-4f, 1);
	only(SPIKE_DIVERGED);
	spikes_release(&found);

	/* As one that ends in NaN. */
	clean(3000, 14, 0.03);
	add_shape(2500, 3000, 5, 1000);
	for (size_t i = 2700; i < 3000; i++)
		v[i] = NAN;
	look(3000, 1e-4f, 1);
	ck_assert_uint_eq(found.list.count, 2);
	ck_assert_uint_eq(found.list.items[0].class, SPIKE_DIVERGED);
	ck_assert_uint_eq(found.list.items[1].class, SPIKE_NOT_FINITE);
	ck_assert_double_eq(found.list.items[1].x, x[2700]);
	spikes_release(&found);
}
END_TEST

START_TEST(names_a_shift_and_a_drop)
{
	clean(6000, 15, 0.02);
	for (size_t i = 3000; i < 6000; i++)
		v[i] += 0.4;
	look(6000, 1e-4f, 1);
	const struct spike *k = only(SPIKE_SHIFT);
	ck_assert_double_eq(k->x, x[3000]);
	ck_assert_double_eq_tol(k->level - k->baseline, 0.4, 0.08);
	spikes_release(&found);

	clean(6000, 16, 0.02);
	for (size_t i = 3000; i < 6000; i++)
		v[i] -= 0.4;
	look(6000, 1e-4f, 1);
	k = only(SPIKE_DROP);
	ck_assert_double_eq(k->x, x[3000]);
	spikes_release(&found);
}
END_TEST

START_TEST(names_a_rise_without_a_spike)
{
	clean(6000, 17, 0.03);
	for (size_t i = 3500; i < 6000; i++)
		v[i] += 0.6 * (double)(i - 3500) / 2500;
	look(6000, 1e-4f, 1);
	const struct spike *k = only(SPIKE_DRIFT);
	ck_assert_double_ge(k->x, 3000);
	ck_assert_double_le(k->x, 4400);
	spikes_release(&found);
}
END_TEST

START_TEST(sees_a_spike_behind_another)
{
	clean(4000, 18, 0.03);
	add_shape(2500, 4000, 3, 10);
	add_shape(2600, 4000, 1, 10);
	look(4000, 1e-4f, 1);
	ck_assert_uint_eq(found.list.count, 2);
	ck_assert_double_eq(found.list.items[1].x, x[2600]);
	spikes_release(&found);
}
END_TEST

START_TEST(sees_means_of_intervals)
{
	/* Ten steps a point: a spike of 20 steps is two points. */
	uint64_t seed = 19;

	for (size_t i = 0; i < 1000; i++) {
		x[i] = (double)(i + 1) * 10;
		v[i] = clean_loss(x[i]) + 0.01 * noise_normal(&seed);
	}
	v[700] += 0.5;
	v[701] += 0.2;
	look(1000, 1e-4f, 10);
	const struct spike *k = only(SPIKE_FAST);
	ck_assert_double_eq(k->x, 7010);
	ck_assert_double_eq(k->end_x, 7030);
	spikes_release(&found);
}
END_TEST

/* The points that BLOOM's chronicle of its 176B model prints around a spike, with their neighbours.
 */
START_TEST(sees_bloom_s_spike)
{
	static const double printed[] = {2.199, 2.220, 2.595, 2.242, 2.345, 5.098, 3.492, 3.213,
		2.805, 2.6, 2.45, 2.35, 2.3, 2.26, 2.24, 2.216};
	uint64_t seed = 20;

	for (size_t i = 0; i < 1500; i++) {
		x[i] = 30214 + (double)i;
		v[i] = 2.21 + 0.02 * noise_normal(&seed);
	}
	for (size_t i = 0; i < sizeof printed / sizeof *printed; i++)
		v[1000 + i] = printed[i];
	look(1500, 1e-3f, 1);
	ck_assert_uint_ge(found.list.count, 1);
	const struct spike *k = &found.list.items[found.list.count - 1];
	ck_assert_uint_eq(k->class, SPIKE_FAST);
	ck_assert_double_eq_tol(k->peak, 5.098, 1e-4);
	ck_assert_double_eq(k->peak_x, 31219);
	ck_assert_double_le(k->end_x - k->x, 30);
	spikes_release(&found);
}
END_TEST

/* OLMo's rule --------------------------------------------------------------------------------- */

START_TEST(scores_as_olmo_does)
{
	bool flags[400];
	double loss[400];

	for (size_t i = 0; i < 400; i++)
		loss[i] = 2 + 0.01 * (double)(i % 5);
	loss[100] = 50; /* the window is not full yet */
	loss[300] = 50;
	loss[301] = 50; /* hidden by the one before */
	struct olmo o = olmo_score(loss, NULL, NULL, 400, flags);
	ck_assert(!flags[100]);
	ck_assert(flags[300]);
	/* One value of 50 among 128 of 2: mean 2.4, deviation 4.2: 50 is more than 6 of them. */
	ck_assert(flags[301]);
	ck_assert_uint_eq(o.spikes, 2);
	ck_assert_double_eq(o.total, 2.0 / 400);
	ck_assert_double_nan(o.score);
	for (size_t i = 0; i < 400; i++)
		loss[i] = 2;
	loss[300] = 3;
	ck_assert_uint_eq(olmo_score(loss, NULL, NULL, 400, NULL).spikes, 0);
}
END_TEST

Suite *suite_spikes(void)
{
	Suite *s = suite_create("spikes");
	TCase *t = tcase_create("spikes");

	tcase_add_test(t, leaves_clean_curves_alone);
	tcase_add_test(t, leaves_steep_starts_alone);
	tcase_add_test(t, tolerates_noise_that_remembers);
	tcase_add_test(t, counts_odd_batches_apart);
	tcase_add_test(t, makes_no_spikes_of_coarse_values);
	tcase_add_test(t, names_a_fast_spike);
	tcase_add_test(t, names_a_slow_spike);
	tcase_add_test(t, names_a_spike_that_stays_in_part);
	tcase_add_test(t, names_a_divergence);
	tcase_add_test(t, names_a_shift_and_a_drop);
	tcase_add_test(t, names_a_rise_without_a_spike);
	tcase_add_test(t, sees_a_spike_behind_another);
	tcase_add_test(t, sees_means_of_intervals);
	tcase_add_test(t, sees_bloom_s_spike);
	tcase_add_test(t, scores_as_olmo_does);
	suite_add_tcase(s, t);
	return s;
}
