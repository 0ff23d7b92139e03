/* SPDX-License-Identifier: MIT */
/* The limits of limits.def: one struct, its defaults, and setting one by name. */
#ifndef BASE_LIMITS_H
#define BASE_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/deadline.h"
#include "base/slice.h"

struct limits {
#define LIMIT(field, name, value, text) uint64_t field;
#include "base/limits.def"
#undef LIMIT
	const struct deadline *deadline; /* after which nothing more is begun, or NULL; borrowed */
};

struct limit_row {
	const char *name, *text;
	size_t offset; /* of the field in struct limits */
	uint64_t value;
};

extern const struct limit_row limit_rows[];
extern const size_t limit_row_count;

struct limits limits_default(void);

/* Set the limit called `name`. False where there is none. */
bool limits_set(struct limits *l, struct slice name, uint64_t value);

#endif
