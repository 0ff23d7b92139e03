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

struct choice {
	size_t chosen;   /* index in the candidates, SIZE_MAX: none */
	size_t previous; /* its predecessor of the same line, SIZE_MAX: none */
	size_t older;    /* the predecessor's predecessor, likewise */
};

/*
 * Choose, and tell why of every candidate: a table of them, findings about pointers and rejected
 * ones. For a path that is one checkpoint this is immediate. Where none is chosen the report has
 * its verdict.
 */
int choose_checkpoint(struct choice *choice, struct report *r, struct subject *s,
	const struct verify_options *o, struct error *e);

/*
 * After the chosen one was read: whether a path that is one checkpoint is of the step that --step
 * names. A root has looked for it; this one would be judged whatever its step is.
 */
int choice_of_step(const struct subject *s, const struct verify_options *o, struct error *e);

/* After the verdict: one in which something is wrong is not called the one to resume from. */
void choice_judged(struct report *r);

#endif
