/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "recorder/launch.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *from_environment(const char *name)
{
	const char *value = getenv(name);
	return value && *value ? value : NULL;
}

/* Whatever names are made of, a file's name is made of these. */
static void clean(char *name)
{
	for (char *p = name; *p; p++) {
		char c = *p;
		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
			    c == '-' || c == '_' || (c == '.' && p > name)))
			*p = '_';
	}
}

/* When a process started, in clock ticks since boot (field 22 of proc(5)'s stat); 0: not known. */
static unsigned long long start_of(pid_t pid)
{
	char path[64], text[1024];
	snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	ssize_t n = read(fd, text, sizeof text - 1);
	close(fd);
	if (n <= 0)
		return 0;
	text[n] = '\0';
	/* The second field is the program's name in parentheses, which may hold anything. */
	const char *p = strrchr(text, ')');
	for (int field = 2; p && field < 22; field++)
		p = strchr(p + 1, ' ');
	return p ? strtoull(p + 1, NULL, 10) : 0;
}

static void of_slurm(char out[LAUNCH_MAX], const char *job)
{
	const char *restart = from_environment("SLURM_RESTART_COUNT");
	const char *step = from_environment("SLURM_STEP_ID");
	const char *again = from_environment("TORCHELASTIC_RESTART_COUNT");
	snprintf(out, LAUNCH_MAX, "slurm-%.40s-%.10s%s%.10s%s%.10s", job, restart ? restart : "0",
		step ? "-" : "", step ? step : "", again ? "-" : "", again ? again : "");
}

void launch_name(char out[LAUNCH_MAX], const char *given, uint32_t world_size, const char *uuid)
{
	if (!given || !*given)
		given = from_environment("REPRISE_LAUNCH");
	const char *job = from_environment("SLURM_JOB_ID");
	const char *elastic = from_environment("TORCHELASTIC_RUN_ID");
	const char *again = from_environment("TORCHELASTIC_RESTART_COUNT");
	if (given) {
		snprintf(out, LAUNCH_MAX, "%.100s", given);
	} else if (job) {
		of_slurm(out, job);
	} else if (elastic && strcmp(elastic, "none") != 0) {
		snprintf(out, LAUNCH_MAX, "torchrun-%.60s-%.10s", elastic, again ? again : "0");
	} else if (world_size > 1) {
		pid_t parent = getppid();
		snprintf(out, LAUNCH_MAX, "local-%ld-%llu-%.10s", (long)parent, start_of(parent),
			again ? again : "0");
	} else {
		snprintf(out, LAUNCH_MAX, "%.40s", uuid);
	}
	clean(out);
}
