/* SPDX-License-Identifier: MIT */
/* The table of rules, running them, and what rules share. */
#include "audit/case.h"

#include <math.h>

#include "base/strbuf.h"
#include "base/text.h"

const struct rule *const rules[] = {
#define RULE(id) &rule_##id,
#include "audit/rules.def"
#undef RULE
	NULL,
};

/* What a rule saw when the snapshot was taken; its findings came with the snapshot. */
static bool tell_taken(const struct rule *r, const struct state *s, struct coverage *cover)
{
	for (size_t i = 0; i < s->taken.count; i++) {
		const struct cover *c = &s->taken.items[i];
		if (strcmp(c->rule, r->name) != 0)
			continue;
		if (c->status == COVER_NOT_CHECKED)
			cover_not_checked(
				cover, r->name, r->subject, "%s", c->reason ? c->reason : "");
		else
			cover_ran(
				cover, r->name, r->subject, c->unit, c->done, c->total, c->reason);
		return true;
	}
	return false;
}

/* A rule that looks at elements, where they are not there. */
static void tell_no_elements(
	const struct rule *r, const struct audit_case *c, struct coverage *cover)
{
	const struct state *s = c->current->snapshot ? c->current : c->previous;

	if (!(r->needs & NEEDS_PREVIOUS) && tell_taken(r, s, cover))
		return;
	cover_not_checked(
		cover, r->name, r->subject, "the elements of tensors are not in a snapshot");
}

static bool has_elements(const struct rule *r, const struct audit_case *c)
{
	return !c->current->snapshot && (!(r->needs & NEEDS_PREVIOUS) || !c->previous->snapshot);
}

void audit_rule(
	const struct rule *r, struct audit_case *c, struct findings *sink, struct coverage *cover)
{
	/* A command's subject is a checkpoint or logs; rules about the other say nothing. */
	if (((r->needs & NEEDS_LEDGER) && !c->ledger) || ((r->needs & NEEDS_CURVE) && !c->curve) ||
		(!(r->needs & (NEEDS_LEDGER | NEEDS_CURVE)) && !c->current) ||
		((r->needs & NEEDS_ORIGINAL) && !c->original))
		return;
	if ((r->needs & NEEDS_PREVIOUS) && !c->previous)
		cover_not_checked(cover, r->name, r->subject, "%s", c->no_previous);
	else if ((r->needs & NEEDS_BYTES) && !c->bytes)
		cover_not_checked(cover, r->name, r->subject, "%s",
			c->no_bytes ? c->no_bytes : "bytes were not read (--quick)");
	else if ((r->needs & NEEDS_ELEMENTS) && !has_elements(r, c))
		tell_no_elements(r, c, cover);
	else
		r->run(c, sink, cover);
}

void audit_run(struct audit_case *c, struct findings *sink, struct coverage *cover)
{
	for (size_t i = 0; rules[i]; i++)
		audit_rule(rules[i], c, sink, cover);
}

const char case_late[] = "time ran out (--max-seconds)";

void place_file(struct findings *sink, struct finding *f, struct state *s, uint32_t file)
{
	f->place.file =
		findings_text(sink, "%s", file == NO_FILE ? s->path : state_whole_path(s, file));
}

static void place_rank(struct findings *sink, struct finding *f, int32_t rank)
{
	if (rank != NO_RANK)
		f->place.ranks = findings_text(sink, "%d", rank);
}

void place_fact(struct findings *sink, struct finding *f, struct state *s, const struct fact *fact)
{
	place_file(sink, f, s, fact->file);
	if (*fact->path)
		f->place.path = findings_escaped(sink, slice_of(fact->path));
	place_rank(sink, f, fact->rank);
}

void place_stream(
	struct findings *sink, struct finding *f, struct state *s, const struct stream *stream)
{
	place_file(sink, f, s, stream->file);
	f->place.path = findings_escaped(sink, slice_of(stream->path));
	place_rank(sink, f, stream->rank);
}

const char *rounded_text(struct findings *sink, double v, int digits)
{
	struct strbuf b;

	strbuf_init(&b, 64);
	text_add_rounded(&b, v, digits);
	return findings_take(sink, &b);
}

const char *fact_text(struct findings *sink, const struct fact *f)
{
	struct strbuf b;

	strbuf_init(&b, 400);
	fact_print(&b, f);
	return findings_take(sink, &b);
}

const char *count_text(struct findings *sink, int64_t n)
{
	struct strbuf b;

	strbuf_init(&b, 100);
	text_add_signed_count(&b, n);
	return findings_take(sink, &b);
}

const char *counted_text(struct findings *sink, uint64_t n, const char *unit)
{
	return findings_text(
		sink, "%s %s%s", count_text(sink, (int64_t)n), unit, n == 1 ? "" : "s");
}

