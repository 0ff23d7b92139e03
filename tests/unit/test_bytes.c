/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
/* The pass over a checkpoint's bytes: checksums, digests and statistics against slow, plain ones.
 */
#include "state/bytes.h"
#include "state/statistics.h"

#include <check.h>
#include <fcntl.h>
#include <libdeflate.h>
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

Suite *suite_bytes(void);

static struct limits limits;
static struct state state;
static char path[] = "/tmp/reprise-bytes-XXXXXX";
static uint64_t seed;

/* Splitmix64: the same numbers everywhere. */
static uint64_t number(void)
{
	uint64_t z = seed += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

static void setup(void)
{
	limits = limits_default();
	state_init(&state, &limits);
	seed = 1;
	strcpy(path + sizeof path - 7, "XXXXXX");
	int fd = mkstemp(path);
	ck_assert_int_ge(fd, 0);
	close(fd);
}

static void teardown(void)
{
	state_release(&state);
	unlink(path);
}

/* A file of `size` random bytes, which the caller frees. */
static uint8_t *make_file(size_t size)
{
	uint8_t *bytes = malloc(size);
	struct stat st;

	for (size_t i = 0; i < size; i++)
		bytes[i] = (uint8_t)number();
	int fd = open(path, O_WRONLY | O_TRUNC);
	ck_assert_int_eq(write(fd, bytes, size), (ssize_t)size);
	ck_assert_int_eq(fstat(fd, &st), 0);
	close(fd);
	struct state_file *f = array_push(&state.files, 10);
	*f = (struct state_file){.path = path,
		.size = size,
		.mtime_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec,
		.status = FILE_READ};
	return bytes;
}

static uint32_t add_storage(uint64_t offset, uint64_t length)
{
	struct state_storage *s = array_push(&state.storages, 1000);

	*s = (struct state_storage){.offset = offset, .length = length, .crc_known = true};
	return (uint32_t)(state.storages.count - 1);
}

static struct state_tensor *add_tensor(uint32_t storage, enum dtype dtype, uint64_t first,
	const int64_t *shape, const int64_t *stride, uint8_t ndim)
{
	struct state_tensor *t = array_push(&state.tensors, 1000);

	*t = (struct state_tensor){.name = "t",
		.shape = shape,
		.stride = stride,
		.storage = storage,
		.first = first,
		.numel = shape_numel(shape, ndim),
		.rank = NO_RANK,
		.ndim = ndim,
		.dtype = (uint8_t)dtype};
	return t;
}

static struct byte_totals read_all(unsigned threads)
{
	struct byte_totals totals;

	ck_assert_int_eq(bytes_read(&state, AT_FDCWD, "", threads, NULL, &totals, NULL), RP_OK);
	return totals;
}

static void digest(const void *p, size_t n, uint64_t out[2])
{
	XXH128_hash_t h = XXH3_128bits(p, n);

	out[0] = h.low64;
	out[1] = h.high64;
}

/* Element by element: the canonical bytes of a tensor, and all that a summary tells of them. */
static void hold_against_plain(size_t index, const uint8_t *file)
{
	const struct state_tensor *t = &state.tensors.items[index];
	const struct state_storage *of = &state.storages.items[t->storage];
	const struct tensor_summary *found = tensor_summary_of(&state, t);
	struct tensor layout = {.first = t->first,
		.numel = t->numel,
		.shape = t->shape,
		.stride = t->stride,
		.ndim = t->ndim,
		.dtype = t->dtype};
	const size_t width = dtype_size(t->dtype), n = t->numel * width;
	uint8_t *canonical = malloc(n + 1);
	double sum = 0, squares = 0, finite = 0, min = HUGE_VAL, max = -HUGE_VAL;
	uint64_t zeros = 0, nans = 0, infinities = 0, want[2];

	ck_assert_ptr_nonnull(found);
	for (uint64_t i = 0; i < t->numel; i++) {
		const uint8_t *p = file + of->offset + tensor_element(&layout, i) * width;
		double v;
		for (size_t k = 0; k < width; k++)
			canonical[i * width + k] = p[of->big_endian ? width - 1 - k : k];
		if (!dtype_to_double(t->dtype, p, of->big_endian, &v))
			continue;
		zeros += v == 0;
		nans += isnan(v) != 0;
		infinities += isinf(v) != 0;
		if (!isfinite(v))
			continue;
		sum += v;
		squares += v * v;
		finite++;
		min = fmin(min, v);
		max = fmax(max, v);
	}
	if (n <= LEAF_BYTES) {
		digest(canonical, n, want);
		ck_assert_uint_eq(found->leaves, 0);
	} else {
		size_t leaves = (n + LEAF_BYTES - 1) / LEAF_BYTES;
		uint64_t(*all)[2] = malloc(leaves * sizeof *all);
		ck_assert_uint_eq(found->leaves, leaves);
		for (size_t i = 0; i < leaves; i++) {
			size_t at = i * LEAF_BYTES, rest = n - at;
			digest(canonical + at, rest < LEAF_BYTES ? rest : LEAF_BYTES, all[i]);
			ck_assert_mem_eq(all[i], state.leaves.items[found->first_leaf + i].digest,
				sizeof all[i]);
		}
		digest(all, leaves * sizeof *all, want);
		free(all);
	}
	ck_assert_mem_eq(want, found->digest, sizeof want);
	ck_assert(found->valued == statistics_possible(t->dtype));
	if (found->valued && finite > 0) {
		ck_assert_uint_eq(found->zeros, zeros);
		ck_assert_uint_eq(found->nans, nans);
		ck_assert_uint_eq(found->infinities, infinities);
		ck_assert(found->min == min && found->max == max);
		if (isfinite(squares)) {
			ck_assert_double_eq_tol(found->rms / sqrt(squares / finite), 1, 1e-9);
			ck_assert(fabs(found->mean - sum / finite) <= 1e-9 * found->rms);
		}
	}
	free(canonical);
}

START_TEST(checksums_of_two_stretches_join)
{
	uint8_t bytes[5000];

	for (size_t i = 0; i < sizeof bytes; i++)
		bytes[i] = (uint8_t)number();
	for (size_t cut = 0; cut <= sizeof bytes; cut += 250) {
		uint32_t a = libdeflate_crc32(0, bytes, cut);
		uint32_t b = libdeflate_crc32(0, bytes + cut, sizeof bytes - cut);
		ck_assert_uint_eq(crc32_joined(a, b, sizeof bytes - cut),
			libdeflate_crc32(0, bytes, sizeof bytes));
	}
}
END_TEST

static const enum dtype all_types[] = {DTYPE_BOOL, DTYPE_U8, DTYPE_I8, DTYPE_U16, DTYPE_I16,
	DTYPE_U32, DTYPE_I32, DTYPE_U64, DTYPE_I64, DTYPE_F16, DTYPE_BF16, DTYPE_F32, DTYPE_F64,
	DTYPE_F8_E4M3, DTYPE_F8_E5M2, DTYPE_F8_E4M3FNUZ, DTYPE_F8_E5M2FNUZ, DTYPE_F8_E8M0,
	DTYPE_C64};

/* Random bits are every kind of number: NaN, infinities, denormals, both zeros. */
START_TEST(every_type_has_its_statistics)
{
	static const int64_t lengths[] = {1, 15, 16, 17, 2047, 2048, 2049, 70001};
	const enum dtype d = all_types[_i];
	uint8_t *file = make_file(70001 * 8);

	for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
		add_tensor(add_storage(0, (uint64_t)lengths[i] * dtype_size(d)), d, 0, &lengths[i],
			NULL, 1);
	read_all(2);
	for (size_t i = 0; i < state.tensors.count; i++)
		hold_against_plain(i, file);
	free(file);
}
END_TEST

/* Denormal numbers of each float type, as its definition has them. */
START_TEST(denormals_infinities_and_zeros_are_counted)
{
	static const struct {
		enum dtype dtype;
		uint64_t least_normal, infinity, sign;
	} types[] = {{DTYPE_F64, 0x0010000000000000, 0x7ff0000000000000, 0x8000000000000000},
		{DTYPE_F32, 0x00800000, 0x7f800000, 0x80000000}, {DTYPE_BF16, 0x80, 0x7f80, 0x8000},
		{DTYPE_F16, 0x0400, 0x7c00, 0x8000}, {DTYPE_F8_E5M2, 4, 0x7c, 0x80}};

	for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
		const uint64_t least = types[i].least_normal, sign = types[i].sign,
			       infinity = types[i].infinity;
		const uint64_t bits[] = {0, sign, 1, sign | 1, least - 1, least, sign | least,
			infinity, sign | infinity, sign | infinity, infinity + 1};
		const size_t width = dtype_size(types[i].dtype), n = sizeof bits / sizeof *bits;
		uint8_t raw[sizeof bits];
		struct tensor_summary out = {0};
		double normal;
		for (size_t k = 0; k < n; k++)
			memcpy(raw + k * width, &bits[k], width);
		struct statistics s = statistics_of(types[i].dtype, raw, n);
		statistics_conclude(&s, n, &out);
		ck_assert_uint_eq(out.zeros, 2);
		ck_assert_uint_eq(out.denormals, 3);
		ck_assert_uint_eq(out.infinities, 3);
		ck_assert_uint_eq(out.negative_infinities, 2);
		ck_assert_uint_eq(out.nans, 1);
		ck_assert(dtype_to_double(types[i].dtype, (const uint8_t *)&least, false, &normal));
		ck_assert(out.max == normal && out.min == -normal);
	}
}
END_TEST

