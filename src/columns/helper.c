/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "columns/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SECONDS_MAX 1000000u
#define CPU_SECONDS 60u     /* of its whole life, and one more for each so many bytes: */
#define CPU_BYTES 20000000u /* what it reads or writes in a second at the very least */
#define MEMORY_BASE                                                                                \
	((uint64_t)512 << 20) /* addresses that its libraries and HDF5's caches take               \
			       */
#define FIRST_FREE 10         /* descriptors below are the helper's own */
#define HELPER_NAME "reprise-h5"
#define TEXT_SHOWN 120

#ifndef REPRISE_LIBEXEC
#define REPRISE_LIBEXEC "/usr/local/libexec/reprise"
#endif

/* Whether `folder`/`below` holds the helper. */
static bool is_there(char *path, size_t size, const char *folder, size_t n, const char *below)
{
	int length = snprintf(path, size, "%.*s%s" HELPER_NAME, (int)n, folder, below);

	return length > 0 && (size_t)length < size && access(path, X_OK) == 0;
}

/* The length of the folder that the tool was started from, with its slash; 0 where that is not
 * known. */
static size_t own_folder(char *self, size_t size)
{
	ssize_t n = readlink("/proc/self/exe", self, size - 1);

	/* Without /proc: the name that it was started by, from where it was, which it has not left.
	 */
	if (n < 0) {
		const char *name = (const char *)getauxval(AT_EXECFN);
		n = name ? snprintf(self, size, "%s", name) : 0;
		if ((size_t)n >= size)
			n = 0;
	}
	while (n > 0 && self[n - 1] != '/')
		n--;
	return (size_t)n;
}

/*
 * Where the helper is: where the environment says, beside the tool (the build folder), in the
 * libexec folder of the tool's prefix, or where it was meant to be installed.
 */
static int find_helper(char *path, size_t size, struct error *e)
{
	const char *named = secure_getenv("REPRISE_H5");
	char self[PATH_MAX];
	size_t n = own_folder(self, sizeof self);

	if (named && *named) {
		if (strlen(named) < size && access(named, X_OK) == 0) {
			strcpy(path, named);
			return RP_OK;
		}
		return fail(e, RP_E_NOT_FOUND, ERROR_NO_OFFSET,
			"REPRISE_H5 names %.100s, which cannot be run", named);
	}
	if ((n > 0 && (is_there(path, size, self, n, "") ||
			      is_there(path, size, self, n, "../libexec/reprise/"))) ||
		is_there(path, size, REPRISE_LIBEXEC, strlen(REPRISE_LIBEXEC), "/"))
		return RP_OK;
	return fail(e, RP_E_NOT_FOUND, ERROR_NO_OFFSET,
		HELPER_NAME
		" is not installed, which reads and writes such files: it belongs beside "
		"reprise, into " REPRISE_LIBEXEC ", or REPRISE_H5 names it");
}

/* Descriptors that collide with none of those that the helper gets. */
static int lift(int fd)
{
	return fcntl(fd, F_DUPFD_CLOEXEC, FIRST_FREE);
}

static int spawn(struct helper *h, const char *path, char **arguments, int socket, int file)
{
	posix_spawn_file_actions_t actions;
	const char *libraries = secure_getenv("LD_LIBRARY_PATH");
	char *environment[] = {NULL, NULL};
	char variable[PATH_MAX];

	/* HDF5 obeys variables of its own. Where its library lies may be told, nothing else is. */
	if (libraries && snprintf(variable, sizeof variable, "LD_LIBRARY_PATH=%s", libraries) <
				 (int)sizeof variable)
		environment[0] = variable;
	int status = posix_spawn_file_actions_init(&actions);
	if (status != 0)
		return status;
	status = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	for (int fd = 1; status == 0 && fd <= 2; fd++)
		status = posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_WRONLY, 0);
	if (status == 0)
		status = posix_spawn_file_actions_adddup2(&actions, socket, HELPER_SOCKET);
	if (status == 0)
		status = posix_spawn_file_actions_adddup2(&actions, file, HELPER_FILE);
	if (status == 0)
		status = posix_spawn_file_actions_addclosefrom_np(&actions, HELPER_FILE + 1);
	if (status == 0)
		status = posix_spawn(&h->pid, path, &actions, NULL, arguments, environment);
	posix_spawn_file_actions_destroy(&actions);
	if (status != 0)
		h->pid = 0;
	return status;
}

