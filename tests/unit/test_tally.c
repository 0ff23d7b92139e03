/* SPDX-License-Identifier: MIT */
/* Counting a line, against comparing every sample with every other. */
#include "ledger/align.h"

#include <check.h>
#include <stdlib.h>

#include "support/logs.h"

Suite *suite_tally(void);

#define MOST 1024

static struct log g;
static struct lineage n;
static struct error e;

struct flat {
	uint64_t id;
	uint32_t part, dp;
	int64_t step;
	int32_t epoch;
};

static struct flat flat[MOST];
static size_t flat_count;

/* A run of a few attempts over a small data set that goes wrong in every way there is. */
static void random_run(uint64_t seed, bool epochs, enum key_kind kind)
{
	uint64_t size = 20 + log_random(&seed) % 60, position = 0, order[100];
	uint32_t ranks = 1 + (uint32_t)(log_random(&seed) % 3);
	uint32_t batch = 1 + (uint32_t)(log_random(&seed) % 3);
	int attempts = 1 + (int)(log_random(&seed) % 4);
	int64_t step = 0;
	int32_t epoch = 0;

	log_begin(&g, 1 << 20, 0);
	g.kind = kind;
	log_permutation(seed, order, size);
	flat_count = 0;
	for (int a = 0; a < attempts; a++) {
		log_attempt(&g, a + 1, step);
		int steps = 1 + (int)(log_random(&seed) % 20);
		if (a > 0 && log_random(&seed) % 2)
			position -= log_random(&seed) % (position + 1); /* replay */
		else if (a > 0)
			position += log_random(&seed) % 5; /* skip */
		for (int k = 0; k < steps; k++) {
			step++;
			for (uint32_t dp = 0; dp < ranks; dp++) {
				uint64_t ids[8];
				for (uint32_t i = 0; i < batch; i++) {
					uint64_t id = order[position % size];
					id += kind == KEY_ID ? 0 : id * 0x123456789abcdefu;
					ids[i] = id;
					flat[flat_count++] = (struct flat){
						id, (uint32_t)a, dp, step, epochs ? epoch : 0};
					position += log_random(&seed) % 10 != 0;
				}
				log_step(&g, step, dp, epochs ? epoch : -1, ids, batch);
			}
			if (position >= size * (uint64_t)(epoch + 1))
				epoch++;
		}
	}
	log_end(&g);
	e = ERROR_INIT;
	ck_assert_msg(
		lineage_build(&n, &g.ledger, ATTEMPT_TRAIN, NULL, 0, &e) == RP_OK, "%s", e.text);
	ck_assert_uint_eq(n.rows, flat_count);
}

static void assert_counts(const struct tally *t)
{
	uint64_t distinct = 0;

	for (size_t k = 0; k < t->epochs.count; k++) {
		const struct line_epoch *p = &t->epochs.items[k];
		uint64_t here = 0, fresh = 0;
		for (uint64_t i = p->at; i < p->at + p->rows; i++) {
			bool in_epoch = false, at_all = false;
			for (uint64_t j = 0; j < i; j++) {
				at_all = at_all || flat[j].id == flat[i].id;
				in_epoch = in_epoch || (j >= p->at && flat[j].id == flat[i].id);
			}
			here += !in_epoch;
			fresh += !at_all;
		}
		ck_assert_uint_eq(p->distinct, here);
		ck_assert_uint_eq(p->fresh, fresh);
		ck_assert_uint_eq(p->again, p->rows - here);
		distinct += fresh;
	}
	ck_assert_uint_eq(t->distinct, distinct);
	for (size_t k = 0; k < t->parts.count; k++) {
		struct part_tally want = {0};
		for (size_t i = 0; i < flat_count; i++) {
			const struct line_epoch *p = &t->epochs.items[tally_epoch_at(t, i)];
			size_t last = SIZE_MAX;
			for (size_t j = p->at; j < i; j++)
				last = flat[j].id == flat[i].id ? j : last;
			if (flat[i].part != k || last == SIZE_MAX)
				continue;
			bool tail = i >= p->tail;
			if (flat[last].part != k)
				want.across += !tail;
			else if (flat[last].dp != flat[i].dp)
				want.in_ranks += !tail;
			else if (flat[last].step == flat[i].step)
				want.in_step += !tail;
			else
				want.in_rank += !tail;
		}
		const struct part_tally *got = &t->parts.items[k];
		ck_assert_uint_eq(got->across, want.across);
		ck_assert_uint_eq(got->in_ranks, want.in_ranks);
		ck_assert_uint_eq(got->in_step, want.in_step);
		ck_assert_uint_eq(got->in_rank, want.in_rank);
	}
}

