/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "base/text.h"

#include <check.h>
#include <errno.h>
#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

Suite *suite_text(void);

#define COUNT(array) (sizeof(array) / sizeof *(array))

static struct strbuf out;

static void setup(void)
{
	strbuf_init(&out, 1 << 20);
}

static void teardown(void)
{
	strbuf_release(&out);
}

/* What was added since the last call. */
static const char *added(void)
{
	static char text[4096];

	ck_assert(!out.failed);
	ck_assert_uint_lt(out.n, sizeof text);
	memcpy(text, strbuf_text(&out), out.n + 1);
	strbuf_clear(&out);
	return text;
}

START_TEST(escapes_what_disturbs_a_terminal)
{
	static const struct {
		struct slice text;
		const char *shown;
	} cases[] = {
		{{"", 0}, ""},
		{{NULL, 0}, ""},
		{{"plain", 5}, "plain"},
		{{"gr\xc3\xb6\xc3\x9f"
		  "e",
			 7},
			"gr\xc3\xb6\xc3\x9f"
			"e"},
		{{"a\0b", 3}, "a\\x00b"},
		{{"\x1b[31m", 5}, "\\x1b[31m"},
		{{"line\nline\r\t", 11}, "line\\x0aline\\x0d\\x09"},
		{{"\x7f", 1}, "\\x7f"},
		{{"\xc2\x9b"
		  "31m",
			 5},
			"\\u{009b}31m"},
		{{"\xe2\x80\xae"
		  "cod",
			 6},
			"\\u{202e}cod"},
		{{"\xe2\x81\xa6", 3}, "\\u{2066}"},
		{{"\xef\xbb\xbf", 3}, "\\u{feff}"},
		{{"\xf3\xa0\x81\x81", 4}, "\\u{e0041}"},
		{{"\xff\xc3", 2}, "\\xff\\xc3"},
		{{"\xed\xa0\x80", 3}, "\\xed\\xa0\\x80"},
		{{"\xc0\xaf", 2}, "\\xc0\\xaf"},
		{{"a\\x00", 5}, "a\\x00"},
		{{"\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x94\xac", 11},
			"\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x94\xac"},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		text_add_escaped(&out, cases[i].text, 100);
		ck_assert_str_eq(added(), cases[i].shown);
	}
}
END_TEST

START_TEST(cuts_long_text_between_characters)
{
	text_add_escaped(&out, SLICE("abcdef"), 6);
	ck_assert_str_eq(added(), "abcdef");
	text_add_escaped(&out, SLICE("abcdef"), 5);
	ck_assert_str_eq(added(), "abcde…");
	text_add_escaped(&out, SLICE("abc\xc3\xb6"), 4);
	ck_assert_str_eq(added(), "abc…");
	text_add_escaped(&out, SLICE("abc"), 0);
	ck_assert_str_eq(added(), "…");
}
END_TEST

START_TEST(every_code_point_survives_decoding)
{
	for (uint32_t c = 0; c < 0x110000; c++) {
		char bytes[4];
		size_t n = 0;
		uint32_t point;
		if (c < 0x80) {
			bytes[n++] = (char)c;
		} else if (c < 0x800) {
			bytes[n++] = (char)(0xc0 | c >> 6);
			bytes[n++] = (char)(0x80 | (c & 63));
		} else if (c < 0x10000) {
			bytes[n++] = (char)(0xe0 | c >> 12);
			bytes[n++] = (char)(0x80 | (c >> 6 & 63));
			bytes[n++] = (char)(0x80 | (c & 63));
		} else {
			bytes[n++] = (char)(0xf0 | c >> 18);
			bytes[n++] = (char)(0x80 | (c >> 12 & 63));
			bytes[n++] = (char)(0x80 | (c >> 6 & 63));
			bytes[n++] = (char)(0x80 | (c & 63));
		}
		struct slice text = {bytes, n};
		bool surrogate = c >= 0xd800 && c < 0xe000;
		if (text_utf8_next(text, &point) != (surrogate ? 0 : n) ||
			point != (surrogate ? 0 : c))
			ck_abort_msg("U+%04X", (unsigned)c);
		text.n--;
		if (text_utf8_next(text, &point) != 0)
			ck_abort_msg("U+%04X cut short", (unsigned)c);
	}
}
END_TEST

