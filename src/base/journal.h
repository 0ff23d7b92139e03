/* SPDX-License-Identifier: MIT */
/*
 * The journal's layout, shared by the recorder that writes it and the reader. A file is a prefix
 * and blocks, each 8-aligned, little-endian and self-checked:
 *
 *   prefix, 16 B   89 52 50 4A 0D 0A 1A 0A, u16 major, u16 minor, u32 0
 *   head, 48 B     0 u32 magic, 4 u8 type, 5 u8 flags, 6 u16 layout, 8 u64 sequence,
 *                  16 u32 payload bytes, 20 u32 rows, 24 u64 hash of the head before,
 *                  32 u64 XXH3-64(payload, K), 40 u64 XXH3-64(bytes 0 to 39, K)
 *   payload        then zeros up to the next multiple of 8
 *
 * K is the first 8 bytes of the attempt's uuid, 0 for OPEN. "Hash of the head before" is that
 * block's own bytes 40 to 47; 0 for the first block of a file.
 */
#ifndef BASE_JOURNAL_H
#define BASE_JOURNAL_H

#include <stdint.h>

#define JOURNAL_PREFIX "\x89RPJ\r\n\x1a\n"
#define JOURNAL_PREFIX_BYTES 16u
#define JOURNAL_MAJOR 1u
#define JOURNAL_MINOR 1u /* 1: words behind a gap's numbers */

#define JOURNAL_HEAD_BYTES 48u
#define JOURNAL_MAGIC 0x4b4a5052u /* "RPJK" */
#define JOURNAL_PAYLOAD_MAX (16u << 20)
#define JOURNAL_TEXT_MAX (64u << 10)
#define JOURNAL_SKIP_IF_UNKNOWN 1u

/* OPEN, EVENT and CLOSE are JSON objects of at most JOURNAL_TEXT_MAX bytes. */
enum journal_type {
	JOURNAL_OPEN = 1,
	JOURNAL_STEP = 2,
	JOURNAL_EVENT = 3,
	JOURNAL_GAP = 4,
	JOURNAL_CLOSE = 5,
};

/*
 * STEP: i64 step, u64 first row (of the attempt and rank), u64 sum[2], u64 chain, i32 epoch,
 * u16 micro-batches, u16 columns, then the columns. A step of more rows than a block holds is
 * several blocks. Keys are there wherever rows are. The sum is that of the block\'s rows, the chain
 * that of the call\'s rows up to the block\'s end (base/identity.h).
 */
#define JOURNAL_STEP_BYTES 48u
/* Rows of one block at the most: 30 B each stay far below the longest payload. */
#define JOURNAL_ROWS_MAX (1u << 18)

/* GAP: i64 first step, i64 last step, u64 rows (0: not known), u32 calls, i32 errno (0: none), then
 * why, in at most JOURNAL_GAP_WORDS bytes of text to the payload's end. */
#define JOURNAL_GAP_BYTES 32u
#define JOURNAL_GAP_WORDS 159u

/* A column: u8 name, u8 encoding, u8 width, u8 0, u32 bytes, then the data. */
#define JOURNAL_COLUMN_BYTES 8u

enum journal_column {
	JOURNAL_KEYS = 1,         /* ids or hashes, one a row */
	JOURNAL_SOURCES = 2,      /* index in OPEN's sources, one a row */
	JOURNAL_TOKENS = 3,       /* one a row */
	JOURNAL_LOSSES = 4,       /* float32 bits, one a row */
	JOURNAL_MICRO = 5,        /* rows of each micro-batch */
	JOURNAL_STEP_TOKENS = 16, /* one value each from here on */
	JOURNAL_STEP_LOSS = 17,   /* float64 bits, as the next two */
	JOURNAL_STEP_LR = 18,
	JOURNAL_STEP_GRAD_NORM = 19,
	JOURNAL_STEP_POSITION = 20,
	JOURNAL_STEP_SKIPPED = 21, /* 1: the update was not applied */
};

/* How a column's integers are stored. Width: bytes of one stored integer: 1, 2, 4 or 8. */
enum journal_encoding {
	JOURNAL_RAW = 0,      /* each */
	JOURNAL_CONSTANT = 1, /* one, for all */
	JOURNAL_STRIDE = 2,   /* the first and what each adds, 8 bytes both */
	JOURNAL_DELTAS = 3,   /* the first in 8 bytes, then zigzag differences of `width` bytes */
};

/* Where an attempt's files lie: <launch>/<uuid>-dp%05u.rpj, later segments with ".2", ".3", …
 * before the suffix. */
#define JOURNAL_SUFFIX ".rpj"

#endif
