/* SPDX-License-Identifier: MIT */
/* Text for people: escaping what files say, units, numbers from text. */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "base/strbuf.h"

/*
 * Append text from a file so that it cannot disturb a terminal: control bytes, bad UTF-8 and marks
 * that change the direction of writing become \xNN or \u{NNNN}. At most `max` bytes of it are
 * shown, an ellipsis behind them says that there were more. A backslash stays as it is, so that
 * text that went through here twice looks the same.
 */
void text_add_escaped(struct strbuf *b, struct slice text, size_t max);

/*
 * Whether a terminal obeys the character, or it hides or reorders its neighbours. The joiners
 * U+200C and U+200D are none of these, since Persian and emoji need them.
 */
bool text_disturbs(uint32_t point);

/* Bytes with a unit: "812 B", "4.1 MB", "1.2 TB" (powers of 1000). */
void text_add_bytes(struct strbuf *b, uint64_t bytes);

/* Digits in groups of three: 1 048 576. */
void text_add_count(struct strbuf *b, uint64_t n);
void text_add_signed_count(struct strbuf *b, int64_t n);

/* A count in words of size: "1 234", "103.9 M", "1.76 B", for parameters and tokens. */
void text_add_magnitude(struct strbuf *b, uint64_t n);

/* The shortest decimal that reads back as `v`; NaN and Infinity as such. Same in every locale. */
void text_add_double(struct strbuf *b, double v);

/* At most `digits` significant digits, no exponent between 1e-4 and 1e6. */
void text_add_rounded(struct strbuf *b, double v, int digits);

/* The whole of `text` as a decimal number in [min, max]. Else false, and `*out` is untouched. */
bool text_parse_u64(struct slice text, uint64_t max, uint64_t *out);
bool text_parse_i64(struct slice text, int64_t min, int64_t max, int64_t *out);

/* "100", or "90..110": both ends, `min` or more and in order. What is written is undefined where it
 * is false. */
bool text_parse_range(struct slice text, int64_t min, int64_t *least, int64_t *most);

/*
 * The whole of `text` as the nearest double, in every locale: 1, -2.5, .5, 3e-4, and in any case
 * nan, inf, infinity. What is too large becomes an infinity, what is too small zero.
 */
bool text_parse_double(struct slice text, double *out);

/*
 * mantissa * 10^exponent as the nearest double, where little arithmetic finds it: exponents from
 * -27 to 0, and up to 22 where the mantissa is no larger than 2^53. Else false. About 5 ns.
 */
bool text_decimal(uint64_t mantissa, int exponent, double *out);

/*
 * The length of the UTF-8 sequence at the start of `text`, its code point in *point; 0 where there
 * is none. Surrogates are none.
 */
size_t text_utf8_next(struct slice text, uint32_t *point);

/*
 * Write a code point's UTF-8, up to four bytes, and return their number. Surrogates are coded like
 * all others, as Python's "surrogatepass" has it: checkpoints do hold lone ones.
 */
size_t text_utf8_put(char *out, uint32_t point);

/* The value of a hexadecimal digit, or -1. */
int text_hex_digit(char c);

/* How many bytes of UTF-8 fit into `max` without splitting a character. */
size_t text_whole_prefix(struct slice text, size_t max);

/* Whether `text` is whole UTF-8 without surrogates. */
bool text_is_utf8(struct slice text);

/* The candidate nearest to a mistyped `word`, or NULL when none is near enough. */
const char *text_nearest(const char *word, const char *const *candidates, size_t count);

/* Append "; did you mean X?" with the candidate nearest to `word`, or nothing. */
void text_add_nearest(
	struct strbuf *b, struct slice word, const char *const *candidates, size_t count);

/*
 * Order of names in which runs of digits count as numbers: step-9 before step-10.
 */
int text_natural_compare(struct slice a, struct slice b);

#endif
