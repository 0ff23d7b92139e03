/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "support/bytes.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void reserve(struct bytes *b, size_t n)
{
	if (n <= b->capacity)
		return;
	b->capacity = n + n / 2 + 64;
	b->p = realloc(b->p, b->capacity);
	ck_assert_ptr_nonnull(b->p);
}

struct bytes bytes_of_file(const char *path)
{
	struct bytes b = {0};
	FILE *f = fopen(path, "rb");

	ck_assert_msg(f != NULL, "cannot open %s; tests run at the top of the repository", path);
	for (;;) {
		reserve(&b, b.n + 65536);
		size_t got = fread(b.p + b.n, 1, 65536, f);
		if (got == 0)
			break;
		b.n += got;
	}
	fclose(f);
	return b;
}

struct bytes bytes_copy(const struct bytes *b)
{
	struct bytes copy = {0};

	bytes_add(&copy, b->p, b->n);
	return copy;
}

void bytes_release(struct bytes *b)
{
	free(b->p);
	*b = (struct bytes){0};
}

void bytes_splice(struct bytes *b, size_t at, size_t remove, const void *p, size_t n)
{
	ck_assert_uint_le(at, b->n);
	ck_assert_uint_le(remove, b->n - at);
	reserve(b, b->n - remove + n);
	if (b->n > at + remove)
		memmove(b->p + at + n, b->p + at + remove, b->n - at - remove);
	if (n)
		memcpy(b->p + at, p, n);
	b->n = b->n - remove + n;
}

void bytes_add(struct bytes *b, const void *p, size_t n)
{
	bytes_splice(b, b->n, 0, p, n);
}

void bytes_add_le(struct bytes *b, uint64_t value, size_t width)
{
	reserve(b, b->n + width);
	b->n += width;
	bytes_set_le(b, b->n - width, value, width);
}

void bytes_set_le(struct bytes *b, size_t at, uint64_t value, size_t width)
{
	ck_assert_uint_le(at + width, b->n);
	for (size_t i = 0; i < width; i++)
		b->p[at + i] = (uint8_t)(i < 8 ? value >> 8 * i : 0);
}

size_t bytes_find(const struct bytes *b, const void *needle, size_t n, unsigned nth)
{
	for (size_t at = 0; at + n <= b->n; at++)
		if (memcmp(b->p + at, needle, n) == 0 && nth-- == 0)
			return at;
	return SIZE_MAX;
}
