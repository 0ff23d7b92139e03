/* SPDX-License-Identifier: MIT */
/*
 * The verdict: what findings and coverage amount to, as one word, the fact that proves it, and an
 * exit status. Only failing findings choose among the failing words, and what was required but not
 * seen is never passing.
 */
#ifndef AUDIT_VERDICT_H
#define AUDIT_VERDICT_H

#include <stdbool.h>
#include <stddef.h>

#include "finding/finding.h"

/* The exit statuses of every command. The first of 5, 2, 1, 4, 3, 0 that applies. */
enum exit_status {
#define STATUS(id, number, when) EXIT_STATUS_##id = number,
#include "audit/statuses.def"
#undef STATUS
};

struct requirement {
	const char *rule;
	bool some; /* partly is enough; else in full */
};

/*
 * What a verdict is made from. Zeroed, with the two sinks set, it asks for the plain case: errors
 * fail, nothing is required. Texts are borrowed.
 */
struct verdict_case {
	struct findings *findings; /* sorted, and texts are added to it */
	const struct coverage *coverage;

	/* From this severity on findings fail; SEVERITY_OK (zero) stands for the default, ERROR. */
	enum severity failing;

	/* Rules that must have run. One that left no coverage at all did not run. */
	const struct requirement *required;
	size_t required_count;

	/* What could not be looked at (an error, not a finding), or NULL. */
	const char *unreadable;

	/*
	 * What a sound outcome is, with its evidence: the first that is not NULL is taken.
	 * `inexact` says what an exact resume would need and how much its absence costs.
	 */
	const char *inexact, *reshuffled, *consistent, *exact;

	/* Where all of them are NULL the outcome is CONSISTENT, and the evidence says so in
	 * general. */
};

struct verdict {
	enum verdict_word word;
	const char *evidence;           /* lives as long as the findings and the case's texts */
	const struct finding *deciding; /* the finding that chose the word, or NULL */
	enum exit_status exit;
};

/* Sorts the findings; the outcome does not depend on the order in which they were added. */
struct verdict verdict_of(const struct verdict_case *c);

/*
 * Whether a finding fails at this severity (SEVERITY_OK: the default). Unfinished writing does not,
 * and neither does what a policy accepts.
 */
bool verdict_fails(const struct finding *f, enum severity failing);

#endif
