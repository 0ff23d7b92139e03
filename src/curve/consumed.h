/* SPDX-License-Identifier: MIT */
/*
 * How much data was consumed at each step of an attempt: a line through knots, straight between
 * them, since a batch mostly stays as large as it is. Counters that were rounded as they were
 * logged are laid on a straight line as long as all of them lie on one.
 */
#ifndef CURVE_CONSUMED_H
#define CURVE_CONSUMED_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/array.h"

/* How it is known, the best last. */
enum consumed_how {
	CONSUMED_UNKNOWN,
	CONSUMED_TOLD,       /* the run file, or the user, gives the batch */
	CONSUMED_BY_SETTING, /* the batch that the log says at the launch */
	CONSUMED_BY_SIZES,   /* the batch at each point */
	CONSUMED_BY_LEDGER,  /* the sample log */
	CONSUMED_BY_COUNTER, /* the log's own count */
};

struct consumed_knot {
	double x, amount; /* after step x */
};

/* A count as it was logged: it may be off by so much. */
struct consumed_count {
	double x, amount, room;
};

struct consumed_line {
	size_t first, count; /* knots; fewer than two: not known */
};

struct consumed_knots {
	ARRAY(struct consumed_knot) list;
};

/*
 * Lay a line through counts, which are by x, each greater than the one before; the first one is a
 * knot. False when memory runs out. O(n).
 */
bool consumed_lay(struct consumed_knots *k, const struct consumed_count *c, size_t n,
	struct consumed_line *out);

/* What was consumed after step x; beyond the ends as the nearest part goes on. NAN: not known.
 * O(log n). */
double consumed_at(const struct consumed_knots *k, struct consumed_line l, double x);

/* The step after which so much was consumed, likewise. */
double consumed_step(const struct consumed_knots *k, struct consumed_line l, double amount);

/* What the step that ends at x consumes. */
double consumed_batch(const struct consumed_knots *k, struct consumed_line l, double x);

#endif
