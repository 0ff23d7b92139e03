/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "ledger/ledger.h"

#include <check.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "ledger/store.h"

Suite *suite_ledger(void);

static struct limits limits;
static struct error e;

static void start(struct ledger *l, uint64_t memory)
{
	limits = limits_default();
	e = ERROR_INIT;
	struct ledger_options o = {.limits = &limits, .memory = memory};
	ck_assert_int_eq(ledger_init(l, "log.jsonl", &o, &e), RP_OK);
}

static void finish(struct ledger *l)
{
	ck_assert_msg(ledger_finish(l, &e) == RP_OK, "%s", e.text);
}

/* The key of a sample, so that each is known by its place. */
static uint64_t key_of(int64_t step, uint32_t dp, uint32_t micro, size_t slot)
{
	return (uint64_t)step * 1000000 + dp * 10000 + micro * 100 + slot;
}

static void add_line(
	struct ledger *l, uint32_t attempt, int64_t step, uint32_t dp, uint16_t micro, size_t n)
{
	uint64_t keys[1000];
	struct ledger_line line = ledger_line_empty();

	for (size_t i = 0; i < n; i++)
		keys[i] = key_of(step, dp, micro, i);
	line.attempt = attempt;
	line.step = step;
	line.dp = dp;
	line.micro = micro;
	line.samples = true;
	line.n = n;
	line.keys = keys;
	ck_assert_msg(ledger_add_line(l, &line, &e) == RP_OK, "%s", e.text);
}

static uint32_t attempt(struct ledger *l, int64_t number)
{
	uint32_t index;

	ck_assert_int_eq(ledger_attempt(l, number, &index, &e), RP_OK);
	return index;
}

/* All keys in order, to be freed. */
static uint64_t *all_keys(const struct ledger *l)
{
	struct sample_source source = ledger_samples(l);
	struct sample_buffer *buffer = sample_buffer_new();
	uint64_t *keys = malloc((source.rows + 1) * sizeof *keys);
	struct sample_block block;

	for (uint64_t row = 0; row < source.rows; row += block.n) {
		ck_assert_int_eq(source.read(&source, row, 777, buffer, &block, &e), RP_OK);
		ck_assert_uint_ge(block.n, 1);
		ck_assert_uint_eq(block.row, row);
		memcpy(keys + row, block.keys, block.n * sizeof *keys);
	}
	sample_buffer_free(buffer);
	return keys;
}

/* Steps 1..steps of `ranks` ranks with two micro-batches of 3 are in order. */
static void assert_in_order(const struct ledger *l, int64_t steps, uint32_t ranks)
{
	uint64_t *keys = all_keys(l), row = 0;

	ck_assert_uint_eq(l->steps.count, (size_t)steps);
	ck_assert_uint_eq(l->rows, (uint64_t)steps * ranks * 6);
	for (int64_t step = 1; step <= steps; step++) {
		const struct ledger_step *s = &l->steps.items[step - 1];
		ck_assert_int_eq(s->step, step);
		ck_assert_uint_eq(s->row, row);
		ck_assert_uint_eq(s->n, ranks * 6);
		for (uint32_t dp = 0; dp < ranks; dp++)
			for (uint32_t k = 0; k < 6; k++, row++)
				ck_assert_uint_eq(keys[row], key_of(step, dp, k / 3, k % 3));
	}
	ck_assert_uint_eq(l->geometries.count, 1);
	ck_assert_uint_eq(l->geometries.items[0].parts, 2 * ranks);
	ck_assert_uint_eq(l->geometries.items[0].ranks, ranks);
	free(keys);
}

enum order_of_lines { BY_STEP, BY_RANK, BACKWARDS, SCATTERED, ORDERS };

