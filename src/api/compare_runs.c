/* SPDX-License-Identifier: MIT */
#include "api/compare_runs.h"

#include <stdlib.h>

#include "audit/case.h"
#include "audit/data.h"
#include "base/size.h"
#include "ledger/read.h"

/* One of the logs that are compared. */
struct side {
	const char *path;
	struct ledger ledger;
	struct lineage lineage;
	struct ledger_step *steps; /* of the line, one after the other */
	uint32_t count;
	bool open;
};

static int side_open(
	struct side *s, const char *path, const struct verify_options *o, struct error *e)
{
	struct ledger_options lo = {.limits = &o->limits, .memory = o->limits.memory / 4};
	int status = ledger_open(&s->ledger, &path, 1, &lo, e);

	s->path = path;
	s->open = status == RP_OK;
	if (status == RP_OK)
		status = lineage_build(&s->lineage, &s->ledger, ATTEMPT_TRAIN, NULL, 0, e);
	if (status < 0)
		return fail_wrap(e, "%s", path);
	s->steps = calloc(size_add((size_t)s->lineage.steps, 1), sizeof *s->steps);
	if (!s->steps)
		return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for the steps");
	for (size_t i = 0; i < s->lineage.line.count; i++) {
		const struct line_part *p = &s->lineage.line.items[i];
		memcpy(s->steps + s->count, s->ledger.steps.items + p->first,
			p->steps * sizeof *s->steps);
		s->count += p->steps;
	}
	return RP_OK;
}

static void side_close(struct side *s)
{
	free(s->steps);
	if (!s->open)
		return;
	lineage_release(&s->lineage);
	ledger_release(&s->ledger);
}

/* The first step of a line from a step on. */
static uint32_t step_from(const struct side *s, int64_t step)
{
	uint32_t i = 0;

	while (i < s->count && s->steps[i].step < step)
		i++;
	return i;
}

/* Where a line has a step's samples; UINT32_MAX: nowhere. */
static uint32_t find_step(const struct side *s, const struct ledger_step *like)
{
	for (uint32_t i = 0; i < s->count; i++)
		if (s->steps[i].sum[0] == like->sum[0] && s->steps[i].sum[1] == like->sum[1] &&
			s->steps[i].n == like->n)
			return i;
	return UINT32_MAX;
}

static void tell_match(struct report *r, const struct side *a, const struct side *b,
	const struct key_match *m, uint32_t from_a, uint32_t from_b)
{
	struct findings *sink = &r->findings;

	if (m->same > 0) {
		struct finding *f =
			finding_add(sink, FINDING_D190, "%s of %s consumed what %s did%s",
				counted_text(sink, m->same, "step"), b->path, a->path,
				m->by_samples        ? ", in batches of another size"
				: m->equal < m->same ? ", placed on the ranks otherwise"
						     : "");
		f->place.step_first = b->steps[from_b].step;
		f->place.step_last = b->steps[from_b + m->same - 1].step;
		f->observed = quantity_count(m->same);
		f->unit = "steps";
	}
	if (!m->differs)
		return;
	const struct ledger_step *own = &b->steps[from_b + m->at];
	uint32_t elsewhere = find_step(a, own);
	const char *how = "its samples are those of no step there";
	if (elsewhere != UINT32_MAX)
		how = findings_text(sink, "its samples are those of step %s there, a lag of %s",
			count_text(sink, a->steps[elsewhere].step),
			counted_text(sink,
				(uint64_t)llabs(a->steps[elsewhere].step -
						a->steps[from_a + m->key_at].step),
				"step"));
	struct finding *f = finding_add(sink, FINDING_D109, "step %s of %s is not that of %s: %s",
		count_text(sink, own->step), b->path, a->path, how);
	f->place.step_first = f->place.step_last = own->step;
	f->observed = quantity_count(m->same);
	f->expected = quantity_count(m->steps);
	f->unit = "equal steps";
}

