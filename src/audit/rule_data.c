/* SPDX-License-Identifier: MIT */
/* Family D at seams: what the first samples after each resume are. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "audit/case.h"
#include "audit/data.h"

/* Words ---------------------------------------------------------------------------------------- */

const char *data_percent(struct findings *sink, double part, double whole)
{
	return findings_text(
		sink, "%s %%", rounded_text(sink, whole > 0 ? 100 * part / whole : 0, 3));
}

const char *data_steps(struct findings *sink, int64_t first, int64_t last)
{
	if (first == last)
		return findings_text(sink, "step %s", count_text(sink, first));
	return findings_text(sink, "steps %s–%s", count_text(sink, first), count_text(sink, last));
}

const char *data_steps_of_line(
	struct findings *sink, const struct lineage *g, uint64_t at, uint64_t rows)
{
	return data_steps(sink, line_step_at(g, at)->step, line_step_at(g, at + rows - 1)->step);
}

const char *data_attempt(struct findings *sink, const struct ledger *l, uint32_t attempt)
{
	struct strbuf b;

	strbuf_init(&b, 200);
	ledger_attempt_name(l, attempt, &b);
	const char *text = findings_text(sink, "attempt %s", strbuf_text(&b));
	sink->lost += b.no_memory;
	strbuf_release(&b);
	return text;
}

/* "seam 2, attempt 3 from step 480: " */
static const char *seam_name(struct findings *sink, const struct case_line *c, const struct seam *s)
{
	int64_t from = c->lineage.attempts.items[s->to].from_step;
	const char *attempt = data_attempt(sink, c->lineage.ledger, s->to);

	if (from == LEDGER_NO_STEP)
		return findings_text(sink, "%s%s", c->what, attempt);
	return findings_text(
		sink, "%s%s, resumed from step %s", c->what, attempt, count_text(sink, from));
}

void data_place(struct finding *f, const struct lineage *g, uint64_t at, uint64_t rows)
{
	if (rows == 0 || at >= g->rows)
		return;
	f->place.step_first = line_step_at(g, at)->step;
	f->place.step_last =
		line_step_at(g, at + rows - 1 < g->rows ? at + rows - 1 : g->rows - 1)->step;
}

static struct finding *seam_finding(struct findings *sink, const struct case_line *c,
	const struct seam *s, enum finding_code code, uint64_t run, const char *what)
{
	struct finding *f = finding_add(sink, code, "%s: %s", seam_name(sink, c, s), what);

	data_place(f, &c->lineage, s->at, run < s->rows ? run : s->rows);
	return f;
}

/* Causes --------------------------------------------------------------------------------------- */

/* Samples of a usual step after the seam, and of one batch of all its ranks. */
static uint64_t step_samples(const struct case_line *c, const struct seam *s)
{
	return c->lineage.ledger->steps.items[c->lineage.line.items[s->part].first].n;
}

static uint64_t ranks_after(const struct case_line *c, const struct seam *s)
{
	const struct ledger *l = c->lineage.ledger;
	return l->geometries.items[l->steps.items[c->lineage.line.items[s->part].first].geometry]
		.ranks;
}

/* The factor that a ratio of positions is, by what the launch has of that size. */
static const char *factor_cause(struct findings *sink, const struct case_line *c,
	const struct seam *s, uint64_t k, bool too_small)
{
	const struct ledger_attempt *a = &c->lineage.ledger->attempts.items[s->to];
	const struct ledger_attempt *b = &c->lineage.ledger->attempts.items[s->from];
	uint64_t ranks = ranks_after(c, s);

	if (k < 2)
		return NULL;
	if ((int64_t)k == a->accumulation || (int64_t)k == b->accumulation)
		return findings_text(sink, "the position is off by the %llu accumulation steps: %s",
			(unsigned long long)k,
			too_small ? "optimizer steps were taken for micro-batches"
				  : "the factor was applied twice");
	if (k == ranks || (int64_t)k == a->world || (int64_t)k == a->dp || (int64_t)k == b->dp)
		return findings_text(sink, "the position is off by the %llu ranks: it was %s",
			(unsigned long long)k,
			too_small ? "divided by them once too often"
				  : "counted over all ranks and applied to each");
	return NULL;
}

/* Where a step became larger or smaller and the steps were counted: what that makes of the place.
 */
