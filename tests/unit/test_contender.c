/* SPDX-License-Identifier: MIT */
#include "api/contender.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

Suite *suite_contender(void);

#define SECOND ((int64_t)1000000000)
#define MOST 40

static struct contenders all;
static struct candidates candidates;
static uint64_t seed;

static unsigned chance(unsigned n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(seed >> 33) % n;
}

static void begin(size_t count)
{
	all = (struct contenders){.count = count,
		.items = calloc(count + 1, sizeof *all.items),
		.by_order = calloc(count + 1, sizeof *all.by_order),
		.by_step = calloc(count + 1, sizeof *all.by_step)};
	candidates = (struct candidates){0};
	for (size_t i = 0; i < count; i++) {
		struct candidate *c = array_push(&candidates.list, 100000);
		*c = (struct candidate){.folder = "", .step = -1, .place = -1};
		all.items[i] = (struct contender){.epoch = -1, .by = SIZE_MAX};
	}
}

static void end(void)
{
	contenders_release(&all);
	array_release(&candidates.list);
}

/* The rule as it is told: who was saved later with a lower number, and did not log the same, kills.
 */
static enum standing plainly(size_t i)
{
	for (size_t n = 0; n < all.count; n++) {
		size_t j = all.by_order[n];
		const struct contender *x = &all.items[j], *y = &all.items[i];
		int64_t later = x->mtime_ns - y->mtime_ns;
		bool differ = contender_logs_differ(x, y);
		if (x->standing == STANDING_REJECTED || x->order >= y->order ||
			(x->log_count > 0 && y->log_count >= x->log_count && !differ))
			continue;
		if (later > 0 && (differ || later > 60 * SECOND))
			return differ && later < SECOND ? STANDING_UNCLEAR : STANDING_DEAD;
		if (differ && later > -SECOND)
			return STANDING_UNCLEAR;
	}
	return STANDING_LIVE;
}

static void give_log(struct contender *k, unsigned branch)
{
	k->log = calloc(4, sizeof *k->log);
	k->log_count = 1 + chance(3);
	for (size_t p = 0; p < k->log_count; p++)
		k->log[p] = (struct log_point){.step = (int64_t)p, .value = p < 1 ? 1 : branch};
}

START_TEST(branches_die_as_they_would_pair_by_pair)
{
	for (seed = 1; seed < 400; seed++) {
		uint64_t kept = seed;
		unsigned logs = chance(3), moment = chance(2) ? 200 : 2;
		begin(1 + chance(MOST));
		for (size_t i = 0; i < all.count; i++) {
			struct contender *k = &all.items[i];
			k->step = (int64_t)chance(30);
			k->mtime_ns = (int64_t)chance(moment) * SECOND / (1 + chance(3));
			k->standing = chance(6) ? STANDING_LIVE : STANDING_REJECTED;
			if (logs == 2 || (logs == 1 && chance(2)))
				give_log(k, chance(2));
		}
		ck_assert(contenders_settle(&all, &candidates));
		for (size_t i = 0; i < all.count; i++)
			if (all.items[i].standing != STANDING_REJECTED)
				ck_assert_msg(all.items[i].standing == plainly(i),
					"round %llu, contender %zu", (unsigned long long)kept, i);
		end();
		seed = kept;
	}
}
END_TEST

START_TEST(a_rollback_kills_the_higher_numbers)
{
	static const struct {
		int64_t step, minute;
		enum standing standing;
	} rows[] = {{6060, 1, STANDING_LIVE}, {6210, 9, STANDING_LIVE}, {6500, 3, STANDING_DEAD},
		{7000, 4, STANDING_DEAD}, {6300, 10, STANDING_LIVE}};

	begin(5);
	for (size_t i = 0; i < 5; i++) {
		all.items[i].step = rows[i].step;
		all.items[i].mtime_ns = rows[i].minute * 60 * SECOND * 2;
	}
	ck_assert(contenders_settle(&all, &candidates));
	for (size_t i = 0; i < 5; i++)
		ck_assert_int_eq(all.items[i].standing, rows[i].standing);
	ck_assert_uint_eq(all.items[3].by, 1);
	ck_assert_uint_eq(all.by_step[2], 4);
	end();
}
END_TEST

