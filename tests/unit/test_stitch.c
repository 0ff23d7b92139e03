/* SPDX-License-Identifier: MIT */
/* Attempts, their line, what is dead, and what each resume comes to by the logs alone. */
#include "curve/stitch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "curve/rate.h"
#include "curve/resume.h"
#include "support/curve_maker.h"
#include "support/logs.h"

#include <check.h>

Suite *suite_stitch(void);

#define NOISE 0.04

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

/* Steps first..last, each with the batch of step + shift, and an offset. */
static void steps(int first, int last, int shift, double offset)
{
	for (int i = first; i <= last; i++) {
		maker_point(&m, CURVE_LOSS, i,
			clean_loss(i) + NOISE * noise_of_batch(1, (uint64_t)(i + shift)) + offset);
		maker_point(&m, CURVE_LR, i, 1e-3 * fmin(1, i / 100.0));
	}
}

static void file(const char *name)
{
	maker_file(&m, name, "console");
}

static void assert_attempt(uint32_t i, double first, double last, double from, uint32_t parent)
{
	ck_assert_uint_lt(i, s.attempts.count);
	ck_assert_double_eq(s.attempts.items[i].first_x, first);
	ck_assert_double_eq(s.attempts.items[i].last_x, last);
	ck_assert_double_eq(s.attempts.items[i].from, from);
	ck_assert_uint_eq(s.attempts.items[i].parent, parent);
}

START_TEST(cuts_where_the_step_goes_back)
{
	maker_begin(&m);
	file("log");
	steps(1, 60, 0, 0);
	steps(41, 100, 0, 0);
	work_out(NULL);
	ck_assert_uint_eq(s.attempts.count, 2);
	assert_attempt(0, 1, 60, 0, CURVE_NONE);
	assert_attempt(1, 41, 100, 40, 0);
	ck_assert_uint_eq(s.attempts.items[1].cut, STITCH_CUT_BACK);
	ck_assert_uint_eq(s.attempts.items[0].dead, 20);
	ck_assert_uint_eq(s.tracks.items[0].line.count, 100);
	for (size_t i = 0; i < 100; i++)
		ck_assert_double_eq(
			s.tracks.items[0].values.items[s.tracks.items[0].line.items[i]].x,
			(double)i + 1);
	ck_assert_uint_eq(s.seams.count, 1);
	ck_assert_double_eq(s.seams.items[0].x, 40);
	end();
}
END_TEST

START_TEST(takes_the_loaded_step_and_files_as_they_come)
{
	maker_begin(&m);
	file("1.log");
	steps(10, 10, 0, 0);
	m.resolution = 1e-4f;
	steps(20, 20, 0, 0);
	file("2.log");
	maker_mark(&m, CURVE_LAUNCH, NAN, "");
	maker_mark(&m, CURVE_LOADED, 15, "ckpt-15");
	steps(16, 40, 0, 0);
	work_out(NULL);
	assert_attempt(1, 16, 40, 15, 0);
	ck_assert_uint_eq(s.attempts.items[1].how, STITCH_SAID);
	end();
}
END_TEST

/* Files without clocks, as they are named; the order that comes out; what the notes say of it. */
static const struct named {
	const char *names, *order, *note;
} named[] = {
	{"ab", "ab", NULL},
	{"ba", "ab", "b is put behind a, against their names: it begins at 41"},
	{"cba", "abc", "c is put behind b"},
	{"bca", "abc", "b is put behind a"},
	/* It ends before the other one begins. */
	{"ca", "ac", "c is put behind a"},
	/* A rollback, and one behind steps that no log has: as they are named. */
	{"abd", "abd", "b is taken to be older than d"},
	{"adb", "adb", "d is taken to be older than b"},
	{"acb", "acb", "c is taken to be older than b"},
	/* A second fresh start is the newer one. */
	{"ae", "ae", "a is taken to be older than e"},
	{"ea", "ea", "e is taken to be older than a"},
};

