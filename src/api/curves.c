/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "api/curves.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "api/conclude.h"
#include "api/subject.h"
#include "audit/case.h"
#include "base/text.h"
#include "report/plot.h"

#define PLOT_HEIGHT 14u
#define PLOT_BYTES ((size_t)1 << 20)
#define PIECE_BYTES 65536u
#define CURVE_ROWS 200000u   /* of the curve in the report; the CSV has all */
#define CURVE_CELLS 2000000u /* and fewer rows where there are many columns */
#define LOSSES_SHOWN 20u
#define SAVES_MAX 100000u
#define CONFIRM_POINTS 10u /* of a relaunch, with fewer of which it is too early to give up */

/* Opening -------------------------------------------------------------------------------------- */

struct opened {
	struct curve_log log;
	struct case_curve curve;
	ARRAY(double) saves;
};

/* The steps of checkpoints that lie in the folders. That there are none is no error. */
static void find_saves(
	struct opened *v, const char *const *paths, size_t n, const struct limits *limits)
{
	struct error ignored = ERROR_INIT;
	struct stat st;

	for (size_t i = 0; i < n; i++) {
		struct subject s = SUBJECT_INIT;
		if (stat(paths[i], &st) < 0 || !S_ISDIR(st.st_mode))
			continue;
		if (subject_open(&s, paths[i], limits, &ignored) == RP_OK) {
			for (size_t k = 0; k < s.candidates.list.count; k++) {
				const struct candidate *c = &s.candidates.list.items[k];
				double *slot = c->profile && c->step >= 0
						       ? array_push(&v->saves, SAVES_MAX)
						       : NULL;
				if (slot)
					*slot = (double)c->step;
			}
		}
		subject_close(&s);
		ignored = ERROR_INIT;
	}
}

static void close_all(struct opened *v)
{
	case_curve_close(&v->curve);
	curve_release(&v->log);
	array_release(&v->saves);
}

static bool same_path(const char *a, const char *b)
{
	struct stat sa, sb;

	return stat(a, &sa) == 0 && stat(b, &sb) == 0 && sa.st_dev == sb.st_dev &&
	       sa.st_ino == sb.st_ino;
}

/* What was read is never written over: a log cannot be made again. */
static int is_no_log(const struct curve_log *l, const char *path, struct error *e)
{
	for (size_t i = 0; i < l->files.count; i++)
		if (same_path(l->files.items[i].path, path))
			return fail(e, RP_E_ARGUMENT, ERROR_NO_OFFSET,
				"the table would replace the log '%s'", l->files.items[i].path);
	return RP_OK;
}

/* No verdict is given about nothing. */
static bool is_cut_away(const struct stitch *s, const struct curves_options *o)
{
	if (o->first == INT64_MIN && o->last == INT64_MAX)
		return false;
	for (size_t i = 0; i < s->tracks.count; i++)
		if (s->tracks.items[i].values.count > 0)
			return false;
	return true;
}

static int open_all(struct opened *v, struct report *r, const char *const *paths, size_t n,
	const struct curves_options *o, struct error *e)
{
	struct curve_options co = {.limits = &o->common.limits,
		.patterns = o->patterns,
		.pattern_count = o->pattern_count};

	*v = (struct opened){0};
	if (curve_open(&v->log, paths, n, &co, e) < 0)
		return e->status;
	find_saves(v, paths, n, &o->common.limits);
	struct stitch_options so = {.told = o->told,
		.told_count = o->told_count,
		.saves = v->saves.items,
		.save_count = v->saves.count,
		.first = o->first == INT64_MIN ? NAN : (double)o->first,
		.last = o->last == INT64_MAX ? NAN : (double)o->last};
	int status = case_curve_open(&v->curve, &v->log, &so, NULL, e);
	if (status == RP_OK && o->output)
		status = is_no_log(&v->log, o->output, e);
	if (status == RP_OK && v->curve.stitch.tracks.count == 0)
		status = fail(e, RP_E_NOT_FOUND, ERROR_NO_OFFSET,
			"no loss, gradient norm or learning rate was found in it; --series names what to "
			"look for");
	else if (status == RP_OK && is_cut_away(&v->curve.stitch, o))
		status = fail(e, RP_E_ARGUMENT, ERROR_NO_OFFSET,
			"nothing was logged at the steps that --from and --until leave");
	if (status < 0) {
		close_all(v);
		return status;
	}
	for (size_t i = 0; i < v->log.files.count; i++)
		report_add_input(
			r, v->log.files.items[i].path, "log", v->log.files.items[i].format);
	return RP_OK;
}

