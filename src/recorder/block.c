/* SPDX-License-Identifier: MIT */
#include "recorder/block.h"

#include <stdlib.h>
#include <string.h>

#include "base/journal.h"

void block_begin(struct block *b)
{
	b->used = JOURNAL_HEAD_BYTES;
	b->columns = 0;
}

bool block_reserve(struct block *b, size_t more)
{
	if (more > JOURNAL_PAYLOAD_MAX + JOURNAL_HEAD_BYTES - b->used)
		return false;
	if (b->used + more <= b->capacity)
		return true;
	size_t capacity = 2 * (b->used + more) + 4096;
	uint8_t *grown = realloc(b->p, capacity);
	if (!grown)
		return false;
	b->p = grown;
	b->capacity = capacity;
	return true;
}

static size_t width_of(uint64_t v)
{
	return v >> 32 ? 8 : v >> 16 ? 4 : v >> 8 ? 2 : 1;
}

static uint64_t zigzag(uint64_t difference)
{
	return difference << 1 ^ (0 - (difference >> 63));
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
			little_endian(at + 2 * i, v[i], 2);
		break;
	case 4:
		for (size_t i = 0; i < n; i++)
			little_endian(at + 4 * i, v[i], 4);
		break;
	default:
		for (size_t i = 0; i < n; i++)
			little_endian(at + 8 * i, v[i], 8);
	}
}

static void put_deltas(uint8_t *at, const uint64_t *v, size_t n, size_t width)
{
	for (size_t i = 1; i < n; i++, at += width)
		little_endian(at, zigzag(v[i] - v[i - 1]), width);
}

/* Append a column in the shortest of the encodings. */
bool block_column(struct block *b, enum journal_column name, const uint64_t *v, size_t n)
{
	uint64_t all = 0, deltas = 0, uneven = 0, step = n > 1 ? v[1] - v[0] : 0;
	for (size_t i = 0; i < n; i++)
		all |= v[i];
	for (size_t i = 1; i < n; i++) {
		uint64_t difference = v[i] - v[i - 1];
		deltas |= zigzag(difference);
		uneven |= difference ^ step;
	}
	bool even = uneven == 0;
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
	if (!block_reserve(b, JOURNAL_COLUMN_BYTES + bytes))
		return false;
	uint8_t *p = b->p + b->used;
	p[0] = (uint8_t)name;
	p[1] = (uint8_t)encoding;
	p[2] = (uint8_t)width;
	p[3] = 0;
	little_endian(p + 4, bytes, 4);
	p += JOURNAL_COLUMN_BYTES;
	b->used += JOURNAL_COLUMN_BYTES + bytes;
	b->columns++;
	switch (encoding) {
	case JOURNAL_CONSTANT:
		little_endian(p, v[0], width);
		break;
	case JOURNAL_STRIDE:
		little_endian(p, v[0], 8);
		little_endian(p + 8, step, 8);
		break;
	case JOURNAL_DELTAS:
		little_endian(p, v[0], 8);
		p += 8;
		put_deltas(p, v, n, width);
		break;
	case JOURNAL_RAW:
		put_many(p, v, n, width);
		break;
	}
	return true;
}

bool block_value(struct block *b, enum journal_column name, uint64_t v)
{
	return block_column(b, name, &v, 1);
}
