/* SPDX-License-Identifier: MIT */
/*
 * What is known of a framework: how to recognise its checkpoints, where their parts are, what must
 * differ or agree between ranks, what it does with the data on a resume. profiles.def lists them; a
 * profile sees names and decoded values, never bytes.
 */
#ifndef PROFILE_PROFILE_H
#define PROFILE_PROFILE_H

#include "profile/candidate.h"
#include "state/state.h"

struct collector;

/* What the framework does with the data when it resumes inside an epoch. */
enum position_kind {
	POSITION_UNKNOWN,    /* the script decides; nothing is known */
	POSITION_RESTARTS,   /* the epoch's data starts again from its first batch unless a loader
				state is saved */
	POSITION_RECOMPUTED, /* counted from the saved step; needs no state of its own */
};

/* How the same stream of two ranks must relate. */
enum ranks_relation {
	RANKS_FREE,
	RANKS_DIFFER,
	RANKS_AGREE,
};

/* A part that a whole checkpoint of this framework has. */
struct part {
	enum file_role role;
	const char *name;       /* how the framework calls it, for messages: "optimizer.pt" */
	bool with_weights_only; /* there even when only the model was saved */
};

struct profile {
	const char *name;    /* "transformers" */
	const char *title;   /* "Transformers Trainer" */
	const char *package; /* the Python package whose version a checkpoint gives, or NULL */
	/* How surely the named files are a checkpoint of this framework; 0: they are not. */
	unsigned (*recognise)(const struct candidate *c, const struct listing *l);
	/*
	 * How surely a decoded file is of this framework. Asked of the first file that can be read
	 * where the names tell no more than that some script saved something; NULL: the names tell.
	 */
	unsigned (*recognise_tree)(const struct document *d);
	/* What a member file is for, and its rank; FILE_OTHER files are not opened. */
	enum file_role (*classify)(const char *member, int32_t *rank);
	/* Take what one decoded file says. */
	void (*read)(struct collector *c, enum file_role role);
	/* Once all files are in: what follows from several of them. */
	void (*finish)(struct collector *c);

	bool fallback; /* takes what nobody knows, and gives way to a profile that knows the content
			*/
	/* Whether a number in a checkpoint's name is a step and does not count saves; NULL: it is.
	 */
	bool (*names_step)(const char *name);
	const char *launch_folder; /* each launch makes a folder of its own, "version_" and the next
				      number; or NULL */
	enum position_kind position;
	const char *position_note;   /* what the framework does on a resume, one clause */
	const char *position_remedy; /* what a user of it can do about a position that is not saved,
					or NULL */
	bool position_of_one_rank; /* a saved loader state is one rank's, and every rank loads it */
	const char *settings_note; /* what becomes of settings that differ from the checkpoint's, or
				      NULL */
	bool rng_per_rank;         /* every rank saves its streams */
	bool schedule_counts_steps; /* the schedule's last_epoch is the optimizer step */
	bool optimizer_counts_steps;
	bool picks_highest; /* a relaunch resumes from the highest number in a name */
	enum ranks_relation host_ranks, device_ranks;
	const char *const
		*streams; /* owners that it uses and should save, NULL-terminated; or NULL */
	const struct part *parts; /* ends with a NULL name; or NULL */
	enum file_role counted;   /* a resume is refused unless the script has as many objects as
				     files of this role */
};

extern const struct profile *const profiles[]; /* ends with NULL */

/* The surest profile for a candidate, or NULL, and how sure it is. */
unsigned profile_bits(
	const struct candidate *c, const struct listing *l, const struct profile **best);

/*
 * Read a checkpoint into its state. Broken files become findings and FILE_BROKEN rows; the state
 * holds what could be read. An error means that nothing could.
 */
int checkpoint_load(struct state *s, const struct candidate *c, const struct listing *l,
	const struct limits *limits, struct findings *sink, struct error *e);

#endif
