/* SPDX-License-Identifier: MIT */
/* What piece.c is made of: comparing pieces, and cutting what files carry on from launch to launch.
 */
#ifndef CURVE_PIECE_PARTS_H
#define CURVE_PIECE_PARTS_H

#include "curve/piece.h"

#define PIECE_COMPARED_LEAST 3u /* fewer points do not say that two pieces are the same */

struct piece_agreement {
	size_t compared, agreeing;
	size_t prefix;   /* of the compared ones, how many of the first agree without a break */
	double prefix_x; /* the last x of those */
};

int piece_no_memory(struct error *e);

/* Compare at x of `a` = x of `b` + offset, the values of `b` times a factor, at most so many
 * points. */
struct piece_agreement piece_compare(const struct pieces *all, const struct piece *a,
	const struct piece *b, double offset, double factor, size_t most);

/*
 * A file that is carried on holds several launches without a sign of where each began. Cut it where
 * the log of a launch begins that it goes along with, or was given up. Each piece of such files is
 * compared with each of the others once: O(pieces * points).
 */
int piece_cut_carried(struct pieces *all, const struct curve_log *l, struct error *e);

#endif
