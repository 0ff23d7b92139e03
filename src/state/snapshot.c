/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "state/snapshot.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "columns/table.h"

#define FORMAT "reprise snapshot"
#define NAME_MAX_BYTES 512u
#define FILE_BYTES_MAX ((uint64_t)1 << 40)
#define ROWS_MAX ((size_t)1 << 28)
#define DIMS_MAX 64u

static const struct colfile_kind snapshot_kind = {.name = "snapshot", .major = 1, .minor = 0};

/* Rows that are not the state's own structs, since those hold pointers to other things than text.
 */

struct file_row {
	const char *path, *container, *error;
	uint64_t size, error_offset, digest[2];
	int64_t mtime_ns;
	int32_t rank, error_status;
	uint8_t role, status;
	bool digested;
};

struct fact_cells {
	const char *path, *text;
	uint64_t number;
	int32_t rank, group;
	uint32_t file;
	uint16_t key;
	uint8_t type, how;
};

struct body_row {
	uint64_t kept_normal, seed, offset, digest, words[4];
	uint32_t size, kept_word, mt;
	uint8_t algo, layout, kept;
	bool has_seed, has_offset;
};

struct stream_row {
	const char *owner, *path;
	int32_t rank, device;
	uint32_t body, file;
};

struct shape_row {
	int64_t length;
};

struct optimizer_row {
	const char *name, *path;
	uint64_t listed, params;
	uint32_t file;
	int32_t rank;
	bool adam;
};

struct finding_cells {
	const char *file, *path, *ranks, *message, *observed_text, *expected_text, *unit, *cause,
		*meaning, *remedy;
	uint64_t offset, observed, expected;
	int64_t step_first, step_last;
	uint8_t code, severity, observed_kind, expected_kind;
};

struct count_row {
	uint64_t count;
	uint8_t code;
};

struct cover_row {
	const char *rule, *subject, *reason, *unit;
	uint64_t done, total;
	uint8_t status;
};

/* Names of enumerations ------------------------------------------------------------------------ */

static const char *name_fact(unsigned v)
{
	return fact_rows[v].id;
}

static const char *name_fact_type(unsigned v)
{
	static const char *const names[] = {"int", "real", "text", "bool"};
	return names[v];
}

static const char *name_fact_how(unsigned v)
{
	static const char *const names[] = {[HOW_READ] = "read",
		[HOW_NAMED] = "named",
		[HOW_DERIVED] = "derived",
		[HOW_TOLD] = "told",
		[HOW_ASSUMED] = "assumed"};
	return names[v];
}

static const char *name_file_role(unsigned v)
{
	return file_role_name((enum file_role)v);
}

static const char *name_file_status(unsigned v)
{
	static const char *const names[] = {"listed", "read", "broken"};
	return names[v];
}

static const char *name_dtype(unsigned v)
{
	return v == DTYPE_UNKNOWN ? "unknown" : dtype_rows[v].name;
}

static const char *name_tensor_role(unsigned v)
{
	static const char *const names[] = {"weight", "buffer", "first moment", "second moment",
		"optimizer", "averaged weight", "random number state", "other"};
	return names[v];
}

static const char *name_algo(unsigned v)
{
	return rng_algo_name((enum rng_algo)v);
}

static const char *name_layout(unsigned v)
{
	return rng_layout_name((enum rng_layout)v);
}

static const char *name_finding(unsigned v)
{
	return finding_rows[v].code;
}

static const char *name_severity(unsigned v)
{
	return severity_name((enum severity)v);
}

static const char *name_quantity(unsigned v)
{
	static const char *const names[] = {"none", "count", "real", "text"};
	return names[v];
}

static const char *name_cover(unsigned v)
{
	return cover_status_name((enum cover_status)v);
}

/* The schema ----------------------------------------------------------------------------------- */

#define SCHEMA_FILE "state/snapshot_columns.def"
#include "columns/schema_of.h"

/* Writing -------------------------------------------------------------------------------------- */

/* Borrow an array of the state's as a table; rows are only read. */
#define BORROW(array) ((struct table){.rows = (array).items, .count = (array).count})

static bool make_rows(struct table *t, size_t count, size_t size)
{
	t->rows = calloc(count ? count : 1, size);
	t->count = t->rows ? count : 0;
	return t->rows != NULL;
}