START_TEST(sums_are_the_same_with_any_instructions)
{
	uint8_t *bytes = malloc(1 << 20);

	for (size_t i = 0; i < 1 << 20; i++)
		bytes[i] = (uint8_t)number();
	for (size_t i = 0; i < sizeof all_types / sizeof *all_types; i++) {
		const enum dtype d = all_types[i];
		if (!statistics_possible(d))
			continue;
		for (size_t n = (1 << 20) / dtype_size(d); n > 0; n /= 3) {
			struct statistics a = statistics_of(d, bytes, n),
					  b = statistics_of_plain(d, bytes, n);
			ck_assert_mem_eq(&a, &b, sizeof a);
		}
	}
	free(bytes);
}
END_TEST

START_TEST(what_has_no_finite_element_has_no_mean)
{
	static const uint32_t bits[] = {0x7f800000, 0xff800000, 0x7fc00000};
	struct tensor_summary out = {0};
	struct statistics s = statistics_of(DTYPE_F32, (const uint8_t *)bits, 3);

	statistics_conclude(&s, 3, &out);
	ck_assert(out.valued && isnan(out.min) && isnan(out.max) && isnan(out.mean) &&
		  isnan(out.rms));
}
END_TEST

#define MIB ((int64_t)1 << 20)
#define ELEMENTS(n) ((int64_t)(n))

