/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "curve/find.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/packed.h"
#include "base/text.h"
#include "curve/own.h"
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
#define LEFT_KEPT 20u
#define SEARCH_FILE ((uint64_t)64 << 20) /* bytes of a file in which a first line is looked for */
#define SEARCH_FOLDER ((uint64_t)2 << 30)

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

size_t curve_reader_row(const struct curve_reader *r)
{
	size_t i = 0;

	while (i < READERS && readers[i] != r)
		i++;
	return i;
}

/* Names ---------------------------------------------------------------------------------------- */

static bool ends_with_one_of(struct slice name, const char *const *ends, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (slice_ends(name, slice_of(ends[i])))
			return true;
	return false;
}

/* "train.log" of "train.log.1" and "train.log-20261130". */
static struct slice without_turn(struct slice name)
{
	size_t n = name.n;

	while (n > 0 && name.p[n - 1] >= '0' && name.p[n - 1] <= '9')
		n--;
	bool turn = n > 0 && n < name.n && memchr(".-_", name.p[n - 1], 3);
	return turn ? (struct slice){name.p, n - 1} : name;
}

/* What batch systems and people call the files in which they keep what a job printed. */
static bool is_output(struct slice name)
{
	static const char *const ends[] = {".out", ".log", ".err", ".txt", "stdout", "stderr"};

	return ends_with_one_of(without_turn(name), ends, sizeof ends / sizeof *ends);
}

/* Weights are large, many, and no logs. */
static bool is_of_weights(struct slice name)
{
	static const char *const ends[] = {".pt", ".pth", ".bin", ".safetensors", ".distcp", ".npy",
		".npz", ".ckpt", ".pkl", ".model", ".png", ".py"};

	return ends_with_one_of(name, ends, sizeof ends / sizeof *ends);
}

/* Whether a file that is called so is missed where it cannot be read. */
static bool is_called_log(struct slice name)
{
	static const char *const packers[] = {".gz", ".zst", ".xz", ".bz2"};
	static const char *const ends[] = {
		".jsonl", ".csv", ".tsv", ".wandb", "trainer_state.json"};

	for (size_t i = 0; i < sizeof packers / sizeof *packers; i++)
		if (slice_ends(name, slice_of(packers[i])))
			name.n -= strlen(packers[i]);
	return is_output(name) || ends_with_one_of(name, ends, sizeof ends / sizeof *ends) ||
	       slice_find(name, SLICE("tfevents")) != SIZE_MAX;
}

const char *curve_base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Files ---------------------------------------------------------------------------------------- */

struct finding_files {
	struct curve_files *found;
	const struct curve_options *options;
	uint64_t searched;                     /* bytes of the folder at hand */
	char head[CURVE_HEAD + LINES_PADDING]; /* what was read of it ends with '\n' */
};

static int no_memory(struct error *e)
{
	return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for the loss logs");
}

/* Put a file on the list. Of what is left out in a folder, only the first ones are told. */
static int keep(struct finding_files *w, struct curve_found *f, struct error *e)
{
	struct curve_files *found = w->found;
	struct curve_operand *o = &found->operands.items[f->operand];

	o->logs += f->kind == CURVE_FOUND_LOG && !f->doubtful;
	o->others += f->kind == CURVE_FOUND_OTHER;
	o->left += f->kind == CURVE_FOUND_LEFT;
	if (f->kind == CURVE_FOUND_LEFT && !f->named && o->left > LEFT_KEPT)
		return RP_OK;
	struct curve_found *slot = array_push(&found->list, w->options->limits->files);
	if (!slot)
		return no_memory(e);
	f->listed = found->list.count;
	*slot = *f;
	slot->path = arena_strdup(&found->arena, slice_of(f->path));
	slot->what = arena_strdup(&found->arena, slice_of(f->what));
	return slot->path && slot->what ? RP_OK : no_memory(e);
}

static int leave(struct finding_files *w, struct curve_found *f, const char *why, struct error *e)
{
	f->kind = CURVE_FOUND_LEFT;
	f->what = why;
	return keep(w, f, e);
}

/* A file that no reader knows: why, as far as its first bytes tell. */
static int leave_unknown(struct finding_files *w, struct curve_found *f, size_t n, struct error *e)
{
	const char *packed = packed_as((struct slice){w->head, n});
	char why[100];

	f->unread = f->packed = packed != NULL;
	if (packed) {
		snprintf(why, sizeof why, "is %s; a log is read as plain text in UTF-8", packed);
		return leave(w, f, why, e);
	}
	return leave(w, f,
		n == 0 ? "is empty"
		: memchr(w->head, '\0', n)
			? "is no loss log that is known here, and not text"
			: "is no loss log: nothing in its beginning looks like one",
		e);
}

