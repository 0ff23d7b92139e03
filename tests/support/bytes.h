/* SPDX-License-Identifier: MIT */
/* Files of the tests in memory, to be damaged. */
#ifndef SUPPORT_BYTES_H
#define SUPPORT_BYTES_H

#include <stddef.h>
#include <stdint.h>

struct bytes {
	uint8_t *p;
	size_t n, capacity;
};

/* The file at `path`, relative to the top of the repository; fails the test where there is none. */
struct bytes bytes_of_file(const char *path);

struct bytes bytes_copy(const struct bytes *b);
void bytes_release(struct bytes *b);

/* Remove `remove` bytes at `at` and put `n` bytes there. */
void bytes_splice(struct bytes *b, size_t at, size_t remove, const void *p, size_t n);

/* Append little-endian integers and text. */
void bytes_add(struct bytes *b, const void *p, size_t n);
void bytes_add_le(struct bytes *b, uint64_t value, size_t width);

/* Overwrite a little-endian integer. */
void bytes_set_le(struct bytes *b, size_t at, uint64_t value, size_t width);

/* Where `needle` occurs for the `nth` time (from 0), or SIZE_MAX. */
size_t bytes_find(const struct bytes *b, const void *needle, size_t n, unsigned nth);

#endif
