/* SPDX-License-Identifier: MIT */
/* Small sample logs, built in memory through the builder that all readers use. */
#ifndef SUPPORT_LOGS_H
#define SUPPORT_LOGS_H

#include "ledger/ledger.h"

struct log {
	struct ledger ledger;
	struct limits limits;
	uint32_t attempt; /* that lines are added to */
	enum key_kind kind;
};

/* A new log with a memory budget for its columns; `size` of the data set, 0: not said. */
void log_begin(struct log *g, uint64_t memory, uint64_t size);

/* Begin an attempt that says where it resumed from (LEDGER_NO_STEP: does not say). */
struct ledger_attempt *log_attempt(struct log *g, int64_t number, int64_t from_step);

/* What a rank consumed in a step. */
void log_step(
	struct log *g, int64_t step, uint32_t dp, int32_t epoch, const uint64_t *ids, size_t n);

/* Bring it into order. */
const struct ledger *log_end(struct log *g);
void log_release(struct log *g);

/* A seeded generator (SplitMix64), and a permutation of 0..n-1 that is its own for each seed. */
uint64_t log_random(uint64_t *state);
void log_permutation(uint64_t seed, uint64_t *ids, size_t n);

#endif
