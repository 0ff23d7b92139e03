/* SPDX-License-Identifier: MIT */
#include "ledger/said.h"

#include <math.h>
#include <string.h>

#include "base/scan.h"
#include "base/text.h"
#include "container/json.h"
#include "ledger/plan.h"
#include "value/value.h"

#define JSON_TEXT_MAX 65536u /* of a configuration */
#define STAGES_MAX 4096u

/* A line at hand. */
struct said {
	struct reading *r;
	struct ledger *l;
	struct slice text;
	struct val v;
	struct error *e;
	bool quiet; /* it will be read again, and what is odd in it said then */
};

static void odd(struct said *s, const char *key, const char *what)
{
	if (!s->quiet)
		ledger_note(s->l, s->r->file, s->r->line, "%s: %s", key, what);
}

/* Fields --------------------------------------------------------------------------------------- */

static bool is_said(struct val v)
{
	return v.kind != VAL_ABSENT && v.kind != VAL_NONE;
}

/* An integer, also where it is written as 32.0. */
static bool whole(struct val v, int64_t min, int64_t max, int64_t *out)
{
	double d;
	int64_t i;

	if (!val_to_i64(v, &i)) {
		if (v.kind != VAL_FLOAT || !val_to_double(v, &d) || d != floor(d) ||
			fabs(d) > 0x1p53)
			return false;
		i = (int64_t)d;
	}
	if (v.kind == VAL_BOOL || i < min || i > max)
		return false;
	*out = i;
	return true;
}

static void get_whole(struct said *s, struct val of, const char *key, int64_t min, int64_t *out)
{
	struct val v = val_get(of, key);

	if (is_said(v) && !whole(v, min, LEDGER_STEP_MAX, out))
		odd(s, key, min < 0 ? "no whole number" : "no whole number from 0 on");
}

static void get_real(struct said *s, struct val of, const char *key, double *out)
{
	struct val v = val_get(of, key);
	double d;

	if (!is_said(v))
		return;
	if (val_to_double(v, &d) && isfinite(d) && d >= 0)
		*out = d;
	else
		odd(s, key, "no number from 0 on");
}

static void get_text(struct said *s, struct val of, const char *key, const char **out)
{
	struct val v = val_get(of, key);

	if (!is_said(v))
		return;
	if (v.kind == VAL_TEXT)
		*out = ledger_keep(s->l, val_slice(v));
	else
		odd(s, key, "no text");
}

/* The text of a member of the line's object. It is valid JSON, for it has been decoded. */
static struct slice raw_member(struct slice text, const char *name)
{
	const char *p = scan_space(text.p);
	struct slice key, found = {"", 0};
	bool escaped;

	p = scan_space(p + (*p == '{'));
	while (*p == '"') {
		p = scan_string(p, &key, &escaped);
		const char *value = p ? scan_space(scan_space(p) + 1) : NULL;
		p = value ? scan_any(value) : NULL;
		if (!p)
			break;
		if (!escaped && slice_is(key, name))
			found = (struct slice){value, (size_t)(p - value)};
		p = scan_space(p);
		if (*p != ',')
			break;
		p = scan_space(p + 1);
	}
	return found;
}

/* A value as JSON text. Attempts mostly say the same again, which is then kept once. */
static const char *get_json(struct said *s, const char *key, const char *before)
{
	struct slice raw = raw_member(s->text, key);

	if (raw.n > JSON_TEXT_MAX) {
		odd(s, key, "too long to be kept");
		return "";
	}
	return slice_is(raw, before) ? before : ledger_keep(s->l, raw);
}

