/* SPDX-License-Identifier: MIT */
/*
 * The parts of what is inside a file, or the files of a folder. Where PATH matches one value its
 * parts are listed, where it matches several those are.
 */
#include <stdlib.h>

#include "base/text.h"
#include "cli/inside.h"
#include "report/page.h"

#define CELL_MAX 60u /* columns that a path or kind may take before the others move */
#define VALUE_MAX 4096u
#define ROW_MAX 16384u

enum column {
	COLUMN_FILE,
	COLUMN_PATH,
	COLUMN_KIND,
	COLUMN_BYTES,
	COLUMN_VALUE,
	COLUMN_COUNT,
};

struct row {
	const char *cells[COLUMN_COUNT]; /* NULL: empty */
	const char *json;                /* members of its JSON object */
};

struct ls {
	struct inside *in;
	struct path path;
	bool has_path;
	ARRAY(struct row) rows;
	ARRAY(uint32_t) seen; /* of each storage: the part in whose sum it is */
	uint32_t part;
	bool failed, truncated;
	/* Of the file at hand. */
	struct inside_file *file;
	uint64_t matches, bytes;
	size_t first_row; /* of this file */
};

/* Bytes ---------------------------------------------------------------------------------------- */

static bool add_tensor(void *context, struct val v, const struct path_step *steps, size_t count)
{
	struct ls *ls = context;

	(void)steps;
	(void)count;
	if (v.kind != VAL_TENSOR || !v.tensor->storage)
		return true;
	const struct storage *s = v.tensor->storage;
	if (s->index >= ls->seen.count || ls->seen.items[s->index] == ls->part)
		return true;
	ls->seen.items[s->index] = ls->part;
	if (__builtin_add_overflow(ls->bytes, s->length, &ls->bytes))
		ls->bytes = UINT64_MAX;
	return true;
}

/* Bytes of a tensor, or of all storages below a value, shared ones once. */
static bool bytes_of(struct ls *ls, struct val v, uint64_t *bytes)
{
	static const struct path all = {.segments = {{.kind = PATH_DEEP}}, .count = 1};

	ls->bytes = 0;
	ls->part++;
	if (v.kind == VAL_TENSOR) {
		if (__builtin_mul_overflow(
			    v.tensor->numel, dtype_size((enum dtype)v.tensor->dtype), bytes))
			*bytes = UINT64_MAX;
		return true;
	}
	if (val_count(v) == 0)
		return false;
	if (!path_match(&all, v, &ls->in->options->verify.limits, add_tensor, ls))
		ls->truncated = true;
	*bytes = ls->bytes;
	return ls->bytes > 0;
}

static bool prepare_seen(struct ls *ls)
{
	size_t n = ls->file->document.storages.count;

	if (!array_reserve(&ls->seen, n ? n : 1, SIZE_MAX))
		return false;
	memset(ls->seen.items, 0, n * sizeof *ls->seen.items);
	ls->seen.count = n;
	ls->part = 0;
	return true;
}

/* Rows ----------------------------------------------------------------------------------------- */

/* The value of a scalar or small tensor; of anything else what its kind does not say yet. */
static bool print_value(struct ls *ls, struct val v, struct strbuf *b)
{
	struct print_style style = print_style_short;

	style.tensor = print_tensor;
	style.context = &ls->file->document;
	if (v.kind == VAL_TENSOR)
		return print_tensor(style.context, v.tensor, b) && b->n <= CELL_MAX;
	if (val_count(v) > 0 || v.kind == VAL_ABSENT)
		return false;
	print_line(b, v, &style);
	return true;
}

static const char *json_of_part(struct ls *ls, struct val v, const char *path, const char *value,
	bool has_bytes, uint64_t bytes)
{
	struct json_writer w;
	struct strbuf b;

	strbuf_init(&b, ROW_MAX);
	json_writer_init(&w, &b, false);
	json_open_object(&w);
	json_key(&w, "file");
	json_text(&w, ls->file->path);
	json_key(&w, "path");
	json_text(&w, path);
	json_key(&w, "kind");
	json_text(&w, val_kind_name((enum val_kind)v.kind));
	inside_write_tensor(&w, v);
	json_key(&w, "count");
	json_u64(&w, val_count(v));
	json_key(&w, "bytes");
	if (has_bytes)
		json_u64(&w, bytes);
	else
		json_null(&w);
	json_key(&w, "value");
	json_text(&w, value);
	json_close_object(&w);
	const char *kept = inside_keep(ls->in, &b);
	strbuf_release(&b);
	return kept;
}

