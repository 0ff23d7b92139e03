/* SPDX-License-Identifier: MIT */
#include "state/run_file.h"

#include <check.h>

#undef fail

Suite *suite_run_file(void);

static struct run_file run;
static struct state state;
static struct error e;

static void begin(void)
{
	struct limits limits = limits_default();

	run = (struct run_file){0};
	state_init(&state, &limits);
}

static void end(void)
{
	run_file_release(&run);
	state_release(&state);
}

static int parse(const char *text)
{
	run_file_release(&run);
	e = ERROR_INIT;
	return run_file_parse(&run, slice_of(text), "reprise.run", &e);
}

static void tell(const char *text)
{
	ck_assert_msg(parse(text) == RP_OK, "%s", e.text);
	run_file_tell(&run, &state);
}

static void read_int(enum fact_key key, int32_t rank, int64_t value)
{
	state_add_int(&state, key, NO_GROUP, value,
		(struct origin){.file = NO_FILE, .rank = rank, .how = HOW_READ, .path = "x"});
	state_finish(&state);
}

static int64_t number(enum fact_key key)
{
	int64_t n;
	return state_int(&state, key, &n) ? n : -1;
}

static const char everything[] =
	"[run]\nworld-size = 8\ndata-parallel = 4\nplanned-steps = 1000\n"
	"epochs = 3\nsteps-per-epoch = 300\n"
	"[data]\nsamples = 9600\ndrop-last = no\nworkers = 0\n"
	"[batch]\nmicro = 4\naccumulation = 2\nglobal = 32\n"
	"[sampler]\nname = RandomSampler\nshuffle = yes\nreplacement = no\nseed = 0\n"
	"[model]\nparameters = 90..110\n"
	"[resume]\ndata = skips\n"
	"[streams]\nunused = numpy torch\n"
	"[source.wiki]\nsamples = 9000\nweight = 0.7\nepochs = 2\n"
	"[source.code]\nsamples = 600\nweight = 0.3\n"
	"[stage.late]\nfrom = 500\nweights = code 1\n"
	"[stage.first]\nweights = wiki 3 code 1\n";

START_TEST(all_that_can_be_told_is_read)
{
	ck_assert_int_eq(parse(everything), RP_OK);
	ck_assert_uint_eq(run.values.count, run_key_count);
	ck_assert_int_eq(run_file_value(&run, FACT_DP_SIZE)->number, 4);
	ck_assert_uint_eq(run_file_value(&run, FACT_DP_SIZE)->line, 3);
	ck_assert_str_eq(run_file_value(&run, FACT_SAMPLER)->word, "RandomSampler");
	ck_assert(run.expects_parameters && run.parameters_least == 90);
	ck_assert_int_eq(run.parameters_most, 110);
	ck_assert_int_eq(run.on_resume, RUN_RESUME_SKIPS);
	ck_assert(run_file_unused(&run, "numpy") && run_file_unused(&run, "torch cpu"));
	ck_assert(!run_file_unused(&run, "python") && !run_file_unused(NULL, "numpy"));
	ck_assert_uint_eq(run.sources.count, 2);
	ck_assert_str_eq(run.sources.items[0].name, "wiki");
	ck_assert_double_eq(run.sources.items[0].weight, 0.7);
	ck_assert_double_eq(run.sources.items[0].epochs, 2);
	ck_assert_int_eq(run.sources.items[1].samples, 600);
}
END_TEST

START_TEST(stages_follow_each_other)
{
	ck_assert_int_eq(parse(everything), RP_OK);
	ck_assert_str_eq(run.stages.items[0].name, "first");
	ck_assert_int_eq(run.stages.items[0].until, 500);
	ck_assert_uint_eq(run.stages.items[0].weight_count, 2);
	ck_assert_uint_eq(run.stages.items[0].weights[1].source, 1);
	ck_assert_ptr_eq(run_file_stage(&run, 0), &run.stages.items[0]);
	ck_assert_ptr_eq(run_file_stage(&run, 499), &run.stages.items[0]);
	ck_assert_ptr_eq(run_file_stage(&run, 500), &run.stages.items[1]);
	ck_assert_ptr_eq(run_file_stage(&run, INT64_MAX - 1), &run.stages.items[1]);
	ck_assert_ptr_null(run_file_stage(&run, -1));
}
END_TEST