/* Weights of sources, added to the ledger's; how many they were. */
static uint32_t take_weight_list(struct said *s, struct val v)
{
	struct val key;
	struct error e = ERROR_INIT;
	uint32_t count = 0;

	for (uint64_t i = 0; val_is_dict(v) && i < val_count(v); i++) {
		struct val weight = val_part(v, i, &key);
		double d;
		uint32_t source;
		if (key.kind != VAL_TEXT || !val_to_double(weight, &d) || !isfinite(d) || d < 0 ||
			ledger_source_named(s->l, val_slice(key), &source, &e) < 0) {
			odd(s, "weights", "a weight that is no number from 0 on");
			continue;
		}
		struct ledger_weight *w =
			array_push(&s->l->weights, s->l->limits->memory / sizeof *w);
		if (!w)
			break;
		*w = (struct ledger_weight){.source = source, .weight = d};
		count++;
	}
	return count;
}

/* Header --------------------------------------------------------------------------------------- */

static void take_source(struct said *s, struct val name, struct val facts)
{
	uint32_t index;
	int64_t size = 0;

	if (name.kind != VAL_TEXT)
		return;
	struct error e = ERROR_INIT;
	if (ledger_source_named(s->l, val_slice(name), &index, &e) < 0) {
		odd(s, "sources", e.text);
		return;
	}
	struct ledger_source *source = &s->l->sources.items[index];
	double weight = source->weight;
	if (!val_is_dict(facts)) {
		if (val_to_double(facts, &weight) && isfinite(weight) && weight >= 0)
			source->weight = weight;
		else
			odd(s, "sources", "a source that is neither an object nor a weight");
		return;
	}
	get_whole(s, facts, "size", 0, &size);
	get_real(s, facts, "weight", &source->weight);
	get_real(s, facts, "epochs", &source->epochs);
	if (source->size > 0 && size > 0 && source->size != (uint64_t)size && !s->quiet)
		ledger_note(s->l, s->r->file, s->r->line,
			"source %s has %lld samples here, and %llu in another header, which counts",
			source->name, (long long)size, (unsigned long long)source->size);
	else if (source->size == 0)
		source->size = (uint64_t)size;
}

static void take_sampling(struct said *s, struct val dataset, struct ledger_dataset *d)
{
	static const char *const names[] = {"without", "with", "stream"};
	struct val v = val_get(dataset, "sampling");

	if (!is_said(v))
		return;
	for (uint8_t i = 0; i < sizeof names / sizeof *names; i++)
		if (val_is_text(v, names[i])) {
			d->sampling = i;
			return;
		}
	odd(s, "sampling", "none of without, with, stream");
}

static bool take_stage(struct said *s, struct val v, size_t first)
{
	struct ledger *l = s->l;
	struct ledger_stage stage = {.name = "",
		.from = -1,
		.until = INT64_MAX,
		.first_weight = (uint32_t)l->weights.count};

	get_text(s, v, "name", &stage.name);
	get_whole(s, v, "from", 0, &stage.from);
	get_whole(s, v, "until", 0, &stage.until);
	stage.weights = take_weight_list(s, val_get(v, "weights"));
	/* One that does not say where it begins does so where the one before it ends. */
	if (stage.from < 0)
		stage.from =
			l->stages.count > first ? l->stages.items[l->stages.count - 1].until : 0;
	struct ledger_stage *kept = array_push(&l->stages, STAGES_MAX);
	if (kept)
		*kept = stage;
	return kept != NULL;
}

static void take_stages(struct said *s, struct val stages)
{
	struct plan_mark mark = plan_begin(s->l);

	if (!is_said(stages))
		return;
	if (!val_is_sequence(stages))
		odd(s, "stages", "no array");
	for (uint64_t i = 0; val_is_sequence(stages) && i < val_count(stages); i++)
		if (!val_is_dict(val_at(stages, i)))
			odd(s, "stages", "a stage that is no object");
		else if (!take_stage(s, val_at(stages, i), mark.stages))
			odd(s, "stages", "too many");
	const char *wrong = plan_settle(s->l, mark);
	if (wrong)
		odd(s, "stages", wrong);
}

