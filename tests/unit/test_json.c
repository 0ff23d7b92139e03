/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "container/json.h"

#include <check.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/strbuf.h"
#include "base/text.h"
#include "container/document.h"

Suite *suite_json(void);

#define COUNT(array) (sizeof(array) / sizeof *(array))

static struct arena arena;
static struct limits limits;
static struct error error;
static struct val root;
static uint64_t duplicates;

static void setup(void)
{
	arena_init(&arena, (size_t)1 << 30);
	limits = limits_default();
	error = ERROR_INIT;
	root = (struct val){0};
}

static void teardown(void)
{
	arena_release(&arena);
}

static int decode(struct slice text)
{
	arena_release(&arena);
	error = ERROR_INIT;
	root = (struct val){0};
	return json_decode(text, &arena, &limits, &root, &duplicates, &error);
}

static int decode_text(const char *text)
{
	return decode(slice_of(text));
}

START_TEST(reads_every_kind_of_value)
{
	ck_assert_int_eq(
		decode_text(
			" {\"a\" : [1, -2.5e1 ,true,\tfalse,null, \"x\"],\r\n\"b\":{}, \"c\":[]} "),
		RP_OK);
	ck_assert_int_eq(root.kind, VAL_DICT);
	ck_assert_uint_eq(val_count(root), 3);
	struct val a = val_get(root, "a");
	ck_assert_int_eq(a.kind, VAL_LIST);
	ck_assert_uint_eq(val_count(a), 6);
	ck_assert(val_at(a, 0).kind == VAL_INT && val_at(a, 0).i == 1);
	ck_assert(val_at(a, 1).kind == VAL_FLOAT && val_at(a, 1).f == -25);
	ck_assert(val_at(a, 2).kind == VAL_BOOL && val_at(a, 2).i == 1);
	ck_assert(val_at(a, 3).kind == VAL_BOOL && val_at(a, 3).i == 0);
	ck_assert(val_at(a, 4).kind == VAL_NONE);
	ck_assert(val_is_text(val_at(a, 5), "x"));
	ck_assert(val_get(root, "b").kind == VAL_DICT);
	ck_assert(val_get(root, "c").kind == VAL_LIST);
	ck_assert_uint_eq(duplicates, 0);
}
END_TEST

START_TEST(text_without_escapes_is_not_copied)
{
	static const char text[] = "[\"plain\", \"esc\\n\"]";

	ck_assert_int_eq(decode_text(text), RP_OK);
	ck_assert_ptr_eq(val_at(root, 0).s, text + 2);
	ck_assert(val_is_text(val_at(root, 1), "esc\n"));
}
END_TEST

START_TEST(strings_are_unescaped)
{
	static const struct {
		const char *json;
		struct slice text;
	} cases[] = {
		{"\"\"", {"", 0}},
		{"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", {"\"\\/\b\f\n\r\t", 8}},
		{"\"\\u0041\\u00e9\\u20AC\\u0000!\"", {"A\xc3\xa9\xe2\x82\xac\0!", 8}},
		{"\"\\ud83d\\ude00\"", {"\xf0\x9f\x98\x80", 4}},
		{"\"\\uDBFF\\uDFFF\"", {"\xf4\x8f\xbf\xbf", 4}},
		{"\"\\ud800\"", {"\xed\xa0\x80", 3}},
		{"\"\\udc00x\"", {"\xed\xb0\x80x", 4}},
		{"\"\\ud800\\ud800\\udc00\"", {"\xed\xa0\x80\xf0\x90\x80\x80", 7}},
		{"\"\\ud800\\u0041\"", {"\xed\xa0\x80"
					"A",
					       4}},
		{"\"\\ud800\\n\"", {"\xed\xa0\x80\n", 4}},
		{"\"\xc3\xa9 \xf0\x9f\x98\x80\"", {"\xc3\xa9 \xf0\x9f\x98\x80", 7}},
		{"\"12345678\xc3\xa9\x7f\"", {"12345678\xc3\xa9\x7f", 11}},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		ck_assert_msg(
			decode_text(cases[i].json) == RP_OK, "%s: %s", cases[i].json, error.text);
		ck_assert_int_eq(root.kind, VAL_TEXT);
		ck_assert_msg(slice_eq(val_slice(root), cases[i].text), "%s", cases[i].json);
	}
}
END_TEST

