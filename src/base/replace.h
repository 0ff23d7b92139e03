/* SPDX-License-Identifier: MIT */
/* Writing a whole file or none: what others read is the old text or the new one, never half of it.
 */
#ifndef BASE_REPLACE_H
#define BASE_REPLACE_H

#include <stdbool.h>

#include "base/error.h"
#include "base/slice.h"

/* A file in the making: it stands beside the one that it will replace, under a name of its own. */
struct replacement {
	int folder, fd;   /* -1: none; fd is open for reading and writing */
	const char *name; /* within the folder; part of the path that was given */
	char temporary[64];
	bool keep; /* what has the name already is not replaced */
};

/* Make a file that can take the name `path`, which must outlive it. Nothing is open after an error.
 */
int replacement_open(struct replacement *r, const char *path, struct error *e);

/* Write behind what was written. */
int replacement_write(struct replacement *r, struct slice text, struct error *e);

/* Bring it to the disk and give it its name. It is closed whatever comes of it; after an error what
 * was there before is untouched and nothing is left beside it. */
int replacement_commit(struct replacement *r, struct error *e);

/* Give it up: nothing is left of it. What is not open is left alone. */
void replacement_abandon(struct replacement *r);

/*
 * Write `text` to a file beside `path`, bring it to the disk and give it the name `path`. What is
 * there and is no regular file (a device, a folder) is left alone and an error; so is the old file
 * after one.
 */
int file_replace(const char *path, struct slice text, struct error *e);

/* The same where nothing is called `path` yet; else an RP_E_IO with EEXIST, and what is there
 * stays. */
int file_create(const char *path, struct slice text, struct error *e);

/*
 * Whether a file may take the place of what is at `path`: nothing, an empty file, or one whose
 * first bytes say that it is of the same kind. Else RP_E_ARGUMENT: a file of a checkpoint, or a
 * log, that was named by mistake would be lost.
 */
int replace_allowed(const char *path, bool (*is_own)(struct slice head), struct error *e);

#endif
