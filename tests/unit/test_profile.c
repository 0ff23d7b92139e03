/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "profile/candidate.h"

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profile/collect.h"

Suite *suite_profile(void);

static const struct {
	const char *name;
	int64_t step;
	int32_t rank;
} names[] = {
	{"checkpoint-30", 30, -1},
	{"step_00040.pt", 40, -1},
	{"iter_0000010", 10, -1},
	{"global_step6210", 6210, -1},
	{"epoch=1-step=12.ckpt", 12, -1},
	{"ep3-ba100-rank7.pt", 100, 7},
	{"step_00040_rank1.pt", 40, 1},
	{"rng_state_3.pth", -1, 3},
	{"random_states_0.pkl", -1, 0},
	{"rank12.pt", -1, 12},
	{"model_7000.pt", 7000, -1},
	{"7000", 7000, -1},
	{"model.pt", -1, -1},
	{"ckpt.pt", -1, -1},
	{"last.ckpt", -1, -1},
	{"epoch_3", -1, -1},
	{"version_2", -1, -1},
	{"model-00001-of-00003.safetensors", -1, -1},
	{"step99999999999999999999999", -1, -1},
	{"resnet50.pth", -1, -1},
	{"misstep3.pt", -1, -1},
	{"epoch=9-val_loss=0.31.ckpt", -1, -1},
	{"epoch-003-val_loss=0.61.ckpt", -1, -1},
	{"model-03-1.6041.pt", -1, -1},
};

START_TEST(names_tell_steps_from_ranks_shards_and_epochs)
{
	ck_assert_msg(step_in_name(names[_i].name) == names[_i].step, "%s: step %lld",
		names[_i].name, (long long)step_in_name(names[_i].name));
	ck_assert_msg(rank_in_name(names[_i].name) == names[_i].rank, "%s: rank %d", names[_i].name,
		rank_in_name(names[_i].name));
}
END_TEST

static const struct {
	const char *name;
	int64_t place, run;
} places[] = {
	{"epoch_3.pt", 3, -1},
	{"ep=12.ckpt", 12, -1},
	{"e3_s120.pt", 3, -1},
	{"model_lr1e-3.pt", -1, -1},
	{"model-03-1.6041.pt", 3, -1},
	{"epoch-003-val_loss=0.61.ckpt", 3, -1},
	{"2026-03-01_12-30-00.pt", 20260301123000, -1},
	{"fold2_epoch_4.pt", 4, 2},
	{"layer_03.pt", -1, -1},
	{"consolidated.00.pth", -1, -1},
	{"epoch99999999999999999999.pt", -1, -1},
	{"", -1, -1},
};

START_TEST(names_give_places_in_a_series)
{
	ck_assert_msg(place_in_name(places[_i].name) == places[_i].place, "%s: place %lld",
		places[_i].name, (long long)place_in_name(places[_i].name));
	ck_assert_msg(run_in_name(places[_i].name) == places[_i].run, "%s: run %lld",
		places[_i].name, (long long)run_in_name(places[_i].name));
}
END_TEST

static char folder[64];
static struct limits limits;
static struct listing listing;
static struct candidates candidates;
static struct state state;
static struct findings findings;

