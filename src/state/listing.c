/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "state/listing.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"

static int64_t mtime_ns(const struct stat *st)
{
	return (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
}

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash && slash[1] ? slash + 1 : path;
}

static int no_memory(struct error *e)
{
	return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for a list of files");
}

static int add_file(struct listing *l, const char *path, uint32_t dir, const struct stat *st,
	bool link, const struct limits *limits, struct error *e)
{
	if (l->files.count >= limits->files)
		return fail(e, RP_E_LIMIT, ERROR_NO_OFFSET,
			"more than %llu files (--limit files=N)",
			(unsigned long long)limits->files);
	struct listed *f = array_push(&l->files, (size_t)limits->files);
	if (!f)
		return no_memory(e);
	*f = (struct listed){
		.path = path,
		.name = last_part(path),
		.dir = dir,
		.size = (uint64_t)st->st_size,
		.mtime_ns = mtime_ns(st),
		.inode = st->st_ino,
		.regular = S_ISREG(st->st_mode),
		.symlink = link,
	};
	return RP_OK;
}

static int add_dir(struct listing *l, const char *path, uint32_t parent, const struct stat *st,
	const struct limits *limits, struct error *e)
{
	if (l->dirs.count >= limits->files)
		return fail(e, RP_E_LIMIT, ERROR_NO_OFFSET,
			"more than %llu folders (--limit files=N)",
			(unsigned long long)limits->files);
	struct listed_dir *d = array_push(&l->dirs, (size_t)limits->files);
	if (!d)
		return no_memory(e);
	*d = (struct listed_dir){
		.path = path, .name = last_part(path), .parent = parent, .mtime_ns = mtime_ns(st)};
	return RP_OK;
}

/* Where the system failed nothing is known of the list, which could lack what matters. What is
 * refused is counted, and what has gone is not there. */
static int lacking(struct listing *l, int os_error, const char *folder, struct error *e)
{
	l->skipped += os_error != ENOENT;
	return os_refuses(os_error) ? RP_OK
				    : fail_os(e, os_error, "the folder %s could not be read whole",
					      *folder ? folder : ".");
}

/* One entry of folder `dir`. What vanished since the folder was read is not there. A folder that
 * may be read but not searched tells names only; nothing in it can be opened. */
static int take_entry(struct listing *l, int fd, uint32_t dir, const char *name,
	const struct limits *limits, bool *hidden, struct error *e)
{
	const char *folder = l->dirs.items[dir].path;
	struct stat st;

	if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		if (!os_refuses(errno))
			return lacking(l, errno, folder, e);
		*hidden |= errno != ENOENT;
		return RP_OK;
	}
	bool link = S_ISLNK(st.st_mode);
	struct stat target;
	/* A link to a folder would lead out of the tree, or round in it. */
	if (link && fstatat(fd, name, &target, 0) == 0) {
		if (S_ISDIR(target.st_mode))
			return RP_OK;
		st = target;
	}
	char *path = arena_printf(&l->arena, "%s%s%s", folder, *folder ? "/" : "", name);
	if (!path)
		return no_memory(e);
	if (S_ISDIR(st.st_mode))
		return add_dir(l, path, dir, &st, limits, e);
	return add_file(l, path, dir, &st, link, limits, e);
}

