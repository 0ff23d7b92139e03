/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "audit/policy.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "audit/case.h"
#include "base/replace.h"

#include <check.h>

Suite *suite_policy(void);

#define TODAY 20000 /* 2024-10-04 */

static struct policy p;
static struct error e;
static struct findings findings;
static struct coverage coverage;
static struct requirement wanted[RULE_COUNT];
static char file[] = "/tmp/reprise-policy-XXXXXX";

static void begin(void)
{
	int fd = mkstemp(file);

	ck_assert_int_ge(fd, 0);
	close(fd);
	findings_init(&findings);
	coverage_init(&coverage);
}

static void end(void)
{
	unlink(file);
	snprintf(file, sizeof file, "/tmp/reprise-policy-XXXXXX");
	findings_release(&findings);
	coverage_release(&coverage);
	policy_release(&p);
}

static int load(const char *text)
{
	FILE *f = fopen(file, "w");

	ck_assert_ptr_nonnull(f);
	fputs(text, f);
	fclose(f);
	e = ERROR_INIT;
	return policy_load(&p, file, TODAY, &e);
}

static struct verdict judge(bool has_previous, bool first)
{
	struct verdict_case v = {.findings = &findings, .coverage = &coverage};

	policy_apply(&p, &v, &(struct policy_subject){.has_previous = has_previous, .first = first},
		wanted);
	return verdict_of(&v);
}

/* Every rule ran in full, but for one. */
static void cover_all(const char *but)
{
	for (size_t i = 0; i < RULE_COUNT; i++)
		if (!but || strcmp(rules[i]->name, but) != 0)
			cover_ran(
				&coverage, rules[i]->name, rules[i]->subject, "things", 1, 1, NULL);
}

static void built_in(const char *name)
{
	e = ERROR_INIT;
	ck_assert_int_eq(policy_load(&p, name, TODAY, &e), RP_OK);
}

START_TEST(built_in_policies)
{
	built_in("quick");
	ck_assert(!p.bytes && p.failing == SEVERITY_ERROR);
	ck_assert_int_eq(p.needs[RULE_checksums], NEED_NONE);
	ck_assert_int_eq(p.needs[RULE_parts], NEED_WHOLE);
	policy_release(&p);
	built_in("full");
	ck_assert(p.bytes && p.failing == SEVERITY_ERROR);
	ck_assert_int_eq(p.needs[RULE_checksums], NEED_RUN);
	ck_assert_int_eq(p.needs[RULE_rng_saved], NEED_SOME);
	policy_release(&p);
	built_in("strict");
	ck_assert(p.bytes && p.failing == SEVERITY_WARNING);
	/* A checkpoint has no sample log and no original with it; what is about curves is asked for
	 * where loss logs are all there is. */
	for (size_t i = 0; i < RULE_COUNT; i++)
		if (!(rules[i]->needs & NEEDS_CURVE))
			ck_assert_int_eq(p.needs[i] == NEED_NONE,
				(rules[i]->needs & (NEEDS_LEDGER | NEEDS_ORIGINAL)) != 0);
}
END_TEST

/* The verdict's exit status of loss logs with a finding or none, and what is covered of the curve.
 */
static int judge_curves(const char *policy, bool resumed, bool resume_checked, bool warning)
{
	built_in(policy);
	cover_ran(&coverage, "curve-line", "the logs' line", "points", 9, 9, NULL);
	if (resume_checked)
		cover_ran(&coverage, "curve-resume", "resumes", "resumes", 1, 1, NULL);
	else
		cover_not_checked(&coverage, "curve-resume", "resumes", "nothing to compare");
	if (warning)
		finding_add(&findings, FINDING_L115, "a replay");
	struct verdict_case v = {.findings = &findings, .coverage = &coverage};
	policy_apply(&p, &v,
		&(struct policy_subject){
			.log = true, .curves = true, .has_previous = resumed, .first = !resumed},
		wanted);
	return verdict_of(&v).exit;
}

