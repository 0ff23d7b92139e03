/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "curve/spikes.h"

#include <math.h>
#include <stdlib.h>

#include "curve/window.h"

#define HALF (SPIKE_WINDOW / 2)
#define HALF_LEAST 24u
#define SPIKE_BASE 16u  /* points without which there are no residuals */
#define ONE_POINT 15.0  /* scales by which a lone point is more than an odd batch */
#define BEND 0.1        /* of the way that the line reaches ahead */
#define NEXT_SHARE 0.25 /* of an onset's height, which its neighbour has if it is no odd batch */
#define FALL_SHARE                                                                                 \
	0.25             /* of a spike's height, by which the curve may be thought to have fallen  \
			    behind it */
#define TAIL 0.985       /* quantile of the residuals that tells how heavy their tail is */
#define TAIL_LEAST 128u  /* of them: fewer have no tail to speak of */
#define TAILS 3.0        /* times that a spike must be */
#define SHIFT_POINTS 32u /* after a drop or a shift whose median is the new level */
#define STAYS_POINTS 8u  /* and steps after which a curve that is still up stays there */
#define STAYS_STEPS 500.0
#define DROP_SCALES 6.0
#define DROP_POINTS 8u /* in a row */
#define BLOCK_MAX 256u /* points of a block of which slow divergence is judged, … */
#define BLOCK_LEAST 6u
#define BLOCKS 24u       /* … that is this part of the curve */
#define DRIFT_SCALES 3.0 /* of a point's noise, and … */
#define DRIFT_BLOCKS 4.0 /* … of what blocks usually differ by */

/* The baseline --------------------------------------------------------------------------------- */

struct baseline {
	struct window older, newer; /* halves of the last accepted points */
	struct window residuals;
	struct window sizes; /* of the residuals, in scales of their time: they tell the tail */
	size_t accepted;     /* points since the curve, or a new level, began */
	double quantum; /* least step of the values, where it is more than their noise; else 0 */
	size_t since;   /* points since the quantum was looked for */
};

static int no_memory(struct error *e)
{
	return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for the spikes");
}

/* For a curve of n points: a short one bends within what is a small part of a long one. */
static bool baseline_init(struct baseline *b, size_t n)
{
	size_t half = n / 12 < HALF_LEAST ? HALF_LEAST : n / 12 > HALF ? HALF : n / 12;
	size_t all = 2 * half < SPIKE_LEARN ? SPIKE_LEARN : 2 * half;

	*b = (struct baseline){0};
	bool a = window_init(&b->older, half), c = window_init(&b->newer, half);
	bool d = window_init(&b->sizes, all);
	return window_init(&b->residuals, all) && a && c && d;
}

static void baseline_release(struct baseline *b)
{
	window_release(&b->older);
	window_release(&b->newer);
	window_release(&b->residuals);
	window_release(&b->sizes);
}

static void baseline_clear(struct baseline *b)
{
	window_clear(&b->older);
	window_clear(&b->newer);
	window_clear(&b->residuals);
	window_clear(&b->sizes);
	b->accepted = 0;
}

/*
 * The level that the next point should have, and by how much it moves from point to point: the line
 * through the medians of both halves, each in its middle.
 */
static double baseline_level(const struct baseline *b, double *slope)
{
	double newer = window_median(&b->newer), n = (double)b->newer.n, m = (double)b->older.n;

	*slope = 0;
	if (b->older.n < SPIKE_BASE / 2)
		return newer;
	*slope = (newer - window_median(&b->older)) / ((n + m) / 2);
	return newer + *slope * (n + 1) / 2;
}

static void baseline_accept(struct baseline *b, double v, double residual)
{
	/* Both halves grow alike; what leaves the newer one goes over to the older one. */
	if (b->newer.n > b->older.n || b->newer.n == b->newer.capacity)
		window_add(&b->older, window_pop(&b->newer));
	window_add(&b->newer, v);
	b->accepted++;
	if (isfinite(residual))
		window_add(&b->residuals, residual);
}

/* Look now and then whether the values come in steps that are larger than their noise. */
static void find_quantum(struct baseline *b)
{
	double least;

	if (b->since++ % 64 != 0 || b->newer.n < SPIKE_LEARN / 2)
		return;
	size_t distinct = window_distinct(&b->newer, &least);
	b->quantum = distinct < b->newer.n / 2 && !isnan(least) ? least : 0;
}

