/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "curve/stitch_parts.h"

#define ATTEMPTS_MAX 1000000u

/* Attempts from pieces --------------------------------------------------------------------------
 */

static enum stitch_cut cut_of(const struct piece *p)
{
	if (p->copy_of != CURVE_NONE)
		return STITCH_CUT_BRANCH;
	if (p->gap)
		return STITCH_CUT_GAP;
	if (p->back && isnan(p->loaded))
		return STITCH_CUT_BACK;
	return p->first_mark < p->end_mark ? STITCH_CUT_LAUNCH : STITCH_CUT_FILE;
}

/* What a piece adds to the attempt `i`. */
static int take_piece(struct stitch_building *b, uint32_t i, const struct piece *p, struct error *e)
{
	struct stitch_attempt *a = &b->s->attempts.items[i];
	struct stitch_part *part = array_push(&b->s->parts, SIZE_MAX);
	double first = p->first_x + p->offset, last = p->last_x + p->offset;

	if (!part)
		return stitch_no_memory(e);
	*part = (struct stitch_part){i, p->file};
	if (p->copied >= first)
		first = p->copied + (isnan(p->interval) ? 1 : p->interval);
	a->files++;
	a->first_x = stitch_fewer(a->first_x, first);
	a->last_x = stitch_more(a->last_x, last);
	a->wall_first = stitch_fewer(a->wall_first, p->wall_first);
	a->wall_last = stitch_more(a->wall_last, p->wall_last);
	if (isfinite(p->loaded) && (isnan(a->from) || a->purged)) {
		a->from = p->loaded + p->renumbered;
		a->purged = p->purged;
		a->how = STITCH_SAID;
	}
	for (size_t k = p->first_mark; k < p->end_mark; k++) {
		a->finished |= b->l->marks.items[k].kind == CURVE_FINISHED;
		a->killed |= b->l->marks.items[k].kind == CURVE_KILLED;
	}
	return RP_OK;
}

/* What is not said of a step, and is not logged at every step, may be a mean. */
static bool is_mean(const struct curve_series *s, double interval)
{
	return s->mean == CURVE_OF_INTERVAL || (s->mean == CURVE_OF_UNKNOWN && interval > 1);
}

int stitch_make_attempts(struct stitch_building *b, struct error *e)
{
	struct stitch *s = b->s;
	size_t n = 0, count = b->pieces.list.count;
	struct stitch_launch *list = calloc(count + 1, sizeof *list);

	b->attempt_of = calloc(count + 1, sizeof *b->attempt_of);
	if (!list || !b->attempt_of) {
		free(list);
		return stitch_no_memory(e);
	}
	for (uint32_t i = 0; i < count; i++) {
		const struct piece *p = &b->pieces.list.items[i];
		if (p->same_as == CURVE_NONE && p->values > 0)
			list[n++] = (struct stitch_launch){i, p->wall_first, 0};
	}
	int status = stitch_order_launches(b, list, n, e);
	for (size_t i = 0; i < count; i++)
		b->attempt_of[i] = CURVE_NONE;
	for (size_t i = 0; i < n && status == RP_OK; i++) {
		const struct piece *p = &b->pieces.list.items[list[i].piece];
		struct stitch_attempt *a = array_push(&s->attempts, ATTEMPTS_MAX);
		if (!a) {
			status = stitch_no_memory(e);
			break;
		}
		*a = (struct stitch_attempt){.number = (uint32_t)i + 1,
			.first_x = NAN,
			.last_x = NAN,
			.from = NAN,
			.from_least = NAN,
			.parent = CURVE_NONE,
			.alive_from = NAN,
			.alive_to = NAN,
			.interval = p->interval,
			.wall_first = NAN,
			.wall_last = NAN,
			.cut = (uint8_t)cut_of(p),
			.renumbered = p->renumbered,
			.mean = is_mean(&b->l->series.items[p->main], p->interval),
			.file = p->file};
		b->attempt_of[list[i].piece] = (uint32_t)i;
		status = take_piece(b, (uint32_t)i, p, e);
	}
	/* The others are of the attempt of the piece that they are the same as. */
	for (size_t i = 0; i < count && status == RP_OK; i++) {
		const struct piece *p = &b->pieces.list.items[i];
		if (p->same_as == CURVE_NONE)
			continue;
		b->attempt_of[i] = b->attempt_of[p->same_as];
		if (b->attempt_of[i] != CURVE_NONE)
			status = take_piece(b, b->attempt_of[i], p, e);
	}
	free(list);
	return status;
}

