/* SPDX-License-Identifier: MIT */
/* The public library, used as a program outside would use it. */
#include <reprise.h>

#include <check.h>
#include <errno.h>
#include <jansson.h>
#include <string.h>

Suite *suite_api(void);

#define FIXTURES "fixtures/pytorch-2.13.0/"

static struct rp_report *report;
static char error[200];

static void teardown(void)
{
	rp_report_free(report);
	report = NULL;
}

START_TEST(a_wrong_resume_has_a_verdict_findings_and_a_document)
{
	struct rp_verify_options options = {.size = sizeof options,
		.against = FIXTURES "reseeded-same/checkpoints/step_00020.pt"};

	errno = 1234;
	ck_assert_int_eq(rp_verify(FIXTURES "reseeded-same/checkpoints/step_00030.pt", &options,
				 &report, error, sizeof error),
		RP_OK);
	ck_assert_int_eq(errno, 1234);
	ck_assert_str_eq(rp_report_verdict(report), "RESET");
	ck_assert_int_eq(rp_report_exit(report), 1);
	ck_assert_uint_eq(rp_report_findings(report), 3);
	ck_assert_ptr_nonnull(strstr(rp_report_evidence(report), "re-seeded from 1234"));
	ck_assert_str_eq(error, "");
	json_error_t why;
	json_t *root = json_loads(rp_report_json(report), 0, &why);
	ck_assert_msg(root != NULL, "%s", why.text);
	ck_assert_str_eq(json_string_value(json_object_get(root, "schema")), "reprise/1");
	json_decref(root);
}
END_TEST

START_TEST(the_versions_that_will_resume_decide)
{
	static const char checkpoint[] =
		"fixtures/transformers-4.57.6-accelerate-1.10.1/epoch-order/out/checkpoint-12";
	static const char *const wrong[] = {"accelerate=1.10.1", NULL},
				 *const right[] = {"accelerate=1.6.0", NULL},
				 *const senseless[] = {"accelerate", NULL};
	struct rp_verify_options options = {.size = sizeof options, .with = wrong};

	ck_assert_int_eq(rp_verify(checkpoint, &options, &report, error, sizeof error), RP_OK);
	ck_assert_str_eq(rp_report_verdict(report), "WOULD-ORDER");
	rp_report_free(report);
	options.with = right;
	ck_assert_int_eq(rp_verify(checkpoint, &options, &report, error, sizeof error), RP_OK);
	ck_assert_str_eq(rp_report_verdict(report), "CONSISTENT");
	rp_report_free(report);
	options.with = senseless;
	ck_assert_int_eq(
		rp_verify(checkpoint, &options, &report, error, sizeof error), RP_E_ARGUMENT);
	options = (struct rp_verify_options){.size = sizeof options, .env = "fixtures"};
	ck_assert_int_eq(
		rp_verify(checkpoint, &options, &report, error, sizeof error), RP_E_NOT_FOUND);
	ck_assert_ptr_nonnull(strstr(error, "site-packages"));
}
END_TEST

START_TEST(a_path_that_is_not_there_is_an_error_with_words)
{
	ck_assert_int_eq(
		rp_verify("fixtures/nothing", NULL, &report, error, sizeof error), RP_E_IO);
	ck_assert_ptr_null(report);
	ck_assert_ptr_nonnull(strstr(error, "No such file"));
	ck_assert_int_eq(rp_verify("fixtures/nothing", NULL, &report, NULL, 0), RP_E_IO);
	ck_assert_int_eq(rp_verify(NULL, NULL, &report, error, sizeof error), RP_E_ARGUMENT);
	ck_assert_int_eq(rp_verify("fixtures", NULL, NULL, error, sizeof error), RP_E_ARGUMENT);
}
END_TEST

/* What callers built against an earlier and a later release would pass. */
struct later_options {
	struct rp_verify_options known;
	uint64_t unknown;
};

START_TEST(options_of_other_releases_work_unless_they_ask_for_what_is_not_there)
{
	const char *path = FIXTURES "uninterrupted/checkpoints/step_00020.pt";
	struct later_options later = {.known = {.size = sizeof later}};
	struct rp_verify_options earlier = {.size = sizeof earlier.size + sizeof earlier.against};

	ck_assert_int_eq(rp_verify(path, &later.known, &report, NULL, 0), RP_OK);
	teardown();
	ck_assert_int_eq(rp_verify(path, &earlier, &report, NULL, 0), RP_OK);
	teardown();
	later.unknown = 1;
	ck_assert_int_eq(rp_verify(path, &later.known, &report, NULL, 0), RP_E_ARGUMENT);
	earlier.size = 1;
	ck_assert_int_eq(rp_verify(path, &earlier, &report, NULL, 0), RP_E_ARGUMENT);
}
END_TEST

