/* SPDX-License-Identifier: MIT */
/* What is odd in a finished ledger as a record, whatever the run did: notes for the report. */
#ifndef LEDGER_DOUBTS_H
#define LEDGER_DOUBTS_H

#include "ledger/ledger.h"

/*
 * Note missing ranks and steps, launches without steps, ids that the data does not have, ids beside
 * keys, sources that may have been renamed. O(steps).
 */
void ledger_doubts(struct ledger *l);

#endif
