/* SPDX-License-Identifier: MIT */
/* Family P: where does the data go on? */
#include <math.h>
#include <stdlib.h>

#include "audit/case.h"
#include "base/text.h"

#define DIGITS 9 /* significant ones, of numbers in messages */

/* Whether something is saved that the data can go on from. A framework's own batch count is not,
 * where it restarts. */
static bool has_position(const struct state *s)
{
	return state_fact(s, FACT_POSITION) || state_fact(s, FACT_SAMPLES) ||
	       (state_fact(s, FACT_BATCH_IN_EPOCH) && s->profile->position != POSITION_RESTARTS);
}

bool case_batches_behind(const struct state *s, double *batches)
{
	double done, length;
	int64_t accumulation = 1, counted;
	bool ended = false;

	if (state_bool(s, FACT_EPOCH_END, &ended) && ended) {
		*batches = 0;
		return true;
	}
	if (s->profile->position == POSITION_RESTARTS &&
		state_real(s, FACT_BATCH_IN_EPOCH, batches))
		return true;
	/* A script that does not use the framework's accumulation leaves its count at zero. */
	if (state_int(s, FACT_MICRO_STEP, &counted) && counted > 0) {
		*batches = (double)counted;
		return true;
	}
	if (!epoch_place(s, &done, &length))
		return false;
	state_int(s, FACT_ACCUMULATION, &accumulation);
	*batches = done * (double)(accumulation < 1 ? 1 : accumulation);
	return true;
}

/* Why a resume would start the epoch again: the framework, its version, and what it does. */
static const char *restart_cause(struct findings *sink, const struct state *s)
{
	const char *version = state_fact_text(s, FACT_FRAMEWORK_VERSION);

	if (s->profile->fallback)
		return "no data position is saved; unless the script skips what was read";
	return findings_text(sink, "no data position is saved; %s%s%s %s", s->profile->title,
		version ? " " : "", version ? findings_escaped(sink, slice_of(version)) : "",
		s->profile->position_note);
}

/* Whether no step is left of what was planned. */
static bool is_at_end(const struct state *s)
{
	int64_t step, last;

	return state_int(s, FACT_STEP, &step) && state_int(s, FACT_MAX_STEPS, &last) && last > 0 &&
	       step >= last;
}

/* The framework starts the epoch's data again, although updates of the epoch are behind. */
static void restart_finding(struct audit_case *c, struct findings *sink, const char *why,
	enum severity severity, double batches)
{
	struct state *s = c->current;
	double done, length;

	struct finding *f = finding_add(sink, FINDING_P101,
		"%s batches per rank: the epoch's data would start again from the top",
		rounded_text(sink, batches, DIGITS));
	f->severity = severity;
	const struct fact *where = state_fact(s, FACT_IGNORE_DATA_SKIP);
	if (where)
		f->remedy =
			"Relaunch with ignore_data_skip=False; the Trainer then passes over what was read.";
	else if (s->profile->position_remedy)
		f->remedy = s->profile->position_remedy;
	static const enum fact_key shown[] = {
		FACT_BATCH_IN_EPOCH, FACT_MICRO_STEP, FACT_STEP, FACT_EPOCH};
	for (size_t i = 0; !where && i < sizeof shown / sizeof shown[0]; i++)
		where = state_fact(s, shown[i]);
	if (where)
		place_fact(sink, f, s, where);
	else
		place_file(sink, f, s, NO_FILE);
	f->place.step_first = f->place.step_last = case_step(c);
	f->cause = why;
	f->observed = quantity_count(0);
	f->expected = quantity_real(batches);
	f->unit = "batches into the epoch";
	if (is_at_end(s)) {
		f->severity = SEVERITY_WARNING;
		f->meaning =
			"the run is at its planned end: this matters only if it is made longer";
		return;
	}
	const char *loss = findings_text(sink,
		"the loss will look too low for %s batches, then step up to its true level",
		rounded_text(sink, batches, DIGITS));
	f->meaning = epoch_place(s, &done, &length) && done > 0
			     ? findings_text(sink, "%s of %s updates of the epoch are done; %s",
				       rounded_text(sink, done, DIGITS),
				       rounded_text(sink, length, DIGITS), loss)
			     : loss;
}

