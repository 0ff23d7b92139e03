/* SPDX-License-Identifier: MIT */
/*
 * The rules about consumed data: runs that are right in every way we can think of must leave
 * nothing to complain of, and runs that are made wrong must be found out.
 */
#include "audit/case.h"
#include "audit/seams.h"

#include <check.h>
#include <stdlib.h>

#include "support/logs.h"

Suite *suite_data_rules(void);

static struct log g;
static struct case_line line;
static struct findings findings;
static struct coverage coverage;
static struct error e;

/* Judge the log; to be followed by done(). */
static void judge(void)
{
	log_end(&g);
	e = ERROR_INIT;
	ck_assert_msg(case_line_open(&line, &g.ledger, ATTEMPT_TRAIN, LEDGER_NONE, NULL, 0, 1 << 20,
			      1, &e) == RP_OK,
		"%s", e.text);
	struct audit_case c = {.ledger = &g.ledger,
		.lineage = &line.lineage,
		.lines = &line,
		.line_count = 1,
		.limits = &g.limits};
	findings_init(&findings);
	coverage_init(&coverage);
	audit_run(&c, &findings, &coverage);
	findings_sort(&findings);
}

static void done(void)
{
	findings_release(&findings);
	coverage_release(&coverage);
	case_line_close(&line);
	log_release(&g);
}

static const struct finding *found(enum finding_code code)
{
	for (size_t i = 0; i < findings.list.count; i++)
		if (findings.list.items[i].code == code)
			return &findings.list.items[i];
	return NULL;
}

static size_t at_least(enum severity severity)
{
	size_t n = 0;

	/* The mixture has tests of its own. */
	for (size_t i = 0; i < findings.list.count; i++)
		n += findings.list.items[i].severity >= severity &&
		     finding_rows[findings.list.items[i].code].code[0] != 'M';
	return n;
}

/* Lists of ids, for cases that are written down. */
#define STEP(step, dp, epoch, ...)                                                                 \
	do {                                                                                       \
		static const uint64_t ids_[] = {__VA_ARGS__};                                      \
		log_step(&g, step, dp, epoch, ids_, sizeof ids_ / sizeof *ids_);                   \
	} while (0)

/* Runs of a real shape ------------------------------------------------------------------------- */

#define MOST_STEPS 400

struct shape {
	uint64_t seed, size;
	uint32_t ranks, batch; /* samples a rank and step */
	bool shuffled, drop, labelled, sized;
	enum key_kind kind;
	int epochs;
};

struct planned {
	uint64_t ids[64]; /* in the order of the sampler: rank r of R has r, r + R, … */
	uint32_t n;
	int32_t epoch;
};

static struct planned plan[MOST_STEPS];
static size_t planned;

static struct shape random_shape(uint64_t *seed)
{
	struct shape s = {.seed = log_random(seed),
		.size = 24 + log_random(seed) % 100,
		.ranks = 1 + (uint32_t)(log_random(seed) % 4),
		.batch = 1 + (uint32_t)(log_random(seed) % 4),
		.shuffled = log_random(seed) % 4 != 0,
		.drop = log_random(seed) % 2,
		.labelled = log_random(seed) % 2,
		.sized = log_random(seed) % 2,
		.kind = log_random(seed) % 3 ? KEY_ID : KEY_TEXT,
		.epochs = 1 + (int)(log_random(seed) % 4)};
	/* What can be known must be. */
	s.sized = s.sized || !s.labelled;
	return s;
}

/* What an uninterrupted run consumes, as DistributedSampler and a loader would deal it out. */
static void plan_run(const struct shape *s)
{
	uint64_t order[200], global = s->ranks * s->batch;

	planned = 0;
	for (int epoch = 0; epoch < s->epochs; epoch++) {
		log_permutation(s->seed + (uint64_t)epoch, order, s->size);
		for (uint64_t i = 0; i < s->size && !s->shuffled; i++)
			order[i] = i;
		uint64_t rows = s->drop ? s->size / global * global : s->size;
		/* Padded so that all ranks have as many. */
		while (rows % s->ranks != 0) {
			order[rows] = order[rows - s->size];
			rows++;
		}
		for (uint64_t at = 0; at < rows && planned < MOST_STEPS; at += global) {
			struct planned *p = &plan[planned++];
			p->n = (uint32_t)(rows - at < global ? rows - at : global);
			p->epoch = epoch;
			for (uint32_t i = 0; i < p->n; i++)
				p->ids[i] = order[at + i] +
					    (s->kind == KEY_TEXT ? order[at + i] << 40 : 0);
		}
	}
}

/* Step `step` of the log consumes what was planned as number `of`. */
static void consume(const struct shape *s, int64_t step, size_t of, uint32_t ranks)
{
	const struct planned *p = &plan[of];

	for (uint32_t dp = 0; dp < ranks; dp++) {
		uint64_t ids[64];
		size_t n = 0;
		for (uint32_t i = dp; i < p->n; i += ranks)
			ids[n++] = p->ids[i];
		log_step(&g, step, dp, s->labelled ? p->epoch : -1, ids, n);
	}
}

