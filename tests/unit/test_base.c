/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/array.h"
#include "base/cursor.h"
#include "base/deadline.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/names.h"
#include "base/size.h"
#include "base/slice.h"
#include "base/source.h"
#include "base/strbuf.h"

#include <check.h>

/* Check's own, in the way of ours. */
#undef fail

Suite *suite_base(void);

/* Arena */

START_TEST(arena_memory_is_zeroed_aligned_and_apart)
{
	struct arena a;
	unsigned char *last = NULL;
	size_t last_size = 0;

	arena_init(&a, (size_t)64 << 20);
	ck_assert_uint_eq(a.held, 0);
	srand48(3);
	for (int i = 0; i < 20000; i++) {
		size_t size = (size_t)(lrand48() % (i % 1000 == 0 ? 300000 : 100));
		unsigned char *p = arena_alloc(&a, size);
		ck_assert_ptr_nonnull(p);
		ck_assert_uint_eq((uintptr_t)p % 16, 0);
		unsigned char all = 0;
		for (size_t j = 0; j < size; j++)
			all |= p[j];
		ck_assert_uint_eq(all, 0);
		memset(p, 0xa5, size);
		ck_assert(!last || p >= last + last_size || p + size <= last);
		last = p;
		last_size = size;
	}
	ck_assert_uint_le(a.held, a.limit);
	arena_release(&a);
	ck_assert_uint_eq(a.held, 0);
	ck_assert_ptr_nonnull(arena_alloc(&a, 1));
	arena_release(&a);
}
END_TEST

START_TEST(an_arena_keeps_its_limit_and_stays_usable)
{
	struct arena a;
	size_t got = 0;

	arena_init(&a, 10000);
	ck_assert_ptr_null(arena_alloc(&a, 10001));
	ck_assert_ptr_null(arena_alloc(&a, SIZE_MAX));
	ck_assert_ptr_null(arena_alloc(&a, SIZE_MAX - 15));
	ck_assert_ptr_null(arena_array(&a, SIZE_MAX / 2, 3));
	while (arena_alloc(&a, 16))
		got += 16;
	ck_assert_uint_gt(got, 8000);
	ck_assert_uint_le(a.held, 10000);
	arena_release(&a);

	arena_init(&a, 0);
	ck_assert_ptr_null(arena_alloc(&a, 0));
	arena_release(&a);

	/* A limit of "none" must not wrap round. */
	arena_init(&a, SIZE_MAX);
	ck_assert_ptr_nonnull(arena_alloc(&a, 1));
	ck_assert_ptr_null(arena_alloc(&a, SIZE_MAX - 4096));
	ck_assert_ptr_nonnull(arena_alloc(&a, 1));
	arena_release(&a);
}
END_TEST

START_TEST(a_large_object_leaves_the_open_block_open)
{
	struct arena a;

	arena_init(&a, (size_t)64 << 20);
	ck_assert_ptr_nonnull(arena_alloc(&a, 16));
	size_t before = a.held;
	ck_assert_ptr_nonnull(arena_alloc(&a, 2 << 20));
	size_t after = a.held;
	ck_assert_uint_lt(after - before, (2 << 20) + 4096);
	/* The first block has room still. */
	for (int i = 0; i < 100; i++)
		ck_assert_ptr_nonnull(arena_alloc(&a, 16));
	ck_assert_uint_eq(a.held, after);
	arena_release(&a);
}
END_TEST

START_TEST(many_small_objects_cost_few_blocks)
{
	struct arena a;
	size_t used = 0;

	/* A hundred thousand objects of 300 KiB would be too many: each must not open its own
	 * block. */
	arena_init(&a, (size_t)1 << 30);
	for (int i = 0; i < 1000; i++) {
		ck_assert_ptr_nonnull(arena_alloc(&a, 48));
		used += 48;
	}
	ck_assert_uint_lt(a.held, 4 * used);
	arena_release(&a);

	/* Large objects first: the small ones behind them share blocks all the same. */
	used = 0;
	arena_init(&a, (size_t)1 << 30);
	for (int i = 0; i < 20; i++) {
		ck_assert_ptr_nonnull(arena_alloc(&a, 300000));
		ck_assert_ptr_nonnull(arena_alloc(&a, 48));
		used += 300048;
	}
	ck_assert_uint_lt(a.held, 2 * used);
	arena_release(&a);
}
END_TEST

