/* SPDX-License-Identifier: MIT */
/*
 * Family M: is the mixture of sources what it was, and what it should be? The surviving line is
 * laid out as a table of counts, one row a step. After each seam the first steps are held against
 * those before it; each stretch between seams against the target weights. Only what is both beyond
 * chance and large enough to matter is a finding.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "audit/mixture_table.h"
#include "base/text.h"
#include "ledger/lineage.h"
#include "ledger/mixture.h"

#define BEFORE_STEPS 500 /* what a resume is held against */
#define LONGEST_TRANSIENT 2000
#define PRIOR_WEIGHT 100.0

static size_t most_off(const double *p, const double *q, size_t k)
{
	size_t worst = 0;
	for (size_t i = 1; i < k; i++)
		if (fabs(p[i] - q[i]) > fabs(p[worst] - q[worst]))
			worst = i;
	return worst;
}

/* Shares of a window against a reference, as a finding under one code. */
struct deviation {
	enum finding_code code;
	size_t first, steps; /* rows of the table */
	const double *share, *reference;
	double distance;
	const char *what; /* "was off for 40 steps after the resume" */
};

static uint64_t tokens_in(const struct mixture_table *t, size_t first, size_t steps)
{
	uint64_t sum = 0;
	for (size_t r = first; r < first + steps; r++)
		sum += t->step[r]->tokens;
	return sum;
}

static struct finding *report_deviation(
	const struct mixture_table *t, struct findings *sink, const struct deviation *d)
{
	size_t i = most_off(d->share, d->reference, t->k);
	uint64_t samples = mixture_samples(t, d->first, d->steps),
		 tokens = tokens_in(t, d->first, d->steps);
	struct finding *f = finding_add(sink, d->code,
		"the mixture %s: %s gave %s of the samples instead of %s", d->what,
		mixture_source_name(t->ledger, sink, i), mixture_percent(sink, d->share[i]),
		mixture_percent(sink, d->reference[i]));
	f->severity = mixture_severity(t, d->distance, samples);
	f->observed = quantity_real(d->share[i]);
	f->expected = quantity_real(d->reference[i]);
	f->unit = "of the samples";
	mixture_place(f, t, d->first, d->steps);
	f->meaning =
		tokens ? findings_text(sink,
				 "%s samples (%s tokens), of which %s points of the mixture were "
				 "of other sources",
				 count_text(sink, (int64_t)samples),
				 count_text(sink, (int64_t)tokens),
				 rounded_text(sink, 100 * d->distance, 3))
		       : findings_text(sink,
				 "%s samples, of which %s points of the mixture were of other "
				 "sources",
				 count_text(sink, (int64_t)samples),
				 rounded_text(sink, 100 * d->distance, 3));
	return f;
}

/* Room that the tests of one table need. */
struct room {
	uint64_t *before, *sum, *windows;
	double *target, *other, *share;
};

static void room_release(struct room *m)
{
	free(m->before);
	free(m->sum);
	free(m->windows);
	free(m->target);
	free(m->other);
	free(m->share);
}

static bool room_make(struct room *m, const struct mixture_table *t)
{
	*m = (struct room){
		.before = calloc(t->k, sizeof *m->before),
		.sum = calloc(t->k, sizeof *m->sum),
		.windows = calloc(t->steps * t->k + 1, sizeof *m->windows),
		.target = calloc(t->k, sizeof *m->target),
		.other = calloc(t->k, sizeof *m->other),
		.share = calloc(t->k, sizeof *m->share),
	};
	return m->before && m->sum && m->windows && m->target && m->other && m->share;
}

/*
 * What the steps after a seam are held against: the window before it where the weights stayed and
 * it is long enough, else the target. False where there is neither.
 */
