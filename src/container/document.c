/* SPDX-License-Identifier: MIT */
#include "container/document.h"

#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "base/text.h"
#include "container/foreign.h"

#define HEAD_BYTES 4096u
#define STORAGES_MAX ((size_t)UINT32_MAX)

/*
 * A strided tensor is gathered from a copy of the stretch that it touches, if that is short or not
 * much longer than the tensor; else through a window.
 */
#define STRETCH_SHORT 65536u
#define STRETCH_FACTOR 8u
#define WINDOW_BYTES 4096u

const struct container *const containers[] = {
#define CONTAINER(id) &container_##id,
#include "container/containers.def"
#undef CONTAINER
	NULL,
};

/* The pointer file of Git LFS: lines of key and value; "size" is that of the real file. */
static bool lfs_size(struct slice head, uint64_t *size)
{
	size_t at = slice_find(head, SLICE("\nsize "));

	if (at == SIZE_MAX)
		return false;
	struct slice rest = {head.p + at + 6, head.n - at - 6};
	size_t end = slice_find(rest, SLICE("\n"));
	rest.n = end == SIZE_MAX ? rest.n : end;
	return text_parse_u64(rest, UINT64_MAX, size);
}

/* The size in a git-annex key, "SHA256E-s1048576--9f86….pt", or false. */
static bool annex_size(struct slice head, uint64_t *size)
{
	size_t at = slice_find(head, SLICE("-s"));

	if (at == SIZE_MAX)
		return false;
	struct slice rest = {head.p + at + 2, head.n - at - 2};
	size_t end = slice_find(rest, SLICE("-"));
	rest.n = end == SIZE_MAX ? 0 : end;
	return text_parse_u64(rest, UINT64_MAX, size);
}

static bool all_zero(struct slice s)
{
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] != 0)
			return false;
	return true;
}

/* Something else in the file's place: no format to blame, but the copy. */
static int check_placeholder(
	const struct document *d, struct slice head, struct findings *sink, struct error *e)
{
	const char *what = NULL, *remedy = NULL;
	uint64_t promised = 0;
	bool sized = false;

	if (head.n == 0) {
		what = "an empty file";
	} else if (slice_starts(head, SLICE("version https://git-lfs.github.com/spec/"))) {
		what = "a Git LFS pointer, not the file that it stands for";
		remedy = "fetch the file: git lfs pull";
		sized = lfs_size(head, &promised);
	} else if (head.n < HEAD_BYTES &&
		   (slice_starts(head, SLICE("/annex/objects/")) ||
			   slice_find(head, SLICE(".git/annex/objects/")) != SIZE_MAX)) {
		what = "a git-annex pointer, not the file that it stands for";
		remedy = "fetch the file: git annex get";
		sized = annex_size(head, &promised);
	} else if (head.n >= 8 && all_zero(head)) {
		what = "zeros in place of a header: the space was reserved, the bytes were never written";
	}
	if (!what)
		return RP_OK;
	struct finding *f = sized ? finding_add(sink, FINDING_I114, "%s (%llu bytes)", what,
					    (unsigned long long)promised)
				  : finding_add(sink, FINDING_I114, "%s", what);
	finding_place(sink, f, d->name, (struct slice){0}, PLACE_NO_OFFSET);
	f->remedy = remedy;
	if (sized && promised <= INT64_MAX) {
		f->observed = quantity_count((int64_t)d->source.size);
		f->expected = quantity_count((int64_t)promised);
		f->unit = "bytes";
	}
	return fail(e, RP_E_FORMAT, ERROR_NO_OFFSET, "%s", what);
}

static const struct container *probe(const struct source *s, struct slice head)
{
	const struct container *best = NULL;
	unsigned most = 0;

	for (size_t i = 0; containers[i]; i++) {
		unsigned bits = containers[i]->probe(s, head);
		if (bits > most) {
			most = bits;
			best = containers[i];
		}
	}
	return best;
}

static int read_head(const struct source *s, char *buffer, struct slice *head, struct error *e)
{
	size_t got = 0;
	int status = source_read_some(s, 0, buffer, HEAD_BYTES, &got, e);

	*head = (struct slice){buffer, got};
	return status;
}

