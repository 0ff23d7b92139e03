/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "base/slice.h"

int slice_compare(struct slice a, struct slice b)
{
	size_t n = a.n < b.n ? a.n : b.n;
	int order = n ? memcmp(a.p, b.p, n) : 0;

	if (order != 0)
		return order;
	return (a.n > b.n) - (a.n < b.n);
}

size_t slice_find(struct slice hay, struct slice needle)
{
	if (needle.n == 0)
		return 0;
	if (hay.n < needle.n)
		return SIZE_MAX;
	const char *found = memmem(hay.p, hay.n, needle.p, needle.n);
	return found ? (size_t)(found - hay.p) : SIZE_MAX;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

struct slice slice_trim(struct slice s)
{
	while (s.n > 0 && is_blank(s.p[0]))
		s = (struct slice){s.p + 1, s.n - 1};
	while (s.n > 0 && is_blank(s.p[s.n - 1]))
		s.n--;
	return s;
}
