/* SPDX-License-Identifier: MIT */
/*
 * Run every file of <corpus>/<target>/ through its target, each in a process of its own so that one
 * that stops does not hide the others.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fuzz/fuzz.h"

#define SECONDS_EACH 60u
#define FILE_MAX ((long)1 << 24)

static const struct {
	const char *name;
	int (*run)(const uint8_t *data, size_t size);
} targets[] = {
#define TARGET(name) {#name, fuzz_##name},
#include "fuzz/targets.def"
#undef TARGET
};

/* The whole file, in a block of exactly its size so that a sanitizer sees every step over the end.
 */
static uint8_t *load(const char *path, size_t *size)
{
	FILE *f = fopen(path, "rb");
	uint8_t *bytes = NULL;
	long n = -1;

	if (f && fseek(f, 0, SEEK_END) == 0)
		n = ftell(f);
	if (n >= 0 && n <= FILE_MAX && fseek(f, 0, SEEK_SET) == 0)
		bytes = malloc(n ? (size_t)n : 1);
	if (bytes && fread(bytes, 1, (size_t)n, f) != (size_t)n) {
		free(bytes);
		bytes = NULL;
	}
	if (f)
		fclose(f);
	*size = bytes ? (size_t)n : 0;
	return bytes;
}

static bool replay(const char *path, int (*run)(const uint8_t *data, size_t size))
{
	size_t size;
	uint8_t *bytes = load(path, &size);
	int status = -1;

	if (!bytes) {
		fprintf(stderr, "%s: cannot be read\n", path);
		return false;
	}
	fflush(NULL);
	pid_t child = fork();
	if (child == 0) {
		alarm(SECONDS_EACH);
		run(bytes, size);
		free(bytes);
		exit(EXIT_SUCCESS);
	}
	free(bytes);
	if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
		fprintf(stderr, "%s: %s %d\n", path, WIFSIGNALED(status) ? "signal" : "exit status",
			WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
		return false;
	}
	return true;
}

static int is_visible(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

int main(int argc, char **argv)
{
	unsigned passed = 0, failed = 0;

	if (argc != 2) {
		fprintf(stderr, "usage: fuzz-replay <corpus>\n");
		return 2;
	}
	for (size_t i = 0; i < sizeof targets / sizeof targets[0]; i++) {
		char folder[512], path[1024];
		struct dirent **entries;
		snprintf(folder, sizeof folder, "%s/%s", argv[1], targets[i].name);
		int n = scandir(folder, &entries, is_visible, alphasort);
		if (n <= 0) {
			fprintf(stderr, "%s: no corpus\n", folder);
			failed++;
			continue;
		}
		for (int k = 0; k < n; k++) {
			snprintf(path, sizeof path, "%s/%s", folder, entries[k]->d_name);
			if (replay(path, targets[i].run))
				passed++;
			else
				failed++;
			free(entries[k]);
		}
		free(entries);
	}
	printf("%u passed, %u failed\n", passed, failed);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
