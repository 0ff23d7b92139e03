/* SPDX-License-Identifier: MIT */
#include "base/team.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

struct task {
	pthread_t thread;
	bool started;
	void *member;
	void (*fn)(void *member);
};

static void *run_task(void *context)
{
	struct task *t = context;

	t->fn(t->member);
	return NULL;
}

void team_run(void *members, size_t size, unsigned count, void (*fn)(void *member))
{
	struct task *tasks = count > 1 ? calloc(count, sizeof *tasks) : NULL;

	for (unsigned i = 0; i < count && tasks; i++) {
		struct task *t = &tasks[i];
		t->member = (char *)members + size * i;
		t->fn = fn;
		t->started = i > 0 && pthread_create(&t->thread, NULL, run_task, t) == 0;
	}
	for (unsigned i = 0; i < count; i++)
		if (!tasks || !tasks[i].started)
			fn((char *)members + size * i);
	for (unsigned i = 0; i < count && tasks; i++)
		if (tasks[i].started)
			pthread_join(tasks[i].thread, NULL);
	free(tasks);
}
