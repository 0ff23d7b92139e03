/* SPDX-License-Identifier: MIT */
/* Family R: are the random streams saved, for every rank, and do they continue? */
#include <math.h>
#include <stdlib.h>

#include "audit/case.h"
#include "base/text.h"

static const struct stream *find_owner(const struct state *s, const char *owner)
{
	for (size_t i = 0; i < s->streams.count; i++)
		if (strcmp(s->streams.items[i].owner, owner) == 0)
			return &s->streams.items[i];
	return NULL;
}

static bool has_file(const struct state *s, enum file_role role)
{
	for (size_t i = 0; i < s->files.count; i++)
		if (s->files.items[i].role == role)
			return true;
	return false;
}

/* Weights alone, or something else altogether: nothing that a resume would continue. */
static bool without_resume_state(const struct state *s)
{
	return s->optimizers.count == 0 && !state_fact(s, FACT_STEP) && s->streams.count == 0;
}

static void missing_stream(
	struct audit_case *c, struct findings *sink, const char *what, const char *meaning)
{
	struct finding *f = finding_add(sink, FINDING_R101, "%s", what);

	place_file(sink, f, c->current, NO_FILE);
	f->meaning = meaning;
	if (!c->inexact)
		c->inexact = f->message;
}

/* Streams that should be there and are not, whatever the rank. */
static uint64_t check_owners(struct audit_case *c, struct findings *sink)
{
	struct state *s = c->current;
	uint64_t missing = 0;

	static const char *const generic[] = {"torch cpu", NULL};
	const char *const *expected = s->profile->streams ? s->profile->streams : generic;
	bool any = s->streams.count > 0 && !s->profile->streams;
	for (size_t i = 0; !any && expected[i]; i++)
		any = find_owner(s, expected[i]) || run_file_unused(c->run, expected[i]);
	if (!any) {
		bool replacement = false;
		state_bool(s, FACT_REPLACEMENT, &replacement);
		missing_stream(c, sink,
			s->streams.count > 0
				? "no random number state of the main process is saved (python, numpy, torch)"
				: "no random number state is saved (python, numpy, torch)",
			replacement
				? "the batches are drawn from it: a script that seeds itself at each launch, as "
				  "nanoGPT does, draws the run's first batches again"
				: "dropout, shuffling and augmentation draw other numbers after the resume than "
				  "they would have");
		return 1;
	}
	for (; *expected; expected++) {
		if (find_owner(s, *expected) || run_file_unused(c->run, *expected))
			continue;
		missing++;
		missing_stream(c, sink,
			findings_text(sink, "the %s random state is not saved", *expected),
			"what draws from it repeats or diverges after the resume");
	}
	if (s->on_cuda && !find_owner(s, "cuda") && !run_file_unused(c->run, "cuda")) {
		missing++;
		missing_stream(c, sink,
			"the weights were on a GPU, and no CUDA random state is saved",
			"dropout on the GPU draws other numbers after the resume than it would have");
	}
	return missing;
}

/* How many ranks there were, as far as the checkpoint or its predecessor shows. */
static int32_t ranks_expected(const struct audit_case *c)
{
	int32_t ranks = state_world(c->current);

	if (state_fact(c->current, FACT_WORLD_SIZE))
		return ranks;
	return c->previous && c->previous->world > ranks ? c->previous->world : ranks;
}

static void check_ranks(
	struct audit_case *c, struct findings *sink, struct coverage *cover, uint64_t missing)
{
	struct state *s = c->current;
	int32_t expected = ranks_expected(c), found = 0;
	bool shared = false;

