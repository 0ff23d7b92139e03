/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/cursor.h"
#include "base/strbuf.h"
#include "container/document.h"
#include "support/bytes.h"

#include <check.h>

Suite *suite_safetensors(void);

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define DATA "tests/unit/data/safetensors/"

static struct limits limits;
static struct findings sink;
static struct error error;
static struct document document;

static void setup(void)
{
	limits = limits_default();
	findings_init(&sink);
	error = ERROR_INIT;
	document = (struct document){.source = {.fd = -1}};
}

static void teardown(void)
{
	document_close(&document);
	findings_release(&sink);
}

static int open_bytes(const struct bytes *b)
{
	teardown();
	setup();
	return document_open_bytes(&document, (struct slice){(const char *)b->p, b->n},
		"m.safetensors", &limits, &sink, &error);
}

static void open_file(const char *path)
{
	ck_assert_msg(
		document_open(&document, AT_FDCWD, path, path, &limits, &sink, &error) == RP_OK,
		"%s: %s", path, error.text);
	ck_assert_str_eq(document.container->name, "safetensors");
	ck_assert_uint_eq(sink.list.count, 0);
}

/* A file with this header and `data` bytes behind it. */
static struct bytes make(const char *header, size_t data)
{
	struct bytes b = {0};

	bytes_add_le(&b, strlen(header), 8);
	bytes_add(&b, header, strlen(header));
	for (size_t i = 0; i < data; i++)
		bytes_add(&b, "\xa5", 1);
	return b;
}

static const struct tensor *tensor_named(const char *name)
{
	struct val v = val_get(document.root, name);

	ck_assert_msg(v.kind == VAL_TENSOR, "no tensor %s", name);
	return v.tensor;
}

static double element(const char *name, uint64_t i)
{
	double v = 0;

	ck_assert_msg(tensor_read_double(&document, tensor_named(name), i, &v, &error) == RP_OK,
		"%s: %s", name, error.text);
	return v;
}

static size_t found(enum finding_code code, const char *text)
{
	size_t count = 0;

	for (size_t i = 0; i < sink.list.count; i++)
		count +=
			sink.list.items[i].code == code && strstr(sink.list.items[i].message, text);
	return count;
}

START_TEST(reads_a_model)
{
	static const double norm[] = {0.2216796875, -0.055908203125, 1.203125, 1.9453125,
		-0.07666015625, -0.85546875, -0.78515625, -0.81640625};

	open_file(DATA "model.safetensors");
	ck_assert_uint_eq(val_count(document.root), 11);
	ck_assert_uint_eq(document.tensors, 10);
	ck_assert_uint_eq(document.storages.count, 10);
	ck_assert(slice_is(document.writer, "format pt"));
	ck_assert(val_is_text(val_dig(document.root, "__metadata__", "format", NULL), "pt"));
	for (uint64_t i = 0; i < 40; i++)
		ck_assert_double_eq(element("model.embed.weight", i), (double)i);
	for (uint64_t i = 0; i < COUNT(norm); i++)
		ck_assert_double_eq(element("model.layers.1.norm.weight", i), norm[i]);
	ck_assert_double_eq(element("model.layers.2.mlp.weight", 127), -0.59765625);

	const struct tensor *t = tensor_named("model.layers.2.mlp.weight");
	ck_assert_uint_eq(t->ndim, 2);
	ck_assert_int_eq(t->shape[0], 16);
	ck_assert_int_eq(t->shape[1], 8);
	ck_assert_uint_eq(t->numel, 128);
	ck_assert_int_eq(t->dtype, DTYPE_BF16);
	ck_assert_uint_eq(t->storage->length, 256);
	ck_assert_uint_eq(t->storage->offset, 2240 - 1360 + 1088);
	ck_assert_uint_eq(t->storage->users, 1);
	ck_assert(slice_is(t->storage->name, "model.layers.2.mlp.weight"));
	ck_assert(tensor_is_contiguous(t));
	ck_assert_uint_eq(tensor_reach(t), t->storage->length);
}
END_TEST

