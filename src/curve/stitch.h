/* SPDX-License-Identifier: MIT */
/*
 * Puts logs in line: which attempts there were, from where each went on, and for each step the
 * value of the newest attempt that owns it. What was logged behind a point to which the run was
 * rolled back is kept apart as dead.
 *
 * An attempt goes on from the step that the user tells, that the log says, or else from the newest
 * save before its first point, or the point before that. Its parent is the newest earlier attempt
 * that reached that step on a line that leads there.
 */
#ifndef CURVE_STITCH_H
#define CURVE_STITCH_H

#include "curve/consumed.h"
#include "curve/curve.h"
#include "curve/one_unit.h"

enum stitch_how {
	STITCH_COUNTED, /* worked out from the first point */
	STITCH_BY_SAVE, /* the newest known save before it */
	STITCH_SAID,    /* the log says it */
	STITCH_TOLD,    /* the user, or the sample log, does */
};

/* Why a new attempt begins here. */
enum stitch_cut {
	STITCH_CUT_FILE,   /* a file of its own */
	STITCH_CUT_LAUNCH, /* the log says so */
	STITCH_CUT_BACK,   /* the step or the samples go back */
	STITCH_CUT_GAP,    /* nothing was written for long */
	STITCH_CUT_BRANCH, /* a log that repeats another one up to a step */
};

struct stitch_attempt {
	uint32_t number;        /* from 1 */
	double first_x, last_x; /* of what it logged itself; NAN: nothing */
	double from;            /* 0: a fresh start; NAN: not known */
	double from_least;      /* it may have been as early as that; from where it is known */
	uint8_t how;            /* enum stitch_how */
	uint8_t cut;            /* enum stitch_cut */
	uint32_t parent;        /* index, or CURVE_NONE: fresh, or begun before the logs */
	uint32_t rivals;        /* other attempts that reached `from` */
	uint32_t children;
	double alive_from, alive_to; /* the part (from, to] of it that survives; empty: NAN */
	double gap; /* from the parent's last point to `from`, where that is more than
		       two intervals; else 0 */
	double interval;
	double wall_first, wall_last;
	uint64_t points, dead; /* of the loss, or of what stands for it */
	uint32_t file;         /* the first one that holds it */
	uint32_t files;
	bool mean;             /* its points are means of intervals */
	bool finished, killed; /* as its log says */
	bool purged;           /* the writer took points back */
	double renumbered;     /* what was added to the steps that it logged; mostly 0 */
};

/* What an attempt consumed. */
struct stitch_consumed {
	uint8_t how; /* enum consumed_how */
	struct consumed_line line;
	double said;         /* what its own counter says that was consumed at `from`; NAN: none */
	double expected;     /* what its parent had consumed there; NAN: not known */
	double room;         /* by which both may differ as they were logged */
	double begin, end;   /* the usual batch in its first and its last quarter */
	bool ramps;          /* the batch changes within it */
	bool product;        /* its counter is no more than the step times the batch */
	bool unsure;         /* a size that may be one rank's alone, or no batch at all */
	const char *unknown; /* why it is not known; NULL: it is */
};

struct stitch_value {
	double x, value, wall;
	double amount; /* consumed with it, in the stitch's unit of amounts; NAN: not known */
	float resolution;
	float covers; /* steps that it is the mean of; NAN: not known */
	uint32_t attempt;
	uint32_t series;
	bool alive;
};

/* One quantity over all attempts. */
struct stitch_track {
	uint8_t role;
	const char *name; /* the role's, or the source's or series' where there are several */
	double interval;  /* the usual distance of two points */
	ARRAY(struct stitch_value) values; /* by attempt, then x */
	ARRAY(uint32_t) line;              /* those that survive, by x */
	uint64_t dead;
};

/* Where the line goes over from one attempt to another. */
struct stitch_seam {
	uint32_t from, to; /* attempts; the same one where the resume is hidden in a log */
	double x;          /* the step gone on from */
	bool hidden;       /* dated from the final row */
	bool known;        /* the logs do not show it; the caller knows of it */
};

/* A file that holds an attempt, or a part of it. */
struct stitch_part {
	uint32_t attempt, file;
};

/* What the log says of an attempt's launch. */
struct stitch_setting {
	uint32_t attempt;
	const char *name;  /* in the log's arena */
	const char *value; /* likewise */
};

