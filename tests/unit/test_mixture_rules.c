/* SPDX-License-Identifier: MIT */
/* The M rules on small logs: each with what it must find, and a near miss that it must not. */
#include "ledger/mixture.h"

#include "audit/case.h"
#include "ledger/lineage.h"
#include "ledger/plan.h"
#include "support/logs.h"

#include <check.h>
#include <math.h>
#include <string.h>

Suite *suite_mixture_rules(void);

#define K 3

static struct log g;
static struct lineage line;
static struct findings sink;
static struct coverage cover;
static uint64_t seed;
static uint64_t next_of[K]; /* the next id of each source, where ids run on */
static const char *const names[K] = {"web", "code", "books"};

static void begin(const double *weights)
{
	struct error e = {0};
	log_begin(&g, 16 << 20, 0);
	seed = 42;
	memset(next_of, 0, sizeof next_of);
	for (uint32_t i = 0; i < K; i++) {
		uint32_t index;
		ck_assert_int_eq(
			ledger_source_named(&g.ledger, slice_of(names[i]), &index, &e), RP_OK);
		ck_assert_uint_eq(index, i);
		g.ledger.sources.items[i].weight = weights ? weights[i] : NAN;
		g.ledger.sources.items[i].epochs = NAN;
	}
}

static uint32_t draw(const double *p)
{
	double u = (double)(log_random(&seed) >> 11) * 0x1p-53;
	for (uint32_t i = 0; i + 1 < K; i++) {
		if (u < p[i])
			return i;
		u -= p[i];
	}
	return K - 1;
}

/* One step of a rank: n samples of given sources. */
static void add(int64_t step, uint32_t dp, const uint32_t *sources, size_t n, const double *counts)
{
	struct error e = {0};
	struct ledger_line l = ledger_line_empty();
	uint64_t keys[64];
	for (size_t i = 0; i < n; i++)
		keys[i] = next_of[sources[i]]++;
	l.attempt = g.attempt;
	l.step = step;
	l.dp = dp;
	l.samples = true;
	l.n = n;
	l.keys = keys;
	l.sources = sources;
	l.counts = counts;
	ck_assert_int_eq(ledger_add_line(&g.ledger, &l, &e), RP_OK);
}

/* Steps [first, last] of 32 independent draws each. */
static void drawn(int64_t first, int64_t last, const double *p)
{
	for (int64_t step = first; step <= last; step++) {
		uint32_t sources[32];
		for (size_t i = 0; i < 32; i++)
			sources[i] = draw(p);
		add(step, 0, sources, 32, NULL);
	}
}

static void judge(void)
{
	struct error e = {0};
	const struct ledger *l = log_end(&g);
	ck_assert_int_eq(lineage_build(&line, l, ATTEMPT_TRAIN, NULL, 0, &e), RP_OK);
	findings_init(&sink);
	coverage_init(&cover);
	struct audit_case c = {.ledger = l, .lineage = &line, .limits = &g.limits};
	static const char *const of[] = {
		"mixture", "stages", "ratios", "source-epochs", "blend-reentry", "rank-mixture"};
	for (size_t i = 0; rules[i]; i++)
		for (size_t k = 0; k < sizeof of / sizeof *of; k++)
			if (strcmp(rules[i]->name, of[k]) == 0)
				rules[i]->run(&c, &sink, &cover);
	findings_sort(&sink);
}

static void end(void)
{
	findings_release(&sink);
	coverage_release(&cover);
	lineage_release(&line);
	log_release(&g);
}

static const struct cover *covered(const char *rule)
{
	for (size_t i = 0; i < cover.list.count; i++)
		if (strcmp(cover.list.items[i].rule, rule) == 0)
			return &cover.list.items[i];
	ck_abort_msg("%s did not say what it looked at", rule);
	return NULL;
}

static void only(enum finding_code code)
{
	ck_assert_msg(sink.list.count == sink.of_code[code] && sink.list.count > 0,
		"%zu findings, first: %s", sink.list.count,
		sink.list.count ? sink.list.items[0].message : "none");
}

static void nothing(void)
{
	ck_assert_msg(
		sink.list.count == 0, "%s", sink.list.count ? sink.list.items[0].message : "");
}

static const double right[K] = {0.5, 0.3, 0.2}, off[K] = {0.3, 0.3, 0.4};

