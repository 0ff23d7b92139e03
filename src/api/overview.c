/* SPDX-License-Identifier: MIT */
#include "api/overview.h"

#include <string.h>

#include "base/text.h"
#include "profile/profile.h"

#define LINE_BYTES 1000u

/* Append " · " between parts. */
static void part(struct strbuf *b)
{
	if (b->n)
		strbuf_add_text(b, " · ");
}

/* Scripts of all kinds save arrays of NumPy; only files of PyTorch's own say that it was PyTorch.
 */
static const char *title_of(const struct state *s)
{
	size_t arrays = 0, read = 0;

	for (size_t i = 0; i < s->files.count; i++) {
		const struct container *c = s->files.items[i].container;
		if (!c)
			continue;
		read++;
		arrays += strcmp(c->name, "npy") == 0 || strcmp(c->name, "npz") == 0;
	}
	return strcmp(s->profile->name, "pytorch") == 0 && read > 0 && arrays == read
		       ? "NumPy"
		       : s->profile->title;
}

const char *overview_line(struct report *r, const struct state *s)
{
	struct strbuf b;
	int64_t n, of;

	strbuf_init(&b, LINE_BYTES);
	strbuf_add_text(&b, title_of(s));
	const char *version = state_fact_text(s, FACT_FRAMEWORK_VERSION);
	if (version) {
		strbuf_add_char(&b, ' ');
		text_add_escaped(&b, slice_of(version), 40);
	}
	if (state_int(s, FACT_PARAMETERS, &n)) {
		part(&b);
		text_add_magnitude(&b, (uint64_t)n);
		strbuf_add_text(&b, n == 1 ? " parameter" : " parameters");
	}
	if (state_int(s, FACT_STEP, &n)) {
		part(&b);
		strbuf_add_text(&b, "step ");
		text_add_signed_count(&b, n);
		if (state_int(s, FACT_MAX_STEPS, &of) && of > 0) {
			strbuf_add_text(&b, " of ");
			text_add_signed_count(&b, of);
			if (n >= of)
				strbuf_add_text(&b, ", the last");
		}
	}
	const struct fact *epoch = state_fact(s, FACT_EPOCH), *lr = state_fact(s, FACT_LR);
	if (epoch) {
		part(&b);
		strbuf_add_text(&b, "epoch ");
		fact_print(&b, epoch);
	}
	if (lr) {
		part(&b);
		strbuf_add_text(&b, "lr ");
		fact_print(&b, lr);
	}
	if (s->world > 1) {
		part(&b);
		strbuf_printf(&b, "%d ranks", s->world);
	}
	return report_take(r, &b);
}

void overview_input(struct report *r, const struct state *s, const char *role)
{
	struct report_input *input =
		report_add_input(r, s->snapshot ? s->snapshot : s->path, role, s->kind);

	if (input)
		input->has_step = state_int(s, FACT_STEP, &input->step);
}

static const char *draws(struct report *r, uint64_t n)
{
	struct strbuf b;

	strbuf_init(&b, LINE_BYTES);
	text_add_count(&b, n);
	strbuf_add_text(&b, n == 1 ? " draw" : " draws");
	return report_take(r, &b);
}

/* Large rates in whole numbers, as counts are written. */
static const char *rate_text(struct report *r, double rate)
{
	struct strbuf b;

	if (rate < 1000)
		return report_text(r, "%.4g", rate);
	strbuf_init(&b, LINE_BYTES);
	text_add_count(&b, (uint64_t)(rate + 0.5));
	return report_take(r, &b);
}

const char *overview_relation(struct report *r, const struct rng_relation *relation, int64_t steps)
{
	switch (relation->kind) {
	case RNG_IDENTICAL:
		return "identical";
	case RNG_ADVANCED:
		if (steps > 0 && relation->draws > 0)
			return report_text(r, "advanced by %s (%s a step)",
				draws(r, relation->draws),
				rate_text(r, (double)relation->draws / (double)steps));
		return report_text(r, "advanced by %s", draws(r, relation->draws));
	case RNG_RESEEDED:
		return "re-seeded";
	case RNG_BEHIND:
		return report_text(r, "%sbehind by %s", relation->seed_known ? "re-seeded, " : "",
			draws(r, relation->draws));
	case RNG_UNRELATED:
		if (relation->searched == UINT64_MAX)
			return "unrelated";
		return report_text(r, "unrelated within %s", draws(r, relation->searched));
	default:
		return "not comparable";
	}
}

const char *overview_seed(struct report *r, const struct rng_state *body, bool known, uint64_t seed,
	uint64_t since_seed)
{
	if (known)
		return report_text(
			r, "seed %llu, %s since", (unsigned long long)seed, draws(r, since_seed));
	if (body->has_seed)
		return report_text(r, "seed %llu", (unsigned long long)body->seed);
	if (body->algo == RNG_MT19937)
		return report_text(r, "seed not known, word %u of its block", body->mt.pos);
	return "seed not known";
}

void overview_streams(struct report *r, const struct state *s, const struct stream_pairs *alone)
{
	static const char *const columns[] = {"rank", "stream", "state", "file", "path"};
	struct report_table *t = report_add_table(r, "streams", "random streams", columns, 5);

	for (size_t i = 0; i < s->streams.count; i++) {
		const struct stream *x = &s->streams.items[i];
		const struct rng_relation *known = &alone->list.items[i].relation;
		const char *cells[] = {
			x->rank == NO_RANK ? NULL : report_text(r, "rank %d", x->rank),
			x->device >= 0 ? report_text(r, "%s:%d", x->owner, x->device) : x->owner,
			overview_seed(
				r, x->body, known->seed_known, known->seed, known->since_seed),
			s->single ? NULL : state_file_path(s, x->file),
			x->path,
		};
		struct quantity values[5] = {{0}};
		if (x->rank != NO_RANK)
			values[0] = quantity_count(x->rank);
		report_add_row_values(r, t, TONE_PLAIN, cells, values);
	}
}
