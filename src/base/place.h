/* SPDX-License-Identifier: MIT */
/* Where files lie, whatever paths they are called by. */
#ifndef BASE_PLACE_H
#define BASE_PLACE_H

#include <stdbool.h>

/* Whether two paths are one file or folder. False where one is not there. */
bool place_same(const char *a, const char *b);

/* Whether `path`, which need not be there yet, is `at`, or lies somewhere below it. A symbolic link
 * lies where it is, not where it leads to. */
bool place_within(const char *path, const char *at);

#endif
