/* SPDX-License-Identifier: MIT */
#include "curve/one_unit.h"

#include <math.h>
#include <stdlib.h>

#define SHARED 0.5 /* of the shorter one, that two logs of one launch share at least */

/* What is known of a file. */
struct kept {
	bool steps, amounts; /* it has a loss over them */
	bool counted;        /* and over steps a count of what was consumed */
	double first, last;  /* what was consumed, where it says so */
	double begun, ended; /* by its clock */
};

struct moving {
	const struct curve_log *l;
	enum curve_unit unit;
	enum curve_role count;
	struct kept *files;
	struct one_unit *u;
};

static int no_memory(struct error *e)
{
	return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for logs over samples");
}

static const struct curve_series *series_of(const struct moving *m, size_t point)
{
	return &m->l->series.items[m->l->points.items[point].series];
}

static bool is_count(const struct moving *m, const struct curve_series *s)
{
	return s->role == m->count && s->unit == CURVE_STEPS;
}

static void stretch(double *first, double *last, double v)
{
	if (!isfinite(v))
		return;
	*first = isnan(*first) ? v : fmin(*first, v);
	*last = isnan(*last) ? v : fmax(*last, v);
}

static void look_at_files(struct moving *m)
{
	for (size_t i = 0; i < m->l->files.count; i++)
		m->files[i] = (struct kept){.first = NAN, .last = NAN, .begun = NAN, .ended = NAN};
	for (size_t i = 0; i < m->l->points.count; i++) {
		const struct curve_point *p = &m->l->points.items[i];
		const struct curve_series *s = series_of(m, i);
		struct kept *f = &m->files[s->file];
		stretch(&f->begun, &f->ended, p->wall);
		f->steps = f->steps || (s->role == CURVE_LOSS && s->unit == CURVE_STEPS);
		if (s->role == CURVE_LOSS && s->unit == m->unit) {
			f->amounts = true;
			stretch(&f->first, &f->last, p->x);
		}
		if (is_count(m, s)) {
			f->counted = true;
			stretch(&f->first, &f->last, p->value);
		}
	}
}

/* Whether two files may hold the same launch: they were written at one time, or cover the same. One
 * that goes on from the other shares no more than the dead branch with it. */
static bool may_be_one(const struct kept *a, const struct kept *b)
{
	if (isfinite(a->begun + b->begun))
		return a->begun <= b->ended && b->begun <= a->ended;
	double both = fmin(a->last, b->last) - fmax(a->first, b->first);
	double least = fmin(a->last - a->first, b->last - b->first);
	return !(both < SHARED * least);
}

/* Whether a file that is over samples alone holds what no file over steps does, and all of those
 * can be moved. */
static bool is_needed(const struct moving *m)
{
	bool alone = false, any = false;

	for (size_t i = 0; i < m->l->files.count; i++) {
		const struct kept *a = &m->files[i];
		bool met = false;
		any = any || a->steps;
		if (a->steps && !a->amounts && !a->counted)
			return false;
		if (a->steps || !a->amounts)
			continue;
		for (size_t k = 0; k < m->l->files.count && !met; k++)
			met = m->files[k].steps && may_be_one(a, &m->files[k]);
		alone = alone || !met;
	}
	return any && alone;
}

/* Moving ----------------------------------------------------------------------------------------
 */

/* A count of the file at hand, in its order. */
struct count {
	double x, amount;
	size_t point;
};

struct counts {
	ARRAY(struct count) list;
	size_t at; /* the one that was used last */
};

static bool gather_counts(const struct moving *m, size_t first, size_t end, struct counts *c)
{
	c->list.count = c->at = 0;
	for (size_t i = first; i < end; i++) {
		const struct curve_point *p = &m->l->points.items[i];
		if (!is_count(m, series_of(m, i)))
			continue;
		struct count *slot = array_push(&c->list, SIZE_MAX);
		if (!slot)
			return false;
		*slot = (struct count){p->x, p->value, i};
	}
	return true;
}

