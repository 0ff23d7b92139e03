/* SPDX-License-Identifier: MIT */
#include <check.h>

#include "audit/verdict.h"

Suite *suite_verdict(void);

static struct findings findings;
static struct coverage coverage;
static struct verdict_case plain;

static void begin(void)
{
	findings_init(&findings);
	coverage_init(&coverage);
	plain = (struct verdict_case){.findings = &findings, .coverage = &coverage};
}

static void end(void)
{
	findings_release(&findings);
	coverage_release(&coverage);
}

static void assert_verdict(
	const struct verdict_case *c, enum verdict_word word, int exit, const char *evidence)
{
	struct verdict v = verdict_of(c);

	ck_assert_str_eq(verdict_rows[v.word].word, verdict_rows[word].word);
	ck_assert_int_eq((int)v.exit, exit);
	ck_assert_str_eq(v.evidence, evidence);
}

START_TEST(nothing_found_is_consistent_and_no_more)
{
	struct verdict_case c = plain;

	assert_verdict(&c, VERDICT_CONSISTENT, 0, "everything that could be checked agrees");
	c.consistent = "it continues step 40";
	assert_verdict(&c, VERDICT_CONSISTENT, 0, "it continues step 40");
	c.exact = "300 steps reproduced";
	c.consistent = NULL;
	assert_verdict(&c, VERDICT_EXACT, 0, "300 steps reproduced");
	c.reshuffled = "31 % seen twice";
	assert_verdict(&c, VERDICT_RESHUFFLED, 0, "31 % seen twice");
	c.inexact = "no random state is saved";
	assert_verdict(&c, VERDICT_INEXACT, 0, "no random state is saved");
}
END_TEST

START_TEST(only_failing_findings_choose_the_word)
{
	struct verdict_case c = plain;

	finding_add(&findings, FINDING_I110, "a tensor became zero"); /* CORRUPT, but a warning */
	assert_verdict(&c, VERDICT_CONSISTENT, 0, "everything that could be checked agrees");
	finding_add(&findings, FINDING_T101, "warm-up again");
	assert_verdict(&c, VERDICT_RESET, 1, "warm-up again");
	c.failing = SEVERITY_WARNING;
	assert_verdict(&c, VERDICT_CORRUPT, 1, "a tensor became zero");
}
END_TEST

START_TEST(the_first_word_of_the_table_wins_in_any_order)
{
	for (int order = 0; order < 2; order++) {
		findings_release(&findings);
		findings_init(&findings);
		if (order)
			finding_add(&findings, FINDING_P101, "from the top");
		finding_add(&findings, FINDING_T101, "warm-up again");
		finding_add(&findings, FINDING_I101, "a shard is missing");
		if (!order)
			finding_add(&findings, FINDING_P101, "from the top");
		assert_verdict(&plain, VERDICT_REPLAY, 1, "from the top");
	}
}
END_TEST

START_TEST(a_policy_may_change_severities)
{
	struct verdict_case c = plain;

	finding_add(&findings, FINDING_T101, "declared")->severity = SEVERITY_INFO;
	assert_verdict(&c, VERDICT_CONSISTENT, 0, "everything that could be checked agrees");
	finding_add(&findings, FINDING_I116, "a class")->severity = SEVERITY_ERROR;
	assert_verdict(&c, VERDICT_INEXACT, 1, "a class");
}
END_TEST

START_TEST(what_is_still_written_is_not_ready)
{
	struct verdict_case c = plain;

	finding_add(&findings, FINDING_I107, "changed 3 s ago")->not_ready = true;
	assert_verdict(&c, VERDICT_PARTIAL, 4, "changed 3 s ago");
	c.unreadable = "permission denied";
	assert_verdict(&c, VERDICT_PARTIAL, 4, "changed 3 s ago");
	finding_add(&findings, FINDING_I103, "crc");
	assert_verdict(&c, VERDICT_CORRUPT, 1, "crc");
}
END_TEST

START_TEST(what_is_abandoned_fails)
{
	finding_add(&findings, FINDING_I107, "unchanged for 2 h");
	assert_verdict(&plain, VERDICT_PARTIAL, 1, "unchanged for 2 h");
}
END_TEST

START_TEST(not_seeing_is_not_passing)
{
	static const struct requirement required[] = {{.rule = "integrity"}, {.rule = "bytes"}};
	struct verdict_case c = plain;

	c.exact = "proven";
	c.required = required;
	c.required_count = 2;
	assert_verdict(&c, VERDICT_UNKNOWN, 3, "required but not checked: integrity");
	cover_ran(&coverage, "integrity", "structure", "files", 4, 4, NULL);
	cover_not_checked(&coverage, "bytes", "bytes", "--quick");
	assert_verdict(&c, VERDICT_UNKNOWN, 3, "required but not checked: bytes (bytes: --quick)");
	c.required_count = 1;
	assert_verdict(&c, VERDICT_EXACT, 0, "proven");
	cover_ran(&coverage, "integrity", "ranks", "ranks", 7, 8, NULL);
	assert_verdict(&c, VERDICT_UNKNOWN, 3,
		"required but only partly checked: ranks (integrity: incomplete)");
	c.unreadable = "a: permission denied";
	assert_verdict(&c, VERDICT_UNKNOWN, 3, "a: permission denied");
}
END_TEST

START_TEST(a_proven_fault_is_not_hidden_by_what_could_not_be_read)
{
	struct verdict_case c = plain;

	c.unreadable = "permission denied";
	finding_add(&findings, FINDING_I103, "crc");
	assert_verdict(&c, VERDICT_CORRUPT, 1, "crc");
}
END_TEST

START_TEST(an_error_behind_many_notes_decides)
{
	for (int i = 0; i < 500; i++)
		finding_add(&findings, FINDING_R107, "stream %d stood still", i);
	finding_add(&findings, FINDING_R107, "a used stream stood still")->severity =
		SEVERITY_ERROR;
	assert_verdict(&plain, VERDICT_RESET, 1, "a used stream stood still");
}
END_TEST

START_TEST(lost_findings_are_our_failure)
{
	findings.lost = 1;
	assert_verdict(&plain, VERDICT_UNKNOWN, 5, "memory ran out while findings were collected");
	finding_add(&findings, FINDING_I103, "crc");
	assert_verdict(&plain, VERDICT_CORRUPT, 5, "crc");
}
END_TEST

Suite *suite_verdict(void)
{
	Suite *s = suite_create("verdict");
	TCase *t = tcase_create("verdict");

	tcase_add_checked_fixture(t, begin, end);
	tcase_add_test(t, nothing_found_is_consistent_and_no_more);
	tcase_add_test(t, only_failing_findings_choose_the_word);
	tcase_add_test(t, the_first_word_of_the_table_wins_in_any_order);
	tcase_add_test(t, a_policy_may_change_severities);
	tcase_add_test(t, what_is_still_written_is_not_ready);
	tcase_add_test(t, what_is_abandoned_fails);
	tcase_add_test(t, not_seeing_is_not_passing);
	tcase_add_test(t, a_proven_fault_is_not_hidden_by_what_could_not_be_read);
	tcase_add_test(t, an_error_behind_many_notes_decides);
	tcase_add_test(t, lost_findings_are_our_failure);
	suite_add_tcase(s, t);
	return s;
}
