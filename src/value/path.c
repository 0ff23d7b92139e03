/* SPDX-License-Identifier: MIT */
#include "value/path.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/text.h"

/* Parsing */

struct parser {
	struct slice text;
	size_t at;
	struct arena *arena;
	struct error *e;
};

static bool more(const struct parser *p)
{
	return p->at < p->text.n;
}

static bool next_is(const struct parser *p, char c)
{
	return more(p) && p->text.p[p->at] == c;
}

static bool take(struct parser *p, char c)
{
	if (!next_is(p, c))
		return false;
	p->at++;
	return true;
}

static bool take_hex(struct parser *p, int digits, uint32_t *out)
{
	*out = 0;
	for (int i = 0; i < digits; i++) {
		int digit = more(p) ? text_hex_digit(p->text.p[p->at]) : -1;
		if (digit < 0)
			return false;
		*out = *out << 4 | (uint32_t)digit;
		p->at++;
	}
	return true;
}

/* \uXXXX, and a second one where the two make a pair. */
static bool take_unicode(struct parser *p, uint32_t *point)
{
	uint32_t low;

	if (!take_hex(p, 4, point))
		return false;
	size_t mark = p->at;
	if (*point >= 0xd800 && *point < 0xdc00 && take(p, '\\') && take(p, 'u') &&
		take_hex(p, 4, &low) && low >= 0xdc00 && low < 0xe000)
		*point = 0x10000 + ((*point - 0xd800) << 10) + (low - 0xdc00);
	else
		p->at = mark;
	return true;
}

/* What stands behind a backslash; 0 bytes: that is no escape. */
static size_t take_escape(struct parser *p, char *out)
{
	static const char letters[] = "\"'\\/bfnrt";
	static const char meanings[] = "\"'\\/\b\f\n\r\t";
	uint32_t point;

	if (!more(p))
		return 0;
	char c = p->text.p[p->at++];
	if (c == 'x' && take_hex(p, 2, &point)) {
		out[0] = (char)point;
		return 1;
	}
	if (c == 'u' && take_unicode(p, &point))
		return text_utf8_put(out, point);
	const char *letter = c ? strchr(letters, c) : NULL;
	if (!letter)
		return 0;
	out[0] = meanings[letter - letters];
	return 1;
}

/* The text behind an opening quote, which is at p->at. */
static int take_quoted(struct parser *p, struct slice *out)
{
	size_t open = p->at;
	char quote = p->text.p[p->at++];
	/* Decoded text is never longer than its escapes. */
	char *decoded = arena_alloc(p->arena, p->text.n);
	size_t n = 0;

	if (!decoded)
		return fail(p->e, RP_E_MEMORY, p->at, "no memory for a path");
	while (more(p) && !next_is(p, quote)) {
		size_t at = p->at;
		if (!take(p, '\\')) {
			decoded[n++] = p->text.p[p->at++];
			continue;
		}
		size_t length = take_escape(p, decoded + n);
		if (length == 0)
			return fail(p->e, RP_E_ARGUMENT, at,
				"no such escape; there are \\\" \\\\ \\n \\t \\r \\b \\f \\uXXXX \\xNN");
		n += length;
	}
	if (!take(p, quote))
		return fail(p->e, RP_E_ARGUMENT, open, "this quote is never closed");
	*out = (struct slice){decoded, n};
	return RP_OK;
}

static struct slice take_until(struct parser *p, const char *stops)
{
	size_t start = p->at;

	while (more(p) && (!p->text.p[p->at] || !strchr(stops, p->text.p[p->at])))
		p->at++;
	return (struct slice){p->text.p + start, p->at - start};
}

static bool take_stars(struct parser *p, struct path_segment *s)
{
	if (!take(p, '*'))
		return false;
	s->kind = take(p, '*') ? PATH_DEEP : PATH_EVERY;
	return true;
}