START_TEST(arena_texts_are_terminated_copies)
{
	struct arena a;

	arena_init(&a, 1 << 20);
	ck_assert_str_eq(arena_strdup(&a, (struct slice){"hello world", 5}), "hello");
	ck_assert_str_eq(arena_strdup(&a, (struct slice){0}), "");
	ck_assert_str_eq(arena_printf(&a, "%s-%d", "x", 7), "x-7");
	ck_assert_str_eq(arena_printf(&a, "%s", ""), "");
	ck_assert_ptr_null(arena_printf(&a, "%2000000d", 1));
	arena_release(&a);
}
END_TEST

/* Arrays */

START_TEST(arrays_grow_to_their_most_and_no_further)
{
	ARRAY(uint32_t) a = {0};

	for (uint32_t i = 0; i < 1000; i++) {
		uint32_t *place = array_push(&a, 1000);
		ck_assert_ptr_nonnull(place);
		ck_assert_uint_eq(*place, 0);
		*place = i;
	}
	ck_assert_ptr_null(array_push(&a, 1000));
	ck_assert_uint_eq(a.count, 1000);
	for (uint32_t i = 0; i < 1000; i++)
		ck_assert_uint_eq(a.items[i], i);
	ck_assert(!array_reserve(&a, 1001, 1000));
	ck_assert(!array_reserve(&a, 5, 3));
	array_release(&a);
	ck_assert_ptr_null(a.items);
	ck_assert_uint_eq(a.count + a.capacity, 0);
	ck_assert_ptr_null(array_push(&a, 0));
	ck_assert(!array_reserve(&a, SIZE_MAX / 2, SIZE_MAX));
	ck_assert(array_reserve(&a, 0, 0));
	array_release(&a);
}
END_TEST

START_TEST(a_small_most_bounds_the_capacity)
{
	ARRAY(uint64_t) a = {0};

	for (int i = 0; i < 3; i++)
		ck_assert_ptr_nonnull(array_push(&a, 3));
	ck_assert_uint_le(a.capacity, 3);
	ck_assert_ptr_null(array_push(&a, 3));
	array_release(&a);
}
END_TEST

/* Strbufs */

START_TEST(a_strbuf_is_text_at_any_time)
{
	struct strbuf b;

	strbuf_init(&b, 1000);
	ck_assert_str_eq(strbuf_text(&b), "");
	strbuf_add(&b, "", 0);
	strbuf_add(&b, NULL, 0);
	strbuf_add_slice(&b, (struct slice){0});
	strbuf_pad(&b, 'x', 0);
	ck_assert_str_eq(strbuf_text(&b), "");
	strbuf_add_text(&b, "ab");
	strbuf_add_char(&b, 'c');
	strbuf_pad(&b, '-', 3);
	strbuf_printf(&b, "%d%s", 42, "!");
	strbuf_printf(&b, "%s", "");
	ck_assert_str_eq(strbuf_text(&b), "abc---42!");
	ck_assert(slice_is(strbuf_slice(&b), "abc---42!"));
	strbuf_truncate(&b, 100);
	strbuf_truncate(&b, 3);
	ck_assert_str_eq(strbuf_text(&b), "abc");
	strbuf_clear(&b);
	ck_assert_str_eq(strbuf_text(&b), "");
	for (int i = 0; i < 200; i++)
		strbuf_printf(&b, "%03d,", i);
	ck_assert_uint_eq(b.n, 800);
	ck_assert(!b.failed);
	ck_assert_int_eq(strncmp(b.p + 796, "199,", 5), 0);
	strbuf_release(&b);
	strbuf_add_text(&b, "again");
	ck_assert_str_eq(strbuf_text(&b), "again");
	strbuf_release(&b);
}
END_TEST

