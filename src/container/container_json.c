/* SPDX-License-Identifier: MIT */
/* A file that is one JSON value. */
#include "container/document.h"
#include "container/json.h"

/* Weak: a bracket is little to go by, so that every format with a signature wins. */
#define PROBE_BITS 4u

static size_t skip_any(struct slice s, size_t i, const char *of)
{
	while (i < s.n && s.p[i] != '\0' && strchr(of, s.p[i]))
		i++;
	return i;
}

/*
 * Whether what stands behind a bracket at `i` may. Lines of a console begin with brackets too: a
 * date, a rank, a level, Python's own {'loss': …}.
 */
static bool goes_on(struct slice head, size_t i)
{
	static const char *const words[] = {
		"true", "false", "null", "NaN", "Infinity", "-Infinity"};
	bool object = head.p[i] == '{';

	i = skip_any(head, i + 1, " \t\r\n");
	if (i == head.n || head.p[i] == '"' || head.p[i] == (object ? '}' : ']'))
		return true;
	if (object)
		return false;
	if (head.p[i] == '{' || head.p[i] == '[')
		return true;
	struct slice rest = {head.p + i, head.n - i};
	for (size_t k = 0; k < sizeof words / sizeof *words; k++)
		if (slice_starts(rest, (struct slice){words[k], strlen(words[k])}))
			return true;
	size_t end = skip_any(head, skip_any(head, i, "+-.0123456789eE"), " \t\r\n");
	return end > i && (end == head.n || head.p[end] == ',' || head.p[end] == ']');
}

static unsigned probe(const struct source *s, struct slice head)
{
	size_t i = slice_starts(head, SLICE("\xef\xbb\xbf")) ? 3 : 0;

	i = skip_any(head, i, " \t\r\n");
	if (i == head.n || (head.p[i] != '{' && head.p[i] != '['))
		return 0;
	/* What is named so and is none is damaged. */
	bool named = s->name && slice_ends(slice_of(s->name), SLICE(".json"));
	return named || goes_on(head, i) ? PROBE_BITS : 0;
}

/* A text that ends too early was cut off; anything else was never JSON. */
static void report(struct document *d, struct findings *sink, const struct error *e)
{
	bool cut = e->offset == d->bytes.n;
	struct finding *f = finding_add(sink, cut ? FINDING_I102 : FINDING_I104, "%s", e->text);

	finding_place(sink, f, d->name, (struct slice){0}, e->offset);
}

static int read(struct document *d, struct findings *sink, struct error *e)
{
	uint64_t duplicates;
	struct error own = ERROR_INIT;
	int status = document_load(d, "a JSON file", "header-bytes", d->limits->header_bytes, e);

	if (status < 0)
		return status;
	status = json_decode(d->bytes, &d->arena, d->limits, &d->root, &duplicates, &own);
	if (status < 0) {
		if (status == RP_E_FORMAT)
			report(d, sink, &own);
		return fail(e, status, own.offset, "%s", own.text);
	}
	if (duplicates > 0) {
		struct finding *f = finding_add(sink, FINDING_I104,
			"%llu keys occur twice in an object; Python keeps the last of each",
			(unsigned long long)duplicates);
		f->severity = SEVERITY_WARNING;
		finding_place(sink, f, d->name, (struct slice){0}, PLACE_NO_OFFSET);
	}
	return RP_OK;
}

const struct container container_json = {
	.name = "json",
	.summary = "JSON text",
	.probe = probe,
	.read = read,
};
