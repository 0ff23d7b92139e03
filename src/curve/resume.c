/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "curve/resume.h"

#include <math.h>
#include <stdlib.h>

#include "base/text.h"
#include "curve/resume_parts.h"

#define BINARY_ROUNDING 2e-7 /* of float32, relative */
#define NOISE_POINTS 128u    /* before the resume, by whose changes the noise is known */
#define CHANCE 0.01          /* that other batches match as well: from there on it is too coarse */
#define CORRELATED 0.6       /* changes of the same batches under other randomness */
#define CORRELATED_LEAST 6u  /* changes that say so */
#define SMALL_SHARE 0.25     /* of the noise: differences that are no other batches' */
#define DRIFT_STEPS 30.0     /* after the checkpoint, in which rounding does not grow to the most */
#define DRIFT_ERRORS 3.0
#define FAR 6.0 /* noises, beyond which one pair alone is a difference */

int resume_no_memory(struct error *e)
{
	return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory to compare attempts");
}

/* Pairs ---------------------------------------------------------------------------------------- */

double resume_rounding(const struct stitch_value *a, const struct stitch_value *b)
{
	double size = fmax(fabs(a->value), fabs(b->value));

	return 0.5 * ((double)a->resolution + (double)b->resolution) * (1 + 1e-6) +
	       BINARY_ROUNDING * size;
}

/* Whether a value may be that of its step alone: nothing says that it is a mean. */
static bool may_be_of_step(const struct stitch *s, const struct stitch_value *v)
{
	unsigned mean = s->log->series.items[v->series].mean;

	return mean == CURVE_OF_STEP || mean == CURVE_OF_UNKNOWN;
}

/* Whether two values of one x are of the same steps, where `points` takes each for that of a step
 * alone if it may be. */
static bool same_steps(const struct stitch *s, const struct stitch_value *a,
	const struct stitch_value *b, bool points)
{
	return a->covers == b->covers || (isnan(a->covers) && isnan(b->covers)) ||
	       (points && may_be_of_step(s, a) && may_be_of_step(s, b));
}