START_TEST(numbers_keep_their_type)
{
	static const struct {
		const char *json;
		enum val_kind kind;
		int64_t i;
		double f;
	} cases[] = {
		{"0", VAL_INT, 0, 0},
		{"-0", VAL_INT, 0, 0},
		{"-7", VAL_INT, -7, 0},
		{"999999999999999999", VAL_INT, 999999999999999999, 0},
		{"9223372036854775807", VAL_INT, INT64_MAX, 0},
		{"-9223372036854775808", VAL_INT, INT64_MIN, 0},
		{"9223372036854775808", VAL_BIGINT, 0, 0},
		{"-9223372036854775809", VAL_BIGINT, 0, 0},
		{"0.0", VAL_FLOAT, 0, 0},
		{"1e0", VAL_FLOAT, 0, 1},
		{"1E+2", VAL_FLOAT, 0, 100},
		{"-1.5e-3", VAL_FLOAT, 0, -0.0015},
		{"1e999", VAL_FLOAT, 0, (double)INFINITY},
		{"0.1", VAL_FLOAT, 0, 0.1},
		{"2.2250738585072011e-308", VAL_FLOAT, 0, 2.2250738585072011e-308},
		{"Infinity", VAL_FLOAT, 0, (double)INFINITY},
		{"-Infinity", VAL_FLOAT, 0, -(double)INFINITY},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		ck_assert_msg(
			decode_text(cases[i].json) == RP_OK, "%s: %s", cases[i].json, error.text);
		ck_assert_msg(root.kind == cases[i].kind, "%s", cases[i].json);
		if (root.kind == VAL_INT)
			ck_assert(root.i == cases[i].i);
		if (root.kind == VAL_FLOAT)
			ck_assert_msg(root.f == cases[i].f, "%s: %a", cases[i].json, root.f);
	}
	ck_assert_int_eq(decode_text("NaN"), RP_OK);
	ck_assert(root.kind == VAL_FLOAT && isnan(root.f));
	ck_assert_int_eq(decode_text("-0.0"), RP_OK);
	ck_assert(root.kind == VAL_FLOAT && root.f == 0 && signbit(root.f));
}
END_TEST

START_TEST(large_integers_are_twos_complement)
{
	static const struct {
		const char *json;
		struct slice bytes;
	} cases[] = {
		{"9223372036854775808", {"\0\0\0\0\0\0\0\x80\0", 9}},
		{"-9223372036854775809", {"\xff\xff\xff\xff\xff\xff\xff\x7f\xff", 9}},
		{"18446744073709551615", {"\xff\xff\xff\xff\xff\xff\xff\xff\0", 9}},
		{"18446744073709551616", {"\0\0\0\0\0\0\0\0\1", 9}},
		{"-18446744073709551616", {"\0\0\0\0\0\0\0\0\xff", 9}},
		{"-170141183460469231731687303715884105728",
			{"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x80", 16}},
		{"170141183460469231731687303715884105728",
			{"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x80\0", 17}},
		{"340282366920938463463374607431768211455",
			{"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\0", 17}},
	};
	uint64_t u = 0;

	for (size_t i = 0; i < COUNT(cases); i++) {
		ck_assert_int_eq(decode_text(cases[i].json), RP_OK);
		ck_assert_int_eq(root.kind, VAL_BIGINT);
		ck_assert_msg(slice_eq(val_slice(root), cases[i].bytes), "%s", cases[i].json);
	}
	ck_assert_int_eq(decode_text("18446744073709551615"), RP_OK);
	ck_assert(val_to_u64(root, &u) && u == UINT64_MAX);
	ck_assert_int_eq(decode_text("18446744073709551616"), RP_OK);
	ck_assert(!val_to_u64(root, &u));

	/* 10^4299 is the largest power of ten that Python reads: 14 281 bits, 1786 bytes. */
	static char digits[JSON_INT_DIGITS_MAX + 2];
	digits[0] = '1';
	memset(digits + 1, '0', JSON_INT_DIGITS_MAX);
	ck_assert_int_eq(decode((struct slice){digits, JSON_INT_DIGITS_MAX}), RP_OK);
	ck_assert_uint_eq(root.n, 1786);
	ck_assert_int_eq(decode((struct slice){digits, JSON_INT_DIGITS_MAX + 1}), RP_E_LIMIT);
	memset(digits, '9', JSON_INT_DIGITS_MAX);
	ck_assert_int_eq(decode((struct slice){digits, JSON_INT_DIGITS_MAX}), RP_OK);
	ck_assert_uint_eq(root.n, 1786);
}
END_TEST

