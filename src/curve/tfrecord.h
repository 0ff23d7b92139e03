/* SPDX-License-Identifier: MIT */
/*
 * The records of a TFRecord file: length (u64), masked CRC-32C of the length, data, masked CRC-32C
 * of the data, all little-endian. Memory: one record, at least a block.
 */
#ifndef CURVE_TFRECORD_H
#define CURVE_TFRECORD_H

#include "base/slice.h"
#include "base/source.h"
#include "curve/crc32c.h"

#define TFRECORD_HEAD 12u
#define TFRECORD_TAIL 4u

enum tfrecord_state {
	TFRECORD_WHOLE,
	TFRECORD_DAMAGED,  /* the data's sum is wrong; the next record can be found */
	TFRECORD_TOO_LONG, /* it was passed over unread */
	TFRECORD_LOST,     /* `passed` bytes of no record were passed over */
	TFRECORD_TORN,     /* the file ends within a record, as one that is being written does */
	TFRECORD_END,
	TFRECORD_FAILED,
};

struct tfrecord {
	const struct source *source;
	uint8_t *buffer;
	size_t capacity, begin, end; /* bytes in hand */
	uint64_t at;                 /* where buffer[0] is in the file */
	uint64_t max;                /* longest record that is read */
	uint64_t budget;             /* bytes that searches may still sum */
	struct crc32c crc;
	/* The record at hand. */
	uint64_t offset; /* of its length in the file */
	struct slice data;
	uint64_t passed;
};

void tfrecord_init(struct tfrecord *t, const struct source *source, uint64_t max);
void tfrecord_release(struct tfrecord *t);

/*
 * Go on to the next record. Where a length is damaged, nothing says where the next record is: the
 * first place is taken at which a length and a whole record have right sums. That costs a sum of 8
 * bytes for each byte passed over, and at most four sums of the file for records that turn out to
 * be none: where more is wanted, the rest of the file is lost.
 */
enum tfrecord_state tfrecord_next(struct tfrecord *t, struct error *e);

/* Whether the bytes begin with a record's length and its sum. */
bool tfrecord_begins(const void *head, size_t n);

#endif