static void begin_run(const struct shape *s)
{
	log_begin(&g, 1 << 20, s->sized ? s->size : 0);
	g.kind = s->kind;
}

/* Any number of cuts, each resumed rightly: not a word beyond information. */
START_TEST(right_runs_have_no_findings)
{
	uint64_t seed = (uint64_t)_i + 1000;
	struct shape s = random_shape(&seed);

	plan_run(&s);
	begin_run(&s);
	int64_t step = 0;
	uint32_t ranks = s.ranks;
	for (int attempt = 1; step < (int64_t)planned; attempt++) {
		log_attempt(&g, attempt, log_random(&seed) % 3 ? step : LEDGER_NO_STEP);
		int64_t run = 1 + (int64_t)(log_random(&seed) % (planned + 4));
		int64_t last = step + run < (int64_t)planned ? step + run : (int64_t)planned;
		for (int64_t k = step; k < last; k++)
			consume(&s, k + 1, (size_t)k, ranks);
		/* Back to a checkpoint at or before the end of what was run. */
		if (last == (int64_t)planned && log_random(&seed) % 2)
			break;
		step = last - (int64_t)(log_random(&seed) % (uint64_t)(last - step + 1)) % 7;
		if (attempt > 6 && step == last)
			break;
		/* The same global batch on another number of ranks. */
		if (log_random(&seed) % 5 == 0 && s.batch * s.ranks % 2 == 0)
			ranks = ranks == s.ranks ? 2 : s.ranks;
		if (attempt > 12)
			break;
	}
	judge();
	for (size_t i = 0; i < findings.list.count; i++) {
		const struct finding *f = &findings.list.items[i];
		ck_assert_msg(f->severity < SEVERITY_WARNING,
			"seed %d: %s %s (size %llu ranks %u batch %u shuffled %d drop %d labelled %d sized %d)",
			_i, finding_rows[f->code].code, f->message, (unsigned long long)s.size,
			s.ranks, s.batch, s.shuffled, s.drop, s.labelled, s.sized);
	}
	done();
}
END_TEST

enum fault { FAULT_TOP, FAULT_EPOCH, FAULT_BEHIND, FAULT_AHEAD, FAULT_SHUFFLE, FAULT_COUNT };

static const char *const fault_names[] = {"top", "epoch", "behind", "ahead", "shuffle"};

/* One cut inside an epoch with a dead tail, resumed wrongly, up to the end of two more epochs. */
START_TEST(wrong_resumes_are_found)
{
	uint64_t seed = (uint64_t)_i + 5000, order[200];
	enum fault fault = (enum fault)(_i % FAULT_COUNT);
	struct shape s = random_shape(&seed);

	s.epochs = 3;
	s.shuffled = true;
	s.labelled = s.sized = true;
	plan_run(&s);
	size_t per_epoch = planned / 3;
	if (per_epoch < 5)
		return;
	size_t epoch = log_random(&seed) % 2;
	size_t cut = epoch * per_epoch + 2 + log_random(&seed) % (per_epoch - 4);
	size_t place = cut, shift = 1 + log_random(&seed) % 2;
	begin_run(&s);
	log_attempt(&g, 1, 0);
	for (size_t k = 0; k < cut + 2; k++)
		consume(&s, (int64_t)k + 1, k, s.ranks);
	if (fault == FAULT_TOP)
		place = 0;
	else if (fault == FAULT_EPOCH)
		place = epoch * per_epoch;
	else if (fault == FAULT_BEHIND)
		place = cut - shift;
	else if (fault == FAULT_AHEAD)
		place = cut + shift;
	else {
		/* A new order for the whole epoch, from the same place on. */
		log_permutation(seed, order, s.size);
		for (size_t k = cut; k < (epoch + 1) * per_epoch; k++)
			for (uint32_t i = 0; i < plan[k].n; i++)
				plan[k].ids[i] =
					order[((k - epoch * per_epoch) * s.ranks * s.batch + i) %
						s.size] *
					(s.kind == KEY_TEXT ? ((uint64_t)1 << 40) + 1 : 1);
	}
	log_attempt(&g, 2, (int64_t)cut);
	int64_t step = (int64_t)cut;
	for (size_t k = place; k < planned; k++)
		consume(&s, ++step, k, s.ranks);
	judge();
	ck_assert_msg(
		at_least(SEVERITY_ERROR) > 0, "seed %d: %s was not found", _i, fault_names[fault]);
	bool named = fault == FAULT_TOP      ? found(FINDING_D101) != NULL
		     : fault == FAULT_EPOCH  ? found(FINDING_D101) != NULL
		     : fault == FAULT_BEHIND ? found(FINDING_D102) || found(FINDING_D101)
		     : fault == FAULT_AHEAD
			     ? found(FINDING_D104) != NULL
			     : found(FINDING_D103) || found(FINDING_D104) || found(FINDING_D109);
	ck_assert_msg(named, "seed %d: %s is called %s: %s", _i, fault_names[fault],
		finding_rows[findings.list.items[0].code].code, findings.list.items[0].message);
	done();
}
END_TEST