/*
 * Updates since the start, as epoch and batch in the epoch give them, against the step. Scripts
 * count epochs from 0 or 1 and batches before or after the update, so each reading that fits is
 * accepted.
 */
static void check_batches(struct audit_case *c, struct findings *sink)
{
	struct state *s = c->current;
	const struct fact *f = state_fact(s, FACT_BATCH_IN_EPOCH);
	int64_t step, epoch, batch, length, accumulation = 1;

	if (!f || f->rank > 0 || !state_int(s, FACT_BATCH_IN_EPOCH, &batch) ||
		!state_int(s, FACT_STEP, &step) || !state_int(s, FACT_EPOCH, &epoch) ||
		!state_int(s, FACT_STEPS_PER_EPOCH, &length) || length <= 0)
		return;
	state_int(s, FACT_ACCUMULATION, &accumulation);
	if (accumulation < 1 || epoch < 0 || epoch > INT32_MAX || batch < 0 || batch > INT32_MAX ||
		length > INT32_MAX || accumulation > INT32_MAX)
		return;
	for (int64_t e = epoch - 1; e <= epoch; e++)
		for (int64_t b = batch - 1; b <= batch + 1; b++)
			for (int64_t unit = 1; unit <= accumulation;
				unit += accumulation > 1 ? accumulation - 1 : 1)
				if (llabs(e * length * unit + b - step * unit) < unit)
					return;
	struct finding *found = finding_add(sink, FINDING_P102,
		"the position (epoch %lld, batch %lld) does not belong to step %lld",
		(long long)epoch, (long long)batch, (long long)step);
	place_fact(sink, found, s, f);
	found->place.step_first = found->place.step_last = step;
	found->observed = quantity_count(epoch * length * accumulation + batch);
	found->expected = quantity_count(step * accumulation);
	found->unit = "batches";
	found->meaning = findings_text(sink,
		"an epoch has %lld updates: part of the data was read again, or passed over",
		(long long)length);
}

/* The Trainer's fractional epoch: with one batch an update, step / epoch is a whole number unless
 * an epoch restarted. */
static void check_epoch_fraction(struct audit_case *c, struct findings *sink)
{
	struct state *s = c->current;
	double epoch, step, length;
	int64_t accumulation = 0;

	if (s->profile->position != POSITION_RECOMPUTED || state_fact(s, FACT_EPOCH_AGAIN) ||
		!state_int(s, FACT_ACCUMULATION, &accumulation) || accumulation != 1 ||
		!state_real(s, FACT_EPOCH, &epoch) || !state_real(s, FACT_STEP, &step) ||
		!state_real(s, FACT_STEPS_PER_EPOCH, &length) || epoch <= 0 ||
		fabs(epoch * length - step) < 0.01 * length)
		return;
	struct finding *f = finding_add(sink, FINDING_P102,
		"epoch %s at step %s does not fit %s updates in an epoch",
		rounded_text(sink, epoch, DIGITS), rounded_text(sink, step, DIGITS),
		rounded_text(sink, length, DIGITS));
	f->severity = SEVERITY_WARNING;
	place_fact(sink, f, s, state_fact(s, FACT_EPOCH));
	f->observed = quantity_real(epoch * length);
	f->expected = quantity_real(step);
	f->unit = "updates";
	f->cause = "an epoch's data was started again at an earlier resume, or the batch changed";
}

/*
 * An epoch that went back in the checkpoint's own log. It fails what was trained since the
 * predecessor; what happened earlier is in the weights of both.
 */
