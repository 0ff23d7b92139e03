/* SPDX-License-Identifier: MIT */
/*
 * Is this copy what was saved? Against a snapshot of the original: tensors by their digests,
 * however they are spread over files; settings, counters and random streams one by one; other files
 * byte for byte.
 */
#include <stdlib.h>

#include "audit/case.h"
#include "base/text.h"

/* The verdict is CORRUPT: nobody signed anything, the bytes are others. */
static struct finding *differs(struct audit_case *c, struct findings *sink, uint32_t file,
	const char *path, const char *message)
{
	struct finding *f = finding_add(sink, FINDING_I113, "%s", message);

	f->word = VERDICT_CORRUPT;
	place_file(sink, f, c->current, file);
	if (path && *path)
		f->place.path = findings_escaped(sink, slice_of(path));
	f->place.step_first = f->place.step_last = case_step(c);
	return f;
}

/* Tensors ----------------------------------------------------------------------------------------
 */

struct copied_tensors {
	const struct state_tensor **was, **is; /* sorted by name, rank, file */
	size_t was_count, is_count;
	uint64_t same, unknown, missing, added;
	const struct state_tensor *first_missing, *first_added;
};

static int by_name(const void *pa, const void *pb)
{
	const struct state_tensor *a = *(const struct state_tensor *const *)pa;
	const struct state_tensor *b = *(const struct state_tensor *const *)pb;
	int order = strcmp(a->name, b->name);

	if (order == 0)
		order = (a->rank > b->rank) - (a->rank < b->rank);
	if (order == 0)
		order = (a->file > b->file) - (a->file < b->file);
	return order ? order : (a > b) - (a < b);
}

static const struct state_tensor **sorted_tensors(const struct state *s)
{
	const struct state_tensor **list = calloc(s->tensors.count + 1, sizeof *list);

	for (size_t i = 0; list && i < s->tensors.count; i++)
		list[i] = &s->tensors.items[i];
	if (list && s->tensors.count > 1)
		qsort(list, s->tensors.count, sizeof *list, by_name);
	return list;
}

static const char *type_text(struct findings *sink, const struct state_tensor *t)
{
	struct strbuf b;

	strbuf_init(&b, 400);
	strbuf_printf(&b, "%s [", t->dtype == DTYPE_UNKNOWN ? "?" : dtype_rows[t->dtype].name);
	for (uint8_t k = 0; k < t->ndim; k++)
		strbuf_printf(&b, "%s%lld", k ? ", " : "", (long long)t->shape[k]);
	strbuf_add_char(&b, ']');
	return findings_take(sink, &b);
}

/* What two tensors are compared by. */
struct digests {
	const struct tensor_summary *x, *y; /* then and now */
	const uint8_t *was, *is;            /* bytes of the digests */
	const uint8_t *was_leaf, *is_leaf;  /* of their leaves, one after the other */
	size_t size;                        /* of one */
	const char *name;
};

/* SHA-256 where both have it, else XXH3-128. False where nothing is known of one of them. */
static bool find_digests(const struct audit_case *c, const struct state_tensor *was,
	const struct state_tensor *is, struct digests *d)
{
	const struct state *a = c->original, *b = c->current;

	*d = (struct digests){.x = tensor_summary_of(a, was), .y = tensor_summary_of(b, is)};
	if (!d->x || !d->y)
		return false;
	if (a->strong.count > 0 && b->strong.count > 0) {
		d->was = a->strong.items[was - a->tensors.items].bytes;
		d->is = b->strong.items[is - b->tensors.items].bytes;
		if (d->x->leaves > 0 && d->y->leaves > 0 && a->strong_leaves.count > 0 &&
			b->strong_leaves.count > 0) {
			d->was_leaf = a->strong_leaves.items[d->x->first_leaf].bytes;
			d->is_leaf = b->strong_leaves.items[d->y->first_leaf].bytes;
		}
		d->size = SHA256_BYTES;
		d->name = "SHA-256";
		return true;
	}
	d->was = (const uint8_t *)d->x->digest;
	d->is = (const uint8_t *)d->y->digest;
	if (d->x->leaves > 0 && d->y->leaves > 0) {
		d->was_leaf = (const uint8_t *)a->leaves.items[d->x->first_leaf].digest;
		d->is_leaf = (const uint8_t *)b->leaves.items[d->y->first_leaf].digest;
	}
	d->size = sizeof d->x->digest;
	d->name = "XXH3-128";
	return true;
}

