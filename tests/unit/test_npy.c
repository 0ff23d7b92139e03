/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "container/document.h"
#include "container/literal.h"

#include <check.h>

Suite *suite_npy(void);

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define FIXTURES "fixtures/numpy-2.4.6/formats/"

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

/* A file that NumPy wrote, without a finding. */
static struct val open_file(const char *name)
{
	char path[200];

	teardown();
	setup();
	snprintf(path, sizeof path, FIXTURES "%s", name);
	ck_assert_msg(
		document_open(&document, AT_FDCWD, path, path, &limits, &sink, &error) == RP_OK,
		"%s: %s", path, error.text);
	return document.root;
}

static void assert_tensor(
	struct val v, enum dtype dtype, size_t ndim, uint64_t numel, const double *elements)
{
	struct error e = ERROR_INIT;
	double found;

	ck_assert_int_eq(v.kind, VAL_TENSOR);
	ck_assert_int_eq(v.tensor->dtype, dtype);
	ck_assert_uint_eq(v.tensor->ndim, ndim);
	ck_assert_uint_eq(v.tensor->numel, numel);
	for (uint64_t i = 0; elements && i < numel; i++) {
		ck_assert_int_eq(tensor_read_double(&document, v.tensor, i, &found, &e), RP_OK);
		ck_assert_double_eq(found, elements[i]);
	}
}

static const double twelve[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};

START_TEST(reads_numbers_of_every_version_and_order)
{
	static const struct {
		const char *file;
		enum dtype dtype;
	} files[] = {
		{"f4.npy", DTYPE_F32},
		{"fortran.npy", DTYPE_F32},
		{"version-2.npy", DTYPE_F32},
		{"big-endian.npy", DTYPE_F64},
	};

	for (size_t i = 0; i < COUNT(files); i++) {
		struct val v = open_file(files[i].file);
		ck_assert_str_eq(document.container->name, "npy");
		ck_assert_uint_eq(sink.list.count, 0);
		assert_tensor(v, files[i].dtype, 2, 12, twelve);
		ck_assert_int_eq(v.tensor->shape[0], 3);
		ck_assert_int_eq(v.tensor->shape[1], 4);
		ck_assert_uint_eq(
			v.tensor->storage->length, 12 * dtype_size((enum dtype)v.tensor->dtype));
	}
	assert_tensor(open_file("scalar.npy"), DTYPE_I64, 0, 1, (double[]){5});
	assert_tensor(open_file("bool.npy"), DTYPE_BOOL, 1, 2, (double[]){1, 0});
	assert_tensor(open_file("empty.npy"), DTYPE_F64, 2, 0, NULL);
	assert_tensor(open_file("complex.npy"), DTYPE_C128, 1, 1, NULL);
}
END_TEST

START_TEST(describes_what_is_no_number)
{
	ck_assert(val_is_text(open_file("text.npy"), "MT19937"));
	ck_assert(val_is_text(val_get(open_file("texts.npy"), "descr"), "<U3"));
	ck_assert(val_is_text(val_get(open_file("date.npy"), "descr"), "<M8[D]"));
	struct val record = val_get(open_file("record.npy"), "descr");
	ck_assert_uint_eq(val_count(record), 4);
	ck_assert(val_is_text(val_at(val_at(record, 3), 0), "v"));
	struct val field = val_at(val_get(open_file("version-3.npy"), "descr"), 0);
	ck_assert(val_is_text(val_at(field, 0), "gr\xc3\xb6\xc3\x9f\x65"));
	ck_assert_uint_eq(sink.list.count, 0);
}
END_TEST

START_TEST(objects_are_pickles_and_said_to_be)
{
	struct val v = open_file("objects.npy");

	ck_assert_uint_eq(val_count(v), 3);
	ck_assert(val_is_text(val_at(v, 2), "x"));
	ck_assert_uint_eq(sink.of_code[FINDING_I116], 1);
	/* A dict that was given to numpy.save() comes back as one. */
	int64_t step;
	ck_assert(val_to_i64(val_get(open_file("dict.npy"), "step"), &step));
	ck_assert_int_eq(step, 12);
}
END_TEST

