/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE /* memrchr() */
#include "base/lines.h"

#include <stdlib.h>
#include <string.h>

#define BLOCK_MAX ((size_t)1 << 20) /* bytes of one read */

void lines_init(struct lines *l, const struct source *source, uint64_t max)
{
	*l = (struct lines){.source = source,
		.max = max < SIZE_MAX / 2 ? (size_t)max : SIZE_MAX / 2,
		.block = source->size < BLOCK_MAX ? (size_t)source->size + 1 : BLOCK_MAX};
}

void lines_release(struct lines *l)
{
	free(l->buffer);
	l->buffer = NULL;
}

/* Have room for another block behind what is in hand. */
static bool make_room(struct lines *l)
{
	if (l->capacity - l->end >= l->block)
		return true;
	if (l->begin > 0) {
		memmove(l->buffer, l->buffer + l->begin, l->end - l->begin);
		l->at += l->begin;
		l->end -= l->begin;
		l->searched -= l->begin;
		l->begin = 0;
	}
	if (l->capacity - l->end >= l->block)
		return true;
	size_t capacity = l->capacity ? l->capacity * 2 : 2 * l->block;
	char *grown = realloc(l->buffer, capacity + LINES_PADDING);
	if (!grown)
		return false;
	l->buffer = grown;
	l->capacity = capacity;
	return true;
}

/* Read another block; *got is 0 at the end of the file. */
static int read_block(struct lines *l, size_t *got, struct error *e)
{
	if (!make_room(l))
		return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for a line of %zu bytes",
			l->end - l->begin);
	if (source_read_some(l->source, l->at + l->end, l->buffer + l->end, l->block, got, e) < 0)
		return e->status;
	l->end += *got;
	memset(l->buffer + l->end, 0, LINES_PADDING);
	return RP_OK;
}

static enum line_state take(struct lines *l, size_t end, size_t next, enum line_state state)
{
	l->number += (l->within ? 0 : 1) + l->further;
	l->within = state == LINE_PIECE;
	l->further = 0;
	l->joinable = state == LINE_WHOLE;
	l->offset = l->at + l->begin;
	l->text = (struct slice){l->buffer + l->begin, end - l->begin};
	l->first_n = l->text.n;
	l->buffer[end] = '\n';
	l->begin = l->searched = next;
	return state;
}

/* Give up what is in hand and go on behind the next line end. */
static enum line_state pass_over(struct lines *l, struct error *e)
{
	uint64_t offset = l->at + l->begin;
	size_t got;

	l->number += (l->within ? 0 : 1) + l->further;
	l->within = false;
	l->further = 0;
	l->joinable = false;
	for (;;) {
		char *end = memchr(l->buffer + l->searched, '\n', l->end - l->searched);
		l->begin = l->searched = end ? (size_t)(end - l->buffer) + 1 : l->end;
		if (end)
			break;
		if (read_block(l, &got, e) < 0)
			return LINE_FAILED;
		if (got == 0)
			break;
	}
	l->offset = offset;
	l->text = (struct slice){"", 0};
	return LINE_TOO_LONG;
}

/* Where a line that is too long to wait for its end can be cut, or NULL. */
static char *cut_of(const struct lines *l)
{
	if (l->piece == 0 || l->end - l->begin <= l->piece)
		return NULL;
	return memrchr(l->buffer + l->begin, '\r', l->end - l->begin);
}

enum line_state lines_next(struct lines *l, struct error *e)
{
	size_t got;

	for (;;) {
		char *end = l->searched < l->end
				    ? memchr(l->buffer + l->searched, '\n', l->end - l->searched)
				    : NULL;
		if (end && (size_t)(end - l->buffer) - l->begin > l->max)
			return pass_over(l, e);
		if (end) {
			size_t at = (size_t)(end - l->buffer);
			return take(l, at, at + 1, LINE_WHOLE);
		}
		l->searched = l->end;
		char *cut = cut_of(l);
		if (cut) {
			size_t at = (size_t)(cut - l->buffer);
			return take(l, at, at + 1, LINE_PIECE);
		}
		if (l->end - l->begin > l->max)
			return pass_over(l, e);
		if (read_block(l, &got, e) < 0)
			return LINE_FAILED;
		if (got > 0)
			continue;
		if (l->begin == l->end)
			return LINE_NONE;
		return take(l, l->end, l->end, LINE_LAST);
	}
}

struct slice lines_rest(const struct lines *l)
{
	return (struct slice){l->buffer + l->begin, l->end - l->begin};
}

void lines_pass(struct lines *l, size_t n, uint64_t lines)
{
	l->begin += n;
	l->searched = l->begin > l->searched ? l->begin : l->searched;
	l->number += lines;
	l->joinable = l->joinable && lines == 0;
}

bool lines_join(struct lines *l, size_t most)
{
	struct error ignored = ERROR_INIT;
	size_t held = l->text.n, got, next;
	char *end;

	if (!l->joinable)
		return false;
	/* The line at hand is in the buffer again, so that it is not written over. */
	l->begin -= held + 1;
	do {
		next = l->begin + held + 1;
		end = next < l->end ? memchr(l->buffer + next, '\n', l->end - next) : NULL;
	} while (!end && l->end - l->begin <= most && read_block(l, &got, &ignored) == RP_OK &&
		 got > 0);
	if (!end || (size_t)(end - l->buffer) - l->begin > most) {
		l->text.p = l->buffer + l->begin;
		l->begin = l->searched = next;
		return false;
	}
	l->text = (struct slice){l->buffer + l->begin, (size_t)(end - l->buffer) - l->begin};
	l->begin = l->searched = (size_t)(end - l->buffer) + 1;
	l->further++;
	return true;
}

void lines_part(struct lines *l)
{
	if (!l->further)
		return;
	l->further = 0;
	l->text.n = l->first_n;
	l->begin = l->searched = (size_t)(l->text.p - l->buffer) + l->first_n + 1;
}
