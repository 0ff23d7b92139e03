/* SPDX-License-Identifier: MIT */
#include "container/pickle.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/bytes.h"

#undef fail /* Check has one too */

#define DATA "tests/unit/data/pickle/values-p"
#define BASE 5000u

Suite *suite_pickle(void);

static struct arena arena;
static struct limits limits;
static struct findings sink;
static struct error error;
static struct pickle p;
static struct bytes file;

static void setup(void)
{
	limits = limits_default();
	limits.memory = (uint64_t)64 << 20;
	arena_init(&arena, (size_t)limits.memory);
	findings_init(&sink);
	p = (struct pickle){.arena = &arena, .limits = &limits, .base = BASE};
	error = ERROR_INIT;
	file = (struct bytes){0};
}

static void forget(void)
{
	pickle_release(&p);
	arena_release(&arena);
	findings_release(&sink);
	findings_init(&sink);
	error = ERROR_INIT;
}

static void teardown(void)
{
	forget();
	findings_release(&sink);
	bytes_release(&file);
}

static int decode_bytes(const void *bytes, size_t n)
{
	forget();
	return pickle_decode(&p, (struct slice){bytes, n}, &error);
}

/* A literal without its NUL. */
#define decode(literal) decode_bytes((literal), sizeof(literal) - 1)

#define must_decode(literal)                                                                       \
	do {                                                                                       \
		ck_assert_msg(decode(literal) == RP_OK, "%s", error.text);                         \
		ck_assert_uint_eq(p.end, sizeof(literal) - 1);                                     \
	} while (0)

#define must_fail(literal, status, words)                                                          \
	do {                                                                                       \
		ck_assert_int_eq(decode(literal), (status));                                       \
		ck_assert_msg(strstr(error.text, (words)) != NULL, "%s", error.text);              \
	} while (0)

static void decode_file(int protocol)
{
	const char name[] = {(char)('0' + protocol), '\0'};
	char path[100] = DATA;

	strcat(path, name);
	strcat(path, ".pickle");
	file = bytes_of_file(path);
	ck_assert_msg(decode_bytes(file.p, file.n) == RP_OK, "%s", error.text);
	ck_assert_uint_eq(p.end, file.n);
	ck_assert_int_eq(p.protocol, protocol);
}

static struct val part(const char *key)
{
	struct val v = val_get(p.root, key);

	ck_assert_msg(v.kind != VAL_ABSENT, "%s", key);
	return v;
}

static void is_bytes(struct val v, const void *bytes, size_t n)
{
	ck_assert_int_eq(v.kind, VAL_BYTES);
	ck_assert(slice_eq(val_slice(v), (struct slice){bytes, n}));
}

/* What Python wrote ------------------------------------------------------------------------- */

START_TEST(reads_the_numbers_that_python_wrote)
{
	static const int64_t ints[] = {0, 1, -1, 255, 256, 65535, 65536, INT32_MAX, 1LL << 31,
		INT32_MIN, INT64_MAX, INT64_MIN};
	static const double floats[] = {0.0, -0.0, 1.5, -2.5e-300, HUGE_VAL, -HUGE_VAL, NAN};
	uint64_t u;

	decode_file(_i);
	struct val v = part("ints");
	ck_assert_uint_eq(val_count(v), sizeof ints / sizeof *ints);
	for (uint64_t i = 0; i < val_count(v); i++) {
		ck_assert_int_eq(val_at(v, i).kind, VAL_INT);
		ck_assert_int_eq(val_at(v, i).i, ints[i]);
	}
	v = part("floats");
	ck_assert_uint_eq(val_count(v), sizeof floats / sizeof *floats);
	for (uint64_t i = 0; i < val_count(v); i++) {
		double d = val_at(v, i).f;
		ck_assert_int_eq(val_at(v, i).kind, VAL_FLOAT);
		ck_assert(isnan(floats[i]) ? isnan(d)
					   : d == floats[i] && !signbit(d) == !signbit(floats[i]));
	}
	v = part("big");
	ck_assert(val_to_u64(val_at(v, 0), &u) && u == (uint64_t)1 << 63);
	ck_assert(val_to_u64(val_at(v, 1), &u) && u == UINT64_MAX);
	/* -2^63 - 1: nine bytes, the lowest seven ff, then 7f, ff. */
	struct slice s = val_slice(val_at(v, 2));
	ck_assert(slice_eq(s, SLICE("\xff\xff\xff\xff\xff\xff\xff\x7f\xff")));
	s = val_slice(val_at(v, 3));
	ck_assert(s.n == 26 && s.p[25] == 1 && s.p[24] == 0 && s.p[0] == 0);
	s = val_slice(val_at(v, 4));
	ck_assert(s.n == 26 && s.p[25] == '\xff' && s.p[24] == 0 && s.p[0] == 0);
	s = val_slice(val_at(v, 5));
	ck_assert(s.n == 10 && s.p[9] == 0 && s.p[8] == '\xff' && s.p[7] == 0);
	ck_assert_int_eq(part("number").kind, VAL_OBJECT);
	ck_assert_int_eq(val_at(part("number").object->args, 0).i, 77);
}
END_TEST