static const struct {
	const char *text, *error;
} bad[] = {
	{"[run]\nworld_size = 8\n",
		"line 2: there is no key of [run] 'world_size'; did you mean world-size?"},
	{"[bach]\nmicro = 8\n", "line 1: there is no section 'bach'; did you mean batch?"},
	{"[run]\nworld-size = 0\n", "line 2: world-size wants a positive whole number, not '0'"},
	{"[run]\nworld-size = 1e3\n",
		"line 2: world-size wants a positive whole number, not '1e3'"},
	{"[run]\nworld-size = 9223372036854775808\n",
		"line 2: world-size wants a positive whole number, not '9223372036854775808'"},
	{"[data]\nworkers = -1\n", "line 2: workers wants a whole number, not '-1'"},
	{"[sampler]\nshuffle = true\n", "line 2: shuffle wants yes or no, not 'true'"},
	{"[model]\nparameters = 9..8\n",
		"line 2: parameters wants a number, or a range such as 90000000..110000000, not '9..8'"},
	{"[resume]\ndata = exact\n", "line 2: data wants skips or restarts, not 'exact'"},
	{"[streams]\nunused = nupy\n",
		"line 2: there is no random stream 'nupy'; did you mean numpy?"},
	{"[streams]\nunused = numpy numpy\n", "line 2: numpy is there twice"},
	{"[source.a]\nweight = 0\n", "line 2: weight wants a positive number, not '0'"},
	{"[source.a]\nweight = nan\n", "line 2: weight wants a positive number, not 'nan'"},
	{"[source.a]\nepochs = inf\n", "line 2: epochs wants a positive number, not 'inf'"},
	{"[stage.s]\nweights = a 1\n",
		"line 2: there is no [source.a] that the weight could be of"},
	{"[source.a]\n[stage.s]\nweights = a\n",
		"line 3: weights wants a source and a positive number by turns: wiki 0.7 code 0.3"},
	{"[source.a]\n[stage.s]\nweights = a 1 a 2\n", "line 3: a is there twice"},
	{"[source.a]\n[stage.s]\nfrom = 5\nuntil = 5\nweights = a 1\n",
		"line 2: the stage ends before it begins"},
	{"[source.a]\n[stage.s]\nuntil = 5\nweights = a 1\n[stage.t]\nfrom = 4\nweights = a 1\n",
		"line 5: the stage begins before the one before it ends"},
	{"[stage.s]\n", "line 1: the stage has no weights"},
	{"[run]\nworld-size = 6\ndata-parallel = 4\n",
		"line 3: data-parallel does not divide world-size"},
	{"[run]\nworld-size = 4\n[batch]\nmicro = 2\nglobal = 12\n",
		"line 5: global is no multiple of micro x data-parallel ranks"},
	{"[run]\nworld-size = 4611686018427387904\n[batch]\nmicro = 4\nglobal = 16\n",
		"line 5: global is no multiple of micro x data-parallel ranks"},
	{"[run]\nworld-size = 4\n[batch]\nmicro = 2\naccumulation = 3\nglobal = 16\n",
		"line 6: global is not micro x accumulation x data-parallel ranks"},
	{"[data]\nsamples = 9\n[source.a]\nsamples = 4\n[source.b]\nsamples = 4\n",
		"line 2: samples is not the sum of the sources' samples"},
	{"[source.a]\nsamples = 9223372036854775807\n[source.b]\nsamples = 1\n",
		"line 3: the sources have too many samples"},
	{"world-size = 8\n", "line 1: 'world-size' stands before the first [section]"},
};

START_TEST(what_makes_no_sense_is_an_error_with_its_line)
{
	ck_assert_int_eq(parse(bad[_i].text), RP_E_ARGUMENT);
	ck_assert_str_eq(e.text, bad[_i].error);
}
END_TEST

START_TEST(what_was_read_stands_before_what_is_told)
{
	read_int(FACT_MICRO_BATCH, 3, 5);
	tell("[batch]\nmicro = 4\n");
	ck_assert_int_eq(number(FACT_MICRO_BATCH), 5);
	ck_assert_int_eq(state_fact(&state, FACT_MICRO_BATCH)->how, HOW_READ);
	ck_assert_uint_eq(state.facts.count, 2);
	ck_assert_int_eq(state.facts.items[1].i, 4);
	ck_assert_str_eq(state.facts.items[1].path, "[batch] micro");
}
END_TEST

START_TEST(telling_again_replaces_what_was_told)
{
	tell("[run]\nworld-size = 2\n[data]\nsamples = 40\n[batch]\nmicro = 4\n");
	size_t count = state.facts.count;
	tell("[run]\nworld-size = 4\n[data]\nsamples = 48\n[batch]\nmicro = 4\n");
	ck_assert_uint_eq(state.facts.count, count);
	ck_assert_int_eq(number(FACT_STEPS_PER_EPOCH), 3);
	ck_assert_int_eq(state_world(&state), 4);
}
END_TEST

/* What follows from what is told: ranks, accumulation, global batch, batches and updates of an
 * epoch; -1 where that is not known for sure. */
