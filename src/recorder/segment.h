/* SPDX-License-Identifier: MIT */
/*
 * The files of one recorder, one after another: blocks are written with pwrite at an offset that
 * only this process moves, so that a block is there whole, or is overwritten by the next try. What
 * could not be written is a gap; it is in the file before anything that comes after it.
 */
#ifndef RECORDER_SEGMENT_H
#define RECORDER_SEGMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/journal.h"
#include "recorder/block.h"
#include "recorder/json_text.h"

#define SEGMENT_UUID 37
#define SEGMENT_PATH 4096

/* What is not in the log. `calls` 0: nothing. */
struct segment_gap {
	int64_t first_step, last_step;
	uint64_t rows;
	uint32_t calls;
	int error;                         /* an errno; 0: the caller said so */
	char words[JOURNAL_GAP_WORDS + 1]; /* the first reason that was given in words */
};

struct segment {
	char *folder;    /* of this launch, owned; NULL: there is none to write to */
	char *open_text; /* OPEN's JSON object without its closing brace; owned */
	char uuid[SEGMENT_UUID];
	uint32_t dp;
	uint64_t key; /* what blocks are hashed with */
	int fd;       /* -1: there is no file, or a new one is wanted */
	unsigned number, failed_opens;
	int open_error;
	uint64_t offset;   /* where the next block goes */
	uint64_t sequence; /* of the next block */
	uint64_t before;   /* hash of the last block's head in this file */
	uint64_t bytes;    /* of all files */
	struct segment_gap gap;
	struct { /* where the gap's own block begins, while it is the file's last */
		bool stands;
		uint64_t offset, sequence, before;
	} told;
	struct block block;      /* being built */
	char path[SEGMENT_PATH]; /* the newest file; "" where none could be made */
};

/* A fresh uuid; false where there is no randomness. */
bool segment_init(struct segment *s, uint32_t dp);
void segment_release(struct segment *s);

/* A file to write to, in which all that was lost is told; 0 or an errno. */
int segment_ready(struct segment *s, uint64_t first_row);

/* Write s->block, which was begun and filled, or a JSON object, behind all else; 0 or an errno. The
 * segment is ready. */
int segment_put(struct segment *s, enum journal_type type, uint32_t rows);
int segment_put_text(struct segment *s, enum journal_type type, const struct json_text *t);

/* Add to what is not in the log: so many calls for steps first to last, with so many rows. `words`
 * may be NULL. */
void segment_lose(struct segment *s, int64_t first, int64_t last, uint32_t calls, uint64_t rows,
	int error, const char *words);

/* Tell in the file what was lost. A gap that is the file's last block grows where it stands, so
 * that a disk that is full for a day is one gap. 0 or an errno. */
int segment_tell(struct segment *s);

/* Make it last; 0 or an errno, after which the file is closed: the kernel may have dropped pages
 * and forgotten the error, so nothing since the last good sync counts as written. */
int segment_sync(struct segment *s);

/* Close the file; 0 or an errno: a quota on a network file system is reported here. */
int segment_close(struct segment *s);

#endif
