/* SPDX-License-Identifier: MIT */
/* Tables, trainer states, wandb's and MLflow's files: those that real writers wrote, and damage. */
#define _GNU_SOURCE
#include "curve/read.h"
#include "support/bytes.h"
#include "support/curves.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>

Suite *suite_curve_files(void);

static struct curves c;

static void setup(void)
{
	curves_init(&c);
}

static void teardown(void)
{
	curves_release(&c);
}

static bool noted(const char *what)
{
	return strstr(c.log.files.items[0].note, what) != NULL;
}

/* Tables --------------------------------------------------------------------------------------- */

START_TEST(reads_a_table)
{
	curves_text(&c, "log.csv",
		"step,loss,lr,text\r\n1,2.5,1e-4,a\r\n2,nan,,\"b,\"\"c\"\"\"\r\n\r\n3,-inf,3e-4,\r\n");
	ck_assert_str_eq(curves_points(&c, "loss"), "1:2.5 2:nan 3:-inf");
	ck_assert_str_eq(curves_points(&c, "lr"), "1:0.0001 3:0.0003");
	ck_assert_uint_eq(c.log.lost, 0);
	ck_assert_uint_eq(c.log.files.items[0].lines, 4);
	ck_assert_uint_eq(c.log.points.items[1].at, 2);
	ck_assert_float_eq_tol(c.log.points.items[0].resolution, 0.1f, 1e-6f);
}
END_TEST

START_TEST(reads_separators_marks_and_decimal_commas)
{
	curves_text(&c, "a.csv", "\xef\xbb\xbf\"step\";\"train loss\"\n1;2,5\n2;1,234\n3;2.125\n");
	ck_assert_str_eq(curves_points(&c, "train loss"), "1:2.5 2:1.234 3:2.125");
	curves_text(&c, "a.tsv", "step\tloss\n1\t2.5\n1,000\t2,25\n");
	ck_assert_str_eq(curves_points(&c, "loss"), "1:2.5 1000:2.25");
	ck_assert_str_eq(curve_recognise("x", "a;b\n1;2\n", 8) ? "known" : "not", "not");
	ck_assert_str_eq(curve_recognise("x", "step;loss\n1;2\n", 14), "csv");
}
END_TEST

START_TEST(loses_rows_that_do_not_fit_the_header)
{
	curves_text(&c, "a.csv", "step,loss\n1,2\n2\n3,4,5\n4,\"open\n5,6\n6,7.2");
	ck_assert_str_eq(curves_points(&c, "loss"), "1:2 5:6 6:7.2");
	ck_assert_uint_eq(c.log.lost, 3);
	ck_assert(curves_lost(&c, "1 cells, but 2 in the header row"));
	ck_assert(curves_lost(&c, "a quote that is not closed"));
	curves_text(&c, "a.csv", "step,loss\n1,2\n2,");
	ck_assert_str_eq(curves_points(&c, "loss"), "1:2");
	ck_assert(c.log.files.items[0].torn);
}
END_TEST

START_TEST(takes_a_second_header_for_a_launch)
{
	curves_text(&c, "a.csv", "step,loss\n1,2\n2,3\nstep,loss\n2,4\nstep,lr,loss\n3,1,5\n");
	ck_assert_str_eq(curves_points(&c, "loss"), "1:2 2:3 2:4 3:5");
	ck_assert_str_eq(curves_marks(&c), "launch steps nan nan \"\" @2\n"
					   "launch steps nan nan \"\" @3\n");
	ck_assert_uint_eq(c.log.lost, 0);
}
END_TEST

START_TEST(reads_what_lightning_writes)
{
	curves_path(&c, "fixtures/curve/csv/lightning");
	ck_assert_str_eq(c.log.files.items[0].writer, "Lightning");
	ck_assert(noted("1 is added"));
	ck_assert_str_eq(curves_series(&c), "lr-AdamW lr steps ? 15\n"
					    "epoch epoch steps ? 18\n"
					    "train_loss_step loss steps step 12\n"
					    "val_loss valid-loss steps ? 3\n"
					    "train_loss_epoch loss steps epoch 3\n");
	ck_assert_str_eq(strchr(curves_points(&c, "val_loss"), ':') ? "16" : "", "16");
	ck_assert_int_eq(strncmp(curves_points(&c, "train_loss_step"), "4:3.476359 8:", 13), 0);
	/* Its event file says the same. */
	char *csv = strdup(curves_points(&c, "train_loss_step"));
	curves_path(&c, "fixtures/curve/tensorboard/lightning");
	ck_assert_str_eq(curves_points(&c, "train_loss_step"), csv);
	ck_assert_str_eq(c.log.files.items[0].writer, "Lightning");
	free(csv);
}
END_TEST

