/* SPDX-License-Identifier: MIT */
/* Who wrote a file, from the names of its series. */
#include <string.h>

#include "curve/read.h"

enum writer_from { FROM_1, FROM_0, LOSS_FROM_0 };

static const struct writer_row {
	const char *series, *and, *name;
	enum curve_mean mean;
	enum writer_from from;
} writers[] = {
#define WRITER(series, and, name, mean, from) {series, and, name, CURVE_OF_##mean, from},
#include "curve/writers.def"
#undef WRITER
};

/* The file's series are the last ones of the log: [first, count). */
static size_t first_series(const struct curve_reading *r)
{
	const struct curve_log *l = r->log;
	size_t first = l->series.count;

	while (first > 0 && l->series.items[first - 1].file == r->file)
		first--;
	return first;
}

static bool has_series(const struct curve_log *l, size_t first, const char *pattern)
{
	if (pattern[0] == '\0')
		return true;
	for (size_t i = first; i < l->series.count; i++)
		if (curve_name_matches(pattern, slice_of(l->series.items[i].name)))
			return true;
	return false;
}

static const struct writer_row *find_writer(const struct curve_log *l, size_t first)
{
	for (size_t i = 0; i < sizeof writers / sizeof *writers; i++)
		if (has_series(l, first, writers[i].series) && has_series(l, first, writers[i].and))
			return &writers[i];
	return NULL;
}

static bool is_loss(const struct curve_series *s)
{
	return s->role == CURVE_LOSS || s->role == CURVE_PART_LOSS || s->role == CURVE_SOURCE_LOSS;
}

static void count_from_1(struct curve_log *l, size_t first, enum writer_from from)
{
	for (size_t i = l->points.count; i > 0; i--) {
		struct curve_point *p = &l->points.items[i - 1];
		if (p->series < first)
			break;
		const struct curve_series *s = &l->series.items[p->series];
		if (s->unit == CURVE_STEPS && (from == FROM_0 || is_loss(s)))
			p->x += 1;
	}
}

/* What values cover, where their names do not say it. */
static void set_mean(struct curve_series *s, const struct writer_row *w)
{

	/* Transformers' name for the mean of all steps is anybody else's for the loss. */
	if (s->mean == CURVE_OF_ALL && (!w || w->mean != CURVE_OF_INTERVAL))
		s->mean = CURVE_OF_UNKNOWN;
	if (w && is_loss(s) && s->mean == CURVE_OF_UNKNOWN)
		s->mean = (uint8_t)w->mean;
}

void curve_know_writer(struct curve_reading *r, const char *otherwise, bool writers_step)
{
	struct curve_log *l = r->log;
	size_t first = first_series(r);
	const struct writer_row *w = find_writer(l, first);

	curve_writer(r, w ? w->name : otherwise);
	for (size_t i = first; i < l->series.count; i++)
		set_mean(&l->series.items[i], w);
	if (!w || !writers_step || w->from == FROM_1)
		return;
	count_from_1(l, first, w->from);
	curve_note(r, "%s counts %s from 0: 1 is added", w->name,
		w->from == FROM_0 ? "steps" : "the steps of losses");
}