/* What stands between brackets. */
static int take_bracket(struct parser *p, struct path_segment *s)
{
	size_t open = p->at++, inside = p->at;
	int status = RP_OK;

	if (next_is(p, '"') || next_is(p, '\'')) {
		s->kind = PATH_NAME;
		s->quoted = true;
		status = take_quoted(p, &s->name);
	} else if (!take_stars(p, s)) {
		bool ordinal = take(p, '#');
		struct slice number = take_until(p, "]");
		s->kind = ordinal ? PATH_ORDINAL : PATH_INDEX;
		if (!text_parse_i64(number, ordinal ? 0 : INT64_MIN, INT64_MAX, &s->index))
			return fail(p->e, RP_E_ARGUMENT, inside,
				"in brackets stands an index, * or a text in quotes: [\"name\"]");
	}
	if (status == RP_OK && !take(p, ']'))
		return fail(p->e, RP_E_ARGUMENT, open, "this bracket is never closed");
	return status;
}

static int take_name(struct parser *p, struct path_segment *s)
{
	size_t start = p->at;

	if (take_stars(p, s)) {
		if (more(p) && !next_is(p, '.') && !next_is(p, '['))
			return fail(p->e, RP_E_ARGUMENT, p->at, "a * stands for a whole name");
		return RP_OK;
	}
	s->kind = PATH_NAME;
	s->name = take_until(p, ".[]*\"");
	if (more(p) && !next_is(p, '.') && !next_is(p, '['))
		return fail(p->e, RP_E_ARGUMENT, p->at, "%s",
			next_is(p, '*')   ? "a * stands for a whole name"
			: next_is(p, ']') ? "no bracket was opened"
					  : "a text in quotes stands in brackets: [\"name\"]");
	if (s->name.n == 0)
		return fail(p->e, RP_E_ARGUMENT, start, "a name is missing");
	s->numeric = text_parse_i64(s->name, INT64_MIN, INT64_MAX, &s->index);
	return RP_OK;
}

int path_parse(struct path *path, struct slice text, struct arena *a, struct error *e)
{
	struct parser p = {.text = text, .arena = a, .e = e};

	path->count = 0;
	if (slice_is(text, "."))
		return RP_OK;
	while (more(&p)) {
		struct path_segment s = {.kind = PATH_NAME};
		size_t start = p.at;
		bool dot = take(&p, '.');
		if (path->count == PATH_SEGMENTS_MAX)
			return fail(e, RP_E_ARGUMENT, start, "a path has at most %d parts",
				PATH_SEGMENTS_MAX);
		if (!dot && path->count > 0 && !next_is(&p, '['))
			return fail(e, RP_E_ARGUMENT, start, "a dot is missing");
		int status = next_is(&p, '[') ? take_bracket(&p, &s) : take_name(&p, &s);
		if (status < 0)
			return status;
		path->segments[path->count++] = s;
	}
	return RP_OK;
}

/* Printing */

static bool is_identifier(struct slice name)
{
	for (size_t i = 0; i < name.n; i++) {
		char c = name.p[i];
		bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
		if (!letter && (i == 0 || c < '0' || c > '9'))
			return false;
	}
	return name.n > 0;
}

static void add_escape(struct strbuf *b, uint32_t point)
{
	if (point == '\n')
		strbuf_add_text(b, "\\n");
	else if (point == '\t')
		strbuf_add_text(b, "\\t");
	else if (point < 0x10000)
		strbuf_printf(b, "\\u%04x", (unsigned)point);
	else
		strbuf_printf(b, "\\u%04x\\u%04x", (unsigned)(0xd800 + ((point - 0x10000) >> 10)),
			(unsigned)(0xdc00 + (point & 0x3ff)));
}

static void add_quoted(struct strbuf *b, struct slice text)
{
	uint32_t point;

	strbuf_add_text(b, "[\"");
	while (text.n > 0) {
		size_t length = text_utf8_next(text, &point);
		if (length == 0)
			strbuf_printf(b, "\\x%02x", (unsigned)(uint8_t)text.p[0]);
		else if (text_disturbs(point))
			add_escape(b, point);
		else if (point == '"' || point == '\\')
			strbuf_printf(b, "\\%c", (char)point);
		else
			strbuf_add(b, text.p, length);
		size_t step = length ? length : 1;
		text = (struct slice){text.p + step, text.n - step};
	}
	strbuf_add_text(b, "\"]");
}

static bool add_typable(struct strbuf *b, struct val key)
{
	if (key.kind == VAL_INT) {
		strbuf_printf(b, "[%lld]", (long long)key.i);
		return true;
	}
	if (key.kind != VAL_TEXT)
		return false;
	if (!is_identifier(val_slice(key))) {
		add_quoted(b, val_slice(key));
		return true;
	}
	if (b->n > 0)
		strbuf_add_char(b, '.');
	strbuf_add_slice(b, val_slice(key));
	return true;
}

