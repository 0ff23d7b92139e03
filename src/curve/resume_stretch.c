/* SPDX-License-Identifier: MIT */
/* Stretches behind a resume that lie below the trend on both sides, or above it. */
#define _GNU_SOURCE
#include <math.h>
#include <stdlib.h>

#include "curve/resume_parts.h"

#define LOW_BEFORE 256u  /* points before a resume that make the trend */
#define LOW_POINTS 8192u /* points behind it that are searched */
#define LOW_LEAST 12u    /* points on either side of an edge */
#define BLOCK_POINTS 16u /* of a block by which slow wandering is measured */
#define BLOCKS_LEAST 10u
#define BLOCK_SHARE 0.75 /* so few blocks say more than there is as often as less */
#define EDGES 2u         /* lengths of stretches that are compared at an edge */
#define EDGE_DOWN 4.0    /* standard errors of the edge at the resume, whose place is known, … */
#define EDGE_HEALED 3.0  /* the edge back of what heals slowly */
#define EDGE_UP 6.0      /* … and of the one at the end, which is searched for */

/* Values around a resume, with what is needed to compare means of stretches. */
struct stretch {
	double *x, *v, *sum; /* sum[i]: of the first i values */
	double sign;         /* -1: the values are turned around, to look for a high stretch */
	size_t n, at;        /* the first value behind the resume */
	double noise;        /* standard deviation of a point against its neighbours */
	double after;        /* and behind the resume, in that: another batch has other noise */
	double spread; /* by how much the error of a mean is larger than that of white noise */
};

static double mean_of(const struct stretch *g, size_t first, size_t end)
{
	return (g->sum[end] - g->sum[first]) / (double)(end - first);
}

/* Of the difference of two means: of n points before the resume, and of m and k behind it. */
static double error_of(const struct stretch *g, size_t n, size_t m, size_t k)
{
	double sum = n ? 1 / (double)n : 0;

	sum += m ? g->after * g->after / (double)m : 0;
	sum += k ? g->after * g->after / (double)k : 0;
	return g->noise * g->spread * sqrt(sum);
}

static void release_stretch(struct stretch *g)
{
	free(g->x);
	free(g->v);
	free(g->sum);
}

/* By how much the means of blocks before the resume differ more than those of white noise. */
static double block_spread(const struct stretch *g, size_t length)
{
	double changes[LOW_BEFORE], blocks[LOW_BEFORE];
	size_t n = g->at / length;

	for (size_t i = 0; i < n; i++)
		blocks[i] = mean_of(g, g->at - (n - i) * length, g->at - (n - i - 1) * length);
	/* Second differences, since a steady fall is no noise: their variance is six times that of
	 * one. */
	for (size_t i = 0; i + 2 < n; i++)
		changes[i] = blocks[i + 2] - 2 * blocks[i + 1] + blocks[i];
	double scale = n >= BLOCKS_LEAST ? resume_scale_of(changes, n - 2) : NAN;
	return isnan(scale) || !(g->noise > 0) ? 1
					       : scale / sqrt(6) * sqrt((double)length) / g->noise;
}

/* Noise and autocorrelation from the values before the resume, against the mean of their
 * neighbourhood. */
static void measure_noise(struct stretch *g)
{
	double residual[LOW_BEFORE], copy[LOW_BEFORE], top = 0, bottom = 0;
	const size_t half = 16;
	size_t n = 0;

	for (size_t i = 0; i < g->at && n < LOW_BEFORE; i++) {
		size_t first = i > half ? i - half : 0, end = i + half < g->at ? i + half : g->at;
		residual[n] = copy[n] = g->v[i] - mean_of(g, first, end);
		n++;
	}
	g->noise = resume_scale_of(copy, n);
	for (size_t i = 0; i + 1 < n; i++) {
		top += resume_clipped(residual[i], RESUME_CLIP * g->noise) *
		       resume_clipped(residual[i + 1], RESUME_CLIP * g->noise);
		bottom += resume_clipped(residual[i], RESUME_CLIP * g->noise) *
			  resume_clipped(residual[i], RESUME_CLIP * g->noise);
	}
	double phi = bottom > 0 ? top / bottom : 0;
	phi = phi < 0 ? 0 : phi > 0.95 ? 0.95 : phi;
	g->spread = sqrt((1 + phi) / (1 - phi));
	/* What wanders slowly shows in how means of neighbouring blocks differ. */
	g->spread = fmax(g->spread, BLOCK_SHARE * block_spread(g, BLOCK_POINTS));
}

/* The noise of a point behind the resume, in that of those before it. */
static double noise_behind(const struct stitch *s, uint32_t attempt, double from)
{
	const struct stitch_attempt *a = &s->attempts.items[attempt];
	uint32_t before = from > a->from ? attempt : a->parent;
	double ratio = before == CURVE_NONE || !s->batch_changes
			       ? NAN
			       : stitch_batch(s, before, from) / stitch_batch(s, attempt, from + 1);

	return ratio > 0 && isfinite(ratio) ? sqrt(ratio) : 1;
}