static int check_version(struct said *s)
{
	static const struct slice prefix = {"ledger/", 7};
	struct slice version = val_slice(val_get(s->v, "reprise"));
	uint64_t n;

	if (!slice_starts(version, prefix) ||
		!text_parse_u64(
			(struct slice){version.p + prefix.n, version.n - prefix.n}, UINT64_MAX, &n))
		return fail(s->e, RP_E_UNSUPPORTED, ERROR_NO_OFFSET,
			"its first line says that it is no sample log");
	if (n > SAID_VERSION)
		return fail(s->e, RP_E_UNSUPPORTED, ERROR_NO_OFFSET,
			"the log is of version %llu; this program reads version %d: a newer one is "
			"needed",
			(unsigned long long)n, SAID_VERSION);
	return RP_OK;
}

static int take_header(struct said *s)
{
	struct ledger_dataset d = {
		.name = "", .fingerprint = "", .unit = "", .order = "", .repeat = 1};
	struct val dataset = val_get(s->v, "dataset");
	struct val sources = val_get(dataset, "sources"), key;
	const char *run = "";
	int64_t size = 0;

	if (check_version(s) < 0)
		return s->e->status;
	get_text(s, s->v, "run", &run);
	if (s->l->run[0] == '\0')
		s->l->run = run;
	else if (run[0] && strcmp(run, s->l->run) != 0 && !s->quiet)
		ledger_note(s->l, s->r->file, s->r->line,
			"this is a log of run %s, others are of %s", run, s->l->run);
	get_text(s, dataset, "name", &d.name);
	get_text(s, dataset, "fingerprint", &d.fingerprint);
	get_text(s, dataset, "unit", &d.unit);
	get_text(s, dataset, "order", &d.order);
	get_whole(s, dataset, "size", 0, &size);
	d.size = (uint64_t)size;
	take_sampling(s, dataset, &d);
	get_real(s, s->v, "repeat", &d.repeat);
	get_real(s, dataset, "repeat", &d.repeat);
	get_whole(s, val_get(s->v, "plan"), "max_steps", 0, &s->l->max_steps);
	for (uint64_t i = 0; i < val_count(sources); i++) {
		struct val facts = val_part(sources, i, &key);
		take_source(s, key, facts);
	}
	take_stages(s, val_get(val_get(s->v, "plan"), "stages"));
	return ledger_dataset_said(s->l, &d, &s->r->dataset, s->e);
}

/* Attempt -------------------------------------------------------------------------------------- */

/* [from, to], or `to` alone; true and objects stand for any value. */
static bool take_change(
	struct said *s, struct val intent, const char *key, struct val *from, struct val *to)
{
	struct val v = val_get(intent, key);

	*from = *to = (struct val){0};
	if (!is_said(v) || (v.kind == VAL_BOOL && !v.i))
		return false;
	if (val_is_sequence(v) && val_count(v) == 2) {
		*from = val_at(v, 0);
		*to = val_at(v, 1);
	} else if (val_is_sequence(v)) {
		odd(s, key, "an intent that is neither a value, nor [from, to], nor true");
	} else if (v.kind != VAL_BOOL && !val_is_dict(v)) {
		*to = v;
	}
	return true;
}

static bool take_change_whole(
	struct said *s, struct val intent, const char *key, int64_t *from, int64_t *to)
{
	struct val a, b;

	if (!take_change(s, intent, key, &a, &b))
		return false;
	if ((is_said(a) && !whole(a, INT64_MIN + 1, INT64_MAX, from)) ||
		(is_said(b) && !whole(b, INT64_MIN + 1, INT64_MAX, to)))
		odd(s, key, "an intent with a value that is no whole number");
	return true;
}

static bool finite_number(struct val v, double *out)
{
	double d;

	if (!val_to_double(v, &d) || !isfinite(d))
		return false;
	*out = d;
	return true;
}

static bool take_change_real(
	struct said *s, struct val intent, const char *key, double *from, double *to)
{
	struct val a, b;

	if (!take_change(s, intent, key, &a, &b))
		return false;
	if ((is_said(a) && !finite_number(a, from)) || (is_said(b) && !finite_number(b, to)))
		odd(s, key, "an intent with a value that is no number");
	return true;
}

