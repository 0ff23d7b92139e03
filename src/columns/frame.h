/* SPDX-License-Identifier: MIT */
/*
 * What goes over the socket between us and the helper that reads and writes HDF5. One request, one
 * answer, each a frame: a head of 16 bytes and a body, little-endian.
 *
 *    0 u32 FRAME_MAGIC   4 u32 kind   8 u32 bytes of the body   12 u32 number of the request
 *
 * Neither side trusts the other: a frame that is longer than FRAME_BODY_MAX, of an unknown kind,
 * out of turn or not as long as what was asked for ends the conversation. Texts stand at a body's
 * end, without a NUL.
 *
 *    request        body                                                        answer
 *    OPEN           u64 size of the file                                        DONE
 *    GET_ATTRIBUTE  u32 type, u32 count (of TEXT: the most), name               DATA, ABSENT
 *    FIND           u32 type, u32 width, path                                   FOUND: u64 rows;
 * ABSENT ROWS           u64 first, u32 count, of the column found last              DATA CREATE -
 * DONE PUT_ATTRIBUTE  u32 type, u32 count, u32 bytes of the name, name, values    DONE PUT_COLUMN
 * u32 type, u32 width, u64 rows, u64 rows of a chunk (0: the column is stored in one piece), path
 * DONE PUT_ROWS       u64 first, u32 count, u32 filters left out, bytes: rows of a column in one
 *                   piece, or a whole chunk, shuffled and deflated unless left out
 *                                                                               DONE
 *    FINISH         -                                                           DONE
 *
 * FAILED, with one sentence, may be the answer to each; the helper then ends.
 */
#ifndef COLUMNS_FRAME_H
#define COLUMNS_FRAME_H

#include <stddef.h>
#include <stdint.h>

#define FRAME_MAGIC 0x35485052u /* "RPH5" */
#define FRAME_HEAD 16u
#define FRAME_ROWS_MAX ((size_t)1 << 20) /* bytes of rows in one frame */
#define FRAME_BODY_MAX (FRAME_ROWS_MAX + 4096)

/* The helper's open descriptors; nothing else is open in it but the standard streams. */
#define HELPER_SOCKET 3
#define HELPER_FILE 4

/* "reprise-h5 MEMORY CPU-SECONDS FILE-BYTES": what it may use; no byte written means reading. */
#define HELPER_ARGUMENTS 4

/* Of PUT_ROWS: the filters of every chunked column, as bits of "left out". */
#define FILTER_SHUFFLE 1u
#define FILTER_DEFLATE 2u

/* The text block before the HDF5 part of a file: see columns/userblock.h. */
#define USERBLOCK_BYTES 512u

enum frame_kind {
	FRAME_OPEN = 1,
	FRAME_GET_ATTRIBUTE,
	FRAME_FIND,
	FRAME_ROWS,
	FRAME_CREATE,
	FRAME_PUT_ATTRIBUTE,
	FRAME_PUT_COLUMN,
	FRAME_PUT_ROWS,
	FRAME_FINISH,
	FRAME_DONE = 64,
	FRAME_FOUND,
	FRAME_DATA,
	FRAME_ABSENT,
	FRAME_FAILED,
};

enum column_type {
#define COLUMN_TYPE(id, name, bytes) COLUMN_##id,
#include "columns/column_types.def"
#undef COLUMN_TYPE
	COLUMN_TYPE_COUNT
};

/* Bytes of one value; 0 for what is no type. */
static inline uint32_t column_type_size(uint32_t type)
{
	static const uint8_t sizes[COLUMN_TYPE_COUNT] = {
#define COLUMN_TYPE(id, name, bytes) bytes,
#include "columns/column_types.def"
#undef COLUMN_TYPE
	};
	return type < COLUMN_TYPE_COUNT ? sizes[type] : 0;
}

/* "u32"; NULL for what is no type. */
static inline const char *column_type_name(uint32_t type)
{
	static const char *const names[COLUMN_TYPE_COUNT] = {
#define COLUMN_TYPE(id, name, bytes) name,
#include "columns/column_types.def"
#undef COLUMN_TYPE
	};
	return type < COLUMN_TYPE_COUNT ? names[type] : NULL;
}

#define COLUMN_WIDTH_MAX 4096u
#define COLUMN_PATH_MAX 200u

#endif
