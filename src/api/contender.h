/* SPDX-License-Identifier: MIT */
/*
 * The checkpoints of a root as contenders for the one that a relaunch should use: what a look at
 * their metadata says of each, their order, and which are dead. Looking costs reading their
 * metadata; all that follows is O(n log n), but for checkpoints that carry logs and were saved in
 * one moment, whose logs are held against each other.
 */
#ifndef API_CONTENDER_H
#define API_CONTENDER_H

#include "api/subject.h"
#include "api/verify.h"
#include "audit/trail.h"

enum standing {
	STANDING_LIVE,
	STANDING_REJECTED,
	STANDING_DEAD,
	STANDING_EARLIER, /* of an earlier launch of the same experiment */
	STANDING_UNCLEAR, /* another branch, and times do not tell which is newer */
};

struct contender {
	enum standing standing;
	int64_t step;  /* inside, else from the name, else -1 */
	int64_t epoch; /* inside, else -1 */
	int64_t order; /* what they are ordered by: steps, or epochs, or the places in their names;
			  or -1 */
	int64_t mtime_ns; /* of its newest file; of a snapshot's checkpoint, not of the snapshot */
	int64_t kept_ns;  /* of a snapshot: when it was written, which is when it was judged */
	bool beside;      /* a snapshot: it may be a predecessor, and nothing resumes from it */
	bool resumable;   /* has an optimizer's state */
	bool open;        /* its step may start again with each epoch, by its name */
	bool unfinished;  /* rejected for what a save that is going on looks like */
	const char *reason;       /* of a rejection; lives as long as the report */
	struct trail_point point; /* what its counters say; named as the candidate is */
	struct log_point *log;
	size_t log_count;
	const struct profile *profile; /* what its files turned out to be */
	size_t by;                     /* the candidate that killed it */
};

struct contenders {
	struct contender *items; /* one for each candidate, in their order */
	size_t count;
	size_t *by_order; /* their indices by `order` */
	size_t *by_step;  /* by step, then as they come */
};

/* Look at all candidates of a subject, order them, and find those that are dead. Release them also
 * after an error. */
int contenders_find(struct contenders *k, struct report *r, struct subject *s,
	const struct verify_options *o, struct error *e);

/* What follows from the looks alone: their order, and which are dead. False when memory ran out. */
bool contenders_settle(struct contenders *k, const struct candidates *c);

void contenders_release(struct contenders *k);

/* Whether `later` logged other values than `earlier` at a step that both cover: another branch. */
bool contender_logs_differ(const struct contender *earlier, const struct contender *later);

#endif
