/* SPDX-License-Identifier: MIT */
/* In which order launches happened: by the clock, by files that are carried on, by their steps. */
#include <stdlib.h>

#include "curve/stitch_parts.h"

#define ORDERED_MAX 1000u /* launches that are put in order by their steps */

static int by_order(const void *pa, const void *pb)
{
	const struct stitch_launch *a = pa, *b = pb;

	if (a->order != b->order)
		return a->order < b->order ? -1 : 1;
	return (a->piece > b->piece) - (a->piece < b->piece);
}

static int by_wall(const void *pa, const void *pb)
{
	const struct stitch_launch *a = pa, *b = pb;

	if (a->wall != b->wall)
		return a->wall < b->wall ? -1 : 1;
	return by_order(pa, pb);
}

static uint32_t root_of(const struct pieces *all, size_t i)
{
	uint32_t as = all->list.items[i].same_as;

	return as == CURVE_NONE ? (uint32_t)i : as;
}

/*
 * By files and places in them. A file that is carried on shows which of two launches was the later
 * one; what it alone has comes next to the launch whose log there is. `order` has room for all
 * pieces; what it holds of those that are the same as others means nothing.
 */
static void order_pieces(const struct stitch_building *b, uint64_t *order)
{
	const struct pieces *all = &b->pieces;

	for (size_t i = 0; i < all->list.count; i++)
		order[i] = 2 * i + 1;
	for (size_t i = 1; i < all->list.count; i++) {
		const struct piece *p = &all->list.items[i], *before = p - 1;
		if (p->file != before->file || !piece_is_carried(b->l, p))
			continue;
		uint32_t own = root_of(all, i), other = root_of(all, i - 1);
		bool known = !piece_is_carried(b->l, &all->list.items[own]);
		bool other_known = !piece_is_carried(b->l, &all->list.items[other]);
		if (known && !other_known)
			order[other] = order[own] - 1;
		else if (order[own] < order[other] || (other_known && !known))
			order[own] = order[other] + 1;
	}
}

/* A clock that was set back does not turn around what stands in one file. */
static void order_by_clock(const struct stitch_building *b, struct stitch_launch *list, size_t n)
{
	double latest = -INFINITY;
	uint32_t file = CURVE_NONE;

	for (size_t i = 0; i < n; i++) {
		const struct piece *p = &b->pieces.list.items[list[i].piece];
		if (p->file == file && list[i].wall < latest)
			list[i].wall = latest;
		file = p->file;
		latest = list[i].wall;
	}
	qsort(list, n, sizeof *list, by_wall);
}

/* By steps ------------------------------------------------------------------------------------- */

/* A launch as its steps show it. */
struct span {
	struct stitch_launch launch;
	uint32_t file;
	double from;  /* what it went on from, at the latest; 0: nothing */
	double reach; /* what may have gone on from it lies before this */
	bool placed;
};

static struct span span_of(const struct stitch_building *b, const struct stitch_launch *launch)
{
	const struct piece *p = &b->pieces.list.items[launch->piece];
	double interval = isnan(p->interval) ? 1 : p->interval;
	double first = p->first_x + p->offset;
	double slack = b->s->axis == CURVE_EPOCHS ? interval / 2 : 1;
	struct span s = {.launch = *launch,
		.file = p->file,
		.from = isfinite(p->loaded)        ? p->loaded + p->renumbered
			: first > interval + slack ? first - interval
						   : 0,
		.reach = p->last_x + p->offset + interval};

	if (p->copy_of != CURVE_NONE)
		s.from = fmax(s.from, p->copied);
	return s;
}

/* Whether b is a fresh start, or may have gone on from a. */
static bool goes_on(const struct span *b, const struct span *a)
{
	return b->from <= 0 || (a->from < b->from && a->reach > b->from);
}

/* The same of any that has its place. */
static bool has_ground(const struct span *list, size_t n, const struct span *b)
{
	bool found = b->from <= 0;

	for (size_t i = 0; i < n && !found; i++)
		found = list[i].placed && goes_on(b, &list[i]);
	return found;
}

/* Whether it stands behind another one that has no place yet: in its file, or by the clock. */
static bool must_wait(const struct span *list, size_t n, size_t i)
{
	for (size_t k = 0; k < n; k++)
		if (!list[k].placed && k != i &&
			((list[k].file == list[i].file && k < i) ||
				list[k].launch.wall < list[i].launch.wall))
			return true;
	return false;
}

