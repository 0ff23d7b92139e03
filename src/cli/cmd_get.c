/* SPDX-License-Identifier: MIT */
/*
 * The values whose path matches, in one file or in every file below a folder, and whether they
 * agree. On a terminal the columns are aligned; elsewhere TABs part them, so that cut and awk can
 * take them.
 */
#include <stdlib.h>

#include "base/text.h"
#include "cli/inside.h"
#include "report/page.h"

#define CELL_MAX 48u   /* columns that a value or file may take before the others move */
#define GROUPS_MAX 64u /* different values that are counted apart */
#define GROUPS_SHOWN 10u
#define JSON_DEPTH 12u      /* of values in each other; what is deeper is a text */
#define JSON_VALUES 100000u /* of one match */
#define JSON_MAX ((size_t)16 << 20)
#define LINE_MAX ((size_t)1 << 20)

/* Whole values, since programs read them; one that is longer ends with an ellipsis. */
static const struct print_style print_style_line = {
	.bytes = 65536, .text_bytes = 65536, .depth = 32};

struct match {
	const char *value, *path;
	const char *json; /* its JSON object, or NULL */
	size_t file;      /* index */
};

/* Matches with the same value. */
struct group {
	const char *value;
	size_t matches, files;
	size_t last_file, first_file; /* indices */
	size_t order;                 /* of first occurrence */
};

struct get {
	struct inside *in;
	struct path path;
	struct inside_file *file; /* at hand */
	size_t files;             /* with a match */
	size_t most, least;       /* matches in one of these */
	const char *name;         /* the last step of all paths, while it is the same */
	bool names_differ;
	ARRAY(struct match) matches;
	ARRAY(struct group) groups;
	bool many;   /* more groups than are counted */
	bool hidden; /* some value is shown by its shape or its beginning: equal looks prove nothing
		      */
	bool truncated, failed;
};

/* Values --------------------------------------------------------------------------------------- */

static void json_value(
	struct json_writer *w, const struct get *g, struct val v, unsigned depth, size_t *budget);

static void json_printed(struct json_writer *w, const struct get *g, struct val v)
{
	struct print_style style = print_style_line;
	struct strbuf b;

	style.tensor = print_tensor;
	style.context = &g->file->document;
	strbuf_init(&b, LINE_MAX);
	print_line(&b, v, &style);
	json_slice(w, strbuf_slice(&b));
	strbuf_release(&b);
}

static void json_container(
	struct json_writer *w, const struct get *g, struct val v, unsigned depth, size_t *budget)
{
	bool dict = val_is_dict(v);
	struct strbuf name;

	strbuf_init(&name, LINE_MAX);
	if (dict)
		json_open_object(w);
	else
		json_open_array(w);
	for (uint64_t i = 0; i < val_count(v) && *budget > 0; i++) {
		struct val key, part = val_part(v, i, &key);
		if (dict) {
			strbuf_clear(&name);
			if (key.kind == VAL_TEXT)
				strbuf_add_slice(&name, val_slice(key));
			else
				print_line(&name, key, &print_style_short);
			json_key(w, strbuf_text(&name));
		}
		json_value(w, g, part, depth + 1, budget);
	}
	if (dict)
		json_close_object(w);
	else
		json_close_array(w);
	strbuf_release(&name);
}

/* A small tensor is its elements in C order, one without dimensions is a number; a large one is
 * null. */
