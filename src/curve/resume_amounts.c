/* SPDX-License-Identifier: MIT */
/* Two attempts over the same samples, where their steps or their logged means are not the same. */
#include <math.h>
#include <stdlib.h>

#include "curve/resume_parts.h"

#define MISMATCH 0.1     /* of a stretch, by which its two ends may differ together */
#define BEGIN 0.02       /* of a value's width, by which two may begin elsewhere */
#define ADDED_MAX 1024u  /* values that are added up before one gives up */
#define CHANCE 0.01      /* that other samples lie as close: from there on they are the same */
#define JUDGED 8u        /* stretches that are judged so: later ones drift apart with the weights */
#define SAME 0.6         /* correlation of changes over the same samples */
#define SAME_SCALES 3.0  /* of its standard errors */
#define OTHER 0.3        /* and over others */
#define OTHER_CHANCE 0.1 /* others lie as close as that by chance, or closer */
#define CHANGES_LEAST 8u /* that say either */
#define GUESS_CHANCE 1e-4 /* likewise, where the batch itself is guessed, of several */
#define GUESS_SCALES 4.5  /* standard errors of the correlation, which say so as well */
#define FAR 6.0           /* times what other samples differ by: other weights */
#define OFFSET_SCALES 3.0

/* Stretches ------------------------------------------------------------------------------------ */

/* What a value is the mean of, or several that follow each other. */
struct span {
	double begin, end, sum, resolution, first_x, last_x;
	size_t n;
};

struct side {
	const struct stitch *s;
	const struct stitch_track *t;
	uint32_t attempt;
	size_t i, end;
	bool amounts;
	double from, pace; /* else so many units a step, from there on */
};

static double place_of(const struct side *g, double x)
{
	return g->amounts ? stitch_amount(g->s, g->attempt, x) : g->from + (x - g->from) * g->pace;
}

/* The next value whose steps are known; false at the end. */
static bool next_span(struct side *g, struct span *out)
{
	while (g->i < g->end) {
		const struct stitch_value *v = &g->t->values.items[g->i++];
		double begin = place_of(g, v->x - (double)v->covers), end = place_of(g, v->x);
		if (!(end > begin))
			continue;
		*out = (struct span){
			begin, end, v->value * (end - begin), (double)v->resolution, v->x, v->x, 1};
		return true;
	}
	return false;
}

static double width(const struct span *s)
{
	return s->end - s->begin;
}

/* Add the value that follows; false where there is none right behind it. */
static bool extend(struct side *g, struct span *to)
{
	struct span next;

	if (to->n >= ADDED_MAX || !next_span(g, &next) ||
		fabs(next.begin - to->end) > BEGIN * width(&next))
		return false;
	to->end = next.end;
	to->sum += next.sum;
	to->resolution = fmax(to->resolution, next.resolution);
	to->last_x = next.last_x;
	to->n++;
	return true;
}

static struct side side_of(const struct stitch *s, const struct stitch_track *t, uint32_t attempt,
	double from, double pace)
{
	struct side g = {.s = s,
		.t = t,
		.attempt = attempt,
		.amounts = isnan(pace),
		.from = from,
		.pace = pace};

	stitch_values_of(t, attempt, &g.i, &g.end);
	while (g.i < g.end && t->values.items[g.i].x <= from)
		g.i++;
	return g;
}

static bool add_stretch(struct resume_pairs *p, const struct span *a, const struct span *b)
{
	double x = a->sum / width(a), y = b->sum / width(b);
	struct stitch_value ends[2] = {{.value = x, .resolution = (float)a->resolution},
		{.value = y, .resolution = (float)b->resolution}};

	p->list[p->n++] = (struct resume_pair){
		b->last_x, x, y, resume_rounding(&ends[0], &ends[1]), a->n, b->first_x, p->step};
	return isfinite(x) && isfinite(y) && p->n < RESUME_PAIRS_MAX;
}

void resume_stretches(const struct stitch *s, const struct stitch_track *t, uint32_t reference,
	uint32_t attempt, double from, double pace, struct resume_pairs *p)
{
	struct side ga = side_of(s, t, reference, from, isnan(pace) ? NAN : 1);
	struct side gb = side_of(s, t, attempt, from, pace);
	double start = place_of(&gb, from);
	struct span a, b;
	bool more;

	p->n = 0;
	p->first = false;
	for (more = next_span(&ga, &a) && next_span(&gb, &b); more;) {
		double room = BEGIN * fmin(width(&a), width(&b));
		if (a.begin < b.begin - room || a.begin < start - room) {
			more = next_span(&ga, &a);
			continue;
		}
		if (b.begin < a.begin - room) {
			more = next_span(&gb, &b);
			continue;
		}
		while (more && fabs(a.end - b.end) + fabs(a.begin - b.begin) >
				       MISMATCH * fmin(width(&a), width(&b)))
			more = a.end < b.end ? extend(&ga, &a) : extend(&gb, &b);
		if (!more)
			break;
		p->first = p->n == 0 ? fabs(b.begin - start) <= room : p->first;
		more = add_stretch(p, &a, &b) && next_span(&ga, &a) && next_span(&gb, &b);
	}
	/* A value that is none ends what can be compared. */
	if (p->n > 0 && !(isfinite(p->list[p->n - 1].a) && isfinite(p->list[p->n - 1].b)))
		p->n--;
}

/* Judging -------------------------------------------------------------------------------------- */