START_TEST(puts_logs_without_clocks_in_order_by_their_steps)
{
	static const struct {
		const char *name;
		int first, last, shift;
	} logs[] = {{"a", 1, 60, 0}, {"b", 41, 100, 0}, {"c", 91, 150, 0}, {"d", 51, 90, 0},
		{"e", 1, 50, 500}};
	const struct named *t = &named[_i];
	size_t n = strlen(t->names);
	bool told = false;

	maker_begin(&m);
	for (size_t i = 0; i < n; i++) {
		const int k = t->names[i] - 'a';
		file(logs[k].name);
		steps(logs[k].first, logs[k].last, logs[k].shift, 0);
	}
	work_out(NULL);
	ck_assert_uint_eq(s.attempts.count, n);
	for (size_t i = 0; i < n; i++)
		ck_assert_int_eq(*m.log.files.items[s.attempts.items[i].file].path, t->order[i]);
	for (size_t i = 0; i < s.notes.count; i++)
		told = told ||
		       (t->note && strncmp(s.notes.items[i], t->note, strlen(t->note)) == 0);
	ck_assert_int_eq(told, t->note != NULL);
	ck_assert(t->note || s.notes.count == 0);
	end();
}
END_TEST

/* Experiments of a 104B model: two rollbacks to 6210, then one to 3000, on the first one's branch.
 */
START_TEST(knows_which_branch_a_checkpoint_is_on)
{
	maker_begin(&m);
	file("1.log");
	steps(1, 7200, 0, 0);
	file("2.log");
	maker_mark(&m, CURVE_LOADED, 6210, "");
	steps(6211, 7000, 0, 0);
	file("3.log");
	maker_mark(&m, CURVE_LOADED, 6210, "");
	steps(6211, 6990, 1, 0);
	file("4.log");
	maker_mark(&m, CURVE_LOADED, 3000, "");
	steps(3001, 5000, 0, 0);
	work_out(NULL);
	assert_attempt(1, 6211, 7000, 6210, 0);
	assert_attempt(2, 6211, 6990, 6210, 0);
	assert_attempt(3, 3001, 5000, 3000, 0);
	ck_assert(isnan(s.attempts.items[1].alive_to));
	ck_assert_uint_eq(s.attempts.items[1].dead, 790);
	ck_assert_uint_eq(s.attempts.items[0].dead, 4200);
	ck_assert_uint_eq(s.tracks.items[0].line.count, 5000);
	end();
}
END_TEST

START_TEST(takes_saves_where_nothing_is_said)
{
	double saves[] = {20, 40, 60};
	struct stitch_options o = {.saves = saves, .save_count = 3, .first = NAN, .last = NAN};

	/* Every tenth step is logged. */
	maker_begin(&m);
	m.mean = CURVE_OF_INTERVAL;
	file("1.log");
	for (int i = 10; i <= 70; i += 10)
		steps(i, i, 0, 0);
	file("2.log");
	for (int i = 50; i <= 100; i += 10)
		steps(i, i, 0, 0);
	work_out(&o);
	assert_attempt(1, 50, 100, 40, 0);
	ck_assert_uint_eq(s.attempts.items[1].how, STITCH_BY_SAVE);
	stitch_release(&s);
	struct stitch_told told = {2, 45};
	o.told = &told;
	o.told_count = 1;
	work_out(&o);
	assert_attempt(1, 50, 100, 45, 0);
	stitch_release(&s);
	told.attempt = 3;
	ck_assert_int_eq(stitch_build(&s, &m.log, &o, &e), RP_E_ARGUMENT);
	maker_end(&m);
}
END_TEST

START_TEST(orders_attempts_by_the_clock)
{
	maker_begin(&m);
	file("a.log");
	m.wall = 2000;
	steps(41, 60, 0, 0);
	file("b.log");
	m.wall = 1000;
	steps(1, 50, 0, 0);
	work_out(NULL);
	assert_attempt(0, 1, 50, 0, CURVE_NONE);
	assert_attempt(1, 41, 60, 40, 0);
	end();
}
END_TEST

