/* SPDX-License-Identifier: MIT */
/* Learning rates at resumes: what must be told apart, and what must not be told at all. */
#define _GNU_SOURCE
#include "curve/rate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/curve_maker.h"

#include <check.h>

Suite *suite_rate(void);

#define FROM 500
#define PEAK 1e-3

static struct curve_maker m;
static struct stitch s;

/* Schedules, by the number of updates done. -------------------------------------------------- */

typedef double schedule(double step);

static double linear(double at)
{
	return PEAK * (at < 100 ? at / 100 : fmax(0, (1000 - at) / 900));
}

static double longer(double at)
{
	return PEAK * (at < 100 ? at / 100 : fmax(0, (2000 - at) / 1900));
}

static double cosine(double at)
{
	return PEAK * 0.5 * (1 + cos(M_PI * fmin(1, at / 1000)));
}

static double steady_then_decay(double at)
{
	return at < FROM + 5 ? PEAK : PEAK * fmax(0, 1 - (at - FROM - 5) / 200);
}

static double warm_restarts(double at)
{
	return PEAK * 0.5 * (1 + cos(M_PI * fmod(at, 250) / 250));
}

static double triangles(double at)
{
	return PEAK * (1 - 0.9 * fabs(2 * fmod(at, 166) / 166 - 1));
}

static double stairs(double at)
{
	return PEAK * pow(0.1, floor(at / 250));
}

static double one_stair(double at)
{
	return at < FROM ? PEAK : 0.1 * PEAK;
}

static double root(double at)
{
	return PEAK * fmin(at / 50, sqrt(50 / (at + 1)));
}

static double linear_anew(double at)
{
	return linear(at - FROM);
}

static double linear_behind(double at)
{
	return linear(at - 120);
}

static double cosine_behind(double at)
{
	return cosine(at - 120);
}

static double linear_faster(double at)
{
	return at < FROM ? linear(at) : linear(FROM + 4 * (at - FROM));
}

static double linear_lower(double at)
{
	return 0.75 * linear(at);
}

/* Made anew, it goes on from the rate that the optimizer was left with. */
static double cosine_anew_from_there(double at)
{
	return cosine(FROM) / PEAK * cosine(at - FROM);
}

static double cosine_peak(double at)
{
	(void)at;
	return PEAK;
}

/* Making logs -------------------------------------------------------------------------------- */

struct logged {
	schedule *before, *after;
	int every;     /* steps between two lines */
	int early;     /* 1: logged before the schedule moves */
	int digits;    /* significant ones; 0: all */
	int dead;      /* steps logged behind the resume by the interrupted attempt */
	int kind;      /* enum rate_kind */
	double wanted; /* lag or factor; NAN: none */
	double room;   /* of it */
};

static double printed(double v, int digits)
{
	char text[40];

	if (digits == 0)
		return v;
	snprintf(text, sizeof text, "%.*e", digits - 1, v);
	return strtod(text, NULL);
}

static void rates(const struct logged *c, schedule *f, int first, int last)
{
	for (int i = first; i <= last; i++) {
		if (i % c->every != 0)
			continue;
		double v = printed(f(i - c->early), c->digits);
		m.resolution = 0;
		maker_point(&m, CURVE_LOSS, i, 2 + 0.01 * noise_of_batch(1, (uint64_t)i));
		if (c->digits > 0 && v > 0)
			m.resolution = (float)pow(10, floor(log10(v)) + 1 - c->digits);
		maker_point(&m, CURVE_LR, i, v);
	}
}

static struct rate_change judge(const struct logged *c)
{
	struct stitch_told told = {.attempt = 2, .from = FROM};
	struct stitch_options o = {.told = &told, .told_count = 1, .first = NAN, .last = NAN};
	struct error e = ERROR_INIT;
	struct rate_change r;

