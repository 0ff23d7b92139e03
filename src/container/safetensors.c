/* SPDX-License-Identifier: MIT */
/*
 * safetensors: eight bytes of length, a JSON header of that length, the tensors' bytes without
 * gaps. What its own reader refuses is reported here as well, and what it lets pass unseen (two
 * tensors of one name). Source: safetensors 0.8.0, tensor.rs, tried with each kind of damage.
 */
#include <stdlib.h>

#include "base/cursor.h"
#include "base/names.h"
#include "base/size.h"
#include "base/text.h"
#include "container/document.h"
#include "container/json.h"

#define LENGTH_BYTES 8u

/* The reader's own limit on the header. */
#define HEADER_MAX 100000000u

/* A tensor of the header, and its place behind the header. */
struct entry {
	struct slice name; /* first, so that it can stand in a set of names */
	uint64_t begin, end;
};

struct reader {
	struct document *d;
	struct findings *sink;
	struct error *e;
	uint64_t data; /* offset of the first byte behind the header */
	struct slice header;
	struct val *kids; /* of the root, as they come in */
	uint32_t kid_count;
	struct entry *entries;
	size_t count;
	uint64_t unknown; /* tensors of a dtype that we do not know */
	struct slice unknown_dtype;
};

static int no_memory(struct error *e)
{
	return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for the tensors of a header");
}

/*
 * A length that fits the file, and the beginning of an object. Where the length is damaged or the
 * file cut off inside the header, the beginning of the header has to say what this is.
 */
static unsigned probe(const struct source *s, struct slice head)
{
	/* A text has no NUL; the upper half of a length has. */
	if (head.n < LENGTH_BYTES + 2 || head.p[LENGTH_BYTES] != '{' ||
		!memchr(head.p, '\0', LENGTH_BYTES))
		return 0;
	struct slice text = {head.p + LENGTH_BYTES, head.n - LENGTH_BYTES};
	uint64_t length = load_le64(head.p);
	unsigned bits = 8;
	if (slice_find(text, SLICE("\"data_offsets\"")) != SIZE_MAX ||
		slice_starts(text, SLICE("{\"__metadata__\"")))
		bits += 32;
	if (length <= HEADER_MAX && (text.p[1] == '"' || text.p[1] == '}' || text.p[1] == ' '))
		bits += length <= s->size - LENGTH_BYTES ? 40 : 32;
	return bits > 8 ? bits : 0;
}

/* Where in the file a text of the header stands. */
static uint64_t offset_of(const struct reader *r, struct slice text)
{
	uintptr_t p = (uintptr_t)text.p, first = (uintptr_t)r->header.p;

	/* A name with escapes was copied. */
	if (p < first || p - first > r->header.n)
		return PLACE_NO_OFFSET;
	return LENGTH_BYTES + (uint64_t)(p - first);
}

static struct finding *malformed(
	struct reader *r, struct slice tensor, uint64_t offset, const char *what)
{
	struct finding *f = finding_add(r->sink, FINDING_I104, "%s", what);

	finding_place(r->sink, f, r->d->name, tensor, offset);
	return f;
}

static void sizes(struct finding *f, uint64_t observed, uint64_t expected)
{
	if (observed > INT64_MAX || expected > INT64_MAX)
		return;
	f->observed = quantity_count((int64_t)observed);
	f->expected = quantity_count((int64_t)expected);
	f->unit = "bytes";
}

static int truncated(struct reader *r, uint64_t needed)
{
	uint64_t size = r->d->source.size;
	struct finding *f = finding_add(r->sink, FINDING_I102, "the file ends inside its header");

	finding_place(r->sink, f, r->d->name, (struct slice){0}, size);
	sizes(f, size, needed);
	return fail(r->e, RP_E_FORMAT, size, "the file ends inside its header");
}