START_TEST(merges_two_logs_of_one_launch)
{
	/* The event file counts from 0, has the gradient norm, and ends later. */
	maker_begin(&m);
	file("console.log");
	m.resolution = 1e-4f;
	steps(1, 50, 0, 0);
	steps(31, 80, 0, 0.01);
	maker_file(&m, "events.out.tfevents.1", "tensorboard");
	m.resolution = 0;
	for (int i = 1; i <= 55; i++) {
		maker_point(&m, CURVE_LOSS, i - 1,
			clean_loss(i) + NOISE * noise_of_batch(1, (uint64_t)i));
		maker_point(&m, CURVE_GRAD_NORM, i - 1, 1.5);
	}
	work_out(NULL);
	ck_assert_uint_eq(s.attempts.count, 2);
	assert_attempt(0, 1, 55, 0, CURVE_NONE);
	ck_assert_uint_eq(s.attempts.items[0].files, 2);
	ck_assert_uint_eq(s.notes.count, 1);
	const struct stitch_track *t = stitch_track_of(&s, CURVE_GRAD_NORM);
	ck_assert_uint_eq(t->values.count, 55);
	ck_assert_double_eq(t->values.items[0].x, 1);
	size_t first, last;
	stitch_values_of(&s.tracks.items[0], 0, &first, &last);
	ck_assert_uint_eq(last - first, 55);
	end();
}
END_TEST

START_TEST(keeps_a_perfect_resume_apart)
{
	/* What was resumed gives the same values: still two launches. */
	maker_begin(&m);
	file("1.log");
	steps(1, 50, 0, 0);
	file("2.log");
	steps(31, 80, 0, 0);
	work_out(NULL);
	ck_assert_uint_eq(s.attempts.count, 2);
	assert_attempt(1, 31, 80, 30, 0);
	end();
}
END_TEST

START_TEST(takes_states_of_checkpoints_as_one_line)
{
	maker_begin(&m);
	maker_file(&m, "checkpoint-40/trainer_state.json", "trainer-state");
	steps(1, 40, 0, 0);
	maker_file(&m, "checkpoint-60/trainer_state.json", "trainer-state");
	steps(1, 60, 0, 0);
	/* A later one that is no continuation: it branched off behind 40. */
	maker_file(&m, "checkpoint-80/trainer_state.json", "trainer-state");
	steps(1, 40, 0, 0);
	steps(41, 80, 5000, 0);
	maker_file(&m, "checkpoint-90/trainer_state.json", "trainer-state");
	steps(1, 40, 0, 0);
	steps(41, 90, 5000, 0);
	work_out(NULL);
	ck_assert_uint_eq(s.attempts.count, 2);
	assert_attempt(0, 1, 60, 0, CURVE_NONE);
	assert_attempt(1, 41, 90, 40, 0);
	ck_assert_uint_eq(s.attempts.items[1].cut, STITCH_CUT_BRANCH);
	ck_assert_uint_eq(s.attempts.items[0].dead, 20);
	end();
}
END_TEST

/* The first launch logged 1 to 60 and was given up behind 40; the second one read other batches. */
static void log_of_first(void)
{
	file("first.log");
	steps(1, 60, 0, 0);
}

static void log_of_second(void)
{
	file("second.log");
	steps(41, 100, 500, 0);
}

/* What the run's last state has of both. */
static void carried_state(int last)
{
	maker_file(&m, "trainer_state.json", "trainer-state");
	m.log.files.items[m.log.files.count - 1].span = CURVE_SPAN_RUN;
	steps(1, 40, 0, 0);
	steps(41, last, 500, 0);
}

static void log_of_second_with_its_launch(void)
{
	file("second.log");
	maker_mark(&m, CURVE_LAUNCH, NAN, "");
	steps(41, 100, 500, 0);
}

static void first_state(void)
{
	maker_file(&m, "checkpoint-30/trainer_state.json", "trainer-state");
	m.log.files.items[m.log.files.count - 1].span = CURVE_SPAN_RUN;
	steps(1, 30, 0, 0);
}

static void last_state(void)
{
	carried_state(100);
}

static void middle_state(void)
{
	carried_state(80);
}

