/* SPDX-License-Identifier: MIT */
#include "curve/stitch_parts.h"

#define HIDDEN_ERRORS 4.0 /* deviations of the rounding of a sum of logged losses */
#define HIDDEN_FLOAT 1e-7 /* relative, of what was summed up in float32 */

/* A resume that only the final row tells ---------------------------------------------------------
 */

/*
 * The mean loss of the final row is the sum of the losses since the last launch, over all steps, or
 * in newer versions over those since the launch. So the launch began behind that row from which on
 * the rows' losses, each as often as it covers steps, come to it. Rounding of n rows adds up to its
 * deviation times the root of n.
 */
static bool hidden_from(const struct stitch_track *t, size_t first, size_t end,
	const struct curve_point *final, double *from)
{
	double sum = 0, covered = 0, variance = 0, found = NAN;
	size_t hits = 0;

	if (end - first < 3 || t->values.items[end - 1].x != final->x)
		return false;
	for (size_t i = end; i-- > first;) {
		const struct stitch_value *v = &t->values.items[i];
		double before = i > first ? t->values.items[i - 1].x : 0, steps = v->x - before;
		if (!isfinite(v->value))
			return false;
		sum += v->value * steps;
		covered += steps;
		variance += pow((double)v->resolution * steps, 2) / 12;
		double room = HIDDEN_ERRORS * sqrt(variance) + HIDDEN_FLOAT * fabs(sum) +
			      0.5 * (double) final->resolution * final->x;
		if (fabs(sum - final->value * final->x) > room &&
			fabs(sum - final->value * covered) > room)
			continue;
		/* Where all rows come to it, nothing is hidden. */
		if (i == first)
			return false;
		hits++;
		found = before;
	}
	*from = found;
	return hits == 1 && found > 0;
}

int stitch_find_hidden(struct stitch_building *b, struct error *e)
{
	struct stitch *s = b->s;
	const struct stitch_track *t = stitch_track_of(s, CURVE_LOSS);

	for (size_t i = 0; t && i < b->pieces.list.count; i++) {
		const struct piece *p = &b->pieces.list.items[i];
		uint32_t attempt = b->attempt_of[i];
		size_t first, end;
		double from;
		if (attempt == CURVE_NONE || isnan(s->attempts.items[attempt].alive_to))
			continue;
		stitch_values_of(t, attempt, &first, &end);
		for (size_t k = p->first; k < p->end; k++) {
			const struct curve_point *q = &b->l->points.items[k];
			const struct curve_series *x = &b->l->series.items[q->series];
			if (x->role != CURVE_LOSS || x->mean != CURVE_OF_ALL ||
				x->unit != s->axis || !hidden_from(t, first, end, q, &from))
				continue;
			bool known = false;
			for (size_t m = 0; m < s->seams.count && !known; m++)
				known = s->seams.items[m].x == from;
			struct stitch_seam *seam = known ? NULL : array_push(&s->seams, SIZE_MAX);
			if (!known && !seam)
				return stitch_no_memory(e);
			if (seam)
				*seam = (struct stitch_seam){
					.from = attempt, .to = attempt, .x = from, .hidden = true};
		}
	}
	return RP_OK;
}

/* Resumes that the caller knows of, and no attempt begins with. */
int stitch_add_known(struct stitch *s, const struct stitch_options *o, struct error *e)
{
	const struct stitch_track *t = s->tracks.count ? s->tracks.items : NULL;

	for (size_t i = 0; t && i < o->resume_count; i++) {
		double x = o->resumes[i], room = isnan(t->interval) ? 1 : t->interval;
		bool there = false;
		uint32_t attempt = CURVE_NONE;
		for (uint32_t k = 0; k < s->attempts.count; k++) {
			const struct stitch_attempt *a = &s->attempts.items[k];
			there = there || fabs(a->from - x) <= room;
			if (x > a->alive_from && x < a->alive_to && x < a->last_x)
				attempt = k;
		}
		if (there || attempt == CURVE_NONE || !(x > 0))
			continue;
		struct stitch_seam *seam = array_push(&s->seams, SIZE_MAX);
		if (!seam)
			return stitch_no_memory(e);
		*seam = (struct stitch_seam){.from = attempt, .to = attempt, .x = x, .known = true};
	}
	return RP_OK;
}
