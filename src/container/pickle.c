/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "container/pickle.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/cursor.h"
#include "base/size.h"
#include "base/text.h"

/* Real checkpoints name tens of classes. */
#define CLASSES_MAX 100000u

/* Calls of getattr, partial and the like, each of which pickle_judge() looks at. */
#define DEEDS_MAX ((size_t)1 << 20)

/* How far a memo index may run ahead of the values there are; Python counts up from 0. */
#define MEMO_SLACK 256u

/* Python's own bound (sys.int_info.default_max_str_digits): reading takes quadratic time. */
#define DIGITS_MAX 4300u

#define SETSTATE SLICE("__setstate__")

enum opcode {
#define OPCODE(byte, name, protocol, argument, pops, pushes) OP_##name = byte,
#include "container/pickle_ops.def"
#undef OPCODE
};

struct op {
	uint8_t argument, pops, pushes, protocol;
};

static const struct op ops[256] = {
#define OPCODE(byte, name, protocol, argument, pops, pushes)                                       \
	[byte] = {argument, pops, pushes, protocol},
#include "container/pickle_ops.def"
#undef OPCODE
};

static const char *const op_names[256] = {
#define OPCODE(byte, name, protocol, argument, pops, pushes) [byte] = #name,
#include "container/pickle_ops.def"
#undef OPCODE
};

/* What calls of some classes make: struct klass.makes. */
enum makes {
	MAKES_OBJECT,
	MAKES_SET,
	MAKES_FROZENSET,
	MAKES_LIST,
	MAKES_TUPLE,
	MAKES_DICT,
	MAKES_BYTES,
	MAKES_SIZE,          /* torch.Size((…)), of which an index of shards has millions */
	MAKES_ENCODED,       /* _codecs.encode(text, 'latin1') */
	MAKES_RECONSTRUCTED, /* copyreg._reconstructor(class, base, state) */
	MAKES_NEWOBJ,        /* copyreg.__newobj__(class, *args) */
	MAKES_NEWOBJ_EX,     /* copyreg.__newobj_ex__(class, args, kwargs) */
};

struct decoder {
	struct pickle *p;
	struct arena *arena;
	struct error *e;
	const uint8_t *start, *end;
	const uint8_t *op; /* the opcode at work */
	/* The stack; `floor` is above the last mark. Where its top is, the loop knows. */
	struct val *bottom, *floor, *limit;
	size_t stack_max;
	ARRAY(size_t) marks; /* heights of the stack */
	struct val *memo;
	size_t memo_capacity, memo_used, memo_count; /* slots: allocated, initialized, filled */
	uint64_t values, values_max;
	struct val empty; /* the empty tuple, once there is one */
	uint32_t buffers; /* out-of-band buffers so far */
	/* Classes by module and name: open addressing, at most half full. */
	struct klass **slots;
	size_t slot_count;
	uint64_t seed;
	/* The word __setstate__ occurs, and how many more keys may be compared with it. */
	bool planting;
	uint64_t planting_budget;
};

/* Errors ------------------------------------------------------------------------------------ */

static uint64_t op_offset(const struct decoder *d)
{
	return d->p->base + (uint64_t)(d->op - d->start);
}

static int trouble(struct decoder *d, int status, const char *format, ...)
	__attribute__((format(printf, 3, 4), cold, noinline));
static int trouble(struct decoder *d, int status, const char *format, ...)
{
	char words[200];
	va_list args;

	va_start(args, format);
	vsnprintf(words, sizeof words, format, args);
	va_end(args);
	return fail(d->e, status, op_offset(d), "%s at byte %llu %s", op_names[*d->op],
		(unsigned long long)op_offset(d), words);
}

#define malformed(d, ...) trouble(d, RP_E_FORMAT, __VA_ARGS__)

static int no_memory(struct decoder *d)
{
	return fail(d->e, RP_E_MEMORY, op_offset(d),
		"no memory for the values of a pickle (or the limit memory was reached)");
}

/* The bytes end before what begins at `at` and is `n` bytes long. */
static int __attribute__((cold, noinline))
ends_early(struct decoder *d, const uint8_t *at, uint64_t n, const char *what)
{
	uint64_t behind = (uint64_t)(at - d->start);

	d->p->truncated = true;
	d->p->needed = n > UINT64_MAX - behind ? UINT64_MAX : behind + n;
	return malformed(d, "needs %llu bytes of %s, but the pickle ends after %llu",
		(unsigned long long)n, what, (unsigned long long)(d->end - at));
}

static int __attribute__((cold, noinline)) no_stop(struct decoder *d)
{
	uint64_t n = (uint64_t)(d->end - d->start);

	d->p->truncated = true;
	d->p->needed = n + 1;
	return fail(d->e, RP_E_FORMAT, d->p->base + n,
		"the pickle ends after %llu bytes without STOP", (unsigned long long)n);
}

/* Stack, marks, memo ------------------------------------------------------------------------ */

static int __attribute__((noinline)) grow_stack(struct decoder *d, struct val **top)
{
	size_t count = (size_t)(*top - d->bottom), floor = (size_t)(d->floor - d->bottom);
	size_t capacity = (size_t)(d->limit - d->bottom);

	if (capacity >= d->stack_max)
		return trouble(d, RP_E_LIMIT,
			"puts more than %zu values on the stack; raise the limits "
			"nodes and memory",
			d->stack_max);
	capacity = capacity > d->stack_max / 2 ? d->stack_max : capacity * 2;
	struct val *grown = reallocarray(d->bottom, capacity, sizeof *grown);
	if (!grown)
		return no_memory(d);
	d->bottom = grown;
	d->floor = grown + floor;
	d->limit = grown + capacity;
	*top = grown + count;
	return RP_OK;
}

static int push_mark(struct decoder *d, struct val *top)
{
	size_t *mark = array_push(&d->marks, d->stack_max);

	if (!mark)
		return no_memory(d);
	*mark = (size_t)(top - d->bottom);
	d->floor = top;
	return RP_OK;
}

/* Take the last mark away; its first value is *items. */
static int pop_mark(struct decoder *d, struct val **items)
{
	*items = NULL;
	if (d->marks.count == 0)
		return malformed(d, "finds no MARK on the stack");
	d->marks.count--;
	*items = d->floor;
	d->floor = d->bottom + (d->marks.count ? d->marks.items[d->marks.count - 1] : 0);
	return RP_OK;
}