START_TEST(errors_say_where)
{
	static const struct {
		const char *json;
		size_t offset;
		const char *text;
	} cases[] = {
		{"", 0, "the text ends where a value is expected at byte 0 (line 1, column 1)"},
		{"  \n ", 4,
			"the text ends where a value is expected at byte 4 (line 2, column 2)"},
		{"{\"a\": 1,\n \"\xc3\xb6\" 2}", 15, "':' expected at byte 15 (line 2, column 6)"},
		{"[1 2]", 3, "',' or ']' expected"},
		{"{\"a\":1 2}", 7, "',' or '}' expected"},
		{"[1}", 2, "',' or ']' expected"},
		{"{\"a\":1]", 6, "',' or '}' expected"},
		{"[1,]", 3, "a value expected"},
		{"[,1]", 1, "a value expected"},
		{"{,}", 1, "a key expected"},
		{"{\"a\":1,}", 7, "a key expected"},
		{"{a:1}", 1, "a key expected"},
		{"{1:1}", 1, "a key expected"},
		{"{\"a\"}", 4, "':' expected"},
		{"{\"a\":}", 5, "a value expected"},
		{"1 2", 2, "more text after the value"},
		{"{}{}", 2, "more text after the value"},
		{"[]]", 2, "more text after the value"},
		{"]", 0, "a value expected"},
		{"[", 1, "the text ends where a value is expected"},
		{"[1", 2, "the text ends inside an array"},
		{"[1,", 3, "the text ends where a value is expected"},
		{"{", 1, "the text ends inside an object"},
		{"{\"a\"", 4, "the text ends inside an object"},
		{"{\"a\":", 5, "the text ends where a value is expected"},
		{"{\"a\":1", 6, "the text ends inside an object"},
		{"{\"a\":1,", 7, "the text ends inside an object"},
		{"\"abc", 4, "the text ends inside a string"},
		{"\"abc\\", 5, "the text ends inside a string"},
		{"\"\\u12", 5, "the text ends inside a string"},
		{"\"\\u", 3, "the text ends inside a string"},
		{"\"\\u123g\"", 1, "a \\u escape without"},
		{"\"\\u 123\"", 1, "a \\u escape without"},
		{"\"\\u-123\"", 1, "a \\u escape without"},
		{"\"\\x\"", 1, "an escape that JSON does not have"},
		{"\"\\'\"", 1, "an escape that JSON does not have"},
		{"\"a\nb\"", 2, "a control character"},
		{"\"\t\"", 1, "a control character"},
		{"\"1234567\x1f\"", 8, "a control character"},
		{"\"\xff\"", 1, "not UTF-8"},
		{"\"ab\xc3\"", 3, "not UTF-8"},
		{"\"\xed\xa0\x80\"", 1, "not UTF-8"},
		{"\"\xc0\x80\"", 1, "not UTF-8"},
		{"'a'", 0, "a value expected"},
		{"01", 1, "starts with 0"},
		{"-01", 2, "starts with 0"},
		{"00", 1, "starts with 0"},
		{"+1", 0, "a value expected"},
		{".5", 0, "a value expected"},
		{"1.", 2, "ends inside a number"},
		{"1.e5", 2, "a digit expected"},
		{"1e", 2, "ends inside a number"},
		{"1e+", 3, "ends inside a number"},
		{"1ex", 2, "a digit expected"},
		{"-", 1, "ends inside a number"},
		{"-x", 1, "a digit expected"},
		{"-Infinit", 8, "ends inside a number"},
		{"-Inferno", 1, "a digit expected"},
		{"0x10", 1, "more text"},
		{"tru", 3, "ends where a value"},
		{"trua", 0, "a value expected"},
		{"True", 0, "a value expected"},
		{"nul]", 0, "a value expected"},
		{"nan", 0, "a value expected"},
		{"Infinityx", 8, "more text"},
		{"// c\n1", 0, "a value expected"},
		{"\v1", 0, "a value expected"},
		{"\xef\xbb\xbf\xef\xbb\xbf"
		 "1",
			3, "a value expected"},
		{"\xff\xfe[", 0, "UTF-16"},
		{"\xfe\xff", 0, "UTF-16"},
		{"\xc2\xa0"
		 "1",
			0, "a value expected"},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		ck_assert_msg(decode_text(cases[i].json) == RP_E_FORMAT, "%s", cases[i].json);
		ck_assert_msg(strstr(error.text, cases[i].text) != NULL, "%s: %s", cases[i].json,
			error.text);
		ck_assert_msg(error.offset == cases[i].offset, "%s: %s", cases[i].json, error.text);
	}
	/* A NUL is no end. */
	ck_assert_int_eq(decode((struct slice){"1\0", 2}), RP_E_FORMAT);
	ck_assert_int_eq(decode((struct slice){"[\0]", 3}), RP_E_FORMAT);
	ck_assert_int_eq(decode((struct slice){NULL, 0}), RP_E_FORMAT);
}
END_TEST