/* Public reports in small, each with what must be said of it ------------------------------------
 */

static struct ledger_attempt *sized(struct log *of, uint64_t size)
{
	log_begin(of, 1 << 20, size);
	return log_attempt(of, 1, 0);
}

START_TEST(one_batch_per_rank_again)
{
	/* huggingface/accelerate#3938 */
	sized(&g, 40);
	STEP(1, 0, 0, 0, 1);
	STEP(1, 1, 0, 2, 3);
	STEP(2, 0, 0, 4, 5);
	STEP(2, 1, 0, 6, 7);
	STEP(3, 0, 0, 8, 9);
	STEP(3, 1, 0, 10, 11);
	log_attempt(&g, 2, 3)->micro_batch = 2;
	STEP(4, 0, 0, 8, 9);
	STEP(4, 1, 0, 10, 11);
	STEP(5, 0, 0, 12, 13);
	STEP(5, 1, 0, 14, 15);
	judge();
	const struct finding *f = found(FINDING_D102);
	ck_assert(f && f->place.step_first == 4 && f->place.step_last == 4);
	ck_assert_int_eq(f->observed.count, 8);
	ck_assert_int_eq(f->expected.count, 12);
	ck_assert_ptr_nonnull(f->cause);
	done();
}
END_TEST

START_TEST(one_process_becomes_two_and_a_batch_is_lost)
{
	/* huggingface/transformers#40245 */
	sized(&g, 16);
	STEP(1, 0, 0, 0, 1, 2, 3);
	log_attempt(&g, 2, 1);
	STEP(2, 0, 0, 8, 9, 10, 11);
	STEP(2, 1, 0, 12, 13, 14, 15);
	judge();
	const struct finding *hole = found(FINDING_D104), *batch = found(FINDING_P111);
	ck_assert(hole && hole->expected.count == 4 && hole->observed.count == 8);
	ck_assert(batch && batch->severity == SEVERITY_WARNING);
	done();
}
END_TEST

START_TEST(a_position_in_batches_is_told_from_one_applied_twice)
{
	sized(&g, 32);
	STEP(1, 0, 0, 0, 1);
	STEP(2, 0, 0, 2, 3);
	STEP(3, 0, 0, 4, 5);
	log_attempt(&g, 2, 2);
	STEP(3, 0, 0, 8, 9, 10, 11);
	STEP(4, 0, 0, 12, 13, 14, 15);
	STEP(5, 0, 0, 16, 17, 18, 19);
	judge();
	const struct finding *hole = found(FINDING_D104);
	ck_assert(hole && hole->expected.count == 4 && hole->observed.count == 8);
	ck_assert_pstr_eq(hole->cause,
		"the position counts batches, not samples: a step takes 4 samples "
		"where it took 2");
	ck_assert_ptr_nonnull(found(FINDING_P111));
	done();
}
END_TEST

/* Without a word of epochs, the hole is seen where the epoch is over. */
START_TEST(a_larger_batch_is_no_shuffle_buffer)
{
	sized(&g, 48);
	STEP(1, 0, -1, 5, 34);
	STEP(2, 0, -1, 15, 44);
	STEP(3, 0, -1, 25, 6);
	STEP(4, 0, -1, 35, 16);
	STEP(5, 0, -1, 45, 26);
	STEP(6, 0, -1, 7, 36);
	STEP(7, 0, -1, 17, 46);
	STEP(8, 0, -1, 27, 8);
	STEP(9, 0, -1, 37, 18);
	log_attempt(&g, 2, 6);
	STEP(7, 0, -1, 29, 10, 39, 20);
	STEP(8, 0, -1, 1, 30, 11, 40);
	STEP(9, 0, -1, 21, 2, 31, 12);
	STEP(10, 0, -1, 41, 22, 3, 32);
	STEP(11, 0, -1, 13, 42, 23, 4);
	STEP(12, 0, -1, 33, 14, 43, 24);
	STEP(13, 0, -1, 7, 38, 21, 4);
	STEP(14, 0, -1, 35, 18, 1, 32);
	STEP(15, 0, -1, 15, 46, 29, 12);
	STEP(16, 0, -1, 43, 26, 9, 40);
	STEP(17, 0, -1, 23, 6, 37, 20);
	STEP(18, 0, -1, 3, 34, 17, 0);
	STEP(19, 0, -1, 31, 14, 45, 28);
	STEP(20, 0, -1, 11, 42, 25, 8);
	STEP(21, 0, -1, 39, 22, 5, 36);
	STEP(22, 0, -1, 19, 2, 33, 16);
	STEP(23, 0, -1, 47, 30, 13, 44);
	STEP(24, 0, -1, 27, 10, 41, 24);
	judge();
	const struct finding *hole = found(FINDING_D104);
	ck_assert(hole && hole->cause);
	ck_assert_ptr_nonnull(strstr(hole->cause, "a position in batches is another"));
	done();
}
END_TEST

