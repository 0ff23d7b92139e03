/* SPDX-License-Identifier: MIT */
/* clang-format off */
/*
 * What Adam's moments of one lineage must obey, whatever the gradients were (Kingma and Ba, arXiv 1412.6980,
 * algorithm 1, unrolled):
 *
 *   between two states K updates apart:  v' >= beta2^K v, since v only gains squares;
 *   within one state:                    m^2 <= C v, C = (1-beta1)^2 / ((1-beta2) (1 - beta1^2/beta2)),
 *                                        by Cauchy-Schwarz, where beta1^2 < beta2.
 *
 * Both hold element by element. A violation proves another lineage, a reset, other betas or a mixed-up
 * parameter. Elements are streamed; memory is one buffer for each side.
 */
/* clang-format on */
#ifndef STATE_MOMENTS_H
#define STATE_MOMENTS_H

#include "base/error.h"
#include "state/state.h"

/* Where the files of a state lie. */
struct state_place {
	const struct state *state;
	int dirfd;
	const char *prefix;
	const struct deadline *deadline; /* for reading their elements, or NULL */
};

struct moments_outcome {
	uint64_t tensors, elements; /* looked at */
	uint64_t skipped; /* tensors that could not be: other types, views, no step counter */
	bool late;        /* the deadline came before all tensors were looked at */
	uint64_t unread;  /* of those: they could not be read */
	uint64_t broken;  /* elements that violate it */
	uint64_t broken_tensors;
	const struct state_tensor *worst;   /* of `later`, or of the one state */
	double worst_observed, worst_bound; /* the largest violation */
};

/* v' >= beta2^updates v for every parameter that both states have. */
int moments_continue(const struct state_place *earlier, const struct state_place *later,
	int64_t updates, struct moments_outcome *out, struct error *e);

/* m^2 <= C v for every parameter of a state. */
int moments_belong(const struct state_place *place, struct moments_outcome *out, struct error *e);

#endif
