/* SPDX-License-Identifier: MIT */
/*
 * Mutated snapshots through the real helper: whatever they hold, this process reads them or refuses
 * them with an error, in bounded time. Most mutations would die on the first block's SHA-256, so
 * all but a few get a first block that vouches for them.
 *
 * Policies are read by this process itself: as many of them, mutated, do no harm either.
 *
 *    mutations COUNT [SEED [POLICY]]
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "columns/userblock.h"
#include "fuzz/fuzz.h"
#include "state/snapshot.h"

#define SEEDS 2
#define LONG_TENSORS 3000u /* makes columns of several chunks' worth of bytes, deflated */
#define MEMORY ((uint64_t)64 << 20)
#define SECONDS 2u
#define SLOW_MS 60000 /* of one file: this is a hang, not a loaded machine */

struct file {
	uint8_t *bytes;
	size_t n;
};

struct tally {
	uint64_t read, digest, refused, crashed, busy, sandbox;
	long slowest_ms;
};

static uint64_t random_state;

static uint64_t next_random(uint64_t below)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (random_state >> 11) % below;
}

static struct file load(const char *path)
{
	FILE *f = fopen(path, "rb");
	struct file out = {0};

	MUST(f && fseek(f, 0, SEEK_END) == 0);
	out.n = (size_t)ftell(f);
	out.bytes = malloc(out.n);
	MUST(out.bytes && fseek(f, 0, SEEK_SET) == 0 && fread(out.bytes, 1, out.n, f) == out.n);
	fclose(f);
	return out;
}

/* A state of every kind of table, and of long ones. */
static struct file make_seed(unsigned tensors, const char *path)
{
	struct limits limits = limits_default();
	static const int64_t shape[] = {3, 5};
	struct origin from = {.file = 0, .path = "a.b", .rank = 1};
	struct findings findings;
	struct coverage coverage;
	struct rng_state body;
	struct error e = ERROR_INIT;
	struct state s;

	state_init(&s, &limits);
	findings_init(&findings);
	coverage_init(&coverage);
	s.path = "checkpoint-1";
	s.kind = "pytorch";
	*array_push(&s.files, 1) =
		(struct state_file){.path = "a.pt", .status = FILE_READ, .digested = true};
	for (unsigned i = 0; i < tensors; i++) {
		*array_push(&s.storages, tensors) = (struct state_storage){.offset = 64 * i,
			.length = 60,
			.crc = i * 7,
			.crc_known = true,
			.read = true};
		*array_push(&s.tensors, tensors) =
			(struct state_tensor){.name = state_printf(&s, "layers.%u.weight", i),
				.shape = shape,
				.storage = i,
				.numel = 15,
				.ndim = 2,
				.dtype = DTYPE_F32,
				.whole = true};
		*array_push(&s.summaries, tensors) = (struct tensor_summary){
			.digest = {i * 0x9e3779b97f4a7c15, i}, .known = true};
	}
	state_add_int(&s, FACT_STEP, NO_GROUP, 12, from);
	state_add_text(&s, FACT_CONFIG, NO_GROUP, SLICE("adamw"), from);
	rng_decode_seed(7, &body);
	state_add_stream(&s, &body, "seed", -1, from);
	struct mt19937 mt;
	mt19937_seed(&mt, 5);
	MUST(rng_decode_words(RNG_LAYOUT_NUMPY, mt.s, 3, false, 0, &body, &e) == RP_OK);
	state_add_stream(&s, &body, "numpy", -1, from);
	struct optimizer *o = array_push(&s.optimizers, 1);
	*o = (struct optimizer){.name = "AdamW", .path = ""};
	*array_push(&o->params, 1) = (struct opt_param){.step = 4, .has_step = true};
	*array_push(&s.placements, 1) = (struct placement){.tensor = "t", .file = "f"};
	*array_push(&s.log, 1) = (struct log_point){.step = 1, .value = 2};
	finding_add(&findings, FINDING_I104, "something");
	cover_ran(&coverage, "moments", "what", "tensors", 1, 2, "why");
	struct snapshot_about about = {
		.name = "checkpoint-1", .findings = &findings, .coverage = &coverage};
	if (snapshot_write(&s, &about, path, &e) < 0) {
		fprintf(stderr, "no snapshot can be written: %s\n", e.text);
		exit(1);
	}
	findings_release(&findings);
	coverage_release(&coverage);
	state_release(&s);
	return load(path);
}

/* Where HDF5's own structures are rather than the numbers of columns: signatures of its blocks. */
static size_t structure_at(const struct file *f)
{
	static const char *const marks[] = {
		"OHDR", "FRHP", "FHDB", "BTHD", "BTLF", "TREE", "OCHK", "FHIB"};
	const char *mark = marks[next_random(sizeof marks / sizeof marks[0])];
	size_t start = USERBLOCK_BYTES + next_random(f->n - USERBLOCK_BYTES);
	const uint8_t *at = memmem(f->bytes + start, f->n - start, mark, 4);

	return at ? (size_t)(at - f->bytes) + next_random(200) : start;
}

