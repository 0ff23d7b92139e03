/* SPDX-License-Identifier: MIT */
/*
 * torch.save since 1.6: a zip archive with one pickle and one stored entry per storage. Source:
 * torch/serialization.py (_save, _load), caffe2/serialize/inline_container.cc.
 */
#include "container/torch.h"

#include <stdlib.h>
#include <string.h>

#include "base/names.h"
#include "base/size.h"
#include "container/foreign.h"
#include "container/zip.h"

#define KEY_MAX 64u
#define NAME_MAX_BYTES 4096u
#define SMALL_ENTRY 4096u
#define CLASSES_COMPARED 256u

/* How much of a truncated file's pickle is read to say how long the file should have been. */
#define SALVAGE_MAX ((uint64_t)64 << 20)

struct torch_zip {
	struct zip zip;
	struct slice top; /* the folder that everything is in, with its slash: "archive/" */
	struct rebuild *rebuild;
	struct names missing; /* names of storages that are not there, each told once */
};

static unsigned probe(const struct source *s, struct slice head)
{
	(void)s;
	if (slice_starts(head, SLICE("PK\3\4")))
		return 32;
	/* An archive without entries. */
	return slice_starts(head, SLICE("PK\5\6")) || slice_starts(head, SLICE("PK\6\6")) ? 32 : 0;
}

static int no_memory(struct error *e)
{
	return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory (or the limit memory was reached)");
}

/* The entry top/name, or NULL. */
static struct zip_entry *entry_of(const struct torch_zip *t, struct slice folder, struct slice name)
{
	char path[NAME_MAX_BYTES];

	if (t->top.n + folder.n + name.n > sizeof path)
		return NULL;
	memcpy(path, t->top.p, t->top.n);
	memcpy(path + t->top.n, folder.p, folder.n);
	memcpy(path + t->top.n + folder.n, name.p, name.n);
	return zip_find(&t->zip, (struct slice){path, t->top.n + folder.n + name.n});
}

static struct zip_entry *record(const struct torch_zip *t, const char *name)
{
	return entry_of(t, (struct slice){"", 0}, slice_of(name));
}

/* A storage that tensors use and the archive lacks: told once, and remembered as a storage without
 * bytes. */
static int missing_storage(struct torch_zip *t, struct storage_ref *ref, struct error *e)
{
	struct document *d = t->rebuild->document;
	int shown = ref->key.n < KEY_MAX ? (int)ref->key.n : (int)KEY_MAX;
	char *name = arena_printf(&d->arena, "data/%.*s", shown, ref->key.p);

	if (!name)
		return no_memory(e);
	struct slice *known = names_find(&t->missing, slice_of(name));
	if (known) {
		ref->storage = (struct storage *)(void *)known;
		return RP_OK;
	}
	struct storage *s = document_storage(d);
	if (!s)
		return no_memory(e);
	s->name = slice_of(name);
	s->missing = true;
	if (!names_add(&t->missing, &s->name))
		return no_memory(e);
	ref->storage = s;
	struct finding *f = finding_add(t->rebuild->sink, FINDING_I101,
		"the archive has no bytes for a storage of %llu elements of %s",
		(unsigned long long)ref->numel, dtype_rows[ref->dtype].name);
	finding_place(t->rebuild->sink, f, d->name, s->name, PLACE_NO_OFFSET);
	return RP_OK;
}

static int find(void *context, struct storage_ref *ref, struct error *e)
{
	struct torch_zip *t = context;
	const struct zip_entry *entry = entry_of(t, SLICE("data/"), ref->key);

	if (entry && entry->owner) {
		ref->storage = entry->owner;
		return RP_OK;
	}
	if (slice_is(ref->device, "meta"))
		return RP_OK;
	return missing_storage(t, ref, e);
}