/* One storage of 23 MiB and an odd rest, and what people keep in one. */
static uint8_t *make_views(bool big_endian)
{
	static const int64_t flat[] = {6 * MIB}, transposed[] = {2048, 3000}, turned[] = {1, 2048};
	static const int64_t head[] = {1000}, middle[] = {MIB + 5}, tail[] = {2, 3}, one[] = {1};
	static const int64_t cut[] = {500, 700}, rows[] = {2048, 1}, columns[] = {3000, 5};
	static const int64_t column_strides[] = {2048, 400}, images[] = {64, 32, 9, 9};
	static const int64_t channels_last[] = {32 * 81, 1, 32 * 9, 32};
	static const int64_t backwards[] = {-1}, every_third[] = {3}, long_cut[] = {MIB};
	static const int64_t far[] = {100}, far_stride[] = {20000}, repeated[] = {0, 1},
			     both[] = {70, 50};
	uint8_t *file = make_file(23 * MIB + 1013 + 64);
	uint32_t s = add_storage(64, 23 * MIB + 1013);

	state.storages.items[s].big_endian = big_endian;
	add_tensor(s, DTYPE_F32, 7, head, NULL, 1);
	add_tensor(s, DTYPE_F32, 2000, middle, NULL, 1);
	add_tensor(s, DTYPE_F32, 2000, middle, NULL, 1); /* the same once more */
	add_tensor(s, DTYPE_I32, 2000, middle, NULL, 1); /* as another type */
	add_tensor(s, DTYPE_F32, 3000, cut, NULL, 2);    /* inside it */
	add_tensor(s, DTYPE_F32, 2000000, tail, NULL, 2);
	add_tensor(s, DTYPE_BF16, 5000000, flat, NULL, 1);
	add_tensor(s, DTYPE_F16, 9, transposed, turned, 2);
	add_tensor(s, DTYPE_F32, 11, cut, rows, 2);
	add_tensor(s, DTYPE_U8, 13, columns, column_strides, 2);
	add_tensor(s, DTYPE_F32, 17, images, channels_last, 4);
	add_tensor(s, DTYPE_F64, 1000, far, far_stride, 1);
	add_tensor(s, DTYPE_F32, 1000, head, backwards, 1);
	add_tensor(s, DTYPE_F32, 1000, long_cut, every_third, 1);
	add_tensor(s, DTYPE_F32, 5, both, repeated, 2);
	add_tensor(s, DTYPE_C64, 77, long_cut, NULL, 1);
	add_tensor(s, DTYPE_F32, 5, one, NULL, 1);
	return file;
}

