/* SPDX-License-Identifier: MIT */
/* A team of threads that do the same to one member each of an array. */
#ifndef BASE_TEAM_H
#define BASE_TEAM_H

#include <stddef.h>

/*
 * Call `fn` on each of `count` members of `size` bytes, all at once where threads can be had, and
 * wait for all. The caller's own thread takes the first; what gets no thread is done after it.
 */
void team_run(void *members, size_t size, unsigned count, void (*fn)(void *member));

#endif
