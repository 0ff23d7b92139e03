/* SPDX-License-Identifier: MIT */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "finding/finding.h"

Suite *suite_findings(void);

START_TEST(codes_are_unique_and_ascending_within_their_family)
{
	for (int i = 1; i < FINDING_COUNT; i++) {
		const char *a = finding_rows[i - 1].code, *b = finding_rows[i].code;
		ck_assert_uint_eq(strlen(b), 4);
		if (a[0] == b[0])
			ck_assert_msg(strcmp(a, b) < 0, "%s stands behind %s", b, a);
		for (int j = 0; j < i; j++) {
			ck_assert_str_ne(finding_rows[j].code, b);
			ck_assert_str_ne(finding_rows[j].id, finding_rows[i].id);
		}
	}
}
END_TEST

START_TEST(families_stand_together)
{
	char seen[32] = "";

	for (int i = 0; i < FINDING_COUNT; i++) {
		char family = finding_rows[i].code[0];
		size_t n = strlen(seen);
		if (n > 0 && seen[n - 1] == family)
			continue;
		ck_assert_ptr_null(strchr(seen, family));
		seen[n] = family;
		seen[n + 1] = '\0';
	}
	ck_assert_str_eq(seen, "IRPDMTLO");
}
END_TEST

static void assert_prose(const char *code, const char *text)
{
	size_t n = strlen(text);

	ck_assert_msg(n > 20, "%s: a text is missing", code);
	ck_assert_msg(
		text[n - 1] == '.', "%s: a text does not end with a full stop: %s", code, text);
	ck_assert_msg(!strstr(text, "  "), "%s: two spaces in: %s", code, text);
	size_t quotes = 0;
	for (const char *c = text; *c != '\0'; c++) {
		ck_assert_msg(*c >= ' ' && *c < 127, "%s: not plain text: %s", code, text);
		quotes += *c == '`';
	}
	ck_assert_msg(quotes % 2 == 0, "%s: an open backquote in: %s", code, text);
}

/* Where a text names a command of ours, it is one that exists. */
static void assert_commands(const char *code, const char *text)
{
	static const char *const commands[] = {"verify", "compare", "show", "ls", "get", "explain"};

	for (const char *p = text; (p = strstr(p, "`reprise ")); p++) {
		bool known = false;
		for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
			size_t n = strlen(commands[i]);
			known |= strncmp(p + 9, commands[i], n) == 0 && strchr(" `", p[9 + n]);
		}
		ck_assert_msg(known, "%s: no such command: %.30s", code, p);
	}
}

/* A code that a text refers to exists. */
static void assert_references(const char *code, const char *text)
{
	for (const char *p = text; *p != '\0'; p++) {
		bool start = p == text || strchr(" (", p[-1]);
		if (!start || !strchr("IRPDMTLO", *p) || strspn(p + 1, "0123456789") != 3)
			continue;
		char name[5] = {p[0], p[1], p[2], p[3], '\0'};
		ck_assert_msg(finding_by_name(name) < FINDING_COUNT, "%s refers to %s", code, name);
	}
}

START_TEST(every_finding_is_explained)
{
	for (int i = 0; i < FINDING_COUNT; i++) {
		const struct finding_row *row = &finding_rows[i];
		const char *const texts[] = {row->explain, row->confirm, row->remedy};
		size_t n = strlen(row->summary);

		ck_assert_uint_gt(n, 0);
		ck_assert_msg(n <= 90 && row->summary[n - 1] != '.', "%s: summary", row->code);
		for (size_t t = 0; t < 3; t++) {
			assert_prose(row->code, texts[t]);
			assert_commands(row->code, texts[t]);
			assert_references(row->code, texts[t]);
		}
		for (const char *c = row->needs; *c != '\0'; c++)
			ck_assert_msg(strchr("CGLXK,", *c), "%s needs %s", row->code, row->needs);
	}
}
END_TEST

START_TEST(names_are_found_in_any_case)
{
	ck_assert_int_eq(finding_by_name("P101"), FINDING_P101);
	ck_assert_int_eq(finding_by_name("p101"), FINDING_P101);
	ck_assert_int_eq(finding_by_name("P1010"), FINDING_COUNT);
	ck_assert_int_eq(finding_by_name(""), FINDING_COUNT);
}
END_TEST

START_TEST(all_are_counted_where_not_all_are_kept)
{
	struct findings sink;

	findings_init(&sink);
	for (int i = 0; i < 9112; i++)
		finding_add(&sink, FINDING_I103, "tensor %d", i);
	ck_assert_uint_eq(sink.list.count, sink.keep);
	ck_assert_uint_eq(sink.of_code[FINDING_I103], 9112);
	ck_assert_uint_eq(sink.lost, 0);
	findings_release(&sink);
}
END_TEST

