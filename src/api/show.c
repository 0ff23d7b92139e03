/* SPDX-License-Identifier: MIT */
#include "api/overview.h"
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
		const char *cells[] = {name, report_text(r, "%s", strbuf_text(&b)),
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
			f->container ? f->container->name : NULL,
			report_text(r, "%s", strbuf_text(&b)),
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
		const char *cells[] = {f->path, report_text(r, "%s", strbuf_text(&b)),
			s->single ? NULL : state_file_path(s, f->file)};
		report_add_row(r, t, TONE_PLAIN, cells);
	}
	strbuf_release(&b);
}

int show_path(struct report *r, const char *path, const struct verify_options *o, struct error *e)
{
	struct subject s;
	struct stream_pairs alone = {0};
	struct rng_search search;
	int status = subject_open_one(&s, path, &o->limits, &r->findings, e);

	rng_search_init(&search, o->limits.rng_search);
	if (status == RP_OK)
		status = streams_since_seed(&alone, &s.state, &search, e);
	if (status == RP_OK) {
		overview_input(r, &s.state, "checkpoint");
		r->summary = overview_line(r, &s.state);
		show_facts(r, &s.state);
		overview_streams(r, &s.state, &alone);
		show_optimizers(r, &s.state);
		show_files(r, &s.state);
		show_config(r, &s.state);
	}
	stream_pairs_release(&alone);
	rng_search_release(&search);
	subject_close(&s);
	report_finish(r);
	return status;
}