	if (expected < 1)
		expected = 1;
	bool *seen = calloc((size_t)expected, sizeof *seen);
	int32_t *absent = calloc((size_t)expected, sizeof *absent);
	if (!seen || !absent) {
		sink->lost++;
		free(seen);
		free(absent);
		return;
	}
	for (size_t i = 0; i < s->streams.count; i++) {
		int32_t rank = s->streams.items[i].rank;
		if (rank == NO_RANK)
			shared = true;
		else if (rank < expected && !seen[rank]) {
			seen[rank] = true;
			found++;
		}
	}
	if (shared && found == 0 && expected > 1 && !s->profile->rng_per_rank) {
		cover_ran(cover, "rng-saved", "random streams saved", "ranks", 1,
			(uint64_t)expected,
			"one set is saved, and whether the other ranks need their own is not known");
	} else if (s->single && expected > 1) {
		cover_ran(cover, "rng-saved", "random streams saved", "ranks", 1,
			(uint64_t)expected, "this is the file of one rank");
	} else {
		if (shared && found == 0)
			found = 1;
		size_t count = 0;
		for (int32_t r = 0; r < expected; r++)
			if (!seen[r] && !(shared && r == 0))
				absent[count++] = r;
		if (found < expected) {
			struct finding *f = finding_add(sink, FINDING_R102,
				"random number state of %d of %d ranks", found, expected);
			place_file(sink, f, s, NO_FILE);
			f->place.ranks = ranks_text(sink, absent, count);
			f->observed = quantity_count(found);
			f->expected = quantity_count(expected);
			f->unit = "ranks";
			f->meaning =
				"the missing ranks go on with a fresh or a foreign random stream";
		}
		cover_ran(cover, "rng-saved", "random streams saved", "ranks", (uint64_t)found,
			(uint64_t)expected, missing ? "some streams are not saved" : NULL);
	}
	free(seen);
	free(absent);
}

static void run_rng_saved(struct audit_case *c, struct findings *sink, struct coverage *cover)
{
	struct state *s = c->current;
	bool only_model = false;

	if (without_resume_state(s)) {
		cover_not_checked(
			cover, "rng-saved", "random streams saved", "there is no resume state");
		/* Where it was asked for as a copy, that is answered. */
		if (c->original && s->tensors.count > 0)
			return;
		c->undecided =
			s->tensors.count > 0
				? "it holds weights only: there is no resume state to continue from"
				: "nothing in it is resume state that reprise knows";
		return;
	}
	state_bool(s, FACT_SAVE_ONLY_MODEL, &only_model);
	/* A file that the layout promises and that is not there, or not readable, is said by other
	 * rules. */
	if (s->profile->parts && s->streams.count == 0 && !only_model && !s->single) {
		cover_not_checked(cover, "rng-saved", "random streams saved", "%s",
			has_file(s, FILE_RNG) ? "the files could not be read"
					      : "the files are missing");
		return;
	}
	uint64_t missing = check_owners(c, sink);
	if (s->streams.count > 0)
		check_ranks(c, sink, cover, missing);
	else
		cover_ran(cover, "rng-saved", "random streams saved", "streams", 0, 0, NULL);
}

const struct rule rule_rng_saved = {
	.name = "rng-saved",
	.subject = "random streams saved",
	.run = run_rng_saved,
};

/* ---- between ranks ----------------------------------------------------------------------------
 */

static bool same_stream(const struct stream *a, const struct stream *b)
{
	return strcmp(a->owner, b->owner) == 0 && a->device == b->device;
}

/* The stream of another rank, or of the previous checkpoint, that stands in the same place. */
static const struct stream *counterpart(
	const struct state *s, const struct stream *of, int32_t rank)
{
	for (size_t i = 0; i < s->streams.count; i++) {
		const struct stream *x = &s->streams.items[i];
		if (x->rank == rank && same_stream(x, of) && strcmp(x->path, of->path) == 0)
			return x;
	}
	return NULL;
}

static bool is_device(const struct stream *s)
{
	return s->device >= 0 || strcmp(s->owner, "cuda") == 0 || strcmp(s->owner, "mps") == 0;
}

/* Whether two ranks' streams differed in the previous checkpoint. */
static bool differed_before(
	const struct audit_case *c, const struct stream *a, const struct stream *b)
{
	if (!c->previous)
		return false;
	const struct stream *x = counterpart(c->previous, a, a->rank),
			    *y = counterpart(c->previous, b, b->rank);
	return x && y && x->body != y->body;
}

