/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "api/logs.h"

#include <math.h>
#include <stdlib.h>

#include "base/text.h"
#include "ledger/read.h"
#include "ledger/sealed.h"
#include "ledger/search.h"
#include "ledger/seen.h"
#include "report/write_log.h"

#define TEXT_BYTES 4096u
#define ROWS_SHOWN 50u /* of a table of many, without `all` */
#define HITS_KEPT 10000u
#define IDS_SHOWN 16u /* of one rank in one step, without `all` */

/* A log that was opened for a report. */
struct log_view {
	struct report *r;
	const struct log_options *o;
	struct ledger l;
	struct search_lines lines;
};

static int no_memory(struct error *e)
{
	return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for the answer");
}

static int open_view(struct log_view *v, struct report *r, const char *const *paths, size_t n,
	const struct log_options *o, struct error *e)
{
	struct ledger_options options = {.limits = &o->limits, .memory = o->limits.memory / 5 * 3};

	*v = (struct log_view){.r = r, .o = o};
	if (ledger_open(&v->l, paths, n, &options, e) < 0)
		return e->status;
	if (search_lines_build(&v->lines, &v->l, o->told, o->told_count, e) < 0) {
		ledger_release(&v->l);
		return e->status;
	}
	for (size_t i = 0; i < n; i++)
		report_add_input(r, paths[i], "log", NULL);
	return RP_OK;
}

static void close_view(struct log_view *v)
{
	search_lines_release(&v->lines);
	ledger_release(&v->l);
}

/* Words ---------------------------------------------------------------------------------------- */

static const char *counted(struct report *r, uint64_t n, const char *one, const char *many)
{
	struct strbuf b;

	strbuf_init(&b, 100);
	text_add_count(&b, n);
	strbuf_printf(&b, " %s", n == 1 ? one : many);
	return report_take(r, &b);
}

static struct quantity quantity_or_none(int64_t n, int64_t none)
{
	return n == none ? (struct quantity){0} : quantity_count(n);
}

/* Text of a file: escaped, at most 200 bytes of it. */
static const char *escaped(struct report *r, const char *text)
{
	return findings_escaped(&r->findings, slice_of(text));
}

static const char *attempt_name(struct log_view *v, uint32_t attempt)
{
	struct strbuf b;

	strbuf_init(&b, 64);
	ledger_attempt_name(&v->l, attempt, &b);
	return report_take(v->r, &b);
}

static const char *source_name(struct log_view *v, uint32_t source)
{
	return source == LEDGER_NONE ? NULL : escaped(v->r, v->l.sources.items[source].name);
}

/* What was left out and what is odd -------------------------------------------------------------
 */

static void add_losses(struct log_view *v, const char *name, const char *title, bool lost)
{
	static const char *const columns[] = {"file", "line", "what"};
	size_t n = lost ? v->l.losses.count : v->l.notes.count;
	const struct ledger_loss *list = lost ? v->l.losses.items : v->l.notes.items;
	struct report_table *t = report_add_table(v->r, name, n ? title : NULL, columns, 3);

	for (size_t i = 0; i < n; i++) {
		const struct ledger_loss *x = &list[i];
		const char *cells[] = {x->file[0] ? escaped(v->r, x->file) : NULL,
			x->line ? report_text(v->r, "line %llu", (unsigned long long)x->line)
				: NULL,
			escaped(v->r, x->what)};
		struct quantity values[3] = {{0}, quantity_or_none((int64_t)x->line, 0), {0}};
		report_add_row_values(v->r, t, lost ? TONE_WARNING : TONE_PLAIN, cells, values);
	}
}

static void add_reading(struct log_view *v)
{
	const struct ledger *l = &v->l;

	add_losses(v, "lost", "left out", true);
	add_losses(v, "notes", "odd", false);
	uint64_t done = l->lines > l->lines_lost ? l->lines - l->lines_lost : 0;
	const char *reason = l->lines_lost == 0
				     ? NULL
				     : report_text(v->r, "%s not understood",
					       counted(v->r, l->lines_lost, "line or file was",
						       "lines or files were"));
	cover_ran(&v->r->coverage, "ledger", "the log's lines", "lines", done, done + l->lines_lost,
		reason);
}

/* show ------------------------------------------------------------------------------------------
 */

