/* SPDX-License-Identifier: MIT */
#include "api/overview.h"
#include "api/run.h"
#include "api/subject.h"
#include "api/verify.h"
#include "base/text.h"

#define VALUE_BYTES 400u

/* The facts that one screen shows: each key once, with how many other values there are. */
static void show_facts(struct report *r, const struct state *s)
{
	static const char *const columns[] = {"name", "value", "unit", "how", "file", "path"};
	static const char *const how[] = {
		[HOW_READ] = NULL,
		[HOW_NAMED] = "from the name",
		[HOW_DERIVED] = "derived",
		[HOW_ASSUMED] = "assumed",
		[HOW_TOLD] = "told",
	};
	struct report_table *t = report_add_table(r, "facts", NULL, columns, 6);
	struct strbuf b;

	strbuf_init(&b, VALUE_BYTES);
	for (size_t i = 0; i < s->facts.count; i++) {
		const struct fact *f = &s->facts.items[i];
		if (f->key == FACT_CONFIG)
			continue;
		/* Groups and ranks that say the same are one line. */
		bool said = false;
		for (size_t k = i; k-- > 0 && s->facts.items[k].key == f->key && !said;)
			said = fact_equal(&s->facts.items[k], f);
		if (said)
			continue;
		strbuf_clear(&b);
		fact_print(&b, f);
		const char *name = fact_rows[f->key].name;
		if (f->group > 0)
			name = report_text(r, "%s, group %d", name, f->group);
		if (f->rank != NO_RANK)
			name = report_text(r, "%s, rank %d", name, f->rank);
		const char *cells[] = {name, report_take(r, &b),
			*fact_rows[f->key].unit ? fact_rows[f->key].unit : NULL, how[f->how],
			f->file == NO_FILE || s->single ? NULL : state_file_path(s, f->file),
			*f->path ? f->path : NULL};
		struct quantity values[6] = {{0}};
		if (f->type == FACT_INT)
			values[1] = quantity_count(f->i);
		else if (f->type == FACT_REAL)
			values[1] = quantity_real(f->f);
		report_add_row_values(r, t, TONE_PLAIN, cells, values);
	}
	strbuf_release(&b);
}

static void show_optimizers(struct report *r, const struct state *s)
{
	static const char *const columns[] = {
		"optimizer", "parameters", "with_state", "steps", "file", "path"};
	struct report_table *t =
		s->optimizers.count ? report_add_table(r, "optimizers", "optimizers", columns, 6)
				    : NULL;

	for (size_t i = 0; i < s->optimizers.count; i++) {
		const struct optimizer *o = &s->optimizers.items[i];
		double least = 0, most = 0;
		size_t counted = 0;
		for (size_t k = 0; k < o->params.count; k++) {
			const struct opt_param *p = &o->params.items[k];
			if (!p->has_step)
				continue;
			least = counted == 0 || p->step < least ? p->step : least;
			most = counted == 0 || p->step > most ? p->step : most;
			counted++;
		}
		const char *steps = counted == 0 ? "no step counters"
				    : least == most
					    ? report_text(r, "step %.0f in all", most)
					    : report_text(r, "steps %.0f to %.0f", least, most);
		const char *cells[] = {*o->name ? o->name : "optimizer",
			report_text(r, "%llu parameters", (unsigned long long)o->listed),
			report_text(r, "%zu with state", o->params.count), steps,
			s->single ? NULL : state_file_path(s, o->file), *o->path ? o->path : NULL};
		const struct quantity values[6] = {[1] = quantity_count((int64_t)o->listed),
			[2] = quantity_count((int64_t)o->params.count)};
		report_add_row_values(r, t, TONE_PLAIN, cells, values);
	}
}

static void show_files(struct report *r, const struct state *s)
{
	static const char *const columns[] = {"file", "role", "format", "bytes", "state"};
	struct report_table *t = report_add_table(r, "files", "files", columns, 5);
	struct strbuf b;

	strbuf_init(&b, VALUE_BYTES);
	if (t)
		t->verbose_only = s->files.count > 40;
	for (size_t i = 0; i < s->files.count; i++) {
		const struct state_file *f = &s->files.items[i];
		strbuf_clear(&b);
		text_add_bytes(&b, f->size);
		const char *cells[] = {f->path, file_role_name((enum file_role)f->role),
			f->container ? f->container->name : NULL, report_take(r, &b),
			f->status == FILE_BROKEN ? f->error : NULL};
		const struct quantity values[5] = {[3] = quantity_count((int64_t)f->size)};
		report_add_row_values(
			r, t, f->status == FILE_BROKEN ? TONE_BAD : TONE_PLAIN, cells, values);
	}
	strbuf_release(&b);
}

/* The saved configuration: long, so in text only with -v. */
static void show_config(struct report *r, const struct state *s)
{
	static const char *const columns[] = {"setting", "value", "file"};
	struct report_table *t = report_add_table(r, "configuration", "configuration", columns, 3);
	struct strbuf b;

	strbuf_init(&b, VALUE_BYTES);
	if (t)
		t->verbose_only = true;
	for (size_t i = 0; i < s->facts.count; i++) {
		const struct fact *f = &s->facts.items[i];
		if (f->key != FACT_CONFIG)
			continue;
		strbuf_clear(&b);
		fact_print(&b, f);
		const char *cells[] = {f->path, report_take(r, &b),
			s->single ? NULL : state_file_path(s, f->file)};
		report_add_row(r, t, TONE_PLAIN, cells);
	}
	strbuf_release(&b);
}

