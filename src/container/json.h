/* SPDX-License-Identifier: MIT */
/*
 * JSON (RFC 8259) into the inert graph, with what Python's json module writes beside it: NaN,
 * Infinity, -Infinity, integers of any size. Duplicate keys are kept and reported by their count.
 */
#ifndef CONTAINER_JSON_H
#define CONTAINER_JSON_H

#include "base/arena.h"
#include "base/error.h"
#include "base/limits.h"
#include "value/value.h"

/* Longer integers are refused, as Python does: turning them into bits takes quadratic time. */
#define JSON_INT_DIGITS_MAX 4300

/*
 * Decode the whole of `text`, which must outlive the graph: keys and texts without escapes point
 * into it. A byte order mark is skipped. \u escapes of surrogates that have no partner stay as the
 * three bytes that Python's surrogatepass gives.
 *
 * `duplicates` (may be NULL) receives the number of keys that were there before in the same object.
 * Errors carry offset, line and column; where the text just ends too early, the offset is text.n.
 */
int json_decode(struct slice text, struct arena *a, const struct limits *limits, struct val *out,
	uint64_t *duplicates, struct error *e);

#endif
