/* SPDX-License-Identifier: MIT */
#include "container/print_tensor.h"

#include <math.h>

#include "base/text.h"

/* Significant decimal digits that always tell two numbers of a dtype apart; 0: as many as it takes.
 */
static int digits_of(enum dtype d)
{
	if (dtype_rows[d].kind != DTYPE_KIND_FLOAT)
		return 0;
	switch (dtype_size(d)) {
	case 1:
		return 3;
	case 2:
		return 5;
	case 4:
		return 9;
	default:
		return 0;
	}
}

void print_element(struct strbuf *b, enum dtype d, double v)
{
	size_t start = b->n;
	double back;
	int most = digits_of(d);

	if (dtype_rows[d].kind == DTYPE_KIND_BOOL) {
		strbuf_add_text(b, v != 0 ? "True" : "False");
		return;
	}
	/* The fewest digits that read back as the same float: 0.1, not 0.10000000149011612. */
	for (int digits = most ? 1 : 17; digits <= most; digits++) {
		text_add_rounded(b, v, digits);
		struct slice text = {strbuf_text(b) + start, b->n - start};
		if (!isfinite(v) || digits == most ||
			(text_parse_double(text, &back) && (float)back == (float)v))
			return;
		strbuf_truncate(b, start);
	}
	text_add_double(b, v);
}

static bool add_element(
	const struct document *d, const struct tensor *t, uint64_t i, struct strbuf *b)
{
	int64_t whole;
	double v;
	enum dtype_kind kind = dtype_rows[t->dtype].kind;

	if (kind == DTYPE_KIND_INT || kind == DTYPE_KIND_UINT) {
		if (tensor_read_i64(d, t, i, &whole, NULL) == RP_OK) {
			strbuf_printf(b, "%lld", (long long)whole);
			return true;
		}
	}
	if (tensor_read_double(d, t, i, &v, NULL) < 0)
		return false;
	print_element(b, (enum dtype)t->dtype, v);
	return true;
}

bool print_tensor(void *document, const struct tensor *t, struct strbuf *b)
{
	size_t start = b->n;

	/* A dimension of one still has its brackets, so many of them are no small tensor. */
	if (t->numel == 0 || t->numel > PRINT_TENSOR_ELEMENTS || t->ndim > PRINT_TENSOR_ELEMENTS)
		return false;
	for (uint64_t i = 0; i < t->numel; i++) {
		uint64_t block = t->numel;
		if (i > 0)
			strbuf_add_text(b, ", ");
		/* Brackets open and close where an index starts and ends a block of elements. */
		for (unsigned k = 0; k < t->ndim; k++) {
			if (i % block == 0)
				strbuf_add_char(b, '[');
			block /= (uint64_t)t->shape[k];
		}
		if (!add_element(document, t, i, b)) {
			strbuf_truncate(b, start);
			return false;
		}
		block = t->numel;
		for (unsigned k = 0; k < t->ndim; k++) {
			if ((i + 1) % block == 0)
				strbuf_add_char(b, ']');
			block /= (uint64_t)t->shape[k];
		}
	}
	return true;
}
