/* SPDX-License-Identifier: MIT */
#include "profile/collect_parts.h"

#include <math.h>

#include "value/path.h"

struct origin collect_origin(const struct collector *c)
{
	return (struct origin){
		.file = c->file, .path = strbuf_text(&c->path), .rank = c->rank, .how = HOW_READ};
}

size_t collect_enter(struct collector *c, struct val key)
{
	size_t mark = c->path.n;
	path_add_key(&c->path, key);
	return mark;
}

size_t collect_enter_name(struct collector *c, const char *name)
{
	return collect_enter(c, val_text(slice_of(name)));
}

void collect_leave(struct collector *c, size_t mark)
{
	strbuf_truncate(&c->path, mark);
}

bool collect_number(struct collector *c, struct val v, double *out)
{
	if (val_to_double(v, out))
		return true;
	return v.kind == VAL_TENSOR && v.tensor->numel == 1 && c->doc &&
	       tensor_read_double(c->doc, v.tensor, 0, out, NULL) == RP_OK;
}

bool collect_fact(struct collector *c, enum fact_key key, int32_t group, struct val v)
{
	double number;

	if (v.kind != VAL_TENSOR)
		return state_add_value(c->state, key, group, v, collect_origin(c));
	if (!collect_number(c, v, &number))
		return false;
	if (fabs(number) < 9e15 && number == floor(number))
		state_add_int(c->state, key, group, (int64_t)number, collect_origin(c));
	else
		state_add_real(c->state, key, group, number, collect_origin(c));
	return true;
}

bool collect_named(
	struct collector *c, enum fact_key key, int32_t group, struct val v, const char *name)
{
	struct val part = val_get(v, name);

	if (part.kind == VAL_ABSENT)
		return false;
	size_t mark = collect_enter_name(c, name);
	bool taken = collect_fact(c, key, group, part);
	collect_leave(c, mark);
	return taken;
}

/* ---- tensors ----------------------------------------------------------------------------------
 */

uint32_t collect_storage(struct collector *c, struct storage *storage)
{
	while (c->storages.count <= storage->index) {
		uint32_t *slot = array_push(&c->storages, COLLECT_ROWS_MAX);
		if (!slot) {
			c->state->no_memory = true;
			return NO_FILE;
		}
		*slot = NO_FILE;
	}
	uint32_t *row = &c->storages.items[storage->index];
	if (*row != NO_FILE)
		return *row;
	struct state_storage *s = array_push(&c->state->storages, COLLECT_ROWS_MAX);
	if (!s) {
		c->state->no_memory = true;
		return NO_FILE;
	}
	/* The document goes when it was looked through, so this is the moment to ask it for the
	 * place. */
	bool readable = !storage->inline_bytes && !storage->compressed && !storage->missing;
	if (readable)
		readable = document_locate(c->doc, storage, c->sink, NULL) == RP_OK;
	*s = (struct state_storage){
		.file = c->file,
		.offset = readable ? storage->offset : UINT64_MAX,
		.length = storage->length,
		.crc = storage->crc,
		.crc_known = storage->crc_known,
		.big_endian = storage->big_endian,
	};
	*row = (uint32_t)(c->state->storages.count - 1);
	return *row;
}

/* Sizes or strides in the state's arena; NULL without memory, and where there are none. */
static const int64_t *copy_sizes(struct collector *c, const int64_t *sizes, unsigned n)
{
	int64_t *copy = n ? arena_array(&c->state->arena, n, sizeof *copy) : NULL;

	if (copy)
		memcpy(copy, sizes, n * sizeof *copy);
	return copy;
}

uint32_t collect_tensor(
	struct collector *c, const char *name, enum tensor_role role, const struct tensor *t)
{
	struct state_tensor *row = array_push(&c->state->tensors, COLLECT_ROWS_MAX);
	bool contiguous = tensor_is_contiguous(t), lazy = t->negative || t->conjugate;
	const int64_t *shape = copy_sizes(c, t->shape, t->ndim);
	const int64_t *stride = contiguous ? NULL : copy_sizes(c, t->stride, t->ndim);

	if (!row || (t->ndim && !shape) || (!contiguous && !stride)) {
		c->state->no_memory = true;
		return NO_FILE;
	}
	uint32_t storage = t->storage ? collect_storage(c, t->storage) : NO_FILE;
	if (t->storage && role == TENSOR_WEIGHT)
		c->state->on_cuda |= slice_starts(t->storage->device, SLICE("cuda"));
	/* collect_storage() may have moved nothing of `row`: it grows another table. */
	*row = (struct state_tensor){
		.name = state_text(c->state, slice_of(name)),
		.shape = shape,
		.stride = stride,
		.file = c->file,
		.storage = storage,
		.first = t->first,
		.numel = t->numel,
		.rank = c->rank,
		.ndim = t->ndim,
		.dtype = t->dtype,
		.role = (uint8_t)role,
		.whole = t->storage && t->first == 0 && contiguous && !lazy &&
			 t->numel * dtype_size(t->dtype) == t->storage->length,
		.lazy = lazy,
	};
	return (uint32_t)(c->state->tensors.count - 1);
}

void collect_index(struct collector *c, struct val v)
{
	struct val map = val_get(v, "weight_map"), key;
	const char *last = NULL;

	for (uint64_t i = 0; i < val_count(map); i++) {
		struct val file = val_part(map, i, &key);
		if (key.kind != VAL_TEXT || file.kind != VAL_TEXT)
			continue;
		struct placement *p = array_push(&c->state->placements, COLLECT_ROWS_MAX);
		if (!p) {
			c->state->no_memory = true;
			return;
		}
		/* Neighbours lie in the same shard: its name is kept once. */
		if (!last || !slice_is(val_slice(file), last))
			last = state_text(c->state, val_slice(file));
		*p = (struct placement){.tensor = state_text(c->state, val_slice(key)),
			.file = last,
			.index = c->file};
	}
}

void collect_role(struct collector *c, enum file_role role)
{
	struct val root = c->doc->root;

	switch (role) {
	case FILE_OPTIMIZER:
		collect_optimizer(c, root);
		break;
	case FILE_SCHEDULER:
		collect_schedule(c, root);
		break;
	case FILE_SCALER:
		collect_scaler(c, root);
		break;
	case FILE_WEIGHTS:
		collect_weights(c, root, TENSOR_WEIGHT);
		break;
	case FILE_INDEX:
		collect_index(c, root);
		break;
	case FILE_RNG:
		collect_tree(c, root);
		break;
	default:
		break;
	}
}
