/* SPDX-License-Identifier: MIT */
/*
 * Numbers of a line that is followed by what is no digit and by LINES_PADDING bytes that can be
 * read: their digits are taken eight at a time. Values are those of curve_number().
 */
#ifndef CURVE_NUMBER_H
#define CURVE_NUMBER_H

#include "base/scan.h"
#include "curve/read.h"

#define NUMBER_DIGITS 19u /* that fit a mantissa */

/* How a number is written. */
enum number_written {
	NUMBER_SIGN = 1,
	NUMBER_GROUPED = 2, /* thousands apart by commas */
	NUMBER_POINT = 4,
	NUMBER_EXPONENT = 8,
};

struct number {
	uint64_t mantissa;      /* wrong where it has more than NUMBER_DIGITS or is grouped */
	unsigned digits, whole; /* all, and those before the point and the first comma */
	int last;               /* the power of ten of the last digit */
	unsigned written;
};

static inline bool number_is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static inline const char *number_digits(const char *p, struct number *n)
{
	static const uint32_t powers[] = {
		1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};
	unsigned count;
	uint64_t value;

	do {
		count = scan_digits(p, &value);
		n->mantissa = n->mantissa * powers[count] + value;
		n->digits += count;
		p += count;
	} while (count == 8);
	return p;
}

/* What is behind the digits before the point, if that is a comma or an e: where it ends. */
const char *number_groups(const char *p, struct number *n);
const char *number_exponent(const char *p, struct number *n);

/*
 * The longest number at `p`, and where it ends: a minus, digits, groups of three of them behind
 * commas, a point with digits, an exponent. NULL where there is none.
 */
static inline const char *number_scan(const char *p, struct number *n)
{
	*n = (struct number){0};
	if (*p == '-') {
		n->written = NUMBER_SIGN;
		p++;
	}
	p = number_digits(p, n);
	if (n->digits == 0)
		return NULL;
	n->whole = n->digits;
	if (*p == ',')
		p = number_groups(p, n);
	if (*p == '.' && number_is_digit(p[1])) {
		p = number_digits(p + 1, n);
		n->last = (int)n->whole - (int)n->digits;
		n->written |= NUMBER_POINT;
	}
	return *p == 'e' || *p == 'E' ? number_exponent(p, n) : p;
}

/* The value of a number that was scanned, whose text is `text`; as curve_number() has it. */
bool number_value(const struct number *n, struct slice text, double *value, float *resolution);

/* curve_number() without suffixes. */
bool number_whole(struct slice text, double *value, float *resolution);

#endif