	maker_begin(&m);
	maker_file(&m, "1.log", "console");
	rates(c, c->before, 1, FROM + c->dead);
	maker_file(&m, "2.log", "console");
	rates(c, c->after, FROM + 1, 800);
	ck_assert_msg(stitch_build(&s, &m.log, &o, &e) == RP_OK, "%s", e.text);
	ck_assert_uint_eq(s.attempts.count, 2);
	rate_judge(&s, 1, c->dead > 0 ? 0 : CURVE_NONE, FROM, &r);
	stitch_release(&s);
	maker_end(&m);
	return r;
}

static const struct logged right[] = {
	{linear, linear, 1, 0, 0, 0, RATE_CONTINUES, NAN, 0},
	{linear, linear, 10, 1, 2, 0, RATE_CONTINUES, NAN, 0},
	{linear, linear, 7, 0, 3, 60, RATE_CONTINUES, NAN, 0},
	{cosine, cosine, 10, 0, 6, 0, RATE_CONTINUES, NAN, 0},
	{cosine, cosine, 10, 0, 2, 0, RATE_CONTINUES, NAN, 0},
	{cosine, cosine, 3, 1, 6, 100, RATE_CONTINUES, NAN, 0},
	{steady_then_decay, steady_then_decay, 10, 0, 6, 0, RATE_CONTINUES, NAN, 0},
	{warm_restarts, warm_restarts, 10, 0, 6, 0, RATE_CONTINUES, NAN, 0},
	{warm_restarts, warm_restarts, 1, 0, 3, 0, RATE_CONTINUES, NAN, 0},
	{triangles, triangles, 10, 0, 6, 0, RATE_CONTINUES, NAN, 0},
	{stairs, stairs, 10, 0, 6, 0, RATE_CONTINUES, NAN, 0},
	{root, root, 10, 0, 2, 0, RATE_CONTINUES, NAN, 0},
	{root, root, 20, 1, 6, 40, RATE_CONTINUES, NAN, 0},
};

START_TEST(says_nothing_of_a_right_resume)
{
	struct rate_change r = judge(&right[_i]);

	ck_assert_msg(r.kind == RATE_CONTINUES, "case %d: kind %u", _i, r.kind);
}
END_TEST

static const struct logged wrong[] = {
	{linear, linear_anew, 10, 0, 6, 0, RATE_RESTARTED, NAN, 0},
	{linear, linear_anew, 1, 1, 3, 40, RATE_RESTARTED, NAN, 0},
	{cosine, cosine_anew_from_there, 10, 0, 5, 0, RATE_RESTARTED, 0.5, 0.001},
	{linear, linear_behind, 10, 0, 6, 0, RATE_LAG, 120, 2},
	{linear, linear_behind, 10, 0, 3, 100, RATE_LAG, 120, 6},
	{cosine, cosine_behind, 10, 0, 6, 0, RATE_LAG, 120, 2},
	{cosine, cosine_behind, 7, 1, 6, 100, RATE_LAG, 120, 2},
	{linear, longer, 10, 0, 6, 0, RATE_LENGTH, 1900.0 / 900, 0.02},
	{linear, longer, 10, 0, 6, 100, RATE_LENGTH, 1900.0 / 900, 0.02},
	{linear, linear_faster, 5, 0, 6, 0, RATE_PACE, 4, 0.05},
	{linear, linear_faster, 5, 0, 6, 100, RATE_PACE, 4, 0.05},
	{linear, linear_lower, 10, 0, 6, 100, RATE_SCALED, 0.75, 0.001},
	{cosine, cosine_peak, 10, 0, 6, 0, RATE_JUMP, NAN, 0},
	{cosine, cosine_peak, 10, 0, 2, 100, RATE_JUMP, NAN, 0},
};

START_TEST(tells_how_a_rate_went_wrong)
{
	const struct logged *c = &wrong[_i];
	struct rate_change r = judge(c);

	ck_assert_msg(r.kind == c->kind, "case %d: kind %u, not %d", _i, r.kind, c->kind);
	ck_assert(r.proven == (c->dead > 0) || r.kind == RATE_RESTARTED);
	if (isnan(c->wanted))
		return;
	double found = r.kind == RATE_LAG ? r.lag : r.factor;
	ck_assert_msg(
		fabs(found - c->wanted) <= c->room, "case %d: %g, not %g", _i, found, c->wanted);
}
END_TEST