START_TEST(views_are_read_as_their_elements)
{
	uint8_t *file = make_views(false);

	struct byte_totals totals = read_all(3);
	ck_assert_uint_eq(totals.storages, 1);
	ck_assert_uint_eq(totals.bytes, state.storages.items[0].length);
	ck_assert_uint_eq(state.storages.items[0].crc_found,
		libdeflate_crc32(0, file + 64, state.storages.items[0].length));
	for (size_t i = 0; i < state.tensors.count; i++)
		hold_against_plain(i, file);
	free(file);
}
END_TEST

START_TEST(big_endian_files_have_the_digests_of_little_endian_ones)
{
	uint8_t *file = make_views(true);

	for (size_t i = 0; i < state.tensors.count; i++)
		if (state.tensors.items[i].dtype == DTYPE_C64)
			state.tensors.items[i].dtype = DTYPE_F64; /* two numbers have two orders */
	read_all(2);
	ck_assert_uint_eq(state.storages.items[0].crc_found,
		libdeflate_crc32(0, file + 64, state.storages.items[0].length));
	for (size_t i = 0; i < state.tensors.count; i++)
		hold_against_plain(i, file);
	free(file);
}
END_TEST

START_TEST(a_complex_number_has_two_parts_to_turn_round)
{
	static const int64_t one[] = {1};
	uint8_t *file = make_file(8), turned[8];
	uint64_t want[2];

	add_tensor(add_storage(0, 8), DTYPE_C64, 0, one, NULL, 1);
	state.storages.items[0].big_endian = true;
	read_all(1);
	for (size_t i = 0; i < 8; i++)
		turned[i] = file[i / 4 * 4 + 3 - i % 4];
	digest(turned, 8, want);
	ck_assert_mem_eq(want, state.summaries.items[0].digest, sizeof want);
	free(file);
}
END_TEST

START_TEST(any_number_of_threads_gives_the_same)
{
	uint8_t *file = make_views(false);
	static const unsigned teams[] = {2, 3, 8, 64};

	read_all(1);
	size_t n = state.summaries.count * sizeof *state.summaries.items;
	size_t leaves = state.leaves.count * sizeof *state.leaves.items;
	void *first = malloc(n), *first_leaves = malloc(leaves);
	memcpy(first, state.summaries.items, n);
	memcpy(first_leaves, state.leaves.items, leaves);
	for (size_t i = 0; i < sizeof teams / sizeof *teams; i++) {
		read_all(teams[i]);
		ck_assert_mem_eq(first, state.summaries.items, n);
		ck_assert_mem_eq(first_leaves, state.leaves.items, leaves);
	}
	free(first);
	free(first_leaves);
	free(file);
}
END_TEST

