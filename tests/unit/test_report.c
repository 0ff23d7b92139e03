/* SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 200809L

#include <check.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "report/explain.h"
#include "report/page.h"
#include "report/report.h"

#define OUTPUT_MAX ((size_t)16 << 20)

Suite *suite_report(void);

static struct strbuf out;

static void begin(void)
{
	strbuf_init(&out, OUTPUT_MAX);
}

static void end(void)
{
	ck_assert(!out.failed);
	strbuf_release(&out);
}

/* Findings of a made-up checkpoint; `turn` rotates the order in which they are added. */
static void add_findings(struct report *r, unsigned turn)
{
	for (unsigned i = 0; i < 5; i++) {
		struct finding *f;

		switch ((i + turn) % 5) {
		case 0:
			f = finding_add(&r->findings, FINDING_P101,
				"no data position is saved; Lightning 2.4 starts a plain loader's epoch again");
			f->place.file = "last.ckpt";
			f->place.path = ".loops.fit_loop";
			f->meaning =
				"the loss looks too low for 10 000 batches, then steps up to its true level";
			f->remedy = "a StatefulDataLoader, or skip 10 000 batches";
			break;
		case 1:
			f = finding_add(&r->findings, FINDING_P102,
				"the position is a quarter of what the step gives");
			f->place.ranks = "0-7";
			f->place.step_first = f->place.step_last = 2748;
			f->observed = quantity_count(2748);
			f->expected = quantity_count(10992);
			f->unit = "micro-batches";
			f->cause = "gradient_accumulation_steps 4";
			break;
		case 2:
			finding_add(&r->findings, FINDING_R101, "no RNG state is saved");
			break;
		case 3:
			for (int j = 0; j < 6; j++) {
				int k = (j + (int)turn) % 6;
				f = finding_add(
					&r->findings, FINDING_R107, "stream %d stood still", k);
				f->place.step_first = 100;
				f->place.step_last = 160;
			}
			break;
		case 4:
			finding_add(&r->findings, FINDING_D190, "300 steps reproduced");
			break;
		}
	}
}

static void make_report(struct report *r, unsigned turn)
{
	static const char *const columns[] = {"kind", "name", "relation"};
	struct report_table *t;

	report_init(r, "verify");
	r->forecast = true;
	report_add_input(r, "last.ckpt", "checkpoint", "lightning");
	add_findings(r, turn);
	t = report_add_table(r, "streams", NULL, columns, 3);
	report_add_row(r, t, TONE_BAD, (const char *const[]){"stream", "torch cpu", "re-seeded"});
	report_add_row(r, t, TONE_PLAIN, (const char *const[]){NULL, "numpy", NULL});
	report_add_row_values(r, t, TONE_PLAIN,
		(const char *const[]){"counter", "schritt ü", "+1 060"},
		(const struct quantity[]){{0}, {0}, quantity_count(1060)});
	for (int i = 0; i < 512; i++)
		cover_ran(&r->coverage, "integrity", "structure", "files", 1, 1, NULL);
	cover_ran(&r->coverage, "digests", "digests", "files", 512, 512, NULL);
	cover_ran(&r->coverage, "counters", "counters", NULL, 2, 2, NULL);
	cover_ran(&r->coverage, "rng", "random streams", "ranks", 7, 8, "rank 3's file is missing");
	cover_not_checked(&r->coverage, "bytes", "bytes", "--quick");
	cover_not_checked(&r->coverage, "data", "data set size", "not in the checkpoint");
	r->summary = "lightning 2.4.0 · step 2 500";
	struct verdict_case c = {.findings = &r->findings, .coverage = &r->coverage};
	struct verdict v = verdict_of(&c);
	report_take_verdict(r, &v);
	report_finish(r);
}

