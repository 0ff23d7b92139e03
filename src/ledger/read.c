/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "ledger/read.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/packed.h"
#include "ledger/doubts.h"
#include "ledger/plan.h"
#include "state/listing.h"

#define READER(name) extern const struct reader reader_##name;
#include "ledger/readers.def"
#undef READER

static const struct reader *const readers[] = {
#define READER(name) &reader_##name,
#include "ledger/readers.def"
#undef READER
};

#define READERS (sizeof readers / sizeof *readers)

static const struct reader *recognise(const char *head, size_t n, bool named)
{
	for (size_t i = 0; i < READERS; i++)
		if (readers[i]->probe(head, n, named))
			return readers[i];
	return NULL;
}

const char *ledger_recognise(const void *head, size_t n)
{
	const struct reader *r = recognise(head, n, false);

	return r ? r->name : NULL;
}

/* Attempts of one file ------------------------------------------------------------------------- */

void reading_lost(struct reading *r, const char *format, ...)
{
	char text[300];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof text, format, ap);
	va_end(ap);
	ledger_lost(r->ledger, r->file, r->line, r->offset, text);
}

static bool same_number(const void *of, uint32_t row, const void *key)
{
	return ((const struct reading *)of)->attempts.items[row].number == *(const int64_t *)key;
}

/* Have the attempt of a number at hand, as this file knows it; made where the file is new to it. */
static int select_number(struct reading *r, int64_t number, struct error *e)
{
	uint64_t hash = lookup_mix((uint64_t)number);

	if (r->current != LEDGER_NONE && r->attempts.items[r->current].number == number)
		return RP_OK;
	r->current = lookup_find(&r->by_number, hash, same_number, r, &number);
	if (r->current != LOOKUP_NONE)
		return RP_OK;
	r->current = (uint32_t)r->attempts.count;
	struct read_attempt *a = array_push(&r->attempts, r->ledger->limits->memory / sizeof *a);
	if (!a || !lookup_add(&r->by_number, hash, r->current))
		return fail(e, RP_E_LIMIT, ERROR_NO_OFFSET,
			"too many attempts for the memory allowed (limit memory)");
	*a = (struct read_attempt){.number = number, .again = LEDGER_NONE};
	return RP_OK;
}

static bool said_alike(const struct ledger_attempt *a, const struct ledger_attempt *b)
{
	return a->kind == b->kind && a->from_step == b->from_step && a->seed == b->seed &&
	       a->has_seed == b->has_seed && strcmp(a->launch, b->launch) == 0 &&
	       strcmp(a->code, b->code) == 0;
}

/* It is known which launch the file speaks of: take over what an attempt line says of it. */
static int settle(struct reading *r, uint32_t again, struct error *e)
{
	struct read_attempt *known = &r->attempts.items[r->current];

	known->again = again;
	if (ledger_attempt_again(r->ledger, known->number, again, &known->index, e) < 0)
		return e->status;
	struct ledger_attempt *a = &r->ledger->attempts.items[known->index];
	if (a->line == 0) {
		a->file = ledger_keep(r->ledger, slice_of(r->file));
		a->line = r->line;
	}
	if (!known->pending)
		return RP_OK;
	known->pending = false;
	if (!a->implied) {
		if (!said_alike(a, &r->said))
			ledger_note(r->ledger, r->file, r->said.line,
				"attempt %lld is described in another way than in %s line %llu, which "
				"counts",
				(long long)a->number, a->file, (unsigned long long)a->line);
		return RP_OK;
	}
	r->said.number = a->number;
	r->said.again = again;
	r->said.implied = false;
	r->said.end = a->end;
	r->said.end_step = a->end_step;
	r->said.file = ledger_keep(r->ledger, slice_of(r->file));
	*a = r->said;
	return RP_OK;
}

/* An attempt of which nothing but its line, or its end, was read. */
static int settle_empty(struct reading *r, struct error *e)
{
	struct read_attempt *known = &r->attempts.items[r->current];
	struct ledger *l = r->ledger;
	uint32_t again = 0, index;

	if (known->again != LEDGER_NONE)
		return RP_OK;
	/* Other ranks' logs may have spoken of it. */
	while (known->pending && ledger_has_attempt(l, known->number, again, &index) &&
		!l->attempts.items[index].implied &&
		!said_alike(&l->attempts.items[index], &r->said))
		again++;
	return settle(r, again, e);
}