/* Shapes and strides by chance, as long as they stay inside. */
START_TEST(elements_in_any_order_are_gathered)
{
	static int64_t shapes[200][4], strides[200][4];
	uint8_t *file = make_file(600000);
	uint32_t s = add_storage(100, 599900);

	for (size_t i = 0; i < 200; i++) {
		uint8_t ndim = (uint8_t)(1 + number() % 4);
		for (size_t d = 0; d < ndim; d++) {
			shapes[i][d] = ELEMENTS(1 + number() % 12);
			strides[i][d] = ELEMENTS(number() % 900);
			if (number() % 3 == 0)
				strides[i][d] = d > 0 ? strides[i][d - 1] * shapes[i][d] : 1;
			if (number() % 8 == 0)
				strides[i][d] = -strides[i][d];
		}
		struct state_tensor *t = add_tensor(
			s, i % 2 ? DTYPE_F32 : DTYPE_I16, 20000, shapes[i], strides[i], ndim);
		struct tensor layout = {.first = t->first,
			.numel = t->numel,
			.shape = t->shape,
			.stride = t->stride,
			.ndim = ndim,
			.dtype = t->dtype};
		if (tensor_reach(&layout) > 599900 || tensor_is_contiguous(&layout))
			state.tensors.count--;
	}
	ck_assert_uint_gt(state.tensors.count, 100);
	read_all(2);
	for (size_t i = 0; i < state.tensors.count; i++)
		hold_against_plain(i, file);
	free(file);
}
END_TEST

START_TEST(a_file_that_changed_is_not_known)
{
	static const int64_t shape[] = {100};
	uint8_t *file = make_file(400);

	add_tensor(add_storage(0, 400), DTYPE_F32, 0, shape, NULL, 1);
	state.files.items[0].mtime_ns++;
	struct byte_totals totals = read_all(2);
	ck_assert_uint_eq(totals.unreadable, 1);
	ck_assert(!state.storages.items[0].read);
	ck_assert_ptr_null(tensor_summary_of(&state, &state.tensors.items[0]));
	free(file);
}
END_TEST

/* What was read in part is not read. A view that is gathered is looked at after all that lies in a
 * row. */
START_TEST(what_the_deadline_leaves_is_counted_and_not_known)
{
	static const int64_t shape[] = {100}, turned[] = {10, 10}, across[] = {1, 10};
	uint8_t *file = make_file(400);
	struct deadline passed, far;
	struct byte_totals totals;

	add_tensor(add_storage(0, 400), DTYPE_F32, 0, shape, NULL, 1);
	add_tensor(0, DTYPE_F32, 0, turned, across, 2);
	deadline_set(&passed, 0);
	deadline_set(&far, 3600000);
	ck_assert_int_eq(bytes_read(&state, AT_FDCWD, "", 2, &far, &totals, NULL), RP_OK);
	ck_assert_uint_eq(totals.storages, 1);
	ck_assert_uint_eq(totals.late + totals.unreadable, 0);
	ck_assert_ptr_nonnull(tensor_summary_of(&state, &state.tensors.items[1]));
	ck_assert_int_eq(bytes_read(&state, AT_FDCWD, "", 2, &passed, &totals, NULL), RP_OK);
	ck_assert_uint_eq(totals.late, 1);
	ck_assert_uint_eq(totals.unreadable + totals.storages + totals.with_checksum, 0);
	ck_assert(!state.storages.items[0].read);
	for (size_t i = 0; i < 2; i++)
		ck_assert_ptr_null(tensor_summary_of(&state, &state.tensors.items[i]));
	free(file);
}
END_TEST

/* A few stored bytes that claim to be 2^40 elements, and a tensor beyond the end of its storage. */
START_TEST(what_claims_too_much_is_not_read)
{
	static const int64_t huge[] = {MIB, MIB}, none[] = {0, 0}, shape[] = {101};
	uint8_t *file = make_file(400);
	uint32_t s = add_storage(0, 400);

	add_tensor(s, DTYPE_F32, 0, huge, none, 2);
	add_tensor(s, DTYPE_F32, 0, shape, NULL, 1);
	ck_assert_uint_eq(read_all(2).storages, 1);
	for (size_t i = 0; i < 2; i++)
		ck_assert_ptr_null(tensor_summary_of(&state, &state.tensors.items[i]));
	free(file);
}
END_TEST

