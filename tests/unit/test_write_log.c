/* SPDX-License-Identifier: MIT */
/* What is written is read back as the same: real logs, and one that has everything. */
#define _GNU_SOURCE
#include "report/write_log.h"

#include <check.h>
#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/text.h"
#include "ledger/read.h"
#include "ledger/sealed.h"
#include "support/ledgers.h"

Suite *suite_write_log(void);

static char root[64];
static struct limits limits;
static struct error e;

static void setup(void)
{
	snprintf(root, sizeof root, "/tmp/reprise-write-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(root));
	limits = limits_default();
	e = ERROR_INIT;
}

static void teardown(void)
{
	char command[256];

	snprintf(command, sizeof command, "rm -rf %s", root);
	ck_assert_int_eq(system(command), 0);
}

static int write_file(void *context, struct slice text, struct error *error)
{
	(void)error;
	return fwrite(text.p, 1, text.n, context) == text.n ? RP_OK : RP_E_IO;
}

static void read_path(struct ledger *l, const char *path)
{
	struct ledger_options o = {.limits = &limits, .memory = 1 << 24};

	ck_assert_msg(ledger_open(l, &path, 1, &o, &e) == RP_OK, "%s: %s", path, e.text);
}

typedef int write_fn(
	const struct ledger *l, text_write_fn *write, void *context, struct error *error);

/* Write it, and read what was written. */
static void through(const struct ledger *l, write_fn *write, const char *name, struct ledger *back)
{
	static char path[128];

	snprintf(path, sizeof path, "%s/%s", root, name);
	FILE *f = fopen(path, "w");
	ck_assert_ptr_nonnull(f);
	ck_assert_msg(write(l, write_file, f, &e) == RP_OK, "%s", e.text);
	ck_assert_int_eq(fclose(f), 0);
	read_path(back, path);
	ck_assert_uint_eq(back->lines_lost, 0);
}

/* Seal it, and read what was sealed. */
static int sealed(const struct ledger *l, struct ledger *back)
{
	static char path[128];
	const char *paths[] = {path};
	struct ledger_options o = {.limits = &limits, .memory = 1 << 24};

	snprintf(path, sizeof path, "%s/log.rpl", root);
	ck_assert_msg(sealed_write(l, path, &e) == RP_OK, "%s", e.text);
	return ledger_open(back, paths, 1, &o, &e);
}

static void assert_same(
	const struct ledger *a, const struct ledger *b, enum ledgers_part part, const char *of)
{
	const char *difference = ledgers_differ(a, b, part);

	ck_assert_msg(!difference, "%s: %s", of, difference ? difference : "");
}

START_TEST(real_logs_come_back)
{
	static const char top[] = "fixtures/ledger";
	DIR *dir = opendir(top);
	struct dirent *entry;
	unsigned seen = 0;

	ck_assert_ptr_nonnull(dir);
	while ((entry = readdir(dir))) {
		struct ledger l, jsonl, csv, columns;
		char path[300];
		if (entry->d_name[0] == '.' || strchr(entry->d_name, '.'))
			continue;
		snprintf(path, sizeof path, "%s/%s", top, entry->d_name);
		read_path(&l, path);
		ck_assert_uint_gt(l.rows, 0);
		through(&l, log_write_jsonl, "log.jsonl", &jsonl);
		assert_same(&l, &jsonl, LEDGERS_ALL, path);
		ck_assert_msg(sealed(&l, &columns) == RP_OK, "%s: %s", path, e.text);
		assert_same(&l, &columns, LEDGERS_ALL, path);
		ck_assert_str_eq(l.attempts.items[0].file, columns.attempts.items[0].file);
		ck_assert_uint_eq(l.lines, columns.lines);
		ck_assert_uint_eq(l.noted, columns.noted);
		ledger_release(&columns);
		bool keys = l.spaces.items[0].kind != KEY_ID;
		if (!keys || l.spaces.count == 1) {
			through(&l, log_write_csv, "log.csv", &csv);
			/* Attempts without steps are no rows, nor are steps without samples. */
			if (csv.attempts.count == l.attempts.count &&
				csv.steps.count == l.steps.count)
				assert_same(&l, &csv, LEDGERS_SAMPLES, path);
			ck_assert_uint_eq(l.rows, csv.rows);
			ledger_release(&csv);
		}
		ledger_release(&jsonl);
		ledger_release(&l);
		seen++;
	}
	closedir(dir);
	ck_assert_uint_gt(seen, 20);
}
END_TEST

static const char everything[] =
	"{\"reprise\":\"ledger/1\",\"run\":\"t\\\"iny\",\"dataset\":{\"name\":\"pile\",\"fingerprint\":\"f\","
	"\"size\":64,\"unit\":\"sample\",\"order\":\"o\",\"sampling\":\"stream\",\"sources\":{\"web,1\":"
	"{\"size\":48,\"weight\":0.1,\"epochs\":2},\"code\":{}}},\"repeat\":2,\"plan\":{\"max_steps\":9}}\n"
	"{\"attempt\":1,\"step\":1,\"dp\":0,\"ids\":[1],\"loss\":0.1}\n"
	"{\"attempt\":2,\"from_step\":0,\"from\":{\"attempt\":1,\"path\":\"p\",\"digest\":\"d\"},\"launch\":\"l\","
	"\"kind\":\"reference\",\"world_size\":8,\"dp_size\":2,\"global_batch\":32,\"micro_batch\":8,"
	"\"accumulation\":3,\"epoch\":1,\"seed\":-5,\"code\":\"c\",\"versions\":{\"a\":\"1\"},\"workers\":4,"
	"\"prefetch\":2,\"drop_last\":false,\"weights\":{\"code\":0.25},\"config\":{\"x\":[1,{}]},"
	"\"intent\":{\"seed\":[1,2],\"lr\":0.5,\"batch\":true,\"weights\":true,\"order\":true,\"world\":true,"
	"\"code\":true,\"rewarmup\":9,\"skip\":[{\"unit\":\"sample\",\"from\":1,\"to\":2,\"of\":\"new\"}]}}\n"
	"{\"step\":1,\"dp\":1,\"micro\":1,\"worker\":2,\"epoch\":3,\"ids\":[2,3,4],\"source\":[\"code\",null,"
	"\"web,1\"],\"tokens\":[7,8,9],\"loss\":[0.3,null,1e-3],\"lr\":6e-5,\"grad_norm\":1.7,\"position\":77,"
	"\"counts\":{\"im\":1.5,\"te\\n\":2},\"applied\":false}\n"
	"{\"step\":1,\"dp\":0,\"ids\":[18446744073709551615,5],\"source\":\"code\",\"tokens\":9}\n"
	"{\"step\":1,\"dp\":0,\"keys\":[\"00000000000000aa\"]}\n"
	"{\"step\":3,\"loss\":2.25}\n"
	"{\"step\":4,\"dp\":0,\"ids\":[]}\n"
	"{\"checkpoint\":3,\"path\":\"q\",\"position\":5,\"digest\":\"e\"}\n"
	"{\"end\":\"killed\",\"step\":5}\n"
	"{\"attempt\":2,\"from_step\":3}\n"
	"{\"step\":4,\"ids\":[9]}\n"
	"{\"attempt\":7}\n"
	"{\"reprise\":\"ledger/1\",\"dataset\":{\"name\":\"other\"}}\n"
	"{\"step\":5,\"ids\":[9]}\n";

START_TEST(a_log_with_everything_comes_back)
{
	struct ledger l, jsonl, columns;
	char path[100];

	snprintf(path, sizeof path, "%s/all.jsonl", root);
	FILE *f = fopen(path, "w");
	fputs(everything, f);
	fclose(f);
	read_path(&l, path);
	ck_assert_uint_eq(l.lines_lost, 0);
	ck_assert_uint_eq(l.datasets.count, 2);
	ck_assert_uint_eq(l.attempts.count, 4);
	through(&l, log_write_jsonl, "back.jsonl", &jsonl);
	assert_same(&l, &jsonl, LEDGERS_ALL, "everything");
	ck_assert_msg(sealed(&l, &columns) == RP_OK, "%s", e.text);
	assert_same(&l, &columns, LEDGERS_ALL, "everything, sealed");
	ledger_release(&columns);
	e = ERROR_INIT;
	ck_assert_int_eq(log_write_csv(&l, write_file, stdout, &e), RP_E_UNSUPPORTED);
	ledger_release(&jsonl);
	ledger_release(&l);
}
END_TEST

START_TEST(what_was_left_out_is_sealed_too)
{
	struct ledger l, columns;
	char path[100];

	snprintf(path, sizeof path, "%s/bad.jsonl", root);
	FILE *f = fopen(path, "w");
	fputs("{\"attempt\":1}\n{\"step\":1,\"ids\":[1]}\nbad\n{\"step\":2,\"ids\":[x]}\n"
	      "{\"attempt\":1}\n{\"step\":1,\"ids\":[\"a\"],\"split\":\"val\"}\n",
		f);
	fclose(f);
	read_path(&l, path);
	ck_assert_uint_eq(l.lines_lost, 2);
	ck_assert_msg(sealed(&l, &columns) == RP_OK, "%s", e.text);
	ck_assert_uint_eq(columns.lines, l.lines);
	ck_assert_uint_eq(columns.lines_lost, 2);
	ck_assert_uint_eq(columns.lines_other, 1);
	ck_assert_str_eq(columns.losses.items[1].what, l.losses.items[1].what);
	ck_assert_uint_eq(columns.losses.items[1].line, 4);
	ck_assert_uint_eq(columns.notes.count, l.notes.count);
	for (size_t i = 0; i < l.notes.count; i++)
		ck_assert_str_eq(columns.notes.items[i].what, l.notes.items[i].what);
	ck_assert(columns.steps.items[1].irregular);
	assert_same(&l, &columns, LEDGERS_ALL, "bad");
	ledger_release(&columns);
	ledger_release(&l);
}
END_TEST

/* Tables that contradict each other, as a file with a right digest may hold them. */
static void break_step_samples(struct ledger *l)
{
	l->steps.items[0].n++;
}

static void break_step_geometry(struct ledger *l)
{
	l->steps.items[1].geometry = 77;
}

static void break_step_number(struct ledger *l)
{
	l->steps.items[1].step = INT64_MIN;
}

static void break_part(struct ledger *l)
{
	l->parts.items[0].n--;
}

static void break_geometry(struct ledger *l)
{
	l->geometries.items[0].first = UINT32_MAX;
}

static void break_weights(struct ledger *l)
{
	l->attempts.items[1].weights = UINT32_MAX;
}

static void break_skips(struct ledger *l)
{
	l->attempts.items[0].intent.first_skip = 9;
}

static void break_space(struct ledger *l)
{
	l->spaces.items[0].dataset = LEDGER_NONE;
}

static void break_counts(struct ledger *l)
{
	l->steps.items[0].first_count = 1u << 30;
}

static void break_checkpoint(struct ledger *l)
{
	l->checkpoints.items[0].attempt = LEDGER_NONE;
}

static void (*const breaks[])(struct ledger *l) = {break_step_samples, break_step_geometry,
	break_step_number, break_part, break_geometry, break_weights, break_skips, break_space,
	break_counts, break_checkpoint};

START_TEST(contradictions_are_refused)
{
	struct ledger l, back;
	char path[100];

	snprintf(path, sizeof path, "%s/all.jsonl", root);
	FILE *f = fopen(path, "w");
	fputs(everything, f);
	fclose(f);
	read_path(&l, path);
	breaks[_i](&l);
	ck_assert_int_eq(sealed(&l, &back), RP_E_FORMAT);
	ledger_release(&l);
}
END_TEST

START_TEST(a_damaged_file_is_refused)
{
	struct ledger l, back;
	char path[128];
	const char *paths[] = {path};
	struct ledger_options o = {.limits = &limits, .memory = 1 << 24};

	read_path(&l, "fixtures/ledger/random-right");
	ck_assert_int_eq(sealed(&l, &back), RP_OK);
	ledger_release(&back);
	snprintf(path, sizeof path, "%s/log.rpl", root);
	FILE *f = fopen(path, "r+");
	fseek(f, 9000, SEEK_SET);
	fputc('x', f);
	fclose(f);
	ck_assert_int_eq(ledger_open(&back, paths, 1, &o, &e), RP_E_FORMAT);
	ledger_release(&l);
}
END_TEST

START_TEST(floats_come_back)
{
	static const float values[] = {0, -0.0f, 0.1f, 1.0f / 3, 2.31f, 6e-5f, 1e-45f, 3.4e38f,
		16777216, 1e10f, 123456.789f, INFINITY, -INFINITY};
	struct strbuf b;
	double back;

	strbuf_init(&b, 1000);
	for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
		strbuf_clear(&b);
		log_add_float(&b, values[i]);
		ck_assert(text_parse_double(strbuf_slice(&b), &back));
		ck_assert_float_eq((float)back, values[i]);
	}
	strbuf_clear(&b);
	log_add_float(&b, 0.1f);
	ck_assert_str_eq(strbuf_text(&b), "0.1");
	strbuf_release(&b);
}
END_TEST

Suite *suite_write_log(void)
{
	Suite *s = suite_create("write_log");
	TCase *t = tcase_create("write_log");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, real_logs_come_back);
	tcase_add_test(t, a_log_with_everything_comes_back);
	tcase_add_test(t, what_was_left_out_is_sealed_too);
	tcase_add_loop_test(t, contradictions_are_refused, 0, sizeof breaks / sizeof *breaks);
	tcase_add_test(t, a_damaged_file_is_refused);
	tcase_add_test(t, floats_come_back);
	suite_add_tcase(s, t);
	return s;
}