START_TEST(a_prefix_splits_no_character)
{
	const struct slice text = SLICE("a\u00e9\u20acb");

	ck_assert_uint_eq(text_whole_prefix(text, 0), 0);
	ck_assert_uint_eq(text_whole_prefix(text, 1), 1);
	ck_assert_uint_eq(text_whole_prefix(text, 2), 1);
	ck_assert_uint_eq(text_whole_prefix(text, 3), 3);
	ck_assert_uint_eq(text_whole_prefix(text, 5), 3);
	ck_assert_uint_eq(text_whole_prefix(text, 6), 6);
	ck_assert_uint_eq(text_whole_prefix(text, 99), 7);
}
END_TEST

START_TEST(utf8_is_judged_as_a_whole)
{
	static const struct {
		struct slice text;
		bool good;
	} cases[] = {
		{{"", 0}, true},
		{{NULL, 0}, true},
		{{"12345678", 8}, true},
		{{"1234567\xc3\xb6"
		  "12345678",
			 17},
			true},
		{{"1234567\xc3", 8}, false},
		{{"12345678\x80", 9}, false},
		{{"\xe0\x80\xaf", 3}, false},
		{{"\xf0\x80\x80\xaf", 4}, false},
		{{"\xf4\x90\x80\x80", 4}, false},
		{{"\xf5\x80\x80\x80", 4}, false},
		{{"\xc1\xbf", 2}, false},
		{{"\xed\xbf\xbf", 3}, false},
		{{"\xee\x80\x80", 3}, true},
	};

	for (size_t i = 0; i < COUNT(cases); i++)
		ck_assert_msg(text_is_utf8(cases[i].text) == cases[i].good, "case %zu", i);
}
END_TEST

START_TEST(bytes_have_units)
{
	static const struct {
		uint64_t n;
		const char *shown;
	} cases[] = {
		{0, "0 B"},
		{1, "1 B"},
		{999, "999 B"},
		{1000, "1.0 kB"},
		{1049, "1.0 kB"},
		{1050, "1.1 kB"},
		{999949, "999.9 kB"},
		{999950, "1.0 MB"},
		{4123456, "4.1 MB"},
		{1000000000, "1.0 GB"},
		{1234567890123, "1.2 TB"},
		{999999999999999999, "1.0 EB"},
		{UINT64_MAX, "18.4 EB"},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		text_add_bytes(&out, cases[i].n);
		ck_assert_str_eq(added(), cases[i].shown);
	}
}
END_TEST

START_TEST(counts_have_groups_of_three)
{
	text_add_count(&out, 0);
	ck_assert_str_eq(added(), "0");
	text_add_count(&out, 999);
	ck_assert_str_eq(added(), "999");
	text_add_count(&out, 1000);
	ck_assert_str_eq(added(), "1 000");
	text_add_count(&out, 1048576);
	ck_assert_str_eq(added(), "1 048 576");
	text_add_count(&out, UINT64_MAX);
	ck_assert_str_eq(added(), "18 446 744 073 709 551 615");
	text_add_signed_count(&out, -1234);
	ck_assert_str_eq(added(), "-1 234");
	text_add_signed_count(&out, INT64_MIN);
	ck_assert_str_eq(added(), "-9 223 372 036 854 775 808");
	text_add_signed_count(&out, INT64_MAX);
	ck_assert_str_eq(added(), "9 223 372 036 854 775 807");
}
END_TEST