static void summarize(struct log_view *v)
{
	const struct ledger *l = &v->l;
	struct report *r = v->r;
	const struct ledger_dataset *d = l->datasets.count ? l->datasets.items : NULL;
	uint64_t size = d ? d->size : 0;

	r->summary = report_text(r, "%s%s%s · %s · %s%s%s%s%s", l->run[0] ? "run " : "",
		l->run[0] ? escaped(r, l->run) : "",
		l->run[0] ? report_text(r, " · %s",
				    counted(r, l->attempts.count, "attempt", "attempts"))
			  : counted(r, l->attempts.count, "attempt", "attempts"),
		counted(r, l->steps.count, "step", "steps"),
		counted(r, l->rows, "sample", "samples"), d && d->name[0] ? " of " : "",
		d && d->name[0] ? escaped(r, d->name) : "", size ? ", which has " : "",
		size ? report_number(r, (int64_t)size) : "");
}

static const char *attempt_end(struct log_view *v, const struct ledger_attempt *a)
{
	if (!a->end[0])
		return NULL;
	if (a->end_step == LEDGER_NO_STEP || a->end_step == a->last_step)
		return escaped(v->r, a->end);
	return report_text(
		v->r, "%s at step %s", escaped(v->r, a->end), report_number(v->r, a->end_step));
}

static void add_attempt(struct log_view *v, struct report_table *t, uint32_t i)
{
	static const char *const kinds[] = {"train", "rehearsal", "reference", "validation"};
	const struct ledger_attempt *a = &v->l.attempts.items[i];
	const struct lineage_attempt *g = &v->lines.of[a->kind].attempts.items[i];
	struct report *r = v->r;
	bool any = a->steps > 0, said = a->from_step != LEDGER_NO_STEP;

	const char *cells[] = {report_text(r, "attempt %s", attempt_name(v, i)),
		!any ? "no steps"
		: a->first_step == a->last_step
			? report_text(r, "step %s", report_number(r, a->first_step))
			: report_text(r, "steps %s to %s", report_number(r, a->first_step),
				  report_number(r, a->last_step)),
		NULL, counted(r, a->rows, "sample", "samples"),
		any && g->alive < a->steps
			? report_text(r, "%s rolled back",
				  report_number(r, (int64_t)(a->rows - g->alive_rows)))
			: NULL,
		!said ? NULL
		: a->from_step == 0
			? "fresh"
			: report_text(r, "from step %s", report_number(r, a->from_step)),
		attempt_end(v, a), a->kind == ATTEMPT_TRAIN ? NULL : kinds[a->kind],
		a->line ? report_text(r, "%s line %llu", escaped(r, a->file),
				  (unsigned long long)a->line)
			: escaped(r, a->file)};
	struct quantity values[9] = {quantity_count(a->number),
		quantity_or_none(a->first_step, LEDGER_NO_STEP),
		quantity_or_none(a->last_step, LEDGER_NO_STEP), quantity_count((int64_t)a->rows),
		quantity_count((int64_t)(a->rows - g->alive_rows)),
		quantity_or_none(a->from_step, LEDGER_NO_STEP)};
	report_add_row_values(r, t, any ? TONE_PLAIN : TONE_DIM, cells, values);
}

static void add_attempts(struct log_view *v)
{
	static const char *const columns[] = {"attempt", "first_step", "last_step", "samples",
		"rolled_back", "from_step", "end", "kind", "begins"};
	struct report_table *t = report_add_table(v->r, "attempts", NULL, columns, 9);
	size_t n = v->l.attempts.count, left_out = 0;

	if (n > ROWS_SHOWN && !v->o->all)
		left_out = n - ROWS_SHOWN;
	for (size_t i = 0; i < n; i++) {
		if (left_out && i == ROWS_SHOWN / 2) {
			const char *cells[9] = {
				counted(v->r, left_out, "attempt more", "attempts more")};
			report_add_row(v->r, t, TONE_DIM, cells);
			i += left_out;
		}
		add_attempt(v, t, (uint32_t)i);
	}
}

/* What all steps consumed of each source: sums over their shares. */
struct sums {
	uint64_t samples, tokens;
	double loss;
	uint64_t with_loss;
};

static const char *share_text(struct report *r, double share)
{
	struct strbuf b;

	strbuf_init(&b, 40);
	text_add_rounded(&b, share * 100, 4);
	strbuf_add_text(&b, " %");
	return report_take(r, &b);
}

