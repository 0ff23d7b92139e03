/* SPDX-License-Identifier: MIT */
/*
 * The blocks of MT19937 form paths: each has one successor. Every state and every seed to be tried
 * is a node, that is, a block from which one may walk. Nodes known to be on one path form a tree in
 * which each knows how many blocks ahead of its parent it is, so that the distance of any two of
 * them is a subtraction (a union-find with offsets). Only the root of a tree walks on; what lies
 * ahead of the others was walked before they joined.
 *
 * Landmarks are blocks that can be recognised: the nodes' own, every 64th block of a walk, and the
 * last of each stretch. So a path remembers where it has been in little memory: a node that is
 * added later, anywhere on ground that was walked, meets a landmark within 64 blocks of its own.
 */
#include "rng/search.h"

#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "rng/philox.h"
#include "rng/rng.h"

#define N MT19937_WORDS
#define NO_NODE UINT32_MAX
#define NODES_MAX ((size_t)NO_NODE - 1)
#define ASK_EVERY 64u /* blocks between two looks at the clock: some 20 us */
#define LANDMARK_EVERY 64u

/* How far the first round of walks goes, in blocks, and the factor of each further round. */
#define FIRST_DEPTH 16u
#define DEEPEN 2u

/*
 * Where it is most likely that something is found one looks furthest: ahead of the earlier state,
 * and from the seed that a state itself names. Guessed seeds, and the way back from the later
 * state, are followed to one part in 32; and guesses that nothing depends on any more, to a
 * fixed depth.
 */
#define UNLIKELY 32u
#define CURIOUS_DEPTH 1024u

/* An MPS state of the older layout names its last block; its number is looked for among so many. */
#define PHILOX_BLOCKS ((uint64_t)1 << 22)

struct rng_node {
	const struct mt19937 *start; /* borrowed; NULL in a seed, which has `walk` from birth */
	struct mt19937 *walk;        /* where the walk is; NULL before it began, after it ended */
	uint64_t depth;              /* blocks walked */
	uint32_t parent;             /* itself in a root */
	bool late;                   /* added after walks began: may lie on walked ground */
	int64_t ahead;               /* blocks from the parent's block to this one */
};

struct rng_landmark {
	uint64_t key;    /* words 1 and 2 of the block */
	uint64_t digest; /* of all words */
	uint64_t depth;  /* blocks ahead of the node */
	uint32_t node;
	bool used;
};

/* A seed from which a state may have come, as a starting point. */
struct rng_candidate {
	uint64_t seed;
	uint32_t node, pos;
};

/* The candidates made from one list of seeds for one layout, shared by all states that try them. */
struct rng_guesses {
	uint64_t digest;
	enum rng_layout layout;
	size_t first, count;
};

struct side {
	const struct rng_state *state;
	uint32_t node;
	size_t first, count; /* candidates */
};

struct rng_query {
	struct side earlier, later;
	bool related; /* the relation proper is known; what is left is curiosity */
	struct rng_relation answer;
};

const uint64_t rng_common_seeds[] = {
	0,
	1,
	2,
	3,
	7,
	42,
	100,
	123,
	1234,
	1337,
	2021,
	2022,
	2023,
	2024,
	2025,
	2026,
	3407,
	12345,
};
const size_t rng_common_seed_count = sizeof rng_common_seeds / sizeof rng_common_seeds[0];

void rng_search_init(struct rng_search *s, uint64_t budget)
{
	*s = (struct rng_search){.budget = budget ? budget : RNG_SEARCH_BUDGET};
}

void rng_search_release(struct rng_search *s)
{
	for (size_t i = 0; i < s->nodes.count; i++)
		free(s->nodes.items[i].walk);
	array_release(&s->nodes);
	array_release(&s->candidates);
	array_release(&s->guesses);
	array_release(&s->queries);
	free(s->table);
	s->table = NULL;
	s->table_count = s->table_size = 0;
	s->first_open = 0;
}

static int no_memory(struct error *e)
{
	return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory to compare random number states");
}