/* A checkpoint that was written, as the log or the folder says. */
struct stitch_save {
	uint32_t attempt; /* CURVE_NONE: not known */
	double x;
};

struct stitch_told {
	int64_t attempt; /* number */
	double from;
};

/* What the sample log knows of an attempt that went on from a step: the samples that it consumed
 * since then, by step. */
struct stitch_amounts {
	double from;
	const struct consumed_knot *list;
	size_t n;
};

struct stitch_options {
	const struct stitch_told *told;
	size_t told_count;
	const double *saves; /* steps of checkpoints that lie beside the logs */
	size_t save_count;
	const double *resumes; /* steps that the run is known to have resumed from, whatever the
				  logs show */
	size_t resume_count;
	double first, last;                   /* keep only x within; NAN: no bound */
	const struct stitch_amounts *amounts; /* by attempt */
	size_t amount_count;
	double batch; /* samples of a step, as the user tells; 0: not told */
	/* In which unit the line is shown; not told: in that of x, unless the batch changes and
	 * what was consumed is known. */
	enum curve_unit by;
	bool by_is_told;
};

struct stitch {
	struct arena arena;
	const struct curve_log *log; /* as given, or what was made of it */
	struct one_unit one;
	enum curve_unit axis; /* the unit of x */
	enum curve_unit by;   /* in which the line is shown: axis, or that of amounts */
	enum curve_unit unit; /* of amounts; CURVE_UNITS: nothing is known of them */
	bool batch_changes;   /* at a resume or within an attempt, as far as is known */
	ARRAY(struct stitch_attempt) attempts;
	ARRAY(struct stitch_consumed) consumed; /* by attempt */
	struct consumed_knots knots;
	ARRAY(struct stitch_track) tracks;     /* the loss first, where there is one */
	ARRAY(struct stitch_seam) seams;       /* of the line, by x */
	ARRAY(struct stitch_part) parts;       /* of each attempt at least one */
	ARRAY(struct stitch_setting) settings; /* by attempt */
	ARRAY(struct stitch_save) saves;       /* by x */
	ARRAY(const char *) notes; /* clauses: what was taken for the same, left out, … */
	uint32_t tip;              /* the attempt at the line's end, or CURVE_NONE */
};

/*
 * Put a log in line. It must outlive the stitch. O(n log n) in its points. RP_E_ARGUMENT where
 * the user tells of an attempt that is not there.
 */
int stitch_build(struct stitch *s, const struct curve_log *l, const struct stitch_options *o,
	struct error *e);
void stitch_release(struct stitch *s);

/* The track of a role, or NULL; of several of the role the first. */
const struct stitch_track *stitch_track_of(const struct stitch *s, enum curve_role role);

/* The values of one attempt in a track: [*first, *end). */
void stitch_values_of(const struct stitch_track *t, uint32_t attempt, size_t *first, size_t *end);

/*
 * The last values of the branch that ends with an attempt: its own up to x, before them its
 * parent's up to where it resumed, and so on. At most `max` indices into t->values, in order; their
 * number.
 */
size_t stitch_branch(const struct stitch *s, const struct stitch_track *t, uint32_t attempt,
	double x, uint32_t *index, size_t max);

/* The last value said for a setting of an attempt, or of its ancestors; NULL: not said. */
const char *stitch_setting_of(const struct stitch *s, uint32_t attempt, const char *name);

/* Whether x itself is what was consumed. */
bool stitch_counts_amounts(const struct stitch *s);

/* What was consumed after step x of an attempt, and the size of the step that ends there; NAN: not
 * known. */
double stitch_amount(const struct stitch *s, uint32_t attempt, double x);
double stitch_batch(const struct stitch *s, uint32_t attempt, double x);

/* The x of a step: where epochs or samples are all that was logged a point is taken for so many
 * steps as one that is a mean mostly covers. */
double stitch_step(const struct stitch *s);

/* An x in the unit in which the line is shown: x itself, or what was consumed. */
double stitch_shown(const struct stitch *s, uint32_t attempt, double x);
double stitch_value_shown(const struct stitch *s, const struct stitch_value *v);

/* Whether attempt `a` is `b` or leads to it. */
bool stitch_leads_to(const struct stitch *s, uint32_t a, uint32_t b);

#endif