/* The first leaf in which two tensors of one size differ. */
static uint32_t first_leaf(const struct digests *d)
{
	uint32_t n = d->x->leaves < d->y->leaves ? d->x->leaves : d->y->leaves, i = 0;

	while (i < n && memcmp(d->was_leaf + i * d->size, d->is_leaf + i * d->size, d->size) == 0)
		i++;
	return i;
}

static const char *digest_text(struct findings *sink, const uint8_t *bytes, size_t size)
{
	char text[SHA256_TEXT];
	uint64_t words[2];

	if (size == SHA256_BYTES) {
		sha256_text(bytes, text);
	} else {
		memcpy(words, bytes, sizeof words);
		snprintf(text, sizeof text, "%016llx%016llx", (unsigned long long)words[1],
			(unsigned long long)words[0]);
	}
	return findings_text(sink, "%s", text);
}

static void tell_bytes(struct audit_case *c, struct findings *sink, const struct state_tensor *t,
	const struct digests *d)
{
	uint64_t size = t->numel * dtype_size(t->dtype), begin = 0, end;
	const char *where = "";

	if (d->was_leaf) {
		begin = first_leaf(d) * LEAF_BYTES;
		end = begin < size && size - begin > LEAF_BYTES ? begin + LEAF_BYTES : size;
		where = findings_text(sink, ", first in bytes %llu to %llu of it",
			(unsigned long long)begin, (unsigned long long)end - 1);
	}
	struct finding *f = differs(c, sink, t->file, t->name,
		findings_text(sink, "the bytes of %s are not those that were saved%s",
			findings_escaped(sink, slice_of(t->name)), where));
	f->observed = quantity_text(digest_text(sink, d->is, d->size));
	f->expected = quantity_text(digest_text(sink, d->was, d->size));
	f->unit = d->name;
	/* Only where its elements lie in a row is a place in the tensor one in the file. */
	if (t->whole && t->storage != NO_FILE &&
		c->current->storages.items[t->storage].offset != UINT64_MAX)
		f->place.offset = c->current->storages.items[t->storage].offset + begin;
}

static void compare_pair(struct audit_case *c, struct findings *sink, struct copied_tensors *n,
	const struct state_tensor *was, const struct state_tensor *is)
{
	struct digests d;

	if (was->dtype != is->dtype || !tensor_same_shape(was, is)) {
		struct finding *f = differs(c, sink, is->file, is->name,
			findings_text(sink, "%s is of another type or shape than was saved",
				findings_escaped(sink, slice_of(is->name))));
		f->observed = quantity_text(type_text(sink, is));
		f->expected = quantity_text(type_text(sink, was));
	} else if (was->numel == 0 && is->numel == 0) {
		n->same++;
	} else if (!find_digests(c, was, is, &d)) {
		n->unknown++;
	} else if (memcmp(d.was, d.is, d.size) == 0) {
		n->same++;
	} else {
		tell_bytes(c, sink, is, &d);
	}
}

static bool same_place(const struct state_tensor *a, const struct state_tensor *b)
{
	return strcmp(a->name, b->name) == 0 && a->rank == b->rank;
}

/* Both lists side by side: what is in one alone is missing or added. */
static void walk_tensors(struct audit_case *c, struct findings *sink, struct copied_tensors *n)
{
	size_t i = 0, k = 0;

	while (i < n->was_count || k < n->is_count) {
		const struct state_tensor *was = i < n->was_count ? n->was[i] : NULL;
		const struct state_tensor *is = k < n->is_count ? n->is[k] : NULL;
		if (was && is && same_place(was, is)) {
			compare_pair(c, sink, n, was, is);
			i++;
			k++;
			continue;
		}
		int order = !was ? 1 : !is ? -1 : strcmp(was->name, is->name);
		if (order == 0)
			order = was->rank < is->rank ? -1 : 1;
		if (order < 0) {
			n->first_missing = n->missing++ == 0 ? was : n->first_missing;
			i++;
		} else {
			n->first_added = n->added++ == 0 ? is : n->first_added;
			k++;
		}
	}
}

