/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "api/runs.h"

#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "api/conclude.h"
#include "api/curves.h"
#include "api/run.h"
#include "api/run_paths.h"
#include "api/subject.h"
#include "audit/case.h"
#include "audit/data.h"
#include "base/source.h"
#include "base/text.h"
#include "ledger/read.h"

#define STEPS_MAX 100000u     /* of checkpoints that lie beside loss logs */
#define CHECKPOINTS_MAX 1000u /* checkpoints that are read */
#define LOSSES_SHOWN 20u

static struct quantity run_value(const struct run *run)
{
	return run->cell ? quantity_text(run->name) : (struct quantity){0};
}

/* Words ---------------------------------------------------------------------------------------- */

static const char *step_range(struct report *r, int64_t first, int64_t last)
{
	return first == last ? report_text(r, "step %s", report_number(r, first))
			     : report_text(r, "steps %s–%s", report_number(r, first),
				       report_number(r, last));
}

static const char *attempt_words(struct report *r, const struct ledger *l, uint32_t i)
{
	struct strbuf b;

	strbuf_init(&b, 200);
	strbuf_add_text(&b, "attempt ");
	ledger_attempt_name(l, i, &b);
	return report_take(r, &b);
}

static const char *const outcome_words[SEAM_OUTCOMES] = {
	[SEAM_SOUND] = "no replay or skip seen",
	[SEAM_EXACT] = "exact",
	[SEAM_REARRANGED] = "exact, ranks rearranged",
	[SEAM_BY_SAMPLES] = "exact by samples, the batch differs",
	[SEAM_SKIPPED] = "skipped as declared",
	[SEAM_FROM_START] = "replay from the start",
	[SEAM_FROM_EPOCH] = "replay from the epoch's start",
	[SEAM_WINDOW] = "replay",
	[SEAM_OTHER_ORDER] = "the epoch again in another order",
	[SEAM_OTHER_EPOCH] = "another epoch's order",
	[SEAM_HOLE] = "samples passed over",
	[SEAM_PERMUTED] = "the same samples in other turns",
	[SEAM_DIFFERS] = "not what the dead branch consumed",
	[SEAM_SKIP_WRONG] = "not the declared skip",
	[SEAM_FRESH] = "a fresh order, as declared",
	[SEAM_UNKNOWABLE] = "the keys cannot tell",
};

/* Tables --------------------------------------------------------------------------------------- */

static const char *from_words(struct report *r, const struct lineage *g, uint32_t i)
{
	const struct lineage_attempt *n = &g->attempts.items[i];
	static const char *const hows[] = {[LINEAGE_COUNTED] = " (by its steps)",
		[LINEAGE_SAID] = "",
		[LINEAGE_TOLD] = " (told)"};

	if (n->from_step == LEDGER_NO_STEP)
		return "from: not known";
	if (n->from_step == 0)
		return report_text(r, "fresh%s", n->how == LINEAGE_COUNTED ? "" : hows[n->how]);
	if (n->parent == LEDGER_NONE)
		return report_text(r, "from step %s, before the log%s",
			report_number(r, n->from_step), hows[n->how]);
	return report_text(r, "from step %s of %s%s", report_number(r, n->from_step),
		attempt_words(r, g->ledger, n->parent), hows[n->how]);
}

static void add_fate(struct strbuf *b, const char *text)
{
	if (*text == '\0')
		return;
	strbuf_add_text(b, b->n > 0 ? " · " : "");
	strbuf_add_text(b, text);
}

