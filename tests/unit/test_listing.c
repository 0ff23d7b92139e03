/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "state/listing.h"

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

Suite *suite_listing(void);

static char root[64];
static struct limits limits;
static struct listing listing;
static struct error error;

static void setup(void)
{
	snprintf(root, sizeof root, "/tmp/reprise-listing-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(root));
	limits = limits_default();
	error = ERROR_INIT;
	listing = (struct listing){.dirfd = -1};
}

static void teardown(void)
{
	char command[256];

	listing_close(&listing);
	snprintf(command, sizeof command, "chmod -R u+rwx %s; rm -rf %s", root, root);
	ck_assert_int_eq(system(command), 0);
}

static const char *in_root(const char *path)
{
	static char text[512];

	snprintf(text, sizeof text, "%s/%s", root, path);
	return text;
}

static void make_dir(const char *path)
{
	ck_assert_int_eq(mkdir(in_root(path), 0777), 0);
}

static void make_file(const char *path)
{
	FILE *f = fopen(in_root(path), "w");

	ck_assert_ptr_nonnull(f);
	fputs("12345", f);
	ck_assert_int_eq(fclose(f), 0);
}

static void make_link(const char *target, const char *path)
{
	ck_assert_int_eq(symlink(target, in_root(path)), 0);
}

/* The paths of all files, one behind the other. */
static const char *listed(unsigned depth)
{
	static char text[2048];

	text[0] = '\0';
	ck_assert_int_eq(listing_open(&listing, root, depth, &limits, &error), RP_OK);
	for (size_t i = 0; i < listing.files.count; i++) {
		strcat(text, i ? " " : "");
		strcat(text, listing.files.items[i].path);
	}
	return text;
}

START_TEST(numbers_in_names_are_sorted_as_numbers)
{
	make_dir("step-10");
	make_dir("step-9");
	make_file("step-10/a.pt");
	make_file("step-9/rank-10.pt");
	make_file("step-9/rank-2.pt");
	make_file("latest");
	ck_assert_str_eq(listed(8), "latest step-9/rank-2.pt step-9/rank-10.pt step-10/a.pt");
	ck_assert_uint_eq(listing.dirs.count, 3);
	ck_assert_str_eq(listing.dirs.items[1].path, "step-9");
	ck_assert_uint_eq(listing.files.items[1].dir, 1);
	ck_assert_uint_eq(listing.files.items[3].dir, 2);
	ck_assert_str_eq(listing.files.items[3].name, "a.pt");
	ck_assert_uint_eq(listing.files.items[3].size, 5);
	ck_assert(listing.files.items[3].regular);
}
END_TEST

START_TEST(files_are_found_by_their_path)
{
	make_dir("a");
	for (int i = 0; i < 30; i++) {
		char name[32];
		snprintf(name, sizeof name, "a/shard-%02d.pt", i);
		make_file(name);
	}
	make_file("b.pt");
	listed(8);
	ck_assert_str_eq(listing_find(&listing, "a/shard-07.pt")->name, "shard-07.pt");
	ck_assert_ptr_nonnull(listing_find(&listing, "b.pt"));
	/* Equal as numbers, but another name. */
	ck_assert_ptr_null(listing_find(&listing, "a/shard-7.pt"));
	ck_assert_ptr_null(listing_find(&listing, "shard-07.pt"));
	ck_assert_ptr_null(listing_find(&listing, ""));
}
END_TEST

START_TEST(links_to_files_are_followed_and_links_to_folders_are_not)
{
	make_dir("blobs");
	make_file("blobs/0a1b");
	make_link("blobs/0a1b", "model.safetensors");
	make_link(".", "round");
	make_link("/usr", "out");
	make_link("nowhere", "dangling.pt");
	make_link("self", "self");
	ck_assert_str_eq(listed(8), "blobs/0a1b dangling.pt model.safetensors self");
	ck_assert(listing.files.items[2].symlink);
	ck_assert(listing.files.items[2].regular);
	ck_assert_uint_eq(listing.files.items[2].size, 5);
	ck_assert(!listing.files.items[1].regular);
	ck_assert(!listing.files.items[3].regular);
	ck_assert_uint_eq(listing.skipped, 0);
}
END_TEST

START_TEST(pipes_are_listed_and_not_opened)
{
	ck_assert_int_eq(mkfifo(in_root("pipe.pt"), 0666), 0);
	ck_assert_str_eq(listed(8), "pipe.pt");
	ck_assert(!listing.files.items[0].regular);
	listing_close(&listing);
	/* A root that is one: the open of its folder must not wait for a writer. */
	ck_assert_int_eq(listing_open(&listing, in_root("pipe.pt"), 8, &limits, &error), RP_OK);
	ck_assert(listing.single);
	ck_assert(!listing.files.items[0].regular);
}
END_TEST

START_TEST(folders_deeper_than_asked_for_are_counted)
{
	make_dir("a");
	make_dir("a/b");
	make_dir("a/b/c");
	make_file("1");
	make_file("a/2");
	make_file("a/b/3");
	make_file("a/b/c/4");
	ck_assert_str_eq(listed(0), "1");
	ck_assert_uint_eq(listing.skipped, 1);
	listing_close(&listing);
	ck_assert_str_eq(listed(2), "1 a/2 a/b/3");
	ck_assert_uint_eq(listing.skipped, 1);
	listing_close(&listing);
	ck_assert_str_eq(listed(3), "1 a/2 a/b/3 a/b/c/4");
	ck_assert_uint_eq(listing.skipped, 0);
}
END_TEST

START_TEST(too_many_files_are_an_error_with_the_limits_name)
{
	make_file("1");
	make_file("2");
	make_file("3");
	limits.files = 3;
	ck_assert_str_eq(listed(8), "1 2 3");
	listing_close(&listing);
	limits.files = 2;
	ck_assert_int_eq(listing_open(&listing, root, 8, &limits, &error), RP_E_LIMIT);
	ck_assert_ptr_nonnull(strstr(error.text, "files"));
}
END_TEST

/* As another user where the tests run as root, who may read everything. */
static bool become_nobody(void)
{
	return geteuid() != 0 ||
	       (chmod(root, 0777) == 0 && setegid(65534) == 0 && seteuid(65534) == 0);
}

START_TEST(folders_that_cannot_be_read_are_counted)
{
	make_dir("shut");
	make_file("shut/1");
	make_dir("names-only");
	make_file("names-only/2");
	make_file("3");
	ck_assert_int_eq(chmod(in_root("shut"), 0), 0);
	ck_assert_int_eq(chmod(in_root("names-only"), 0444), 0);
	uid_t user = geteuid();
	ck_assert(become_nobody());
	ck_assert_str_eq(listed(8), "3");
	ck_assert_uint_eq(listing.skipped, 2);
	listing_close(&listing);
	ck_assert_int_lt(listing_open(&listing, in_root("shut"), 8, &limits, &error), 0);
	if (user == 0)
		ck_assert(seteuid(0) == 0 && setegid(0) == 0);
}
END_TEST

START_TEST(a_file_is_a_listing_of_one)
{
	make_dir("a");
	make_file("a/model.pt");
	ck_assert_int_eq(listing_open(&listing, in_root("a/model.pt"), 8, &limits, &error), RP_OK);
	ck_assert(listing.single);
	ck_assert_uint_eq(listing.files.count, 1);
	ck_assert_str_eq(listing.files.items[0].path, "model.pt");
	ck_assert_int_eq(faccessat(listing.dirfd, "model.pt", R_OK, 0), 0);
}
END_TEST

START_TEST(the_root_is_named_without_its_slashes)
{
	char path[600];

	make_dir("checkpoint-30");
	snprintf(path, sizeof path, "%s///", in_root("checkpoint-30"));
	ck_assert_int_eq(listing_open(&listing, path, 8, &limits, &error), RP_OK);
	ck_assert_str_eq(listing.dirs.items[0].name, "checkpoint-30");
	ck_assert_uint_eq(listing.files.count, 0);
	ck_assert(!listing.single);
}
END_TEST

START_TEST(what_is_not_there_is_an_error_with_the_reason)
{
	ck_assert_int_eq(listing_open(&listing, in_root("nothing"), 8, &limits, &error), RP_E_IO);
	ck_assert_str_eq(error.text, "cannot open: No such file or directory");
}
END_TEST

Suite *suite_listing(void)
{
	Suite *s = suite_create("listing");
	TCase *t = tcase_create("listing");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, numbers_in_names_are_sorted_as_numbers);
	tcase_add_test(t, files_are_found_by_their_path);
	tcase_add_test(t, links_to_files_are_followed_and_links_to_folders_are_not);
	tcase_add_test(t, pipes_are_listed_and_not_opened);
	tcase_add_test(t, folders_deeper_than_asked_for_are_counted);
	tcase_add_test(t, too_many_files_are_an_error_with_the_limits_name);
	tcase_add_test(t, folders_that_cannot_be_read_are_counted);
	tcase_add_test(t, a_file_is_a_listing_of_one);
	tcase_add_test(t, the_root_is_named_without_its_slashes);
	tcase_add_test(t, what_is_not_there_is_an_error_with_the_reason);
	suite_add_tcase(s, t);
	return s;
}
