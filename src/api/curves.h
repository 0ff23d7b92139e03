/* SPDX-License-Identifier: MIT */
/* `reprise stitch`: one true curve out of whatever logs a run left behind. */
#ifndef API_CURVES_H
#define API_CURVES_H

#include "api/verify.h"
#include "audit/curves.h"
#include "base/write.h"

struct curves_options {
	struct verify_options common;
	const struct curve_pattern *patterns; /* --series */
	size_t pattern_count;
	const struct stitch_told *told; /* --resume */
	size_t told_count;
	int64_t first, last; /* --from, --until: steps that are kept */
	enum curve_unit by;  /* --by: in which unit the line is shown */
	bool by_is_told;
	bool olmo;        /* --rule olmo: score the line by OLMo-core's rule too */
	bool plot, ascii; /* draw the curve, in ASCII */
	unsigned width;   /* of the plot, in characters */
	bool dead;        /* of the table: points that were rolled back too */
};

/*
 * Stitch logs, check each resume against the dead branch, and name spikes. RP_OK with a report,
 * whatever the verdict; an error where nothing could be read.
 */
int curves_stitch(struct report *r, const char *const *paths, size_t n,
	const struct curves_options *o, struct error *e);

/* Write the stitched curve as CSV: a row for each step, a column for each quantity. The report says
 * what was left out, and is otherwise empty. */
int curves_export(struct report *r, const char *const *paths, size_t n,
	const struct curves_options *o, text_write_fn *write, void *context, struct error *e);

/* The tables of curves. All tables of a report must have been added before they are looked up. */
struct curves_tables {
	struct report_table *attempts, *events, *series, *notes;
};
void curves_add_tables(struct report *r);
struct curves_tables curves_find_tables(struct report *r);

/* Fill them: attempts and what each resume came to, events, series, what is odd. `run` is what the
 * rows begin with, or NULL; `name` what JSON has in its place, or NULL. */
void curves_fill_tables(struct report *r, const struct curves_tables *t, const struct case_curve *c,
	const char *run, const char *name);

/* What loss logs alone say for a run of which nothing is wrong: of so many resumes, so many match,
 * in so many steps. */
const char *curves_evidence(struct report *r, size_t resumes, size_t match, size_t steps);

/* How many files and folders that lie beside the logs could not be read; *first is the first one,
 * or NULL. */
uint64_t curves_unread(const struct curve_log *l, const struct curve_left **first);

/* Put into the coverage what could be read of the logs. */
void curves_cover(struct report *r, const struct curve_log *l);

/*
 * Judge a relaunch by the first steps in its log `confirm`, against the earlier logs at `path`. The
 * report's exit status is that of "not ready" while the new log has no step that can be compared.
 */
int curves_confirm(struct report *r, const char *path, const char *confirm,
	const struct curves_options *o, struct error *e);

/* Draw the first track. NULL where there is nothing to draw. */
const char *curves_picture(
	struct report *r, const struct case_curve *c, unsigned width, bool ascii);

#endif
