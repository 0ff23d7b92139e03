/* SPDX-License-Identifier: MIT */
/*
 * Calls for memory, files, bytes, processes and threads fail once, and once together with all that
 * follow, while the tool's commands run on small real checkpoints: fault FOLDER, which holds
 * copies of them. Nothing may crash, leak or hang, no half of a file may be left, the answer may
 * not be a better one than the true one, and something must be said.
 */
#define _GNU_SOURCE
#include "fault/faults.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int reprise_main(int argc, char **argv);
extern int optind;

#define ARGUMENTS_MAX 12
#define CAPTURE_MAX ((size_t)1 << 20)
#define SECONDS_MAX 20u
#define FAILURES_SHOWN 20u
/* Calls are failed one by one up to this many, and beyond that ever fewer: neighbours are mostly
 * alike, and so are the pieces of one message to the helper. Each of them with FAULT_ALL in the
 * environment. */
#define EACH_UP_TO 40u
#define HELPED_UP_TO 8u /* where each run starts the helper, which takes its time */
#define MESSAGES_UP_TO 4u

static const struct command {
	const char *arguments[ARGUMENTS_MAX];
	const char *output; /* a file that it writes below out/, or NULL */
	int status;         /* of the true answer */
	bool helps;         /* it needs the helper */
} commands[] = {
#define COMMAND(status, output, ...) {{"reprise", __VA_ARGS__}, output, status, false},
#define HELPED(status, output, ...) {{"reprise", __VA_ARGS__}, output, status, true},
#include "fault/commands.def"
#undef COMMAND
#undef HELPED
};

/* What one run left. */
struct run {
	int status;
	size_t out_size, error_size, file_size;
	char out[CAPTURE_MAX], error[CAPTURE_MAX], file[CAPTURE_MAX];
	bool file_there;
	unsigned others; /* other files in out/ */
	long blocks, descriptors;
};

/* What the parent must know when a child has died. */
struct progress {
	size_t n, runs, failures;
	bool done;
};

static int capture_out, capture_error;
static struct run truth, now;
static char other[CAPTURE_MAX];
static struct progress *progress;
static bool all; /* every single call */

static size_t read_file(int fd, char *buffer)
{
	ssize_t n = pread(fd, buffer, CAPTURE_MAX, 0);

	return n < 0 ? 0 : (size_t)n;
}

/* A report tells what became of a run, so it has no one true content. */
static bool is_report(const char *name)
{
	const char *dot = strrchr(name, '.');

	return dot && strcmp(dot, ".json") == 0;
}

static bool is_whole_report(const char *name, const char *content, size_t size)
{
	return is_report(name) && size > 2 && memcmp(content + size - 2, "}\n", 2) == 0;
}

static void look_at_folder(struct run *r, const char *output)
{
	DIR *d = opendir("out");
	struct dirent *entry;

	r->file_there = false;
	r->file_size = r->others = 0;
	while (d && (entry = readdir(d))) {
		char path[600];
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		snprintf(path, sizeof path, "out/%s", entry->d_name);
		bool wanted = output && strcmp(entry->d_name, output) == 0;
		int fd = open(path, O_RDONLY);
		char *content = wanted ? r->file : other;
		size_t size = read_file(fd, content);
		close(fd);
		r->file_there = r->file_there || wanted;
		r->file_size = wanted ? size : r->file_size;
		r->others += !wanted && !is_whole_report(entry->d_name, content, size);
		unlink(path);
	}
	if (d)
		closedir(d);
}