/* ---- landmarks: open addressing, at most half full --------------------------------------- */

/* Not word 0: of a seeded block all but its top bit is without consequence. */
static uint64_t block_key(const uint32_t *words)
{
	return (uint64_t)words[1] << 32 | words[2];
}

static uint64_t block_digest(const uint32_t *words)
{
	return XXH3_64bits(words, N * sizeof *words);
}

static size_t home(const struct rng_search *s, uint64_t key)
{
	return (size_t)((key * 0x9e3779b97f4a7c15u) >> 32) & (s->table_size - 1);
}

/* The landmark at this block, or NULL. The digest is only made where the key agrees. */
static const struct rng_landmark *landmark_at(const struct rng_search *s, const uint32_t *words)
{
	uint64_t key = block_key(words), digest = 0;
	bool digested = false;

	if (!s->table)
		return NULL;
	for (size_t i = home(s, key); s->table[i].used; i = (i + 1) & (s->table_size - 1)) {
		if (s->table[i].key != key)
			continue;
		if (!digested)
			digest = block_digest(words);
		digested = true;
		if (s->table[i].digest == digest)
			return &s->table[i];
	}
	return NULL;
}

static void put(struct rng_search *s, struct rng_landmark landmark)
{
	size_t i = home(s, landmark.key);

	while (s->table[i].used)
		i = (i + 1) & (s->table_size - 1);
	s->table[i] = landmark;
	s->table_count++;
}

static bool grow(struct rng_search *s)
{
	struct rng_landmark *old = s->table;
	size_t old_size = s->table_size, size = old_size ? 2 * old_size : 1024;
	struct rng_landmark *table = calloc(size, sizeof *table);

	if (!table)
		return false;
	s->table = table;
	s->table_size = size;
	s->table_count = 0;
	for (size_t i = 0; i < old_size; i++)
		if (old[i].used)
			put(s, old[i]);
	free(old);
	return true;
}

static bool landmark_add(struct rng_search *s, const uint32_t *words, uint32_t node, uint64_t depth)
{
	if (2 * (s->table_count + 1) > s->table_size && !grow(s))
		return false;
	put(s, (struct rng_landmark){block_key(words), block_digest(words), depth, node, true});
	return true;
}

/* ---- paths ------------------------------------------------------------------------------- */

/* The root of the node's path; `*ahead` becomes the blocks from the root's block to the node's. */
static uint32_t path_of(struct rng_search *s, uint32_t node, int64_t *ahead)
{
	struct rng_node *nodes = s->nodes.items;
	uint32_t root = node;
	int64_t sum = 0;

	for (; nodes[root].parent != root; root = nodes[root].parent)
		sum += nodes[root].ahead;
	*ahead = sum;
	/* Hang everything on the way directly under the root. */
	while (nodes[node].parent != root && node != root) {
		uint32_t parent = nodes[node].parent;
		int64_t step = nodes[node].ahead;
		nodes[node].parent = root;
		nodes[node].ahead = sum;
		sum -= step;
		node = parent;
	}
	return root;
}

static void join(struct rng_search *s, uint32_t root, uint32_t other, int64_t ahead)
{
	struct rng_node *node = &s->nodes.items[root];

	node->parent = other;
	node->ahead = ahead;
	free(node->walk);
	node->walk = NULL;
}

/*
 * Whether both nodes are on one path, as far as is known; then `*words` is the way from the first
 * one's position to the second one's, which may be negative.
 */
static bool way(struct rng_search *s, uint32_t from, uint32_t from_pos, uint32_t to,
	uint32_t to_pos, int64_t *words)
{
	int64_t from_ahead, to_ahead;

	if (path_of(s, from, &from_ahead) != path_of(s, to, &to_ahead))
		return false;
	*words = (to_ahead - from_ahead) * (int64_t)N + (int64_t)to_pos - (int64_t)from_pos;
	return true;
}

/*
 * The node at this block. `start` is borrowed by the node; `owned` instead is freed or taken over.
 * NO_NODE where memory runs out.
 */
