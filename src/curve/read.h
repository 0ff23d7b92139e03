/* SPDX-License-Identifier: MIT */
/* For the readers of loss logs: one per file read_<name>.c, listed in readers.def. */
#ifndef CURVE_READ_H
#define CURVE_READ_H

#include "base/lines.h"
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
	const char *head; /* its first bytes */
	size_t head_n;
	uint64_t at; /* line or offset of the record at hand */
	double wall; /* of the record at hand, or NAN */
	const struct curve_options *options;
};

struct curve_reader {
	const char *name;
	/* How sure it is that this is one of its files: 0 not, 1 could be (only if no other wants
	 * it, and only where the user named the file), 2 is. */
	int (*probe)(const char *name, const char *head, size_t n);
	/* Read it all. What cannot be read is counted by curve_lost(); an error is one that ends
	 * the reading of all files (memory). */
	int (*read)(struct curve_reading *r, struct error *e);
};

/*
 * The series of a name, made where it is new. The role and what a point means follow from the name
 * by names.def where `role` is CURVE_OTHER.
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

/* The file's writer, and what the reader assumed. */
void curve_writer(struct curve_reading *r, const char *writer);
void curve_note(struct curve_reading *r, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* A number as people and programs print it (1.25E+00, nan, inf, -1,234.5; "1.05M" where
 * `suffixes`), the whole slice; its unit in the last place. False where it is none. O(n), no
 * locale. */
bool curve_number(struct slice text, bool suffixes, double *value, float *resolution);

#endif
