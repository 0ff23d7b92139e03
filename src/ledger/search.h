/* SPDX-License-Identifier: MIT */
/* Looking into a ledger: where a sample was consumed, and how much of a source. */
#ifndef LEDGER_SEARCH_H
#define LEDGER_SEARCH_H

#include "ledger/lineage.h"
#include "ledger/tally.h"

/* What is looked for: the key in spaces of each kind, where `has` says so. */
struct search_key {
	bool has[3]; /* by enum key_kind */
	uint64_t key[3];
};

/* An id as it was typed: the integer that it is, and the text. */
struct search_key search_id(struct slice id);

/* A content hash, or the hash of a text id. */
struct search_key search_hash(uint64_t hash);

/* One sample that was found. */
struct search_hit {
	uint64_t row;
	uint32_t step; /* row in ledger.steps */
	struct ledger_part part;
	uint32_t slot; /* in the part */
	uint16_t space;
	bool alive; /* on its lineage's surviving line */
};

struct search_hits {
	ARRAY(struct search_hit) list;
	uint64_t total; /* also of those that were not kept */
};

/* Lineages of all kinds of attempts, to tell what survived. */
struct search_lines {
	struct lineage of[4]; /* by enum attempt_kind */
	bool built[4];
};

/* `told` is of training alone. */
int search_lines_build(struct search_lines *s, const struct ledger *l,
	const struct lineage_told *told, size_t told_count, struct error *e);
void search_lines_release(struct search_lines *s);

/* Whether a step survives: its attempt's rollbacks left it. */
bool search_alive(const struct search_lines *s, const struct ledger *l, uint32_t step);

/* Find a key; at most `keep` hits are kept, in the ledger's order. One pass over the samples. */
int search_find(struct search_hits *out, const struct ledger *l, const struct search_lines *lines,
	const struct search_key *key, size_t keep, struct error *e);
void search_hits_release(struct search_hits *h);

/* What was consumed of one source, up to a step. */
struct search_consumed {
	uint64_t samples, tokens;      /* on the surviving line */
	uint64_t of;                   /* samples of all sources there */
	uint64_t distinct;             /* different samples among them; 0: not counted */
	uint64_t dead;                 /* samples that were rolled back */
	int64_t first_step, last_step; /* on the line; LEDGER_NO_STEP: never */
};

/*
 * Count a source (LEDGER_NONE: what has none) on the training line. Different samples are counted
 * where the ids are integers and a bitmap of them fits into `memory` bytes.
 */
int search_consumed(struct search_consumed *out, const struct ledger *l,
	const struct search_lines *lines, uint32_t source, int64_t until, uint64_t memory,
	struct error *e);

#endif
