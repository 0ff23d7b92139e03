/* SPDX-License-Identifier: MIT */
/*
 * A ledger as text that its readers take back to the same tables: JSON lines, or CSV, which holds
 * samples alone. Text ids are known by their hashes and are written as content keys.
 */
#ifndef REPORT_WRITE_LOG_H
#define REPORT_WRITE_LOG_H

#include "base/write.h"
#include "ledger/ledger.h"

int log_write_jsonl(const struct ledger *l, text_write_fn *write, void *context, struct error *e);

/* RP_E_UNSUPPORTED where the log has ids beside keys, since CSV has one column for them. */
int log_write_csv(const struct ledger *l, text_write_fn *write, void *context, struct error *e);

/* A float as the shortest decimal that reads back as the same float; null for NAN. */
void log_add_float(struct strbuf *b, float v);

#endif
