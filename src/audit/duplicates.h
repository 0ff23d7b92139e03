/* SPDX-License-Identifier: MIT */
/* What the data itself repeats, and how many repeats after a resume that explains. */
#ifndef AUDIT_DUPLICATES_H
#define AUDIT_DUPLICATES_H

#include "audit/seams.h"

/* Measure the duplicates of a line inside its attempts: into c->judged. */
void duplicates_find(struct case_line *c);

/* Content keys that are new in every epoch: augmented before they were hashed, say. */
bool duplicates_keys_change(const struct case_line *c);

/* Pairs of samples of a part of the line that share an epoch. */
double duplicates_pairs(const struct case_line *c, size_t part);

/* How many samples after a seam chance lets come again, at the rates of the attempts themselves. */
double duplicates_expected(const struct case_line *c, const struct seam *s);

/* Repeats of the seam's epoch; padding in its last step is none, unless the whole step repeats. */
uint64_t duplicates_at_seam(const struct case_line *c, const struct seam *s);

/* Whether so many repeats are more than the data's own duplicates give. */
bool duplicates_exceeded(
	const struct case_line *c, const struct seam *s, uint64_t repeated, double expected);

#endif
