/* SPDX-License-Identifier: MIT */
/*
 * What a line covers: how many different samples each epoch consumed, and how its repeats lie:
 * inside one step of one rank, between ranks, inside an attempt, over a seam. One pass over the
 * samples where the table of last places fits into the memory budget, else as many passes over
 * ranges of keys as it takes; the counts are the same either way, and for any number of threads.
 *
 * Memory: 4 bytes an id for ids that lie close together, 16 bytes a sample of a pass for all
 * others.
 */
#ifndef LEDGER_TALLY_H
#define LEDGER_TALLY_H

#include "ledger/lineage.h"
#include "ledger/places.h"

/* How the epochs of a line are known. */
enum epochs_how {
	EPOCHS_NONE,    /* not: the line is one */
	EPOCHS_LOGGED,  /* the steps say */
	EPOCHS_SIZED,   /* by the size of the data set */
	EPOCHS_LEARNED, /* the samples come round again after so many */
};

struct line_epoch {
	uint64_t at, rows; /* samples of the line */
	int32_t label;     /* as logged, or -1 */
	bool ended;        /* another one follows on the line */
	uint32_t seams;    /* of the line that lie inside it, not at its start */
	bool gaps;         /* some of its steps or lines are not in the log */
	uint64_t tail;     /* where on the line its last step begins */

	uint64_t distinct; /* different samples */
	uint64_t fresh;    /* of those, never consumed in an earlier epoch of the line */
	uint64_t again;    /* samples beyond their repeat factor in this epoch */
	uint64_t tail_across, tail_own; /* of those, in its last step: padding, as a rule */
};

/*
 * A part of the line: what one attempt consumed. Repeats are counted within an epoch, against the
 * latest occurrence, beyond the declared repeat factor, and without the last step of an epoch.
 */
struct part_tally {
	uint64_t across;     /* different samples that the epoch had consumed before this attempt */
	uint64_t in_step;    /* repeats inside one step of one rank and worker */
	uint64_t in_rank;    /* inside one rank and worker, of another step */
	uint64_t in_workers; /* of another loader worker of the rank */
	uint64_t in_ranks;   /* of another rank of the same attempt */
	uint64_t tail_ranks; /* the same in last steps of epochs, not counted above */
};

/* A repeat whose key is an anchor: its place on the line, and where it was consumed before. */
struct repeat {
	uint64_t at, before;
};

struct tally {
	const struct lineage *lineage;
	uint8_t how; /* enum epochs_how */
	ARRAY(struct line_epoch) epochs;
	ARRAY(struct part_tally) parts; /* as lineage.line */
	ARRAY(struct repeat) repeats;   /* by place: all of them in small logs, else anchors */
	uint64_t distinct;              /* different samples on the line */
	uint64_t passes;                /* over the samples */
	uint64_t keys_per_anchor;       /* 1: all repeats are in `repeats` */
	uint64_t size;    /* different samples in an epoch, as said or learned; 0: not known */
	bool size_said;   /* by the log's header */
	bool replacement; /* the log declares sampling with replacement, or a stream */
	uint32_t repeat;  /* the largest declared repeat factor; 1 */
	/* Most samples that are consumed twice at an epoch's end by design, to fill the last step:
	 * as undisturbed epochs have them, else as the size leaves room for. */
	uint64_t padding;
};

/* Find the epochs and count. `memory` is the budget in bytes, `threads` at least 1. */
int tally_count(struct tally *t, const struct lineage *g, uint64_t memory, unsigned threads,
	struct error *e);
void tally_release(struct tally *t);

/* Count anew as if nothing were known of epochs. */
int tally_without_epochs(struct tally *t, uint64_t memory, unsigned threads, struct error *e);

/* Samples that attempts consumed twice by themselves in what is taken for an epoch. */
uint64_t tally_repeats_inside(const struct tally *t);

/* The epoch that holds a sample of the line. */
size_t tally_epoch_at(const struct tally *t, uint64_t at);

/* Spread the bits of a key: a bijection. */
static inline uint64_t mark_mix(uint64_t x)
{
	x = (x ^ x >> 32) * 0xd6e8feb86659fd93u;
	x = (x ^ x >> 32) * 0xd6e8feb86659fd93u;
	return x ^ x >> 32;
}

/* The mark of sample i of a block. */
static inline uint64_t block_mark(const struct ledger *l, const struct sample_block *b, size_t i)
{
	return l->spaces.count > 1 ? ledger_mark(l, b->spaces ? b->spaces[i] : 0, b->keys[i])
				   : b->keys[i];
}

/* The row in the ledger of a sample of the line, with its part of the line. */
static inline uint64_t line_row(const struct line_part *p, uint64_t at)
{
	return p->row + (at - p->at);
}

#endif
