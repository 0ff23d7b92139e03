/* SPDX-License-Identifier: MIT */
/*
 * torch.save before 1.6, or with _use_new_zipfile_serialization=False: five pickles (magic number,
 * protocol version, system, the object, the keys of the storages), then for each key its number of
 * elements and its bytes. Source: torch/serialization.py (_legacy_save, _legacy_load),
 * torch/csrc/serialization.cpp.
 */
#include "container/torch.h"

#include <stdlib.h>
#include <string.h>

#include "base/cursor.h"
#include "base/names.h"
#include "base/size.h"

#define FIRST_WINDOW ((size_t)1 << 20)
#define PICKLES 5u
#define PICKLE_OBJECT 3u
#define PICKLE_KEYS 4u
#define PROTOCOL_VERSION 1001

/* The magic number, as LONG1 and as LONG of protocols 0 and 1. */
static const struct slice magic_long1 = {"\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.", 13};
static const struct slice magic_long = {"L119547037146038801333356L\n.", 28};

bool torch_legacy_magic(struct slice head)
{
	/* Protocol 4 and later put a frame of 9 bytes between PROTO and the number. */
	size_t at = head.n > 2 && head.p[2] == '\x95' ? 11 : 2;
	if (at <= head.n && head.p[0] == '\x80' &&
		slice_starts((struct slice){head.p + at, head.n - at}, magic_long1))
		return true;
	return slice_starts(head, magic_long);
}

static unsigned probe(const struct source *s, struct slice head)
{
	(void)s;
	return torch_legacy_magic(head) ? 120 : 0;
}

/* What is known of a storage until its bytes come. */
struct expected {
	struct storage *storage;
	enum dtype dtype;
};

struct legacy {
	struct rebuild *rebuild;
	struct names keys; /* names of storages */
	uint32_t first;    /* index of the first storage of this file */
	ARRAY(struct expected) expected;
};

static int no_memory(struct error *e)
{
	return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory (or the limit memory was reached)");
}

static int find(void *context, struct storage_ref *ref, struct error *e)
{
	struct legacy *l = context;
	struct slice *known = names_find(&l->keys, ref->key);

	if (known) {
		ref->storage = (struct storage *)(void *)known;
		return RP_OK;
	}
	struct storage *s = document_storage(l->rebuild->document);
	struct expected *x = array_push(&l->expected, UINT32_MAX);
	if (!s || !x)
		return no_memory(e);
	s->name = ref->key;
	s->missing = true; /* until its key turns up */
	*x = (struct expected){s, ref->dtype};
	if (!names_add(&l->keys, &s->name))
		return no_memory(e);
	ref->storage = s;
	return RP_OK;
}

static bool is_magic(struct val v)
{
	/* Without the opcode, the length and STOP. */
	return v.kind == VAL_BIGINT && v.n == 10 && memcmp(v.s, magic_long1.p + 2, 10) == 0;
}

/* Five pickles in a row. */
struct pickles {
	struct arena *arena;
	const struct limits *limits;
	struct findings *judge; /* NULL: only measure */
	const char *file;
	struct pickle object; /* the fourth; arena, limits and base are filled in */
	struct val keys;      /* the fifth */
	size_t end;           /* where it ends */
	bool cut;             /* decoding failed because the bytes end early */
};

/* Loading runs each of them before it is looked at, so each is judged. */
static int decode_pickle(struct pickles *q, struct pickle *p, struct slice rest, struct error *e)
{
	p->arena = q->arena;
	p->limits = q->limits;
	p->base = q->end;
	int status = pickle_decode(p, rest, e);
	if (q->judge)
		pickle_judge(p, q->file, q->judge);
	q->cut = status < 0 && p->truncated;
	q->end += status < 0 ? 0 : p->end;
	return status;
}

static int decode_pickles(struct pickles *q, struct slice bytes, struct error *e)
{
	for (unsigned i = 0; i < PICKLES; i++) {
		size_t at = q->end;
		struct slice rest = {bytes.p + at, bytes.n - at};
		if (i == PICKLE_OBJECT) {
			int status = decode_pickle(q, &q->object, rest, e);
			if (status < 0)
				return status;
			continue;
		}
		struct pickle p = {0};
		int64_t version;
		bool good = true;
		int status = decode_pickle(q, &p, rest, e);
		pickle_release(&p);
		if (status < 0)
			return status;
		if (i == 0)
			good = is_magic(p.root);
		else if (i == 1)
			good = val_to_i64(p.root, &version) && version == PROTOCOL_VERSION;
		else if (i == PICKLE_KEYS)
			good = p.root.kind == VAL_LIST;
		if (!good)
			return fail(e, RP_E_FORMAT, at,
				"pickle %u of %u of the torch file is not what it should be", i + 1,
				PICKLES);
		q->keys = p.root;
	}
	return RP_OK;
}

