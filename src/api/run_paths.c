/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "api/run_paths.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "api/subject.h"
#include "ledger/read.h"

#define RUNS_MAX 1000u
#define PATHS_MAX 100000u

static int no_memory(struct error *e)
{
	return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for paths");
}

struct curve_options run_paths_options(const struct limits *limits)
{
	return (struct curve_options){.limits = limits, .other = ledger_recognise};
}

int run_paths_look(
	const char *path, const struct limits *limits, struct paths_hold *hold, struct error *e)
{
	struct curve_options o = run_paths_options(limits);
	struct curve_files f;

	*hold = (struct paths_hold){0};
	if (curve_find(&f, &path, 1, &o, e) < 0)
		return e->status;
	*hold = (struct paths_hold){f.operands.items[0].others > 0, f.operands.items[0].logs > 0};
	curve_files_release(&f);
	return RP_OK;
}

static struct run *new_run(struct runs *runs, const char *name)
{
	struct run *r = array_push(&runs->list, RUNS_MAX);

	if (r)
		*r = (struct run){.name = name, .files = &runs->files};
	return r;
}

static bool add_path(void *list_, const char *path)
{
	ARRAY(const char *) *list = list_;
	const char **slot = array_push(list, PATHS_MAX);

	if (slot)
		*slot = path;
	return slot != NULL;
}

static bool add_operand(void *list_, uint32_t operand)
{
	ARRAY(uint32_t) *list = list_;
	uint32_t *slot = array_push(list, PATHS_MAX);

	if (slot)
		*slot = operand;
	return slot != NULL;
}

/* The run of what is no folder: all of that is one. */
static struct run *loose_run(struct runs *runs, const char *name)
{
	if (runs->loose == SIZE_MAX) {
		runs->loose = runs->list.count;
		return new_run(runs, name);
	}
	return &runs->list.items[runs->loose];
}

/* 1 or 0; an error only where the system failed: what may not be read is none. */
static int is_checkpoint_folder(const char *path, const struct limits *limits, struct error *e)
{
	struct subject s = SUBJECT_INIT;
	struct error own = ERROR_INIT;
	bool one = subject_open(&s, path, limits, &own) == RP_OK && !s.candidates.root;

	subject_close(&s);
	if (!error_of_system(&own))
		return one;
	*e = own;
	return fail_wrap(e, "%s", path);
}

/* Operands that wait until it is known what there is beside them. */
struct waiting {
	ARRAY(uint32_t) folders;     /* of loss logs and no sample logs */
	ARRAY(uint32_t) checkpoints; /* that hold a loss log */
};

static bool place_file(struct runs *runs, uint32_t operand, const struct curve_operand *o)
{
	struct run *run = o->others || o->logs ? loose_run(runs, o->path) : NULL;

	if (o->others)
		return run && add_path(&run->logs, o->path);
	return o->logs ? run && add_operand(&run->curves, operand)
		       : add_path(&runs->checkpoints, o->path);
}

static bool place_folder(struct runs *runs, struct waiting *w, uint32_t operand,
	const struct curve_operand *o, bool checkpoint)
{
	if (o->others) {
		struct run *run = new_run(runs, o->path);
		return run && add_path(&run->logs, o->path) && add_path(&run->folders, o->path) &&
		       (!o->logs || add_operand(&run->curves, operand));
	}
	if (!checkpoint)
		return o->logs ? add_operand(&w->folders, operand)
			       : add_path(&runs->checkpoints, o->path);
	return add_path(&runs->checkpoints, o->path) &&
	       (!o->logs || add_operand(&w->checkpoints, operand));
}

/* Put what lies at one path where it belongs. */
static int sort_operand(struct runs *runs, struct waiting *w, uint32_t operand,
	const struct limits *limits, struct error *e)
{
	const struct curve_operand *o = &runs->files.operands.items[operand];
	int checkpoint = o->folder && !o->others ? is_checkpoint_folder(o->path, limits, e) : 0;

	if (checkpoint < 0)
		return e->status;
	bool ok = o->folder ? place_folder(runs, w, operand, o, checkpoint)
			    : place_file(runs, operand, o);
	return ok ? RP_OK : no_memory(e);
}

/*
 * Folders of loss logs alone are the loose logs' own, and without such each is a run. Checkpoints
 * that hold the log so far are the run where there is nothing else.
 */