void path_add_key(struct strbuf *b, struct val key)
{
	if (!add_typable(b, key))
		strbuf_add_text(b, "[?]");
}

void path_add_step(struct strbuf *b, struct path_step step)
{
	if (!add_typable(b, step.key))
		strbuf_printf(b, "[#%llu]", (unsigned long long)step.index);
}

void path_add_steps(struct strbuf *b, const struct path_step *steps, size_t count)
{
	size_t start = b->n;

	for (size_t i = 0; i < count; i++)
		path_add_step(b, steps[i]);
	if (b->n == start)
		strbuf_add_char(b, '.');
}

/*
 * Matching. A path is a small automaton: bit i of a state says that segments before i have matched.
 * All its states step together, so that each value is looked at once however many ** there are.
 */

struct frame {
	struct val v;
	const void *identity; /* of a container, to notice when it stands inside itself */
	uint64_t next, count; /* of its parts */
	uint64_t states;
};

struct matcher {
	const struct path *path;
	const struct limits *limits;
	uint64_t literal; /* segments that are neither * nor ** */
	uint64_t final;   /* the state in which all has matched */
	bool leaves;      /* the path ends with ** */
	bool complete;
	uint64_t budget;
	ARRAY(struct frame) frames;
	ARRAY(struct path_step) steps; /* one a frame: the part that it is looking at */
};

/* A ** may match no level at all. */
static uint64_t close_states(const struct matcher *m, uint64_t states)
{
	for (size_t i = 0; i < m->path->count; i++)
		if (states >> i & 1 && m->path->segments[i].kind == PATH_DEEP)
			states |= (uint64_t)1 << (i + 1);
	return states;
}

/* The index that a segment asks for, in a sequence counted from the end where negative. */
static bool index_matches(
	const struct path_segment *s, struct val parent, uint64_t count, struct val key)
{
	int64_t index = s->index;

	if (index < 0 && val_is_sequence(parent) && count <= INT64_MAX)
		index += (int64_t)count;
	return key.kind == VAL_INT && key.i == index;
}

static bool segment_matches(
	const struct path_segment *s, const struct frame *f, struct val key, uint64_t ordinal)
{
	switch (s->kind) {
	case PATH_NAME:
		return (key.kind == VAL_TEXT && slice_eq(val_slice(key), s->name)) ||
		       (s->numeric && index_matches(s, f->v, f->count, key));
	case PATH_INDEX:
		return index_matches(s, f->v, f->count, key);
	case PATH_ORDINAL:
		return s->index >= 0 && (uint64_t)s->index == ordinal;
	case PATH_EVERY:
	case PATH_DEEP:
		return true;
	}
	return false;
}

/* One step with a whole key. */
static uint64_t step_key(
	const struct matcher *m, const struct frame *f, struct val key, uint64_t ordinal)
{
	uint64_t states = 0;

	for (uint64_t left = f->states & ~m->final; left; left &= left - 1) {
		unsigned i = (unsigned)__builtin_ctzll(left);
		const struct path_segment *s = &m->path->segments[i];
		if (segment_matches(s, f, key, ordinal))
			states |= (uint64_t)1 << (s->kind == PATH_DEEP ? i : i + 1);
	}
	return close_states(m, states);
}

/* A step for each piece of a key with dots. */
static uint64_t step_pieces(const struct matcher *m, uint64_t states, struct slice key)
{
	for (size_t at = 0; at <= key.n && states; at++) {
		const char *dot = at < key.n ? memchr(key.p + at, '.', key.n - at) : NULL;
		size_t end = dot ? (size_t)(dot - key.p) : key.n;
		struct slice piece = {key.p + at, end - at};
		uint64_t stepped = 0;
		for (uint64_t left = states & ~m->final; left; left &= left - 1) {
			unsigned i = (unsigned)__builtin_ctzll(left);
			const struct path_segment *s = &m->path->segments[i];
			if (s->kind == PATH_DEEP)
				stepped |= (uint64_t)1 << i;
			else if (s->kind == PATH_EVERY ||
				 (s->kind == PATH_NAME && !s->quoted && slice_eq(piece, s->name)))
				stepped |= (uint64_t)1 << (i + 1);
		}
		states = close_states(m, stepped);
		at = end;
	}
	return states;
}