/* Whether it was the schedule's own step or a rate that was set, nothing tells but a dead branch.
 */
START_TEST(knows_a_step_from_one_rate_to_another)
{
	struct logged c = {one_stair, one_stair, 10, 1, 6, 0, 0, NAN, 0};
	struct rate_change r = judge(&c);

	ck_assert(r.kind >= RATE_SCALED && r.stepped && !r.proven);
	c.dead = 100;
	ck_assert_uint_eq(judge(&c).kind, RATE_CONTINUES);
}
END_TEST

START_TEST(knows_that_a_schedule_had_ended)
{
	struct logged c = {warm_restarts, cosine_peak, 10, 1, 6, 0, 0, NAN, 0};
	struct rate_change r = judge(&c);

	ck_assert(r.ended);
	c.before = cosine;
	r = judge(&c);
	ck_assert(!r.ended && r.highest);
}
END_TEST

/* Two launches that both count from 1; the second one's loss begins at `loss`. */
static struct rate_origin origin_of(schedule *first, schedule *second, double loss)
{
	struct stitch_options o = {.first = NAN, .last = NAN};
	struct error e = ERROR_INIT;
	struct rate_origin r;

	maker_begin(&m);
	for (int launch = 0; launch < 2; launch++) {
		maker_file(&m, launch ? "2.log" : "1.log", "console");
		for (int i = 5; i <= 400; i += 5) {
			double falls = launch ? 0 : 3 * exp(-i / 60.0);
			maker_point(&m, CURVE_LOSS, i,
				(launch ? loss : 2) + falls +
					0.01 * noise_of_batch(1, (uint64_t)(i + launch)));
			maker_point(&m, CURVE_LR, i, (launch ? second : first)(i));
		}
	}
	ck_assert_msg(stitch_build(&s, &m.log, &o, &e) == RP_OK, "%s", e.text);
	ck_assert_uint_eq(s.attempts.count, 2);
	rate_find_origin(&s, 1, &r);
	stitch_release(&s);
	maker_end(&m);
	return r;
}

static double linear_from_400(double at)
{
	return linear(at + 400);
}

static double cosine_from_400(double at)
{
	return cosine(at + 400);
}

static double lower_linear(double at)
{
	return 0.3 * linear(at);
}

START_TEST(tells_a_fresh_start_from_one_that_counts_anew)
{
	struct rate_origin r = origin_of(linear, linear_from_400, 2);

	ck_assert(r.found && !r.anew && !r.about);
	ck_assert_double_eq_tol(r.x, 400, 1);
	r = origin_of(cosine, cosine_from_400, 2);
	ck_assert(r.found && !r.anew);
	ck_assert_double_eq_tol(r.x, 400, 5);
	r = origin_of(linear, linear, 2);
	ck_assert(r.found && r.anew);
	/* The loss begins where it began: fresh, whatever its rates are. */
	ck_assert(!origin_of(linear, linear, 4.7).found);
	ck_assert(!origin_of(linear, linear_from_400, 4.7).found);
	/* Trained on with a schedule of its own. */
	ck_assert(!origin_of(linear, lower_linear, 2).found);
	ck_assert(!origin_of(cosine, root, 2).found);
}
END_TEST

Suite *suite_rate(void)
{
	Suite *suite = suite_create("rate");
	TCase *t = tcase_create("rate");

	tcase_add_loop_test(t, says_nothing_of_a_right_resume, 0, sizeof right / sizeof *right);
	tcase_add_loop_test(t, tells_how_a_rate_went_wrong, 0, sizeof wrong / sizeof *wrong);
	tcase_add_test(t, knows_a_step_from_one_rate_to_another);
	tcase_add_test(t, knows_that_a_schedule_had_ended);
	tcase_add_test(t, tells_a_fresh_start_from_one_that_counts_anew);
	suite_add_tcase(suite, t);
	return suite;
}
