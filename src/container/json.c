/* SPDX-License-Identifier: MIT */
#include "container/json.h"

#include <math.h>
#include <stdlib.h>
#include <xxhash.h>

#include "base/array.h"
#include "base/cursor.h"
#include "base/size.h"
#include "base/text.h"

/* Up to this many keys are compared pair by pair. */
#define FEW_KEYS 12

/* An object or array whose end has not been seen. */
struct open {
	size_t first; /* of its parts in reader.values */
	bool object;
};

/*
 * Values wait on a stack until their object or array ends; then they move into the arena in one
 * piece of the right size. The nesting is a stack of its own, so that depth costs heap, not stack.
 */
struct reader {
	struct cursor c;
	struct arena *arena;
	const struct limits *limits;
	struct error *e;
	ARRAY(struct val) values;
	ARRAY(struct open) nest;
	ARRAY(uint32_t) slots; /* for finding duplicate keys */
	uint64_t total, duplicates;
	size_t values_max;
};

/* Say what is wrong at `at`. Columns count characters, as editors do. */
static int wrong(struct reader *r, int status, size_t at, const char *what)
{
	uint64_t line = 1, column = 1;

	for (size_t i = 0; i < at; i++) {
		if (r->c.data[i] == '\n') {
			line++;
			column = 1;
		} else if ((r->c.data[i] & 0xc0) != 0x80) {
			column++;
		}
	}
	return fail(r->e, status, at, "%s at byte %zu (line %llu, column %llu)", what, at,
		(unsigned long long)line, (unsigned long long)column);
}

static int malformed(struct reader *r, const char *what)
{
	return wrong(r, RP_E_FORMAT, r->c.pos, what);
}

