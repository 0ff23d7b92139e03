/* SPDX-License-Identifier: MIT */
/*
 * The numbers of a JSON object in place: "a":{"b":1} is the number a/b; deeper nesting, texts and
 * lists are passed over. Numbers may stand in quotes, and NaN and Infinity bare.
 */
#ifndef CURVE_MEMBERS_H
#define CURVE_MEMBERS_H

#include <stdbool.h>

#include "base/slice.h"

/* What a number is handed to; false: it cannot take it, and no more are handed over. */
typedef bool (*member_fn)(void *to, struct slice name, double value, float resolution);

/*
 * The object at `p`, an opening brace, in a text that ends with '\n', behind which base/scan.h may
 * read. Where it ends, or NULL where it is no whole object. *taken is false where `member` was.
 */
const char *members_scan(const char *p, member_fn member, void *to, bool *taken);

#endif
