/* SPDX-License-Identifier: MIT */
#include "container/rebuild.h"

#include <stdlib.h>
#include <string.h>

#include "base/cursor.h"
#include "base/size.h"
#include "base/strbuf.h"
#include "container/torch.h"

/* Frames of the walk, one per level that it is below the root. */
#define FRAMES_MAX ((size_t)1 << 26)
#define REFS_MAX ((size_t)UINT32_MAX - 1)
#define PATH_MAX_BYTES 180u

/* Calls in the arguments of calls: a parameter of a tensor of a storage is three. */
#define NESTING_MAX 16u
#define ARGUMENTS_MAX 8u
#define EMBEDDED_DEPTH_MAX 4u

enum frame_kind {
	FRAME_ITEMS, /* of a list, tuple or set */
	FRAME_PAIRS, /* keys and values */
	FRAME_PART,  /* of an object: nothing that a path shows */
};

struct rebuild_frame {
	struct val *slots;
	uint32_t count, next;
	enum frame_kind kind;
};

void rebuild_init(struct rebuild *r, struct document *d, struct findings *sink)
{
	*r = (struct rebuild){.document = d, .sink = sink};
}

void rebuild_release(struct rebuild *r)
{
	array_release(&r->refs);
	array_release(&r->frames);
}

static int no_memory(struct error *e)
{
	return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET,
		"no memory for the tensors (or the limit memory was reached)");
}

/* Findings ----------------------------------------------------------------------------------------
 */

static bool is_identifier(struct slice s)
{
	for (size_t i = 0; i < s.n; i++) {
		char c = s.p[i];
		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
			    (i > 0 && c >= '0' && c <= '9')))
			return false;
	}
	return s.n > 0;
}

/* Where the walk is, in the syntax of `get`: .model["0.weight"]. */
static void add_path(const struct rebuild *r, struct strbuf *b)
{
	for (size_t i = 0; i < r->frames.count; i++) {
		const struct rebuild_frame *f = &r->frames.items[i];
		uint32_t at = f->next - 1;
		if (f->next == 0 || f->kind == FRAME_PART)
			continue;
		if (f->kind == FRAME_ITEMS) {
			strbuf_printf(b, "[%u]", at);
			continue;
		}
		if (at % 2 == 0)
			continue;
		struct val key = f->slots[at - 1];
		struct slice text = val_slice(key);
		if (key.kind == VAL_TEXT && is_identifier(text))
			strbuf_printf(b, ".%.*s", (int)(text.n < 100 ? text.n : 100), text.p);
		else if (key.kind == VAL_TEXT)
			strbuf_printf(b, "[\"%.*s\"]", (int)(text.n < 100 ? text.n : 100), text.p);
		else if (key.kind == VAL_INT)
			strbuf_printf(b, "[%lld]", (long long)key.i);
	}
	if (b->n == 0)
		strbuf_add_char(b, '.');
}

/* A finding at the place where the walk is. */
static struct finding *found_here(struct rebuild *r, struct finding *f)
{
	struct strbuf b;

	if (f == &r->sink->scratch)
		return f;
	strbuf_init(&b, PATH_MAX_BYTES);
	add_path(r, &b);
	finding_place(r->sink, f, r->document->name, strbuf_slice(&b), PLACE_NO_OFFSET);
	r->sink->lost += b.no_memory;
	strbuf_release(&b);
	return f;
}

static void malformed(struct rebuild *r, const char *what)
{
	found_here(r, finding_add(r->sink, FINDING_I104, "%s", what));
}

static int64_t clamped(uint64_t n)
{
	return n > INT64_MAX ? INT64_MAX : (int64_t)n;
}

/* Storages ----------------------------------------------------------------------------------------
 */

/* Typed storages are named by class; CUDA ones in old files by a class in torch.cuda. */
static const struct {
	const char *name;
	enum dtype dtype;
} storage_classes[] = {
	{"FloatStorage", DTYPE_F32},
	{"BFloat16Storage", DTYPE_BF16},
	{"HalfStorage", DTYPE_F16},
	{"LongStorage", DTYPE_I64},
	{"ByteStorage", DTYPE_U8},
	{"UntypedStorage", DTYPE_U8},
	{"BoolStorage", DTYPE_BOOL},
	{"DoubleStorage", DTYPE_F64},
	{"IntStorage", DTYPE_I32},
	{"ShortStorage", DTYPE_I16},
	{"CharStorage", DTYPE_I8},
	{"ComplexFloatStorage", DTYPE_C64},
	{"ComplexDoubleStorage", DTYPE_C128},
	{"QInt8Storage", DTYPE_QI8},
	{"QUInt8Storage", DTYPE_QU8},
	{"QInt32Storage", DTYPE_QI32},
	{"QUInt4x2Storage", DTYPE_QU4X2},
	{"QUInt2x4Storage", DTYPE_QU2X4},
	{"_UntypedStorage", DTYPE_U8},
};