static void setup(void)
{
	strcpy(folder, "/tmp/reprise-test-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	limits = limits_default();
	state_init(&state, &limits);
	findings_init(&findings);
}

static void teardown(void)
{
	char command[128];

	state_release(&state);
	findings_release(&findings);
	candidates_release(&candidates);
	listing_close(&listing);
	snprintf(command, sizeof command, "rm -rf %s", folder);
	ck_assert_int_eq(system(command), 0);
}

/* Make a file with these few bytes, and the folders above it. */
static void make(const char *path, const char *text)
{
	char whole[256];

	snprintf(whole, sizeof whole, "%s/%s", folder, path);
	for (char *p = whole + strlen(folder) + 1; (p = strchr(p, '/')); p++) {
		*p = '\0';
		mkdir(whole, 0777);
		*p = '/';
	}
	FILE *f = fopen(whole, "w");
	ck_assert_ptr_nonnull(f);
	fputs(text, f);
	fclose(f);
}

static int find(void)
{
	ck_assert_int_eq(listing_open(&listing, folder, 8, &limits, NULL), RP_OK);
	return candidates_find(&candidates, &listing, NULL);
}

START_TEST(a_trainers_output_with_the_final_model_in_it_is_a_root)
{
	make("model.safetensors", "x");
	make("checkpoint-10/trainer_state.json", "{}");
	make("checkpoint-9/trainer_state.json", "{}");
	ck_assert_int_eq(find(), RP_OK);
	ck_assert(candidates.root);
	ck_assert_uint_eq(candidates.list.count, 2);
	ck_assert_int_eq(candidates.list.items[0].step, 9);
	ck_assert_str_eq(candidates.list.items[1].profile->name, "transformers");
}
END_TEST

START_TEST(a_checkpoint_with_folders_of_steps_in_it_is_one_checkpoint)
{
	make("trainer_state.json", "{}");
	make("global_step30/zero_pp_rank_0.pt", "x");
	ck_assert_int_eq(find(), RP_OK);
	ck_assert(!candidates.root);
	ck_assert_uint_eq(candidates.list.count, 1);
}
END_TEST

START_TEST(files_of_one_family_are_checkpoints_and_their_ranks_belong_together)
{
	make("step_00010_rank0.pt", "x");
	make("step_00010_rank1.pt", "x");
	make("step_00020_rank0.pt", "x");
	make("train.log", "x");
	ck_assert_int_eq(find(), RP_OK);
	ck_assert(candidates.root);
	ck_assert_uint_eq(candidates.list.count, 2);
	ck_assert_uint_eq(candidates.list.items[0].file_count, 2);
	ck_assert_uint_eq(candidates.list.items[1].file_count, 1);
}
END_TEST

START_TEST(folders_of_ranks_hold_the_parts_of_one_checkpoint)
{
	make("rank_0/step_5.pt", "x");
	make("rank_0/step_9.pt", "x");
	make("rank_1/step_5.pt", "x");
	make("rank_1/notes.txt", "x");
	ck_assert_int_eq(find(), RP_OK);
	ck_assert(candidates.root);
	ck_assert_uint_eq(candidates.list.count, 2);
	const struct candidate *five = &candidates.list.items[0], *nine = &candidates.list.items[1];
	ck_assert_int_eq(five->step, 5);
	ck_assert_uint_eq(five->file_count, 2);
	ck_assert_uint_eq(nine->file_count, 1);
	ck_assert_uint_eq(five->ranks, 2);
	ck_assert_uint_eq(nine->ranks, 2);
	ck_assert_str_eq(five->name, "step_5.pt");
	ck_assert_str_eq(five->folder, "");
	ck_assert_str_eq(
		candidate_member(five, &listing.files.items[five->files[1]]), "rank_1/step_5.pt");
	ck_assert(strstr(five->path, "/rank_0/step_5.pt") != NULL);
}
END_TEST

START_TEST(folders_of_ranks_without_steps_are_the_checkpoint_that_they_lie_in)
{
	make("run/rank0/state.pt", "x");
	make("run/rank1/state.pt", "x");
	make("run/rank1/more.pt", "x");
	ck_assert_int_eq(find(), RP_OK);
	ck_assert_uint_eq(candidates.list.count, 1);
	ck_assert_uint_eq(candidates.list.items[0].file_count, 3);
	ck_assert_str_eq(candidates.list.items[0].name, "run");
}
END_TEST

START_TEST(folders_whose_files_are_not_called_alike_are_no_ranks_of_one)
{
	make("rank0/a.pt", "x");
	make("rank1/b.pt", "x");
	ck_assert_int_eq(find(), RP_OK);
	ck_assert_uint_eq(candidates.list.count, 2);
}
END_TEST

START_TEST(rank_files_without_steps_are_one_checkpoint)
{
	make("rank0.pt", "x");
	make("rank1.pt", "x");
	ck_assert_int_eq(find(), RP_OK);
	ck_assert(!candidates.root);
	ck_assert_uint_eq(candidates.list.items[0].file_count, 2);
}
END_TEST

START_TEST(a_pointer_is_read_and_a_large_or_binary_one_is_not)
{
	make("step_1/model.pt", "x");
	make("step_2/model.pt", "x");
	make("latest", "step_1\n");
	make("latest.txt", "a\nb\n");
	ck_assert_int_eq(find(), RP_OK);
	ck_assert_uint_eq(candidates.pointers.count, 1);
	ck_assert_str_eq(candidates.pointers.items[0].target, "step_1");
}
END_TEST

START_TEST(a_folder_without_checkpoints_says_so)
{
	make("notes.txt", "x");
	make("src/main.py", "x");
	ck_assert_int_eq(find(), RP_E_NOT_FOUND);
}
END_TEST

START_TEST(an_interrupted_saves_own_name_gives_it_away)
{
	make("checkpoint-10/trainer_state.json", "{}");
	make("tmp-checkpoint-20/model.safetensors", "x");
	ck_assert_int_eq(find(), RP_OK);
	ck_assert_uint_eq(candidates.list.count, 2);
	ck_assert(candidates.list.items[1].leftover);
	ck_assert(!candidates.list.items[0].leftover);
}
END_TEST

START_TEST(a_last_file_beside_a_numbered_one_is_a_checkpoint_of_its_own)
{
	make("version_0/hparams.yaml", "lr: 1");
	make("version_0/checkpoints/epoch=0-step=12.ckpt", "x");
	make("version_0/checkpoints/last.ckpt", "x");
	ck_assert_int_eq(find(), RP_OK);
	ck_assert(candidates.root);
	ck_assert_uint_eq(candidates.list.count, 2);
	for (size_t i = 0; i < 2; i++) {
		ck_assert_uint_eq(candidates.list.items[i].file_count, 1);
		ck_assert_str_eq(candidates.list.items[i].folder, "version_0/checkpoints");
	}
	ck_assert_int_eq(candidates.list.items[0].step, -1);
	ck_assert_int_eq(candidates.list.items[1].step, 12);
}
END_TEST

START_TEST(files_of_different_epochs_are_checkpoints_without_a_step)
{
	make("epoch=9-val_loss=0.31.ckpt", "x");
	make("epoch=10-val_loss=0.3.ckpt", "x");
	ck_assert_int_eq(find(), RP_OK);
	ck_assert_uint_eq(candidates.list.count, 2);
	ck_assert_str_eq(candidates.list.items[1].name, "epoch=10-val_loss=0.3.ckpt");
	ck_assert_int_eq(candidates.list.items[1].step, -1);
}
END_TEST

START_TEST(a_model_that_is_called_the_best_beside_its_optimizer_is_no_checkpoint_of_its_own)
{
	make("best_model.pt", "x");
	make("optimizer.pt", "x");
	ck_assert_int_eq(find(), RP_OK);
	ck_assert(!candidates.root);
	ck_assert_uint_eq(candidates.list.items[0].file_count, 2);
}
END_TEST

START_TEST(numbered_files_of_a_known_layout_are_its_parts)
{
	make("step_16/random_states_0.pkl", "x");
	make("step_16/custom_checkpoint_0.pkl", "x");
	make("step_16/custom_checkpoint_1.pkl", "x");
	ck_assert_int_eq(find(), RP_OK);
	ck_assert_uint_eq(candidates.list.count, 1);
	ck_assert_uint_eq(candidates.list.items[0].file_count, 3);
	ck_assert_str_eq(candidates.list.items[0].profile->name, "accelerate");
}
END_TEST

static const struct {
	const char *path;
	int64_t launch;
} launches[] = {
	{"version_2", 2},
	{"logs/version_13/checkpoints", 13},
	{"version_1/version_4", 4},
	{"version_2b/x", -1},
	{"conversion_2", -1},
	{"version_", -1},
	{"", -1},
};

START_TEST(launches_are_told_by_the_number_of_their_folder)
{
	size_t start = 0, end = 0;

	ck_assert_int_eq(
		launch_in_path(launches[_i].path, "version_", &start, &end), launches[_i].launch);
	if (launches[_i].launch >= 0)
		ck_assert(start < end && end <= strlen(launches[_i].path));
}
END_TEST

/* ---- what profiles take; JSON stands in for pickles, since a profile sees decoded values only
 * ---- */

static int load(size_t at)
{
	ck_assert_uint_lt(at, candidates.list.count);
	return checkpoint_load(
		&state, &candidates.list.items[at], &listing, &limits, &findings, NULL);
}

#define LOOPS(epoch, batch, batch_all, step, step_all, last, more)                                                                \
	"{\"fit_loop\": {\"epoch_progress\": {\"current\": {\"completed\": " #epoch "}},"                                         \
	"\"epoch_loop.batch_progress\": {\"total\": {\"processed\": " #batch_all                                                  \
	"}, \"current\": {\"processed\": " #batch ", \"completed\": " #batch                                                      \
	"}, \"is_last_batch\": " #last "},"                                                                                       \
	"\"epoch_loop.automatic_optimization.optim_progress\": {\"optimizer\": {\"step\": {\"total\": {\"completed\": " #step_all \
	"}, \"current\": {\"completed\": " #step "}}}}" more "}}"

#define CHECKPOINT(version, step, loops, more)                                                     \
	"{\"pytorch-lightning_version\": \"" version "\", \"epoch\": 1, \"global_step\": " #step   \
	", \"state_dict\": {}, \"loops\": " loops more "}"

static void load_lightning(const char *text)
{
	make("any name.bin", text);
	ck_assert_int_eq(find(), RP_OK);
	ck_assert_str_eq(candidates.list.items[0].profile->name, "pytorch");
	ck_assert_int_eq(load(0), RP_OK);
	ck_assert_str_eq(state.profile->name, "lightning");
}

static int64_t fact(enum fact_key key)
{
	int64_t value;
	return state_int(&state, key, &value) ? value : -1;
}

START_TEST(lightning_is_known_by_its_keys_and_tells_batches_and_accumulation)
{
	load_lightning(CHECKPOINT(
		"2.4.0", 12, LOOPS(1, 8, 48, 2, 12, false, ""), ", \"optimizer_states\": []"));
	ck_assert_str_eq(state_fact_text(&state, FACT_FRAMEWORK_VERSION), "2.4.0");
	ck_assert_int_eq(fact(FACT_STEP), 12);
	ck_assert_int_eq(fact(FACT_BATCH_IN_EPOCH), 8);
	ck_assert_int_eq(fact(FACT_ACCUMULATION), 4);
	ck_assert_int_eq(fact(FACT_STEPS_PER_EPOCH), 10);
	ck_assert_ptr_null(state_fact(&state, FACT_POSITION));
	ck_assert_ptr_null(state_fact(&state, FACT_EPOCH_END));
	ck_assert_ptr_null(state_fact(&state, FACT_SAVE_ONLY_MODEL));
	ck_assert_uint_eq(findings.list.count, 0);
}
END_TEST

START_TEST(lightning_without_optimizers_saved_the_model_alone)
{
	bool only = false;

	load_lightning(CHECKPOINT("2.4.0", 10, LOOPS(0, 10, 10, 10, 10, true, ""), ""));
	ck_assert(state_bool(&state, FACT_SAVE_ONLY_MODEL, &only) && only);
	ck_assert(state_bool(&state, FACT_EPOCH_END, &only) && only);
}
END_TEST

START_TEST(a_callbacks_counters_are_not_the_trainers)
{
	load_lightning(CHECKPOINT("2.4.0", 12, LOOPS(1, 2, 12, 2, 12, false, ""),
		", \"callbacks\": {\"Mine\": {\"epoch\": 7, \"global_step\": 99, \"batch_size\": 3}}"));
	ck_assert_int_eq(fact(FACT_STEP), 12);
	ck_assert_int_eq(fact(FACT_EPOCH), 1);
	ck_assert_int_eq(fact(FACT_MICRO_BATCH), -1);
}
END_TEST

START_TEST(a_loader_state_of_any_shape_is_a_position)
{
	load_lightning(CHECKPOINT("2.4.0", 12,
		LOOPS(1, 2, 12, 2, 12, false,
			", \"state_dict\": {\"combined_loader\": [{\"shard\": \"a\", \"line\": 17}]}"),
		""));
	ck_assert_ptr_nonnull(state_fact(&state, FACT_POSITION));
}
END_TEST

START_TEST(a_validation_loaders_state_is_no_position)
{
	load_lightning(CHECKPOINT("1.9.5", 12,
		LOOPS(1, 2, 12, 2, 12, false,
			", \"epoch_loop.val_loop.epoch_loop.state_dict\": {\"dataloader_state_dict\": [{\"current_iteration\": 3}]}"),
		""));
	ck_assert_ptr_null(state_fact(&state, FACT_POSITION));
}
END_TEST

START_TEST(fault_tolerant_states_are_a_position)
{
	load_lightning(CHECKPOINT("1.9.5", 12,
		LOOPS(1, 2, 12, 2, 12, false,
			", \"epoch_loop.state_dict\": {\"dataloader_state_dict\": [{\"state\": [{\"sampler_state\": [{\"current_iteration\": 3}]}]}]}"),
		""));
	ck_assert_int_eq(fact(FACT_POSITION), 3);
}
END_TEST

START_TEST(a_loader_with_workers_is_at_its_snapshot_and_what_came_since)
{
	load_lightning(CHECKPOINT("2.6.0", 12,
		LOOPS(1, 7, 12, 7, 12, false,
			", \"state_dict\": {\"combined_loader\": [{\"_snapshot\": {\"_snapshot_step\": 5, \"_main_snapshot\": "
			"{\"_num_workers\": 3}}, \"_steps_since_snapshot\": 2, \"_iterator_finished\": false}]}"),
		""));
	ck_assert_int_eq(fact(FACT_POSITION), 7);
	ck_assert_int_eq(fact(FACT_LOADER_WORKERS), 3);
}
END_TEST

START_TEST(epochs_that_do_not_add_up_are_said)
{
	load_lightning(CHECKPOINT("2.6.6", 21, LOOPS(1, 10, 21, 10, 21, true, ""), ""));
	ck_assert_uint_eq(findings.of_code[FINDING_P102], 1);
	ck_assert_int_eq(fact(FACT_STEPS_PER_EPOCH), 10);
}
END_TEST

START_TEST(some_other_json_is_not_lightning)
{
	make("a.pt", "{\"loops\": 3, \"state_dict\": {}, \"step\": 5}");
	ck_assert_int_eq(find(), RP_OK);
	ck_assert_int_eq(load(0), RP_OK);
	ck_assert_str_eq(state.profile->name, "pytorch");
	ck_assert_int_eq(fact(FACT_STEP), 5);
}
END_TEST

START_TEST(accelerates_micro_step_is_not_the_step_and_its_save_count_neither)
{
	make("checkpoints/checkpoint_7/random_states_0.pkl", "{\"step\": 3}");
	make("checkpoints/checkpoint_7/random_states_1.pkl", "{\"step\": 3}");
	make("checkpoints/checkpoint_7/optimizer.bin", "{\"state\": {}, \"param_groups\": []}");
	make("checkpoints/checkpoint_7/custom_checkpoint_0.pkl.orig", "x");
	ck_assert_int_eq(find(), RP_OK);
	ck_assert_int_eq(load(0), RP_OK);
	ck_assert_str_eq(state.profile->name, "accelerate");
	ck_assert_ptr_null(state_fact(&state, FACT_STEP));
	ck_assert_ptr_null(state_fact(&state, FACT_NAME_STEP));
	ck_assert_int_eq(fact(FACT_MICRO_STEP), 3);
	ck_assert_int_eq(state.world, 2);
	ck_assert_uint_eq(findings.of_code[FINDING_I115], 1);
}
END_TEST

START_TEST(a_custom_checkpoint_tells_the_scripts_counters)
{
	make("step_40/random_states_0.pkl", "{\"step\": 4}");
	make("step_40/custom_checkpoint_0.pkl", "{\"step\": 40, \"epoch\": 2, \"batch\": 4}");
	make("step_40/unet/diffusion_pytorch_model.safetensors", "x");
	make("step_40/dl_state_dict.bin",
		"{\"_num_yielded\": 4, \"_sampler_iter_yielded\": 4, \"_iterator_finished\": false}");
	ck_assert_int_eq(find(), RP_OK);
	ck_assert_int_eq(load(0), RP_OK);
	ck_assert_int_eq(fact(FACT_STEP), 40);
	ck_assert_int_eq(fact(FACT_NAME_STEP), 40);
	ck_assert_int_eq(fact(FACT_BATCH_IN_EPOCH), 4);
	ck_assert_int_eq(fact(FACT_POSITION), 4);
	for (size_t i = 0; i < state.files.count; i++)
		if (strstr(state.files.items[i].path, "unet/"))
			ck_assert_int_eq(state.files.items[i].role, FILE_WEIGHTS);
}
END_TEST

/* Make empty files, find the candidates, and hold their number and the files of the first against
 * these. */
static void finds(const char *const *paths, size_t count, size_t members)
{
	for (; *paths; paths++)
		make(*paths, "x");
	ck_assert_int_eq(find(), RP_OK);
	ck_assert_uint_eq(candidates.list.count, count);
	ck_assert_uint_eq(candidates.list.items[0].file_count, members);
}

START_TEST(epochs_make_a_series)
{
	finds((const char *const[]){"epoch_2.pt", "epoch_10.pt", "epoch_1.pt", NULL}, 3, 1);
	ck_assert_str_eq(candidates.list.items[2].name, "epoch_10.pt");
}
END_TEST

START_TEST(the_best_and_the_last_one_are_two)
{
	finds((const char *const[]){"best.pt", "last.pt", NULL}, 2, 1);
}
END_TEST

START_TEST(the_best_one_stands_beside_the_plain_one)
{
	finds((const char *const[]){"checkpoint.pth.tar", "model_best.pth.tar", NULL}, 2, 1);
}
END_TEST

START_TEST(a_model_and_its_optimizer_are_one)
{
	finds((const char *const[]){"model_000100.pt", "optim_000100.pt", "model_000200.pt",
		      "optim_000200.pt", NULL},
		2, 2);
}
END_TEST

START_TEST(pieces_are_no_series)
{
	finds((const char *const[]){"model.pt", "optimizer.pt", "layer_00.pt", "layer_01.pt",
		      "consolidated.00.pth", NULL},
		1, 5);
	ck_assert(!candidates.root);
}
END_TEST

Suite *suite_profile(void)
{
	Suite *s = suite_create("profile");
	TCase *t = tcase_create("names");

	tcase_add_loop_test(
		t, names_tell_steps_from_ranks_shards_and_epochs, 0, sizeof names / sizeof *names);
	tcase_add_loop_test(t, names_give_places_in_a_series, 0, sizeof places / sizeof *places);
	suite_add_tcase(s, t);
	t = tcase_create("candidates");
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, a_trainers_output_with_the_final_model_in_it_is_a_root);
	tcase_add_test(t, a_checkpoint_with_folders_of_steps_in_it_is_one_checkpoint);
	tcase_add_test(t, files_of_one_family_are_checkpoints_and_their_ranks_belong_together);
	tcase_add_test(t, rank_files_without_steps_are_one_checkpoint);
	tcase_add_test(t, folders_of_ranks_hold_the_parts_of_one_checkpoint);
	tcase_add_test(t, folders_of_ranks_without_steps_are_the_checkpoint_that_they_lie_in);
	tcase_add_test(t, folders_whose_files_are_not_called_alike_are_no_ranks_of_one);
	tcase_add_test(t, a_pointer_is_read_and_a_large_or_binary_one_is_not);
	tcase_add_test(t, a_folder_without_checkpoints_says_so);
	tcase_add_test(t, epochs_make_a_series);
	tcase_add_test(t, the_best_and_the_last_one_are_two);
	tcase_add_test(t, the_best_one_stands_beside_the_plain_one);
	tcase_add_test(t, a_model_and_its_optimizer_are_one);
	tcase_add_test(t, pieces_are_no_series);
	tcase_add_test(t, an_interrupted_saves_own_name_gives_it_away);
	tcase_add_test(t, a_last_file_beside_a_numbered_one_is_a_checkpoint_of_its_own);
	tcase_add_test(t, files_of_different_epochs_are_checkpoints_without_a_step);
	tcase_add_test(t,
		a_model_that_is_called_the_best_beside_its_optimizer_is_no_checkpoint_of_its_own);
	tcase_add_test(t, numbered_files_of_a_known_layout_are_its_parts);
	suite_add_tcase(s, t);
	t = tcase_create("launches");
	tcase_add_loop_test(t, launches_are_told_by_the_number_of_their_folder, 0,
		sizeof launches / sizeof *launches);
	suite_add_tcase(s, t);
	t = tcase_create("content");
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, lightning_is_known_by_its_keys_and_tells_batches_and_accumulation);
	tcase_add_test(t, lightning_without_optimizers_saved_the_model_alone);
	tcase_add_test(t, a_callbacks_counters_are_not_the_trainers);
	tcase_add_test(t, a_loader_state_of_any_shape_is_a_position);
	tcase_add_test(t, a_validation_loaders_state_is_no_position);
	tcase_add_test(t, fault_tolerant_states_are_a_position);
	tcase_add_test(t, a_loader_with_workers_is_at_its_snapshot_and_what_came_since);
	tcase_add_test(t, epochs_that_do_not_add_up_are_said);
	tcase_add_test(t, some_other_json_is_not_lightning);
	tcase_add_test(t, accelerates_micro_step_is_not_the_step_and_its_save_count_neither);
	tcase_add_test(t, a_custom_checkpoint_tells_the_scripts_counters);
	suite_add_tcase(s, t);
	return s;
}