static double baseline_scale(
	const struct baseline *b, double level, double resolution, double noise)
{
	double middle = window_median(&b->residuals);
	double s = 1.4826 * noise * window_distance(&b->residuals, middle);

	s = fmax(s, 1e-4 * fabs(level));
	s = fmax(s, resolution);
	return fmax(s, b->quantum);
}

/* Finding -------------------------------------------------------------------------------------- */

struct search {
	struct spikes *out;
	const struct spike_curve *c;
	struct baseline b;
	double interval, step;
	double *scratch; /* SPIKE_AFTER */
};

/* How much noise the point has, in that of the others. */
static double noise_of(const struct spike_curve *c, size_t i)
{
	return c->noise ? (double)c->noise[i] : 1;
}

static int compare_doubles(const void *pa, const void *pb)
{
	double a = *(const double *)pa, b = *(const double *)pb;

	return (a > b) - (a < b);
}

/* The median of the finite values in [first, end), of at most SPIKE_AFTER of them. */
static double median_of(struct search *q, size_t first, size_t end)
{
	size_t n = 0;

	for (size_t i = first; i < end && n < SPIKE_AFTER; i++)
		if (isfinite(q->c->v[i]))
			q->scratch[n++] = q->c->v[i];
	if (n == 0)
		return NAN;
	qsort(q->scratch, n, sizeof *q->scratch, compare_doubles);
	return (q->scratch[(n - 1) / 2] + q->scratch[n / 2]) / 2;
}

static struct spike *add(struct search *q, enum spike_class class, size_t at, struct error *e)
{
	struct spike *k = array_push(&q->out->list, SIZE_MAX);

	if (!k) {
		no_memory(e);
		return NULL;
	}
	*k = (struct spike){.class = (uint8_t) class,
		.x = q->c->x[at],
		.attempt = q->c->attempt ? q->c->attempt[at] : 0,
		.peak = NAN,
		.peak_x = NAN,
		.end_x = NAN,
		.baseline = NAN,
		.scale = NAN,
		.level = NAN,
		.lead = NAN,
		.place_x = NAN};
	return k;
}

/* An event that began: what it is held against is frozen. */
struct event {
	size_t begin;
	double level, scale;
	double slope; /* per point, never upwards */
	double age;   /* points of the curve before it */
	double peak;  /* so far */
};

/*
 * A curve falls with the logarithm of its steps, or slower: a line would soon be below any. Nor is
 * a small spike held against what the curve might have fallen to long after it.
 */
static double expected_at(const struct event *v, size_t i)
{
	double fall = -v->slope * v->age * log1p((double)(i - v->begin) / v->age);

	return v->level - fmin(fall, FALL_SHARE * fmax(0, v->peak - v->level));
}

/*
 * The first of SPIKE_BACK_POINTS in a row that are back, of which one may be out again: noise has
 * such points, and in a log of every 50th step each of them would make a spike longer by 300 steps.
 * `end` where there are none. NaN ends it.
 */
static size_t find_recovery(const struct search *q, struct event *v, size_t end, bool *broken)
{
	unsigned back = 0; /* the last points, a bit each */

	*broken = false;
	v->peak = v->level;
	for (size_t i = v->begin; i < end; i++) {
		if (!isfinite(q->c->v[i])) {
			*broken = true;
			return end;
		}
		v->peak = fmax(v->peak, q->c->v[i]);
		back = back << 1 | (q->c->v[i] <= expected_at(v, i) + SPIKE_BACK * v->scale);
		back &= (1u << SPIKE_BACK_POINTS) - 1;
		if (back >> (SPIKE_BACK_POINTS - 1) &&
			(unsigned)__builtin_popcount(back) >= SPIKE_BACK_POINTS - 1)
			return i + 1 - SPIKE_BACK_POINTS;
	}
	return end;
}

/* Where the median of what follows is looked for: from SPIKE_SLOW_STEPS behind the onset on. */
static size_t after_slow(const struct search *q, const struct event *v)
{
	size_t i = v->begin;

	while (i < q->c->n && q->c->x[i] - q->c->x[v->begin] <= SPIKE_SLOW_STEPS * q->step)
		i++;
	return i;
}

static double slope_between(struct search *q, size_t first, size_t end)
{
	size_t middle = first + (end - first) / 2;

	return median_of(q, middle, end) - median_of(q, first, middle);
}

/* Whether it went to another level at once and stayed there, without a peak. */
static bool is_shift(struct search *q, const struct event *v, size_t end, double peak)
{
	size_t few = v->begin + SHIFT_POINTS < end ? v->begin + SHIFT_POINTS : end;
	double early = median_of(q, v->begin, few), late = median_of(q, few, end);

	if (few - v->begin < SHIFT_POINTS / 2 || isnan(late))
		return false;
	double rise = early - v->level;
	return fabs(late - early) <= fmax(2 * v->scale, 0.25 * rise) &&
	       peak - early <= fmax(5 * v->scale, 0.5 * rise);
}

