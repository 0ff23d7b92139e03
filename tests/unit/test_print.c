/* SPDX-License-Identifier: MIT */
#include "value/print.h"

#include "container/json.h"

#include <check.h>
#include <math.h>

Suite *suite_print(void);

static struct arena arena;
static struct limits limits;
static struct strbuf out;

static void setup(void)
{
	arena_init(&arena, SIZE_MAX);
	limits = limits_default();
	strbuf_init(&out, 1 << 24);
}

static void teardown(void)
{
	strbuf_release(&out);
	arena_release(&arena);
}

static struct val json(const char *text)
{
	struct val v;
	uint64_t duplicates;
	struct error error = ERROR_INIT;

	ck_assert_int_eq(
		json_decode(slice_of(text), &arena, &limits, &v, &duplicates, &error), RP_OK);
	return v;
}

static struct val text(const char *s)
{
	return val_text(slice_of(s));
}

static struct val sequence(enum val_kind kind, size_t count, const struct val *kids)
{
	struct val v = val_new(&arena, kind);

	for (size_t i = 0; i < count; i++)
		ck_assert(node_push(&arena, v.node, kids[i]));
	return v;
}

static struct val object(const char *module, const char *name)
{
	struct val v = val_new(&arena, VAL_OBJECT);

	v.object->callable = val_new(&arena, VAL_CLASS);
	v.object->callable.klass->module = slice_of(module);
	v.object->callable.klass->name = slice_of(name);
	return v;
}

static const char *line(struct val v)
{
	strbuf_clear(&out);
	ck_assert(print_line(&out, v, &print_style_short));
	return strbuf_text(&out);
}

/* The same where not all of it fits. */
static const char *cut_line(struct val v, const struct print_style *style)
{
	strbuf_clear(&out);
	ck_assert(!print_line(&out, v, style));
	return strbuf_text(&out);
}

START_TEST(scalars_look_as_in_python)
{
	ck_assert_str_eq(line(val_none()), "None");
	ck_assert_str_eq(line(val_bool(true)), "True");
	ck_assert_str_eq(line(val_bool(false)), "False");
	ck_assert_str_eq(line(val_int(INT64_MIN)), "-9223372036854775808");
	ck_assert_str_eq(line(val_float(1)), "1.0");
	ck_assert_str_eq(line(val_float(-0.0)), "-0.0");
	ck_assert_str_eq(line(val_float(0.1)), "0.1");
	ck_assert_str_eq(line(val_float(1e300)), "1e300");
	ck_assert_str_eq(line(val_float(NAN)), "NaN");
	ck_assert_str_eq(line(val_float(-INFINITY)), "-Infinity");
	ck_assert_str_eq(line(text("")), "\"\"");
	ck_assert_str_eq(line(text("adamw")), "\"adamw\"");
	ck_assert_str_eq(line(val_bytes((struct slice){"a\0\"\xff", 4})), "b\"a\\x00\\x22\\xff\"");
	ck_assert_str_eq(line((struct val){0}), "nothing");
}
END_TEST

static struct val bigint(const char *bytes, size_t n)
{
	return (struct val){.kind = VAL_BIGINT, .n = (uint32_t)n, .s = bytes};
}

START_TEST(big_integers_are_decimal)
{
	char bytes[600] = {0};

	ck_assert_str_eq(line(bigint("\0\0\0\0\0\0\0\0\1", 9)), "18446744073709551616");
	ck_assert_str_eq(
		line(bigint("\xff\xff\xff\xff\xff\xff\xff\xff\0", 9)), "18446744073709551615");
	ck_assert_str_eq(line(bigint("\0\0\0\0\0\0\0\x80\xff", 9)), "-9223372036854775808");
	ck_assert_str_eq(
		line(bigint("\xff\xff\xff\xff\xff\xff\xff\x7f\xff", 9)), "-9223372036854775809");
	ck_assert_str_eq(line(bigint("\0\0\0\0\0\0\0\0\x80", 9)), "-2361183241434822606848");
	ck_assert_str_eq(line(bigint("\xff", 1)), "-1");
	ck_assert_str_eq(line(bigint("", 0)), "0");
	/* 10^18, whose last nine digits are zeros in the middle of nothing. */
	ck_assert_str_eq(line(bigint("\0\0\x64\xa7\xb3\xb6\xe0\x0d", 8)), "1000000000000000000");
	ck_assert_str_eq(line(bigint(bytes, 600)), "<an integer of 600 bytes>");
	/* The longest that is written out: 2^4088. */
	bytes[511] = 1;
	const char *digits = line(bigint(bytes, 512));
	ck_assert_uint_eq(strlen(digits), 1231);
	ck_assert_int_eq(strncmp(digits, "407964406802", 12), 0);
	ck_assert_str_eq(digits + 1231 - 12, "954699821056");
}
END_TEST

