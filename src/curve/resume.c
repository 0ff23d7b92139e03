/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "curve/resume.h"

#include <math.h>
#include <stdlib.h>

#include "base/text.h"

#define BINARY_ROUNDING 2e-7 /* of float32, relative */
#define PAIRS_MAX 512u
#define NOISE_POINTS 128u   /* before the resume, by whose changes the noise is known */
#define CHANCE 0.01         /* that other batches match as well: from there on it is too coarse */
#define CORRELATED 0.6      /* changes of the same batches under other randomness */
#define CORRELATED_LEAST 6u /* changes that say so */
#define SMALL_SHARE 0.25    /* of the noise: differences that are no other batches' */
#define DRIFT_STEPS 30.0    /* after the checkpoint, in which rounding does not grow to the most */
#define DRIFT_ERRORS 3.0
#define FAR 6.0           /* noises, beyond which one pair alone is a difference */
#define REPEAT_POINTS 64u /* that are looked for at other steps */
#define REPEAT_LEAST 24u
#define REPEAT_CORRELATION 0.9
#define REPEAT_CHANCE 1e-6 /* that any lag correlates as well by accident */
#define CLIP 4.0           /* noises: one spike must not decide a correlation */
#define EQUAL_LEAST 8u     /* equal values in a row that are the same training */
#define LOW_BEFORE 256u    /* points before a resume that make the trend */
#define LOW_POINTS 8192u   /* points behind it that are searched */
#define LOW_LEAST 12u      /* points on either side of an edge */
#define BLOCK_POINTS 16u   /* of a block by which slow wandering is measured */
#define BLOCKS_LEAST 10u
#define BLOCK_SHARE 0.75 /* so few blocks say more than there is as often as less */
#define EDGES 2u         /* lengths of stretches that are compared at an edge */
#define EDGE_DOWN 4.0    /* standard errors of the edge at the resume, whose place is known, … */
#define EDGE_HEALED 3.0  /* the edge back of what heals slowly */
#define EDGE_UP 6.0      /* … and of the one at the end, which is searched for */

static int no_memory(struct error *e)
{
	return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory to compare attempts");
}

/* Pairs ---------------------------------------------------------------------------------------- */

struct pair {
	double x, a, b;  /* of the reference, of the resumed attempt */
	double room;     /* by which rounding alone may make them differ */
	bool same_steps; /* both cover the same steps */
};

struct pairs {
	struct pair list[PAIRS_MAX];
	size_t n;
	bool first; /* the first pair begins right behind the checkpoint */
	bool apart; /* some x is in both, but covers other steps */
};

static double rounding(const struct stitch_value *a, const struct stitch_value *b)
{
	double size = fmax(fabs(a->value), fabs(b->value));

	return 0.5 * ((double)a->resolution + (double)b->resolution) * (1 + 1e-6) +
	       BINARY_ROUNDING * size;
}

/* What both attempts have behind x. */
static void find_pairs(const struct stitch_track *t, uint32_t reference, uint32_t attempt,
	double from, struct pairs *p)
{
	size_t i, iend, k, kend;

	p->n = 0;
	p->first = p->apart = false;
	stitch_values_of(t, reference, &i, &iend);
	stitch_values_of(t, attempt, &k, &kend);
	while (i < iend && t->values.items[i].x <= from)
		i++;
	while (i < iend && k < kend && p->n < PAIRS_MAX) {
		const struct stitch_value *a = &t->values.items[i], *b = &t->values.items[k];
		if (a->x < b->x) {
			i++;
			continue;
		}
		if (b->x < a->x) {
			k++;
			continue;
		}
		if (a->covers == b->covers || (isnan(a->covers) && isnan(b->covers))) {
			if (p->n == 0)
				p->first = a->x - (double)a->covers == from;
			p->list[p->n++] =
				(struct pair){a->x, a->value, b->value, rounding(a, b), true};
		} else {
			p->apart = true;
		}
		i++;
		k++;
	}
}

/* Numbers -------------------------------------------------------------------------------------- */

static int compare_doubles(const void *pa, const void *pb)
{
	double a = *(const double *)pa, b = *(const double *)pb;

	return (a > b) - (a < b);
}

/* The standard deviation that the median size of `list`, which is reordered, stands for. */
static double scale_of(double *list, size_t n)
{
	if (n < 4)
		return NAN;
	for (size_t i = 0; i < n; i++)
		list[i] = fabs(list[i]);
	qsort(list, n, sizeof *list, compare_doubles);
	return 1.4826 * (list[(n - 1) / 2] + list[n / 2]) / 2;
}

