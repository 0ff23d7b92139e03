/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "curve/curve.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/packed.h"
#include "base/text.h"
#include "curve/read.h"
#include "state/listing.h"

#define CURVE_READER(name) extern const struct curve_reader curve_reader_##name;
#include "curve/readers.def"
#undef CURVE_READER

static const struct curve_reader *const readers[] = {
#define CURVE_READER(name) &curve_reader_##name,
#include "curve/readers.def"
#undef CURVE_READER
};

#define READERS (sizeof readers / sizeof *readers)
#define SURE 2 /* what a probe answers where it is */

/* Names of tables ------------------------------------------------------------------------------ */

static const struct {
	const char *name, *unit;
} roles[] = {
#define ROLE(id, name, unit) [CURVE_##id] = {name, unit},
#include "curve/roles.def"
#undef ROLE
};

const char *curve_role_name(enum curve_role role)
{
	return roles[role].name;
}

const char *curve_role_unit(enum curve_role role)
{
	return roles[role].unit;
}

enum curve_role curve_role_named(struct slice name)
{
	for (unsigned i = 0; i < CURVE_ROLES; i++)
		if (slice_is(name, roles[i].name))
			return (enum curve_role)i;
	return CURVE_OTHER;
}

const char *curve_unit_name(enum curve_unit unit)
{
	static const char *const names[] = {[CURVE_STEPS] = "steps",
		[CURVE_SAMPLES] = "samples",
		[CURVE_TOKENS] = "tokens",
		[CURVE_EPOCHS] = "epochs",
		[CURVE_CALLS] = "calls of the logger"};

	return names[unit];
}

/* Formats -------------------------------------------------------------------------------------- */

/* The reader that is sure, or else the first that could be one; *sure says which. */
static const struct curve_reader *recognise(
	const char *name, const char *head, size_t n, bool *sure)
{
	const struct curve_reader *could = NULL;

	for (size_t i = 0; i < READERS; i++) {
		int answer = readers[i]->probe(name, head, n);
		*sure = answer >= SURE;
		if (*sure)
			return readers[i];
		if (answer > 0 && !could)
			could = readers[i];
	}
	return could;
}

const char *curve_recognise(const char *name, const void *head, size_t n)
{
	char *copy = malloc(n + LINES_PADDING);
	bool sure;

	if (!copy)
		return NULL;
	if (n > 0)
		memcpy(copy, head, n);
	memset(copy + n, '\n', LINES_PADDING);
	const struct curve_reader *r = recognise(name, copy, n, &sure);
	free(copy);
	return sure ? r->name : NULL;
}

static size_t reader_row(const struct curve_reader *r)
{
	size_t i = 0;

	while (i < READERS && readers[i] != r)
		i++;
	return i;
}

bool curve_is_output(const char *name)
{
	static const char *const ends[] = {".out", ".log", ".err", ".txt", "stdout", "stderr"};

	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
		if (slice_ends(slice_of(name), slice_of(ends[i])))
			return true;
	return false;
}

/* Files ---------------------------------------------------------------------------------------- */

struct log_file {
	const char *path; /* to open, and as shown */
	bool named;       /* by the user */
	struct slice bytes;
	bool in_memory;
	size_t listed; /* its number in the order in which the files were found */
	/* What its beginning says. */
	const struct curve_reader *reader;
	bool sure;
	const struct curve_reader *maybe; /* of a file in a folder, should there be no other log */
	double begun;
	uint64_t device, inode;
};

struct opening {
	struct curve_log *log;
	const struct curve_options *options;
	struct arena arena;
	ARRAY(struct log_file) files;
	size_t read;
	struct error first; /* why the first file that could not be read was not */
	const char *first_file;
	char head[CURVE_HEAD + LINES_PADDING]; /* what was read of it ends with '\n' */
};

static int no_memory(struct error *e)
{
	return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for the loss logs");
}

static int add_file(struct opening *o, const char *path, bool named, struct error *e)
{
	struct log_file *f = array_push(&o->files, o->options->limits->files);

	if (!f)
		return fail(e, RP_E_LIMIT, ERROR_NO_OFFSET, "more than %llu files (limit files)",
			(unsigned long long)o->options->limits->files);
	*f = (struct log_file){
		.path = path, .named = named, .listed = o->files.count, .begun = NAN};
	return RP_OK;
}

