/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>

#include "api/overview.h"
#include "api/run.h"
#include "api/subject.h"
#include "api/verify.h"
#include "audit/case.h"
#include "base/text.h"

#define VALUE_BYTES 400u

static void compare_streams_table(struct report *r, const struct audit_case *c, int64_t steps)
{
	static const char *const columns[] = {
		"stream", "rank", "earlier", "later", "relation", "words"};
	struct report_table *t = report_add_table(r, "streams", "random streams", columns, 6);

	for (size_t i = 0; i < c->streams.list.count; i++) {
		const struct stream_pair *p = &c->streams.list.items[i];
		const struct stream *s = p->later ? p->later : p->earlier;
		const struct rng_relation *q = &p->relation;
		bool both = p->earlier && p->later;
		enum cell_tone tone = TONE_PLAIN;
		if (!both || p->relation.kind == RNG_RESEEDED || p->relation.kind == RNG_BEHIND)
			tone = TONE_BAD;
		else if (p->relation.kind == RNG_UNRELATED)
			tone = TONE_WARNING;
		const char *cells[] = {
			s->device >= 0 ? report_text(r, "%s:%d", s->owner, s->device) : s->owner,
			s->rank == NO_RANK ? NULL : report_text(r, "rank %d", s->rank),
			p->earlier
				? overview_seed(r, p->earlier->body, both && q->earlier_seed_known,
					  q->earlier_seed, q->earlier_since_seed)
				: "not saved",
			p->later ? overview_seed(r, p->later->body, both && q->seed_known, q->seed,
					   q->since_seed)
				 : "not saved",
			both ? overview_relation(r, &p->relation, steps) : "only in one",
			NULL,
		};
		struct quantity values[6] = {{0}};
		if (s->rank != NO_RANK)
			values[1] = quantity_count(s->rank);
		if (both && p->relation.kind == RNG_ADVANCED)
			values[5] = quantity_count((int64_t)p->relation.draws);
		report_add_row_values(r, t, tone, cells, values);
	}
}

static const char *fact_cell(struct report *r, const struct fact *f)
{
	struct strbuf b;

	if (!f)
		return NULL;
	strbuf_init(&b, VALUE_BYTES);
	fact_print(&b, f);
	return report_take(r, &b);
}

/* What says the same in the other state: where that has it but once, wherever it stands there. */
static const struct fact *same_fact(
	const struct state *s, const struct state *owner, const struct fact *of)
{
	const struct fact *same = state_same_fact(s, owner, of), *only = NULL;

	if (same || of->key == FACT_CONFIG)
		return same;
	for (size_t i = 0; i < s->facts.count; i++) {
		const struct fact *f = &s->facts.items[i];
		if (f->key != of->key || f->rank != of->rank || f->group != of->group)
			continue;
		if (only)
			return NULL;
		only = f;
	}
	return only;
}

/* The first fact before this one that has its key, rank and group, or NULL: several optimizers have
 * several. Facts are sorted by them. */
static const struct fact *first_alike(const struct state *s, size_t at)
{
	const struct fact *f = &s->facts.items[at], *first = NULL;

	for (size_t k = at; k-- > 0 && s->facts.items[k].key == f->key;)
		if (s->facts.items[k].rank == f->rank && s->facts.items[k].group == f->group)
			first = &s->facts.items[k];
	return first;
}

/* Whether a fact is one optimizer's or one schedule's, of several: they stand together in
 * facts.def. */
static bool is_of_one_of_several(const struct state *s, const struct fact *f)
{
	return s->optimizers.count > 1 && f->key >= FACT_OPTIMIZER &&
	       f->key <= FACT_SCHEDULE_HORIZON;
}

/* What tells a fact from the first of its kind: its file, or its path. */
static const char *told_apart(
	struct report *r, const struct state *s, const struct fact *f, const struct fact *first)
{
	const char *where = f->file != first->file ? state_file_path(s, f->file) : f->path;

	return findings_escaped(&r->findings, slice_of(where));
}

