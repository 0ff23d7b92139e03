/* SPDX-License-Identifier: MIT */
/* Whether the batch ramps up anew behind a resume, as it did when the run began. */
#include <math.h>

#include "curve/resume_parts.h"

#define SAME 1.01         /* two sizes that are the same */
#define LENGTH_SHARE 0.25 /* of the first stage's length, by which the second time may differ */
#define STAGES 2u

/* Steps of one size that follow each other. */
struct stage {
	double batch, samples, last_x;
};

static bool same_size(double a, double b)
{
	return fmax(a, b) <= SAME * fmin(a, b);
}

/* The first sizes of an attempt from x on; how many there are. */
static size_t first_stages(const struct stitch *s, uint32_t attempt, double x, struct stage *out)
{
	struct consumed_line l = s->consumed.items[attempt].line;
	const struct consumed_knot *k = s->knots.list.items + l.first;
	size_t n = 0;

	for (size_t i = 1; i < l.count; i++) {
		double first = fmax(k[i - 1].x, x), steps = k[i].x - first;
		double batch = (k[i].amount - k[i - 1].amount) / (k[i].x - k[i - 1].x);
		if (!(steps > 0))
			continue;
		bool more = n > 0 && same_size(out[n - 1].batch, batch);
		if (!more && n == STAGES)
			break;
		if (!more)
			out[n++] = (struct stage){.batch = batch};
		out[n - 1].samples += batch * steps;
		out[n - 1].last_x = k[i].x;
	}
	return n;
}

void resume_find_ramp(const struct stitch *s, uint32_t attempt, struct resume_ramp *out)
{
	const struct stitch_attempt *a = &s->attempts.items[attempt];
	struct stage began[STAGES], again[STAGES];
	uint32_t root = a->parent;

	*out = (struct resume_ramp){0};
	if (s->unit != CURVE_SAMPLES || root == CURVE_NONE || s->consumed.count == 0)
		return;
	while (s->attempts.items[root].parent != CURVE_NONE)
		root = s->attempts.items[root].parent;
	double before = stitch_batch(s, a->parent, a->from);
	if (s->attempts.items[root].from != 0 || isnan(before) ||
		first_stages(s, root, 0, began) < STAGES || began[1].batch <= began[0].batch ||
		before <= SAME * began[0].batch || began[0].last_x >= a->from)
		return;
	size_t n = first_stages(s, attempt, a->from, again);
	if (n == 0 || !same_size(again[0].batch, began[0].batch))
		return;
	double room = LENGTH_SHARE * began[0].samples +
		      began[1].batch * (isnan(a->interval) ? 1 : a->interval);
	bool rises = n == STAGES && again[1].batch > again[0].batch &&
		     fabs(again[0].samples - began[0].samples) <= room;
	/* Too short to see whether it rises, or a smaller batch that was meant. */
	if (!rises && (n > 1 || again[0].samples > began[0].samples + room))
		return;
	*out = (struct resume_ramp){.found = true,
		.rises = rises,
		.batch = again[0].batch,
		.before = before,
		.last_x = again[0].last_x};
}