/* Whether what follows the last resume is what a cold start consumes. */
static void tell_control(struct report *r, const struct side *b, const struct side *control)
{
	const struct lineage *g = &b->lineage;
	struct findings *sink = &r->findings;
	const char *subject = "the last resume against a cold start";

	if (g->line.count < 2 || control->count == 0) {
		cover_not_checked(&r->coverage, "control", subject, "%s",
			control->count == 0 ? "the control consumed nothing"
					    : "there is no resume");
		return;
	}
	const struct line_part *p = &g->line.items[g->line.count - 1];
	struct key_match m = answer_match(
		&b->ledger.steps.items[p->first], p->steps, control->steps, control->count);
	cover_ran(&r->coverage, "control", subject, "steps", m.steps, m.steps, NULL);
	if (m.same == 0)
		return;
	struct finding *f = finding_add(sink, FINDING_D101,
		"after its last resume %s consumes what a cold start does: %s of %s", b->path,
		counted_text(sink, m.same, "step"), control->path);
	f->place.step_first = p->first_step;
	f->place.step_last = b->ledger.steps.items[p->first + m.same - 1].step;
	f->observed = quantity_count(m.same);
	f->unit = "steps of a cold start";
}

/* Whether any samples of the two can be compared: keys of two data sets or orders are not. */
static bool share_space(const struct ledger *a, const struct ledger *b)
{
	for (size_t i = 0; i < a->spaces.count; i++)
		for (size_t k = 0; k < b->spaces.count; k++)
			if (a->spaces.items[i].id == b->spaces.items[k].id)
				return true;
	return false;
}

static void fill_report(
	struct report *r, const struct side *a, const struct side *b, const struct side *control)
{
	uint32_t from_a = 0, from_b = 0;
	struct verdict_case v = {.findings = &r->findings, .coverage = &r->coverage};

	if (a->count > 0 && b->count > 0) {
		int64_t first =
			a->steps[0].step > b->steps[0].step ? a->steps[0].step : b->steps[0].step;
		from_a = step_from(a, first);
		from_b = step_from(b, first);
	}
	if (!share_space(&a->ledger, &b->ledger)) {
		v.unreadable =
			"the two logs are of different data sets, orders or kinds of key, and such "
			"samples are not compared";
		cover_not_checked(&r->coverage, "samples", "samples of the two, step by step", "%s",
			v.unreadable);
		struct verdict verdict = verdict_of(&v);
		report_take_verdict(r, &verdict);
		return;
	}
	struct key_match m = answer_match(
		b->steps + from_b, b->count - from_b, a->steps + from_a, a->count - from_a);
	if (m.steps == 0)
		cover_not_checked(&r->coverage, "samples", "samples of the two, step by step",
			"they have no step in common");
	else
		cover_ran(&r->coverage, "samples", "samples of the two, step by step", "steps",
			m.steps, m.steps, NULL);
	tell_match(r, a, b, &m, from_a, from_b);
	if (control)
		tell_control(r, b, control);
	if (m.steps > 0 && m.same > 0)
		v.exact = report_text(r, "all %u steps that both have consumed the same samples%s",
			m.same, m.equal < m.same ? ", placed otherwise" : "");
	v.unreadable = m.steps == 0 ? "the two logs have no step in common" : NULL;
	struct verdict verdict = verdict_of(&v);
	report_take_verdict(r, &verdict);
}

int compare_runs(struct report *r, const char *earlier, const char *later, const char *control,
	const struct verify_options *o, struct error *e)
{
	struct side sides[3] = {0};
	const char *const paths[] = {earlier, later, control};
	static const char *const roles[] = {"earlier", "later", "control"};
	size_t count = control ? 3 : 2;
	int status = RP_OK;

	for (size_t i = 0; i < count && status == RP_OK; i++) {
		status = side_open(&sides[i], paths[i], o, e);
		if (status == RP_OK)
			report_add_input(r, paths[i], roles[i], "sample log");
	}
	if (status == RP_OK)
		fill_report(r, &sides[0], &sides[1], control ? &sides[2] : NULL);
	for (size_t i = 0; i < count; i++)
		side_close(&sides[i]);
	report_finish(r);
	return status;
}
