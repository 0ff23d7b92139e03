/* SPDX-License-Identifier: MIT */
#include "curve/tfrecord.h"

#include <stdlib.h>
#include <string.h>

#include "base/cursor.h"

#define BLOCK ((size_t)1 << 20)
#define SEARCHES 4u

void tfrecord_init(struct tfrecord *t, const struct source *source, uint64_t max)
{
	*t = (struct tfrecord){
		.source = source, .max = max, .budget = SEARCHES * source->size + BLOCK};
	crc32c_init(&t->crc);
}

void tfrecord_release(struct tfrecord *t)
{
	free(t->buffer);
	t->buffer = NULL;
}

static uint64_t position(const struct tfrecord *t)
{
	return t->at + t->begin;
}

static uint64_t left_in_file(const struct tfrecord *t)
{
	return t->source->size - position(t);
}

/* Have `n` bytes in hand, which the file has. */
static int want(struct tfrecord *t, size_t n, struct error *e)
{
	size_t got;

	if (t->end - t->begin >= n)
		return RP_OK;
	if (t->end > t->begin)
		memmove(t->buffer, t->buffer + t->begin, t->end - t->begin);
	t->at += t->begin;
	t->end -= t->begin;
	t->begin = 0;
	size_t capacity = n > BLOCK ? n : BLOCK;
	if (capacity > t->capacity) {
		uint8_t *grown = realloc(t->buffer, capacity);
		if (!grown)
			return fail(e, RP_E_MEMORY, position(t),
				"no memory for a record of %zu bytes", n);
		t->buffer = grown;
		t->capacity = capacity;
	}
	int status = source_read_some(
		t->source, t->at + t->end, t->buffer + t->end, t->capacity - t->end, &got, e);
	t->end += got;
	return status;
}

static void skip(struct tfrecord *t, uint64_t n)
{
	size_t in_hand = t->end - t->begin;

	if (n <= in_hand) {
		t->begin += (size_t)n;
		return;
	}
	t->at += t->begin + n;
	t->begin = t->end = 0;
}

static bool head_is_right(const struct crc32c *c, const uint8_t *p)
{
	return load_le32(p + 8) == crc32c_masked(c, p, 8);
}

bool tfrecord_begins(const void *head, size_t n)
{
	struct crc32c c;

	if (n < TFRECORD_HEAD)
		return false;
	crc32c_init(&c);
	return head_is_right(&c, head);
}

static bool data_is_right(const struct tfrecord *t, const uint8_t *head, size_t length)
{
	return load_le32(head + TFRECORD_HEAD + length) ==
	       crc32c_masked(&t->crc, head + TFRECORD_HEAD, length);
}

/* Whether the file has room for a record of that length here. */
static bool fits(const struct tfrecord *t, uint64_t length)
{
	uint64_t left = left_in_file(t);

	return left >= TFRECORD_HEAD + TFRECORD_TAIL &&
	       length <= left - TFRECORD_HEAD - TFRECORD_TAIL;
}

/* Find the next whole record behind a length that is damaged. */
static enum tfrecord_state search(struct tfrecord *t, struct error *e)
{
	uint64_t from = position(t);

	for (skip(t, 1); left_in_file(t) >= TFRECORD_HEAD; t->begin++) {
		if (want(t, TFRECORD_HEAD, e) < 0)
			return TFRECORD_FAILED;
		const uint8_t *p = t->buffer + t->begin;
		uint64_t length = load_le64(p);
		if (!head_is_right(&t->crc, p) || length > t->max || !fits(t, length))
			continue;
		if (length > t->budget) {
			skip(t, left_in_file(t));
			break;
		}
		t->budget -= length;
		if (want(t, TFRECORD_HEAD + (size_t)length + TFRECORD_TAIL, e) < 0)
			return TFRECORD_FAILED;
		if (data_is_right(t, t->buffer + t->begin, (size_t)length))
			break;
	}
	if (left_in_file(t) < TFRECORD_HEAD)
		skip(t, left_in_file(t));
	t->offset = from;
	t->passed = position(t) - from;
	return TFRECORD_LOST;
}

enum tfrecord_state tfrecord_next(struct tfrecord *t, struct error *e)
{
	uint64_t left = left_in_file(t);

	t->offset = position(t);
	t->data = (struct slice){"", 0};
	t->passed = 0;
	if (left == 0)
		return TFRECORD_END;
	if (left < TFRECORD_HEAD) {
		skip(t, left);
		return TFRECORD_TORN;
	}
	if (want(t, TFRECORD_HEAD, e) < 0)
		return TFRECORD_FAILED;
	if (!head_is_right(&t->crc, t->buffer + t->begin))
		return search(t, e);
	uint64_t length = load_le64(t->buffer + t->begin);
	if (!fits(t, length)) {
		skip(t, left);
		return TFRECORD_TORN;
	}
	if (length > t->max) {
		skip(t, TFRECORD_HEAD + length + TFRECORD_TAIL);
		return TFRECORD_TOO_LONG;
	}
	size_t whole = TFRECORD_HEAD + (size_t)length + TFRECORD_TAIL;
	if (want(t, whole, e) < 0)
		return TFRECORD_FAILED;
	const uint8_t *p = t->buffer + t->begin;
	t->begin += whole;
	if (!data_is_right(t, p, (size_t)length))
		return TFRECORD_DAMAGED;
	t->data = (struct slice){(const char *)p + TFRECORD_HEAD, (size_t)length};
	return TFRECORD_WHOLE;
}
