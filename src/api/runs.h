/* SPDX-License-Identifier: MIT */
/* `reprise audit`: everything that sample logs, and the checkpoints beside them, say of runs. */
#ifndef API_RUNS_H
#define API_RUNS_H

#include "api/verify.h"
#include "audit/seams.h"

struct audit_options {
	struct verify_options common; /* limits, threads, policy */
	/* From which steps attempts resumed, where the log does not say. */
	const struct lineage_told *told;
	size_t told_count;
	bool rollback; /* name the newest complete checkpoint before the first sign of trouble */
};

/*
 * Audit runs. Loose log files, of samples or of losses, make one run; each folder with logs is one
 * of its own, but a folder of loss logs alone belongs to the loose ones where there are some; and
 * checkpoints belong to the run beside which they lie, else to the only one. RP_OK with a report,
 * whatever the verdict; an error when nothing could be judged.
 */
int audit_paths(struct report *r, const char *const *paths, size_t count,
	const struct audit_options *o, struct error *e);

/*
 * Hold a rehearsal, the log of the first samples that a launch would read, against the run: what
 * would the resume be? The run's own faults are not judged again.
 */
int audit_rehearsal(struct report *r, const char *run, const char *rehearsal,
	const struct audit_options *o, struct error *e);

#endif