/* Classify an event that goes up at v->begin; the index where the search goes on. */
static size_t tell_event(struct search *q, struct event *v, struct error *e)
{
	const struct spike_curve *c = q->c;
	bool broken;
	size_t back = find_recovery(q, v, c->n, &broken);
	size_t late = after_slow(q, v);
	double steps = back < c->n ? (c->x[back] - c->x[v->begin]) / q->step : INFINITY;
	size_t end = back < c->n && steps <= SPIKE_SLOW_STEPS ? back : late;
	struct spike *k = add(q, SPIKE_FAST, v->begin, e);

	if (!k)
		return SIZE_MAX;
	k->baseline = v->level;
	k->scale = v->scale;
	k->peak = -INFINITY;
	size_t i = v->begin;
	for (; i < end && isfinite(c->v[i]); i++) {
		if (c->v[i] > k->peak) {
			k->peak = c->v[i];
			k->peak_x = c->x[i];
		}
	}
	k->points = i - v->begin;
	size_t follows = end + SPIKE_AFTER < c->n ? end + SPIKE_AFTER : c->n;
	k->level =
		median_of(q, end < c->n ? end : v->begin + k->points / 2, end < c->n ? follows : i);
	if (steps <= SPIKE_SLOW_STEPS) {
		k->end_x = c->x[back];
		k->class = steps <= SPIKE_FAST_STEPS ? SPIKE_FAST : SPIKE_SLOW;
		return back;
	}
	/* It did not come back. NaN within the time is a divergence; so is a level that stays up.
	 */
	double half = v->level + 0.5 * (k->peak - v->level);
	bool long_enough =
		late < c->n || k->points >= 2 * SHIFT_POINTS ||
		(k->points >= STAYS_POINTS && c->x[i - 1] - k->x >= STAYS_STEPS * q->step);
	if (i < end || (broken && i < c->n)) {
		k->class = SPIKE_DIVERGED;
		return i;
	}
	if (is_shift(q, v, late < c->n ? follows : i, k->peak))
		k->class = SPIKE_SHIFT;
	else if (long_enough && k->level > half &&
		 slope_between(q, v->begin + k->points / 2, late < c->n ? follows : i) >= 0)
		k->class = SPIKE_DIVERGED;
	else if (late >= c->n)
		k->class = SPIKE_OPEN, k->rising = i > 0 && k->peak_x == c->x[i - 1];
	else if (k->level > expected_at(v, late) + SPIKE_BACK * v->scale)
		k->class = SPIKE_PARTIAL;
	else
		k->class = SPIKE_SLOW;
	return i;
}

static size_t tell_not_finite(struct search *q, size_t i, struct error *e)
{
	const struct spike_curve *c = q->c;
	struct spike *k = add(q, SPIKE_NOT_FINITE, i, e);

	if (!k)
		return SIZE_MAX;
	while (i < c->n && !isfinite(c->v[i])) {
		k->points++;
		i++;
	}
	k->end_x = i < c->n ? c->x[i] : NAN;
	return i;
}

/* A drop: DROP_POINTS in a row far below, and the median of what follows too. */
static bool is_drop(struct search *q, const struct event *v)
{
	const struct spike_curve *c = q->c;

	if (v->begin + SHIFT_POINTS > c->n)
		return false;
	for (size_t i = v->begin; i < v->begin + DROP_POINTS; i++)
		if (!(c->v[i] < v->level - SPIKE_TWO * v->scale))
			return false;
	/* At once: a curve that wanders is no drop. */
	if (v->begin < DROP_POINTS ||
		median_of(q, v->begin - DROP_POINTS, v->begin) -
				median_of(q, v->begin, v->begin + DROP_POINTS) <
			DROP_SCALES * v->scale)
		return false;
	return median_of(q, v->begin, v->begin + SHIFT_POINTS) < v->level - DROP_SCALES * v->scale;
}

static size_t tell_drop(struct search *q, const struct event *v, struct error *e)
{
	struct spike *k = add(q, SPIKE_DROP, v->begin, e);

	if (!k)
		return SIZE_MAX;
	k->baseline = v->level;
	k->scale = v->scale;
	k->level = median_of(q, v->begin, v->begin + SHIFT_POINTS);
	k->points = SHIFT_POINTS;
	return v->begin;
}

