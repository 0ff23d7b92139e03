/* SPDX-License-Identifier: MIT */
/*
 * Versions of Python packages, parsed and ordered after PEP 440: epoch, release, pre-, post- and
 * development releases, local versions.
 */
#ifndef BASE_VERSION_H
#define BASE_VERSION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

#define VERSION_PARTS 16     /* numbers of a release, and parts of a local version, at the most */
#define VERSION_LOCAL_MAX 64 /* bytes of a local version at the most */

/* The kinds of pre-releases in their order; a release that is none comes after them. */
enum version_pre {
	VERSION_ALPHA,
	VERSION_BETA,
	VERSION_CANDIDATE,
	VERSION_FINAL,
};

struct version {
	uint64_t epoch;
	uint64_t release[VERSION_PARTS]; /* 0 behind the last one: 1.0 is 1.0.0 */
	uint64_t pre_number, post_number, dev_number;
	enum version_pre pre;
	bool post, dev;                /* whether it is one */
	char local[VERSION_LOCAL_MAX]; /* "cu121" of "2.4.0+cu121", lower case, parts joined by
					  dots; "" none */
};

/*
 * Parse the whole of `text`, in any spelling that PEP 440 takes ("v1.0-RC.2", "1.0c2", "1.0-1").
 * False where it is no version, or has more parts or larger numbers than any real one.
 */
bool version_parse(struct slice text, struct version *out);

/* Negative where `a` comes before `b`, 0 where they are equal. A local version comes after its
 * public one. */
int version_compare(const struct version *a, const struct version *b);

/* Whether `v` is an unfinished state (alpha, beta, candidate, development) of the release `of`. */
bool version_leads_to(const struct version *v, const struct version *of);

#endif
