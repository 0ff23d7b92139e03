/* SPDX-License-Identifier: MIT */
#include "value/path.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"
#include "container/json.h"

Suite *suite_path(void);

static struct arena arena;
static struct limits limits;
static struct path path;
static struct error error;

static void setup(void)
{
	arena_init(&arena, SIZE_MAX);
	limits = limits_default();
	error = ERROR_INIT;
}

static void teardown(void)
{
	arena_release(&arena);
}

static struct val json(const char *text)
{
	struct val v;
	uint64_t duplicates;

	ck_assert_int_eq(
		json_decode(slice_of(text), &arena, &limits, &v, &duplicates, &error), RP_OK);
	return v;
}

static void put(struct val dict, struct val key, struct val v)
{
	if (!node_push(&arena, dict.node, key) || !node_push(&arena, dict.node, v))
		ck_abort_msg("no memory");
}

static void parse(const char *text)
{
	ck_assert_msg(path_parse(&path, slice_of(text), &arena, &error) == RP_OK, "%s: %s", text,
		error.text);
}

struct seen {
	struct strbuf text; /* "path=value path=value" for integers */
	size_t count, stop; /* stop after so many; 0: never */
	struct val last;
};

static bool see(void *context, struct val v, const struct path_step *steps, size_t count)
{
	struct seen *s = context;
	struct strbuf b;

	strbuf_init(&b, 1 << 16);
	path_add_steps(&b, steps, count);
	strbuf_printf(&s->text, "%s%s", s->count ? " " : "", strbuf_text(&b));
	if (v.kind == VAL_INT)
		strbuf_printf(&s->text, "=%lld", (long long)v.i);
	strbuf_release(&b);
	s->last = v;
	return ++s->count != s->stop;
}

/* All matches of a path, as text that lives until the test ends. */
static const char *found(struct val root, const char *text)
{
	struct seen s = {.count = 0};

	strbuf_init(&s.text, 1 << 20);
	parse(text);
	ck_assert(path_match(&path, root, &limits, see, &s));
	char *kept = arena_strdup(&arena, strbuf_slice(&s.text));
	strbuf_release(&s.text);
	return kept;
}

START_TEST(names_indices_and_quotes_lead_to_one_value)
{
	struct val v = json(
		"{\"optimizer\": {\"state\": [{\"step\": 7}, {\"step\": 8}], \"a b\": 3, \"\": 4}}");

	ck_assert_str_eq(found(v, "optimizer.state[1].step"), "optimizer.state[1].step=8");
	ck_assert_str_eq(found(v, ".optimizer.state[1].step"), "optimizer.state[1].step=8");
	ck_assert_str_eq(found(v, "optimizer.state.1.step"), "optimizer.state[1].step=8");
	ck_assert_str_eq(
		found(v, "[\"optimizer\"][\"state\"][-1][\"step\"]"), "optimizer.state[1].step=8");
	ck_assert_str_eq(found(v, "['optimizer'].state[0]['step']"), "optimizer.state[0].step=7");
	ck_assert_str_eq(found(v, "optimizer.a b"), "optimizer[\"a b\"]=3");
	ck_assert_str_eq(found(v, "optimizer[\"\"]"), "optimizer[\"\"]=4");
	ck_assert_str_eq(found(v, "optimizer[#2]"), "optimizer[\"\"]=4");
	ck_assert_str_eq(found(v, "optimizer.state[2].step"), "");
	ck_assert_str_eq(found(v, "optimizer.state[-3].step"), "");
	ck_assert_str_eq(found(v, "optimizer.step"), "");
}
END_TEST

START_TEST(the_empty_path_and_a_dot_are_the_root)
{
	ck_assert_str_eq(found(val_int(5), ""), ".=5");
	ck_assert_str_eq(found(val_int(5), "."), ".=5");
	ck_assert_str_eq(found(val_int(5), "a"), "");
	ck_assert_str_eq(found(val_int(5), "**"), ".=5");
}
END_TEST

