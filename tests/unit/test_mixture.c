/* SPDX-License-Identifier: MIT */
/* The statistics of mixtures: against known values, Megatron's blend, and simulation. */
#include "ledger/mixture.h"

#include <check.h>
#include <math.h>

Suite *suite_mixture(void);

/* A seeded generator of our own (SplitMix64), so that simulations repeat. */
static uint64_t next_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

static double next_share(uint64_t *state)
{
	return (double)(next_random(state) >> 11) * 0x1p-53;
}

static size_t draw(const double *p, size_t k, uint64_t *state)
{
	double u = next_share(state);
	for (size_t i = 0; i + 1 < k; i++) {
		if (u < p[i])
			return i;
		u -= p[i];
	}
	return k - 1;
}

START_TEST(tails_of_the_chi_square_are_right)
{
	/* scipy.stats.chi2.logsf */
	ck_assert_double_eq_tol(chi_square_log_tail(3.841458820694124, 1), log(0.05), 1e-12);
	ck_assert_double_eq_tol(chi_square_log_tail(100, 3), -47.91335211199013, 1e-10);
	ck_assert_double_eq_tol(chi_square_log_tail(0.5, 4), log(0.9735009788392562), 1e-12);
	ck_assert_double_eq_tol(chi_square_log_tail(20000, 1), -10005.17791, 0.01);
	ck_assert_double_eq(chi_square_log_tail(5, 0), 0);
}
END_TEST

START_TEST(the_blend_is_megatrons)
{
	static const uint8_t expected[] = {
		0, 1, 2, 0, 1, 0, 2, 0, 1, 0, 0, 1, 2, 0, 1, 0, 2, 0, 1, 0};
	const double w[] = {0.5, 0.3, 0.2};
	uint64_t n[3] = {0};
	for (size_t t = 0; t < sizeof expected; t++)
		ck_assert_uint_eq(mixture_blend_next(w, n, 3, t), expected[t]);

	const double six[] = {0.42, 0.2, 0.13, 0.11, 0.08, 0.06};
	uint64_t m[6] = {0};
	for (uint64_t t = 0; t < 10000; t++)
		mixture_blend_next(six, m, 6, t);
	const uint64_t counts[] = {4200, 2000, 1300, 1100, 800, 600};
	ck_assert_mem_eq(m, counts, sizeof counts);
}
END_TEST

START_TEST(no_blend_leaves_its_bound)
{
	uint64_t random = (uint64_t)_i + 1;
	size_t k = 2 + (size_t)_i % 12;
	double w[16], sum = 0;
	uint64_t n[16] = {0};
	for (size_t i = 0; i < k; i++)
		sum += w[i] = next_share(&random) * next_share(&random) + 1e-3;
	for (size_t i = 0; i < k; i++)
		w[i] /= sum;
	for (uint64_t t = 0; t < 5000; t++) {
		mixture_blend_next(w, n, k, t);
		ck_assert_double_le(mixture_blend_excess(w, n, k, t + 1), 0);
	}
	/* Two picks moved from one source to another are outside. */
	n[0] += 3;
	n[1] -= 3;
	ck_assert_double_gt(mixture_blend_excess(w, n, k, 5000), 0);
}
END_TEST

/* Looked at after every 16 samples, 200 right runs cross 1000 less than once in a thousand. */
START_TEST(the_evalue_does_not_cry_wolf)
{
	const double p[] = {0.5, 0.3, 0.2};
	int crossed = 0;
	for (uint64_t run = 0; run < 200; run++) {
		uint64_t random = run * 7919 + 1, n[3] = {0};
		bool over = false;
		for (int t = 1; t <= 20000; t++) {
			n[draw(p, 3, &random)]++;
			if (t % 16 == 0)
				over |= mixture_log_evalue(p, n, 3, 100, 1) > log(1000);
		}
		crossed += over;
	}
	ck_assert_int_le(crossed, 2);
}
END_TEST

START_TEST(the_evalue_sees_a_shift)
{
	const double p[] = {0.5, 0.3, 0.2}, q[] = {0.55, 0.3, 0.15};
	uint64_t random = 42, n[3] = {0};
	int t = 0;
	while (t < 40000 && mixture_log_evalue(p, n, 3, 100, 1) < log(1000)) {
		n[draw(q, 3, &random)]++;
		t++;
	}
	ck_assert_int_lt(t, 6000);
	ck_assert_double_eq(
		mixture_log_evalue((double[]){1, 0}, (uint64_t[]){3, 1}, 2, 100, 1), INFINITY);
}
END_TEST

#define STEPS 400
#define BATCH 32

static void draw_rows(uint64_t *rows, size_t from, size_t to, const double *p, uint64_t *random)
{
	for (size_t r = from; r < to; r++)
		for (int j = 0; j < BATCH; j++)
			rows[r * 3 + draw(p, 3, random)]++;
}

