/* SPDX-License-Identifier: MIT */
/* What the files that read torch's formats have in common. */
#ifndef CONTAINER_TORCH_H
#define CONTAINER_TORCH_H

#include "base/error.h"
#include "base/slice.h"
#include "container/pickle.h"
#include "container/rebuild.h"

/* Whether the bytes begin as torch.save without zip does: a pickle of its magic number. */
bool torch_legacy_magic(struct slice head);

/*
 * Decode such a file that stands whole in memory, inside a pickle; its storages get inline bytes.
 * This is what torch.storage._load_from_bytes is given when tensors are pickled without torch.save.
 */
int torch_legacy_embedded(struct rebuild *r, struct slice bytes, struct val *root, struct error *e);

/*
 * A pickle could not be decoded: report it (where its bytes are to blame) and return the error,
 * with `part` in front. `cut` says that bytes are missing at the end, where the caller knows.
 */
int torch_pickle_failed(const struct document *d, struct findings *sink, const char *part, bool cut,
	const struct error *why, struct error *e);

/* Add the classes that a pickle found to the document's list; those of a first pickle are handed
 * over. */
void torch_take_classes(struct document *d, struct pickle *p);

#endif
