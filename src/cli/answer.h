/* SPDX-License-Identifier: MIT */
/* What goes out: answers to stdout, troubles to stderr, and the exit status that they come to. */
#ifndef CLI_ANSWER_H
#define CLI_ANSWER_H

#include "audit/verdict.h"
#include "base/error.h"
#include "base/strbuf.h"
#include "base/write.h"
#include "cli/options.h"
#include "report/json_writer.h"
#include "report/report.h"

#define WIDTH_PIPED 100u /* columns where stdout is no terminal: the same in every environment */

/* A strbuf for an answer, capped by the limit on texts. */
void answer_init(struct strbuf *out, const struct options *o);

/*
 * Write a text to stdout and release it. Returns `status`, or EXIT_STATUS_FAILED when it could not
 * be written (said on stderr, but for a pipe whose reader has gone) or had no room in memory.
 */
int answer_write(struct strbuf *out, int status);

/* Write what is there so far, if it is long, and go on. False when writing failed. */
bool answer_flush(struct strbuf *out, bool all);

/* Render a finished report as asked for and write it; returns its exit status. The report is
 * released. */
int answer_report(const struct options *o, struct report *r);

/* Make a text piece by piece; what was left out of it goes into the report. */
typedef int answer_make_fn(
	struct report *r, text_write_fn *write, void *out, const void *context, struct error *e);

/*
 * Answer with such a text: to stdout as it comes, or to the file that -o names, which gets its name
 * when it is whole. What was left out is said on stderr, with the command that lists it. `subject`
 * is what an error is about, or NULL where it says that itself. Returns the exit status.
 */
int answer_text(const struct options *o, const char *subject, const char *lister,
	answer_make_fn *make, const void *context);

/*
 * Say why nothing could be answered: "reprise: PATH: sentence (offset N)" on stderr, and where JSON
 * is asked for a document on stdout. `path` may be NULL. Returns the exit status.
 */
int answer_error(const struct options *o, const char *path, const struct error *e);

/* The same of a file that could not be written, which is a failure whatever the system's reason; a
 * name that no file can have is the user's. */
int answer_unwritten(const struct options *o, const char *path, const struct error *e);

/* Say on stderr that a history could not be kept, where that is so: the answer stands. */
void answer_unkept(const struct report *r);

/* The exit status that an error comes to. */
int answer_status(const struct error *e);

/* The line on stderr alone, for one file of many. */
void answer_complain(const char *path, const struct error *e);

/* The same for a command line that makes no sense. */
int answer_usage(const struct options *o, const char *complaint);

/* Begin a JSON document: schema and command, nothing closed. */
void answer_open_json(struct json_writer *w, struct strbuf *out, const char *command);

struct render_options answer_style(const struct options *o);

#endif
