/* SPDX-License-Identifier: MIT */
#include "base/names.h"

#include <stdlib.h>
#include <xxhash.h>

#define FIRST_CAPACITY 64u

void names_init(struct names *set)
{
	*set = (struct names){0};
}

void names_release(struct names *set)
{
	free(set->slots);
	*set = (struct names){0};
}

/* The slot where `name` is or would be; the table is never full. */
static size_t slot_of(const struct names *set, struct slice name)
{
	size_t mask = set->capacity - 1;
	size_t i = (size_t)XXH3_64bits_withSeed(name.p ? name.p : "", name.n, set->seed) & mask;

	while (set->slots[i] && !slice_eq(*set->slots[i], name))
		i = (i + 1) & mask;
	return i;
}

static bool grow(struct names *set)
{
	struct names bigger = {.capacity = set->capacity ? set->capacity * 2 : FIRST_CAPACITY};

	bigger.slots = calloc(bigger.capacity, sizeof(struct slice *));
	if (!bigger.slots)
		return false;
	/* Names come from files: an address makes the seed one that no file was written for. */
	bigger.seed = (uint64_t)(uintptr_t)bigger.slots;
	bigger.count = set->count;
	for (size_t i = 0; i < set->capacity; i++)
		if (set->slots[i])
			bigger.slots[slot_of(&bigger, *set->slots[i])] = set->slots[i];
	free(set->slots);
	*set = bigger;
	return true;
}

struct slice *names_add(struct names *set, struct slice *name)
{
	/* At most half full, so that probing stays short. */
	if (set->count >= set->capacity / 2 && !grow(set))
		return NULL;
	size_t i = slot_of(set, *name);
	if (!set->slots[i]) {
		set->slots[i] = name;
		set->count++;
	}
	return set->slots[i];
}

struct slice *names_find(const struct names *set, struct slice name)
{
	return set->capacity ? set->slots[slot_of(set, name)] : NULL;
}
