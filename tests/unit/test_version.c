/* SPDX-License-Identifier: MIT */
#include <check.h>

#include "base/version.h"

/* PEP 440's own order, and what real packages are called. Each comes before the next. */
static const char *const ordered[] = {
	"0.9",
	"1.dev0",
	"1.0.dev456",
	"1.0a1.dev1",
	"1.0a1",
	"1.0a2.dev456",
	"1.0a12.dev456",
	"1.0a12",
	"1.0b1.dev456",
	"1.0b2",
	"1.0b2.post345.dev456",
	"1.0b2.post345",
	"1.0rc1.dev456",
	"1.0rc1",
	"1.0",
	"1.0+abc.5",
	"1.0+abc.7",
	"1.0+5",
	"1.0+5.1",
	"1.0+00000000000000000000000000000000000000099",
	"1.0.post456.dev34",
	"1.0.post456",
	"1.0.15",
	"1.1.dev1",
	"1.2.0+cu118",
	"1.2.1",
	"1.10.0",
	"2.6.0.dev20250101+cu124",
	"2.6.0",
	"2.6.0+cpu",
	"2.6.0+cu124",
	"2026.1.1",
	"1!0.1",
};

static const char *const same[][2] = {
	{"1.0", "1.0.0.0"},
	{"v1.0", "1.0"},
	{"1.0alpha1", "1.0a1"},
	{"1.0-BETA_2", "1.0b2"},
	{"1.0c1", "1.0rc1"},
	{"1.0.pre1", "1.0rc1"},
	{"1.0preview.1", "1.0rc1"},
	{"1.0a", "1.0a0"},
	{"1.0-1", "1.0.post1"},
	{"1.0r4", "1.0.post4"},
	{"1.0-rev4", "1.0.post4"},
	{"1.0.post", "1.0.post0"},
	{"1.0dev", "1.0.dev0"},
	{"1.0-dev3", "1.0.dev3"},
	{"1.0+Ubuntu-1", "1.0+ubuntu.1"},
	{"1.0+ubuntu_1", "1.0+ubuntu.01"},
	{" 1.0\t", "1.0"},
	{"0!1.0", "1.0"},
	{"01.002", "1.2"},
};

static const char *const refused[] = {
	"",
	" ",
	"v",
	"x",
	"1.",
	".1",
	"1..2",
	"1.0x",
	"1.0a1b2",
	"1.0.dev1.post2",
	"1.0 1",
	"1.0+",
	"1.0++a",
	"1.0+a..b",
	"1.0+.a",
	"1.0+a.",
	"1.0+a b",
	"1.0--1",
	"1.0-",
	"!1",
	"1!",
	"99999999999999999999",
	"1.0a99999999999999999999",
	"1.2.3.4.5.6.7.8.9.10.11.12.13.14.15.16.17",
	"1.0+aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
	"latest",
	"1.0\xff",
};

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

static struct version parsed(const char *text)
{
	struct version v;

	ck_assert_msg(version_parse(slice_of(text), &v), "'%s' is refused", text);
	return v;
}

START_TEST(orders_as_the_standard_does)
{
	struct version v = parsed(ordered[_i]);

	for (int i = 0; i < COUNT(ordered); i++) {
		struct version other = parsed(ordered[i]);
		int order = version_compare(&v, &other);
		ck_assert_msg((order > 0) - (order < 0) == (_i > i) - (_i < i), "'%s' and '%s': %d",
			ordered[_i], ordered[i], order);
	}
}
END_TEST

START_TEST(takes_other_spellings_as_the_same)
{
	struct version a = parsed(same[_i][0]), b = parsed(same[_i][1]);

	ck_assert_msg(version_compare(&a, &b) == 0, "'%s' and '%s'", same[_i][0], same[_i][1]);
}
END_TEST

START_TEST(refuses_what_is_no_version)
{
	struct version v;

	ck_assert_msg(!version_parse(slice_of(refused[_i]), &v), "'%s'", refused[_i]);
}
END_TEST

START_TEST(tells_unfinished_states_of_a_release)
{
	struct version of = parsed("1.15"), v;

	v = parsed("1.15.0.dev0");
	ck_assert(version_leads_to(&v, &of));
	v = parsed("1.15rc1");
	ck_assert(version_leads_to(&v, &of));
	v = parsed("1.15.0+local");
	ck_assert(!version_leads_to(&v, &of));
	v = parsed("1.15.0.post1.dev1");
	ck_assert(!version_leads_to(&v, &of));
	v = parsed("1.14.0.dev0");
	ck_assert(!version_leads_to(&v, &of));
	v = parsed("1!1.15.dev0");
	ck_assert(!version_leads_to(&v, &of));
}
END_TEST

Suite *suite_version(void)
{
	Suite *s = suite_create("version");
	TCase *c = tcase_create("version");

	tcase_add_loop_test(c, orders_as_the_standard_does, 0, COUNT(ordered));
	tcase_add_loop_test(c, takes_other_spellings_as_the_same, 0, COUNT(same));
	tcase_add_loop_test(c, refuses_what_is_no_version, 0, COUNT(refused));
	tcase_add_test(c, tells_unfinished_states_of_a_release);
	suite_add_tcase(s, c);
	return s;
}
