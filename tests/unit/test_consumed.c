/* SPDX-License-Identifier: MIT */
/* What attempts consumed, and resumes with another batch. */
#include "curve/consumed.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "curve/resume.h"
#include "curve/stitch.h"
#include "support/curve_maker.h"
#include "support/logs.h"

#include <check.h>

Suite *suite_consumed(void);

/* Lines through counts --------------------------------------------------------------------------
 */

START_TEST(lays_a_line_with_bends_where_the_batch_changes)
{
	struct consumed_knots k = {0};
	struct consumed_line l;
	struct consumed_count c[300];

	for (size_t i = 0; i < 300; i++)
		c[i] = (struct consumed_count){(double)i,
			i < 100 ? 16.0 * (double)i : 1600 + 64 * ((double)i - 100), 1e-6};
	ck_assert(consumed_lay(&k, c, 300, &l));
	ck_assert_uint_eq(l.count, 3);
	for (size_t i = 0; i < 300; i += 7) {
		ck_assert_double_eq_tol(consumed_at(&k, l, (double)i), c[i].amount, 1e-3);
		ck_assert_double_eq_tol(consumed_step(&k, l, c[i].amount), (double)i, 1e-4);
	}
	ck_assert_double_eq_tol(consumed_batch(&k, l, 100), 16, 1e-3);
	ck_assert_double_eq_tol(consumed_batch(&k, l, 101), 64, 1e-3);
	/* Beyond the ends it goes on as it went. */
	ck_assert_double_eq_tol(consumed_at(&k, l, 400), 1600 + 64 * 300, 1e-1);
	ck_assert_double_eq_tol(consumed_at(&k, l, -1), -16, 1e-1);
	array_release(&k.list);
}
END_TEST

START_TEST(lays_rounded_counts_on_one_line)
{
	struct consumed_knots k = {0};
	struct consumed_line l;
	struct consumed_count c[500];

	/* Three digits of millions: 1.05M. */
	for (size_t i = 0; i < 500; i++)
		c[i] = (struct consumed_count){
			(double)i + 1, round(4096 * ((double)i + 1) / 1e4) * 1e4, 5e3};
	ck_assert(consumed_lay(&k, c, 500, &l));
	ck_assert_uint_le(l.count, 3);
	ck_assert_double_eq_tol(consumed_batch(&k, l, 250), 4096, 60);
	array_release(&k.list);
}
END_TEST

START_TEST(knows_nothing_of_less_than_two_knots)
{
	struct consumed_knots k = {0};
	struct consumed_line l;
	struct consumed_count c = {5, 80, 0};

	ck_assert(consumed_lay(&k, &c, 1, &l));
	ck_assert(isnan(consumed_at(&k, l, 5)));
	ck_assert(isnan(consumed_step(&k, l, 80)));
	ck_assert(isnan(consumed_batch(&k, l, 5)));
	ck_assert(consumed_lay(&k, NULL, 0, &l));
	ck_assert(isnan(consumed_at(&k, l, 0)));
	array_release(&k.list);
}
END_TEST

/* Attempts --------------------------------------------------------------------------------------
 */

#define NOISE 0.04
#define UNIT 4 /* samples whose loss is one number */

static struct curve_maker m;
static struct stitch s;
static struct error e;
static struct resume_check checks[16];

static void work_out(const struct stitch_options *o)
{
	struct stitch_options none = {.first = NAN, .last = NAN};

	e = ERROR_INIT;
	ck_assert_msg(stitch_build(&s, &m.log, o ? o : &none, &e) == RP_OK, "%s", e.text);
}

static void end(void)
{
	stitch_release(&s);
	maker_end(&m);
}

/* What an attempt logs. */
struct logged {
	int first, last, batch;
	int read;    /* the first sample that it reads */
	int counted; /* what its counter said before; -1: it logs none */
	bool size;   /* it logs the batch */
};

/* The loss of a step is the mean over its samples, which is what the same samples have in common.
 */
