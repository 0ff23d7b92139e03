/* SPDX-License-Identifier: MIT */
/*
 * The recorder: what a step costs the trainer, what a sample takes on disk, how fast content is
 * hashed, and how fast journals are read, sealed, and read sealed.
 *
 *     record FOLDER [SAMPLES]
 *
 * Costs of calls are of time, since what they wait for is the trainer's too: the median and the
 * worst of all calls. A round that is many of them is the best of some.
 */
#define _GNU_SOURCE
#include <reprise_record.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/lookup.h"
#include "ledger/read.h"
#include "ledger/sealed.h"

#define BATCH 1024u
#define STEPS 4000u
#define ROUNDS 5

enum keys { RANGES, PERMUTED, HASHES };

static double seconds(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void give_up(const char *what, const char *why)
{
	fprintf(stderr, "%s: %s\n", what, why);
	exit(1);
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* Ids below `samples` in a random order: an epoch as a sampler deals it. */
static int64_t *ids_of(enum keys keys, uint64_t samples)
{
	int64_t *ids = malloc(samples * sizeof *ids);

	if (!ids)
		give_up("ids", "no memory");
	for (uint64_t i = 0; i < samples; i++) {
		uint64_t k = keys == PERMUTED ? lookup_mix(i + 1) % (i + 1) : i;
		ids[i] = ids[k];
		ids[k] = (int64_t)(keys == HASHES ? lookup_mix(i + 1) : i);
	}
	return ids;
}

/* Record all ids in steps of BATCH below a fresh folder; the file's path, and each call's time, if
 * asked for. Returns what all calls took by a clock. */
static double record(const char *folder, const int64_t *ids, uint64_t samples, enum keys keys,
	char path[4096], double *times, clockid_t clock)
{
	struct rp_record_options o;
	struct rp_record_step s;
	struct rp_record_summary summary = {.size = sizeof summary};

	rp_record_options_init(&o, sizeof o);
	o.folder = folder;
	o.from_step = 0;
	o.dataset_size = samples;
	o.keys = keys == HASHES ? RP_RECORD_CONTENT : RP_RECORD_IDS;
	struct rp_recorder *r = rp_recorder_open(&o);
	rp_record_step_init(&s, sizeof s);
	s.n = BATCH;
	double start = seconds(clock);
	for (uint64_t k = 0; k * BATCH < samples; k++) {
		s.step = (int64_t)k + 1;
		s.ids = ids + k * BATCH;
		double from = times ? seconds(CLOCK_MONOTONIC) : 0;
		if (rp_record_step(r, &s) != RP_RECORD_OK)
			give_up(folder, "a step was lost");
		if (times)
			times[k] = seconds(CLOCK_MONOTONIC) - from;
	}
	double taken = seconds(clock) - start;
	rp_recorder_close(r, NULL, &summary);
	strcpy(path, summary.path);
	return taken;
}

static double size_of(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 ? (double)st.st_size : 0;
}

static void bench_calls(const char *folder, const char *what, enum keys keys)
{
	const uint64_t samples = (uint64_t)BATCH * STEPS;
	double *times = malloc(STEPS * sizeof *times);
	int64_t *ids = ids_of(keys, samples);
	char path[4096];

	if (!times)
		give_up(what, "no memory");
	record(folder, ids, samples, keys, path, times, CLOCK_MONOTONIC);
	unlink(path);
	double busy = record(folder, ids, samples, keys, path, NULL, CLOCK_PROCESS_CPUTIME_ID);
	qsort(times, STEPS, sizeof *times, by_size);
	printf("  %u %-8s %5.2f us a step (median; 99 %% below %.1f, worst %.0f), %.2f us of it on the processor, %.2f B a sample\n",
		BATCH, what, times[STEPS / 2] * 1e6, times[STEPS * 99 / 100] * 1e6,
		times[STEPS - 1] * 1e6, busy / STEPS * 1e6, size_of(path) / (double)samples);
	unlink(path);
	free(ids);
	free(times);
}

/* Samples of `length` bytes end to end, against XXH3 over all of them at once. */
static void bench_hashes(size_t length)
{
	const size_t n = ((size_t)64 << 20) / length;
	char *data = malloc(n * length);
	uint64_t *offsets = malloc((n + 1) * sizeof *offsets), *keys = malloc(n * sizeof *keys);
	double ours = 1e9, whole = 1e9;
	uint64_t sum = 0;

	if (!data || !offsets || !keys)
		give_up("hashes", "no memory");
	memset(data, 7, n * length);
	for (size_t i = 0; i <= n; i++)
		offsets[i] = i * length;
	for (int round = 0; round < ROUNDS; round++) {
		double start = seconds(CLOCK_PROCESS_CPUTIME_ID);
		rp_record_hash_many(data, offsets, n, keys);
		double middle = seconds(CLOCK_PROCESS_CPUTIME_ID);
		sum += XXH3_64bits(data, n * length) + keys[n / 2];
		double end = seconds(CLOCK_PROCESS_CPUTIME_ID);
		ours = middle - start < ours ? middle - start : ours;
		whole = end - middle < whole ? end - middle : whole;
	}
	double bytes = (double)(n * length);
	printf("  contents of %6zu B hashed at %5.1f GB/s, %.2f of XXH3 over all at once%s\n",
		length, bytes / ours / 1e9, whole / ours, sum == 1 ? "" : "");
	free(data);
	free(offsets);
	free(keys);
}

static double read_log(const char *path, uint64_t samples, const char *sealed)
{
	struct limits limits = limits_default();
	struct ledger_options o = {.limits = &limits, .memory = (uint64_t)1 << 30};
	struct error e = ERROR_INIT;
	struct ledger l;
	double start = seconds(CLOCK_MONOTONIC);

	if (ledger_open(&l, &path, 1, &o, &e) < 0 || l.rows != samples)
		give_up(path, e.text);
	if (sealed && sealed_write(&l, sealed, &e) < 0)
		give_up(sealed, e.text);
	double taken = seconds(CLOCK_MONOTONIC) - start;
	ledger_release(&l);
	return taken;
}

static void bench_sealing(const char *folder, uint64_t samples)
{
	char path[4096], sealed[4200];
	int64_t *ids = ids_of(PERMUTED, samples);

	samples = samples / BATCH * BATCH;
	double recorded = record(folder, ids, samples, PERMUTED, path, NULL, CLOCK_MONOTONIC);
	free(ids);
	snprintf(sealed, sizeof sealed, "%s/sealed.rpl", folder);
	double rows = (double)samples;
	double both = read_log(path, samples, sealed), journal = 1e9, back = 1e9;
	for (int round = 0; round < 3; round++) {
		double a = read_log(path, samples, NULL), b = read_log(sealed, samples, NULL);
		journal = a < journal ? a : journal;
		back = b < back ? b : back;
	}
	printf("  %.0f permuted ids: recorded at %.0f M/s, read at %.0f M/s (%.2f GB/s), read and "
	       "sealed at %.1f M/s in %.1f s; the sealed log is read at %.0f M/s: a journal takes "
	       "%.2f times as long\n",
		rows, rows / recorded / 1e6, rows / journal / 1e6, size_of(path) / journal / 1e9,
		rows / both / 1e6, both, rows / back / 1e6, journal / back);
	unlink(path);
	unlink(sealed);
}

int main(int argc, char **argv)
{
	const char *folder = argc > 1 ? argv[1] : ".";
	uint64_t samples = argc > 2 ? strtoull(argv[2], NULL, 10) : 1 << 24;

	setenv("REPRISE_LAUNCH", "bench", 1);
	printf("recorder\n");
	bench_calls(folder, "in order", RANGES);
	bench_calls(folder, "permuted", PERMUTED);
	bench_calls(folder, "hashes", HASHES);
	bench_hashes(512);
	bench_hashes(8192);
	bench_sealing(folder, samples);
	return 0;
}
