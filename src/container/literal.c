/* SPDX-License-Identifier: MIT */
#include "container/literal.h"

#include <ctype.h>

#include "base/text.h"

#define DEPTH_MAX 20u

struct parser {
	struct slice text;
	size_t at;
	struct arena *arena;
	struct error *e;
	unsigned depth;
};

static int bad(struct parser *p, const char *what)
{
	return fail(p->e, RP_E_FORMAT, p->at, "%s", what);
}

static int no_memory(struct parser *p)
{
	return fail(p->e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for a header");
}

/* The next character behind white space, or NUL at the end (and for a NUL). */
static char peek(struct parser *p)
{
	while (p->at < p->text.n && isspace((unsigned char)p->text.p[p->at]))
		p->at++;
	return p->at < p->text.n ? p->text.p[p->at] : '\0';
}

static bool take(struct parser *p, char c)
{
	if (peek(p) != c || p->at == p->text.n)
		return false;
	p->at++;
	return true;
}

static int parse(struct parser *p, struct val *out);

/* Items up to `end`, with commas between them; `pairs`: key, colon, value. */
static int parse_items(struct parser *p, struct node *node, char end, bool pairs, bool *comma)
{
	*comma = false;
	while (!take(p, end)) {
		struct val item;
		if (node->count > 0 && !*comma)
			return bad(p, "a comma is missing");
		int status = parse(p, &item);
		if (status == RP_OK && !node_push(p->arena, node, item))
			status = no_memory(p);
		if (status == RP_OK && pairs) {
			if (!take(p, ':'))
				return bad(p, "a colon is missing");
			status = parse(p, &item);
			if (status == RP_OK && !node_push(p->arena, node, item))
				status = no_memory(p);
		}
		if (status < 0)
			return status;
		*comma = take(p, ',');
	}
	return RP_OK;
}

static int parse_container(struct parser *p, char open, struct val *out)
{
	enum val_kind kind = open == '{' ? VAL_DICT : open == '[' ? VAL_LIST : VAL_TUPLE;
	char end = open == '{' ? '}' : open == '[' ? ']' : ')';
	bool comma;

	*out = val_new(p->arena, kind);
	if (out->kind != kind)
		return no_memory(p);
	int status = parse_items(p, out->node, end, open == '{', &comma);
	/* (1) is a number in parentheses, (1,) a tuple. */
	if (status == RP_OK && kind == VAL_TUPLE && out->node->count == 1 && !comma)
		*out = out->node->kids[0];
	return status;
}

/* The hexadecimal digits of \x41, \u0041, \U00000041. */
static bool take_hex(struct parser *p, unsigned digits, uint32_t *out)
{
	*out = 0;
	for (unsigned i = 0; i < digits; i++) {
		int digit = p->at < p->text.n ? text_hex_digit(p->text.p[p->at]) : -1;
		if (digit < 0)
			return false;
		*out = *out << 4 | (uint32_t)digit;
		p->at++;
	}
	return *out <= 0x10ffff;
}

/* What stands behind a backslash, as bytes; their number, or 0. */
static size_t take_escape(struct parser *p, char out[4])
{
	static const char plain[] = "\\'\"ntr", means[] = "\\'\"\n\t\r";
	uint32_t point;

	if (p->at == p->text.n)
		return 0;
	char c = p->text.p[p->at++];
	const char *known = c ? strchr(plain, c) : NULL;
	if (known) {
		out[0] = means[known - plain];
		return 1;
	}
	unsigned digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
	return digits && take_hex(p, digits, &point) ? text_utf8_put(out, point) : 0;
}

static int parse_text(struct parser *p, char quote, struct val *out)
{
	/* No escape is shorter than what it stands for. */
	char *copy = arena_alloc(p->arena, p->text.n - p->at + 1);
	size_t n = 0;

	if (!copy)
		return no_memory(p);
	while (p->at < p->text.n && p->text.p[p->at] != quote) {
		char c = p->text.p[p->at++];
		size_t added = 1;
		if (c == '\\')
			added = take_escape(p, copy + n);
		else
			copy[n] = c;
		if (added == 0)
			return bad(p, "an escape in a text is not one");
		n += added;
	}
	if (p->at == p->text.n)
		return bad(p, "a text does not end");
	p->at++;
	if (n > UINT32_MAX)
		return bad(p, "a text is too long");
	*out = val_text((struct slice){copy, n});
	return RP_OK;
}

/* A number or a word; Python 2 wrote 4L for large sizes. */
static int parse_word(struct parser *p, struct val *out)
{
	static const struct {
		const char *word;
		struct val value;
	} words[] = {
		{"True", {.kind = VAL_BOOL, .i = 1}},
		{"False", {.kind = VAL_BOOL, .i = 0}},
		{"None", {.kind = VAL_NONE}},
	};
	size_t start = p->at;

	while (p->at < p->text.n &&
		(isalnum((unsigned char)p->text.p[p->at]) || p->text.p[p->at] == '-'))
		p->at++;
	struct slice word = {p->text.p + start, p->at - start};
	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		if (!slice_is(word, words[i].word))
			continue;
		*out = words[i].value;
		return RP_OK;
	}
	int64_t number;
	if (slice_ends(word, SLICE("L")))
		word.n--;
	if (!text_parse_i64(word, INT64_MIN, INT64_MAX, &number)) {
		p->at = start;
		return bad(p, "neither a literal nor a number");
	}
	*out = val_int(number);
	return RP_OK;
}

static int parse(struct parser *p, struct val *out)
{
	char c = peek(p);
	int status;

	if (p->depth == DEPTH_MAX)
		return bad(p, "nested too deeply");
	if (c == '{' || c == '[' || c == '(') {
		p->at++;
		p->depth++;
		status = parse_container(p, c, out);
		p->depth--;
		return status;
	}
	/* u'…' is Python 2's text, b'…' bytes. */
	if ((c == 'u' || c == 'b') && p->at + 1 < p->text.n &&
		(p->text.p[p->at + 1] == '\'' || p->text.p[p->at + 1] == '"'))
		c = p->text.p[++p->at];
	if (c == '\'' || c == '"') {
		p->at++;
		return parse_text(p, c, out);
	}
	return parse_word(p, out);
}

int literal_decode(struct slice text, struct arena *a, struct val *out, struct error *e)
{
	struct parser p = {.text = text, .arena = a, .e = e};
	int status = parse(&p, out);

	if (status == RP_OK && (peek(&p), p.at < text.n))
		return bad(&p, "something follows the literal");
	return status;
}
