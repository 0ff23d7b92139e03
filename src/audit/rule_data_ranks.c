/* SPDX-License-Identifier: MIT */
/* Families D and R inside attempts: ranks and loader workers that read the same, and repeats. */
#include <math.h>
#include <stdlib.h>

#include "audit/case.h"
#include "audit/data.h"
#include "audit/duplicates.h"

#define EVEN_MARKS 65536u /* samples whose occurrences are counted, about */
#define LOOKED_AT 64u     /* steps whose ranks are compared with each other */
#define RUN_LEAST 3u      /* samples in a row from which on repeats are no chance */

static bool is_excess(uint64_t found, double expected)
{
	return found > 0 && (double)found > expected + 5 * sqrt(expected) + (expected > 0 ? 3 : 0);
}

/* Ranks that the log has, beyond those that the launch says read different data. */
static uint64_t replicas_of(const struct case_line *c, size_t part)
{
	const struct ledger_attempt *a =
		&c->lineage.ledger->attempts.items[c->lineage.line.items[part].attempt];
	uint64_t ranks = part_geometry(c, part)->ranks;

	return a->dp > 0 && ranks > (uint64_t)a->dp && ranks % (uint64_t)a->dp == 0
		       ? ranks / (uint64_t)a->dp
		       : 1;
}

/* Samples that another rank consumed too; those of an epoch's last step where they fill no step. */
static uint64_t rank_repeats(const struct case_line *c, size_t part)
{
	const struct line_part *p = &c->lineage.line.items[part];
	const struct tally *t = &c->tally;

	for (size_t k = tally_epoch_at(t, p->at); k < t->epochs.count; k++) {
		const struct line_epoch *epoch = &t->epochs.items[k];
		if (epoch->at >= p->at + p->rows)
			break;
		if (epoch->tail >= p->at && epoch->tail < p->at + p->rows &&
			epoch->tail_own + epoch->tail_across > t->padding)
			return t->parts.items[part].in_ranks + t->parts.items[part].tail_ranks;
	}
	return t->parts.items[part].in_ranks;
}

bool data_ranks_overlap(const struct case_line *c, size_t part, double *expected)
{
	uint64_t ranks = part_geometry(c, part)->ranks;
	double chance = ranks > 0 ? c->judged.duplicates * duplicates_pairs(c, part) *
					    (1 - 1 / (double)ranks)
				  : 0;

	if (expected)
		*expected = chance;
	return !c->judged.keys_change && replicas_of(c, part) == 1 &&
	       is_excess(rank_repeats(c, part), chance);
}

/* Ranks ---------------------------------------------------------------------------------------- */

/* Into how many different streams the ranks of a part fall, by its first steps; 0: cannot be told.
 */
static size_t different_ranks(const struct case_line *c, size_t part)
{
	const struct ledger *l = c->lineage.ledger;
	const struct line_part *p = &c->lineage.line.items[part];
	const struct ledger_geometry *g = part_geometry(c, part);
	struct sample_source line = lineage_line(&c->lineage);
	uint64_t *sums = calloc(g->parts, sizeof *sums);
	struct sample_buffer *buffer = sample_buffer_new();
	uint64_t at = p->at;
	bool even = sums && buffer;

	for (uint32_t k = 0; even && k < p->steps && k < LOOKED_AT; k++) {
		const struct ledger_step *s = &l->steps.items[p->first + k];
		even = &l->geometries.items[s->geometry] == g;
		for (uint32_t i = 0; even && i < g->parts; i++) {
			struct sample_block b;
			uint32_t left = l->parts.items[g->first + i].n;
			for (; even && left > 0; left -= (uint32_t)b.n, at += b.n) {
				even = line.read(&line, at, left, buffer, &b, NULL) >= 0;
				for (size_t n = 0; even && n < b.n; n++)
					sums[i] = mark_mix(sums[i] + block_mark(l, &b, n));
			}
		}
	}
	size_t different = 0;
	for (uint32_t i = 0; even && i < g->parts; i++) {
		bool known = false;
		for (uint32_t k = 0; k < i; k++)
			known = known ||
				(sums[k] == sums[i] && l->parts.items[g->first + k].micro ==
							       l->parts.items[g->first + i].micro);
		different += !known;
	}
	/* Micro-batches of one rank are different as a rule; only ranks are counted. */
	if (even && g->ranks > 0 && g->parts > g->ranks)
		different = different * g->ranks / g->parts;
	sample_buffer_free(buffer);
	free(sums);
	return even ? different : 0;
}

