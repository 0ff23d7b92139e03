/* SPDX-License-Identifier: MIT */
/* What the files about auditing runs share. */
#ifndef API_RUNS_PARTS_H
#define API_RUNS_PARTS_H

#include "api/curves.h"
#include "api/run.h"
#include "api/run_paths.h"
#include "api/runs.h"
#include "audit/case.h"
#include "report/report.h"

/* The tables of the report, in the order in which they are shown. */
struct runs_tables {
	struct report_table *lineage, *line, *checkpoints, *log, *rollback, *runs;
	struct curves_tables curves;
};
struct runs_tables runs_add_tables(struct report *r);

/* What JSON has for the column of the run's name, where there are several. */
struct quantity runs_value(const struct run *run);

/* The last part of a run's path, as far as that tells it from the others. */
const char *runs_short_name(struct report *r, const struct runs *runs, const char *path);

/* "attempt 3", "attempt 3 (2nd)". */
const char *runs_attempt_words(struct report *r, const struct ledger *l, uint32_t i);

/* Rows of a run: its attempts; what the final weights have seen; what reading its log left out. */
void runs_add_lineage(
	struct report *r, struct report_table *t, const struct run *run, const struct case_line *c);
void runs_add_totals(
	struct report *r, struct report_table *t, const struct run *run, const struct case_line *c);
void runs_add_losses(
	struct report *r, struct report_table *t, const struct run *run, const struct ledger *l);

/* Checkpoints beside the logs ------------------------------------------------------------------ */

/* A resume of which the logs say that it did not go on as it should, and in what. */
enum runs_doubt_kind { RUNS_DOUBT_DATA, RUNS_DOUBT_RANDOMNESS };
struct runs_doubt {
	uint8_t kind;    /* enum runs_doubt_kind */
	bool told;       /* a checkpoint of its step was looked at */
	int64_t attempt; /* number */
	double step;
};

struct runs_beside {
	struct report *r;
	struct report_table *table;
	const struct audit_options *o;
	const struct case_line *line;
	const struct run *run;
	size_t read;
	/* The newest sound checkpoint before the first sign of trouble. */
	struct curve_trouble trouble;
	int64_t safe_step; /* -1: none */
	const char *safe_path;
	ARRAY(struct runs_doubt) doubts; /* the caller releases them */
};

/* Gather the resumes of which the rules over the logs know something; false where memory ran out.
 */
bool runs_find_doubts(struct runs_beside *b, const struct audit_case *c);

/* Tell what a checkpoint of that step lacks which explains the resumes from it. */
void runs_tell_causes(struct runs_beside *b, struct state *s, int64_t step);

/* Judge the checkpoints that lie beside a run, and fill their table. */
int runs_add_checkpoints(struct runs_beside *b, const struct run *run, struct error *e);
void runs_add_rollback(struct report *r, struct report_table *t, const struct runs_beside *b);

/* The curve ------------------------------------------------------------------------------------ */

/* A run's loss curve, or none. */
struct runs_curve {
	struct curve_log log;
	struct case_curve curve;
	ARRAY(double) resumes, saves;
	/* What the sample log has of each attempt's samples. */
	ARRAY(struct consumed_knot) knots;
	ARRAY(struct stitch_amounts) amounts;
	bool any;
};

/* Read and stitch the run's loss logs, else the losses of its sample log. Close it also after an
 * error. */
int runs_open_curve(struct runs_curve *c, struct report *r, const struct run *run,
	const struct audit_case *a, const struct audit_options *o, struct error *e);
void runs_close_curve(struct runs_curve *c);

/* One run among others: what it was given, and when it got into trouble. */
void runs_add_side(struct report *r, struct report_table *t, const struct run *run,
	const struct case_curve *c);

/* The sample log ------------------------------------------------------------------------------- */

/* What the user told of the run whose log this is; run_release() it. */
int runs_open_told(struct run_in_use *told, struct report *r, const char *log,
	const struct audit_options *o, struct error *e);
int runs_open_log(struct ledger *l, const char *const *paths, size_t count,
	const struct run_in_use *told, const struct audit_options *o, struct error *e);

/* Put into the coverage what could be read of it. */
void runs_cover_log(struct report *r, const struct ledger *l);

#endif
