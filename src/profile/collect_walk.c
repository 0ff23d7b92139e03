/* SPDX-License-Identifier: MIT */
/* The walk through a tree of which nothing is known: what is recognised by its shape or name. */
#include "profile/collect_parts.h"

#include <stdlib.h>

#define CONFIG_MAX 4000u /* settings of one configuration */

/* Names of counters in the upper levels of a checkpoint, as people and frameworks write them. */
static const struct {
	const char *name;
	enum fact_key key;
} counters[] = {
	{"global_step", FACT_STEP},
	{"step", FACT_STEP},
	{"steps", FACT_STEP},
	{"iter_num", FACT_STEP},
	{"iteration", FACT_STEP},
	{"num_updates", FACT_STEP},
	{"global_steps", FACT_STEP},
	{"completed_steps", FACT_STEP},
	{"current_step", FACT_STEP},
	{"global_iter", FACT_STEP},
	{"train_step", FACT_STEP},
	{"epoch", FACT_EPOCH},
	{"current_epoch", FACT_EPOCH},
	{"batch_in_epoch", FACT_BATCH_IN_EPOCH},
	{"batches_in_epoch", FACT_BATCH_IN_EPOCH},
	{"batch_idx", FACT_BATCH_IN_EPOCH},
	{"batch_index", FACT_BATCH_IN_EPOCH},
	{"step_in_epoch", FACT_BATCH_IN_EPOCH},
	{"iterations_in_epoch", FACT_BATCH_IN_EPOCH},
	{"consumed_samples", FACT_SAMPLES},
	{"consumed_train_samples", FACT_SAMPLES},
	{"samples_seen", FACT_SAMPLES},
	{"global_samples", FACT_SAMPLES},
	{"seen_samples", FACT_SAMPLES},
	{"tokens_seen", FACT_TOKENS},
	{"consumed_tokens", FACT_TOKENS},
	{"ntokens_seen", FACT_TOKENS},
	{"num_input_tokens_seen", FACT_TOKENS},
};

bool collect_counter(struct collector *c, struct slice name, struct val v)
{
	for (size_t i = 0; i < COUNT(counters); i++)
		if (slice_is(name, counters[i].name))
			return collect_fact(c, counters[i].key, NO_GROUP, v);
	return false;
}

unsigned collect_counter_places(void)
{
	return COUNT(counters);
}

unsigned collect_counter_place(const char *name)
{
	unsigned place = 0;

	while (place < COUNT(counters) && strcmp(name, counters[place].name) != 0)
		place++;
	return place;
}

static const struct {
	const char *name;
	enum fact_key key;
} settings[] = {
	{"seed", FACT_SEED},
	{"random_seed", FACT_SEED},
	{"data_seed", FACT_DATA_SEED},
	{"shuffle_seed", FACT_DATA_SEED},
	{"per_device_train_batch_size", FACT_MICRO_BATCH},
	{"micro_batch_size", FACT_MICRO_BATCH},
	{"batch_size", FACT_MICRO_BATCH},
	{"global_batch_size", FACT_GLOBAL_BATCH},
	{"gradient_accumulation_steps", FACT_ACCUMULATION},
	{"accumulation", FACT_ACCUMULATION},
	{"accumulate_grad_batches", FACT_ACCUMULATION},
	{"grad_accum", FACT_ACCUMULATION},
	{"grad_accum_steps", FACT_ACCUMULATION},
	{"world_size", FACT_WORLD_SIZE},
	{"num_workers", FACT_LOADER_WORKERS},
	{"dataloader_num_workers", FACT_LOADER_WORKERS},
	{"max_steps", FACT_MAX_STEPS},
	{"max_iters", FACT_MAX_STEPS},
	{"train_iters", FACT_MAX_STEPS},
	{"total_steps", FACT_MAX_STEPS},
	{"num_train_epochs", FACT_NUM_EPOCHS},
	{"num_epochs", FACT_NUM_EPOCHS},
	{"epochs", FACT_NUM_EPOCHS},
	{"max_epochs", FACT_NUM_EPOCHS},
	{"warmup_steps", FACT_WARMUP_STEPS},
	{"warmup_iters", FACT_WARMUP_STEPS},
	{"num_warmup_steps", FACT_WARMUP_STEPS},
	{"steps_per_epoch", FACT_STEPS_PER_EPOCH},
	{"dataset_size", FACT_DATASET_SIZE},
	{"n_samples", FACT_DATASET_SIZE},
	{"shuffle", FACT_SHUFFLE},
	{"replacement", FACT_REPLACEMENT},
	{"ignore_data_skip", FACT_IGNORE_DATA_SKIP},
	{"save_only_model", FACT_SAVE_ONLY_MODEL},
};