typedef void (*write_fn)(void);

static const struct {
	write_fn files[5];
	bool dead; /* the first launch's log is there */
} carried[] = {
	{{log_of_first, log_of_second, last_state}, true},
	{{last_state, log_of_first, log_of_second}, true},
	{{first_state, middle_state, last_state, log_of_second, log_of_first}, true},
	{{log_of_first, last_state}, true},
	{{last_state, log_of_first}, true},
	{{log_of_second_with_its_launch, first_state, last_state}, false},
	{{first_state, last_state, log_of_second_with_its_launch}, false},
};

START_TEST(parts_what_a_state_carries_on)
{
	maker_begin(&m);
	for (size_t i = 0; i < 5 && carried[_i].files[i]; i++)
		carried[_i].files[i]();
	work_out(NULL);
	ck_assert_uint_eq(s.attempts.count, 2);
	assert_attempt(0, 1, carried[_i].dead ? 60 : 40, 0, CURVE_NONE);
	assert_attempt(1, 41, 100, 40, 0);
	ck_assert_uint_eq(s.tracks.items[0].line.count, 100);
	ck_assert_uint_eq(s.attempts.items[0].dead, carried[_i].dead ? 20 : 0);
	end();
}
END_TEST

/* A log whose beginning is lost says nothing of a launch. */
START_TEST(does_not_part_a_state_at_a_log_without_a_beginning)
{
	maker_begin(&m);
	last_state();
	log_of_second();
	work_out(NULL);
	ck_assert_uint_eq(s.attempts.count, 1);
	assert_attempt(0, 1, 100, 0, CURVE_NONE);
	end();
}
END_TEST

START_TEST(leaves_a_file_of_several_writers_whole)
{
	maker_begin(&m);
	file("log");
	for (int i = 1; i <= 200; i++) {
		steps(i + 1000, i + 1000, 0, 0);
		steps(i, i, 0, 0);
	}
	work_out(NULL);
	ck_assert_uint_eq(s.attempts.count, 1);
	ck_assert_uint_eq(s.notes.count, 1);
	end();
}
END_TEST

START_TEST(dates_a_hidden_resume)
{
	double sum = 0;

	maker_begin(&m);
	m.mean = CURVE_OF_INTERVAL;
	m.resolution = 1e-4f;
	maker_file(&m, "trainer_state.json", "trainer-state");
	for (int i = 1; i <= 100; i++) {
		double v =
			round((clean_loss(10 * i) + NOISE * noise_of_batch(2, (uint64_t)i)) * 1e4) /
			1e4;
		maker_point(&m, CURVE_LOSS, 10 * i, v);
		sum += i > 66 ? 10 * v : 0;
	}
	/* The final row. */
	m.series[CURVE_LOSS] = CURVE_NONE;
	m.mean = CURVE_OF_ALL;
	m.resolution = 0;
	maker_point(&m, CURVE_LOSS, 1000, sum / 1000);
	work_out(NULL);
	ck_assert_uint_eq(s.seams.count, 1);
	ck_assert(s.seams.items[0].hidden);
	ck_assert_double_eq(s.seams.items[0].x, 660);
	end();
}
END_TEST

/* Resumes ---------------------------------------------------------------------------------------
 */

/* An attempt of 600 steps, and one that goes on from 500 with other batches or values. */
static const struct resume_check *resume(int shift, double offset, double jitter, uint64_t seed)
{
	maker_begin(&m);
	m.resolution = 1e-4f;
	file("1.log");
	steps(1, 600, 0, 0);
	file("2.log");
	for (int i = 501; i <= 900; i++) {
		maker_point(&m, CURVE_LOSS, i,
			clean_loss(i) + NOISE * noise_of_batch(1, (uint64_t)(i + shift)) + offset +
				jitter * noise_normal(&seed));
		maker_point(&m, CURVE_LR, i, 1e-3);
	}
	work_out(NULL);
	ck_assert_uint_eq(resume_check_all(&s, checks), 1);
	return &checks[0];
}