static bool make_files(const struct state *s, struct table *t)
{
	if (!make_rows(t, s->files.count, sizeof(struct file_row)))
		return false;
	struct file_row *row = t->rows;
	for (size_t i = 0; i < t->count; i++, row++) {
		const struct state_file *f = &s->files.items[i];
		*row = (struct file_row){.path = f->path,
			.container = f->container ? f->container->name : NULL,
			.error = f->error,
			.size = f->size,
			.error_offset = f->error_offset,
			.mtime_ns = f->mtime_ns,
			.rank = f->rank,
			.error_status = f->error_status,
			.role = f->role,
			.status = f->status,
			.digested = f->digested,
			.digest = {f->digest[0], f->digest[1]}};
	}
	return true;
}

static bool make_facts(const struct state *s, struct table *t)
{
	if (!make_rows(t, s->facts.count, sizeof(struct fact_cells)))
		return false;
	struct fact_cells *row = t->rows;
	for (size_t i = 0; i < t->count; i++, row++) {
		const struct fact *f = &s->facts.items[i];
		*row = (struct fact_cells){.path = f->path,
			.rank = f->rank,
			.group = f->group,
			.file = f->file,
			.key = f->key,
			.type = f->type,
			.how = f->how};
		if (f->type == FACT_TEXT)
			row->text = f->text;
		else
			memcpy(&row->number, &f->i, sizeof row->number);
	}
	return true;
}

static uint32_t mt_count(const struct state *s)
{
	uint32_t count = 0;

	for (size_t i = 0; i < s->bodies.count; i++)
		count += s->bodies.items[i]->algo == RNG_MT19937;
	return count;
}

static void fill_words(const struct rng_state *b, struct body_row *row)
{
	if (b->algo == RNG_PCG64) {
		row->words[0] = (uint64_t)(b->pcg.state >> 64);
		row->words[1] = (uint64_t)b->pcg.state;
		row->words[2] = (uint64_t)(b->pcg.inc >> 64);
		row->words[3] = (uint64_t)b->pcg.inc;
	} else if (b->algo == RNG_PHILOX && !b->has_offset) {
		for (int k = 0; k < 4; k++)
			row->words[k / 2] |= (uint64_t)b->philox_block[k] << 32 * (k % 2);
	}
}

static bool make_bodies(const struct state *s, struct table *bodies, struct table *mt)
{
	if (!make_rows(bodies, s->bodies.count, sizeof(struct body_row)) ||
		!make_rows(mt, mt_count(s), sizeof(struct mt19937)))
		return false;
	struct body_row *row = bodies->rows;
	struct mt19937 *words = mt->rows;
	uint32_t next = 0;
	for (size_t i = 0; i < bodies->count; i++, row++) {
		const struct rng_state *b = s->bodies.items[i];
		*row = (struct body_row){.kept_normal = b->kept_normal,
			.seed = b->seed,
			.offset = b->offset,
			.digest = b->algo == RNG_OPAQUE ? b->body : 0,
			.size = b->size,
			.kept_word = b->kept_word,
			.mt = TABLE_NONE,
			.algo = b->algo,
			.layout = b->layout,
			.kept = b->kept,
			.has_seed = b->has_seed,
			.has_offset = b->has_offset};
		fill_words(b, row);
		if (b->algo != RNG_MT19937)
			continue;
		row->mt = next;
		words[next++] = b->mt;
	}
	return true;
}

static bool make_streams(const struct state *s, struct table *t)
{
	if (!make_rows(t, s->streams.count, sizeof(struct stream_row)))
		return false;
	struct stream_row *row = t->rows;
	for (size_t i = 0; i < t->count; i++, row++) {
		const struct stream *x = &s->streams.items[i];
		*row = (struct stream_row){.owner = x->owner,
			.path = x->path,
			.rank = x->rank,
			.device = x->device,
			.body = TABLE_NONE,
			.file = x->file};
		for (uint32_t k = 0; k < s->bodies.count && row->body == TABLE_NONE; k++)
			if (s->bodies.items[k] == x->body)
				row->body = k;
	}
	return true;
}

static bool make_shapes(const struct state *s, struct table *t)
{
	size_t count = 0;

	for (size_t i = 0; i < s->tensors.count; i++)
		count += s->tensors.items[i].ndim;
	if (!make_rows(t, count, sizeof(struct shape_row)))
		return false;
	struct shape_row *row = t->rows;
	for (size_t i = 0; i < s->tensors.count; i++)
		for (uint8_t k = 0; k < s->tensors.items[i].ndim; k++)
			(row++)->length = s->tensors.items[i].shape[k];
	return true;
}

