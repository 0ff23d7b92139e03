/* SPDX-License-Identifier: MIT */
/* The words of curves, and their tables. */
#include <math.h>
#include <string.h>

#include "api/curves_parts.h"
#include "base/text.h"

#define LOSSES_SHOWN 20u

/* Words ---------------------------------------------------------------------------------------- */

static const char *number(struct report *r, double v)
{
	return report_number(r, llround(v));
}

const char *curves_rounded(struct report *r, double v, int digits)
{
	struct strbuf b;

	strbuf_init(&b, 64);
	text_add_rounded(&b, v, digits);
	return report_take(r, &b);
}

/* An x, which of epochs is a fraction. */
const char *curves_at(struct report *r, const struct stitch *s, double x)
{
	return s->axis == CURVE_EPOCHS ? curves_rounded(r, x, 5) : number(r, x);
}

struct quantity curves_real(double v)
{
	return isfinite(v) ? quantity_real(v) : (struct quantity){0};
}

struct quantity curves_count(double v)
{
	return isfinite(v) && fabs(v) < 9e15 ? quantity_count(llround(v)) : (struct quantity){0};
}

/* Attempts ------------------------------------------------------------------------------------- */

static const char *from_words(
	struct report *r, const struct stitch *s, const struct stitch_attempt *a)
{
	static const char *const hows[] = {[STITCH_COUNTED] = " (by its first point)",
		[STITCH_BY_SAVE] = " (the last save before)",
		[STITCH_SAID] = "",
		[STITCH_TOLD] = " (told)"};

	if (a->from <= 0)
		return report_text(r, "fresh%s", a->how == STITCH_COUNTED ? "" : hows[a->how]);
	if (a->parent == CURVE_NONE)
		return report_text(
			r, "from %s, before the logs%s", curves_at(r, s, a->from), hows[a->how]);
	return report_text(r, "from %s of attempt %u%s", curves_at(r, s, a->from),
		s->attempts.items[a->parent].number, hows[a->how]);
}

static void add_fate(struct strbuf *b, const char *text)
{
	if (*text == '\0')
		return;
	strbuf_add_text(b, b->n > 0 ? " · " : "");
	strbuf_add_text(b, text);
}

/* What the resume came to, what of the attempt is dead, what is doubtful. */
static const char *fate_words(
	struct report *r, const struct case_curve *c, uint32_t i, enum cell_tone *tone)
{
	const struct stitch_attempt *a = &c->stitch.attempts.items[i];
	const struct curve_resume *resume = curve_resume_of(c, i);
	struct strbuf b;

	strbuf_init(&b, 2000);
	*tone = TONE_PLAIN;
	if (resume) {
		uint8_t outcome = resume->check.outcome;
		curve_resume_words(c, resume, &b);
		*tone = outcome == RESUME_MATCHES        ? TONE_GOOD
			: outcome == RESUME_DIFFERS      ? TONE_BAD
			: outcome == RESUME_SAME_BATCHES ? TONE_WARNING
							 : TONE_PLAIN;
		if (resume->repeat.found || resume->low.found)
			*tone = TONE_BAD;
	}
	if (a->rivals > 0)
		add_fate(&b,
			report_text(r, "%u more attempt%s reached that step: the newest is taken",
				a->rivals, a->rivals == 1 ? "" : "s"));
	if (a->gap > 0)
		add_fate(&b, report_text(r, "%s before it not in the logs",
				     report_counted(r, (uint64_t)llround(a->gap), "step")));
	if (a->points > 0 && a->dead == a->points)
		add_fate(&b, "dead");
	else if (a->dead > 0)
		add_fate(&b,
			report_text(r, "dead behind %s", curves_at(r, &c->stitch, a->alive_to)));
	if (a->finished)
		add_fate(&b, "finished");
	else if (a->killed)
		add_fate(&b, "killed");
	if (a->points > 0 && a->dead == a->points && !resume)
		*tone = TONE_DIM;
	return report_take(r, &b);
}

static const char *const outcome_words[] = {
	[RESUME_ALONE] = "alone",
	[RESUME_INTERVALS] = "intervals",
	[RESUME_BATCH] = "batch",
	[RESUME_COARSE] = "coarse",
	[RESUME_MATCHES] = "matches",
	[RESUME_SAME_BATCHES] = "same batches",
	[RESUME_DIFFERS] = "differs",
};

static struct quantity text_or_none(const char *text)
{
	return text ? quantity_text(text) : (struct quantity){0};
}

/* "samples 6 401–16 000", where the line is shown by them. */
static const char *amount_words(
	struct report *r, const struct stitch *s, uint32_t i, double first, double last)
{
	if (s->by == s->axis || s->by == CURVE_EPOCHS || !isfinite(first) || !isfinite(last))
		return NULL;
	return report_text(r, "%s %s–%s", curve_unit_name(s->by),
		number(r, first - stitch_batch(s, i, s->attempts.items[i].first_x) + 1),
		number(r, last));
}