START_TEST(a_byte_order_mark_is_skipped)
{
	ck_assert_int_eq(decode_text("\xef\xbb\xbf{\"a\":1}"), RP_OK);
	ck_assert_uint_eq(val_count(root), 1);
}
END_TEST

START_TEST(duplicate_keys_are_kept_and_counted)
{
	struct strbuf b;

	ck_assert_int_eq(
		decode_text(
			"{\"a\":1,\"b\":{\"c\":1,\"c\":2,\"c\":3},\"\\u0061\":4,\"\":0,\"\":0}"),
		RP_OK);
	ck_assert_uint_eq(duplicates, 4);
	ck_assert_uint_eq(val_count(root), 5);
	ck_assert(val_get(root, "a").i == 4);
	ck_assert(val_dig(root, "b", "c", NULL).i == 3);

	/* The same with so many keys that they are hashed. */
	for (int count = 1; count < 3000; count = count * 3 / 2 + 1) {
		strbuf_init(&b, 1 << 20);
		strbuf_add_char(&b, '{');
		for (int i = 0; i < 2 * count; i++)
			strbuf_printf(&b, "%s\"k%d\":%d", i ? "," : "", i % count, i);
		strbuf_add_char(&b, '}');
		ck_assert_int_eq(decode(strbuf_slice(&b)), RP_OK);
		ck_assert_uint_eq(duplicates, (uint64_t)count);
		ck_assert_uint_eq(val_count(root), 2 * (uint64_t)count);
		ck_assert(val_get(root, "k0").i == count);
		strbuf_release(&b);
	}
}
END_TEST

START_TEST(limits_hold)
{
	struct strbuf b;

	limits.depth = 3;
	ck_assert_int_eq(decode_text("[[{}]]"), RP_OK);
	ck_assert_int_eq(decode_text("[[[[]]]]"), RP_E_LIMIT);
	ck_assert_uint_eq(error.offset, 3);
	limits = limits_default();
	limits.nodes = 4;
	ck_assert_int_eq(decode_text("[1,2,3]"), RP_OK);
	ck_assert_int_eq(decode_text("{\"a\":1,\"b\":2}"), RP_E_LIMIT);

	/* However deep: depth costs no stack. */
	limits = limits_default();
	limits.depth = UINT64_MAX;
	strbuf_init(&b, 1 << 24);
	strbuf_pad(&b, '[', 1000000);
	strbuf_pad(&b, ']', 1000000);
	ck_assert_int_eq(decode(strbuf_slice(&b)), RP_OK);
	strbuf_release(&b);

	limits = limits_default();
	limits.memory = 100;
	ck_assert_int_eq(decode_text("[1,2,3,4,5,6,7,8,9]"), RP_E_MEMORY);
	arena_release(&arena);
	arena_init(&arena, 100);
	limits = limits_default();
	ck_assert_int_eq(decode_text("[1,2,3,4,5,6,7,8,9]"), RP_E_MEMORY);
	ck_assert_int_eq(
		decode_text("\"\\n                                                                "
			    "                                                  \""),
		RP_E_MEMORY);
}
END_TEST

