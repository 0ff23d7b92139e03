/* SPDX-License-Identifier: MIT */
/*
 * Snapshots: a checkpoint's state as a file of its own, small, that outlives the checkpoint. All
 * tables of struct state are in it, so that a state that was read from a snapshot is one that rules
 * and commands cannot tell from the checkpoint's own, but for its files: they are not there to be
 * read. The layout is snapshot_columns.def and reprise-snapshot(5).
 */
#ifndef STATE_SNAPSHOT_H
#define STATE_SNAPSHOT_H

#include "base/limits.h"
#include "finding/finding.h"
#include "state/state.h"

/* How their names should end: among checkpoints they are found by it. */
#define SNAPSHOT_EXTENSION ".rps"

/* What a snapshot holds beside the state. */
struct snapshot_about {
	const char *name;                /* of the checkpoint: "checkpoint-30" */
	const struct findings *findings; /* that were recorded as its files were read, sorted */
	const struct coverage *coverage; /* what was looked at, and what was not */
};

/* Write a snapshot to `path`, the whole file or none. The same state makes the same bytes. */
int snapshot_write(const struct state *s, const struct snapshot_about *about, const char *path,
	struct error *e);

/*
 * SHA-256 over the SHA-256 of all tensors, in the order of their names, with types and shapes: one
 * number for what the checkpoint holds, however it is sharded. False where they were not taken.
 */
bool snapshot_root(const struct state *s, char text[SHA256_TEXT]);

/* Whether the first bytes of a file say that it is one. */
bool snapshot_begins(struct slice head);

/*
 * Read a snapshot into an initialised state. Its path is the name of the checkpoint that it was
 * taken of, s->snapshot is `shown`, s->kind is its profile's name, and s->profile is left for the
 * caller, who knows profiles. Findings that it holds go to the sink. RP_E_FORMAT for what is
 * damaged; nothing of it is believed before it is checked.
 */
int snapshot_read(struct state *s, int dirfd, const char *path, const char *shown,
	const struct limits *limits, struct findings *sink, struct error *e);

#endif