/* By owner, device and path, so that the streams which ranks have in common lie together; then by
 * rank. */
static int compare_places(const void *pa, const void *pb)
{
	const struct stream *a = *(const struct stream *const *)pa,
			    *b = *(const struct stream *const *)pb;
	int order = strcmp(a->owner, b->owner);

	if (order == 0)
		order = (a->device > b->device) - (a->device < b->device);
	if (order == 0)
		order = strcmp(a->path, b->path);
	return order ? order : (a->rank > b->rank) - (a->rank < b->rank);
}

/* One rank's stream against the first rank's. */
static void judge_ranks(struct audit_case *c, struct findings *sink, const struct stream *first,
	const struct stream *a)
{
	const struct profile *profile = c->current->profile;
	enum ranks_relation wanted = is_device(a) ? profile->device_ranks : profile->host_ranks;
	bool equal = a->body == first->body, differed = differed_before(c, a, first);

	if (equal && (differed || wanted == RANKS_DIFFER)) {
		struct finding *f = finding_add(sink, FINDING_R103,
			"rank %d has the %s stream of rank %d%s", a->rank, a->owner, first->rank,
			differed ? ", and they differed before" : "");
		if (differed)
			f->severity = SEVERITY_ERROR;
		place_stream(sink, f, c->current, a);
		f->meaning = "the two ranks draw the same dropout masks, orders or augmentations";
	} else if (!equal && wanted == RANKS_AGREE) {
		struct finding *f = finding_add(sink, FINDING_R108,
			"rank %d's %s stream is not the one of rank %d", a->rank, a->owner,
			first->rank);
		place_stream(sink, f, c->current, a);
	}
}

static void run_rng_ranks(struct audit_case *c, struct findings *sink, struct coverage *cover)
{
	struct state *s = c->current;
	uint64_t compared = 0;
	const struct stream **order = calloc(s->streams.count + 1, sizeof *order);

	if (!order) {
		sink->lost++;
		return;
	}
	for (size_t i = 0; i < s->streams.count; i++)
		order[i] = &s->streams.items[i];
	qsort(order, s->streams.count, sizeof *order, compare_places);
	for (size_t i = 1, first = 0; i < s->streams.count; i++) {
		if (!same_stream(order[first], order[i]) ||
			strcmp(order[first]->path, order[i]->path) != 0) {
			first = i;
			continue;
		}
		if (order[i]->rank == order[first]->rank)
			continue;
		compared++;
		judge_ranks(c, sink, order[first], order[i]);
	}
	free(order);
	if (compared == 0 && ranks_expected(c) > 1)
		cover_not_checked(cover, "rng-ranks", "random streams between ranks",
			"only one rank's streams are here");
	else
		cover_ran(cover, "rng-ranks", "random streams between ranks", "pairs", compared,
			compared, NULL);
}

const struct rule rule_rng_ranks = {
	.name = "rng-ranks",
	.subject = "random streams between ranks",
	.run = run_rng_ranks,
};

/* ---- from one checkpoint to the next ----------------------------------------------------------
 */

/* The number of pairs like `pair`, from it on, and the ranks they are on. */
static size_t ranks_like(const struct stream_pairs *pairs, size_t from, int32_t *ranks, size_t max)
{
	const struct stream_pair *p = &pairs->list.items[from];
	size_t count = 0;

	for (size_t i = from; i < pairs->list.count && count < max; i++) {
		const struct stream_pair *q = &pairs->list.items[i];
		if (q->earlier && q->later && same_stream(q->later, p->later) &&
			q->relation.kind == p->relation.kind &&
			q->relation.seed == p->relation.seed &&
			q->relation.draws == p->relation.draws)
			ranks[count++] = q->later->rank;
	}
	return count;
}

