/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "container/document.h"

#include <check.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cursor.h"
#include "support/bytes.h"

#define DATA "tests/unit/data/torch/"

Suite *suite_torch(void);

static struct document doc;
static struct limits limits;
static struct findings sink;
static struct error error;
static struct bytes file;
static bool opened;

static void setup(void)
{
	limits = limits_default();
	findings_init(&sink);
	error = ERROR_INIT;
	file = (struct bytes){0};
	opened = false;
}

static void forget(void)
{
	if (opened)
		document_close(&doc);
	findings_release(&sink);
	findings_init(&sink);
	error = ERROR_INIT;
	opened = false;
}

static void teardown(void)
{
	forget();
	findings_release(&sink);
	bytes_release(&file);
}

static int open_bytes(void)
{
	forget();
	int status = document_open_bytes(&doc, (struct slice){(const char *)file.p, file.n},
		"test.pt", &limits, &sink, &error);
	opened = status == RP_OK;
	return status;
}

static int open_path(const char *path)
{
	forget();
	int status = document_open(&doc, AT_FDCWD, path, path, &limits, &sink, &error);
	opened = status == RP_OK;
	return status;
}

static struct finding *found(enum finding_code code, const char *text)
{
	for (size_t i = 0; i < sink.list.count; i++)
		if (sink.list.items[i].code == code && strstr(sink.list.items[i].message, text))
			return &sink.list.items[i];
	return NULL;
}

static const struct tensor *tensor_at(const char *group, const char *name)
{
	struct val v = val_dig(doc.root, group, name, NULL);

	ck_assert_msg(v.kind == VAL_TENSOR, "%s.%s is no tensor but %s", group, name,
		val_kind_name(v.kind));
	return v.tensor;
}

/* An archive of stored entries, without checksums, from (name, payload) pairs. */
struct part {
	const char *name;
	struct slice payload;
};

static void build_zip(const struct part *parts, size_t count)
{
	size_t headers[16];

	file.n = 0;
	for (size_t i = 0; i < count; i++) {
		size_t name = strlen(parts[i].name);
		headers[i] = file.n;
		bytes_add_le(&file, 0x04034b50, 4);
		bytes_add_le(&file, 0, 2);
		bytes_add_le(&file, 8, 2);
		bytes_add_le(&file, 0, 18);
		bytes_add_le(&file, name, 4);
		bytes_add(&file, parts[i].name, name);
		bytes_add(&file, parts[i].payload.p, parts[i].payload.n);
	}
	size_t directory = file.n;
	for (size_t i = 0; i < count; i++) {
		size_t name = strlen(parts[i].name);
		bytes_add_le(&file, 0x02014b50, 4);
		bytes_add_le(&file, 0, 4);
		bytes_add_le(&file, 8, 2);
		bytes_add_le(&file, 0, 10);
		bytes_add_le(&file, parts[i].payload.n, 4);
		bytes_add_le(&file, parts[i].payload.n, 4);
		bytes_add_le(&file, name, 2);
		bytes_add_le(&file, 0, 12);
		bytes_add_le(&file, headers[i], 4);
		bytes_add(&file, parts[i].name, name);
	}
	size_t end = file.n;
	bytes_add_le(&file, 0x06054b50, 4);
	bytes_add_le(&file, 0, 4);
	bytes_add_le(&file, count, 2);
	bytes_add_le(&file, count, 2);
	bytes_add_le(&file, end - directory, 4);
	bytes_add_le(&file, directory, 4);
	bytes_add_le(&file, 0, 2);
}

/* A torch file of one storage of four floats (1, 2, 3, 4) around a pickle in text form. */
static int open_pickle(const char *pickle)
{
	static const float four[] = {1, 2, 3, 4};
	const struct part parts[] = {
		{"a/data.pkl", slice_of(pickle)},
		{"a/data/0", {(const char *)four, sizeof four}},
	};

	build_zip(parts, 2);
	return open_bytes();
}

/* SLICE() for initializers of static tables. */
#define SLICE_OF(literal)                                                                          \
	{                                                                                          \
		(literal), sizeof(literal) - 1                                                     \
	}

#define STORAGE(numel) "(S'storage'\nctorch\nFloatStorage\nS'0'\nS'cpu'\nI" numel "\ntQ"
#define TENSOR(offset, size, stride)                                                               \
	"ctorch._utils\n_rebuild_tensor_v2\n(" STORAGE("4") "I" offset "\n(" size "t(" stride      \
							    "tI00\nNtR"

