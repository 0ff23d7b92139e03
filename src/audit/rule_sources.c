/* SPDX-License-Identifier: MIT */
/* Family M, source by source: planned epochs, and positions where weights changed. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "audit/mixture_table.h"
#include "base/text.h"
#include "ledger/lineage.h"
#include "ledger/mixture.h"

static double epochs_of(const struct mixture_table *t, size_t i)
{
	uint64_t size = t->ledger->sources.items[i].size;
	return size ? (double)t->total[i] / (double)size : NAN;
}

/* Whether another source is still inside its first planned pass. */
static bool others_are_behind(const struct mixture_table *t, size_t i)
{
	for (size_t j = 0; j < t->k; j++) {
		double planned = t->ledger->sources.items[j].epochs;
		if (j != i && epochs_of(t, j) < (isfinite(planned) ? planned : 1))
			return true;
	}
	return false;
}

static void run_source_epochs(struct audit_case *c, struct findings *sink, struct coverage *cover)
{
	static const char *const name = "source-epochs", *const subject = "epochs of each source";
	const char *reason = mixture_absent(c);
	struct mixture_table t = {0};
	uint64_t known = 0;

	if (!reason && !mixture_table_build(&t, c))
		reason = "no memory";
	for (size_t i = 0; !reason && i < t.k; i++)
		known += t.ledger->sources.items[i].size &&
			 isfinite(t.ledger->sources.items[i].epochs);
	if (!reason && known == 0)
		reason = "sizes and planned epochs of the sources are not known";
	if (reason) {
		cover_not_checked(cover, name, subject, "%s", reason);
		mixture_table_release(&t);
		return;
	}
	for (size_t i = 0; i < t.k; i++) {
		const struct ledger_source *source = &t.ledger->sources.items[i];
		double done = epochs_of(&t, i);
		if (!isfinite(source->epochs) || !(done > source->epochs * (1 + 1e-9)) ||
			!others_are_behind(&t, i))
			continue;
		struct finding *f = finding_add(sink, FINDING_M104,
			"%s is in its epoch %s, of %s planned, while others have not finished theirs",
			mixture_source_name(t.ledger, sink, i), rounded_text(sink, done, 4),
			rounded_text(sink, source->epochs, 4));
		f->observed = quantity_real(done);
		f->expected = quantity_real(source->epochs);
		f->unit = "epochs";
		mixture_place(f, &t, 0, t.steps);
	}
	cover_ran(cover, name, subject, "sources", known, t.k,
		known < t.k ? "sizes or planned epochs of the others are not known" : NULL);
	mixture_table_release(&t);
}

const struct rule rule_source_epochs = {
	.name = "source-epochs",
	.subject = "epochs of each source",
	.needs = NEEDS_LEDGER,
	.run = run_source_epochs,
};

/* Weights that changed. ------------------------------------------------------------------------ */

#define PROBE 4096 /* samples of one source looked at on either side of a seam */

/* The keys of one source next to a seam, in the order of their consumption. */
struct probe {
	uint64_t *keys;
	size_t n;
	bool rising; /* each key is greater than the one before */
};

/*
 * Collect up to PROBE keys of a source, from the line's sample `at` on, or the last ones before it.
 * Reads blocks until it has them or the line ends: with a small share that is PROBE / share
 * samples.
 */
static int probe_source(const struct sample_source *line, const struct ledger *l, uint32_t source,
	uint64_t at, bool before, struct sample_buffer *buffer, struct probe *out, struct error *e)
{
	const size_t block = 1 << 16;
	uint64_t end = before ? at : line->rows;
	uint64_t row = before ? (at > 64 * block ? at - 64 * block : 0) : at;
	if (!before && end - row > 64 * block)
		end = row + 64 * block;
	out->n = 0;
	while (row < end && (before || out->n < PROBE)) {
		struct sample_block b;
		int status =
			line->read(line, row, end - row < block ? end - row : block, buffer, &b, e);
		if (status != RP_OK)
			return status;
		for (size_t i = 0; i < b.n && (before || out->n < PROBE); i++) {
			if (l->spaces.items[b.spaces ? b.spaces[i] : 0].source != source)
				continue;
			/* Before a seam the last ones count: the oldest make room. */
			if (out->n == PROBE) {
				memmove(out->keys, out->keys + PROBE / 2,
					PROBE / 2 * sizeof *out->keys);
				out->n = PROBE / 2;
			}
			out->keys[out->n++] = b.keys[i];
		}
		row += b.n;
	}
	out->rising = out->n > 1;
	for (size_t i = 1; i < out->n; i++)
		out->rising &= out->keys[i] > out->keys[i - 1];
	return RP_OK;
}

struct reentry {
	size_t part;
	uint64_t consumed; /* samples of the line before the seam */
	const double *target;
};

/*
 * A source whose ids run on shows by the first id after the seam how many were skipped or are read
 * again; the new weights times the old total say whether the blend was entered there.
 */
