/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
/*
 * Plain PyTorch: whatever a training script saves with torch.save, pickle or safetensors. Nothing
 * is known of its layout; resume state is found by shape and name.
 */
#include "profile/collect.h"

static bool is_checkpoint_file(const char *member)
{
	static const char *const endings[] = {".pt", ".pth", ".ckpt", ".bin", ".pkl", ".pickle",
		".safetensors", ".chkpt", ".tar", ".npy", ".npz"};
	struct slice name = slice_of(member);

	for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++)
		if (slice_ends(name, slice_of(endings[i])))
			return true;
	return false;
}

/* One bit for a name that such a file would have: any profile that knows more wins. */
static unsigned recognise(const struct candidate *c, const struct listing *l)
{
	if (l->single)
		return 1;
	for (size_t i = 0; i < c->file_count; i++)
		if (is_checkpoint_file(candidate_member(c, &l->files.items[c->files[i]])))
			return 1;
	return 0;
}

static enum file_role classify(const char *member, int32_t *rank)
{
	struct slice name = slice_of(member);
	const char *slash = strrchr(member, '/');

	*rank = rank_in_name(slash ? slash + 1 : member);
	/* "rank_1/rng.pt": the nearest folder that names one. */
	for (const char *end = slash; *rank < 0 && end; end = slash) {
		slash = end == member ? NULL : memrchr(member, '/', (size_t)(end - member));
		const char *start = slash ? slash + 1 : member;
		char folder[256];
		if ((size_t)(end - start) >= sizeof folder)
			break;
		memcpy(folder, start, (size_t)(end - start));
		folder[end - start] = '\0';
		*rank = rank_in_name(folder);
	}
	if (slice_ends(name, SLICE(".tmp")) || slice_ends(name, SLICE(".part")))
		return FILE_LEFTOVER;
	/* Shards of torch.distributed.checkpoint are not read, and must be missed. */
	if (slice_ends(name, SLICE(".safetensors")) || slice_ends(name, SLICE(".distcp")))
		return FILE_WEIGHTS;
	if (slice_ends(name, SLICE(".index.json")))
		return FILE_INDEX;
	/* A single file is read whatever it is called; in a folder JSON files are rarely resume
	 * state. */
	if (slice_ends(name, SLICE(".json")))
		return slice_find(name, SLICE("state")) != SIZE_MAX ? FILE_COUNTERS : FILE_OTHER;
	if (slice_ends(name, SLICE(".txt")) || slice_ends(name, SLICE(".log")) ||
		slice_ends(name, SLICE(".md")) || slice_ends(name, SLICE(".py")) ||
		slice_ends(name, SLICE(".yaml")) || slice_ends(name, SLICE(".csv")))
		return FILE_OTHER;
	return is_checkpoint_file(member) ? FILE_WHOLE : FILE_OTHER;
}

/* What is known of scripts that save one dict of a shape of theirs. */
enum shape_flags {
	NOTHING_SPECIAL = 0,
	WITH_REPLACEMENT = 1,
	SCHEDULE_ANEW = 2,
	STEP_COUNTS_UPDATES = 4,
	AVERAGED_MODEL = 8,
};

static const struct shape {
	const char *title, *keys;
	unsigned flags;
} shapes[] = {
#define SHAPE(title, keys, flags, source) {title, keys, flags},
#include "profile/shapes.def"
#undef SHAPE
};

static bool has_keys(struct val v, const char *keys)
{
	while (*keys != '\0') {
		char key[64];
		size_t n = strcspn(keys, " ");
		memcpy(key, keys, n);
		key[n] = '\0';
		if (val_get(v, key).kind == VAL_ABSENT)
			return false;
		keys += n + (keys[n] == ' ');
	}
	return true;
}

static const struct shape *shape_of(struct val v)
{
	for (size_t i = 0; v.kind == VAL_DICT && i < sizeof shapes / sizeof shapes[0]; i++)
		if (has_keys(v, shapes[i].keys))
			return &shapes[i];
	return NULL;
}

/* Scalars that mean something in this shape alone. */
static void take_at(struct collector *c, struct val v, const char *key, enum fact_key fact)
{
	struct val part = val_get(v, key);

	if (part.kind != VAL_INT)
		return;
	size_t mark = collect_enter_name(c, key);
	collect_fact(c, fact, NO_GROUP, part);
	collect_leave(c, mark);
}

static void take_shape(struct collector *c, const struct shape *shape)
{
	struct origin known = collect_origin(c);
	struct state *s = c->state;

	known.how = HOW_ASSUMED;
	state_add_text(s, FACT_FRAMEWORK, NO_GROUP, slice_of(shape->title), known);
	static const struct {
		unsigned flag;
		enum fact_key key;
	} told[] = {
		{WITH_REPLACEMENT, FACT_REPLACEMENT},
		{SCHEDULE_ANEW, FACT_SCHEDULE_ANEW},
		{STEP_COUNTS_UPDATES, FACT_STEP_COUNTS_UPDATES},
	};
	for (size_t i = 0; i < sizeof told / sizeof told[0]; i++)
		if (shape->flags & told[i].flag)
			state_add_bool(s, told[i].key, NO_GROUP, true, known);
	if (!(shape->flags & AVERAGED_MODEL))
		return;
	take_at(c, c->doc->root, "updates", FACT_EMA_UPDATES);
	size_t mark = collect_enter_name(c, "train_args");
	take_at(c, val_get(c->doc->root, "train_args"), "batch", FACT_MICRO_BATCH);
	collect_leave(c, mark);
}

static void read_part(struct collector *c, enum file_role role)
{
	if (role != FILE_WHOLE && role != FILE_COUNTERS) {
		collect_role(c, role);
		return;
	}
	const struct shape *shape = shape_of(c->doc->root);
	collect_tree(c, c->doc->root);
	if (shape)
		take_shape(c, shape);
}

/* "model_2.pth" of epoch 2: where there is no step and the number is the epoch's, it names that. */
static void finish(struct collector *c)
{
	struct state *s = c->state;
	int64_t epoch;

	collect_totals(c);
	if (state_fact(s, FACT_STEP) || !state_int(s, FACT_EPOCH, &epoch))
		return;
	for (size_t i = 0; i < s->facts.count; i++) {
		struct fact *f = &s->facts.items[i];
		if (f->key == FACT_NAME_STEP && f->type == FACT_INT && f->i >= epoch &&
			f->i - epoch <= 1)
			f->key = FACT_NAME_EPOCH;
	}
}

const struct profile profile_pytorch = {
	.name = "pytorch",
	.title = "PyTorch",
	.recognise = recognise,
	.classify = classify,
	.read = read_part,
	.finish = finish,
	.fallback = true,
	.position = POSITION_UNKNOWN,
	.position_note = "the script decides where its data goes on",
	.host_ranks = RANKS_FREE,
	.device_ranks = RANKS_FREE,
};