static const char *real_text(struct report *r, double v)
{
	struct strbuf b;

	strbuf_init(&b, 40);
	text_add_rounded(&b, v, 6);
	return report_take(r, &b);
}

static void add_source(
	struct log_view *v, struct report_table *t, uint32_t index, const struct sums *s)
{
	const struct ledger_source *source =
		index == LEDGER_NONE ? NULL : &v->l.sources.items[index];
	struct report *r = v->r;
	double share = v->l.rows ? (double)s->samples / (double)v->l.rows : 0;
	double weight = source ? source->weight : NAN;

	const char *cells[] = {source ? source_name(v, index) : "(none said)",
		counted(r, s->samples, "sample", "samples"), share_text(r, share),
		isnan(weight) ? NULL : report_text(r, "weight %s", real_text(r, weight)),
		source && source->size
			? report_text(r, "of %s", report_number(r, (int64_t)source->size))
			: NULL,
		s->tokens ? counted(r, s->tokens, "token", "tokens") : NULL,
		s->with_loss
			? report_text(r, "loss %s", real_text(r, s->loss / (double)s->with_loss))
			: NULL};
	struct quantity values[7] = {{0}, quantity_count((int64_t)s->samples), quantity_real(share),
		isnan(weight) ? (struct quantity){0} : quantity_real(weight),
		source && source->size ? quantity_count((int64_t)source->size)
				       : (struct quantity){0},
		s->tokens ? quantity_count((int64_t)s->tokens) : (struct quantity){0},
		s->with_loss ? quantity_real(s->loss / (double)s->with_loss)
			     : (struct quantity){0}};
	report_add_row_values(r, t, TONE_PLAIN, cells, values);
}

static bool add_sources(struct log_view *v)
{
	static const char *const columns[] = {
		"source", "samples", "share", "weight", "size", "tokens", "loss"};
	const struct ledger *l = &v->l;
	struct sums *sums = calloc(l->sources.count + 1, sizeof *sums);
	struct report_table *t =
		report_add_table(v->r, "sources", l->sources.count ? "sources" : NULL, columns, 7);

	if (!sums)
		return false;
	for (size_t i = 0; i < l->shares.count; i++) {
		const struct ledger_share *s = &l->shares.items[i];
		struct sums *of = &sums[(uint32_t)(s->source + 1)];
		of->samples += s->n;
		of->tokens += s->tokens;
		of->loss += s->loss;
		of->with_loss += s->with_loss;
	}
	size_t shown = 0;
	for (size_t i = 0; i < l->sources.count; i++) {
		if (shown++ == ROWS_SHOWN && !v->o->all)
			break;
		add_source(v, t, (uint32_t)i, &sums[i + 1]);
	}
	if (l->sources.count > 0 && sums[0].samples > 0)
		add_source(v, t, LEDGER_NONE, &sums[0]);
	free(sums);
	return true;
}

static void add_spaces(struct log_view *v)
{
	static const char *const columns[] = {
		"ids", "source", "dataset", "unit", "order", "samples", "largest"};
	static const char *const kinds[] = {"integer ids", "text ids", "content keys"};
	const struct ledger *l = &v->l;
	struct report_table *t = report_add_table(
		v->r, "spaces", l->spaces.count > 1 ? "what ids mean" : NULL, columns, 7);

	if (t && l->spaces.count > ROWS_SHOWN)
		t->verbose_only = true;
	for (size_t i = 0; i < l->spaces.count; i++) {
		const struct ledger_space *s = &l->spaces.items[i];
		const struct ledger_dataset *d = &l->datasets.items[s->dataset];
		const char *cells[] = {kinds[s->kind], source_name(v, s->source),
			d->name[0] ? escaped(v->r, d->name) : NULL,
			d->unit[0] ? escaped(v->r, d->unit) : NULL,
			d->order[0] ? report_text(v->r, "order %s", escaped(v->r, d->order)) : NULL,
			counted(v->r, s->samples, "sample", "samples"),
			s->kind == KEY_ID
				? report_text(v->r, "up to %llu", (unsigned long long)s->max_key)
				: NULL};
		struct quantity values[7] = {{0}, {0}, {0}, {0}, {0},
			quantity_count((int64_t)s->samples),
			s->kind == KEY_ID && s->max_key <= INT64_MAX
				? quantity_count((int64_t)s->max_key)
				: (struct quantity){0}};
		report_add_row_values(v->r, t, TONE_PLAIN, cells, values);
	}
}