/* Real files -------------------------------------------------------------------------------------
 */

static const char *const real_files[] = {
	"all-p2.pt", "all-p4.pt", "legacy.pt", "plain-p0.pkl", "plain-p2.pkl", "plain-p5.pkl"};

static const struct {
	const char *name, *dtype;
	int ndim;
	int64_t shape[2];
	double first, last;
} real_tensors[] = {
	{"float64", "float64", 2, {2, 3}, -2.5, 2.5},
	{"float32", "float32", 2, {2, 3}, -2.5, 2.5},
	{"float16", "float16", 2, {2, 3}, -2.5, 2.5},
	{"bfloat16", "bfloat16", 2, {2, 3}, -2.5, 2.5},
	{"float8_e4m3fn", "float8_e4m3fn", 2, {2, 3}, -2.5, 2.5},
	{"float8_e5m2", "float8_e5m2", 2, {2, 3}, -2.5, 2.5},
	{"float8_e4m3fnuz", "float8_e4m3fnuz", 2, {2, 3}, -2.5, 2.5},
	{"float8_e5m2fnuz", "float8_e5m2fnuz", 2, {2, 3}, -2.5, 2.5},
	{"float8_e8m0fnu", "float8_e8m0fnu", 1, {3}, 1, 0.5},
	{"int8", "int8", 1, {3}, -3, 100},
	{"int16", "int16", 1, {3}, -3, 100},
	{"int32", "int32", 1, {3}, -3, 100},
	{"int64", "int64", 1, {3}, -3, 100},
	{"uint8", "uint8", 1, {3}, 0, 200},
	{"uint16", "uint16", 1, {3}, 0, 200},
	{"uint32", "uint32", 1, {3}, 0, 200},
	{"uint64", "uint64", 1, {3}, 0, 200},
	{"bool", "bool", 1, {3}, 1, 1},
	{"scalar", "float32", 0, {0}, 3.25, 3.25},
	{"view", "float32", 1, {10}, 10, 19},
	{"strided", "float32", 1, {9}, 0, 56},
	{"transposed", "float32", 2, {10, 6}, 0, 59},
	{"block", "float32", 2, {3, 5}, 12, 36},
	{"expanded", "float32", 2, {2, 4}, 1, 2},
	{"neg", "float32", 1, {1}, -2, -2},
	{"parameter", "float32", 1, {1}, 1.5, 1.5},
	{"parameter with state", "float32", 1, {1}, 2.5, 2.5},
	{"tensor with state", "float32", 1, {1}, 4.5, 4.5},
};

START_TEST(every_tensor_of_a_real_file_has_shape_dtype_and_values)
{
	char path[100];

	snprintf(path, sizeof path, DATA "%s", real_files[_i]);
	ck_assert_msg(open_path(path) == RP_OK, "%s: %s", path, error.text);
	ck_assert_uint_eq(sink.of_code[FINDING_I102] + sink.of_code[FINDING_I103] +
				  sink.of_code[FINDING_I104],
		0);
	for (size_t i = 0; i < sizeof real_tensors / sizeof *real_tensors; i++) {
		const char *name = real_tensors[i].name;
		const struct tensor *t = tensor_at("tensors", name);
		double first, last;
		ck_assert_str_eq(dtype_rows[t->dtype].name, real_tensors[i].dtype);
		ck_assert_int_eq(t->ndim, real_tensors[i].ndim);
		for (int d = 0; d < t->ndim; d++)
			ck_assert_int_eq(t->shape[d], real_tensors[i].shape[d]);
		ck_assert_int_eq(tensor_read_double(&doc, t, 0, &first, &error), RP_OK);
		ck_assert_int_eq(tensor_read_double(&doc, t, t->numel - 1, &last, &error), RP_OK);
		ck_assert_msg(first == real_tensors[i].first && last == real_tensors[i].last,
			"%s: %g %g", name, first, last);
		/* All at once gives the same. */
		uint8_t bytes[1024];
		size_t n;
		ck_assert_int_eq(
			tensor_read_bytes(&doc, t, bytes, sizeof bytes, &n, &error), RP_OK);
		ck_assert_uint_eq(n, t->numel * dtype_size(t->dtype));
		ck_assert(
			dtype_to_double(t->dtype, bytes + n - dtype_size(t->dtype), false, &last));
		ck_assert(last == (t->negative ? -real_tensors[i].last : real_tensors[i].last));
	}
	const struct tensor *empty = tensor_at("tensors", "empty");
	ck_assert_uint_eq(empty->numel, 0);
	const struct tensor *complex = tensor_at("tensors", "conj");
	ck_assert(complex->conjugate);
	double v;
	ck_assert_int_eq(tensor_read_double(&doc, complex, 0, &v, &error), RP_E_UNSUPPORTED);
	ck_assert(tensor_at("tensors", "parameter")->parameter);
	ck_assert(tensor_at("tensors", "parameter")->requires_grad);
	const struct tensor *frozen = tensor_at("tensors", "parameter with state");
	ck_assert(frozen->parameter && !frozen->requires_grad);
	ck_assert_ptr_nonnull(frozen->made_by);
	const struct tensor *noted = tensor_at("tensors", "tensor with state");
	struct val whole = {.kind = VAL_OBJECT, .object = noted->made_by};
	struct val size = val_dig(whole, "note", "size", NULL);
	ck_assert_msg(size.kind == VAL_TUPLE, "%s", val_kind_name(size.kind));
}
END_TEST