static int __attribute__((noinline)) grow_memo(struct decoder *d, uint64_t index)
{
	if (index > d->values + MEMO_SLACK)
		return trouble(d, RP_E_LIMIT, "uses the memo index %llu after only %llu values",
			(unsigned long long)index, (unsigned long long)d->values);
	size_t capacity = d->memo_capacity ? d->memo_capacity * 2 : 64;
	if (capacity <= index)
		capacity = (size_t)index + 1;
	struct val *grown = reallocarray(d->memo, capacity, sizeof *grown);
	if (!grown)
		return no_memory(d);
	arena_prefer_huge_pages(grown, capacity * sizeof *grown);
	d->memo = grown;
	d->memo_capacity = capacity;
	return RP_OK;
}

static inline int memo_put(struct decoder *d, uint64_t index, struct val v)
{
	if (index >= d->memo_used) {
		if (index >= d->memo_capacity) {
			int status = grow_memo(d, index);
			if (status < 0)
				return status;
		}
		while (d->memo_used <= index)
			d->memo[d->memo_used++] = (struct val){0};
	}
	if (d->memo[index].kind == VAL_ABSENT)
		d->memo_count++;
	d->memo[index] = v;
	return RP_OK;
}

static inline int memo_get(struct decoder *d, uint64_t index, struct val *out)
{
	if (index >= d->memo_used || d->memo[index].kind == VAL_ABSENT)
		return malformed(d, "asks for the memo's entry %llu, which was never made",
			(unsigned long long)index);
	*out = d->memo[index];
	return RP_OK;
}

/* Containers -------------------------------------------------------------------------------- */

/* A container of exactly these kids. */
static int make_node(
	struct decoder *d, enum val_kind kind, const struct val *kids, size_t n, struct val *out)
{
	if (n >= NODE_SEALED)
		return trouble(d, RP_E_LIMIT, "makes a container of %zu values", n);
	struct node *node = arena_alloc(d->arena, sizeof *node + n * sizeof *kids);
	if (!node)
		return no_memory(d);
	if (n > 0) {
		node->kids = (struct val *)(node + 1);
		memcpy(node->kids, kids, n * sizeof *kids);
		node->count = node->capacity = (uint32_t)n;
	}
	*out = (struct val){.kind = (uint8_t)kind, .node = node};
	return RP_OK;
}

/* Another container of the same kids. They are not shared in memory once either grows. */
static int remake_node(
	struct decoder *d, enum val_kind kind, const struct node *of, struct val *out)
{
	int status = make_node(d, kind, NULL, 0, out);

	if (status < 0)
		return status;
	*out->node = (struct node){of->kids, of->count, of->count};
	return RP_OK;
}

/* Append kids: the first time room for exactly these, since most containers are filled at once. */
static int extend(struct decoder *d, struct node *node, const struct val *kids, size_t n)
{
	if (n == 0)
		return RP_OK;
	size_t count = node->count + n;
	if (count >= NODE_SEALED)
		return trouble(d, RP_E_LIMIT, "makes a container of %zu values", count);
	if (count > node->capacity) {
		size_t capacity = (size_t)node->count * 2;
		if (capacity < count)
			capacity = count;
		if (capacity >= NODE_SEALED)
			capacity = NODE_SEALED - 1;
		/* One by one they come in protocol 0. */
		if (n <= 2 && capacity < 4)
			capacity = 4;
		struct val *grown = arena_array(d->arena, capacity, sizeof *grown);
		if (!grown)
			return no_memory(d);
		if (node->count > 0)
			memcpy(grown, node->kids, node->count * sizeof *grown);
		node->kids = grown;
		node->capacity = (uint32_t)capacity;
	}
	memcpy(node->kids + node->count, kids, n * sizeof *kids);
	node->count = (uint32_t)count;
	return RP_OK;
}

/* Text -------------------------------------------------------------------------------------- */

/* UTF-8, with surrogates as Python's "surrogatepass" lets through. The first bytes may be ASCII. */
static bool wide_text_is_valid(struct slice text)
{
	while (text.n > 0) {
		uint32_t point;
		const uint8_t *p = (const uint8_t *)text.p;
		size_t length = text_utf8_next(text, &point);
		if (length == 0 && text.n >= 3 && p[0] == 0xed && (p[1] & 0xe0) == 0xa0 &&
			(p[2] & 0xc0) == 0x80)
			length = 3;
		if (length == 0)
			return false;
		text.p += length;
		text.n -= length;
	}
	return true;
}

static inline bool text_is_valid(struct slice text)
{
	const uint64_t high = 0x8080808080808080u;
	uint64_t word, all = 0;
	size_t i = 0;

	for (; i + sizeof word <= text.n; i += sizeof word) {
		memcpy(&word, text.p + i, sizeof word);
		all |= word;
	}
	for (; i < text.n; i++)
		all |= (uint8_t)text.p[i];
	return !(all & high) || wide_text_is_valid(text);
}

static inline int make_text(struct decoder *d, struct slice text, struct val *out)
{
	if (!text_is_valid(text))
		return malformed(d, "holds text that is not UTF-8");
	if (text.n == SETSTATE.n && slice_eq(text, SETSTATE))
		d->planting = true;
	*out = val_text(text);
	return RP_OK;
}

/* Counted bytes at *p, of which `p` is moved to the end. */
static inline int take(
	struct decoder *d, const uint8_t **p, uint64_t n, const char *what, struct slice *out)
{
	if (n > (uint64_t)(d->end - *p))
		return ends_early(d, *p, n, what);
	if (n > UINT32_MAX)
		return trouble(d, RP_E_LIMIT, "holds %llu bytes of %s; at most 4 GiB are read",
			(unsigned long long)n, what);
	*out = (struct slice){(const char *)*p, (size_t)n};
	*p += n;
	return RP_OK;
}

static inline int take_text(struct decoder *d, const uint8_t **p, uint64_t n, struct val *out)
{
	struct slice text = {0};
	int status = take(d, p, n, "text", &text);

	return status < 0 ? status : make_text(d, text, out);
}

static inline int take_bytes(struct decoder *d, const uint8_t **p, uint64_t n, struct val *out)
{
	struct slice bytes = {0};
	int status = take(d, p, n, "data", &bytes);

	if (status == RP_OK)
		*out = val_bytes(bytes);
	return status;
}

/* A str of Python 2, which may be text or bytes. */
static int make_string(struct decoder *d, struct slice bytes, struct val *out)
{
	if (text_is_valid(bytes))
		return make_text(d, bytes, out);
	*out = val_bytes(bytes);
	return RP_OK;
}

static inline int take_string(struct decoder *d, const uint8_t **p, uint64_t n, struct val *out)
{
	struct slice bytes = {0};
	int status = take(d, p, n, "text", &bytes);

	return status < 0 ? status : make_string(d, bytes, out);
}