static void check_epoch_again(struct audit_case *c, struct findings *sink)
{
	struct state *s = c->current;
	const struct fact *f = state_fact(s, FACT_EPOCH_AGAIN);
	double updates;
	int64_t at, before, step = case_step(c);

	if (!f || !fact_to_double(f, &updates) || !state_int(s, FACT_EPOCH_AGAIN_STEP, &at))
		return;
	struct finding *found = finding_add(sink, FINDING_P103,
		"the resume behind step %s set the epoch back by %s updates",
		rounded_text(sink, (double)at, DIGITS), rounded_text(sink, updates, DIGITS));
	if (!c->previous || !state_int(c->previous, FACT_STEP, &before) || at < before)
		found->severity = SEVERITY_WARNING;
	place_fact(sink, found, s, f);
	found->place.step_first = at;
	found->place.step_last = step;
	found->meaning = "what they had read of the epoch came again, in the same order or another";
	found->cause =
		"in the checkpoint's own log the epoch goes back there, and the step does not";
}

/* Whether a count of samples may start again with each epoch: its name does not say that it is of
 * the whole run. */
static bool counts_inside(const struct fact *f)
{
	return f && !strstr(f->path, "consumed") && !strstr(f->path, "global") &&
	       !strstr(f->path, "total");
}

/* Samples a step, held against the batch that the settings give. */
static void check_samples(struct audit_case *c, struct findings *sink)
{
	struct state *s = c->current;
	int64_t samples, step, batch, accumulation = 1, world = s->world > 0 ? s->world : 1;

	if (!state_int(s, FACT_SAMPLES, &samples) || !state_int(s, FACT_STEP, &step) || step <= 0 ||
		samples <= 0 ||
		(!state_int(s, FACT_GLOBAL_BATCH, &batch) &&
			!state_int(s, FACT_MICRO_BATCH, &batch)) ||
		batch <= 0)
		return;
	state_int(s, FACT_ACCUMULATION, &accumulation);
	state_int(s, FACT_WORLD_SIZE, &world);
	/* What a setting called "batch size" counts is a script's own affair. */
	/* Samples of the running epoch alone, or a step that itself counts samples. */
	double epoch;
	if (samples == step ||
		(counts_inside(state_fact(s, FACT_SAMPLES)) && state_real(s, FACT_EPOCH, &epoch) &&
			epoch > 0 && (double)samples < (double)step * (double)batch))
		return;
	double one = (double)samples / ((double)step * (double)batch);
	double known[] = {
		1, (double)accumulation, (double)world, (double)accumulation * (double)world};
	for (size_t i = 0; i < 4; i++)
		if (known[i] > 0 && fabs(one / known[i] - 1) < 0.01)
			return;
	struct finding *f = finding_add(sink, FINDING_P102,
		"%lld samples consumed at step %lld do not fit a batch of %lld", (long long)samples,
		(long long)step, (long long)batch);
	place_fact(sink, f, s, state_fact(s, FACT_SAMPLES));
	f->observed = quantity_count(samples);
	f->expected = quantity_count(step * batch * accumulation * world);
	f->unit = "samples";
}

/* What a saved position counts, where its name tells. */
enum position_unit {
	UNIT_UNKNOWN,
	UNIT_SAMPLES,
	UNIT_BATCHES, /* of one rank, in the running epoch */
};

static enum position_unit position_unit(const struct fact *f)
{
	static const char *const samples[] = {"num_samples_yielded", "samples_yielded",
		"sample_in_epoch", "sampler_position", "position"};
	/* A StatefulDataLoader's: what it gave out since its iterator began. */
	static const char *const batches[] = {
		"_num_yielded", "_sampler_iter_yielded", "_snapshot_step"};
	const char *name = path_last_name(f->path);

