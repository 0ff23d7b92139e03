/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>

#include "curve/piece_parts.h"

#define JUMBLED_LEAST 8u     /* turns back in one file, beside one in so many points, that are */
#define JUMBLED_SHARE 8u     /* several writers rather than restarts */
#define GAP_INTERVALS 10     /* of the usual time between two points are downtime, … */
#define GAP_SECONDS 1800.0   /* … if they are longer than an evaluation or a save */
#define COMPARED_MAX 256u    /* points by which two pieces are compared */
#define AGREE 0.9            /* share of compared points that must be the same */
#define BINARY_ROUNDING 2e-7 /* of float32, relative */
#define MEAN_ROUNDING 1e-3   /* a mean of an interval against the mean of its steps */

int piece_no_memory(struct error *e)
{
	return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for the attempts in the logs");
}

/* The axis ------------------------------------------------------------------------------------- */

static bool judged(const struct curve_series *s)
{
	return s->role <= CURVE_LOSS_SCALE;
}

/* Steps where a series that is judged has them, else the first unit in which one is. */
static enum curve_unit choose_axis(const struct curve_log *l)
{
	enum curve_unit axis = CURVE_UNITS;

	for (size_t i = 0; i < l->series.count; i++) {
		const struct curve_series *s = &l->series.items[i];
		if (judged(s) && s->points > 0 && s->unit < axis)
			axis = s->unit;
	}
	return axis == CURVE_UNITS ? CURVE_STEPS : axis;
}

/* Whether the file has it over the axis too: "lm loss vs samples" is "lm loss" again. */
static bool has_twin(const struct curve_log *l, const struct curve_series *a, enum curve_unit axis)
{
	for (size_t i = 0; i < l->series.count; i++) {
		const struct curve_series *b = &l->series.items[i];
		if (b->file == a->file && b->role == a->role && b->unit == axis &&
			b->points == a->points)
			return true;
	}
	return false;
}

/* Whether the points of a series are left out, and nothing else has them. */
static bool is_off(const struct curve_log *l, const struct curve_series *s, enum curve_unit axis)
{
	return judged(s) && s->unit != axis && s->points > 0 && !has_twin(l, s, axis);
}

/* How well a series stands for its file: the loss before others, each point's own before means. */
static unsigned rank_series(const struct curve_series *s)
{
	static const unsigned by_mean[] = {[CURVE_OF_STEP] = 0,
		[CURVE_OF_INTERVAL] = 0,
		[CURVE_OF_EPOCH] = 100,
		[CURVE_OF_ALL] = 200,
		[CURVE_OF_UNKNOWN] = 0};

	return s->role + by_mean[s->mean];
}

static uint32_t choose_main(const struct curve_log *l, uint32_t file, enum curve_unit axis)
{
	uint32_t best = CURVE_NONE;

	for (uint32_t i = 0; i < l->series.count; i++) {
		const struct curve_series *s = &l->series.items[i];
		if (s->file != file || s->unit != axis || s->points == 0 ||
			s->role == CURVE_VALID_LOSS)
			continue;
		if (best == CURVE_NONE || rank_series(s) < rank_series(&l->series.items[best]) ||
			(rank_series(s) == rank_series(&l->series.items[best]) &&
				s->points > l->series.items[best].points))
			best = i;
	}
	return best;
}

/* Cutting -------------------------------------------------------------------------------------- */

struct last_seen {
	double x, value;
	uint32_t stamp;         /* of the piece in which that was */
	uint32_t falls, values; /* of a count: how often it fell though x rose */
};

struct cutting {
	const struct curve_log *l;
	struct pieces *p;
	struct last_seen *last; /* one per series */
	uint32_t stamp;
	uint32_t file, main;
	size_t end, mark_end;
	double usual; /* seconds between two points of the main series, or NAN */
	bool jumbled;
};

static int compare_doubles(const void *pa, const void *pb)
{
	double a = *(const double *)pa, b = *(const double *)pb;

	return (a > b) - (a < b);
}

/* The median of what is in `list`, which is sorted by it; NAN of nothing. */
static double median(double *list, size_t n)
{
	if (n == 0)
		return NAN;
	qsort(list, n, sizeof *list, compare_doubles);
	return list[n / 2];
}

