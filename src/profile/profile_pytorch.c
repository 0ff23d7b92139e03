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
		".safetensors", ".chkpt", ".tar"};
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
	if (slice_ends(name, SLICE(".safetensors")))
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

static void read_part(struct collector *c, enum file_role role)
{
	if (role == FILE_WHOLE || role == FILE_COUNTERS)
		collect_tree(c, c->doc->root);
	else
		collect_role(c, role);
}

const struct profile profile_pytorch = {
	.name = "pytorch",
	.title = "PyTorch",
	.recognise = recognise,
	.classify = classify,
	.read = read_part,
	.finish = collect_totals,
	.fallback = true,
	.position = POSITION_UNKNOWN,
	.position_note = "the script decides where its data goes on",
	.host_ranks = RANKS_FREE,
	.device_ranks = RANKS_FREE,
};