static bool reference_before(
	const struct mixture_table *t, size_t p, struct room *m, double *reference)
{
	const struct mixture_piece *piece = &t->pieces.items[p], *first = piece;
	while (first > t->pieces.items &&
		mixture_same_target(t, first - 1, piece, m->target, m->other))
		first--;
	size_t window = piece->first - first->first;
	window = window < BEFORE_STEPS ? window : BEFORE_STEPS;
	mixture_add_rows(t, piece->first - window, window, m->before);
	uint64_t samples = mixture_samples(t, piece->first - window, window);
	if (window >= 20 && samples >= 20 * t->k) {
		mixture_shares(m->before, t->k, reference);
		return true;
	}
	if (!mixture_piece_target(t, piece, reference))
		return false;
	for (size_t i = 0; i < t->k; i++)
		m->before[i] = (uint64_t)(reference[i] * 1e12);
	return true;
}

/* Which source's own loss rose or fell most in the transient, where the log has losses per source.
 */
static const char *loss_of_sources(
	const struct mixture_table *t, struct findings *sink, size_t first, size_t steps)
{
	size_t window = first < BEFORE_STEPS ? first : BEFORE_STEPS, worst = 0;
	double largest = 0, was = 0, is = 0;
	for (size_t source = 0; source < t->k; source++) {
		double sum[2] = {0}, n[2] = {0};
		for (size_t r = first - window; r < first + steps; r++) {
			const struct ledger_share *share = mixture_shares_of(t->ledger, t->step[r]);
			for (uint32_t j = 0; j < t->step[r]->shares; j++) {
				if (share[j].source != source)
					continue;
				sum[r >= first] += share[j].loss;
				n[r >= first] += share[j].with_loss;
			}
		}
		if (n[0] < 8 || n[1] < 8)
			continue;
		double change = sum[1] / n[1] - sum[0] / n[0];
		if (fabs(change) > fabs(largest)) {
			largest = change;
			worst = source;
			was = sum[0] / n[0];
			is = sum[1] / n[1];
		}
	}
	if (largest == 0)
		return NULL;
	return findings_text(sink, "of the losses per source that of %s moved most: %s, %s before",
		mixture_source_name(t->ledger, sink, worst), rounded_text(sink, is, 4),
		rounded_text(sink, was, 4));
}

/* Look for a transient at the start of a piece; its length, 0 where there is none. */
static size_t find_transient(
	const struct mixture_table *t, size_t p, struct room *m, struct findings *sink)
{
	const struct mixture_piece *piece = &t->pieces.items[p];
	double *reference = m->other;
	if (piece->steps == 0 || !reference_before(t, p, m, reference))
		return 0;
	double phi = mixture_usual_overdispersion(t, m->windows);
	struct mixture_transient found;
	if (!mixture_find_transient(m->before, t->n + piece->first * t->k, piece->steps, t->k,
		    LONGEST_TRANSIENT, phi, MIXTURE_LOG_ALPHA, &found) ||
		found.distance < MIXTURE_NOTICEABLE || !found.returns)
		return 0;
	mixture_add_rows(t, piece->first, found.steps, m->sum);
	mixture_shares(m->sum, t->k, m->share);
	const struct deviation d = {
		.code = FINDING_M101,
		.first = piece->first,
		.steps = found.steps,
		.share = m->share,
		.reference = reference,
		.distance = found.distance,
		.what = findings_text(sink, "was off for %s after the resume at attempt %lld",
			counted_text(sink, found.steps, "step"),
			(long long)t->ledger->attempts.items[piece->attempt].number),
	};
	struct finding *f = report_deviation(t, sink, &d);
	const char *losses = loss_of_sources(t, sink, piece->first, found.steps);
	if (losses)
		f->meaning = findings_text(sink, "%s; %s", f->meaning, losses);
	return found.steps;
}

/*
 * Whether the counts of a line with one target stay inside what a greedy blend can give, at every
 * step. Independent draws leave it within a few dozen samples.
 */
static bool is_blend(const struct mixture_table *t, const double *target, uint64_t *sum)
{
	uint64_t consumed = 0;
	memset(sum, 0, t->k * sizeof *sum);
	for (size_t r = 0; r < t->steps; r++) {
		for (size_t i = 0; i < t->k; i++) {
			sum[i] += t->n[r * t->k + i];
			consumed += t->n[r * t->k + i];
		}
		if (mixture_blend_excess(target, sum, t->k, consumed) > 0)
			return false;
	}
	return true;
}