/*
 * The pickles say nothing of their lengths and stand in front of all the tensors' bytes, so the
 * file is read in growing pieces until they are whole. Pieces that were too short are decoded into
 * an arena of their own and forgotten.
 */
static int read_pickles(struct document *d, struct slice *bytes, struct error *e)
{
	uint64_t most =
		d->limits->pickle_bytes < d->source.size ? d->limits->pickle_bytes : d->source.size;
	size_t window = most < FIRST_WINDOW ? (size_t)most : FIRST_WINDOW;
	size_t got = 0, end = window;

	while (window < most) {
		struct error trial = ERROR_INIT;
		struct arena scratch;
		char *piece = malloc(window);
		if (!piece)
			return no_memory(e);
		int status = source_read(&d->source, 0, piece, window, e);
		if (status < 0) {
			free(piece);
			return status;
		}
		arena_init(&scratch, d->arena.limit);
		struct pickles q = {.arena = &scratch, .limits = d->limits};
		status = decode_pickles(&q, (struct slice){piece, window}, &trial);
		pickle_release(&q.object);
		arena_release(&scratch);
		free(piece);
		end = status == RP_OK ? q.end : window;
		/* Whole, or broken in a way that more bytes do not mend. */
		if (!q.cut)
			break;
		window = window > most / 4 ? (size_t)most : window * 4;
		end = window;
	}
	char *copy = arena_alloc(&d->arena, end);
	if (!copy)
		return no_memory(e);
	int status = source_read_some(&d->source, 0, copy, end, &got, e);
	*bytes = (struct slice){copy, got};
	return status;
}

static void truncated(struct legacy *l, const struct storage *s, uint64_t need, uint64_t have)
{
	const struct rebuild *r = l->rebuild;
	struct finding *f = finding_add(r->sink, FINDING_I102,
		"the file ends inside this storage: %llu of its %llu bytes are there",
		(unsigned long long)have, (unsigned long long)need);
	finding_place(r->sink, f, r->document->name, s->name, s->offset);
	f->observed = quantity_count((int64_t)have);
	f->expected = quantity_count(need > INT64_MAX ? INT64_MAX : (int64_t)need);
	f->unit = "bytes";
	f->cause = "the save was interrupted, or the copy was cut off";
}

/*
 * Place the storages: for each key its count and its bytes follow, up to where the file ends. What
 * does not come is told once, by the first storage that is not whole.
 */
static int place_storages(struct legacy *l, const struct source *s, struct val keys, uint64_t at,
	const uint8_t *inline_bytes, struct error *e)
{
	struct rebuild *r = l->rebuild;

	for (uint64_t i = 0; i < val_count(keys); i++) {
		struct val key = val_at(keys, i);
		struct slice *name = names_find(&l->keys, val_slice(key));
		uint8_t raw[8];
		if (!name) {
			struct finding *f = finding_add(r->sink, FINDING_I104,
				"the list of storages names one that no tensor uses");
			finding_place(r->sink, f, r->document->name, val_slice(key), at);
			return fail(e, RP_E_FORMAT, at,
				"a storage that no tensor uses has no known size");
		}
		struct storage *storage = (struct storage *)(void *)name;
		const struct expected *x = &l->expected.items[storage->index - l->first];
		if (!storage->missing) {
			struct finding *f = finding_add(
				r->sink, FINDING_I104, "the list of storages names this one twice");
			finding_place(r->sink, f, r->document->name, storage->name, at);
			return fail(e, RP_E_FORMAT, at, "the list of storages has a key twice");
		}
		storage->missing = false;
		storage->offset = at < s->size ? at : s->size;
		if (!range_inside(at, sizeof raw, s->size)) {
			truncated(l, storage, sizeof raw, s->size - storage->offset);
			return fail(e, RP_E_FORMAT, s->size,
				"the file ends before storage %llu of %llu",
				(unsigned long long)i + 1, (unsigned long long)val_count(keys));
		}
		int status = source_read(s, at, raw, sizeof raw, e);
		if (status < 0)
			return status;
		at += sizeof raw;
		uint64_t length = size_mul((size_t)load_le64(raw), dtype_size(x->dtype));
		storage->offset = at;
		storage->length = length;
		if (!range_inside(at, length, s->size)) {
			truncated(l, storage, length, s->size - at);
			return fail(e, RP_E_FORMAT, s->size,
				"the file ends inside storage %llu of %llu",
				(unsigned long long)i + 1, (unsigned long long)val_count(keys));
		}
		if (inline_bytes) {
			/* Never NULL, which would mean that the bytes are in the file. */
			storage->inline_bytes = inline_bytes + at;
			storage->offset = 0;
		}
		at += length;
	}
	if (at < s->size && !inline_bytes) {
		struct finding *f = finding_add(r->sink, FINDING_I104,
			"%llu bytes follow the last storage", (unsigned long long)(s->size - at));
		f->severity = SEVERITY_WARNING;
		finding_place(r->sink, f, r->document->name, (struct slice){0}, at);
	}
	return RP_OK;
}