static bool make_optimizers(const struct state *s, struct table *optimizers, struct table *params)
{
	size_t count = 0;

	for (size_t i = 0; i < s->optimizers.count; i++)
		count += s->optimizers.items[i].params.count;
	if (!make_rows(optimizers, s->optimizers.count, sizeof(struct optimizer_row)) ||
		!make_rows(params, count, sizeof(struct opt_param)))
		return false;
	struct optimizer_row *row = optimizers->rows;
	struct opt_param *param = params->rows;
	for (size_t i = 0; i < optimizers->count; i++, row++) {
		const struct optimizer *o = &s->optimizers.items[i];
		*row = (struct optimizer_row){.name = o->name,
			.path = o->path,
			.listed = o->listed,
			.params = o->params.count,
			.file = o->file,
			.rank = o->rank,
			.adam = o->adam};
		for (size_t k = 0; k < o->params.count; k++)
			*param++ = o->params.items[k];
	}
	return true;
}

static void fill_quantity(
	const struct quantity *q, uint8_t *kind, uint64_t *bits, const char **text)
{
	*kind = (uint8_t)q->kind;
	if (q->kind == QUANTITY_TEXT)
		*text = q->text;
	else if (q->kind != QUANTITY_NONE)
		memcpy(bits, &q->count, sizeof *bits);
}

/* The file of a finding under the checkpoint's name, wherever the checkpoint lay. */
static const char *under_name(
	struct arena *a, const struct state *s, const char *name, const char *file)
{
	size_t n = strlen(s->path);

	if (!file || strncmp(file, s->path, n) != 0 || (file[n] != '\0' && file[n] != '/'))
		return file;
	return arena_printf(a, "%s%s", name, file + n);
}

static bool make_findings(
	const struct state *s, const struct snapshot_about *about, struct arena *a, struct table *t)
{
	const struct findings *list = about->findings;

	if (!make_rows(t, list->list.count, sizeof(struct finding_cells)))
		return false;
	struct finding_cells *row = t->rows;
	for (size_t i = 0; i < t->count; i++, row++) {
		const struct finding *f = &list->list.items[i];
		*row = (struct finding_cells){.file = under_name(a, s, about->name, f->place.file),
			.path = f->place.path,
			.ranks = f->place.ranks,
			.message = f->message,
			.unit = f->unit,
			.cause = f->cause,
			.meaning = f->meaning,
			.remedy = f->remedy,
			.offset = f->place.offset,
			.step_first = f->place.step_first,
			.step_last = f->place.step_last,
			.code = (uint8_t)f->code,
			.severity = (uint8_t)f->severity};
		fill_quantity(
			&f->observed, &row->observed_kind, &row->observed, &row->observed_text);
		fill_quantity(
			&f->expected, &row->expected_kind, &row->expected, &row->expected_text);
	}
	return true;
}

static bool make_counts(const struct findings *list, struct table *t)
{
	if (!make_rows(t, FINDING_COUNT, sizeof(struct count_row)))
		return false;
	struct count_row *row = t->rows;
	t->count = 0;
	for (unsigned i = 0; i < FINDING_COUNT; i++)
		if (list->of_code[i] > 0)
			row[t->count++] =
				(struct count_row){.count = list->of_code[i], .code = (uint8_t)i};
	return true;
}

static bool make_coverage(const struct coverage *list, struct table *t)
{
	if (!make_rows(t, list->list.count, sizeof(struct cover_row)))
		return false;
	struct cover_row *row = t->rows;
	for (size_t i = 0; i < t->count; i++, row++) {
		const struct cover *c = &list->list.items[i];
		*row = (struct cover_row){.rule = c->rule,
			.subject = c->subject,
			.reason = c->reason,
			.unit = c->unit,
			.done = c->done,
			.total = c->total,
			.status = (uint8_t)c->status};
	}
	return true;
}

/* Which tables are made for the file; the others are the state's own. */
static bool make_tables(
	const struct state *s, const struct snapshot_about *about, struct arena *a, struct table *t)
{
	t[TABLE_OF_storages] = BORROW(s->storages);
	t[TABLE_OF_tensors] = BORROW(s->tensors);
	t[TABLE_OF_summaries] = BORROW(s->summaries);
	t[TABLE_OF_leaves] = BORROW(s->leaves);
	t[TABLE_OF_sha256] = BORROW(s->strong);
	t[TABLE_OF_leaf_sha256] = BORROW(s->strong_leaves);
	t[TABLE_OF_placements] = BORROW(s->placements);
	t[TABLE_OF_log] = BORROW(s->log);
	return make_files(s, &t[TABLE_OF_files]) && make_facts(s, &t[TABLE_OF_facts]) &&
	       make_bodies(s, &t[TABLE_OF_bodies], &t[TABLE_OF_mt]) &&
	       make_streams(s, &t[TABLE_OF_streams]) && make_shapes(s, &t[TABLE_OF_shapes]) &&
	       make_optimizers(s, &t[TABLE_OF_optimizers], &t[TABLE_OF_params]) &&
	       make_findings(s, about, a, &t[TABLE_OF_findings]) &&
	       make_counts(about->findings, &t[TABLE_OF_counts]) &&
	       make_coverage(about->coverage, &t[TABLE_OF_coverage]);
}

