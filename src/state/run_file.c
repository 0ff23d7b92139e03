/* SPDX-License-Identifier: MIT */
#include "state/run_file.h"

#include <errno.h>
#include <math.h>

#include "base/ini.h"
#include "base/text.h"

#define MEMORY ((size_t)16 << 20)
#define SOURCES_MAX 4096u
#define WORD_MAX 64u
#define WEIGHT_MAX 1e12

const struct run_key run_keys[] = {
#define RUN_KEY(section, key, fact, kind, example, comment)                                        \
	{section, key, FACT_##fact, RUN_##kind, example, comment},
#include "state/run_keys.def"
#undef RUN_KEY
};

const size_t run_key_count = sizeof run_keys / sizeof *run_keys;

struct reading {
	struct run_file *r;
	struct ini ini;
	struct error *e;
};

static bool no_memory(struct reading *in)
{
	fail(in->e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for a run file");
	return false;
}

/* "[batch] micro wants a positive whole number, not 'x'" */
static bool complain_value(struct reading *in, const struct ini_entry *entry, const char *wanted)
{
	return ini_complain(in->e, entry, "%.*s wants %s, not '%.*s'", ini_shown(entry->key),
		entry->key.p, wanted, ini_shown(entry->value), entry->value.p);
}

/* Single values ----------------------------------------------------------------------------------
 */

static bool take_value(void *context, const struct ini_entry *entry)
{
	struct reading *in = context;
	struct run_value *v = array_push(&in->r->values, sizeof run_keys / sizeof *run_keys);
	const struct run_key *key = run_keys;

	if (!v)
		return no_memory(in);
	while (!slice_is(entry->section, key->section) || !slice_is(entry->key, key->key))
		key++; /* ini_take() found a row for it */
	*v = (struct run_value){.key = key, .line = entry->line};
	switch (key->kind) {
	case RUN_COUNT:
		return text_parse_i64(entry->value, 1, INT64_MAX, &v->number) ||
		       complain_value(in, entry, "a positive whole number");
	case RUN_NUMBER:
		return text_parse_i64(entry->value, 0, INT64_MAX, &v->number) ||
		       complain_value(in, entry, "a whole number");
	case RUN_YESNO:
		v->number = slice_is(entry->value, "yes");
		return v->number || slice_is(entry->value, "no") ||
		       complain_value(in, entry, "yes or no");
	case RUN_WORD:
		v->word = arena_strdup(&in->r->arena, entry->value);
		return v->word || no_memory(in);
	}
	return false;
}

static bool take_parameters(void *context, const struct ini_entry *entry)
{
	struct reading *in = context;
	struct run_file *r = in->r;

	if (!text_parse_range(entry->value, 1, &r->parameters_least, &r->parameters_most))
		return complain_value(
			in, entry, "a number, or a range such as 90000000..110000000");
	r->parameters_line = entry->line;
	return r->expects_parameters = true;
}

static bool take_on_resume(void *context, const struct ini_entry *entry)
{
	struct reading *in = context;

	if (slice_is(entry->value, "skips"))
		in->r->on_resume = RUN_RESUME_SKIPS;
	else if (slice_is(entry->value, "restarts"))
		in->r->on_resume = RUN_RESUME_RESTARTS;
	else
		return complain_value(in, entry, "skips or restarts");
	return true;
}

/* The streams that can be named, and the owner that a state calls each of them by. */
static const struct {
	const char *name, *owner;
} stream_names[] = {
	{"python", "python"},
	{"numpy", "numpy"},
	{"torch", "torch cpu"},
	{"cuda", "cuda"},
};

#define STREAM_NAMES (sizeof stream_names / sizeof *stream_names)

static bool take_unused(void *context, const struct ini_entry *entry)
{
	struct reading *in = context;
	struct slice list = entry->value;

	for (struct slice word = ini_next_word(&list); word.n > 0; word = ini_next_word(&list)) {
		const char *names[STREAM_NAMES], *owner = NULL;
		for (size_t i = 0; i < STREAM_NAMES; i++) {
			names[i] = stream_names[i].name;
			if (slice_is(word, names[i]))
				owner = stream_names[i].owner;
		}
		if (!owner)
			return ini_complain_unknown(
				in->e, entry, "random stream", word, names, STREAM_NAMES);
		const char **slot = run_file_unused(in->r, owner)
					    ? NULL
					    : array_push(&in->r->unused, STREAM_NAMES);
		if (!slot)
			return ini_complain(
				in->e, entry, "%.*s is there twice", ini_shown(word), word.p);
		*slot = owner;
	}
	return true;
}

/* Sources and stages
 * -------------------------------------------------------------------------------
 */

static struct slice behind_dot(struct slice section)
{
	const char *dot = memchr(section.p, '.', section.n);
	return (struct slice){dot + 1, section.n - (size_t)(dot + 1 - section.p)};
}

static size_t find_source(const struct run_file *r, struct slice name)
{
	for (size_t i = 0; i < r->sources.count; i++)
		if (slice_is(name, r->sources.items[i].name))
			return i;
	return SIZE_MAX;
}

/* The source or stage of a section's own line. Sections come once, so it is a new one. */
static bool add_section(struct reading *in, const struct ini_entry *entry)
{
	struct run_file *r = in->r;
	bool source = slice_starts(entry->section, SLICE("source."));

	if (!source && !slice_starts(entry->section, SLICE("stage.")))
		return true;
	const char *name = arena_strdup(&r->arena, behind_dot(entry->section));
	if (source) {
		struct run_source *s = array_push(&r->sources, SOURCES_MAX);
		if (!s || !name)
			return no_memory(in);
		*s = (struct run_source){.name = name, .line = entry->line};
	} else {
		struct run_stage *s = array_push(&r->stages, SOURCES_MAX);
		if (!s || !name)
			return no_memory(in);
		*s = (struct run_stage){.name = name, .until = INT64_MAX, .line = entry->line};
	}
	return true;
}

static bool parse_weight(struct slice text, double *out)
{
	return text_parse_double(text, out) && *out > 0 && *out <= WEIGHT_MAX;
}

static bool take_source(void *context, const struct ini_entry *entry)
{
	struct reading *in = context;
	struct run_source *s =
		&in->r->sources.items[find_source(in->r, behind_dot(entry->section))];

	if (slice_is(entry->key, "samples"))
		return text_parse_i64(entry->value, 1, INT64_MAX, &s->samples) ||
		       complain_value(in, entry, "a positive whole number");
	return parse_weight(
		       entry->value, slice_is(entry->key, "weight") ? &s->weight : &s->epochs) ||
	       complain_value(in, entry, "a positive number");
}

/* "wiki 0.7 code 0.3" */
static bool take_weights(struct reading *in, const struct ini_entry *entry, struct run_stage *stage)
{
	struct slice list = entry->value;
	struct run_file *r = in->r;

	stage->weights = arena_array(&r->arena, r->sources.count + 1, sizeof *stage->weights);
	if (!stage->weights)
		return no_memory(in);
	for (struct slice word = ini_next_word(&list); word.n > 0; word = ini_next_word(&list)) {
		struct run_weight w = {.source = find_source(r, word)};
		if (w.source == SIZE_MAX)
			return ini_complain(in->e, entry,
				"there is no [source.%.*s] that the weight could be of",
				ini_shown(word), word.p);
		for (size_t i = 0; i < stage->weight_count; i++)
			if (stage->weights[i].source == w.source)
				return ini_complain(in->e, entry, "%.*s is there twice",
					ini_shown(word), word.p);
		struct slice number = ini_next_word(&list);
		if (!parse_weight(number, &w.weight))
			return ini_complain(in->e, entry,
				"weights wants a source and a positive number by turns: wiki 0.7 code 0.3");
		stage->weights[stage->weight_count++] = w;
	}
	return true;
}

static bool take_stage(void *context, const struct ini_entry *entry)
{
	struct reading *in = context;
	struct run_stage *stage = in->r->stages.items;

	while (!slice_is(behind_dot(entry->section), stage->name))
		stage++;
	if (slice_is(entry->key, "weights"))
		return take_weights(in, entry, stage);
	return text_parse_i64(entry->value, 0, INT64_MAX,
		       slice_is(entry->key, "from") ? &stage->from : &stage->until) ||
	       complain_value(in, entry, "a step: 0, 1, 2, ...");
}

static const struct ini_key keys[] = {
#define RUN_KEY(section, key, fact, kind, example, comment) {section, key, take_value},
#include "state/run_keys.def"
#undef RUN_KEY
	{"model", "parameters", take_parameters},
	{"resume", "data", take_on_resume},
	{"streams", "unused", take_unused},
	{"source.", "samples", take_source},
	{"source.", "weight", take_source},
	{"source.", "epochs", take_source},
	{"stage.", "from", take_stage},
	{"stage.", "until", take_stage},
	{"stage.", "weights", take_stage},
};

/* What its parts say of each other
 * ------------------------------------------------------------------
 */

static int64_t told(const struct run_file *r, enum fact_key fact, int64_t otherwise)
{
	const struct run_value *v = run_file_value(r, fact);
	return v ? v->number : otherwise;
}

static bool complain_line(struct reading *in, unsigned line, const char *text)
{
	return ini_complain(in->e, &(struct ini_entry){.line = line}, "%s", text);
}

static bool check_ranks(struct reading *in)
{
	const struct run_value *dp = run_file_value(in->r, FACT_DP_SIZE);

	return !dp || told(in->r, FACT_WORLD_SIZE, dp->number) % dp->number == 0 ||
	       complain_line(in, dp->line, "data-parallel does not divide world-size");
}

/* Accumulation that is not told follows from the global batch, as far as that is a multiple. */
static bool check_batch(struct reading *in)
{
	const struct run_file *r = in->r;
	const struct run_value *global = run_file_value(r, FACT_GLOBAL_BATCH);
	int64_t micro = told(r, FACT_MICRO_BATCH, 0), accumulation = told(r, FACT_ACCUMULATION, 0),
		dp = told(r, FACT_DP_SIZE, told(r, FACT_WORLD_SIZE, 0)), product;

	if (!global || micro == 0 || dp == 0)
		return true;
	bool fits = !__builtin_mul_overflow(micro, dp, &product) &&
		    !__builtin_mul_overflow(product, accumulation ? accumulation : 1, &product) &&
		    (accumulation ? product == global->number : global->number % product == 0);
	return fits ||
	       complain_line(in, global->line,
		       accumulation ? "global is not micro x accumulation x data-parallel ranks"
				    : "global is no multiple of micro x data-parallel ranks");
}

static bool check_sources(struct reading *in)
{
	const struct run_value *all = run_file_value(in->r, FACT_DATASET_SIZE);
	int64_t sum = 0;

	for (size_t i = 0; i < in->r->sources.count; i++) {
		const struct run_source *s = &in->r->sources.items[i];
		if (s->samples == 0)
			all = NULL;
		if (__builtin_add_overflow(sum, s->samples, &sum))
			return complain_line(in, s->line, "the sources have too many samples");
	}
	if (in->r->sources.count == 0 || !all || all->number == sum)
		return true;
	return complain_line(in, all->line, "samples is not the sum of the sources' samples");
}

static int compare_stages(const void *pa, const void *pb)
{
	const struct run_stage *a = pa, *b = pb;

	if (a->from != b->from)
		return a->from < b->from ? -1 : 1;
	return (a->line > b->line) - (a->line < b->line);
}

static bool check_stages(struct reading *in)
{
	struct run_stage *stages = in->r->stages.items;
	size_t count = in->r->stages.count;

	if (count > 1)
		qsort(stages, count, sizeof *stages, compare_stages);
	for (size_t i = 0; i < count; i++) {
		/* One that does not say its end lasts until the next begins. */
		if (stages[i].until == INT64_MAX && i + 1 < count)
			stages[i].until = stages[i + 1].from;
		if (stages[i].until <= stages[i].from)
			return complain_line(in, stages[i].line, "the stage ends before it begins");
		if (i > 0 && stages[i].from < stages[i - 1].until)
			return complain_line(in, stages[i].line,
				"the stage begins before the one before it ends");
		if (stages[i].weight_count == 0)
			return complain_line(in, stages[i].line, "the stage has no weights");
	}
	return true;
}

/* Reading -----------------------------------------------------------------------------------------
 */

static bool take_all(struct reading *in)
{
	for (size_t i = 0; i < in->ini.entries.count; i++)
		if (!in->ini.entries.items[i].key.p && !add_section(in, &in->ini.entries.items[i]))
			return false;
	return ini_take(&in->ini, keys, sizeof keys / sizeof *keys, in, in->e) && check_ranks(in) &&
	       check_batch(in) && check_sources(in) && check_stages(in);
}

static int begin(struct run_file *r, const char *path, struct error *e)
{
	*r = (struct run_file){0};
	arena_init(&r->arena, MEMORY);
	r->path = arena_strdup(&r->arena, slice_of(path));
	return r->path ? RP_OK : fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for a run file");
}

static int finish(struct reading *in, int status)
{
	if (status == RP_OK)
		take_all(in);
	ini_release(&in->ini);
	/* Nothing of a checkpoint is unreadable: what the user wrote makes no sense. */
	if (in->e->status == RP_E_FORMAT || in->e->status == RP_E_LIMIT)
		in->e->status = RP_E_ARGUMENT;
	return in->e->status;
}

int run_file_read(struct run_file *r, const char *path, struct error *e)
{
	struct reading in = {.r = r, .e = e};
	int status = begin(r, path, e);

	if (status == RP_OK)
		status = ini_read(&in.ini, path, e);
	return finish(&in, status);
}

int run_file_parse(struct run_file *r, struct slice text, const char *path, struct error *e)
{
	struct reading in = {.r = r, .e = e};
	int status = begin(r, path, e);

	if (status == RP_OK)
		status = ini_parse(&in.ini, text, e);
	return finish(&in, status);
}

void run_file_release(struct run_file *r)
{
	array_release(&r->values);
	array_release(&r->sources);
	array_release(&r->stages);
	array_release(&r->unused);
	arena_release(&r->arena);
}

/* Asking ------------------------------------------------------------------------------------------
 */

const struct run_value *run_file_value(const struct run_file *r, enum fact_key fact)
{
	for (size_t i = 0; i < r->values.count; i++)
		if (r->values.items[i].key->fact == fact)
			return &r->values.items[i];
	return NULL;
}

bool run_file_unused(const struct run_file *r, const char *owner)
{
	for (size_t i = 0; r && i < r->unused.count; i++)
		if (strcmp(r->unused.items[i], owner) == 0)
			return true;
	return false;
}

const struct run_stage *run_file_stage(const struct run_file *r, int64_t step)
{
	for (size_t i = 0; i < r->stages.count; i++)
		if (r->stages.items[i].from <= step && step < r->stages.items[i].until)
			return &r->stages.items[i];
	return NULL;
}

/* Telling -----------------------------------------------------------------------------------------
 */

static void tell_value(struct state *s, const struct run_value *v)
{
	const struct run_key *key = v->key;
	struct origin from = {.file = NO_FILE,
		.rank = NO_RANK,
		.how = HOW_TOLD,
		.path = state_printf(s, "[%s] %s", key->section, key->key)};

	if (key->kind == RUN_WORD)
		state_add_text(s, key->fact, NO_GROUP, slice_of(v->word), from);
	else if (key->kind == RUN_YESNO)
		state_add_bool(s, key->fact, NO_GROUP, v->number != 0, from);
	else
		state_add_int(s, key->fact, NO_GROUP, v->number, from);
}

/* What follows from told values is told too, and names none of them. */
static void tell_unless_known(struct state *s, enum fact_key key, int64_t value)
{
	struct origin from = {.file = NO_FILE, .rank = NO_RANK, .how = HOW_TOLD, .path = ""};

	if (!state_fact(s, key))
		state_add_int(s, key, NO_GROUP, value, from);
}

void run_file_untell(struct state *s)
{
	size_t kept = 0;

	for (size_t i = 0; i < s->facts.count; i++)
		if (s->facts.items[i].how != HOW_TOLD)
			s->facts.items[kept++] = s->facts.items[i];
	s->facts.count = kept;
}

/* The number that is known under a key, or `otherwise`. */
static int64_t known(const struct state *s, enum fact_key key, int64_t otherwise)
{
	int64_t n;
	return state_int(s, key, &n) && n > 0 ? n : otherwise;
}

/* Micro-batches of an update, or the samples of one: each follows from the other. */
static void tell_batch(struct state *s)
{
	int64_t micro = known(s, FACT_MICRO_BATCH, 0), dp = known(s, FACT_DP_SIZE, 0),
		global = known(s, FACT_GLOBAL_BATCH, 0), share;

	if (micro == 0 || dp == 0 || __builtin_mul_overflow(micro, dp, &share))
		return;
	if (global > 0 && global % share == 0)
		tell_unless_known(s, FACT_ACCUMULATION, global / share);
	else if (global == 0 &&
		 !__builtin_mul_overflow(share, known(s, FACT_ACCUMULATION, 1), &global))
		tell_unless_known(s, FACT_GLOBAL_BATCH, global);
}

void run_file_tell(const struct run_file *r, struct state *s)
{
	struct epoch_length length;

	run_file_untell(s);
	for (size_t i = 0; i < r->values.count; i++)
		tell_value(s, &r->values.items[i]);
	state_finish(s);
	/* Unless something else is said, every process reads data of its own. */
	if (state_fact(s, FACT_WORLD_SIZE))
		tell_unless_known(s, FACT_DP_SIZE, known(s, FACT_WORLD_SIZE, 1));
	tell_batch(s);
	if (epoch_length(s, &length)) {
		if (length.batches_least > 0 && length.batches_least == length.batches_most)
			tell_unless_known(s, FACT_BATCHES_PER_EPOCH, length.batches_most);
		if (length.updates_least == length.updates_most)
			tell_unless_known(s, FACT_STEPS_PER_EPOCH, length.updates_most);
	}
	state_finish(s);
}

static int64_t divide_up(int64_t n, int64_t by)
{
	return n / by + (n % by != 0);
}

/*
 * Where ranks share the data, each gets its part of the samples, the rest dropped or padded; where
 * the last batch is short, it is dropped or not. A loader that drops may do so after its sampler
 * padded the ranks' parts, which gives one batch more where that comes out even.
 */
bool epoch_length(const struct state *s, struct epoch_length *length)
{
	int64_t size = known(s, FACT_DATASET_SIZE, 0), micro = known(s, FACT_MICRO_BATCH, 0),
		dp = known(s, FACT_DP_SIZE, 0), global = known(s, FACT_GLOBAL_BATCH, 0),
		accumulation = known(s, FACT_ACCUMULATION, 1), share;
	bool drop = false, replacement = false;

	*length = (struct epoch_length){0};
	state_bool(s, FACT_REPLACEMENT, &replacement);
	if (size == 0 || replacement)
		return false;
	if (micro > 0 && dp > 0 && !__builtin_mul_overflow(micro, dp, &share)) {
		bool kept = state_bool(s, FACT_DROP_LAST, &drop) && !drop;
		length->batches_least = kept ? divide_up(size, share) : size / share;
		length->batches_most = drop ? divide_up(size, dp) / micro : divide_up(size, share);
		length->updates_least = length->batches_least / accumulation;
		length->updates_most = divide_up(length->batches_most, accumulation);
	} else if (global > 0) {
		length->updates_least = size / global;
		length->updates_most = divide_up(size, global);
	}
	return length->updates_most > 0;
}
