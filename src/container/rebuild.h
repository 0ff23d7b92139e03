/* SPDX-License-Identifier: MIT */
/*
 * What a decoded pickle means: the calls that torch and numpy leave in pickles to make their
 * tensors, arrays, scalars, sizes and devices become the values that those calls would make.
 * Nothing is called. Sources: torch/_utils.py, torch/_tensor.py, torch/storage.py;
 * numpy/_core/src/multiarray/methods.c, descriptor.c, numpy/_core/numeric.py.
 */
#ifndef CONTAINER_REBUILD_H
#define CONTAINER_REBUILD_H

#include "base/array.h"
#include "base/error.h"
#include "container/document.h"
#include "finding/finding.h"
#include "value/value.h"

/* What a persistent id says of a storage. */
struct storage_ref {
	struct storage *storage; /* NULL: on the meta device, without bytes */
	uint64_t first;          /* elements that a view of the storage starts behind its begin */
	uint64_t numel;          /* elements of the whole storage, as the id has it */
	enum dtype dtype;
	struct slice key, device;
};

/*
 * Find or make the storage that a reference names (`key`, `dtype`, `device` and `numel` are filled
 * in) and set ref->storage.
 */
typedef int rebuild_find_fn(void *context, struct storage_ref *ref, struct error *e);

struct rebuild_frame;

struct rebuild {
	struct document *document;
	struct findings *sink;
	rebuild_find_fn *find; /* NULL: persistent ids stay as they are */
	void *context;
	ARRAY(struct storage_ref) refs;
	ARRAY(struct rebuild_frame) frames; /* where the walk is */
	uint64_t embedded; /* bytes of torch files inside the pickle decoded so far */
	unsigned depth;    /* of such files in each other */
	unsigned nesting;  /* of calls in the arguments of calls */
};

void rebuild_init(struct rebuild *r, struct document *d, struct findings *sink);
void rebuild_release(struct rebuild *r);

/* The pickle_persistent_fn that understands torch's ids; its context is the struct rebuild. */
int rebuild_persistent(void *rebuild, struct val id, struct val *out, struct error *e);

/*
 * Read ('storage', class, key, device, numel), in legacy files followed by None or (view key,
 * offset, numel). False where it is anything else. ref->storage stays NULL.
 */
bool rebuild_read_id(struct val id, struct storage_ref *ref);

/*
 * Report the storages whose length is not what the persistent ids promise. Call it once all lengths
 * are known.
 */
int rebuild_check_storages(struct rebuild *r, struct error *e);

/*
 * Replace what can be replaced in the whole graph below *root, each node once. Seals every node.
 * What contradicts itself or its storage is a finding and stays an object.
 */
int rebuild_graph(struct rebuild *r, struct val *root, struct error *e);

#endif
