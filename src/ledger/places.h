/* SPDX-License-Identifier: MIT */
/* Where samples of a ledger stand: in which step, on which rank, at which of its places. */
#ifndef LEDGER_PLACES_H
#define LEDGER_PLACES_H

#include "ledger/ledger.h"

/* Where samples stand in their steps. */
struct place_index {
	const struct ledger *ledger;
	uint32_t *starts; /* as ledger.parts: samples of the geometry before the part */
};

struct sample_place {
	uint32_t step; /* row in ledger.steps */
	uint32_t part; /* of the step's geometry */
	uint32_t slot; /* in that part */
	const struct ledger_part *of;
};

int place_index_init(struct place_index *x, const struct ledger *l, struct error *e);
void place_index_release(struct place_index *x);

/* The place of a sample of the ledger that lies in a step between two rows of ledger.steps. */
struct sample_place place_in(
	const struct place_index *x, uint64_t row, uint32_t first, uint32_t steps);

/* The row in ledger.steps, of `steps` from `first` on, that holds a sample of the ledger. */
uint32_t place_step_of(const struct ledger *l, uint64_t row, uint32_t first, uint32_t steps);

#endif