static bool said_before(const struct stream_pairs *pairs, size_t at)
{
	const struct stream_pair *p = &pairs->list.items[at];

	for (size_t i = 0; i < at; i++) {
		const struct stream_pair *q = &pairs->list.items[i];
		if (q->earlier && q->later && same_stream(q->later, p->later) &&
			q->relation.kind == p->relation.kind &&
			q->relation.seed == p->relation.seed &&
			q->relation.draws == p->relation.draws)
			return true;
	}
	return false;
}

static const char *stream_name(struct findings *sink, const struct stream *s)
{
	if (s->device >= 0)
		return findings_text(sink, "%s:%d", s->owner, s->device);
	return findings_text(sink, "%s", s->owner);
}

static struct finding *pair_finding(struct audit_case *c, struct findings *sink, size_t at,
	enum finding_code code, const char *message)
{
	const struct stream_pair *p = &c->streams.list.items[at];
	int32_t ranks[256];
	struct finding *f = finding_add(sink, code, "%s", message);

	place_stream(sink, f, c->current, p->later);
	size_t count = ranks_like(&c->streams, at, ranks, sizeof ranks / sizeof ranks[0]);
	if (p->later->rank != NO_RANK)
		f->place.ranks = ranks_text(sink, ranks, count);
	f->place.step_last = case_step(c);
	state_int(c->previous, FACT_STEP, &f->place.step_first);
	return f;
}

static const char *draws_text(struct findings *sink, uint64_t draws)
{
	struct strbuf b;

	strbuf_init(&b, 64);
	text_add_count(&b, draws);
	strbuf_add_text(&b, draws == 1 ? " draw" : " draws");
	return findings_take(sink, &b);
}

/* Whether the draws since the seed are those of the steps since the previous checkpoint, at the
 * rate so far. */
static bool rate_says_reseeded(const struct audit_case *c, const struct rng_relation *r)
{
	int64_t before, steps;
	uint64_t left, right;

	return state_int(c->previous, FACT_STEP, &before) && case_steps_between(c, &steps) &&
	       before > 0 && steps > 0 &&
	       !__builtin_mul_overflow(r->since_seed, (uint64_t)before, &left) &&
	       !__builtin_mul_overflow(r->earlier_since_seed, (uint64_t)steps, &right) &&
	       left == right;
}

/*
 * A later state that lies behind the earlier one on the path of the same seed: re-seeded, or an
 * older state was loaded. The draws that the steps since the previous checkpoint would take decide,
 * where known.
 */
static void behind_finding(struct audit_case *c, struct findings *sink, size_t at)
{
	const struct stream_pair *p = &c->streams.list.items[at];
	const struct rng_relation *r = &p->relation;
	const char *name = stream_name(sink, p->later), *message;
	struct finding *f;

	if (r->seed_known && r->earlier_seed_known) {
		message = findings_text(sink,
			"%s was re-seeded from %llu, %s ago, instead of restored", name,
			(unsigned long long)r->seed, draws_text(sink, r->since_seed));
		f = pair_finding(c, sink, at, FINDING_R104, message);
		f->cause =
			rate_says_reseeded(c, r)
				? "the steps since the previous checkpoint draw as many: the process seeded its generators at the start "
				  "and did not load the saved state"
				: "the process seeded its generators at the start and did not load the saved state, "
				  "or it loaded an older state of the same stream";
		f->observed = quantity_count((int64_t)r->since_seed);
		f->expected = quantity_text(findings_text(sink, "more than %s since the same seed",
			draws_text(sink, r->earlier_since_seed)));
		f->unit = "draws";
	} else {
		message = findings_text(
			sink, "%s moved backwards by %s", name, draws_text(sink, r->draws));
		f = pair_finding(c, sink, at, FINDING_R105, message);
		f->observed = quantity_count(-(int64_t)r->draws);
		f->unit = "draws";
	}
	f->meaning = "numbers that were drawn before the previous checkpoint are drawn again";
}