static void take_setting(struct collector *c, struct slice name, struct val v)
{
	for (size_t i = 0; i < COUNT(settings); i++)
		if (slice_is(name, settings[i].name) && v.kind != VAL_NONE)
			collect_fact(c, settings[i].key, NO_GROUP, v);
	double p;
	/* Only the largest counts: it proves that something draws from the device's stream. */
	if (slice_has(name, "drop") && v.kind == VAL_FLOAT && val_to_double(v, &p) && p > 0 &&
		p < 1) {
		double known = 0;
		state_real(c->state, FACT_DROPOUT, &known);
		if (p > known)
			collect_fact(c, FACT_DROPOUT, NO_GROUP, v);
	}
}

static void config_walk(struct collector *c, struct val v, unsigned depth, unsigned *left)
{
	struct val key;

	for (uint64_t i = 0; i < val_count(v) && *left > 0 && !c->path.failed; i++) {
		struct val part = val_part(v, i, &key);
		if (key.kind == VAL_ABSENT)
			continue;
		size_t mark = collect_enter(c, key);
		if (part.kind == VAL_BOOL || part.kind == VAL_INT || part.kind == VAL_FLOAT ||
			part.kind == VAL_TEXT) {
			(*left)--;
			collect_fact(c, FACT_CONFIG, NO_GROUP, part);
			if (key.kind == VAL_TEXT)
				take_setting(c, val_slice(key), part);
		} else if (depth < 4 && (part.kind == VAL_DICT || part.kind == VAL_OBJECT ||
						val_is_sequence(part))) {
			config_walk(c, part, depth + 1, left);
		}
		collect_leave(c, mark);
	}
}

void collect_config(struct collector *c, struct val v)
{
	unsigned left = CONFIG_MAX;
	config_walk(c, v, 0, &left);
}

/* Keys by which data loaders and samplers save where they are. */
static const char *const positions[] = {"_num_yielded", "num_yielded", "_sampler_iter_yielded",
	"samples_yielded", "num_samples_yielded", "sample_in_epoch", "sampler_position", "position",
	"current_iteration", "_num_batches_fetched", "start_index", "shard_example_idx",
	"kept_batches"};

static const char *const config_names[] = {"args", "config", "cfg", "hparams", "hyper_parameters",
	"model_args", "training_args", "train_args", "model_config", "train_config",
	"configuration", "options", "opt_args", "params_config"};

static bool name_in(struct slice name, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (slice_is(name, names[i]))
			return true;
	return false;
}

/* What averages of weights call the count of their updates: torch-ema, diffusers' EMAModel. */
static const char *const average_counts[] = {
	"num_updates", "updates", "optimization_step", "n_averaged"};

/* Where the walk is. */
struct place_above {
	const struct place_above *up;
	struct slice name; /* the nearest text key */
	int32_t index;     /* in the list directly above, or -1 */
	bool ema, ranks;   /* below a key that speaks of averaged weights; in a list with an entry a
			      rank */
	unsigned depth;
};

/* A node that was walked, and what decided how: the same one is not walked twice in the same way.
 */
struct visit {
	const void *node;
	int32_t rank;
	uint32_t way;
};

static bool same_visit(const struct visit *a, const struct visit *b)
{
	return a->node == b->node && a->rank == b->rank && a->way == b->way;
}

/* The slot of a visit, or the free one where it belongs. */
static struct visit *visit_slot(struct visit *slots, size_t size, const struct visit *v)
{
	uint64_t hash = ((uint64_t)(uintptr_t)v->node ^ ((uint64_t)(uint32_t)v->rank << 40) ^
				((uint64_t)v->way << 56)) *
			0x9e3779b97f4a7c15u;
	size_t at = (size_t)(hash >> 20) & (size - 1);

	while (slots[at].node && !same_visit(&slots[at], v))
		at = (at + 1) & (size - 1);
	return &slots[at];
}

/*
 * Whether this visit is a new one. Pickles share nodes, so that a few hundred bytes may hold more
 * paths than there is time for: O(nodes) then, and cycles end.
 */