static bool take_skip(struct val v, struct ledger_skip *skip)
{
	struct val unit = val_get(v, "unit"), of = val_get(v, "of");

	if (!val_is_dict(v) || !whole(val_get(v, "from"), 0, LEDGER_STEP_MAX, &skip->from) ||
		!whole(val_get(v, "to"), 0, LEDGER_STEP_MAX, &skip->to) || skip->to < skip->from)
		return false;
	skip->samples = val_is_text(unit, "sample");
	skip->new_order = val_is_text(of, "new");
	return (!is_said(unit) || skip->samples || val_is_text(unit, "step")) &&
	       (!is_said(of) || skip->new_order || val_is_text(of, "dead"));
}

static void add_skip(struct said *s, struct ledger_intent *intent, const struct ledger_skip *skip)
{
	struct ledger_skip *kept = array_push(&s->l->skips, s->l->limits->memory / sizeof *kept);

	if (!kept)
		return;
	*kept = *skip;
	intent->skips++;
}

static void take_skips(struct said *s, struct val v, struct ledger_intent *intent)
{
	struct ledger_skip skip = {0};

	if (!is_said(v))
		return;
	intent->first_skip = (uint32_t)s->l->skips.count;
	if (whole(val_at(v, 0), 0, LEDGER_STEP_MAX, &skip.from)) {
		if (val_count(v) == 2 && whole(val_at(v, 1), skip.from, LEDGER_STEP_MAX, &skip.to))
			add_skip(s, intent, &skip);
		else
			odd(s, "skip", "an intent that is not [first step, last step]");
		return;
	}
	if (val_is_dict(v)) {
		if (take_skip(v, &skip))
			add_skip(s, intent, &skip);
		else
			odd(s, "skip", "an intent without unit, from, to and of as they should be");
		return;
	}
	if (!val_is_sequence(v))
		odd(s, "skip", "an intent that is no array");
	for (uint64_t i = 0; val_is_sequence(v) && i < val_count(v); i++) {
		skip = (struct ledger_skip){0};
		if (take_skip(val_at(v, i), &skip))
			add_skip(s, intent, &skip);
		else
			odd(s, "skip", "an intent without unit, from, to and of as they should be");
	}
}

static bool declared(struct val intent, const char *key)
{
	struct val v = val_get(intent, key);

	return is_said(v) && !(v.kind == VAL_BOOL && !v.i);
}

static void take_intent(struct said *s, struct val v, struct ledger_intent *intent)
{
	static const char *const known[] = {
		"seed", "lr", "weights", "batch", "order", "world", "code", "rewarmup", "skip"};
	struct val key;

	if (!is_said(v))
		return;
	if (!val_is_dict(v)) {
		odd(s, "intent", "no object");
		return;
	}
	intent->any = true;
	intent->seed = take_change_whole(s, v, "seed", &intent->seed_from, &intent->seed_to);
	intent->lr = take_change_real(s, v, "lr", &intent->lr_from, &intent->lr_to);
	intent->batch = take_change_whole(s, v, "batch", &intent->batch_from, &intent->batch_to);
	intent->weights = declared(v, "weights");
	intent->order = declared(v, "order");
	intent->world = declared(v, "world");
	intent->code = declared(v, "code");
	intent->rewarmup = declared(v, "rewarmup");
	take_skips(s, val_get(v, "skip"), intent);
	for (uint64_t i = 0; i < val_count(v); i++) {
		bool found = false;
		val_part(v, i, &key);
		for (size_t k = 0; k < sizeof known / sizeof *known; k++)
			found = found || val_is_text(key, known[k]);
		if (!found)
			odd(s, "intent",
				"it declares something that is not known here, and is not held against "
				"anything");
	}
}

static void take_from(struct said *s, struct ledger_attempt *a)
{
	struct val from = val_get(s->v, "from");

	get_whole(s, s->v, "from_step", 0, &a->from_step);
	if (from.kind == VAL_TEXT) {
		a->from_path = ledger_keep(s->l, val_slice(from));
		return;
	}
	get_whole(s, from, "attempt", 0, &a->from_attempt);
	get_text(s, from, "path", &a->from_path);
	get_text(s, from, "digest", &a->from_digest);
	if (a->from_step == LEDGER_NO_STEP)
		get_whole(s, from, "step", 0, &a->from_step);
}

