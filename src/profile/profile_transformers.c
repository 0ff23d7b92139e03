/* SPDX-License-Identifier: MIT */
/*
 * Hugging Face Transformers Trainer: OUTPUT/checkpoint-<global_step>/. Source: transformers
 * src/transformers/trainer.py (_save_checkpoint, _save_rng_state, _inner_training_loop) and
 * trainer_callback.py (TrainerState), releases 4.6 to 5.x.
 */
#include <math.h>

#include "profile/collect.h"
#include "state/epoch_log.h"

#define LOG_MAX ((size_t)1 << 24)
#define WHOLE_MOST 1e15 /* updates of an epoch that are still told apart */

static const struct {
	const char *name;
	enum file_role role;
} names[] = {
	{"trainer_state.json", FILE_COUNTERS},
	{"training_args.bin", FILE_CONFIG},
	{"optimizer.pt", FILE_OPTIMIZER},
	{"optimizer.bin", FILE_OPTIMIZER},
	{"scheduler.pt", FILE_SCHEDULER},
	{"scaler.pt", FILE_SCALER},
	{"rng_state.pth", FILE_RNG},
	{"model.safetensors", FILE_WEIGHTS},
	{"adapter_model.safetensors", FILE_WEIGHTS},
	{"pytorch_model.bin", FILE_WEIGHTS},
	{"adapter_model.bin", FILE_WEIGHTS},
	{"config.json", FILE_CONFIG},
};

static enum file_role classify(const char *member, int32_t *rank)
{
	struct slice name = slice_of(member);

	*rank = NO_RANK;
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if (slice_is(name, names[i].name))
			return names[i].role;
	if (slice_starts(name, SLICE("rng_state_")) && slice_ends(name, SLICE(".pth"))) {
		*rank = rank_in_name(member);
		return *rank >= 0 ? FILE_RNG : FILE_OTHER;
	}
	bool weights =
		slice_starts(name, SLICE("model-")) || slice_starts(name, SLICE("pytorch_model-"));
	if (weights && (slice_ends(name, SLICE(".safetensors")) || slice_ends(name, SLICE(".bin"))))
		return FILE_WEIGHTS;
	if (slice_ends(name, SLICE(".index.json")))
		return FILE_INDEX;
	/* FSDP: one file each, or folders of shards that are not read. DeepSpeed: a folder for the
	 * step. Source: accelerate utils/fsdp_utils.py; deepspeed runtime/engine.py. */
	if (slice_is(name, "pytorch_model_fsdp.bin") ||
		(slice_starts(name, SLICE("pytorch_model_fsdp_")) &&
			slice_ends(name, SLICE(".distcp"))) ||
		slice_ends(name, SLICE("_model_states.pt")))
		return FILE_WEIGHTS;
	if ((slice_starts(name, SLICE("optimizer_")) && slice_ends(name, SLICE(".distcp"))) ||
		slice_ends(name, SLICE("_optim_states.pt")))
		return FILE_OPTIMIZER;
	if (slice_starts(name, SLICE("tmp")) || slice_ends(name, SLICE(".tmp")))
		return FILE_LEFTOVER;
	return FILE_OTHER;
}

static unsigned recognise(const struct candidate *c, const struct listing *l)
{
	unsigned bits = 0;

	if (l->single)
		return 0;
	for (size_t i = 0; i < c->file_count; i++) {
		int32_t rank;
		const char *member = candidate_member(c, &l->files.items[c->files[i]]);
		enum file_role role = classify(member, &rank);
		if (role == FILE_COUNTERS)
			bits += 40;
		else if (role == FILE_RNG || strcmp(member, "training_args.bin") == 0)
			bits += 10;
	}
	/* A save that was killed before trainer_state.json still has its folder's name. */
	const char *slash = strrchr(c->name, '/');
	if (slice_starts(slice_of(slash ? slash + 1 : c->name), SLICE("checkpoint-")) &&
		c->step >= 0 && bits == 0)
		for (size_t i = 0; i < c->file_count; i++) {
			int32_t rank;
			if (classify(candidate_member(c, &l->files.items[c->files[i]]), &rank) !=
				FILE_OTHER)
				bits = 5;
		}
	return bits;
}

