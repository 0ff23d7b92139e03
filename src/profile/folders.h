/* SPDX-License-Identifier: MIT */
/* Which files and folders lie in which folder of a listing, so that each is looked up without
 * passing over all. */
#ifndef PROFILE_FOLDERS_H
#define PROFILE_FOLDERS_H

#include "base/arena.h"
#include "state/listing.h"

struct folders {
	const struct listing *l;
	uint32_t *start;        /* of each folder's files in `files`, and behind the last */
	uint32_t *files;        /* indices of all files, folder by folder */
	uint32_t *child, *next; /* a folder's first folder, and the next beside it; 0: none */
	uint32_t *out;          /* room for one list of files */
};

/* Everything is in the arena, and the listing is borrowed. False without memory. O(files +
 * folders). */
bool folders_make(struct folders *t, struct arena *arena, const struct listing *l);

/* Put the files that lie in a folder into t->out, behind the `count` that are there; how many there
 * are then. */
size_t folders_files_of(const struct folders *t, uint32_t dir, size_t count);

/* Files of a folder, or all below it, into t->out, in the order of the listing: by path. Returns
 * how many. */
size_t folders_files_below(const struct folders *t, uint32_t dir, bool deep);

#endif
