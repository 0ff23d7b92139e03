/* SPDX-License-Identifier: MIT */
/*
 * Torch files. The last byte chooses: even, the input is a whole file (any container); odd, it is the
 * pickle inside an archive that is sound otherwise, since mutations rarely keep a zip directory whole.
 */
#include "container/document.h"

#include <stdlib.h>
#include <string.h>

#include "base/cursor.h"
#include "base/size.h"

#define WALK_BUDGET 20000u
#define NAME "a/data.pkl"
#define STORAGES 3u
#define STORAGE_BYTES 32u

int fuzz_torch_zip(const uint8_t *data, size_t size);

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

	if (!zip)
		abort();
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

static void check_storage(const struct document *d, struct storage *s)
{
	struct error e = ERROR_INIT;
	uint8_t byte;

	if (s->missing || s->length == 0)
		return;
	if (!s->inline_bytes && document_locate(d, s, NULL, &e) == RP_OK &&
		!range_inside(s->offset, s->compressed ? 0 : s->length, d->source.size))
		abort();
	e = ERROR_INIT;
	document_read(d, s, 0, &byte, 1, &e);
	document_read(d, s, s->length - 1, &byte, 1, &e);
	e = ERROR_INIT;
	if (document_read(d, s, s->length, &byte, 1, &e) == RP_OK)
		abort();
}

static void check_tensor(const struct document *d, const struct tensor *t)
{
	uint8_t buffer[256];
	struct error e = ERROR_INIT;
	double v;
	size_t n;

	if (t->dtype == DTYPE_UNKNOWN || t->dtype >= DTYPE_COUNT || t->ndim > TENSOR_MAX_DIMS ||
		shape_numel(t->shape, t->ndim) != t->numel)
		abort();
	if (!t->storage)
		return;
	if (tensor_read_bytes(d, t, buffer, sizeof buffer, &n, &e) == RP_OK &&
		n != t->numel * dtype_size(t->dtype))
		abort();
	e = ERROR_INIT;
	if (t->numel > 0)
		tensor_read_double(d, t, t->numel - 1, &v, &e);
}

static void walk(const struct document *d, struct val v, unsigned *budget, unsigned depth)
{
	if (*budget == 0 || depth > 50)
		return;
	--*budget;
	if (v.kind == VAL_TENSOR)
		check_tensor(d, v.tensor);
	for (uint64_t i = 0; i < val_count(v) && *budget > 0; i++)
		walk(d, val_part(v, i, NULL), budget, depth + 1);
}

/* Open, look at everything; returns what a second time must be the same. */
static uint64_t open_once(struct slice bytes)
{
	struct limits limits = limits_default();
	struct document d;
	struct findings sink;
	struct error e = ERROR_INIT;
	unsigned budget = WALK_BUDGET;

	limits.memory = (uint64_t)64 << 20;
	limits.nodes = 200000;
	findings_init(&sink);
	int status = document_open_bytes(&d, bytes, "fuzz", &limits, &sink, &e);
	uint64_t outcome = (uint64_t)(int64_t)status;
	if (status == RP_OK) {
		outcome = outcome * 31 + d.tensors;
		outcome = outcome * 31 + d.storages.count;
		for (size_t i = 0; i < d.storages.count; i++)
			check_storage(&d, d.storages.items[i]);
		walk(&d, d.root, &budget, 0);
		document_close(&d);
	} else if (e.status != status || e.text[0] == '\0') {
		abort();
	}
	for (int i = 0; i < FINDING_COUNT; i++)
		outcome = outcome * 31 + sink.of_code[i];
	findings_release(&sink);
	return outcome;
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
	uint64_t first = open_once(bytes);
	if (open_once(bytes) != first)
		abort();
	free(zip);
	return 0;
}