START_TEST(an_error_does_not_hide_behind_a_hundred_notes)
{
	struct findings sink;
	size_t errors = 0;

	findings_init(&sink);
	for (int i = 0; i < 300; i++) {
		struct finding *f = finding_add(&sink, FINDING_R107, "stream %d stood still", i);
		if (i == 200 || i == 299)
			f->severity = SEVERITY_ERROR;
	}
	findings_sort(&sink);
	ck_assert_uint_eq(sink.list.count, sink.keep);
	for (size_t i = 0; i < sink.list.count; i++)
		errors += sink.list.items[i].severity == SEVERITY_ERROR;
	ck_assert_uint_eq(errors, 2);
	ck_assert_str_eq(sink.list.items[0].message, "stream 200 stood still");
	ck_assert_str_eq(sink.list.items[1].message, "stream 299 stood still");
	findings_release(&sink);
}
END_TEST

START_TEST(the_ratio_needs_two_numbers)
{
	struct finding f = {.observed = quantity_count(2748), .expected = quantity_count(10992)};
	double ratio;

	ck_assert(finding_ratio(&f, &ratio));
	ck_assert_double_eq(ratio, 0.25);
	f.observed = quantity_real(21984);
	ck_assert(finding_ratio(&f, &ratio));
	ck_assert_double_eq(ratio, 2);
	f.expected = quantity_count(0);
	ck_assert(!finding_ratio(&f, &ratio));
	f.expected = quantity_text("10992");
	ck_assert(!finding_ratio(&f, &ratio));
	f.expected = quantity_real(strtod("nan", NULL));
	ck_assert(!finding_ratio(&f, &ratio));
}
END_TEST

START_TEST(coverage_says_partly_where_something_is_left)
{
	struct coverage sink;

	coverage_init(&sink);
	cover_ran(&sink, "a", "all", "ranks", 8, 8, NULL);
	cover_ran(&sink, "b", "some", "ranks", 7, 8, NULL);
	cover_ran(&sink, "c", "none", "ranks", 0, 8, "unreadable");
	cover_not_checked(&sink, "d", "bytes", "--%s", "quick");
	ck_assert_int_eq(sink.list.items[0].status, COVER_RAN);
	ck_assert_int_eq(sink.list.items[1].status, COVER_PARTLY);
	ck_assert_int_eq(sink.list.items[2].status, COVER_NOT_CHECKED);
	ck_assert_int_eq(sink.list.items[3].status, COVER_NOT_CHECKED);
	ck_assert_str_eq(sink.list.items[3].reason, "--quick");
	coverage_release(&sink);
}
END_TEST

START_TEST(a_sink_takes_over_copies_of_another)
{
	struct findings one, two;

	findings_init(&one);
	findings_init(&two);
	struct finding *f = finding_add(&one, FINDING_P101, "%d batches", 7);
	f->observed = quantity_text(findings_text(&one, "seven"));
	f->place.file = findings_text(&one, "a.pt");
	f->severity = SEVERITY_INFO;
	for (size_t i = 0; i < one.keep + 5; i++)
		finding_add(&one, FINDING_I103, "storage %zu", i);
	findings_append(&two, &one);
	findings_release(&one);
	ck_assert_uint_eq(two.of_code[FINDING_P101], 1);
	ck_assert_uint_eq(two.of_code[FINDING_I103], two.keep + 5);
	ck_assert_uint_eq(two.list.count, two.keep + 1);
	ck_assert_str_eq(two.list.items[0].message, "7 batches");
	ck_assert_str_eq(two.list.items[0].observed.text, "seven");
	ck_assert_str_eq(two.list.items[0].place.file, "a.pt");
	ck_assert_int_eq(two.list.items[0].severity, SEVERITY_INFO);
	ck_assert_uint_eq(two.lost, 0);
	findings_release(&two);
}
END_TEST

Suite *suite_findings(void)
{
	Suite *s = suite_create("findings");
	TCase *t = tcase_create("findings");

	tcase_add_test(t, codes_are_unique_and_ascending_within_their_family);
	tcase_add_test(t, families_stand_together);
	tcase_add_test(t, every_finding_is_explained);
	tcase_add_test(t, names_are_found_in_any_case);
	tcase_add_test(t, all_are_counted_where_not_all_are_kept);
	tcase_add_test(t, an_error_does_not_hide_behind_a_hundred_notes);
	tcase_add_test(t, the_ratio_needs_two_numbers);
	tcase_add_test(t, coverage_says_partly_where_something_is_left);
	tcase_add_test(t, a_sink_takes_over_copies_of_another);
	suite_add_tcase(s, t);
	return s;
}
