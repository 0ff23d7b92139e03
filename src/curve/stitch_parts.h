/* SPDX-License-Identifier: MIT */
/*
 * What stitch.c is made of: attempts out of pieces, which of them continues which, the tracks, and
 * resumes that no attempt begins with.
 */
#ifndef CURVE_STITCH_PARTS_H
#define CURVE_STITCH_PARTS_H

#include <math.h>

#include "curve/piece.h"
#include "curve/stitch.h"

struct stitch_building {
	struct stitch *s;
	const struct curve_log *l;
	struct pieces pieces;
	uint32_t *attempt_of; /* by piece */
};

int stitch_no_memory(struct error *e);

/* Add a clause to the notes. */
void stitch_note(struct stitch *s, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The lesser and the greater of two, of which either may be NAN. */
static inline double stitch_fewer(double a, double b)
{
	return isnan(a) ? b : isnan(b) ? a : fmin(a, b);
}

static inline double stitch_more(double a, double b)
{
	return isnan(a) ? b : isnan(b) ? a : fmax(a, b);
}

struct stitch_launch {
	uint32_t piece; /* the first one of it */
	double wall;
	uint64_t order; /* by files and places in them; stitch_order_launches()'s own */
};

/*
 * Bring launches, which come by piece, into the order in which they happened: by the clock where
 * all say it, else by file and place in it. Where that cannot be, since the first one begins where
 * none leads to and another one begins before it, by their steps; that is noted, and so are two
 * that may have come in either order.
 */
int stitch_order_launches(
	struct stitch_building *b, struct stitch_launch *list, size_t n, struct error *e);

/* Make attempts of the pieces; say what was taken for the same; their settings and saves. */
int stitch_make_attempts(struct stitch_building *b, struct error *e);
void stitch_note_pieces(struct stitch_building *b);
int stitch_gather_marks(struct stitch_building *b, const struct stitch_options *o, struct error *e);

/* From where each attempt went on, whose child it is, and the seams of the line. */
int stitch_build_lineage(
	struct stitch_building *b, const struct stitch_options *o, struct error *e);

/* The tracks with their values and lines, and the points of each attempt. */
int stitch_fill_tracks(struct stitch_building *b, const struct stitch_options *o, struct error *e);

/*
 * What each attempt consumed. Then, where attempts number their steps anew, as one that divides
 * what was consumed by another batch, the steps of their pieces are moved to those of the run, and
 * *again says that all must be built anew.
 */
int stitch_measure_consumed(
	struct stitch_building *b, const struct stitch_options *o, struct error *e);
void stitch_renumber(struct stitch_building *b, bool *again);

/* In which unit the line is shown, and the amounts of all values. */
int stitch_choose_unit(struct stitch_building *b, const struct stitch_options *o, struct error *e);

/* Resumes that only a final row tells, and those that the caller knows of. */
int stitch_find_hidden(struct stitch_building *b, struct error *e);
int stitch_add_known(struct stitch *s, const struct stitch_options *o, struct error *e);

#endif
