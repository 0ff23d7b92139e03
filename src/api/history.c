/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "api/history.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/run.h"
#include "api/take_snapshot.h"
#include "base/replace.h"
#include "base/text.h"
#include "state/snapshot.h"

#define REPORT_EXTENSION ".report.json"
#define REPORT_MAX ((size_t)256 << 20)
#define ENTRIES_MAX 1000000u

static bool is_folder(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static const char *join(struct report *r, const char *folder, const char *name)
{
	size_t n = strlen(folder);

	if (!*name)
		return folder;
	return report_text(r, "%s%s%s", folder, n > 0 && folder[n - 1] == '/' ? "" : "/", name);
}

/* The history beside a checkpoint that was named by itself. */
static const char *beside(struct report *r, const struct subject *s)
{
	const char *above = path_above(r, s->listing.root);
	return above ? join(r, above, HISTORY_FOLDER) : NULL;
}

int history_add(
	struct subject *s, struct report *r, const struct verify_options *o, struct error *e)
{
	const char *dir = o->history;
	struct error own = ERROR_INIT;
	struct stat st;

	if (!dir && !s->candidates.root)
		dir = beside(r, s);
	if (!dir)
		return RP_OK;
	if (stat(dir, &st) < 0)
		return o->history && errno != ENOENT ? fail_os(e, errno, "--history %s", dir)
						     : RP_OK;
	if (!S_ISDIR(st.st_mode))
		return o->history ? fail(e, RP_E_ARGUMENT, ERROR_NO_OFFSET,
					    "--history %s is no folder", dir)
				  : RP_OK;
	int status = listing_open(&s->kept, dir, (unsigned)o->limits.dir_depth, &o->limits, &own);
	/* Only one that was asked for must be readable. */
	if (status < 0 && o->history) {
		*e = own;
		return fail_wrap(e, "--history %s", dir);
	}
	if (status == RP_OK && !candidates_add_kept(&s->candidates, &s->listing, &s->kept))
		return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for a history");
	return RP_OK;
}

/* Where the chosen checkpoint's history lies or is to lie, or NULL where none is kept. */
static const char *place_of(
	struct report *r, const struct subject *s, const struct verify_options *o)
{
	const char *folder = s->chosen->folder;

	if (o->history)
		return join(r, o->history, folder);
	const char *dir = s->candidates.root
				  ? join(r, join(r, s->listing.root, folder), HISTORY_FOLDER)
				  : beside(r, s);
	return dir && is_folder(dir) ? dir : NULL;
}

/* Make a folder and those above it. */
static int make_folders(const char *path, struct error *e)
{
	char *copy = strdup(path);

	if (!copy)
		return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for its path");
	for (char *p = copy; p && e->status == RP_OK;) {
		p = strchr(p + 1, '/');
		if (p)
			*p = '\0';
		if (mkdir(copy, 0777) < 0 && errno != EEXIST)
			fail_os(e, errno, "the folder cannot be made");
		if (p)
			*p = '/';
	}
	free(copy);
	return e->status;
}

/* ---- what is kept -------------------------------------------------------------------------------
 */

static int write_report(struct report *r, const char *path, struct error *e)
{
	struct strbuf b;

	strbuf_init(&b, REPORT_MAX);
	report_render_json(r, &b);
	int status = b.failed ? fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for the report")
			      : file_replace(path, strbuf_slice(&b), e);
	strbuf_release(&b);
	return status;
}

/* Whether the snapshot that is there is of the same files and says more: what is in their bytes. */
static bool says_more(const char *path, const struct state *s, const struct limits *limits)
{
	struct findings ignored;
	struct state kept;
	struct error e = ERROR_INIT;

	findings_init(&ignored);
	state_init(&kept, limits);
	bool more = access(path, R_OK) == 0 &&
		    snapshot_read(&kept, AT_FDCWD, path, path, limits, &ignored, &e) == RP_OK &&
		    kept.bytes_read && kept.mtime_ns == s->mtime_ns &&
		    kept.files.count == s->files.count;
	state_release(&kept);
	findings_release(&ignored);
	return more;
}

static int write_snapshot(struct subject *s, const struct history_entry *entry, const char *path,
	const struct verify_options *o, struct error *e)
{
	/* When it was judged is when it was written last. */
	if (!entry->bytes && says_more(path, &s->state, &o->limits))
		return utimensat(AT_FDCWD, path, NULL, 0) < 0
			       ? fail_os(e, errno, "its time cannot be set")
			       : RP_OK;
	/* What the user told is not the checkpoint's. */
	run_file_untell(&s->state);
	bool unwritten;
	return snapshot_keep(s, entry->own, entry->bytes, path, o, &unwritten, e);
}

/* ---- what is dropped ----------------------------------------------------------------------------
 */

/* A checkpoint in the history, by its name. */
struct kept {
	char *name;
	int64_t written_ns; /* the last of its files */
};

typedef ARRAY(struct kept) kept_list;

static void note(kept_list *list, int folder, const char *file)
{
	static const char *const endings[] = {SNAPSHOT_EXTENSION, REPORT_EXTENSION};
	struct slice name = slice_of(file);
	struct stat st;
	size_t i = 0;

	while (i < 2 && !(name.n > strlen(endings[i]) && slice_ends(name, slice_of(endings[i]))))
		i++;
	if (i == 2 || fstatat(folder, file, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
		return;
	struct kept *k = array_push(list, ENTRIES_MAX);
	if (!k)
		return;
	k->name = strndup(file, name.n - strlen(endings[i]));
	k->written_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
	if (!k->name)
		list->count--;
}

static int compare_names(const void *pa, const void *pb)
{
	const struct kept *a = pa, *b = pb;
	return strcmp(a->name, b->name);
}

/* The newest first. */
static int compare_times(const void *pa, const void *pb)
{
	const struct kept *a = pa, *b = pb;

	if (a->written_ns != b->written_ns)
		return a->written_ns > b->written_ns ? -1 : 1;
	return strcmp(a->name, b->name);
}

/* A snapshot and its report are one entry. */
static void join_names(kept_list *list)
{
	size_t count = 0;

	if (list->count > 1)
		qsort(list->items, list->count, sizeof *list->items, compare_names);
	for (size_t i = 0; i < list->count; i++) {
		struct kept *k = &list->items[i], *last = count ? &list->items[count - 1] : NULL;
		if (!last || strcmp(last->name, k->name) != 0) {
			list->items[count++] = *k;
			continue;
		}
		if (k->written_ns > last->written_ns)
			last->written_ns = k->written_ns;
		free(k->name);
	}
	list->count = count;
}

static void drop(int folder, const char *name)
{
	static const char *const endings[] = {SNAPSHOT_EXTENSION, REPORT_EXTENSION};

	for (size_t i = 0; i < 2; i++) {
		char file[NAME_MAX + 1];
		if (snprintf(file, sizeof file, "%s%s", name, endings[i]) < (int)sizeof file)
			unlinkat(folder, file, 0);
	}
}

/* Another gate may do the same at the same time: what is gone already is no trouble. */
static void prune(const char *dir, unsigned keep)
{
	int folder = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *stream = folder < 0 ? NULL : fdopendir(folder);
	const struct dirent *entry;
	kept_list list = {0};

	if (!stream) {
		if (folder >= 0)
			close(folder);
		return;
	}
	while ((entry = readdir(stream)))
		note(&list, folder, entry->d_name);
	join_names(&list);
	if (list.count > 1)
		qsort(list.items, list.count, sizeof *list.items, compare_times);
	for (size_t i = 0; i < list.count; i++) {
		if (i >= keep)
			drop(folder, list.items[i].name);
		free(list.items[i].name);
	}
	array_release(&list);
	closedir(stream);
}

void history_store(struct report *r, struct subject *s, const struct history_entry *entry,
	const struct verify_options *o)
{
	const char *dir = s->state.snapshot ? NULL : place_of(r, s, o);
	struct error e = ERROR_INIT;

	if (!dir)
		return;
	const char *base = join(r, dir, s->chosen->name);
	int status = make_folders(dir, &e);
	if (status == RP_OK)
		status = write_report(r, report_text(r, "%s" REPORT_EXTENSION, base), &e);
	if (status == RP_OK && entry->whole)
		status = write_snapshot(
			s, entry, report_text(r, "%s" SNAPSHOT_EXTENSION, base), o, &e);
	if (status == RP_OK)
		prune(dir, o->history_keep);
	else
		r->unkept = report_text(r, "it is not kept in %s: %s", dir, e.text);
}
