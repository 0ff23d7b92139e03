/* SPDX-License-Identifier: MIT */
/* What the recorder writes and what is read back: whole, torn, damaged, from several launches. */
#define _GNU_SOURCE
#include "ledger/read_journal.h"

#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <reprise_record.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/journal.h"
#include "ledger/seen.h"
#include "ledger/read.h"

Suite *suite_journal(void);

#define FILES_MAX 64

static char folder[64];
static char *paths[FILES_MAX];
static size_t path_count;
static struct limits limits;
static struct ledger ledger;

/* Everything below the folder goes, and the folder if it is asked for. */
static void clear(bool whole)
{
	char command[160];
	snprintf(command, sizeof command, "rm -rf %s/* && rmdir %s", folder, folder);
	if (!whole)
		*strchr(command, '&') = '\0';
	ck_assert_int_eq(system(command), 0);
}

static void setup(void)
{
	strcpy(folder, "/tmp/reprise-journal-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	limits = limits_default();
	path_count = 0;
	unsetenv("REPRISE_LAUNCH");
	unsetenv("SLURM_JOB_ID");
	unsetenv("TORCHELASTIC_RUN_ID");
}

static void teardown(void)
{
	for (size_t i = 0; i < path_count; i++)
		free(paths[i]);
	clear(true);
}

/* Every journal below the folder, launch by launch. */
static void find_journals(void)
{
	struct dirent **launches, **files;
	int n = scandir(folder, &launches, NULL, alphasort);
	for (int i = 0; i < n; i++) {
		char path[400];
		snprintf(path, sizeof path, "%s/%s", folder, launches[i]->d_name);
		int m = launches[i]->d_name[0] == '.' ? 0 : scandir(path, &files, NULL, alphasort);
		for (int k = 0; k < m; k++) {
			if (strstr(files[k]->d_name, JOURNAL_SUFFIX))
				ck_assert_int_gt(asprintf(&paths[path_count++], "%s/%s", path,
							 files[k]->d_name),
					0);
			free(files[k]);
		}
		if (m > 0)
			free(files);
		free(launches[i]);
	}
	free(launches);
}

static void read_back(void)
{
	const struct ledger_options o = {.limits = &limits, .memory = 64 << 20};
	struct error e = {0};
	if (path_count == 0)
		find_journals();
	ck_assert_int_eq(ledger_init(&ledger, folder, &o, &e), RP_OK);
	ck_assert_msg(journal_read(&ledger, (const char *const *)paths, (const char *const *)paths,
			      path_count, &e) == RP_OK,
		"%s", e.text);
	ck_assert_msg(ledger_finish(&ledger, &e) == RP_OK, "%s", e.text);
}

static struct rp_record_options options(void)
{
	struct rp_record_options o;
	rp_record_options_init(&o, sizeof o);
	o.folder = folder;
	o.from_step = 0;
	return o;
}

static int record(struct rp_recorder *r, int64_t step, const int64_t *ids, size_t n)
{
	struct rp_record_step s;
	rp_record_step_init(&s, sizeof s);
	s.step = step;
	s.ids = ids;
	s.n = n;
	return rp_record_step(r, &s);
}

/* Steps 1 to `last`, four ids each. */
static void record_steps(struct rp_recorder *r, int64_t first, int64_t last)
{
	for (int64_t step = first; step <= last; step++) {
		const int64_t ids[] = {step * 4, step * 4 + 1, step * 4 + 2, step * 4 + 3};
		ck_assert_int_eq(record(r, step, ids, 4), RP_RECORD_OK);
	}
}

static uint64_t key_at(uint64_t row)
{
	struct sample_source all = ledger_samples(&ledger);
	struct sample_buffer *buffer = sample_buffer_new();
	struct sample_block block;
	struct error e = {0};
	ck_assert_int_eq(all.read(&all, row, 1, buffer, &block, &e), RP_OK);
	uint64_t key = block.keys[0];
	sample_buffer_free(buffer);
	return key;
}

START_TEST(steps_come_back)
{
	struct rp_record_source sources[] = {{.name = "web", .size = 100, .weight = 0.75},
		{.name = "code \"x\"\n\xff", .weight = 0.25}};
	struct rp_record_options o = options();
	o.run = "tiny";
	o.sources = sources;
	o.source_count = 2;
	o.seed = -7;
	o.has_seed = 1;
	o.global_batch = 4;
	struct rp_recorder *r = rp_recorder_open(&o);
	const int64_t ids[] = {7, -3, INT64_MAX, 1 << 20};
	const uint16_t of[] = {0, 1, 0, 0};
	const uint32_t tokens[] = {10, 20, 30, 40}, micro[] = {1, 3};
	const float losses[] = {1, 2, 3, 4};
	struct rp_record_step s;
	rp_record_step_init(&s, sizeof s);
	s.step = 1;
	s.n = 4;
	s.ids = ids;
	s.sources = of;
	s.tokens = tokens;
	s.losses = losses;
	s.micro = micro;
	s.micro_count = 2;
	s.epoch = 3;
	s.loss = 2.5;
	s.lr = 1e-3;
	s.flags = RP_RECORD_SKIPPED;
	ck_assert_int_eq(rp_record_step(r, &s), RP_RECORD_OK);
	ck_assert_int_eq(rp_record_checkpoint(r, 1, "ckpt/1", 4, NULL), RP_RECORD_OK);
	struct rp_record_summary summary = {.size = sizeof summary};
	ck_assert_int_eq(rp_recorder_close(r, "finished", &summary), RP_RECORD_OK);
	ck_assert_uint_eq(summary.steps, 1);
	ck_assert_uint_eq(summary.samples, 4);
	ck_assert_str_eq(summary.first_error, "");

	read_back();
	ck_assert_uint_eq(ledger.attempts.count, 1);
	const struct ledger_attempt *a = &ledger.attempts.items[0];
	ck_assert_int_eq(a->from_step, 0);
	ck_assert_int_eq(a->seed, -7);
	ck_assert_int_eq(a->global_batch, 4);
	ck_assert_str_eq(a->end, "finished");
	ck_assert_uint_eq(ledger.steps.count, 1);
	const struct ledger_step *step = &ledger.steps.items[0];
	ck_assert_int_eq(step->epoch, 3);
	ck_assert(!step->applied);
	ck_assert_float_eq(step->loss, 2.5f);
	ck_assert_uint_eq(step->tokens, 100);
	ck_assert_uint_eq(ledger.geometries.items[step->geometry].parts, 2);
	ck_assert_uint_eq(key_at(1), (uint64_t)-3);
	ck_assert_uint_eq(ledger.sources.count, 2);
	ck_assert_double_eq(ledger.sources.items[0].weight, 0.75);
	ck_assert_uint_eq(ledger.sources.items[1].samples, 1);
	ck_assert_uint_eq(ledger.checkpoints.count, 1);
	ck_assert_str_eq(ledger.checkpoints.items[0].path, "ckpt/1");
	ck_assert_uint_eq(ledger.lines_lost, 0);
	ck_assert_uint_eq(ledger.noted, 0);
	ledger_release(&ledger);
}
END_TEST

/* What the user gives as JSON text: declared changes are parsed, the rest is kept where it is JSON.
 */
START_TEST(intents_and_configurations_come_back)
{
	static const struct rp_record_source sources[] = {
		{.name = "web", .weight = 0.75}, {.name = "code"}};
	struct rp_record_options o = options();
	o.launch = "1";
	o.sources = sources;
	o.source_count = 2;
	o.run = "tiny";
	o.config = "{\"lr\": 0.1}";
	o.versions = "torch 2";
	struct rp_recorder *r = rp_recorder_open(&o);
	record_steps(r, 1, 4);
	rp_recorder_close(r, NULL, NULL);
	o.launch = "2";
	o.from_step = 3;
	o.versions = NULL;
	o.intent = "{\"skip\": [4, 9], \"seed\": [1, 2], \"lr\": true}";
	r = rp_recorder_open(&o);
	record_steps(r, 4, 6);
	record_steps(r, 5, 6);
	rp_recorder_close(r, NULL, NULL);
	o.launch = "3";
	o.intent = "[1]";
	r = rp_recorder_open(&o);
	record_steps(r, 7, 8);
	rp_recorder_close(r, NULL, NULL);

	read_back();
	ck_assert_str_eq(ledger.run, "tiny");
	ck_assert_uint_eq(ledger.attempts.count, 4);
	const struct ledger_attempt *a = ledger.attempts.items;
	ck_assert_str_eq(a[0].config, "{\"lr\": 0.1}");
	ck_assert_str_eq(a[0].versions, "");
	ck_assert(!a[0].intent.any);
	ck_assert_uint_eq(a[0].weights, 1);
	ck_assert_double_eq(ledger.weights.items[a[0].first_weight].weight, 0.75);
	ck_assert(a[1].intent.any && a[1].intent.seed && a[1].intent.lr && !a[1].intent.batch);
	ck_assert_int_eq(a[1].intent.seed_to, 2);
	ck_assert_uint_eq(a[1].intent.skips, 1);
	ck_assert_int_eq(ledger.skips.items[a[1].intent.first_skip].to, 9);
	/* Not of the turn that the process took by itself. */
	ck_assert_uint_eq(a[2].again, 1);
	ck_assert(!a[2].intent.any);
	ck_assert(!a[3].intent.any);
	/* What is no JSON, and what is no object. */
	ck_assert_uint_eq(ledger.noted, 2);
	ck_assert_uint_eq(ledger.lines_lost, 0);
	ledger_release(&ledger);
}
END_TEST

/* Ids that each encoding is meant for, and ones that it must not be taken for. */
START_TEST(columns_keep_their_values)
{
	enum { N = 300 };
	int64_t ids[N];
	for (int i = 0; i < N; i++) {
		int64_t of[] = {5, i, 1000 - 3 * i, (i * 7919) % 251, (int64_t)1 << 40 | i * i,
			i % 2 ? INT64_MIN : INT64_MAX, i < N - 1 ? 4 : 9, (i * 7919) % 65521};
		ids[i] = of[_i];
	}
	struct rp_record_options o = options();
	struct rp_recorder *r = rp_recorder_open(&o);
	ck_assert_int_eq(record(r, 1, ids, N), RP_RECORD_OK);
	ck_assert_int_eq(record(r, 2, ids, 1), RP_RECORD_OK);
	ck_assert_int_eq(record(r, 3, ids, 0), RP_RECORD_OK);
	rp_recorder_close(r, NULL, NULL);
	read_back();
	ck_assert_uint_eq(ledger.rows, N + 1);
	for (int i = 0; i < N; i++)
		ck_assert_uint_eq(key_at((uint64_t)i), (uint64_t)ids[i]);
	ck_assert_uint_eq(ledger.steps.count, 3);
	ledger_release(&ledger);
}
END_TEST

static uint64_t u64_at(const unsigned char *p)
{
	uint64_t v = 0;
	for (int i = 7; i >= 0; i--)
		v = v << 8 | p[i];
	return v;
}

/* The digests that the n-th step's block of the only journal holds: sum and chain. */
static void stored_digests(size_t n, uint64_t out[3])
{
	static unsigned char bytes[1 << 16];
	FILE *f = fopen(paths[0], "rb");
	ck_assert_ptr_nonnull(f);
	size_t got = fread(bytes, 1, sizeof bytes, f);
	fclose(f);
	for (size_t at = JOURNAL_PREFIX_BYTES; at + JOURNAL_HEAD_BYTES <= got;) {
		const unsigned char *p = bytes + at;
		if (p[4] == JOURNAL_STEP && n-- == 0) {
			for (int i = 0; i < 3; i++)
				out[i] = u64_at(p + JOURNAL_HEAD_BYTES + 16 + 8 * i);
			return;
		}
		at += JOURNAL_HEAD_BYTES + (((u64_at(p + 16) & 0xffffffff) + 7) & ~(uint64_t)7);
	}
	ck_abort_msg("no such step in the journal");
}

static const char *const same_run =
	"{\"reprise\":\"ledger/1\",\"dataset\":{\"name\":\"pile\",\"unit\":\"sample\","
	"\"order\":\"seed42\",\"sources\":{\"web\":{},\"code\":{}}}}\n"
	"{\"attempt\":1,\"from_step\":0}\n"
	"{\"step\":1,\"dp\":3,\"micro\":0,\"ids\":[\"a/1\",\"b\"],\"source\":[\"web\",\"code\"]}\n"
	"{\"step\":1,\"dp\":3,\"micro\":2,\"ids\":[\"c\"],\"source\":\"web\"}\n"
	"{\"step\":2,\"dp\":3,\"ids\":[\"b\",\"a/1\",\"d\"],\"source\":[\"code\",\"web\",\"web\"]}\n";

/* One identity: what the recorder stores, what is read from it, and the same run as text. */
START_TEST(digests_are_those_of_the_text)
{
	const char *const names[] = {"a/1", "b", "c", "b", "a/1", "d"};
	const uint16_t sources[] = {0, 1, 0, 1, 0, 0};
	const uint32_t micro[] = {2, 0, 1};
	struct rp_record_source said[] = {{.name = "web"}, {.name = "code"}};
	struct rp_record_options o = options();
	struct error e = {0};
	int64_t ids[6];

	o.dataset = "pile";
	o.unit = "sample";
	o.order = "seed42";
	o.sources = said;
	o.source_count = 2;
	o.keys = RP_RECORD_TEXT;
	o.dp = 3;
	struct rp_recorder *r = rp_recorder_open(&o);
	for (size_t i = 0; i < 6; i++)
		ids[i] = (int64_t)rp_record_hash(names[i], strlen(names[i]));
	for (int64_t step = 1; step <= 2; step++) {
		struct rp_record_step s;
		rp_record_step_init(&s, sizeof s);
		s.step = step;
		s.ids = ids + 3 * (step - 1);
		s.sources = sources + 3 * (step - 1);
		s.n = 3;
		s.micro = step == 1 ? micro : NULL;
		s.micro_count = step == 1 ? 3 : 0;
		ck_assert_int_eq(rp_record_step(r, &s), RP_RECORD_OK);
	}
	rp_recorder_close(r, "finished", NULL);
	read_back();

	const struct ledger_options lo = {.limits = &limits, .memory = 1 << 20};
	struct slice text = {same_run, strlen(same_run)};
	struct ledger other;
	ck_assert_int_eq(ledger_open_memory(&other, &text, 1, &lo, &e), RP_OK);
	ck_assert_uint_eq(ledger.steps.count, 2);
	ck_assert_uint_eq(other.steps.count, 2);
	ck_assert_uint_eq(ledger.spaces.count, other.spaces.count);
	for (size_t i = 0; i < other.spaces.count; i++)
		ck_assert_uint_eq(ledger.spaces.items[i].id, other.spaces.items[i].id);
	for (size_t i = 0; i < 2; i++) {
		const struct ledger_step *x = &ledger.steps.items[i], *y = &other.steps.items[i];
		uint64_t stored[3];
		stored_digests(i, stored);
		ck_assert_mem_eq(x->sum, stored, sizeof x->sum);
		ck_assert_mem_eq(y->sum, stored, sizeof y->sum);
		ck_assert_uint_eq(x->chain, stored[2]);
		ck_assert_uint_eq(y->chain, stored[2]);
	}
	ledger_release(&other);
	ledger_release(&ledger);
}
END_TEST

START_TEST(a_step_of_many_blocks_is_one_step)
{
	enum { N = 600001 };
	int64_t *ids = calloc(N, sizeof *ids);
	for (int i = 0; i < N; i++)
		ids[i] = (int64_t)i * i;
	struct rp_record_options o = options();
	struct rp_recorder *r = rp_recorder_open(&o);
	ck_assert_int_eq(record(r, 1, ids, N), RP_RECORD_OK);
	rp_recorder_close(r, NULL, NULL);
	free(ids);
	read_back();
	ck_assert_uint_eq(ledger.steps.count, 1);
	ck_assert_uint_eq(ledger.rows, N);
	ck_assert_uint_eq(key_at(N - 1), (uint64_t)(N - 1) * (N - 1));
	ck_assert_uint_eq(ledger.noted, 0);
	ledger_release(&ledger);
}
END_TEST

START_TEST(launches_and_ranks_make_attempts)
{
	for (int launch = 0; launch < 2; launch++) {
		for (uint32_t rank = 0; rank < 3; rank++) {
			struct rp_record_options o = options();
			o.launch = launch ? "b" : "a";
			o.rank = rank;
			o.dp = rank;
			o.dp_size = 3;
			o.from_step = launch ? 5 : 0;
			struct rp_recorder *r = rp_recorder_open(&o);
			record_steps(r, launch ? 6 : 1, launch ? 9 : 7);
			if (launch)
				rp_recorder_close(r, NULL, NULL);
			else
				rp_recorder_close(r, "preempted", NULL);
		}
	}
	read_back();
	ck_assert_uint_eq(ledger.attempts.count, 2);
	ck_assert_int_eq(ledger.attempts.items[1].from_step, 5);
	ck_assert_uint_eq(ledger.attempts.items[0].steps, 7);
	ck_assert_uint_eq(ledger.attempts.items[1].steps, 4);
	ck_assert_uint_eq(ledger.attempts.items[0].rows, 7 * 12);
	ck_assert_str_eq(ledger.attempts.items[0].end, "preempted");
	ledger_release(&ledger);
}
END_TEST

START_TEST(one_launch_id_used_twice_is_two_attempts)
{
	for (int turn = 0; turn < 2; turn++) {
		struct rp_record_options o = options();
		o.launch = "same";
		o.from_step = turn * 3;
		struct rp_recorder *r = rp_recorder_open(&o);
		record_steps(r, turn * 3 + 1, turn * 3 + 4);
		rp_recorder_close(r, NULL, NULL);
	}
	read_back();
	ck_assert_uint_eq(ledger.attempts.count, 2);
	ck_assert_int_eq(ledger.attempts.items[1].from_step, 3);
	ledger_release(&ledger);
}
END_TEST

START_TEST(going_back_inside_a_process_is_an_attempt)
{
	struct rp_record_options o = options();
	struct rp_recorder *r = rp_recorder_open(&o);
	record_steps(r, 1, 8);
	record_steps(r, 6, 10);
	rp_recorder_close(r, NULL, NULL);
	read_back();
	ck_assert_uint_eq(ledger.attempts.count, 2);
	ck_assert_int_eq(ledger.attempts.items[1].from_step, 5);
	ledger_release(&ledger);
}
END_TEST

START_TEST(a_second_recorder_of_one_place_is_left_out)
{
	for (uint32_t rank = 0; rank < 2; rank++) {
		struct rp_record_options o = options();
		o.launch = "x";
		o.rank = rank; /* two tensor-parallel ranks of data-parallel rank 0 */
		o.world_size = 2;
		struct rp_recorder *r = rp_recorder_open(&o);
		record_steps(r, 1, 3);
		rp_recorder_close(r, NULL, NULL);
	}
	read_back();
	ck_assert_uint_eq(ledger.rows, 12);
	ck_assert_uint_eq(ledger.noted, 1);
	ledger_release(&ledger);
}
END_TEST

/* Samples 0 to 23 to checkpoint `last`, on so many ranks, with a resume after step 2; what was seen
 * by then. */
static struct seen seen_on(uint32_t ranks, int64_t steps)
{
	size_t each = 24 / ranks / (size_t)steps;
	for (int64_t from = 0; from < steps; from += from == 0 ? 2 : steps) {
		for (uint32_t dp = 0; dp < ranks; dp++) {
			struct rp_record_options o = options();
			o.launch = from ? "b" : "a";
			o.rank = o.dp = dp;
			o.dp_size = ranks;
			o.from_step = from;
			struct rp_recorder *r = rp_recorder_open(&o);
			/* The first attempt goes on for a step that is rolled back. */
			int64_t last = from ? steps : 3;
			for (int64_t step = from + 1; step <= last; step++) {
				int64_t ids[24];
				size_t at = ((size_t)(step - 1) * ranks + dp) * each;
				for (size_t i = 0; i < each; i++)
					ids[i] = (int64_t)(at + i);
				ck_assert_int_eq(record(r, step, ids, each), RP_RECORD_OK);
			}
			rp_record_checkpoint(r, last, NULL, -1, NULL);
			rp_recorder_close(r, NULL, NULL);
		}
	}
	read_back();
	struct lineage g;
	struct seen_table t;
	struct seen out;
	struct error e = ERROR_INIT;
	ck_assert_int_eq(lineage_build(&g, &ledger, ATTEMPT_TRAIN, NULL, 0, &e), RP_OK);
	ck_assert(seen_build(&t, &g));
	ck_assert(seen_by(&t, 1, steps, &out));
	struct seen dead;
	ck_assert(seen_by(&t, 0, 3, &dead));
	ck_assert(!seen_by(&t, 0, 5, &dead));
	ck_assert(!seen_by(&t, 1, 1, &dead));
	seen_release(&t);
	lineage_release(&g);
	ledger_release(&ledger);
	for (size_t i = 0; i < path_count; i++)
		free(paths[i]);
	path_count = 0;
	return out;
}

START_TEST(what_was_seen_is_told_at_any_world_size)
{
	struct seen one = seen_on(1, 4);
	clear(false);
	struct seen two = seen_on(2, 4);
	clear(false);
	struct seen three = seen_on(2, 3);
	ck_assert_uint_eq(one.samples, 24);
	ck_assert_mem_eq(&one, &two, sizeof one);
	ck_assert_mem_eq(&one, &three, sizeof one);
}
END_TEST

/* The recorder's own digest of all that one rank consumed is the sum that readers make. */
START_TEST(the_recorders_digest_is_the_readers)
{
	struct rp_record_options o = options();
	struct rp_recorder *r = rp_recorder_open(&o);
	record_steps(r, 1, 5);
	rp_record_checkpoint(r, 5, "c", -1, NULL);
	rp_recorder_close(r, NULL, NULL);
	read_back();
	struct seen seen;
	struct lineage g;
	struct seen_table t;
	struct error e = ERROR_INIT;
	ck_assert_int_eq(lineage_build(&g, &ledger, ATTEMPT_TRAIN, NULL, 0, &e), RP_OK);
	ck_assert(seen_build(&t, &g) && seen_by(&t, 0, 5, &seen));
	char wanted[64], line[4096];
	snprintf(wanted, sizeof wanted, "\"sum\":\"%016llx%016llx\"",
		(unsigned long long)seen.sum[1], (unsigned long long)seen.sum[0]);
	FILE *f = fopen(paths[0], "rb");
	size_t n = fread(line, 1, sizeof line, f);
	fclose(f);
	ck_assert_ptr_nonnull(memmem(line, n, wanted, strlen(wanted)));
	seen_release(&t);
	lineage_release(&g);
	ledger_release(&ledger);
}
END_TEST

/* The journal's bytes, and a way to put others in their place. */
static uint8_t *bytes;
static size_t byte_count;

static void take_bytes(void)
{
	find_journals();
	ck_assert_uint_eq(path_count, 1);
	FILE *f = fopen(paths[0], "rb");
	fseek(f, 0, SEEK_END);
	byte_count = (size_t)ftell(f);
	rewind(f);
	bytes = malloc(byte_count);
	ck_assert_uint_eq(fread(bytes, 1, byte_count, f), byte_count);
	fclose(f);
}

static void put_bytes(const uint8_t *p, size_t n)
{
	FILE *f = fopen(paths[0], "wb");
	ck_assert_uint_eq(fwrite(p, 1, n, f), n);
	fclose(f);
}

/* Where block `index` begins; 0 is OPEN. */
static size_t block_at(unsigned index)
{
	size_t at = JOURNAL_PREFIX_BYTES;
	while (index--) {
		uint32_t payload;
		memcpy(&payload, bytes + at + 16, 4);
		at += JOURNAL_HEAD_BYTES + ((payload + 7) & ~7u);
	}
	return at;
}

static void ten_steps(void)
{
	struct rp_record_options o = options();
	struct rp_recorder *r = rp_recorder_open(&o);
	record_steps(r, 1, 10);
	rp_recorder_close(r, NULL, NULL);
	take_bytes();
}

START_TEST(every_cut_of_the_last_blocks_keeps_the_rest)
{
	ten_steps();
	for (size_t cut = block_at(8); cut <= byte_count; cut++) {
		put_bytes(bytes, cut);
		read_back();
		unsigned whole =
			7u + (cut >= block_at(9)) + (cut >= block_at(10)) + (cut >= block_at(11));
		/* The zeros behind a payload may be missing. */
		ck_assert_uint_ge(ledger.steps.count, whole);
		ck_assert_uint_le(ledger.steps.count, whole + 1);
		/* A cut between blocks cannot be seen but by the missing end. */
		bool ended = *ledger.attempts.items[0].end != '\0';
		ck_assert_int_eq(ended, ledger.noted + ledger.lines_lost == 0);
		ledger_release(&ledger);
	}
	free(bytes);
}
END_TEST

START_TEST(any_flipped_byte_is_noticed)
{
	ten_steps();
	uint8_t *copy = malloc(byte_count);
	for (size_t at = JOURNAL_PREFIX_BYTES; at < byte_count; at += 3) {
		memcpy(copy, bytes, byte_count);
		copy[at] ^= 0x20;
		put_bytes(copy, byte_count);
		read_back();
		bool padding = ledger.steps.count == 10 && *ledger.attempts.items[0].end;
		/* The zeros behind a payload are nobody's. */
		if (!padding)
			ck_assert_uint_gt(ledger.noted + ledger.lines_lost, 0);
		ck_assert_uint_ge(ledger.steps.count, at < block_at(1) ? 0 : 9);
		ledger_release(&ledger);
	}
	free(copy);
	free(bytes);
}
END_TEST

START_TEST(zeros_at_the_end_were_never_written)
{
	ten_steps();
	size_t n = block_at(11);
	uint8_t *copy = calloc(n + 8192, 1);
	memcpy(copy, bytes, n);
	put_bytes(copy, n + 8192);
	read_back();
	ck_assert_uint_eq(ledger.steps.count, 10);
	ck_assert_uint_eq(ledger.lines_lost, 0);
	ck_assert_uint_ge(ledger.noted, 1);
	ledger_release(&ledger);
	free(copy);
	free(bytes);
}
END_TEST

START_TEST(a_missing_or_doubled_block_is_noticed)
{
	ten_steps();
	size_t a = block_at(4), b = block_at(5);
	uint8_t *copy = malloc(2 * byte_count);
	memcpy(copy, bytes, a);
	memcpy(copy + a, bytes + b, byte_count - b);
	put_bytes(copy, byte_count - (b - a));
	read_back();
	ck_assert_uint_eq(ledger.steps.count, 9);
	ck_assert_uint_ge(ledger.noted, 2); /* the block, and its samples */
	ledger_release(&ledger);

	memcpy(copy, bytes, b);
	memcpy(copy + b, bytes + a, byte_count - a);
	put_bytes(copy, byte_count + (b - a));
	read_back();
	ck_assert_uint_eq(ledger.steps.count, 10);
	ck_assert_uint_eq(ledger.rows, 40);
	ck_assert_uint_eq(ledger.noted, 1);
	ledger_release(&ledger);
	free(copy);
	free(bytes);
}
END_TEST

START_TEST(swapped_blocks_are_noticed)
{
	ten_steps();
	size_t a = block_at(4), b = block_at(5), c = block_at(6);
	uint8_t *copy = malloc(byte_count);
	memcpy(copy, bytes, byte_count);
	memcpy(copy + a, bytes + b, c - b);
	memcpy(copy + a + (c - b), bytes + a, b - a);
	put_bytes(copy, byte_count);
	read_back();
	/* The one that comes too late is left out as one that was there. */
	ck_assert_uint_eq(ledger.steps.count, 9);
	ck_assert_uint_ge(ledger.noted, 2);
	ledger_release(&ledger);
	free(copy);
	free(bytes);
}
END_TEST

/* Blocks of another attempt, which are sound in themselves, put into this one. */
START_TEST(spliced_blocks_are_noticed)
{
	ten_steps();
	uint8_t *own = bytes;
	size_t own_count = byte_count, from = block_at(4), to = block_at(6);
	free(paths[0]);
	path_count = 0;
	clear(false);
	ten_steps();
	uint8_t *copy = malloc(byte_count);
	memcpy(copy, bytes, byte_count);
	ck_assert_uint_eq(own_count, byte_count);
	memcpy(copy + from, own + from, to - from);
	put_bytes(copy, byte_count);
	read_back();
	ck_assert_uint_eq(ledger.steps.count, 8);
	ck_assert_uint_ge(ledger.lines_lost, 1);
	ledger_release(&ledger);
	free(copy);
	free(bytes);
	free(own);
}
END_TEST

/* A page that the machine lost, at every place of the file. */
START_TEST(zeroed_pages_cost_what_they_held)
{
	struct rp_record_options o = options();
	struct rp_recorder *r = rp_recorder_open(&o);
	record_steps(r, 1, 200);
	rp_recorder_close(r, NULL, NULL);
	take_bytes();
	uint8_t *copy = malloc(byte_count);
	for (size_t at = 4096; at + 4096 <= byte_count; at += 4096) {
		memcpy(copy, bytes, byte_count);
		memset(copy + at, 0, 4096);
		put_bytes(copy, byte_count);
		read_back();
		ck_assert_uint_ge(ledger.steps.count, 200 - 4096 / 100);
		ck_assert_uint_lt(ledger.steps.count, 200);
		ck_assert_uint_ge(ledger.lines_lost, 1);
		ck_assert_uint_ge(ledger.noted, 1); /* how many blocks and samples are missing */
		ledger_release(&ledger);
	}
	free(copy);
	free(bytes);
}
END_TEST

START_TEST(a_newer_version_is_refused_by_name)
{
	ten_steps();
	bytes[8] = 2;
	put_bytes(bytes, byte_count);
	read_back();
	ck_assert_uint_eq(ledger.steps.count, 0);
	ck_assert_ptr_nonnull(strstr(ledger.losses.items[0].what, "newer version"));
	ledger_release(&ledger);
	free(bytes);
}
END_TEST

START_TEST(wrong_calls_are_counted_and_harmless)
{
	struct rp_record_options o = options();
	struct rp_recorder *r = rp_recorder_open(&o);
	const int64_t ids[] = {1, 2};
	struct rp_record_step s;
	rp_record_step_init(&s, sizeof s);
	s.n = 2;
	ck_assert_int_eq(rp_record_step(r, &s), RP_RECORD_ARGUMENT); /* no ids */
	s.ids = ids;
	s.source = 3;
	ck_assert_int_eq(rp_record_step(r, &s), RP_RECORD_ARGUMENT);
	s.source = -1;
	s.size = 8;
	ck_assert_int_eq(rp_record_step(r, &s), RP_RECORD_ARGUMENT);
	ck_assert_int_eq(rp_record_step(r, NULL), RP_RECORD_ARGUMENT);
	ck_assert_int_eq(rp_record_event(r, NULL, 1, NULL), RP_RECORD_ARGUMENT);
	ck_assert_int_eq(record(r, 1, ids, 2), RP_RECORD_OK);
	struct rp_record_summary summary = {.size = sizeof summary};
	rp_recorder_close(r, NULL, &summary);
	ck_assert_uint_eq(summary.wrong_calls, 5);
	ck_assert_uint_eq(summary.steps, 1);
	ck_assert_int_eq(rp_record_step(NULL, &s), RP_RECORD_CLOSED);
	ck_assert_int_eq(rp_recorder_close(NULL, NULL, NULL), RP_RECORD_CLOSED);
}
END_TEST

START_TEST(forked_children_write_nothing_and_are_counted)
{
	struct rp_record_options o = options();
	struct rp_recorder *r = rp_recorder_open(&o);
	const int64_t ids[] = {1, 2};
	pid_t child = fork();
	if (child == 0)
		_exit(record(r, 1, ids, 2) == RP_RECORD_FORKED ? 0 : 1);
	int status;
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
	ck_assert_int_eq(record(r, 1, ids, 2), RP_RECORD_OK);
	struct rp_record_summary summary = {.size = sizeof summary};
	rp_recorder_close(r, NULL, &summary);
	ck_assert_uint_eq(summary.forked_calls, 1);
	read_back();
	ck_assert_uint_eq(ledger.rows, 2);
	ck_assert_uint_eq(ledger.lines_lost, 1);
	ck_assert_str_eq(ledger.losses.items[0].what,
		"1 call came from forked processes, which the recorder cannot write for");
	ledger_release(&ledger);
}
END_TEST

/* A full disk, played by the limit on a file's size: it is said, and later steps are there. */
START_TEST(a_full_disk_is_a_gap)
{
	struct rp_record_options o = options();
	struct rp_recorder *r = rp_recorder_open(&o);
	record_steps(r, 1, 10);
	struct rp_record_summary summary = {.size = sizeof summary};
	rp_recorder_summary(r, &summary);
	signal(SIGXFSZ, SIG_IGN);
	struct rlimit old, full;
	getrlimit(RLIMIT_FSIZE, &old);
	full = old;
	full.rlim_cur = summary.bytes + 40; /* in the midst of the next block */
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &full), 0);
	const int64_t ids[] = {1, 2, 3};
	errno = 0;
	for (int64_t step = 11; step <= 15; step++)
		ck_assert_int_eq(record(r, step, ids, 3), RP_RECORD_LOST);
	ck_assert_int_eq(errno, 0);
	setrlimit(RLIMIT_FSIZE, &old);
	record_steps(r, 16, 20);
	ck_assert_int_eq(rp_recorder_close(r, NULL, &summary), RP_RECORD_OK);
	ck_assert_uint_eq(summary.lost_steps, 5);
	ck_assert_uint_eq(summary.lost_samples, 15);
	ck_assert_int_eq(summary.first_errno, EFBIG);
	read_back();
	ck_assert_uint_eq(ledger.steps.count, 15);
	ck_assert_uint_eq(ledger.lines_lost, 1);
	ck_assert_ptr_nonnull(strstr(ledger.losses.items[0].what, "steps 11 to 15 (15 samples)"));
	ledger_release(&ledger);
}
END_TEST