static enum dtype storage_dtype(struct val class)
{
	if (class.kind != VAL_CLASS || !(slice_is(class.klass->module, "torch") ||
					       slice_starts(class.klass->module, SLICE("torch."))))
		return DTYPE_UNKNOWN;
	for (size_t i = 0; i < sizeof storage_classes / sizeof *storage_classes; i++)
		if (slice_is(class.klass->name, storage_classes[i].name))
			return storage_classes[i].dtype;
	return DTYPE_UNKNOWN;
}

/* A dtype object is a reference to torch.float32 and the like. */
static enum dtype torch_dtype(struct val v)
{
	if (v.kind != VAL_CLASS || !slice_is(v.klass->module, "torch"))
		return DTYPE_UNKNOWN;
	return dtype_by_name(v.klass->name);
}

bool rebuild_read_id(struct val id, struct storage_ref *ref)
{
	*ref = (struct storage_ref){0};
	struct val key = val_at(id, 2), device = val_at(id, 3), view = val_at(id, 5);

	if (!val_is_text(val_at(id, 0), "storage") || key.kind != VAL_TEXT ||
		!val_to_u64(val_at(id, 4), &ref->numel))
		return false;
	ref->dtype = storage_dtype(val_at(id, 1));
	ref->key = val_slice(key);
	ref->device = val_slice(device);
	if (view.kind == VAL_TUPLE && !val_to_u64(val_at(view, 1), &ref->first))
		return false;
	return ref->dtype != DTYPE_UNKNOWN;
}

int rebuild_persistent(void *rebuild, struct val id, struct val *out, struct error *e)
{
	struct rebuild *r = rebuild;
	struct arena *a = &r->document->arena;
	struct storage_ref found = {0};

	/* ('module', class, file, source), in legacy files: the class of a whole module, with its
	 * source. */
	if (id.kind == VAL_TUPLE && val_is_text(val_at(id, 0), "module") &&
		val_at(id, 1).kind == VAL_CLASS) {
		*out = val_at(id, 1);
		return RP_OK;
	}
	*out = val_new(a, VAL_PERSISTENT);
	struct val *kid = arena_new(a, struct val);
	if (out->kind == VAL_ABSENT || !kid)
		return no_memory(e);
	*kid = id;
	out->node->kids = kid;
	out->node->count = out->node->capacity = 1;
	if (!r->find || id.kind != VAL_TUPLE)
		return RP_OK;
	if (!rebuild_read_id(id, &found)) {
		malformed(r, "a persistent id that names no storage");
		return RP_OK;
	}
	int status = r->find(r->context, &found, e);
	if (status < 0)
		return status;
	struct storage_ref *ref = array_push(&r->refs, REFS_MAX);
	if (!ref)
		return no_memory(e);
	*ref = found;
	if (ref->storage && ref->storage->device.n == 0)
		ref->storage->device = ref->device;
	out->n = (uint32_t)r->refs.count;
	return RP_OK;
}

int rebuild_check_storages(struct rebuild *r, struct error *e)
{
	const struct document *d = r->document;
	bool *told = calloc(d->storages.count ? d->storages.count : 1, sizeof *told);

	if (!told)
		return no_memory(e);
	for (size_t i = 0; i < r->refs.count; i++) {
		const struct storage_ref *ref = &r->refs.items[i];
		const struct storage *s = ref->storage;
		uint64_t bytes = size_mul(ref->numel, dtype_size(ref->dtype));
		if (!s || s->missing || told[s->index] || s->length == bytes)
			continue;
		told[s->index] = true;
		struct finding *f = finding_add(r->sink, FINDING_I104,
			"a storage of %llu bytes where %llu elements of %s need %llu",
			(unsigned long long)s->length, (unsigned long long)ref->numel,
			dtype_rows[ref->dtype].name, (unsigned long long)bytes);
		finding_place(r->sink, f, d->name, s->name,
			s->offset == STORAGE_NOT_LOCATED ? PLACE_NO_OFFSET : s->offset);
		f->observed = quantity_count(clamped(s->length));
		f->expected = quantity_count(clamped(bytes));
		f->unit = "bytes";
	}
	free(told);
	return RP_OK;
}

/* Tensors -----------------------------------------------------------------------------------------
 */

