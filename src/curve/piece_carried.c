/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "curve/piece_parts.h"

#define GIVEN_UP_LEAST 2u   /* points behind a launch's end that are another's, … */
#define GIVEN_UP_ALIKE 0.25 /* … but for a share that is so by chance */

static bool says_launch(const struct curve_log *l, const struct piece *p)
{
	for (size_t i = p->first_mark; i < p->end_mark; i++) {
		const struct curve_mark *m = &l->marks.items[i];
		if (m->before <= p->first && (m->kind == CURVE_LAUNCH || m->kind == CURVE_LOADED))
			return true;
	}
	return l->files.items[p->file].span == CURVE_SPAN_LAUNCH;
}

/* Whether it goes along with the carried piece from the first x that both have. */
static bool goes_along(const struct piece_agreement *g)
{
	return g->prefix >= PIECE_COMPARED_LEAST;
}

/*
 * Whether a launch of its own begins inside a carried piece, of which another log has what is up to
 * `earliest`. What only has no beginning may be the end of a log whose beginning is lost.
 */
static bool begins_inside(const struct curve_log *l, const struct piece *carried,
	const struct piece *p, double earliest)
{
	return p->first_x > carried->first_x && p->first_x <= carried->last_x &&
	       (says_launch(l, p) || earliest < p->first_x);
}

/* Whether a launch that it went along with was given up: what that logged from there on is another
 * thing. */
static bool is_given_up(const struct piece_agreement *g)
{
	size_t rest = g->compared - g->prefix, alike = g->agreeing - g->prefix;

	return rest >= GIVEN_UP_LEAST && (double)alike <= GIVEN_UP_ALIKE * (double)rest;
}

/* The first value of a carried piece behind x, or NAN. */
static double value_behind(const struct pieces *all, const struct piece *carried, double x)
{
	const struct piece_value *v = all->values.items + carried->first_value;

	for (size_t i = 0; i < carried->values; i++)
		if (v[i].x > x)
			return v[i].x;
	return NAN;
}

/* The first x inside of it at which a launch begins, or NAN. `with` has room for all pieces. */
static double first_launch(const struct pieces *all, const struct curve_log *l,
	const struct piece *carried, struct piece_agreement *with)
{
	double first = NAN, earliest = INFINITY;

	for (size_t i = 0; i < all->list.count; i++) {
		const struct piece *p = &all->list.items[i];
		with[i] = (struct piece_agreement){0};
		if (p->values > 0 && !piece_is_carried(l, p))
			with[i] = piece_compare(all, carried, p, 0, 1, SIZE_MAX);
		if (goes_along(&with[i]))
			earliest = fmin(earliest, p->first_x);
	}
	for (size_t i = 0; i < all->list.count; i++) {
		const struct piece *p = &all->list.items[i];
		double x = NAN;
		if (!goes_along(&with[i]))
			continue;
		if (begins_inside(l, carried, p, earliest))
			x = p->first_x;
		else if (is_given_up(&with[i]))
			x = value_behind(all, carried, with[i].prefix_x);
		first = first <= x || isnan(x) ? first : x;
	}
	return first;
}

/* Cut the piece at `i` before x, which is of one of its values but not of the first. */
static int cut_at(
	struct pieces *all, const struct curve_log *l, size_t i, double x, struct error *e)
{
	if (!array_push(&all->list, CURVE_NONE - 1))
		return piece_no_memory(e);
	struct piece *a = &all->list.items[i], *b = a + 1;
	memmove(b, a, (all->list.count - i - 1) * sizeof *a);
	while (b->first < b->end && !(l->points.items[b->first].x >= x))
		b->first++;
	a->end = b->first;
	while (b->first_mark < b->end_mark && l->marks.items[b->first_mark].before < b->first)
		b->first_mark++;
	a->end_mark = b->first_mark;
	b->loaded = NAN;
	const struct piece_value *v = all->values.items + a->first_value;
	size_t kept = 0;
	while (v[kept].x < x)
		kept++;
	b->first_value += kept;
	b->values -= kept;
	b->first_x = v[kept].x;
	a->values = kept;
	a->last_x = v[kept - 1].x;
	return RP_OK;
}

int piece_cut_carried(struct pieces *all, const struct curve_log *l, struct error *e)
{
	struct piece_agreement *with = NULL;
	size_t room = 0;
	int status = RP_OK;

	for (size_t i = 0; i < all->list.count && status == RP_OK; i++) {
		const struct piece *p = &all->list.items[i];
		if (!piece_is_carried(l, p) || p->values == 0)
			continue;
		if (room < all->list.count) {
			room = 2 * all->list.count;
			free(with);
			with = calloc(room, sizeof *with);
		}
		if (!with) {
			status = piece_no_memory(e);
			break;
		}
		double x = first_launch(all, l, p, with);
		/* What is behind the cut is looked at next. */
		if (!isnan(x))
			status = cut_at(all, l, i, x, e);
	}
	free(with);
	return status;
}