static int start_over(struct helper *h, const char *path, int pair[2], int file,
	uint64_t file_bytes, uint64_t memory, struct error *e)
{
	off_t size = lseek(file, 0, SEEK_END);
	uint64_t work = (size > 0 ? (uint64_t)size : 0) + file_bytes;
	char texts[3][24];
	char name[] = HELPER_NAME;
	char *arguments[HELPER_ARGUMENTS + 1] = {name, texts[0], texts[1], texts[2], NULL};
	int socket = lift(pair[1]), lifted = lift(file);

	snprintf(texts[0], sizeof texts[0], "%llu", (unsigned long long)(memory + MEMORY_BASE));
	snprintf(texts[1], sizeof texts[1], "%llu",
		(unsigned long long)(CPU_SECONDS + work / CPU_BYTES));
	snprintf(texts[2], sizeof texts[2], "%llu", (unsigned long long)file_bytes);
	int status = socket < 0 || lifted < 0 ? errno : spawn(h, path, arguments, socket, lifted);
	if (socket >= 0)
		close(socket);
	if (lifted >= 0)
		close(lifted);
	return status == 0 ? RP_OK : fail_os(e, status, "%s cannot be started", path);
}

int helper_start(struct helper *h, int file, uint64_t file_bytes, const struct limits *limits,
	struct error *e)
{
	char path[PATH_MAX];
	int pair[2];

	*h = (struct helper){.socket = -1, .seconds = limits->helper_seconds};
	if (h->seconds > SECONDS_MAX)
		h->seconds = SECONDS_MAX;
	int status = find_helper(path, sizeof path, e);
	if (status < 0)
		return status;
	h->body = malloc(FRAME_BODY_MAX);
	if (!h->body)
		return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for frames");
	/* A socket rather than a pipe: writing to one whose reader died need not raise a signal. */
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) {
		status = fail_os(e, errno, "no socket can be made");
	} else {
		status = start_over(h, path, pair, file, file_bytes, limits->memory, e);
		close(pair[1]);
		h->socket = pair[0];
	}
	if (status == RP_OK && fcntl(h->socket, F_SETFL, O_NONBLOCK) < 0)
		status = fail_os(e, errno, "no socket can be made");
	if (status < 0)
		helper_stop(h);
	return status;
}

/* End it and return what waitpid() says of it, or -1. */
static int reap(struct helper *h, bool kill_it)
{
	int status = -1;

	if (h->socket >= 0)
		close(h->socket);
	h->socket = -1;
	if (h->pid <= 0)
		return -1;
	if (kill_it)
		kill(h->pid, SIGKILL);
	while (waitpid(h->pid, &status, 0) < 0)
		if (errno != EINTR) {
			status = -1;
			break;
		}
	h->pid = 0;
	return status;
}

void helper_stop(struct helper *h)
{
	reap(h, true);
	free(h->body);
	h->body = NULL;
}

void helper_put_bytes(struct helper *h, const void *bytes, size_t n)
{
	if (!h->body || n > FRAME_BODY_MAX - h->n) {
		h->overfull = true;
		return;
	}
	if (n > 0)
		memcpy(h->body + h->n, bytes, n);
	h->n += n;
}

static void put_le(uint8_t *p, uint64_t v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (uint8_t)(v >> 8 * i);
}

void helper_put_u32(struct helper *h, uint32_t v)
{
	uint8_t bytes[4];

	put_le(bytes, v, sizeof bytes);
	helper_put_bytes(h, bytes, sizeof bytes);
}

void helper_put_u64(struct helper *h, uint64_t v)
{
	uint8_t bytes[8];

	put_le(bytes, v, sizeof bytes);
	helper_put_bytes(h, bytes, sizeof bytes);
}

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

enum turn {
	TURN_READY,
	TURN_OVER, /* its end of the socket is closed, or broken */
	TURN_LATE,
};

/* Wait until the socket can be read or written, till the deadline. */
static enum turn wait_for(const struct helper *h, short events, int64_t deadline)
{
	for (;;) {
		struct pollfd p = {.fd = h->socket, .events = events};
		int64_t left = deadline - now_ms();
		int n = left <= 0 ? 0 : poll(&p, 1, left > INT_MAX ? INT_MAX : (int)left);
		if (n > 0)
			return TURN_READY;
		if (n == 0)
			return TURN_LATE;
		if (errno != EINTR)
			return TURN_OVER;
	}
}

