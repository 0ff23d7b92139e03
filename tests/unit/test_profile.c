/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "profile/candidate.h"

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profile/profile.h"

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
	{"epoch-003-val_loss=0.61.ckpt", -1, -1},
	{"model-03-1.6041.pt", -1, -1},
};

START_TEST(names_tell_steps_from_ranks_shards_and_epochs)
{
	ck_assert_msg(step_in_name(names[_i].name) == names[_i].step, "%s: step %lld", names[_i].name,
		(long long)step_in_name(names[_i].name));
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
	ck_assert_msg(place_in_name(places[_i].name) == places[_i].place, "%s: place %lld", places[_i].name,
		(long long)place_in_name(places[_i].name));
	ck_assert_msg(run_in_name(places[_i].name) == places[_i].run, "%s: run %lld", places[_i].name,
		(long long)run_in_name(places[_i].name));
}
END_TEST

static char folder[64];
static struct limits limits;
static struct listing listing;
static struct candidates candidates;

static void setup(void)
{
	strcpy(folder, "/tmp/reprise-test-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	limits = limits_default();
}

static void teardown(void)
{
	char command[128];

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

/* Make empty files, find the candidates, and hold their number and the files of the first against these. */
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
	finds((const char *const[]){"model_000100.pt", "optim_000100.pt", "model_000200.pt", "optim_000200.pt", NULL}, 2, 2);
}
END_TEST

START_TEST(pieces_are_no_series)
{
	finds((const char *const[]){"model.pt", "optimizer.pt", "layer_00.pt", "layer_01.pt", "consolidated.00.pth", NULL}, 1, 5);
	ck_assert(!candidates.root);
}
END_TEST

Suite *suite_profile(void)
{
	Suite *s = suite_create("profile");
	TCase *t = tcase_create("names");

	tcase_add_loop_test(t, names_tell_steps_from_ranks_shards_and_epochs, 0, sizeof names / sizeof *names);
	tcase_add_loop_test(t, names_give_places_in_a_series, 0, sizeof places / sizeof *places);
	suite_add_tcase(s, t);
	t = tcase_create("candidates");
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, a_trainers_output_with_the_final_model_in_it_is_a_root);
	tcase_add_test(t, a_checkpoint_with_folders_of_steps_in_it_is_one_checkpoint);
	tcase_add_test(t, files_of_one_family_are_checkpoints_and_their_ranks_belong_together);
	tcase_add_test(t, rank_files_without_steps_are_one_checkpoint);
	tcase_add_test(t, a_pointer_is_read_and_a_large_or_binary_one_is_not);
	tcase_add_test(t, a_folder_without_checkpoints_says_so);
	tcase_add_test(t, epochs_make_a_series);
	tcase_add_test(t, the_best_and_the_last_one_are_two);
	tcase_add_test(t, the_best_one_stands_beside_the_plain_one);
	tcase_add_test(t, a_model_and_its_optimizer_are_one);
	tcase_add_test(t, pieces_are_no_series);
	tcase_add_test(t, an_interrupted_saves_own_name_gives_it_away);
	suite_add_tcase(s, t);
	return s;
}