static void add_checkpoint(struct log_view *v, struct report_table *t,
	const struct ledger_checkpoint *c, const struct seen *seen)
{
	struct report *r = v->r;
	const char *cells[] = {report_text(r, "checkpoint %s", report_number(r, c->step)),
		report_text(r, "attempt %s", attempt_name(v, c->attempt)),
		seen ? counted(r, seen->samples, "sample seen", "samples seen") : NULL,
		seen ? report_text(r, "%016llx%016llx", (unsigned long long)seen->sum[1],
			       (unsigned long long)seen->sum[0])
		     : NULL,
		c->path[0] ? escaped(r, c->path) : NULL};
	struct quantity values[5] = {quantity_count(c->step),
		quantity_count(v->l.attempts.items[c->attempt].number),
		seen ? quantity_count((int64_t)seen->samples) : (struct quantity){0}};
	report_add_row_values(r, t, TONE_PLAIN, cells, values);
}

/* What was seen by each checkpoint; runs of any number of ranks are compared by the digest. */
static bool add_checkpoints(struct log_view *v)
{
	static const char *const columns[] = {"step", "attempt", "samples", "digest", "path"};
	const struct ledger *l = &v->l;
	struct seen_table tables[4] = {{0}};
	bool ok = true;

	if (l->checkpoints.count == 0)
		return true;
	struct report_table *t = report_add_table(v->r, "checkpoints", "checkpoints", columns, 5);
	for (size_t i = 0; i < 4; i++)
		if (v->lines.built[i])
			ok = seen_build(&tables[i], &v->lines.of[i]) && ok;
	size_t n = l->checkpoints.count, from = 0;
	if (n > ROWS_SHOWN && !v->o->all)
		from = n - ROWS_SHOWN;
	for (size_t i = from; ok && i < n; i++) {
		const struct ledger_checkpoint *c = &l->checkpoints.items[i];
		const struct seen_table *of = &tables[l->attempts.items[c->attempt].kind];
		struct seen seen;
		add_checkpoint(v, t, c,
			of->steps && seen_by(of, c->attempt, c->step, &seen) ? &seen : NULL);
	}
	for (size_t i = 0; i < 4; i++)
		seen_release(&tables[i]);
	return ok;
}

int logs_show(struct report *r, const char *const *paths, size_t n, const struct log_options *o,
	struct error *e)
{
	struct log_view v;
	int status = RP_OK;

	if (open_view(&v, r, paths, n, o, e) < 0)
		return e->status;
	summarize(&v);
	add_attempts(&v);
	if (!add_sources(&v))
		status = no_memory(e);
	add_spaces(&v);
	if (!add_checkpoints(&v))
		status = no_memory(e);
	add_reading(&v);
	close_view(&v);
	report_finish(r);
	return status;
}

/* find ------------------------------------------------------------------------------------------
 */

/* What is not there may be in a line that was not understood. */
static void nothing_found(struct log_view *v)
{
	v->r->exit = v->l.lines_lost ? EXIT_STATUS_UNDECIDED : EXIT_STATUS_FINDINGS;
}

static void add_hit(struct log_view *v, struct report_table *t, const struct search_hit *h)
{
	const struct ledger *l = &v->l;
	const struct ledger_step *s = &l->steps.items[h->step];
	struct report *r = v->r;
	bool worker = h->part.worker != UINT16_MAX;

	const char *cells[] = {report_text(r, "attempt %s", attempt_name(v, s->attempt)),
		report_text(r, "step %s", report_number(r, s->step)),
		s->epoch < 0 ? NULL : report_text(r, "epoch %d", s->epoch),
		report_text(r, "dp %u", h->part.dp), report_text(r, "micro %u", h->part.micro),
		worker ? report_text(r, "worker %u", h->part.worker) : NULL,
		report_text(r, "slot %u", h->slot),
		source_name(v, l->spaces.items[h->space].source),
		h->alive ? "survives" : "rolled back"};
	struct quantity values[9] = {quantity_count(l->attempts.items[s->attempt].number),
		quantity_count(s->step), quantity_or_none(s->epoch, -1), quantity_count(h->part.dp),
		quantity_count(h->part.micro),
		worker ? quantity_count(h->part.worker) : (struct quantity){0},
		quantity_count(h->slot)};
	report_add_row_values(r, t, h->alive ? TONE_PLAIN : TONE_DIM, cells, values);
}

