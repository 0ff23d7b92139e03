/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "profile/candidate.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/source.h"
#include "base/text.h"
#include "profile/profile.h"
#include "state/snapshot.h"

#define POINTER_BYTES 4096u
#define CANDIDATES_MAX 1000000u
#define HEAD_BYTES 64u
#define HISTORY ".reprise" /* the folder of snapshots beside the checkpoints of a line */
#define SURE_BITS 10u      /* a framework's own file names, not just an extension */

/* Words in front of a number, the nearest first. Words that are not listed leave the number
 * unnamed. */
static const char *const step_words[] = {"step", "checkpoint", "ckpt", "iter", "iteration",
	"global_step", "ba", "it", "update", "steps"};
static const char *const rank_words[] = {"rank", "dp", "tp", "pp", "mp", "shard", "worker", "gpu",
	"proc", "process", "node", "rng_state", "random_states", "part"};

static bool word_before(struct slice name, size_t at, const char *const *words, size_t count)
{
	/* Between a word and its number: nothing, or one of - _ = . */
	if (at > 0 && strchr("-_=.", name.p[at - 1]))
		at--;
	for (size_t i = 0; i < count; i++) {
		struct slice word = slice_of(words[i]);
		if (at < word.n || strncasecmp(name.p + at - word.n, word.p, word.n) != 0)
			continue;
		if (at == word.n || !isalpha((unsigned char)name.p[at - word.n - 1]))
			return true;
	}
	return false;
}

/* Each run of digits in a name. */
struct number {
	size_t at, end;
	uint64_t value;
};

static bool next_number(struct slice name, size_t from, struct number *out)
{
	size_t at = from;

	while (at < name.n && !isdigit((unsigned char)name.p[at]))
		at++;
	if (at == name.n)
		return false;
	size_t end = at;
	while (end < name.n && isdigit((unsigned char)name.p[end]))
		end++;
	*out = (struct number){.at = at, .end = end};
	if (!text_parse_u64((struct slice){name.p + at, end - at}, INT64_MAX, &out->value))
		out->value = UINT64_MAX;
	return true;
}

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* Digits, a point, digits: a loss or an accuracy. */
static bool is_metric(struct slice text, const struct number *n)
{
	return text.n - n->end >= 2 && text.p[n->end] == '.' &&
	       isdigit((unsigned char)text.p[n->end + 1]);
}

int64_t step_in_name(const char *name)
{
	struct slice text = slice_of(name);
	struct number n;
	int64_t unnamed = -1;
	unsigned unnamed_count = 0;
	bool metric = false;

	for (size_t from = 0; next_number(text, from, &n); from = n.end) {
		if (n.value > INT64_MAX)
			continue;
		if (word_before(text, n.at, step_words, COUNT(step_words)))
			return (int64_t)n.value;
		metric |= is_metric(text, &n);
		/* A name that is only a number, or ends in one before its extension:
		 * "model_7000.pt". */
		bool bare = n.at == 0 || strchr("-_.", text.p[n.at - 1]);
		/* Both halves of a decimal fraction ("val_loss=0.31") are a measure's. */
		bool after = n.at > 1 && text.p[n.at - 1] == '.' &&
			     isdigit((unsigned char)text.p[n.at - 2]);
		bool before = n.end + 1 < text.n && text.p[n.end] == '.' &&
			      isdigit((unsigned char)text.p[n.end + 1]);
		if (after || before)
			continue;
		/* "00001-of-00003" is a shard. */
		if (slice_starts((struct slice){text.p + n.end, text.n - n.end}, SLICE("-of-")))
			continue;
		if (bare && !word_before(text, n.at, rank_words, COUNT(rank_words)) &&
			!word_before(text, n.at,
				(const char *const[]){"epoch", "ep", "of", "version", "v"}, 5)) {
			unnamed = (int64_t)n.value;
			unnamed_count++;
		}
	}
	/* Beside a loss a bare number is an epoch as likely as a step. */
	return unnamed_count == 1 && !metric ? unnamed : -1;
}

static const char *const epoch_words[] = {"epoch", "ep", "epochs"};

