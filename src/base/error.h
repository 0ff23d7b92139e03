/* SPDX-License-Identifier: MIT */
/*
 * Errors: "we could not look". One fixed-size record, no allocation; the first error wins and
 * callers above may prefix it. A defect of the checkpoint is a finding, not an error
 * (finding/finding.h).
 */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <reprise.h>

#define ERROR_NO_OFFSET UINT64_MAX

struct error {
	int status;      /* enum rp_status; 0 while nothing went wrong */
	int os_error;    /* errno where the operating system is the cause, else 0 */
	bool output;     /* it is what is written that failed, not what is looked at */
	uint64_t offset; /* byte offset in the file that `text` speaks of, or ERROR_NO_OFFSET */
	char text[240];
};

#define ERROR_INIT ((struct error){.offset = ERROR_NO_OFFSET})

/* Record an error (unless one is recorded already) and return its status. `e` may be NULL. */
int fail(struct error *e, int status, uint64_t offset, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* The same with the operating system's words for `os_error` behind the text. */
int fail_os(struct error *e, int os_error, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Put "prefix: " in front of a recorded error on its way up, and return its status. */
int fail_wrap(struct error *e, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Whether an errno says that something may not be done or is not there, which another try does not
 * change. */
bool os_refuses(int os_error);

/* Whether the system failed: memory, or an operation that it did not refuse. Nothing is known then
 * of what was to be looked at. */
bool error_of_system(const struct error *e);

/* A short name for a status, for diagnostics and JSON: "format", "io", … */
const char *status_name(int status);

/* A bug of ours: say where and stop. Only for states that no input can reach. */
#define BUG(text)                                                                                  \
	do {                                                                                       \
		fprintf(stderr, "reprise: bug: %s:%d: %s\n", __FILE__, __LINE__, (text));          \
		abort();                                                                           \
	} while (0)

#endif