START_TEST(reads_every_dtype)
{
	static const char *const numbers[] = {"uint8", "int8", "uint16", "int16", "uint32", "int32",
		"uint64", "int64", "float16", "bfloat16", "float32", "float64", "float8_e4m3fn",
		"float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"};

	open_file(DATA "dtypes.safetensors");
	ck_assert_uint_eq(document.tensors, 22);
	for (size_t i = 0; i < COUNT(numbers); i++) {
		const struct tensor *t = tensor_named(numbers[i]);
		ck_assert_str_eq(dtype_rows[t->dtype].name, numbers[i]);
		for (uint64_t j = 0; j < 6; j++)
			ck_assert_double_eq(element(numbers[i], j), (double)j);
	}
	ck_assert_double_eq(element("float8_e8m0fnu", 1), 1);
	ck_assert_double_eq(element("float8_e8m0fnu", 4), 4);
	ck_assert_double_eq(element("scalar", 0), -2.5);
	ck_assert_uint_eq(tensor_named("scalar")->ndim, 0);
	ck_assert_uint_eq(tensor_named("scalar")->numel, 1);
	ck_assert_double_eq(element("bool", 0), 1);
	ck_assert_double_eq(element("bool", 1), 0);
	ck_assert_int_eq(tensor_named("complex64")->dtype, DTYPE_C64);
	ck_assert_uint_eq(tensor_named("empty")->numel, 0);
	ck_assert_uint_eq(tensor_named("empty")->ndim, 2);
	/* As torch has it: pairs. */
	const struct tensor *t = tensor_named("float4");
	ck_assert_int_eq(t->dtype, DTYPE_F4);
	ck_assert_uint_eq(t->ndim, 2);
	ck_assert_int_eq(t->shape[0], 2);
	ck_assert_int_eq(t->shape[1], 3);
	ck_assert_uint_eq(t->numel, 6);
	ck_assert_uint_eq(tensor_reach(t), t->storage->length);
}
END_TEST

START_TEST(reads_odd_names_and_nothing)
{
	open_file(DATA "names.safetensors");
	ck_assert_double_eq(element("a\"b\\c\n", 1), 1);
	ck_assert_double_eq(element("größe", 2), 2);
	ck_assert_double_eq(element("", 0), 0);
	ck_assert(val_is_text(val_dig(document.root, "__metadata__", "kéy", NULL), "välue"));
	teardown();
	setup();
	open_file(DATA "nothing.safetensors");
	ck_assert_uint_eq(val_count(document.root), 0);
	ck_assert_int_eq(document.root.kind, VAL_DICT);
}
END_TEST

START_TEST(a_file_cut_anywhere_is_truncated)
{
	struct bytes whole = bytes_of_file(DATA "model.safetensors");
	size_t header = 8 + (size_t)load_le64(whole.p);

	for (size_t n = 10; n < whole.n; n++) {
		struct bytes part = {.p = whole.p, .n = n};
		int status = open_bytes(&part);
		ck_assert_msg(sink.of_code[FINDING_I102] == 1 && sink.list.count == 1, "at %zu", n);
		const struct finding *f = &sink.list.items[0];
		ck_assert_int_eq(status, n < header ? RP_E_FORMAT : RP_OK);
		ck_assert_int_eq(f->observed.count, (int64_t)n);
		ck_assert_int_eq(f->expected.count, (int64_t)(n < header ? header : whole.n));
		ck_assert_str_eq(f->unit, "bytes");
		ck_assert_str_eq(f->place.file, "m.safetensors");
		if (n >= header) {
			/* What is there can be read still. */
			ck_assert_uint_eq(document.tensors, 10);
			double v;
			bool readable = n - header >= 160;
			ck_assert_int_eq(
				tensor_read_double(&document, tensor_named("model.embed.weight"),
					39, &v, &error),
				readable ? RP_OK : RP_E_FORMAT);
		}
	}
	struct bytes part = {.p = whole.p, .n = whole.n * 61 / 100};
	open_bytes(&part);
	ck_assert_str_eq(sink.list.items[0].message,
		"the file has 61 % of its declared size, 8 of 10 tensors are cut off");
	part.n = whole.n - 1;
	open_bytes(&part);
	ck_assert_str_eq(sink.list.items[0].message,
		"the file has over 99 % of its declared size, 1 of 10 tensors are cut off");
	bytes_release(&whole);
}
END_TEST

