/* SPDX-License-Identifier: MIT */
/*
 * NumPy's files: .npy, one array behind a header that is a literal of Python's, and .npz, a zip
 * archive of such files. The literal is parsed, never evaluated; an array of Python objects is a
 * pickle, which is decoded as any other and not executed. Source: numpy/lib/format.py (versions 1.0
 * to 3.0), numpy/lib/_npyio_impl.py (savez).
 */
#include <stdlib.h>
#include <string.h>

#include "base/cursor.h"
#include "base/size.h"
#include "base/text.h"
#include "container/literal.h"
#include "container/pickle.h"
#include "container/rebuild.h"
#include "container/torch.h"
#include "container/zip.h"

#define MAGIC "\x93NUMPY"
#define MAGIC_BYTES 6u
#define PREFIX_MAX 12u      /* magic, version, length */
#define TEXT_ITEM_MAX 4096u /* bytes of a text that becomes a value */
#define DESCR_DEPTH 16u

/* Where an array's file lies: in the document's source, or unpacked in the arena. */
struct span {
	const uint8_t *memory; /* NULL: at `offset` in the source */
	uint64_t offset, length;
	struct slice part; /* the entry of an archive, for findings; or empty */
	uint32_t crc;
	bool crc_known; /* of the whole span */
};

struct reader {
	struct document *d;
	struct findings *sink;
	struct error *e;
	const struct span *in;
	uint64_t data; /* where the elements begin in the span */
	struct val descr, shape;
	bool fortran;
};

static int no_memory(struct error *e)
{
	return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for an array");
}

static uint64_t file_offset(const struct span *in, uint64_t at)
{
	return in->memory ? PLACE_NO_OFFSET : in->offset + at;
}

static struct finding *found(struct reader *r, struct finding *f, uint64_t at)
{
	finding_place(r->sink, f, r->d->name, r->in->part, file_offset(r->in, at));
	return f;
}

static int malformed(struct reader *r, uint64_t at, const char *what)
{
	found(r, finding_add(r->sink, FINDING_I104, "%s", what), at);
	return fail(r->e, RP_E_FORMAT, file_offset(r->in, at), "%s", what);
}

static int truncated(struct reader *r, uint64_t need, const char *what)
{
	struct finding *f = found(r, finding_add(r->sink, FINDING_I102, "%s", what), r->in->length);

	if (need <= INT64_MAX && r->in->length <= INT64_MAX) {
		f->observed = quantity_count((int64_t)r->in->length);
		f->expected = quantity_count((int64_t)need);
		f->unit = "bytes";
	}
	f->cause = "the save was interrupted, or the copy was cut off";
	return fail(r->e, RP_E_FORMAT, file_offset(r->in, r->in->length), "%s", what);
}

static int read_span(struct reader *r, uint64_t at, void *buffer, size_t n)
{
	if (!r->in->memory)
		return source_read(&r->d->source, r->in->offset + at, buffer, n, r->e);
	memcpy(buffer, r->in->memory + at, n);
	return RP_OK;
}

/* The header's text into *out, and where the elements begin. */
static int read_header(struct reader *r, struct slice *out)
{
	uint8_t prefix[PREFIX_MAX] = {0};
	size_t first = r->in->length < PREFIX_MAX ? (size_t)r->in->length : PREFIX_MAX;
	int status = read_span(r, 0, prefix, first);

	if (status < 0)
		return status;
	if (first < MAGIC_BYTES || memcmp(prefix, MAGIC, MAGIC_BYTES) != 0)
		return malformed(r, 0, "not an .npy file: it does not begin with \\x93NUMPY");
	bool wide = prefix[6] > 1;
	size_t prefix_size = wide ? PREFIX_MAX : PREFIX_MAX - 2;
	if (r->in->length < prefix_size)
		return truncated(r, prefix_size, "the file ends inside its header");
	if (prefix[6] < 1 || prefix[6] > 3 || prefix[7] != 0)
		return fail(r->e, RP_E_UNSUPPORTED, file_offset(r->in, MAGIC_BYTES),
			"version %u.%u of the .npy format", (unsigned)prefix[6],
			(unsigned)prefix[7]);
	uint64_t length = wide ? load_le32(prefix + 8) : load_le16(prefix + 8);
	if (length > r->in->length - prefix_size)
		return truncated(r, prefix_size + length, "the file ends inside its header");
	if (length > r->d->limits->header_bytes)
		return fail(r->e, RP_E_LIMIT, file_offset(r->in, 8),
			"a header of %llu bytes; the limit header-bytes is %llu",
			(unsigned long long)length, (unsigned long long)r->d->limits->header_bytes);
	char *text = arena_alloc(&r->d->arena, (size_t)length + 1);
	if (!text)
		return no_memory(r->e);
	r->data = prefix_size + length;
	*out = (struct slice){text, (size_t)length};
	return read_span(r, prefix_size, text, (size_t)length);
}

