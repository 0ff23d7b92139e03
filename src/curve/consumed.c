/* SPDX-License-Identifier: MIT */
#include "curve/consumed.h"

#include <stdlib.h>

static bool push(struct consumed_knots *k, struct consumed_line *l, double x, double amount)
{
	struct consumed_knot *knot = array_push(&k->list, SIZE_MAX);

	if (!knot)
		return false;
	*knot = (struct consumed_knot){x, amount};
	l->count++;
	return true;
}

bool consumed_lay(struct consumed_knots *k, const struct consumed_count *c, size_t n,
	struct consumed_line *out)
{
	struct consumed_knot from = {0};
	double low = -INFINITY, high = INFINITY, room = 0;

	*out = (struct consumed_line){.first = k->list.count};
	for (size_t i = 0; i < n; i++) {
		if (i == 0) {
			from = (struct consumed_knot){c[0].x, c[0].amount};
			room = c[0].room;
			if (!push(k, out, from.x, from.amount))
				return false;
			continue;
		}
		double width = c[i].x - from.x;
		/* Where the line begins is as unsure. */
		double least = (c[i].amount - c[i].room - room - from.amount) / width;
		double most = (c[i].amount + c[i].room + room - from.amount) / width;
		if (fmax(low, least) <= fmin(high, most)) {
			low = fmax(low, least);
			high = fmin(high, most);
			continue;
		}
		/* The line bends at the count before this one. */
		from.amount += (low + high) / 2 * (c[i - 1].x - from.x);
		from.x = c[i - 1].x;
		room = c[i - 1].room;
		if (!push(k, out, from.x, from.amount))
			return false;
		width = c[i].x - from.x;
		low = (c[i].amount - c[i].room - room - from.amount) / width;
		high = (c[i].amount + c[i].room + room - from.amount) / width;
	}
	return n < 2 ||
	       push(k, out, c[n - 1].x, from.amount + (low + high) / 2 * (c[n - 1].x - from.x));
}

/* The knot at the end of the part that x, or the amount, lies in: [1, count). */
static size_t part_at(
	const struct consumed_knots *k, struct consumed_line l, double value, bool amount)
{
	const struct consumed_knot *list = k->list.items + l.first;
	size_t low = 1, high = l.count - 1;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if ((amount ? list[middle].amount : list[middle].x) < value)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static double rise(const struct consumed_knot *b)
{
	return (b->amount - b[-1].amount) / (b->x - b[-1].x);
}

double consumed_at(const struct consumed_knots *k, struct consumed_line l, double x)
{
	if (l.count < 2 || isnan(x))
		return NAN;
	const struct consumed_knot *b = k->list.items + l.first + part_at(k, l, x, false);
	return b->amount + (x - b->x) * rise(b);
}

double consumed_step(const struct consumed_knots *k, struct consumed_line l, double amount)
{
	if (l.count < 2 || isnan(amount))
		return NAN;
	const struct consumed_knot *b = k->list.items + l.first + part_at(k, l, amount, true);
	return b->x + (amount - b->amount) / rise(b);
}

double consumed_batch(const struct consumed_knots *k, struct consumed_line l, double x)
{
	if (l.count < 2 || isnan(x))
		return NAN;
	return rise(k->list.items + l.first + part_at(k, l, x, false));
}