/*
 * How much two batches at one step differ: as much as two steps that follow each other, whose loss
 * hardly moves. From the changes of the reference around the checkpoint.
 */
static double noise_around(
	const struct stitch *s, const struct stitch_track *t, uint32_t reference, double from)
{
	double changes[2 * NOISE_POINTS];
	size_t n = 0;

	for (uint32_t a = reference; a != CURVE_NONE && n < NOISE_POINTS;
		a = s->attempts.items[a].parent) {
		size_t first, end;
		stitch_values_of(t, a, &first, &end);
		while (end > first &&
			t->values.items[end - 1].x > from + NOISE_POINTS * t->interval)
			end--;
		for (size_t i = end; i-- > first + 1 && n < 2 * NOISE_POINTS;) {
			double d = t->values.items[i].value - t->values.items[i - 1].value;
			if (isfinite(d))
				changes[n++] = d;
		}
		from = s->attempts.items[a].from;
	}
	return scale_of(changes, n);
}

/* The correlation of the changes of pairs [first, n). */
static double correlation(const struct pairs *p, size_t first)
{
	double sx = 0, sy = 0, sxx = 0, syy = 0, sxy = 0;
	size_t n = 0;

	for (size_t i = first + 1; i < p->n; i++) {
		double x = p->list[i].a - p->list[i - 1].a, y = p->list[i].b - p->list[i - 1].b;
		if (!isfinite(x) || !isfinite(y))
			continue;
		n++;
		sx += x;
		sy += y;
		sxx += x * x;
		syy += y * y;
		sxy += x * y;
	}
	if (n < CORRELATED_LEAST)
		return NAN;
	double vx = sxx - sx * sx / (double)n, vy = syy - sy * sy / (double)n;
	return vx > 0 && vy > 0 ? (sxy - sx * sy / (double)n) / sqrt(vx * vy) : NAN;
}

/* Comparing ------------------------------------------------------------------------------------ */

static double tolerance(const struct pair *p, double from, double factor)
{
	double share = fmin(RESUME_MOST, RESUME_PER_STEP * fmax(1, p->x - from)) * factor;

	return p->room + share * fabs(p->a);
}

/* NaN in both is equal. */
static double difference(const struct pair *p)
{
	if (isnan(p->a) || isnan(p->b))
		return isnan(p->a) && isnan(p->b) ? 0 : INFINITY;
	return p->a == p->b ? 0 : fabs(p->b - p->a);
}

static struct resume_series compare_series(const struct pairs *p, double from, double factor)
{
	struct resume_series r = {.pairs = p->n,
		.first_x = p->n ? p->list[0].x : NAN,
		.last_x = NAN,
		.x = NAN,
		.observed = NAN,
		.expected = NAN,
		.tolerance = NAN};

	for (size_t i = 0; i < p->n; i++) {
		const struct pair *q = &p->list[i];
		double room = factor > 0 ? tolerance(q, from, factor) : q->room + 1e-6 * fabs(q->a);
		double d = difference(q);
		if (d > room) {
			r.x = q->x;
			r.observed = q->b;
			r.expected = q->a;
			r.tolerance = room;
			return r;
		}
		r.matched++;
		r.last_x = q->x;
		r.worst = fmax(r.worst, d);
	}
	return r;
}

/*
 * Where it is not said from which step an attempt went on, its first mean may cover fewer steps
 * than the one of the dead branch: it is left out where all others would match.
 */
static void drop_partial(const struct stitch_attempt *a, struct pairs *p, double from)
{
	if (!a->mean || a->how >= STITCH_SAID || p->n < 3 ||
		difference(&p->list[0]) <= tolerance(&p->list[0], from, 1))
		return;
	for (size_t i = 1; i < 3; i++)
		if (difference(&p->list[i]) > tolerance(&p->list[i], from, 1))
			return;
	p->n--;
	memmove(p->list, p->list + 1, p->n * sizeof *p->list);
	p->first = false;
}

/* The chance that other batches lie within the tolerance of the first n pairs. */
static double chance_of(const struct pairs *p, size_t n, double from, double noise)
{
	double chance = 1;

	if (!(noise > 0))
		return 1;
	for (size_t i = 0; i < n; i++)
		chance *= erf(tolerance(&p->list[i], from, 1) / (noise * M_SQRT2));
	return chance;
}

