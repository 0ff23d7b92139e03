/* SPDX-License-Identifier: MIT */
#include "report/json_writer.h"

#include <math.h>

#include "base/error.h"
#include "base/text.h"

void json_writer_init(struct json_writer *w, struct strbuf *out, bool indent)
{
	*w = (struct json_writer){.out = out, .indent = indent};
	w->first[0] = true;
}

static void new_line(struct json_writer *w)
{
	if (!w->indent)
		return;
	strbuf_add_char(w->out, '\n');
	strbuf_pad(w->out, ' ', 2 * (size_t)w->depth);
}

/* What stands in front of a key or a value: nothing behind a key, else a comma and a line. */
static void separate(struct json_writer *w)
{
	if (w->after_key) {
		w->after_key = false;
		return;
	}
	if (!w->first[w->depth])
		strbuf_add_char(w->out, ',');
	if (w->depth > 0)
		new_line(w);
	w->first[w->depth] = false;
}

static void open_level(struct json_writer *w, char bracket)
{
	separate(w);
	if (w->depth + 1 >= JSON_WRITER_DEPTH)
		BUG("JSON nested too deeply");
	strbuf_add_char(w->out, bracket);
	w->first[++w->depth] = true;
}

static void close_level(struct json_writer *w, char bracket)
{
	if (w->depth == 0 || w->after_key)
		BUG("JSON closed at the wrong place");
	bool empty = w->first[w->depth--];
	if (!empty)
		new_line(w);
	strbuf_add_char(w->out, bracket);
}

void json_open_object(struct json_writer *w)
{
	open_level(w, '{');
}

void json_close_object(struct json_writer *w)
{
	close_level(w, '}');
}

void json_open_array(struct json_writer *w)
{
	open_level(w, '[');
}

void json_close_array(struct json_writer *w)
{
	close_level(w, ']');
}

/* A character that may not or should not stand in a text as it is. */
static void add_special(struct strbuf *out, uint32_t point)
{
	static const char short_names[] = "\b\t\n\f\r";
	static const char letters[] = "btnfr";

	if (point == '"' || point == '\\') {
		strbuf_add_char(out, '\\');
		strbuf_add_char(out, (char)point);
		return;
	}
	const char *name = point > 0 && point < 0x20 ? strchr(short_names, (int)point) : NULL;
	if (name) {
		strbuf_add_char(out, '\\');
		strbuf_add_char(out, letters[name - short_names]);
	} else if (point < 0x10000) {
		strbuf_printf(out, "\\u%04x", (unsigned)point);
	} else {
		point -= 0x10000;
		strbuf_printf(out, "\\u%04x\\u%04x", (unsigned)(0xd800 + (point >> 10)),
			(unsigned)(0xdc00 + (point & 0x3ff)));
	}
}

static bool is_special(uint32_t point)
{
	return point == '"' || point == '\\' || text_disturbs(point);
}

/* Bytes that are not UTF-8 become U+FFFD, one for each byte. */
static void add_text(struct strbuf *out, struct slice text)
{
	strbuf_add_char(out, '"');
	while (text.n > 0) {
		size_t plain = 0, length = 1;
		uint32_t point = 0;
		while (plain < text.n) {
			length = text_utf8_next(
				(struct slice){text.p + plain, text.n - plain}, &point);
			if (length == 0 || is_special(point))
				break;
			plain += length;
		}
		strbuf_add(out, text.p, plain);
		text = (struct slice){text.p + plain, text.n - plain};
		if (text.n == 0)
			break;
		if (length == 0) {
			strbuf_add_text(out, "\xef\xbf\xbd");
			length = 1;
		} else {
			add_special(out, point);
		}
		text = (struct slice){text.p + length, text.n - length};
	}
	strbuf_add_char(out, '"');
}

void json_key(struct json_writer *w, const char *key)
{
	separate(w);
	add_text(w->out, slice_of(key));
	strbuf_add_text(w->out, w->indent ? ": " : ":");
	w->after_key = true;
}

void json_slice(struct json_writer *w, struct slice text)
{
	separate(w);
	add_text(w->out, text);
}

void json_text(struct json_writer *w, const char *text)
{
	if (text)
		json_slice(w, slice_of(text));
	else
		json_null(w);
}

void json_i64(struct json_writer *w, int64_t v)
{
	separate(w);
	strbuf_printf(w->out, "%lld", (long long)v);
}

void json_u64(struct json_writer *w, uint64_t v)
{
	separate(w);
	strbuf_printf(w->out, "%llu", (unsigned long long)v);
}

void json_double(struct json_writer *w, double v)
{
	if (!isfinite(v)) {
		json_null(w);
		return;
	}
	separate(w);
	text_add_double(w->out, v);
}

void json_bool(struct json_writer *w, bool v)
{
	separate(w);
	strbuf_add_text(w->out, v ? "true" : "false");
}

void json_null(struct json_writer *w)
{
	separate(w);
	strbuf_add_text(w->out, "null");
}

void json_raw(struct json_writer *w, const char *json)
{
	separate(w);
	strbuf_add_text(w->out, json);
}