static void json_tensor(struct json_writer *w, const struct get *g, const struct tensor *t)
{
	double v[PRINT_TENSOR_ELEMENTS];
	int64_t whole[PRINT_TENSOR_ELEMENTS];
	enum dtype_kind kind = dtype_rows[t->dtype].kind;
	bool integer = kind == DTYPE_KIND_INT || kind == DTYPE_KIND_UINT;

	bool readable = t->numel > 0 && t->numel <= PRINT_TENSOR_ELEMENTS;
	for (uint64_t i = 0; readable && i < t->numel; i++) {
		integer = integer &&
			  tensor_read_i64(&g->file->document, t, i, &whole[i], NULL) == RP_OK;
		readable = tensor_read_double(&g->file->document, t, i, &v[i], NULL) == RP_OK;
	}
	if (!readable) {
		json_null(w);
		return;
	}
	if (t->ndim > 0)
		json_open_array(w);
	for (uint64_t i = 0; i < t->numel; i++) {
		if (kind == DTYPE_KIND_BOOL)
			json_bool(w, v[i] != 0);
		else if (integer)
			json_i64(w, whole[i]);
		else
			json_double(w, v[i]);
	}
	if (t->ndim > 0)
		json_close_array(w);
}

static void json_value(
	struct json_writer *w, const struct get *g, struct val v, unsigned depth, size_t *budget)
{
	*budget -= *budget > 0;
	switch ((enum val_kind)v.kind) {
	case VAL_ABSENT:
	case VAL_NONE:
		json_null(w);
		return;
	case VAL_BOOL:
		json_bool(w, v.i != 0);
		return;
	case VAL_INT:
		json_i64(w, v.i);
		return;
	case VAL_FLOAT:
		json_double(w, v.f);
		return;
	case VAL_TEXT:
		json_slice(w, val_slice(v));
		return;
	case VAL_TENSOR:
		json_tensor(w, g, v.tensor);
		return;
	default:
		break;
	}
	if ((val_is_container(v) || val_is_dict(v)) && depth < JSON_DEPTH)
		json_container(w, g, v, depth, budget);
	else
		json_printed(w, g, v);
}

static const char *json_match(struct get *g, struct val v, const char *path)
{
	struct json_writer w;
	struct strbuf b;
	size_t budget = JSON_VALUES;

	strbuf_init(&b, JSON_MAX);
	json_writer_init(&w, &b, false);
	json_open_object(&w);
	json_key(&w, "file");
	json_text(&w, g->file->path);
	json_key(&w, "path");
	json_text(&w, path);
	json_key(&w, "kind");
	json_text(&w, val_kind_name((enum val_kind)v.kind));
	inside_write_tensor(&w, v);
	json_key(&w, "value");
	json_value(&w, g, v, 0, &budget);
	json_close_object(&w);
	g->truncated = g->truncated || budget == 0;
	const char *kept = inside_keep(g->in, &b);
	strbuf_release(&b);
	return kept;
}

/* A print_tensor_fn that remembers what it did not show. */
static bool show_tensor(void *context, const struct tensor *t, struct strbuf *b)
{
	struct get *g = context;
	bool shown = print_tensor(&g->file->document, t, b);

	g->hidden = g->hidden || !shown;
	return shown;
}

/* With -v over several lines, else on one. */
static const char *text_match(struct get *g, struct val v)
{
	const struct options *o = g->in->options;
	struct print_style style =
		g->in->terminal && !o->verbose ? print_style_short : print_style_line;
	struct strbuf b;
	bool whole = true;

	style.tensor = show_tensor;
	style.context = g;
	strbuf_init(&b, LINE_MAX);
	/* A text alone is itself, without quotes: it is for the shell. */
	if (o->quiet && v.kind == VAL_TEXT)
		text_add_escaped(&b, val_slice(v), style.text_bytes);
	else if (o->verbose)
		whole = print_page(&b, v, &style);
	else
		whole = print_line(&b, v, &style);
	g->hidden = g->hidden || !whole;
	const char *kept = inside_keep(g->in, &b);
	strbuf_release(&b);
	return kept;
}

/* Matches -------------------------------------------------------------------------------------- */

static void count_match(struct get *g, const struct match *m)
{
	for (size_t i = 0; i < g->groups.count; i++) {
		struct group *group = &g->groups.items[i];
		if (strcmp(group->value, m->value) != 0)
			continue;
		group->matches++;
		group->files += group->last_file != m->file;
		group->last_file = m->file;
		return;
	}
	struct group *group = array_push(&g->groups, GROUPS_MAX);
	if (group)
		*group = (struct group){.value = m->value,
			.matches = 1,
			.files = 1,
			.last_file = m->file,
			.first_file = m->file,
			.order = g->groups.count};
	g->many = g->many || !group;
	g->failed = g->failed || (!group && g->groups.count < GROUPS_MAX);
}

