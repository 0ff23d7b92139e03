/* SPDX-License-Identifier: MIT */
#include "value/tensor.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>

Suite *suite_tensor(void);

/*
 * Every code of a small float against PyTorch 2.13.0: FNV-1a over the bytes of all values,
 * converted to float32 in code order, NaN being 0x7fc00000.
 */
static const struct {
	const char *dtype;
	uint64_t hash;
} conversions[] = {
	{"float16", 0x1f87f165810ea7c5},
	{"bfloat16", 0xcf8e09175d8f5ba5},
	{"float8_e4m3fn", 0xdad1d9c50f749ca5},
	{"float8_e5m2", 0x6c1e56b6fb09c905},
	{"float8_e4m3fnuz", 0xf51851cb11c63018},
	{"float8_e5m2fnuz", 0x94ae6fc493d49818},
	{"float8_e8m0fnu", 0x6d2c8b41c3f0e5a5},
};

START_TEST(every_small_float_is_what_torch_says)
{
	enum dtype d = dtype_by_name(slice_of(conversions[_i].dtype));
	uint64_t hash = 0xcbf29ce484222325;

	ck_assert_int_ne(d, DTYPE_UNKNOWN);
	for (uint32_t code = 0; code < (dtype_size(d) == 2 ? 65536u : 256u); code++) {
		uint8_t little[2] = {(uint8_t)code, (uint8_t)(code >> 8)};
		uint8_t big[2] = {little[1], little[0]};
		uint32_t bits = 0x7fc00000;
		double v, w;
		ck_assert(dtype_to_double(d, little, false, &v));
		ck_assert(dtype_to_double(d, dtype_size(d) == 2 ? big : little, true, &w));
		ck_assert(memcmp(&v, &w, sizeof v) == 0 || (isnan(v) && isnan(w)));
		if (!isnan(v)) {
			float f = (float)v;
			ck_assert((double)f == v);
			memcpy(&bits, &f, sizeof bits);
		}
		for (unsigned i = 0; i < 4; i++)
			hash = (hash ^ (bits >> 8 * i & 0xff)) * 0x100000001b3;
	}
	ck_assert_msg(hash == conversions[_i].hash, "%s: %016llx", conversions[_i].dtype,
		(unsigned long long)hash);
}
END_TEST

START_TEST(integers_keep_sign_and_width)
{
	const uint8_t bytes[8] = {0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
	int64_t i;
	double v;

	ck_assert(dtype_to_i64(DTYPE_I8, bytes, false, &i) && i == -2);
	ck_assert(dtype_to_i64(DTYPE_I16, bytes, false, &i) && i == -2);
	ck_assert(dtype_to_i64(DTYPE_I32, bytes, false, &i) && i == -2);
	ck_assert(dtype_to_i64(DTYPE_I64, bytes, false, &i) && i == -2);
	ck_assert(dtype_to_i64(DTYPE_I16, bytes, true, &i) && i == -257);
	ck_assert(dtype_to_i64(DTYPE_U8, bytes, false, &i) && i == 254);
	ck_assert(dtype_to_i64(DTYPE_U32, bytes, false, &i) && i == 0xfffffffe);
	ck_assert(!dtype_to_i64(DTYPE_U64, bytes, false, &i));
	ck_assert(dtype_to_double(DTYPE_U64, bytes, false, &v) && v == 0x1p64);
	ck_assert(dtype_to_double(DTYPE_I64, bytes, false, &v) && v == -2);
	ck_assert(dtype_to_i64(DTYPE_BOOL, bytes, false, &i) && i == 1);
	ck_assert(!dtype_to_double(DTYPE_C64, bytes, false, &v));
	ck_assert(!dtype_to_double(DTYPE_F4, bytes, false, &v));
	ck_assert(!dtype_to_double(DTYPE_UNKNOWN, bytes, false, &v));
}
END_TEST

START_TEST(a_whole_float_is_an_integer_and_no_other_is)
{
	const struct {
		float f;
		bool fits;
	} cases[] = {{3, true}, {-0.0f, true}, {0x1p62f, true}, {-0x1p63f, true}, {0x1p63f, false},
		{0.5f, false}, {INFINITY, false}, {NAN, false}};
	uint8_t bytes[4];
	int64_t i;

	for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
		memcpy(bytes, &cases[k].f, sizeof bytes);
		ck_assert_int_eq(dtype_to_i64(DTYPE_F32, bytes, false, &i), cases[k].fits);
		if (cases[k].fits)
			ck_assert((float)i == cases[k].f);
	}
}
END_TEST

START_TEST(names_lead_to_their_rows)
{
	for (int i = 1; i < DTYPE_COUNT; i++) {
		ck_assert_int_eq(dtype_by_name(slice_of(dtype_rows[i].name)), i);
		if (dtype_rows[i].safetensors[0])
			ck_assert_int_eq(
				dtype_by_safetensors_name(slice_of(dtype_rows[i].safetensors)), i);
	}
	ck_assert_int_eq(dtype_by_safetensors_name(SLICE("")), DTYPE_UNKNOWN);
	ck_assert_int_eq(dtype_by_name(SLICE("unknown")), DTYPE_UNKNOWN);
	ck_assert_int_eq(dtype_by_name(SLICE("float3")), DTYPE_UNKNOWN);
}
END_TEST

