/* SPDX-License-Identifier: MIT */
/*
 * One loop over opcodes, no recursion: a stack of values, a stack of marks, a memo. Every opcode takes at
 * least one byte, so that stack, marks and memo are bounded by the length of the pickle, and all three by
 * the memory limit. Nodes live in the caller's arena and are shared by reference, cycles included.
 */
#include "container/pickle.h"

#include <stdlib.h>
#include <string.h>

#include "base/cursor.h"
#include "base/size.h"
#include "base/text.h"

#define PROTOCOL_MAX 5
#define CLASSES_MAX ((size_t)1 << 20)
#define DIGITS_MAX 5000u /* of an integer in decimal: the conversion is quadratic */
#define NAMES_FIRST 64u

/* Opcodes, named as in Python's pickletools. OP(byte, name, lowest protocol that has it). */
#define OPCODES \
	OP('(', MARK, 0) OP('.', STOP, 0) OP('0', POP, 0) OP('1', POP_MARK, 1) OP('2', DUP, 0) \
	OP('F', FLOAT, 0) OP('I', INT, 0) OP('J', BININT, 1) OP('K', BININT1, 1) OP('L', LONG, 0) \
	OP('M', BININT2, 1) OP('N', NONE, 0) OP('P', PERSID, 0) OP('Q', BINPERSID, 1) OP('R', REDUCE, 0) \
	OP('S', STRING, 0) OP('T', BINSTRING, 1) OP('U', SHORT_BINSTRING, 1) OP('V', UNICODE, 0) \
	OP('X', BINUNICODE, 1) OP('a', APPEND, 0) OP('b', BUILD, 0) OP('c', GLOBAL, 0) OP('d', DICT, 0) \
	OP('}', EMPTY_DICT, 1) OP('e', APPENDS, 1) OP('g', GET, 0) OP('h', BINGET, 1) OP('i', INST, 0) \
	OP('j', LONG_BINGET, 1) OP('l', LIST, 0) OP(']', EMPTY_LIST, 1) OP('o', OBJ, 1) OP('p', PUT, 0) \
	OP('q', BINPUT, 1) OP('r', LONG_BINPUT, 1) OP('s', SETITEM, 0) OP('t', TUPLE, 0) OP(')', EMPTY_TUPLE, 1) \
	OP('u', SETITEMS, 1) OP('G', BINFLOAT, 1) OP(0x80, PROTO, 2) OP(0x81, NEWOBJ, 2) OP(0x82, EXT1, 2) \
	OP(0x83, EXT2, 2) OP(0x84, EXT4, 2) OP(0x85, TUPLE1, 2) OP(0x86, TUPLE2, 2) OP(0x87, TUPLE3, 2) \
	OP(0x88, NEWTRUE, 2) OP(0x89, NEWFALSE, 2) OP(0x8a, LONG1, 2) OP(0x8b, LONG4, 2) OP('B', BINBYTES, 3) \
	OP('C', SHORT_BINBYTES, 3) OP(0x8c, SHORT_BINUNICODE, 4) OP(0x8d, BINUNICODE8, 4) OP(0x8e, BINBYTES8, 4) \
	OP(0x8f, EMPTY_SET, 4) OP(0x90, ADDITEMS, 4) OP(0x91, FROZENSET, 4) OP(0x92, NEWOBJ_EX, 4) \
	OP(0x93, STACK_GLOBAL, 4) OP(0x94, MEMOIZE, 4) OP(0x95, FRAME, 4) OP(0x96, BYTEARRAY8, 5) \
	OP(0x97, NEXT_BUFFER, 5) OP(0x98, READONLY_BUFFER, 5)

enum opcode {
#define OP(byte, name, protocol) OP_##name = (byte),
	OPCODES
#undef OP
};

static const struct {
	const char *name;
	int protocol;
} opcodes[256] = {
#define OP(byte, name, protocol) [(byte)] = {#name, protocol},
	OPCODES
#undef OP
};

struct decoder {
	struct pickle *p;
	struct error *error;
	const uint8_t *start, *at, *end;
	const uint8_t *op;    /* the opcode being carried out, for errors */
	struct val *stack, *memo;
	size_t depth, stack_room;
	size_t memo_count, memo_room; /* slots in use, slots that exist (ABSENT until put) */
	size_t *marks;
	size_t mark_count, mark_room;
	struct klass **names; /* open addressing, a power of two; NULL until the first class */
	size_t names_room;
	uint64_t nodes;
	size_t held;          /* bytes of stack, memo and marks */
};

static uint64_t offset_of(const struct decoder *d, const uint8_t *at)
{
	return d->p->base + (uint64_t)(at - d->start);
}

static int malformed(struct decoder *d, const char *what)
{
	const char *name = opcodes[*d->op].name;

	return fail(d->error, RP_E_FORMAT, offset_of(d, d->op), "%s at offset %llu of the pickle: %s",
		name ? name : "opcode", (unsigned long long)(d->op - d->start), what);
}