static void add_row(struct ls *ls, struct val v, const char *path)
{
	struct row *r = array_push(&ls->rows, SIZE_MAX);
	struct strbuf b;
	uint64_t bytes;

	if (!r) {
		ls->failed = true;
		return;
	}
	*r = (struct row){.cells = {[COLUMN_PATH] = path}};
	if (!ls->in->listing.single)
		r->cells[COLUMN_FILE] = ls->file->shown;
	strbuf_init(&b, VALUE_MAX);
	print_kind(&b, v);
	r->cells[COLUMN_KIND] = inside_keep(ls->in, &b);
	strbuf_clear(&b);
	bool has_bytes = bytes_of(ls, v, &bytes);
	if (has_bytes) {
		text_add_bytes(&b, bytes);
		r->cells[COLUMN_BYTES] = inside_keep(ls->in, &b);
		strbuf_clear(&b);
	}
	if (print_value(ls, v, &b))
		r->cells[COLUMN_VALUE] = inside_keep(ls->in, &b);
	if (ls->in->options->json)
		r->json = json_of_part(ls, v, path, r->cells[COLUMN_VALUE], has_bytes, bytes);
	strbuf_release(&b);
}

static const char *keep_path(
	struct ls *ls, const struct path_step *steps, size_t count, const struct path_step *last)
{
	struct strbuf b;

	strbuf_init(&b, ROW_MAX);
	if (count > 0 || !last)
		path_add_steps(&b, steps, count);
	if (last)
		path_add_step(&b, *last);
	const char *kept = inside_keep(ls->in, &b);
	strbuf_release(&b);
	return kept;
}

/* The first match is listed by its parts; a second one makes rows of the matches themselves. */
static bool add_parts(void *context, struct val v, const struct path_step *steps, size_t count)
{
	struct ls *ls = context;

	if (++ls->matches > 1)
		return false;
	for (uint64_t i = 0; i < val_count(v) && !ls->failed; i++) {
		struct path_step step = {.index = i};
		struct val part = val_part(v, i, &step.key);
		add_row(ls, part, keep_path(ls, steps, count, &step));
	}
	if (val_count(v) == 0)
		add_row(ls, v, keep_path(ls, steps, count, NULL));
	return !ls->failed;
}

static bool add_match(void *context, struct val v, const struct path_step *steps, size_t count)
{
	struct ls *ls = context;

	add_row(ls, v, keep_path(ls, steps, count, NULL));
	return !ls->failed;
}

static bool visit_parts(void *context, struct inside_file *f)
{
	struct ls *ls = context;
	const struct limits *limits = &ls->in->options->verify.limits;

	if (f->state != INSIDE_READ)
		return true;
	ls->file = f;
	ls->first_row = ls->rows.count;
	uint64_t before = ls->matches;
	ls->matches = 0;
	if (!prepare_seen(ls)) {
		ls->failed = true;
		return false;
	}
	bool whole = path_match(&ls->path, f->document.root, limits, add_parts, ls);
	if (ls->matches > 1) {
		ls->rows.count = ls->first_row;
		whole = path_match(&ls->path, f->document.root, limits, add_match, ls);
	}
	ls->truncated = ls->truncated || !whole;
	ls->matches += before;
	return !ls->failed;
}

/* What a whole file holds: "dict of 3: model, optimizer, step". */
static void print_content(struct strbuf *b, const struct inside_file *f)
{
	struct val root = f->document.root;
	struct print_style style = print_style_short;

	print_kind(b, root);
	for (uint64_t i = 0; i < val_count(root); i++) {
		struct val key;
		strbuf_add_text(b, i ? ", " : ": ");
		if (b->n > CELL_MAX) {
			strbuf_add_text(b, "…");
			return;
		}
		val_part(root, i, &key);
		if (key.kind == VAL_TEXT)
			text_add_escaped(b, val_slice(key), CELL_MAX);
		else
			print_line(b, key, &style);
	}
}

static const char *json_of_file(struct ls *ls, const struct inside_file *f, const char *content)
{
	struct json_writer w;
	struct strbuf b;

	strbuf_init(&b, ROW_MAX);
	json_writer_init(&w, &b, false);
	json_open_object(&w);
	json_key(&w, "path");
	json_text(&w, f->path);
	json_key(&w, "format");
	json_text(&w, f->container ? f->container->name : NULL);
	json_key(&w, "bytes");
	json_u64(&w, f->listed->size);
	json_key(&w, "content");
	json_text(&w, f->state == INSIDE_READ ? content : NULL);
	json_key(&w, "error");
	json_text(&w, f->state == INSIDE_UNREADABLE ? f->error.text : NULL);
	json_close_object(&w);
	const char *kept = inside_keep(ls->in, &b);
	strbuf_release(&b);
	return kept;
}