static const char *batch_cause(struct findings *sink, const struct case_line *c,
	const struct seam *s, const struct seam_judgement *j)
{
	const struct ledger_geometry *before = part_geometry(c, s->part - 1);
	const struct ledger_geometry *after = part_geometry(c, s->part);

	if (before->ranks != after->ranks || before->samples == after->samples ||
		before->samples == 0 || after->samples == 0 || j->observed_at == 0 ||
		j->expected_at % before->samples != 0 || j->observed_at % after->samples != 0 ||
		j->expected_at / before->samples != j->observed_at / after->samples)
		return NULL;
	return findings_text(sink,
		"the position counts batches, not samples: a step takes %s samples where it took %s",
		count_text(sink, after->samples), count_text(sink, before->samples));
}

/* A first step that has a replay above a usual step's samples: the loop may not have trained on it.
 */
static const char *drawn_cause(struct findings *sink, const struct case_line *c,
	const struct seam *s, const struct seam_judgement *j)
{
	const struct line_part *part = &c->lineage.line.items[s->part];
	const struct ledger_step *first = &c->lineage.ledger->steps.items[part->first];

	if (part->steps < 2 || j->run == 0 || first[1].n == 0 || first->n <= first[1].n ||
		first->n - first[1].n < j->run)
		return NULL;
	return findings_text(sink,
		"the first step took %s, the next %s: a loop that draws batches and drops them to get back "
		"to its place must call recorder.skip() behind that, or they count as trained on",
		counted_text(sink, first->n, "sample"), count_text(sink, first[1].n));
}

static const char *replay_cause(struct findings *sink, const struct case_line *c,
	const struct seam *s, const struct seam_judgement *j)
{
	uint64_t back = j->expected_at - j->observed_at, step = step_samples(c, s);
	const struct line_part *before = &c->lineage.line.items[s->part - 1];

	const char *cause = drawn_cause(sink, c, s, j);

	if (cause)
		return cause;
	if (j->observed_at == 0 &&
		c->lineage.ledger->attempts.items[s->to].kind == ATTEMPT_REHEARSAL)
		return "the loader's position was not restored; or the loop draws and drops what was read, "
		       "and the rehearsal ended before that";
	if (j->observed_at == 0)
		return "the loader's position was not restored";
	if (before->at > 0 && before->rows == j->observed_at && before->rows < s->behind)
		return "the position counts only what was consumed since the resume before this one";
	cause = batch_cause(sink, c, s, j);
	if (!cause && j->expected_at % j->observed_at == 0)
		cause = factor_cause(sink, c, s, j->expected_at / j->observed_at, true);
	if (cause)
		return cause;
	if (back == step)
		return "the position is one step behind";
	const struct ledger_attempt *a = &c->lineage.ledger->attempts.items[s->to];
	if (a->micro_batch > 0 && back == (uint64_t)a->micro_batch * ranks_after(c, s))
		return "the position is one batch per rank behind";
	return NULL;
}

static const char *hole_cause(struct findings *sink, const struct case_line *c,
	const struct seam *s, const struct seam_judgement *j)
{
	const struct ledger_attempt *a = &c->lineage.ledger->attempts.items[s->to];
	uint64_t step = step_samples(c, s);
	const char *cause = batch_cause(sink, c, s, j);

	if (cause)
		return cause;
	if (j->expected_at > 0 && j->observed_at % j->expected_at == 0) {
		uint64_t k = j->observed_at / j->expected_at;
		cause = factor_cause(sink, c, s, k, false);
		if (cause)
			return cause;
		if (k == 2)
			return "the position was applied twice";
	}
	if (j->hole == step)
		return "one step was passed over: the position is one ahead";
	if (a->workers > 0 && a->prefetch > 0 && a->micro_batch > 0 &&
		j->hole <=
			(uint64_t)(a->workers * a->prefetch * a->micro_batch) * ranks_after(c, s))
		return findings_text(sink,
			"as much as %lld workers had prefetched: the loader's own position was saved, "
			"not the consumed one",
			(long long)a->workers);
	return NULL;
}

/* Outcomes ------------------------------------------------------------------------------------- */

/* Of a run that goes back over an epoch's begin, not every sample is of the epoch that goes on. */
static const char *samples_again(struct findings *sink, uint64_t run, uint64_t in_epoch)
{
	if (in_epoch >= run)
		return counted_text(sink, in_epoch, "sample");
	return findings_text(sink, "%s, %s of them twice in the epoch",
		counted_text(sink, run, "sample"), count_text(sink, (int64_t)in_epoch));
}

