/* SPDX-License-Identifier: MIT */
/*
 * The recorder: blocks of a journal, written one by one with pwrite at an offset that only this
 * process moves, so that a block is there whole, or is overwritten by the next try. Loaded into
 * training processes: libc and XXH3 alone, no global state, no signal, no lock but its own.
 *
 * Cost of a step of n samples: one pass to choose each column's encoding, 3 ns a sample for its
 * digest, one pwrite. Nothing waits for the disk but rp_record_sync and what calls it.
 */
#define _GNU_SOURCE
#define XXH_INLINE_ALL
#include <reprise_record.h>

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/identity.h"
#include "base/journal.h"
#include "recorder/block.h"
#include "recorder/json_text.h"
#include "recorder/launch.h"

#define UUID_TEXT 37

struct gap {
	int64_t first_step, last_step;
	uint64_t rows;
	uint32_t calls;
	int error;
};

struct rp_recorder {
	pthread_mutex_t lock;
	pid_t owner;
	_Atomic uint64_t *forked; /* shared with children, so that their calls are counted */
	char *folder;             /* of this launch */
	char *open_text;          /* OPEN's JSON object without its closing brace */
	char uuid[UUID_TEXT];
	uint32_t dp;
	int fd;           /* -1: there is no file, or a new one is wanted */
	unsigned segment; /* of the file that is open or was last */
	unsigned failed_opens;
	uint64_t offset;   /* where the next block goes */
	uint64_t sequence; /* of the next block */
	uint64_t before;   /* hash of the last block's head in this file */
	uint64_t key;      /* what its blocks are hashed with */
	uint64_t rows;     /* the next row's number */
	uint64_t sum[2];   /* of all rows acknowledged */
	uint64_t chain;    /* of the newest call, as far as it is written */
	uint64_t *spaces;  /* one per source, and one for none, at the end */
	size_t source_count;
	struct gap gap; /* what has not been written; calls 0: nothing */
	struct rp_record_summary sum_up;
	struct block block; /* being built */
	uint64_t *column;   /* one column widened to 64 bits */
	size_t column_capacity;
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

static int64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Blocks. ----------------------------------------------------------------------------------------
 */

/* Write all of it at the offset. A failure leaves what was written to be overwritten by the next
 * try. */
static int write_at(int fd, const uint8_t *p, size_t n, uint64_t offset)
{
	while (n) {
		ssize_t written = pwrite(fd, p, n, (off_t)offset);
		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			return written < 0 ? errno : EIO;
		p += written;
		n -= (size_t)written;
		offset += (uint64_t)written;
	}
	return 0;
}

/* Finish the block in r->block and write it; 0 or an errno, after which nothing has changed. */
static int put_block(struct rp_recorder *r, enum journal_type type, uint32_t rows)
{
	size_t payload = r->block.used - JOURNAL_HEAD_BYTES;
	size_t whole = (r->block.used + 7) & ~(size_t)7;
	if (!block_reserve(&r->block, whole - r->block.used))
		return ENOMEM;
	memset(r->block.p + r->block.used, 0, whole - r->block.used);
	uint64_t key = type == JOURNAL_OPEN ? 0 : r->key;
	uint8_t *head = r->block.p;
	memset(head, 0, JOURNAL_HEAD_BYTES);
	little_endian(head, JOURNAL_MAGIC, 4);
	head[4] = (uint8_t)type;
	head[5] = type == JOURNAL_EVENT ? JOURNAL_SKIP_IF_UNKNOWN : 0;
	little_endian(head + 8, r->sequence, 8);
	little_endian(head + 16, payload, 4);
	little_endian(head + 20, rows, 4);
	little_endian(head + 24, r->before, 8);
	little_endian(head + 32, XXH3_64bits_withSeed(head + JOURNAL_HEAD_BYTES, payload, key), 8);
	uint64_t hash = XXH3_64bits_withSeed(head, 40, key);
	little_endian(head + 40, hash, 8);
	int error = write_at(r->fd, head, whole, r->offset);
	if (error)
		return error;
	r->offset += whole;
	r->sequence++;
	r->before = hash;
	r->sum_up.bytes += whole;
	return 0;
}

static int put_text(struct rp_recorder *r, enum journal_type type, const struct json_text *t)
{
	block_begin(&r->block);
	if (t->failed || !block_reserve(&r->block, t->n))
		return ENOMEM;
	memcpy(r->block.p + r->block.used, t->p, t->n);
	r->block.used += t->n;
	return put_block(r, type, 0);
}

/* Files. -----------------------------------------------------------------------------------------
 */

/* Make a folder and those above it. */
static int make_folders(const char *path)
{
	char *copy = strdup(path);
	if (!copy)
		return ENOMEM;
	int error = 0;
	for (char *p = copy + 1; !error; p++) {
		if (*p != '/' && *p != '\0')
			continue;
		char end = *p;
		*p = '\0';
		if (mkdir(copy, 0777) && errno != EEXIST)
			error = errno;
		*p = end;
		if (end == '\0')
			break;
	}
	free(copy);
	return error;
}

static void sync_folder(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return;
	fsync(fd);
	close(fd);
}

/* Begin a file: prefix and OPEN. 0 or an errno. */
static int open_segment(struct rp_recorder *r)
{
	char path[sizeof r->sum_up.path];
	char number[16] = "";
	unsigned segment = r->segment + 1;
	if (segment > 1)
		snprintf(number, sizeof number, ".%u", segment);
	int n = snprintf(path, sizeof path, "%s/%s-dp%05u%s" JOURNAL_SUFFIX, r->folder, r->uuid,
		r->dp, number);
	if (n < 0 || (size_t)n >= sizeof path)
		return ENAMETOOLONG;
	int error = make_folders(r->folder);
	if (error)
		return error;
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (fd < 0)
		return errno;

	struct json_text t = {0};
	json_text_raw(&t, r->open_text, strlen(r->open_text));
	json_text_count(&t, "segment", segment);
	json_text_count(&t, "first_row", r->rows);
	json_text_raw(&t, "}", 1);
	uint8_t prefix[JOURNAL_PREFIX_BYTES] = JOURNAL_PREFIX;
	little_endian(prefix + 8, JOURNAL_MAJOR, 2);
	little_endian(prefix + 10, JOURNAL_MINOR, 2);
	r->fd = fd;
	r->offset = 0;
	r->before = 0;
	error = write_at(fd, prefix, sizeof prefix, 0);
	r->offset = sizeof prefix;
	if (!error)
		error = put_text(r, JOURNAL_OPEN, &t);
	free(t.p);
	if (error) {
		close(fd);
		unlink(path);
		r->fd = -1;
		return error;
	}
	r->segment = segment;
	r->failed_opens = 0;
	memcpy(r->sum_up.path, path, (size_t)n + 1);
	sync_folder(r->folder);
	return 0;
}

/*
 * A file to write to. A folder that could not be written is tried again, but not with every step:
 * the time of a failing open on a network file system is the trainer's.
 */
static int ensure_file(struct rp_recorder *r)
{
	if (r->fd >= 0)
		return 0;
	if (r->failed_opens && r->failed_opens % 16 != 0) {
		r->failed_opens++;
		return r->sum_up.first_errno ? r->sum_up.first_errno : EIO;
	}
	int error = open_segment(r);
	if (error)
		r->failed_opens++;
	return error;
}

/* Say in the log what could not be written; 0 when there is nothing left to say. */
static int put_gap(struct rp_recorder *r)
{
	if (r->gap.calls == 0)
		return 0;
	block_begin(&r->block);
	if (!block_reserve(&r->block, JOURNAL_GAP_BYTES))
		return ENOMEM;
	uint8_t *p = r->block.p + r->block.used;
	little_endian(p, (uint64_t)r->gap.first_step, 8);
	little_endian(p + 8, (uint64_t)r->gap.last_step, 8);
	little_endian(p + 16, r->gap.rows, 8);
	little_endian(p + 24, r->gap.calls, 4);
	little_endian(p + 28, (uint32_t)r->gap.error, 4);
	r->block.used += JOURNAL_GAP_BYTES;
	int error = put_block(r, JOURNAL_GAP, 0);
	if (!error)
		r->gap = (struct gap){0};
	return error;
}

static int lose(struct rp_recorder *r, int64_t step, uint64_t rows, int error)
{
	struct gap *g = &r->gap;
	if (g->calls == 0 || step < g->first_step)
		g->first_step = step;
	if (g->calls == 0 || step > g->last_step)
		g->last_step = step;
	g->rows += rows;
	g->calls++;
	g->error = error;
	r->sum_up.lost_steps++;
	r->sum_up.lost_samples += rows;
	char words[128];
	remember(
		r, error, "step %lld: %s", (long long)step, strerror_r(error, words, sizeof words));
	return RP_RECORD_LOST;
}

static uint64_t double_bits(double v)
{
	uint64_t bits;
	memcpy(&bits, &v, sizeof bits);
	return bits;
}

/* Room for a column of n values, widened. */
static uint64_t *column_room(struct rp_recorder *r, size_t n)
{
	if (n > r->column_capacity) {
		uint64_t *grown = realloc(r->column, n * sizeof *grown);
		if (!grown)
			return NULL;
		r->column = grown;
		r->column_capacity = n;
	}
	return r->column;
}

static bool put_keys(struct rp_recorder *r, const int64_t *ids, size_t n)
{
	/* int64_t and uint64_t may alias; ids below zero wrap and come back. */
	return block_column(&r->block, JOURNAL_KEYS, (const uint64_t *)ids, n);
}

static bool put_sources(
	struct rp_recorder *r, const struct rp_record_step *s, size_t from, size_t n)
{
	if (!s->sources)
		return s->source < 0 ||
		       block_value(&r->block, JOURNAL_SOURCES, (uint64_t)s->source);
	uint64_t *v = column_room(r, n);
	for (size_t i = 0; v && i < n; i++)
		v[i] = s->sources[from + i];
	return v && block_column(&r->block, JOURNAL_SOURCES, v, n);
}

static bool put_tokens(struct rp_recorder *r, const struct rp_record_step *s, size_t from, size_t n)
{
	if (!s->tokens)
		return true;
	uint64_t *v = column_room(r, n);
	for (size_t i = 0; v && i < n; i++)
		v[i] = s->tokens[from + i];
	return v && block_column(&r->block, JOURNAL_TOKENS, v, n);
}

static bool put_losses(struct rp_recorder *r, const struct rp_record_step *s, size_t from, size_t n)
{
	if (!s->losses)
		return true;
	uint64_t *v = column_room(r, n);
	for (size_t i = 0; v && i < n; i++) {
		uint32_t bits;
		memcpy(&bits, s->losses + from + i, sizeof bits);
		v[i] = bits;
	}
	return v && block_column(&r->block, JOURNAL_LOSSES, v, n);
}

static bool put_micro(struct rp_recorder *r, const struct rp_record_step *s)
{
	if (!s->micro || s->micro_count < 2)
		return true;
	uint64_t *v = column_room(r, s->micro_count);
	for (size_t i = 0; v && i < s->micro_count; i++)
		v[i] = s->micro[i];
	return v && block_column(&r->block, JOURNAL_MICRO, v, s->micro_count);
}

/* What there is one of per step; it stands in the step's first block. */
static bool put_scalars(struct rp_recorder *r, const struct rp_record_step *s)
{
	bool ok = put_micro(r, s);
	if (s->step_tokens)
		ok = ok && block_value(&r->block, JOURNAL_STEP_TOKENS, s->step_tokens);
	if (!isnan(s->loss))
		ok = ok && block_value(&r->block, JOURNAL_STEP_LOSS, double_bits(s->loss));
	if (!isnan(s->lr))
		ok = ok && block_value(&r->block, JOURNAL_STEP_LR, double_bits(s->lr));
	if (!isnan(s->grad_norm))
		ok = ok &&
		     block_value(&r->block, JOURNAL_STEP_GRAD_NORM, double_bits(s->grad_norm));
	if (s->position >= 0)
		ok = ok && block_value(&r->block, JOURNAL_STEP_POSITION, (uint64_t)s->position);
	if (s->flags & RP_RECORD_SKIPPED)
		ok = ok && block_value(&r->block, JOURNAL_STEP_SKIPPED, 1);
	return ok;
}

static uint64_t space_of(const struct rp_recorder *r, const struct rp_record_step *s, size_t i)
{
	int64_t source = s->sources ? s->sources[i] : s->source;
	return r->spaces[source < 0 ? r->source_count : (size_t)source];
}

/* Add rows [from, end) of one micro-batch to a sum, and go on with the chain. */
static uint64_t digest_part(const struct rp_recorder *r, const struct rp_record_step *s,
	size_t from, size_t end, uint64_t sum[2], uint64_t chain)
{
	uint64_t here[2] = {sum[0], sum[1]}, space = space_of(r, s, from);

	for (size_t i = from; i < end; i++) {
		if (s->sources)
			space = r->spaces[s->sources[i]];
		XXH128_hash_t h = identity_hash(space, (uint64_t)s->ids[i]);
		chain = identity_chain(chain, h);
		identity_add(here, h);
	}
	memcpy(sum, here, sizeof here);
	return chain;
}

/* Add rows [from, from + n) of a step to a sum, and go on with the call's chain. */
static uint64_t digest_rows(const struct rp_recorder *r, const struct rp_record_step *s,
	size_t from, size_t n, uint64_t sum[2])
{
	uint64_t chain = from == 0 ? 0 : r->chain;
	size_t begins = 0, at = from;

	for (uint32_t k = 0; at < from + n; k++) {
		size_t ends = k < s->micro_count ? begins + s->micro[k] : s->n;
		size_t end = ends < from + n ? ends : from + n;
		if (at == begins && at < end)
			chain = identity_chain_part(chain, r->dp, (uint16_t)k);
		if (at < end)
			chain = digest_part(r, s, at, end, sum, chain);
		at = at < end ? end : at;
		begins = ends;
	}
	return chain;
}

/* Write rows [from, from + n) of a step as one block; 0 or an errno. */
static int put_rows(struct rp_recorder *r, const struct rp_record_step *s, size_t from, size_t n)
{
	uint64_t sum[2] = {0, 0}, chain = digest_rows(r, s, from, n, sum);

	block_begin(&r->block);
	if (!block_reserve(&r->block, JOURNAL_STEP_BYTES))
		return ENOMEM;
	r->block.used += JOURNAL_STEP_BYTES;
	bool ok = n == 0 || (put_keys(r, s->ids + from, n) && put_sources(r, s, from, n) &&
				    put_tokens(r, s, from, n) && put_losses(r, s, from, n));
	if (from == 0)
		ok = ok && put_scalars(r, s);
	if (!ok)
		return ENOMEM;
	uint8_t *p = r->block.p + JOURNAL_HEAD_BYTES;
	little_endian(p, (uint64_t)s->step, 8);
	little_endian(p + 8, r->rows, 8);
	little_endian(p + 16, sum[0], 8);
	little_endian(p + 24, sum[1], 8);
	little_endian(p + 32, chain, 8);
	little_endian(p + 40, (uint32_t)s->epoch, 4);
	little_endian(p + 44, s->micro_count ? s->micro_count : 1, 2);
	little_endian(p + 46, r->block.columns, 2);
	int error = put_block(r, JOURNAL_STEP, (uint32_t)n);
	if (error)
		return error;
	identity_sum(r->sum, sum);
	r->chain = chain;
	r->rows += n;
	r->sum_up.samples += n;
	return 0;
}

/* Calls. -----------------------------------------------------------------------------------------
 */

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

/* Why a step makes no sense, or NULL. */
static const char *step_fault(const struct rp_recorder *r, const struct rp_record_step *s)
{
	if (!s || s->size < sizeof *s)
		return "a step's size is not that of struct rp_record_step";
	if (s->step < 0)
		return "a step's number is below zero";
	if (s->n && !s->ids)
		return "a step has samples but no ids";
	if (s->n > UINT32_MAX)
		return "a step has more than 2^32 samples";
	if (s->source >= 0 && (size_t)s->source >= r->source_count)
		return "a step's source is not one of those that were declared";
	for (size_t i = 0; s->sources && i < s->n; i++)
		if (s->sources[i] >= r->source_count)
			return "a sample's source is not one of those that were declared";
	if (s->micro_count > UINT16_MAX || (s->micro_count && !s->micro))
		return "a step's micro-batches make no sense";
	uint64_t sum = 0;
	for (size_t i = 0; i < s->micro_count; i++)
		sum += s->micro[i];
	if (s->micro_count && sum != s->n)
		return "a step's micro-batches do not add up to its samples";
	return NULL;
}

int rp_record_step(struct rp_recorder *r, const struct rp_record_step *s)
{
	int saved = errno, status = enter(r);
	if (status)
		return status;
	const char *fault = step_fault(r, s);
	if (fault)
		return leave(r, wrong(r, fault), saved);
	int error = ensure_file(r);
	if (!error)
		error = put_gap(r);
	size_t done = 0;
	do {
		size_t n = s->n - done < JOURNAL_ROWS_MAX ? s->n - done : JOURNAL_ROWS_MAX;
		if (!error)
			error = put_rows(r, s, done, n);
		if (error)
			break;
		done += n;
	} while (done < s->n);
	if (error)
		return leave(r, lose(r, s->step, s->n - done, error), saved);
	r->sum_up.steps++;
	return leave(r, RP_RECORD_OK, saved);
}

/*
 * Make what was written last. After a failure the kernel may have dropped the pages and forgotten
 * the error: nothing since the last good sync counts as written, and the file is not used any more.
 */
static int sync_file(struct rp_recorder *r)
{
	if (r->fd < 0)
		return r->sequence ? EIO : 0;
	struct stat file;
	bool is_removed = fstat(r->fd, &file) == 0 && file.st_nlink == 0;
	if (!is_removed && fdatasync(r->fd) == 0)
		return 0;
	/* What is in a file that was removed is lost with the process. */
	int error = is_removed ? ENOENT : errno;
	/* Not every file can be synced: a pipe or a special file system says EINVAL or EROFS. */
	if (error == EINVAL || error == EROFS)
		return 0;
	close(r->fd);
	r->fd = -1;
	char words[128];
	remember(r, error, "sync of %.150s: %s", r->sum_up.path,
		strerror_r(error, words, sizeof words));
	return error;
}

int rp_record_sync(struct rp_recorder *r)
{
	int saved = errno, status = enter(r);
	if (status)
		return status;
	return leave(r, sync_file(r) ? RP_RECORD_LOST : RP_RECORD_OK, saved);
}

/* Write an event; 0 or an errno. */
static int put_event(struct rp_recorder *r, struct json_text *t)
{
	json_text_int(t, "time_ns", now_ns());
	json_text_raw(t, "}", 1);
	int error = t->failed ? E2BIG : ensure_file(r);
	if (!error)
		error = put_gap(r);
	if (!error)
		error = put_text(r, JOURNAL_EVENT, t);
	return error;
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
	json_text_int(&t, "rows", (int64_t)r->rows);
	json_text_digest(&t, "sum", r->sum);
	int error = put_event(r, &t);
	free(t.p);
	if (error)
		return leave(r, lose(r, step, 0, error), saved);
	return leave(r, sync_file(r) ? RP_RECORD_LOST : RP_RECORD_OK, saved);
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
	int error = put_event(r, &t);
	free(t.p);
	return leave(r, error ? lose(r, step, 0, error) : RP_RECORD_OK, saved);
}

void rp_recorder_summary(struct rp_recorder *r, struct rp_record_summary *summary)
{
	if (!r || !summary || summary->size < sizeof *summary)
		return;
	size_t size = summary->size;
	*summary = r->sum_up;
	summary->size = size;
	if (r->forked)
		summary->forked_calls = atomic_load(r->forked);
}

static void release(struct rp_recorder *r)
{
	if (r->fd >= 0)
		close(r->fd);
	if (r->forked)
		munmap(r->forked, sizeof *r->forked);
	pthread_mutex_destroy(&r->lock);
	free(r->folder);
	free(r->open_text);
	free(r->spaces);
	free(r->block.p);
	free(r->column);
	free(r);
}

int rp_recorder_close(struct rp_recorder *r, const char *reason, struct rp_record_summary *summary)
{
	int saved = errno, status = enter(r);
	if (status)
		return status;
	struct json_text t = {0};
	json_text_raw(&t, "{", 1);
	json_text_string(&t, "end", reason && *reason ? reason : "finished");
	json_text_count(&t, "steps", r->sum_up.steps);
	json_text_count(&t, "rows", r->rows);
	json_text_digest(&t, "sum", r->sum);
	json_text_count(&t, "lost_steps", r->sum_up.lost_steps);
	json_text_count(&t, "lost_samples", r->sum_up.lost_samples);
	json_text_count(&t, "wrong_calls", r->sum_up.wrong_calls);
	if (r->forked)
		json_text_count(&t, "forked_calls", atomic_load(r->forked));
	json_text_string(&t, "first_error", r->sum_up.first_error);
	json_text_int(&t, "time_ns", now_ns());
	json_text_raw(&t, "}", 1);
	r->failed_opens = 0;
	int error = t.failed ? E2BIG : ensure_file(r);
	if (!error)
		error = put_gap(r);
	if (!error)
		error = put_text(r, JOURNAL_CLOSE, &t);
	free(t.p);
	if (!error)
		error = sync_file(r);
	/* A quota on a network file system is reported by close. */
	if (r->fd >= 0 && close(r->fd) && !error)
		error = errno;
	r->fd = -1;
	if (error) {
		char words[128];
		remember(r, error, "close: %s", strerror_r(error, words, sizeof words));
	}
	rp_recorder_summary(r, summary);
	pthread_mutex_unlock(&r->lock);
	release(r);
	errno = saved;
	return error ? RP_RECORD_LOST : RP_RECORD_OK;
}

/* Opening. ---------------------------------------------------------------------------------------
 */

static bool new_uuid(struct rp_recorder *r)
{
	uint8_t b[16];
	if (getrandom(b, sizeof b, 0) != sizeof b)
		return false;
	b[6] = (uint8_t)((b[6] & 0x0f) | 0x40);
	b[8] = (uint8_t)((b[8] & 0x3f) | 0x80);
	char *p = r->uuid;
	for (size_t i = 0; i < sizeof b; i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			*p++ = '-';
		p += snprintf(p, 3, "%02x", b[i]);
	}
	r->key = 0;
	for (size_t i = 8; i-- > 0;)
		r->key = r->key << 8 | b[i];
	return true;
}

static void describe_sources(struct json_text *t, const struct rp_record_options *o)
{
	if (o->source_count == 0)
		return;
	json_text_name(t, "sources");
	json_text_raw(t, "[", 1);
	for (size_t i = 0; i < o->source_count; i++) {
		json_text_raw(t, i ? ",{" : "{", i ? 2 : 1);
		json_text_string(t, "name", o->sources[i].name);
		json_text_count(t, "size", o->sources[i].size);
		json_text_real(t, "weight", o->sources[i].weight);
		json_text_real(t, "epochs", o->sources[i].epochs);
		json_text_raw(t, "}", 1);
	}
	json_text_raw(t, "]", 1);
}

static const char *const key_names[] = {"ids", "text", "content"};

/* OPEN's object, but for its end. Objects that the caller gives as text stay text: whether they are
 * well-formed is the reader's question. */
static char *describe(
	const struct rp_recorder *r, const struct rp_record_options *o, const char *launch)
{
	struct json_text t = {0};
	json_text_raw(&t, "{", 1);
	json_text_string(&t, "uuid", r->uuid);
	json_text_string(&t, "launch", launch);
	json_text_string(&t, "run", o->run);
	json_text_string(&t, "kind", o->kind);
	json_text_int(&t, "dp", r->dp);
	json_text_int(&t, "dp_size", o->dp_size);
	json_text_int(&t, "rank", o->rank);
	json_text_int(&t, "world_size", o->world_size);
	if (o->from_step >= 0)
		json_text_int(&t, "from_step", o->from_step);
	json_text_string(&t, "from_path", o->from_path);
	json_text_string(&t, "keys", key_names[o->keys]);
	json_text_string(&t, "dataset", o->dataset);
	json_text_string(&t, "fingerprint", o->fingerprint);
	json_text_string(&t, "unit", o->unit);
	json_text_string(&t, "order", o->order);
	json_text_string(&t, "sampling", o->sampling);
	json_text_count(&t, "size", o->dataset_size);
	json_text_real(&t, "repeat", o->repeat);
	describe_sources(&t, o);
	if (o->has_seed)
		json_text_int(&t, "seed", o->seed);
	json_text_count(&t, "global_batch", o->global_batch);
	json_text_count(&t, "micro_batch", o->micro_batch);
	json_text_count(&t, "accumulation", o->accumulation);
	json_text_count(&t, "workers", o->workers);
	json_text_count(&t, "prefetch", o->prefetch);
	if (o->drop_last)
		json_text_int(&t, "drop_last", o->drop_last > 0);
	json_text_string(&t, "code", o->code);
	json_text_string(&t, "versions", o->versions);
	json_text_string(&t, "config", o->config);
	json_text_string(&t, "intent", o->intent);
	json_text_string(&t, "recorder", rp_record_version());
	json_text_int(&t, "pid", r->owner);
	json_text_int(&t, "time_ns", now_ns());
	if (t.failed) {
		free(t.p);
		return NULL;
	}
	return t.p;
}

static bool name_spaces(struct rp_recorder *r, const struct rp_record_options *o)
{
	r->source_count = o->source_count;
	r->spaces = calloc(o->source_count + 1, sizeof *r->spaces);
	if (!r->spaces)
		return false;
	for (size_t i = 0; i <= o->source_count; i++)
		r->spaces[i] = identity_space(o->dataset, o->unit, o->order,
			i < o->source_count ? o->sources[i].name : NULL, o->keys);
	return true;
}

static char *join(const char *folder, const char *launch)
{
	size_t n = strlen(folder) + strlen(launch) + 2;
	char *path = malloc(n);
	if (path)
		snprintf(path, n, "%s/%s", folder, launch);
	return path;
}

/* The options as this version of the library knows them; what a caller's older header lacks is
 * zero. */
static struct rp_record_options known_options(const struct rp_record_options *given)
{
	struct rp_record_options o;
	rp_record_options_init(&o);
	if (given) {
		size_t n = given->size < sizeof o ? given->size : sizeof o;
		memcpy(&o, given, n);
		o.size = sizeof o;
	}
	if (!o.folder || !*o.folder)
		o.folder = ".";
	o.dp_size = o.dp_size ? o.dp_size : 1;
	o.world_size = o.world_size ? o.world_size : o.dp_size;
	if (o.keys > RP_RECORD_CONTENT)
		o.keys = RP_RECORD_IDS;
	if (!o.sources || o.source_count > UINT16_MAX)
		o.source_count = 0;
	return o;
}

struct rp_recorder *rp_recorder_open(const struct rp_record_options *given)
{
	int saved = errno;
	struct rp_record_options o = known_options(given);
	struct rp_recorder *r = calloc(1, sizeof *r);
	if (!r)
		return NULL;
	pthread_mutex_init(&r->lock, NULL);
	r->owner = getpid();
	r->fd = -1;
	r->dp = o.dp;
	r->sum_up.size = sizeof r->sum_up;
	void *page = mmap(
		NULL, sizeof *r->forked, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	r->forked = page == MAP_FAILED ? NULL : page;
	char launch[LAUNCH_MAX];
	bool ok = new_uuid(r) && name_spaces(r, &o);
	if (ok) {
		launch_name(launch, o.launch, o.world_size, r->uuid);
		r->folder = join(o.folder, launch);
		r->open_text = describe(r, &o, o.launch ? o.launch : launch);
		ok = r->folder && r->open_text;
	}
	if (!ok) {
		release(r);
		errno = saved;
		return NULL;
	}
	int error = ensure_file(r);
	if (error) {
		char words[128];
		remember(r, error, "%.180s: %s", r->folder, strerror_r(error, words, sizeof words));
	}
	errno = saved;
	return r;
}

void rp_record_options_init(struct rp_record_options *o)
{
	*o = (struct rp_record_options){.size = sizeof *o, .from_step = -1};
}

void rp_record_step_init(struct rp_record_step *s)
{
	*s = (struct rp_record_step){.size = sizeof *s,
		.epoch = -1,
		.source = -1,
		.position = -1,
		.loss = NAN,
		.lr = NAN,
		.grad_norm = NAN};
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