/* What both attempts have behind x. */
static void find_pairs(const struct stitch *s, const struct stitch_track *t, uint32_t reference,
	uint32_t attempt, double from, bool points, struct resume_pairs *p)
{
	size_t i, iend, k, kend;

	p->n = 0;
	p->first = p->apart = false;
	stitch_values_of(t, reference, &i, &iend);
	stitch_values_of(t, attempt, &k, &kend);
	while (i < iend && t->values.items[i].x <= from)
		i++;
	while (i < iend && k < kend && p->n < RESUME_PAIRS_MAX) {
		const struct stitch_value *a = &t->values.items[i], *b = &t->values.items[k];
		if (a->x < b->x) {
			i++;
			continue;
		}
		if (b->x < a->x) {
			k++;
			continue;
		}
		if (same_steps(s, a, b, points)) {
			if (p->n == 0)
				p->first = a->x - (double)a->covers == from;
			p->list[p->n++] = (struct resume_pair){
				a->x, a->value, b->value, resume_rounding(a, b), 1, b->x, p->step};
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

double resume_scale_of(double *list, size_t n)
{
	if (n < 4)
		return NAN;
	for (size_t i = 0; i < n; i++)
		list[i] = fabs(list[i]);
	qsort(list, n, sizeof *list, compare_doubles);
	return 1.4826 * (list[(n - 1) / 2] + list[n / 2]) / 2;
}

double resume_clipped(double d, double clip)
{
	return d > clip ? clip : d < -clip ? -clip : d;
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
	return resume_scale_of(changes, n);
}

double resume_correlation(const struct resume_pairs *p, size_t first)
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

static double tolerance(const struct resume_pair *p, double from, double factor)
{
	double share =
		fmin(RESUME_MOST, RESUME_PER_STEP * fmax(1, (p->x - from) / p->step)) * factor;

	return p->room + share * fabs(p->a);
}

/* NaN in both is equal. */
static double difference(const struct resume_pair *p)
{
	if (isnan(p->a) || isnan(p->b))
		return isnan(p->a) && isnan(p->b) ? 0 : INFINITY;
	return p->a == p->b ? 0 : fabs(p->b - p->a);
}

static struct resume_series compare_series(const struct resume_pairs *p, double from, double factor)
{
	struct resume_series r = {.pairs = p->n,
		.first_x = p->n ? p->list[0].x : NAN,
		.last_x = NAN,
		.x = NAN,
		.observed = NAN,
		.expected = NAN,
		.tolerance = NAN};

	for (size_t i = 0; i < p->n; i++) {
		const struct resume_pair *q = &p->list[i];
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
 * than the one of the dead branch: it is left out where the next ones, if there are any, match.
 */
static void drop_partial(const struct stitch_attempt *a, struct resume_pairs *p, double from)
{
	if (!a->mean || a->how >= STITCH_SAID || p->n == 0 ||
		difference(&p->list[0]) <= tolerance(&p->list[0], from, 1))
		return;
	for (size_t i = 1; i < p->n && i < 3; i++)
		if (difference(&p->list[i]) > tolerance(&p->list[i], from, 1))
			return;
	p->n--;
	memmove(p->list, p->list + 1, p->n * sizeof *p->list);
	p->first = false;
}

/* The chance that other batches lie within the tolerance of the first n pairs. */
static double chance_of(const struct resume_pairs *p, size_t n, double from, double noise)
{
	double chance = 1;

	if (!(noise > 0))
		return 1;
	for (size_t i = 0; i < n; i++)
		chance *= erf(tolerance(&p->list[i], from, 1) / (noise * M_SQRT2));
	return chance;
}

/* The root of the mean square of the differences of pairs [first, n). */
static double rms(const struct resume_pairs *p, size_t first)
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
static int same_batches(const struct resume_pairs *p, size_t first, double noise)
{
	double r = resume_correlation(p, first);

	if (!isnan(r))
		return r >= CORRELATED;
	if (p->n - first < 3 || !(noise > 0))
		return -1;
	return rms(p, first) < SMALL_SHARE * noise;
}

/* How many samples the values behind x are usually of, where x itself counts them. */
static double usual_width(const struct stitch_track *t, uint32_t attempt, double x)
{
	double widths[NOISE_POINTS];
	size_t i, end, n = 0;

	stitch_values_of(t, attempt, &i, &end);
	for (; i < end && n < NOISE_POINTS; i++)
		if (t->values.items[i].x > x && t->values.items[i].covers > 0)
			widths[n++] = (double)t->values.items[i].covers;
	if (n == 0)
		return NAN;
	qsort(widths, n, sizeof *widths, compare_doubles);
	return widths[n / 2];
}

/*
 * Whether a step has another number of samples than it had in the reference behind the checkpoint:
 * what both consumed since then differs at the same step. A counter that is off by as much
 * everywhere is another matter.
 */
static bool batch_changed(
	const struct stitch *s, const struct stitch_track *t, struct resume_check *c)
{
	if (stitch_counts_amounts(s)) {
		c->before = usual_width(t, c->reference, c->from);
		c->after = usual_width(t, c->attempt, c->from);
		return fabs(c->before - c->after) > 0.01 * fmin(c->before, c->after);
	}
	double last =
		fmin(s->attempts.items[c->reference].last_x, s->attempts.items[c->attempt].last_x);
	double a = stitch_amount(s, c->reference, last) - stitch_amount(s, c->reference, c->from);
	double b = stitch_amount(s, c->attempt, last) - stitch_amount(s, c->attempt, c->from);

	c->before = stitch_batch(s, c->reference, c->from + 1);
	c->after = stitch_batch(s, c->attempt, c->from + 1);
	/* Tokens without padding are never the same for two batches. */
	double room = s->unit == CURVE_SAMPLES ? 0.01 : 0.25;
	return fabs(a - b) > room * fmin(a, b) && last > c->from;
}

/* Whether the launch says another batch, where what was consumed is not known. */
static bool batch_is_said(const struct stitch *s, const struct resume_check *c)
{
	static const char *const names[] = {"global_batch_size", "total_train_batch_size",
		"train_batch_size", "batch_size", "micro_batch_size", "per_device_train_batch_size",
		"train_micro_batch_size_per_gpu", "gradient_accumulation_steps"};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		const char *a = stitch_setting_of(s, c->reference, names[i]);
		const char *b = stitch_setting_of(s, c->attempt, names[i]);
		if (a && b && strcmp(a, b) != 0)
			return true;
	}
	return false;
}

/*
 * Whether the first steps leave the dead branch by more than rounding does in so few, all to one
 * side: weights and batches are the same, the updates are not.
 */
static bool drifts(const struct resume_pairs *p, double from)
{
	double sum = 0, square = 0, n = 0;
	bool far = false;

	for (size_t i = 0; i < p->n && p->list[i].x - from <= DRIFT_STEPS * p->list[i].step; i++) {
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
static double mean_difference(const struct resume_pairs *p)
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

static void judge(struct resume_check *c, const struct resume_pairs *loss)
{
	struct resume_series *l = &c->loss;
	double last_chance = chance_of(loss, l->matched, c->from, c->noise);

	c->correlation = resume_correlation(loss, 0);
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

/*
 * A step of another size has no counterpart in the dead branch, and neither have the learning rate
 * and the gradient norm: what can be compared is the loss over the same samples.
 */
static void check_amounts(const struct stitch *s, const struct stitch_track *t,
	struct resume_check *c, struct resume_pairs *p)
{
	c->by_amount = true;
	c->lr = c->grad_norm = (struct resume_series){.x = NAN, .first_x = NAN, .last_x = NAN};
	resume_stretches(s, t, c->reference, c->attempt, c->from, NAN, p);
	c->loss = compare_series(p, c->from, 1);
	c->first = p->first;
	if (p->n == 0) {
		c->outcome = RESUME_ALONE;
		return;
	}
	resume_judge_amounts(c, p);
}

/*
 * Where one logs every step, the other every tenth, and neither says that its values are means:
 * they may be of single steps. What does not match as means is then held against each other point
 * by point. Whether that tells anything else; *c says it then.
 */
static bool check_points(const struct stitch *s, const struct stitch_track *t,
	struct resume_check *c, struct resume_pairs *p)
{
	struct resume_check by_points = *c;

	find_pairs(s, t, c->reference, c->attempt, c->from, true, p);
	if (p->n == 0)
		return false;
	by_points.loss = compare_series(p, c->from, 1);
	by_points.first = by_points.weak = by_points.updates = false;
	by_points.diverges = NAN;
	judge(&by_points, p);
	if (by_points.outcome >= c->outcome)
		return false;
	*c = by_points;
	return true;
}

static struct resume_check check(
	const struct stitch *s, const struct stitch_track *t, uint32_t i, struct resume_pairs *p)
{
	const struct stitch_attempt *a = &s->attempts.items[i];
	const struct stitch_track *lr = stitch_track_of(s, CURVE_LR);
	const struct stitch_track *grad = stitch_track_of(s, CURVE_GRAD_NORM);
	struct resume_check c = {.attempt = i,
		.reference = find_reference(s, t, i),
		.from = a->from,
		.correlation = NAN,
		.noise = NAN,
		.diverges = NAN,
		.before = NAN,
		.after = NAN,
		.rms = NAN,
		.expected_by_chance = NAN,
		.chance = NAN};

	if (c.reference == CURVE_NONE)
		return c;
	if (lr) {
		find_pairs(s, lr, c.reference, i, c.from, false, p);
		c.lr = compare_series(p, c.from, 0);
	}
	if (grad) {
		find_pairs(s, grad, c.reference, i, c.from, false, p);
		c.grad_norm = compare_series(p, c.from, 10);
	}
	find_pairs(s, t, c.reference, i, c.from, false, p);
	drop_partial(a, p, c.from);
	c.loss = compare_series(p, c.from, 1);
	c.noise = noise_around(s, t, c.reference, c.from);
	c.first = p->first;
	if (batch_changed(s, t, &c)) {
		check_amounts(s, t, &c, p);
		return c;
	}
	bool stretched = p->n == 0 && p->apart;
	if (stretched) {
		resume_stretches(s, t, c.reference, i, c.from, 1, p);
		c.loss = compare_series(p, c.from, 1);
		c.first = p->first;
	}
	if (p->n == 0) {
		c.outcome = p->apart ? RESUME_INTERVALS : RESUME_ALONE;
		return c;
	}
	judge(&c, p);
	if (stretched && c.outcome > RESUME_MATCHES && check_points(s, t, &c, p))
		return c;
	if (c.outcome != RESUME_DIFFERS || isfinite(c.before + c.after) ||
		resume_guess_batch(s, t, &c, p))
		return c;
	if (batch_is_said(s, &c))
		c.outcome = RESUME_BATCH;
	return c;
}

size_t resume_check_all(const struct stitch *s, struct resume_check *list)
{
	const struct stitch_track *t = stitch_track_of(s, CURVE_LOSS);
	struct resume_pairs *p = malloc(sizeof *p);
	size_t n = 0;

	if (!p)
		return SIZE_MAX;
	p->step = stitch_step(s);
	for (uint32_t i = 0; t && i < s->attempts.count; i++)
		if (s->attempts.items[i].parent != CURVE_NONE ||
			find_reference(s, t, i) != CURVE_NONE)
			list[n++] = check(s, t, i, p);
	free(p);
	return n;
}

/* What the launches say -------------------------------------------------------------------------
 */

/* Whether a setting says what the model is trained on, or how: no folder, interval or address does.
 */
static bool matters(const char *name)
{
	static const char *const words[] = {"seed", "lr", "learning", "batch", "accum", "data",
		"split", "beta", "clip", "decay", "warmup", "eps", "seq", "dropout", "mix",
		"weight", "optim", "model"};
	static const char *const others[] = {
		"save", "load", "log", "interval", "path_out", "tensorboard"};
	bool yes = false;

	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		yes = yes || strcasestr(name, words[i]) != NULL;
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		yes = yes && strcasestr(name, others[i]) == NULL;
	return yes;
}

bool resume_changes(const struct stitch *s, uint32_t attempt, bool batch, struct strbuf *out)
{
	uint32_t parent = s->attempts.items[attempt].parent;
	size_t begin = out->n;

	for (size_t i = 0; i < s->settings.count && parent != CURVE_NONE; i++) {
		const struct stitch_setting *x = &s->settings.items[i];
		if (x->attempt != attempt || !matters(x->name) ||
			(!batch && (strcasestr(x->name, "batch") || strcasestr(x->name, "accum"))))
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
