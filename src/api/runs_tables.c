/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "api/runs_parts.h"

#include <string.h>

#include "audit/data.h"
#include "base/text.h"

#define LOSSES_SHOWN 20u

struct quantity runs_value(const struct run *run)
{
	return run->cell ? quantity_text(run->name) : (struct quantity){0};
}

/* Words ---------------------------------------------------------------------------------------- */

static const char *step_range(struct report *r, int64_t first, int64_t last)
{
	return first == last ? report_text(r, "step %s", report_number(r, first))
			     : report_text(r, "steps %s–%s", report_number(r, first),
				       report_number(r, last));
}

const char *runs_attempt_words(struct report *r, const struct ledger *l, uint32_t i)
{
	struct strbuf b;

	strbuf_init(&b, 200);
	strbuf_add_text(&b, "attempt ");
	ledger_attempt_name(l, i, &b);
	return report_take(r, &b);
}

static const char *const outcome_words[SEAM_OUTCOMES] = {
	[SEAM_SOUND] = "no replay or skip seen",
	[SEAM_EXACT] = "exact",
	[SEAM_REARRANGED] = "exact, ranks rearranged",
	[SEAM_BY_SAMPLES] = "exact by samples, the batch differs",
	[SEAM_SKIPPED] = "skipped as declared",
	[SEAM_FROM_START] = "replay from the start",
	[SEAM_FROM_EPOCH] = "replay from the epoch's start",
	[SEAM_WINDOW] = "replay",
	[SEAM_OTHER_ORDER] = "the epoch again in another order",
	[SEAM_OTHER_EPOCH] = "another epoch's order",
	[SEAM_HOLE] = "samples passed over",
	[SEAM_PERMUTED] = "the same samples in other turns",
	[SEAM_DIFFERS] = "not what the dead branch consumed",
	[SEAM_SKIP_WRONG] = "not the declared skip",
	[SEAM_FRESH] = "a fresh order, as declared",
	[SEAM_UNKNOWABLE] = "the keys cannot tell",
};

/* The last part of a run's path, as far as that tells it from the others. */
const char *runs_short_name(struct report *r, const struct runs *runs, const char *path)
{
	size_t start = strlen(path);
	size_t same = 0;

	while (start > 0 && path[start - 1] == '/')
		start--;
	while (start > 0 && path[start - 1] != '/')
		start--;
	for (size_t i = 0; i < runs->list.count; i++)
		same += slice_ends(slice_of(runs->list.items[i].name), slice_of(path + start));
	return same > 1 ? path : report_text(r, "%s", path + start);
}

/* Attempts and the line ------------------------------------------------------------------------ */

static const char *from_words(struct report *r, const struct lineage *g, uint32_t i)
{
	const struct lineage_attempt *n = &g->attempts.items[i];
	static const char *const hows[] = {[LINEAGE_COUNTED] = " (by its steps)",
		[LINEAGE_SAID] = "",
		[LINEAGE_TOLD] = " (told)"};

	if (n->from_step == LEDGER_NO_STEP)
		return "from: not known";
	if (n->from_step == 0)
		return report_text(r, "fresh%s", n->how == LINEAGE_COUNTED ? "" : hows[n->how]);
	if (n->parent == LEDGER_NONE)
		return report_text(r, "from step %s, before the log%s",
			report_number(r, n->from_step), hows[n->how]);
	return report_text(r, "from step %s of %s%s", report_number(r, n->from_step),
		runs_attempt_words(r, g->ledger, n->parent), hows[n->how]);
}

static void add_fate(struct strbuf *b, const char *text)
{
	if (*text == '\0')
		return;
	strbuf_add_text(b, b->n > 0 ? " · " : "");
	strbuf_add_text(b, text);
}

/* What became of an attempt: how its resume went, what of it is dead, how it ended. */
static const char *fate_words(struct report *r, const struct case_line *c, uint32_t i,
	const struct seam_judgement *j, enum cell_tone *tone)
{
	const struct lineage *g = &c->lineage;
	const struct ledger_attempt *a = &g->ledger->attempts.items[i];
	const struct lineage_attempt *n = &g->attempts.items[i];
	struct strbuf b;

	strbuf_init(&b, 2000);
	*tone = TONE_PLAIN;
	if (j) {
		add_fate(&b, outcome_words[j->outcome]);
		if (j->outcome >= SEAM_FROM_START && j->outcome <= SEAM_SKIP_WRONG)
			*tone = j->outcome == SEAM_PERMUTED ? TONE_WARNING : TONE_BAD;
	}
	if (n->rivals > 0)
		add_fate(&b,
			report_text(r, "%u more attempt%s reached that step: the newest is taken",
				n->rivals, n->rivals == 1 ? "" : "s"));
	/* Where its beginning is before the log, that is said already. */
	if (n->gap > 0 && (n->parent != LEDGER_NONE || n->from_step == 0))
		add_fate(&b, report_text(r, "%s not in the log",
				     step_range(r, n->gap_first, n->gap_last)));
	if (a->steps == 0) {
		add_fate(&b, "consumed nothing");
	} else if (n->alive < a->steps) {
		const struct ledger_step *s = &g->ledger->steps.items[a->first + n->alive];
		add_fate(&b, n->alive == 0 ? "dead"
					   : report_text(r, "%s dead",
						     step_range(r, s->step, a->last_step)));
		if (n->alive == 0 && !j)
			*tone = TONE_DIM;
	}
	if (*a->end)
		add_fate(&b, a->end);
	return report_take(r, &b);
}

