/* SPDX-License-Identifier: MIT */
/*
 * A JSON object as text, for the blocks that are one: at most as long as such a block may be, and
 * always well-formed whatever bytes the caller's texts hold. Members that say nothing are left out.
 */
#ifndef RECORDER_JSON_TEXT_H
#define RECORDER_JSON_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json_text {
	char *p; /* freed by the caller */
	size_t n, capacity;
	bool failed; /* too long, or no memory */
};

/* Bytes as they are: braces and the like. */
void json_text_raw(struct json_text *t, const char *p, size_t n);

/* "name": with the comma before it where one is due. */
void json_text_name(struct json_text *t, const char *name);

void json_text_string(
	struct json_text *t, const char *name, const char *value); /* not NULL or "" */
void json_text_int(struct json_text *t, const char *name, int64_t value);
void json_text_count(struct json_text *t, const char *name, uint64_t value); /* not 0 */
void json_text_real(
	struct json_text *t, const char *name, double value); /* not 0, NAN or infinite */

/* "time_ns": the time of day, in nanoseconds since 1970. */
void json_text_now(struct json_text *t);

/* 128 bits as 32 hexadecimal digits, the high half first. */
void json_text_digest(struct json_text *t, const char *name, const uint64_t sum[2]);

#endif