/* `where`: what tells it from others of its name, or NULL. */
static void add_fact_row(struct report *r, struct report_table *t, const struct fact *before,
	const struct fact *after, const char *where)
{
	const struct fact *f = after ? after : before;
	char flag = fact_rows[f->key].flags;
	double x, y;
	const char *change = NULL;
	enum cell_tone tone = TONE_PLAIN;

	if (before && after && fact_equal(before, after)) {
		change = flag == 'A' ? "unchanged" : "same";
		tone = flag == 'A' ? TONE_PLAIN : TONE_DIM;
	} else if (!before || !after) {
		change = before ? "only in the earlier" : "only in the later";
	} else if (fact_to_double(before, &x) && fact_to_double(after, &y)) {
		struct strbuf b;
		strbuf_init(&b, VALUE_BYTES);
		strbuf_add_text(&b, y > x ? "+" : "");
		text_add_rounded(&b, y - x, 6);
		change = report_take(r, &b);
		tone = flag == 'A' || flag == 'H' ? TONE_PLAIN : TONE_WARNING;
	} else {
		change = "changed";
		tone = TONE_WARNING;
	}
	const char *name = f->key == FACT_CONFIG ? f->path : fact_rows[f->key].name;
	if (f->group > 0)
		name = report_text(r, "%s, group %d", name, f->group);
	if (where)
		name = report_text(r, "%s, %s", name, where);
	const char *cells[] = {name, fact_cell(r, before), fact_cell(r, after), change};
	report_add_row(r, t, tone, cells);
}

/* Every fact of either side; of the configuration only what changed. */
static void compare_facts_table(
	struct report *r, const struct state *before, const struct state *after)
{
	static const char *const columns[] = {"name", "earlier", "later", "change"};
	struct report_table *t = report_add_table(r, "facts", "counters and settings", columns, 4);
	struct report_table *same =
		report_add_table(r, "unchanged", "unchanged settings", columns, 4);

	/* Adding a table may move the first one. */
	t = same ? same - 1 : NULL;
	if (same)
		same->verbose_only = true;
	for (size_t i = 0; i < after->facts.count; i++) {
		const struct fact *f = &after->facts.items[i], *was = same_fact(before, after, f);
		const struct fact *first = f->key == FACT_CONFIG ? NULL : first_alike(after, i);
		/* What was told is told of both. */
		if ((first && !is_of_one_of_several(after, f)) || f->key == FACT_NAME_STEP ||
			f->how == HOW_TOLD ||
			(f->key == FACT_CONFIG && (!was || fact_equal(was, f))))
			continue;
		/* Parameter groups usually agree; only the first and those that differ are shown.
		 */
		if (f->group > 0 && was && fact_equal(was, f))
			continue;
		bool unchanged = was && fact_equal(was, f) && fact_rows[f->key].flags != 'A';
		add_fact_row(r, unchanged ? same : t, was, f,
			first ? told_apart(r, after, f, first) : NULL);
	}
	for (size_t i = 0; i < before->facts.count; i++) {
		const struct fact *f = &before->facts.items[i];
		if (f->key != FACT_CONFIG && f->key != FACT_NAME_STEP && f->how != HOW_TOLD &&
			!same_fact(after, before, f))
			add_fact_row(r, t, f, NULL, NULL);
	}
}

/* The tensors of both, by name and role. */
static void compare_tensors_table(
	struct report *r, const struct state *before, const struct state *after)
{
	static const char *const columns[] = {
		"tensors", "identical", "changed", "other_type_or_shape", "unknown", "only_one"};
	static const struct {
		enum tensor_role role;
		const char *name;
	} roles[] = {{TENSOR_WEIGHT, "weights"}, {TENSOR_BUFFER, "buffers"},
		{TENSOR_MOMENT1, "first moments"}, {TENSOR_MOMENT2, "second moments"},
		{TENSOR_EMA, "averaged weights"}};
	struct report_table *t = report_add_table(r, "tensors", "tensors", columns, 6);

