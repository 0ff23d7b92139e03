/* SPDX-License-Identifier: MIT */
/*
 * The lines of a file, one after the other, through a buffer that is only as long as the longest
 * line needs. A line that is longer than allowed is passed over.
 */
#ifndef BASE_LINES_H
#define BASE_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "base/source.h"

/* Bytes behind a line that may be read, whatever they are. */
#define LINES_PADDING 64u

enum line_state {
	LINE_WHOLE,
	LINE_PIECE,    /* of a line that is longer than asked for: more of it follows */
	LINE_LAST,     /* without a line end: the file ends here, perhaps too early */
	LINE_TOO_LONG, /* its text is not there */
	LINE_NONE,     /* the file is at its end */
	LINE_FAILED,
};

struct lines {
	const struct source *source;
	char *buffer;
	size_t capacity;   /* without the padding */
	size_t begin, end; /* bytes in hand */
	size_t searched;   /* up to here there is no line end */
	uint64_t at;       /* where buffer[0] is in the file */
	size_t max, block; /* longest line; bytes of one read */
	/* Not 0: what is longer than this comes in pieces that end where a carriage return is. */
	size_t piece;
	bool within; /* a line that came in pieces */
	/* The line at hand. */
	uint64_t number;  /* from 1 */
	uint64_t further; /* lines that were joined to it */
	uint64_t offset;  /* in the file */
	bool joinable;
	size_t first_n; /* of the text, before any line was joined to it */
	struct slice
		text; /* without its line end, behind which stands '\n' whatever the file has */
};

void lines_init(struct lines *l, const struct source *source, uint64_t max);
void lines_release(struct lines *l);

/* Go on to the next line. A carriage return before the line end is part of it. */
enum line_state lines_next(struct lines *l, struct error *e);

/* The bytes in hand behind the line at hand: lines, of which the last one may be incomplete. */
struct slice lines_rest(const struct lines *l);

/* Pass over the first `n` bytes of those, which are `lines` whole lines. */
void lines_pass(struct lines *l, size_t n, uint64_t lines);

/*
 * Let the line at hand go on with the next one, line end included; false where that would make it
 * longer than `most` bytes, or there is none, or it cannot be read: the line stays as it is then.
 */
bool lines_join(struct lines *l, size_t most);

/* Take back what was joined: the next line is the second one again. */
void lines_part(struct lines *l);

#endif