/* Integers of a tuple or list; *ndim is -1 where it is none or too long. */
static int read_sizes(
	struct rebuild *r, struct val v, const int64_t **sizes, int *ndim, struct error *e)
{
	*ndim = -1;
	*sizes = NULL;
	if (!val_is_sequence(v) || val_count(v) > TENSOR_MAX_DIMS)
		return RP_OK;
	int n = (int)val_count(v);
	int64_t *copy = n ? arena_array(&r->document->arena, (size_t)n, sizeof *copy) : NULL;
	if (n && !copy)
		return no_memory(e);
	for (int i = 0; i < n; i++)
		if (!val_to_i64(val_at(v, (uint64_t)i), &copy[i]))
			return RP_OK;
	*sizes = copy;
	*ndim = n;
	return RP_OK;
}

static struct tensor *new_tensor(struct rebuild *r, enum dtype dtype)
{
	struct tensor *t = arena_new(&r->document->arena, struct tensor);

	if (t)
		t->dtype = (uint8_t)dtype;
	return t;
}

/* Count a finished tensor, after a last look at whether it lies inside its storage. */
static void finish_tensor(struct rebuild *r, struct tensor *t, struct val *out)
{
	struct storage *s = t->storage;

	if (t->stride && tensor_is_contiguous(t))
		t->stride = NULL;
	if (s) {
		uint64_t reach = tensor_reach(t);
		if (reach > s->length && !s->missing) {
			struct finding *f = found_here(
				r, finding_add(r->sink, FINDING_I104,
					   "the tensor reaches beyond the end of its storage"));
			f->observed = quantity_count(clamped(reach));
			f->expected = quantity_count(clamped(s->length));
			f->unit = "bytes";
		}
		s->users++;
	}
	r->document->tensors++;
	*out = val_tensor(t);
}

static int make_strided(struct rebuild *r, struct storage *storage, enum dtype dtype,
	struct val offset, struct val size, struct val stride, struct tensor **out, struct error *e)
{
	int shape_dims, stride_dims, status;

	*out = NULL;
	struct tensor *t = new_tensor(r, dtype);
	if (!t)
		return no_memory(e);
	status = read_sizes(r, size, &t->shape, &shape_dims, e);
	if (status == RP_OK)
		status = read_sizes(r, stride, &t->stride, &stride_dims, e);
	if (status < 0)
		return status;
	t->storage = storage;
	if (shape_dims < 0 || shape_dims != stride_dims || dtype == DTYPE_UNKNOWN ||
		!val_to_u64(offset, &t->first)) {
		malformed(r, "a tensor whose shape, strides or dtype cannot be read");
		return RP_OK;
	}
	t->ndim = (uint8_t)shape_dims;
	t->numel = shape_numel(t->shape, t->ndim);
	if (t->numel == UINT64_MAX) {
		malformed(r, "a tensor whose shape has a negative size or too many elements");
		return RP_OK;
	}
	for (int i = 0; i < stride_dims; i++)
		if (t->stride[i] < 0) {
			malformed(r, "a tensor with a negative stride, which torch does not have");
			return RP_OK;
		}
	*out = t;
	return RP_OK;
}

static bool truth(struct val v)
{
	return v.kind == VAL_BOOL && v.i;
}

/* The seventh or eighth argument: {'conj': True}, {'neg': True}. */
static void read_metadata(struct tensor *t, struct val metadata)
{
	if (metadata.kind != VAL_DICT)
		return;
	t->conjugate = truth(val_get(metadata, "conj"));
	t->negative = truth(val_get(metadata, "neg"));
}

/* _rebuild_tensor(storage, offset, size, stride), _v2(…, requires_grad, hooks, metadata),
 * _rebuild_qtensor(…) */
static int make_tensor(struct rebuild *r, struct object *o, struct val *out, struct error *e)
{
	struct val storage = val_at(o->args, 0);
	struct tensor *t;

	if (storage.kind != VAL_PERSISTENT || storage.n == 0) {
		/* Without a container that knows the storages this is no defect. */
		if (r->find)
			malformed(r, "a tensor without a storage");
		return RP_OK;
	}
	const struct storage_ref ref = r->refs.items[storage.n - 1];
	enum dtype dtype = ref.dtype;
	bool v2 = val_is_class(o->callable, "torch._utils", "_rebuild_tensor_v2");
	bool v3 = val_is_class(o->callable, "torch._utils", "_rebuild_tensor_v3");
	if (v3)
		dtype = torch_dtype(val_at(o->args, 6));
	int status = make_strided(r, ref.storage, dtype, val_at(o->args, 1), val_at(o->args, 2),
		val_at(o->args, 3), &t, e);
	if (status < 0 || !t)
		return status;
	/* Behind a view's offset, which counts the elements of the storage's own dtype. */
	uint64_t behind = ref.first;
	if (ref.dtype != dtype)
		behind = size_mul(behind, dtype_size(ref.dtype)) / dtype_size(dtype);
	t->first = size_add(t->first, behind);
	if (v2 || v3) {
		t->requires_grad = truth(val_at(o->args, 4));
		read_metadata(t, val_at(o->args, v3 ? 7 : 6));
	}
	finish_tensor(r, t, out);
	return RP_OK;
}

