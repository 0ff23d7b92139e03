/* SPDX-License-Identifier: MIT */
/*
 * Collecting resume state out of decoded values by shape and name, whatever framework wrote them:
 * the generic rules that profiles build on. Sources: the shapes of torch.optim,
 * torch.optim.lr_scheduler, torch.amp.GradScaler state dicts, random.getstate(),
 * numpy.random.get_state(), torch.get_rng_state().
 */
#ifndef PROFILE_COLLECT_H
#define PROFILE_COLLECT_H

#include "base/strbuf.h"
#include "profile/profile.h"

struct collector {
	struct state *state;
	const struct document *doc; /* the file being read; NULL in finish() */
	struct findings *sink;
	const struct limits *limits;
	uint32_t file;
	int32_t rank;
	struct strbuf path; /* where in the file the walk is */
	uint64_t budget;    /* values still to be looked at in this file */
	bool in_loader; /* below a data loader's state: its streams are not the main process's */
	bool only_data; /* the walk takes random streams and data positions, and nothing else */
	struct {
		struct visit *slots; /* open addressing; a slot without a node is free */
		size_t size, used;   /* size: a power of two, or 0 */
		unsigned depth;      /* of walks that use it: the outermost one empties it */
	} visits;
	ARRAY(uint32_t) storages; /* the document's storage index -> the state's, or NO_FILE */
};

/* The origin of something at the collector's place. */
struct origin collect_origin(const struct collector *c);

/* Step into a part and back: size_t mark = collect_enter(c, key); …; collect_leave(c, mark). */
size_t collect_enter(struct collector *c, struct val key);
size_t collect_enter_name(struct collector *c, const char *name);
void collect_leave(struct collector *c, size_t mark);

/* A number, or a 0-dimensional tensor of one (one pread). */
bool collect_number(struct collector *c, struct val v, double *out);

/* Add a fact at the collector's place from a number, text, bool or scalar tensor. */
bool collect_fact(struct collector *c, enum fact_key key, int32_t group, struct val v);

/* A fact from the part of `v` under `name`, if it is there and is a value. */
bool collect_named(
	struct collector *c, enum fact_key key, int32_t group, struct val v, const char *name);

/*
 * The state of a torchdata StatefulDataLoader, by its keys: position, workers, generators. False
 * where it is none. Source: torchdata/stateful_dataloader/stateful_dataloader.py, releases 0.8 to
 * 0.11.
 */
bool collect_loader(struct collector *c, struct val v);

/* A loader's or sampler's state of whatever shape: its positions and streams, and at the least that
 * it is there. */
void collect_any_loader(struct collector *c, struct val v);

/* Of a tree of a user's own: random streams, loader states and positions, no counters and no
 * weights. */
void collect_data(struct collector *c, struct val v);

/* Walk a tree and take everything that is recognised by its shape or name. */
void collect_tree(struct collector *c, struct val v);

/* Take a value that is known to be one of these; false where its shape says otherwise. */
bool collect_optimizer(struct collector *c, struct val v);
bool collect_schedule(struct collector *c, struct val v);
bool collect_scaler(struct collector *c, struct val v);
bool collect_weights(struct collector *c, struct val v, enum tensor_role role);

/* A random stream by its shape. `name` is the nearest text key, which decides between look-alikes.
 */
bool collect_stream(struct collector *c, struct val v, struct slice name, int32_t device);

/* A weight index (model.safetensors.index.json): which shard holds which tensor. */
void collect_index(struct collector *c, struct val v);

/*
 * Take a file that holds one part and nothing else, as frameworks write them: optimizer, schedule,
 * scaler, weights, index, random streams. Other roles are a profile's own affair and are left
 * alone.
 */
void collect_role(struct collector *c, enum file_role role);

/* Settings: scalars of a dict or object become CONFIG facts, known names typed facts as well. */
void collect_config(struct collector *c, struct val v);

/*
 * What follows from all files together: the parameter count (tied weights once) and the ranks seen.
 * Every profile's finish() calls it.
 */
void collect_totals(struct collector *c);

/* Add a tensor at the collector's place; returns its index or NO_FILE. */
uint32_t collect_tensor(
	struct collector *c, const char *name, enum tensor_role role, const struct tensor *t);

#endif