/* What became of an attempt: how its resume went, what of it is dead, how it ended. */
static const char *fate_words(struct report *r, const struct case_line *c, uint32_t i,
	const struct seam_judgement *j, enum cell_tone *tone)
{
	const struct lineage *g = &c->lineage;
	const struct ledger_attempt *a = &g->ledger->attempts.items[i];
	const struct lineage_attempt *n = &g->attempts.items[i];
	struct strbuf b;

	strbuf_init(&b, 2000);
	*tone = TONE_PLAIN;
	if (j) {
		add_fate(&b, outcome_words[j->outcome]);
		if (j->outcome >= SEAM_FROM_START && j->outcome <= SEAM_SKIP_WRONG)
			*tone = j->outcome == SEAM_PERMUTED ? TONE_WARNING : TONE_BAD;
	}
	if (n->rivals > 0)
		add_fate(&b,
			report_text(r, "%u more attempt%s reached that step: the newest is taken",
				n->rivals, n->rivals == 1 ? "" : "s"));
	if (n->gap > 0)
		add_fate(&b, report_text(r, "%s before it not in the log",
				     report_counted(r, (uint64_t)n->gap, "step")));
	if (a->steps == 0) {
		add_fate(&b, "consumed nothing");
	} else if (n->alive < a->steps) {
		const struct ledger_step *s = &g->ledger->steps.items[a->first + n->alive];
		add_fate(&b, n->alive == 0 ? "dead"
					   : report_text(r, "%s dead",
						     step_range(r, s->step, a->last_step)));
		if (n->alive == 0 && !j)
			*tone = TONE_DIM;
	}
	if (*a->end)
		add_fate(&b, a->end);
	return report_take(r, &b);
}

/* The last part of a run's path, as far as that tells it from the others. */
static const char *short_name(struct report *r, const struct runs *runs, const char *path)
{
	size_t start = strlen(path);
	size_t same = 0;

	while (start > 0 && path[start - 1] == '/')
		start--;
	while (start > 0 && path[start - 1] != '/')
		start--;
	for (size_t i = 0; i < runs->list.count; i++)
		same += slice_ends(slice_of(runs->list.items[i].name), slice_of(path + start));
	return same > 1 ? path : report_text(r, "%s", path + start);
}

/* How far an attempt stands in from the left: one step for each branch that it is off the line. */
static const char *indent_words(struct report *r, const struct case_line *c, uint32_t i)
{
	const struct lineage_attempt *n = &c->lineage.attempts.items[i];
	bool off = n->alive == 0 && i != c->lineage.last;

	return report_text(r, "%s%s", off ? "  " : "", attempt_words(r, c->lineage.ledger, i));
}

static void add_lineage(
	struct report *r, struct report_table *t, const struct run *run, const struct case_line *c)
{
	const struct lineage *g = &c->lineage;
	size_t seam = 0;

	for (uint32_t i = 0; i < g->attempts.count; i++) {
		const struct ledger_attempt *a = &g->ledger->attempts.items[i];
		const struct lineage_attempt *n = &g->attempts.items[i];
		const struct seam_judgement *j = NULL;
		enum cell_tone tone;
		if (!n->member)
			continue;
		if (seam < c->alignments.seams.count && c->alignments.seams.items[seam].to == i)
			j = &c->judged.list.items[seam++];
		const char *fate = fate_words(r, c, i, j, &tone);
		const char *cells[] = {run->cell, indent_words(r, c, i),
			a->steps ? step_range(r, a->first_step, a->last_step) : NULL, NULL, NULL,
			a->steps ? report_counted(r, a->rows, "sample") : NULL, from_words(r, g, i),
			NULL, NULL, NULL, fate};
		struct quantity values[11] = {run_value(run)};
		values[1] = quantity_count(a->number);
		if (a->steps) {
			values[2] = quantity_count(a->steps);
			values[3] = quantity_count(a->first_step);
			values[4] = quantity_count(a->last_step);
		}
		values[5] = quantity_count((int64_t)a->rows);
		if (n->from_step != LEDGER_NO_STEP)
			values[7] = quantity_count(n->from_step);
		if (n->parent != LEDGER_NONE)
			values[8] = quantity_count(g->ledger->attempts.items[n->parent].number);
		values[9] = quantity_count(n->alive);
		report_add_row_values(r, t, tone, cells, values);
	}
	/* Those that stand alone. */
	static const char *const kinds[] = {"training", "rehearsal", "reference", "validation"};
	for (uint32_t i = 0; i < g->attempts.count && g->kind == ATTEMPT_TRAIN; i++) {
		const struct ledger_attempt *a = &g->ledger->attempts.items[i];
		if (g->attempts.items[i].member || a->kind == ATTEMPT_VALIDATION)
			continue;
		const char *cells[] = {run->cell,
			report_text(r, "%s, %s", attempt_words(r, g->ledger, i), kinds[a->kind]),
			a->steps ? step_range(r, a->first_step, a->last_step) : NULL, NULL, NULL,
			a->steps ? report_counted(r, a->rows, "sample") : NULL, NULL, NULL, NULL,
			NULL, kinds[a->kind]};
		struct quantity values[11] = {run_value(run)};
		values[1] = quantity_count(a->number);
		report_add_row_values(r, t, TONE_DIM, cells, values);
	}
}