	if (f->key == FACT_BATCH_IN_EPOCH)
		return UNIT_BATCHES;
	if (f->key != FACT_POSITION)
		return UNIT_UNKNOWN;
	for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++)
		if (strcmp(name, samples[i]) == 0)
			return UNIT_SAMPLES;
	/* A validation loader has another length. */
	for (size_t i = 0; i < sizeof batches / sizeof batches[0]; i++)
		if (strcmp(name, batches[i]) == 0 && !strstr(f->path, "val") &&
			!strstr(f->path, "test"))
			return UNIT_BATCHES;
	return UNIT_UNKNOWN;
}

/* Positions inside one epoch, held against what the epoch has: samples, or batches of a rank. */
static void check_beyond_end(struct audit_case *c, struct findings *sink)
{
	struct state *s = c->current;
	struct epoch_length length = {0};
	int64_t size = 0;

	state_int(s, FACT_DATASET_SIZE, &size);
	epoch_length(s, &length);
	for (size_t i = 0; i < s->facts.count; i++) {
		const struct fact *f = &s->facts.items[i];
		enum position_unit unit = position_unit(f);
		int64_t end = unit == UNIT_SAMPLES   ? size
			      : unit == UNIT_BATCHES ? length.batches_most
						     : 0;
		double at;
		if (end <= 0 || !fact_to_double(f, &at) || at <= (double)end)
			continue;
		const char *what = unit == UNIT_SAMPLES ? "samples" : "batches";
		struct finding *found =
			finding_add(sink, FINDING_P105, "the data position is %s of %lld %s",
				rounded_text(sink, at, DIGITS), (long long)end, what);
		place_fact(sink, found, s, f);
		found->observed = quantity_real(at);
		found->expected = quantity_count(end);
		found->unit = what;
		found->cause =
			"the counter was not taken modulo the epoch, or belongs to a larger data set";
	}
}

/* Batches of one rank in an epoch; false where that is not known for sure. */
static bool batches_in_epoch(const struct state *s, int64_t *batches)
{
	int64_t updates, accumulation = 1;

	if (state_int(s, FACT_BATCHES_PER_EPOCH, batches))
		return true;
	state_int(s, FACT_ACCUMULATION, &accumulation);
	return state_int(s, FACT_STEPS_PER_EPOCH, &updates) && updates > 0 && accumulation > 0 &&
	       !__builtin_mul_overflow(updates, accumulation, batches);
}

/*
 * A loader that gave out its epoch's last batch and has not noticed: it has nothing left for
 * whoever resumes it. One that noticed begins the next epoch.
 */
static void check_exhausted(struct audit_case *c, struct findings *sink)
{
	struct state *s = c->current;
	int64_t batches;

	if (!batches_in_epoch(s, &batches))
		return;
	for (size_t i = 0; i < s->facts.count; i++)
		if (s->facts.items[i].key == FACT_EPOCH_END && s->facts.items[i].i)
			return;
	for (size_t i = 0; i < s->facts.count; i++) {
		const struct fact *f = &s->facts.items[i];
		double at;
		if (f->key != FACT_POSITION || position_unit(f) != UNIT_BATCHES ||
			!fact_to_double(f, &at) || at != (double)batches)
			continue;
		struct finding *found = finding_add(sink, FINDING_P106,
			"the loader has given out %lld of %lld batches: nothing is left of its epoch",
			(long long)batches, (long long)batches);
		place_fact(sink, found, s, f);
		found->place.step_first = found->place.step_last = case_step(c);
		found->observed = quantity_real(at);
		found->expected = quantity_text(findings_text(
			sink, "less than %lld, or a finished iterator", (long long)batches));
		found->meaning =
			"right where the script resumes this epoch and ends it at once; one that counts the next "
			"epoch from its step trains none of it";
		return;
	}
}

/* A place in a shuffled order that cannot be made again. */
static void check_order_saved(struct audit_case *c, struct findings *sink)
{
	struct state *s = c->current;
	bool shuffled = false;

	if (!state_bool(s, FACT_SHUFFLE, &shuffled) || !shuffled || !has_position(s) ||
		state_fact(s, FACT_SEED) || state_fact(s, FACT_DATA_SEED) || s->streams.count > 0)
		return;
	struct finding *f = finding_add(sink, FINDING_P107,
		"a data position is saved, but neither the seed nor the generator of the shuffled order");
	place_fact(sink, f, s, state_fact(s, FACT_SHUFFLE));
}