/* _rebuild_meta_tensor_no_storage(dtype, size, stride, requires_grad) */
static int make_meta(struct rebuild *r, struct object *o, struct val *out, struct error *e)
{
	struct tensor *t;
	int status = make_strided(r, NULL, torch_dtype(val_at(o->args, 0)), val_int(0),
		val_at(o->args, 1), val_at(o->args, 2), &t, e);

	if (status < 0 || !t)
		return status;
	t->requires_grad = truth(val_at(o->args, 3));
	finish_tensor(r, t, out);
	return RP_OK;
}

/* A copy of an argument that is a tensor; NULL where it is none. */
static int copy_tensor(struct rebuild *r, struct val v, struct tensor **out, struct error *e)
{
	*out = NULL;
	if (v.kind != VAL_TENSOR)
		return RP_OK;
	*out = arena_new(&r->document->arena, struct tensor);
	if (!*out)
		return no_memory(e);
	**out = *v.tensor;
	return RP_OK;
}

/* The same tensor under another hat: it is counted already. */
static void rename_tensor(struct tensor *t, struct val *out)
{
	*out = val_tensor(t);
}

/* _rebuild_parameter(data, requires_grad, hooks), _rebuild_parameter_with_state(…, state) */
static int make_parameter(struct rebuild *r, struct object *o, struct val *out, struct error *e)
{
	struct tensor *t;
	int status = copy_tensor(r, val_at(o->args, 0), &t, e);

	if (status < 0 || !t)
		return status;
	t->parameter = true;
	t->requires_grad = truth(val_at(o->args, 1));
	if (val_at(o->args, 3).kind != VAL_ABSENT) {
		t->made_by = o;
		o->state = val_at(o->args, 3);
	}
	rename_tensor(t, out);
	return RP_OK;
}

/* _rebuild_device_tensor_from_numpy and _from_cpu_tensor(data, dtype, device, requires_grad) */
static int make_device_tensor(struct rebuild *r, struct object *o, struct val *out, struct error *e)
{
	struct tensor *t;
	int status = copy_tensor(r, val_at(o->args, 0), &t, e);

	if (status < 0 || !t)
		return status;
	t->requires_grad = truth(val_at(o->args, 3));
	rename_tensor(t, out);
	return RP_OK;
}

static int settle(struct rebuild *r, struct val *slot, struct error *e);

static struct slice class_name(struct rebuild *r, struct val class)
{
	if (class.kind != VAL_CLASS)
		return (struct slice){0};
	const struct klass *k = class.klass;
	char *text =
		arena_alloc(&r->document->arena, size_add(size_add(k->module.n, k->name.n), 2));
	if (!text)
		return (struct slice){0};
	memcpy(text, k->module.p, k->module.n);
	text[k->module.n] = '.';
	memcpy(text + k->module.n + 1, k->name.p, k->name.n);
	return (struct slice){text, k->module.n + 1 + k->name.n};
}

/*
 * _rebuild_from_type_v2(func, type, args, state): what func(*args) gives, as the given type, with
 * state. A wrapper subclass has no bytes of its own; where it wraps a local tensor (DTensor) that
 * one stands for it, else it stays an object with its state.
 */
static int make_typed(struct rebuild *r, struct object *o, struct val *out, struct error *e)
{
	struct val func = val_at(o->args, 0), type = val_at(o->args, 1), state = val_at(o->args, 3);
	struct val whole = {.kind = VAL_OBJECT, .object = o};
	struct tensor *t = NULL;
	int status;

	if (o->state.kind == VAL_ABSENT)
		o->state = state;
	struct object *inner = arena_new(&r->document->arena, struct object);
	if (!inner)
		return no_memory(e);
	inner->callable = func;
	inner->args = val_at(o->args, 2);
	struct val made = {.kind = VAL_OBJECT, .object = inner};
	if (val_is_class(func, "torch._utils", "_rebuild_wrapper_subclass"))
		made = val_get(whole, "_local_tensor");
	status = settle(r, &made, e);
	if (status == RP_OK)
		status = copy_tensor(r, made, &t, e);
	if (status < 0 || !t)
		return status;
	if (val_is_class(type, "torch.nn.parameter", "Parameter") ||
		truth(val_get(whole, "_is_param")))
		t->parameter = true;
	if (!val_is_class(type, "torch", "Tensor") &&
		!val_is_class(type, "torch.nn.parameter", "Parameter"))
		t->type = class_name(r, type);
	t->made_by = o;
	rename_tensor(t, out);
	return RP_OK;
}