static int find_key(struct log_view *v, struct error *e)
{
	static const char *const columns[] = {
		"attempt", "step", "epoch", "dp", "micro", "worker", "slot", "source", "line"};
	struct report *r = v->r;
	const char *what = v->o->id ? escaped(r, v->o->id)
				    : report_text(r, "%016llx", (unsigned long long)v->o->hash);
	struct search_key key = v->o->id ? search_id(slice_of(v->o->id)) : search_hash(v->o->hash);
	struct search_hits hits;
	uint64_t alive = 0;

	if (search_find(&hits, &v->l, &v->lines, &key, HITS_KEPT, e) < 0)
		return e->status;
	struct report_table *t = report_add_table(r, "hits", NULL, columns, 9);
	size_t shown = hits.list.count;
	if (!v->o->all && shown > ROWS_SHOWN)
		shown = ROWS_SHOWN;
	for (size_t i = 0; i < hits.list.count; i++) {
		alive += hits.list.items[i].alive;
		if (i < shown)
			add_hit(v, t, &hits.list.items[i]);
	}
	if (hits.total == 0) {
		r->summary = report_text(r, "%s was never consumed", what);
		nothing_found(v);
	} else {
		r->summary = report_text(r, "%s was consumed %s%s%s", what,
			counted(r, hits.total, "time", "times"),
			hits.total > hits.list.count ? ""
						     : report_text(r, ", %s on the surviving line",
							       report_number(r, (int64_t)alive)),
			hits.total > shown ? report_text(r, "; the first %zu are shown", shown)
					   : "");
	}
	search_hits_release(&hits);
	return RP_OK;
}

/* The ids of one part of a step: "3, 17, 42, … of 256". */
static const char *ids_text(
	struct log_view *v, struct sample_buffer *buffer, uint64_t row, uint32_t n, struct error *e)
{
	struct sample_source source = ledger_samples(&v->l);
	uint32_t shown = v->o->all || n <= IDS_SHOWN ? n : IDS_SHOWN;
	struct sample_block b;
	struct strbuf text;

	strbuf_init(&text, (size_t)1 << 28);
	for (uint32_t at = 0; at < shown; at += (uint32_t)b.n) {
		if (source.read(&source, row + at, shown - at, buffer, &b, e) < 0)
			break;
		for (size_t i = 0; i < b.n; i++) {
			uint8_t kind = v->l.spaces.items[b.spaces ? b.spaces[i] : 0].kind;
			strbuf_printf(&text, kind == KEY_ID ? "%s%llu" : "%s%016llx",
				at + i ? " " : "", (unsigned long long)b.keys[i]);
		}
	}
	if (shown < n)
		strbuf_printf(&text, " … (%u in all)", n);
	return report_take(v->r, &text);
}

static void add_step_samples(struct log_view *v, struct report_table *t,
	struct sample_buffer *buffer, uint32_t row, struct error *e)
{
	const struct ledger *l = &v->l;
	const struct ledger_step *s = &l->steps.items[row];
	const struct ledger_geometry *g = &l->geometries.items[s->geometry];
	uint64_t at = s->row;

	for (uint32_t i = 0; i < g->parts; i++) {
		const struct ledger_part *p = &l->parts.items[g->first + i];
		const char *cells[] = {report_text(v->r, "attempt %s", attempt_name(v, s->attempt)),
			report_text(v->r, "step %s", report_number(v->r, s->step)),
			report_text(v->r, "dp %u", p->dp), report_text(v->r, "micro %u", p->micro),
			ids_text(v, buffer, at, p->n, e)};
		struct quantity values[5] = {quantity_count(l->attempts.items[s->attempt].number),
			quantity_count(s->step), quantity_count(p->dp), quantity_count(p->micro)};
		report_add_row_values(v->r, t, TONE_PLAIN, cells, values);
		at += p->n;
	}
}

