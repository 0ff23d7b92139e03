/* SPDX-License-Identifier: MIT */
/*
 * What the rare lines of a log say: header, attempt, checkpoint, end. They are JSON objects in
 * every format; sealed logs hold them as text.
 */
#ifndef LEDGER_SAID_H
#define LEDGER_SAID_H

#include "ledger/read.h"

#define SAID_VERSION 1 /* of "reprise":"ledger/1" */

/*
 * Take a line that says nothing of a step. `scratch` is used and released. What makes no sense is
 * noted or counted as lost; an error means that no more can be taken, or that the file is not to be
 * read.
 */
int said_line(struct reading *r, struct arena *scratch, struct slice text, struct error *e);

/* The same, where it is a header; whether it is one. */
int said_header(struct reading *r, struct arena *scratch, struct slice text, bool *is_header,
	struct error *e);

/*
 * What an attempt declares, from a JSON object that is a text of its own. What makes no sense is
 * noted under `file`; an empty text declares nothing. `scratch` is used and released.
 */
void said_intent(struct ledger *l, const char *file, struct arena *scratch, struct slice text,
	struct ledger_intent *intent);

/* A JSON object that is a text of its own, kept as text; "" where it is none, which is noted as
 * being of `key`. */
const char *said_json(struct ledger *l, const char *file, struct arena *scratch, const char *key,
	struct slice text);

#endif
