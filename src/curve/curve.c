/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "curve/curve.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "curve/find.h"
#include "curve/read.h"

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

/* Files ---------------------------------------------------------------------------------------- */

struct opening {
	struct curve_log *log;
	const struct curve_options *options;
	ARRAY(const struct curve_found *) files; /* in the order in which they are read */
	size_t looked, read;
	struct error first; /* why the first file that could not be read was not */
	const char *first_file;
	char head[CURVE_HEAD + LINES_PADDING]; /* what was read of it ends with '\n' */
};

static int no_memory(struct error *e)
{
	return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for the loss logs");
}

/* `reader` is NULL where it cannot be read. */
static struct curve_file *begin_file(
	struct opening *o, const struct curve_found *f, const struct curve_reader *reader)
{
	struct curve_log *l = o->log;
	struct curve_file *file = array_push(&l->files, UINT32_MAX - 1);
	const char *path = arena_strdup(&l->arena, slice_of(f->path));

	if (!file || !path)
		return NULL;
	*file = (struct curve_file){.path = path,
		.format = reader ? reader->name : "",
		.span = reader ? (uint8_t)reader->span : 0,
		.writer = "",
		.note = ""};
	return file;
}

static void keep_first(struct opening *o, const struct curve_found *f, const struct error *why)
{
	if (o->first.status == RP_OK) {
		o->first = *why;
		o->first_file = f->path;
	}
}

/* A file that the user named or that was recognised, and cannot be read: the others still can. */
static void pass_by(struct opening *o, const struct curve_found *f, const struct error *why)
{
	struct curve_reading r = {.log = o->log, .file = (uint32_t)o->log->files.count};

	keep_first(o, f, why);
	if (begin_file(o, f, NULL))
		curve_lost(&r, "%s", why->text);
}

/* The same, unless the system failed: then nothing is known of the file. */
static int give_up(
	struct opening *o, const struct curve_found *f, const struct error *why, struct error *e)
{
	if (!error_of_system(why)) {
		pass_by(o, f, why);
		return RP_OK;
	}
	*e = *why;
	return e->status;
}

static int open_source(const struct curve_found *f, struct source *s, struct error *e)
{
	if (!f->in_memory)
		return source_open(s, AT_FDCWD, f->path, e);
	source_from_memory(s, f->bytes.p, f->bytes.n, f->path);
	return RP_OK;
}

static int read_head(struct opening *o, const struct source *s, size_t *n, struct error *e)
{
	int status = source_read_some(s, 0, o->head, CURVE_HEAD, n, e);

	memset(o->head + *n, '\n', LINES_PADDING);
	return status;
}

/* By format; then by the time at which the files were begun; then as they were found. */
static int compare_files(const void *left, const void *right)
{
	const struct curve_found *a = *(const struct curve_found *const *)left;
	const struct curve_found *b = *(const struct curve_found *const *)right;
	size_t reader_a = curve_reader_row(a->reader), reader_b = curve_reader_row(b->reader);
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
	const struct curve_found *a = *(const struct curve_found *const *)left;
	const struct curve_found *b = *(const struct curve_found *const *)right;

	if (a->device != b->device)
		return a->device < b->device ? -1 : 1;
	if (a->inode != b->inode)
		return a->inode < b->inode ? -1 : 1;
	return (a->listed > b->listed) - (a->listed < b->listed);
}

/* A file that is found twice is read where it was found first. */
static void drop_doubles(struct opening *o)
{
	const struct curve_found **files = o->files.items;
	size_t kept = 0;

	if (o->files.count == 0 || files[0]->in_memory)
		return;
	qsort(files, o->files.count, sizeof *files, compare_inodes);
	for (size_t i = 0; i < o->files.count; i++)
		if (kept == 0 || files[i]->device != files[kept - 1]->device ||
			files[i]->inode != files[kept - 1]->inode)
			files[kept++] = files[i];
	o->files.count = kept;
}

/* Read a file. One that is a log only because the user named it must have something to say. */
static int read_open(
	struct opening *o, const struct curve_found *f, struct curve_reading *r, struct error *e)
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
static int read_file(struct opening *o, const struct curve_found *f, struct error *e)
{
	struct source source;
	struct error why = ERROR_INIT;
	struct curve_reading r = {.log = o->log,
		.source = &source,
		.name = curve_base_name(f->path),
		.head = o->head,
		.wall = NAN,
		.file = (uint32_t)o->log->files.count,
		.options = o->options};

	if (open_source(f, &source, &why) < 0)
		return give_up(o, f, &why, e);
	int status = RP_OK;
	if (read_head(o, &source, &r.head_n, &why) < 0)
		status = give_up(o, f, &why, e);
	else if (!begin_file(o, f, f->reader))
		status = no_memory(e);
	else
		status = read_open(o, f, &r, e);
	lookup_release(&r.by_name);
	source_close(&source);
	return status;
}

static int nothing_read(struct opening *o, struct error *e)
{
	const struct curve_left *left = o->log->left.count ? o->log->left.items : NULL;

	if (o->first.status == RP_OK)
		return fail(e, RP_E_NOT_FOUND, ERROR_NO_OFFSET, "no loss log in %zu file%s%s%s%s%s",
			o->looked, o->looked == 1 ? "" : "s", left ? "; " : "",
			left ? left->path : "", left ? ": " : "", left ? left->why : "");
	*e = o->first;
	return o->looked > 1 ? fail_wrap(e, "%s", o->first_file) : e->status;
}

