/* SPDX-License-Identifier: MIT */
/* Family T: does the loss scaler continue? */
#include <math.h>

#include "audit/case.h"

#define DIGITS 7 /* significant ones, of numbers in messages */

static bool config_is_true(const struct state *s, const char *name)
{
	for (size_t i = 0; i < s->facts.count; i++) {
		const struct fact *f = &s->facts.items[i];
		if (f->key == FACT_CONFIG && f->type == FACT_BOOL && f->i &&
			slice_ends(slice_of(f->path), slice_of(name)))
			return true;
	}
	return false;
}

/*
 * Where the scale is what it was and has had no time to grow, no update has overflowed: one that
 * did would have halved it. The count of good updates has then grown by every update since.
 */
static void check_scale_tracker(struct audit_case *c, struct findings *sink, int64_t earlier)
{
	struct state *s = c->current;
	int64_t tracker, interval;
	double updates, then;

	if (!state_int(s, FACT_SCALE_TRACKER, &tracker) ||
		!state_int(s, FACT_SCALE_INTERVAL, &interval) || !optimizer_step(s, &updates) ||
		!optimizer_step(c->previous, &then) || updates < then || tracker >= earlier ||
		(double)earlier + updates - then >= (double)interval)
		return;
	struct finding *f = finding_add(sink, FINDING_T107,
		"the loss scaler was made anew: its count of good updates fell from %s to %s, and the scale did not",
		count_text(sink, earlier), count_text(sink, tracker));
	place_fact(sink, f, s, state_fact(s, FACT_SCALE_TRACKER));
	f->observed = quantity_count(tracker);
	f->expected = quantity_count(earlier + (int64_t)(updates - then));
	f->unit = "updates";
}

static void run_scaler(struct audit_case *c, struct findings *sink, struct coverage *cover)
{
	static const char *const name = "scaler", *const subject = "loss scaler";
	struct state *s = c->current;
	double scale, before;
	bool has = state_real(s, FACT_SCALE, &scale);
	bool had = c->previous && state_real(c->previous, FACT_SCALE, &before);

	if (!has && (had || config_is_true(s, ".fp16"))) {
		struct finding *f = finding_add(
			sink, FINDING_T107, "the run uses fp16 and no loss scaler is saved");
		place_file(sink, f, s, NO_FILE);
		f->meaning =
			"the scale starts at its default, the first updates overflow and are skipped, the schedule lags";
		cover_not_checked(cover, name, subject, "there is none");
		return;
	}
	if (!has) {
		cover_ran(cover, name, subject, "scalers", 0, 0, NULL);
		return;
	}
	int64_t steps = 0, interval, before_tracker = 0;
	if (c->previous)
		state_int(c->previous, FACT_SCALE_TRACKER, &before_tracker);
	if (had && scale == before)
		check_scale_tracker(c, sink, before_tracker);
	/* The scale doubles once in growth_interval steps without overflow, and that many steps
	 * have not passed. */
	if (had && scale > before && case_steps_between(c, &steps) && steps > 0 &&
		state_int(s, FACT_SCALE_INTERVAL, &interval) && interval > 0 &&
		log2(scale / before) > (double)(steps + before_tracker) / (double)interval + 1e-9) {
		struct finding *f = finding_add(sink, FINDING_T107,
			"the loss scale rose from %s to %s, faster than it can grow: it was made anew",
			rounded_text(sink, before, DIGITS), rounded_text(sink, scale, DIGITS));
		place_fact(sink, f, s, state_fact(s, FACT_SCALE));
		f->observed = quantity_real(scale);
		f->expected = quantity_real(before);
	}
	cover_ran(cover, name, subject, "scalers", 1, 1, NULL);
}

const struct rule rule_scaler = {
	.name = "scaler",
	.subject = "loss scaler",
	.run = run_scaler,
};
