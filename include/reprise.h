/* SPDX-License-Identifier: MIT */
/*
 * reprise: checkpoint and resume correctness, answered from the files.
 *
 * The library never prints, exits, or changes the caller's errno, locale or signals. Every function
 * that can fail returns a negative enum rp_status and leaves one sentence in the handle's error.
 */
#ifndef REPRISE_H
#define REPRISE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define RP_API __attribute__((visibility("default")))
#else
#define RP_API
#endif

#define RP_VERSION "0.1.0"

/* What a call came to. Zero is success; a negative value means "we could not look", never "it is
 * bad". */
enum rp_status {
	RP_OK = 0,
	RP_E_ARGUMENT = -1,    /* the call or its options make no sense */
	RP_E_MEMORY = -2,      /* no memory, or the memory limit was reached */
	RP_E_IO = -3,          /* the operating system said no */
	RP_E_FORMAT = -4,      /* the bytes are not what they claim to be */
	RP_E_LIMIT = -5,       /* a limit was reached; see limits */
	RP_E_UNSUPPORTED = -6, /* a format or feature that is not read */
	RP_E_NOT_FOUND = -7,   /* nothing there */
	RP_E_CHANGED = -8,     /* the file changed while it was read */
	RP_E_INTERNAL = -9,    /* a bug of ours */
};

/* The version of the library in use, "major.minor.patch". Since 0.1.0. */
RP_API const char *rp_version(void);

/* A finished report: verdict, findings, coverage. Owned by the caller, freed with rp_report_free.
 */
struct rp_report;

/* Options of rp_verify. `size` is sizeof(struct rp_verify_options); fields not set are zero. */
struct rp_verify_options {
	size_t size;
	const char *against; /* an earlier checkpoint of the same line, or NULL */
	uint64_t rng_search; /* words searched per command when RNG states are compared; 0: 2^28 */
	uint64_t memory_limit; /* bytes; 0: 1 GiB */
	int quick;             /* non-zero: metadata only, no tensor byte is read */
	int threads;           /* reading threads; 0: one per core */
	int max_seconds;       /* begin nothing more after so long, and say so; 0: no bound */
	const char *run;       /* the run file; NULL: the nearest reprise.run, if there is one */
	const char *env; /* prefix of the Python environment that will resume; NULL: not known */
	const char *const *with; /* packages that will resume, "accelerate=1.10.1", and a NULL
				    behind them; they go before what is installed; or NULL */
};

/*
 * Judge whether a resume from the checkpoint at `path` (file, directory or root of checkpoints) can
 * be exact. On RP_OK `*report` holds the outcome, whatever it is. On failure `*report` is NULL and
 * up to `error_size` bytes of one sentence are written to `error` (which may be NULL). Since 0.1.0.
 */
RP_API int rp_verify(const char *path, const struct rp_verify_options *options,
	struct rp_report **report, char *error, size_t error_size);

/* Options of rp_audit. `size` is sizeof(struct rp_audit_options); fields not set are zero. */
struct rp_audit_options {
	size_t size;
	/* Pairs of an attempt's number and the step that it resumed from, where the log does not say;
	 * `resumes` of them, two numbers each. */
	const int64_t *resumed;
	size_t resumes;
	uint64_t memory_limit; /* bytes; 0: 1 GiB. Less takes longer and finds the same */
	int threads;           /* 0: one per core */
};

/*
 * Audit the sample logs at `paths` (files, and folders of them; checkpoints may lie beside): which
 * attempt continues which, and what was consumed again, passed over or shared by ranks. Outcome and
 * failure are those of rp_verify. Since 0.1.0.
 */
RP_API int rp_audit(const char *const *paths, size_t count, const struct rp_audit_options *options,
	struct rp_report **report, char *error, size_t error_size);

/* The verdict word, such as "CONSISTENT" or "WOULD-REPLAY"; lives as long as the report. Since
 * 0.1.0. */
RP_API const char *rp_report_verdict(const struct rp_report *report);

/* The number or fact that proves the verdict, one line of UTF-8. Since 0.1.0. */
RP_API const char *rp_report_evidence(const struct rp_report *report);

/* The exit status that the command line tool would return. Since 0.1.0. */
RP_API int rp_report_exit(const struct rp_report *report);

/* The number of findings, of any severity. Since 0.1.0. */
RP_API size_t rp_report_findings(const struct rp_report *report);

/* The whole report as the JSON document of schema reprise/1; lives as long as the report. Since
 * 0.1.0. */
RP_API const char *rp_report_json(const struct rp_report *report);

/* Free a report. NULL does nothing. Since 0.1.0. */
RP_API void rp_report_free(struct rp_report *report);

#ifdef __cplusplus
}
#endif

#endif
