/* SPDX-License-Identifier: MIT */
/*
 * What each resume of a line came to, by what it consumed. Rules about data report it; it is worked
 * out once for all of them.
 */
#ifndef AUDIT_SEAMS_H
#define AUDIT_SEAMS_H

#include "base/error.h"
#include "finding/finding.h"
#include "ledger/align.h"

enum seam_outcome {
	SEAM_SOUND,       /* nothing speaks against it, nothing proves it */
	SEAM_EXACT,       /* the answer key came again, step by step */
	SEAM_REARRANGED,  /* the same, on other ranks or in other places of the batch */
	SEAM_BY_SAMPLES,  /* the same samples, in batches of another size */
	SEAM_SKIPPED,     /* a declared skip, done as declared */
	SEAM_FROM_START,  /* replay from the start of the run */
	SEAM_FROM_EPOCH,  /* replay from the start of the epoch */
	SEAM_WINDOW,      /* replay of what was consumed some way back */
	SEAM_OTHER_ORDER, /* samples of the epoch again, in another order */
	SEAM_OTHER_EPOCH, /* the order of another epoch */
	SEAM_HOLE,        /* samples passed over */
	SEAM_PERMUTED,    /* the same batches or samples in a window, in another order */
	SEAM_DIFFERS,     /* not what the answer key has */
	SEAM_SKIP_WRONG,  /* a declared skip, and something else happened */
	SEAM_FRESH,       /* a declared fresh order */
	SEAM_UNKNOWABLE,  /* the keys cannot tell */
	SEAM_OUTCOMES
};

struct seam_judgement {
	uint8_t outcome;   /* enum seam_outcome */
	uint64_t repeated; /* samples of the epoch consumed before the seam and again after it */
	double expected;   /* how many the data's own duplicates explain */
	uint64_t expected_at,
		observed_at; /* position in the epoch, in samples: FROM_*, WINDOW, HOLE */
	uint64_t source;     /* place on the line that the samples come from: FROM_*, WINDOW,
				OTHER_EPOCH */
	uint64_t run;        /* samples on the line from the seam on that the outcome speaks of */
	uint64_t hole;       /* samples passed over: HOLE */
	uint64_t skipped, declared; /* samples: SKIPPED, SKIP_WRONG */
	uint32_t window;            /* steps: PERMUTED */
	int32_t rotation;           /* steps by which the window is rotated, or 0: PERMUTED */
	uint32_t proven;    /* steps of the key that came again: EXACT, REARRANGED, SKIPPED */
	bool batches_whole; /* DIFFERS: the steps' batches occur in the key, only in another order
			     */
	bool fresh_declared;
	const char *why; /* UNKNOWABLE and SOUND: what could not be told, or NULL */
};

struct seam_judgements {
	ARRAY(struct seam_judgement) list; /* as alignments.seams */
	/* Chance that two samples of an epoch are the same one, inside a rank and between ranks. */
	double duplicates, cross_duplicates;
	double measured; /* how many duplicates tell that; at least 1 */
	uint64_t size;   /* different samples in an epoch; 0: not known */
	uint64_t batch;  /* samples in the largest step */
	uint64_t
		dropped; /* samples that an epoch lacks by design: as many as undisturbed ones do */
	bool keys_change; /* content keys that do not come again where epochs do */
};

/* A line of one kind of attempt with all that was worked out of it. */
struct case_line {
	struct lineage lineage;
	struct tally tally;
	struct alignments alignments;
	struct seam_judgements judged;
	const char *what; /* "" for training, "validation " */
	size_t from_part; /* what lies before this part of the line is history and not judged */
};

/* Work all of it out. `tip`: as lineage_build_to(), or LEDGER_NONE. Release it also after errors.
 */
int case_line_open(struct case_line *c, const struct ledger *l, enum attempt_kind kind,
	uint32_t tip, const struct lineage_told *told, size_t told_count, uint64_t memory,
	unsigned threads, struct error *e);
void case_line_close(struct case_line *c);

/* Whether the attempt declares that its order is a new one. */
bool seam_fresh_declared(const struct ledger_attempt *a);

/* Whether the log says of an attempt that it ended as it should. */
bool attempt_ended_well(const struct ledger_attempt *a);

/* How a part's first step was shared out. */
const struct ledger_geometry *part_geometry(const struct case_line *c, size_t part);

/* The first seam in an epoch or in a later one. */
size_t seam_of_epoch(const struct case_line *c, size_t epoch);

/* Samples that an epoch lacks, where its size is known; false where it is not. */
bool epoch_missing(const struct case_line *c, size_t epoch, uint64_t *missing);

/* The step that holds a sample of the line. */
const struct ledger_step *line_step_at(const struct lineage *g, uint64_t at);

#endif
