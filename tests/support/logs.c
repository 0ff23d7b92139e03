/* SPDX-License-Identifier: MIT */
#include "support/logs.h"

#include <check.h>

static struct error e;

void log_begin(struct log *g, uint64_t memory, uint64_t size)
{
	uint32_t index;

	*g = (struct log){.limits = limits_default(), .kind = KEY_ID};
	e = ERROR_INIT;
	struct ledger_options o = {.limits = &g->limits, .memory = memory};
	ck_assert_int_eq(ledger_init(&g->ledger, "log.jsonl", &o, &e), RP_OK);
	struct ledger_dataset said = {.name = "points",
		.fingerprint = "",
		.unit = "sample",
		.order = "",
		.size = size,
		.repeat = 1};
	ck_assert_int_eq(ledger_dataset_said(&g->ledger, &said, &index, &e), RP_OK);
}

struct ledger_attempt *log_attempt(struct log *g, int64_t number, int64_t from_step)
{
	ck_assert_int_eq(ledger_attempt(&g->ledger, number, &g->attempt, &e), RP_OK);
	struct ledger_attempt *a = &g->ledger.attempts.items[g->attempt];
	a->implied = false;
	a->from_step = from_step;
	return a;
}

void log_step(
	struct log *g, int64_t step, uint32_t dp, int32_t epoch, const uint64_t *ids, size_t n)
{
	struct ledger_line line = ledger_line_empty();

	line.attempt = g->attempt;
	line.step = step;
	line.dp = dp;
	line.epoch = epoch;
	line.kind = (uint8_t)g->kind;
	line.samples = true;
	line.n = n;
	line.keys = ids;
	ck_assert_msg(ledger_add_line(&g->ledger, &line, &e) == RP_OK, "%s", e.text);
}

const struct ledger *log_end(struct log *g)
{
	ck_assert_msg(ledger_finish(&g->ledger, &e) == RP_OK, "%s", e.text);
	return &g->ledger;
}

void log_release(struct log *g)
{
	ledger_release(&g->ledger);
}

uint64_t log_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

void log_permutation(uint64_t seed, uint64_t *ids, size_t n)
{
	uint64_t state = seed;

	for (size_t i = 0; i < n; i++)
		ids[i] = i;
	for (size_t i = n; i > 1; i--) {
		size_t k = (size_t)(log_random(&state) % i);
		uint64_t id = ids[i - 1];
		ids[i - 1] = ids[k];
		ids[k] = id;
	}
}
