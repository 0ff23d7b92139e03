/* SPDX-License-Identifier: MIT */
/*
 * How fast a loss log is read, in MB/s of processor time on one core, how many points of its loss
 * there are, and the most memory held, in MB: console FILE [ROUNDS].
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

#include "curve/curve.h"

#define ROUNDS 5

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static uint64_t losses_of(const struct curve_log *l)
{
	uint64_t n = 0;

	for (size_t i = 0; i < l->series.count; i++)
		if (l->series.items[i].role == CURVE_LOSS)
			n += l->series.items[i].points;
	return n;
}

int main(int argc, char **argv)
{
	struct limits limits = limits_default();
	struct curve_options options = {.limits = &limits};
	double best = 1e30;
	uint64_t losses = 0;
	struct rusage usage;
	struct stat st;
	int rounds = argc > 2 ? (int)strtol(argv[2], NULL, 10) : ROUNDS;

	if (argc < 2 || stat(argv[1], &st) < 0) {
		fprintf(stderr, "usage: console FILE [ROUNDS]\n");
		return 2;
	}
	for (int i = 0; i < rounds; i++) {
		const char *path = argv[1];
		struct curve_log l;
		struct error e = ERROR_INIT;
		double start = seconds();
		if (curve_open(&l, &path, 1, &options, &e) < 0) {
			fprintf(stderr, "%s: %s\n", path, e.text);
			return 1;
		}
		double taken = seconds() - start;
		best = taken < best ? taken : best;
		losses = losses_of(&l);
		curve_release(&l);
	}
	getrusage(RUSAGE_SELF, &usage);
	printf("%.1f %llu %.1f\n", (double)st.st_size / best / 1e6, (unsigned long long)losses,
		(double)usage.ru_maxrss / 1e3);
	return 0;
}