static uint64_t line_tokens(const struct lineage *g)
{
	uint64_t tokens = 0;

	for (size_t i = 0; i < g->line.count; i++)
		for (uint32_t k = 0; k < g->line.items[i].steps; k++)
			tokens += g->ledger->steps.items[g->line.items[i].first + k].tokens;
	return tokens;
}

/* Whether all lines were understood, and all ranks are there. */
static bool is_whole(const struct ledger *l)
{
	for (size_t i = 0; i < l->attempts.count; i++)
		if (l->attempts.items[i].ranks_missing > 0)
			return false;
	return l->lines_lost == 0;
}

/* The line's totals: what the final weights have seen. */
static void add_totals(
	struct report *r, struct report_table *t, const struct run *run, const struct case_line *c)
{
	const struct lineage *g = &c->lineage;
	const struct tally *n = &c->tally;
	uint64_t tokens = line_tokens(g), never = n->size > n->distinct ? n->size - n->distinct : 0;
	static const char *const hows[] = {[EPOCHS_NONE] = "where epochs end is not known",
		[EPOCHS_LOGGED] = "",
		[EPOCHS_SIZED] = " by the data set's size",
		[EPOCHS_LEARNED] = " as the samples come round"};
	struct strbuf b;

	strbuf_init(&b, 100);
	if (tokens > 0) {
		text_add_magnitude(&b, tokens);
		strbuf_add_text(&b, " tokens");
	}
	const char *cells[] = {run->cell, report_text(r, "%ssurviving line", c->what),
		report_counted(r, g->steps, "step"), report_counted(r, g->rows, "sample"),
		report_text(r, "%s distinct", report_number(r, (int64_t)n->distinct)),
		n->size == 0
			? NULL
			: report_text(r, "%s of %s never seen%s", report_number(r, (int64_t)never),
				  report_number(r, (int64_t)n->size),
				  is_whole(g->ledger) ? "" : ", as far as is logged"),
		NULL, tokens > 0 ? report_take(r, &b) : NULL,
		n->how == EPOCHS_NONE
			? hows[EPOCHS_NONE]
			: report_text(r, "%s%s", report_counted(r, n->epochs.count, "epoch"),
				  hows[n->how]),
		g->dead_rows ? report_text(r, "%s dead", report_counted(r, g->dead_rows, "sample"))
			     : NULL};
	struct quantity values[10] = {run_value(run)};
	values[2] = quantity_count((int64_t)g->steps);
	values[3] = quantity_count((int64_t)g->rows);
	values[4] = quantity_count((int64_t)n->distinct);
	if (n->size > 0) {
		values[5] = quantity_count((int64_t)never);
		values[6] = quantity_count((int64_t)n->size);
	}
	if (tokens > 0)
		values[7] = quantity_count((int64_t)tokens);
	if (n->how != EPOCHS_NONE)
		values[8] = quantity_count((int64_t)n->epochs.count);
	values[9] = quantity_count((int64_t)g->dead_rows);
	report_add_row_values(r, t, TONE_PLAIN, cells, values);
}

/* What reading left out ------------------------------------------------------------------------ */

static void add_losses(
	struct report *r, struct report_table *t, const struct run *run, const struct ledger *l)
{
	for (size_t pass = 0; pass < 2; pass++) {
		size_t count = pass == 0 ? l->losses.count : l->notes.count;
		const struct ledger_loss *list = pass == 0 ? l->losses.items : l->notes.items;
		for (size_t i = 0; i < count && i < LOSSES_SHOWN; i++) {
			const struct ledger_loss *x = &list[i];
			const char *cells[] = {run->cell, pass == 0 ? "left out" : "odd",
				x->line ? report_text(r, "%s:%llu", x->file,
						  (unsigned long long)x->line)
					: x->file,
				x->what};
			struct quantity values[4] = {run_value(run)};
			report_add_row_values(r, t, TONE_WARNING, cells, values);
		}
	}
}

