/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "rng/rng.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cursor.h"
#include "rng/philox.h"
#include "rng/search.h"
#include "rng/seed_sequence.h"
#include "support/bytes.h"

#define COUNT(a) (sizeof(a) / sizeof(a)[0])
#define DATA "tests/unit/data/rng/"
#define N MT19937_WORDS

Suite *suite_rng(void);

/* ---- helpers ----------------------------------------------------------------------------- */

static struct error error;
static struct rng_search search;

static void setup(void)
{
	error = ERROR_INIT;
	rng_search_init(&search, 0);
}

static void teardown(void)
{
	rng_search_release(&search);
}

static struct bytes file_of(const char *name)
{
	char path[256];

	snprintf(path, sizeof path, DATA "%s.bin", name);
	return bytes_of_file(path);
}

static struct rng_state torch_state(const char *name)
{
	struct bytes b = file_of(name);
	struct rng_state state;
	int status = rng_decode_torch_cpu(b.p, b.n, &state, &error);

	ck_assert_msg(status == RP_OK, "%s: %s", name, error.text);
	bytes_release(&b);
	return state;
}

static struct rng_state words_state(enum rng_layout layout, const char *name)
{
	struct bytes b = file_of(name);
	uint32_t words[N];
	double normal;
	struct rng_state state;

	ck_assert_uint_eq(b.n, 4 * (N + 2) + 8);
	for (uint32_t i = 0; i < N; i++)
		words[i] = load_le32(b.p + 4 * i);
	memcpy(&normal, b.p + 4 * (N + 2), sizeof normal);
	int status = rng_decode_words(layout, words, load_le32(b.p + 4 * N),
		load_le32(b.p + 4 * (N + 1)) != 0, normal, &state, &error);
	ck_assert_msg(status == RP_OK, "%s: %s", name, error.text);
	bytes_release(&b);
	return state;
}

/* A state of ours: seeded as the layout does, `draws` words later. */
static struct rng_state made(enum rng_layout layout, uint64_t seed, uint64_t draws)
{
	struct mt19937 m;
	struct rng_state state;

	if (layout == RNG_LAYOUT_PYTHON)
		mt19937_seed_python(&m, seed);
	else
		mt19937_seed(&m, (uint32_t)seed);
	mt19937_skip(&m, draws);
	ck_assert_int_eq(rng_decode_words(layout, m.s, m.pos, false, 0, &state, &error), RP_OK);
	return state;
}

static struct rng_state cuda_state(uint64_t seed, uint64_t offset)
{
	uint8_t bytes[16];
	struct rng_state state;

	for (int i = 0; i < 8; i++) {
		bytes[i] = (uint8_t)(seed >> 8 * i);
		bytes[8 + i] = (uint8_t)(offset >> 8 * i);
	}
	ck_assert_int_eq(rng_decode_torch_cuda(bytes, sizeof bytes, &state, &error), RP_OK);
	return state;
}

static struct rng_relation relate_seeded(const struct rng_state *earlier,
	const struct rng_state *later, const uint64_t *seeds, size_t count)
{
	struct rng_relation r;

	ck_assert_int_eq(
		rng_search_relate(&search, earlier, later, seeds, count, &r, &error), RP_OK);
	return r;
}

static struct rng_relation relate(const struct rng_state *earlier, const struct rng_state *later)
{
	return relate_seeded(earlier, later, NULL, 0);
}

static void assert_relation(struct rng_relation r, enum rng_relation_kind kind, uint64_t draws)
{
	ck_assert_str_eq(rng_relation_name(r.kind), rng_relation_name(kind));
	ck_assert_uint_eq(r.draws, draws);
}

/* ---- generators -------------------------------------------------------------------------- */

static const struct {
	uint32_t seed, first[5], at_1000, at_10000;
} genrand[] = {
	{5489, {3499211612, 581869302, 3890346734, 3586334585, 545404204}, 1341017984, 4123659995},
	{0, {2357136044, 2546248239, 3071714933, 3626093760, 2588848963}, 3043451800, 1543171712},
	{42, {1608637542, 3421126067, 4083286876, 787846414, 3143890026}, 1946654618, 1399405940},
	{1337, {1125387415, 2407456957, 681542492, 913057000, 1194544295}, 3921357898, 1178112253},
};

START_TEST(mt19937_gives_the_words_that_numpy_gives)
{
	struct mt19937 m;

	mt19937_seed(&m, genrand[_i].seed);
	for (uint32_t i = 1; i <= 10000; i++) {
		uint32_t word = mt19937_u32(&m);
		if (i <= 5)
			ck_assert_uint_eq(word, genrand[_i].first[i - 1]);
		if (i == 1000)
			ck_assert_uint_eq(word, genrand[_i].at_1000);
		if (i == 10000)
			ck_assert_uint_eq(word, genrand[_i].at_10000);
	}
}
END_TEST

START_TEST(mt19937_seeds_by_array_as_the_reference_does)
{
	static const uint32_t key[] = {0x123, 0x234, 0x345, 0x456};
	static const uint32_t first[] = {1067595299, 955945823, 477289528, 4107218783, 4228976476};
	struct mt19937 m;

	mt19937_seed_array(&m, key, COUNT(key));
	for (size_t i = 0; i < COUNT(first); i++)
		ck_assert_uint_eq(mt19937_u32(&m), first[i]);
	mt19937_skip(&m, 994);
	ck_assert_uint_eq(mt19937_u32(&m), 3460025646);
}
END_TEST

START_TEST(mt19937_takes_a_key_longer_than_its_block)
{
	/* numpy.random.RandomState(numpy.arange(700)).randint(0, 2**32, dtype="u4") */
	uint32_t key[700];
	struct mt19937 m;

	for (uint32_t i = 0; i < COUNT(key); i++)
		key[i] = i;
	mt19937_seed_array(&m, key, COUNT(key));
	ck_assert_uint_eq(mt19937_u32(&m), 3727595200);
}
END_TEST

