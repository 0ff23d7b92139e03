/* SPDX-License-Identifier: MIT */
/*
 * Torch files. The last byte chooses: even, the input is a whole file (any container); odd, it is
 * the pickle inside an archive that is sound otherwise, since mutations rarely keep a zip directory
 * whole.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz/fuzz.h"

#define NAME "a/data.pkl"
#define STORAGES 3u
#define STORAGE_BYTES 32u

static void put_le(uint8_t *p, uint64_t v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (uint8_t)(v >> 8 * i);
}

/* a/data.pkl with the given bytes, and a/data/0, 1, 2. */
static uint8_t *wrap(const uint8_t *pickle, size_t n, size_t *size)
{
	uint8_t *zip = calloc(1, n + 1000), *p = zip;
	uint32_t headers[STORAGES + 1];

	MUST(zip);
	for (unsigned i = 0; i <= STORAGES; i++) {
		const char name[] = {'a', '/', 'd', 'a', 't', 'a', '/', (char)('0' + i - 1)};
		size_t length = i ? sizeof name : sizeof NAME - 1;
		headers[i] = (uint32_t)(p - zip);
		put_le(p, 0x04034b50, 4);
		put_le(p + 6, 8, 2);
		put_le(p + 26, length, 2);
		memcpy(p + 30, i ? name : NAME, length);
		p += 30 + length;
		if (i == 0 && n > 0)
			memcpy(p, pickle, n);
		else if (i > 0)
			memset(p, (int)i, STORAGE_BYTES);
		p += i ? STORAGE_BYTES : n;
	}
	uint8_t *directory = p;
	for (unsigned i = 0; i <= STORAGES; i++) {
		const char name[] = {'a', '/', 'd', 'a', 't', 'a', '/', (char)('0' + i - 1)};
		size_t length = i ? sizeof name : sizeof NAME - 1;
		put_le(p, 0x02014b50, 4);
		put_le(p + 8, 8, 2);
		put_le(p + 20, i ? STORAGE_BYTES : n, 4);
		put_le(p + 24, i ? STORAGE_BYTES : n, 4);
		put_le(p + 28, length, 2);
		put_le(p + 42, headers[i], 4);
		memcpy(p + 46, i ? name : NAME, length);
		p += 46 + length;
	}
	put_le(p, 0x06054b50, 4);
	put_le(p + 8, STORAGES + 1, 2);
	put_le(p + 10, STORAGES + 1, 2);
	put_le(p + 12, (uint64_t)(p - directory), 4);
	put_le(p + 16, (uint64_t)(directory - zip), 4);
	*size = (size_t)(p + 22 - zip);
	return zip;
}

int fuzz_torch_zip(const uint8_t *data, size_t size)
{
	uint8_t *zip = NULL;
	struct slice bytes = {(const char *)data, size};

	if (size == 0)
		return 0;
	if (data[size - 1] & 1) {
		size_t whole;
		zip = wrap(data, size - 1, &whole);
		bytes = (struct slice){(const char *)zip, whole};
	}
	fuzz_document(bytes);
	free(zip);
	return 0;
}