/* Any budget of memory and number of threads gives the same, which is what brute force gives. */
START_TEST(counts_are_what_brute_force_says)
{
	static const uint64_t budgets[] = {64, 4096, 1 << 20};

	for (int kind = 0; kind < 2; kind++) {
		random_run((uint64_t)_i, _i % 2, kind ? KEY_CONTENT : KEY_ID);
		for (size_t b = 0; b < 3; b++) {
			for (unsigned threads = 1; threads <= 3; threads += 2) {
				struct tally t;
				ck_assert_msg(tally_count(&t, &n, budgets[b], threads, &e) == RP_OK,
					"%s", e.text);
				assert_counts(&t);
				for (size_t i = 1; i < t.repeats.count; i++)
					ck_assert(
						t.repeats.items[i - 1].at < t.repeats.items[i].at);
				tally_release(&t);
			}
		}
		lineage_release(&n);
		log_release(&g);
	}
}
END_TEST

/* To within a step, as many samples lie at the offset as voted. */
static void assert_near(const struct seam *s, uint64_t start)
{
	int64_t width = 8 * 3; /* the largest step of such a run */
	uint64_t near = 0;

	for (uint64_t i = s->at; i < s->at + s->head && i - s->at < s->padded; i++) {
		bool found = false;
		for (uint64_t j = start; j < s->at; j++) {
			int64_t off = (int64_t)(j - i) - s->again.offset;
			found = found || (flat[j].id == flat[i].id && llabs(off) <= width);
		}
		near += found;
	}
	ck_assert_uint_ge(near, s->again.votes);
}

/* Every seam's alignment is the offset that most of its samples have, by comparing all pairs. */
START_TEST(alignments_hold_sample_by_sample)
{
	struct tally t;
	struct alignments a;

	random_run((uint64_t)_i, _i % 2, _i % 3 ? KEY_ID : KEY_TEXT);
	ck_assert_int_eq(tally_count(&t, &n, 1 << 20, 1, &e), RP_OK);
	ck_assert_msg(align_seams(&a, &n, &t, 1 + (unsigned)_i % 2, &e) == RP_OK, "%s", e.text);
	ck_assert_uint_eq(a.seams.count, n.line.count - 1);
	for (size_t k = 0; k < a.seams.count; k++) {
		const struct seam *s = &a.seams.items[k];
		uint64_t start = s->at - s->behind, heads = 0;
		for (uint64_t i = s->at; i < s->at + s->head && i - s->at < s->padded; i++) {
			bool again = false;
			for (uint64_t j = start; j < s->at; j++)
				again = again || flat[j].id == flat[i].id;
			heads += again;
		}
		ck_assert_uint_eq(s->again.heads, heads);
		if (s->again.by_step)
			assert_near(s, start);
		if (!align_in_order(&s->again) || s->again.by_rank || s->again.by_step)
			continue;
		uint64_t source = align_source(s, &s->again), votes = 0,
			 own = s->at + s->again.first;
		for (uint64_t i = 0; own + i < s->at + s->head && source + i < s->at &&
				     own + i - s->at < s->padded;
			i++)
			votes += source + i >= start && flat[source + i].id == flat[own + i].id;
		ck_assert_uint_eq(s->again.votes, votes);
		ck_assert_uint_gt(s->again.run, 0);
		for (uint64_t i = 0; i < s->again.run; i++)
			ck_assert_uint_eq(flat[source + i].id, flat[own + i].id);
	}
	align_release(&a);
	tally_release(&t);
	lineage_release(&n);
	log_release(&g);
}
END_TEST

START_TEST(epochs_are_learned_where_samples_come_round_again)
{
	uint64_t order[24];
	struct tally t;

	log_begin(&g, 1 << 20, 0);
	log_attempt(&g, 1, 0);
	for (uint64_t epoch = 0; epoch < 3; epoch++) {
		log_permutation(epoch, order, 24);
		for (uint64_t k = 0; k < 24; k += 4)
			log_step(&g, (int64_t)(epoch * 6 + k / 4 + 1), 0, -1, order + k, 4);
	}
	log_end(&g);
	ck_assert_int_eq(lineage_build(&n, &g.ledger, ATTEMPT_TRAIN, NULL, 0, &e), RP_OK);
	ck_assert_int_eq(tally_count(&t, &n, 1 << 20, 1, &e), RP_OK);
	ck_assert_uint_eq(t.how, EPOCHS_LEARNED);
	ck_assert_uint_eq(t.size, 24);
	ck_assert_uint_eq(t.epochs.count, 3);
	ck_assert_uint_eq(t.distinct, 24);
	tally_release(&t);
	lineage_release(&n);
	log_release(&g);
}
END_TEST

Suite *suite_tally(void)
{
	Suite *s = suite_create("tally");
	TCase *t = tcase_create("tally");

	tcase_add_loop_test(t, counts_are_what_brute_force_says, 0, 60);
	tcase_add_loop_test(t, alignments_hold_sample_by_sample, 0, 200);
	tcase_add_test(t, epochs_are_learned_where_samples_come_round_again);
	suite_add_tcase(s, t);
	return s;
}
