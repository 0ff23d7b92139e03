/* SPDX-License-Identifier: MIT */
/* What a ledger needs while it is built: shared by adding lines (ledger.c) and ledger_finish(). */
#ifndef LEDGER_BUILD_H
#define LEDGER_BUILD_H

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/identity.h"
#include "base/lookup.h"
#include "ledger/ledger.h"
#include "ledger/store.h"
#include "ledger/strand.h"

/* A step's sums, beside its row in ledger.steps. */
struct building_step {
	double loss, weight;   /* of lines that said one; weight: their samples */
	double own;            /* losses of samples that have one of their own: these count then */
	uint64_t with_own;     /* how many have */
	uint32_t newest_share; /* in a chain through next_share; LEDGER_NONE: none */
	uint32_t counts;       /* names that there were when its counts were laid out */
};

struct share_slot {
	uint32_t row, share; /* step, and its share of the source */
};

/* The spaces of one data set and kind of key, by source + 1. */
struct plane {
	uint32_t dataset;
	uint8_t kind;
	ARRAY(uint32_t) spaces; /* LEDGER_NONE: not made yet */
};

struct ledger_build {
	struct strands strands;
	struct lookup by_step, by_attempt, by_source, by_count;
	ARRAY(struct building_step) steps;
	ARRAY(uint32_t) next_share; /* beside ledger.shares */
	ARRAY(struct plane) planes;
	ARRAY(struct share_slot) share_of; /* by source + 1 */
	uint32_t shares_at_hand;           /* the step of which share_of knows all shares */
	bool shares_scattered;             /* the shares of some step are not side by side */
	/* The place of the newest line, whose next line goes on in the chain digest. */
	uint32_t chain_step, chain_dp;
	uint16_t chain_micro;
	bool dataset_used; /* data set 0 has samples: it cannot become another one */
	uint64_t memory;   /* for tables and columns together */
	uint64_t lines;
};

void build_free(struct ledger_build *b);

#endif