/* Which snapshots are of a dead branch: judged before one of a lower number was. */
START_TEST(a_rollback_that_was_judged_kills_what_was_kept)
{
	static const struct {
		int64_t step, saved, kept;
		enum standing standing;
	} rows[] = {{4, 1, 101, STANDING_LIVE}, {8, 2, 109, STANDING_LIVE},
		{12, 3, 103, STANDING_DEAD}, {16, 4, 104, STANDING_DEAD},
		{20, 10, 110, STANDING_LIVE}, {24, 11, 0, STANDING_LIVE}};

	begin(6);
	for (size_t i = 0; i < 6; i++) {
		struct contender *k = &all.items[i];
		k->step = rows[i].step;
		k->mtime_ns = rows[i].saved * 3600 * SECOND;
		k->beside = rows[i].kept > 0;
		k->kept_ns = rows[i].kept ? rows[i].kept * 3600 * SECOND : INT64_MIN;
	}
	ck_assert(contenders_settle(&all, &candidates));
	for (size_t i = 0; i < 6; i++)
		ck_assert_int_eq(all.items[i].standing, rows[i].standing);
	ck_assert_uint_eq(all.items[2].by, 1);
	end();
}
END_TEST

START_TEST(steps_that_begin_again_with_each_epoch_are_seen)
{
	begin(4);
	for (size_t i = 0; i < 4; i++) {
		all.items[i].open = true;
		all.items[i].epoch = (int64_t)i / 2;
		all.items[i].step = i % 2 ? 90 : 40;
		all.items[i].mtime_ns = (int64_t)i * 3600 * SECOND;
	}
	ck_assert(contenders_settle(&all, &candidates));
	for (size_t i = 0; i < 4; i++) {
		ck_assert_int_eq(all.items[i].standing, STANDING_LIVE);
		ck_assert_uint_eq(all.by_order[i], i);
	}
	end();
}
END_TEST

START_TEST(of_launches_the_newest_that_left_something_counts)
{
	static const struct profile lightning = {.name = "lightning", .launch_folder = "version_"};
	static const char *const folders[] = {"a/version_2/c", "a/version_10/c", "a/version_11/c",
		"b/version_1/c", "a/version_2/d"};
	static const enum standing wanted[] = {
		STANDING_EARLIER, STANDING_LIVE, STANDING_REJECTED, STANDING_LIVE, STANDING_LIVE};

	begin(5);
	for (size_t i = 0; i < 5; i++) {
		candidates.list.items[i].folder = folders[i];
		all.items[i].profile = &lightning;
		all.items[i].step = (int64_t)i;
		all.items[i].mtime_ns = (int64_t)i * 3600 * SECOND;
	}
	all.items[2].standing = STANDING_REJECTED;
	ck_assert(contenders_settle(&all, &candidates));
	for (size_t i = 0; i < 5; i++)
		ck_assert_int_eq(all.items[i].standing, wanted[i]);
	ck_assert_uint_eq(all.items[0].by, 1);
	end();
}
END_TEST

Suite *suite_contender(void)
{
	Suite *s = suite_create("contender");
	TCase *t = tcase_create("contender");

	tcase_add_test(t, branches_die_as_they_would_pair_by_pair);
	tcase_add_test(t, a_rollback_kills_the_higher_numbers);
	tcase_add_test(t, a_rollback_that_was_judged_kills_what_was_kept);
	tcase_add_test(t, steps_that_begin_again_with_each_epoch_are_seen);
	tcase_add_test(t, of_launches_the_newest_that_left_something_counts);
	suite_add_tcase(s, t);
	return s;
}