static bool is_whole(double x)
{
	return x < WHOLE_MOST && fabs(x - round(x)) < 1e-6 * fmax(1, x);
}

/* How long an epoch is, and where a resume set it back. */
static void tell_epoch(struct collector *c, const struct epoch_log *g)
{
	struct origin derived = {.file = NO_FILE, .rank = NO_RANK, .how = HOW_DERIVED, .path = ""};
	double length = epoch_stretch_length(&g->now), updates;

	/* The checkpoint's own epoch, which is not rounded, must fit too. */
	if (is_whole(length) && is_whole(g->now.last_epoch * length))
		state_add_int(
			c->state, FACT_STEPS_PER_EPOCH, NO_GROUP, (int64_t)round(length), derived);
	if (!epoch_log_set_back(g, &updates))
		return;
	size_t mark = collect_enter_name(c, "log_history");
	state_add_real(c->state, FACT_EPOCH_AGAIN, NO_GROUP, updates, collect_origin(c));
	state_add_int(c->state, FACT_EPOCH_AGAIN_STEP, NO_GROUP, (int64_t)g->before.last_step,
		collect_origin(c));
	collect_leave(c, mark);
}

/* Entries with "loss" are training's; evaluation and the final summary have other keys. */
static void read_log(struct collector *c, struct val log, struct epoch_log *epochs)
{
	int64_t last = -1, step;
	double loss, epoch;

	for (uint64_t i = 0; i < val_count(log); i++) {
		struct val entry = val_at(log, i);
		if (!val_to_i64(val_get(entry, "step"), &step))
			continue;
		if (step > last)
			last = step;
		if (val_to_double(val_get(entry, "epoch"), &epoch))
			epoch_log_take(epochs, (double)step, epoch);
		if (!val_to_double(val_get(entry, "loss"), &loss))
			continue;
		struct log_point *p = array_push(&c->state->log, LOG_MAX);
		if (!p) {
			c->state->no_memory = true;
			return;
		}
		*p = (struct log_point){.step = step, .value = loss};
	}
	if (last < 0)
		return;
	size_t mark = collect_enter_name(c, "log_history");
	state_add_int(c->state, FACT_LOGGED_STEP, NO_GROUP, last, collect_origin(c));
	collect_leave(c, mark);
}

static void read_trainer_state(struct collector *c, struct val v)
{
	collect_named(c, FACT_STEP, NO_GROUP, v, "global_step");
	collect_named(c, FACT_EPOCH, NO_GROUP, v, "epoch");
	collect_named(c, FACT_MAX_STEPS, NO_GROUP, v, "max_steps");
	collect_named(c, FACT_NUM_EPOCHS, NO_GROUP, v, "num_train_epochs");
	collect_named(c, FACT_MICRO_BATCH, NO_GROUP, v, "train_batch_size");
	/* 0 unless include_num_input_tokens_seen is set: then it says nothing. */
	double tokens, epoch;
	struct epoch_log epochs = {0};
	int64_t step;
	if (val_to_double(val_get(v, "num_input_tokens_seen"), &tokens) && tokens > 0)
		collect_named(c, FACT_TOKENS, NO_GROUP, v, "num_input_tokens_seen");
	read_log(c, val_get(v, "log_history"), &epochs);
	if (val_to_i64(val_get(v, "global_step"), &step) &&
		val_to_double(val_get(v, "epoch"), &epoch))
		epoch_log_take(&epochs, (double)step, epoch);
	tell_epoch(c, &epochs);
}

static void read_config(struct collector *c, struct val v)
{
	struct val version = val_get(v, "transformers_version");

	if (version.kind == VAL_TEXT)
		collect_named(c, FACT_FRAMEWORK_VERSION, NO_GROUP, v, "transformers_version");
	collect_config(c, v);
	/* accelerate's PartialState, pickled with the arguments, knows how many processes there
	 * were. */
	struct val processes = val_dig(v, "distributed_state", "num_processes", NULL);
	if (processes.kind == VAL_ABSENT)
		processes = val_dig(v, "distributed_state", "_shared_state", "num_processes", NULL);
	if (processes.kind == VAL_INT) {
		size_t mark = collect_enter_name(c, "distributed_state");
		collect_fact(c, FACT_WORLD_SIZE, NO_GROUP, processes);
		collect_leave(c, mark);
	}
}