static void take_kind(struct said *s, struct ledger_attempt *a)
{
	static const char *const names[] = {"train", "rehearsal", "reference", "validation"};
	struct val v = val_get(s->v, "kind");

	if (!is_said(v))
		return;
	for (uint8_t i = 0; i < sizeof names / sizeof *names; i++)
		if (val_is_text(v, names[i])) {
			a->kind = i;
			return;
		}
	odd(s, "kind", "none of train, rehearsal, reference, validation");
}

static int take_attempt(struct said *s)
{
	struct ledger_attempt a = ledger_attempt_empty();
	struct ledger *l = s->l;
	const struct ledger_attempt *before =
		l->attempts.count ? &l->attempts.items[l->attempts.count - 1] : &a;
	struct val drop_last = val_get(s->v, "drop_last"), seed = val_get(s->v, "seed");

	if (!whole(val_get(s->v, "attempt"), 0, LEDGER_STEP_MAX, &a.number)) {
		reading_lost(s->r, "attempt is no whole number from 0 on");
		return RP_OK;
	}
	take_from(s, &a);
	take_kind(s, &a);
	get_text(s, s->v, "launch", &a.launch);
	get_text(s, s->v, "code", &a.code);
	a.versions = get_json(s, "versions", before->versions);
	a.config = get_json(s, "config", before->config);
	get_whole(s, s->v, "world_size", 0, &a.world);
	get_whole(s, s->v, "dp_size", 0, &a.dp);
	get_whole(s, s->v, "global_batch", 0, &a.global_batch);
	get_whole(s, s->v, "micro_batch", 0, &a.micro_batch);
	get_whole(s, s->v, "accumulation", 0, &a.accumulation);
	get_whole(s, s->v, "workers", 0, &a.workers);
	get_whole(s, s->v, "prefetch", 0, &a.prefetch);
	get_whole(s, s->v, "epoch", 0, &a.epoch);
	/* Seeds have 64 bits, with or without a sign. */
	uint64_t unsigned_seed;
	if (whole(seed, INT64_MIN, INT64_MAX, &a.seed)) {
		a.has_seed = true;
	} else if (val_to_u64(seed, &unsigned_seed)) {
		a.seed = (int64_t)unsigned_seed;
		a.has_seed = true;
	} else if (is_said(seed)) {
		odd(s, "seed", "no whole number");
	}
	if (drop_last.kind == VAL_BOOL)
		a.drop_last = drop_last.i != 0;
	a.first_weight = (uint32_t)s->l->weights.count;
	a.weights = take_weight_list(s, val_get(s->v, "weights"));
	take_intent(s, val_get(s->v, "intent"), &a.intent);
	return reading_attempt(s->r, &a, s->e);
}

/* Checkpoint and end --------------------------------------------------------------------------- */

static int current(struct said *s, uint32_t *index)
{
	int64_t number = LEDGER_UNNUMBERED;

	get_whole(s, s->v, "attempt", 0, &number);
	return reading_current(s->r, number, index, s->e);
}

static int take_checkpoint(struct said *s)
{
	struct ledger_checkpoint c = {.position = -1, .path = "", .digest = ""};

	if (!whole(val_get(s->v, "checkpoint"), 0, LEDGER_STEP_MAX, &c.step)) {
		reading_lost(s->r, "checkpoint is no step");
		return RP_OK;
	}
	get_whole(s, s->v, "position", 0, &c.position);
	get_text(s, s->v, "path", &c.path);
	get_text(s, s->v, "digest", &c.digest);
	if (current(s, &c.attempt) < 0)
		return s->e->status;
	struct ledger_checkpoint *kept =
		array_push(&s->l->checkpoints, s->l->limits->memory / sizeof *kept);
	if (!kept)
		return fail(s->e, RP_E_LIMIT, ERROR_NO_OFFSET,
			"too many checkpoints for the memory allowed (limit memory)");
	*kept = c;
	return RP_OK;
}

