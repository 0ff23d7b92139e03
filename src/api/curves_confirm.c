/* SPDX-License-Identifier: MIT */
/* Confirming a relaunch by its first steps. */
#include <math.h>

#include "api/conclude.h"
#include "api/curves_parts.h"
#include "audit/case.h"
#include "base/place.h"

#define CONFIRM_POINTS 10u /* of a relaunch, with fewer of which it is too early to give up */

/* The newest attempt that stands in the file or folder, or CURVE_NONE. */
static uint32_t attempt_in(const struct curves_opened *v, const char *path)
{
	for (uint32_t i = (uint32_t)v->curve.stitch.attempts.count; i-- > 0;) {
		uint32_t file = v->curve.stitch.attempts.items[i].file;
		if (place_within(v->log.files.items[file].path, path))
			return i;
	}
	return CURVE_NONE;
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

static void confirm_nothing_yet(struct report *r, const struct curves_options *o)
{
	struct verdict_case verdict = {.unreadable = "no step is in the new log yet"};

	conclude(r, &verdict, &(struct policy_subject){.log = true}, &o->common);
	r->forecast = false;
	if (r->exit == EXIT_STATUS_UNDECIDED)
		r->exit = EXIT_STATUS_NOT_READY;
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

	if (curves_open(&v, r, paths, 2, o, e) < 0)
		return e->status;
	report_add_input(r, confirm, "run", "loss log");
	uint32_t attempt = attempt_in(&v, confirm);
	if (attempt == CURVE_NONE)
		confirm_nothing_yet(r, o);
	else
		confirm_attempt(r, &v, attempt, o);
	curves_close(&v);
	report_finish(r);
	return RP_OK;
}
