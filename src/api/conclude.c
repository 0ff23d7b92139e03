/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "api/conclude.h"

#include <time.h>

/* What the policy did to findings: nothing that was graded or accepted is hidden. */
static void tell_policy(struct report *r, const struct policy *p)
{
	static const char *const columns[] = {"code", "effect", "reason"};
	struct report_table *t =
		report_add_table(r, "policy", report_text(r, "policy %s", p->name), columns, 3);

	for (int code = 0; code < FINDING_COUNT; code++) {
		const struct policy_acceptance *a = &p->accepted[code];
		const char *name = finding_rows[code].code;
		bool found = r->findings.of_code[code] > 0;
		if (p->grades[code].set) {
			const char *cells[] = {name,
				report_text(r, "graded %s%s",
					severity_name(p->grades[code].severity),
					found ? "" : ", not found"),
				NULL};
			report_add_row(r, t, found ? TONE_PLAIN : TONE_DIM, cells);
		}
		if (!a->reason)
			continue;
		const char *effect =
			a->expired ? report_text(r, "no longer accepted since %s passed", a->until)
			: a->until ? report_text(r, "accepted until %s%s", a->until,
					     found ? "" : ", not found")
			: found    ? "accepted"
				   : "accepted, not found";
		const char *cells[] = {name, effect, a->reason};
		report_add_row(r, t,
			a->expired ? TONE_BAD
			: found    ? TONE_WARNING
				   : TONE_DIM,
			cells);
	}
}

void conclude(struct report *r, struct verdict_case *v, const struct policy_subject *subject,
	const struct verify_options *o)
{
	struct requirement wanted[RULE_COUNT];

	v->findings = &r->findings;
	v->coverage = &r->coverage;
	if (o->policy) {
		policy_apply(o->policy, v, subject, wanted);
		tell_policy(r, o->policy);
		r->policy = report_text(r, "%s", o->policy->name);
		r->failing = v->failing;
	}
	struct verdict verdict = verdict_of(v);
	report_take_verdict(r, &verdict);
	r->forecast = true;
}

bool conclude_waiting(struct report *r, struct finding *f, int64_t mtime_ns, unsigned settle)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	int64_t age = now.tv_sec - mtime_ns / 1000000000;
	if (age < 0 || age >= (int64_t)settle)
		return false;
	f->not_ready = true;
	f->cause = findings_text(&r->findings,
		"its newest file is %lld s old: the save may still be going on", (long long)age);
	return true;
}