START_TEST(reads_what_keras_writes)
{
	curves_path(&c, "fixtures/curve/csv/keras");
	ck_assert_str_eq(
		curves_points(&c, "loss"), "0:2.200526 1:1.428621 2:0.9063635 3:0.5344555");
	ck_assert_int_eq(curves_find(&c, "loss")->unit, CURVE_EPOCHS);
	ck_assert_int_eq(curves_find(&c, "loss")->mean, CURVE_OF_EPOCH);
	ck_assert_int_eq(curves_find(&c, "val_loss")->role, CURVE_VALID_LOSS);
	curves_path(&c, "fixtures/curve/tensorboard/keras");
	ck_assert_str_eq(c.log.files.items[0].writer, "Keras");
	ck_assert_str_eq(
		curves_points(&c, "epoch_loss"), "0:2.200526 1:1.428621 2:0.9063635 3:0.5344555");
	ck_assert_int_eq(curves_find(&c, "epoch_loss")->unit, CURVE_EPOCHS);
}
END_TEST

START_TEST(reads_tables_of_other_writers)
{
	/* YOLO pads its names and numbers. */
	curves_text(&c, "results.csv",
		"                  epoch,             time,         train/box_loss,    metrics/mAP50(B)\n"
		"                      1,          3.25106,                1.16083,              0.5\n");
	ck_assert_str_eq(curves_points(&c, "train/box_loss"), "1:1.16083");
	ck_assert_int_eq(curves_find(&c, "train/box_loss")->role, CURVE_PART_LOSS);
	ck_assert(isnan(c.log.points.items[0].wall));
	/* A chart of wandb. */
	curves_text(&c, "wandb_export_2024.csv",
		"\"Step\",\"tiny - train/loss\",\"tiny - train/loss__MIN\",\"tiny - train/loss__MAX\"\n"
		"\"0\",\"2.5\",\"2.5\",\"2.5\"\n");
	ck_assert_str_eq(curves_points(&c, "tiny - train/loss"), "0:2.5");
	ck_assert_str_eq(curves_points(&c, "tiny - train/loss__MIN"), "");
	ck_assert_int_eq(curves_find(&c, "tiny - train/loss")->unit, CURVE_CALLS);
	/* TensorBoard's download of a series. */
	curves_text(&c, "run-tb-tag-train_loss.csv",
		"Wall time,Step,Value\n1700000000.25,10,2.5\n1700000001.25,20,2.25\n");
	ck_assert_str_eq(curves_points(&c, "train_loss"), "10:2.5 20:2.25");
	ck_assert_double_eq(c.log.points.items[0].wall, 1700000000.25);
	/* DeepSpeed's monitor. */
	curves_text(&c, "Train_Samples_train_loss.csv", "step,Train_Samples_train_loss\n64,2.5\n");
	ck_assert_str_eq(curves_points(&c, "Train_Samples_train_loss"), "64:2.5");
	ck_assert_int_eq(curves_find(&c, "Train_Samples_train_loss")->unit, CURVE_SAMPLES);
}
END_TEST

START_TEST(leaves_other_tables_alone)
{
	static const char *const tables[] = {"step,id\n1,2\n", "1,2,3\n", "name,size\na,1\n",
		"step,epoch\n1,2\n", "step,dp,id,loss\n1,0,5,2.5\n"};

	for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
		ck_assert_ptr_null(curve_recognise("x.csv", tables[i], strlen(tables[i])));
}
END_TEST

/* Trainer states ------------------------------------------------------------------------------- */

#define STATE                                                                                      \
	"fixtures/transformers-5.24.0/weight-decay-changed/out/checkpoint-12/trainer_state.json"

START_TEST(reads_a_trainer_state)
{
	curves_path(&c, STATE);
	ck_assert_str_eq(curves_points(&c, "loss"),
		"2:1.395693 4:1.347487 6:1.371297 8:1.381843 10:1.344506 12:1.334647");
	ck_assert_int_eq(curves_find(&c, "loss")->mean, CURVE_OF_INTERVAL);
	ck_assert_int_eq(curves_find(&c, "grad_norm")->role, CURVE_GRAD_NORM);
	ck_assert_int_eq(curves_find(&c, "eval_loss")->role, CURVE_VALID_LOSS);
	const char *marks = curves_marks(&c);
	ck_assert_ptr_nonnull(strstr(marks, "setting steps nan nan \"logging_steps=2\""));
	ck_assert_ptr_nonnull(strstr(marks, "saved steps 12 nan \"fixtures/transformers-5.24.0/"));
	ck_assert_uint_eq(c.log.lost, 0);
}
END_TEST

