/* SPDX-License-Identifier: MIT */
/* Loss logs in tests: reading them, and their points as text. */
#ifndef SUPPORT_CURVES_H
#define SUPPORT_CURVES_H

#include "curve/curve.h"

struct curves {
	struct limits limits;
	struct curve_options options;
	struct curve_log log;
	struct error e;
	char text[16384];
};

void curves_init(struct curves *c);
void curves_release(struct curves *c);

/* Read a text, or a file or folder relative to the top of the repository; the test fails where that
 * fails. */
void curves_text(struct curves *c, const char *name, const char *text);
void curves_bytes(struct curves *c, const char *name, const void *bytes, size_t n);
void curves_path(struct curves *c, const char *path);

/* The points of all series of that name, "x:value x:value …"; valid until the next call. */
const char *curves_points(struct curves *c, const char *series);

/* All points in their order as lines "series TAB x TAB value"; to be freed. */
char *curves_all(struct curves *c);

/* Read a fixture with all its series; the test fails where the points are not those that another
 * reader found, points.tsv beside it. */
void curves_match(struct curves *c, const char *folder);

/* Each series as "name role unit mean points\n". */
const char *curves_series(struct curves *c);

/* Each mark as "kind unit x value text @before\n". */
const char *curves_marks(struct curves *c);

/* The first series of a name, which must be there. */
const struct curve_series *curves_find(struct curves *c, const char *series);

/* Whether a loss is told that says `what`. */
bool curves_lost(struct curves *c, const char *what);

#endif