static void tell_replay(struct findings *sink, const struct case_line *c, const struct seam *s,
	const struct seam_judgement *j)
{
	const struct lineage *g = &c->lineage;
	bool window = j->outcome == SEAM_WINDOW;
	uint64_t run = j->run < s->rows ? j->run : s->rows;
	uint64_t of = j->run > s->at - j->source ? s->at - j->source : j->run;
	const char *again = data_steps_of_line(sink, g, s->at, run);
	const char *source = data_steps_of_line(sink, g, j->source, of);
	struct finding *f = seam_finding(sink, c, s, window ? FINDING_D102 : FINDING_D101, run,
		findings_text(sink, "%s%s %s %s in order: %s",
			window ? ""
			: j->outcome == SEAM_FROM_EPOCH
				? "the epoch's data starts again from the top: "
				: "the data starts again from the top: ",
			again, strncmp(again, "steps", 5) == 0 ? "repeat" : "repeats", source,
			samples_again(sink, run, j->repeated)));

	f->expected = quantity_count((int64_t)j->expected_at);
	f->observed = quantity_count((int64_t)j->observed_at);
	f->unit = "samples into the epoch";
	f->cause = replay_cause(sink, c, s, j);
	if (c->tally.size > 0)
		f->meaning = findings_text(sink,
			"%s of the epoch is shown twice: the loss over these steps is falsely low, and steps "
			"up to its true level after them",
			data_percent(sink, (double)j->repeated, (double)c->tally.size));
}

/* "25 samples of the epoch come twice, 25 never" */
static const char *shares(struct findings *sink, const struct case_line *c, const struct seam *s,
	const struct seam_judgement *j)
{
	uint64_t missing;
	const struct line_epoch *epoch = &c->tally.epochs.items[s->epoch];
	double size = c->tally.size > 0 ? (double)c->tally.size : (double)epoch->rows;
	const char *twice = findings_text(sink, "%s of the epoch (%s) come again",
		counted_text(sink, j->repeated, "sample"),
		data_percent(sink, (double)j->repeated, size));

	if (!epoch_missing(c, s->epoch, &missing))
		return twice;
	return findings_text(sink, "%s, %s (%s) never come", twice,
		count_text(sink, (int64_t)missing), data_percent(sink, (double)missing, size));
}

static void tell_other_order(struct findings *sink, const struct case_line *c, const struct seam *s,
	const struct seam_judgement *j)
{
	const struct lineage *g = &c->lineage;
	uint64_t step = step_samples(c, s), begun = s->behind;
	struct finding *f = seam_finding(sink, c, s, FINDING_D103, s->inside,
		findings_text(sink, "%s, in another order", shares(sink, c, s, j)));

	f->observed = quantity_count((int64_t)j->repeated);
	f->expected = quantity_count((int64_t)llround(j->expected));
	f->unit = "samples";
	if (j->fresh_declared) {
		f->severity = SEVERITY_WARNING;
		f->cause = "a declared fresh order inside an epoch";
		return;
	}
	/* Ids above what was consumed, of data that is not read in order: the tail was shuffled. */
	struct sample_source line = lineage_line(g);
	struct sample_buffer *buffer = sample_buffer_new();
	struct sample_block b;
	uint64_t low = UINT64_MAX;
	if (buffer && g->ledger->spaces.count == 1 && g->ledger->spaces.items[0].kind == KEY_ID) {
		for (uint64_t at = 0; at < s->inside; at += b.n) {
			if (line.read(&line, s->at + at, (size_t)(s->inside - at), buffer, &b,
				    NULL) < 0)
				break;
			for (size_t i = 0; i < b.n; i++)
				low = b.keys[i] < low ? b.keys[i] : low;
		}
	}
	sample_buffer_free(buffer);
	if (low != UINT64_MAX && low >= begun && begun > 0 && s->inside >= 2 * step)
		f->cause = findings_text(sink,
			"only ids from %s on come: the tail of the data was shuffled anew, not the rest "
			"of the order",
			count_text(sink, (int64_t)low));
}

static void tell_fresh(struct findings *sink, const struct case_line *c, const struct seam *s,
	const struct seam_judgement *j)
{
	uint64_t missing = 0;
	bool known = epoch_missing(c, s->epoch, &missing);
	struct finding *f = seam_finding(sink, c, s, FINDING_D191, s->inside,
		findings_text(sink, "a fresh order, as declared: %s", shares(sink, c, s, j)));

	f->observed = quantity_count((int64_t)j->repeated);
	f->unit = "samples";
	if (known)
		f->meaning = findings_text(sink, "%s of the epoch are never consumed",
			counted_text(sink, missing, "sample"));
	if (j->repeated > 0 && !c->tally.replacement)
		tell_other_order(sink, c, s, j);
}