static void cover_log(struct report *r, const struct ledger *l)
{
	const char *reason = NULL;

	if (l->lines_lost > 0)
		reason = l->losses.count > 0 ? report_text(r, "%s%s%s", l->losses.items[0].file,
						       *l->losses.items[0].file ? ": " : "",
						       l->losses.items[0].what)
					     : "lines were not understood";
	cover_ran(&r->coverage, "data-log", "the sample log", "lines", l->lines - l->lines_lost,
		l->lines, reason);
	r->incomplete = r->incomplete || l->lines_lost > 0;
}

/* A log without a sample proves nothing, however sound the rest of it is. */
static const char *empty_words(struct report *r, const struct run *run, const struct ledger *l,
	const struct case_line *lines, size_t count)
{
	uint64_t samples = 0;

	for (size_t i = 0; i < count; i++)
		samples += lines[i].lineage.rows;
	if (samples > 0)
		return NULL;
	return report_text(r, "%s: no samples that training consumed are in the log%s", run->name,
		l->lines_lost == 0 ? ""
				   : report_text(r, ": %s left out",
					     report_counted(r, l->lines_lost, "line")));
}

/* Checkpoints beside the log ------------------------------------------------------------------- */

struct beside {
	struct report *r;
	struct report_table *table;
	const struct audit_options *o;
	const struct case_line *line;
	const struct run *run;
	size_t read;
	/* The newest sound checkpoint before the first sign of trouble. */
	struct curve_trouble trouble;
	int64_t safe_step; /* -1: none */
	const char *safe_path;
};