static bool add_match(void *context, struct val v, const struct path_step *steps, size_t count)
{
	struct get *g = context;
	struct match *m = array_push(&g->matches, SIZE_MAX);
	struct strbuf b;

	if (!m) {
		g->failed = true;
		return false;
	}
	strbuf_init(&b, LINE_MAX);
	path_add_steps(&b, steps, count);
	m->path = inside_keep(g->in, &b);
	strbuf_clear(&b);
	if (count > 0)
		path_add_step(&b, steps[count - 1]);
	g->names_differ = g->names_differ || (g->name && strcmp(g->name, strbuf_text(&b)) != 0);
	if (!g->name)
		g->name = inside_keep(g->in, &b);
	strbuf_release(&b);
	m->file = (size_t)(g->file - g->in->files.items);
	m->value = text_match(g, v);
	m->json = g->in->options->json ? json_match(g, v, m->path) : NULL;
	count_match(g, m);
	return !g->in->failed;
}

static bool visit_file(void *context, struct inside_file *f)
{
	struct get *g = context;
	size_t before = g->matches.count;

	if (f->state != INSIDE_READ)
		return true;
	g->file = f;
	if (!path_match(&g->path, f->document.root, &g->in->options->verify.limits, add_match, g))
		g->truncated = true;
	size_t found = g->matches.count - before;
	if (found > 0) {
		g->least = g->files == 0 || found < g->least ? found : g->least;
		g->most = found > g->most ? found : g->most;
		g->files++;
	}
	return !g->failed && !g->in->failed;
}

/* Output --------------------------------------------------------------------------------------- */

static unsigned widest(unsigned width, const char *text)
{
	unsigned n = page_columns(text);
	return n <= CELL_MAX && n > width ? n : width;
}

static void add_aligned(const struct get *g, struct strbuf *out)
{
	unsigned values = 0, files = 0;

	for (size_t i = 0; i < g->matches.count; i++) {
		values = widest(values, g->matches.items[i].value);
		files = widest(files, g->in->files.items[g->matches.items[i].file].shown);
	}
	for (size_t i = 0; i < g->matches.count; i++) {
		const struct match *m = &g->matches.items[i];
		struct page line = {.out = out};
		page_put(&line, STYLE_PLAIN, m->value);
		page_pad(&line, values + 2);
		page_put(&line, STYLE_PLAIN, g->in->files.items[m->file].shown);
		page_pad(&line, values + files + 4);
		page_put(&line, STYLE_PLAIN, m->path);
		page_line(&line);
	}
}

/* Values are escaped already; file names are not. */
static void add_line(const struct get *g, const struct match *m, struct strbuf *out)
{
	const struct options *o = g->in->options;
	const char *file = g->in->files.items[m->file].shown;

	if (o->quiet) {
		strbuf_add_text(out, m->value);
	} else if (o->verbose) {
		text_add_escaped(out, slice_of(file), SIZE_MAX);
		strbuf_printf(out, "\t%s\n%s", m->path, m->value);
	} else {
		strbuf_printf(out, "%s\t", m->value);
		text_add_escaped(out, slice_of(file), SIZE_MAX);
		strbuf_printf(out, "\t%s", m->path);
	}
	strbuf_add_char(out, '\n');
}

static void add_counted(struct strbuf *out, size_t n, const char *one, const char *many)
{
	text_add_count(out, n);
	strbuf_printf(out, " %s", n == 1 ? one : many);
}

/* A value as the summary shows it, cut. */
static void add_short(struct strbuf *out, const char *value)
{
	text_add_escaped(out, slice_of(value), CELL_MAX);
}