static bool is_count(const struct curve_series *s)
{
	return s->role == CURVE_SAMPLE_COUNT || s->role == CURVE_TOKEN_COUNT;
}

static void see(struct last_seen *s, const struct curve_point *p, uint32_t stamp)
{
	s->x = p->x;
	s->value = p->value;
	s->stamp = stamp;
}

/* How the main series of the file goes: how often back, and how long a point usually takes. */
static int survey(struct cutting *c, size_t first, struct error *e)
{
	size_t backs = 0, points = 0, n = 0;
	double x = NAN, wall = NAN;
	double *seconds = calloc(c->end - first + 1, sizeof *seconds);

	if (!seconds)
		return piece_no_memory(e);
	for (size_t i = first; i < c->end; i++) {
		const struct curve_point *p = &c->l->points.items[i];
		struct last_seen *seen = &c->last[p->series];
		if (is_count(&c->l->series.items[p->series])) {
			seen->falls += seen->values > 0 && p->x > seen->x && p->value < seen->value;
			seen->values++;
			see(seen, p, 0);
		}
		if (p->series != c->main)
			continue;
		points++;
		backs += p->x < x;
		if (p->wall > wall)
			seconds[n++] = p->wall - wall;
		x = p->x;
		wall = p->wall;
	}
	c->usual = median(seconds, n);
	c->jumbled = backs > JUMBLED_LEAST && backs > points / JUMBLED_SHARE;
	free(seconds);
	return RP_OK;
}

static struct piece *begin_piece(struct cutting *c, size_t first, size_t first_mark)
{
	struct piece *p = array_push(&c->p->list, CURVE_NONE - 1);

	if (!p)
		return NULL;
	*p = (struct piece){.file = c->file,
		.first = first,
		.end = first,
		.first_mark = first_mark,
		.end_mark = first_mark,
		.main = c->main,
		.first_x = NAN,
		.last_x = NAN,
		.interval = NAN,
		.wall_first = NAN,
		.wall_last = NAN,
		.loaded = NAN,
		.same_as = CURVE_NONE,
		.factor = 1,
		.copy_of = CURVE_NONE,
		.copied = NAN};
	c->stamp++;
	return p;
}

/* What is called a count of tokens may be those of each step: it falls time and again. */
static bool counts(const struct last_seen *s)
{
	return s->falls <= JUMBLED_LEAST || s->falls <= s->values / JUMBLED_SHARE;
}

/* Whether what a series says went back within the piece. */
static bool goes_back(const struct cutting *c, const struct curve_point *p)
{
	const struct last_seen *s = &c->last[p->series];

	if (s->stamp != c->stamp)
		return false;
	return p->x < s->x || (is_count(&c->l->series.items[p->series]) && counts(s) &&
				      p->x > s->x && p->value < s->value);
}

static size_t record_begin(const struct cutting *c, size_t i, size_t first)
{
	while (i > first && c->l->points.items[i - 1].at == c->l->points.items[i].at)
		i--;
	return i;
}

static bool begins(const struct curve_mark *m)
{
	return m->kind == CURVE_LAUNCH || m->kind == CURVE_LOADED || m->kind == CURVE_PURGED;
}

/* What a mark says of the piece that it stands in. */
static void take_mark(struct piece *p, const struct curve_mark *m, enum curve_unit axis)
{
	if ((m->kind == CURVE_LOADED || (m->kind == CURVE_PURGED && isnan(p->loaded))) &&
		isfinite(m->x) && m->unit == axis) {
		p->purged = m->kind == CURVE_PURGED;
		p->loaded = p->purged ? m->x - 1 : m->x;
	}
	if (isfinite(m->wall) && !(p->wall_first <= m->wall) && p->end == p->first)
		p->wall_first = m->wall;
}