static double loss_of(int step, int begin, int batch)
{
	double sum = 0;

	for (int i = begin; i < begin + batch; i += UNIT)
		sum += noise_of_batch(7, (uint64_t)(i / UNIT));
	return 2 + 1.0 / (step + 20) + NOISE * 2 * sum * UNIT / batch;
}

static void write_attempt(const struct logged *a)
{
	int read = a->read, counted = a->counted;

	for (int i = a->first; i <= a->last; i++) {
		maker_point(&m, CURVE_LOSS, i, loss_of(i, read, a->batch));
		read += a->batch;
		counted += a->batch;
		if (a->counted >= 0)
			maker_point(&m, CURVE_SAMPLE_COUNT, i, counted);
		if (a->size)
			maker_point(&m, CURVE_BATCH, i, a->batch);
	}
}

static void two(const struct logged *a, const struct logged *b)
{
	maker_begin(&m);
	maker_file(&m, "log", "console");
	write_attempt(a);
	write_attempt(b);
	work_out(NULL);
	ck_assert_uint_eq(s.attempts.count, 2);
}

static const struct logged before = {1, 460, 16, 0, 0, false};
static const struct logged soon_dead = {1, 402, 16, 0, 0, false};

static const struct batch_case {
	const char *what;
	struct logged after;
	uint8_t outcome;
} cases[] = {
	{"twice", {401, 600, 32, 6400, 6400, false}, RESUME_MATCHES},
	{"half", {401, 600, 8, 6400, 6400, false}, RESUME_MATCHES},
	{"half as much again", {401, 600, 24, 6400, 6400, false}, RESUME_MATCHES},
	{"a quarter", {401, 700, 4, 6400, 6400, false}, RESUME_MATCHES},
	{"twice, from the top", {401, 600, 32, 0, 6400, false}, RESUME_DIFFERS},
	{"half, 20 steps on", {401, 600, 8, 6720, 6400, false}, RESUME_DIFFERS},
	/* The dead branch has half of the first step. */
	{"four times, soon dead", {401, 440, 64, 6400, 6400, false}, RESUME_ALONE},
};

START_TEST(compares_over_the_same_samples)
{
	const struct batch_case *c = &cases[_i];

	two(c->outcome == RESUME_ALONE ? &soon_dead : &before, &c->after);
	ck_assert_uint_eq(s.by, CURVE_SAMPLES);
	ck_assert_uint_eq(resume_check_all(&s, checks), 1);
	ck_assert_msg(checks[0].by_amount, "%s", c->what);
	ck_assert_msg(checks[0].outcome == c->outcome, "%s: %u", c->what, checks[0].outcome);
	ck_assert_double_eq_tol(checks[0].before, 16, 1e-3);
	ck_assert_double_eq_tol(checks[0].after, c->after.batch, 1e-3);
	end();
}
END_TEST

START_TEST(compares_by_steps_where_the_batch_stays)
{
	two(&before, &(struct logged){401, 600, 16, 6400, 6400, false});
	ck_assert_uint_eq(s.by, CURVE_STEPS);
	ck_assert_uint_eq(resume_check_all(&s, checks), 1);
	ck_assert(!checks[0].by_amount);
	ck_assert_uint_eq(checks[0].outcome, RESUME_MATCHES);
	end();
}
END_TEST

START_TEST(takes_the_batch_that_is_logged)
{
	two(&(struct logged){1, 460, 16, 0, -1, true},
		&(struct logged){401, 600, 32, 6400, -1, true});
	ck_assert_uint_eq(s.consumed.items[1].how, CONSUMED_BY_SIZES);
	ck_assert_double_eq_tol(stitch_amount(&s, 1, 401), 6432, 1e-3);
	ck_assert_uint_eq(resume_check_all(&s, checks), 1);
	ck_assert_uint_eq(checks[0].outcome, RESUME_MATCHES);
	end();
}
END_TEST

