/* SPDX-License-Identifier: MIT */
/*
 * A sticky view over bytes already in hand. A read past the end fails, every later read fails too
 * and yields zero, so that a parser reads a whole record and then asks cursor_ok() once.
 */
#ifndef BASE_CURSOR_H
#define BASE_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/slice.h"

struct cursor {
	const uint8_t *data;
	size_t size, pos;
	bool failed;
};

static inline struct cursor cursor_over(const void *data, size_t size)
{
	return (struct cursor){.data = data ? data : (const void *)"", .size = size};
}

static inline bool cursor_ok(const struct cursor *c)
{
	return !c->failed;
}

static inline size_t cursor_left(const struct cursor *c)
{
	return c->failed ? 0 : c->size - c->pos;
}

static inline const uint8_t *cursor_take(struct cursor *c, size_t n)
{
	if (c->failed || n > c->size - c->pos) {
		c->failed = true;
		return NULL;
	}
	const uint8_t *p = c->data + c->pos;
	c->pos += n;
	return p;
}

static inline void cursor_seek(struct cursor *c, size_t pos)
{
	if (pos > c->size)
		c->failed = true;
	else
		c->pos = pos;
}

static inline struct slice cursor_slice(struct cursor *c, size_t n)
{
	const uint8_t *p = cursor_take(c, n);
	return (struct slice){(const char *)p, p ? n : 0};
}

static inline uint8_t cursor_u8(struct cursor *c)
{
	const uint8_t *p = cursor_take(c, 1);
	return p ? p[0] : 0;
}

/* Loads of unaligned integers. */
static inline uint16_t load_le16(const void *p)
{
	const uint8_t *b = p;
	return (uint16_t)(b[0] | b[1] << 8);
}

static inline uint32_t load_le32(const void *p)
{
	uint32_t v;
	memcpy(&v, p, sizeof v);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	v = __builtin_bswap32(v);
#endif
	return v;
}

static inline uint64_t load_le64(const void *p)
{
	uint64_t v;
	memcpy(&v, p, sizeof v);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	v = __builtin_bswap64(v);
#endif
	return v;
}

static inline uint64_t load_be64(const void *p)
{
	return __builtin_bswap64(load_le64(p));
}

static inline uint16_t cursor_le16(struct cursor *c)
{
	const uint8_t *p = cursor_take(c, 2);
	return p ? load_le16(p) : 0;
}

static inline uint32_t cursor_le32(struct cursor *c)
{
	const uint8_t *p = cursor_take(c, 4);
	return p ? load_le32(p) : 0;
}

static inline uint64_t cursor_le64(struct cursor *c)
{
	const uint8_t *p = cursor_take(c, 8);
	return p ? load_le64(p) : 0;
}

static inline uint64_t cursor_be64(struct cursor *c)
{
	const uint8_t *p = cursor_take(c, 8);
	return p ? load_be64(p) : 0;
}

#endif