/* One rank's loader state, which all ranks load. */
static const char *check_one_rank(struct audit_case *c, struct findings *sink)
{
	struct state *s = c->current;
	const struct fact *f = state_fact(s, FACT_POSITION);
	int32_t world = state_world(s);

	if (!s->profile->position_of_one_rank || !f)
		return NULL;
	if (world <= 1)
		return world == 1 ? NULL : "it is one rank's; whether there were more is not known";
	struct finding *found = finding_add(
		sink, FINDING_P108, "the loader state of 1 of %d ranks is saved", world);
	found->severity = SEVERITY_WARNING;
	place_fact(sink, found, s, f);
	found->place.step_first = found->place.step_last = case_step(c);
	found->observed = quantity_count(1);
	found->expected = quantity_count(world);
	found->unit = "ranks";
	found->cause = findings_text(
		sink, "%s saves one state, and every rank loads it", s->profile->title);
	found->meaning =
		"right only where the state holds nothing of a rank's own, such as a worker's or a buffer's content";
	return NULL;
}

static void run_position_saved(struct audit_case *c, struct findings *sink, struct coverage *cover)
{
	static const char *const name = "position-saved", *const subject = "data position";
	struct state *s = c->current;
	double batches = 0;
	bool ignore = false, replacement = false;
	enum run_resume told = c->run ? c->run->on_resume : RUN_RESUME_UNKNOWN;

	check_batches(c, sink);
	check_epoch_fraction(c, sink);
	check_epoch_again(c, sink);
	check_samples(c, sink);
	check_beyond_end(c, sink);
	check_exhausted(c, sink);
	check_order_saved(c, sink);
	state_bool(s, FACT_IGNORE_DATA_SKIP, &ignore);
	state_bool(s, FACT_REPLACEMENT, &replacement);
	bool placed = case_batches_behind(s, &batches);
	if (!placed && !state_fact(s, FACT_STEP) && !state_fact(s, FACT_EPOCH) &&
		!has_position(s)) {
		cover_not_checked(cover, name, subject, "no step, epoch or position is saved");
		return;
	}
	if (s->profile->position == POSITION_RECOMPUTED) {
		if (!placed) {
			cover_not_checked(
				cover, name, subject, "the length of an epoch is not known");
			return;
		}
		if (ignore && batches > 0)
			restart_finding(c, sink,
				"ignore_data_skip is set: the Trainer does not skip what was read",
				SEVERITY_ERROR, batches);
		cover_ran(cover, name, subject, "counters", 1, 1, NULL);
		return;
	}
	if (replacement || has_position(s) || told == RUN_RESUME_SKIPS) {
		cover_ran(cover, name, subject, "positions", 1, 1, check_one_rank(c, sink));
		return;
	}
	if (!placed) {
		if (!c->inexact)
			c->inexact =
				"no data position is saved, and the length of an epoch is not known";
		cover_not_checked(cover, name, subject,
			c->run ? "no position is saved, and the length of an epoch is not known; the run file can say it "
				 "(steps-per-epoch), or that the script skips (data = skips)"
			       : "no position is saved, and the length of an epoch is not known; a run file can say it "
				 "(reprise init)");
		return;
	}
	if (batches > 0)
		restart_finding(c, sink,
			told == RUN_RESUME_RESTARTS
				? "the run file says that a resume starts the epoch's data again"
				: restart_cause(sink, s),
			s->profile->position == POSITION_RESTARTS || told == RUN_RESUME_RESTARTS
				? SEVERITY_ERROR
				: SEVERITY_WARNING,
			batches);
	if (batches > 0 && !c->inexact)
		c->inexact = "no data position is saved inside an epoch";
	cover_ran(cover, name, subject, "counters", 1, 1, NULL);
}

