/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "base/replace.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ATTEMPTS 100u
#define REPLACE_HEAD 4096u /* bytes that tell a file of ours */

/* A new file in the folder. Its name is ours and short, since `path` may be as long as names can
 * be. */
static int create_beside(int folder, char *name, size_t size, struct error *e)
{
	for (unsigned i = 0; i < ATTEMPTS; i++) {
		snprintf(name, size, ".reprise-%ld-%u.tmp", (long)getpid(), i);
		int fd = openat(
			folder, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
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
	return RP_OK;
}

/* What fails from here on is output, but for a name that makes no sense. */
static int as_output(struct error *e, int status)
{
	if (status < 0 && status != RP_E_ARGUMENT && e)
		e->output = true;
	return status;
}

static int open_in_folder(struct replacement *r, struct error *e)
{
	struct stat st;

	if (fstatat(r->folder, r->name, &st, r->keep ? AT_SYMLINK_NOFOLLOW : 0) == 0) {
		if (r->keep)
			return fail_os(e, EEXIST, "it is left as it is");
		if (!S_ISREG(st.st_mode))
			return fail(e, RP_E_IO, ERROR_NO_OFFSET, "it is there and no regular file");
	} else if (errno != ENOENT) {
		return fail_os(e, errno, "what is there cannot be looked at");
	}
	r->fd = create_beside(r->folder, r->temporary, sizeof r->temporary, e);
	return r->fd < 0 ? r->fd : RP_OK;
}

static int open_beside(struct replacement *r, const char *path, struct error *e)
{
	const char *slash = strrchr(path, '/');
	char *parent = slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : NULL;

	r->folder = r->fd = -1;
	r->name = slash ? slash + 1 : path;
	if (*r->name == '\0' || strcmp(r->name, ".") == 0 || strcmp(r->name, "..") == 0) {
		free(parent);
		return fail(e, RP_E_ARGUMENT, ERROR_NO_OFFSET, "it names no file");
	}
	if (slash && !parent)
		return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for its path");
	r->folder = open(parent ? parent : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int status = r->folder < 0 ? fail_os(e, errno, "its folder cannot be opened")
				   : open_in_folder(r, e);
	free(parent);
	if (status < 0 && r->folder >= 0)
		close(r->folder);
	if (status < 0)
		r->folder = r->fd = -1;
	return status;
}

int replacement_open(struct replacement *r, const char *path, struct error *e)
{
	*r = (struct replacement){0};
	return as_output(e, open_beside(r, path, e));
}

static void close_both(struct replacement *r)
{
	if (r->fd >= 0)
		close(r->fd);
	if (r->folder >= 0)
		close(r->folder);
	r->folder = r->fd = -1;
}

int replacement_write(struct replacement *r, struct slice text, struct error *e)
{
	return as_output(e, write_whole(r->fd, text, e));
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

static int take_name(const struct replacement *r)
{
	return r->keep ? name_new(r->folder, r->temporary, r->name)
		       : renameat(r->folder, r->temporary, r->folder, r->name);
}

int replacement_commit(struct replacement *r, struct error *e)
{
	int status =
		fsync(r->fd) < 0 ? fail_os(e, errno, "it cannot be brought to the disk") : RP_OK;

	if (close(r->fd) < 0 && status == RP_OK)
		status = fail_os(e, errno, "it cannot be written");
	r->fd = -1;
	if (status == RP_OK && take_name(r) < 0)
		status = fail_os(e, errno,
			errno == EEXIST ? "it is left as it is" : "it cannot be given its name");
	if (status < 0)
		unlinkat(r->folder, r->temporary, 0);
	else
		fsync(r->folder); /* the name too; where the file system cannot do that, the file is
				     there all the same */
	close_both(r);
	return as_output(e, status);
}

void replacement_abandon(struct replacement *r)
{
	if (r->fd >= 0)
		unlinkat(r->folder, r->temporary, 0);
	close_both(r);
}

static int write_file(const char *path, struct slice text, bool keep, struct error *e)
{
	struct replacement r = {.keep = keep};
	int status = open_beside(&r, path, e);

	if (status < 0)
		return as_output(e, status);
	status = replacement_write(&r, text, e);
	if (status == RP_OK)
		return replacement_commit(&r, e);
	replacement_abandon(&r);
	return status;
}

int file_replace(const char *path, struct slice text, struct error *e)
{
	return write_file(path, text, false, e);
}

int file_create(const char *path, struct slice text, struct error *e)
{
	return write_file(path, text, true, e);
}

int replace_allowed(const char *path, bool (*is_own)(struct slice head), struct error *e)
{
	char head[REPLACE_HEAD];
	struct stat st;
	ssize_t n;
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	/* What cannot be replaced at all is told where that is tried. */
	if (fd < 0)
		return errno == EACCES ? fail_os(e, errno, "what is there cannot be looked at")
				       : RP_OK;
	bool ours = fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size == 0 ||
		    ((n = pread(fd, head, sizeof head, 0)) > 0 &&
			    is_own((struct slice){head, (size_t)n}));
	close(fd);
	return ours ? RP_OK
		    : fail(e, RP_E_ARGUMENT, ERROR_NO_OFFSET,
			      "what is there was not written by reprise: it is left as it is");
}
