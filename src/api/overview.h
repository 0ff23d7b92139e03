/* SPDX-License-Identifier: MIT */
/* Tables and lines that several commands show of a state. */
#ifndef API_OVERVIEW_H
#define API_OVERVIEW_H

#include "report/report.h"
#include "state/relate.h"

/* "transformers 4.57 · 103.9 M parameters · step 2 500 of 10 000 · epoch 0.25 · lr 2.7e-4" */
const char *overview_line(struct report *r, const struct state *s);

/* The input row of a state. */
void overview_input(struct report *r, const struct state *s, const char *role);

/* The table of a state's streams, each with what is known of its seed. */
void overview_streams(struct report *r, const struct state *s, const struct stream_pairs *alone);

/* "advanced by 120 draws (2.0 a step)": a relation in words; `steps` 0: not known. */
const char *overview_relation(struct report *r, const struct rng_relation *relation, int64_t steps);

/* "seed 42, 36 draws since": what is known of one side of a relation. */
const char *overview_seed(struct report *r, const struct rng_state *body, bool known, uint64_t seed,
	uint64_t since_seed);

#endif