static void mutate_once(struct file *f)
{
	static const uint64_t odd[] = {0, 1, 0x7f, 0xff, 0xffff, 0x7fffffff, 0xffffffff,
		0x7fffffffffffffff, UINT64_MAX, 0x100000000, 0x8000};
	size_t at = next_random(3) ? structure_at(f)
				   : USERBLOCK_BYTES + next_random(f->n - USERBLOCK_BYTES);
	size_t n = (size_t)1 << next_random(4);

	if (at + 8 > f->n)
		at = f->n - 8;
	switch (next_random(6)) {
	case 0:
	case 1:
		f->bytes[at] ^= (uint8_t)(1u << next_random(8));
		break;
	case 2:
		f->bytes[at] = (uint8_t)next_random(256);
		break;
	case 3: {
		uint64_t value = odd[next_random(sizeof odd / sizeof odd[0])];
		memcpy(f->bytes + at, &value, n);
		break;
	}
	case 4: {
		size_t from = USERBLOCK_BYTES + next_random(f->n - USERBLOCK_BYTES - 8);
		memmove(f->bytes + at, f->bytes + from, n);
		break;
	}
	default:
		if (next_random(20) == 0)
			f->n = at + 8 > USERBLOCK_BYTES + 16 ? at + 8 : f->n;
		else
			f->bytes[at] = 0;
	}
}

#define ROTATE(x, n) ((x) << (n) | (x) >> (32 - (n)))

/* The checksum of HDF5's structures: hashlittle() of Bob Jenkins' lookup3 (2006), with initval 0.
 */
static uint32_t lookup3(const uint8_t *p, size_t n)
{
	uint32_t w[3], s[3];

	w[0] = w[1] = w[2] = 0xdeadbeef + (uint32_t)n;
	for (; n > 12; p += 12, n -= 12) {
		memcpy(s, p, sizeof s);
		for (int i = 0; i < 3; i++)
			w[i] += s[i];
		static const int turns[] = {4, 6, 8, 16, 19, 4};
		for (int i = 0; i < 6; i++) {
			uint32_t *a = &w[i % 3], *b = &w[(i + 1) % 3], *c = &w[(i + 2) % 3];
			*a -= *c;
			*a ^= ROTATE(*c, turns[i]);
			*c += *b;
		}
	}
	if (n == 0)
		return w[2];
	memset(s, 0, sizeof s);
	memcpy(s, p, n);
	for (int i = 0; i < 3; i++)
		w[i] += s[i];
	static const int turns[] = {14, 11, 25, 16, 4, 14, 24};
	for (int i = 0; i < 7; i++) {
		uint32_t *c = &w[(2 + i) % 3], *b = &w[(1 + i) % 3];
		*c ^= *b;
		*c -= ROTATE(*b, turns[i]);
	}
	return w[2];
}

/* The checksums of object headers, in which types, shapes, layouts and filters stand, as they would
 * be. */
static void mend_headers(struct file *f)
{
	uint8_t *at = f->bytes + USERBLOCK_BYTES, *end = f->bytes + f->n;

	while ((at = memmem(at, (size_t)(end - at), "OHDR", 4))) {
		size_t left = (size_t)(end - at);
		if (left < 32)
			return;
		unsigned flags = at[5];
		size_t head = 6u + (flags & 0x20 ? 16u : 0u) + (flags & 0x10 ? 4u : 0u),
		       width = (size_t)1 << (flags & 3);
		uint64_t n = 0;
		memcpy(&n, at + head, width);
		head += width;
		if (n <= left && head + n + 4 <= left) {
			uint32_t sum = lookup3(at, head + (size_t)n);
			memcpy(at + head + n, &sum, sizeof sum);
		}
		at += 4;
	}
}

/* A first block that vouches for what follows. */
static void vouch(struct file *f, int fd)
{
	struct userblock u = {.kind = "snapshot", .major = 1, .bytes = f->n - USERBLOCK_BYTES};
	struct source s = {.fd = fd, .name = "mutated", .size = f->n};
	struct error e = ERROR_INIT;

	MUST(userblock_digest(&s, u.digest, &e) == RP_OK);
	userblock_print(&u, (char *)f->bytes);
	MUST(pwrite(fd, f->bytes, USERBLOCK_BYTES, 0) == (ssize_t)USERBLOCK_BYTES);
}

static void put(const struct file *f, int fd)
{
	MUST(ftruncate(fd, 0) == 0);
	MUST(pwrite(fd, f->bytes, f->n, 0) == (ssize_t)f->n);
}

