/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "base/deadline.h"

#include <stddef.h>
#include <time.h>

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void deadline_set(struct deadline *d, uint64_t milliseconds)
{
	int64_t at;

	/* One that is too far away to be written down is none. */
	d->set = milliseconds <= INT64_MAX / 1000000 &&
		 !__builtin_add_overflow(now_ns(), (int64_t)milliseconds * 1000000, &at);
	d->at_ns = d->set ? at : 0;
}

bool deadline_passed(const struct deadline *d)
{
	return d && d->set && now_ns() >= d->at_ns;
}