/* Seeds that go with the epoch or the step ("seed + epoch"): the script seeds again and again on
 * purpose. */
static bool seeded_by_plan(const struct audit_case *c, uint64_t before, uint64_t after)
{
	static const enum fact_key keys[] = {FACT_EPOCH, FACT_STEP};
	int64_t x, y;

	for (size_t i = 0; i < 2; i++)
		if (state_int(c->previous, keys[i], &x) && state_int(c->current, keys[i], &y) &&
			y > x && after - before == (uint64_t)y - (uint64_t)x)
			return true;
	return false;
}

static void reseeded_finding(struct audit_case *c, struct findings *sink, size_t at)
{
	const struct stream_pair *p = &c->streams.list.items[at];
	const struct rng_relation *r = &p->relation;
	struct finding *f = pair_finding(c, sink, at, FINDING_R104,
		findings_text(sink, "%s was re-seeded from %llu, %s ago, instead of restored",
			stream_name(sink, p->later), (unsigned long long)r->seed,
			draws_text(sink, r->since_seed)));

	f->observed = quantity_text(findings_text(sink, "seed %llu", (unsigned long long)r->seed));
	if (p->earlier->body->has_seed)
		f->expected = quantity_text(findings_text(
			sink, "seed %llu", (unsigned long long)p->earlier->body->seed));
	f->meaning =
		"the resumed run drew other random numbers than the saved state would have given";
	if (r->earlier_seed_known && seeded_by_plan(c, r->earlier_seed, r->seed)) {
		f->severity = SEVERITY_INFO;
		f->cause =
			"the seed went on with the epoch or the step: the script seeds itself again";
		f->meaning =
			"the numbers follow from the seed alone, and a resume between two seedings needs the saved state";
	}
}

/* The relation that the same stream had one checkpoint earlier, or NULL. */
static const struct rng_relation *relation_before(
	const struct audit_case *c, const struct stream *earlier)
{
	for (size_t i = 0; i < c->older_streams.list.count; i++) {
		const struct stream_pair *p = &c->older_streams.list.items[i];
		if (p->later == earlier && p->earlier)
			return &p->relation;
	}
	return NULL;
}

/*
 * A stream that drew a whole number a step between the two checkpoints before must go on at that
 * rate, as long as no epoch begins in between: an epoch's start draws too.
 */
static void check_rate(struct audit_case *c, struct findings *sink, size_t at, int64_t steps)
{
	const struct stream_pair *p = &c->streams.list.items[at];
	const struct rng_relation *before = relation_before(c, p->earlier);
	int64_t first, middle;
	double length, first_epoch, last_epoch;

	if (!before || before->kind != RNG_ADVANCED || !state_int(c->older, FACT_STEP, &first) ||
		!state_int(c->previous, FACT_STEP, &middle) || middle <= first ||
		!state_real(c->current, FACT_STEPS_PER_EPOCH, &length) ||
		!state_real(c->older, FACT_EPOCH, &first_epoch) ||
		!state_real(c->current, FACT_EPOCH, &last_epoch) ||
		floor(first_epoch) != floor(last_epoch))
		return;
	uint64_t rate = before->draws / (uint64_t)(middle - first), expected;
	if (rate == 0 || before->draws % (uint64_t)(middle - first) != 0 ||
		__builtin_mul_overflow(rate, (uint64_t)steps, &expected) ||
		p->relation.draws == expected)
		return;
	struct finding *f = pair_finding(c, sink, at, FINDING_R110,
		findings_text(sink, "%s advanced by %s over %s", stream_name(sink, p->later),
			draws_text(sink, p->relation.draws),
			counted_text(sink, (uint64_t)steps, "step")));
	f->observed = quantity_count((int64_t)p->relation.draws);
	f->expected = quantity_count((int64_t)expected);
	f->unit = "draws";
	f->cause = findings_text(sink, "it drew %llu a step from step %lld to %lld",
		(unsigned long long)rate, (long long)first, (long long)middle);
	f->meaning = "after the resume it is not where an uninterrupted run would have it";
}