/* What a checkpoint says of its position against what the line had consumed at its step. */
static const char *position_words(struct beside *b, struct state *s, int64_t step,
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

static void add_checkpoint(struct beside *b, struct subject *s, const struct candidate *k)
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
	if (readable && step >= 0 && g)
		position = position_words(b, &s->state, step, &branch, &wrong);
	const char *cells[] = {b->run->cell, k->path,
		step >= 0 ? report_text(b->r, "step %s", report_number(b->r, step))
			  : "step not known",
		branch.attempt == LEDGER_NONE ? step >= 0 && g ? "not in the log" : NULL
		: branch.rivals               ? report_text(b->r, "%s or another that reached it",
							attempt_words(b->r, g->ledger, branch.attempt))
					      : attempt_words(b->r, g->ledger, branch.attempt),
		branch.attempt == LEDGER_NONE ? NULL
		: branch.alive                ? "on the line"
					      : "dead",
		position};
	struct quantity values[6] = {run_value(b->run)};
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

static int add_checkpoints(struct beside *b, const struct run *run, struct error *e)
{
	for (size_t i = 0; i < run->checkpoints.count; i++) {
		const char *path = run->checkpoints.items[i];
		struct subject s;
		bool named = strcmp(path, run->name) != 0;
		int status = subject_open(&s, path, &b->o->common.limits, e);
		if (status == RP_OK && named)
			report_add_input(b->r, path, "checkpoint", "");
		for (size_t k = 0; status == RP_OK && k < s.candidates.list.count; k++)
			/* A log is no checkpoint, whatever its extension. */
			if (s.candidates.list.items[k].profile || named)
				add_checkpoint(b, &s, &s.candidates.list.items[k]);
		subject_close(&s);
		/* A run's folder need not hold any. */
		if (status < 0 && !(status == RP_E_NOT_FOUND && !named))
			return fail_wrap(e, "%s", path);
		*e = ERROR_INIT;
	}
	return RP_OK;
}

/* One run -------------------------------------------------------------------------------------- */

struct tables {
	struct report_table *lineage, *line, *checkpoints, *log, *rollback, *runs;
	struct curves_tables curves;
};

/* What all runs amount to where nothing is wrong. */
struct sum {
	uint64_t seams, exact, fresh, proven, runs, epochs, samples;
	uint64_t ledgers, curves, resumes, matched,
		matched_steps; /* of runs with either, and by curves */
	const char *fresh_words;
	const char *empty; /* why there is nothing to judge in a log */
};

static struct tables add_tables(struct report *r)
{
	static const char *const lineage[] = {"run", "attempt", "steps", "first_step", "last_step",
		"samples", "from", "from_step", "from_attempt", "surviving_steps", "fate"};
	static const char *const line[] = {"run", "line", "steps", "samples", "distinct",
		"never_seen", "size", "tokens", "epochs", "dead_samples"};
	static const char *const checkpoints[] = {
		"run", "path", "step", "attempt", "branch", "position"};
	static const char *const log[] = {"run", "what", "where", "why"};

	static const char *const rollback[] = {
		"run", "path", "step", "first_sign_step", "first_sign", "what"};
	static const char *const side[] = {
		"run", "seed", "lr", "warmup_end", "trouble", "behind_warmup", "what"};

	report_add_table(r, "lineage", "attempts", lineage, 11);
	report_add_table(r, "line", "what the final weights have seen", line, 10);
	report_add_table(r, "checkpoints", "checkpoints", checkpoints, 6);
	report_add_table(r, "log", "left out of the log", log, 4);
	report_add_table(r, "rollback", "where to roll back to", rollback, 6);
	report_add_table(r, "runs", "runs side by side", side, 7);
	size_t first = r->tables.count - 6;
	curves_add_tables(r);
	if (r->tables.count < 10)
		return (struct tables){0};
	struct report_table *t = r->tables.items + first;
	return (struct tables){t, t + 1, t + 2, t + 3, t + 4, t + 5, curves_find_tables(r)};
}

static void add_up(struct sum *sum, const struct case_line *c, struct report *r)
{
	for (size_t i = 0; i < c->judged.list.count; i++) {
		const struct seam_judgement *j = &c->judged.list.items[i];
		sum->seams++;
		sum->exact += j->proven > 0 && j->outcome != SEAM_SKIP_WRONG;
		sum->proven += j->proven;
		sum->fresh += j->outcome == SEAM_FRESH;
	}
	sum->epochs += c->tally.how == EPOCHS_NONE ? 0 : c->tally.epochs.count;
	sum->samples += c->lineage.rows;
	for (size_t i = 0; i < r->findings.list.count && !sum->fresh_words; i++)
		if (r->findings.list.items[i].code == FINDING_D191)
			sum->fresh_words = r->findings.list.items[i].message;
}

static bool has_kind(const struct ledger *l, enum attempt_kind kind)
{
	for (size_t i = 0; i < l->attempts.count; i++)
		if (l->attempts.items[i].kind == kind)
			return true;
	return false;
}

/* Findings of one of several runs say of which. */
static void place_findings(struct report *r, const struct run *run)
{
	for (size_t i = 0; run->cell && i < r->findings.list.count; i++)
		if (!r->findings.list.items[i].place.file)
			r->findings.list.items[i].place.file =
				findings_text(&r->findings, "%s", run->name);
}

/* A run's loss curve, or none. */
struct run_curve {
	struct curve_log log;
	struct case_curve curve;
	ARRAY(double) resumes, saves;
	bool any;
};

static bool add_step(void *list_, int64_t step)
{
	ARRAY(double) *list = list_;
	double *slot = step == LEDGER_NO_STEP ? NULL : array_push(list, STEPS_MAX);

	if (slot)
		*slot = (double)step;
	return slot || step == LEDGER_NO_STEP;
}

/* What the sample log knows of resumes and checkpoints. */
static bool ask_ledger(struct run_curve *c, const struct audit_case *a)
{
	bool ok = true;

	for (size_t i = 0; ok && a->ledger && i < a->ledger->checkpoints.count; i++)
		ok = add_step(&c->saves, a->ledger->checkpoints.items[i].step);
	for (size_t i = 0; ok && a->lineage && i < a->lineage->attempts.count; i++)
		if (a->lineage->attempts.items[i].member &&
			a->lineage->attempts.items[i].parent != LEDGER_NONE)
			ok = add_step(&c->resumes, a->lineage->attempts.items[i].from_step);
	return ok;
}

static int open_curve(struct run_curve *c, struct report *r, const struct run *run,
	const struct audit_case *a, const struct audit_options *o, struct error *e)
{
	struct curve_options co = run_paths_options(&o->common.limits);
	struct stitch_options so = {.first = NAN, .last = NAN};
	int status;

	*c = (struct run_curve){0};
	if (run->curves.count > 0)
		status = curve_read(
			&c->log, run->files, run->curves.items, run->curves.count, &co, e);
	else
		status = curve_of_ledger(&c->log, a->ledger, &o->common.limits, e);
	if (status < 0)
		return fail_wrap(e, "%s", run->name);
	if (c->log.points.count == 0)
		return RP_OK;
	if (!ask_ledger(c, a))
		return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for the curve");
	so.saves = c->saves.items;
	so.save_count = c->saves.count;
	so.resumes = c->resumes.items;
	so.resume_count = c->resumes.count;
	status = case_curve_open(&c->curve, &c->log, &so, a, e);
	c->any = status == RP_OK && c->curve.stitch.tracks.count > 0;
	for (size_t i = 0; c->any && run->curves.count > 0 && i < c->log.files.count; i++)
		report_add_input(r, c->log.files.items[i].path, "log", "loss log");
	return status;
}

static void close_curve(struct run_curve *c)
{
	case_curve_close(&c->curve);
	curve_release(&c->log);
	array_release(&c->resumes);
	array_release(&c->saves);
}

static void add_up_curve(struct sum *sum, const struct case_curve *c)
{
	sum->curves++;
	for (size_t i = 0; i < c->resumes.count; i++) {
		const struct resume_check *k = &c->resumes.items[i].check;
		sum->resumes++;
		sum->matched += k->outcome == RESUME_MATCHES;
		sum->matched_steps += k->outcome == RESUME_MATCHES ? k->loss.matched : 0;
	}
}

static const char *setting(struct report *r, const struct case_curve *c, const char *const *names)
{
	for (; *names; names++) {
		const char *value = c->stitch.tip == CURVE_NONE
					    ? NULL
					    : stitch_setting_of(&c->stitch, c->stitch.tip, *names);
		if (value)
			return findings_escaped(&r->findings, slice_of(value));
	}
	return NULL;
}

/* The largest learning rate of the line, where no setting says it. */
static const char *peak_rate(struct report *r, const struct case_curve *c)
{
	const struct stitch_track *t = stitch_track_of(&c->stitch, CURVE_LR);
	struct strbuf b;
	double most = 0;

	for (size_t i = 0; t && i < t->line.count; i++)
		most = fmax(most, t->values.items[t->line.items[i]].value);
	if (!(most > 0))
		return NULL;
	strbuf_init(&b, 40);
	text_add_rounded(&b, most, 4);
	return report_take(r, &b);
}

/* One run among others: what it was given, and when it got into trouble. */
static void add_side(
	struct report *r, struct report_table *t, const struct run *run, const struct case_curve *c)
{
	static const char *const seeds[] = {"seed", "random_seed", "data_seed", NULL};
	static const char *const rates[] = {"lr", "learning_rate", NULL};
	struct curve_trouble trouble = curve_first_trouble(c);
	double warmup = spikes_warmup_end(&c->stitch);
	const char *seed = setting(r, c, seeds), *rate = setting(r, c, rates);

	if (!rate)
		rate = peak_rate(r, c);
	const char *cells[] = {run->cell ? run->cell : run->name,
		seed ? report_text(r, "seed %s", seed) : NULL,
		rate ? report_text(r, "lr %s", rate) : NULL,
		isnan(warmup) ? NULL
			      : report_text(r, "warm-up to %s", report_number(r, llround(warmup))),
		trouble.any
			? report_text(r, "trouble from %s", report_number(r, llround(trouble.x)))
			: "no trouble",
		trouble.any && !isnan(warmup)
			? report_text(
				  r, "%s behind it", report_number(r, llround(trouble.x - warmup)))
			: NULL,
		trouble.what};
	struct quantity values[7] = {quantity_text(run->name)};
	if (!isnan(warmup))
		values[3] = quantity_count(llround(warmup));
	if (trouble.any)
		values[4] = quantity_count(llround(trouble.x));
	if (trouble.any && !isnan(warmup))
		values[5] = quantity_count(llround(trouble.x - warmup));
	report_add_row_values(r, t, trouble.any ? TONE_WARNING : TONE_PLAIN, cells, values);
}

static void add_rollback(struct report *r, struct report_table *t, const struct beside *b)
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
	struct quantity values[6] = {run_value(b->run)};
	if (safe)
		values[2] = quantity_count(b->safe_step);
	if (trouble)
		values[3] = quantity_count(llround(b->trouble.x));
	report_add_row_values(r, t, safe ? TONE_GOOD : TONE_WARNING, cells, values);
}

