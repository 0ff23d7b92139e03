/* SPDX-License-Identifier: MIT */
/*
 * An arena: many small objects that die together. It fails softly: when memory or its own limit
 * runs out, allocation returns NULL and the arena stays usable.
 */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stddef.h>

#include "base/slice.h"

struct arena_block;

struct arena {
	struct arena_block *last;
	size_t held;  /* bytes taken from the system */
	size_t limit; /* never hold more than this */
};

/* `limit` is in bytes; nothing is allocated before the first use. */
void arena_init(struct arena *a, size_t limit);

/* Free everything. The arena can be used again. */
void arena_release(struct arena *a);

/* `size` zeroed bytes, aligned for any object; NULL when memory or the limit runs out. */
void *arena_alloc(struct arena *a, size_t size) __attribute__((malloc));

/* The same for an array of `count` elements; an overflowing product fails. */
void *arena_array(struct arena *a, size_t count, size_t size);

/* A NUL-terminated copy; NULL when memory runs out. */
char *arena_strdup(struct arena *a, struct slice text);

/* A formatted, NUL-terminated string; NULL when memory runs out. */
char *arena_printf(struct arena *a, const char *format, ...) __attribute__((format(printf, 2, 3)));

/*
 * Ask for huge pages where a new block is large enough: a large document fills hundreds of
 * megabytes, and half of the time would go into their page faults. The arena does so by itself. The
 * kernel may say no.
 */
void arena_prefer_huge_pages(void *block, size_t size);

#define arena_new(a, type) ((type *)arena_alloc((a), sizeof(type)))

#endif
