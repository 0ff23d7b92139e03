/* SPDX-License-Identifier: MIT */
/* Which attempt continues which: attempts, seams, dead parts, forks. */
#include "ledger/lineage.h"

#include <check.h>
#include <stdlib.h>
#include <time.h>

#include "support/logs.h"

Suite *suite_lineage(void);

static struct log g;
static struct lineage n;
static struct error e;

/* Steps first..last of one sample each. */
static struct ledger_attempt *run(int64_t number, int64_t from, int64_t first, int64_t last)
{
	log_attempt(&g, number, from);
	for (int64_t step = first; step <= last; step++) {
		uint64_t id = (uint64_t)step;
		log_step(&g, step, 0, -1, &id, 1);
	}
	return &g.ledger.attempts.items[g.attempt];
}

static void work_out(const struct lineage_told *told, size_t count)
{
	log_end(&g);
	e = ERROR_INIT;
	ck_assert_msg(lineage_build(&n, &g.ledger, ATTEMPT_TRAIN, told, count, &e) == RP_OK, "%s",
		e.text);
}

static void end(void)
{
	lineage_release(&n);
	log_release(&g);
}

static void assert_part(const struct line_part *p, uint32_t attempt, int64_t first, int64_t last)
{
	ck_assert_uint_eq(p->attempt, attempt);
	ck_assert_int_eq(p->first_step, first);
	ck_assert_int_eq(p->last_step, last);
	ck_assert_uint_eq(p->rows, (uint64_t)(last - first + 1));
}

START_TEST(a_rollback_leaves_a_dead_part)
{
	log_begin(&g, 1 << 20, 0);
	run(1, 0, 1, 50);
	run(2, 48, 49, 78);
	run(3, 76, 77, 100);
	work_out(NULL, 0);
	ck_assert_uint_eq(n.line.count, 3);
	assert_part(&n.line.items[0], 0, 1, 48);
	assert_part(&n.line.items[1], 1, 49, 76);
	assert_part(&n.line.items[2], 2, 77, 100);
	ck_assert_uint_eq(n.dead.count, 2);
	assert_part(&n.dead.items[0], 0, 49, 50);
	assert_part(&n.dead.items[1], 1, 77, 78);
	ck_assert_uint_eq(n.rows, 100);
	ck_assert_uint_eq(n.dead_rows, 4);
	ck_assert_uint_eq(n.attempts.items[0].killed_by, 1);
	end();
}
END_TEST

START_TEST(steps_tell_where_the_log_does_not)
{
	log_begin(&g, 1 << 20, 0);
	run(1, LEDGER_NO_STEP, 1, 50);
	run(2, LEDGER_NO_STEP, 41, 60);
	work_out(NULL, 0);
	ck_assert_int_eq(n.attempts.items[1].from_step, 40);
	ck_assert_uint_eq(n.attempts.items[1].how, LINEAGE_COUNTED);
	ck_assert_uint_eq(n.rows, 60);
	end();
}
END_TEST

START_TEST(a_checkpoint_on_a_dead_branch_revives_it)
{
	/* BLOOM's third experiment: back to a checkpoint that a later attempt had not passed. */
	log_begin(&g, 1 << 20, 0);
	run(1, 0, 1, 70);
	run(2, 30, 31, 40);
	run(3, 62, 63, 80);
	work_out(NULL, 0);
	ck_assert_uint_eq(n.attempts.items[2].parent, 0);
	ck_assert_uint_eq(n.attempts.items[2].rivals, 0);
	ck_assert_uint_eq(n.line.count, 2);
	assert_part(&n.line.items[0], 0, 1, 62);
	ck_assert_uint_eq(n.attempts.items[1].alive, 0);
	ck_assert_uint_eq(n.attempts.items[1].killed_by, 2);
	end();
}
END_TEST

START_TEST(of_two_branches_with_the_step_the_newest_is_taken_and_the_other_counted)
{
	log_begin(&g, 1 << 20, 0);
	run(1, 0, 1, 50);
	run(2, 40, 41, 60);
	run(3, 45, 46, 70);
	work_out(NULL, 0);
	ck_assert_uint_eq(n.attempts.items[2].parent, 1);
	ck_assert_uint_eq(n.attempts.items[2].rivals, 1);
	end();

	log_begin(&g, 1 << 20, 0);
	run(1, 0, 1, 50);
	run(2, 40, 41, 60);
	run(3, 45, 46, 70)->from_attempt = 1;
	work_out(NULL, 0);
	ck_assert_uint_eq(n.attempts.items[2].parent, 0);
	ck_assert_uint_eq(n.attempts.items[2].rivals, 0);
	end();
}
END_TEST

START_TEST(what_the_user_tells_comes_first)
{
	static const struct lineage_told told[] = {{2, 30}}, wrong[] = {{7, 30}};

	log_begin(&g, 1 << 20, 0);
	run(1, 0, 1, 50);
	run(2, 40, 41, 60);
	work_out(told, 1);
	ck_assert_int_eq(n.attempts.items[1].from_step, 30);
	ck_assert_uint_eq(n.attempts.items[0].alive, 30);
	lineage_release(&n);
	ck_assert_int_eq(lineage_build(&n, &g.ledger, ATTEMPT_TRAIN, wrong, 1, &e), RP_E_ARGUMENT);
	end();
}
END_TEST