static void tell_other_epoch(struct findings *sink, const struct case_line *c, const struct seam *s,
	const struct seam_judgement *j)
{
	const struct line_epoch *own = &c->tally.epochs.items[s->epoch],
				*other = &c->tally.epochs.items[s->earlier];
	int64_t label = other->label >= 0 ? other->label : (int64_t)s->earlier;
	int64_t own_label = own->label >= 0 ? own->label : (int64_t)s->epoch;
	const char *effect =
		j->repeated > 0 ? findings_text(sink, ": %s", shares(sink, c, s, j)) : "";
	struct finding *f = seam_finding(sink, c, s, FINDING_D108, j->run,
		findings_text(sink, "the rest of epoch %lld comes in the order of epoch %lld%s",
			(long long)own_label, (long long)label, effect));

	f->observed = quantity_count(label);
	f->expected = quantity_count(own_label);
	f->unit = "epoch";
	f->cause = "the epoch did not reach the sampler before it went on";
}

static const char *key_name(struct findings *sink, const struct case_line *c, const struct seam *s)
{
	const char *attempt = data_attempt(sink, c->lineage.ledger, s->key.attempt);

	return findings_text(sink, "%s %s",
		s->key.origin == KEY_TAIL     ? "the dead branch of"
		: s->key.origin == KEY_SISTER ? "the sister branch,"
					      : "the reference run,",
		attempt);
}

static void tell_hole(struct findings *sink, const struct case_line *c, const struct seam *s,
	const struct seam_judgement *j)
{
	const struct ledger *l = c->lineage.ledger;
	const char *which = "";

	if (s->key.origin != KEY_NONE && j->hole <= s->key.rows) {
		uint32_t first = ledger_step_of_row(l, s->key.row);
		uint32_t last = ledger_step_of_row(l, s->key.row + j->hole - 1);
		which = findings_text(sink, ", %s of %s",
			data_steps(sink, l->steps.items[first].step, l->steps.items[last].step),
			key_name(sink, c, s));
	}
	struct finding *f = seam_finding(sink, c, s, FINDING_D104, 1,
		findings_text(
			sink, "%s passed over%s", counted_text(sink, j->hole, "sample"), which));
	f->expected = quantity_count((int64_t)j->expected_at);
	f->observed = quantity_count((int64_t)j->observed_at);
	f->unit = "samples into the epoch";
	f->cause = hole_cause(sink, c, s, j);
}

static void tell_permuted(struct findings *sink, const struct case_line *c, const struct seam *s,
	const struct seam_judgement *j)
{
	const struct ledger_attempt *a = &c->lineage.ledger->attempts.items[s->to];
	struct finding *f = seam_finding(sink, c, s, FINDING_D110, s->rows,
		j->rotation > 0
			? findings_text(sink,
				  "the batches of %s come in turns of %u, rotated by %d: the same samples, "
				  "another order",
				  key_name(sink, c, s), j->window, j->rotation)
			: findings_text(sink,
				  "the samples of %s come within %u steps of their place, in another order",
				  key_name(sink, c, s), j->window));

	if (a->workers > 1)
		f->cause = findings_text(sink,
			"%lld loader workers took their turns from another starting point",
			(long long)a->workers);
}

static void tell_difference(struct findings *sink, const struct case_line *c, const struct seam *s,
	const struct seam_judgement *j)
{
	const struct lineage *g = &c->lineage;
	const struct ledger_step *own =
		&g->ledger->steps.items[g->line.items[s->part].first + s->match.at];
	bool order = j->batches_whole || 2 * s->ahead.heads > s->head;
	struct finding *f = finding_add(sink, FINDING_D109, "%s: step %s is not that of %s: %s",
		seam_name(sink, c, s), count_text(sink, s->match.step), key_name(sink, c, s),
		s->ahead.heads == 0 ? "none of its samples are"
		: order             ? "the same samples come in another order"
				    : "other samples come");

	f->place.step_first = f->place.step_last = own->step;
	f->observed = quantity_count(s->match.same);
	f->expected = quantity_count(s->match.steps);
	f->unit = "equal steps";
	/* A sister branch resumed too: which of the two is right, nobody knows. */
	if (s->key.origin == KEY_SISTER) {
		f->severity = SEVERITY_WARNING;
		f->meaning =
			"two resumes from one checkpoint consumed different data: at most one of them "
			"is right";
	}
}