int reading_attempt(struct reading *r, const struct ledger_attempt *said, struct error *e)
{
	bool known = false;

	if (r->current != LEDGER_NONE && r->attempts.items[r->current].pending &&
		settle_empty(r, e) < 0)
		return e->status;
	size_t before = r->attempts.count;
	if (select_number(r, said->number, e) < 0)
		return e->status;
	known = r->attempts.count == before;
	struct read_attempt *a = &r->attempts.items[r->current];
	r->number = said->number;
	r->said = *said;
	r->said.line = r->line;
	a->pending = true;
	if (!known)
		return RP_OK;
	/* Its second line in one file: another launch. */
	if (a->again == LEDGER_NONE)
		a->again = 0;
	uint32_t again = a->again + 1, index;
	if (!ledger_has_attempt(r->ledger, a->number, again, &index))
		ledger_note(r->ledger, r->file, r->line,
			"attempt %lld begins again: two launches under one number",
			(long long)a->number);
	return settle(r, again, e);
}

/* A line of another attempt: nothing more will come of one that waits for its first step here. */
static int leave_pending(struct reading *r, int64_t number, struct error *e)
{
	if (r->current == LEDGER_NONE || r->attempts.items[r->current].number == number ||
		!r->attempts.items[r->current].pending)
		return RP_OK;
	return settle_empty(r, e);
}

int reading_current(struct reading *r, int64_t number, uint32_t *index, struct error *e)
{
	if (number == LEDGER_UNNUMBERED)
		number = r->number;
	if (leave_pending(r, number, e) < 0)
		return e->status;
	if (select_number(r, number, e) < 0 || settle_empty(r, e) < 0)
		return e->status;
	*index = r->attempts.items[r->current].index;
	return RP_OK;
}

/* The newest launch under a number in which the rank has lines; LEDGER_NONE where there is none. */
static uint32_t newest_with_rank(
	const struct ledger *l, int64_t number, uint32_t dp, uint16_t micro, int64_t *first)
{
	uint32_t newest = LEDGER_NONE, index;

	for (uint32_t again = 0; ledger_has_attempt(l, number, again, &index); again++)
		if (ledger_rank_begins(l, index, dp, micro, first))
			newest = again;
	return newest;
}

/*
 * A file that does not say its rank is the log of one rank, or the next launch's. With attempt
 * numbers that is plain. Without, files of several ranks begin with the same step.
 */
static void find_rank(struct reading *r, const struct read_attempt *a, uint16_t micro, int64_t step)
{
	uint32_t index;
	int64_t first = 0;

	r->rank = 0;
	uint32_t newest = newest_with_rank(r->ledger, a->number, 0, micro, &first);
	if (newest == LEDGER_NONE || (a->number == LEDGER_UNNUMBERED && step != first))
		return;
	ledger_has_attempt(r->ledger, a->number, 0, &index);
	while (ledger_rank_begins(r->ledger, index, r->rank, micro, &first))
		r->rank++;
	ledger_note(r->ledger, r->file, r->line,
		"the lines do not say dp, and another file has the same steps: read as rank %u",
		r->rank);
}

/* Which launch under its number the file's first step of an attempt belongs to. */
static int find_launch(struct reading *r, const struct ledger_line *line, struct error *e)
{
	const struct read_attempt *a = &r->attempts.items[r->current];
	const struct ledger_attempt *known;
	uint32_t index;
	int64_t first;

	uint32_t again = newest_with_rank(r->ledger, a->number, line->dp, line->micro, &first);
	if (again == LEDGER_NONE)
		return settle(r, 0, e);
	/* The rank has a launch under that number already. A file of its own without a number, or
	 * one that describes it in another way, is the next one. */
	ledger_has_attempt(r->ledger, a->number, again, &index);
	known = &r->ledger->attempts.items[index];
	if (a->number == LEDGER_UNNUMBERED ||
		(a->pending && !known->implied && !said_alike(known, &r->said)))
		again++;
	return settle(r, again, e);
}

