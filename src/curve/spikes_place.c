/* SPDX-License-Identifier: MIT */
/* The events of a stitch's loss, and where they lie among what else happened. */
#include <math.h>
#include <stdlib.h>

#include "curve/spikes.h"

#define NEAR_STEPS 50.0 /* of a resume or another thing that is near */
#define LEAD_STEPS 100.0
#define ALIKE_SHARE 0.7   /* of a spike's height, that others are as high */
#define ALIKE_LEAST 3u    /* of them that tell how often they come */
#define ALIKE_CHANCE 0.05 /* that one lies behind some resume by accident */
#define LR_JUMP 0.05      /* relative change from one point to the next that is no schedule */

static int no_memory(struct error *e)
{
	return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for the spikes");
}

/* Places --------------------------------------------------------------------------------------- */

double spikes_warmup_end(const struct stitch *s)
{
	const struct stitch_track *t = stitch_track_of(s, CURVE_LR);
	size_t n = t ? t->line.count : 0, i = 1;

	while (i < n && t->values.items[t->line.items[i]].value >
				t->values.items[t->line.items[i - 1]].value)
		i++;
	return i >= 3 && i < n ? t->values.items[t->line.items[i - 1]].x : NAN;
}

struct placing {
	const struct stitch *s;
	double warmup;
	double step;        /* that a point covers */
	double near;        /* so far apart are things that have to do with each other */
	double *lr_changes; /* x, ascending */
	size_t lr_count;
};

static void place_at(struct spike *k, enum spike_place place, double x)
{
	k->place = (uint8_t)place;
	k->place_x = x;
}

/* The nearest of sorted x that is at most `room` before the onset, or NAN. */
static double nearest_before(const double *list, size_t n, double x, double room)
{
	double best = NAN;

	for (size_t i = 0; i < n && list[i] <= x; i++)
		if (x - list[i] <= room)
			best = list[i];
	return best;
}

static void find_lr_changes(struct placing *p)
{
	const struct stitch_track *t = stitch_track_of(p->s, CURVE_LR);

	if (!t || t->line.count < 3)
		return;
	p->lr_changes = calloc(t->line.count, sizeof *p->lr_changes);
	for (size_t i = 2; p->lr_changes && i < t->line.count; i++) {
		double a = t->values.items[t->line.items[i - 2]].value;
		double b = t->values.items[t->line.items[i - 1]].value;
		double c = t->values.items[t->line.items[i]].value;
		/* A schedule goes on as it went. */
		if (fabs(c - b) > LR_JUMP * fabs(b) &&
			fabs((c - b) - (b - a)) > LR_JUMP * fabs(b) && p->lr_count < t->line.count)
			p->lr_changes[p->lr_count++] = t->values.items[t->line.items[i]].x;
	}
}

static bool near_mark(const struct placing *p, struct spike *k, enum curve_mark_kind kind,
	enum spike_place place, double room)
{
	for (size_t i = 0; i < p->s->log->marks.count; i++) {
		const struct curve_mark *m = &p->s->log->marks.items[i];
		if (m->kind != kind || m->unit != p->s->axis || !(fabs(m->x - k->x) <= room))
			continue;
		place_at(k, place, m->x);
		return true;
	}
	return false;
}

/* Where the next epoch begins, by the track of epochs. One that was set back is no next one. */
static bool near_epoch(const struct placing *p, struct spike *k, double room)
{
	const struct stitch_track *t = stitch_track_of(p->s, CURVE_EPOCH_COUNT);

	if (p->s->axis == CURVE_EPOCHS && round(k->x) >= 1 && fabs(k->x - round(k->x)) <= room) {
		place_at(k, SPIKE_AT_EPOCH, round(k->x));
		return true;
	}
	for (size_t i = 1; t && i < t->line.count; i++) {
		const struct stitch_value *a = &t->values.items[t->line.items[i - 1]];
		const struct stitch_value *b = &t->values.items[t->line.items[i]];
		if (floor(b->value) != floor(a->value) + 1 || !(fabs(b->x - k->x) <= room))
			continue;
		place_at(k, SPIKE_AT_EPOCH, b->x);
		return true;
	}
	return near_mark(p, k, CURVE_EPOCH, SPIKE_AT_EPOCH, room);
}

/* One point of its own. */
static bool is_alone(const struct placing *p, const struct spike *k)
{
	return k->class == SPIKE_FAST && k->end_x - k->x <= p->step;
}

/* How far behind a resume a spike may begin that is its doing. What a resume does, lasts, or begins
 * with it: one point of its own a while later is an odd batch. */
static double reach(const struct placing *p, const struct spike *k)
{
	return is_alone(p, k) ? 5 * p->step : p->near;
}

