/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "api/run_paths.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "api/subject.h"
#include "base/packed.h"
#include "base/source.h"
#include "curve/curve.h"
#include "ledger/read.h"

#define RUNS_MAX 1000u
#define PATHS_MAX 100000u
#define PROBED_MAX 20000u       /* files of a folder that are looked into for logs */
#define CURVE_HEAD_BYTES 65536u /* by which loss logs are recognised */

/* 1 or 0; an error only where the system failed: what may not be read is none of ours. */
static int is_log_file(int dirfd, const char *path, struct error *e)
{
	struct source s;
	struct error own = ERROR_INIT;
	char *head = malloc(LEDGER_HEAD);
	size_t got = 0;
	bool log = false;

	if (!head)
		return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory to look into files");
	if (source_open(&s, dirfd, path, &own) == RP_OK) {
		if (source_read_some(&s, 0, head, LEDGER_HEAD, &got, &own) == RP_OK)
			log = ledger_recognise(head, got) != NULL;
		source_close(&s);
	}
	free(head);
	return error_of_system(&own) ? fail(e, own.status, own.offset, "%s", own.text) : log;
}

/* Weights are large, many, and no logs. */
static bool may_be_log(const struct listed *f)
{
	static const char *const others[] = {".pt", ".pth", ".bin", ".safetensors", ".distcp",
		".npy", ".npz", ".ckpt", ".pkl", ".model", ".png", ".py"};

	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		if (slice_ends(slice_of(f->name), slice_of(others[i])))
			return false;
	return f->regular && f->size > 0;
}

static int folder_has_log(const char *path, const struct limits *limits, struct error *e)
{
	struct listing l;
	size_t probed = 0;
	int found = 0, status = listing_open(&l, path, (unsigned)limits->dir_depth, limits, e);

	for (size_t i = 0; status == RP_OK && i < l.files.count && !found && probed < PROBED_MAX;
		i++) {
		if (!may_be_log(&l.files.items[i]))
			continue;
		probed++;
		found = is_log_file(l.dirfd, l.files.items[i].path, e);
	}
	listing_close(&l);
	return status < 0 ? status : found;
}

int run_paths_is_log(const char *path, const struct limits *limits, struct error *e)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return fail_os(e, errno, "cannot be opened");
	return S_ISDIR(st.st_mode) ? folder_has_log(path, limits, e)
				   : is_log_file(AT_FDCWD, path, e);
}

static struct run *new_run(struct runs *runs, const char *name)
{
	struct run *r = array_push(&runs->list, RUNS_MAX);