START_TEST(integer_keys_are_no_text_keys)
{
	struct val dict = val_new(&arena, VAL_DICT);

	put(dict, val_int(0), val_int(10));
	put(dict, val_text(slice_of("0")), val_int(20));
	put(dict, val_int(-1), val_int(30));
	ck_assert_str_eq(found(dict, "[0]"), "[0]=10");
	ck_assert_str_eq(found(dict, "[\"0\"]"), "[\"0\"]=20");
	/* Typed without brackets either may be meant. */
	ck_assert_str_eq(found(dict, "0"), "[0]=10 [\"0\"]=20");
	ck_assert_str_eq(found(dict, "[-1]"), "[-1]=30");
}
END_TEST

START_TEST(a_star_is_every_part_and_two_are_any_depth)
{
	struct val v = json(
		"{\"step\": 1, \"a\": {\"step\": 2, \"b\": [{\"step\": 3}, {\"x\": 4}]}, \"e\": {}}");

	ck_assert_str_eq(found(v, "*.step"), "a.step=2");
	ck_assert_str_eq(found(v, "**.step"), "step=1 a.step=2 a.b[0].step=3");
	ck_assert_str_eq(found(v, "a.**.step"), "a.step=2 a.b[0].step=3");
	ck_assert_str_eq(found(v, "a.b.*.*"), "a.b[0].step=3 a.b[1].x=4");
	ck_assert_str_eq(found(v, "a.b[*][\"x\"]"), "a.b[1].x=4");
	ck_assert_str_eq(found(v, "a.*"), "a.step=2 a.b");
	/* At the end: values, not the containers on the way. */
	ck_assert_str_eq(found(v, "**"), "step=1 a.step=2 a.b[0].step=3 a.b[1].x=4 e");
	ck_assert_str_eq(found(v, "a[**]"), "a.step=2 a.b[0].step=3 a.b[1].x=4");
	ck_assert_str_eq(found(v, "**.b.**.x"), "a.b[1].x=4");
}
END_TEST

START_TEST(each_value_is_found_once_however_many_ways_lead_to_it)
{
	struct val v = json("{\"a\": {\"a\": {\"a\": {\"x\": 1}}}}");

	ck_assert_str_eq(found(v, "**.**.x"), "a.a.a.x=1");
	ck_assert_str_eq(found(v, "**.a.**.x"), "a.a.a.x=1");
	ck_assert_str_eq(found(v, "**.**"), "a.a.a.x=1");
}
END_TEST

START_TEST(names_find_the_pieces_of_keys_with_dots)
{
	struct val v = json(
		"{\"model\": {\"layers.0.weight\": 1, \"layers.1.weight\": 2, \"layers.1.bias\": 3,"
		" \"head\": {\"a.b\": {\"c.d\": 4}}}}");

	ck_assert_str_eq(found(v, "model.layers.0.weight"), "model[\"layers.0.weight\"]=1");
	ck_assert_str_eq(found(v, "model.layers.*.weight"),
		"model[\"layers.0.weight\"]=1 model[\"layers.1.weight\"]=2");
	ck_assert_str_eq(found(v, "model.**.weight"),
		"model[\"layers.0.weight\"]=1 model[\"layers.1.weight\"]=2");
	ck_assert_str_eq(found(v, "**.bias"), "model[\"layers.1.bias\"]=3");
	ck_assert_str_eq(found(v, "model.head.a.b.c.d"), "model.head[\"a.b\"][\"c.d\"]=4");
	ck_assert_str_eq(found(v, "model.head.*[\"c.d\"]"), "model.head[\"a.b\"][\"c.d\"]=4");
	/* All pieces or none, and quotes mean the whole key. */
	ck_assert_str_eq(found(v, "model.layers.0"), "");
	ck_assert_str_eq(found(v, "model.0.weight"), "");
	ck_assert_str_eq(found(v, "model[\"layers\"][\"0\"][\"weight\"]"), "");
	ck_assert_str_eq(found(v, "model.layers.0.weight.x"), "");
	/* An index is no piece. */
	ck_assert_str_eq(found(v, "model.layers[0].weight"), "");
}
END_TEST