START_TEST(mt19937_makes_doubles_as_python_and_numpy_do)
{
	struct mt19937 m;

	mt19937_seed_python(&m, 42);
	ck_assert_double_eq(mt19937_double(&m), 0x1.4762f307200c5p-1);
	mt19937_seed(&m, 1234);
	ck_assert_double_eq(mt19937_double(&m), 0x1.883b597f66e2cp-3);
}
END_TEST

START_TEST(mt19937_joins_words_as_torch_does)
{
	/* torch.empty((), dtype=torch.int64).random_() drops the top bit. */
	static const struct {
		uint64_t seed, values[4];
	} rows[] = {
		{0, {900450186894289455, 3969543146641149120, 1895649597198586619,
			    827948490035658087}},
		{42, {6909045637428952499, 8314211556539077902, 4279532810384561223,
			     1819927849474927636}},
		{1337, {4833502145162436797, 2927202714887398632, 5130528682980890073,
			       8472901092721711450}},
		{1099511627781, {4095051218741643470, 6838803925648402109, 3813295331020233846,
					7722008223506294857}},
		{UINT64_MAX, {1800993050274709794, 7607120784305990727, 5331760257347419712,
				     5165154706003526138}},
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct mt19937 m;
		mt19937_seed(&m, (uint32_t)rows[i].seed);
		for (size_t k = 0; k < 4; k++)
			ck_assert_uint_eq(mt19937_u64(&m) & INT64_MAX, rows[i].values[k]);
	}
}
END_TEST

START_TEST(skipping_is_drawing)
{
	static const uint64_t steps[] = {0, 1, 622, 623, 624, 625, 1247, 1248, 1249, 5000};

	for (size_t i = 0; i < COUNT(steps); i++) {
		for (uint32_t before = 0; before < 1300; before += 311) {
			struct mt19937 drawn, skipped;
			mt19937_seed(&drawn, 9);
			for (uint32_t k = 0; k < before; k++)
				mt19937_u32(&drawn);
			skipped = drawn;
			for (uint64_t k = 0; k < steps[i]; k++)
				mt19937_u32(&drawn);
			mt19937_skip(&skipped, steps[i]);
			ck_assert_uint_eq(drawn.pos, skipped.pos);
			ck_assert_mem_eq(drawn.s, skipped.s, sizeof drawn.s);
		}
	}
}
END_TEST