/* What lies there and is not read. What the user named is wanted all the same. */
static int take_left(struct opening *o, const struct curve_found *f, struct error *e)
{
	struct error why = ERROR_INIT;

	if (f->named) {
		fail(&why, RP_E_UNSUPPORTED, ERROR_NO_OFFSET, "%s", f->what);
		pass_by(o, f, &why);
		return RP_OK;
	}
	struct curve_left *slot = array_push(&o->log->left, o->options->limits->files);
	if (!slot)
		return no_memory(e);
	*slot = (struct curve_left){arena_strdup(&o->log->arena, slice_of(f->path)),
		arena_strdup(&o->log->arena, slice_of(f->what)), f->unread};
	return slot->path && slot->why ? RP_OK : no_memory(e);
}

static int take_found(struct opening *o, const struct curve_found *f, struct error *e)
{
	if (f->kind == CURVE_FOUND_LEFT)
		return take_left(o, f, e);
	if (f->kind != CURVE_FOUND_LOG)
		return RP_OK;
	const struct curve_found **slot = array_push(&o->files, o->options->limits->files);
	if (!slot)
		return no_memory(e);
	*slot = f;
	return RP_OK;
}

static int add_left(struct opening *o, const struct curve_operand *p, bool unread, const char *why,
	struct error *e)
{
	struct curve_left *slot = array_push(&o->log->left, o->options->limits->files);

	if (!slot)
		return no_memory(e);
	*slot = (struct curve_left){arena_strdup(&o->log->arena, slice_of(p->path)), why, unread};
	return slot->path && slot->why ? RP_OK : no_memory(e);
}

/* What of a folder is on no list. */
static int take_rest(struct opening *o, const struct curve_operand *p, size_t told, struct error *e)
{
	struct arena *arena = &o->log->arena;
	size_t more = p->folder && p->left > told ? p->left - told : 0, folders = p->folders_unread;

	if (more > 0 &&
		add_left(o, p, false,
			arena_printf(arena, "%zu more file%s in it", more, more == 1 ? "" : "s"),
			e) < 0)
		return e->status;
	if (folders > 0 &&
		add_left(o, p, true,
			arena_printf(arena,
				"%zu folder%s in it may not be read, or %s too deep (limit dir-depth)",
				folders, folders == 1 ? "" : "s", folders == 1 ? "lies" : "lie"),
			e) < 0)
		return e->status;
	return RP_OK;
}

static bool is_asked(const uint32_t *operands, size_t n, uint32_t operand)
{
	for (size_t i = 0; i < n; i++)
		if (operands[i] == operand)
			return true;
	return !operands;
}

/* Pick the logs of the operands, and what is to be said of the rest of them. */
static int gather(struct opening *o, const struct curve_files *f, const uint32_t *operands,
	size_t n, struct error *e)
{
	size_t i = 0;

	for (uint32_t k = 0; k < f->operands.count; k++) {
		bool asked = is_asked(operands, n, k);
		size_t told = 0;
		for (; i < f->list.count && f->list.items[i].operand == k; i++) {
			told += f->list.items[i].kind == CURVE_FOUND_LEFT;
			if (asked && take_found(o, &f->list.items[i], e) < 0)
				return e->status;
		}
		if (asked && take_rest(o, &f->operands.items[k], told, e) < 0)
			return e->status;
	}
	return RP_OK;
}

static int read_gathered(struct opening *o, struct error *e)
{
	drop_doubles(o);
	if (o->files.count > 0)
		qsort(o->files.items, o->files.count, sizeof *o->files.items, compare_files);
	for (size_t i = 0; i < o->files.count; i++)
		if (read_file(o, o->files.items[i], e) < 0)
			return o->files.count > 1 ? fail_wrap(e, "%s", o->files.items[i]->path)
						  : e->status;
	return o->read > 0 ? RP_OK : nothing_read(o, e);
}

int curve_read(struct curve_log *l, const struct curve_files *f, const uint32_t *operands, size_t n,
	const struct curve_options *options, struct error *e)
{
	struct opening *o = calloc(1, sizeof *o);

	*l = (struct curve_log){.limits = options->limits};
	if (!o)
		return no_memory(e);
	arena_init(&l->arena, options->limits->memory);
	o->log = l;
	o->options = options;
	o->looked = f->looked;
	int status = gather(o, f, operands, n, e);
	if (status == RP_OK)
		status = read_gathered(o, e);
	if (status < 0)
		curve_release(l);
	array_release(&o->files);
	free(o);
	return status;
}

int curve_open(struct curve_log *l, const char *const *paths, size_t n,
	const struct curve_options *options, struct error *e)
{
	struct curve_files f;

	*l = (struct curve_log){0};
	if (curve_find(&f, paths, n, options, e) < 0)
		return e->status;
	int status = curve_read(l, &f, NULL, 0, options, e);
	curve_files_release(&f);
	return status;
}

int curve_open_memory(struct curve_log *l, const char *name, struct slice text,
	const struct curve_options *options, struct error *e)
{
	struct curve_files f;

	*l = (struct curve_log){0};
	if (curve_find_memory(&f, name, text, options, e) < 0)
		return e->status;
	int status = curve_read(l, &f, NULL, 0, options, e);
	curve_files_release(&f);
	return status;
}

void curve_release(struct curve_log *l)
{
	array_release(&l->files);
	array_release(&l->series);
	array_release(&l->points);
	array_release(&l->marks);
	array_release(&l->losses);
	array_release(&l->left);
	arena_release(&l->arena);
	*l = (struct curve_log){0};
}
