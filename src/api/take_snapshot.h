/* SPDX-License-Identifier: MIT */
/* Writing the snapshot of a checkpoint that was read. */
#ifndef API_TAKE_SNAPSHOT_H
#define API_TAKE_SNAPSHOT_H

#include "api/subject.h"
#include "api/verify.h"

/*
 * Write it to a file, with what the rules see of the checkpoint alone. `own` are the findings that
 * were recorded as it was read, `bytes` the totals of the pass over it, or NULL.
 * An error is about `out` where *unwritten is set, else about the checkpoint.
 */
int snapshot_keep(struct subject *s, const struct findings *own, const struct byte_totals *bytes,
	const char *out, const struct verify_options *o, bool *unwritten, struct error *e);

#endif
