/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "columns/colfile.h"

#include <libdeflate.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/size.h"

#define CHUNK_ROWS 65536u
#define ONE_PIECE ((uint64_t)8 << 10) /* a smaller column is no longer than its chunks' index */
#define DEFLATE_LEVEL 6
#define PASSES_MAX 31u /* chunks that are not tried behind one that was not worth it */
#define WORTH_PERCENT                                                                              \
	70u /* deflated bytes that are more than this of the raw ones are not worth it */

/* Numbers are little-endian in files and frames: turn them, where this machine's are not. */
static void swap_if_big(uint8_t *p, size_t n, uint32_t size)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	for (size_t at = 0; at + size <= n; at += size)
		for (uint32_t i = 0; i < size / 2; i++) {
			uint8_t byte = p[at + i];
			p[at + i] = p[at + size - 1 - i];
			p[at + size - 1 - i] = byte;
		}
#else
	(void)p;
	(void)n;
	(void)size;
#endif
}

/* Writing -------------------------------------------------------------------------------------- */

static bool ok(const struct colfile_writer *w)
{
	return w->error.status == RP_OK;
}

static void ask(struct colfile_writer *w, enum frame_kind kind)
{
	struct cursor answer;

	if (ok(w))
		helper_ask(&w->helper, kind, FRAME_DONE, &answer, &w->error);
}

void colfile_create(
	struct colfile_writer *w, const char *path, const struct colfile_kind *kind, uint64_t most)
{
	*w = (struct colfile_writer){
		.file = {.folder = -1, .fd = -1}, .kind = kind, .error = ERROR_INIT};
	const struct limits limits = limits_default();