static uint64_t step(
	const struct matcher *m, const struct frame *f, struct val key, uint64_t ordinal)
{
	uint64_t states = step_key(m, f, key, ordinal);
	struct slice text = val_slice(key);

	if (key.kind == VAL_TEXT && text.n > 0 && memchr(text.p, '.', text.n))
		states |= step_pieces(m, f->states, text);
	return states;
}

static bool same_key(struct val a, struct val b)
{
	if (a.kind != b.kind)
		return false;
	return a.kind == VAL_TEXT ? slice_eq(val_slice(a), val_slice(b))
				  : a.kind == VAL_INT && a.i == b.i;
}

/* Whether a later part has the same key, so that Python would never see this one. */
static bool is_overridden(const struct frame *f, struct val key, uint64_t ordinal)
{
	struct val later;

	if (f->v.kind != VAL_DICT && f->v.kind != VAL_OBJECT)
		return false;
	for (uint64_t i = ordinal + 1; i < f->count; i++) {
		val_part(f->v, i, &later);
		if (same_key(key, later))
			return true;
	}
	return false;
}

static const void *identity_of(struct val v)
{
	if (val_is_container(v) || v.kind == VAL_PERSISTENT)
		return v.node;
	return v.kind == VAL_OBJECT ? v.object : NULL;
}

static void enter(struct matcher *m, struct val v, uint64_t states)
{
	uint64_t count = val_count(v);
	const void *identity = identity_of(v);

	if (count == 0 || !(states & ~m->final))
		return;
	for (size_t i = 0; i < m->frames.count; i++)
		if (m->frames.items[i].identity == identity)
			return;
	size_t max = m->limits->depth < SIZE_MAX ? (size_t)m->limits->depth : SIZE_MAX;
	struct frame *f = array_push(&m->frames, max);
	if (!f || !array_push(&m->steps, max)) {
		m->frames.count -= f != NULL;
		m->complete = false;
		return;
	}
	*f = (struct frame){.v = v, .identity = identity, .count = count, .states = states};
}

static bool accepts(const struct matcher *m, uint64_t states, struct val v)
{
	return states & m->final && (!m->leaves || val_count(v) == 0);
}

/* Look at the next part of the innermost frame. False when the visitor wants no more. */
static bool advance(struct matcher *m, path_visit_fn *visit, void *context)
{
	struct frame *f = &m->frames.items[m->frames.count - 1];
	struct val key;

	if (f->next == f->count) {
		m->frames.count--;
		m->steps.count--;
		return true;
	}
	if (m->budget == 0) {
		m->complete = false;
		return false;
	}
	m->budget--;
	uint64_t ordinal = f->next++;
	struct val part = val_part(f->v, ordinal, &key);
	uint64_t states = step(m, f, key, ordinal);
	if (!states)
		return true;
	/* An ordinal names one part of several with the same key. */
	bool literal = !(f->states & ~m->final & ~m->literal);
	if (literal && is_overridden(f, key, ordinal))
		return true;
	m->steps.items[m->steps.count - 1] = (struct path_step){key, ordinal};
	if (accepts(m, states, part) && !visit(context, part, m->steps.items, m->steps.count))
		return false;
	enter(m, part, states);
	return true;
}

bool path_match(const struct path *p, struct val root, const struct limits *limits,
	path_visit_fn *visit, void *context)
{
	struct matcher m = {
		.path = p,
		.limits = limits,
		.final = (uint64_t)1 << p->count,
		.leaves = p->count > 0 && p->segments[p->count - 1].kind == PATH_DEEP,
		.complete = true,
		.budget = limits->nodes,
	};

	for (size_t i = 0; i < p->count; i++)
		if (p->segments[i].kind == PATH_NAME || p->segments[i].kind == PATH_INDEX)
			m.literal |= (uint64_t)1 << i;
	uint64_t states = close_states(&m, 1);
	bool go_on = !accepts(&m, states, root) || visit(context, root, NULL, 0);
	if (go_on)
		enter(&m, root, states);
	while (go_on && m.frames.count > 0)
		go_on = advance(&m, visit, context);
	array_release(&m.frames);
	array_release(&m.steps);
	return m.complete;
}
