/* SPDX-License-Identifier: MIT */
/*
 * Parts of a JSON line, scanned in place. All of these want a line that ends with '\n', which is no
 * part of any value: no other check against the end is needed. LINES_PADDING bytes behind it may be
 * read. They return where they stopped, or NULL where the text is not what it should be.
 */
#ifndef BASE_SCAN_H
#define BASE_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/slice.h"

static inline const char *scan_space(const char *p)
{
	/* json.dumps of Python puts one space behind each separator. */
	p += *p == ' ';
	while (*p == ' ' || *p == '\t' || *p == '\r')
		p++;
	return p;
}

/* Digits, as many as there are up to 20; no sign, no leading zeros, at most UINT64_MAX. */
const char *scan_long_u64(const char *p, uint64_t *v);

/* The digits at `p`, eight at the most: how many, and what they say. Reads eight bytes. */
static inline unsigned scan_digits(const char *p, uint64_t *v)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	/* Which of eight bytes are none, and their value by three multiplications. */
	uint64_t t;

	memcpy(&t, p, sizeof t);
	t ^= 0x3030303030303030u;
	/* A carry only goes up, to bytes behind the first one that is no digit. */
	uint64_t none = ((t + 0x0606060606060606u) | t) & 0xf0f0f0f0f0f0f0f0u;
	unsigned bits = none ? (unsigned)__builtin_ctzll(none) & ~7u : 64;
	*v = 0;
	if (bits == 0)
		return 0;
	t <<= 64 - bits;
	t = t * 10 + (t >> 8);
	*v = ((t & 0x000000ff000000ffu) * 0x000f424000000064u +
		     ((t >> 16) & 0x000000ff000000ffu) * 0x0000271000000001u) >>
	     32;
	return bits / 8;
#else
	unsigned n = 0;

	for (*v = 0; n < 8 && p[n] >= '0' && p[n] <= '9'; n++)
		*v = *v * 10 + (uint64_t)(p[n] - '0');
	return n;
#endif
}

static inline const char *scan_u64(const char *p, uint64_t *v)
{
	unsigned n = scan_digits(p, v);

	if (n == 8 || *p == '0')
		return scan_long_u64(p, v);
	return n > 0 ? p + n : NULL;
}

/*
 * Integers of a list, from the first digit of one on: as many as have one comma, or a comma and one
 * space, behind them all alike, up to `max`. Their number; *p is behind the last separator. The
 * last one of a list has none behind it, so that it is not taken; nor is anything that is not
 * plain.
 */
size_t scan_u64_list(const char **p, uint64_t *out, size_t max);

/* An integer that may be negative. */
const char *scan_i64(const char *p, int64_t *v);

/* A number as JSON has it, or NaN, Infinity, -Infinity as Python writes them. */
const char *scan_double(const char *p, double *v);

/* A string. `text` is what stands between the quotes; it wants scan_unescape() where `escaped`. */
const char *scan_string(const char *p, struct slice *text, bool *escaped);

/* Write the string that `text` stands for to `out`, which has room for text.n bytes; its length. */
size_t scan_unescape(struct slice text, char *out);

/* 16 hexadecimal digits in quotes. */
const char *scan_hex64(const char *p, uint64_t *v);

/* A word: true, false, null. */
const char *scan_word(const char *p, const char *word);

/* Any value, nested up to SCAN_DEPTH deep. */
#define SCAN_DEPTH 128
const char *scan_any(const char *p);

#endif
