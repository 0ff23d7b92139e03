/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "base/source.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/size.h"

static int64_t stat_mtime_ns(const struct stat *st)
{
	return (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
}

static const char *kind_of(mode_t mode)
{
	if (S_ISDIR(mode))
		return "a directory";
	if (S_ISFIFO(mode))
		return "a named pipe";
	if (S_ISSOCK(mode))
		return "a socket";
	return "a device";
}

int source_open(struct source *s, int dirfd, const char *path, struct error *e)
{
	struct stat st;

	*s = (struct source){.fd = -1, .name = path};
	/* O_NONBLOCK: opening a named pipe must not wait for a writer. It changes nothing for
	 * files. */
	int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return fail_os(e, errno, "cannot open");
	if (fstat(fd, &st) < 0) {
		int os_error = errno;
		close(fd);
		return fail_os(e, os_error, "cannot stat");
	}
	if (!S_ISREG(st.st_mode)) {
		close(fd);
		return fail(e, RP_E_UNSUPPORTED, ERROR_NO_OFFSET, "is %s, not a regular file",
			kind_of(st.st_mode));
	}
	s->fd = fd;
	s->size = (uint64_t)st.st_size;
	s->inode = st.st_ino;
	s->device = st.st_dev;
	s->mtime_ns = stat_mtime_ns(&st);
	return RP_OK;
}

void source_from_memory(struct source *s, const void *bytes, uint64_t size, const char *name)
{
	*s = (struct source){.fd = -1, .name = name, .bytes = bytes, .size = size};
}

void source_close(struct source *s)
{
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
}

int source_read_some(const struct source *s, uint64_t offset, void *buffer, size_t n, size_t *got,
	struct error *e)
{
	*got = 0;
	if (n == 0 || offset >= s->size)
		return RP_OK;
	if (n > s->size - offset)
		n = (size_t)(s->size - offset);
	if (s->fd < 0) {
		memcpy(buffer, s->bytes + offset, n);
		*got = n;
		return RP_OK;
	}
	while (*got < n) {
		ssize_t r = pread(s->fd, (char *)buffer + *got, n - *got, (off_t)(offset + *got));
		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return fail_os(e, errno, "reading %zu bytes at offset %llu", n,
				(unsigned long long)offset);
		if (r == 0)
			return fail(e, RP_E_CHANGED, offset + *got,
				"the file became shorter while it was read");
		*got += (size_t)r;
	}
	return RP_OK;
}

int source_read(const struct source *s, uint64_t offset, void *buffer, size_t n, struct error *e)
{
	size_t got;

	if (!range_inside(offset, n, s->size))
		return fail(e, RP_E_FORMAT, offset,
			"%zu bytes expected at offset %llu, the file has %llu", n,
			(unsigned long long)offset, (unsigned long long)s->size);
	return source_read_some(s, offset, buffer, n, &got, e);
}

int source_check(const struct source *s, struct error *e)
{
	struct stat st;

	if (s->fd < 0)
		return RP_OK;
	if (fstat(s->fd, &st) < 0)
		return fail_os(e, errno, "cannot stat");
	if ((uint64_t)st.st_size != s->size || stat_mtime_ns(&st) != s->mtime_ns)
		return fail(e, RP_E_CHANGED, ERROR_NO_OFFSET, "the file changed while it was read");
	return RP_OK;
}