START_TEST(other_kinds_of_attempt_stay_apart)
{
	log_begin(&g, 1 << 20, 0);
	run(1, 0, 1, 50);
	run(2, 0, 1, 90)->kind = ATTEMPT_REFERENCE;
	run(3, 40, 41, 44)->kind = ATTEMPT_REHEARSAL;
	run(4, 40, 41, 60);
	work_out(NULL, 0);
	ck_assert_uint_eq(n.members, 2);
	ck_assert_uint_eq(n.rows, 60);
	lineage_release(&n);
	/* The rehearsal as if it came next. */
	ck_assert_int_eq(lineage_build_to(&n, &g.ledger, ATTEMPT_TRAIN, 2, NULL, 0, &e), RP_OK);
	ck_assert_uint_eq(n.last, 2);
	ck_assert_uint_eq(n.rows, 44);
	end();
}
END_TEST

START_TEST(steps_that_were_not_logged_are_a_gap)
{
	log_begin(&g, 1 << 20, 0);
	run(1, 0, 1, 45);
	run(2, 50, 51, 60);
	run(3, 60, 61, 60); /* consumed nothing */
	work_out(NULL, 0);
	ck_assert_uint_eq(n.attempts.items[1].parent, 0);
	ck_assert_int_eq(n.attempts.items[1].gap, 5);
	ck_assert_uint_eq(n.rows, 55);
	ck_assert_uint_eq(n.last, 2);
	end();
}
END_TEST

START_TEST(a_checkpoint_belongs_to_the_newest_branch_that_reached_it)
{
	log_begin(&g, 1 << 20, 0);
	run(1, 0, 1, 50);
	run(2, 40, 41, 60);
	work_out(NULL, 0);
	struct lineage_branch old = lineage_branch_of(&n, 30, NULL, NULL);
	struct lineage_branch both = lineage_branch_of(&n, 45, NULL, NULL);
	ck_assert(old.attempt == 0 && old.alive && old.rivals == 0);
	ck_assert(both.attempt == 1 && both.alive && both.rivals == 1);
	ck_assert_uint_eq(lineage_branch_of(&n, 99, NULL, NULL).attempt, LEDGER_NONE);
	bool reached;
	ck_assert_uint_eq(lineage_consumed(&n, 45, &reached), 45);
	ck_assert(reached);
	end();
}
END_TEST

START_TEST(a_hundred_thousand_attempts_are_worked_out)
{
	log_begin(&g, 64 << 20, 0);
	for (int64_t i = 0; i < 100000; i++)
		run(i + 1, i, i + 1, i + 2);
	work_out(NULL, 0);
	ck_assert_uint_eq(n.line.count, 100000);
	ck_assert_uint_eq(n.rows, 100001);
	ck_assert_uint_eq(n.dead_rows, 99999);
	end();
}
END_TEST

/* Against walking back from every attempt with no tree at all. */
START_TEST(lines_are_what_brute_force_says)
{
	uint64_t seed = (uint64_t)_i;

	log_begin(&g, 1 << 20, 0);
	int64_t first[12], last[12];
	int parent[12];
	int count = 2 + (int)(log_random(&seed) % 10);
	for (int i = 0; i < count; i++) {
		int64_t from = i == 0 ? 0 : (int64_t)(log_random(&seed) % 25);
		first[i] = from + 1;
		last[i] = from + 1 + (int64_t)(log_random(&seed) % 15);
		run(i + 1, from, first[i], last[i]);
		parent[i] = -1;
		for (int k = i - 1; k >= 0 && parent[i] < 0 && from > 0; k--)
			if (first[k] <= from && from <= last[k])
				parent[i] = k;
		/* Where nobody reached the step, the gap's parent is up the line of the newest. */
		for (int k = i - 1; from > 0 && parent[i] < 0;) {
			parent[i] = k;
			if (first[k] - 1 < from || parent[k] < 0)
				break;
			k = parent[k];
			parent[i] = -1;
		}
	}
	work_out(NULL, 0);
	uint64_t rows = 0;
	int64_t until = INT64_MAX;
	for (int i = count - 1; i >= 0; i = parent[i]) {
		ck_assert_uint_eq(n.attempts.items[i].parent,
			parent[i] < 0 ? LEDGER_NONE : (uint32_t)parent[i]);
		int64_t end_step = last[i] < until ? last[i] : until;
		rows += end_step >= first[i] ? (uint64_t)(end_step - first[i] + 1) : 0;
		until = first[i] - 1;
	}
	ck_assert_uint_eq(n.rows, rows);
	end();
}
END_TEST

Suite *suite_lineage(void)
{
	Suite *s = suite_create("lineage");
	TCase *t = tcase_create("lineage");

	tcase_set_timeout(t, 60);
	tcase_add_test(t, a_rollback_leaves_a_dead_part);
	tcase_add_test(t, steps_tell_where_the_log_does_not);
	tcase_add_test(t, a_checkpoint_on_a_dead_branch_revives_it);
	tcase_add_test(t, of_two_branches_with_the_step_the_newest_is_taken_and_the_other_counted);
	tcase_add_test(t, what_the_user_tells_comes_first);
	tcase_add_test(t, other_kinds_of_attempt_stay_apart);
	tcase_add_test(t, steps_that_were_not_logged_are_a_gap);
	tcase_add_test(t, a_checkpoint_belongs_to_the_newest_branch_that_reached_it);
	tcase_add_test(t, a_hundred_thousand_attempts_are_worked_out);
	tcase_add_loop_test(t, lines_are_what_brute_force_says, 0, 300);
	suite_add_tcase(s, t);
	return s;
}