const struct rule rule_position_saved = {
	.name = "position-saved",
	.subject = "data position",
	.run = run_position_saved,
};

static void position_finding(struct audit_case *c, struct findings *sink, enum finding_code code,
	const char *message, const struct fact *f, double before, double after)
{
	struct finding *found = finding_add(sink, code, "%s", message);

	place_fact(sink, found, c->current, f);
	found->place.step_last = case_step(c);
	state_int(c->previous, FACT_STEP, &found->place.step_first);
	found->observed = quantity_real(after);
	found->expected = quantity_text(
		findings_text(sink, "more than %s", rounded_text(sink, before, DIGITS)));
}

static void run_position_moves(struct audit_case *c, struct findings *sink, struct coverage *cover)
{
	static const enum fact_key keys[] = {
		FACT_POSITION, FACT_BATCH_IN_EPOCH, FACT_SAMPLES, FACT_TOKENS};
	struct state *s = c->current;
	uint64_t compared = 0;
	int64_t steps = 0;
	double epoch_before = 0, epoch_after = 0;

	if (!case_steps_between(c, &steps) || steps <= 0) {
		cover_not_checked(cover, "position-moves",
			"data position since the previous checkpoint",
			"the steps between the two are not known");
		return;
	}
	bool epochs = state_real(c->previous, FACT_EPOCH, &epoch_before) &&
		      state_real(s, FACT_EPOCH, &epoch_after);
	bool same_epoch = epochs && floor(epoch_before) == floor(epoch_after);
	/* After whole epochs the same place in the epoch is right; where an epoch's length is not
	 * known it may be. */
	int64_t length;
	bool ended = false, ended_before = false;
	state_bool(s, FACT_EPOCH_END, &ended);
	state_bool(c->previous, FACT_EPOCH_END, &ended_before);
	bool whole_epochs = (ended && ended_before) ||
			    !state_int(s, FACT_STEPS_PER_EPOCH, &length) || length <= 0 ||
			    steps % length == 0;
	for (size_t i = 0; i < s->facts.count; i++) {
		const struct fact *f = &s->facts.items[i];
		bool wanted = false;
		for (size_t k = 0; k < sizeof keys / sizeof keys[0]; k++)
			wanted |= f->key == keys[k];
		const struct fact *before = wanted ? state_same_fact(c->previous, s, f) : NULL;
		double x, y;
		if (!before || !fact_to_double(before, &x) || !fact_to_double(f, &y))
			continue;
		compared++;
		bool total =
			(f->key == FACT_SAMPLES && (!counts_inside(f) || !epochs || same_epoch)) ||
			f->key == FACT_TOKENS;
		/* An update takes a batch at the least, so inside one epoch the batches keep up
		 * with the steps. */
		if (f->key == FACT_BATCH_IN_EPOCH && same_epoch && y > x && y - x < (double)steps) {
			struct finding *found = finding_add(sink, FINDING_P102,
				"%s moved by %s over %s of one epoch", fact_rows[f->key].name,
				rounded_text(sink, y - x, DIGITS),
				counted_text(sink, (uint64_t)steps, "step"));
			place_fact(sink, found, s, f);
			found->place.step_last = case_step(c);
			state_int(c->previous, FACT_STEP, &found->place.step_first);
			found->observed = quantity_real(y - x);
			found->expected = quantity_text(
				findings_text(sink, "at least %lld", (long long)steps));
			found->unit = "batches";
			found->cause = "the epoch's data was started again in between";
			continue;
		}
		const char *what = findings_text(sink, "%s", fact_rows[f->key].name);
		if (y == x && (total || same_epoch || !whole_epochs))
			position_finding(c, sink, FINDING_P104,
				findings_text(sink, "%s is still %s after %s", what,
					rounded_text(sink, y, DIGITS),
					counted_text(sink, (uint64_t)steps, "more step")),
				f, x, y);
		else if (y < x && (total || same_epoch))
			position_finding(c, sink, FINDING_P103,
				findings_text(sink, "%s moved backwards, from %s to %s, over %s",
					what, rounded_text(sink, x, DIGITS),
					rounded_text(sink, y, DIGITS),
					counted_text(sink, (uint64_t)steps, "step")),
				f, x, y);
	}
	/* A framework that counts its position from the step has none that could stand still. */
	if (compared == 0 && s->profile->position != POSITION_RECOMPUTED)
		cover_not_checked(cover, "position-moves",
			"data position since the previous checkpoint",
			"no position is saved in both");
	else
		cover_ran(cover, "position-moves", "data position since the previous checkpoint",
			"positions", compared, compared, NULL);
}