/* Whether the point at i begins an event: far enough, or with two of three, and no odd batch alone.
 */
static bool is_onset(
	struct search *q, size_t i, double level, double slope, double middle, double s)
{
	const struct spike_curve *c = q->c;
	double tail = q->b.sizes.n < TAIL_LEAST ? 0 : window_quantile(&q->b.sizes, TAIL);
	double one = fmax(SPIKE_ONE, TAILS * tail) * s;
	double two = fmax(SPIKE_TWO, TAILS * tail / 1.5) * s;
	double z = c->v[i] - level - middle;
	size_t high = 0, near = 0;

	if (!(z > two))
		return false;
	for (size_t k = i + 1; k < i + 3 && k < c->n; k++) {
		double r = c->v[k] - level - slope * (double)(k - i) - middle;
		high += r > two || isnan(c->v[k]);
		near += r > fmax(SPIKE_BACK * s, NEXT_SHARE * z) || isnan(c->v[k]);
	}
	if (z > fmax(ONE_POINT * s, 3 * one))
		return true;
	if (z > one) {
		/* A step of its own that is back at once is an odd batch; a mean of many steps is
		 * not. */
		if (near > 0 || q->interval > q->step || i + 1 == c->n)
			return true;
		q->out->odd++;
		return false;
	}
	return high > 0;
}

/* Judge the point at i, which is finite and has a baseline. *next: where to go on, i: accept it. */
static int judge_point(
	struct search *q, size_t i, double level, double slope, size_t *next, struct error *e)
{
	const struct spike_curve *c = q->c;
	double noise = noise_of(c, i), middle = noise * window_median(&q->b.residuals);
	double s =
		baseline_scale(&q->b, level, c->resolution ? (double)c->resolution[i] : 0, noise);
	/* Where the curve falls fast, as in early training, it bends too, and the line errs by a
	 * share of what it reaches ahead. */
	s += BEND * fabs(slope) * (double)(q->b.newer.n + 1) / 2;
	struct event event = {
		i, level + middle, s, fmin(slope, 0), (double)q->b.accepted, level + middle};

	*next = i;
	q->out->judged++;
	if (q->b.quantum > 0 && s == q->b.quantum)
		q->out->coarse = q->b.quantum;
	if (is_onset(q, i, level, slope, middle, s)) {
		*next = tell_event(q, &event, e);
		if (*next == SIZE_MAX)
			return e->status;
		/* What it settled at is a new curve. */
		if (isnan(q->out->list.items[q->out->list.count - 1].end_x))
			baseline_clear(&q->b);
		*next = *next > i ? *next : i + 1;
	} else if (c->down && c->v[i] < level + middle - DROP_SCALES * s && is_drop(q, &event)) {
		if (tell_drop(q, &event, e) == SIZE_MAX)
			return e->status;
		baseline_clear(&q->b);
	}
	if (*next == i && q->b.accepted > 0)
		window_add(&q->b.sizes, (c->v[i] - level - middle) / s);
	return RP_OK;
}

static int search_curve(struct search *q, struct error *e)
{
	const struct spike_curve *c = q->c;

	for (size_t i = 0; i < c->n;) {
		size_t next = i;
		if (!isfinite(c->v[i])) {
			i = tell_not_finite(q, i, e);
			if (i == SIZE_MAX)
				return e->status;
			continue;
		}
		bool based = q->b.newer.n + q->b.older.n >= SPIKE_BASE;
		double slope = 0, level = based ? baseline_level(&q->b, &slope) : c->v[i];
		if (q->b.residuals.n >= SPIKE_LEARN &&
			judge_point(q, i, level, slope, &next, e) < 0)
			return e->status;
		if (next > i) {
			i = next;
			continue;
		}
		find_quantum(&q->b);
		/* Unless the level was just found to be a new one. */
		baseline_accept(&q->b, c->v[i],
			based && q->b.accepted > 0 ? (c->v[i] - level) / noise_of(c, i) : NAN);
		i++;
	}
	return RP_OK;
}

/* Rising slowly -------------------------------------------------------------------------------- */

static bool overlaps(const struct spikes *out, size_t from, double first, double last)
{
	for (size_t i = from; i < out->list.count; i++) {
		const struct spike *k = &out->list.items[i];
		double end = isnan(k->end_x) ? INFINITY : k->end_x;
		if (k->class != SPIKE_DROP && k->x <= last && end >= first)
			return true;
	}
	return false;
}

/*
 * The medians of blocks from the end of the curve backwards, their noise, and what two that follow
 * each other usually differ by.
 */
