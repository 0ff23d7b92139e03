/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "curve/stitch_parts.h"

/* Tracks --------------------------------------------------------------------------------------- */

/* Quantities of which there are several, told apart by their names. */
static bool has_names(enum curve_role role)
{
	return role == CURVE_SOURCE_LOSS || role == CURVE_VALID_LOSS || role == CURVE_PART_LOSS ||
	       role == CURVE_OTHER;
}

static const char *name_of(const struct curve_series *s)
{
	if (!has_names(s->role))
		return "";
	return s->role == CURVE_SOURCE_LOSS && s->source && *s->source ? s->source : s->name;
}

/* A mean over an epoch or over all is no curve. */
static bool is_of_steps(enum curve_mean mean)
{
	return mean == CURVE_OF_STEP || mean == CURVE_OF_INTERVAL || mean == CURVE_OF_UNKNOWN;
}

static bool belongs(
	const struct stitch_track *t, const struct curve_series *s, enum curve_unit axis)
{
	return s->unit == axis && s->role == t->role && strcmp(name_of(s), t->name) == 0 &&
	       (is_of_steps(s->mean) || s->role != CURVE_LOSS);
}

static int add_tracks(struct stitch *s, const struct curve_log *l, struct error *e)
{
	for (unsigned role = 0; role < CURVE_ROLES; role++) {
		for (size_t i = 0; i < l->series.count; i++) {
			const struct curve_series *x = &l->series.items[i];
			bool there = false;
			if (x->role != role || x->unit != s->axis || x->points == 0)
				continue;
			for (size_t k = 0; k < s->tracks.count && !there; k++)
				there = belongs(&s->tracks.items[k], x, s->axis);
			if (there || (role == CURVE_LOSS && !is_of_steps(x->mean)))
				continue;
			struct stitch_track *t = array_push(&s->tracks, SIZE_MAX);
			if (!t)
				return stitch_no_memory(e);
			*t = (struct stitch_track){
				.role = (uint8_t)role, .name = name_of(x), .interval = NAN};
		}
	}
	return RP_OK;
}

/* A point of an attempt, on its way into a track. */
struct gathered {
	struct stitch_value v;
	uint32_t rank; /* of its series among those of the attempt: the lowest is taken first */
	size_t at;
};

static int compare_gathered(const void *pa, const void *pb)
{
	const struct gathered *a = pa, *b = pb;

	if (a->v.attempt != b->v.attempt)
		return a->v.attempt < b->v.attempt ? -1 : 1;
	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	if (a->v.x != b->v.x)
		return a->v.x < b->v.x ? -1 : 1;
	return (a->at > b->at) - (a->at < b->at);
}

static int compare_values(const void *pa, const void *pb)
{
	const struct stitch_value *a = pa, *b = pb;

	if (a->attempt != b->attempt)
		return a->attempt < b->attempt ? -1 : 1;
	return (a->x > b->x) - (a->x < b->x);
}

struct gathering {
	ARRAY(struct gathered) list;
	uint32_t *rank; /* by series */
};

static int gather_track(struct stitch_building *b, struct stitch_track *t,
	const struct stitch_options *o, struct gathering *g, struct error *e)
{
	const struct curve_log *l = b->l;

	for (size_t i = 0; i < b->pieces.list.count; i++) {
		const struct piece *p = &b->pieces.list.items[i];
		if (b->attempt_of[i] == CURVE_NONE)
			continue;
		for (size_t k = p->first; k < p->end; k++) {
			const struct curve_point *q = &l->points.items[k];
			double x = q->x + p->offset;
			if (!belongs(t, &l->series.items[q->series], b->s->axis) || !isfinite(x) ||
				x < o->first || x > o->last || x <= p->copied)
				continue;
			struct gathered *v = array_push(&g->list, SIZE_MAX);
			if (!v)
				return stitch_no_memory(e);
			bool scaled = p->factor != 1 && t->role == CURVE_LOSS;
			*v = (struct gathered){
				.v = {.x = x,
					.value = scaled ? q->value * p->factor : q->value,
					.wall = q->wall,
					.resolution = q->resolution,
					.covers = NAN,
					.attempt = b->attempt_of[i],
					.series = q->series},
				.at = k};
		}
	}
	return RP_OK;
}

struct ranked {
	uint32_t series;
	uint64_t points;
};

static int compare_ranked(const void *pa, const void *pb)
{
	const struct ranked *a = pa, *b = pb;

	if (a->points != b->points)
		return a->points > b->points ? -1 : 1;
	return (a->series > b->series) - (a->series < b->series);
}

/* Of the series that a track has, the one with most points goes first. */
static int rank_gathered(struct stitch_building *b, struct gathering *g, struct error *e)
{
	size_t n = b->l->series.count;
	struct ranked *list = calloc(n + 1, sizeof *list);

	if (!list)
		return stitch_no_memory(e);
	for (uint32_t i = 0; i < n; i++)
		list[i].series = i;
	for (size_t i = 0; i < g->list.count; i++)
		list[g->list.items[i].v.series].points++;
	qsort(list, n, sizeof *list, compare_ranked);
	for (uint32_t i = 0; i < n; i++)
		g->rank[list[i].series] = i;
	for (size_t i = 0; i < g->list.count; i++)
		g->list.items[i].rank = g->rank[g->list.items[i].v.series];
	free(list);
	return RP_OK;
}

