/* SPDX-License-Identifier: MIT */
/* From findings and coverage to a report's verdict, through the policy where there is one. */
#ifndef API_CONCLUDE_H
#define API_CONCLUDE_H

#include "api/verify.h"

/*
 * Apply the policy, come to the verdict and take it into the report; findings and coverage are the
 * report's own. `subject` says what was judged.
 */
void conclude(struct report *r, struct verdict_case *v, const struct policy_subject *subject,
	const struct verify_options *o);

#endif