/* A dict of exactly descr, fortran_order and shape. */
static int parse_header(struct reader *r)
{
	struct slice text;
	struct val header;
	struct error why = ERROR_INIT;
	int status = read_header(r, &text);

	if (status < 0)
		return status;
	status = literal_decode(text, &r->d->arena, &header, &why);
	if (status < 0 && why.status != RP_E_FORMAT)
		return fail(r->e, why.status, ERROR_NO_OFFSET, "%s", why.text);
	if (status < 0)
		return malformed(r, r->data - text.n + why.offset, why.text);
	r->descr = val_get(header, "descr");
	r->shape = val_get(header, "shape");
	struct val order = val_get(header, "fortran_order");
	r->fortran = order.kind == VAL_BOOL && order.i;
	if (header.kind != VAL_DICT || val_count(header) != 3 || order.kind != VAL_BOOL ||
		r->descr.kind == VAL_ABSENT || r->shape.kind != VAL_TUPLE)
		return malformed(r, r->data - text.n,
			"the header is no dict of descr, fortran_order and shape");
	return RP_OK;
}

/* ---- elements ----------------------------------------------------------------------------------
 */

static struct slice code_of(struct slice descr)
{
	bool marked = descr.n > 0 && memchr("<>|=", descr.p[0], 4);

	return marked ? (struct slice){descr.p + 1, descr.n - 1} : descr;
}

/* Bytes of one element; 0 where that is not known. */
static uint64_t item_size(struct val descr, unsigned depth)
{
	struct slice code = code_of(val_slice(descr));
	uint64_t size, all = 0;

	if (descr.kind == VAL_TEXT) {
		if (code.n < 2 ||
			!text_parse_u64((struct slice){code.p + 1, code.n - 1}, UINT32_MAX, &size))
			/* Dates carry a unit: "<M8[ns]". */
			return code.n > 2 && memchr("mM", code.p[0], 2) && code.p[1] == '8' ? 8 : 0;
		return code.p[0] == 'U' ? 4 * size : size;
	}
	if (descr.kind != VAL_LIST || depth == DESCR_DEPTH)
		return 0;
	/* (name, descr) or (name, descr, shape of a sub-array), one for each field. */
	for (uint64_t i = 0; i < val_count(descr); i++) {
		struct val field = val_at(descr, i), sub = val_at(field, 2);
		uint64_t one = item_size(val_at(field, 1), depth + 1);
		for (uint64_t k = 0; k < val_count(sub) && one > 0; k++)
			one = val_to_u64(val_at(sub, k), &size) ? size_mul(one, size) : 0;
		if (one == 0)
			return 0;
		all = size_add(all, one);
	}
	return all;
}

/* Whether an element holds a Python object somewhere. */
static bool has_objects(struct val descr, unsigned depth)
{
	if (descr.kind == VAL_TEXT)
		return slice_starts(code_of(val_slice(descr)), SLICE("O"));
	for (uint64_t i = 0; depth < DESCR_DEPTH && i < val_count(descr); i++)
		if (has_objects(val_at(val_at(descr, i), 1), depth + 1))
			return true;
	return false;
}

/* The sizes into the arena, and the number of elements. */
static int read_shape(struct reader *r, int64_t **shape, uint64_t *numel)
{
	uint64_t ndim = val_count(r->shape);

	*shape = ndim ? arena_array(&r->d->arena, (size_t)ndim, sizeof **shape) : NULL;
	if (ndim > TENSOR_MAX_DIMS)
		return malformed(r, 0, "an array of too many dimensions");
	if (ndim && !*shape)
		return no_memory(r->e);
	for (uint64_t i = 0; i < ndim; i++)
		if (val_at(r->shape, i).kind != VAL_INT ||
			!val_to_i64(val_at(r->shape, i), &(*shape)[i]))
			return malformed(r, 0, "an array whose shape cannot be read");
	*numel = shape_numel(*shape, (size_t)ndim);
	if (*numel == UINT64_MAX)
		return malformed(
			r, 0, "an array whose shape has a negative size or too many elements");
	return RP_OK;
}