static void tell_unmatched(
	struct audit_case *c, struct findings *sink, const struct copied_tensors *n)
{
	if (n->missing > 0) {
		struct finding *f = differs(c, sink, NO_FILE, n->first_missing->name,
			findings_text(sink,
				"%llu of %s that were saved are not in this copy, first %s",
				(unsigned long long)n->missing,
				counted_text(sink, n->was_count, "tensor"),
				findings_escaped(sink, slice_of(n->first_missing->name))));
		f->observed = quantity_count((int64_t)(n->was_count - n->missing));
		f->expected = quantity_count((int64_t)n->was_count);
		f->unit = "tensors";
	}
	if (n->added > 0) {
		struct finding *f = differs(c, sink, n->first_added->file, n->first_added->name,
			findings_text(sink, "%s in this copy %s not saved, first %s",
				counted_text(sink, n->added, "tensor"),
				n->added == 1 ? "was" : "were",
				findings_escaped(sink, slice_of(n->first_added->name))));
		f->observed = quantity_count((int64_t)n->added);
		f->expected = quantity_count(0);
		f->unit = "tensors";
	}
}

static void run_copy_tensors(struct audit_case *c, struct findings *sink, struct coverage *cover)
{
	static const char *const name = "copy-tensors", *const subject =
								"tensors against the snapshot";
	struct copied_tensors n = {.was = sorted_tensors(c->original),
		.is = sorted_tensors(c->current),
		.was_count = c->original->tensors.count,
		.is_count = c->current->tensors.count};

	if (!n.was || !n.is) {
		sink->lost++;
	} else if (!c->original->bytes_read) {
		cover_not_checked(
			cover, name, subject, "the snapshot was taken without digests (--quick)");
	} else {
		walk_tensors(c, sink, &n);
		tell_unmatched(c, sink, &n);
		cover_ran(cover, name, subject, "tensors", n.was_count - n.unknown - n.missing,
			n.was_count,
			n.unknown ? "the others' bytes could not be read, then or now" : NULL);
		c->copied = n.same;
		c->compared = n.unknown == 0;
	}
	free(n.was);
	free(n.is);
}

const struct rule rule_copy_tensors = {
	.name = "copy-tensors",
	.subject = "tensors against the snapshot",
	.needs = NEEDS_ORIGINAL | NEEDS_BYTES,
	.run = run_copy_tensors,
};

/* Everything else --------------------------------------------------------------------------------
 */

/* What a file says; not what was concluded from it, or from its name, which copying may change. */
static bool is_read(const struct fact *f)
{
	return f->how == HOW_READ && f->key != FACT_NAME_STEP;
}

static int by_identity(const void *pa, const void *pb)
{
	const struct fact *a = *(const struct fact *const *)pa,
			  *b = *(const struct fact *const *)pb;
	int order = (a->key > b->key) - (a->key < b->key);

	if (order == 0)
		order = (a->rank > b->rank) - (a->rank < b->rank);
	if (order == 0)
		order = (a->group > b->group) - (a->group < b->group);
	return order ? order : strcmp(a->path, b->path);
}

static const struct fact **sorted_facts(const struct state *s, size_t *count)
{
	const struct fact **list = calloc(s->facts.count + 1, sizeof *list);

	*count = 0;
	for (size_t i = 0; list && i < s->facts.count; i++)
		if (is_read(&s->facts.items[i]))
			list[(*count)++] = &s->facts.items[i];
	if (list && *count > 1)
		qsort(list, *count, sizeof *list, by_identity);
	return list;
}

/* One finding for all facts that differ, with the first of them. */
static void tell_fact(struct audit_case *c, struct findings *sink, const struct fact *was,
	const struct fact *is, uint64_t odd, uint64_t all)
{
	const struct fact *any = is ? is : was;
	const char *what = any->key == FACT_CONFIG ? any->path : fact_rows[any->key].name;
	struct finding *f = differs(c, sink, is ? is->file : NO_FILE, any->path,
		findings_text(sink,
			"%llu of %llu counters and settings are not what was saved, first %s",
			(unsigned long long)odd, (unsigned long long)all,
			findings_escaped(sink, slice_of(what))));

	f->observed = quantity_text(is ? fact_text(sink, is) : "none");
	f->expected = quantity_text(was ? fact_text(sink, was) : "none");
}

static bool compare_facts(struct audit_case *c, struct findings *sink)
{
	size_t was_count, is_count, i = 0, k = 0;
	const struct fact **was = sorted_facts(c->original, &was_count);
	const struct fact **is = sorted_facts(c->current, &is_count);
	const struct fact *first_was = NULL, *first_is = NULL;
	uint64_t odd = 0;

	while (was && is && (i < was_count || k < is_count)) {
		int order = i == was_count ? 1 : k == is_count ? -1 : by_identity(&was[i], &is[k]);
		if ((order != 0 || !fact_equal(was[i], is[k])) && odd++ == 0) {
			first_was = order <= 0 ? was[i] : NULL;
			first_is = order >= 0 ? is[k] : NULL;
		}
		i += order <= 0;
		k += order >= 0;
	}
	if (!was || !is)
		sink->lost++;
	if (odd > 0)
		tell_fact(c, sink, first_was, first_is, odd, was_count);
	free(was);
	free(is);
	return odd == 0;
}