/* "web 24, code 8" */
static const char *mixture_text(struct log_view *v, const struct ledger_step *s)
{
	struct strbuf b;

	if (v->l.sources.count == 0)
		return NULL;
	strbuf_init(&b, TEXT_BYTES);
	for (uint32_t i = 0; i < s->shares; i++) {
		const struct ledger_share *share = &v->l.shares.items[s->first_share + i];
		const char *name = source_name(v, share->source);
		strbuf_printf(&b, "%s%s %u", i ? ", " : "", name ? name : "(none said)", share->n);
	}
	if (!b.failed || b.no_memory)
		return report_take(v->r, &b);
	strbuf_release(&b);
	return "many sources";
}

static void add_step(struct log_view *v, struct report_table *t, uint32_t row)
{
	const struct ledger *l = &v->l;
	const struct ledger_step *s = &l->steps.items[row];
	bool alive = search_alive(&v->lines, l, row);
	struct report *r = v->r;

	const char *cells[] = {report_text(r, "step %s", report_number(r, s->step)),
		report_text(r, "attempt %s", attempt_name(v, s->attempt)),
		s->epoch < 0 ? NULL : report_text(r, "epoch %d", s->epoch),
		counted(r, s->n, "sample", "samples"),
		s->tokens ? counted(r, s->tokens, "token", "tokens") : NULL, mixture_text(v, s),
		isnan(s->loss) ? NULL : report_text(r, "loss %s", real_text(r, (double)s->loss)),
		alive ? "survives" : "rolled back"};
	struct quantity values[8] = {quantity_count(s->step),
		quantity_count(l->attempts.items[s->attempt].number),
		quantity_or_none(s->epoch, -1), quantity_count(s->n),
		s->tokens ? quantity_count((int64_t)s->tokens) : (struct quantity){0}, {0},
		isnan(s->loss) ? (struct quantity){0} : quantity_real((double)s->loss)};
	report_add_row_values(r, t, alive ? TONE_PLAIN : TONE_DIM, cells, values);
}

static int compare_rows(const void *pa, const void *pb, void *context)
{
	const struct ledger_step *steps = context;
	const struct ledger_step *a = &steps[*(const uint32_t *)pa],
				 *b = &steps[*(const uint32_t *)pb];

	if (a->step != b->step)
		return a->step < b->step ? -1 : 1;
	return (a->attempt > b->attempt) - (a->attempt < b->attempt);
}

/* All steps in a range, of whatever attempt, by step. */
static bool steps_between(
	const struct ledger *l, int64_t first, int64_t last, uint32_t **rows, size_t *count)
{
	ARRAY(uint32_t) list = {0};

	for (size_t i = 0; i < l->steps.count; i++) {
		if (l->steps.items[i].step < first || l->steps.items[i].step > last)
			continue;
		uint32_t *row = array_push(&list, SIZE_MAX);
		if (!row) {
			array_release(&list);
			return false;
		}
		*row = (uint32_t)i;
	}
	*rows = list.items;
	*count = list.count;
	return true;
}

static int find_step(struct log_view *v, struct error *e)
{
	static const char *const of_step[] = {
		"step", "attempt", "epoch", "samples", "tokens", "sources", "loss", "line"};
	static const char *const of_part[] = {"attempt", "step", "dp", "micro", "ids"};
	int64_t last = v->o->step, first = last > v->o->before ? last - v->o->before : 0;
	struct sample_buffer *buffer = sample_buffer_new();
	struct report *r = v->r;
	uint32_t *rows = NULL;
	size_t count = 0, found = 0;

	if (!buffer || !steps_between(&v->l, first, last, &rows, &count)) {
		sample_buffer_free(buffer);
		return no_memory(e);
	}
	if (count > 1)
		qsort_r(rows, count, sizeof *rows, compare_rows, v->l.steps.items);
	struct report_table *t = report_add_table(r, "samples", NULL, of_part, 5);
	for (size_t i = 0; i < count && e->status == RP_OK; i++) {
		found += v->l.steps.items[rows[i]].step == last;
		if (v->o->all || v->l.steps.items[rows[i]].step == last)
			add_step_samples(v, t, buffer, rows[i], e);
	}
	t = report_add_table(r, "steps", "steps", of_step, 8);
	for (size_t i = count; i-- > 0;)
		add_step(v, t, rows[i]);
	r->summary = found == 0
			     ? report_text(r, "step %s is not in the log", report_number(r, last))
			     : report_text(r, "step %s, taken by %s", report_number(r, last),
				       counted(r, found, "attempt", "attempts"));
	if (found == 0)
		nothing_found(v);
	free(rows);
	sample_buffer_free(buffer);
	return e->status;
}

