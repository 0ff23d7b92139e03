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

#include <endian.h>
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
#include "recorder/launch.h"

/* Rows of one STEP block: 30 B a row at the most stay far below the longest payload. */
#define BLOCK_ROWS ((size_t)1 << 18)

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
	uint64_t offset;        /* where the next block goes */
	uint64_t sequence;      /* of the next block */
	uint64_t before;        /* hash of the last block's head in this file */
	uint64_t key;           /* what its blocks are hashed with */
	uint64_t rows;          /* the next row's number */
	uint64_t sum[2], chain; /* of all rows acknowledged */
	uint64_t *spaces;       /* one per source, and one for none, at the end */
	size_t source_count;
	struct gap gap; /* what has not been written; calls 0: nothing */
	struct rp_record_summary sum_up;
	uint8_t *block; /* head and payload being built */
	size_t used, capacity;
	uint64_t *column; /* one column widened to 64 bits */
	size_t column_capacity;
};

static void put(uint8_t *at, uint64_t v, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		at[i] = (uint8_t)(v >> 8 * i);
}

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

/* Text that grows up to what one block may hold. -------------------------------------------------
 */

struct text {
	char *p;
	size_t n, capacity;
	bool failed;
};

static void text_bytes(struct text *t, const char *p, size_t n)
{
	if (t->failed || n > JOURNAL_TEXT_MAX - t->n) {
		t->failed = true;
		return;
	}
	if (t->n + n + 1 > t->capacity) {
		size_t capacity = 2 * (t->n + n) + 256;
		char *grown = realloc(t->p, capacity);
		if (!grown) {
			t->failed = true;
			return;
		}
		t->p = grown;
		t->capacity = capacity;
	}
	memcpy(t->p + t->n, p, n);
	t->n += n;
	t->p[t->n] = '\0';
}

