/* SPDX-License-Identifier: MIT */
/*
 * What lies under a path, before anything is opened: names, sizes, times. Symbolic links to files
 * are followed, links to folders are not. Sorted naturally (step-9 before step-10), so that
 * everything after it is the same whatever the order of the file system.
 */
#ifndef STATE_LISTING_H
#define STATE_LISTING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/array.h"
#include "base/error.h"
#include "base/limits.h"

struct listed {
	const char *path; /* relative to the listing's root: "checkpoint-30/rng_state_0.pth" */
	const char *name; /* the last part of path */
	uint32_t dir;     /* index of the folder it lies in; 0 is the root */
	uint64_t size;
	int64_t mtime_ns;
	uint64_t inode;
	bool regular; /* false: a pipe, socket, device or dangling link */
	bool symlink;
};

struct listed_dir {
	const char *path; /* relative to the root, "" for the root itself */
	const char *name;
	uint32_t parent; /* index; the root is its own parent */
	int64_t mtime_ns;
};

struct listing {
	struct arena arena;
	const char *root; /* as given */
	bool single;      /* root is a file: one entry, whose path is its name */
	int dirfd;        /* open folder that the paths are relative to */
	ARRAY(struct listed) files;
	ARRAY(struct listed_dir) dirs;
	size_t skipped; /* folders that could not be read whole or were too deep */
};

/* List `path`, a file or a folder, down to `depth` levels of folders. What failed is empty and
 * closed; closing it again does nothing. */
int listing_open(struct listing *l, const char *path, unsigned depth, const struct limits *limits,
	struct error *e);
void listing_close(struct listing *l);

/* The file called `path` (relative to the root), or NULL. O(log files). */
const struct listed *listing_find(const struct listing *l, const char *path);

#endif