static const char *passes_text(
	struct report *r, const struct ledger_source *source, const struct search_consumed *c)
{
	if (source->size == 0)
		return NULL;
	return report_text(r, "%s of its %s samples",
		share_text(
			r, (double)(c->distinct ? c->distinct : c->samples) / (double)source->size),
		report_number(r, (int64_t)source->size));
}

static int find_source(struct log_view *v, struct error *e)
{
	static const char *const columns[] = {"quantity", "value", "remark"};
	struct report *r = v->r;
	struct ledger *l = &v->l;
	struct search_consumed c;
	uint32_t index = 0;

	while (index < l->sources.count && strcmp(l->sources.items[index].name, v->o->source) != 0)
		index++;
	if (index == l->sources.count) {
		r->summary = report_text(
			r, "there is no source %s in the log", escaped(r, v->o->source));
		nothing_found(v);
		return RP_OK;
	}
	const struct ledger_source *source = &l->sources.items[index];
	if (search_consumed(&c, l, &v->lines, index, v->o->until, v->o->limits.memory / 5, e) < 0)
		return e->status;
	double share = c.of ? (double)c.samples / (double)c.of : 0;
	r->summary = report_text(r, "%s of source %s on the surviving line%s, %s of all",
		counted(r, c.samples, "sample", "samples"), escaped(r, source->name),
		v->o->until == INT64_MAX
			? ""
			: report_text(r, " up to step %s", report_number(r, v->o->until)),
		share_text(r, share));
	struct report_table *t = report_add_table(r, "consumed", NULL, columns, 3);
	const struct {
		const char *name;
		bool known;
		uint64_t n;
		const char *remark;
	} rows[] = {
		{"samples", true, c.samples, share_text(r, share)},
		{"different samples", c.distinct > 0, c.distinct, passes_text(r, source, &c)},
		{"tokens", c.tokens > 0, c.tokens, NULL},
		{"rolled back", true, c.dead, "samples"},
		{"first step", c.samples > 0, (uint64_t)c.first_step, NULL},
		{"last step", c.samples > 0, (uint64_t)c.last_step, NULL},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		if (!rows[i].known)
			continue;
		const char *cells[] = {
			rows[i].name, report_number(r, (int64_t)rows[i].n), rows[i].remark};
		struct quantity values[3] = {{0}, quantity_count((int64_t)rows[i].n), {0}};
		report_add_row_values(r, t, TONE_PLAIN, cells, values);
	}
	return RP_OK;
}

int logs_find(struct report *r, const char *const *paths, size_t n, const struct log_options *o,
	struct error *e)
{
	struct log_view v;
	int status;

	if (open_view(&v, r, paths, n, o, e) < 0)
		return e->status;
	if (o->source)
		status = find_source(&v, e);
	else if (o->step >= 0)
		status = find_step(&v, e);
	else
		status = find_key(&v, e);
	add_reading(&v);
	close_view(&v);
	report_finish(r);
	return status;
}

/* import ----------------------------------------------------------------------------------------
 */

int logs_import(struct report *r, const char *const *paths, size_t n, const struct log_options *o,
	const char *out, struct error *e)
{
	struct log_view v;

	if (open_view(&v, r, paths, n, o, e) < 0)
		return e->status;
	int status = sealed_write(&v.l, out, e);
	if (status < 0)
		fail_wrap(e, "%s", out);
	summarize(&v);
	add_reading(&v);
	close_view(&v);
	report_finish(r);
	return status;
}

/* export ----------------------------------------------------------------------------------------
 */

int logs_export(struct report *r, const char *const *paths, size_t n, const struct log_options *o,
	enum log_form form, text_write_fn *write, void *context, struct error *e)
{
	struct log_view v;
	int status;

	if (open_view(&v, r, paths, n, o, e) < 0)
		return e->status;
	add_reading(&v);
	status = form == LOG_CSV ? log_write_csv(&v.l, write, context, e)
				 : log_write_jsonl(&v.l, write, context, e);
	for (size_t i = 0; i < v.l.spaces.count; i++)
		if (v.l.spaces.items[i].kind == KEY_TEXT) {
			ledger_note(&v.l, "", 0,
				"text ids are known by their hashes, and are written as keys");
			break;
		}
	close_view(&v);
	report_finish(r);
	return status;
}
