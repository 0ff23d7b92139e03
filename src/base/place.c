/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "base/place.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ABOVE_MAX 4096u /* folders above a file that are looked at */

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

bool place_same(const char *a, const char *b)
{
	struct stat sa, sb;

	return stat(a, &sa) == 0 && stat(b, &sb) == 0 && is_same(&sa, &sb);
}

/* Whether an open folder, or one above it, is the wanted one. The folder is closed. */
static bool is_below(int folder, const struct stat *wanted)
{
	struct stat here, above;
	bool found = false;

	for (unsigned i = 0; i < ABOVE_MAX && folder >= 0 && fstat(folder, &here) == 0; i++) {
		found = is_same(&here, wanted);
		/* The root is above itself. */
		if (found || fstatat(folder, "..", &above, 0) < 0 || is_same(&here, &above))
			break;
		int parent = openat(folder, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
		close(folder);
		folder = parent;
	}
	if (folder >= 0)
		close(folder);
	return found;
}

bool place_within(const char *path, const char *at)
{
	const char *slash = strrchr(path, '/');
	struct stat wanted;

	if (stat(at, &wanted) < 0)
		return false;
	if (!S_ISDIR(wanted.st_mode))
		return place_same(path, at);
	char *folder = slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : NULL;
	if (slash && !folder)
		return false;
	int fd = open(folder ? folder : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	free(folder);
	return is_below(fd, &wanted);
}