START_TEST(a_resume_in_loss_logs_is_wanted_by_strict_where_there_is_one)
{
	ck_assert_int_eq(judge_curves("strict", _i > 0, _i > 1, false),
		_i == 1 ? EXIT_STATUS_UNDECIDED : EXIT_STATUS_FINE);
}
END_TEST

START_TEST(warnings_of_loss_logs_fail_under_every_policy)
{
	static const char *const names[] = {"quick", "full", "strict"};

	ck_assert_int_eq(judge_curves(names[_i], true, true, true), EXIT_STATUS_FINDINGS);
}
END_TEST

START_TEST(bytes_that_time_left_unread_do_not_pass)
{
	static const char *const names[] = {"quick", "full", "strict"};

	built_in(names[_i]);
	cover_all("checksums");
	cover_ran(&coverage, "checksums", "stored bytes", "storages", 1, 2, case_late);
	struct verdict_case v = {.findings = &findings, .coverage = &coverage};
	policy_apply(
		&p, &v, &(struct policy_subject){.has_previous = true, .bytes_late = true}, wanted);
	ck_assert_int_eq(verdict_of(&v).exit, p.bytes ? EXIT_STATUS_UNDECIDED : EXIT_STATUS_FINE);
	/* What is proven is not hidden by it. */
	finding_add(&findings, FINDING_I101, "a part is missing");
	ck_assert_int_eq(verdict_of(&v).exit, EXIT_STATUS_FINDINGS);
}
END_TEST

START_TEST(nothing_checked_never_passes)
{
	static const char *const names[] = {"quick", "full", "strict"};

	built_in(names[_i]);
	ck_assert_int_eq(judge(true, false).exit, EXIT_STATUS_UNDECIDED);
}
END_TEST

START_TEST(what_is_required_and_was_not_checked_is_undecided)
{
	built_in("full");
	cover_all("parts");
	struct verdict v = judge(true, false);
	ck_assert_int_eq(v.exit, EXIT_STATUS_UNDECIDED);
	ck_assert_str_eq(v.evidence, "required but not checked: parts");
	cover_ran(&coverage, "parts", "parts of the checkpoint", "files", 3, 4,
		"some could not be read");
	v = judge(true, false);
	ck_assert_str_eq(v.evidence,
		"required but only partly checked: parts of the checkpoint (parts: some could not be read)");
	policy_release(&p);
	ck_assert_int_eq(load("[policy]\nbase = full\noptional = parts\n"), RP_OK);
	ck_assert_int_eq(judge(true, false).exit, EXIT_STATUS_FINE);
}
END_TEST

START_TEST(some_is_enough_for_full_and_not_for_strict_or_by_name)
{
	cover_all("rng-saved");
	cover_ran(&coverage, "rng-saved", "random streams saved", "ranks", 1, 2,
		"some streams are not saved");
	built_in("full");
	ck_assert_int_eq(judge(true, false).exit, EXIT_STATUS_FINE);
	policy_release(&p);
	built_in("strict");
	ck_assert_int_eq(judge(true, false).exit, EXIT_STATUS_UNDECIDED);
	policy_release(&p);
	ck_assert_int_eq(load("[policy]\nbase = full\nrequire = names rng-saved\n"), RP_OK);
	ck_assert_int_eq(judge(true, false).exit, EXIT_STATUS_UNDECIDED);
}
END_TEST

