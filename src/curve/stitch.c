/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "curve/stitch.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>

#include "curve/piece.h"

#define ATTEMPTS_MAX 1000000u
#define NOTES_MAX 100u
#define HIDDEN_ERRORS 4.0 /* deviations of the rounding of a sum of logged losses */
#define HIDDEN_FLOAT 1e-7 /* relative, of what was summed up in float32 */

static int no_memory(struct error *e)
{
	return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for the curve");
}

static void note(struct stitch *s, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void note(struct stitch *s, const char *format, ...)
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

/* Attempts from pieces --------------------------------------------------------------------------
 */

struct launch {
	uint32_t piece; /* the first one of it */
	double wall;
	uint32_t order;
};

struct building {
	struct stitch *s;
	const struct curve_log *l;
	struct pieces pieces;
	uint32_t *attempt_of; /* by piece */
};

static int by_wall(const void *pa, const void *pb)
{
	const struct launch *a = pa, *b = pb;

	if (a->wall != b->wall)
		return a->wall < b->wall ? -1 : 1;
	return (a->order > b->order) - (a->order < b->order);
}

/*
 * Bring launches into the order in which they happened: by the clock where all say it, else by file
 * and place in it. A clock that was set back does not turn around what stands in one file.
 */
static void order_launches(struct building *b, struct launch *list, size_t n)
{
	double latest = -INFINITY;
	uint32_t file = CURVE_NONE;

	for (size_t i = 0; i < n; i++)
		if (!isfinite(list[i].wall))
			return;
	for (size_t i = 0; i < n; i++) {
		const struct piece *p = &b->pieces.list.items[list[i].piece];
		if (p->file == file && list[i].wall < latest)
			list[i].wall = latest;
		file = p->file;
		latest = list[i].wall;
	}
	qsort(list, n, sizeof *list, by_wall);
}

static double fewer(double a, double b)
{
	return isnan(a) ? b : isnan(b) ? a : fmin(a, b);
}

static double more(double a, double b)
{
	return isnan(a) ? b : isnan(b) ? a : fmax(a, b);
}

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

/* What a piece adds to its attempt. */
static void take_piece(struct stitch_attempt *a, const struct piece *p, const struct curve_log *l)
{
	double first = p->first_x + p->offset, last = p->last_x + p->offset;

	if (p->copied >= first)
		first = p->copied + (isnan(p->interval) ? 1 : p->interval);
	a->files++;
	a->first_x = fewer(a->first_x, first);
	a->last_x = more(a->last_x, last);
	a->wall_first = fewer(a->wall_first, p->wall_first);
	a->wall_last = more(a->wall_last, p->wall_last);
	if (isfinite(p->loaded) && (isnan(a->from) || a->purged)) {
		a->from = p->loaded;
		a->purged = p->purged;
		a->how = STITCH_SAID;
	}
	for (size_t i = p->first_mark; i < p->end_mark; i++) {
		a->finished |= l->marks.items[i].kind == CURVE_FINISHED;
		a->killed |= l->marks.items[i].kind == CURVE_KILLED;
	}
}

/* What is not said of a step, and is not logged at every step, may be a mean. */
static bool is_mean(const struct curve_series *s, double interval)
{
	return s->mean == CURVE_OF_INTERVAL || (s->mean == CURVE_OF_UNKNOWN && interval > 1);
}

static int make_attempts(struct building *b, struct error *e)
{
	struct stitch *s = b->s;
	size_t n = 0, count = b->pieces.list.count;
	struct launch *list = calloc(count + 1, sizeof *list);
	int status = RP_OK;

	b->attempt_of = calloc(count + 1, sizeof *b->attempt_of);
	if (!list || !b->attempt_of) {
		free(list);
		return no_memory(e);
	}
	for (uint32_t i = 0; i < count; i++) {
		const struct piece *p = &b->pieces.list.items[i];
		if (p->same_as == CURVE_NONE && p->values > 0)
			list[n] = (struct launch){i, p->wall_first, (uint32_t)n}, n++;
	}
	order_launches(b, list, n);
	for (size_t i = 0; i < count; i++)
		b->attempt_of[i] = CURVE_NONE;
	for (size_t i = 0; i < n && status == RP_OK; i++) {
		const struct piece *p = &b->pieces.list.items[list[i].piece];
		struct stitch_attempt *a = array_push(&s->attempts, ATTEMPTS_MAX);
		if (!a) {
			status = no_memory(e);
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
			.mean = is_mean(&b->l->series.items[p->main], p->interval),
			.file = p->file};
		b->attempt_of[list[i].piece] = (uint32_t)i;
		take_piece(a, p, b->l);
	}
	/* The others are of the attempt of the piece that they are the same as. */
	for (size_t i = 0; i < count && status == RP_OK; i++) {
		const struct piece *p = &b->pieces.list.items[i];
		if (p->same_as == CURVE_NONE)
			continue;
		b->attempt_of[i] = b->attempt_of[p->same_as];
		if (b->attempt_of[i] != CURVE_NONE)
			take_piece(&s->attempts.items[b->attempt_of[i]], p, b->l);
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
static void note_pieces(struct building *b)
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
		if (p->offset != 0)
			note(b->s, "%s holds the attempt of %s, with steps counted from %d",
				base_name(b->l, file), base_name(b->l, other),
				p->offset > 0 ? 0 : 1);
		else if (p->factor != 1)
			note(b->s, "%s holds the attempt of %s, with values that are 1/%g of its",
				base_name(b->l, file), base_name(b->l, other), p->factor);
	}
	for (size_t i = 0; i < all->jumbled.count; i++)
		note(b->s,
			"%s: the step goes to and fro as if several processes wrote into it; it is not "
			"cut into attempts",
			base_name(b->l, all->jumbled.items[i]));
	if (all->off_axis > 0)
		note(b->s, "%llu points whose x is in another unit are left out",
			(unsigned long long)all->off_axis);
}

/* Settings and saves --------------------------------------------------------------------------- */

static int compare_saves(const void *pa, const void *pb)
{
	const struct stitch_save *a = pa, *b = pb;

	if (a->x != b->x)
		return a->x < b->x ? -1 : 1;
	return (a->attempt > b->attempt) - (a->attempt < b->attempt);
}

static bool add_setting(struct building *b, uint32_t attempt, const struct curve_mark *m)
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

static int gather_marks(struct building *b, const struct stitch_options *o, struct error *e)
{
	struct stitch *s = b->s;

	for (size_t i = 0; i < b->pieces.list.count; i++) {
		const struct piece *p = &b->pieces.list.items[i];
		if (b->attempt_of[i] == CURVE_NONE)
			continue;
		for (size_t k = p->first_mark; k < p->end_mark; k++) {
			const struct curve_mark *m = &b->l->marks.items[k];
			if (m->kind == CURVE_SETTING && !add_setting(b, b->attempt_of[i], m))
				return no_memory(e);
			if (m->kind != CURVE_SAVED || !isfinite(m->x) || m->unit != s->axis)
				continue;
			struct stitch_save *save = array_push(&s->saves, SIZE_MAX);
			if (!save)
				return no_memory(e);
			*save = (struct stitch_save){b->attempt_of[i], m->x};
		}
	}
	for (size_t i = 0; i < o->save_count + o->resume_count; i++) {
		struct stitch_save *save = array_push(&s->saves, SIZE_MAX);
		if (!save)
			return no_memory(e);
		/* From where it resumed something was saved. */
		*save = (struct stitch_save){CURVE_NONE,
			i < o->save_count ? o->saves[i] : o->resumes[i - o->save_count]};
	}
	if (s->saves.count > 1)
		qsort(s->saves.items, s->saves.count, sizeof *s->saves.items, compare_saves);
	return RP_OK;
}

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
	/* The first attempt of the logs began before them, or afresh. */
	if (i == 0 && a->first_x <= interval + 1)
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
static void branch_from(struct building *b, uint32_t i)
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

static int build_lineage(struct building *b, const struct stitch_options *o, struct error *e)
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
			return no_memory(e);
		*seam = (struct stitch_seam){.from = a->parent, .to = i, .x = a->from};
	}
	for (size_t i = 0, k = s->seams.count; i + 1 < k; i++) {
		struct stitch_seam swap = s->seams.items[i];
		s->seams.items[i] = s->seams.items[--k];
		s->seams.items[k] = swap;
	}
	return RP_OK;
}

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
				return no_memory(e);
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

