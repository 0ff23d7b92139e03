/* SPDX-License-Identifier: MIT */
/*
 * The recorder's calls. Loaded into training processes: libc and XXH3 alone, no global state, no
 * signal, no lock but its own.
 *
 * Cost of a step of n samples: one pass to choose each column's encoding, 3 ns a sample for its
 * digest, one pwrite. Nothing waits for the disk but rp_record_sync and what calls it.
 */
#define _GNU_SOURCE
#define XXH_INLINE_ALL
#include <reprise_record.h>

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xxhash.h>

#include "recorder/json_text.h"
#include "recorder/launch.h"
#include "recorder/opening.h"
#include "recorder/segment.h"
#include "recorder/step_block.h"

struct rp_recorder {
	pthread_mutex_t lock;
	pid_t owner;
	_Atomic uint64_t *forked; /* shared with children, so that their calls are counted */
	struct segment file;
	struct samples samples;
	struct rp_record_summary
		sum_up; /* path, bytes and forked_calls are filled when asked for */
};

/* Words for the first thing that went wrong; later ones are only counted. */
static void remember(struct rp_recorder *r, int error, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void remember(struct rp_recorder *r, int error, const char *format, ...)
{
	if (r->sum_up.first_error[0])
		return;
	va_list args;
	va_start(args, format);
	vsnprintf(r->sum_up.first_error, sizeof r->sum_up.first_error, format, args);
	va_end(args);
	r->sum_up.first_errno = error;
}

static void remember_error(struct rp_recorder *r, int error, const char *what, const char *which)
{
	char words[128];
	remember(r, error, "%s%.170s: %s", what, which, strerror_r(error, words, sizeof words));
}

/* Take the lock, or say why not: a closed recorder, a forked child. */
static int enter(struct rp_recorder *r)
{
	if (!r)
		return RP_RECORD_CLOSED;
	if (r->owner != getpid()) {
		if (r->forked)
			atomic_fetch_add(r->forked, 1);
		return RP_RECORD_FORKED;
	}
	pthread_mutex_lock(&r->lock);
	return RP_RECORD_OK;
}

static int leave(struct rp_recorder *r, int status, int saved_errno)
{
	pthread_mutex_unlock(&r->lock);
	errno = saved_errno;
	return status;
}

static int wrong(struct rp_recorder *r, const char *what)
{
	r->sum_up.wrong_calls++;
	remember(r, EINVAL, "%s", what);
	return RP_RECORD_ARGUMENT;
}

static int ready(struct rp_recorder *r)
{
	return segment_ready(&r->file, r->samples.rows);
}

/* A call could not be written. What is missing is told at once where that may succeed: a full disk
 * often has room for a gap where it has none for a step. */
static int lose(struct rp_recorder *r, int64_t step, uint64_t rows, int error, bool was_ready)
{
	char of_step[40];
	snprintf(of_step, sizeof of_step, "step %lld", (long long)step);
	remember_error(r, error, "", of_step);
	r->sum_up.lost_steps++;
	r->sum_up.lost_samples += rows;
	segment_lose(&r->file, step, step, 1, rows, error, NULL);
	if (was_ready)
		segment_tell(&r->file);
	return RP_RECORD_LOST;
}

/* The step as this version of the library knows it, or why there is none to be known. */
static const char *known_step(const struct rp_record_step *given, struct rp_record_step *s)
{
	if (!given || given->size < OPENING_STEP_0 || given->size > OPENING_SIZE_MAX)
		return "a step's size is none that rp_record_step_init could have set";
	rp_record_step_init(s, sizeof *s);
	memcpy(s, given, given->size < sizeof *s ? given->size : sizeof *s);
	return NULL;
}

static const char *step_fault(const struct rp_recorder *r, const struct rp_record_step *given,
	const struct rp_record_step *s)
{
	if (!opening_unused(given, sizeof *s, given->size))
		return "a step has what this version of the library does not know";
	return step_block_fault(&r->samples, s);
}

/* A step that makes no sense is not in the log, which is told there too. */
static int wrong_step(struct rp_recorder *r, const struct rp_record_step *s, const char *fault)
{
	if (s->step >= 0) {
		segment_lose(&r->file, s->step, s->step, 1, s->n, EINVAL, fault);
		ready(r);
	}
	return wrong(r, fault);
}

/* Write rows [from, from + n) of a step as one block; 0 or an errno. */
static int put_rows(struct rp_recorder *r, const struct rp_record_step *s, size_t from, size_t n)
{
	struct step_digests digests;
	int error = step_block_fill(s, from, n, &r->samples, &r->file.block, &digests);
	if (!error)
		error = segment_put(&r->file, JOURNAL_STEP, (uint32_t)n);
	if (error)
		return error;
	step_block_written(&r->samples, n, &digests);
	r->sum_up.samples += n;
	return 0;
}

int rp_record_step(struct rp_recorder *r, const struct rp_record_step *given)
{
	int saved = errno, status = enter(r);
	if (status)
		return status;
	struct rp_record_step s;
	const char *fault = known_step(given, &s);
	if (fault)
		return leave(r, wrong(r, fault), saved);
	fault = step_fault(r, given, &s);
	if (fault)
		return leave(r, wrong_step(r, &s, fault), saved);
	int error = ready(r);
	bool was_ready = !error;
	size_t done = 0;
	do {
		size_t n = s.n - done < JOURNAL_ROWS_MAX ? s.n - done : JOURNAL_ROWS_MAX;
		if (!error)
			error = put_rows(r, &s, done, n);
		if (error)
			break;
		done += n;
	} while (done < s.n);
	if (error)
		return leave(r, lose(r, s.step, s.n - done, error, was_ready), saved);
	r->sum_up.steps++;
	return leave(r, RP_RECORD_OK, saved);
}

int rp_record_gap(
	struct rp_recorder *r, int64_t first, int64_t last, uint64_t samples, const char *reason)
{
	int saved = errno, status = enter(r);
	if (status)
		return status;
	if (first < 0 || last < first)
		return leave(r, wrong(r, "the steps of a gap make no sense"), saved);
	uint64_t steps = (uint64_t)(last - first) + 1;
	const char *words = reason && *reason ? reason : "not recorded";
	remember(r, 0, "step %lld: %s", (long long)first, words);
	r->sum_up.lost_steps += steps;
	r->sum_up.lost_samples += samples;
	segment_lose(&r->file, first, last, steps < UINT32_MAX ? (uint32_t)steps : UINT32_MAX,
		samples, 0, words);
	return leave(r, ready(r) ? RP_RECORD_LOST : RP_RECORD_OK, saved);
}

static int sync_file(struct rp_recorder *r)
{
	int error = segment_sync(&r->file);
	if (error)
		remember_error(r, error, "sync of ", r->file.path);
	return error ? RP_RECORD_LOST : RP_RECORD_OK;
}

int rp_record_sync(struct rp_recorder *r)
{
	int saved = errno, status = enter(r);
	if (status)
		return status;
	return leave(r, sync_file(r), saved);
}

/* Write an event, and free its text; how the call ends so far. */
static int put_event(struct rp_recorder *r, int64_t step, struct json_text *t)
{
	json_text_now(t);
	json_text_raw(t, "}", 1);
	int error = t->failed ? E2BIG : 0, unready = ready(r);
	if (!error)
		error = unready;
	if (!error)
		error = segment_put_text(&r->file, JOURNAL_EVENT, t);
	free(t->p);
	return error ? lose(r, step, 0, error, !unready) : RP_RECORD_OK;
}

int rp_record_checkpoint(
	struct rp_recorder *r, int64_t step, const char *path, int64_t position, const char *digest)
{
	int saved = errno, status = enter(r);
	if (status)
		return status;
	struct json_text t = {0};
	json_text_raw(&t, "{", 1);
	json_text_int(&t, "checkpoint", step);
	json_text_string(&t, "path", path);
	if (position >= 0)
		json_text_int(&t, "position", position);
	json_text_string(&t, "digest", digest);
	json_text_int(&t, "rows", (int64_t)r->samples.rows);
	json_text_digest(&t, "sum", r->samples.sum);
	status = put_event(r, step, &t);
	int synced = sync_file(r);
	return leave(r, status ? status : synced, saved);
}

int rp_record_event(struct rp_recorder *r, const char *kind, int64_t step, const char *text)
{
	int saved = errno, status = enter(r);
	if (status)
		return status;
	if (!kind || !*kind)
		return leave(r, wrong(r, "an event has no kind"), saved);
	struct json_text t = {0};
	json_text_raw(&t, "{", 1);
	json_text_string(&t, "event", kind);
	json_text_int(&t, "step", step);
	json_text_string(&t, "text", text);
	return leave(r, put_event(r, step, &t), saved);
}

void rp_recorder_summary(struct rp_recorder *r, struct rp_record_summary *summary)
{
	if (!r || !summary || summary->size < sizeof summary->size)
		return;
	/* In a child the lock may be held by a thread that is not there. */
	bool own = r->owner == getpid();
	if (own)
		pthread_mutex_lock(&r->lock);
	struct rp_record_summary s = r->sum_up;
	s.bytes = r->file.bytes;
	memcpy(s.path, r->file.path, sizeof s.path);
	if (own)
		pthread_mutex_unlock(&r->lock);
	s.forked_calls = r->forked ? atomic_load(r->forked) : 0;
	s.size = summary->size;
	if (s.size > sizeof s && s.size <= OPENING_SIZE_MAX + sizeof s)
		memset((char *)summary + sizeof s, 0, s.size - sizeof s);
	memcpy(summary, &s, s.size < sizeof s ? s.size : sizeof s);
}

static void release(struct rp_recorder *r)
{
	if (r->forked)
		munmap(r->forked, sizeof *r->forked);
	pthread_mutex_destroy(&r->lock);
	segment_release(&r->file);
	samples_release(&r->samples);
	free(r);
}

/* CLOSE's object. */
static struct json_text closing_text(struct rp_recorder *r, const char *reason)
{
	struct json_text t = {0};
	json_text_raw(&t, "{", 1);
	json_text_string(&t, "end", reason && *reason ? reason : "finished");
	json_text_count(&t, "steps", r->sum_up.steps);
	json_text_count(&t, "rows", r->samples.rows);
	json_text_digest(&t, "sum", r->samples.sum);
	json_text_count(&t, "lost_steps", r->sum_up.lost_steps);
	json_text_count(&t, "lost_samples", r->sum_up.lost_samples);
	json_text_count(&t, "wrong_calls", r->sum_up.wrong_calls);
	if (r->forked)
		json_text_count(&t, "forked_calls", atomic_load(r->forked));
	json_text_string(&t, "first_error", r->sum_up.first_error);
	json_text_now(&t);
	json_text_raw(&t, "}", 1);
	return t;
}

int rp_recorder_close(struct rp_recorder *r, const char *reason, struct rp_record_summary *summary)
{
	int saved = errno, status = enter(r);
	if (status)
		return status;
	struct json_text t = closing_text(r, reason);
	r->file.failed_opens = 0;
	int error = t.failed ? E2BIG : ready(r);
	if (!error)
		error = segment_put_text(&r->file, JOURNAL_CLOSE, &t);
	free(t.p);
	if (!error)
		error = segment_sync(&r->file);
	int closed = segment_close(&r->file);
	error = error ? error : closed;
	if (error)
		remember_error(r, error, "close", "");
	pthread_mutex_unlock(&r->lock);
	rp_recorder_summary(r, summary);
	release(r);
	errno = saved;
	return error ? RP_RECORD_LOST : RP_RECORD_OK;
}

/* Opening. ---------------------------------------------------------------------------------------
 */

static char *join(const char *folder, const char *launch)
{
	size_t n = strlen(folder) + strlen(launch) + 2;
	char *path = malloc(n);
	if (path)
		snprintf(path, n, "%s/%s", folder, launch);
	return path;
}

/* OPEN's text; what is too long for it is left out, the least needed first, and that is said. */
static char *describe(struct rp_recorder *r, struct rp_record_options *o, const char *launch)
{
	struct {
		const char **text, *fault;
	} spared[] = {{&o->config, "the configuration is too long for the log, and is left out"},
		{&o->versions, "the versions are too long for the log, and are left out"},
		{&o->intent, "the declared changes are too long for the log, and are left out"}};
	char *text = opening_text(o, r->file.uuid, launch);

	for (size_t i = 0; !text && i < sizeof spared / sizeof *spared; i++) {
		if (!*spared[i].text)
			continue;
		*spared[i].text = NULL;
		wrong(r, spared[i].fault);
		text = opening_text(o, r->file.uuid, launch);
	}
	return text;
}

struct rp_recorder *rp_recorder_open(const struct rp_record_options *given)
{
	int saved = errno;
	struct rp_record_options o;
	const char *fault = opening_options(given, &o);
	struct rp_recorder *r = calloc(1, sizeof *r);
	if (!r)
		return NULL;
	pthread_mutex_init(&r->lock, NULL);
	r->owner = getpid();
	r->sum_up.size = sizeof r->sum_up;
	void *page = mmap(
		NULL, sizeof *r->forked, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	r->forked = page == MAP_FAILED ? NULL : page;
	if (fault)
		wrong(r, fault);
	char launch[LAUNCH_MAX];
	bool ok = segment_init(&r->file, o.dp) && samples_init(&r->samples, &o);
	if (ok) {
		launch_name(launch, o.launch, o.world_size, r->file.uuid);
		r->file.folder = o.folder ? join(o.folder, launch) : NULL;
		r->file.open_text = describe(r, &o, o.launch ? o.launch : launch);
		ok = (r->file.folder || !o.folder) && r->file.open_text;
	}
	if (!ok) {
		release(r);
		errno = saved;
		return NULL;
	}
	int error = ready(r);
	if (error)
		remember_error(r, error, "", r->file.folder ? r->file.folder : "no folder");
	errno = saved;
	return r;
}

/* The members that both know, and zero for those that only the caller does. */
static void init(void *out, size_t size, const void *known, size_t n)
{
	memset(out, 0, size);
	memcpy(out, known, size < n ? size : n);
}

void rp_record_options_init(struct rp_record_options *o, size_t size)
{
	const struct rp_record_options known = {.size = size, .from_step = -1};
	init(o, size, &known, sizeof known);
}

void rp_record_step_init(struct rp_record_step *s, size_t size)
{
	const struct rp_record_step known = {.size = size,
		.epoch = -1,
		.source = -1,
		.position = -1,
		.loss = NAN,
		.lr = NAN,
		.grad_norm = NAN};
	init(s, size, &known, sizeof known);
}

uint64_t rp_record_hash(const void *data, size_t n)
{
	return XXH3_64bits(data, n);
}

void rp_record_hash_many(const void *data, const uint64_t *offsets, size_t n, uint64_t *keys)
{
	const uint8_t *p = data;
	for (size_t i = 0; i < n; i++)
		keys[i] = XXH3_64bits(p + offsets[i], (size_t)(offsets[i + 1] - offsets[i]));
}

const char *rp_record_version(void)
{
	return "reprise-record 0.1.0";
}
