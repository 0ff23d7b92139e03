/* SPDX-License-Identifier: MIT */
/*
 * Sample logs: how fast text is read on one core, and how large a sealed log is. Rates are of
 * processor time, so that they do not depend on what else runs; of a sealed log, which the helper
 * reads beside us, of time.
 *
 *     ledger FOLDER [SAMPLES]
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/strbuf.h"
#include "base/lines.h"
#include "ledger/read.h"
#include "ledger/sealed.h"
#include "ledger/step_line.h"
#include "report/write_log.h"

#define ROUNDS 5
#define BATCH 64u
#define RANKS 4u

enum keys { SEQUENTIAL, PERMUTED, HASHES };

struct bench {
	const char *folder;
	struct limits limits;
	struct error e;
	uint64_t samples;
	uint32_t *ids;
};

static double seconds(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void give_up(const char *what, const struct error *e)
{
	fprintf(stderr, "%s: %s\n", what, e->text);
	exit(1);
}

static double size_of(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 ? (double)st.st_size : 0;
}

/* All ids below the number of samples, in a random order. */
static void permute(struct bench *b)
{
	b->ids = malloc(b->samples * sizeof *b->ids);
	if (!b->ids)
		exit(1);
	for (uint64_t i = 0; i < b->samples; i++) {
		uint64_t k = lookup_mix(i + 1) % (i + 1);
		b->ids[i] = b->ids[k];
		b->ids[k] = (uint32_t)i;
	}
}

static uint64_t key_of(const struct bench *b, enum keys keys, uint64_t i)
{
	switch (keys) {
	case SEQUENTIAL:
		return i;
	case HASHES:
		return lookup_mix(i + 1);
	case PERMUTED:
		break;
	}
	return b->ids[i];
}

/* One line's samples. */
struct batch {
	uint64_t keys[BATCH];
	uint32_t sources[BATCH], tokens[BATCH];
};

static void fill(const struct bench *bench, struct batch *b, enum keys keys, uint64_t first)
{
	for (uint32_t i = 0; i < BATCH; i++) {
		uint64_t random = lookup_mix(first + i);
		b->keys[i] = key_of(bench, keys, first + i);
		b->sources[i] = (uint32_t)(random % 7);
		b->tokens[i] = (uint32_t)(random >> 32) % 2048 + 1;
	}
}

/* A ledger of steps of RANKS * BATCH samples. */
static void build(struct bench *b, struct ledger *l, enum keys keys, bool sources, bool tokens)
{
	struct ledger_options o = {.limits = &b->limits, .memory = (uint64_t)1 << 30};
	struct ledger_line line = ledger_line_empty();
	struct batch batch;
	uint32_t index;

	if (ledger_init(l, b->folder, &o, &b->e) < 0 ||
		ledger_attempt(l, 1, &line.attempt, &b->e) < 0)
		give_up("building", &b->e);
	for (uint32_t i = 0; i < 7 && sources; i++) {
		char name[20];
		snprintf(name, sizeof name, "source-%u", i);
		if (ledger_source_named(l, slice_of(name), &index, &b->e) < 0)
			give_up("building", &b->e);
	}
	line.samples = true;
	line.n = BATCH;
	line.kind = keys == HASHES ? KEY_CONTENT : KEY_ID;
	line.keys = batch.keys;
	line.sources = sources ? batch.sources : NULL;
	line.tokens = tokens ? batch.tokens : NULL;
	for (uint64_t done = 0; done < b->samples; done += BATCH) {
		line.step = (int64_t)(done / (RANKS * BATCH)) + 1;
		line.dp = (uint32_t)(done / BATCH % RANKS);
		fill(b, &batch, keys, done);
		if (ledger_add_line(l, &line, &b->e) < 0)
			give_up("adding", &b->e);
	}
	if (ledger_finish(l, &b->e) < 0)
		give_up("finishing", &b->e);
}

static int write_piece(void *context, struct slice text, struct error *e)
{
	return fwrite(text.p, 1, text.n, context) == text.n
		       ? RP_OK
		       : fail(e, RP_E_IO, ERROR_NO_OFFSET, "cannot write");
}

static void write_text(struct bench *b, const struct ledger *l, const char *path, bool csv)
{
	FILE *f = fopen(path, "w");

	if (!f || (csv ? log_write_csv : log_write_jsonl)(l, write_piece, f, &b->e) < 0 ||
		fclose(f) != 0)
		give_up(path, &b->e);
}