static void tell_overlap(
	struct findings *sink, const struct case_line *c, size_t part, double expected)
{
	const struct lineage *g = &c->lineage;
	const struct line_part *p = &g->line.items[part];
	uint64_t ranks = part_geometry(c, part)->ranks, missing;
	size_t different = different_ranks(c, part), epoch = tally_epoch_at(&c->tally, p->at);
	const struct line_epoch *of = &c->tally.epochs.items[epoch];
	bool identical = different == 1;
	const char *who =
		identical ? "all ranks read the same samples"
		: different > 0 && different < ranks
			? findings_text(sink, "%llu ranks read only %zu different streams",
				  (unsigned long long)ranks, different)
			: findings_text(sink, "%s are consumed by two ranks",
				  counted_text(sink, rank_repeats(c, part), "sample"));
	const char *covers = "";

	if (of->at >= p->at && epoch_missing(c, epoch, &missing)) {
		double size = (double)(of->distinct + missing), w = (double)ranks;
		covers = findings_text(sink, ": epoch %lld covers %s of %s samples (%s)",
			(long long)(of->label >= 0 ? of->label : (int64_t)epoch),
			count_text(sink, (int64_t)of->distinct),
			count_text(sink, (int64_t)(of->distinct + missing)),
			data_percent(sink, (double)of->distinct, size));
		if (!identical)
			covers = findings_text(sink,
				"%s, and %s is what %llu ranks that shuffle for themselves cover",
				covers, data_percent(sink, 1 - pow(1 - 1 / w, w), 1),
				(unsigned long long)ranks);
	}
	struct finding *f = finding_add(sink, FINDING_D105, "%s%s: %s%s", c->what,
		data_attempt(sink, g->ledger, p->attempt), who, covers);
	data_place(f, g, p->at, p->rows);
	f->observed = quantity_count((int64_t)rank_repeats(c, part));
	f->expected = quantity_count(llround(expected));
	f->unit = "samples of another rank";
	bool since = part > 0 && !data_ranks_overlap(c, part - 1, NULL) &&
		     part_geometry(c, part - 1)->ranks > 1;
	f->cause = since && different > 0 && different < ranks
			   ? "one rank's position or state was restored on all ranks"
		   : since     ? "since this resume the ranks do not share one order"
		   : identical ? "the data is not split by rank"
			       : "the ranks shuffle with seeds of their own before they split";
}

static void run_data_ranks(struct audit_case *c, struct findings *sink, struct coverage *cover)
{
	for (size_t i = 0; i < c->line_count; i++) {
		const struct case_line *line = &c->lines[i];
		const char *subject = findings_text(
			sink, "what %sranks consumed of each other's samples", line->what);
		uint64_t checked = 0, replicas = 0, unlogged = 0, parts = line->lineage.line.count;

		for (size_t k = line->from_part; k < parts; k++) {
			double expected;
			uint32_t attempt = line->lineage.line.items[k].attempt;
			unlogged += c->ledger->attempts.items[attempt].ranks_missing > 0;
			if (replicas_of(line, k) > 1) {
				replicas++;
				continue;
			}
			checked++;
			if (data_ranks_overlap(line, k, &expected))
				tell_overlap(sink, line, k, expected);
		}
		cover_ran(cover, "data-ranks", subject, "attempts", checked,
			parts - line->from_part,
			replicas > 0 ? "more ranks are logged than read data of their own (dp_size)"
			: unlogged > 0 ? "not all ranks are in the log"
				       : NULL);
	}
}

const struct rule rule_data_ranks = {
	.name = "data-ranks",
	.subject = "what ranks consumed of each other's samples",
	.needs = NEEDS_LEDGER,
	.run = run_data_ranks,
};

/* Repeats inside an attempt -------------------------------------------------------------------- */

/* The longest stretch of a part that repeats an earlier one of it in order. */
struct stretch {
	uint64_t at, before, rows;
};

