/* SPDX-License-Identifier: MIT */
#include "state/epoch_log.h"

#include <math.h>

#include "state/relate.h"
#include "state/state.h"

#include <check.h>

Suite *suite_state(void);

static struct limits limits;
static struct state state, other;

static void setup(void)
{
	limits = limits_default();
	state_init(&state, &limits);
	state_init(&other, &limits);
}

static void teardown(void)
{
	state_release(&state);
	state_release(&other);
}

static struct origin at(const char *path, int32_t rank)
{
	return (struct origin){.file = NO_FILE, .path = path, .rank = rank, .how = HOW_READ};
}

START_TEST(facts_are_found_by_key_and_what_was_read_comes_before_what_is_derived)
{
	state_add_int(&state, FACT_STEP, NO_GROUP, 7,
		(struct origin){.file = NO_FILE, .rank = NO_RANK, .how = HOW_DERIVED, .path = ""});
	state_add_int(&state, FACT_STEP, NO_GROUP, 8, at(".step", NO_RANK));
	state_add_real(&state, FACT_LR, 1, 0.5, at(".lr", NO_RANK));
	state_add_real(&state, FACT_LR, 0, 0.25, at(".lr", NO_RANK));
	state_add_text(&state, FACT_OPTIMIZER, NO_GROUP, SLICE("AdamW"), at("", NO_RANK));
	state_finish(&state);
	int64_t step;
	double lr;
	ck_assert(state_int(&state, FACT_STEP, &step));
	ck_assert_int_eq(step, 8);
	ck_assert(fact_to_double(state_group_fact(&state, FACT_LR, 1), &lr));
	ck_assert(lr == 0.5);
	ck_assert(!state_int(&state, FACT_OPTIMIZER, &step));
	ck_assert_str_eq(state_fact_text(&state, FACT_OPTIMIZER), "AdamW");
	ck_assert_ptr_null(state_fact(&state, FACT_EPOCH));
}
END_TEST

static uint32_t add_file(struct state *s, const char *path)
{
	struct state_file *f = array_push(&s->files, 100);

	ck_assert_ptr_nonnull(f);
	*f = (struct state_file){.path = path};
	return (uint32_t)s->files.count - 1;
}

static struct origin in_file(uint32_t file, const char *path)
{
	return (struct origin){.file = file, .path = path, .rank = NO_RANK, .how = HOW_READ};
}

START_TEST(what_stands_in_two_files_is_told_apart_by_the_file)
{
	const char *path = "param_groups[0].weight_decay";
	uint32_t one = add_file(&state, "optimizer.bin"), two = add_file(&state, "optimizer_1.bin");

	state_add_real(&state, FACT_WEIGHT_DECAY, 0, 0.01, in_file(one, path));
	state_add_real(&state, FACT_WEIGHT_DECAY, 0, 0, in_file(two, path));
	state_add_real(&other, FACT_WEIGHT_DECAY, 0, 0.01,
		in_file(add_file(&other, "optimizer.bin"), path));
	state_add_real(&other, FACT_WEIGHT_DECAY, 0, 0,
		in_file(add_file(&other, "optimizer_1.bin"), path));
	state_finish(&state);
	state_finish(&other);
	for (size_t i = 0; i < 2; i++)
		ck_assert(fact_equal(state_same_fact(&other, &state, &state.facts.items[i]),
			&state.facts.items[i]));
}
END_TEST

START_TEST(a_file_that_is_named_for_its_step_has_the_same_facts)
{
	state_add_int(&state, FACT_MAX_STEPS, NO_GROUP, 100,
		in_file(add_file(&state, "step_10.pt"), "args.max_steps"));
	state_add_int(&other, FACT_MAX_STEPS, NO_GROUP, 200,
		in_file(add_file(&other, "step_20.pt"), "args.max_steps"));
	const struct fact *same = state_same_fact(&other, &state, &state.facts.items[0]);
	ck_assert_ptr_eq(same, &other.facts.items[0]);
	/* A file of that name that has no such fact settles it. */
	add_file(&other, "step_10.pt");
	ck_assert_ptr_null(state_same_fact(&other, &state, &state.facts.items[0]));
}
END_TEST

