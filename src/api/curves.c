/* SPDX-License-Identifier: MIT */
#include "api/curves.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "api/conclude.h"
#include "api/curves_parts.h"
#include "api/run.h"
#include "api/run_paths.h"
#include "api/subject.h"
#include "audit/case.h"
#include "ledger/read.h"
#include "report/plot.h"

#define PLOT_HEIGHT 14u
#define PLOT_BYTES ((size_t)1 << 20)
#define SAVES_MAX 100000u

/* Opening -------------------------------------------------------------------------------------- */

bool curves_add_saves(void *list_, const char *const *paths, size_t n, const struct limits *limits)
{
	ARRAY(double) *list = list_;
	struct error ignored = ERROR_INIT;
	struct stat st;
	bool ok = true;

	for (size_t i = 0; i < n && ok; i++) {
		struct subject s = SUBJECT_INIT;
		if (stat(paths[i], &st) < 0 || !S_ISDIR(st.st_mode))
			continue;
		if (subject_open(&s, paths[i], limits, &ignored) == RP_OK) {
			for (size_t k = 0; k < s.candidates.list.count && ok; k++) {
				const struct candidate *c = &s.candidates.list.items[k];
				if (!c->profile || c->step < 0)
					continue;
				double *slot = array_push(list, SAVES_MAX);
				ok = slot || list->count >= SAVES_MAX;
				if (slot)
					*slot = (double)c->step;
			}
		}
		subject_close(&s);
		ignored = ERROR_INIT;
	}
	return ok;
}

/* The losses of sample logs, where there is nothing else. */
static int read_samples(struct curves_opened *v, const struct curve_files *f,
	const struct curves_options *o, struct error *e)
{
	const struct limits *limits = &o->common.limits;
	struct ledger_options lo = {.limits = limits, .memory = limits->memory / 5 * 3};
	const char **paths = calloc(f->operands.count, sizeof *paths);
	struct ledger l;
	size_t n = 0;

	if (!paths)
		return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for the sample logs");
	for (size_t i = 0; i < f->operands.count; i++)
		if (f->operands.items[i].others > 0)
			paths[n++] = f->operands.items[i].path;
	int status = ledger_open(&l, paths, n, &lo, e);
	if (status == RP_OK) {
		status = curve_of_ledger(&v->log, &l, limits, e);
		ledger_release(&l);
	}
	free(paths);
	if (status == RP_OK && v->log.points.count == 0) {
		curve_release(&v->log);
		status = fail(e, RP_E_NOT_FOUND, ERROR_NO_OFFSET,
			"no loss log in %zu file%s, and no losses in the sample logs, which "
			"`reprise audit` judges",
			f->looked, f->looked == 1 ? "" : "s");
	}
	return status;
}

/* Say of sample logs that lie beside the loss logs who reads them. */
static int leave_samples(struct curve_log *l, const struct curve_files *f, struct error *e)
{
	for (size_t i = 0; i < f->operands.count; i++) {
		const struct curve_operand *p = &f->operands.items[i];
		if (p->others == 0)
			continue;
		struct curve_left *left = array_push(&l->left, SIZE_MAX);
		if (left)
			*left = (struct curve_left){
				.path = arena_strdup(&l->arena, slice_of(p->path)),
				.why = p->others == 1
					       ? "a sample log, which `reprise audit` reads"
					       : arena_printf(&l->arena,
							 "%u sample logs, which `reprise audit` reads",
							 p->others)};
		if (!left || !left->path || !left->why)
			return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for the logs");
	}
	return RP_OK;
}

/* Find and read the logs: those of losses, else those of samples. */
static int read_logs(struct curves_opened *v, const char *const *paths, size_t n,
	const struct curves_options *o, struct error *e)
{
	struct curve_options co = run_paths_options(&o->common.limits);
	struct curve_files f;
	size_t logs = 0, others = 0;

	co.patterns = o->patterns;
	co.pattern_count = o->pattern_count;
	if (curve_find(&f, paths, n, &co, e) < 0)
		return e->status;
	for (size_t i = 0; i < f.operands.count; i++) {
		logs += f.operands.items[i].logs;
		others += f.operands.items[i].others;
	}
	int status;
	if (logs == 0 && others > 0) {
		status = read_samples(v, &f, o, e);
	} else {
		status = curve_read(&v->log, &f, NULL, 0, &co, e);
		if (status == RP_OK && leave_samples(&v->log, &f, e) < 0) {
			curve_release(&v->log);
			status = e->status;
		}
	}
	curve_files_release(&f);
	return status;
}

