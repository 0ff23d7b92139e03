/* SPDX-License-Identifier: MIT */
#include "state/moments.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/source.h"

#define CHUNK_ELEMENTS 65536u
#define PATH_BYTES 4096

/*
 * float32 rounds each of the K updates by at most 2^-24 relative, and beta2 itself; far below any
 * reset. Values near the smallest normal number round absolutely and are passed over.
 */
#define ROUNDING 2.4e-7
#define TINY 1e-30

/* One side's file, open, and a stretch of it in memory. */
struct side {
	struct source source;
	uint32_t file;
	char path[PATH_BYTES];
	float values[CHUNK_ELEMENTS];
};

static bool side_open(struct side *s, const struct state_place *p, uint32_t file)
{
	if (s->file == file)
		return true;
	if (s->file != NO_FILE)
		source_close(&s->source);
	s->file = NO_FILE;
	int n = snprintf(s->path, sizeof s->path, "%s%s%s", p->prefix, *p->prefix ? "/" : "",
		p->state->files.items[file].path);
	if (n < 0 || (size_t)n >= sizeof s->path ||
		source_open(&s->source, p->dirfd, s->path, NULL) < 0)
		return false;
	s->file = file;
	return true;
}

/* A tensor that can be streamed as float32: whole, in place. */
static const struct state_storage *streamable(const struct state *s, uint32_t tensor)
{
	if (tensor == NO_FILE)
		return NULL;
	const struct state_tensor *t = &s->tensors.items[tensor];
	if (t->dtype != DTYPE_F32 || !t->whole || t->storage == NO_FILE ||
		s->storages.items[t->storage].offset == UINT64_MAX)
		return NULL;
	return &s->storages.items[t->storage];
}

/* Called for each stretch: values of the first and the second tensor. */
typedef void compare_fn(struct moments_outcome *out, const struct state_tensor *t, const float *a,
	const float *b, size_t n, double bound);

static bool stream(struct side *a, const struct state_place *pa, const struct state_storage *x,
	struct side *b, const struct state_place *pb, const struct state_storage *y,
	const struct state_tensor *t, double bound, compare_fn *compare,
	struct moments_outcome *out)
{
	uint64_t total = x->length / sizeof(float);

	if (!side_open(a, pa, x->file) || !side_open(b, pb, y->file))
		return false;
	for (uint64_t at = 0; at < total; at += CHUNK_ELEMENTS) {
		size_t n = total - at < CHUNK_ELEMENTS ? (size_t)(total - at) : CHUNK_ELEMENTS;
		out->late = out->late || deadline_passed(pb->deadline);
		if (out->late)
			return false;
		if (source_read(&a->source, x->offset + at * sizeof(float), a->values,
			    n * sizeof(float), NULL) < 0 ||
			source_read(&b->source, y->offset + at * sizeof(float), b->values,
				n * sizeof(float), NULL) < 0)
			return false;
		compare(out, t, a->values, b->values, n, bound);
	}
	out->tensors++;
	out->elements += total;
	return true;
}

static void note(
	struct moments_outcome *out, const struct state_tensor *t, double observed, double limit)
{
	out->broken++;
	if (out->worst &&
		fabs(observed - limit) / fabs(limit) <=
			fabs(out->worst_observed - out->worst_bound) / fabs(out->worst_bound))
		return;
	out->worst = t;
	out->worst_observed = observed;
	out->worst_bound = limit;
}

/* a: v before, b: v after, bound: beta2^K with the rounding taken off. Values that are not finite
 * are wrong by themselves, which I109 says; nothing follows from them here. */
static void compare_decay(struct moments_outcome *out, const struct state_tensor *t, const float *a,
	const float *b, size_t n, double bound)
{
	for (size_t i = 0; i < n; i++) {
		double least = (double)a[i] * bound;
		if (least > TINY && (double)b[i] < least && isfinite(least))
			note(out, t, (double)b[i], least);
	}
}

/* a: m, b: v, bound: C with the rounding added. */
static void compare_pair(struct moments_outcome *out, const struct state_tensor *t, const float *a,
	const float *b, size_t n, double bound)
{
	for (size_t i = 0; i < n; i++) {
		double square = (double)a[i] * (double)a[i], most = (double)b[i] * bound;
		if (square > TINY && square > most && most >= 0 && isfinite(square))
			note(out, t, square, most > 0 ? most : TINY);
	}
}

