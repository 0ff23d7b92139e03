/* SPDX-License-Identifier: MIT */
#include "ledger/doubts.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#define SHOWN_MAX 3    /* of many of a kind */
#define PAIRS_MAX 1000 /* spaces or sources of which each is held against each */

/* A note on one attempt, at the line where it begins. */
static void note(struct ledger *l, uint32_t attempt, const char *text)
{
	const struct ledger_attempt *a = &l->attempts.items[attempt];
	struct strbuf name;

	strbuf_init(&name, 64);
	ledger_attempt_name(l, attempt, &name);
	l->no_memory |= name.no_memory;
	ledger_note(l, a->file, a->line, "attempt %s%s", strbuf_text(&name), text);
	strbuf_release(&name);
}

/* Ranks -----------------------------------------------------------------------------------------
 */

/* Mark the ranks of an attempt's steps in `seen`, which has one byte for each of its ranks. */
static void mark_ranks(const struct ledger *l, const struct ledger_attempt *a, char *seen, size_t n)
{
	uint32_t newest = LEDGER_NONE;

	for (uint32_t i = 0; i < a->steps; i++) {
		uint32_t geometry = l->steps.items[a->first + i].geometry;
		if (geometry == newest)
			continue;
		newest = geometry;
		const struct ledger_geometry *g = &l->geometries.items[geometry];
		for (uint32_t k = 0; k < g->parts; k++)
			if (l->parts.items[g->first + k].dp < n)
				seen[l->parts.items[g->first + k].dp] = 1;
	}
}

static void doubt_ranks(struct ledger *l, uint32_t attempt)
{
	const struct ledger_attempt *a = &l->attempts.items[attempt];
	size_t n = a->dp > 0 && a->dp <= 1 << 20 ? (size_t)a->dp : 0, missing = 0;
	struct strbuf b;

	if (n == 0 || a->rows == 0)
		return;
	char *seen = calloc(n, 1);
	if (!seen) {
		l->no_memory = true;
		return;
	}
	mark_ranks(l, a, seen, n);
	strbuf_init(&b, 400);
	for (size_t i = 0; i < n; i++) {
		if (seen[i])
			continue;
		if (missing < SHOWN_MAX)
			strbuf_printf(&b, "%s%zu", missing ? ", " : "", i);
		missing++;
	}
	free(seen);
	l->attempts.items[attempt].ranks_missing = (uint32_t)missing;
	if (missing > 0) {
		char text[200];
		snprintf(text, sizeof text,
			": %zu of %zu data-parallel ranks are not in the log (%s%s)", missing, n,
			strbuf_text(&b), missing > SHOWN_MAX ? ", …" : "");
		note(l, attempt, text);
	}
	l->no_memory |= b.no_memory;
	strbuf_release(&b);
}

/* A rank whose log ends early: the last step has fewer of them than the first one. */
static void doubt_last_step(struct ledger *l, uint32_t attempt)
{
	const struct ledger_attempt *a = &l->attempts.items[attempt];
	const struct ledger_step *first = &l->steps.items[a->first], *last = first + a->steps - 1;
	uint32_t ranks = l->geometries.items[first->geometry].ranks,
		 left = l->geometries.items[last->geometry].ranks;
	char text[200];

	if (left >= ranks)
		return;
	snprintf(text, sizeof text,
		": of its last step, %lld, only %u of %u data-parallel ranks are in the log",
		(long long)last->step, left, ranks);
	note(l, attempt, text);
}

/* Steps ---------------------------------------------------------------------------------------- */

static void doubt_steps(struct ledger *l, uint32_t attempt)
{
	const struct ledger_attempt *a = &l->attempts.items[attempt];
	int64_t missing = 0, from = 0, to = 0;
	uint32_t holes = 0;
	char text[200];

	for (uint32_t i = 1; i < a->steps; i++) {
		const struct ledger_step *s = &l->steps.items[a->first + i];
		int64_t left_out = ledger_missing_before(l, a->first + i);
		if (left_out == 0)
			continue;
		if (holes++ == 0) {
			from = s[-1].step + a->stride;
			to = s->step - 1;
		}
		missing += left_out;
	}
	if (holes == 0)
		return;
	if (missing == 1)
		snprintf(text, sizeof text, ": step %lld is not in the log", (long long)from);
	else
		snprintf(text, sizeof text,
			": %lld steps are not in the log (steps %lld to %lld%s)",
			(long long)missing, (long long)from, (long long)to,
			holes > 1 ? ", and others" : "");
	note(l, attempt, text);
}

/* Steps that are said to have consumed nothing, among others. */
static void doubt_empty_steps(struct ledger *l, uint32_t attempt)
{
	const struct ledger_attempt *a = &l->attempts.items[attempt];
	uint32_t empty = 0;
	int64_t first = 0;
	char text[200];

	for (uint32_t i = a->first; i < a->first + a->steps; i++) {
		if (l->steps.items[i].n > 0)
			continue;
		first = empty++ == 0 ? l->steps.items[i].step : first;
	}
	if (empty == 0 || a->rows == 0)
		return;
	snprintf(text, sizeof text, ": %u of %u steps have no samples (the first is step %lld)",
		empty, a->steps, (long long)first);
	note(l, attempt, text);
}