/* The loop draws and drops two batches of two to get back to its place. */
START_TEST(batches_that_were_dropped_unsaid_are_pointed_to)
{
	sized(&g, 32);
	STEP(1, 0, 0, 0, 1);
	STEP(2, 0, 0, 2, 3);
	STEP(3, 0, 0, 4, 5);
	log_attempt(&g, 2, 2);
	STEP(3, 0, 0, 0, 1, 2, 3, 4, 5);
	STEP(4, 0, 0, 6, 7);
	STEP(5, 0, 0, 8, 9);
	judge();
	const struct finding *again = found(FINDING_D101);
	ck_assert(again && again->cause && strstr(again->cause, "recorder.skip()"));
	/* The step is no larger for that. */
	ck_assert_ptr_null(found(FINDING_P111));
	done();
}
END_TEST

START_TEST(a_short_last_batch_is_no_other_batch)
{
	sized(&g, 7);
	STEP(1, 0, 0, 0, 1, 2);
	STEP(2, 0, 0, 3, 4, 5);
	log_attempt(&g, 2, 2);
	STEP(3, 0, 0, 6);
	STEP(4, 0, 1, 5, 3, 1);
	STEP(5, 0, 1, 0, 2, 4);
	judge();
	ck_assert_ptr_null(found(FINDING_P111));
	done();
}
END_TEST

START_TEST(the_remainder_is_shuffled_by_place_instead_of_by_order)
{
	/* pytorch/pytorch#147967 */
	sized(&g, 8);
	STEP(1, 0, 0, 6, 1);
	STEP(2, 0, 0, 4, 0);
	log_attempt(&g, 2, 2);
	STEP(3, 0, 0, 5, 7);
	STEP(4, 0, 0, 4, 6);
	judge();
	const struct finding *again = found(FINDING_D103), *hole = found(FINDING_D104);
	ck_assert(again && again->observed.count == 2 && again->cause);
	ck_assert_ptr_nonnull(strstr(again->cause, "tail"));
	ck_assert(hole && strstr(hole->message, "2–3"));
	done();
}
END_TEST

START_TEST(one_rank_restores_its_part_and_the_others_split_anew)
{
	/* bghira/SimpleTuner#2986: 12 images on 4 ranks, 2 twice, 2 not at all */
	sized(&g, 12);
	STEP(1, 0, 0, 0);
	STEP(1, 1, 0, 1);
	STEP(1, 2, 0, 2);
	STEP(1, 3, 0, 3);
	log_attempt(&g, 2, 1);
	STEP(2, 0, 0, 4);
	STEP(2, 1, 0, 8);
	STEP(2, 2, 0, 6);
	STEP(2, 3, 0, 7);
	STEP(3, 0, 0, 8);
	STEP(3, 1, 0, 9);
	STEP(3, 2, 0, 4);
	STEP(3, 3, 0, 11);
	judge();
	ck_assert(found(FINDING_D105) && found(FINDING_D104));
	done();
}
END_TEST

START_TEST(a_stream_is_not_split_by_rank)
{
	/* huggingface/datasets#5360 */
	log_begin(&g, 1 << 20, 0);
	log_attempt(&g, 1, 0);
	for (uint64_t k = 0; k < 15; k++)
		for (uint32_t dp = 0; dp < 2; dp++)
			log_step(&g, (int64_t)k + 1, dp, -1, &k, 1);
	judge();
	const struct finding *f = found(FINDING_D105);
	ck_assert(f && strstr(f->message, "all ranks"));
	done();

	/* Tensor-parallel ranks that read the same are as they should be. */
	log_begin(&g, 1 << 20, 0);
	struct ledger_attempt *a = log_attempt(&g, 1, 0);
	a->world = 2;
	a->dp = 1;
	for (uint64_t k = 0; k < 15; k++)
		for (uint32_t dp = 0; dp < 2; dp++)
			log_step(&g, (int64_t)k + 1, dp, -1, &k, 1);
	judge();
	ck_assert_ptr_null(found(FINDING_D105));
	done();
}
END_TEST