static bool first_visit(struct collector *c, struct visit v)
{
	if (2 * c->visits.used >= c->visits.size) {
		size_t size = c->visits.size ? 2 * c->visits.size : 256;
		struct visit *slots = calloc(size, sizeof *slots);
		if (!slots) {
			c->state->no_memory = true;
			return false;
		}
		for (size_t i = 0; i < c->visits.size; i++)
			if (c->visits.slots[i].node)
				*visit_slot(slots, size, &c->visits.slots[i]) = c->visits.slots[i];
		free(c->visits.slots);
		c->visits.slots = slots;
		c->visits.size = size;
	}
	struct visit *slot = visit_slot(c->visits.slots, c->visits.size, &v);
	if (slot->node)
		return false;
	*slot = v;
	c->visits.used++;
	return true;
}

static const void *node_of(struct val v)
{
	if (v.kind == VAL_OBJECT)
		return v.object;
	return val_is_container(v) ? v.node : NULL;
}

/* What besides its node and rank decides what is taken of a part. */
static uint32_t way_of(const struct collector *c, struct val key, const struct place_above *at)
{
	bool config =
		key.kind == VAL_TEXT && name_in(val_slice(key), config_names, COUNT(config_names));

	return (uint32_t)c->only_data | (uint32_t)c->in_loader << 1 | (uint32_t)at->ema << 2 |
	       (uint32_t)config << 3 | (at->depth < 3 ? at->depth : 3) << 4;
}

/* Below such a key stands what was once measured ("best": {"step": 400, …}), not where the run is.
 */
static bool is_record(const struct place_above *p)
{
	static const char *const words[] = {"best", "hist", "metric", "eval", "record", "log"};

	for (; p; p = p->up)
		for (size_t i = 0; i < COUNT(words); i++)
			if (slice_has(p->name, words[i]))
				return true;
	return false;
}

/* Keys that are themselves resume state. Returns true where the part needs no further walk. */
static bool take_key(
	struct collector *c, struct val key, struct val part, const struct place_above *at)
{
	if (key.kind != VAL_TEXT)
		return false;
	struct slice name = val_slice(key);
	double number;
	if (!c->only_data && at->ema && name_in(name, average_counts, COUNT(average_counts)) &&
		collect_number(c, part, &number)) {
		collect_fact(c, FACT_EMA_UPDATES, NO_GROUP, part);
	} else if (!c->only_data && at->depth <= 2 && !is_record(at->up) &&
		   collect_number(c, part, &number)) {
		collect_counter(c, name, part);
		for (size_t i = 0; i < COUNT(settings); i++)
			if (slice_is(name, settings[i].name))
				collect_fact(c, settings[i].key, NO_GROUP, part);
	}
	if (name_in(name, positions, COUNT(positions)) && collect_number(c, part, &number))
		collect_fact(c, FACT_POSITION, NO_GROUP, part);
	if (c->only_data)
		return false;
	if (at->depth <= 2 && slice_is(name, "ema_updates"))
		collect_fact(c, FACT_EMA_UPDATES, NO_GROUP, part);
	if (at->depth <= 2 && (part.kind == VAL_DICT || part.kind == VAL_OBJECT) &&
		(name_in(name, config_names, COUNT(config_names)))) {
		collect_config(c, part);
		return true;
	}
	return false;
}

static void walk(struct collector *c, struct val v, const struct place_above *up);

static bool has(struct val v, const char *name)
{
	return val_get(v, name).kind != VAL_ABSENT;
}

/* Batches that the loader gave out: with workers it saves a snapshot and the batches since. */
static void take_loader_position(struct collector *c, struct val v)
{
	int64_t step, since, batches;

	if (!val_to_i64(val_dig(v, "_snapshot", "_snapshot_step", NULL), &step) ||
		!val_to_i64(val_get(v, "_steps_since_snapshot"), &since) ||
		__builtin_add_overflow(step, since, &batches))
		return;
	size_t mark = collect_enter_name(c, "_snapshot");
	collect_enter_name(c, "_snapshot_step");
	state_add_int(c->state, FACT_POSITION, NO_GROUP, batches, collect_origin(c));
	collect_leave(c, mark);
	struct val workers = val_dig(v, "_snapshot", "_main_snapshot", "_num_workers", NULL);
	if (workers.kind != VAL_INT)
		return;
	mark = collect_enter_name(c, "_snapshot");
	collect_enter_name(c, "_main_snapshot");
	collect_enter_name(c, "_num_workers");
	collect_fact(c, FACT_LOADER_WORKERS, NO_GROUP, workers);
	collect_leave(c, mark);
}