START_TEST(magnitudes_are_short)
{
	static const struct {
		uint64_t n;
		const char *shown;
	} cases[] = {
		{0, "0"},
		{1234, "1 234"},
		{999999, "999 999"},
		{1000000, "1.00 M"},
		{9994999, "9.99 M"},
		{9995000, "10.0 M"},
		{9999999, "10.0 M"},
		{103900000, "103.9 M"},
		{999949999, "999.9 M"},
		{999950000, "1.00 B"},
		{1760000000, "1.76 B"},
		{70553706496, "70.6 B"},
		{1500000000000, "1.50 T"},
		{1234567890123456, "1 235 T"},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		text_add_magnitude(&out, cases[i].n);
		ck_assert_str_eq(added(), cases[i].shown);
	}
}
END_TEST

START_TEST(doubles_are_short)
{
	static const struct {
		double v;
		const char *shown;
	} cases[] = {
		{0, "0"},
		{-0.0, "-0"},
		{1, "1"},
		{-1.5, "-1.5"},
		{0.1, "0.1"},
		{1.0 / 3, "0.3333333333333333"},
		{2.7e-4, "0.00027"},
		{1e-4, "0.0001"},
		{9.9e-5, "9.9e-5"},
		{1e15, "1000000000000000"},
		{1e16, "1e16"},
		{1.5e300, "1.5e300"},
		{5e-324, "5e-324"},
		{DBL_MIN, "2.2250738585072014e-308"},
		{DBL_MAX, "1.7976931348623157e308"},
		{9007199254740993.0, "9007199254740992"},
		/* Nearest 16 digits end in ...801, which reads back as the double below. */
		{0x1p-44, "5.684341886080802e-14"},
		{0x1p-24, "5.960464477539063e-8"},
		{0x1p1023, "8.98846567431158e307"},
		{9.5367431640625e-07, "9.5367431640625e-7"},
		{(double)NAN, "NaN"},
		{-(double)INFINITY, "-Infinity"},
		{(double)INFINITY, "Infinity"},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		text_add_double(&out, cases[i].v);
		ck_assert_str_eq(added(), cases[i].shown);
	}
}
END_TEST

static double random_double(void)
{
	uint64_t bits = (uint64_t)mrand48() << 32 ^ (uint32_t)mrand48();
	double v;

	memcpy(&v, &bits, sizeof v);
	return v;
}

/* An assertion that holds costs a message to Check; in long loops only one that fails is made. */

START_TEST(doubles_read_back)
{
	srand48(7);
	for (int i = 0; i < 100000; i++) {
		double v = random_double(), back = 0;
		/* Whole numbers, ordinary magnitudes and powers of two are rare among random bits.
		 */
		if (i % 4 == 1)
			v = (double)(mrand48() >> 3);
		if (i % 4 == 2)
			v = drand48() * pow(10, (double)(i % 30 - 15));
		if (i % 4 == 3)
			v = ldexp(1, (int)(lrand48() % 2098) - 1074);
		if (!isfinite(v))
			continue;
		text_add_double(&out, v);
		if (!text_parse_double(strbuf_slice(&out), &back) ||
			memcmp(&v, &back, sizeof v) != 0)
			ck_abort_msg("%a became %s, %a", v, strbuf_text(&out), back);
		/* One digit less must not do. */
		char fewer[64];
		size_t digits = 0;
		for (size_t j = 0; j < out.n && out.p[j] != 'e'; j++)
			digits += out.p[j] >= '0' && out.p[j] <= '9' &&
				  (digits > 0 || out.p[j] != '0');
		if (digits == 17) {
			snprintf(fewer, sizeof fewer, "%.16g", v);
			if (strtod(fewer, NULL) == v)
				ck_abort_msg("%s is shorter", fewer);
		}
		strbuf_clear(&out);
	}
}
END_TEST

START_TEST(decimals_parse_as_strtod_has_them)
{
	srand48(11);
	for (int i = 0; i < 300000; i++) {
		char text[64];
		uint64_t m = (uint64_t)mrand48() << 32 ^ (uint32_t)mrand48();
		m >>= lrand48() % 60;
		snprintf(text, sizeof text, "%llue%d", (unsigned long long)m,
			(int)(lrand48() % 64) - 40);
		double expected = strtod(text, NULL), v = 0;
		if (!text_parse_double(slice_of(text), &v) || v != expected)
			ck_abort_msg("%s: %a, not %a", text, v, expected);
	}
}
END_TEST