START_TEST(reads_the_texts_and_bytes_that_python_wrote)
{
	static const char *const texts[] = {"", "abc", "\xc3\xa9", "\xe2\x82\xac",
		"\xf0\x9f\x98\x80", "\xed\xa0\x80", "a\\b\nc", "\\u0041"};
	char all[256];

	decode_file(_i);
	struct val v = part("texts");
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		ck_assert_msg(val_is_text(val_at(v, i), texts[i]), "text %zu", i);
	ck_assert_uint_eq(val_slice(val_at(v, 8)).n, 300);
	for (int i = 0; i < 256; i++)
		all[i] = (char)i;
	v = part("bytes");
	is_bytes(val_at(v, 0), "", 0);
	is_bytes(val_at(v, 1), "abc", 3);
	is_bytes(val_at(v, 2), all, sizeof all);
	ck_assert_uint_eq(val_slice(val_at(v, 3)).n, 300);
	is_bytes(part("array"), "\xffz", 2);
}
END_TEST

START_TEST(reads_the_containers_that_python_wrote)
{
	static const enum val_kind empty[] = {VAL_LIST, VAL_DICT, VAL_SET, VAL_FROZENSET};
	struct val key;

	decode_file(_i);
	struct val v = part("constants");
	ck_assert_int_eq(val_at(v, 0).kind, VAL_NONE);
	ck_assert(val_at(v, 1).kind == VAL_BOOL && val_at(v, 1).i == 1);
	ck_assert(val_at(v, 2).kind == VAL_BOOL && val_at(v, 2).i == 0);
	v = part("tuples");
	for (uint64_t n = 0; n < 5; n++) {
		ck_assert_int_eq(val_at(v, n).kind, VAL_TUPLE);
		ck_assert_uint_eq(val_count(val_at(v, n)), n);
	}
	v = part("long");
	ck_assert_uint_eq(val_count(v), 1001);
	for (int64_t i = 0; i < 1001; i++)
		ck_assert(val_at(v, (uint64_t)i).i == i);
	v = part("dict");
	ck_assert_uint_eq(val_count(v), 1001);
	ck_assert(val_is_text(val_part(v, 1000, &key), "1000") && key.i == 1000);
	for (size_t i = 0; i < sizeof empty / sizeof *empty; i++) {
		v = val_at(part("empty"), i);
		ck_assert_int_eq(v.kind, empty[i]);
		ck_assert_uint_eq(val_count(v), 0);
	}
	ck_assert(part("set").kind == VAL_SET && part("set").node->kids[0].i == 7);
	ck_assert(
		part("frozenset").kind == VAL_FROZENSET && part("frozenset").node->kids[0].i == 8);
	v = part("cycle");
	ck_assert_ptr_eq(val_at(v, 1).node, v.node);
	v = part("shared");
	ck_assert_ptr_eq(val_at(v, 0).node, val_at(v, 1).node);
}
END_TEST

START_TEST(reads_the_objects_that_python_wrote)
{
	decode_file(_i);
	struct val v = part("ordered");
	ck_assert(val_is_object_of(v, "collections", "OrderedDict"));
	ck_assert_int_eq(val_get(v, "a").i, 2);
	v = part("default");
	ck_assert(val_is_object_of(v, "collections", "defaultdict"));
	ck_assert_int_eq(val_at(val_get(v, "k"), 0).i, 1);
	v = part("deque");
	ck_assert(val_is_object_of(v, "collections", "deque"));
	ck_assert_uint_eq(v.object->list.count, 3);
	v = part("point");
	ck_assert(val_is_object_of(v, "project", "Point"));
	ck_assert(v.object->callable.klass->called);
	ck_assert_int_eq(val_get(v, "y").i, 2);
	v = part("names");
	ck_assert(val_is_object_of(v, "project", "Names"));
	ck_assert_uint_eq(v.object->list.count, 2);
	ck_assert(val_is_text(v.object->list.kids[1], "b"));
	ck_assert(val_is_text(val_get(v, "note"), "n"));
	ck_assert(val_is_text(val_get(part("table"), "k"), "v"));
	ck_assert(val_is_class(part("class"), "project", "Point"));
	ck_assert_ptr_eq(part("class").klass, part("point").object->callable.klass);
	ck_assert_uint_eq(val_slice(val_at(part("date").object->args, 0)).n, 10);
	if (_i >= 2) {
		ck_assert_int_eq(val_get(part("slots"), "a").i, 5);
		v = part("keywords");
		ck_assert_int_eq(v.kind, VAL_OBJECT);
		if (_i >= 4) {
			ck_assert_int_eq(val_at(v.object->args, 0).i, 1);
			ck_assert_int_eq(val_get(v.object->kwargs, "b").i, 2);
		}
		ck_assert(val_is_object_of(part("partial"), "functools", "partial"));
	}
	pickle_judge(&p, "f", &sink);
	ck_assert_uint_eq(sink.of_code[FINDING_I112], 0);
	ck_assert_uint_eq(sink.of_code[FINDING_I116], 1);
}
END_TEST

START_TEST(every_truncation_fails_and_says_so)
{
	decode_file(_i);
	for (size_t n = 0; n < file.n; n++) {
		/* A block of its own, so that a sanitizer sees every step over the end. */
		uint8_t *copy = malloc(n ? n : 1);
		memcpy(copy, file.p, n);
		int status = decode_bytes(copy, n);
		if (status != RP_E_FORMAT || !p.truncated || p.needed <= n ||
			(error.offset != ERROR_NO_OFFSET && error.offset > BASE + n))
			ck_abort_msg("%zu bytes: %d %s", n, status, error.text);
		free(copy);
	}
}
END_TEST

START_TEST(survives_every_flipped_bit)
{
	decode_file(_i);
	size_t most = file.n < 1500 ? file.n : 1500;
	for (size_t at = file.n - most; at < file.n; at++)
		for (int bit = 0; bit < 8; bit++) {
			file.p[at] ^= (uint8_t)(1 << bit);
			if (decode_bytes(file.p, file.n) < 0 && error.text[0] == '\0')
				ck_abort_msg("no words at %zu", at);
			pickle_judge(&p, "f", &sink);
			file.p[at] ^= (uint8_t)(1 << bit);
		}
}
END_TEST

