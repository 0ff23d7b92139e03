/* SPDX-License-Identifier: MIT */
/* Family P, from loss logs: an epoch that a resume set back. */
#include <math.h>

#include "audit/case.h"
#include "audit/curve_words.h"
#include "state/epoch_log.h"

/* Whether the epochs are told with their fractions: whole ones stand still for most steps. */
static bool has_fractions(const struct stitch_track *t)
{
	size_t whole = 0;

	for (size_t i = 0; i < t->line.count; i++) {
		double v = t->values.items[t->line.items[i]].value;
		whole += v == floor(v);
	}
	return t->line.count >= 2 && 2 * whole <= t->line.count;
}

/* Tell of the last time that the epoch was set back. */
static void tell_set_back(
	struct findings *sink, const struct case_curve *c, const struct epoch_log *g)
{
	double length = epoch_stretch_length(&g->now), steps;

	if (!epoch_log_set_back(g, &steps))
		return;
	struct finding *f = finding_add(sink, FINDING_P103,
		"the resume behind %s set the epoch back by %s steps",
		curve_at(sink, c, g->before.last_step), rounded_text(sink, steps, 6));
	f->severity = SEVERITY_WARNING;
	curve_place(f, c, g->before.last_step, g->now.first_step);
	f->expected = quantity_real(g->now.first_epoch + steps / length);
	f->observed = quantity_real(g->now.first_epoch);
	f->unit = "epochs";
	f->meaning = "what they had read of the epoch came again, in the same order or another";
	f->cause = "in the log the epoch goes back there, and the step does not";
}

static void run_epochs(struct audit_case *a, struct findings *sink, struct coverage *cover)
{
	static const char *const name = "curve-epochs", *const subject = "epochs in the logs";
	const struct case_curve *c = a->curve;
	const struct stitch_track *t = stitch_track_of(&c->stitch, CURVE_EPOCH_COUNT);
	struct epoch_log g = {0};

	if (!t || c->stitch.axis != CURVE_STEPS || !has_fractions(t)) {
		cover_ran(cover, name, subject, "points", 0, 0, NULL);
		return;
	}
	for (size_t i = 0; i < t->line.count; i++) {
		const struct stitch_value *v = &t->values.items[t->line.items[i]];
		struct epoch_log before = g;
		if (epoch_log_take(&g, v->x, v->value))
			tell_set_back(sink, c, &before);
	}
	tell_set_back(sink, c, &g);
	cover_ran(cover, name, subject, "points", t->line.count, t->line.count, NULL);
}

const struct rule rule_curve_epochs = {
	.name = "curve-epochs",
	.subject = "epochs in the logs",
	.needs = NEEDS_CURVE,
	.run = run_epochs,
};