static enum turn transfer(struct helper *h, uint8_t *p, size_t n, bool sending, int64_t deadline)
{
	while (n > 0) {
		ssize_t done =
			sending ? send(h->socket, p, n, MSG_NOSIGNAL) : recv(h->socket, p, n, 0);
		if (done > 0) {
			p += done;
			n -= (size_t)done;
			continue;
		}
		if (done < 0 && errno == EINTR)
			continue;
		if (done == 0 || (errno != EAGAIN && errno != EWOULDBLOCK))
			return TURN_OVER;
		enum turn turn = wait_for(h, sending ? POLLOUT : POLLIN, deadline);
		if (turn != TURN_READY)
			return turn;
	}
	return TURN_READY;
}

/* It is gone: say how it went. What a file does to it is a matter of the file's format. */
static void say_end(struct helper *h, struct error *e)
{
	int status = reap(h, false);

	if (status >= 0 && WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS)
		fail(e, RP_E_FORMAT, ERROR_NO_OFFSET,
			"its HDF5 part made " HELPER_NAME
			" leave its sandbox, and it was ended for that");
	else if (status >= 0 && WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU)
		fail(e, RP_E_FORMAT, ERROR_NO_OFFSET,
			"its HDF5 part kept " HELPER_NAME " busy for too long");
	else if (status >= 0 && WIFSIGNALED(status))
		fail(e, RP_E_FORMAT, ERROR_NO_OFFSET,
			"its HDF5 part crashed " HELPER_NAME " (signal %d)", WTERMSIG(status));
	else if (status >= 0 && WEXITSTATUS(status) == 4)
		fail(e, RP_E_UNSUPPORTED, ERROR_NO_OFFSET,
			HELPER_NAME " could not enter its sandbox (seccomp) and did not look");
	else if (status >= 0 && WEXITSTATUS(status) == 127)
		fail(e, RP_E_NOT_FOUND, ERROR_NO_OFFSET,
			HELPER_NAME " cannot run: are HDF5 and libseccomp installed?");
	else
		fail(e, RP_E_FORMAT, ERROR_NO_OFFSET,
			HELPER_NAME " ended without an answer (status %d)",
			status >= 0 ? WEXITSTATUS(status) : -1);
}

static void say_turn(struct helper *h, enum turn turn, struct error *e)
{
	if (turn == TURN_OVER) {
		say_end(h, e);
		return;
	}
	fail(e, RP_E_FORMAT, ERROR_NO_OFFSET,
		"its HDF5 part kept " HELPER_NAME " from answering for %llu s",
		(unsigned long long)h->seconds);
	reap(h, true);
}

static void say_lie(struct helper *h, struct error *e)
{
	fail(e, RP_E_FORMAT, ERROR_NO_OFFSET, HELPER_NAME " gave an answer that makes no sense");
	reap(h, true);
}

enum frame_kind helper_ask(struct helper *h, enum frame_kind kind, enum frame_kind expected,
	struct cursor *answer, struct error *e)
{
	uint8_t head[FRAME_HEAD];
	int64_t deadline = now_ms() + (int64_t)h->seconds * 1000;
	size_t n = h->n;

	*answer = cursor_over(NULL, 0);
	h->n = 0;
	if (h->socket < 0 || h->overfull) {
		fail(e, RP_E_INTERNAL, ERROR_NO_OFFSET,
			"a request to " HELPER_NAME " cannot be made");
		return 0;
	}
	put_le(head, FRAME_MAGIC, 4);
	put_le(head + 4, kind, 4);
	put_le(head + 8, n, 4);
	put_le(head + 12, ++h->number, 4);
	enum turn turn = transfer(h, head, sizeof head, true, deadline);
	if (turn == TURN_READY)
		turn = transfer(h, h->body, n, true, deadline);
	if (turn == TURN_READY)
		turn = transfer(h, head, sizeof head, false, deadline);
	if (turn != TURN_READY) {
		say_turn(h, turn, e);
		return 0;
	}
	uint32_t said = load_le32(head + 4), bytes = load_le32(head + 8);
	if (load_le32(head) != FRAME_MAGIC || load_le32(head + 12) != h->number ||
		bytes > FRAME_BODY_MAX ||
		(said != (uint32_t)expected && said != FRAME_ABSENT && said != FRAME_FAILED)) {
		say_lie(h, e);
		return 0;
	}
	turn = transfer(h, h->body, bytes, false, deadline);
	if (turn != TURN_READY) {
		say_turn(h, turn, e);
		return 0;
	}
	if (said == FRAME_FAILED) {
		fail(e, RP_E_FORMAT, ERROR_NO_OFFSET, "%.*s",
			bytes < TEXT_SHOWN ? (int)bytes : TEXT_SHOWN, (const char *)h->body);
		reap(h, true);
		return 0;
	}
	*answer = cursor_over(h->body, bytes);
	return (enum frame_kind)said;
}