/*
 * Descriptors that fail as disks do, put in the place of the recorder's own: full (/dev/full says
 * ENOSPC), turned read-only (EBADF, as after a remount), and gone (a pipe cannot be written at an
 * offset: ESPIPE).
 */
START_TEST(a_disk_that_fails_is_said_and_passes)
{
	struct rp_record_options o = options();
	struct rp_recorder *r = rp_recorder_open(&o);
	record_steps(r, 1, 3);
	find_journals();
	int own = -1, pipes[2];
	struct stat file, each;
	ck_assert_int_eq(stat(paths[0], &file), 0);
	for (int fd = 3; fd < 64 && own < 0; fd++)
		if (fstat(fd, &each) == 0 && each.st_ino == file.st_ino &&
			each.st_dev == file.st_dev)
			own = fd;
	ck_assert_int_ge(own, 0);
	int kept = dup(own);
	ck_assert_int_eq(pipe(pipes), 0);
	int fds[] = {open("/dev/full", O_WRONLY), open(paths[0], O_RDONLY), pipes[1]};
	const int errors[] = {ENOSPC, EBADF, ESPIPE};
	const int64_t ids[] = {1, 2, 3};
	errno = 0;
	ck_assert_int_eq(dup2(fds[_i], own), own);
	for (int64_t step = 4; step <= 6; step++)
		ck_assert_int_eq(record(r, step, ids, 3), RP_RECORD_LOST);
	ck_assert_int_eq(errno, 0);
	ck_assert_int_eq(dup2(kept, own), own);
	record_steps(r, 7, 9);
	struct rp_record_summary summary = {.size = sizeof summary};
	rp_recorder_close(r, NULL, &summary);
	ck_assert_uint_eq(summary.lost_steps, 3);
	ck_assert_int_eq(summary.first_errno, errors[_i]);
	for (size_t i = 0; i < 3; i++)
		close(fds[i]);
	close(pipes[0]);
	close(kept);
	read_back();
	ck_assert_uint_eq(ledger.steps.count, 6);
	ck_assert_uint_eq(ledger.lines_lost, 1);
	ck_assert_ptr_nonnull(strstr(ledger.losses.items[0].what, "steps 4 to 6 (9 samples)"));
	ledger_release(&ledger);
}
END_TEST