static const char golden[] =
	"WOULD-REPLAY  no data position is saved; Lightning 2.4 starts a plain loader's epoch\n"
	"  again\n"
	"\n"
	"  P101 error    no data position is saved; Lightning 2.4 starts a plain loader's epoch\n"
	"                again\n"
	"                .loops.fit_loop\n"
	"                the loss looks too low for 10 000 batches, then steps up to its true\n"
	"                level\n"
	"                fix: a StatefulDataLoader, or skip 10 000 batches\n"
	"  P102 error    the position is a quarter of what the step gives\n"
	"                ranks 0-7 · step 2 748\n"
	"                expected 10 992 micro-batches, observed 2 748 (ratio 0.25 = 1/4) ·\n"
	"                cause: gradient_accumulation_steps 4\n"
	"                fix: Set the position by hand to step times global batch size, in the\n"
	"                unit that the framework expects, or correct the configured\n"
	"                accumulation or batch size; then verify again.\n"
	"  R101 warning  no RNG state is saved\n"
	"  R107 info     stream 0 stood still\n"
	"                steps 100–160\n"
	"  R107 info     stream 1 stood still\n"
	"                steps 100–160\n"
	"  R107 info     stream 2 stood still\n"
	"                steps 100–160\n"
	"                and 3 more R107 (-v shows more)\n"
	"  reprise explain P101 P102 R101\n"
	"\n"
	"  stream   torch cpu  re-seeded\n"
	"           numpy\n"
	"  counter  schritt ü  +1 060\n"
	"\n"
	"  lightning 2.4.0 · step 2 500\n"
	"  checked      structure, digests, counters\n"
	"  partly       random streams (7 of 8 ranks: rank 3's file is missing)\n"
	"  not checked  bytes (--quick); data set size (not in the checkpoint)\n";

START_TEST(a_report_reads_as_it_should)
{
	struct report r;
	struct render_options o = {.width = 86};

	make_report(&r, 0);
	ck_assert_int_eq(r.exit, 1);
	report_render_text(&r, &o, &out);
	ck_assert_str_eq(strbuf_text(&out), golden);
	report_release(&r);
}
END_TEST

START_TEST(quiet_is_one_line)
{
	struct report r;
	struct render_options o = {.quiet = true};

	make_report(&r, 0);
	report_render_text(&r, &o, &out);
	ck_assert_str_eq(strbuf_text(&out),
		"WOULD-REPLAY  no data position is saved; Lightning 2.4 starts a plain loader's epoch again\n");
	report_release(&r);
}
END_TEST

START_TEST(verbose_hides_nothing)
{
	struct report r;
	struct render_options o = {.verbose = true};

	make_report(&r, 0);
	report_render_text(&r, &o, &out);
	ck_assert_ptr_nonnull(strstr(strbuf_text(&out), "D190 ok       300 steps reproduced\n"));
	ck_assert_ptr_nonnull(strstr(strbuf_text(&out), "stream 5 stood still"));
	ck_assert_ptr_nonnull(strstr(strbuf_text(&out), finding_rows[FINDING_R101].explain));
	ck_assert_ptr_null(strstr(strbuf_text(&out), "more"
						     " R107"));
	report_release(&r);
}
END_TEST

/* Take the escape sequences of colours out. */
static void remove_colors(char *text)
{
	char *to = text;

	for (const char *from = text; *from != '\0'; from++) {
		if (*from == '\033') {
			from = strchr(from, 'm');
			ck_assert_ptr_nonnull(from);
		} else {
			*to++ = *from;
		}
	}
	*to = '\0';
}

START_TEST(colour_only_stresses)
{
	struct report r;
	struct render_options o = {.width = 86, .color = true};

	make_report(&r, 0);
	report_render_text(&r, &o, &out);
	ck_assert_ptr_nonnull(strchr(strbuf_text(&out), '\033'));
	remove_colors(out.p);
	ck_assert_str_eq(out.p, golden);
	report_release(&r);
}
END_TEST