static uint32_t node_at(struct rng_search *s, const struct mt19937 *start, struct mt19937 *owned)
{
	const uint32_t *words = owned ? owned->s : start->s;
	const struct rng_landmark *known = landmark_at(s, words);
	uint32_t number = (uint32_t)s->nodes.count;

	if (known && known->depth == 0) {
		free(owned);
		return known->node;
	}
	struct rng_node *node = array_push(&s->nodes, NODES_MAX);
	if (!node || (!known && !landmark_add(s, words, number, 0))) {
		s->nodes.count = number;
		free(owned);
		return NO_NODE;
	}
	*node = (struct rng_node){
		.start = start, .walk = owned, .parent = number, .late = s->walked > 0};
	if (known)
		join(s, number, known->node, (int64_t)known->depth);
	return number;
}

/*
 * Walk on from a root for up to `blocks`, or until it joins another path. The deadline ends all
 * walks by taking what is left of the budget.
 */
static int walk(struct rng_search *s, uint32_t root, uint64_t blocks, struct error *e)
{
	struct rng_node *node = &s->nodes.items[root];

	if (!node->walk) {
		node->walk = malloc(sizeof *node->walk);
		if (!node->walk)
			return no_memory(e);
		memcpy(node->walk, node->start, sizeof *node->walk);
	}
	struct mt19937 *m = node->walk;
	for (; blocks > 0; blocks--) {
		if (blocks % ASK_EVERY == 0 && deadline_passed(s->deadline)) {
			s->late = true;
			s->budget = 0;
			return RP_OK;
		}
		mt19937_twist(m);
		node->depth++;
		s->walked += N;
		s->budget -= N;
		const struct rng_landmark *met = landmark_at(s, m->s);
		if (met) {
			int64_t ahead;
			uint32_t other = path_of(s, met->node, &ahead);
			/* A path does not come back to itself within 2^19937 words. */
			if (other == root)
				continue;
			join(s, root, other, ahead + (int64_t)met->depth - (int64_t)node->depth);
			return RP_OK;
		}
		if ((node->depth % LANDMARK_EVERY == 0 || blocks == 1) &&
			!landmark_add(s, m->s, root, node->depth))
			return no_memory(e);
	}
	return RP_OK;
}

/* How many blocks ahead of the node its path is known. */
static uint64_t reach(struct rng_search *s, uint32_t node)
{
	int64_t ahead;
	uint32_t root = path_of(s, node, &ahead);

	return (uint64_t)((int64_t)s->nodes.items[root].depth - ahead);
}

/*
 * See to it that the path is known `depth` blocks ahead of the node, as far as the budget goes, or
 * that `goal` (unless NO_NODE) is on it.
 */
static int look_ahead(
	struct rng_search *s, uint32_t node, uint64_t depth, uint32_t goal, struct error *e)
{
	int status = RP_OK;

	while (status == RP_OK && s->budget >= N && reach(s, node) < depth) {
		int64_t ahead;
		uint32_t root = path_of(s, node, &ahead);
		if (goal != NO_NODE && path_of(s, goal, &ahead) == root)
			break;
		uint64_t blocks = depth - reach(s, node), most = s->budget / N;
		status = walk(s, root, blocks < most ? blocks : most, e);
	}
	return status;
}

/* Let a late node find out on which path it is, if its surroundings were walked before it came. */
static int find_path(
	struct rng_search *s, uint32_t node, uint64_t depth, uint32_t goal, struct error *e)
{
	if (!s->nodes.items[node].late)
		return RP_OK;
	return look_ahead(s, node, depth < LANDMARK_EVERY ? depth : LANDMARK_EVERY, goal, e);
}

/* ---- candidates -------------------------------------------------------------------------- */