START_TEST(of_equal_keys_the_last_is_found_as_in_python)
{
	struct val v = json("{\"a\": 1, \"b\": 2, \"a\": 3}");

	ck_assert_str_eq(found(v, "a"), "a=3");
	ck_assert_str_eq(found(v, "[\"a\"]"), "a=3");
	ck_assert_str_eq(found(v, "[#0]"), "a=1");
	ck_assert_str_eq(found(v, "*"), "a=1 b=2 a=3");
}
END_TEST

START_TEST(what_makes_no_sense_is_pointed_at)
{
	static const struct {
		const char *text;
		size_t offset;
	} cases[] = {
		{"a..b", 2},
		{"a.", 2},
		{"a[", 2},
		{"a[]", 2},
		{"a[x]", 2},
		{"a[1", 1},
		{"a[\"b]", 2},
		{"a[\"\\q\"]", 3},
		{"a[\"\\u12\"]", 3},
		{"a[\"\\xg0\"]", 3},
		{"a[1]b", 4},
		{"lay*", 3},
		{"a.***", 4},
		{"a]", 1},
		{"a\"b\"", 1},
		{"[\"a\"", 0},
		{"a[#-1]", 2},
		{"a[1.5]", 2},
		{"a[99999999999999999999]", 2},
		{"..", 1},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		error = ERROR_INIT;
		ck_assert_msg(
			path_parse(&path, slice_of(cases[i].text), &arena, &error) == RP_E_ARGUMENT,
			"%s", cases[i].text);
		ck_assert_msg(error.offset == cases[i].offset, "%s: %llu, not %zu", cases[i].text,
			(unsigned long long)error.offset, cases[i].offset);
	}
}
END_TEST

START_TEST(a_path_has_an_end)
{
	struct strbuf b;

	strbuf_init(&b, 1 << 16);
	for (int i = 0; i < PATH_SEGMENTS_MAX; i++)
		strbuf_add_text(&b, "[0]");
	ck_assert_int_eq(path_parse(&path, strbuf_slice(&b), &arena, &error), RP_OK);
	ck_assert_uint_eq(path.count, PATH_SEGMENTS_MAX);
	/* All bits of a state are in use. */
	struct val v = val_int(9);
	for (int i = 0; i < PATH_SEGMENTS_MAX; i++) {
		struct val list = val_new(&arena, VAL_LIST);
		node_push(&arena, list.node, v);
		v = list;
	}
	struct seen s = {.count = 0};
	strbuf_init(&s.text, 1 << 16);
	ck_assert(path_match(&path, v, &limits, see, &s));
	ck_assert_uint_eq(s.count, 1);
	ck_assert_int_eq(s.last.i, 9);
	strbuf_release(&s.text);
	strbuf_add_text(&b, ".a");
	ck_assert_int_eq(path_parse(&path, strbuf_slice(&b), &arena, &error), RP_E_ARGUMENT);
	strbuf_release(&b);
}
END_TEST

static const struct slice nasty[] = {
	{"a", 1},
	{"_a1", 3},
	{"1a", 2},
	{"0", 1},
	{"-1", 2},
	{"", 0},
	{".", 1},
	{"..", 2},
	{"a.b", 3},
	{"a.*", 3},
	{"*", 1},
	{"**", 2},
	{"[0]", 3},
	{"#1", 2},
	{"\"", 1},
	{"'", 1},
	{"\\", 1},
	{"\\n", 2},
	{"\n", 1},
	{"\t", 1},
	{"\0", 1},
	{"a\0b", 3},
	{"\x1b[31m", 5},
	{"\xff", 1},
	{"\xc3(", 2},
	{"\xed\xa0\x80", 3},
	{"é", 2},
	{"\xf0\x9f\x98\x80", 4},
	{"\xe2\x80\xae", 3},
	{"\xf3\xa0\x81\x81", 4},
	{" ", 1},
	{"a b", 3},
	{"]", 1},
	{"layers.0.weight", 15},
	{"\xc2\x9b", 2},
	{"x\r", 2},
};