/* Whether the model certainly draws from this stream at every step. */
static bool use_is_proven(const struct audit_case *c, const struct stream *s)
{
	double dropout = 0;

	state_real(c->current, FACT_DROPOUT, &dropout);
	if (dropout <= 0)
		return false;
	return c->current->on_cuda ? strcmp(s->owner, "cuda") == 0
				   : strcmp(s->owner, "torch cpu") == 0;
}

static void unchanged_finding(struct audit_case *c, struct findings *sink, size_t at, int64_t steps)
{
	const struct stream_pair *p = &c->streams.list.items[at];
	bool proven = use_is_proven(c, p->later);

	/* Host streams that nothing draws from are normal; only devices are worth a note. */
	if (!proven && !is_device(p->later))
		return;
	struct finding *f = pair_finding(c, sink, at, FINDING_R107,
		findings_text(sink, "%s did not move over %s", stream_name(sink, p->later),
			counted_text(sink, (uint64_t)steps, "step")));
	if (!proven)
		return;
	double dropout = 0;
	f->severity = SEVERITY_WARNING;
	state_real(c->current, FACT_DROPOUT, &dropout);
	f->cause = findings_text(
		sink, "the model has dropout %g, which draws from it at every step", dropout);
}

static void run_rng_continues(struct audit_case *c, struct findings *sink, struct coverage *cover)
{
	uint64_t compared = 0, exhausted = 0, total = 0;
	int64_t steps = 0;
	bool moved = case_steps_between(c, &steps) && steps > 0;

	for (size_t i = 0; i < c->streams.list.count; i++) {
		const struct stream_pair *p = &c->streams.list.items[i];
		if (!p->later || !p->earlier) {
			total += p->earlier != NULL;
			continue;
		}
		total++;
		if (p->relation.kind == RNG_NOT_COMPARABLE || p->relation.kind == RNG_NOT_SEARCHED)
			continue;
		compared++;
		bool bounded = p->relation.kind == RNG_UNRELATED && p->relation.exhausted;
		exhausted += bounded;
		/* What many ranks have in common is said once. */
		bool quiet = p->relation.kind == RNG_IDENTICAL
				     ? !moved
				     : p->relation.kind == RNG_ADVANCED && !c->older;
		if (quiet || said_before(&c->streams, i))
			continue;
		switch (p->relation.kind) {
		case RNG_IDENTICAL:
			if (moved)
				unchanged_finding(c, sink, i, steps);
			break;
		case RNG_ADVANCED:
			if (moved)
				check_rate(c, sink, i, steps);
			break;
		case RNG_RESEEDED:
			reseeded_finding(c, sink, i);
			break;
		case RNG_BEHIND:
			behind_finding(c, sink, i);
			break;
		case RNG_UNRELATED: {
			struct finding *f = pair_finding(c, sink, i, FINDING_R106,
				findings_text(sink,
					"%s is not a continuation of the previous state",
					stream_name(sink, p->later)));
			f->cause =
				p->relation.searched == UINT64_MAX
					? "no number of draws leads from one to the other"
					: findings_text(sink,
						  "it is not reached within %s, nor from a seed that the checkpoints mention",
						  draws_text(sink, p->relation.searched));
			break;
		}
		default:
			break;
		}
	}
	if (total == 0)
		cover_not_checked(cover, "rng-continues",
			"random streams since the previous checkpoint",
			"no stream is saved in both");
	else
		cover_ran(cover, "rng-continues", "random streams since the previous checkpoint",
			"streams", compared, total,
			c->search_late ? case_late
			: exhausted ? "the search bound was reached for some (--limit rng-search=N)"
				    : NULL);
}

const struct rule rule_rng_continues = {
	.name = "rng-continues",
	.subject = "random streams since the previous checkpoint",
	.needs = NEEDS_PREVIOUS,
	.run = run_rng_continues,
};