/* Somebody removes the file that is written: the next one begins, and the log says what is gone. */
START_TEST(a_removed_journal_is_said_to_be_missing)
{
	struct rp_record_options o = options();
	struct rp_recorder *r = rp_recorder_open(&o);
	record_steps(r, 1, 3);
	find_journals();
	ck_assert_uint_eq(path_count, 1);
	ck_assert_int_eq(unlink(paths[0]), 0);
	free(paths[--path_count]);
	ck_assert_int_eq(rp_record_sync(r), RP_RECORD_LOST);
	record_steps(r, 4, 6);
	ck_assert_int_eq(rp_recorder_close(r, NULL, NULL), RP_RECORD_OK);
	read_back();
	ck_assert_uint_eq(ledger.steps.count, 3);
	ck_assert_uint_ge(ledger.lines_lost, 1);
	ck_assert_str_eq(ledger.losses.items[0].what,
		"the files before this one (segment 2) are missing, with 12 samples");
	ledger_release(&ledger);
}
END_TEST

/* There is room for a gap's block and none for a step's: the gap that stands grows. */
START_TEST(a_disk_that_is_full_for_long_is_one_gap)
{
	enum { N = 100 };
	int64_t ids[N];
	for (int i = 0; i < N; i++)
		ids[i] = (int64_t)rp_record_hash(&i, sizeof i);
	struct rp_record_options o = options();
	struct rp_recorder *r = rp_recorder_open(&o);
	record_steps(r, 1, 3);
	struct rp_record_summary summary = {.size = sizeof summary};
	rp_recorder_summary(r, &summary);
	signal(SIGXFSZ, SIG_IGN);
	struct rlimit old, full;
	getrlimit(RLIMIT_FSIZE, &old);
	full = old;
	full.rlim_cur = summary.bytes + 160;
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &full), 0);
	for (int64_t step = 4; step <= 9; step++)
		ck_assert_int_eq(record(r, step, ids, N), RP_RECORD_LOST);
	/* Were it killed now, the log would say it already; behind the gap lies a piece of a step.
	 */
	read_back();
	ck_assert_uint_eq(ledger.steps.count, 3);
	ck_assert_uint_eq(ledger.lines_lost, 2);
	ck_assert_ptr_nonnull(strstr(ledger.losses.items[0].what,
		"6 calls of steps 4 to 9 (600 samples): File too large"));
	ledger_release(&ledger);
	setrlimit(RLIMIT_FSIZE, &old);
	ck_assert_int_eq(record(r, 10, ids, N), RP_RECORD_OK);
	ck_assert_int_eq(rp_record_gap(r, 11, 11, 0, NULL), RP_RECORD_OK);
	rp_recorder_close(r, NULL, NULL);
	read_back();
	ck_assert_uint_eq(ledger.steps.count, 4);
	ck_assert_uint_eq(ledger.lines_lost, 2);
	ck_assert_uint_eq(ledger.noted, 0);
	ck_assert_str_eq(ledger.losses.items[1].what,
		"the recorder could not write 1 call of step 11: not recorded");
	ledger_release(&ledger);
}
END_TEST

