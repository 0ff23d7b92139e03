/* SPDX-License-Identifier: MIT */
/* Which files of a folder are loss logs, and what lies where. */
#define _GNU_SOURCE
#include "curve/find.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/place.h"
#include "curve/own.h"
#include "support/curves.h"

#include <check.h>

Suite *suite_curve_find(void);

#define NANOGPT "iter 10: loss 2.5000, time 5.00ms, mfu 1.00%\n"
#define NOBODYS "after step 10 of my run the loss: 2.5\n"

static struct curves c;
static struct curve_files found;
static char root[64];

static void setup(void)
{
	curves_init(&c);
	snprintf(root, sizeof root, "/tmp/reprise-find-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(root));
}

static void teardown(void)
{
	char command[256];

	curve_files_release(&found);
	curves_release(&c);
	snprintf(command, sizeof command, "rm -rf %s", root);
	ck_assert_int_eq(system(command), 0);
}

/* A file of the root, with `before` lines that say nothing in front of its text. */
static void make(const char *name, size_t before, const char *text)
{
	char path[256];

	snprintf(path, sizeof path, "%s/%s", root, name);
	FILE *f = fopen(path, "w");
	ck_assert_ptr_nonnull(f);
	for (size_t i = 0; i < before; i++)
		fprintf(f, "export SOMETHING=%zu\n", i);
	fputs(text, f);
	ck_assert_int_eq(fclose(f), 0);
}

static void find(const char *path)
{
	curve_files_release(&found);
	c.e = ERROR_INIT;
	ck_assert_msg(curve_find(&found, &path, 1, &c.options, &c.e) == RP_OK, "%s", c.e.text);
}

/* What became of a file of the root: 'l'og, 'o'ther, '-' left out, or ' ' where it is not listed.
 */
static char fate_of(const char *name)
{
	static const char letters[] = {[CURVE_FOUND_LOG] = 'l',
		[CURVE_FOUND_OUTPUT] = '?',
		[CURVE_FOUND_OTHER] = 'o',
		[CURVE_FOUND_LEFT] = '-'};

	for (size_t i = 0; i < found.list.count; i++)
		if (strcmp(curve_base_name(found.list.items[i].path), name) == 0)
			return letters[found.list.items[i].kind];
	return ' ';
}

static const char *samples(const void *head, size_t n)
{
	return n > 9 && memcmp(head, "{\"ids\":", 7) == 0 ? "samples" : NULL;
}

/* A file of a folder, by itself and beside a log of a known trainer. */
static const struct file_case {
	const char *name;
	size_t before;
	const char *text;
	char alone, beside;
} file_cases[] = {
	{"train.log", 0, NANOGPT, 'l', 'l'},
	{"notes", 0, NANOGPT, 'l', 'l'},
	/* Behind a job's preamble, in what is called as output is. */
	{"slurm-12.out", 10000, NANOGPT, 'l', 'l'},
	{"train.log.3", 10000, NANOGPT, 'l', 'l'},
	{"train.log-20261130", 10000, NANOGPT, 'l', 'l'},
	{"notes", 10000, NANOGPT, ' ', ' '},
	{"checkpoint.bin", 0, NANOGPT, ' ', ' '},
	{"train.log", 0, NOBODYS, 'l', '-'},
	{"train.err.1", 10000, NOBODYS, 'l', '-'},
	{"notes", 0, NOBODYS, ' ', ' '},
	{"train.log", 0, "nothing of the kind\n", ' ', ' '},
	{"train.log", 0, "", ' ', ' '},
	{"train.log.gz", 0, "\x1f\x8b\x08", '-', '-'},
	{"data.gz", 0, "\x1f\x8b\x08", ' ', ' '},
	{"samples.jsonl", 0, "{\"ids\": [1, 2]}\n", 'o', 'o'},
	{"report.json", 0, "{\n  \"schema\": \"reprise/1\",\n", '-', '-'},
	{"curve.csv", 0, "step,attempt,loss,grad_norm,time\n1,1,2.5,0.1,\n", '-', '-'},
	{"metrics.csv", 0, "step,attempt,loss,note,time\n1,1,2.5,0.1,\n", 'l', 'l'},
};

START_TEST(tells_the_files_of_a_folder_apart)
{
	const struct file_case *t = &file_cases[_i];

	c.options.other = samples;
	make(t->name, t->before, t->text);
	find(root);
	ck_assert_msg(fate_of(t->name) == t->alone, "%s: '%c'", t->name, fate_of(t->name));
	ck_assert_uint_eq(found.operands.items[0].logs, t->alone == 'l');
	ck_assert_uint_eq(found.operands.items[0].others, t->alone == 'o');
	make("known.log", 0, NANOGPT);
	find(root);
	ck_assert_msg(fate_of(t->name) == t->beside, "%s: '%c'", t->name, fate_of(t->name));
	ck_assert_uint_eq(found.looked, 2);
}
END_TEST

START_TEST(says_of_what_is_long_that_it_was_not_looked_through)
{
	make("rank-3.log", 3000000, NANOGPT);
	find(root);
	ck_assert_int_eq(fate_of("rank-3.log"), '-');
	ck_assert_ptr_nonnull(strstr(found.list.items[0].what, "as far as it was looked at"));
}
END_TEST

/* What the user names is read whatever it is called and says. */
START_TEST(takes_what_is_named)
{
	char path[256];

	make("notes", 10000, NANOGPT);
	snprintf(path, sizeof path, "%s/notes", root);
	find(path);
	ck_assert_int_eq(fate_of("notes"), 'l');
	ck_assert_uint_eq(found.operands.items[0].logs, 1);
	make("notes", 0, "step,attempt,loss,time\n1,1,2.5,\n");
	find(path);
	ck_assert_int_eq(fate_of("notes"), 'l');
	/* A text may be a log yet; only reading it tells. */
	make("notes", 0, "nothing of the kind\n");
	find(path);
	ck_assert_uint_eq(found.operands.items[0].logs, 0);
	ck_assert_uint_eq(found.operands.items[0].left, 0);
	make("notes", 0, "\x1f\x8b\x08");
	find(path);
	ck_assert_int_eq(fate_of("notes"), '-');
	ck_assert(found.list.items[0].unread);
}
END_TEST

START_TEST(lists_of_many_that_are_left_out_the_first_ones)
{
	const char *path = root;

	make("known.log", 0, NANOGPT);
	for (int i = 0; i < 30; i++) {
		char name[32];
		snprintf(name, sizeof name, "%d.log.gz", i);
		make(name, 0, "\x1f\x8b\x08");
	}
	find(root);
	ck_assert_uint_eq(found.operands.items[0].left, 30);
	ck_assert_uint_eq(found.list.count, 21);
	ck_assert_int_eq(curve_open(&c.log, &path, 1, &c.options, &c.e), RP_OK);
	ck_assert_uint_eq(c.log.left.count, 21);
	ck_assert_str_eq(c.log.left.items[20].why, "10 more files in it");
	ck_assert_str_eq(c.log.left.items[20].path, root);
}
END_TEST

/* Places --------------------------------------------------------------------------------------- */

START_TEST(knows_what_lies_below_a_folder)
{
	char inner[128], file[160], far[200], link[128];

	snprintf(inner, sizeof inner, "%s/a", root);
	ck_assert_int_eq(mkdir(inner, 0777), 0);
	snprintf(file, sizeof file, "%s/new.csv", inner);
	snprintf(far, sizeof far, "%s/../../new.csv", inner);
	snprintf(link, sizeof link, "%s/link", root);
	ck_assert_int_eq(symlink("/", link), 0);
	ck_assert(place_within(file, root) && place_within(file, inner));
	ck_assert(!place_within(far, root) && place_within(far, "/"));
	ck_assert(place_within(link, root));
	ck_assert(!place_within("new.csv", root) && place_within("new.csv", "."));
	ck_assert(!place_within(file, "/nowhere") && !place_within("/nowhere/new.csv", root));
	make("a/new.csv", 0, "x");
	ck_assert(place_within(file, file) && !place_within(inner, file));
	ck_assert(place_same(file, file) && !place_same(file, root));
	ck_assert(!place_same("/nowhere", "/nowhere"));
}
END_TEST

static const struct {
	const char *head;
	bool table;
} heads[] = {
	{"step,attempt,loss,time\n", true},
	{"token,attempt,state,loss,grad_norm,valid_loss:wiki,time\n1,", true},
	{"epoch,attempt,loss,\"part_loss:a,b\",time\n", true},
	{"step,attempt,time\n", false},
	{"step,attempt,loss\n", false},
	{"step,attempt,loss,time", false},
	{"step,loss,attempt,time\n", false},
	{"step,attempt,loss,wall,time\n", false},
	{"attempt,step,loss,time\n", false},
	{"", false},
};

START_TEST(knows_its_own_tables)
{
	ck_assert_int_eq(own_table(slice_of(heads[_i].head)), heads[_i].table);
	ck_assert_int_eq(own_output(slice_of(heads[_i].head)) != NULL, heads[_i].table);
}
END_TEST

Suite *suite_curve_find(void)
{
	Suite *s = suite_create("curve_find");
	TCase *t = tcase_create("all");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(
		t, tells_the_files_of_a_folder_apart, 0, sizeof file_cases / sizeof *file_cases);
	tcase_add_test(t, says_of_what_is_long_that_it_was_not_looked_through);
	tcase_add_test(t, takes_what_is_named);
	tcase_add_test(t, lists_of_many_that_are_left_out_the_first_ones);
	tcase_add_test(t, knows_what_lies_below_a_folder);
	tcase_add_loop_test(t, knows_its_own_tables, 0, sizeof heads / sizeof *heads);
	suite_add_tcase(s, t);
	return s;
}
