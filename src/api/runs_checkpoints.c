/* SPDX-License-Identifier: MIT */
/* Checkpoints that lie beside the logs. */
#define _GNU_SOURCE
#include <math.h>

#include "api/runs_parts.h"
#include "api/subject.h"

#define CHECKPOINTS_MAX 1000u /* checkpoints that are read */

/* What a checkpoint says of its position against what the line had consumed at its step. */
static const char *position_words(struct runs_beside *b, struct state *s, int64_t step,
	const struct lineage_branch *branch, bool *wrong)
{
	bool reached;
	int64_t samples;
	const struct fact *f = state_fact(s, FACT_SAMPLES);
	uint64_t consumed = lineage_consumed(&b->line->lineage, step, &reached);

	*wrong = false;
	if (!branch->alive || !reached || !f || !state_int(s, FACT_SAMPLES, &samples))
		return NULL;
	if (samples == (int64_t)consumed)
		return report_text(b->r, "position agrees with the log");
	*wrong = true;
	struct finding *found = finding_add(&b->r->findings, FINDING_P102,
		"the checkpoint of step %s says that %s samples were consumed, and the log has %s",
		count_text(&b->r->findings, step), count_text(&b->r->findings, samples),
		count_text(&b->r->findings, (int64_t)consumed));
	place_fact(&b->r->findings, found, s, f);
	found->place.step_first = found->place.step_last = step;
	found->observed = quantity_count(samples);
	found->expected = quantity_count((int64_t)consumed);
	found->unit = "samples";
	return report_text(b->r, "position %s, consumed %s", report_number(b->r, samples),
		report_number(b->r, (int64_t)consumed));
}

static bool has_error(const struct findings *own)
{
	for (size_t i = 0; i < own->list.count; i++)
		if (own->list.items[i].severity == SEVERITY_ERROR)
			return true;
	return false;
}

static void add_checkpoint(struct runs_beside *b, struct subject *s, const struct candidate *k)
{
	struct findings own;
	struct error ignored = ERROR_INIT;
	const struct lineage *g = b->line ? &b->line->lineage : NULL;
	int64_t step = k->step;
	bool readable = false, wrong = false;
	const char *position = NULL;

	findings_init(&own);
	if (b->read++ < CHECKPOINTS_MAX)
		readable = subject_read(s, k, &b->o->common.limits, &own, &ignored) == RP_OK;
	if (readable)
		state_int(&s->state, FACT_STEP, &step);
	struct lineage_branch branch = {.attempt = LEDGER_NONE};
	if (step >= 0 && g)
		branch = lineage_branch_of(g, step, k->path, NULL);
	if (readable && step > b->safe_step && (double)step < b->trouble.x &&
		(!g || branch.alive || branch.attempt == LEDGER_NONE) && !has_error(&own)) {
		b->safe_step = step;
		b->safe_path = report_text(b->r, "%s", k->path);
	}
	if (readable && step >= 0)
		runs_tell_causes(b, &s->state, step);
	if (readable && step >= 0 && g)
		position = position_words(b, &s->state, step, &branch, &wrong);
	const char *cells[] = {b->run->cell, k->path,
		step >= 0 ? report_text(b->r, "step %s", report_number(b->r, step))
			  : "step not known",
		branch.attempt == LEDGER_NONE ? step >= 0 && g ? "not in the log" : NULL
		: branch.rivals               ? report_text(b->r, "%s or another that reached it",
							runs_attempt_words(b->r, g->ledger, branch.attempt))
					      : runs_attempt_words(b->r, g->ledger, branch.attempt),
		branch.attempt == LEDGER_NONE ? NULL
		: branch.alive                ? "on the line"
					      : "dead",
		position};
	struct quantity values[6] = {runs_value(b->run)};
	if (step >= 0)
		values[2] = quantity_count(step);
	if (branch.attempt != LEDGER_NONE)
		values[3] = quantity_count(g->ledger->attempts.items[branch.attempt].number);
	report_add_row_values(b->r, b->table,
		wrong                                            ? TONE_BAD
		: branch.attempt != LEDGER_NONE && !branch.alive ? TONE_DIM
								 : TONE_PLAIN,
		cells, values);
	findings_release(&own);
	if (readable) {
		state_release(&s->state);
		state_init(&s->state, &b->o->common.limits);
	}
}

/* `named`: the user says that it is one; a folder of logs need not hold any. */
static int add_those_at(struct runs_beside *b, const char *path, bool named, struct error *e)
{
	struct subject s;
	int status = subject_open(&s, path, &b->o->common.limits, e);

	if (status == RP_OK && named)
		report_add_input(b->r, path, "checkpoint", "");
	for (size_t k = 0; status == RP_OK && k < s.candidates.list.count; k++)
		/* A log is no checkpoint, whatever its extension. */
		if (s.candidates.list.items[k].profile || named)
			add_checkpoint(b, &s, &s.candidates.list.items[k]);
	subject_close(&s);
	if (status == RP_E_NOT_FOUND && !named) {
		*e = ERROR_INIT;
		return RP_OK;
	}
	return status < 0 ? fail_wrap(e, "%s", path) : RP_OK;
}

int runs_add_checkpoints(struct runs_beside *b, const struct run *run, struct error *e)
{
	int status = RP_OK;

	for (size_t i = 0; i < run->folders.count && status == RP_OK; i++)
		status = add_those_at(b, run->folders.items[i], false, e);
	for (size_t i = 0; i < run->checkpoints.count && status == RP_OK; i++)
		status = add_those_at(b, run->checkpoints.items[i], true, e);
	return status;
}

void runs_add_rollback(struct report *r, struct report_table *t, const struct runs_beside *b)
{
	bool trouble = b->trouble.any, safe = b->safe_step >= 0;
	const char *cells[] = {b->run->cell,
		safe      ? b->safe_path
		: trouble ? "no complete checkpoint before it"
			  : "no need",
		safe ? report_text(r, "step %s", report_number(r, b->safe_step)) : NULL, NULL,
		trouble ? report_text(r, "the newest complete one before step %s",
				  report_number(r, llround(b->trouble.x)))
			: "no sign of trouble: the newest complete one",
		trouble ? report_text(r, "first sign: %s", b->trouble.what) : NULL};
	struct quantity values[6] = {runs_value(b->run)};
	if (safe)
		values[2] = quantity_count(b->safe_step);
	if (trouble)
		values[3] = quantity_count(llround(b->trouble.x));
	report_add_row_values(r, t, safe ? TONE_GOOD : TONE_WARNING, cells, values);
}
