/* SPDX-License-Identifier: MIT */
/* Where the epochs of a line begin: as logged, or by their length. For the tally, which they belong
 * to. */
#ifndef LEDGER_EPOCHS_H
#define LEDGER_EPOCHS_H

#include "ledger/tally.h"

/* How a sampler ends an epoch whose size is no multiple of the batch. */
enum epoch_end {
	END_WRAPS, /* inside a step, which goes on with the next epoch */
	END_DROPS, /* before the step that would go beyond it */
	END_PADS,  /* with the step that reaches it */
	END_COUNT
};

/* Another epoch begins at a sample of the line. */
int epochs_add(struct tally *t, uint64_t at, int32_t label, struct error *e);

/* Whether each step of the line says its epoch. */
bool epochs_logged(const struct lineage *g);

/* The epochs that the steps say. */
int epochs_take_logged(struct tally *t, struct error *e);

/* Epochs of `length` samples. Steps that the log does not hold count as about what they consumed.
 */
int epochs_take_even(struct tally *t, uint64_t length, enum epoch_end how, struct error *e);

/* Lengths, tails, seams and gaps of epochs whose beginnings are known. */
void epochs_settle(struct tally *t);

#endif
