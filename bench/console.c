/* SPDX-License-Identifier: MIT */
/*
 * How fast a console log is read, in MB/s of processor time on one core, and how many points of its
 * loss there are: console FILE.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
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
	struct stat st;

	if (argc != 2 || stat(argv[1], &st) < 0) {
		fprintf(stderr, "usage: console FILE\n");
		return 2;
	}
	for (int i = 0; i < ROUNDS; i++) {
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
	printf("%.1f %llu\n", (double)st.st_size / best / 1e6, (unsigned long long)losses);
	return 0;
}