/* The end of the run of points that belong to the piece: the index at which the next one begins. */
static size_t walk_piece(struct cutting *c, struct piece *p, size_t *mark, bool *gap, bool *back)
{
	const struct curve_log *l = c->l;
	size_t i = p->first, suspect = SIZE_MAX;
	bool ended = false, any = false;
	double wall = NAN;

	*gap = *back = false;
	for (; i < c->end; i++) {
		const struct curve_point *q = &l->points.items[i];
		const struct curve_series *s = &l->series.items[q->series];
		for (; *mark < c->mark_end && l->marks.items[*mark].before <= i; ++*mark) {
			const struct curve_mark *m = &l->marks.items[*mark];
			if (any && (begins(m) || ended))
				return i;
			ended = m->kind == CURVE_FINISHED || m->kind == CURVE_KILLED;
			take_mark(p, m, c->p->axis);
		}
		if (s->unit == c->p->axis && !c->jumbled && goes_back(c, q)) {
			suspect = suspect == SIZE_MAX ? i : suspect;
			if (q->series == c->main || is_count(s)) {
				*back = true;
				return record_begin(c, suspect, p->first + 1);
			}
		}
		see(&c->last[q->series], q, c->stamp);
		if (q->series == c->main) {
			if (any && q->wall - wall > GAP_INTERVALS * c->usual &&
				q->wall - wall > GAP_SECONDS) {
				*gap = true;
				return record_begin(
					c, suspect == SIZE_MAX ? i : suspect, p->first + 1);
			}
			suspect = SIZE_MAX;
			wall = q->wall;
			any = true;
		}
		if (isfinite(q->wall)) {
			p->wall_first = isnan(p->wall_first) ? q->wall : p->wall_first;
			p->wall_last = q->wall;
		}
	}
	return i;
}

static int cut_file(struct cutting *c, size_t first, size_t first_mark, struct error *e)
{
	size_t mark = first_mark;
	bool gap = false, back = false;

	if (c->main == CURVE_NONE)
		return RP_OK;
	if (survey(c, first, e) < 0)
		return e->status;
	if (c->jumbled) {
		uint32_t *file = array_push(&c->p->jumbled, CURVE_NONE);
		if (!file)
			return piece_no_memory(e);
		*file = c->file;
	}
	while (first < c->end) {
		struct piece *p = begin_piece(c, first, mark);
		if (!p)
			return piece_no_memory(e);
		p->gap = gap;
		p->back = back;
		first = walk_piece(c, p, &mark, &gap, &back);
		p->end = first;
		/* Marks that stand behind the last point belong to it. */
		if (first == c->end)
			for (; mark < c->mark_end; mark++)
				take_mark(p, &c->l->marks.items[mark], c->p->axis);
		p->end_mark = mark;
	}
	return RP_OK;
}

/* The values of a piece ------------------------------------------------------------------------ */

struct indexed {
	struct piece_value v;
	size_t at;
};

static int compare_indexed(const void *pa, const void *pb)
{
	const struct indexed *a = pa, *b = pb;

	if (a->v.x != b->v.x)
		return a->v.x < b->v.x ? -1 : 1;
	return (a->at > b->at) - (a->at < b->at);
}

/* Put the main series' points in order; of several at one x the last one counts. */
static int gather_values(
	struct pieces *all, struct piece *p, const struct curve_log *l, struct error *e)
{
	size_t n = 0;

	for (size_t i = p->first; i < p->end; i++)
		n += l->points.items[i].series == p->main && isfinite(l->points.items[i].x);
	struct indexed *list = calloc(n + 1, sizeof *list);
	double *steps = calloc(n + 1, sizeof *steps);
	/* One more than wanted, so that the values of a piece without any have an address too. */
	if (!list || !steps || !array_reserve(&all->values, all->values.count + n + 1, SIZE_MAX)) {
		free(list);
		free(steps);
		return piece_no_memory(e);
	}
	n = 0;
	for (size_t i = p->first; i < p->end; i++) {
		const struct curve_point *q = &l->points.items[i];
		if (q->series == p->main && isfinite(q->x))
			list[n++] = (struct indexed){{q->x, q->value, q->resolution}, i};
	}
	qsort(list, n, sizeof *list, compare_indexed);
	p->first_value = all->values.count;
	for (size_t i = 0; i < n; i++)
		if (i + 1 == n || list[i + 1].v.x != list[i].v.x)
			all->values.items[all->values.count++] = list[i].v;
	p->values = all->values.count - p->first_value;
	const struct piece_value *v = all->values.items + p->first_value;
	if (p->values > 0) {
		p->first_x = v[0].x;
		p->last_x = v[p->values - 1].x;
		for (size_t i = 1; i < p->values; i++)
			steps[i - 1] = v[i].x - v[i - 1].x;
		p->interval = median(steps, p->values - 1);
	}
	free(list);
	free(steps);
	return RP_OK;
}