static int add_candidate(struct rng_search *s, enum rng_layout layout, uint64_t seed,
	bool other_way, struct error *e)
{
	struct mt19937 *m = malloc(sizeof *m);

	if (!m)
		return no_memory(e);
	if (layout == RNG_LAYOUT_PYTHON)
		mt19937_seed_python(m, other_way ? -seed : seed);
	else if (layout == RNG_LAYOUT_NUMPY && other_way)
		mt19937_seed_sequence(m, seed);
	else
		mt19937_seed(m, (uint32_t)seed);
	uint32_t pos = m->pos, node = node_at(s, NULL, m);
	struct rng_candidate *c = node == NO_NODE ? NULL : array_push(&s->candidates, NODES_MAX);
	if (!c)
		return no_memory(e);
	*c = (struct rng_candidate){seed, node, pos};
	return RP_OK;
}

/*
 * Where a state that does not hold its seed may have come from. numpy seeds are cut to the 32 bits
 * that numpy.random.seed() takes, which is what trainers do with longer ones; as many of them again
 * are tried as seeds of a SeedSequence. Python ignores the sign, and a negative seed may be known
 * as 2^64 - n.
 */
static int add_guesses(struct rng_search *s, enum rng_layout layout, const uint64_t *seeds,
	size_t count, struct side *side, struct error *e)
{
	uint64_t digest = XXH3_64bits_withSeed(seeds, count * sizeof *seeds, count);
	int status = RP_OK;

	for (size_t i = 0; i < s->guesses.count; i++) {
		const struct rng_guesses *g = &s->guesses.items[i];
		if (g->digest == digest && g->layout == layout) {
			side->first = g->first;
			side->count = g->count;
			return RP_OK;
		}
	}
	side->first = s->candidates.count;
	for (size_t i = 0; i < count && status == RP_OK; i++) {
		bool numpy = layout == RNG_LAYOUT_NUMPY;
		uint64_t cut = numpy ? seeds[i] & UINT32_MAX : seeds[i];
		status = add_candidate(s, layout, cut, false, e);
		if (status == RP_OK && (numpy || seeds[i] > INT64_MAX))
			status = add_candidate(s, layout, seeds[i], true, e);
	}
	if (status < 0)
		return status;
	side->count = s->candidates.count - side->first;
	struct rng_guesses *g = array_push(&s->guesses, NODES_MAX);
	if (!g)
		return no_memory(e);
	*g = (struct rng_guesses){digest, layout, side->first, side->count};
	return RP_OK;
}

static int add_side(struct rng_search *s, struct side *side, const struct rng_state *state,
	const uint64_t *seeds, size_t count, struct error *e)
{
	side->state = state;
	side->node = node_at(s, &state->mt, NULL);
	if (side->node == NO_NODE)
		return no_memory(e);
	if (!state->has_seed)
		return add_guesses(s, state->layout, seeds, count, side, e);
	side->first = s->candidates.count;
	side->count = 1;
	return add_candidate(s, state->layout, state->seed, false, e);
}

/* Look for the state ahead of the seeds that may have made it; the nearest wins. */
static bool find_seed(
	struct rng_search *s, const struct side *side, uint64_t *seed, uint64_t *since)
{
	bool found = false;

	for (size_t i = 0; i < side->count; i++) {
		const struct rng_candidate *c = &s->candidates.items[side->first + i];
		int64_t words;
		if (!way(s, c->node, c->pos, side->node, side->state->mt.pos, &words))
			continue;
		if (words < 0 || (found && (uint64_t)words >= *since))
			continue;
		*seed = c->seed;
		*since = (uint64_t)words;
		found = true;
	}
	return found;
}

static int look_from_seeds(
	struct rng_search *s, const struct side *side, uint64_t depth, struct error *e)
{
	int status = RP_OK;

	for (size_t i = 0; i < side->count && status == RP_OK; i++) {
		uint32_t node = s->candidates.items[side->first + i].node;
		status = look_ahead(s, node, depth, side->node, e);
	}
	return status;
}

/* ---- relations --------------------------------------------------------------------------- */

