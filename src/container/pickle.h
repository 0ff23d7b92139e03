/* SPDX-License-Identifier: MIT */
/*
 * Pickle protocols 0 to 5 into the inert graph. Nothing is executed and nothing is imported: GLOBAL is a
 * name, REDUCE an object with callable and arguments, BUILD its state. Source: CPython Lib/pickletools.py
 * for the opcodes, PEP 307, 3154, 574.
 */
#ifndef CONTAINER_PICKLE_H
#define CONTAINER_PICKLE_H

#include "base/arena.h"
#include "base/array.h"
#include "base/error.h"
#include "base/limits.h"
#include "finding/finding.h"
#include "value/value.h"

/* Called for every persistent id; what it returns in *out stands in the graph in its place. */
typedef int pickle_persistent_fn(void *context, struct val id, struct val *out, struct error *e);

struct pickle {
	/* given */
	struct arena *arena;         /* everything decoded lives there */
	const struct limits *limits;
	uint64_t base;               /* file offset of the first byte, for errors */
	pickle_persistent_fn *persistent; /* or NULL: ids stay as VAL_PERSISTENT */
	void *context;
	/* found */
	struct val root;
	size_t end;                  /* bytes consumed, STOP included */
	int protocol;                /* highest PROTO seen, or the lowest that has all opcodes seen */
	bool truncated;              /* decoding failed because the bytes end early */
	const struct object *computed; /* the first call of something that is no named class or function, or NULL */
	uint64_t computed_offset;
	ARRAY(struct klass *) classes; /* each class or function once, in order of first mention */
};

/*
 * Decode one pickle at the start of `bytes`, which must outlive the graph (text points into it). Errors
 * name the opcode and its offset. Memory: 16 bytes a value; time linear in the bytes.
 */
int pickle_decode(struct pickle *p, struct slice bytes, struct error *e);

/* Free what decoding left on the heap (the list of classes). */
void pickle_release(struct pickle *p);

/*
 * Judge the classes and calls of a decoded pickle: I112 for callables that would run code on load, with
 * their arguments; I116 (one finding, counted) for classes that we do not know. `file` and `prefix` (the
 * member inside an archive, or "") go into the place.
 */
void pickle_judge(const struct pickle *p, const char *file, struct findings *sink);

#endif