START_TEST(reads_archives_stored_and_packed)
{
	static const char *const files[] = {"step_30.npz", "packed.npz"};

	for (size_t i = 0; i < COUNT(files); i++) {
		struct val v = open_file(files[i]);
		ck_assert_str_eq(document.container->name, "npz");
		ck_assert_uint_eq(sink.list.count, 0);
		ck_assert_uint_eq(val_count(v), 4);
		assert_tensor(val_get(v, "fc1.weight"), DTYPE_F32, 2, 12, twelve);
		assert_tensor(val_get(v, "step"), DTYPE_I64, 0, 1, (double[]){30});
		/* The archive's checksum stands for the whole of a stored entry. */
		ck_assert_int_eq(val_get(v, "step").tensor->storage->crc_known, i == 0);
	}
}
END_TEST

/* Version 1 with this header, padded to 118 bytes as NumPy does, and `data` bytes behind it. */
static int open_made(const char *header, size_t data)
{
	static char file[400];
	size_t n = strlen(header);

	teardown();
	setup();
	memset(file, 0, sizeof file);
	memcpy(file, "\x93NUMPY\1\0\x76\0", 10);
	memset(file + 10, ' ', 118);
	memcpy(file + 10, header, n < 118 ? n : 118);
	return document_open_bytes(
		&document, (struct slice){file, 128 + data}, "made.npy", &limits, &sink, &error);
}

START_TEST(damage_is_found_where_it_is)
{
	static const struct {
		const char *header;
		size_t data;
		enum finding_code code;
		int status;
	} files[] = {
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (4,), }", 16, FINDING_COUNT,
			RP_OK},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (4L,), }", 16, FINDING_COUNT,
			RP_OK},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (4,), }", 12, FINDING_I102,
			RP_E_FORMAT},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (4,), }", 20, FINDING_I104,
			RP_OK},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }", 16, FINDING_I104,
			RP_E_FORMAT},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807, 4), }",
			16, FINDING_I104, RP_E_FORMAT},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (4.0,), }", 16, FINDING_I104,
			RP_E_FORMAT},
		{"{'descr': '<f4', 'fortran_order': 0, 'shape': (4,), }", 16, FINDING_I104,
			RP_E_FORMAT},
		{"{'descr': '<f4', 'fortran_order': False, }", 16, FINDING_I104, RP_E_FORMAT},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (4,), 'x': 1}", 16,
			FINDING_I104, RP_E_FORMAT},
		{"__import__('os').system('true')", 16, FINDING_I104, RP_E_FORMAT},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (4,), } 1", 16, FINDING_I104,
			RP_E_FORMAT},
		{"{'descr': '<U4', 'fortran_order': False, 'shape': (), }", 12, FINDING_I102,
			RP_E_FORMAT},
		{"{'descr': [('a', '<i4'), ('b', '<f8')], 'fortran_order': False, 'shape': (2,), }",
			20, FINDING_I102, RP_E_FORMAT},
		{"{'descr': '|O', 'fortran_order': False, 'shape': (), }", 4, FINDING_I104,
			RP_E_FORMAT},
	};

	for (size_t i = 0; i < COUNT(files); i++) {
		int status = open_made(files[i].header, files[i].data);
		ck_assert_msg(status == files[i].status, "%s: %d %s", files[i].header, status,
			error.text);
		if (files[i].code == FINDING_COUNT)
			ck_assert_msg(sink.list.count == 0, "%s", files[i].header);
		else
			ck_assert_msg(sink.of_code[files[i].code] > 0, "%s", files[i].header);
	}
}
END_TEST

START_TEST(versions_that_are_not_known_are_said_to_be)
{
	char file[128] = "\x93NUMPY\4\0\x76\0";

	setup();
	ck_assert_int_eq(document_open_bytes(&document, (struct slice){file, sizeof file}, "f",
				 &limits, &sink, &error),
		RP_E_UNSUPPORTED);
	ck_assert_ptr_nonnull(strstr(error.text, "4.0"));
}
END_TEST

