/* SPDX-License-Identifier: MIT */
/*
 * Literals of Python's as repr() writes them: dicts, lists, tuples, texts, integers, True, False,
 * None. Parsed into the inert graph; nothing is evaluated.
 */
#ifndef CONTAINER_LITERAL_H
#define CONTAINER_LITERAL_H

#include "base/arena.h"
#include "base/error.h"
#include "value/value.h"

/*
 * Decode the whole of `text`, which may end in white space. RP_E_FORMAT with the offset in the text
 * where it is no literal, or nested too deeply. O(n); bounded by the arena.
 */
int literal_decode(struct slice text, struct arena *a, struct val *out, struct error *e);

#endif