/* The text up to the next newline, of the opcodes of protocol 0. */
static int take_line(struct decoder *d, const uint8_t **p, struct slice *line)
{
	const uint8_t *end = memchr(*p, '\n', (size_t)(d->end - *p));

	if (!end) {
		d->p->truncated = true;
		d->p->needed = (uint64_t)(d->end - d->start) + 1;
		return malformed(d, "has a line that the end of the pickle cuts off");
	}
	*line = (struct slice){(const char *)*p, (size_t)(end - *p)};
	*p = end + 1;
	if (line->n > UINT32_MAX)
		return trouble(d, RP_E_LIMIT, "has a line of %zu bytes", line->n);
	return RP_OK;
}

static struct slice trimmed(struct slice s)
{
	while (s.n > 0 && (s.p[s.n - 1] == ' ' || (s.p[s.n - 1] >= '\t' && s.p[s.n - 1] <= '\r')))
		s.n--;
	while (s.n > 0 && (s.p[0] == ' ' || (s.p[0] >= '\t' && s.p[0] <= '\r'))) {
		s.p++;
		s.n--;
	}
	return s;
}

/* `n` hexadecimal digits at text.p + at. */
static bool hex_digits(struct slice text, size_t at, size_t n, uint32_t *out)
{
	*out = 0;
	if (n > text.n - at)
		return false;
	for (size_t i = 0; i < n; i++) {
		int digit = text_hex_digit(text.p[at + i]);
		if (digit < 0)
			return false;
		*out = *out << 4 | (uint32_t)digit;
	}
	return true;
}

/* The line of UNICODE: Latin-1 with \uXXXX and \UXXXXXXXX; any other backslash is itself. */
static int read_unicode(struct decoder *d, struct slice line, struct val *out)
{
	bool plain = true;

	for (size_t i = 0; i < line.n && plain; i++)
		plain = line.p[i] != '\\' && !(line.p[i] & 0x80);
	if (plain)
		return make_text(d, line, out);
	char *text = arena_array(d->arena, line.n, 2);
	if (!text)
		return no_memory(d);
	size_t n = 0;
	for (size_t i = 0; i < line.n;) {
		uint32_t c = (uint8_t)line.p[i++];
		if (c == '\\' && i < line.n) {
			char next = line.p[i++];
			size_t digits = next == 'u' ? 4 : next == 'U' ? 8 : 0;
			if (digits == 0) {
				text[n++] = '\\';
				c = (uint8_t)next;
			} else if (!hex_digits(line, i, digits, &c) || c > 0x10ffff) {
				return malformed(d, "has a \\%c that no character follows", next);
			}
			i += digits;
		}
		n += text_utf8_put(text + n, c);
	}
	if (n > UINT32_MAX)
		return trouble(d, RP_E_LIMIT, "holds %zu bytes of text", n);
	return make_text(d, (struct slice){text, n}, out);
}

/* The line of STRING: Python's repr of bytes, in quotes. */
static int read_string(struct decoder *d, struct slice line, struct val *out)
{
	static const char escapes[] = "\\\\''\"\"a\ab\bf\fn\nr\rt\tv\v";

	line = trimmed(line);
	if (line.n < 2 || line.p[0] != line.p[line.n - 1] ||
		(line.p[0] != '\'' && line.p[0] != '"'))
		return malformed(d, "holds text without quotes");
	line.p++;
	line.n -= 2;
	if (!memchr(line.n ? line.p : "", '\\', line.n))
		return make_string(d, line, out);
	char *text = arena_alloc(d->arena, line.n);
	if (!text)
		return no_memory(d);
	size_t n = 0;
	for (size_t i = 0; i < line.n;) {
		char c = line.p[i++];
		uint32_t code = 0;
		if (c == '\\') {
			if (i == line.n)
				return malformed(d, "holds text that ends in a backslash");
			c = line.p[i++];
			const char *escape = escapes;
			while (*escape && *escape != c)
				escape += 2;
			if (c == 'x') {
				if (!hex_digits(line, i, 2, &code))
					return malformed(d, "has a \\x that no byte follows");
				i += 2;
				c = (char)code;
			} else if (c >= '0' && c <= '7') {
				code = (uint32_t)(c - '0');
				for (int k = 0;
					k < 2 && i < line.n && line.p[i] >= '0' && line.p[i] <= '7';
					k++)
					code = code << 3 | (uint32_t)(line.p[i++] - '0');
				c = (char)(code & 0xff);
			} else if (*escape && c) {
				c = escape[1];
			} else {
				text[n++] = '\\'; /* an unknown escape stays as it is */
			}
		}
		text[n++] = c;
	}
	return make_string(d, (struct slice){text, n}, out);
}

/* Numbers ----------------------------------------------------------------------------------- */

/* Little-endian two's complement of any length; the bytes must live as long as the graph. */
static struct val make_integer(const uint8_t *p, size_t n)
{
	uint8_t sign = n > 0 && p[n - 1] & 0x80 ? 0xff : 0;

	if (n <= 8) {
		uint64_t bits = sign ? UINT64_MAX : 0;
		for (size_t i = n; i-- > 0;)
			bits = bits << 8 | p[i];
		return val_int((int64_t)bits);
	}
	while (n > 8 && p[n - 1] == sign && !((p[n - 2] ^ sign) & 0x80))
		n--;
	if (n <= 8)
		return val_int((int64_t)load_le64(p));
	return (struct val){.kind = VAL_BIGINT, .n = (uint32_t)n, .s = (const char *)p};
}

/* Decimal digits of any number up to DIGITS_MAX. */
static int read_long_decimal(struct decoder *d, struct slice digits, bool negative, struct val *out)
{
	uint32_t limbs[DIGITS_MAX / 9 + 2] = {0};
	size_t used = 1;

	if (digits.n > DIGITS_MAX)
		return trouble(d, RP_E_LIMIT,
			"is an integer of %zu digits; Python reads at most %u", digits.n,
			DIGITS_MAX);
	for (size_t i = 0; i < digits.n;) {
		uint32_t scale = 1;
		uint64_t carry = 0;
		for (int k = 0; k < 9 && i < digits.n; k++, i++) {
			carry = carry * 10 + (uint64_t)(digits.p[i] - '0');
			scale *= 10;
		}
		for (size_t k = 0; k < used; k++) {
			carry += (uint64_t)limbs[k] * scale;
			limbs[k] = (uint32_t)carry;
			carry >>= 32;
		}
		if (carry)
			limbs[used++] = (uint32_t)carry;
	}
	/* One limb more, so that there is a sign bit. */
	size_t n = (used + 1) * 4;
	uint8_t *bytes = arena_alloc(d->arena, n);
	if (!bytes)
		return no_memory(d);
	uint64_t carry = negative;
	for (size_t i = 0; i < n; i++) {
		uint8_t byte = (uint8_t)(i / 4 < used ? limbs[i / 4] >> i % 4 * 8 : 0);
		if (negative) {
			carry += (uint8_t)~byte;
			byte = (uint8_t)carry;
			carry >>= 8;
		}
		bytes[i] = byte;
	}
	*out = make_integer(bytes, n);
	return RP_OK;
}

