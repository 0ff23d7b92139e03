/* SPDX-License-Identifier: MIT */
/*
 * The directory of a zip archive, zip64 included, as an auditor must see it: entries in directory
 * order, sizes against the file, payload offsets from the local headers, duplicates and overlaps
 * reported. Source: PKWARE APPNOTE 6.3.
 */
#ifndef CONTAINER_ZIP_H
#define CONTAINER_ZIP_H

#include "base/arena.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/names.h"
#include "base/source.h"
#include "finding/finding.h"

#define ZIP_NOT_LOCATED UINT64_MAX

struct zip_entry {
	struct slice name;      /* first: names_find() answers with its address */
	uint64_t header;        /* offset of the local header */
	uint64_t packed, size;  /* bytes stored, bytes of payload */
	uint64_t payload;       /* offset of the payload, or ZIP_NOT_LOCATED until zip_locate() */
	uint32_t crc;           /* see zip_crc_known() */
	uint16_t method, flags; /* 0 stored, 8 deflate */
	void *owner;            /* free for the container above */
};

struct zip {
	const struct source *source;
	const char *file; /* how findings call the file; borrowed */
	struct arena *arena;
	struct zip_entry *entries; /* in the arena */
	size_t count;
	uint64_t directory, directory_size; /* place of the central directory */
	bool zip64;
	bool truncated;     /* there is no directory: the end of the file is missing */
	uint64_t zeros;     /* zero bytes at the end of a truncated file (64 KiB are looked at) */
	struct names names; /* of the entries; of duplicates the first */
};

/*
 * Read the central directory. Defects that do not stop reading go to the sink; those that do become
 * a finding and an error, except a missing directory: `truncated` is set then, and the caller, who
 * may know how long the file should be, reports it. zip_release() in either case.
 */
int zip_read(struct zip *z, const struct source *s, struct arena *a, const struct limits *limits,
	const char *file, struct findings *sink, struct error *e);

/* Free what is not in the arena. The entries stay. */
void zip_release(struct zip *z);

/* The entry called `name` (of duplicates the first), or NULL. */
struct zip_entry *zip_find(const struct zip *z, struct slice name);

/*
 * Where an entry's payload lies, from its local header: one pread. A local header that contradicts
 * the directory is a finding; one that is none is an error too. Changes nothing; zip_locate() keeps
 * the answer in the entry. `sink` may be NULL.
 */
int zip_payload(const struct zip *z, const struct zip_entry *entry, struct findings *sink,
	uint64_t *payload, struct error *e);
int zip_locate(
	const struct zip *z, struct zip_entry *entry, struct findings *sink, struct error *e);

/* Whether the writer computed the entry's checksum: 0 for a payload says that it did not. */
static inline bool zip_crc_known(const struct zip_entry *entry)
{
	return entry->crc != 0 || entry->size == 0;
}

/*
 * The whole payload of a stored or deflated entry, in the arena; at most `max` bytes. Bytes that do
 * not match their checksum are a finding and are delivered.
 */
int zip_load(const struct zip *z, struct zip_entry *entry, uint64_t max, struct findings *sink,
	struct slice *out, struct error *e);

/*
 * The first entry of an archive without directory, as its local header tells: what can be said of a
 * truncated file. Its size is not known where the writer put it behind the payload (packed = 0).
 */
int zip_first_entry(
	const struct source *s, struct arena *a, struct zip_entry *entry, struct error *e);

#endif
