/* SPDX-License-Identifier: MIT */
#include "finding/finding.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/strbuf.h"
#include "base/text.h"

#define ESCAPED_MAX 200u
#define KEEP_DEFAULT 100u
#define FINDINGS_MAX 1000000u
#define FINDINGS_MEMORY ((size_t)256 << 20)

const struct verdict_row verdict_rows[VERDICT_COUNT] = {
#define VERDICT(id, word, forecast, text) {word, forecast, text},
#include "finding/verdicts.def"
#undef VERDICT
};

/* In the table `-` stands for a finding that never chooses the verdict. */
#define VERDICT_NONE VERDICT_COUNT

const struct finding_row finding_rows[FINDING_COUNT] = {
#define FINDING(code, id, severity, word, needs, summary, explain, confirm, remedy)                \
	{#code, #id, SEVERITY_##severity, VERDICT_##word, needs, summary, explain, confirm, remedy},
#include "finding/findings.def"
#undef FINDING
};

enum finding_code finding_by_name(const char *name)
{
	for (int i = 0; i < FINDING_COUNT; i++)
		if (strcasecmp(name, finding_rows[i].code) == 0)
			return (enum finding_code)i;
	return FINDING_COUNT;
}

const char *severity_name(enum severity s)
{
	static const char *const names[] = {"ok", "info", "warning", "error"};
	return names[s];
}

const char *cover_status_name(enum cover_status s)
{
	static const char *const names[] = {"ran", "partly", "not_checked"};
	return names[s];
}

void findings_init(struct findings *sink)
{
	*sink = (struct findings){.keep = KEEP_DEFAULT};
	arena_init(&sink->arena, FINDINGS_MEMORY);
}

void findings_release(struct findings *sink)
{
	array_release(&sink->list);
	arena_release(&sink->arena);
}

static __attribute__((format(printf, 3, 0))) const char *format_text(
	struct arena *a, size_t *lost, const char *format, va_list args)
{
	char text[FINDING_MESSAGE_MAX];

	vsnprintf(text, sizeof text, format, args);
	char *copy = arena_strdup(a, slice_of(text));
	if (!copy)
		(*lost)++;
	return copy ? copy : "";
}

/*
 * The caller has filled in the finding that could not be stored. Now that its severity is known,
 * let it take the place of a milder one of its code.
 */
static void settle_scratch(struct findings *sink)
{
	const struct finding *f = &sink->scratch;

	if (!sink->scratch_used)
		return;
	sink->scratch_used = false;
	if (f->severity <= sink->mildest[f->code])
		return;
	struct finding *mildest = NULL;
	for (size_t i = 0; i < sink->list.count; i++) {
		struct finding *kept = &sink->list.items[i];
		if (kept->code == f->code && (!mildest || kept->severity < mildest->severity))
			mildest = kept;
	}
	if (!mildest)
		return;
	if (mildest->severity < f->severity) {
		const char *message = arena_strdup(&sink->arena, slice_of(f->message));
		*mildest = *f;
		mildest->message = message ? message : "";
		sink->lost += !message;
	} else {
		sink->mildest[f->code] = mildest->severity; /* do not search again */
	}
}

struct finding *finding_add(struct findings *sink, enum finding_code code, const char *format, ...)
{
	struct finding *f = NULL;

	settle_scratch(sink);
	if (sink->of_code[code]++ < sink->keep) {
		f = array_push(&sink->list, FINDINGS_MAX);
		if (!f)
			sink->lost++;
	}
	if (!f) {
		f = &sink->scratch;
		sink->scratch_used = true;
	}
	*f = (struct finding){
		.code = code,
		.severity = finding_rows[code].severity,
		.word = finding_rows[code].word,
		.place = {.offset = PLACE_NO_OFFSET,
			.step_first = PLACE_NO_STEP,
			.step_last = PLACE_NO_STEP},
	};
	va_list args;
	va_start(args, format);
	if (f == &sink->scratch) {
		vsnprintf(sink->scratch_message, sizeof sink->scratch_message, format, args);
		f->message = sink->scratch_message;
	} else {
		f->message = format_text(&sink->arena, &sink->lost, format, args);
	}
	va_end(args);
	return f;
}

static const char *copy_text(struct findings *sink, const char *text)
{
	return text ? findings_text(sink, "%s", text) : NULL;
}

static struct quantity copy_quantity(struct findings *sink, struct quantity q)
{
	if (q.kind == QUANTITY_TEXT)
		q.text = copy_text(sink, q.text);
	return q;
}

void findings_append(struct findings *sink, const struct findings *from)
{
	size_t listed[FINDING_COUNT] = {0};

	for (size_t i = 0; i < from->list.count; i++) {
		const struct finding *f = &from->list.items[i];
		struct finding *copy = finding_add(sink, f->code, "%s", f->message);
		const char *message = copy->message;
		*copy = *f;
		copy->message = message;
		copy->place.file = copy_text(sink, f->place.file);
		copy->place.path = copy_text(sink, f->place.path);
		copy->place.ranks = copy_text(sink, f->place.ranks);
		copy->observed = copy_quantity(sink, f->observed);
		copy->expected = copy_quantity(sink, f->expected);
		copy->unit = copy_text(sink, f->unit);
		copy->cause = copy_text(sink, f->cause);
		copy->meaning = copy_text(sink, f->meaning);
		copy->remedy = copy_text(sink, f->remedy);
		copy->accepted = copy_text(sink, f->accepted);
		listed[f->code]++;
	}
	for (int code = 0; code < FINDING_COUNT; code++)
		sink->of_code[code] += from->of_code[code] - listed[code];
	sink->lost += from->lost;
}

const char *findings_text(struct findings *sink, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	const char *text = format_text(&sink->arena, &sink->lost, format, args);
	va_end(args);
	return text;
}

const char *findings_take(struct findings *sink, struct strbuf *b)
{
	const char *text = findings_text(sink, "%s", strbuf_text(b));

	sink->lost += b->no_memory;
	strbuf_release(b);
	return text;
}

const char *findings_escaped(struct findings *sink, struct slice text)
{
	struct strbuf b;

	strbuf_init(&b, FINDING_MESSAGE_MAX);
	text_add_escaped(&b, text, ESCAPED_MAX);
	char *copy = arena_strdup(&sink->arena, strbuf_slice(&b));
	sink->lost += !copy || b.no_memory;
	strbuf_release(&b);
	return copy ? copy : "";
}

void finding_place(struct findings *sink, struct finding *f, const char *file, struct slice part,
	uint64_t offset)
{
	f->place.offset = offset;
	/* What will only be counted needs no texts. */
	if (f == &sink->scratch && f->severity <= sink->mildest[f->code])
		return;
	f->place.file = findings_text(sink, "%s", file);
	if (part.n > 0)
		f->place.path = findings_escaped(sink, part);
}

#define COMPARE(a, b) (((a) > (b)) - ((a) < (b)))

static int compare_text(const char *a, const char *b)
{
	return text_natural_compare(slice_of(a), slice_of(b));
}

static int compare_quantities(const struct quantity *a, const struct quantity *b)
{
	if (a->kind != b->kind)
		return COMPARE(a->kind, b->kind);
	switch (a->kind) {
	case QUANTITY_COUNT:
		return COMPARE(a->count, b->count);
	case QUANTITY_REAL:
		return COMPARE(a->real, b->real);
	case QUANTITY_TEXT:
		return compare_text(a->text, b->text);
	case QUANTITY_NONE:
		break;
	}
	return 0;
}

int finding_compare(const struct finding *a, const struct finding *b)
{
	const struct place *pa = &a->place, *pb = &b->place;
	int order;

	if ((order = COMPARE(b->severity, a->severity)) || (order = COMPARE(a->word, b->word)) ||
		(order = COMPARE(a->code, b->code)) || (order = compare_text(pa->file, pb->file)) ||
		(order = COMPARE(pa->step_first, pb->step_first)) ||
		(order = COMPARE(pa->step_last, pb->step_last)) ||
		(order = compare_text(pa->path, pb->path)) ||
		(order = COMPARE(pa->offset, pb->offset)) ||
		(order = compare_text(pa->ranks, pb->ranks)) ||
		(order = compare_text(a->message, b->message)) ||
		(order = compare_quantities(&a->observed, &b->observed)) ||
		(order = compare_quantities(&a->expected, &b->expected)))
		return order;
	return compare_text(a->cause, b->cause);
}

static bool quantity_number(const struct quantity *q, double *v)
{
	if (q->kind == QUANTITY_COUNT)
		*v = (double)q->count;
	else if (q->kind == QUANTITY_REAL && q->real - q->real == 0) /* finite */
		*v = q->real;
	else
		return false;
	return true;
}

bool finding_ratio(const struct finding *f, double *ratio)
{
	double observed, expected;

	/* A seed is a name, not an amount. */
	if (f->code == FINDING_P110 || !quantity_number(&f->observed, &observed) ||
		!quantity_number(&f->expected, &expected) || expected == 0)
		return false;
	*ratio = observed / expected;
	return true;
}

static int compare_findings(const void *a, const void *b)
{
	return finding_compare(a, b);
}

void findings_sort(struct findings *sink)
{
	settle_scratch(sink);
	if (sink->list.count > 1)
		qsort(sink->list.items, sink->list.count, sizeof *sink->list.items,
			compare_findings);
}

void coverage_init(struct coverage *sink)
{
	*sink = (struct coverage){0};
	arena_init(&sink->arena, FINDINGS_MEMORY);
}

void coverage_release(struct coverage *sink)
{
	array_release(&sink->list);
	arena_release(&sink->arena);
}

static struct cover *cover_add(struct coverage *sink, const char *rule, const char *subject)
{
	struct cover *c = array_push(&sink->list, FINDINGS_MAX);

	if (!c) {
		sink->lost++;
		return NULL;
	}
	c->rule = arena_strdup(&sink->arena, slice_of(rule));
	c->subject = arena_strdup(&sink->arena, slice_of(subject));
	if (!c->rule || !c->subject) {
		sink->lost++;
		sink->list.count--;
		return NULL;
	}
	return c;
}

void cover_ran(struct coverage *sink, const char *rule, const char *subject, const char *unit,
	uint64_t done, uint64_t total, const char *reason)
{
	struct cover *c = cover_add(sink, rule, subject);

	if (!c)
		return;
	c->unit = unit ? arena_strdup(&sink->arena, slice_of(unit)) : NULL;
	c->done = done;
	c->total = total;
	c->status = done == 0 && total > 0   ? COVER_NOT_CHECKED
		    : done < total || reason ? COVER_PARTLY
					     : COVER_RAN;
	if (reason)
		c->reason = arena_strdup(&sink->arena, slice_of(reason));
}

void cover_not_checked(
	struct coverage *sink, const char *rule, const char *subject, const char *format, ...)
{
	struct cover *c = cover_add(sink, rule, subject);

	if (!c)
		return;
	va_list args;
	va_start(args, format);
	c->reason = format_text(&sink->arena, &sink->lost, format, args);
	va_end(args);
	c->status = COVER_NOT_CHECKED;
}