/* An entry of the archive as a storage: what the pass over the bytes holds against its checksum. */
static int add_storage(struct document *d, struct zip_entry *entry, struct slice name,
	bool big_endian, struct error *e)
{
	struct storage *s = document_storage(d);

	if (!s)
		return no_memory(e);
	s->name = name;
	s->offset = STORAGE_NOT_LOCATED;
	s->length = entry->size;
	s->crc = entry->crc;
	s->crc_known = zip_crc_known(entry);
	s->big_endian = big_endian;
	s->compressed = entry->method != 0 || (entry->flags & 1);
	s->origin = entry;
	entry->owner = s;
	return RP_OK;
}

/*
 * Every data/N is a storage, used or not, in the order of the directory. So is any other large
 * entry that somebody put in; the small ones, which torch.load wants too (it refuses a file whose
 * .format_version has a damaged header), are read and checked at once.
 */
static int collect_storages(
	struct document *d, struct torch_zip *t, bool big_endian, struct error *e)
{
	struct slice data = SLICE("data/");

	for (size_t i = 0; i < t->zip.count; i++) {
		struct zip_entry *entry = &t->zip.entries[i];
		bool ours = slice_starts(entry->name, t->top);
		struct slice name = ours ? (struct slice){entry->name.p + t->top.n,
						   entry->name.n - t->top.n}
					 : entry->name,
			     bytes;
		int status = RP_OK;
		if (ours && slice_starts(name, data) && name.n > data.n)
			status = add_storage(d, entry, name, big_endian, e);
		else if (entry->payload != ZIP_NOT_LOCATED || (ours && slice_is(name, "data.pkl")))
			continue; /* it was read, or will be */
		else if (entry->size > SMALL_ENTRY)
			status = add_storage(d, entry, name, false, e);
		else
			status = zip_load(&t->zip, entry, SMALL_ENTRY, t->rebuild->sink, &bytes, e);
		if (status < 0)
			return status;
	}
	return RP_OK;
}

static int locate(const struct document *d, const struct storage *s, struct findings *sink,
	uint64_t *offset, struct error *e)
{
	/* The document may have moved since it was opened, and its source with it. */
	struct zip zip = *(const struct zip *)d->archive;

	zip.source = &d->source;
	zip.file = d->name;
	return zip_payload(&zip, s->origin, sink, offset, e);
}

static int load_small(struct torch_zip *t, const char *name, struct slice *out, struct error *e)
{
	struct zip_entry *entry = record(t, name);

	*out = (struct slice){0};
	if (!entry || entry->size > SMALL_ENTRY)
		return RP_OK;
	return zip_load(&t->zip, entry, SMALL_ENTRY, t->rebuild->sink, out, e);
}

/* What the records beside the pickle tell of the torch that wrote them. */
static int read_records(struct document *d, struct torch_zip *t, bool *big_endian, struct error *e)
{
	struct slice order, version;

	int status = load_small(t, "byteorder", &order, e);
	if (status == RP_OK)
		status = load_small(t, "version", &version, e);
	if (status < 0)
		return status;
	*big_endian = slice_is(order, "big");
	if (order.n > 0 && !*big_endian && !slice_is(order, "little")) {
		struct finding *f = finding_add(t->rebuild->sink, FINDING_I104,
			"the byte order is neither little nor big; little is assumed");
		finding_place(t->rebuild->sink, f, d->name, SLICE("byteorder"), PLACE_NO_OFFSET);
	}
	const char *release = "1.6 to 2.0";
	if (record(t, ".storage_alignment"))
		release = "2.7 or later";
	else if (order.n > 0 || record(t, ".data/serialization_id"))
		release = "2.1 to 2.6";
	while (version.n > 0 && (unsigned char)version.p[version.n - 1] <= ' ')
		version.n--;
	char *text = arena_printf(&d->arena, "torch.save of torch %s, version %.*s", release,
		(int)(version.n < 20 ? version.n : 20), version.n ? version.p : "");
	if (!text)
		return no_memory(e);
	d->writer = slice_of(text);
	return RP_OK;
}