START_TEST(takes_a_batch_that_counts_for_no_size)
{
	maker_begin(&m);
	maker_file(&m, "log", "console");
	for (int i = 1; i <= 100; i++) {
		maker_point(&m, CURVE_LOSS, i, loss_of(i, 16 * i, 16));
		maker_point(&m, CURVE_BATCH, i, i);
	}
	work_out(NULL);
	ck_assert_uint_eq(s.unit, CURVE_UNITS);
	ck_assert_uint_eq(s.by, CURVE_STEPS);
	end();
}
END_TEST

/* Tokens of each step go up and down, and are no count. */
START_TEST(takes_no_sizes_for_a_count)
{
	maker_begin(&m);
	maker_file(&m, "log", "console");
	for (int i = 1; i <= 200; i++) {
		maker_point(&m, CURVE_LOSS, i, loss_of(i, 16 * i, 16));
		maker_point(&m, CURVE_TOKEN_COUNT, i, 4000 + i * 7919 % 101);
	}
	work_out(NULL);
	ck_assert_uint_eq(s.attempts.count, 1);
	ck_assert_uint_eq(s.unit, CURVE_UNITS);
	end();
}
END_TEST

static void say(const char *text)
{
	maker_mark(&m, CURVE_LAUNCH, NAN, "");
	maker_mark(&m, CURVE_SETTING, NAN, text);
}

static void two_settings(const char *first, const char *second, int read)
{
	maker_begin(&m);
	maker_file(&m, "1.log", "console");
	say(first);
	write_attempt(&(struct logged){1, 460, 16, 0, -1, false});
	maker_file(&m, "2.log", "console");
	say(second);
	write_attempt(&(struct logged){401, 600, 32, read, -1, false});
	work_out(NULL);
	ck_assert_uint_eq(resume_check_all(&s, checks), 1);
}

START_TEST(takes_the_batch_that_the_launch_says)
{
	two_settings("global_batch_size=16", "global_batch_size=32", 6400);
	ck_assert_uint_eq(s.consumed.items[1].how, CONSUMED_BY_SETTING);
	ck_assert_uint_eq(checks[0].outcome, RESUME_MATCHES);
	end();
}
END_TEST

START_TEST(does_not_check_a_batch_of_which_only_a_part_is_known)
{
	two_settings("gradient_accumulation_steps=2", "gradient_accumulation_steps=4", 0);
	ck_assert_uint_eq(s.unit, CURVE_UNITS);
	ck_assert_uint_eq(checks[0].outcome, RESUME_BATCH);
	end();
}
END_TEST

/* But for where it comes again over groups of steps. */
static const struct guess_case {
	int batch, read;
	uint8_t outcome;
} guesses[] = {
	{32, 6400, RESUME_MATCHES},
	{8, 6400, RESUME_MATCHES},
	{32, 0, RESUME_DIFFERS},
	{16, 0, RESUME_DIFFERS},
};

START_TEST(guesses_the_batch_that_no_log_says)
{
	const struct guess_case *c = &guesses[_i];

	two(&(struct logged){1, 460, 16, 0, -1, false},
		&(struct logged){401, 600, c->batch, c->read, -1, false});
	ck_assert_uint_eq(resume_check_all(&s, checks), 1);
	ck_assert_uint_eq(checks[0].outcome, c->outcome);
	ck_assert_int_eq(checks[0].guessed, c->outcome == RESUME_MATCHES);
	if (checks[0].guessed)
		ck_assert_double_eq(checks[0].after, c->batch / 16.0);
	end();
}
END_TEST

START_TEST(numbers_steps_as_the_run_does)
{
	two(&before, &(struct logged){201, 400, 32, 6400, 6400, false});
	ck_assert_double_eq(s.attempts.items[1].renumbered, 200);
	ck_assert_double_eq(s.attempts.items[1].from, 400);
	ck_assert_double_eq(s.attempts.items[1].first_x, 401);
	ck_assert_uint_eq(s.attempts.items[0].dead, 60);
	ck_assert_uint_eq(resume_check_all(&s, checks), 1);
	ck_assert_uint_eq(checks[0].outcome, RESUME_MATCHES);
	end();
}
END_TEST