int64_t place_in_name(const char *name)
{
	struct slice text = slice_of(name);
	struct number n, first = {0}, last = {0};
	uint64_t date = 0;
	unsigned count = 0, parts = 0;
	bool metric = false;

	for (size_t from = 0; next_number(text, from, &n); from = n.end) {
		size_t digits = n.end - n.at;
		/* "e3", but not the exponent of "1e-3". */
		bool e = n.at > 0 && (text.p[n.at - 1] | 0x20) == 'e' &&
			 (n.at < 2 || !isalnum((unsigned char)text.p[n.at - 2]));
		if (n.value <= INT64_MAX &&
			(e || word_before(text, n.at, epoch_words, COUNT(epoch_words))))
			return (int64_t)n.value;
		if (n.value <= INT32_MAX && word_before(text, n.at, rank_words, COUNT(rank_words)))
			return -1;
		/* A year, then groups of two digits: 2026-03-01_12-30-00. */
		if (parts == 0 && digits == 4 && n.value >= 1990 && n.value < 2200) {
			date = n.value;
			parts = 1;
		} else if (parts > 0 && parts < 6 && digits == 2 && n.at == last.end + 1) {
			date = date * 100 + n.value;
			parts++;
		}
		metric |= count > 0 && is_metric(text, &n);
		if (count++ == 0)
			first = n;
		last = n;
	}
	if (parts >= 3)
		return (int64_t)date;
	return metric && !is_metric(text, &first) && first.value <= INT64_MAX ? (int64_t)first.value
									      : -1;
}

int64_t run_in_name(const char *name)
{
	static const char *const words[] = {"fold", "seed", "trial", "split", "cv"};
	struct slice text = slice_of(name);
	struct number n;

	for (size_t from = 0; next_number(text, from, &n); from = n.end)
		if (n.value <= INT64_MAX && word_before(text, n.at, words, COUNT(words)))
			return (int64_t)n.value;
	return -1;
}

int32_t rank_in_name(const char *name)
{
	struct slice text = slice_of(name);
	struct number n;

	for (size_t from = 0; next_number(text, from, &n); from = n.end)
		if (n.value <= INT32_MAX && word_before(text, n.at, rank_words, COUNT(rank_words)))
			return (int32_t)n.value;
	return -1;
}

int64_t launch_in_path(const char *path, const char *word, size_t *start, size_t *end)
{
	int64_t launch = -1;
	size_t n = strlen(word);

	for (const char *part = path; part;
		part = strchr(part, '/') ? strchr(part, '/') + 1 : NULL) {
		size_t digits = strncmp(part, word, n) == 0 ? strspn(part + n, "0123456789") : 0;
		uint64_t number;
		if (digits == 0 || (part[n + digits] != '/' && part[n + digits] != '\0') ||
			!text_parse_u64((struct slice){part + n, digits}, INT64_MAX, &number))
			continue;
		launch = (int64_t)number;
		*start = (size_t)(part - path) + n;
		*end = *start + digits;
	}
	return launch;
}

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