/* A zip archive that is none of ours: say what it is. */
static int not_ours(const struct torch_zip *t, struct error *e)
{
	const struct zip *z = &t->zip;
	const struct foreign *is = foreign_by_name(t->rebuild->document->name);

	if (z->count == 0)
		return fail(e, RP_E_UNSUPPORTED, ERROR_NO_OFFSET, "an empty zip archive");
	if (record(t, "constants.pkl"))
		return fail(e, RP_E_UNSUPPORTED, ERROR_NO_OFFSET,
			"a TorchScript archive (torch.jit.save): a program, not a training checkpoint");
	return fail(e, RP_E_UNSUPPORTED, ERROR_NO_OFFSET, "a zip archive without data.pkl: %s",
		is ? is->what : "not written by torch.save");
}

int torch_pickle_failed(const struct document *d, struct findings *sink, const char *part, bool cut,
	const struct error *why, struct error *e)
{
	if (why->status == RP_E_FORMAT) {
		struct finding *f =
			finding_add(sink, cut ? FINDING_I102 : FINDING_I104, "%s", why->text);
		finding_place(sink, f, d->name, slice_of(part), why->offset);
		if (cut)
			f->cause = "the save was interrupted, or the copy was cut off";
	}
	return fail(e, why->status, why->offset, "%s%s%s", part, *part ? ": " : "", why->text);
}

void torch_take_classes(struct document *d, struct pickle *p)
{
	if (d->classes.count == 0) {
		array_release(&d->classes);
		d->classes.items = p->classes.items;
		d->classes.count = p->classes.count;
		d->classes.capacity = p->classes.capacity;
		p->classes.items = NULL;
		p->classes.count = p->classes.capacity = 0;
		return;
	}
	/* Few kinds, many small pickles: NumPy and torch pickle the same handful again and again.
	 */
	for (size_t i = 0; i < p->classes.count; i++) {
		const struct klass *k = p->classes.items[i];
		bool known = false;
		for (size_t j = 0; j < d->classes.count && j < CLASSES_COMPARED && !known; j++)
			known = slice_eq(d->classes.items[j]->module, k->module) &&
				slice_eq(d->classes.items[j]->name, k->name);
		struct klass **place = known ? NULL : array_push(&d->classes, UINT32_MAX);
		if (place)
			*place = p->classes.items[i];
	}
}

/* Salvage -----------------------------------------------------------------------------------------
 */

struct salvage {
	struct arena *arena;
	struct names keys;
	uint64_t bytes;
};

/* Add up what the storages need, each once. */
static int salvage_persistent(void *context, struct val id, struct val *out, struct error *e)
{
	struct salvage *v = context;
	struct storage_ref ref;

	*out = val_none();
	if (!rebuild_read_id(id, &ref))
		return RP_OK;
	struct slice *key = arena_new(v->arena, struct slice);
	if (!key)
		return no_memory(e);
	*key = ref.key;
	struct slice *known = names_add(&v->keys, key);
	if (!known)
		return no_memory(e);
	if (known == key)
		v->bytes = size_add(v->bytes, size_mul(ref.numel, dtype_size(ref.dtype)));
	return RP_OK;
}

/* The bytes that the tensors of a truncated file should have, from its first entry; 0: not known.
 */
static void salvage(const struct document *d, uint64_t *bytes, size_t *storages)
{
	struct arena scratch;
	struct zip_entry first;
	struct error e = ERROR_INIT;

	*bytes = *storages = 0;
	arena_init(&scratch, d->arena.limit);
	if (zip_first_entry(&d->source, &scratch, &first, &e) == RP_OK && first.method == 0 &&
		slice_ends(first.name, SLICE("/data.pkl")) && first.payload < d->source.size) {
		uint64_t n = d->source.size - first.payload;
		if (n > SALVAGE_MAX)
			n = SALVAGE_MAX;
		char *text = arena_alloc(&scratch, (size_t)n);
		struct salvage v = {.arena = &scratch};
		names_init(&v.keys);
		struct pickle p = {.arena = &scratch,
			.limits = d->limits,
			.persistent = salvage_persistent,
			.context = &v};
		if (text && source_read(&d->source, first.payload, text, (size_t)n, &e) == RP_OK &&
			pickle_decode(&p, (struct slice){text, (size_t)n}, &e) == RP_OK) {
			*bytes = v.bytes;
			*storages = v.keys.count;
		}
		pickle_release(&p);
		names_release(&v.keys);
	}
	arena_release(&scratch);
}

