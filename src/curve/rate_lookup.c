/* SPDX-License-Identifier: MIT */
#include "curve/rate_parts.h"

#include <math.h>
#include <string.h>

#define BINARY_ROUNDING 2e-7 /* of float32, relative */
#define LINE_ROUNDINGS 16    /* that a line falls by, so that few digits make none */

static struct rate_digits digits_of(const struct stitch_track *t, uint32_t attempt)
{
	struct rate_digits d = {attempt, INFINITY, 0};
	size_t i, end;

	stitch_values_of(t, attempt, &i, &end);
	for (; i < end; i++) {
		const struct stitch_value *v = &t->values.items[i];
		if (!(v->resolution > 0) || !(v->value > 0))
			continue;
		d.decimals = fmin(d.decimals, (double)v->resolution);
		d.significant = fmax(d.significant,
			floor(log10(v->value)) - round(log10((double)v->resolution)) + 1);
	}
	return d;
}

void rates_add(struct rates *r, const struct stitch_track *t, size_t i, struct rate_digits *digits)
{
	const struct stitch_value *v = &t->values.items[i];
	double unit = (double)v->resolution;

	if (r->n == RATES_MOST || !isfinite(v->value) || v->value < 0 ||
		(r->n > 0 && v->x <= r->x[r->n - 1]))
		return;
	if (digits->attempt != v->attempt)
		*digits = digits_of(t, v->attempt);
	if (unit > 0 && v->value > 0)
		unit = fmin(unit, fmax(digits->decimals, pow(10, floor(log10(v->value)) -
									 digits->significant + 1)));
	r->x[r->n] = v->x;
	r->v[r->n] = v->value;
	r->room[r->n++] = (unit * (1 + 1e-6) + BINARY_ROUNDING * v->value) / 2;
}

bool rates_same_series(
	const struct stitch *s, const struct stitch_value *a, const struct stitch_value *b)
{
	return strcmp(s->log->series.items[a->series].name, s->log->series.items[b->series].name) ==
	       0;
}

double rates_bend(const struct rates *r, size_t i)
{
	if (i == 0 || i + 1 >= r->n)
		return 0;
	double share = (r->x[i] - r->x[i - 1]) / (r->x[i + 1] - r->x[i - 1]);
	return fabs(r->v[i] - (r->v[i - 1] + share * (r->v[i + 1] - r->v[i - 1])));
}

bool rates_on_a_line(const struct rates *r, double *slope)
{
	if (r->n < RATES_LINE)
		return false;
	size_t first = r->n - RATES_LINE, last = r->n - 1;
	*slope = (r->v[last] - r->v[first]) / (r->x[last] - r->x[first]);
	for (size_t i = first; i <= last; i++)
		if (fabs(r->v[first] + *slope * (r->x[i] - r->x[first]) - r->v[i]) >
			r->room[first] + r->room[i] + r->room[last])
			return false;
	return true;
}

/*
 * How unsure a line is that is drawn out by `far` times the length that it was seen over, in
 * roundings: by its ends, and by the bend that rounding may hide.
 */
static double drawn_out(double far)
{
	return 1 + 2 * far + 12 * far * (1 + far);
}

double rates_at(const struct rates *r, double x, double *room)
{
	double slope;

	for (size_t i = 0; i + 1 < r->n; i++) {
		if (x < r->x[i] || x > r->x[i + 1])
			continue;
		double share = (x - r->x[i]) / (r->x[i + 1] - r->x[i]);
		bool inside = share > 0 && share < 1;
		*room = fmax(r->room[i], r->room[i + 1]) +
			(inside ? fmax(rates_bend(r, i), rates_bend(r, i + 1)) : 0);
		return r->v[i] + share * (r->v[i + 1] - r->v[i]);
	}
	if (r->n == 0 || x < r->x[r->n - 1] || !rates_on_a_line(r, &slope))
		return NAN;
	double far = (x - r->x[r->n - 1]) / (r->x[r->n - 1] - r->x[r->n - RATES_LINE]);
	*room = r->room[r->n - 1] * drawn_out(far);
	return r->v[r->n - 1] + slope * (x - r->x[r->n - 1]);
}

/* Where between points i and i + 1 the rate passes v. */
static double crossing(const struct rates *r, size_t i, double v)
{
	double rise = r->v[i + 1] - r->v[i], share = rise == 0 ? 0.5 : (v - r->v[i]) / rise;

	return r->x[i] + fmin(1, fmax(0, share)) * (r->x[i + 1] - r->x[i]);
}

/* Behind the last known rate, on the line that they end with. */
static bool look_ahead(
	const struct rates *r, double v, double v_room, double direction, struct looked_up *out)
{
	size_t last = r->n - 1;
	double slope;

	if (!rates_on_a_line(r, &slope) || slope * direction <= 0 ||
		fabs(r->v[last] - r->v[r->n - RATES_LINE]) < LINE_ROUNDINGS * r->room[last])
		return false;
	double far = fabs(v - r->v[last]) / fabs(r->v[last] - r->v[r->n - RATES_LINE]);
	double x = r->x[last] + (v - r->v[last]) / slope;
	double room = (v_room + r->room[last] * drawn_out(far)) / fabs(slope);
	*out = (struct looked_up){x - room, x + room};
	return true;
}

bool rates_look_up(
	const struct rates *r, double v, double v_room, double direction, struct looked_up *out)
{
	size_t last = r->n - 1, high = last;

	if (direction * (v - r->v[last]) > v_room + r->room[last])
		return look_ahead(r, v, v_room, direction, out);
	while (direction * (r->v[high] - v) > v_room + r->room[high]) {
		if (high == 0 || direction * (r->v[high] - r->v[high - 1]) < 0)
			return false;
		high--;
	}
	size_t low = high;
	while (low > 0 && direction * (v - r->v[low]) <= v_room + r->room[low] &&
		direction * (r->v[low] - r->v[low - 1]) >= 0)
		low--;
	double room = v_room + r->room[high];
	size_t next = high < last ? high + 1 : last;
	double steep = next > low ? fabs(r->v[next] - r->v[low]) / (r->x[next] - r->x[low]) : 0;
	double bent = fmax(rates_bend(r, low), fmax(rates_bend(r, high), rates_bend(r, next)));
	double unsure = steep > 0 ? bent / 4 / steep : 0;
	out->low = (low < last ? crossing(r, low, v - direction * room) : r->x[low]) - unsure;
	/* The last rate may go on for any time. */
	out->high = high < last ? crossing(r, high, v + direction * room) + unsure : INFINITY;
	return true;
}

bool rates_common_lag(
	const struct rates *again, const struct looked_up *u, size_t n, double *low, double *high)
{
	*low = -INFINITY;
	*high = INFINITY;
	for (size_t i = 0; i < n; i++) {
		*low = fmax(*low, again->x[i] - u[i].high);
		*high = fmin(*high, again->x[i] - u[i].low);
	}
	return *low <= *high;
}

double rates_steepest(const struct rates *r, size_t first, size_t n)
{
	double most = 0;

	for (size_t i = first; i + 1 < first + n && i + 1 < r->n; i++)
		most = fmax(most, fabs(r->v[i + 1] - r->v[i]) / (r->x[i + 1] - r->x[i]));
	return most;
}
