/* SPDX-License-Identifier: MIT */
#include "state/relate.h"

#include <stdlib.h>

#include "state/bytes.h"

#define PAIRS_MAX ((size_t)1 << 24)
#define SEEDS_MAX 64u

/* Seeds to try for generators that do not hold theirs: those the states mention, and common habits.
 */
struct seeds {
	uint64_t items[SEEDS_MAX];
	size_t count;
};

static void add_seed(struct seeds *s, uint64_t seed)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->items[i] == seed)
			return;
	if (s->count < SEEDS_MAX)
		s->items[s->count++] = seed;
}

static void add_seeds_of(struct seeds *seeds, const struct state *s)
{
	for (size_t i = 0; i < s->facts.count; i++) {
		const struct fact *f = &s->facts.items[i];
		if ((f->key == FACT_SEED || f->key == FACT_DATA_SEED) && f->type == FACT_INT)
			add_seed(seeds, (uint64_t)f->i);
	}
	for (size_t i = 0; i < s->bodies.count; i++)
		if (s->bodies.items[i]->has_seed)
			add_seed(seeds, s->bodies.items[i]->seed);
	/* Ranks are commonly seeded with seed + rank. */
	size_t known = seeds->count;
	for (size_t i = 0; i < known; i++)
		for (int32_t r = 1; r < s->world && r < 8; r++)
			add_seed(seeds, seeds->items[i] + (uint64_t)r);
}

static bool same_kind(const struct stream *a, const struct stream *b)
{
	return a->rank == b->rank && a->device == b->device && strcmp(a->owner, b->owner) == 0;
}

/*
 * The stream of `earlier` for one of `later`: the same path, or the only one of its kind. Streams
 * are sorted by kind, so those of one kind lie together: O(log n) and their number.
 */
static const struct stream *find_partner(const struct state *earlier, const struct stream *of)
{
	const struct stream *all = earlier->streams.items;
	size_t low = 0, high = earlier->streams.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (stream_kind_compare(&all[middle], of) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	size_t count = 0;
	for (; low + count < earlier->streams.count && same_kind(&all[low + count], of); count++)
		if (strcmp(all[low + count].path, of->path) == 0)
			return &all[low + count];
	return count == 1 ? &all[low] : NULL;
}

/* What one process saved without a rank continues what rank 0 saved, and the other way round. */
static const struct stream *partner(const struct state *earlier, const struct stream *of)
{
	const struct stream *found = find_partner(earlier, of);
	struct stream other = *of;

	if (found || of->rank > 0)
		return found;
	other.rank = of->rank == NO_RANK ? 0 : NO_RANK;
	return find_partner(earlier, &other);
}

/* Ask for all pairs first: one walk from each start then serves every pair that it meets. */
static int relate_all(struct stream_pairs *pairs, struct rng_search *search,
	const struct seeds *seeds, struct error *e)
{
	size_t *query = calloc(pairs->list.count + 1, sizeof *query);
	int status = query ? RP_OK
			   : fail(e, RP_E_MEMORY, ERROR_NO_OFFSET,
				     "no memory to compare random streams");

	for (size_t i = 0; i < pairs->list.count && status == RP_OK; i++) {
		struct stream_pair *p = &pairs->list.items[i];
		if (p->later)
			status = rng_search_add(search, p->earlier ? p->earlier->body : NULL,
				p->later->body, seeds->items, seeds->count, &query[i], e);
	}
	if (status == RP_OK)
		status = rng_search_run(search, e);
	for (size_t i = 0; i < pairs->list.count && status == RP_OK; i++) {
		struct stream_pair *p = &pairs->list.items[i];
		if (p->later)
			p->relation = *rng_search_answer(search, query[i]);
	}
	free(query);
	return status;
}

int streams_relate(struct stream_pairs *pairs, const struct state *earlier,
	const struct state *later, struct rng_search *search, struct error *e)
{
	struct seeds seeds = {.count = 0};

	*pairs = (struct stream_pairs){0};
	add_seeds_of(&seeds, later);
	add_seeds_of(&seeds, earlier);
	for (size_t i = 0; i < rng_common_seed_count; i++)
		add_seed(&seeds, rng_common_seeds[i]);
	bool *used = calloc(earlier->streams.count + 1, sizeof *used);
	if (!used)
		return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory to compare random streams");
	bool full = false;
	for (size_t i = 0; i < later->streams.count; i++) {
		struct stream_pair *p = array_push(&pairs->list, PAIRS_MAX);
		if (!p) {
			full = true;
			break;
		}
		p->later = &later->streams.items[i];
		p->earlier = partner(earlier, p->later);
		if (p->earlier)
			used[p->earlier - earlier->streams.items] = true;
	}
	for (size_t i = 0; i < earlier->streams.count && !full; i++) {
		struct stream_pair *p = used[i] ? NULL : array_push(&pairs->list, PAIRS_MAX);
		if (p)
			p->earlier = &earlier->streams.items[i];
		full = !used[i] && !p;
	}
	free(used);
	if (full)
		return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory to compare random streams");
	return relate_all(pairs, search, &seeds, e);
}

int streams_since_seed(struct stream_pairs *pairs, const struct state *state,
	struct rng_search *search, struct error *e)
{
	struct seeds seeds = {.count = 0};

	*pairs = (struct stream_pairs){0};
	add_seeds_of(&seeds, state);
	for (size_t i = 0; i < rng_common_seed_count; i++)
		add_seed(&seeds, rng_common_seeds[i]);
	for (size_t i = 0; i < state->streams.count; i++) {
		struct stream_pair *p = array_push(&pairs->list, PAIRS_MAX);
		if (!p)
			return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET,
				"no memory to search random streams");
		p->later = &state->streams.items[i];
	}
	return relate_all(pairs, search, &seeds, e);
}

