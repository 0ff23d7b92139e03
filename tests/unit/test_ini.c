/* SPDX-License-Identifier: MIT */
#include "base/ini.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

Suite *suite_ini(void);

static struct ini ini;
static struct error e;

static int parse_bytes(const char *text, size_t n)
{
	e = ERROR_INIT;
	return ini_parse(&ini, (struct slice){text, n}, &e);
}

static void assert_entry(
	size_t i, const char *section, const char *key, const char *value, unsigned line)
{
	ck_assert_uint_lt(i, ini.entries.count);
	const struct ini_entry *entry = &ini.entries.items[i];
	ck_assert(slice_is(entry->section, section));
	ck_assert_uint_eq(entry->line, line);
	if (!key) {
		ck_assert_ptr_null(entry->key.p);
		return;
	}
	ck_assert(slice_is(entry->key, key));
	ck_assert(slice_is(entry->value, value));
}

START_TEST(sections_keys_and_comments)
{
	static const char text[] =
		"# one\n\n[a]\r\nx = 1\n\t y=two words ; not a comment \n; three\n"
		"[ b-c.d ]\nx = = \xc3\xa9 #\n[empty]";

	ck_assert_int_eq(parse_bytes(text, sizeof text - 1), RP_OK);
	ck_assert_uint_eq(ini.entries.count, 6);
	assert_entry(0, "a", NULL, NULL, 3);
	assert_entry(1, "a", "x", "1", 4);
	assert_entry(2, "a", "y", "two words ; not a comment", 5);
	assert_entry(3, "b-c.d", NULL, NULL, 7);
	assert_entry(4, "b-c.d", "x", "= \xc3\xa9 #", 8);
	assert_entry(5, "empty", NULL, NULL, 9);
	ini_release(&ini);
	ck_assert_int_eq(parse_bytes("", 0), RP_OK);
	ck_assert_uint_eq(ini.entries.count, 0);
	ini_release(&ini);
}
END_TEST

#define BAD(text, error)                                                                           \
	{                                                                                          \
		text, sizeof(text) - 1, error                                                      \
	}

static const struct {
	const char *text;
	size_t n;
	const char *error;
} bad[] = {
	BAD("[a", "line 1: a section is [name], and no ']' ends the line"),
	BAD("[a] # x", "line 1: a section is [name], and no ']' ends the line"),
	BAD("[", "line 1: a section is [name], and no ']' ends the line"),
	BAD("\n[]",
		"line 2: a section's name is made of letters, digits, '_', '-' and '.', not ''"),
	BAD("[a b]",
		"line 1: a section's name is made of letters, digits, '_', '-' and '.', not 'a b'"),
	BAD("[a]\n[b]\n[a]", "line 3: [a] is there twice, first on line 1"),
	BAD("x = 1", "line 1: 'x' stands before the first [section]"),
	BAD("[a]\nwords", "line 2: neither [section], 'key = value' nor a comment: 'words'"),
	BAD("[a]\n = 1", "line 2: a key is made of letters, digits, '_', '-' and '.', not ''"),
	BAD("[a]\nx y = 1",
		"line 2: a key is made of letters, digits, '_', '-' and '.', not 'x y'"),
	BAD("[a]\nx =\t ", "line 2: 'x' has no value"),
	BAD("[a]\nx = 1\n[b]\nx = 1\ny = 2\nx = 3",
		"line 6: 'x' is there twice in [b], first on line 4"),
	BAD("[a]\nx = 1\0 2", "line 2: a NUL byte"),
	BAD("# \0", "line 1: a NUL byte"),
	BAD("[a]\nx = \x1b[31m", "line 2: a control character (byte 0x1b)"),
	BAD("[a]\rx = 1", "line 1: a control character (byte 0x0d)"),
	BAD("[a]\nx = a\xe2\x80\xae", "line 2: a character that hides or reorders others (U+202E)"),
	BAD("[a]\n# \xff", "line 2: not UTF-8"),
	BAD("\xef\xbb\xbf[a]", "line 1: a byte order mark, which does not belong into UTF-8"),
};

START_TEST(what_it_does_not_understand_is_an_error_with_its_line)
{
	ck_assert_int_eq(parse_bytes(bad[_i].text, bad[_i].n), RP_E_FORMAT);
	ck_assert_str_eq(e.text, bad[_i].error);
	ini_release(&ini);
}
END_TEST

START_TEST(lines_are_whole_up_to_the_limit)
{
	static char text[INI_LINE_MAX + 8] = "[a]\nx=";

	memset(text + 6, 'y', INI_LINE_MAX - 2);
	ck_assert_int_eq(parse_bytes(text, 4 + INI_LINE_MAX), RP_OK);
	ck_assert_uint_eq(ini.entries.items[1].value.n, INI_LINE_MAX - 2);
	ini_release(&ini);
	memset(text + 6, 'y', INI_LINE_MAX - 1);
	ck_assert_int_eq(parse_bytes(text, 5 + INI_LINE_MAX), RP_E_FORMAT);
	ck_assert_str_eq(e.text, "line 2: longer than 4096 bytes");
	ini_release(&ini);
}
END_TEST