static void text_add(struct text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void text_add(struct text *t, const char *format, ...)
{
	char line[256];
	va_list args;
	va_start(args, format);
	int n = vsnprintf(line, sizeof line, format, args);
	va_end(args);
	text_bytes(t, line, n < 0 ? 0 : (size_t)n < sizeof line ? (size_t)n : sizeof line - 1);
}

/* Bytes of the UTF-8 character at p, or 0 where there is none: overlong forms and surrogates are
 * none. */
static size_t utf8_length(const unsigned char *p)
{
	if (p[0] < 0x80)
		return 1;
	size_t n = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
	if (p[0] < 0xc2 || p[0] > 0xf4)
		return 0;
	for (size_t i = 1; i < n; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	unsigned second = p[1];
	if ((p[0] == 0xe0 && second < 0xa0) || (p[0] == 0xed && second > 0x9f) ||
		(p[0] == 0xf0 && second < 0x90) || (p[0] == 0xf4 && second > 0x8f))
		return 0;
	return n;
}

/* A JSON string; bytes that are no UTF-8 become U+FFFD, so that the object can always be read. */
static void text_string(struct text *t, const char *s)
{
	text_bytes(t, "\"", 1);
	for (const unsigned char *p = (const unsigned char *)s; *p;) {
		size_t n = utf8_length(p);
		if (n == 0) {
			text_bytes(t, "\\ufffd", 6);
			n = 1;
		} else if (*p < 0x20 || *p == '"' || *p == '\\') {
			text_add(t, "\\u%04x", *p);
		} else {
			text_bytes(t, (const char *)p, n);
		}
		p += n;
	}
	text_bytes(t, "\"", 1);
}

static void member_name(struct text *t, const char *name)
{
	text_add(t, "%s\"%s\":", t->n > 1 && t->p[t->n - 1] != '{' ? "," : "", name);
}

static void member_text(struct text *t, const char *name, const char *value)
{
	if (!value || !*value)
		return;
	member_name(t, name);
	text_string(t, value);
}

static void member_int(struct text *t, const char *name, int64_t value)
{
	member_name(t, name);
	text_add(t, "%lld", (long long)value);
}

static void member_count(struct text *t, const char *name, uint64_t value)
{
	if (value)
		member_int(t, name, value > INT64_MAX ? INT64_MAX : (int64_t)value);
}

/*
 * A number as 17 digits and an exponent, put together by hand: printf would follow the locale of
 * the process, which is not ours to know.
 */
static void member_real(struct text *t, const char *name, double value)
{
	if (!isfinite(value) || value == 0)
		return;
	char digits[40];
	snprintf(digits, sizeof digits, "%.16e", value);
	for (char *p = digits; *p; p++)
		if (!(*p >= '0' && *p <= '9') && *p != '-' && *p != '+' && *p != 'e')
			*p = '.';
	member_name(t, name);
	text_add(t, "%s", digits);
}

static void member_digest(struct text *t, const char *name, const uint64_t sum[2])
{
	member_name(t, name);
	text_add(t, "\"%016llx%016llx\"", (unsigned long long)sum[1], (unsigned long long)sum[0]);
}

static int64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Blocks. ----------------------------------------------------------------------------------------
 */

static bool reserve(struct rp_recorder *r, size_t more)
{
	if (more > JOURNAL_PAYLOAD_MAX + JOURNAL_HEAD_BYTES - r->used)
		return false;
	if (r->used + more <= r->capacity)
		return true;
	size_t capacity = 2 * (r->used + more) + 4096;
	uint8_t *grown = realloc(r->block, capacity);
	if (!grown)
		return false;
	r->block = grown;
	r->capacity = capacity;
	return true;
}

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
	size_t payload = r->used - JOURNAL_HEAD_BYTES;
	size_t whole = (r->used + 7) & ~(size_t)7;
	if (!reserve(r, whole - r->used))
		return ENOMEM;
	memset(r->block + r->used, 0, whole - r->used);
	uint64_t key = type == JOURNAL_OPEN ? 0 : r->key;
	uint8_t *head = r->block;
	memset(head, 0, JOURNAL_HEAD_BYTES);
	put(head, JOURNAL_MAGIC, 4);
	head[4] = (uint8_t)type;
	head[5] = type == JOURNAL_EVENT ? JOURNAL_SKIP_IF_UNKNOWN : 0;
	put(head + 8, r->sequence, 8);
	put(head + 16, payload, 4);
	put(head + 20, rows, 4);
	put(head + 24, r->before, 8);
	put(head + 32, XXH3_64bits_withSeed(head + JOURNAL_HEAD_BYTES, payload, key), 8);
	uint64_t hash = XXH3_64bits_withSeed(head, 40, key);
	put(head + 40, hash, 8);
	int error = write_at(r->fd, head, whole, r->offset);
	if (error)
		return error;
	r->offset += whole;
	r->sequence++;
	r->before = hash;
	r->sum_up.bytes += whole;
	return 0;
}

static int put_text(struct rp_recorder *r, enum journal_type type, const struct text *t)
{
	r->used = JOURNAL_HEAD_BYTES;
	if (t->failed || !reserve(r, t->n))
		return ENOMEM;
	memcpy(r->block + r->used, t->p, t->n);
	r->used += t->n;
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

	struct text t = {0};
	text_bytes(&t, r->open_text, strlen(r->open_text));
	member_count(&t, "segment", segment);
	member_count(&t, "first_row", r->rows);
	text_bytes(&t, "}", 1);
	uint8_t prefix[JOURNAL_PREFIX_BYTES] = JOURNAL_PREFIX;
	put(prefix + 8, JOURNAL_MAJOR, 2);
	put(prefix + 10, JOURNAL_MINOR, 2);
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
	r->used = JOURNAL_HEAD_BYTES;
	if (!reserve(r, JOURNAL_GAP_BYTES))
		return ENOMEM;
	uint8_t *p = r->block + r->used;
	put(p, (uint64_t)r->gap.first_step, 8);
	put(p + 8, (uint64_t)r->gap.last_step, 8);
	put(p + 16, r->gap.rows, 8);
	put(p + 24, r->gap.calls, 4);
	put(p + 28, (uint32_t)r->gap.error, 4);
	r->used += JOURNAL_GAP_BYTES;
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

/* Columns. ---------------------------------------------------------------------------------------
 */

static size_t width_of(uint64_t v)
{
	return v >> 32 ? 8 : v >> 16 ? 4 : v >> 8 ? 2 : 1;
}

static uint64_t zigzag(uint64_t difference)
{
	return difference << 1 ^ (difference >> 63 ? UINT64_MAX : 0);
}

static void put_many(uint8_t *at, const uint64_t *v, size_t n, size_t width)
{
	switch (width) {
	case 1:
		for (size_t i = 0; i < n; i++)
			at[i] = (uint8_t)v[i];
		break;
	case 2:
		for (size_t i = 0; i < n; i++)
			put(at + 2 * i, v[i], 2);
		break;
	case 4:
		for (size_t i = 0; i < n; i++)
			put(at + 4 * i, v[i], 4);
		break;
	default:
		for (size_t i = 0; i < n; i++)
			put(at + 8 * i, v[i], 8);
	}
}

/* Append a column in the shortest of the encodings. */
static bool put_column(struct rp_recorder *r, enum journal_column name, const uint64_t *v, size_t n)
{
	uint64_t all = 0, deltas = 0, step = n > 1 ? v[1] - v[0] : 0;
	bool even = true;
	for (size_t i = 0; i < n; i++)
		all |= v[i];
	for (size_t i = 1; i < n; i++) {
		uint64_t difference = v[i] - v[i - 1];
		deltas |= zigzag(difference);
		even &= difference == step;
	}
	size_t raw = width_of(all), narrow = width_of(deltas);
	enum journal_encoding encoding = JOURNAL_RAW;
	size_t width = raw, bytes = raw * n;
	if (even && step == 0) {
		encoding = JOURNAL_CONSTANT;
		bytes = raw;
	} else if (even && bytes > 16) {
		encoding = JOURNAL_STRIDE;
		width = 8;
		bytes = 16;
	} else if (8 + narrow * (n - 1) < bytes) {
		encoding = JOURNAL_DELTAS;
		width = narrow;
		bytes = 8 + narrow * (n - 1);
	}
	if (!reserve(r, JOURNAL_COLUMN_BYTES + bytes))
		return false;
	uint8_t *p = r->block + r->used;
	p[0] = (uint8_t)name;
	p[1] = (uint8_t)encoding;
	p[2] = (uint8_t)width;
	p[3] = 0;
	put(p + 4, bytes, 4);
	p += JOURNAL_COLUMN_BYTES;
	r->used += JOURNAL_COLUMN_BYTES + bytes;
	switch (encoding) {
	case JOURNAL_CONSTANT:
		put(p, v[0], width);
		break;
	case JOURNAL_STRIDE:
		put(p, v[0], 8);
		put(p + 8, step, 8);
		break;
	case JOURNAL_DELTAS:
		put(p, v[0], 8);
		p += 8;
		for (size_t i = 1; i < n; i++, p += width)
			put(p, zigzag(v[i] - v[i - 1]), width);
		break;
	case JOURNAL_RAW:
		put_many(p, v, n, width);
		break;
	}
	return true;
}

static bool put_one(struct rp_recorder *r, enum journal_column name, uint64_t v)
{
	return put_column(r, name, &v, 1);
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
	return put_column(r, JOURNAL_KEYS, (const uint64_t *)ids, n);
}

static bool put_sources(
	struct rp_recorder *r, const struct rp_record_step *s, size_t from, size_t n)
{
	if (!s->sources)
		return s->source < 0 || put_one(r, JOURNAL_SOURCES, (uint64_t)s->source);
	uint64_t *v = column_room(r, n);
	for (size_t i = 0; v && i < n; i++)
		v[i] = s->sources[from + i];
	return v && put_column(r, JOURNAL_SOURCES, v, n);
}

static bool put_tokens(struct rp_recorder *r, const struct rp_record_step *s, size_t from, size_t n)
{
	if (!s->tokens)
		return true;
	uint64_t *v = column_room(r, n);
	for (size_t i = 0; v && i < n; i++)
		v[i] = s->tokens[from + i];
	return v && put_column(r, JOURNAL_TOKENS, v, n);
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
	return v && put_column(r, JOURNAL_LOSSES, v, n);
}

static bool put_micro(struct rp_recorder *r, const struct rp_record_step *s)
{
	if (!s->micro || s->micro_count < 2)
		return true;
	uint64_t *v = column_room(r, s->micro_count);
	for (size_t i = 0; v && i < s->micro_count; i++)
		v[i] = s->micro[i];
	return v && put_column(r, JOURNAL_MICRO, v, s->micro_count);
}

/* What there is one of per step; it stands in the step's first block. */
static bool put_scalars(struct rp_recorder *r, const struct rp_record_step *s)
{
	bool ok = put_micro(r, s);
	if (s->step_tokens)
		ok = ok && put_one(r, JOURNAL_STEP_TOKENS, s->step_tokens);
	if (!isnan(s->loss))
		ok = ok && put_one(r, JOURNAL_STEP_LOSS, double_bits(s->loss));
	if (!isnan(s->lr))
		ok = ok && put_one(r, JOURNAL_STEP_LR, double_bits(s->lr));
	if (!isnan(s->grad_norm))
		ok = ok && put_one(r, JOURNAL_STEP_GRAD_NORM, double_bits(s->grad_norm));
	if (s->position >= 0)
		ok = ok && put_one(r, JOURNAL_STEP_POSITION, (uint64_t)s->position);
	if (s->flags & RP_RECORD_SKIPPED)
		ok = ok && put_one(r, JOURNAL_STEP_SKIPPED, 1);
	return ok;
}

static uint64_t space_of(const struct rp_recorder *r, const struct rp_record_step *s, size_t i)
{
	int64_t source = s->sources ? s->sources[i] : s->source;
	return r->spaces[source < 0 ? r->source_count : (size_t)source];
}

/* Write rows [from, from + n) of a step as one block; 0 or an errno. */
static int put_rows(struct rp_recorder *r, const struct rp_record_step *s, size_t from, size_t n)
{
	uint64_t sum[2] = {0, 0}, chain = r->chain;
	for (size_t i = from; i < from + n; i++)
		identity_add(sum, space_of(r, s, i), (uint64_t)s->ids[i]);
	chain = XXH3_64bits_withSeed(s->ids ? s->ids + from : NULL, n * sizeof *s->ids, chain);

	r->used = JOURNAL_HEAD_BYTES;
	if (!reserve(r, JOURNAL_STEP_BYTES))
		return ENOMEM;
	r->used += JOURNAL_STEP_BYTES;
	bool ok = n == 0 || (put_keys(r, s->ids + from, n) && put_sources(r, s, from, n) &&
				    put_tokens(r, s, from, n) && put_losses(r, s, from, n));
	if (from == 0)
		ok = ok && put_scalars(r, s);
	if (!ok)
		return ENOMEM;
	uint8_t *p = r->block + JOURNAL_HEAD_BYTES;
	unsigned columns = 0;
	for (size_t at = JOURNAL_HEAD_BYTES + JOURNAL_STEP_BYTES; at < r->used; columns++) {
		uint32_t bytes;
		memcpy(&bytes, r->block + at + 4, sizeof bytes);
		at += JOURNAL_COLUMN_BYTES + le32toh(bytes);
	}
	put(p, (uint64_t)s->step, 8);
	put(p + 8, r->rows, 8);
	put(p + 16, sum[0], 8);
	put(p + 24, sum[1], 8);
	put(p + 32, chain, 8);
	put(p + 40, (uint32_t)s->epoch, 4);
	put(p + 44, s->micro_count ? s->micro_count : 1, 2);
	put(p + 46, columns, 2);
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
		size_t n = s->n - done < BLOCK_ROWS ? s->n - done : BLOCK_ROWS;
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
	if (fdatasync(r->fd) == 0)
		return 0;
	int error = errno;
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
static int put_event(struct rp_recorder *r, struct text *t)
{
	member_int(t, "time_ns", now_ns());
	text_bytes(t, "}", 1);
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
	struct text t = {0};
	text_bytes(&t, "{", 1);
	member_int(&t, "checkpoint", step);
	member_text(&t, "path", path);
	if (position >= 0)
		member_int(&t, "position", position);
	member_text(&t, "digest", digest);
	member_int(&t, "rows", (int64_t)r->rows);
	member_digest(&t, "sum", r->sum);
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
	struct text t = {0};
	text_bytes(&t, "{", 1);
	member_text(&t, "event", kind);
	member_int(&t, "step", step);
	member_text(&t, "text", text);
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
	free(r->block);
	free(r->column);
	free(r);
}

int rp_recorder_close(struct rp_recorder *r, const char *reason, struct rp_record_summary *summary)
{
	int saved = errno, status = enter(r);
	if (status)
		return status;
	struct text t = {0};
	text_bytes(&t, "{", 1);
	member_text(&t, "end", reason && *reason ? reason : "finished");
	member_count(&t, "steps", r->sum_up.steps);
	member_count(&t, "rows", r->rows);
	member_digest(&t, "sum", r->sum);
	member_count(&t, "lost_steps", r->sum_up.lost_steps);
	member_count(&t, "lost_samples", r->sum_up.lost_samples);
	member_count(&t, "wrong_calls", r->sum_up.wrong_calls);
	if (r->forked)
		member_count(&t, "forked_calls", atomic_load(r->forked));
	member_text(&t, "first_error", r->sum_up.first_error);
	member_int(&t, "time_ns", now_ns());
	text_bytes(&t, "}", 1);
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

static void describe_sources(struct text *t, const struct rp_record_options *o)
{
	if (o->source_count == 0)
		return;
	member_name(t, "sources");
	text_bytes(t, "[", 1);
	for (size_t i = 0; i < o->source_count; i++) {
		text_bytes(t, i ? ",{" : "{", i ? 2 : 1);
		member_text(t, "name", o->sources[i].name);
		member_count(t, "size", o->sources[i].size);
		member_real(t, "weight", o->sources[i].weight);
		member_real(t, "epochs", o->sources[i].epochs);
		text_bytes(t, "}", 1);
	}
	text_bytes(t, "]", 1);
}

static const char *const key_names[] = {"ids", "text", "content"};

/* OPEN's object, but for its end. Objects that the caller gives as text stay text: whether they are
 * well-formed is the reader's question. */
static char *describe(
	const struct rp_recorder *r, const struct rp_record_options *o, const char *launch)
{
	struct text t = {0};
	text_bytes(&t, "{", 1);
	member_text(&t, "uuid", r->uuid);
	member_text(&t, "launch", launch);
	member_text(&t, "run", o->run);
	member_text(&t, "kind", o->kind);
	member_int(&t, "dp", r->dp);
	member_int(&t, "dp_size", o->dp_size);
	member_int(&t, "rank", o->rank);
	member_int(&t, "world_size", o->world_size);
	if (o->from_step >= 0)
		member_int(&t, "from_step", o->from_step);
	member_text(&t, "from_path", o->from_path);
	member_text(&t, "keys", key_names[o->keys]);
	member_text(&t, "dataset", o->dataset);
	member_text(&t, "fingerprint", o->fingerprint);
	member_text(&t, "unit", o->unit);
	member_text(&t, "order", o->order);
	member_text(&t, "sampling", o->sampling);
	member_count(&t, "size", o->dataset_size);
	member_real(&t, "repeat", o->repeat);
	describe_sources(&t, o);
	if (o->has_seed)
		member_int(&t, "seed", o->seed);
	member_count(&t, "global_batch", o->global_batch);
	member_count(&t, "micro_batch", o->micro_batch);
	member_count(&t, "accumulation", o->accumulation);
	member_count(&t, "workers", o->workers);
	member_count(&t, "prefetch", o->prefetch);
	if (o->drop_last)
		member_int(&t, "drop_last", o->drop_last > 0);
	member_text(&t, "code", o->code);
	member_text(&t, "versions", o->versions);
	member_text(&t, "config", o->config);
	member_text(&t, "intent", o->intent);
	member_text(&t, "recorder", rp_record_version());
	member_int(&t, "pid", r->owner);
	member_int(&t, "time_ns", now_ns());
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
