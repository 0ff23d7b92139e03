/* SPDX-License-Identifier: MIT */
/* Families D and P by what a log says of its attempts: empty ones, seeds, batches, positions. */
#include <stdlib.h>

#include "audit/case.h"
#include "audit/data.h"
#include "container/json.h"

#define VERSIONS_MEMORY ((size_t)4 << 20) /* for what two launches say of their packages */

/* Empty attempts ------------------------------------------------------------------------------- */

static void check_empty(struct findings *sink, const struct case_line *c, uint32_t i)
{
	const struct lineage *g = &c->lineage;
	const struct ledger *l = g->ledger;
	const struct ledger_attempt *a = &l->attempts.items[i];
	int64_t from = g->attempts.items[i].from_step;
	bool planned = l->max_steps > 0 && from != LEDGER_NO_STEP;

	if (a->steps > 0 || (planned && from >= l->max_steps))
		return;
	/* What it consumed may be what was lost of the log, which is told by itself. */
	if (ledger_lost_some(l, a))
		return;
	bool ended_well = attempt_ended_well(a);
	/* One that crashed before its first step is nothing odd, and neither is one that begins. */
	if (!ended_well && (*a->end != '\0' || i != g->last))
		return;
	struct finding *f = finding_add(sink, FINDING_D114, "%s%s consumed nothing%s%s", c->what,
		data_attempt(sink, l, i),
		*a->end ? findings_text(sink, " and ended as \"%s\"",
				  findings_escaped(sink, slice_of(a->end)))
			: "",
		planned ? findings_text(sink, ": %s of %s planned steps remained",
				  count_text(sink, l->max_steps - from),
				  count_text(sink, l->max_steps))
			: "");
	f->place.step_first = f->place.step_last = from;
	f->observed = quantity_count(0);
	if (planned)
		f->expected = quantity_count(l->max_steps - from);
	f->unit = "steps";
	if (!ended_well || !planned) {
		f->severity = SEVERITY_WARNING;
		f->meaning =
			ended_well
				? "whether steps remained is not known (plan.max_steps in the log)"
				: "it may have begun just now: how it ended is not logged";
	}
}

/* Declared and undeclared changes -------------------------------------------------------------- */

static const struct seam_judgement *seam_into(
	const struct case_line *c, uint32_t attempt, const struct seam **s)
{
	size_t low = 0, high = c->alignments.seams.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (c->alignments.seams.items[middle].to < attempt)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < c->alignments.seams.count) {
		*s = &c->alignments.seams.items[low];
		if ((*s)->to == attempt)
			return &c->judged.list.items[low];
	}
	*s = NULL;
	return NULL;
}

static bool is_proven(const struct seam_judgement *j)
{
	return j && (j->outcome == SEAM_EXACT || j->outcome == SEAM_REARRANGED ||
			    j->outcome == SEAM_BY_SAMPLES || j->outcome == SEAM_SKIPPED);
}

static void check_seed(struct findings *sink, const struct case_line *c, uint32_t i)
{
	const struct ledger *l = c->lineage.ledger;
	const struct ledger_attempt *a = &l->attempts.items[i];
	const struct ledger_attempt *b = &l->attempts.items[c->lineage.attempts.items[i].parent];
	const struct seam *s = NULL;

	if (!a->has_seed || !b->has_seed || a->seed == b->seed)
		return;
	const struct seam_judgement *j = seam_into(c, i, &s);
	struct finding *f =
		finding_add(sink, FINDING_P110, "%s%s: the seed changed from %lld to %lld%s",
			c->what, data_attempt(sink, l, i), (long long)b->seed, (long long)a->seed,
			a->intent.seed ? ", as declared" : ", undeclared");
	f->place.step_first = f->place.step_last = c->lineage.attempts.items[i].from_step;
	f->observed = quantity_count(a->seed);
	f->expected = quantity_count(b->seed);
	if (a->intent.seed || is_proven(j)) {
		f->severity = SEVERITY_INFO;
		if (!a->intent.seed)
			f->meaning = "the order of the data did not change with it";
	} else if (c->tally.replacement || (s && s->opens)) {
		f->severity = SEVERITY_WARNING;
		f->meaning = "no epoch was under way, so that nothing of it is lost or repeated";
	}
}

