/* SPDX-License-Identifier: MIT */
#include "value/print.h"

#include <math.h>

#include "base/text.h"

#define BIGINT_MAX_BYTES 512u /* longer ones are told by their length */
#define INLINE_BYTES 72u      /* what is shorter stands on one line of a page */
#define NAME_BYTES 120u
#define INDENT 2u

const struct print_style print_style_short = {.bytes = 120, .text_bytes = 100, .depth = 8};
const struct print_style print_style_long = {.bytes = 1 << 20, .text_bytes = 4096, .depth = 32};

struct printer {
	struct strbuf *b;
	const struct print_style *style;
	size_t start;
	unsigned depth;
	bool cut;
};

static void print(struct printer *p, struct val v);

/* Whether the budget is used up; then an ellipsis stands for all that follows. */
static bool full(struct printer *p)
{
	if (p->b->n - p->start < p->style->bytes)
		return false;
	if (!p->cut)
		strbuf_add_text(p->b, "…");
	p->cut = true;
	return true;
}

/* Scalars */

/* Little-endian two's complement as decimal, by dividing by 10^9 again and again. */
static void print_bigint(struct strbuf *b, struct slice bytes)
{
	uint32_t limbs[BIGINT_MAX_BYTES / 4 + 1] = {0};
	uint32_t digits[BIGINT_MAX_BYTES / 3];
	size_t count = (bytes.n + 3) / 4, chunks = 0;

	if (bytes.n > BIGINT_MAX_BYTES) {
		strbuf_printf(b, "<an integer of %zu bytes>", bytes.n);
		return;
	}
	bool negative = bytes.n > 0 && bytes.p[bytes.n - 1] < 0;
	uint32_t carry = 1;
	for (size_t i = 0; i < 4 * count; i++) {
		uint32_t byte = i < bytes.n ? (uint8_t)bytes.p[i] : negative ? 0xff : 0;
		if (negative) {
			byte = (byte ^ 0xff) + carry;
			carry = byte >> 8;
		}
		limbs[i / 4] |= (byte & 0xff) << 8 * (i % 4);
	}
	/* The most negative number of its length needs one bit more. */
	if (negative && carry)
		limbs[count++] = 1;
	while (count > 0 && limbs[count - 1] == 0)
		count--;
	do {
		uint64_t rest = 0;
		for (size_t i = count; i-- > 0;) {
			rest = rest << 32 | limbs[i];
			limbs[i] = (uint32_t)(rest / 1000000000);
			rest %= 1000000000;
		}
		digits[chunks++] = (uint32_t)rest;
		while (count > 0 && limbs[count - 1] == 0)
			count--;
	} while (count > 0);
	strbuf_printf(b, negative ? "-%u" : "%u", (unsigned)digits[chunks - 1]);
	while (--chunks > 0)
		strbuf_printf(b, "%09u", (unsigned)digits[chunks - 1]);
}

/* As Python shows it, so that 1.0 is not taken for an integer. */
static void print_float(struct strbuf *b, double v)
{
	size_t start = b->n;

	text_add_double(b, v);
	if (isfinite(v) && !b->failed && !strpbrk(b->p + start, ".e"))
		strbuf_add_text(b, ".0");
}

static void print_text(struct printer *p, struct slice text)
{
	size_t shown = 0, max = p->style->text_bytes;

	strbuf_add_char(p->b, '"');
	while (shown < text.n) {
		size_t plain = shown;
		while (plain < text.n && !memchr("\"\\\n\t", text.p[plain], 4))
			plain++;
		if (shown >= max) {
			strbuf_add_text(p->b, "…");
			p->cut = true;
			break;
		}
		text_add_escaped(p->b, (struct slice){text.p + shown, plain - shown}, max - shown);
		if (plain - shown > max - shown) {
			p->cut = true;
			break;
		}
		shown = plain;
		if (shown < text.n) {
			char c = text.p[shown++];
			strbuf_add_char(p->b, '\\');
			strbuf_add_char(p->b, c == '\n' ? 'n' : c == '\t' ? 't' : c);
		}
	}
	strbuf_add_char(p->b, '"');
}

