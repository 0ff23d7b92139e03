/* SPDX-License-Identifier: MIT */
/* A file that is one JSON value. */
#include "container/document.h"
#include "container/json.h"

/* Weak: a bracket is little to go by, so that every format with a signature wins. */
#define PROBE_BITS 4u

static unsigned probe(const struct source *s, struct slice head)
{
	(void)s;
	size_t i = slice_starts(head, SLICE("\xef\xbb\xbf")) ? 3 : 0;

	while (i < head.n && memchr(" \t\r\n", head.p[i], 4))
		i++;
	return i < head.n && (head.p[i] == '{' || head.p[i] == '[') ? PROBE_BITS : 0;
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
