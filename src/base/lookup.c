/* SPDX-License-Identifier: MIT */
#include "base/lookup.h"

#include <stdlib.h>

#define FIRST_CAPACITY 64u

void lookup_release(struct lookup *l)
{
	free(l->slots);
	*l = (struct lookup){0};
}

static void put(struct lookup *l, struct lookup_slot slot)
{
	size_t mask = l->capacity - 1;
	size_t i = slot.hash & mask;

	while (l->slots[i].row != LOOKUP_NONE)
		i = (i + 1) & mask;
	l->slots[i] = slot;
}

static bool grow(struct lookup *l)
{
	struct lookup bigger = {
		.count = l->count, .capacity = l->capacity ? l->capacity * 2 : FIRST_CAPACITY};

	bigger.slots = malloc(bigger.capacity * sizeof *bigger.slots);
	if (!bigger.slots)
		return false;
	for (size_t i = 0; i < bigger.capacity; i++)
		bigger.slots[i].row = LOOKUP_NONE;
	for (size_t i = 0; i < l->capacity; i++)
		if (l->slots[i].row != LOOKUP_NONE)
			put(&bigger, l->slots[i]);
	free(l->slots);
	*l = bigger;
	return true;
}

bool lookup_add(struct lookup *l, uint64_t hash, uint32_t row)
{
	if (l->count >= l->capacity / 2 && !grow(l))
		return false;
	put(l, (struct lookup_slot){.hash = (uint32_t)(hash >> 32), .row = row});
	l->count++;
	return true;
}
