/* SPDX-License-Identifier: MIT */
/* What the user told in a run file, held against what the checkpoint says: neither is preferred in
 * silence. */
#include <math.h>

#include "audit/case.h"
#include "base/text.h"

#define DIGITS 9 /* significant ones, of numbers in messages */

/* What it is when a told value is not the saved one. */
static const struct {
	enum fact_key key;
	enum finding_code code;
} contradictions[] = {
	{FACT_WORLD_SIZE, FINDING_P111},
	{FACT_DP_SIZE, FINDING_P111},
	{FACT_MICRO_BATCH, FINDING_P111},
	{FACT_ACCUMULATION, FINDING_P111},
	{FACT_GLOBAL_BATCH, FINDING_P111},
	{FACT_DATASET_SIZE, FINDING_P109},
	{FACT_DATA_SEED, FINDING_P110},
	{FACT_STEPS_PER_EPOCH, FINDING_P102},
};

static enum finding_code contradiction_code(const struct fact *read)
{
	/* Only a loader that saved a state for each of its workers wants as many again. */
	if (read->key == FACT_LOADER_WORKERS &&
		strcmp(path_last_name(read->path), "_num_workers") == 0)
		return FINDING_P108;
	for (size_t i = 0; i < sizeof contradictions / sizeof *contradictions; i++)
		if (contradictions[i].key == read->key)
			return contradictions[i].code;
	return FINDING_T109;
}

/* "reprise.run, line 12" */
static const char *line_of(struct findings *sink, const struct audit_case *c, unsigned line)
{
	return findings_text(
		sink, "%s, line %u", findings_escaped(sink, slice_of(c->run->path)), line);
}

static const char *told_text(struct findings *sink, const struct run_value *v)
{
	if (v->key->kind == RUN_WORD)
		return findings_escaped(sink, slice_of(v->word));
	if (v->key->kind == RUN_YESNO)
		return v->number ? "yes" : "no";
	/* Seeds are names, not amounts. */
	if (!*fact_rows[v->key->fact].unit)
		return findings_text(sink, "%lld", (long long)v->number);
	return count_text(sink, v->number);
}

/* Whether a fact that was found in the checkpoint is what was told. */
static bool agrees(const struct fact *f, const struct run_value *v)
{
	double x;

	if (v->key->kind == RUN_WORD)
		return f->type == FACT_TEXT && strcmp(f->text, v->word) == 0;
	return fact_to_double(f, &x) && x == (double)v->number;
}

/* What the run file says under a key, else what is known of it. */
static bool told_or_known(const struct audit_case *c, enum fact_key key, double *out)
{
	const struct run_value *told = run_file_value(c->run, key);

	*out = told ? (double)told->number : 0;
	return told || state_real(c->current, key, out);
}

/*
 * An update that takes as many samples as before keeps the meaning of the position: of its parts,
 * each may make up for the other.
 */
static bool same_batch(const struct audit_case *c)
{
	bool dp = state_fact(c->current, FACT_DP_SIZE) && !run_file_value(c->run, FACT_WORLD_SIZE);
	const enum fact_key parts[] = {
		FACT_MICRO_BATCH, FACT_ACCUMULATION, dp ? FACT_DP_SIZE : FACT_WORLD_SIZE};
	double saved = 1, told = 1, x, y;

	for (size_t i = 0; i < 3; i++) {
		if (!state_real(c->current, parts[i], &x) || !told_or_known(c, parts[i], &y))
			return false;
		saved *= x;
		told *= y;
	}
	return saved == told;
}