START_TEST(sees_a_resume_that_matches)
{
	const struct resume_check *c = resume(0, 0, 0, 1);

	ck_assert_uint_eq(c->outcome, RESUME_MATCHES);
	ck_assert_uint_eq(c->loss.pairs, 100);
	ck_assert_uint_eq(c->loss.matched, 100);
	ck_assert(c->first);
	ck_assert_double_eq(c->loss.worst, 0);
	ck_assert_double_eq_tol(c->noise, NOISE * sqrt(2), 0.02);
	end();
}
END_TEST

START_TEST(sees_the_same_batches_under_other_randomness)
{
	const struct resume_check *c = resume(0, 0.01, 0.01, 1);

	ck_assert_uint_eq(c->outcome, RESUME_SAME_BATCHES);
	ck_assert_double_ge(c->correlation, 0.9);
	ck_assert_double_eq_tol(c->offset, 0.01, 0.005);
	end();
}
END_TEST

START_TEST(sees_other_batches)
{
	const struct resume_check *c = resume(7000, 0, 0, 1);

	ck_assert_uint_eq(c->outcome, RESUME_DIFFERS);
	ck_assert_double_le(fabs(c->correlation), 0.4);
	ck_assert(!c->weak);
	end();
}
END_TEST

START_TEST(sees_another_learning_rate)
{
	maker_begin(&m);
	file("1.log");
	steps(1, 90, 0, 0);
	file("2.log");
	for (int i = 51; i <= 120; i++) {
		maker_point(
			&m, CURVE_LOSS, i, clean_loss(i) + NOISE * noise_of_batch(1, (uint64_t)i));
		maker_point(&m, CURVE_LR, i, 1e-5 * (i - 50));
	}
	work_out(NULL);
	ck_assert_uint_eq(resume_check_all(&s, checks), 1);
	ck_assert_uint_eq(checks[0].outcome, RESUME_DIFFERS);
	ck_assert_double_eq(checks[0].lr.x, 51);
	ck_assert_double_eq_tol(checks[0].lr.observed / checks[0].lr.expected, 1.0 / 51, 1e-9);
	end();
}
END_TEST

/* A launch of 200 steps and one that goes on from there, whose rates follow `schedule` from `begun`
 * on. */
static void scheduled(double (*schedule)(int), int begun)
{
	maker_begin(&m);
	file("a.log");
	for (int i = 1; i <= 200; i++) {
		maker_point(&m, CURVE_LOSS, i, clean_loss(i));
		maker_point(&m, CURVE_LR, i, schedule(i));
	}
	file("b.log");
	for (int i = 201; i <= 400; i++) {
		maker_point(&m, CURVE_LOSS, i, clean_loss(i));
		maker_point(&m, CURVE_LR, i, schedule(i - begun));
	}
	work_out(NULL);
}

static double warm_up_and_decay(int i)
{
	return 1e-3 * (i <= 50 ? i / 50.0 : 1 - (i - 50) / 1000.0);
}

static double constant(int i)
{
	(void)i;
	return 1e-3;
}

/* A cycle ends at step 200, where the resume is, and at step 100 too. */
static double cyclic(int i)
{
	return 1e-3 * (1 + (i - 1) % 100);
}

START_TEST(finds_a_schedule_that_starts_again)
{
	static const struct {
		double (*schedule)(int);
		int begun;
		bool found;
	} cases[] = {
		{warm_up_and_decay, 200, true},
		{warm_up_and_decay, 0, false},
		{warm_up_and_decay, 199, false},
		{constant, 200, false},
		{cyclic, 200, false},
	};
	struct rate_change r;

	scheduled(cases[_i].schedule, cases[_i].begun);
	rate_judge(&s, 1, CURVE_NONE, 200, &r);
	ck_assert((r.kind == RATE_RESTARTED) == cases[_i].found);
	if (cases[_i].found) {
		ck_assert_double_eq(r.first_x, 201);
		ck_assert_double_eq(r.last_x, 220);
		ck_assert_double_eq(r.after, 2e-5);
		ck_assert_double_eq(r.before, warm_up_and_decay(200));
	}
	end();
}
END_TEST