START_TEST(an_epoch_comes_twice)
{
	/* huggingface/accelerate#4233: P0, the tail of P1, P1 again */
	uint64_t p0[16], p1[16];

	log_permutation(1, p0, 16);
	log_permutation(2, p1, 16);
	sized(&g, 16);
	for (int k = 0; k < 4; k++)
		log_step(&g, k + 1, 0, 0, p0 + 4 * k, 4);
	log_step(&g, 5, 0, 1, p1, 4);
	log_attempt(&g, 2, 5);
	for (int k = 1; k < 4; k++)
		log_step(&g, 5 + k, 0, 1, p1 + 4 * k, 4);
	for (int k = 0; k < 4; k++)
		log_step(&g, 9 + k, 0, 2, p1 + 4 * k, 4);
	judge();
	const struct finding *f = found(FINDING_D107);
	ck_assert(f && f->severity == SEVERITY_WARNING && at_least(SEVERITY_ERROR) == 0);
	ck_assert_ptr_nonnull(strstr(f->message, "1 to 2"));
	done();
}
END_TEST

START_TEST(the_offset_survives_into_the_next_epoch)
{
	/* allenai/OLMo#650: 10 ids, resumed at 6; epoch 2 is 6 to 9 again */
	sized(&g, 10);
	STEP(1, 0, 0, 0, 1, 2);
	STEP(2, 0, 0, 3, 4, 5);
	log_attempt(&g, 2, 2);
	STEP(3, 0, 0, 6, 7);
	STEP(4, 0, 0, 8, 9);
	STEP(5, 0, 1, 6, 7);
	STEP(6, 0, 1, 8, 9);
	judge();
	const struct finding *f = found(FINDING_D111);
	ck_assert(f && f->place.step_first == 5);
	done();

	/* Resumed rightly, with another epoch behind it. */
	sized(&g, 10);
	STEP(1, 0, 0, 0, 1);
	STEP(2, 0, 0, 2, 3);
	log_attempt(&g, 2, 2);
	STEP(3, 0, 0, 4, 5);
	STEP(4, 0, 0, 6, 7);
	STEP(5, 0, 0, 8, 9);
	STEP(6, 0, 1, 0, 1);
	judge();
	ck_assert_uint_eq(at_least(SEVERITY_WARNING), 0);
	done();
}
END_TEST

START_TEST(one_sample_that_waited_is_lost)
{
	/* pytorch/torchtitan#3008 */
	sized(&g, 0);
	for (uint64_t k = 0; k < 12; k++)
		log_step(&g, (int64_t)k + 1, 0, -1, &k, 1);
	log_attempt(&g, 2, 12);
	for (uint64_t k = 13; k < 24; k++)
		log_step(&g, (int64_t)k, 0, -1, &k, 1);
	judge();
	const struct finding *f = found(FINDING_D104);
	ck_assert(f && f->observed.count - f->expected.count == 1);
	done();
}
END_TEST

/* Traps ---------------------------------------------------------------------------------------- */

START_TEST(declared_repeats_are_no_replay)
{
	uint64_t ids[8];

	for (int declared = 0; declared < 2; declared++) {
		log_begin(&g, 1 << 20, 0);
		g.ledger.datasets.items[0].repeat = declared ? 8 : 1;
		log_attempt(&g, 1, 0);
		for (uint64_t k = 0; k < 24; k++) {
			for (int i = 0; i < 8; i++)
				ids[i] = k;
			log_step(&g, (int64_t)k + 1, 0, 0, ids, 8);
		}
		judge();
		ck_assert(declared ? at_least(SEVERITY_WARNING) == 0 : found(FINDING_D106) != NULL);
		ck_assert_uint_eq(at_least(SEVERITY_ERROR), 0);
		done();
	}
}
END_TEST

/* Draws with replacement repeat by chance, and between ranks as well; in a row they do not. */
START_TEST(draws_with_replacement_are_told_from_a_replay)
{
	uint64_t seed = (uint64_t)_i;
	static uint64_t drawn[200][8];

	for (int wrong = 0; wrong < 2; wrong++) {
		log_begin(&g, 1 << 20, 0);
		g.ledger.datasets.items[0].sampling = SAMPLING_WITH;
		log_attempt(&g, 1, 0);
		for (int k = 0; k < 100; k++) {
			for (int i = 0; i < 8; i++)
				drawn[k][i] = log_random(&seed) % 500;
			for (uint32_t dp = 0; dp < 2; dp++)
				log_step(&g, k + 1, dp, -1, drawn[k] + 4 * dp, 4);
		}
		log_attempt(&g, 2, 90);
		for (int k = 0; k < 60; k++) {
			uint64_t ids[8];
			for (int i = 0; i < 8; i++)
				ids[i] = wrong    ? drawn[k][i]
					 : k < 10 ? drawn[90 + k][i]
						  : log_random(&seed) % 500;
			for (uint32_t dp = 0; dp < 2; dp++)
				log_step(&g, 91 + k, dp, -1, ids + 4 * dp, 4);
		}
		judge();
		if (wrong)
			ck_assert_ptr_nonnull(found(FINDING_D101));
		else
			ck_assert_msg(at_least(SEVERITY_WARNING) == 0, "%s",
				findings.list.items[0].message);
		done();
	}
}
END_TEST