static bool take_loader(struct collector *c, struct val v, const struct place_above *at)
{
	if (v.kind != VAL_DICT ||
		!((has(v, "_snapshot") && has(v, "_steps_since_snapshot")) ||
			(has(v, "_num_yielded") && has(v, "_sampler_iter_yielded"))))
		return false;
	bool in_loader = c->in_loader, only_data = c->only_data;
	c->in_loader = c->only_data = true;
	take_loader_position(c, v);
	/* A validation loader's end is not the epoch's. */
	struct val finished = val_get(v, "_iterator_finished");
	struct slice path = strbuf_slice(&c->path);
	if (finished.kind == VAL_BOOL && !slice_has(path, "val") && !slice_has(path, "test"))
		collect_named(c, FACT_EPOCH_END, NO_GROUP, v, "_iterator_finished");
	walk(c, v, at);
	c->in_loader = in_loader;
	c->only_data = only_data;
	return true;
}

static bool take_whole(struct collector *c, struct val v, const struct place_above *at)
{
	if (collect_stream(c, v, at->name, at->index) || take_loader(c, v, at))
		return true;
	if (c->only_data)
		return v.kind == VAL_TENSOR;
	if (collect_optimizer(c, v) || collect_schedule(c, v) || collect_scaler(c, v))
		return true;
	if (v.kind == VAL_TENSOR) {
		bool average = at->ema && collect_is_float(v.tensor->dtype) && v.tensor->ndim > 0;
		collect_tensor(
			c, strbuf_text(&c->path), average ? TENSOR_EMA : TENSOR_OTHER, v.tensor);
		return true;
	}
	enum tensor_role role = at->ema ? TENSOR_EMA : TENSOR_WEIGHT;
	return collect_module(c, v, role) || (collect_is_weights(v) && collect_weights(c, v, role));
}

static void walk(struct collector *c, struct val v, const struct place_above *up)
{
	const void *node = node_of(v);
	struct val key;

	if (!node || up->depth >= COLLECT_DEPTH)
		return;
	c->visits.depth++;
	int32_t rank = c->rank;
	/* The state of an object that averages, wherever it stands. */
	bool average = up->ema || has(v, "shadow_params") || has(v, "shadow");
	for (uint64_t i = 0; i < val_count(v) && c->budget > 0 && !c->path.failed; i++) {
		struct val part = val_part(v, i, &key);
		c->budget--;
		bool named = key.kind == VAL_TEXT;
		struct place_above here = {
			.up = up,
			.name = named ? val_slice(key) : up->name,
			.index = key.kind == VAL_INT ? (int32_t)key.i : -1,
			.ema = average || (named && collect_names_average(val_slice(key))),
			.depth = up->depth + 1,
		};
		/* A list of dicts under a name like "rng" has one entry a rank. */
		here.ranks = key.kind == VAL_INT && part.kind == VAL_DICT &&
			     collect_names_generator(up->name) && val_is_sequence(v);
		if (here.ranks && rank == NO_RANK)
			c->rank = (int32_t)key.i;
		struct visit visit = {
			.node = node_of(part), .rank = c->rank, .way = way_of(c, key, &here)};
		size_t mark = collect_enter(c, key);
		if ((!visit.node || first_visit(c, visit)) && !take_key(c, key, part, &here) &&
			!take_whole(c, part, &here))
			walk(c, part, &here);
		collect_leave(c, mark);
		c->rank = rank;
	}
	if (--c->visits.depth == 0) {
		free(c->visits.slots);
		c->visits.slots = NULL;
		c->visits.size = c->visits.used = 0;
	}
}

bool collect_loader(struct collector *c, struct val v)
{
	struct place_above root = {.index = -1};

	return take_loader(c, v, &root);
}

void collect_any_loader(struct collector *c, struct val v)
{
	size_t before = c->state->facts.count;
	bool outer = c->in_loader, known = false;

	c->in_loader = true;
	collect_data(c, v);
	c->in_loader = outer;
	for (size_t i = before; i < c->state->facts.count; i++)
		known = known || c->state->facts.items[i].key == FACT_POSITION;
	if (!known && val_is_container(v) && val_count(v) > 0)
		state_add_text(c->state, FACT_POSITION, NO_GROUP,
			SLICE("saved, of a shape of its own"), collect_origin(c));
}

void collect_data(struct collector *c, struct val v)
{
	bool outer = c->only_data;

	c->only_data = true;
	collect_tree(c, v);
	c->only_data = outer;
}

void collect_tree(struct collector *c, struct val v)
{
	struct place_above root = {.index = -1};

	if (!take_whole(c, v, &root))
		walk(c, v, &root);
	/* Counters and random states are arrays there too, with checksums of their own. */
	if (c->doc && c->doc->container == &container_npz)
		for (size_t i = 0; i < c->doc->storages.count; i++)
			collect_storage(c, c->doc->storages.items[i]);
}