START_TEST(survives_every_memory_limit)
{
	size_t limit = 0;
	int status;

	decode_file(_i);
	do {
		forget();
		arena_init(&arena, limit);
		status = pickle_decode(&p, (struct slice){(char *)file.p, file.n}, &error);
		if (status != RP_OK && status != RP_E_MEMORY)
			ck_abort_msg("%zu: %s", limit, error.text);
		limit += 1000;
	} while (status != RP_OK);
	arena_release(&arena);
}
END_TEST

/* Opcodes by hand --------------------------------------------------------------------------- */

START_TEST(protocol_0_numbers_are_read)
{
	must_decode(
		"(I00\nI01\nI-5\nL7L\nL-9223372036854775808L\nL9223372036854775808\nF1e3\nFnan\nI 3 \nl.");
	ck_assert_int_eq(p.protocol, 0);
	ck_assert(val_at(p.root, 0).kind == VAL_BOOL && val_at(p.root, 0).i == 0);
	ck_assert(val_at(p.root, 1).kind == VAL_BOOL && val_at(p.root, 1).i == 1);
	ck_assert_int_eq(val_at(p.root, 2).i, -5);
	ck_assert_int_eq(val_at(p.root, 3).i, 7);
	ck_assert(val_at(p.root, 4).kind == VAL_INT && val_at(p.root, 4).i == INT64_MIN);
	ck_assert_int_eq(val_at(p.root, 5).kind, VAL_BIGINT);
	ck_assert(val_at(p.root, 6).f == 1000 && isnan(val_at(p.root, 7).f));
	ck_assert_int_eq(val_at(p.root, 8).i, 3);
	must_fail("I1x\n.", RP_E_FORMAT, "no decimal");
	must_fail("L\n.", RP_E_FORMAT, "no decimal");
	must_fail("F1,5\n.", RP_E_FORMAT, "no number");
}
END_TEST

START_TEST(integers_of_too_many_digits_are_refused_at_once)
{
	bytes_add(&file, "L", 1);
	for (int i = 0; i < 4300; i++)
		bytes_add(&file, "9", 1);
	bytes_add(&file, "L\n.", 3);
	ck_assert_int_eq(decode_bytes(file.p, file.n), RP_OK);
	ck_assert_int_eq(p.root.kind, VAL_BIGINT);
	bytes_splice(&file, 1, 0, "9", 1);
	ck_assert_int_eq(decode_bytes(file.p, file.n), RP_E_LIMIT);
}
END_TEST

START_TEST(integers_with_idle_bytes_are_trimmed)
{
	must_decode("\x80\x02\x8a\x00.");
	ck_assert_int_eq(p.root.i, 0);
	must_decode("\x80\x02\x8a\x0b\x05\0\0\0\0\0\0\0\0\0\0.");
	ck_assert(p.root.kind == VAL_INT && p.root.i == 5);
	must_decode("\x80\x02\x8b\x0a\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff.");
	ck_assert(p.root.kind == VAL_INT && p.root.i == -1);
	must_decode("\x80\x02\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\x00.");
	ck_assert(p.root.kind == VAL_BIGINT && p.root.n == 9);
	must_fail("\x80\x02\x8b\xff\xff\xff\xff.", RP_E_FORMAT, "negative");
}
END_TEST

START_TEST(quoted_strings_are_unescaped)
{
	must_decode("S'a\\n\\x41\\101\\'\\q\\\\'\n.");
	ck_assert(val_is_text(p.root, "a\nAA'\\q\\"));
	must_decode("S\"\\xff\\376\"\n.");
	is_bytes(p.root, "\xff\xfe", 2);
	must_decode("U\x02\xc3\xa9.");
	ck_assert_int_eq(p.root.kind, VAL_TEXT);
	must_decode("T\x01\0\0\0\xe9.");
	ck_assert_int_eq(p.root.kind, VAL_BYTES);
	must_fail("Sabc\n.", RP_E_FORMAT, "without quotes");
	must_fail("S'\n.", RP_E_FORMAT, "without quotes");
	must_fail("S'a\\'\n.", RP_E_FORMAT, "backslash");
	must_fail("S'\\xg0'\n.", RP_E_FORMAT, "\\x");
}
END_TEST

START_TEST(unicode_lines_are_unescaped)
{
	must_decode("Va\\u00e9\\U0001f600\xe9\\\\u0041\\n\n.");
	ck_assert(val_is_text(p.root, "a\xc3\xa9\xf0\x9f\x98\x80\xc3\xa9\\\\u0041\\n"));
	must_fail("V\\u12\n.", RP_E_FORMAT, "\\u");
	must_fail("V\\U00110000\n.", RP_E_FORMAT, "\\U");
}
END_TEST

START_TEST(text_that_is_not_utf_8_is_refused)
{
	must_fail("\x80\x04\x8c\x01\xff.", RP_E_FORMAT, "not UTF-8");
	must_fail("\x80\x04\x8c\x02\xc0\x80.", RP_E_FORMAT, "not UTF-8");
	must_fail("X\x09\0\0\0abcdefgh\x80.", RP_E_FORMAT, "not UTF-8");
	must_fail("c\xff\nx\n.", RP_E_FORMAT, "not UTF-8");
	/* A lone surrogate is what Python's own pickler writes. */
	must_decode("\x80\x04\x8c\x03\xed\xb3\xbf.");
}
END_TEST

