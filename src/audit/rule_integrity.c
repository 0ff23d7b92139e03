/* SPDX-License-Identifier: MIT */
/* Family I: is what is on disk whole, and does it belong together? */
#define _GNU_SOURCE
#include <stdlib.h>

#include "audit/case.h"
#include "base/text.h"

static bool opened(const struct state_file *f)
{
	return f->role != FILE_OTHER && f->role != FILE_LEFTOVER;
}

/* The files of a state in two more orders, so that 10^4 of them are looked up without a search
 * each. */
struct file_orders {
	const struct state *state;
	uint32_t *by_path, *by_role; /* by role, then rank, then place in the table */
};

static int compare_paths(const void *pa, const void *pb, void *context)
{
	const struct state_file *files = context;

	return strcmp(files[*(const uint32_t *)pa].path, files[*(const uint32_t *)pb].path);
}

static int compare_roles(const void *pa, const void *pb, void *context)
{
	const struct state_file *files = context;
	const uint32_t i = *(const uint32_t *)pa, k = *(const uint32_t *)pb;

	if (files[i].role != files[k].role)
		return files[i].role < files[k].role ? -1 : 1;
	if (files[i].rank != files[k].rank)
		return files[i].rank < files[k].rank ? -1 : 1;
	return (i > k) - (i < k);
}

static void file_orders_release(struct file_orders *o)
{
	free(o->by_path);
	free(o->by_role);
}

static bool file_orders_make(struct file_orders *o, const struct state *s)
{
	const size_t n = s->files.count;

	*o = (struct file_orders){.state = s,
		.by_path = calloc(n + 1, sizeof *o->by_path),
		.by_role = calloc(n + 1, sizeof *o->by_role)};
	if (!o->by_path || !o->by_role)
		return false;
	for (uint32_t i = 0; i < n; i++)
		o->by_path[i] = o->by_role[i] = i;
	qsort_r(o->by_path, n, sizeof *o->by_path, compare_paths, s->files.items);
	qsort_r(o->by_role, n, sizeof *o->by_role, compare_roles, s->files.items);
	return true;
}

/* The first file of a role, and of a rank if not NO_RANK; NO_FILE where there is none. O(log n). */
static uint32_t find_role(const struct file_orders *o, enum file_role role, int32_t rank)
{
	const struct state_file *files = o->state->files.items;
	size_t low = 0, high = o->state->files.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct state_file *f = &files[o->by_role[middle]];
		if (f->role < role || (f->role == role && rank != NO_RANK && f->rank < rank))
			low = middle + 1;
		else
			high = middle;
	}
	if (low == o->state->files.count)
		return NO_FILE;
	const struct state_file *f = &files[o->by_role[low]];
	return f->role == role && (rank == NO_RANK || f->rank == rank) ? o->by_role[low] : NO_FILE;
}

static bool has_role(const struct file_orders *o, enum file_role role, int32_t rank)
{
	return find_role(o, role, rank) != NO_FILE;
}

static uint32_t find_file(const struct file_orders *o, const char *path)
{
	size_t low = 0, high = o->state->files.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = strcmp(o->state->files.items[o->by_path[middle]].path, path);
		if (order == 0)
			return o->by_path[middle];
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return NO_FILE;
}

/* What the framework always writes. */
static void check_layout(struct audit_case *c, struct findings *sink, const struct file_orders *now)
{
	struct state *s = c->current;
	bool only_model = false;

	if (!s->profile->parts || s->single)
		return;
	state_bool(s, FACT_SAVE_ONLY_MODEL, &only_model);
	for (const struct part *p = s->profile->parts; p->name; p++) {
		if (has_role(now, p->role, NO_RANK) || (only_model && !p->with_weights_only))
			continue;
		struct finding *f;
		if (p->role == FILE_COUNTERS) {
			f = finding_add(sink, FINDING_I107,
				"no %s, which %s writes last: this save did not finish", p->name,
				s->profile->title);
		} else {
			f = finding_add(sink, FINDING_I101,
				"%s is missing: the checkpoint has no %s", p->name,
				file_role_name(p->role));
		}
		place_file(sink, f, s, NO_FILE);
		f->place.step_first = f->place.step_last = case_step(c);
	}
}