static int cut_off(struct decoder *d, uint64_t wanted)
{
	const char *name = d->op < d->end ? opcodes[*d->op].name : NULL;

	d->p->truncated = true;
	return fail(d->error, RP_E_FORMAT, offset_of(d, d->end),
		"the pickle ends inside %s: %llu bytes expected, %zu left", name ? name : "it",
		(unsigned long long)wanted, (size_t)(d->end - d->at));
}

static int no_memory(struct decoder *d)
{
	return fail(d->error, RP_E_MEMORY, offset_of(d, d->op), "no memory left for the values of the pickle");
}

/* Grow one of the decoder's own arrays; what the three hold together stays below the memory limit. */
static bool grow(struct decoder *d, void **items, size_t *room, size_t need, size_t size)
{
	size_t wanted = *room ? *room * 2 : 256;

	if (wanted < need)
		wanted = need;
	size_t more = size_mul(wanted - *room, size);
	if (more > d->p->limits->memory || d->held > d->p->limits->memory - more)
		return false;
	void *grown = realloc(*items, wanted * size);
	if (!grown)
		return false;
	*items = grown;
	*room = wanted;
	d->held += more;
	return true;
}

static inline bool push(struct decoder *d, struct val v)
{
	if (d->depth == d->stack_room &&
		!grow(d, (void **)&d->stack, &d->stack_room, d->depth + 1, sizeof *d->stack))
		return false;
	d->stack[d->depth++] = v;
	return true;
}

/* The lowest stack position that the current mark leaves open to pops. */
static inline size_t floor_of(const struct decoder *d)
{
	return d->mark_count ? d->marks[d->mark_count - 1] : 0;
}

static inline bool can_pop(const struct decoder *d, size_t n)
{
	return d->depth - floor_of(d) >= n;
}

static inline struct val pop(struct decoder *d)
{
	return d->stack[--d->depth];
}

static bool push_mark(struct decoder *d)
{
	if (d->mark_count == d->mark_room &&
		!grow(d, (void **)&d->marks, &d->mark_room, d->mark_count + 1, sizeof *d->marks))
		return false;
	d->marks[d->mark_count++] = d->depth;
	return true;
}

static int put(struct decoder *d, uint64_t slot, struct val v)
{
	/* A writer numbers its slots; more slots than bytes are a lie. */
	if (slot > (uint64_t)(d->end - d->start))
		return malformed(d, "a memo slot far beyond the length of the pickle");
	if (slot >= d->memo_room &&
		!grow(d, (void **)&d->memo, &d->memo_room, (size_t)slot + 1, sizeof *d->memo))
		return no_memory(d);
	if (slot >= d->memo_count) {
		memset(d->memo + d->memo_count, 0, ((size_t)slot - d->memo_count) * sizeof *d->memo);
		d->memo_count = (size_t)slot + 1;
	}
	d->memo[slot] = v;
	return RP_OK;
}

static int get(struct decoder *d, uint64_t slot)
{
	if (slot >= d->memo_count || d->memo[slot].kind == VAL_ABSENT)
		return malformed(d, "a memo slot that was never filled");
	return push(d, d->memo[slot]) ? RP_OK : no_memory(d);
}

/* ---- values ----------------------------------------------------------------------------------- */

static bool count_node(struct decoder *d)
{
	return ++d->nodes <= d->p->limits->nodes;
}

/* A new container; its kids, if any, are the top `n` of the stack, which stay there. */
static int new_container(struct decoder *d, enum val_kind kind, size_t n, struct val *out)
{
	if (!count_node(d))
		return fail(d->error, RP_E_LIMIT, offset_of(d, d->op), "more than %llu values (--limit nodes=N)",
			(unsigned long long)d->p->limits->nodes);
	if (n > UINT32_MAX / 2)
		return malformed(d, "more than 2^31 items");
	*out = val_new(d->p->arena, kind);
	if (out->kind == VAL_ABSENT)
		return no_memory(d);
	if (n == 0)
		return RP_OK;
	struct node *node = out->node;
	node->kids = arena_array(d->p->arena, n, sizeof *node->kids);
	if (!node->kids)
		return no_memory(d);
	memcpy(node->kids, d->stack + d->depth - n, n * sizeof *node->kids);
	node->count = node->capacity = (uint32_t)n;
	return RP_OK;
}

/* Replace the top `n` of the stack by one container of them. */
static int fold(struct decoder *d, enum val_kind kind, size_t n)
{
	struct val v;
	int status = new_container(d, kind, n, &v);

	if (status < 0)
		return status;
	d->depth -= n;
	return push(d, v) ? RP_OK : no_memory(d);
}

static bool append_all(struct decoder *d, struct node *node, size_t from)
{
	size_t n = d->depth - from;

	if (n > UINT32_MAX / 2 - node->count)
		return false;
	if (node->capacity - node->count < n) {
		/* Exactly, for the first batch; by doubling when batches follow each other. */
		size_t room = node->count ? (size_t)node->count * 2 : 0;
		if (room < node->count + n)
			room = node->count + n;
		struct val *kids = arena_array(d->p->arena, room, sizeof *kids);
		if (!kids)
			return false;
		if (node->count)
			memcpy(kids, node->kids, node->count * sizeof *kids);
		node->kids = kids;
		node->capacity = (uint32_t)room;
	}
	if (n)
		memcpy(node->kids + node->count, d->stack + from, n * sizeof *node->kids);
	node->count += (uint32_t)n;
	d->depth = from;
	return true;
}

