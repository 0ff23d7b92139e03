/* SPDX-License-Identifier: MIT */
/*
 * What logs say of a run's loss and of what moves with it. Every reader (TensorBoard, trainer
 * states, consoles, CSV, …) fills the same tables through src/curve/read.h: files, series, points
 * in the order of their files, and marks (launches, loaded and saved checkpoints). Nothing is
 * judged or put in line here: that is src/curve/stitch.h.
 *
 * A point's x is in the unit of its series. A step is an optimizer step, counted so that the value
 * at step s belongs to the update that makes the counter s; a reader of a format that counts from 0
 * adds 1 and says so in the file's note.
 *
 * Memory: 40 B a point, at most limits->curve_points of them; what does not fit is counted in
 * `dropped` and makes the answer incomplete. Of a series whose role is not known, only their number
 * is kept, unless the options ask for it.
 */
#ifndef CURVE_CURVE_H
#define CURVE_CURVE_H

#include "base/arena.h"
#include "base/array.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/slice.h"

#define CURVE_NONE UINT32_MAX

/* What a series is of: one row of roles.def each. What writers call it: names.def. */
enum curve_role {
#define ROLE(id, name, unit) CURVE_##id,
#include "curve/roles.def"
#undef ROLE
	CURVE_ROLES
};

enum curve_unit {
	CURVE_STEPS,   /* optimizer steps */
	CURVE_SAMPLES, /* consumed since the run began */
	CURVE_TOKENS,  /* likewise */
	CURVE_EPOCHS,  /* with a fraction */
	CURVE_CALLS,   /* the logger's own counter */
	CURVE_UNITS
};

/* What one value covers. */
enum curve_mean {
	CURVE_OF_STEP,     /* that step alone */
	CURVE_OF_INTERVAL, /* mean of the steps since the point before, or since the launch */
	CURVE_OF_EPOCH,    /* mean of the epoch so far */
	CURVE_OF_ALL,      /* mean of all steps since the launch */
	CURVE_OF_UNKNOWN,  /* not said: of that step where points are one step apart */
};

/* What one file holds of a run. */
enum curve_span {
	CURVE_SPAN_ANY,    /* a launch, several, or a part of one */
	CURVE_SPAN_LAUNCH, /* one launch: each begins a file of its own */
	CURVE_SPAN_RUN,    /* carried on by each launch: what survived of the earlier ones too */
};

/* One file, or one text that was read. */
struct curve_file {
	const char *path;   /* as shown */
	const char *format; /* the reader's name */
	const char *writer; /* the trainer or logger, in words: "Megatron-LM", "TensorBoard"; "" */
	uint8_t span;       /* enum curve_span */
	uint64_t lines, points;
	uint64_t lost;      /* lines or records that were damaged */
	bool torn;          /* ends within a line or record */
	uint32_t continues; /* 1 + the file that the same process wrote into before; 0: none */
	const char *note;   /* one clause of what the reader assumed; "" */
};

struct curve_series {
	uint32_t file;
	uint8_t role;       /* enum curve_role */
	uint8_t unit;       /* enum curve_unit, of x */
	uint8_t mean;       /* enum curve_mean */
	const char *name;   /* as the writer calls it: "lm loss", "train/loss" */
	const char *source; /* of CURVE_SOURCE_LOSS: the data source's name; else "" */
	int32_t rank;       /* that printed it, or -1 */
	bool kept;          /* its points are in the log */
	uint64_t points;    /* all, kept or not */
};

struct curve_point {
	double x;
	double value; /* NAN and Inf are what was logged */
	double wall;  /* seconds since 1970, or NAN */
	/* One unit in the last place as logged, which bounds what differences mean; 0: binary.
	 * Where writers leave out trailing zeros, the least of its neighbours' is what counts. */
	float resolution;
	uint32_t series;
	uint64_t at; /* line (text) or byte offset (binary) in the file, from 1 */
};