static void release_made(struct table *t)
{
	static const enum table_id borrowed[] = {TABLE_OF_storages, TABLE_OF_tensors,
		TABLE_OF_summaries, TABLE_OF_leaves, TABLE_OF_sha256, TABLE_OF_leaf_sha256,
		TABLE_OF_placements, TABLE_OF_log};

	for (size_t i = 0; i < sizeof borrowed / sizeof borrowed[0]; i++)
		t[borrowed[i]] = (struct table){0};
	tables_release(&schema, t);
}

static int compare_named(const void *pa, const void *pb, void *context)
{
	const struct state *s = context;
	const struct state_tensor *a = &s->tensors.items[*(const uint32_t *)pa];
	const struct state_tensor *b = &s->tensors.items[*(const uint32_t *)pb];
	int order = strcmp(a->name, b->name);

	if (order == 0)
		order = (a->rank > b->rank) - (a->rank < b->rank);
	return order ? order : (a > b) - (a < b);
}

static void add_number(struct sha256 *h, uint64_t v)
{
	uint8_t bytes[8];

	for (int i = 0; i < 8; i++)
		bytes[i] = (uint8_t)(v >> 8 * i);
	sha256_add(h, bytes, sizeof bytes);
}

/* Name, type, rank, shape and digest of a tensor; texts end with a NUL, numbers are 64 bits. */
static void add_tensor(struct sha256 *h, const struct state *s, uint32_t at)
{
	const struct state_tensor *t = &s->tensors.items[at];
	const char *type = name_dtype(t->dtype);

	sha256_add(h, t->name, strlen(t->name) + 1);
	sha256_add(h, type, strlen(type) + 1);
	add_number(h, (uint64_t)(int64_t)t->rank);
	add_number(h, t->ndim);
	for (uint8_t k = 0; k < t->ndim; k++)
		add_number(h, (uint64_t)t->shape[k]);
	sha256_add(h, s->strong.items[at].bytes, SHA256_BYTES);
}

bool snapshot_root(const struct state *s, char text[SHA256_TEXT])
{
	uint32_t *order = s->strong.count ? calloc(s->strong.count, sizeof *order) : NULL;
	uint8_t digest[SHA256_BYTES];
	struct sha256 h;

	if (!order)
		return false;
	for (uint32_t i = 0; i < s->strong.count; i++)
		order[i] = i;
	qsort_r(order, s->strong.count, sizeof *order, compare_named, (void *)(uintptr_t)s);
	sha256_begin(&h);
	for (size_t i = 0; i < s->strong.count; i++)
		add_tensor(&h, s, order[i]);
	free(order);
	if (!sha256_end(&h, digest))
		return false;
	sha256_text(digest, text);
	return true;
}

static void put_attributes(
	struct colfile_writer *w, const struct state *s, const struct snapshot_about *about)
{
	const uint32_t version[] = {snapshot_kind.major, snapshot_kind.minor};
	const uint64_t leaf = LEAF_BYTES;
	char root[SHA256_TEXT];
	const uint8_t flags[] = {s->single, s->on_cuda, s->bytes_read};
	const char *framework = state_fact_text(s, FACT_FRAMEWORK);
	const char *framework_version = state_fact_text(s, FACT_FRAMEWORK_VERSION);

	colfile_put_text(w, "format", SLICE(FORMAT));
	colfile_put_numbers(w, "version", COLUMN_U32, version, 2);
	colfile_put_text(w, "tool", SLICE("reprise " RP_VERSION));
	colfile_put_text(w, "checkpoint", slice_of(about->name));
	colfile_put_text(w, "profile", slice_of(s->kind));
	colfile_put_text(w, "framework", slice_of(framework));
	colfile_put_text(w, "framework_version", slice_of(framework_version));
	colfile_put_numbers(w, "single", COLUMN_U8, &flags[0], 1);
	colfile_put_numbers(w, "on_cuda", COLUMN_U8, &flags[1], 1);
	colfile_put_numbers(w, "bytes_read", COLUMN_U8, &flags[2], 1);
	colfile_put_numbers(w, "world", COLUMN_I32, &s->world, 1);
	colfile_put_numbers(w, "mtime_ns", COLUMN_I64, &s->mtime_ns, 1);
	colfile_put_numbers(w, "leaf_bytes", COLUMN_U64, &leaf, 1);
	if (snapshot_root(s, root))
		colfile_put_text(w, "root_sha256", slice_of(root));
}

