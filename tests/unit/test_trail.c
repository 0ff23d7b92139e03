/* SPDX-License-Identifier: MIT */
#include "audit/trail.h"

#include <check.h>
#include <math.h>

Suite *suite_trail(void);

#define MOST 12

static struct trail_point points[MOST];

/* A line whose checkpoints are `every` steps apart, with these positions of the schedule; negative:
 * not known. */
static struct trail line_of(double every, const double *positions, size_t n)
{
	for (size_t i = 0; i < n; i++)
		points[i] = (struct trail_point){.name = "",
			.epoch = (double)NAN,
			.step = every * (double)(i + 1),
			.counter = {NAN, positions[i] < 0 ? (double)NAN : positions[i]}};
	return (struct trail){points, n};
}

#define LINE(every, ...)                                                                           \
	line_of(every, (const double[]){__VA_ARGS__},                                              \
		sizeof((const double[]){__VA_ARGS__}) / sizeof(double))

START_TEST(a_counter_that_goes_on_did_not_start_again)
{
	struct trail t = LINE(100, 100, 200, 300, 400);
	ck_assert(!trail_find_restart(&t, TRAIL_SCHEDULE).found);
	ck_assert(trail_find_lag(&t, TRAIL_SCHEDULE).known);
	ck_assert_double_eq(trail_find_lag(&t, TRAIL_SCHEDULE).steps, 0);
	/* One in epochs, or that counts half as fast and happens to stand at the steps since. */
	t = LINE(100, 0, 1, 1, 2);
	ck_assert(!trail_find_restart(&t, TRAIL_SCHEDULE).found);
	t = LINE(100, 50, 100, 150, 200);
	ck_assert(!trail_find_restart(&t, TRAIL_SCHEDULE).found);
	ck_assert(!trail_find_lag(&t, TRAIL_SCHEDULE).known);
	/* One that begins late, once the script's own warm-up is over. */
	t = LINE(100, 0, 0, 100, 200);
	ck_assert(!trail_find_restart(&t, TRAIL_SCHEDULE).found);
}
END_TEST

START_TEST(finds_where_it_started_again)
{
	struct trail t = LINE(100, 100, 200, 100, 200, 300);
	struct trail_restart r = trail_find_restart(&t, TRAIL_SCHEDULE);

	ck_assert(r.found && !r.newest && !r.mended && !r.replaced);
	ck_assert_uint_eq(r.last_good, 1);
	ck_assert_uint_eq(r.first_bad, 2);
	ck_assert_double_eq(r.zero, 200);
	ck_assert_double_eq(trail_find_lag(&t, TRAIL_SCHEDULE).steps, 200);
	ck_assert_uint_eq(trail_find_lag(&t, TRAIL_SCHEDULE).since, 2);
	/* Between two that lie further apart than it had counted: it stands higher than before. */
	t = LINE(100, 100, -1, -1, 300, 400);
	r = trail_find_restart(&t, TRAIL_SCHEDULE);
	ck_assert(r.found && !r.newest);
	ck_assert_double_eq(r.zero, 100);
	/* A resume from a checkpoint that is no longer there. */
	t = LINE(100, 100, 200, 300, 50, 150);
	r = trail_find_restart(&t, TRAIL_SCHEDULE);
	ck_assert_double_eq(r.zero, 350);
	/* In epochs the step of it is not known. */
	t = LINE(100, 3, 5, 7, 1, 3);
	r = trail_find_restart(&t, TRAIL_SCHEDULE);
	ck_assert(r.found && isnan(r.zero));
}
END_TEST

START_TEST(counts_them_and_names_the_newest_sound_one)
{
	struct trail t = LINE(100, 100, 200, 100, 200, 100, 200);
	struct trail_restart r = trail_find_restart(&t, TRAIL_SCHEDULE);

	ck_assert_uint_eq(r.earlier, 1);
	ck_assert_uint_eq(r.last_good, 3);
	ck_assert_uint_eq(r.sound, 1);
	ck_assert_double_eq(r.zero, 400);
}
END_TEST

START_TEST(sees_that_it_was_mended_or_replaced)
{
	struct trail t = LINE(100, 100, 200, 100, 400, 500);
	ck_assert(trail_find_restart(&t, TRAIL_SCHEDULE).mended);
	t = LINE(100, 100, 200, 100, 200);
	points[2].setup[TRAIL_SCHEDULE] = points[3].setup[TRAIL_SCHEDULE] = 1;
	ck_assert(trail_find_restart(&t, TRAIL_SCHEDULE).replaced);
	t = LINE(100, 100, 200, 100);
	ck_assert(trail_find_restart(&t, TRAIL_SCHEDULE).newest);
}
END_TEST

START_TEST(goes_by_epochs_where_no_step_is_known)
{
	struct trail t = LINE(100, 40, 80, 40, 80);
	for (size_t i = 0; i < t.count; i++) {
		points[i].step = NAN;
		points[i].epoch = (double)i;
	}
	struct trail_restart r = trail_find_restart(&t, TRAIL_SCHEDULE);
	ck_assert(r.found && !r.newest && !r.mended && isnan(r.zero));
	ck_assert_uint_eq(r.last_good, 1);
	points[2].counter[TRAIL_SCHEDULE] = 120;
	points[3].counter[TRAIL_SCHEDULE] = 160;
	ck_assert(!trail_find_restart(&t, TRAIL_SCHEDULE).found);
}
END_TEST

START_TEST(says_nothing_of_what_is_not_known)
{
	struct trail t = {0};
	ck_assert(!trail_find_restart(&t, TRAIL_SCHEDULE).found);
	ck_assert(!trail_find_lag(&t, TRAIL_SCHEDULE).known);
	t = LINE(100, 100, 200, 100, -1);
	ck_assert(!trail_find_lag(&t, TRAIL_SCHEDULE).known);
	ck_assert(!trail_find_restart(&t, TRAIL_UPDATES).found);
	/* Steps that start again with each epoch. */
	t = LINE(100, 100, 200, 300, 400);
	points[2].step = 100;
	ck_assert(!trail_find_restart(&t, TRAIL_SCHEDULE).found);
}
END_TEST

Suite *suite_trail(void)
{
	Suite *s = suite_create("trail");
	TCase *t = tcase_create("trail");

	tcase_add_test(t, a_counter_that_goes_on_did_not_start_again);
	tcase_add_test(t, finds_where_it_started_again);
	tcase_add_test(t, counts_them_and_names_the_newest_sound_one);
	tcase_add_test(t, sees_that_it_was_mended_or_replaced);
	tcase_add_test(t, goes_by_epochs_where_no_step_is_known);
	tcase_add_test(t, says_nothing_of_what_is_not_known);
	suite_add_tcase(s, t);
	return s;
}
