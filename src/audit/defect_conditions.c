/* SPDX-License-Identifier: MIT */
/*
 * The conditions of defects.def: whether a checkpoint is one that a defect can hurt. They know
 * facts and no frameworks.
 */
#include <math.h>

#include "audit/case.h"
#include "audit/defects.h"
#include "rng/rng.h"

#define DIGITS 3 /* significant ones, of shares in messages */

static int64_t world_of(const struct state *s)
{
	int64_t told;

	return state_int(s, FACT_WORLD_SIZE, &told) && told > s->world ? told : s->world;
}

/* The number of the running epoch, counted from 0. */
static bool running_epoch(const struct state *s, int64_t *out)
{
	double epoch;

	if (!state_real(s, FACT_EPOCH, &epoch) || !(epoch >= 0) || epoch > 1e15)
		return false;
	*out = (int64_t)floor(epoch);
	return true;
}

static const struct fact *setting(const struct state *s, const char *name)
{
	for (size_t i = 0; i < s->facts.count; i++) {
		const struct fact *f = &s->facts.items[i];
		if (f->key == FACT_CONFIG && strcmp(path_last_name(f->path), name) == 0)
			return f;
	}
	return NULL;
}

static bool switched_off(const struct state *s, const char *name)
{
	const struct fact *f = setting(s, name);

	return f && f->type == FACT_BOOL && !f->i;
}

static bool is_true(const struct state *s, enum fact_key key)
{
	bool value = false;

	return state_bool(s, key, &value) && value;
}

/* Batches of the epoch are behind, none of its end, and the framework skips them by number. */
static bool skips_inside_epoch(const struct audit_case *c, int64_t first_epoch, double *behind)
{
	const struct state *s = c->current;
	int64_t epoch;

	return running_epoch(s, &epoch) && epoch >= first_epoch && case_batches_behind(s, behind) &&
	       *behind > 0 && !is_true(s, FACT_IGNORE_DATA_SKIP) && !is_true(s, FACT_REPLACEMENT) &&
	       !is_true(s, FACT_SAVE_ONLY_MODEL);
}

/*
 * Of an epoch's n batches k are behind. Skipped in another epoch's order, each of the others holds
 * samples of which k in n were read before, and as many of the epoch's own are left out.
 */
static void tell_share(
	const struct audit_case *c, struct findings *sink, double behind, struct evidence *out)
{
	double done, length;
	int64_t accumulation = 1;

	out->fact = state_fact(c->current, FACT_EPOCH);
	if (!epoch_place(c->current, &done, &length))
		return;
	state_int(c->current, FACT_ACCUMULATION, &accumulation);
	double all = length * (double)(accumulation < 1 ? 1 : accumulation);
	if (behind >= all)
		return;
	out->meaning = findings_text(sink,
		"%s of the epoch's %s batches are behind: of the samples in the other %s about %s %% were read in it "
		"before, and as many are never read",
		rounded_text(sink, behind, 9), rounded_text(sink, all, 9),
		rounded_text(sink, all - behind, 9),
		rounded_text(sink, 100 * behind / all, DIGITS));
}

static bool in_seedable_order(const struct audit_case *c, struct findings *sink,
	int64_t first_epoch, struct evidence *out)
{
	double behind;

	if (!skips_inside_epoch(c, first_epoch, &behind) ||
		switched_off(c->current, "use_seedable_sampler"))
		return false;
	tell_share(c, sink, behind, out);
	return true;
}

bool defect_inside_later_epoch_of_seedable_order(
	const struct audit_case *c, struct findings *sink, struct evidence *out)
{
	return in_seedable_order(c, sink, 1, out);
}

bool defect_inside_later_epoch_of_ranks(
	const struct audit_case *c, struct findings *sink, struct evidence *out)
{
	return world_of(c->current) > 1 && in_seedable_order(c, sink, 1, out);
}

bool defect_inside_third_epoch_or_later(
	const struct audit_case *c, struct findings *sink, struct evidence *out)
{
	return world_of(c->current) <= 1 && in_seedable_order(c, sink, 2, out);
}

bool defect_several_ranks(const struct audit_case *c, struct findings *sink, struct evidence *out)
{
	(void)sink;
	out->fact = state_fact(c->current, FACT_WORLD_SIZE);
	return world_of(c->current) > 1;
}