/* The files below a folder, or the one file. */
static int list_path(struct opening *o, const char *path, bool alone, struct error *e)
{
	const struct limits *limits = o->options->limits;
	struct listing listing;
	const char *end = path + strlen(path);

	if (listing_open(&listing, path, (unsigned)limits->dir_depth, limits, e) < 0)
		return alone ? e->status : fail_wrap(e, "%s", path);
	if (listing.single) {
		listing_close(&listing);
		const char *kept = arena_strdup(&o->arena, slice_of(path));
		return kept ? add_file(o, kept, true, e) : no_memory(e);
	}
	int status = RP_OK;
	for (size_t i = 0; i < listing.files.count && status == RP_OK; i++) {
		const struct listed *f = &listing.files.items[i];
		if (!f->regular)
			continue;
		const char *whole = arena_printf(&o->arena, "%s%s%s", path,
			end > path && end[-1] == '/' ? "" : "/", f->path);
		status = whole ? add_file(o, whole, false, e) : no_memory(e);
	}
	listing_close(&listing);
	return status;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static struct curve_file *begin_file(
	struct opening *o, const struct log_file *f, const char *format)
{
	struct curve_log *l = o->log;
	struct curve_file *file = array_push(&l->files, UINT32_MAX - 1);
	const char *path = arena_strdup(&l->arena, slice_of(f->path));

	if (!file || !path)
		return NULL;
	*file = (struct curve_file){.path = path, .format = format, .writer = "", .note = ""};
	return file;
}

static void keep_first(struct opening *o, const struct log_file *f, const struct error *why)
{
	if (o->first.status == RP_OK) {
		o->first = *why;
		o->first_file = f->path;
	}
}

/* A file that the user named or that was recognised, and cannot be read: the others still can. */
static void pass_by(struct opening *o, const struct log_file *f, const struct error *why)
{
	struct curve_reading r = {.log = o->log, .file = (uint32_t)o->log->files.count};

	keep_first(o, f, why);
	if (begin_file(o, f, ""))
		curve_lost(&r, "%s", why->text);
}

static int open_source(const struct log_file *f, struct source *s, struct error *e)
{
	if (!f->in_memory)
		return source_open(s, AT_FDCWD, f->path, e);
	source_from_memory(s, f->bytes.p, f->bytes.n, f->path);
	return RP_OK;
}

/* Why no reader knows a file, as far as its first bytes tell. */
static int refuse(const char *head, size_t n, struct error *e)
{
	const char *packed = packed_as((struct slice){head, n});

	if (packed)
		return fail(e, RP_E_UNSUPPORTED, ERROR_NO_OFFSET,
			"is %s; a log is read as plain text in UTF-8", packed);
	return fail(e, RP_E_UNSUPPORTED, ERROR_NO_OFFSET, "%s",
		n == 0 ? "is empty"
		: memchr(head, '\0', n)
			? "is no loss log that is known here, and not text"
			: "is no loss log: nothing in its beginning looks like one");
}

static int read_head(struct opening *o, const struct source *s, size_t *n, struct error *e)
{
	int status = source_read_some(s, 0, o->head, CURVE_HEAD, n, e);

	memset(o->head + *n, '\n', LINES_PADDING);
	return status;
}

/* Find out what a file is. */
static int look_at(struct opening *o, struct log_file *f, struct error *e)
{
	struct source source;
	size_t n;

	if (open_source(f, &source, e) < 0)
		return e->status;
	int status = read_head(o, &source, &n, e);
	f->device = source.device;
	f->inode = source.inode;
	f->reader = status < 0 ? NULL : recognise(base_name(f->path), o->head, n, &f->sure);
	if (f->reader && !f->sure && !f->named && f->reader->search)
		f->sure = f->reader->search(base_name(f->path), &source);
	source_close(&source);
	if (status < 0)
		return status;
	if (!f->sure && !f->named) {
		f->maybe = curve_is_output(base_name(f->path)) ? f->reader : NULL;
		f->reader = NULL;
	}
	if (f->reader) {
		if (f->reader->begun)
			f->begun = f->reader->begun(base_name(f->path), o->head, n);
		return RP_OK;
	}
	return f->named ? refuse(o->head, n, e) : RP_OK;
}

/* By format; then by the time at which the files were begun; then as they were found. */
static int compare_files(const void *left, const void *right)
{
	const struct log_file *a = left, *b = right;
	size_t reader_a = reader_row(a->reader), reader_b = reader_row(b->reader);
	double begun_a = isnan(a->begun) ? INFINITY : a->begun;
	double begun_b = isnan(b->begun) ? INFINITY : b->begun;

	if (reader_a != reader_b)
		return reader_a < reader_b ? -1 : 1;
	if (begun_a < begun_b || begun_a > begun_b)
		return begun_a < begun_b ? -1 : 1;
	return (a->listed > b->listed) - (a->listed < b->listed);
}

static int compare_inodes(const void *left, const void *right)
{
	const struct log_file *a = left, *b = right;

	if (a->device != b->device)
		return a->device < b->device ? -1 : 1;
	if (a->inode != b->inode)
		return a->inode < b->inode ? -1 : 1;
	return (a->listed > b->listed) - (a->listed < b->listed);
}

/* A file that is found twice is read where it was found first. */
static void drop_doubles(struct opening *o)
{
	struct log_file *files = o->files.items;

	if (o->files.count == 0 || files->in_memory)
		return;
	qsort(files, o->files.count, sizeof *files, compare_inodes);
	for (size_t i = 1; i < o->files.count; i++)
		if (files[i].device == files[i - 1].device && files[i].inode == files[i - 1].inode)
			files[i].reader = NULL;
}

/* Read a file. One that is a log only because the user named it must have something to say. */
static int read_open(
	struct opening *o, const struct log_file *f, struct curve_reading *r, struct error *e)
{
	size_t marks = o->log->marks.count;
	struct error why = ERROR_INIT;

	if (f->reader->read(r, e) < 0)
		return e->status;
	if (f->sure || o->log->files.items[r->file].points > 0 || o->log->marks.count > marks) {
		o->read++;
		return RP_OK;
	}
	fail(&why, RP_E_UNSUPPORTED, ERROR_NO_OFFSET,
		"is no loss log: nothing in it looks like one");
	keep_first(o, f, &why);
	curve_lost(r, "%s", why.text);
	return RP_OK;
}

/* Read a file whose reader is known. What is wrong with the file itself is counted in the log. */
static int read_file(struct opening *o, struct log_file *f, struct error *e)
{
	struct source source;
	struct error why = ERROR_INIT;
	struct curve_reading r = {.log = o->log,
		.source = &source,
		.name = base_name(f->path),
		.head = o->head,
		.wall = NAN,
		.file = (uint32_t)o->log->files.count,
		.options = o->options};

	if (open_source(f, &source, &why) < 0) {
		pass_by(o, f, &why);
		return RP_OK;
	}
	if (!begin_file(o, f, f->reader->name)) {
		source_close(&source);
		return no_memory(e);
	}
	int status = RP_OK;
	if (read_head(o, &source, &r.head_n, &why) < 0) {
		pass_by(o, f, &why);
		curve_lost(&r, "%s", why.text);
	} else {
		status = read_open(o, f, &r, e);
	}
	lookup_release(&r.by_name);
	source_close(&source);
	return status;
}

static int nothing_read(struct opening *o, struct error *e)
{
	if (o->first.status == RP_OK)
		return fail(e, RP_E_NOT_FOUND, ERROR_NO_OFFSET, "no loss log in %zu file%s",
			o->files.count, o->files.count == 1 ? "" : "s");
	*e = o->first;
	return o->files.count > 1 ? fail_wrap(e, "%s", o->first_file) : e->status;
}

/* In a folder without any log that is known, what a script of one's own printed is the log. */
static void take_outputs(struct opening *o)
{
	for (size_t i = 0; i < o->files.count; i++)
		if (o->files.items[i].reader)
			return;
	for (size_t i = 0; i < o->files.count; i++)
		o->files.items[i].reader = o->files.items[i].maybe;
}

static int open_listed(struct opening *o, struct error *e)
{
	for (size_t i = 0; i < o->files.count; i++) {
		struct error why = ERROR_INIT;
		if (look_at(o, &o->files.items[i], &why) < 0)
			pass_by(o, &o->files.items[i], &why);
	}
	take_outputs(o);
	drop_doubles(o);
	if (o->files.count > 0)
		qsort(o->files.items, o->files.count, sizeof *o->files.items, compare_files);
	for (size_t i = 0; i < o->files.count; i++)
		if (o->files.items[i].reader && read_file(o, &o->files.items[i], e) < 0)
			return o->files.count > 1 ? fail_wrap(e, "%s", o->files.items[i].path)
						  : e->status;
	return o->read > 0 ? RP_OK : nothing_read(o, e);
}

static struct opening *begin(
	struct curve_log *l, const struct curve_options *options, struct error *e)
{
	struct opening *o = calloc(1, sizeof *o);

	*l = (struct curve_log){.limits = options->limits};
	if (!o) {
		no_memory(e);
		return NULL;
	}
	o->log = l;
	o->options = options;
	arena_init(&o->arena, options->limits->memory);
	arena_init(&l->arena, options->limits->memory);
	return o;
}

static int end(struct opening *o, int status)
{
	if (status < 0)
		curve_release(o->log);
	array_release(&o->files);
	arena_release(&o->arena);
	free(o);
	return status;
}

int curve_open(struct curve_log *l, const char *const *paths, size_t n,
	const struct curve_options *options, struct error *e)
{
	struct opening *o = begin(l, options, e);
	int status = o ? RP_OK : e->status;

	for (size_t i = 0; i < n && status == RP_OK; i++)
		status = list_path(o, paths[i], n == 1, e);
	if (status == RP_OK)
		status = open_listed(o, e);
	return o ? end(o, status) : status;
}

int curve_open_memory(struct curve_log *l, const char *name, struct slice text,
	const struct curve_options *options, struct error *e)
{
	struct opening *o = begin(l, options, e);
	int status = o ? add_file(o, name, true, e) : e->status;

	if (status == RP_OK) {
		o->files.items[0].bytes = text;
		o->files.items[0].in_memory = true;
		status = open_listed(o, e);
	}
	return o ? end(o, status) : status;
}

void curve_release(struct curve_log *l)
{
	array_release(&l->files);
	array_release(&l->series);
	array_release(&l->points);
	array_release(&l->marks);
	array_release(&l->losses);
	arena_release(&l->arena);
	*l = (struct curve_log){0};
}
