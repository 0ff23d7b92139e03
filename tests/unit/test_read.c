/* SPDX-License-Identifier: MIT */
/* Sample logs from text: what is in them, and what happens to what should not be. */
#define _GNU_SOURCE
#include "ledger/read.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/lookup.h"
#include "base/scan.h"

Suite *suite_read(void);

static char root[64];
static struct limits limits;
static struct ledger l;
static struct error e;

static void setup(void)
{
	snprintf(root, sizeof root, "/tmp/reprise-read-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(root));
	limits = limits_default();
	l = (struct ledger){0};
	e = ERROR_INIT;
}

static void teardown(void)
{
	char command[256];

	ledger_release(&l);
	snprintf(command, sizeof command, "rm -rf %s", root);
	ck_assert_int_eq(system(command), 0);
}

static void make_bytes(const char *name, const void *bytes, size_t n)
{
	char path[256];

	snprintf(path, sizeof path, "%s/%s", root, name);
	FILE *f = fopen(path, "w");
	ck_assert_ptr_nonnull(f);
	ck_assert_uint_eq(fwrite(bytes, 1, n, f), n);
	ck_assert_int_eq(fclose(f), 0);
}

static void make(const char *name, const char *text)
{
	make_bytes(name, text, strlen(text));
}

/* Read all that was made. */
static int open_root(void)
{
	const char *paths[] = {root};
	struct ledger_options o = {.limits = &limits, .memory = 1 << 24};

	ledger_release(&l);
	e = ERROR_INIT;
	return ledger_open(&l, paths, 1, &o, &e);
}

static int open_file(const char *name)
{
	static char path[256];
	const char *paths[] = {path};
	struct ledger_options o = {.limits = &limits, .memory = 1 << 24};

	snprintf(path, sizeof path, "%s/%s", root, name);
	ledger_release(&l);
	e = ERROR_INIT;
	return ledger_open(&l, paths, 1, &o, &e);
}

static void read_root(void)
{
	ck_assert_msg(open_root() == RP_OK, "%s", e.text);
}

static void read_log(const char *text)
{
	make("log.jsonl", text);
	read_root();
}

/* All keys in their order, as text: "1 2 3". */
static const char *keys(void)
{
	static char text[4096];
	struct sample_source source = ledger_samples(&l);
	struct sample_buffer *buffer = sample_buffer_new();
	struct sample_block b;
	size_t n = 0;

	text[0] = '\0';
	for (uint64_t row = 0; row < source.rows; row += b.n) {
		ck_assert_int_eq(source.read(&source, row, SIZE_MAX, buffer, &b, &e), RP_OK);
		for (size_t i = 0; i < b.n && n < sizeof text; i++)
			n += (size_t)snprintf(text + n, sizeof text - n, "%s%llu", n ? " " : "",
				(unsigned long long)b.keys[i]);
	}
	sample_buffer_free(buffer);
	return text;
}

static void assert_noted(const char *what)
{
	for (size_t i = 0; i < l.notes.count; i++)
		if (strstr(l.notes.items[i].what, what))
			return;
	ck_abort_msg("nothing is noted like: %s (the first of %zu is: %s)", what, l.notes.count,
		l.notes.count ? l.notes.items[0].what : "");
}

static void assert_lost(uint64_t line, const char *what)
{
	for (size_t i = 0; i < l.losses.count; i++)
		if (l.losses.items[i].line == line) {
			ck_assert_msg(
				strstr(l.losses.items[i].what, what), "%s", l.losses.items[i].what);
			return;
		}
	ck_abort_msg("line %llu is not lost", (unsigned long long)line);
}

/* What is in a log -------------------------------------------------------------------------------
 */

START_TEST(reads_every_kind_of_line)
{
	read_log(
		"{\"reprise\":\"ledger/1\",\"run\":\"tiny\",\"dataset\":{\"name\":\"pile\","
		"\"fingerprint\":\"f1\",\"size\":64,\"unit\":\"sample\",\"order\":\"seed42\","
		"\"sampling\":\"with\",\"sources\":{\"web\":{\"size\":48,\"weight\":0.75,\"epochs\":1},"
		"\"code\":{\"size\":16,\"weight\":0.25}}},\"repeat\":2,\"plan\":{\"max_steps\":500}}\n"
		"{\"attempt\":2,\"from_step\":10,\"from\":{\"attempt\":1,\"path\":\"ckpt/10\","
		"\"digest\":\"ab\"},\"launch\":\"job-1\",\"kind\":\"reference\",\"world_size\":8,"
		"\"dp_size\":2,\"global_batch\":32,\"micro_batch\":8,\"accumulation\":1,\"epoch\":0,"
		"\"seed\":42,\"code\":\"git:ab12+dirty\",\"versions\":{\"torch\": \"2.13.0\"},"
		"\"workers\":4,\"prefetch\":2,\"drop_last\":true,\"weights\":{\"web\":0.5},"
		"\"config\":{\"a\":[1, 2]}}\n"
		"{\"step\":11,\"dp\":1,\"epoch\":0,\"ids\":[17,4],\"source\":\"web\",\"tokens\":4097,"
		"\"loss\":2.5,\"unknown\":{\"a\":[1,{\"b\":null}],\"c\":\"\\u00e9\"}}\n"
		"{\"step\": 11, \"dp\": 0, \"micro\": 1, \"ids\": [5, 6], \"source\": [\"web\", \"code\"], "
		"\"tokens\": [10, 20], \"loss\": [1.5, null], \"counts\": {\"image\": [1, 2], \"text\": 3900}, "
		"\"lr\": 6e-5, \"grad_norm\": 1.25, \"position\": 320, \"applied\": false, \"worker\": 3, "
		"\"spans\": [[1, 2, 3], [4, 5, 6]]}\n"
		"{\"step\":11,\"dp\":0,\"micro\":0,\"ids\":[7]}\n"
		"{\"checkpoint\":11,\"path\":\"ckpt/11\",\"position\":352,\"digest\":\"cd\"}\n"
		"{\"end\":\"killed\",\"step\":12}\n");
	ck_assert_uint_eq(l.lines, 7);
	ck_assert_uint_eq(l.lines_lost, 0);
	ck_assert_str_eq(l.run, "tiny");
	ck_assert_int_eq(l.max_steps, 500);
	const struct ledger_dataset *d = l.datasets.items;
	ck_assert_uint_eq(l.datasets.count, 1);
	ck_assert_str_eq(d->name, "pile");
	ck_assert_str_eq(d->fingerprint, "f1");
	ck_assert_str_eq(d->unit, "sample");
	ck_assert_str_eq(d->order, "seed42");
	ck_assert_uint_eq(d->size, 64);
	ck_assert_uint_eq(d->sampling, SAMPLING_WITH);
	ck_assert_double_eq(d->repeat, 2);
	ck_assert_uint_eq(l.sources.count, 2);
	ck_assert_str_eq(l.sources.items[0].name, "web");
	ck_assert_uint_eq(l.sources.items[0].size, 48);
	ck_assert_double_eq(l.sources.items[0].weight, 0.75);
	ck_assert(isnan(l.sources.items[1].epochs));

	const struct ledger_attempt *a = l.attempts.items;
	ck_assert_uint_eq(l.attempts.count, 1);
	ck_assert_int_eq(a->number, 2);
	ck_assert(!a->implied);
	ck_assert_uint_eq(a->kind, ATTEMPT_REFERENCE);
	ck_assert_int_eq(a->from_step, 10);
	ck_assert_int_eq(a->from_attempt, 1);
	ck_assert_str_eq(a->from_path, "ckpt/10");
	ck_assert_str_eq(a->from_digest, "ab");
	ck_assert_str_eq(a->launch, "job-1");
	ck_assert_str_eq(a->code, "git:ab12+dirty");
	ck_assert_str_eq(a->versions, "{\"torch\": \"2.13.0\"}");
	ck_assert_str_eq(a->config, "{\"a\":[1, 2]}");
	ck_assert_int_eq(a->world, 8);
	ck_assert_int_eq(a->dp, 2);
	ck_assert_int_eq(a->global_batch, 32);
	ck_assert_int_eq(a->micro_batch, 8);
	ck_assert_int_eq(a->accumulation, 1);
	ck_assert_int_eq(a->workers, 4);
	ck_assert_int_eq(a->prefetch, 2);
	ck_assert_int_eq(a->epoch, 0);
	ck_assert(a->has_seed);
	ck_assert_int_eq(a->seed, 42);
	ck_assert_int_eq(a->drop_last, 1);
	ck_assert_uint_eq(a->weights, 1);
	ck_assert_double_eq(l.weights.items[a->first_weight].weight, 0.5);
	ck_assert_str_eq(a->end, "killed");
	ck_assert_int_eq(a->end_step, 12);
	ck_assert_str_eq(a->file, "log.jsonl");
	ck_assert_uint_eq(a->line, 2);

	ck_assert_str_eq(keys(), "7 5 6 17 4");
	ck_assert_uint_eq(l.steps.count, 1);
	const struct ledger_step *s = l.steps.items;
	ck_assert_int_eq(s->step, 11);
	ck_assert_int_eq(s->epoch, 0);
	ck_assert(!s->applied);
	ck_assert(!s->irregular);
	ck_assert_int_eq(s->position, 320);
	ck_assert_float_eq(s->lr, 6e-5f);
	ck_assert_float_eq(s->grad_norm, 1.25f);
	ck_assert_uint_eq(s->tokens, 4097 + 30);
	/* One sample has a loss of its own, which says more than those of whole lines. */
	ck_assert_float_eq(s->loss, 1.5f);
	const struct ledger_geometry *g = &l.geometries.items[s->geometry];
	ck_assert_uint_eq(g->parts, 3);
	ck_assert_uint_eq(g->ranks, 2);
	ck_assert_uint_eq(l.parts.items[g->first].micro, 0);
	ck_assert_uint_eq(l.parts.items[g->first + 1].worker, 3);
	ck_assert_uint_eq(l.count_names.count, 2);
	ck_assert_str_eq(l.count_names.items[0], "image");
	ck_assert_double_eq(l.counts.items[s->first_count], 3);
	ck_assert_double_eq(l.counts.items[s->first_count + 1], 3900);
	ck_assert_uint_eq(l.checkpoints.count, 1);
	ck_assert_int_eq(l.checkpoints.items[0].step, 11);
	ck_assert_int_eq(l.checkpoints.items[0].position, 352);
	ck_assert_str_eq(l.checkpoints.items[0].path, "ckpt/11");
}
END_TEST

START_TEST(reads_intents_long_and_short)
{
	read_log(
		"{\"attempt\":1,\"intent\":{\"seed\":[42,43],\"lr\":[6e-5,4.5e-5],\"batch\":64,"
		"\"weights\":{\"web\":1},\"code\":true,\"rewarmup\":500,\"skip\":[6211,6410]}}\n"
		"{\"attempt\":2,\"intent\":{\"seed\":true,\"skip\":[{\"unit\":\"step\",\"from\":1,\"to\":2},"
		"{\"unit\":\"sample\",\"from\":3,\"to\":4,\"of\":\"new\"}],\"code\":false}}\n"
		"{\"attempt\":3,\"intent\":{\"skip\":[5,4],\"sead\":1}}\n");
	const struct ledger_attempt *a = l.attempts.items;
	ck_assert_uint_eq(l.attempts.count, 3);
	const struct ledger_intent *i = &a[0].intent;
	ck_assert(i->any && i->seed && i->lr && i->batch && i->weights && i->code && i->rewarmup);
	ck_assert(!i->order && !i->world);
	ck_assert_int_eq(i->seed_from, 42);
	ck_assert_int_eq(i->seed_to, 43);
	ck_assert_double_eq(i->lr_to, 4.5e-5);
	ck_assert_int_eq(i->batch_from, INT64_MIN);
	ck_assert_int_eq(i->batch_to, 64);
	ck_assert_uint_eq(i->skips, 1);
	const struct ledger_skip *s = &l.skips.items[i->first_skip];
	ck_assert_int_eq(s->from, 6211);
	ck_assert_int_eq(s->to, 6410);
	ck_assert(!s->samples && !s->new_order);
	i = &a[1].intent;
	ck_assert(i->seed && !i->code);
	ck_assert_int_eq(i->seed_to, INT64_MIN);
	ck_assert_uint_eq(i->skips, 2);
	s = &l.skips.items[i->first_skip + 1];
	ck_assert(s->samples && s->new_order);
	ck_assert_int_eq(s->to, 4);
	ck_assert_uint_eq(a[2].intent.skips, 0);
	assert_noted("skip: an intent that is not [first step, last step]");
	assert_noted("declares something that is not known here");
	assert_noted("3 of 3 attempts have no steps");
}
END_TEST

START_TEST(keys_are_what_they_are)
{
	char expected[200];

	read_log("{\"step\":1,\"ids\":[\"a/1\",\"b\\u00e9\\n\"]}\n"
		 "{\"step\":2,\"keys\":[\"00000000000000ff\",\"FFFFFFFFFFFFFFFF\"]}\n"
		 "{\"step\":3,\"ids\":[0,18446744073709551615,12345678,123456789,1234567]}\n");
	snprintf(expected, sizeof expected,
		"%llu %llu 255 18446744073709551615 0 18446744073709551615 12345678 123456789 1234567",
		(unsigned long long)XXH3_64bits("a/1", 3),
		(unsigned long long)XXH3_64bits("b\xc3\xa9\n", 4));
	ck_assert_str_eq(keys(), expected);
	ck_assert_uint_eq(l.spaces.count, 3);
	assert_noted("cannot be compared");
}
END_TEST

START_TEST(rows_of_csv_become_lines)
{
	make("log.csv", "\xef\xbb\xbfloss,step,\"dp\",id,source,tokens,attempt,extra\r\n"
			"1.5,7,1,10,web,100,1,x\r\n"
			",7,0,11,\"we\"\"b,\n2\",200,1,\r\n"
			"2.5,7,1,12,web,,1,\"\"\n"
			"3,8,0,13,,5,2,\n");
	read_root();
	ck_assert_str_eq(keys(), "11 10 12 13");
	ck_assert_uint_eq(l.lines, 4);
	ck_assert_uint_eq(l.lines_lost, 0);
	ck_assert_uint_eq(l.attempts.count, 2);
	ck_assert_uint_eq(l.sources.count, 2);
	ck_assert_str_eq(l.sources.items[1].name, "we\"b,\n2");
	ck_assert_uint_eq(l.steps.items[0].tokens, 300);
	ck_assert_float_eq(l.steps.items[0].loss, 2);
	ck_assert_uint_eq(l.geometries.items[l.steps.items[0].geometry].ranks, 2);
	assert_noted("a column whose name is not known here");
}
END_TEST

START_TEST(csv_keys_may_be_text_or_hashes)
{
	char expected[100];

	make("a.csv", "step,id\n1,x-1\n1,5\n");
	read_root();
	snprintf(expected, sizeof expected, "%llu 5", (unsigned long long)XXH3_64bits("x-1", 3));
	ck_assert_str_eq(keys(), expected);
	make("a.csv", "step,key\n1,00000000000000a0\n1,123\n");
	read_root();
	ck_assert_str_eq(keys(), "160");
	assert_lost(3, "key: no 16 hexadecimal digits");
}
END_TEST

/* Rows that are like the one before but for their id take a way of their own. */
START_TEST(rows_that_are_alike_are_read_as_others_are)
{
	static const char *const ids[] = {"0", "7", "007", "12345678", "x", "", "4 ",
		"18446744073709551615", "99999999999999999999", "\"3\"", "-1", "1.0"};
	static char plain[1 << 16], other[1 << 17], before[4096];
	uint64_t random = 1;
	size_t n = 0, m = 0;

	n += (size_t)snprintf(plain, sizeof plain, "step,dp,id\n");
	m += (size_t)snprintf(other, sizeof other, "step,dp,id,loss\n");
	for (int i = 0; i < 600; i++) {
		random = lookup_mix(random + (uint64_t)i);
		const char *id = ids[random % 7 == 0 ? random / 7 % 12 : 1 + 2 * (random / 7 % 2)];
		int dp = (int)(random >> 32 & 15) == 0, step = 1 + i / 40;
		const char *end = random >> 40 & 7 ? "\n" : "\r\n";
		n += (size_t)snprintf(plain + n, sizeof plain - n, "%d,%d,%s%s", step, dp, id, end);
		m += (size_t)snprintf(
			other + m, sizeof other - m, "%d,%d,%s,%s", step, dp, id, end);
	}
	make("a.csv", plain);
	read_root();
	strcpy(before, keys());
	uint64_t lines = l.lines, lost = l.lines_lost, first_lost = l.losses.items[0].line;
	uint64_t steps = l.steps.count, chain = l.steps.items[steps - 1].chain;
	make("a.csv", other);
	read_root();
	ck_assert_str_eq(keys(), before);
	ck_assert_uint_eq(l.lines, lines);
	ck_assert_uint_eq(l.lines_lost, lost);
	ck_assert_uint_eq(l.losses.items[0].line, first_lost);
	ck_assert_uint_eq(l.steps.count, steps);
	ck_assert_uint_eq(l.steps.items[steps - 1].chain, chain);
}
END_TEST

/* Which attempt -------------------------------------------------------------------------------- */

START_TEST(steps_that_go_back_begin_a_launch)
{
	read_log(
		"{\"step\":1,\"ids\":[1]}\n{\"step\":2,\"ids\":[2]}\n{\"step\":3,\"ids\":[3]}\n"
		"{\"step\":2,\"ids\":[12]}\n{\"step\":3,\"ids\":[13]}\n{\"step\":4,\"ids\":[14]}\n");
	ck_assert_uint_eq(l.attempts.count, 2);
	ck_assert_str_eq(keys(), "1 2 3 12 13 14");
	ck_assert_int_eq(l.attempts.items[0].number, 1);
	ck_assert_int_eq(l.attempts.items[1].number, 2);
	ck_assert(l.attempts.items[1].implied);
	ck_assert_int_eq(l.attempts.items[1].first_step, 2);
	ck_assert_uint_eq(l.attempts.items[1].line, 4);
}
END_TEST

START_TEST(steps_out_of_order_do_not)
{
	read_log("{\"step\":1,\"ids\":[1]}\n{\"step\":3,\"ids\":[3]}\n{\"step\":2,\"ids\":[2]}\n"
		 "{\"step\":4,\"ids\":[4]}\n");
	ck_assert_uint_eq(l.attempts.count, 1);
	ck_assert_uint_eq(l.lines_late, 1);
	ck_assert_str_eq(keys(), "1 2 3 4");
}
END_TEST

START_TEST(two_launches_under_one_number_are_two)
{
	read_log(
		"{\"attempt\":1,\"from_step\":0}\n{\"step\":1,\"ids\":[1]}\n{\"step\":2,\"ids\":[2]}\n"
		"{\"attempt\":1,\"from_step\":1}\n{\"step\":2,\"ids\":[12]}\n");
	ck_assert_uint_eq(l.attempts.count, 2);
	ck_assert_int_eq(l.attempts.items[1].number, 1);
	ck_assert_uint_eq(l.attempts.items[1].again, 1);
	ck_assert_int_eq(l.attempts.items[1].from_step, 1);
	assert_noted("two launches under one number");
	/* In lines that carry the number. */
	read_log("{\"attempt\":1,\"step\":1,\"ids\":[1]}\n{\"attempt\":1,\"step\":2,\"ids\":[2]}\n"
		 "{\"attempt\":1,\"step\":1,\"ids\":[3]}\n");
	ck_assert_uint_eq(l.attempts.count, 2);
	assert_noted("goes back to step 1");
	/* In two files. */
	make("log.jsonl", "{\"attempt\":1,\"from_step\":0}\n{\"step\":1,\"dp\":0,\"ids\":[1]}\n");
	make("log2.jsonl",
		"{\"attempt\":1,\"from_step\":0,\"launch\":\"x\"}\n{\"step\":1,\"dp\":0,\"ids\":[2]}\n");
	read_root();
	ck_assert_uint_eq(l.attempts.count, 2);
	ck_assert_str_eq(l.attempts.items[1].launch, "x");
}
END_TEST

START_TEST(a_file_a_rank_is_one_attempt)
{
	for (int rank = 0; rank < 3; rank++) {
		char name[20], text[400];
		snprintf(name, sizeof name, "rank%d.jsonl", rank);
		snprintf(text, sizeof text,
			"%s{\"attempt\":1,\"from_step\":0}\n{\"step\":1,\"dp\":%d,\"ids\":[%d]}\n"
			"{\"step\":2,\"dp\":%d,\"ids\":[%d]}\n{\"checkpoint\":2,\"path\":\"c\"}\n"
			"{\"attempt\":2,\"from_step\":1}\n{\"step\":2,\"dp\":%d,\"ids\":[%d]}\n",
			/* Only one of them has a header, and not the first. */
			rank == 1 ? "{\"reprise\":\"ledger/1\",\"dataset\":{\"name\":\"d\"}}\n"
				  : "",
			rank, 10 + rank, rank, 20 + rank, rank, 30 + rank);
		make(name, text);
	}
	read_root();
	ck_assert_uint_eq(l.attempts.count, 2);
	ck_assert_uint_eq(l.noted, 0);
	ck_assert_str_eq(keys(), "10 11 12 20 21 22 30 31 32");
	ck_assert_uint_eq(l.spaces.count, 1);
	ck_assert_uint_eq(l.checkpoints.count, 1);
	ck_assert_str_eq(l.datasets.items[0].name, "d");
}
END_TEST

START_TEST(files_that_do_not_say_their_rank_get_one)
{
	make("a.jsonl", "{\"attempt\":1}\n{\"step\":1,\"ids\":[1]}\n{\"step\":2,\"ids\":[2]}\n");
	make("b.jsonl", "{\"attempt\":1}\n{\"step\":1,\"ids\":[11]}\n{\"step\":2,\"ids\":[12]}\n");
	read_root();
	ck_assert_uint_eq(l.attempts.count, 1);
	ck_assert_str_eq(keys(), "1 11 2 12");
	assert_noted("read as rank 1");
	/* Without numbers, a file that begins later is the next launch. */
	make("a.jsonl", "{\"step\":1,\"ids\":[1]}\n{\"step\":2,\"ids\":[2]}\n");
	make("b.jsonl", "{\"step\":2,\"ids\":[12]}\n{\"step\":3,\"ids\":[13]}\n");
	make("c.jsonl", "{\"step\":4,\"ids\":[14]}\n");
	read_root();
	ck_assert_uint_eq(l.attempts.count, 3);
	ck_assert_str_eq(keys(), "1 2 12 13 14");
}
END_TEST

START_TEST(other_splits_are_left_out)
{
	read_log(
		"{\"step\":1,\"ids\":[1],\"split\":\"train\"}\n{\"step\":1,\"ids\":[2],\"split\":\"val\"}\n");
	ck_assert_str_eq(keys(), "1");
	ck_assert_uint_eq(l.lines_other, 1);
	ck_assert_uint_eq(l.lines_lost, 0);
}
END_TEST

/* Bad input ------------------------------------------------------------------------------------ */

static const struct {
	const char *line, *what;
} bad_lines[] = {
	{"{\"step\":1,\"ids\":[1", "(column 19)"},
	{"{\"step\":1,\"ids\":[1,]}", "an id that is no integer"},
	{"{\"step\":1,\"ids\":[1,2.5]}", "an id that is no integer"},
	{"{\"step\":1,\"ids\":[1,\"a\"]}", "an id that is no integer"},
	{"{\"step\":1,\"ids\":[\"a\",1]}", "no string"},
	{"{\"step\":1,\"ids\":[-1]}", "an id below 0"},
	{"{\"step\":1,\"ids\":[01]}", "an id that is no integer"},
	{"{\"step\":1,\"ids\":[18446744073709551616]}", "an id that is no integer"},
	{"{\"step\":1,\"ids\":[[1,2]]}", "an id that is no integer"},
	{"{\"step\":1,\"ids\":17}", "ids is no array"},
	{"{\"step\":1,\"ids\":[1],\"keys\":[\"0000000000000001\"]}", "both ids and keys"},
	{"{\"step\":1,\"keys\":[\"1\"]}", "16 hexadecimal digits"},
	{"{\"step\":1,\"ids\":[1],\"source\":[\"a\",\"b\"]}",
		"source is an array of another length"},
	{"{\"step\":1,\"ids\":[1],\"tokens\":[1,2]}", "tokens is an array of another length"},
	{"{\"step\":1,\"ids\":[1],\"loss\":[]}", "loss is an array of another length"},
	{"{\"step\":1,\"ids\":[1],\"counts\":{\"a\":[1,2]}}",
		"counts has arrays of another length"},
	{"{\"step\":1,\"ids\":[1],\"ids\":[2]}", "a key twice"},
	{"{\"step\":1,\"ids\":[1]} x", "something behind the object"},
	{"{\"step\":-1,\"ids\":[1]}", "a number below 0"},
	{"{\"step\":9007199254740993,\"ids\":[1]}", "the number is too large"},
	{"{\"step\":1,\"micro\":65536,\"ids\":[1]}", "the number is too large"},
	{"{\"step\":1,\"ids\":[1],\"x\":tru}", "no value of JSON"},
	{"{\"step\":1,\"ids\":[1],\"x\":\"\\q\"}", "no value of JSON"},
	{"{\"step\":1,\"ids\":[1],\"x\":[1}}", "no value of JSON"},
	{"{\"step\":1,\"ids\":[1],\"applied\":1}", "neither true nor false"},
	{"{\"step\":1 \"ids\":[1]}", "no comma and no end"},
	{"{step:1}", "no key in quotes"},
	{"{\"step\":\"1\",\"ids\":[1]}", "no whole number"},
	{"[1,2]", "no JSON object"},
	{"garbage", "no JSON object"},
	{"{\"other\":1}", "none of reprise, attempt, step, checkpoint and end"},
	{"{\"attempt\":\"one\"}", "no whole number (column 12)"},
	{"{\"checkpoint\":\"x\"}", "checkpoint is no step"},
};

START_TEST(a_bad_line_is_lost_alone)
{
	char text[500];

	snprintf(text, sizeof text, "{\"step\":0,\"ids\":[5]}\n%s\n{\"step\":2,\"ids\":[6]}\n",
		bad_lines[_i].line);
	read_log(text);
	ck_assert_uint_eq(l.lines, 3);
	ck_assert_uint_eq(l.lines_lost, 1);
	ck_assert_str_eq(l.losses.items[0].file, "log.jsonl");
	ck_assert_uint_eq(l.losses.items[0].offset, 21);
	assert_lost(2, bad_lines[_i].what);
	ck_assert_str_eq(keys(), "5 6");
}
END_TEST

START_TEST(a_step_with_a_bad_line_is_marked)
{
	read_log(
		"{\"step\":1,\"dp\":0,\"ids\":[1]}\n{\"step\":1,\"dp\":1,\"ids\":[x]}\n{\"step\":2,\"dp\":0,\"ids\":[2]}\n");
	ck_assert_uint_eq(l.steps.count, 2);
	ck_assert(l.steps.items[0].irregular);
	ck_assert(!l.steps.items[1].irregular);
}
END_TEST

START_TEST(a_torn_last_line_is_dropped)
{
	read_log("{\"step\":1,\"ids\":[1]}\n{\"step\":2,\"ids\":[2,3");
	ck_assert_str_eq(keys(), "1");
	assert_lost(2, "the last line is torn: 20 bytes");
	read_log("{\"step\":1,\"ids\":[1]}\n{\"step\":2,\"ids\":[2,3]} ");
	ck_assert_str_eq(keys(), "1 2 3");
	ck_assert_uint_eq(l.lines_lost, 0);
	make_bytes("log.jsonl", "{\"step\":1,\"ids\":[1]}\n\0\0\0\0", 25);
	read_root();
	assert_lost(2, "the last line is torn: 4 bytes");
	make_bytes("log.jsonl", "x", 0);
	make("log.csv", "step,id\n1,5\n1,6");
	unlink(strcat(strcpy((char[100]){0}, root), "/log.jsonl"));
	read_root();
	ck_assert_str_eq(keys(), "5");
	assert_lost(3, "the last row is torn");
}
END_TEST

START_TEST(bad_rows_of_csv_are_lost_alone)
{
	make("a.csv", "step,id,dp\n1,5,0\n1,6\n1,7,0,0\nx,8,0\n1,-1,0\n1,,0\n1,\"9\"0,0\n"
		      "1,\"10,0\n2,11,0\n3,12,0\n");
	read_root();
	ck_assert_uint_eq(l.lines_lost, 7);
	assert_lost(3, "fewer fields");
	assert_lost(4, "more fields");
	assert_lost(5, "step: no whole number");
	assert_lost(6, "an id below 0");
	assert_lost(7, "id: an empty field");
	assert_lost(8, "something behind a closing quote");
	assert_lost(9, "a quote that is not closed");
	ck_assert_str_eq(keys(), "5 11 12");
}
END_TEST

START_TEST(a_long_line_is_passed_over)
{
	size_t n = 3 << 20;
	char *text = malloc(n + 200);

	limits.line_bytes = 1 << 20;
	size_t at = (size_t)sprintf(text, "{\"step\":1,\"ids\":[1]}\n{\"step\":2,\"ids\":[");
	while (at < n)
		at += (size_t)sprintf(text + at, "77,");
	at += (size_t)sprintf(text + at, "7]}\n{\"step\":3,\"ids\":[3]}\n");
	make_bytes("log.jsonl", text, at);
	free(text);
	read_root();
	ck_assert_str_eq(keys(), "1 3");
	assert_lost(2, "longer than 1048576 bytes (limit line-bytes)");
	limits.line_bytes = 1 << 24;
	read_root();
	ck_assert_uint_eq(l.lines_lost, 0);
	ck_assert_uint_gt(l.rows, 1000000);
}
END_TEST

START_TEST(a_newer_version_is_refused_and_others_are_read)
{
	make("new.jsonl", "{\"reprise\":\"ledger/2\"}\n{\"step\":1,\"ids\":[1]}\n");
	ck_assert_int_eq(open_root(), RP_E_UNSUPPORTED);
	ck_assert_ptr_nonnull(strstr(e.text, "version 2"));
	make("old.jsonl", "{\"reprise\":\"ledger/1\"}\n{\"step\":1,\"ids\":[2]}\n");
	read_root();
	ck_assert_str_eq(keys(), "2");
	ck_assert_uint_eq(l.losses.count, 1);
	ck_assert_str_eq(l.losses.items[0].file, "new.jsonl");
	make("snap.jsonl", "{\"reprise\":\"snapshot/1\"}\n");
	ck_assert_int_eq(open_file("snap.jsonl"), RP_E_UNSUPPORTED);
}
END_TEST

START_TEST(what_is_no_log_is_refused_or_left_alone)
{
	make("loss.jsonl", "{\"step\":1,\"loss\":2.5}\n");
	make("readme.txt", "hello\n");
	make("other.csv", "epoch,loss\n1,2\n");
	make("empty", "");
	ck_assert_int_eq(open_root(), RP_E_NOT_FOUND);
	ck_assert_int_eq(open_file("readme.txt"), RP_E_UNSUPPORTED);
	ck_assert_int_eq(open_file("empty"), RP_E_UNSUPPORTED);
	ck_assert_int_eq(open_file("missing"), RP_E_IO);
	make("log.jsonl", "{\"step\":1,\"ids\":[1]}\n");
	read_root();
	ck_assert_str_eq(keys(), "1");
	ck_assert_uint_eq(l.lines_lost, 0);
}
END_TEST

START_TEST(what_is_missing_is_said)
{
	read_log(
		"{\"reprise\":\"ledger/1\",\"dataset\":{\"size\":10}}\n{\"attempt\":1,\"dp_size\":4}\n"
		"{\"step\":1,\"dp\":0,\"ids\":[1]}\n{\"step\":1,\"dp\":2,\"ids\":[10]}\n"
		"{\"step\":2,\"dp\":0,\"ids\":[3]}\n{\"step\":7,\"dp\":0,\"ids\":[4]}\n"
		"{\"attempt\":4}\n{\"attempt\":5}\n{\"step\":8,\"dp\":0,\"ids\":[5]}\n");
	assert_noted("attempt 1: 2 of 4 data-parallel ranks are not in the log (1, 3)");
	assert_noted("attempt 1: 4 steps are not in the log (steps 3 to 6)");
	assert_noted("attempts 2 to 3 are not in the log");
	assert_noted("attempt 4 has no steps");
	assert_noted(
		"1 of 5 samples have ids that the data does not have: the largest is 10, the size 10");
}
END_TEST

START_TEST(every_tenth_step_is_not_missing_nine)
{
	read_log(
		"{\"step\":10,\"ids\":[1]}\n{\"step\":20,\"ids\":[2]}\n{\"step\":30,\"ids\":[3]}\n");
	ck_assert_uint_eq(l.noted, 0);
}
END_TEST

START_TEST(renamed_sources_are_said)
{
	read_log("{\"attempt\":1}\n{\"step\":1,\"ids\":[1],\"source\":\"web\"}\n{\"attempt\":2}\n"
		 "{\"step\":2,\"ids\":[1],\"source\":\"web-v2\"}\n");
	assert_noted("source web ends with attempt 1 and source web-v2 begins with the next one");
}
END_TEST

START_TEST(a_hundred_thousand_attempts_are_read)
{
	size_t n = 100000, at = 0;
	char *text = malloc(n * 80);

	for (size_t i = 1; i <= n; i++)
		at += (size_t)sprintf(text + at,
			"{\"attempt\":%zu,\"from_step\":%zu}\n{\"step\":%zu,\"ids\":[%zu]}\n", i,
			i - 1, i, i);
	make_bytes("log.jsonl", text, at);
	free(text);
	read_root();
	ck_assert_uint_eq(l.attempts.count, n);
	ck_assert_uint_eq(l.rows, n);
	ck_assert_int_eq(l.attempts.items[n - 1].from_step, (int64_t)n - 1);
	ck_assert_uint_eq(l.geometries.count, 1);
}
END_TEST

/* The same tables from one file, or from several in which the lines are spread. */
START_TEST(lines_may_be_spread_over_files)
{
	const char *const lines[] = {"{\"attempt\":1,\"step\":1,\"dp\":0,\"ids\":[1,2]}\n",
		"{\"attempt\":1,\"step\":1,\"dp\":1,\"ids\":[3,4]}\n",
		"{\"attempt\":1,\"step\":2,\"dp\":0,\"ids\":[5]}\n",
		"{\"attempt\":1,\"step\":2,\"dp\":1,\"ids\":[6],\"loss\":1}\n",
		"{\"attempt\":2,\"step\":2,\"dp\":0,\"ids\":[7]}\n"};
	char first[500], second[500];

	for (size_t cut = 0; cut <= 5; cut++) {
		first[0] = second[0] = '\0';
		for (size_t i = 0; i < 5; i++)
			strcat(i < cut ? first : second, lines[i]);
		make("a.jsonl", first);
		make("b.jsonl", second);
		read_root();
		ck_assert_str_eq(keys(), "1 2 3 4 5 6 7");
		ck_assert_uint_eq(l.attempts.count, 2);
		ck_assert_float_eq(l.steps.items[1].loss, 1);
	}
}
END_TEST

/* Scanning ------------------------------------------------------------------------------------- */

/* Every byte at every place of a hash: taken for a digit where it is one, in either case. */
START_TEST(hashes_are_scanned_and_nothing_else)
{
	char text[128] = {0};
	uint64_t v;

	for (int at = 0; at < 16; at++) {
		for (int byte = 0; byte < 256; byte++) {
			strcpy(text, "\"0123456789abcdEF\",");
			text[1 + at] = (char)byte;
			bool digit = byte < 128 && strchr("0123456789abcdefABCDEF", byte) && byte;
			const char *end = scan_hex64(text, &v);
			ck_assert_msg((end != NULL) == digit, "byte %d at %d", byte, at);
			if (!digit)
				continue;
			ck_assert_ptr_eq(end, text + 18);
			ck_assert_uint_eq(v, strtoull(text + 1, NULL, 16));
		}
	}
	ck_assert_ptr_null(scan_hex64("\"0123456789abcde\"\n\0\0\0\0\0\0\0\0", &v));
	ck_assert_ptr_null(scan_hex64("\"0123456789abcdef0\"\n", &v));
	ck_assert_ptr_null(scan_hex64("0123456789abcdef\"\n\0\0\0\0\0\0", &v));
}
END_TEST

START_TEST(integers_of_every_length_are_scanned)
{
	char text[80];
	uint64_t v, expected = 0;

	for (int n = 1; n <= 19; n++) {
		expected = expected * 10 + (uint64_t)n % 10;
		for (const char *end = ",]} \n.e"; *end; end++) {
			memset(text, '7', sizeof text);
			snprintf(text, 40, "%llu%c", (unsigned long long)expected, *end);
			ck_assert_ptr_eq(scan_u64(text, &v), text + n);
			ck_assert_uint_eq(v, expected);
		}
	}
}
END_TEST

/* Lists of all lengths of numbers and separators: what is taken is what single numbers would be. */
START_TEST(lists_are_scanned_as_their_numbers_are)
{
	static const char *const between[] = {",", ", ", ",  ", " ,", ".0,", ",,", "]", ",-"};
	char text[600];
	uint64_t out[64], random = 7, taken_in_all = 0;

	for (int round = 0; round < 20000; round++) {
		uint64_t common = lookup_mix((uint64_t)round) % 2, v;
		size_t n = 0, max = 1 + lookup_mix((uint64_t)round) / 2 % 40;
		memset(text, 0, sizeof text);
		for (int i = 0; i < 20; i++) {
			random = lookup_mix(random + (uint64_t)i);
			uint64_t number = random >> (random & 63);
			n += (size_t)snprintf(text + n, sizeof text - n, "%s%llu%s",
				random % 97 ? "" : "0", (unsigned long long)number,
				between[random / 97 % 31 ? common : random / 3007 % 8]);
		}
		text[n] = '\n';
		const char *p = text, *q = text, *first = strchr(text, ',');
		size_t gap = first && first[1] == ' ' ? 2 : 1;
		size_t taken = scan_u64_list(&p, out, max);
		ck_assert_uint_le(taken, max);
		for (size_t i = 0; i < taken; i++) {
			q = scan_u64(q, &v);
			ck_assert_ptr_nonnull(q);
			ck_assert_uint_eq(v, out[i]);
			ck_assert_int_eq(*q, ',');
			q += gap;
		}
		ck_assert_ptr_eq(p, q);
		taken_in_all += taken;
	}
	ck_assert_uint_gt(taken_in_all, 50000);
}
END_TEST

START_TEST(decimals_are_scanned_as_the_library_does)
{
	static const char *const texts[] = {"0", "-0", "1", "2.5", "-2.5", "0.1", "123456789012345",
		"1234567890123456", "12345678901234567890", "0.000000000000001", "1e5", "1.5E-3",
		"1e400", "3.141592653589793", "2.2250738585072014e-308", "0.30000000000000004"};
	char text[100];
	double v;

	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		snprintf(text, sizeof text, "%s,\n", texts[i]);
		ck_assert_ptr_eq(scan_double(text, &v), text + strlen(texts[i]));
		ck_assert_double_eq(v, strtod(texts[i], NULL));
	}
	ck_assert_ptr_null(scan_double(".5\n", &v));
	ck_assert_ptr_null(scan_double("1.\n", &v));
	ck_assert_ptr_null(scan_double("01\n", &v));
	ck_assert_ptr_null(scan_double("1e\n", &v));
	ck_assert_ptr_null(scan_double("+1\n", &v));
}
END_TEST

