/* SPDX-License-Identifier: MIT */
/*
 * The directory of a zip archive, zip64 included, as an auditor must see it: entries in directory order,
 * sizes against the file, payload offsets from the local headers, duplicates and overlaps reported.
 * Source: PKWARE APPNOTE 6.3.
 */
#ifndef CONTAINER_ZIP_H
#define CONTAINER_ZIP_H

#include "base/arena.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/source.h"
#include "finding/finding.h"

struct zip_entry {
	struct slice name;
	uint64_t header;      /* offset of the local header */
	uint64_t packed, size; /* bytes stored, bytes of payload */
	uint64_t payload;     /* offset of the payload, UINT64_MAX until zip_locate() */
	uint32_t crc;         /* 0 with a non-empty payload: not computed by the writer */
	uint16_t method, flags; /* 0 stored, 8 deflate */
};

struct zip {
	struct zip_entry *entries; /* in the arena */
	size_t count;
	uint64_t directory, directory_size; /* place of the central directory */
	bool zip64;
};

/* Read the central directory. Defects that do not stop reading go to the sink under `name`. */
int zip_read(struct zip *z, const struct source *s, struct arena *a, const struct limits *limits,
	const char *name, struct findings *sink, struct error *e);

/* Work out where an entry's payload lies, from its local header: one pread. */
int zip_locate(struct zip_entry *entry, const struct source *s, struct error *e);

/* The entry called `name`, or NULL. O(count). */
struct zip_entry *zip_find(const struct zip *z, struct slice name);

/* The whole payload of a stored or deflated entry, in the arena; at most `max` bytes. */
int zip_load(struct zip_entry *entry, const struct source *s, struct arena *a, uint64_t max,
	struct slice *out, struct error *e);

#endif