static bool visit_file(void *context, struct inside_file *f)
{
	struct ls *ls = context;
	struct row *r = array_push(&ls->rows, SIZE_MAX);
	struct strbuf b;

	if (!r) {
		ls->failed = true;
		return false;
	}
	strbuf_init(&b, VALUE_MAX);
	text_add_bytes(&b, f->listed->size);
	*r = (struct row){
		.cells = {
			[COLUMN_FILE] = f->listed->path, [COLUMN_BYTES] = inside_keep(ls->in, &b)}};
	r->cells[COLUMN_KIND] = f->container ? f->container->name : "-";
	strbuf_clear(&b);
	if (f->state == INSIDE_READ)
		print_content(&b, f);
	else if (f->state == INSIDE_UNREADABLE)
		strbuf_printf(&b, "unreadable: %s", f->error.text);
	r->cells[COLUMN_VALUE] = b.n > 0 ? inside_keep(ls->in, &b) : NULL;
	if (ls->in->options->json)
		r->json = json_of_file(ls, f, r->cells[COLUMN_VALUE]);
	strbuf_release(&b);
	return true;
}

/* Output --------------------------------------------------------------------------------------- */

static void add_text(const struct ls *ls, struct strbuf *out)
{
	unsigned widths[COLUMN_COUNT] = {0};

	for (size_t i = 0; i < ls->rows.count; i++) {
		for (int c = 0; c < COLUMN_COUNT; c++) {
			const char *text = ls->rows.items[i].cells[c];
			unsigned n = text ? page_columns(text) : 0;
			if (n <= CELL_MAX && n > widths[c])
				widths[c] = n;
		}
	}
	for (size_t i = 0; i < ls->rows.count; i++) {
		struct page line = {.out = out};
		unsigned start = 0;
		for (int c = 0; c < COLUMN_COUNT; c++) {
			const char *text = ls->rows.items[i].cells[c];
			if (widths[c] == 0 && !text)
				continue;
			/* Bytes stand to the right. */
			unsigned left =
				text && c == COLUMN_BYTES ? widths[c] - page_columns(text) : 0;
			if (text) {
				if (start + left > 0)
					page_pad(&line, start + left);
				page_put(&line, STYLE_PLAIN, text);
			}
			start += widths[c] + 2;
		}
		page_line(&line);
	}
}

static void add_json(const struct ls *ls, struct strbuf *out, int status)
{
	struct json_writer w;

	answer_open_json(&w, out, "ls");
	json_key(&w, ls->has_path || ls->in->listing.single ? "parts" : "files");
	json_open_array(&w);
	for (size_t i = 0; i < ls->rows.count; i++)
		json_raw(&w, ls->rows.items[i].json);
	json_close_array(&w);
	json_key(&w, "truncated");
	json_bool(&w, ls->truncated);
	inside_write_inputs(ls->in, &w);
	json_key(&w, "exit");
	json_i64(&w, status);
	json_close_object(&w);
	strbuf_add_char(out, '\n');
}

static int answer(struct ls *ls)
{
	const struct options *o = ls->in->options;
	struct strbuf out;
	bool missed = ls->has_path && ls->matches == 0;
	int status = inside_status(ls->in, missed ? &ls->path : NULL,
		ls->has_path ? o->operands[1] : NULL, ls->truncated);

	answer_init(&out, o);
	out.failed = ls->failed || ls->in->failed;
	if (o->json)
		add_json(ls, &out, status);
	else
		add_text(ls, &out);
	return answer_write(&out, status);
}

int cmd_ls(const struct options *o)
{
	struct inside in;
	struct ls ls = {.in = &in, .has_path = o->operand_count > 1};
	struct error e = ERROR_INIT;
	int status = EXIT_STATUS_FINE;

	if (inside_open(&in, o, &e) < 0) {
		status = answer_error(o, o->operands[0], &e);
	} else if (!ls.has_path || inside_parse(&in, o->operands[1], &ls.path, &status)) {
		bool parts = ls.has_path || in.listing.single;
		/* A folder of foreign files has a list all the same. */
		if (inside_each(&in, parts ? visit_parts : visit_file, &ls, &e) < 0 &&
			(parts || in.files.count == 0))
			status = answer_error(o, o->operands[0], &e);
		else
			status = answer(&ls);
	}
	array_release(&ls.rows);
	array_release(&ls.seen);
	inside_close(&in);
	return status;
}
