/* SPDX-License-Identifier: MIT */
/* Family P: where does the data go on? */
#include <math.h>

#include "audit/case.h"
#include "base/text.h"

static const char *count_text(struct findings *sink, double n)
{
	struct strbuf b;

	strbuf_init(&b, 64);
	text_add_rounded(&b, n, 9);
	const char *text = findings_text(sink, "%s", strbuf_text(&b));
	strbuf_release(&b);
	return text;
}

static bool has_position(const struct state *s)
{
	return state_fact(s, FACT_POSITION) || state_fact(s, FACT_BATCH_IN_EPOCH) || state_fact(s, FACT_SAMPLES);
}

/* The framework starts the epoch's data again, although updates of the epoch are behind. */
static void restart_finding(struct audit_case *c, struct findings *sink, const char *why, enum severity severity,
	double done, double length)
{
	struct state *s = c->current;
	int64_t accumulation = 1;

	state_int(s, FACT_ACCUMULATION, &accumulation);
	if (accumulation < 1)
		accumulation = 1;
	double batches = done * (double)accumulation;
	struct finding *f = finding_add(sink, FINDING_P101,
		"%s batches per rank: the epoch's data would start again from the top", count_text(sink, batches));
	f->severity = severity;
	const struct fact *where = state_fact(s, FACT_IGNORE_DATA_SKIP);
	place_fact(sink, f, s, where ? where : state_fact(s, FACT_STEP));
	f->place.step_first = f->place.step_last = case_step(c);
	f->cause = why;
	f->observed = quantity_count(0);
	f->expected = quantity_real(batches);
	f->unit = "batches into the epoch";
	f->meaning = findings_text(sink,
		"%s of %s updates of the epoch are done; the loss will look too low for %s batches, then step up to its true level",
		count_text(sink, done), count_text(sink, length), count_text(sink, batches));
}

static void run_position_saved(struct audit_case *c, struct findings *sink, struct coverage *cover)
{
	static const char *const name = "position-saved", *const subject = "data position";
	struct state *s = c->current;
	double done, length;
	bool ignore = false, replacement = false;

	state_bool(s, FACT_IGNORE_DATA_SKIP, &ignore);
	state_bool(s, FACT_REPLACEMENT, &replacement);
	bool placed = epoch_place(s, &done, &length);
	if (!state_fact(s, FACT_STEP) && !state_fact(s, FACT_EPOCH) && !has_position(s)) {
		cover_not_checked(cover, name, subject, "no step, epoch or position is saved");
		return;
	}
	if (s->profile->position == POSITION_RECOMPUTED) {
		if (!placed) {
			cover_not_checked(cover, name, subject, "the length of an epoch is not known");
			return;
		}
		if (ignore && done > 0)
			restart_finding(c, sink, "ignore_data_skip is set: the Trainer does not skip what was read",
				SEVERITY_ERROR, done, length);
		cover_ran(cover, name, subject, "counters", 1, 1, NULL);
		return;
	}
	if (replacement || has_position(s)) {
		cover_ran(cover, name, subject, "positions", 1, 1, NULL);
		return;
	}
	if (!placed) {
		if (!c->inexact)
			c->inexact = "no data position is saved, and how long an epoch is is not known";
		cover_not_checked(cover, name, subject,
			"no position is saved, and without the length of an epoch nothing says where in one it is");
		return;
	}
	if (done > 0)
		restart_finding(c, sink, "no data position is saved; unless the script skips what was read",
			s->profile->position == POSITION_RESTARTS ? SEVERITY_ERROR : SEVERITY_WARNING, done, length);
	if (done > 0 && !c->inexact)
		c->inexact = "no data position is saved inside an epoch";
	cover_ran(cover, name, subject, "counters", 1, 1, NULL);
}

const struct rule rule_position_saved = {
	.name = "position-saved",
	.subject = "data position",
	.run = run_position_saved,
};

/* The fact of another state under the same key, rank and path. */
static const struct fact *same_fact(const struct state *s, const struct fact *of)
{
	for (size_t i = 0; i < s->facts.count; i++) {
		const struct fact *f = &s->facts.items[i];
		if (f->key == of->key && f->rank == of->rank && f->group == of->group && strcmp(f->path, of->path) == 0)
			return f;
	}
	return NULL;
}

