/* SPDX-License-Identifier: MIT */
/* The pass over a line's samples that counts which ones are new to it and to their epoch. */
#ifndef LEDGER_TALLY_COUNT_H
#define LEDGER_TALLY_COUNT_H

#include "ledger/tally.h"

/*
 * Count with the epochs as they are: fills the counts of epochs and parts, the repeats and the
 * totals. `factors` has the repeat factor of each space. About 4 bytes of `memory` an id that lies
 * close to others, else 16 a sample; what does not fit takes more passes.
 */
int tally_count_samples(struct tally *t, const struct place_index *places, uint8_t *factors,
	uint64_t memory, unsigned threads, struct error *e);

#endif