/* Streams are sorted by rank, owner, device and path in both states. */
static bool compare_streams(struct audit_case *c, struct findings *sink)
{
	const struct state *a = c->original, *b = c->current;
	uint64_t same = 0;
	const struct stream *odd = NULL;

	for (size_t i = 0, k = 0; i < a->streams.count; i++) {
		const struct stream *x = &a->streams.items[i];
		while (k < b->streams.count && stream_kind_compare(&b->streams.items[k], x) < 0)
			k++;
		const struct stream *y = k < b->streams.count ? &b->streams.items[k] : NULL;
		if (y && stream_kind_compare(x, y) == 0 && rng_equal(x->body, y->body))
			same++;
		else if (!odd)
			odd = x;
		k += y && stream_kind_compare(x, y) == 0;
	}
	if (!odd)
		return true;
	struct finding *f = differs(c, sink, NO_FILE, odd->path,
		findings_text(sink, "%llu of %s are not what was saved, first %s",
			(unsigned long long)(a->streams.count - same),
			counted_text(sink, a->streams.count, "random stream"),
			findings_escaped(sink, slice_of(odd->owner))));
	f->observed = quantity_count((int64_t)same);
	f->expected = quantity_count((int64_t)a->streams.count);
	f->unit = "streams";
	return false;
}

static const struct state_file *same_path(const struct state *s, const char *path, bool alone)
{
	/* Files are sorted as listed, by path; a single file may have another name. */
	if (s->single && s->files.count == 1 && alone)
		return &s->files.items[0];
	for (size_t i = 0; i < s->files.count; i++)
		if (strcmp(s->files.items[i].path, path) == 0)
			return &s->files.items[i];
	return NULL;
}

static bool holds_tensors(const struct state *s, const struct state_file *f)
{
	uint32_t at = (uint32_t)(f - s->files.items);

	for (size_t i = 0; i < s->storages.count; i++)
		if (s->storages.items[i].file == at)
			return true;
	return false;
}

/*
 * Files without tensors. One whose bytes differ while all that is read of it is equal was perhaps
 * only written again; it is said all the same, as a warning.
 */
static void compare_files(
	struct audit_case *c, struct findings *sink, bool equal, uint64_t *identical, uint64_t *all)
{
	const struct state *a = c->original;

	for (size_t i = 0; i < a->files.count; i++) {
		const struct state_file *was = &a->files.items[i];
		const struct state_file *is = same_path(c->current, was->path, a->files.count == 1);
		bool same = is && was->digested && is->digested && was->size == is->size &&
			    memcmp(was->digest, is->digest, sizeof was->digest) == 0;
		++*all;
		*identical += same;
		if (same || was->role == FILE_INDEX || was->role == FILE_LEFTOVER ||
			holds_tensors(a, was) || (is && (!was->digested || !is->digested)))
			continue;
		uint32_t at = is ? (uint32_t)(is - c->current->files.items) : NO_FILE;
		struct finding *f = differs(c, sink, at, NULL,
			is ? findings_text(sink, "%s is not byte for byte what was saved%s",
				     findings_escaped(sink, slice_of(was->path)),
				     equal ? ", though all that is read of it is" : "")
			   : findings_text(sink, "%s was saved and is not in this copy",
				     findings_escaped(sink, slice_of(was->path))));
		if ((is && equal) || was->role == FILE_OTHER)
			f->severity = SEVERITY_WARNING;
		if (is && is->size != was->size) {
			f->observed = quantity_count((int64_t)is->size);
			f->expected = quantity_count((int64_t)was->size);
			f->unit = "bytes";
		}
	}
}

static void run_copy_state(struct audit_case *c, struct findings *sink, struct coverage *cover)
{
	uint64_t identical = 0, all = 0;
	bool facts = compare_facts(c, sink), streams = compare_streams(c, sink);

	compare_files(c, sink, facts && streams, &identical, &all);
	cover_ran(cover, "copy-state", "state and files against the snapshot", "files", all, all,
		identical < all
			? findings_text(sink,
				  "%llu are the same byte for byte; of the others what is read of them",
				  (unsigned long long)identical)
			: NULL);
}

const struct rule rule_copy_state = {
	.name = "copy-state",
	.subject = "state and files against the snapshot",
	.needs = NEEDS_ORIGINAL,
	.run = run_copy_state,
};