static void position_finding(struct audit_case *c, struct findings *sink, enum finding_code code,
	const char *message, const struct fact *f, double before, double after)
{
	struct finding *found = finding_add(sink, code, "%s", message);

	place_fact(sink, found, c->current, f);
	found->place.step_last = case_step(c);
	state_int(c->previous, FACT_STEP, &found->place.step_first);
	found->observed = quantity_real(after);
	found->expected = quantity_text(findings_text(sink, "more than %s", count_text(sink, before)));
}

/* Samples a step, held against the batch that the settings give. */
static void check_samples(struct audit_case *c, struct findings *sink)
{
	struct state *s = c->current;
	int64_t samples, step, batch, accumulation = 1, world = s->world > 0 ? s->world : 1;

	if (!state_int(s, FACT_SAMPLES, &samples) || !state_int(s, FACT_STEP, &step) || step <= 0 || samples <= 0 ||
		(!state_int(s, FACT_GLOBAL_BATCH, &batch) && !state_int(s, FACT_MICRO_BATCH, &batch)) || batch <= 0)
		return;
	state_int(s, FACT_ACCUMULATION, &accumulation);
	state_int(s, FACT_WORLD_SIZE, &world);
	/* What a setting called "batch size" counts is a script's own affair. */
	double one = (double)samples / ((double)step * (double)batch);
	double known[] = {1, (double)accumulation, (double)world, (double)accumulation * (double)world};
	for (size_t i = 0; i < 4; i++)
		if (known[i] > 0 && fabs(one / known[i] - 1) < 0.01)
			return;
	struct finding *f = finding_add(sink, FINDING_P102,
		"%lld samples consumed at step %lld do not fit a batch of %lld", (long long)samples, (long long)step,
		(long long)batch);
	place_fact(sink, f, s, state_fact(s, FACT_SAMPLES));
	f->observed = quantity_count(samples);
	f->expected = quantity_count(step * batch * accumulation * world);
	f->unit = "samples";
}

static void run_position_moves(struct audit_case *c, struct findings *sink, struct coverage *cover)
{
	static const enum fact_key keys[] = {FACT_POSITION, FACT_BATCH_IN_EPOCH, FACT_SAMPLES, FACT_TOKENS};
	struct state *s = c->current;
	uint64_t compared = 0;
	int64_t steps = 0;
	double epoch_before = 0, epoch_after = 0;

	check_samples(c, sink);
	if (!case_steps_between(c, &steps) || steps <= 0) {
		cover_not_checked(cover, "position-moves", "data position since the previous checkpoint",
			"the steps between the two are not known");
		return;
	}
	bool epochs = state_real(c->previous, FACT_EPOCH, &epoch_before) && state_real(s, FACT_EPOCH, &epoch_after);
	bool same_epoch = epochs && floor(epoch_before) == floor(epoch_after);
	for (size_t i = 0; i < s->facts.count; i++) {
		const struct fact *f = &s->facts.items[i];
		bool wanted = false;
		for (size_t k = 0; k < sizeof keys / sizeof keys[0]; k++)
			wanted |= f->key == keys[k];
		const struct fact *before = wanted ? same_fact(c->previous, f) : NULL;
		double x, y;
		if (!before || !fact_to_double(before, &x) || !fact_to_double(f, &y))
			continue;
		compared++;
		bool total = f->key == FACT_SAMPLES || f->key == FACT_TOKENS;
		const char *what = findings_text(sink, "%s", fact_rows[f->key].name);
		if (y == x && (total || same_epoch))
			position_finding(c, sink, FINDING_P104,
				findings_text(sink, "%s is still %s after %lld more steps", what, count_text(sink, y),
					(long long)steps), f, x, y);
		else if (y < x && (total || same_epoch))
			position_finding(c, sink, FINDING_P103,
				findings_text(sink, "%s moved backwards, from %s to %s, over %lld steps", what,
					count_text(sink, x), count_text(sink, y), (long long)steps), f, x, y);
	}
	if (compared == 0)
		cover_not_checked(cover, "position-moves", "data position since the previous checkpoint",
			"%s", s->profile->position == POSITION_RECOMPUTED ? s->profile->position_note :
			"no position is saved in both");
	else
		cover_ran(cover, "position-moves", "data position since the previous checkpoint", "positions", compared,
			compared, NULL);
}

const struct rule rule_position_moves = {
	.name = "position-moves",
	.subject = "data position since the previous checkpoint",
	.needs = NEEDS_PREVIOUS,
	.run = run_position_moves,
};

