/* SPDX-License-Identifier: MIT */
/*
 * reprise-h5: reads and writes HDF5 for reprise, in a process of its own, since one flipped byte
 * can crash or hang libhdf5. It is started by reprise with a socket and one open file, gives up all
 * else before it looks at either, and answers requests (columns/frame.h) until the socket closes.
 * It opens no path, prints nothing, and leaves when something is not as it should be.
 */
#include <errno.h>
#include <hdf5.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "h5/h5_columns.h"
#include "h5/h5_driver.h"
#include "h5/h5_sandbox.h"

#define EXIT_USAGE 2   /* not started by reprise */
#define EXIT_LIBRARY 3 /* HDF5 or memory failed at the start */
#define EXIT_SANDBOX 4 /* the sandbox could not be entered */
#define EXIT_FRAME 5   /* a request that makes no sense */

/* False at the end of what is sent, and for a part that stops in the middle. */
static bool read_whole(void *buffer, size_t n)
{
	char *p = buffer;

	while (n > 0) {
		ssize_t got = read(HELPER_SOCKET, p, n);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return false;
		p += got;
		n -= (size_t)got;
	}
	return true;
}

static bool write_whole(const void *buffer, size_t n)
{
	const char *p = buffer;

	while (n > 0) {
		ssize_t put = write(HELPER_SOCKET, p, n);
		if (put < 0 && errno == EINTR)
			continue;
		if (put <= 0)
			return false;
		p += put;
		n -= (size_t)put;
	}
	return true;
}

static void store_le32(uint8_t *p, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		p[i] = (uint8_t)(v >> 8 * i);
}

static bool send_answer(struct h5_session *s, enum frame_kind kind, uint32_t number)
{
	uint8_t head[FRAME_HEAD];

	if (kind == FRAME_FAILED) {
		s->n = strlen(s->fail);
		memcpy(s->buffer, s->fail, s->n);
	}
	store_le32(head, FRAME_MAGIC);
	store_le32(head + 4, kind);
	store_le32(head + 8, (uint32_t)s->n);
	store_le32(head + 12, number);
	return write_whole(head, sizeof head) && write_whole(s->buffer, s->n);
}

/* Answer until the other side has gone; returns the exit status. */
static int serve(struct h5_session *s, uint8_t *body)
{
	uint8_t head[FRAME_HEAD];

	while (read_whole(head, sizeof head)) {
		uint32_t kind = load_le32(head + 4), n = load_le32(head + 8);
		if (load_le32(head) != FRAME_MAGIC || n > FRAME_BODY_MAX || !read_whole(body, n))
			return EXIT_FRAME;
		struct cursor c = cursor_over(body, n);
		enum frame_kind answer = h5_answer(s, kind, &c);
		if (!send_answer(s, answer, load_le32(head + 12)) || answer == FRAME_FAILED)
			break;
	}
	return EXIT_SUCCESS;
}

static bool take_number(const char *text, uint64_t *out)
{
	char *end;

	errno = 0;
	*out = strtoull(text, &end, 10);
	return errno == 0 && *text >= '0' && *text <= '9' && *end == '\0';
}

/*
 * No plugin is ever loaded, and none is looked for either: where a file is not to be opened,
 * HDF5 1.14 reads the folders of plugins for another reader of it, whatever the loading state says.
 */
static bool refuse_plugins(void)
{
	unsigned folders;

	if (H5PLset_loading_state(0) < 0 || H5PLsize(&folders) < 0)
		return false;
	while (folders > 0)
		if (H5PLremove(--folders) < 0)
			return false;
	return true;
}

int main(int argc, char **argv)
{
	uint64_t memory, seconds, bytes;
	struct h5_session s = {.file = -1, .column = -1, .buffer = malloc(FRAME_BODY_MAX)};
	uint8_t *body = malloc(FRAME_BODY_MAX);

	if (argc != HELPER_ARGUMENTS || !take_number(argv[1], &memory) ||
		!take_number(argv[2], &seconds) || !take_number(argv[3], &bytes)) {
		static const char text[] =
			"reprise-h5 is a part of reprise, which starts it where it needs it\n";
		return write(STDERR_FILENO, text, sizeof text - 1) < 0 ? EXIT_LIBRARY : EXIT_USAGE;
	}
	s.writing = bytes > 0;
	/* A file that may not grow further is an error that can be told. */
	signal(SIGXFSZ, SIG_IGN);
	/* Errors are answers: HDF5 prints none. */
	if (!s.buffer || !body || H5open() < 0 || !refuse_plugins() ||
		H5Eset_auto2(H5E_DEFAULT, NULL, NULL) < 0 ||
		(s.access = h5_driver_access(HELPER_FILE, s.writing)) < 0)
		return EXIT_LIBRARY;
	if (!h5_sandbox_enter(memory, seconds, bytes))
		return EXIT_SANDBOX;
	int status = serve(&s, body);
	/* HDF5's own clean-up has nothing left to do, and would walk what a hostile file made. */
	_exit(status);
}
