/* SPDX-License-Identifier: MIT */
/* Family T: settings of the optimizer that a resume must not change. */
#include "audit/case.h"

#define DIGITS 7 /* significant ones, of numbers in messages */

static struct finding *setting_finding(struct audit_case *c, struct findings *sink,
	enum finding_code code, const struct fact *before, const struct fact *after,
	const char *name)
{
	double x = 0, y = 0;

	fact_to_double(before, &x);
	fact_to_double(after, &y);
	struct finding *f = finding_add(sink, code, "%s changed from %s to %s", name,
		rounded_text(sink, x, DIGITS), rounded_text(sink, y, DIGITS));
	place_fact(sink, f, c->current, after);
	f->observed = quantity_real(y);
	f->expected = quantity_real(x);
	f->place.step_last = case_step(c);
	state_int(c->previous, FACT_STEP, &f->place.step_first);
	return f;
}

/* What `after` was in the previous state. Another path is accepted only where there is one
 * optimizer in each. */
static const struct fact *earlier_setting(
	const struct state *previous, const struct state *s, const struct fact *after)
{
	const struct fact *same = state_same_fact(previous, s, after);

	if (same || previous->optimizers.count > 1 || s->optimizers.count > 1)
		return same;
	return state_group_fact(previous, (enum fact_key)after->key, after->group);
}

/* A number in the saved configuration, by its last name. */
static bool setting_number(const struct state *s, const char *name, double *out)
{
	for (size_t i = 0; i < s->facts.count; i++) {
		const struct fact *f = &s->facts.items[i];
		if (f->key == FACT_CONFIG && strcmp(path_last_name(f->path), name) == 0)
			return fact_to_double(f, out);
	}
	return false;
}

/* Whether one of the schedules (each optimizer may have its own) cycles the momentum too. */
static bool momentum_cycles(const struct state *s)
{
	for (size_t i = 0; i < s->facts.count; i++) {
		const struct fact *f = &s->facts.items[i];
		if (f->key == FACT_SCHEDULE && f->type == FACT_TEXT &&
			(strcmp(f->text, "OneCycleLR") == 0 || strcmp(f->text, "CyclicLR") == 0))
			return true;
	}
	return false;
}

/* A setting that a schedule of its own moves: a cycle of the momentum, or what moved before as
 * well. */
static bool moves_by_plan(const struct audit_case *c, const struct fact *before)
{
	const struct fact *older = c->older ? state_same_fact(c->older, c->previous, before) : NULL;

	if ((before->key == FACT_BETA1 || before->key == FACT_MOMENTUM) &&
		momentum_cycles(c->current))
		return true;
	/* A framework whose settings say so warms the momentum up in the first epochs. */
	double epoch, warmup;
	if (before->key == FACT_MOMENTUM &&
		setting_number(c->current, "warmup_momentum", &warmup) &&
		setting_number(c->current, "warmup_epochs", &warmup) &&
		state_real(c->previous, FACT_EPOCH, &epoch) && epoch <= warmup)
		return true;
	return older && !fact_equal(older, before);
}

static void run_optimizer_settings(
	struct audit_case *c, struct findings *sink, struct coverage *cover)
{
	static const enum fact_key keys[] = {FACT_INITIAL_LR, FACT_BETA1, FACT_BETA2, FACT_EPSILON,
		FACT_WEIGHT_DECAY, FACT_MOMENTUM};
	struct state *s = c->current;
	uint64_t compared = 0;

	for (size_t k = 0; k < sizeof keys / sizeof keys[0]; k++) {
		/* One finding a setting: the groups of one optimizer usually change together. */
		bool said = false;
		for (size_t i = 0; i < s->facts.count; i++) {
			const struct fact *after = &s->facts.items[i];
			const struct fact *before = after->key == keys[k]
							    ? earlier_setting(c->previous, s, after)
							    : NULL;
			if (!before)
				continue;
			compared++;
			if (said || fact_equal(before, after) || moves_by_plan(c, before))
				continue;
			said = true;
			if (keys[k] == FACT_INITIAL_LR) {
				struct finding *f = setting_finding(c, sink, FINDING_T103, before,
					after, "the learning rate that the schedule scales");
				f->meaning = "the learning rate jumps at the resume";
			} else {
				setting_finding(c, sink, FINDING_T113, before, after,
					fact_rows[keys[k]].name);
			}
		}
	}
	/* Without a saved schedule a script may compute the rate; one that stood still until now it
	 * does not. */
	const struct fact *after = state_fact(s, FACT_LR),
			  *before = after ? earlier_setting(c->previous, s, after) : NULL;
	if (before && after && !moves_by_plan(c, before) && !state_fact(s, FACT_SCHEDULE_ANEW) &&
		!state_fact(s, FACT_SCHEDULE_STEP) &&
		!state_fact(c->previous, FACT_SCHEDULE_STEP) && !state_fact(s, FACT_INITIAL_LR) &&
		!fact_equal(before, after)) {
		struct finding *f =
			setting_finding(c, sink, FINDING_T103, before, after, "the learning rate");
		f->severity = c->older && state_same_fact(c->older, c->previous, before)
				      ? SEVERITY_WARNING
				      : SEVERITY_INFO;
		f->cause =
			"no schedule is saved that would change it; a script may compute its own";
	}
	if (compared == 0)
		cover_not_checked(cover, "optimizer-settings", "optimizer settings",
			"no optimizer is saved in both");
	else
		cover_ran(cover, "optimizer-settings", "optimizer settings", "settings", compared,
			compared, NULL);
}

const struct rule rule_optimizer_settings = {
	.name = "optimizer-settings",
	.subject = "optimizer settings",
	.needs = NEEDS_PREVIOUS,
	.run = run_optimizer_settings,
};
