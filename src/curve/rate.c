/* SPDX-License-Identifier: MIT */
#include "curve/rate.h"

#include <math.h>
#include <string.h>

#include "curve/rate_parts.h"
#include "curve/resume_parts.h"

#define RESTART_LEAST 5u   /* rates of the run's beginning that come again */
#define JUMP_SHARE 0.01    /* of the rate, below which nothing is a jump */
#define SAME_JUMP 0.5      /* of a jump (its logarithm), by which the schedule itself jumps too */
#define MOVED_ROUNDINGS 12 /* by which rates move, to be known again */
#define OTHER_FACTOR 0.05  /* by which a factor is none */
#define KINK 0.5           /* of the pace, by which it changes at once */
#define SAME_FACTOR 0.02   /* by which factors may differ */
#define FACTOR_MOST 1024   /* of processes or micro-batches */
#define ENDED_SHARE 0.05   /* of the highest rate, below which a schedule has ended */
#define LAGS_TRIED 16u     /* between the least and the largest possible one */
#define SKIPS_MOST 24      /* updates that a new loss scaler skips */

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

static bool gather(struct looking *l, const struct stitch *s, const struct stitch_track *t,
	uint32_t attempt, uint32_t reference)
{
	struct rate_digits digits = {.attempt = CURVE_NONE};
	uint32_t index[RATES_MOST / 2];
	size_t i, end;
	size_t n = stitch_branch(s, t, s->attempts.items[attempt].parent, l->from, index,
		sizeof index / sizeof *index);

	for (size_t k = 0; k < n; k++)
		rates_add(&l->known, t, index[k], &digits);
	l->before = l->known.n;
	stitch_values_of(t, attempt, &i, &end);
	while (i < end && t->values.items[i].x <= l->from)
		i++;
	if (n == 0 || l->before == 0 || i == end ||
		!rates_same_series(s, &t->values.items[index[n - 1]], &t->values.items[i]))
		return false;
	for (; i < end; i++)
		rates_add(&l->again, t, i, &digits);
	l->first = smallest(l->again.n, RATES_FIRST);
	if (reference != CURVE_NONE) {
		stitch_values_of(t, reference, &i, &end);
		for (; i < end; i++)
			if (t->values.items[i].x > l->from)
				rates_add(&l->known, t, i, &digits);
	}
	return l->again.n > 0;
}

/* Whether a rate that decays by a constant factor a step does so: then a lag is a factor as well.
 */
static bool is_exponential(const struct rates *r)
{
	double slope;

	if (r->n < RATES_LINE || r->v[r->n - RATES_LINE] <= 0 || r->v[r->n - 1] <= 0 ||
		rates_on_a_line(r, &slope))
		return false;
	size_t first = r->n - RATES_LINE, last = r->n - 1;
	double pace = log(r->v[last] / r->v[first]) / (r->x[last] - r->x[first]);
	for (size_t i = first; i <= last; i++) {
		double wanted = r->v[first] * exp(pace * (r->x[i] - r->x[first]));
		if (fabs(wanted - r->v[i]) > 2 * (r->room[first] + r->room[i] + r->room[last]))
			return false;
	}
	return true;
}

/* The pace at the resume ----------------------------------------------------------------------- */

/* Whether the first rate is further from the last one, or from what the schedule gives, than the
 * pace on either side explains. */
