/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "recorder/json_text.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/journal.h"

void json_text_raw(struct json_text *t, const char *p, size_t n)
{
	if (t->failed || n > JOURNAL_TEXT_MAX - t->n) {
		t->failed = true;
		return;
	}
	if (t->n + n + 1 > t->capacity) {
		size_t capacity = 2 * (t->n + n) + 256;
		char *grown = realloc(t->p, capacity);
		if (!grown) {
			t->failed = true;
			return;
		}
		t->p = grown;
		t->capacity = capacity;
	}
	memcpy(t->p + t->n, p, n);
	t->n += n;
	t->p[t->n] = '\0';
}

__attribute__((format(printf, 2, 3))) static void add_printf(
	struct json_text *t, const char *format, ...)
{
	char line[256];
	va_list args;
	va_start(args, format);
	int n = vsnprintf(line, sizeof line, format, args);
	va_end(args);
	json_text_raw(t, line, n < 0 ? 0 : (size_t)n < sizeof line ? (size_t)n : sizeof line - 1);
}

/* Bytes of the UTF-8 character at p, or 0 where there is none: overlong forms and surrogates are
 * none. */
static size_t utf8_length(const unsigned char *p)
{
	if (p[0] < 0x80)
		return 1;
	size_t n = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
	if (p[0] < 0xc2 || p[0] > 0xf4)
		return 0;
	for (size_t i = 1; i < n; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	unsigned second = p[1];
	if ((p[0] == 0xe0 && second < 0xa0) || (p[0] == 0xed && second > 0x9f) ||
		(p[0] == 0xf0 && second < 0x90) || (p[0] == 0xf4 && second > 0x8f))
		return 0;
	return n;
}

/* A JSON string; bytes that are no UTF-8 become U+FFFD, so that the object can always be read. */
static void add_string(struct json_text *t, const char *s)
{
	json_text_raw(t, "\"", 1);
	for (const unsigned char *p = (const unsigned char *)s; *p;) {
		size_t n = utf8_length(p);
		if (n == 0) {
			json_text_raw(t, "\\ufffd", 6);
			n = 1;
		} else if (*p < 0x20 || *p == '"' || *p == '\\') {
			add_printf(t, "\\u%04x", *p);
		} else {
			json_text_raw(t, (const char *)p, n);
		}
		p += n;
	}
	json_text_raw(t, "\"", 1);
}

void json_text_name(struct json_text *t, const char *name)
{
	add_printf(t, "%s\"%s\":", t->n > 1 && t->p[t->n - 1] != '{' ? "," : "", name);
}

void json_text_string(struct json_text *t, const char *name, const char *value)
{
	if (!value || !*value)
		return;
	json_text_name(t, name);
	add_string(t, value);
}

void json_text_int(struct json_text *t, const char *name, int64_t value)
{
	json_text_name(t, name);
	add_printf(t, "%lld", (long long)value);
}

void json_text_count(struct json_text *t, const char *name, uint64_t value)
{
	if (value)
		json_text_int(t, name, value > INT64_MAX ? INT64_MAX : (int64_t)value);
}

void json_text_now(struct json_text *t)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	json_text_int(t, "time_ns", (int64_t)now.tv_sec * 1000000000 + now.tv_nsec);
}

/*
 * A number as 17 digits and an exponent, put together by hand: printf would follow the locale of
 * the process, which is not ours to know.
 */
void json_text_real(struct json_text *t, const char *name, double value)
{
	if (!isfinite(value) || value == 0)
		return;
	char digits[40];
	snprintf(digits, sizeof digits, "%.16e", value);
	for (char *p = digits; *p; p++)
		if (!(*p >= '0' && *p <= '9') && *p != '-' && *p != '+' && *p != 'e')
			*p = '.';
	json_text_name(t, name);
	add_printf(t, "%s", digits);
}

void json_text_digest(struct json_text *t, const char *name, const uint64_t sum[2])
{
	json_text_name(t, name);
	add_printf(t, "\"%016llx%016llx\"", (unsigned long long)sum[1], (unsigned long long)sum[0]);
}
