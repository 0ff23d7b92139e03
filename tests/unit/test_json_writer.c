/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "report/json_writer.h"

#include <check.h>
/* jansson has a json_null() too. */
#define json_null jansson_null
#include <jansson.h>
#undef json_null
#include <math.h>
#include <signal.h>
#include <stdlib.h>

Suite *suite_json_writer(void);

static struct strbuf out;
static struct json_writer w;

static void setup(void)
{
	strbuf_init(&out, 1 << 20);
	json_writer_init(&w, &out, false);
}

static void teardown(void)
{
	strbuf_release(&out);
}

static void write_everything(void)
{
	json_open_object(&w);
	json_key(&w, "a");
	json_open_array(&w);
	json_i64(&w, INT64_MIN);
	json_u64(&w, UINT64_MAX);
	json_double(&w, 0.1);
	json_double(&w, (double)NAN);
	json_double(&w, -(double)INFINITY);
	json_bool(&w, true);
	json_bool(&w, false);
	json_null(&w);
	json_text(&w, NULL);
	json_text(&w, "x");
	json_close_array(&w);
	json_key(&w, "empty");
	json_open_object(&w);
	json_close_object(&w);
	json_key(&w, "none");
	json_open_array(&w);
	json_close_array(&w);
	json_close_object(&w);
}

START_TEST(writes_everything_on_one_line)
{
	write_everything();
	ck_assert_str_eq(strbuf_text(&out),
		"{\"a\":[-9223372036854775808,18446744073709551615,0.1,null,null,true,false,null,null,"
		"\"x\"],\"empty\":{},\"none\":[]}");
}
END_TEST

START_TEST(indents_by_two_spaces)
{
	json_writer_init(&w, &out, true);
	json_open_array(&w);
	json_open_object(&w);
	json_key(&w, "k");
	json_open_array(&w);
	json_i64(&w, 1);
	json_i64(&w, 2);
	json_close_array(&w);
	json_key(&w, "e");
	json_open_array(&w);
	json_close_array(&w);
	json_close_object(&w);
	json_null(&w);
	json_close_array(&w);
	ck_assert_str_eq(strbuf_text(&out),
		"[\n  {\n    \"k\": [\n      1,\n      2\n    ],\n    \"e\": []\n  },\n  null\n]");
}
END_TEST

START_TEST(escapes_texts_and_keys)
{
	static const struct {
		struct slice text;
		const char *written;
	} cases[] = {
		{{"", 0}, "\"\""},
		{{NULL, 0}, "\"\""},
		{{"a\"b\\c/", 6}, "\"a\\\"b\\\\c/\""},
		{{"\b\t\n\f\r", 5}, "\"\\b\\t\\n\\f\\r\""},
		{{"\0\x01\x1f\x7f", 4}, "\"\\u0000\\u0001\\u001f\\u007f\""},
		{{"\xc3\xb6\xe2\x82\xac\xf0\x9f\x98\x80", 9},
			"\"\xc3\xb6\xe2\x82\xac\xf0\x9f\x98\x80\""},
		{{"\xe2\x80\xae\xe2\x80\xa8", 6}, "\"\\u202e\\u2028\""},
		{{"\xf3\xa0\x81\x81", 4}, "\"\\udb40\\udc41\""},
		{{"a\xff"
		  "b\xc3",
			 4},
			"\"a\xef\xbf\xbd"
			"b\xef\xbf\xbd\""},
		{{"\xed\xa0\x80", 3}, "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
	};

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		strbuf_clear(&out);
		json_writer_init(&w, &out, false);
		json_slice(&w, cases[i].text);
		ck_assert_str_eq(strbuf_text(&out), cases[i].written);
	}
	strbuf_clear(&out);
	json_writer_init(&w, &out, false);
	json_open_object(&w);
	json_key(&w, "k\n");
	json_null(&w);
	json_close_object(&w);
	ck_assert_str_eq(strbuf_text(&out), "{\"k\\n\":null}");
}
END_TEST

START_TEST(any_bytes_become_json)
{
	srand48(5);
	for (int i = 0; i < 20000; i++) {
		char bytes[24];
		size_t n = (size_t)(lrand48() % 24);
		for (size_t j = 0; j < n; j++)
			bytes[j] = (char)(lrand48() % 3 ? lrand48() : lrand48() % 0x60 + 0xc0);
		strbuf_clear(&out);
		json_writer_init(&w, &out, i % 2);
		json_open_array(&w);
		json_slice(&w, (struct slice){bytes, n});
		json_close_array(&w);
		json_error_t why;
		json_t *back = json_loadb(out.p, out.n, JSON_ALLOW_NUL, &why);
		ck_assert_msg(back != NULL, "%s: %s", out.p, why.text);
		json_decref(back);
	}
}
END_TEST

START_TEST(a_full_buffer_is_only_sticky)
{
	strbuf_release(&out);
	strbuf_init(&out, 40);
	write_everything();
	ck_assert(out.failed);
	ck_assert_uint_lt(out.n, 40);
}
END_TEST

START_TEST(too_deep_is_a_bug)
{
	for (int i = 0; i < JSON_WRITER_DEPTH; i++)
		json_open_array(&w);
}
END_TEST

START_TEST(closing_too_often_is_a_bug)
{
	json_open_array(&w);
	json_close_array(&w);
	json_close_array(&w);
}
END_TEST

Suite *suite_json_writer(void)
{
	Suite *s = suite_create("json_writer");
	TCase *t = tcase_create("json_writer");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, writes_everything_on_one_line);
	tcase_add_test(t, indents_by_two_spaces);
	tcase_add_test(t, escapes_texts_and_keys);
	tcase_add_test(t, any_bytes_become_json);
	tcase_add_test(t, a_full_buffer_is_only_sticky);
	const char *fork_mode = getenv("CK_FORK");
	if (!fork_mode || strcmp(fork_mode, "no") != 0) {
		tcase_add_test_raise_signal(t, too_deep_is_a_bug, SIGABRT);
		tcase_add_test_raise_signal(t, closing_too_often_is_a_bug, SIGABRT);
	}
	suite_add_tcase(s, t);
	return s;
}
