/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "ledger/sealed.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "columns/colfile.h"
#include "ledger/plan.h"
#include "ledger/read.h"

#define FORMAT "reprise ledger"
#define FILE_BYTES_MAX ((uint64_t)1 << 42)
#define WINDOW 65536u /* rows of samples at hand: a chunk of their columns */

static const struct colfile_kind sealed_kind = {.name = "ledger", .major = 1, .minor = 0};

/* Rows that are not the ledger's own structs. */

struct sealed_log {
	const char *run;
	int64_t max_steps;
	uint64_t lines, lines_lost, lines_other, lines_late, noted;
};

struct sealed_name {
	const char *name;
};

struct sealed_count {
	double value;
};

static const char *name_key_kind(unsigned v)
{
	static const char *const kinds[] = {"integer ids", "text ids", "content keys"};
	return kinds[v];
}

static const char *name_sampling(unsigned v)
{
	static const char *const samplings[] = {"without", "with", "stream"};
	return samplings[v];
}

static const char *name_attempt_kind(unsigned v)
{
	static const char *const kinds[] = {"train", "rehearsal", "reference", "validation"};
	return kinds[v];
}

#define SCHEMA_FILE "ledger/sealed_columns.def"
#include "columns/schema_of.h"

/* Writing -------------------------------------------------------------------------------------- */

/* Borrow an array of the ledger's as a table; rows are only read. */
#define BORROW(array) ((struct table){.rows = (array).items, .count = (array).count})

static void put_attributes(struct colfile_writer *w, const struct ledger *l, uint32_t key_bytes)
{
	uint32_t version[] = {sealed_kind.major, sealed_kind.minor};

	colfile_put_text(w, "format", SLICE(FORMAT));
	colfile_put_numbers(w, "version", COLUMN_U32, version, 2);
	colfile_put_text(w, "tool", SLICE("reprise " RP_VERSION));
	colfile_put_numbers(w, "rows", COLUMN_U64, &l->rows, 1);
	colfile_put_numbers(w, "key_bytes", COLUMN_U32, &key_bytes, 1);
}

/* A block of one column of samples as it stands in the file. */
typedef const void *narrow_fn(const struct sample_block *b, void *room);

static const void *keys_of(const struct sample_block *b, void *room)
{
	(void)room;
	return b->keys;
}

static const void *narrow_keys_of(const struct sample_block *b, void *room)
{
	uint32_t *out = room;

	for (size_t i = 0; i < b->n; i++)
		out[i] = (uint32_t)b->keys[i];
	return out;
}

static const void *spaces_of(const struct sample_block *b, void *room)
{
	(void)room;
	return b->spaces;
}

static const void *tokens_of(const struct sample_block *b, void *room)
{
	(void)room;
	return b->tokens;
}

static const void *losses_of(const struct sample_block *b, void *room)
{
	(void)room;
	return b->losses;
}

static void put_samples(struct colfile_writer *w, const struct ledger *l, const char *path,
	enum column_type type, narrow_fn *narrow)
{
	struct sample_source source = ledger_samples(l);
	struct sample_buffer *buffer = sample_buffer_new();
	uint32_t *room = malloc(WINDOW * sizeof *room);
	struct sample_block b;

	if (!buffer || !room)
		fail(&w->error, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for its samples");
	colfile_put_column(w, path, type, 1, source.rows);
	for (uint64_t row = 0; row < source.rows && w->error.status == RP_OK; row += b.n)
		if (source.read(&source, row, WINDOW, buffer, &b, &w->error) == RP_OK)
			colfile_put_rows(w, narrow(&b, room), b.n);
	free(room);
	sample_buffer_free(buffer);
}

static struct ledger_intent *copy_intents(const struct ledger *l)
{
	struct ledger_intent *intents = calloc(l->attempts.count + 1, sizeof *intents);