/* At the same position what was kept decides: handed out since, or there again. */
static enum rng_relation_kind same_position(const struct rng_state *a, const struct rng_state *b)
{
	if (a->kept == b->kept && a->kept_normal == b->kept_normal && a->kept_word == b->kept_word)
		return RNG_IDENTICAL;
	if (a->kept & ~b->kept)
		return RNG_ADVANCED;
	return b->kept & ~a->kept ? RNG_BEHIND : RNG_UNRELATED;
}

static void place(struct rng_relation *r, const struct rng_state *earlier,
	const struct rng_state *later, uint64_t forward, uint64_t backward)
{
	if (forward == 0 && backward == 0)
		r->kind = same_position(earlier, later);
	else
		r->kind = forward ? RNG_ADVANCED : RNG_BEHIND;
	r->draws = forward ? forward : backward;
}

static enum rng_relation_kind or_reseeded(struct rng_relation *r)
{
	r->kind = r->seed_known ? RNG_RESEEDED : RNG_UNRELATED;
	r->draws = r->seed_known ? r->since_seed : 0;
	return r->kind;
}

static void relate_mt(struct rng_search *s, struct rng_query *q)
{
	struct rng_relation *r = &q->answer;
	int64_t words;

	r->seed_known = find_seed(s, &q->later, &r->seed, &r->since_seed);
	/*
	 * Only the end of the budget ends the search for a relation, or for a seed that is certain.
	 */
	r->exhausted = s->budget < N && q->later.state->has_seed && !r->seed_known;
	if (!q->earlier.state)
		return;
	r->earlier_seed_known = find_seed(s, &q->earlier, &r->earlier_seed, &r->earlier_since_seed);
	r->searched = reach(s, q->earlier.node) * N;
	const struct rng_state *earlier = q->earlier.state, *later = q->later.state;
	if (way(s, q->earlier.node, earlier->mt.pos, q->later.node, later->mt.pos, &words))
		place(r, earlier, later, words > 0 ? (uint64_t)words : 0,
			words < 0 ? (uint64_t)-words : 0);
	else if (or_reseeded(r) == RNG_UNRELATED)
		r->exhausted = true;
}

/* The offset of a Philox state, from the block that stands for it where need be. */
static bool philox_offset(struct rng_search *s, const struct rng_state *state, uint64_t *offset)
{
	if (state->has_offset) {
		*offset = state->offset;
		return true;
	}
	uint64_t most = s->budget / 4 < PHILOX_BLOCKS ? s->budget / 4 : PHILOX_BLOCKS;
	uint64_t block = philox_find(state->seed, state->philox_block, most);
	bool found = block != UINT64_MAX;
	uint64_t spent = 4 * (found ? block + 1 : most);
	s->walked += spent;
	s->budget -= spent;
	*offset = found ? spent : 0;
	return found;
}

static void relate_philox(struct rng_search *s, struct rng_relation *r,
	const struct rng_state *earlier, const struct rng_state *later)
{
	r->seed = later->seed;
	r->seed_known = philox_offset(s, later, &r->since_seed);
	r->exhausted = !r->seed_known;
	if (!earlier)
		return;
	r->earlier_seed = earlier->seed;
	r->earlier_seed_known = philox_offset(s, earlier, &r->earlier_since_seed);
	uint64_t here = r->earlier_since_seed, there = r->since_seed;
	if (earlier->seed != later->seed)
		or_reseeded(r);
	else if (r->seed_known && r->earlier_seed_known)
		place(r, earlier, later, there > here ? there - here : 0,
			here > there ? here - there : 0);
	else
		r->kind = rng_equal(earlier, later) ? RNG_IDENTICAL : RNG_UNRELATED;
}

/* 2^64 steps are more than any run takes; two unrelated states are about 2^126 apart. */
static bool pcg_way(
	const struct pcg64 *from, const struct pcg64 *to, uint64_t *forward, uint64_t *backward)
{
	if (from->inc != to->inc)
		return false;
	u128 ahead = pcg64_distance(from, to), behind = -ahead;
	*forward = ahead <= UINT64_MAX ? (uint64_t)ahead : 0;
	*backward = behind <= UINT64_MAX ? (uint64_t)behind : 0;
	return ahead == 0 || *forward || *backward;
}