/* The elements are all there, and nothing follows them. */
static int check_length(struct reader *r, uint64_t need)
{
	uint64_t there = r->in->length - r->data;

	if (need > there)
		return truncated(
			r, size_add(r->data, need), "the file ends before its last element");
	if (need == there)
		return RP_OK;
	struct finding *f = found(r,
		finding_add(r->sink, FINDING_I104, "%llu bytes follow the last element",
			(unsigned long long)(there - need)),
		r->data + need);
	f->severity = SEVERITY_WARNING;
	return RP_OK;
}

/*
 * The bytes that the tensor looks into: of an entry of an archive all of it, so that its checksum
 * holds for them, as the header's length is a multiple of every element's.
 */
static struct storage *make_storage(struct reader *r, uint64_t need, size_t item, uint64_t *first)
{
	const struct span *in = r->in;
	struct storage *s = document_storage(r->d);
	bool whole = in->crc_known && !in->memory && r->data % item == 0;

	if (!s)
		return NULL;
	s->name = in->part.n ? in->part : SLICE("array");
	*first = whole ? r->data / item : 0;
	s->length = whole ? in->length : need;
	s->crc = in->crc;
	s->crc_known = whole;
	if (in->memory)
		s->inline_bytes = in->memory + r->data;
	else
		s->offset = in->offset + (whole ? 0 : r->data);
	return s;
}

/*
 * An entry of an archive that holds no numbers (text, dates, records, pickled objects) has a
 * checksum all the same. One that was unpacked was held against it then.
 */
static int keep_checksum(struct reader *r)
{
	const struct span *in = r->in;

	if (!in->crc_known || in->memory)
		return RP_OK;
	struct storage *s = document_storage(r->d);
	if (!s)
		return no_memory(r->e);
	s->name = in->part;
	s->offset = in->offset;
	s->length = in->length;
	s->crc = in->crc;
	s->crc_known = true;
	return RP_OK;
}

static int make_tensor(struct reader *r, enum dtype dtype, bool big_endian, struct val *out)
{
	struct arena *a = &r->d->arena;
	struct tensor *t = arena_new(a, struct tensor);
	size_t item = dtype_size(dtype), ndim = (size_t)val_count(r->shape);
	int64_t *shape;

	if (!t)
		return no_memory(r->e);
	int status = read_shape(r, &shape, &t->numel);
	uint64_t need = status == RP_OK ? size_mul(t->numel, item) : 0;
	if (status == RP_OK)
		status = check_length(r, need);
	if (status < 0)
		return status;
	t->dtype = (uint8_t)dtype;
	t->ndim = (uint8_t)ndim;
	t->shape = shape;
	if (r->fortran && ndim > 1 && t->numel > 0) {
		int64_t *stride = arena_array(a, ndim, sizeof *stride);
		if (!stride)
			return no_memory(r->e);
		for (size_t i = 0; i < ndim; i++)
			stride[i] = i == 0 ? 1 : stride[i - 1] * shape[i - 1];
		t->stride = stride;
		if (tensor_is_contiguous(t))
			t->stride = NULL;
	}
	t->storage = make_storage(r, need, item, &t->first);
	if (!t->storage)
		return no_memory(r->e);
	t->storage->big_endian = big_endian;
	t->storage->users = 1;
	r->d->tensors++;
	*out = val_tensor(t);
	return RP_OK;
}

/* ---- what is no number -------------------------------------------------------------------------
 */

/* Append a code point of an array of text. */
static void add_point(struct strbuf *b, uint32_t point)
{
	char utf8[4];

	if (point <= 0x10ffff)
		strbuf_add(b, utf8, text_utf8_put(utf8, point));
}

