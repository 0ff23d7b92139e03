/* SPDX-License-Identifier: MIT */
/*
 * Family I, replicas: the same weight in the files of several ranks. Whether that is one model in
 * copies is written nowhere: tensor-parallel ranks save different parts under one name. It is
 * proven where some ranks agree and others are alone, where all agreed in the previous checkpoint,
 * where nearly all other weights agree, or where DistributedDataParallel gave the names.
 */
#include <stdlib.h>

#include "audit/case.h"

#define GROUPS_MAX ((size_t)1 << 24)
#define RANKS_SHOWN 64u
/* Where so many times more weights agree than do not, the others should agree too. */
#define NEARLY_ALL 9u

enum agreement {
	INCOMPARABLE, /* other shapes, not read, or constant, as what was never trained */
	AGREED,
	SPLIT,  /* into classes of one size: parts of a whole, or copies that came apart */
	UNEVEN, /* into classes of several sizes: most agree, and some are alone */
};

/* One weight in the files of several ranks. */
struct group {
	const char *name;                        /* without the wrapper's prefix */
	const struct state_tensor *const *items; /* by rank */
	size_t count;
	enum agreement agreement;
};

struct replicas {
	const struct state *state;
	const struct state_tensor **list; /* of all ranks' weights, by name and rank */
	ARRAY(struct group) groups;
	uint64_t of[UNEVEN + 1]; /* groups of each agreement */
	bool wrapped;            /* every name begins as DistributedDataParallel has it */
};

static int compare_copies(const void *pa, const void *pb)
{
	const struct state_tensor *a = *(const struct state_tensor *const *)pa;
	const struct state_tensor *b = *(const struct state_tensor *const *)pb;
	int order = strcmp(tensor_bare_name(a), tensor_bare_name(b));

	return order ? order : (a->rank > b->rank) - (a->rank < b->rank);
}

static int compare_group_name(const void *key, const void *element)
{
	return strcmp(key, ((const struct group *)element)->name);
}

static size_t count_equal(const struct state *s, const struct group *g, size_t of)
{
	size_t equal = 0;

	for (size_t i = 0; i < g->count; i++)
		equal += tensor_same(s, g->items[of], s, g->items[i]) == 1;
	return equal;
}

/* O(copies squared): a weight has one a rank. */
static enum agreement agreement_of(const struct state *s, const struct group *g)
{
	const struct state_tensor *first = g->items[0];

	for (size_t i = 0; i < g->count; i++) {
		const struct state_tensor *t = g->items[i];
		const struct tensor_summary *v = tensor_summary_of(s, t);
		if (!v || !v->valued || !(v->min < v->max) || t->dtype != first->dtype ||
			!tensor_same_shape(t, first))
			return INCOMPARABLE;
	}
	size_t equal = count_equal(s, g, 0);
	if (equal == g->count)
		return AGREED;
	for (size_t i = 1; i < g->count; i++)
		if (count_equal(s, g, i) != equal)
			return UNEVEN;
	return SPLIT;
}

static void replicas_release(struct replicas *r)
{
	free(r->list);
	array_release(&r->groups);
}

/* Every weight that more than one rank has. False without memory. */
static bool replicas_find(struct replicas *r, const struct state *s)
{
	size_t count = 0;

	*r = (struct replicas){.state = s, .wrapped = true};
	r->list = calloc(s->tensors.count + 1, sizeof *r->list);
	if (!r->list)
		return false;
	for (size_t i = 0; i < s->tensors.count; i++)
		if (s->tensors.items[i].role == TENSOR_WEIGHT &&
			s->tensors.items[i].rank != NO_RANK)
			r->list[count++] = &s->tensors.items[i];
	qsort(r->list, count, sizeof *r->list, compare_copies);
	for (size_t i = 0; i < count;) {
		struct group g = {.name = tensor_bare_name(r->list[i]), .items = r->list + i};
		while (i < count && strcmp(tensor_bare_name(r->list[i]), g.name) == 0) {
			r->wrapped = r->wrapped && tensor_bare_name(r->list[i]) != r->list[i]->name;
			g.count++;
			i++;
		}
		struct group *kept = g.count > 1 ? array_push(&r->groups, GROUPS_MAX) : NULL;
		if (g.count > 1 && !kept)
			return false;
		if (!kept)
			continue;
		g.agreement = agreement_of(s, &g);
		r->of[g.agreement]++;
		*kept = g;
	}
	return true;
}