START_TEST(a_strbuf_stops_at_its_cap)
{
	for (size_t max = 0; max < 200; max++) {
		struct strbuf b;
		strbuf_init(&b, max);
		for (int i = 0; i < 300; i++)
			strbuf_add_char(&b, 'x');
		/* The NUL counts. */
		ck_assert_uint_eq(b.n, max ? max - 1 : 0);
		ck_assert_uint_le(b.capacity, max);
		ck_assert(b.failed);
		ck_assert_uint_eq(strlen(strbuf_text(&b)), b.n);
		size_t n = b.n;
		strbuf_printf(&b, "%d", 5);
		strbuf_add(&b, "", 0);
		ck_assert_uint_eq(b.n, n);
		strbuf_clear(&b);
		ck_assert(!b.failed);
		strbuf_release(&b);
	}
	struct strbuf b;
	strbuf_init(&b, 10);
	strbuf_add(&b, "0123456789", 10);
	ck_assert(b.failed);
	ck_assert_str_eq(strbuf_text(&b), "");
	strbuf_release(&b);
	strbuf_init(&b, 10);
	strbuf_add(&b, "012345678", 9);
	ck_assert(!b.failed);
	strbuf_release(&b);
}
END_TEST

/* Cursors */

START_TEST(a_strbuf_lives_in_memory_of_the_caller)
{
	char memory[8];
	struct strbuf b;

	strbuf_over(&b, memory, sizeof memory);
	ck_assert_str_eq(strbuf_text(&b), "");
	strbuf_add_text(&b, "abcdefg");
	ck_assert_str_eq(memory, "abcdefg");
	ck_assert(!b.failed);
	strbuf_add_char(&b, 'h');
	ck_assert(b.failed && !b.no_memory);
	ck_assert_str_eq(strbuf_text(&b), "abcdefg");
	strbuf_clear(&b);
	strbuf_add_text(&b, "x");
	ck_assert_ptr_eq(b.p, memory);
	strbuf_release(&b);
}
END_TEST

START_TEST(a_cursor_is_sticky)
{
	static const uint8_t bytes[] = {
		1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18};
	struct cursor c = cursor_over(bytes, sizeof bytes);

	ck_assert_uint_eq(cursor_u8(&c), 1);
	ck_assert_uint_eq(cursor_le16(&c), 0x0302);
	ck_assert_uint_eq(cursor_le32(&c), 0x07060504);
	ck_assert_uint_eq(cursor_le64(&c), 0x0f0e0d0c0b0a0908u);
	ck_assert_uint_eq(cursor_left(&c), 3);
	ck_assert_uint_eq(cursor_le32(&c), 0);
	ck_assert(!cursor_ok(&c));
	ck_assert_uint_eq(cursor_u8(&c), 0);
	ck_assert_uint_eq(cursor_left(&c), 0);
	ck_assert_uint_eq(cursor_slice(&c, 1).n, 0);

	c = cursor_over(bytes, 8);
	ck_assert_uint_eq(cursor_be64(&c), 0x0102030405060708u);
	ck_assert(cursor_ok(&c));
	ck_assert_ptr_nonnull(cursor_take(&c, 0));
	cursor_seek(&c, 8);
	ck_assert(cursor_ok(&c));
	cursor_seek(&c, 6);
	ck_assert_uint_eq(cursor_slice(&c, 2).n, 2);
	ck_assert_ptr_null(cursor_take(&c, SIZE_MAX));
	c = cursor_over(bytes, 8);
	cursor_seek(&c, 9);
	ck_assert(!cursor_ok(&c));
	cursor_seek(&c, 0);
	ck_assert_uint_eq(cursor_u8(&c), 0);
}
END_TEST

/* Sizes and slices */

START_TEST(sizes_saturate)
{
	ck_assert_uint_eq(size_add(1, 2), 3);
	ck_assert_uint_eq(size_add(SIZE_MAX, 1), SIZE_MAX);
	ck_assert_uint_eq(size_mul(3, 4), 12);
	ck_assert_uint_eq(size_mul(SIZE_MAX / 2, 3), SIZE_MAX);
	ck_assert(range_inside(0, 0, 0));
	ck_assert(range_inside(3, 4, 7));
	ck_assert(!range_inside(3, 5, 7));
	ck_assert(range_inside(7, 0, 7));
	ck_assert(!range_inside(8, 0, 7));
	ck_assert(!range_inside(2, UINT64_MAX, 7));
	ck_assert(!range_inside(UINT64_MAX, 2, 7));
}
END_TEST