/* An array of objects whose pickle calls os.system. */
START_TEST(a_pickle_that_runs_code_is_unsafe_here_too)
{
	static const char pickle[] = "cos\nsystem\n(S'true'\ntR.";
	char file[128 + sizeof pickle];
	const char header[] = "{'descr': '|O', 'fortran_order': False, 'shape': (), }";

	setup();
	memset(file, ' ', sizeof file);
	memcpy(file, "\x93NUMPY\1\0\x76\0", 10);
	memcpy(file + 10, header, sizeof header - 1);
	memcpy(file + 128, pickle, sizeof pickle - 1);
	ck_assert_int_eq(
		document_open_bytes(&document, (struct slice){file, 128 + sizeof pickle - 1}, "f",
			&limits, &sink, &error),
		RP_OK);
	ck_assert_uint_eq(sink.of_code[FINDING_I112], 1);
}
END_TEST

static const struct {
	const char *text;
	enum val_kind kind; /* VAL_ABSENT: refused */
} literals[] = {
	{"1", VAL_INT},
	{" -12 \n", VAL_INT},
	{"12L", VAL_INT},
	{"True", VAL_BOOL},
	{"None", VAL_NONE},
	{"'a'", VAL_TEXT},
	{"u\"a'b\"", VAL_TEXT},
	{"b'\\x00\\'\\\\'", VAL_TEXT},
	{"()", VAL_TUPLE},
	{"(1,)", VAL_TUPLE},
	{"(1)", VAL_INT},
	{"[1, [2], (3, 4), ]", VAL_LIST},
	{"{}", VAL_DICT},
	{"{'a': {'b': (1, 2)}, }", VAL_DICT},
	{"", VAL_ABSENT},
	{"1 2", VAL_ABSENT},
	{"[1 2]", VAL_ABSENT},
	{"[1,,2]", VAL_ABSENT},
	{"{'a' 1}", VAL_ABSENT},
	{"{'a'}", VAL_ABSENT},
	{"(", VAL_ABSENT},
	{"'a", VAL_ABSENT},
	{"'\\x4'", VAL_ABSENT},
	{"'\\q'", VAL_ABSENT},
	{"'\\U00110000'", VAL_ABSENT},
	{"99999999999999999999", VAL_ABSENT},
	{"a", VAL_ABSENT},
	{"f()", VAL_ABSENT},
	{"1+1", VAL_ABSENT},
	{"[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]", VAL_ABSENT},
};

START_TEST(literals_are_parsed_and_nothing_else)
{
	struct arena arena;
	struct val v;
	struct error e = ERROR_INIT;

	arena_init(&arena, 1 << 20);
	int status = literal_decode(slice_of(literals[_i].text), &arena, &v, &e);
	if (literals[_i].kind == VAL_ABSENT)
		ck_assert_msg(status == RP_E_FORMAT && e.text[0], "'%s'", literals[_i].text);
	else
		ck_assert_msg(status == RP_OK && v.kind == literals[_i].kind, "'%s': %s",
			literals[_i].text, e.text);
	arena_release(&arena);
}
END_TEST

Suite *suite_npy(void)
{
	Suite *s = suite_create("npy");
	TCase *c = tcase_create("npy");

	tcase_add_checked_fixture(c, setup, teardown);
	tcase_add_test(c, reads_numbers_of_every_version_and_order);
	tcase_add_test(c, describes_what_is_no_number);
	tcase_add_test(c, objects_are_pickles_and_said_to_be);
	tcase_add_test(c, reads_archives_stored_and_packed);
	tcase_add_test(c, damage_is_found_where_it_is);
	tcase_add_test(c, versions_that_are_not_known_are_said_to_be);
	tcase_add_test(c, a_pickle_that_runs_code_is_unsafe_here_too);
	tcase_add_loop_test(c, literals_are_parsed_and_nothing_else, 0, (int)COUNT(literals));
	suite_add_tcase(s, c);
	return s;
}