	for (size_t i = 0; intents && i < l->attempts.count; i++)
		intents[i] = l->attempts.items[i].intent;
	return intents;
}

/* Notes that a reader of the file makes again are left out: they come last. */
static void fill_tables(const struct ledger *l, const struct sealed_log *log,
	struct ledger_intent *intents, struct table tables[TABLE_COUNT])
{
	tables[TABLE_OF_log] = (struct table){.rows = (void *)(uintptr_t)log, .count = 1};
	tables[TABLE_OF_datasets] = BORROW(l->datasets);
	tables[TABLE_OF_sources] = BORROW(l->sources);
	tables[TABLE_OF_spaces] = BORROW(l->spaces);
	tables[TABLE_OF_weights] = BORROW(l->weights);
	tables[TABLE_OF_stages] = BORROW(l->stages);
	tables[TABLE_OF_skips] = BORROW(l->skips);
	tables[TABLE_OF_attempts] = BORROW(l->attempts);
	tables[TABLE_OF_intents] = (struct table){.rows = intents, .count = l->attempts.count};
	tables[TABLE_OF_parts] = BORROW(l->parts);
	tables[TABLE_OF_geometries] = BORROW(l->geometries);
	tables[TABLE_OF_steps] = BORROW(l->steps);
	/* Names and counts are structs of one member in the schema. */
	tables[TABLE_OF_count_names] =
		(struct table){.rows = (void *)l->count_names.items, .count = l->count_names.count};
	tables[TABLE_OF_counts] = BORROW(l->counts);
	tables[TABLE_OF_checkpoints] = BORROW(l->checkpoints);
	tables[TABLE_OF_losses] = BORROW(l->losses);
	tables[TABLE_OF_notes] = BORROW(l->notes);
	if (tables[TABLE_OF_notes].count > l->notes_read)
		tables[TABLE_OF_notes].count = l->notes_read;
}

int sealed_write(const struct ledger *l, const char *path, struct error *e)
{
	struct table tables[TABLE_COUNT] = {{0}};
	struct sealed_log log = {.run = l->run,
		.max_steps = l->max_steps,
		.lines = l->lines,
		.lines_lost = l->lines_lost,
		.lines_other = l->lines_other,
		.lines_late = l->lines_late,
		.noted = l->noted_read};
	struct ledger_intent *intents = copy_intents(l);
	struct colfile_writer w;
	bool narrow = true;

	if (!intents)
		return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for its tables");
	for (size_t i = 0; i < l->spaces.count; i++)
		narrow = narrow && l->spaces.items[i].max_key <= UINT32_MAX;
	colfile_create(&w, path, &sealed_kind, FILE_BYTES_MAX);
	put_attributes(&w, l, narrow ? 4 : 8);
	fill_tables(l, &log, intents, tables);
	tables_write(&w, &schema, tables);
	free(intents);
	if (l->rows > 0) {
		put_samples(&w, l, "/samples/key", narrow ? COLUMN_U32 : COLUMN_U64,
			narrow ? narrow_keys_of : keys_of);
		if (l->spaces.count > 1)
			put_samples(&w, l, "/samples/space", COLUMN_U16, spaces_of);
		if (l->has_tokens)
			put_samples(&w, l, "/samples/tokens", COLUMN_U32, tokens_of);
		if (l->has_losses)
			put_samples(&w, l, "/samples/loss", COLUMN_F32, losses_of);
	}
	return colfile_finish(&w, e);
}

/* Reading -------------------------------------------------------------------------------------- */

/* A column of samples, and the rows of it that are at hand. */
struct sample_column {
	const char *path;
	enum column_type type;
	bool there;
	uint64_t first;
	size_t n;
	void *rows;
};

enum sample_columns { OF_KEY, OF_SPACE, OF_TOKENS, OF_LOSS, SAMPLE_COLUMNS };

struct sealed {
	struct reading *r;
	struct ledger *l;
	struct colfile_reader file;
	struct table tables[TABLE_COUNT];
	struct arena texts;
	uint64_t rows;
	struct sample_column samples[SAMPLE_COLUMNS];
	/* The file's rows in the ledger's numbers. */
	uint32_t *sources, *datasets, *attempts, *count_names;
	bool own; /* samples of the step at hand have losses of their own */
	/* A line's arrays. */
	uint64_t keys[WINDOW];
	uint32_t source_of[WINDOW];
	double counts[64];
};

#define ROWS(s, table) ((const row_of_##table *)(s)->tables[TABLE_OF_##table].rows)
#define COUNT(s, table) ((s)->tables[TABLE_OF_##table].count)

static int malformed(struct error *e, const char *what)
{
	return fail(e, RP_E_FORMAT, ERROR_NO_OFFSET, "its tables contradict each other: %s", what);
}

/* Texts of the file, which may be none, as texts of the ledger. */
static const char *keep(struct sealed *s, const char *text)
{
	return text ? ledger_keep(s->l, slice_of(text)) : "";
}

static uint32_t *numbers_for(size_t count, struct error *e)
{
	uint32_t *numbers = calloc(count + 1, sizeof *numbers);

	if (!numbers)
		fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for its tables");
	return numbers;
}

static int take_datasets(struct sealed *s, struct error *e)
{
	s->datasets = numbers_for(COUNT(s, datasets), e);
	if (!s->datasets)
		return e->status;
	for (size_t i = 0; i < COUNT(s, datasets); i++) {
		struct ledger_dataset d = ROWS(s, datasets)[i];
		d.name = keep(s, d.name);
		d.fingerprint = keep(s, d.fingerprint);
		d.unit = keep(s, d.unit);
		d.order = keep(s, d.order);
		if (ledger_dataset_said(s->l, &d, &s->datasets[i], e) < 0)
			return e->status;
	}
	return RP_OK;
}

static int take_sources(struct sealed *s, struct error *e)
{
	s->sources = numbers_for(COUNT(s, sources), e);
	if (!s->sources)
		return e->status;
	for (size_t i = 0; i < COUNT(s, sources); i++) {
		const struct ledger_source *row = &ROWS(s, sources)[i];
		if (ledger_source_named(s->l, slice_of(row->name), &s->sources[i], e) < 0)
			return e->status;
		struct ledger_source *source = &s->l->sources.items[s->sources[i]];
		source->size = source->size ? source->size : row->size;
		source->weight = isnan(source->weight) ? row->weight : source->weight;
		source->epochs = isnan(source->epochs) ? row->epochs : source->epochs;
	}
	return RP_OK;
}

/* A stretch of the file's weights, added to the ledger's. */
static int take_weights(struct sealed *s, uint32_t first, uint32_t count, struct error *e)
{
	if (first > COUNT(s, weights) || count > COUNT(s, weights) - first)
		return malformed(e, "weights that are not there");
	for (uint32_t i = 0; i < count; i++) {
		struct ledger_weight w = ROWS(s, weights)[first + i];
		struct ledger_weight *kept = array_push(&s->l->weights, UINT32_MAX);
		if (w.source == TABLE_NONE || !kept)
			return malformed(e, "a weight without a source");
		*kept = (struct ledger_weight){.source = s->sources[w.source], .weight = w.weight};
	}
	return RP_OK;
}

static int take_stages(struct sealed *s, struct error *e)
{
	struct plan_mark mark = plan_begin(s->l);

	for (size_t i = 0; i < COUNT(s, stages); i++) {
		struct ledger_stage row = ROWS(s, stages)[i];
		uint32_t first = row.first_weight;
		row.name = keep(s, row.name);
		row.first_weight = (uint32_t)s->l->weights.count;
		struct ledger_stage *kept = array_push(&s->l->stages, UINT32_MAX);
		if (!kept)
			return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for its stages");
		*kept = row;
		if (take_weights(s, first, row.weights, e) < 0)
			return e->status;
	}
	const char *wrong = plan_settle(s->l, mark);
	if (wrong)
		ledger_note(s->l, s->r->file, 0, "stages: %s", wrong);
	return RP_OK;
}

/* What headers say, which counts for all files. */
static int take_header(struct sealed *s, struct error *e)
{
	const struct sealed_log *log = ROWS(s, log);

	if (COUNT(s, log) != 1)
		return malformed(e, "not one row in log");
	if (s->l->run[0] == '\0')
		s->l->run = keep(s, log->run);
	s->l->max_steps = log->max_steps > s->l->max_steps ? log->max_steps : s->l->max_steps;
	if (take_datasets(s, e) < 0 || take_sources(s, e) < 0)
		return e->status;
	return take_stages(s, e);
}

static int take_skips(struct sealed *s, struct ledger_intent *intent, struct error *e)
{
	uint32_t first = intent->first_skip;

	if (first > COUNT(s, skips) || intent->skips > COUNT(s, skips) - first)
		return malformed(e, "skips that are not there");
	intent->first_skip = (uint32_t)s->l->skips.count;
	for (uint32_t i = 0; i < intent->skips; i++) {
		struct ledger_skip *kept = array_push(&s->l->skips, UINT32_MAX);
		if (!kept)
			return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for its skips");
		*kept = ROWS(s, skips)[first + i];
	}
	return RP_OK;
}

static int take_attempt(struct sealed *s, size_t i, struct error *e)
{
	const struct ledger_attempt *row = &ROWS(s, attempts)[i];
	struct ledger_attempt copy = *row;

	copy.intent = ROWS(s, intents)[i];

	if (ledger_attempt_again(s->l, row->number, row->again, &s->attempts[i], e) < 0)
		return e->status;
	struct ledger_attempt *a = &s->l->attempts.items[s->attempts[i]];
	if (!a->implied)
		return RP_OK; /* another file tells of it */
	copy.launch = keep(s, row->launch);
	copy.code = keep(s, row->code);
	copy.versions = keep(s, row->versions);
	copy.config = keep(s, row->config);
	copy.from_path = keep(s, row->from_path);
	copy.from_digest = keep(s, row->from_digest);
	copy.end = keep(s, row->end);
	copy.file = keep(s, row->file);
	copy.first = copy.steps = 0;
	copy.row = copy.rows = 0;
	copy.first_step = copy.last_step = LEDGER_NO_STEP;
	copy.first_weight = (uint32_t)s->l->weights.count;
	if (take_weights(s, row->first_weight, row->weights, e) < 0 ||
		take_skips(s, &copy.intent, e) < 0)
		return e->status;
	*a = copy;
	return RP_OK;
}

static int take_attempts(struct sealed *s, struct error *e)
{
	if (COUNT(s, intents) != COUNT(s, attempts))
		return malformed(e, "not one row of intents for each attempt");
	s->attempts = numbers_for(COUNT(s, attempts), e);
	for (size_t i = 0; s->attempts && i < COUNT(s, attempts); i++)
		if (take_attempt(s, i, e) < 0)
			return e->status;
	for (size_t i = 0; s->attempts && i < COUNT(s, checkpoints); i++) {
		struct ledger_checkpoint c = ROWS(s, checkpoints)[i];
		struct ledger_checkpoint *kept = array_push(&s->l->checkpoints, UINT32_MAX);
		if (c.attempt == TABLE_NONE || !kept)
			return malformed(e, "a checkpoint without an attempt");
		c.attempt = s->attempts[c.attempt];
		c.path = keep(s, c.path);
		c.digest = keep(s, c.digest);
		*kept = c;
	}
	return s->attempts ? RP_OK : e->status;
}

/* What was left out, or odd, when the file was made. */
static void take_losses(struct sealed *s)
{
	const struct sealed_log *log = ROWS(s, log);

	for (size_t i = 0; i < COUNT(s, losses); i++) {
		const struct ledger_loss *x = &ROWS(s, losses)[i];
		ledger_lost(
			s->l, x->file ? x->file : "", x->line, x->offset, x->what ? x->what : "");
	}
	for (size_t i = 0; i < COUNT(s, notes); i++) {
		const struct ledger_loss *x = &ROWS(s, notes)[i];
		ledger_note(s->l, x->file ? x->file : "", x->line, "%s", x->what ? x->what : "");
	}
	if (log->lines_lost > COUNT(s, losses))
		s->l->lines_lost += log->lines_lost - COUNT(s, losses);
	if (log->noted > COUNT(s, notes))
		s->l->noted += log->noted - COUNT(s, notes);
	s->l->lines += log->lines;
	s->l->lines_other += log->lines_other;
	s->l->lines_late += log->lines_late;
}

/* Samples of one column from `row` on, as many as are at hand of up to `n`. */
static int at_hand(struct sealed *s, enum sample_columns which, uint64_t row, size_t *n,
	const void **out, struct error *e)
{
	struct sample_column *c = &s->samples[which];
	uint64_t rows;
	bool found;

	if (row < c->first || row - c->first >= c->n) {
		c->n = 0;
		c->first = row - row % WINDOW;
		uint64_t left = s->rows - c->first;
		uint64_t count = left < WINDOW ? left : WINDOW;
		if (colfile_find(&s->file, c->path, c->type, 1, &rows, &found, e) < 0 ||
			colfile_read(&s->file, c->first, count, c->rows, e) < 0)
			return e->status;
		c->n = (size_t)count;
	}
	size_t from = (size_t)(row - c->first);
	if (*n > c->n - from)
		*n = c->n - from;
	*out = (const char *)c->rows + from * column_type_size(c->type);
	return RP_OK;
}

/* Which columns there are, and that they have a row for each sample. */
static int find_samples(struct sealed *s, struct error *e)
{
	static const struct sample_column columns_of[SAMPLE_COLUMNS] = {
		[OF_KEY] = {.path = "/samples/key", .type = COLUMN_U64},
		[OF_SPACE] = {.path = "/samples/space", .type = COLUMN_U16},
		[OF_TOKENS] = {.path = "/samples/tokens", .type = COLUMN_U32},
		[OF_LOSS] = {.path = "/samples/loss", .type = COLUMN_F32},
	};
	uint32_t key_bytes = 0;
	bool found;

	if (colfile_get_numbers(&s->file, "rows", COLUMN_U64, &s->rows, 1, &found, e) < 0 ||
		!found ||
		colfile_get_numbers(&s->file, "key_bytes", COLUMN_U32, &key_bytes, 1, &found, e) <
			0 ||
		!found)
		return e->status ? e->status : malformed(e, "attributes are missing");
	memcpy(s->samples, columns_of, sizeof columns_of);
	if (key_bytes == 4)
		s->samples[OF_KEY].type = COLUMN_U32;
	for (int i = 0; i < SAMPLE_COLUMNS && s->rows > 0; i++) {
		struct sample_column *c = &s->samples[i];
		uint64_t rows;
		if (colfile_find(&s->file, c->path, c->type, 1, &rows, &c->there, e) < 0)
			return e->status;
		if (c->there && rows != s->rows)
			return malformed(e, "a column of samples has too many or too few");
		c->rows = c->there ? malloc(WINDOW * column_type_size(c->type)) : NULL;
		if (c->there && !c->rows)
			return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for its samples");
	}
	if (s->rows > 0 && !s->samples[OF_KEY].there)
		return malformed(e, "no keys");
	return RP_OK;
}

/* Whether any sample of a step has a loss of its own: the step's is their mean then. */
static int find_own_losses(struct sealed *s, uint64_t row, uint32_t n, struct error *e)
{
	const void *p;

	s->own = false;
	if (!s->samples[OF_LOSS].there)
		return RP_OK;
	for (size_t now; n > 0 && !s->own; n -= (uint32_t)now, row += now) {
		now = n;
		if (at_hand(s, OF_LOSS, row, &now, &p, e) < 0)
			return e->status;
		for (size_t i = 0; i < now; i++)
			s->own = s->own || !isnan(((const float *)p)[i]);
	}
	return RP_OK;
}

/* Fill a line's arrays from `row` on: one data set and kind, what is at hand, up to `n`. */
static int fill_line(
	struct sealed *s, struct ledger_line *line, uint64_t row, size_t n, struct error *e)
{
	const void *p[SAMPLE_COLUMNS] = {0};
	const struct ledger_space *spaces = ROWS(s, spaces);

