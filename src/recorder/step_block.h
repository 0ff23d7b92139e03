/* SPDX-License-Identifier: MIT */
/* A step as the payload of a block: its columns and the digests of its samples. */
#ifndef RECORDER_STEP_BLOCK_H
#define RECORDER_STEP_BLOCK_H

#include <reprise_record.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "recorder/block.h"

/* What steps are written against, and what has been written. */
struct samples {
	uint64_t *spaces; /* one per source, and one for none, at the end; owned */
	size_t source_count;
	uint32_t dp;
	uint64_t rows;   /* acknowledged: the next row's number */
	uint64_t sum[2]; /* of them */
	uint64_t chain;  /* of the newest call, as far as it is written */
	uint64_t *wide;  /* one column widened to 64 bits; owned */
	size_t capacity;
};

struct step_digests {
	uint64_t sum[2], chain;
};

/* The numbers of the options' spaces; false where memory is out. */
bool samples_init(struct samples *of, const struct rp_record_options *options);
void samples_release(struct samples *of);

/* Why a step makes no sense, or NULL. */
const char *step_block_fault(const struct samples *of, const struct rp_record_step *step);

/* Begin a block and fill it with rows [from, from + n) of a sound step, at most JOURNAL_ROWS_MAX of
 * them, in order from 0; 0 or an errno. */
int step_block_fill(const struct rp_record_step *step, size_t from, size_t n, struct samples *of,
	struct block *block, struct step_digests *digests);

/* These rows were written. */
void step_block_written(struct samples *of, size_t n, const struct step_digests *digests);

#endif
