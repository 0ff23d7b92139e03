/* SPDX-License-Identifier: MIT */
/* clang-format off */
/*
 * Paths into the inert graph: what people type and what is printed, in one language.
 *
 *   name  .name         the part under a text key; digits are also an integer key or an index
 *   ["any text"]        the same for any text, with JSON's escapes and \xNN; 'single quotes' will do
 *   [1]  [-1]           an integer key, or an index, from the end where negative
 *   [#2]                the third part, whatever its key is
 *   *  .*  [*]          every part
 *   **  .**  [**]       any number of levels, none included; at the end: all values without parts
 *
 * The dot before the first name may be left out; the empty path and "." are the root. Keys of state
 * dicts have dots of their own ("layers.0.weight"): names, * and ** outside of quotes also match the
 * pieces of such a key, so that model.layers.0.weight, model.**.weight and model.layers.*.weight do
 * what they look like. Printed paths quote such keys.
 */
/* clang-format on */
#ifndef VALUE_PATH_H
#define VALUE_PATH_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/strbuf.h"
#include "value/value.h"

#define PATH_SEGMENTS_MAX 63

enum path_kind {
	PATH_NAME,
	PATH_INDEX,   /* integer key or index */
	PATH_ORDINAL, /* position among the parts */
	PATH_EVERY,   /* * */
	PATH_DEEP,    /* ** */
};

struct path_segment {
	enum path_kind kind;
	bool quoted;       /* NAME: matches a whole key only */
	bool numeric;      /* NAME: its digits are `index` too */
	struct slice name; /* NAME */
	int64_t index;     /* INDEX, ORDINAL, numeric NAME */
};

struct path {
	struct path_segment segments[PATH_SEGMENTS_MAX];
	size_t count;
};

/*
 * Parse `text`, which must outlive the path; names with escapes are decoded into the arena. On
 * failure e->offset is the byte of `text` that makes no sense.
 */
int path_parse(struct path *p, struct slice text, struct arena *a, struct error *e);

/* One step from a value into its part number `index`. */
struct path_step {
	struct val key; /* as val_part() gives it */
	uint64_t index;
};

/* Append what a step or a whole way looks like when typed. Nothing in it disturbs a terminal. */
void path_add_step(struct strbuf *b, struct path_step step);
void path_add_steps(struct strbuf *b, const struct path_step *steps, size_t count);

/* The same for a key alone; a key that is neither text nor integer cannot be typed and becomes [?].
 */
void path_add_key(struct strbuf *b, struct val key);

/* Called for each match, in file order. False ends the walk. */
typedef bool path_visit_fn(
	void *context, struct val v, const struct path_step *steps, size_t count);

/*
 * Find every value below `root` whose path matches. A container is not entered again inside itself.
 * At most limits->nodes parts are looked at, down to limits->depth levels. False when that, or
 * memory, did not suffice: there may be more matches. Of equal keys in a dict a path without *
 * finds the last, as Python would.
 */
bool path_match(const struct path *p, struct val root, const struct limits *limits,
	path_visit_fn *visit, void *context);

#endif