static int read_decimal(struct decoder *d, struct slice line, struct val *out)
{
	bool negative = false;
	int64_t value = 0;
	bool fits = true;

	line = trimmed(line);
	if (line.n > 0 && (line.p[0] == '-' || line.p[0] == '+')) {
		negative = line.p[0] == '-';
		line.p++;
		line.n--;
	}
	if (line.n > 1 && *d->op == OP_LONG && line.p[line.n - 1] == 'L')
		line.n--;
	for (size_t i = 0; i < line.n; i++) {
		int digit = line.p[i] - '0';
		if (digit < 0 || digit > 9)
			return malformed(d, "is no decimal number");
		/* Downwards, since there is one more negative number. */
		if (__builtin_mul_overflow(value, (int64_t)10, &value) ||
			__builtin_sub_overflow(value, (int64_t)digit, &value))
			fits = false;
	}
	if (line.n == 0)
		return malformed(d, "is no decimal number");
	if (!fits || (!negative && value == INT64_MIN))
		return read_long_decimal(d, line, negative, out);
	*out = val_int(negative ? value : -value);
	return RP_OK;
}

/* INT writes booleans as 00 and 01. */
static int read_int(struct decoder *d, struct slice line, struct val *out)
{
	if (slice_is(line, "00") || slice_is(line, "01")) {
		*out = val_bool(line.p[1] == '1');
		return RP_OK;
	}
	return read_decimal(d, line, out);
}

static int read_float(struct decoder *d, struct slice line, struct val *out)
{
	double v;

	if (!text_parse_double(trimmed(line), &v))
		return malformed(d, "is no number");
	*out = val_float(v);
	return RP_OK;
}

static int read_index(struct decoder *d, struct slice line, uint64_t *out)
{
	if (!text_parse_u64(trimmed(line), UINT32_MAX, out))
		return malformed(d, "names no memo index");
	return RP_OK;
}

static double load_be_double(const uint8_t *p)
{
	uint64_t bits = load_be64(p);
	double v;

	memcpy(&v, &bits, sizeof v);
	return v;
}

/* Classes ----------------------------------------------------------------------------------- */

static void know_maker(struct klass *k)
{
	/* By their names in Python 3 and 2; protocols up to 2 use the latter. */
	static const struct {
		const char *module, *old_module, *name;
		enum makes makes;
	} makers[] = {
		{"builtins", "__builtin__", "set", MAKES_SET},
		{"builtins", "__builtin__", "frozenset", MAKES_FROZENSET},
		{"builtins", "__builtin__", "list", MAKES_LIST},
		{"builtins", "__builtin__", "tuple", MAKES_TUPLE},
		{"builtins", "__builtin__", "dict", MAKES_DICT},
		{"builtins", "__builtin__", "bytes", MAKES_BYTES},
		{"builtins", "__builtin__", "bytearray", MAKES_BYTES},
		{"copyreg", "copy_reg", "_reconstructor", MAKES_RECONSTRUCTED},
		{"copyreg", "copy_reg", "__newobj__", MAKES_NEWOBJ},
		{"copyreg", "copy_reg", "__newobj_ex__", MAKES_NEWOBJ_EX},
		{"_codecs", "_codecs", "encode", MAKES_ENCODED},
		{"torch", "torch", "Size", MAKES_SIZE},
	};

	for (size_t i = 0; i < sizeof makers / sizeof *makers; i++)
		if (slice_is(k->name, makers[i].name) &&
			(slice_is(k->module, makers[i].module) ||
				slice_is(k->module, makers[i].old_module)))
			k->makes = (uint8_t)makers[i].makes;
}

static size_t class_slot(const struct decoder *d, struct slice module, struct slice name)
{
	uint64_t hash = XXH3_64bits_withSeed(name.p ? name.p : "", name.n,
		XXH3_64bits_withSeed(module.p ? module.p : "", module.n, d->seed));
	size_t i = (size_t)hash & (d->slot_count - 1);

	while (d->slots[i] &&
		!(slice_eq(d->slots[i]->name, name) && slice_eq(d->slots[i]->module, module)))
		i = (i + 1) & (d->slot_count - 1);
	return i;
}

static bool grow_classes(struct decoder *d)
{
	size_t count = d->slot_count ? d->slot_count * 2 : 64;
	struct klass **slots = calloc(count, sizeof(struct klass *));

	if (!slots)
		return false;
	free(d->slots);
	d->slots = slots;
	d->slot_count = count;
	/* Names come from files: an address makes the seed one that no file was written for. */
	d->seed = (uint64_t)(uintptr_t)slots;
	for (size_t i = 0; i < d->p->classes.count; i++) {
		struct klass *k = d->p->classes.items[i];
		slots[class_slot(d, k->module, k->name)] = k;
	}
	return true;
}

static int make_class(struct decoder *d, struct slice module, struct slice name, struct val *out)
{
	if (d->p->classes.count >= d->slot_count / 2 && !grow_classes(d))
		return no_memory(d);
	struct klass **slot = &d->slots[class_slot(d, module, name)];
	if (!*slot) {
		if (d->p->classes.count >= CLASSES_MAX)
			return trouble(d, RP_E_LIMIT, "names more than %u classes", CLASSES_MAX);
		struct klass *k = arena_new(d->arena, struct klass);
		struct klass **place = k ? array_push(&d->p->classes, CLASSES_MAX) : NULL;
		if (!place)
			return no_memory(d);
		k->module = module;
		k->offset = op_offset(d);
		k->name = name;
		know_maker(k);
		pickle_know(k);
		*place = *slot = k;
	}
	*out = (struct val){.kind = VAL_CLASS, .klass = *slot};
	return RP_OK;
}

/* Two lines: module and name. */
static int take_class(struct decoder *d, const uint8_t **p, struct val *out)
{
	struct slice module = {0}, name = {0};
	int status = take_line(d, p, &module);

	if (status == RP_OK)
		status = take_line(d, p, &name);
	if (status < 0)
		return status;
	if (!text_is_valid(module) || !text_is_valid(name))
		return malformed(d, "names a class in text that is not UTF-8");
	return make_class(d, module, name, out);
}