START_TEST(an_earlier_checkpoint_is_asked_for_where_there_can_be_one)
{
	for (size_t i = 0; i < RULE_COUNT; i++) {
		if (rules[i]->needs & NEEDS_PREVIOUS)
			cover_not_checked(&coverage, rules[i]->name, rules[i]->subject, "none");
		else
			cover_ran(
				&coverage, rules[i]->name, rules[i]->subject, "things", 1, 1, NULL);
	}
	built_in("strict");
	ck_assert_int_eq(judge(false, true).exit, EXIT_STATUS_FINE);
	ck_assert_int_eq(judge(false, false).exit, EXIT_STATUS_UNDECIDED);
	policy_release(&p);
	built_in("full");
	ck_assert_int_eq(judge(false, false).exit, EXIT_STATUS_FINE);
	policy_release(&p);
	ck_assert_int_eq(load("[policy]\nbase = full\nrequire = rng-continues\n"), RP_OK);
	ck_assert_int_eq(judge(false, true).exit, EXIT_STATUS_UNDECIDED);
}
END_TEST

START_TEST(severities_are_graded)
{
	cover_all(NULL);
	finding_add(&findings, FINDING_T101, "warm-up again");
	ck_assert_int_eq(load("[policy]\nbase = full\n[severity]\nt101 = warning\n"), RP_OK);
	ck_assert_int_eq(judge(true, false).exit, EXIT_STATUS_FINE);
	policy_release(&p);
	ck_assert_int_eq(load("[policy]\nbase = full\nfail = info\n"), RP_OK);
	ck_assert_int_eq(judge(true, false).exit, EXIT_STATUS_FINDINGS);
	policy_release(&p);
	ck_assert_int_eq(load("[severity]\nT101 = error\n[policy]\nbase = quick\n"), RP_OK);
	ck_assert_int_eq(judge(true, false).exit, EXIT_STATUS_FINDINGS);
}
END_TEST

START_TEST(accepted_findings_stay_and_do_not_fail)
{
	cover_all(NULL);
	finding_add(&findings, FINDING_T101, "warm-up again");
	/* The last day counts. */
	ck_assert_int_eq(
		load("[policy]\nbase = full\n[accept]\nT101 = new schedule; on purpose; until 2024-10-04\n"),
		RP_OK);
	ck_assert_int_eq(judge(true, false).exit, EXIT_STATUS_FINE);
	ck_assert_uint_eq(findings.list.count, 1);
	ck_assert_int_eq(findings.list.items[0].severity, SEVERITY_ERROR);
	ck_assert_str_eq(
		findings.list.items[0].accepted, "new schedule; on purpose (until 2024-10-04)");
}
END_TEST

START_TEST(an_expired_acceptance_accepts_nothing)
{
	cover_all(NULL);
	finding_add(&findings, FINDING_T101, "warm-up again");
	ck_assert_int_eq(
		load("[policy]\nbase = full\n[accept]\nT101 = new schedule; until 2024-10-03\n"),
		RP_OK);
	ck_assert(p.accepted[FINDING_T101].expired);
	ck_assert_int_eq(judge(true, false).exit, EXIT_STATUS_FINDINGS);
	ck_assert_ptr_null(findings.list.items[0].accepted);
}
END_TEST

START_TEST(what_is_still_being_written_is_not_accepted)
{
	cover_all(NULL);
	finding_add(&findings, FINDING_I107, "half")->not_ready = true;
	ck_assert_int_eq(
		load("[policy]\nbase = full\n[severity]\nI107 = ok\n[accept]\nI107 = whatever\n"),
		RP_OK);
	ck_assert_int_eq(judge(true, false).exit, EXIT_STATUS_NOT_READY);
}
END_TEST

START_TEST(an_expectation_that_cannot_be_held_is_undecided)
{
	cover_all(NULL);
	ck_assert_int_eq(
		load("[policy]\nbase = full\n[expect]\nparameters = 1000 .. 2000\n"), RP_OK);
	ck_assert_int_eq(p.parameters_least, 1000);
	ck_assert_int_eq(p.parameters_most, 2000);
	struct verdict v = judge(true, false);
	ck_assert_int_eq(v.exit, EXIT_STATUS_UNDECIDED);
	ck_assert_str_eq(v.evidence,
		"required but not checked: 1 000 parameters are expected, and their number is not known");
}
END_TEST