static void fill(struct ledger *l, enum order_of_lines order, int64_t steps, uint32_t ranks)
{
	uint32_t a = attempt(l, 1);
	int64_t lines = steps * ranks * 2;

	for (int64_t i = 0; i < lines; i++) {
		int64_t k = i;
		if (order == BACKWARDS)
			k = lines - 1 - i;
		if (order == SCATTERED)
			k = i * 7919 % lines;
		int64_t per_step = ranks * 2;
		int64_t step = k / per_step, place = k % per_step;
		if (order == BY_RANK) {
			step = k / 2 % steps;
			place = k / 2 / steps * 2 + k % 2;
		}
		add_line(l, a, step + 1, (uint32_t)(place / 2), (uint16_t)(place % 2), 3);
	}
}

START_TEST(brings_lines_of_any_order_into_one)
{
	struct ledger first, l;

	start(&first, 1 << 24);
	fill(&first, BY_STEP, 400, 5);
	finish(&first);
	assert_in_order(&first, 400, 5);
	for (int order = BY_RANK; order < ORDERS; order++) {
		start(&l, 1 << 24);
		fill(&l, (enum order_of_lines)order, 400, 5);
		finish(&l);
		assert_in_order(&l, 400, 5);
		for (size_t i = 0; i < l.steps.count; i++) {
			const struct ledger_step *a = &first.steps.items[i], *b = &l.steps.items[i];
			ck_assert_uint_eq(a->sum[0], b->sum[0]);
			ck_assert_uint_eq(a->sum[1], b->sum[1]);
			ck_assert_uint_eq(a->chain, b->chain);
		}
		ck_assert_uint_eq(l.lines_late > 0, order >= BACKWARDS);
		ledger_release(&l);
	}
	ledger_release(&first);
}
END_TEST

START_TEST(samples_beyond_the_budget_are_read_from_a_file)
{
	struct ledger l;
	uint64_t memory, disk;

	for (int order = 0; order < ORDERS; order++) {
		start(&l, 8);
		fill(&l, (enum order_of_lines)order, 3000, 4);
		finish(&l);
		store_sizes(l.store, &memory, &disk);
		ck_assert_uint_eq(memory, 0);
		ck_assert_uint_ge(disk, l.rows);
		assert_in_order(&l, 3000, 4);
		ledger_release(&l);
	}
}
END_TEST

START_TEST(no_room_on_the_disk_is_said)
{
	struct ledger l;
	struct rlimit old, none;

	ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &old), 0);
	none = (struct rlimit){.rlim_cur = 4096, .rlim_max = old.rlim_max};
	start(&l, 0);
	fill(&l, SCATTERED, 1000, 4);
	signal(SIGXFSZ, SIG_IGN);
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &none), 0);
	int status = ledger_finish(&l, &e);
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &old), 0);
	signal(SIGXFSZ, SIG_DFL);
	ck_assert_int_eq(status, RP_E_IO);
	ck_assert_ptr_nonnull(strstr(e.text, "writing to a temporary file in"));
	ledger_release(&l);
}
END_TEST

START_TEST(digests_tell_order_and_set)
{
	static const uint64_t keys[][3] = {{1, 2, 3}, {1, 3, 2}, {1, 2, 4}};
	struct ledger l;

	start(&l, 1 << 20);
	for (int64_t step = 0; step < 3; step++) {
		struct ledger_line line = ledger_line_empty();
		line.attempt = attempt(&l, 1);
		line.step = step;
		line.samples = true;
		line.n = 3;
		line.keys = keys[step];
		ck_assert_int_eq(ledger_add_line(&l, &line, &e), RP_OK);
	}
	finish(&l);
	const struct ledger_step *s = l.steps.items;
	ck_assert_uint_eq(s[0].sum[0], s[1].sum[0]);
	ck_assert_uint_eq(s[0].sum[1], s[1].sum[1]);
	ck_assert_uint_ne(s[0].chain, s[1].chain);
	ck_assert_uint_ne(s[0].sum[0], s[2].sum[0]);
	ck_assert_uint_eq(l.spaces.count, 1);
	ck_assert_uint_eq(l.spaces.items[0].max_key, 4);
	ck_assert_uint_eq(ledger_mark(&l, 0, 4), 4);
	ledger_release(&l);
}
END_TEST