static void contradiction(struct audit_case *c, struct findings *sink, const struct fact *read,
	const struct run_value *told)
{
	enum finding_code code = contradiction_code(read);
	const struct fact_row *row = &fact_rows[read->key];
	double x;
	const char *saved = fact_text(sink, read), *said = told_text(sink, told);

	struct finding *f = finding_add(sink, code,
		"%s is %s in the checkpoint, and the run file says %s", row->name, saved, said);
	place_fact(sink, f, c->current, read);
	bool number =
		fact_to_double(read, &x) && read->type != FACT_BOOL && told->key->kind != RUN_WORD;
	f->observed = number ? quantity_real(x) : quantity_text(saved);
	f->expected = number ? quantity_count(told->number) : quantity_text(said);
	f->unit = number && *row->unit ? row->unit : NULL;
	f->cause = findings_text(sink, "%s, is wrong, or the launch is not like the one that saved",
		line_of(sink, c, told->line));
	f->remedy = "Correct the run file, or launch with what was saved.";
	if (code == FINDING_P111 && read->key != FACT_GLOBAL_BATCH && same_batch(c)) {
		f->severity = SEVERITY_INFO;
		f->meaning = "an update takes as many samples as before";
	}
	if (code == FINDING_T109 && read->key == FACT_LOADER_WORKERS)
		f->severity = SEVERITY_INFO;
}

/*
 * A value that the checkpoint holds several times (a training and a validation batch, say) is
 * contradicted only where none of them is the told one. What was told stands behind them.
 */
static void check_value(struct audit_case *c, struct findings *sink, const struct run_value *told)
{
	struct state *s = c->current;
	const struct fact *first = NULL;

	for (size_t i = 0; i < s->facts.count; i++) {
		const struct fact *f = &s->facts.items[i];
		if (f->key != told->key->fact || f->how >= HOW_TOLD)
			continue;
		if (agrees(f, told))
			return;
		if (!first)
			first = f;
	}
	if (first)
		contradiction(c, sink, first, told);
}

/* The batch that was told, against the one that its saved parts make. */
static void check_global(struct audit_case *c, struct findings *sink)
{
	const struct run_value *told = run_file_value(c->run, FACT_GLOBAL_BATCH);
	struct state *s = c->current;
	double micro, ranks, accumulation = 1;

	state_real(s, FACT_ACCUMULATION, &accumulation);
	if (!told || !state_real(s, FACT_MICRO_BATCH, &micro) ||
		!state_real(s, FACT_DP_SIZE, &ranks) ||
		micro * accumulation * ranks == (double)told->number)
		return;
	double made = micro * accumulation * ranks;
	struct finding *f = finding_add(sink, FINDING_P111,
		"an update takes %s samples by the saved settings, and the run file says %s",
		rounded_text(sink, made, DIGITS), told_text(sink, told));
	place_fact(sink, f, s, state_fact(s, FACT_MICRO_BATCH));
	f->observed = quantity_real(made);
	f->expected = quantity_count(told->number);
	f->unit = "samples";
	f->cause = findings_text(sink, "micro-batch %s, accumulation %s, %s ranks",
		rounded_text(sink, micro, DIGITS), rounded_text(sink, accumulation, DIGITS),
		rounded_text(sink, ranks, DIGITS));
}

/* More ranks left their state than were told. */
static void check_ranks_seen(struct audit_case *c, struct findings *sink)
{
	const struct run_value *told = run_file_value(c->run, FACT_WORLD_SIZE);
	struct state *s = c->current;

	if (!told || s->world <= told->number)
		return;
	struct finding *f = finding_add(sink, FINDING_P111,
		"the checkpoint holds the state of %d ranks, and the run file says %s", s->world,
		told_text(sink, told));
	place_file(sink, f, s, NO_FILE);
	f->observed = quantity_count(s->world);
	f->expected = quantity_count(told->number);
	f->unit = "ranks";
	f->cause = findings_text(sink, "%s, is wrong, or the launch is not like the one that saved",
		line_of(sink, c, told->line));
}

/* The length of an epoch that the checkpoint's own counters give, against the one of data set and
 * batch. */
static void check_epoch(struct audit_case *c, struct findings *sink)
{
	struct state *s = c->current;
	const struct fact *f = state_fact(s, FACT_STEPS_PER_EPOCH);
	struct epoch_length length;
	double saved;

	if (!f || f->how >= HOW_TOLD || run_file_value(c->run, FACT_STEPS_PER_EPOCH) ||
		!fact_to_double(f, &saved) || !epoch_length(s, &length) ||
		(saved > (double)length.updates_least - 1 &&
			saved < (double)length.updates_most + 1))
		return;
	struct finding *found = finding_add(sink, FINDING_P102,
		"an epoch has %s updates by the checkpoint's counters, and %s by the run file",
		rounded_text(sink, saved, DIGITS),
		length.updates_least == length.updates_most
			? rounded_text(sink, (double)length.updates_most, DIGITS)
			: findings_text(sink, "%lld to %lld", (long long)length.updates_least,
				  (long long)length.updates_most));
	place_fact(sink, found, s, f);
	found->observed = quantity_real(saved);
	found->expected = quantity_count(length.updates_most);
	found->unit = "updates";
	found->cause = findings_text(sink,
		"the data set, the batch or the ranks are not what %s says, or part of an epoch was read again",
		findings_escaped(sink, slice_of(c->run->path)));
}

