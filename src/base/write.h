/* SPDX-License-Identifier: MIT */
/* Where a long text goes while it is made, in pieces of some 64 KiB: a file, a pipe, memory. */
#ifndef BASE_WRITE_H
#define BASE_WRITE_H

#include "base/error.h"
#include "base/slice.h"

/* Take the next piece. An error ends the making of the text. */
typedef int text_write_fn(void *context, struct slice text, struct error *e);

#endif