/* What a caller could not record, and what it called wrongly. */
START_TEST(gaps_are_said_by_callers)
{
	struct rp_record_options o = options();
	struct rp_recorder *r = rp_recorder_open(&o);
	const int64_t ids[] = {1, 2};
	struct rp_record_step wrong;
	ck_assert_int_eq(rp_record_gap(r, -1, 2, 0, NULL), RP_RECORD_ARGUMENT);
	ck_assert_int_eq(rp_record_gap(r, 3, 2, 0, NULL), RP_RECORD_ARGUMENT);
	ck_assert_int_eq(rp_record_gap(NULL, 1, 1, 0, NULL), RP_RECORD_CLOSED);
	ck_assert_int_eq(record(r, 1, ids, 2), RP_RECORD_OK);
	ck_assert_int_eq(rp_record_gap(r, 2, 4, 6, "KeyError: no id"), RP_RECORD_OK);
	ck_assert_int_eq(rp_record_gap(r, 5, 5, 2, "later ones are counted"), RP_RECORD_OK);
	ck_assert_int_eq(record(r, 6, ids, 2), RP_RECORD_OK);
	rp_record_step_init(&wrong, sizeof wrong);
	wrong.step = 7;
	wrong.n = 2;
	ck_assert_int_eq(rp_record_step(r, &wrong), RP_RECORD_ARGUMENT);
	struct rp_record_summary summary = {.size = sizeof summary};
	ck_assert_int_eq(rp_recorder_close(r, NULL, &summary), RP_RECORD_OK);
	ck_assert_uint_eq(summary.lost_steps, 4);
	ck_assert_uint_eq(summary.lost_samples, 8);
	ck_assert_uint_eq(summary.wrong_calls, 3);
	read_back();
	ck_assert_uint_eq(ledger.steps.count, 2);
	ck_assert_uint_eq(ledger.lines_lost, 2);
	ck_assert_str_eq(ledger.losses.items[0].what,
		"the recorder could not write 4 calls of steps 2 to 5 (8 samples): KeyError: no id");
	ck_assert_str_eq(ledger.losses.items[1].what,
		"the recorder could not write 1 call of step 7 (2 samples): Invalid argument: a "
		"step has samples but no ids");
	ledger_release(&ledger);
}
END_TEST

