/* SPDX-License-Identifier: MIT */
/*
 * Hugging Face Accelerate: the folder that Accelerator.save_state() wrote, under a name of the
 * script's own or checkpoints/checkpoint_<i>. Source: accelerate src/accelerate/checkpointing.py
 * and accelerator.py, releases 0.6 to 1.15.
 */
#include <ctype.h>

#include "profile/collect.h"

static const char *last_part(const char *member)
{
	const char *slash = strrchr(member, '/');
	return slash ? slash + 1 : member;
}

/* "optimizer.bin", "optimizer_1.bin": the stem, nothing or a number, and the ending. */
static bool is_numbered(struct slice name, struct slice stem, struct slice ending)
{
	if (name.n < stem.n + ending.n || !slice_starts(name, stem) || !slice_ends(name, ending))
		return false;
	struct slice rest = {name.p + stem.n, name.n - stem.n - ending.n};
	if (rest.n == 0)
		return true;
	for (size_t i = 1; i < rest.n; i++)
		if (!isdigit((unsigned char)rest.p[i]))
			return false;
	return rest.n > 1 && rest.p[0] == '_';
}

static enum file_role classify(const char *member, int32_t *rank)
{
	static const char *const model_endings[] = {
		".safetensors", ".bin", ".pt", ".pth", ".distcp"};
	struct slice whole = slice_of(member), name = slice_of(last_part(member));

	*rank = NO_RANK;
	if (slice_ends(name, SLICE(".tmp")))
		return FILE_LEFTOVER;
	if (slice_ends(name, SLICE(".index.json")))
		return FILE_INDEX;
	/* Sharded plugins: optimizer_0/__0_0.distcp; DeepSpeed: pytorch_model/…_optim_states.pt. */
	bool optimizer_folder = slice_starts(whole, SLICE("optimizer_")) && strchr(member, '/');
	if (optimizer_folder || slice_ends(name, SLICE("optim_states.pt")))
		return slice_ends(name, SLICE(".distcp")) || slice_ends(name, SLICE(".pt"))
			       ? FILE_OPTIMIZER
			       : FILE_OTHER;
	if (!strchr(member, '/')) {
		if (is_numbered(name, SLICE("random_states"), SLICE(".pkl"))) {
			*rank = rank_in_name(member);
			return *rank >= 0 ? FILE_RNG : FILE_OTHER;
		}
		if (is_numbered(name, SLICE("optimizer"), SLICE(".bin")))
			return FILE_OPTIMIZER;
		if (is_numbered(name, SLICE("scheduler"), SLICE(".bin")))
			return FILE_SCHEDULER;
		if (is_numbered(name, SLICE("sampler"), SLICE(".bin")) ||
			is_numbered(name, SLICE("dl_state_dict"), SLICE(".bin")))
			return FILE_LOADER;
		if (is_numbered(name, SLICE("custom_checkpoint"), SLICE(".pkl")))
			return FILE_COUNTERS;
		if (slice_is(name, "scaler.pt"))
			return FILE_SCALER;
	}
	/* A script's hook may save its models under names and in folders of its own. */
	for (size_t i = 0; i < sizeof model_endings / sizeof model_endings[0]; i++)
		if (slice_ends(name, slice_of(model_endings[i])))
			return FILE_WEIGHTS;
	return FILE_OTHER;
}

static unsigned recognise(const struct candidate *c, const struct listing *l)
{
	unsigned bits = 0;

	if (l->single)
		return 0;
	for (size_t i = 0; i < c->file_count; i++) {
		const char *member = candidate_member(c, &l->files.items[c->files[i]]);
		int32_t rank;
		switch (classify(member, &rank)) {
		case FILE_RNG:
			bits += 40;
			break;
		case FILE_COUNTERS:
		case FILE_LOADER:
		case FILE_SCHEDULER:
			bits += 20;
			break;
		case FILE_OPTIMIZER:
			/* Shards are DeepSpeed's or torch's own, whoever called them. */
			bits += slice_ends(slice_of(member), SLICE(".bin")) ? 4 : 0;
			break;
		default:
			break;
		}
	}
	/* Models alone are anybody's. */
	return bits;
}

/* checkpoint_<i>, by automatic_checkpoint_naming, counts saves. */
static bool names_step(const char *name)
{
	return !slice_starts(slice_of(last_part(name)), SLICE("checkpoint_"));
}

/* The keys of save_accelerator_state(); `step` is the micro-step of accumulate() and begins anew
 * with each epoch. */