/* "torch 2.12.0 → 2.13.0, numpy 1.26 → 2.0", the packages that two attempts both name and have
 * otherwise; "" where there are none. */
static const char *changed_packages(
	struct findings *sink, const struct audit_case *c, const char *before, const char *after)
{
	struct arena arena;
	struct error ignored = ERROR_INIT;
	struct val old, new, name;
	struct strbuf b;
	uint64_t more = 0;

	if (!*before || !*after || strcmp(before, after) == 0)
		return "";
	arena_init(&arena, VERSIONS_MEMORY);
	strbuf_init(&b, 400);
	if (json_decode(slice_of(before), &arena, c->limits, &old, NULL, &ignored) == RP_OK &&
		json_decode(slice_of(after), &arena, c->limits, &new, NULL, &ignored) == RP_OK)
		for (uint64_t i = 0; i < val_count(old); i++) {
			struct val was = val_part(old, i, &name);
			struct val is = val_get_slice(new, val_slice(name));
			if (was.kind != VAL_TEXT || is.kind != VAL_TEXT ||
				slice_eq(val_slice(was), val_slice(is)))
				continue;
			if (b.n > 200)
				more++;
			else
				strbuf_printf(&b, "%s%s %s → %s", b.n > 0 ? ", " : "",
					findings_escaped(sink, val_slice(name)),
					findings_escaped(sink, val_slice(was)),
					findings_escaped(sink, val_slice(is)));
		}
	if (more > 0)
		strbuf_printf(&b, " and %llu more", (unsigned long long)more);
	const char *text = findings_text(sink, "%s", strbuf_text(&b));
	strbuf_release(&b);
	arena_release(&arena);
	return text;
}

static void check_code(const struct audit_case *audit, struct findings *sink,
	const struct case_line *c, uint32_t i)
{
	const struct ledger *l = c->lineage.ledger;
	const struct ledger_attempt *a = &l->attempts.items[i];
	const struct ledger_attempt *b = &l->attempts.items[c->lineage.attempts.items[i].parent];
	const struct seam *s = NULL;
	bool code = *a->code && *b->code && strcmp(a->code, b->code) != 0;
	const char *packages = changed_packages(sink, audit, b->versions, a->versions);

	if (!code && !*packages)
		return;
	struct finding *f = finding_add(sink, FINDING_T117, "%s%s: %s%s%s, %s", c->what,
		data_attempt(sink, l, i),
		code ? findings_text(sink, "the code changed from %s to %s",
			       findings_escaped(sink, slice_of(b->code)),
			       findings_escaped(sink, slice_of(a->code)))
		     : "libraries changed: ",
		code && *packages ? ", and libraries: " : "", packages,
		a->intent.code ? "as declared" : "undeclared");
	f->place.step_first = f->place.step_last = c->lineage.attempts.items[i].from_step;
	if (is_proven(seam_into(c, i, &s)))
		f->meaning = "the data are the same: what differs after this resume, the code did";
	if (a->intent.code)
		f->severity = SEVERITY_INFO;
}

struct shape {
	uint64_t samples, ranks;
};

static const struct ledger_geometry *geometry_of(const struct ledger *l, uint32_t step)
{
	return &l->geometries.items[l->steps.items[step].geometry];
}

/*
 * Of the first step that has samples, unless the two behind it agree on another shape: then it is
 * an epoch's last one, or has the batches too that were drawn to get back to the place.
 */
static struct shape shape_of(const struct ledger *l, const struct ledger_attempt *a)
{
	uint32_t i = a->first, end = a->first + a->steps;