/* Content that is there twice in the data, in every epoch. */
START_TEST(natural_duplicates_are_measured_first)
{
	uint64_t order[400], seed = (uint64_t)_i;

	log_permutation(seed, order, 400);
	log_begin(&g, 1 << 20, 0);
	g.kind = KEY_CONTENT;
	log_attempt(&g, 1, 0);
	for (int k = 0; k < 100; k++) {
		uint64_t ids[4];
		/* A tenth of the samples has a twin. */
		for (int i = 0; i < 4; i++)
			ids[i] = mark_mix(
				order[4 * k + i] < 40 ? order[4 * k + i] / 2 : order[4 * k + i]);
		if (k == 50)
			log_attempt(&g, 2, 50);
		log_step(&g, k + 1, 0, 0, ids, 4);
	}
	judge();
	ck_assert_msg(at_least(SEVERITY_WARNING) == 0, "%s", findings.list.items[0].message);
	done();
}
END_TEST

START_TEST(keys_that_never_come_again_are_not_checked)
{
	uint64_t key = 1;

	log_begin(&g, 1 << 20, 32);
	g.kind = KEY_CONTENT;
	log_attempt(&g, 1, 0);
	for (int k = 0; k < 24; k++) {
		uint64_t ids[4];
		for (int i = 0; i < 4; i++)
			ids[i] = mark_mix(key++);
		if (k == 12)
			log_attempt(&g, 2, 12);
		log_step(&g, k + 1, 0, k / 8, ids, 4);
	}
	judge();
	ck_assert_uint_eq(at_least(SEVERITY_INFO), 0);
	bool said = false;
	for (size_t i = 0; i < coverage.list.count; i++)
		said = said || (strcmp(coverage.list.items[i].rule, "data-resume") == 0 &&
				       coverage.list.items[i].status != COVER_RAN &&
				       strstr(coverage.list.items[i].reason, "augmentation"));
	ck_assert(said);
	done();
}
END_TEST

START_TEST(a_group_that_died_half_way_is_no_difference)
{
	sized(&g, 64);
	for (uint64_t k = 0; k < 6; k++) {
		const uint64_t ids[] = {8 * k, 8 * k + 1, 8 * k + 2, 8 * k + 3};
		log_step(&g, (int64_t)k + 1, 0, 0, ids, k == 5 ? 2 : 4);
	}
	log_attempt(&g, 2, 4);
	for (uint64_t k = 4; k < 8; k++) {
		const uint64_t ids[] = {8 * k, 8 * k + 1, 8 * k + 2, 8 * k + 3};
		log_step(&g, (int64_t)k + 1, 0, 0, ids, 4);
	}
	judge();
	ck_assert_uint_eq(at_least(SEVERITY_WARNING), 0);
	ck_assert_ptr_nonnull(found(FINDING_D190));
	done();
}
END_TEST

START_TEST(loader_workers_that_read_the_same_are_found)
{
	for (int shared = 0; shared < 2; shared++) {
		log_begin(&g, 1 << 20, 0);
		uint32_t index;
		ck_assert_int_eq(ledger_attempt(&g.ledger, 1, &index, &e), RP_OK);
		g.ledger.attempts.items[index].workers = 2;
		for (uint64_t k = 0; k < 20; k++) {
			struct ledger_line l = ledger_line_empty();
			uint64_t id = shared ? k / 2 : k;
			l.attempt = index;
			l.step = (int64_t)k + 1;
			l.worker = k % 2;
			l.kind = KEY_CONTENT;
			l.samples = true;
			l.n = 1;
			l.keys = &id;
			ck_assert_int_eq(ledger_add_line(&g.ledger, &l, &e), RP_OK);
		}
		judge();
		ck_assert((found(FINDING_R109) != NULL) == shared);
		done();
	}
}
END_TEST

/* Declared skips ------------------------------------------------------------------------------- */

/* Two epochs of 30 steps; attempt 2 resumes from a step of attempt 1, which went on to another. */
static void skip_run_from(
	size_t resumed, size_t dead, int64_t from, int64_t to, size_t skipped, uint32_t ranks)
{
	struct shape s = {.seed = 3,
		.size = 120,
		.ranks = 2,
		.batch = 2,
		.shuffled = true,
		.labelled = true,
		.sized = true,
		.epochs = 2};

	plan_run(&s);
	begin_run(&s);
	log_attempt(&g, 1, 0);
	for (size_t k = 0; k < dead; k++)
		consume(&s, (int64_t)k + 1, k, 2);
	struct ledger_attempt *a = log_attempt(&g, 2, (int64_t)resumed);
	struct ledger_skip *skip = array_push(&g.ledger.skips, 100);
	*skip = (struct ledger_skip){.from = from, .to = to};
	a->intent.any = true;
	a->intent.skips = 1;
	int64_t step = (int64_t)resumed;
	for (size_t k = resumed + skipped; k < planned; k++)
		consume(&s, ++step, k, ranks);
	judge();
}

