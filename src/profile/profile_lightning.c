/* SPDX-License-Identifier: MIT */
/*
 * PyTorch Lightning and Lightning Fabric's Trainer: one *.ckpt file of global rank 0. Source:
 * src/lightning/pytorch/trainer/connectors/checkpoint_connector.py (dump_checkpoint),
 * loops/fit_loop.py, loops/training_epoch_loop.py, loops/progress.py, releases 1.5 to 2.6. Sharded
 * checkpoints (FSDP, DeepSpeed) keep their tensors in files of other formats and only the rest in
 * meta.pt.
 */
#include <stdlib.h>

#include "base/text.h"
#include "profile/collect.h"

#define VERSION_KEY "pytorch-lightning_version"

/* No name is Lightning's own: any script may save a .ckpt. */
static unsigned recognise(const struct candidate *c, const struct listing *l)
{
	(void)c;
	(void)l;
	return 0;
}

static unsigned recognise_tree(const struct document *d)
{
	if (val_get(d->root, VERSION_KEY).kind == VAL_TEXT)
		return 64;
	return val_is_dict(val_get(d->root, "loops")) && val_is_dict(val_get(d->root, "state_dict"))
		       ? 32
		       : 0;
}

static enum file_role classify(const char *member, int32_t *rank)
{
	static const char *const endings[] = {".ckpt", ".pt", ".pth", ".bin"};
	struct slice name = slice_of(member);

	*rank = NO_RANK;
	for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++)
		if (slice_ends(name, slice_of(endings[i])))
			return FILE_WHOLE;
	return slice_ends(name, SLICE(".tmp")) || slice_ends(name, SLICE(".part")) ? FILE_LEFTOVER
										   : FILE_OTHER;
}

/* A counter of a loop's progress: progress[when][what], or -1. */
static int64_t progress_count(struct val progress, const char *when, const char *what)
{
	int64_t n;
	return val_to_i64(val_dig(progress, when, what, NULL), &n) && n >= 0 ? n : -1;
}

/*
 * The progress of the optimizer's steps, as the releases spell it. That of manual optimization is
 * left out: its count of the running epoch is never set back, and its updates may come in any
 * number a batch, from several optimizers.
 */
static struct val step_progress(struct val fit)
{
	static const char *const automatic[] = {"epoch_loop.automatic_optimization.optim_progress",
		"epoch_loop.batch_loop.optimizer_loop.optim_progress"};

	for (size_t i = 0; i < 2; i++) {
		struct val v = val_get(val_get(fit, automatic[i]), "optimizer");
		/* An epoch that steps and sets no gradient to zero trains nothing: the averaging of
		 * weights (StochasticWeightAveraging) passes over the data for statistics. */
		if (progress_count(val_get(v, "step"), "total", "completed") > 0 &&
			progress_count(val_get(v, "zero_grad"), "current", "completed") != 0)
			return val_get(v, "step");
	}
	return (struct val){0};
}

static void derive(struct collector *c, enum fact_key key, int64_t value)
{
	struct origin origin = collect_origin(c);

	origin.how = HOW_DERIVED;
	state_add_int(c->state, key, NO_GROUP, value, origin);
}

/*
 * Batches and updates of the running epoch against those since the start: the length of an epoch,
 * and the batches of one update, where they come out even. A checkpoint that was not saved right
 * after an update tells no batches.
 */
static void derive_lengths(struct collector *c, struct val fit, struct val batches, bool last)
{
	struct val steps = step_progress(fit);
	int64_t batch = progress_count(batches, "current", "processed"),
		batch_all = progress_count(batches, "total", "processed");
	int64_t step = progress_count(steps, "current", "completed"),
		step_all = progress_count(steps, "total", "completed");
	int64_t epoch = progress_count(val_get(fit, "epoch_progress"), "current", "completed"),
		stepped;

	if (batch < 0 || batch_all < batch || step < 0 || step_all < step || step_all == 0)
		return;
	int64_t whole = step_all - step;
	if (last && step > 0)
		derive(c, FACT_STEPS_PER_EPOCH, step);
	else if (epoch > 0 && whole > 0 && whole % epoch == 0)
		derive(c, FACT_STEPS_PER_EPOCH, whole / epoch);
	bool just_stepped =
		!val_to_i64(val_dig(fit, "epoch_loop.state_dict", "_batches_that_stepped", NULL),
			&stepped) ||
		stepped < step_all || last;
	if (step > 0 && batch >= step && batch % step == 0 && just_stepped)
		derive(c, FACT_ACCUMULATION, batch / step);
}

/* At its end the running epoch has as many batches as each one before it. */
static void compare_epochs(struct collector *c, struct val fit, struct val batches)
{
	int64_t batch = progress_count(batches, "current", "processed"),
		all = progress_count(batches, "total", "processed");
	int64_t epoch = progress_count(val_get(fit, "epoch_progress"), "current", "completed");

	if (batch <= 0 || all < batch || batch > INT32_MAX || epoch <= 0 || epoch > INT32_MAX ||
		all - batch == epoch * batch)
		return;
	struct finding *f = finding_add(c->sink, FINDING_P102,
		"%lld batches in %lld earlier epoch%s, this one has %lld", (long long)(all - batch),
		(long long)epoch, epoch == 1 ? "" : "s", (long long)batch);
	f->severity = SEVERITY_WARNING;
	f->place.file = findings_text(c->sink, "%s", state_whole_path(c->state, c->file));
	f->place.path = findings_escaped(c->sink, strbuf_slice(&c->path));
	f->observed = quantity_count(all - batch);
	f->expected = quantity_count(epoch * batch);
	f->unit = "batches";
	f->cause =
		"a resume trained batches twice or passed over some, or the loader's length changed; without a "
		"validation loop Lightning 2.6 trains one batch too many after a resume from an epoch's end";
}