	while (i + 1 < end && l->steps.items[i].n == 0)
		i++;
	const struct ledger_geometry *g = geometry_of(l, i);
	if (end - i > 2) {
		const struct ledger_geometry *b = geometry_of(l, i + 1), *d = geometry_of(l, i + 2);
		if (b->samples > 0 && b->samples == d->samples && b->ranks == d->ranks)
			g = b;
	}
	return (struct shape){g->samples, g->ranks};
}

static void check_batch(struct findings *sink, const struct case_line *c, uint32_t i)
{
	const struct ledger *l = c->lineage.ledger;
	const struct ledger_attempt *a = &l->attempts.items[i];
	const struct ledger_attempt *b = &l->attempts.items[c->lineage.attempts.items[i].parent];
	const struct seam *s = NULL;

	if (a->rows == 0 || b->rows == 0)
		return;
	struct shape x = shape_of(l, b), y = shape_of(l, a);
	if (x.samples == y.samples && x.ranks == y.ranks)
		return;
	const struct seam_judgement *j = seam_into(c, i, &s);
	bool declared =
		x.samples == y.samples ? a->intent.world || a->intent.batch : a->intent.batch;
	struct finding *f = finding_add(sink, FINDING_P111,
		"%s%s: a step takes %s on %s where it took %s on %s%s", c->what,
		data_attempt(sink, l, i), counted_text(sink, y.samples, "sample"),
		counted_text(sink, y.ranks, "rank"), count_text(sink, (int64_t)x.samples),
		count_text(sink, (int64_t)x.ranks), declared ? ", as declared" : "");
	f->place.step_first = f->place.step_last = c->lineage.attempts.items[i].from_step;
	f->observed = quantity_count((int64_t)(x.samples == y.samples ? y.ranks : y.samples));
	f->expected = quantity_count((int64_t)(x.samples == y.samples ? x.ranks : x.samples));
	f->unit = x.samples == y.samples ? "ranks" : "samples a step";
	/* Whether the position lost its meaning, the samples tell. */
	bool harm = j && (j->outcome == SEAM_HOLE || j->outcome == SEAM_WINDOW ||
				 j->outcome == SEAM_FROM_START || j->outcome == SEAM_FROM_EPOCH ||
				 j->outcome == SEAM_OTHER_ORDER || j->outcome == SEAM_DIFFERS);
	if (!harm) {
		f->severity = SEVERITY_INFO;
		f->meaning =
			is_proven(j)
				? "the data went on from its place all the same"
				: "nothing speaks against the place from which the data went on";
	} else {
		/* What it did to the data is a finding of its own, and fails. */
		f->severity = SEVERITY_WARNING;
		f->meaning =
			"the saved position lost its meaning: the data did not go on from its place";
	}
}

/* Steps missing ----------------------------------------------------------------------------------
 */

/*
 * An attempt whose first steps are missing, though the log says from which one it went on, and
 * nothing of its file was lost. Where the dead branch holds those steps, a counter that jumped over
 * them is the likelier cause.
 */
static void check_beginning(struct findings *sink, const struct case_line *c, uint32_t i)
{
	const struct lineage_attempt *n = &c->lineage.attempts.items[i];
	const struct ledger *l = c->lineage.ledger;
	const struct ledger_attempt *a = &l->attempts.items[i];
	int64_t first = n->from_step + a->stride;

	if (n->gap == 0 || n->how == LINEAGE_COUNTED || first > n->gap_last ||
		ledger_lost_of(l, a->file))
		return;
	struct finding *f = finding_add(sink, FINDING_D104,
		"%s%s, resumed from step %s, begins with step %s: its %s %s not in the log",
		c->what, data_attempt(sink, l, i), count_text(sink, n->from_step),
		count_text(sink, a->first_step), data_steps(sink, first, n->gap_last),
		first == n->gap_last ? "is" : "are");
	if (l->attempts.items[n->parent].last_step < n->gap_last)
		f->severity = SEVERITY_WARNING;
	f->place.step_first = first;
	f->place.step_last = n->gap_last;
	f->expected = quantity_count(first);
	f->observed = quantity_count(a->first_step);
	f->unit = "first step";
	f->meaning =
		"their samples were passed over with the step counter, or their log is missing; "
		"a skip that was meant is to be declared";
}