START_TEST(the_stack_and_its_marks_are_kept)
{
	must_decode("(I1\nI2\n1I3\n2\x85"
		    "0.");
	ck_assert_int_eq(p.root.i, 3);
	must_decode("I7\n(0.");
	ck_assert_int_eq(p.root.i, 7);
	must_fail("0.", RP_E_FORMAT, "POP");
	must_fail("1.", RP_E_FORMAT, "MARK");
	must_fail("(.", RP_E_FORMAT, "STOP");
	must_fail("I1\n(\x85.", RP_E_FORMAT, "needs 1 values");
	must_fail("](I1\na.", RP_E_FORMAT, "needs 2 values");
	must_fail("(I1\ne.", RP_E_FORMAT, "nothing below");
	must_fail("(I1\nd.", RP_E_FORMAT, "without a value");
	must_fail("}(I1\nu.", RP_E_FORMAT, "without a value");
	must_fail("I1\nI2\na.", RP_E_FORMAT, "into a int");
	must_fail("(o.", RP_E_FORMAT, "no class");
}
END_TEST

START_TEST(duplicate_keys_are_kept)
{
	must_decode("}(X\x01\0\0\0aK\x01X\x01\0\0\0aK\x02u.");
	ck_assert_uint_eq(val_count(p.root), 2);
	ck_assert_int_eq(val_get(p.root, "a").i, 2);
}
END_TEST

START_TEST(the_memo_is_bounded)
{
	must_decode("]p0\ng0\na.");
	ck_assert_ptr_eq(val_at(p.root, 0).node, p.root.node);
	must_decode("\x80\x04]\x94h\x00h\x00\x86.");
	ck_assert_ptr_eq(val_at(p.root, 0).node, val_at(p.root, 1).node);
	must_decode("]r\x64\0\0\0j\x64\0\0\0\x86.");
	must_fail("]h\x00.", RP_E_FORMAT, "never made");
	must_fail("]r\xff\xff\xff\xff.", RP_E_LIMIT, "memo index");
	must_fail("]p99999999999\n.", RP_E_FORMAT, "no memo index");
	must_fail("]q\x05g4\n.", RP_E_FORMAT, "never made");
}
END_TEST

START_TEST(claimed_lengths_are_checked_before_use)
{
	must_fail("X\xff\xff\xff\xff"
		  "abc.",
		RP_E_FORMAT, "needs 4294967295 bytes");
	ck_assert(p.truncated && p.needed == 5 + (uint64_t)UINT32_MAX);
	must_fail("\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\xff"
		  "abc.",
		RP_E_FORMAT, "BINBYTES8");
	ck_assert_uint_eq(p.needed, UINT64_MAX);
	must_fail("\x80\x04\x95\x10\0\0\0\0\0\0\0N.", RP_E_FORMAT, "frame");
	ck_assert_uint_eq(p.needed, 11 + 16);
	must_fail("T\xff\xff\xff\xff"
		  "abc.",
		RP_E_FORMAT, "negative");
	must_fail("J\x01\x02", RP_E_FORMAT, "BININT at byte 5000 needs 4 bytes of argument");
	must_fail("N", RP_E_FORMAT, "without STOP");
	must_fail("", RP_E_FORMAT, "without STOP");
}
END_TEST

START_TEST(unknown_opcodes_and_protocols_are_refused)
{
	must_fail("N\xfe.", RP_E_FORMAT, "0xfe at byte 5001 is no opcode");
	ck_assert_uint_eq(error.offset, BASE + 1);
	ck_assert(!p.truncated);
	must_fail("\x80\x06N.", RP_E_UNSUPPORTED, "protocol 6");
	must_fail("\x80\xfeN.", RP_E_FORMAT, "protocol 254");
}
END_TEST

START_TEST(the_number_of_values_is_limited)
{
	limits.nodes = 4;
	must_decode("(NNNt.");
	limits.nodes = 3;
	must_fail("(NNNt.", RP_E_LIMIT, "nodes");
}
END_TEST

START_TEST(deep_nesting_needs_no_recursion)
{
	enum { DEPTH = 300000 };

	for (int i = 0; i < DEPTH; i++)
		bytes_add(&file, "(", 1);
	for (int i = 0; i < DEPTH; i++)
		bytes_add(&file, "t", 1);
	bytes_add(&file, ".", 1);
	ck_assert_int_eq(decode_bytes(file.p, file.n), RP_OK);
	pickle_judge(&p, "f", &sink);
}
END_TEST

START_TEST(exponential_sharing_costs_nothing)
{
	/* t = (t, t), a hundred times */
	bytes_add(&file, ")", 1);
	for (int i = 0; i < 100; i++)
		bytes_add(&file, "2\x86", 2);
	bytes_add(&file, ".", 1);
	ck_assert_int_eq(decode_bytes(file.p, file.n), RP_OK);
	ck_assert_uint_lt(arena.held, 20000);
}
END_TEST

START_TEST(one_state_built_on_another_is_bounded)
{
	limits.nodes = 100000;
	/* An object and a dict of 1000 keys, given to it as state again and again. */
	bytes_add(&file, "cm\nC\n)\x81}(", 9);
	for (int i = 0; i < 1000; i++)
		bytes_add(&file, "K\x01N", 3);
	bytes_add(&file,
		"uq\x00"
		"b",
		4);
	for (int i = 0; i < 5000; i++)
		bytes_add(&file,
			"h\x00"
			"b",
			3);
	bytes_add(&file, ".", 1);
	ck_assert_int_eq(decode_bytes(file.p, file.n), RP_E_LIMIT);
}
END_TEST