/* A program that was compiled against an older header, or a newer one. */
START_TEST(structs_of_other_versions_are_understood)
{
	struct {
		struct rp_record_options o;
		char more[64];
	} options = {0};
	struct {
		struct rp_record_step s;
		char more[64];
	} step = {0};
	const int64_t ids[] = {1, 2};
	memset(options.more, 'x', sizeof options.more);
	rp_record_options_init(&options.o, sizeof options.o);
	ck_assert_int_eq(options.more[0], 'x');
	rp_record_options_init(&options.o, sizeof options);
	ck_assert_uint_eq(options.o.size, sizeof options);
	ck_assert_int_eq(options.more[63], 0);
	ck_assert_int_eq(options.o.from_step, -1);
	options.o.folder = folder;
	rp_record_step_init(&step.s, sizeof step);
	step.s.ids = ids;
	step.s.n = 2;
	step.s.step = 1;
	struct rp_recorder *r = rp_recorder_open(&options.o);
	ck_assert_int_eq(rp_record_step(r, &step.s), RP_RECORD_OK);
	step.more[60] = 1;
	ck_assert_int_eq(rp_record_step(r, &step.s), RP_RECORD_ARGUMENT);
	/* An older summary is filled as far as it goes. */
	struct rp_record_summary summary = {.size = offsetof(struct rp_record_summary, bytes)};
	rp_recorder_summary(r, &summary);
	ck_assert_uint_eq(summary.steps, 1);
	ck_assert_uint_eq(summary.samples, 2);
	ck_assert_uint_eq(summary.wrong_calls, 0);
	rp_recorder_close(r, NULL, NULL);

	options.more[0] = 1; /* what is not known is said, and the rest recorded */
	r = rp_recorder_open(&options.o);
	ck_assert_int_eq(record(r, 1, ids, 2), RP_RECORD_OK);
	summary.size = sizeof summary;
	rp_recorder_close(r, NULL, &summary);
	ck_assert_uint_eq(summary.wrong_calls, 1);
	ck_assert_str_eq(summary.first_error,
		"options were set that this version of the library does not know");

	memset(&options, 0, sizeof options); /* never initialised: no folder can be trusted */
	r = rp_recorder_open(&options.o);
	ck_assert_ptr_nonnull(r);
	ck_assert_int_eq(record(r, 1, ids, 2), RP_RECORD_LOST);
	ck_assert_int_eq(rp_recorder_close(r, NULL, &summary), RP_RECORD_LOST);
	ck_assert_str_eq(summary.path, "");
	ck_assert_ptr_nonnull(strstr(summary.first_error, "options' size"));
}
END_TEST

