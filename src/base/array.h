/* SPDX-License-Identifier: MIT */
/*
 * Growing arrays on the heap: `ARRAY(struct fact) facts;` then array_push(&facts, max). A zeroed
 * array is empty; every array has a largest length from birth. One allocation per doubling.
 */
#ifndef BASE_ARRAY_H
#define BASE_ARRAY_H

#include <stdbool.h>
#include <stddef.h>

#define ARRAY(type)                                                                                \
	struct {                                                                                   \
		type *items;                                                                       \
		size_t count, capacity;                                                            \
	}

/* Make room for `need` elements in all. False when memory or `max` runs out; nothing changes then.
 */
bool array_reserve_(void **items, size_t *capacity, size_t need, size_t size, size_t max);

/* A pointer to a new zeroed last element, or NULL when memory or `max` runs out. */
void *array_push_(void **items, size_t *count, size_t *capacity, size_t size, size_t max);

#define array_reserve(a, need, max)                                                                \
	array_reserve_((void **)&(a)->items, &(a)->capacity, (need), sizeof *(a)->items, (max))
#define array_push(a, max)                                                                         \
	((__typeof__((a)->items))array_push_(                                                      \
		(void **)&(a)->items, &(a)->count, &(a)->capacity, sizeof *(a)->items, (max)))
#define array_release(a)                                                                           \
	do {                                                                                       \
		free((a)->items);                                                                  \
		(a)->items = NULL;                                                                 \
		(a)->count = (a)->capacity = 0;                                                    \
	} while (0)

#endif