static void judge(const char *path, struct tally *t)
{
	struct limits limits = limits_default();
	struct findings sink;
	struct error e = ERROR_INIT;
	struct timespec before, after;
	struct state s;

	limits.memory = MEMORY;
	limits.helper_seconds = SECONDS;
	state_init(&s, &limits);
	findings_init(&sink);
	clock_gettime(CLOCK_MONOTONIC, &before);
	int status = snapshot_read(&s, AT_FDCWD, path, path, &limits, &sink, &e);
	clock_gettime(CLOCK_MONOTONIC, &after);
	long ms =
		(after.tv_sec - before.tv_sec) * 1000 + (after.tv_nsec - before.tv_nsec) / 1000000;
	if (ms > t->slowest_ms)
		t->slowest_ms = ms;
	MUST(ms < SLOW_MS);
	MUST(status == RP_OK || status == e.status);
	if (status != RP_OK)
		fuzz_check_error(&e, status);
	fuzz_check_findings(&sink);
	if (status == RP_OK)
		t->read++;
	else if (strstr(e.text, "SHA-256") || strstr(e.text, "cut or added") ||
		 strstr(e.text, "first block"))
		t->digest++;
	else if (strstr(e.text, "crashed"))
		t->crashed++;
	else if (strstr(e.text, "busy") || strstr(e.text, "from answering"))
		t->busy++;
	else if (strstr(e.text, "sandbox"))
		t->sandbox++;
	else
		t->refused++;
	/* Only reading a file is no reason to take it for a failure of ours. */
	MUST(status != RP_E_INTERNAL);
	state_release(&s);
	findings_release(&sink);
}

/* Text: bytes changed, and pieces of it moved to other places, cut out or said twice. */
static void mutate_policy(struct file *f, size_t room)
{
	size_t at = next_random(f->n), from = next_random(f->n), n = next_random(40);

	n = n < f->n - at ? n : f->n - at;
	n = n < f->n - from ? n : f->n - from;
	switch (next_random(4)) {
	case 0:
		f->bytes[at] = (uint8_t)next_random(256);
		break;
	case 1:
		memmove(f->bytes + at, f->bytes + from, n);
		break;
	case 2:
		memmove(f->bytes + at, f->bytes + at + n, f->n - at - n);
		f->n -= n < f->n ? n : 0;
		break;
	default:
		if (f->n + n <= room) {
			memmove(f->bytes + at + n, f->bytes + at, f->n - at);
			f->n += n;
		}
	}
}

static void mutate_policies(unsigned long count, const char *path)
{
	struct file seed = load(path), f = {.bytes = malloc(2 * seed.n)};

	MUST(f.bytes && seed.n > 0);
	fuzz_policy(seed.bytes, seed.n);
	for (unsigned long i = 0; i < count; i++) {
		memcpy(f.bytes, seed.bytes, seed.n);
		f.n = seed.n;
		for (uint64_t k = 1 + next_random(6); k > 0; k--)
			mutate_policy(&f, 2 * seed.n);
		fuzz_policy(f.bytes, f.n);
	}
	free(f.bytes);
	free(seed.bytes);
	printf("%lu mutated policies\n", count);
}

int main(int argc, char **argv)
{
	unsigned long count = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000;
	char path[] = "/tmp/reprise-mutations-XXXXXX";
	struct tally t = {0};
	struct file seeds[SEEDS];
	int fd = mkstemp(path);

	MUST(fd >= 0);
	random_state = argc > 2 ? strtoul(argv[2], NULL, 10) * 2 + 1 : 88172645463325253u;
	seeds[0] = make_seed(3, path);
	seeds[1] = make_seed(LONG_TENSORS, path);
	close(fd);
	fd = open(path, O_RDWR | O_CLOEXEC);
	MUST(fd >= 0);
	/* What was written is read, or all that follows would prove nothing. */
	judge(path, &t);
	MUST(t.read == 1);
	/* The same of one whose headers were mended without need: or no checksum here is HDF5's. */
	struct file whole = {.bytes = seeds[1].bytes, .n = seeds[1].n};
	mend_headers(&whole);
	put(&whole, fd);
	judge(path, &t);
	MUST(t.read == 2);
	for (unsigned long i = 0; i < count; i++) {
		const struct file *seed = &seeds[next_random(4) == 0];
		struct file f = {.bytes = malloc(seed->n), .n = seed->n};
		MUST(f.bytes);
		memcpy(f.bytes, seed->bytes, seed->n);
		for (uint64_t k = 1 + next_random(6); k > 0; k--)
			mutate_once(&f);
		if (next_random(20) == 0)
			f.bytes[next_random(USERBLOCK_BYTES)] ^= (uint8_t)(1u << next_random(8));
		if (next_random(4) != 0)
			mend_headers(&f);
		put(&f, fd);
		if (next_random(20) != 0)
			vouch(&f, fd);
		judge(path, &t);
		free(f.bytes);
	}
	close(fd);
	unlink(path);
	for (int i = 0; i < SEEDS; i++)
		free(seeds[i].bytes);
	printf("%lu mutated snapshots: %llu read all the same, %llu refused by their first block, %llu by HDF5 or "
	       "their tables; the helper crashed on %llu, was stopped on %llu, left its sandbox on %llu; slowest %ld ms\n",
		count, (unsigned long long)(t.read - 2), (unsigned long long)t.digest,
		(unsigned long long)t.refused, (unsigned long long)t.crashed,
		(unsigned long long)t.busy, (unsigned long long)t.sandbox, t.slowest_ms);
	mutate_policies(count, argc > 3 ? argv[3] : "examples/policy.ini");
	return 0;
}