/* The sources of the mixture: how much of each there is, and how often it was read by now. */
static void show_sources(struct report *r, const struct run_file *run, const struct state *s)
{
	static const char *const columns[] = {"source", "samples", "weight", "epochs", "planned"};
	struct report_table *t =
		run->sources.count ? report_add_table(r, "sources", "sources", columns, 5) : NULL;
	const struct run_stage *stage = NULL;
	double step, batch, all = 0;
	int64_t at;
	bool taken = state_real(s, FACT_STEP, &step) && state_real(s, FACT_GLOBAL_BATCH, &batch);

	if (state_int(s, FACT_STEP, &at))
		stage = run_file_stage(run, at);
	for (size_t i = 0; i < run->sources.count; i++)
		all += run->sources.items[i].weight;
	for (size_t i = 0; i < run->sources.count; i++) {
		const struct run_source *x = &run->sources.items[i];
		struct quantity values[5] = {{0}};
		double weight = all > 0 ? x->weight / all : 0, epochs = 0;
		/* How often it was read follows from the weights only where they never changed. */
		if (taken && weight > 0 && x->samples > 0 && run->stages.count == 0)
			epochs = step * batch * weight / (double)x->samples;
		for (size_t k = 0; stage && k < stage->weight_count; k++)
			if (stage->weights[k].source == i)
				weight = stage->weights[k].weight;
		if (x->samples > 0)
			values[1] = quantity_count(x->samples);
		if (weight > 0)
			values[2] = quantity_real(weight);
		if (epochs > 0)
			values[3] = quantity_real(epochs);
		if (x->epochs > 0)
			values[4] = quantity_real(x->epochs);
		const char *cells[] = {x->name,
			x->samples > 0 ? report_text(r, "%lld samples", (long long)x->samples)
				       : NULL,
			weight > 0 ? report_text(r, "weight %.4g", weight) : NULL,
			epochs > 0 ? report_text(r, "%.3g epochs", epochs) : NULL,
			x->epochs > 0 ? report_text(r, "of %.4g", x->epochs) : NULL};
		report_add_row_values(r, t,
			x->epochs > 0 && epochs > x->epochs ? TONE_WARNING : TONE_PLAIN, cells,
			values);
	}
}

static void show_stages(struct report *r, const struct run_file *run, const struct state *s)
{
	static const char *const columns[] = {"stage", "from", "until", "now"};
	struct report_table *t =
		run->stages.count ? report_add_table(r, "stages", "stages", columns, 4) : NULL;
	int64_t step = -1;

	state_int(s, FACT_STEP, &step);
	const struct run_stage *now = run_file_stage(run, step);
	for (size_t i = 0; i < run->stages.count; i++) {
		const struct run_stage *x = &run->stages.items[i];
		bool open = x->until == INT64_MAX;
		const char *cells[] = {x->name,
			report_text(r, "from step %lld", (long long)x->from),
			open ? "to the end" : report_text(r, "to step %lld", (long long)x->until),
			x == now ? "the next step is of it" : NULL};
		const struct quantity values[4] = {[1] = quantity_count(x->from),
			[2] = open ? (struct quantity){0} : quantity_count(x->until)};
		report_add_row_values(r, t, x == now ? TONE_GOOD : TONE_PLAIN, cells, values);
	}
}

/* What cannot be a fact of a checkpoint. */
static void show_run(struct report *r, const struct run_file *run, const struct state *s)
{
	static const char *const columns[] = {"file", "unused_streams", "on_resume"};
	struct report_table *t = report_add_table(r, "run_file", NULL, columns, 3);
	struct strbuf unused;

	strbuf_init(&unused, VALUE_BYTES);
	for (size_t i = 0; i < run->unused.count; i++)
		strbuf_printf(&unused, "%s%s", i ? ", " : "not used: ", run->unused.items[i]);
	const char *cells[] = {report_text(r, "run file %s", run->path),
		run->unused.count ? report_take(r, &unused) : NULL,
		run->on_resume == RUN_RESUME_SKIPS      ? "a resume skips what was read"
		: run->on_resume == RUN_RESUME_RESTARTS ? "a resume starts the epoch again"
							: NULL};
	report_add_row(r, t, TONE_PLAIN, cells);
	show_sources(r, run, s);
	show_stages(r, run, s);
}

/* What is shown is less than what is there. */
static void tell_unreadable(struct report *r, const struct state *s)
{
	const char *reason = subject_unreadable(r, s, NULL);

	if (!reason)
		return;
	cover_not_checked(&r->coverage, "contents", "all that is in the checkpoint", "%s", reason);
	r->exit = EXIT_STATUS_UNDECIDED;
}

int show_path(struct report *r, const char *path, const struct verify_options *o, struct error *e)
{
	struct subject s;
	struct stream_pairs alone = {0};
	struct run_in_use run = {0};
	struct rng_search search;
	int status = subject_open_one(&s, path, &o->limits, &r->findings, e);

	rng_search_init(&search, o->limits.rng_search);
	if (status == RP_OK) {
		overview_input(r, &s.state, "checkpoint");
		status = run_open(&run, r, o->run, &s, e);
	}
	if (status == RP_OK) {
		run_tell(&run, &s);
		status = streams_since_seed(&alone, &s.state, &search, e);
	}
	if (status == RP_OK) {
		r->summary = overview_line(r, &s.state);
		show_facts(r, &s.state);
		if (run.found)
			show_run(r, &run.file, &s.state);
		overview_streams(r, &s.state, &alone);
		show_optimizers(r, &s.state);
		show_files(r, &s.state);
		show_config(r, &s.state);
		tell_unreadable(r, &s.state);
	}
	stream_pairs_release(&alone);
	rng_search_release(&search);
	run_release(&run);
	subject_close(&s);
	report_finish(r);
	return status;
}