/* The same launch in two files ----------------------------------------------------------------- */

static bool agrees(const struct piece_value *a, const struct piece_value *b, double factor)
{
	double v = b->value * factor, room = (double)a->resolution + (double)b->resolution * factor;

	if (isnan(a->value) || isnan(v))
		return isnan(a->value) && isnan(v);
	return a->value == v || fabs(a->value - v) <= room + BINARY_ROUNDING * fabs(v);
}

struct piece_agreement piece_compare(const struct pieces *all, const struct piece *a,
	const struct piece *b, double offset, double factor, size_t most)
{
	const struct piece_value *va = all->values.items + a->first_value;
	const struct piece_value *vb = all->values.items + b->first_value;
	struct piece_agreement g = {.prefix_x = NAN};
	bool broken = false;

	for (size_t i = 0, k = 0; i < a->values && k < b->values && g.compared < most;) {
		double x = vb[k].x + offset;
		if (va[i].x < x) {
			i++;
		} else if (va[i].x > x) {
			k++;
		} else {
			bool same = agrees(&va[i], &vb[k], factor);
			g.compared++;
			g.agreeing += same;
			broken = broken || !same;
			g.prefix += !broken;
			g.prefix_x = broken ? g.prefix_x : va[i].x;
			i++;
			k++;
		}
	}
	return g;
}

static bool mostly(const struct piece_agreement *g, size_t possible)
{
	size_t least = possible < PIECE_COMPARED_LEAST ? possible : PIECE_COMPARED_LEAST;

	return g->compared > 0 && g->compared >= least &&
	       (double)g->agreeing >= AGREE * (double)g->compared;
}

/* Whether the interval means of `b` are those of the steps of `a`. */
static bool is_mean_of(const struct pieces *all, const struct piece *a, const struct piece *b)
{
	const struct piece_value *va = all->values.items + a->first_value;
	const struct piece_value *vb = all->values.items + b->first_value;
	struct piece_agreement g = {0};
	size_t i = 0;

	for (size_t k = 1; k < b->values && g.compared < COMPARED_MAX; k++) {
		double sum = 0;
		size_t n = 0;
		while (i < a->values && va[i].x <= vb[k - 1].x)
			i++;
		for (; i < a->values && va[i].x <= vb[k].x; i++, n++)
			sum += va[i].value;
		if ((double)n != vb[k].x - vb[k - 1].x)
			continue;
		g.compared++;
		g.agreeing += fabs(sum / (double)n - vb[k].value) <=
			      MEAN_ROUNDING * fabs(vb[k].value) + (double)vb[k].resolution;
	}
	return mostly(&g, PIECE_COMPARED_LEAST);
}

static bool walls_known(const struct piece *p)
{
	return isfinite(p->wall_first) && isfinite(p->wall_last);
}

static bool walls_meet(const struct piece *a, const struct piece *b)
{
	return walls_known(a) && walls_known(b) && a->wall_first <= b->wall_last &&
	       b->wall_first <= a->wall_last;
}

static bool walls_apart(const struct piece *a, const struct piece *b)
{
	return walls_known(a) && walls_known(b) && !walls_meet(a, b);
}

static bool starts_with(const struct piece *a, const struct piece *b)
{
	double room =
		fmax(isnan(a->interval) ? 1 : a->interval, isnan(b->interval) ? 1 : b->interval);

	return fabs(a->first_x - b->first_x) <= 2 * room;
}

/* Whether one begins inside of the other, which is carried on. */
static bool lies_inside(const struct curve_log *l, const struct piece *a, const struct piece *b)
{
	return piece_is_carried(l, b) && !piece_is_carried(l, a) && a->first_x > b->first_x &&
	       a->first_x <= b->last_x;
}

static bool same_folder(const struct curve_log *l, uint32_t a, uint32_t b)
{
	const char *pa = l->files.items[a].path, *pb = l->files.items[b].path;
	const char *ea = strrchr(pa, '/'), *eb = strrchr(pb, '/');
	size_t na = ea ? (size_t)(ea - pa) : 0, nb = eb ? (size_t)(eb - pb) : 0;

	return na == nb && memcmp(pa, pb, na) == 0;
}