/* What follows the beginning of a file that could be a log. What the user named is read to its end;
 * of others *whole says whether all was looked at. */
static int search_on(struct finding_files *w, const struct curve_found *f,
	const struct curve_reader *reader, const struct source *source, bool *whole)
{
	uint64_t most = f->named ? UINT64_MAX : SEARCH_FILE, used = 0;

	if (!f->named && SEARCH_FOLDER - w->searched < most)
		most = SEARCH_FOLDER - w->searched;
	*whole = source->size <= most;
	int answer = most > 0 ? reader->search(source, most, f->named ? 1 : SURE, &used) : 0;
	w->searched += f->named ? 0 : used;
	return answer;
}

/* A file that could be a log by its beginning: in a folder it must be called as output is. */
static int take_doubtful(struct finding_files *w, struct curve_found *f,
	const struct curve_reader *reader, const struct source *source, struct error *e)
{
	bool output = is_output(slice_of(curve_base_name(f->path))), whole;

	if (!f->named && !output)
		return RP_OK;
	f->what = reader->name;
	f->reader = reader;
	if (!reader->search || w->options->pattern_count > 0) {
		/* Whether there is anything in it, reading it tells. */
		f->kind = f->named ? CURVE_FOUND_LOG : CURVE_FOUND_OUTPUT;
		return f->named || reader->search ? keep(w, f, e) : RP_OK;
	}
	int answer = search_on(w, f, reader, source, &whole);
	if (answer == 0 && !f->named)
		return whole ? RP_OK
			     : leave(w, f,
				       "no step and loss as far as it was looked at (64 MiB of a file, "
				       "2 GiB of a folder); name it to have it read",
				       e);
	f->sure = answer == SURE;
	f->doubtful = answer == 0;
	f->kind = f->sure || f->named ? CURVE_FOUND_LOG : CURVE_FOUND_OUTPUT;
	return keep(w, f, e);
}

/* Find out what a file is whose first n bytes are at hand. */
static int take_head(struct finding_files *w, struct curve_found *f, const struct source *source,
	size_t n, struct error *e)
{
	const char *name = curve_base_name(f->path);
	struct slice head = {w->head, n};

	const char *own = f->named ? NULL : own_output(head);
	if (own)
		return leave(w, f, own, e);
	f->what = w->options->other ? w->options->other(w->head, n) : NULL;
	if (f->what) {
		f->kind = CURVE_FOUND_OTHER;
		return keep(w, f, e);
	}
	bool sure;
	const struct curve_reader *reader = recognise(name, w->head, n, &sure);
	if (reader && reader->begun)
		f->begun = reader->begun(name, w->head, n);
	if (reader && !sure)
		return take_doubtful(w, f, reader, source, e);
	if (reader) {
		f->kind = CURVE_FOUND_LOG;
		f->what = reader->name;
		f->reader = reader;
		f->sure = true;
		return keep(w, f, e);
	}
	if (!f->named && (n == 0 || !is_called_log(slice_of(name))))
		return RP_OK;
	return leave_unknown(w, f, n, e);
}

/* Look at a file. What may not be read is left out; where the system failed, nothing is known. */
static int look_at(struct finding_files *w, struct curve_found *f, int dirfd, const char *path,
	struct error *e)
{
	struct error why = ERROR_INIT;
	struct source source;
	size_t n = 0;

	w->found->looked += f->named;
	if (f->in_memory)
		source_from_memory(&source, f->bytes.p, f->bytes.n, f->path);
	else if (source_open(&source, dirfd, path, &why) < 0)
		goto refused;
	if (source_read_some(&source, 0, w->head, CURVE_HEAD, &n, &why) < 0) {
		source_close(&source);
		goto refused;
	}
	memset(w->head + n, '\n', LINES_PADDING);
	f->device = source.device;
	f->inode = source.inode;
	int status = take_head(w, f, &source, n, e);
	source_close(&source);
	return status;
refused:
	if (error_of_system(&why)) {
		*e = why;
		return w->found->operands.count > 1 || !f->named ? fail_wrap(e, "%s", f->path)
								 : e->status;
	}
	/* What vanished meanwhile is not there. */
	if (!f->named && (why.os_error == ENOENT || !is_called_log(slice_of(f->path))))
		return RP_OK;
	f->unread = true;
	return leave(w, f, why.text, e);
}

/* Outputs of scripts are logs where no other is. */
static void settle_outputs(struct curve_files *found, size_t first, struct curve_operand *o)
{
	bool none = o->logs == 0;

	for (size_t i = first; i < found->list.count; i++) {
		struct curve_found *f = &found->list.items[i];
		if (f->kind != CURVE_FOUND_OUTPUT)
			continue;
		f->kind = none ? CURVE_FOUND_LOG : CURVE_FOUND_LEFT;
		o->logs += none;
		o->left += !none;
		if (!none)
			f->what =
				"its words for step and loss are no known trainer's, and there are "
				"logs of known ones; name it to have it read";
	}
}