int snapshot_write(const struct state *s, const struct snapshot_about *about, const char *path,
	struct error *e)
{
	struct table tables[TABLE_COUNT] = {{0}};
	struct arena arena;
	struct colfile_writer w;

	arena_init(&arena, SIZE_MAX);
	colfile_create(&w, path, &snapshot_kind, FILE_BYTES_MAX);
	put_attributes(&w, s, about);
	if (make_tables(s, about, &arena, tables))
		tables_write(&w, &schema, tables);
	else
		fail(&w.error, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for its tables");
	release_made(tables);
	arena_release(&arena);
	return colfile_finish(&w, e);
}

/* Reading -------------------------------------------------------------------------------------- */

static int wrong(struct error *e, const char *what)
{
	return fail(e, RP_E_FORMAT, ERROR_NO_OFFSET, "%s", what);
}

static int no_memory(struct error *e)
{
	return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for its tables");
}

/* Texts are never NULL in a state, but where that means something. */
static const char *or_empty(const char *text)
{
	return text ? text : "";
}

static const struct container *container_named(const char *name)
{
	for (size_t i = 0; name && containers[i]; i++)
		if (strcmp(containers[i]->name, name) == 0)
			return containers[i];
	return NULL;
}

static int take_files(struct state *s, const struct table *t, struct error *e)
{
	const struct file_row *row = t->rows;

	for (size_t i = 0; i < t->count; i++, row++) {
		struct state_file *f = array_push(&s->files, ROWS_MAX);
		if (!f)
			return no_memory(e);
		if (row->status == FILE_BROKEN && !row->error)
			return wrong(e, "/files/error: a broken file without one");
		*f = (struct state_file){.path = or_empty(row->path),
			.size = row->size,
			.mtime_ns = row->mtime_ns,
			.rank = row->rank,
			.role = row->role,
			.status = row->status,
			.container = container_named(row->container),
			.error = row->error,
			.error_status = row->error_status,
			.error_offset = row->error_offset,
			.digested = row->digested,
			.digest = {row->digest[0], row->digest[1]}};
	}
	return RP_OK;
}

static int take_facts(struct state *s, const struct table *t, struct error *e)
{
	const struct fact_cells *row = t->rows;

	for (size_t i = 0; i < t->count; i++, row++) {
		struct fact *f = array_push(&s->facts, ROWS_MAX);
		if (!f)
			return no_memory(e);
		*f = (struct fact){.key = row->key,
			.type = row->type,
			.how = row->how,
			.rank = row->rank,
			.group = row->group,
			.file = row->file,
			.path = or_empty(row->path)};
		if (row->type == FACT_TEXT)
			f->text = or_empty(row->text);
		else
			memcpy(&f->i, &row->number, sizeof f->i);
		if (row->type == FACT_BOOL && row->number > 1)
			return wrong(e, "/facts/number: neither 0 nor 1");
	}
	return RP_OK;
}

static int take_bodies(
	struct state *s, const struct table *bodies, const struct table *mt, struct error *e)
{
	const struct body_row *row = bodies->rows;
	const struct mt19937 *words = mt->rows;