static int make_extension(struct decoder *d, int64_t code, struct val *out)
{
	if (code <= 0)
		return malformed(d, "has the extension code %lld", (long long)code);
	const char *name = arena_printf(d->arena, "extension %lld", (long long)code);
	if (!name)
		return no_memory(d);
	return make_class(d, SLICE("copyreg"), slice_of(name), out);
}

/* Objects ----------------------------------------------------------------------------------- */

static int record(struct decoder *d, enum pickle_deed_kind kind, struct val what, struct val with,
	struct object *made)
{
	if (d->p->deeds.count >= DEEDS_MAX)
		return trouble(d, RP_E_LIMIT,
			"is one of more than %zu calls that would have to be judged", DEEDS_MAX);
	struct pickle_deed *deed = array_push(&d->p->deeds, DEEDS_MAX);
	if (!deed)
		return no_memory(d);
	*deed = (struct pickle_deed){kind, what, with, made, op_offset(d)};
	return RP_OK;
}

static int make_object(
	struct decoder *d, struct val callable, struct val args, struct val kwargs, struct val *out)
{
	bool watched = true;

	if (callable.kind == VAL_CLASS) {
		callable.klass->called = true;
		watched = callable.klass->watched && !pickle_is_idle(callable.klass, args);
	} else if (callable.kind != VAL_OBJECT && callable.kind != VAL_PERSISTENT &&
		   callable.kind != VAL_TENSOR) {
		return malformed(d, "calls a value of type %s", val_kind_name(callable.kind));
	}
	struct object *o = arena_new(d->arena, struct object);
	if (!o)
		return no_memory(d);
	o->callable = callable;
	o->args = args;
	o->kwargs = kwargs;
	*out = (struct val){.kind = VAL_OBJECT, .object = o};
	return watched ? record(d, PICKLE_CALLS, callable, args, o) : RP_OK;
}

/* Latin-1 text as bytes; *out stays ABSENT where a character is beyond U+00FF. */
static int encode_latin1(struct decoder *d, struct slice text, struct val *out)
{
	size_t first = 0, n;

	while (first < text.n && !(text.p[first] & 0x80))
		first++;
	if (first == text.n) {
		*out = val_bytes(text);
		return RP_OK;
	}
	char *bytes = arena_alloc(d->arena, text.n);
	if (!bytes)
		return no_memory(d);
	memcpy(bytes, text.p, first);
	n = first;
	for (size_t i = first; i < text.n; i++) {
		uint8_t c = (uint8_t)text.p[i];
		if (c >= 0x80) {
			/* Valid UTF-8: a continuation byte is there. */
			if (c > 0xc3)
				return RP_OK;
			c = (uint8_t)(c << 6 | ((uint8_t)text.p[++i] & 0x3f));
		}
		bytes[n++] = (char)c;
	}
	*out = val_bytes((struct slice){bytes, n});
	return RP_OK;
}

static bool is_latin1(struct val encoding)
{
	static const char *const names[] = {"latin1", "latin-1", "latin_1", "iso-8859-1"};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (val_is_text(encoding, names[i]))
			return true;
	return false;
}

/* bytes(), bytes(b'…'), bytearray(text, 'latin-1') */
static int make_bytes(struct decoder *d, const struct node *args, struct val *out)
{
	if (args->count == 0)
		*out = val_bytes(SLICE(""));
	else if (args->count == 1 && args->kids[0].kind == VAL_BYTES)
		*out = args->kids[0];
	else if (args->count == 2 && args->kids[0].kind == VAL_TEXT && is_latin1(args->kids[1]))
		return encode_latin1(d, val_slice(args->kids[0]), out);
	return RP_OK;
}

/* list(), list([…]), set([…]); what a class makes of anything else, it has to make at load time. */
static int make_container(
	struct decoder *d, enum val_kind kind, const struct node *args, struct val *out)
{
	if (args->count == 0)
		return make_node(d, kind, NULL, 0, out);
	if (args->count != 1)
		return RP_OK;
	struct val from = args->kids[0];
	bool fits = kind == VAL_DICT ? from.kind == VAL_DICT
				     : val_is_container(from) && from.kind != VAL_DICT;
	return fits ? remake_node(d, kind, from.node, out) : RP_OK;
}

/*
 * copyreg._reconstructor(class, base, state), in protocols 0 and 1: an instance of a subclass of
 * `base`, which is object or a builtin type whose value is the state.
 */
static int reconstruct(struct decoder *d, const struct node *args, struct val *out)
{
	struct val base, state, tuple = {0};

	if (args->count != 3 || args->kids[0].kind != VAL_CLASS)
		return RP_OK;
	base = args->kids[1];
	state = args->kids[2];
	bool plain = val_is_class(base, "__builtin__", "object") ||
		     val_is_class(base, "builtins", "object");
	if (!plain && state.kind != VAL_LIST && state.kind != VAL_DICT) {
		int status = make_node(d, VAL_TUPLE, &state, 1, &tuple);
		if (status < 0)
			return status;
	}
	int status = make_object(d, args->kids[0], tuple, (struct val){0}, out);
	if (status < 0 || plain)
		return status;
	struct node *parts = state.kind == VAL_LIST ? &out->object->list : &out->object->dict;
	if (state.kind == VAL_LIST || state.kind == VAL_DICT)
		*parts = (struct node){state.node->kids, state.node->count, state.node->count};
	return RP_OK;
}

/* What the call of a maker makes, where that is plain; else *out stays ABSENT. */
static int make(struct decoder *d, enum makes makes, const struct node *args, struct val *out)
{
	struct val rest;
	int status;

	switch (makes) {
	case MAKES_SET:
		return make_container(d, VAL_SET, args, out);
	case MAKES_FROZENSET:
		return make_container(d, VAL_FROZENSET, args, out);
	case MAKES_LIST:
		return make_container(d, VAL_LIST, args, out);
	case MAKES_TUPLE:
		return make_container(d, VAL_TUPLE, args, out);
	case MAKES_DICT:
		return make_container(d, VAL_DICT, args, out);
	case MAKES_BYTES:
		return make_bytes(d, args, out);
	case MAKES_SIZE:
		if (args->count == 1 && args->kids[0].kind == VAL_TUPLE)
			*out = args->kids[0];
		return RP_OK;
	case MAKES_ENCODED:
		if (args->count == 2 && args->kids[0].kind == VAL_TEXT && is_latin1(args->kids[1]))
			return encode_latin1(d, val_slice(args->kids[0]), out);
		return RP_OK;
	case MAKES_RECONSTRUCTED:
		return reconstruct(d, args, out);
	case MAKES_NEWOBJ:
		if (args->count == 0 || args->kids[0].kind != VAL_CLASS)
			return RP_OK;
		status = make_node(d, VAL_TUPLE, args->kids + 1, args->count - 1, &rest);
		return status < 0 ? status
				  : make_object(d, args->kids[0], rest, (struct val){0}, out);
	case MAKES_NEWOBJ_EX:
		if (args->count != 3 || args->kids[0].kind != VAL_CLASS)
			return RP_OK;
		return make_object(d, args->kids[0], args->kids[1], args->kids[2], out);
	case MAKES_OBJECT:
		break;
	}
	return RP_OK;
}

