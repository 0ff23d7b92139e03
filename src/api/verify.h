/* SPDX-License-Identifier: MIT */
/* The commands as functions that fill a report; the tool and the public library both call them. */
#ifndef API_VERIFY_H
#define API_VERIFY_H

#include "audit/policy.h"
#include "base/error.h"
#include "base/limits.h"
#include "report/report.h"

struct verify_options {
	struct limits limits;
	const char *against;         /* an earlier checkpoint, or NULL */
	bool sha256;                 /* for a snapshot: SHA-256 beside XXH3 */
	const char *snapshot;        /* of the original that it should be a copy of, or NULL */
	const char *history;         /* the folder in which what is judged is kept, or NULL */
	unsigned history_keep;       /* how many checkpoints of a line */
	const char *run;             /* the run file, or NULL: the nearest one, if any */
	int64_t step;                /* the checkpoint of a root to judge, or -1 */
	bool quick;                  /* metadata only */
	unsigned threads;            /* 0: one per core */
	int64_t max_seconds;         /* begin nothing more after so long; -1: take what it takes */
	unsigned settle;             /* seconds; younger unfinished checkpoints are "not ready" */
	const struct policy *policy; /* of a gate; NULL: errors fail, nothing is required */
	const char *env;             /* prefix of the Python that will resume, or NULL */
	const char *env_default; /* the same, where neither `env` nor the policy names one; that it
				    holds no packages is no error */
	const char *const *with; /* "accelerate=1.10.1": versions that will resume; they go before
				    what is installed */
	size_t with_count;
};

struct verify_options verify_defaults(void);

/*
 * Judge a checkpoint, or the one of a root that a relaunch should use. RP_OK with a report,
 * whatever the verdict; an error when nothing could be judged (the report is then empty).
 */
int verify_path(
	struct report *r, const char *path, const struct verify_options *o, struct error *e);

/* How two checkpoints relate, stream by stream, counter by counter, tensor by tensor. */
int compare_paths(struct report *r, const char *earlier, const char *later,
	const struct verify_options *o, struct error *e);

/*
 * Write a snapshot of a checkpoint, or of the one of a root that verify would judge, to the file
 * `out`. The report says what is in it; where a root leaves open which one to take it has a verdict
 * instead. An error is about `out` where *unwritten is set, else about the checkpoint.
 */
int snapshot_path(struct report *r, const char *path, const char *out,
	const struct verify_options *o, bool *unwritten, struct error *e);

/* One screen of what a checkpoint holds. */
int show_path(struct report *r, const char *path, const struct verify_options *o, struct error *e);

#endif