START_TEST(calls_that_make_plain_data_are_what_they_make)
{
	must_decode("c__builtin__\nset\n((lp0\nI1\natR.");
	ck_assert(p.root.kind == VAL_SET && p.root.node->kids[0].i == 1);
	must_decode("cbuiltins\nfrozenset\n((I1\nI1\nttR.");
	ck_assert_int_eq(p.root.kind, VAL_FROZENSET);
	must_decode("cbuiltins\nlist\n)RI5\na.");
	ck_assert(p.root.kind == VAL_LIST && val_at(p.root, 0).i == 5);
	must_decode("c__builtin__\nbytes\n)R.");
	is_bytes(p.root, "", 0);
	must_decode("c__builtin__\nbytearray\n(V\\u00ff\nS'latin-1'\ntR.");
	is_bytes(p.root, "\xff", 1);
	must_decode("c_codecs\nencode\n(X\x04\0\0\0\xc3\xbf"
		    "ax\x55\x06latin1tR.");
	is_bytes(p.root,
		"\xff"
		"ax",
		3);
	/* Python would raise: not our business, but no bytes either. */
	must_decode("c_codecs\nencode\n(V\\u20ac\nS'latin1'\ntR.");
	ck_assert_int_eq(p.root.kind, VAL_OBJECT);
	must_decode("ctorch\nSize\n((I2\nI3\nttR.");
	ck_assert(p.root.kind == VAL_TUPLE && val_at(p.root, 1).i == 3);
	must_decode("ccopy_reg\n_reconstructor\n(cm\nC\nc__builtin__\nobject\nNtR.");
	ck_assert(val_is_object_of(p.root, "m", "C"));
	ck_assert_int_eq(p.root.object->args.kind, VAL_ABSENT);
	/* Two sets of one list do not grow into each other. */
	must_decode("((lp0\nI1\na0cbuiltins\nlist\n(g0\ntRp1\nI2\na0g0\nI3\na0(g0\ng1\nt.");
	ck_assert_int_eq(val_at(val_at(p.root, 0), 1).i, 3);
	ck_assert_int_eq(val_at(val_at(p.root, 1), 1).i, 2);
}
END_TEST

START_TEST(what_cannot_be_called_is_refused)
{
	must_fail("I1\n(tR.", RP_E_FORMAT, "calls a value of type int");
	must_fail("cm\nf\nI1\nR.", RP_E_FORMAT, "in place of arguments");
	must_fail("cm\nf\n(l\x81.", RP_E_FORMAT, "in place of arguments");
	must_fail("(l(db.", RP_E_FORMAT, "sets the state of a list");
	must_fail("\x80\x04NN\x93.", RP_E_FORMAT, "names a class by a None");
}
END_TEST

START_TEST(extensions_and_buffers_are_named)
{
	must_decode("\x80\x02\x82\xf0.");
	ck_assert(val_is_class(p.root, "copyreg", "extension 240"));
	must_decode("\x80\x02\x83\x01\x01\x84\x02\0\x01\0\x86.");
	ck_assert(val_is_class(val_at(p.root, 0), "copyreg", "extension 257"));
	ck_assert(val_is_class(val_at(p.root, 1), "copyreg", "extension 65538"));
	must_fail("\x80\x02\x84\xff\xff\xff\xff.", RP_E_FORMAT, "extension code -1");
	must_fail("\x80\x02\x82\0.", RP_E_FORMAT, "extension code 0");
	must_decode("\x80\x05\x97\x98\x97\x86.");
	ck_assert(val_is_object_of(val_at(p.root, 1), "pickle", "PickleBuffer"));
	ck_assert_int_eq(val_at(val_at(p.root, 1).object->args, 0).i, 1);
	must_decode("\x80\x05\x96\x02\0\0\0\0\0\0\0ab.");
	is_bytes(p.root, "ab", 2);
}
END_TEST

START_TEST(a_class_appears_once_however_often_it_is_named)
{
	must_decode("(cm\nC\ncm\nC\n\x8c\x01m\x8c\x01"
		    "C\x93"
		    "cn\nC\nt.");
	ck_assert_uint_eq(p.classes.count, 2);
	ck_assert_ptr_eq(val_at(p.root, 0).klass, val_at(p.root, 2).klass);
	ck_assert_uint_eq(p.classes.items[0]->offset, BASE + 1);
	ck_assert(!p.classes.items[0]->called);
	for (int i = 0; i < 3000; i++) {
		char name[] = "cm\nC0000\n0";
		for (int k = 0, rest = i; k < 4; k++, rest /= 10)
			name[7 - k] = (char)('0' + rest % 10);
		bytes_add(&file, name, 10);
	}
	bytes_add(&file, "N.", 2);
	ck_assert_int_eq(decode_bytes(file.p, file.n), RP_OK);
	ck_assert_uint_eq(p.classes.count, 3000);
}
END_TEST

START_TEST(the_lowest_protocol_that_has_all_opcodes_is_told)
{
	must_decode("N.");
	ck_assert_int_eq(p.protocol, 0);
	must_decode("K\x01.");
	ck_assert_int_eq(p.protocol, 1);
	must_decode("\x80\x02\x8c\x01"
		    "a.");
	ck_assert_int_eq(p.protocol, 4);
}
END_TEST

static int numbered(void *context, struct val id, struct val *out, struct error *e)
{
	int *calls = context;

	if (id.kind == VAL_NONE)
		return fail(e, RP_E_IO, 7, "no such id");
	*out = val_int(100 + (*calls)++);
	return RP_OK;
}