/* The length and the header's text into r->header and the arena. */
static int read_header(struct reader *r)
{
	struct document *d = r->d;
	uint8_t bytes[LENGTH_BYTES];

	if (d->source.size < LENGTH_BYTES)
		return truncated(r, LENGTH_BYTES);
	int status = source_read(&d->source, 0, bytes, sizeof bytes, r->e);
	if (status < 0)
		return status;
	uint64_t length = load_le64(bytes);
	if (length > HEADER_MAX) {
		struct finding *f = malformed(r, (struct slice){0}, 0,
			"the header claims to be longer than safetensors allows");
		sizes(f, length, HEADER_MAX);
		return fail(r->e, RP_E_FORMAT, 0, "a header of %llu bytes is not possible",
			(unsigned long long)length);
	}
	if (length > d->source.size - LENGTH_BYTES)
		return truncated(r, LENGTH_BYTES + length);
	if (length > d->limits->header_bytes)
		return fail(r->e, RP_E_LIMIT, 0,
			"a header of %llu bytes; the limit header-bytes is %llu",
			(unsigned long long)length, (unsigned long long)d->limits->header_bytes);
	char *text = arena_alloc(&d->arena, (size_t)length);
	if (!text)
		return fail(r->e, RP_E_MEMORY, ERROR_NO_OFFSET,
			"no memory for a header of %llu bytes", (unsigned long long)length);
	status = source_read(&d->source, LENGTH_BYTES, text, (size_t)length, r->e);
	d->bytes = r->header = (struct slice){text, (size_t)length};
	r->data = LENGTH_BYTES + length;
	return status;
}

static int decode_header(struct reader *r, struct val *root, uint64_t *duplicates)
{
	struct document *d = r->d;
	struct error own = ERROR_INIT;

	if (!slice_starts(r->header, SLICE("{"))) {
		malformed(r, (struct slice){0}, LENGTH_BYTES, "the header does not begin with '{'");
		return fail(r->e, RP_E_FORMAT, LENGTH_BYTES, "the header does not begin with '{'");
	}
	int status = json_decode(r->header, &d->arena, d->limits, root, duplicates, &own);
	if (status == RP_OK)
		return RP_OK;
	if (status == RP_E_FORMAT) {
		struct finding *f = finding_add(r->sink, FINDING_I104,
			"the header is no JSON object: %s of the header", own.text);
		finding_place(r->sink, f, d->name, (struct slice){0}, LENGTH_BYTES + own.offset);
	}
	return fail(r->e, status,
		own.offset == ERROR_NO_OFFSET ? ERROR_NO_OFFSET : LENGTH_BYTES + own.offset,
		"the header: %s", own.text);
}

/* The only values that `__metadata__` may hold are texts. */
static void check_metadata(struct reader *r, struct val metadata)
{
	struct val key;

	if (metadata.kind == VAL_NONE)
		return;
	if (metadata.kind != VAL_DICT) {
		malformed(
			r, SLICE("__metadata__"), PLACE_NO_OFFSET, "__metadata__ is not an object");
		return;
	}
	for (uint64_t i = 0; i < val_count(metadata); i++)
		if (val_part(metadata, i, &key).kind != VAL_TEXT)
			malformed(r, val_slice(key), offset_of(r, val_slice(key)),
				"a value of __metadata__ is not a string");
	struct val format = val_get(metadata, "format");
	if (format.kind == VAL_TEXT && format.n <= 80) {
		const char *text =
			arena_printf(&r->d->arena, "format %.*s", (int)format.n, format.s);
		r->d->writer = slice_of(text);
	}
}

/* Elements narrower than a byte. */
static unsigned bits_of(struct slice name, enum dtype dtype)
{
	if (slice_is(name, "F4"))
		return 4;
	if (slice_is(name, "F6_E2M3") || slice_is(name, "F6_E3M2"))
		return 6;
	return (unsigned)dtype_size(dtype) * 8;
}

/* The three fields of a tensor's description. NULL, or what is wrong with it. */
struct description {
	struct slice dtype;
	struct val shape;
	uint64_t begin, end;
};

