/* SPDX-License-Identifier: MIT */
/*
 * Which run file goes with a checkpoint: the one that the user names, else the nearest reprise.run.
 * It is looked for in the folder that is the checkpoint, in the one that holds it and in the one
 * above that; below a root, from the checkpoint up to the root and the folder above the root.
 */
#ifndef API_RUN_H
#define API_RUN_H

#include "api/subject.h"
#include "report/report.h"
#include "state/run_file.h"

/* A run file in use; zeroed: none. */
struct run_in_use {
	struct run_file file;
	bool found;
};

/*
 * Read the run file `named`, or where that is NULL the one that goes with the subject's chosen
 * checkpoint, and say in the report's inputs which it is. That there is none is no error. Release
 * it also after an error.
 */
int run_open(struct run_in_use *run, struct report *r, const char *named, const struct subject *s,
	struct error *e);

/* The same for a sample log, or a folder of them, at `path`. */
int run_open_beside(struct run_in_use *run, struct report *r, const char *named, const char *path,
	bool is_dir, struct error *e);

/* Tell a state what the run file says; nothing where there is none. */
void run_tell(const struct run_in_use *run, struct subject *s);

/* The file, or NULL. */
const struct run_file *run_file_of(const struct run_in_use *run);

void run_release(struct run_in_use *run);

/* The folder above a path, as text: "out" of "out/checkpoint-30", "." of "out", ".." of "."; NULL
 * above "/". */
const char *path_above(struct report *r, const char *path);

/* Where a run file for the subject is best put: beside the checkpoint, or in the root. */
const char *run_place(struct report *r, const struct subject *s);

#endif