/* The rules, over whatever the run has; then what lies beside it. */
static int judge_case(struct report *r, const struct tables *t, const struct run *run,
	struct audit_case *c, const struct audit_options *o, struct sum *sum, struct error *e)
{
	struct run_curve curve;
	int status = open_curve(&curve, r, run, c, o, e);

	if (status == RP_OK) {
		c->curve = curve.any ? &curve.curve : NULL;
		audit_run(c, &r->findings, &r->coverage);
		struct beside b = {.r = r,
			.table = t->checkpoints,
			.o = o,
			.line = c->line_count ? c->lines : NULL,
			.run = run,
			.trouble = {.x = INFINITY},
			.safe_step = -1};
		if (curve.any) {
			curves_cover(r, &curve.log);
			curves_fill_tables(r, &t->curves, &curve.curve, run->cell,
				run->cell ? run->name : NULL);
			add_up_curve(sum, &curve.curve);
			add_side(r, t->runs, run, &curve.curve);
			b.trouble = curve_first_trouble(&curve.curve);
		}
		status = add_checkpoints(&b, run, e);
		if (status == RP_OK && o->rollback)
			add_rollback(r, t->rollback, &b);
	}
	close_curve(&curve);
	return status;
}

static int judge_ledger(struct report *r, const struct tables *t, const struct run *run,
	const struct ledger *l, const struct audit_options *o, struct sum *sum, struct error *e)
{
	static const enum attempt_kind kinds[] = {ATTEMPT_TRAIN, ATTEMPT_VALIDATION};
	struct case_line lines[2] = {0};
	size_t opened = 0, count = 0;
	int status = RP_OK;

	for (size_t i = 0; i < 2 && status == RP_OK; i++) {
		/* What the user tells is of training attempts. */
		if (i > 0 && !has_kind(l, kinds[i]))
			break;
		opened++;
		status = case_line_open(&lines[i], l, kinds[i], LEDGER_NONE, o->told,
			i == 0 ? o->told_count : 0, o->common.limits.memory / 5 * 2,
			team_size(o->common.threads), e);
		count += status == RP_OK;
	}
	if (status == RP_OK) {
		struct audit_case c = {.ledger = l,
			.lineage = &lines[0].lineage,
			.lines = lines,
			.line_count = count,
			.limits = &o->common.limits};
		status = judge_case(r, t, run, &c, o, sum, e);
		cover_log(r, l);
		place_findings(r, run);
		sum->ledgers++;
		for (size_t i = 0; i < count; i++) {
			add_lineage(r, t->lineage, run, &lines[i]);
			add_totals(r, t->line, run, &lines[i]);
			add_up(sum, &lines[i], r);
		}
		add_losses(r, t->log, run, l);
		if (!sum->empty)
			sum->empty = empty_words(r, run, l, lines, count);
	}
	for (size_t i = 0; i < opened; i++)
		case_line_close(&lines[i]);
	return status;
}

