/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "fault/faults.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

const char *const fault_names[FAULT_KINDS] = {"allocation", "open", "read", "write", "process"};

static enum fault_kind failing;
static size_t failing_call;
static bool failing_on;
static size_t counts[FAULT_KINDS];
static long blocks, descriptors;

void faults_set(enum fault_kind kind, size_t n, bool on)
{
	failing = kind;
	failing_call = n;
	failing_on = on;
	memset(counts, 0, sizeof counts);
}

size_t faults_counted(enum fault_kind kind)
{
	return counts[kind];
}

long faults_live_blocks(void)
{
	return blocks;
}

long faults_live_descriptors(void)
{
	return descriptors;
}

/* A place for a debugger to stop at. */
__attribute__((noinline)) void fault_happens(void)
{
	__asm__ volatile("");
}

/* Count a call, and whether it is one that fails. Threads of a team count together. */
static bool fails(enum fault_kind kind, int error)
{
	size_t call = __atomic_add_fetch(&counts[kind], 1, __ATOMIC_RELAXED);

	if (kind != failing || failing_call == 0 || call < failing_call ||
		(call > failing_call && !failing_on))
		return false;
	fault_happens();
	errno = error;
	return true;
}

static void *taken(void *p)
{
	if (p)
		__atomic_add_fetch(&blocks, 1, __ATOMIC_RELAXED);
	return p;
}

static int opened(int fd)
{
	if (fd >= 0)
		__atomic_add_fetch(&descriptors, 1, __ATOMIC_RELAXED);
	return fd;
}

#define ALLOCATION_FAILS fails(FAULT_ALLOCATION, ENOMEM)

void *fault_malloc(size_t n)
{
	return ALLOCATION_FAILS ? NULL : taken(malloc(n));
}

void *fault_calloc(size_t n, size_t size)
{
	return ALLOCATION_FAILS ? NULL : taken(calloc(n, size));
}

void *fault_realloc(void *p, size_t n)
{
	void *moved = ALLOCATION_FAILS ? NULL : realloc(p, n);

	return p ? moved : taken(moved);
}

void *fault_reallocarray(void *p, size_t n, size_t size)
{
	void *moved = ALLOCATION_FAILS ? NULL : reallocarray(p, n, size);

	return p ? moved : taken(moved);
}

char *fault_strndup(const char *s, size_t n)
{
	return ALLOCATION_FAILS ? NULL : taken(strndup(s, n));
}

char *fault_strdup(const char *s)
{
	return ALLOCATION_FAILS ? NULL : taken(strdup(s));
}

char *fault_realpath(const char *path, char *resolved)
{
	if (resolved)
		return realpath(path, resolved);
	return ALLOCATION_FAILS ? NULL : taken(realpath(path, NULL));
}

void fault_free(void *p)
{
	if (p)
		__atomic_sub_fetch(&blocks, 1, __ATOMIC_RELAXED);
	free(p);
}

int fault_open(const char *path, int flags, ...)
{
	va_list args;

	va_start(args, flags);
	mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(args, mode_t) : 0;
	va_end(args);
	return fails(FAULT_OPEN, EMFILE) ? -1 : opened(open(path, flags, mode));
}

int fault_openat(int dirfd, const char *path, int flags, ...)
{
	va_list args;

	va_start(args, flags);
	mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(args, mode_t) : 0;
	va_end(args);
	return fails(FAULT_OPEN, EMFILE) ? -1 : opened(openat(dirfd, path, flags, mode));
}

int fault_mkostemp(char *name, int flags)
{
	return fails(FAULT_OPEN, EMFILE) ? -1 : opened(mkostemp(name, flags));
}

/* The descriptor belongs to the directory from then on, and goes with it. */
DIR *fault_fdopendir(int fd)
{
	return fails(FAULT_OPEN, ENOMEM) ? NULL : fdopendir(fd);
}

int fault_closedir(DIR *d)
{
	__atomic_sub_fetch(&descriptors, 1, __ATOMIC_RELAXED);
	return closedir(d);
}

int fault_close(int fd)
{
	int status = close(fd);

	if (status == 0)
		__atomic_sub_fetch(&descriptors, 1, __ATOMIC_RELAXED);
	return status;
}

