/* SPDX-License-Identifier: MIT */
#include "curve/stitch_parts.h"

#define ROUNDED 0.05 /* of an interval of epochs, that rounding leaves */

/* From where, and whose child -------------------------------------------------------------------
 */

/* The newest save before x that an earlier attempt made, or NAN. */
static double save_before(const struct stitch *s, double x, uint32_t attempt)
{
	double best = NAN;

	for (size_t i = 0; i < s->saves.count && s->saves.items[i].x < x; i++) {
		uint32_t of = s->saves.items[i].attempt;
		if (of == CURVE_NONE || of < attempt)
			best = s->saves.items[i].x;
	}
	return best;
}

/*
 * From where an attempt went on that does not say it. It logged its first point at most an interval
 * after that, so that a save within the interval is it. The other way round an attempt that goes on
 * where the one before it ended says nothing of saves.
 */
static void count_from(const struct stitch *s, uint32_t i)
{
	struct stitch_attempt *a = &s->attempts.items[i];
	double interval = isnan(a->interval) ? 1 : a->interval;
	double save = save_before(s, a->first_x, i);

	a->how = STITCH_COUNTED;
	a->from_least = fmax(0, a->first_x - interval);
	if (save >= a->from_least) {
		a->from = a->from_least = save;
		a->how = STITCH_BY_SAVE;
		return;
	}
	/* Logs and saves mostly keep to the same multiples. */
	a->from = a->from_least;
	/* Fractions of epochs are printed with few digits, and what rounding leaves is no step. */
	if (s->axis != CURVE_STEPS && a->from < ROUNDED * interval)
		a->from = a->from_least = 0;
	/* The first attempt of the logs began before them, or afresh; where that one did, so did
	 * another one that logged its first point no later. */
	const struct stitch_attempt *first = s->attempts.items;
	if (a->first_x <= (interval + 1) * (1 + 1e-9) &&
		(i == 0 || (first->from == 0 && a->first_x <= first->first_x)))
		a->from = a->from_least = 0;
}

static bool reached(const struct stitch_attempt *a, double x)
{
	double room = isnan(a->interval) ? 1 : a->interval;

	return a->from < x && a->last_x + room > x;
}

static bool saved_by(const struct stitch *s, uint32_t attempt, double x)
{
	for (size_t i = 0; i < s->saves.count; i++)
		if (s->saves.items[i].attempt == attempt && s->saves.items[i].x == x)
			return true;
	return false;
}

static void find_parent(struct stitch *s, uint32_t i)
{
	struct stitch_attempt *a = &s->attempts.items[i];
	uint32_t best = CURVE_NONE, behind = CURVE_NONE;
	bool saved = false;

	if (a->from <= 0)
		return;
	for (uint32_t k = i; k-- > 0;) {
		const struct stitch_attempt *b = &s->attempts.items[k];
		if (reached(b, a->from)) {
			bool saves = saved_by(s, k, a->from);
			a->rivals += best != CURVE_NONE;
			if (best == CURVE_NONE || (saves && !saved)) {
				best = k;
				saved = saves;
			}
		} else if (b->from < a->from && behind == CURVE_NONE) {
			behind = k;
		}
	}
	a->rivals = saved ? 0 : a->rivals;
	a->parent = best != CURVE_NONE ? best : behind;
	if (a->parent == CURVE_NONE)
		return;
	struct stitch_attempt *p = &s->attempts.items[a->parent];
	p->children++;
	double room = 2 * (isnan(p->interval) ? 1 : p->interval);
	if (a->from - p->last_x > room)
		a->gap = a->from - p->last_x;
}

/* An attempt that repeats another log up to a step branched off there, whatever else is known. */
static void branch_from(struct stitch_building *b, uint32_t i)
{
	for (size_t k = 0; k < b->pieces.list.count; k++) {
		const struct piece *p = &b->pieces.list.items[k];
		if (b->attempt_of[k] != i || p->copy_of == CURVE_NONE || p->same_as != CURVE_NONE)
			continue;
		b->s->attempts.items[i].from = b->s->attempts.items[i].from_least = p->copied;
		b->s->attempts.items[i].how = STITCH_SAID;
	}
}

static int tell(struct stitch *s, const struct stitch_options *o, struct error *e)
{
	for (size_t i = 0; i < o->told_count; i++) {
		int64_t number = o->told[i].attempt;
		if (number < 1 || number > (int64_t)s->attempts.count)
			return fail(e, RP_E_ARGUMENT, ERROR_NO_OFFSET,
				"there is no attempt %lld: the logs hold %zu", (long long)number,
				s->attempts.count);
		struct stitch_attempt *a = &s->attempts.items[number - 1];
		if (o->told[i].from > a->first_x)
			return fail(e, RP_E_ARGUMENT, ERROR_NO_OFFSET,
				"attempt %lld cannot have resumed from %.0f: it begins at %.0f",
				(long long)number, o->told[i].from, a->first_x);
		a->from = a->from_least = o->told[i].from;
		a->how = STITCH_TOLD;
	}
	return RP_OK;
}

int stitch_build_lineage(struct stitch_building *b, const struct stitch_options *o, struct error *e)
{
	struct stitch *s = b->s;

	for (uint32_t i = 0; i < s->attempts.count; i++) {
		struct stitch_attempt *a = &s->attempts.items[i];
		branch_from(b, i);
		/* What is said does not fit to what was logged: it speaks of something else. */
		if (isfinite(a->from) && a->from >= a->first_x && a->how == STITCH_SAID)
			a->from = NAN;
		if (isnan(a->from))
			count_from(s, i);
		else
			a->from_least = a->from;
	}
	if (tell(s, o, e) < 0)
		return e->status;
	for (uint32_t i = 0; i < s->attempts.count; i++)
		find_parent(s, i);
	s->tip = s->attempts.count ? (uint32_t)s->attempts.count - 1 : CURVE_NONE;
	double to = INFINITY;
	for (uint32_t i = s->tip; i != CURVE_NONE; i = s->attempts.items[i].parent) {
		struct stitch_attempt *a = &s->attempts.items[i];
		a->alive_from = a->parent == CURVE_NONE ? -INFINITY : a->from;
		a->alive_to = to;
		to = a->from;
		if (a->parent == CURVE_NONE)
			break;
		struct stitch_seam *seam = array_push(&s->seams, SIZE_MAX);
		if (!seam)
			return stitch_no_memory(e);
		*seam = (struct stitch_seam){.from = a->parent, .to = i, .x = a->from};
	}
	for (size_t i = 0, k = s->seams.count; i + 1 < k; i++) {
		struct stitch_seam swap = s->seams.items[i];
		s->seams.items[i] = s->seams.items[--k];
		s->seams.items[k] = swap;
	}
	return RP_OK;
}