void curves_close(struct curves_opened *v)
{
	case_curve_close(&v->curve);
	curve_release(&v->log);
	array_release(&v->saves);
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

static double told_number(const struct run_file *f, enum fact_key key)
{
	const struct run_value *v = run_file_value(f, key);

	return v ? (double)v->number : 0;
}

/* The samples of a step, as the run file beside the logs tells them; 0 where there is none, or it
 * does not. */
static int read_batch(struct report *r, const char *path, double *batch, struct error *e)
{
	struct run_in_use run;
	struct stat st;

	int status = run_open_beside(
		&run, r, NULL, path, stat(path, &st) == 0 && S_ISDIR(st.st_mode), e);
	const struct run_file *f = status == RP_OK ? run_file_of(&run) : NULL;
	*batch = f ? told_number(f, FACT_GLOBAL_BATCH) : 0;
	if (f && *batch == 0) {
		double ranks = told_number(f, FACT_DP_SIZE),
		       more = told_number(f, FACT_ACCUMULATION);
		ranks = ranks > 0 ? ranks : told_number(f, FACT_WORLD_SIZE);
		*batch = told_number(f, FACT_MICRO_BATCH) * (more > 0 ? more : 1) * ranks;
	}
	run_release(&run);
	return status;
}

int curves_open(struct curves_opened *v, struct report *r, const char *const *paths, size_t n,
	const struct curves_options *o, struct error *e)
{
	*v = (struct curves_opened){0};
	if (read_logs(v, paths, n, o, e) < 0)
		return e->status;
	if (!curves_add_saves(&v->saves, paths, n, &o->common.limits)) {
		curves_close(v);
		return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for the checkpoints");
	}
	struct stitch_options so = {.told = o->told,
		.told_count = o->told_count,
		.saves = v->saves.items,
		.save_count = v->saves.count,
		.by = o->by,
		.by_is_told = o->by_is_told,
		.first = o->first == INT64_MIN ? NAN : (double)o->first,
		.last = o->last == INT64_MAX ? NAN : (double)o->last};
	int status = RP_OK;
	if (o->by_is_told && o->by == CURVE_SAMPLES)
		status = read_batch(r, paths[0], &so.batch, e);
	if (status == RP_OK)
		status = case_curve_open(&v->curve, &v->log, &so, NULL, e);
	/* What is left without an attempt is of other quantities, or of held-out data. */
	if (status == RP_OK &&
		(v->curve.stitch.tracks.count == 0 || v->curve.stitch.attempts.count == 0))
		status = fail(e, RP_E_NOT_FOUND, ERROR_NO_OFFSET,
			"no loss, gradient norm or learning rate was found in it; --series names what to "
			"look for");
	else if (status == RP_OK && is_cut_away(&v->curve.stitch, o))
		status = fail(e, RP_E_ARGUMENT, ERROR_NO_OFFSET,
			"nothing was logged at the steps that --from and --until leave");
	if (status < 0) {
		curves_close(v);
		return status;
	}
	for (size_t i = 0; i < v->log.files.count; i++)
		report_add_input(
			r, v->log.files.items[i].path, "log", v->log.files.items[i].format);
	return RP_OK;
}

/* The picture ---------------------------------------------------------------------------------- */

const char *curves_picture(struct report *r, const struct case_curve *c, unsigned width, bool ascii)
{
	const struct stitch *s = &c->stitch;
	const struct stitch_track *t = s->tracks.count ? s->tracks.items : NULL;
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
		points[at++] = (struct plot_point){stitch_value_shown(s, v), v->value, false};
	}
	for (size_t i = 0; points && i < n; i++)
		if (!t->values.items[i].alive)
			points[at++] =
				(struct plot_point){stitch_value_shown(s, &t->values.items[i]),
					t->values.items[i].value, true};
	for (size_t i = 0; mark && i < c->spikes.list.count; i++) {
		const struct spike *k = &c->spikes.list.items[i];
		if (!k->dead)
			mark[marks++] = (struct plot_mark){stitch_shown(s, k->attempt, k->x), '!'};
	}
	for (size_t i = 0; mark && i < s->seams.count; i++)
		mark[marks++] = (struct plot_mark){
			stitch_shown(s, s->seams.items[i].from, s->seams.items[i].x), '^'};
	struct plot p = {.points = points,
		.n = at,
		.marks = mark,
		.mark_count = marks,
		.width = width,
		.height = PLOT_HEIGHT,
		.ascii = ascii,
		.unit = curve_unit_name(s->by)};
	if (!points || !mark || !plot_draw(&p, &b) || b.failed)
		r->findings.lost++;
	else if (b.n > 0)
		text = report_text(r, "%s", strbuf_text(&b));
	strbuf_release(&b);
	free(points);
	free(mark);
	return text;
}