static void skip_run(int64_t from, int64_t to, size_t skipped, uint32_t ranks)
{
	skip_run_from(8, 20, from, to, skipped, ranks);
}

START_TEST(a_declared_skip_is_checked_to_have_happened)
{
	/* As declared: steps 9 to 13 of the dead branch. */
	skip_run(9, 13, 5, 2);
	ck_assert_uint_eq(at_least(SEVERITY_WARNING), 0);
	const struct finding *proof = found(FINDING_D190);
	ck_assert(proof && strstr(proof->message, "skipped"));
	done();
	/* On more ranks. */
	skip_run(9, 13, 5, 4);
	ck_assert_uint_eq(at_least(SEVERITY_WARNING), 0);
	done();
	/* Nothing was skipped. */
	skip_run(9, 13, 0, 2);
	const struct finding *f = found(FINDING_D112);
	ck_assert(f && f->expected.count == 20 && f->observed.count == 0);
	done();
	/* Twice as much, as where micro-batches were taken for steps. */
	skip_run(9, 13, 10, 2);
	f = found(FINDING_D112);
	ck_assert(f && f->observed.count == 40);
	ck_assert(f->cause && strstr(f->cause, "2 ranks"));
	done();
}
END_TEST

START_TEST(a_declared_skip_may_pass_over_the_end_of_an_epoch)
{
	/* To the end exactly, and beyond it. */
	for (int64_t to = 30; to <= 33; to += 3) {
		skip_run_from(24, 36, 25, to, (size_t)to - 24, 2);
		ck_assert_uint_eq(at_least(SEVERITY_WARNING), 0);
		done();
	}
	/* The dead branch was killed inside of what is skipped. */
	skip_run_from(24, 28, 25, 30, 6, 2);
	ck_assert_uint_eq(at_least(SEVERITY_WARNING), 0);
	done();
	/* Not declared as far as it went. */
	skip_run_from(24, 36, 25, 28, 6, 2);
	ck_assert_uint_ge(at_least(SEVERITY_ERROR), 1);
	done();
}
END_TEST

/* What attempts say of themselves -------------------------------------------------------------- */

START_TEST(an_empty_attempt_is_told_by_how_it_ended)
{
	static const struct {
		const char *end;
		int64_t planned;
		bool last;
		int severity; /* of D114; -1: none */
	} cases[] = {{"finished", 120, true, SEVERITY_ERROR}, {"finished", 60, true, -1},
		{"killed", 120, true, -1}, {"", 120, true, SEVERITY_WARNING}, {"", 120, false, -1},
		{"finished", -1, true, SEVERITY_WARNING}};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		log_begin(&g, 1 << 20, 0);
		log_attempt(&g, 1, 0);
		for (uint64_t k = 0; k < 60; k++)
			log_step(&g, (int64_t)k + 1, 0, -1, &k, 1);
		log_attempt(&g, 2, 60)->end = cases[i].end;
		if (!cases[i].last) {
			log_attempt(&g, 3, 60);
			for (uint64_t k = 60; k < 65; k++)
				log_step(&g, (int64_t)k + 1, 0, -1, &k, 1);
		}
		g.ledger.max_steps = cases[i].planned;
		judge();
		const struct finding *f = found(FINDING_D114);
		ck_assert_msg((f ? (int)f->severity : -1) == cases[i].severity, "case %zu", i);
		done();
	}
}
END_TEST

START_TEST(an_undeclared_seed_is_an_error_and_a_declared_one_is_none)
{
	for (int declared = 0; declared < 2; declared++) {
		uint64_t p[32], q[32];
		log_permutation(1, p, 32);
		log_permutation(2, q, 32);
		sized(&g, 32);
		g.ledger.attempts.items[0].seed = 42;
		g.ledger.attempts.items[0].has_seed = true;
		for (int k = 0; k < 4; k++)
			log_step(&g, k + 1, 0, 0, p + 4 * k, 4);
		struct ledger_attempt *a = log_attempt(&g, 2, 4);
		a->seed = 43;
		a->has_seed = true;
		a->intent.seed = declared;
		for (int k = 0; k < 8; k++)
			log_step(&g, k + 5, 0, 0, q + 4 * k, 4);
		judge();
		const struct finding *seed = found(FINDING_P110), *order = found(FINDING_D103);
		ck_assert(seed && order && (found(FINDING_D191) != NULL) == declared);
		ck_assert_int_eq(seed->severity, declared ? SEVERITY_INFO : SEVERITY_ERROR);
		ck_assert_int_eq(order->severity, declared ? SEVERITY_WARNING : SEVERITY_ERROR);
		ck_assert_int_eq(order->observed.count, 16);
		done();
	}
}
END_TEST