/* Going back over steps that the rank has taken: another launch, whatever its number. */
static int find_restart(struct reading *r, const struct ledger_line *line, struct error *e)
{
	struct read_attempt *a = &r->attempts.items[r->current];
	uint32_t index;

	for (;;) {
		int back =
			ledger_goes_back(r->ledger, a->index, line->dp, line->micro, line->step, e);
		if (back <= 0)
			return back;
		if (!ledger_has_attempt(r->ledger, a->number, a->again + 1, &index) &&
			a->number != LEDGER_UNNUMBERED)
			ledger_note(r->ledger, r->file, r->line,
				"attempt %lld goes back to step %lld, which it had taken: read as another "
				"launch under that number",
				(long long)a->number, (long long)line->step);
		if (settle(r, a->again + 1, e) < 0)
			return e->status;
	}
}

static int place_line(struct reading *r, int64_t number, struct ledger_line *line, struct error *e)
{
	if (number == LEDGER_UNNUMBERED)
		number = r->number;
	if (leave_pending(r, number, e) < 0)
		return e->status;
	if (select_number(r, number, e) < 0)
		return e->status;
	struct read_attempt *a = &r->attempts.items[r->current];
	if (line->dp == LEDGER_NONE) {
		if (r->rank == LEDGER_NONE)
			find_rank(r, a, line->micro, line->step);
		line->dp = r->rank;
	}
	if (a->again == LEDGER_NONE && find_launch(r, line, e) < 0)
		return e->status;
	if (find_restart(r, line, e) < 0)
		return e->status;
	line->attempt = a->index;
	return RP_OK;
}

int reading_line(struct reading *r, int64_t number, struct ledger_line *line, struct error *e)
{
	line->dataset = r->dataset;
	if (place_line(r, number, line, e) < 0)
		return e->status;
	return ledger_add_line(r->ledger, line, e);
}

int reading_irregular(struct reading *r, int64_t number, int64_t step, struct error *e)
{
	uint32_t index;

	if (reading_current(r, number, &index, e) < 0)
		return e->status;
	return ledger_irregular(r->ledger, index, step, e);
}

/* Files ---------------------------------------------------------------------------------------- */

struct log_file {
	const char *path;  /* to open */
	const char *shown; /* in the report */
	const struct reader *reader;
	bool named;         /* on the command line */
	struct slice bytes; /* in memory, where there is no path */
	uint64_t device, inode;
};

struct opening {
	struct ledger *ledger;
	struct arena arena;
	ARRAY(struct log_file) files;
	size_t paths, read;
	const struct run_file *run; /* or NULL */
	bool fatal;                 /* what failed is not the file */
	struct error first;         /* why the first file that could not be read was not */
	const char *first_file;
	char head[LEDGER_HEAD];
};

/* A file that cannot be read: the others still can. Where the system failed, nothing is known of
 * them either. */
static int pass_by(
	struct opening *o, const struct log_file *f, const struct error *why, struct error *e)
{
	if (o->fatal || error_of_system(why) || why->status == RP_E_LIMIT) {
		*e = *why;
		return o->files.count > 1 ? fail_wrap(e, "%s", f->shown) : e->status;
	}
	if (o->first.status == RP_OK) {
		o->first = *why;
		o->first_file = f->shown;
	}
	ledger_lost(o->ledger, f->shown, 0, why->offset == ERROR_NO_OFFSET ? 0 : why->offset,
		why->text);
	return RP_OK;
}

static int add_file(
	struct opening *o, const char *path, const char *shown, bool named, struct error *e)
{
	struct log_file *f = array_push(&o->files, o->ledger->limits->files);

	if (!f)
		return fail(e, RP_E_LIMIT, ERROR_NO_OFFSET, "more than %llu files (limit files)",
			(unsigned long long)o->ledger->limits->files);
	*f = (struct log_file){.path = path, .shown = shown, .named = named};
	return RP_OK;
}

/* The files below a folder, or the one file. */
static int list_path(struct opening *o, const char *path, struct error *e)
{
	const struct limits *limits = o->ledger->limits;
	struct listing listing;

	if (listing_open(&listing, path, (unsigned)limits->dir_depth, limits, e) < 0)
		return o->paths > 1 ? fail_wrap(e, "%s", path) : e->status;
	if (listing.single) {
		listing_close(&listing);
		return add_file(o, path, path, true, e);
	}
	int status = RP_OK;
	for (size_t i = 0; i < listing.files.count && status == RP_OK; i++) {
		const struct listed *f = &listing.files.items[i];
		if (!f->regular)
			continue;
		const char *whole = arena_printf(&o->arena, "%s/%s", path, f->path);
		const char *shown = arena_strdup(&o->arena, slice_of(f->path));
		status = whole && shown ? add_file(o, whole, shown, false, e)
					: fail(e, RP_E_MEMORY, ERROR_NO_OFFSET,
						  "no memory for file names");
	}
	listing_close(&listing);
	return status;
}