/* ---- random streams ----------------------------------------------------------------------------
 */

static bool inside_epoch(const struct audit_case *c)
{
	double behind;

	return case_batches_behind(c->current, &behind) && behind > 0;
}

/* A stream of Python's or numpy's that has left the block that its seed made, or drawn from it. */
static bool was_drawn_from(const struct stream *stream)
{
	const struct rng_state *body = stream->body;
	bool host = body->layout == RNG_LAYOUT_PYTHON || body->layout == RNG_LAYOUT_NUMPY;

	return host && body->algo == RNG_MT19937 && body->mt.pos < MT19937_WORDS;
}

bool defect_host_streams_drawn_inside_epoch(
	const struct audit_case *c, struct findings *sink, struct evidence *out)
{
	int64_t workers = 0;

	(void)sink;
	/* Workers draw from streams of their own. */
	state_int(c->current, FACT_LOADER_WORKERS, &workers);
	out->fact = state_fact(c->current, FACT_STEP);
	if (!inside_epoch(c) || workers > 0 || is_true(c->current, FACT_IGNORE_DATA_SKIP))
		return false;
	for (size_t i = 0; i < c->current->streams.count; i++)
		if (was_drawn_from(&c->current->streams.items[i]))
			return true;
	return false;
}

bool defect_streams_at_epoch_end(
	const struct audit_case *c, struct findings *sink, struct evidence *out)
{
	double done, length;
	int64_t step = 0;

	(void)sink;
	out->fact = state_fact(c->current, FACT_STEP);
	return c->current->streams.count > 0 && state_int(c->current, FACT_STEP, &step) &&
	       step > 0 && epoch_place(c->current, &done, &length) && done == 0;
}

static const struct stream *find_layout(const struct state *s, enum rng_layout layout)
{
	for (size_t i = 0; i < s->streams.count; i++)
		if (s->streams.items[i].body->layout == layout)
			return &s->streams.items[i];
	return NULL;
}

bool defect_device_streams_of_ranks(
	const struct audit_case *c, struct findings *sink, struct evidence *out)
{
	(void)sink;
	(void)out;
	return world_of(c->current) > 1 && find_layout(c->current, RNG_LAYOUT_TORCH_CUDA);
}

bool defect_numpy_stream_saved(
	const struct audit_case *c, struct findings *sink, struct evidence *out)
{
	(void)sink;
	(void)out;
	return find_layout(c->current, RNG_LAYOUT_NUMPY) != NULL;
}

bool defect_long_cuda_state(const struct audit_case *c, struct findings *sink, struct evidence *out)
{
	const struct state *s = c->current;

	(void)out;
	for (size_t i = 0; i < s->streams.count; i++) {
		const struct rng_state *body = s->streams.items[i].body;
		if (body->layout != RNG_LAYOUT_TORCH_CUDA || body->size <= 16)
			continue;
		out->meaning = findings_text(sink, "the state in %s has %u bytes",
			state_file_path(s, s->streams.items[i].file), body->size);
		return true;
	}
	return false;
}

/* ---- positions of loaders ----------------------------------------------------------------------
 */

/* Batches of the epoch that the training itself has counted, beside the loader's position. */
static bool counted_batches(const struct state *s, int64_t *out)
{
	return (state_int(s, FACT_MICRO_STEP, out) && *out > 0) ||
	       (state_int(s, FACT_BATCH_IN_EPOCH, out) && *out > 0);
}

bool defect_batches_of_later_epoch(
	const struct audit_case *c, struct findings *sink, struct evidence *out)
{
	double behind;

	if (state_fact(c->current, FACT_POSITION) || !skips_inside_epoch(c, 1, &behind))
		return false;
	tell_share(c, sink, behind, out);
	return true;
}

bool defect_loader_state_of_ranks_in_later_epoch(
	const struct audit_case *c, struct findings *sink, struct evidence *out)
{
	const struct state *s = c->current;
	int64_t epoch, batches;

	if (!state_fact(s, FACT_POSITION) || world_of(s) < 2 || !running_epoch(s, &epoch) ||
		epoch < 1 || !counted_batches(s, &batches) || is_true(s, FACT_EPOCH_END))
		return false;
	tell_share(c, sink, (double)batches, out);
	out->fact = state_fact(s, FACT_POSITION);
	return true;
}