/* The row at which the counts from `first` on are proven off target, or SIZE_MAX. */
static size_t off_target(const struct mixture_table *t, size_t first, size_t steps,
	const double *target, double phi, uint64_t *sum)
{
	memset(sum, 0, t->k * sizeof *sum);
	size_t next = 0;
	for (size_t r = 0; r < steps; r++) {
		for (size_t i = 0; i < t->k; i++)
			sum[i] += t->n[(first + r) * t->k + i];
		/* Any time may be looked at; all of them would cost a logarithm of gamma each. */
		if (r < next && r + 1 < steps)
			continue;
		next = r + 1 + r / 64;
		if (mixture_log_evalue(target, sum, t->k, PRIOR_WEIGHT, phi) > -MIXTURE_LOG_ALPHA)
			return first + r;
	}
	return SIZE_MAX;
}

/* A drift that goes on over several pieces of one target is one. */
struct drift {
	const struct mixture_piece *piece; /* the first; NULL: no drift */
	size_t first, steps, source;
	bool above;
};

static void report_drift(
	const struct mixture_table *t, struct room *m, struct findings *sink, const struct drift *d)
{
	if (!d->piece)
		return;
	mixture_piece_target(t, d->piece, m->target);
	mixture_add_rows(t, d->first, d->steps, m->sum);
	mixture_shares(m->sum, t->k, m->share);
	const struct deviation found = {
		.code = FINDING_M102,
		.first = d->first,
		.steps = d->steps,
		.share = m->share,
		.reference = m->target,
		.distance = mixture_distance(m->share, m->target, t->k),
		.what = findings_text(
			sink, "is not its target over %s", counted_text(sink, d->steps, "step")),
	};
	report_deviation(t, sink, &found);
}

/* Hold a stretch against its target; where it drifts, where and which source is in `d`. */
static void find_drift(const struct mixture_table *t, const struct mixture_piece *piece,
	size_t skip, struct room *m, struct drift *d)
{
	size_t first = piece->first + skip, steps = piece->steps - skip;
	double phi = mixture_overdispersion_of(t, piece->first, piece->steps, m->windows);
	if (steps == 0 || off_target(t, first, steps, m->target, phi, m->sum) == SIZE_MAX)
		return;
	mixture_add_rows(t, first, steps, m->sum);
	mixture_shares(m->sum, t->k, m->share);
	if (mixture_distance(m->share, m->target, t->k) < MIXTURE_NOTICEABLE)
		return;
	size_t source = most_off(m->share, m->target, t->k);
	*d = (struct drift){piece, first, steps, source, m->share[source] > m->target[source]};
}

/* How many samples of a source chance would have given since a row; NAN: no target is known. */
static double expected_since(
	const struct mixture_table *t, size_t source, size_t row, struct room *m)
{
	double expected = 0;
	for (size_t p = 0; p < t->pieces.count; p++) {
		const struct mixture_piece *piece = &t->pieces.items[p];
		size_t first = piece->first > row ? piece->first : row,
		       end = piece->first + piece->steps;
		if (first >= end)
			continue;
		if (!mixture_piece_target(t, piece, m->target))
			return NAN;
		expected += m->target[source] * (double)mixture_samples(t, first, end - first);
	}
	return expected;
}

/* The same by the share that the source had until then. */
static double usual_since(const struct mixture_table *t, size_t source, size_t row)
{
	double before = (double)mixture_samples(t, 0, row);
	double since = (double)mixture_samples(t, row, t->steps - row);
	return before > 0 ? (double)t->total[source] / before * since : 0;
}

static void tell_vanished(const struct mixture_table *t, struct findings *sink, size_t source,
	size_t row, double expected, bool ran_out)
{
	const char *name = mixture_source_name(t->ledger, sink, source);
	const char *steps = counted_text(sink, t->steps - row, "step");
	struct finding *f = finding_add(sink, FINDING_M103, "%s gave no sample in %s%s", name,
		row == 0 ? "" : "the last ", steps);
	f->observed = quantity_count(0);
	f->expected = quantity_count((int64_t)expected);
	f->unit = "samples";
	mixture_place(f, t, row, t->steps - row);
	if (ran_out)
		f->cause = findings_text(sink, "it ran out: all of its %s were consumed",
			counted_text(sink, t->ledger->sources.items[source].size, "sample"));
}

