/* SPDX-License-Identifier: MIT */
/* Opening the file, or each file, that a path names: what ls and get have in common. */
#ifndef CLI_INSIDE_H
#define CLI_INSIDE_H

#include "base/array.h"
#include "cli/answer.h"
#include "container/document.h"
#include "container/print_tensor.h"
#include "state/listing.h"
#include "value/path.h"

enum inside_state {
	INSIDE_READ,
	INSIDE_FOREIGN, /* of a format that is not read: no harm where it was not named */
	INSIDE_UNREADABLE,
};

struct inside_file {
	const struct listed *listed;
	const char *path;  /* as it can be opened: what was given, and the way from there */
	const char *shown; /* shorter: from there on */
	enum inside_state state;
	const struct container *container; /* where READ */
	struct document document;          /* open only within the visit, and where READ */
	struct error error;                /* where not READ */
};

struct inside {
	const struct options *options;
	struct listing listing;
	struct arena arena; /* lives until inside_close(): for what visitors keep */
	ARRAY(struct inside_file) files;
	size_t read, unreadable; /* folders that could not be read count as well */
	bool terminal;
	bool failed;
};

/* List what lies at the first operand. */
int inside_open(struct inside *in, const struct options *o, struct error *e);
void inside_close(struct inside *in);

/*
 * Open one file after the other and visit it; what could not be read has been said on stderr.
 * Visits foreign files too. False ends it. Returns an error where the one file that was named is
 * not readable, and where there is nothing to read.
 */
typedef bool inside_visit_fn(void *context, struct inside_file *f);
int inside_each(struct inside *in, inside_visit_fn *visit, void *context, struct error *e);

/* Parse the operand PATH; a complaint points at the column. False after having answered it:
 * `*status`. */
bool inside_parse(struct inside *in, const char *text, struct path *path, int *status);

/*
 * The exit status of what was found. Where nothing matches the path `missed` (else NULL), which the
 * user typed as `text`, it is said with what would: the same name elsewhere, or a name like it in
 * the same place; and so is that limits cut the search short.
 */
int inside_status(struct inside *in, const struct path *missed, const char *text, bool truncated);

/* A copy of a buffer that lives as long as `in`; "" when memory ran out, which is kept in
 * in->failed. */
const char *inside_keep(struct inside *in, const struct strbuf *b);

/* "inputs" of a JSON document: the files that were or should have been read. */
void inside_write_inputs(const struct inside *in, struct json_writer *w);

/* The keys "dtype" and "shape" of a value, null where it is no tensor. */
void inside_write_tensor(struct json_writer *w, struct val v);

#endif
