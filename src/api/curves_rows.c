/* SPDX-License-Identifier: MIT */
/* The curve as rows: CSV, and the table for programs. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "api/curves_parts.h"
#include "base/text.h"

#define PIECE_BYTES 65536u
#define CURVE_ROWS 200000u   /* of the curve in the report; the CSV has all */
#define CURVE_CELLS 2000000u /* and fewer rows where there are many columns */

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

	if (s->by != s->axis)
		strbuf_printf(b, "%s,", names[s->by]);
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

	if (s->by != s->axis) {
		add_number(b, v->amount);
		strbuf_add_char(b, ',');
	}
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

int curves_write_rows(const struct stitch *s, const struct curves_options *o, text_write_fn *write,
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
void curves_add_rows(struct report *r, const struct stitch *s)
{
	size_t n = s->tracks.count, count = 0, fixed = s->by == s->axis ? 3 : 4;
	const char **columns = calloc(n + fixed, sizeof *columns),
		   **cells = calloc(n + fixed, sizeof *cells);
	struct quantity *values = calloc(n + fixed, sizeof *values);
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
	columns[fixed - 1] = fixed > 3 ? "consumed" : "state";
	for (size_t i = 0; i < n; i++) {
		strbuf_clear(&b);
		add_column_name(&b, &s->tracks.items[i]);
		columns[i + fixed] = report_text(r, "%s", strbuf_text(&b));
	}
	struct report_table *t = report_add_table(r, "curve", NULL, columns, n + fixed);
	if (t)
		t->data_only = true;
	const struct stitch_value *v;
	size_t most =
		CURVE_CELLS / (n + fixed) < CURVE_ROWS ? CURVE_CELLS / (n + fixed) : CURVE_ROWS;
	while ((v = next_row(&w, row)) != NULL && count++ < most) {
		values[0] = v->x == floor(v->x) ? curves_count(v->x) : curves_real(v->x);
		values[1] = quantity_count(s->attempts.items[v->attempt].number);
		values[2] = quantity_text(v->alive ? "line" : "dead");
		if (fixed > 3)
			values[3] = curves_real(v->amount);
		for (size_t i = 0; i < n; i++)
			values[i + fixed] =
				row[i] ? curves_real(row[i]->value) : (struct quantity){0};
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

void curves_add_olmo(struct report *r, const struct stitch *s)
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
			       : report_text(r, "%s of all", curves_rounded(r, o.total, 6)),
		isnan(o.score)
			? "fewer than 10 000 points"
			: report_text(r, "%s of the last 10 000", curves_rounded(r, o.score, 6))};
	struct quantity values[5] = {{0}, quantity_count((int64_t)o.points),
		quantity_count((int64_t)o.spikes), curves_real(o.total), curves_real(o.score)};
	report_add_row_values(r, t, TONE_PLAIN, cells, values);
	t = report_add_table(r, "olmo_spikes", NULL, steps, 3);
	for (size_t i = 0; i < n; i++) {
		if (!flags[i])
			continue;
		const struct stitch_value *p = &loss->values.items[loss->line.items[i]];
		const char *row[] = {report_text(r, "step %s", report_number(r, llround(p->x))),
			report_text(r, "loss %s", curves_rounded(r, v[i], 6)),
			has[i] ? report_text(r, "gradient norm %s", curves_rounded(r, g[i], 6))
			       : NULL};
		struct quantity what[3] = {
			curves_count(p->x), curves_real(v[i]), curves_real(g[i])};
		report_add_row_values(r, t, TONE_PLAIN, row, what);
	}
out:
	free(v);
	free(g);
	free(has);
	free(flags);
}
