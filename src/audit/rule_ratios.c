/* SPDX-License-Identifier: MIT */
/* Family M: declared ratios of quantities inside the samples, after each resume. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "audit/mixture_table.h"
#include "base/text.h"
#include "ledger/lineage.h"
#include "ledger/mixture.h"

/* A ratio of quantities inside the samples: in relative terms. */
#define RATIO_NOTICEABLE 0.05
#define RATIO_SERIOUS 0.25

#define BEFORE_STEPS 500 /* what a resume is held against */
#define LONGEST_TRANSIENT 2000
#define LOG_ALPHA (-13.8) /* one in a million, for every seam */

/* One quantity's share of all quantities of a step, over the line. */
static bool quantity_series(const struct audit_case *c, size_t quantity, double *series)
{
	const struct ledger *l = c->ledger;
	size_t at = 0, known = 0;
	for (size_t p = 0; p < c->lineage->line.count; p++) {
		const struct line_part *part = &c->lineage->line.items[p];
		for (uint32_t i = 0; i < part->steps; i++, at++) {
			const struct ledger_step *s = &l->steps.items[part->first + i];
			double sum = 0;
			series[at] = NAN;
			if (s->first_count == LEDGER_NONE)
				continue;
			for (size_t q = 0; q < l->count_names.count; q++)
				sum += l->counts.items[s->first_count + q];
			if (sum > 0)
				series[at] = l->counts.items[s->first_count + quantity] / sum;
			known += sum > 0;
		}
	}
	return known > 0;
}

static void loss_series(const struct audit_case *c, double *series)
{
	size_t at = 0;
	for (size_t p = 0; p < c->lineage->line.count; p++) {
		const struct line_part *part = &c->lineage->line.items[p];
		for (uint32_t i = 0; i < part->steps; i++, at++)
			series[at] = (double)c->ledger->steps.items[part->first + i].loss;
	}
}

struct shift {
	size_t at, part;
	double usual;
	struct mixture_transient found;
};

static void report_shift(struct audit_case *c, struct findings *sink, size_t quantity,
	const struct shift *s, const double *series, const double *loss, size_t count, size_t same,
	size_t seams)
{
	const struct ledger *l = c->ledger;
	const struct line_part *part = &c->lineage->line.items[s->part];
	const char *name = findings_escaped(sink, slice_of(l->count_names.items[quantity]));
	double is = s->usual * (1 + s->found.distance);
	struct finding *f = finding_add(sink, FINDING_M101,
		"the share of %s %s by %s for %s after the resume at attempt %lld", name,
		s->found.distance < 0 ? "fell" : "rose",
		mixture_percent(sink, fabs(s->found.distance)),
		counted_text(sink, s->found.steps, "step"),
		(long long)l->attempts.items[part->attempt].number);
	f->severity = fabs(s->found.distance) >= RATIO_SERIOUS ? SEVERITY_ERROR : SEVERITY_WARNING;
	f->observed = quantity_real(is);
	f->expected = quantity_real(s->usual);
	f->unit = "of all that is counted";
	f->place.step_first = l->steps.items[part->first].step;
	f->place.step_last = l->steps.items[part->first + s->found.steps - 1].step;
	if (same > 1)
		f->cause = findings_text(sink,
			"on %zu of %zu resumes it %s: the loader starts differently whenever it is made",
			same, seams, s->found.distance < 0 ? "fell" : "rose");
	/* As many steps again on both sides show whether the loss moved with it. */
	size_t from = s->at > 2 * s->found.steps ? s->at - 2 * s->found.steps : 0;
	size_t to = s->at + 3 * s->found.steps < count ? s->at + 3 * s->found.steps : count;
	double r = mixture_correlation(series + from, loss + from, to - from);
	if (fabs(r) > 0.5)
		f->meaning = findings_text(sink,
			"the loss moved with it: correlation %s over steps %lld to %lld",
			rounded_text(sink, r, 2),
			(long long)(l->steps.items[part->first].step - (int64_t)(s->at - from)),
			(long long)(l->steps.items[part->first].step + (int64_t)(to - s->at) - 1));
}

/* Look for shifts of one quantity at every seam; how many findings. */
static void check_quantity(struct audit_case *c, struct findings *sink, size_t quantity,
	double *series, const double *loss, struct shift *shifts)
{
	const struct lineage *g = c->lineage;
	size_t at = g->line.items[0].steps, found = 0, seams = 0, fell = 0;
	size_t count = (size_t)g->steps;
	for (size_t p = 1; p < g->line.count; at += g->line.items[p++].steps) {
		size_t window = at < BEFORE_STEPS ? at : BEFORE_STEPS;
		struct shift s = {.at = at, .part = p};
		seams++;
		if (!mixture_find_shift(series + at - window, window, series + at,
			    g->line.items[p].steps, LONGEST_TRANSIENT, LOG_ALPHA, &s.found,
			    &s.usual) ||
			fabs(s.found.distance) < RATIO_NOTICEABLE || !s.found.returns)
			continue;
		fell += s.found.distance < 0;
		shifts[found++] = s;
	}
	for (size_t i = 0; i < found; i++) {
		bool down = shifts[i].found.distance < 0;
		report_shift(c, sink, quantity, &shifts[i], series, loss, count,
			down ? fell : found - fell, seams);
	}
}

static void run_ratios(struct audit_case *c, struct findings *sink, struct coverage *cover)
{
	static const char *const name = "ratios", *const subject = "ratios inside the samples";
	const struct ledger *l = c->ledger;
	size_t quantities = l->count_names.count, steps = (size_t)c->lineage->steps;
	if (quantities < 2) {
		cover_not_checked(cover, name, subject,
			quantities ? "one quantity is counted: a ratio needs two"
				   : "no quantities (counts) in the log");
		return;
	}
	if (c->lineage->line.count < 2) {
		cover_not_checked(cover, name, subject, "no resume to look at");
		return;
	}
	double *series = calloc(2 * steps + 1, sizeof *series);
	struct shift *shifts = calloc(c->lineage->line.count, sizeof *shifts);
	if (!series || !shifts) {
		sink->lost++;
	} else {
		loss_series(c, series + steps);
		/* Of two shares one is the mirror of the other. */
		size_t looked = quantities == 2 ? 1 : quantities;
		for (size_t q = 0; q < looked; q++)
			if (quantity_series(c, q, series))
				check_quantity(c, sink, q, series, series + steps, shifts);
		cover_ran(cover, name, subject, "seams", c->lineage->line.count - 1,
			c->lineage->line.count - 1, NULL);
	}
	free(series);
	free(shifts);
}

const struct rule rule_ratios = {
	.name = "ratios",
	.subject = "ratios inside the samples",
	.needs = NEEDS_LEDGER,
	.run = run_ratios,
};