/* The root of the mean square of the differences of pairs [first, n). */
static double rms(const struct pairs *p, size_t first)
{
	double sum = 0;
	size_t n = 0;

	for (size_t i = first; i < p->n; i++) {
		double d = difference(&p->list[i]);
		sum += d * d;
		n++;
	}
	return n ? sqrt(sum / (double)n) : NAN;
}

/* Whether pairs from `first` on have the same batches: 1 yes, 0 no, -1 cannot be told. */
static int same_batches(const struct pairs *p, size_t first, double noise)
{
	double r = correlation(p, first);

	if (!isnan(r))
		return r >= CORRELATED;
	if (p->n - first < 3 || !(noise > 0))
		return -1;
	return rms(p, first) < SMALL_SHARE * noise;
}

static bool batch_changed(const struct stitch *s, uint32_t a, uint32_t b, double from)
{
	const struct stitch_track *t = stitch_track_of(s, CURVE_SAMPLE_COUNT);
	struct pairs *p = t ? malloc(sizeof *p) : NULL;
	bool changed = false;

	if (!p)
		return false;
	find_pairs(t, a, b, from, p);
	/* Every sample counter that is off by the same is another matter. */
	if (p->n >= 2)
		changed = fabs((p->list[1].b - p->list[0].b) - (p->list[1].a - p->list[0].a)) >=
			  1 + p->list[1].room;
	free(p);
	return changed;
}

/*
 * Whether the first steps leave the dead branch by more than rounding does in so few, all to one
 * side: weights and batches are the same, the updates are not.
 */
static bool drifts(const struct pairs *p, double from)
{
	double sum = 0, square = 0, n = 0;
	bool far = false;

	for (size_t i = 0; i < p->n && p->list[i].x - from <= DRIFT_STEPS; i++) {
		double d = p->list[i].b - p->list[i].a;
		far = far || fabs(d) > RESUME_MOST * fabs(p->list[i].a) + p->list[i].room;
		sum += d;
		square += d * d;
		n++;
	}
	if (!far || n < 4)
		return false;
	double mean = sum / n, deviation = sqrt(fmax(0, square / n - mean * mean));
	return fabs(mean) > DRIFT_ERRORS * deviation / sqrt(n);
}

/* Of those pairs where both are numbers; 0 of none. */
static double mean_difference(const struct pairs *p)
{
	double sum = 0;
	size_t n = 0;

	for (size_t i = 0; i < p->n; i++) {
		double d = p->list[i].b - p->list[i].a;
		if (!isfinite(d))
			continue;
		sum += d;
		n++;
	}
	return n ? sum / (double)n : 0;
}

static void judge(struct resume_check *c, const struct pairs *loss)
{
	struct resume_series *l = &c->loss;
	double last_chance = chance_of(loss, l->matched, c->from, c->noise);

	c->correlation = correlation(loss, 0);
	c->offset = mean_difference(loss);
	if (c->lr.pairs > 0 && c->lr.matched < c->lr.pairs) {
		c->outcome = RESUME_DIFFERS;
		return;
	}
	if (l->matched > 0 && last_chance < CHANCE) {
		c->outcome = RESUME_MATCHES;
		/* The drift of rounding keeps the batches' ups and downs; other data does not. */
		if (l->matched < l->pairs && loss->n - l->matched > 2 * CORRELATED_LEAST &&
			same_batches(loss, l->matched, c->noise) == 0) {
			c->outcome = RESUME_DIFFERS;
			c->diverges = l->x;
		} else if (drifts(loss, c->from)) {
			c->outcome = RESUME_DIFFERS;
			c->updates = true;
		}
		return;
	}
	if (l->matched == l->pairs) {
		c->outcome = RESUME_COARSE;
		return;
	}
	switch (same_batches(loss, 0, c->noise)) {
	case 1:
		c->outcome = RESUME_SAME_BATCHES;
		return;
	case 0:
		c->outcome = RESUME_DIFFERS;
		return;
	default:
		break;
	}
	/* One or two points. Without a measure of the noise nothing can be said of them. */
	double d = difference(&loss->list[l->matched]);
	bool far = c->first && d > RESUME_MOST * fabs(loss->list[l->matched].a);
	c->outcome = c->noise > 0 || far ? RESUME_DIFFERS : RESUME_COARSE;
	c->weak = !(d > FAR * c->noise);
}

/* Which earlier attempt took the same steps from the same checkpoint: that which was rolled back
 * there, else the newest one that resumed from it too. */
