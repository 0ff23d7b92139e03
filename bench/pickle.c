/* SPDX-License-Identifier: MIT */
/* How fast the pickle at argv[1] is decoded, in MB per second of this process: the best of some
 * rounds. */
#define _GNU_SOURCE
#include "container/pickle.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int main(int argc, char **argv)
{
	enum { ROUNDS = 10 };
	struct limits limits = limits_default();
	FILE *f = argc == 2 ? fopen(argv[1], "rb") : NULL;
	double best = 0;

	if (!f || fseek(f, 0, SEEK_END) != 0)
		return 2;
	size_t n = (size_t)ftell(f);
	char *bytes = malloc(n + 1);
	rewind(f);
	if (!bytes || fread(bytes, 1, n, f) != n)
		return 2;
	fclose(f);
	for (int round = 0; round < ROUNDS; round++) {
		struct arena arena;
		struct error e = ERROR_INIT;
		arena_init(&arena, (size_t)limits.memory);
		struct pickle p = {.arena = &arena, .limits = &limits};
		double start = now();
		int status = pickle_decode(&p, (struct slice){bytes, n}, &e);
		double rate = (double)n / 1e6 / (now() - start);
		best = rate > best ? rate : best;
		pickle_release(&p);
		arena_release(&arena);
		if (status < 0) {
			fprintf(stderr, "%s\n", e.text);
			return 1;
		}
	}
	free(bytes);
	printf("%.1f\n", best);
	return 0;
}