	for (enum sample_columns i = 0; i < SAMPLE_COLUMNS; i++)
		if (s->samples[i].there && at_hand(s, i, row, &n, &p[i], e) < 0)
			return e->status;
	const uint16_t *space_of = p[OF_SPACE];
	uint32_t first_space = space_of ? space_of[0] : 0;
	if (first_space >= COUNT(s, spaces) || spaces[first_space].dataset == TABLE_NONE)
		return malformed(e, "a sample without a space");
	const struct ledger_space *first = &spaces[first_space];
	size_t count = 0;
	for (; count < n; count++) {
		uint32_t index = space_of ? space_of[count] : 0;
		if (index >= COUNT(s, spaces) || spaces[index].dataset == TABLE_NONE)
			return malformed(e, "a sample without a space");
		const struct ledger_space *space = &spaces[index];
		if (space->dataset != first->dataset || space->kind != first->kind)
			break;
		s->source_of[count] =
			space->source == TABLE_NONE ? LEDGER_NONE : s->sources[space->source];
		s->keys[count] = s->samples[OF_KEY].type == COLUMN_U32
					 ? ((const uint32_t *)p[OF_KEY])[count]
					 : ((const uint64_t *)p[OF_KEY])[count];
	}
	line->n = count;
	line->keys = s->keys;
	line->kind = first->kind;
	line->dataset = s->datasets[first->dataset];
	line->sources = p[OF_SPACE] ? s->source_of : NULL;
	line->source = s->source_of[0];
	line->tokens = p[OF_TOKENS];
	/* Where no sample has one of its own, the step's loss stands on the line. */
	line->losses = s->own ? p[OF_LOSS] : NULL;
	return RP_OK;
}

static void take_counts(struct sealed *s, const struct ledger_step *step, struct ledger_line *line)
{
	size_t names_n = COUNT(s, count_names);

	if (step->first_count == LEDGER_NONE)
		return;
	memset(s->counts, 0, sizeof s->counts);
	for (size_t i = 0; i < names_n; i++)
		s->counts[s->count_names[i]] = ROWS(s, counts)[step->first_count + i].value;
	line->counts = s->counts;
}

/* The facts of a step, on its first line. */
static struct ledger_line first_line(struct sealed *s, const struct ledger_step *step)
{
	struct ledger_line line = ledger_line_empty();

