/* SPDX-License-Identifier: MIT */
/*
 * A sealed log: a ledger as one small file of columns (columns/colfile.h) that is checked as a
 * whole before it is read. sealed_columns.def lists what it holds. Reading it back gives the same
 * ledger.
 */
#ifndef LEDGER_SEALED_H
#define LEDGER_SEALED_H

#include "ledger/ledger.h"

/* Write a finished ledger, to take the name `path` when it is whole. */
int sealed_write(const struct ledger *l, const char *path, struct error *e);

#endif
