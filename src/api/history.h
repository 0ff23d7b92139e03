/* SPDX-License-Identifier: MIT */
/*
 * What was judged, kept for when the cluster has deleted it: the checkpoint's snapshot, NAME.rps,
 * and the report, NAME.report.json. It lies in the folder that --history names, with the folders of
 * a root in it; else in .reprise beside the checkpoints, where that folder is. Nothing is written
 * where none of the two asks for it. Snapshots in it stand for checkpoints that are gone, as
 * predecessors.
 */
#ifndef API_HISTORY_H
#define API_HISTORY_H

#include "api/subject.h"
#include "api/verify.h"

#define HISTORY_KEEP 20u /* checkpoints kept by default */

/*
 * Add what the history holds to the candidates of a subject that was opened; below a root, .reprise
 * was found with the rest. A history that is not there yet is empty.
 */
int history_add(
	struct subject *s, struct report *r, const struct verify_options *o, struct error *e);

/* What is to be kept of the checkpoint that a subject has read. */
struct history_entry {
	bool whole;                 /* the checkpoint may stand for itself: keep a snapshot of it */
	const struct findings *own; /* that were recorded as it was read */
	const struct byte_totals *bytes; /* of the pass over it, or NULL */
};

/*
 * Keep the subject's chosen checkpoint and the finished report, each as a whole file that replaces
 * the one of before, and drop what was judged longest ago beyond o->history_keep. Where that fails
 * the report says so (r->unkept); the verdict stays. Costs a second pass over Adam's moments where
 * bytes were read.
 */
void history_store(struct report *r, struct subject *s, const struct history_entry *entry,
	const struct verify_options *o);

#endif