static const struct {
	const char *text;
	int64_t ranks, accumulation, global, batches, updates;
} follows[] = {
	{"[run]\nworld-size = 2\n[data]\nsamples = 80\n[batch]\nmicro = 4\n", 2, -1, 8, 10, 10},
	{"[run]\nworld-size = 4\ndata-parallel = 2\n[data]\nsamples = 80\n[batch]\nmicro = 4\n"
	 "accumulation = 5\n",
		2, 5, 40, 10, 2},
	{"[run]\nworld-size = 2\n[data]\nsamples = 80\n[batch]\nmicro = 4\nglobal = 16\n", 2, 2, 16,
		10, 5},
	/* A remainder: it depends on what the loader does with it. */
	{"[run]\nworld-size = 2\n[data]\nsamples = 84\n[batch]\nmicro = 4\n", 2, -1, 8, -1, -1},
	{"[run]\nworld-size = 2\n[data]\nsamples = 84\ndrop-last = no\n[batch]\nmicro = 4\n", 2, -1,
		8, 11, 11},
	{"[run]\nworld-size = 2\n[data]\nsamples = 84\ndrop-last = yes\n[batch]\nmicro = 4\n", 2,
		-1, 8, 10, 10},
	/* 15 samples of 2 ranks, padded to 8 each: two batches of 4, although 15 / 8 is 1. */
	{"[run]\nworld-size = 2\n[data]\nsamples = 15\ndrop-last = yes\n[batch]\nmicro = 4\n", 2,
		-1, 8, -1, -1},
	/* Frameworks differ in what they do with batches that are no whole update. */
	{"[run]\nworld-size = 1\n[data]\nsamples = 40\n[batch]\nmicro = 4\naccumulation = 4\n", 1,
		4, 16, 10, -1},
	{"[data]\nsamples = 40\n[batch]\nglobal = 8\n", -1, -1, 8, -1, 5},
	{"[data]\nsamples = 41\n[batch]\nglobal = 8\n", -1, -1, 8, -1, -1},
	{"[data]\nsamples = 40\n[batch]\nglobal = 8\n[sampler]\nreplacement = yes\n", -1, -1, 8, -1,
		-1},
	{"[data]\nsamples = 40\n[batch]\nmicro = 8\n", -1, -1, -1, -1, -1},
	{"[run]\nsteps-per-epoch = 7\n[data]\nsamples = 41\n[batch]\nglobal = 8\n", -1, -1, 8, -1,
		7},
};

START_TEST(the_length_of_an_epoch_follows)
{
	tell(follows[_i].text);
	ck_assert_int_eq(number(FACT_DP_SIZE), follows[_i].ranks);
	ck_assert_int_eq(number(FACT_ACCUMULATION), follows[_i].accumulation);
	ck_assert_int_eq(number(FACT_GLOBAL_BATCH), follows[_i].global);
	ck_assert_int_eq(number(FACT_BATCHES_PER_EPOCH), follows[_i].batches);
	ck_assert_int_eq(number(FACT_STEPS_PER_EPOCH), follows[_i].updates);
}
END_TEST

START_TEST(ranks_are_the_most_that_are_known)
{
	ck_assert_int_eq(state_world(&state), 0);
	state.world = 3;
	ck_assert_int_eq(state_world(&state), 3);
	tell("[run]\nworld-size = 2\n");
	ck_assert_int_eq(state_world(&state), 3);
	tell("[run]\nworld-size = 5\n");
	ck_assert_int_eq(state_world(&state), 5);
	tell("[run]\nworld-size = 9223372036854775807\n");
	ck_assert_int_eq(state_world(&state), 3);
}
END_TEST

START_TEST(a_file_that_is_not_there_says_so)
{
	e = ERROR_INIT;
	ck_assert_int_eq(run_file_read(&run, "tests/unit/data/no such file", &e), RP_E_IO);
	ck_assert_int_eq(e.os_error, 2);
}
END_TEST

Suite *suite_run_file(void)
{
	Suite *s = suite_create("run_file");
	TCase *t = tcase_create("run_file");

	tcase_add_checked_fixture(t, begin, end);
	tcase_add_test(t, all_that_can_be_told_is_read);
	tcase_add_test(t, stages_follow_each_other);
	tcase_add_loop_test(
		t, what_makes_no_sense_is_an_error_with_its_line, 0, sizeof bad / sizeof *bad);
	tcase_add_test(t, what_was_read_stands_before_what_is_told);
	tcase_add_test(t, telling_again_replaces_what_was_told);
	tcase_add_loop_test(t, the_length_of_an_epoch_follows, 0, sizeof follows / sizeof *follows);
	tcase_add_test(t, ranks_are_the_most_that_are_known);
	tcase_add_test(t, a_file_that_is_not_there_says_so);
	suite_add_tcase(s, t);
	return s;
}
