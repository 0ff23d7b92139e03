/* SPDX-License-Identifier: MIT */
/*
 * Values as text for people: Python's words (None, True, 1.0), since that is where they come from.
 * The graph may be endless when walked, so everything is printed within a budget, and what does not
 * fit is an ellipsis.
 */
#ifndef VALUE_PRINT_H
#define VALUE_PRINT_H

#include <stdbool.h>

#include "base/strbuf.h"
#include "value/value.h"

/* Append the elements of a tensor, or nothing and return false to have its dtype and shape shown.
 */
typedef bool print_tensor_fn(void *context, const struct tensor *t, struct strbuf *b);

struct print_style {
	size_t bytes;            /* stop after about so many */
	size_t text_bytes;       /* shown of one text */
	unsigned depth;          /* of containers in each other */
	print_tensor_fn *tensor; /* or NULL */
	void *context;
};

/* For one cell of a table, and for a value alone on a page. Both without a tensor function. */
extern const struct print_style print_style_short, print_style_long;

/* Append a value on one line. False when not all of it fitted the style. */
bool print_line(struct strbuf *b, struct val v, const struct print_style *style);

/* Append a value over several lines, as many as it takes, without a line end at the end. */
bool print_page(struct strbuf *b, struct val v, const struct print_style *style);

/* "dict of 6", "float32[768, 3072]", "int", "argparse.Namespace of 148": what a value is. */
void print_kind(struct strbuf *b, struct val v);

/* "float32[768, 3072]" */
void print_shape(struct strbuf *b, const struct tensor *t);

#endif