static int gather_stretch(struct stretch *g, const struct stitch *s, const struct stitch_track *t,
	uint32_t attempt, double from, double sign, struct error *e)
{
	size_t first, end, before = 0;

	*g = (struct stretch){.sign = sign,
		.after = noise_behind(s, attempt, from),
		.x = calloc(LOW_BEFORE + LOW_POINTS, sizeof *g->x),
		.v = calloc(LOW_BEFORE + LOW_POINTS, sizeof *g->v),
		.sum = calloc(LOW_BEFORE + LOW_POINTS + 1, sizeof *g->sum)};
	if (!g->x || !g->v || !g->sum) {
		release_stretch(g);
		return resume_no_memory(e);
	}
	uint32_t index[LOW_BEFORE];
	size_t n = stitch_branch(s, t, attempt, from, index, LOW_BEFORE);
	for (size_t i = 0; i < n; i++) {
		if (!isfinite(t->values.items[index[i]].value))
			continue;
		g->x[before] = t->values.items[index[i]].x;
		g->v[before++] = sign * t->values.items[index[i]].value;
	}
	g->n = g->at = before;
	stitch_values_of(t, attempt, &first, &end);
	for (size_t i = first; i < end && g->n < LOW_BEFORE + LOW_POINTS; i++) {
		if (t->values.items[i].x <= from || !isfinite(t->values.items[i].value))
			continue;
		g->x[g->n] = t->values.items[i].x;
		g->v[g->n++] = sign * t->values.items[i].value;
	}
	for (size_t i = 0; i < g->n; i++)
		g->sum[i + 1] = g->sum[i] + g->v[i];
	measure_noise(g);
	return RP_OK;
}

/*
 * By how much the trend alone moves the mean over m points, by the slope of the last half of what
 * is before the resume, and the error of that. A slope that is no more than its error is none.
 */
static double trend_move(const struct stretch *g, size_t m, double *error)
{
	size_t quarter = g->at / 4;

	*error = 0;
	if (quarter < LOW_LEAST)
		return 0;
	double before = mean_of(g, g->at - 2 * quarter, g->at - quarter);
	double rise = mean_of(g, g->at - quarter, g->at) - before;
	double age = (double)g->at, ahead = age * log1p((double)m / age) / (double)quarter;
	double moved = rise * ahead;
	if (moved * g->sign > 0 || fabs(rise) < 2 * M_SQRT2 * error_of(g, quarter, 0, 0))
		return 0;
	*error = M_SQRT2 * error_of(g, quarter, 0, 0) * ahead;
	return moved;
}

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Find the sharpest edge back, over stretches of at most so many points on either side. */
static void weigh_edges(
	const struct stretch *g, double until, double interval, size_t most, struct resume_low *out)
{
	size_t best = 0;
	double best_up = 0;

	for (size_t c = g->at + LOW_LEAST; c + LOW_LEAST <= g->n; c++) {
		/* The first point above: the stretch ends with the one before it. */
		if (isfinite(until) && fabs(g->x[c - 1] - until) > 1.01 * interval)
			continue;
		size_t in = least(c - g->at, most), after = least(g->n - c, most);
		double up = (mean_of(g, c, c + after) - mean_of(g, c - in, c)) /
			    error_of(g, 0, in, after);
		if (up > best_up) {
			best_up = up;
			best = c;
		}
	}
	if (best == 0)
		return;
	size_t before = least(g->at, most), in = least(best - g->at, most);
	size_t after = least(g->n - best, most);
	double level = mean_of(g, g->at - before, g->at);
	double low = mean_of(g, g->at, g->at + in), back = mean_of(g, best, best + after);
	double unsure, moved = trend_move(g, (before + in) / 2, &unsure);
	double fall = level + moved - low, rise = back - mean_of(g, best - in, best);
	out->down = fall / hypot(error_of(g, before, in, 0), unsure);
	out->up = best_up;
	out->points = best - g->at;
	out->last_x = g->x[best - 1];
	out->depth = (level + back) / 2 - mean_of(g, g->at, best);
	/* Back at the trend: not far above where it came from, and most of the way up. */
	bool returns = back <= level + fmax(3 * error_of(g, before, after, 0), 0.5 * out->depth);
	/* A shelf of replayed data ends as sharply as it began; a shock to the weights heals
	 * slowly. */
	bool shelf = rise >= 0.5 * fall && out->up > (isfinite(until) ? EDGE_DOWN : EDGE_UP);
	bool shock = out->down > EDGE_UP && out->up > EDGE_HEALED;
	out->found =
		out->down > EDGE_DOWN && out->depth > 0 && returns && (g->sign > 0 ? shelf : shock);
}

static int find_stretch(const struct stitch *s, uint32_t attempt, double from, double until,
	double sign, struct resume_low *out, struct error *e)
{
	const struct stitch_track *t = stitch_track_of(s, CURVE_LOSS);
	struct stretch g;

	*out = (struct resume_low){.last_x = NAN};
	if (!t)
		return RP_OK;
	if (gather_stretch(&g, s, t, attempt, from, sign, e) < 0)
		return e->status;
	out->noise = g.noise;
	size_t behind = g.n - g.at;
	if (g.at < 2 * LOW_LEAST || behind < 2 * LOW_LEAST || !(g.noise > 0)) {
		release_stretch(&g);
		return RP_OK;
	}
	static const size_t lengths[EDGES] = {64, 128};
	for (size_t i = 0; i < EDGES && !out->found; i++)
		weigh_edges(&g, until, t->interval, lengths[i], out);
	release_stretch(&g);
	return RP_OK;
}

int resume_find_low(const struct stitch *s, uint32_t attempt, double from, double until,
	struct resume_low *out, struct error *e)
{
	return find_stretch(s, attempt, from, until, 1, out, e);
}

int resume_find_high(const struct stitch *s, uint32_t attempt, double from, struct resume_low *out,
	struct error *e)
{
	return find_stretch(s, attempt, from, NAN, -1, out, e);
}
