/* SPDX-License-Identifier: MIT */
/*
 * The hot line of a JSONL log: {"step":6211,"dp":0,"ids":[17,4],…}, scanned in one pass into arrays
 * that are used again for the next line.
 */
#ifndef LEDGER_STEP_LINE_H
#define LEDGER_STEP_LINE_H

#include "ledger/ledger.h"

enum step_line_kind {
	STEP_LINE,       /* a whole step line */
	STEP_LINE_RARE,  /* valid so far, and no step line: another reader's affair */
	STEP_LINE_OTHER, /* of another split than training */
	STEP_LINE_BAD,
	STEP_LINE_FAILED,
};

/* The newest names of sources, by their first bytes. */
struct source_slot {
	const char *name; /* the ledger's; NULL: free */
	size_t n;
	uint32_t index;
};

#define STEP_LINE_SOURCES 64u
#define STEP_LINE_COUNTS 64u

struct step_line {
	struct ledger_line line;
	int64_t attempt; /* LEDGER_UNNUMBERED: not said */
	bool has_step;
	const char *what; /* is wrong with it, and at which of its bytes (from 1) */
	size_t column;
	/* Owned. */
	ARRAY(uint64_t) keys;
	ARRAY(uint32_t) sources;
	ARRAY(uint32_t) tokens;
	ARRAY(float) losses;
	ARRAY(char) text; /* of a string without its escapes */
	double counts[STEP_LINE_COUNTS];
	struct source_slot slots[STEP_LINE_SOURCES];
};

void step_line_init(struct step_line *s);
void step_line_release(struct step_line *s);

/*
 * Scan a line that ends with '\n' and has LINES_PADDING bytes behind it. Arrays in s->line live
 * until the next call; s->line.dp is LEDGER_NONE where the line does not say it. New sources and
 * names of counts are made in `l`.
 */
enum step_line_kind step_line_scan(
	struct step_line *s, struct slice text, struct ledger *l, struct error *e);

/* The index of a source by name. */
int step_line_source(
	struct step_line *s, struct slice name, struct ledger *l, uint32_t *index, struct error *e);

/* Whether a split is the one that is trained on. */
bool split_is_training(struct slice split);

#endif