bool expect_parameters(
	struct findings *sink, struct state *s, int64_t least, int64_t most, const char *who)
{
	int64_t n;

	if (!state_int(s, FACT_PARAMETERS, &n))
		return false;
	if (n >= least && n <= most)
		return true;
	const char *expected = least == most
				       ? count_text(sink, least)
				       : findings_text(sink, "%s to %s", count_text(sink, least),
						 count_text(sink, most));
	struct finding *f = finding_add(sink, FINDING_T110,
		"the checkpoint has %s parameters, and the %s expects %s", count_text(sink, n), who,
		expected);
	f->severity = SEVERITY_ERROR;
	place_file(sink, f, s, NO_FILE);
	f->observed = quantity_count(n);
	f->expected = least == most ? quantity_count(least) : quantity_text(expected);
	f->unit = "parameters";
	return true;
}

const char *ranks_text(struct findings *sink, const int32_t *ranks, size_t count)
{
	struct strbuf b;

	strbuf_init(&b, 1000);
	for (size_t i = 0; i < count && b.n < 200;) {
		size_t last = i;
		while (last + 1 < count && ranks[last + 1] == ranks[last] + 1)
			last++;
		strbuf_printf(&b, "%s%d", i ? ", " : "", ranks[i]);
		if (last > i)
			strbuf_printf(&b, "%s%d", last > i + 1 ? "-" : ", ", ranks[last]);
		i = last + 1;
	}
	if (b.n >= 200)
		strbuf_add_text(&b, ", …");
	return findings_take(sink, &b);
}

int64_t case_step(const struct audit_case *c)
{
	int64_t step;
	return state_int(c->current, FACT_STEP, &step) ? step : PLACE_NO_STEP;
}

bool optimizer_step(const struct state *s, double *out)
{
	bool known = false;

	for (size_t i = 0; i < s->optimizers.count; i++) {
		const struct optimizer *o = &s->optimizers.items[i];
		for (size_t k = 0; k < o->params.count; k++) {
			const struct opt_param *p = &o->params.items[k];
			if (p->has_step && (!known || p->step > *out)) {
				*out = p->step;
				known = true;
			}
		}
	}
	return known;
}

bool case_new_epoch(const struct audit_case *c)
{
	const struct fact *f = state_fact(c->current, FACT_STEP);
	double before, after;

	return c->previous && f && !c->current->profile->optimizer_counts_steps &&
	       state_step_in_epoch(f) && !state_fact(c->current, FACT_BATCH_IN_EPOCH) &&
	       state_real(c->previous, FACT_EPOCH, &before) &&
	       state_real(c->current, FACT_EPOCH, &after) && after > before;
}

bool case_steps_between(const struct audit_case *c, int64_t *steps)
{
	int64_t earlier, later;
	double before, after;

	if (!c->previous)
		return false;
	if (state_int(c->previous, FACT_STEP, &earlier) &&
		state_int(c->current, FACT_STEP, &later) && later > earlier) {
		*steps = later - earlier;
		return true;
	}
	/* A step counter that was reset says nothing; the optimizer's own may still tell. */
	if (optimizer_step(c->previous, &before) && optimizer_step(c->current, &after) &&
		after > before) {
		*steps = (int64_t)(after - before);
		return true;
	}
	if (!state_int(c->previous, FACT_STEP, &earlier) ||
		!state_int(c->current, FACT_STEP, &later) || case_new_epoch(c))
		return false;
	/* Everything started again: the steps since then are all there are. */
	*steps = later == earlier ? 0 : later;
	return true;
}

bool epoch_place(const struct state *s, double *done, double *length)
{
	double epoch, step;

	if (!state_real(s, FACT_STEPS_PER_EPOCH, length) || !(*length > 0))
		return false;
	/* An epoch with its fraction knows of epochs that were started again; the step does not. */
	const struct fact *f = state_fact(s, FACT_EPOCH);
	if (f && f->type == FACT_REAL && fact_to_double(f, &epoch))
		*done = (epoch - floor(epoch)) * *length;
	else if (state_real(s, FACT_STEP, &step))
		*done = fmod(step, *length);
	else if (f && fact_to_double(f, &epoch))
		*done = 0;
	else
		return false;
	if (fabs(*done - round(*done)) < 1e-6 * *length)
		*done = round(*done);
	/* A length that is no whole number leaves a rounding rest at the epoch's end. */
	if (*length - *done < 1e-3 || *done < 1e-3)
		*done = 0;
	return true;
}

const char *checkpoint_name(const struct state *s)
{
	size_t n = strlen(s->path);

	while (n > 1 && s->path[n - 1] == '/')
		n--;
	size_t start = n;
	while (start > 0 && s->path[start - 1] != '/')
		start--;
	return s->path + start;
}
