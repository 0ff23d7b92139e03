/* SPDX-License-Identifier: MIT */
/*
 * A set of names with fast look-up. It holds pointers to slices that their owners keep: make the
 * name an owner's first member, and what is found can be cast back to the owner. 8 bytes a slot, on
 * the heap.
 */
#ifndef BASE_NAMES_H
#define BASE_NAMES_H

#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

struct names {
	struct slice **slots;   /* NULL: free */
	size_t count, capacity; /* capacity is a power of two, or 0 */
	uint64_t seed;
};

/* An empty set; nothing is allocated before the first name. */
void names_init(struct names *set);

void names_release(struct names *set);

/*
 * Add a name that lives at least as long as the set. What stands under that name from then on:
 * `name` itself, or the equal one that was there before; NULL when memory ran out.
 */
struct slice *names_add(struct names *set, struct slice *name);

/* The name equal to `name`, or NULL. */
struct slice *names_find(const struct names *set, struct slice name);

#endif