#define NASTY_COUNT (sizeof nasty / sizeof *nasty)

/* What was printed, typed again: finds that value alone. */
static bool type_back(void *context, struct val v, const struct path_step *steps, size_t count)
{
	const struct val *root = context;
	struct seen s = {.count = 0};
	struct strbuf b;
	uint32_t point;

	if (v.kind != VAL_INT)
		return true;
	strbuf_init(&b, 1 << 16);
	path_add_steps(&b, steps, count);
	struct path again;
	ck_assert_msg(path_parse(&again, strbuf_slice(&b), &arena, &error) == RP_OK, "%s: %s",
		strbuf_text(&b), error.text);
	strbuf_init(&s.text, 1 << 16);
	ck_assert(path_match(&again, *root, &limits, see, &s));
	ck_assert_msg(
		s.count == 1 && s.last.i == v.i, "%s: %s", strbuf_text(&b), strbuf_text(&s.text));
	/* And a terminal may see it. */
	for (struct slice left = strbuf_slice(&b); left.n > 0;) {
		size_t n = text_utf8_next(left, &point);
		ck_assert_msg(n > 0 && !text_disturbs(point), "%s", strbuf_text(&b));
		left = (struct slice){left.p + n, left.n - n};
	}
	strbuf_release(&s.text);
	strbuf_release(&b);
	return true;
}

START_TEST(what_is_printed_can_be_typed_back)
{
	struct val root = val_new(&arena, VAL_DICT), odd = val_new(&arena, VAL_DICT);
	int64_t id = 0;

	for (size_t i = 0; i < NASTY_COUNT; i++) {
		struct val inner = val_new(&arena, VAL_DICT);
		for (size_t k = 0; k < NASTY_COUNT; k++)
			put(inner, val_text(nasty[k]), val_int(++id));
		put(inner, val_int(INT64_MIN), val_int(++id));
		put(inner, val_int(0), val_int(++id));
		put(root, val_text(nasty[i]), inner);
	}
	/* Keys that only their place can name. */
	put(odd, val_none(), val_int(++id));
	put(odd, val_float(0.5), val_int(++id));
	put(odd, val_bytes(slice_of("x")), val_int(++id));
	put(odd, val_new(&arena, VAL_TUPLE), val_int(++id));
	put(odd, val_bool(true), val_int(++id));
	put(root, val_int(7), odd);
	parse("**");
	ck_assert(path_match(&path, root, &limits, type_back, &root));
}
END_TEST

START_TEST(keys_alone_are_printed_as_steps)
{
	struct strbuf b;

	strbuf_init(&b, 4096);
	path_add_key(&b, val_text(slice_of("optimizer")));
	path_add_key(&b, val_text(slice_of("state")));
	path_add_key(&b, val_int(3));
	path_add_key(&b, val_text(slice_of("exp.avg")));
	path_add_key(&b, val_none());
	ck_assert_str_eq(strbuf_text(&b), "optimizer.state[3][\"exp.avg\"][?]");
	strbuf_release(&b);
}
END_TEST

START_TEST(a_container_is_not_entered_inside_itself)
{
	struct val list = val_new(&arena, VAL_LIST), dict = val_new(&arena, VAL_DICT);

	put(dict, val_text(slice_of("x")), val_int(1));
	put(dict, val_text(slice_of("back")), list);
	node_push(&arena, list.node, dict);
	node_push(&arena, list.node, list);
	node_push(&arena, list.node, dict);
	/* Beside itself it is. */
	ck_assert_str_eq(found(list, "**.x"), "[0].x=1 [2].x=1");
	/* A way that is spelled out may end in it. */
	ck_assert_str_eq(found(list, "[1]"), "[1]");
}
END_TEST

