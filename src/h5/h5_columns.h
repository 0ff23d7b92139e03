/* SPDX-License-Identifier: MIT */
/*
 * Columns and attributes of one HDF5 file, as requests of columns/frame.h ask for them. What the
 * file holds beside plain numbers (links out of it, virtual or external data, filters but shuffle
 * and deflate) is refused.
 */
#ifndef H5_H5_COLUMNS_H
#define H5_H5_COLUMNS_H

#include <hdf5.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/cursor.h"
#include "base/slice.h"
#include "columns/frame.h"

struct h5_session {
	hid_t access, file, column; /* -1: none */
	bool writing;
	uint32_t type, width; /* of the column */
	uint64_t rows, chunk_rows;
	uint8_t *buffer; /* FRAME_BODY_MAX bytes: the answer's body */
	size_t n;        /* of it */
	char fail[200];  /* one sentence, where the answer is FRAME_FAILED */
};

/* Act on a request; the answer's kind is returned, its body is in the session. */
enum frame_kind h5_answer(struct h5_session *s, uint32_t kind, struct cursor *body);

#endif
