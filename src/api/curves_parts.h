/* SPDX-License-Identifier: MIT */
/* What the files about curves share: opening logs, words, rows of the curve. */
#ifndef API_CURVES_PARTS_H
#define API_CURVES_PARTS_H

#include "api/curves.h"

struct curves_opened {
	struct curve_log log;
	struct case_curve curve;
	ARRAY(double) saves;
};

/* Read the logs and stitch them; the files become inputs of the report. Nothing is open after an
 * error. */
int curves_open(struct curves_opened *v, struct report *r, const char *const *paths, size_t n,
	const struct curves_options *o, struct error *e);
void curves_close(struct curves_opened *v);

/* Add the steps of the checkpoints that lie in the folders to an array of doubles. That there are
 * none is no error; false without memory. */
bool curves_add_saves(void *list, const char *const *paths, size_t n, const struct limits *limits);

/* A number in at most so many digits; an x, which of epochs is a fraction. */
const char *curves_rounded(struct report *r, double v, int digits);
const char *curves_at(struct report *r, const struct stitch *s, double x);

/* Nothing where a number is not finite. */
struct quantity curves_real(double v);
struct quantity curves_count(double v);

/* Write all rows as CSV; put them into the report, for programs. */
int curves_write_rows(const struct stitch *s, const struct curves_options *o, text_write_fn *write,
	void *context, struct error *e);
void curves_add_rows(struct report *r, const struct stitch *s);

/* Score the line by OLMo-core's rule. */
void curves_add_olmo(struct report *r, const struct stitch *s);

#endif