/* One text, such as the name of a bit generator. NUL ends it, as NumPy has it. */
static int make_text(struct reader *r, char kind, bool big_endian, uint64_t size, struct val *out)
{
	uint8_t bytes[TEXT_ITEM_MAX];
	struct strbuf b;
	int status = read_span(r, r->data, bytes, (size_t)size);

	if (status < 0)
		return status;
	strbuf_init(&b, (size_t)size + 1);
	size_t unit = kind == 'U' ? 4 : 1;
	for (size_t i = 0; i + unit <= size; i += unit) {
		uint32_t point = unit == 1 ? bytes[i] : load_le32(bytes + i);
		if (unit == 4 && big_endian)
			point = __builtin_bswap32(point);
		if (point == 0)
			break;
		add_point(&b, point);
	}
	char *copy = b.failed ? NULL : arena_strdup(&r->d->arena, strbuf_slice(&b));
	if (copy)
		*out = val_text((struct slice){copy, b.n});
	strbuf_release(&b);
	return copy ? RP_OK : no_memory(r->e);
}

/* Text, dates, records: a dict of what the header says of them. */
static int make_described(struct reader *r, struct val *out)
{
	struct arena *a = &r->d->arena;

	*out = val_new(a, VAL_DICT);
	if (out->kind != VAL_DICT || !node_push(a, out->node, val_text(SLICE("descr"))) ||
		!node_push(a, out->node, r->descr) ||
		!node_push(a, out->node, val_text(SLICE("shape"))) ||
		!node_push(a, out->node, r->shape))
		return no_memory(r->e);
	return RP_OK;
}

static int make_other(struct reader *r, bool big_endian, struct val *out)
{
	struct slice code = code_of(val_slice(r->descr));
	uint64_t numel, item = item_size(r->descr, 0);
	int64_t *shape;
	int status = read_shape(r, &shape, &numel);

	if (status == RP_OK && item > 0)
		status = check_length(r, size_mul(numel, item));
	if (status < 0)
		return status;
	if (numel == 1 && code.n > 0 && memchr("US", code.p[0], 2) && item > 0 &&
		item <= TEXT_ITEM_MAX)
		return make_text(r, code.p[0], big_endian, item, out);
	return make_described(r, out);
}

/* An array of Python objects is a pickle of itself. */
static int make_objects(struct reader *r, struct val *out)
{
	struct document *d = r->d;
	uint64_t size = r->in->length - r->data;
	struct rebuild rebuild;

	if (size > d->limits->pickle_bytes)
		return fail(r->e, RP_E_LIMIT, ERROR_NO_OFFSET,
			"a pickle of %llu bytes; the limit pickle-bytes is %llu",
			(unsigned long long)size, (unsigned long long)d->limits->pickle_bytes);
	char *bytes = arena_alloc(&d->arena, (size_t)size);
	if (size > 0 && !bytes)
		return no_memory(r->e);
	int status = read_span(r, r->data, bytes, (size_t)size);
	if (status < 0)
		return status;
	found(r,
		finding_add(r->sink, FINDING_I116,
			"an array of Python objects: a pickle, which NumPy loads with allow_pickle=True alone"),
		r->data);
	rebuild_init(&rebuild, d, r->sink);
	struct pickle p = {.arena = &d->arena,
		.limits = d->limits,
		.base = r->in->memory ? 0 : r->in->offset + r->data};
	struct error why = ERROR_INIT;
	status = pickle_decode(&p, (struct slice){bytes, (size_t)size}, &why);
	pickle_judge(&p, d->name, r->sink);
	if (status < 0) {
		char *part = arena_strdup(&d->arena, r->in->part);
		torch_pickle_failed(d, r->sink, part ? part : "", p.truncated, &why, r->e);
	} else {
		*out = p.root;
		d->pickle_protocol = p.protocol;
		torch_take_classes(d, &p);
		status = rebuild_graph(&rebuild, out, r->e);
		/* What was no array before np.save() made one of it. */
		if (status == RP_OK && val_count(r->shape) == 0 && out->kind == VAL_LIST &&
			val_count(*out) == 1)
			*out = val_at(*out, 0);
	}
	pickle_release(&p);
	rebuild_release(&rebuild);
	return status;
}

static int read_array(struct document *d, const struct span *in, struct findings *sink,
	struct val *out, struct error *e)
{
	struct reader r = {.d = d, .sink = sink, .e = e, .in = in};
	int status = parse_header(&r);

