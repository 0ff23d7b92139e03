/* SPDX-License-Identifier: MIT */
#include "base/text.h"

#include <errno.h>
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* UTF-8 */

size_t text_utf8_next(struct slice text, uint32_t *point)
{
	const uint8_t *p = (const uint8_t *)text.p;
	size_t length;
	uint32_t least, c;

	*point = 0;
	if (text.n == 0)
		return 0;
	if (p[0] < 0x80) {
		*point = p[0];
		return 1;
	}
	if (p[0] >= 0xc2 && p[0] <= 0xdf) {
		length = 2;
		least = 0x80;
		c = p[0] & 0x1fu;
	} else if ((p[0] & 0xf0) == 0xe0) {
		length = 3;
		least = 0x800;
		c = p[0] & 0x0fu;
	} else if (p[0] >= 0xf0 && p[0] <= 0xf4) {
		length = 4;
		least = 0x10000;
		c = p[0] & 0x07u;
	} else {
		return 0;
	}
	if (text.n < length)
		return 0;
	for (size_t i = 1; i < length; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (p[i] & 0x3fu);
	}
	if (c < least || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
		return 0;
	*point = c;
	return length;
}

size_t text_utf8_put(char *out, uint32_t point)
{
	if (point < 0x80) {
		out[0] = (char)point;
		return 1;
	}
	size_t n = point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
	for (size_t i = n - 1; i > 0; i--, point >>= 6)
		out[i] = (char)(0x80 | (point & 0x3f));
	out[0] = (char)((n == 2 ? 0xc0 : n == 3 ? 0xe0 : 0xf0) | point);
	return n;
}

int text_hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

size_t text_whole_prefix(struct slice text, size_t max)
{
	if (text.n <= max)
		return text.n;
	while (max > 0 && ((uint8_t)text.p[max] & 0xc0) == 0x80)
		max--;
	return max;
}

bool text_is_utf8(struct slice text)
{
	uint32_t point;

	while (text.n > 0) {
		/* Most text is ASCII: eight bytes at a time. */
		uint64_t word;
		if (text.n >= sizeof word) {
			memcpy(&word, text.p, sizeof word);
			if (!(word & 0x8080808080808080u)) {
				text.p += sizeof word;
				text.n -= sizeof word;
				continue;
			}
		}
		size_t length = text_utf8_next(text, &point);
		if (length == 0)
			return false;
		text.p += length;
		text.n -= length;
	}
	return true;
}

bool text_disturbs(uint32_t point)
{
	static const struct {
		uint32_t first, last;
	} ranges[] = {
		{0x0000, 0x001f},   /* C0 */
		{0x007f, 0x009f},   /* DEL, C1 */
		{0x061c, 0x061c},   /* Arabic letter mark */
		{0x200b, 0x200b},   /* zero width space */
		{0x200e, 0x200f},   /* marks of direction */
		{0x2028, 0x202e},   /* line and paragraph separators, embeddings and overrides */
		{0x2060, 0x206f},   /* isolates, invisible operators */
		{0xfeff, 0xfeff},   /* byte order mark */
		{0xfff9, 0xfffb},   /* interlinear annotation */
		{0xe0000, 0xe007f}, /* tags */
	};

	for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++)
		if (point >= ranges[i].first && point <= ranges[i].last)
			return true;
	return false;
}

void text_add_escaped(struct strbuf *b, struct slice text, size_t max)
{
	uint32_t point;
	size_t shown = 0;

	while (shown < text.n) {
		struct slice rest = {text.p + shown, text.n - shown};
		size_t length = text_utf8_next(rest, &point);
		size_t step = length ? length : 1;
		if (step > max - shown) {
			strbuf_add_text(b, "…");
			return;
		}
		if (length == 0 || (point < 0x80 && text_disturbs(point)))
			strbuf_printf(b, "\\x%02x", (unsigned)(uint8_t)rest.p[0]);
		else if (text_disturbs(point))
			strbuf_printf(b, "\\u{%04x}", (unsigned)point);
		else
			strbuf_add(b, rest.p, length);
		shown += step;
	}
}