static struct stretch longest_stretch(const struct case_line *c, size_t part)
{
	const struct line_part *p = &c->lineage.line.items[part];
	const struct repeat *r = c->tally.repeats.items;
	size_t count = c->tally.repeats.count, low = 0, high = count;
	struct stretch best = {0}, now = {0};

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (r[middle].at < p->at)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < count && r[low].at < p->at + p->rows; low++) {
		if (r[low].before < p->at)
			continue;
		uint64_t apart = r[low].at - (now.at + now.rows);
		if (now.rows > 0 && r[low].at - r[low].before == now.at - now.before &&
			apart < 8 * c->tally.keys_per_anchor - 7)
			now.rows = r[low].at + 1 - now.at;
		else
			now = (struct stretch){r[low].at, r[low].before, 1};
		if (now.rows > best.rows)
			best = now;
	}
	return best;
}

static int compare_marks(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

/* About EVEN_MARKS of a part's samples, chosen by what they are: all occurrences of each. */
static size_t take_marks(const struct case_line *c, size_t part, uint64_t *marks, size_t most)
{
	const struct lineage *g = &c->lineage;
	const struct line_part *p = &g->line.items[part];
	uint64_t below = p->rows > EVEN_MARKS ? UINT64_MAX / p->rows * EVEN_MARKS : UINT64_MAX;
	struct sample_source line = lineage_line(g);
	struct sample_buffer *buffer = sample_buffer_new();
	struct sample_block b;
	size_t n = 0;

	for (uint64_t at = 0; buffer && at < p->rows && n < most; at += b.n) {
		if (line.read(&line, p->at + at, (size_t)(p->rows - at), buffer, &b, NULL) < 0)
			break;
		for (size_t i = 0; i < b.n && n < most; i++) {
			marks[n] = mark_mix(block_mark(g->ledger, &b, i));
			n += marks[n] <= below;
		}
	}
	sample_buffer_free(buffer);
	return n;
}

/* Whether samples occur `k` times each, rather than on average, as chance makes them do too. */
static bool occur_evenly(const struct case_line *c, size_t part, uint64_t k)
{
	size_t most = (size_t)2 * EVEN_MARKS, even = 0, all = 0;
	uint64_t *marks = calloc(most + 1, sizeof *marks);
	size_t n = marks ? take_marks(c, part, marks, most) : 0;

	if (n > 1)
		qsort(marks, n, sizeof *marks, compare_marks);
	for (size_t i = 0, end; i < n; i = end, all++) {
		for (end = i + 1; end < n && marks[end] == marks[i];)
			end++;
		even += end - i == k;
	}
	free(marks);
	return 10 * even >= 8 * all && all > 0;
}

/* Where every sample is consumed k times, that is how the data is served, and somebody's wish. */
static uint64_t even_factor(const struct case_line *c, size_t part)
{
	const struct part_tally *n = &c->tally.parts.items[part];
	double rows = (double)c->lineage.line.items[part].rows;
	double again = (double)(n->in_step + n->in_rank + n->in_workers);
	double k = rows - again > 0 ? rows / (rows - again) : 0;

	if (k < 1.9 || fabs(k - round(k)) >= 0.05 * k ||
		!occur_evenly(c, part, (uint64_t)llround(k)))
		return 0;
	return (uint64_t)llround(k);
}

/* Repeats inside steps of one rank that the data's own duplicates give. */
static double chance_in_step(const struct case_line *c, size_t part)
{
	const struct ledger_geometry *g = part_geometry(c, part);
	double batch = g->ranks > 0 ? (double)g->samples / g->ranks : 0;

	return c->judged.duplicates * (double)c->lineage.line.items[part].rows * batch / 2;
}

/* Loader workers of one rank that deliver the same. */
static bool tell_workers(struct findings *sink, const struct case_line *c, size_t part)
{
	const struct lineage *g = &c->lineage;
	const struct line_part *p = &g->line.items[part];
	const struct ledger_attempt *a = &g->ledger->attempts.items[p->attempt];
	uint64_t again = c->tally.parts.items[part].in_workers;
	bool content =
		g->ledger->spaces.count == 1 && g->ledger->spaces.items[0].kind == KEY_CONTENT;

	if (!is_excess(again, chance_in_step(c, part) * 2))
		return false;
	struct finding *f = finding_add(sink, content ? FINDING_R109 : FINDING_D106,
		"%s%s: loader workers of a rank deliver the same: %s come from two of them",
		c->what, data_attempt(sink, g->ledger, p->attempt),
		counted_text(sink, again, "sample"));
	data_place(f, g, p->at, p->rows);
	f->observed = quantity_count((int64_t)again);
	f->expected = quantity_count(0);
	f->unit = "samples of another worker";
	f->cause = a->workers > 0 ? findings_text(sink, "%lld workers read one and the same stream",
					    (long long)a->workers)
				  : "workers read one and the same stream";
	return true;
}

static void tell_repeats(struct findings *sink, const struct case_line *c, size_t part)
{
	const struct lineage *g = &c->lineage;
	const struct line_part *p = &g->line.items[part];
	const struct part_tally *n = &c->tally.parts.items[part];
	const struct ledger_attempt *a = &g->ledger->attempts.items[p->attempt];
	const struct ledger_geometry *geometry = part_geometry(c, part);
	uint64_t factor = even_factor(c, part), again = n->in_step + n->in_rank + n->in_workers;
	double chance = chance_in_step(c, part);
	const char *attempt = data_attempt(sink, g->ledger, p->attempt);

	if (tell_workers(sink, c, part))
		return;
	if (factor > 1 || is_excess(n->in_step, chance)) {
		bool workers = factor > 1 && (int64_t)factor == a->workers;
		struct finding *f = finding_add(sink, FINDING_D106,
			factor > 1 ? "%s%s: every sample is consumed %s times"
				   : "%s%s: %s repeated inside a step of one rank",
			c->what, attempt,
			factor > 1 ? count_text(sink, (int64_t)factor)
				   : counted_text(sink, n->in_step, "sample"));
		data_place(f, g, p->at, p->rows);
		f->observed = quantity_count((int64_t)(factor > 1 ? again : n->in_step));
		f->expected = quantity_count(llround(chance));
		f->unit = "repeated samples";
		f->cause =
			workers ? "as many times as there are loader workers: each reads all of the data"
				: NULL;
		f->meaning =
			factor > 1 && !workers
				? "where that is meant (groups of one prompt), the log can declare it as \"repeat\""
				: NULL;
		return;
	}
	struct stretch s = longest_stretch(c, part);
	if (s.rows < RUN_LEAST || s.rows < geometry->samples || n->in_rank == 0)
		return;
	/* Repeats by chance may have one distance and samples of their own between them. */
	struct sample_source line = lineage_line(g);
	int64_t run = align_run(&line, s.at, &line, s.before, s.rows, g->ledger, NULL);
	if (run < (int64_t)s.rows)
		return;
	struct finding *f =
		finding_add(sink, FINDING_D102, "%s%s: %s repeat %s in order, without a resume: %s",
			c->what, attempt, data_steps_of_line(sink, g, s.at, s.rows),
			data_steps_of_line(sink, g, s.before,
				s.rows < s.at - s.before ? s.rows : s.at - s.before),
			counted_text(sink, s.rows, "sample"));
	data_place(f, g, s.at, s.rows);
	f->observed = quantity_count((int64_t)s.rows);
	f->expected = quantity_count(0);
	f->unit = "samples again";
}

static void run_data_repeats(struct audit_case *c, struct findings *sink, struct coverage *cover)
{
	for (size_t i = 0; i < c->line_count; i++) {
		const struct case_line *line = &c->lines[i];
		const char *subject = findings_text(sink, "repeats inside %sattempts", line->what);
		uint64_t parts = line->lineage.line.count;

		/* Keys that never come again cannot repeat, but workers may draw the same ones. */
		if (line->judged.keys_change) {
			for (size_t k = line->from_part; k < parts; k++)
				tell_workers(sink, line, k);
			cover_not_checked(cover, "data-repeats", subject,
				"content keys do not come again from epoch to epoch");
			continue;
		}
		for (size_t k = line->from_part; k < parts; k++)
			tell_repeats(sink, line, k);
		cover_ran(cover, "data-repeats", subject, "attempts", parts - line->from_part,
			parts - line->from_part, NULL);
	}
}

const struct rule rule_data_repeats = {
	.name = "data-repeats",
	.subject = "repeats inside attempts",
	.needs = NEEDS_LEDGER,
	.run = run_data_repeats,
};