START_TEST(each_optimizer_has_settings_of_its_own)
{
	struct optimizer first = {.path = "opt_g", .file = NO_FILE, .rank = NO_RANK},
			 second = {.path = "opt_g2", .file = NO_FILE, .rank = NO_RANK};
	double beta;

	state_add_real(&state, FACT_BETA2, 0, 0.9, at("opt_g2.param_groups[0].betas[1]", NO_RANK));
	state_add_real(&state, FACT_BETA2, 0, 0.999, at("opt_g.param_groups[0].betas[1]", NO_RANK));
	ck_assert(fact_to_double(optimizer_group_fact(&state, &first, FACT_BETA2, 0), &beta));
	ck_assert(beta == 0.999);
	ck_assert(fact_to_double(optimizer_group_fact(&state, &second, FACT_BETA2, 0), &beta));
	ck_assert(beta == 0.9);
	ck_assert_ptr_null(optimizer_group_fact(&state, &first, FACT_BETA2, 1));
	ck_assert_ptr_null(optimizer_group_fact(&state, &first, FACT_BETA1, 0));
}
END_TEST

START_TEST(a_real_counts_as_an_integer_only_when_it_is_one)
{
	int64_t out;

	state_add_real(&state, FACT_EPOCH, NO_GROUP, 2.0, at("", NO_RANK));
	state_add_real(&state, FACT_SCALE, NO_GROUP, 2.5, at("", NO_RANK));
	state_add_real(&state, FACT_MAX_STEPS, NO_GROUP, 1e300, at("", NO_RANK));
	ck_assert(state_int(&state, FACT_EPOCH, &out));
	ck_assert_int_eq(out, 2);
	ck_assert(!state_int(&state, FACT_SCALE, &out));
	ck_assert(!state_int(&state, FACT_MAX_STEPS, &out));
}
END_TEST

static struct rng_state seeded(uint32_t seed, uint64_t words)
{
	struct mt19937 mt;
	struct rng_state out;

	mt19937_seed(&mt, seed);
	mt19937_skip(&mt, words);
	ck_assert_int_eq(
		rng_decode_words(RNG_LAYOUT_NUMPY, mt.s, mt.pos, false, 0, &out, NULL), RP_OK);
	return out;
}

static void add(struct state *s, struct rng_state body, int32_t rank, const char *path)
{
	state_add_stream(s, &body, "numpy", -1, at(path, rank));
}

START_TEST(equal_bodies_are_kept_once)
{
	add(&state, seeded(1, 10), 0, ".numpy");
	add(&state, seeded(1, 10), 1, ".numpy");
	add(&state, seeded(1, 11), 2, ".numpy");
	ck_assert_uint_eq(state.streams.count, 3);
	ck_assert_uint_eq(state.bodies.count, 2);
	ck_assert_ptr_eq(state.streams.items[0].body, state.streams.items[1].body);
}
END_TEST

START_TEST(streams_pair_by_rank_and_path_and_relate)
{
	struct rng_search search;
	struct stream_pairs pairs;

	for (int32_t r = 0; r < 3; r++) {
		add(&state, seeded((uint32_t)r + 5, 100), 2 - r, ".numpy");
		add(&other, seeded((uint32_t)r + 5, 1000), 2 - r, ".numpy");
	}
	add(&other, seeded(9, 1), 3, ".numpy");
	state_finish(&state);
	state_finish(&other);
	rng_search_init(&search, 1 << 20);
	ck_assert_int_eq(streams_relate(&pairs, &state, &other, &search, NULL), RP_OK);
	ck_assert_uint_eq(pairs.list.count, 4);
	for (size_t i = 0; i < 3; i++) {
		ck_assert_int_eq(
			pairs.list.items[i].later->rank, pairs.list.items[i].earlier->rank);
		ck_assert_int_eq(pairs.list.items[i].relation.kind, RNG_ADVANCED);
		ck_assert_uint_eq(pairs.list.items[i].relation.draws, 900);
	}
	ck_assert_ptr_null(pairs.list.items[3].earlier);
	stream_pairs_release(&pairs);
	rng_search_release(&search);
}
END_TEST

START_TEST(a_stream_that_moved_to_another_path_pairs_if_it_is_the_only_one)
{
	struct rng_search search;
	struct stream_pairs pairs;

	add(&state, seeded(5, 100), NO_RANK, ".rng.numpy");
	add(&other, seeded(5, 300), NO_RANK, ".states.numpy");
	rng_search_init(&search, 1 << 20);
	ck_assert_int_eq(streams_relate(&pairs, &state, &other, &search, NULL), RP_OK);
	ck_assert_uint_eq(pairs.list.count, 1);
	ck_assert_uint_eq(pairs.list.items[0].relation.draws, 200);
	stream_pairs_release(&pairs);
	rng_search_release(&search);
}
END_TEST

static struct epoch_log epochs;

