/* SPDX-License-Identifier: MIT */
/* Event files: those that real writers wrote, and what happens to damaged ones. */
#include "curve/crc32c.h"
#include "curve/read.h"
#include "support/bytes.h"
#include "support/curves.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

Suite *suite_curve_tensorboard(void);

#define FIXTURES "fixtures/curve/tensorboard/"
#define ONE_FILE FIXTURES "torch-purge/events.out.tfevents.1700000000.node0.1.0"

static struct curves c;

static void setup(void)
{
	curves_init(&c);
}

static void teardown(void)
{
	curves_release(&c);
}

static const char *const folders[] = {FIXTURES "torch-purge", FIXTURES "torch-zigzag",
	FIXTURES "torch-new-style", FIXTURES "tensorboardx", FIXTURES "tensorboard-writer",
	FIXTURES "tf1-session"};

START_TEST(reads_the_points_that_tensorboard_reads)
{
	curves_match(&c, folders[_i]);
}
END_TEST

START_TEST(says_what_a_writer_took_back)
{
	curves_path(&c, FIXTURES "torch-purge");
	ck_assert_str_eq(curves_marks(&c), "launch steps nan nan \"\" @0\n"
					   "launch steps nan nan \"\" @202\n"
					   "purged steps 13 nan \"\" @202\n");
	ck_assert_str_eq(c.log.files.items[0].writer, "Megatron-LM");
	ck_assert_double_eq(c.log.points.items[0].wall, 1700000002.5);
	ck_assert_int_eq(curves_find(&c, "lm loss")->mean, CURVE_OF_STEP);
	ck_assert_int_eq(curves_find(&c, "lm loss vs samples")->unit, CURVE_SAMPLES);
}
END_TEST

START_TEST(reads_launches_that_took_nothing_back)
{
	curves_path(&c, FIXTURES "torch-zigzag");
	ck_assert_uint_eq(c.log.files.count, 3);
	ck_assert_uint_eq(c.log.marks.count, 3);
	for (size_t i = 0; i < 3; i++) {
		ck_assert_int_eq(c.log.marks.items[i].kind, CURVE_LAUNCH);
		ck_assert_str_eq(c.log.files.items[i].writer, "Transformers");
	}
	ck_assert_int_eq(curves_find(&c, "train/loss")->mean, CURVE_OF_INTERVAL);
	ck_assert_int_eq(curves_find(&c, "eval/loss")->role, CURVE_VALID_LOSS);
}
END_TEST

START_TEST(reads_what_a_session_says)
{
	curves_path(&c, FIXTURES "tf1-session");
	ck_assert_str_eq(curves_marks(&c), "launch steps nan nan \"\" @0\n"
					   "purged steps 0 nan \"\" @0\n"
					   "saved steps 8 nan \"model.ckpt-8\" @8\n"
					   "launch steps nan nan \"\" @12\n"
					   "purged steps 8 nan \"\" @12\n"
					   "saved steps 16 nan \"model.ckpt-16\" @20\n"
					   "finished steps 16 nan \"\" @20\n");
}
END_TEST

START_TEST(knows_event_files_by_content)
{
	struct bytes b = bytes_of_file(ONE_FILE);

	ck_assert_str_eq(curve_recognise("any", b.p, b.n), "tensorboard");
	/* Another TFRecord file: the first record is no event. */
	bytes_splice(&b, 0, 40, NULL, 0);
	ck_assert_ptr_null(curve_recognise("any", b.p, b.n));
	bytes_release(&b);
}
END_TEST

/* Damage --------------------------------------------------------------------------------------- */

static size_t points_of(const struct bytes *b, size_t n)
{
	curves_bytes(&c, "events.out.tfevents.1", b->p, n);
	return c.log.points.count;
}

START_TEST(reads_what_is_there_of_a_torn_file)
{
	struct bytes b = bytes_of_file(ONE_FILE);
	size_t before = 0, torn = 0;

	for (size_t n = 1; n <= b.n; n++) {
		size_t points = points_of(&b, n);
		ck_assert_uint_ge(points, before);
		ck_assert_uint_le(points, before + 1);
		ck_assert_uint_eq(c.log.lost, 0);
		torn += c.log.files.items[0].torn;
		before = points;
	}
	ck_assert_uint_eq(before, 202);
	/* But for the ends of its 1 + 202 records. */
	ck_assert_uint_eq(torn, b.n - 203);
	bytes_release(&b);
}
END_TEST

