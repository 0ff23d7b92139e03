/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "api/runs.h"

#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "api/conclude.h"
#include "api/run.h"
#include "api/runs_parts.h"
#include "audit/case.h"
#include "audit/data.h"
#include "base/text.h"
#include "ledger/read.h"

/* One run -------------------------------------------------------------------------------------- */

void runs_cover_log(struct report *r, const struct ledger *l)
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

/* What all runs amount to where nothing is wrong. */
struct sum {
	uint64_t seams, exact, fresh, proven, runs, epochs, samples;
	/* Runs with either; resumes in curves, those of which another attempt logged the same
	 * steps, and those that match it. */
	uint64_t ledgers, curves, resumes, comparable, matched, matched_steps;
	const char *fresh_words;
	const char *unread; /* what lies beside loss logs and could not be read */
	const char *empty;  /* why there is nothing to judge in a log */
};

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

static void add_up_curve(struct sum *sum, const struct case_curve *c)
{
	sum->curves++;
	for (size_t i = 0; i < c->resumes.count; i++) {
		const struct resume_check *k = &c->resumes.items[i].check;
		sum->resumes++;
		sum->comparable += k->outcome != RESUME_ALONE;
		sum->matched += k->outcome == RESUME_MATCHES;
		sum->matched_steps += k->outcome == RESUME_MATCHES ? k->loss.matched : 0;
	}
}

/* What of the run's logs is not in the curve. */
static const char *unread_words(struct report *r, const struct curve_log *l)
{
	const struct curve_left *first;
	uint64_t n = curves_unread(l, &first);

	if (n == 0)
		return NULL;
	return report_text(r, "not all logs could be read: %s: %s%s",
		findings_escaped(&r->findings, slice_of(first->path)), first->why,
		n == 1 ? "" : report_text(r, "; and %s more", report_number(r, (int64_t)n - 1)));
}

/* The rules, over whatever the run has; then what lies beside it. */
static int judge_case(struct report *r, const struct runs_tables *t, const struct run *run,
	struct audit_case *c, const struct audit_options *o, struct sum *sum, struct error *e)
{
	struct runs_curve curve;
	int status = runs_open_curve(&curve, r, run, c, o, e);

	if (status == RP_OK) {
		c->curve = curve.any ? &curve.curve : NULL;
		audit_run(c, &r->findings, &r->coverage);
		struct runs_beside b = {.r = r,
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
			if (!sum->unread)
				sum->unread = unread_words(r, &curve.log);
			runs_add_side(r, t->runs, run, &curve.curve);
			b.trouble = curve_first_trouble(&curve.curve);
		} else if (!c->ledger && !sum->empty) {
			sum->empty = report_text(r,
				"%s%sno loss, gradient norm or learning rate was found in the logs",
				run->cell ? run->name : "", run->cell ? ": " : "");
		}
		status = runs_find_doubts(&b, c) ? runs_add_checkpoints(&b, run, e)
						 : fail(e, RP_E_MEMORY, ERROR_NO_OFFSET,
							   "no memory for the resumes");
		if (status == RP_OK && o->rollback)
			runs_add_rollback(r, t->rollback, &b);
		array_release(&b.doubts);
	}
	runs_close_curve(&curve);
	return status;
}

static int judge_ledger(struct report *r, const struct runs_tables *t, const struct run *run,
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
		runs_cover_log(r, l);
		place_findings(r, run);
		sum->ledgers++;
		for (size_t i = 0; i < count; i++) {
			runs_add_lineage(r, t->lineage, run, &lines[i]);
			runs_add_totals(r, t->line, run, &lines[i]);
			add_up(sum, &lines[i], r);
		}
		runs_add_losses(r, t->log, run, l);
		if (!sum->empty)
			sum->empty = empty_words(r, run, l, lines, count);
	}
	for (size_t i = 0; i < opened; i++)
		case_line_close(&lines[i]);
	return status;
}

/* What the user told of the run whose logs these are. */
int runs_open_told(struct run_in_use *told, struct report *r, const char *log,
	const struct audit_options *o, struct error *e)
{
	struct stat st;
	bool folder = stat(log, &st) == 0 && S_ISDIR(st.st_mode);

	return run_open_beside(told, r, o->common.run, log, folder, e);
}

int runs_open_log(struct ledger *l, const char *const *paths, size_t count,
	const struct run_in_use *told, const struct audit_options *o, struct error *e)
{
	struct ledger_options lo = {.limits = &o->common.limits,
		.memory = o->common.limits.memory / 5 * 3,
		.run = run_file_of(told)};

	return ledger_open(l, paths, count, &lo, e);
}

static int judge_run(struct report *r, const struct runs_tables *t, const struct run *run,
	const struct audit_options *o, struct sum *sum, struct error *e)
{
	struct run_in_use told;
	struct ledger l;

	if (run->logs.count == 0) {
		struct audit_case c = {.limits = &o->common.limits};
		report_add_input(r, run->name, "run", "loss logs");
		int judged = judge_case(r, t, run, &c, o, sum, e);
		sum->runs++;
		place_findings(r, run);
		cover_not_checked(&r->coverage, "data-log", "the data", "no sample log is there");
		return judged;
	}
	for (size_t i = 0; i < run->logs.count; i++)
		report_add_input(r, run->logs.items[i], "run", "sample log");
	int status = runs_open_told(&told, r, run->logs.items[0], o, e);
	if (status == RP_OK) {
		status = runs_open_log(
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
	struct policy_subject subject = {.log = true};
	struct verdict_case v = {.unreadable = s->empty};

	/* Where loss logs are all there is, they are judged as `stitch` does. */
	if (s->ledgers == 0) {
		subject.curves = true;
		subject.has_previous = s->comparable > 0;
		subject.first = s->comparable == 0;
		r->failing = v.failing = SEVERITY_WARNING;
		if (o->common.policy && !v.unreadable)
			v.unreadable = s->unread;
	}
	take_evidence(r, s, &v);
	conclude(r, &v, &subject, &o->common);
	r->forecast = false;
}

int audit_paths(struct report *r, const char *const *paths, size_t count,
	const struct audit_options *o, struct error *e)
{
	struct runs runs = {0};
	struct sum sum = {0};
	int status = run_paths_sort(&runs, paths, count, &o->common.limits, e);
	struct runs_tables t = {0};

	if (status == RP_OK)
		t = runs_add_tables(r);
	for (size_t i = 0; i < runs.list.count && runs.list.count > 1; i++)
		runs.list.items[i].cell = runs_short_name(r, &runs, runs.list.items[i].name);
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
