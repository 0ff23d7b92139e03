/* SPDX-License-Identifier: MIT */
/*
 * Journals: the tables agree with each other, whatever the budget of memory. The input is one or
 * more journals end to end, each from its prefix on. Unless the last byte is odd, the hashes of all
 * blocks are made right first, so that what is behind them is reached.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/journal.h"
#include "fuzz/fuzz.h"
#include "ledger/read_journal.h"
#include "support/ledgers.h"

#define MEMORY ((uint64_t)16 << 20)
#define FILES_MAX 4u

static void put64(uint8_t *at, uint64_t v)
{
	for (unsigned i = 0; i < 8; i++)
		at[i] = (uint8_t)(v >> 8 * i);
}

/* What blocks are hashed with: the first eight bytes of the uuid that OPEN's text has. */
static uint64_t key_of(const uint8_t *payload, size_t n)
{
	static const char name[] = "\"uuid\":\"";
	const uint8_t *p = memmem(payload, n, name, sizeof name - 1);
	uint64_t key = 0;
	unsigned digits = 0;

	for (p = p ? p + sizeof name - 1 : NULL; p && p < payload + n && digits < 16; p++) {
		char text[2] = {(char)*p, '\0'};
		if (*p == '-')
			continue;
		key |= (strtoull(text, NULL, 16) & 15) << (8 * (digits / 2) + (digits % 2 ? 0 : 4));
		digits++;
	}
	return key;
}

/* Make the hashes of a journal's blocks right, as far as their lengths lead. */
static void make_right(uint8_t *p, size_t n)
{
	uint64_t key = 0, before = 0;

	for (size_t at = JOURNAL_PREFIX_BYTES; at < n && n - at >= JOURNAL_HEAD_BYTES;) {
		uint8_t *head = p + at;
		uint32_t payload;
		memcpy(&payload, head + 16, sizeof payload);
		if (payload > n - at - JOURNAL_HEAD_BYTES)
			return;
		bool open = at == JOURNAL_PREFIX_BYTES;
		put64(head + 24, before);
		put64(head + 32,
			XXH3_64bits_withSeed(head + JOURNAL_HEAD_BYTES, payload, open ? 0 : key));
		before = XXH3_64bits_withSeed(head, 40, open ? 0 : key);
		put64(head + 40, before);
		if (open)
			key = key_of(head + JOURNAL_HEAD_BYTES, payload);
		at += JOURNAL_HEAD_BYTES + (((size_t)payload + 7) & ~(size_t)7);
	}
}

/* The journals as files of their own: their descriptors, and how many there are. */
static unsigned cut(uint8_t *p, size_t n, bool right, int fds[FILES_MAX])
{
	unsigned count = 0;

	while (n > 0 && count < FILES_MAX) {
		uint8_t *next = n > 8 ? memmem(p + 8, n - 8, JOURNAL_PREFIX, 8) : NULL;
		size_t length = next && count + 1 < FILES_MAX ? (size_t)(next - p) : n;
		if (right)
			make_right(p, length);
		fds[count] = memfd_create("journal", 0);
		MUST(fds[count] >= 0 && write(fds[count], p, length) == (ssize_t)length);
		count++;
		p += length;
		n -= length;
	}
	return count;
}

/* Read them; false where there was too much of it. */
static bool read_all(struct ledger *l, const char *const *paths, size_t n, uint64_t memory,
	const struct limits *limits)
{
	static const char *const names[] = {"1", "2", "3", "4"};
	struct ledger_options o = {.limits = limits, .memory = memory};
	struct error e = ERROR_INIT;

	int status = ledger_init(l, "journal", &o, &e);
	if (status == RP_OK && (status = journal_read(l, paths, names, n, &e)) == RP_OK)
		status = ledger_finish(l, &e);
	if (status == RP_OK)
		return true;
	fuzz_check_error(&e, status);
	ledger_release(l);
	return false;
}

int fuzz_journal(const uint8_t *data, size_t size)
{
	struct limits limits = limits_default();
	struct ledger l, spilled;
	char texts[FILES_MAX][32];
	const char *paths[FILES_MAX];
	int fds[FILES_MAX];

	if (size == 0)
		return 0;
	uint8_t *copy = malloc(size);
	MUST(copy);
	memcpy(copy, data, size);
	unsigned count = cut(copy, size, (data[size - 1] & 1) == 0, fds);
	free(copy);
	for (unsigned i = 0; i < count; i++) {
		snprintf(texts[i], sizeof texts[i], "/proc/self/fd/%d", fds[i]);
		paths[i] = texts[i];
	}
	limits.memory = MEMORY;
	limits.nodes = 10000;
	if (read_all(&l, paths, count, MEMORY, &limits)) {
		fuzz_check_ledger(&l);
		if (read_all(&spilled, paths, count, 0, &limits)) {
			MUST(!ledgers_differ(&l, &spilled, LEDGERS_ALL));
			ledger_release(&spilled);
		}
		ledger_release(&l);
	}
	for (unsigned i = 0; i < count; i++)
		close(fds[i]);
	return 0;
}