/* What nobody logged of the line is not known to be consumed, and not known to be passed over. */
static void cover_missing_steps(
	struct findings *sink, struct coverage *cover, const struct case_line *c)
{
	const struct lineage *g = &c->lineage;
	const char *samples = "", *more = "";

	if (g->gaps.count == 0)
		return;
	const struct line_gap *gap = &g->gaps.items[0];
	if (g->gaps.count > 1)
		more = findings_text(sink, " and %s elsewhere",
			counted_text(sink, g->missing_steps - gap->steps, "step"));
	if (g->missing_samples > 0)
		samples = findings_text(
			sink, ", about %s", counted_text(sink, g->missing_samples, "sample"));
	cover_ran(cover, "data-attempts",
		findings_text(sink, "all steps of the %ssurviving line", c->what), "steps",
		g->steps - g->unsaid_steps, g->steps - g->unsaid_steps + g->missing_steps,
		findings_text(sink, "what %s%s consumed is not in the log%s",
			data_steps(sink, gap->first, gap->last), more, samples));
}

static void run_data_attempts(struct audit_case *c, struct findings *sink, struct coverage *cover)
{
	for (size_t i = 0; i < c->line_count; i++) {
		const struct case_line *line = &c->lines[i];
		const struct lineage *g = &line->lineage;
		const char *subject =
			findings_text(sink, "what %sattempts say of themselves", line->what);
		uint64_t rivals = 0;

		for (uint32_t k = 0; k < g->attempts.count; k++) {
			const struct lineage_attempt *n = &g->attempts.items[k];
			if (!n->member || (line->from_part > 0 && k != g->last))
				continue;
			check_empty(sink, line, k);
			if (n->parent == LEDGER_NONE || (n->alive == 0 && k != g->last))
				continue;
			check_seed(sink, line, k);
			check_code(c, sink, line, k);
			check_batch(sink, line, k);
			check_beginning(sink, line, k);
			rivals += n->rivals > 0;
		}
		cover_ran(cover, "data-attempts", subject, "attempts", g->members, g->members,
			rivals > 0
				? "a step that was resumed from was reached by several attempts: the newest was taken"
				: NULL);
		cover_missing_steps(sink, cover, line);
	}
}

const struct rule rule_data_attempts = {
	.name = "data-attempts",
	.subject = "what attempts say of themselves",
	.needs = NEEDS_LEDGER,
	.run = run_data_attempts,
};

/* Positions ------------------------------------------------------------------------------------ */

/* Units that a loader may count its position in. */
enum unit {
	UNIT_SAMPLES,
	UNIT_RANK_SAMPLES,
	UNIT_STEPS,
	UNIT_MICRO_BATCHES,
	UNIT_COUNT,
};

static const char *const unit_names[] = {
	"samples", "samples of a rank", "batches", "micro-batches"};

/* What a position may be at a place of the line: in each unit, in all and inside the epoch. */
struct position_values {
	double value[2 * UNIT_COUNT];
};

