/* SPDX-License-Identifier: MIT */
/*
 * safetensors files. The last byte chooses: even, the input is the file; odd, the length of the
 * header is made right first, since mutations of a header rarely keep it so: the two bytes before
 * the last say how many bytes follow the header.
 */
#include "container/document.h"

#include <stdlib.h>

#include "base/cursor.h"
#include "base/size.h"
#include "fuzz/fuzz.h"

static void check_tensor(const struct document *d, const struct tensor *t, bool sound)
{
	const struct storage *s = t->storage;
	struct error e = ERROR_INIT;
	uint8_t bytes[256];
	size_t n;

	if (!s || s->index >= d->storages.count || d->storages.items[s->index] != s)
		abort();
	if (t->ndim > TENSOR_MAX_DIMS || shape_numel(t->shape, t->ndim) != t->numel)
		abort();
	if (t->dtype != DTYPE_UNKNOWN && tensor_reach(t) != s->length)
		abort();
	if (!sound)
		return;
	if (!range_inside(s->offset, s->length, d->source.size))
		abort();
	if (t->dtype != DTYPE_UNKNOWN && s->length <= sizeof bytes &&
		(tensor_read_bytes(d, t, bytes, sizeof bytes, &n, &e) < 0 || n != s->length))
		abort();
}

static void check(const struct document *d, const struct findings *sink)
{
	bool sound = sink->list.count == 0;
	uint64_t tensors = 0, length = 0;
	struct val key;

	if (d->root.kind != VAL_DICT)
		abort();
	for (uint64_t i = 0; i < val_count(d->root); i++) {
		struct val v = val_part(d->root, i, &key);
		if (key.kind != VAL_TEXT)
			abort();
		if (v.kind != VAL_TENSOR) {
			if (!val_is_text(key, "__metadata__"))
				abort();
			continue;
		}
		check_tensor(d, v.tensor, sound);
		tensors++;
		length += v.tensor->storage->length;
	}
	if (tensors != d->tensors || tensors != d->storages.count)
		abort();
	/* Without a finding, every byte belongs to exactly one of the header and the tensors. */
	if (sound && 8 + d->bytes.n + length != d->source.size)
		abort();
}

int fuzz_safetensors(const uint8_t *data, size_t size)
{
	struct limits limits = limits_default();
	struct findings sink;
	struct error e = ERROR_INIT;
	struct document d;
	uint8_t *file = NULL;

	if (size > 3 && data[size - 1] % 2 == 1) {
		size_t behind = load_le16(data + size - 3), n = size - 3;
		if (behind > n)
			behind = n;
		file = malloc(n + 8);
		if (!file)
			abort();
		for (int i = 0; i < 8; i++)
			file[i] = (uint8_t)((uint64_t)(n - behind) >> 8 * i);
		memcpy(file + 8, data, n);
		data = file;
		size = n + 8;
	}
	findings_init(&sink);
	int status = document_open_bytes(
		&d, (struct slice){(const char *)data, size}, "f", &limits, &sink, &e);
	if (status == RP_OK) {
		if (d.container == &container_safetensors)
			check(&d, &sink);
		document_close(&d);
	} else if (status != e.status || !e.text[0]) {
		abort();
	}
	if (sink.lost)
		abort();
	findings_release(&sink);
	free(file);
	return 0;
}