/* More configuration than OPEN holds must not cost the record. */
START_TEST(a_long_configuration_is_left_out)
{
	static char config[JOURNAL_TEXT_MAX + 2];
	memset(config, '1', sizeof config - 1);
	struct rp_record_options o = options();
	o.config = config;
	o.versions = "{\"torch\": \"2\"}";
	struct rp_recorder *r = rp_recorder_open(&o);
	ck_assert_ptr_nonnull(r);
	record_steps(r, 1, 2);
	struct rp_record_summary summary = {.size = sizeof summary};
	ck_assert_int_eq(rp_recorder_close(r, NULL, &summary), RP_RECORD_OK);
	ck_assert_uint_eq(summary.wrong_calls, 1);
	ck_assert_ptr_nonnull(strstr(summary.first_error, "too long"));
	read_back();
	ck_assert_uint_eq(ledger.steps.count, 2);
	ck_assert_str_eq(ledger.attempts.items[0].config, "");
	ck_assert_str_eq(ledger.attempts.items[0].versions, o.versions);
	ledger_release(&ledger);
}
END_TEST

#define THREADS 4
#define THREAD_STEPS 200

struct thread_work {
	struct rp_recorder *r;
	int64_t number;
};

static void *record_in_thread(void *of)
{
	const struct thread_work *w = of;
	struct rp_record_summary summary = {.size = sizeof summary};
	for (int64_t i = 0; i < THREAD_STEPS; i++) {
		const int64_t ids[] = {w->number * THREAD_STEPS + i, -w->number};
		if (record(w->r, 1 + i, ids, 2) != RP_RECORD_OK ||
			(i % 50 == 0 && rp_record_event(w->r, "tick", i, NULL) != RP_RECORD_OK))
			return of;
		rp_recorder_summary(w->r, &summary);
	}
	return NULL;
}