static bool place_waiting(struct runs *runs, const struct waiting *w)
{
	bool own = runs->loose == SIZE_MAX;

	for (size_t i = 0; i < w->folders.count; i++) {
		const char *path = runs->files.operands.items[w->folders.items[i]].path;
		struct run *run = own ? new_run(runs, path) : &runs->list.items[runs->loose];
		if (!run || !add_path(&run->folders, path) ||
			!add_operand(&run->curves, w->folders.items[i]))
			return false;
	}
	if (runs->list.count > 0)
		return true;
	for (size_t i = 0; i < w->checkpoints.count; i++) {
		uint32_t operand = w->checkpoints.items[i];
		struct run *run = loose_run(runs, runs->files.operands.items[operand].path);
		if (!run || !add_operand(&run->curves, operand))
			return false;
	}
	return true;
}

/* Nothing that was given is a log: say so of the first path, and what may have been meant. */
static int no_log(const struct curve_files *f, struct error *e)
{
	const struct curve_found *left = NULL;

	for (size_t i = 0; i < f->list.count && !left; i++)
		if (f->list.items[i].kind == CURVE_FOUND_LEFT)
			left = &f->list.items[i];
	if (left && left->packed)
		return fail(e, RP_E_UNSUPPORTED, ERROR_NO_OFFSET, "%s: %s", left->path, left->what);
	return fail(e, RP_E_NOT_FOUND, ERROR_NO_OFFSET,
		"%s: no log is there, of samples or of losses; `reprise verify` judges checkpoints "
		"without one",
		f->operands.items[0].path);
}

static int sort_all(struct runs *runs, const struct limits *limits, struct error *e)
{
	struct waiting w = {0};
	int status = RP_OK;

	for (uint32_t i = 0; i < runs->files.operands.count && status == RP_OK; i++)
		if (!runs->files.operands.items[i].again)
			status = sort_operand(runs, &w, i, limits, e);
	if (status == RP_OK && !place_waiting(runs, &w))
		status = no_memory(e);
	array_release(&w.folders);
	array_release(&w.checkpoints);
	return status;
}

int run_paths_sort(struct runs *runs, const char *const *paths, size_t count,
	const struct limits *limits, struct error *e)
{
	struct curve_options o = run_paths_options(limits);

	runs->loose = SIZE_MAX;
	if (curve_find(&runs->files, paths, count, &o, e) < 0)
		return count == 1 ? fail_wrap(e, "%s", paths[0]) : e->status;
	if (sort_all(runs, limits, e) < 0)
		return e->status;
	if (runs->list.count == 0)
		return no_log(&runs->files, e);
	if (runs->checkpoints.count > 0 && runs->list.count > 1)
		return fail(e, RP_E_ARGUMENT, ERROR_NO_OFFSET,
			"%s: to which of %zu runs does this checkpoint belong? Put it into the run's folder, "
			"or audit the runs one by one",
			runs->checkpoints.items[0], runs->list.count);
	for (size_t i = 0; i < runs->checkpoints.count; i++)
		if (!add_path(&runs->list.items[0].checkpoints, runs->checkpoints.items[i]))
			return no_memory(e);
	return RP_OK;
}

void run_paths_release(struct runs *runs)
{
	for (size_t i = 0; i < runs->list.count; i++) {
		array_release(&runs->list.items[i].logs);
		array_release(&runs->list.items[i].curves);
		array_release(&runs->list.items[i].folders);
		array_release(&runs->list.items[i].checkpoints);
	}
	array_release(&runs->list);
	array_release(&runs->checkpoints);
	curve_files_release(&runs->files);
}

int run_paths_has_checkpoint(const char *path, const struct limits *limits, struct error *e)
{
	struct subject s = SUBJECT_INIT;
	struct stat st;
	int found = 0;

	/* A log that is named as a file has nothing beside it. */
	if (stat(path, &st) < 0)
		return fail_os(e, errno, "cannot be opened");
	if (!S_ISDIR(st.st_mode))
		return 0;
	int status = subject_open(&s, path, limits, e);
	for (size_t i = 0; status == RP_OK && i < s.candidates.list.count; i++)
		found = found || s.candidates.list.items[i].profile;
	subject_close(&s);
	if (status == RP_OK || status == RP_E_NOT_FOUND) {
		*e = ERROR_INIT;
		return found;
	}
	return status;
}
