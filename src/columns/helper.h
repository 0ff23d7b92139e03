/* SPDX-License-Identifier: MIT */
/*
 * The helper process that reads and writes HDF5 for us (src/h5), seen from our side. It may have
 * been taken over by the file that it reads: nothing that it says is believed before it is checked,
 * and one that dies, hangs or breaks the rules of columns/frame.h is an error, after which it is
 * not asked again.
 */
#ifndef COLUMNS_HELPER_H
#define COLUMNS_HELPER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cursor.h"
#include "base/error.h"
#include "base/limits.h"
#include "columns/frame.h"

struct helper {
	pid_t pid;        /* 0: not running */
	int socket;       /* -1: none */
	uint32_t number;  /* of the last request */
	uint64_t seconds; /* that an answer may take */
	uint8_t *body;    /* FRAME_BODY_MAX bytes: of requests, then of answers */
	size_t n;         /* of a request in the making */
	bool overfull;    /* the request did not fit */
};

/*
 * Start it over an open file: to read it, or, with `file_bytes`, to make one of at most so many
 * bytes. Of the limits, memory and helper_seconds bound it. RP_E_NOT_FOUND where it is not
 * installed.
 */
int helper_start(struct helper *h, int file, uint64_t file_bytes, const struct limits *limits,
	struct error *e);

/* End it. What was not started is left alone. */
void helper_stop(struct helper *h);

/* Put together the body of the next request. */
void helper_put_u32(struct helper *h, uint32_t v);
void helper_put_u64(struct helper *h, uint64_t v);
void helper_put_bytes(struct helper *h, const void *bytes, size_t n);

/*
 * Send it as a request of `kind` and wait for the answer, whose kind is returned and whose body is
 * in
 * `*answer` until the next call. FRAME_FAILED is an error, and so is everything but `expected` and
 * FRAME_ABSENT; 0 is returned then.
 */
enum frame_kind helper_ask(struct helper *h, enum frame_kind kind, enum frame_kind expected,
	struct cursor *answer, struct error *e);

#endif