START_TEST(other_torch_values_are_plain_ones)
{
	char path[100];

	snprintf(path, sizeof path, DATA "%s", real_files[_i]);
	ck_assert_int_eq(open_path(path), RP_OK);
	struct val size = val_get(doc.root, "size");
	ck_assert_int_eq(size.kind, VAL_TUPLE);
	ck_assert_int_eq(val_at(size, 1).i, 4);
	ck_assert(val_is_text(val_get(doc.root, "cpu"), "cpu"));
	ck_assert(val_is_text(val_get(doc.root, "cuda"), "cuda:1"));
	ck_assert(val_is_class(val_get(doc.root, "dtype"), "torch", "bfloat16"));
	struct val storage = val_get(doc.root, "storage");
	ck_assert_int_eq(storage.kind, VAL_TENSOR);
	ck_assert_int_eq(storage.tensor->dtype, DTYPE_U8);
	ck_assert_uint_eq(storage.tensor->numel, 24);
}
END_TEST

START_TEST(arrays_are_tensors_with_inline_bytes)
{
	char path[100];
	double v;
	int64_t i;

	snprintf(path, sizeof path, DATA "%s", real_files[_i]);
	ck_assert_int_eq(open_path(path), RP_OK);
	ck_assert_int_eq(tensor_read_double(&doc, tensor_at("arrays", "f8"), 3, &v, &error), RP_OK);
	ck_assert(v == 0.75);
	ck_assert_int_eq(tensor_read_i64(&doc, tensor_at("arrays", "big"), 3, &i, &error), RP_OK);
	ck_assert_int_eq(i, 3);
	const struct tensor *t = tensor_at("arrays", "fortran");
	int64_t six[6];
	size_t n;
	ck_assert_int_eq(tensor_read_bytes(&doc, t, (uint8_t *)six, sizeof six, &n, &error), RP_OK);
	for (int k = 0; k < 6; k++)
		ck_assert_int_eq(six[k], k);
	int32_t four[4];
	t = tensor_at("arrays", "big");
	ck_assert_int_eq(
		tensor_read_bytes(&doc, t, (uint8_t *)four, sizeof four, &n, &error), RP_OK);
	ck_assert_int_eq(four[2], 2);
	ck_assert_uint_eq(tensor_at("arrays", "zero")->ndim, 0);
	ck_assert_uint_eq(tensor_at("arrays", "empty")->numel, 0);
	struct val objects = val_dig(doc.root, "arrays", "objects", NULL);
	ck_assert_int_eq(objects.kind, VAL_LIST);
	ck_assert(val_is_text(val_at(objects, 1), "a"));
	ck_assert_int_eq(val_dig(doc.root, "arrays", "text", NULL).kind, VAL_OBJECT);
	ck_assert_int_eq(val_dig(doc.root, "arrays", "record", NULL).kind, VAL_OBJECT);
}
END_TEST

START_TEST(numpy_scalars_are_numbers)
{
	char path[100];
	uint64_t u;

	snprintf(path, sizeof path, DATA "%s", real_files[_i]);
	ck_assert_int_eq(open_path(path), RP_OK);
	struct val scalars = val_get(doc.root, "scalars");
	ck_assert(val_get(scalars, "f8").f == 2.5);
	ck_assert(val_get(scalars, "f4").f == 1.5);
	ck_assert(val_get(scalars, "f2").f == 0.5);
	ck_assert_int_eq(val_get(scalars, "i8").i, -7);
	ck_assert_int_eq(val_get(scalars, "b").kind, VAL_BOOL);
	ck_assert(val_to_u64(val_get(scalars, "u8"), &u) && u == ((uint64_t)1 << 63) + 1);
}
END_TEST

