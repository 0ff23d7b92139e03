/* SPDX-License-Identifier: MIT */
#include "api/run.h"

#include <errno.h>
#include <stdlib.h>

#define FOLDERS_ABOVE 2u /* of a file: its own and the one above that */

const char *path_above(struct report *r, const char *path)
{
	size_t n = strlen(path);

	while (n > 1 && path[n - 1] == '/')
		n--;
	if (n == 1 && *path == '/')
		return NULL;
	size_t name = n;
	while (name > 0 && path[name - 1] != '/')
		name--;
	struct slice last = {path + name, n - name};
	if (slice_is(last, ".") || slice_is(last, ".."))
		return slice_is((struct slice){path, n}, ".")
			       ? ".."
			       : report_text(r, "%.*s/..", (int)n, path);
	while (name > 1 && path[name - 1] == '/')
		name--;
	return name == 0 ? "." : report_text(r, "%.*s", (int)name, path);
}

/* How many folders there are from the checkpoint's up to the last one that is looked into. */
static unsigned folders_above(const struct subject *s)
{
	unsigned count = FOLDERS_ABOVE + s->chosen->is_dir;

	if (!s->candidates.root)
		return count;
	const char *below = s->chosen->path + strlen(s->listing.root);
	while (*below == '/')
		below++;
	for (; *below; below++)
		count += *below == '/';
	return count;
}

static const char *in_folder(struct report *r, const char *folder)
{
	size_t n = strlen(folder);
	bool slash = n > 0 && folder[n - 1] == '/';

	return slice_is(slice_of(folder), ".")
		       ? RUN_FILE_NAME
		       : report_text(r, "%s%s" RUN_FILE_NAME, folder, slash ? "" : "/");
}

static int read_file(struct run_in_use *run, struct report *r, const char *path, struct error *e)
{
	int status = run_file_read(&run->file, path, e);

	run->found = status == RP_OK;
	if (run->found)
		report_add_input(r, path, "run file", "");
	return status;
}

/* Read the named file, or the first one in a folder and those above it, `left` folders in all. */
static int open_nearest(struct run_in_use *run, struct report *r, const char *named,
	const char *path, bool is_dir, unsigned left, struct error *e)
{
	*run = (struct run_in_use){0};
	if (named) {
		int status = read_file(run, r, named, e);
		return status < 0 ? fail_wrap(e, "--run %s", named) : status;
	}
	const char *folder = is_dir ? path : path_above(r, path);
	for (; folder && left > 0; left--) {
		const char *file = in_folder(r, folder);
		int status = read_file(run, r, file, e);
		if (status == RP_OK)
			return RP_OK;
		if (e->os_error != ENOENT && e->os_error != ENOTDIR)
			return fail_wrap(e, "%s", file);
		run_file_release(&run->file);
		*e = ERROR_INIT;
		folder = path_above(r, folder);
	}
	return RP_OK;
}

int run_open(struct run_in_use *run, struct report *r, const char *named, const struct subject *s,
	struct error *e)
{
	bool dir = !named && s->chosen->is_dir;

	return open_nearest(run, r, named, named ? NULL : s->chosen->path, dir,
		named ? 0 : folders_above(s), e);
}

int run_open_beside(struct run_in_use *run, struct report *r, const char *named, const char *path,
	bool is_dir, struct error *e)
{
	return open_nearest(run, r, named, path, is_dir, FOLDERS_ABOVE + is_dir, e);
}

void run_tell(const struct run_in_use *run, struct subject *s)
{
	if (run->found)
		run_file_tell(&run->file, &s->state);
}

const struct run_file *run_file_of(const struct run_in_use *run)
{
	return run->found ? &run->file : NULL;
}

void run_release(struct run_in_use *run)
{
	run_file_release(&run->file);
	run->found = false;
}

const char *run_place(struct report *r, const struct subject *s)
{
	const char *folder = s->candidates.root ? s->listing.root : path_above(r, s->listing.root);

	return in_folder(r, folder ? folder : "/");
}