	for (size_t k = 0; k < sizeof roles / sizeof roles[0]; k++) {
		struct tensor_changes w;
		if (!tensors_compare(before, roles[k].role, after, roles[k].role, &w)) {
			r->findings.lost++;
			return;
		}
		if (w.both + w.single == 0)
			continue;
		uint64_t odd = w.odd_count, unknown = w.both - odd - w.known;
		const uint64_t numbers[] = {w.same, w.known - w.same, odd, unknown, w.single};
		static const char *const words[] = {"identical", "changed",
			"of another type or shape", "not compared", "only in one"};
		const char *cells[6] = {roles[k].name};
		struct quantity values[6] = {{0}};
		for (size_t i = 0; i < 5; i++) {
			values[i + 1] = quantity_count((int64_t)numbers[i]);
			cells[i + 1] = numbers[i]
					       ? report_text(r, "%llu %s",
							 (unsigned long long)numbers[i], words[i])
					       : NULL;
		}
		report_add_row_values(
			r, t, odd || w.single ? TONE_WARNING : TONE_PLAIN, cells, values);
	}
}

int compare_paths(struct report *r, const char *earlier, const char *later,
	const struct verify_options *o, struct error *e)
{
	struct subject a = SUBJECT_INIT, b = SUBJECT_INIT;
	struct findings own;
	struct rng_search search;
	struct byte_totals totals[2] = {{0}};
	struct run_in_use run = {0};
	int64_t steps = 0;

	findings_init(&own);
	rng_search_init(&search, o->limits.rng_search);
	int status = subject_open_one(&a, earlier, &o->limits, &own, e);
	if (status < 0)
		fail_wrap(e, "%s", earlier);
	if (status == RP_OK &&
		(status = subject_open_one(&b, later, &o->limits, &r->findings, e)) < 0)
		fail_wrap(e, "%s", later);
	/* The one with the lower step is the earlier, whatever the order in which they were named.
	 */
	int64_t step_a, step_b;
	bool swapped = status == RP_OK && state_int(&a.state, FACT_STEP, &step_a) &&
		       state_int(&b.state, FACT_STEP, &step_b) && step_b < step_a;
	if (swapped) {
		struct subject first = a;
		a = b;
		b = first;
	}
	struct audit_case c = {
		.current = &b.state, .previous = &a.state, .limits = &o->limits, .no_previous = ""};
	if (status == RP_OK) {
		overview_input(r, &a.state, "earlier");
		overview_input(r, &b.state, "later");
		status = run_open(&run, r, o->run, &b, e);
	}
	if (status == RP_OK) {
		run_tell(&run, &a);
		run_tell(&run, &b);
		c.run = run_file_of(&run);
		c.current_place = subject_place(&b);
		c.previous_place = subject_place(&a);
	}
	if (status == RP_OK && !o->quick) {
		bool known_a, known_b = false;
		status = subject_read_bytes(
			&a, o->threads, o->limits.deadline, &totals[0], &known_a, e);
		if (status == RP_OK)
			status = subject_read_bytes(
				&b, o->threads, o->limits.deadline, &totals[1], &known_b, e);
		if (known_a && known_b)
			c.bytes = &totals[1];
		c.no_bytes = "a snapshot was taken without reading bytes (--quick)";
	}
	if (status == RP_OK)
		status = streams_relate(&c.streams, &a.state, &b.state, &search, e);
	if (status == RP_OK) {
		bool same = case_steps_between(&c, &steps) && steps == 0;
		audit_run(&c, &r->findings, &r->coverage);
		struct verdict_case v = {.findings = &r->findings,
			.coverage = &r->coverage,
			.unreadable = subject_unreadable(r, &a.state, c.bytes ? &totals[0] : NULL)};
		if (!v.unreadable)
			v.unreadable = subject_unreadable(r, &b.state, c.bytes);
		if (!v.unreadable)
			v.unreadable = c.unread;
		v.consistent = same ? report_text(r, "%s and %s are of the same step",
					      checkpoint_name(&a.state), checkpoint_name(&b.state))
				    : report_text(r, "%s continues %s%s", checkpoint_name(&b.state),
					      checkpoint_name(&a.state),
					      swapped ? ", which was named second" : "");
		struct verdict verdict = verdict_of(&v);
		report_take_verdict(r, &verdict);
		compare_streams_table(r, &c, steps);
		compare_facts_table(r, &a.state, &b.state);
		compare_tensors_table(r, &a.state, &b.state);
	}
	stream_pairs_release(&c.streams);
	rng_search_release(&search);
	findings_release(&own);
	run_release(&run);
	subject_close(&a);
	subject_close(&b);
	report_finish(r);
	return status;
}