/* Against jansson. */

static void random_string(struct strbuf *b)
{
	static const char *const parts[] = {"a", "B7", "\\n", "\\\"", "\\\\", "\\/", "\\u00e9",
		"\\ud83d\\ude00", "\xc3\xb6", "\xf0\x9f\x98\x80", "\xe2\x82\xac", " ", "12345678",
		"weight", "\\b\\f\\r\\t", "\\u0001"};
	long count = lrand48() % 6;

	strbuf_add_char(b, '"');
	while (count-- > 0)
		strbuf_add_text(b, parts[(size_t)lrand48() % COUNT(parts)]);
	strbuf_add_char(b, '"');
}

static void random_space(struct strbuf *b)
{
	static const char *const spaces[] = {" ", "\n", "\t", "\r", "  "};

	if (lrand48() % 8 == 0)
		strbuf_add_text(b, spaces[(size_t)lrand48() % COUNT(spaces)]);
}

static void random_value(struct strbuf *b, int depth)
{
	long count = lrand48() % 6;

	random_space(b);
	switch (lrand48() % (depth > 0 ? 10 : 7)) {
	case 0:
		random_string(b);
		break;
	case 1:
		strbuf_printf(b, "%lld", (long long)mrand48() * (long long)mrand48());
		break;
	case 2:
		strbuf_printf(b, "%.*g", (int)(lrand48() % 19),
			ldexp((double)mrand48(), (int)(lrand48() % 100) - 80));
		break;
	case 3:
		strbuf_printf(b, "%ld.%lde%ld", mrand48() % 10, lrand48(), mrand48() % 300);
		break;
	case 4:
		strbuf_add_text(b, lrand48() % 2 ? "true" : "false");
		break;
	case 5:
		strbuf_add_text(b, "null");
		break;
	case 6:
		strbuf_printf(b, "%ld", mrand48() % 1000);
		break;
	case 7:
		strbuf_add_char(b, '[');
		while (count-- > 0) {
			random_value(b, depth - 1);
			if (count > 0)
				strbuf_add_char(b, ',');
		}
		random_space(b);
		strbuf_add_char(b, ']');
		break;
	default:
		strbuf_add_char(b, '{');
		while (count-- > 0) {
			random_space(b);
			random_string(b);
			random_space(b);
			strbuf_add_char(b, ':');
			random_value(b, depth - 1);
			if (count > 0)
				strbuf_add_char(b, ',');
		}
		random_space(b);
		strbuf_add_char(b, '}');
	}
	random_space(b);
}

static bool same(struct val v, json_t *j)
{
	switch (json_typeof(j)) {
	case JSON_NULL:
		return v.kind == VAL_NONE;
	case JSON_TRUE:
		return v.kind == VAL_BOOL && v.i == 1;
	case JSON_FALSE:
		return v.kind == VAL_BOOL && v.i == 0;
	case JSON_INTEGER:
		return v.kind == VAL_INT && v.i == json_integer_value(j);
	case JSON_REAL:
		return v.kind == VAL_FLOAT && v.f == json_real_value(j);
	case JSON_STRING:
		return v.kind == VAL_TEXT &&
		       slice_eq(val_slice(v),
			       (struct slice){json_string_value(j), json_string_length(j)});
	case JSON_ARRAY:
		if (v.kind != VAL_LIST || val_count(v) != json_array_size(j))
			return false;
		for (uint64_t i = 0; i < val_count(v); i++)
			if (!same(val_at(v, i), json_array_get(j, i)))
				return false;
		return true;
	case JSON_OBJECT:
		if (v.kind != VAL_DICT)
			return false;
		/* jansson keeps the last of equal keys, as val_get_slice() finds it. */
		uint64_t distinct = 0;
		for (uint64_t i = 0; i < val_count(v); i++) {
			struct val key, part = val_part(v, i, &key);
			struct val last = val_get_slice(v, val_slice(key));
			json_t *other = json_object_getn(j, key.s, key.n);
			if (!other || !same(last, other))
				return false;
			distinct += memcmp(&part, &last, sizeof part) == 0;
		}
		return distinct >= json_object_size(j) && val_count(v) >= json_object_size(j);
	}
	return false;
}

