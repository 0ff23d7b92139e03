/* SPDX-License-Identifier: MIT */
/*
 * Pickle protocols 0 to 5 into the inert graph. Nothing is executed and nothing is imported: GLOBAL
 * is a name, REDUCE an object with callable and arguments, BUILD its state. Source: CPython
 * Lib/pickletools.py for the opcodes, PEP 307, 3154, 574.
 *
 * Calls that only make plain data are what they make: set([1]) is a SET, frozenset, list, tuple and
 * dict alike, torch.Size a TUPLE; bytes, bytearray and _codecs.encode(text, 'latin1') are BYTES;
 * copyreg._reconstructor(C, …) is an object of C. An extension code is the class copyreg."extension
 * N"; an out-of-band buffer, which is not in the file, the object pickle.PickleBuffer(N).
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

/* What loading would do that the graph may not show, since results can be thrown away. */
struct pickle_deed {
	enum pickle_deed_kind {
		PICKLE_CALLS,   /* calls `what` with the arguments `with` */
		PICKLE_CHANGES, /* puts items or attributes (`with`) into the class `what` */
		PICKLE_PLANTS,  /* has BUILD call `what`, the state's own __setstate__ */
	} kind;
	struct val what, with;
	struct object *made; /* by the call, or NULL */
	uint64_t offset;     /* of the opcode in the file */
};

struct pickle {
	/* given */
	struct arena *arena; /* everything decoded lives there */
	const struct limits *limits;
	uint64_t base;                    /* file offset of the first byte, for errors */
	pickle_persistent_fn *persistent; /* or NULL: ids stay as VAL_PERSISTENT */
	void *context;
	/* found */
	struct val root;
	size_t end;      /* bytes consumed, STOP included */
	int protocol;    /* highest PROTO seen, or the lowest that has all opcodes seen */
	bool truncated;  /* decoding failed because the bytes end early … */
	uint64_t needed; /* … and this many are needed at the least */
	ARRAY(struct klass *) classes; /* each class or function once, in order of first mention */
	ARRAY(struct pickle_deed) deeds; /* those that pickle_judge() has to look at */
};

/*
 * Decode one pickle at the start of `bytes`, which must outlive the graph (text points into it).
 * Errors name the opcode and its offset: RP_E_FORMAT for what is malformed (see
 * `truncated`), RP_E_LIMIT, RP_E_MEMORY, RP_E_UNSUPPORTED for newer protocols. What was found until
 * then (classes, deeds) stays and can be judged. Memory: 16 bytes a value; time linear in the
 * bytes.
 */
int pickle_decode(struct pickle *p, struct slice bytes, struct error *e);

/* Free what decoding left on the heap: the lists of classes and deeds. */
void pickle_release(struct pickle *p);

/*
 * Judge the classes and calls of a pickle, decoded or broken off: I112 for what would run code on
 * load, with its arguments; I116 (one finding, counted) for classes that we do not know, and one
 * for dangerous ones that are named but not called. `file` goes into the place.
 */
void pickle_judge(const struct pickle *p, const char *file, struct findings *sink);

/*
 * Look up a class in pickle_classes.def, once, when it is first seen: sets judged and watched. (For
 * the decoder; pickle_judge() builds on it.)
 */
void pickle_know(struct klass *k);

/*
 * Whether a call of a watched class is harmless at a glance, such as defaultdict(list), of which
 * there may be millions.
 */
bool pickle_is_idle(struct klass *k, struct val args);

#endif