/* The step against what is planned. */
static void check_plan(struct audit_case *c, struct findings *sink)
{
	const struct run_value *steps = run_file_value(c->run, FACT_MAX_STEPS),
			       *epochs = run_file_value(c->run, FACT_NUM_EPOCHS);
	struct state *s = c->current;
	double step, length;

	if (!state_real(s, FACT_STEP, &step))
		return;
	/* An epoch's length may leave out what is dropped at its end. */
	bool past = epochs && state_real(s, FACT_STEPS_PER_EPOCH, &length) &&
		    step > ((double)epochs->number + 1e-6) * ceil(length) + 0.5;
	if ((!steps || step <= (double)steps->number) && !past)
		return;
	const struct run_value *told = past ? epochs : steps;
	struct finding *f = past ? finding_add(sink, FINDING_P105,
					   "step %s is past the planned %s of %s updates",
					   rounded_text(sink, step, DIGITS),
					   counted_text(sink, (uint64_t)told->number, "epoch"),
					   rounded_text(sink, length, DIGITS))
				 : finding_add(sink, FINDING_T109, "step %s is past the planned %s",
					   rounded_text(sink, step, DIGITS),
					   counted_text(sink, (uint64_t)told->number, "step"));
	f->severity = SEVERITY_WARNING;
	place_fact(sink, f, s, state_fact(s, FACT_STEP));
	f->observed = quantity_real(step);
	f->expected =
		past ? quantity_real((double)told->number * length) : quantity_count(told->number);
	f->unit = "steps";
	f->cause = findings_text(sink, "%s, is wrong, or the run went on longer than planned",
		line_of(sink, c, told->line));
}

/* A stream that nothing draws from does not move. */
static void check_unused(struct audit_case *c, struct findings *sink)
{
	for (size_t i = 0; i < c->streams.list.count; i++) {
		const struct stream_pair *p = &c->streams.list.items[i];
		if (!p->earlier || !p->later || !run_file_unused(c->run, p->later->owner) ||
			p->relation.kind != RNG_ADVANCED || p->relation.draws == 0)
			continue;
		struct finding *f = finding_add(sink, FINDING_T109,
			"the run file says that nothing draws from %s, and it advanced by %llu draws",
			p->later->owner, (unsigned long long)p->relation.draws);
		f->severity = SEVERITY_WARNING;
		place_stream(sink, f, c->current, p->later);
		f->observed = quantity_count((int64_t)p->relation.draws);
		f->expected = quantity_count(0);
		f->unit = "draws";
		return; /* one rank stands for all */
	}
}

static void run_run_file(struct audit_case *c, struct findings *sink, struct coverage *cover)
{
	const struct run_file *r = c->run;

	if (!r)
		return;
	for (size_t i = 0; i < r->values.count; i++)
		check_value(c, sink, &r->values.items[i]);
	check_global(c, sink);
	check_ranks_seen(c, sink);
	check_epoch(c, sink);
	check_plan(c, sink);
	check_unused(c, sink);
	if (r->expects_parameters)
		expect_parameters(
			sink, c->current, r->parameters_least, r->parameters_most, "run file");
	uint64_t values = r->values.count + r->unused.count + r->sources.count + r->stages.count +
			  r->expects_parameters + (r->on_resume != RUN_RESUME_UNKNOWN);
	cover_ran(cover, "run-file",
		findings_text(sink, "run file %s", findings_escaped(sink, slice_of(r->path))),
		"values", values, values, NULL);
}

const struct rule rule_run_file = {
	.name = "run-file",
	.subject = "run file",
	.run = run_run_file,
};
