/* SPDX-License-Identifier: MIT */
#include "base/limits.h"

const struct limit_row limit_rows[] = {
#define LIMIT(field, name, value, text) {name, text, offsetof(struct limits, field), value},
#include "base/limits.def"
#undef LIMIT
};

const size_t limit_row_count = sizeof limit_rows / sizeof limit_rows[0];

struct limits limits_default(void)
{
	return (struct limits){
#define LIMIT(field, name, value, text) .field = (value),
#include "base/limits.def"
#undef LIMIT
	};
}

bool limits_set(struct limits *l, struct slice name, uint64_t value)
{
	for (size_t i = 0; i < limit_row_count; i++) {
		if (!slice_is(name, limit_rows[i].name))
			continue;
		memcpy((char *)l + limit_rows[i].offset, &value, sizeof value);
		return true;
	}
	return false;
}