/* Show the arguments of a call as attributes, so that whoever looks into the object finds its
 * tensors. */
static int show_arguments(struct rebuild *r, struct object *o, struct val from,
	const char *const *names, size_t count, struct error *e)
{
	struct arena *a = &r->document->arena;

	if (o->state.kind != VAL_ABSENT || val_count(from) < count)
		return RP_OK;
	struct val state = val_new(a, VAL_DICT);
	if (state.kind == VAL_ABSENT)
		return no_memory(e);
	for (size_t i = 0; i < count; i++)
		if (!node_push(a, state.node, val_text(slice_of(names[i]))) ||
			!node_push(a, state.node, val_at(from, i)))
			return no_memory(e);
	o->state = state;
	return RP_OK;
}

/* _rebuild_sparse_tensor(layout, (indices, values, size, …)) and the compressed layouts */
static int show_sparse(struct rebuild *r, struct object *o, struct val *out, struct error *e)
{
	static const char *const coo[] = {"indices", "values", "size"};
	static const char *const compressed[] = {
		"compressed_indices", "plain_indices", "values", "size"};
	struct val data = val_at(o->args, 1);

	(void)out;
	struct val size = val_at(data, 2);
	int status = settle(r, &size, e);
	if (status < 0)
		return status;
	if (val_is_sequence(size))
		return show_arguments(r, o, data, coo, 3, e);
	return show_arguments(r, o, data, compressed, 4, e);
}

/* _rebuild_nested_tensor(buffer, sizes, strides, offsets) */
static int show_nested(struct rebuild *r, struct object *o, struct val *out, struct error *e)
{
	static const char *const names[] = {"buffer", "sizes", "strides", "storage_offsets"};

	(void)out;
	return show_arguments(r, o, o->args, names, 4, e);
}

/* torch.storage._load_from_bytes(bytes): a torch file inside the pickle, usually one storage */
static int make_embedded(struct rebuild *r, struct object *o, struct val *out, struct error *e)
{
	struct slice bytes = val_slice(val_at(o->args, 0));

	if (!torch_legacy_magic(bytes)) {
		malformed(r, "bytes for _load_from_bytes that are no torch file");
		return RP_OK;
	}
	/* The same bytes may stand behind many calls; no honest file decodes more than it has. */
	r->embedded = size_add(r->embedded, bytes.n);
	if (r->depth >= EMBEDDED_DEPTH_MAX || r->embedded > r->document->source.size)
		return fail(e, RP_E_LIMIT, ERROR_NO_OFFSET,
			"the pickle unpacks more torch files than it can hold");
	struct error inside = ERROR_INIT;
	r->depth++;
	int status = torch_legacy_embedded(r, bytes, out, &inside);
	r->depth--;
	if (status == RP_E_MEMORY || status == RP_E_LIMIT)
		return fail(e, status, ERROR_NO_OFFSET, "%s", inside.text);
	if (status < 0) {
		found_here(r, finding_add(r->sink, FINDING_I104,
				      "a torch file inside the pickle: %s", inside.text));
		*out = (struct val){0};
	}
	return RP_OK;
}

/* A storage that is a value of its own is its elements in a row. */
static int make_storage(struct rebuild *r, struct val *slot, struct error *e)
{
	const struct storage_ref *ref = &r->refs.items[slot->n - 1];
	struct tensor *t = new_tensor(r, ref->dtype);
	int64_t *shape = arena_new(&r->document->arena, int64_t);

	if (!t || !shape)
		return no_memory(e);
	/* What is there counts; a length other than promised has its finding already. */
	t->numel = ref->numel;
	if (ref->storage && !ref->storage->missing &&
		t->numel > ref->storage->length / dtype_size(ref->dtype))
		t->numel = ref->storage->length / dtype_size(ref->dtype);
	shape[0] = clamped(t->numel);
	t->numel = (uint64_t)shape[0];
	t->shape = shape;
	t->ndim = 1;
	t->storage = ref->storage;
	finish_tensor(r, t, slot);
	return RP_OK;
}

/* Other torch values ------------------------------------------------------------------------------
 */

/* torch.Size((2, 3)) is a tuple. */
static int make_size(struct rebuild *r, struct object *o, struct val *out, struct error *e)
{
	struct val sizes = val_at(o->args, 0);

	(void)r, (void)e;
	if (sizes.kind == VAL_TUPLE)
		*out = sizes;
	else if (sizes.kind == VAL_LIST)
		*out = (struct val){.kind = VAL_TUPLE, .node = sizes.node};
	return RP_OK;
}