START_TEST(the_order_of_insertion_changes_no_byte)
{
	struct strbuf first;
	struct render_options o = {.verbose = true};

	strbuf_init(&first, OUTPUT_MAX);
	for (unsigned turn = 0; turn < 5; turn++) {
		struct report r;

		strbuf_clear(&out);
		make_report(&r, turn);
		report_render_text(&r, &o, &out);
		report_render_json(&r, &out);
		if (turn == 0)
			strbuf_add_slice(&first, strbuf_slice(&out));
		ck_assert_str_eq(strbuf_text(&out), strbuf_text(&first));
		report_release(&r);
	}
	strbuf_release(&first);
}
END_TEST

START_TEST(lines_stay_within_the_width)
{
	struct report r;

	make_report(&r, 0);
	for (unsigned width = 60; width < 140; width += 7) {
		struct render_options o = {.width = width, .verbose = true};

		strbuf_clear(&out);
		report_render_text(&r, &o, &out);
		for (char *line = strtok(out.p, "\n"); line; line = strtok(NULL, "\n"))
			ck_assert_msg(page_columns(line) <= width, "%u: %s", width, line);
	}
	report_release(&r);
}
END_TEST

static json_t *parse(void)
{
	json_error_t e;
	json_t *root = json_loads(strbuf_text(&out), JSON_REJECT_DUPLICATES, &e);

	ck_assert_msg(root != NULL, "%d: %s", e.line, e.text);
	return root;
}

START_TEST(json_says_the_same)
{
	struct report r;

	make_report(&r, 0);
	report_render_json(&r, &out);
	json_t *root = parse();
	ck_assert_str_eq(json_string_value(json_object_get(root, "schema")), "reprise/1");
	json_t *verdict = json_object_get(root, "verdict");
	ck_assert_str_eq(json_string_value(json_object_get(verdict, "word")), "WOULD-REPLAY");
	json_t *list = json_object_get(root, "findings");
	ck_assert_uint_eq(json_array_size(list), 10);
	json_t *f = json_array_get(list, 1);
	ck_assert_str_eq(json_string_value(json_object_get(f, "code")), "P102");
	ck_assert_int_eq(json_integer_value(json_object_get(f, "expected")), 10992);
	ck_assert_double_eq(json_number_value(json_object_get(f, "ratio")), 0.25);
	ck_assert(json_is_null(json_object_get(json_object_get(f, "where"), "file")));
	ck_assert_int_eq(
		json_integer_value(json_object_get(json_object_get(root, "counts"), "R107")), 6);
	json_t *rows = json_object_get(json_object_get(root, "tables"), "streams");
	ck_assert_int_eq(
		json_integer_value(json_object_get(json_array_get(rows, 2), "relation")), 1060);
	ck_assert(json_is_null(json_object_get(json_array_get(rows, 1), "kind")));
	ck_assert_int_eq(json_integer_value(json_object_get(root, "exit")), 1);
	json_decref(root);
	report_release(&r);
}
END_TEST

/* Whether python3-jsonschema accepts what is in `out`. */
static void assert_valid(void)
{
	char path[] = "/tmp/reprise-test-XXXXXX", command[200];
	int fd = mkstemp(path);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, out.p, out.n), (ssize_t)out.n);
	close(fd);
	snprintf(command, sizeof command,
		"/usr/bin/python3 -W ignore -m jsonschema -i %s share/reprise-1.schema.json", path);
	int status = system(command);
	unlink(path);
	ck_assert_int_eq(status, 0);
}

START_TEST(json_fits_its_schema)
{
	struct report r;

	make_report(&r, 0);
	report_render_json(&r, &out);
	assert_valid();
	report_release(&r);

	strbuf_clear(&out);
	ck_assert_int_eq(explain_words(NULL, 0, true, NULL, &out, NULL), 0);
	assert_valid();
}
END_TEST

/* Bytes from outside in every place that shows text. */
static const char hostile[] =
	"a\033[31mb\nc\r\b\x7f\xc2\x9b\xff\xe2\x80\xaeright\xe2\x81\xa6\xef\xbb\xbf\t<x>";