START_TEST(text_cannot_disturb_a_terminal)
{
	ck_assert_str_eq(line(text("a\"b\\c\nd\te")), "\"a\\\"b\\\\c\\nd\\te\"");
	ck_assert_str_eq(line(text("\x1b[31m")), "\"\\x1b[31m\"");
	ck_assert_str_eq(line(text("\xe2\x80\xae")), "\"\\u{202e}\"");
	ck_assert_str_eq(line(text("\xff\xed\xa0\x80")), "\"\\xff\\xed\\xa0\\x80\"");
	ck_assert_str_eq(line(text("größe")), "\"größe\"");
	struct val dict = sequence(VAL_DICT, 2, (struct val[]){text("\r"), text("\x07")});
	ck_assert_str_eq(line(dict), "{\"\\x0d\": \"\\x07\"}");
	struct val o = object("\x1b", "\x9b");
	ck_assert_str_eq(line(o), "\\x1b.\\x9b()");
	ck_assert_str_eq(line(o.object->callable), "\\x1b.\\x9b");
}
END_TEST

START_TEST(containers_look_as_in_python)
{
	struct val one = val_int(1), three[] = {val_int(1), val_none(), text("x")};

	ck_assert_str_eq(line(json("{\"a\": 1, \"b\": [1, 2.5, null], \"c\": {}}")),
		"{\"a\": 1, \"b\": [1, 2.5, None], \"c\": {}}");
	ck_assert_str_eq(line(sequence(VAL_TUPLE, 1, &one)), "(1,)");
	ck_assert_str_eq(line(sequence(VAL_TUPLE, 0, NULL)), "()");
	ck_assert_str_eq(line(sequence(VAL_TUPLE, 3, three)), "(1, None, \"x\")");
	ck_assert_str_eq(line(sequence(VAL_SET, 1, &one)), "{1}");
	ck_assert_str_eq(line(sequence(VAL_FROZENSET, 1, &one)), "frozenset({1})");
	ck_assert_str_eq(line(sequence(VAL_PERSISTENT, 1, &three[2])), "persistent id (\"x\")");
	struct val odd = sequence(
		VAL_DICT, 4, (struct val[]){val_int(0), one, sequence(VAL_TUPLE, 1, &one), one});
	ck_assert_str_eq(line(odd), "{0: 1, (1,): 1}");
}
END_TEST

START_TEST(objects_are_told_by_their_class)
{
	struct val ordered = object("collections", "OrderedDict"),
		   space = object("argparse", "Namespace");
	struct val call = object("functools", "partial"), thing = val_int(3);

	node_push(&arena, &ordered.object->dict, text("w"));
	node_push(&arena, &ordered.object->dict, val_int(1));
	ck_assert_str_eq(line(ordered), "{\"w\": 1}");
	space.object->state = json("{\"lr\": 0.1, \"steps\": 3}");
	ck_assert_str_eq(line(space), "argparse.Namespace(lr=0.1, steps=3)");
	call.object->args = sequence(VAL_TUPLE, 1, &thing);
	ck_assert_str_eq(line(call), "functools.partial(3)");
	call.object->state = json("{\"x\": 1}");
	ck_assert_str_eq(line(call), "functools.partial(3, x=1)");
	/* A state that is no dict. */
	call.object->args = (struct val){0};
	call.object->state = val_int(9);
	ck_assert_str_eq(line(call), "functools.partial(9)");
	ck_assert_str_eq(line(call.object->callable), "functools.partial");
}
END_TEST

static bool show_numbers(void *context, const struct tensor *t, struct strbuf *b)
{
	if (t->numel > *(const uint64_t *)context)
		return false;
	strbuf_printf(b, "<%llu>", (unsigned long long)t->numel);
	return true;
}

START_TEST(tensors_are_told_by_dtype_and_shape)
{
	int64_t shape[] = {768, 3072};
	struct tensor t = {.shape = shape, .ndim = 2, .numel = 768 * 3072, .dtype = DTYPE_F32};
	struct tensor scalar = {.numel = 1, .dtype = DTYPE_BF16};
	struct tensor own = {
		.numel = 1, .ndim = 1, .shape = (int64_t[]){1}, .type = slice_of("DTensor\n")};

	ck_assert_str_eq(line(val_tensor(&t)), "float32[768, 3072]");
	ck_assert_str_eq(line(val_tensor(&scalar)), "bfloat16[]");
	ck_assert_str_eq(line(val_tensor(&own)), "DTensor\\x0a unknown[1]");
	/* Whoever can read the file shows the elements of small ones. */
	struct print_style style = print_style_short;
	uint64_t most = 16;
	style.tensor = show_numbers;
	style.context = &most;
	struct val both =
		sequence(VAL_LIST, 2, (struct val[]){val_tensor(&t), val_tensor(&scalar)});
	strbuf_clear(&out);
	ck_assert(print_line(&out, both, &style));
	ck_assert_str_eq(strbuf_text(&out), "[float32[768, 3072], <1>]");
}
END_TEST

