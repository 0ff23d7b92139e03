/* SPDX-License-Identifier: MIT */
#include "value/value.h"

#include <stdarg.h>

#include "base/size.h"

struct val val_new(struct arena *a, enum val_kind kind)
{
	struct val v = {.kind = (uint8_t)kind};

	if (kind == VAL_OBJECT)
		v.object = arena_new(a, struct object);
	else if (kind == VAL_CLASS)
		v.klass = arena_new(a, struct klass);
	else
		v.node = arena_new(a, struct node);
	/* All three share one pointer's place. */
	return v.node ? v : (struct val){0};
}

bool node_push(struct arena *a, struct node *n, struct val kid)
{
	if (n->capacity == NODE_SEALED)
		return false;
	if (n->count == n->capacity) {
		if (n->capacity > UINT32_MAX / 2)
			return false;
		uint32_t capacity = n->capacity ? n->capacity * 2 : 4;
		struct val *grown = arena_array(a, capacity, sizeof *grown);
		if (!grown)
			return false;
		if (n->count)
			memcpy(grown, n->kids, n->count * sizeof *grown);
		n->kids = grown;
		n->capacity = capacity;
	}
	n->kids[n->count++] = kid;
	return true;
}

bool val_is_text(struct val v, const char *text)
{
	return v.kind == VAL_TEXT && slice_is(val_slice(v), text);
}

bool val_is_class(struct val v, const char *module, const char *name)
{
	return v.kind == VAL_CLASS && slice_is(v.klass->module, module) &&
	       slice_is(v.klass->name, name);
}

bool val_is_object_of(struct val v, const char *module, const char *name)
{
	return v.kind == VAL_OBJECT && val_is_class(v.object->callable, module, name);
}

bool val_to_i64(struct val v, int64_t *out)
{
	if (v.kind != VAL_INT && v.kind != VAL_BOOL)
		return false;
	*out = v.i;
	return true;
}

bool val_to_u64(struct val v, uint64_t *out)
{
	if (v.kind == VAL_INT && v.i >= 0) {
		*out = (uint64_t)v.i;
		return true;
	}
	/* 2^63 … 2^64 - 1 take nine bytes as two's complement. */
	if (v.kind != VAL_BIGINT || v.n != 9 || v.s[8] != 0)
		return false;
	*out = 0;
	for (int i = 7; i >= 0; i--)
		*out = *out << 8 | (uint8_t)v.s[i];
	return true;
}

bool val_to_double(struct val v, double *out)
{
	if (v.kind == VAL_FLOAT) {
		*out = v.f;
		return true;
	}
	int64_t i;
	if (!val_to_i64(v, &i))
		return false;
	*out = (double)i;
	return true;
}

/*
 * The dicts that hold an object's attributes. BUILD's state is one, or by the default protocol of
 * object.__reduce_ex__ a pair: a dict or None, and a dict of the slots. Neither where it is
 * anything else.
 */
static void attributes(const struct object *o, const struct node *dicts[2])
{
	static const struct node none;

	dicts[0] = dicts[1] = &none;
	if (o->state.kind == VAL_DICT) {
		dicts[0] = o->state.node;
		return;
	}
	if (o->state.kind != VAL_TUPLE || o->state.node->count != 2)
		return;
	const struct val *pair = o->state.node->kids;
	if ((pair[0].kind != VAL_DICT && pair[0].kind != VAL_NONE) || pair[1].kind != VAL_DICT)
		return;
	if (pair[0].kind == VAL_DICT)
		dicts[0] = pair[0].node;
	dicts[1] = pair[1].node;
}

/* Whether the state is a part of its own, for want of attributes in it. */
static bool state_is_opaque(const struct object *o, const struct node *const dicts[2])
{
	return o->state.kind != VAL_ABSENT && o->state.kind != VAL_DICT && dicts[0]->count == 0 &&
	       dicts[1]->count == 0;
}

uint64_t val_count(struct val v)
{
	switch (v.kind) {
	case VAL_LIST:
	case VAL_TUPLE:
	case VAL_SET:
	case VAL_FROZENSET:
	case VAL_PERSISTENT:
		return v.node->count;
	case VAL_DICT:
		return v.node->count / 2;
	case VAL_OBJECT: {
		const struct object *o = v.object;
		const struct node *dicts[2];
		attributes(o, dicts);
		return o->dict.count / 2 + (uint64_t)o->list.count + dicts[0]->count / 2 +
		       dicts[1]->count / 2 + state_is_opaque(o, dicts);
	}
	default:
		return 0;
	}
}