/* The most frequent first, else in the order of the files. */
static int compare_groups(const void *pa, const void *pb)
{
	const struct group *a = pa, *b = pb;

	if (a->matches != b->matches)
		return a->matches > b->matches ? -1 : 1;
	if (a->first_file != b->first_file)
		return a->first_file < b->first_file ? -1 : 1;
	return (a->order > b->order) - (a->order < b->order);
}

/* " in 512 of 512 files" */
static void add_files(const struct get *g, struct strbuf *out)
{
	size_t read = g->in->read;

	strbuf_add_text(out, " in ");
	text_add_count(out, g->files);
	if (read > 1) {
		strbuf_add_text(out, " of ");
		text_add_count(out, read);
	}
	strbuf_add_text(out, read == 1 ? " file" : " files");
}

/* Nobody looked at what is not shown. */
static void add_reserve(const struct get *g, struct strbuf *out)
{
	if (g->hidden)
		strbuf_add_text(out, "; compared as shown, large tensors by dtype and shape");
	strbuf_add_char(out, '\n');
}

static void add_group(
	const struct get *g, const struct group *group, const char *indent, struct strbuf *out)
{
	strbuf_add_text(out, indent);
	add_short(out, group->value);
	strbuf_add_text(out, "  ");
	add_counted(out, group->matches, "time", "times");
	strbuf_add_text(out, " in ");
	if (group->files == 1 && !g->in->listing.single)
		text_add_escaped(
			out, slice_of(g->in->files.items[group->first_file].shown), SIZE_MAX);
	else
		add_counted(out, group->files, "file", "files");
	strbuf_add_char(out, '\n');
}

/*
 * "1501 in 512 of 512 files (2 values each)". Where values differ, how often each occurs, if they
 * are few enough to say something: not one for each match.
 */
static void add_values(struct get *g, struct strbuf *out)
{
	size_t n = g->matches.count, groups = g->groups.count;

	if (groups == 1) {
		add_short(out, g->groups.items[0].value);
		add_files(g, out);
		if (g->most == g->least && g->most > 1)
			strbuf_printf(out, g->files > 1 ? " (%zu values each)" : " (%zu values)",
				g->most);
		else if (g->most > 1)
			strbuf_printf(out, " (%zu values)", n);
		add_reserve(g, out);
		return;
	}
	strbuf_printf(out, g->many ? "more than %zu" : "%zu", groups);
	strbuf_add_text(out, " different values in ");
	add_counted(out, n, "match", "matches");
	strbuf_add_char(out, ',');
	add_files(g, out);
	add_reserve(g, out);
	if (g->many || groups > GROUPS_SHOWN || n < 3 || groups == n)
		return;
	qsort(g->groups.items, groups, sizeof *g->groups.items, compare_groups);
	for (size_t i = 0; i < groups; i++)
		add_group(g, &g->groups.items[i], "  ", out);
}

/* By path, then value, then as they came, so that the matches of one file stand together. */
static int compare_matches(const void *pa, const void *pb)
{
	const struct match *a = pa, *b = pb;
	int order = text_natural_compare(slice_of(a->path), slice_of(b->path));

	if (order == 0)
		order = text_natural_compare(slice_of(a->value), slice_of(b->value));
	return order ? order : (a->file > b->file) - (a->file < b->file);
}

/* The matches at the start of a sorted run that have the same path. */
static size_t same_path(const struct match *run, size_t count)
{
	size_t n = 1;

	while (n < count && strcmp(run[n].path, run->path) == 0)
		n++;
	return n;
}

/* The values of one path, the most frequent first. */
static void add_path(struct get *g, const struct match *run, size_t count, struct strbuf *out)
{
	g->groups.count = 0;
	g->many = false;
	for (size_t i = 0; i < count; i++)
		count_match(g, &run[i]);
	qsort(g->groups.items, g->groups.count, sizeof *g->groups.items, compare_groups);
	strbuf_printf(out, "  %s\n", run->path);
	for (size_t i = 0; i < g->groups.count && i < GROUPS_SHOWN; i++)
		add_group(g, &g->groups.items[i], "    ", out);
	if (g->many || g->groups.count > GROUPS_SHOWN)
		strbuf_add_text(out, "    and others\n");
}

