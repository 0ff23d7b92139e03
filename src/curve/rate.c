/* SPDX-License-Identifier: MIT */
#include "curve/rate.h"

#include <math.h>
#include <string.h>

#include "curve/resume_parts.h"

#define RESTART_LEAST 5u     /* rates of the run's beginning that come again */
#define BINARY_ROUNDING 2e-7 /* of float32, relative */
#define FIRST_POINTS 20u     /* of an attempt, that are compared */
#define KNOWN_POINTS 512u
#define LOOKED_UP_LEAST 5u
#define LINE_POINTS 8u    /* on a line, by which it is drawn out */
#define LINE_ROUNDINGS 16 /* that it falls by, so that few digits make no line */
#define STEPS_LEAST 2.0   /* of a lag: one comes of logging before or after the schedule moves */
#define JUMP_SHARE 0.01   /* of the rate, below which nothing is a jump */
#define JUMP_PACE 1.5     /* times what the steepest pace of either side explains */
#define SAME_JUMP 0.5     /* of a jump (its logarithm), by which the schedule itself jumps too */
#define SAME_FACTOR 0.02  /* by which factors may differ */
#define FACTOR_MOST 1024  /* of processes or micro-batches */
#define ENDED_SHARE 0.05  /* of the highest rate, below which a schedule has ended */
#define LAGS_TRIED 16u    /* between the least and the largest possible one */
#define SKIPS_MOST 24     /* updates that a new loss scaler skips */

/* Rates in order, with the room that rounding leaves each. */
struct rates {
	double x[KNOWN_POINTS], v[KNOWN_POINTS], room[KNOWN_POINTS];
	size_t n;
};

struct looking {
	struct rates known; /* up to the resume, and behind it those of a dead branch */
	size_t before;      /* how many are up to the resume */
	struct rates again; /* of the attempt */
	size_t first;       /* how many of those are compared */
	double from;
	double least; /* x that is a lag at the least */
};