START_TEST(does_not_check_intervals_that_do_not_coincide)
{
	maker_begin(&m);
	m.mean = CURVE_OF_INTERVAL;
	file("1.log");
	for (int i = 10; i <= 100; i += 10)
		steps(i, i, 0, 0);
	file("2.log");
	maker_mark(&m, CURVE_LOADED, 45, "");
	steps(50, 50, 0, 0);
	work_out(NULL);
	ck_assert_uint_eq(resume_check_all(&s, checks), 1);
	ck_assert_uint_eq(checks[0].outcome, RESUME_INTERVALS);
	end();
}
END_TEST

START_TEST(does_not_call_a_smooth_curve_a_match)
{
	maker_begin(&m);
	m.resolution = 1e-2f;
	file("1.log");
	for (int i = 1; i <= 600; i++)
		maker_point(
			&m, CURVE_LOSS, i, clean_loss(i) + 0.001 * noise_of_batch(1, (uint64_t)i));
	file("2.log");
	for (int i = 501; i <= 520; i++)
		maker_point(
			&m, CURVE_LOSS, i, clean_loss(i) + 0.001 * noise_of_batch(3, (uint64_t)i));
	work_out(NULL);
	ck_assert_uint_eq(resume_check_all(&s, checks), 1);
	ck_assert_uint_ne(checks[0].outcome, RESUME_MATCHES);
	ck_assert_uint_ne(checks[0].outcome, RESUME_DIFFERS);
	end();
}
END_TEST

/* The losses that a public note prints of one iteration that was trained four times. */
START_TEST(reads_bloom_s_four_resumes)
{
	static const double printed[4][2] = {{1.943883, 1.934353}, {1.943954, 1.934388},
		{1.954172, 1.944868}, {1.945820, 1.936350}};

	maker_begin(&m);
	m.resolution = 1e-6f;
	file("1.log");
	for (int i = 94600; i < 94768; i++)
		maker_point(&m, CURVE_LOSS, i, 1.95 + 0.01 * noise_of_batch(5, (uint64_t)i));
	maker_point(&m, CURVE_LOSS, 94768, printed[0][0]);
	maker_point(&m, CURVE_LOSS, 94769, printed[0][1]);
	static const char *const names[] = {"2.log", "3.log", "4.log"};
	for (int k = 1; k < 4; k++) {
		file(names[k - 1]);
		maker_mark(&m, CURVE_LOADED, 94767, "");
		maker_point(&m, CURVE_LOSS, 94768, printed[k][0]);
		maker_point(&m, CURVE_LOSS, 94769, printed[k][1]);
	}
	work_out(NULL);
	ck_assert_uint_eq(resume_check_all(&s, checks), 3);
	ck_assert_uint_eq(checks[0].reference, 0);
	ck_assert_double_eq_tol(checks[0].offset, 0.00005, 0.00005);
	/* Other numbers, by far less than other batches would give: a warning at the most. */
	for (int k = 0; k < 3; k++)
		ck_assert(checks[k].outcome != RESUME_DIFFERS || checks[k].weak);
	end();
}
END_TEST

/* Repeats and low stretches ---------------------------------------------------------------------
 */

START_TEST(finds_the_same_batches_at_a_lag)
{
	struct resume_repeat r;

	resume(-500, -0.1, 0, 1);
	ck_assert_int_eq(resume_find_repeat(&s, 1, &r, &e), RP_OK);
	ck_assert(r.found);
	ck_assert_double_eq(r.lag, 500);
	ck_assert_uint_eq(r.source, 0);
	ck_assert(!r.equal);
	end();
	/* At lag zero it is what a right resume looks like. */
	resume(0, 0, 0, 1);
	ck_assert_int_eq(resume_find_repeat(&s, 1, &r, &e), RP_OK);
	ck_assert(!r.found);
	end();
}
END_TEST

START_TEST(finds_no_lag_in_other_batches)
{
	/* Of 5000 other seeds: none. */
	for (int k = 0; k < 40; k++) {
		struct resume_repeat r;
		resume(7000 + 1000 * k, 0, 0, 1);
		ck_assert_int_eq(resume_find_repeat(&s, 1, &r, &e), RP_OK);
		ck_assert(!r.found);
		end();
	}
}
END_TEST

