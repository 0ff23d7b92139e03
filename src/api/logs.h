/* SPDX-License-Identifier: MIT */
/* `reprise ledger`: what sample logs hold, where a sample is in them, and other forms of them. */
#ifndef API_LOGS_H
#define API_LOGS_H

#include "base/limits.h"
#include "base/write.h"
#include "ledger/lineage.h"
#include "report/report.h"

struct log_options {
	struct limits limits;
	bool all;                        /* all rows of tables, however many */
	const struct lineage_told *told; /* from which steps attempts resumed, where the log does
					    not say */
	size_t told_count;
	/* Of find: one of these. */
	const char *id, *source;
	bool has_hash;
	uint64_t hash;
	int64_t step; /* -1: none */
	/* Of find beside them. */
	int64_t before; /* steps shown before `step` */
	int64_t until;  /* the last step that counts for `source` */
};

/* Attempts, sources, spaces, and what was left out while reading. */
int logs_show(struct report *r, const char *const *paths, size_t n, const struct log_options *o,
	struct error *e);

/* Where a sample was consumed, what a step consumed, or how much of a source was. The report's exit
 * status is that of findings where there is nothing of it. */
int logs_find(struct report *r, const char *const *paths, size_t n, const struct log_options *o,
	struct error *e);

/* Write the log as one sealed file. The report says what is in it. */
int logs_import(struct report *r, const char *const *paths, size_t n, const struct log_options *o,
	const char *out, struct error *e);

enum log_form {
	LOG_JSONL,
	LOG_CSV,
};

/*
 * Write the log as text. What is lost on the way is said in the report, which is otherwise empty:
 * lines that were not understood, and for CSV what it has no columns for.
 */
int logs_export(struct report *r, const char *const *paths, size_t n, const struct log_options *o,
	enum log_form form, text_write_fn *write, void *context, struct error *e);

#endif