START_TEST(shared_values_expand_within_a_budget)
{
	struct val v = val_new(&arena, VAL_LIST);
	struct seen s = {.count = 0};

	node_push(&arena, v.node, val_int(1));
	/* 2^64 ways. */
	for (int i = 0; i < 64; i++) {
		struct val twice = val_new(&arena, VAL_LIST);
		node_push(&arena, twice.node, v);
		node_push(&arena, twice.node, v);
		v = twice;
	}
	limits.nodes = 100000;
	strbuf_init(&s.text, SIZE_MAX);
	parse("**.nothing");
	ck_assert(!path_match(&path, v, &limits, see, &s));
	ck_assert_uint_eq(s.count, 0);
	parse("**");
	s.stop = 1000;
	ck_assert(path_match(&path, v, &limits, see, &s));
	ck_assert_uint_eq(s.count, 1000);
	strbuf_release(&s.text);
}
END_TEST

START_TEST(what_lies_deeper_than_the_limit_is_missed_aloud)
{
	struct val v = val_int(1);
	struct seen s = {.count = 0};

	for (int i = 0; i < 100; i++) {
		struct val list = val_new(&arena, VAL_LIST);
		node_push(&arena, list.node, v);
		v = list;
	}
	strbuf_init(&s.text, 1 << 16);
	parse("**");
	limits.depth = 100;
	ck_assert(path_match(&path, v, &limits, see, &s));
	ck_assert_uint_eq(s.count, 1);
	limits.depth = 99;
	ck_assert(!path_match(&path, v, &limits, see, &s));
	ck_assert_uint_eq(s.count, 1);
	strbuf_release(&s.text);
}
END_TEST

START_TEST(objects_have_items_and_attributes)
{
	struct val v = val_new(&arena, VAL_OBJECT), state = val_new(&arena, VAL_DICT);

	v.object->callable = val_new(&arena, VAL_CLASS);
	v.object->callable.klass->module = slice_of("argparse");
	v.object->callable.klass->name = slice_of("Namespace");
	put(state, val_text(slice_of("lr")), val_int(3));
	v.object->state = state;
	ck_assert_str_eq(found(v, "lr"), "lr=3");
	ck_assert_str_eq(found(v, "**"), "lr=3");
	/* A state that is no dict has no name. */
	v.object->state = val_int(8);
	ck_assert_str_eq(found(v, "*"), "[#0]=8");
	ck_assert_str_eq(found(v, "[#0]"), "[#0]=8");
}
END_TEST

START_TEST(a_million_keys_are_no_matter)
{
	struct val dict = val_new(&arena, VAL_DICT);

	for (int i = 0; i < 1000000; i++)
		put(dict, val_text(slice_of("same")), val_int(i));
	ck_assert_str_eq(found(dict, "same"), "same=999999");
}
END_TEST

Suite *suite_path(void)
{
	Suite *s = suite_create("path");
	TCase *t = tcase_create("path");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, names_indices_and_quotes_lead_to_one_value);
	tcase_add_test(t, the_empty_path_and_a_dot_are_the_root);
	tcase_add_test(t, integer_keys_are_no_text_keys);
	tcase_add_test(t, a_star_is_every_part_and_two_are_any_depth);
	tcase_add_test(t, each_value_is_found_once_however_many_ways_lead_to_it);
	tcase_add_test(t, names_find_the_pieces_of_keys_with_dots);
	tcase_add_test(t, of_equal_keys_the_last_is_found_as_in_python);
	tcase_add_test(t, what_makes_no_sense_is_pointed_at);
	tcase_add_test(t, a_path_has_an_end);
	tcase_add_test(t, what_is_printed_can_be_typed_back);
	tcase_add_test(t, keys_alone_are_printed_as_steps);
	tcase_add_test(t, a_container_is_not_entered_inside_itself);
	tcase_add_test(t, shared_values_expand_within_a_budget);
	tcase_add_test(t, what_lies_deeper_than_the_limit_is_missed_aloud);
	tcase_add_test(t, objects_have_items_and_attributes);
	tcase_add_test(t, a_million_keys_are_no_matter);
	suite_add_tcase(s, t);
	return s;
}
