/* SPDX-License-Identifier: MIT */
/*
 * Sample logs: the tables agree with each other, whatever the budget of memory; what is written is
 * read back as the same; and lines that say all of themselves may be spread over two files.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "fuzz/fuzz.h"
#include "ledger/read.h"
#include "report/write_log.h"
#include "support/ledgers.h"

#define MEMORY ((uint64_t)16 << 20)
#define TEXT_MAX ((size_t)4 << 20)

static struct limits limits_of_fuzz(void)
{
	struct limits limits = limits_default();

	limits.memory = MEMORY;
	limits.line_bytes = 1 << 16;
	limits.nodes = 10000;
	return limits;
}

/* Read texts; false where nothing could be read, or there was too much of it. */
static bool read_texts(struct ledger *l, const struct slice *texts, size_t n, uint64_t memory,
	const struct limits *limits)
{
	struct ledger_options o = {.limits = limits, .memory = memory};
	struct error e = ERROR_INIT;

	int status = ledger_open_memory(l, texts, n, &o, &e);
	if (status < 0)
		fuzz_check_error(&e, status);
	return status == RP_OK;
}

static void check_step(const struct ledger *l, size_t i, uint64_t row)
{
	const struct ledger_step *s = &l->steps.items[i];
	const struct ledger_geometry *g;
	uint64_t in_shares = 0, in_parts = 0;

	MUST(s->row == row && s->attempt < l->attempts.count);
	MUST(s->step >= 0 && s->step <= LEDGER_STEP_MAX);
	MUST(s->geometry < l->geometries.count);
	g = &l->geometries.items[s->geometry];
	MUST(g->samples == s->n && g->first + g->parts <= l->parts.count);
	for (uint32_t k = 0; k < g->parts; k++)
		in_parts += l->parts.items[g->first + k].n;
	MUST(s->first_share + s->shares <= l->shares.count || s->shares == 0);
	for (uint32_t k = 0; k < s->shares; k++) {
		const struct ledger_share *share = &l->shares.items[s->first_share + k];
		MUST(share->source == LEDGER_NONE || share->source < l->sources.count);
		MUST(share->with_loss <= share->n);
		in_shares += share->n;
	}
	MUST(in_parts == s->n && in_shares == s->n);
	MUST(s->first_count == LEDGER_NONE ||
		s->first_count + l->count_names.count <= l->counts.count);
}

static void check_attempts(const struct ledger *l)
{
	uint64_t row = 0;
	size_t step = 0;

	for (size_t i = 0; i < l->attempts.count; i++) {
		const struct ledger_attempt *a = &l->attempts.items[i];
		MUST(i == 0 || a->number > a[-1].number || a->again > a[-1].again);
		if (a->steps == 0) {
			MUST(a->rows == 0 && a->first_step == LEDGER_NO_STEP);
			continue;
		}
		MUST(a->first == step && a->row == row);
		for (uint32_t k = 0; k < a->steps; k++, step++) {
			const struct ledger_step *s = &l->steps.items[step];
			MUST(s->attempt == i && (k == 0 || s->step > s[-1].step));
			check_step(l, step, row);
			row += s->n;
		}
		MUST(a->rows == row - a->row);
		MUST(a->first_weight + a->weights <= l->weights.count);
		MUST(a->intent.first_skip + a->intent.skips <= l->skips.count);
	}
	MUST(step == l->steps.count && row == l->rows);
}

static void check_samples(const struct ledger *l)
{
	struct sample_source source = ledger_samples(l);
	struct sample_buffer *buffer = sample_buffer_new();
	struct sample_block b;
	struct error e = ERROR_INIT;
	uint64_t samples = 0;

	for (uint64_t row = 0; row < source.rows; row += b.n) {
		MUST(source.read(&source, row, 1000, buffer, &b, &e) == RP_OK && b.n > 0);
		for (size_t i = 0; i < b.n; i++)
			MUST((b.spaces ? b.spaces[i] : 0) < l->spaces.count);
	}
	sample_buffer_free(buffer);
	for (size_t i = 0; i < l->spaces.count; i++)
		samples += l->spaces.items[i].samples;
	MUST(samples == l->rows);
	MUST(l->lines_lost <= l->lines + l->losses.count);
}