static uint32_t find_reference(const struct stitch *s, const struct stitch_track *t, uint32_t i)
{
	const struct stitch_attempt *a = &s->attempts.items[i];

	if (a->parent != CURVE_NONE && s->attempts.items[a->parent].last_x > a->from)
		return a->parent;
	/* Two that began before the logs only if both say where. */
	if (a->parent == CURVE_NONE && (a->how < STITCH_SAID || a->from <= 0))
		return CURVE_NONE;
	for (uint32_t k = i; k-- > 0;) {
		const struct stitch_attempt *b = &s->attempts.items[k];
		size_t first, end;
		stitch_values_of(t, k, &first, &end);
		if (b->parent == a->parent && b->from == a->from && end > first &&
			(a->parent != CURVE_NONE || b->how >= STITCH_SAID))
			return k;
	}
	return CURVE_NONE;
}

static struct resume_check check(
	const struct stitch *s, const struct stitch_track *t, uint32_t i, struct pairs *p)
{
	const struct stitch_attempt *a = &s->attempts.items[i];
	const struct stitch_track *lr = stitch_track_of(s, CURVE_LR);
	const struct stitch_track *grad = stitch_track_of(s, CURVE_GRAD_NORM);
	struct resume_check c = {.attempt = i,
		.reference = find_reference(s, t, i),
		.from = a->from,
		.correlation = NAN,
		.noise = NAN,
		.diverges = NAN};

	if (c.reference == CURVE_NONE)
		return c;
	if (lr) {
		find_pairs(lr, c.reference, i, c.from, p);
		c.lr = compare_series(p, c.from, 0);
	}
	if (grad) {
		find_pairs(grad, c.reference, i, c.from, p);
		c.grad_norm = compare_series(p, c.from, 10);
	}
	find_pairs(t, c.reference, i, c.from, p);
	drop_partial(a, p, c.from);
	c.loss = compare_series(p, c.from, 1);
	c.noise = noise_around(s, t, c.reference, c.from);
	c.first = p->first;
	if (p->n == 0) {
		c.outcome = p->apart ? RESUME_INTERVALS : RESUME_ALONE;
		return c;
	}
	if (batch_changed(s, c.reference, i, c.from)) {
		c.outcome = RESUME_BATCH;
		return c;
	}
	judge(&c, p);
	return c;
}

size_t resume_check_all(const struct stitch *s, struct resume_check *list)
{
	const struct stitch_track *t = stitch_track_of(s, CURVE_LOSS);
	struct pairs *p = malloc(sizeof *p);
	size_t n = 0;

	if (!p)
		return SIZE_MAX;
	for (uint32_t i = 0; t && i < s->attempts.count; i++)
		if (s->attempts.items[i].parent != CURVE_NONE ||
			find_reference(s, t, i) != CURVE_NONE)
			list[n++] = check(s, t, i, p);
	free(p);
	return n;
}

/* The same at other steps ---------------------------------------------------------------------- */

struct probe {
	const struct stitch_value *v; /* the first values of the attempt */
	size_t n;
	double change[REPEAT_POINTS]; /* v[i + 1] - v[i], clipped */
	double clip;
};

static double clipped(double d, double clip)
{
	return d > clip ? clip : d < -clip ? -clip : d;
}

/* The correlation of the probe's changes with those of n values at `v`; NAN where steps differ. */
static double correlate(const struct probe *p, const struct stitch_value *v)
{
	double sx = 0, sy = 0, sxx = 0, syy = 0, sxy = 0, n = (double)(p->n - 1);

	for (size_t i = 0; i + 1 < p->n; i++) {
		double y = clipped(v[i + 1].value - v[i].value, p->clip);
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
		fabs(p->v[n].value - v[n].value) <= rounding(&p->v[n], &v[n]))
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
			rounding(&t->values.items[k], &t->values.items[i]))
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
	p->clip = CLIP * scale_of(changes, p->n - 1);
	for (size_t i = 0; i + 1 < p->n; i++)
		p->change[i] = clipped(p->change[i], p->clip);
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

/* Below the trend -------------------------------------------------------------------------------
 */

/* Values around a resume, with what is needed to compare means of stretches. */
struct stretch {
	double *x, *v, *sum; /* sum[i]: of the first i values */
	double sign;         /* -1: the values are turned around, to look for a high stretch */
	size_t n, at;        /* the first value behind the resume */
	double noise;        /* standard deviation of a point against its neighbours */
	double spread; /* by how much the error of a mean is larger than that of white noise */
};

