/* SPDX-License-Identifier: MIT */
/* The elements of small tensors as text: value/print.h locates tensors only, reading them needs a
 * document. */
#ifndef CONTAINER_PRINT_TENSOR_H
#define CONTAINER_PRINT_TENSOR_H

#include "container/document.h"
#include "value/print.h"

#define PRINT_TENSOR_ELEMENTS 16u /* larger ones are told by dtype and shape */

/*
 * A print_tensor_fn whose context is the const struct document: appends a number, or lists in each
 * other. False where the tensor is large or cannot be read.
 */
bool print_tensor(void *document, const struct tensor *t, struct strbuf *b);

/* Append the one number `v` of dtype `d` with as many digits as tell it from its neighbours. */
void print_element(struct strbuf *b, enum dtype d, double v);

#endif
