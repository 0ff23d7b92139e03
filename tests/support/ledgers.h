/* SPDX-License-Identifier: MIT */
/* Holding two ledgers against each other, table by table. */
#ifndef SUPPORT_LEDGERS_H
#define SUPPORT_LEDGERS_H

#include "ledger/ledger.h"

/* How much two ledgers must have in common. */
enum ledgers_part {
	LEDGERS_SAMPLES, /* attempts' numbers, steps and samples: what CSV holds */
	LEDGERS_ALL,     /* all but file names and line numbers */
};

/* The first difference, or NULL; static text. */
const char *ledgers_differ(const struct ledger *a, const struct ledger *b, enum ledgers_part part);

#endif