static void print_bytes(struct printer *p, struct slice bytes)
{
	size_t shown = bytes.n < p->style->text_bytes / 4 ? bytes.n : p->style->text_bytes / 4;

	strbuf_add_text(p->b, "b\"");
	for (size_t i = 0; i < shown; i++) {
		unsigned char c = (unsigned char)bytes.p[i];
		if (c < 0x20 || c > 0x7e || c == '"' || c == '\\')
			strbuf_printf(p->b, "\\x%02x", c);
		else
			strbuf_add_char(p->b, (char)c);
	}
	strbuf_add_char(p->b, '"');
	if (shown < bytes.n) {
		strbuf_add_text(p->b, "… (");
		text_add_count(p->b, bytes.n);
		strbuf_add_text(p->b, " bytes)");
		p->cut = true;
	}
}

/* Kinds */

void print_shape(struct strbuf *b, const struct tensor *t)
{
	if (t->type.n > 0) {
		text_add_escaped(b, t->type, NAME_BYTES);
		strbuf_add_char(b, ' ');
	}
	strbuf_add_text(b, t->dtype == DTYPE_UNKNOWN ? "unknown" : dtype_rows[t->dtype].name);
	strbuf_add_char(b, '[');
	for (unsigned i = 0; i < t->ndim; i++)
		strbuf_printf(b, i ? ", %lld" : "%lld", (long long)t->shape[i]);
	strbuf_add_char(b, ']');
}

static void print_class(struct strbuf *b, const struct klass *k)
{
	text_add_escaped(b, k->module, NAME_BYTES);
	if (k->module.n > 0)
		strbuf_add_char(b, '.');
	text_add_escaped(b, k->name, NAME_BYTES);
}

/* What made an object. For people an ordered dict is a dict. */
static void print_maker(struct strbuf *b, struct val v)
{
	struct val callable = v.object->callable;

	if (val_is_object_of(v, "collections", "OrderedDict"))
		strbuf_add_text(b, "dict");
	else if (callable.kind == VAL_CLASS)
		print_class(b, callable.klass);
	else
		strbuf_add_text(b, "object");
}

void print_kind(struct strbuf *b, struct val v)
{
	if (v.kind == VAL_TENSOR) {
		print_shape(b, v.tensor);
		return;
	}
	if (v.kind == VAL_OBJECT)
		print_maker(b, v);
	else
		strbuf_add_text(b, val_kind_name(v.kind));
	if (v.kind == VAL_OBJECT || val_is_container(v)) {
		strbuf_add_text(b, " of ");
		text_add_count(b, val_count(v));
	}
}

/* Containers */

static const char *const brackets[][2] = {
	[VAL_LIST] = {"[", "]"},
	[VAL_TUPLE] = {"(", ")"},
	[VAL_DICT] = {"{", "}"},
	[VAL_SET] = {"{", "}"},
	[VAL_FROZENSET] = {"frozenset({", "})"},
	[VAL_OBJECT] = {"(", ")"},
	[VAL_PERSISTENT] = {"persistent id (", ")"},
};

/* Dict keys stand in front as they are; an object's attributes as in a call, its items as a list's.
 */
static void print_part_key(struct printer *p, struct val parent, struct val key)
{
	if (val_is_dict(parent)) {
		print(p, key);
		strbuf_add_text(p->b, ": ");
	} else if (parent.kind == VAL_OBJECT && key.kind == VAL_TEXT) {
		text_add_escaped(p->b, val_slice(key), p->style->text_bytes);
		strbuf_add_char(p->b, '=');
	}
}

/* The arguments of the call that made an object, which are not parts of it. */
static uint64_t argument_count(struct val v)
{
	if (v.kind != VAL_OBJECT || val_is_dict(v))
		return 0;
	return val_count(v.object->args);
}

/* The i-th of arguments and parts together, with what stands in front of it. */
static struct val begin_part(struct printer *p, struct val v, uint64_t arguments, uint64_t i)
{
	struct val key, part;

	if (i < arguments)
		return val_part(v.object->args, i, &key);
	part = val_part(v, i - arguments, &key);
	print_part_key(p, v, key);
	return part;
}

static const char *open_bracket(struct printer *p, struct val v)
{
	bool dict = v.kind == VAL_OBJECT && val_is_dict(v);

	if (v.kind == VAL_OBJECT && !val_is_object_of(v, "collections", "OrderedDict"))
		print_maker(p->b, v);
	strbuf_add_text(p->b, brackets[dict ? VAL_DICT : v.kind][0]);
	return brackets[dict ? VAL_DICT : v.kind][1];
}

