/* SPDX-License-Identifier: MIT */
#include "container/foreign.h"

#include <string.h>

static const struct {
	size_t offset;
	struct slice magic;
	struct foreign is;
} by_magic[] = {
#define MAGIC(offset, bytes, what, remedy) {offset, {bytes, sizeof(bytes) - 1}, {what, remedy}},
#define NAMED(ending, what, remedy)
#include "container/foreign.def"
#undef MAGIC
#undef NAMED
};

static const struct {
	struct slice ending;
	struct foreign is;
} by_name[] = {
#define MAGIC(offset, bytes, what, remedy)
#define NAMED(ending, what, remedy) {{ending, sizeof(ending) - 1}, {what, remedy}},
#include "container/foreign.def"
#undef MAGIC
#undef NAMED
};

const struct foreign *foreign_by_head(struct slice head)
{
	for (size_t i = 0; i < sizeof by_magic / sizeof *by_magic; i++) {
		size_t offset = by_magic[i].offset;
		if (head.n > offset &&
			slice_starts((struct slice){head.p + offset, head.n - offset},
				by_magic[i].magic))
			return &by_magic[i].is;
	}
	return NULL;
}

const struct foreign *foreign_by_name(const char *name)
{
	const char *slash = strrchr(name, '/');
	struct slice last = slice_of(slash ? slash + 1 : name);

	/* An ending needs something before it: ".index" alone is a hidden file. */
	for (size_t i = 0; i < sizeof by_name / sizeof *by_name; i++) {
		struct slice ending = by_name[i].ending;
		if (slice_ends(last, ending) && (last.n > ending.n) == (*ending.p == '.'))
			return &by_name[i].is;
	}
	return NULL;
}