START_TEST(a_transient_after_a_resume_is_found)
{
	begin(_i ? right : NULL);
	log_attempt(&g, 1, 0);
	drawn(1, 400, right);
	log_attempt(&g, 2, 400);
	drawn(401, 440, off);
	drawn(441, 800, right);
	judge();
	only(FINDING_M101);
	const struct finding *f = &sink.list.items[0];
	ck_assert_int_eq(f->severity, SEVERITY_ERROR);
	ck_assert_int_eq(f->place.step_first, 401);
	ck_assert_int_ge(f->place.step_last, 430);
	ck_assert_int_le(f->place.step_last, 460);
	end();
}
END_TEST

START_TEST(right_draws_over_resumes_are_nothing)
{
	begin(_i % 2 ? right : NULL);
	seed = (uint64_t)_i;
	for (int64_t a = 0; a < 5; a++) {
		log_attempt(&g, a + 1, a * 150);
		drawn(a * 150 + 1, a * 150 + 150, right);
	}
	judge();
	nothing();
	ck_assert_int_eq(covered("mixture")->status, _i % 2 ? COVER_RAN : COVER_PARTLY);
	end();
}
END_TEST

START_TEST(a_drift_is_one_finding_over_all_attempts)
{
	begin(right);
	log_attempt(&g, 1, 0);
	drawn(1, 300, off);
	log_attempt(&g, 2, 300);
	drawn(301, 600, off);
	judge();
	only(FINDING_M102);
	ck_assert_uint_eq(sink.of_code[FINDING_M102], 1);
	ck_assert_int_eq(sink.list.items[0].place.step_last, 600);
	ck_assert_int_eq(sink.list.items[0].severity, SEVERITY_ERROR);
	end();
}
END_TEST

/* 0.2 points over a hundred thousand samples are beyond chance in principle, and do not matter. */
START_TEST(a_tiny_drift_is_nothing)
{
	const double near[K] = {0.502, 0.299, 0.199};
	begin(right);
	log_attempt(&g, 1, 0);
	drawn(1, 4000, near);
	judge();
	nothing();
	end();
}
END_TEST

START_TEST(weights_that_changed_are_no_transient)
{
	begin(right);
	log_attempt(&g, 1, 0);
	drawn(1, 300, right);
	struct ledger_attempt *a = log_attempt(&g, 2, 300);
	a->first_weight = 0;
	a->weights = K;
	for (uint32_t i = 0; i < K; i++) {
		struct ledger_weight *w = array_push(&g.ledger.weights, SIZE_MAX);
		*w = (struct ledger_weight){i, off[i]};
	}
	drawn(301, 600, off);
	judge();
	nothing();
	end();
}
END_TEST

static void stage(const char *name, int64_t from, int64_t until, const double *weights)
{
	struct plan_mark mark = {0};
	struct ledger_stage *s = array_push(&g.ledger.stages, SIZE_MAX);

	*s = (struct ledger_stage){
		name, from, until, (uint32_t)g.ledger.weights.count, weights ? K : 0};
	for (uint32_t i = 0; i < s->weights; i++) {
		struct ledger_weight *w = array_push(&g.ledger.weights, SIZE_MAX);
		*w = (struct ledger_weight){i, weights[i]};
	}
	ck_assert_ptr_null(plan_settle(&g.ledger, mark));
}

static const double late[K] = {0.2, 0.3, 0.5};

static void two_stages(void)
{
	begin(NULL);
	stage("early", 0, 300, right);
	stage("late", 300, INT64_MAX, late);
	log_attempt(&g, 1, 0);
}

START_TEST(stages_as_planned_are_nothing)
{
	seed = (uint64_t)_i;
	two_stages();
	drawn(1, 300, right);
	/* A stage that begins two steps late is what workers had fetched. */
	drawn(301, 302, _i % 2 ? right : late);
	drawn(303, 400, late);
	log_attempt(&g, 2, 400);
	drawn(401, 600, late);
	judge();
	nothing();
	ck_assert_int_eq(covered("stages")->status, COVER_RAN);
	ck_assert_int_eq(covered("mixture")->status, COVER_RAN);
	end();
}
END_TEST

/* The resume counts its steps from its own start: the first stage comes again. */
START_TEST(a_stage_counted_from_the_resume_is_found)
{
	two_stages();
	drawn(1, 300, right);
	drawn(301, 400, late);
	log_attempt(&g, 2, 400);
	drawn(401, 700, right);
	drawn(701, 800, late);
	judge();
	only(FINDING_M106);
	ck_assert_uint_eq(sink.list.count, 1);
	const struct finding *f = &sink.list.items[0];
	ck_assert_int_eq(f->severity, SEVERITY_ERROR);
	ck_assert_int_eq(f->place.step_first, 401);
	ck_assert_int_ge(f->place.step_last, 699);
	ck_assert_int_le(f->place.step_last, 701);
	ck_assert_ptr_nonnull(strstr(f->cause, "since the resume"));
	end();
}
END_TEST