/* An integer from little-endian two's complement; bytes that only repeat the sign are dropped. */
static struct val integer(struct slice bytes)
{
	while (bytes.n > 1) {
		uint8_t top = (uint8_t)bytes.p[bytes.n - 1], next = (uint8_t)bytes.p[bytes.n - 2];
		if (!((top == 0 && next < 0x80) || (top == 0xff && next >= 0x80)))
			break;
		bytes.n--;
	}
	if (bytes.n > 8)
		return (struct val){.kind = VAL_BIGINT, .n = (uint32_t)bytes.n, .s = bytes.p};
	uint64_t v = bytes.n && ((uint8_t)bytes.p[bytes.n - 1] & 0x80) ? UINT64_MAX : 0;
	for (size_t i = bytes.n; i-- > 0;)
		v = v << 8 | (uint8_t)bytes.p[i];
	return val_int((int64_t)v);
}

/* A decimal of any length, as LONG and INT write them. Schoolbook conversion: digits are bounded. */
static int decimal(struct decoder *d, struct slice text, struct val *out)
{
	int64_t small;
	bool negative = text.n && text.p[0] == '-';
	size_t from = negative || (text.n && text.p[0] == '+');

	if (text_parse_i64(text, INT64_MIN, INT64_MAX, &small)) {
		*out = val_int(small);
		return RP_OK;
	}
	if (text.n - from == 0 || text.n - from > DIGITS_MAX)
		return malformed(d, "an integer of no or of too many digits");
	size_t room = (text.n - from) / 2 + 2; /* 10 < 2^4: half a byte a digit, and the sign */
	uint8_t *bytes = arena_alloc(d->p->arena, room);
	if (!bytes)
		return no_memory(d);
	for (size_t i = from; i < text.n; i++) {
		if (text.p[i] < '0' || text.p[i] > '9')
			return malformed(d, "not an integer");
		unsigned carry = (unsigned)(text.p[i] - '0');
		for (size_t k = 0; k < room; k++) {
			carry += bytes[k] * 10u;
			bytes[k] = (uint8_t)carry;
			carry >>= 8;
		}
	}
	unsigned carry = 1;
	for (size_t k = 0; negative && k < room; k++) {
		carry += (uint8_t)~bytes[k];
		bytes[k] = (uint8_t)carry;
		carry >>= 8;
	}
	*out = integer((struct slice){(const char *)bytes, room});
	return RP_OK;
}