	line.attempt = s->attempts[step->attempt];
	line.step = step->step;
	line.epoch = step->epoch;
	line.loss = s->own ? NAN : step->loss;
	line.lr = step->lr;
	line.grad_norm = step->grad_norm;
	line.position = step->position;
	line.applied = step->applied;
	take_counts(s, step, &line);
	return line;
}

static void no_facts(struct ledger_line *line)
{
	line->loss = line->lr = line->grad_norm = NAN;
	line->counts = NULL;
}

static int add_part(struct sealed *s, struct ledger_line *line, const struct ledger_part *p,
	uint64_t row, struct error *e)
{
	line->samples = true;
	line->dp = p->dp;
	line->micro = p->micro;
	line->worker = p->worker;
	line->n = 0;
	if (p->n == 0) {
		line->sources = line->tokens = NULL;
		line->losses = NULL;
		int status = ledger_add_line(s->l, line, e);
		no_facts(line);
		return status;
	}
	for (uint32_t done = 0; done < p->n; done += (uint32_t)line->n) {
		if (fill_line(s, line, row + done, p->n - done, e) < 0 ||
			ledger_add_line(s->l, line, e) < 0)
			return e->status;
		no_facts(line);
	}
	return RP_OK;
}

static bool step_is_sound(const struct sealed *s, const struct ledger_step *step)
{
	const struct ledger_geometry *g = ROWS(s, geometries);

	if (step->attempt == TABLE_NONE || step->geometry == TABLE_NONE || step->step < 0 ||
		step->step > LEDGER_STEP_MAX)
		return false;
	if (step->first_count != LEDGER_NONE &&
		(step->first_count > COUNT(s, counts) ||
			COUNT(s, count_names) > COUNT(s, counts) - step->first_count))
		return false;
	g += step->geometry;
	return g->first <= COUNT(s, parts) && g->parts <= COUNT(s, parts) - g->first;
}

static int add_step(
	struct sealed *s, const struct ledger_step *step, uint64_t *row, struct error *e)
{
	const struct ledger_geometry *g = &ROWS(s, geometries)[step->geometry];

