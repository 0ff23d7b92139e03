/* SPDX-License-Identifier: MIT */
/* Family M: does the data come from the stage that is scheduled for each step? */
#include <math.h>
#include <stdlib.h>

#include "audit/data.h"
#include "audit/mixture_table.h"
#include "ledger/mixture.h"
#include "ledger/plan.h"

#define SLACK_STEPS 2 /* by which a stage may begin or end early or late */

/* Consecutive pieces of one attempt or several in which one stage is in use and another scheduled.
 */
struct off_plan {
	const struct mixture_piece *first, *last;
	size_t steps;
};

static bool is_off(const struct mixture_piece *p)
{
	return p->scheduled != LEDGER_NONE && p->stage != p->scheduled;
}

/* How many steps loader workers may be ahead of the step counter where a stage begins. */
static size_t slack(const struct mixture_table *t, uint32_t attempt)
{
	const struct ledger_attempt *a = &t->ledger->attempts.items[attempt];
	int64_t batches = a->workers > 0 ? a->workers * (a->prefetch > 0 ? a->prefetch : 2) : 0;
	int64_t steps = batches / (a->accumulation > 1 ? a->accumulation : 1);

	return SLACK_STEPS + (steps > 0 && steps < 10000 ? (size_t)steps : 0);
}

/* A few steps at a change of stages, in which the neighbour is still or already in use. */
static bool is_slip(const struct mixture_table *t, const struct off_plan *o)
{
	const struct mixture_piece *pieces = t->pieces.items, *end = pieces + t->pieces.count;
	bool late = o->first > pieces && o->first[-1].scheduled == o->first->stage,
	     early = o->last + 1 < end && o->last[1].scheduled == o->last->stage;

	return (late || early) && o->steps <= slack(t, o->first->attempt);
}

/* Whether counting steps from the resume gives the stage in use, at both ends of the stretch. */
static bool counts_from_resume(const struct mixture_table *t, const struct off_plan *o, size_t row)
{
	int64_t first = t->step[o->first->first]->step, last = t->step[row]->step;
	const struct mixture_piece *p = o->first;

	while (p > t->pieces.items && !p->resumed)
		p--;
	if (!p->resumed)
		return false;
	int64_t from = t->step[p->first]->step - 1;
	return plan_stage_at(t->ledger, first - from) == o->first->stage &&
	       plan_stage_at(t->ledger, last - from) == o->first->stage;
}

static const char *cause_of(
	struct findings *sink, const struct mixture_table *t, const struct off_plan *o, size_t row)
{
	const struct ledger *l = t->ledger;
	uint32_t stage = o->first->stage;

	if (counts_from_resume(t, o, row))
		return "the stage was chosen by the steps since the resume, not by all of them";
	if (stage + 1 == o->first->scheduled)
		return "the stage before the scheduled one went on";
	if (stage + 1 == l->stages.count)
		return "the last stage of the plan is taken";
	if (stage == 0)
		return "the first stage of the plan is taken";
	return findings_text(sink, "it is scheduled for the steps after %s",
		count_text(sink, l->stages.items[stage].from));
}

static const char *stage_name(struct findings *sink, const struct ledger *l, uint32_t stage)
{
	const char *name = l->stages.items[stage].name;

	return *name ? findings_text(sink, "stage %s", findings_escaped(sink, slice_of(name)))
		     : findings_text(sink, "stage %u of the plan", stage + 1);
}

/* `shares` is room for two distributions. */
static void tell_off(struct findings *sink, const struct mixture_table *t, const struct off_plan *o,
	double *shares)
{
	const struct ledger *l = t->ledger;
	double *used = shares, *planned = shares + t->k;
	size_t first = o->first->first, row = first + o->steps - 1, worst = 0;
	uint64_t samples = mixture_samples(t, first, o->steps);

	mixture_stage_shares(l, o->first->stage, used);
	mixture_stage_shares(l, o->first->scheduled, planned);
	for (size_t i = 1; i < t->k; i++)
		if (fabs(used[i] - planned[i]) > fabs(used[worst] - planned[worst]))
			worst = i;
	struct finding *f = finding_add(sink, FINDING_M106,
		"%s come from %s where %s is scheduled: %s has %s of the samples instead of %s",
		data_steps(sink, t->step[first]->step, t->step[row]->step),
		stage_name(sink, l, o->first->stage), stage_name(sink, l, o->first->scheduled),
		mixture_source_name(l, sink, worst), mixture_percent(sink, used[worst]),
		mixture_percent(sink, planned[worst]));
	double distance = mixture_distance(used, planned, t->k);
	f->severity = mixture_severity(t, distance, samples);
	f->observed = quantity_real(used[worst]);
	f->expected = quantity_real(planned[worst]);
	f->unit = "of the samples";
	f->cause = cause_of(sink, t, o, row);
	f->meaning = findings_text(
		sink, "%s were drawn by the wrong weights", counted_text(sink, samples, "sample"));
	mixture_place(f, t, first, o->steps);
}

static void check_stages(struct findings *sink, const struct mixture_table *t, double *shares)
{
	const struct mixture_piece *pieces = t->pieces.items;
	struct off_plan o = {0};

	for (size_t p = 0; p <= t->pieces.count; p++) {
		bool off = p < t->pieces.count && is_off(&pieces[p]);
		if (off && o.first && pieces[p].stage == o.first->stage &&
			pieces[p].scheduled == o.first->scheduled) {
			o.last = &pieces[p];
			o.steps += pieces[p].steps;
			continue;
		}
		if (o.first && !is_slip(t, &o))
			tell_off(sink, t, &o, shares);
		o = off ? (struct off_plan){&pieces[p], &pieces[p], pieces[p].steps}
			: (struct off_plan){0};
	}
}

static void run_stages(struct audit_case *c, struct findings *sink, struct coverage *cover)
{
	static const char *const name = "stages", *const subject = "scheduled stages of the data";
	const char *reason = mixture_absent(c);
	struct mixture_table t = {0};
	uint64_t scheduled = 0;

	/* Most runs have none, and nothing is to be said of them. */
	if (c->ledger->stages.count == 0)
		return;
	double *shares = calloc(2 * c->ledger->sources.count + 1, sizeof *shares);
	if (!reason && (!shares || !mixture_table_build(&t, c)))
		reason = "no memory";
	if (!reason && t.samples == 0)
		reason = "no source in the log";
	for (size_t p = 0; p < t.pieces.count; p++)
		if (t.pieces.items[p].scheduled != LEDGER_NONE)
			scheduled += t.pieces.items[p].steps;
	if (reason) {
		cover_not_checked(cover, name, subject, "%s", reason);
	} else {
		check_stages(sink, &t, shares);
		cover_ran(cover, name, subject, "steps", scheduled, t.steps,
			scheduled < t.steps ? "no stage is scheduled for the others" : NULL);
	}
	mixture_table_release(&t);
	free(shares);
}

const struct rule rule_stages = {
	.name = "stages",
	.subject = "scheduled stages of the data",
	.needs = NEEDS_LEDGER,
	.run = run_stages,
};