/* Threads share one recorder: every call is in the log once. (Steps that go back are attempts.) */
START_TEST(threads_share_a_recorder)
{
	struct rp_record_options o = options();
	struct rp_recorder *r = rp_recorder_open(&o);
	struct thread_work work[THREADS];
	pthread_t threads[THREADS];
	for (int64_t i = 0; i < THREADS; i++) {
		work[i] = (struct thread_work){r, i};
		ck_assert_int_eq(pthread_create(&threads[i], NULL, record_in_thread, &work[i]), 0);
	}
	for (int i = 0; i < THREADS; i++) {
		void *failed;
		pthread_join(threads[i], &failed);
		ck_assert_ptr_null(failed);
	}
	struct rp_record_summary summary = {.size = sizeof summary};
	ck_assert_int_eq(rp_recorder_close(r, NULL, &summary), RP_RECORD_OK);
	ck_assert_uint_eq(summary.steps, THREADS * THREAD_STEPS);
	read_back();
	ck_assert_uint_eq(ledger.rows, 2 * THREADS * THREAD_STEPS);
	ck_assert_uint_eq(ledger.lines_lost, 0);
	uint64_t sum = 0;
	for (uint64_t i = 0; i < ledger.rows; i++)
		sum += (int64_t)key_at(i) > 0 ? key_at(i) : 0;
	ck_assert_uint_eq(sum, THREADS * THREAD_STEPS * (THREADS * THREAD_STEPS - 1) / 2);
	ledger_release(&ledger);
}
END_TEST