	if (step->n > s->rows - *row)
		return malformed(e, "more samples in steps than there are");
	if (find_own_losses(s, *row, step->n, e) < 0)
		return e->status;
	struct ledger_line line = first_line(s, step);
	uint64_t end = *row + step->n;
	if (g->parts == 0 && ledger_add_line(s->l, &line, e) < 0)
		return e->status;
	for (uint32_t i = 0; i < g->parts; i++) {
		const struct ledger_part *p = &ROWS(s, parts)[g->first + i];
		if (p->n > end - *row)
			return malformed(e, "more samples in the parts of a step than in the step");
		if (add_part(s, &line, p, *row, e) < 0)
			return e->status;
		*row += p->n;
	}
	if (*row != end)
		return malformed(e, "fewer samples in the parts of a step than in the step");
	return step->irregular ? ledger_irregular(s->l, line.attempt, step->step, e) : RP_OK;
}

static int add_steps(struct sealed *s, struct error *e)
{
	uint64_t row = 0, lines = 0;
	/* Parts without samples cost a file nothing: only so many of them make sense. */
	uint64_t most = 2 * s->rows + 16 * COUNT(s, steps) + (1 << 20);

	for (size_t i = 0; i < COUNT(s, steps); i++) {
		const struct ledger_step *step = &ROWS(s, steps)[i];
		if (!step_is_sound(s, step))
			return malformed(e, "a step that points beside what there is");
		lines += ROWS(s, geometries)[step->geometry].parts;
		if (lines > most)
			return malformed(e, "more parts of steps than samples");
		if (add_step(s, step, &row, e) < 0)
			return e->status;
	}
	return row == s->rows ? RP_OK : malformed(e, "samples that no step has");
}

static int take_count_names(struct sealed *s, struct error *e)
{
	s->count_names = numbers_for(COUNT(s, count_names), e);
	for (size_t i = 0; s->count_names && i < COUNT(s, count_names); i++)
		if (ledger_count_named(s->l, slice_of(ROWS(s, count_names)[i].name),
			    &s->count_names[i], e) < 0)
			return e->status;
	return s->count_names ? RP_OK : e->status;
}

static int open_sealed(struct sealed *s, struct reading *r, struct error *e)
{
	uint64_t memory = r->ledger->limits->memory;

	s->r = r;
	s->l = r->ledger;
	arena_init(&s->texts, memory);
	if (colfile_open(&s->file, AT_FDCWD, r->path, &sealed_kind, r->ledger->limits, e) < 0)
		return e->status;
	if (tables_read(&s->file, &schema, s->tables, &s->texts, memory / 2, e) == RP_OK)
		return RP_OK;
	colfile_close(&s->file);
	return e->status;
}

static void close_sealed(struct sealed *s)
{
	colfile_close(&s->file);
	tables_release(&schema, s->tables);
	arena_release(&s->texts);
	for (int i = 0; i < SAMPLE_COLUMNS; i++)
		free(s->samples[i].rows);
	free(s->sources);
	free(s->datasets);
	free(s->attempts);
	free(s->count_names);
	free(s);
}

static int with_sealed(
	struct reading *r, int (*visit)(struct sealed *s, struct error *e), struct error *e)
{
	struct sealed *s = calloc(1, sizeof *s);
	int status = s ? open_sealed(s, r, e)
		       : fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for a sealed log");

	if (status < 0) {
		if (s)
			arena_release(&s->texts);
		free(s);
		return status;
	}
	status = visit(s, e);
	close_sealed(s);
	return status;
}

static int visit_all(struct sealed *s, struct error *e)
{
	if (take_header(s, e) < 0 || find_samples(s, e) < 0 || take_attempts(s, e) < 0 ||
		take_count_names(s, e) < 0)
		return e->status;
	take_losses(s);
	return add_steps(s, e);
}

/* The digest of all bytes is checked here, so that a damaged file is left out before any is read.
 */
static int read_header(struct reading *r, struct error *e)
{
	return with_sealed(r, take_header, e);
}

static int read_sealed(struct reading *r, struct error *e)
{
	return with_sealed(r, visit_all, e);
}

static bool probe(const char *head, size_t n, bool named)
{
	(void)named;
	return userblock_begins((struct slice){head, n}) &&
	       slice_starts((struct slice){head, n}, SLICE("reprise ledger\n"));
}

const struct reader reader_sealed = {.name = "sealed",
	.opens_path = true,
	.probe = probe,
	.read_header = read_header,
	.read = read_sealed};