static int read_dir(struct listing *l, uint32_t dir, const struct limits *limits, struct error *e)
{
	const char *path = l->dirs.items[dir].path;
	/* A folder that became a link meanwhile would lead out of the tree. */
	int fd = openat(
		l->dirfd, *path ? path : ".", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int os_error = errno;
	DIR *stream = fd < 0 ? NULL : fdopendir(fd);

	if (!stream) {
		if (fd >= 0)
			close(fd);
		return lacking(l, fd >= 0 ? ENOMEM : os_error, path, e);
	}
	int status = RP_OK;
	bool hidden = false;
	const struct dirent *entry;
	while (errno = 0, status == RP_OK && (entry = readdir(stream)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			status = take_entry(l, fd, dir, entry->d_name, limits, &hidden, e);
	/* Network file systems can fail in the middle of a folder: then it was not seen whole. */
	if (status == RP_OK && errno != 0)
		status = lacking(l, errno, path, e);
	l->skipped += hidden;
	closedir(stream);
	return status;
}

static unsigned depth_of(const struct listing *l, uint32_t dir)
{
	unsigned depth = 0;

	for (; dir != 0; dir = l->dirs.items[dir].parent)
		depth++;
	return depth;
}

static int compare_files(const void *pa, const void *pb)
{
	const struct listed *a = pa, *b = pb;
	return text_natural_compare(slice_of(a->path), slice_of(b->path));
}

/* Folders are numbered as they are found; only their order among the files must not depend on that.
 */
static int compare_dirs(const void *pa, const void *pb, void *context)
{
	const struct listed_dir *dirs = context;
	return text_natural_compare(slice_of(dirs[*(const uint32_t *)pa].path),
		slice_of(dirs[*(const uint32_t *)pb].path));
}

/* Bring folders into natural order, the root first, and renumber what refers to them. */
static bool sort_dirs(struct listing *l)
{
	size_t n = l->dirs.count;
	uint32_t *order = calloc(2 * n, sizeof *order), *rank = order ? order + n : NULL;
	struct listed_dir *sorted = calloc(n, sizeof *sorted);
	bool ok = order && sorted;

	if (ok) {
		for (uint32_t i = 0; i < n; i++)
			order[i] = i;
		qsort_r(order + 1, n - 1, sizeof *order, compare_dirs, l->dirs.items);
		for (uint32_t i = 0; i < n; i++)
			rank[order[i]] = i;
		for (uint32_t i = 0; i < n; i++) {
			sorted[i] = l->dirs.items[order[i]];
			sorted[i].parent = rank[sorted[i].parent];
		}
		memcpy(l->dirs.items, sorted, n * sizeof *sorted);
		for (size_t i = 0; i < l->files.count; i++)
			l->files.items[i].dir = rank[l->files.items[i].dir];
	}
	free(order);
	free(sorted);
	return ok;
}

static int open_file(struct listing *l, const char *path, const struct stat *st,
	const struct limits *limits, struct error *e)
{
	const char *slash = strrchr(path, '/');
	char *folder =
		slash ? arena_strdup(&l->arena, (struct slice){path, (size_t)(slash - path) + 1})
		      : NULL;

	if (slash && !folder)
		return no_memory(e);
	l->single = true;
	l->dirfd = open(folder ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (l->dirfd < 0)
		return fail_os(e, errno, "cannot open the folder of %s", path);
	int status = add_dir(l, "", 0, st, limits, e);
	char *name = arena_strdup(&l->arena, slice_of(slash ? slash + 1 : path));
	if (status == RP_OK && !name)
		status = no_memory(e);
	return status == RP_OK ? add_file(l, name, 0, st, false, limits, e) : status;
}

/* The root's own name: "checkpoint-30" of "runs/checkpoint-30/", and of "." where that is it. */
static int name_root(struct listing *l, const char *path, struct error *e)
{
	size_t n = strlen(path);

	while (n > 1 && path[n - 1] == '/')
		n--;
	char *name = arena_strdup(&l->arena, (struct slice){path, n});
	if (!name)
		return no_memory(e);
	const char *last = last_part(name);
	if (strcmp(last, ".") == 0 || strcmp(last, "..") == 0) {
		char *real = realpath(path, NULL);
		char *copy = real ? arena_strdup(&l->arena, slice_of(last_part(real))) : NULL;
		free(real);
		last = copy ? copy : last;
	}
	l->dirs.items[0].name = last;
	return RP_OK;
}

static int fill(struct listing *l, const char *path, unsigned depth, const struct limits *limits,
	struct error *e)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return fail_os(e, errno, "cannot open");
	if (!S_ISDIR(st.st_mode))
		return open_file(l, path, &st, limits, e);
	l->dirfd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (l->dirfd < 0)
		return fail_os(e, errno, "cannot open the folder");
	int status = add_dir(l, "", 0, &st, limits, e);
	if (status == RP_OK)
		status = name_root(l, path, e);
	for (uint32_t d = 0; status == RP_OK && d < l->dirs.count; d++) {
		if (d > 0 && depth_of(l, d) > depth)
			l->skipped++;
		else
			status = read_dir(l, d, limits, e);
	}
	if (status == RP_OK && l->skipped > 0 && l->files.count == 0 && l->dirs.count == 1)
		return fail(e, RP_E_IO, ERROR_NO_OFFSET, "the folder cannot be read");
	if (status == RP_OK && !sort_dirs(l))
		return no_memory(e);
	if (l->files.count > 1)
		qsort(l->files.items, l->files.count, sizeof *l->files.items, compare_files);
	return status;
}

int listing_open(struct listing *l, const char *path, unsigned depth, const struct limits *limits,
	struct error *e)
{
	*l = (struct listing){.root = path, .dirfd = -1};
	arena_init(&l->arena, (size_t)limits->memory);
	int status = fill(l, path, depth, limits, e);
	if (status < 0)
		listing_close(l);
	return status;
}

void listing_close(struct listing *l)
{
	/* A zeroed listing is none, and does not hold file descriptor 0. */
	if (l->root && l->dirfd >= 0)
		close(l->dirfd);
	l->dirfd = -1;
	array_release(&l->files);
	array_release(&l->dirs);
	arena_release(&l->arena);
}

const struct listed *listing_find(const struct listing *l, const char *path)
{
	struct listed key = {.path = path};

	return l->files.count == 0 ? NULL
				   : bsearch(&key, l->files.items, l->files.count,
					     sizeof *l->files.items, compare_files);
}