	for (size_t i = 0; i < bodies->count; i++, row++) {
		struct rng_state *b = arena_new(&s->arena, struct rng_state);
		struct rng_state **slot = b ? array_push(&s->bodies, ROWS_MAX) : NULL;
		if (!slot)
			return no_memory(e);
		*slot = b;
		*b = (struct rng_state){.algo = row->algo,
			.layout = row->layout,
			.kept = row->kept,
			.has_seed = row->has_seed,
			.has_offset = row->has_offset,
			.size = row->size,
			.kept_word = row->kept_word,
			.kept_normal = row->kept_normal,
			.seed = row->seed,
			.offset = row->offset,
			.body = row->digest};
		if (row->algo == RNG_MT19937 && row->mt == TABLE_NONE)
			return wrong(e, "/bodies/mt: a Mersenne twister without words");
		if (row->algo == RNG_MT19937) {
			b->mt = words[row->mt];
		} else if (row->algo == RNG_PCG64) {
			b->pcg.state = (u128)row->words[0] << 64 | row->words[1];
			b->pcg.inc = (u128)row->words[2] << 64 | row->words[3];
		} else if (row->algo == RNG_PHILOX && !row->has_offset) {
			for (int k = 0; k < 4; k++)
				b->philox_block[k] = (uint32_t)(row->words[k / 2] >> 32 * (k % 2));
		}
		if (rng_restore(b, e) < 0)
			return fail_wrap(e, "/bodies, row %zu", i);
	}
	return RP_OK;
}

static int take_streams(struct state *s, const struct table *t, struct error *e)
{
	const struct stream_row *row = t->rows;

	for (size_t i = 0; i < t->count; i++, row++) {
		struct stream *x = array_push(&s->streams, ROWS_MAX);
		if (!x)
			return no_memory(e);
		if (row->body == TABLE_NONE)
			return wrong(e, "/streams/body: a stream without a state");
		*x = (struct stream){.rank = row->rank,
			.device = row->device,
			.owner = or_empty(row->owner),
			.body = s->bodies.items[row->body],
			.file = row->file,
			.path = or_empty(row->path)};
	}
	return RP_OK;
}

/* Give a table's rows to an array of the state's: they were read as its own structs. */
#define ADOPT(array, from)                                                                         \
	do {                                                                                       \
		(array).items = (from)->rows;                                                      \
		(array).count = (array).capacity = (from)->count;                                  \
		*(from) = (struct table){0};                                                       \
	} while (0)

static int check_storages(const struct state *s, struct error *e)
{
	for (size_t i = 0; i < s->storages.count; i++)
		if (s->storages.items[i].file == NO_FILE)
			return wrong(e, "/storages/file: bytes that are in no file");
	return RP_OK;
}

/* The lengths of a tensor's dimensions make its number of elements. */
static bool shape_counts(const struct state_tensor *t)
{
	uint64_t product = 1;

	for (uint8_t k = 0; k < t->ndim; k++)
		if (t->shape[k] < 0 ||
			__builtin_mul_overflow(product, (uint64_t)t->shape[k], &product))
			return false;
	return product == t->numel;
}

static int take_shapes(struct state *s, const struct table *t, struct error *e)
{
	const struct shape_row *row = t->rows;
	size_t next = 0;
	int64_t *lengths = arena_array(&s->arena, t->count + 1, sizeof *lengths);

	if (!lengths)
		return no_memory(e);
	for (size_t i = 0; i < t->count; i++)
		lengths[i] = row[i].length;
	for (size_t i = 0; i < s->tensors.count; i++) {
		struct state_tensor *x = &s->tensors.items[i];
		if (x->ndim > DIMS_MAX || x->ndim > t->count - next)
			return wrong(e, "/shapes/length: too few for all tensors");
		x->name = or_empty(x->name);
		x->shape = lengths + next;
		next += x->ndim;
		if (!shape_counts(x))
			return wrong(e, "/tensors/numel: it is not what the shape makes");
		if (x->whole && x->storage == NO_FILE)
			return wrong(e, "/tensors/whole: of a tensor without bytes");
	}
	return next == t->count ? RP_OK : wrong(e, "/shapes/length: more than all tensors have");
}

static int check_summaries(const struct state *s, struct error *e)
{
	if (s->summaries.count != 0 && s->summaries.count != s->tensors.count)
		return wrong(e, "/summaries: not one for each tensor");
	if (s->strong.count != 0 && s->strong.count != s->summaries.count)
		return wrong(e, "/sha256: not one for each tensor");
	if (s->strong_leaves.count != 0 && s->strong_leaves.count != s->leaves.count)
		return wrong(e, "/leaf_sha256: not one for each leaf");
	for (size_t i = 0; i < s->summaries.count; i++) {
		const struct tensor_summary *x = &s->summaries.items[i];
		if (x->first_leaf > s->leaves.count || x->leaves > s->leaves.count - x->first_leaf)
			return wrong(e, "/summaries/leaves: more than there are");
	}
	return RP_OK;
}

static int take_optimizers(struct state *s, const struct table *optimizers,
	const struct table *params, struct error *e)
{
	const struct optimizer_row *row = optimizers->rows;
	const struct opt_param *param = params->rows;
	size_t left = params->count;

	for (size_t i = 0; i < optimizers->count; i++, row++) {
		struct optimizer *o = array_push(&s->optimizers, ROWS_MAX);
		if (!o)
			return no_memory(e);
		if (row->params > left)
			return wrong(e, "/optimizers/params: more than there are");
		*o = (struct optimizer){.name = or_empty(row->name),
			.adam = row->adam,
			.file = row->file,
			.rank = row->rank,
			.path = or_empty(row->path),
			.listed = row->listed};
		if (!array_reserve(&o->params, (size_t)row->params, ROWS_MAX))
			return no_memory(e);
		o->params.count = (size_t)row->params;
		if (row->params > 0)
			memcpy(o->params.items, param, o->params.count * sizeof *param);
		param += row->params;
		left -= (size_t)row->params;
	}
	return left == 0 ? RP_OK : wrong(e, "/params: more than all optimizers have");
}

static int check_placements(struct state *s, struct error *e)
{
	for (size_t i = 0; i < s->placements.count; i++) {
		struct placement *p = &s->placements.items[i];
		if (!p->tensor || !p->file || p->index == NO_FILE)
			return wrong(e, "/placements: one that says nothing");
	}
	return RP_OK;
}

/* A text that will be shown as a message: whoever wrote the file, it disturbs no terminal. */
static const char *shown(struct state *s, const char *text)
{
	struct strbuf b;

	if (!text)
		return NULL;
	strbuf_init(&b, 4 * FINDING_MESSAGE_MAX);
	text_add_escaped(&b, slice_of(text), FINDING_MESSAGE_MAX);
	const char *copy = state_text(s, strbuf_slice(&b));
	s->no_memory |= b.no_memory;
	strbuf_release(&b);
	return copy;
}

static struct quantity take_quantity(
	struct findings *sink, uint8_t kind, uint64_t bits, const char *text)
{
	struct quantity q = {.kind = (enum quantity_kind)kind};

