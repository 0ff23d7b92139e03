/* SPDX-License-Identifier: MIT */
#include "state/file_digests.h"

#include <stdio.h>
#include <stdlib.h>
#include <xxhash.h>

#include "base/source.h"

#define PATH_BYTES 4096u

/* What may not be read, or has gone or changed, has no digest; other failures are the system's. */
static int outcome(const struct error *own, struct error *e)
{
	if (own->status == RP_OK || !error_of_system(own))
		return RP_OK;
	if (e)
		*e = *own;
	return own->status;
}

static int digest_file(struct state_file *f, const char *path, int dirfd, uint8_t *buffer,
	XXH3_state_t *hash, struct error *e)
{
	struct error own = ERROR_INIT;
	struct source s;
	bool whole = true;

	if (source_open(&s, dirfd, path, &own) < 0) {
		fail_wrap(&own, "%s", f->path);
		return outcome(&own, e);
	}
	XXH3_128bits_reset(hash);
	for (uint64_t at = 0; whole && at < s.size; at += LEAF_BYTES) {
		size_t n = (size_t)(s.size - at < LEAF_BYTES ? s.size - at : LEAF_BYTES);
		whole = source_read(&s, at, buffer, n, &own) == RP_OK;
		if (whole)
			XXH3_128bits_update(hash, buffer, n);
	}
	f->digested = whole && s.size == f->size && source_check(&s, &own) == RP_OK;
	source_close(&s);
	XXH128_hash_t digest = XXH3_128bits_digest(hash);
	f->digest[0] = digest.low64;
	f->digest[1] = digest.high64;
	fail_wrap(&own, "%s", f->path);
	return outcome(&own, e);
}

/* Which files hold tensors. */
static bool *find_holders(const struct state *s)
{
	bool *holds = calloc(s->files.count + 1, sizeof *holds);

	for (size_t i = 0; holds && i < s->storages.count; i++)
		if (s->storages.items[i].file < s->files.count)
			holds[s->storages.items[i].file] = true;
	return holds;
}

int file_digests(struct state *s, int dirfd, const char *prefix, struct error *e)
{
	bool *holds = find_holders(s);
	uint8_t *buffer = malloc(LEAF_BYTES);
	XXH3_state_t *hash = XXH3_createState();
	char path[PATH_BYTES];
	bool memory = holds && buffer && hash;

	int status = RP_OK;
	for (uint32_t i = 0; memory && status == RP_OK && i < s->files.count; i++) {
		struct state_file *f = &s->files.items[i];
		int n = snprintf(path, sizeof path, "%s%s%s", prefix, *prefix ? "/" : "", f->path);
		if (n > 0 && (size_t)n < sizeof path &&
			f->size <= (holds[i] ? LEAF_BYTES : DIGESTED_BYTES))
			status = digest_file(f, path, dirfd, buffer, hash, e);
	}
	free(holds);
	free(buffer);
	XXH3_freeState(hash);
	return memory ? status
		      : fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory to digest its files");
}