/* Entries from `first` on, each so many steps later, of epochs that are `length` steps long and
 * begin `offset` steps late; how many of them set the epoch back. */
static int log_epochs(double first, int n, double every, double length, double offset)
{
	int back = 0;

	for (int i = 0; i < n; i++) {
		double step = first + i * every;
		back += epoch_log_take(&epochs, step, (step - offset) / length);
	}
	return back;
}

START_TEST(sees_an_epoch_set_back)
{
	epochs = (struct epoch_log){0};
	ck_assert_int_eq(log_epochs(5, 30, 5, 125, 0), 0);
	ck_assert_double_eq_tol(epoch_stretch_length(&epochs.now), 125, 1e-9);
	ck_assert_int_eq(log_epochs(155, 30, 5, 125, 25), 1);
	ck_assert(epochs.went_back);
	ck_assert_double_eq(epochs.before.last_step, 150);
	ck_assert_double_eq_tol(epoch_stretch_length(&epochs.now), 125, 1e-9);
	double updates;
	ck_assert(epoch_log_set_back(&epochs, &updates));
	ck_assert_double_eq_tol(updates, 25, 1e-9);
}
END_TEST

/* Of a stream without a length more steps were planned: each is less of the one epoch. */
START_TEST(takes_a_longer_plan_for_no_step_back)
{
	double updates;

	epochs = (struct epoch_log){0};
	log_epochs(5, 30, 5, 300, 0);
	ck_assert(!epoch_log_set_back(&epochs, &updates));
	ck_assert_int_eq(log_epochs(155, 30, 5, 600, 0), 1);
	ck_assert(!epoch_log_set_back(&epochs, &updates));
}
END_TEST

/* By as much as a step of the log: the epoch stands still. */
START_TEST(sees_an_epoch_stand_still)
{
	epochs = (struct epoch_log){0};
	ck_assert_int_eq(log_epochs(2, 6, 2, 10, 0), 0);
	ck_assert_int_eq(log_epochs(14, 3, 2, 10, 2), 1);
	ck_assert_double_eq(epochs.before.last_step, 12);
}
END_TEST

/* 11 micro-batches in groups of 2: the sixth update of each epoch has one. Two decimals, too. */
START_TEST(takes_short_groups_and_rounding_for_no_step_back)
{
	for (int every = 1; every <= 40; every++) {
		struct epoch_log exact = {0}, rounded = {0};
		for (int step = every; step < 2000; step += every) {
			double epoch = step / 6 + fmin(1, step % 6 * 2 / 11.0);
			ck_assert(!epoch_log_take(&exact, step, epoch));
			ck_assert(!epoch_log_take(&rounded, step, round(100 * step / 937.0) / 100));
		}
	}
}
END_TEST

/* Steps that do not grow, and numbers that are none, change nothing. */
START_TEST(passes_over_entries_out_of_order)
{
	epochs = (struct epoch_log){0};
	log_epochs(10, 10, 10, 100, 0);
	ck_assert(!epoch_log_take(&epochs, 100, 0.1));
	ck_assert(!epoch_log_take(&epochs, 50, 0.5));
	ck_assert(!epoch_log_take(&epochs, (double)NAN, 0.5));
	ck_assert_double_eq(epochs.now.last_step, 100);
}
END_TEST

Suite *suite_state(void)
{
	Suite *s = suite_create("state");
	TCase *t = tcase_create("tables");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, facts_are_found_by_key_and_what_was_read_comes_before_what_is_derived);
	tcase_add_test(t, what_stands_in_two_files_is_told_apart_by_the_file);
	tcase_add_test(t, a_file_that_is_named_for_its_step_has_the_same_facts);
	tcase_add_test(t, each_optimizer_has_settings_of_its_own);
	tcase_add_test(t, a_real_counts_as_an_integer_only_when_it_is_one);
	tcase_add_test(t, equal_bodies_are_kept_once);
	tcase_add_test(t, streams_pair_by_rank_and_path_and_relate);
	tcase_add_test(t, a_stream_that_moved_to_another_path_pairs_if_it_is_the_only_one);
	TCase *logs = tcase_create("epochs");
	tcase_add_test(logs, sees_an_epoch_set_back);
	tcase_add_test(logs, takes_a_longer_plan_for_no_step_back);
	tcase_add_test(logs, sees_an_epoch_stand_still);
	tcase_add_test(logs, takes_short_groups_and_rounding_for_no_step_back);
	tcase_add_test(logs, passes_over_entries_out_of_order);
	suite_add_tcase(s, logs);
	suite_add_tcase(s, t);
	return s;
}