/* The chance that a chi-square variate of n degrees of freedom is at most v: the series of the
 * incomplete gamma function, for small n. */
static double chi_square(double v, size_t n)
{
	double a = (double)n / 2, x = v / 2;
	double term = 1 / a, sum = term;

	if (!(x > 0))
		return 0;
	for (unsigned k = 1; k < 400 && term > 1e-14 * sum; k++) {
		term *= x / (a + k);
		sum += term;
	}
	return fmin(1, sum * exp(a * log(x) - x - lgamma(a)));
}

/* How far the differences of the first stretches are from those of other samples. */
static void weigh(struct resume_check *c, const struct resume_pairs *p)
{
	double sum = 0, observed = 0, other = 0;
	size_t n = p->n < JUDGED ? p->n : JUDGED;

	for (size_t i = 0; i < n; i++) {
		const struct resume_pair *q = &p->list[i];
		double d = fmax(fabs(q->b - q->a), q->room);
		double usual = c->noise * c->noise / (double)q->n;
		sum += d * d / usual;
		observed += d * d;
		other += usual;
	}
	c->chance = c->noise > 0 ? chi_square(sum, n) : 1;
	c->rms = sqrt(observed / (double)n);
	c->expected_by_chance = sqrt(other / (double)n);
}

/* By how much the first stretch may differ though its weights are right: what the updates within it
 * do, as later stretches show by how much their differences change. */
static double first_room(const struct resume_pairs *p)
{
	double changes[RESUME_PAIRS_MAX];
	size_t n = 0;

	for (size_t i = 1; i < p->n; i++)
		changes[n++] =
			(p->list[i].b - p->list[i].a) - (p->list[i - 1].b - p->list[i - 1].a);
	double scale = resume_scale_of(changes, n);
	return p->list[0].room + RESUME_MOST * fabs(p->list[0].a) +
	       (isnan(scale) ? 0 : OFFSET_SCALES * scale);
}

static double sum_of_differences(const struct resume_pairs *p)
{
	double sum = 0;

	for (size_t i = 0; i < p->n; i++)
		sum += p->list[i].b - p->list[i].a;
	return sum;
}

/* The correlation in its standard errors, by Fisher's transform; each value is in two changes. */
static double scales_of(const struct resume_check *c, const struct resume_pairs *p)
{
	return atanh(fmin(c->correlation, 1 - 1e-12)) * sqrt(((double)p->n - 4) / 1.5);
}

static bool changes_are(const struct resume_check *c, const struct resume_pairs *p, bool same)
{
	if (p->n <= CHANGES_LEAST || isnan(c->correlation))
		return false;
	return same ? c->correlation >= SAME && scales_of(c, p) > SAME_SCALES
		    : c->correlation < OTHER;
}

void resume_judge_amounts(struct resume_check *c, const struct resume_pairs *p)
{
	const struct resume_pair *first = &p->list[0];

	weigh(c, p);
	c->correlation = resume_correlation(p, 0);
	c->offset = sum_of_differences(p) / (double)p->n;
	c->loss.tolerance = first_room(p);
	double d = fabs(first->b - first->a);
	bool far = d > c->loss.tolerance + FAR * c->noise / sqrt((double)first->n);
	if (c->chance < CHANCE || changes_are(c, p, true)) {
		bool off = c->first && p->n >= 4 && d > c->loss.tolerance;
		c->outcome = off ? RESUME_SAME_BATCHES : RESUME_MATCHES;
	} else if ((c->first && c->noise > 0 && far) ||
		   (c->chance > OTHER_CHANCE && changes_are(c, p, false))) {
		c->outcome = RESUME_DIFFERS;
		c->weak = !(c->first && far);
	} else {
		c->outcome = RESUME_COARSE;
	}
	if (c->outcome == RESUME_MATCHES) {
		c->loss.matched = p->n;
		c->loss.first_x = first->first_x;
		c->loss.last_x = p->list[p->n - 1].x;
		c->loss.worst = 0;
		for (size_t i = 0; i < p->n; i++)
			c->loss.worst = fmax(c->loss.worst, fabs(p->list[i].b - p->list[i].a));
		return;
	}
	c->loss.matched = 0;
	c->loss.x = first->x;
	c->loss.observed = first->b;
	c->loss.expected = first->a;
}

bool resume_guess_batch(const struct stitch *s, const struct stitch_track *t,
	struct resume_check *c, struct resume_pairs *p)
{
	static const double paces[] = {2, 0.5, 4, 0.25, 8, 0.125, 3, 1 / 3.0, 1.5, 2 / 3.0};

	for (size_t i = 0; i < sizeof paces / sizeof *paces; i++) {
		struct resume_check guess = *c;
		resume_stretches(s, t, c->reference, c->attempt, c->from, paces[i], p);
		if (p->n <= CHANGES_LEAST)
			continue;
		resume_judge_amounts(&guess, p);
		if (guess.outcome != RESUME_MATCHES || !changes_are(&guess, p, true) ||
			!(guess.chance < GUESS_CHANCE || scales_of(&guess, p) > GUESS_SCALES))
			continue;
		*c = guess;
		c->by_amount = c->guessed = true;
		c->before = 1;
		c->after = paces[i];
		c->first = p->first;
		c->lr = c->grad_norm =
			(struct resume_series){.x = NAN, .first_x = NAN, .last_x = NAN};
		return true;
	}
	return false;
}