const struct container *document_probe(const struct source *s, struct error *e)
{
	char buffer[HEAD_BYTES];
	struct slice head;

	if (read_head(s, buffer, &head, e) < 0)
		return NULL;
	return probe(s, head);
}

static int document_init(
	struct document *d, const char *name, const struct limits *limits, struct error *e)
{
	*d = (struct document){
		.source = {.fd = -1}, .name = name, .limits = limits, .pickle_protocol = -1};
	arena_init(&d->arena, limits->memory > SIZE_MAX ? SIZE_MAX : (size_t)limits->memory);
	d->trouble = arena_new(&d->arena, struct error);
	if (!d->trouble)
		return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory to read it");
	*d->trouble = ERROR_INIT;
	return RP_OK;
}

/* Decode the open source. A change of the file meanwhile explains whatever went wrong. */
static int decode(struct document *d, struct findings *sink, struct error *e)
{
	char buffer[HEAD_BYTES];
	struct slice head;
	struct error changed = ERROR_INIT;

	int status = read_head(&d->source, buffer, &head, e);
	if (status == RP_OK)
		status = check_placeholder(d, head, sink, e);
	if (status < 0)
		return status;
	d->container = probe(&d->source, head);
	if (!d->container) {
		const struct foreign *is = foreign_by_head(head);
		if (!is)
			is = foreign_by_name(d->name);
		return fail(e, RP_E_UNSUPPORTED, ERROR_NO_OFFSET,
			"not a format that reprise reads%s%s%s%s", is ? ": " : "",
			is ? is->what : "", is && is->remedy ? "; " : "",
			is && is->remedy ? is->remedy : "");
	}
	status = d->container->read(d, sink, e);
	if (source_check(&d->source, &changed) < 0) {
		if (e)
			*e = changed;
		return changed.status;
	}
	return status;
}

int document_open(struct document *d, int dirfd, const char *path, const char *name,
	const struct limits *limits, struct findings *sink, struct error *e)
{
	int status = document_init(d, name, limits, e);
	if (status == RP_OK)
		status = source_open(&d->source, dirfd, path, e);
	if (status == RP_OK)
		status = decode(d, sink, e);
	if (status < 0)
		document_close(d);
	return status;
}

int document_open_bytes(struct document *d, struct slice bytes, const char *name,
	const struct limits *limits, struct findings *sink, struct error *e)
{
	int status = document_init(d, name, limits, e);
	source_from_memory(&d->source, bytes.p, bytes.n, name);
	if (status == RP_OK)
		status = decode(d, sink, e);
	if (status < 0)
		document_close(d);
	return status;
}

int document_load(
	struct document *d, const char *what, const char *limit, uint64_t max, struct error *e)
{
	uint64_t size = d->source.size;

	if (size > max)
		return fail(e, RP_E_LIMIT, ERROR_NO_OFFSET,
			"%s of %llu bytes; the limit %s is %llu", what, (unsigned long long)size,
			limit, (unsigned long long)max);
	char *bytes = arena_alloc(&d->arena, (size_t)size);
	if (!bytes)
		return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for %llu bytes",
			(unsigned long long)size);
	int status = source_read(&d->source, 0, bytes, (size_t)size, e);
	if (status == RP_OK)
		d->bytes = (struct slice){bytes, (size_t)size};
	return status;
}

void document_close(struct document *d)
{
	source_close(&d->source);
	array_release(&d->storages);
	array_release(&d->classes);
	arena_release(&d->arena);
	*d = (struct document){.source = {.fd = -1}, .pickle_protocol = -1};
}

struct storage *document_storage(struct document *d)
{
	struct storage *s = arena_new(&d->arena, struct storage);

	if (!s)
		return NULL;
	struct storage **place = array_push(&d->storages, STORAGES_MAX);
	if (!place)
		return NULL;
	*place = s;
	s->index = (uint32_t)(d->storages.count - 1);
	return s;
}