static int take_end(struct said *s)
{
	uint32_t index;
	const char *end = "";
	int64_t step = LEDGER_NO_STEP;

	get_text(s, s->v, "end", &end);
	if (end[0] == '\0') {
		reading_lost(s->r, "end does not say how");
		return RP_OK;
	}
	get_whole(s, s->v, "step", 0, &step);
	if (current(s, &index) < 0)
		return s->e->status;
	struct ledger_attempt *a = &s->l->attempts.items[index];
	a->end = end;
	if (step > a->end_step)
		a->end_step = step;
	return RP_OK;
}

/* Decode the line; what it cannot be decoded for is said. Only memory is an error. */
static int decode(struct said *s, struct arena *scratch, bool *decoded)
{
	struct error why = ERROR_INIT;
	uint64_t duplicates;

	*decoded = json_decode(s->text, scratch, s->l->limits, &s->v, &duplicates, &why) == RP_OK;
	if (why.status == RP_E_MEMORY)
		return fail(s->e, why.status, why.offset, "%s", why.text);
	if (!*decoded && !s->quiet)
		reading_lost(s->r, "%s", why.text);
	return RP_OK;
}

static int take(struct said *s)
{
	if (is_said(val_get(s->v, "reprise")))
		return take_header(s);
	if (is_said(val_get(s->v, "checkpoint")))
		return take_checkpoint(s);
	if (is_said(val_get(s->v, "end")))
		return take_end(s);
	if (is_said(val_get(s->v, "attempt")))
		return take_attempt(s);
	reading_lost(s->r, "none of reprise, attempt, step, checkpoint and end is in it");
	return RP_OK;
}

int said_line(struct reading *r, struct arena *scratch, struct slice text, struct error *e)
{
	struct said s = {.r = r, .l = r->ledger, .text = text, .e = e};
	bool decoded;
	int status = decode(&s, scratch, &decoded);

	if (decoded)
		status = take(&s);
	arena_release(scratch);
	return status;
}

int said_header(struct reading *r, struct arena *scratch, struct slice text, bool *is_header,
	struct error *e)
{
	struct said s = {.r = r, .l = r->ledger, .text = text, .e = e, .quiet = true};
	bool decoded;
	int status = decode(&s, scratch, &decoded);

	*is_header = decoded && is_said(val_get(s.v, "reprise"));
	if (*is_header)
		status = take_header(&s);
	arena_release(scratch);
	return status;
}

/* Decode an object that is a text of its own; false where there is none. */
static bool decode_own(struct said *s, struct arena *scratch, const char *key)
{
	struct error why = ERROR_INIT;
	uint64_t duplicates;

	if (s->text.n == 0)
		return false;
	if (s->text.n > JSON_TEXT_MAX)
		odd(s, key, "too long to be kept");
	else if (json_decode(s->text, scratch, s->l->limits, &s->v, &duplicates, &why) < 0)
		odd(s, key, why.text);
	else if (!val_is_dict(s->v))
		odd(s, key, "no object");
	else
		return true;
	return false;
}

void said_intent(struct ledger *l, const char *file, struct arena *scratch, struct slice text,
	struct ledger_intent *intent)
{
	struct reading r = {.ledger = l, .file = file};
	struct said s = {.r = &r, .l = l, .text = text};

	if (decode_own(&s, scratch, "intent"))
		take_intent(&s, s.v, intent);
	arena_release(scratch);
}

const char *said_json(struct ledger *l, const char *file, struct arena *scratch, const char *key,
	struct slice text)
{
	struct reading r = {.ledger = l, .file = file};
	struct said s = {.r = &r, .l = l, .text = text};
	const char *kept = decode_own(&s, scratch, key) ? ledger_keep(l, text) : "";

	arena_release(scratch);
	return kept;
}
