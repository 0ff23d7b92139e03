/* SPDX-License-Identifier: MIT */
/* What must hold of every document, whatever its format. */
#include "fuzz/fuzz.h"

#include "base/size.h"
#include "base/text.h"
#include "container/document.h"

#define WALK_BUDGET 20000u
#define WALK_DEPTH 50u
#define MEMORY ((uint64_t)64 << 20)
#define NODES 200000u

/* Tabs are what a person typed into a line that an error shows. */
static bool is_printable(const char *text, bool tabs)
{
	struct slice rest = slice_of(text);
	uint32_t point;

	while (rest.n > 0) {
		size_t n = text_utf8_next(rest, &point);
		if (n == 0 || (text_disturbs(point) && !(tabs && point == '\t')))
			return false;
		rest = (struct slice){rest.p + n, rest.n - n};
	}
	return true;
}

void fuzz_check_findings(const struct findings *sink)
{
	size_t counted = 0;

	MUST(sink->lost == 0);
	for (size_t i = 0; i < FINDING_COUNT; i++)
		counted += sink->of_code[i];
	MUST(counted >= sink->list.count);
	for (size_t i = 0; i < sink->list.count; i++) {
		const struct finding *f = &sink->list.items[i];
		MUST(f->message && f->message[0] && is_printable(f->message, false));
		MUST(f->place.file && is_printable(f->place.file, false));
		MUST(!f->place.path || is_printable(f->place.path, false));
	}
}

void fuzz_check_error(const struct error *e, int status)
{
	MUST(status < 0 && e->status == status);
	MUST(e->text[0] && is_printable(e->text, true));
}

struct walk {
	const struct document *document; /* or NULL: look at no tensor */
	unsigned budget;
	uint64_t digest;
};

static void mix(struct walk *w, uint64_t number)
{
	w->digest = (w->digest ^ number) * 0x9e3779b97f4a7c15u;
	w->digest ^= w->digest >> 29;
}

static void check_tensor(const struct document *d, const struct tensor *t)
{
	uint8_t buffer[256];
	struct error e = ERROR_INIT;
	double number;
	size_t n;

	MUST(t->dtype != DTYPE_UNKNOWN || t->storage);
	MUST(t->dtype < DTYPE_COUNT && t->ndim <= TENSOR_MAX_DIMS);
	MUST(shape_numel(t->shape, t->ndim) == t->numel);
	if (!t->storage || t->dtype == DTYPE_UNKNOWN)
		return;
	if (tensor_read_bytes(d, t, buffer, sizeof buffer, &n, &e) == RP_OK)
		MUST(n == t->numel * dtype_size(t->dtype));
	e = ERROR_INIT;
	if (t->numel > 0)
		tensor_read_double(d, t, t->numel - 1, &number, &e);
}

static void walk(struct walk *w, struct val v, unsigned depth)
{
	if (w->budget == 0 || depth > WALK_DEPTH)
		return;
	w->budget--;
	MUST(v.kind <= VAL_TENSOR);
	mix(w, v.kind);
	if (v.kind == VAL_INT || v.kind == VAL_BOOL || v.kind == VAL_FLOAT)
		mix(w, (uint64_t)v.i);
	struct slice text = val_slice(v);
	for (size_t i = 0; i < text.n; i++)
		mix(w, (uint8_t)text.p[i]);
	if (v.kind == VAL_CLASS)
		mix(w, v.klass->module.n << 32 | v.klass->name.n);
	if (v.kind == VAL_TENSOR && w->document)
		check_tensor(w->document, v.tensor);
	mix(w, val_count(v));
	for (uint64_t i = 0; i < val_count(v) && w->budget > 0; i++) {
		struct val key, part = val_part(v, i, &key);
		MUST(part.kind != VAL_ABSENT);
		walk(w, key, depth + 1);
		walk(w, part, depth + 1);
	}
	MUST(val_part(v, val_count(v), NULL).kind == VAL_ABSENT);
	if (v.kind == VAL_OBJECT) {
		walk(w, v.object->callable, depth + 1);
		walk(w, v.object->args, depth + 1);
		walk(w, v.object->kwargs, depth + 1);
		walk(w, v.object->meaning, depth + 1);
	}
}

uint64_t fuzz_digest(struct val v)
{
	struct walk w = {.budget = WALK_BUDGET};

	walk(&w, v, 0);
	return w.digest;
}

static void check_storage(const struct document *d, struct storage *s)
{
	struct error e = ERROR_INIT;
	uint8_t byte;

	if (s->missing || s->length == 0)
		return;
	if (!s->inline_bytes && document_locate(d, s, NULL, &e) == RP_OK)
		MUST(range_inside(s->offset, s->compressed ? 0 : s->length, d->source.size));
	e = ERROR_INIT;
	document_read(d, s, 0, &byte, 1, &e);
	document_read(d, s, s->length - 1, &byte, 1, &e);
	e = ERROR_INIT;
	MUST(document_read(d, s, s->length, &byte, 1, &e) != RP_OK);
}

static uint64_t open_once(struct slice bytes)
{
	struct limits limits = limits_default();
	struct walk w = {.budget = WALK_BUDGET};
	struct document d;
	struct findings sink;
	struct error e = ERROR_INIT;

	limits.memory = MEMORY;
	limits.nodes = NODES;
	findings_init(&sink);
	int status = document_open_bytes(&d, bytes, "fuzz", &limits, &sink, &e);
	mix(&w, (uint64_t)(int64_t)status);
	if (status == RP_OK) {
		w.document = &d;
		mix(&w, d.tensors);
		mix(&w, d.storages.count);
		for (size_t i = 0; i < d.storages.count; i++)
			check_storage(&d, d.storages.items[i]);
		walk(&w, d.root, 0);
		document_close(&d);
	} else {
		fuzz_check_error(&e, status);
	}
	fuzz_check_findings(&sink);
	for (size_t i = 0; i < FINDING_COUNT; i++)
		mix(&w, sink.of_code[i]);
	findings_release(&sink);
	return w.digest;
}

void fuzz_document(struct slice bytes)
{
	uint64_t first = open_once(bytes);

	MUST(open_once(bytes) == first);
}