/* A tuple, or what may turn out to be one: torch.Size and other subclasses are objects here. */
static bool may_be_tuple(struct val v)
{
	return v.kind == VAL_TUPLE || v.kind == VAL_OBJECT || v.kind == VAL_PERSISTENT;
}

static int call(struct decoder *d, struct val callable, struct val args, struct val *out)
{
	if (!may_be_tuple(args))
		return malformed(d, "calls something with a %s in place of arguments",
			val_kind_name(args.kind));
	if (callable.kind == VAL_CLASS && callable.klass->makes && args.kind == VAL_TUPLE) {
		struct val made = {0};
		int status = make(d, callable.klass->makes, args.node, &made);
		if (status < 0)
			return status;
		if (made.kind != VAL_ABSENT) {
			callable.klass->called = true;
			*out = made;
			return RP_OK;
		}
	}
	return make_object(d, callable, args, (struct val){0}, out);
}

/* BUILD twice updates the attributes. */
static int merge_state(struct decoder *d, struct object *o, struct val state)
{
	if (o->state.kind != VAL_DICT || state.kind != VAL_DICT) {
		o->state = state;
		return RP_OK;
	}
	d->values += (uint64_t)o->state.node->count + state.node->count;
	struct val merged;
	int status = make_node(d, VAL_DICT, o->state.node->kids, o->state.node->count, &merged);
	if (status == RP_OK)
		status = extend(d, merged.node, state.node->kids, state.node->count);
	if (status == RP_OK)
		o->state = merged;
	return status;
}

/*
 * Once an object's attributes hold a __setstate__, the next BUILD calls it. No class of good intent
 * does that. The budget keeps a dict that is given to many objects from being searched each time.
 */
static int look_for_planted(struct decoder *d, struct val state)
{
	if (state.kind == VAL_TUPLE) {
		for (uint32_t i = 0; i < state.node->count && i < 2; i++)
			if (state.node->kids[i].kind == VAL_DICT) {
				int status = look_for_planted(d, state.node->kids[i]);
				if (status < 0)
					return status;
			}
		return RP_OK;
	}
	if (state.kind != VAL_DICT || state.node->count > d->planting_budget)
		return RP_OK;
	d->planting_budget -= state.node->count;
	for (uint32_t i = 0; i + 1 < state.node->count; i += 2) {
		struct val key = state.node->kids[i], value = state.node->kids[i + 1];
		if (key.kind != VAL_TEXT || !slice_eq(val_slice(key), SETSTATE) ||
			(value.kind != VAL_CLASS && value.kind != VAL_OBJECT))
			continue;
		int status = record(d, PICKLE_PLANTS, value, state, NULL);
		if (status < 0)
			return status;
	}
	return RP_OK;
}

static int build(struct decoder *d, struct val target, struct val state)
{
	switch (target.kind) {
	case VAL_OBJECT:
		if (d->planting) {
			int status = look_for_planted(d, state);
			if (status < 0)
				return status;
		}
		if (target.object->state.kind != VAL_ABSENT)
			return merge_state(d, target.object, state);
		target.object->state = state;
		return RP_OK;
	case VAL_CLASS:
		return record(d, PICKLE_CHANGES, target, state, NULL);
	case VAL_PERSISTENT:
	case VAL_TENSOR:
		return RP_OK;
	default:
		return malformed(d, "sets the state of a %s", val_kind_name(target.kind));
	}
}

/* Items for a list, a dict or a set, or an object that behaves like one (deque, OrderedDict). */
static int add_items(
	struct decoder *d, struct val target, enum val_kind kind, const struct val *items, size_t n)
{
	if (target.kind == kind)
		return extend(d, target.node, items, n);
	if (target.kind == VAL_OBJECT)
		return extend(d, kind == VAL_DICT ? &target.object->dict : &target.object->list,
			items, n);
	if (target.kind == VAL_CLASS)
		return record(d, PICKLE_CHANGES, target, n > 0 ? items[n - 1] : val_none(), NULL);
	return malformed(d, "puts items into a %s", val_kind_name(target.kind));
}

static int persistent(struct decoder *d, struct val id, struct val *out)
{
	if (!d->p->persistent)
		return make_node(d, VAL_PERSISTENT, &id, 1, out);
	*out = (struct val){0};
	int status = d->p->persistent(d->p->context, id, out, d->e);
	if (status == RP_OK && out->kind == VAL_ABSENT)
		*out = val_none();
	return status;
}

static int next_buffer(struct decoder *d, struct val *out)
{
	struct val class, args, index = val_int(d->buffers++);
	int status = make_class(d, SLICE("pickle"), SLICE("PickleBuffer"), &class);

	if (status == RP_OK)
		status = make_node(d, VAL_TUPLE, &index, 1, &args);
	return status < 0 ? status : make_object(d, class, args, (struct val){0}, out);
}

/* The loop ---------------------------------------------------------------------------------- */

/* What is wrong before an opcode that cannot be done at once; RP_OK where the stack had to grow. */
static int __attribute__((noinline)) prepare(struct decoder *d, struct val **top)
{
	const struct op *o = &ops[*d->op];

	if (!op_names[*d->op])
		return fail(d->e, RP_E_FORMAT, op_offset(d),
			"the byte 0x%02x at byte %llu is no opcode", *d->op,
			(unsigned long long)op_offset(d));
	if (d->end - d->op <= o->argument)
		return ends_early(d, d->op + 1, o->argument, "argument");
	if (*top - d->floor < o->pops)
		return malformed(
			d, "needs %u values on the stack, which has %td", o->pops, *top - d->floor);
	if (d->values > d->values_max)
		return trouble(d, RP_E_LIMIT, "is beyond %llu values; raise the limit nodes",
			(unsigned long long)d->values_max);
	return *top == d->limit ? grow_stack(d, top) : RP_OK;
}

static int stop(struct decoder *d, const uint8_t *p, struct val root, uint8_t protocol)
{
	d->p->root = root;
	d->p->end = (size_t)(p - d->start);
	if (d->p->protocol < protocol)
		d->p->protocol = protocol;
	return RP_OK;
}

