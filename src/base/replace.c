/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "base/replace.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ATTEMPTS 100u

/* A new file in the folder. Its name is ours and short, since `path` may be as long as names can
 * be. */
static int create_beside(int folder, char *name, size_t size, struct error *e)
{
	for (unsigned i = 0; i < ATTEMPTS; i++) {
		snprintf(name, size, ".reprise-%ld-%u.tmp", (long)getpid(), i);
		int fd = openat(
			folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
		if (fd >= 0)
			return fd;
		if (errno != EEXIST)
			return fail_os(e, errno, "a file beside it cannot be made");
	}
	return fail(e, RP_E_IO, ERROR_NO_OFFSET, "too many temporary files are beside it");
}

static int write_whole(int fd, struct slice text, struct error *e)
{
	while (text.n > 0) {
		ssize_t n = write(fd, text.p, text.n);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return fail_os(e, errno, "it cannot be written");
		text = (struct slice){text.p + n, text.n - (size_t)n};
	}
	return fsync(fd) < 0 ? fail_os(e, errno, "it cannot be brought to the disk") : RP_OK;
}

/*
 * Give the temporary file its name where nothing has that name. Not every file system can do it in
 * one call; a second name for the file does it too, since that fails where there is one.
 */
static int name_new(int folder, const char *temporary, const char *name)
{
	if (renameat2(folder, temporary, folder, name, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno == EEXIST || linkat(folder, temporary, folder, name, 0) < 0)
		return -1;
	unlinkat(folder, temporary, 0);
	return 0;
}

static int write_in(int folder, const char *name, struct slice text, bool replace, struct error *e)
{
	struct stat st;
	char temporary[64];

	if (fstatat(folder, name, &st, replace ? 0 : AT_SYMLINK_NOFOLLOW) == 0) {
		if (!replace)
			return fail_os(e, EEXIST, "it is left as it is");
		if (!S_ISREG(st.st_mode))
			return fail(e, RP_E_IO, ERROR_NO_OFFSET, "it is there and no regular file");
	}
	int fd = create_beside(folder, temporary, sizeof temporary, e);
	if (fd < 0)
		return fd;
	int status = write_whole(fd, text, e);
	if (close(fd) < 0 && status == RP_OK)
		status = fail_os(e, errno, "it cannot be written");
	if (status == RP_OK && (replace ? renameat(folder, temporary, folder, name)
					: name_new(folder, temporary, name)) < 0)
		status = fail_os(e, errno,
			errno == EEXIST ? "it is left as it is" : "it cannot be given its name");
	if (status < 0)
		unlinkat(folder, temporary, 0);
	else
		fsync(folder); /* the name too; where the file system cannot do that, the file is
				  there all the same */
	return status;
}

static int write_file(const char *path, struct slice text, bool replace, struct error *e)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	char *parent = slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : NULL;

	if (*name == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0) {
		free(parent);
		return fail(e, RP_E_ARGUMENT, ERROR_NO_OFFSET, "it names no file");
	}
	if (slash && !parent)
		return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for its path");
	int folder = open(parent ? parent : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int status = folder < 0 ? fail_os(e, errno, "its folder cannot be opened")
				: write_in(folder, name, text, replace, e);
	if (folder >= 0)
		close(folder);
	free(parent);
	return status;
}

int file_replace(const char *path, struct slice text, struct error *e)
{
	return write_file(path, text, true, e);
}

int file_create(const char *path, struct slice text, struct error *e)
{
	return write_file(path, text, false, e);
}
