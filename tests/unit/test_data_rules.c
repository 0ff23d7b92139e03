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

Suite *suite_data_rules(void)
{
	Suite *s = suite_create("data_rules");
	TCase *t = tcase_create("runs");

	tcase_add_loop_test(t, right_runs_have_no_findings, 0, 1000);
	tcase_add_loop_test(t, wrong_resumes_are_found, 0, 400);
	suite_add_tcase(s, t);
	return s;
}
