/* SPDX-License-Identifier: MIT */
/*
 * A curve as characters: Braille dots for the line (eight in a character), crosses where only
 * points lie that were rolled back, and a row below with what happened. In ASCII stars stand for
 * the dots.
 */
#ifndef REPORT_PLOT_H
#define REPORT_PLOT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/strbuf.h"

struct plot_point {
	double x, y;
	bool dead;
};

struct plot_mark {
	double x;
	char sign; /* shown below the axis: '^' a resume, '!' a spike */
};

struct plot {
	const struct plot_point *points;
	size_t n;
	const struct plot_mark *marks;
	size_t mark_count;
	unsigned width, height; /* of the whole, in characters; at least 30 and 5 */
	bool ascii;
	const char *unit; /* of x: "steps" */
};

/* Append the plot's lines. Nothing where there are fewer than two finite points. O(n). False when
 * memory runs out. */
bool plot_draw(const struct plot *p, struct strbuf *out);

#endif