static bool same_format(const struct curve_log *l, const struct piece *a, const struct piece *b)
{
	return strcmp(l->files.items[a->file].format, l->files.items[b->file].format) == 0;
}

/* A factor by which all values of two pieces differ: accumulation, or a sum instead of a mean. */
static double common_factor(
	const struct pieces *all, const struct piece *a, const struct piece *b, double offset)
{
	const struct piece_value *va = all->values.items + a->first_value;
	const struct piece_value *vb = all->values.items + b->first_value;

	for (size_t i = 0, k = 0; i < a->values && k < b->values;) {
		double x = vb[k].x + offset;
		if (va[i].x < x) {
			i++;
		} else if (va[i].x > x) {
			k++;
		} else {
			double f = va[i].value / vb[k].value;
			double whole = f >= 1 ? round(f) : 1 / round(1 / f);
			return isfinite(f) && whole != 1 && fabs(f / whole - 1) < 0.01 ? whole : 1;
		}
	}
	return 1;
}

static void set_same(struct pieces *all, struct piece *b, uint32_t as, double offset, double factor)
{
	const struct piece *a = &all->list.items[as];

	/* What it is the same as may itself be the same as another. */
	b->same_as = a->same_as == CURVE_NONE ? as : a->same_as;
	b->offset = offset + a->offset;
	b->factor = factor * a->factor;
	b->copy_of = CURVE_NONE;
	b->copied = all->list.items[b->same_as].copied;
}

/*
 * Relate `b` to an earlier piece of the same format. A log that holds all of another one, or the
 * same up to some step, was written by whoever had read that one: the states in the checkpoints of
 * one run. Of several it is related to the one with which it agrees the longest.
 */
static void relate_alike(struct pieces *all, uint32_t ia, struct piece *b, double *longest)
{
	const struct piece *a = &all->list.items[ia];
	size_t possible = a->values < b->values ? a->values : b->values;
	struct piece_agreement g = piece_compare(all, a, b, 0, 1, SIZE_MAX);

	if (walls_apart(a, b) && a->wall_first != b->wall_first)
		return;
	bool same = mostly(&g, possible) && g.prefix == g.compared;
	bool branch = g.prefix >= PIECE_COMPARED_LEAST && g.prefix < g.compared;
	if ((!same && !branch) || g.prefix_x < *longest || (same && g.prefix_x == *longest))
		return;
	*longest = g.prefix_x;
	if (same) {
		set_same(all, b, ia, 0, 1);
	} else {
		b->same_as = CURVE_NONE;
		b->copy_of = ia;
		b->copied = g.prefix_x;
	}
}

/* Relate `b` to an earlier piece of another format: is it the same launch? */
static void relate_other(
	struct pieces *all, const struct curve_log *l, uint32_t ia, struct piece *b)
{
	static const double offsets[] = {0, 1, -1};
	const struct piece *a = &all->list.items[ia];
	size_t possible = a->values < b->values ? a->values : b->values;

	if (l->series.items[a->main].role != l->series.items[b->main].role) {
		bool overlap = a->first_x <= b->last_x && b->first_x <= a->last_x;
		if (walls_meet(a, b) ||
			(!walls_apart(a, b) && overlap && same_folder(l, a->file, b->file)))
			set_same(all, b, ia, 0, 1);
		return;
	}
	/* Two launches log at two times, whatever they log. */
	if (walls_apart(a, b))
		return;
	for (size_t i = 0; i < sizeof offsets / sizeof *offsets; i++) {
		double factor = common_factor(all, a, b, offsets[i]);
		struct piece_agreement g =
			piece_compare(all, a, b, offsets[i], factor, COMPARED_MAX);
		if (mostly(&g, possible)) {
			set_same(all, b, ia, offsets[i], factor);
			return;
		}
	}
	if (is_mean_of(all, a, b) || is_mean_of(all, b, a) || walls_meet(a, b))
		set_same(all, b, ia, 0, 1);
}

static void relate_one(
	struct pieces *all, const struct curve_log *l, const uint32_t *order, uint32_t i)
{
	struct piece *b = &all->list.items[order[i]];
	double longest = -INFINITY;