static void run_once(
	const struct command *c, struct run *r, enum fault_kind kind, size_t n, bool on)
{
	char *arguments[ARGUMENTS_MAX + 1] = {NULL};
	int count = 0;
	long blocks = faults_live_blocks(), descriptors = faults_live_descriptors();

	for (; count < ARGUMENTS_MAX && c->arguments[count]; count++)
		arguments[count] = strdup(c->arguments[count]);
	if (ftruncate(capture_out, 0) < 0 || ftruncate(capture_error, 0) < 0)
		abort();
	lseek(capture_out, 0, SEEK_SET);
	lseek(capture_error, 0, SEEK_SET);
	optind = 0;
	alarm(SECONDS_MAX);
	faults_set(kind, n, on);
	r->status = reprise_main(count, arguments);
	fflush(NULL);
	alarm(0);
	r->blocks = faults_live_blocks() - blocks;
	r->descriptors = faults_live_descriptors() - descriptors;
	r->out_size = read_file(capture_out, r->out);
	r->error_size = read_file(capture_error, r->error);
	look_at_folder(r, c->output);
	for (int i = 0; i < count; i++)
		free(arguments[i]);
}

static void complain(
	const struct command *c, enum fault_kind kind, size_t n, bool on, const char *what)
{
	static char text[2048];
	size_t used = 0;

	if (progress->failures++ >= FAILURES_SHOWN)
		return;
	for (int i = 1; i < ARGUMENTS_MAX && c->arguments[i]; i++)
		used += (size_t)snprintf(text + used, sizeof text - used, "%s ", c->arguments[i]);
	dprintf(3, "FAIL %s: %s %zu fails%s: %s\n", text, fault_names[kind], n,
		on ? " and all that follow" : "", what);
}

static bool is_whole_file(const struct command *c)
{
	if (is_report(c->output))
		return is_whole_report(c->output, now.file, now.file_size);
	return now.file_size == truth.file_size && memcmp(now.file, truth.file, now.file_size) == 0;
}

static void hold_against_truth(const struct command *c, enum fault_kind kind, size_t n, bool on)
{
	bool same = now.out_size == truth.out_size && memcmp(now.out, truth.out, now.out_size) == 0;
	char text[400];

	if (now.status < 0 || now.status > 5 || now.status == 2 || now.status == 4) {
		snprintf(text, sizeof text, "exit status %d: %.300s", now.status, now.error);
		complain(c, kind, n, on, text);
	}
	if (now.status == 0 && (truth.status != 0 || !same)) {
		snprintf(text, sizeof text, "a false pass: %.300s", now.out);
		complain(c, kind, n, on, text);
	}
	bool mute = kind == FAULT_WRITE && on;
	if (now.status != truth.status && now.out_size + now.error_size == 0 && !mute)
		complain(c, kind, n, on, "nothing is said");
	if (now.blocks != 0 || now.descriptors != 0) {
		snprintf(text, sizeof text, "%ld blocks and %ld descriptors are not given back",
			now.blocks, now.descriptors);
		complain(c, kind, n, on, text);
	}
	if (now.others > 0)
		complain(c, kind, n, on, "a file is left");
	if (now.file_there && !is_whole_file(c))
		complain(c, kind, n, on, "part of the file is left");
	/* A history that cannot be kept fails no gate, but it is said. */
	bool told = memmem(now.error, now.error_size, "it is not kept in", 17) != NULL;
	if (c->output && now.status == 0 && !now.file_there && !told)
		complain(c, kind, n, on, "no file, and status 0");
	if (memchr(now.out, 0, now.out_size) || memchr(now.error, 0, now.error_size))
		complain(c, kind, n, on, "a zero byte in the answer");
}

static size_t next_call(const struct command *c, enum fault_kind kind, size_t n)
{
	size_t each = kind == FAULT_PROCESS ? MESSAGES_UP_TO : c->helps ? HELPED_UP_TO : EACH_UP_TO;

	return all ? n + 1 : n + 1 + n / each;
}

/* From call `n` on, as long as the child lives. */
static void child(const struct command *c, enum fault_kind kind, size_t n, size_t count, bool on)
{
	dup2(capture_out, 1);
	dup2(capture_error, 2);
	while (n <= count) {
		progress->n = n;
		run_once(c, &now, kind, n, on);
		progress->runs++;
		hold_against_truth(c, kind, n, on);
		n = next_call(c, kind, n);
	}
	progress->done = true;
	/* So that a leak checker looks. */
	exit(0);
}