START_TEST(bytes_at_the_end_are_malformed)
{
	struct bytes b = bytes_of_file(DATA "model.safetensors");

	bytes_add(&b, "xyz", 3);
	ck_assert_int_eq(open_bytes(&b), RP_OK);
	ck_assert_uint_eq(sink.list.count, 1);
	ck_assert_uint_eq(found(FINDING_I104, "3 bytes follow the last tensor"), 1);
	ck_assert_uint_eq(sink.list.items[0].place.offset, 2240);
	ck_assert_int_eq(sink.list.items[0].observed.count, 2243);
	ck_assert_int_eq(sink.list.items[0].expected.count, 2240);
	bytes_release(&b);
}
END_TEST

START_TEST(a_wrong_length_is_seen)
{
	static const struct {
		uint64_t length;
		enum finding_code code;
	} cases[] = {
		{0, FINDING_I104},
		{1, FINDING_I104},
		{871, FINDING_I104},
		{873, FINDING_I104},
		{3000, FINDING_I102},
		{100000000, FINDING_I102},
		{100000001, FINDING_I104},
		{UINT64_MAX >> 8, FINDING_I104},
	};
	struct bytes b = bytes_of_file(DATA "model.safetensors");

	ck_assert_uint_eq(load_le64(b.p), 872);
	for (size_t i = 0; i < COUNT(cases); i++) {
		bytes_set_le(&b, 0, cases[i].length, 8);
		open_bytes(&b);
		ck_assert_msg(sink.of_code[cases[i].code] > 0, "%llu",
			(unsigned long long)cases[i].length);
	}
	bytes_release(&b);
}
END_TEST