	for (uint32_t n = 0; n < i; n++) {
		uint32_t k = order[n];
		const struct piece *a = &all->list.items[k];
		if (a->file == b->file || a->values == 0 || b->values == 0 ||
			(!starts_with(a, b) && !lies_inside(l, a, b)))
			continue;
		if (same_format(l, a, b) &&
			l->series.items[a->main].role == l->series.items[b->main].role)
			relate_alike(all, k, b, &longest);
		else if (b->same_as == CURVE_NONE && b->copy_of == CURVE_NONE)
			relate_other(all, l, k, b);
	}
}

/* What a launch logged itself comes before what others say of it. */
static int relate_all(struct pieces *all, const struct curve_log *l, struct error *e)
{
	uint32_t *order = calloc(all->list.count + 1, sizeof *order), n = 0;

	if (!order)
		return piece_no_memory(e);
	for (unsigned carried = 0; carried <= 1; carried++)
		for (uint32_t i = 0; i < all->list.count; i++)
			if (piece_is_carried(l, &all->list.items[i]) == carried)
				order[n++] = i;
	for (uint32_t i = 1; i < n; i++)
		relate_one(all, l, order, i);
	free(order);
	return RP_OK;
}

static uint32_t last_piece_of(const struct pieces *all, uint32_t file)
{
	for (uint32_t i = (uint32_t)all->list.count; i-- > 0;)
		if (all->list.items[i].file == file && all->list.items[i].values > 0)
			return i;
	return CURVE_NONE;
}

/*
 * A file that goes on where another one of the same process ended is of the same launch. One in
 * which the step goes back is not, whatever its name says.
 */
static void join_processes(struct pieces *all, const struct curve_log *l)
{
	for (uint32_t i = 1; i < all->list.count; i++) {
		struct piece *b = &all->list.items[i];
		uint32_t before = CURVE_NONE;
		if (all->list.items[i - 1].file == b->file || b->values == 0 ||
			b->same_as != CURVE_NONE || b->copy_of != CURVE_NONE || isfinite(b->loaded))
			continue;
		for (uint32_t f = l->files.items[b->file].continues; f > 0 && before == CURVE_NONE;
			f = l->files.items[f - 1].continues)
			before = last_piece_of(all, f - 1);
		if (before == CURVE_NONE)
			continue;
		const struct piece *a = &all->list.items[before];
		bool alike = l->series.items[a->main].role == l->series.items[b->main].role;
		if (alike ? b->first_x > a->last_x : b->first_x >= a->last_x)
			set_same(all, b, before, 0, 1);
	}
}

int pieces_cut(struct pieces *p, const struct curve_log *l, struct error *e)
{
	size_t first = 0, first_mark = 0;
	int status = RP_OK;

	*p = (struct pieces){.axis = choose_axis(l)};
	struct cutting c = {.l = l, .p = p, .last = calloc(l->series.count + 1, sizeof *c.last)};
	if (!c.last)
		return piece_no_memory(e);
	for (size_t i = 0; i < l->series.count; i++)
		if (is_off(l, &l->series.items[i], p->axis)) {
			p->off_file = p->off_axis ? p->off_file : l->series.items[i].file;
			p->off_axis += l->series.items[i].points;
		}
	for (uint32_t f = 0; f < l->files.count && status == RP_OK; f++) {
		c.file = f;
		c.main = choose_main(l, f, p->axis);
		for (c.end = first; c.end < l->points.count; c.end++)
			if (l->series.items[l->points.items[c.end].series].file != f)
				break;
		for (c.mark_end = first_mark; c.mark_end < l->marks.count; c.mark_end++)
			if (l->marks.items[c.mark_end].file != f)
				break;
		status = cut_file(&c, first, first_mark, e);
		first = c.end;
		first_mark = c.mark_end;
	}
	free(c.last);
	for (size_t i = 0; i < p->list.count && status == RP_OK; i++)
		status = gather_values(p, &p->list.items[i], l, e);
	if (status == RP_OK)
		status = piece_cut_carried(p, l, e);
	if (status == RP_OK)
		status = relate_all(p, l, e);
	if (status == RP_OK)
		join_processes(p, l);
	if (status < 0)
		pieces_release(p);
	return status;
}

void pieces_release(struct pieces *p)
{
	array_release(&p->list);
	array_release(&p->values);
	array_release(&p->jumbled);
}