static void assert_harmless(bool json)
{
	for (size_t i = 0; i < out.n; i++) {
		unsigned char c = (unsigned char)out.p[i];
		ck_assert_msg(c >= ' ' || c == '\n', "byte %02x at %zu", c, i);
	}
	if (!json) {
		ck_assert_ptr_null(strchr(out.p, 0x7f));
		ck_assert_ptr_null(strstr(out.p, "\xc2\x9b"));
		ck_assert_ptr_null(strstr(out.p, "\xff"));
		ck_assert_ptr_null(strstr(out.p, "\xe2\x80\xae"));
		ck_assert_ptr_null(strstr(out.p, "\xe2\x81\xa6"));
		ck_assert_ptr_null(strstr(out.p, "\xef\xbb\xbf"));
		ck_assert_ptr_nonnull(strstr(out.p, "\\x1b[31m"));
		ck_assert_ptr_nonnull(strstr(out.p, "\\u{202e}right"));
	}
}

START_TEST(hostile_text_never_leaves_raw)
{
	static const char *const columns[] = {"name", "value"};
	struct report r;
	struct render_options o = {.verbose = true};

	report_init(&r, "verify");
	report_add_input(&r, hostile, "checkpoint", hostile);
	struct finding *f = finding_add(&r.findings, FINDING_I104, "%s", hostile);
	f->place.file = f->place.path = f->place.ranks = hostile;
	f->cause = f->meaning = f->remedy = f->unit = hostile;
	f->observed = f->expected = quantity_text(hostile);
	cover_not_checked(&r.coverage, "rule", hostile, "%s", hostile);
	struct report_table *t = report_add_table(&r, "names", hostile, columns, 2);
	report_add_row(&r, t, TONE_PLAIN, (const char *const[]){hostile, hostile});
	r.summary = hostile;
	r.has_verdict = true;
	r.word = VERDICT_CORRUPT;
	r.evidence = hostile;
	report_finish(&r);
	for (unsigned width = 0; width <= 80; width += 80) {
		o.width = width;
		strbuf_clear(&out);
		report_render_text(&r, &o, &out);
		assert_harmless(false);
	}
	/* Nothing breaks the first line in two. */
	o.quiet = true;
	o.width = 0;
	strbuf_clear(&out);
	report_render_text(&r, &o, &out);
	ck_assert_ptr_eq(strchr(out.p, '\n'), out.p + out.n - 1);
	strbuf_clear(&out);
	report_render_json(&r, &out);
	assert_harmless(true);
	json_decref(parse());
	report_release(&r);
}
END_TEST

START_TEST(lost_findings_are_a_failure)
{
	struct report r;

	report_init(&r, "verify");
	r.coverage.lost = 1;
	report_finish(&r);
	ck_assert_int_eq(r.exit, 5);
	ck_assert(r.incomplete);
	report_release(&r);
}
END_TEST

START_TEST(coverage_stands_at_the_end_even_when_there_is_none)
{
	struct report r;
	struct render_options o = {0};

	report_init(&r, "verify");
	r.has_verdict = true;
	r.word = VERDICT_UNKNOWN;
	r.evidence = "nothing is known";
	report_finish(&r);
	report_render_text(&r, &o, &out);
	ck_assert_str_eq(
		strbuf_text(&out), "UNKNOWN  nothing is known\n\n  checked      nothing\n");
	report_release(&r);
}
END_TEST

START_TEST(columns_are_counted_in_characters)
{
	ck_assert_uint_eq(page_columns("abc"), 3);
	ck_assert_uint_eq(page_columns("schritt ü"), 9);
	ck_assert_uint_eq(page_columns("e\xcc\x81"), 1);
	ck_assert_uint_eq(page_columns("\xe6\xad\xa5"), 2);
	ck_assert_uint_eq(page_columns("\033"), 4);
	ck_assert_uint_eq(page_columns("\xed\xa0\x80"), 12);
}
END_TEST