/* Each of the folders of ranks beside each other holds a part of this checkpoint. */
static void check_rank_folders(struct audit_case *c, struct findings *sink)
{
	struct state *s = c->current;
	int32_t wanted = state_world(s), absent[64], found = 0;
	size_t count = 0;

	for (int32_t r = 0; s->rank_folders > 0 && r < wanted; r++) {
		bool there = false;
		for (size_t i = 0; i < s->files.count && !there; i++)
			there = opened(&s->files.items[i]) && s->files.items[i].rank == r;
		found += there;
		if (!there && count < sizeof absent / sizeof absent[0])
			absent[count++] = r;
	}
	if (s->rank_folders == 0 || count == 0)
		return;
	struct finding *f = finding_add(sink, FINDING_I101,
		"the files of %d of %d ranks are missing", wanted - found, wanted);
	place_file(sink, f, s, NO_FILE);
	f->place.ranks = ranks_text(sink, absent, count);
	f->place.step_first = f->place.step_last = case_step(c);
	f->observed = quantity_count(found);
	f->expected = quantity_count(wanted);
	f->unit = "ranks";
}

/* What the previous checkpoint of the line had, part by part and rank by rank. */
static void check_against_previous(struct audit_case *c, struct findings *sink,
	const struct file_orders *now, const struct file_orders *earlier)
{
	struct state *s = c->current, *before = c->previous;

	if (!before || s->single != before->single)
		return;
	for (size_t i = 0; i < before->files.count; i++) {
		const struct state_file *f = &before->files.items[i];
		/* Random number states are judged by what is in them: rng-saved. */
		if (!opened(f) || f->role == FILE_RNG || has_role(now, f->role, f->rank) ||
			(s->rank_folders > 0 && f->rank != NO_RANK))
			continue;
		/* Once for each role and rank. */
		bool said = i != find_role(earlier, f->role, f->rank);
		for (const struct part *p = s->profile->parts; p && p->name && !said; p++)
			said = p->role == f->role;
		if (said)
			continue;
		struct finding *found =
			finding_add(sink, FINDING_I101, "%s is missing (%s), which %s has",
				findings_escaped(sink, slice_of(f->path)), file_role_name(f->role),
				checkpoint_name(before));
		place_file(sink, found, s, NO_FILE);
		if (f->rank != NO_RANK)
			found->place.ranks = findings_text(sink, "%d", f->rank);
	}
}

/* One more file of a role whose files must be as many as the script's objects. */
static void check_counted(
	struct audit_case *c, struct findings *sink, const struct file_orders *earlier)
{
	struct state *s = c->current, *before = c->previous;
	enum file_role role = s->profile->counted;

	if (!before || role == FILE_OTHER || before->profile != s->profile)
		return;
	for (uint32_t i = 0; i < s->files.count; i++) {
		const struct state_file *f = &s->files.items[i];
		if (f->role != role || !has_role(earlier, role, NO_RANK) ||
			find_file(earlier, f->path) != NO_FILE)
			continue;
		struct finding *found = finding_add(sink, FINDING_I115, "%s is not in %s",
			findings_escaped(sink, slice_of(f->path)), checkpoint_name(before));
		place_file(sink, found, s, i);
		found->cause = findings_text(sink,
			"%s refuses to load unless the script registers as many objects",
			s->profile->title);
	}
}

/* "weights-00002-of-00003": a number of a total, from the file's name. */
static bool shard_of(const char *path, uint64_t *number, uint64_t *total, size_t *stem)
{
	const char *of = strstr(path, "-of-");
	const char *start = of;

	if (!of)
		return false;
	while (start > path && start[-1] >= '0' && start[-1] <= '9')
		start--;
	size_t digits = strspn(of + 4, "0123456789");
	*stem = (size_t)(start - path);
	return start < of && digits > 0 &&
	       text_parse_u64((struct slice){start, (size_t)(of - start)}, 1000000, number) &&
	       text_parse_u64((struct slice){of + 4, digits}, 1000000, total);
}

/* One numbered shard; those of one family have the same stem and total. */
struct shard {
	const char *path;
	size_t stem;
	uint64_t total;
	uint32_t file;
};

static int compare_shards(const void *pa, const void *pb)
{
	const struct shard *a = pa, *b = pb;

	if (a->stem != b->stem)
		return a->stem < b->stem ? -1 : 1;
	int order = memcmp(a->path, b->path, a->stem);
	if (order == 0)
		order = (a->total > b->total) - (a->total < b->total);
	return order ? order : (a->file > b->file) - (a->file < b->file);
}

