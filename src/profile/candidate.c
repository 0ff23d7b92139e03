/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "profile/candidate.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/source.h"
#include "base/text.h"
#include "container/foreign.h"
#include "profile/folders.h"
#include "profile/profile.h"
#include "state/snapshot.h"

#define POINTER_BYTES 4096u
#define CANDIDATES_MAX 1000000u
#define HEAD_BYTES 64u
#define SURE_BITS 10u /* a framework's own file names, not just an extension */
#define COUNT(array) (sizeof(array) / sizeof(array)[0])

void candidates_release(struct candidates *c)
{
	array_release(&c->list);
	array_release(&c->pointers);
	arena_release(&c->arena);
}

const char *candidate_member(const struct candidate *c, const struct listed *file)
{
	size_t skip = strlen(c->base);
	return skip ? file->path + skip + 1 : file->path;
}

/* Whether a file is a snapshot: its first bytes tell. */
static bool is_snapshot(const struct listing *l, const struct listed *file)
{
	char head[HEAD_BYTES];
	struct source s;
	size_t n = 0;

	if (!file->regular || source_open(&s, l->dirfd, file->path, NULL) < 0)
		return false;
	int status = source_read_some(&s, 0, head, sizeof head, &n, NULL);
	source_close(&s);
	return status == RP_OK && snapshot_begins((struct slice){head, n});
}

static struct candidate *add(struct candidates *c, const struct listing *l, const char *name,
	uint32_t dir, const uint32_t *files, size_t count)
{
	struct candidate *added = array_push(&c->list, CANDIDATES_MAX);

	if (!added)
		return NULL;
	added->name = name;
	added->dir = dir;
	added->base = l->dirs.count ? l->dirs.items[dir].path : "";
	added->files = arena_array(&c->arena, count, sizeof *files);
	if (!added->files) {
		c->list.count--;
		return NULL;
	}
	memcpy(added->files, files, count * sizeof *files);
	added->file_count = count;
	added->step = step_in_name(name);
	added->place = added->step < 0 ? place_in_name(name) : -1;
	for (size_t i = 0; i < count; i++) {
		const struct listed *file = &l->files.items[files[i]];
		added->bytes += file->size;
		if (file->mtime_ns > added->mtime_ns)
			added->mtime_ns = file->mtime_ns;
	}
	struct slice text = slice_of(name);
	added->leftover = slice_starts(text, SLICE("tmp")) || slice_starts(text, SLICE(".tmp")) ||
			  slice_ends(text, SLICE(".tmp")) ||
			  slice_ends(text, SLICE(".incomplete")) ||
			  slice_ends(text, SLICE("-tmp")) || slice_ends(text, SLICE(".part"));
	profile_bits(added, l, &added->profile);
	c->checkpoints = c->checkpoints || added->profile;
	return added;
}