static void place_spike(const struct placing *p, struct spike *k)
{
	double behind = reach(p, k);
	const struct stitch_attempt *a = &p->s->attempts.items[k->attempt];

	/* A loss that falls where an epoch begins does so at every epoch, resumed there or not. */
	if (k->class == SPIKE_DROP && near_epoch(p, k, 2 * p->step))
		return;
	for (size_t i = 0; i < p->s->seams.count; i++)
		if (k->x > p->s->seams.items[i].x && k->x - p->s->seams.items[i].x <= behind)
			place_at(k, SPIKE_AT_RESUME, p->s->seams.items[i].x);
	if (a->parent != CURVE_NONE && k->x > a->from && k->x - a->from <= behind)
		place_at(k, SPIKE_AT_RESUME, a->from);
	if (k->place != SPIKE_ANYWHERE)
		return;
	double lr = nearest_before(p->lr_changes, p->lr_count, k->x, p->near);
	if (!isnan(lr))
		place_at(k, SPIKE_AT_LR_CHANGE, lr);
	else if (fabs(k->x - p->warmup) <= fmax(p->near, 0.1 * p->warmup))
		place_at(k, SPIKE_AT_WARMUP_END, p->warmup);
	else if (!near_mark(p, k, CURVE_OVERFLOW, SPIKE_AT_SCALER, 5 * p->step))
		near_epoch(p, k, 2 * p->step);
}

/*
 * Whether a run has such spikes all the time: as high ones, elsewhere, so many that one lies behind
 * some resume as a matter of course.
 */
static size_t find_alike(const struct placing *p, const struct spikes *all, const struct spike *k)
{
	const struct stitch_track *t = stitch_track_of(p->s, CURVE_LOSS);
	size_t alike = 0, resumes = p->s->seams.count;
	double height = ALIKE_SHARE * (k->peak - k->baseline);

	for (size_t i = 0; i < all->list.count; i++) {
		const struct spike *o = &all->list.items[i];
		alike += o->class == SPIKE_FAST && o->place != SPIKE_AT_RESUME && !o->dead &&
			 is_alone(p, o) == is_alone(p, k) && o->peak - o->baseline >= height;
	}
	if (alike < ALIKE_LEAST || t->line.count < 2)
		return 0;
	double first = t->values.items[t->line.items[0]].x;
	double length = t->values.items[t->line.items[t->line.count - 1]].x - first;
	double chance = (double)alike * reach(p, k) * (double)resumes / length;
	return chance > ALIKE_CHANCE ? alike : 0;
}

/* The curves of a stitch ------------------------------------------------------------------------
 */

struct arrays {
	double *x, *v;
	float *resolution, *noise;
	uint32_t *attempt;
	size_t n;
	double batch; /* of the first value; 0: it is always the same, or not known */
};

static bool arrays_alloc(struct arrays *a, size_t n)
{
	*a = (struct arrays){.x = calloc(n + 1, sizeof *a->x),
		.v = calloc(n + 1, sizeof *a->v),
		.resolution = calloc(n + 1, sizeof *a->resolution),
		.noise = calloc(n + 1, sizeof *a->noise),
		.attempt = calloc(n + 1, sizeof *a->attempt)};
	return a->x && a->v && a->resolution && a->noise && a->attempt;
}

static void arrays_free(struct arrays *a)
{
	free(a->x);
	free(a->v);
	free(a->resolution);
	free(a->noise);
	free(a->attempt);
}

/* A mean over fewer samples has more noise: by the root of their number. */
static float noise_of(struct arrays *a, const struct stitch *s, const struct stitch_value *v)
{
	double batch = s->batch_changes ? stitch_batch(s, v->attempt, v->x) : NAN;

	if (!(batch > 0))
		return 1;
	a->batch = a->batch > 0 ? a->batch : batch;
	return (float)sqrt(a->batch / batch);
}

static void arrays_add(
	struct arrays *a, const struct stitch *s, const struct stitch_value *v, bool logarithm)
{
	/* A gradient norm is judged by its size, and its resolution is lost with it. */
	if (logarithm && !(v->value > 0) && isfinite(v->value))
		return;
	a->x[a->n] = v->x;
	a->v[a->n] = logarithm ? log(v->value) : v->value;
	a->resolution[a->n] = logarithm ? 0 : v->resolution;
	a->noise[a->n] = noise_of(a, s, v);
	a->attempt[a->n++] = v->attempt;
}

static void arrays_line(
	struct arrays *a, const struct stitch *s, const struct stitch_track *t, bool logarithm)
{
	for (size_t i = 0; i < t->line.count; i++)
		arrays_add(a, s, &t->values.items[t->line.items[i]], logarithm);
}

/* The dead part of an attempt behind what leads to it, of which a few windows are enough. */
static size_t arrays_dead(struct arrays *a, const struct stitch *s, const struct stitch_track *t,
	uint32_t attempt, uint32_t *index)
{
	size_t first, end, dead = 0;

	stitch_values_of(t, attempt, &first, &end);
	for (size_t i = first; i < end; i++)
		dead += !t->values.items[i].alive;
	size_t n = stitch_branch(s, t, attempt, INFINITY, index, dead + 4 * SPIKE_WINDOW);
	a->n = 0;
	for (size_t i = 0; i < n; i++)
		arrays_add(a, s, &t->values.items[index[i]], false);
	return dead;
}