START_TEST(a_folder_that_cannot_be_written_takes_nothing_down)
{
	struct rp_record_options o = options();
	char inside[128];
	snprintf(inside, sizeof inside, "%s/file", folder);
	close(open(inside, O_CREAT | O_WRONLY, 0600));
	o.folder = inside; /* a file, not a folder: root could write anywhere else */
	struct rp_recorder *r = rp_recorder_open(&o);
	ck_assert_ptr_nonnull(r);
	const int64_t ids[] = {1};
	for (int64_t step = 1; step <= 40; step++)
		ck_assert_int_eq(record(r, step, ids, 1), RP_RECORD_LOST);
	/* It can be written from now on: the next tries find out. */
	unlink(inside);
	int64_t step = 41;
	while (step < 80 && record(r, step, ids, 1) != RP_RECORD_OK)
		step++;
	ck_assert_int_lt(step, 80);
	struct rp_record_summary summary = {.size = sizeof summary};
	ck_assert_int_eq(rp_recorder_close(r, NULL, &summary), RP_RECORD_OK);
	ck_assert_uint_eq(summary.lost_steps, (uint64_t)step - 1);
	ck_assert_int_eq(summary.first_errno, ENOTDIR);
}
END_TEST

/* Killed at any moment, again and again: every acknowledged step is in the journal. */
START_TEST(what_was_acknowledged_survives_a_kill)
{
	for (int round = 0; round < 200; round++) {
		int pipes[2];
		ck_assert_int_eq(pipe(pipes), 0);
		pid_t child = fork();
		if (child == 0) {
			struct rp_record_options o = options();
			struct rp_recorder *r = rp_recorder_open(&o);
			for (int64_t step = 1;; step++) {
				const int64_t ids[] = {step, step * 31};
				if (record(r, step, ids, 2) != RP_RECORD_OK ||
					write(pipes[1], &step, sizeof step) != sizeof step)
					_exit(1);
			}
		}
		close(pipes[1]);
		usleep((useconds_t)(1000 + round * 37 % 4000));
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
		int64_t step, acknowledged = 0;
		while (read(pipes[0], &step, sizeof step) == sizeof step)
			acknowledged = step;
		close(pipes[0]);
		find_journals();
		if (path_count) {
			read_back();
			ck_assert_uint_ge(ledger.steps.count, (uint64_t)acknowledged);
			ck_assert_uint_le(ledger.steps.count, (uint64_t)acknowledged + 1);
			/* The block in writing may be torn; nobody was told that it is there. */
			ck_assert_uint_le(ledger.lines_lost, 1);
			ledger_release(&ledger);
		} else {
			ck_assert_int_eq(acknowledged, 0);
		}
		for (size_t i = 0; i < path_count; i++)
			free(paths[i]);
		path_count = 0;
		clear(false);
	}
}
END_TEST

Suite *suite_journal(void)
{
	Suite *s = suite_create("journal");
	TCase *t = tcase_create("journal");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 120);
	tcase_add_test(t, steps_come_back);
	tcase_add_test(t, intents_and_configurations_come_back);
	tcase_add_loop_test(t, columns_keep_their_values, 0, 8);
	tcase_add_test(t, digests_are_those_of_the_text);
	tcase_add_test(t, a_step_of_many_blocks_is_one_step);
	tcase_add_test(t, launches_and_ranks_make_attempts);
	tcase_add_test(t, one_launch_id_used_twice_is_two_attempts);
	tcase_add_test(t, going_back_inside_a_process_is_an_attempt);
	tcase_add_test(t, a_second_recorder_of_one_place_is_left_out);
	tcase_add_test(t, what_was_seen_is_told_at_any_world_size);
	tcase_add_test(t, the_recorders_digest_is_the_readers);
	tcase_add_test(t, every_cut_of_the_last_blocks_keeps_the_rest);
	tcase_add_test(t, any_flipped_byte_is_noticed);
	tcase_add_test(t, zeros_at_the_end_were_never_written);
	tcase_add_test(t, a_missing_or_doubled_block_is_noticed);
	tcase_add_test(t, swapped_blocks_are_noticed);
	tcase_add_test(t, spliced_blocks_are_noticed);
	tcase_add_test(t, zeroed_pages_cost_what_they_held);
	tcase_add_test(t, a_newer_version_is_refused_by_name);
	tcase_add_test(t, wrong_calls_are_counted_and_harmless);
	tcase_add_test(t, forked_children_write_nothing_and_are_counted);
	tcase_add_test(t, a_full_disk_is_a_gap);
	tcase_add_loop_test(t, a_disk_that_fails_is_said_and_passes, 0, 3);
	tcase_add_test(t, a_removed_journal_is_said_to_be_missing);
	tcase_add_test(t, a_disk_that_is_full_for_long_is_one_gap);
	tcase_add_test(t, gaps_are_said_by_callers);
	tcase_add_test(t, structs_of_other_versions_are_understood);
	tcase_add_test(t, a_long_configuration_is_left_out);
	tcase_add_test(t, threads_share_a_recorder);
	tcase_add_test(t, a_folder_that_cannot_be_written_takes_nothing_down);
	tcase_add_test(t, what_was_acknowledged_survives_a_kill);
	suite_add_tcase(s, t);
	return s;
}
