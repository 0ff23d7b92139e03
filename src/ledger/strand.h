/* SPDX-License-Identifier: MIT */
/*
 * Where the samples of each line lie, without a record per line.
 *
 * A strand is all that one worker of one rank consumed in one place of the step: (attempt, dp,
 * micro, worker). Its lines come in runs: the same number of samples each, at steps and rows that
 * go up by a constant. One log per rank makes one run per rank and attempt, and so does one log in
 * which ranks alternate. The order of samples over all ranks is then found by sweeping over the
 * steps with the runs that are open, not by sorting samples.
 */
#ifndef LEDGER_STRAND_H
#define LEDGER_STRAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/array.h"
#include "base/error.h"
#include "base/lookup.h"

#define STRAND_NONE UINT32_MAX

struct strand {
	uint32_t attempt, dp;
	uint16_t micro, worker;
	uint32_t last, before; /* its newest runs, or STRAND_NONE */
	uint32_t rank;         /* in the order of (attempt, dp, micro, worker), once ordered */
};

/* Line k of `count`: samples row + k * row_stride .. + n, of step + k * step_stride. */
struct run {
	int64_t step;
	uint64_t row, row_stride;
	uint32_t step_stride, count, n;
	uint32_t strand; /* STRAND_NONE: merged into another run */
};

/* What was seen of one (attempt, dp, micro), whichever worker loaded it. */
struct track {
	uint32_t attempt, dp;
	uint16_t micro;
	int64_t first, last; /* steps; first > last: nothing yet */
	int64_t newest;      /* step of the newest line */
	uint64_t steps;      /* distinct ones, while none came late */
	uint32_t strand;     /* of the newest line */
	uint32_t row;        /* the caller's: of the newest line's step in its table */
};

struct strands {
	ARRAY(struct strand) list;
	ARRAY(struct run) runs;
	ARRAY(struct track) tracks;
	struct lookup by_place, by_track;
	uint32_t newest; /* track */
	/* Hashes of (track, step), kept once a line came late whose step is not obvious. */
	uint64_t *seen;
	size_t seen_count, seen_capacity;
	size_t max_bytes; /* of all of this */
};

void strands_init(struct strands *s, size_t max_bytes);
void strands_release(struct strands *s);

/* Bytes held. */
size_t strands_bytes(const struct strands *s);

/* The track of a place, made where it is new; NULL without memory. Valid until the next call. */
struct track *strands_track(struct strands *s, uint32_t attempt, uint32_t dp, uint16_t micro);

/* The same, or NULL where it is new. */
const struct track *strands_find(
	const struct strands *s, uint32_t attempt, uint32_t dp, uint16_t micro);

/* Whether a line of `step` was added to a track before: 1 or 0, negative without memory. */
int strands_seen(struct strands *s, const struct track *t, int64_t step, struct error *e);

/* Add a line's samples. */
int strands_add(struct strands *s, struct track *t, uint16_t worker, int64_t step, uint64_t row,
	uint32_t n, struct error *e);

/* Give attempts new numbers, and bring strands and runs into the order in which a sweep wants them.
 */
int strands_order(struct strands *s, const uint32_t *attempts, struct error *e);

/* A part of a step: rows of one strand. */
struct piece {
	uint32_t strand, n;
	uint64_t row;
};

/* A pass over the steps in order, which gives each step's pieces in (dp, micro, worker) order. */
struct sweep {
	const struct strands *strands;
	size_t next;              /* run */
	ARRAY(uint32_t) open;     /* runs that go on, by strand */
	ARRAY(uint32_t) merged;   /* the next `open` */
	ARRAY(struct piece) list; /* of the step at hand */
	uint32_t attempt;
	int64_t step;
	int64_t first_end; /* the lowest last step of an open run */
	bool strided;      /* some open run leaves steps out */
	bool same;         /* the pieces are those of the step before, but for their rows */
};

void sweep_init(struct sweep *w, const struct strands *s);
void sweep_release(struct sweep *w);

/* Go on to a later step. False without memory. */
bool sweep_next(struct sweep *w, uint32_t attempt, int64_t step);

#endif
