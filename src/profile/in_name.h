/* SPDX-License-Identifier: MIT */
/* What the names of files and folders tell: steps, epochs, ranks, launches. */
#ifndef PROFILE_IN_NAME_H
#define PROFILE_IN_NAME_H

#include <stddef.h>
#include <stdint.h>

/*
 * The number of the launch whose folder a path lies in, where launches make folders of their own: 2
 * of "logs/version_2/checkpoints" with the word "version_"; -1: none. *start and *end enclose the
 * number.
 */
int64_t launch_in_path(const char *path, const char *word, size_t *start, size_t *end);

/*
 * The number that a name gives for a step ("checkpoint-30", "step_00040.pt", "iter_0000010",
 * "epoch=1-step=12.ckpt"), or -1. Numbers that mean ranks, shards or epochs are not steps.
 */
int64_t step_in_name(const char *name);

/*
 * The number that orders checkpoints whose names give no step: the epoch ("epoch_3.pt",
 * "ep=3.ckpt"), the number before a metric ("model-03-1.2345.pt"), or a date
 * ("2026-03-01_12-30-00.pt"); or -1.
 */
int64_t place_in_name(const char *name);

/* The fold, seed or trial in a name ("fold2_epoch_3.pt"): checkpoints in which it differs are of
 * different runs; or -1. */
int64_t run_in_name(const char *name);

/* The rank in a name ("rng_state_3.pth", "rank1.pt", "dp_rank_0"), or -1. */
int32_t rank_in_name(const char *name);

#endif