START_TEST(slices_compare_as_bytes)
{
	struct slice none = {0};

	ck_assert(slice_eq(none, SLICE("")));
	ck_assert(slice_is(none, ""));
	ck_assert(slice_eq(slice_of(NULL), none));
	ck_assert(!slice_eq(SLICE("a"), SLICE("b")));
	ck_assert(!slice_eq(SLICE("a"), SLICE("ab")));
	ck_assert(slice_starts(SLICE("abc"), SLICE("ab")));
	ck_assert(slice_starts(none, none));
	ck_assert(!slice_starts(SLICE("a"), SLICE("ab")));
	ck_assert(slice_ends(SLICE("abc"), SLICE("bc")));
	ck_assert(slice_ends(none, none));
	ck_assert(!slice_ends(SLICE("c"), SLICE("bc")));
	ck_assert_int_lt(slice_compare(SLICE("a"), SLICE("b")), 0);
	ck_assert_int_lt(slice_compare(SLICE("a"), SLICE("ab")), 0);
	ck_assert_int_lt(slice_compare(SLICE("a"), SLICE("\xff")), 0);
	ck_assert_int_gt(slice_compare(SLICE("b"), SLICE("ab")), 0);
	ck_assert_int_eq(slice_compare(none, SLICE("")), 0);
	ck_assert_int_lt(slice_compare(none, SLICE("a")), 0);
	ck_assert_uint_eq(slice_find(SLICE("hello"), SLICE("l")), 2);
	ck_assert_uint_eq(slice_find(SLICE("hello"), SLICE("lo")), 3);
	ck_assert_uint_eq(slice_find(SLICE("hello"), SLICE("")), 0);
	ck_assert_uint_eq(slice_find(SLICE("hello"), SLICE("hello!")), SIZE_MAX);
	ck_assert_uint_eq(slice_find(none, SLICE("x")), SIZE_MAX);
}
END_TEST

START_TEST(names_are_found_among_many)
{
	enum { COUNT = 20000 };
	static struct slice names[COUNT];
	static char texts[COUNT][16];
	struct names set;

	names_init(&set);
	ck_assert_ptr_null(names_find(&set, SLICE("x")));
	for (int i = 0; i < COUNT; i++) {
		names[i] = (struct slice){
			texts[i], (size_t)snprintf(texts[i], sizeof texts[i], "name%d", i)};
		ck_assert_ptr_eq(names_add(&set, &names[i]), &names[i]);
	}
	for (int i = 0; i < COUNT; i++) {
		char text[16];
		struct slice same = {text, (size_t)snprintf(text, sizeof text, "name%d", i)};
		ck_assert_ptr_eq(names_find(&set, same), &names[i]);
		ck_assert_ptr_eq(names_add(&set, &same), &names[i]);
	}
	ck_assert_ptr_null(names_find(&set, SLICE("name")));
	struct slice empty = {0};
	ck_assert_ptr_null(names_find(&set, empty));
	ck_assert_ptr_eq(names_add(&set, &empty), &empty);
	ck_assert_ptr_eq(names_find(&set, SLICE("")), &empty);
	names_release(&set);
}
END_TEST

/* Limits */

START_TEST(limits_have_names_and_defaults)
{
	struct limits l = limits_default();

	ck_assert_uint_eq(l.depth, 500);
	ck_assert(limits_set(&l, SLICE("depth"), 7));
	ck_assert_uint_eq(l.depth, 7);
	ck_assert(!limits_set(&l, SLICE("dept"), 7));
	ck_assert(!limits_set(&l, SLICE("depth "), 7));
	ck_assert(!limits_set(&l, (struct slice){0}, 7));
	ck_assert_uint_eq(limit_row_count * sizeof(uint64_t), offsetof(struct limits, deadline));
	for (size_t i = 0; i < limit_row_count; i++) {
		ck_assert_uint_eq(limit_rows[i].offset, i * sizeof(uint64_t));
		ck_assert(limits_set(&l, slice_of(limit_rows[i].name), limit_rows[i].value));
		ck_assert_uint_gt(strlen(limit_rows[i].text), 0);
	}
	struct limits again = limits_default();
	ck_assert_int_eq(memcmp(&l, &again, sizeof l), 0);
}
END_TEST

/* Errors */