START_TEST(a_run_file_can_be_named)
{
	struct rp_verify_options options = {
		.size = sizeof options, .quick = 1, .max_seconds = 3600, .run = "no such file"};
	const char *folder = "fixtures/torchdata-0.11.0/plain-loader/checkpoints/step_14.pt";

	ck_assert_int_eq(rp_verify(folder, &options, &report, error, sizeof error), RP_E_IO);
	ck_assert_ptr_nonnull(strstr(error, "no such file"));
	options.run = "fixtures/torchdata-0.11.0/plain-loader/wrong.run";
	ck_assert_int_eq(rp_verify(folder, &options, &report, NULL, 0), RP_OK);
	ck_assert_str_eq(rp_report_verdict(report), "WOULD-REPLAY");
	rp_report_free(report);
	options.max_seconds = -1;
	ck_assert_int_eq(rp_verify(folder, &options, &report, NULL, 0), RP_E_ARGUMENT);
}
END_TEST

START_TEST(quick_reads_no_bytes_and_says_so)
{
	struct rp_verify_options options = {.size = sizeof options, .quick = 1, .threads = 2};

	ck_assert_int_eq(rp_verify(FIXTURES "uninterrupted/checkpoints/step_00020.pt", &options,
				 &report, NULL, 0),
		RP_OK);
	ck_assert_int_eq(rp_report_exit(report), 0);
	ck_assert_ptr_nonnull(strstr(rp_report_json(report), "bytes were not read (--quick)"));
}
END_TEST

START_TEST(freeing_nothing_does_nothing)
{
	rp_report_free(NULL);
	ck_assert_str_eq(rp_version(), RP_VERSION);
}
END_TEST

START_TEST(a_run_is_audited_and_resumes_can_be_told)
{
	static const char *const paths[] = {"fixtures/ledger/random-right/samples.jsonl"};
	static const int64_t resumed[] = {2, 10};
	struct rp_audit_options options = {.size = sizeof options, .threads = 1};

	errno = 1234;
	ck_assert_int_eq(rp_audit(paths, 1, &options, &report, error, sizeof error), RP_OK);
	ck_assert_int_eq(errno, 1234);
	ck_assert_str_eq(rp_report_verdict(report), "EXACT");
	ck_assert_int_eq(rp_report_exit(report), 0);
	teardown();
	/* Two steps further back than it was. */
	options.resumed = resumed;
	options.resumes = 1;
	ck_assert_int_eq(rp_audit(paths, 1, &options, &report, error, sizeof error), RP_OK);
	ck_assert_int_eq(rp_report_exit(report), 1);
	ck_assert_ptr_nonnull(strstr(rp_report_json(report), "\"D104\""));
	teardown();
	ck_assert_int_eq(rp_audit(paths, 0, NULL, &report, error, sizeof error), RP_E_ARGUMENT);
	ck_assert_int_eq(
		rp_audit((const char *const[]){"fixtures/nothing"}, 1, NULL, &report, NULL, 0),
		RP_E_IO);
	ck_assert_ptr_null(report);
}
END_TEST

Suite *suite_api(void)
{
	Suite *s = suite_create("api");
	TCase *t = tcase_create("verify");

	tcase_add_checked_fixture(t, NULL, teardown);
	tcase_add_test(t, a_run_is_audited_and_resumes_can_be_told);
	tcase_add_test(t, a_wrong_resume_has_a_verdict_findings_and_a_document);
	tcase_add_test(t, a_path_that_is_not_there_is_an_error_with_words);
	tcase_add_test(t, the_versions_that_will_resume_decide);
	tcase_add_test(t, options_of_other_releases_work_unless_they_ask_for_what_is_not_there);
	tcase_add_test(t, quick_reads_no_bytes_and_says_so);
	tcase_add_test(t, a_run_file_can_be_named);
	tcase_add_test(t, freeing_nothing_does_nothing);
	suite_add_tcase(s, t);
	return s;
}
