/* SPDX-License-Identifier: MIT */
/*
 * Which checkpoint of a root a relaunch should use, in this order: the step that the user names,
 * the framework's pointer, lineage (a checkpoint saved later with a lower number kills the higher
 * ones), the highest number. Where that leaves two, none is chosen.
 */
#ifndef API_CHOOSE_H
#define API_CHOOSE_H

#include "api/subject.h"
#include "api/verify.h"
#include "audit/trail.h"

struct choice {
	size_t chosen;   /* index in the candidates, SIZE_MAX: none */
	size_t previous; /* its predecessor of the same line, SIZE_MAX: none */
	size_t older;    /* the predecessor's predecessor, likewise */
	ARRAY(struct trail_point)
	line; /* all that lead to it, oldest first, and itself; named
		 by the subject. Empty where it is the only one */
};

/*
 * Choose, and tell why of every candidate: a table of them, findings about pointers and rejected
 * ones. For a path that is one checkpoint this is immediate. Where none is chosen the report has
 * its verdict. Release the choice also after an error.
 */
int choose_checkpoint(struct choice *choice, struct report *r, struct subject *s,
	const struct verify_options *o, struct error *e);

void choice_release(struct choice *choice);

/*
 * After the chosen one was read: whether a path that is one checkpoint is of the step that --step
 * names. A root has looked for it; this one would be judged whatever its step is.
 */
int choice_of_step(const struct subject *s, const struct verify_options *o, struct error *e);

/* After the verdict: one in which something is wrong is not called the one to resume from. */
void choice_judged(struct report *r);

#endif