START_TEST(products_of_sizes_do_not_wrap)
{
	const int64_t huge = (int64_t)1 << 32;

	ck_assert_uint_eq(shape_numel(NULL, 0), 1);
	ck_assert_uint_eq(shape_numel((const int64_t[]){2, 3}, 2), 6);
	ck_assert_uint_eq(shape_numel((const int64_t[]){huge, huge}, 2), UINT64_MAX);
	ck_assert_uint_eq(shape_numel((const int64_t[]){huge, huge, 0}, 3), 0);
	ck_assert_uint_eq(shape_numel((const int64_t[]){0, -1}, 2), UINT64_MAX);
	ck_assert_uint_eq(shape_numel((const int64_t[]){huge, huge / 4}, 2), (uint64_t)1 << 62);
}
END_TEST

static struct tensor tensor_of(
	const int64_t *shape, const int64_t *stride, uint8_t ndim, uint64_t first)
{
	return (struct tensor){.shape = shape,
		.stride = stride,
		.ndim = ndim,
		.first = first,
		.numel = shape_numel(shape, ndim),
		.dtype = DTYPE_F32};
}

START_TEST(reach_is_the_last_byte_touched)
{
	const int64_t shape[] = {3, 4}, rows[] = {10, 1}, turned[] = {1, 3}, none[] = {0, 1};
	const int64_t back[] = {-4, 1}, far[] = {INT64_MAX / 2, 1}, empty[] = {0, 4};
	struct tensor t = tensor_of(shape, NULL, 2, 0);

	ck_assert_uint_eq(tensor_reach(&t), 48);
	t = tensor_of(shape, rows, 2, 5);
	ck_assert_uint_eq(tensor_reach(&t), (5 + 20 + 3 + 1) * 4);
	t = tensor_of(shape, turned, 2, 0);
	ck_assert_uint_eq(tensor_reach(&t), 48);
	t = tensor_of(shape, none, 2, 0);
	ck_assert_uint_eq(tensor_reach(&t), 16);
	t = tensor_of(shape, back, 2, 8);
	ck_assert_uint_eq(tensor_reach(&t), 48);
	t = tensor_of(shape, back, 2, 7);
	ck_assert_uint_eq(tensor_reach(&t), UINT64_MAX);
	t = tensor_of(shape, far, 2, 0);
	ck_assert_uint_eq(tensor_reach(&t), UINT64_MAX);
	t = tensor_of(shape, NULL, 2, UINT64_MAX);
	ck_assert_uint_eq(tensor_reach(&t), UINT64_MAX);
	t = tensor_of(shape, NULL, 2, (uint64_t)INT64_MAX - 2);
	ck_assert_uint_eq(tensor_reach(&t), UINT64_MAX);
	t = tensor_of(empty, NULL, 2, 99);
	ck_assert_uint_eq(tensor_reach(&t), 0);
}
END_TEST

START_TEST(elements_come_in_c_order)
{
	const int64_t shape[] = {2, 3}, turned[] = {1, 2}, scalar[1] = {0};
	const uint64_t expected[] = {7, 9, 11, 8, 10, 12};
	struct tensor t = tensor_of(shape, turned, 2, 7);

	for (uint64_t i = 0; i < 6; i++)
		ck_assert_uint_eq(tensor_element(&t, i), expected[i]);
	ck_assert(!tensor_is_contiguous(&t));
	t = tensor_of(scalar, NULL, 0, 3);
	ck_assert_uint_eq(t.numel, 1);
	ck_assert_uint_eq(tensor_element(&t, 0), 3);
	ck_assert(tensor_is_contiguous(&t));
}
END_TEST

START_TEST(the_stride_of_a_single_row_does_not_matter)
{
	const int64_t shape[] = {1, 3}, stride[] = {99, 1}, gap[] = {3, 2};
	struct tensor t = tensor_of(shape, stride, 2, 0);

	ck_assert(tensor_is_contiguous(&t));
	t.stride = gap;
	ck_assert(!tensor_is_contiguous(&t));
}
END_TEST

Suite *suite_tensor(void)
{
	Suite *s = suite_create("tensor");
	TCase *c = tcase_create("dtype");

	tcase_add_loop_test(c, every_small_float_is_what_torch_says, 0,
		sizeof conversions / sizeof *conversions);
	tcase_add_test(c, integers_keep_sign_and_width);
	tcase_add_test(c, a_whole_float_is_an_integer_and_no_other_is);
	tcase_add_test(c, names_lead_to_their_rows);
	suite_add_tcase(s, c);
	c = tcase_create("shape");
	tcase_add_test(c, products_of_sizes_do_not_wrap);
	tcase_add_test(c, reach_is_the_last_byte_touched);
	tcase_add_test(c, elements_come_in_c_order);
	tcase_add_test(c, the_stride_of_a_single_row_does_not_matter);
	suite_add_tcase(s, c);
	return s;
}