static void print_parts(struct printer *p, struct val v)
{
	uint64_t arguments = argument_count(v), count = arguments + val_count(v);
	const char *end = open_bracket(p, v);

	if (count > 0 && p->depth == p->style->depth) {
		strbuf_add_text(p->b, "…");
		p->cut = true;
		count = 0;
	}
	p->depth++;
	for (uint64_t i = 0; i < count; i++) {
		if (i > 0)
			strbuf_add_text(p->b, ", ");
		if (full(p))
			break;
		print(p, begin_part(p, v, arguments, i));
		if (p->cut && p->b->n - p->start >= p->style->bytes)
			break;
	}
	p->depth--;
	/* (1,) */
	if (v.kind == VAL_TUPLE && count == 1)
		strbuf_add_char(p->b, ',');
	strbuf_add_text(p->b, end);
}

static void print(struct printer *p, struct val v)
{
	if (full(p))
		return;
	switch ((enum val_kind)v.kind) {
	case VAL_BOOL:
		strbuf_add_text(p->b, v.i ? "True" : "False");
		return;
	case VAL_INT:
		strbuf_printf(p->b, "%lld", (long long)v.i);
		return;
	case VAL_BIGINT:
		print_bigint(p->b, val_slice(v));
		return;
	case VAL_FLOAT:
		print_float(p->b, v.f);
		return;
	case VAL_TEXT:
		print_text(p, val_slice(v));
		return;
	case VAL_BYTES:
		print_bytes(p, val_slice(v));
		return;
	case VAL_CLASS:
		print_class(p->b, v.klass);
		return;
	case VAL_TENSOR:
		if (!p->style->tensor || !p->style->tensor(p->style->context, v.tensor, p->b))
			print_shape(p->b, v.tensor);
		return;
	case VAL_LIST:
	case VAL_TUPLE:
	case VAL_DICT:
	case VAL_SET:
	case VAL_FROZENSET:
	case VAL_OBJECT:
	case VAL_PERSISTENT:
		print_parts(p, v);
		return;
	case VAL_ABSENT:
	case VAL_NONE:
		break;
	}
	strbuf_add_text(p->b, val_kind_name(v.kind));
}

bool print_line(struct strbuf *b, struct val v, const struct print_style *style)
{
	struct printer p = {.b = b, .style = style, .start = b->n};

	print(&p, v);
	return !p.cut && !b->failed;
}

/* Pages */

/* On the line begun, if it is short. */
static bool print_inline(struct printer *p, struct val v)
{
	struct print_style style = *p->style;
	size_t mark = p->b->n;

	style.bytes = INLINE_BYTES;
	struct printer line = {.b = p->b, .style = &style, .start = mark};
	print(&line, v);
	if (!line.cut && p->b->n - mark <= INLINE_BYTES)
		return true;
	strbuf_truncate(p->b, mark);
	return false;
}

static void new_line(struct printer *p)
{
	strbuf_add_char(p->b, '\n');
	strbuf_pad(p->b, ' ', INDENT * (size_t)p->depth);
}

static void print_tree(struct printer *p, struct val v)
{
	bool parts = v.kind == VAL_OBJECT || v.kind == VAL_PERSISTENT || val_is_container(v);

	if (!parts || p->depth == p->style->depth || print_inline(p, v)) {
		if (!parts || p->depth == p->style->depth)
			print(p, v);
		return;
	}
	uint64_t arguments = argument_count(v), count = arguments + val_count(v);
	const char *end = open_bracket(p, v);
	p->depth++;
	for (uint64_t i = 0; i < count; i++) {
		new_line(p);
		if (full(p))
			break;
		print_tree(p, begin_part(p, v, arguments, i));
		if (i + 1 < count)
			strbuf_add_char(p->b, ',');
		if (p->b->failed || (p->cut && p->b->n - p->start >= p->style->bytes))
			break;
	}
	p->depth--;
	new_line(p);
	strbuf_add_text(p->b, end);
}

bool print_page(struct strbuf *b, struct val v, const struct print_style *style)
{
	struct printer p = {.b = b, .style = style, .start = b->n};

	print_tree(&p, v);
	return !p.cut && !b->failed;
}