START_TEST(attempts_come_by_number)
{
	struct ledger l;
	uint32_t second;

	start(&l, 1 << 20);
	add_line(&l, attempt(&l, 7), 11, 0, 0, 2);
	ck_assert_int_eq(ledger_attempt_again(&l, 3, 1, &second, &e), RP_OK);
	add_line(&l, second, 6, 0, 0, 2);
	add_line(&l, attempt(&l, 3), 5, 0, 0, 2);
	add_line(&l, attempt(&l, 7), 10, 0, 0, 2);
	attempt(&l, 5);
	finish(&l);
	ck_assert_uint_eq(l.attempts.count, 4);
	const struct ledger_attempt *a = l.attempts.items;
	ck_assert_int_eq(a[0].number, 3);
	ck_assert_int_eq(a[1].number, 3);
	ck_assert_uint_eq(a[1].again, 1);
	ck_assert_int_eq(a[2].number, 5);
	ck_assert_uint_eq(a[2].steps, 0);
	ck_assert_int_eq(a[2].first_step, LEDGER_NO_STEP);
	ck_assert_int_eq(a[3].number, 7);
	ck_assert_uint_eq(a[3].first, 2);
	ck_assert_uint_eq(a[3].row, 4);
	ck_assert_uint_eq(a[3].rows, 4);
	ck_assert_int_eq(a[3].first_step, 10);
	ck_assert_int_eq(a[3].last_step, 11);
	struct strbuf name;
	strbuf_init(&name, 100);
	ledger_attempt_name(&l, 1, &name);
	ck_assert_str_eq(strbuf_text(&name), "3 (second)");
	strbuf_release(&name);
	uint64_t *keys = all_keys(&l);
	ck_assert_uint_eq(keys[0], key_of(5, 0, 0, 0));
	ck_assert_uint_eq(keys[2], key_of(6, 0, 0, 0));
	ck_assert_uint_eq(keys[4], key_of(10, 0, 0, 0));
	free(keys);
	ledger_release(&l);
}
END_TEST

START_TEST(unnumbered_launches_are_counted)
{
	struct ledger l;
	uint32_t index;

	start(&l, 1 << 20);
	for (uint32_t again = 0; again < 3; again++) {
		ck_assert_int_eq(
			ledger_attempt_again(&l, LEDGER_UNNUMBERED, again, &index, &e), RP_OK);
		add_line(&l, index, 5, 0, 0, 1);
	}
	finish(&l);
	for (size_t i = 0; i < 3; i++)
		ck_assert_int_eq(l.attempts.items[i].number, (int64_t)i + 1);
	ledger_release(&l);
}
END_TEST