ssize_t fault_pread(int fd, void *p, size_t n, off_t at)
{
	return fails(FAULT_READ, EIO) ? -1 : pread(fd, p, n, at);
}

struct dirent *fault_readdir(DIR *d)
{
	return fails(FAULT_READ, EIO) ? NULL : readdir(d);
}

int fault_stat(const char *path, struct stat *st)
{
	return fails(FAULT_READ, EIO) ? -1 : stat(path, st);
}

int fault_fstat(int fd, struct stat *st)
{
	return fails(FAULT_READ, EIO) ? -1 : fstat(fd, st);
}

int fault_fstatat(int dirfd, const char *path, struct stat *st, int flags)
{
	return fails(FAULT_READ, EIO) ? -1 : fstatat(dirfd, path, st, flags);
}

ssize_t fault_write(int fd, const void *p, size_t n)
{
	return fails(FAULT_WRITE, ENOSPC) ? -1 : write(fd, p, n);
}

ssize_t fault_pwrite(int fd, const void *p, size_t n, off_t at)
{
	return fails(FAULT_WRITE, ENOSPC) ? -1 : pwrite(fd, p, n, at);
}

int fault_mkdir(const char *path, mode_t mode)
{
	return fails(FAULT_WRITE, ENOSPC) ? -1 : mkdir(path, mode);
}

int fault_fsync(int fd)
{
	return fails(FAULT_WRITE, EIO) ? -1 : fsync(fd);
}

int fault_renameat(int from, const char *old, int to, const char *path)
{
	return fails(FAULT_WRITE, EIO) ? -1 : renameat(from, old, to, path);
}

int fault_renameat2(int from, const char *old, int to, const char *path, unsigned flags)
{
	return fails(FAULT_WRITE, EIO) ? -1 : renameat2(from, old, to, path, flags);
}

int fault_linkat(int from, const char *old, int to, const char *path, int flags)
{
	return fails(FAULT_WRITE, EIO) ? -1 : linkat(from, old, to, path, flags);
}

int fault_socketpair(int domain, int type, int protocol, int pair[2])
{
	if (fails(FAULT_PROCESS, EMFILE) || socketpair(domain, type, protocol, pair) < 0)
		return -1;
	opened(pair[0]);
	opened(pair[1]);
	return 0;
}

int fault_pipe2(int pair[2], int flags)
{
	if (fails(FAULT_PROCESS, EMFILE) || pipe2(pair, flags) < 0)
		return -1;
	opened(pair[0]);
	opened(pair[1]);
	return 0;
}

int fault_fcntl(int fd, int command, ...)
{
	va_list args;

	va_start(args, command);
	long argument = va_arg(args, long);
	va_end(args);
	if (command != F_DUPFD && command != F_DUPFD_CLOEXEC)
		return fcntl(fd, command, argument);
	return fails(FAULT_OPEN, EMFILE) ? -1 : opened(fcntl(fd, command, argument));
}

pid_t fault_fork(void)
{
	return fails(FAULT_PROCESS, EAGAIN) ? -1 : fork();
}

int fault_posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
	const posix_spawnattr_t *attributes, char *const arguments[], char *const environment[])
{
	if (fails(FAULT_PROCESS, EAGAIN))
		return EAGAIN;
	return posix_spawn(pid, path, actions, attributes, arguments, environment);
}

ssize_t fault_send(int fd, const void *p, size_t n, int flags)
{
	return fails(FAULT_PROCESS, EPIPE) ? -1 : send(fd, p, n, flags);
}

ssize_t fault_recv(int fd, void *p, size_t n, int flags)
{
	return fails(FAULT_PROCESS, EIO) ? -1 : recv(fd, p, n, flags);
}

int fault_poll(struct pollfd *fds, nfds_t n, int timeout)
{
	return fails(FAULT_PROCESS, ENOMEM) ? -1 : poll(fds, n, timeout);
}

int fault_pthread_create(
	pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *context)
{
	return fails(FAULT_PROCESS, EAGAIN) ? EAGAIN
					    : pthread_create(thread, attributes, run, context);
}