const struct rule rule_position_moves = {
	.name = "position-moves",
	.subject = "data position since the previous checkpoint",
	.needs = NEEDS_PREVIOUS,
	.run = run_position_moves,
};

/* ---- settings that decide the order -----------------------------------------------------------
 */

static bool changed(const struct audit_case *c, enum fact_key key, const struct fact **before,
	const struct fact **after)
{
	*before = state_fact(c->previous, key);
	*after = state_fact(c->current, key);
	/* What was told is told of both, and shows no change. */
	return *before && *after && (*before)->how < HOW_TOLD && (*after)->how < HOW_TOLD &&
	       !fact_equal(*before, *after);
}

static struct finding *change_finding(struct audit_case *c, struct findings *sink,
	enum finding_code code, const char *name, const struct fact *before,
	const struct fact *after)
{
	struct finding *f = finding_add(sink, code, "%s changed from %s to %s", name,
		fact_text(sink, before), fact_text(sink, after));
	double x, y;

	place_fact(sink, f, c->current, after);
	if (fact_to_double(before, &x) && fact_to_double(after, &y) && before->type != FACT_BOOL) {
		f->observed = quantity_real(y);
		f->expected = quantity_real(x);
	} else {
		f->observed = quantity_text(fact_text(sink, after));
		f->expected = quantity_text(fact_text(sink, before));
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
		struct finding *f = change_finding(
			c, sink, FINDING_P111, fact_rows[keys[i]].name, before, after);
		if (x == y)
			f->severity = SEVERITY_INFO;
		f->unit = fact_rows[keys[i]].unit;
		f->meaning =
			x == y ? "an update still takes as many samples as before"
			       : findings_text(sink,
					 "an update takes %s samples where it took %s: the saved step no longer "
					 "says where in the data the run is",
					 rounded_text(sink, y, DIGITS),
					 rounded_text(sink, x, DIGITS));
	}
}

static void run_data_settings(struct audit_case *c, struct findings *sink, struct coverage *cover)
{
	static const enum fact_key seeds[] = {FACT_SEED, FACT_DATA_SEED};
	static const enum fact_key compared_keys[] = {FACT_SEED, FACT_DATA_SEED, FACT_MICRO_BATCH,
		FACT_ACCUMULATION, FACT_WORLD_SIZE, FACT_DATASET_SIZE, FACT_STEPS_PER_EPOCH};
	const struct fact *before, *after;
	uint64_t known = 0;

	for (size_t i = 0; i < 2; i++) {
		if (!changed(c, seeds[i], &before, &after))
			continue;
		struct finding *f = change_finding(c, sink, FINDING_P110,
			i ? "the seed of the data order" : "the seed", before, after);
		f->meaning =
			"the order that the saved position points into is not the one that was interrupted";
		/* A seed of its own that stayed keeps the order. */
		const struct fact *data_before, *data_after;
		if (i == 0 && state_fact(c->current, FACT_DATA_SEED) &&
			!changed(c, FACT_DATA_SEED, &data_before, &data_after)) {
			f->severity = SEVERITY_INFO;
			f->meaning = "the data order has a seed of its own, which did not change";
		}
	}
	check_geometry(c, sink);
	if (changed(c, FACT_DATASET_SIZE, &before, &after)) {
		struct finding *f = change_finding(
			c, sink, FINDING_P109, "the size of the data set", before, after);
		f->unit = "samples";
	}
	for (size_t i = 0; i < sizeof compared_keys / sizeof compared_keys[0]; i++)
		known += state_fact(c->previous, compared_keys[i]) &&
			 state_fact(c->current, compared_keys[i]);
	if (known == 0)
		cover_not_checked(cover, "data-settings", "settings that decide the data order",
			"no seed, batch or data set size is saved in both");
	else
		cover_ran(cover, "data-settings", "settings that decide the data order", "settings",
			known, known, NULL);
}

