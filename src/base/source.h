/* SPDX-License-Identifier: MIT */
/*
 * A file as a source of bytes: pread, never mmap, since a mapping that is truncated under us is a
 * SIGBUS. Only regular files are opened; the size is known from the start and checked again by
 * source_check(), because checkpoints are written while we look.
 */
#ifndef BASE_SOURCE_H
#define BASE_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct source {
	int fd;           /* -1: the bytes are in memory */
	const char *name; /* as shown in errors; borrowed */
	const uint8_t *bytes;
	uint64_t size;
	uint64_t inode, device;
	int64_t mtime_ns;
};

/* Open `path`, relative to the folder `dirfd` (or AT_FDCWD). `path` must outlive the source. */
int source_open(struct source *s, int dirfd, const char *path, struct error *e);

/* Bytes in memory as a source, for embedded files and tests. Nothing is owned. */
void source_from_memory(struct source *s, const void *bytes, uint64_t size, const char *name);

void source_close(struct source *s);

/* Read exactly `n` bytes at `offset`; RP_E_FORMAT where they lie outside the file. */
int source_read(const struct source *s, uint64_t offset, void *buffer, size_t n, struct error *e);

/* Read up to `n` bytes at `offset` (fewer at the end of the file); `*got` says how many. */
int source_read_some(const struct source *s, uint64_t offset, void *buffer, size_t n, size_t *got,
	struct error *e);

/* RP_E_CHANGED when the file's size or time is no longer what it was at source_open(). */
int source_check(const struct source *s, struct error *e);

#endif