/* The scanner alone, over the lines of a file. */
static void bench_scan(struct bench *b, const char *path)
{
	double best = 0;

	for (int round = 0; round < ROUNDS; round++) {
		struct ledger_options o = {.limits = &b->limits, .memory = (uint64_t)1 << 30};
		struct ledger l;
		struct source source;
		struct lines lines;
		struct step_line step;
		if (ledger_init(&l, "", &o, &b->e) < 0 ||
			source_open(&source, AT_FDCWD, path, &b->e) < 0)
			give_up(path, &b->e);
		lines_init(&lines, &source, b->limits.line_bytes);
		step_line_init(&step);
		double start = seconds(CLOCK_PROCESS_CPUTIME_ID);
		while (lines_next(&lines, &b->e) == LINE_WHOLE)
			step_line_scan(&step, lines.text, &l, &b->e);
		double rate = (double)source.size / (seconds(CLOCK_PROCESS_CPUTIME_ID) - start);
		best = rate > best ? rate : best;
		step_line_release(&step);
		lines_release(&lines);
		source_close(&source);
		ledger_release(&l);
	}
	printf("  scanned alone      %6.2f GB/s a core (best of %d)\n", best / 1e9, ROUNDS);
}

static void open_log(struct bench *b, const char *path)
{
	struct ledger_options o = {.limits = &b->limits, .memory = (uint64_t)1 << 30};
	struct ledger l;

	if (ledger_open(&l, &path, 1, &o, &b->e) < 0)
		give_up(path, &b->e);
	if (l.rows < b->samples)
		give_up("too few samples", &b->e);
	ledger_release(&l);
}

static void bench_read(struct bench *b, const char *what, const char *path, clockid_t clock)
{
	double best = 1e9;

	for (int round = 0; round < ROUNDS; round++) {
		double start = seconds(clock);
		open_log(b, path);
		double taken = seconds(clock) - start;
		best = taken < best ? taken : best;
	}
	printf("  %-18s %6.2f GB/s, %6.1f M samples/s%s\n", what, size_of(path) / best / 1e9,
		(double)b->samples / best / 1e6,
		clock == CLOCK_PROCESS_CPUTIME_ID ? " a core" : "");
}

static void bench_sealed(
	struct bench *b, const char *what, enum keys keys, bool sources, bool tokens, bool read)
{
	char path[4096];
	struct ledger l;

	snprintf(path, sizeof path, "%s/log.rpl", b->folder);
	build(b, &l, keys, sources, tokens);
	double start = seconds(CLOCK_MONOTONIC);
	if (sealed_write(&l, path, &b->e) < 0)
		give_up(path, &b->e);
	double taken = seconds(CLOCK_MONOTONIC) - start;
	printf("  %-34s %5.2f B a sample, sealed at %5.1f M samples/s\n", what,
		size_of(path) / (double)b->samples, (double)b->samples / taken / 1e6);
	ledger_release(&l);
	if (read)
		bench_read(b, "read back", path, CLOCK_MONOTONIC);
}

int main(int argc, char **argv)
{
	struct bench b = {.folder = argc > 1 ? argv[1] : ".",
		.limits = limits_default(),
		.e = ERROR_INIT,
		.samples = argc > 2 ? strtoull(argv[2], NULL, 10) : 1 << 23};
	char jsonl[4096], csv[4096];
	struct ledger l;

	snprintf(jsonl, sizeof jsonl, "%s/log.jsonl", b.folder);
	snprintf(csv, sizeof csv, "%s/log.csv", b.folder);
	permute(&b);
	build(&b, &l, PERMUTED, false, false);
	write_text(&b, &l, jsonl, false);
	write_text(&b, &l, csv, true);
	ledger_release(&l);
	printf("sample logs, %llu samples in lines of %u ids\n", (unsigned long long)b.samples,
		BATCH);
	bench_scan(&b, jsonl);
	bench_read(&b, "JSON lines, whole", jsonl, CLOCK_PROCESS_CPUTIME_ID);
	bench_read(&b, "CSV, whole", csv, CLOCK_PROCESS_CPUTIME_ID);
	bench_sealed(&b, "sequential ids", SEQUENTIAL, false, false, false);
	bench_sealed(&b, "permuted ids", PERMUTED, false, false, true);
	bench_sealed(&b, "hashes", HASHES, false, false, false);
	bench_sealed(&b, "permuted ids, sources, tokens", PERMUTED, true, true, false);
	free(b.ids);
	return 0;
}
