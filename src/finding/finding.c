/* SPDX-License-Identifier: MIT */
#include "finding/finding.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/strbuf.h"
#include "base/text.h"

#define MESSAGE_MAX 1000u
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
#define FINDING(code, id, severity, word, needs, summary, explain, confirm, remedy) \
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
	char text[MESSAGE_MAX];

	vsnprintf(text, sizeof text, format, args);
	char *copy = arena_strdup(a, slice_of(text));
	if (!copy)
		(*lost)++;
	return copy ? copy : "";
}

struct finding *finding_add(struct findings *sink, enum finding_code code, const char *format, ...)
{
	struct finding *f = NULL;

	if (sink->of_code[code]++ < sink->keep) {
		f = array_push(&sink->list, FINDINGS_MAX);
		if (!f)
			sink->lost++;
	}
	if (!f)
		f = &sink->scratch;
	*f = (struct finding){
		.code = code,
		.severity = finding_rows[code].severity,
		.place = {.offset = PLACE_NO_OFFSET, .step_first = PLACE_NO_STEP, .step_last = PLACE_NO_STEP},
	};
	if (f == &sink->scratch) {
		f->message = "";
		return f;
	}
	va_list args;
	va_start(args, format);
	f->message = format_text(&sink->arena, &sink->lost, format, args);
	va_end(args);
	return f;
}

const char *findings_text(struct findings *sink, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	const char *text = format_text(&sink->arena, &sink->lost, format, args);
	va_end(args);
	return text;
}

const char *findings_escaped(struct findings *sink, struct slice text)
{
	struct strbuf b;

	strbuf_init(&b, MESSAGE_MAX);
	text_add_escaped(&b, text, ESCAPED_MAX);
	char *copy = arena_strdup(&sink->arena, strbuf_slice(&b));
	strbuf_release(&b);
	if (!copy)
		sink->lost++;
	return copy ? copy : "";
}

void finding_place(struct findings *sink, struct finding *f, const char *file, struct slice part,
	uint64_t offset)
{
	f->place.offset = offset;
	/* What is only counted needs no texts. */
	if (f == &sink->scratch)
		return;
	f->place.file = findings_text(sink, "%s", file);
	if (part.n > 0)
		f->place.path = findings_escaped(sink, part);
}

static int compare_text(const char *a, const char *b)
{
	return text_natural_compare(slice_of(a), slice_of(b));
}

static int compare_findings(const void *pa, const void *pb)
{
	const struct finding *a = pa, *b = pb;

	if (a->severity != b->severity)
		return a->severity < b->severity ? 1 : -1;
	enum verdict_word wa = finding_rows[a->code].word, wb = finding_rows[b->code].word;
	if (wa != wb)
		return wa < wb ? -1 : 1;
	if (a->code != b->code)
		return a->code < b->code ? -1 : 1;
	int order = compare_text(a->place.file, b->place.file);
	if (order == 0)
		order = compare_text(a->place.path, b->place.path);
	return order ? order : compare_text(a->message, b->message);
}

void findings_sort(struct findings *sink)
{
	if (sink->list.count > 1)
		qsort(sink->list.items, sink->list.count, sizeof *sink->list.items, compare_findings);
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
	c->unit = unit;
	c->done = done;
	c->total = total;
	c->status = done == 0 && total > 0 ? COVER_NOT_CHECKED : done < total || reason ? COVER_PARTLY : COVER_RAN;
	if (reason)
		c->reason = arena_strdup(&sink->arena, slice_of(reason));
}

void cover_not_checked(struct coverage *sink, const char *rule, const char *subject,
	const char *format, ...)
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
