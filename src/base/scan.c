/* SPDX-License-Identifier: MIT */
#include "base/scan.h"

#include <math.h>
#include <string.h>

#include "base/text.h"

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

const char *scan_long_u64(const char *p, uint64_t *v)
{
	uint64_t n = 0;
	const char *first = p;

	for (; is_digit(*p); p++) {
		if (__builtin_mul_overflow(n, 10u, &n) ||
			__builtin_add_overflow(n, (uint64_t)(*p - '0'), &n))
			return NULL;
	}
	*v = n;
	return p > first && (*first != '0' || p == first + 1) ? p : NULL;
}

#define EACH(byte) (0x0101010101010101u * (byte))

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define LIST_BLOCK 64u /* bytes that are looked at together */

static inline uint64_t load64(const char *p)
{
	uint64_t t;

	memcpy(&t, p, sizeof t);
	return t;
}

/* A bit for each of LIST_BLOCK bytes that is no digit. */
static inline uint64_t no_digits(const char *p)
{
	uint64_t none = 0;

	for (unsigned i = 0; i < LIST_BLOCK; i += 8) {
		uint64_t t = load64(p + i) ^ EACH('0');
		/* The highest bit of each byte, brought together by one multiplication. */
		t = ((t & EACH(0x7f)) + EACH(0x80 - 10)) | t;
		none |= ((t >> 7 & EACH(1)) * 0x0102040810204080u >> 56) << i;
	}
	return none;
}

/* The value of up to eight digits, which were made bytes of 0 to 9 and stand at the high end. */
static inline uint64_t eight_digits(uint64_t t)
{
	t = t * 10 + (t >> 8);
	return ((t & 0x000000ff000000ffu) * 0x000f424000000064u +
		       ((t >> 16) & 0x000000ff000000ffu) * 0x0000271000000001u) >>
	       32;
}

/* The value of `n` digits; false for leading zeros, and more digits than nearly all ids have. */
static inline bool plain_number(const char *p, unsigned n, uint64_t *v)
{
	uint64_t t = load64(p) ^ EACH('0');

	if (n == 0 || n > 16 || ((t & 0xff) == 0 && n > 1))
		return false;
	if (n <= 8) {
		*v = eight_digits(t << (64 - 8 * n));
		return true;
	}
	*v = eight_digits(t << (128 - 8 * n)) * 100000000u +
	     eight_digits(load64(p + n - 8) ^ EACH('0'));
	return true;
}

/*
 * A list with `gap` bytes between its numbers. Where numbers end is found for a whole block first:
 * no number has to wait until the one before it was read.
 */
static inline __attribute__((always_inline)) size_t take_list(
	const char **at, uint64_t *out, size_t max, unsigned gap)
{
	const char *p = *at;
	size_t n = 0, before;

	do {
		uint64_t none = no_digits(p);
		unsigned begin = 0;
		before = n;
		while (none && n < max) {
			unsigned end = (unsigned)__builtin_ctzll(none);
			if (p[end] != ',' || (gap == 2 && p[end + 1] != ' ') ||
				!plain_number(p + begin, end - begin, &out[n])) {
				*at = p + begin;
				return n;
			}
			n++;
			begin = end + gap;
			none &= none - 1;
			none &= gap == 2 ? none - 1 : none;
		}
		p += begin;
	} while (n > before && n < max);
	*at = p;
	return n;
}

size_t scan_u64_list(const char **p, uint64_t *out, size_t max)
{
	const char *q = *p;

	while (is_digit(*q))
		q++;
	if (q == *p || *q != ',')
		return 0;
	return q[1] == ' ' ? take_list(p, out, max, 2) : take_list(p, out, max, 1);
}
#else
size_t scan_u64_list(const char **p, uint64_t *out, size_t max)
{
	(void)p;
	(void)out;
	(void)max;
	return 0;
}
#endif

const char *scan_i64(const char *p, int64_t *v)
{
	bool negative = *p == '-';
	uint64_t n;

	p = scan_u64(p + negative, &n);
	if (!p || n > INT64_MAX)
		return NULL;
	*v = negative ? -(int64_t)n : (int64_t)n;
	return p;
}