	w->helper.socket = -1;
	if (replacement_open(&w->file, path, &w->error) < 0)
		return;
	w->chunk = malloc(FRAME_ROWS_MAX);
	w->shuffled = malloc(FRAME_ROWS_MAX);
	w->deflated = malloc(FRAME_ROWS_MAX);
	w->compressor = libdeflate_alloc_compressor(DEFLATE_LEVEL);
	if (!w->chunk || !w->shuffled || !w->deflated || !w->compressor)
		fail(&w->error, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory to write it");
	else
		helper_start(&w->helper, w->file.fd, most, &limits, &w->error);
	ask(w, FRAME_CREATE);
}

static void put_attribute(struct colfile_writer *w, const char *name, enum column_type type,
	const void *values, uint32_t count)
{
	size_t n = (size_t)count * column_type_size(type);

	if (!ok(w) || count == 0)
		return;
	helper_put_u32(&w->helper, type);
	helper_put_u32(&w->helper, count);
	helper_put_u32(&w->helper, (uint32_t)strlen(name));
	helper_put_bytes(&w->helper, name, strlen(name));
	size_t at = w->helper.n;
	helper_put_bytes(&w->helper, values, n);
	if (!w->helper.overfull)
		swap_if_big(w->helper.body + at, n, column_type_size(type));
	ask(w, FRAME_PUT_ATTRIBUTE);
}

void colfile_put_text(struct colfile_writer *w, const char *name, struct slice text)
{
	put_attribute(w, name, COLUMN_TEXT, text.p, (uint32_t)text.n);
}

void colfile_put_numbers(struct colfile_writer *w, const char *name, enum column_type type,
	const void *values, uint32_t count)
{
	put_attribute(w, name, type, values, count);
}

void colfile_put_column(struct colfile_writer *w, const char *path, enum column_type type,
	uint32_t width, uint64_t rows)
{
	if (!ok(w))
		return;
	if (w->done + w->filled != w->rows) {
		fail(&w->error, RP_E_INTERNAL, ERROR_NO_OFFSET, "a column was given too few rows");
		return;
	}
	w->type = type;
	w->width = width;
	w->rows = rows;
	w->done = w->filled = 0;
	w->passes = w->misses = 0;
	w->row_bytes = (uint64_t)column_type_size(type) * width;
	w->chunk_rows = FRAME_ROWS_MAX / w->row_bytes;
	if (w->chunk_rows > CHUNK_ROWS)
		w->chunk_rows = CHUNK_ROWS;
	if (w->chunk_rows > rows)
		w->chunk_rows = rows;
	bool chunked = rows > ONE_PIECE / w->row_bytes;
	helper_put_u32(&w->helper, type);
	helper_put_u32(&w->helper, width);
	helper_put_u64(&w->helper, rows);
	helper_put_u64(&w->helper, chunked ? w->chunk_rows : 0);
	helper_put_bytes(&w->helper, path, strlen(path));
	ask(w, FRAME_PUT_COLUMN);
}

/* Byte k of all numbers behind each other, as HDF5's shuffle filter has it. */
static void shuffle(const uint8_t *from, uint8_t *to, size_t n, uint32_t size)
{
	size_t count = n / size;

	for (uint32_t k = 0; k < size; k++)
		for (size_t i = 0; i < count; i++)
			*to++ = from[i * size + k];
}

/*
 * Deflate the shuffled chunk; 0 where it is not worth it. The chunks behind one that was not are
 * mostly alike, and trying takes longer than all else: more and more of them are passed over.
 */
static size_t try_deflate(struct colfile_writer *w, size_t n)
{
	if (w->passes > 0) {
		w->passes--;
		return 0;
	}
	size_t deflated = libdeflate_zlib_compress(
		w->compressor, w->shuffled, n, w->deflated, n / 100 * WORTH_PERCENT);
	w->misses = deflated > 0 ? 0 : 2 * w->misses + 1;
	if (w->misses > PASSES_MAX)
		w->misses = PASSES_MAX;
	w->passes = w->misses;
	return deflated;
}

/* Hand over a full chunk, shuffled and deflated where that is worth it. The last one is padded. */
static void put_chunk(struct colfile_writer *w)
{
	size_t n = (size_t)(w->chunk_rows * w->row_bytes);
	size_t held = (size_t)(w->filled * w->row_bytes);

	memset(w->chunk + held, 0, n - held);
	shuffle(w->chunk, w->shuffled, n, column_type_size(w->type));
	size_t deflated = try_deflate(w, n);
	if (deflated > 0) {
		helper_put_u32(&w->helper, 0);
		helper_put_bytes(&w->helper, w->deflated, deflated);
	} else {
		helper_put_u32(&w->helper, FILTER_SHUFFLE | FILTER_DEFLATE);
		helper_put_bytes(&w->helper, w->chunk, n);
	}
}

static void put_filled(struct colfile_writer *w)
{
	helper_put_u64(&w->helper, w->done);
	helper_put_u32(&w->helper, (uint32_t)w->filled);
	if (w->rows > ONE_PIECE / w->row_bytes) {
		put_chunk(w);
	} else {
		helper_put_u32(&w->helper, 0);
		helper_put_bytes(&w->helper, w->chunk, (size_t)(w->filled * w->row_bytes));
	}
	ask(w, FRAME_PUT_ROWS);
	w->done += w->filled;
	w->filled = 0;
}

void colfile_put_rows(struct colfile_writer *w, const void *rows, uint64_t count)
{
	const uint8_t *p = rows;

	if (ok(w) && count > w->rows - w->done - w->filled)
		fail(&w->error, RP_E_INTERNAL, ERROR_NO_OFFSET, "a column was given too many rows");
	while (ok(w) && count > 0) {
		uint64_t room = w->chunk_rows - w->filled;
		uint64_t taken = count < room ? count : room;
		size_t bytes = (size_t)(taken * w->row_bytes);
		uint8_t *to = w->chunk + w->filled * w->row_bytes;
		memcpy(to, p, bytes);
		swap_if_big(to, bytes, column_type_size(w->type));
		w->filled += taken;
		p += bytes;
		count -= taken;
		if (w->filled == w->chunk_rows || w->done + w->filled == w->rows)
			put_filled(w);
	}
}

/* The HDF5 part is whole: put before it what it is and its digest. */
static void put_userblock(struct colfile_writer *w)
{
	struct userblock u = {.major = w->kind->major, .minor = w->kind->minor};
	char block[USERBLOCK_BYTES];
	struct source s = {.fd = w->file.fd, .name = "the new file"};
	struct stat st;

	if (fstat(w->file.fd, &st) < 0 || st.st_size < (off_t)USERBLOCK_BYTES) {
		fail(&w->error, RP_E_IO, ERROR_NO_OFFSET, "it was cut while it was written");
		return;
	}
	s.size = (uint64_t)st.st_size;
	u.bytes = s.size - USERBLOCK_BYTES;
	snprintf(u.kind, sizeof u.kind, "%s", w->kind->name);
	if (userblock_digest(&s, u.digest, &w->error) < 0)
		return;
	userblock_print(&u, block);
	if (pwrite(w->file.fd, block, sizeof block, 0) != (ssize_t)sizeof block)
		fail(&w->error, RP_E_IO, ERROR_NO_OFFSET, "it cannot be written");
}

int colfile_finish(struct colfile_writer *w, struct error *e)
{
	if (ok(w) && w->done != w->rows)
		fail(&w->error, RP_E_INTERNAL, ERROR_NO_OFFSET, "a column was given too few rows");
	ask(w, FRAME_FINISH);
	helper_stop(&w->helper);
	if (ok(w))
		put_userblock(w);
	if (ok(w))
		replacement_commit(&w->file, &w->error);
	else
		replacement_abandon(&w->file);
	libdeflate_free_compressor(w->compressor);
	free(w->chunk);
	free(w->shuffled);
	free(w->deflated);
	if (ok(w))
		return RP_OK;
	int status = fail(e, w->error.status == RP_E_FORMAT ? RP_E_IO : w->error.status,
		w->error.offset, "%s", w->error.text);
	if (e)
		e->output = w->error.status != RP_E_ARGUMENT;
	return status;
}

/* Reading -------------------------------------------------------------------------------------- */

int colfile_open(struct colfile_reader *r, int dirfd, const char *path,
	const struct colfile_kind *kind, const struct limits *limits, struct error *e)
{
	struct cursor answer;
	int status = source_open(&r->source, dirfd, path, e);

	if (status < 0)
		return status;
	r->helper = (struct helper){.socket = -1};
	r->rows = 0;
	status = userblock_check(&r->block, &r->source, kind->name, kind->major, e);
	if (status == RP_OK)
		status = helper_start(&r->helper, r->source.fd, 0, limits, e);
	if (status == RP_OK) {
		helper_put_u64(&r->helper, r->source.size);
		if (!helper_ask(&r->helper, FRAME_OPEN, FRAME_DONE, &answer, e))
			status = RP_E_FORMAT;
	}
	if (status < 0)
		colfile_close(r);
	return status < 0 && e ? e->status : status;
}

void colfile_close(struct colfile_reader *r)
{
	helper_stop(&r->helper);
	source_close(&r->source);
}

/* An answer that is no error is ABSENT or has exactly `n` bytes, unless that is SIZE_MAX. */
static int take_answer(struct colfile_reader *r, enum frame_kind kind, enum frame_kind expected,
	size_t n, struct cursor *answer, bool *found, struct error *e)
{
	enum frame_kind said = helper_ask(&r->helper, kind, expected, answer, e);

	*found = said == expected;
	if (said == 0)
		return e ? e->status : RP_E_FORMAT;
	if (*found && n != SIZE_MAX && cursor_left(answer) != n) {
		*found = false;
		return fail(e, RP_E_FORMAT, ERROR_NO_OFFSET,
			"its HDF5 part gave %zu bytes where %zu were asked for",
			cursor_left(answer), n);
	}
	return RP_OK;
}

int colfile_get_text(struct colfile_reader *r, const char *name, char *out, size_t size,
	bool *found, struct error *e)
{
	struct cursor answer;

	helper_put_u32(&r->helper, COLUMN_TEXT);
	helper_put_u32(&r->helper, (uint32_t)(size - 1));
	helper_put_bytes(&r->helper, name, strlen(name));
	int status = take_answer(r, FRAME_GET_ATTRIBUTE, FRAME_DATA, SIZE_MAX, &answer, found, e);
	size_t n = cursor_left(&answer);
	if (status == RP_OK && n > size - 1)
		return fail(e, RP_E_FORMAT, ERROR_NO_OFFSET, "its attribute %s is too long", name);
	if (status < 0 || !*found)
		n = 0;
	if (n > 0)
		memcpy(out, cursor_take(&answer, n), n);
	out[n] = '\0';
	return status;
}

int colfile_get_numbers(struct colfile_reader *r, const char *name, enum column_type type,
	void *out, uint32_t count, bool *found, struct error *e)
{
	struct cursor answer;
	size_t n = (size_t)count * column_type_size(type);

	helper_put_u32(&r->helper, type);
	helper_put_u32(&r->helper, count);
	helper_put_bytes(&r->helper, name, strlen(name));
	int status = take_answer(r, FRAME_GET_ATTRIBUTE, FRAME_DATA, n, &answer, found, e);
	if (status == RP_OK && *found) {
		memcpy(out, cursor_take(&answer, n), n);
		swap_if_big(out, n, column_type_size(type));
	}
	return status;
}

int colfile_find(struct colfile_reader *r, const char *path, enum column_type type, uint32_t width,
	uint64_t *rows, bool *found, struct error *e)
{
	struct cursor answer;

	helper_put_u32(&r->helper, type);
	helper_put_u32(&r->helper, width);
	helper_put_bytes(&r->helper, path, strlen(path));
	int status = take_answer(r, FRAME_FIND, FRAME_FOUND, sizeof(uint64_t), &answer, found, e);
	r->type = type;
	r->width = width;
	r->rows = *rows = status == RP_OK && *found ? cursor_le64(&answer) : 0;
	return status < 0 ? fail_wrap(e, "%s", path) : status;
}

int colfile_read(
	struct colfile_reader *r, uint64_t first, uint64_t count, void *out, struct error *e)
{
	size_t row = (size_t)column_type_size(r->type) * r->width;
	uint64_t block = FRAME_ROWS_MAX / row;
	uint8_t *to = out;

	if (!range_inside(first, count, r->rows))
		return fail(e, RP_E_FORMAT, ERROR_NO_OFFSET, "rows that are not there");
	if (block > CHUNK_ROWS)
		block = CHUNK_ROWS;
	while (count > 0) {
		/* Blocks end where chunks do, so that none is inflated twice. */
		uint64_t room = block - first % block;
		uint64_t taken = count < room ? count : room;
		size_t n = (size_t)taken * row;
		struct cursor answer;
		bool found;
		helper_put_u64(&r->helper, first);
		helper_put_u32(&r->helper, (uint32_t)taken);
		int status = take_answer(r, FRAME_ROWS, FRAME_DATA, n, &answer, &found, e);
		if (status < 0)
			return status;
		if (!found)
			return fail(e, RP_E_FORMAT, ERROR_NO_OFFSET, "rows that are not there");
		memcpy(to, cursor_take(&answer, n), n);
		swap_if_big(to, n, column_type_size(r->type));
		to += n;
		first += taken;
		count -= taken;
	}
	return RP_OK;
}
