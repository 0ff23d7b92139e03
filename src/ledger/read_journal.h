/* SPDX-License-Identifier: MIT */
/*
 * The recorder's journals as a sample log. All files of a run are read together: a launch is what
 * shares a launch id, ordered by the time of its first file, and a rank that opens a second journal
 * in one launch begins a second attempt in it. What is torn, spliced or missing is said and the
 * rest is read.
 */
#ifndef LEDGER_READ_JOURNAL_H
#define LEDGER_READ_JOURNAL_H

#include "ledger/ledger.h"

/* Whether a file that begins with these bytes is a journal, of whatever version. */
bool journal_probe(struct slice head);

/*
 * Read journals into a ledger that is being built. `names` are what messages call the files. A file
 * that is no sound journal is noted as lost; an error is one of memory or of the operating system.
 * Memory: one block (at most 16 MiB) a file at a time.
 */
int journal_read(struct ledger *l, const char *const *paths, const char *const *names, size_t count,
	struct error *e);

#endif