/* A size that is mostly whole. */
static const char *size_text(struct report *r, double v)
{
	return fabs(v - round(v)) < 1e-3 * v ? number(r, v) : curves_rounded(r, v, 4);
}

/* "32 a step", "16–64 a step" */
static const char *batch_words(struct report *r, const struct stitch *s, uint32_t i)
{
	const struct stitch_attempt *a = &s->attempts.items[i];
	double first = stitch_batch(s, i, a->first_x), last = stitch_batch(s, i, a->last_x);

	if (s->by == s->axis || !isfinite(first) || !isfinite(last))
		return NULL;
	if (!s->consumed.items[i].ramps)
		return report_text(r, "%s a step", size_text(r, s->consumed.items[i].end));
	return report_text(r, "%s–%s a step", size_text(r, first), size_text(r, last));
}

static void add_attempt(struct report *r, struct report_table *t, const struct case_curve *c,
	uint32_t i, const char *run, const char *name)
{
	const struct stitch *s = &c->stitch;
	const struct stitch_attempt *a = &s->attempts.items[i];
	const struct curve_resume *resume = curve_resume_of(c, i);
	enum cell_tone tone;
	const char *fate = fate_words(r, c, i, &tone);
	bool off = isnan(a->alive_to), known = s->unit != CURVE_UNITS;
	const struct stitch_consumed *consumed =
		i < s->consumed.count ? &s->consumed.items[i] : NULL;
	double first = stitch_amount(s, i, a->first_x), last = stitch_amount(s, i, a->last_x);

	const char *cells[] = {run, report_text(r, "%sattempt %u", off ? "  " : "", a->number),
		report_text(r, "%s %s–%s", curve_unit_name(s->axis), curves_at(r, s, a->first_x),
			curves_at(r, s, a->last_x)),
		NULL, amount_words(r, s, i, first, last), NULL, NULL, batch_words(r, s, i),
		report_counted(r, a->points, "point"), NULL, from_words(r, s, a), NULL, NULL, NULL,
		NULL, fate};
	struct quantity values[16] = {text_or_none(name), quantity_count(a->number),
		curves_count(a->first_x), curves_count(a->last_x), curves_count(first),
		curves_count(last), text_or_none(known ? curve_unit_name(s->unit) : NULL),
		curves_real(consumed ? consumed->end : NAN), quantity_count((int64_t)a->points),
		quantity_count((int64_t)a->dead), curves_count(a->from),
		a->parent == CURVE_NONE ? (struct quantity){0}
					: quantity_count(s->attempts.items[a->parent].number),
		quantity_count(!off),
		resume ? quantity_text(outcome_words[resume->check.outcome]) : (struct quantity){0},
		resume ? quantity_count((int64_t)resume->check.loss.matched)
		       : (struct quantity){0}};
	report_add_row_values(r, t, tone, cells, values);
}

static void add_series(struct report *r, struct report_table *t, const struct case_curve *c)
{
	static const char *const means[] = {[CURVE_OF_STEP] = "of the step",
		[CURVE_OF_INTERVAL] = "mean since the point before",
		[CURVE_OF_EPOCH] = "mean of the epoch so far",
		[CURVE_OF_ALL] = "mean of all steps",
		[CURVE_OF_UNKNOWN] = "not said of what"};

	for (size_t i = 0; i < c->log->series.count; i++) {
		const struct curve_series *s = &c->log->series.items[i];
		if (s->role == CURVE_OTHER)
			continue;
		const char *cells[] = {curve_role_name(s->role),
			findings_escaped(&r->findings, slice_of(s->name)),
			report_text(r, "over %s", curve_unit_name(s->unit)), means[s->mean],
			report_counted(r, s->points, "point"), c->log->files.items[s->file].path};
		struct quantity values[6] = {{0}, {0}, quantity_text(curve_unit_name(s->unit)), {0},
			quantity_count((int64_t)s->points), {0}};
		report_add_row_values(r, t, TONE_PLAIN, cells, values);
	}
}

static void add_events(struct report *r, struct report_table *t, const struct case_curve *c,
	const char *run, const char *name)
{
	static const char *const places[] = {[SPIKE_ANYWHERE] = NULL,
		[SPIKE_AT_RESUME] = "resume",
		[SPIKE_AT_WARMUP_END] = "warm-up end",
		[SPIKE_AT_LR_CHANGE] = "lr change",
		[SPIKE_AT_SCALER] = "loss scaler",
		[SPIKE_AT_EPOCH] = "epoch end"};
	const struct stitch *s = &c->stitch;

	for (size_t i = 0; i < c->spikes.list.count; i++) {
		const struct spike *k = &c->spikes.list.items[i];
		double consumed = stitch_amount(s, k->attempt, k->x);
		const char *cells[] = {run,
			report_text(r, "attempt %u", c->stitch.attempts.items[k->attempt].number),
			curves_at(r, &c->stitch, k->x), spike_class_name(k->class),
			curves_rounded(r, k->baseline, 4), curves_rounded(r, k->peak, 4),
			isnan(k->end_x) ? NULL : curves_at(r, &c->stitch, k->end_x),
			curves_rounded(r, k->level, 4), NULL, places[k->place],
			k->dead ? "rolled back" : NULL,
			isfinite(consumed) && s->by != s->axis
				? report_text(
					  r, "%s %s", number(r, consumed), curve_unit_name(s->by))
				: NULL};
		struct quantity values[12] = {text_or_none(name),
			quantity_count(c->stitch.attempts.items[k->attempt].number),
			curves_count(k->x), {0}, curves_real(k->baseline), curves_real(k->peak),
			curves_count(k->end_x), curves_real(k->level), curves_count(k->lead)};
		values[11] = curves_count(consumed);
		report_add_row_values(r, t, TONE_PLAIN, cells, values);
	}
}