/* Whether the copies of a weight are no longer what they must be, and why that is known. */
static const char *proof(
	const struct replicas *now, const struct replicas *before, const struct group *g)
{
	if (g->agreement == UNEVEN)
		return "most ranks agree, so they hold copies of one model";
	if (g->agreement != SPLIT)
		return NULL;
	const struct group *was =
		before && before->groups.count > 0
			? bsearch(g->name, before->groups.items, before->groups.count,
				  sizeof *before->groups.items, compare_group_name)
			: NULL;
	if (was && was->agreement == AGREED && was->count == g->count)
		return "they were equal in the previous checkpoint";
	/* Experts are of one rank by design, however few there are. */
	if (now->of[AGREED] > NEARLY_ALL * (now->of[SPLIT] + now->of[UNEVEN]) &&
		!strstr(g->name, "expert"))
		return "nearly all other weights are equal on all ranks";
	if (now->wrapped && now->of[AGREED] == 0)
		return "DistributedDataParallel, whose names they have, keeps them equal";
	return NULL;
}

/* The ranks that do not have what most have; all where none are most. */
static const char *odd_ranks(struct findings *sink, const struct state *s, const struct group *g)
{
	int32_t ranks[RANKS_SHOWN];
	size_t most = 0, count = 0;

	for (size_t i = 0; i < g->count; i++) {
		size_t equal = count_equal(s, g, i);
		most = equal > most ? equal : most;
	}
	for (size_t i = 0; i < g->count && count < RANKS_SHOWN; i++)
		if (g->agreement == SPLIT || count_equal(s, g, i) < most)
			ranks[count++] = g->items[i]->rank;
	return ranks_text(sink, ranks, count);
}

static void judge(struct audit_case *c, struct findings *sink, const struct replicas *now,
	const struct replicas *before)
{
	const struct group *example = NULL;
	const char *why = NULL;
	uint64_t apart = 0;

	for (size_t i = 0; i < now->groups.count; i++) {
		const struct group *g = &now->groups.items[i];
		const char *known = proof(now, before, g);
		apart += known != NULL;
		if (known && !example) {
			example = g;
			why = known;
		}
	}
	if (!example)
		return;
	const uint64_t compared = now->of[AGREED] + now->of[SPLIT] + now->of[UNEVEN];
	const char *ranks = odd_ranks(sink, now->state, example);
	struct finding *f = finding_add(sink, FINDING_I111,
		"%llu of %llu weights differ on rank%s %s: %s", (unsigned long long)apart,
		(unsigned long long)compared, strpbrk(ranks, ",-") ? "s" : "", ranks, why);
	place_file(sink, f, c->current, example->items[example->count - 1]->file);
	f->place.path = findings_escaped(sink, slice_of(example->items[0]->name));
	f->place.ranks = ranks;
	f->place.step_first = f->place.step_last = case_step(c);
	f->observed = quantity_count((int64_t)(compared - apart));
	f->expected = quantity_count((int64_t)compared);
	f->unit = "equal weights";
}

static void run_replicas(struct audit_case *c, struct findings *sink, struct coverage *cover)
{
	struct replicas now, before = {0};
	bool ok = replicas_find(&now, c->current) &&
		  (!c->previous || replicas_find(&before, c->previous));

	if (ok) {
		const uint64_t known = now.groups.count - now.of[INCOMPARABLE];
		judge(c, sink, &now, c->previous ? &before : NULL);
		cover_ran(cover, "replicas", "copies of weights that several ranks hold", "weights",
			known, now.groups.count,
			known < now.groups.count
				? "the others have one value, other shapes, or could not be read"
				: NULL);
	} else {
		sink->lost++;
	}
	replicas_release(&now);
	replicas_release(&before);
}

const struct rule rule_replicas = {
	.name = "replicas",
	.subject = "copies of weights that several ranks hold",
	.needs = NEEDS_BYTES,
	.run = run_replicas,
};