START_TEST(entries_are_bounded)
{
	static char text[INI_ENTRIES_MAX * 16];
	size_t n = 0;

	for (unsigned i = 0; i <= INI_ENTRIES_MAX; i++)
		n += (size_t)snprintf(text + n, sizeof text - n, "[s%u]\n", i);
	ck_assert_int_eq(parse_bytes(text, n), RP_E_FORMAT);
	ck_assert_str_eq(e.text, "line 4097: more than 4096 sections and keys");
	ini_release(&ini);
}
END_TEST

START_TEST(a_file_that_is_not_there)
{
	e = ERROR_INIT;
	ck_assert_int_lt(ini_read(&ini, "tests/unit/data/no such file", &e), 0);
	ini_release(&ini);
	e = ERROR_INIT;
	ck_assert_int_lt(ini_read(&ini, "tests/unit", &e), 0);
	ini_release(&ini);
}
END_TEST

/* What a table's rows were given, one word each. */
static char taken[200];

static bool take(void *context, const struct ini_entry *entry)
{
	size_t n = strlen(context);

	if (slice_is(entry->value, "refused"))
		return ini_complain(
			&e, entry, "'%.*s' is refused", ini_shown(entry->value), entry->value.p);
	snprintf((char *)context + n, sizeof taken - n, "%.*s.%.*s ", (int)entry->section.n,
		entry->section.p, (int)entry->key.n, entry->key.p);
	return true;
}

static const struct ini_key keys[] = {
	{"batch", "micro", take},
	{"batch", "global", take},
	{"accept", NULL, take},
	{"source.", "weight", take},
};

static bool take_text(const char *text)
{
	ini_release(&ini);
	*taken = '\0';
	return parse_bytes(text, strlen(text)) == RP_OK &&
	       ini_take(&ini, keys, sizeof keys / sizeof *keys, taken, &e);
}

START_TEST(keys_go_to_the_rows_of_a_table)
{
	ck_assert(take_text("[batch]\nglobal = 8\nmicro = 2\n[accept]\nR101 = x\n"
			    "[source.wiki]\nweight = 1\n[source.code]\nweight = 2\n"));
	ck_assert_str_eq(taken,
		"batch.global batch.micro accept.R101 source.wiki.weight source.code.weight ");
	ini_release(&ini);
}
END_TEST

static const struct {
	const char *text, *error;
} not_in_the_table[] = {
	{"[batch]\nmicr = 1\n", "line 2: there is no key of [batch] 'micr'; did you mean micro?"},
	{"[bach]\n", "line 1: there is no section 'bach'; did you mean batch?"},
	{"[source]\nweight = 1\n", "line 1: there is no section 'source'; did you mean source.?"},
	{"[source.]\nweight = 1\n", "line 1: there is no section 'source.'; did you mean source.?"},
	{"[source.a]\nheight = 1\n",
		"line 2: there is no key of [source.a] 'height'; did you mean weight?"},
	{"[batch]\nmicro = 1\nglobal = refused\n", "line 3: 'refused' is refused"},
};

START_TEST(what_is_not_in_the_table_is_an_error)
{
	ck_assert(!take_text(not_in_the_table[_i].text));
	ck_assert_str_eq(e.text, not_in_the_table[_i].error);
	ck_assert_int_eq(e.status, RP_E_ARGUMENT);
	ini_release(&ini);
}
END_TEST

START_TEST(words_of_a_list_stand_apart_by_spaces)
{
	struct slice list = SLICE("  one\ttwo  three ");

	ck_assert(slice_is(ini_next_word(&list), "one"));
	ck_assert(slice_is(ini_next_word(&list), "two"));
	ck_assert(slice_is(ini_next_word(&list), "three"));
	ck_assert_uint_eq(ini_next_word(&list).n, 0);
	ck_assert_uint_eq(ini_next_word(&list).n, 0);
}
END_TEST

Suite *suite_ini(void)
{
	Suite *s = suite_create("ini");
	TCase *t = tcase_create("ini");

	tcase_add_test(t, sections_keys_and_comments);
	tcase_add_loop_test(t, what_it_does_not_understand_is_an_error_with_its_line, 0,
		sizeof bad / sizeof *bad);
	tcase_add_test(t, lines_are_whole_up_to_the_limit);
	tcase_add_test(t, entries_are_bounded);
	tcase_add_test(t, a_file_that_is_not_there);
	tcase_add_test(t, keys_go_to_the_rows_of_a_table);
	tcase_add_loop_test(t, what_is_not_in_the_table_is_an_error, 0,
		sizeof not_in_the_table / sizeof *not_in_the_table);
	tcase_add_test(t, words_of_a_list_stand_apart_by_spaces);
	suite_add_tcase(s, t);
	return s;
}