void stream_pairs_release(struct stream_pairs *pairs)
{
	array_release(&pairs->list);
}

bool tensor_same_shape(const struct state_tensor *a, const struct state_tensor *b)
{
	return a->ndim == b->ndim &&
	       (a->ndim == 0 || memcmp(a->shape, b->shape, a->ndim * sizeof *a->shape) == 0);
}

const char *tensor_bare_name(const struct state_tensor *t)
{
	static const char wrapper[] = "module.";

	return strncmp(t->name, wrapper, sizeof wrapper - 1) == 0 ? t->name + sizeof wrapper - 1
								  : t->name;
}

static int compare_names(const void *pa, const void *pb)
{
	const struct state_tensor *a = *(const struct state_tensor *const *)pa;
	const struct state_tensor *b = *(const struct state_tensor *const *)pb;
	int order = strcmp(tensor_bare_name(a), tensor_bare_name(b));

	if (order == 0)
		order = (a->rank > b->rank) - (a->rank < b->rank);
	return order;
}

/*
 * The tensors of one role (and of one file, if not NO_FILE) by name, in an array of `*count` that
 * the caller frees; NULL without memory.
 */
static const struct state_tensor **by_name(
	const struct state *s, enum tensor_role role, uint32_t file, size_t *count)
{
	const struct state_tensor **list = calloc(s->tensors.count + 1, sizeof *list);

	*count = 0;
	for (size_t i = 0; list && i < s->tensors.count; i++)
		if (s->tensors.items[i].role == role &&
			(file == NO_FILE || s->tensors.items[i].file == file))
			list[(*count)++] = &s->tensors.items[i];
	if (list && *count > 1)
		qsort(list, *count, sizeof *list, compare_names);
	return list;
}

static void compare_pair(struct tensor_changes *w, const struct state *earlier,
	const struct state *later, const struct state_tensor *x, const struct state_tensor *y)
{
	bool shape = tensor_same_shape(x, y);

	w->both++;
	if (x->dtype != y->dtype || !shape) {
		w->retyped += x->dtype != y->dtype;
		w->reshaped += !shape;
		w->odd_count++;
		if (!w->odd) {
			w->odd = y;
			w->was = x;
		}
		return;
	}
	int same = tensor_same(earlier, x, later, y);
	w->known += same >= 0;
	w->same += same == 1;
	if (same == 0)
		w->different = y;
}

/* Merge the two lists: what both have goes into pairs. */
static bool pair_all(const struct state *earlier, enum tensor_role role, const struct state *later,
	enum tensor_role later_role, uint32_t later_file, struct tensor_pairs *pairs)
{
	size_t na, nb;
	const struct state_tensor **a = by_name(earlier, role, NO_FILE, &na);
	const struct state_tensor **b = by_name(later, later_role, later_file, &nb);
	bool ok = a && b;

	*pairs = (struct tensor_pairs){0};
	for (size_t i = 0, k = 0; ok && (i < na || k < nb);) {
		int order = i == na ? 1 : k == nb ? -1 : compare_names(&a[i], &b[k]);
		struct tensor_pair *p = order == 0 ? array_push(&pairs->list, PAIRS_MAX) : NULL;
		if (p)
			*p = (struct tensor_pair){a[i], b[k]};
		ok = p || order != 0;
		pairs->single += order != 0;
		i += order <= 0;
		k += order >= 0;
	}
	free(a);
	free(b);
	if (!ok)
		tensor_pairs_release(pairs);
	return ok;
}

bool tensors_pair(const struct state *earlier, const struct state *later, enum tensor_role role,
	struct tensor_pairs *pairs)
{
	return pair_all(earlier, role, later, role, NO_FILE, pairs);
}

void tensor_pairs_release(struct tensor_pairs *pairs)
{
	array_release(&pairs->list);
}

static bool compare_all(const struct state *earlier, enum tensor_role role,
	const struct state *later, enum tensor_role later_role, uint32_t later_file,
	struct tensor_changes *w)
{
	struct tensor_pairs pairs;

	*w = (struct tensor_changes){0};
	if (!pair_all(earlier, role, later, later_role, later_file, &pairs))
		return false;
	for (size_t i = 0; i < pairs.list.count; i++)
		compare_pair(
			w, earlier, later, pairs.list.items[i].earlier, pairs.list.items[i].later);
	w->single = pairs.single;
	tensor_pairs_release(&pairs);
	return true;
}

bool tensors_compare(const struct state *earlier, enum tensor_role role, const struct state *later,
	enum tensor_role later_role, struct tensor_changes *w)
{
	return compare_all(earlier, role, later, later_role, NO_FILE, w);
}

bool tensors_compare_file(const struct state *earlier, const struct state *later, uint32_t file,
	struct tensor_changes *w)
{
	return compare_all(earlier, TENSOR_WEIGHT, later, TENSOR_WEIGHT, file, w);
}