	if (r)
		r->name = name;
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

/* Whether the file is a log of losses, and none of samples. 1 or 0, or an error. */
static int is_curve_file(int dirfd, const char *path, struct error *e)
{
	struct source s;
	struct error own = ERROR_INIT;
	char *head = malloc(CURVE_HEAD_BYTES);
	size_t got = 0;
	bool curve = false;
	const char *slash = strrchr(path, '/');

	if (!head)
		return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory to look into files");
	if (source_open(&s, dirfd, path, &own) == RP_OK) {
		if (source_read_some(&s, 0, head, CURVE_HEAD_BYTES, &got, &own) == RP_OK)
			curve = !ledger_recognise(head, got) &&
				curve_recognise(slash ? slash + 1 : path, head, got) != NULL;
		source_close(&s);
	}
	free(head);
	return error_of_system(&own) ? fail(e, own.status, own.offset, "%s", own.text) : curve;
}

/* Whether a file of text holds losses: the console of any trainer may. */
static bool reads_as_curve(const char *path, const struct limits *limits)
{
	struct curve_options co = {.limits = limits};
	struct curve_log log = {0};
	struct error ignored = ERROR_INIT;
	char head[4096];
	size_t got = 0;
	struct source s;
	bool curve = false, text = false;

	if (source_open(&s, AT_FDCWD, path, &ignored) == RP_OK) {
		text = source_read_some(&s, 0, head, sizeof head, &got, &ignored) == RP_OK &&
		       got > 0 && !memchr(head, '\0', got);
		source_close(&s);
	}
	if (text && curve_open(&log, &path, 1, &co, &ignored) == RP_OK) {
		curve = log.points.count > 0;
		curve_release(&log);
	}
	return curve;
}

/* In a folder without any log that is known, what a script of one's own printed is the log. */
static bool add_outputs(struct report *r, struct run *run, const char *path,
	const struct listing *l, const struct limits *limits)
{
	size_t probed = 0;

	for (size_t i = 0; i < l->files.count && probed < PROBED_MAX; i++) {
		if (!may_be_log(&l->files.items[i]) || !curve_is_output(l->files.items[i].name))
			continue;
		probed++;
		const char *whole = report_text(r, "%s/%s", path, l->files.items[i].path);
		if (reads_as_curve(whole, limits) && !add_path(&run->curves, whole))
			return false;
	}
	return true;
}

/* Add the loss logs in a folder to a list. */
static int find_curves(struct report *r, struct run *run, const char *path,
	const struct limits *limits, struct error *e)
{
	struct listing l;
	size_t probed = 0, before = run->curves.count;
	int status = listing_open(&l, path, (unsigned)limits->dir_depth, limits, e);

	for (size_t i = 0; status == RP_OK && i < l.files.count && probed < PROBED_MAX; i++) {
		if (!may_be_log(&l.files.items[i]))
			continue;
		probed++;
		int curve = is_curve_file(l.dirfd, l.files.items[i].path, e);
		if (curve > 0 && !add_path(&run->curves,
					 report_text(r, "%s/%s", path, l.files.items[i].path)))
			curve = fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for paths");
		status = curve < 0 ? curve : RP_OK;
	}
	if (status == RP_OK && run->curves.count == before &&
		!add_outputs(r, run, path, &l, limits))
		status = fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for paths");
	listing_close(&l);
	return status < 0 ? fail_wrap(e, "%s", path) : RP_OK;
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

static bool is_checkpoint_folder(const char *path, const struct limits *limits)
{
	struct subject s = SUBJECT_INIT;
	struct error ignored = ERROR_INIT;
	bool one = subject_open(&s, path, limits, &ignored) == RP_OK && !s.candidates.root;

	subject_close(&s);
	return one;
}

/* Put one path where it belongs; loss logs in folders of their own wait in `rest`. */
static int sort_path(struct report *r, struct runs *runs, struct run *rest, const char *path,
	const struct limits *limits, struct error *e)
{
	struct stat st;
	int log = run_paths_is_log(path, limits, e);
	bool folder = stat(path, &st) == 0 && S_ISDIR(st.st_mode), ok;

	if (log < 0)
		return fail_wrap(e, "%s", path);
	if (log) {
		struct run *run = folder ? new_run(runs, path) : loose_run(runs, path);
		ok = run && add_path(&run->logs, path) &&
		     (!folder || add_path(&run->checkpoints, path));
		if (ok && folder && find_curves(r, run, path, limits, e) < 0)
			return e->status;
	} else if (folder) {
		struct run found = {.name = path};
		bool checkpoint = is_checkpoint_folder(path, limits);
		if (!checkpoint && find_curves(r, &found, path, limits, e) < 0)
			return e->status;
		ok = add_path(
			found.curves.count ? (void *)&rest->curves : (void *)&runs->checkpoints,
			path);
		array_release(&found.curves);
	} else {
		int curve = is_curve_file(AT_FDCWD, path, e);
		if (curve < 0)
			return fail_wrap(e, "%s", path);
		curve = curve || reads_as_curve(path, limits);
		struct run *run = curve ? loose_run(runs, path) : NULL;
		ok = curve ? run && add_path(&run->curves, path)
			   : add_path(&runs->checkpoints, path);
	}
	return ok ? RP_OK : fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for paths");
}

/* Folders of loss logs alone are the loose logs' own, and without such each is a run. */
static int place_rest(struct report *r, struct runs *runs, const struct run *rest,
	const struct limits *limits, struct error *e)
{
	for (size_t i = 0; i < rest->curves.count; i++) {
		const char *path = rest->curves.items[i];
		bool own = runs->loose == SIZE_MAX;
		struct run *run = own ? new_run(runs, path) : &runs->list.items[runs->loose];
		if (!run || !add_path(&run->checkpoints, path))
			return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for paths");
		if (find_curves(r, run, path, limits, e) < 0)
			return e->status;
	}
	return RP_OK;
}

/* Nothing that was given is a log: say so of the first path. */
static int no_log(const char *path, struct error *e)
{
	char head[64];
	size_t got = 0;
	struct source s;
	struct error ignored = ERROR_INIT;
	const char *packed = NULL;

	if (source_open(&s, AT_FDCWD, path, &ignored) == RP_OK) {
		if (source_read_some(&s, 0, head, sizeof head, &got, &ignored) == RP_OK)
			packed = packed_as((struct slice){head, got});
		source_close(&s);
	}
	if (packed)
		return fail(e, RP_E_UNSUPPORTED, ERROR_NO_OFFSET,
			"%s: is %s; a log is read as plain text in UTF-8", path, packed);
	return fail(e, RP_E_NOT_FOUND, ERROR_NO_OFFSET,
		"%s: no log is there, of samples or of losses; `reprise verify` judges checkpoints "
		"without one",
		path);
}

int run_paths_sort(struct runs *runs, struct report *r, const char *const *paths, size_t count,
	const struct limits *limits, struct error *e)
{
	struct run rest = {0};
	int status = RP_OK;

	runs->loose = SIZE_MAX;
	for (size_t i = 0; i < count && status == RP_OK; i++)
		status = sort_path(r, runs, &rest, paths[i], limits, e);
	if (status == RP_OK)
		status = place_rest(r, runs, &rest, limits, e);
	array_release(&rest.curves);
	if (status < 0)
		return status;
	if (runs->list.count == 0)
		return no_log(paths[0], e);
	if (runs->checkpoints.count > 0 && runs->list.count > 1)
		return fail(e, RP_E_ARGUMENT, ERROR_NO_OFFSET,
			"%s: to which of %zu runs does this checkpoint belong? Put it into the run's folder, "
			"or audit the runs one by one",
			runs->checkpoints.items[0], runs->list.count);
	for (size_t i = 0; i < runs->checkpoints.count; i++)
		if (!add_path(&runs->list.items[0].checkpoints, runs->checkpoints.items[i]))
			return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for paths");
	return RP_OK;
}

void run_paths_release(struct runs *runs)
{
	for (size_t i = 0; i < runs->list.count; i++) {
		array_release(&runs->list.items[i].logs);
		array_release(&runs->list.items[i].curves);
		array_release(&runs->list.items[i].checkpoints);
	}
	array_release(&runs->list);
	array_release(&runs->checkpoints);
}

bool run_paths_has_checkpoint(const char *path, const struct limits *limits)
{
	struct subject s = SUBJECT_INIT;
	struct error ignored = ERROR_INIT;
	struct stat st;
	bool found = false;

	/* A log that is named as a file has nothing beside it. */
	if (stat(path, &st) < 0 || !S_ISDIR(st.st_mode))
		return false;
	if (subject_open(&s, path, limits, &ignored) == RP_OK)
		for (size_t i = 0; i < s.candidates.list.count; i++)
			found = found || s.candidates.list.items[i].profile;
	subject_close(&s);
	return found;
}