START_TEST(tensors_that_share_a_storage_share_it_here)
{
	ck_assert_int_eq(open_path(DATA "all-p2.pt"), RP_OK);
	const struct tensor *view = tensor_at("tensors", "view");
	ck_assert_ptr_eq(view, tensor_at("tensors", "shared"));
	ck_assert_ptr_eq(view->storage, tensor_at("tensors", "block")->storage);
	ck_assert_uint_eq(view->storage->users, 4);
	ck_assert_uint_eq(view->storage->length, 240);
	ck_assert(slice_is(view->storage->device, "cpu"));
	ck_assert(view->storage->crc_known);
	const struct tensor *meta = tensor_at("tensors", "meta");
	ck_assert_ptr_null(meta->storage);
	ck_assert_uint_eq(meta->numel, 10);
	double v;
	ck_assert_int_eq(tensor_read_double(&doc, meta, 0, &v, &error), RP_E_NOT_FOUND);
	ck_assert_str_eq(doc.container->name, "torch-zip");
	ck_assert_int_eq(doc.pickle_protocol, 2);
}
END_TEST

START_TEST(sparse_and_quantized_tensors_show_their_parts)
{
	ck_assert_int_eq(open_path(DATA "odd.pt"), RP_OK);
	ck_assert_int_eq(val_get(doc.root, "quantized").tensor->dtype, DTYPE_QU8);
	struct val sparse = val_get(doc.root, "sparse");
	ck_assert_int_eq(sparse.kind, VAL_OBJECT);
	ck_assert_int_eq(val_get(sparse, "indices").kind, VAL_TENSOR);
	ck_assert_int_eq(val_get(sparse, "values").kind, VAL_TENSOR);
	ck_assert_int_eq(val_get(sparse, "size").kind, VAL_TUPLE);
	ck_assert_int_eq(val_get(val_get(doc.root, "csr"), "compressed_indices").kind, VAL_TENSOR);
}
END_TEST

START_TEST(a_document_may_move)
{
	struct document moved;
	double v;

	ck_assert_int_eq(open_path(DATA "small.pt"), RP_OK);
	moved = doc;
	memset(&doc, 0xee, sizeof doc);
	opened = false;
	const struct tensor *t = val_get(moved.root, "weight").tensor;
	ck_assert_uint_eq(t->storage->offset, STORAGE_NOT_LOCATED);
	ck_assert_int_eq(tensor_read_double(&moved, t, 7, &v, &error), RP_OK);
	ck_assert(v == 7);
	ck_assert_int_eq(document_locate(&moved, t->storage, &sink, &error), RP_OK);
	ck_assert_uint_eq(t->storage->offset % 64, 0);
	ck_assert_int_eq(tensor_read_double(&moved, t, 6, &v, &error), RP_OK);
	ck_assert(v == 6);
	document_close(&moved);
}
END_TEST

START_TEST(formats_that_are_not_read_are_named)
{
	static const struct {
		const char *file, *words;
	} cases[] = {
		{DATA "script.pt", "TorchScript"},
		{DATA "make.py", "not a format that reprise reads"},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		ck_assert_int_eq(open_path(cases[i].file), RP_E_UNSUPPORTED);
		ck_assert_msg(strstr(error.text, cases[i].words) != NULL, "%s", error.text);
		ck_assert_uint_eq(sink.list.count, 0);
	}
	file.n = 0;
	bytes_add(&file, "PYTORCH1 and more", 17);
	ck_assert_int_eq(open_bytes(), RP_E_UNSUPPORTED);
	ck_assert_ptr_nonnull(strstr(error.text, "preview archive"));
	file.n = 0;
	bytes_add_le(&file, 't', 257);
	bytes_add(&file, "ustar", 5);
	ck_assert_int_eq(open_bytes(), RP_E_UNSUPPORTED);
	ck_assert_ptr_nonnull(strstr(error.text, "tar archive"));
	ck_assert_int_eq(open_path(DATA), RP_E_UNSUPPORTED);
	ck_assert_int_eq(open_path(DATA "none"), RP_E_IO);
}
END_TEST

