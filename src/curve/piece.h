/* SPDX-License-Identifier: MIT */
/*
 * Cuts logs into pieces: what one launch wrote into one file. A piece ends where a launch or a
 * loaded checkpoint is said, where the step or the consumed samples go back, and where nothing was
 * written for long. Pieces that hold the same launch (a console log and event files) are found by
 * what they have in common.
 */
#ifndef CURVE_PIECE_H
#define CURVE_PIECE_H

#include "curve/curve.h"

/* A point of a piece's main series. */
struct piece_value {
	double x, value;
	float resolution;
};

struct piece {
	uint32_t file;
	size_t first, end;           /* points of the log */
	size_t first_mark, end_mark; /* marks of the log */
	uint32_t main;               /* the series that it is known by, or CURVE_NONE */
	size_t first_value, values;  /* of the main series in pieces.values, by x, each x once */
	double first_x, last_x;      /* NAN without values */
	double interval;             /* the usual distance of two points; NAN: fewer than two */
	double wall_first, wall_last;
	double loaded;     /* step of the checkpoint that the launch says it went on from, or NAN */
	bool purged;       /* that is what the writer took back, not what was loaded */
	bool gap;          /* begun only because nothing was written for long */
	bool back;         /* begun because the step or the samples went back */
	uint32_t same_as;  /* an earlier piece of the same launch, or CURVE_NONE */
	double offset;     /* what makes its x that of the other piece: 0, 1 or -1 */
	double renumbered; /* the part of the offset that makes its steps those of the run */
	double factor;     /* what makes its values those of the other piece */
	uint32_t copy_of;  /* an earlier piece whose points it repeats up to `copied`, or CURVE_NONE
			    */
	double copied;
};

struct pieces {
	enum curve_unit axis;     /* the unit of all x that are used */
	ARRAY(struct piece) list; /* by file, in the order of the file */
	ARRAY(struct piece_value) values;
	ARRAY(uint32_t) jumbled; /* files whose x goes to and fro: several writers in one */
	uint64_t off_axis;       /* points of series whose x is in another unit */
	uint32_t off_file;       /* the first file that holds some */
};

/* Whether its file is carried on from launch to launch. */
static inline bool piece_is_carried(const struct curve_log *l, const struct piece *p)
{
	return l->files.items[p->file].span == CURVE_SPAN_RUN;
}

/* Cut a log. O(n log n) in its points; pieces are compared pairwise, by at most 256 points. */
int pieces_cut(struct pieces *p, const struct curve_log *l, struct error *e);
void pieces_release(struct pieces *p);

#endif