START_TEST(dates)
{
	static const struct {
		const char *text;
		int64_t day;
	} good[] = {{"1970-01-01", 0}, {"1970-03-01", 59}, {"2000-02-29", 11016},
		{"2024-10-04", TODAY}, {"9999-12-31", 2932896}};
	static const char *const bad_dates[] = {"", "1969-12-31", "2027-1-31", "2027-02-29",
		"1900-02-29", "2100-02-29", "2027-00-10", "2027-13-01", "2027-04-31", "2027-01-00",
		"2027/01/01", "20270131", "2027-01-31 ", "+027-01-01"};
	int64_t day;

	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		ck_assert(policy_parse_day(slice_of(good[i].text), &day));
		ck_assert_int_eq(day, good[i].day);
	}
	for (size_t i = 0; i < sizeof bad_dates / sizeof *bad_dates; i++)
		ck_assert_msg(!policy_parse_day(slice_of(bad_dates[i]), &day), "%s", bad_dates[i]);
}
END_TEST

#define BASE "[policy]\nbase = full\n"

static const struct {
	const char *text, *error;
} bad[] = {
	{"", "it does not say what it starts from: [policy] base = quick, full or strict"},
	{"[policy]\nbase = fulll",
		"line 2: there is no built-in policy 'fulll'; did you mean full?"},
	{BASE "[polcy]", "line 3: there is no section 'polcy'; did you mean policy?"},
	{BASE "fial = error", "line 3: there is no key of [policy] 'fial'; did you mean fail?"},
	{BASE "fail = ok", "line 3: fail wants info, warning or error, not 'ok'"},
	{BASE "bytes = true", "line 3: bytes wants yes or no, not 'true'"},
	{BASE "require = parts cheksums",
		"line 3: there is no rule 'cheksums'; did you mean checksums?"},
	{BASE "require = parts, names", "line 3: there is no rule 'parts,'; did you mean parts?"},
	{BASE "bytes = no\nrequire = parts checksums",
		"line 4: 'checksums' is required and reads bytes, which the policy does not (bytes = yes)"},
	{BASE "require = parts\noptional = parts", "line 4: 'parts' is required on line 3"},
	{BASE "optional = parts\nrequire = parts", "line 4: 'parts' is optional on line 3"},
	{BASE "[severity]\nR999 = ok", "line 4: there is no finding 'R999'"},
	{BASE "[severity]\nR101 = fatal",
		"line 4: a severity is ok, info, warning or error, not 'fatal'"},
	{BASE "[severity]\nR101 = ok\nr101 = error", "line 5: R101 is there twice in [severity]"},
	{BASE "[accept]\nR101 = a\nr101 = b", "line 5: R101 is there twice in [accept]"},
	{BASE "[accept]\nR999 = why not", "line 4: there is no finding 'R999'"},
	{BASE "[accept]\nR101 = ; until 2027-01-31",
		"line 4: an acceptance wants a reason: R101 = reason; until 2027-01-31"},
	{BASE "[accept]\nR101 = known; until tomorrow",
		"line 4: 'until' wants a date such as 2027-01-31, not 'tomorrow'"},
	{BASE "[accept]\nR101 = known; until",
		"line 4: 'until' wants a date such as 2027-01-31, not ''"},
	{BASE "[accept]\nR101 = known; until 2027-02-30",
		"line 4: 'until' wants a date such as 2027-01-31, not '2027-02-30'"},
	{BASE "[accept]\nR101 = known, until 2027-01-31",
		"line 4: an expiry stands behind the reason and a semicolon: R101 = reason; until 2027-01-31"},
	{BASE "[accept]\nR101 = until 2027-01-31",
		"line 4: an expiry stands behind the reason and a semicolon: R101 = reason; until 2027-01-31"},
	{BASE "[expect]\nparameters = 1e6",
		"line 4: parameters wants a number, or a range such as 90000000..110000000, not '1e6'"},
	{BASE "[expect]\nparameters = 5..4",
		"line 4: parameters wants a number, or a range such as 90000000..110000000, not '5..4'"},
	{BASE "[expect]\nranks = 4", "line 4: there is no key of [expect] 'ranks'"},
	{BASE "base = quick", "line 3: 'base' is there twice in [policy], first on line 2"},
};