bool defect_loader_behind_by_ranks(
	const struct audit_case *c, struct findings *sink, struct evidence *out)
{
	const struct state *s = c->current;
	int64_t position, batches, others = world_of(s) - 1;

	if (others < 1 || !state_int(s, FACT_POSITION, &position) ||
		!counted_batches(s, &batches) || batches <= position ||
		(batches - position) % others != 0)
		return false;
	out->fact = state_fact(s, FACT_POSITION);
	out->observed = quantity_count(position);
	out->expected = quantity_count(batches);
	out->unit = "batches";
	out->meaning = findings_text(sink,
		"%lld batches of each rank would be read again: one for each other process and launch",
		(long long)(batches - position));
	return true;
}

bool defect_finished_loader_without_workers(
	const struct audit_case *c, struct findings *sink, struct evidence *out)
{
	const struct fact *end = state_fact(c->current, FACT_EPOCH_END);
	int64_t workers = 0;

	(void)sink;
	out->fact = end;
	state_int(c->current, FACT_LOADER_WORKERS, &workers);
	return end && is_true(c->current, FACT_EPOCH_END) && workers == 0 &&
	       strcmp(path_last_name(end->path), "_iterator_finished") == 0;
}

bool defect_distributed_sampler_saved(
	const struct audit_case *c, struct findings *sink, struct evidence *out)
{
	const struct state *s = c->current;

	(void)sink;
	for (size_t i = 0; i < s->facts.count; i++) {
		const struct fact *f = &s->facts.items[i];
		if (f->key != FACT_POSITION ||
			!slice_ends(slice_of(f->path), SLICE(".sampler_state.yielded")))
			continue;
		out->fact = f;
		return true;
	}
	return false;
}

/* ---- counters and scalers ----------------------------------------------------------------------
 */

bool defect_batch_count_behind(
	const struct audit_case *c, struct findings *sink, struct evidence *out)
{
	const struct state *s = c->current;
	int64_t processed, completed;

	(void)sink;
	if (!state_int(s, FACT_BATCH_IN_EPOCH, &processed) ||
		!state_int(s, FACT_BATCHES_COMPLETED, &completed) || completed != processed - 1 ||
		is_true(s, FACT_EPOCH_END))
		return false;
	out->fact = state_fact(s, FACT_BATCHES_COMPLETED);
	out->observed = quantity_count(completed);
	out->expected = quantity_count(processed);
	out->unit = "batches";
	return true;
}

bool defect_epoch_end_without_validation(
	const struct audit_case *c, struct findings *sink, struct evidence *out)
{
	const struct state *s = c->current;
	int64_t processed, completed, validated;

	(void)sink;
	out->fact = state_fact(s, FACT_EPOCH_END);
	return is_true(s, FACT_EPOCH_END) && !state_fact(s, FACT_POSITION) &&
	       state_int(s, FACT_BATCH_IN_EPOCH, &processed) &&
	       state_int(s, FACT_BATCHES_COMPLETED, &completed) && completed == processed &&
	       state_int(s, FACT_VALIDATION_BATCHES, &validated) && validated == 0;
}

bool defect_scaler_beside_fsdp(
	const struct audit_case *c, struct findings *sink, struct evidence *out)
{
	const struct state *s = c->current;

	(void)sink;
	out->fact = state_fact(s, FACT_SCALE);
	for (size_t i = 0; out->fact && i < s->files.count; i++)
		if (slice_starts(slice_of(s->files.items[i].path), SLICE("pytorch_model_fsdp")))
			return true;
	return false;
}

bool defect_averages_without_weights(
	const struct audit_case *c, struct findings *sink, struct evidence *out)
{
	const struct state *s = c->current;
	uint64_t averages = 0, weights = 0;

	(void)sink;
	for (size_t i = 0; i < s->tensors.count; i++) {
		averages += s->tensors.items[i].role == TENSOR_EMA;
		weights += s->tensors.items[i].role == TENSOR_WEIGHT;
	}
	out->fact = state_fact(s, FACT_EMA_UPDATES);
	return averages > 0 && weights == 0 && s->optimizers.count > 0;
}