static int look_at_folder(
	struct finding_files *w, const struct listing *l, uint32_t operand, struct error *e)
{
	struct curve_operand *o = &w->found->operands.items[operand];
	size_t first = w->found->list.count, n = strlen(o->path);
	const char *slash = n > 0 && o->path[n - 1] == '/' ? "" : "/";
	struct strbuf path;
	int status = RP_OK;

	o->folder = true;
	o->folders_unread = l->skipped;
	w->searched = 0;
	strbuf_init(&path, SIZE_MAX);
	for (size_t i = 0; i < l->files.count && status == RP_OK; i++) {
		const struct listed *file = &l->files.items[i];
		bool called = is_called_log(slice_of(file->name));
		if (!file->regular && !called)
			continue;
		w->found->looked += file->regular;
		if (file->regular && (file->size == 0 || is_of_weights(slice_of(file->name))))
			continue;
		strbuf_clear(&path);
		strbuf_printf(&path, "%s%s%s", o->path, slash, file->path);
		struct curve_found f = {
			.path = strbuf_text(&path), .operand = operand, .begun = NAN, .what = ""};
		if (path.failed)
			status = no_memory(e);
		else if (!file->regular)
			status = leave(w, &f, "is a link to nothing, a pipe or a device", e);
		else
			status = look_at(w, &f, l->dirfd, file->path, e);
	}
	strbuf_release(&path);
	settle_outputs(w->found, first, o);
	return status;
}

/* Whether an earlier path led to the same file or folder. */
static void identify(struct curve_files *found, uint32_t operand)
{
	struct curve_operand *o = &found->operands.items[operand];
	struct stat st;

	if (stat(o->path, &st) < 0)
		return;
	o->device = st.st_dev;
	o->inode = st.st_ino;
	for (uint32_t i = 0; i < operand && !o->again; i++)
		o->again = found->operands.items[i].device == o->device &&
			   found->operands.items[i].inode == o->inode;
}

static int look_at_operand(struct finding_files *w, uint32_t operand, bool alone, struct error *e)
{
	const struct limits *limits = w->options->limits;
	const char *path = w->found->operands.items[operand].path;
	struct listing l;
	int status;

	if (listing_open(&l, path, (unsigned)limits->dir_depth, limits, e) < 0)
		return alone ? e->status : fail_wrap(e, "%s", path);
	identify(w->found, operand);
	if (l.single) {
		struct curve_found f = {
			.path = path, .operand = operand, .named = true, .begun = NAN, .what = ""};
		status = look_at(w, &f, AT_FDCWD, path, e);
	} else {
		status = look_at_folder(w, &l, operand, e);
	}
	listing_close(&l);
	return status;
}

static struct finding_files *begin(
	struct curve_files *f, const struct curve_options *o, struct error *e)
{
	struct finding_files *w = calloc(1, sizeof *w);

	*f = (struct curve_files){0};
	if (!w) {
		no_memory(e);
		return NULL;
	}
	arena_init(&f->arena, o->limits->memory);
	w->found = f;
	w->options = o;
	return w;
}

static bool add_operand(struct curve_files *f, const char *path)
{
	struct curve_operand *o = array_push(&f->operands, UINT32_MAX - 1);

	if (o)
		*o = (struct curve_operand){.path = path};
	return o != NULL;
}

static int end(struct finding_files *w, int status)
{
	if (status < 0)
		curve_files_release(w->found);
	free(w);
	return status;
}

int curve_find(struct curve_files *f, const char *const *paths, size_t n,
	const struct curve_options *o, struct error *e)
{
	struct finding_files *w = begin(f, o, e);
	int status = w ? RP_OK : e->status;

	for (size_t i = 0; i < n && status == RP_OK; i++)
		status = add_operand(f, paths[i]) ? look_at_operand(w, (uint32_t)i, n == 1, e)
						  : no_memory(e);
	return w ? end(w, status) : status;
}

int curve_find_memory(struct curve_files *f, const char *name, struct slice text,
	const struct curve_options *o, struct error *e)
{
	struct curve_found file = {.path = name,
		.named = true,
		.begun = NAN,
		.what = "",
		.bytes = text,
		.in_memory = true};
	struct finding_files *w = begin(f, o, e);
	int status = w ? RP_OK : e->status;

	if (status == RP_OK)
		status = add_operand(f, name) ? look_at(w, &file, AT_FDCWD, name, e) : no_memory(e);
	return w ? end(w, status) : status;
}

void curve_files_release(struct curve_files *f)
{
	array_release(&f->list);
	array_release(&f->operands);
	arena_release(&f->arena);
	*f = (struct curve_files){0};
}
