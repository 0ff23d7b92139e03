/* SPDX-License-Identifier: MIT */
/* Which planned stage the samples of each step come from, whatever the plan says. */
#ifndef AUDIT_MIXTURE_STAGES_H
#define AUDIT_MIXTURE_STAGES_H

#include "audit/mixture_table.h"

/*
 * For each row of the table the stage in use, LEDGER_NONE where none is scheduled. It is the
 * scheduled one unless another explains the samples so much better that one chance in a million
 * does not (Viterbi's algorithm: a change away from the plan costs as much). The table's pieces are
 * those between seams. False where memory ran out. O(steps * sources * stages).
 */
bool mixture_stages_find(const struct mixture_table *t, double overdispersion, uint32_t *stage);

#endif
