/* SPDX-License-Identifier: MIT */
/*
 * Our own files of columns: a text block (columns/userblock.h), then HDF5, which the helper reads
 * and writes. A column is an array of plain numbers of one type, `width` of them a row; several
 * columns with as many rows are a table. What columns a file has is the affair of its kind. The
 * same columns make the same bytes.
 */
#ifndef COLUMNS_COLFILE_H
#define COLUMNS_COLFILE_H

#include "base/replace.h"
#include "base/source.h"
#include "columns/helper.h"
#include "columns/userblock.h"

struct libdeflate_compressor;

/* What a file is: its first line, and the version of its layout. A newer minor adds columns. */
struct colfile_kind {
	const char *name;
	unsigned major, minor;
};

/* A file in the making. The first error stays in it, later calls do nothing, and colfile_finish()
 * tells. */
struct colfile_writer {
	struct replacement file;
	struct helper helper;
	const struct colfile_kind *kind;
	struct error error;
	enum column_type type; /* of the column that is being written */
	uint32_t width;
	uint64_t rows, done, chunk_rows, row_bytes; /* done: rows handed to the helper */
	uint8_t *chunk, *shuffled, *deflated;       /* FRAME_ROWS_MAX bytes each */
	size_t filled;                              /* rows in `chunk` */
	unsigned passes, misses; /* chunks not to be deflated: now, and after the next failure */
	struct libdeflate_compressor *compressor;
};

/*
 * Begin a file that will take the name `path`, of at most `most` bytes. Nothing is at that name, or
 * the old file still is, until colfile_finish(). Both strings must outlive the writer.
 */
void colfile_create(
	struct colfile_writer *w, const char *path, const struct colfile_kind *kind, uint64_t most);

/* Attributes of the whole file. An empty text is left out. */
void colfile_put_text(struct colfile_writer *w, const char *name, struct slice text);
void colfile_put_numbers(struct colfile_writer *w, const char *name, enum column_type type,
	const void *values, uint32_t count);

/* Begin a column of so many rows, then give it its rows, in order, packed, as many a call as one
 * likes. */
void colfile_put_column(struct colfile_writer *w, const char *path, enum column_type type,
	uint32_t width, uint64_t rows);
void colfile_put_rows(struct colfile_writer *w, const void *rows, uint64_t count);

/* Bring the file to the disk and give it its name, or give it up after an error. The writer is done
 * with. */
int colfile_finish(struct colfile_writer *w, struct error *e);

/* A file that is read. */
struct colfile_reader {
	struct source source;
	struct userblock block;
	struct helper helper;
	enum column_type type; /* of the column found last */
	uint32_t width;
	uint64_t rows;
};

/*
 * Open a file of this kind: its first block and the digest of all the rest are checked, then the
 * helper is started over it, within the limits. RP_E_FORMAT for what is damaged or no
 * such file. `path` must outlive it. Nothing is open after an error.
 */
int colfile_open(struct colfile_reader *r, int dirfd, const char *path,
	const struct colfile_kind *kind, const struct limits *limits, struct error *e);
void colfile_close(struct colfile_reader *r);

/* An attribute: false in *found where there is none. A text is cut at its first NUL. */
int colfile_get_text(struct colfile_reader *r, const char *name, char *out, size_t size,
	bool *found, struct error *e);
int colfile_get_numbers(struct colfile_reader *r, const char *name, enum column_type type,
	void *out, uint32_t count, bool *found, struct error *e);

/* Find a column and its rows, a number that the file made up: bound it before use. */
int colfile_find(struct colfile_reader *r, const char *path, enum column_type type, uint32_t width,
	uint64_t *rows, bool *found, struct error *e);

/* Rows of the column found last, packed, into `out`. */
int colfile_read(
	struct colfile_reader *r, uint64_t first, uint64_t count, void *out, struct error *e);

#endif