START_TEST(persistent_ids_go_to_the_caller)
{
	int calls = 0;

	must_decode("Pabc\n.");
	ck_assert_int_eq(p.root.kind, VAL_PERSISTENT);
	ck_assert(val_is_text(p.root.node->kids[0], "abc"));
	p.persistent = numbered;
	p.context = &calls;
	must_decode("((S'storage'\nI0\ntQPx\nt.");
	ck_assert_int_eq(val_at(p.root, 0).i, 100);
	ck_assert_int_eq(val_at(p.root, 1).i, 101);
	must_fail("NQ.", RP_E_IO, "no such id");
}
END_TEST

/* Judging ----------------------------------------------------------------------------------- */

struct judged {
	const char *pickle;
	size_t n;
	const char *words; /* in the message of the only I112; NULL: there is none */
};

/* clang-format off */
#define CASE(literal, words) {(literal), sizeof(literal) - 1, (words)}

static const struct judged cases[] = {
	CASE("cposix\nsystem\n(S'echo hi'\ntR.",
		"calls posix.system(\"echo hi\"), which runs programs"),
	/* The result is thrown away. */
	CASE("cos\nsystem\n(S'id'\ntR0N.", "os.system(\"id\")"),
	CASE("(S'id'\nios\nsystem\n.", "os.system(\"id\")"),
	CASE("(cos\nsystem\nS'id'\no.", "os.system(\"id\")"),
	CASE("\x80\x02"
		"csubprocess\nPopen\nU\x02id\x85\x81.",
		"subprocess.Popen(\"id\")"),
	CASE("\x80\x04\x8c\x02nt\x8c\x06system\x93\x8c\x02id\x85R.", "nt.system"),
	CASE("c__builtin__\neval\n(S'1'\ntR.", "runs code from the file"),
	CASE("cbuiltins\nexec\n(S'1'\ntR.", "runs code from the file"),
	CASE("c__builtin__\n__import__\n(S'os'\ntR.", "imports modules"),
	CASE("cpickle\nloads\n(S'N.'\ntR.", "unpickles more bytes"),
	CASE("ctorch\nload\n(S'x'\ntR.", "torch.load"),
	CASE("cnumpy.testing._private.utils\nrunstring\n(S'1'\n(dtR.", "runs code"),
	CASE("cwebbrowser\nopen\n(S'x'\ntR.", "opens a browser"),
	CASE("ctorch.hub\nload\n(S'x'\ntR.", "downloads"),
	/* Through the modules that other modules import. */
	CASE("\x80\x04\x8c\x13torch.serialization\x8c\x09os.system\x93\x8c\x02id\x85R.",
		"runs programs"),
	CASE("\x80\x04\x8c\x05torch\x8c\x17serialization.os.system\x93\x8c\x02id\x85R.",
		"runs programs"),
	CASE("\x80\x04\x8c\x01m\x8c\x11"
		"C.f.__globals__.x\x93\x8c\x02id\x85R.",
		"through attributes"),
	CASE("c__builtin__\ngetattr\n(ctorch.serialization\nos\nS'system'\ntR(S'id'\ntR.",
		"runs programs"),
	CASE("c__builtin__\ngetattr\n(cos\npath\nS'join'\ntR0N.", "gets"),
	CASE("c__builtin__\ngetattr\n(c__builtin__\ngetattr\n(cm\nf\nS'__globals__'\ntRS'x'\ntR.",
		"through attributes"),
	/* What calls its arguments, and what only looks like it. */
	CASE("cfunctools\npartial\n(cos\nsystem\ntR(S'id'\ntR.", "runs programs"),
	CASE("c__builtin__\nmap\n(cos\nsystem\n(S'id'\nltR.", "with something that runs programs"),
	CASE("cfunctools\npartial\n(cm\nf\ntR(cos\nsystem\n(S'id'\nt(dNtb.", "with something that"),
	CASE("ccollections\ndefaultdict\n(cos\nsystem\ntR.", "with something that"),
	CASE("coperator\nmethodcaller\n(S'f'\ntR(cm\nC\ntR.", "reaches any attribute"),
	CASE("c__builtin__\ngetattr\n(c__builtin__\neval\nS'__call__'\ntR(S'1'\ntR.", "runs code"),
	CASE("c__builtin__\nmap\n(coperator\nattrgetter\n(S'f'\ntR(cm\nC\nttR.",
		"with something that reaches"),
	CASE("cfunctools\nreduce\n(c__builtin__\ngetattr\n(S'os'\nS'system'\ntctorch\nserialization\ntR.",
		"with something that reaches"),
	CASE("c__builtin__\ngetattr\n(c__builtin__\nmap\n(cos\nsystem\n(S'id'\nltRS'__next__'\ntR0N.",
		"with something that runs"),
	/* What is not the pickle's own. */
	CASE("csys\nmodules\nS'os'\nNs.", "changes sys.modules"),
	CASE("csys\npath\nS'/tmp'\na.", "changes sys.path: \"/tmp\""),
	CASE("cm\nC\n(N(S'f'\nNdtb.", "changes m.C"),
	CASE("cm\nC\n(t\x81(S'__setstate__'\ncos\nsystem\ndbS'id'\nb.", "__setstate__"),
	/* Broken off, but it has run. */
	CASE("cos\nsystem\n(S'id'\ntR", "os.system"),
	/* Control characters reach no terminal. */
	CASE("cos\nsystem\n(S'\\x1b[2J'\ntR.", "\\x1b[2J"),
	/* Ordinary. */
	CASE("c__builtin__\ngetattr\n(cproject\nColor\nS'RED'\ntR.", NULL),
	CASE("c__builtin__\ngetattr\n(csignal\nSignals\nS'SIGTERM'\ntR.", NULL),
	CASE("c__builtin__\ngetattr\n(cm\nC\nS'make'\ntR(I1\ntR.", NULL),
	CASE("cfunctools\npartial\n(cm\nf\ntR(cm\nf\n(I1\nt(dNtb.", NULL),
	CASE("coperator\nattrgetter\n(S'name'\ntR.", NULL),
	CASE("ccollections\ndefaultdict\n(c__builtin__\nlist\ntR.", NULL),
	CASE("ccollections\nOrderedDict\n)R.", NULL),
	CASE("cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(I0\ntS'b'\ntR.", NULL),
	CASE("cnumpy._core.multiarray\nscalar\n(cnumpy\ndtype\n(S'f4'\ntRS'abcd'\ntR.", NULL),
	CASE("ctorch._utils\n_rebuild_tensor_v2\n(N(t(tt0N.", NULL),
	CASE("ctorch._utils\n_rebuild_tensor_v2\n(NtR.", NULL),
	CASE("ctorch.storage\n_load_from_bytes\n(S''\ntR.", NULL),
	CASE("cpathlib\nPosixPath\n(S'/'\nS'a'\ntR.", NULL),
	CASE("clogging\ngetLogger\n(S'x'\ntR.", NULL),
	CASE("c_io\nBytesIO\n(t\x81.", NULL),
	CASE("ctransformers.training_args\nTrainingArguments\n(t\x81.", NULL),
	CASE("cdatetime\ndatetime\n(S'x'\ntR.", NULL),
	CASE("cos\nsystem\n.", NULL),
};
/* clang-format on */