/* torch.device('cuda', 1) is "cuda:1". */
static int make_device(struct rebuild *r, struct object *o, struct val *out, struct error *e)
{
	struct val type = val_at(o->args, 0);
	int64_t index;

	if (type.kind != VAL_TEXT)
		return RP_OK;
	*out = type;
	if (!val_to_i64(val_at(o->args, 1), &index))
		return RP_OK;
	struct slice name = val_slice(type);
	char *text = arena_printf(&r->document->arena, "%.*s:%lld",
		(int)(name.n < 100 ? name.n : 100), name.p, (long long)index);
	if (!text)
		return no_memory(e);
	*out = val_text(slice_of(text));
	return RP_OK;
}

/* NumPy -------------------------------------------------------------------------------------------
 */

struct numpy_dtype {
	enum dtype dtype;
	bool big_endian;
};

/* dtype('f4', False, True) with state (3, '<', …); ml_dtypes has classes in place of the code. */
static struct numpy_dtype read_numpy_dtype(struct val v)
{
	struct numpy_dtype found = {DTYPE_UNKNOWN, false};

	if (!val_is_object_of(v, "numpy", "dtype"))
		return found;
	struct val what = val_at(v.object->args, 0), order = val_at(v.object->state, 1);
	struct slice code = val_slice(what), mark = val_slice(order);
	if (code.n > 1 && strchr("<>|=", code.p[0])) {
		mark = (struct slice){code.p, 1};
		code.p++;
		code.n--;
	}
	if (what.kind == VAL_CLASS && slice_is(what.klass->module, "ml_dtypes"))
		found.dtype = dtype_by_name(what.klass->name);
	else
		found.dtype = dtype_by_numpy_code(code);
	found.big_endian = slice_is(mark, ">");
	return found;
}

/* An array over `bytes`, C or Fortran order. */
static int make_array(struct rebuild *r, struct val shape, struct val dtype, bool fortran,
	struct slice bytes, struct val *out, struct error *e)
{
	struct arena *a = &r->document->arena;
	struct numpy_dtype element = read_numpy_dtype(dtype);
	int ndim;

	if (element.dtype == DTYPE_UNKNOWN)
		return RP_OK; /* text, dates, records: no numbers, so it stays an object */
	struct tensor *t = new_tensor(r, element.dtype);
	if (!t)
		return no_memory(e);
	int status = read_sizes(r, shape, &t->shape, &ndim, e);
	if (status < 0)
		return status;
	t->numel = ndim < 0 ? UINT64_MAX : shape_numel(t->shape, (size_t)ndim);
	if (t->numel == UINT64_MAX) {
		malformed(r, "an array whose shape cannot be read");
		return RP_OK;
	}
	uint64_t need = size_mul(t->numel, dtype_size(element.dtype));
	if (need != bytes.n) {
		struct finding *f =
			found_here(r, finding_add(r->sink, FINDING_I104,
					      "the array's bytes do not fit its shape"));
		f->observed = quantity_count(clamped(bytes.n));
		f->expected = quantity_count(clamped(need));
		f->unit = "bytes";
		return RP_OK;
	}
	t->ndim = (uint8_t)ndim;
	if (fortran && ndim > 1) {
		int64_t *stride = arena_array(a, (size_t)ndim, sizeof *stride);
		if (!stride)
			return no_memory(e);
		/* An array without elements needs no strides, and their products could overflow. */
		for (int i = 0; i < ndim; i++)
			stride[i] = i == 0 || t->numel == 0 ? 1 : stride[i - 1] * t->shape[i - 1];
		t->stride = stride;
	}
	t->storage = document_storage(r->document);
	if (!t->storage)
		return no_memory(e);
	t->storage->name = SLICE("array");
	t->storage->length = bytes.n;
	/* Never NULL: that would mean that the bytes are in the file. */
	t->storage->inline_bytes = bytes.n ? (const uint8_t *)bytes.p : (const uint8_t *)"";
	t->storage->big_endian = element.big_endian;
	finish_tensor(r, t, out);
	return RP_OK;
}

/* _reconstruct(ndarray, (0,), b'b') with state (1, shape, dtype, fortran, bytes), the 1 being
 * optional */
static int make_ndarray(struct rebuild *r, struct object *o, struct val *out, struct error *e)
{
	struct val state = o->state;
	uint64_t first = val_count(state) == 5;

	if (state.kind != VAL_TUPLE || val_count(state) < 4)
		return RP_OK;
	struct val *data = &state.node->kids[first + 3], *dtype = &state.node->kids[first + 1];
	int status = settle(r, dtype, e);
	if (status == RP_OK)
		status = settle(r, data, e);
	if (status < 0)
		return status;
	if (data->kind == VAL_LIST) {
		/* Python objects: a list of them, in C order. */
		*out = *data;
		return RP_OK;
	}
	if (data->kind != VAL_BYTES)
		return RP_OK;
	status = make_array(r, val_at(state, first), *dtype, truth(val_at(state, first + 2)),
		val_slice(*data), out, e);
	if (status == RP_OK && out->kind == VAL_TENSOR &&
		!val_is_class(val_at(o->args, 0), "numpy", "ndarray"))
		out->tensor->type = class_name(r, val_at(o->args, 0));
	return status;
}

