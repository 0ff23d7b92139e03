/* SPDX-License-Identifier: MIT */
/* Earlier steps again: what an attempt logged, at other steps of earlier attempts. */
#include <math.h>

#include "curve/resume_parts.h"

#define REPEAT_POINTS 64u /* that are looked for at other steps */
#define REPEAT_LEAST 24u
#define REPEAT_CORRELATION 0.9
#define REPEAT_CHANCE 1e-6 /* that any lag correlates as well by accident */
#define EQUAL_LEAST 8u     /* equal values in a row that are the same training */

struct probe {
	const struct stitch_value *v; /* the first values of the attempt */
	size_t n;
	double change[REPEAT_POINTS]; /* v[i + 1] - v[i], clipped */
	double clip;
};

/* The correlation of the probe's changes with those of n values at `v`; NAN where steps differ. */
static double correlate(const struct probe *p, const struct stitch_value *v)
{
	double sx = 0, sy = 0, sxx = 0, syy = 0, sxy = 0, n = (double)(p->n - 1);

	for (size_t i = 0; i + 1 < p->n; i++) {
		double y = resume_clipped(v[i + 1].value - v[i].value, p->clip);
		if (v[i + 1].x - v[i].x != p->v[i + 1].x - p->v[i].x || !isfinite(y))
			return NAN;
		sx += p->change[i];
		sy += y;
		sxx += p->change[i] * p->change[i];
		syy += y * y;
		sxy += p->change[i] * y;
	}
	double vx = sxx - sx * sx / n, vy = syy - sy * sy / n;
	return vx > 0 && vy > 0 ? (sxy - sx * sy / n) / sqrt(vx * vy) : NAN;
}

static size_t equal_values(const struct probe *p, const struct stitch_value *v, size_t most)
{
	size_t n = 0;

	while (n < p->n && n < most &&
		fabs(p->v[n].value - v[n].value) <= resume_rounding(&p->v[n], &v[n]))
		n++;
	return n;
}

/* Whether the learning rates at both places are the same, and move. */
static bool same_rates(const struct stitch *s, const struct resume_repeat *r, uint32_t attempt)
{
	const struct stitch_track *t = stitch_track_of(s, CURVE_LR);
	size_t i, iend, k, kend, same = 0;
	bool moves = false;

	if (!t)
		return false;
	stitch_values_of(t, attempt, &i, &iend);
	stitch_values_of(t, r->source, &k, &kend);
	for (; i < iend && t->values.items[i].x <= r->last_x; i++) {
		while (k < kend && t->values.items[k].x < t->values.items[i].x - r->lag)
			k++;
		if (k == kend || t->values.items[k].x != t->values.items[i].x - r->lag)
			continue;
		if (fabs(t->values.items[k].value - t->values.items[i].value) >
			resume_rounding(&t->values.items[k], &t->values.items[i]))
			return false;
		moves = moves ||
			t->values.items[i].value != t->values.items[k > 0 ? k - 1 : 0].value;
		same++;
	}
	return same >= EQUAL_LEAST && moves;
}

/* Whether the curve repeats itself at that lag anyway, before the resume: sorted or short epochs.
 */
static bool periodic(
	const struct stitch *s, const struct stitch_track *t, uint32_t attempt, double lag)
{
	const struct stitch_attempt *a = &s->attempts.items[attempt];
	double x[2 * REPEAT_POINTS], y[2 * REPEAT_POINTS];
	size_t first, end, n = 0;

	if (a->parent == CURVE_NONE || lag <= 0)
		return false;
	stitch_values_of(t, a->parent, &first, &end);
	while (end > first && t->values.items[end - 1].x > a->from)
		end--;
	for (size_t i = end, k = end; i-- > first && n < REPEAT_POINTS;) {
		while (k > first && t->values.items[k - 1].x > t->values.items[i].x - lag)
			k--;
		if (k == first || t->values.items[k - 1].x != t->values.items[i].x - lag)
			continue;
		x[n] = t->values.items[i].value;
		y[n++] = t->values.items[k - 1].value;
	}
	if (n < REPEAT_LEAST)
		return false;
	double sx = 0, sy = 0, sxx = 0, syy = 0, sxy = 0, m = (double)(n - 1);
	for (size_t i = 0; i + 1 < n; i++) {
		double dx = x[i] - x[i + 1], dy = y[i] - y[i + 1];
		sx += dx;
		sy += dy;
		sxx += dx * dx;
		syy += dy * dy;
		sxy += dx * dy;
	}
	double vx = sxx - sx * sx / m, vy = syy - sy * sy / m;
	return vx > 0 && vy > 0 && (sxy - sx * sy / m) / sqrt(vx * vy) > 0.5;
}

static bool begin_probe(struct probe *p, const struct stitch_track *t, uint32_t attempt)
{
	size_t first, end;
	double changes[REPEAT_POINTS];

	stitch_values_of(t, attempt, &first, &end);
	p->v = t->values.items + first;
	p->n = end - first < REPEAT_POINTS ? end - first : REPEAT_POINTS;
	if (p->n < REPEAT_LEAST)
		return false;
	for (size_t i = 0; i + 1 < p->n; i++) {
		changes[i] = p->change[i] = p->v[i + 1].value - p->v[i].value;
		if (!isfinite(changes[i]))
			return false;
	}
	p->clip = RESUME_CLIP * resume_scale_of(changes, p->n - 1);
	for (size_t i = 0; i + 1 < p->n; i++)
		p->change[i] = resume_clipped(p->change[i], p->clip);
	return p->clip > 0;
}

int resume_find_repeat(
	const struct stitch *s, uint32_t attempt, struct resume_repeat *out, struct error *e)
{
	const struct stitch_track *t = stitch_track_of(s, CURVE_LOSS);
	struct probe p;
	size_t tried = 0;

	(void)e;
	*out = (struct resume_repeat){.correlation = -1};
	if (!t || s->attempts.items[attempt].parent == CURVE_NONE || !begin_probe(&p, t, attempt))
		return RP_OK;
	for (uint32_t a = 0; a < attempt; a++) {
		size_t first, end;
		stitch_values_of(t, a, &first, &end);
		for (size_t i = first; i + p.n <= end; i++) {
			const struct stitch_value *v = &t->values.items[i];
			size_t equal = v->x == p.v[0].x ? 0 : equal_values(&p, v, p.n);
			tried++;
			if (v->x == p.v[0].x)
				continue;
			double r = correlate(&p, v);
			if (isnan(r) ||
				(r <= out->correlation && !(equal >= EQUAL_LEAST && !out->equal)))
				continue;
			*out = (struct resume_repeat){.equal = equal >= EQUAL_LEAST,
				.lag = p.v[0].x - v->x,
				.first_x = p.v[0].x,
				.last_x = p.v[p.n - 1].x,
				.source_x = v->x,
				.source_last_x = v[p.n - 1].x,
				.source = a,
				.correlation = r,
				.points = p.n};
		}
	}
	if (tried == 0 || out->correlation < REPEAT_CORRELATION)
		return RP_OK;
	/* Fisher's transform of a correlation of changes, whose variance is half as large again
	 * since each value is in two of them. */
	double z = atanh(fmin(out->correlation, 1 - 1e-12)) * sqrt(((double)p.n - 4) / 1.5);
	out->found = z > sqrt(2 * log((double)tried / REPEAT_CHANCE)) &&
		     !periodic(s, t, attempt, out->lag);
	out->renumbered = out->equal && same_rates(s, out, attempt);
	return RP_OK;
}
