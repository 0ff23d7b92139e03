/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#define XXH_INLINE_ALL
#include "recorder/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

bool segment_init(struct segment *s, uint32_t dp)
{
	uint8_t b[16];

	s->fd = -1;
	s->dp = dp;
	if (getrandom(b, sizeof b, 0) != sizeof b)
		return false;
	b[6] = (uint8_t)((b[6] & 0x0f) | 0x40);
	b[8] = (uint8_t)((b[8] & 0x3f) | 0x80);
	char *p = s->uuid;
	for (size_t i = 0; i < sizeof b; i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			*p++ = '-';
		p += snprintf(p, 3, "%02x", b[i]);
	}
	s->key = 0;
	for (size_t i = 8; i-- > 0;)
		s->key = s->key << 8 | b[i];
	return true;
}

void segment_release(struct segment *s)
{
	if (s->fd >= 0)
		close(s->fd);
	free(s->folder);
	free(s->open_text);
	free(s->block.p);
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

/* Finish the block and write it; 0 or an errno, after which nothing has changed. */
static int put_block(struct segment *s, enum journal_type type, uint32_t rows)
{
	size_t payload = s->block.used - JOURNAL_HEAD_BYTES;
	size_t whole = (s->block.used + 7) & ~(size_t)7;
	if (!block_reserve(&s->block, whole - s->block.used))
		return ENOMEM;
	memset(s->block.p + s->block.used, 0, whole - s->block.used);
	uint64_t key = type == JOURNAL_OPEN ? 0 : s->key;
	uint8_t *head = s->block.p;
	memset(head, 0, JOURNAL_HEAD_BYTES);
	little_endian(head, JOURNAL_MAGIC, 4);
	head[4] = (uint8_t)type;
	head[5] = type == JOURNAL_EVENT ? JOURNAL_SKIP_IF_UNKNOWN : 0;
	little_endian(head + 8, s->sequence, 8);
	little_endian(head + 16, payload, 4);
	little_endian(head + 20, rows, 4);
	little_endian(head + 24, s->before, 8);
	little_endian(head + 32, XXH3_64bits_withSeed(head + JOURNAL_HEAD_BYTES, payload, key), 8);
	uint64_t hash = XXH3_64bits_withSeed(head, 40, key);
	little_endian(head + 40, hash, 8);
	int error = write_at(s->fd, head, whole, s->offset);
	if (error)
		return error;
	s->offset += whole;
	s->sequence++;
	s->before = hash;
	s->bytes += whole;
	return 0;
}

int segment_put(struct segment *s, enum journal_type type, uint32_t rows)
{
	int error = put_block(s, type, rows);
	if (error)
		return error;
	/* It was told before this block, which ends it. */
	s->told.stands = false;
	s->gap.calls = 0;
	return 0;
}

static int put_text(struct segment *s, enum journal_type type, const struct json_text *t,
	int (*put)(struct segment *, enum journal_type, uint32_t))
{
	block_begin(&s->block);
	if (t->failed || !block_reserve(&s->block, t->n))
		return ENOMEM;
	memcpy(s->block.p + s->block.used, t->p, t->n);
	s->block.used += t->n;
	return put(s, type, 0);
}

int segment_put_text(struct segment *s, enum journal_type type, const struct json_text *t)
{
	return put_text(s, type, t, segment_put);
}

/* Gaps. ------------------------------------------------------------------------------------------
 */

void segment_lose(struct segment *s, int64_t first, int64_t last, uint32_t calls, uint64_t rows,
	int error, const char *words)
{
	struct segment_gap *g = &s->gap;
	if (g->calls == 0)
		*g = (struct segment_gap){.first_step = first, .last_step = last};
	g->first_step = first < g->first_step ? first : g->first_step;
	g->last_step = last > g->last_step ? last : g->last_step;
	g->rows += rows;
	g->calls = calls < UINT32_MAX - g->calls ? g->calls + calls : UINT32_MAX;
	g->error = error ? error : g->error;
	if (words && !g->words[0])
		snprintf(g->words, sizeof g->words, "%s", words);
	if (s->told.stands) {
		/* What stands there says less than is known now. */
		s->bytes -= s->offset - s->told.offset;
		s->offset = s->told.offset;
		s->sequence = s->told.sequence;
		s->before = s->told.before;
		s->told.stands = false;
	}
}

int segment_tell(struct segment *s)
{
	const struct segment_gap *g = &s->gap;
	size_t words = strlen(g->words);
	if (g->calls == 0 || s->told.stands)
		return 0;
	block_begin(&s->block);
	if (!block_reserve(&s->block, JOURNAL_GAP_BYTES + words))
		return ENOMEM;
	uint8_t *p = s->block.p + s->block.used;
	little_endian(p, (uint64_t)g->first_step, 8);
	little_endian(p + 8, (uint64_t)g->last_step, 8);
	little_endian(p + 16, g->rows, 8);
	little_endian(p + 24, g->calls, 4);
	little_endian(p + 28, (uint32_t)g->error, 4);
	memcpy(p + JOURNAL_GAP_BYTES, g->words, words);
	s->block.used += JOURNAL_GAP_BYTES + words;
	s->told.offset = s->offset;
	s->told.sequence = s->sequence;
	s->told.before = s->before;
	int error = put_block(s, JOURNAL_GAP, 0);
	s->told.stands = !error;
	return error;
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

/* Prefix and OPEN of a file that is empty. */
static int begin_file(struct segment *s, unsigned number, uint64_t first_row)
{
	struct json_text t = {0};
	uint8_t prefix[JOURNAL_PREFIX_BYTES] = JOURNAL_PREFIX;

	json_text_raw(&t, s->open_text, strlen(s->open_text));
	json_text_count(&t, "segment", number);
	json_text_count(&t, "first_row", first_row);
	json_text_raw(&t, "}", 1);
	little_endian(prefix + 8, JOURNAL_MAJOR, 2);
	little_endian(prefix + 10, JOURNAL_MINOR, 2);
	s->before = 0;
	s->offset = sizeof prefix;
	int error = write_at(s->fd, prefix, sizeof prefix, 0);
	if (!error)
		error = put_text(s, JOURNAL_OPEN, &t, put_block);
	free(t.p);
	return error;
}

/* Begin a file; 0 or an errno. */
static int open_file(struct segment *s, uint64_t first_row)
{
	char path[sizeof s->path], number[16] = "";
	unsigned next = s->number + 1;
	if (!s->folder)
		return EINVAL;
	if (next > 1)
		snprintf(number, sizeof number, ".%u", next);
	int n = snprintf(path, sizeof path, "%s/%s-dp%05u%s" JOURNAL_SUFFIX, s->folder, s->uuid,
		s->dp, number);
	if (n < 0 || (size_t)n >= sizeof path)
		return ENAMETOOLONG;
	int error = make_folders(s->folder);
	if (error)
		return error;
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (fd < 0)
		return errno;
	s->fd = fd;
	error = begin_file(s, next, first_row);
	if (error) {
		close(fd);
		unlink(path);
		s->fd = -1;
		return error;
	}
	s->number = next;
	memcpy(s->path, path, (size_t)n + 1);
	sync_folder(s->folder);
	return 0;
}

/*
 * A folder that could not be written is tried again, but not with every step: the time of a failing
 * open on a network file system is the trainer's.
 */
static int ensure_file(struct segment *s, uint64_t first_row)
{
	if (s->fd >= 0)
		return 0;
	if (s->failed_opens == 0 || s->failed_opens % 16 == 0)
		s->open_error = open_file(s, first_row);
	s->failed_opens = s->open_error ? s->failed_opens + 1 : 0;
	return s->open_error;
}

int segment_ready(struct segment *s, uint64_t first_row)
{
	int error = ensure_file(s, first_row);
	return error ? error : segment_tell(s);
}

int segment_close(struct segment *s)
{
	int fd = s->fd;
	s->fd = -1;
	/* Where the file is not the last one, what was told in it is told again. */
	s->told.stands = false;
	return fd >= 0 && close(fd) ? errno : 0;
}

int segment_sync(struct segment *s)
{
	struct stat file = {0};
	if (s->fd < 0)
		return s->sequence ? EIO : 0;
	/* What is in a file that was removed is lost with the process. */
	bool is_removed = fstat(s->fd, &file) == 0 && file.st_nlink == 0;
	if (!is_removed && fdatasync(s->fd) == 0)
		return 0;
	int error = is_removed ? ENOENT : errno;
	/* Not every file can be synced. A file system that was made read-only while we wrote says
	 * EROFS too, and has dropped what it held. */
	if (error == EINVAL || (error == EROFS && !S_ISREG(file.st_mode)))
		return 0;
	segment_close(s);
	return error;
}
