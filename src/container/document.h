/* SPDX-License-Identifier: MIT */
/*
 * A decoded file: its container format, the inert graph, its tensors' places. containers.def lists
 * the formats; document_open() asks each how many bits of the file it recognises and lets the
 * surest read.
 */
#ifndef CONTAINER_DOCUMENT_H
#define CONTAINER_DOCUMENT_H

#include "base/arena.h"
#include "base/array.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/source.h"
#include "finding/finding.h"
#include "value/value.h"

struct document;

struct container {
	const char *name;    /* "torch-zip" */
	const char *summary; /* "PyTorch zip archive (torch.save since 1.6)" */
	/*
	 * How many bits of the head (up to 4 KiB) agree with this format; 0: it is not this format.
	 * Nothing else is read unless a signature matched.
	 */
	unsigned (*probe)(const struct source *s, struct slice head);
	/*
	 * Decode into d->root, storages and tensors. Defects of the file go to the sink (I102,
	 * I104, …) with place.file = d->name; when nothing usable came out, the error says why as
	 * well.
	 */
	int (*read)(struct document *d, struct findings *sink, struct error *e);
	/*
	 * Where the bytes of a storage begin that read() has left as STORAGE_NOT_LOCATED; NULL
	 * where it leaves none. Must not change the document. `sink` may be NULL.
	 */
	int (*locate)(const struct document *d, const struct storage *s, struct findings *sink,
		uint64_t *offset, struct error *e);
};

#define CONTAINER(id) extern const struct container container_##id;
#include "container/containers.def"
#undef CONTAINER

extern const struct container *const containers[]; /* ends with NULL */

struct document {
	struct arena arena;
	struct source source; /* open as long as the document */
	const char *name;     /* how the file is called in findings; borrowed */
	const struct container *container;
	const struct limits *limits;
	struct val root;
	ARRAY(struct storage *) storages;
	uint64_t tensors;              /* arrays found in the graph */
	ARRAY(struct klass *) classes; /* every class or function a pickle names, once each */
	int pickle_protocol;           /* -1 where there is no pickle */
	struct slice bytes;            /* the decoded pickle or JSON text, in the arena */
	struct slice writer; /* what the container says of its writer: "version 3", or empty */
	void *archive;       /* the container's own, for locate(); in the arena */
	/*
	 * The first failure of the system while parts were read, which is no defect of the file:
	 * status RP_OK where there was none. A caller may pass over an element that cannot be read,
	 * but must not call the whole complete. In the arena.
	 */
	struct error *trouble;
};

/*
 * Open and decode `path` relative to dirfd. The findings' place.file is `name`. On failure the
 * document is empty and `e` says why; findings may have been added all the same.
 */
int document_open(struct document *d, int dirfd, const char *path, const char *name,
	const struct limits *limits, struct findings *sink, struct error *e);

/* The same over bytes in memory (fuzzing, tests). */
int document_open_bytes(struct document *d, struct slice bytes, const char *name,
	const struct limits *limits, struct findings *sink, struct error *e);

/*
 * The whole file into d->bytes, in the arena, where a format is read at once: at most `max` bytes,
 * the limit called `limit`. `what` it is stands in the message: "a pickle".
 */
int document_load(
	struct document *d, const char *what, const char *limit, uint64_t max, struct error *e);

void document_close(struct document *d);

/*
 * Only say which container a file is, from its head; NULL: none, or it could not be read (`e` says
 * so then). One pread.
 */
const struct container *document_probe(const struct source *s, struct error *e);

/* A new storage that belongs to the document; NULL when memory ran out. */
struct storage *document_storage(struct document *d);

/*
 * Find where a storage's bytes begin, once, for whoever will read it: later reads are then one
 * pread each. What is wrong at that place goes to the sink (which may be NULL). Only the storage
 * changes, so several threads may do this for different storages of a document.
 */
int document_locate(
	const struct document *d, struct storage *s, struct findings *sink, struct error *e);

/*
 * Read `n` bytes at byte `at` of a storage, from the file or the graph. RP_E_UNSUPPORTED if
 * compressed, RP_E_NOT_FOUND if missing. A storage that is not located costs one read more.
 */
int document_read(const struct document *d, const struct storage *s, uint64_t at, void *buffer,
	size_t n, struct error *e);

/*
 * The i-th element (C order) of a tensor as a number; RP_E_UNSUPPORTED where it is none (complex,
 * bits) or does not fit, RP_E_NOT_FOUND where the tensor has no bytes (meta tensors).
 */
int tensor_read_double(
	const struct document *d, const struct tensor *t, uint64_t i, double *out, struct error *e);
int tensor_read_i64(const struct document *d, const struct tensor *t, uint64_t i, int64_t *out,
	struct error *e);

/*
 * Copy a tensor's bytes in C order, native byte order, if they are at most `max`; *n is the length.
 * Elements are as stored: `negative` and `conjugate` are the caller's to apply.
 */
int tensor_read_bytes(const struct document *d, const struct tensor *t, uint8_t *buffer, size_t max,
	size_t *n, struct error *e);

#endif