START_TEST(kinds_are_told_with_their_size)
{
	struct val values[] = {val_none(), val_int(1), val_float(1), text("x"), json("{}"),
		json("[1, 2]"), object("collections", "OrderedDict"),
		object("argparse", "Namespace")};
	static const char *const kinds[] = {"None", "int", "float", "str", "dict of 0", "list of 2",
		"dict of 0", "argparse.Namespace of 0"};

	for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
		strbuf_clear(&out);
		print_kind(&out, values[i]);
		ck_assert_str_eq(strbuf_text(&out), kinds[i]);
	}
}
END_TEST

START_TEST(what_does_not_fit_is_an_ellipsis)
{
	struct print_style style = {.bytes = 16, .text_bytes = 8, .depth = 2};

	ck_assert_str_eq(
		cut_line(json("[1000, 2000, 3000, 4000]"), &style), "[1000, 2000, 3000, …]");
	ck_assert_str_eq(cut_line(text("0123456789"), &style), "\"01234567…\"");
	ck_assert_str_eq(cut_line(json("[[[1]]]"), &style), "[[[…]]]");
	ck_assert_str_eq(cut_line(val_bytes(slice_of("0123")), &style), "b\"01\"… (4 bytes)");
	ck_assert_str_eq(cut_line(text("0123456\n8"), &style), "\"0123456\\n…\"");
	/* What just fits is whole. */
	strbuf_clear(&out);
	ck_assert(print_line(&out, text("01234567"), &style));
	ck_assert_str_eq(strbuf_text(&out), "\"01234567\"");
	strbuf_clear(&out);
	ck_assert(print_line(&out, json("[[[]]]"), &style));
	ck_assert_str_eq(strbuf_text(&out), "[[[]]]");
}
END_TEST

/* Lists of twice the same list: 2^64 values in 64 nodes. */
static struct val bomb(void)
{
	struct val v = val_int(1);

	for (int i = 0; i < 64; i++)
		v = sequence(VAL_LIST, 2, (struct val[]){v, v});
	return v;
}

START_TEST(graphs_without_end_are_printed_within_the_budget)
{
	struct val list = val_new(&arena, VAL_LIST), dict = val_new(&arena, VAL_DICT);

	node_push(&arena, list.node, list);
	node_push(&arena, dict.node, text("me"));
	node_push(&arena, dict.node, dict);
	const struct val graphs[] = {list, dict, bomb()};
	for (size_t i = 0; i < 3; i++) {
		cut_line(graphs[i], &print_style_short);
		ck_assert_uint_lt(out.n, 400);
		strbuf_clear(&out);
		ck_assert(!print_page(&out, graphs[i], &print_style_long));
		ck_assert_uint_lt(out.n, (2 << 20));
	}
}
END_TEST

static const char *page(struct val v)
{
	strbuf_clear(&out);
	ck_assert(print_page(&out, v, &print_style_long));
	return strbuf_text(&out);
}

START_TEST(pages_break_what_a_line_does_not_hold)
{
	ck_assert_str_eq(page(json("{\"a\": [1, 2, 3]}")), "{\"a\": [1, 2, 3]}");
	ck_assert_str_eq(
		page(json(
			"{\"lr\": 0.001, \"betas\": [0.9, 0.999], \"weight_decay\": 0.01,"
			" \"params\": [0, 1, 2, 3], \"nested\": {\"text\": \"abcdefghijklmnopqrstuvwxyz\","
			" \"more\": \"abcdefghijklmnopqrstuvwxyz\", \"again\": \"abcdefghijkl\"}}")),
		"{\n"
		"  \"lr\": 0.001,\n"
		"  \"betas\": [0.9, 0.999],\n"
		"  \"weight_decay\": 0.01,\n"
		"  \"params\": [0, 1, 2, 3],\n"
		"  \"nested\": {\n"
		"    \"text\": \"abcdefghijklmnopqrstuvwxyz\",\n"
		"    \"more\": \"abcdefghijklmnopqrstuvwxyz\",\n"
		"    \"again\": \"abcdefghijkl\"\n"
		"  }\n"
		"}");
}
END_TEST

START_TEST(a_full_buffer_is_told)
{
	struct strbuf small;

	strbuf_init(&small, 8);
	ck_assert(!print_line(&small, json("[1, 2, 3, 4, 5, 6]"), &print_style_short));
	ck_assert(small.failed);
	strbuf_release(&small);
}
END_TEST

Suite *suite_print(void)
{
	Suite *s = suite_create("print");
	TCase *t = tcase_create("print");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, scalars_look_as_in_python);
	tcase_add_test(t, big_integers_are_decimal);
	tcase_add_test(t, text_cannot_disturb_a_terminal);
	tcase_add_test(t, containers_look_as_in_python);
	tcase_add_test(t, objects_are_told_by_their_class);
	tcase_add_test(t, tensors_are_told_by_dtype_and_shape);
	tcase_add_test(t, kinds_are_told_with_their_size);
	tcase_add_test(t, what_does_not_fit_is_an_ellipsis);
	tcase_add_test(t, graphs_without_end_are_printed_within_the_budget);
	tcase_add_test(t, pages_break_what_a_line_does_not_hold);
	tcase_add_test(t, a_full_buffer_is_told);
	suite_add_tcase(s, t);
	return s;
}
