/* SPDX-License-Identifier: MIT */
/* What all readers of loss logs share: names, numbers, files in their order, limits. */
#define _GNU_SOURCE
#include "curve/number.h"
#include "curve/read.h"
#include "support/curves.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

Suite *suite_curve(void);

static struct curves c;
static char root[64];

static void setup(void)
{
	curves_init(&c);
	snprintf(root, sizeof root, "/tmp/reprise-curve-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(root));
}

static void teardown(void)
{
	char command[256];

	curves_release(&c);
	snprintf(command, sizeof command, "rm -rf %s", root);
	ck_assert_int_eq(system(command), 0);
}

static const char *make(const char *name, const char *text)
{
	static char path[256];

	snprintf(path, sizeof path, "%s/%s", root, name);
	FILE *f = fopen(path, "w");
	ck_assert_ptr_nonnull(f);
	ck_assert_uint_eq(fwrite(text, 1, strlen(text), f), strlen(text));
	ck_assert_int_eq(fclose(f), 0);
	return path;
}

/* Names ---------------------------------------------------------------------------------------- */

static const struct name_case {
	const char *name;
	enum curve_role role;
	int unit, mean; /* -1: not said */
	const char *source;
} name_cases[] = {
	/* Megatron-LM, Megatron-DeepSpeed */
	{"lm loss", CURVE_LOSS, -1, -1, ""},
	{"lm loss vs samples", CURVE_LOSS, CURVE_SAMPLES, -1, ""},
	{"lm loss vs tokens", CURVE_LOSS, CURVE_TOKENS, -1, ""},
	{"lm loss validation", CURVE_VALID_LOSS, -1, -1, ""},
	{"lm loss validation vs samples", CURVE_VALID_LOSS, CURVE_SAMPLES, -1, ""},
	{"lm loss validation ppl", CURVE_OTHER, -1, -1, ""},
	{"lm loss validation ppl vs samples", CURVE_OTHER, CURVE_SAMPLES, -1, ""},
	{"lm-loss-training/lm loss", CURVE_LOSS, -1, -1, ""},
	{"lm-loss-training/lm loss vs tokens", CURVE_LOSS, CURVE_TOKENS, -1, ""},
	{"lm-loss-validation/lm loss validation", CURVE_VALID_LOSS, -1, -1, ""},
	{"learning-rate", CURVE_LR, -1, -1, ""},
	{"learning-rate vs samples", CURVE_LR, CURVE_SAMPLES, -1, ""},
	{"learning-rate/learning-rate", CURVE_LR, -1, -1, ""},
	{"grad-norm", CURVE_GRAD_NORM, -1, -1, ""},
	{"grad-norm/grad-norm vs samples", CURVE_GRAD_NORM, CURVE_SAMPLES, -1, ""},
	{"loss-scale", CURVE_LOSS_SCALE, -1, -1, ""},
	{"loss-scale/loss-scale", CURVE_LOSS_SCALE, -1, -1, ""},
	{"batch-size", CURVE_BATCH, -1, -1, ""},
	{"num-zeros", CURVE_OTHER, -1, -1, ""},
	{"params-norm", CURVE_OTHER, -1, -1, ""},
	{"iteration-time", CURVE_SECONDS, -1, -1, ""},
	/* Transformers */
	{"train/loss", CURVE_LOSS, -1, -1, ""},
	{"train/grad_norm", CURVE_GRAD_NORM, -1, -1, ""},
	{"train/learning_rate", CURVE_LR, -1, -1, ""},
	{"train/epoch", CURVE_EPOCH_COUNT, -1, -1, ""},
	{"eval/loss", CURVE_VALID_LOSS, -1, -1, ""},
	{"eval_loss", CURVE_VALID_LOSS, -1, -1, ""},
	{"eval/runtime", CURVE_OTHER, -1, -1, ""},
	{"train/train_loss", CURVE_LOSS, -1, CURVE_OF_ALL, ""},
	{"train/train_runtime", CURVE_OTHER, -1, -1, ""},
	{"train/train_samples_per_second", CURVE_OTHER, -1, -1, ""},
	/* Lightning */
	{"train_loss_step", CURVE_LOSS, -1, CURVE_OF_STEP, ""},
	{"train/loss_epoch", CURVE_LOSS, -1, CURVE_OF_EPOCH, ""},
	{"val_loss_epoch", CURVE_VALID_LOSS, -1, CURVE_OF_EPOCH, ""},
	{"hp_metric", CURVE_OTHER, -1, -1, ""},
	{"lr-AdamW", CURVE_LR, -1, -1, ""},
	{"lr-AdamW/pg1", CURVE_LR, -1, -1, ""},
	{"grad_2.0_norm_total", CURVE_OTHER, -1, -1, ""},
	/* DeepSpeed */
	{"Train/Samples/train_loss", CURVE_LOSS, CURVE_SAMPLES, CURVE_OF_STEP, ""},
	{"Train/Samples/lr", CURVE_LR, CURVE_SAMPLES, CURVE_OF_STEP, ""},
	{"Train/Samples/loss_scale", CURVE_LOSS_SCALE, CURVE_SAMPLES, CURVE_OF_STEP, ""},
	{"Train/Samples/elapsed_time_ms_forward", CURVE_OTHER, CURVE_SAMPLES, -1, ""},
	/* torchtitan */
	{"loss_metrics/global_avg_loss", CURVE_LOSS, -1, -1, ""},
	{"loss_metrics/global_max_loss", CURVE_OTHER, -1, -1, ""},
	{"validation_metrics/loss", CURVE_VALID_LOSS, -1, -1, ""},
	{"throughput(tps)", CURVE_OTHER, -1, -1, ""},
	/* Composer, OLMo, OLMo-core */
	{"loss/train/total", CURVE_LOSS, -1, CURVE_OF_STEP, ""},
	{"metrics/train/LanguageCrossEntropy", CURVE_OTHER, -1, -1, ""},
	{"metrics/eval/LanguagePerplexity", CURVE_OTHER, -1, -1, ""},
	{"time/batch", CURVE_OTHER, -1, -1, ""},
	{"time/token", CURVE_TOKEN_COUNT, -1, -1, ""},
	{"train/CrossEntropyLoss", CURVE_LOSS, -1, -1, ""},
	{"train/Perplexity", CURVE_OTHER, -1, -1, ""},
	{"train/CE loss", CURVE_LOSS, -1, -1, ""},
	{"train/Z loss", CURVE_PART_LOSS, -1, -1, ""},
	{"train/PPL", CURVE_OTHER, -1, -1, ""},
	{"optim/total grad norm", CURVE_GRAD_NORM, -1, -1, ""},
	{"optim/total_grad_norm", CURVE_GRAD_NORM, -1, -1, ""},
	{"optim/learning_rate_group0", CURVE_LR, -1, -1, ""},
	{"optim/LR (group 0)", CURVE_LR, -1, -1, ""},
	{"optim/step skipped", CURVE_SKIP_COUNT, -1, -1, ""},
	{"eval/lm/c4-validation/CE loss", CURVE_VALID_LOSS, -1, -1, ""},
	/* GPT-NeoX, nanotron, nanoGPT */
	{"train/lm_loss", CURVE_LOSS, -1, -1, ""},
	{"lm_loss", CURVE_LOSS, -1, -1, ""},
	{"validation/lm_loss", CURVE_VALID_LOSS, -1, -1, ""},
	{"val/loss", CURVE_VALID_LOSS, -1, -1, ""},
	/* Keras, YOLO */
	{"epoch_loss", CURVE_LOSS, CURVE_EPOCHS, CURVE_OF_EPOCH, ""},
	{"epoch_val_loss", CURVE_VALID_LOSS, CURVE_EPOCHS, CURVE_OF_EPOCH, ""},
	{"epoch_accuracy", CURVE_OTHER, CURVE_EPOCHS, -1, ""},
	{"batch_loss", CURVE_LOSS, -1, CURVE_OF_EPOCH, ""},
	{"train/box_loss", CURVE_PART_LOSS, -1, -1, ""},
	{"val/box_loss", CURVE_VALID_LOSS, -1, -1, ""},
	{"lr/pg0", CURVE_LR, -1, -1, ""},
	{"x/lr0", CURVE_OTHER, -1, -1, ""},
	/* Of one data source */
	{"loss/web", CURVE_SOURCE_LOSS, -1, -1, "web"},
	{"train/loss_code", CURVE_SOURCE_LOSS, -1, -1, "code"},
	{"loss_per_domain/Law_US", CURVE_SOURCE_LOSS, -1, -1, "Law_US"},
	{"val/loss_code", CURVE_VALID_LOSS, -1, -1, ""},
	/* Not the loss */
	{"loss_ema", CURVE_OTHER, -1, -1, ""},
	{"max_loss", CURVE_OTHER, -1, -1, ""},
	{"moe aux loss", CURVE_PART_LOSS, -1, -1, ""},
	{"text_loss", CURVE_PART_LOSS, -1, -1, ""},
	{"loss_weight", CURVE_OTHER, -1, -1, ""},
	{"gloss", CURVE_OTHER, -1, -1, ""},
	{"", CURVE_OTHER, -1, -1, ""},
	/* A chart's export */
	{"tiny-run - train/loss", CURVE_LOSS, -1, -1, ""},
};

START_TEST(knows_what_writers_call_their_series)
{
	const struct name_case *n = &name_cases[_i];
	struct curve_meaning m = curve_meaning_of(slice_of(n->name));

	ck_assert_msg(m.role == n->role, "%s: %s", n->name, curve_role_name(m.role));
	ck_assert_msg((int)m.unit == (n->unit < 0 ? CURVE_UNITS : n->unit), "%s: unit %d", n->name,
		(int)m.unit);
	ck_assert_msg(m.says_mean ? (int)m.mean == n->mean : n->mean == -1, "%s: mean %d", n->name,
		(int)m.mean);
	ck_assert_msg(slice_is(m.source, n->source), "%s: source %.*s", n->name, (int)m.source.n,
		m.source.p);
}
END_TEST

START_TEST(says_roles_as_the_user_types_them)
{
	for (unsigned i = 0; i < CURVE_ROLES; i++) {
		enum curve_role role = (enum curve_role)i;
		ck_assert_int_eq(curve_role_named(slice_of(curve_role_name(role))), role);
	}
	ck_assert_int_eq(curve_role_named(SLICE("grad-norm")), CURVE_GRAD_NORM);
	ck_assert_int_eq(curve_role_named(SLICE("nothing")), CURVE_OTHER);
	ck_assert_str_eq(curve_role_unit(CURVE_SECONDS), "s");
}
END_TEST

/* Numbers -------------------------------------------------------------------------------------- */

static const struct number_case {
	const char *text;
	bool suffixes, ok;
	double value;
	float resolution;
} number_cases[] = {
	{"1.943883E+00", false, true, 1.943883, 1e-6f},
	{"2.5", false, true, 2.5, 0.1f},
	{"-3e-4", false, true, -3e-4, 1e-4f},
	{"+7", false, true, 7, 1},
	{".5", false, true, .5, .1f},
	{"5.", false, true, 5, 1},
	{"1,234.5", false, true, 1234.5, .1f},
	{"12,345,678", false, true, 12345678, 1},
	{"1,23", false, false, 0, 0},
	{"1,2345", false, false, 0, 0},
	{",123", false, false, 0, 0},
	{"1.05M", true, true, 1050000, 1e4f},
	{"1.05M", false, false, 0, 0},
	{"3K", true, true, 3000, 1000},
	{"2.5B", true, true, 2.5e9, 1e8f},
	{"1T", true, true, 1e12, 1e12f},
	{"1Q", true, false, 0, 0},
	{"0.30000000000000004", false, true, 0.30000000000000004, 1e-17f},
	{"123456789012345678901234567890", false, true, 1.2345678901234568e29, 1},
	{"1e400", false, true, INFINITY, INFINITY},
	{"1e-400", false, true, 0, 0},
	{"9007199254740993", false, true, 9007199254740992.0, 1},
	{"1,234,567,890,123,456,789,012", false, true, 1.2345678901234567e21, 1},
	{"inf", false, true, INFINITY, 0},
	{"-Infinity", false, true, -INFINITY, 0},
	{"", false, false, 0, 0},
	{"-", false, false, 0, 0},
	{".", false, false, 0, 0},
	{"1e", false, false, 0, 0},
	{"1.2.3", false, false, 0, 0},
	{"0x10", false, false, 0, 0},
	{"1 ", false, false, 0, 0},
	{"infinit", false, false, 0, 0},
};

START_TEST(reads_numbers_as_people_print_them)
{
	const struct number_case *n = &number_cases[_i];
	double value = -1;
	float resolution = -1;

	ck_assert_msg(curve_number(slice_of(n->text), n->suffixes, &value, &resolution) == n->ok,
		"%s", n->text);
	if (!n->ok)
		return;
	ck_assert_msg(value == n->value, "%s: %.17g", n->text, value);
	ck_assert_msg(resolution == n->resolution || fabsf(resolution / n->resolution - 1) < 1e-6f,
		"%s: resolution %g", n->text, (double)resolution);
}
END_TEST

/* A number within a line, where digits are taken eight at a time: what stands behind it is none of
 * it. */
START_TEST(reads_numbers_of_lines_as_those_of_texts)
{
	static const char behind[] = " ,|}\n";
	char line[128 + LINES_PADDING];
	double value, whole;
	float resolution, same;

	srand48(5);
	for (int i = 0; i < 50000; i++) {
		double v = ldexp(drand48() - 0.5, (int)(lrand48() % 120) - 60);
		memset(line, '\n', sizeof line);
		int digits = (int)(lrand48() % 22);
		int n = i % 2 ? snprintf(line, 100, "%.*g", digits, v)
			      : snprintf(line, 100, "%.*f", digits, v);
		line[n] = behind[lrand48() % 5];
		struct slice text = {line, (size_t)n};
		ck_assert(curve_number(text, false, &value, &resolution));
		ck_assert(number_whole(text, &whole, &same));
		if (value != whole || resolution != same || value != strtod(line, NULL))
			ck_abort_msg("%.*s: %a and %a", n, line, value, whole);
	}
	for (size_t i = 0; i < sizeof number_cases / sizeof *number_cases; i++) {
		struct slice text = slice_of(number_cases[i].text);
		memset(line, '\n', sizeof line);
		memcpy(line, text.p, text.n);
		text.p = line;
		bool ok = curve_number(text, false, &value, &resolution);
		ck_assert_int_eq(number_whole(text, &whole, &same), ok);
		ck_assert(!ok || (value == whole && resolution == same));
	}
}
END_TEST

START_TEST(reads_nan_in_any_letters)
{
	static const char *const texts[] = {"nan", "NaN", "NAN", "-nan"};
	double value;
	float resolution;

	for (size_t i = 0; i < 4; i++) {
		ck_assert(curve_number(slice_of(texts[i]), false, &value, &resolution));
		ck_assert(isnan(value));
	}
}
END_TEST

/* JSON lines ----------------------------------------------------------------------------------- */

START_TEST(reads_json_lines)
{
	curves_text(&c, "log.jsonl",
		"{\"step\": 1, \"loss\": 2.5, \"lr\": 1e-4, \"note\": \"warm\", \"time\": 1700000000.5}\n"
		"{\"step\": 2, \"loss\": NaN, \"lr\": 2e-4, \"train\": {\"grad_norm\": 1.5, \"deep\": "
		"{\"loss\": 9}}}\n"
		"\n"
		"{\"step\": 3, \"loss\": \"2.25\", \"ids\": [1, 2], \"eval_loss\": 3}\n");
	ck_assert_str_eq(curves_points(&c, "loss"), "1:2.5 2:nan 3:2.25");
	ck_assert_str_eq(curves_points(&c, "lr"), "1:0.0001 2:0.0002");
	ck_assert_str_eq(curves_points(&c, "train/grad_norm"), "2:1.5");
	ck_assert_str_eq(curves_series(&c), "loss loss steps ? 3\n"
					    "lr lr steps ? 2\n"
					    "train/grad_norm grad-norm steps ? 1\n"
					    "eval_loss valid-loss steps ? 1\n");
	ck_assert_double_eq(c.log.points.items[0].wall, 1700000000.5);
	ck_assert(isnan(c.log.points.items[2].wall));
	ck_assert_uint_eq(c.log.points.items[0].at, 1);
	ck_assert_uint_eq(c.log.files.items[0].lines, 3);
	ck_assert_uint_eq(c.log.lost, 0);
}
END_TEST

START_TEST(takes_the_best_of_several_positions)
{
	curves_text(&c, "log.jsonl",
		"{\"epoch\": 0.5, \"_step\": 7, \"trainer/global_step\": 9, \"loss\": 2}\n"
		"{\"epoch\": 0.5, \"_step\": 8, \"consumed_samples\": 640, \"loss\": 3}\n"
		"{\"epoch\": 0.5, \"_step\": 9, \"loss\": 4}\n");
	ck_assert_str_eq(curves_points(&c, "loss"), "10:2 640:3 9:4");
	ck_assert_str_eq(curves_series(&c), "epoch epoch steps ? 1\n"
					    "_step other steps ? 1\n"
					    "loss loss steps ? 1\n"
					    "epoch epoch samples ? 1\n"
					    "_step other samples ? 1\n"
					    "loss loss samples ? 1\n"
					    "epoch epoch calls of the logger ? 1\n"
					    "loss loss calls of the logger ? 1\n");
}
END_TEST

START_TEST(says_what_it_could_not_read_and_reads_the_rest)
{
	c.limits.line_bytes = 64;
	curves_text(&c, "log.jsonl",
		"{\"step\": 1, \"loss\": 2.5}\n"
		"garbage\n"
		"{\"step\": 2, \"loss\": 2.5} {\"step\": 3}\n"
		"{\"step\": 4, \"a long key that goes on and on and on and on\": 1, \"loss\": 4}\n"
		"{\"step\": 5, \"loss\": 2.25}\n"
		"{\"step\": 6, \"lo");
	ck_assert_str_eq(curves_points(&c, "loss"), "1:2.5 5:2.25");
	ck_assert_uint_eq(c.log.lost, 4);
	ck_assert(curves_lost(&c, "longer than 64 bytes"));
	ck_assert(curves_lost(&c, "torn"));
	ck_assert_uint_eq(c.log.losses.items[0].at, 2);
	ck_assert(c.log.files.items[0].torn);
}
END_TEST

START_TEST(reads_lines_among_bytes_of_any_kind)
{
	static const char text[] =
		"{\"step\": 1, \"loss\": 2.5, \"caf\xe9\": 1, \"time\": 1700000005}\n"
		"\0\0\0\0\n"
		"{\"step\": 2, \"loss\": 2.25, \"note\": \"a\0b\"}\n"
		"\x1b[32m{\"step\": 3, \"loss\": 2}\n"
		"{\"step\": 4, \"loss\": 1.5, \"time\": 1600000000}\n"
		"{\"step\": 2, \"loss\": 9, \"time\": -5e300}\n";

	curves_bytes(&c, "log.jsonl", text, sizeof text - 1);
	ck_assert_str_eq(curves_points(&c, "loss"), "1:2.5 4:1.5 2:9");
	ck_assert_uint_eq(c.log.lost, 3);
	/* Clocks that jump are told as they are; what is no time is none. */
	ck_assert_double_eq(c.log.points.items[1].wall, 1600000000);
	ck_assert(isnan(c.log.points.items[2].wall));
}
END_TEST

START_TEST(leaves_sample_logs_to_the_ledger)
{
	static const char *const logs[] = {"{\"reprise\":\"ledger/1\"}\n{\"step\":1,\"loss\":2}\n",
		"{\"step\":1,\"dp\":0,\"ids\":[1,2],\"loss\":2.5}\n",
		"{\"attempt\":1}\n{\"step\":1,\"loss\":2}\n"};

	for (size_t i = 0; i < sizeof logs / sizeof *logs; i++)
		ck_assert_ptr_null(curve_recognise("x.jsonl", logs[i], strlen(logs[i])));
	ck_assert_str_eq(curve_recognise("x", "{\"step\":1,\"loss\":2}\n", 21), "jsonl");
}
END_TEST

/* Files ---------------------------------------------------------------------------------------- */

START_TEST(reads_a_folder_in_natural_order_and_each_file_once)
{
	char twice[256];

	make("part-10.jsonl", "{\"step\": 3, \"loss\": 3}\n");
	make("part-9.jsonl", "{\"step\": 1, \"loss\": 1}\n");
	make("readme.md", "# Nothing to see\n");
	snprintf(twice, sizeof twice, "%s/part-10.jsonl", root);
	const char *paths[] = {root, twice};
	ck_assert_int_eq(curve_open(&c.log, paths, 2, &c.options, &c.e), RP_OK);
	ck_assert_str_eq(curves_points(&c, "loss"), "1:1 3:3");
	ck_assert_uint_eq(c.log.files.count, 2);
	ck_assert_uint_eq(c.log.series.count, 2);
	ck_assert_uint_eq(c.log.lost, 0);
}
END_TEST

START_TEST(reads_what_it_can_of_several_files)
{
	char good[256], bad[256];

	snprintf(bad, sizeof bad, "%s", make("empty.jsonl", ""));
	snprintf(good, sizeof good, "%s", make("good.jsonl", "{\"step\": 3, \"loss\": 3}\n"));
	const char *paths[] = {bad, good};
	ck_assert_int_eq(curve_open(&c.log, paths, 2, &c.options, &c.e), RP_OK);
	ck_assert_str_eq(curves_points(&c, "loss"), "3:3");
	ck_assert_uint_eq(c.log.lost, 1);
	ck_assert_str_eq(c.log.losses.items[0].what, "is empty");
	ck_assert_str_eq(c.log.files.items[c.log.losses.items[0].file].path, bad);
}
END_TEST

static const struct refused {
	const char *text, *what;
} refused[] = {
	{"", "is empty"},
	{"just words\n", "is no loss log"},
	{"\xff\xfe{", "UTF-16"},
	{"\x1f\x8b\x08", "gzip"},
	{"\xfd"
	 "7zXZ",
		"xz"},
};

START_TEST(says_why_a_file_is_no_log)
{
	struct slice text = slice_of(refused[_i].text);

	ck_assert_int_lt(curve_open_memory(&c.log, "x", text, &c.options, &c.e), 0);
	ck_assert_msg(strstr(c.e.text, refused[_i].what), "%s", c.e.text);
	ck_assert_uint_eq(c.log.files.count, 0);
}
END_TEST

START_TEST(finds_nothing_in_a_folder_without_logs)
{
	const char *path = root;

	make("readme.md", "words\n");
	ck_assert_int_eq(curve_open(&c.log, &path, 1, &c.options, &c.e), RP_E_NOT_FOUND);
	ck_assert_str_eq(c.e.text, "no loss log in 1 file");
}
END_TEST

/* Limits --------------------------------------------------------------------------------------- */

START_TEST(counts_the_points_that_do_not_fit)
{
	c.limits.curve_points = 2;
	curves_text(&c, "x.jsonl",
		"{\"step\":1,\"loss\":1}\n{\"step\":2,\"loss\":2}\n{\"step\":3,\"loss\":3}\n");
	ck_assert_str_eq(curves_points(&c, "loss"), "1:1 2:2");
	ck_assert_uint_eq(c.log.dropped, 1);
	ck_assert_uint_eq(c.log.files.items[0].points, 3);
}
END_TEST

START_TEST(keeps_series_of_unknown_roles_only_when_asked)
{
	const struct curve_pattern pattern = {.name = "loss", .pattern = "fancy"};
	const char *text = "{\"step\":1,\"loss\":1,\"fancy\":3}\n";

	curves_text(&c, "x.jsonl", text);
	ck_assert_str_eq(curves_points(&c, "fancy"), "");
	ck_assert_uint_eq(curves_find(&c, "fancy")->points, 1);
	c.options.others = true;
	curves_text(&c, "x.jsonl", text);
	ck_assert_str_eq(curves_points(&c, "fancy"), "1:3");
	c.options.others = false;
	c.options.patterns = &pattern;
	c.options.pattern_count = 1;
	curves_text(&c, "x.jsonl", text);
	ck_assert_str_eq(curves_points(&c, "fancy"), "1:3");
	ck_assert_int_eq(curves_find(&c, "fancy")->role, CURVE_LOSS);
}
END_TEST

Suite *suite_curve(void)
{
	Suite *s = suite_create("curve");
	TCase *t = tcase_create("all");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(
		t, knows_what_writers_call_their_series, 0, sizeof name_cases / sizeof *name_cases);
	tcase_add_test(t, says_roles_as_the_user_types_them);
	tcase_add_loop_test(t, reads_numbers_as_people_print_them, 0,
		sizeof number_cases / sizeof *number_cases);
	tcase_add_test(t, reads_numbers_of_lines_as_those_of_texts);
	tcase_add_test(t, reads_nan_in_any_letters);
	tcase_add_test(t, reads_json_lines);
	tcase_add_test(t, takes_the_best_of_several_positions);
	tcase_add_test(t, says_what_it_could_not_read_and_reads_the_rest);
	tcase_add_test(t, reads_lines_among_bytes_of_any_kind);
	tcase_add_test(t, leaves_sample_logs_to_the_ledger);
	tcase_add_test(t, reads_a_folder_in_natural_order_and_each_file_once);
	tcase_add_test(t, reads_what_it_can_of_several_files);
	tcase_add_loop_test(t, says_why_a_file_is_no_log, 0, sizeof refused / sizeof *refused);
	tcase_add_test(t, finds_nothing_in_a_folder_without_logs);
	tcase_add_test(t, counts_the_points_that_do_not_fit);
	tcase_add_test(t, keeps_series_of_unknown_roles_only_when_asked);
	suite_add_tcase(s, t);
	return s;
}
