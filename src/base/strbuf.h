/* SPDX-License-Identifier: MIT */
/*
 * A growing text buffer with a cap from birth. It is sticky: once memory or the cap runs out,
 * `failed` stays set and appends do nothing, so that callers check once at the end.
 */
#ifndef BASE_STRBUF_H
#define BASE_STRBUF_H

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"

struct strbuf {
	char *p; /* NUL-terminated whenever not NULL */
	size_t n, capacity, max;
	bool failed;
	bool no_memory; /* it failed for that, not for the cap; stays set when it is cleared */
	bool borrowed;  /* p is the caller's */
};

void strbuf_init(struct strbuf *b, size_t max);

/* The same in `size` bytes of the caller's, with no other memory: nothing to release, and no_memory
 * stays unset. */
void strbuf_over(struct strbuf *b, char *memory, size_t size);
void strbuf_release(struct strbuf *b);
void strbuf_clear(struct strbuf *b);

/* Cut the text back to its first `n` bytes. */
void strbuf_truncate(struct strbuf *b, size_t n);
void strbuf_add(struct strbuf *b, const void *p, size_t n);
void strbuf_add_slice(struct strbuf *b, struct slice text);
void strbuf_add_text(struct strbuf *b, const char *text);
void strbuf_add_char(struct strbuf *b, char c);
void strbuf_pad(struct strbuf *b, char c, size_t n);
void strbuf_printf(struct strbuf *b, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The text so far, "" when empty; valid until the next append. */
const char *strbuf_text(const struct strbuf *b);

static inline struct slice strbuf_slice(const struct strbuf *b)
{
	return (struct slice){strbuf_text(b), b->n};
}

#endif