static float steps_covered(const struct stitch *s, const struct curve_log *l,
	const struct stitch_value *v, const struct stitch_value *before)
{
	const struct stitch_attempt *a = &s->attempts.items[v->attempt];

	switch (l->series.items[v->series].mean) {
	case CURVE_OF_STEP:
		if (!stitch_counts_amounts(s))
			return 1;
		/* Who logs over samples logs each step. */
		__attribute__((fallthrough));
	case CURVE_OF_UNKNOWN:
	case CURVE_OF_INTERVAL:
		if (before)
			return (float)(v->x - before->x);
		return a->from == a->from_least ? (float)(v->x - a->from) : NAN;
	default:
		return NAN;
	}
}

/*
 * Take an attempt's points: those of its best series, and of others of the same kind what lies
 * beyond its ends (a log that was torn goes on elsewhere).
 */
static int take_attempt(struct stitch_building *b, struct stitch_track *t,
	const struct gathered *list, size_t n, struct error *e)
{
	size_t begin = t->values.count;
	const struct curve_series *best = &b->l->series.items[list[0].v.series];
	double first = NAN, last = NAN;

	for (size_t i = 0; i < n; i++) {
		const struct gathered *g = &list[i];
		bool own = g->v.series == list[0].v.series;
		if (!own && (b->l->series.items[g->v.series].mean != best->mean ||
				    (g->v.x >= first && g->v.x <= last)))
			continue;
		if (i + 1 < n && list[i + 1].v.series == g->v.series && list[i + 1].v.x == g->v.x)
			continue;
		struct stitch_value *v = array_push(&t->values, SIZE_MAX);
		if (!v)
			return stitch_no_memory(e);
		*v = g->v;
		first = own ? stitch_fewer(first, v->x) : first;
		last = own ? stitch_more(last, v->x) : last;
	}
	struct stitch_value *values = t->values.items + begin;
	size_t kept = t->values.count - begin;
	qsort(values, kept, sizeof *values, compare_values);
	/* Two other series may both go on behind the best one. */
	size_t out = 0;
	for (size_t i = 0; i < kept; i++)
		if (out == 0 || values[i].x != values[out - 1].x)
			values[out++] = values[i];
	t->values.count = begin + out;
	for (size_t i = 0; i < out; i++)
		values[i].covers = steps_covered(b->s, b->l, &values[i], i ? &values[i - 1] : NULL);
	return RP_OK;
}

static int compare_doubles(const void *pa, const void *pb)
{
	double a = *(const double *)pa, b = *(const double *)pb;

	return (a > b) - (a < b);
}

/* Which points survive, in which order, and how far apart they usually are. */
static int lay_line(struct stitch *s, struct stitch_track *t, struct error *e)
{
	uint32_t chain = 0;
	double *steps = calloc(t->values.count + 1, sizeof *steps);
	uint32_t *order = calloc(s->attempts.count + 1, sizeof *order);

	if (!steps || !order || !array_reserve(&t->line, t->values.count, SIZE_MAX)) {
		free(steps);
		free(order);
		return stitch_no_memory(e);
	}
	for (uint32_t i = s->tip; i != CURVE_NONE; i = s->attempts.items[i].parent)
		order[chain++] = i;
	while (chain-- > 0) {
		const struct stitch_attempt *a = &s->attempts.items[order[chain]];
		size_t first, end;
		stitch_values_of(t, order[chain], &first, &end);
		for (size_t i = first; i < end; i++) {
			struct stitch_value *v = &t->values.items[i];
			v->alive = v->x > a->alive_from && v->x <= a->alive_to;
			if (v->alive)
				t->line.items[t->line.count++] = (uint32_t)i;
		}
	}
	size_t n = 0;
	for (size_t i = 1; i < t->line.count; i++)
		steps[n++] = t->values.items[t->line.items[i]].x -
			     t->values.items[t->line.items[i - 1]].x;
	if (n > 0) {
		qsort(steps, n, sizeof *steps, compare_doubles);
		t->interval = steps[n / 2];
	}
	t->dead = t->values.count - t->line.count;
	free(steps);
	free(order);
	return RP_OK;
}

static int fill_track(struct stitch_building *b, struct stitch_track *t,
	const struct stitch_options *o, struct gathering *g, struct error *e)
{
	g->list.count = 0;
	if (gather_track(b, t, o, g, e) < 0 || rank_gathered(b, g, e) < 0)
		return e->status;
	if (g->list.count > 1)
		qsort(g->list.items, g->list.count, sizeof *g->list.items, compare_gathered);
	for (size_t i = 0; i < g->list.count;) {
		size_t end = i + 1;
		while (end < g->list.count &&
			g->list.items[end].v.attempt == g->list.items[i].v.attempt)
			end++;
		if (take_attempt(b, t, g->list.items + i, end - i, e) < 0)
			return e->status;
		i = end;
	}
	return lay_line(b->s, t, e);
}

/* The points of each attempt, by the first track. */
static void count_points(struct stitch *s)
{
	const struct stitch_track *t = s->tracks.count ? s->tracks.items : NULL;

	for (uint32_t i = 0; t && i < s->attempts.count; i++) {
		struct stitch_attempt *a = &s->attempts.items[i];
		size_t first, end;
		stitch_values_of(t, i, &first, &end);
		a->points = end - first;
		for (size_t k = first; k < end; k++)
			a->dead += !t->values.items[k].alive;
	}
}

int stitch_fill_tracks(struct stitch_building *b, const struct stitch_options *o, struct error *e)
{
	struct gathering g = {.rank = calloc(b->l->series.count + 1, sizeof *g.rank)};
	int status = g.rank ? add_tracks(b->s, b->l, e) : stitch_no_memory(e);

	for (size_t i = 0; i < b->s->tracks.count && status == RP_OK; i++)
		status = fill_track(b, &b->s->tracks.items[i], o, &g, e);
	array_release(&g.list);
	free(g.rank);
	if (status == RP_OK)
		count_points(b->s);
	return status;
}
