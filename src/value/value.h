/* SPDX-License-Identifier: MIT */
/*
 * The inert graph that a pickle or a JSON text decodes into. Nothing in it is ever executed: a
 * class is its name, an object is its class, its arguments and its state.
 *
 * A val is 16 bytes and is passed by value. Immediates stand in it; text and bytes point into the
 * file's bytes or the arena; containers are shared nodes, so the graph may hold cycles and may
 * expand exponentially when walked: every walk has a budget.
 */
#ifndef VALUE_VALUE_H
#define VALUE_VALUE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/slice.h"
#include "value/tensor.h"

enum val_kind {
	VAL_ABSENT, /* nothing there: what a failed look-up returns */
	VAL_NONE,
	VAL_BOOL,
	VAL_INT,
	VAL_BIGINT, /* an integer that does not fit 64 bits: little-endian two's complement bytes */
	VAL_FLOAT,
	VAL_TEXT, /* UTF-8 as found, surrogates allowed */
	VAL_BYTES,
	VAL_LIST,
	VAL_TUPLE,
	VAL_DICT, /* kids alternate key, value, in file order; duplicate keys are kept */
	VAL_SET,
	VAL_FROZENSET,
	VAL_CLASS,      /* a reference to a class or function by name */
	VAL_OBJECT,     /* what a call or instantiation would have made */
	VAL_PERSISTENT, /* a persistent id; one kid: the id. n > 0 while a container has a use for
			   it */
	VAL_TENSOR,     /* an array: located, not loaded */
};

struct node;
struct object;
struct klass;

struct val {
	uint8_t kind; /* enum val_kind */
	uint8_t unused;
	uint16_t aux;
	uint32_t n; /* bytes of TEXT, BYTES, BIGINT */
	union {
		int64_t i; /* INT, BOOL */
		double f;
		const char *s;
		struct node *node; /* LIST … FROZENSET, PERSISTENT */
		struct object *object;
		struct klass *klass;
		struct tensor *tensor;
	};
};

_Static_assert(sizeof(struct val) == 16, "a val is two words");

/* Kids double in the arena as they grow. */
struct node {
	struct val *kids;
	uint32_t count, capacity; /* capacity NODE_SEALED: finished, nothing more goes in */
};

#define NODE_SEALED UINT32_MAX

struct klass {
	struct slice module, name; /* as in the file: "torch._utils", "_rebuild_tensor_v2" */
	uint64_t offset;           /* where the file first names it */
	bool called;               /* the pickle calls it or instantiates it, or has it called */
	/* The pickle decoder's own: */
	bool watched;    /* its calls are to be judged */
	uint8_t makes;   /* plain data that a call of it makes, or 0 */
	uint16_t judged; /* what is known of it: 1 + a row of a table, or 0 */
};

struct object {
	struct val callable; /* a CLASS, or whatever the pickle would have called */
	struct val args;     /* a TUPLE; ABSENT where there was no call */
	struct val kwargs;   /* a DICT for NEWOBJ_EX, else ABSENT */
	struct val state;    /* what BUILD gave, or ABSENT */
	struct node list;    /* what APPEND gave: a list subclass */
	struct node dict;    /* what SETITEM gave: a dict subclass, OrderedDict for one */
	struct val meaning;  /* what a container reads it as (a TENSOR, a TUPLE), or ABSENT */
};

static inline struct val val_none(void)
{
	return (struct val){.kind = VAL_NONE};
}

static inline struct val val_bool(bool b)
{
	return (struct val){.kind = VAL_BOOL, .i = b};
}

static inline struct val val_int(int64_t i)
{
	return (struct val){.kind = VAL_INT, .i = i};
}

static inline struct val val_float(double f)
{
	return (struct val){.kind = VAL_FLOAT, .f = f};
}

static inline struct val val_text(struct slice text)
{
	return (struct val){.kind = VAL_TEXT, .n = (uint32_t)text.n, .s = text.p};
}

static inline struct val val_bytes(struct slice bytes)
{
	return (struct val){.kind = VAL_BYTES, .n = (uint32_t)bytes.n, .s = bytes.p};
}

static inline struct val val_tensor(struct tensor *t)
{
	return (struct val){.kind = VAL_TENSOR, .tensor = t};
}

/* A new empty container of `kind`; VAL_ABSENT when memory ran out. */
struct val val_new(struct arena *a, enum val_kind kind);

/* Append a kid. False when memory ran out, at 2^31 kids, and when the node is sealed. */
bool node_push(struct arena *a, struct node *n, struct val kid);

static inline bool val_is_container(struct val v)
{
	return v.kind >= VAL_LIST && v.kind <= VAL_FROZENSET;
}

/* The text or bytes of a TEXT, BYTES or BIGINT; empty otherwise. */
static inline struct slice val_slice(struct val v)
{
	if (v.kind != VAL_TEXT && v.kind != VAL_BYTES && v.kind != VAL_BIGINT)
		return (struct slice){0};
	return (struct slice){v.s, v.n};
}

/* Whether `v` is the text `text`. */
bool val_is_text(struct val v, const char *text);

/* Whether `v` is the class module.name. */
bool val_is_class(struct val v, const char *module, const char *name);

/* Whether `v` is an object made by calling or instantiating module.name. */
bool val_is_object_of(struct val v, const char *module, const char *name);

/* Integers (BOOL too), numbers. False where `v` is none or does not fit. Tensors are not read. */
bool val_to_i64(struct val v, int64_t *out);
bool val_to_u64(struct val v, uint64_t *out);
bool val_to_double(struct val v, double *out);

/*
 * One way to walk everything that has parts: the i-th part of a dict, sequence, set or object. Of
 * an object the dict items come first (OrderedDict), then list items, then the attributes of its
 * state; a state that is no dict is one part with the key ABSENT. O(1) for i < val_count(v).
 */
uint64_t val_count(struct val v);
struct val val_part(struct val v, uint64_t i, struct val *key);

/* The part under a text or integer key (the last one, as Python would have it), or ABSENT.
 * O(parts). */
struct val val_get(struct val v, const char *key);
struct val val_get_slice(struct val v, struct slice key);
struct val val_get_int(struct val v, int64_t key);

/* The i-th item of a list or tuple, or ABSENT. */
struct val val_at(struct val v, uint64_t i);

/* Walk down several text keys: val_dig(root, "a", "b", NULL). */
struct val val_dig(struct val v, const char *key, ...) __attribute__((sentinel));

/* Whether `v` is a dict or an object that behaves as one. */
bool val_is_dict(struct val v);

/* Whether `v` is a list or a tuple (torch.Size included). */
bool val_is_sequence(struct val v);

/* "dict", "list", "int", "tensor", …, for messages. */
const char *val_kind_name(enum val_kind kind);

#endif
