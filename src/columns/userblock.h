/* SPDX-License-Identifier: MIT */
/*
 * The text that files of ours begin with: 512 bytes that say what the file is, and a digest of the
 * rest, which is HDF5. It is checked before HDF5 sees a byte.
 *
 *    reprise snapshot\n
 *    version 1.0\n
 *    bytes 123456\n           of the rest
 *    sha256 <64 digits>\n     of the rest
 *    HDF5 from byte 512: h5dump, h5ls and h5py read it as it is\n
 *
 * Line feeds fill it up.
 */
#ifndef COLUMNS_USERBLOCK_H
#define COLUMNS_USERBLOCK_H

#include "base/error.h"
#include "base/sha256.h"
#include "base/slice.h"
#include "base/source.h"
#include "columns/frame.h"

#define USERBLOCK_KIND_MAX 16u

struct userblock {
	char kind[USERBLOCK_KIND_MAX]; /* "snapshot" */
	unsigned major, minor;
	uint64_t bytes; /* of what follows it */
	uint8_t digest[SHA256_BYTES];
};

/* Whether a file's first bytes, as many as there are, begin one of these. */
bool userblock_begins(struct slice head);

void userblock_print(const struct userblock *u, char out[USERBLOCK_BYTES]);

/* RP_E_FORMAT, with the offset, for what userblock_print() does not write. */
int userblock_parse(struct userblock *u, const char block[USERBLOCK_BYTES], struct error *e);

/* Digest what follows the block in an open file: one read of all of it. */
int userblock_digest(const struct source *s, uint8_t digest[SHA256_BYTES], struct error *e);

/* Read the block of an open file and hold the rest against it: RP_E_FORMAT where it is cut or
 * altered, RP_E_UNSUPPORTED where it is of another kind or a newer version than `major`. */
int userblock_check(struct userblock *u, const struct source *s, const char *kind, unsigned major,
	struct error *e);

#endif