	if (q.kind == QUANTITY_TEXT)
		q.text = findings_text(sink, "%s", or_empty(text));
	else
		memcpy(&q.count, &bits, sizeof bits);
	return q;
}

static const char *kept(struct findings *sink, const char *text)
{
	return text ? findings_text(sink, "%s", text) : NULL;
}

static int take_findings(
	struct state *s, const struct table *t, struct findings *sink, struct error *e)
{
	const struct finding_cells *row = t->rows;

	for (size_t i = 0; i < t->count; i++)
		if (!row[i].message || !*row[i].message)
			return wrong(e, "/findings/message: a finding that says nothing");
	for (size_t i = 0; i < t->count; i++, row++) {
		struct finding *f = finding_add(
			sink, (enum finding_code)row->code, "%s", or_empty(shown(s, row->message)));
		f->severity = (enum severity)row->severity;
		f->place = (struct place){
			.file = kept(sink, shown(s, row->file ? row->file : s->path)),
			.path = kept(sink, shown(s, row->path)),
			.ranks = kept(sink, shown(s, row->ranks)),
			.offset = row->offset,
			.step_first = row->step_first,
			.step_last = row->step_last};
		f->observed = take_quantity(
			sink, row->observed_kind, row->observed, shown(s, row->observed_text));
		f->expected = take_quantity(
			sink, row->expected_kind, row->expected, shown(s, row->expected_text));
		f->unit = kept(sink, shown(s, row->unit));
		f->cause = kept(sink, shown(s, row->cause));
		f->meaning = kept(sink, shown(s, row->meaning));
		f->remedy = kept(sink, shown(s, row->remedy));
	}
	return RP_OK;
}

/* Those that were counted and not kept. */
static void take_counts(const struct table *t, const struct table *stored, struct findings *sink)
{
	const struct count_row *row = t->rows;
	const struct finding_cells *f = stored->rows;

	for (size_t i = 0; i < t->count; i++) {
		uint64_t here = 0;
		for (size_t k = 0; k < stored->count; k++)
			here += f[k].code == row[i].code;
		if (row[i].count > here)
			sink->of_code[row[i].code] += row[i].count - here;
	}
}

static int take_coverage(struct state *s, const struct table *t, struct error *e)
{
	const struct cover_row *row = t->rows;

	for (size_t i = 0; i < t->count; i++, row++) {
		struct cover *c = array_push(&s->taken, ROWS_MAX);
		if (!c)
			return no_memory(e);
		*c = (struct cover){.rule = or_empty(shown(s, row->rule)),
			.subject = or_empty(shown(s, row->subject)),
			.status = (enum cover_status)row->status,
			.reason = shown(s, row->reason),
			.unit = shown(s, row->unit),
			.done = row->done,
			.total = row->total};
	}
	return RP_OK;
}

/* The tables into the state. What refers to what was checked as they were read; here, what adds up.
 */
static int take_tables(struct state *s, struct table *t, struct findings *sink, struct error *e)
{
	int status = take_files(s, &t[TABLE_OF_files], e);

	if (status == RP_OK)
		status = take_facts(s, &t[TABLE_OF_facts], e);
	if (status == RP_OK)
		status = take_bodies(s, &t[TABLE_OF_bodies], &t[TABLE_OF_mt], e);
	if (status == RP_OK)
		status = take_streams(s, &t[TABLE_OF_streams], e);
	ADOPT(s->storages, &t[TABLE_OF_storages]);
	ADOPT(s->tensors, &t[TABLE_OF_tensors]);
	ADOPT(s->summaries, &t[TABLE_OF_summaries]);
	ADOPT(s->leaves, &t[TABLE_OF_leaves]);
	ADOPT(s->strong, &t[TABLE_OF_sha256]);
	ADOPT(s->strong_leaves, &t[TABLE_OF_leaf_sha256]);
	ADOPT(s->placements, &t[TABLE_OF_placements]);
	ADOPT(s->log, &t[TABLE_OF_log]);
	if (status == RP_OK)
		status = check_storages(s, e);
	if (status == RP_OK)
		status = take_shapes(s, &t[TABLE_OF_shapes], e);
	if (status == RP_OK)
		status = check_summaries(s, e);
	if (status == RP_OK)
		status = take_optimizers(s, &t[TABLE_OF_optimizers], &t[TABLE_OF_params], e);
	if (status == RP_OK)
		status = check_placements(s, e);
	if (status == RP_OK)
		status = take_coverage(s, &t[TABLE_OF_coverage], e);
	if (status == RP_OK)
		status = take_findings(s, &t[TABLE_OF_findings], sink, e);
	if (status < 0)
		return status;
	take_counts(&t[TABLE_OF_counts], &t[TABLE_OF_findings], sink);
	state_finish(s);
	return s->no_memory ? no_memory(e) : RP_OK;
}

static int take_flag(struct colfile_reader *r, const char *name, bool *out, struct error *e)
{
	uint8_t flag = 0;
	bool found;
	int status = colfile_get_numbers(r, name, COLUMN_U8, &flag, 1, &found, e);

	*out = flag == 1;
	return status == RP_OK && (!found || flag > 1)
		       ? wrong(e, "an attribute is missing or wrong")
		       : status;
}

static int take_name(struct colfile_reader *r, struct state *s, const char *attribute,
	const char **out, struct error *e)
{
	char text[NAME_MAX_BYTES];
	bool found;
	int status = colfile_get_text(r, attribute, text, sizeof text, &found, e);

	if (status == RP_OK && (!found || !*text))
		return fail(
			e, RP_E_FORMAT, ERROR_NO_OFFSET, "its attribute %s is missing", attribute);
	*out = shown(s, text);
	return status;
}

static int take_attributes(struct colfile_reader *r, struct state *s, struct error *e)
{
	uint64_t leaf = 0;
	bool found;
	int status = take_name(r, s, "checkpoint", &s->path, e);

	if (status == RP_OK)
		status = take_name(r, s, "profile", &s->kind, e);
	if (status == RP_OK)
		status = take_flag(r, "single", &s->single, e);
	if (status == RP_OK)
		status = take_flag(r, "on_cuda", &s->on_cuda, e);
	if (status == RP_OK)
		status = take_flag(r, "bytes_read", &s->bytes_read, e);
	if (status == RP_OK)
		status = colfile_get_numbers(r, "world", COLUMN_I32, &s->world, 1, &found, e);
	if (status == RP_OK)
		status = colfile_get_numbers(r, "mtime_ns", COLUMN_I64, &s->mtime_ns, 1, &found, e);
	if (status == RP_OK)
		status = colfile_get_numbers(r, "leaf_bytes", COLUMN_U64, &leaf, 1, &found, e);
	if (status == RP_OK && leaf != LEAF_BYTES)
		return wrong(e, "its leaves are of another size than 1 MiB");
	return status;
}

bool snapshot_begins(struct slice head)
{
	return slice_starts(head, SLICE("reprise snapshot\n"));
}

int snapshot_read(struct state *s, int dirfd, const char *path, const char *shown_as,
	const struct limits *limits, struct findings *sink, struct error *e)
{
	struct table tables[TABLE_COUNT] = {{0}};
	struct colfile_reader r;
	int status = colfile_open(&r, dirfd, path, &snapshot_kind, limits, e);

	if (status < 0)
		return status;
	status = take_attributes(&r, s, e);
	if (status == RP_OK)
		status = tables_read(&r, &schema, tables, &s->arena, limits->memory, e);
	if (status == RP_OK)
		status = source_check(&r.source, e);
	colfile_close(&r);
	if (status == RP_OK)
		status = take_tables(s, tables, sink, e);
	tables_release(&schema, tables);
	s->snapshot = state_text(s, slice_of(shown_as));
	return status;
}
