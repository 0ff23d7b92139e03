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

/*
 * A finding about a save whose newest file is of that time: younger than `settle` seconds, it may
 * still be going on, and the finding waits. False where it is older, or lies in the future.
 */
bool conclude_waiting(struct report *r, struct finding *f, int64_t mtime_ns, unsigned settle);

#endif
