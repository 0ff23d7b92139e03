/* SPDX-License-Identifier: MIT */
/* What follows from all files of a checkpoint together. */
#include "profile/collect_parts.h"

#include <limits.h>
#include <stdlib.h>

/*
 * Updates in an epoch, where the settings give the data set and the batch and divide evenly:
 * whether a script drops or keeps a remainder is not known.
 */
static void derive_epoch_length(struct state *s, struct origin derived)
{
	int64_t size, batch, accumulation = 1, world = 1, total;

	if (state_fact(s, FACT_STEPS_PER_EPOCH) || !state_int(s, FACT_DATASET_SIZE, &size) ||
		!state_int(s, FACT_MICRO_BATCH, &batch) || size <= 0 || batch <= 0)
		return;
	state_int(s, FACT_ACCUMULATION, &accumulation);
	state_int(s, FACT_WORLD_SIZE, &world);
	if (accumulation < 1 || world < 1 || __builtin_mul_overflow(batch, accumulation, &total) ||
		__builtin_mul_overflow(total, world, &total) || size % total != 0)
		return;
	state_add_int(s, FACT_STEPS_PER_EPOCH, NO_GROUP, size / total, derived);
}

static bool optimizer_has_step(const struct state *s, double step)
{
	for (size_t i = 0; i < s->optimizers.count; i++) {
		const struct optimizer *o = &s->optimizers.items[i];
		for (size_t k = 0; k < o->params.count; k++)
			if (o->params.items[k].has_step && o->params.items[k].step == step)
				return true;
	}
	return false;
}

/* How surely a counter of this name is the one of updates over the whole run: the order in
 * `counters`. */
static unsigned step_rank(const struct state *s, const struct fact *f)
{
	const char *name = path_last_name(f->path);
	double value = 0;

	/* What the optimizer itself has counted needs no name. */
	if (fact_to_double(f, &value) && optimizer_has_step(s, value))
		return 0;
	if (strcmp(name, "step") == 0 || strcmp(name, "steps") == 0)
		return collect_counter_places();
	return 1 + collect_counter_place(name);
}

/* A file of random streams may count its own saves or calls (accelerate writes a "step" into
 * random_states_0.pkl). */
static bool beside_streams_only(const struct state *s, uint32_t file)
{
	bool streams = false;

	for (size_t i = 0; i < s->streams.count; i++)
		streams |= s->streams.items[i].file == file;
	for (size_t i = 0; i < s->optimizers.count; i++)
		if (s->optimizers.items[i].file == file)
			return false;
	for (size_t i = 0; i < s->tensors.count; i++)
		if (s->tensors.items[i].file == file && s->tensors.items[i].role == TENSOR_WEIGHT)
			return false;
	return streams && s->optimizers.count > 0;
}

/*
 * Of several counters called a step, one is the step: what the optimizer counted, else the surest
 * name. The others are counters in units of their own; one that is just "step" beside an epoch
 * counts inside it.
 */
static void settle_step(struct state *s)
{
	const struct fact *best = NULL;
	bool batch = state_fact(s, FACT_BATCH_IN_EPOCH) != NULL,
	     epochs = state_fact(s, FACT_EPOCH) != NULL;
	double most = 0;

	for (size_t i = 0; i < s->optimizers.count; i++)
		for (size_t k = 0; k < s->optimizers.items[i].params.count; k++)
			if (s->optimizers.items[i].params.items[k].step > most)
				most = s->optimizers.items[i].params.items[k].step;
	unsigned rank = UINT_MAX;
	/* Every rank may have saved one; no other is surer than what the optimizer has counted. */
	for (size_t i = 0; i < s->facts.count && rank > 0; i++) {
		const struct fact *f = &s->facts.items[i];
		if (f->key != FACT_STEP || f->how != HOW_READ)
			continue;
		unsigned own = step_rank(s, f);
		if (own < rank) {
			best = f;
			rank = own;
		}
	}
	if (!best)
		return;
	const char *path = best->path;
	double step = 0, own;
	fact_to_double(best, &step);
	/* One that the optimizer or the name has passed, with an epoch running: it started again
	 * with the epoch. */
	const struct fact *named = state_fact(s, FACT_NAME_STEP),
			  *epoch = state_fact(s, FACT_EPOCH);
	double running = 0;
	fact_to_double(epoch, &running);
	bool passed = most > step || (most == 0 && named && running >= 1 &&
					     named->type == FACT_INT && (double)named->i > step);
	bool inside = rank > 0 && state_step_in_epoch(best) && epochs && !batch && passed &&
		      !state_fact(s, FACT_ACCUMULATION);
	for (size_t i = 0; i < s->facts.count; i++) {
		struct fact *f = &s->facts.items[i];
		if (f->key != FACT_STEP || f->how != HOW_READ || !fact_to_double(f, &own))
			continue;
		bool plain = state_step_in_epoch(f);
		if (rank > 0 && most > 0 && f->file != NO_FILE && beside_streams_only(s, f->file))
			f->key = FACT_COUNTER;
		else if (inside ||
			 (strcmp(f->path, path) != 0 && plain && epochs && !batch && own < step))
			f->key = FACT_BATCH_IN_EPOCH;
		else if (strcmp(f->path, path) != 0)
			f->key = FACT_COUNTER;
	}
}

void collect_totals(struct collector *c)
{
	struct state *s = c->state;
	struct origin derived = {.file = NO_FILE, .rank = NO_RANK, .how = HOW_DERIVED, .path = ""};
	uint64_t parameters = 0;
	bool *counted = calloc(s->storages.count + 1, sizeof *counted);

	for (size_t i = 0; i < s->tensors.count; i++) {
		const struct state_tensor *t = &s->tensors.items[i];
		if (t->role != TENSOR_WEIGHT || t->rank > 0)
			continue;
		/* Tied weights share a storage as a whole; slices of one flat storage do not. */
		if (t->whole && counted) {
			if (counted[t->storage])
				continue;
			counted[t->storage] = true;
		}
		parameters += t->numel;
	}
	free(counted);
	if (!s->profile->optimizer_counts_steps)
		settle_step(s);
	derive_epoch_length(s, derived);
	if (parameters > 0)
		state_add_int(s, FACT_PARAMETERS, NO_GROUP, (int64_t)parameters, derived);
	for (size_t i = 0; i < s->files.count; i++)
		if (s->files.items[i].rank >= s->world && s->files.items[i].rank < INT32_MAX)
			s->world = s->files.items[i].rank + 1;
	for (size_t i = 0; i < s->streams.count; i++)
		if (s->streams.items[i].rank >= s->world)
			s->world = s->streams.items[i].rank + 1;
}