static struct position_values values_at(
	const struct case_line *c, const struct ledger_attempt *a, uint64_t consumed)
{
	const struct ledger *l = c->lineage.ledger;
	struct shape shape = shape_of(l, a);
	uint64_t epoch_at = 0;
	struct position_values v;

	if (consumed > 0)
		epoch_at = c->tally.epochs.items[tally_epoch_at(&c->tally, consumed - 1)].at;
	for (int inside = 0; inside < 2; inside++) {
		double n = (double)(consumed - (inside ? epoch_at : 0));
		double *out = v.value + inside * UNIT_COUNT;
		out[UNIT_SAMPLES] = n;
		out[UNIT_RANK_SAMPLES] = n / (double)(shape.ranks ? shape.ranks : 1);
		out[UNIT_STEPS] = n / (double)(shape.samples ? shape.samples : 1);
		out[UNIT_MICRO_BATCHES] =
			out[UNIT_STEPS] * (double)(a->accumulation > 0 ? a->accumulation : 1);
	}
	return v;
}

/* How far a sampler may be ahead of what was consumed, in samples. */
static double lead_allowed(const struct case_line *c, const struct ledger_attempt *a)
{
	struct shape shape = shape_of(c->lineage.ledger, a);

	if (a->workers <= 0)
		return 0;
	return (double)(a->workers * (a->prefetch > 0 ? a->prefetch : 2)) *
	       (double)(a->micro_batch > 0 ? (uint64_t)a->micro_batch * shape.ranks
					   : shape.samples);
}

static unsigned fitting_units(const struct position_values *v, double position, double lead)
{
	unsigned fits = 0;

	for (unsigned k = 0; k < 2 * UNIT_COUNT; k++) {
		double scale = v->value[0] > 0 ? v->value[k % UNIT_COUNT] / v->value[0] : 1;
		if (position >= v->value[k] - 1e-6 && position <= v->value[k] + lead * scale + 1e-6)
			fits |= 1u << k;
	}
	return fits;
}

static void tell_position(struct findings *sink, const struct case_line *c,
	const struct ledger_checkpoint *k, unsigned units, const struct position_values *v)
{
	unsigned unit = (unsigned)__builtin_ctz(units);
	double expected = v->value[unit];
	struct finding *f = finding_add(sink, FINDING_P102,
		"%sthe checkpoint of step %s by %s says position %s, and %s %s%s had been consumed",
		c->what, count_text(sink, k->step),
		data_attempt(sink, c->lineage.ledger, k->attempt), count_text(sink, k->position),
		rounded_text(sink, expected, 12), unit_names[unit % UNIT_COUNT],
		unit >= UNIT_COUNT ? " of the epoch" : "");

	if (*k->path)
		f->place.file = findings_escaped(sink, slice_of(k->path));
	f->place.step_first = f->place.step_last = k->step;
	f->observed = quantity_count(k->position);
	f->expected = quantity_real(expected);
	f->unit = unit_names[unit % UNIT_COUNT];
	for (size_t i = 1; i < c->lineage.line.count; i++) {
		const struct line_part *p = &c->lineage.line.items[i];
		bool reached;
		if (p->attempt != k->attempt)
			continue;
		uint64_t own = lineage_consumed(&c->lineage, k->step, &reached) - p->at;
		if ((double)own * expected / (v->value[0] > 0 ? v->value[0] : 1) ==
			(double)k->position)
			f->cause = "the position counts only what was consumed since the resume";
	}
}

static void check_positions(struct audit_case *of, const struct case_line *c, struct findings *sink,
	struct coverage *cover)
{
	const struct lineage *g = &c->lineage;
	const struct ledger *l = g->ledger;
	unsigned established = (1u << 2 * UNIT_COUNT) - 1;
	uint64_t known = 0, fitted = 0;
	const char *subject = findings_text(sink, "positions in %scheckpoints", c->what);
	struct shape first = {0};
	bool even = true;