static void report_truncated(const struct document *d, const struct zip *z, struct findings *sink)
{
	struct finding *f;
	uint64_t bytes, size = d->source.size;
	size_t storages;

	salvage(d, &bytes, &storages);
	const char *zeros = "";
	if (z->zeros >= 4096)
		zeros = findings_text(
			sink, ", the last %llu of them zeros", (unsigned long long)z->zeros);
	if (bytes > size) {
		f = finding_add(sink, FINDING_I102,
			"the file ends after %llu bytes%s; its %zu storages alone need %llu",
			(unsigned long long)size, zeros, storages, (unsigned long long)bytes);
		f->observed = quantity_count((int64_t)size);
		f->expected = quantity_count(bytes > INT64_MAX ? INT64_MAX : (int64_t)bytes);
		f->unit = "bytes";
	} else {
		f = finding_add(sink, FINDING_I102,
			"the file ends after %llu bytes%s, without the zip directory that stands last",
			(unsigned long long)size, zeros);
	}
	finding_place(sink, f, d->name, (struct slice){0}, size);
	f->cause =
		z->zeros >= 4096
			? "space was reserved but never written: the machine went down, or the disk was full"
			: "the save was interrupted, or the copy was cut off";
}

/* Reading -----------------------------------------------------------------------------------------
 */

static int read_archive(
	struct document *d, struct torch_zip *t, struct findings *sink, struct error *e)
{
	struct rebuild *r = t->rebuild;
	bool big_endian = false;

	int status = zip_read(&t->zip, &d->source, &d->arena, d->limits, d->name, sink, e);
	if (t->zip.truncated)
		report_truncated(d, &t->zip, sink);
	if (status < 0)
		return status;
	/* As torch does: the top folder is that of the first entry. */
	t->top = (struct slice){"", 0};
	if (t->zip.count > 0) {
		struct slice first = t->zip.entries[0].name;
		size_t slash = slice_find(first, SLICE("/"));
		t->top = (struct slice){first.n ? first.p : "", slash == SIZE_MAX ? 0 : slash + 1};
	}
	struct zip_entry *object = record(t, "data.pkl");
	if (!object || t->top.n == 0 || record(t, "constants.pkl"))
		return not_ours(t, e);
	status = read_records(d, t, &big_endian, e);
	if (status == RP_OK)
		status = collect_storages(d, t, big_endian, e);
	if (status == RP_OK)
		status = zip_load(&t->zip, object, d->limits->pickle_bytes, sink, &d->bytes, e);
	if (status < 0)
		return status;
	r->find = find;
	r->context = t;
	struct pickle p = {.arena = &d->arena,
		.limits = d->limits,
		.base = object->payload,
		.persistent = rebuild_persistent,
		.context = r};
	struct error why = ERROR_INIT;
	status = pickle_decode(&p, d->bytes, &why);
	pickle_judge(&p, d->name, sink);
	if (status < 0) {
		torch_pickle_failed(d, sink, "data.pkl", false, &why, e);
	} else {
		d->root = p.root;
		d->pickle_protocol = p.protocol;
		torch_take_classes(d, &p);
		status = rebuild_check_storages(r, e);
		if (status == RP_OK)
			status = rebuild_graph(r, &d->root, e);
	}
	pickle_release(&p);
	return status;
}

static int read(struct document *d, struct findings *sink, struct error *e)
{
	struct rebuild r;
	struct torch_zip *t = arena_new(&d->arena, struct torch_zip);

	if (!t)
		return no_memory(e);
	rebuild_init(&r, d, sink);
	names_init(&t->missing);
	t->rebuild = &r;
	d->archive = &t->zip;
	int status = read_archive(d, t, sink, e);
	zip_release(&t->zip);
	names_release(&t->missing);
	rebuild_release(&r);
	t->rebuild = NULL;
	return status;
}

const struct container container_torch_zip = {
	.name = "torch-zip",
	.summary = "PyTorch zip archive (torch.save since 1.6)",
	.probe = probe,
	.read = read,
	.locate = locate,
};
