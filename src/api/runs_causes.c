/* SPDX-License-Identifier: MIT */
/*
 * Why a resume went wrong, by the checkpoint that it began with: what that does not hold, the
 * framework could not restore.
 */
#include <math.h>

#include "api/runs_parts.h"

#define DOUBTS_MAX 10000u

/* What a resume did, and what in its checkpoint explains it. */
static const struct cause {
	const struct rule *rule;
	enum finding_code code;
	const char *what;    /* of the checkpoint */
	const char *outcome; /* what then happens, where the rule is sure of it */
} causes[] = {
	[RUNS_DOUBT_DATA] = {&rule_position_saved, FINDING_P101, "holds no data position",
		": the epoch's data started again from the top"},
	[RUNS_DOUBT_RANDOMNESS] = {&rule_rng_saved, FINDING_R101, "holds no random streams", ""},
};

static bool add_doubt(
	struct runs_beside *b, enum runs_doubt_kind kind, int64_t attempt, double step)
{
	struct runs_doubt *d = array_push(&b->doubts, DOUBTS_MAX);

	if (d)
		*d = (struct runs_doubt){.kind = (uint8_t)kind, .attempt = attempt, .step = step};
	return d || b->doubts.count >= DOUBTS_MAX;
}

/* Whether other batches were read, and not the same ones with another rate or other updates. */
static bool has_other_data(const struct curve_resume *r)
{
	const struct resume_check *k = &r->check;
	bool other_rate = k->lr.matched < k->lr.pairs;

	return r->low.found || (k->outcome == RESUME_DIFFERS && !k->updates && !other_rate);
}

static bool doubt_curve(struct runs_beside *b, const struct case_curve *c)
{
	bool ok = true;

	for (size_t i = 0; ok && i < c->resumes.count; i++) {
		const struct curve_resume *r = &c->resumes.items[i];
		uint32_t number = c->stitch.attempts.items[r->check.attempt].number;
		if (r->explained)
			continue;
		if (r->check.outcome == RESUME_SAME_BATCHES)
			ok = add_doubt(b, RUNS_DOUBT_RANDOMNESS, number, r->check.from);
		else if (has_other_data(r))
			ok = add_doubt(b, RUNS_DOUBT_DATA, number, r->check.from);
	}
	return ok;
}

/* Data again, or none of those that were to come. */
static bool is_doubtful(enum seam_outcome outcome)
{
	return (outcome >= SEAM_FROM_START && outcome <= SEAM_HOLE) || outcome == SEAM_DIFFERS;
}

static bool doubt_line(struct runs_beside *b, const struct case_line *line)
{
	bool ok = true;

	for (size_t i = 0; ok && i < line->judged.list.count; i++) {
		uint32_t to = line->alignments.seams.items[i].to;
		if (is_doubtful(line->judged.list.items[i].outcome))
			ok = add_doubt(b, RUNS_DOUBT_DATA,
				line->lineage.ledger->attempts.items[to].number,
				(double)line->lineage.attempts.items[to].from_step);
	}
	return ok;
}

bool runs_find_doubts(struct runs_beside *b, const struct audit_case *c)
{
	if (c->line_count > 0)
		return doubt_line(b, &c->lines[0]);
	return !c->curve || c->curve->stitch.axis != CURVE_STEPS || doubt_curve(b, c->curve);
}

/* What the rule finds in the checkpoint alone, as a cause of what the logs show. */
static void tell(struct runs_beside *b, const struct runs_doubt *d, struct state *s, int64_t step)
{
	const struct cause *cause = &causes[d->kind];
	struct audit_case alone = {.current = s, .limits = &b->o->common.limits};
	struct findings *all = &b->r->findings, own;
	struct coverage cover;

	findings_init(&own);
	coverage_init(&cover);
	audit_rule(cause->rule, &alone, &own, &cover);
	for (size_t i = 0; i < own.list.count; i++) {
		const struct finding *from = &own.list.items[i];
		if (from->code != cause->code)
			continue;
		struct finding *f = finding_add(all, cause->code,
			"the checkpoint that attempt %lld resumed from %s%s", (long long)d->attempt,
			cause->what, from->severity >= SEVERITY_ERROR ? cause->outcome : "");
		place_file(all, f, s, NO_FILE);
		f->severity = from->severity;
		f->place.step_first = f->place.step_last = step;
		f->expected = from->expected;
		f->observed = from->observed;
		f->unit = from->unit;
		f->cause = findings_text(all, "%s", from->cause ? from->cause : from->message);
		break;
	}
	coverage_release(&cover);
	findings_release(&own);
}

void runs_tell_causes(struct runs_beside *b, struct state *s, int64_t step)
{
	for (size_t i = 0; i < b->doubts.count; i++) {
		struct runs_doubt *d = &b->doubts.items[i];
		/* Of a step there may be several: the last one under another name. */
		if (d->told || d->step != (double)step)
			continue;
		d->told = true;
		tell(b, d, s, step);
	}
}