/* The command ---------------------------------------------------------------------------------- */

uint64_t curves_unread(const struct curve_log *l, const struct curve_left **first)
{
	uint64_t n = 0;

	*first = NULL;
	for (size_t i = 0; i < l->left.count; i++) {
		if (!l->left.items[i].unread)
			continue;
		*first = n == 0 ? &l->left.items[i] : *first;
		n++;
	}
	return n;
}

void curves_cover(struct report *r, const struct curve_log *l)
{
	const struct curve_left *first;
	uint64_t lines = 0, unread = curves_unread(l, &first);
	const char *reason = NULL;

	for (size_t i = 0; i < l->files.count; i++)
		lines += l->files.items[i].lines;
	if (l->lost > 0)
		reason = report_text(r, "%s%s not understood", report_counted(r, l->lost, "line"),
			l->lost == 1 ? " was" : " were");
	else if (l->dropped > 0)
		reason = report_text(r, "%s beyond --limit curve-points",
			report_counted(r, l->dropped, "point"));
	else if (unread > 0)
		reason = report_text(
			r, "%s beside them could not be read", report_number(r, (int64_t)unread));
	cover_ran(&r->coverage, "curve-log", "the logs", "lines",
		lines > l->lost ? lines - l->lost : 0, lines, reason);
	r->incomplete = r->incomplete || l->dropped > 0 || unread > 0;
}

/* Where the line ends: "1 000", "1 000 (16 000 samples)". */
static const char *last_words(
	struct report *r, const struct stitch *s, const struct stitch_value *v)
{
	const char *at = curves_at(r, s, v->x);

	if (s->by == s->axis || s->by == CURVE_EPOCHS || !isfinite(v->amount))
		return at;
	return report_text(r, "step %s (%s %s)", at, report_number(r, llround(v->amount)),
		curve_unit_name(s->by));
}

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
		t->dead ? report_text(r, " · %s dead", report_number(r, (int64_t)t->dead)) : "",
		last ? report_text(r, " · %s %s at %s", curve_role_name(t->role),
			       curves_rounded(r, last->value, 5), last_words(r, s, last))
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
		report_number(r, (int64_t)match), report_counted(r, resumes, "resume"),
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
	struct curves_opened v;

	if (curves_open(&v, r, paths, n, o, e) < 0)
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
		curves_add_olmo(r, &v.curve.stitch);
	curves_add_rows(r, &v.curve.stitch);
	conclude_stitch(r, &v.curve, o);
	curves_close(&v);
	report_finish(r);
	return RP_OK;
}

int curves_export(struct report *r, const char *const *paths, size_t n,
	const struct curves_options *o, text_write_fn *write, void *context, struct error *e)
{
	struct curves_opened v;

	if (curves_open(&v, r, paths, n, o, e) < 0)
		return e->status;
	curves_cover(r, &v.log);
	int status = curves_write_rows(&v.curve.stitch, o, write, context, e);
	curves_close(&v);
	report_finish(r);
	return status;
}
