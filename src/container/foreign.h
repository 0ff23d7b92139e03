/* SPDX-License-Identifier: MIT */
/* What a file is whose format is not read: foreign.def is the table. */
#ifndef CONTAINER_FOREIGN_H
#define CONTAINER_FOREIGN_H

#include "base/slice.h"

struct foreign {
	const char *what;   /* "an HDF5 file" */
	const char *remedy; /* what makes a readable file of it, or NULL */
};

/* By the first bytes of a file; NULL where none is known. */
const struct foreign *foreign_by_head(struct slice head);

/* By a file's name, with or without folders; NULL where it tells nothing. */
const struct foreign *foreign_by_name(const char *name);

#endif