static void read_random_states(struct collector *c, struct val root)
{
	struct val key;

	for (uint64_t i = 0; i < val_count(root); i++) {
		struct val part = val_part(root, i, &key);
		if (key.kind != VAL_TEXT)
			continue;
		size_t mark = collect_enter(c, key);
		if (val_is_text(key, "step")) {
			collect_fact(c, FACT_MICRO_STEP, NO_GROUP, part);
		} else if (!collect_stream(c, part, val_slice(key), 0) && val_is_sequence(part)) {
			for (uint64_t device = 0; device < val_count(part); device++) {
				size_t inner = collect_enter(c, val_int((int64_t)device));
				collect_stream(
					c, val_at(part, device), val_slice(key), (int32_t)device);
				collect_leave(c, inner);
			}
		}
		collect_leave(c, mark);
	}
}

/* A registered object's state_dict(): a script's counters, its averaged weights, whatever it is. */
static void read_custom(struct collector *c, struct val root)
{
	struct val batch = val_get(root, "batch");

	collect_tree(c, root);
	/* Beside an epoch "batch" is a place in it; elsewhere it may be a size. */
	if (val_get(root, "epoch").kind == VAL_INT && batch.kind == VAL_INT) {
		size_t mark = collect_enter_name(c, "batch");
		collect_fact(c, FACT_BATCH_IN_EPOCH, NO_GROUP, batch);
		collect_leave(c, mark);
	}
}

/* A pickled SeedableRandomSampler, or the state of a StatefulDataLoader. */
static void read_loader(struct collector *c, struct val root)
{
	struct val seed = val_get(root, "initial_seed");

	if (root.kind != VAL_OBJECT) {
		collect_any_loader(c, root);
		return;
	}
	if (seed.kind == VAL_INT) {
		size_t mark = collect_enter_name(c, "initial_seed");
		collect_fact(c, FACT_DATA_SEED, NO_GROUP, seed);
		collect_leave(c, mark);
	}
	c->in_loader = true;
	collect_data(c, root);
	c->in_loader = false;
}

static void read_part(struct collector *c, enum file_role role)
{
	struct val root = c->doc->root;

	switch (role) {
	case FILE_RNG:
		read_random_states(c, root);
		break;
	case FILE_OPTIMIZER:
		if (!collect_optimizer(c, root))
			collect_tree(c, root);
		break;
	case FILE_LOADER:
		read_loader(c, root);
		break;
	case FILE_COUNTERS:
		read_custom(c, root);
		break;
	default:
		collect_role(c, role);
		break;
	}
}

/* A copy beside a custom checkpoint that some releases count as one more object. */
static void find_strays(struct collector *c)
{
	struct state *s = c->state;

	for (uint32_t i = 0; i < s->files.count; i++) {
		struct slice name = slice_of(s->files.items[i].path);
		if (!slice_starts(name, SLICE("custom_checkpoint_")) ||
			s->files.items[i].role != FILE_OTHER)
			continue;
		struct finding *f = finding_add(c->sink, FINDING_I115,
			"%s lies beside the custom checkpoints", findings_escaped(c->sink, name));
		f->place.file = findings_text(c->sink, "%s", state_whole_path(s, i));
		f->cause =
			"releases that count every file of this name find one object too many and refuse to load; "
			"others pass over it";
	}
}

static void finish(struct collector *c)
{
	collect_totals(c);
	find_strays(c);
}

static const char *const streams[] = {"python", "numpy", "torch cpu", NULL};

static const struct part parts[] = {
	{FILE_WEIGHTS, "model.safetensors", true},
	{FILE_OPTIMIZER, "optimizer.bin", false},
	{FILE_RNG, "random_states_0.pkl", false},
	{0, NULL, false},
};

const struct profile profile_accelerate = {
	.name = "accelerate",
	.title = "Accelerate",
	.package = "accelerate",
	.recognise = recognise,
	.classify = classify,
	.read = read_part,
	.finish = finish,
	.names_step = names_step,
	.position = POSITION_UNKNOWN,
	.position_note =
		"saves no epoch and no batch unless the script registers them (register_for_checkpointing)",
	.position_remedy =
		"Register an object that holds epoch and batch, and skip_first_batches() after load_state(); "
		"or use_stateful_dataloader=True.",
	.position_of_one_rank = true,
	.rng_per_rank = true,
	.host_ranks = RANKS_FREE,
	.device_ranks = RANKS_FREE,
	.streams = streams,
	.parts = parts,
	.counted = FILE_COUNTERS,
};