enum curve_mark_kind {
	CURVE_LAUNCH,   /* a process started (its banner, a START event, a header) */
	CURVE_LOADED,   /* it goes on from a checkpoint; x: its step, text: its path or "" */
	CURVE_SAVED,    /* a checkpoint was written; x: its step, text: its path or "" */
	CURVE_PURGED,   /* all of x and later was taken back by the writer */
	CURVE_SKIPPED,  /* updates were skipped; x: the step, value: how many */
	CURVE_OVERFLOW, /* loss scale lowered; value: to what */
	CURVE_SETTING,  /* text: "name=value", of those that matter: seed, lr, batch, data path */
	CURVE_EPOCH,    /* an epoch began; value: its number */
	CURVE_FINISHED, /* it ended by itself */
	CURVE_KILLED,   /* it says that it was stopped */
};

struct curve_mark {
	uint32_t file;
	uint8_t kind;     /* enum curve_mark_kind */
	uint8_t unit;     /* enum curve_unit, of x */
	uint64_t before;  /* the points of the log with a smaller index were written earlier */
	double x;         /* NAN: not said */
	double value;     /* NAN: not said */
	double wall;      /* NAN: not said */
	const char *text; /* "" */
	uint64_t at;      /* as of a point */
};

/* What was left out or is odd. */
struct curve_loss {
	uint32_t file;
	uint64_t at;
	const char *what; /* one clause */
};

/* What lies in a folder and is not read, though it could be meant as a log. */
struct curve_left {
	const char *path; /* a file, or the folder */
	const char *why;  /* one clause */
	bool unread;      /* for want of being able to, not on purpose */
};

struct curve_log {
	struct arena arena;
	ARRAY(struct curve_file) files; /* in the order in which they were begun, as far as known */
	ARRAY(struct curve_series) series;
	ARRAY(struct curve_point) points; /* by file, in the order of the file */
	ARRAY(struct curve_mark) marks;   /* likewise */
	ARRAY(struct curve_loss) losses;  /* the first ones; all are counted in lost */
	ARRAY(struct curve_left) left;    /* of each folder the first ones */
	uint64_t lost;    /* lines or records that were not understood though they should be */
	uint64_t dropped; /* points beyond the limit */
	const struct limits *limits;
};

/* A series to take from text lines by a pattern of the user: --series loss='train.*loss=([0-9.]+)'.
 */
struct curve_pattern {
	const char *name;    /* the role's name, or any other */
	const char *pattern; /* POSIX extended regular expression; group 1 is the value; with a
				second group, group 1 is x */
};

struct curve_options {
	const struct limits *limits;
	const struct curve_pattern *patterns;
	size_t pattern_count;
	bool others; /* keep the points of series of unknown roles too */
	/* What else than a loss log begins so ("jsonl"), as far as the caller knows, or NULL: such
	 * files are left to it. May be NULL. */
	const char *(*other)(const void *head, size_t n);
};

/*
 * Read the logs at `paths`: files, and folders, in which every file is a log if its beginning says
 * so; in a folder where none does, those that are called as output is (train.log, slurm-1.out) and
 * hold lines with a step and a loss. Files of one format are read in the order in which they were
 * begun, as far as they say so, else in the order of `paths` and of their names; a file that is
 * found twice is read once. An error where nothing can be read at all; the log is empty then. What
 * is damaged is counted, and the rest is read. curve_find() and curve_read() do it in two steps.
 */
int curve_open(struct curve_log *l, const char *const *paths, size_t n,
	const struct curve_options *o, struct error *e);

/* The same from a text in memory, as a file called `name`. */
int curve_open_memory(struct curve_log *l, const char *name, struct slice text,
	const struct curve_options *o, struct error *e);

void curve_release(struct curve_log *l);

/* The name of the format that a file's first bytes are in, or NULL. */
const char *curve_recognise(const char *name, const void *head, size_t n);

/* The role's name as the user types it ("grad-norm"), and the unit of its values ("" for none). */
const char *curve_role_name(enum curve_role role);
const char *curve_role_unit(enum curve_role role);

/* The role that the user calls so, or CURVE_OTHER. */
enum curve_role curve_role_named(struct slice name);

/* "steps", "samples", … */
const char *curve_unit_name(enum curve_unit unit);

#endif