static int find_dead(
	struct spikes *out, const struct stitch *s, const struct stitch_track *t, struct error *e)
{
	struct arrays a;
	uint32_t *index = calloc(t->values.count + 1, sizeof *index);
	int status = RP_OK;

	if (!arrays_alloc(&a, t->values.count) || !index)
		status = no_memory(e);
	for (uint32_t i = 0; status == RP_OK && i < s->attempts.count; i++) {
		if (s->attempts.items[i].dead == 0)
			continue;
		struct spikes own = {.coarse = NAN};
		size_t dead = arrays_dead(&a, s, t, i, index);
		struct spike_curve c = {
			a.x, a.v, a.resolution, a.noise, a.attempt, a.n, false, stitch_step(s)};
		status = spikes_find(&own, &c, t->interval, e);
		for (size_t k = 0; status == RP_OK && k < own.list.count; k++) {
			struct spike *from = &own.list.items[k];
			if (from->attempt != i || from->x < a.x[a.n - dead])
				continue;
			struct spike *to = array_push(&out->list, SIZE_MAX);
			if (!to) {
				status = no_memory(e);
				break;
			}
			*to = *from;
			to->dead = true;
		}
		array_release(&own.list);
	}
	arrays_free(&a);
	free(index);
	return status;
}

/* By how much the gradient norm was first, by its own events on the line. */
static int find_leads(struct spikes *out, const struct stitch *s, struct error *e)
{
	const struct stitch_track *t = stitch_track_of(s, CURVE_GRAD_NORM);
	struct spikes own = {.coarse = NAN};
	struct arrays a;

	if (!t)
		return RP_OK;
	int status = arrays_alloc(&a, t->values.count) ? RP_OK : no_memory(e);
	if (status == RP_OK) {
		arrays_line(&a, s, t, true);
		struct spike_curve c = {
			a.x, a.v, a.resolution, a.noise, a.attempt, a.n, false, stitch_step(s)};
		status = spikes_find(&own, &c, t->interval, e);
	}
	for (size_t i = 0; status == RP_OK && i < out->list.count; i++) {
		struct spike *k = &out->list.items[i];
		for (size_t g = 0; g < own.list.count && !k->dead && k->class <= SPIKE_DIVERGED;
			g++) {
			double lead = k->x - own.list.items[g].x;
			if (fabs(lead) <= LEAD_STEPS * stitch_step(s) &&
				(isnan(k->lead) || lead > k->lead))
				k->lead = lead;
		}
	}
	array_release(&own.list);
	arrays_free(&a);
	return status;
}

static int compare_spikes(const void *pa, const void *pb)
{
	const struct spike *a = pa, *b = pb;

	if (a->x != b->x)
		return a->x < b->x ? -1 : 1;
	return (a->attempt > b->attempt) - (a->attempt < b->attempt);
}

int spikes_of(struct spikes *out, const struct stitch *s, struct error *e)
{
	const struct stitch_track *t = stitch_track_of(s, CURVE_LOSS);
	struct arrays a;

	*out = (struct spikes){.coarse = NAN, .interval = 1};
	if (!t)
		return RP_OK;
	out->interval = isnan(t->interval) ? 1 : t->interval;
	int status = arrays_alloc(&a, t->values.count) ? RP_OK : no_memory(e);
	if (status == RP_OK) {
		arrays_line(&a, s, t, false);
		struct spike_curve c = {
			a.x, a.v, a.resolution, a.noise, a.attempt, a.n, true, stitch_step(s)};
		status = spikes_find(out, &c, t->interval, e);
	}
	arrays_free(&a);
	if (status == RP_OK)
		status = find_dead(out, s, t, e);
	if (status == RP_OK)
		status = find_leads(out, s, e);
	/* How many steps an epoch has is not known where epochs are all there is: points are
	 * counted instead. */
	bool steps = s->axis == CURVE_STEPS;
	double step = steps || isnan(t->interval) ? fmax(1, out->interval) : t->interval;
	struct placing p = {.s = s,
		.warmup = spikes_warmup_end(s),
		.step = step,
		.near = steps ? fmax(NEAR_STEPS, 5 * step) : 5 * step};
	if (status == RP_OK) {
		find_lr_changes(&p);
		for (size_t i = 0; i < out->list.count; i++)
			place_spike(&p, &out->list.items[i]);
		for (size_t i = 0; i < out->list.count; i++)
			if (out->list.items[i].place == SPIKE_AT_RESUME &&
				out->list.items[i].class == SPIKE_FAST)
				out->list.items[i].alike = find_alike(&p, out, &out->list.items[i]);
		if (out->list.count > 1)
			qsort(out->list.items, out->list.count, sizeof *out->list.items,
				compare_spikes);
	} else {
		spikes_release(out);
	}
	free(p.lr_changes);
	return status;
}