static bool same_family(const struct shard *a, const struct shard *b)
{
	return a->stem == b->stem && a->total == b->total && memcmp(a->path, b->path, a->stem) == 0;
}

/* Each family of numbered shards has as many as its names promise. O(n log n). */
static void check_shards(struct audit_case *c, struct findings *sink)
{
	struct state *s = c->current;
	struct shard *shards = s->single ? NULL : calloc(s->files.count + 1, sizeof *shards);
	size_t count = 0;

	if (!shards) {
		sink->lost += !s->single;
		return;
	}
	for (uint32_t i = 0; i < s->files.count; i++) {
		struct shard *x = &shards[count];
		uint64_t number;
		*x = (struct shard){.path = s->files.items[i].path, .file = i};
		count += shard_of(x->path, &number, &x->total, &x->stem);
	}
	qsort(shards, count, sizeof *shards, compare_shards);
	for (size_t i = 0, n; i < count; i += n) {
		for (n = 1; i + n < count && same_family(&shards[i], &shards[i + n]);)
			n++;
		if (n >= shards[i].total)
			continue;
		struct finding *f =
			finding_add(sink, FINDING_I101, "%llu of %llu shards are missing",
				(unsigned long long)(shards[i].total - n),
				(unsigned long long)shards[i].total);
		place_file(sink, f, s, shards[i].file);
		f->observed = quantity_count((int64_t)n);
		f->expected = quantity_count((int64_t)shards[i].total);
		f->unit = "shards";
	}
	free(shards);
}

/* A tensor of the state, as an index would name it: by file and name. */
static int compare_tensors(const void *pa, const void *pb)
{
	const struct state_tensor *a = *(const struct state_tensor *const *)pa;
	const struct state_tensor *b = *(const struct state_tensor *const *)pb;

	if (a->file != b->file)
		return a->file < b->file ? -1 : 1;
	return strcmp(a->name, b->name);
}

static int compare_placements(const void *pa, const void *pb)
{
	const struct placement *a = *(const struct placement *const *)pa;
	const struct placement *b = *(const struct placement *const *)pb;
	int order = strcmp(a->file, b->file);

	return order ? order : (a > b) - (a < b);
}

/* Each shard once that an index names and that is not there. */
static void tell_missing(
	struct audit_case *c, struct findings *sink, const struct placement **missing, size_t count)
{
	if (count > 1)
		qsort(missing, count, sizeof *missing, compare_placements);
	for (size_t i = 0; i < count; i++) {
		if (i > 0 && strcmp(missing[i]->file, missing[i - 1]->file) == 0)
			continue;
		struct finding *f = finding_add(sink, FINDING_I101,
			"the shard %s is missing, which the index promises",
			findings_escaped(sink, slice_of(missing[i]->file)));
		place_file(sink, f, c->current, missing[i]->index);
	}
}

/*
 * What an index promises: every shard that it names is there, and holds the tensors that it says.
 * Placements of one shard follow each other, so that files are looked up once a run. O(n log n).
 */
static void check_index(struct audit_case *c, struct findings *sink, const struct file_orders *now)
{
	struct state *s = c->current;
	ARRAY(const struct placement *) missing = {0};
	const struct state_tensor **sorted = calloc(s->tensors.count + 1, sizeof *sorted);
	uint64_t strays = 0, promised = 0;
	const struct placement *stray = NULL;

	if (!sorted) {
		sink->lost++;
		return;
	}
	for (size_t i = 0; i < s->tensors.count; i++)
		sorted[i] = &s->tensors.items[i];
	qsort(sorted, s->tensors.count, sizeof *sorted, compare_tensors);
	uint32_t file = NO_FILE;
	for (size_t i = 0; i < s->placements.count; i++) {
		const struct placement *p = &s->placements.items[i];
		bool again = i > 0 && p->file == s->placements.items[i - 1].file;
		if (!again)
			file = find_file(now, p->file);
		if (file == NO_FILE && !again) {
			const struct placement **slot = array_push(&missing, s->placements.count);
			if (slot)
				*slot = p;
			sink->lost += !slot;
		}
		if (file == NO_FILE || s->files.items[file].status != FILE_READ)
			continue;
		struct state_tensor wanted = {.file = file, .name = p->tensor};
		const struct state_tensor *key = &wanted;
		promised++;
		if (bsearch(&key, sorted, s->tensors.count, sizeof *sorted, compare_tensors))
			continue;
		strays++;
		if (!stray)
			stray = p;
	}
	free(sorted);
	tell_missing(c, sink, missing.items, missing.count);
	array_release(&missing);
	if (!stray)
		return;
	struct finding *f = finding_add(sink, FINDING_I105,
		"%llu of %llu tensors are not in the shard that the index names: index and shards are of different saves",
		(unsigned long long)strays, (unsigned long long)promised);
	place_file(sink, f, s, stray->index);
	f->place.path = findings_text(
		sink, "weight_map[\"%s\"]", findings_escaped(sink, slice_of(stray->tensor)));
	f->observed = quantity_count((int64_t)(promised - strays));
	f->expected = quantity_count((int64_t)promised);
	f->unit = "tensors";
}