/* Where the number ends, if what it is made of is in the order that JSON wants. */
static const char *number_end(const char *p)
{
	const char *first;

	p += *p == '-';
	first = p;
	while (is_digit(*p))
		p++;
	if (p == first || (*first == '0' && p > first + 1))
		return NULL;
	if (*p == '.') {
		first = ++p;
		while (is_digit(*p))
			p++;
		if (p == first)
			return NULL;
	}
	if (*p == 'e' || *p == 'E') {
		p++;
		p += *p == '-' || *p == '+';
		first = p;
		while (is_digit(*p))
			p++;
		if (p == first)
			return NULL;
	}
	return p;
}

/* Up to 15 digits with a point somewhere: both are exact in a double, so that one division rounds.
 */
static bool short_decimal(const char *p, const char *end, double *v)
{
	static const double powers[] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10,
		1e11, 1e12, 1e13, 1e14, 1e15};
	bool negative = *p == '-', point = false;
	unsigned behind = 0;
	int64_t n = 0;

	p += negative;
	if (end - p > 16)
		return false;
	for (; p < end; p++) {
		if (*p == '.') {
			point = true;
			continue;
		}
		if (!is_digit(*p) || behind > 14)
			return false;
		n = n * 10 + (*p - '0');
		behind += point;
	}
	if (n >= (int64_t)1 << 53)
		return false;
	*v = (double)n / powers[behind];
	if (negative)
		*v = -*v;
	return true;
}

const char *scan_double(const char *p, double *v)
{
	const char *end = number_end(p);

	if (end && short_decimal(p, end, v))
		return end;
	if (end)
		return text_parse_double((struct slice){p, (size_t)(end - p)}, v) ? end : NULL;
	if ((end = scan_word(p, "NaN")))
		*v = NAN;
	else if ((end = scan_word(p, "Infinity")))
		*v = INFINITY;
	else if ((end = scan_word(p, "-Infinity")))
		*v = -INFINITY;
	return end;
}

const char *scan_word(const char *p, const char *word)
{
	size_t n = strlen(word);

	return strncmp(p, word, n) == 0 ? p + n : NULL;
}

/* The four digits of \uXXXX, or -1. */
static int unicode(const char *p)
{
	int point = 0;

	for (int i = 0; i < 4; i++) {
		int digit = text_hex_digit(p[i]);
		if (digit < 0)
			return -1;
		point = point << 4 | digit;
	}
	return point;
}

/* The length of the escape at `p`, a backslash; 0 where it is none. */
static size_t escape_length(const char *p)
{
	if (p[1] == 'u')
		return unicode(p + 2) < 0 ? 0 : 6;
	return p[1] != '\n' && p[1] != '\0' && strchr("\"\\/bfnrt", p[1]) ? 2 : 0;
}

const char *scan_string(const char *p, struct slice *text, bool *escaped)
{
	if (*p++ != '"')
		return NULL;
	text->p = p;
	*escaped = false;
	for (;;) {
		while (*p != '"' && *p != '\\' && (unsigned char)*p >= 0x20)
			p++;
		if (*p != '\\')
			break;
		size_t n = escape_length(p);
		if (n == 0)
			return NULL;
		*escaped = true;
		p += n;
	}
	if (*p != '"')
		return NULL;
	text->n = (size_t)(p - text->p);
	return p + 1;
}

static size_t unescape_one(const char *p, const char *end, char *out, size_t *used)
{
	static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";

	*used = 2;
	if (p[1] != 'u') {
		const char *at = strchr(from, p[1]);
		*out = at ? to[at - from] : p[1];
		return 1;
	}
	uint32_t point = (uint32_t)unicode(p + 2);
	*used = 6;
	if (point >> 10 == 0x36 && end - p >= 12 && p[6] == '\\' && p[7] == 'u') {
		uint32_t low = (uint32_t)unicode(p + 8);
		if (low >> 10 == 0x37) {
			point = 0x10000 + ((point & 0x3ff) << 10) + (low & 0x3ff);
			*used = 12;
		}
	}
	return text_utf8_put(out, point);
}