START_TEST(compressed_tensors_are_located_but_not_read)
{
	double v;

	ck_assert_int_eq(open_path(DATA "deflated.pt"), RP_OK);
	const struct tensor *t = val_get(doc.root, "weight").tensor;
	ck_assert(t->storage->compressed);
	ck_assert_uint_eq(t->storage->length, 32);
	ck_assert_int_eq(tensor_read_double(&doc, t, 0, &v, &error), RP_E_UNSUPPORTED);
}
END_TEST

/* Placeholders -----------------------------------------------------------------------------------
 */

START_TEST(a_placeholder_says_what_should_be_there)
{
	static const struct {
		struct slice bytes;
		const char *words;
		int64_t promised;
	} cases[] = {
		{SLICE_OF(""), "empty", 0},
		{SLICE_OF(
			 "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"),
			"Git LFS", 12345},
		{SLICE_OF("version https://git-lfs.github.com/spec/v1\noid sha"), "Git LFS", 0},
		{SLICE_OF("/annex/objects/SHA256E-s1048576--9f86.pt\n"), "git-annex", 1048576},
		{SLICE_OF("../.git/annex/objects/Zk/w0/MD5-s7--1/MD5-s7--1"), "git-annex", 7},
		{SLICE_OF("\0\0\0\0\0\0\0\0\0\0"), "zeros", 0},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		file.n = 0;
		bytes_add(&file, cases[i].bytes.p, cases[i].bytes.n);
		ck_assert_int_eq(open_bytes(), RP_E_FORMAT);
		const struct finding *f = found(FINDING_I114, cases[i].words);
		ck_assert_msg(f != NULL, "%s", cases[i].words);
		if (cases[i].promised) {
			ck_assert_int_eq(f->expected.count, cases[i].promised);
			ck_assert_int_eq(f->observed.count, (int64_t)file.n);
		}
	}
}
END_TEST

/* Damage -----------------------------------------------------------------------------------------
 */

START_TEST(a_truncated_archive_is_named_wherever_it_is_cut)
{
	file = bytes_of_file(DATA "small.pt");
	for (size_t n = file.n - 1; n > 4; n--) {
		file.n = n;
		ck_assert_int_eq(open_bytes(), RP_E_FORMAT);
		const struct finding *f = found(FINDING_I102, "the file ends after");
		ck_assert_ptr_nonnull(f);
		ck_assert_uint_eq(f->place.offset, n);
		ck_assert_str_eq(f->place.file, "test.pt");
	}
}
END_TEST

START_TEST(a_truncated_archive_with_its_pickle_tells_how_much_is_missing)
{
	file = bytes_of_file(DATA "cut.pt");
	ck_assert_int_eq(open_bytes(), RP_E_FORMAT);
	const struct finding *f = found(FINDING_I102, "its 2 storages alone need 262148");
	ck_assert_ptr_nonnull(f);
	ck_assert_int_eq(f->observed.count, 1000);
	ck_assert_int_eq(f->expected.count, 262148);
}
END_TEST

START_TEST(a_truncated_legacy_file_never_passes)
{
	file = bytes_of_file(DATA "small-legacy.pt");
	size_t whole = file.n, told = 0;
	for (size_t n = whole - 1; n > 0; n--) {
		file.n = n;
		ck_assert_int_lt(open_bytes(), 0);
		told += sink.of_code[FINDING_I102];
	}
	/* In pickles, counts and storages alike; one byte alone is no file of any kind. */
	ck_assert_uint_eq(told, whole - 2);
	file.n = whole;
	bytes_add(&file, "more", 4);
	ck_assert_int_eq(open_bytes(), RP_OK);
	ck_assert_ptr_nonnull(found(FINDING_I104, "4 bytes follow"));
}
END_TEST

START_TEST(a_storage_that_the_archive_lacks_is_named)
{
	double v;

	file = bytes_of_file(DATA "small.pt");
	for (int i = 0; i < 2; i++) {
		size_t at = bytes_find(&file, "small/data/1", 12, 0);
		file.p[at + 11] = '7';
	}
	ck_assert_int_eq(open_bytes(), RP_OK);
	const struct finding *f = found(FINDING_I101, "no bytes for a storage of 2 elements");
	ck_assert_ptr_nonnull(f);
	ck_assert_str_eq(f->place.path, "data/1");
	const struct tensor *t = val_get(doc.root, "bias").tensor;
	ck_assert(t->storage->missing);
	ck_assert_int_eq(tensor_read_double(&doc, t, 0, &v, &error), RP_E_NOT_FOUND);
	/* And the one that nobody uses is there to be counted. */
	size_t unused = 0;
	for (size_t i = 0; i < doc.storages.count; i++)
		unused += doc.storages.items[i]->users == 0;
	ck_assert_uint_eq(unused, 1);
}
END_TEST