static void run_parts(struct audit_case *c, struct findings *sink, struct coverage *cover)
{
	struct state *s = c->current;
	struct file_orders now, earlier = {0};
	uint64_t wanted = 0, read = 0;
	const struct state_file *unread = NULL;

	if (file_orders_make(&now, s) &&
		(!c->previous || file_orders_make(&earlier, c->previous))) {
		check_layout(c, sink, &now);
		check_rank_folders(c, sink);
		check_against_previous(c, sink, &now, &earlier);
		check_counted(c, sink, &earlier);
		if (s->placements.count > 0 && !s->single)
			check_index(c, sink, &now);
		else
			check_shards(c, sink);
	} else {
		sink->lost++;
	}
	file_orders_release(&now);
	file_orders_release(&earlier);
	for (size_t i = 0; i < s->files.count; i++) {
		const struct state_file *f = &s->files.items[i];
		if (f->role == FILE_LEFTOVER) {
			struct finding *found = finding_add(sink, FINDING_I107,
				"%s is the temporary file of a save that did not finish", f->path);
			found->severity = SEVERITY_WARNING;
			place_file(sink, found, s, (uint32_t)i);
		}
		wanted += opened(f);
		read += opened(f) && f->status == FILE_READ;
		if (opened(f) && f->status != FILE_READ && !unread)
			unread = f;
	}
	const char *why = NULL;
	if (unread)
		why = findings_text(sink, "%s: %s", findings_escaped(sink, slice_of(unread->path)),
			unread->error ? unread->error : "it could not be read");
	cover_ran(cover, "parts", "parts of the checkpoint", "files", read, wanted, why);
}

const struct rule rule_parts = {
	.name = "parts",
	.subject = "parts of the checkpoint",
	.run = run_parts,
};

/* The step that the name claims, against the one inside. */
static void check_name(struct audit_case *c, struct findings *sink)
{
	struct state *s = c->current;
	int64_t named, step, epoch = -1, samples = -1;
	double updates = -1;

	if (!state_int(s, FACT_NAME_STEP, &named) || !state_int(s, FACT_STEP, &step) ||
		named == step)
		return;
	state_int(s, FACT_EPOCH, &epoch);
	state_int(s, FACT_SAMPLES, &samples);
	optimizer_step(s, &updates);
	bool known_unit = s->profile->schedule_counts_steps;
	for (size_t i = 0; i < s->facts.count; i++)
		if (s->facts.items[i].key == FACT_COUNTER && s->facts.items[i].type == FACT_INT &&
			s->facts.items[i].i == named)
			return;
	/* A script of one's own may count epochs, samples or updates in its names, or save before
	 * it counts. */
	if (!known_unit &&
		(named == epoch || named == epoch + 1 || named == samples ||
			(double)named == updates || named == step + 1 || named == step - 1))
		return;
	enum severity severity = known_unit ? SEVERITY_ERROR : SEVERITY_WARNING;
	if (!known_unit && ((double)named >= 1.9 * (double)step || named <= step / 2)) {
		/* Far apart: another unit, unless it was another one before. */
		int64_t named_before, step_before;
		severity = SEVERITY_INFO;
		if (c->previous && state_int(c->previous, FACT_NAME_STEP, &named_before) &&
			named_before > 0 && named > 0 &&
			state_int(c->previous, FACT_STEP, &step_before) && step_before > 0 &&
			step > 0) {
			double factor = (double)named / (double)step /
					((double)named_before / (double)step_before);
			if (factor > 0.8 && factor < 1.25)
				return;
			severity = SEVERITY_WARNING;
		}
	}
	struct finding *f = finding_add(sink, FINDING_I105, "it is called %s but holds step %lld",
		checkpoint_name(s), (long long)step);
	f->severity = severity;
	place_fact(sink, f, s, state_fact(s, FACT_STEP));
	f->observed = quantity_count(step);
	f->expected = quantity_count(named);
	f->unit = "steps";
	f->meaning =
		"a relaunch that picks checkpoints by name would resume from another step than it believes";
}