static int set_protocol(struct decoder *d, uint8_t protocol)
{
	if (protocol > 5)
		return trouble(d, protocol < 16 ? RP_E_UNSUPPORTED : RP_E_FORMAT,
			"says protocol %u; 0 to 5 are read", protocol);
	if (d->p->protocol < protocol)
		d->p->protocol = protocol;
	return RP_OK;
}

/* Values between the last mark and the top as `kind`, in place of them. */
static int collect(struct decoder *d, enum val_kind kind, struct val **top)
{
	struct val *items;
	int status = pop_mark(d, &items);

	if (status < 0)
		return status;
	if (kind == VAL_DICT && (*top - items) % 2 != 0)
		return malformed(d, "has a key without a value");
	status = make_node(d, kind, items, (size_t)(*top - items), items);
	*top = items + 1;
	return status;
}

/* Values between the last mark and the top into what is below it. */
static int collect_into(struct decoder *d, enum val_kind kind, struct val **top)
{
	struct val *items;
	int status = pop_mark(d, &items);

	if (status < 0)
		return status;
	if (items == d->floor)
		return malformed(d, "finds nothing below the MARK to put items into");
	if (kind == VAL_DICT && (*top - items) % 2 != 0)
		return malformed(d, "has a key without a value");
	size_t n = (size_t)(*top - items);
	*top = items;
	return add_items(d, items[-1], kind, items, n);
}

/* INST and OBJ: what lies above the mark are arguments, for OBJ behind the class. */
static int instantiate(struct decoder *d, struct val class, struct val **top)
{
	struct val *items, args;
	int status = pop_mark(d, &items);

	if (status < 0)
		return status;
	struct val *first = items;
	if (class.kind == VAL_ABSENT) {
		if (items == *top)
			return malformed(d, "finds no class behind the MARK");
		class = *first++;
	}
	status = make_node(d, VAL_TUPLE, first, (size_t)(*top - first), &args);
	*top = items + 1;
	return status < 0 ? status : make_object(d, class, args, (struct val){0}, items);
}

