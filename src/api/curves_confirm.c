/* SPDX-License-Identifier: MIT */
/* Confirming a relaunch by its first steps. */
#include <errno.h>
#include <math.h>
#include <sys/stat.h>

#include "api/conclude.h"
#include "api/curves_parts.h"
#include "api/run_paths.h"
#include "audit/case.h"
#include "base/place.h"

#define CONFIRM_POINTS 10u /* of a relaunch, with fewer of which it is too early to give up */

/* The newest attempt that stands in the file or folder, if not there alone, or CURVE_NONE. */
static uint32_t attempt_in(const struct curves_opened *v, const char *path)
{
	const struct stitch *s = &v->curve.stitch;
	uint32_t newest = CURVE_NONE;

	for (size_t i = 0; i < s->parts.count; i++) {
		const struct stitch_part *p = &s->parts.items[i];
		if ((newest == CURVE_NONE || p->attempt > newest) &&
			place_within(v->log.files.items[p->file].path, path))
			newest = p->attempt;
	}
	return newest;
}

/* NaN in the new attempt. */
static void tell_not_finite(struct report *r, const struct case_curve *c, uint32_t attempt)
{
	for (size_t i = 0; i < c->spikes.list.count; i++) {
		const struct spike *k = &c->spikes.list.items[i];
		if (k->class != SPIKE_NOT_FINITE || k->attempt != attempt)
			continue;
		struct finding *f = finding_add(&r->findings, FINDING_L107,
			"the loss is not a number from step %s on", curves_at(r, &c->stitch, k->x));
		f->place.step_first = llround(k->x);
	}
}

/* There is nothing to judge, for now or at all. */
static void conclude_nothing(
	struct report *r, const char *why, bool waits, const struct curves_options *o)
{
	struct verdict_case verdict = {.unreadable = why};

	conclude(r, &verdict, &(struct policy_subject){.log = true}, &o->common);
	r->forecast = false;
	if (waits && r->exit == EXIT_STATUS_UNDECIDED)
		r->exit = EXIT_STATUS_NOT_READY;
}

/* The new log has no attempt that could be compared: none yet, or all in another unit. */
static void confirm_nothing(struct report *r, const struct curves_opened *v, const char *confirm,
	const struct curves_options *o)
{
	for (size_t i = 0; i < v->log.series.count; i++) {
		const struct curve_series *s = &v->log.series.items[i];
		if (s->role != CURVE_LOSS || s->unit == v->curve.stitch.axis ||
			s->points < CONFIRM_POINTS ||
			!place_within(v->log.files.items[s->file].path, confirm))
			continue;
		conclude_nothing(r,
			report_text(r, "the new log counts %s, and the logs are compared by %s",
				curve_unit_name(s->unit), curve_unit_name(v->curve.stitch.axis)),
			false, o);
		return;
	}
	conclude_nothing(r, "no step is in the new log yet", true, o);
}

/* An event file that has just been begun may hold a part of a record. */
static bool may_become_log(const struct curve_found *f)
{
	return slice_find(slice_of(f->path), SLICE("tfevents")) != SIZE_MAX && !f->packed;
}

/* A file that is no log and never will be is an error; an empty one, or a text, waits. */
static int check_new_log(const char *confirm, const struct curves_options *o, struct error *e)
{
	struct curve_options co = run_paths_options(&o->common.limits);
	struct curve_files f;
	struct stat st;
	int status = RP_OK;

	if (stat(confirm, &st) < 0 || S_ISDIR(st.st_mode) ||
		(S_ISREG(st.st_mode) && st.st_size == 0))
		return RP_OK;
	if (curve_find(&f, &confirm, 1, &co, e) < 0)
		return fail_wrap(e, "%s", confirm);
	const struct curve_found *found = f.list.count ? f.list.items : NULL;
	if (found && found->kind == CURVE_FOUND_OTHER)
		status = fail(e, RP_E_UNSUPPORTED, ERROR_NO_OFFSET,
			"%s: is a sample log; --confirm wants the log of the loss", confirm);
	else if (found && found->kind == CURVE_FOUND_LEFT && !may_become_log(found))
		status = fail(e, RP_E_UNSUPPORTED, ERROR_NO_OFFSET, "%s: %s", confirm, found->what);
	curve_files_release(&f);
	return status;
}

static void confirm_attempt(
	struct report *r, struct curves_opened *v, uint32_t attempt, const struct curves_options *o)
{
	const struct curve_resume *resume = curve_resume_of(&v->curve, attempt);
	struct verdict_case verdict = {0};
	struct strbuf b;

	/* The rule sees this resume alone. */
	struct case_curve one = v->curve;
	one.resumes.items =
		resume ? &v->curve.resumes.items[resume - v->curve.resumes.items] : NULL;
	one.resumes.count = resume != NULL;
	struct audit_case c = {.curve = &one, .limits = &o->common.limits};
	rule_curve_resume.run(&c, &r->findings, &r->coverage);
	tell_not_finite(r, &v->curve, attempt);
	strbuf_init(&b, 1000);
	if (resume)
		curve_resume_words(&v->curve, resume, &b);
	else
		strbuf_add_text(&b, "the new log goes on from no earlier attempt");
	bool matches = resume && resume->check.outcome == RESUME_MATCHES;
	verdict.consistent = report_text(r, "attempt %u: %s",
		v->curve.stitch.attempts.items[attempt].number, strbuf_text(&b));
	verdict.unreadable = matches ? NULL : verdict.consistent;
	bool early = !resume || resume->check.outcome < RESUME_MATCHES;
	bool waits = early && v->curve.stitch.attempts.items[attempt].points < CONFIRM_POINTS;
	r->findings.lost += b.no_memory;
	strbuf_release(&b);
	conclude(r, &verdict, &(struct policy_subject){.log = true}, &o->common);
	r->forecast = false;
	if (waits && r->exit == EXIT_STATUS_UNDECIDED)
		r->exit = EXIT_STATUS_NOT_READY;
}

int curves_confirm(struct report *r, const char *path, const char *confirm,
	const struct curves_options *o, struct error *e)
{
	const char *const paths[] = {path, confirm};
	struct curves_opened v;
	struct stat st;

	if (stat(confirm, &st) < 0 && errno == ENOENT) {
		report_add_input(r, confirm, "run", "loss log");
		conclude_nothing(r, "the new log is not there yet", true, o);
		report_finish(r);
		return RP_OK;
	}
	if (check_new_log(confirm, o, e) < 0 || curves_open(&v, r, paths, 2, o, e) < 0)
		return e->status;
	report_add_input(r, confirm, "run", "loss log");
	uint32_t attempt = attempt_in(&v, confirm);
	if (attempt == CURVE_NONE)
		confirm_nothing(r, &v, confirm, o);
	else
		confirm_attempt(r, &v, attempt, o);
	curves_close(&v);
	report_finish(r);
	return RP_OK;
}