START_TEST(sources_share_a_step)
{
	struct ledger l;
	uint32_t web, code;
	uint64_t keys[] = {5, 6, 7, 8, 9};
	uint32_t tokens[] = {10, 20, 30, 40, 50};
	float losses[] = {1, 2, NAN, 4, 5};

	start(&l, 1 << 20);
	ck_assert_int_eq(ledger_source_named(&l, SLICE("web"), &web, &e), RP_OK);
	ck_assert_int_eq(ledger_source_named(&l, SLICE("code"), &code, &e), RP_OK);
	uint32_t sources[] = {code, web, code, code, web};
	struct ledger_line line = ledger_line_empty();
	line.attempt = attempt(&l, 1);
	line.samples = true;
	/* The lines of a rank at step 1 and 2 come before those of the other rank. */
	for (uint32_t dp = 2; dp-- > 0;)
		for (line.step = 1; line.step <= 2; line.step++) {
			line.dp = dp;
			line.n = dp ? 5 : 2;
			line.keys = keys;
			line.sources = dp ? sources : NULL;
			line.source = web;
			line.tokens = dp ? tokens : NULL;
			line.tokens_all = 7;
			line.losses = dp ? losses : NULL;
			line.loss = 3;
			ck_assert_int_eq(ledger_add_line(&l, &line, &e), RP_OK);
		}
	finish(&l);
	ck_assert_uint_eq(l.spaces.count, 2);
	ck_assert_uint_eq(l.shares.count, 4);
	for (size_t i = 0; i < 2; i++) {
		const struct ledger_step *s = &l.steps.items[i];
		const struct ledger_share *share = &l.shares.items[s->first_share];
		ck_assert_uint_eq(s->shares, 2);
		ck_assert_uint_eq(s->tokens, 157);
		ck_assert_uint_eq(share[0].source, web);
		ck_assert_uint_eq(share[0].n, 4);
		ck_assert_uint_eq(share[0].tokens, 77);
		ck_assert_uint_eq(share[0].with_loss, 2);
		ck_assert_double_eq(share[0].loss, 7);
		ck_assert_uint_eq(share[1].source, code);
		ck_assert_uint_eq(share[1].n, 3);
		ck_assert_uint_eq(share[1].tokens, 80);
		ck_assert_uint_eq(share[1].with_loss, 2);
		/* 12 over the 4 samples that have one of their own. */
		ck_assert_double_eq_tol((double)s->loss, 3, 1e-6);
	}
	ck_assert_uint_eq(l.sources.items[web].samples, 8);
	ck_assert_uint_eq(l.sources.items[code].samples, 6);
	struct sample_source source = ledger_samples(&l);
	struct sample_buffer *buffer = sample_buffer_new();
	struct sample_block b;
	ck_assert_int_eq(source.read(&source, 0, 100, buffer, &b, &e), RP_OK);
	ck_assert_uint_eq(b.n, 14);
	ck_assert_uint_eq(b.tokens[0], 4);
	ck_assert_uint_eq(b.tokens[1], 3);
	ck_assert_uint_eq(b.tokens[2], 10);
	ck_assert(isnan(b.losses[0]));
	ck_assert(b.losses[2] == 1);
	ck_assert_uint_eq(l.spaces.items[b.spaces[0]].source, web);
	ck_assert_uint_eq(l.spaces.items[b.spaces[2]].source, code);
	ck_assert_uint_ne(ledger_mark(&l, b.spaces[0], 5), ledger_mark(&l, b.spaces[2], 5));
	sample_buffer_free(buffer);
	ledger_release(&l);
}
END_TEST

START_TEST(going_back_is_seen)
{
	struct ledger l;
	uint32_t a;

	start(&l, 1 << 20);
	a = attempt(&l, 1);
	ck_assert_int_eq(ledger_goes_back(&l, a, 0, 0, 5, &e), 0);
	for (int64_t step = 5; step < 20; step++)
		add_line(&l, a, step, 0, 0, 1);
	ck_assert_int_eq(ledger_goes_back(&l, a, 0, 0, 19, &e), 0);
	ck_assert_int_eq(ledger_goes_back(&l, a, 0, 0, 18, &e), 1);
	ck_assert_int_eq(ledger_goes_back(&l, a, 0, 0, 4, &e), 0);
	ck_assert_int_eq(ledger_goes_back(&l, a, 1, 0, 18, &e), 0);
	/* A hole is not going back until it is filled. */
	add_line(&l, a, 30, 0, 0, 1);
	ck_assert_int_eq(ledger_goes_back(&l, a, 0, 0, 25, &e), 0);
	add_line(&l, a, 25, 0, 0, 1);
	add_line(&l, a, 26, 0, 0, 1);
	ck_assert_int_eq(ledger_goes_back(&l, a, 0, 0, 25, &e), 1);
	ck_assert_int_eq(ledger_goes_back(&l, a, 0, 0, 27, &e), 0);
	ck_assert_int_eq(ledger_goes_back(&l, a, 0, 0, 7, &e), 1);
	finish(&l);
	ledger_release(&l);
}
END_TEST

