/* SPDX-License-Identifier: MIT */
/*
 * A moment after which no further unit of work is begun. Whoever streams bytes or searches asks at
 * each block, gives up the unit that it is in, and says that the unit was not looked at: what is
 * half seen is not seen.
 */
#ifndef BASE_DEADLINE_H
#define BASE_DEADLINE_H

#include <stdbool.h>
#include <stdint.h>

/* Zeroed: none. */
struct deadline {
	bool set;
	int64_t at_ns; /* of the monotonic clock */
};

/* `milliseconds` from now. */
void deadline_set(struct deadline *d, uint64_t milliseconds);

/*
 * Whether it has passed; once it has, it stays so. Never where `d` is NULL or none is set. Cost: a
 * clock that is read without entering the kernel, some 25 ns.
 */
bool deadline_passed(const struct deadline *d);

#endif
