/* SPDX-License-Identifier: MIT */
/* Policies: what is read makes sense, and can be applied to findings. */
#define _GNU_SOURCE
#include "audit/policy.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "audit/environment.h"
#include "fuzz/fuzz.h"

#define TODAY 20000 /* days since 1970: in 2024 */

static void check_policy(const struct policy *p)
{
	MUST(p->failing <= SEVERITY_ERROR);
	MUST(!p->expects_parameters ||
		(p->parameters_least >= 0 && p->parameters_least <= p->parameters_most));
	for (int code = 0; code < FINDING_COUNT; code++) {
		const struct policy_acceptance *a = &p->accepted[code];
		MUST(!p->grades[code].set || p->grades[code].severity <= SEVERITY_ERROR);
		MUST(!a->reason || (*a->reason && a->line > 0));
		MUST(!a->expired || a->until);
	}
	for (size_t i = 0; i < p->with.count; i++)
		MUST(!environment_contradiction(
			p->with.items, p->with.count, slice_of(p->with.items[i])));
}

static void check_applied(const struct policy *p)
{
	struct requirement wanted[RULE_COUNT];
	struct findings findings;
	struct coverage coverage;
	struct verdict_case v = {.findings = &findings, .coverage = &coverage};

	findings_init(&findings);
	coverage_init(&coverage);
	for (int code = 0; code < FINDING_COUNT; code++)
		finding_add(&findings, (enum finding_code)code, "something");
	policy_apply(p, &v, &(struct policy_subject){.has_previous = true}, wanted);
	MUST(v.required_count <= RULE_COUNT);
	for (size_t i = 0; i < findings.list.count; i++) {
		const struct finding *f = &findings.list.items[i];
		MUST(!f->accepted || p->accepted[f->code].reason);
	}
	struct verdict verdict = verdict_of(&v);
	MUST(verdict.evidence != NULL);
	findings_release(&findings);
	coverage_release(&coverage);
}

int fuzz_policy(const uint8_t *data, size_t size)
{
	struct policy p;
	struct error e = ERROR_INIT;
	char path[40];
	int fd = memfd_create("policy", MFD_CLOEXEC);

	MUST(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	int status = policy_load(&p, path, TODAY, &e);
	if (status < 0) {
		fuzz_check_error(&e, status);
	} else {
		check_policy(&p);
		check_applied(&p);
	}
	policy_release(&p);
	close(fd);
	return 0;
}
