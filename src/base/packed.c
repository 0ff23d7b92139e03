/* SPDX-License-Identifier: MIT */
#include "base/packed.h"

#include <stddef.h>

const char *packed_as(struct slice head)
{
	/* clang-format off */
	static const struct {
		struct slice begin;
		const char *what;
	} kinds[] = {
		{{"\x1f\x8b", 2}, "compressed with gzip"},
		{{"\x28\xb5\x2f\xfd", 4}, "compressed with zstd"},
		{{"\xfd" "7zXZ", 5}, "compressed with xz"},
		{{"BZh", 3}, "compressed with bzip2"},
		{{"PAR1", 4}, "a Parquet file"},
		{{"ARROW1", 6}, "an Arrow file"},
		{{"SQLite format 3", 15}, "an SQLite database"},
		{{"\xff\xfe", 2}, "text in UTF-16"},
		{{"\xfe\xff", 2}, "text in UTF-16"},
	};
	/* clang-format on */

	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (slice_starts(head, kinds[i].begin))
			return kinds[i].what;
	return NULL;
}
