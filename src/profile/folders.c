/* SPDX-License-Identifier: MIT */
#include "profile/folders.h"

#include <stdlib.h>
#include <string.h>

bool folders_make(struct folders *t, struct arena *arena, const struct listing *l)
{
	size_t files = l->files.count, dirs = l->dirs.count;

	*t = (struct folders){.l = l,
		.start = arena_array(arena, dirs + 2, sizeof *t->start),
		.files = arena_array(arena, files + 1, sizeof *t->files),
		.child = arena_array(arena, dirs + 1, sizeof *t->child),
		.next = arena_array(arena, dirs + 1, sizeof *t->next),
		.out = arena_array(arena, files + 1, sizeof *t->out)};
	if (!t->start || !t->files || !t->child || !t->next || !t->out)
		return false;
	for (size_t i = 0; i < files; i++)
		t->start[l->files.items[i].dir + 2]++;
	for (size_t d = 0; d < dirs; d++)
		t->start[d + 2] += t->start[d + 1];
	/* start[d + 1] runs from the first to behind the last of folder d, and becomes start of the
	 * next. */
	for (uint32_t i = 0; i < files; i++)
		t->files[t->start[l->files.items[i].dir + 1]++] = i;
	for (uint32_t d = (uint32_t)dirs; d-- > 1;) {
		uint32_t parent = l->dirs.items[d].parent;
		t->next[d] = t->child[parent];
		t->child[parent] = d;
	}
	return true;
}

size_t folders_files_of(const struct folders *t, uint32_t dir, size_t count)
{
	size_t own = t->start[dir + 1] - t->start[dir];

	memcpy(t->out + count, t->files + t->start[dir], own * sizeof *t->out);
	return count + own;
}

static int compare_indices(const void *pa, const void *pb)
{
	uint32_t a = *(const uint32_t *)pa, b = *(const uint32_t *)pb;
	return (a > b) - (a < b);
}

/* The folder behind `d` in a walk through all that lie below `top`, or `top` at the end. */
static uint32_t next_below(const struct folders *t, uint32_t d, uint32_t top)
{
	if (t->child[d])
		return t->child[d];
	while (d != top && !t->next[d])
		d = t->l->dirs.items[d].parent;
	return d == top ? top : t->next[d];
}

size_t folders_files_below(const struct folders *t, uint32_t dir, bool deep)
{
	size_t count = folders_files_of(t, dir, 0);

	if (!deep || !t->child[dir])
		return count;
	for (uint32_t d = t->child[dir]; d != dir; d = next_below(t, d, dir))
		count = folders_files_of(t, d, count);
	qsort(t->out, count, sizeof *t->out, compare_indices);
	return count;
}
