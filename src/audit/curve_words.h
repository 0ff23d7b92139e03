/* SPDX-License-Identifier: MIT */
/* What the rules about curves share: words for their messages, and places. */
#ifndef AUDIT_CURVE_WORDS_H
#define AUDIT_CURVE_WORDS_H

#include "audit/curves.h"

/* "step 12", "epoch 0.25"; "steps 481–780"; where the line is shown by what was consumed, with
 * that: "step 12 (192 samples)". Of the line, or of an attempt. */
const char *curve_at(struct findings *sink, const struct case_curve *c, double x);
const char *curve_steps(
	struct findings *sink, const struct case_curve *c, double first, double last);

const char *curve_at_in(
	struct findings *sink, const struct case_curve *c, uint32_t attempt, double x);
const char *curve_steps_in(struct findings *sink, const struct case_curve *c, uint32_t attempt,
	double first, double last);

/* A finding's steps, as far as they are known: a log that counts epochs knows none. */
void curve_place(struct finding *f, const struct case_curve *c, double first, double last);

/* What a finding about the data says of these steps, where its own begin no later than they do:
 * "the mixture (M101)"; NULL: nothing. */
const char *curve_data_cause(struct findings *sink, double first, double last);

/* Which sources' own losses rose over these steps of the line: "; of the sources code rose by 0.2,
 * the others did not"; "" where no source's loss is logged there. */
const char *curve_sources(
	struct findings *sink, const struct case_curve *c, double first, double last);

#endif