typedef int (*file_fn)(struct opening *o, struct log_file *f, struct reading *r, struct error *e);

/* Open a file and look at its beginning; then do what `visit` does. */
static int with_file(struct opening *o, struct log_file *f, file_fn visit, struct error *e)
{
	struct source source;
	struct error why = ERROR_INIT;
	struct reading r = {.ledger = o->ledger,
		.source = &source,
		.file = f->shown,
		.path = f->path,
		.head = o->head,
		.number = LEDGER_UNNUMBERED,
		.current = LEDGER_NONE,
		.rank = LEDGER_NONE};

	if (f->path)
		source_open(&source, AT_FDCWD, f->path, &why);
	else
		source_from_memory(&source, f->bytes.p, f->bytes.n, f->shown);
	int status = why.status;
	if (status == RP_OK) {
		f->device = source.device;
		f->inode = source.inode;
		status = source_read_some(&source, 0, o->head, LEDGER_HEAD, &r.head_n, &why);
		if (status == RP_OK)
			status = visit(o, f, &r, &why);
		source_close(&source);
	}
	array_release(&r.attempts);
	lookup_release(&r.by_number);
	if (status == RP_OK)
		return RP_OK;
	f->reader = NULL;
	return pass_by(o, f, &why, e);
}

static int look_at(struct opening *o, struct log_file *f, struct reading *r, struct error *e)
{
	f->reader = recognise(r->head, r->head_n, f->named);
	if (f->reader && f->reader->opens_path && !f->path)
		f->reader = NULL;
	/* Of one file alone, the header is read with it. */
	if (f->reader)
		return f->reader->read_header && o->files.count > 1 ? f->reader->read_header(r, e)
								    : RP_OK;
	if (!f->named)
		return RP_OK;
	const char *packed = packed_as((struct slice){r->head, r->head_n});
	if (packed)
		return fail(e, RP_E_UNSUPPORTED, ERROR_NO_OFFSET,
			"is %s; a sample log is read as plain text in UTF-8", packed);
	return fail(e, RP_E_UNSUPPORTED, ERROR_NO_OFFSET,
		"%s no sample log: neither JSON lines, nor CSV with a header row, nor a sealed log",
		r->head_n == 0 ? "is empty:" : "is");
}

static int compare_inodes(const void *left, const void *right)
{
	const struct log_file *a = *(struct log_file *const *)left,
			      *b = *(struct log_file *const *)right;

	if (a->device != b->device)
		return a->device < b->device ? -1 : 1;
	if (a->inode != b->inode)
		return a->inode < b->inode ? -1 : 1;
	return (a > b) - (a < b);
}

/* A link to a log that is read is not read again: each sample would count twice. */
static int drop_doubles(struct opening *o, struct error *e)
{
	struct log_file **logs = calloc(o->files.count + 1, sizeof(struct log_file *));
	size_t n = 0;

	if (!logs)
		return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for file names");
	for (size_t i = 0; i < o->files.count; i++)
		if (o->files.items[i].reader && o->files.items[i].path)
			logs[n++] = &o->files.items[i];
	if (n > 0)
		qsort(logs, n, sizeof *logs, compare_inodes);
	for (size_t i = 1, first = 0; i < n; i++) {
		if (logs[i]->device != logs[first]->device ||
			logs[i]->inode != logs[first]->inode) {
			first = i;
			continue;
		}
		logs[i]->reader = NULL;
		ledger_note(o->ledger, logs[i]->shown, 0, "it is %s, and read there",
			logs[first]->shown);
	}
	free(logs);
	return RP_OK;
}