/* Words ---------------------------------------------------------------------------------------- */

static const char *number(struct report *r, double v)
{
	return report_number(r, llround(v));
}

static const char *rounded(struct report *r, double v, int digits)
{
	struct strbuf b;

	strbuf_init(&b, 64);
	text_add_rounded(&b, v, digits);
	return report_take(r, &b);
}

/* An x, which of epochs is a fraction. */
static const char *at(struct report *r, const struct stitch *s, double x)
{
	return s->axis == CURVE_EPOCHS ? rounded(r, x, 5) : number(r, x);
}

static struct quantity real_or_none(double v)
{
	return isfinite(v) ? quantity_real(v) : (struct quantity){0};
}

static struct quantity count_or_none(double v)
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
			r, "from %s, before the logs%s", at(r, s, a->from), hows[a->how]);
	return report_text(r, "from %s of attempt %u%s", at(r, s, a->from),
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
		add_fate(&b, report_text(r, "dead behind %s", at(r, &c->stitch, a->alive_to)));
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

static void add_attempt(struct report *r, struct report_table *t, const struct case_curve *c,
	uint32_t i, const char *run, const char *name)
{
	const struct stitch *s = &c->stitch;
	const struct stitch_attempt *a = &s->attempts.items[i];
	const struct curve_resume *resume = curve_resume_of(c, i);
	enum cell_tone tone;
	const char *fate = fate_words(r, c, i, &tone);
	bool off = isnan(a->alive_to);

	const char *cells[] = {run, report_text(r, "%sattempt %u", off ? "  " : "", a->number),
		report_text(r, "%s %s–%s", curve_unit_name(s->axis), at(r, s, a->first_x),
			at(r, s, a->last_x)),
		NULL, report_counted(r, a->points, "point"), NULL, from_words(r, s, a), NULL, NULL,
		NULL, NULL, fate};
	struct quantity values[12] = {text_or_none(name), quantity_count(a->number),
		count_or_none(a->first_x), count_or_none(a->last_x),
		quantity_count((int64_t)a->points), quantity_count((int64_t)a->dead),
		count_or_none(a->from),
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

	for (size_t i = 0; i < c->spikes.list.count; i++) {
		const struct spike *k = &c->spikes.list.items[i];
		const char *cells[] = {run,
			report_text(r, "attempt %u", c->stitch.attempts.items[k->attempt].number),
			at(r, &c->stitch, k->x), spike_class_name(k->class),
			rounded(r, k->baseline, 4), rounded(r, k->peak, 4),
			isnan(k->end_x) ? NULL : at(r, &c->stitch, k->end_x),
			rounded(r, k->level, 4), NULL, places[k->place],
			k->dead ? "rolled back" : NULL};
		struct quantity values[11] = {text_or_none(name),
			quantity_count(c->stitch.attempts.items[k->attempt].number),
			count_or_none(k->x), {0}, real_or_none(k->baseline), real_or_none(k->peak),
			count_or_none(k->end_x), real_or_none(k->level), count_or_none(k->lead)};
		report_add_row_values(r, t, TONE_PLAIN, cells, values);
	}
}

static void add_notes(struct report *r, struct report_table *t, const struct case_curve *c)
{
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
}

void curves_add_tables(struct report *r)
{
	static const char *const attempts[] = {"run", "attempt", "first_step", "last_step",
		"points", "dead_points", "from_step", "from_attempt", "on_line", "resume",
		"matched", "fate"};
	static const char *const series[] = {"role", "name", "unit", "mean", "points", "file"};
	static const char *const events[] = {"run", "attempt", "step", "class", "baseline", "peak",
		"back", "level", "lead", "place", "branch"};
	static const char *const notes[] = {"file", "at", "what"};

	report_add_table(r, "curve_attempts", "attempts in the loss logs", attempts, 12);
	struct report_table *t = report_add_table(r, "curve_events", "events", events, 11);
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

/* The picture ---------------------------------------------------------------------------------- */

const char *curves_picture(struct report *r, const struct case_curve *c, unsigned width, bool ascii)
{
	const struct stitch_track *t = c->stitch.tracks.count ? c->stitch.tracks.items : NULL;
	size_t n = t ? t->values.count : 0, marks = 0;
	struct plot_point *points = calloc(n + 1, sizeof *points);
	struct plot_mark *mark =
		calloc(c->stitch.seams.count + c->spikes.list.count + 1, sizeof *mark);
	const char *text = NULL;
	struct strbuf b;

	strbuf_init(&b, PLOT_BYTES);
	/* The line by x, then what is dead. */
	size_t at = 0;
	for (size_t i = 0; points && t && i < t->line.count; i++) {
		const struct stitch_value *v = &t->values.items[t->line.items[i]];
		points[at++] = (struct plot_point){v->x, v->value, false};
	}
	for (size_t i = 0; points && i < n; i++)
		if (!t->values.items[i].alive)
			points[at++] = (struct plot_point){
				t->values.items[i].x, t->values.items[i].value, true};
	for (size_t i = 0; mark && i < c->spikes.list.count; i++)
		if (!c->spikes.list.items[i].dead)
			mark[marks++] = (struct plot_mark){c->spikes.list.items[i].x, '!'};
	for (size_t i = 0; mark && i < c->stitch.seams.count; i++)
		mark[marks++] = (struct plot_mark){c->stitch.seams.items[i].x, '^'};
	struct plot p = {.points = points,
		.n = at,
		.marks = mark,
		.mark_count = marks,
		.width = width,
		.height = PLOT_HEIGHT,
		.ascii = ascii,
		.unit = curve_unit_name(c->stitch.axis)};
	if (!points || !mark || !plot_draw(&p, &b) || b.failed)
		r->findings.lost++;
	else if (b.n > 0)
		text = report_text(r, "%s", strbuf_text(&b));
	strbuf_release(&b);
	free(points);
	free(mark);
	return text;
}

/* The curve as rows ---------------------------------------------------------------------------- */

/* Walks over all tracks at once, step by step. */
struct rows {
	const struct stitch *s;
	bool dead;  /* all values by attempt; else the line */
	size_t *at; /* by track: the next one */
};

static const struct stitch_value *peek(const struct rows *w, size_t track)
{
	const struct stitch_track *t = &w->s->tracks.items[track];

	if (w->dead)
		return w->at[track] < t->values.count ? &t->values.items[w->at[track]] : NULL;
	return w->at[track] < t->line.count ? &t->values.items[t->line.items[w->at[track]]] : NULL;
}

static bool comes_before(
	const struct rows *w, const struct stitch_value *a, const struct stitch_value *b)
{
	if (w->dead && a->attempt != b->attempt)
		return a->attempt < b->attempt;
	return a->x < b->x;
}

/* The values of the next step, one per track or NULL; returned is one of them, NULL at the end. */
static const struct stitch_value *next_row(struct rows *w, const struct stitch_value **values)
{
	const struct stitch_value *first = NULL;

	for (size_t i = 0; i < w->s->tracks.count; i++) {
		const struct stitch_value *v = peek(w, i);
		if (v && (!first || comes_before(w, v, first)))
			first = v;
	}
	for (size_t i = 0; i < w->s->tracks.count && first; i++) {
		const struct stitch_value *v = peek(w, i);
		values[i] = v && !comes_before(w, first, v) ? v : NULL;
		w->at[i] += values[i] != NULL;
	}
	return first;
}

static void add_column_name(struct strbuf *b, const struct stitch_track *t)
{
	for (const char *p = curve_role_name(t->role); *p; p++)
		strbuf_add_char(b, *p == '-' ? '_' : *p);
	if (!*t->name)
		return;
	strbuf_add_char(b, ':');
	text_add_escaped(b, slice_of(t->name), 200);
}

/* A CSV cell, quoted where it must be. */
static void add_quoted(struct strbuf *b, const char *text)
{
	bool quote = strpbrk(text, ",\"\n\r") != NULL;

	if (quote)
		strbuf_add_char(b, '"');
	for (; *text; text++) {
		if (*text == '"')
			strbuf_add_char(b, '"');
		strbuf_add_char(b, *text);
	}
	if (quote)
		strbuf_add_char(b, '"');
}

static void add_number(struct strbuf *b, double v)
{
	if (isfinite(v))
		text_add_double(b, v);
	else
		strbuf_add_text(b, isnan(v) ? "nan" : v > 0 ? "inf" : "-inf");
}

static void add_head(struct strbuf *b, const struct stitch *s, bool dead)
{
	static const char *const names[] = {[CURVE_STEPS] = "step",
		[CURVE_SAMPLES] = "sample",
		[CURVE_TOKENS] = "token",
		[CURVE_EPOCHS] = "epoch",
		[CURVE_CALLS] = "call"};
	struct strbuf name;

	strbuf_printf(b, "%s,attempt", names[s->axis]);
	strbuf_add_text(b, dead ? ",state" : "");
	strbuf_init(&name, 1000);
	for (size_t i = 0; i < s->tracks.count; i++) {
		strbuf_clear(&name);
		add_column_name(&name, &s->tracks.items[i]);
		strbuf_add_char(b, ',');
		add_quoted(b, strbuf_text(&name));
	}
	strbuf_add_text(b, ",time\n");
	b->failed |= name.failed;
	strbuf_release(&name);
}

static void add_row(struct strbuf *b, const struct stitch *s, const struct stitch_value *v,
	const struct stitch_value *const *values, bool dead)
{
	size_t n = s->tracks.count;

	add_number(b, v->x);
	strbuf_printf(b, ",%u", s->attempts.items[v->attempt].number);
	if (dead)
		strbuf_add_text(b, v->alive ? ",line" : ",dead");
	for (size_t i = 0; i < n; i++) {
		strbuf_add_char(b, ',');
		if (values[i])
			add_number(b, values[i]->value);
	}
	strbuf_add_char(b, ',');
	if (isfinite(v->wall))
		add_number(b, v->wall);
	strbuf_add_char(b, '\n');
}

static int write_rows(const struct stitch *s, const struct curves_options *o, log_write_fn *write,
	void *context, struct error *e)
{
	struct rows w = {.s = s, .dead = o->dead, .at = calloc(s->tracks.count + 1, sizeof *w.at)};
	const struct stitch_value **values = calloc(s->tracks.count + 1, sizeof(void *));
	int status = w.at && values ? RP_OK : RP_E_MEMORY;
	struct strbuf b;

	strbuf_init(&b, 2 * PIECE_BYTES + ((size_t)1 << 20));
	if (status == RP_OK) {
		add_head(&b, s, o->dead);
		const struct stitch_value *v;
		while (status == RP_OK && (v = next_row(&w, values)) != NULL) {
			add_row(&b, s, v, values, o->dead);
			if (b.n < PIECE_BYTES)
				continue;
			status = write(context, strbuf_slice(&b), e);
			strbuf_clear(&b);
		}
	}
	if (status == RP_OK && b.failed)
		status = RP_E_MEMORY;
	if (status == RP_OK)
		status = write(context, strbuf_slice(&b), e);
	if (status == RP_E_MEMORY)
		fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for the table");
	strbuf_release(&b);
	free(w.at);
	free(values);
	return status;
}

void curves_cover(struct report *r, const struct curve_log *l)
{
	uint64_t lines = 0;
	const char *reason = NULL;

	for (size_t i = 0; i < l->files.count; i++)
		lines += l->files.items[i].lines;
	if (l->lost > 0)
		reason = report_text(r, "%s%s not understood", report_counted(r, l->lost, "line"),
			l->lost == 1 ? " was" : " were");
	else if (l->dropped > 0)
		reason = report_text(r, "%s beyond --limit curve-points",
			report_counted(r, l->dropped, "point"));
	cover_ran(&r->coverage, "curve-log", "the logs", "lines",
		lines > l->lost ? lines - l->lost : 0, lines, reason);
	r->incomplete = r->incomplete || l->dropped > 0;
}

int curves_export(struct report *r, const char *const *paths, size_t n,
	const struct curves_options *o, log_write_fn *write, void *context, struct error *e)
{
	struct opened v;

	if (open_all(&v, r, paths, n, o, e) < 0)
		return e->status;
	curves_cover(r, &v.log);
	int status = write_rows(&v.curve.stitch, o, write, context, e);
	close_all(&v);
	report_finish(r);
	return status;
}

/* Say that the report has not the whole curve. */
static void tell_cut(struct report *r, size_t rows)
{
	const char *cells[] = {NULL, NULL,
		report_text(r,
			"the table of the curve in the JSON ends after %s; --csv has all of it",
			report_counted(r, rows, "row"))};

	report_add_row(r, curves_find_tables(r).notes, TONE_PLAIN, cells);
}

/* The line in the report, for programs. */
static void add_curve(struct report *r, const struct stitch *s)
{
	size_t n = s->tracks.count, count = 0;
	const char **columns = calloc(n + 3, sizeof *columns),
		   **cells = calloc(n + 3, sizeof *cells);
	struct quantity *values = calloc(n + 3, sizeof *values);
	const struct stitch_value **row = calloc(n + 1, sizeof(void *));
	struct rows w = {.s = s, .dead = true, .at = calloc(n + 1, sizeof *w.at)};
	struct strbuf b;

	strbuf_init(&b, 1000);
	if (!columns || !cells || !values || !row || !w.at) {
		r->findings.lost++;
		goto out;
	}
	columns[0] = "step";
	columns[1] = "attempt";
	columns[2] = "state";
	for (size_t i = 0; i < n; i++) {
		strbuf_clear(&b);
		add_column_name(&b, &s->tracks.items[i]);
		columns[i + 3] = report_text(r, "%s", strbuf_text(&b));
	}
	struct report_table *t = report_add_table(r, "curve", NULL, columns, n + 3);
	if (t)
		t->data_only = true;
	const struct stitch_value *v;
	size_t most = CURVE_CELLS / (n + 3) < CURVE_ROWS ? CURVE_CELLS / (n + 3) : CURVE_ROWS;
	while ((v = next_row(&w, row)) != NULL && count++ < most) {
		values[0] = v->x == floor(v->x) ? count_or_none(v->x) : real_or_none(v->x);
		values[1] = quantity_count(s->attempts.items[v->attempt].number);
		values[2] = quantity_text(v->alive ? "line" : "dead");
		for (size_t i = 0; i < n; i++)
			values[i + 3] = row[i] ? real_or_none(row[i]->value) : (struct quantity){0};
		report_add_row_values(r, t, TONE_PLAIN, cells, values);
	}
	if (v)
		tell_cut(r, most);
out:
	r->findings.lost += b.no_memory;
	strbuf_release(&b);
	free(columns);
	free(cells);
	free(values);
	free(row);
	free(w.at);
}

/* OLMo's rule -----------------------------------------------------------------------------------
 */

static void add_olmo(struct report *r, const struct stitch *s)
{
	static const char *const columns[] = {"rule", "points", "spikes", "total", "score"};
	static const char *const steps[] = {"step", "loss", "grad_norm"};
	const struct stitch_track *loss = stitch_track_of(s, CURVE_LOSS);
	const struct stitch_track *grad = stitch_track_of(s, CURVE_GRAD_NORM);
	size_t n = loss ? loss->line.count : 0, k = 0;
	double *v = calloc(n + 1, sizeof *v), *g = calloc(n + 1, sizeof *g);
	bool *has = calloc(n + 1, sizeof *has), *flags = calloc(n + 1, sizeof *flags);

	if (!v || !g || !has || !flags) {
		r->findings.lost++;
		goto out;
	}
	for (size_t i = 0; i < n; i++) {
		const struct stitch_value *p = &loss->values.items[loss->line.items[i]];
		v[i] = p->value;
		while (grad && k < grad->line.count &&
			grad->values.items[grad->line.items[k]].x < p->x)
			k++;
		has[i] = grad && k < grad->line.count &&
			 grad->values.items[grad->line.items[k]].x == p->x;
		g[i] = has[i] ? grad->values.items[grad->line.items[k]].value : NAN;
	}
	struct olmo o = olmo_score(v, g, has, n, flags);
	struct report_table *t =
		report_add_table(r, "olmo", "spikes by OLMo-core's rule", columns, 5);
	const char *cells[] = {"6 σ above the mean of 128", report_counted(r, o.points, "point"),
		report_counted(r, o.spikes, "spike"),
		isnan(o.total) ? "no total yet"
			       : report_text(r, "%s of all", rounded(r, o.total, 6)),
		isnan(o.score) ? "fewer than 10 000 points"
			       : report_text(r, "%s of the last 10 000", rounded(r, o.score, 6))};
	struct quantity values[5] = {{0}, quantity_count((int64_t)o.points),
		quantity_count((int64_t)o.spikes), real_or_none(o.total), real_or_none(o.score)};
	report_add_row_values(r, t, TONE_PLAIN, cells, values);
	t = report_add_table(r, "olmo_spikes", NULL, steps, 3);
	for (size_t i = 0; i < n; i++) {
		if (!flags[i])
			continue;
		const struct stitch_value *p = &loss->values.items[loss->line.items[i]];
		const char *row[] = {report_text(r, "step %s", number(r, p->x)),
			report_text(r, "loss %s", rounded(r, v[i], 6)),
			has[i] ? report_text(r, "gradient norm %s", rounded(r, g[i], 6)) : NULL};
		struct quantity what[3] = {
			count_or_none(p->x), real_or_none(v[i]), real_or_none(g[i])};
		report_add_row_values(r, t, TONE_PLAIN, row, what);
	}
out:
	free(v);
	free(g);
	free(has);
	free(flags);
}

/* The command ---------------------------------------------------------------------------------- */

static void summarize(struct report *r, const struct case_curve *c)
{
	const struct stitch *s = &c->stitch;
	const struct stitch_track *t = s->tracks.items;
	const struct stitch_value *last =
		t->line.count ? &t->values.items[t->line.items[t->line.count - 1]] : NULL;

	r->summary = report_text(r, "%s · %s · %s on the line%s%s",
		report_counted(r, c->log->files.count, "log file"),
		report_counted(r, s->attempts.count, "attempt"),
		report_counted(r, t->line.count, "point"),
		t->dead ? report_text(r, " · %s dead", number(r, (double)t->dead)) : "",
		last ? report_text(r, " · %s %s at %s", curve_role_name(t->role),
			       rounded(r, last->value, 5), at(r, s, last->x))
		     : "");
}

const char *curves_evidence(struct report *r, size_t resumes, size_t match, size_t steps)
{
	if (resumes == 0)
		return report_text(r, "no resume, %s",
			r->findings.of_code[FINDING_L104] ? "spikes" : "no sign of trouble");
	if (match == 0)
		return report_text(r,
			"nothing speaks against %s, and no interrupted attempt logged steps that prove %s",
			resumes == 1
				? "the resume"
				: report_text(r, "the %s", report_counted(r, resumes, "resume")),
			resumes == 1 ? "it" : "any of them");
	return report_text(r, "%s of %s %s the interrupted attempt (%s)%s",
		number(r, (double)match), report_counted(r, resumes, "resume"),
		match == 1 ? "matches" : "match", report_counted(r, steps, "logged step"),
		match == resumes ? "" : "; nothing speaks against the others");
}

static void conclude_stitch(
	struct report *r, const struct case_curve *c, const struct curves_options *o)
{
	/* Warnings are what a curve can say: nothing in it is proof, and all of it is why one
	 * looks. */
	struct verdict_case v = {.failing = SEVERITY_WARNING};
	size_t match = 0, steps = 0, n = c->resumes.count;

	r->failing = SEVERITY_WARNING;

	for (size_t i = 0; i < n; i++) {
		const struct resume_check *k = &c->resumes.items[i].check;
		match += k->outcome == RESUME_MATCHES;
		steps += k->outcome == RESUME_MATCHES ? k->loss.matched : 0;
	}
	v.consistent = curves_evidence(r, n, match, steps);
	conclude(r, &v, &(struct policy_subject){.log = true}, &o->common);
	r->forecast = false;
}

int curves_stitch(struct report *r, const char *const *paths, size_t n,
	const struct curves_options *o, struct error *e)
{
	struct opened v;

	if (open_all(&v, r, paths, n, o, e) < 0)
		return e->status;
	struct audit_case c = {.curve = &v.curve, .limits = &o->common.limits};
	audit_run(&c, &r->findings, &r->coverage);
	curves_cover(r, &v.log);
	summarize(r, &v.curve);
	if (o->plot)
		r->picture = curves_picture(r, &v.curve, o->width, o->ascii);
	curves_add_tables(r);
	struct curves_tables t = curves_find_tables(r);
	curves_fill_tables(r, &t, &v.curve, NULL, NULL);
	if (o->olmo)
		add_olmo(r, &v.curve.stitch);
	add_curve(r, &v.curve.stitch);
	conclude_stitch(r, &v.curve, o);
	close_all(&v);
	report_finish(r);
	return RP_OK;
}

/* Confirming a relaunch -------------------------------------------------------------------------
 */

/* Whether a file is the one at `path`, or lies in the folder there. */
static bool lies_in(const char *file, const char *path)
{
	char *folder = strdup(file), *end;
	bool in = same_path(file, path);

	while (!in && folder && (end = strrchr(folder, '/')) != NULL && end > folder) {
		*end = '\0';
		in = same_path(folder, path);
	}
	free(folder);
	return in;
}

/* The newest attempt that stands in the file or folder, or CURVE_NONE. */
static uint32_t attempt_in(const struct opened *v, const char *path)
{
	for (uint32_t i = (uint32_t)v->curve.stitch.attempts.count; i-- > 0;) {
		uint32_t file = v->curve.stitch.attempts.items[i].file;
		if (lies_in(v->log.files.items[file].path, path))
			return i;
	}
	return CURVE_NONE;
}

/* NaN in the new attempt. */
static void tell_not_finite(struct report *r, const struct case_curve *c, uint32_t attempt)
{
	for (size_t i = 0; i < c->spikes.list.count; i++) {
		const struct spike *k = &c->spikes.list.items[i];
		if (k->class != SPIKE_NOT_FINITE || k->attempt != attempt)
			continue;
		struct finding *f = finding_add(&r->findings, FINDING_L107,
			"the loss is not a number from step %s on", at(r, &c->stitch, k->x));
		f->place.step_first = llround(k->x);
	}
}

static void confirm_nothing_yet(struct report *r, const struct curves_options *o)
{
	struct verdict_case verdict = {.unreadable = "no step is in the new log yet"};

	conclude(r, &verdict, &(struct policy_subject){.log = true}, &o->common);
	r->forecast = false;
	if (r->exit == EXIT_STATUS_UNDECIDED)
		r->exit = EXIT_STATUS_NOT_READY;
}

static void confirm_attempt(
	struct report *r, struct opened *v, uint32_t attempt, const struct curves_options *o)
{
	const struct curve_resume *resume = curve_resume_of(&v->curve, attempt);
	struct verdict_case verdict = {0};
	struct strbuf b;

	/* The rule sees this resume alone. */
	struct case_curve one = v->curve;
	one.resumes.items =
		resume ? &v->curve.resumes.items[resume - v->curve.resumes.items] : NULL;
	one.resumes.count = resume != NULL;
	struct audit_case c = {.curve = &one, .limits = &o->common.limits};
	rule_curve_resume.run(&c, &r->findings, &r->coverage);
	tell_not_finite(r, &v->curve, attempt);
	strbuf_init(&b, 1000);
	if (resume)
		curve_resume_words(&v->curve, resume, &b);
	else
		strbuf_add_text(&b, "the new log goes on from no earlier attempt");
	bool matches = resume && resume->check.outcome == RESUME_MATCHES;
	verdict.consistent = report_text(r, "attempt %u: %s",
		v->curve.stitch.attempts.items[attempt].number, strbuf_text(&b));
	verdict.unreadable = matches ? NULL : verdict.consistent;
	bool early = !resume || resume->check.outcome < RESUME_MATCHES;
	bool waits = early && v->curve.stitch.attempts.items[attempt].points < CONFIRM_POINTS;
	r->findings.lost += b.no_memory;
	strbuf_release(&b);
	conclude(r, &verdict, &(struct policy_subject){.log = true}, &o->common);
	r->forecast = false;
	if (waits && r->exit == EXIT_STATUS_UNDECIDED)
		r->exit = EXIT_STATUS_NOT_READY;
}

int curves_confirm(struct report *r, const char *path, const char *confirm,
	const struct curves_options *o, struct error *e)
{
	const char *const paths[] = {path, confirm};
	struct opened v;

	if (open_all(&v, r, paths, 2, o, e) < 0)
		return e->status;
	report_add_input(r, confirm, "run", "loss log");
	uint32_t attempt = attempt_in(&v, confirm);
	if (attempt == CURVE_NONE)
		confirm_nothing_yet(r, o);
	else
		confirm_attempt(r, &v, attempt, o);
	close_all(&v);
	report_finish(r);
	return RP_OK;
}