	if (status < 0)
		return status;
	struct slice descr = val_slice(r.descr);
	bool big_endian = slice_starts(descr, SLICE(">"));
	enum dtype dtype =
		r.descr.kind == VAL_TEXT ? dtype_by_numpy_code(code_of(descr)) : DTYPE_UNKNOWN;
	if (dtype != DTYPE_UNKNOWN)
		return make_tensor(&r, dtype, big_endian, out);
	status = keep_checksum(&r);
	if (status < 0)
		return status;
	return has_objects(r.descr, 0) ? make_objects(&r, out) : make_other(&r, big_endian, out);
}

/* ---- .npy --------------------------------------------------------------------------------------
 */

static unsigned probe_npy(const struct source *s, struct slice head)
{
	(void)s;
	return slice_starts(head, (struct slice){MAGIC, MAGIC_BYTES}) ? 48 : 0;
}

static int read_npy(struct document *d, struct findings *sink, struct error *e)
{
	return read_array(d, &(struct span){.length = d->source.size}, sink, &d->root, e);
}

const struct container container_npy = {
	.name = "npy",
	.summary = "NumPy array (numpy.save)",
	.probe = probe_npy,
	.read = read_npy,
};

/* ---- .npz --------------------------------------------------------------------------------------
 */

#define LOCAL_HEADER 30u

/* A zip archive whose first entry is an .npy file. */
static unsigned probe_npz(const struct source *s, struct slice head)
{
	(void)s;
	if (head.n < LOCAL_HEADER || !slice_starts(head, SLICE("PK\3\4")))
		return 0;
	struct slice name = {head.p + LOCAL_HEADER, load_le16(head.p + 26)};
	return name.n <= head.n - LOCAL_HEADER && slice_ends(name, SLICE(".npy")) ? 40 : 0;
}

static int span_of(struct zip *z, struct zip_entry *entry, struct span *in, struct findings *sink,
	const struct limits *limits, struct error *e)
{
	struct slice bytes;
	int status;

	*in = (struct span){.part = entry->name,
		.length = entry->size,
		.crc = entry->crc,
		.crc_known = zip_crc_known(entry)};
	if (entry->method == 0 && !(entry->flags & 1)) {
		status = zip_locate(z, entry, sink, e);
		in->offset = entry->payload;
		return status;
	}
	status = zip_load(z, entry, limits->pickle_bytes, sink, &bytes, e);
	in->memory = (const uint8_t *)bytes.p;
	return status;
}

/* The arrays under their names. One that is damaged is told and left out. */
static int read_entries(struct document *d, struct zip *z, struct findings *sink, struct error *e)
{
	size_t usable = 0;

	for (size_t i = 0; i < z->count; i++) {
		struct zip_entry *entry = &z->entries[i];
		struct error own = ERROR_INIT;
		struct span in;
		struct val array;
		if (!slice_ends(entry->name, SLICE(".npy")))
			continue;
		int status = span_of(z, entry, &in, sink, d->limits, &own);
		if (status == RP_OK)
			status = read_array(d, &in, sink, &array, &own);
		if (status == RP_E_FORMAT) {
			fail(e, status, own.offset, "%s", own.text);
			continue;
		}
		struct slice name = {entry->name.p, entry->name.n - 4};
		if (status < 0)
			return fail(e, status, own.offset, "%s", own.text);
		if (!node_push(&d->arena, d->root.node, val_text(name)) ||
			!node_push(&d->arena, d->root.node, array))
			return no_memory(e);
		usable++;
	}
	if (usable == 0 && e && e->status < 0)
		return e->status;
	if (e)
		*e = ERROR_INIT;
	return RP_OK;
}

static int read_npz(struct document *d, struct findings *sink, struct error *e)
{
	struct zip z = {0};
	int status = zip_read(&z, &d->source, &d->arena, d->limits, d->name, sink, e);

	if (z.truncated) {
		struct finding *f = finding_add(sink, FINDING_I102,
			"the file ends after %llu bytes, without the zip directory that stands last",
			(unsigned long long)d->source.size);
		finding_place(sink, f, d->name, (struct slice){0}, d->source.size);
		f->cause = "the save was interrupted, or the copy was cut off";
	}
	if (status == RP_OK) {
		d->root = val_new(&d->arena, VAL_DICT);
		status = d->root.kind == VAL_DICT ? read_entries(d, &z, sink, e) : no_memory(e);
	}
	zip_release(&z);
	return status;
}

const struct container container_npz = {
	.name = "npz",
	.summary = "NumPy archive of arrays (numpy.savez)",
	.probe = probe_npz,
	.read = read_npz,
};