Suite *suite_read(void)
{
	Suite *s = suite_create("read");
	TCase *t = tcase_create("read");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, reads_every_kind_of_line);
	tcase_add_test(t, reads_intents_long_and_short);
	tcase_add_test(t, keys_are_what_they_are);
	tcase_add_test(t, rows_of_csv_become_lines);
	tcase_add_test(t, csv_keys_may_be_text_or_hashes);
	tcase_add_test(t, rows_that_are_alike_are_read_as_others_are);
	tcase_add_test(t, steps_that_go_back_begin_a_launch);
	tcase_add_test(t, steps_out_of_order_do_not);
	tcase_add_test(t, two_launches_under_one_number_are_two);
	tcase_add_test(t, a_file_a_rank_is_one_attempt);
	tcase_add_test(t, files_that_do_not_say_their_rank_get_one);
	tcase_add_test(t, other_splits_are_left_out);
	tcase_add_loop_test(t, a_bad_line_is_lost_alone, 0, sizeof bad_lines / sizeof *bad_lines);
	tcase_add_test(t, a_step_with_a_bad_line_is_marked);
	tcase_add_test(t, a_torn_last_line_is_dropped);
	tcase_add_test(t, bad_rows_of_csv_are_lost_alone);
	tcase_add_test(t, a_long_line_is_passed_over);
	tcase_add_test(t, a_newer_version_is_refused_and_others_are_read);
	tcase_add_test(t, what_is_no_log_is_refused_or_left_alone);
	tcase_add_test(t, what_is_missing_is_said);
	tcase_add_test(t, every_tenth_step_is_not_missing_nine);
	tcase_add_test(t, renamed_sources_are_said);
	tcase_add_test(t, a_hundred_thousand_attempts_are_read);
	tcase_add_test(t, lines_may_be_spread_over_files);
	tcase_add_test(t, hashes_are_scanned_and_nothing_else);
	tcase_add_test(t, integers_of_every_length_are_scanned);
	tcase_add_test(t, lists_are_scanned_as_their_numbers_are);
	tcase_add_test(t, decimals_are_scanned_as_the_library_does);
	suite_add_tcase(s, t);
	return s;
}
