/* SPDX-License-Identifier: MIT */
/* Which of the paths given to `audit` are logs, of samples or of losses, which are checkpoints, and
 * which of them are one run. */
#ifndef API_RUN_PATHS_H
#define API_RUN_PATHS_H

#include "base/array.h"
#include "base/error.h"
#include "base/limits.h"
#include "curve/find.h"

struct run {
	const char *name;         /* as given */
	const char *cell;         /* a shorter name for tables, or NULL where it is the only one */
	ARRAY(const char *) logs; /* of samples */
	ARRAY(uint32_t) curves;   /* indices of the paths at which there are loss logs */
	const struct curve_files *files; /* what was found at the paths */
	ARRAY(const char *) folders;     /* of logs, in which checkpoints may lie */
	ARRAY(const char *) checkpoints;
};

struct runs {
	ARRAY(struct run) list;
	ARRAY(const char *) checkpoints; /* that lie beside no run */
	size_t loose;                    /* index of the run of what is no folder; SIZE_MAX: none */
	struct curve_files files;        /* what was found at the paths */
};

/* For looking for loss logs: sample logs are none. */
struct curve_options run_paths_options(const struct limits *limits);

/*
 * Sort the paths into runs. They must outlive the runs. An error where there is no log at all, or
 * it is not clear to which run a checkpoint belongs; release the runs then too.
 */
int run_paths_sort(struct runs *runs, const char *const *paths, size_t count,
	const struct limits *limits, struct error *e);
void run_paths_release(struct runs *runs);

/* Which logs there are at a path. */
struct paths_hold {
	bool samples, losses;
};
int run_paths_look(
	const char *path, const struct limits *limits, struct paths_hold *hold, struct error *e);

/* Whether a folder holds a checkpoint beside its logs: 1, 0, or an error where that cannot be told.
 */
int run_paths_has_checkpoint(const char *path, const struct limits *limits, struct error *e);

#endif