/* A resume from 1000 whose first `low` steps are `depth` too low. */
static struct resume_low look_low(int low, double depth, uint64_t run, double until)
{
	struct resume_low r;

	maker_begin(&m);
	m.resolution = 1e-4f;
	file("1.log");
	for (int i = 1; i <= 1000; i++)
		maker_point(&m, CURVE_LOSS, i,
			clean_loss(i) + NOISE * noise_of_batch(run, (uint64_t)i));
	file("2.log");
	for (int i = 1001; i <= 2000; i++)
		maker_point(&m, CURVE_LOSS, i,
			clean_loss(i) + NOISE * noise_of_batch(run, (uint64_t)i) -
				(i <= 1000 + low ? depth : 0));
	work_out(NULL);
	ck_assert_int_eq(resume_find_low(&s, 1, 1000, until, &r, &e), RP_OK);
	end();
	return r;
}

START_TEST(finds_a_falsely_low_stretch)
{
	struct resume_low r = look_low(300, 0.16, 4, NAN);

	ck_assert(r.found);
	ck_assert_double_ge(r.last_x, 1295);
	ck_assert_double_le(r.last_x, 1305);
	ck_assert_double_eq_tol(r.depth, 0.16, 0.03);
	/* With the sample log's word for its length, a shallower one is seen. */
	ck_assert(look_low(300, 0.05, 4, 1300).found);
	ck_assert(!look_low(300, 0.16, 4, 1600).found);
}
END_TEST

START_TEST(finds_no_low_stretch_in_clean_resumes)
{
	/* Of 5000 other seeds: none. */
	for (uint64_t run = 1; run <= 60; run++)
		ck_assert(!look_low(0, 0, run, NAN).found);
}
END_TEST

Suite *suite_stitch(void)
{
	Suite *suite = suite_create("stitch");
	TCase *t = tcase_create("stitch");

	tcase_add_test(t, cuts_where_the_step_goes_back);
	tcase_add_test(t, takes_the_loaded_step_and_files_as_they_come);
	tcase_add_loop_test(t, puts_logs_without_clocks_in_order_by_their_steps, 0,
		sizeof named / sizeof *named);
	tcase_add_test(t, knows_which_branch_a_checkpoint_is_on);
	tcase_add_test(t, takes_saves_where_nothing_is_said);
	tcase_add_test(t, orders_attempts_by_the_clock);
	tcase_add_test(t, merges_two_logs_of_one_launch);
	tcase_add_test(t, keeps_a_perfect_resume_apart);
	tcase_add_test(t, takes_states_of_checkpoints_as_one_line);
	tcase_add_loop_test(t, parts_what_a_state_carries_on, 0, sizeof carried / sizeof *carried);
	tcase_add_test(t, does_not_part_a_state_at_a_log_without_a_beginning);
	tcase_add_test(t, leaves_a_file_of_several_writers_whole);
	tcase_add_test(t, dates_a_hidden_resume);
	tcase_add_test(t, sees_a_resume_that_matches);
	tcase_add_test(t, sees_the_same_batches_under_other_randomness);
	tcase_add_test(t, sees_other_batches);
	tcase_add_test(t, sees_another_learning_rate);
	tcase_add_loop_test(t, finds_a_schedule_that_starts_again, 0, 5);
	tcase_add_test(t, does_not_check_intervals_that_do_not_coincide);
	tcase_add_test(t, does_not_call_a_smooth_curve_a_match);
	tcase_add_test(t, reads_bloom_s_four_resumes);
	tcase_add_test(t, finds_the_same_batches_at_a_lag);
	tcase_add_test(t, finds_no_lag_in_other_batches);
	tcase_add_test(t, finds_a_falsely_low_stretch);
	tcase_add_test(t, finds_no_low_stretch_in_clean_resumes);
	suite_add_tcase(suite, t);
	return suite;
}
