/* SPDX-License-Identifier: MIT */
/* What must hold of every loss log that was read, for the targets of its formats. */
#include <math.h>
#include <string.h>
#include <xxhash.h>

#include "audit/case.h"
#include "audit/curves.h"
#include "base/text.h"
#include "curve/curve.h"
#include "fuzz/fuzz.h"

static struct limits limits_of_fuzz(void)
{
	struct limits limits = limits_default();

	limits.memory = (uint64_t)16 << 20;
	limits.line_bytes = 1 << 16;
	limits.header_bytes = 1 << 20;
	limits.nodes = 100000;
	limits.curve_points = 5000;
	return limits;
}

static void check_points(const struct curve_log *l, const struct limits *limits)
{
	uint32_t file = 0;

	MUST(l->points.count <= limits->curve_points);
	for (size_t i = 0; i < l->points.count; i++) {
		const struct curve_point *p = &l->points.items[i];
		MUST(p->series < l->series.count);
		const struct curve_series *s = &l->series.items[p->series];
		MUST(s->kept && s->file >= file);
		file = s->file;
		MUST(p->x == p->x && p->resolution >= 0);
	}
}

static void check_tables(const struct curve_log *l)
{
	uint64_t points = 0, lost = 0;

	for (size_t i = 0; i < l->series.count; i++) {
		const struct curve_series *s = &l->series.items[i];
		MUST(s->file < l->files.count && s->role < CURVE_ROLES && s->unit < CURVE_UNITS);
		MUST(s->mean <= CURVE_OF_UNKNOWN && s->name && s->source);
		MUST((s->role == CURVE_SOURCE_LOSS) == (s->source[0] != '\0'));
		points += s->points;
	}
	for (size_t i = 0; i < l->files.count; i++) {
		const struct curve_file *f = &l->files.items[i];
		MUST(f->path && f->format && f->writer && f->note);
		points -= f->points;
		lost += f->lost;
	}
	MUST(points == 0 && lost == l->lost && l->losses.count <= l->lost);
	for (size_t i = 0; i < l->marks.count; i++) {
		const struct curve_mark *m = &l->marks.items[i];
		MUST(m->file < l->files.count && m->kind <= CURVE_KILLED && m->unit < CURVE_UNITS);
		MUST(m->text && m->before <= l->points.count);
		MUST(i == 0 || (m->before >= m[-1].before && m->file >= m[-1].file));
	}
	for (size_t i = 0; i < l->losses.count; i++)
		MUST(l->losses.items[i].what[0] != '\0');
}

static void check_track(const struct stitch *s, const struct stitch_track *t)
{
	uint64_t alive = 0;

	for (size_t i = 0; i < t->values.count; i++) {
		const struct stitch_value *v = &t->values.items[i];
		MUST(v->attempt < s->attempts.count && v->x == v->x);
		MUST(i == 0 || v[-1].attempt < v->attempt ||
			(v[-1].attempt == v->attempt && v[-1].x < v->x));
		alive += v->alive;
	}
	MUST(alive == t->line.count && t->dead == t->values.count - alive);
	for (size_t i = 1; i < t->line.count; i++)
		MUST(t->values.items[t->line.items[i - 1]].x < t->values.items[t->line.items[i]].x);
}

/* The log put in line and judged: whatever it says, the line goes one way, and no rule falls. */
static void check_line(const struct curve_log *l, const struct limits *limits)
{
	struct stitch_options so = {.first = NAN, .last = NAN};
	struct case_curve curve;
	struct error e = ERROR_INIT;
	struct findings sink;
	struct coverage cover;

	MUST(case_curve_open(&curve, l, &so, NULL, &e) == RP_OK);
	for (size_t i = 0; i < curve.stitch.attempts.count; i++) {
		const struct stitch_attempt *a = &curve.stitch.attempts.items[i];
		MUST(a->parent == CURVE_NONE || a->parent < i);
		MUST(a->first_x <= a->last_x && a->dead <= a->points);
	}
	for (size_t i = 0; i < curve.stitch.tracks.count; i++)
		check_track(&curve.stitch, &curve.stitch.tracks.items[i]);
	for (size_t i = 0; i < curve.spikes.list.count; i++)
		MUST(curve.spikes.list.items[i].attempt < curve.stitch.attempts.count);
	findings_init(&sink);
	coverage_init(&cover);
	struct audit_case c = {.curve = &curve, .limits = limits};
	audit_run(&c, &sink, &cover);
	MUST(sink.lost == 0 && cover.lost == 0);
	coverage_release(&cover);
	findings_release(&sink);
	case_curve_close(&curve);
}

static uint64_t digest(const struct curve_log *l)
{
	uint64_t sum = XXH3_64bits(l->points.count ? (const void *)l->points.items : "",
		l->points.count * sizeof *l->points.items);

	return sum ^ l->marks.count << 32 ^ l->lost ^ l->dropped << 16;
}

/*
 * The log is read twice. A pattern that matches nothing keeps the second reading of a console log
 * from taking rows by the form of earlier ones, so that each line is taken apart.
 */
void fuzz_curve(const char *name, const void *bytes, size_t n)
{
	struct limits limits = limits_of_fuzz();
	static const struct curve_pattern nothing = {"nothing", "(no such line)"};
	struct curve_options o = {.limits = &limits, .others = n % 2, .patterns = &nothing};
	uint64_t first = 0;

	for (int round = 0; round < 2; round++) {
		struct curve_log l;
		struct error e = ERROR_INIT;
		o.pattern_count = (size_t)round;
		int status = curve_open_memory(&l, name, (struct slice){bytes, n}, &o, &e);
		if (status < 0) {
			fuzz_check_error(&e, status);
			MUST(l.points.count == 0 && l.files.count == 0);
			return;
		}
		check_points(&l, &limits);
		check_tables(&l);
		MUST(round == 0 || digest(&l) == first);
		if (round == 0)
			check_line(&l, &limits);
		first = digest(&l);
		curve_release(&l);
	}
}
