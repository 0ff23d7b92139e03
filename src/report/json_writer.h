/* SPDX-License-Identifier: MIT */
/*
 * A streaming JSON writer over a strbuf: commas, escapes and indentation are its business.
 * Characters that disturb a terminal (text_disturbs) are always escaped, so that the output can be
 * looked at.
 */
#ifndef REPORT_JSON_WRITER_H
#define REPORT_JSON_WRITER_H

#include "base/strbuf.h"

#define JSON_WRITER_DEPTH 32

struct json_writer {
	struct strbuf *out;
	unsigned depth;
	bool indent;                   /* two spaces a level, one element a line */
	bool first[JSON_WRITER_DEPTH]; /* nothing written yet in this level */
	bool after_key;
};

void json_writer_init(struct json_writer *w, struct strbuf *out, bool indent);
void json_open_object(struct json_writer *w);
void json_close_object(struct json_writer *w);
void json_open_array(struct json_writer *w);
void json_close_array(struct json_writer *w);
void json_key(struct json_writer *w, const char *key);

/* Values. Invalid UTF-8 becomes U+FFFD; NaN and infinities become null (JSON has none). */
void json_slice(struct json_writer *w, struct slice text);
void json_text(struct json_writer *w, const char *text); /* NULL: null */
void json_i64(struct json_writer *w, int64_t v);
void json_u64(struct json_writer *w, uint64_t v);
void json_double(struct json_writer *w, double v);
void json_bool(struct json_writer *w, bool v);
void json_null(struct json_writer *w);

/* A value that is JSON already. */
void json_raw(struct json_writer *w, const char *json);

#endif