/* What the user told of the run whose logs these are. */
static int open_told(struct run_in_use *told, struct report *r, const char *log,
	const struct audit_options *o, struct error *e)
{
	struct stat st;
	bool folder = stat(log, &st) == 0 && S_ISDIR(st.st_mode);

	return run_open_beside(told, r, o->common.run, log, folder, e);
}

static int open_log(struct ledger *l, const char *const *paths, size_t count,
	const struct run_in_use *told, const struct audit_options *o, struct error *e)
{
	struct ledger_options lo = {.limits = &o->common.limits,
		.memory = o->common.limits.memory / 5 * 3,
		.run = run_file_of(told)};

	return ledger_open(l, paths, count, &lo, e);
}

static int judge_run(struct report *r, const struct tables *t, const struct run *run,
	const struct audit_options *o, struct sum *sum, struct error *e)
{
	struct run_in_use told;
	struct ledger l;

	if (run->logs.count == 0) {
		struct audit_case c = {.limits = &o->common.limits};
		int judged = judge_case(r, t, run, &c, o, sum, e);
		sum->runs++;
		place_findings(r, run);
		cover_not_checked(&r->coverage, "data-log", "the data", "no sample log is there");
		return judged;
	}
	for (size_t i = 0; i < run->logs.count; i++)
		report_add_input(r, run->logs.items[i], "run", "sample log");
	int status = open_told(&told, r, run->logs.items[0], o, e);
	if (status == RP_OK) {
		status = open_log(
			&l, (const char *const *)run->logs.items, run->logs.count, &told, o, e);
		if (status < 0)
			fail_wrap(e, "%s", run->name);
	}
	if (status == RP_OK) {
		sum->runs++;
		status = judge_ledger(r, t, run, &l, o, sum, e);
		ledger_release(&l);
	}
	run_release(&told);
	return status;
}