static bool is_pointer_name(const char *name)
{
	static const char *const names[] = {"latest", "latest.txt", "last_checkpoint", "checkpoint",
		"latest_checkpoint", "latest_checkpoint.txt", "latest_checkpointed_iteration.txt",
		"last_checkpoint.txt", "latest_universal"};

	for (size_t i = 0; i < COUNT(names); i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return false;
}

/* A pointer is a small text file, or a link, that names a checkpoint beside it. */
static void take_pointer(struct candidates *c, const struct listing *l, const struct listed *file)
{
	char text[POINTER_BYTES];
	struct source s;
	size_t n = 0;

	if (!file->regular || file->size == 0 || file->size > sizeof text ||
		source_open(&s, l->dirfd, file->path, NULL) < 0)
		return;
	int status = source_read_some(&s, 0, text, sizeof text, &n, NULL);
	source_close(&s);
	if (status < 0)
		return;
	while (n > 0 && isspace((unsigned char)text[n - 1]))
		n--;
	struct slice target = {text, n};
	if (n == 0 || !text_is_utf8(target) || memchr(text, '\0', n) || memchr(text, '\n', n))
		return;
	struct pointer *p = array_push(&c->pointers, CANDIDATES_MAX);
	if (!p)
		return;
	p->file = file->path;
	p->target = arena_strdup(&c->arena, target);
	if (!p->target)
		c->pointers.count--;
}

/*
 * A name with its step number cut out, so that files of one family compare equal: "step_#.pt".
 * Ranks stay in, so that the files of one step are gathered by the step alone.
 */
static bool same_family(const char *a, const char *b)
{
	while (*a && *b) {
		if (isdigit((unsigned char)*a) && isdigit((unsigned char)*b)) {
			while (isdigit((unsigned char)*a))
				a++;
			while (isdigit((unsigned char)*b))
				b++;
		} else if (*a++ != *b++) {
			return false;
		}
	}
	return *a == *b;
}

static bool has_checkpoint_extension(const char *name)
{
	static const char *const endings[] = {".pt", ".pth", ".ckpt", ".bin", ".pkl", ".pickle",
		".safetensors", ".tar", ".chkpt", ".distcp"};
	struct slice text = slice_of(name);

	for (size_t i = 0; i < COUNT(endings); i++)
		if (slice_ends(text, slice_of(endings[i])))
			return true;
	return false;
}

/* A file's place in a series of single-file checkpoints: its step, or else what orders it. */
struct series {
	bool member, step;
	int64_t value;
};

static struct series file_series(const struct listed *file)
{
	struct series at = {.member = has_checkpoint_extension(file->name)};

	if (!at.member)
		return at;
	at.value = step_in_name(file->name);
	at.step = at.value >= 0;
	if (!at.step)
		at.value = place_in_name(file->name);
	at.member = at.value >= 0;
	return at;
}

static bool same_place(struct series a, struct series b)
{
	return a.member && b.member && a.step == b.step && a.value == b.value;
}

/* Words that stand for "the newest" or "the best one so far" in the names of whole checkpoints. */
static const char *const marks[] = {"best", "last", "latest", "final"};
/* Words that say no more than that a file is a checkpoint. */
static const char *const plain_words[] = {
	"best", "last", "latest", "final", "model", "checkpoint", "ckpt", "epoch", "step"};

/*
 * The words of a name without those that any whole checkpoint may have, without digits and
 * punctuation: "model_best.pth.tar" and "checkpoint.pth.tar" have the same.
 */
static void stem_of(const char *name, char *out, size_t size, bool *marked)
{
	size_t n = 0;

	*marked = false;
	while (*name) {
		size_t length = 0;
		while (isalpha((unsigned char)name[length]))
			length++;
		if (length == 0) {
			name++;
			continue;
		}
		bool plain = false;
		for (size_t i = 0; i < COUNT(plain_words); i++)
			plain |= strlen(plain_words[i]) == length &&
				 strncasecmp(name, plain_words[i], length) == 0;
		for (size_t i = 0; i < COUNT(marks); i++)
			*marked |= strlen(marks[i]) == length &&
				   strncasecmp(name, marks[i], length) == 0;
		for (size_t i = 0; !plain && i < length && n + 2 < size; i++)
			out[n++] = name[i];
		if (!plain && n + 1 < size)
			out[n++] = ' ';
		name += length;
	}
	out[n] = '\0';
}

/* Whether one of two files is the best or the last so far, and the other the same kind of file. */
static bool marked_pair(const struct listed *a, const struct listed *b)
{
	char one[256], two[256];
	bool marked_a, marked_b;

	if (!has_checkpoint_extension(a->name) || !has_checkpoint_extension(b->name))
		return false;
	stem_of(a->name, one, sizeof one, &marked_a);
	stem_of(b->name, two, sizeof two, &marked_b);
	return (marked_a || marked_b) && strcmp(one, two) == 0;
}

/*
 * Two files of one family with different steps (or epochs, or dates) make a folder a root of
 * single-file checkpoints, and so does a best or last one beside another.
 */
static bool holds_family(const struct listing *l, const uint32_t *own, size_t count)
{
	const struct listed *first = NULL, *plain = NULL;

	for (size_t i = 0; i < count; i++) {
		const struct listed *file = &l->files.items[own[i]];
		struct series at = file_series(file);
		if (at.member) {
			if (!first)
				first = file;
			else if (same_family(first->name, file->name) &&
				 !same_place(file_series(first), at))
				return true;
		}
		if (!has_checkpoint_extension(file->name))
			continue;
		if (!plain)
			plain = file;
		else if (marked_pair(plain, file))
			return true;
	}
	return false;
}

/* Whether two files with the same place in a series are parts of one checkpoint: ranks, or a model
 * and its optimizer. */
static bool parts_of_one(const struct listed *a, const struct listed *b)
{
	static const char *const whole[] = {"checkpoint", "ckpt"};
	bool marked_a, marked_b;
	char stem[256];

	/* The folders of ranks. */
	if (a->dir != b->dir)
		return true;
	if (rank_in_name(a->name) >= 0 || rank_in_name(b->name) >= 0)
		return true;
	if (same_family(a->name, b->name))
		return false;
	stem_of(a->name, stem, sizeof stem, &marked_a);
	stem_of(b->name, stem, sizeof stem, &marked_b);
	if (marked_a || marked_b)
		return false;
	for (size_t i = 0; i < COUNT(whole); i++)
		if (strstr(a->name, whole[i]) || strstr(b->name, whole[i]))
			return false;
	return true;
}

/* A file among those of a folder. */
struct relative {
	uint32_t file; /* index in the listing */
	struct series at;
	const char *stem; /* of a checkpoint's name, else "" */
	bool checkpoint;  /* by its extension */
	bool marked, alone, taken;
};

static int compare_stems(const void *pa, const void *pb)
{
	const struct relative *a = pa, *b = pb;
	int order = (a->checkpoint > b->checkpoint) - (a->checkpoint < b->checkpoint);

	return order ? order : strcmp(a->stem, b->stem);
}

static int compare_series(const void *pa, const void *pb)
{
	const struct relative *a = pa, *b = pb;
	int order = (a->at.member > b->at.member) - (a->at.member < b->at.member);

	if (order == 0 && a->at.member)
		order = (a->at.step > b->at.step) - (a->at.step < b->at.step);
	if (order == 0 && a->at.member)
		order = (a->at.value > b->at.value) - (a->at.value < b->at.value);
	return order ? order : (a->file > b->file) - (a->file < b->file);
}

/* Of files with one stem, each is a whole checkpoint where it is the best or the last, or another
 * is. */
static void mark_alone(struct relative *group, size_t count)
{
	size_t marked = 0;

	for (size_t i = 0; i < count; i++)
		marked += group[i].marked;
	for (size_t i = 0; i < count; i++)
		group[i].alone =
			group[i].at.member || (group[i].checkpoint && count > 1 && marked > 0);
}

/* The checkpoints that the files of one group are. O(count^2) where they are of many, at the worst.
 */
static bool add_group(struct candidates *c, const struct listing *l, uint32_t dir,
	struct relative *group, size_t count, uint32_t *files)
{
	for (size_t i = 0; i < count; i++) {
		const struct listed *file = &l->files.items[group[i].file];
		size_t members = 0;
		if (group[i].taken || !group[i].alone)
			continue;
		files[members++] = group[i].file;
		for (size_t k = i + 1; group[i].at.member && k < count; k++) {
			const struct listed *other = &l->files.items[group[k].file];
			if (group[k].taken || !parts_of_one(file, other))
				continue;
			group[k].taken = true;
			files[members++] = group[k].file;
		}
		if (!add(c, l, file->name, dir, files, members))
			return false;
	}
	return true;
}

/*
 * The single-file checkpoints of a folder, one candidate a step. Files that share a step are one
 * checkpoint if their names tell ranks or parts apart, else each is one of its own. O(n log n).
 */
static bool add_family(struct candidates *c, const struct listing *l, uint32_t dir,
	const uint32_t *own, size_t count)
{
	struct relative *all = arena_array(&c->arena, count + 1, sizeof *all);
	uint32_t *files = arena_array(&c->arena, count + 1, sizeof *files);
	char stem[256];

	if (!all || !files)
		return false;
	for (size_t i = 0; i < count; i++) {
		const struct listed *file = &l->files.items[own[i]];
		all[i] = (struct relative){.file = own[i],
			.at = file_series(file),
			.stem = "",
			.checkpoint = has_checkpoint_extension(file->name)};
		if (!all[i].checkpoint)
			continue;
		stem_of(file->name, stem, sizeof stem, &all[i].marked);
		all[i].stem = arena_strdup(&c->arena, slice_of(stem));
		if (!all[i].stem)
			return false;
	}
	qsort(all, count, sizeof *all, compare_stems);
	for (size_t i = 0, end; i < count; i = end) {
		for (end = i + 1; end < count && compare_stems(&all[i], &all[end]) == 0;)
			end++;
		mark_alone(&all[i], end - i);
	}
	qsort(all, count, sizeof *all, compare_series);
	for (size_t i = 0, end; i < count; i = end) {
		for (end = i + 1; end < count && same_place(all[i].at, all[end].at);)
			end++;
		if (!add_group(c, l, dir, &all[i], end - i, files))
			return false;
	}
	return true;
}

/* ---- folders of ranks --------------------------------------------------------------------------
 */

static bool is_rank_folder(const struct folders *t, uint32_t d)
{
	return rank_in_name(t->l->dirs.items[d].name) >= 0 && t->start[d] < t->start[d + 1];
}

/*
 * The folder of a rank behind `after` (0: the first) among those in a folder: one that holds files,
 * and is called as the first of them but for the number. 0: no more.
 */
static uint32_t next_rank(const struct folders *t, uint32_t dir, uint32_t after)
{
	const struct listed_dir *dirs = t->l->dirs.items;
	uint32_t first = t->child[dir];

	while (first && !is_rank_folder(t, first))
		first = t->next[first];
	uint32_t d = after ? t->next[after] : first;
	while (d && !(is_rank_folder(t, d) && same_family(dirs[first].name, dirs[d].name)))
		d = t->next[d];
	return d;
}

/* Whether a checkpoint's file in one folder has one of its name in the other. */
static bool share_a_name(const struct folders *t, uint32_t one, uint32_t other)
{
	const char *folder = t->l->dirs.items[other].path;
	char path[4096];

	for (uint32_t i = t->start[one]; i < t->start[one + 1]; i++) {
		const char *name = t->l->files.items[t->files[i]].name;
		if (has_checkpoint_extension(name) &&
			snprintf(path, sizeof path, "%s/%s", folder, name) < (int)sizeof path &&
			listing_find(t->l, path))
			return true;
	}
	return false;
}

/*
 * How many folders of ranks lie in a folder ("rank0", "rank1"): of one name but for the number, and
 * the first two with checkpoints that are called alike. What they hold belongs together, file by
 * file. 0 where there are none.
 */
static uint32_t rank_folders(const struct folders *t, uint32_t dir)
{
	uint32_t first = next_rank(t, dir, 0), second = first ? next_rank(t, dir, first) : 0;
	uint32_t count = 0;

	if (!second || !share_a_name(t, first, second))
		return 0;
	for (uint32_t d = first; d; d = next_rank(t, dir, d))
		count++;
	return count;
}

/* The files in a folder's folders of ranks, into t->out. */
static size_t rank_files(const struct folders *t, uint32_t dir)
{
	size_t count = 0;

	for (uint32_t d = next_rank(t, dir, 0); d; d = next_rank(t, dir, d))
		count = folders_files_of(t, d, count);
	return count;
}

/* The checkpoints whose files lie in folders of ranks: one a step, or the folder above as a whole.
 */
static bool add_ranks(struct candidates *c, const struct folders *t, uint32_t dir, uint32_t ranks)
{
	size_t count = rank_files(t, dir), before = c->list.count;

	if (!holds_family(t->l, t->out, count)) {
		struct candidate *added = add(c, t->l, t->l->dirs.items[dir].name, dir, t->out,
			folders_files_below(t, dir, true));
		if (added)
			added->is_dir = true;
		return added;
	}
	if (!add_family(c, t->l, dir, t->out, count))
		return false;
	for (size_t i = before; i < c->list.count; i++)
		c->list.items[i].ranks = ranks;
	return true;
}

static int compare_candidates(const void *pa, const void *pb)
{
	const struct candidate *a = pa, *b = pb;

	if (a->step != b->step)
		return a->step < b->step ? -1 : 1;
	if (a->place != b->place)
		return a->place < b->place ? -1 : 1;
	return text_natural_compare(slice_of(a->path), slice_of(b->path));
}

/* Give each candidate the path that a person would type, and the folder it lies in. */
static bool name_paths(struct candidates *c, const struct listing *l)
{
	const char *slash = slice_ends(slice_of(l->root), SLICE("/")) ? "" : "/";

	for (size_t i = 0; i < c->list.count; i++) {
		struct candidate *k = &c->list.items[i];
		const struct listed_dir *dir = &l->dirs.items[k->dir];
		k->holder = arena_printf(
			&c->arena, "%s%s%s", l->root, *dir->path ? slash : "", dir->path);
		if (k->is_dir) {
			k->path = arena_printf(&c->arena, "%s%s%s", l->root, slash, dir->path);
			k->folder = l->dirs.items[dir->parent].path;
		} else {
			/* Of files in the folders of ranks, the first one's. */
			k->path = arena_printf(&c->arena, "%s%s%s", l->root, slash,
				l->files.items[k->files[0]].path);
			/* A history is of the line beside which it lies. */
			bool history = k->snapshot && strcmp(dir->name, HISTORY_FOLDER) == 0;
			k->folder = history ? l->dirs.items[dir->parent].path : dir->path;
		}
		if (!k->path || !k->holder)
			return false;
	}
	return true;
}

/* The path itself as one checkpoint: a file, or a folder that a profile knows. */
static bool find_self(struct candidates *c, const struct folders *t)
{
	const struct listing *l = t->l;
	uint32_t *files = t->out;
	size_t count = l->single ? 1 : folders_files_below(t, 0, true);
	const char *name = l->single ? l->files.items[0].name : l->dirs.items[0].name;

	files[0] = l->single ? 0 : files[0];
	struct candidate *self = add(c, l, name, 0, files, count);
	if (!self)
		return false;
	self->path = self->holder = l->root;
	self->is_dir = !l->single;
	self->folder = "";
	self->snapshot = l->single && is_snapshot(l, &l->files.items[0]);
	if (self->profile || self->snapshot)
		return true;
	c->list.count--;
	return false;
}

/*
 * Whether the folder is one checkpoint rather than a root: some profile knows it by its own files,
 * and it is neither a family of single-file checkpoints nor the parent of folders with steps in
 * their names. A Trainer's output folder holds the final model beside the checkpoints; DeepSpeed
 * puts global_step30 into checkpoint-30.
 */
static bool is_checkpoint(const struct folders *t)
{
	const struct listing *l = t->l;
	uint32_t *files = t->out;
	size_t own = folders_files_below(t, 0, false);
	struct candidate self = {
		.name = l->dirs.items[0].name, .base = "", .files = files, .file_count = own};
	bool parent = false;

	self.step = step_in_name(self.name);
	unsigned bits = profile_bits(&self, l, &self.profile);
	if (bits == 0 && rank_folders(t, 0) > 1)
		return !holds_family(l, files, rank_files(t, 0));
	if (own == 0 || (bits < SURE_BITS && holds_family(l, files, own)))
		return false;
	for (uint32_t d = 1; d < l->dirs.count; d++)
		parent = parent ||
			 (l->dirs.items[d].parent == 0 && step_in_name(l->dirs.items[d].name) >= 0);
	return bits >= SURE_BITS || (bits > 0 && !parent);
}

/* Snapshots among the checkpoints of a root: by their extension, then by their first bytes. Those
 * in a checkpoint's folder are that folder's own affair. */
static bool add_snapshots(struct candidates *c, const struct listing *l, const bool *inside)
{
	for (uint32_t i = 0; i < l->files.count; i++) {
		const struct listed *file = &l->files.items[i];
		if (!slice_ends(slice_of(file->name), SLICE(SNAPSHOT_EXTENSION)) ||
			(file->dir > 0 && inside[file->dir]) || !is_snapshot(l, file))
			continue;
		struct candidate *added = add(c, l, file->name, file->dir, &i, 1);
		if (!added)
			return false;
		added->snapshot = true;
	}
	return true;
}

/* A root: every folder that some profile knows or that has a step's name, outermost first. */
static bool find_below(struct candidates *c, const struct folders *t)
{
	const struct listing *l = t->l;
	uint32_t *files = t->out;
	bool *inside = arena_array(&c->arena, l->dirs.count + 1, sizeof *inside);

	for (uint32_t d = 0; inside && d < l->dirs.count; d++) {
		const struct listed_dir *dir = &l->dirs.items[d];
		if (d > 0 && (inside[d] || inside[dir->parent])) {
			inside[d] = true;
			continue;
		}
		size_t count = folders_files_below(t, d, false);
		struct candidate own = {.name = dir->name,
			.base = dir->path,
			.files = files,
			.file_count = count,
			.step = -1};
		unsigned bits = profile_bits(&own, l, &own.profile);
		if (bits < SURE_BITS && holds_family(l, files, count)) {
			if (!add_family(c, l, d, files, count))
				return false;
			inside[d] = d > 0;
			continue;
		}
		uint32_t ranks = bits == 0 ? rank_folders(t, d) : 0;
		if (ranks > 1) {
			if (!add_ranks(c, t, d, ranks))
				return false;
			for (uint32_t k = next_rank(t, d, 0); k; k = next_rank(t, d, k))
				inside[k] = true;
			continue;
		}
		/* Notes, logs and settings beside a folder of checkpoints make none of their
		 * parent. */
		if (d == 0 || (step_in_name(dir->name) < 0 && bits == 0))
			continue;
		count = folders_files_below(t, d, true);
		struct candidate *added = add(c, l, dir->name, d, files, count);
		if (!added)
			return false;
		added->is_dir = true;
		if (added->profile)
			inside[d] = true;
		else
			c->list.count--;
	}
	return inside && add_snapshots(c, l, inside);
}

/* Say what is there instead of a checkpoint. */
static int none_found(const struct listing *l, struct error *e)
{
	if (l->files.count == 0)
		return fail(e, RP_E_NOT_FOUND, ERROR_NO_OFFSET,
			"no checkpoint found: there is no file in it");
	for (size_t i = 0; i < l->files.count; i++) {
		const char *path = l->files.items[i].path;
		const struct foreign *is = foreign_by_name(path);
		if (is)
			return fail(e, RP_E_NOT_FOUND, ERROR_NO_OFFSET,
				"no checkpoint that reprise reads: %.80s is %s%s%s", path, is->what,
				is->remedy ? "; " : "", is->remedy ? is->remedy : "");
	}
	return fail(e, RP_E_NOT_FOUND, ERROR_NO_OFFSET,
		"no checkpoint found: %zu file%s in %zu folder%s, none of a layout that reprise knows",
		l->files.count, l->files.count == 1 ? "" : "s", l->dirs.count,
		l->dirs.count == 1 ? "" : "s");
}

int candidates_find(struct candidates *c, const struct listing *l, struct error *e)
{
	*c = (struct candidates){0};
	arena_init(&c->arena, (size_t)256 << 20);
	struct folders t;
	if (!folders_make(&t, &c->arena, l))
		return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for a list of %zu files",
			l->files.count);
	if (l->single || is_checkpoint(&t)) {
		if (find_self(c, &t))
			return RP_OK;
		return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory");
	}
	c->root = true;
	if (!find_below(c, &t) || !name_paths(c, l))
		return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for a list of checkpoints");
	for (uint32_t i = 0; i < l->files.count; i++)
		if (l->files.items[i].dir == 0 && is_pointer_name(l->files.items[i].name))
			take_pointer(c, l, &l->files.items[i]);
	if (c->list.count == 0)
		return none_found(l, e);
	qsort(c->list.items, c->list.count, sizeof *c->list.items, compare_candidates);
	return RP_OK;
}

