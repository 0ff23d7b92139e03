/* SPDX-License-Identifier: MIT */
/* Drafting a run file from what a checkpoint holds. */
#ifndef API_INIT_H
#define API_INIT_H

#include "api/verify.h"
#include "base/strbuf.h"

struct init_draft {
	const char *checkpoint; /* what was looked into */
	const char *place;      /* where verify and the others would find the file */
	unsigned found, open;   /* keys with a value, and keys left to fill in */
};

/*
 * Draft the run file for a checkpoint, or for the one of a root that a relaunch would use. What was
 * found stands in it with where it is from; the rest stands in comments, to be filled in. The text
 * is a run file that reads. `r` takes what else there is to say and keeps the draft's texts.
 */
int init_path(struct init_draft *draft, struct strbuf *text, struct report *r, const char *path,
	const struct verify_options *o, struct error *e);

#endif
