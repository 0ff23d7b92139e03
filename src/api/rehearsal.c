/* SPDX-License-Identifier: MIT */
/* What the first samples that a launch would read say of its resume. */
#include "api/conclude.h"
#include "api/runs_parts.h"
#include "audit/case.h"

static uint32_t last_rehearsal(const struct ledger *l)
{
	for (size_t i = l->attempts.count; i > 0; i--)
		if (l->attempts.items[i - 1].kind == ATTEMPT_REHEARSAL)
			return (uint32_t)i - 1;
	return LEDGER_NONE;
}

static void conclude_rehearsal(
	struct report *r, const struct case_line *c, const struct audit_options *o)
{
	const struct line_part *p = &c->lineage.line.items[c->from_part];
	const char *from = report_number(r, c->lineage.attempts.items[p->attempt].from_step);
	struct verdict_case v = {0};
	const struct seam_judgement *j = &c->judged.list.items[c->from_part - 1];

	if (j->proven > 0)
		v.exact = report_text(r,
			"from step %s the launch would read what was read there before: %s", from,
			report_counted(r, j->proven, "step"));
	if (j->outcome == SEAM_FRESH && r->findings.list.count > 0)
		v.reshuffled = r->findings.list.items[0].message;
	v.consistent =
		report_text(r, "from step %s the launch would read %s that the epoch has not had",
			from, report_counted(r, p->rows, "sample"));
	conclude(r, &v, &(struct policy_subject){.log = true}, &o->common);
	r->forecast = true;
}

static int judge_rehearsal(
	struct report *r, const struct ledger *l, const struct audit_options *o, struct error *e)
{
	static const struct rule *const asked[] = {
		&rule_data_resume, &rule_data_ranks, &rule_data_repeats, &rule_data_attempts};
	struct case_line line = {0};
	uint32_t tip = last_rehearsal(l);

	if (tip == LEDGER_NONE)
		return fail(e, RP_E_ARGUMENT, ERROR_NO_OFFSET,
			"no rehearsal is in it: an attempt whose kind is \"rehearsal\"");
	int status = case_line_open(&line, l, ATTEMPT_TRAIN, tip, o->told, o->told_count,
		o->common.limits.memory / 5 * 2, team_size(o->common.threads), e);
	if (status == RP_OK && l->attempts.items[tip].rows == 0)
		status = fail(e, RP_E_FORMAT, ERROR_NO_OFFSET, "the rehearsal consumed nothing");
	if (status == RP_OK && line.from_part == 0)
		status = fail(e, RP_E_FORMAT, ERROR_NO_OFFSET,
			"the run's log has nothing before the step that the rehearsal begins from");
	if (status == RP_OK) {
		struct audit_case c = {.ledger = l,
			.lineage = &line.lineage,
			.lines = &line,
			.line_count = 1,
			.limits = &o->common.limits};
		for (size_t i = 0; i < sizeof asked / sizeof *asked; i++)
			asked[i]->run(&c, &r->findings, &r->coverage);
		runs_cover_log(r, l);
		conclude_rehearsal(r, &line, o);
	}
	case_line_close(&line);
	return status;
}

int audit_rehearsal(struct report *r, const char *run, const char *rehearsal,
	const struct audit_options *o, struct error *e)
{
	const char *const paths[] = {run, rehearsal};
	struct run_in_use told;
	struct ledger l;

	report_add_input(r, run, "run", "sample log");
	report_add_input(r, rehearsal, "rehearsal", "sample log");
	int status = runs_open_told(&told, r, run, o, e);
	if (status == RP_OK)
		status = runs_open_log(&l, paths, 2, &told, o, e);
	if (status == RP_OK) {
		status = judge_rehearsal(r, &l, o, e);
		if (status < 0)
			fail_wrap(e, "%s", rehearsal);
		ledger_release(&l);
	}
	run_release(&told);
	report_finish(r);
	return status;
}