static void read_part(struct collector *c, enum file_role role)
{
	struct val root = c->doc->root;

	switch (role) {
	case FILE_COUNTERS:
		read_trainer_state(c, root);
		break;
	case FILE_CONFIG:
		read_config(c, root);
		break;
	default:
		collect_role(c, role);
		break;
	}
}

/* The steps that the arguments plan, where they plan steps; 0 where they plan epochs. */
static int64_t steps_asked(const struct state *s)
{
	for (size_t i = 0; i < s->facts.count; i++) {
		const struct fact *f = &s->facts.items[i];
		if (f->key == FACT_MAX_STEPS && f->type == FACT_INT && f->file != NO_FILE &&
			f->i > 0 && s->files.items[f->file].role == FILE_CONFIG)
			return f->i;
	}
	return 0;
}

/*
 * The length of an epoch in updates, where the log does not tell it. The epoch is saved as whole
 * epochs plus the fraction done, so that it is step / epoch. Source: trainer.py, state.epoch =
 * epoch + (step + 1) / steps_in_epoch.
 */
static void finish(struct collector *c)
{
	struct origin derived = {.file = NO_FILE, .rank = NO_RANK, .how = HOW_DERIVED, .path = ""};
	struct state *s = c->state;
	double epoch;
	int64_t step, max_steps, epochs;

	collect_totals(c);
	if (state_fact(s, FACT_STEPS_PER_EPOCH) || !state_int(s, FACT_STEP, &step) ||
		!state_real(s, FACT_EPOCH, &epoch) || !(epoch > 0) || step <= 0)
		return;
	double length = (double)step / epoch;
	/*
	 * An accumulation group that the epoch's end cuts short, or an epoch that an earlier resume
	 * started again, makes the quotient no whole number: then the plan says it, unless that was
	 * made in steps, of which the epochs are rounded up.
	 */
	if (!is_whole(length) && steps_asked(s) == 0 && state_int(s, FACT_MAX_STEPS, &max_steps) &&
		state_int(s, FACT_NUM_EPOCHS, &epochs) && epochs > 0 && max_steps % epochs == 0)
		length = (double)(max_steps / epochs);
	if (is_whole(length))
		state_add_int(s, FACT_STEPS_PER_EPOCH, NO_GROUP, (int64_t)round(length), derived);
	else
		state_add_real(s, FACT_STEPS_PER_EPOCH, NO_GROUP, length, derived);
}

static const char *const streams[] = {"python", "numpy", "torch cpu", NULL};

static const struct part parts[] = {
	{FILE_COUNTERS, "trainer_state.json", true},
	{FILE_WEIGHTS, "model.safetensors", true},
	{FILE_OPTIMIZER, "optimizer.pt", false},
	{FILE_SCHEDULER, "scheduler.pt", false},
	{FILE_RNG, "rng_state.pth", false},
	{0, NULL, false},
};

const struct profile profile_transformers = {
	.name = "transformers",
	.title = "Transformers Trainer",
	.package = "transformers",
	.recognise = recognise,
	.classify = classify,
	.read = read_part,
	.finish = finish,
	.position = POSITION_RECOMPUTED,
	.position_note = "the Trainer skips step mod steps-per-epoch batches of the epoch's order",
	.settings_note =
		"the Trainer restores optimizer and schedule from the checkpoint: new rates, betas and decay have no effect, "
		"a new length of the schedule has",
	.rng_per_rank = true,
	.schedule_counts_steps = true,
	.optimizer_counts_steps = true,
	.picks_highest = true,
	.host_ranks = RANKS_FREE,
	.device_ranks = RANKS_FREE,
	.streams = streams,
	.parts = parts,
};