/* Remember what the system refused, and give the status back. */
static int note_trouble(const struct document *d, int status, struct error *e, struct error *own)
{
	bool ours = status == RP_E_FORMAT || status == RP_E_UNSUPPORTED || status == RP_E_NOT_FOUND;

	if (status < 0 && !ours && d->trouble->status == RP_OK)
		*d->trouble = *own;
	if (status < 0 && e && e->status == RP_OK)
		*e = *own;
	return status;
}

static int locate(const struct document *d, const struct storage *s, struct findings *sink,
	uint64_t *offset, struct error *e)
{
	*offset = s->offset;
	if (s->offset != STORAGE_NOT_LOCATED)
		return RP_OK;
	if (!d->container->locate)
		return fail(e, RP_E_INTERNAL, ERROR_NO_OFFSET, "a storage has no place");
	return d->container->locate(d, s, sink, offset, e);
}

int document_locate(
	const struct document *d, struct storage *s, struct findings *sink, struct error *e)
{
	struct error own = ERROR_INIT;
	uint64_t offset;

	if (s->missing || s->inline_bytes)
		return RP_OK;
	int status = locate(d, s, sink, &offset, &own);
	if (status == RP_OK)
		s->offset = offset;
	return note_trouble(d, status, e, &own);
}

int document_read(const struct document *d, const struct storage *s, uint64_t at, void *buffer,
	size_t n, struct error *e)
{
	struct error own = ERROR_INIT;
	uint64_t offset;

	if (s->missing)
		return fail(e, RP_E_NOT_FOUND, ERROR_NO_OFFSET, "the file has no %.*s",
			(int)(s->name.n < 80 ? s->name.n : 80), s->name.p);
	if (!range_inside(at, n, s->length))
		return fail(e, RP_E_FORMAT, ERROR_NO_OFFSET,
			"%zu bytes at %llu of a storage of %llu bytes", n, (unsigned long long)at,
			(unsigned long long)s->length);
	if (s->inline_bytes) {
		memcpy(buffer, s->inline_bytes + at, n);
		return RP_OK;
	}
	if (s->compressed)
		return fail(e, RP_E_UNSUPPORTED, ERROR_NO_OFFSET,
			"tensor bytes that are compressed inside the archive are not read");
	int status = locate(d, s, NULL, &offset, &own);
	if (status == RP_OK)
		status = source_read(&d->source, offset + at, buffer, n, &own);
	return note_trouble(d, status, e, &own);
}

static int read_element(const struct document *d, const struct tensor *t, uint64_t i,
	uint8_t element[16], struct error *e)
{
	size_t size = dtype_size(t->dtype);
	uint64_t at;

	if (i >= t->numel)
		return fail(e, RP_E_ARGUMENT, ERROR_NO_OFFSET, "element %llu of %llu",
			(unsigned long long)i, (unsigned long long)t->numel);
	if (!t->storage)
		return fail(e, RP_E_NOT_FOUND, ERROR_NO_OFFSET, "a meta tensor has no bytes");
	if (__builtin_mul_overflow(tensor_element(t, i), size, &at))
		return fail(e, RP_E_FORMAT, ERROR_NO_OFFSET, "an element lies outside its storage");
	return document_read(d, t->storage, at, element, size, e);
}

static int no_number(const struct tensor *t, struct error *e)
{
	return fail(e, RP_E_UNSUPPORTED, ERROR_NO_OFFSET,
		"an element of %s is no number of this kind, or does not fit",
		dtype_rows[t->dtype].name);
}

int tensor_read_double(
	const struct document *d, const struct tensor *t, uint64_t i, double *out, struct error *e)
{
	uint8_t element[16];
	int status = read_element(d, t, i, element, e);

	if (status < 0)
		return status;
	if (!dtype_to_double(t->dtype, element, t->storage->big_endian, out))
		return no_number(t, e);
	if (t->negative)
		*out = -*out;
	return RP_OK;
}