/* How far an attempt stands in from the left: one step for each branch that it is off the line. */
static const char *indent_words(struct report *r, const struct case_line *c, uint32_t i)
{
	const struct lineage_attempt *n = &c->lineage.attempts.items[i];
	bool off = n->alive == 0 && i != c->lineage.last;

	return report_text(r, "%s%s", off ? "  " : "", runs_attempt_words(r, c->lineage.ledger, i));
}

void runs_add_lineage(
	struct report *r, struct report_table *t, const struct run *run, const struct case_line *c)
{
	const struct lineage *g = &c->lineage;
	size_t seam = 0;

	for (uint32_t i = 0; i < g->attempts.count; i++) {
		const struct ledger_attempt *a = &g->ledger->attempts.items[i];
		const struct lineage_attempt *n = &g->attempts.items[i];
		const struct seam_judgement *j = NULL;
		enum cell_tone tone;
		if (!n->member)
			continue;
		if (seam < c->alignments.seams.count && c->alignments.seams.items[seam].to == i)
			j = &c->judged.list.items[seam++];
		const char *fate = fate_words(r, c, i, j, &tone);
		const char *cells[] = {run->cell, indent_words(r, c, i),
			a->steps ? step_range(r, a->first_step, a->last_step) : NULL, NULL, NULL,
			a->steps ? report_counted(r, a->rows, "sample") : NULL, from_words(r, g, i),
			NULL, NULL, NULL, fate};
		struct quantity values[11] = {runs_value(run)};
		values[1] = quantity_count(a->number);
		if (a->steps) {
			values[2] = quantity_count(a->steps);
			values[3] = quantity_count(a->first_step);
			values[4] = quantity_count(a->last_step);
		}
		values[5] = quantity_count((int64_t)a->rows);
		if (n->from_step != LEDGER_NO_STEP)
			values[7] = quantity_count(n->from_step);
		if (n->parent != LEDGER_NONE)
			values[8] = quantity_count(g->ledger->attempts.items[n->parent].number);
		values[9] = quantity_count(n->alive);
		report_add_row_values(r, t, tone, cells, values);
	}
	/* Those that stand alone. */
	static const char *const kinds[] = {"training", "rehearsal", "reference", "validation"};
	for (uint32_t i = 0; i < g->attempts.count && g->kind == ATTEMPT_TRAIN; i++) {
		const struct ledger_attempt *a = &g->ledger->attempts.items[i];
		if (g->attempts.items[i].member || a->kind == ATTEMPT_VALIDATION)
			continue;
		const char *cells[] = {run->cell,
			report_text(
				r, "%s, %s", runs_attempt_words(r, g->ledger, i), kinds[a->kind]),
			a->steps ? step_range(r, a->first_step, a->last_step) : NULL, NULL, NULL,
			a->steps ? report_counted(r, a->rows, "sample") : NULL, NULL, NULL, NULL,
			NULL, kinds[a->kind]};
		struct quantity values[11] = {runs_value(run)};
		values[1] = quantity_count(a->number);
		report_add_row_values(r, t, TONE_DIM, cells, values);
	}
}

static uint64_t line_tokens(const struct lineage *g)
{
	uint64_t tokens = 0;

	for (size_t i = 0; i < g->line.count; i++)
		for (uint32_t k = 0; k < g->line.items[i].steps; k++)
			tokens += g->ledger->steps.items[g->line.items[i].first + k].tokens;
	return tokens;
}

/* Whether all steps of the line are there with all ranks, and all lines were understood. */
static bool is_whole(const struct lineage *g)
{
	const struct ledger *l = g->ledger;

	for (size_t i = 0; i < l->attempts.count; i++)
		if (l->attempts.items[i].ranks_missing > 0)
			return false;
	return l->lines_lost == 0 && g->gaps.count == 0;
}

/* "24 of 96 never seen": what the log does not hold may have been among them. */
static const char *never_words(struct report *r, const struct case_line *c, uint64_t never)
{
	const struct lineage *g = &c->lineage;
	const char *words = report_text(r, "%s of %s never seen", report_number(r, (int64_t)never),
		report_number(r, (int64_t)c->tally.size));

	if (is_whole(g) || never == 0)
		return words;
	return g->missing_samples > 0
		       ? report_text(r, "at most %s: about %s are not in the log", words,
				 report_counted(r, g->missing_samples, "sample"))
		       : report_text(r, "%s, as far as is logged", words);
}

