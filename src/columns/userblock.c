/* SPDX-License-Identifier: MIT */
#include "columns/userblock.h"

#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "base/text.h"

#define FIRST_WORD "reprise "
#define NOTE "HDF5 from byte 512: h5dump, h5ls and h5py read it as it is\n"
#define VERSION_MAX 1000000u
#define READ_BYTES ((size_t)1 << 20)

bool userblock_begins(struct slice head)
{
	return slice_starts(head, SLICE(FIRST_WORD));
}

void userblock_print(const struct userblock *u, char out[USERBLOCK_BYTES])
{
	char digits[SHA256_TEXT];

	sha256_text(u->digest, digits);
	int n = snprintf(out, USERBLOCK_BYTES,
		FIRST_WORD "%s\nversion %u.%u\nbytes %llu\nsha256 %s\n" NOTE, u->kind, u->major,
		u->minor, (unsigned long long)u->bytes, digits);
	memset(out + n, '\n', USERBLOCK_BYTES - (size_t)n);
}

/* What follows `word` on the next line, without its line feed. */
static bool take_line(struct slice *text, struct slice word, struct slice *rest)
{
	const char *end = memchr(text->p, '\n', text->n);

	if (!end || !slice_starts(*text, word))
		return false;
	*rest = (struct slice){text->p + word.n, (size_t)(end - text->p) - word.n};
	*text = (struct slice){end + 1, text->n - (size_t)(end + 1 - text->p)};
	return true;
}

static bool take_kind(struct userblock *u, struct slice word)
{
	if (word.n == 0 || word.n >= sizeof u->kind)
		return false;
	for (size_t i = 0; i < word.n; i++)
		if (word.p[i] < 'a' || word.p[i] > 'z')
			return false;
	memcpy(u->kind, word.p, word.n);
	u->kind[word.n] = '\0';
	return true;
}

static bool take_version(struct userblock *u, struct slice word)
{
	size_t dot = slice_find(word, SLICE("."));
	uint64_t major, minor;

	if (dot == SIZE_MAX || !text_parse_u64((struct slice){word.p, dot}, VERSION_MAX, &major) ||
		!text_parse_u64(
			(struct slice){word.p + dot + 1, word.n - dot - 1}, VERSION_MAX, &minor))
		return false;
	u->major = (unsigned)major;
	u->minor = (unsigned)minor;
	return true;
}

static bool take_digest(struct userblock *u, struct slice word)
{
	if (word.n != SHA256_TEXT - 1)
		return false;
	for (size_t i = 0; i < SHA256_BYTES; i++) {
		int high = text_hex_digit(word.p[2 * i]), low = text_hex_digit(word.p[2 * i + 1]);
		if (high < 0 || low < 0)
			return false;
		u->digest[i] = (uint8_t)(high << 4 | low);
	}
	return true;
}

int userblock_parse(struct userblock *u, const char block[USERBLOCK_BYTES], struct error *e)
{
	struct slice text = {block, USERBLOCK_BYTES}, line;

	*u = (struct userblock){0};
	if (!take_line(&text, SLICE(FIRST_WORD), &line) || !take_kind(u, line))
		return fail(e, RP_E_FORMAT, 0, "it is no file that reprise wrote");
	if (!take_line(&text, SLICE("version "), &line) || !take_version(u, line))
		return fail(
			e, RP_E_FORMAT, (uint64_t)(text.p - block), "its version cannot be read");
	/* What follows is of this version, whose major number is all that a newer one keeps. */
	if (!take_line(&text, SLICE("bytes "), &line) ||
		!text_parse_u64(line, INT64_MAX, &u->bytes) ||
		!take_line(&text, SLICE("sha256 "), &line) || !take_digest(u, line))
		return fail(e, RP_E_FORMAT, (uint64_t)(text.p - block),
			"its length and digest cannot be read");
	return RP_OK;
}

int userblock_digest(const struct source *s, uint8_t digest[SHA256_BYTES], struct error *e)
{
	uint8_t *buffer = malloc(READ_BYTES);
	struct sha256 h;
	int status = buffer ? RP_OK : fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory to read it");

	sha256_begin(&h);
	for (uint64_t at = USERBLOCK_BYTES; status == RP_OK && at < s->size; at += READ_BYTES) {
		size_t n = s->size - at < READ_BYTES ? (size_t)(s->size - at) : READ_BYTES;
		status = source_read(s, at, buffer, n, e);
		if (status == RP_OK)
			sha256_add(&h, buffer, n);
	}
	if (!sha256_end(&h, digest) && status == RP_OK)
		status = fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "SHA-256 failed");
	free(buffer);
	return status;
}

static int check_rest(const struct userblock *u, const struct source *s, struct error *e)
{
	uint8_t digest[SHA256_BYTES];

	if (s->size - USERBLOCK_BYTES != u->bytes)
		return fail(e, RP_E_FORMAT, USERBLOCK_BYTES,
			"it was cut or added to: %llu bytes follow its first block, which says %llu",
			(unsigned long long)(s->size - USERBLOCK_BYTES),
			(unsigned long long)u->bytes);
	int status = userblock_digest(s, digest, e);
	if (status == RP_OK && memcmp(digest, u->digest, sizeof digest) != 0)
		return fail(e, RP_E_FORMAT, USERBLOCK_BYTES,
			"it is damaged: its bytes do not have the SHA-256 that its first block says");
	return status;
}

int userblock_check(struct userblock *u, const struct source *s, const char *kind, unsigned major,
	struct error *e)
{
	char block[USERBLOCK_BYTES];

	if (s->size < USERBLOCK_BYTES)
		return fail(e, RP_E_FORMAT, s->size, "it is too short: %llu bytes",
			(unsigned long long)s->size);
	int status = source_read(s, 0, block, sizeof block, e);
	struct error why = ERROR_INIT;
	if (status < 0)
		return status;
	status = userblock_parse(u, block, &why);
	/* A version that is not ours may lay the rest of its block out in another way. */
	if (u->kind[0] && strcmp(u->kind, kind) != 0)
		return fail(e, RP_E_UNSUPPORTED, ERROR_NO_OFFSET, "it is a reprise %s, not a %s",
			u->kind, kind);
	if (u->major > major)
		return fail(e, RP_E_UNSUPPORTED, ERROR_NO_OFFSET,
			"it is of version %u.%u, and this reprise reads up to %u: a newer reprise wrote it",
			u->major, u->minor, major);
	if (status < 0)
		return fail(e, why.status, why.offset, "%s", why.text);
	return check_rest(u, s, e);
}