/* _frombuffer(buffer, dtype, shape, order): protocol 5 */
static int make_frombuffer(struct rebuild *r, struct object *o, struct val *out, struct error *e)
{
	struct val buffer = val_at(o->args, 0);

	if (buffer.kind != VAL_BYTES)
		return RP_OK;
	return make_array(r, val_at(o->args, 2), val_at(o->args, 1),
		val_is_text(val_at(o->args, 3), "F"), val_slice(buffer), out, e);
}

/* scalar(dtype, bytes): a number, since that is what people mean by it */
static int make_scalar(struct rebuild *r, struct object *o, struct val *out, struct error *e)
{
	struct numpy_dtype element = read_numpy_dtype(val_at(o->args, 0));
	struct slice bytes = val_slice(val_at(o->args, 1));
	const uint8_t *p = (const uint8_t *)bytes.p;
	int64_t i;
	double v;

	if (element.dtype == DTYPE_UNKNOWN)
		return RP_OK;
	if (bytes.n != dtype_size(element.dtype)) {
		malformed(r, "a numpy scalar of the wrong length");
		return RP_OK;
	}
	if (dtype_rows[element.dtype].kind == DTYPE_KIND_FLOAT) {
		if (dtype_to_double(element.dtype, p, element.big_endian, &v))
			*out = val_float(v);
	} else if (dtype_to_i64(element.dtype, p, element.big_endian, &i)) {
		*out = dtype_rows[element.dtype].kind == DTYPE_KIND_BOOL ? val_bool(i != 0)
									 : val_int(i);
	} else if (element.dtype == DTYPE_U64) {
		/* 2^63 and more: nine bytes, so that it is not taken for negative. */
		char *wide = arena_alloc(&r->document->arena, 9);
		if (!wide)
			return no_memory(e);
		for (int k = 0; k < 8; k++)
			wide[k] = bytes.p[element.big_endian ? 7 - k : k];
		*out = (struct val){.kind = VAL_BIGINT, .n = 9, .s = wide};
	}
	return RP_OK;
}

/* The table and the walk
 * --------------------------------------------------------------------------- */

struct recipe {
	const char *module, *name;
	/* Set *out, or leave it ABSENT: the object stays. Arguments are settled before. */
	int (*make)(struct rebuild *r, struct object *o, struct val *out, struct error *e);
};

static const struct recipe recipes[] = {
	{"torch._utils", "_rebuild_tensor_v2", make_tensor},
	{"torch._utils", "_rebuild_parameter", make_parameter},
	{"numpy.core.multiarray", "scalar", make_scalar},
	{"numpy._core.multiarray", "scalar", make_scalar},
	{"numpy.core.multiarray", "_reconstruct", make_ndarray},
	{"numpy._core.multiarray", "_reconstruct", make_ndarray},
	{"numpy.core.numeric", "_frombuffer", make_frombuffer},
	{"numpy._core.numeric", "_frombuffer", make_frombuffer},
	{"torch", "Size", make_size},
	{"torch", "device", make_device},
	{"torch._utils", "_rebuild_tensor", make_tensor},
	{"torch._utils", "_rebuild_tensor_v3", make_tensor},
	{"torch._utils", "_rebuild_qtensor", make_tensor},
	{"torch._utils", "_rebuild_parameter_with_state", make_parameter},
	{"torch._utils", "_rebuild_meta_tensor_no_storage", make_meta},
	{"torch._utils", "_rebuild_device_tensor_from_numpy", make_device_tensor},
	{"torch._utils", "_rebuild_device_tensor_from_cpu_tensor", make_device_tensor},
	{"torch._utils", "_rebuild_xla_tensor", make_device_tensor},
	{"torch._utils", "_rebuild_sparse_tensor", show_sparse},
	{"torch._utils", "_rebuild_sparse_csr_tensor", show_sparse},
	{"torch._utils", "_rebuild_nested_tensor", show_nested},
	{"torch._tensor", "_rebuild_from_type_v2", make_typed},
	{"torch._tensor", "_rebuild_from_type", make_typed},
	{"torch.storage", "_load_from_bytes", make_embedded},
};

static const struct recipe *find_recipe(struct val callable)
{
	if (callable.kind != VAL_CLASS)
		return NULL;
	const struct klass *k = callable.klass;
	for (size_t i = 0; i < sizeof recipes / sizeof *recipes; i++)
		if (slice_is(k->name, recipes[i].name) && slice_is(k->module, recipes[i].module))
			return &recipes[i];
	return NULL;
}

