/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "base/arena.h"

#include <errno.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/size.h"

#define FIRST_BLOCK 4096u
#define LARGEST_BLOCK (16u << 20)

/* Objects from here on have a block of their own. */
#define LARGE_OBJECT (256u << 10)

/* Blocks of this size hold at least one huge page, wherever they begin. */
#define HUGE_FROM (4u << 20)
#define PAGE_BYTES 4096u

struct arena_block {
	struct arena_block *previous;
	size_t used, size;
	max_align_t data[];
};

void arena_init(struct arena *a, size_t limit)
{
	*a = (struct arena){.limit = limit};
}

void arena_release(struct arena *a)
{
	struct arena_block *block = a->last;

	while (block) {
		struct arena_block *previous = block->previous;
		free(block);
		block = previous;
	}
	a->last = NULL;
	a->held = 0;
}

void arena_prefer_huge_pages(void *block, size_t size)
{
	uintptr_t from = ((uintptr_t)block + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
	uintptr_t to = ((uintptr_t)block + size) / PAGE_BYTES * PAGE_BYTES;
	int saved = errno;

	if (size >= HUGE_FROM)
		madvise((void *)from, to - from, MADV_HUGEPAGE);
	errno = saved;
}

/*
 * Blocks double up to 16 MiB, so that a small document costs one page and a large one few mallocs.
 * A large object has a block of its own, of its own size.
 */
static struct arena_block *grow(struct arena *a, size_t size)
{
	bool large = size > LARGE_OBJECT;
	size_t wanted = a->last ? a->last->size * 2 : FIRST_BLOCK;

	if (wanted > LARGEST_BLOCK)
		wanted = LARGEST_BLOCK;
	if (wanted < size || large)
		wanted = size;
	size_t whole = size_add(wanted, sizeof(struct arena_block));
	if (whole > a->limit - a->held) {
		wanted = size;
		whole = size_add(wanted, sizeof(struct arena_block));
	}
	if (whole > a->limit - a->held || whole == SIZE_MAX)
		return NULL;
	struct arena_block *block = calloc(1, whole);
	if (!block)
		return NULL;
	arena_prefer_huge_pages(block, whole);
	block->size = wanted;
	a->held += whole;
	/* It goes below the current block, which may still have room. */
	if (a->last && large) {
		block->previous = a->last->previous;
		a->last->previous = block;
	} else {
		block->previous = a->last;
		a->last = block;
	}
	return block;
}

void *arena_alloc(struct arena *a, size_t size)
{
	const size_t align = alignof(max_align_t);

	if (size > SIZE_MAX - align)
		return NULL;
	size = size == 0 ? align : (size + align - 1) / align * align;
	struct arena_block *block = a->last;
	if (!block || size > block->size - block->used) {
		block = grow(a, size);
		if (!block)
			return NULL;
	}
	void *p = (char *)block->data + block->used;
	block->used += size;
	return p;
}

void *arena_array(struct arena *a, size_t count, size_t size)
{
	return arena_alloc(a, size_mul(count, size));
}

char *arena_strdup(struct arena *a, struct slice text)
{
	char *copy = arena_alloc(a, size_add(text.n, 1));

	if (copy && text.n)
		memcpy(copy, text.p, text.n);
	return copy;
}

char *arena_printf(struct arena *a, const char *format, ...)
{
	va_list args, again;

	va_start(args, format);
	va_copy(again, args);
	int n = vsnprintf(NULL, 0, format, args);
	va_end(args);
	char *text = n < 0 ? NULL : arena_alloc(a, (size_t)n + 1);
	if (text)
		vsnprintf(text, (size_t)n + 1, format, again);
	va_end(again);
	return text;
}