static void read_fit_loop(struct collector *c, struct val fit)
{
	struct val batches = val_get(fit, "epoch_loop.batch_progress");
	int64_t processed = progress_count(batches, "current", "processed");
	int64_t last = 0;

	size_t mark = collect_enter_name(c, "epoch_loop.batch_progress");
	val_to_i64(val_get(batches, "is_last_batch"), &last);
	if (last)
		collect_named(c, FACT_EPOCH_END, NO_GROUP, batches, "is_last_batch");
	derive_lengths(c, fit, batches, last != 0);
	if (last)
		compare_epochs(c, fit, batches);
	collect_enter_name(c, "current");
	/* What the model was trained on; `completed` is one behind in a checkpoint saved while the
	 * batch ends. */
	collect_named(c, FACT_BATCH_IN_EPOCH, NO_GROUP, val_get(batches, "current"),
		processed >= 0 ? "processed" : "completed");
	collect_named(
		c, FACT_BATCHES_COMPLETED, NO_GROUP, val_get(batches, "current"), "completed");
	collect_leave(c, mark);

	mark = collect_enter_name(c, "epoch_loop.val_loop.batch_progress");
	collect_enter_name(c, "total");
	collect_named(c, FACT_VALIDATION_BATCHES, NO_GROUP,
		val_dig(fit, "epoch_loop.val_loop.batch_progress", "total", NULL), "ready");
	collect_leave(c, mark);

	struct val loader = val_dig(fit, "state_dict", "combined_loader", NULL);
	if (val_is_sequence(loader) && val_count(loader) > 0) {
		mark = collect_enter_name(c, "state_dict");
		collect_enter_name(c, "combined_loader");
		collect_any_loader(c, loader);
		collect_leave(c, mark);
	}
	/* Fault tolerance, 1.5 to 1.9: the sampler's iterations, and streams of the workers alone.
	 */
	loader = val_dig(fit, "epoch_loop.state_dict", "dataloader_state_dict", NULL);
	if (val_is_container(loader) && val_count(loader) > 0) {
		mark = collect_enter_name(c, "epoch_loop.state_dict");
		collect_enter_name(c, "dataloader_state_dict");
		collect_any_loader(c, loader);
		collect_leave(c, mark);
	}
}

/* Each entry of a list, with its own take. */
static void each(
	struct collector *c, struct val list, bool (*take_one)(struct collector *c, struct val v))
{
	for (uint64_t i = 0; val_is_sequence(list) && i < val_count(list); i++) {
		size_t mark = collect_enter(c, val_int((int64_t)i));
		take_one(c, val_at(list, i));
		collect_leave(c, mark);
	}
}

static void read_part(struct collector *c, enum file_role role)
{
	struct val root = c->doc->root, key;

	(void)role;
	if (!val_is_dict(root)) {
		collect_tree(c, root);
		return;
	}
	collect_named(c, FACT_FRAMEWORK_VERSION, NO_GROUP, root, VERSION_KEY);
	collect_named(c, FACT_EPOCH, NO_GROUP, root, "epoch");
	collect_named(c, FACT_STEP, NO_GROUP, root, "global_step");
	for (uint64_t i = 0; i < val_count(root); i++) {
		struct val part = val_part(root, i, &key);
		if (key.kind != VAL_TEXT)
			continue;
		size_t mark = collect_enter(c, key);
		if (val_is_text(key, "loops")) {
			collect_enter_name(c, "fit_loop");
			read_fit_loop(c, val_get(part, "fit_loop"));
		} else if (val_is_text(key, "state_dict")) {
			collect_weights(c, part, TENSOR_WEIGHT);
		} else if (val_is_text(key, "optimizer_states")) {
			each(c, part, collect_optimizer);
		} else if (val_is_text(key, "lr_schedulers")) {
			each(c, part, collect_schedule);
		} else if (val_is_text(key, "hyper_parameters") ||
			   val_is_text(key, "datamodule_hyper_parameters")) {
			collect_config(c, part);
		} else if (!collect_scaler(c, part)) {
			/* Callbacks, a data module, the user's own: no counter of theirs is the
			 * Trainer's. */
			collect_named(c, FACT_SAMPLES, NO_GROUP, part, "consumed_samples");
			collect_data(c, part);
		}
		collect_leave(c, mark);
	}
	if (val_get(root, "optimizer_states").kind == VAL_ABSENT &&
		val_get(root, "state_dict").kind != VAL_ABSENT) {
		struct origin origin = collect_origin(c);
		origin.how = HOW_DERIVED;
		state_add_bool(c->state, FACT_SAVE_ONLY_MODEL, NO_GROUP, true, origin);
	}
}

static const char *const streams[] = {"python", "numpy", "torch cpu", NULL};

const struct profile profile_lightning = {
	.name = "lightning",
	.title = "Lightning",
	.package = "lightning",
	.recognise = recognise,
	.recognise_tree = recognise_tree,
	.classify = classify,
	.read = read_part,
	.finish = collect_totals,
	.launch_folder = "version_",
	.position = POSITION_RESTARTS,
	.position_note = "restarts a plain DataLoader's epoch on a resume",
	.position_remedy =
		"Use torchdata's StatefulDataLoader (Lightning 2.2 or later), PL_FAULT_TOLERANT_TRAINING=1 "
		"(1.5 to 1.9), or skip the batches by hand; then verify the next checkpoint again.",
	.position_of_one_rank = true,
	.host_ranks = RANKS_FREE,
	.device_ranks = RANKS_FREE,
	.streams = streams,
};