START_TEST(a_storage_of_another_length_is_reported_with_both)
{
	ck_assert_int_eq(open_pickle("(dS'x'\n"
				     "ctorch._utils\n_rebuild_tensor_v2\n(" STORAGE(
					     "5") "I0\n(I4\nt(I1\ntI00\nNtRs."),
		RP_OK);
	const struct finding *f = found(FINDING_I104, "a storage of 16 bytes where 5 elements");
	ck_assert_ptr_nonnull(f);
	ck_assert_int_eq(f->observed.count, 16);
	ck_assert_int_eq(f->expected.count, 20);
	ck_assert_str_eq(f->place.path, "data/0");
}
END_TEST

START_TEST(a_flipped_bit_in_the_pickle_breaks_its_checksum)
{
	file = bytes_of_file(DATA "small.pt");
	size_t at = bytes_find(&file, "weight", 6, 0);
	file.p[at] = 'W';
	ck_assert_int_eq(open_bytes(), RP_OK);
	ck_assert_ptr_nonnull(found(FINDING_I103, "CRC-32"));
	ck_assert_int_eq(val_get(doc.root, "Weight").kind, VAL_TENSOR);
}
END_TEST

START_TEST(a_local_header_that_disagrees_is_found_on_locating)
{
	file = bytes_of_file(DATA "small.pt");
	size_t at = bytes_find(&file, "small/data/0", 12, 0);
	file.p[at] = 'S';
	ck_assert_int_eq(open_bytes(), RP_OK);
	ck_assert_uint_eq(sink.list.count, 0);
	struct storage *s = val_get(doc.root, "weight").tensor->storage;
	ck_assert_int_eq(document_locate(&doc, s, &sink, &error), RP_OK);
	ck_assert_ptr_nonnull(found(FINDING_I104, "disagree about its name"));
}
END_TEST

START_TEST(what_torch_could_not_have_written_stays_an_object)
{
	static const struct {
		const char *pickle, *words;
	} cases[] = {
		{TENSOR("0", "I5\n", "I1\n"), "beyond the end of its storage"},
		{TENSOR("1", "I4\n", "I1\n"), "beyond the end of its storage"},
		{TENSOR("0", "I2\nI2\n", "I4\nI1\n"), "beyond the end of its storage"},
		{TENSOR("0", "I-2\n", "I1\n"), "negative size"},
		{TENSOR("0", "I4294967296\nI4294967296\n", "I1\nI1\n"), "too many elements"},
		{TENSOR("0", "I2\nI2\n", "I1\n"), "cannot be read"},
		{TENSOR("0", "I2\n", "I-1\n"), "negative stride"},
		{TENSOR("-1", "I2\n", "I1\n"), "cannot be read"},
		{TENSOR("0", "S'2'\n", "I1\n"), "cannot be read"},
		{TENSOR("9223372036854775807", "I2\n", "I1\n"), "beyond the end of its storage"},
		{"ctorch._utils\n_rebuild_tensor_v2\n(NI0\n(I2\nt(I1\ntI00\nNtR",
			"without a storage"},
		{"(S'storage'\nctorch\nNoStorage\nS'0'\nS'cpu'\nI4\ntQ", "names no storage"},
		{"(S'storage'\nctorch\nFloatStorage\nS'0'\nS'cpu'\nI-4\ntQ", "names no storage"},
	};
	struct bytes text = {0};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		text.n = 0;
		bytes_add(&text, "(lS'first'\na", 12);
		bytes_add(&text, cases[i].pickle, strlen(cases[i].pickle));
		bytes_add(&text, "a.", 3);
		ck_assert_msg(open_pickle((char *)text.p) == RP_OK, "%s", error.text);
		const struct finding *f = found(FINDING_I104, cases[i].words);
		ck_assert_msg(f != NULL, "case %zu: %s", i, cases[i].words);
	}
	bytes_release(&text);
}
END_TEST