START_TEST(hard_decimals_round_right)
{
	/* Half way between two doubles, and as little as possible off it, with hundreds of digits.
	 */
	static const char half[] = "1.00000000000000011102230246251565404236316680908203125";
	char text[2000];
	double v = 0;

	ck_assert(text_parse_double(slice_of(half), &v));
	ck_assert(v == 1.0);
	int n = snprintf(text, sizeof text, "%s%01000d1", half, 0);
	ck_assert(text_parse_double((struct slice){text, (size_t)n}, &v));
	ck_assert(v == 1.0 + DBL_EPSILON);
	text[n - 1] = '0';
	ck_assert(text_parse_double((struct slice){text, (size_t)n}, &v));
	ck_assert(v == 1.0);
	/* 1 with a thousand zeros before the point and an exponent that takes them back. */
	text[0] = '1';
	memset(text + 1, '0', 1000);
	strcpy(text + 1001, "e-1000");
	ck_assert(text_parse_double(slice_of(text), &v));
	ck_assert(v == 1);
	/* And behind it. */
	text[0] = '.';
	memset(text + 1, '0', 1000);
	strcpy(text + 1001, "25e1002");
	ck_assert(text_parse_double(slice_of(text), &v));
	ck_assert(v == 25);
}
END_TEST

START_TEST(doubles_from_text)
{
	static const struct {
		const char *text;
		bool good;
		double v;
	} cases[] = {
		{"1", true, 1},
		{"-2.5", true, -2.5},
		{"+3", true, 3},
		{".5", true, 0.5},
		{"5.", true, 5},
		{"1e3", true, 1000},
		{"1E+3", true, 1000},
		{"25e-1", true, 2.5},
		{"0e99999999999999999999", true, 0},
		{"1e999", true, (double)INFINITY},
		{"-1e999", true, -(double)INFINITY},
		{"1e-999", true, 0},
		{"1e99999999999999999999", true, (double)INFINITY},
		{"1e-99999999999999999999", true, 0},
		{"inf", true, (double)INFINITY},
		{"-Infinity", true, -(double)INFINITY},
		{"4.9e-324", true, 5e-324},
		{"2.4e-324", true, 0},
		{"007", true, 7},
		{"123456789012345678901234567890", true, 123456789012345678901234567890.0},
		{"", false, 0},
		{".", false, 0},
		{"-", false, 0},
		{"e5", false, 0},
		{"1e", false, 0},
		{"1e+", false, 0},
		{"1 ", false, 0},
		{" 1", false, 0},
		{"1.2.3", false, 0},
		{"0x10", false, 0},
		{"1,5", false, 0},
		{"infinit", false, 0},
		{"nanx", false, 0},
		{"--1", false, 0},
		{"1e5.0", false, 0},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		double v = -77;
		ck_assert_msg(text_parse_double(slice_of(cases[i].text), &v) == cases[i].good, "%s",
			cases[i].text);
		ck_assert_msg(v == (cases[i].good ? cases[i].v : -77), "%s: %g", cases[i].text, v);
	}
	double v = 0;
	ck_assert(text_parse_double(SLICE("NaN"), &v));
	ck_assert(isnan(v));
	ck_assert(text_parse_double(SLICE("-0"), &v));
	ck_assert(v == 0 && signbit(v));
}
END_TEST