/*
 * Settings of the saved configuration that change the data order or the schedule, by the last part
 * of their path. Seeds, batches and optimizer groups have rules of their own.
 */
static const struct {
	const char *name, *effect;
} telling_settings[] = {
	{"learning_rate", "the schedule"},
	{"lr_scheduler_type", "the schedule"},
	{"warmup_steps", "the schedule"},
	{"warmup_ratio", "the schedule"},
	{"warmup_iters", "the schedule"},
	{"lr_decay_iters", "the schedule"},
	{"min_lr", "the schedule"},
	{"max_steps", "the schedule"},
	{"max_iters", "the schedule"},
	{"num_train_epochs", "the schedule"},
	{"num_epochs", "the schedule"},
	{"epochs", "the schedule"},
	{"optim", "the optimizer"},
	{"weight_decay", "the optimizer"},
	{"adam_beta1", "the optimizer"},
	{"adam_beta2", "the optimizer"},
	{"adam_epsilon", "the optimizer"},
	{"beta1", "the optimizer"},
	{"beta2", "the optimizer"},
	{"group_by_length", "the data order"},
	{"dataloader_drop_last", "the data order"},
	{"drop_last", "the data order"},
	{"train_sampling_strategy", "the data order"},
	{"split_batches", "the data order"},
	{"use_seedable_sampler", "the data order"},
	{"dispatch_batches", "the data order"},
	{"even_batches", "the data order"},
	{"shuffle", "the data order"},
	{"block_size", "the data order"},
	{"seq_length", "the data order"},
	{"max_seq_length", "the data order"},
};

static void run_config(struct audit_case *c, struct findings *sink, struct coverage *cover)
{
	struct state *s = c->current;
	uint64_t compared = 0;

	for (size_t i = 0; i < s->facts.count; i++) {
		const struct fact *after = &s->facts.items[i];
		const struct fact *before =
			after->key == FACT_CONFIG ? state_same_fact(c->previous, s, after) : NULL;
		if (!before)
			continue;
		compared++;
		if (fact_equal(before, after))
			continue;
		const char *name = path_last_name(after->path);
		for (size_t k = 0; k < sizeof telling_settings / sizeof telling_settings[0]; k++) {
			if (strcmp(name, telling_settings[k].name) != 0)
				continue;
			struct finding *f =
				change_finding(c, sink, FINDING_T109, name, before, after);
			f->meaning =
				findings_text(sink, "it decides %s", telling_settings[k].effect);
			if (s->profile->settings_note)
				f->cause = s->profile->settings_note;
		}
	}
	if (compared == 0)
		cover_not_checked(
			cover, "configuration", "saved configuration", "none is saved in both");
	else
		cover_ran(cover, "configuration", "saved configuration", "settings", compared,
			compared, NULL);
}

const struct rule rule_config = {
	.name = "configuration",
	.subject = "saved configuration",
	.needs = NEEDS_PREVIOUS,
	.run = run_config,
};

const struct rule rule_data_settings = {
	.name = "data-settings",
	.subject = "settings that decide the data order",
	.needs = NEEDS_PREVIOUS,
	.run = run_data_settings,
};