/* The near miss: step 200 was saved, and is where the run was rolled back to. */
START_TEST(keeps_the_steps_of_a_run_that_was_rolled_back)
{
	double saves[] = {200, 400};
	struct stitch_options o = {.first = NAN, .last = NAN, .saves = saves, .save_count = 2};

	maker_begin(&m);
	maker_file(&m, "log", "console");
	write_attempt(&before);
	write_attempt(&(struct logged){201, 400, 32, 3200, 6400, false});
	work_out(&o);
	ck_assert_double_eq(s.attempts.items[1].renumbered, 0);
	ck_assert_double_eq(s.attempts.items[1].from, 200);
	ck_assert_double_eq_tol(stitch_amount(&s, 1, 201), 3232, 1e-3);
	end();
}
END_TEST

START_TEST(moves_a_counter_that_began_anew)
{
	two(&before, &(struct logged){401, 600, 16, 6400, 0, false});
	ck_assert_double_eq_tol(s.consumed.items[1].said, 0, 1e-3);
	ck_assert_double_eq_tol(s.consumed.items[1].expected, 6400, 1e-3);
	ck_assert_double_eq_tol(stitch_amount(&s, 1, 500), 8000, 1e-3);
	ck_assert_uint_eq(s.by, CURVE_STEPS);
	end();
}
END_TEST

START_TEST(is_told_in_which_unit_to_show)
{
	struct stitch_options o = {
		.first = NAN, .last = NAN, .by = CURVE_SAMPLES, .by_is_told = true};

	maker_begin(&m);
	maker_file(&m, "log", "console");
	write_attempt(&(struct logged){1, 100, 16, 0, 0, false});
	work_out(&o);
	ck_assert_uint_eq(s.by, CURVE_SAMPLES);
	ck_assert_double_eq_tol(stitch_shown(&s, 0, 50), 800, 1e-3);
	stitch_release(&s);
	o.by = CURVE_TOKENS;
	e = ERROR_INIT;
	ck_assert_int_lt(stitch_build(&s, &m.log, &o, &e), 0);
	ck_assert_int_eq(e.status, RP_E_ARGUMENT);
	ck_assert_ptr_nonnull(strstr(e.text, "--by tokens"));
	maker_end(&m);
}
END_TEST

START_TEST(takes_what_the_caller_knows)
{
	static const struct consumed_knot first[] = {{1, 16}, {460, 7360}},
					  second[] = {{401, 32}, {600, 6400}};
	struct stitch_amounts amounts[] = {{0, first, 2}, {400, second, 2}};
	struct stitch_options o = {
		.first = NAN, .last = NAN, .amounts = amounts, .amount_count = 2};

	maker_begin(&m);
	maker_file(&m, "log", "console");
	write_attempt(&(struct logged){1, 460, 16, 0, -1, false});
	write_attempt(&(struct logged){401, 600, 32, 6400, -1, false});
	work_out(&o);
	ck_assert_uint_eq(s.consumed.items[1].how, CONSUMED_BY_LEDGER);
	ck_assert_uint_eq(s.by, CURVE_SAMPLES);
	ck_assert_uint_eq(resume_check_all(&s, checks), 1);
	ck_assert_uint_eq(checks[0].outcome, RESUME_MATCHES);
	end();
}
END_TEST

/* Earlier samples again -------------------------------------------------------------------------
 */

static const struct again_case {
	struct logged after;
	bool found;
	double source_x, source_last_x; /* of the first attempt */
} agains[] = {
	{{401, 600, 32, 0, 6400, false}, true, 1, 128},
	{{401, 600, 32, 3200, 6400, false}, true, 201, 328},
	{{401, 600, 8, 3200, 6400, false}, true, 201, 264},
	/* The dead branch, which has to come again, and what was never read. */
	{{401, 600, 32, 6400, 6400, false}, false, 0, 0},
	{{401, 600, 8, 6400, 6400, false}, false, 0, 0},
	{{401, 600, 32, 20000, 6400, false}, false, 0, 0},
};

