/* SPDX-License-Identifier: MIT */
/* Files that hold a text in another form, told by their first bytes. */
#ifndef BASE_PACKED_H
#define BASE_PACKED_H

#include "base/slice.h"

/* What such a file is: "compressed with gzip", "text in UTF-16", "a Parquet file"; else NULL. */
const char *packed_as(struct slice head);

#endif