/* The verdict ---------------------------------------------------------------------------------- */

static void take_evidence(struct report *r, const struct sum *s, struct verdict_case *v)
{
	if (s->seams > 0 && s->exact == s->seams)
		v->exact = report_text(r, "%s of answer keys came again sample by sample, at %s",
			report_counted(r, s->proven, "step"),
			s->seams == 1
				? "the one resume"
				: report_text(r, "all %llu resumes", (unsigned long long)s->seams));
	if (s->fresh > 0)
		v->reshuffled = s->fresh_words;
	if (s->ledgers == 0)
		v->consistent = curves_evidence(r, s->resumes, s->matched, s->matched_steps);
	else if (s->seams == 0)
		v->consistent = report_text(r, "%s in %s, no resume",
			report_counted(r, s->samples, "sample"), report_counted(r, s->runs, "run"));
	else if (s->exact == 0)
		v->consistent = report_text(r,
			"nothing speaks against %s, and nothing proves %s exact",
			s->seams == 1
				? "the resume"
				: report_text(r, "the %s", report_counted(r, s->seams, "resume")),
			s->seams == 1 ? "it" : "any of them");
	else
		v->consistent = report_text(r,
			"%s of %s proven exact, nothing speaks against the others",
			report_number(r, (int64_t)s->exact), report_counted(r, s->seams, "resume"));
}

static void conclude_audit(struct report *r, const struct sum *s, const struct audit_options *o)
{
	struct verdict_case v = {0};

	/* Where loss logs are all there is, they are judged as `stitch` does. */
	if (s->ledgers == 0)
		r->failing = v.failing = SEVERITY_WARNING;
	take_evidence(r, s, &v);
	v.unreadable = s->empty;
	conclude(r, &v, &(struct policy_subject){.log = true}, &o->common);
	r->forecast = false;
}

int audit_paths(struct report *r, const char *const *paths, size_t count,
	const struct audit_options *o, struct error *e)
{
	struct runs runs = {0};
	struct sum sum = {0};
	int status = run_paths_sort(&runs, paths, count, &o->common.limits, e);
	struct tables t = {0};

	if (status == RP_OK)
		t = add_tables(r);
	for (size_t i = 0; i < runs.list.count && runs.list.count > 1; i++)
		runs.list.items[i].cell = short_name(r, &runs, runs.list.items[i].name);
	for (size_t i = 0; i < runs.list.count && status == RP_OK; i++)
		status = judge_run(r, &t, &runs.list.items[i], o, &sum, e);
	/* One run has nothing to stand beside. */
	if (t.runs && runs.list.count < 2)
		t.runs->data_only = true;
	if (status == RP_OK)
		conclude_audit(r, &sum, o);
	run_paths_release(&runs);
	report_finish(r);
	return status;
}

/* Rehearsals ----------------------------------------------------------------------------------- */

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
		cover_log(r, l);
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
	int status = open_told(&told, r, run, o, e);
	if (status == RP_OK)
		status = open_log(&l, paths, 2, &told, o, e);
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
