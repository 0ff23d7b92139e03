/* SPDX-License-Identifier: MIT */
#include "cli/inside.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/text.h"

#define COMPLAINT_MAX 4096u
#define SUGGEST_FILES 16u  /* looked at for a suggestion */
#define SUGGEST_KEYS 4096u /* of one value */

static int name_files(struct inside *in, struct error *e)
{
	const struct listing *l = &in->listing;
	const char *root = l->root;
	size_t n = strlen(root);

	for (size_t i = 0; i < l->files.count; i++) {
		const struct listed *listed = &l->files.items[i];
		struct inside_file *f = array_push(&in->files, SIZE_MAX);
		if (!f)
			return fail(
				e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for a list of files");
		f->listed = listed;
		f->path = l->single ? root
				    : arena_printf(&in->arena, "%s%s%s", root,
					      root[n - 1] == '/' ? "" : "/", listed->path);
		f->shown = l->single ? root : listed->path;
		if (!f->path)
			return fail(
				e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for a list of files");
	}
	return RP_OK;
}

int inside_open(struct inside *in, const struct options *o, struct error *e)
{
	const struct limits *limits = &o->verify.limits;

	*in = (struct inside){.options = o, .terminal = isatty(STDOUT_FILENO)};
	arena_init(&in->arena, limits->memory < SIZE_MAX ? (size_t)limits->memory : SIZE_MAX);
	if (*o->operands[0] == '\0')
		return fail(
			e, RP_E_ARGUMENT, ERROR_NO_OFFSET, "the path of the checkpoint is empty");
	int status =
		listing_open(&in->listing, o->operands[0], (unsigned)limits->dir_depth, limits, e);
	return status == RP_OK ? name_files(in, e) : status;
}

void inside_close(struct inside *in)
{
	if (in->listing.root)
		listing_close(&in->listing);
	array_release(&in->files);
	arena_release(&in->arena);
}

/* The worst that was found in a file that could be decoded, whole or in part. */
static const struct finding *first_error(const struct findings *sink)
{
	for (size_t i = 0; i < sink->list.count; i++) {
		const struct finding *f = &sink->list.items[i];
		if (f->severity == SEVERITY_ERROR && finding_rows[f->code].code[0] == 'I')
			return f;
	}
	return NULL;
}

/*
 * Say it. What a damaged file holds may be less than was saved; what would run on loading is a
 * warning to the reader, and all is there.
 */
static void complain_error(
	struct inside *in, const struct inside_file *f, const struct finding *found)
{
	struct error e = ERROR_INIT;
	const char *message = *found->message ? found->message : finding_rows[found->code].summary;

	fail(&e, RP_E_FORMAT,
		found->place.offset == PLACE_NO_OFFSET ? ERROR_NO_OFFSET : found->place.offset,
		"%s", message);
	answer_complain(f->path, &e);
	in->unreadable += finding_rows[found->code].word != VERDICT_UNSAFE;
}

/* What files of checkpoints are called. */
static bool has_checkpoint_name(const char *name)
{
	static const struct slice endings[] = {{".pt", 3}, {".pth", 4}, {".bin", 4}, {".ckpt", 5},
		{".pkl", 4}, {".pickle", 7}, {".safetensors", 12}, {".json", 5}, {".tar", 4},
		{".distcp", 7}};

	for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
		if (slice_ends(slice_of(name), endings[i]))
			return true;
	return false;
}

/*
 * Whether a file that could not be decoded never was part of a checkpoint: of a format that is not
 * read, an empty file that says something by being there (_SUCCESS, .lock), a log or a template
 * that begins with a bracket as JSON does, a file that went since the folder was read.
 */
static bool is_foreign(
	const struct inside *in, const struct inside_file *f, const struct findings *sink)
{
	struct error ignored = ERROR_INIT;
	struct source source;

	if (f->error.status == RP_E_UNSUPPORTED)
		return sink->list.count == 0;
	if (in->listing.single || has_checkpoint_name(f->listed->name))
		return f->error.os_error == ENOENT && !in->listing.single && !f->listed->symlink;
	if (f->error.os_error == ENOENT)
		return true;
	if (f->error.status != RP_E_FORMAT ||
		source_open(&source, in->listing.dirfd, f->listed->path, &ignored) < 0)
		return false;
	const struct container *c = document_probe(&source, &ignored);
	source_close(&source);
	return !c || strcmp(c->name, "json") == 0;
}

/* What helps stands in the findings: "fetch the file: git lfs pull". */
static void add_remedy(struct error *e, const struct findings *sink)
{
	size_t used = strlen(e->text);

	for (size_t i = 0; i < sink->list.count; i++) {
		if (!sink->list.items[i].remedy)
			continue;
		snprintf(e->text + used, sizeof e->text - used, "; %s", sink->list.items[i].remedy);
		return;
	}
}

static bool visit_file(
	struct inside *in, struct inside_file *f, inside_visit_fn *visit, void *context)
{
	struct findings sink;

	f->error = ERROR_INIT;
	findings_init(&sink);
	int status = document_open(&f->document, in->listing.dirfd, f->listed->path, f->path,
		&in->options->verify.limits, &sink, &f->error);
	const struct finding *found = first_error(&sink);
	if (status == RP_OK) {
		f->state = INSIDE_READ;
		f->container = f->document.container;
		in->read++;
		if (found)
			complain_error(in, f, found);
	} else if (is_foreign(in, f, &sink)) {
		f->state = INSIDE_FOREIGN;
	} else {
		f->state = INSIDE_UNREADABLE;
		in->unreadable++;
		add_remedy(&f->error, &sink);
		if (!in->listing.single)
			answer_complain(f->path, &f->error);
	}
	bool go_on = visit(context, f);
	if (status == RP_OK) {
		const struct error *trouble = f->document.trouble;
		if (trouble->status < 0) {
			answer_complain(f->path, trouble);
			in->unreadable++;
		}
		document_close(&f->document);
	}
	findings_release(&sink);
	return go_on;
}

/* Files in folders that were not seen are files that were not read. */
static void complain_skipped(struct inside *in)
{
	struct error said = ERROR_INIT;
	size_t n = in->listing.skipped;

	if (n == 0)
		return;
	fail(&said, RP_E_LIMIT, ERROR_NO_OFFSET,
		"%zu folder%s in it cannot be read, or lie%s deeper than --limit dir-depth=N allows",
		n, n == 1 ? "" : "s", n == 1 ? "s" : "");
	answer_complain(in->listing.root, &said);
	in->unreadable += n;
}

int inside_each(struct inside *in, inside_visit_fn *visit, void *context, struct error *e)
{
	bool go_on = true;

	in->read = in->unreadable = 0;
	complain_skipped(in);
	for (size_t i = 0; go_on && i < in->files.count; i++)
		go_on = visit_file(in, &in->files.items[i], visit, context);
	if (in->read > 0 || !go_on)
		return RP_OK;
	if (in->listing.single) {
		*e = in->files.items[0].error;
		return e->status;
	}
	if (in->unreadable > 0)
		return fail(e, RP_E_NOT_FOUND, ERROR_NO_OFFSET, "none of its files can be read");
	return fail(
		e, RP_E_NOT_FOUND, ERROR_NO_OFFSET, "holds no file of a format that reprise reads");
}

bool inside_parse(struct inside *in, const char *text, struct path *path, int *status)
{
	struct error e = ERROR_INIT;
	struct strbuf b;

	if (path_parse(path, slice_of(text), &in->arena, &e) == RP_OK)
		return true;
	strbuf_init(&b, COMPLAINT_MAX);
	strbuf_add_text(&b, "'");
	text_add_escaped(&b, slice_of(text), COMPLAINT_MAX / 4);
	strbuf_printf(&b, "', column %llu: %s", (unsigned long long)e.offset + 1, e.text);
	*status = answer_usage(in->options, strbuf_text(&b));
	strbuf_release(&b);
	return false;
}

const char *inside_keep(struct inside *in, const struct strbuf *b)
{
	const char *kept = arena_strdup(&in->arena, strbuf_slice(b));

	in->failed = in->failed || b->failed || !kept;
	return kept ? kept : "";
}

void inside_write_inputs(const struct inside *in, struct json_writer *w)
{
	json_key(w, "inputs");
	json_open_array(w);
	for (size_t i = 0; i < in->files.count; i++) {
		const struct inside_file *f = &in->files.items[i];
		if (f->state == INSIDE_FOREIGN)
			continue;
		json_open_object(w);
		json_key(w, "path");
		json_text(w, f->path);
		json_key(w, "kind");
		json_text(w, f->container ? f->container->name : NULL);
		json_key(w, "error");
		json_text(w, f->state == INSIDE_READ ? NULL : f->error.text);
		json_close_object(w);
	}
	json_close_array(w);
}

void inside_write_tensor(struct json_writer *w, struct val v)
{
	const struct tensor *t = v.kind == VAL_TENSOR ? v.tensor : NULL;

	json_key(w, "dtype");
	json_text(w, t ? dtype_rows[t->dtype].name : NULL);
	json_key(w, "shape");
	if (!t) {
		json_null(w);
		return;
	}
	json_open_array(w);
	for (unsigned i = 0; i < t->ndim; i++)
		json_i64(w, t->shape[i]);
	json_close_array(w);
}

/* Suggestions ---------------------------------------------------------------------------------- */

struct near {
	struct strbuf *out;
	const char *word;
	bool found;
};

static void suggest(struct near *n, const struct path_step *steps, size_t count, const char *name)
{
	struct strbuf way;

	strbuf_init(&way, COMPLAINT_MAX);
	if (count > 0)
		path_add_steps(&way, steps, count);
	if (name)
		path_add_key(&way, val_text(slice_of(name)));
	strbuf_printf(n->out, "; did you mean %s?", strbuf_text(&way));
	strbuf_release(&way);
	n->found = true;
}

/* The same name in another place. */
static bool suggest_place(void *context, struct val v, const struct path_step *steps, size_t count)
{
	struct near *n = context;

	(void)v;
	suggest(n, steps, count, NULL);
	return false;
}

/* A name like it among the parts of a value that the path leads to. */
static bool suggest_key(void *context, struct val v, const struct path_step *steps, size_t count)
{
	struct near *n = context;
	struct arena arena;
	struct val key;
	size_t keys = 0;

	arena_init(&arena, SIZE_MAX);
	uint64_t parts = val_count(v) < SUGGEST_KEYS ? val_count(v) : SUGGEST_KEYS;
	const char **names = arena_array(&arena, (size_t)parts + 1, sizeof *names);
	for (uint64_t i = 0; names && i < parts; i++) {
		val_part(v, i, &key);
		if (key.kind == VAL_TEXT && (names[keys] = arena_strdup(&arena, val_slice(key))))
			keys++;
	}
	const char *nearest = keys > 0 ? text_nearest(n->word, names, keys) : NULL;
	/* Where the name is there, it is a later one that leads nowhere. */
	if (nearest && strcmp(nearest, n->word) != 0)
		suggest(n, steps, count, nearest);
	arena_release(&arena);
	return !n->found;
}

/* The last name anywhere; else a name like one of the path's, the last first, where what is before
 * it leads. */
static void suggest_in(
	const struct inside *in, const struct path *path, struct val root, struct near *n)
{
	const struct limits *limits = &in->options->verify.limits;
	const struct path_segment *last = &path->segments[path->count - 1];
	struct path tried = {.segments = {{.kind = PATH_DEEP}, *last}, .count = 2};
	struct arena arena;

	if (last->kind == PATH_NAME)
		path_match(&tried, root, limits, suggest_place, n);
	arena_init(&arena, SIZE_MAX);
	for (size_t k = path->count; k-- > 0 && !n->found;) {
		const struct path_segment *s = &path->segments[k];
		if (s->kind != PATH_NAME || !(n->word = arena_strdup(&arena, s->name)))
			continue;
		tried = *path;
		tried.count = k;
		/* ** at the end would find nothing that has parts. */
		if (k > 0 && path->segments[k - 1].kind == PATH_DEEP) {
			tried.count = k - 1;
			path_match(&tried, root, limits, suggest_key, n);
			tried.count = k + 1;
			tried.segments[k] = (struct path_segment){.kind = PATH_EVERY};
		}
		if (!n->found)
			path_match(&tried, root, limits, suggest_key, n);
	}
	arena_release(&arena);
}

static void complain_no_match(struct inside *in, const struct path *path, const char *text)
{
	const struct limits *limits = &in->options->verify.limits;
	struct error said = ERROR_INIT;
	struct strbuf b;
	struct near n = {.out = &b};
	size_t looked = 0;

	strbuf_init(&b, COMPLAINT_MAX);
	for (size_t i = 0;
		path->count > 0 && i < in->files.count && looked < SUGGEST_FILES && !n.found; i++) {
		struct error ignored = ERROR_INIT;
		struct findings sink;
		struct document d;
		if (in->files.items[i].state != INSIDE_READ)
			continue;
		looked++;
		findings_init(&sink);
		if (document_open(&d, in->listing.dirfd, in->files.items[i].listed->path, "",
			    limits, &sink, &ignored) == RP_OK) {
			suggest_in(in, path, d.root, &n);
			document_close(&d);
		}
		findings_release(&sink);
	}
	fail(&said, RP_E_NOT_FOUND, ERROR_NO_OFFSET, "nothing matches '%.100s'%.130s", text,
		strbuf_text(&b));
	answer_complain(in->listing.root, &said);
	strbuf_release(&b);
}

static void complain_truncated(void)
{
	struct error said = ERROR_INIT;

	fail(&said, RP_E_LIMIT, ERROR_NO_OFFSET,
		"the search ended early; there may be more (--limit nodes=N, --limit depth=N)");
	answer_complain(NULL, &said);
}

int inside_status(struct inside *in, const struct path *missed, const char *text, bool truncated)
{
	if (missed && !truncated)
		complain_no_match(in, missed, text);
	if (truncated)
		complain_truncated();
	return in->unreadable > 0 || truncated ? EXIT_STATUS_UNDECIDED
	       : missed                        ? EXIT_STATUS_FINDINGS
					       : EXIT_STATUS_FINE;
}