struct val val_part(struct val v, uint64_t i, struct val *key)
{
	struct val ignored;

	if (!key)
		key = &ignored;
	*key = (struct val){0};
	if (i >= val_count(v))
		return (struct val){0};
	if (v.kind == VAL_DICT) {
		*key = v.node->kids[2 * i];
		return v.node->kids[2 * i + 1];
	}
	if (v.kind != VAL_OBJECT) {
		*key = val_int((int64_t)i);
		return v.node->kids[i];
	}
	const struct object *o = v.object;
	if (i < o->dict.count / 2) {
		*key = o->dict.kids[2 * i];
		return o->dict.kids[2 * i + 1];
	}
	i -= o->dict.count / 2;
	if (i < o->list.count) {
		*key = val_int((int64_t)i);
		return o->list.kids[i];
	}
	i -= o->list.count;
	const struct node *dicts[2], *attrs;
	attributes(o, dicts);
	if (state_is_opaque(o, dicts))
		return o->state;
	attrs = dicts[0];
	if (i >= attrs->count / 2) {
		i -= attrs->count / 2;
		attrs = dicts[1];
	}
	*key = attrs->kids[2 * i];
	return attrs->kids[2 * i + 1];
}

/* From the end, so that of two equal keys the one that Python keeps is found. */
static struct val find(
	struct val v, bool (*matches)(struct val key, const void *wanted), const void *wanted)
{
	struct val key;

	if (v.kind != VAL_DICT && v.kind != VAL_OBJECT)
		return (struct val){0};
	for (uint64_t i = val_count(v); i-- > 0;) {
		struct val part = val_part(v, i, &key);
		if (matches(key, wanted))
			return part;
	}
	return (struct val){0};
}

static bool key_is_text(struct val key, const void *wanted)
{
	return key.kind == VAL_TEXT && slice_eq(val_slice(key), *(const struct slice *)wanted);
}

static bool key_is_int(struct val key, const void *wanted)
{
	return key.kind == VAL_INT && key.i == *(const int64_t *)wanted;
}

struct val val_get_slice(struct val v, struct slice key)
{
	return find(v, key_is_text, &key);
}

struct val val_get(struct val v, const char *key)
{
	return val_get_slice(v, slice_of(key));
}

struct val val_get_int(struct val v, int64_t key)
{
	return find(v, key_is_int, &key);
}

struct val val_at(struct val v, uint64_t i)
{
	if ((v.kind == VAL_LIST || v.kind == VAL_TUPLE) && i < v.node->count)
		return v.node->kids[i];
	return (struct val){0};
}

struct val val_dig(struct val v, const char *key, ...)
{
	va_list keys;

	va_start(keys, key);
	while (key && v.kind != VAL_ABSENT) {
		v = val_get(v, key);
		key = va_arg(keys, const char *);
	}
	va_end(keys);
	return v;
}

bool val_is_dict(struct val v)
{
	return v.kind == VAL_DICT || (v.kind == VAL_OBJECT && v.object->dict.count > 0) ||
	       val_is_object_of(v, "collections", "OrderedDict") ||
	       val_is_object_of(v, "collections", "defaultdict");
}

bool val_is_sequence(struct val v)
{
	return v.kind == VAL_LIST || v.kind == VAL_TUPLE;
}

const char *val_kind_name(enum val_kind kind)
{
	static const char *const names[] = {
		[VAL_ABSENT] = "nothing",
		[VAL_NONE] = "None",
		[VAL_BOOL] = "bool",
		[VAL_INT] = "int",
		[VAL_BIGINT] = "int",
		[VAL_FLOAT] = "float",
		[VAL_TEXT] = "str",
		[VAL_BYTES] = "bytes",
		[VAL_LIST] = "list",
		[VAL_TUPLE] = "tuple",
		[VAL_DICT] = "dict",
		[VAL_SET] = "set",
		[VAL_FROZENSET] = "frozenset",
		[VAL_CLASS] = "class",
		[VAL_OBJECT] = "object",
		[VAL_PERSISTENT] = "persistent id",
		[VAL_TENSOR] = "tensor",
	};
	return names[kind];
}