/*
 * A source that gives nothing any more: since its last sample so many came that chance would have
 * given 25 or more of it.
 */
static bool report_vanished(const struct mixture_table *t, struct room *m, struct findings *sink)
{
	bool any = false;
	double phi = mixture_overdispersion_of(t, 0, t->steps, m->windows);
	for (size_t i = 0; i < t->k; i++) {
		size_t row = t->steps;
		while (row > 0 && t->n[(row - 1) * t->k + i] == 0)
			row--;
		double expected = expected_since(t, i, row, m);
		if (isnan(expected))
			expected = usual_since(t, i, row);
		/* Of one that was consumed to its end, and no further, nothing more can come. */
		uint64_t size = t->ledger->sources.items[i].size;
		bool ran_out = size && t->total[i] > 0 && t->total[i] % size == 0;
		if (ran_out ? expected < 10 : t->steps - row < 20 || expected / phi < 25)
			continue;
		tell_vanished(t, sink, i, row, expected, ran_out);
		any = true;
	}
	return any;
}

/* Whether all of the line has one target, and keeps to it as a blend does. */
static bool is_one_blend(const struct mixture_table *t, struct room *m)
{
	const struct mixture_piece *pieces = t->pieces.items;
	bool one = true;
	for (size_t p = 1; p < t->pieces.count && one; p++)
		one = mixture_same_target(t, pieces, &pieces[p], m->other, m->share);
	return one && mixture_piece_target(t, pieces, m->target) && is_blend(t, m->target, m->sum);
}

static void check_counts(
	const struct mixture_table *t, struct room *m, struct findings *sink, bool *target_known)
{
	*target_known = is_one_blend(t, m);
	/* A source that is gone moves all the others' shares: it is said, and they are not. */
	if (*target_known || report_vanished(t, m, sink))
		return;
	struct drift open = {0};
	for (size_t p = 0; p < t->pieces.count; p++) {
		const struct mixture_piece *piece = &t->pieces.items[p];
		size_t skip = piece->resumed ? find_transient(t, p, m, sink) : 0;
		struct drift d = {0};
		if (!mixture_piece_target(t, piece, m->target))
			continue;
		*target_known = true;
		find_drift(t, piece, skip, m, &d);
		bool goes_on = d.piece && open.piece &&
			       open.above == (m->share[open.source] > m->target[open.source]);
		if (goes_on && mixture_same_target(t, open.piece, piece, m->other, m->share)) {
			open.steps = d.first + d.steps - open.first;
			continue;
		}
		report_drift(t, m, sink, &open);
		open = d;
	}
	report_drift(t, m, sink, &open);
}

static void run_mixture(struct audit_case *c, struct findings *sink, struct coverage *cover)
{
	static const char *const name = "mixture", *const subject = "mixture of sources";
	const char *reason = mixture_absent(c);
	struct mixture_table t = {0};
	struct room m = {0};
	bool target_known = false;

	if (!reason && (!mixture_table_build(&t, c) || !room_make(&m, &t)))
		reason = "no memory";
	if (!reason && t.samples == 0)
		reason = "no source in the log";
	if (reason) {
		cover_not_checked(cover, name, subject, "%s", reason);
		goto out;
	}
	check_counts(&t, &m, sink, &target_known);
	cover_ran(cover, name, subject, "samples", t.samples, t.samples + t.without_source,
		t.without_source ? "the others have no source in the log"
		: target_known   ? NULL
				 : "only across resumes: no target weights are known");
out:
	room_release(&m);
	mixture_table_release(&t);
}

const struct rule rule_mixture = {
	.name = "mixture",
	.subject = "mixture of sources",
	.needs = NEEDS_LEDGER,
	.run = run_mixture,
};
