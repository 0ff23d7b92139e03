/* SPDX-License-Identifier: MIT */
/* Reading sample logs from files into a ledger, and what the readers of all formats have in common.
 */
#ifndef LEDGER_READ_H
#define LEDGER_READ_H

#include "base/lookup.h"
#include "base/source.h"
#include "ledger/ledger.h"

#define LEDGER_STEP_MAX                                                                            \
	((int64_t)1 << 53) /* steps, positions and attempts: what JSON can carry                   \
			    */

/* How much of a file's beginning tells its format. */
#define LEDGER_HEAD 65536u

/*
 * Read the logs at `paths`, files and folders (all logs in them, told by content), into one
 * finished ledger. What is not understood is counted in the ledger, and reading goes on. An error
 * where nothing can be read at all, or memory or disk run out; the ledger is empty then. It names
 * the file, unless that is the one path. `paths` must outlive the ledger.
 */
int ledger_open(struct ledger *l, const char *const *paths, size_t n,
	const struct ledger_options *o, struct error *e);

/* The same from texts in memory (JSON lines, CSV), as files called "1", "2", … */
int ledger_open_memory(struct ledger *l, const struct slice *texts, size_t n,
	const struct ledger_options *o, struct error *e);

/* The name of the format that a file's first bytes are in, or NULL: "jsonl", "csv", "journal",
 * "sealed". */
const char *ledger_recognise(const void *head, size_t n);

/* An attempt as the log at hand knows it. */
struct read_attempt {
	int64_t number;
	uint32_t again; /* LEDGER_NONE: not known before its first step */
	uint32_t index; /* where again is known */
	bool pending;   /* reading.said is to be said of it */
};

/* A file that is being read. */
struct reading {
	struct ledger *ledger;
	const struct source *source;
	const char *file; /* as shown */
	const char *path; /* to open */
	const char *head; /* its first bytes */
	size_t head_n;
	uint64_t line, offset; /* at hand; line 0: none */
	uint32_t dataset;
	ARRAY(struct read_attempt) attempts;
	struct lookup by_number;
	int64_t number;             /* of the last attempt line: lines that say none belong to it */
	uint32_t current;           /* in attempts, or LEDGER_NONE */
	struct ledger_attempt said; /* of the pending one */
	uint32_t rank;              /* of lines that do not say `dp`; LEDGER_NONE: not known yet */
};

/* A format: one per file read_<name>.c, listed in readers.def. */
struct reader {
	const char *name;
	bool opens_path; /* it opens the file itself, so that there must be one */
	/* Whether these are the first bytes of such a file; stricter for what was found in a
	 * folder. */
	bool (*probe)(const char *head, size_t n, bool named);
	/* Tell what a header says of the data, before any file is read; or NULL. An error: the file
	 * is not to be read. */
	int (*read_header)(struct reading *r, struct error *e);
	/* Read it all. What cannot be read is noted; an error ends the reading of all files. */
	int (*read)(struct reading *r, struct error *e);
	/* The same, where the files of the format only make sense together: `names` are what
	 * messages call them. Instead of `read`. */
	int (*read_together)(struct ledger *l, const char *const *paths, const char *const *names,
		size_t count, struct error *e);
};

/* For readers ---------------------------------------------------------------------------------- */

/* The line at hand was not understood. */
void reading_lost(struct reading *r, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* An attempt line: what `said` has beside its number, as soon as it is known which launch it is. */
int reading_attempt(struct reading *r, const struct ledger_attempt *said, struct error *e);

/* The attempt that a line belongs to; `number` as the line says it, or LEDGER_UNNUMBERED. */
int reading_current(struct reading *r, int64_t number, uint32_t *index, struct error *e);

/*
 * Add a line of a step: fills in its attempt and, where the line does not say one (`dp` is
 * LEDGER_NONE), its rank.
 */
int reading_line(struct reading *r, int64_t number, struct ledger_line *line, struct error *e);

/* A step of which a line could not be read. */
int reading_irregular(struct reading *r, int64_t number, int64_t step, struct error *e);

#endif
