/* SPDX-License-Identifier: MIT */
#include "curve/number.h"

/* Whether a comma and three digits, and no fourth, are at `p`. */
static bool is_group(const char *p)
{
	return *p == ',' && number_is_digit(p[1]) && number_is_digit(p[2]) &&
	       number_is_digit(p[3]) && !number_is_digit(p[4]);
}

const char *number_groups(const char *p, struct number *n)
{
	for (; n->digits <= 3 && is_group(p); p += 4)
		n->written |= NUMBER_GROUPED;
	return p;
}

const char *number_exponent(const char *p, struct number *n)
{
	const char *digits = p + 1 + (p[1] == '-' || p[1] == '+');
	int exponent = 0;

	if (!number_is_digit(*digits))
		return p;
	for (; number_is_digit(*digits); digits++)
		if (exponent < 10000)
			exponent = exponent * 10 + (*digits - '0');
	n->last += p[1] == '-' ? -exponent : exponent;
	n->written |= NUMBER_EXPONENT;
	return digits;
}

bool number_value(const struct number *n, struct slice text, double *value, float *resolution)
{
	if (n->written & NUMBER_GROUPED || n->digits > NUMBER_DIGITS ||
		!curve_decimal(n->mantissa, n->last, value, resolution))
		return curve_number(text, false, value, resolution);
	if (n->written & NUMBER_SIGN)
		*value = -*value;
	return true;
}

bool number_whole(struct slice text, double *value, float *resolution)
{
	struct number n;

	if (text.n > 0 && number_scan(text.p, &n) == text.p + text.n)
		return number_value(&n, text, value, resolution);
	return curve_number(text, false, value, resolution);
}