static const struct finding none = {.message = "nothing found"};

static const struct finding *found(enum finding_code code)
{
	for (size_t i = 0; i < sink.list.count; i++)
		if (sink.list.items[i].code == code)
			return &sink.list.items[i];
	return &none;
}

START_TEST(dangerous_calls_are_told_from_ordinary_ones)
{
	const struct judged *c = &cases[_i];
	int status = decode_bytes(c->pickle, c->n);

	ck_assert_msg(status == RP_OK || p.truncated, "%s", error.text);
	pickle_judge(&p, "some/file", &sink);
	const struct finding *f = found(FINDING_I112);
	ck_assert_msg(sink.of_code[FINDING_I112] == (c->words != NULL), "%zu: %s",
		sink.of_code[FINDING_I112], f->message);
	if (!c->words)
		return;
	ck_assert_msg(strstr(f->message, c->words) != NULL, "%s", f->message);
	ck_assert_str_eq(f->place.file, "some/file");
	ck_assert_uint_ge(f->place.offset, BASE);
	ck_assert_uint_lt(f->place.offset, BASE + c->n);
}
END_TEST

START_TEST(unknown_classes_are_counted_in_one_finding)
{
	must_decode("(ca\nA\ncb\nB\ncc\nC\ncd\nD\nce\nE\ncf\nF\ncg\nG\nctorch\nfloat32\nt.");
	pickle_judge(&p, "f", &sink);
	ck_assert_uint_eq(sink.of_code[FINDING_I116], 1);
	const struct finding *f = found(FINDING_I116);
	ck_assert_msg(
		strstr(f->message, "a.A, b.B, c.C, d.D, e.E and 2 more") != NULL, "%s", f->message);
	ck_assert_int_eq(f->observed.count, 7);
}
END_TEST

/* A star elsewhere than at an end of a name would fit nothing, and nobody would notice. */
START_TEST(all_patterns_of_the_table_can_fit)
{
	static const struct {
		const char *module, *names;
	} rows[] = {
#define CLASS(rank, module, names, why) {module, names},
#include "container/pickle_classes.def"
#undef CLASS
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		char names[4096];
		ck_assert_uint_lt(strlen(rows[i].names), sizeof names);
		memcpy(names, rows[i].names, strlen(rows[i].names) + 1);
		for (char *rest, *name = strtok_r(names, "|", &rest); name;
			name = strtok_r(NULL, "|", &rest)) {
			size_t n = strlen(name), classes = strlen("[A-Z]*");
			if (n >= classes && strcmp(name + n - classes, "[A-Z]*") == 0)
				name[n - classes] = '\0';
			else if (name[n - 1] == '*')
				name[n - 1] = '\0';
			ck_assert_msg(strcspn(name + (*name == '*'), "*[") ==
					      strlen(name + (*name == '*')),
				"%s: %s", rows[i].module, name);
		}
	}
}
END_TEST

START_TEST(what_torch_saves_with_quantized_tensors_is_known)
{
	must_decode("(ctorch\nper_tensor_affine\nctorch\nper_channel_symmetric\n"
		    "ctorch\nper_channel_affine_float_qparams\n"
		    "ctorch.distributed.checkpoint.metadata\n_MEM_FORMAT_ENCODING\nt.");
	pickle_judge(&p, "f", &sink);
	ck_assert_uint_eq(sink.list.count, 0);
	must_decode("(ctorch.distributed.checkpoint.metadata\n_load\nt.");
	pickle_judge(&p, "f", &sink);
	ck_assert_uint_eq(sink.of_code[FINDING_I116], 1);
}
END_TEST

START_TEST(dangerous_functions_that_are_only_named_are_a_note)
{
	must_decode("(S'hook'\ncos\nsystem\nd.");
	pickle_judge(&p, "f", &sink);
	ck_assert_uint_eq(sink.of_code[FINDING_I112], 0);
	ck_assert_msg(strstr(found(FINDING_I116)->message, "os.system") != NULL, "%s",
		found(FINDING_I116)->message);
}
END_TEST