size_t scan_unescape(struct slice text, char *out)
{
	const char *p = text.p, *end = text.p + text.n;
	size_t n = 0, used;

	while (p < end) {
		if (*p != '\\') {
			out[n++] = *p++;
			continue;
		}
		n += unescape_one(p, end, out + n, &used);
		p += used;
	}
	return n;
}

/*
 * Eight hexadecimal digits at once: logs of hashes are made of nothing else. Adding a number to
 * each byte sets its highest bit where the byte is at least 0x80 less it.
 */
static inline bool hex_digits(const char *p, uint32_t *v)
{
	uint64_t text;

	memcpy(&text, p, sizeof text);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	text = __builtin_bswap64(text);
#endif
	/* Capitals become small letters, and digits stay; control bytes, which would become digits,
	 * have neither bit. */
	if ((text & EACH(0x80)) || ((text | text >> 1) & EACH(0x20)) != EACH(0x20))
		return false;
	text |= EACH(0x20);
	uint64_t letter = (text + EACH(0x80 - 'a')) & EACH(0x80);
	uint64_t digit = (text + EACH(0x80 - '0')) & ~(text + EACH(0x80 - '9' - 1));
	uint64_t beyond = text + EACH(0x80 - 'f' - 1);
	if (((digit | (letter & ~beyond)) & EACH(0x80)) != EACH(0x80))
		return false;
	uint64_t nibbles = (text & EACH(0x0f)) + (letter >> 7) * 9;
	uint64_t bytes = (nibbles << 4 | nibbles >> 8) & 0x00ff00ff00ff00ffu;
	bytes = (bytes | bytes >> 8) & 0x0000ffff0000ffffu;
	*v = __builtin_bswap32((uint32_t)(bytes | bytes >> 16));
	return true;
}

const char *scan_hex64(const char *p, uint64_t *v)
{
	uint32_t high, low;

	if (*p != '"' || !hex_digits(p + 1, &high) || !hex_digits(p + 9, &low) || p[17] != '"')
		return NULL;
	*v = (uint64_t)high << 32 | low;
	return p + 18;
}

static const char *scan_scalar(const char *p)
{
	struct slice text;
	bool escaped;
	double number;

	switch (*p) {
	case '"':
		return scan_string(p, &text, &escaped);
	case 't':
		return scan_word(p, "true");
	case 'f':
		return scan_word(p, "false");
	case 'n':
		return scan_word(p, "null");
	default:
		return scan_double(p, &number);
	}
}

/* Behind an opening brace or a comma in an object: the key and its colon. */
static const char *scan_key(const char *p)
{
	struct slice key;
	bool escaped;

	p = scan_string(scan_space(p), &key, &escaped);
	if (!p)
		return NULL;
	p = scan_space(p);
	return *p == ':' ? scan_space(p + 1) : NULL;
}

const char *scan_any(const char *p)
{
	char nest[SCAN_DEPTH];
	size_t depth = 0;

	for (;;) {
		/* A value begins. */
		if (*p == '{' || *p == '[') {
			if (depth == SCAN_DEPTH)
				return NULL;
			char close = *p == '{' ? '}' : ']';
			nest[depth++] = close;
			p = scan_space(p + 1);
			if (*p != close) {
				if (close == '}' && !(p = scan_key(p)))
					return NULL;
				continue;
			}
		} else if (!(p = scan_scalar(p))) {
			return NULL;
		}
		/* A value ended, or an empty one is about to. */
		while (depth > 0) {
			const char *q = scan_space(p);
			if (*q == nest[depth - 1]) {
				p = q + 1;
				depth--;
				continue;
			}
			if (*q != ',')
				return NULL;
			p = scan_space(q + 1);
			if (nest[depth - 1] == '}' && !(p = scan_key(p)))
				return NULL;
			break;
		}
		if (depth == 0)
			return p;
	}
}