static const char *base_name(const struct curve_log *l, uint32_t file)
{
	const char *path = l->files.items[file].path, *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Say what was taken for the same, and how it had to be shifted. Once for each pair of files. */
void stitch_note_pieces(struct stitch_building *b)
{
	const struct pieces *all = &b->pieces;
	uint32_t file = CURVE_NONE, other = CURVE_NONE;

	for (size_t i = 0; i < all->list.count; i++) {
		const struct piece *p = &all->list.items[i];
		if (p->same_as == CURVE_NONE ||
			(p->file == file && all->list.items[p->same_as].file == other))
			continue;
		file = p->file;
		other = all->list.items[p->same_as].file;
		if (p->offset != p->renumbered)
			stitch_note(b->s, "%s holds the attempt of %s, with steps counted from %d",
				base_name(b->l, file), base_name(b->l, other),
				p->offset > p->renumbered ? 0 : 1);
		else if (p->factor != 1)
			stitch_note(b->s,
				"%s holds the attempt of %s, with values that are 1/%g of its",
				base_name(b->l, file), base_name(b->l, other), p->factor);
	}
	for (size_t i = 0; i < all->jumbled.count; i++)
		stitch_note(b->s,
			"%s: the step goes to and fro as if several processes wrote into it; it is not "
			"cut into attempts",
			base_name(b->l, all->jumbled.items[i]));
	if (all->off_axis > 0)
		stitch_note(b->s,
			"%llu points over another unit than %s are left out, %s's first of all",
			(unsigned long long)all->off_axis, curve_unit_name(all->axis),
			base_name(b->l, all->off_file));
}

/* Settings and saves --------------------------------------------------------------------------- */

static int compare_saves(const void *pa, const void *pb)
{
	const struct stitch_save *a = pa, *b = pb;

	if (a->x != b->x)
		return a->x < b->x ? -1 : 1;
	return (a->attempt > b->attempt) - (a->attempt < b->attempt);
}

static bool add_setting(struct stitch_building *b, uint32_t attempt, const struct curve_mark *m)
{
	const char *equals = strchr(m->text, '=');

	if (!equals)
		return true;
	struct stitch_setting *x = array_push(&b->s->settings, SIZE_MAX);
	const char *name =
		arena_strdup(&b->s->arena, (struct slice){m->text, (size_t)(equals - m->text)});
	if (!x || !name)
		return false;
	*x = (struct stitch_setting){attempt, name, equals + 1};
	return true;
}

int stitch_gather_marks(struct stitch_building *b, const struct stitch_options *o, struct error *e)
{
	struct stitch *s = b->s;

	for (size_t i = 0; i < b->pieces.list.count; i++) {
		const struct piece *p = &b->pieces.list.items[i];
		if (b->attempt_of[i] == CURVE_NONE)
			continue;
		for (size_t k = p->first_mark; k < p->end_mark; k++) {
			const struct curve_mark *m = &b->l->marks.items[k];
			if (m->kind == CURVE_SETTING && !add_setting(b, b->attempt_of[i], m))
				return stitch_no_memory(e);
			if (m->kind != CURVE_SAVED || !isfinite(m->x) || m->unit != s->axis)
				continue;
			struct stitch_save *save = array_push(&s->saves, SIZE_MAX);
			if (!save)
				return stitch_no_memory(e);
			*save = (struct stitch_save){b->attempt_of[i], m->x + p->renumbered};
		}
	}
	for (size_t i = 0; i < o->save_count + o->resume_count; i++) {
		struct stitch_save *save = array_push(&s->saves, SIZE_MAX);
		if (!save)
			return stitch_no_memory(e);
		/* From where it resumed something was saved. */
		*save = (struct stitch_save){CURVE_NONE,
			i < o->save_count ? o->saves[i] : o->resumes[i - o->save_count]};
	}
	if (s->saves.count > 1)
		qsort(s->saves.items, s->saves.count, sizeof *s->saves.items, compare_saves);
	return RP_OK;
}