START_TEST(numbers_are_the_same_in_every_locale)
{
	/* Any locale with a decimal comma will do; containers often have none. */
	static const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "ru_RU.UTF-8", "de_DE"};
	double v = 0;

	for (size_t i = 0; i < COUNT(names); i++)
		if (setlocale(LC_ALL, names[i]))
			break;
	errno = 5;
	text_add_double(&out, -1234.5);
	ck_assert_str_eq(added(), "-1234.5");
	text_add_rounded(&out, 0.1234, 2);
	ck_assert_str_eq(added(), "0.12");
	text_add_bytes(&out, 1500);
	ck_assert_str_eq(added(), "1.5 kB");
	ck_assert(text_parse_double(SLICE("1.25e300"), &v));
	ck_assert(v == 1.25e300);
	ck_assert(text_parse_double(SLICE("1e999"), &v));
	ck_assert(!text_parse_double(SLICE("1,25"), &v));
	ck_assert_int_eq(errno, 5);
	setlocale(LC_ALL, "C");
}
END_TEST

START_TEST(rounded_doubles_have_few_digits)
{
	static const struct {
		double v;
		int digits;
		const char *shown;
	} cases[] = {
		{0, 3, "0"},
		{1, 3, "1"},
		{2.0 / 3, 3, "0.667"},
		{9.996, 3, "10"},
		{-12.345, 4, "-12.35"},
		{123456, 3, "123000"},
		{1234567, 3, "1.23e6"},
		{0.00012345, 3, "0.000123"},
		{0.000012345, 3, "1.23e-5"},
		{1e-4, 1, "0.0001"},
		{999999, 6, "999999"},
		{5, 0, "5"},
		{0.1, 99, "0.10000000000000001"},
		{(double)NAN, 3, "NaN"},
		{(double)INFINITY, 3, "Infinity"},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		text_add_rounded(&out, cases[i].v, cases[i].digits);
		ck_assert_str_eq(added(), cases[i].shown);
	}
}
END_TEST

START_TEST(integers_from_text_are_whole_and_in_range)
{
	uint64_t u = 5;
	int64_t i = 5;

	ck_assert(text_parse_u64(SLICE("0"), 0, &u) && u == 0);
	ck_assert(text_parse_u64(SLICE("0018"), 18, &u) && u == 18);
	ck_assert(text_parse_u64(SLICE("18446744073709551615"), UINT64_MAX, &u) && u == UINT64_MAX);
	u = 5;
	ck_assert(!text_parse_u64(SLICE("18446744073709551616"), UINT64_MAX, &u));
	ck_assert(!text_parse_u64(SLICE("99999999999999999999999"), UINT64_MAX, &u));
	ck_assert(!text_parse_u64(SLICE("19"), 18, &u));
	ck_assert(!text_parse_u64(SLICE(""), UINT64_MAX, &u));
	ck_assert(!text_parse_u64(SLICE("-1"), UINT64_MAX, &u));
	ck_assert(!text_parse_u64(SLICE("+1"), UINT64_MAX, &u));
	ck_assert(!text_parse_u64(SLICE("1 "), UINT64_MAX, &u));
	ck_assert(!text_parse_u64(SLICE("1\0"), UINT64_MAX, &u));
	ck_assert_uint_eq(u, 5);

	ck_assert(text_parse_i64(SLICE("-9223372036854775808"), INT64_MIN, INT64_MAX, &i));
	ck_assert(i == INT64_MIN);
	ck_assert(text_parse_i64(SLICE("9223372036854775807"), INT64_MIN, INT64_MAX, &i));
	ck_assert(i == INT64_MAX);
	ck_assert(text_parse_i64(SLICE("-0"), 0, 0, &i) && i == 0);
	i = 5;
	ck_assert(!text_parse_i64(SLICE("-9223372036854775809"), INT64_MIN, INT64_MAX, &i));
	ck_assert(!text_parse_i64(SLICE("9223372036854775808"), INT64_MIN, INT64_MAX, &i));
	ck_assert(!text_parse_i64(SLICE("-"), INT64_MIN, INT64_MAX, &i));
	ck_assert(!text_parse_i64(SLICE("--1"), INT64_MIN, INT64_MAX, &i));
	ck_assert(!text_parse_i64(SLICE("-2"), -1, 1, &i));
	ck_assert(!text_parse_i64(SLICE("2"), -1, 1, &i));
	ck_assert_int_eq(i, 5);
}
END_TEST