static int run(struct decoder *d)
{
	const uint8_t *p = d->start, *const end = d->end;
	struct val *top = d->bottom;
	struct val class = {0};
	struct slice line = {0};
	uint64_t index = 0;
	uint8_t protocol = 0;

	for (;;) {
		int status = RP_OK;
		if (p == end)
			return no_stop(d);
		d->op = p;
		const struct op o = ops[*p++];
		d->values += o.pushes;
		if (o.protocol > protocol)
			protocol = o.protocol;
		if (__builtin_expect(end - p < o.argument || top - d->floor < o.pops ||
					     top == d->limit || d->values > d->values_max,
			    0)) {
			status = prepare(d, &top);
			if (status < 0)
				return status;
		}
		/* There is room for one more value, and the argument is there. */
		switch (*d->op) {
		case OP_SHORT_BINUNICODE:
			p += 1;
			status = take_text(d, &p, p[-1], top++);
			break;
		case OP_BINUNICODE:
			p += 4;
			status = take_text(d, &p, load_le32(p - 4), top++);
			break;
		case OP_BINUNICODE8:
			p += 8;
			status = take_text(d, &p, load_le64(p - 8), top++);
			break;
		case OP_BINGET:
			status = memo_get(d, *p++, top++);
			break;
		case OP_LONG_BINGET:
			p += 4;
			status = memo_get(d, load_le32(p - 4), top++);
			break;
		case OP_MEMOIZE:
			status = memo_put(d, d->memo_count, top[-1]);
			break;
		case OP_BINPUT:
			status = memo_put(d, *p++, top[-1]);
			break;
		case OP_LONG_BINPUT:
			p += 4;
			status = memo_put(d, load_le32(p - 4), top[-1]);
			break;
		case OP_MARK:
			status = push_mark(d, top);
			break;
		case OP_BININT1:
			*top++ = val_int(*p++);
			break;
		case OP_BININT2:
			*top++ = val_int(load_le16(p));
			p += 2;
			break;
		case OP_BININT:
			*top++ = val_int((int32_t)load_le32(p));
			p += 4;
			break;
		case OP_BINFLOAT:
			*top++ = val_float(load_be_double(p));
			p += 8;
			break;
		case OP_NONE:
			*top++ = val_none();
			break;
		case OP_NEWTRUE:
		case OP_NEWFALSE:
			*top++ = val_bool(*d->op == OP_NEWTRUE);
			break;
		case OP_EMPTY_TUPLE:
			/* One for all: nothing is ever put into it. */
			if (d->empty.kind == VAL_ABSENT)
				status = make_node(d, VAL_TUPLE, NULL, 0, &d->empty);
			*top++ = d->empty;
			break;
		case OP_EMPTY_LIST:
			status = make_node(d, VAL_LIST, NULL, 0, top++);
			break;
		case OP_EMPTY_DICT:
			status = make_node(d, VAL_DICT, NULL, 0, top++);
			break;
		case OP_EMPTY_SET:
			status = make_node(d, VAL_SET, NULL, 0, top++);
			break;
		case OP_TUPLE1:
			status = make_node(d, VAL_TUPLE, top - 1, 1, top - 1);
			break;
		case OP_TUPLE2:
			top -= 1;
			status = make_node(d, VAL_TUPLE, top - 1, 2, top - 1);
			break;
		case OP_TUPLE3:
			top -= 2;
			status = make_node(d, VAL_TUPLE, top - 1, 3, top - 1);
			break;
		case OP_TUPLE:
			status = collect(d, VAL_TUPLE, &top);
			break;
		case OP_LIST:
			status = collect(d, VAL_LIST, &top);
			break;
		case OP_DICT:
			status = collect(d, VAL_DICT, &top);
			break;
		case OP_FROZENSET:
			status = collect(d, VAL_FROZENSET, &top);
			break;
		case OP_APPENDS:
			status = collect_into(d, VAL_LIST, &top);
			break;
		case OP_SETITEMS:
			status = collect_into(d, VAL_DICT, &top);
			break;
		case OP_ADDITEMS:
			status = collect_into(d, VAL_SET, &top);
			break;
		case OP_APPEND:
			top -= 1;
			status = add_items(d, top[-1], VAL_LIST, top, 1);
			break;
		case OP_SETITEM:
			top -= 2;
			status = add_items(d, top[-1], VAL_DICT, top, 2);
			break;
		case OP_NEWOBJ:
			top -= 1;
			if (!may_be_tuple(top[0]))
				return malformed(d, "has a %s in place of arguments",
					val_kind_name(top[0].kind));
			status = make_object(d, top[-1], top[0], (struct val){0}, top - 1);
			break;
		case OP_NEWOBJ_EX:
			top -= 2;
			if (!may_be_tuple(top[0]) ||
				(top[1].kind != VAL_DICT && top[1].kind != VAL_OBJECT))
				return malformed(d, "has a %s and a %s in place of arguments",
					val_kind_name(top[0].kind), val_kind_name(top[1].kind));
			status = make_object(d, top[-1], top[0], top[1], top - 1);
			break;
		case OP_REDUCE:
			top -= 1;
			status = call(d, top[-1], top[0], top - 1);
			break;
		case OP_BUILD:
			top -= 1;
			status = build(d, top[-1], top[0]);
			break;
		case OP_INST:
			status = take_class(d, &p, &class);
			if (status == RP_OK)
				status = instantiate(d, class, &top);
			break;
		case OP_OBJ:
			status = instantiate(d, (struct val){0}, &top);
			break;
		case OP_GLOBAL:
			status = take_class(d, &p, top++);
			break;
		case OP_STACK_GLOBAL:
			top -= 1;
			if (top[-1].kind != VAL_TEXT || top[0].kind != VAL_TEXT)
				return malformed(d, "names a class by a %s and a %s",
					val_kind_name(top[-1].kind), val_kind_name(top[0].kind));
			status = make_class(d, val_slice(top[-1]), val_slice(top[0]), top - 1);
			break;
		case OP_EXT1:
			status = make_extension(d, *p++, top++);
			break;
		case OP_EXT2:
			p += 2;
			status = make_extension(d, load_le16(p - 2), top++);
			break;
		case OP_EXT4:
			p += 4;
			status = make_extension(d, (int32_t)load_le32(p - 4), top++);
			break;
		case OP_BINPERSID:
			status = persistent(d, top[-1], top - 1);
			break;
		case OP_PERSID:
			status = take_line(d, &p, &line);
			if (status == RP_OK)
				status = make_text(d, line, top);
			if (status == RP_OK)
				status = persistent(d, *top, top);
			top++;
			break;
		case OP_SHORT_BINBYTES:
			p += 1;
			status = take_bytes(d, &p, p[-1], top++);
			break;
		case OP_BINBYTES:
			p += 4;
			status = take_bytes(d, &p, load_le32(p - 4), top++);
			break;
		case OP_BINBYTES8:
		case OP_BYTEARRAY8:
			p += 8;
			status = take_bytes(d, &p, load_le64(p - 8), top++);
			break;
		case OP_SHORT_BINSTRING:
			p += 1;
			status = take_string(d, &p, p[-1], top++);
			break;
		case OP_BINSTRING:
			p += 4;
			if ((int32_t)load_le32(p - 4) < 0)
				return malformed(d, "has a negative length");
			status = take_string(d, &p, load_le32(p - 4), top++);
			break;
		case OP_LONG1:
			p += 1;
			status = take(d, &p, p[-1], "an integer", &line);
			if (status == RP_OK)
				*top++ = make_integer((const uint8_t *)line.p, line.n);
			break;
		case OP_LONG4:
			p += 4;
			if ((int32_t)load_le32(p - 4) < 0)
				return malformed(d, "has a negative length");
			status = take(d, &p, load_le32(p - 4), "an integer", &line);
			if (status == RP_OK)
				*top++ = make_integer((const uint8_t *)line.p, line.n);
			break;
		case OP_INT:
			status = take_line(d, &p, &line);
			if (status == RP_OK)
				status = read_int(d, line, top++);
			break;
		case OP_LONG:
			status = take_line(d, &p, &line);
			if (status == RP_OK)
				status = read_decimal(d, line, top++);
			break;
		case OP_FLOAT:
			status = take_line(d, &p, &line);
			if (status == RP_OK)
				status = read_float(d, line, top++);
			break;
		case OP_STRING:
			status = take_line(d, &p, &line);
			if (status == RP_OK)
				status = read_string(d, line, top++);
			break;
		case OP_UNICODE:
			status = take_line(d, &p, &line);
			if (status == RP_OK)
				status = read_unicode(d, line, top++);
			break;
		case OP_GET:
			status = take_line(d, &p, &line);
			if (status == RP_OK)
				status = read_index(d, line, &index);
			if (status == RP_OK)
				status = memo_get(d, index, top++);
			break;
		case OP_PUT:
			status = take_line(d, &p, &line);
			if (status == RP_OK)
				status = read_index(d, line, &index);
			if (status == RP_OK)
				status = memo_put(d, index, top[-1]);
			break;
		case OP_DUP:
			top[0] = top[-1];
			top++;
			break;
		case OP_POP:
			if (top > d->floor)
				top--;
			else
				status = pop_mark(d, &top);
			break;
		case OP_POP_MARK:
			status = pop_mark(d, &top);
			break;
		case OP_PROTO:
			status = set_protocol(d, *p++);
			break;
		case OP_FRAME:
			p += 8;
			if (load_le64(p - 8) > (uint64_t)(end - p))
				return ends_early(d, p, load_le64(p - 8), "frame");
			break;
		case OP_NEXT_BUFFER:
			status = next_buffer(d, top++);
			break;
		case OP_READONLY_BUFFER:
			break;
		case OP_STOP:
			return stop(d, p, top[-1], protocol);
		default:
			return prepare(d, &top);
		}
		if (status < 0)
			return status;
	}
}

int pickle_decode(struct pickle *p, struct slice bytes, struct error *e)
{
	struct error ignored = ERROR_INIT;
	const uint8_t *start = (const uint8_t *)(bytes.n ? bytes.p : "");
	struct decoder d = {
		.p = p,
		.arena = p->arena,
		.e = e ? e : &ignored,
		.start = start,
		.op = start,
		.end = start + bytes.n,
		.values_max = p->limits->nodes,
		.planting_budget = bytes.n,
	};
	const size_t first = 1024;

	p->root = (struct val){0};
	p->end = 0;
	p->protocol = 0;
	p->truncated = false;
	p->needed = 0;
	p->classes.count = 0;
	p->deeds.count = 0;
	d.stack_max = p->arena->limit / sizeof(struct val);
	if (d.stack_max > p->limits->nodes)
		d.stack_max = (size_t)p->limits->nodes;
	if (d.stack_max < first)
		d.stack_max = first;
	d.bottom = reallocarray(NULL, first, sizeof *d.bottom);
	if (!d.bottom)
		return no_memory(&d);
	d.floor = d.bottom;
	d.limit = d.bottom + first;
	int status = run(&d);
	free(d.bottom);
	free(d.memo);
	free(d.slots);
	array_release(&d.marks);
	return status;
}

void pickle_release(struct pickle *p)
{
	array_release(&p->classes);
	array_release(&p->deeds);
}