static bool pcg_seed(
	const struct pcg64 *g, const uint64_t *seeds, size_t count, uint64_t *seed, uint64_t *since)
{
	for (size_t i = 0; i < count; i++) {
		struct pcg64 start;
		uint64_t backward;
		pcg64_seed_u64(&start, g->kind, seeds[i]);
		if (pcg_way(&start, g, since, &backward) && backward == 0) {
			*seed = seeds[i];
			return true;
		}
	}
	*since = 0;
	return false;
}

static void relate_pcg(struct rng_relation *r, const struct rng_state *earlier,
	const struct rng_state *later, const uint64_t *seeds, size_t count)
{
	uint64_t forward, backward;

	r->seed_known = pcg_seed(&later->pcg, seeds, count, &r->seed, &r->since_seed);
	if (!earlier)
		return;
	r->earlier_seed_known =
		pcg_seed(&earlier->pcg, seeds, count, &r->earlier_seed, &r->earlier_since_seed);
	if (pcg_way(&earlier->pcg, &later->pcg, &forward, &backward))
		place(r, earlier, later, forward, backward);
	else
		or_reseeded(r);
	r->searched = UINT64_MAX;
}

/* ---- the search -------------------------------------------------------------------------- */

int rng_search_add(struct rng_search *s, const struct rng_state *earlier,
	const struct rng_state *later, const uint64_t *seeds, size_t seed_count, size_t *query,
	struct error *e)
{
	struct rng_query q = {.answer = {.kind = RNG_NOT_COMPARABLE}};
	struct rng_relation *r = &q.answer;
	int status = RP_OK;

	if (!earlier || (earlier->algo == later->algo && earlier->layout == later->layout)) {
		switch (later->algo) {
		case RNG_MT19937:
			if (earlier)
				status = add_side(s, &q.earlier, earlier, seeds, seed_count, e);
			if (status == RP_OK)
				status = add_side(s, &q.later, later, seeds, seed_count, e);
			break;
		case RNG_PHILOX:
			relate_philox(s, r, earlier, later);
			break;
		case RNG_PCG64:
			relate_pcg(r, earlier, later, seeds, seed_count);
			break;
		case RNG_SEED_ONLY:
		case RNG_OPAQUE:
			if (earlier && rng_equal(earlier, later))
				r->kind = RNG_IDENTICAL;
			break;
		default:
			break;
		}
	}
	if (status < 0)
		return status;
	struct rng_query *slot = array_push(&s->queries, NODES_MAX);
	if (!slot)
		return no_memory(e);
	*slot = q;
	*query = s->queries.count - 1;
	return RP_OK;
}

static bool is_on_path(struct rng_search *s, const struct rng_query *q)
{
	int64_t words;

	return way(s, q->earlier.node, 0, q->later.node, 0, &words);
}

static bool has_known_seed(struct rng_search *s, const struct side *side)
{
	uint64_t seed, since;

	return find_seed(s, side, &seed, &since);
}

/*
 * The relation proper: whether the later state lies ahead of the earlier one, or else ahead of a
 * seed, or behind. Once it is found on the way from its seed, all blocks between the two are known,
 * so the earlier state is not among them.
 */
static int search_relation(
	struct rng_search *s, struct rng_query *q, uint64_t depth, struct error *e)
{
	uint32_t earlier = q->earlier.node, later = q->later.node;
	uint64_t less = depth / UNLIKELY;
	int status = find_path(s, later, depth, earlier, e);

	if (status == RP_OK)
		status = look_ahead(s, earlier, depth, later, e);
	q->related = is_on_path(s, q);
	if (status < 0 || q->related)
		return status;
	status = look_from_seeds(s, &q->later, q->later.state->has_seed ? depth : less, e);
	if (status == RP_OK && !has_known_seed(s, &q->later))
		status = look_ahead(s, later, less, earlier, e);
	q->related = is_on_path(s, q) || has_known_seed(s, &q->later);
	return status;
}