/* Integers and units */

void text_add_count(struct strbuf *b, uint64_t n)
{
	char digits[32];
	size_t at = sizeof digits, written = 0;

	do {
		if (written > 0 && written % 3 == 0)
			digits[--at] = ' ';
		digits[--at] = (char)('0' + n % 10);
		n /= 10;
		written++;
	} while (n > 0);
	strbuf_add(b, digits + at, sizeof digits - at);
}

void text_add_signed_count(struct strbuf *b, int64_t n)
{
	if (n < 0)
		strbuf_add_char(b, '-');
	text_add_count(b, n < 0 ? 0 - (uint64_t)n : (uint64_t)n);
}

/* `n` in `unit`s, rounded half up, with one decimal; `fine`: with two below ten. */
static void add_scaled(struct strbuf *b, uint64_t n, uint64_t unit, bool fine)
{
	uint64_t parts = fine && n < 10 * unit ? 100 : 10;
	uint64_t whole = n / unit;
	uint64_t part = (n % unit / (unit / 1000) + 500 / parts) / (1000 / parts);

	if (part >= parts) {
		part = 0;
		whole++;
		if (whole == 10)
			parts = 10;
	}
	strbuf_printf(b, parts == 100 ? "%llu.%02llu" : "%llu.%llu", (unsigned long long)whole,
		(unsigned long long)part);
}

/* Take the next unit when rounding would show 1000.0 of this one. */
static bool reaches(uint64_t n, uint64_t unit)
{
	return n >= unit - unit / 1000 / 20;
}

