/* SPDX-License-Identifier: MIT */
#include "base/strbuf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void strbuf_init(struct strbuf *b, size_t max)
{
	*b = (struct strbuf){.max = max};
}

void strbuf_over(struct strbuf *b, char *memory, size_t size)
{
	memory[0] = '\0';
	*b = (struct strbuf){.p = memory, .capacity = size, .max = size, .borrowed = true};
}

void strbuf_release(struct strbuf *b)
{
	if (!b->borrowed)
		free(b->p);
	strbuf_init(b, b->max);
}

void strbuf_clear(struct strbuf *b)
{
	b->n = 0;
	b->failed = false;
	if (b->p)
		b->p[0] = '\0';
}

void strbuf_truncate(struct strbuf *b, size_t n)
{
	if (n >= b->n)
		return;
	b->n = n;
	b->p[n] = '\0';
}

/* Room for n more bytes and the final NUL. */
static bool reserve(struct strbuf *b, size_t n)
{
	if (b->failed)
		return false;
	if (b->p && n < b->capacity - b->n)
		return true;
	if (n >= b->max - b->n) {
		b->failed = true;
		return false;
	}
	size_t need = b->n + n + 1;
	size_t capacity = b->capacity < 64 ? 64 : b->capacity;
	if (capacity > b->max)
		capacity = b->max;
	while (capacity < need)
		capacity = capacity > b->max / 2 ? b->max : capacity * 2;
	char *grown = realloc(b->p, capacity);
	if (!grown) {
		b->failed = b->no_memory = true;
		return false;
	}
	b->p = grown;
	b->capacity = capacity;
	return true;
}

void strbuf_add(struct strbuf *b, const void *p, size_t n)
{
	if (n == 0 || !reserve(b, n))
		return;
	memcpy(b->p + b->n, p, n);
	b->n += n;
	b->p[b->n] = '\0';
}

void strbuf_add_slice(struct strbuf *b, struct slice text)
{
	strbuf_add(b, text.p, text.n);
}

void strbuf_add_text(struct strbuf *b, const char *text)
{
	strbuf_add(b, text, strlen(text));
}

void strbuf_add_char(struct strbuf *b, char c)
{
	strbuf_add(b, &c, 1);
}

void strbuf_pad(struct strbuf *b, char c, size_t n)
{
	if (n == 0 || !reserve(b, n))
		return;
	memset(b->p + b->n, c, n);
	b->n += n;
	b->p[b->n] = '\0';
}

void strbuf_printf(struct strbuf *b, const char *format, ...)
{
	va_list args, again;

	va_start(args, format);
	va_copy(again, args);
	int n = vsnprintf(NULL, 0, format, args);
	va_end(args);
	if (n < 0)
		b->failed = true;
	if (n > 0 && reserve(b, (size_t)n)) {
		vsnprintf(b->p + b->n, (size_t)n + 1, format, again);
		b->n += (size_t)n;
	}
	va_end(again);
}

const char *strbuf_text(const struct strbuf *b)
{
	return b->p ? b->p : "";
}
