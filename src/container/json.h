/* SPDX-License-Identifier: MIT */
/*
 * JSON (RFC 8259) into the inert graph, with what Python's json module writes beside it: NaN, Infinity,
 * -Infinity, integers of any size. Duplicate keys are kept and reported by their count.
 */
#ifndef CONTAINER_JSON_H
#define CONTAINER_JSON_H

#include "base/arena.h"
#include "base/error.h"
#include "base/limits.h"
#include "value/value.h"

/* Decode the whole of `text`, which must outlive the graph. Errors carry offset, line and column. */
int json_decode(struct slice text, struct arena *a, const struct limits *limits, struct val *out,
	uint64_t *duplicates, struct error *e);

#endif