int tensor_read_i64(
	const struct document *d, const struct tensor *t, uint64_t i, int64_t *out, struct error *e)
{
	uint8_t element[16];
	int status = read_element(d, t, i, element, e);

	if (status < 0)
		return status;
	if (!dtype_to_i64(t->dtype, element, t->storage->big_endian, out))
		return no_number(t, e);
	if (t->negative && __builtin_sub_overflow((int64_t)0, *out, out))
		return no_number(t, e);
	return RP_OK;
}

/* To native order, by halves for complex numbers. */
static void swap_elements(uint8_t *p, uint64_t count, enum dtype dtype)
{
	size_t size = dtype_size(dtype);

	if (dtype_rows[dtype].kind == DTYPE_KIND_COMPLEX) {
		size /= 2;
		count *= 2;
	}
	for (; size > 1 && count > 0; count--, p += size)
		for (size_t i = 0; i < size / 2; i++) {
			uint8_t byte = p[i];
			p[i] = p[size - 1 - i];
			p[size - 1 - i] = byte;
		}
}

/*
 * Gather a strided tensor in C order. `window` holds the stretch [begin, begin + length) of the
 * storage and moves when an element lies outside it.
 */
static int gather(const struct document *d, const struct tensor *t, uint8_t *out, uint8_t *window,
	size_t capacity, uint64_t begin, struct error *e)
{
	size_t size = dtype_size(t->dtype), length = 0;

	for (uint64_t i = 0; i < t->numel; i++, out += size) {
		uint64_t at;
		if (__builtin_mul_overflow(tensor_element(t, i), size, &at) ||
			!range_inside(at, size, t->storage->length))
			return fail(e, RP_E_FORMAT, ERROR_NO_OFFSET,
				"an element lies outside its storage");
		if (length == 0 || at < begin || at - begin > length - size) {
			/* The first window starts where the caller said, the others at the element.
			 */
			if (length > 0 || at < begin || at - begin > capacity - size)
				begin = at;
			uint64_t rest = t->storage->length - begin;
			length = rest < capacity ? (size_t)rest : capacity;
			int status = document_read(d, t->storage, begin, window, length, e);
			if (status < 0)
				return status;
		}
		memcpy(out, window + (at - begin), size);
	}
	return RP_OK;
}

int tensor_read_bytes(const struct document *d, const struct tensor *t, uint8_t *buffer, size_t max,
	size_t *n, struct error *e)
{
	size_t size = dtype_size(t->dtype);
	uint64_t bytes, reach = tensor_reach(t);
	int status;

	*n = 0;
	if (!t->storage)
		return fail(e, RP_E_NOT_FOUND, ERROR_NO_OFFSET, "a meta tensor has no bytes");
	if (__builtin_mul_overflow(t->numel, size, &bytes) || bytes > max)
		return fail(e, RP_E_LIMIT, ERROR_NO_OFFSET,
			"a tensor of %llu elements does not fit %zu bytes",
			(unsigned long long)t->numel, max);
	if (reach > t->storage->length && !t->storage->missing)
		return fail(
			e, RP_E_FORMAT, ERROR_NO_OFFSET, "a tensor reaches outside its storage");
	if (bytes == 0)
		return RP_OK;
	if (tensor_is_contiguous(t)) {
		status = document_read(d, t->storage, t->first * size, buffer, (size_t)bytes, e);
	} else {
		/* A transposed matrix jumps through its whole stretch: read that at once. */
		uint64_t begin = t->first * size, stretch = reach - begin;
		bool whole = stretch <= STRETCH_SHORT ||
			     stretch <= size_mul((size_t)bytes, STRETCH_FACTOR);
		size_t capacity = whole ? (size_t)stretch : WINDOW_BYTES;
		uint8_t *window = malloc(capacity);
		if (!window)
			return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory");
		status = gather(d, t, buffer, window, capacity, begin, e);
		free(window);
	}
	if (status < 0)
		return status;
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	bool foreign = !t->storage->big_endian;
#else
	bool foreign = t->storage->big_endian;
#endif
	if (foreign)
		swap_elements(buffer, t->numel, t->dtype);
	*n = (size_t)bytes;
	return RP_OK;
}