START_TEST(philox_gives_the_published_answers)
{
	static const struct {
		uint32_t counter[4], key[2], out[4];
	} rows[] = {
		{{0}, {0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{{UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX}, {UINT32_MAX, UINT32_MAX},
			{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
		{{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0},
			{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		uint32_t out[4];
		philox4x32_10(rows[i].counter, rows[i].key, out);
		ck_assert_mem_eq(out, rows[i].out, sizeof out);
	}
}
END_TEST

START_TEST(seed_sequence_gives_the_words_that_numpy_gives)
{
	static const uint32_t of_1234[] = {2906597030, 1602421836, 216676975, 2698621808};
	struct seed_sequence q;
	uint32_t out[4];

	seed_sequence_init_u64(&q, 1234);
	seed_sequence_generate(&q, out, 4);
	ck_assert_mem_eq(out, of_1234, sizeof out);
}
END_TEST

static const struct {
	uint32_t seed[3];
	size_t words;
	uint64_t state[2], inc[2], first[3];
} pcg[] = {
	{{0}, 1, {0x1aa1b5345996452d, 0x09585eb7a69561e3}, {0x418ddadb3af71a82, 0x588133bc447873a9},
		{0xa30febcfd9c2825f, 0x4510bdf882d9d721, 0x0a7d3da94ecde8b8}},
	{{42}, 1, {0xcea44f6798798f2a, 0xacbc7c9d68860ac8},
		{0xfa505436c9a8416e, 0x66caf2e28d25abff},
		{0xc621fbcd16d92688, 0x705a5661a791ffc1, 0xdbcd12c26eda1624}},
	{{9176}, 1, {0xf1ef16c822beaeb8, 0xbac9a92f5966dea5},
		{0x03bbe0d53f448498, 0x02b882f126e3fb37},
		{0xce488e5ff4c10304, 0x233a25e3fe3960b0, 0xbc04ca4c34b5a59c}},
	{{5, 0, 1}, 3, {0x3dd6ee5a3a94fc71, 0x416e7a88e66db7db},
		{0x6efdb159d649d730, 0x9c39bc45ab81aadf},
		{0xbe1ed79de3d6074e, 0x64197d17923f1721, 0xaf69fcfedb7a76ba}},
};

START_TEST(pcg64_seeds_and_draws_as_default_rng_does)
{
	struct pcg64 g;

	pcg64_seed(&g, PCG64_XSL_RR, pcg[_i].seed, pcg[_i].words);
	ck_assert(g.state == ((u128)pcg[_i].state[0] << 64 | pcg[_i].state[1]));
	ck_assert(g.inc == ((u128)pcg[_i].inc[0] << 64 | pcg[_i].inc[1]));
	for (int i = 0; i < 3; i++)
		ck_assert_uint_eq(pcg64_u64(&g), pcg[_i].first[i]);
}
END_TEST

/* Each 1000 draws after seed 42, and 2^64 + 5 steps after that. */
static const struct {
	enum pcg64_kind kind;
	enum rng_layout layout;
	uint64_t states[3][2], then[3];
} pcg_far[] = {
	{PCG64_XSL_RR, RNG_LAYOUT_NUMPY_PCG64,
		{{0xcea44f6798798f2a, 0xacbc7c9d68860ac8}, {0x53dba5fbbd593fbd, 0x66afd87bcedd4130},
			{0x41f668861b0c6055, 0x9f6d7b145a14c563}},
		{0x802d62b7cbf5bf87, 0xf168c43b852660ad, 0xd9bac56abbcfd224}},
	{PCG64_DXSM, RNG_LAYOUT_NUMPY_PCG64DXSM,
		{{0xcea44f6798798f2a, 0xacbc7c9d68860ac8}, {0xc4265fea63b225fb, 0xaa61a7ec4884c7f0},
			{0x64a647700f659f5d, 0x3c72e292d4e60dc3}},
		{0xd7732832f374d074, 0x734fbba1bd80c2d9, 0xd69a543efe37d2a0}},
};
static const uint64_t pcg_inc[2] = {0xfa505436c9a8416e, 0x66caf2e28d25abff};

START_TEST(pcg64_goes_far_and_knows_how_far)
{
	const u128 far = ((u128)1 << 64) + 5;
	struct pcg64 g, start;

	pcg64_seed_u64(&g, pcg_far[_i].kind, 42);
	start = g;
	for (int i = 0; i < 1000; i++)
		pcg64_u64(&g);
	ck_assert(g.state == ((u128)pcg_far[_i].states[1][0] << 64 | pcg_far[_i].states[1][1]));
	ck_assert(pcg64_distance(&start, &g) == 1000);
	ck_assert(pcg64_distance(&g, &start) == (u128)-1000);
	pcg64_advance(&g, far);
	ck_assert(g.state == ((u128)pcg_far[_i].states[2][0] << 64 | pcg_far[_i].states[2][1]));
	ck_assert(pcg64_distance(&start, &g) == far + 1000);
	for (int i = 0; i < 3; i++)
		ck_assert_uint_eq(pcg64_u64(&g), pcg_far[_i].then[i]);
	pcg64_advance(&g, -(far + 1003));
	ck_assert(g.state == start.state);
}
END_TEST

/* ---- decoding ---------------------------------------------------------------------------- */

static const struct {
	const char *name;
	uint64_t seed, draws;
	unsigned kept;
} torch_rows[] = {
	{"torch_42_0", 42, 0, 0},
	{"torch_42_1", 42, 1, 0},
	{"torch_42_624", 42, 624, 0},
	{"torch_42_625", 42, 625, 0},
	{"torch_42_1000000", 42, 1000000, 0},
	{"torch_42_randn3", 42, 8, RNG_KEPT_NORMAL},
	{"torch_minus1_5", UINT64_MAX, 5, 0},
	{"torch_2e40p5_700", ((uint64_t)1 << 40) + 5, 700, 0},
};

START_TEST(a_torch_state_tells_its_seed_and_the_draws_since)
{
	struct rng_state state = torch_state(torch_rows[_i].name);
	struct rng_relation r = relate(NULL, &state);

	ck_assert_uint_eq(state.seed, torch_rows[_i].seed);
	ck_assert_uint_eq(state.kept, torch_rows[_i].kept);
	ck_assert_uint_eq(state.size, 5056);
	ck_assert(r.seed_known && !r.exhausted);
	ck_assert_int_eq(r.kind, RNG_NOT_COMPARABLE);
	ck_assert_uint_eq(r.seed, torch_rows[_i].seed);
	ck_assert_uint_eq(r.since_seed, torch_rows[_i].draws);
}
END_TEST

START_TEST(a_torch_state_of_5048_bytes_is_the_same_without_the_float)
{
	struct bytes b = file_of("torch_42_625");
	struct rng_state old, new = torch_state("torch_42_625");

	bytes_set_le(&b, 5052, 1, 1);
	ck_assert_int_eq(rng_decode_torch_cpu(b.p, 5048, &old, &error), RP_OK);
	ck_assert_uint_eq(old.kept, 0);
	ck_assert(!rng_equal(&old, &new));
	assert_relation(relate(&old, &new), RNG_IDENTICAL, 0);

	struct rng_state with_float;
	ck_assert_int_eq(rng_decode_torch_cpu(b.p, b.n, &with_float, &error), RP_OK);
	ck_assert_uint_eq(with_float.kept, RNG_KEPT_FLOAT);
	assert_relation(relate(&with_float, &new), RNG_ADVANCED, 0);
	bytes_release(&b);
}
END_TEST

static const struct {
	enum rng_layout layout;
	const char *name;
	uint64_t seed, draws;
	bool kept;
} word_rows[] = {
	{RNG_LAYOUT_PYTHON, "python_1234_0", 1234, 0, false},
	{RNG_LAYOUT_PYTHON, "python_1234_1", 1234, 1, false},
	{RNG_LAYOUT_PYTHON, "python_1234_624", 1234, 624, false},
	{RNG_LAYOUT_PYTHON, "python_1234_1000", 1234, 1000, false},
	{RNG_LAYOUT_PYTHON, "python_2e40p5_1", ((uint64_t)1 << 40) + 5, 1, false},
	{RNG_LAYOUT_PYTHON, "python_minus1234_gauss", (uint64_t)-1234, 4, true},
	{RNG_LAYOUT_NUMPY, "numpy_1234_0", 1234, 0, false},
	{RNG_LAYOUT_NUMPY, "numpy_1234_1000", 1234, 1000, false},
	{RNG_LAYOUT_NUMPY, "numpy_1234_randn3", 1234, 8, true},
	{RNG_LAYOUT_NUMPY, "numpy_sequence1234_0", 1234, 0, false},
	{RNG_LAYOUT_NUMPY, "numpy_sequence1234_1000", 1234, 1000, false},
};

START_TEST(the_seed_of_a_python_or_numpy_state_is_found_among_those_given)
{
	const uint64_t seeds[] = {7, word_rows[_i].seed, 99};
	struct rng_state state = words_state(word_rows[_i].layout, word_rows[_i].name);
	struct rng_relation r = relate_seeded(NULL, &state, seeds, COUNT(seeds));

	ck_assert(!state.has_seed);
	ck_assert_int_eq(state.kept != 0, word_rows[_i].kept);
	ck_assert(r.seed_known);
	ck_assert_uint_eq(r.seed, word_rows[_i].seed);
	ck_assert_uint_eq(r.since_seed, word_rows[_i].draws);

	r = relate_seeded(NULL, &state, seeds, 1);
	ck_assert(!r.seed_known && !r.exhausted);
	ck_assert_uint_lt(search.walked, (uint64_t)1 << 23);
}
END_TEST

START_TEST(python_ignores_the_sign_of_a_seed)
{
	const uint64_t seed = 1234;
	struct rng_state state = words_state(RNG_LAYOUT_PYTHON, "python_minus1234_gauss");
	struct rng_relation r = relate_seeded(NULL, &state, &seed, 1);

	ck_assert(r.seed_known);
	ck_assert_uint_eq(r.since_seed, 4);
}
END_TEST

/* Damage to a good torch state, and what must be said of it. */
static const struct {
	size_t at, width;
	uint64_t value;
	const char *says;
} damages[] = {
	{8, 4, 0, "words left is 0"},
	{8, 4, 625, "words left is 625"},
	{8, 4, 0xffffffff, "words left is -1"},
	{8, 4, 7, "contradict"},
	{12, 4, 0, "never seeded"},
	{16, 8, 2, "contradict"},
	{16, 8, 625, "number 625 of 624"},
	{16, 8, UINT64_MAX, "18446744073709551615"},
	{24 + 8 * 623 + 4, 4, 1, "word 623 is 0x1"},
};

START_TEST(a_damaged_torch_state_is_refused_with_the_reason)
{
	struct bytes b = file_of("torch_42_625");
	struct rng_state state;

	bytes_set_le(&b, damages[_i].at, damages[_i].value, damages[_i].width);
	ck_assert_int_eq(rng_decode_torch_cpu(b.p, b.n, &state, &error), RP_E_FORMAT);
	ck_assert_msg(strstr(error.text, damages[_i].says), "%s", error.text);
	ck_assert_int_eq(state.algo, RNG_NONE);
	bytes_release(&b);
}
END_TEST

START_TEST(a_state_of_another_size_is_refused)
{
	uint8_t bytes[5057] = {0};
	struct rng_state state;

	for (size_t n = 0; n <= sizeof bytes; n++) {
		error = ERROR_INIT;
		if (n != 5048 && n != 5056) {
			ck_assert_int_eq(
				rng_decode_torch_cpu(bytes, n, &state, &error), RP_E_FORMAT);
			ck_assert_ptr_nonnull(strstr(error.text, "bytes where"));
		}
		bool cuda = n == 8 || n == 16 || n == 816;
		ck_assert_int_eq(rng_decode_torch_cuda(bytes, n, &state, NULL) == RP_OK, cuda);
		ck_assert_int_eq(
			rng_decode_torch_mps(bytes, n, &state, NULL) == RP_OK, n == 36 || n == 44);
	}
}
END_TEST

START_TEST(words_that_are_all_zero_are_refused)
{
	uint32_t words[N] = {0};
	uint8_t bytes[5056] = {0};
	struct rng_state state;

	bytes[8] = bytes[12] = 1;
	ck_assert_int_eq(rng_decode_torch_cpu(bytes, sizeof bytes, &state, &error), RP_E_FORMAT);
	ck_assert_ptr_nonnull(strstr(error.text, "all zero"));
	/* The low bits of word 0 do not enter the recurrence. */
	words[0] = 0x7fffffff;
	ck_assert_int_eq(rng_decode_words(RNG_LAYOUT_NUMPY, words, 624, false, 0, &state, NULL),
		RP_E_FORMAT);
	words[0] = 0x80000000;
	ck_assert_int_eq(
		rng_decode_words(RNG_LAYOUT_NUMPY, words, 624, false, 0, &state, NULL), RP_OK);
	error = ERROR_INIT;
	ck_assert_int_eq(rng_decode_words(RNG_LAYOUT_NUMPY, words, 625, false, 0, &state, &error),
		RP_E_FORMAT);
	ck_assert_ptr_nonnull(strstr(error.text, "position 625"));
}
END_TEST

START_TEST(cuda_states_of_all_sizes_are_read)
{
	static const size_t sizes[] = {16, 816, 824016, 8};
	uint8_t *bytes = malloc(824016);

	ck_assert_ptr_nonnull(bytes);
	for (size_t i = 0; i < COUNT(sizes); i++) {
		struct rng_state state;
		memset(bytes, 0xff, sizes[i]);
		uint8_t *pair = bytes + (sizes[i] > 16 ? sizes[i] - 16 : 0);
		memset(pair, 0, sizes[i] < 16 ? 8 : 16);
		pair[0] = 42;
		if (sizes[i] >= 16)
			pair[9] = 1;
		ck_assert_int_eq(rng_decode_torch_cuda(bytes, sizes[i], &state, &error), RP_OK);
		ck_assert_uint_eq(state.seed, 42);
		ck_assert_uint_eq(state.offset, sizes[i] >= 16 ? 256 : 0);
		ck_assert_uint_eq(state.size, sizes[i]);
	}
	struct rng_state state;
	memset(bytes, 0, 16);
	bytes[8] = 2;
	ck_assert_int_eq(rng_decode_torch_cuda(bytes, 16, &state, &error), RP_E_FORMAT);
	ck_assert_ptr_nonnull(strstr(error.text, "multiple of 4"));
	error = ERROR_INIT;
	memset(bytes + 8, 0xff, 8);
	ck_assert_int_eq(rng_decode_torch_cuda(bytes, 16, &state, &error), RP_E_FORMAT);
	ck_assert_ptr_nonnull(strstr(error.text, "negative"));
	free(bytes);
}
END_TEST

/* An MPS state as MPSGeneratorImpl keeps it: after `blocks` blocks of its engine; 36 or 44 bytes.
 */
static struct rng_state mps_state(uint64_t seed, uint64_t blocks, size_t size)
{
	struct bytes b = {0};
	const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
	const uint32_t counter[4] = {(uint32_t)(blocks - 1)};
	uint32_t block[4] = {1, 1, 1, 1};
	struct rng_state state;

	if (blocks)
		philox4x32_10(counter, key, block);
	bytes_add_le(&b, 1, 4);
	for (int i = 0; i < 4; i++)
		bytes_add_le(&b, block[i], 4);
	bytes_add_le(&b, seed, 8);
	bytes_add_le(&b, seed, 8);
	bytes_add_le(&b, blocks, 8);
	ck_assert_int_eq(rng_decode_torch_mps(b.p, size, &state, &error), RP_OK);
	bytes_set_le(&b, 20, seed + 1, 8);
	struct rng_state none;
	ck_assert_int_eq(rng_decode_torch_mps(b.p, size, &none, NULL), RP_E_FORMAT);
	bytes_release(&b);
	return state;
}

START_TEST(mps_states_with_and_without_an_offset_are_placed)
{
	for (size_t size = 36; size <= 44; size += 8) {
		struct rng_state fresh = mps_state(42, 0, size), used = mps_state(42, 10, size);
		struct rng_state more = mps_state(42, 5000, size), other = mps_state(43, 3, size);
		ck_assert_int_eq(used.has_offset, size == 44);
		assert_relation(relate(&fresh, &used), RNG_ADVANCED, 40);
		assert_relation(relate(&used, &more), RNG_ADVANCED, 19960);
		assert_relation(relate(&more, &used), RNG_BEHIND, 19960);
		assert_relation(relate(&more, &more), RNG_IDENTICAL, 0);
		struct rng_relation r = relate(&more, &other);
		assert_relation(r, RNG_RESEEDED, 12);
		ck_assert_uint_eq(r.seed, 43);
	}
}
END_TEST

START_TEST(an_even_increment_is_no_pcg64)
{
	const uint64_t state[2] = {1, 2}, inc[2] = {3, 4};
	struct rng_state out;

	ck_assert_int_eq(
		rng_decode_pcg64(RNG_LAYOUT_NUMPY_PCG64, state, inc, false, 0, &out, &error),
		RP_E_FORMAT);
	ck_assert_ptr_nonnull(strstr(error.text, "even"));
}
END_TEST

START_TEST(equality_sees_every_part)
{
	struct rng_state a = made(RNG_LAYOUT_NUMPY, 1, 5), b = a;

	ck_assert(rng_equal(&a, &b));
	b = made(RNG_LAYOUT_NUMPY, 1, 6);
	ck_assert(!rng_equal(&a, &b));
	ck_assert_int_eq(
		rng_decode_words(RNG_LAYOUT_PYTHON, a.mt.s, a.mt.pos, false, 0, &b, NULL), RP_OK);
	ck_assert(!rng_equal(&a, &b));
	ck_assert_int_eq(
		rng_decode_words(RNG_LAYOUT_NUMPY, a.mt.s, a.mt.pos, true, 0, &b, NULL), RP_OK);
	ck_assert(!rng_equal(&a, &b));
	a = cuda_state(1, 4);
	b = cuda_state(1, 8);
	ck_assert(!rng_equal(&a, &b));
	b = cuda_state(1, 4);
	ck_assert(rng_equal(&a, &b));
	rng_decode_seed(7, &a);
	rng_decode_seed(8, &b);
	ck_assert(!rng_equal(&a, &b));
	rng_decode_opaque("ab", 2, &a);
	rng_decode_opaque("ac", 2, &b);
	ck_assert(!rng_equal(&a, &b));
}
END_TEST

/* ---- relations --------------------------------------------------------------------------- */

static const uint64_t distances[] = {1, 623, 624, 625, 1247, 1248, 1249, 1000000};

START_TEST(an_advance_is_counted_across_blocks)
{
	for (uint64_t before = 0; before <= 1300; before += 25) {
		struct rng_state a = made(RNG_LAYOUT_PYTHON, 5, before);
		struct rng_state b = made(RNG_LAYOUT_PYTHON, 5, before + distances[_i]);
		struct rng_search own;
		struct rng_relation r;
		rng_search_init(&own, 0);
		ck_assert_int_eq(rng_search_relate(&own, &a, &b, NULL, 0, &r, &error), RP_OK);
		assert_relation(r, RNG_ADVANCED, distances[_i]);
		ck_assert_int_eq(rng_search_relate(&own, &b, &a, NULL, 0, &r, &error), RP_OK);
		assert_relation(r, RNG_BEHIND, distances[_i]);
		rng_search_release(&own);
	}
}
END_TEST

START_TEST(a_state_is_identical_to_itself_without_a_search)
{
	struct rng_state a = made(RNG_LAYOUT_PYTHON, 5, 3), b = a;

	assert_relation(relate(&a, &b), RNG_IDENTICAL, 0);
	ck_assert_uint_eq(search.walked, 0);
}
END_TEST

START_TEST(the_end_of_a_block_and_the_start_of_the_next_are_one_position)
{
	struct rng_state a = made(RNG_LAYOUT_NUMPY, 5, 624), b;
	struct mt19937 m = a.mt;

	mt19937_twist(&m);
	ck_assert_int_eq(rng_decode_words(RNG_LAYOUT_NUMPY, m.s, 0, false, 0, &b, NULL), RP_OK);
	assert_relation(relate(&a, &b), RNG_IDENTICAL, 0);
	assert_relation(relate(&b, &a), RNG_IDENTICAL, 0);
}
END_TEST

START_TEST(real_torch_states_are_placed_on_the_path_of_their_seed)
{
	struct rng_state a = torch_state("torch_42_625"), b = torch_state("torch_42_1000000");
	struct rng_relation r = relate(&a, &b);

	assert_relation(r, RNG_ADVANCED, 999375);
	ck_assert(r.seed_known && r.earlier_seed_known);
	ck_assert_uint_eq(r.since_seed, 1000000);
	ck_assert_uint_eq(r.earlier_since_seed, 625);
}
END_TEST

START_TEST(a_state_behind_on_its_own_seed_has_both_readings)
{
	struct rng_state a = torch_state("torch_42_1000000"), b = torch_state("torch_42_625");
	struct rng_relation r = relate(&a, &b);

	assert_relation(r, RNG_BEHIND, 999375);
	ck_assert(r.seed_known && r.earlier_seed_known);
	ck_assert_uint_eq(r.seed, 42);
	ck_assert_uint_eq(r.since_seed, 625);
	ck_assert_uint_eq(r.earlier_since_seed, 1000000);
}
END_TEST

START_TEST(another_seed_is_named)
{
	struct rng_state a = torch_state("torch_42_1000000"), b = torch_state("torch_minus1_5");
	struct rng_relation r = relate(&a, &b);

	assert_relation(r, RNG_RESEEDED, 5);
	ck_assert_uint_eq(r.seed, UINT64_MAX);
	ck_assert_uint_eq(r.earlier_seed, 42);
	ck_assert_uint_eq(r.earlier_since_seed, 1000000);
	ck_assert(!r.exhausted);
}
END_TEST

START_TEST(a_guessed_seed_explains_a_numpy_state)
{
	const uint64_t seeds[] = {0, 1234};
	struct rng_state a = made(RNG_LAYOUT_NUMPY, 777, 5000),
			 b = made(RNG_LAYOUT_NUMPY, 1234, 100000);
	struct rng_relation r = relate_seeded(&a, &b, seeds, COUNT(seeds));

	assert_relation(r, RNG_RESEEDED, 100000);
	ck_assert_uint_eq(r.seed, 1234);
	ck_assert(!r.earlier_seed_known);
}
END_TEST

START_TEST(seeds_equal_modulo_2_32_make_one_torch_stream)
{
	struct bytes b = file_of("torch_42_1");
	struct rng_state a = torch_state("torch_42_1"), c;

	bytes_set_le(&b, 4, 9, 4);
	ck_assert_int_eq(rng_decode_torch_cpu(b.p, b.n, &c, &error), RP_OK);
	ck_assert_uint_eq(c.seed, ((uint64_t)9 << 32) + 42);
	ck_assert(!rng_equal(&a, &c));
	struct rng_relation r = relate(&a, &c);
	assert_relation(r, RNG_IDENTICAL, 0);
	ck_assert_uint_eq(r.seed, c.seed);
	ck_assert_uint_eq(r.earlier_seed, 42);
	bytes_release(&b);
}
END_TEST

START_TEST(a_kept_normal_that_was_handed_out_is_an_advance_of_no_words)
{
	struct rng_state kept = words_state(RNG_LAYOUT_NUMPY, "numpy_1234_randn3"), gone, other;
	double value;

	ck_assert_int_eq(
		rng_decode_words(RNG_LAYOUT_NUMPY, kept.mt.s, kept.mt.pos, false, 0, &gone, NULL),
		0);
	assert_relation(relate(&kept, &gone), RNG_ADVANCED, 0);
	assert_relation(relate(&gone, &kept), RNG_BEHIND, 0);
	memcpy(&value, &kept.kept_normal, sizeof value);
	ck_assert_int_eq(rng_decode_words(RNG_LAYOUT_NUMPY, kept.mt.s, kept.mt.pos, true, -value,
				 &other, NULL),
		0);
	assert_relation(relate(&kept, &other), RNG_UNRELATED, 0);
}
END_TEST

START_TEST(one_flipped_bit_is_on_no_path)
{
	struct rng_state a = made(RNG_LAYOUT_PYTHON, 5, 0), b = made(RNG_LAYOUT_PYTHON, 5, 1000), c;

	b.mt.s[500] ^= 4;
	ck_assert_int_eq(
		rng_decode_words(RNG_LAYOUT_PYTHON, b.mt.s, b.mt.pos, false, 0, &c, NULL), RP_OK);
	rng_search_init(&search, 1000000);
	ck_assert_int_eq(relate(&a, &c).kind, RNG_UNRELATED);
}
END_TEST

START_TEST(unrelated_states_use_up_the_budget_and_say_so)
{
	struct rng_state a = made(RNG_LAYOUT_PYTHON, 5, 77), b = made(RNG_LAYOUT_PYTHON, 6, 77);
	struct rng_relation r;

	rng_search_init(&search, 10000000);
	r = relate(&a, &b);
	assert_relation(r, RNG_UNRELATED, 0);
	ck_assert(r.exhausted && !r.seed_known);
	ck_assert_uint_gt(search.walked, 10000000 - N);
	ck_assert_uint_le(search.walked, 10000000);
	ck_assert_uint_gt(r.searched, 5000000);
	ck_assert_uint_lt(r.searched, 10000000);
}
END_TEST

/* What was not searched is not unrelated. */
START_TEST(a_deadline_ends_the_search_and_says_so)
{
	struct rng_state a = made(RNG_LAYOUT_PYTHON, 5, 77), b = made(RNG_LAYOUT_PYTHON, 6, 77);
	struct rng_state c = made(RNG_LAYOUT_PYTHON, 5, 80);
	struct deadline passed, far;

	deadline_set(&passed, 0);
	deadline_set(&far, 3600000);
	rng_search_init(&search, 10000000);
	search.deadline = &far;
	ck_assert_int_eq(relate(&a, &b).kind, RNG_UNRELATED);
	ck_assert(!search.late);
	rng_search_release(&search);
	rng_search_init(&search, 10000000);
	search.deadline = &passed;
	ck_assert_int_eq(relate(&a, &b).kind, RNG_NOT_SEARCHED);
	ck_assert(search.late);
	ck_assert_uint_lt(search.walked, 10000000 / 2);
	/* What needs no search is answered all the same. */
	ck_assert_int_eq(relate(&a, &a).kind, RNG_IDENTICAL);
	ck_assert_int_eq(relate(&a, &c).kind, RNG_ADVANCED);
}
END_TEST

START_TEST(a_hopeless_pair_does_not_starve_the_others)
{
	struct rng_state a = made(RNG_LAYOUT_PYTHON, 5, 77), b = made(RNG_LAYOUT_PYTHON, 6, 77);
	struct rng_state c[8], d[8];
	size_t hopeless, near[8];

	rng_search_init(&search, 20000000);
	ck_assert_int_eq(rng_search_add(&search, &a, &b, NULL, 0, &hopeless, &error), RP_OK);
	for (unsigned i = 0; i < 8; i++) {
		c[i] = made(RNG_LAYOUT_PYTHON, 100 + i, 77);
		d[i] = made(RNG_LAYOUT_PYTHON, 100 + i, 100077);
		ck_assert_int_eq(
			rng_search_add(&search, &c[i], &d[i], NULL, 0, &near[i], &error), RP_OK);
	}
	ck_assert_int_eq(rng_search_run(&search, &error), RP_OK);
	ck_assert(rng_search_answer(&search, hopeless)->exhausted);
	for (unsigned i = 0; i < 8; i++) {
		assert_relation(*rng_search_answer(&search, near[i]), RNG_ADVANCED, 100000);
		ck_assert(!rng_search_answer(&search, near[i])->exhausted);
	}
}
END_TEST

START_TEST(one_budget_is_shared_by_all_queries)
{
	struct rng_state a = made(RNG_LAYOUT_PYTHON, 5, 77), b = made(RNG_LAYOUT_PYTHON, 6, 77);
	struct rng_state c = made(RNG_LAYOUT_PYTHON, 5, 100000);

	rng_search_init(&search, 2000000);
	assert_relation(relate(&a, &b), RNG_UNRELATED, 0);
	uint64_t walked = search.walked;
	/* Far behind where the first query walked, and there is no budget to find out with. */
	ck_assert_int_eq(relate(&b, &c).kind, RNG_UNRELATED);
	ck_assert_uint_eq(search.walked, walked);
	ck_assert_uint_lt(search.budget, N);
}
END_TEST

START_TEST(equal_states_are_searched_once)
{
	struct rng_state a[64], b[64];
	size_t query[64];
	uint64_t alone = 0;

	for (unsigned ranks = 1; ranks <= 64; ranks += 63) {
		rng_search_init(&search, 0);
		for (unsigned i = 0; i < ranks; i++) {
			a[i] = made(RNG_LAYOUT_PYTHON, 5, 10);
			b[i] = made(RNG_LAYOUT_PYTHON, 5, 3000000);
			ck_assert_int_eq(
				rng_search_add(&search, &a[i], &b[i], NULL, 0, &query[i], &error),
				0);
		}
		ck_assert_int_eq(rng_search_run(&search, &error), RP_OK);
		for (unsigned i = 0; i < ranks; i++)
			assert_relation(
				*rng_search_answer(&search, query[i]), RNG_ADVANCED, 2999990);
		if (ranks == 1)
			alone = search.walked;
		ck_assert_uint_eq(search.walked, alone);
		ck_assert_uint_lt(search.walked, 4000000);
		rng_search_release(&search);
	}
}
END_TEST

START_TEST(ground_that_was_walked_is_not_walked_again)
{
	struct rng_state a = made(RNG_LAYOUT_PYTHON, 5, 10),
			 b = made(RNG_LAYOUT_PYTHON, 5, 20000000), c[100];
	uint64_t walked;

	assert_relation(relate(&a, &b), RNG_ADVANCED, 19999990);
	walked = search.walked;
	for (unsigned i = 0; i < COUNT(c); i++) {
		c[i] = made(RNG_LAYOUT_PYTHON, 5, 190000 * (uint64_t)i + 11);
		assert_relation(relate(&a, &c[i]), RNG_ADVANCED, 190000 * (uint64_t)i + 1);
		assert_relation(
			relate(&c[i], &b), RNG_ADVANCED, 20000000 - 190000 * (uint64_t)i - 11);
	}
	/* About 64 blocks to the next landmark, each. */
	ck_assert_uint_lt(search.walked - walked, 100 * 200 * N);
}
END_TEST

/* Any order of adding and running gives what the positions say. */
START_TEST(random_sets_of_states_are_placed_as_they_were_made)
{
	enum { STATES = 24 };
	struct rng_state state[STATES];
	uint64_t at[STATES];
	unsigned seed[STATES];
	struct mt19937 dice;

	mt19937_seed(&dice, (uint32_t)_i);
	for (unsigned i = 0; i < STATES; i++) {
		seed[i] = 1 + mt19937_u32(&dice) % 3;
		at[i] = mt19937_u32(&dice) % (i % 2 ? 2000 : 500000);
		state[i] = made(RNG_LAYOUT_PYTHON, seed[i], at[i]);
	}
	for (unsigned n = 0; n < 40; n++) {
		unsigned i = mt19937_u32(&dice) % STATES, j = mt19937_u32(&dice) % STATES;
		uint64_t tried = mt19937_u32(&dice) % 5;
		if (seed[i] != seed[j])
			tried = seed[j];
		struct rng_relation r = relate_seeded(&state[i], &state[j], &tried, 1);
		if (seed[i] != seed[j])
			assert_relation(r, RNG_RESEEDED, at[j]);
		else if (at[i] == at[j])
			assert_relation(r, RNG_IDENTICAL, 0);
		else if (at[i] < at[j])
			assert_relation(r, RNG_ADVANCED, at[j] - at[i]);
		else
			assert_relation(r, RNG_BEHIND, at[i] - at[j]);
		ck_assert_int_eq(r.seed_known, tried == seed[j]);
		if (r.seed_known)
			ck_assert_uint_eq(r.since_seed, at[j]);
	}
}
END_TEST

START_TEST(cuda_states_relate_by_offset)
{
	struct rng_state a = cuda_state(42, 800000), b = cuda_state(42, 1600000),
			 c = cuda_state(43, 400);
	struct rng_relation r = relate(&a, &b);

	assert_relation(r, RNG_ADVANCED, 800000);
	ck_assert(r.seed_known);
	ck_assert_uint_eq(r.since_seed, 1600000);
	r = relate(&b, &a);
	assert_relation(r, RNG_BEHIND, 800000);
	ck_assert_uint_eq(r.earlier_since_seed, 1600000);
	assert_relation(relate(&a, &a), RNG_IDENTICAL, 0);
	r = relate(&a, &c);
	assert_relation(r, RNG_RESEEDED, 400);
	ck_assert_uint_eq(r.seed, 43);
	ck_assert_uint_eq(search.walked, 0);
}
END_TEST

static struct rng_state pcg_state(int row, const uint64_t state[2], bool half, uint32_t word)
{
	struct rng_state out;

	ck_assert_int_eq(
		rng_decode_pcg64(pcg_far[row].layout, state, pcg_inc, half, word, &out, &error),
		RP_OK);
	return out;
}

START_TEST(pcg64_states_relate_by_arithmetic)
{
	static const uint64_t seeds[] = {1, 42}, elsewhere[2] = {1, 1};
	struct rng_state fresh = pcg_state(_i, pcg_far[_i].states[0], false, 0);
	struct rng_state later = pcg_state(_i, pcg_far[_i].states[1], false, 0);
	struct rng_state far = pcg_state(_i, pcg_far[_i].states[2], false, 0);
	struct rng_relation r = relate_seeded(&fresh, &later, seeds, 2);

	assert_relation(r, RNG_ADVANCED, 1000);
	ck_assert(r.seed_known && r.earlier_seed_known);
	ck_assert_uint_eq(r.seed, 42);
	ck_assert_uint_eq(r.since_seed, 1000);
	ck_assert_uint_eq(r.earlier_since_seed, 0);
	assert_relation(relate(&later, &fresh), RNG_BEHIND, 1000);
	assert_relation(relate(&later, &later), RNG_IDENTICAL, 0);
	/* Further than 2^64 is nothing that a run does. */
	assert_relation(relate(&later, &far), RNG_UNRELATED, 0);

	struct rng_state other, half = pcg_state(_i, pcg_far[_i].states[1], true, 7);
	assert_relation(relate(&half, &later), RNG_ADVANCED, 0);
	assert_relation(relate(&later, &half), RNG_BEHIND, 0);
	ck_assert_int_eq(rng_decode_pcg64(pcg_far[_i].layout, elsewhere, elsewhere, false, 0,
				 &other, &error),
		RP_OK);
	assert_relation(relate(&other, &later), RNG_UNRELATED, 0);
	assert_relation(relate_seeded(&other, &later, seeds, 2), RNG_RESEEDED, 1000);
}
END_TEST

START_TEST(states_of_different_kinds_are_not_compared)
{
	struct rng_state python = made(RNG_LAYOUT_PYTHON, 5, 1),
			 numpy = made(RNG_LAYOUT_NUMPY, 5, 1);
	struct rng_state cuda = cuda_state(1, 4), seed, other;

	ck_assert_int_eq(relate(&python, &numpy).kind, RNG_NOT_COMPARABLE);
	ck_assert_int_eq(relate(&python, &cuda).kind, RNG_NOT_COMPARABLE);
	rng_decode_seed(7, &seed);
	rng_decode_seed(8, &other);
	ck_assert_int_eq(relate(&seed, &seed).kind, RNG_IDENTICAL);
	ck_assert_int_eq(relate(&seed, &other).kind, RNG_NOT_COMPARABLE);
	rng_decode_opaque("x", 1, &seed);
	ck_assert_int_eq(relate(&seed, &seed).kind, RNG_IDENTICAL);
	ck_assert_int_eq(relate(&seed, &other).kind, RNG_NOT_COMPARABLE);
}
END_TEST

Suite *suite_rng(void)
{
	Suite *suite = suite_create("rng");
	TCase *t = tcase_create("generators");

	tcase_add_loop_test(t, mt19937_gives_the_words_that_numpy_gives, 0, (int)COUNT(genrand));
	tcase_add_test(t, mt19937_seeds_by_array_as_the_reference_does);
	tcase_add_test(t, mt19937_takes_a_key_longer_than_its_block);
	tcase_add_test(t, mt19937_makes_doubles_as_python_and_numpy_do);
	tcase_add_test(t, mt19937_joins_words_as_torch_does);
	tcase_add_test(t, skipping_is_drawing);
	tcase_add_test(t, philox_gives_the_published_answers);
	tcase_add_test(t, seed_sequence_gives_the_words_that_numpy_gives);
	tcase_add_loop_test(t, pcg64_seeds_and_draws_as_default_rng_does, 0, (int)COUNT(pcg));
	tcase_add_loop_test(t, pcg64_goes_far_and_knows_how_far, 0, (int)COUNT(pcg_far));
	suite_add_tcase(suite, t);

	t = tcase_create("states");
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(
		t, a_torch_state_tells_its_seed_and_the_draws_since, 0, (int)COUNT(torch_rows));
	tcase_add_test(t, a_torch_state_of_5048_bytes_is_the_same_without_the_float);
	tcase_add_loop_test(t, the_seed_of_a_python_or_numpy_state_is_found_among_those_given, 0,
		(int)COUNT(word_rows));
	tcase_add_test(t, python_ignores_the_sign_of_a_seed);
	tcase_add_loop_test(
		t, a_damaged_torch_state_is_refused_with_the_reason, 0, (int)COUNT(damages));
	tcase_add_test(t, a_state_of_another_size_is_refused);
	tcase_add_test(t, words_that_are_all_zero_are_refused);
	tcase_add_test(t, cuda_states_of_all_sizes_are_read);
	tcase_add_test(t, mps_states_with_and_without_an_offset_are_placed);
	tcase_add_test(t, an_even_increment_is_no_pcg64);
	tcase_add_test(t, equality_sees_every_part);
	suite_add_tcase(suite, t);

	t = tcase_create("relations");
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_loop_test(t, an_advance_is_counted_across_blocks, 0, (int)COUNT(distances));
	tcase_add_test(t, a_state_is_identical_to_itself_without_a_search);
	tcase_add_test(t, the_end_of_a_block_and_the_start_of_the_next_are_one_position);
	tcase_add_test(t, real_torch_states_are_placed_on_the_path_of_their_seed);
	tcase_add_test(t, a_state_behind_on_its_own_seed_has_both_readings);
	tcase_add_test(t, another_seed_is_named);
	tcase_add_test(t, a_guessed_seed_explains_a_numpy_state);
	tcase_add_test(t, seeds_equal_modulo_2_32_make_one_torch_stream);
	tcase_add_test(t, a_kept_normal_that_was_handed_out_is_an_advance_of_no_words);
	tcase_add_test(t, one_flipped_bit_is_on_no_path);
	tcase_add_test(t, unrelated_states_use_up_the_budget_and_say_so);
	tcase_add_test(t, a_deadline_ends_the_search_and_says_so);
	tcase_add_test(t, a_hopeless_pair_does_not_starve_the_others);
	tcase_add_test(t, one_budget_is_shared_by_all_queries);
	tcase_add_test(t, equal_states_are_searched_once);
	tcase_add_test(t, ground_that_was_walked_is_not_walked_again);
	tcase_add_loop_test(t, random_sets_of_states_are_placed_as_they_were_made, 0, 12);
	tcase_add_test(t, cuda_states_relate_by_offset);
	tcase_add_loop_test(t, pcg64_states_relate_by_arithmetic, 0, (int)COUNT(pcg_far));
	tcase_add_test(t, states_of_different_kinds_are_not_compared);
	suite_add_tcase(suite, t);
	return suite;
}