START_TEST(a_transient_has_its_length)
{
	const double p[] = {0.5, 0.3, 0.2}, q[] = {0.3, 0.3, 0.4};
	uint64_t random = (uint64_t)_i + 1, reference[] = {8000, 4800, 3200}, rows[STEPS * 3] = {0};
	draw_rows(rows, 0, 50, q, &random);
	draw_rows(rows, 50, STEPS, p, &random);
	struct mixture_transient t;
	ck_assert(mixture_find_transient(reference, rows, STEPS, 3, 300, 1, log(1e-6), &t));
	ck_assert_uint_ge(t.steps, 35);
	ck_assert_uint_le(t.steps, 70);
	ck_assert_double_eq_tol(t.distance, 0.2, 0.06);
	ck_assert(t.returns);
	ck_assert(!t.open);
}
END_TEST

START_TEST(a_right_start_is_no_transient)
{
	const double p[] = {0.5, 0.3, 0.2};
	uint64_t random = (uint64_t)_i + 1, reference[] = {8000, 4800, 3200}, rows[STEPS * 3] = {0};
	draw_rows(rows, 0, STEPS, p, &random);
	struct mixture_transient t;
	ck_assert(!mixture_find_transient(reference, rows, STEPS, 3, 300, 1, log(1e-4), &t));
	ck_assert_double_eq_tol(mixture_overdispersion(rows, STEPS, 3), 1.05, 0.2);
}
END_TEST

START_TEST(a_shift_that_stays_does_not_return)
{
	const double q[] = {0.3, 0.3, 0.4};
	uint64_t random = 9, reference[] = {8000, 4800, 3200}, rows[STEPS * 3] = {0};
	draw_rows(rows, 0, STEPS, q, &random);
	struct mixture_transient t;
	ck_assert(mixture_find_transient(reference, rows, STEPS, 3, 300, 1, log(1e-6), &t));
	ck_assert(!t.returns);
}
END_TEST

START_TEST(clumps_are_seen_as_overdispersion)
{
	/* Every draw counts eightfold: X^2 is eight times what independent draws give. */
	const double p[] = {0.5, 0.3, 0.2};
	uint64_t random = 5, rows[STEPS * 3] = {0};
	draw_rows(rows, 0, STEPS, p, &random);
	for (size_t i = 0; i < STEPS * 3; i++)
		rows[i] *= 8;
	ck_assert_double_eq_tol(mixture_overdispersion(rows, STEPS, 3), 8, 1.6);
}
END_TEST

START_TEST(a_ratio_that_falls_after_a_resume_is_found)
{
	double before[200], after[200], usual;
	uint64_t random = 3;
	for (int i = 0; i < 200; i++) {
		before[i] = 0.1 + 0.01 * (next_share(&random) - 0.5);
		after[i] = (i < 40 ? 0.07 : 0.1) + 0.01 * (next_share(&random) - 0.5);
	}
	struct mixture_transient t;
	ck_assert(mixture_find_shift(before, 200, after, 200, 150, log(1e-6), &t, &usual));
	ck_assert_uint_ge(t.steps, 38);
	ck_assert_uint_le(t.steps, 44);
	ck_assert_double_eq_tol(t.distance, -0.3, 0.04);
	ck_assert(t.returns);
	ck_assert(!mixture_find_shift(before, 100, before + 100, 100, 80, log(1e-4), &t, &usual));
}
END_TEST

START_TEST(correlation_is_pearsons)
{
	const double a[] = {1, 2, 3, 4, 5, 6, 7, 8, NAN}, b[] = {2, 4, 6, 8, 10, 12, 14, 16, 1};
	ck_assert_double_eq_tol(mixture_correlation(a, b, 9), 1, 1e-12);
	ck_assert(isnan(mixture_correlation(a, b, 7)));
}
END_TEST

Suite *suite_mixture(void)
{
	Suite *s = suite_create("mixture");
	TCase *t = tcase_create("mixture");
	tcase_set_timeout(t, 60);
	tcase_add_test(t, tails_of_the_chi_square_are_right);
	tcase_add_test(t, the_blend_is_megatrons);
	tcase_add_loop_test(t, no_blend_leaves_its_bound, 0, 24);
	tcase_add_test(t, the_evalue_does_not_cry_wolf);
	tcase_add_test(t, the_evalue_sees_a_shift);
	tcase_add_loop_test(t, a_transient_has_its_length, 0, 8);
	tcase_add_loop_test(t, a_right_start_is_no_transient, 0, 20);
	tcase_add_test(t, a_shift_that_stays_does_not_return);
	tcase_add_test(t, clumps_are_seen_as_overdispersion);
	tcase_add_test(t, a_ratio_that_falls_after_a_resume_is_found);
	tcase_add_test(t, correlation_is_pearsons);
	suite_add_tcase(s, t);
	return s;
}