/* Each header with the bytes behind it, and what safetensors 0.8.0 says of it. */
START_TEST(sound_headers_pass)
{
	static const struct {
		const char *header;
		size_t data;
		uint64_t tensors;
	} cases[] = {
		{"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8, 1},
		{"{\"a\":{\"data_offsets\":[4,8],\"shape\":[1],\"dtype\":\"F32\"},"
		 "\"b\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]}}",
			8, 2},
		{"{\"a\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]},"
		 "\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
		 "\"c\":{\"dtype\":\"F32\",\"shape\":[3,0],\"data_offsets\":[4,4]}}",
			4, 3},
		{"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4],\"more\":1}}", 4,
			1},
		{"{\"a\":{\"dtype\":\"F32\",\"shape\":[0,4611686018427387904,4],\"data_offsets\":[0,0]}}",
			0, 1},
		{"{\"a\":{\"dtype\":\"F6_E2M3\",\"shape\":[4],\"data_offsets\":[0,3]}}", 3, 1},
		{"{\"a\":{\"dtype\":\"F6_E3M2\",\"shape\":[2,4],\"data_offsets\":[0,6]}}", 6, 1},
		{"{\"a\":{\"dtype\":\"F4\",\"shape\":[3,2],\"data_offsets\":[0,3]}}", 3, 1},
		{"{\"a\":{\"dtype\":\"F4\",\"shape\":[2,3],\"data_offsets\":[0,3]}}", 3, 1},
		{"{\"__metadata__\":null}", 0, 0},
		{"{\"__metadata__\":{}}   ", 0, 0},
		{"{\"__metadata__\":{\"a\":\"b\",\"a\":\"c\"}}", 0, 0},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct bytes b = make(cases[i].header, cases[i].data);
		ck_assert_msg(open_bytes(&b) == RP_OK, "%s: %s", cases[i].header, error.text);
		ck_assert_msg(sink.list.count == 0, "%s: %s", cases[i].header,
			sink.list.count ? sink.list.items[0].message : "");
		ck_assert_uint_eq(document.tensors, cases[i].tensors);
		bytes_release(&b);
	}
}
END_TEST

#define A "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}"

START_TEST(unsound_headers_do_not)
{
	static const struct {
		const char *header;
		size_t data;
		const char *message;
	} cases[] = {
		{"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}", 8,
			"4 bytes in front of it"},
		{A ",\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[8,12]}}", 12,
			"4 bytes in front of it"},
		{A ",\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4,
			"overlap those of a"},
		{A ",\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[2,6]}}", 6,
			"overlap those of a"},
		{A ",\"b\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[2,2]}}", 4,
			"overlap those of a"},
		{A "}", 5, "1 bytes follow the last tensor"},
		{A ",\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}", 8,
			"this name twice"},
		{"{\"__metadata__\":{},\"__metadata__\":{}}", 0, "this name twice"},
		{"{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}",
			4, "a field twice"},
		{"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}", 4,
			"do not enclose"},
		{"{\"a\":{\"dtype\":\"F4\",\"shape\":[3],\"data_offsets\":[0,2]}}", 2,
			"do not enclose"},
		{"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,0]}}", 4,
			"run backwards"},
		{"{\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}", 4,
			"not made of sizes"},
		{"{\"a\":{\"dtype\":\"F32\",\"shape\":[1.0],\"data_offsets\":[0,4]}}", 4,
			"not made of sizes"},
		{"{\"a\":{\"dtype\":\"F32\",\"shape\":[true],\"data_offsets\":[0,4]}}", 4,
			"not made of sizes"},
		{"{\"a\":{\"dtype\":\"F32\",\"shape\":[99999999999999999999],\"data_offsets\":[0,4]}}",
			4, "not made of sizes"},
		{"{\"a\":{\"dtype\":\"F32\",\"shape\":[4611686018427387904,4,0],\"data_offsets\":[0,0]}}",
			0, "more elements than"},
		{"{\"a\":{\"dtype\":\"F64\",\"shape\":[4611686018427387904],\"data_offsets\":[0,0]}}",
			0, "more bytes than"},
		{"{\"a\":{\"dtype\":\"F32\",\"shape\":1,\"data_offsets\":[0,4]}}", 4,
			"shape is not an array"},
		{"{\"a\":{\"dtype\":7,\"shape\":[1],\"data_offsets\":[0,4]}}", 4,
			"dtype is not a string"},
		{"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4,8]}}", 4,
			"not two offsets"},
		{"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0]}}", 4,
			"not two offsets"},
		{"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[-4,0]}}", 4,
			"not two offsets"},
		{"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":\"0-4\"}}", 4,
			"not two offsets"},
		{"{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, "no data_offsets"},
		{"{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", 4, "no shape"},
		{"{\"a\":{\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "no dtype"},
		{"{\"a\":[]}", 0, "not an object"},
		{"{\"a\":null}", 0, "not an object"},
		{"{\"__metadata__\":[]}", 0, "__metadata__ is not an object"},
		{"{\"__metadata__\":{\"a\":1}}", 0, "is not a string"},
		{"{\"a\":{\"dtype\":\"F99\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4,
			"unknown dtype, such as F99"},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct bytes b = make(cases[i].header, cases[i].data);
		ck_assert_msg(open_bytes(&b) == RP_OK, "%s: %s", cases[i].header, error.text);
		ck_assert_msg(found(FINDING_I104, cases[i].message) == 1, "%s: %s", cases[i].header,
			sink.list.count ? sink.list.items[0].message : "nothing");
		bytes_release(&b);
	}
}
END_TEST

START_TEST(headers_that_are_no_object_are_malformed)
{
	static const struct {
		const char *header;
		uint64_t offset;
	} cases[] = {
		{"{\"a\":}", 13},
		{"{\"a\":1,}", 15},
		{"{} x", 11},
		{"{\"a\":{}", 15},
		{"{\"\xff\":1}", 10},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct bytes b = make(cases[i].header, 0);
		ck_assert_int_eq(open_bytes(&b), RP_E_FORMAT);
		ck_assert_str_eq(
			document.container ? document.container->name : "closed", "closed");
		ck_assert_uint_eq(sink.list.count, 1);
		ck_assert_int_eq(sink.list.items[0].code, FINDING_I104);
		ck_assert_uint_eq(sink.list.items[0].place.offset, cases[i].offset);
		ck_assert_uint_eq(error.offset, cases[i].offset);
		bytes_release(&b);
	}
}
END_TEST

START_TEST(offsets_beyond_64_bits_are_truncation)
{
	struct bytes b = make("{\"a\":{\"dtype\":\"U8\",\"shape\":[1152921504606846976],"
			      "\"data_offsets\":[17293822569102704639,18446744073709551615]}}",
		3);
	double v;

	ck_assert_int_eq(open_bytes(&b), RP_OK);
	ck_assert_uint_eq(sink.of_code[FINDING_I102], 1);
	ck_assert_int_eq(
		tensor_read_double(&document, tensor_named("a"), 5, &v, &error), RP_E_FORMAT);
	bytes_release(&b);
}
END_TEST

START_TEST(more_dimensions_than_anyone_has_are_flattened)
{
	struct strbuf s;

	strbuf_init(&s, 4096);
	strbuf_add_text(&s, "{\"a\":{\"dtype\":\"U8\",\"data_offsets\":[0,4],\"shape\":[2");
	for (int i = 0; i < 70; i++)
		strbuf_add_text(&s, i == 50 ? ",2" : ",1");
	strbuf_add_text(&s, "]}}");
	struct bytes b = make(strbuf_text(&s), 4);
	ck_assert_int_eq(open_bytes(&b), RP_OK);
	ck_assert_uint_eq(sink.list.count, 0);
	ck_assert_uint_eq(tensor_named("a")->ndim, 1);
	ck_assert_int_eq(tensor_named("a")->shape[0], 4);
	ck_assert_double_eq(element("a", 3), 0xa5);
	bytes_release(&b);
	strbuf_release(&s);
}
END_TEST

START_TEST(unknown_dtypes_keep_their_bytes)
{
	struct bytes b = make("{\"a\":{\"dtype\":\"F6_E2M3\",\"shape\":[4],\"data_offsets\":[0,3]},"
			      "\"b\":{\"dtype\":\"X\",\"shape\":[5],\"data_offsets\":[3,4]}}",
		4);
	double v;

	ck_assert_int_eq(open_bytes(&b), RP_OK);
	ck_assert_uint_eq(sink.list.count, 1);
	ck_assert_int_eq(sink.list.items[0].severity, SEVERITY_WARNING);
	ck_assert_int_eq(tensor_named("a")->dtype, DTYPE_UNKNOWN);
	ck_assert_uint_eq(tensor_named("a")->storage->length, 3);
	ck_assert_uint_eq(tensor_named("b")->storage->length, 1);
	ck_assert_int_eq(
		tensor_read_double(&document, tensor_named("a"), 0, &v, &error), RP_E_UNSUPPORTED);
	bytes_release(&b);
}
END_TEST

START_TEST(any_single_byte_may_be_damaged)
{
	struct bytes b = bytes_of_file(DATA "dtypes.safetensors");
	size_t header = 8 + (size_t)load_le64(b.p);

	for (size_t i = 0; i < header; i++)
		for (int bit = 0; bit < 8; bit++) {
			b.p[i] ^= (uint8_t)(1 << bit);
			int status = open_bytes(&b);
			/* A failure leaves a finding, except when this is no safetensors file any
			 * more. */
			if (status == RP_E_FORMAT)
				ck_assert_uint_gt(sink.list.count, 0);
			else if (status != RP_OK)
				ck_assert_int_eq(status, RP_E_UNSUPPORTED);
			for (uint64_t j = 0; status == RP_OK && j < val_count(document.root); j++) {
				struct val v = val_part(document.root, j, NULL);
				double d;
				struct error ignored = ERROR_INIT;
				if (v.kind == VAL_TENSOR && v.tensor->numel > 0)
					tensor_read_double(&document, v.tensor, v.tensor->numel - 1,
						&d, &ignored);
			}
			b.p[i] ^= (uint8_t)(1 << bit);
		}
	bytes_release(&b);
}
END_TEST

START_TEST(limits_hold)
{
	struct bytes b = bytes_of_file(DATA "model.safetensors");
	struct slice s = {(const char *)b.p, b.n};

	limits.entries = 10;
	ck_assert_int_eq(
		document_open_bytes(&document, s, "m", &limits, &sink, &error), RP_E_LIMIT);
	limits = limits_default();
	error = ERROR_INIT;
	limits.header_bytes = 871;
	ck_assert_int_eq(
		document_open_bytes(&document, s, "m", &limits, &sink, &error), RP_E_LIMIT);
	ck_assert_uint_eq(sink.list.count, 0);
	/* Whatever memory there is, it is read or not, and never half. */
	limits = limits_default();
	int status = RP_E_MEMORY;
	for (limits.memory = 0; status != RP_OK; limits.memory += 64) {
		error = ERROR_INIT;
		ck_assert_uint_lt(limits.memory, 100000);
		status = document_open_bytes(&document, s, "m", &limits, &sink, &error);
		ck_assert_msg(
			status == RP_OK || status == RP_E_MEMORY, "%d %s", status, error.text);
		ck_assert_uint_eq(sink.list.count, 0);
	}
	ck_assert_uint_eq(document.tensors, 10);
	bytes_release(&b);
}
END_TEST

START_TEST(json_is_not_mistaken_for_it)
{
	static const char json[] =
		"{\"head\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}";
	struct bytes b = {0};

	/* A brace where the header of a safetensors file has it. */
	ck_assert_int_eq(json[8], '{');
	bytes_add(&b, json, strlen(json));
	ck_assert_int_eq(open_bytes(&b), RP_OK);
	ck_assert_str_eq(document.container->name, "json");
	bytes_release(&b);
}
END_TEST

START_TEST(a_hundred_thousand_tensors_are_fast)
{
	struct strbuf s;
	struct timespec begin, end;

	strbuf_init(&s, (size_t)64 << 20);
	strbuf_add_char(&s, '{');
	for (int i = 0; i < 100000; i++)
		strbuf_printf(&s,
			"%s\"model.layers.%d.mlp.experts.%d.weight\":{\"dtype\":\"U8\",\"shape\":[1,2],"
			"\"data_offsets\":[%d,%d]}",
			i ? "," : "", i / 100, i % 100, 2 * i, 2 * i + 2);
	/* And two of one name, so that names are compared. */
	strbuf_add_text(&s,
		",\"model.layers.500.mlp.experts.0.weight\":{\"dtype\":\"U8\",\"shape\":[0],"
		"\"data_offsets\":[0,0]}}");
	struct bytes b = make(strbuf_text(&s), 200000);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
	ck_assert_int_eq(open_bytes(&b), RP_OK);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
	ck_assert_uint_eq(document.tensors, 100001);
	ck_assert_uint_eq(sink.list.count, 1);
	ck_assert_uint_eq(found(FINDING_I104, "twice"), 1);
	double seconds =
		(double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) / 1e9;
	ck_assert_msg(seconds < 3, "%g s", seconds);
	bytes_release(&b);
	strbuf_release(&s);
}
END_TEST

Suite *suite_safetensors(void)
{
	Suite *s = suite_create("safetensors");
	TCase *t = tcase_create("safetensors");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, reads_a_model);
	tcase_add_test(t, reads_every_dtype);
	tcase_add_test(t, reads_odd_names_and_nothing);
	tcase_add_test(t, a_file_cut_anywhere_is_truncated);
	tcase_add_test(t, bytes_at_the_end_are_malformed);
	tcase_add_test(t, a_wrong_length_is_seen);
	tcase_add_test(t, sound_headers_pass);
	tcase_add_test(t, unsound_headers_do_not);
	tcase_add_test(t, headers_that_are_no_object_are_malformed);
	tcase_add_test(t, offsets_beyond_64_bits_are_truncation);
	tcase_add_test(t, more_dimensions_than_anyone_has_are_flattened);
	tcase_add_test(t, unknown_dtypes_keep_their_bytes);
	tcase_add_test(t, any_single_byte_may_be_damaged);
	tcase_add_test(t, limits_hold);
	tcase_add_test(t, json_is_not_mistaken_for_it);
	tcase_add_test(t, a_hundred_thousand_tensors_are_fast);
	suite_add_tcase(s, t);
	return s;
}