START_TEST(bad_policies_are_complained_of_with_their_line)
{
	ck_assert_int_eq(load(bad[_i].text), RP_E_ARGUMENT);
	ck_assert_str_eq(e.text, bad[_i].error);
}
END_TEST

START_TEST(unknown_names_are_no_policy)
{
	e = ERROR_INIT;
	ck_assert_int_eq(policy_load(&p, "strikt", TODAY, &e), RP_E_ARGUMENT);
	ck_assert_str_eq(e.text,
		"no file, and no built-in policy (quick, full, strict); did you mean strict?");
	policy_release(&p);
	e = ERROR_INIT;
	ck_assert_int_eq(policy_load(&p, "/nowhere/full", TODAY, &e), RP_E_ARGUMENT);
}
END_TEST

START_TEST(a_file_is_replaced_whole_or_not)
{
	char text[64] = "", folder[] = "/tmp/reprise-replace-XXXXXX", path[64];

	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(path, sizeof path, "%s/report", folder);
	for (int i = 0; i < 2; i++) {
		e = ERROR_INIT;
		ck_assert_int_eq(
			file_replace(path, slice_of(i ? "new" : "older and longer"), &e), RP_OK);
	}
	FILE *f = fopen(path, "r");
	ck_assert_uint_eq(fread(text, 1, sizeof text - 1, f), 3);
	fclose(f);
	ck_assert_str_eq(text, "new");
	static const char *const bad_paths[] = {
		"/dev/full", "/tmp", "/nowhere/report", "", "/tmp/", "/tmp/.."};
	for (size_t i = 0; i < sizeof bad_paths / sizeof *bad_paths; i++) {
		e = ERROR_INIT;
		ck_assert_int_lt(file_replace(bad_paths[i], SLICE("new"), &e), 0);
	}
	/* Nothing of ours stays behind. */
	ck_assert_int_eq(unlink(path), 0);
	ck_assert_int_eq(rmdir(folder), 0);
}
END_TEST

Suite *suite_policy(void)
{
	Suite *s = suite_create("policy");
	TCase *t = tcase_create("policy");

	tcase_add_checked_fixture(t, begin, end);
	tcase_add_test(t, built_in_policies);
	tcase_add_loop_test(t, bytes_that_time_left_unread_do_not_pass, 0, 3);
	tcase_add_loop_test(t, a_resume_in_loss_logs_is_wanted_by_strict_where_there_is_one, 0, 3);
	tcase_add_loop_test(t, warnings_of_loss_logs_fail_under_every_policy, 0, 3);
	tcase_add_loop_test(t, nothing_checked_never_passes, 0, 3);
	tcase_add_test(t, what_is_required_and_was_not_checked_is_undecided);
	tcase_add_test(t, some_is_enough_for_full_and_not_for_strict_or_by_name);
	tcase_add_test(t, an_earlier_checkpoint_is_asked_for_where_there_can_be_one);
	tcase_add_test(t, severities_are_graded);
	tcase_add_test(t, accepted_findings_stay_and_do_not_fail);
	tcase_add_test(t, an_expired_acceptance_accepts_nothing);
	tcase_add_test(t, what_is_still_being_written_is_not_accepted);
	tcase_add_test(t, an_expectation_that_cannot_be_held_is_undecided);
	tcase_add_test(t, dates);
	tcase_add_loop_test(
		t, bad_policies_are_complained_of_with_their_line, 0, sizeof bad / sizeof *bad);
	tcase_add_test(t, unknown_names_are_no_policy);
	tcase_add_test(t, a_file_is_replaced_whole_or_not);
	suite_add_tcase(s, t);
	return s;
}