START_TEST(reads_the_states_of_a_run_in_the_order_of_their_steps)
{
	curves_path(&c, "fixtures/transformers-5.24.0/optimizer-lost/out");
	ck_assert_uint_eq(c.log.files.count, 2);
	ck_assert_ptr_nonnull(strstr(c.log.files.items[0].path, "checkpoint-12/"));
	ck_assert_ptr_nonnull(strstr(c.log.files.items[1].path, "checkpoint-16/"));
}
END_TEST

START_TEST(reads_the_row_that_ends_a_training)
{
	curves_text(&c, "trainer_state.json",
		"{\"global_step\": 4, \"log_history\": [{\"loss\": NaN, \"step\": 2, \"epoch\": 1.0},\n"
		"{\"loss\": 0.5, \"step\": 4}, {\"train_runtime\": 1.5, \"train_loss\": 0.75, \"step\": "
		"4}],\n\"max_steps\": 4}\n");
	ck_assert_str_eq(curves_points(&c, "loss"), "2:nan 4:0.5");
	ck_assert_str_eq(curves_points(&c, "train_loss"), "4:0.75");
	ck_assert_int_eq(curves_find(&c, "train_loss")->mean, CURVE_OF_ALL);
	ck_assert_str_eq(curves_marks(&c), "setting steps nan nan \"max_steps=4\" @4\n"
					   "finished steps 4 nan \"\" @4\n");
}
END_TEST

START_TEST(reads_what_is_there_of_a_torn_state)
{
	struct bytes b = bytes_of_file(STATE);
	size_t before = 0;

	for (size_t n = 700; n < b.n - 1; n++) {
		curves_bytes(&c, "trainer_state.json", b.p, n);
		ck_assert_uint_eq(c.log.lost, 1);
		ck_assert(c.log.files.items[0].torn);
		ck_assert_uint_ge(c.log.points.count, before);
		before = c.log.points.count;
	}
	bytes_release(&b);
}
END_TEST

START_TEST(says_that_a_state_is_too_long)
{
	c.limits.header_bytes = 1000;
	curves_path(&c, STATE);
	ck_assert_uint_eq(c.log.lost, 1);
	ck_assert(curves_lost(&c, "limit header-bytes"));
}
END_TEST

/* wandb ---------------------------------------------------------------------------------------- */

static const char *const wandb_runs[] = {"fixtures/curve/wandb/plain", "fixtures/curve/wandb/odd"};

START_TEST(reads_the_points_that_wandb_reads)
{
	curves_match(&c, wandb_runs[_i]);
}
END_TEST

START_TEST(reads_what_wandb_says_of_a_run)
{
	curves_path(&c, "fixtures/curve/wandb/plain");
	ck_assert_str_eq(c.log.files.items[0].writer, "Transformers");
	ck_assert_int_eq(curves_find(&c, "train/loss")->unit, CURVE_STEPS);
	ck_assert_int_eq(curves_find(&c, "train/loss")->mean, CURVE_OF_INTERVAL);
	const char *marks = curves_marks(&c);
	ck_assert_msg(strncmp(marks, "launch calls of the logger nan nan \"\" @0\n", 41) == 0, "%s",
		marks);
	ck_assert_msg(strstr(marks, "\"seed=42\" @0\n") != NULL, "%s", marks);
	ck_assert_msg(strstr(marks, "finished calls of the logger nan 0") != NULL, "%s", marks);
	ck_assert(c.log.marks.items[0].wall > 1.7e9);
}
END_TEST

#define WANDB_FILE "fixtures/curve/wandb/odd/run-odd.wandb"

START_TEST(reads_what_is_there_of_a_torn_run)
{
	struct bytes b = bytes_of_file(WANDB_FILE);
	size_t before = 0;

	for (size_t n = 7; n < b.n; n += n < 34000 && n > 31000 ? 1 : 11) {
		curves_bytes(&c, "run-odd.wandb", b.p, n);
		ck_assert_msg(c.log.lost == 0, "%zu bytes: %s", n, c.log.losses.items[0].what);
		ck_assert_uint_ge(c.log.points.count, before);
		before = c.log.points.count;
	}
	bytes_release(&b);
}
END_TEST