static const char *read_description(struct val info, struct description *out)
{
	unsigned seen[3] = {0};

	*out = (struct description){.begin = 0};
	if (info.kind != VAL_DICT)
		return "its description is not an object";
	for (uint64_t i = 0; i < val_count(info); i++) {
		struct val key, v = val_part(info, i, &key);
		if (val_is_text(key, "dtype")) {
			if (v.kind != VAL_TEXT)
				return "its dtype is not a string";
			out->dtype = val_slice(v);
			seen[0]++;
		} else if (val_is_text(key, "shape")) {
			if (v.kind != VAL_LIST)
				return "its shape is not an array";
			out->shape = v;
			seen[1]++;
		} else if (val_is_text(key, "data_offsets")) {
			if (v.kind != VAL_LIST || val_count(v) != 2 ||
				!val_to_u64(val_at(v, 0), &out->begin) ||
				!val_to_u64(val_at(v, 1), &out->end))
				return "its data_offsets are not two offsets";
			seen[2]++;
		}
	}
	if (!seen[0])
		return "it has no dtype";
	if (!seen[1])
		return "it has no shape";
	if (!seen[2])
		return "it has no data_offsets";
	if (seen[0] > 1 || seen[1] > 1 || seen[2] > 1)
		return "its description has a field twice";
	if (out->end < out->begin)
		return "its data_offsets run backwards";
	return NULL;
}

/*
 * The shape and the number of elements. As in the reader, a product that overflows on the way is an
 * error even where a later zero would make it nothing.
 */
static const char *read_shape(struct reader *r, struct val list, struct tensor *t)
{
	uint64_t count = val_count(list), numel = 1;
	int64_t *shape = arena_array(&r->d->arena, (size_t)count, sizeof *shape);

	if (!shape) {
		no_memory(r->e);
		return "no memory";
	}
	for (uint64_t i = 0; i < count; i++) {
		if (val_at(list, i).kind != VAL_INT || !val_to_i64(val_at(list, i), &shape[i]) ||
			shape[i] < 0)
			return "its shape is not made of sizes";
		if (__builtin_mul_overflow(numel, (uint64_t)shape[i], &numel) || numel > INT64_MAX)
			return "its shape has more elements than 63 bits count";
	}
	t->numel = numel;
	t->shape = shape;
	if (count <= TENSOR_MAX_DIMS) {
		t->ndim = (uint8_t)count;
	} else {
		/* Nobody has so many: what matters are the bytes. */
		shape[0] = (int64_t)numel;
		t->ndim = 1;
	}
	return NULL;
}

/* The dtype, and whether shape and dtype come to as many bytes as the offsets enclose. */
static const char *read_dtype(struct reader *r, const struct description *info, struct tensor *t)
{
	uint64_t bits, bytes = info->end - info->begin;

	t->dtype = (uint8_t)dtype_by_safetensors_name(info->dtype);
	unsigned each = bits_of(info->dtype, t->dtype);
	if (each == 0) {
		if (r->unknown++ == 0)
			r->unknown_dtype = info->dtype;
		return NULL;
	}
	if (__builtin_mul_overflow(t->numel, each, &bits))
		return "its shape and dtype take more bytes than 64 bits count";
	if (bits % 8 != 0 || bits / 8 != bytes)
		return "its data_offsets do not enclose what its shape and dtype take";
	if (t->dtype == DTYPE_F4) {
		/* Two in a byte; torch counts the pairs, and the header has twice its last
		 * dimension. */
		if (t->ndim > 0 && t->shape[t->ndim - 1] % 2 == 0) {
			int64_t *shape = arena_array(&r->d->arena, t->ndim, sizeof *shape);
			if (!shape) {
				no_memory(r->e);
				return "no memory";
			}
			memcpy(shape, t->shape, t->ndim * sizeof *shape);
			shape[t->ndim - 1] /= 2;
			t->shape = shape;
			t->numel /= 2;
		} else {
			t->dtype = DTYPE_UNKNOWN;
		}
	}
	return NULL;
}