static int gather_track(struct building *b, struct stitch_track *t, const struct stitch_options *o,
	struct gathering *g, struct error *e)
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
				return no_memory(e);
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
static int rank_gathered(struct building *b, struct gathering *g, struct error *e)
{
	size_t n = b->l->series.count;
	struct ranked *list = calloc(n + 1, sizeof *list);

	if (!list)
		return no_memory(e);
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
		return 1;
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
static int take_attempt(struct building *b, struct stitch_track *t, const struct gathered *list,
	size_t n, struct error *e)
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
			return no_memory(e);
		*v = g->v;
		first = own ? fewer(first, v->x) : first;
		last = own ? more(last, v->x) : last;
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
		return no_memory(e);
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

static int fill_track(struct building *b, struct stitch_track *t, const struct stitch_options *o,
	struct gathering *g, struct error *e)
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

static int fill_tracks(struct building *b, const struct stitch_options *o, struct error *e)
{
	struct gathering g = {.rank = calloc(b->l->series.count + 1, sizeof *g.rank)};
	int status = g.rank ? RP_OK : no_memory(e);

	for (size_t i = 0; i < b->s->tracks.count && status == RP_OK; i++)
		status = fill_track(b, &b->s->tracks.items[i], o, &g, e);
	array_release(&g.list);
	free(g.rank);
	return status;
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

static int find_hidden(struct building *b, struct error *e)
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
				return no_memory(e);
			if (seam)
				*seam = (struct stitch_seam){
					.from = attempt, .to = attempt, .x = from, .hidden = true};
		}
	}
	return RP_OK;
}

