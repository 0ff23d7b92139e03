/* SPDX-License-Identifier: MIT */
/*
 * What the files of the collector share among themselves: collect.c (places, facts, tensors),
 * collect_streams.c, collect_training.c, collect_weights.c, collect_walk.c, collect_totals.c.
 */
#ifndef PROFILE_COLLECT_PARTS_H
#define PROFILE_COLLECT_PARTS_H

#include "profile/collect.h"

#define COLLECT_ROWS_MAX ((size_t)1 << 28)
#define COLLECT_DEPTH 64u /* of modules and of the walk */
#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* The state's row for a document's storage, made at its first use; NO_FILE without memory. */
uint32_t collect_storage(struct collector *c, struct storage *storage);

/* A module that was saved whole; false where `v` is none. */
bool collect_module(struct collector *c, struct val v, enum tensor_role role);

/* Whether a dict looks like a module's state_dict: text keys, tensors, and names that have dots. */
bool collect_is_weights(struct val v);

bool collect_is_float(enum dtype d);

/* Whether a key may be that of generators' states. */
bool collect_names_generator(struct slice name);

/* Whether a key speaks of weights that are averages of others. */
bool collect_names_average(struct slice name);

/* A counter by its name; false where it is none. */
bool collect_counter(struct collector *c, struct slice name, struct val v);

/* The place of a counter's name among those that are known, the surest first; as many as there are
 * for another name. */
unsigned collect_counter_place(const char *name);
unsigned collect_counter_places(void);

#endif