/* One tensor of the header into the root. What is malformed is reported and left out. */
static int read_tensor(struct reader *r, struct val key, struct val info)
{
	struct description description;
	struct document *d = r->d;
	struct tensor *t = arena_new(&d->arena, struct tensor);

	if (!t)
		return no_memory(r->e);
	const char *what = read_description(info, &description);
	bool described = !what;
	if (!what)
		what = read_shape(r, description.shape, t);
	if (!what)
		what = read_dtype(r, &description, t);
	if (r->e->status < 0)
		return r->e->status;
	if (what) {
		struct finding *f =
			malformed(r, val_slice(key), offset_of(r, val_slice(key)), what);
		uint64_t bits;
		unsigned each = bits_of(description.dtype, t->dtype);
		if (t->shape && each && !__builtin_mul_overflow(t->numel, each, &bits) &&
			bits % 8 == 0)
			sizes(f, description.end - description.begin, bits / 8);
	}
	/* What says where its bytes are leaves no hole there, whatever else is wrong with it. */
	if (!described)
		return RP_OK;
	r->entries[r->count++] = (struct entry){val_slice(key), description.begin, description.end};
	if (what)
		return RP_OK;
	struct storage *s = document_storage(d);
	if (!s)
		return no_memory(r->e);
	s->name = val_slice(key);
	/* Past the end of the file where the sum would overflow, which is reported as truncated. */
	if (__builtin_add_overflow(r->data, description.begin, &s->offset))
		s->offset = STORAGE_NOT_LOCATED - 1;
	s->length = description.end - description.begin;
	s->users = 1;
	t->storage = s;
	d->tensors++;
	r->kids[r->kid_count++] = key;
	r->kids[r->kid_count++] = val_tensor(t);
	return RP_OK;
}

/* By place; equal places in the order of the names, so that reports are stable. */
static int compare_entries(const void *pa, const void *pb)
{
	const struct entry *a = pa, *b = pb;

	if (a->begin != b->begin)
		return a->begin < b->begin ? -1 : 1;
	if (a->end != b->end)
		return a->end < b->end ? -1 : 1;
	return slice_compare(a->name, b->name);
}

/* The header promises `needed` bytes, which is more than there are. */
static void report_cut(struct reader *r, uint64_t needed)
{
	uint64_t size = r->d->source.size;
	double percent = (double)size / (double)needed * 100;
	size_t cut = 0;

	for (size_t i = 0; i < r->count; i++)
		cut += !range_inside(r->data, r->entries[i].end, size);
	struct finding *f = finding_add(r->sink, FINDING_I102,
		"the file has %s%.0f %% of its declared size, %zu of %zu tensors are cut off",
		percent > 99 ? "over " : "", percent > 99 ? 99 : percent, cut, r->count);
	finding_place(r->sink, f, r->d->name, (struct slice){0}, size);
	sizes(f, size, needed);
}

/* The tensors, in the order of their places, must follow each other from 0 to the end of the file.
 */
static void check_places(struct reader *r)
{
	uint64_t at = 0, size = r->d->source.size, needed;
	struct slice last = {0};

	for (size_t i = 1; i < r->count; i++) {
		/* Most headers are in order already. */
		if (compare_entries(&r->entries[i - 1], &r->entries[i]) > 0) {
			qsort(r->entries, r->count, sizeof *r->entries, compare_entries);
			break;
		}
	}
	for (size_t i = 0; i < r->count; i++) {
		const struct entry *entry = &r->entries[i];
		if (entry->begin > at) {
			struct finding *f = finding_add(r->sink, FINDING_I104,
				"%llu bytes in front of it belong to no tensor",
				(unsigned long long)(entry->begin - at));
			finding_place(r->sink, f, r->d->name, entry->name, size_add(r->data, at));
		} else if (entry->begin < at) {
			struct finding *f = finding_add(r->sink, FINDING_I104,
				"its bytes overlap those of %s", findings_escaped(r->sink, last));
			finding_place(r->sink, f, r->d->name, entry->name,
				size_add(r->data, entry->begin));
		}
		if (entry->end > at || i == 0) {
			at = entry->end;
			last = entry->name;
		}
	}
	if (__builtin_add_overflow(r->data, at, &needed))
		needed = UINT64_MAX;
	if (needed > size) {
		report_cut(r, needed);
	} else if (needed < size) {
		struct finding *f = finding_add(r->sink, FINDING_I104,
			"%llu bytes follow the last tensor", (unsigned long long)(size - needed));
		finding_place(r->sink, f, r->d->name, (struct slice){0}, needed);
		sizes(f, size, needed);
	}
}

