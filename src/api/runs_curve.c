/* SPDX-License-Identifier: MIT */
/* The loss curve of a run. */
#include <math.h>
#include <stdlib.h>

#include "api/curves_parts.h"
#include "api/runs_parts.h"
#include "base/text.h"

#define STEPS_MAX 100000u /* of checkpoints that lie beside loss logs */

static bool add_step(void *list_, int64_t step)
{
	ARRAY(double) *list = list_;
	double *slot = step == LEDGER_NO_STEP ? NULL : array_push(list, STEPS_MAX);

	if (slot)
		*slot = (double)step;
	return slot || step == LEDGER_NO_STEP;
}

/* What the sample log knows of resumes and checkpoints. */
static bool ask_ledger(struct runs_curve *c, const struct audit_case *a)
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

/* How many samples an attempt consumed since it went on, at the steps at which that bends. */
static bool add_knots(struct runs_curve *c, const struct ledger *l, const struct ledger_attempt *a)
{
	double samples = 0;

	for (uint32_t k = 0; k < a->steps; k++) {
		const struct ledger_step *s = &l->steps.items[a->first + k];
		samples += s->n;
		if (k + 1 < a->steps && s[1].n == s->n && s[1].step == s->step + 1)
			continue;
		struct consumed_knot *knot = array_push(&c->knots, SIZE_MAX);
		if (!knot)
			return false;
		*knot = (struct consumed_knot){(double)s->step, samples};
	}
	return true;
}

/* The samples of all attempts of which the log holds every step since they went on. */
static bool count_samples(struct runs_curve *c, const struct audit_case *a)
{
	for (size_t i = 0; a->lineage && i < a->lineage->attempts.count; i++) {
		const struct lineage_attempt *n = &a->lineage->attempts.items[i];
		const struct ledger_attempt *b = &a->ledger->attempts.items[i];
		size_t first = c->knots.count;
		if (!n->member || b->steps == 0 || n->from_step == LEDGER_NO_STEP || n->gap > 0)
			continue;
		struct stitch_amounts *slot =
			add_knots(c, a->ledger, b) ? array_push(&c->amounts, SIZE_MAX) : NULL;
		if (!slot)
			return false;
		/* The knots may move until all are there. */
		*slot = (struct stitch_amounts){
			.from = (double)n->from_step, .n = c->knots.count - first};
	}
	size_t at = 0;
	for (size_t i = 0; i < c->amounts.count; i++) {
		c->amounts.items[i].list = c->knots.items + at;
		at += c->amounts.items[i].n;
	}
	return true;
}

/* What the user tells of attempts is of those of the sample log, where there is one. */
static int stitch_curve(struct runs_curve *c, const struct audit_case *a,
	const struct audit_options *o, struct error *e)
{
	size_t n = a->ledger ? 0 : o->told_count;
	struct stitch_told *told = calloc(n + 1, sizeof *told);

	if (!told)
		return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for the curve");
	for (size_t i = 0; i < n; i++)
		told[i] = (struct stitch_told){o->told[i].attempt, (double)o->told[i].step};
	struct stitch_options so = {.told = told,
		.told_count = n,
		.saves = c->saves.items,
		.save_count = c->saves.count,
		.resumes = c->resumes.items,
		.resume_count = c->resumes.count,
		.amounts = c->amounts.items,
		.amount_count = c->amounts.count,
		.first = NAN,
		.last = NAN};
	int status = case_curve_open(&c->curve, &c->log, &so, a, e);
	free(told);
	return status;
}

int runs_open_curve(struct runs_curve *c, struct report *r, const struct run *run,
	const struct audit_case *a, const struct audit_options *o, struct error *e)
{
	struct curve_options co = run_paths_options(&o->common.limits);
	int status;

	*c = (struct runs_curve){0};
	if (run->curves.count > 0)
		status = curve_read(
			&c->log, run->files, run->curves.items, run->curves.count, &co, e);
	else
		status = curve_of_ledger(&c->log, a->ledger, &o->common.limits, e);
	if (status < 0)
		return fail_wrap(e, "%s", run->name);
	if (c->log.points.count == 0)
		return RP_OK;
	const struct limits *limits = &o->common.limits;
	if (!ask_ledger(c, a) || !count_samples(c, a) ||
		!curves_add_saves(&c->saves, run->folders.items, run->folders.count, limits) ||
		!curves_add_saves(
			&c->saves, run->checkpoints.items, run->checkpoints.count, limits))
		return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for the curve");
	status = stitch_curve(c, a, o, e);
	c->any = status == RP_OK && c->curve.stitch.tracks.count > 0;
	for (size_t i = 0; c->any && run->curves.count > 0 && i < c->log.files.count; i++)
		report_add_input(r, c->log.files.items[i].path, "log", "loss log");
	return status;
}

void runs_close_curve(struct runs_curve *c)
{
	case_curve_close(&c->curve);
	curve_release(&c->log);
	array_release(&c->resumes);
	array_release(&c->saves);
	array_release(&c->knots);
	array_release(&c->amounts);
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
void runs_add_side(
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
