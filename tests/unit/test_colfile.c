/* SPDX-License-Identifier: MIT */
/* Files of columns, through the real helper and through helpers that misbehave. */
#define _GNU_SOURCE
#include "columns/colfile.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <check.h>

#include "support/bytes.h"

Suite *suite_colfile(void);

#define MOST ((uint64_t)1 << 30)
#define LONG_ROWS 150000u /* more than two chunks */

static const struct colfile_kind kind = {"snapshot", 1, 0};
static char folder[64], file[128], script[128];
static struct error e;
static struct colfile_reader r;
static struct limits limits;

static void begin(void)
{
	snprintf(folder, sizeof folder, "/tmp/reprise-colfile-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(file, sizeof file, "%s/file", folder);
	snprintf(script, sizeof script, "%s/helper", folder);
	e = ERROR_INIT;
	limits = limits_default();
	unsetenv("REPRISE_H5");
}

static void end(void)
{
	unlink(file);
	unlink(script);
	unsetenv("REPRISE_H5");
	ck_assert_int_eq(rmdir(folder), 0); /* nothing was left beside the file */
}

/* The i-th value of the noisy column: nothing that deflates. */
static uint64_t noise(uint64_t i)
{
	i += 0x9e3779b97f4a7c15;
	i = (i ^ i >> 30) * 0xbf58476d1ce4e5b9;
	i = (i ^ i >> 27) * 0x94d049bb133111eb;
	return i ^ i >> 31;
}

static int write_file(void)
{
	const uint32_t numbers[] = {7, 8, 9};
	const int64_t small[] = {-1, INT64_MIN, INT64_MAX};
	const double real = 0.1;
	struct colfile_writer w;

	colfile_create(&w, file, &kind, MOST);
	colfile_put_text(&w, "note", SLICE("caf\303\251"));
	colfile_put_text(&w, "empty", SLICE(""));
	colfile_put_numbers(&w, "numbers", COLUMN_U32, numbers, 3);
	colfile_put_numbers(&w, "real", COLUMN_F64, &real, 1);
	colfile_put_column(&w, "/small", COLUMN_I64, 1, 3);
	colfile_put_rows(&w, small, 3);
	colfile_put_column(&w, "/none", COLUMN_F64, 1, 0);
	colfile_put_column(&w, "/a/b/pairs", COLUMN_U32, 2, LONG_ROWS);
	for (uint32_t i = 0; i < LONG_ROWS; i++)
		colfile_put_rows(&w, (const uint32_t[]){i, i / 3}, 1);
	colfile_put_column(&w, "/a/noise", COLUMN_U64, 1, LONG_ROWS);
	for (uint64_t i = 0; i < LONG_ROWS; i++)
		colfile_put_rows(&w, &(uint64_t){noise(i)}, 1);
	colfile_put_column(&w, "/wide", COLUMN_U8, 625, 40);
	uint8_t row[625];
	for (unsigned i = 0; i < 40; i++) {
		memset(row, (int)i, sizeof row);
		colfile_put_rows(&w, row, 1);
	}
	return colfile_finish(&w, &e);
}

static int open_file(void)
{
	e = ERROR_INIT;
	return colfile_open(&r, AT_FDCWD, file, &kind, &limits, &e);
}

static uint64_t find(const char *path, enum column_type type, uint32_t width)
{
	uint64_t rows;
	bool found;

	ck_assert_int_eq(colfile_find(&r, path, type, width, &rows, &found, &e), RP_OK);
	ck_assert_msg(found, "%s", path);
	return rows;
}

START_TEST(reads_back_what_was_written)
{
	char text[16];
	uint32_t numbers[3];
	double real;
	bool found;

	ck_assert_msg(write_file() == RP_OK, "%s", e.text);
	ck_assert_msg(open_file() == RP_OK, "%s", e.text);
	ck_assert_int_eq(colfile_get_text(&r, "note", text, sizeof text, &found, &e), RP_OK);
	ck_assert(found);
	ck_assert_str_eq(text, "caf\303\251");
	ck_assert_int_eq(colfile_get_text(&r, "empty", text, sizeof text, &found, &e), RP_OK);
	ck_assert(!found);
	ck_assert_int_eq(
		colfile_get_numbers(&r, "numbers", COLUMN_U32, numbers, 3, &found, &e), RP_OK);
	ck_assert(found && numbers[0] == 7 && numbers[2] == 9);
	ck_assert_int_eq(colfile_get_numbers(&r, "real", COLUMN_F64, &real, 1, &found, &e), RP_OK);
	ck_assert(found && real == 0.1);

	int64_t small[3];
	ck_assert_uint_eq(find("/small", COLUMN_I64, 1), 3);
	ck_assert_int_eq(colfile_read(&r, 0, 3, small, &e), RP_OK);
	ck_assert(small[0] == -1 && small[1] == INT64_MIN && small[2] == INT64_MAX);
	ck_assert_uint_eq(find("/none", COLUMN_F64, 1), 0);

	uint32_t *pairs = malloc(LONG_ROWS * 2 * sizeof *pairs);
	ck_assert_uint_eq(find("/a/b/pairs", COLUMN_U32, 2), LONG_ROWS);
	ck_assert_int_eq(colfile_read(&r, 0, LONG_ROWS, pairs, &e), RP_OK);
	for (uint32_t i = 0; i < LONG_ROWS; i++)
		ck_assert(pairs[2 * i] == i && pairs[2 * i + 1] == i / 3);
	/* And from the middle, over a chunk's end. */
	ck_assert_int_eq(colfile_read(&r, 65530, 10, pairs, &e), RP_OK);
	ck_assert(pairs[0] == 65530 && pairs[18] == 65539);
	free(pairs);

	uint64_t *values = malloc(LONG_ROWS * sizeof *values);
	ck_assert_uint_eq(find("/a/noise", COLUMN_U64, 1), LONG_ROWS);
	ck_assert_int_eq(colfile_read(&r, 0, LONG_ROWS, values, &e), RP_OK);
	for (uint64_t i = 0; i < LONG_ROWS; i++)
		ck_assert_uint_eq(values[i], noise(i));
	free(values);

	uint8_t wide[625 * 40];
	ck_assert_uint_eq(find("/wide", COLUMN_U8, 625), 40);
	ck_assert_int_eq(colfile_read(&r, 0, 40, wide, &e), RP_OK);
	ck_assert(wide[0] == 0 && wide[625 * 39] == 39 && wide[sizeof wide - 1] == 39);
	colfile_close(&r);
}
END_TEST

START_TEST(tells_columns_that_are_not_there_from_ones_of_another_kind)
{
	uint64_t rows;
	bool found = true;

	ck_assert_int_eq(write_file(), RP_OK);
	ck_assert_int_eq(open_file(), RP_OK);
	ck_assert_int_eq(colfile_find(&r, "/x/y", COLUMN_U8, 1, &rows, &found, &e), RP_OK);
	ck_assert(!found);
	ck_assert_int_eq(colfile_find(&r, "/small", COLUMN_U64, 1, &rows, &found, &e), RP_E_FORMAT);
	ck_assert(strstr(e.text, "another type"));
	/* After an error it is not asked again. */
	e = ERROR_INIT;
	ck_assert_int_lt(colfile_find(&r, "/small", COLUMN_I64, 1, &rows, &found, &e), 0);
	colfile_close(&r);
	ck_assert_int_eq(open_file(), RP_OK);
	ck_assert_int_eq(colfile_find(&r, "/small", COLUMN_I64, 2, &rows, &found, &e), RP_E_FORMAT);
	ck_assert(strstr(e.text, "another shape"));
	colfile_close(&r);
}
END_TEST

START_TEST(makes_the_same_bytes_of_the_same_columns)
{
	ck_assert_int_eq(write_file(), RP_OK);
	struct bytes first = bytes_of_file(file);
	struct timespec second = {.tv_sec = 1, .tv_nsec = 100000000};
	nanosleep(&second, NULL);
	ck_assert_int_eq(write_file(), RP_OK);
	struct bytes again = bytes_of_file(file);
	ck_assert_uint_eq(first.n, again.n);
	ck_assert_int_eq(memcmp(first.p, again.p, first.n), 0);
	bytes_release(&first);
	bytes_release(&again);
}
END_TEST

START_TEST(stores_small_columns_in_one_piece_and_noise_as_it_is)
{
	ck_assert_int_eq(write_file(), RP_OK);
	struct bytes b = bytes_of_file(file);
	uint64_t some[4];
	for (uint64_t i = 0; i < 4; i++)
		some[i] = noise(i);
	/* Noise is not deflated; a ramp of 1.2 MB is, to a fraction. */
	ck_assert(bytes_find(&b, some, sizeof some, 0) != SIZE_MAX);
	ck_assert_uint_lt(b.n, LONG_ROWS * 8 * 16 / 10);
	bytes_release(&b);
}
END_TEST

static void put_file(const struct bytes *b)
{
	FILE *f = fopen(file, "wb");

	ck_assert_ptr_nonnull(f);
	ck_assert_uint_eq(fwrite(b->p, 1, b->n, f), b->n);
	fclose(f);
}

static void must_refuse(const struct bytes *b, int status, const char *words)
{
	put_file(b);
	ck_assert_int_eq(open_file(), status);
	ck_assert_msg(strstr(e.text, words), "%s", e.text);
}

START_TEST(refuses_what_its_first_block_does_not_vouch_for)
{
	ck_assert_int_eq(write_file(), RP_OK);
	struct bytes good = bytes_of_file(file), b = bytes_copy(&good);

	b.p[b.n - 1] ^= 1;
	must_refuse(&b, RP_E_FORMAT, "SHA-256");
	b.p[b.n - 1] ^= 1;
	b.p[600] ^= 0x80;
	must_refuse(&b, RP_E_FORMAT, "SHA-256");
	b.p[600] ^= 0x80;
	b.n--;
	must_refuse(&b, RP_E_FORMAT, "cut or added to");
	b.n = 512;
	must_refuse(&b, RP_E_FORMAT, "cut or added to");
	b.n = 511;
	must_refuse(&b, RP_E_FORMAT, "too short");
	b.n = 0;
	must_refuse(&b, RP_E_FORMAT, "too short");
	b.n = good.n;
	b.p[0] = 'R';
	must_refuse(&b, RP_E_FORMAT, "no file that reprise wrote");
	b.p[0] = 'r';
	size_t digest = bytes_find(&b, "sha256 ", 7, 0);
	b.p[digest + 8] = 'g';
	must_refuse(&b, RP_E_FORMAT, "digest");
	bytes_release(&b);
	bytes_release(&good);
}
END_TEST

START_TEST(refuses_newer_versions_and_other_kinds_by_name)
{
	ck_assert_int_eq(write_file(), RP_OK);
	struct bytes b = bytes_of_file(file);
	size_t version = bytes_find(&b, "version 1.0", 11, 0);

	/* A newer minor version only adds to the file. */
	b.p[version + 10] = '9';
	put_file(&b);
	ck_assert_int_eq(open_file(), RP_OK);
	colfile_close(&r);
	b.p[version + 8] = '2';
	must_refuse(&b, RP_E_UNSUPPORTED, "version 2.9");
	/* Whatever else that version changed in its first block. */
	b.p[version + 12] = 'B';
	must_refuse(&b, RP_E_UNSUPPORTED, "version 2.9");
	bytes_splice(&b, 8, 8, "ledgered", 8);
	must_refuse(&b, RP_E_UNSUPPORTED, "a reprise ledgered, not a snapshot");
	bytes_release(&b);
}
END_TEST

/* Behind a first block that vouches for it, HDF5 is all that is between damage and us. */
START_TEST(survives_damage_that_the_first_block_vouches_for)
{
	ck_assert_int_eq(write_file(), RP_OK);
	struct bytes b = bytes_of_file(file);

	memset(b.p + 512, 0xff, 400);
	put_file(&b);
	int fd = open(file, O_RDONLY);
	struct userblock u = {.kind = "snapshot", .major = 1, .bytes = b.n - USERBLOCK_BYTES};
	struct source s = {.fd = fd, .name = file, .size = b.n};
	ck_assert_int_eq(userblock_digest(&s, u.digest, &e), RP_OK);
	close(fd);
	userblock_print(&u, (char *)b.p);
	must_refuse(&b, RP_E_FORMAT, "HDF5 does not open it");
	bytes_release(&b);
}
END_TEST

START_TEST(leaves_the_old_file_where_the_new_one_cannot_be_written)
{
	struct colfile_writer w;

	ck_assert_int_eq(write_file(), RP_OK);
	struct bytes before = bytes_of_file(file);
	colfile_create(&w, file, &kind, MOST);
	colfile_put_column(&w, "/short", COLUMN_U8, 1, 10);
	colfile_put_rows(&w, "123", 3);
	ck_assert_int_eq(colfile_finish(&w, &e), RP_E_INTERNAL);
	/* A limit on the file's size is the helper's end. */
	e = ERROR_INIT;
	colfile_create(&w, file, &kind, 4096);
	colfile_put_column(&w, "/long", COLUMN_U64, 1, LONG_ROWS);
	for (uint64_t i = 0; i < LONG_ROWS; i++)
		colfile_put_rows(&w, &(uint64_t){noise(i)}, 1);
	ck_assert_int_lt(colfile_finish(&w, &e), 0);
	struct bytes after = bytes_of_file(file);
	ck_assert(before.n == after.n && memcmp(before.p, after.p, before.n) == 0);
	bytes_release(&before);
	bytes_release(&after);
}
END_TEST

/* A helper that is a script; it talks over descriptor 3, as the real one does. */
static void use_helper(const char *body)
{
	FILE *f = fopen(script, "w");

	ck_assert_ptr_nonnull(f);
	fprintf(f, "#!/bin/sh\n%s\n", body);
	fclose(f);
	ck_assert_int_eq(chmod(script, 0755), 0);
	setenv("REPRISE_H5", script, 1);
}

/* kind, length and number of an answer, each a byte in octal digits. */
#define ANSWER(what, length, number)                                                               \
	"printf 'RPH5\\" what "\\0\\0\\0\\" length "\\0\\0\\0\\" number "\\0\\0\\0' >&3\n"
#define DONE "100"
#define FOUND "101"
#define DATA "102"
#define FAILED "104"
#define STAY "cat <&3 >/dev/null"

static const struct {
	const char *helper, *words;
} bad_helpers[] = {
	{"exit 9", "ended without an answer (status 9)"},
	{"exit 4", "could not enter its sandbox"},
	{"exit 127", "cannot run"},
	{"kill -SEGV $$", "crashed reprise-h5 (signal 11)"},
	{"kill -SYS $$", "leave its sandbox"},
	{"kill -XCPU $$", "busy for too long"},
	{"exec cat /dev/zero >&3", "makes no sense"},
	{"exec yes >&3", "makes no sense"},
	{"printf RPH5 >&3", "ended without an answer"},
	{ANSWER(DONE, "0", "2") STAY, "makes no sense"},
	{ANSWER(FOUND, "10", "1") STAY, "makes no sense"},
	{ANSWER("5", "0", "1") STAY, "makes no sense"},
	{"printf 'RPH5\\100\\0\\0\\0\\0\\0\\0\\377\\1\\0\\0\\0' >&3\n" STAY, "makes no sense"},
	{ANSWER(FAILED, "3", "1") "printf 'a\\033b' >&3\n" STAY, "a\033b"},
};

START_TEST(takes_no_harm_from_a_helper_that_misbehaves)
{
	ck_assert_int_eq(write_file(), RP_OK);
	use_helper(bad_helpers[_i].helper);
	ck_assert_int_lt(open_file(), 0);
	ck_assert_msg(strstr(e.text, bad_helpers[_i].words), "%s", e.text);
}
END_TEST

START_TEST(believes_no_lies_about_rows)
{
	uint64_t rows;
	bool found;
	uint8_t value;

	ck_assert_int_eq(write_file(), RP_OK);
	use_helper(ANSWER(DONE, "0", "1")
			ANSWER(FOUND, "10", "2") "printf '\\1\\0\\0\\0\\0\\0\\0\\0' >&3\n" ANSWER(
				DATA, "2", "3") "printf ab >&3\n" STAY);
	ck_assert_msg(open_file() == RP_OK, "%s", e.text);
	ck_assert_int_eq(colfile_find(&r, "/c", COLUMN_U8, 1, &rows, &found, &e), RP_OK);
	ck_assert(found && rows == 1);
	ck_assert_int_eq(colfile_read(&r, 0, 1, &value, &e), RP_E_FORMAT);
	ck_assert_msg(strstr(e.text, "2 bytes where 1"), "%s", e.text);
	colfile_close(&r);
}
END_TEST

START_TEST(does_not_wait_for_a_helper_that_hangs)
{
	struct helper h;
	struct cursor answer;

	ck_assert_int_eq(write_file(), RP_OK);
	use_helper("exec sleep 1000");
	limits.helper_seconds = 1;
	int fd = open(file, O_RDONLY);
	ck_assert_int_eq(helper_start(&h, fd, 0, &limits, &e), RP_OK);
	ck_assert_int_eq(helper_ask(&h, FRAME_OPEN, FRAME_DONE, &answer, &e), 0);
	ck_assert_msg(strstr(e.text, "from answering for 1 s"), "%s", e.text);
	helper_stop(&h);
	close(fd);
}
END_TEST

START_TEST(says_where_a_helper_is_missing)
{
	ck_assert_int_eq(write_file(), RP_OK);
	setenv("REPRISE_H5", "/nowhere/reprise-h5", 1);
	ck_assert_int_eq(open_file(), RP_E_NOT_FOUND);
	ck_assert(strstr(e.text, "REPRISE_H5 names /nowhere/reprise-h5"));
	/* Nothing is written either. */
	e = ERROR_INIT;
	ck_assert_int_eq(write_file(), RP_E_NOT_FOUND);
}
END_TEST

Suite *suite_colfile(void)
{
	Suite *s = suite_create("colfile");
	TCase *t = tcase_create("colfile");

	tcase_add_checked_fixture(t, begin, end);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, reads_back_what_was_written);
	tcase_add_test(t, tells_columns_that_are_not_there_from_ones_of_another_kind);
	tcase_add_test(t, makes_the_same_bytes_of_the_same_columns);
	tcase_add_test(t, stores_small_columns_in_one_piece_and_noise_as_it_is);
	tcase_add_test(t, refuses_what_its_first_block_does_not_vouch_for);
	tcase_add_test(t, refuses_newer_versions_and_other_kinds_by_name);
	tcase_add_test(t, survives_damage_that_the_first_block_vouches_for);
	tcase_add_test(t, leaves_the_old_file_where_the_new_one_cannot_be_written);
	tcase_add_loop_test(t, takes_no_harm_from_a_helper_that_misbehaves, 0,
		sizeof bad_helpers / sizeof bad_helpers[0]);
	tcase_add_test(t, believes_no_lies_about_rows);
	tcase_add_test(t, does_not_wait_for_a_helper_that_hangs);
	tcase_add_test(t, says_where_a_helper_is_missing);
	suite_add_tcase(s, t);
	return s;
}
