/* SPDX-License-Identifier: MIT */
#include "ledger/step_line.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "ledger/read.h"
#include "base/scan.h"

#define SOURCE_NAME_MAX 4096u

/* Where scanning is, and what it fills. */
struct scan {
	struct step_line *s;
	struct ledger *l;
	struct error *e;
	const char *begin;
	bool failed; /* `e` says why; else the line is bad */
	bool rare;
	bool other; /* another split */
	/* Which arrays the line has, to be held against ids. */
	bool has_ids, has_keys, has_sources, has_tokens, has_losses, has_counts, has_total;
	size_t counts_n; /* length of an array among the counts, or 0 */
	unsigned seen;   /* bits by enum step_key */
};

/* Say what is wrong at `p`. */
static const char *bad(struct scan *c, const char *p, const char *what)
{
	if (!c->s->what) {
		c->s->what = what;
		c->s->column = (size_t)(p - c->begin) + 1;
	}
	return NULL;
}

static const char *no_memory(struct scan *c)
{
	c->failed = true;
	fail(c->e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for a line of the sample log");
	return NULL;
}

/* Growing arrays whose room is checked once a block, not once a value. */
#define ROOM(c, array)                                                                             \
	((array)->count < (array)->capacity || array_reserve((array), (array)->count + 1, SIZE_MAX))

/* Behind a value in an array: a comma, or the end. */
static inline const char *next_item(const char *p, bool *end)
{
	p = *p == ',' || *p == ']' ? p : scan_space(p);
	*end = *p == ']';
	if (*p != ',' && *p != ']')
		return NULL;
	p++;
	return *end || (unsigned char)*p > ' ' ? p : scan_space(p);
}

/* Behind the opening bracket; true where the array is empty, with *p behind it. */
static bool empty_array(const char **p)
{
	*p = scan_space(*p + 1);
	if (**p != ']')
		return false;
	(*p)++;
	return true;
}

static struct slice plain_text(struct scan *c, struct slice raw, bool escaped)
{
	if (!escaped)
		return raw;
	if (!array_reserve(&c->s->text, raw.n, SIZE_MAX)) {
		no_memory(c);
		return (struct slice){"", 0};
	}
	return (struct slice){c->s->text.items, scan_unescape(raw, c->s->text.items)};
}

/* Values --------------------------------------------------------------------------------------- */

static const char *integer(struct scan *c, const char *p, int64_t max, int64_t *out)
{
	uint64_t v;
	const char *end = scan_u64(p, &v);

	if (!end && (end = scan_word(p, "null")))
		return end;
	if (!end)
		return bad(c, p, *p == '-' ? "a number below 0" : "no whole number");
	if (v > (uint64_t)max)
		return bad(c, p, "the number is too large");
	/* 2.0 is what some writers make of 2; an epoch of 2.75 is in epoch 2. */
	if (*end == '.') {
		double d;
		end = scan_double(p, &d);
		if (!end)
			return bad(c, p, "no number");
	}
	*out = (int64_t)v;
	return end;
}

static const char *number(struct scan *c, const char *p, double *out)
{
	const char *end = scan_double(p, out);

	if (!end && (end = scan_word(p, "null")))
		*out = NAN;
	return end ? end : bad(c, p, "no number");
}

static const char *integers(struct scan *c, const char *p)
{
	bool end = false;

	while (!end) {
		if (!ROOM(c, &c->s->keys))
			return no_memory(c);
		size_t room = c->s->keys.capacity - c->s->keys.count;
		size_t plain = scan_u64_list(&p, c->s->keys.items + c->s->keys.count, room);
		c->s->keys.count += plain;
		if (plain == room)
			continue;
		const char *at = p = scan_space(p);
		p = scan_u64(p, &c->s->keys.items[c->s->keys.count]);
		if (!p)
			return bad(
				c, at, *at == '-' ? "an id below 0" : "an id that is no integer");
		c->s->keys.count++;
		at = p;
		p = next_item(p, &end);
		if (!p)
			return bad(c, at, "an id that is no integer");
	}
	return p;
}

/* Strings in an array, each handed to `take`; null too where `none` says what it stands for. */
static const char *strings(struct scan *c, const char *p, bool (*take)(struct scan *, struct slice),
	bool (*none)(struct scan *))
{
	bool end = false, escaped;
	struct slice raw;

	while (!end) {
		const char *at = p;
		p = scan_string(p, &raw, &escaped);
		bool null = !p && none && (p = scan_word(at, "null"));
		if (!p)
			return bad(c, at, "no string");
		if (null ? !none(c) : !take(c, plain_text(c, raw, escaped)))
			return NULL;
		at = p;
		p = next_item(p, &end);
		if (!p)
			return bad(c, at, "no comma and no end of the array");
	}
	return p;
}

static bool take_text_id(struct scan *c, struct slice text)
{
	if (!ROOM(c, &c->s->keys))
		return no_memory(c) != NULL;
	c->s->keys.items[c->s->keys.count++] = XXH3_64bits(text.p, text.n);
	return true;
}

static const char *take_ids(struct scan *c, const char *p)
{
	c->has_ids = true;
	if (*p != '[')
		return bad(c, p, "ids is no array");
	c->s->keys.count = 0;
	c->s->line.kind = KEY_ID;
	if (empty_array(&p))
		return p;
	if (*p != '"')
		return integers(c, p);
	c->s->line.kind = KEY_TEXT;
	return strings(c, p, take_text_id, NULL);
}

static const char *take_keys(struct scan *c, const char *p)
{
	bool end = false;

	c->has_keys = true;
	if (*p != '[')
		return bad(c, p, "keys is no array");
	c->s->keys.count = 0;
	c->s->line.kind = KEY_CONTENT;
	if (empty_array(&p))
		return p;
	while (!end) {
		const char *at = p;
		if (!ROOM(c, &c->s->keys))
			return no_memory(c);
		p = scan_hex64(p, &c->s->keys.items[c->s->keys.count]);
		if (!p)
			return bad(c, at, "a key that is not 16 hexadecimal digits");
		c->s->keys.count++;
		at = p;
		p = next_item(p, &end);
		if (!p)
			return bad(c, at, "no comma and no end of the array");
	}
	return p;
}

int step_line_source(
	struct step_line *s, struct slice name, struct ledger *l, uint32_t *index, struct error *e)
{
	uint64_t first = 0;

	memcpy(&first, name.p, name.n < 8 ? name.n : 8);
	struct source_slot *slot = &s->slots[lookup_mix(first + name.n) % STEP_LINE_SOURCES];
	if (slot->name && slot->n == name.n && memcmp(slot->name, name.p, name.n) == 0) {
		*index = slot->index;
		return RP_OK;
	}
	if (ledger_source_named(l, name, index, e) < 0)
		return e->status;
	*slot = (struct source_slot){l->sources.items[*index].name, name.n, *index};
	return RP_OK;
}

static bool source_named(struct scan *c, struct slice name, uint32_t *index)
{
	if (name.n > SOURCE_NAME_MAX || memchr(name.p, '\0', name.n))
		return bad(c, c->begin, "a source's name that is too long, or has a NUL") != NULL;
	if (!c->failed && step_line_source(c->s, name, c->l, index, c->e) < 0)
		c->failed = true;
	return !c->failed;
}

static bool take_source_name(struct scan *c, struct slice name)
{
	if (!ROOM(c, &c->s->sources))
		return no_memory(c) != NULL;
	return source_named(c, name, &c->s->sources.items[c->s->sources.count++]);
}

static bool take_no_source(struct scan *c)
{
	if (!ROOM(c, &c->s->sources))
		return no_memory(c) != NULL;
	c->s->sources.items[c->s->sources.count++] = LEDGER_NONE;
	return true;
}

static const char *take_source(struct scan *c, const char *p)
{
	struct slice raw;
	bool escaped;
	const char *end = scan_word(p, "null");

	if (end)
		return end;
	if (*p == '[') {
		c->has_sources = true;
		c->s->sources.count = 0;
		return empty_array(&p) ? p : strings(c, p, take_source_name, take_no_source);
	}
	end = scan_string(p, &raw, &escaped);
	if (!end)
		return bad(c, p, "source is no string");
	return source_named(c, plain_text(c, raw, escaped), &c->s->line.source) ? end : NULL;
}

static const char *take_tokens(struct scan *c, const char *p)
{
	bool end = false;
	int64_t v = 0;

	if (*p != '[') {
		p = integer(c, p, LEDGER_STEP_MAX, &v);
		c->s->line.tokens_all = (uint64_t)v;
		return p;
	}
	c->has_tokens = true;
	c->s->tokens.count = 0;
	if (empty_array(&p))
		return p;
	while (!end) {
		if (!ROOM(c, &c->s->tokens))
			return no_memory(c);
		v = 0;
		p = integer(c, p, UINT32_MAX, &v);
		if (!p)
			return NULL;
		c->s->tokens.items[c->s->tokens.count++] = (uint32_t)v;
		const char *at = p;
		p = next_item(p, &end);
		if (!p)
			return bad(c, at, "no comma and no end of the array");
	}
	return p;
}

static const char *take_loss(struct scan *c, const char *p)
{
	bool end = false;
	double v = NAN;

	if (*p != '[') {
		p = number(c, p, &v);
		c->s->line.loss = (float)v;
		return p;
	}
	c->has_losses = true;
	c->s->losses.count = 0;
	if (empty_array(&p))
		return p;
	while (!end) {
		if (!ROOM(c, &c->s->losses))
			return no_memory(c);
		p = number(c, p, &v);
		if (!p)
			return NULL;
		c->s->losses.items[c->s->losses.count++] = (float)v;
		const char *at = p;
		p = next_item(p, &end);
		if (!p)
			return bad(c, at, "no comma and no end of the array");
	}
	return p;
}

/* A count, or an array of them, which are added up. */
static const char *count(struct scan *c, const char *p, double *sum)
{
	bool end = false;
	size_t n = 0;
	double v = 0;

	if (*p != '[') {
		p = number(c, p, &v);
		*sum += isfinite(v) ? v : 0;
		return p;
	}
	if (empty_array(&p))
		return p;
	for (; !end; n++) {
		p = number(c, p, &v);
		if (!p)
			return NULL;
		*sum += isfinite(v) ? v : 0;
		const char *at = p;
		p = next_item(p, &end);
		if (!p)
			return bad(c, at, "no comma and no end of the array");
	}
	if (c->counts_n && c->counts_n != n)
		return bad(c, p, "arrays of different lengths in counts");
	c->counts_n = n;
	return p;
}

static const char *take_counts(struct scan *c, const char *p)
{
	if (*p != '{')
		return bad(c, p, "counts is no object");
	c->has_counts = true;
	memset(c->s->counts, 0, sizeof c->s->counts);
	p = scan_space(p + 1);
	if (*p == '}')
		return p + 1;
	for (;;) {
		struct slice raw;
		bool escaped;
		uint32_t index;
		const char *at = p;
		p = scan_string(p, &raw, &escaped);
		if (!p)
			return bad(c, at, "a name in counts is no string");
		if (raw.n > SOURCE_NAME_MAX)
			return bad(c, at, "a name in counts that is too long");
		if (ledger_count_named(c->l, plain_text(c, raw, escaped), &index, c->e) < 0)
			c->failed = true;
		p = scan_space(p);
		if (c->failed || *p != ':')
			return bad(c, p, "no colon");
		p = count(c, scan_space(p + 1), &c->s->counts[index]);
		if (!p)
			return NULL;
		p = scan_space(p);
		if (*p == '}')
			return p + 1;
		if (*p != ',')
			return bad(c, p, "no comma and no end of the object");
		p = scan_space(p + 1);
	}
}

static const char *take_applied(struct scan *c, const char *p)
{
	const char *end = scan_word(p, "false");

	c->s->line.applied = !end;
	if (!end)
		end = scan_word(p, "true");
	return end ? end : bad(c, p, "neither true nor false");
}

bool split_is_training(struct slice split)
{
	return split.n == 0 || slice_is(split, "train") || slice_is(split, "training");
}

static const char *take_split(struct scan *c, const char *p)
{
	struct slice raw;
	bool escaped;
	const char *end = scan_word(p, "null");

	if (end)
		return end;
	end = scan_string(p, &raw, &escaped);
	if (!end)
		return bad(c, p, "split is no string");
	c->other = !split_is_training(plain_text(c, raw, escaped));
	return end;
}

/* Keys ----------------------------------------------------------------------------------------- */

/* One row per key: what it is called, and which value it takes. */
#define STEP_KEYS(KEY)                                                                             \
	KEY(step)                                                                                  \
	KEY(dp)                                                                                    \
	KEY(micro)                                                                                 \
	KEY(worker)                                                                                \
	KEY(epoch)                                                                                 \
	KEY(position)                                                                              \
	KEY(attempt)                                                                               \
	KEY(ids)                                                                                   \
	KEY(keys)                                                                                  \
	KEY(source)                                                                                \
	KEY(tokens)                                                                                \
	KEY(loss)                                                                                  \
	KEY(counts)                                                                                \
	KEY(applied)                                                                               \
	KEY(split)                                                                                 \
	KEY(lr)                                                                                    \
	KEY(grad_norm)                                                                             \
	KEY(reprise)                                                                               \
	KEY(checkpoint)                                                                            \
	KEY(end)

enum step_key {
#define KEY(name) STEP_KEY_##name,
	STEP_KEYS(KEY)
#undef KEY
		STEP_KEY_UNKNOWN,
};

static enum step_key key_of(struct slice key)
{
#define KEY(name)                                                                                  \
	if (key.n == sizeof #name - 1 && memcmp(key.p, #name, sizeof #name - 1) == 0)              \
		return STEP_KEY_##name;
	STEP_KEYS(KEY)
#undef KEY
	return STEP_KEY_UNKNOWN;
}

static const char *take_i64(struct scan *c, const char *p, int64_t max, int64_t *out)
{
	const char *begin = p;
	int64_t v = -1;
	double d;

	p = integer(c, p, max, &v);
	if (!p || v < 0)
		return p;
	if (memchr(begin, '.', (size_t)(p - begin)) && scan_double(begin, &d) && d != (double)v)
		return bad(c, begin, "no whole number");
	*out = v;
	return p;
}

static const char *take_float(struct scan *c, const char *p, float *out)
{
	double v;

	p = number(c, p, &v);
	if (p)
		*out = (float)v;
	return p;
}

static const char *take_value(struct scan *c, enum step_key key, const char *p)
{
	struct ledger_line *line = &c->s->line;
	int64_t v = -1;

	switch (key) {
	case STEP_KEY_step:
		p = take_i64(c, p, LEDGER_STEP_MAX, &v);
		line->step = v;
		c->s->has_step = p && v >= 0;
		return p;
	case STEP_KEY_dp:
		p = take_i64(c, p, INT32_MAX, &v);
		line->dp = v < 0 ? LEDGER_NONE : (uint32_t)v;
		return p;
	case STEP_KEY_micro:
		p = take_i64(c, p, UINT16_MAX, &v);
		line->micro = v < 0 ? 0 : (uint16_t)v;
		return p;
	case STEP_KEY_worker:
		p = take_i64(c, p, UINT16_MAX - 1, &v);
		line->worker = v < 0 ? UINT16_MAX : (uint16_t)v;
		return p;
	case STEP_KEY_epoch:
		p = integer(c, p, INT32_MAX, &v);
		line->epoch = (int32_t)v;
		return p;
	case STEP_KEY_position:
		return take_i64(c, p, LEDGER_STEP_MAX, &line->position);
	case STEP_KEY_attempt:
		return take_i64(c, p, LEDGER_STEP_MAX, &c->s->attempt);
	case STEP_KEY_ids:
		return take_ids(c, p);
	case STEP_KEY_keys:
		return take_keys(c, p);
	case STEP_KEY_source:
		return take_source(c, p);
	case STEP_KEY_tokens:
		return take_tokens(c, p);
	case STEP_KEY_loss:
		return take_loss(c, p);
	case STEP_KEY_counts:
		return take_counts(c, p);
	case STEP_KEY_applied:
		return take_applied(c, p);
	case STEP_KEY_split:
		return take_split(c, p);
	case STEP_KEY_lr:
		return take_float(c, p, &line->lr);
	case STEP_KEY_grad_norm:
		return take_float(c, p, &line->grad_norm);
	case STEP_KEY_reprise:
	case STEP_KEY_checkpoint:
	case STEP_KEY_end:
		c->rare = true;
		break;
	case STEP_KEY_UNKNOWN:
		break;
	}
	const char *end = scan_any(p);
	return end ? end : bad(c, p, "no value of JSON");
}

static const char *take_member(struct scan *c, const char *p)
{
	struct slice key;
	bool escaped;
	const char *at = p;

	p = scan_string(p, &key, &escaped);
	if (!p)
		return bad(c, at, "no key in quotes");
	enum step_key known = escaped ? STEP_KEY_UNKNOWN : key_of(key);
	p = p[0] == ':' ? p : scan_space(p);
	if (*p != ':')
		return bad(c, p, "no colon behind a key");
	if (known != STEP_KEY_UNKNOWN && c->seen & 1u << known)
		return bad(c, at, "a key twice");
	c->seen |= known == STEP_KEY_UNKNOWN ? 0 : 1u << known;
	p = (unsigned char)p[1] > ' ' ? p + 1 : scan_space(p + 1);
	return take_value(c, known, p);
}

static const char *take_object(struct scan *c, const char *p)
{
	p = scan_space(p);
	if (*p != '{')
		return bad(c, p, "no JSON object");
	p = scan_space(p + 1);
	if (*p == '}')
		return p + 1;
	for (;;) {
		p = take_member(c, p);
		if (!p)
			return NULL;
		p = *p == ',' || *p == '}' ? p : scan_space(p);
		if (*p == '}')
			return p + 1;
		if (*p != ',')
			return bad(c, p, "no comma and no end of the object");
		p = (unsigned char)p[1] > ' ' ? p + 1 : scan_space(p + 1);
	}
}

/* Arrays belong to the samples one by one. */
static bool lengths_agree(struct scan *c)
{
	struct step_line *s = c->s;
	size_t n = c->has_ids || c->has_keys ? s->keys.count : 0;

	if (c->has_ids && c->has_keys)
		s->what = "both ids and keys";
	else if (c->has_sources && s->sources.count != n)
		s->what = "source is an array of another length than the ids";
	else if (c->has_tokens && s->tokens.count != n)
		s->what = "tokens is an array of another length than the ids";
	else if (c->has_losses && s->losses.count != n)
		s->what = "loss is an array of another length than the ids";
	else if (c->counts_n > 0 && c->counts_n != n)
		s->what = "counts has arrays of another length than the ids";
	else if (n > 0 && s->line.tokens_all / n >= UINT32_MAX)
		s->what = "too many tokens for so few ids";
	return !s->what;
}

static void fill_line(struct scan *c)
{
	struct step_line *s = c->s;
	struct ledger_line *line = &s->line;

	line->samples = c->has_ids || c->has_keys;
	line->n = line->samples ? s->keys.count : 0;
	line->keys = s->keys.items;
	line->sources = c->has_sources ? s->sources.items : NULL;
	line->tokens = c->has_tokens ? s->tokens.items : NULL;
	line->losses = c->has_losses ? s->losses.items : NULL;
	line->counts = c->has_counts ? s->counts : NULL;
}

void step_line_init(struct step_line *s)
{
	*s = (struct step_line){0};
}

void step_line_release(struct step_line *s)
{
	array_release(&s->keys);
	array_release(&s->sources);
	array_release(&s->tokens);
	array_release(&s->losses);
	array_release(&s->text);
}

enum step_line_kind step_line_scan(
	struct step_line *s, struct slice text, struct ledger *l, struct error *e)
{
	struct scan c = {.s = s, .l = l, .e = e, .begin = text.p};

	s->line = ledger_line_empty();
	s->line.dp = LEDGER_NONE;
	s->attempt = LEDGER_UNNUMBERED;
	s->has_step = false;
	s->what = NULL;
	s->column = 0;
	const char *p = take_object(&c, text.p);
	if (c.failed)
		return STEP_LINE_FAILED;
	if (p && scan_space(p) != text.p + text.n)
		bad(&c, scan_space(p), "something behind the object");
	if (s->what)
		return STEP_LINE_BAD;
	if (c.rare || !s->has_step)
		return STEP_LINE_RARE;
	if (c.other)
		return STEP_LINE_OTHER;
	if (!lengths_agree(&c))
		return STEP_LINE_BAD;
	fill_line(&c);
	return STEP_LINE;
}
