/* SPDX-License-Identifier: MIT */
#include "curve/stitch.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "curve/stitch_parts.h"

#define NOTES_MAX 100u
#define STEPS_A_POINT 5 /* where it is not known */

int stitch_no_memory(struct error *e)
{
	return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for the curve");
}

void stitch_note(struct stitch *s, const char *format, ...)
{
	char text[400];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	const char **slot = array_push(&s->notes, NOTES_MAX);
	if (slot)
		*slot = arena_strdup(&s->arena, slice_of(text));
	if (slot && !*slot)
		*slot = "";
}

static int compare_seams(const void *pa, const void *pb)
{
	const struct stitch_seam *a = pa, *b = pb;

	if (a->x != b->x)
		return a->x < b->x ? -1 : 1;
	return (a->to > b->to) - (a->to < b->to);
}

static int build_line(struct stitch_building *b, const struct stitch_options *o, struct error *e)
{
	int status = stitch_make_attempts(b, e);

	if (status == RP_OK)
		status = stitch_gather_marks(b, o, e);
	if (status == RP_OK)
		status = stitch_build_lineage(b, o, e);
	if (status == RP_OK)
		status = stitch_fill_tracks(b, o, e);
	if (status == RP_OK)
		status = stitch_measure_consumed(b, o, e);
	return status;
}

static void release_line(struct stitch_building *b)
{
	struct stitch *s = b->s;

	for (size_t i = 0; i < s->tracks.count; i++) {
		array_release(&s->tracks.items[i].values);
		array_release(&s->tracks.items[i].line);
	}
	array_release(&s->attempts);
	array_release(&s->tracks);
	array_release(&s->seams);
	array_release(&s->parts);
	array_release(&s->settings);
	array_release(&s->saves);
	array_release(&s->consumed);
	array_release(&s->knots.list);
	free(b->attempt_of);
	b->attempt_of = NULL;
}

int stitch_build(struct stitch *s, const struct curve_log *l, const struct stitch_options *o,
	struct error *e)
{
	struct stitch_building b = {.s = s, .l = l};

	*s = (struct stitch){.log = l, .tip = CURVE_NONE};
	arena_init(&s->arena, SIZE_MAX);
	int status = RP_OK;
	if (!(o->by_is_told && o->by == CURVE_STEPS))
		status = one_unit_make(&s->one, l, e);
	if (status == RP_OK && s->one.moved)
		b.l = s->log = &s->one.log;
	if (status == RP_OK)
		status = pieces_cut(&b.pieces, b.l, e);
	s->axis = b.pieces.axis;
	/* Each time the steps of one more attempt are known to be numbered anew. */
	for (bool again = true; status == RP_OK && again;) {
		release_line(&b);
		s->notes.count = 0;
		status = build_line(&b, o, e);
		again = false;
		if (status == RP_OK)
			stitch_renumber(&b, &again);
	}
	if (status == RP_OK)
		status = stitch_choose_unit(&b, o, e);
	if (status == RP_OK) {
		if (s->one.moved)
			stitch_note(s, "some logs are over steps and some over what was consumed: "
				       "all are shown over that, as they count it");
		stitch_note_pieces(&b);
		status = stitch_find_hidden(&b, e);
	}
	if (status == RP_OK)
		status = stitch_add_known(s, o, e);
	if (status == RP_OK && s->seams.count > 1)
		qsort(s->seams.items, s->seams.count, sizeof *s->seams.items, compare_seams);
	pieces_release(&b.pieces);
	free(b.attempt_of);
	if (status < 0)
		stitch_release(s);
	return status;
}

void stitch_release(struct stitch *s)
{
	release_line(&(struct stitch_building){.s = s});
	one_unit_release(&s->one);
	array_release(&s->notes);
	arena_release(&s->arena);
}

const struct stitch_track *stitch_track_of(const struct stitch *s, enum curve_role role)
{
	for (size_t i = 0; i < s->tracks.count; i++)
		if (s->tracks.items[i].role == role)
			return &s->tracks.items[i];
	return NULL;
}

/* The first value of the attempt or of a later one. */
static size_t lower_bound(const struct stitch_track *t, uint32_t attempt)
{
	size_t low = 0, high = t->values.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (t->values.items[middle].attempt < attempt)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

void stitch_values_of(const struct stitch_track *t, uint32_t attempt, size_t *first, size_t *end)
{
	*first = lower_bound(t, attempt);
	*end = lower_bound(t, attempt + 1);
}

size_t stitch_branch(const struct stitch *s, const struct stitch_track *t, uint32_t attempt,
	double x, uint32_t *index, size_t max)
{
	size_t n = 0;

	for (uint32_t a = attempt; a != CURVE_NONE && n < max; a = s->attempts.items[a].parent) {
		size_t first, end;
		stitch_values_of(t, a, &first, &end);
		while (end > first && t->values.items[end - 1].x > x)
			end--;
		for (size_t i = end; i-- > first && n < max;)
			index[n++] = (uint32_t)i;
		x = fmin(x, s->attempts.items[a].from);
	}
	for (size_t i = 0; i < n / 2; i++) {
		uint32_t swap = index[i];
		index[i] = index[n - 1 - i];
		index[n - 1 - i] = swap;
	}
	return n;
}

const char *stitch_setting_of(const struct stitch *s, uint32_t attempt, const char *name)
{
	const char *value = NULL;

	for (; attempt != CURVE_NONE && !value; attempt = s->attempts.items[attempt].parent)
		for (size_t i = 0; i < s->settings.count; i++)
			if (s->settings.items[i].attempt == attempt &&
				strcmp(s->settings.items[i].name, name) == 0)
				value = s->settings.items[i].value;
	return value;
}

bool stitch_leads_to(const struct stitch *s, uint32_t a, uint32_t b)
{
	while (b != CURVE_NONE && b != a)
		b = s->attempts.items[b].parent;
	return b == a;
}

bool stitch_counts_amounts(const struct stitch *s)
{
	return s->axis == CURVE_SAMPLES || s->axis == CURVE_TOKENS;
}

double stitch_amount(const struct stitch *s, uint32_t attempt, double x)
{
	if (stitch_counts_amounts(s))
		return x;
	return attempt < s->consumed.count
		       ? consumed_at(&s->knots, s->consumed.items[attempt].line, x)
		       : NAN;
}

double stitch_batch(const struct stitch *s, uint32_t attempt, double x)
{
	return attempt < s->consumed.count
		       ? consumed_batch(&s->knots, s->consumed.items[attempt].line, x)
		       : NAN;
}

double stitch_shown(const struct stitch *s, uint32_t attempt, double x)
{
	return s->by == s->axis ? x : stitch_amount(s, attempt, x);
}

double stitch_value_shown(const struct stitch *s, const struct stitch_value *v)
{
	return s->by == s->axis ? v->x : v->amount;
}

double stitch_step(const struct stitch *s)
{
	double interval = s->tracks.count ? s->tracks.items[0].interval : NAN;

	return s->axis == CURVE_STEPS || s->axis == CURVE_CALLS || !(interval > 0)
		       ? 1
		       : interval / STEPS_A_POINT;
}