static int make(struct rebuild *r, struct object *o, struct error *e)
{
	const struct recipe *recipe = find_recipe(o->callable);
	struct val made = {0};

	if (!recipe || (o->args.kind != VAL_TUPLE && o->args.kind != VAL_ABSENT))
		return RP_OK;
	for (uint64_t i = 0; i < val_count(o->args) && i < ARGUMENTS_MAX; i++) {
		int status = settle(r, &o->args.node->kids[i], e);
		if (status < 0)
			return status;
	}
	int status = recipe->make(r, o, &made, e);
	if (status == RP_OK)
		o->meaning = made;
	return status;
}

/*
 * Make what the object in `slot` stands for, if it is one that stands for something. The answer is
 * kept in the object, since others refer to it too; a sealed dict says that it was tried.
 */
static int settle(struct rebuild *r, struct val *slot, struct error *e)
{
	if (slot->kind != VAL_OBJECT)
		return RP_OK;
	struct object *o = slot->object;
	if (o->meaning.kind == VAL_ABSENT && o->dict.capacity != NODE_SEALED &&
		r->nesting < NESTING_MAX) {
		o->dict.capacity = NODE_SEALED;
		r->nesting++;
		int status = make(r, o, e);
		r->nesting--;
		if (status < 0)
			return status;
	}
	if (o->meaning.kind != VAL_ABSENT)
		*slot = o->meaning;
	return RP_OK;
}

static int push_frame(
	struct rebuild *r, struct val *slots, uint32_t count, enum frame_kind kind, struct error *e)
{
	if (count == 0)
		return RP_OK;
	struct rebuild_frame *f = array_push(&r->frames, FRAMES_MAX);
	if (!f)
		return no_memory(e);
	*f = (struct rebuild_frame){.slots = slots, .count = count, .kind = kind};
	return RP_OK;
}

static bool has_parts(struct val v)
{
	return v.kind >= VAL_LIST && v.kind != VAL_CLASS && v.kind != VAL_TENSOR;
}

static int push_object(struct rebuild *r, struct object *o, struct error *e)
{
	struct val *parts[] = {&o->callable, &o->args, &o->kwargs, &o->state};
	int status = RP_OK;

	if (o->list.capacity == NODE_SEALED)
		return RP_OK;
	o->list.capacity = o->dict.capacity = NODE_SEALED;
	for (size_t i = 0; i < sizeof parts / sizeof *parts && status == RP_OK; i++)
		if (has_parts(*parts[i]))
			status = push_frame(r, parts[i], 1, FRAME_PART, e);
	if (status == RP_OK)
		status = push_frame(r, o->list.kids, o->list.count, FRAME_ITEMS, e);
	if (status == RP_OK)
		status = push_frame(r, o->dict.kids, o->dict.count, FRAME_PAIRS, e);
	return status;
}

/* Settle a slot and queue what is below it, unless the walk was there. */
static int visit(struct rebuild *r, struct val *slot, struct error *e)
{
	int status = settle(r, slot, e);

	if (status < 0)
		return status;
	switch (slot->kind) {
	case VAL_PERSISTENT:
		if (slot->n > 0)
			return make_storage(r, slot, e);
		/* fall through */
	case VAL_LIST:
	case VAL_TUPLE:
	case VAL_DICT:
	case VAL_SET:
	case VAL_FROZENSET: {
		struct node *n = slot->node;
		if (n->capacity == NODE_SEALED)
			return RP_OK;
		n->capacity = NODE_SEALED;
		return push_frame(r, n->kids, n->count,
			slot->kind == VAL_DICT ? FRAME_PAIRS : FRAME_ITEMS, e);
	}
	case VAL_OBJECT:
		return push_object(r, slot->object, e);
	case VAL_TENSOR: {
		/* Of a subclass the state is looked into as well, but not the arguments once more.
		 */
		struct object *o = slot->tensor->made_by;
		if (!o || o->list.capacity == NODE_SEALED || !has_parts(o->state))
			return RP_OK;
		o->list.capacity = NODE_SEALED;
		return push_frame(r, &o->state, 1, FRAME_PART, e);
	}
	default:
		return RP_OK;
	}
}

int rebuild_graph(struct rebuild *r, struct val *root, struct error *e)
{
	r->frames.count = 0;
	int status = visit(r, root, e);
	while (status == RP_OK && r->frames.count > 0) {
		struct rebuild_frame *f = &r->frames.items[r->frames.count - 1];
		if (f->next == f->count) {
			r->frames.count--;
			continue;
		}
		struct val *slot = &f->slots[f->next++];
		if (has_parts(*slot))
			status = visit(r, slot, e);
	}
	return status;
}