START_TEST(a_stage_that_never_begins_is_found)
{
	two_stages();
	drawn(1, 600, right);
	log_attempt(&g, 2, 600);
	drawn(601, 700, right);
	judge();
	only(FINDING_M106);
	ck_assert_uint_eq(sink.list.count, 1);
	ck_assert_int_eq(sink.list.items[0].place.step_first, 301);
	ck_assert_int_eq(sink.list.items[0].place.step_last, 700);
	end();
}
END_TEST

/* Off the plan, and like no other stage either. */
START_TEST(a_mixture_of_no_stage_is_a_drift)
{
	const double other[K] = {0.45, 0.45, 0.1};
	two_stages();
	drawn(1, 300, other);
	drawn(301, 600, late);
	judge();
	only(FINDING_M102);
	ck_assert_int_eq(sink.list.items[0].place.step_last, 300);
	end();
}
END_TEST

START_TEST(steps_without_a_stage_are_not_judged_by_one)
{
	begin(NULL);
	stage("only", 100, 200, right);
	log_attempt(&g, 1, 0);
	drawn(1, 100, off);
	drawn(101, 200, right);
	drawn(201, 300, off);
	judge();
	nothing();
	ck_assert_int_eq(covered("stages")->status, COVER_PARTLY);
	end();
}
END_TEST

static void blend(int64_t first, int64_t last, const double *w, uint64_t *n, uint64_t *t)
{
	for (int64_t step = first; step <= last; step++) {
		uint32_t sources[8];
		for (size_t i = 0; i < 8; i++, ++*t)
			sources[i] = (uint32_t)mixture_blend_next(w, n, K, *t);
		add(step, 0, sources, 8, NULL);
	}
}

START_TEST(a_blend_inside_its_bound_is_exact)
{
	uint64_t n[K] = {0}, t = 0;
	begin(right);
	log_attempt(&g, 1, 0);
	blend(1, 50, right, n, &t);
	log_attempt(&g, 2, 50);
	blend(51, 90, right, n, &t);
	judge();
	nothing();
	ck_assert_int_eq(covered("mixture")->status, COVER_RAN);
	end();
}
END_TEST

/* Megatron computes the blend from the weights for all samples and enters it at the consumed total.
 */
START_TEST(a_blend_entered_at_the_old_total_is_found)
{
	uint64_t n[K] = {0}, t = 0;
	begin(right);
	log_attempt(&g, 1, 0);
	blend(1, 100, right, n, &t);
	struct ledger_attempt *a = log_attempt(&g, 2, 100);
	a->weights = K;
	for (uint32_t i = 0; i < K; i++) {
		struct ledger_weight *w = array_push(&g.ledger.weights, SIZE_MAX);
		*w = (struct ledger_weight){i, off[i]};
	}
	uint64_t m[K] = {0};
	for (uint64_t i = 0; i < t; i++)
		mixture_blend_next(off, m, K, i);
	if (_i == 0)
		memcpy(next_of, m, sizeof m); /* else each source goes on at its own position */
	blend(101, 200, off, m, &t);
	judge();
	if (_i == 0) {
		only(FINDING_M105);
		ck_assert_uint_eq(
			sink.of_code[FINDING_M105], 2); /* web is read again, books are skipped */
	} else {
		nothing();
	}
	end();
}
END_TEST

START_TEST(a_source_that_is_gone_is_found)
{
	const double without[K] = {0.625, 0.375, 0};
	begin(_i ? right : NULL);
	log_attempt(&g, 1, 0);
	drawn(1, 200, right);
	g.ledger.sources.items[2].size = next_of[2];
	log_attempt(&g, 2, 200);
	drawn(201, 400, without);
	judge();
	only(FINDING_M103);
	ck_assert_ptr_nonnull(strstr(sink.list.items[0].message, "books"));
	ck_assert_ptr_nonnull(strstr(sink.list.items[0].cause, "ran out"));
	end();
}
END_TEST