START_TEST(numbers_and_commands_are_not_torn)
{
	struct page p = {.out = &out, .width = 12};

	page_flow(&p, 2, STYLE_PLAIN, "about 10 000 000 and `reprise ls CKPT` a");
	page_line(&p);
	ck_assert_str_eq(
		strbuf_text(&out), "about\n  10 000 000\n  and\n  `reprise ls CKPT`\n  a\n");
}
END_TEST

START_TEST(every_code_can_be_explained)
{
	struct render_options o = {.width = 80};

	for (int i = 0; i < FINDING_COUNT; i++) {
		strbuf_clear(&out);
		explain_render_text((enum finding_code)i, &o, &out);
		ck_assert_int_eq(strncmp(out.p, finding_rows[i].code, 4), 0);
		ck_assert_ptr_nonnull(strstr(out.p, "what to do\n"));
	}
	strbuf_clear(&out);
	explain_render_list(&o, &out);
	for (int i = 0; i < FINDING_COUNT; i++)
		ck_assert_ptr_nonnull(strstr(out.p, finding_rows[i].code));
}
END_TEST

START_TEST(findings_are_explained_by_code_id_and_family)
{
	struct render_options o = {.quiet = true};
	struct strbuf complaint;

	strbuf_init(&complaint, 1000);
	const char *const words[] = {"p101", "no_data_position", "T116"};
	ck_assert_int_eq(explain_words(words, 3, false, &o, &out, &complaint), 0);
	ck_assert_str_eq(strbuf_text(&out),
		"P101  no data position is saved and the checkpoint lies inside an epoch\n"
		"T116  the launch would not resume, or could not save\n");
	strbuf_clear(&out);
	ck_assert_int_eq(
		explain_words((const char *const[]){"O"}, 1, false, &o, &out, &complaint), 0);
	ck_assert_int_eq(strncmp(out.p, "O101", 4), 0);
	ck_assert_ptr_nonnull(strstr(out.p, "\nO106"));
	strbuf_clear(&out);
	ck_assert_int_eq(explain_words((const char *const[]){"optimiser_cold"}, 1, false, &o, &out,
				 &complaint),
		2);
	ck_assert_uint_eq(out.n, 0);
	ck_assert_str_eq(strbuf_text(&complaint),
		"no finding is called 'optimiser_cold'; did you mean OPTIMIZER_COLD?");
	strbuf_clear(&complaint);
	ck_assert_int_eq(explain_words((const char *const[]){"\033[2Jzzzzzzzzz"}, 1, false, &o,
				 &out, &complaint),
		2);
	ck_assert_str_eq(strbuf_text(&complaint),
		"no finding is called '\\x1b[2Jzzzzzzzzz'; `reprise explain` lists all");
	strbuf_release(&complaint);
}
END_TEST

Suite *suite_report(void)
{
	Suite *s = suite_create("report");
	TCase *t = tcase_create("report");

	tcase_add_checked_fixture(t, begin, end);
	tcase_add_test(t, a_report_reads_as_it_should);
	tcase_add_test(t, quiet_is_one_line);
	tcase_add_test(t, verbose_hides_nothing);
	tcase_add_test(t, colour_only_stresses);
	tcase_add_test(t, the_order_of_insertion_changes_no_byte);
	tcase_add_test(t, lines_stay_within_the_width);
	tcase_add_test(t, json_says_the_same);
	tcase_add_test(t, json_fits_its_schema);
	tcase_add_test(t, hostile_text_never_leaves_raw);
	tcase_add_test(t, lost_findings_are_a_failure);
	tcase_add_test(t, coverage_stands_at_the_end_even_when_there_is_none);
	tcase_add_test(t, columns_are_counted_in_characters);
	tcase_add_test(t, numbers_and_commands_are_not_torn);
	tcase_add_test(t, every_code_can_be_explained);
	tcase_add_test(t, findings_are_explained_by_code_id_and_family);
	suite_add_tcase(s, t);
	return s;
}