/* Python 2's str: text where it is ASCII, else bytes, since nothing says what encoding it had. */
static struct val old_string(struct slice s)
{
	for (size_t i = 0; i < s.n; i++)
		if ((uint8_t)s.p[i] >= 0x80)
			return val_bytes(s);
	return val_text(s);
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static size_t add_utf8(char *to, uint32_t c)
{
	if (c < 0x80) {
		to[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		to[0] = (char)(0xc0 | c >> 6);
		to[1] = (char)(0x80 | (c & 0x3f));
		return 2;
	}
	if (c < 0x10000) {
		to[0] = (char)(0xe0 | c >> 12);
		to[1] = (char)(0x80 | (c >> 6 & 0x3f));
		to[2] = (char)(0x80 | (c & 0x3f));
		return 3;
	}
	to[0] = (char)(0xf0 | c >> 18);
	to[1] = (char)(0x80 | (c >> 12 & 0x3f));
	to[2] = (char)(0x80 | (c >> 6 & 0x3f));
	to[3] = (char)(0x80 | (c & 0x3f));
	return 4;
}

/* The number that `digits` hex digits at `at` make, or -1. */
static int64_t hex_number(struct slice s, size_t at, size_t digits)
{
	int64_t value = 0;

	if (digits > s.n - at)
		return -1;
	for (size_t i = 0; i < digits; i++) {
		int digit = hex_digit(s.p[at + i]);
		if (digit < 0)
			return -1;
		value = value << 4 | digit;
	}
	return value;
}

/* UNICODE: Latin-1 bytes in which only \uXXXX and \UXXXXXXXX are escapes. */
static int raw_unicode(struct decoder *d, struct slice s, struct val *out)
{
	char *text = arena_alloc(d->p->arena, size_mul(s.n, 2) + 1);
	size_t n = 0;

	if (!text)
		return no_memory(d);
	for (size_t i = 0; i < s.n; i++) {
		uint32_t c = (uint8_t)s.p[i];
		if (c == '\\' && i + 1 < s.n && (s.p[i + 1] == 'u' || s.p[i + 1] == 'U')) {
			size_t digits = s.p[i + 1] == 'u' ? 4 : 8;
			int64_t value = hex_number(s, i + 2, digits);
			if (value < 0 || value > 0x10ffff)
				return malformed(d, "a bad \\u escape");
			c = (uint32_t)value;
			i += digits + 1;
		}
		n += add_utf8(text + n, c);
	}
	*out = val_text((struct slice){text, n});
	return RP_OK;
}

/* STRING: a Python 2 string literal, quotes and escapes included. */
static int quoted_string(struct decoder *d, struct slice s, struct val *out)
{
	if (s.n < 2 || s.p[0] != s.p[s.n - 1] || (s.p[0] != '\'' && s.p[0] != '"'))
		return malformed(d, "a string without quotes");
	char *text = arena_alloc(d->p->arena, s.n);
	size_t n = 0;
	if (!text)
		return no_memory(d);
	for (size_t i = 1; i + 1 < s.n; i++) {
		if (s.p[i] != '\\') {
			text[n++] = s.p[i];
			continue;
		}
		if (++i + 1 >= s.n)
			return malformed(d, "a string that ends in a backslash");
		static const char from[] = "\\'\"abfnrtv", to[] = "\\'\"\a\b\f\n\r\t\v";
		const char *plain = s.p[i] ? strchr(from, s.p[i]) : NULL;
		if (plain) {
			text[n++] = to[plain - from];
		} else if (s.p[i] == 'x') {
			int64_t value = i + 2 < s.n - 1 ? hex_number(s, i + 1, 2) : -1;
			if (value < 0)
				return malformed(d, "a bad \\x escape");
			text[n++] = (char)value;
			i += 2;
		} else if (s.p[i] >= '0' && s.p[i] <= '7') {
			unsigned value = 0;
			size_t digits = 0;
			while (digits < 3 && i + digits < s.n - 1 && s.p[i + digits] >= '0' && s.p[i + digits] <= '7')
				value = value * 8 + (unsigned)(s.p[i + digits++] - '0');
			text[n++] = (char)value;
			i += digits - 1;
		} else {
			text[n++] = '\\';
			text[n++] = s.p[i];
		}
	}
	*out = old_string((struct slice){text, n});
	return RP_OK;
}

/* ---- classes and calls ------------------------------------------------------------------------ */

static size_t name_hash(struct slice module, struct slice name)
{
	uint64_t h = 1469598103934665603u; /* FNV-1a */

	for (size_t i = 0; i < module.n; i++)
		h = (h ^ (uint8_t)module.p[i]) * 1099511628211u;
	h = (h ^ '.') * 1099511628211u;
	for (size_t i = 0; i < name.n; i++)
		h = (h ^ (uint8_t)name.p[i]) * 1099511628211u;
	return (size_t)(h ^ h >> 29);
}

static bool rehash(struct decoder *d)
{
	size_t room = d->names_room ? d->names_room * 2 : NAMES_FIRST;
	struct klass **names = calloc(room, sizeof *names);

	if (!names)
		return false;
	for (size_t i = 0; i < d->p->classes.count; i++) {
		struct klass *k = d->p->classes.items[i];
		size_t at = name_hash(k->module, k->name) & (room - 1);
		while (names[at])
			at = (at + 1) & (room - 1);
		names[at] = k;
	}
	free(d->names);
	d->names = names;
	d->names_room = room;
	return true;
}

/* The one value of a class or function, however often the pickle names it. */
static int push_class(struct decoder *d, struct slice module, struct slice name)
{
	if (2 * (d->p->classes.count + 1) > d->names_room && !rehash(d))
		return no_memory(d);
	size_t at = name_hash(module, name) & (d->names_room - 1);
	for (; d->names[at]; at = (at + 1) & (d->names_room - 1)) {
		struct klass *k = d->names[at];
		if (slice_eq(k->module, module) && slice_eq(k->name, name))
			return push(d, (struct val){.kind = VAL_CLASS, .klass = k}) ? RP_OK : no_memory(d);
	}
	struct val v = val_new(d->p->arena, VAL_CLASS);
	struct klass **slot = v.kind == VAL_ABSENT ? NULL : array_push(&d->p->classes, CLASSES_MAX);
	if (!slot)
		return no_memory(d);
	v.klass->module = module;
	v.klass->name = name;
	v.klass->offset = offset_of(d, d->op);
	*slot = d->names[at] = v.klass;
	return push(d, v) ? RP_OK : no_memory(d);
}

static bool is_builtin(struct val v, const char *name)
{
	return val_is_class(v, "builtins", name) || val_is_class(v, "__builtin__", name);
}

/* `_codecs.encode(text, 'latin1')`: how protocols 0 to 2 write bytes. Each character is one byte. */
static bool latin1_bytes(struct decoder *d, struct slice text, struct val *out)
{
	char *bytes = arena_alloc(d->p->arena, text.n);
	size_t n = 0;

	if (!bytes)
		return false;
	for (size_t i = 0; i < text.n; i++) {
		uint8_t c = (uint8_t)text.p[i];
		if (c >= 0x80) {
			/* Only U+0080 to U+00FF, in two bytes. */
			if ((c != 0xc2 && c != 0xc3) || i + 1 == text.n || ((uint8_t)text.p[i + 1] & 0xc0) != 0x80)
				return false;
			c = (uint8_t)(c << 6 | ((uint8_t)text.p[++i] & 0x3f));
		}
		bytes[n++] = (char)c;
	}
	*out = val_bytes((struct slice){bytes, n});
	return true;
}

/* Calls of harmless builtins whose result is plain data. False: it stays an object. */
static bool evaluate(struct decoder *d, struct val callable, struct val args, struct val *out)
{
	if (callable.kind != VAL_CLASS || args.kind != VAL_TUPLE)
		return false;
	struct val first = val_at(args, 0);
	uint64_t n = val_count(args);
	if (val_is_class(callable, "_codecs", "encode"))
		return n == 2 && first.kind == VAL_TEXT &&
			(val_is_text(val_at(args, 1), "latin1") || val_is_text(val_at(args, 1), "latin-1")) &&
			latin1_bytes(d, val_slice(first), out);
	if (is_builtin(callable, "bytes") || is_builtin(callable, "bytearray")) {
		if (n > 1 && first.kind == VAL_TEXT)
			return latin1_bytes(d, val_slice(first), out);
		*out = n == 1 ? first : val_bytes((struct slice){"", 0});
		return n == 0 || (n == 1 && first.kind == VAL_BYTES);
	}
	enum val_kind kind = is_builtin(callable, "set") ? VAL_SET : is_builtin(callable, "frozenset") ? VAL_FROZENSET : VAL_ABSENT;
	if (kind == VAL_ABSENT || n > 1 || (n == 1 && first.kind != VAL_LIST && first.kind != VAL_TUPLE))
		return false;
	*out = val_new(d->p->arena, kind);
	/* The list's kids are shared: it was made for this call and nothing else changes it. */
	if (out->kind != VAL_ABSENT && n == 1)
		*out->node = *first.node;
	return out->kind != VAL_ABSENT;
}

/* OrderedDict([(key, value), …]), as Python 2 wrote it, has its items in its arguments. */
static bool take_pairs(struct decoder *d, struct object *o)
{
	struct val list = val_at(o->args, 0);

	if (!val_is_class(o->callable, "collections", "OrderedDict") || !val_is_sequence(list))
		return true;
	for (uint64_t i = 0; i < val_count(list); i++) {
		struct val pair = val_at(list, i);
		if (!val_is_sequence(pair) || val_count(pair) != 2)
			return true;
		if (!node_push(d->p->arena, &o->dict, val_at(pair, 0)) ||
			!node_push(d->p->arena, &o->dict, val_at(pair, 1)))
			return false;
	}
	return true;
}

static int push_object(struct decoder *d, struct val callable, struct val args, struct val kwargs, bool call)
{
	struct val v;

	if (call && evaluate(d, callable, args, &v)) {
		callable.klass->called = true;
		return push(d, v) ? RP_OK : no_memory(d);
	}
	/* copyreg._reconstructor(class, base, state): the instance of a class without a protocol of its own. */
	if (val_is_class(callable, "copyreg", "_reconstructor") || val_is_class(callable, "copy_reg", "_reconstructor")) {
		callable.klass->called = true;
		if (val_at(args, 0).kind == VAL_CLASS)
			callable = val_at(args, 0);
	}
	int status = new_container(d, VAL_OBJECT, 0, &v);
	if (status < 0)
		return status;
	*v.object = (struct object){.callable = callable, .args = args, .kwargs = kwargs};
	if (callable.kind == VAL_CLASS) {
		callable.klass->called = true;
		v.object->next_call = callable.klass->call;
		callable.klass->call = v.object;
	} else if (!d->p->computed) {
		d->p->computed = v.object;
		d->p->computed_offset = offset_of(d, d->op);
	}
	if (!take_pairs(d, v.object))
		return no_memory(d);
	return push(d, v) ? RP_OK : no_memory(d);
}

static int build(struct decoder *d)
{
	struct val state = pop(d), target = d->stack[d->depth - 1];

	if (target.kind == VAL_OBJECT) {
		target.object->state = state;
		return RP_OK;
	}
	/* Some writers set the state of what we read as plain data, a set's subclass for one: nothing to keep. */
	if (val_is_container(target) || target.kind == VAL_BYTES || target.kind == VAL_PERSISTENT)
		return RP_OK;
	return malformed(d, "a state for something that has none");
}

/* APPEND, APPENDS, ADDITEMS, SETITEM, SETITEMS: the items from `from` on go into what lies below them. */
static int add_items(struct decoder *d, size_t from, bool pairs)
{
	struct val target = d->stack[from - 1];
	struct node *node = NULL;

	if (pairs && (d->depth - from) % 2 != 0)
		return malformed(d, "a key without a value");
	if (target.kind == VAL_OBJECT)
		node = pairs ? &target.object->dict : &target.object->list;
	else if (pairs ? target.kind == VAL_DICT : target.kind == VAL_LIST || target.kind == VAL_SET)
		node = target.node;
	if (!node)
		return malformed(d, "items for something that takes none");
	return append_all(d, node, from) ? RP_OK : no_memory(d);
}

static int push_persistent(struct decoder *d, struct val id)
{
	struct val v;

	if (d->p->persistent) {
		int status = d->p->persistent(d->p->context, id, &v, d->error);
		if (status < 0)
			return status;
		return push(d, v) ? RP_OK : no_memory(d);
	}
	if (!push(d, id))
		return no_memory(d);
	return fold(d, VAL_PERSISTENT, 1);
}

/* ---- the loop --------------------------------------------------------------------------------- */

/* `n` bytes behind the opcode, or NULL where the pickle ends. */
static inline const uint8_t *take(struct decoder *d, uint64_t n)
{
	if (n > (uint64_t)(d->end - d->at))
		return NULL;
	const uint8_t *p = d->at;
	d->at += n;
	return p;
}

/* The rest of the line behind a text opcode, without its end. */
static bool take_line(struct decoder *d, struct slice *line)
{
	const uint8_t *end = memchr(d->at, '\n', (size_t)(d->end - d->at));

	if (!end)
		return false;
	*line = (struct slice){(const char *)d->at, (size_t)(end - d->at)};
	d->at = end + 1;
	return true;
}

/* Text or bytes behind a length of `width` bytes. */
static int push_counted(struct decoder *d, unsigned width, enum val_kind kind)
{
	const uint8_t *p = take(d, width);

	if (!p)
		return cut_off(d, width);
	uint64_t n = width == 1 ? p[0] : width == 4 ? load_le32(p) : load_le64(p);
	if (n > UINT32_MAX)
		return n > (uint64_t)(d->end - d->at) ? cut_off(d, n) : malformed(d, "longer than 4 GiB");
	const uint8_t *bytes = take(d, n);
	if (!bytes)
		return cut_off(d, n);
	struct slice s = {(const char *)bytes, (size_t)n};
	struct val v = kind == VAL_TEXT ? val_text(s) : kind == VAL_BYTES ? val_bytes(s) : integer(s);
	if (kind == VAL_ABSENT)
		v = old_string(s);
	return push(d, v) ? RP_OK : no_memory(d);
}

static int line_value(struct decoder *d, uint8_t op)
{
	struct slice line;
	struct val v = {0};
	double number;
	int status = RP_OK;

	if (!take_line(d, &line))
		return cut_off(d, (uint64_t)(d->end - d->at) + 1);
	switch (op) {
	case OP_INT:
		if (slice_is(line, "00") || slice_is(line, "01"))
			v = val_bool(line.p[1] == '1');
		else
			status = decimal(d, line, &v);
		break;
	case OP_LONG:
		if (line.n && line.p[line.n - 1] == 'L')
			line.n--;
		status = decimal(d, line, &v);
		break;
	case OP_FLOAT:
		if (!text_parse_double(line, &number))
			return malformed(d, "not a number");
		v = val_float(number);
		break;
	case OP_STRING:
		status = quoted_string(d, line, &v);
		break;
	case OP_UNICODE:
		status = raw_unicode(d, line, &v);
		break;
	default:
		return push_persistent(d, val_text(line));
	}
	if (status < 0)
		return status;
	return push(d, v) ? RP_OK : no_memory(d);
}

/* GLOBAL and INST: two lines, module and name. */
static int line_class(struct decoder *d)
{
	struct slice module, name;

	if (!take_line(d, &module) || !take_line(d, &name))
		return cut_off(d, (uint64_t)(d->end - d->at) + 1);
	return push_class(d, module, name);
}

/* The slot number of PUT and GET, in decimal. */
static int line_slot(struct decoder *d, uint64_t *slot)
{
	struct slice line;

	if (!take_line(d, &line))
		return cut_off(d, (uint64_t)(d->end - d->at) + 1);
	return text_parse_u64(line, UINT32_MAX, slot) ? RP_OK : malformed(d, "not a memo slot");
}

/* INST and OBJ: an instance whose arguments lie above the mark. */
static int old_instance(struct decoder *d, size_t from, struct val class)
{
	struct val args;
	int status = new_container(d, VAL_TUPLE, d->depth - from, &args);

	if (status < 0)
		return status;
	d->depth = from;
	return push_object(d, class, args, (struct val){0}, true);
}

static int push_extension(struct decoder *d, unsigned width)
{
	const uint8_t *p = take(d, width);

	if (!p)
		return cut_off(d, width);
	uint32_t code = width == 1 ? p[0] : width == 2 ? load_le16(p) : load_le32(p);
	char *name = arena_printf(d->p->arena, "extension_%u", code);
	return name ? push_class(d, SLICE("copyreg"), slice_of(name)) : no_memory(d);
}

/* Opcodes that end a group of values begun by MARK. */
static int marked(struct decoder *d, uint8_t op)
{
	if (d->mark_count == 0)
		return malformed(d, "no MARK before it");
	size_t from = d->marks[--d->mark_count], n = d->depth - from;
	/* What the items go into lies below the mark. */
	bool below = op == OP_APPENDS || op == OP_SETITEMS || op == OP_ADDITEMS;
	if (below && from <= floor_of(d))
		return malformed(d, "nothing below its MARK");
	switch (op) {
	case OP_POP_MARK:
		d->depth = from;
		return RP_OK;
	case OP_TUPLE:
		return fold(d, VAL_TUPLE, n);
	case OP_LIST:
		return fold(d, VAL_LIST, n);
	case OP_FROZENSET:
		return fold(d, VAL_FROZENSET, n);
	case OP_DICT:
		return n % 2 ? malformed(d, "a key without a value") : fold(d, VAL_DICT, n);
	case OP_OBJ: {
		if (n == 0)
			return malformed(d, "no class above its MARK");
		struct val class = d->stack[from], args;
		int status = new_container(d, VAL_TUPLE, n - 1, &args);
		if (status < 0)
			return status;
		d->depth = from;
		return push_object(d, class, args, (struct val){0}, true);
	}
	case OP_INST: {
		int status = line_class(d);
		return status < 0 ? status : old_instance(d, from, pop(d));
	}
	default:
		return add_items(d, from, op == OP_SETITEMS);
	}
}

/* Opcodes that take a fixed number of values from the stack. */
static int call(struct decoder *d, uint8_t op)
{
	const struct val none = {0};
	size_t need = op == OP_NEWOBJ_EX || op == OP_SETITEM ? 3 : op == OP_BINPERSID ? 1 : 2;

	if (!can_pop(d, need))
		return malformed(d, "too few values on the stack");
	switch (op) {
	case OP_REDUCE:
	case OP_NEWOBJ: {
		struct val args = pop(d), callable = pop(d);
		return push_object(d, callable, args, none, op == OP_REDUCE);
	}
	case OP_NEWOBJ_EX: {
		struct val kwargs = pop(d), args = pop(d), class = pop(d);
		return push_object(d, class, args, kwargs, false);
	}
	case OP_BUILD:
		return build(d);
	case OP_APPEND:
		return add_items(d, d->depth - 1, false);
	case OP_SETITEM:
		return add_items(d, d->depth - 2, true);
	case OP_STACK_GLOBAL: {
		struct val name = pop(d), module = pop(d);
		if (name.kind != VAL_TEXT || module.kind != VAL_TEXT)
			return malformed(d, "a class whose name is no text");
		return push_class(d, val_slice(module), val_slice(name));
	}
	default:
		return push_persistent(d, pop(d));
	}
}

/* One opcode. Common ones first; RP_OK and d->op[0] == OP_STOP ends the pickle. */
static int step(struct decoder *d)
{
	const uint8_t *p;
	struct val v;
	uint64_t slot;
	int status;
	uint8_t op = *d->op;

#define TAKE(n) \
	do { \
		p = take(d, (n)); \
		if (!p) \
			return cut_off(d, (n)); \
	} while (0)

	switch (op) {
	case OP_BINGET:
		TAKE(1);
		return get(d, p[0]);
	case OP_LONG_BINGET:
		TAKE(4);
		return get(d, load_le32(p));
	case OP_BINPUT:
		TAKE(1);
		slot = p[0];
		break;
	case OP_LONG_BINPUT:
		TAKE(4);
		slot = load_le32(p);
		break;
	case OP_MEMOIZE:
		slot = d->memo_count;
		break;
	case OP_PUT:
		status = line_slot(d, &slot);
		if (status < 0)
			return status;
		break;
	case OP_GET:
		status = line_slot(d, &slot);
		return status < 0 ? status : get(d, slot);
	case OP_BININT1:
		TAKE(1);
		return push(d, val_int(p[0])) ? RP_OK : no_memory(d);
	case OP_BININT2:
		TAKE(2);
		return push(d, val_int(load_le16(p))) ? RP_OK : no_memory(d);
	case OP_BININT:
		TAKE(4);
		return push(d, val_int((int32_t)load_le32(p))) ? RP_OK : no_memory(d);
	case OP_BINFLOAT: {
		TAKE(8);
		uint64_t bits = load_be64(p);
		double number;
		memcpy(&number, &bits, sizeof number);
		return push(d, val_float(number)) ? RP_OK : no_memory(d);
	}
	case OP_SHORT_BINUNICODE:
		return push_counted(d, 1, VAL_TEXT);
	case OP_BINUNICODE:
		return push_counted(d, 4, VAL_TEXT);
	case OP_BINUNICODE8:
		return push_counted(d, 8, VAL_TEXT);
	case OP_SHORT_BINBYTES:
		return push_counted(d, 1, VAL_BYTES);
	case OP_BINBYTES:
		return push_counted(d, 4, VAL_BYTES);
	case OP_BINBYTES8:
	case OP_BYTEARRAY8:
		return push_counted(d, 8, VAL_BYTES);
	case OP_SHORT_BINSTRING:
		return push_counted(d, 1, VAL_ABSENT);
	case OP_BINSTRING:
		return push_counted(d, 4, VAL_ABSENT);
	case OP_LONG1:
		return push_counted(d, 1, VAL_INT);
	case OP_LONG4:
		return push_counted(d, 4, VAL_INT);
	case OP_NONE:
		return push(d, val_none()) ? RP_OK : no_memory(d);
	case OP_NEWTRUE:
	case OP_NEWFALSE:
		return push(d, val_bool(op == OP_NEWTRUE)) ? RP_OK : no_memory(d);
	case OP_EMPTY_TUPLE:
		return fold(d, VAL_TUPLE, 0);
	case OP_EMPTY_LIST:
		return fold(d, VAL_LIST, 0);
	case OP_EMPTY_DICT:
		return fold(d, VAL_DICT, 0);
	case OP_EMPTY_SET:
		return fold(d, VAL_SET, 0);
	case OP_TUPLE1:
	case OP_TUPLE2:
	case OP_TUPLE3: {
		size_t n = op - OP_TUPLE1 + 1u;
		return can_pop(d, n) ? fold(d, VAL_TUPLE, n) : malformed(d, "too few values on the stack");
	}
	case OP_MARK:
		return push_mark(d) ? RP_OK : no_memory(d);
	case OP_APPENDS:
	case OP_SETITEMS:
	case OP_ADDITEMS:
	case OP_TUPLE:
	case OP_LIST:
	case OP_DICT:
	case OP_FROZENSET:
	case OP_POP_MARK:
	case OP_OBJ:
	case OP_INST:
		return marked(d, op);
	case OP_REDUCE:
	case OP_BUILD:
	case OP_NEWOBJ:
	case OP_NEWOBJ_EX:
	case OP_APPEND:
	case OP_SETITEM:
	case OP_STACK_GLOBAL:
	case OP_BINPERSID:
		return call(d, op);
	case OP_GLOBAL:
		return line_class(d);
	case OP_INT:
	case OP_LONG:
	case OP_FLOAT:
	case OP_STRING:
	case OP_UNICODE:
	case OP_PERSID:
		return line_value(d, op);
	case OP_EXT1:
		return push_extension(d, 1);
	case OP_EXT2:
		return push_extension(d, 2);
	case OP_EXT4:
		return push_extension(d, 4);
	case OP_POP:
		/* Python pops the mark where nothing lies above it. */
		if (can_pop(d, 1))
			d->depth--;
		else if (d->mark_count)
			d->mark_count--;
		else
			return malformed(d, "nothing on the stack");
		return RP_OK;
	case OP_DUP:
		if (!can_pop(d, 1))
			return malformed(d, "nothing on the stack");
		v = d->stack[d->depth - 1];
		return push(d, v) ? RP_OK : no_memory(d);
	case OP_PROTO:
		TAKE(1);
		if (p[0] > PROTOCOL_MAX)
			return fail(d->error, RP_E_UNSUPPORTED, offset_of(d, d->op), "pickle protocol %u is newer than %u",
				p[0], PROTOCOL_MAX);
		if (p[0] > d->p->protocol)
			d->p->protocol = p[0];
		return RP_OK;
	case OP_FRAME:
		TAKE(8);
		/* Frames are a reader's convenience; one that is longer than the pickle was cut off. */
		return load_le64(p) > (uint64_t)(d->end - d->at) ? cut_off(d, load_le64(p)) : RP_OK;
	case OP_NEXT_BUFFER:
		/* A buffer that the writer kept outside of the pickle. */
		return push(d, val_none()) ? fold(d, VAL_PERSISTENT, 1) : no_memory(d);
	case OP_READONLY_BUFFER:
		return RP_OK;
	case OP_STOP:
		if (!can_pop(d, 1))
			return malformed(d, "nothing on the stack");
		d->p->root = pop(d);
		return RP_OK;
	default:
		return malformed(d, "no such opcode");
	}
#undef TAKE
	if (!can_pop(d, 1))
		return malformed(d, "nothing on the stack");
	return put(d, slot, d->stack[d->depth - 1]);
}

int pickle_decode(struct pickle *p, struct slice bytes, struct error *e)
{
	const uint8_t *start = (const uint8_t *)bytes.p;
	struct decoder d = {.p = p, .error = e, .start = start, .at = start, .end = start + bytes.n, .op = start};
	int status = RP_OK;

	p->protocol = 0;
	p->truncated = false;
	do {
		d.op = d.at;
		if (d.at == d.end) {
			status = cut_off(&d, 1);
			break;
		}
		d.at++;
		if (opcodes[*d.op].protocol > p->protocol && *d.op != OP_PROTO)
			p->protocol = opcodes[*d.op].protocol;
		status = step(&d);
	} while (status == RP_OK && *d.op != OP_STOP);
	p->end = (size_t)(d.at - d.start);
	free(d.stack);
	free(d.memo);
	free(d.marks);
	free(d.names);
	return status;
}

void pickle_release(struct pickle *p)
{
	array_release(&p->classes);
}