void text_add_bytes(struct strbuf *b, uint64_t bytes)
{
	static const char *const names[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
	uint64_t unit = 1;
	size_t i = 0;

	while (i < 6 && (i == 0 ? bytes >= 1000 : reaches(bytes, unit * 1000))) {
		unit *= 1000;
		i++;
	}
	if (i == 0)
		strbuf_printf(b, "%llu", (unsigned long long)bytes);
	else
		add_scaled(b, bytes, unit, false);
	strbuf_add_char(b, ' ');
	strbuf_add_text(b, names[i]);
}

void text_add_magnitude(struct strbuf *b, uint64_t n)
{
	static const char *const names[] = {" M", " B", " T"};
	uint64_t unit = 1000000;
	size_t i = 0;

	if (n < unit) {
		text_add_count(b, n);
		return;
	}
	while (i < 2 && reaches(n, unit * 1000)) {
		unit *= 1000;
		i++;
	}
	if (n / unit >= 1000)
		text_add_count(b, n / unit + (n % unit >= unit / 2));
	else
		add_scaled(b, n, unit, true);
	strbuf_add_text(b, names[i]);
}

/* Doubles */

/* A decimal: 0.d1d2d3… × 10^point. */
struct decimal {
	char digits[24];
	int count, point;
};

/*
 * `v` (finite, not negative) with `precision` significant digits, trailing zeros dropped. printf
 * rounds correctly; all that its locale decides is what stands between the first two digits.
 */
static struct decimal decimal_of(double v, int precision)
{
	char text[64];
	struct decimal d = {.count = 0};

	snprintf(text, sizeof text, "%.*e", precision - 1, v);
	const char *p = text;
	for (; *p && *p != 'e'; p++)
		if (*p >= '0' && *p <= '9' && d.count < (int)sizeof d.digits - 1)
			d.digits[d.count++] = *p;
	bool down = *p && p[1] == '-';
	int exponent = 0;
	for (p += *p ? 2 : 0; *p >= '0' && *p <= '9'; p++)
		exponent = exponent * 10 + (*p - '0');
	d.point = (down ? -exponent : exponent) + 1;
	while (d.count > 1 && d.digits[d.count - 1] == '0')
		d.count--;
	return d;
}

/* The double nearest to a decimal. Without a decimal point strtod is the same in every locale. */
static double decimal_value(const struct decimal *d)
{
	char text[64];

	snprintf(text, sizeof text, "%.*se%d", d->count, d->digits, d->point - d->count);
	return strtod(text, NULL);
}

/* One unit up in the last place. */
static void decimal_increment(struct decimal *d)
{
	int i = d->count - 1;

	while (i >= 0 && d->digits[i] == '9')
		i--;
	if (i < 0) {
		d->digits[0] = '1';
		d->count = 1;
		d->point++;
		return;
	}
	d->digits[i]++;
	d->count = i + 1;
}

/*
 * Every decimal of up to 15 digits survives a normal double, so the shortest has 15 digits less
 * trailing zeros, else 16, else 17. Subnormals have fewer bits: they are tried from one digit on.
 * Just below a power of two doubles lie twice as dense, so that the nearest decimal may miss where
 * the next one above hits.
 */
static struct decimal decimal_shortest(double v)
{
	int exponent;
	bool power_of_two = frexp(v, &exponent) == 0.5;
	struct decimal d = {.digits = "0", .count = 1, .point = 1};

	if (v == 0)
		return d;
	for (int precision = v < DBL_MIN ? 1 : 15; precision <= 17; precision++) {
		d = decimal_of(v, precision);
		if (decimal_value(&d) == v)
			break;
		if (power_of_two && precision < 17) {
			struct decimal above = d;
			while (above.count < precision)
				above.digits[above.count++] = '0';
			decimal_increment(&above);
			if (decimal_value(&above) == v)
				return above;
		}
	}
	return d;
}

/* 1234.5, 0.00012, or 1.2e-5 where the point lies outside [least, most]. */
static void add_decimal(struct strbuf *b, const struct decimal *d, int least, int most)
{
	if (d->point < least || d->point > most) {
		strbuf_add_char(b, d->digits[0]);
		if (d->count > 1) {
			strbuf_add_char(b, '.');
			strbuf_add(b, d->digits + 1, (size_t)d->count - 1);
		}
		strbuf_printf(b, "e%d", d->point - 1);
		return;
	}
	if (d->point <= 0) {
		strbuf_add_text(b, "0.");
		strbuf_pad(b, '0', (size_t)-d->point);
		strbuf_add(b, d->digits, (size_t)d->count);
		return;
	}
	if (d->count <= d->point) {
		strbuf_add(b, d->digits, (size_t)d->count);
		strbuf_pad(b, '0', (size_t)(d->point - d->count));
		return;
	}
	strbuf_add(b, d->digits, (size_t)d->point);
	strbuf_add_char(b, '.');
	strbuf_add(b, d->digits + d->point, (size_t)(d->count - d->point));
}

/* The sign, and the whole of what is not finite. */
static bool add_sign(struct strbuf *b, double v)
{
	if (isnan(v)) {
		strbuf_add_text(b, "NaN");
		return false;
	}
	if (signbit(v))
		strbuf_add_char(b, '-');
	if (isinf(v))
		strbuf_add_text(b, "Infinity");
	return !isinf(v);
}

void text_add_double(struct strbuf *b, double v)
{
	int saved = errno;

	if (add_sign(b, v)) {
		struct decimal d = decimal_shortest(fabs(v));
		add_decimal(b, &d, -3, 16);
	}
	errno = saved;
}

void text_add_rounded(struct strbuf *b, double v, int digits)
{
	if (digits < 1)
		digits = 1;
	if (digits > 17)
		digits = 17;
	if (!add_sign(b, v))
		return;
	struct decimal d = decimal_of(fabs(v), digits);
	add_decimal(b, &d, -3, 6);
}

/* Numbers from text */

bool text_parse_u64(struct slice text, uint64_t max, uint64_t *out)
{
	uint64_t n = 0;

	if (text.n == 0)
		return false;
	for (size_t i = 0; i < text.n; i++) {
		unsigned digit = (unsigned)(uint8_t)text.p[i] - '0';
		if (digit > 9 || __builtin_mul_overflow(n, 10, &n) ||
			__builtin_add_overflow(n, digit, &n))
			return false;
	}
	if (n > max)
		return false;
	*out = n;
	return true;
}

bool text_parse_i64(struct slice text, int64_t min, int64_t max, int64_t *out)
{
	uint64_t n;
	bool negative = text.n > 0 && text.p[0] == '-';

	if (negative)
		text = (struct slice){text.p + 1, text.n - 1};
	if (!text_parse_u64(text, (uint64_t)INT64_MAX + negative, &n))
		return false;
	int64_t value = negative ? (int64_t)(0 - n) : (int64_t)n;
	if (value < min || value > max)
		return false;
	*out = value;
	return true;
}

bool text_parse_range(struct slice text, int64_t min, int64_t *least, int64_t *most)
{
	size_t dots = slice_find(text, SLICE(".."));
	struct slice first = text, last = text;

	if (dots != SIZE_MAX) {
		first = slice_trim((struct slice){text.p, dots});
		last = slice_trim((struct slice){text.p + dots + 2, text.n - dots - 2});
	}
	return text_parse_i64(first, min, INT64_MAX, least) &&
	       text_parse_i64(last, *least, INT64_MAX, most);
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Whether `text` is `word` (lower case) in any case. */
static bool is_word(struct slice text, const char *word)
{
	size_t i;

	for (i = 0; i < text.n && word[i]; i++)
		if ((text.p[i] | 0x20) != word[i])
			return false;
	return i == text.n && !word[i];
}

__extension__ typedef unsigned __int128 uint128;

/*
 * Powers of five, shifted up to 64 bits, and what a division by each is made of: the reciprocal
 * floor((2^128 - 1) / d) - 2^64.
 */
static const struct divisor {
	uint64_t d, reciprocal;
} fives[] = {
	/* clang-format off */
	{0x8000000000000000u, 0xffffffffffffffffu},
	{0xa000000000000000u, 0x9999999999999999u},
	{0xc800000000000000u, 0x47ae147ae147ae14u},
	{0xfa00000000000000u, 0x0624dd2f1a9fbe76u},
	{0x9c40000000000000u, 0xa36e2eb1c432ca57u},
	{0xc350000000000000u, 0x4f8b588e368f0846u},
	{0xf424000000000000u, 0x0c6f7a0b5ed8d36bu},
	{0x9896800000000000u, 0xad7f29abcaf48578u},
	{0xbebc200000000000u, 0x5798ee2308c39df9u},
	{0xee6b280000000000u, 0x12e0be826d694b2eu},
	{0x9502f90000000000u, 0xb7cdfd9d7bdbab7du},
	{0xba43b74000000000u, 0x5fd7fe17964955fdu},
	{0xe8d4a51000000000u, 0x19799812dea11197u},
	{0x9184e72a00000000u, 0xc25c268497681c26u},
	{0xb5e620f480000000u, 0x6849b86a12b9b01eu},
	{0xe35fa931a0000000u, 0x203af9ee756159b2u},
	{0x8e1bc9bf04000000u, 0xcd2b297d889bc2b6u},
	{0xb1a2bc2ec5000000u, 0x70ef54646d496892u},
	{0xde0b6b3a76400000u, 0x2725dd1d243aba0eu},
	{0x8ac7230489e80000u, 0xd83c94fb6d2ac34au},
	{0xad78ebc5ac620000u, 0x79ca10c9242235d5u},
	{0xd8d726b7177a8000u, 0x2e3b40a0e9b4f7ddu},
	{0x878678326eac9000u, 0xe392010175ee5962u},
	{0xa968163f0a57b400u, 0x82db34012b25144eu},
	{0xd3c21bcecceda100u, 0x357c299a88ea76a5u},
	{0x84595161401484a0u, 0xef2d0f5da7dd8aa2u},
	{0xa56fa5b99019a5c8u, 0x8c240c4aecb13bb5u},
	{0xcecb8f27f4200f3au, 0x3ce9a36f23c0fc90u},
	/* clang-format on */
};

/*
 * (high * 2^64 + low) / d for high < d, by two multiplications (Moeller and Granlund, Improved
 * division by invariant integers, 2011).
 */
static uint64_t divide(uint64_t high, uint64_t low, const struct divisor *by, uint64_t *rest)
{
	uint128 q = (uint128)by->reciprocal * high + ((uint128)high << 64 | low);
	uint64_t quotient = (uint64_t)(q >> 64) + 1, r = low - quotient * by->d;

	if (r > (uint64_t)q) {
		quotient--;
		r += by->d;
	}
	if (r >= by->d) {
		quotient++;
		r -= by->d;
	}
	*rest = r;
	return quotient;
}

/*
 * m / 10^k, exactly rounded, for 0 < m and k <= 27. Most numbers in logs have 16 or 17 digits and
 * come this way, many times as fast as strtod. Both sides are scaled so that the quotient has 63 or
 * 64 bits.
 */
static double divide_rounded(uint64_t m, unsigned k)
{
	/* The bits of 5^k, of which its logarithm is 2.3219. */
	int up = __builtin_clzll(m), down = 63 - (int)(k * 2379 >> 10);
	uint64_t rest, high = m << up;
	uint64_t quotient = divide(high >> 1, high << 63, &fives[k], &rest);

	int spare = quotient >> 63 ? 11 : 10;
	uint64_t half = (uint64_t)1 << (spare - 1), low = quotient & (2 * half - 1);
	uint64_t kept = quotient >> spare;
	if (low > half || (low == half && (rest != 0 || kept & 1)))
		kept++;
	/* A power of two, which is exact: its bits are those of its exponent. */
	uint64_t bits = (uint64_t)(1023 + spare - 63 + down - up - (int)k) << 52;
	double scale;
	memcpy(&scale, &bits, sizeof scale);
	return (double)kept * scale;
}

bool text_decimal(uint64_t mantissa, int exponent, double *out)
{
	static const double powers[] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10,
		1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

#if FLT_EVAL_METHOD == 0
	/* Both operands are exact, so one rounding makes the result the nearest double. */
	if (mantissa <= (uint64_t)1 << 53 && exponent >= -22 && exponent <= 22) {
		*out = exponent < 0 ? (double)mantissa / powers[-exponent]
				    : (double)mantissa * powers[exponent];
		return true;
	}
#endif
	if (mantissa == 0 || exponent < -27 || exponent > 0)
		return false;
	*out = divide_rounded(mantissa, (unsigned)-exponent);
	return true;
}

/*
 * More digits than this never decide which double is nearest, except that one of the rest is not
 * zero: 767 are the most that the middle between two doubles has.
 */
#define DIGITS_MAX 780

bool text_parse_double(struct slice text, double *out)
{
	bool negative = false;

	if (text.n == 0)
		return false;
	const char *p = text.p, *end = text.p + text.n;
	if (*p == '-' || *p == '+')
		negative = *p++ == '-';
	struct slice word = {p, (size_t)(end - p)};
	if (is_word(word, "nan") || is_word(word, "inf") || is_word(word, "infinity")) {
		double special = word.p[0] == 'n' || word.p[0] == 'N' ? NAN : INFINITY;
		*out = negative ? -special : special;
		return true;
	}

	/* The digits without their point; `exponent` says where it was. */
	char digits[DIGITS_MAX + 1 + 24];
	size_t count = 0, seen = 0;
	int64_t exponent = 0;
	uint64_t mantissa = 0;
	bool point = false, dropped = false;
	for (; p < end && (is_digit(*p) || (*p == '.' && !point)); p++) {
		if (*p == '.') {
			point = true;
			continue;
		}
		seen++;
		exponent -= point;
		if (count == 0 && *p == '0')
			continue;
		if (count < DIGITS_MAX) {
			digits[count++] = *p;
			if (count <= 19)
				mantissa = mantissa * 10 + (uint64_t)(*p - '0');
		} else {
			dropped = dropped || *p != '0';
			exponent++;
		}
	}
	if (seen == 0)
		return false;
	if (p < end && (*p == 'e' || *p == 'E')) {
		p++;
		bool down = false;
		int64_t e = 0;
		if (p < end && (*p == '-' || *p == '+'))
			down = *p++ == '-';
		if (p == end)
			return false;
		for (; p < end && is_digit(*p); p++)
			if (e < INT64_MAX / 100)
				e = e * 10 + (*p - '0');
		exponent += down ? -e : e;
	}
	if (p != end)
		return false;

	double v = 0;
	bool simple = count <= 19 && exponent >= INT_MIN && exponent <= INT_MAX;
	if (count > 0 && !(simple && text_decimal(mantissa, (int)exponent, &v))) {
		int saved = errno;
		if (dropped) {
			digits[count++] = '1';
			exponent--;
		}
		/* Beyond these the result is zero or infinite whatever the digits are. */
		if (exponent > 1000)
			exponent = 1000;
		if (exponent < -2000)
			exponent = -2000;
		snprintf(digits + count, sizeof digits - count, "e%d", (int)exponent);
		v = strtod(digits, NULL);
		errno = saved;
	}
	*out = negative ? -v : v;
	return true;
}

/* Words and names */

#define WORD_MAX 64

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

/* Insertions, deletions, replacements and swaps of neighbours that make `a` of `b`. */
static unsigned edit_distance(const char *a, size_t na, const char *b, size_t nb)
{
	unsigned rows[3][WORD_MAX + 1];

	for (size_t j = 0; j <= nb; j++)
		rows[0][j] = (unsigned)j;
	for (size_t i = 1; i <= na; i++) {
		unsigned *now = rows[i % 3], *last = rows[(i + 2) % 3], *before = rows[(i + 1) % 3];
		now[0] = (unsigned)i;
		for (size_t j = 1; j <= nb; j++) {
			bool same = lower(a[i - 1]) == lower(b[j - 1]);
			unsigned best = last[j - 1] + !same;
			if (last[j] + 1 < best)
				best = last[j] + 1;
			if (now[j - 1] + 1 < best)
				best = now[j - 1] + 1;
			if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
				lower(a[i - 2]) == lower(b[j - 1]) && before[j - 2] + 1 < best)
				best = before[j - 2] + 1;
			now[j] = best;
		}
	}
	return rows[na % 3][nb];
}

const char *text_nearest(const char *word, const char *const *candidates, size_t count)
{
	size_t n = strlen(word);
	const char *nearest = NULL;
	unsigned best = n < 4 ? 1 : (unsigned)(n / 3);

	if (n == 0 || n > WORD_MAX)
		return NULL;
	for (size_t i = 0; i < count; i++) {
		size_t m = strlen(candidates[i]);
		if (m > WORD_MAX)
			continue;
		unsigned distance = edit_distance(word, n, candidates[i], m);
		if (distance < best || (distance == best && !nearest && distance < m)) {
			best = distance;
			nearest = candidates[i];
		}
	}
	return nearest;
}

void text_add_nearest(
	struct strbuf *b, struct slice word, const char *const *candidates, size_t count)
{
	char copy[WORD_MAX + 1];

	if (word.n > WORD_MAX)
		return;
	memcpy(copy, word.p, word.n);
	copy[word.n] = '\0';
	const char *found = text_nearest(copy, candidates, count);
	if (found)
		strbuf_printf(b, "; did you mean %s?", found);
}

/* The run of digits at `at`, without leading zeros; *end is behind it. */
static struct slice number_at(struct slice s, size_t at, size_t *end)
{
	while (at < s.n && s.p[at] == '0')
		at++;
	size_t first = at;
	while (at < s.n && is_digit(s.p[at]))
		at++;
	*end = at;
	return (struct slice){s.p + first, at - first};
}

int text_natural_compare(struct slice a, struct slice b)
{
	size_t i = 0, j = 0;

	while (i < a.n && j < b.n) {
		if (!is_digit(a.p[i]) || !is_digit(b.p[j])) {
			if (a.p[i] != b.p[j])
				return (uint8_t)a.p[i] < (uint8_t)b.p[j] ? -1 : 1;
			i++;
			j++;
			continue;
		}
		struct slice x = number_at(a, i, &i), y = number_at(b, j, &j);
		if (x.n != y.n)
			return x.n < y.n ? -1 : 1;
		int order = slice_compare(x, y);
		if (order != 0)
			return order;
	}
	if (i < a.n || j < b.n)
		return i < a.n ? 1 : -1;
	/* Equal but for leading zeros: the bytes decide, so that the order is total. */
	return slice_compare(a, b);
}