START_TEST(findings_name_the_value)
{
	struct bytes text = {0};
	const char *tensor = TENSOR("0", "I5\n", "I1\n");

	bytes_add(&text, "(dS'model'\n(dS'0.weight'\n(lNa", 29);
	bytes_add(&text, tensor, strlen(tensor));
	bytes_add(&text, "ass.", 5);
	ck_assert_msg(open_pickle((char *)text.p) == RP_OK, "%s", error.text);
	const struct finding *f = found(FINDING_I104, "beyond");
	ck_assert_ptr_nonnull(f);
	ck_assert_str_eq(f->place.path, ".model[\"0.weight\"][1]");
	bytes_release(&text);
}
END_TEST

START_TEST(many_dimensions_are_too_many)
{
	struct bytes text = {0};
	const char *head = "ctorch._utils\n_rebuild_tensor_v2\n(" STORAGE("4") "I0\n(";

	bytes_add(&text, head, strlen(head));
	for (int i = 0; i < 65; i++)
		bytes_add(&text, "I1\n", 3);
	bytes_add(&text, "t(", 2);
	for (int i = 0; i < 65; i++)
		bytes_add(&text, "I1\n", 3);
	bytes_add(&text, "tI00\nNtR.", 10);
	ck_assert_int_eq(open_pickle((char *)text.p), RP_OK);
	ck_assert_ptr_nonnull(found(FINDING_I104, "cannot be read"));
	bytes_release(&text);
}
END_TEST

START_TEST(a_graph_that_contains_itself_ends)
{
	ck_assert_int_eq(open_pickle("(lp0\ng0\na."), RP_OK);
	ck_assert_int_eq(doc.root.kind, VAL_LIST);
	ck_assert_ptr_eq(val_at(doc.root, 0).node, doc.root.node);
}
END_TEST

START_TEST(calls_in_calls_do_not_exhaust_the_stack)
{
	/* parameter(parameter(parameter(… */
	const unsigned depth = 100000;
	struct bytes text = {0};

	for (unsigned i = 0; i < depth; i++)
		bytes_add(&text, "ctorch._tensor\n_rebuild_from_type_v2\n(Nctorch\nTensor\n", 53);
	bytes_add(&text, "N", 1);
	for (unsigned i = 0; i < depth; i++)
		bytes_add(&text, "tR", 2);
	bytes_add(&text, ".", 2);
	open_pickle((char *)text.p);
	/* Arguments as a call: from_type(from_type, T, (from_type, T, (… */
	text.n = 0;
	for (unsigned i = 0; i < depth; i++)
		bytes_add(&text, "(ctorch._tensor\n_rebuild_from_type_v2\nctorch\nTensor\n", 52);
	bytes_add(&text, "(N", 2);
	for (unsigned i = 0; i <= depth; i++)
		bytes_add(&text, "t", 1);
	bytes_splice(&text, 0, 0, "ctorch._tensor\n_rebuild_from_type_v2\n", 37);
	bytes_add(&text, "R.", 3);
	open_pickle((char *)text.p);
	bytes_release(&text);
}
END_TEST

START_TEST(the_same_torch_file_inside_many_calls_meets_a_limit)
{
	struct bytes inner = bytes_of_file(DATA "small-legacy.pt");

	file.n = 0;
	bytes_add(&file, "\x80\x02](B", 5);
	bytes_add_le(&file, inner.n, 4);
	bytes_add(&file, inner.p, inner.n);
	bytes_add(&file,
		"q\x01"
		"0",
		3);
	for (int i = 0; i < 200; i++)
		bytes_add(&file, "ctorch.storage\n_load_from_bytes\nh\x01\x85R", 36);
	bytes_add(&file, "e.", 2);
	ck_assert_int_eq(open_bytes(), RP_E_LIMIT);
	bytes_release(&inner);
}
END_TEST

START_TEST(bytes_behind_a_pickle_are_a_warning)
{
	file.n = 0;
	bytes_add(&file, "\x80\x02K\x07.more", 9);
	ck_assert_int_eq(open_bytes(), RP_OK);
	ck_assert_int_eq(doc.root.i, 7);
	ck_assert_str_eq(doc.container->name, "pickle");
	const struct finding *f = found(FINDING_I104, "4 bytes follow");
	ck_assert_ptr_nonnull(f);
	ck_assert_int_eq(f->severity, SEVERITY_WARNING);
}
END_TEST