START_TEST(loses_a_block_by_a_flipped_bit)
{
	struct bytes b = bytes_of_file(WANDB_FILE);

	curves_bytes(&c, "x", b.p, b.n);
	size_t all = c.log.points.count;
	for (size_t at = 7; at < b.n; at += 3) {
		b.p[at] ^= 1u << at % 8;
		curves_bytes(&c, "x", b.p, b.n);
		b.p[at] ^= 1u << at % 8;
		ck_assert_msg(c.log.lost == 1 || c.log.files.items[0].torn, "byte %zu", at);
		ck_assert_uint_lt(c.log.points.count, all + 1);
	}
	bytes_release(&b);
}
END_TEST

START_TEST(reads_old_and_short_forms_of_wandb)
{
	curves_text(&c, "wandb-history.jsonl",
		"{\"loss\": 2.5, \"_runtime\": 3.5, \"_timestamp\": 1600000000, \"_step\": 0}\n"
		"{\"loss\": 2.25, \"_runtime\": 4.5, \"_timestamp\": 1600000001, \"_step\": 1}\n");
	ck_assert_str_eq(curves_points(&c, "loss"), "0:2.5 1:2.25");
	ck_assert_int_eq(curves_find(&c, "loss")->unit, CURVE_CALLS);
	ck_assert_double_eq(c.log.points.items[1].wall, 1600000001);
	curves_text(&c, "wandb-summary.json",
		"{\"train/loss\": 2.25, \"_timestamp\": 1600000001.5, \"_step\": 41, \"_wandb\": "
		"{\"runtime\": 5}}");
	ck_assert_str_eq(curves_points(&c, "train/loss"), "41:2.25");
	ck_assert(noted("last value of each series"));
}
END_TEST

/* MLflow --------------------------------------------------------------------------------------- */

static const char *const mlflow_runs[] = {
	"fixtures/curve/mlflow/2.22.2", "fixtures/curve/mlflow/3.5.1"};

START_TEST(reads_the_points_that_mlflow_reads)
{
	curves_match(&c, mlflow_runs[_i]);
	ck_assert_uint_eq(c.log.files.count, 3);
	ck_assert_int_eq(curves_find(&c, "train/loss")->role, CURVE_LOSS);
	ck_assert_double_eq(c.log.points.items[0].wall, 1700000001);
	ck_assert_str_eq(c.log.files.items[0].writer, "MLflow");
}
END_TEST

START_TEST(reads_old_and_damaged_files_of_mlflow)
{
	curves_text(&c, "loss", "1600000000000 2.5\n1600000001000 2.25\nwords\n1600000002000 2.1");
	ck_assert_str_eq(curves_points(&c, "loss"), "1:2.5 2:2.25");
	ck_assert_int_eq(curves_find(&c, "loss")->unit, CURVE_CALLS);
	ck_assert_uint_eq(c.log.lost, 2);
	ck_assert(c.log.files.items[0].torn);
	ck_assert_ptr_null(curve_recognise("loss", "1600000000000 2.5\n", 18));
	/* A model's copy of what its run has. */
	ck_assert_ptr_null(curve_recognise("loss", "1600000000000 2.5 1 abcdef\n", 27));
	ck_assert_str_eq(curve_recognise("loss", "1600000000000 2.5 1\n", 20), "mlflow");
}
END_TEST

Suite *suite_curve_files(void)
{
	Suite *s = suite_create("curve_files");
	TCase *t = tcase_create("all");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, reads_a_table);
	tcase_add_test(t, reads_separators_marks_and_decimal_commas);
	tcase_add_test(t, loses_rows_that_do_not_fit_the_header);
	tcase_add_test(t, takes_a_second_header_for_a_launch);
	tcase_add_test(t, reads_what_lightning_writes);
	tcase_add_test(t, reads_what_keras_writes);
	tcase_add_test(t, reads_tables_of_other_writers);
	tcase_add_test(t, leaves_other_tables_alone);
	tcase_add_test(t, reads_a_trainer_state);
	tcase_add_test(t, reads_the_states_of_a_run_in_the_order_of_their_steps);
	tcase_add_test(t, reads_the_row_that_ends_a_training);
	tcase_add_test(t, reads_what_is_there_of_a_torn_state);
	tcase_add_test(t, says_that_a_state_is_too_long);
	tcase_add_loop_test(t, reads_the_points_that_wandb_reads, 0, 2);
	tcase_add_test(t, reads_what_wandb_says_of_a_run);
	tcase_add_test(t, reads_what_is_there_of_a_torn_run);
	tcase_add_test(t, loses_a_block_by_a_flipped_bit);
	tcase_add_test(t, reads_old_and_short_forms_of_wandb);
	tcase_add_loop_test(t, reads_the_points_that_mlflow_reads, 0, 2);
	tcase_add_test(t, reads_old_and_damaged_files_of_mlflow);
	suite_add_tcase(s, t);
	return s;
}