/* All files below a folder, its own and its sub-folders'. Listed files are sorted by path. */
static size_t files_below(const struct listing *l, uint32_t dir, uint32_t *out, bool deep)
{
	size_t count = 0;

	for (uint32_t i = 0; i < l->files.count; i++) {
		uint32_t d = l->files.items[i].dir;
		while (deep && d != dir && d != 0)
			d = l->dirs.items[d].parent;
		if (d == dir)
			out[count++] = i;
	}
	return count;
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

/* Whether a file is a whole checkpoint beside others: of a series, or the best or last one. */
static bool stands_alone(const struct listing *l, const uint32_t *own, size_t count, size_t at)
{
	const struct listed *file = &l->files.items[own[at]];

	if (!has_checkpoint_extension(file->name))
		return false;
	if (file_series(file).member)
		return true;
	for (size_t i = 0; i < count; i++)
		if (i != at && marked_pair(file, &l->files.items[own[i]]))
			return true;
	return false;
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

/*
 * The single-file checkpoints of a folder, one candidate a step. Files that share a step are one
 * checkpoint if their names tell ranks or parts apart, else each is one of its own. O(files^2) in
 * one folder at the worst.
 */
static bool add_family(struct candidates *c, const struct listing *l, uint32_t dir,
	const uint32_t *own, size_t count)
{
	uint32_t *group = arena_array(&c->arena, count, sizeof *group);
	bool *taken = arena_array(&c->arena, count, sizeof *taken);
	struct series *at = arena_array(&c->arena, count, sizeof *at);

	for (size_t i = 0; at && i < count; i++)
		at[i] = file_series(&l->files.items[own[i]]);
	for (size_t i = 0; group && taken && at && i < count; i++) {
		const struct listed *file = &l->files.items[own[i]];
		size_t members = 0;
		if (taken[i] || (!at[i].member && !stands_alone(l, own, count, i)))
			continue;
		group[members++] = own[i];
		for (size_t k = i + 1; at[i].member && k < count; k++) {
			const struct listed *other = &l->files.items[own[k]];
			if (taken[k] || !same_place(at[i], at[k]) || !parts_of_one(file, other))
				continue;
			taken[k] = true;
			group[members++] = own[k];
		}
		if (!add(c, l, file->name, dir, group, members))
			return false;
	}
	return group && taken && at;
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
		if (k->is_dir) {
			k->path = arena_printf(&c->arena, "%s%s%s", l->root, slash, dir->path);
			k->folder = l->dirs.items[dir->parent].path;
		} else {
			k->path = arena_printf(&c->arena, "%s%s%s%s%s", l->root, slash, dir->path,
				*dir->path ? "/" : "", k->name);
			/* A history is of the line beside which it lies. */
			bool history = k->snapshot && strcmp(dir->name, HISTORY) == 0;
			k->folder = history ? l->dirs.items[dir->parent].path : dir->path;
		}
		if (!k->path)
			return false;
	}
	return true;
}

/* The path itself as one checkpoint: a file, or a folder that a profile knows. */
static bool find_self(struct candidates *c, const struct listing *l, uint32_t *files)
{
	size_t count = l->single ? 1 : files_below(l, 0, files, true);
	const char *name = l->single ? l->files.items[0].name : l->dirs.items[0].name;

	files[0] = l->single ? 0 : files[0];
	struct candidate *self = add(c, l, name, 0, files, count);
	if (!self)
		return false;
	self->path = l->root;
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
static bool is_checkpoint(const struct listing *l, uint32_t *files)
{
	size_t own = files_below(l, 0, files, false);
	struct candidate self = {
		.name = l->dirs.items[0].name, .base = "", .files = files, .file_count = own};
	bool parent = false;

	self.step = step_in_name(self.name);
	unsigned bits = profile_bits(&self, l, &self.profile);
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
static bool find_below(struct candidates *c, const struct listing *l, uint32_t *files)
{
	bool *inside = arena_array(&c->arena, l->dirs.count + 1, sizeof *inside);

	for (uint32_t d = 0; inside && d < l->dirs.count; d++) {
		const struct listed_dir *dir = &l->dirs.items[d];
		if (d > 0 && inside[dir->parent]) {
			inside[d] = true;
			continue;
		}
		size_t count = files_below(l, d, files, false);
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
		/* Notes, logs and settings beside a folder of checkpoints make none of their
		 * parent. */
		if (d == 0 || (step_in_name(dir->name) < 0 && bits == 0))
			continue;
		count = files_below(l, d, files, true);
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

int candidates_find(struct candidates *c, const struct listing *l, struct error *e)
{
	*c = (struct candidates){0};
	arena_init(&c->arena, (size_t)256 << 20);
	uint32_t *files = arena_array(&c->arena, l->files.count + 1, sizeof *files);
	if (!files)
		return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for a list of %zu files",
			l->files.count);
	if (l->single || is_checkpoint(l, files)) {
		if (find_self(c, l, files))
			return RP_OK;
		return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory");
	}
	c->root = true;
	if (!find_below(c, l, files) || !name_paths(c, l))
		return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for a list of checkpoints");
	for (uint32_t i = 0; i < l->files.count; i++)
		if (l->files.items[i].dir == 0 && is_pointer_name(l->files.items[i].name))
			take_pointer(c, l, &l->files.items[i]);
	if (c->list.count == 0)
		return fail(e, RP_E_NOT_FOUND, ERROR_NO_OFFSET,
			"no checkpoint found: %zu files in %zu folders, none of a layout that reprise knows",
			l->files.count, l->dirs.count);
	qsort(c->list.items, c->list.count, sizeof *c->list.items, compare_candidates);
	return RP_OK;
}