static void fail_each(const struct command *c, enum fault_kind kind, size_t count, bool on)
{
	progress->done = false;
	for (size_t n = 1; !progress->done && n <= count; n = next_call(c, kind, progress->n)) {
		int status;
		fflush(NULL);
		pid_t pid = fork();
		if (pid == 0)
			child(c, kind, n, count, on);
		if (pid < 0 || waitpid(pid, &status, 0) < 0)
			abort();
		if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
			continue;
		char text[100];
		snprintf(text, sizeof text,
			WIFSIGNALED(status) ? "killed by signal %d" : "ended with %d",
			WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
		complain(c, kind, progress->n, on, text);
		if (progress->done)
			break;
	}
}

/* The true answer, in a child too: it fills the counts of calls. */
static bool find_truth(const struct command *c, size_t counts[FAULT_KINDS])
{
	int out = dup(1), error = dup(2);

	fflush(NULL);
	dup2(capture_out, 1);
	dup2(capture_error, 2);
	run_once(c, &truth, 0, 0, false);
	dup2(out, 1);
	dup2(error, 2);
	close(out);
	close(error);
	for (int k = 0; k < FAULT_KINDS; k++)
		counts[k] = faults_counted((enum fault_kind)k);
	if (truth.status == c->status && truth.blocks == 0 && truth.descriptors == 0 &&
		truth.others == 0)
		return true;
	printf("FAIL %s %s: status %d, %ld blocks, %ld descriptors, %u files: %.*s\n",
		c->arguments[1], c->arguments[2], truth.status, truth.blocks, truth.descriptors,
		truth.others, (int)truth.error_size, truth.error);
	return false;
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* One run by itself, for a debugger: number of the command, kind and number of the call, "once" or
 * "on". */
static int show_one(char **argv)
{
	const struct command *c =
		&commands[atoi(argv[2]) % (int)(sizeof commands / sizeof *commands)];
	int kind = 0;

	while (kind + 1 < FAULT_KINDS && strcmp(fault_names[kind], argv[3]) != 0)
		kind++;
	run_once(c, &now, (enum fault_kind)kind, (size_t)atoi(argv[4]), strcmp(argv[5], "on") == 0);
	printf("status %d, %ld blocks, %ld descriptors\n", now.status, now.blocks, now.descriptors);
	return 0;
}

int main(int argc, char **argv)
{
	size_t failures = 0, runs = 0;
	const char *only = argc > 2 ? argv[2] : NULL;

	if (argc < 2 || chdir(argv[1]) < 0 || (mkdir("out", 0777) < 0 && errno != EEXIST)) {
		fputs("usage: fault FOLDER [COMMAND | NUMBER KIND CALL once|on]\n", stderr);
		return 2;
	}
	dup2(1, 3);
	all = getenv("FAULT_ALL") != NULL;
	capture_out = memfd_create("out", MFD_CLOEXEC);
	capture_error = memfd_create("error", MFD_CLOEXEC);
	progress = mmap(
		NULL, sizeof *progress, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (capture_out < 0 || capture_error < 0 || progress == MAP_FAILED)
		return 2;
	if (argc == 6)
		return show_one(argv);
	for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
		const struct command *c = &commands[i];
		size_t counts[FAULT_KINDS];
		double start = seconds();
		if (only && strcmp(only, c->arguments[1]) != 0)
			continue;
		memset(progress, 0, sizeof *progress);
		if (!find_truth(c, counts)) {
			failures++;
			continue;
		}
		for (int k = 0; k < FAULT_KINDS; k++)
			for (int on = 0; on < 2; on++)
				fail_each(c, (enum fault_kind)k, counts[k], on);
		failures += progress->failures;
		runs += progress->runs;
		if (getenv("FAULT_VERBOSE"))
			printf("%s %s: %zu runs, %.1f s (%zu %zu %zu %zu %zu)\n", c->arguments[1],
				c->arguments[2], progress->runs, seconds() - start, counts[0],
				counts[1], counts[2], counts[3], counts[4]);
	}
	printf("%zu runs with faults, %zu failed\n", runs, failures);
	return failures > 0 || runs == 0;
}
