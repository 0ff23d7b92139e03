/* SPDX-License-Identifier: MIT */
/*
 * Which of the files at some paths are loss logs: by their beginnings, and where those are a job's
 * preamble, by what follows. Whatever asks of a folder asks here, so that all see the same logs.
 */
#ifndef CURVE_FIND_H
#define CURVE_FIND_H

#include "curve/curve.h"

struct curve_reader;

enum curve_found_kind {
	CURVE_FOUND_LOG,    /* a loss log */
	CURVE_FOUND_OUTPUT, /* steps and losses by words that are nobody's: a log only in a folder
			       without any other; none is left once all are found */
	CURVE_FOUND_OTHER,  /* what curve_options.other knows */
	CURVE_FOUND_LEFT,   /* could be meant as a log, and is not read; of a folder the first 20 */
};

struct curve_found {
	const char *path; /* to open, and as shown; in the list's arena */
	uint32_t operand; /* index of the path at which it was found */
	uint8_t kind;     /* enum curve_found_kind */
	bool named;       /* by the user, not found in a folder */
	bool doubtful;    /* named, and no line in it says that it is a log: reading it tells */
	bool unread;      /* left out since it may not be read, or is packed */
	bool packed;      /* left out since it is compressed, or coded in another way */
	const char *what; /* the format; of what is left out: why, one clause */
	/* For curve_read(). */
	const struct curve_reader *reader;
	bool sure;     /* it is one, whether there is anything in it or not */
	double begun;  /* see struct curve_reader; NAN: not said */
	size_t listed; /* its place in the order in which the files were found */
	uint64_t device, inode;
	struct slice bytes; /* in memory, where `in_memory` */
	bool in_memory;
};

struct curve_operand {
	const char *path;
	bool folder, again; /* an earlier one is the same file or folder */
	uint64_t device, inode;
	uint32_t logs, others, left; /* found there, without doubtful ones; of what is left
					out, all */
	size_t folders_unread;       /* that could not be read, or lie too deep */
};

struct curve_files {
	struct arena arena;
	ARRAY(struct curve_found) list; /* by operand, in natural order */
	ARRAY(struct curve_operand) operands;
	size_t looked; /* files at all the paths */
};

/*
 * Look at what is at the paths: files, and all files in folders. What may not be read is left out;
 * an error where a path is not there, or the system fails. One read of CURVE_HEAD bytes a file; of
 * what is called as output is and begins with a preamble, two passes over up to 64 MiB, and over
 * 2 GiB of a folder.
 */
int curve_find(struct curve_files *f, const char *const *paths, size_t n,
	const struct curve_options *o, struct error *e);

/* The same of a text in memory, as a file called `name`; both must outlive the list. */
int curve_find_memory(struct curve_files *f, const char *name, struct slice text,
	const struct curve_options *o, struct error *e);
void curve_files_release(struct curve_files *f);

/* Read the logs that were found at some of the paths, by their indices (NULL: at all). As
 * curve_open() does, which is both. */
int curve_read(struct curve_log *l, const struct curve_files *f, const uint32_t *operands, size_t n,
	const struct curve_options *o, struct error *e);

/* Where the reader stands in readers.def: files of one are read together. */
size_t curve_reader_row(const struct curve_reader *r);

/* The last part of a path. */
const char *curve_base_name(const char *path);

#endif