START_TEST(big_endian_archives_are_read_in_their_order)
{
	const struct part parts[] = {
		{"a/data.pkl", slice_of(TENSOR("0", "I2\n", "I1\n") ".")},
		{"a/byteorder", {"big", 3}},
		{"a/data/0", {"\x3f\x80\0\0\x40\0\0\0\x40\x40\0\0\x40\x80\0\0", 16}},
	};
	double v;
	float two[2];
	size_t n;

	build_zip(parts, 3);
	ck_assert_int_eq(open_bytes(), RP_OK);
	ck_assert_int_eq(doc.root.kind, VAL_TENSOR);
	const struct tensor *t = doc.root.tensor;
	ck_assert(t->storage->big_endian);
	ck_assert_int_eq(tensor_read_double(&doc, t, 1, &v, &error), RP_OK);
	ck_assert(v == 2);
	ck_assert_int_eq(tensor_read_bytes(&doc, t, (uint8_t *)two, sizeof two, &n, &error), RP_OK);
	ck_assert(two[0] == 1 && two[1] == 2);
}
END_TEST

START_TEST(every_flipped_byte_is_survived)
{
	static const char *const files[] = {DATA "small.pt", DATA "small-legacy.pt", DATA "odd.pt"};
	static const uint8_t values[] = {0x00, 0x01, 0x7f, 0x80, 0xff};

	bytes_release(&file);
	file = bytes_of_file(files[_i]);
	for (size_t at = 0; at < file.n; at++)
		for (size_t k = 0; k < sizeof values; k++) {
			uint8_t kept = file.p[at];
			file.p[at] = values[k];
			if (open_bytes() == RP_OK)
				for (size_t i = 0; i < doc.storages.count; i++) {
					struct storage *s = doc.storages.items[i];
					struct error e = ERROR_INIT;
					uint8_t byte;
					if (s->length > 0)
						document_read(&doc, s, s->length - 1, &byte, 1, &e);
				}
			else
				ck_assert_int_lt(error.status, 0);
			forget();
			file.p[at] = kept;
		}
}
END_TEST

Suite *suite_torch(void)
{
	Suite *s = suite_create("torch");
	const int reals = sizeof real_files / sizeof *real_files;
	TCase *c = tcase_create("real files");

	tcase_add_checked_fixture(c, setup, teardown);
	tcase_add_loop_test(c, every_tensor_of_a_real_file_has_shape_dtype_and_values, 0, reals);
	tcase_add_loop_test(c, other_torch_values_are_plain_ones, 0, reals);
	tcase_add_loop_test(c, arrays_are_tensors_with_inline_bytes, 0, reals);
	tcase_add_loop_test(c, numpy_scalars_are_numbers, 0, reals);
	tcase_add_test(c, tensors_that_share_a_storage_share_it_here);
	tcase_add_test(c, sparse_and_quantized_tensors_show_their_parts);
	tcase_add_test(c, a_document_may_move);
	tcase_add_test(c, formats_that_are_not_read_are_named);
	tcase_add_test(c, compressed_tensors_are_located_but_not_read);
	suite_add_tcase(s, c);
	c = tcase_create("damage");
	tcase_set_timeout(c, 120);
	tcase_add_checked_fixture(c, setup, teardown);
	tcase_add_test(c, a_placeholder_says_what_should_be_there);
	tcase_add_test(c, a_truncated_archive_is_named_wherever_it_is_cut);
	tcase_add_test(c, a_truncated_archive_with_its_pickle_tells_how_much_is_missing);
	tcase_add_test(c, a_truncated_legacy_file_never_passes);
	tcase_add_test(c, a_storage_that_the_archive_lacks_is_named);
	tcase_add_test(c, a_storage_of_another_length_is_reported_with_both);
	tcase_add_test(c, a_flipped_bit_in_the_pickle_breaks_its_checksum);
	tcase_add_test(c, a_local_header_that_disagrees_is_found_on_locating);
	tcase_add_test(c, what_torch_could_not_have_written_stays_an_object);
	tcase_add_test(c, findings_name_the_value);
	tcase_add_test(c, many_dimensions_are_too_many);
	tcase_add_test(c, a_graph_that_contains_itself_ends);
	tcase_add_test(c, calls_in_calls_do_not_exhaust_the_stack);
	tcase_add_test(c, the_same_torch_file_inside_many_calls_meets_a_limit);
	tcase_add_test(c, bytes_behind_a_pickle_are_a_warning);
	tcase_add_test(c, big_endian_archives_are_read_in_their_order);
	tcase_add_loop_test(c, every_flipped_byte_is_survived, 0, 3);
	suite_add_tcase(s, c);
	return s;
}
