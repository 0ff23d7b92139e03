/* SPDX-License-Identifier: MIT */
/*
 * What a gate asks of a checkpoint: from which severity on findings fail, what must have been
 * checked, which findings weigh more or less than usual, which are accepted and why, and what is
 * expected. Three policies are built in; a file starts from one of them. A policy stands between
 * audit_run() and verdict_of().
 */
#ifndef AUDIT_POLICY_H
#define AUDIT_POLICY_H

#include "audit/environment.h"
#include "audit/verdict.h"
#include "base/arena.h"
#include "base/array.h"
#include "base/error.h"
#include "base/ini.h"
#include "state/state.h"

enum rule_id {
#define RULE(id) RULE_##id,
#include "audit/rules.def"
#undef RULE
	RULE_COUNT
};

enum policy_need {
	NEED_NONE,
	NEED_RUN,
	NEED_SOME,
	NEED_WHOLE,
	NEED_NAMED, /* whole, and no excuse: the policy's own file asks for it */
};

struct policy_grade {
	bool set;
	enum severity severity;
};

struct policy_acceptance {
	const char *reason; /* NULL: the code is not accepted */
	const char *until;  /* "2027-01-31", the last day on which it holds, or NULL */
	bool expired;
	unsigned line;
};

struct policy {
	struct arena arena;
	const char *name; /* "full", or the file as it was named */
	bool bytes;       /* read the tensors' bytes */
	enum severity failing;
	bool fail_said; /* by the file, so that it holds for loss logs too */
	enum policy_need needs[RULE_COUNT];
	struct policy_grade grades[FINDING_COUNT];
	struct policy_acceptance accepted[FINDING_COUNT];
	bool expects_parameters;
	int64_t parameters_least, parameters_most;
	const char *env;          /* prefix of the Python that will resume, or NULL */
	ARRAY(const char *) with; /* "accelerate=1.10.1": versions that will resume */
};

/*
 * The built-in policy of that name, or the policy in that file. `today` is in days since 1970-01-01
 * (UTC). RP_E_ARGUMENT for what makes no sense, with the line. Release it also after an error.
 */
int policy_load(struct policy *p, const char *name_or_file, int64_t today, struct error *e);
void policy_release(struct policy *p);

/* What lies before a verdict, beside the findings and the coverage in the verdict's case. */
struct policy_subject {
	struct state *state; /* the judged one, or NULL where none could be read */
	bool has_previous;
	bool log;    /* logs, and no checkpoint */
	bool curves; /* of them, loss logs alone; has_previous and first say then whether a resume
			was logged twice */
	bool bytes_late; /* not all bytes were read in the time that there was */
	bool first;      /* nothing earlier is in the root: none could be asked for */
};

/*
 * Grade and accept the case's findings, add those of expectations (which are neither graded nor
 * accepted), and set what fails and what is required. Of loss logs alone warnings fail unless the
 * policy's file says what does: a curve can say no more, since nothing in it is proof. `wanted` has
 * room for RULE_COUNT and must live until the verdict.
 */
void policy_apply(const struct policy *p, struct verdict_case *v,
	const struct policy_subject *subject, struct requirement *wanted);

/* The day of "2027-01-31" since 1970-01-01; false where that is no date. */
bool policy_parse_day(struct slice text, int64_t *day);

#endif