START_TEST(finds_earlier_samples_under_another_batch)
{
	const struct again_case *c = &agains[_i];
	struct resume_repeat r;

	two(&before, &c->after);
	ck_assert_int_eq(resume_find_repeat(&s, 1, &r, &e), RP_OK);
	ck_assert_int_eq(r.found, c->found);
	if (r.found) {
		ck_assert_double_eq(r.source_x, c->source_x);
		ck_assert_double_eq(r.source_last_x, c->source_last_x);
		ck_assert(!r.equal);
	}
	end();
}
END_TEST

/* Ramps -----------------------------------------------------------------------------------------
 */

static int ramp(int step)
{
	return step <= 50 ? 16 : step <= 100 ? 32 : 64;
}

static void write_ramp(int first, int last, int shift, int *counted)
{
	for (int i = first; i <= last; i++) {
		int batch = shift < 0 ? -shift : ramp(i - shift);
		maker_point(&m, CURVE_LOSS, i, loss_of(i, *counted, batch));
		*counted += batch;
		maker_point(&m, CURVE_SAMPLE_COUNT, i, *counted);
	}
}

static const struct ramp_case {
	int shift, last; /* negative: a batch that stays */
	bool found, rises;
} ramps[] = {
	{200, 400, true, true},
	{200, 230, true, false},
	{0, 400, false, false},
	{-16, 400, false, false},
	{-32, 400, false, false},
};

START_TEST(sees_a_ramp_that_begins_anew)
{
	const struct ramp_case *c = &ramps[_i];
	struct resume_ramp r;
	int counted = 0, saved;

	maker_begin(&m);
	maker_file(&m, "log", "console");
	write_ramp(1, 200, 0, &counted);
	saved = counted;
	write_ramp(201, 230, 0, &counted);
	write_ramp(201, c->last, c->shift, &saved);
	work_out(NULL);
	ck_assert_uint_eq(s.attempts.count, 2);
	ck_assert(s.batch_changes);
	resume_find_ramp(&s, 1, &r);
	ck_assert_int_eq(r.found, c->found);
	ck_assert_int_eq(r.rises, c->rises);
	if (r.found) {
		ck_assert_double_eq_tol(r.batch, 16, 1e-3);
		ck_assert_double_eq_tol(r.before, 64, 1e-3);
	}
	end();
}
END_TEST

Suite *suite_consumed(void)
{
	Suite *suite = suite_create("consumed");
	TCase *t = tcase_create("consumed");

	tcase_add_test(t, lays_a_line_with_bends_where_the_batch_changes);
	tcase_add_test(t, lays_rounded_counts_on_one_line);
	tcase_add_test(t, knows_nothing_of_less_than_two_knots);
	tcase_add_loop_test(t, compares_over_the_same_samples, 0, sizeof cases / sizeof *cases);
	tcase_add_test(t, compares_by_steps_where_the_batch_stays);
	tcase_add_test(t, takes_the_batch_that_is_logged);
	tcase_add_test(t, takes_a_batch_that_counts_for_no_size);
	tcase_add_test(t, takes_no_sizes_for_a_count);
	tcase_add_test(t, takes_the_batch_that_the_launch_says);
	tcase_add_test(t, does_not_check_a_batch_of_which_only_a_part_is_known);
	tcase_add_loop_test(
		t, guesses_the_batch_that_no_log_says, 0, sizeof guesses / sizeof *guesses);
	tcase_add_test(t, numbers_steps_as_the_run_does);
	tcase_add_test(t, keeps_the_steps_of_a_run_that_was_rolled_back);
	tcase_add_test(t, moves_a_counter_that_began_anew);
	tcase_add_test(t, is_told_in_which_unit_to_show);
	tcase_add_test(t, takes_what_the_caller_knows);
	tcase_add_loop_test(
		t, finds_earlier_samples_under_another_batch, 0, sizeof agains / sizeof *agains);
	tcase_add_loop_test(t, sees_a_ramp_that_begins_anew, 0, sizeof ramps / sizeof *ramps);
	suite_add_tcase(suite, t);
	return suite;
}