/* Storages that the pickle uses and the list of keys lacks. */
static void check_missing(struct legacy *l)
{
	const struct rebuild *r = l->rebuild;

	for (size_t i = 0; i < l->expected.count; i++) {
		const struct storage *s = l->expected.items[i].storage;
		if (!s->missing)
			continue;
		struct finding *f = finding_add(r->sink, FINDING_I101,
			"the tensors use a storage that the file does not hold");
		finding_place(r->sink, f, r->document->name, s->name, PLACE_NO_OFFSET);
	}
}

/*
 * Decode pickles and storages; `source` is where the storages are. *told: the pickles were whole,
 * and what is wrong behind them has been reported. pickle_release(&q->object) in any case.
 */
static int decode(struct rebuild *r, struct slice bytes, const struct source *source, bool embedded,
	struct pickles *q, bool *told, struct error *e)
{
	struct document *d = r->document;
	struct legacy l = {.rebuild = r, .first = (uint32_t)d->storages.count};
	rebuild_find_fn *outer_find = r->find;
	void *outer_context = r->context;

	names_init(&l.keys);
	r->find = find;
	r->context = &l;
	*q = (struct pickles){
		.arena = &d->arena, .limits = d->limits, .judge = r->sink, .file = d->name};
	q->object = (struct pickle){.persistent = rebuild_persistent, .context = r};
	int status = decode_pickles(q, bytes, e);
	*told = status == RP_OK;
	if (status == RP_OK)
		status = place_storages(
			&l, source, q->keys, q->end, embedded ? (const uint8_t *)bytes.p : NULL, e);
	if (status == RP_OK)
		check_missing(&l);
	/* What is left of a file that failed has no bytes; the pickle around it may be worth
	 * reading. */
	for (size_t i = 0; status < 0 && i < l.expected.count; i++)
		l.expected.items[i].storage->missing = true;
	r->find = outer_find;
	r->context = outer_context;
	names_release(&l.keys);
	array_release(&l.expected);
	return status;
}

int torch_legacy_embedded(struct rebuild *r, struct slice bytes, struct val *root, struct error *e)
{
	struct source source;
	struct pickles q;
	bool told;

	source_from_memory(&source, bytes.p, bytes.n, r->document->name);
	int status = decode(r, bytes, &source, true, &q, &told, e);
	if (status == RP_OK)
		*root = q.object.root;
	torch_take_classes(r->document, &q.object);
	pickle_release(&q.object);
	return status;
}

static int read(struct document *d, struct findings *sink, struct error *e)
{
	struct rebuild r;
	struct slice bytes;
	struct pickles q = {0};
	struct error why = ERROR_INIT;
	bool told;

	int status = read_pickles(d, &bytes, e);
	if (status < 0)
		return status;
	rebuild_init(&r, d, sink);
	status = decode(&r, bytes, &d->source, false, &q, &told, &why);
	if (status < 0 && told)
		fail(e, status, why.offset, "%s", why.text);
	else if (status < 0)
		status = torch_pickle_failed(
			d, sink, "", q.cut && bytes.n == d->source.size, &why, e);
	if (status == RP_OK)
		status = rebuild_check_storages(&r, e);
	if (status == RP_OK) {
		d->bytes = bytes;
		d->pickle_protocol = q.object.protocol;
		d->root = q.object.root;
		d->writer = SLICE("torch.save, format before 1.6");
		torch_take_classes(d, &q.object);
		status = rebuild_graph(&r, &d->root, e);
	}
	pickle_release(&q.object);
	rebuild_release(&r);
	return status;
}

const struct container container_torch_legacy = {
	.name = "torch-legacy",
	.summary = "PyTorch file without zip (torch.save before 1.6)",
	.probe = probe,
	.read = read,
};
