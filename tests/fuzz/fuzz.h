/* SPDX-License-Identifier: MIT */
/*
 * Fuzzing targets: functions over bytes that abort where something that must hold does not.
 * replay.c runs them over the corpus in every mode; entry.c hands one of them to libFuzzer.
 */
#ifndef FUZZ_FUZZ_H
#define FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/slice.h"
#include "finding/finding.h"
#include "value/value.h"

#define TARGET(name) int fuzz_##name(const uint8_t *data, size_t size);
#include "fuzz/targets.def"
#undef TARGET

/* Abort, and say where and why, unless `holds`. */
#define MUST(holds)                                                                                \
	do {                                                                                       \
		if (!(holds)) {                                                                    \
			fprintf(stderr, "%s:%d: must hold: %s\n", __FILE__, __LINE__, #holds);     \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

/* Texts are UTF-8 that disturbs no terminal, and the counts add up. */
void fuzz_check_findings(const struct findings *sink);

/* An error whose status is `status` and that says something printable. */
void fuzz_check_error(const struct error *e, int status);

/* A finished ledger's tables agree with each other, and its samples with them. */
struct ledger;
void fuzz_check_ledger(const struct ledger *l);

/* A number for what can be reached from `v`, the same whenever the same bytes were decoded. */
uint64_t fuzz_digest(struct val v);

/*
 * Open the bytes as a file of any format twice, look at every storage and tensor, and check that
 * both times the same came out.
 */
void fuzz_document(struct slice bytes);

/*
 * Read the bytes as a loss log called `name` twice: the tables agree with each other, and both
 * times the same came out. Lines and memory are few, so that limits are met.
 */
void fuzz_curve(const char *name, const void *bytes, size_t n);

#endif