static void tell_proof(struct findings *sink, const struct case_line *c, const struct seam *s,
	const struct seam_judgement *j)
{
	const struct lineage *g = &c->lineage;
	const struct line_part *p = &g->line.items[s->part];
	uint32_t last = p->first + (j->proven > 0 ? j->proven - 1 : 0);
	struct finding *f = finding_add(sink, FINDING_D190,
		"%s: %s of %s came again sample by sample%s", seam_name(sink, c, s),
		counted_text(sink, j->proven, "step"), key_name(sink, c, s),
		j->outcome == SEAM_REARRANGED   ? ", placed on the ranks otherwise"
		: j->outcome == SEAM_BY_SAMPLES ? ", in batches of another size"
		: j->outcome == SEAM_SKIPPED    ? ", without what was declared to be skipped"
						: "");

	f->place.step_first = g->ledger->steps.items[p->first].step;
	f->place.step_last = g->ledger->steps.items[last].step;
	f->observed = quantity_count(j->proven);
	f->unit = "steps";
}

static void tell_skip(struct findings *sink, const struct case_line *c, const struct seam *s,
	const struct seam_judgement *j)
{
	bool none = j->skipped == UINT64_MAX;
	struct finding *f = seam_finding(sink, c, s, FINDING_D112, 1,
		none ? findings_text(sink,
			       "a skip of %s is declared, and what follows is not in %s at all",
			       counted_text(sink, j->declared, "sample"), key_name(sink, c, s))
		     : findings_text(sink, "a skip of %s of %s is declared, and %s skipped",
			       counted_text(sink, j->declared, "sample"), key_name(sink, c, s),
			       j->skipped == 0 ? "nothing was"
					       : findings_text(sink, "%s were",
							 count_text(sink, (int64_t)j->skipped))));

	f->expected = quantity_count((int64_t)j->declared);
	if (!none)
		f->observed = quantity_count((int64_t)j->skipped);
	f->unit = "samples skipped";
	if (!none && j->skipped > 0) {
		uint64_t large = j->skipped > j->declared ? j->skipped : j->declared;
		uint64_t small = j->skipped > j->declared ? j->declared : j->skipped;
		if (small > 0 && large % small == 0)
			f->cause =
				factor_cause(sink, c, s, large / small, j->skipped < j->declared);
		if (!f->cause && j->skipped == j->declared)
			f->cause = "the right number, and not from the right place";
	}
}

static void tell_seam(struct findings *sink, const struct case_line *c, size_t k)
{
	const struct seam *s = &c->alignments.seams.items[k];
	const struct seam_judgement *j = &c->judged.list.items[k];

	switch ((enum seam_outcome)j->outcome) {
	case SEAM_FROM_START:
	case SEAM_FROM_EPOCH:
	case SEAM_WINDOW:
		tell_replay(sink, c, s, j);
		break;
	case SEAM_OTHER_ORDER:
		tell_other_order(sink, c, s, j);
		break;
	case SEAM_OTHER_EPOCH:
		tell_other_epoch(sink, c, s, j);
		break;
	case SEAM_FRESH:
		tell_fresh(sink, c, s, j);
		break;
	case SEAM_HOLE:
		tell_hole(sink, c, s, j);
		break;
	case SEAM_PERMUTED:
		tell_permuted(sink, c, s, j);
		break;
	case SEAM_DIFFERS:
		/* What explains the difference is said instead of it. */
		if (epoch_hole(c, s->epoch) == 0 && !data_ranks_overlap(c, s->part, NULL))
			tell_difference(sink, c, s, j);
		break;
	case SEAM_SKIP_WRONG:
		tell_skip(sink, c, s, j);
		break;
	case SEAM_SKIPPED:
	case SEAM_EXACT:
	case SEAM_REARRANGED:
	case SEAM_BY_SAMPLES:
		if (j->proven > 0)
			tell_proof(sink, c, s, j);
		break;
	case SEAM_SOUND:
	case SEAM_UNKNOWABLE:
	case SEAM_OUTCOMES:
		break;
	}
}

static void run_data_resume(struct audit_case *c, struct findings *sink, struct coverage *cover)
{
	for (size_t i = 0; i < c->line_count; i++) {
		const struct case_line *line = &c->lines[i];
		const char *subject = findings_text(sink, "what %sresumes consumed", line->what);
		uint64_t known = 0, total = line->judged.list.count;
		size_t first = line->from_part > 0 ? line->from_part - 1 : 0;
		const char *why = NULL;

		total = first < total ? total - first : 0;
		if (total == 0) {
			cover_not_checked(cover, "data-resume", subject, "there is no resume");
			continue;
		}
		for (size_t k = first; k < first + total; k++) {
			const struct seam_judgement *j = &line->judged.list.items[k];
			tell_seam(sink, line, k);
			known += !j->why;
			why = j->why ? j->why : why;
		}
		cover_ran(cover, "data-resume", subject, "resumes", known, total, why);
	}
}

const struct rule rule_data_resume = {
	.name = "data-resume",
	.subject = "what resumes consumed",
	.needs = NEEDS_LEDGER,
	.run = run_data_resume,
};