static void positions(int64_t second)
{
	struct error ignored = ERROR_INIT;

	(void)ignored;
	sized(&g, 96);
	for (uint64_t k = 0; k < 24; k++) {
		const uint64_t ids[] = {4 * k, 4 * k + 1, 4 * k + 2, 4 * k + 3};
		if (k == 12)
			log_attempt(&g, 2, 12);
		log_step(&g, (int64_t)k + 1, 0, 0, ids, 4);
	}
	struct ledger_checkpoint *c = array_push(&g.ledger.checkpoints, 10);
	*c = (struct ledger_checkpoint){
		.attempt = 0, .step = 12, .position = 48, .path = "", .digest = ""};
	c = array_push(&g.ledger.checkpoints, 10);
	*c = (struct ledger_checkpoint){
		.attempt = 1, .step = 18, .position = second, .path = "", .digest = ""};
	judge();
}

START_TEST(positions_of_checkpoints_are_held_against_what_was_consumed)
{
	positions(72);
	ck_assert_uint_eq(at_least(SEVERITY_INFO), 0);
	done();
	/* Since its own start. */
	positions(24);
	const struct finding *f = found(FINDING_P102);
	ck_assert(f && f->observed.count == 24 && f->cause);
	done();
}
END_TEST

START_TEST(batches_in_other_turns_are_told_from_other_batches)
{
	for (int rotated = 0; rotated < 2; rotated++) {
		struct shape s = {.seed = 5,
			.size = 96,
			.ranks = 1,
			.batch = 4,
			.shuffled = true,
			.labelled = true,
			.sized = true,
			.epochs = 1};
		plan_run(&s);
		begin_run(&s);
		log_attempt(&g, 1, 0)->workers = 2;
		for (size_t k = 0; k < 15; k++)
			consume(&s, (int64_t)k + 1, k, 1);
		log_attempt(&g, 2, 8)->workers = 2;
		for (size_t k = 8; k < planned; k++)
			consume(&s, (int64_t)k + 1,
				rotated ? (k % 2 ? k - 1 : k + 1) : planned + 7 - k, 1);
		judge();
		ck_assert((found(FINDING_D110) != NULL) == rotated);
		ck_assert((found(FINDING_D109) != NULL) == !rotated);
		done();
	}
}
END_TEST

Suite *suite_data_rules(void)
{
	Suite *s = suite_create("data_rules");
	TCase *t = tcase_create("runs"), *c = tcase_create("cases");

	tcase_add_loop_test(t, right_runs_have_no_findings, 0, 1000);
	tcase_add_loop_test(t, wrong_resumes_are_found, 0, 400);
	suite_add_tcase(s, t);
	tcase_add_test(c, one_batch_per_rank_again);
	tcase_add_test(c, one_process_becomes_two_and_a_batch_is_lost);
	tcase_add_test(c, a_position_in_batches_is_told_from_one_applied_twice);
	tcase_add_test(c, a_larger_batch_is_no_shuffle_buffer);
	tcase_add_test(c, batches_that_were_dropped_unsaid_are_pointed_to);
	tcase_add_test(c, a_short_last_batch_is_no_other_batch);
	tcase_add_test(c, the_remainder_is_shuffled_by_place_instead_of_by_order);
	tcase_add_test(c, one_rank_restores_its_part_and_the_others_split_anew);
	tcase_add_test(c, a_stream_is_not_split_by_rank);
	tcase_add_test(c, an_epoch_comes_twice);
	tcase_add_test(c, the_offset_survives_into_the_next_epoch);
	tcase_add_test(c, one_sample_that_waited_is_lost);
	tcase_add_test(c, declared_repeats_are_no_replay);
	tcase_add_loop_test(c, draws_with_replacement_are_told_from_a_replay, 0, 40);
	tcase_add_loop_test(c, natural_duplicates_are_measured_first, 0, 200);
	tcase_add_test(c, keys_that_never_come_again_are_not_checked);
	tcase_add_test(c, a_group_that_died_half_way_is_no_difference);
	tcase_add_test(c, loader_workers_that_read_the_same_are_found);
	tcase_add_test(c, a_declared_skip_is_checked_to_have_happened);
	tcase_add_test(c, a_declared_skip_may_pass_over_the_end_of_an_epoch);
	tcase_add_test(c, an_empty_attempt_is_told_by_how_it_ended);
	tcase_add_test(c, an_undeclared_seed_is_an_error_and_a_declared_one_is_none);
	tcase_add_test(c, positions_of_checkpoints_are_held_against_what_was_consumed);
	tcase_add_test(c, batches_in_other_turns_are_told_from_other_batches);
	suite_add_tcase(s, c);
	return s;
}