START_TEST(sizes_of_batches_may_vary)
{
	struct ledger l;
	uint64_t row = 0;

	start(&l, 1 << 20);
	uint32_t a = attempt(&l, 1);
	for (uint32_t dp = 0; dp < 3; dp++)
		for (int64_t step = 0; step < 500; step++) {
			/* Some steps come in two lines, some ranks have none. */
			size_t n = (size_t)(step * 7 + dp) % 5;
			if (step % 11 != dp)
				add_line(&l, a, step, dp, 0, n);
		}
	finish(&l);
	for (size_t i = 0; i < l.steps.count; i++) {
		const struct ledger_step *s = &l.steps.items[i];
		const struct ledger_geometry *g = &l.geometries.items[s->geometry];
		uint32_t n = 0;
		ck_assert_uint_eq(s->row, row);
		ck_assert_uint_eq(g->samples, s->n);
		ck_assert_uint_eq(g->ranks, s->step % 11 < 3 ? 2 : 3);
		for (uint32_t k = 0; k < g->parts; k++)
			n += l.parts.items[g->first + k].n;
		ck_assert_uint_eq(n, s->n);
		row += s->n;
	}
	ck_assert_uint_eq(row, l.rows);
	ledger_release(&l);
}
END_TEST

START_TEST(workers_take_turns)
{
	struct ledger l;

	start(&l, 1 << 20);
	struct ledger_line line = ledger_line_empty();
	uint64_t key;
	line.attempt = attempt(&l, 1);
	line.samples = true;
	line.n = 1;
	line.keys = &key;
	for (line.step = 0; line.step < 1000; line.step++) {
		key = (uint64_t)line.step;
		line.worker = (uint16_t)(line.step % 4);
		ck_assert_int_eq(ledger_add_line(&l, &line, &e), RP_OK);
	}
	finish(&l);
	uint64_t *keys = all_keys(&l);
	for (uint64_t i = 0; i < 1000; i++) {
		ck_assert_uint_eq(keys[i], i);
		uint32_t g = l.steps.items[i].geometry;
		ck_assert_uint_eq(l.parts.items[l.geometries.items[g].first].worker, i % 4);
	}
	ck_assert_uint_eq(l.geometries.count, 4);
	free(keys);
	ledger_release(&l);
}
END_TEST

START_TEST(ids_beyond_the_data_are_counted)
{
	struct ledger l;
	uint32_t index;

	start(&l, 1 << 20);
	struct ledger_dataset said = {
		.name = "pile", .fingerprint = "", .unit = "", .order = "", .size = 3, .repeat = 1};
	ck_assert_int_eq(ledger_dataset_said(&l, &said, &index, &e), RP_OK);
	ck_assert_uint_eq(index, 0);
	add_line(&l, attempt(&l, 1), 0, 0, 0, 5);
	finish(&l);
	ck_assert_uint_eq(l.spaces.items[0].beyond, 2);
	ck_assert_uint_eq(l.spaces.items[0].beyond_row, 3);
	ledger_release(&l);
}
END_TEST

Suite *suite_ledger(void)
{
	Suite *s = suite_create("ledger");
	TCase *t = tcase_create("ledger");

	tcase_set_timeout(t, 60);
	tcase_add_test(t, brings_lines_of_any_order_into_one);
	tcase_add_test(t, samples_beyond_the_budget_are_read_from_a_file);
	tcase_add_test(t, no_room_on_the_disk_is_said);
	tcase_add_test(t, digests_tell_order_and_set);
	tcase_add_test(t, attempts_come_by_number);
	tcase_add_test(t, unnumbered_launches_are_counted);
	tcase_add_test(t, sources_share_a_step);
	tcase_add_test(t, going_back_is_seen);
	tcase_add_test(t, sizes_of_batches_may_vary);
	tcase_add_test(t, workers_take_turns);
	tcase_add_test(t, ids_beyond_the_data_are_counted);
	suite_add_tcase(s, t);
	return s;
}