static bool is_jump(const struct looking *l, const struct rate_change *p)
{
	size_t last = l->before - 1, first = last > RATES_LINE ? last - RATES_LINE : 0;
	double gap = l->again.x[0] - l->known.x[last];
	double pace = fmax(rates_steepest(&l->known, first, last - first + 1),
		rates_steepest(&l->again, 0, RATES_LINE));
	double jump = fabs(p->after - p->before);

	if (!isnan(p->expected))
		jump = fmin(jump, fabs(p->after - p->expected));
	return jump > JUMP_SHARE * fmax(p->before, p->after) + RATES_PACE * pace * gap +
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
	size_t n = smallest(smallest(iend - i, kend - k), RATES_FIRST);
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

/* Whether n values lie on the first one's by one factor, within rounding. */
static bool is_proportional(const struct looking *l, const struct stitch_value *begin, size_t n)
{
	double factor = l->again.v[0] / begin[0].value;

	for (size_t i = 0; i < n; i++) {
		double room = l->again.room[i] + l->again.room[0] +
			      factor * resume_rounding(&begin[i], &begin[0]);
		if (l->again.x[i] - l->from != begin[i].x ||
			!(fabs(l->again.v[i] - factor * begin[i].value) <= room))
			return false;
	}
	/* Those that hardly move are on every line. */
	double moved = fabs(begin[n - 1].value - begin[0].value);
	return moved > MOVED_ROUNDINGS * resume_rounding(&begin[0], &begin[n - 1]);
}

/*
 * A schedule that computes each rate from the one before goes on from the rate that the optimizer
 * was left with: made anew, it gives those of the run's beginning by one factor, without a jump but
 * at another pace. One that decays by a constant factor does so all the time.
 */
static bool find_scaled_restart(const struct stitch *s, const struct stitch_track *t,
	uint32_t attempt, const struct looking *l, struct rate_change *out)
{
	uint32_t root = s->attempts.items[attempt].parent;
	size_t i, end, last = l->before - 1;

	while (s->attempts.items[root].parent != CURVE_NONE)
		root = s->attempts.items[root].parent;
	stitch_values_of(t, root, &i, &end);
	const struct stitch_value *begin = t->values.items + i;
	size_t n = smallest(end - i, l->first);
	if (s->attempts.items[root].from != 0 || n < RATES_FIRST / 2 || l->before < RATES_LEAST ||
		!(begin[0].value > 0) || is_jump(l, out) || is_exponential(&l->known) ||
		!is_proportional(l, begin, n))
		return false;
	size_t first = l->before - RATES_LEAST;
	double before =
		(l->known.v[last] - l->known.v[first]) / (l->known.x[last] - l->known.x[first]);
	double after = (l->again.v[RATES_LEAST - 1] - l->again.v[0]) /
		       (l->again.x[RATES_LEAST - 1] - l->again.x[0]);
	/* The kink: one pace is far from the other, and by more than rounding. */
	double kink = fabs(after - before), far = l->known.x[last] - l->known.x[first];
	double factor = l->again.v[0] / begin[0].value;
	if (kink < KINK * fmax(fabs(after), fabs(before)) ||
		kink * far < MOVED_ROUNDINGS * (l->known.room[last] + l->again.room[0]) ||
		fabs(factor - 1) < OTHER_FACTOR)
		return false;
	out->kind = RATE_RESTARTED;
	out->factor = factor;
	out->last_x = l->again.x[n - 1];
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
		double room, wanted = rates_at(&l->known, l->again.x[n], &room);
		if (isnan(wanted) || wanted <= 4 * room)
			break;
		double c = l->again.v[n] / wanted;
		double unsure = (l->again.room[n] + c * room) / wanted;
		if (n == 0)
			factor = c;
		if (fabs(c - factor) > 2 * unsure + 1e-3 * factor)
			break;
	}
	if (n < RATES_LEAST || n < l->first / 2)
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

/* Whether rates come again at a distance anyway. */
static bool comes_back(const struct rates *r, double distance)
{
	size_t same = 0;

	for (size_t i = r->n; i-- > 0 && same < RATES_FIRST;) {
		double room, then = rates_at(r, r->x[i] - distance, &room);
		if (isnan(then))
			break;
		if (fabs(then - r->v[i]) > 2 * (room + r->room[i]))
			return false;
		same++;
	}
	return same >= RATES_LEAST;
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
	double wanted = rates_at(&l->known, out->first_x, &room);
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
	struct looked_up u[RATES_FIRST];
	size_t n = 0, last = l->first - 1;
	double low, high, direction = again->v[last] - again->v[0];

	if (fabs(direction) <= again->room[0] + again->room[last])
		return false;
	direction = direction > 0 ? 1 : -1;
	while (n < l->first &&
		rates_look_up(&l->known, again->v[n], again->room[n], direction, &u[n]))
		n++;
	if (n < RATES_LEAST)
		return false;
	out->last_x = again->x[n - 1];
	if (rates_common_lag(again, u, n, &low, &high)) {
		judge_lag(l, low, high, out);
		return true;
	}
	while (n > 0 && isinf(u[n - 1].high))
		n--;
	if (n < RATES_LEAST || isinf(u[0].high))
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
		double room = 0, wanted = rates_at(&l->known, l->again.x[i], &room);
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
	l.least = s->axis == CURVE_STEPS ? RATES_LAG : t->interval / 2;
	out->first_x = l.again.x[0];
	out->last_x = l.again.x[l.first - 1];
	out->before = l.known.v[l.before - 1];
	out->after = l.again.v[0];
	out->expected = rates_at(&l.known, out->first_x, &room);
	double most = highest(&l.known);
	out->kind = RATE_CONTINUES;
	out->ended = out->before <= ENDED_SHARE * most;
	out->highest = out->after >= most - 2 * l.again.room[0] && out->before < most;
	if (find_restart(s, t, attempt, &l, out))
		return;
	bool same = matches_branch(&l, &known);
	if ((!known || !same) && find_scaled_restart(s, t, attempt, &l, out))
		return;
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