/* Resumes that the caller knows of, and no attempt begins with. */
static int add_known(struct stitch *s, const struct stitch_options *o, struct error *e)
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
			return no_memory(e);
		*seam = (struct stitch_seam){.from = attempt, .to = attempt, .x = x, .known = true};
	}
	return RP_OK;
}

static int compare_seams(const void *pa, const void *pb)
{
	const struct stitch_seam *a = pa, *b = pb;

	if (a->x != b->x)
		return a->x < b->x ? -1 : 1;
	return (a->to > b->to) - (a->to < b->to);
}

/* The whole ------------------------------------------------------------------------------------ */

int stitch_build(struct stitch *s, const struct curve_log *l, const struct stitch_options *o,
	struct error *e)
{
	struct building b = {.s = s, .l = l};

	*s = (struct stitch){.log = l, .tip = CURVE_NONE};
	arena_init(&s->arena, SIZE_MAX);
	int status = pieces_cut(&b.pieces, l, e);
	s->axis = b.pieces.axis;
	if (status == RP_OK)
		status = make_attempts(&b, e);
	if (status == RP_OK)
		status = gather_marks(&b, o, e);
	if (status == RP_OK)
		status = build_lineage(&b, o, e);
	if (status == RP_OK)
		status = add_tracks(s, l, e);
	if (status == RP_OK)
		status = fill_tracks(&b, o, e);
	if (status == RP_OK) {
		count_points(s);
		note_pieces(&b);
		status = find_hidden(&b, e);
	}
	if (status == RP_OK)
		status = add_known(s, o, e);
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
	for (size_t i = 0; i < s->tracks.count; i++) {
		array_release(&s->tracks.items[i].values);
		array_release(&s->tracks.items[i].line);
	}
	array_release(&s->attempts);
	array_release(&s->tracks);
	array_release(&s->seams);
	array_release(&s->settings);
	array_release(&s->saves);
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