/*
 * Values of different names say nothing of each other: each path is held against the same one of
 * the other files. Sorts the matches, which were shown before.
 */
static void add_paths(struct get *g, struct strbuf *out)
{
	struct match *m = g->matches.items;
	size_t n = g->matches.count, paths = 0, differing = 0, shown = 0;

	qsort(m, n, sizeof *m, compare_matches);
	for (size_t i = 0, run; i < n; i += run) {
		run = same_path(m + i, n - i);
		paths++;
		differing += strcmp(m[i].value, m[i + run - 1].value) != 0;
	}
	add_counted(out, n, "value", "values");
	strbuf_add_text(out, " at ");
	add_counted(out, paths, "path", "paths");
	add_files(g, out);
	if (differing > 0) {
		strbuf_add_text(out, "; ");
		add_counted(out, differing, "path differs", "paths differ");
		strbuf_add_text(out, " between files");
	} else {
		strbuf_add_text(out, "; none differs between files");
	}
	add_reserve(g, out);
	for (size_t i = 0, run; i < n && shown < GROUPS_SHOWN; i += run) {
		run = same_path(m + i, n - i);
		if (strcmp(m[i].value, m[i + run - 1].value) == 0)
			continue;
		add_path(g, m + i, run, out);
		shown++;
	}
	if (differing > shown)
		strbuf_printf(out, "  and %zu other paths\n", differing - shown);
}

static void add_text(struct get *g, struct strbuf *out)
{
	const struct options *o = g->in->options;

	if (g->in->terminal && !o->quiet && !o->verbose)
		add_aligned(g, out);
	else
		for (size_t i = 0; i < g->matches.count; i++)
			add_line(g, &g->matches.items[i], out);
	if (o->quiet || g->matches.count < 2)
		return;
	if (!g->names_differ) {
		add_values(g, out);
	} else if (g->files > 1) {
		add_paths(g, out);
	} else {
		add_counted(out, g->matches.count, "value", "values");
		add_files(g, out);
		strbuf_add_char(out, '\n');
	}
}

static void add_json(struct get *g, struct strbuf *out, int status)
{
	struct json_writer w;

	answer_open_json(&w, out, "get");
	json_key(&w, "matches");
	json_open_array(&w);
	for (size_t i = 0; i < g->matches.count; i++)
		json_raw(&w, g->matches.items[i].json);
	json_close_array(&w);
	json_key(&w, "truncated");
	json_bool(&w, g->truncated);
	inside_write_inputs(g->in, &w);
	json_key(&w, "exit");
	json_i64(&w, status);
	json_close_object(&w);
	strbuf_add_char(out, '\n');
}

static int answer(struct get *g)
{
	const struct options *o = g->in->options;
	struct strbuf out;
	int status = inside_status(
		g->in, g->matches.count > 0 ? NULL : &g->path, o->operands[1], g->truncated);

	answer_init(&out, o);
	out.failed = g->failed || g->in->failed;
	if (o->json)
		add_json(g, &out, status);
	else
		add_text(g, &out);
	return answer_write(&out, status);
}

int cmd_get(const struct options *o)
{
	struct inside in;
	struct get g = {.in = &in};
	struct error e = ERROR_INIT;
	int status = EXIT_STATUS_FINE;

	if (inside_open(&in, o, &e) < 0)
		status = answer_error(o, o->operands[0], &e);
	else if (inside_parse(&in, o->operands[1], &g.path, &status))
		status = inside_each(&in, visit_file, &g, &e) < 0
				 ? answer_error(o, o->operands[0], &e)
				 : answer(&g);
	array_release(&g.matches);
	array_release(&g.groups);
	inside_close(&in);
	return status;
}