void fuzz_check_ledger(const struct ledger *l)
{
	check_attempts(l);
	check_samples(l);
}

static int append(void *context, struct slice text, struct error *e)
{
	strbuf_add_slice(context, text);
	return ((struct strbuf *)context)->failed ? fail(e, RP_E_LIMIT, ERROR_NO_OFFSET, "full")
						  : RP_OK;
}

/* What JSON lines cannot hold: the strings of text ids, and launches that only disorder tells of.
 */
static bool can_come_back(const struct ledger *l, struct slice text)
{
	if (l->datasets.count > 1 || !text_is_utf8(text) ||
		slice_find(text, SLICE("\\u")) != SIZE_MAX)
		return false;
	for (size_t i = 0; i < l->spaces.count; i++)
		if (l->spaces.items[i].kind == KEY_TEXT)
			return false;
	for (size_t i = 0; i < l->attempts.count; i++)
		if (l->attempts.items[i].again > 0 && l->attempts.items[i].implied)
			return false;
	return true;
}

static void check_written(const struct ledger *l, struct slice text, const struct limits *limits)
{
	struct error e = ERROR_INIT;
	struct ledger back;
	struct strbuf out;

	strbuf_init(&out, TEXT_MAX);
	if (can_come_back(l, text) && log_write_jsonl(l, append, &out, &e) == RP_OK) {
		struct slice written = strbuf_slice(&out);
		MUST(read_texts(&back, &written, 1, MEMORY, limits));
		MUST(back.lines_lost == 0);
		const char *difference = ledgers_differ(l, &back, LEDGERS_ALL);
		if (difference)
			fprintf(stderr, "%s\n", difference);
		MUST(!difference);
		ledger_release(&back);
	}
	strbuf_release(&out);
}

/* Whether each line says its attempt and rank, and none begins an attempt. */
static bool says_all(const struct ledger *l, struct slice text)
{
	if (l->lines_lost > 0 || l->datasets.count > 1)
		return false;
	for (size_t i = 0; i < l->attempts.count; i++)
		if (!l->attempts.items[i].implied || l->attempts.items[i].again > 0)
			return false;
	while (text.n > 0) {
		const char *end = memchr(text.p, '\n', text.n);
		struct slice line = {text.p, end ? (size_t)(end - text.p) : text.n};
		if (slice_find(line, SLICE("\"attempt\":")) == SIZE_MAX ||
			slice_find(line, SLICE("\"dp\":")) == SIZE_MAX)
			return false;
		text = end ? (struct slice){end + 1, text.n - line.n - 1} : (struct slice){"", 0};
	}
	return true;
}

static void check_spread(const struct ledger *l, struct slice text, const struct limits *limits)
{
	const char *middle = text.n ? memchr(text.p + text.n / 2, '\n', text.n - text.n / 2) : NULL;
	struct ledger other;

	if (!middle || !says_all(l, text))
		return;
	size_t n = (size_t)(middle + 1 - text.p);
	struct slice halves[] = {{text.p, n}, {text.p + n, text.n - n}};
	if (n == text.n || !read_texts(&other, halves, 2, MEMORY, limits))
		return;
	if (other.lines_lost == 0)
		MUST(!ledgers_differ(l, &other, LEDGERS_ALL));
	ledger_release(&other);
}

int fuzz_ledger(const uint8_t *data, size_t size)
{
	struct limits limits = limits_of_fuzz();
	struct slice text = {(const char *)data, size};
	struct ledger l, spilled;

	if (!read_texts(&l, &text, 1, MEMORY, &limits))
		return 0;
	fuzz_check_ledger(&l);
	MUST(read_texts(&spilled, &text, 1, 0, &limits));
	MUST(!ledgers_differ(&l, &spilled, LEDGERS_ALL));
	ledger_release(&spilled);
	check_written(&l, text, &limits);
	check_spread(&l, text, &limits);
	ledger_release(&l);
	return 0;
}