static size_t smallest(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* With how many digits the rates of an attempt were logged. Writers leave out zeros at the end, so
 * one value does not tell. */
struct digits {
	uint32_t attempt;
	double decimals;    /* the finest unit of any */
	double significant; /* the most of any */
};

static struct digits digits_of(const struct stitch_track *t, uint32_t attempt)
{
	struct digits d = {attempt, INFINITY, 0};
	size_t i, end;

	stitch_values_of(t, attempt, &i, &end);
	for (; i < end; i++) {
		const struct stitch_value *v = &t->values.items[i];
		if (!(v->resolution > 0) || !(v->value > 0))
			continue;
		d.decimals = fmin(d.decimals, (double)v->resolution);
		d.significant = fmax(d.significant,
			floor(log10(v->value)) - round(log10((double)v->resolution)) + 1);
	}
	return d;
}

static void add_rate(struct rates *r, const struct stitch_track *t, size_t i, struct digits *digits)
{
	const struct stitch_value *v = &t->values.items[i];
	double unit = (double)v->resolution;

	if (r->n == KNOWN_POINTS || !isfinite(v->value) || v->value < 0 ||
		(r->n > 0 && v->x <= r->x[r->n - 1]))
		return;
	if (digits->attempt != v->attempt)
		*digits = digits_of(t, v->attempt);
	if (unit > 0 && v->value > 0)
		unit = fmin(unit, fmax(digits->decimals, pow(10, floor(log10(v->value)) -
									 digits->significant + 1)));
	r->x[r->n] = v->x;
	r->v[r->n] = v->value;
	r->room[r->n++] = (unit * (1 + 1e-6) + BINARY_ROUNDING * v->value) / 2;
}

/* Whether two values are of series of one name: groups of parameters have rates of their own. */
static bool same_series(
	const struct stitch *s, const struct stitch_value *a, const struct stitch_value *b)
{
	return strcmp(s->log->series.items[a->series].name, s->log->series.items[b->series].name) ==
	       0;
}

static bool gather(struct looking *l, const struct stitch *s, const struct stitch_track *t,
	uint32_t attempt, uint32_t reference)
{
	struct digits digits = {.attempt = CURVE_NONE};
	uint32_t index[KNOWN_POINTS / 2];
	size_t i, end;
	size_t n = stitch_branch(s, t, s->attempts.items[attempt].parent, l->from, index,
		sizeof index / sizeof *index);

	for (size_t k = 0; k < n; k++)
		add_rate(&l->known, t, index[k], &digits);
	l->before = l->known.n;
	stitch_values_of(t, attempt, &i, &end);
	while (i < end && t->values.items[i].x <= l->from)
		i++;
	if (n == 0 || l->before == 0 || i == end ||
		!same_series(s, &t->values.items[index[n - 1]], &t->values.items[i]))
		return false;
	for (; i < end; i++)
		add_rate(&l->again, t, i, &digits);
	l->first = smallest(l->again.n, FIRST_POINTS);
	if (reference != CURVE_NONE) {
		stitch_values_of(t, reference, &i, &end);
		for (; i < end; i++)
			if (t->values.items[i].x > l->from)
				add_rate(&l->known, t, i, &digits);
	}
	return l->again.n > 0;
}

/* What the known rates give -------------------------------------------------------------------- */

/* By how much the rate bends around point i. */
static double bend(const struct rates *r, size_t i)
{
	if (i == 0 || i + 1 >= r->n)
		return 0;
	double share = (r->x[i] - r->x[i - 1]) / (r->x[i + 1] - r->x[i - 1]);
	return fabs(r->v[i] - (r->v[i - 1] + share * (r->v[i + 1] - r->v[i - 1])));
}

/* Whether the last points lie on a line, and its slope. */
static bool on_a_line(const struct rates *r, double *slope)
{
	if (r->n < LINE_POINTS)
		return false;
	size_t first = r->n - LINE_POINTS, last = r->n - 1;
	*slope = (r->v[last] - r->v[first]) / (r->x[last] - r->x[first]);
	for (size_t i = first; i <= last; i++)
		if (fabs(r->v[first] + *slope * (r->x[i] - r->x[first]) - r->v[i]) >
			r->room[first] + r->room[i] + r->room[last])
			return false;
	return true;
}

/*
 * How unsure a line is that is drawn out by `far` times the length that it was seen over, in
 * roundings: by its ends, and by the bend that rounding may hide.
 */
static double drawn_out(double far)
{
	return 1 + 2 * far + 12 * far * (1 + far);
}

/* The rate at x, and how sure that is; NAN where nothing tells. */
static double rate_at(const struct rates *r, double x, double *room)
{
	double slope;

	for (size_t i = 0; i + 1 < r->n; i++) {
		if (x < r->x[i] || x > r->x[i + 1])
			continue;
		double share = (x - r->x[i]) / (r->x[i + 1] - r->x[i]);
		bool inside = share > 0 && share < 1;
		*room = fmax(r->room[i], r->room[i + 1]) +
			(inside ? fmax(bend(r, i), bend(r, i + 1)) : 0);
		return r->v[i] + share * (r->v[i + 1] - r->v[i]);
	}
	if (r->n == 0 || x < r->x[r->n - 1] || !on_a_line(r, &slope))
		return NAN;
	double far = (x - r->x[r->n - 1]) / (r->x[r->n - 1] - r->x[r->n - LINE_POINTS]);
	*room = r->room[r->n - 1] * drawn_out(far);
	return r->v[r->n - 1] + slope * (x - r->x[r->n - 1]);
}

/* The steps that a rate may belong to; `high` is infinite where nothing tells. */
struct looked_up {
	double low, high;
};

/* Where between points i and i + 1 the rate passes v. */
static double crossing(const struct rates *r, size_t i, double v)
{
	double rise = r->v[i + 1] - r->v[i], share = rise == 0 ? 0.5 : (v - r->v[i]) / rise;

	return r->x[i] + fmin(1, fmax(0, share)) * (r->x[i + 1] - r->x[i]);
}

/* Behind the last known rate, on the line that they end with. */
static bool look_ahead(
	const struct rates *r, double v, double v_room, double direction, struct looked_up *out)
{
	size_t last = r->n - 1;
	double slope;

	if (!on_a_line(r, &slope) || slope * direction <= 0 ||
		fabs(r->v[last] - r->v[r->n - LINE_POINTS]) < LINE_ROUNDINGS * r->room[last])
		return false;
	double far = fabs(v - r->v[last]) / fabs(r->v[last] - r->v[r->n - LINE_POINTS]);
	double x = r->x[last] + (v - r->v[last]) / slope;
	double room = (v_room + r->room[last] * drawn_out(far)) / fabs(slope);
	*out = (struct looked_up){x - room, x + room};
	return true;
}

/*
 * The steps of the rate v on the newest stretch of the known rates that goes one way, `direction`;
 * behind its end on the line that it ends with. Rates that were logged with few digits stand still
 * for many steps, and any of those may be meant. False where it is on neither.
 */
static bool look_up(
	const struct rates *r, double v, double v_room, double direction, struct looked_up *out)
{
	size_t last = r->n - 1, high = last;

	if (direction * (v - r->v[last]) > v_room + r->room[last])
		return look_ahead(r, v, v_room, direction, out);
	while (direction * (r->v[high] - v) > v_room + r->room[high]) {
		if (high == 0 || direction * (r->v[high] - r->v[high - 1]) < 0)
			return false;
		high--;
	}
	size_t low = high;
	while (low > 0 && direction * (v - r->v[low]) <= v_room + r->room[low] &&
		direction * (r->v[low] - r->v[low - 1]) >= 0)
		low--;
	double room = v_room + r->room[high];
	size_t next = high < last ? high + 1 : last;
	double steep = next > low ? fabs(r->v[next] - r->v[low]) / (r->x[next] - r->x[low]) : 0;
	double bent = fmax(bend(r, low), fmax(bend(r, high), bend(r, next)));
	double unsure = steep > 0 ? bent / 4 / steep : 0;
	out->low = (low < last ? crossing(r, low, v - direction * room) : r->x[low]) - unsure;
	/* The last rate may go on for any time. */
	out->high = high < last ? crossing(r, high, v + direction * room) + unsure : INFINITY;
	return true;
}

/* Whether a rate that decays by a constant factor a step does so: then a lag is a factor as well.
 */
static bool is_exponential(const struct rates *r)
{
	double slope;

	if (r->n < LINE_POINTS || r->v[r->n - LINE_POINTS] <= 0 || r->v[r->n - 1] <= 0 ||
		on_a_line(r, &slope))
		return false;
	size_t first = r->n - LINE_POINTS, last = r->n - 1;
	double pace = log(r->v[last] / r->v[first]) / (r->x[last] - r->x[first]);
	for (size_t i = first; i <= last; i++) {
		double wanted = r->v[first] * exp(pace * (r->x[i] - r->x[first]));
		if (fabs(wanted - r->v[i]) > 2 * (r->room[first] + r->room[i] + r->room[last]))
			return false;
	}
	return true;
}

/* The pace at the resume ----------------------------------------------------------------------- */

/* The steepest pace from point `first` on, over n points. */
static double steepest(const struct rates *r, size_t first, size_t n)
{
	double most = 0;

	for (size_t i = first; i + 1 < first + n && i + 1 < r->n; i++)
		most = fmax(most, fabs(r->v[i + 1] - r->v[i]) / (r->x[i + 1] - r->x[i]));
	return most;
}

/* Whether the first rate is further from the last one, or from what the schedule gives, than the
 * pace on either side explains. */
static bool is_jump(const struct looking *l, const struct rate_change *p)
{
	size_t last = l->before - 1, first = last > LINE_POINTS ? last - LINE_POINTS : 0;
	double gap = l->again.x[0] - l->known.x[last];
	double pace = fmax(
		steepest(&l->known, first, last - first + 1), steepest(&l->again, 0, LINE_POINTS));
	double jump = fabs(p->after - p->before);

	if (!isnan(p->expected))
		jump = fmin(jump, fabs(p->after - p->expected));
	return jump > JUMP_SHARE * fmax(p->before, p->after) + JUMP_PACE * pace * gap +
			      l->known.room[last] + l->again.room[0];
}

/* The beginning again -------------------------------------------------------------------------- */

/* How many of the values from `a` on are those from `b` on, at the same distances; at most `most`.
 */
static size_t equal_run(const struct stitch_value *a, double from_a, const struct stitch_value *b,
	double from_b, size_t most)
{
	size_t n = 0;

	while (n < most && a[n].x - from_a == b[n].x - from_b &&
		fabs(a[n].value - b[n].value) <= resume_rounding(&a[n], &b[n]))
		n++;
	return n;
}

/* Whether the first values from `begin` on come again among n values behind the first one. */
static bool comes_again(const struct stitch_value *v, size_t n, const struct stitch_value *begin)
{
	for (size_t i = 1; i + RESTART_LEAST <= n; i++)
		if (equal_run(v + i, v[i].x, begin, begin[0].x, RESTART_LEAST) == RESTART_LEAST)
			return true;
	return false;
}

static bool moves(const struct stitch_value *v, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (fabs(v[i].value - v[0].value) > resume_rounding(&v[i], &v[0]))
			return true;
	return false;
}

/*
 * Whether the attempt's first rates are those of the run's first steps, at the same distances, and
 * do not go on from the last one before. Not where rates come back anyway (cyclic schedules), in
 * the first attempt or in this one.
 */
static bool find_restart(const struct stitch *s, const struct stitch_track *t, uint32_t attempt,
	const struct looking *l, struct rate_change *out)
{
	uint32_t root = s->attempts.items[attempt].parent;
	size_t i, iend, k, kend;

	while (s->attempts.items[root].parent != CURVE_NONE)
		root = s->attempts.items[root].parent;
	if (s->attempts.items[root].from != 0)
		return false;
	stitch_values_of(t, root, &i, &iend);
	stitch_values_of(t, attempt, &k, &kend);
	while (k < kend && t->values.items[k].x <= l->from)
		k++;
	const struct stitch_value *begin = t->values.items + i, *again = t->values.items + k;
	size_t n = smallest(smallest(iend - i, kend - k), FIRST_POINTS);
	if (n < RESTART_LEAST || equal_run(again, l->from, begin, 0, n) < n || !moves(begin, n) ||
		comes_again(begin, iend - i, begin) || comes_again(again, kend - k, begin))
		return false;
	if (!is_jump(l, out))
		return false;
	out->kind = RATE_RESTARTED;
	out->last_x = again[n - 1].x;
	out->source_x = begin[0].x;
	return true;
}

/* By a factor --------------------------------------------------------------------------------- */

/* Whether all rates are those that the schedule gives, by one factor. */
static bool find_scale(const struct looking *l, struct rate_change *out)
{
	double factor = NAN;
	size_t n = 0;

	for (; n < l->first; n++) {
		double room, wanted = rate_at(&l->known, l->again.x[n], &room);
		if (isnan(wanted) || wanted <= 4 * room)
			break;
		double c = l->again.v[n] / wanted;
		double unsure = (l->again.room[n] + c * room) / wanted;
		if (n == 0)
			factor = c;
		if (fabs(c - factor) > 2 * unsure + 1e-3 * factor)
			break;
	}
	if (n < LOOKED_UP_LEAST || n < l->first / 2)
		return false;
	out->kind = RATE_SCALED;
	out->factor = factor;
	return true;
}

/* Other steps ---------------------------------------------------------------------------------- */

/* Whether all rates that were looked up lie on step = a + k * x, give or take `ends`. */
static bool fits(const struct looking *l, const struct looked_up *u, size_t n, double a, double k,
	double ends)
{
	for (size_t i = 0; i < n; i++) {
		double x = a + k * l->again.x[i], room = ends + 1e-6 * fabs(x);
		if (x < u[i].low - room || x > u[i].high + room)
			return false;
	}
	return true;
}

/* The lags that all of them allow. */
static bool common_lag(
	const struct looking *l, const struct looked_up *u, size_t n, double *low, double *high)
{
	*low = -INFINITY;
	*high = INFINITY;
	for (size_t i = 0; i < n; i++) {
		*low = fmax(*low, l->again.x[i] - u[i].high);
		*high = fmin(*high, l->again.x[i] - u[i].low);
	}
	return *low <= *high;
}

/* Whether rates come again at a distance anyway. */
static bool comes_back(const struct rates *r, double distance)
{
	size_t same = 0;

	for (size_t i = r->n; i-- > 0 && same < FIRST_POINTS;) {
		double room, then = rate_at(r, r->x[i] - distance, &room);
		if (isnan(then))
			break;
		if (fabs(then - r->v[i]) > 2 * (room + r->room[i]))
			return false;
		same++;
	}
	return same >= LOOKED_UP_LEAST;
}

static bool is_whole(double factor)
{
	double k = factor < 1 ? 1 / factor : factor, whole = round(k);

	return whole >= 2 && whole <= FACTOR_MOST && fabs(k / whole - 1) < SAME_FACTOR;
}

/* All rates are those of other steps, at a distance between low and high. */
static void judge_lag(const struct looking *l, double low, double high, struct rate_change *out)
{
	double room;

	out->kind = RATE_CONTINUES;
	if (isinf(low) || isinf(high))
		return;
	out->lag = (low + high) / 2;
	/* Not if it may be none, or is as large as what is not sure of it. */
	if (fmin(fabs(low), fabs(high)) < l->least / 2 || fabs(out->lag) < l->least ||
		(low < 0 && high > 0) || fabs(out->lag) < (high - low) / 2)
		return;
	for (unsigned i = 0; i <= LAGS_TRIED && low > 0; i++) {
		double lag = low + (high - low) * i / LAGS_TRIED;
		if (comes_back(&l->known, lag) || comes_back(&l->again, lag))
			return;
	}
	/* What is ahead may be a rate that was lowered on purpose. */
	if (out->lag < 0 && find_scale(l, out))
		return;
	out->kind = RATE_LAG;
	if (!is_exponential(&l->known))
		return;
	double wanted = rate_at(&l->known, out->first_x, &room);
	out->factor = out->after / (isnan(wanted) ? out->before : wanted);
	out->kind = RATE_SCALED;
}

/*
 * The steps that the attempt's rates belong to: the same at a distance (lag), or passed through at
 * another pace. Where pace and place agree at the resume it is the pace; where they agree before
 * it, at the end of the warm-up or at 0, the decay has another length.
 */
static bool find_other_steps(const struct looking *l, struct rate_change *out)
{
	const struct rates *again = &l->again;
	struct looked_up u[FIRST_POINTS];
	size_t n = 0, last = l->first - 1;
	double low, high, direction = again->v[last] - again->v[0];

	if (fabs(direction) <= again->room[0] + again->room[last])
		return false;
	direction = direction > 0 ? 1 : -1;
	while (n < l->first && look_up(&l->known, again->v[n], again->room[n], direction, &u[n]))
		n++;
	if (n < LOOKED_UP_LEAST)
		return false;
	out->last_x = again->x[n - 1];
	if (common_lag(l, u, n, &low, &high)) {
		judge_lag(l, low, high, out);
		return true;
	}
	while (n > 0 && isinf(u[n - 1].high))
		n--;
	if (n < LOOKED_UP_LEAST || isinf(u[0].high))
		return false;
	double begin = (u[0].low + u[0].high) / 2, end = (u[n - 1].low + u[n - 1].high) / 2;
	double ends = fmax(u[0].high - u[0].low, u[n - 1].high - u[n - 1].low) / 2;
	double k = (end - begin) / (again->x[n - 1] - again->x[0]);
	double a = begin - k * again->x[0], agree = a / (1 - k);
	/* A pace that may as well be the same tells nothing. */
	if (!(k > 0) || fabs(k - 1) < SAME_FACTOR ||
		fabs(k - 1) * (again->x[n - 1] - again->x[0]) < 4 * ends ||
		!fits(l, u, n, a, k, ends))
		return false;
	double near = fmax(l->least, again->x[0] - l->from);
	if (fabs(agree - l->from) <= near) {
		if (!out->proven && !is_whole(k))
			return false;
		out->kind = RATE_PACE;
		out->factor = k;
		return true;
	}
	/* A longer one gives rates as of earlier steps, a shorter one as of later ones. */
	bool goes_on = direction * (out->after - out->before) > 0;
	if (agree > l->from || agree < -near || goes_on != (k > 1))
		return false;
	out->kind = RATE_LENGTH;
	out->factor = 1 / k;
	return true;
}

/* Jumps ---------------------------------------------------------------------------------------- */

static bool is_flat(const struct rates *r, size_t first, size_t n)
{
	for (size_t i = first; i < first + n && i < r->n; i++)
		if (fabs(r->v[i] - r->v[first]) > r->room[i] + r->room[first])
			return false;
	return true;
}

/* Whether the schedule itself jumps as far, one way, anywhere within one attempt. */
static bool jumps_anyway(
	const struct stitch_track *t, const struct looking *l, double before, double after)
{
	double gap = l->again.x[0] - l->known.x[l->before - 1], size = log(after / before);

	for (size_t i = 1; i < t->values.count; i++) {
		const struct stitch_value *a = &t->values.items[i - 1], *b = &t->values.items[i];
		if (a->attempt != b->attempt || !(a->value > 0) || !(b->value > 0) ||
			b->x - a->x > 2 * gap)
			continue;
		if (log(b->value / a->value) / size >= SAME_JUMP)
			return true;
	}
	return false;
}

static void find_jump(
	const struct stitch_track *t, const struct looking *l, struct rate_change *out)
{
	const struct rates *known = &l->known, *again = &l->again;
	size_t last = l->before - 1;

	if (!is_jump(l, out))
		return;
	if (!out->proven && out->before > 0 && out->after > 0 &&
		jumps_anyway(t, l, out->before, out->after)) {
		out->kind = RATE_CONTINUES;
		return;
	}
	/* A schedule that stands still for three points is a constant one for the moment. */
	out->stepped =
		last >= 2 && again->n >= 3 && is_flat(known, last - 2, 3) && is_flat(again, 0, 3);
	if (!find_scale(l, out))
		out->kind = RATE_JUMP;
}

/* Judging ---------------------------------------------------------------------------------------
 */

/* Whether the first rates are those that the dead branch shows; *known where it shows any. */
static bool matches_branch(const struct looking *l, bool *known)
{
	*known = false;
	for (size_t i = 0; i < l->first && l->again.x[i] <= l->known.x[l->known.n - 1]; i++) {
		double room = 0, wanted = rate_at(&l->known, l->again.x[i], &room);
		if (isnan(wanted))
			return true;
		*known = true;
		if (fabs(l->again.v[i] - wanted) >
			2 * (room + l->again.room[i]) + 1e-6 * fabs(wanted))
			return false;
	}
	return true;
}

/* Whether updates were skipped, or may have been: a loss scale is logged. */
static bool may_skip(const struct stitch *s)
{
	return stitch_track_of(s, CURVE_LOSS_SCALE) || stitch_track_of(s, CURVE_SKIP_COUNT);
}

static double highest(const struct rates *r)
{
	double most = 0;

	for (size_t i = 0; i < r->n; i++)
		most = fmax(most, r->v[i]);
	return most;
}

void rate_judge(const struct stitch *s, uint32_t attempt, uint32_t reference, double from,
	struct rate_change *out)
{
	const struct stitch_track *t = stitch_track_of(s, CURVE_LR);
	struct looking l = {.from = from};
	double room;
	bool known;

	*out = (struct rate_change){.expected = NAN, .lag = NAN, .factor = NAN};
	if (!t || s->attempts.items[attempt].parent == CURVE_NONE ||
		!gather(&l, s, t, attempt, reference))
		return;
	l.least = s->axis == CURVE_STEPS ? STEPS_LEAST : t->interval / 2;
	out->first_x = l.again.x[0];
	out->last_x = l.again.x[l.first - 1];
	out->before = l.known.v[l.before - 1];
	out->after = l.again.v[0];
	out->expected = rate_at(&l.known, out->first_x, &room);
	double most = highest(&l.known);
	out->kind = RATE_CONTINUES;
	out->ended = out->before <= ENDED_SHARE * most;
	out->highest = out->after >= most - 2 * l.again.room[0] && out->before < most;
	if (find_restart(s, t, attempt, &l, out))
		return;
	bool same = matches_branch(&l, &known);
	out->proven = known && !same;
	if (known && same) {
		out->kind = RATE_CONTINUES;
		return;
	}
	/* A schedule over samples goes as they do. */
	if (rate_goes_by_amounts(s, attempt, reference, from)) {
		out->kind = RATE_CONTINUES;
		out->proven = false;
		return;
	}
	if (find_other_steps(&l, out)) {
		out->skips = out->kind == RATE_LAG && out->lag > 0 && out->lag <= SKIPS_MOST &&
			     may_skip(s);
		return;
	}
	find_jump(t, &l, out);
}