static void report_reentry(struct audit_case *c, struct findings *sink, uint32_t source,
	const struct probe *before, const struct probe *after, uint64_t of_source,
	const struct reentry *re)
{
	const struct ledger *l = c->ledger;
	int64_t expected = (int64_t)before->keys[before->n - 1] + 1;
	int64_t observed = (int64_t)after->keys[0], moved = observed - expected;
	double would = re->target[source] * (double)re->consumed - (double)of_source;
	/* A blend that draws at random is as far from its shares as chance lets it. */
	double p = re->target[source], chance = sqrt((double)re->consumed * p * (1 - p));
	if (moved == 0 || fabs((double)moved - would) > 2 + 0.01 * fabs(would) + 4 * chance ||
		(double)moved * would <= 0 || 2 * fabs((double)moved) < fabs(would))
		return;
	const struct line_part *part = &c->lineage->line.items[re->part];
	const char *name = findings_escaped(sink, slice_of(l->sources.items[source].name));
	struct finding *f = finding_add(sink, FINDING_M105,
		"the weights changed at attempt %lld and the blend was entered at the old total: %s of %s %s",
		(long long)l->attempts.items[part->attempt].number,
		counted_text(sink, (uint64_t)llabs(moved), "sample"), name,
		moved > 0 ? "are skipped" : "are read again");
	f->observed = quantity_count(observed);
	f->expected = quantity_count(expected);
	f->unit = "next sample of the source";
	f->place.step_first = f->place.step_last = l->steps.items[part->first].step;
	f->cause = findings_text(sink, "%s × %s = %s samples were taken to be consumed, %s were",
		mixture_percent(sink, re->target[source]), count_text(sink, (int64_t)re->consumed),
		rounded_text(sink, re->target[source] * (double)re->consumed, 6),
		count_text(sink, (int64_t)of_source));
}

static int check_reentry(struct audit_case *c, struct findings *sink, const struct reentry *re,
	const uint64_t *of_source, struct sample_buffer *buffer, struct probe *before,
	struct probe *after, struct error *e)
{
	struct sample_source line = lineage_line(c->lineage);
	for (uint32_t i = 0; i < c->ledger->sources.count; i++) {
		int status =
			probe_source(&line, c->ledger, i, re->consumed, true, buffer, before, e);
		if (status == RP_OK)
			status = probe_source(
				&line, c->ledger, i, re->consumed, false, buffer, after, e);
		if (status != RP_OK)
			return status;
		if (before->rising && after->rising)
			report_reentry(c, sink, i, before, after, of_source[i], re);
	}
	return RP_OK;
}

static void run_blend_reentry(struct audit_case *c, struct findings *sink, struct coverage *cover)
{
	static const char *const name = "blend-reentry", *const subject =
								 "sources where weights changed";
	const struct lineage *g = c->lineage;
	const struct ledger *l = c->ledger;
	size_t k = l->sources.count, seams = 0, known = 0;
	double *was = calloc(k + 1, sizeof *was), *is = calloc(k + 1, sizeof *is);
	uint64_t *of_source = calloc(k + 1, sizeof *of_source);
	struct probe before = {.keys = calloc(PROBE, sizeof(uint64_t))},
		     after = {.keys = calloc(PROBE, sizeof(uint64_t))};
	struct sample_buffer *buffer = sample_buffer_new();
	struct error e = {0};
	int status =
		was && is && of_source && before.keys && after.keys && buffer ? RP_OK : RP_E_MEMORY;

	for (size_t p = 0; p < g->line.count && status == RP_OK; p++) {
		const struct line_part *part = &g->line.items[p];
		if (p > 0 && mixture_target(l, g->line.items[p - 1].attempt, was) &&
			mixture_target(l, part->attempt, is)) {
			known++;
			if (mixture_distance(was, is, k) > 1e-9) {
				const struct reentry re = {p, part->at, is};
				status = check_reentry(
					c, sink, &re, of_source, buffer, &before, &after, &e);
			}
		}
		seams += p > 0;
		for (uint32_t i = 0; i < part->steps; i++) {
			const struct ledger_step *s = &l->steps.items[part->first + i];
			for (uint32_t j = 0; j < s->shares; j++)
				if (mixture_shares_of(l, s)[j].source != LEDGER_NONE)
					of_source[mixture_shares_of(l, s)[j].source] +=
						mixture_shares_of(l, s)[j].n;
		}
	}
	if (status == RP_E_MEMORY)
		sink->lost++;
	else if (status != RP_OK)
		cover_not_checked(cover, name, subject, "%s", e.text);
	else if (seams == 0)
		cover_not_checked(cover, name, subject, "no resume to look at");
	else if (known == 0)
		cover_not_checked(cover, name, subject, "the weights are not known");
	else
		cover_ran(cover, name, subject, "seams", known, seams,
			known < seams ? "the weights at the others are not known" : NULL);
	sample_buffer_free(buffer);
	free(was);
	free(is);
	free(of_source);
	free(before.keys);
	free(after.keys);
}

const struct rule rule_blend_reentry = {
	.name = "blend-reentry",
	.subject = "sources where weights changed",
	.needs = NEEDS_LEDGER,
	.run = run_blend_reentry,
};