static int no_memory(struct reader *r)
{
	return fail(r->e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for the values of a JSON text");
}

/* The next byte, not taken; -1 at the end. */
static inline int peek(const struct reader *r)
{
	return r->c.pos < r->c.size ? r->c.data[r->c.pos] : -1;
}

static int skip_space(struct reader *r)
{
	int b = peek(r);

	while (b == ' ' || b == '\n' || b == '\t' || b == '\r') {
		r->c.pos++;
		b = peek(r);
	}
	return b;
}

static int push(struct reader *r, struct val v)
{
	if (++r->total > r->limits->nodes)
		return wrong(r, RP_E_LIMIT, r->c.pos, "more values than the limit nodes allows");
	struct val *place = array_push(&r->values, r->values_max);
	if (!place)
		return no_memory(r);
	*place = v;
	return RP_OK;
}

/* Texts */

/* Whether all of eight bytes are plain: ASCII, no quote, no backslash, no control. */
static bool word_is_plain(const uint8_t *p)
{
	const uint64_t ones = 0x0101010101010101u, tops = 0x8080808080808080u;
	uint64_t w;

	memcpy(&w, p, sizeof w);
	uint64_t quote = w ^ ones * '"', backslash = w ^ ones * '\\';
	/* Borrows only travel upward from a byte that is itself a hit. */
	uint64_t hit = (quote - ones) | (backslash - ones) | (w - ones * 0x20) | w;
	return !(hit & tops);
}

static void skip_plain(struct reader *r)
{
	struct cursor *c = &r->c;

	while (c->size - c->pos >= 8 && word_is_plain(c->data + c->pos))
		c->pos += 8;
	while (c->pos < c->size) {
		uint8_t b = c->data[c->pos];
		if (b == '"' || b == '\\' || b < 0x20 || b >= 0x80)
			return;
		c->pos++;
	}
}

/* The four digits of a \u escape at `p`, or -1. */
static int32_t hex4(const uint8_t *p, const uint8_t *end)
{
	int32_t v = 0;

	if (end - p < 4)
		return -1;
	for (int i = 0; i < 4; i++) {
		int digit = text_hex_digit((char)p[i]);
		if (digit < 0)
			return -1;
		v = v * 16 + digit;
	}
	return v;
}

/* What the escape \b stands for, or 0. */
static char escaped(uint8_t b)
{
	switch (b) {
	case '"':
	case '\\':
	case '/':
		return (char)b;
	case 'b':
		return '\b';
	case 'f':
		return '\f';
	case 'n':
		return '\n';
	case 'r':
		return '\r';
	case 't':
		return '\t';
	default:
		return 0;
	}
}

/* Resolve the escapes, known to be sound, between `raw` and `end`. That only makes them shorter. */
static int resolve(struct reader *r, const uint8_t *raw, const uint8_t *end, struct val *out)
{
	char *text = arena_alloc(r->arena, (size_t)(end - raw));
	size_t n = 0;

	if (!text)
		return no_memory(r);
	while (raw < end) {
		if (*raw != '\\') {
			text[n++] = (char)*raw++;
			continue;
		}
		if (raw[1] != 'u') {
			text[n++] = escaped(raw[1]);
			raw += 2;
			continue;
		}
		uint32_t c = (uint32_t)hex4(raw + 2, end);
		raw += 6;
		if (c >= 0xd800 && c < 0xdc00 && end - raw >= 6 && raw[0] == '\\' &&
			raw[1] == 'u') {
			int32_t low = hex4(raw + 2, end);
			if (low >= 0xdc00 && low < 0xe000) {
				c = 0x10000 + ((c - 0xd800) << 10) + ((uint32_t)low - 0xdc00);
				raw += 6;
			}
		}
		n += text_utf8_put(text + n, c);
	}
	*out = val_text((struct slice){text, n});
	return RP_OK;
}

/* A text whose opening quote has been taken. */
static int read_text(struct reader *r, struct val *out)
{
	struct cursor *c = &r->c;
	size_t first = c->pos;
	bool escapes = false;

	for (;;) {
		skip_plain(r);
		if (c->pos == c->size)
			return malformed(r, "the text ends inside a string");
		uint8_t b = c->data[c->pos];
		if (b == '"')
			break;
		if (b < 0x20)
			return malformed(r, "a control character inside a string");
		if (b >= 0x80) {
			struct slice rest = {(const char *)c->data + c->pos, c->size - c->pos};
			uint32_t point;
			size_t length = text_utf8_next(rest, &point);
			if (length == 0)
				return malformed(r, "bytes that are not UTF-8");
			c->pos += length;
			continue;
		}
		escapes = true;
		if (c->size - c->pos < 2)
			return wrong(r, RP_E_FORMAT, c->size, "the text ends inside a string");
		if (c->data[c->pos + 1] != 'u') {
			if (!escaped(c->data[c->pos + 1]))
				return malformed(r, "an escape that JSON does not have");
			c->pos += 2;
			continue;
		}
		if (hex4(c->data + c->pos + 2, c->data + c->size) < 0) {
			if (c->size - c->pos < 6)
				return wrong(
					r, RP_E_FORMAT, c->size, "the text ends inside a string");
			return malformed(r, "a \\u escape without four hexadecimal digits");
		}
		c->pos += 6;
	}
	const uint8_t *raw = c->data + first, *end = c->data + c->pos;
	c->pos++;
	if (end - raw > (ptrdiff_t)UINT32_MAX)
		return wrong(r, RP_E_LIMIT, first, "a string of more than 4 GiB");
	if (escapes)
		return resolve(r, raw, end, out);
	*out = val_text((struct slice){(const char *)raw, (size_t)(end - raw)});
	return RP_OK;
}

/* Numbers */

/* An integer that does not fit 64 bits, as the shortest little-endian two's complement. */
static int read_big(struct reader *r, struct slice digits, bool negative, struct val *out)
{
	/* 4300 digits are 14285 bits. */
	uint32_t limbs[JSON_INT_DIGITS_MAX * 10 / 3 / 32 + 2];
	size_t count = 0;

	if (digits.n > JSON_INT_DIGITS_MAX)
		return wrong(r, RP_E_LIMIT, (size_t)((const uint8_t *)digits.p - r->c.data),
			"an integer of more than 4300 digits");
	for (size_t i = 0; i < digits.n;) {
		/* Nine digits at a time, the odd ones first. */
		size_t step = (digits.n - i) % 9 ? (digits.n - i) % 9 : 9;
		uint64_t carry = 0, scale = 1;
		for (size_t end = i + step; i < end; i++) {
			carry = carry * 10 + (uint64_t)(digits.p[i] - '0');
			scale *= 10;
		}
		for (size_t j = 0; j < count; j++) {
			carry += limbs[j] * scale;
			limbs[j] = (uint32_t)carry;
			carry >>= 32;
		}
		if (carry)
			limbs[count++] = (uint32_t)carry;
	}
	if (negative) {
		uint64_t carry = 1;
		for (size_t j = 0; j < count; j++) {
			carry += (uint32_t)~limbs[j];
			limbs[j] = (uint32_t)carry;
			carry >>= 32;
		}
	}
	/* One limb of sign on top, then without the bytes that only repeat the sign below. */
	limbs[count] = negative ? UINT32_MAX : 0;
	size_t n = count * 4 + 4;
	uint8_t *bytes = arena_alloc(r->arena, n);
	if (!bytes)
		return no_memory(r);
	for (size_t j = 0; j < n; j++)
		bytes[j] = (uint8_t)(limbs[j / 4] >> j % 4 * 8);
	uint8_t sign = negative ? 0xff : 0;
	while (n > 1 && bytes[n - 1] == sign && (bytes[n - 2] & 0x80) == (sign & 0x80))
		n--;
	*out = (struct val){.kind = VAL_BIGINT, .n = (uint32_t)n, .s = (const char *)bytes};
	return RP_OK;
}

static bool is_digit(int b)
{
	return b >= '0' && b <= '9';
}

static size_t skip_digits(struct reader *r)
{
	size_t first = r->c.pos, at = first;

	while (at < r->c.size && is_digit(r->c.data[at]))
		at++;
	r->c.pos = at;
	return at - first;
}

static int no_digit(struct reader *r)
{
	return malformed(r, peek(r) < 0 ? "the text ends inside a number" : "a digit expected");
}

/* Take `word` if it is next. A word that the end of the text cuts off puts the cursor there. */
static bool take_word(struct reader *r, const char *word)
{
	size_t n = strlen(word), left = r->c.size - r->c.pos;

	if (memcmp(r->c.data + r->c.pos, word, left < n ? left : n) != 0)
		return false;
	r->c.pos += left < n ? left : n;
	return left >= n;
}

static int read_number(struct reader *r, struct val *out)
{
	size_t first = r->c.pos;
	bool negative = peek(r) == '-', real = false;

	r->c.pos += negative;
	if (negative && peek(r) == 'I') {
		if (!take_word(r, "Infinity"))
			return no_digit(r);
		*out = val_float(-INFINITY);
		return RP_OK;
	}
	size_t digit = r->c.pos, digits = skip_digits(r);
	if (digits == 0)
		return no_digit(r);
	if (digits > 1 && r->c.data[digit] == '0') {
		r->c.pos = digit + 1;
		return malformed(r, "a number that starts with 0");
	}
	if (peek(r) == '.') {
		real = true;
		r->c.pos++;
		if (skip_digits(r) == 0)
			return no_digit(r);
	}
	if (peek(r) == 'e' || peek(r) == 'E') {
		real = true;
		r->c.pos++;
		if (peek(r) == '+' || peek(r) == '-')
			r->c.pos++;
		if (skip_digits(r) == 0)
			return no_digit(r);
	}
	if (real) {
		double v = 0;
		struct slice text = {(const char *)r->c.data + first, r->c.pos - first};
		text_parse_double(text, &v);
		*out = val_float(v);
		return RP_OK;
	}
	if (digits <= 18) {
		int64_t v = 0;
		for (size_t i = 0; i < digits; i++)
			v = v * 10 + (r->c.data[digit + i] - '0');
		*out = val_int(negative ? -v : v);
		return RP_OK;
	}
	struct slice whole = {(const char *)r->c.data + first, r->c.pos - first};
	int64_t v;
	if (text_parse_i64(whole, INT64_MIN, INT64_MAX, &v)) {
		*out = val_int(v);
		return RP_OK;
	}
	return read_big(r, (struct slice){(const char *)r->c.data + digit, digits}, negative, out);
}

/* Objects and arrays */

static bool same_key(const struct val *a, const struct val *b)
{
	return a->n == b->n && memcmp(a->s, b->s, a->n) == 0;
}

/* Count the keys among `count` pairs that were there before. */
static int count_duplicates(struct reader *r, const struct val *pairs, size_t count)
{
	if (count <= FEW_KEYS) {
		for (size_t i = 1; i < count; i++)
			for (size_t j = 0; j < i; j++)
				if (same_key(&pairs[2 * i], &pairs[2 * j])) {
					r->duplicates++;
					break;
				}
		return RP_OK;
	}
	size_t capacity = 64;
	while (capacity < 2 * count)
		capacity *= 2;
	if (!array_reserve(&r->slots, capacity, SIZE_MAX))
		return no_memory(r);
	memset(r->slots.items, 0, capacity * sizeof *r->slots.items);
	/* Keys come from files: an address makes the seed one that no file was written for. */
	uint64_t seed = (uint64_t)(uintptr_t)r->slots.items;
	for (size_t i = 0; i < count; i++) {
		const struct val *key = &pairs[2 * i];
		size_t slot = (size_t)XXH3_64bits_withSeed(key->s, key->n, seed) & (capacity - 1);
		while (r->slots.items[slot] &&
			!same_key(key, &pairs[2 * (r->slots.items[slot] - 1)]))
			slot = (slot + 1) & (capacity - 1);
		if (r->slots.items[slot])
			r->duplicates++;
		else
			r->slots.items[slot] = (uint32_t)(i + 1);
	}
	return RP_OK;
}

static int open_nest(struct reader *r, bool object)
{
	if (r->nest.count >= r->limits->depth)
		return wrong(r, RP_E_LIMIT, r->c.pos, "nesting deeper than the limit depth allows");
	struct open *o = array_push(&r->nest, SIZE_MAX);
	if (!o)
		return no_memory(r);
	*o = (struct open){.first = r->values.count, .object = object};
	r->c.pos++;
	return RP_OK;
}

/* The innermost object or array has ended: it becomes one value. */
static int close_nest(struct reader *r)
{
	struct open o = r->nest.items[--r->nest.count];
	size_t count = r->values.count - o.first;
	int status = RP_OK;

	r->c.pos++;
	if (count > UINT32_MAX)
		return wrong(r, RP_E_LIMIT, r->c.pos, "more than 2^32 - 1 parts");
	if (o.object && count > 0)
		status = count_duplicates(r, r->values.items + o.first, count / 2);
	if (status < 0)
		return status;
	struct val v = val_new(r->arena, o.object ? VAL_DICT : VAL_LIST);
	if (v.kind == VAL_ABSENT)
		return no_memory(r);
	if (count > 0) {
		v.node->kids = arena_array(r->arena, count, sizeof v);
		if (!v.node->kids)
			return no_memory(r);
		memcpy(v.node->kids, r->values.items + o.first, count * sizeof v);
		v.node->count = v.node->capacity = (uint32_t)count;
	}
	r->values.count = o.first;
	return push(r, v);
}

/* A key and its colon. */
static int read_key(struct reader *r)
{
	struct val key;

	if (skip_space(r) != '"')
		return malformed(
			r, peek(r) < 0 ? "the text ends inside an object" : "a key expected");
	r->c.pos++;
	int status = read_text(r, &key);
	if (status == RP_OK)
		status = push(r, key);
	if (status < 0)
		return status;
	if (skip_space(r) != ':')
		return malformed(
			r, peek(r) < 0 ? "the text ends inside an object" : "':' expected");
	r->c.pos++;
	return RP_OK;
}

/* The word that stands for a constant, or an error. */
static int read_word(struct reader *r, struct val *out)
{
	static const struct {
		const char *word;
		struct val v;
	} words[] = {
		{"true", {.kind = VAL_BOOL, .i = 1}},
		{"false", {.kind = VAL_BOOL, .i = 0}},
		{"null", {.kind = VAL_NONE}},
		{"NaN", {.kind = VAL_FLOAT, .f = NAN}},
		{"Infinity", {.kind = VAL_FLOAT, .f = INFINITY}},
	};

	for (size_t i = 0; peek(r) >= 0 && i < sizeof words / sizeof words[0]; i++) {
		if (take_word(r, words[i].word)) {
			*out = words[i].v;
			return RP_OK;
		}
	}
	return malformed(
		r, peek(r) < 0 ? "the text ends where a value is expected" : "a value expected");
}

/*
 * One value, or the opening of one: `*whole` says which. After '[' and '{' an immediate end is
 * taken here too.
 */
static int read_value(struct reader *r, bool *whole)
{
	struct val v = {0};
	int b = skip_space(r), status;

	*whole = true;
	if (b == '{' || b == '[') {
		status = open_nest(r, b == '{');
		if (status < 0)
			return status;
		if (skip_space(r) == (b == '{' ? '}' : ']'))
			return close_nest(r);
		*whole = false;
		return b == '{' ? read_key(r) : RP_OK;
	}
	if (b == '"') {
		r->c.pos++;
		status = read_text(r, &v);
	} else if (b == '-' || is_digit(b)) {
		status = read_number(r, &v);
	} else {
		status = read_word(r, &v);
	}
	return status < 0 ? status : push(r, v);
}

/* After a whole value: the end of what it is in, or the comma before the next one. */
static int read_after(struct reader *r)
{
	while (r->nest.count > 0) {
		bool object = r->nest.items[r->nest.count - 1].object;
		int b = skip_space(r);
		if (b == ',') {
			r->c.pos++;
			return object ? read_key(r) : RP_OK;
		}
		if (b != (object ? '}' : ']')) {
			if (object)
				return malformed(r, b < 0 ? "the text ends inside an object"
							  : "',' or '}' expected");
			return malformed(
				r, b < 0 ? "the text ends inside an array" : "',' or ']' expected");
		}
		int status = close_nest(r);
		if (status < 0)
			return status;
	}
	return RP_OK;
}

static int read_document(struct reader *r)
{
	static const uint8_t utf8_mark[] = {0xef, 0xbb, 0xbf};
	const uint8_t *p = r->c.data;
	int status;

	if (r->c.size >= 3 && memcmp(p, utf8_mark, 3) == 0)
		r->c.pos = 3;
	else if (r->c.size >= 2 &&
		 ((p[0] == 0xff && p[1] == 0xfe) || (p[0] == 0xfe && p[1] == 0xff)))
		return malformed(r, "UTF-16 where UTF-8 is expected");
	do {
		bool whole;
		status = read_value(r, &whole);
		if (status == RP_OK && whole)
			status = read_after(r);
	} while (status == RP_OK && r->nest.count > 0);
	if (status < 0)
		return status;
	if (skip_space(r) >= 0)
		return malformed(r, "more text after the value");
	return RP_OK;
}

int json_decode(struct slice text, struct arena *a, const struct limits *limits, struct val *out,
	uint64_t *duplicates, struct error *e)
{
	struct reader r = {.c = cursor_over(text.n ? text.p : "", text.n),
		.arena = a,
		.limits = limits,
		.e = e};

	r.values_max = (size_t)(limits->memory / sizeof(struct val));
	int status = read_document(&r);
	if (status == RP_OK)
		*out = r.values.items[0];
	if (duplicates)
		*duplicates = r.duplicates;
	array_release(&r.values);
	array_release(&r.nest);
	array_release(&r.slots);
	return status;
}