struct blocks {
	double level[2 * BLOCKS], noise[2 * BLOCKS];
	size_t first[2 * BLOCKS];
	size_t n;
};

static void measure_blocks(struct search *q, struct blocks *k)
{
	const struct spike_curve *c = q->c;
	size_t size = c->n / BLOCKS;

	size = size > BLOCK_MAX ? BLOCK_MAX : size;
	k->n = size < BLOCK_LEAST ? 0 : c->n / size;
	k->n = k->n > 2 * BLOCKS ? 2 * BLOCKS : k->n;
	for (size_t b = 0; b < k->n; b++) {
		double changes[BLOCK_MAX];
		size_t n = 0;
		k->first[b] = c->n - (k->n - b) * size;
		k->level[b] = median_of(q, k->first[b], k->first[b] + size);
		for (size_t i = k->first[b] + 1; i < k->first[b] + size; i++)
			if (isfinite(c->v[i]) && isfinite(c->v[i - 1]))
				changes[n++] = fabs(c->v[i] - c->v[i - 1]) / M_SQRT2;
		qsort(changes, n, sizeof *changes, compare_doubles);
		k->noise[b] = n ? 1.4826 * changes[n / 2] : NAN;
	}
}

/* The block from which on the level never falls again beyond the noise. */
static size_t lowest_block(const struct blocks *k)
{
	size_t low = 0;

	for (size_t b = 1; b < k->n; b++)
		if (k->level[b] <= k->level[low])
			low = b;
	return low;
}

/*
 * A level that rises over blocks of points far beyond what blocks differ by, and does not return by
 * the end of the curve.
 */
static int search_drift(struct search *q, size_t from, struct error *e)
{
	const struct spike_curve *c = q->c;
	double change[2 * BLOCKS];
	struct blocks k;
	size_t n = 0;

	measure_blocks(q, &k);
	size_t low = k.n ? lowest_block(&k) : 0;
	if (low < 4 || low + 3 > k.n)
		return RP_OK;
	/* Against the way that it goes: a steady fall is no noise. */
	for (size_t b = 1; b + 1 < low; b++)
		change[n++] = fabs(k.level[b + 1] - 2 * k.level[b] + k.level[b - 1]);
	qsort(change, n, sizeof *change, compare_doubles);
	double usual = n ? 1.4826 * change[n / 2] : NAN;
	double last = k.level[k.n - 1], rise = last - k.level[low];
	bool found = rise > DRIFT_SCALES * k.noise[low] && rise > DRIFT_BLOCKS * usual &&
		     k.level[k.n - 2] - k.level[low] > 0.5 * rise &&
		     !overlaps(q->out, from, c->x[k.first[low]], c->x[c->n - 1]);
	if (!found)
		return RP_OK;
	struct spike *s = add(q, SPIKE_DRIFT, k.first[low + 1], e);
	if (!s)
		return e->status;
	s->baseline = k.level[low];
	s->scale = k.noise[low];
	s->level = last;
	s->points = c->n - k.first[low + 1];
	return RP_OK;
}

int spikes_find(struct spikes *out, const struct spike_curve *c, double interval, struct error *e)
{
	struct search q = {.out = out,
		.c = c,
		.interval = isnan(interval) ? 1 : interval,
		.step = c->step > 0 ? c->step : 1};
	size_t from = out->list.count;
	int status = RP_OK;

	q.scratch = calloc(SPIKE_AFTER, sizeof *q.scratch);
	if (!baseline_init(&q.b, c->n) || !q.scratch)
		status = no_memory(e);
	out->points += c->n;
	if (status == RP_OK)
		status = search_curve(&q, e);
	if (status == RP_OK)
		status = search_drift(&q, from, e);
	baseline_release(&q.b);
	free(q.scratch);
	return status;
}

void spikes_release(struct spikes *out)
{
	array_release(&out->list);
}

const char *spike_class_name(enum spike_class class)
{
	static const char *const names[SPIKE_CLASSES] = {
		[SPIKE_FAST] = "spike, fast recovery",
		[SPIKE_SLOW] = "spike, slow recovery",
		[SPIKE_PARTIAL] = "spike, not fully recovered",
		[SPIKE_OPEN] = "spike, not back at the end of the log",
		[SPIKE_DIVERGED] = "diverged",
		[SPIKE_DRIFT] = "divergence without a spike",
		[SPIKE_SHIFT] = "level shift",
		[SPIKE_DROP] = "sudden drop",
		[SPIKE_NOT_FINITE] = "not finite",
	};

	return names[class];
}
