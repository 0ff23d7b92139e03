/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "audit/defects.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <check.h>

#include "profile/profile.h"

static struct environment env;
static struct error e;

static void begin(void)
{
	environment_init(&env);
	e = ERROR_INIT;
}

static void end(void)
{
	environment_release(&env);
}

static void check_requirement(const char *id, const char *text)
{
	struct slice rest = slice_of(text);
	struct clause c;
	int got;

	while ((got = requirement_next(&rest, &c)) > 0) {
		ck_assert_msg(c.package.n > 0, "%s: '%s'", id, text);
		if (c.has_from && c.has_before)
			ck_assert_msg(version_compare(&c.from, &c.before) < 0,
				"%s: '%s' holds of no version", id, text);
	}
	ck_assert_msg(got == 0 && rest.n == 0, "%s: '%s' is no requirement", id, text);
}

static bool is_profile(const char *name)
{
	for (size_t i = 0; profiles[i]; i++)
		if (strcmp(profiles[i]->name, name) == 0)
			return true;
	return *name == '\0';
}

START_TEST(every_row_makes_sense)
{
	for (size_t i = 0; i < defect_count; i++) {
		const struct defect *d = &defects[i];
		check_requirement(d->id, d->saved);
		check_requirement(d->id, d->resumed);
		ck_assert_msg(is_profile(d->profile), "%s: no profile '%s'", d->id, d->profile);
		ck_assert_msg(*d->effect && *d->source && *d->proof, "%s", d->id);
		ck_assert_msg((d->kind == DEFECT_FOUND) == (d->condition != NULL), "%s", d->id);
		ck_assert_msg(d->unsure <= d->affected || d->kind != DEFECT_FOUND, "%s", d->id);
		for (size_t k = 0; k < i; k++)
			ck_assert_str_ne(d->id, defects[k].id);
	}
}
END_TEST

static const struct {
	const char *requirement, *version; /* NULL: not known */
	enum truth truth;
} held[] = {
	{"accelerate>=1.7,<1.15", "1.6.0", TRUTH_NO},
	{"accelerate>=1.7,<1.15", "1.7", TRUTH_YES},
	{"accelerate>=1.7,<1.15", "1.10.1", TRUTH_YES},
	{"accelerate>=1.7,<1.15", "1.14.0.post1", TRUTH_YES},
	{"accelerate>=1.7,<1.15", "1.15.0", TRUTH_NO},
	{"accelerate>=1.7,<1.15", "1.15.0+cpu", TRUTH_NO},
	{"accelerate>=1.7,<1.15", "1.15.0rc1", TRUTH_UNKNOWN},
	{"accelerate>=1.7,<1.15", "1.7.0.dev0", TRUTH_UNKNOWN},
	{"accelerate>=1.7,<1.15", NULL, TRUTH_UNKNOWN},
	{" accelerate<1.15 ; torch", "0.1", TRUTH_YES},
	{"accelerate>=1.7", "2026.1", TRUTH_YES},
	{"accelerate", NULL, TRUTH_YES},
};

START_TEST(a_clause_holds_or_not_or_is_not_known)
{
	struct slice rest = slice_of(held[_i].requirement);
	struct clause c;
	struct version v;

	ck_assert_int_eq(requirement_next(&rest, &c), 1);
	if (held[_i].version)
		ck_assert(version_parse(slice_of(held[_i].version), &v));
	ck_assert_int_eq(clause_holds(&c, held[_i].version ? &v : NULL), held[_i].truth);
}
END_TEST

START_TEST(refuses_what_is_no_requirement)
{
	static const char *const bad[] = {">=1.0", "a>=", "a>=x", "a<1,b", "a==1.0", "a>1.0"};
	struct clause c;

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct slice rest = slice_of(bad[i]);
		int got = requirement_next(&rest, &c);
		ck_assert_msg(got < 0, "'%s'", bad[i]);
	}
}
END_TEST

static const struct package *known(const char *name)
{
	const struct package *p;

	return environment_find(&env, slice_of(name), &p) == PACKAGE_KNOWN ? p : NULL;
}

START_TEST(names_are_taken_as_pip_takes_them)
{
	ck_assert(environment_tell(&env, SLICE("Accelerate=1.2.0")));
	ck_assert(environment_tell(&env, SLICE("huggingface_HUB==0.30")));
	ck_assert(environment_tell(&env, SLICE("a.-_b=1")));
	ck_assert_str_eq(known("accelerate")->text, "1.2.0");
	ck_assert_ptr_nonnull(known("huggingface-hub"));
	ck_assert_ptr_nonnull(known("a-b"));
	ck_assert_ptr_null(known("torch"));
}
END_TEST