/* The line's totals: what the final weights have seen. */
void runs_add_totals(
	struct report *r, struct report_table *t, const struct run *run, const struct case_line *c)
{
	const struct lineage *g = &c->lineage;
	const struct tally *n = &c->tally;
	uint64_t tokens = line_tokens(g), never = n->size > n->distinct ? n->size - n->distinct : 0;
	static const char *const hows[] = {[EPOCHS_NONE] = "where epochs end is not known",
		[EPOCHS_LOGGED] = "",
		[EPOCHS_SIZED] = " by the data set's size",
		[EPOCHS_LEARNED] = " as the samples come round"};
	struct strbuf b;

	strbuf_init(&b, 100);
	if (tokens > 0) {
		text_add_magnitude(&b, tokens);
		strbuf_add_text(&b, " tokens");
	}
	const char *cells[] = {run->cell, report_text(r, "%ssurviving line", c->what),
		report_counted(r, g->steps, "step"), report_counted(r, g->rows, "sample"),
		report_text(r, "%s distinct", report_number(r, (int64_t)n->distinct)),
		n->size == 0 ? NULL : never_words(r, c, never), NULL,
		tokens > 0 ? report_take(r, &b) : NULL,
		n->how == EPOCHS_NONE
			? hows[EPOCHS_NONE]
			: report_text(r, "%s%s", report_counted(r, n->epochs.count, "epoch"),
				  hows[n->how]),
		g->dead_rows ? report_text(r, "%s dead", report_counted(r, g->dead_rows, "sample"))
			     : NULL};
	struct quantity values[10] = {runs_value(run)};
	values[2] = quantity_count((int64_t)g->steps);
	values[3] = quantity_count((int64_t)g->rows);
	values[4] = quantity_count((int64_t)n->distinct);
	if (n->size > 0) {
		if (never == 0 || is_whole(g))
			values[5] = quantity_count((int64_t)never);
		values[6] = quantity_count((int64_t)n->size);
	}
	if (tokens > 0)
		values[7] = quantity_count((int64_t)tokens);
	if (n->how != EPOCHS_NONE)
		values[8] = quantity_count((int64_t)n->epochs.count);
	values[9] = quantity_count((int64_t)g->dead_rows);
	report_add_row_values(r, t, TONE_PLAIN, cells, values);
}

/* What reading left out ------------------------------------------------------------------------ */

void runs_add_losses(
	struct report *r, struct report_table *t, const struct run *run, const struct ledger *l)
{
	for (size_t pass = 0; pass < 2; pass++) {
		size_t count = pass == 0 ? l->losses.count : l->notes.count;
		const struct ledger_loss *list = pass == 0 ? l->losses.items : l->notes.items;
		for (size_t i = 0; i < count && i < LOSSES_SHOWN; i++) {
			const struct ledger_loss *x = &list[i];
			const char *cells[] = {run->cell, pass == 0 ? "left out" : "odd",
				x->line ? report_text(r, "%s:%llu", x->file,
						  (unsigned long long)x->line)
					: x->file,
				x->what};
			struct quantity values[4] = {runs_value(run)};
			report_add_row_values(r, t, TONE_WARNING, cells, values);
		}
	}
}

struct runs_tables runs_add_tables(struct report *r)
{
	static const char *const lineage[] = {"run", "attempt", "steps", "first_step", "last_step",
		"samples", "from", "from_step", "from_attempt", "surviving_steps", "fate"};
	static const char *const line[] = {"run", "line", "steps", "samples", "distinct",
		"never_seen", "size", "tokens", "epochs", "dead_samples"};
	static const char *const checkpoints[] = {
		"run", "path", "step", "attempt", "branch", "position"};
	static const char *const log[] = {"run", "what", "where", "why"};

	static const char *const rollback[] = {
		"run", "path", "step", "first_sign_step", "first_sign", "what"};
	static const char *const side[] = {
		"run", "seed", "lr", "warmup_end", "trouble", "behind_warmup", "what"};

	report_add_table(r, "lineage", "attempts", lineage, 11);
	report_add_table(r, "line", "what the final weights have seen", line, 10);
	report_add_table(r, "checkpoints", "checkpoints", checkpoints, 6);
	report_add_table(r, "log", "lost or odd in the log", log, 4);
	report_add_table(r, "rollback", "where to roll back to", rollback, 6);
	report_add_table(r, "runs", "runs side by side", side, 7);
	size_t first = r->tables.count - 6;
	curves_add_tables(r);
	if (r->tables.count < 10)
		return (struct runs_tables){0};
	struct report_table *t = r->tables.items + first;
	return (struct runs_tables){t, t + 1, t + 2, t + 3, t + 4, t + 5, curves_find_tables(r)};
}