/* The next one: the first that has something to go on from, else the one that begins earliest. */
static size_t next_of(const struct span *list, size_t n)
{
	size_t best = SIZE_MAX, first = SIZE_MAX;

	for (size_t i = 0; i < n; i++) {
		if (list[i].placed)
			continue;
		first = first == SIZE_MAX ? i : first;
		if (must_wait(list, n, i))
			continue;
		if (has_ground(list, n, &list[i]))
			return i;
		if (best == SIZE_MAX || list[i].from < list[best].from)
			best = i;
	}
	return best == SIZE_MAX ? first : best;
}

static void tell_moved(
	struct stitch_building *b, const struct span *moved, const struct span *before)
{
	stitch_note(b->s,
		"%s is put behind %s, against their names: it begins at %g, and no log says when it was written",
		b->l->files.items[moved->file].path, b->l->files.items[before->file].path,
		b->pieces.list.items[moved->launch.piece].first_x);
}

/*
 * What is named first begins where nothing leads to, and another log begins before it: the names
 * say nothing of the order. O(n^3), of at most ORDERED_MAX.
 */
static void order_by_steps(
	struct stitch_building *b, struct stitch_launch *list, struct span *spans, size_t n)
{
	size_t last = SIZE_MAX;

	for (size_t i = 0; i < n; i++) {
		size_t next = next_of(spans, n);
		spans[next].placed = true;
		list[i] = spans[next].launch;
		if (last != SIZE_MAX && next < last && spans[next].file != spans[last].file)
			tell_moved(b, &spans[next], &spans[last]);
		last = next;
	}
}

static bool is_out_of_order(const struct span *spans, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (spans[i].file != spans[0].file && spans[i].from < spans[0].from)
			return true;
	return false;
}

/* Two logs, one behind the other, that could as well have been written the other way round. */
static void tell_doubt(struct stitch_building *b, struct span *spans, size_t n)
{
	for (size_t i = 0; i + 1 < n; i++) {
		const struct span *one = &spans[i], *two = one + 1;
		bool clocks = isfinite(one->launch.wall) && isfinite(two->launch.wall);
		if (!clocks && one->file != two->file && has_ground(spans, n, two) &&
			(has_ground(spans, n, one) || goes_on(one, two))) {
			stitch_note(b->s,
				"%s is taken to be older than %s, as they are named: nothing in them tells",
				b->l->files.items[one->file].path,
				b->l->files.items[two->file].path);
			return;
		}
		spans[i].placed = true;
	}
}

/* Where clocks do not tell, and no file is carried on. */
static int order_unclocked(
	struct stitch_building *b, struct stitch_launch *list, size_t n, struct error *e)
{
	struct span *spans = calloc(n, sizeof *spans);

	if (!spans)
		return stitch_no_memory(e);
	for (size_t i = 0; i < n; i++)
		spans[i] = span_of(b, &list[i]);
	if (is_out_of_order(spans, n)) {
		order_by_steps(b, list, spans, n);
		for (size_t i = 0; i < n; i++)
			spans[i] = span_of(b, &list[i]);
	}
	tell_doubt(b, spans, n);
	free(spans);
	return RP_OK;
}

int stitch_order_launches(
	struct stitch_building *b, struct stitch_launch *list, size_t n, struct error *e)
{
	size_t count = b->pieces.list.count;
	uint64_t *order = calloc(count + 1, sizeof *order);
	bool clocks = true, carried = false;

	if (!order)
		return stitch_no_memory(e);
	order_pieces(b, order);
	for (size_t i = 0; i < n; i++) {
		const struct piece *p = &b->pieces.list.items[list[i].piece];
		list[i].order = order[list[i].piece];
		clocks = clocks && isfinite(list[i].wall);
		carried = carried || piece_is_carried(b->l, p);
	}
	free(order);
	qsort(list, n, sizeof *list, by_order);
	if (clocks)
		order_by_clock(b, list, n);
	if (clocks || carried || n < 2 || n > ORDERED_MAX)
		return RP_OK;
	return order_unclocked(b, list, n, e);
}