/* What lies beside the logs and was not read. */
static void add_left(struct report *r, struct report_table *t, const struct curve_log *l)
{
	for (size_t i = 0; i < l->left.count; i++) {
		const char *cells[] = {
			findings_escaped(&r->findings, slice_of(l->left.items[i].path)), NULL,
			report_text(r, "not read: %s", l->left.items[i].why)};
		report_add_row(r, t, TONE_PLAIN, cells);
	}
}

/* The attempt that the line begins with, where others come before it: other runs, perhaps. */
static void add_fresh_start(struct report *r, struct report_table *t, const struct stitch *s)
{
	uint32_t first = s->tip;

	while (first != CURVE_NONE && s->attempts.items[first].parent != CURVE_NONE)
		first = s->attempts.items[first].parent;
	if (first == CURVE_NONE || first == 0 || s->attempts.items[first].from > 0)
		return;
	const char *cells[] = {NULL, NULL,
		report_text(r,
			"attempt %u starts afresh, and nothing of the %s before it is on the line; where "
			"these are other runs, name each run's logs by themselves",
			s->attempts.items[first].number, first == 1 ? "attempt" : "attempts")};
	report_add_row(r, t, TONE_PLAIN, cells);
}

static void add_notes(struct report *r, struct report_table *t, const struct case_curve *c)
{
	add_fresh_start(r, t, &c->stitch);
	for (size_t i = 0; i < c->stitch.notes.count; i++) {
		const char *cells[] = {NULL, NULL,
			findings_escaped(&r->findings, slice_of(c->stitch.notes.items[i]))};
		report_add_row(r, t, TONE_PLAIN, cells);
	}
	for (size_t i = 0; i < c->log->files.count; i++) {
		const struct curve_file *f = &c->log->files.items[i];
		if (!*f->note)
			continue;
		const char *cells[] = {f->path, NULL, f->note};
		report_add_row(r, t, TONE_PLAIN, cells);
	}
	for (size_t i = 0; i < c->log->losses.count && i < LOSSES_SHOWN; i++) {
		const struct curve_loss *x = &c->log->losses.items[i];
		const char *cells[] = {c->log->files.items[x->file].path,
			report_text(r, "at %s", number(r, (double)x->at)),
			findings_escaped(&r->findings, slice_of(x->what))};
		struct quantity values[3] = {{0}, quantity_count((int64_t)x->at), {0}};
		report_add_row_values(r, t, TONE_WARNING, cells, values);
	}
	add_left(r, t, c->log);
}

void curves_add_tables(struct report *r)
{
	static const char *const attempts[] = {"run", "attempt", "first_step", "last_step",
		"first_consumed", "last_consumed", "consumed_unit", "batch", "points",
		"dead_points", "from_step", "from_attempt", "on_line", "resume", "matched", "fate"};
	static const char *const series[] = {"role", "name", "unit", "mean", "points", "file"};
	static const char *const events[] = {"run", "attempt", "step", "class", "baseline", "peak",
		"back", "level", "lead", "place", "branch", "consumed"};
	static const char *const notes[] = {"file", "at", "what"};

	report_add_table(r, "curve_attempts", "attempts in the loss logs", attempts, 16);
	struct report_table *t = report_add_table(r, "curve_events", "events", events, 12);
	if (t)
		t->verbose_only = true;
	t = report_add_table(r, "curve_series", "series", series, 6);
	if (t)
		t->verbose_only = true;
	report_add_table(r, "curve_notes", "of the loss logs", notes, 3);
}

static struct report_table *table_named(struct report *r, const char *name)
{
	for (size_t i = 0; i < r->tables.count; i++)
		if (strcmp(r->tables.items[i].name, name) == 0)
			return &r->tables.items[i];
	return NULL;
}

struct curves_tables curves_find_tables(struct report *r)
{
	return (struct curves_tables){table_named(r, "curve_attempts"),
		table_named(r, "curve_events"), table_named(r, "curve_series"),
		table_named(r, "curve_notes")};
}

void curves_fill_tables(struct report *r, const struct curves_tables *t, const struct case_curve *c,
	const char *run, const char *name)
{
	for (uint32_t i = 0; i < c->stitch.attempts.count; i++)
		add_attempt(r, t->attempts, c, i, run, name);
	add_events(r, t->events, c, run, name);
	add_series(r, t->series, c);
	add_notes(r, t->notes, c);
}
