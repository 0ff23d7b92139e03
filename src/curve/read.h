/* SPDX-License-Identifier: MIT */
/* For the readers of loss logs: one per file read_<name>.c, listed in readers.def. */
#ifndef CURVE_READ_H
#define CURVE_READ_H

#include "base/lines.h"
#include "base/lookup.h"
#include "base/source.h"
#include "curve/curve.h"

/* How much of a file's beginning tells its format. */
#define CURVE_HEAD 65536u

/* A file that is being read. */
struct curve_reading {
	struct curve_log *log;
	const struct source *source;
	uint32_t file;    /* index */
	const char *name; /* base name: some formats say things in it */
	const char *head; /* its first bytes, behind which stand LINES_PADDING line ends */
	size_t head_n;
	uint64_t at; /* line or offset of the record at hand */
	double wall; /* of the record at hand, or NAN */
	const struct curve_options *options;
	struct lookup by_name; /* the file's series; curve_series_of()'s own */
};

struct curve_reader {
	const char *name;
	enum curve_span span;
	/* How sure it is that this is one of its files: 0 not, 1 could be (only if no other wants
	 * it, and only where the user named the file), 2 is. Behind `head` stand LINES_PADDING line
	 * ends. */
	int (*probe)(const char *name, const char *head, size_t n);
	/* Read it all. What cannot be read is counted by curve_lost(); an error is one that ends
	 * the reading of all files (memory). */
	int (*read)(struct curve_reading *r, struct error *e);
	/* When the file was begun, in seconds or any other number that grows from file to file; NAN
	 * where it does not say. May be NULL. */
	double (*begun)(const char *name, const char *head, size_t n);
	/* How sure it is of a file that could be one by its beginning, by the first line in
	 * its first `most` bytes that makes it as sure as `enough`: 0 there is
	 * nothing of its kind, 1 by words that are nobody's, 2 it is. *used: bytes looked at. May
	 * be NULL. */
	int (*search)(const struct source *source, uint64_t most, int enough, uint64_t *used);
};

/* What the name of a series says, by names.def and the rules of naming.c. */
struct curve_meaning {
	enum curve_role role;
	enum curve_unit unit; /* of x; CURVE_UNITS: the name does not say */
	enum curve_mean mean;
	bool says_mean;
	struct slice source; /* of CURVE_SOURCE_LOSS; points into the name */
};

struct curve_meaning curve_meaning_of(struct slice name);

/* Whether a word, in whatever case, is one for data that is not trained on. */
bool curve_is_held_out(struct slice word);

/* Whether a name matches a pattern of names.def. */
bool curve_name_matches(const char *pattern, struct slice name);

/*
 * The series of a name, unit and rank, made where it is new. Where `role` is CURVE_OTHER, the role
 * follows from the name, and so do unit and mean where the name says them. CURVE_NONE where there
 * are too many: its points are dropped. O(name).
 */
int curve_series_of(struct curve_reading *r, struct slice name, enum curve_role role,
	enum curve_unit unit, enum curve_mean mean, int32_t rank, uint32_t *series,
	struct error *e);

/* A point at r->at and r->wall. `resolution`: see struct curve_point. */
int curve_add(struct curve_reading *r, uint32_t series, double x, double value, float resolution,
	struct error *e);

/* A mark at r->at and r->wall. The text is copied. */
int curve_mark(struct curve_reading *r, enum curve_mark_kind kind, enum curve_unit unit, double x,
	double value, struct slice text, struct error *e);

/* The record at r->at was not understood. */
void curve_lost(struct curve_reading *r, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* The rest of the file cannot be read: that is told and RP_OK. Where the system failed nothing is
 * known of it, which is an error. */
int curve_broke(struct curve_reading *r, const struct error *why, struct error *e);

/* The file's writer, and what the reader assumed. */
void curve_writer(struct curve_reading *r, const char *writer);

/*
 * The file is read: find out who wrote it from the names of its series (writers.def), which tells
 * what a loss covers and, where x is the `writers_step`, whether that counts from 0; else it is
 * `otherwise`. For formats that many trainers write through one library.
 */
void curve_know_writer(struct curve_reading *r, const char *otherwise, bool writers_step);
void curve_note(struct curve_reading *r, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * A number as people and programs print it: 1.25E+00, nan, -inf, -1,234.5, and 1.05M (K, M, B, G,
 * T) where `suffixes`; the whole slice, and its unit in the last place (0 for nan and inf). False
 * where it is none. O(n), no locale.
 */
bool curve_number(struct slice text, bool suffixes, double *value, float *resolution);

/*
 * The same of a number that was taken apart: mantissa * 10^last, where `last` is the power of its
 * last digit. False where it wants curve_number().
 */
bool curve_decimal(uint64_t mantissa, int last, double *value, float *resolution);

#endif