/*
 * JSON gives duplicates a blind eye, and so does the reader with tensors: the last one is loaded.
 * Inside a description it refuses them, and read_description() does.
 */
static int check_names(struct reader *r, struct val root)
{
	size_t count = (size_t)val_count(root);
	struct slice *texts = calloc(count, sizeof *texts);
	struct names set;
	int status = RP_OK;

	if (!texts)
		return no_memory(r->e);
	names_init(&set);
	for (size_t i = 0; i < count; i++) {
		struct val key;
		val_part(root, i, &key);
		texts[i] = val_slice(key);
		struct slice *there = names_add(&set, &texts[i]);
		if (!there) {
			status = no_memory(r->e);
			break;
		}
		if (there != &texts[i])
			malformed(r, texts[i], offset_of(r, texts[i]),
				"the header has this name twice");
	}
	names_release(&set);
	free(texts);
	return status;
}

static int read_tensors(struct reader *r, struct val root, uint64_t duplicates)
{
	struct document *d = r->d;
	size_t count = (size_t)val_count(root);
	int status = RP_OK;

	if (count > d->limits->entries)
		return fail(r->e, RP_E_LIMIT, ERROR_NO_OFFSET,
			"%zu tensors in one header; the limit entries is %llu", count,
			(unsigned long long)d->limits->entries);
	d->root = val_new(&d->arena, VAL_DICT);
	r->kids = arena_array(&d->arena, size_mul(count, 2), sizeof *r->kids);
	r->entries = calloc(count ? count : 1, sizeof *r->entries);
	if (d->root.kind == VAL_ABSENT || !r->kids || !r->entries)
		return no_memory(r->e);
	for (size_t i = 0; status == RP_OK && i < count; i++) {
		struct val key, info = val_part(root, i, &key);
		if (!val_is_text(key, "__metadata__")) {
			status = read_tensor(r, key, info);
			continue;
		}
		check_metadata(r, info);
		r->kids[r->kid_count++] = key;
		r->kids[r->kid_count++] = info;
	}
	d->root.node->kids = r->kids;
	d->root.node->count = d->root.node->capacity = r->kid_count;
	if (status == RP_OK && duplicates > 0)
		status = check_names(r, root);
	if (status < 0)
		return status;
	check_places(r);
	if (r->unknown > 0) {
		struct finding *f = finding_add(r->sink, FINDING_I104,
			"%llu tensors of an unknown dtype, such as %s: their size was not checked",
			(unsigned long long)r->unknown,
			findings_escaped(r->sink, r->unknown_dtype));
		f->severity = SEVERITY_WARNING;
		finding_place(r->sink, f, d->name, (struct slice){0}, PLACE_NO_OFFSET);
	}
	return RP_OK;
}

static int read(struct document *d, struct findings *sink, struct error *e)
{
	struct error own = ERROR_INIT;
	struct reader r = {.d = d, .sink = sink, .e = e ? e : &own};
	struct val root;
	uint64_t duplicates;

	int status = read_header(&r);
	if (status == RP_OK)
		status = decode_header(&r, &root, &duplicates);
	if (status == RP_OK)
		status = read_tensors(&r, root, duplicates);
	free(r.entries);
	return status;
}

const struct container container_safetensors = {
	.name = "safetensors",
	.summary = "safetensors",
	.probe = probe,
	.read = read,
};