static void doubt_attempts(struct ledger *l)
{
	uint64_t empty = 0;
	uint32_t first = 0;

	for (uint32_t i = 0; i < l->attempts.count; i++) {
		const struct ledger_attempt *a = &l->attempts.items[i];
		if (a->steps == 0) {
			first = empty++ == 0 ? i : first;
			continue;
		}
		doubt_ranks(l, i);
		doubt_last_step(l, i);
		doubt_steps(l, i);
		doubt_empty_steps(l, i);
	}
	if (empty == 1)
		note(l, first, " has no steps");
	else if (empty > 1)
		ledger_note(l, l->attempts.items[first].file, l->attempts.items[first].line,
			"%llu of %zu attempts have no steps; attempt %lld is the first",
			(unsigned long long)empty, l->attempts.count,
			(long long)l->attempts.items[first].number);
}

/* A number that is missing between two others: the log of a launch may be lost. */
static void doubt_numbers(struct ledger *l)
{
	int64_t missing = 0, from = 0, to = 0;

	for (size_t i = 1; i < l->attempts.count; i++) {
		int64_t before = l->attempts.items[i - 1].number, now = l->attempts.items[i].number;
		if (now - before < 2)
			continue;
		if (missing == 0) {
			from = before + 1;
			to = now - 1;
		}
		missing += now - before - 1;
	}
	if (missing > 0 && missing == to - from + 1)
		ledger_note(l, "", 0,
			missing == 1 ? "there is no attempt %lld in the log"
				     : "attempts %lld to %lld are not in the log",
			(long long)from, (long long)to);
	else if (missing > 0)
		ledger_note(l, "", 0,
			"%lld attempts are not in the log, %lld being the first of them",
			(long long)missing, (long long)from);
}

/* Spaces and sources --------------------------------------------------------------------------- */

static const char *source_name(const struct ledger *l, uint32_t source)
{
	return source == LEDGER_NONE ? "" : l->sources.items[source].name;
}

static void doubt_ids(struct ledger *l)
{
	for (size_t i = 0; i < l->spaces.count; i++) {
		const struct ledger_space *s = &l->spaces.items[i];
		const char *name = source_name(l, s->source);
		if (s->beyond == 0)
			continue;
		uint64_t size = ledger_space_size(l, (uint32_t)i);
		ledger_note(l, "", 0,
			"%llu of %llu samples%s%s have ids that the data does not have: the largest is "
			"%llu, the size %llu",
			(unsigned long long)s->beyond, (unsigned long long)s->samples,
			name[0] ? " of source " : "", name, (unsigned long long)s->max_key,
			(unsigned long long)size);
	}
}

/* Two kinds of keys of the same data are two spaces: repeats between them are not seen. */
static void doubt_kinds(struct ledger *l)
{
	static const char *const kinds[] = {"integer ids", "text ids", "content keys"};

	for (size_t i = 1; i < l->spaces.count; i++) {
		const struct ledger_space *a = &l->spaces.items[i];
		for (size_t k = 0; k < i; k++) {
			const struct ledger_space *b = &l->spaces.items[k];
			if (a->source != b->source || a->dataset != b->dataset)
				continue;
			const char *name = source_name(l, a->source);
			ledger_note(l, "", 0,
				"%s and %s%s%s stand side by side, and cannot be compared: repeats "
				"between them are not seen",
				kinds[b->kind], kinds[a->kind], name[0] ? " of source " : "", name);
			return;
		}
	}
}

/* A source that ends where another one begins, with the same ids: what was seen of it is not known
 * to be seen then. */
static void doubt_names(struct ledger *l)
{
	for (size_t i = 0; i < l->sources.count; i++) {
		const struct ledger_source *a = &l->sources.items[i];
		if (a->samples == 0)
			continue;
		for (size_t k = 0; k < l->sources.count; k++) {
			const struct ledger_source *b = &l->sources.items[k];
			if (b->samples == 0 || b->first_attempt != a->last_attempt + 1)
				continue;
			ledger_note(l, "", 0,
				"source %s ends with attempt %lld and source %s begins with the next one: "
				"if it was renamed, repeats are not seen",
				a->name, (long long)l->attempts.items[a->last_attempt].number,
				b->name);
			return;
		}
	}
}

static void doubt_order(struct ledger *l)
{
	if (l->lines_late > 0)
		ledger_note(l, "", 0,
			l->lines_late == 1 ? "%llu line stands behind a later step of the same "
					     "rank: it was put in order"
					   : "%llu lines stand behind later steps of the same "
					     "rank: they were put in order",
			(unsigned long long)l->lines_late);
}

void ledger_doubts(struct ledger *l)
{
	doubt_order(l);
	doubt_numbers(l);
	doubt_attempts(l);
	doubt_ids(l);
	if (l->spaces.count <= PAIRS_MAX)
		doubt_kinds(l);
	if (l->sources.count <= PAIRS_MAX)
		doubt_names(l);
}