START_TEST(loses_one_record_by_a_flipped_bit)
{
	struct bytes b = bytes_of_file(ONE_FILE);

	points_of(&b, b.n);
	for (size_t at = 0; at < b.n; at += 3) {
		b.p[at] ^= 1u << at % 8;
		size_t points = points_of(&b, b.n);
		b.p[at] ^= 1u << at % 8;
		ck_assert_msg(points >= 201, "byte %zu: %zu points", at, points);
		ck_assert_msg(
			c.log.lost == 1, "byte %zu: %llu lost", at, (unsigned long long)c.log.lost);
		ck_assert(curves_lost(&c, "sum (CRC-32C) is wrong") ||
			  curves_lost(&c, "length is damaged"));
	}
	bytes_release(&b);
}
END_TEST

START_TEST(finds_the_next_record_behind_a_hole)
{
	struct bytes b = bytes_of_file(ONE_FILE);
	static const uint8_t zeros[3000];

	points_of(&b, b.n);
	bytes_splice(&b, 4000, 0, zeros, sizeof zeros);
	ck_assert_uint_eq(points_of(&b, b.n), 201);
	ck_assert_uint_eq(c.log.lost, 2);
	ck_assert(curves_lost(&c, "bytes in which no whole record begins"));
	/* Zeros to the end, as a crash of the machine leaves them. */
	bytes_release(&b);
	b = bytes_of_file(ONE_FILE);
	bytes_add(&b, zeros, sizeof zeros);
	ck_assert_uint_eq(points_of(&b, b.n), 202);
	ck_assert_uint_eq(c.log.lost, 1);
	bytes_release(&b);
}
END_TEST

START_TEST(gives_up_where_false_records_would_cost_too_much)
{
	struct bytes b = {0};
	struct crc32c crc;
	uint8_t head[12] = {0};

	/* Heads of long records that are right, over data that is not, behind a wrong one. */
	crc32c_init(&crc);
	bytes_add(&b, "not a record", 12);
	uint32_t length = 600000;
	memcpy(head, &length, sizeof length);
	uint32_t sum = crc32c_masked(&crc, head, 8);
	memcpy(head + 8, &sum, sizeof sum);
	for (size_t i = 0; i < 100000; i++)
		bytes_add(&b, head, sizeof head);
	ck_assert_uint_eq(points_of(&b, b.n), 0);
	ck_assert_uint_eq(c.log.lost, 1);
	bytes_release(&b);
}
END_TEST

START_TEST(passes_over_records_that_are_too_long)
{
	struct bytes b = bytes_of_file(ONE_FILE);

	c.limits.line_bytes = 46;
	ck_assert_uint_lt(points_of(&b, b.n), 202);
	ck_assert_uint_gt(c.log.points.count, 100);
	/* The version in front of them is one of the records. */
	ck_assert_uint_eq(c.log.lost + c.log.points.count, 203);
	ck_assert(curves_lost(&c, "longer than 46 bytes"));
	bytes_release(&b);
}
END_TEST

START_TEST(sums_alike_with_and_without_the_instruction)
{
	struct crc32c fast, tables;
	uint8_t bytes[100];

	crc32c_init(&fast);
	crc32c_init_tables(&tables);
	ck_assert_uint_eq(crc32c(&tables, "123456789", 9), 0xe3069283u);
	for (size_t i = 0; i < sizeof bytes; i++)
		bytes[i] = (uint8_t)(i * 151);
	for (size_t n = 0; n <= sizeof bytes; n++)
		ck_assert_uint_eq(crc32c(&fast, bytes, n), crc32c(&tables, bytes, n));
}
END_TEST

Suite *suite_curve_tensorboard(void)
{
	Suite *s = suite_create("curve_tensorboard");
	TCase *t = tcase_create("all");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(
		t, reads_the_points_that_tensorboard_reads, 0, sizeof folders / sizeof *folders);
	tcase_add_test(t, says_what_a_writer_took_back);
	tcase_add_test(t, reads_launches_that_took_nothing_back);
	tcase_add_test(t, reads_what_a_session_says);
	tcase_add_test(t, knows_event_files_by_content);
	tcase_add_test(t, reads_what_is_there_of_a_torn_file);
	tcase_add_test(t, loses_one_record_by_a_flipped_bit);
	tcase_add_test(t, finds_the_next_record_behind_a_hole);
	tcase_add_test(t, gives_up_where_false_records_would_cost_too_much);
	tcase_add_test(t, passes_over_records_that_are_too_long);
	tcase_add_test(t, sums_alike_with_and_without_the_instruction);
	suite_add_tcase(s, t);
	return s;
}
