/* SPDX-License-Identifier: MIT */
/* Loss logs built in memory, without any format, and noise from a seed. */
#ifndef SUPPORT_CURVE_MAKER_H
#define SUPPORT_CURVE_MAKER_H

#include "curve/curve.h"

struct curve_maker {
	struct curve_log log;
	uint32_t series[CURVE_ROLES]; /* of the file at hand, or CURVE_NONE */
	enum curve_mean mean;         /* of the loss */
	float resolution;             /* of values that follow; they are rounded to it */
	double wall;                  /* of points that follow; NAN: none */
};

void maker_begin(struct curve_maker *m);
void maker_file(struct curve_maker *m, const char *name, const char *format);
void maker_point(struct curve_maker *m, enum curve_role role, double x, double value);
void maker_mark(struct curve_maker *m, enum curve_mark_kind kind, double x, const char *text);
void maker_end(struct curve_maker *m);

/* Noise of mean 0 and deviation 1, from a seed that moves on. */
double noise_normal(uint64_t *seed);
double noise_laplace(uint64_t *seed);

/* The noise of a batch that is its own for each number: the same batch, the same noise. */
double noise_of_batch(uint64_t run, uint64_t batch);

/* A loss as training has it, falling from 5 to 2 in the first thousands of steps. */
double clean_loss(double step);

#endif