START_TEST(what_was_told_first_holds)
{
	ck_assert(environment_tell(&env, SLICE("torch=2.6")));
	ck_assert(environment_tell(&env, SLICE("torch=2.1")));
	ck_assert_str_eq(known("torch")->text, "2.6");
	/* Two names of one project. */
	ck_assert(environment_tell(&env, SLICE("pytorch-lightning=2.4.0")));
	ck_assert_str_eq(known("lightning")->text, "2.4.0");
}
END_TEST

START_TEST(refuses_what_is_no_version)
{
	static const char *const bad[] = {"", "=", "a", "a=", "a=b", "=1", "-a=1", "a-=1", "a b=1",
		"a=1 2", "a===1", "\xc3\xa4=1"};

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		ck_assert_msg(!environment_tell(&env, slice_of(bad[i])), "'%s'", bad[i]);
	ck_assert_uint_eq(env.packages.count, 0);
}
END_TEST

/* A folder with all that is above it. */
static void make(const char *root, const char *path)
{
	char whole[600];

	snprintf(whole, sizeof whole, "%s/%s", root, path);
	for (char *slash = whole + strlen(root); (slash = strchr(slash + 1, '/'));) {
		*slash = '\0';
		mkdir(whole, 0700);
		*slash = '/';
	}
	ck_assert_msg(mkdir(whole, 0700) == 0, "%s", whole);
}

START_TEST(reads_packages_from_names_of_folders)
{
	char root[] = "/tmp/reprise-environment-XXXXXX", command[100];

	ck_assert_ptr_nonnull(mkdtemp(root));
	ck_assert_int_eq(environment_read(&env, root, &e), RP_E_NOT_FOUND);
	e = ERROR_INIT;
	make(root, "lib/python3.11/site-packages/accelerate-1.10.1.dist-info");
	make(root, "lib/python3.11/site-packages/huggingface_hub-0.30.0rc1.dist-info");
	make(root, "lib/python3.11/site-packages/old-name-2.0.egg-info");
	make(root, "lib/python3.11/site-packages/torch-2.0.1-py3.11.egg-info");
	make(root, "lib/python3.11/site-packages/numpy");
	make(root, "lib/python2.7/site-packages/numpy-1.0.dist-info");
	make(root, "lib64/python3.11/site-packages/accelerate-1.10.1.dist-info");
	make(root, "lib/python3/dist-packages/torchdata-0.11.0.dist-info");
	make(root, "lib/python3/dist-packages/torchdata-0.10.1.dist-info");
	ck_assert_int_eq(environment_read(&env, root, &e), RP_OK);
	ck_assert_str_eq(env.prefix, root);
	ck_assert_str_eq(known("accelerate")->text, "1.10.1");
	ck_assert_str_eq(known("huggingface-hub")->text, "0.30.0rc1");
	ck_assert_str_eq(known("old-name")->text, "2.0");
	ck_assert_str_eq(known("torch")->text, "2.0.1");
	ck_assert_ptr_null(known("numpy"));
	const struct package *p;
	ck_assert_int_eq(environment_find(&env, SLICE("torchdata"), &p), PACKAGE_AMBIGUOUS);
	/* What is told settles it. */
	ck_assert(environment_tell(&env, SLICE("torchdata=0.9.0")));
	ck_assert_str_eq(known("torchdata")->text, "0.9.0");
	snprintf(command, sizeof command, "rm -r %s", root);
	ck_assert_int_eq(system(command), 0);
}
END_TEST

Suite *suite_defects(void)
{
	Suite *s = suite_create("defects");
	TCase *c = tcase_create("defects");

	tcase_add_checked_fixture(c, begin, end);
	tcase_add_test(c, every_row_makes_sense);
	tcase_add_loop_test(
		c, a_clause_holds_or_not_or_is_not_known, 0, (int)(sizeof held / sizeof *held));
	tcase_add_test(c, refuses_what_is_no_requirement);
	tcase_add_test(c, names_are_taken_as_pip_takes_them);
	tcase_add_test(c, what_was_told_first_holds);
	tcase_add_test(c, refuses_what_is_no_version);
	tcase_add_test(c, reads_packages_from_names_of_folders);
	suite_add_tcase(s, c);
	return s;
}