START_TEST(the_first_error_wins)
{
	struct error e = ERROR_INIT;

	ck_assert_int_eq(fail(&e, RP_E_FORMAT, 12, "bad %s", "thing"), RP_E_FORMAT);
	ck_assert_int_eq(fail(&e, RP_E_IO, 13, "later"), RP_E_FORMAT);
	ck_assert_int_eq(fail_os(&e, EIO, "later"), RP_E_FORMAT);
	ck_assert_str_eq(e.text, "bad thing");
	ck_assert_uint_eq(e.offset, 12);
	ck_assert_int_eq(fail_wrap(&e, "file %d", 3), RP_E_FORMAT);
	ck_assert_str_eq(e.text, "file 3: bad thing");
}
END_TEST

START_TEST(an_error_may_go_nowhere)
{
	ck_assert_int_eq(fail(NULL, RP_E_LIMIT, 0, "x"), RP_E_LIMIT);
	ck_assert_int_eq(fail_os(NULL, ENOENT, "x"), RP_E_IO);
	ck_assert_int_eq(fail_wrap(NULL, "x"), RP_E_INTERNAL);
	struct error e = ERROR_INIT;
	ck_assert_int_eq(fail_wrap(&e, "nothing to wrap"), RP_OK);
}
END_TEST

START_TEST(an_error_of_the_system_says_so)
{
	struct error e = ERROR_INIT;

	ck_assert_int_eq(fail_os(&e, ENOSPC, "writing"), RP_E_IO);
	ck_assert_str_eq(e.text, "writing: No space left on device");
	ck_assert_int_eq(e.os_error, ENOSPC);
	ck_assert_uint_eq(e.offset, ERROR_NO_OFFSET);
	e = ERROR_INIT;
	fail_os(&e, 99999, "odd");
	ck_assert_str_eq(e.text, "odd: unknown error");
}
END_TEST

START_TEST(a_refusal_is_no_failure_of_the_system)
{
	static const struct {
		int os_error;
		bool system;
	} rows[] = {{EIO, true}, {ESTALE, true}, {EMFILE, true}, {ENOENT, false}, {EACCES, false},
		{ELOOP, false}};
	struct error e = ERROR_INIT;

	ck_assert(!error_of_system(&e));
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		e = ERROR_INIT;
		fail_os(&e, rows[i].os_error, "opening");
		ck_assert_msg(error_of_system(&e) == rows[i].system, "%s", e.text);
	}
	e = ERROR_INIT;
	fail(&e, RP_E_MEMORY, ERROR_NO_OFFSET, "none");
	ck_assert(error_of_system(&e));
	e = ERROR_INIT;
	fail(&e, RP_E_FORMAT, ERROR_NO_OFFSET, "torn");
	ck_assert(!error_of_system(&e));
}
END_TEST

START_TEST(long_errors_are_cut_and_terminated)
{
	char text[1000];

	memset(text, 'x', sizeof text - 1);
	text[sizeof text - 1] = '\0';
	struct error e = ERROR_INIT;
	fail(&e, RP_E_FORMAT, 0, "%s", text);
	ck_assert_uint_eq(strlen(e.text), sizeof e.text - 1);
	fail_wrap(&e, "%s", text);
	ck_assert_uint_eq(strlen(e.text), sizeof e.text - 1);
	for (int i = 0; i < 50; i++)
		fail_wrap(&e, "p%d", i);
	ck_assert_int_eq(strncmp(e.text, "p49: p48: ", 10), 0);
	ck_assert_uint_eq(strlen(e.text), sizeof e.text - 1);
	e = ERROR_INIT;
	fail_os(&e, ENOENT, "%s", text);
	ck_assert_uint_eq(strlen(e.text), sizeof e.text - 1);
}
END_TEST

START_TEST(every_status_has_a_name)
{
	for (int i = RP_E_INTERNAL; i <= RP_OK; i++)
		for (int j = RP_E_INTERNAL; j < i; j++)
			ck_assert_str_ne(status_name(i), status_name(j));
	ck_assert_str_eq(status_name(1234), "internal");
}
END_TEST

/* Sources */

static char folder[64];

