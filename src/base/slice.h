/* SPDX-License-Identifier: MIT */
/* Text that is pointed at, not owned: not NUL-terminated, possibly not UTF-8, never trusted. */
#ifndef BASE_SLICE_H
#define BASE_SLICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct slice {
	const char *p;
	size_t n;
};

#define SLICE(literal) ((struct slice){(literal), sizeof(literal) - 1})

static inline struct slice slice_of(const char *text)
{
	return (struct slice){text, text ? strlen(text) : 0};
}

static inline bool slice_eq(struct slice a, struct slice b)
{
	return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

static inline bool slice_is(struct slice a, const char *text)
{
	return slice_eq(a, slice_of(text));
}

static inline bool slice_starts(struct slice a, struct slice prefix)
{
	return a.n >= prefix.n && (prefix.n == 0 || memcmp(a.p, prefix.p, prefix.n) == 0);
}

static inline bool slice_ends(struct slice a, struct slice suffix)
{
	return a.n >= suffix.n &&
	       (suffix.n == 0 || memcmp(a.p + (a.n - suffix.n), suffix.p, suffix.n) == 0);
}

/* Without the byte order mark that may stand before a text in UTF-8. */
static inline struct slice slice_without_mark(struct slice s)
{
	return slice_starts(s, SLICE("\xef\xbb\xbf")) ? (struct slice){s.p + 3, s.n - 3} : s;
}

/* A line without the carriage return that may stand before its end. */
static inline struct slice slice_without_return(struct slice line)
{
	if (line.n > 0 && line.p[line.n - 1] == '\r')
		line.n--;
	return line;
}

/* Order of bytes, the shorter first where one is the other's prefix. */
int slice_compare(struct slice a, struct slice b);

/* Without the spaces and tabs at both ends. */
struct slice slice_trim(struct slice s);

/* Where `needle` first occurs in `hay`, or SIZE_MAX. */
size_t slice_find(struct slice hay, struct slice needle);

/* Whether a text occurs in it. */
static inline bool slice_has(struct slice s, const char *text)
{
	return slice_find(s, slice_of(text)) != SIZE_MAX;
}

#endif
