/* SPDX-License-Identifier: MIT */
/* A path that a command was given: what lies there, the checkpoints in it, and one of them read. */
#ifndef API_SUBJECT_H
#define API_SUBJECT_H

#include "profile/profile.h"
#include "state/bytes.h"
#include "state/moments.h"

struct subject {
	struct listing listing;
	struct listing kept; /* of a history that was added, or zeroed */
	struct candidates candidates;
	const struct candidate *chosen; /* the one that was read, or NULL */
	struct state state;
};

/* One that was never opened and may be closed. */
#define SUBJECT_INIT ((struct subject){.listing = {.dirfd = -1}})

/* List a path and find its checkpoints. Nothing is opened yet. */
int subject_open(struct subject *s, const char *path, const struct limits *limits, struct error *e);

/* Where the files of one of its candidates are listed. */
const struct listing *subject_listing(const struct subject *s, const struct candidate *c);

/* Read one of its checkpoints; findings about its files go to `sink`. */
int subject_read(struct subject *s, const struct candidate *which, const struct limits *limits,
	struct findings *sink, struct error *e);

/* Open and read a path that must be one checkpoint; a root of several is an error that says so. */
int subject_open_one(struct subject *s, const char *path, const struct limits *limits,
	struct findings *sink, struct error *e);

/*
 * Look at the bytes of the checkpoint that was read, or at what a snapshot says of them. *known
 * tells whether totals hold: a snapshot may have been taken without.
 */
int subject_read_bytes(struct subject *s, unsigned threads, const struct deadline *deadline,
	struct byte_totals *totals, bool *known, struct error *e);

/*
 * Why a file of a state or its bytes could not be looked at, where that is no defect of the file;
 * NULL where all could. `totals` is of its bytes, or NULL where none were to be read.
 */
struct report;
const char *subject_unreadable(
	struct report *r, const struct state *s, const struct byte_totals *totals);

/* Digest its smaller files; of a snapshot, that was done. */
int subject_digest_files(struct subject *s, struct error *e);

/* Where the files of the checkpoint that was read are; of a snapshot, nowhere. */
struct state_place subject_place(const struct subject *s);

void subject_close(struct subject *s);

#endif