static bool group_beta(const struct state *s, const struct optimizer *o, enum fact_key key,
	int32_t group, double *beta)
{
	const struct fact *f = optimizer_group_fact(s, o, key, group == NO_GROUP ? 0 : group);

	return fact_to_double(f, beta) && *beta > 0 && *beta < 1;
}

static struct side *new_sides(struct error *e)
{
	struct side *sides = calloc(2, sizeof *sides);

	if (!sides)
		fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory to compare optimizer moments");
	else
		sides[0].file = sides[1].file = NO_FILE;
	return sides;
}

static void free_sides(struct side *sides)
{
	for (int i = 0; i < 2; i++)
		if (sides[i].file != NO_FILE)
			source_close(&sides[i].source);
	free(sides);
}

static const struct opt_param *find_param(const struct optimizer *o, int64_t id, size_t hint)
{
	if (hint < o->params.count && o->params.items[hint].id == id)
		return &o->params.items[hint];
	for (size_t i = 0; i < o->params.count; i++)
		if (o->params.items[i].id == id)
			return &o->params.items[i];
	return NULL;
}

/* A tensor that was not compared to its end: time ran out, or the system refused. */
static void count_unread(struct moments_outcome *out)
{
	out->skipped++;
	out->unread += !out->late;
}

static void count_tensor(struct moments_outcome *out, uint64_t broken_before)
{
	out->broken_tensors += out->broken > broken_before;
}

int moments_continue(const struct state_place *earlier, const struct state_place *later,
	int64_t updates, struct moments_outcome *out, struct error *e)
{
	const struct state *before = earlier->state, *after = later->state;
	struct side *sides = new_sides(e);

	*out = (struct moments_outcome){0};
	if (!sides)
		return RP_E_MEMORY;
	for (size_t i = 0; i < after->optimizers.count && i < before->optimizers.count; i++) {
		const struct optimizer *o = &after->optimizers.items[i],
				       *was = &before->optimizers.items[i];
		for (size_t k = 0; o->adam && was->adam && k < o->params.count; k++) {
			const struct opt_param *p = &o->params.items[k],
					       *q = find_param(was, p->id, k);
			const struct state_storage *x = q ? streamable(before, q->moment2) : NULL;
			const struct state_storage *y = streamable(after, p->moment2);
			double beta, old_beta;
			if (!x || !y || x->length != y->length ||
				!group_beta(after, o, FACT_BETA2, p->group, &beta) ||
				!group_beta(before, was, FACT_BETA2, q->group, &old_beta) ||
				beta != old_beta) {
				out->skipped++;
				continue;
			}
			/* The parameter's own counter where it went on: it knows of skipped
			 * updates. */
			double own = p->has_step && q->has_step ? p->step - q->step : 0;
			double count = own > 0 ? own : (double)updates;
			double bound = pow(beta, count) * (1 - ROUNDING * (count + 1));
			uint64_t broken = out->broken;
			if (!stream(&sides[0], earlier, x, &sides[1], later, y,
				    &after->tensors.items[p->moment2], bound, compare_decay, out))
				count_unread(out);
			count_tensor(out, broken);
		}
	}
	free_sides(sides);
	return RP_OK;
}

int moments_belong(const struct state_place *place, struct moments_outcome *out, struct error *e)
{
	const struct state *s = place->state;
	struct side *sides = new_sides(e);

	*out = (struct moments_outcome){0};
	if (!sides)
		return RP_E_MEMORY;
	for (size_t i = 0; i < s->optimizers.count; i++) {
		const struct optimizer *o = &s->optimizers.items[i];
		for (size_t k = 0; o->adam && k < o->params.count; k++) {
			const struct opt_param *p = &o->params.items[k];
			const struct state_storage *x = streamable(s, p->moment1),
						   *y = streamable(s, p->moment2);
			double beta1, beta2;
			if (!x || !y || x->length != y->length ||
				!group_beta(s, o, FACT_BETA1, p->group, &beta1) ||
				!group_beta(s, o, FACT_BETA2, p->group, &beta2) ||
				beta1 * beta1 >= beta2) {
				out->skipped++;
				continue;
			}
			double bound = (1 - beta1) * (1 - beta1) /
				       ((1 - beta2) * (1 - beta1 * beta1 / beta2)) * (1 + 1e-4);
			uint64_t broken = out->broken;
			if (!stream(&sides[0], place, x, &sides[1], place, y,
				    &s->tensors.items[p->moment1], bound, compare_pair, out))
				count_unread(out);
			count_tensor(out, broken);
		}
	}
	free_sides(sides);
	return RP_OK;
}