static double mean_of(const struct stretch *g, size_t first, size_t end)
{
	return (g->sum[end] - g->sum[first]) / (double)(end - first);
}

static double error_of(const struct stretch *g, size_t n, size_t m)
{
	return g->noise * g->spread * sqrt(1 / (double)n + 1 / (double)m);
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
	double scale = n >= BLOCKS_LEAST ? scale_of(changes, n - 2) : NAN;
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
	g->noise = scale_of(copy, n);
	for (size_t i = 0; i + 1 < n; i++) {
		top += clipped(residual[i], CLIP * g->noise) *
		       clipped(residual[i + 1], CLIP * g->noise);
		bottom += clipped(residual[i], CLIP * g->noise) *
			  clipped(residual[i], CLIP * g->noise);
	}
	double phi = bottom > 0 ? top / bottom : 0;
	phi = phi < 0 ? 0 : phi > 0.95 ? 0.95 : phi;
	g->spread = sqrt((1 + phi) / (1 - phi));
	/* What wanders slowly shows in how means of neighbouring blocks differ. */
	g->spread = fmax(g->spread, BLOCK_SHARE * block_spread(g, BLOCK_POINTS));
}

static int gather_stretch(struct stretch *g, const struct stitch *s, const struct stitch_track *t,
	uint32_t attempt, double from, double sign, struct error *e)
{
	size_t first, end, before = 0;

	*g = (struct stretch){.sign = sign,
		.x = calloc(LOW_BEFORE + LOW_POINTS, sizeof *g->x),
		.v = calloc(LOW_BEFORE + LOW_POINTS, sizeof *g->v),
		.sum = calloc(LOW_BEFORE + LOW_POINTS + 1, sizeof *g->sum)};
	if (!g->x || !g->v || !g->sum) {
		release_stretch(g);
		return no_memory(e);
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
	if (moved * g->sign > 0 || fabs(rise) < 2 * error_of(g, quarter, quarter))
		return 0;
	*error = error_of(g, quarter, quarter) * ahead;
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
		double up =
			(mean_of(g, c, c + after) - mean_of(g, c - in, c)) / error_of(g, in, after);
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
	out->down = fall / hypot(error_of(g, before, in), unsure);
	out->up = best_up;
	out->points = best - g->at;
	out->last_x = g->x[best - 1];
	out->depth = (level + back) / 2 - mean_of(g, g->at, best);
	/* Back at the trend: not far above where it came from, and most of the way up. */
	bool returns = back <= level + fmax(3 * error_of(g, before, after), 0.5 * out->depth);
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

/* What the launches say -------------------------------------------------------------------------
 */

/* Whether a setting says what the model is trained on, or how: no folder, interval or address does.
 */
static bool matters(const char *name)
{
	static const char *const words[] = {"seed", "lr", "learning", "batch", "data", "split",
		"beta", "clip", "decay", "warmup", "eps", "seq", "dropout", "mix", "weight",
		"optim", "model"};
	static const char *const others[] = {
		"save", "load", "log", "interval", "path_out", "tensorboard"};
	bool yes = false;

	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		yes = yes || strcasestr(name, words[i]) != NULL;
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		yes = yes && strcasestr(name, others[i]) == NULL;
	return yes;
}

bool resume_changes(const struct stitch *s, uint32_t attempt, struct strbuf *out)
{
	uint32_t parent = s->attempts.items[attempt].parent;
	size_t begin = out->n;

	for (size_t i = 0; i < s->settings.count && parent != CURVE_NONE; i++) {
		const struct stitch_setting *x = &s->settings.items[i];
		if (x->attempt != attempt || !matters(x->name))
			continue;
		bool last = true;
		for (size_t k = i + 1; k < s->settings.count && last; k++)
			last = s->settings.items[k].attempt != attempt ||
			       strcmp(s->settings.items[k].name, x->name) != 0;
		const char *before = stitch_setting_of(s, parent, x->name);
		if (!last || !before || strcmp(before, x->value) == 0)
			continue;
		strbuf_add_text(out, out->n > begin ? ", " : "");
		text_add_escaped(out, slice_of(x->name), 60);
		strbuf_add_char(out, ' ');
		text_add_escaped(out, slice_of(before), 60);
		strbuf_add_text(out, " -> ");
		text_add_escaped(out, slice_of(x->value), 60);
	}
	return out->n > begin;
}