static const size_t jansson_flags = JSON_DECODE_ANY | JSON_ALLOW_NUL;

START_TEST(random_documents_are_what_jansson_reads)
{
	struct strbuf b;
	json_error_t why;

	srand48(17);
	strbuf_init(&b, 1 << 20);
	for (int i = 0; i < 4000; i++) {
		strbuf_clear(&b);
		random_value(&b, 5);
		json_t *j = json_loadb(strbuf_text(&b), b.n, jansson_flags, &why);
		int status = decode(strbuf_slice(&b));
		/* jansson refuses reals and integers that do not fit. */
		if (!j && (strstr(why.text, "too big") || strstr(why.text, "overflow")))
			continue;
		ck_assert_msg(j && status == RP_OK, "%s\n%s\n%s", b.p, why.text, error.text);
		ck_assert_msg(same(root, j), "%s", b.p);
		json_decref(j);
	}
	strbuf_release(&b);
}
END_TEST

/* Where we are laxer than jansson by intention, its complaint has one of these words. */
static bool known_difference(const char *why, struct slice text)
{
	return strstr(why, "too big") || strstr(why, "overflow") ||
	       strstr(why, "invalid Unicode") || strstr(why, "invalid token") ||
	       slice_find(text, SLICE("N")) != SIZE_MAX || slice_find(text, SLICE("I")) != SIZE_MAX;
}

START_TEST(damaged_documents_are_refused_where_jansson_does)
{
	static const char bytes[] = "{}[]\",:\\0123456789.eE+-tfnu \n\x01\x80\xc3\xed\xff/";
	struct strbuf b;
	json_error_t why;
	size_t refused = 0, accepted = 0;

	srand48(19);
	strbuf_init(&b, 1 << 20);
	for (int i = 0; i < 30000; i++) {
		strbuf_clear(&b);
		random_value(&b, 4);
		for (long n = lrand48() % 3 + 1; n > 0 && b.n > 0; n--) {
			size_t at = (size_t)lrand48() % b.n;
			if (lrand48() % 4 == 0)
				strbuf_truncate(&b, at);
			else
				b.p[at] = bytes[(size_t)lrand48() % (sizeof bytes - 1)];
		}
		json_t *j = json_loadb(strbuf_text(&b), b.n, jansson_flags, &why);
		int status = decode(strbuf_slice(&b));
		if (j) {
			ck_assert_msg(status == RP_OK, "%s\n%s", b.p, error.text);
			ck_assert_msg(same(root, j), "%s", b.p);
			accepted++;
		} else if (status == RP_OK) {
			ck_assert_msg(known_difference(why.text, strbuf_slice(&b)), "%s\n%s", b.p,
				why.text);
		} else {
			ck_assert_int_eq(status, RP_E_FORMAT);
			ck_assert_uint_le(error.offset, b.n);
			refused++;
		}
		json_decref(j);
	}
	ck_assert_uint_gt(refused, 5000);
	ck_assert_uint_gt(accepted, 1000);
	strbuf_release(&b);
}
END_TEST

/* What json.loads() of Python 3.11 takes and jansson does not, and the other way round. */
START_TEST(known_differences_from_jansson)
{
	static const struct {
		const char *json;
		bool ours, janssons;
	} cases[] = {
		{"NaN", true, false},
		{"Infinity", true, false},
		{"-Infinity", true, false},
		{"18446744073709551616", true, false},
		{"1e999", true, false},
		{"\"\\ud800\"", true, false},
		{"\"\\udc00\"", true, false},
		{"\"\\ud800\\u0041\"", true, false},
		{"\xef\xbb\xbf"
		 "1",
			true, false},
		{"[1]x", false, false},
		{"-0", true, true},
		{"-0.0", true, true},
		{"1e-999", true, true},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		json_error_t why;
		json_t *j = json_loads(cases[i].json, jansson_flags, &why);
		ck_assert_msg((j != NULL) == cases[i].janssons, "%s: %s", cases[i].json, why.text);
		ck_assert_msg((decode_text(cases[i].json) == RP_OK) == cases[i].ours, "%s",
			cases[i].json);
		json_decref(j);
	}
}
END_TEST