/* What was consumed at step x, as the counts around a point say; NAN: they do not. */
static double moved_x(struct counts *c, size_t point, double x)
{
	const struct count *list = c->list.items;
	size_t n = c->list.count;

	while (c->at + 1 < n && list[c->at].point < point && list[c->at].x != x)
		c->at++;
	size_t from = c->at > 0 ? c->at - 1 : 0;
	for (size_t i = from; i < n && i <= c->at + 1; i++)
		if (list[i].x == x)
			return list[i].amount;
	/* Between two counts, or a little before the first or behind the last. */
	for (size_t i = from; i + 1 < n && i <= c->at; i++) {
		double steps = list[i + 1].x - list[i].x;
		if (steps > 0 && x >= list[i].x - steps && x <= list[i + 1].x + steps)
			return list[i].amount +
			       (x - list[i].x) * (list[i + 1].amount - list[i].amount) / steps;
	}
	return NAN;
}

static bool move_point(struct moving *m, struct counts *c, size_t i, bool file)
{
	struct curve_point p = m->l->points.items[i];
	bool steps = series_of(m, i)->unit == CURVE_STEPS;

	if (file && steps)
		p.x = moved_x(c, i, p.x);
	if (isnan(p.x))
		return true;
	struct curve_point *slot = array_push(&m->u->log.points, SIZE_MAX);
	if (slot)
		*slot = p;
	return slot != NULL;
}

/* The marks of a file up to that point, with the new places of theirs. */
static bool move_marks(struct moving *m, struct counts *c, uint32_t file, size_t point, bool moves)
{
	struct curve_log *to = &m->u->log;

	while (to->marks.count < m->l->marks.count) {
		struct curve_mark k = m->l->marks.items[to->marks.count];
		if (k.file > file || (k.file == file && k.before > point))
			return true;
		if (moves && k.unit == CURVE_STEPS) {
			k.x = moved_x(c, point, k.x);
			k.unit = (uint8_t)m->unit;
		}
		k.before = to->points.count;
		struct curve_mark *slot = array_push(&to->marks, SIZE_MAX);
		if (!slot)
			return false;
		*slot = k;
	}
	return true;
}

static bool move_file(struct moving *m, struct counts *c, uint32_t file, size_t first, size_t end)
{
	bool moves = m->files[file].steps && !m->files[file].amounts;

	if (!gather_counts(m, first, end, c))
		return false;
	for (size_t i = first; i < end; i++)
		if (!move_marks(m, c, file, i, moves) || !move_point(m, c, i, moves))
			return false;
	return move_marks(m, c, file, SIZE_MAX, moves);
}

static bool move_all(struct moving *m)
{
	struct counts c = {.at = 0};
	bool ok = true;

	for (size_t i = 0; ok && i < m->l->series.count; i++) {
		struct curve_series *s = array_push(&m->u->log.series, SIZE_MAX);
		ok = s != NULL;
		if (!ok)
			break;
		*s = m->l->series.items[i];
		const struct kept *f = &m->files[s->file];
		if (f->steps && !f->amounts && s->unit == CURVE_STEPS)
			s->unit = (uint8_t)m->unit;
	}
	for (size_t f = 0, first = 0, end; ok && f < m->l->files.count; f++, first = end) {
		for (end = first; end < m->l->points.count && series_of(m, end)->file == f;)
			end++;
		ok = move_file(m, &c, (uint32_t)f, first, end);
	}
	array_release(&c.list);
	return ok;
}

int one_unit_make(struct one_unit *u, const struct curve_log *l, struct error *e)
{
	static const struct {
		enum curve_unit unit;
		enum curve_role count;
	} units[] = {{CURVE_SAMPLES, CURVE_SAMPLE_COUNT}, {CURVE_TOKENS, CURVE_TOKEN_COUNT}};
	struct moving m = {.l = l, .u = u, .files = calloc(l->files.count + 1, sizeof *m.files)};
	int status = m.files ? RP_OK : no_memory(e);

	*u = (struct one_unit){.log = *l};
	for (size_t i = 0; i < 2 && status == RP_OK && !u->moved; i++) {
		m.unit = units[i].unit;
		m.count = units[i].count;
		look_at_files(&m);
		if (!is_needed(&m))
			continue;
		u->moved = true;
		u->log.series.items = NULL;
		u->log.points.items = NULL;
		u->log.marks.items = NULL;
		u->log.series.count = u->log.series.capacity = 0;
		u->log.points.count = u->log.points.capacity = 0;
		u->log.marks.count = u->log.marks.capacity = 0;
		status = move_all(&m) ? RP_OK : no_memory(e);
	}
	free(m.files);
	return status;
}

void one_unit_release(struct one_unit *u)
{
	if (!u->moved)
		return;
	array_release(&u->log.series);
	array_release(&u->log.points);
	array_release(&u->log.marks);
}