/*
 * What is good to know beside it: how far the state is from its seed. A seed that the state itself
 * names is followed as far as the budget goes, guesses only up to a point.
 */
static int search_seed(
	struct rng_search *s, const struct side *side, uint64_t depth, bool *open, struct error *e)
{
	if (!side->state || side->count == 0 || has_known_seed(s, side))
		return RP_OK;
	if (!side->state->has_seed && depth >= CURIOUS_DEPTH)
		depth = CURIOUS_DEPTH;
	else
		*open = true;
	int status = find_path(s, side->node, depth, NO_NODE, e);
	return status < 0 ? status : look_from_seeds(s, side, depth, e);
}

/* And whether a state that was re-seeded lies behind the earlier one. */
static int search_behind(struct rng_search *s, const struct rng_query *q, uint64_t depth,
	bool *open, struct error *e)
{
	if (!q->earlier.state || is_on_path(s, q))
		return RP_OK;
	if (depth >= CURIOUS_DEPTH)
		depth = CURIOUS_DEPTH;
	else
		*open = true;
	int status = find_path(s, q->earlier.node, depth, q->later.node, e);
	return status < 0 ? status : look_ahead(s, q->later.node, depth, q->earlier.node, e);
}

/* Only queries about MT19937 have sides; the others were answered when they were added. */
static bool is_walked(const struct rng_query *q)
{
	return q->later.state != NULL;
}

int rng_search_run(struct rng_search *s, struct error *e)
{
	if (s->first_open == s->queries.count)
		return RP_OK;
	struct rng_query *first = s->queries.items + s->first_open;
	struct rng_query *end = s->queries.items + s->queries.count;
	int status = RP_OK;
	bool open = true;

	for (uint64_t depth = FIRST_DEPTH; open && s->budget >= N; depth *= DEEPEN) {
		open = false;
		for (struct rng_query *q = first; q < end && status == RP_OK; q++) {
			if (!is_walked(q) || !q->earlier.state || q->related)
				continue;
			status = search_relation(s, q, depth, e);
			open = open || !q->related;
		}
		for (struct rng_query *q = first; q < end && status == RP_OK; q++) {
			if (!is_walked(q) || (q->earlier.state && !q->related))
				continue;
			status = search_seed(s, &q->later, depth, &open, e);
			if (status == RP_OK)
				status = search_seed(s, &q->earlier, depth, &open, e);
			if (status == RP_OK)
				status = search_behind(s, q, depth, &open, e);
		}
		if (status < 0)
			return status;
	}
	for (struct rng_query *q = first; q < end; q++) {
		if (!is_walked(q))
			continue;
		relate_mt(s, q);
		/* What was not found in the time that there was is not unrelated. */
		if (s->late && q->answer.kind == RNG_UNRELATED)
			q->answer.kind = RNG_NOT_SEARCHED;
	}
	s->first_open = s->queries.count;
	return RP_OK;
}

const struct rng_relation *rng_search_answer(const struct rng_search *s, size_t query)
{
	return &s->queries.items[query].answer;
}

int rng_search_relate(struct rng_search *s, const struct rng_state *earlier,
	const struct rng_state *later, const uint64_t *seeds, size_t seed_count,
	struct rng_relation *relation, struct error *e)
{
	size_t query;
	int status = rng_search_add(s, earlier, later, seeds, seed_count, &query, e);

	if (status == RP_OK)
		status = rng_search_run(s, e);
	if (status == RP_OK)
		*relation = *rng_search_answer(s, query);
	return status;
}

const char *rng_relation_name(enum rng_relation_kind kind)
{
	switch (kind) {
	case RNG_IDENTICAL:
		return "identical";
	case RNG_ADVANCED:
		return "advanced";
	case RNG_RESEEDED:
		return "re-seeded";
	case RNG_BEHIND:
		return "behind";
	case RNG_UNRELATED:
		return "unrelated";
	case RNG_NOT_SEARCHED:
		return "not-searched";
	case RNG_NOT_COMPARABLE:
		break;
	}
	return "not-comparable";
}