/* The container. */

static struct findings sink;
static struct document document;

static int open_text(const char *text)
{
	findings_release(&sink);
	findings_init(&sink);
	error = ERROR_INIT;
	return document_open_bytes(&document, slice_of(text), "state.json", &limits, &sink, &error);
}

START_TEST(a_json_file_is_a_document)
{
	ck_assert_int_eq(open_text(" \n{\"global_step\": 500}"), RP_OK);
	ck_assert_str_eq(document.container->name, "json");
	ck_assert(val_get(document.root, "global_step").i == 500);
	ck_assert_uint_eq(sink.list.count, 0);
	document_close(&document);
	ck_assert_int_eq(open_text("[]"), RP_OK);
	document_close(&document);
	ck_assert_int_eq(open_text("17"), RP_E_UNSUPPORTED);
	findings_release(&sink);
}
END_TEST

START_TEST(a_json_file_cut_off_is_truncated)
{
	static const char text[] =
		"{\"log\": [1, 2.5, {\"a\": \"b\\u00e9\", \"c\": null}], \"d\": true}";
	char part[sizeof text];

	for (size_t n = 1; n + 1 < sizeof text; n++) {
		memcpy(part, text, n);
		part[n] = '\0';
		ck_assert_msg(open_text(part) == RP_E_FORMAT, "%s", part);
		ck_assert_uint_eq(sink.list.count, 1);
		ck_assert_int_eq(sink.list.items[0].code, FINDING_I102);
		ck_assert_str_eq(sink.list.items[0].place.file, "state.json");
		ck_assert_uint_eq(sink.list.items[0].place.offset, n);
		ck_assert_uint_eq(error.offset, n);
	}
	findings_release(&sink);
}
END_TEST

START_TEST(a_json_file_with_rubbish_is_malformed)
{
	ck_assert_int_eq(open_text("{\"a\": 1,}"), RP_E_FORMAT);
	ck_assert_uint_eq(sink.list.count, 1);
	ck_assert_int_eq(sink.list.items[0].code, FINDING_I104);
	ck_assert_uint_eq(sink.list.items[0].place.offset, 8);
	ck_assert_str_eq(sink.list.items[0].message, "a key expected at byte 8 (line 1, column 9)");
	ck_assert_int_eq(open_text("{\"a\": 1, \"a\": 2}"), RP_OK);
	ck_assert_uint_eq(sink.list.count, 1);
	ck_assert_int_eq(sink.list.items[0].code, FINDING_I104);
	ck_assert_int_eq(sink.list.items[0].severity, SEVERITY_WARNING);
	document_close(&document);
	limits.header_bytes = 5;
	ck_assert_int_eq(open_text("{\"a\": 1}"), RP_E_LIMIT);
	ck_assert_uint_eq(sink.list.count, 0);
	findings_release(&sink);
}
END_TEST

Suite *suite_json(void)
{
	Suite *s = suite_create("json");
	TCase *t = tcase_create("reader");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, reads_every_kind_of_value);
	tcase_add_test(t, text_without_escapes_is_not_copied);
	tcase_add_test(t, strings_are_unescaped);
	tcase_add_test(t, numbers_keep_their_type);
	tcase_add_test(t, large_integers_are_twos_complement);
	tcase_add_test(t, errors_say_where);
	tcase_add_test(t, a_byte_order_mark_is_skipped);
	tcase_add_test(t, duplicate_keys_are_kept_and_counted);
	tcase_add_test(t, limits_hold);
	suite_add_tcase(s, t);

	t = tcase_create("jansson");
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, random_documents_are_what_jansson_reads);
	tcase_add_test(t, damaged_documents_are_refused_where_jansson_does);
	tcase_add_test(t, known_differences_from_jansson);
	suite_add_tcase(s, t);

	t = tcase_create("container");
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, a_json_file_is_a_document);
	tcase_add_test(t, a_json_file_cut_off_is_truncated);
	tcase_add_test(t, a_json_file_with_rubbish_is_malformed);
	suite_add_tcase(s, t);
	return s;
}