static int read_one(struct opening *o, struct log_file *f, struct reading *r, struct error *e)
{
	int status = f->reader->read(r, e);

	/* What the file said last may be of an attempt that has nothing else. */
	if (status == RP_OK && r->current != LEDGER_NONE)
		status = settle_empty(r, e);
	o->fatal = status < 0;
	o->read += status == RP_OK;
	return status;
}

/* All files of a format whose files only make sense together. */
static int read_together(struct opening *o, const struct reader *reader, struct error *e)
{
	size_t n = 0;
	const char **paths = calloc(2 * o->files.count, sizeof *paths);
	const char **names = paths + o->files.count;

	if (!paths)
		return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for file names");
	for (size_t i = 0; i < o->files.count; i++)
		if (o->files.items[i].reader == reader) {
			paths[n] = o->files.items[i].path;
			names[n++] = o->files.items[i].shown;
		}
	int status = n > 0 ? reader->read_together(o->ledger, paths, names, n, e) : RP_OK;
	o->read += status == RP_OK ? n : 0;
	free(paths);
	return status;
}

static int read_files(struct opening *o, struct error *e)
{
	/* What headers say of the data counts for all files, so it comes first. */
	for (size_t i = 0; i < o->files.count; i++)
		if (with_file(o, &o->files.items[i], look_at, e) < 0)
			return e->status;
	if (drop_doubles(o, e) < 0)
		return e->status;
	for (size_t i = 0; i < o->files.count; i++)
		if (o->files.items[i].reader && o->files.items[i].reader->read &&
			with_file(o, &o->files.items[i], read_one, e) < 0)
			return e->status;
	for (size_t i = 0; i < READERS; i++)
		if (readers[i]->read_together && read_together(o, readers[i], e) < 0)
			return e->status;
	if (o->read > 0)
		return RP_OK;
	if (o->first.status != RP_OK) {
		*e = o->first;
		return o->files.count > 1 ? fail_wrap(e, "%s", o->first_file) : e->status;
	}
	return fail(e, RP_E_NOT_FOUND, ERROR_NO_OFFSET, "no sample log in %zu file%s",
		o->files.count, o->files.count == 1 ? "" : "s");
}

static int open_listed(struct opening *o, struct error *e)
{
	struct ledger *l = o->ledger;

	if (read_files(o, e) < 0)
		return e->status;
	if (o->run)
		plan_tell(l, o->run, e);
	if (e->status < 0 || ledger_finish(l, e) < 0)
		return e->status;
	l->notes_read = l->notes.count;
	l->noted_read = l->noted;
	ledger_doubts(l);
	return ledger_whole(l, e);
}

static struct opening *begin(struct ledger *l, const char *path, size_t paths,
	const struct ledger_options *options, struct error *e)
{
	struct opening *o = calloc(1, sizeof *o);

	*l = (struct ledger){0};
	if (!o) {
		fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for the sample log");
		return NULL;
	}
	o->ledger = l;
	o->paths = paths;
	o->run = options->run;
	arena_init(&o->arena, options->limits->memory);
	if (ledger_init(l, path, options, e) == RP_OK)
		return o;
	free(o);
	return NULL;
}

static int end(struct opening *o, int status)
{
	if (status < 0)
		ledger_release(o->ledger);
	array_release(&o->files);
	arena_release(&o->arena);
	free(o);
	return status;
}

int ledger_open(struct ledger *l, const char *const *paths, size_t n,
	const struct ledger_options *options, struct error *e)
{
	struct opening *o = begin(l, n ? paths[0] : "", n, options, e);
	int status = o ? RP_OK : e->status;

	for (size_t i = 0; i < n && status == RP_OK; i++)
		status = list_path(o, paths[i], e);
	if (status == RP_OK)
		status = open_listed(o, e);
	return o ? end(o, status) : status;
}

int ledger_open_memory(struct ledger *l, const struct slice *texts, size_t n,
	const struct ledger_options *options, struct error *e)
{
	struct opening *o = begin(l, "", n, options, e);
	int status = o ? RP_OK : e->status;

	for (size_t i = 0; i < n && status == RP_OK; i++) {
		const char *shown = arena_printf(&o->arena, "%zu", i + 1);
		status = add_file(o, NULL, shown ? shown : "", true, e);
		if (status == RP_OK)
			o->files.items[i].bytes = texts[i];
	}
	if (status == RP_OK)
		status = open_listed(o, e);
	return o ? end(o, status) : status;
}