START_TEST(empty_tensors_are_known)
{
	static const int64_t shape[] = {0};
	uint8_t *file = make_file(16);
	uint64_t want[2];

	add_tensor(add_storage(0, 16), DTYPE_F32, 0, shape, NULL, 1);
	read_all(1);
	digest(NULL, 0, want);
	ck_assert_ptr_nonnull(tensor_summary_of(&state, &state.tensors.items[0]));
	ck_assert_mem_eq(want, state.summaries.items[0].digest, sizeof want);
	free(file);
}
END_TEST

START_TEST(a_stored_checksum_proves_that_bytes_are_zero)
{
	static const uint64_t lengths[] = {1, 2, 3, 7, 64, 1000, 4096, 65537, 1 << 20};
	static const int64_t shape[] = {1024};
	uint8_t *zeros = calloc(1, 1 << 20);

	for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
		ck_assert_uint_eq(
			crc32_of_zeros(lengths[i]), libdeflate_crc32(0, zeros, lengths[i]));
	ck_assert_uint_eq(crc32_of_zeros(0), 0);
	free(zeros);
	struct state_tensor *t = add_tensor(add_storage(0, 4096), DTYPE_F32, 0, shape, NULL, 1);
	struct state_storage *s = &state.storages.items[0];
	t->whole = true;
	s->crc = crc32_of_zeros(4096);
	ck_assert_int_eq(tensor_zero(&state, t), ZERO_YES);
	s->crc ^= 1;
	ck_assert_int_eq(tensor_zero(&state, t), ZERO_NO);
	t->whole = false;
	ck_assert_int_eq(tensor_zero(&state, t), ZERO_UNKNOWN);
	t->whole = true;
	s->crc_known = false;
	ck_assert_int_eq(tensor_zero(&state, t), ZERO_UNKNOWN);
}
END_TEST

START_TEST(tensors_without_checksums_or_bytes_cannot_be_told_equal)
{
	static const int64_t shape[] = {2};
	uint8_t *file = make_file(16);

	add_storage(0, 8);
	add_storage(8, 8);
	for (uint32_t i = 0; i < 2; i++) {
		add_tensor(i, DTYPE_F32, 0, shape, NULL, 1)->whole = true;
		state.storages.items[i].crc = 1;
	}
	struct state_tensor *x = &state.tensors.items[0], *y = &state.tensors.items[1];
	ck_assert_int_eq(tensor_same(&state, x, &state, y), 1);
	state.storages.items[1].crc = 2;
	ck_assert_int_eq(tensor_same(&state, x, &state, y), 0);
	state.storages.items[1].crc_known = false;
	ck_assert_int_eq(tensor_same(&state, x, &state, y), -1);
	/* Their bytes tell without checksums. */
	read_all(1);
	ck_assert_int_eq(tensor_same(&state, x, &state, y), 0);
	ck_assert_int_eq(tensor_same(&state, x, &state, x), 1);
	free(file);
}
END_TEST

Suite *suite_bytes(void)
{
	Suite *s = suite_create("bytes");
	TCase *t = tcase_create("pass");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, checksums_of_two_stretches_join);
	tcase_add_loop_test(
		t, every_type_has_its_statistics, 0, sizeof all_types / sizeof *all_types);
	tcase_add_test(t, denormals_infinities_and_zeros_are_counted);
	tcase_add_test(t, sums_are_the_same_with_any_instructions);
	tcase_add_test(t, what_has_no_finite_element_has_no_mean);
	tcase_add_test(t, views_are_read_as_their_elements);
	tcase_add_test(t, big_endian_files_have_the_digests_of_little_endian_ones);
	tcase_add_test(t, a_complex_number_has_two_parts_to_turn_round);
	tcase_add_test(t, any_number_of_threads_gives_the_same);
	tcase_add_test(t, elements_in_any_order_are_gathered);
	tcase_add_test(t, a_file_that_changed_is_not_known);
	tcase_add_test(t, what_the_deadline_leaves_is_counted_and_not_known);
	tcase_add_test(t, what_claims_too_much_is_not_read);
	tcase_add_test(t, empty_tensors_are_known);
	tcase_add_test(t, a_stored_checksum_proves_that_bytes_are_zero);
	tcase_add_test(t, tensors_without_checksums_or_bytes_cannot_be_told_equal);
	suite_add_tcase(s, t);
	return s;
}