/* The same counter in the files of several ranks. */
static void check_ranks_agree(struct audit_case *c, struct findings *sink)
{
	struct state *s = c->current;
	const struct fact *first = NULL;
	int32_t odd[64];
	size_t count = 0;
	const struct fact *example = NULL;

	for (size_t i = 0; i < s->facts.count; i++) {
		const struct fact *f = &s->facts.items[i];
		if (f->key != FACT_STEP || f->rank == NO_RANK)
			continue;
		if (!first)
			first = f;
		else if (strcmp(f->path, first->path) == 0 && !fact_equal(f, first)) {
			if (!example)
				example = f;
			if (count < sizeof odd / sizeof odd[0])
				odd[count++] = f->rank;
		}
	}
	if (!example)
		return;
	struct finding *f = finding_add(sink, FINDING_I105,
		"the ranks' files are of different steps: %lld on rank %d, %lld on rank %d",
		(long long)first->i, first->rank, (long long)example->i, example->rank);
	place_fact(sink, f, s, example);
	f->place.ranks = ranks_text(sink, odd, count);
	f->observed = quantity_count(example->i);
	f->expected = quantity_count(first->i);
	f->unit = "steps";
	f->meaning = "the resumed model would be a mixture of two training times";
}

static void run_names(struct audit_case *c, struct findings *sink, struct coverage *cover)
{
	int64_t step, named;
	bool has_step = state_int(c->current, FACT_STEP, &step);

	if (!has_step) {
		cover_not_checked(
			cover, "names", "names against contents", "no step counter is saved");
		return;
	}
	check_name(c, sink);
	check_ranks_agree(c, sink);
	bool has_name = state_int(c->current, FACT_NAME_STEP, &named);
	cover_ran(cover, "names", "names against contents", "names", has_name, has_name, NULL);
}

const struct rule rule_names = {
	.name = "names",
	.subject = "names against contents",
	.run = run_names,
};

/* The tensor that a storage belongs to, for a place. */
static const char *storage_user(const struct state *s, uint32_t storage)
{
	for (size_t i = 0; i < s->tensors.count; i++)
		if (s->tensors.items[i].storage == storage)
			return s->tensors.items[i].name;
	return NULL;
}

static void run_checksums(struct audit_case *c, struct findings *sink, struct coverage *cover)
{
	struct state *s = c->current;
	const struct byte_totals *b = c->bytes;

	for (uint32_t i = 0; i < s->storages.count; i++) {
		const struct state_storage *st = &s->storages.items[i];
		if (!st->read || !st->crc_known || st->crc == st->crc_found)
			continue;
		const char *tensor = storage_user(s, i);
		struct finding *f = finding_add(sink, FINDING_I103,
			"%s is damaged: its bytes do not match the checksum that was saved with them",
			tensor ? findings_escaped(sink, slice_of(tensor))
			       : "an entry of the archive");
		place_file(sink, f, s, st->file);
		if (tensor)
			f->place.path = findings_escaped(sink, slice_of(tensor));
		f->place.offset = st->offset;
		f->observed = quantity_text(findings_text(sink, "%08x", st->crc_found));
		f->expected = quantity_text(findings_text(sink, "%08x", st->crc));
		f->unit = "CRC-32";
		/* numpy.load reads archives with a library that does compare them. */
		f->meaning =
			s->files.items[st->file].container == &container_npz
				? "numpy.load refuses the array"
				: "torch.load does not compare checksums and would load the damaged values";
	}
	const char *reason = NULL;
	if (b->late > 0)
		reason = case_late;
	else if (b->unreadable > 0)
		reason = findings_text(
			sink, "%llu could not be read", (unsigned long long)b->unreadable);
	else if (b->with_checksum < b->storages_all)
		reason = "the others were saved without a checksum";
	cover_ran(cover, "checksums", "stored bytes against their checksums", "storages",
		b->with_checksum, b->storages_all, reason);
}

const struct rule rule_checksums = {
	.name = "checksums",
	.subject = "stored bytes against their checksums",
	.needs = NEEDS_BYTES,
	.run = run_checksums,
};