	(void)of;
	for (size_t i = 0; i < l->checkpoints.count; i++) {
		const struct ledger_checkpoint *k = &l->checkpoints.items[i];
		const struct ledger_attempt *a = &l->attempts.items[k->attempt];
		const struct lineage_attempt *n = &g->attempts.items[k->attempt];
		if (k->position < 0 || !n->member || a->steps == 0 ||
			ledger_step_after(l, a, k->step) - a->first > n->alive)
			continue;
		bool reached;
		uint64_t consumed = lineage_consumed(g, k->step, &reached);
		if (!reached)
			continue;
		known++;
		struct shape shape = shape_of(l, a);
		if (known == 1)
			first = shape;
		even = even && shape.samples == first.samples && shape.ranks == first.ranks;
		/* Counts of batches lose their meaning where the batch changes. */
		if (!even)
			established &= 1u << UNIT_SAMPLES | 1u << (UNIT_COUNT + UNIT_SAMPLES);
		struct position_values v = values_at(c, a, consumed);
		unsigned fits = fitting_units(&v, (double)k->position, lead_allowed(c, a));
		/* An epoch's end may be written as the next one's beginning. */
		if (k->position == 0)
			for (size_t e = 0; e < c->tally.epochs.count; e++)
				if (c->tally.epochs.items[e].at == consumed || consumed == g->rows)
					fits |= established & ~((1u << UNIT_COUNT) - 1);
		if (established & fits) {
			established &= fits;
			fitted++;
		} else if (fitted > 0 && established) {
			tell_position(sink, c, k, established, &v);
		} else {
			established = 0; /* a unit that is not known here */
		}
	}
	if (known == 0)
		cover_not_checked(cover, "data-positions", subject, "no position is logged");
	else if (!established)
		cover_not_checked(
			cover, "data-positions", subject, "the unit of the position is not known");
	else
		cover_ran(cover, "data-positions", subject, "positions", known, known, NULL);
}

/* The loader's own position in steps, against what had been consumed after them. */
static void check_lead(const struct case_line *c, struct findings *sink)
{
	const struct lineage *g = &c->lineage;
	const struct ledger *l = g->ledger;
	double worst = 0, allowed = 0;
	const struct ledger_step *at = NULL;

	for (size_t i = 0; i < g->line.count; i++) {
		const struct line_part *p = &g->line.items[i];
		const struct ledger_attempt *a = &l->attempts.items[p->attempt];
		for (uint32_t k = 0; k < p->steps; k++) {
			const struct ledger_step *s = &l->steps.items[p->first + k];
			uint64_t consumed = p->at + (s->row - p->row) + s->n;
			size_t epoch = tally_epoch_at(&c->tally, consumed - (consumed > 0));
			double inside = (double)(consumed - c->tally.epochs.items[epoch].at);
			if (s->position < 0)
				continue;
			double total = (double)s->position - (double)consumed;
			double lead = (double)s->position - inside;
			/* Whichever it counts, the epoch's samples or all of them. */
			lead = total >= 0 && total < lead ? total : lead;
			if (lead > worst) {
				worst = lead;
				allowed = lead_allowed(c, a);
				at = s;
			}
		}
	}
	if (!at)
		return;
	bool normal = worst <= allowed;
	struct finding *f =
		finding_add(sink, FINDING_P112, "%sthe loader is %s ahead of what was consumed%s",
			c->what, counted_text(sink, (uint64_t)worst, "sample"),
			normal ? ", as workers fetch ahead" : "");
	f->place.step_first = f->place.step_last = at->step;
	f->observed = quantity_real(worst);
	f->expected =
		quantity_text(findings_text(sink, "at most %s", rounded_text(sink, allowed, 9)));
	f->unit = "samples";
	if (!normal)
		f->severity = SEVERITY_WARNING;
}

static void run_data_positions(struct audit_case *c, struct findings *sink, struct coverage *cover)
{
	for (size_t i = 0; i < c->line_count; i++) {
		if (c->lines[i].from_part > 0)
			continue;
		check_positions(c, &c->lines[i], sink, cover);
		check_lead(&c->lines[i], sink);
	}
}

const struct rule rule_data_positions = {
	.name = "data-positions",
	.subject = "positions in checkpoints",
	.needs = NEEDS_LEDGER,
	.run = run_data_positions,
};