START_TEST(a_source_past_its_epochs_is_found)
{
	begin(right);
	for (int i = 0; i < K; i++) {
		g.ledger.sources.items[i].epochs = 1;
		g.ledger.sources.items[i].size = i == 2 && _i == 0 ? 500 : 100000;
	}
	log_attempt(&g, 1, 0);
	drawn(1, 200, right);
	judge();
	if (_i == 0)
		only(FINDING_M104);
	else
		nothing();
	end();
}
END_TEST

START_TEST(ranks_with_mixtures_of_their_own_are_found)
{
	begin(NULL);
	log_attempt(&g, 1, 0);
	for (int64_t step = 1; step <= 200; step++) {
		for (uint32_t rank = 0; rank < 4; rank++) {
			uint32_t sources[16];
			for (size_t i = 0; i < 16; i++)
				sources[i] = draw(rank == 2 && _i == 0 ? off : right);
			add(step, rank, sources, 16, NULL);
		}
	}
	judge();
	if (_i == 0) {
		only(FINDING_M107);
		ck_assert_str_eq(sink.list.items[0].place.ranks, "2");
	} else {
		nothing();
	}
	end();
}
END_TEST

/* IDEFICS: the ratio of image to text tokens fell after each resume and came back. */
START_TEST(a_ratio_that_falls_on_every_resume_is_found)
{
	struct error e = {0};
	uint32_t image, text;
	begin(NULL);
	ledger_count_named(&g.ledger, slice_of("image"), &image, &e);
	ledger_count_named(&g.ledger, slice_of("text"), &text, &e);
	for (int64_t a = 0; a < 4; a++) {
		log_attempt(&g, a + 1, a * 150);
		for (int64_t step = a * 150 + 1; step <= a * 150 + 150; step++) {
			bool start = a > 0 && step <= a * 150 + 30 && _i == 0;
			double noise = (double)(log_random(&seed) >> 11) * 0x1p-53 * 20;
			double counts[2] = {(start ? 280 : 400) + noise, 3600 - noise};
			uint32_t sources[4] = {0, 1, 2, 0};
			add(step, 0, sources, 4, counts);
		}
	}
	judge();
	if (_i == 0) {
		only(FINDING_M101);
		ck_assert_uint_eq(sink.of_code[FINDING_M101], 3);
		ck_assert_ptr_nonnull(strstr(sink.list.items[0].cause, "3 of 3 resumes"));
	} else {
		nothing();
	}
	end();
}
END_TEST

START_TEST(a_log_without_sources_says_so)
{
	log_begin(&g, 16 << 20, 0);
	log_attempt(&g, 1, 0);
	const uint64_t ids[] = {1, 2};
	log_step(&g, 1, 0, 0, ids, 2);
	judge();
	nothing();
	ck_assert_int_eq(covered("mixture")->status, COVER_NOT_CHECKED);
	end();
}
END_TEST

Suite *suite_mixture_rules(void)
{
	Suite *s = suite_create("mixture_rules");
	TCase *t = tcase_create("mixture_rules");

	tcase_set_timeout(t, 60);
	tcase_add_loop_test(t, a_transient_after_a_resume_is_found, 0, 2);
	tcase_add_loop_test(t, right_draws_over_resumes_are_nothing, 0, 20);
	tcase_add_test(t, a_drift_is_one_finding_over_all_attempts);
	tcase_add_test(t, a_tiny_drift_is_nothing);
	tcase_add_test(t, weights_that_changed_are_no_transient);
	tcase_add_loop_test(t, stages_as_planned_are_nothing, 0, 10);
	tcase_add_test(t, a_stage_counted_from_the_resume_is_found);
	tcase_add_test(t, a_stage_that_never_begins_is_found);
	tcase_add_test(t, a_mixture_of_no_stage_is_a_drift);
	tcase_add_test(t, steps_without_a_stage_are_not_judged_by_one);
	tcase_add_test(t, a_blend_inside_its_bound_is_exact);
	tcase_add_loop_test(t, a_blend_entered_at_the_old_total_is_found, 0, 2);
	tcase_add_loop_test(t, a_source_that_is_gone_is_found, 0, 2);
	tcase_add_loop_test(t, a_source_past_its_epochs_is_found, 0, 2);
	tcase_add_loop_test(t, ranks_with_mixtures_of_their_own_are_found, 0, 2);
	tcase_add_loop_test(t, a_ratio_that_falls_on_every_resume_is_found, 0, 2);
	tcase_add_test(t, a_log_without_sources_says_so);
	suite_add_tcase(s, t);
	return s;
}