static void make_folder(void)
{
	snprintf(folder, sizeof folder, "%s/reprise-test-XXXXXX", P_tmpdir);
	ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void remove_folder(void)
{
	static const char *const names[] = {"file", "pipe", "link"};
	int fd = open(folder, O_RDONLY | O_DIRECTORY);

	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		unlinkat(fd, names[i], 0);
	unlinkat(fd, "sub", AT_REMOVEDIR);
	close(fd);
	rmdir(folder);
}

static int open_folder(void)
{
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	return fd;
}

static void write_file(int dir, const char *text)
{
	int fd = openat(dir, "file", O_WRONLY | O_CREAT | O_TRUNC, 0600);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

START_TEST(a_source_reads_what_lies_in_the_file)
{
	struct source s;
	struct error e = ERROR_INIT;
	char buffer[16] = {0};
	size_t got;
	int dir = open_folder();

	write_file(dir, "0123456789");
	ck_assert_int_eq(source_open(&s, dir, "file", &e), RP_OK);
	ck_assert_uint_eq(s.size, 10);
	ck_assert_int_eq(source_read(&s, 3, buffer, 4, &e), RP_OK);
	ck_assert_str_eq(buffer, "3456");
	ck_assert_int_eq(source_read(&s, 10, buffer, 0, &e), RP_OK);
	ck_assert_int_eq(source_read_some(&s, 8, buffer, 16, &got, &e), RP_OK);
	ck_assert_uint_eq(got, 2);
	ck_assert_int_eq(source_read_some(&s, UINT64_MAX, buffer, 16, &got, &e), RP_OK);
	ck_assert_uint_eq(got, 0);
	ck_assert_int_eq(source_check(&s, &e), RP_OK);
	ck_assert_int_eq(source_read(&s, 7, buffer, 4, &e), RP_E_FORMAT);
	ck_assert_uint_eq(e.offset, 7);
	source_close(&s);
	source_close(&s);
	close(dir);
}
END_TEST

START_TEST(a_file_that_shrinks_is_a_change)
{
	struct source s;
	struct error e = ERROR_INIT;
	char buffer[16];
	int dir = open_folder();

	write_file(dir, "0123456789");
	ck_assert_int_eq(source_open(&s, dir, "file", &e), RP_OK);
	write_file(dir, "0123");
	ck_assert_int_eq(source_read(&s, 0, buffer, 4, &e), RP_OK);
	ck_assert_int_eq(source_read(&s, 2, buffer, 4, &e), RP_E_CHANGED);
	e = ERROR_INIT;
	ck_assert_int_eq(source_check(&s, &e), RP_E_CHANGED);
	source_close(&s);
	/* Same size, other time. */
	e = ERROR_INIT;
	ck_assert_int_eq(source_open(&s, dir, "file", &e), RP_OK);
	struct timespec times[2] = {{.tv_sec = 5}, {.tv_sec = 5}};
	ck_assert_int_eq(utimensat(dir, "file", times, 0), 0);
	ck_assert_int_eq(source_check(&s, &e), RP_E_CHANGED);
	source_close(&s);
	close(dir);
}
END_TEST

START_TEST(only_regular_files_are_opened)
{
	struct source s;
	struct error e = ERROR_INIT;
	int dir = open_folder();

	ck_assert_int_eq(source_open(&s, dir, "file", &e), RP_E_IO);
	ck_assert_int_eq(e.os_error, ENOENT);
	e = ERROR_INIT;
	ck_assert_int_eq(mkfifoat(dir, "pipe", 0600), 0);
	ck_assert_int_eq(source_open(&s, dir, "pipe", &e), RP_E_UNSUPPORTED);
	ck_assert_ptr_nonnull(strstr(e.text, "named pipe"));
	e = ERROR_INIT;
	ck_assert_int_eq(mkdirat(dir, "sub", 0700), 0);
	ck_assert_int_eq(source_open(&s, dir, "sub", &e), RP_E_UNSUPPORTED);
	ck_assert_ptr_nonnull(strstr(e.text, "directory"));
	e = ERROR_INIT;
	ck_assert_int_eq(source_open(&s, AT_FDCWD, "/dev/zero", &e), RP_E_UNSUPPORTED);
	ck_assert_ptr_nonnull(strstr(e.text, "device"));
	/* A link to a file is the file. */
	e = ERROR_INIT;
	write_file(dir, "x");
	ck_assert_int_eq(symlinkat("file", dir, "link"), 0);
	ck_assert_int_eq(source_open(&s, dir, "link", &e), RP_OK);
	source_close(&s);
	close(dir);
}
END_TEST

START_TEST(bytes_in_memory_are_a_source_too)
{
	struct source s;
	struct error e = ERROR_INIT;
	char buffer[4] = {0};
	size_t got;

	source_from_memory(&s, "abcdef", 6, "memory");
	ck_assert_int_eq(source_read(&s, 1, buffer, 3, &e), RP_OK);
	ck_assert_str_eq(buffer, "bcd");
	ck_assert_int_eq(source_read_some(&s, 5, buffer, 3, &got, &e), RP_OK);
	ck_assert_uint_eq(got, 1);
	ck_assert_int_eq(source_check(&s, &e), RP_OK);
	ck_assert_int_eq(source_read(&s, 5, buffer, 2, &e), RP_E_FORMAT);
	source_close(&s);
	source_from_memory(&s, NULL, 0, "nothing");
	e = ERROR_INIT;
	ck_assert_int_eq(source_read(&s, 0, buffer, 0, &e), RP_OK);
	ck_assert_int_eq(source_read(&s, 0, NULL, 0, &e), RP_OK);
}
END_TEST

START_TEST(a_deadline_passes_and_stays_so)
{
	struct deadline d = {0};

	ck_assert(!deadline_passed(NULL) && !deadline_passed(&d));
	deadline_set(&d, UINT64_MAX);
	ck_assert(!deadline_passed(&d));
	deadline_set(&d, 3600000);
	ck_assert(!deadline_passed(&d));
	deadline_set(&d, 0);
	ck_assert(deadline_passed(&d) && deadline_passed(&d));
	deadline_set(&d, 1);
	while (!deadline_passed(&d))
		;
	ck_assert(deadline_passed(&d));
}
END_TEST

Suite *suite_base(void)
{
	Suite *s = suite_create("base");
	TCase *t = tcase_create("memory");

	tcase_set_timeout(t, 60);
	tcase_add_test(t, arena_memory_is_zeroed_aligned_and_apart);
	tcase_add_test(t, an_arena_keeps_its_limit_and_stays_usable);
	tcase_add_test(t, a_large_object_leaves_the_open_block_open);
	tcase_add_test(t, many_small_objects_cost_few_blocks);
	tcase_add_test(t, arena_texts_are_terminated_copies);
	tcase_add_test(t, arrays_grow_to_their_most_and_no_further);
	tcase_add_test(t, a_small_most_bounds_the_capacity);
	tcase_add_test(t, a_strbuf_is_text_at_any_time);
	tcase_add_test(t, a_strbuf_stops_at_its_cap);
	tcase_add_test(t, a_strbuf_lives_in_memory_of_the_caller);
	suite_add_tcase(s, t);

	t = tcase_create("bytes");
	tcase_add_test(t, a_cursor_is_sticky);
	tcase_add_test(t, sizes_saturate);
	tcase_add_test(t, slices_compare_as_bytes);
	tcase_add_test(t, names_are_found_among_many);
	tcase_add_test(t, limits_have_names_and_defaults);
	tcase_add_test(t, a_deadline_passes_and_stays_so);
	suite_add_tcase(s, t);

	t = tcase_create("errors");
	tcase_add_test(t, the_first_error_wins);
	tcase_add_test(t, an_error_may_go_nowhere);
	tcase_add_test(t, an_error_of_the_system_says_so);
	tcase_add_test(t, a_refusal_is_no_failure_of_the_system);
	tcase_add_test(t, long_errors_are_cut_and_terminated);
	tcase_add_test(t, every_status_has_a_name);
	suite_add_tcase(s, t);

	t = tcase_create("source");
	tcase_add_checked_fixture(t, make_folder, remove_folder);
	tcase_add_test(t, a_source_reads_what_lies_in_the_file);
	tcase_add_test(t, a_file_that_shrinks_is_a_change);
	tcase_add_test(t, only_regular_files_are_opened);
	tcase_add_test(t, bytes_in_memory_are_a_source_too);
	suite_add_tcase(s, t);
	return s;
}
