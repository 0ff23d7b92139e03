/* SPDX-License-Identifier: MIT */
/*
 * Which files under a path belong together as one checkpoint. A checkpoint is a folder, or one
 * file, or the files of a folder whose names carry one step number ("step_00040_rank1.pt"). Judged
 * by names and sizes only; nothing is opened but the few bytes that pointers hold.
 */
#ifndef PROFILE_CANDIDATE_H
#define PROFILE_CANDIDATE_H

#define HISTORY_FOLDER ".reprise" /* the folder of snapshots beside the checkpoints of a line */

#include "profile/in_name.h"
#include "state/listing.h"

struct profile;

struct candidate {
	const char *path; /* as a person would type it: root and name */
	const char *name; /* "checkpoint-30", "step_00040.pt" */
	const char *base; /* what the member paths are relative to, below the listing's root: "" or
			     "x/y" */
	const char *holder; /* the path of base, root included */
	const char *folder; /* the folder that it lies in, below the listing's root: runs are told
			       apart by it */
	uint32_t dir;       /* index of base in the listing */
	bool is_dir;        /* a folder is the checkpoint, rather than files in it */
	const struct profile *profile;
	uint32_t *files; /* indices into the listing */
	size_t file_count;
	int64_t step;     /* from the name, or -1 */
	int64_t place;    /* place in its series, from an epoch or a date in the name, or -1 */
	int64_t mtime_ns; /* newest of its files */
	uint64_t bytes;
	uint32_t ranks; /* folders of ranks in which its files lie, "rank0/step_5.pt"; or 0 */
	bool kept;      /* its file lies in a listing of its own: that of a history */
	bool snapshot;  /* the file is a snapshot of a checkpoint that need not be there any more */
	bool leftover;  /* its own name says that a save did not finish: "tmp-checkpoint-40" */
};

struct pointer {
	const char *file;   /* relative to the root: "latest" */
	const char *target; /* what it says, escaped by whoever shows it */
};

struct candidates {
	struct arena arena;
	ARRAY(struct candidate) list; /* by step, then by name */
	ARRAY(struct pointer) pointers;
	bool checkpoints; /* there are some that are no snapshots */
	bool root;        /* the path holds checkpoints rather than being one */
};

/* Find the checkpoints of a listing. RP_E_NOT_FOUND where there is none, with a word on what was
 * seen. */
int candidates_find(struct candidates *c, const struct listing *l, struct error *e);
void candidates_release(struct candidates *c);

/*
 * Add the snapshots of a history, which is listed apart. Folders in it stand for the folders below
 * the root in which the checkpoints lie. One that was found already, since the history lies below
 * the root, is told by its inode and not added again. False when memory ran out.
 */
bool candidates_add_kept(struct candidates *c, const struct listing *l, const struct listing *kept);

/* The path of a member file relative to its checkpoint. */
const char *candidate_member(const struct candidate *c, const struct listed *file);

#endif