/* ---- settings that decide the order ----------------------------------------------------------- */

static bool changed(const struct audit_case *c, enum fact_key key, const struct fact **before,
	const struct fact **after)
{
	*before = state_fact(c->previous, key);
	*after = state_fact(c->current, key);
	return *before && *after && !fact_equal(*before, *after);
}

static const char *value_text(struct findings *sink, const struct fact *f)
{
	struct strbuf b;

	strbuf_init(&b, 400);
	fact_print(&b, f);
	const char *text = findings_text(sink, "%s", strbuf_text(&b));
	strbuf_release(&b);
	return text;
}

static struct finding *change_finding(struct audit_case *c, struct findings *sink, enum finding_code code,
	const char *name, const struct fact *before, const struct fact *after)
{
	struct finding *f = finding_add(sink, code, "%s changed from %s to %s", name, value_text(sink, before),
		value_text(sink, after));
	double x, y;

	place_fact(sink, f, c->current, after);
	if (fact_to_double(before, &x) && fact_to_double(after, &y) && before->type != FACT_BOOL) {
		f->observed = quantity_real(y);
		f->expected = quantity_real(x);
	} else {
		f->observed = quantity_text(value_text(sink, after));
		f->expected = quantity_text(value_text(sink, before));
	}
	return f;
}

/* Updates take another number of samples, or the same number split otherwise. */
static void check_geometry(struct audit_case *c, struct findings *sink)
{
	static const enum fact_key keys[] = {FACT_MICRO_BATCH, FACT_ACCUMULATION, FACT_WORLD_SIZE};
	const struct fact *before, *after;
	double x = 1, y = 1, v;
	bool any = false;

	for (size_t i = 0; i < 3; i++) {
		if (fact_to_double(state_fact(c->previous, keys[i]), &v))
			x *= v;
		if (fact_to_double(state_fact(c->current, keys[i]), &v))
			y *= v;
		any |= changed(c, keys[i], &before, &after);
	}
	if (!any)
		return;
	for (size_t i = 0; i < 3; i++) {
		if (!changed(c, keys[i], &before, &after))
			continue;
		struct finding *f = change_finding(c, sink, FINDING_P111, fact_rows[keys[i]].name, before, after);
		if (x == y)
			f->severity = SEVERITY_INFO;
		f->unit = fact_rows[keys[i]].unit;
		f->meaning = x == y ? "an update still takes as many samples as before"
			: findings_text(sink, "an update takes %s samples where it took %s: the saved step no longer "
				"says where in the data the run is", count_text(sink, y), count_text(sink, x));
	}
}

static void run_data_settings(struct audit_case *c, struct findings *sink, struct coverage *cover)
{
	static const enum fact_key seeds[] = {FACT_SEED, FACT_DATA_SEED};
	static const enum fact_key compared_keys[] = {FACT_SEED, FACT_DATA_SEED, FACT_MICRO_BATCH, FACT_ACCUMULATION,
		FACT_WORLD_SIZE, FACT_DATASET_SIZE, FACT_STEPS_PER_EPOCH};
	const struct fact *before, *after;
	uint64_t known = 0;

	for (size_t i = 0; i < 2; i++) {
		if (!changed(c, seeds[i], &before, &after))
			continue;
		struct finding *f = change_finding(c, sink, FINDING_P110,
			i ? "the seed of the data order" : "the seed", before, after);
		f->meaning = "the order that the saved position points into is not the one that was interrupted";
	}
	check_geometry(c, sink);
	if (changed(c, FACT_DATASET_SIZE, &before, &after)) {
		struct finding *f = change_finding(c, sink, FINDING_P109, "the size of the data set", before, after);
		f->unit = "samples";
	}
	for (size_t i = 0; i < sizeof compared_keys / sizeof compared_keys[0]; i++)
		known += state_fact(c->previous, compared_keys[i]) && state_fact(c->current, compared_keys[i]);
	if (known == 0)
		cover_not_checked(cover, "data-settings", "settings that decide the data order",
			"no seed, batch or data set size is saved in both");
	else
		cover_ran(cover, "data-settings", "settings that decide the data order", "settings", known, known, NULL);
}

const struct rule rule_data_settings = {
	.name = "data-settings",
	.subject = "settings that decide the data order",
	.needs = NEEDS_PREVIOUS,
	.run = run_data_settings,
};