START_TEST(ranges_have_both_ends_in_order)
{
	int64_t least, most;

	ck_assert(text_parse_range(SLICE("7"), 1, &least, &most) && least == 7 && most == 7);
	ck_assert(text_parse_range(SLICE("7..9"), 1, &least, &most) && least == 7 && most == 9);
	ck_assert(text_parse_range(SLICE("7 .. 7"), 7, &least, &most) && least == 7 && most == 7);
	static const char *const bad[] = {"", "..", "7..", "..7", "9..7", "6..9", "7...9", "7-9"};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		ck_assert(!text_parse_range(slice_of(bad[i]), 7, &least, &most));
}
END_TEST

START_TEST(the_nearest_word_is_offered)
{
	static const char *const words[] = {
		"verify", "compare", "explain", "show", "ls", "get", "resume"};
	static const struct {
		const char *typed, *meant;
	} cases[] = {
		{"verfiy", "verify"},
		{"verify", "verify"},
		{"Verify", "verify"},
		{"comprae", "compare"},
		{"shwo", "show"},
		{"lss", "ls"},
		{"gte", "get"},
		{"explian", "explain"},
		{"frobnicate", NULL},
		{"x", NULL},
		{"", NULL},
		{"resumee", "resume"},
		{"a-word-that-is-much-longer-than-any-command-could-ever-be-and-then-some-more",
			NULL},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		const char *found = text_nearest(cases[i].typed, words, COUNT(words));
		if (cases[i].meant)
			ck_assert_msg(found && strcmp(found, cases[i].meant) == 0, "%s: %s",
				cases[i].typed, found ? found : "nothing");
		else
			ck_assert_msg(!found, "%s: %s", cases[i].typed, found);
	}
	ck_assert_ptr_null(text_nearest("verify", words, 0));
}
END_TEST

START_TEST(numbers_in_names_count_as_numbers)
{
	/* In order. */
	static const char *const names[] = {"", "0", "00", "01", "1", "2", "9", "010", "10", "011",
		"99999999999999999999", "100000000000000000000", "A", "a", "a0", "a00", "a1", "a1a",
		"a1b", "a01c", "a2", "a10", "a10-1", "a10-2", "a10-10", "a10b", "b", "step-9",
		"step-10", "step-100", "\xc3\xb6"};

	for (size_t i = 0; i < COUNT(names); i++)
		for (size_t j = 0; j < COUNT(names); j++) {
			int order = text_natural_compare(slice_of(names[i]), slice_of(names[j]));
			ck_assert_msg((order > 0) - (order < 0) == (i > j) - (i < j),
				"%s and %s: %d", names[i], names[j], order);
		}
}
END_TEST

Suite *suite_text(void)
{
	Suite *s = suite_create("text");
	TCase *t = tcase_create("text");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, escapes_what_disturbs_a_terminal);
	tcase_add_test(t, cuts_long_text_between_characters);
	tcase_add_test(t, every_code_point_survives_decoding);
	tcase_add_test(t, a_prefix_splits_no_character);
	tcase_add_test(t, utf8_is_judged_as_a_whole);
	tcase_add_test(t, bytes_have_units);
	tcase_add_test(t, counts_have_groups_of_three);
	tcase_add_test(t, magnitudes_are_short);
	tcase_add_test(t, doubles_are_short);
	tcase_add_test(t, doubles_read_back);
	tcase_add_test(t, decimals_parse_as_strtod_has_them);
	tcase_add_test(t, hard_decimals_round_right);
	tcase_add_test(t, doubles_from_text);
	tcase_add_test(t, numbers_are_the_same_in_every_locale);
	tcase_add_test(t, rounded_doubles_have_few_digits);
	tcase_add_test(t, integers_from_text_are_whole_and_in_range);
	tcase_add_test(t, ranges_have_both_ends_in_order);
	tcase_add_test(t, the_nearest_word_is_offered);
	tcase_add_test(t, numbers_in_names_count_as_numbers);
	suite_add_tcase(s, t);
	return s;
}