START_TEST(long_chains_of_attributes_are_not_followed_but_told)
{
	for (int i = 0; i < 12; i++)
		bytes_add(&file, "cbuiltins\ngetattr\n(", 19);
	bytes_add(&file, "cm\nC\n", 5);
	for (int i = 0; i < 12; i++)
		bytes_add(&file, "S'a'\ntR", 7);
	bytes_add(&file, "(S'id'\ntR.", 10);
	ck_assert_msg(decode_bytes(file.p, file.n) == RP_OK, "%s", error.text);
	pickle_judge(&p, "f", &sink);
	ck_assert_uint_ge(sink.of_code[FINDING_I112], 1);
}
END_TEST

START_TEST(ordinary_calls_of_carriers_are_not_kept)
{
	must_decode("ccollections\ndefaultdict\n(c__builtin__\nlist\ntR.");
	ck_assert_uint_eq(p.deeds.count, 0);
	must_decode("ccollections\ndefaultdict\n(cos\nsystem\ntR.");
	ck_assert_uint_eq(p.deeds.count, 1);
}
END_TEST

START_TEST(many_calls_are_judged_in_no_time)
{
	for (int i = 0; i < 200000; i++)
		bytes_add(&file, "cos\nsystem\n(tR0", 15);
	bytes_add(&file, "N.", 2);
	ck_assert_msg(decode_bytes(file.p, file.n) == RP_OK, "%s", error.text);
	pickle_judge(&p, "f", &sink);
	ck_assert_uint_ge(sink.of_code[FINDING_I112], 100);

	/* All are used by others, and those by none; looking for them one by one would take for
	 * ever. */
	file.n = 0;
	for (int i = 0; i < 200000; i++)
		bytes_add(&file, "cbuiltins\ngetattr\n(cos\nf\nS'a'\ntR", 32);
	for (int i = 0; i < 200000; i++)
		bytes_add(&file, ")R0", 3);
	bytes_add(&file, "N.", 2);
	ck_assert_msg(decode_bytes(file.p, file.n) == RP_OK, "%s", error.text);
	pickle_judge(&p, "f", &sink);
}
END_TEST

Suite *suite_pickle(void)
{
	Suite *s = suite_create("pickle");
	TCase *c = tcase_create("python");
	tcase_add_checked_fixture(c, setup, teardown);
	tcase_set_timeout(c, 120);
	tcase_add_loop_test(c, reads_the_numbers_that_python_wrote, 0, 6);
	tcase_add_loop_test(c, reads_the_texts_and_bytes_that_python_wrote, 0, 6);
	tcase_add_loop_test(c, reads_the_containers_that_python_wrote, 0, 6);
	tcase_add_loop_test(c, reads_the_objects_that_python_wrote, 0, 6);
	tcase_add_loop_test(c, every_truncation_fails_and_says_so, 0, 6);
	tcase_add_loop_test(c, survives_every_flipped_bit, 0, 6);
	tcase_add_loop_test(c, survives_every_memory_limit, 0, 6);
	suite_add_tcase(s, c);

	c = tcase_create("opcodes");
	tcase_add_checked_fixture(c, setup, teardown);
	tcase_add_test(c, protocol_0_numbers_are_read);
	tcase_add_test(c, integers_of_too_many_digits_are_refused_at_once);
	tcase_add_test(c, integers_with_idle_bytes_are_trimmed);
	tcase_add_test(c, quoted_strings_are_unescaped);
	tcase_add_test(c, unicode_lines_are_unescaped);
	tcase_add_test(c, text_that_is_not_utf_8_is_refused);
	tcase_add_test(c, the_stack_and_its_marks_are_kept);
	tcase_add_test(c, duplicate_keys_are_kept);
	tcase_add_test(c, the_memo_is_bounded);
	tcase_add_test(c, claimed_lengths_are_checked_before_use);
	tcase_add_test(c, unknown_opcodes_and_protocols_are_refused);
	tcase_add_test(c, the_number_of_values_is_limited);
	tcase_add_test(c, deep_nesting_needs_no_recursion);
	tcase_add_test(c, exponential_sharing_costs_nothing);
	tcase_add_test(c, one_state_built_on_another_is_bounded);
	tcase_add_test(c, calls_that_make_plain_data_are_what_they_make);
	tcase_add_test(c, what_cannot_be_called_is_refused);
	tcase_add_test(c, extensions_and_buffers_are_named);
	tcase_add_test(c, a_class_appears_once_however_often_it_is_named);
	tcase_add_test(c, the_lowest_protocol_that_has_all_opcodes_is_told);
	tcase_add_test(c, persistent_ids_go_to_the_caller);
	suite_add_tcase(s, c);

	c = tcase_create("judging");
	tcase_add_checked_fixture(c, setup, teardown);
	tcase_set_timeout(c, 60);
	tcase_add_loop_test(c, dangerous_calls_are_told_from_ordinary_ones, 0,
		(int)(sizeof cases / sizeof *cases));
	tcase_add_test(c, unknown_classes_are_counted_in_one_finding);
	tcase_add_test(c, all_patterns_of_the_table_can_fit);
	tcase_add_test(c, what_torch_saves_with_quantized_tensors_is_known);
	tcase_add_test(c, dangerous_functions_that_are_only_named_are_a_note);
	tcase_add_test(c, long_chains_of_attributes_are_not_followed_but_told);
	tcase_add_test(c, ordinary_calls_of_carriers_are_not_kept);
	tcase_add_test(c, many_calls_are_judged_in_no_time);
	suite_add_tcase(s, c);
	return s;
}