/* The candidate of a root whose one file this is, by inode; NULL where there is none. */
static struct candidate *same_snapshot(
	struct candidates *c, const struct listing *l, const struct listed *file)
{
	for (size_t i = 0; i < c->list.count; i++) {
		struct candidate *k = &c->list.items[i];
		const struct listed *own =
			k->snapshot && !k->kept ? &l->files.items[k->files[0]] : NULL;
		if (own && own->inode == file->inode && own->size == file->size &&
			own->mtime_ns == file->mtime_ns)
			return k;
	}
	return NULL;
}

bool candidates_add_kept(struct candidates *c, const struct listing *l, const struct listing *kept)
{
	const char *slash = slice_ends(slice_of(kept->root), SLICE("/")) ? "" : "/";

	for (uint32_t i = 0; i < kept->files.count; i++) {
		const struct listed *file = &kept->files.items[i];
		if (!slice_ends(slice_of(file->name), SLICE(SNAPSHOT_EXTENSION)) ||
			!is_snapshot(kept, file))
			continue;
		struct candidate *k = same_snapshot(c, l, file);
		const char *folder = kept->dirs.items[file->dir].path;
		if (k) {
			k->folder = folder;
			continue;
		}
		bool checkpoints = c->checkpoints;
		k = add(c, kept, file->name, file->dir, &i, 1);
		if (!k)
			return false;
		c->checkpoints = checkpoints;
		k->snapshot = k->kept = true;
		k->path = arena_printf(&c->arena, "%s%s%s", kept->root, slash, file->path);
		k->holder = kept->root;
		k->folder = folder;
		if (!k->path)
			return false;
	}
	return true;
}
