/* SPDX-License-Identifier: MIT */
/*
 * The Python packages that will resume: what the user told, and what is installed below a prefix,
 * read from the names of folders alone. No Python is run and no file is opened.
 */
#ifndef AUDIT_ENVIRONMENT_H
#define AUDIT_ENVIRONMENT_H

#include "base/arena.h"
#include "base/array.h"
#include "base/error.h"
#include "base/version.h"

struct package {
	const char *name; /* as PEP 503 normalises it: lower case, one dash between words */
	const char *text; /* the version as it was told or is spelt on disk */
	struct version version;
	bool told; /* by the user, not found */
};

struct environment {
	struct arena arena;
	ARRAY(struct package) packages;
	const char *prefix; /* what was read, or NULL */
};

void environment_init(struct environment *env);
void environment_release(struct environment *env);

/*
 * Add "accelerate=1.10.1" or "accelerate==1.10.1"; of one package, what was told first holds. False
 * where that makes no sense or memory ran out.
 */
bool environment_tell(struct environment *env, struct slice requirement);

/* The first of `n` requirements that wants another version of the package of `requirement`, or
 * NULL. */
const char *environment_contradiction(const char *const *told, size_t n, struct slice requirement);

/*
 * Read the packages below `prefix`: the folders NAME-VERSION.dist-info and NAME-VERSION.egg-info in
 * site-packages and dist-packages of each lib/python3* and lib64/python3*. What does not look like
 * one is passed over.
 * RP_E_NOT_FOUND where there is no such folder.
 */
int environment_read(struct environment *env, const char *prefix, struct error *e);

/* What is known of one package. */
enum package_known {
	PACKAGE_UNKNOWN,
	PACKAGE_KNOWN,
	PACKAGE_AMBIGUOUS, /* several versions are installed */
};

/*
 * The package of a normalised name; what was told goes before what was found. `env` may be NULL.
 * One project under two names ("lightning", "pytorch-lightning") is one package.
 */
enum package_known environment_find(
	const struct environment *env, struct slice name, const struct package **out);

#endif
