/* SPDX-License-Identifier: MIT */
/*
 * wandb's own files, run-<id>.wandb: a header of 7 bytes, then records in blocks of 32 KiB as
 * LevelDB's logs have them, but with plain CRC-32 over type and data. A record is a protobuf
 * message; those of a history are points. What the server drops after a step that goes back is
 * still there.
 */
#include <libdeflate.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/scan.h"
#include "curve/protobuf.h"
#include "curve/rows.h"

#define BLOCK 32768u
#define HEADER 7u       /* of a record, and of the file */
#define NAME_BYTES 512u /* of a key that is nested */

static const char magic[HEADER] = {':', 'W', '&', 'B', '\xe1', '\xbe', '\0'};

/* Chunks and records --------------------------------------------------------------------------- */

enum chunk_type {
	CHUNK_NONE = 0,
	CHUNK_FULL = 1,
	CHUNK_FIRST = 2,
	CHUNK_MIDDLE = 3,
	CHUNK_LAST = 4
};

enum record_state {
	RECORD_WHOLE,
	RECORD_DAMAGED, /* the rest of its block was passed over */
	RECORD_TORN,    /* the file ends within it */
	RECORD_TOO_LONG,
	RECORD_END,
	RECORD_FAILED,
};

struct records {
	const struct source *source;
	uint8_t block[BLOCK];
	size_t at, n;      /* in the block: the next chunk; bytes there */
	uint64_t block_at; /* where the block is in the file */
	char *joined;      /* a record of several chunks */
	size_t joined_n, capacity, max;
	bool inside, too_long; /* a record's first chunk was read, and not its last */
	/* The record at hand. */
	uint64_t offset;
	struct slice data;
};

static void records_init(struct records *s, const struct source *source, uint64_t max)
{
	*s = (struct records){.source = source, .at = HEADER, .max = (size_t)max};
}

static int load_block(struct records *s, struct error *e)
{
	return source_read_some(s->source, s->block_at, s->block, BLOCK, &s->n, e);
}

static void next_block(struct records *s)
{
	s->block_at += BLOCK;
	s->at = s->n = 0;
}

static int join(struct records *s, const uint8_t *p, size_t n, struct error *e)
{
	if (s->joined_n + n > s->max) {
		s->too_long = true;
		return RP_OK;
	}
	if (s->joined_n + n > s->capacity) {
		size_t capacity = 2 * (s->joined_n + n);
		char *grown = realloc(s->joined, capacity);
		if (!grown)
			return fail(e, RP_E_MEMORY, s->offset,
				"no memory for a record of %zu bytes", s->joined_n + n);
		s->joined = grown;
		s->capacity = capacity;
	}
	memcpy(s->joined + s->joined_n, p, n);
	s->joined_n += n;
	return RP_OK;
}

/* Whether the file ends in this block: what is missing was not written yet. */
static bool in_last_block(const struct records *s)
{
	return s->block_at + s->n == s->source->size;
}

enum chunk_state { CHUNK_HERE, CHUNK_DAMAGED, CHUNK_TORN, CHUNK_END, CHUNK_FAILED };

static enum chunk_state next_chunk(
	struct records *s, enum chunk_type *type, const uint8_t **data, size_t *n, struct error *e)
{
	for (;;) {
		if (s->block_at + s->at >= s->source->size)
			return CHUNK_END;
		if (s->n == 0 && load_block(s, e) < 0)
			return CHUNK_FAILED;
		size_t left = s->n - s->at;
		const uint8_t *p = s->block + s->at;
		if (BLOCK - s->at < HEADER) {
			next_block(s);
			continue;
		}
		if (left < HEADER) {
			next_block(s);
			return CHUNK_TORN;
		}
		*n = load_le16(p + 4);
		*type = p[6];
		if (*type == CHUNK_NONE && *n == 0 && load_le32(p) == 0) {
			next_block(s);
			continue;
		}
		if (*n > left - HEADER && in_last_block(s) && *n <= BLOCK - s->at - HEADER) {
			next_block(s);
			return CHUNK_TORN;
		}
		if (*n > left - HEADER || *type == CHUNK_NONE || *type > CHUNK_LAST ||
			libdeflate_crc32(0, p + 6, *n + 1) != load_le32(p)) {
			next_block(s);
			return CHUNK_DAMAGED;
		}
		*data = p + HEADER;
		s->at += HEADER + *n;
		return CHUNK_HERE;
	}
}

static enum record_state end_record(struct records *s)
{
	s->inside = false;
	s->data = (struct slice){s->joined, s->joined_n};
	return s->too_long ? RECORD_TOO_LONG : RECORD_WHOLE;
}

static enum record_state records_next(struct records *s, struct error *e)
{
	enum chunk_type type;
	const uint8_t *data;
	size_t n;

	for (;;) {
		uint64_t here = s->block_at + s->at;
		switch (next_chunk(s, &type, &data, &n, e)) {
		case CHUNK_FAILED:
			return RECORD_FAILED;
		case CHUNK_END:
			if (!s->inside)
				return RECORD_END;
			s->inside = false;
			return RECORD_TORN;
		case CHUNK_TORN:
			s->inside = false;
			return RECORD_TORN;
		case CHUNK_DAMAGED:
			s->inside = false;
			s->offset = here;
			return RECORD_DAMAGED;
		case CHUNK_HERE:
			break;
		}
		if (type == CHUNK_FULL || type == CHUNK_FIRST) {
			bool cut = s->inside;
			s->inside = type == CHUNK_FIRST;
			s->too_long = false;
			s->joined_n = 0;
			s->offset = here;
			if (join(s, data, n, e) < 0)
				return RECORD_FAILED;
			/* A writer that was killed within a record, and another one behind it. */
			if (cut && type == CHUNK_FIRST)
				return RECORD_DAMAGED;
			if (type == CHUNK_FULL)
				return end_record(s);
			continue;
		}
		/* The rest of a record whose beginning was lost. */
		if (!s->inside)
			continue;
		if (join(s, data, n, e) < 0)
			return RECORD_FAILED;
		if (type == CHUNK_LAST)
			return end_record(s);
	}
}

/* Messages ------------------------------------------------------------------------------------- */

/* Numbers of fields, by message: see wandb_internal.proto. */
enum record_field {
	RECORD_HISTORY = 2,
	RECORD_RUN = 17,
	RECORD_EXIT = 18,
};

enum history_field { HISTORY_ITEM = 1, HISTORY_STEP = 2, STEP_NUM = 1 };
enum item_field { ITEM_KEY = 1, ITEM_NESTED = 2, ITEM_JSON = 16 };

enum run_field {
	RUN_CONFIG = 4,
	RUN_STARTING_STEP = 14,
	RUN_START_TIME = 17,
	RUN_RESUMED = 18,
	RUN_BRANCH_POINT = 23,
	BRANCH_RUN = 1,
	BRANCH_VALUE = 2,
	CONFIG_UPDATE = 1,
	TIME_SECONDS = 1,
	TIME_NANOS = 2,
};

enum exit_field { EXIT_CODE = 1 };

struct item {
	char name[NAME_BYTES];
	struct slice key, json;
};

/* A key and its value's JSON text; nested keys are joined by '/'. */
static bool read_item(struct slice bytes, struct item *item)
{
	struct protobuf m = protobuf_over(bytes);
	size_t n = 0;

	item->key = item->json = (struct slice){"", 0};
	while (protobuf_next(&m)) {
		if (protobuf_is(&m, ITEM_KEY, PROTOBUF_BYTES))
			item->key = m.bytes;
		else if (protobuf_is(&m, ITEM_JSON, PROTOBUF_BYTES))
			item->json = m.bytes;
		if (!protobuf_is(&m, ITEM_NESTED, PROTOBUF_BYTES))
			continue;
		if (n + 1 + m.bytes.n > NAME_BYTES)
			return false;
		if (n > 0)
			item->name[n++] = '/';
		memcpy(item->name + n, m.bytes.p, m.bytes.n);
		n += m.bytes.n;
		item->key = (struct slice){item->name, n};
	}
	/* The newer client has NaN and Infinity in quotes. */
	if (item->json.n >= 2 && item->json.p[0] == '"')
		item->json = (struct slice){item->json.p + 1, item->json.n - 2};
	return !m.failed && item->key.n > 0;
}

struct wandb {
	struct rows rows;
	struct records records;
	struct item item;
	struct curve_reading *r;
	struct error *e;
	bool launched;
};

static int add_cell(struct wandb *w, struct slice name, double value, float resolution)
{
	uint32_t column;

	if (rows_column(&w->rows, name, &column, w->e) < 0)
		return w->e->status;
	return rows_cell(&w->rows, column, value, resolution, w->e);
}

static uint64_t number_field(struct slice message, uint32_t field)
{
	struct protobuf m = protobuf_over(message);
	uint64_t number = 0;

	while (protobuf_next(&m))
		if (protobuf_is(&m, field, PROTOBUF_VARINT))
			number = m.value;
	return m.failed ? 0 : number;
}

static int take_history(struct wandb *w, struct slice history)
{
	struct protobuf m = protobuf_over(history);
	double value, step = NAN;
	float resolution;
	bool said = false;

	while (protobuf_next(&m)) {
		if (protobuf_is(&m, HISTORY_STEP, PROTOBUF_BYTES))
			step = (double)(int64_t)number_field(m.bytes, STEP_NUM);
		if (!protobuf_is(&m, HISTORY_ITEM, PROTOBUF_BYTES) ||
			!read_item(m.bytes, &w->item) ||
			!curve_number(w->item.json, false, &value, &resolution))
			continue;
		said |= slice_is(w->item.key, "_step");
		if (add_cell(w, w->item.key, value, resolution) < 0)
			return w->e->status;
	}
	if (m.failed) {
		rows_drop(&w->rows);
		curve_lost(w->r, "the record's history is damaged");
		return RP_OK;
	}
	if (!said && !isnan(step) && add_cell(w, SLICE("_step"), step, 1) < 0)
		return w->e->status;
	return rows_end(&w->rows, w->e);
}

static double time_of(struct slice timestamp)
{
	return (double)number_field(timestamp, TIME_SECONDS) +
	       (double)number_field(timestamp, TIME_NANOS) / 1e9;
}

/* When the run was started: protobuf Timestamp in the run's record; NAN where this is none. */
static double start_in(struct slice record)
{
	struct protobuf m = protobuf_over(record);
	double start = NAN;

	while (protobuf_next(&m)) {
		if (!protobuf_is(&m, RECORD_RUN, PROTOBUF_BYTES))
			continue;
		struct protobuf run = protobuf_over(m.bytes);
		while (protobuf_next(&run))
			if (protobuf_is(&run, RUN_START_TIME, PROTOBUF_BYTES))
				start = time_of(run.bytes);
	}
	return start;
}

/* What a run says of the one that it goes on from. */
static int take_branch(struct wandb *w, struct slice branch)
{
	struct protobuf m = protobuf_over(branch);
	struct slice run = {0};
	double step = NAN;

	while (protobuf_next(&m)) {
		if (protobuf_is(&m, BRANCH_RUN, PROTOBUF_BYTES))
			run = m.bytes;
		if (protobuf_is(&m, BRANCH_VALUE, PROTOBUF_FIXED64))
			step = protobuf_double(m.value);
	}
	return curve_mark(w->r, CURVE_LOADED, CURVE_CALLS, step, (double)NAN, run, w->e);
}

static int take_config(struct wandb *w, struct slice config)
{
	static const char *const known[] = {"seed", "lr", "learning_rate", "batch_size",
		"global_batch_size", "micro_batch_size", "per_device_train_batch_size",
		"gradient_accumulation_steps", "data_path", "dataset"};
	struct protobuf m = protobuf_over(config);
	char text[256];

	while (protobuf_next(&m)) {
		if (!protobuf_is(&m, CONFIG_UPDATE, PROTOBUF_BYTES) ||
			!read_item(m.bytes, &w->item))
			continue;
		for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
			if (!slice_is(w->item.key, known[i]) || w->item.json.n > 200)
				continue;
			int n = snprintf(text, sizeof text, "%s=%.*s", known[i],
				(int)w->item.json.n, w->item.json.p);
			if (curve_mark(w->r, CURVE_SETTING, CURVE_CALLS, (double)NAN, (double)NAN,
				    (struct slice){text, (size_t)n}, w->e) < 0)
				return w->e->status;
		}
	}
	return RP_OK;
}

/* The record of the run is written again whenever something of it changes: the first one counts. */
static int take_run(struct wandb *w, struct slice record, struct slice run)
{
	struct protobuf m = protobuf_over(run);
	double start = start_in(record), starting_step = NAN;
	struct slice branch = {0};
	bool resumed = false;
	int status = RP_OK;

	if (w->launched)
		return RP_OK;
	w->launched = true;
	w->r->wall = start;
	if (curve_mark(w->r, CURVE_LAUNCH, CURVE_CALLS, (double)NAN, (double)NAN, (struct slice){0},
		    w->e) < 0)
		return w->e->status;
	while (status == RP_OK && protobuf_next(&m)) {
		if (protobuf_is(&m, RUN_STARTING_STEP, PROTOBUF_VARINT))
			starting_step = (double)(int64_t)m.value;
		else if (protobuf_is(&m, RUN_RESUMED, PROTOBUF_VARINT))
			resumed = m.value != 0;
		else if (protobuf_is(&m, RUN_BRANCH_POINT, PROTOBUF_BYTES))
			branch = m.bytes;
		else if (protobuf_is(&m, RUN_CONFIG, PROTOBUF_BYTES))
			status = take_config(w, m.bytes);
	}
	if (status == RP_OK && branch.p)
		status = take_branch(w, branch);
	else if (status == RP_OK && resumed)
		status = curve_mark(w->r, CURVE_LOADED, CURVE_CALLS, starting_step, (double)NAN,
			(struct slice){0}, w->e);
	return status;
}

static int take_exit(struct wandb *w, struct slice bytes)
{
	int32_t code = (int32_t)number_field(bytes, EXIT_CODE);

	w->r->wall = NAN;
	return curve_mark(w->r, code == 0 ? CURVE_FINISHED : CURVE_KILLED, CURVE_CALLS, (double)NAN,
		(double)code, (struct slice){0}, w->e);
}

static int take_message(struct wandb *w)
{
	struct slice record = w->records.data;
	struct protobuf m = protobuf_over(record);
	int status = RP_OK;

	while (status == RP_OK && protobuf_next(&m)) {
		if (m.wire != PROTOBUF_BYTES)
			continue;
		if (m.field == RECORD_HISTORY)
			status = take_history(w, m.bytes);
		else if (m.field == RECORD_RUN)
			status = take_run(w, record, m.bytes);
		else if (m.field == RECORD_EXIT)
			status = take_exit(w, m.bytes);
	}
	if (m.failed)
		curve_lost(w->r, "the record is no message");
	return status;
}

/* Files ---------------------------------------------------------------------------------------- */

static int probe(const char *name, const char *head, size_t n)
{
	(void)name;
	return n >= HEADER && memcmp(head, magic, HEADER) == 0 ? 2 : 0;
}

static double begun(const char *name, const char *head, size_t n)
{
	struct records *s = malloc(sizeof *s);
	struct error why = ERROR_INIT;
	struct source source;
	double start = NAN;

	if (!s)
		return start;
	source_from_memory(&source, head, n, name);
	records_init(s, &source, n);
	for (enum record_state state = RECORD_WHOLE; state < RECORD_END && isnan(start);) {
		state = records_next(s, &why);
		if (state == RECORD_WHOLE)
			start = start_in(s->data);
	}
	free(s->joined);
	free(s);
	return start;
}

static int take_record(struct wandb *w, enum record_state state)
{
	struct curve_file *file = &w->r->log->files.items[w->r->file];

	w->r->at = w->records.offset + 1;
	file->lines++;
	switch (state) {
	case RECORD_WHOLE:
		return take_message(w);
	case RECORD_TORN:
		file->torn = true;
		return RP_OK;
	case RECORD_TOO_LONG:
		curve_lost(w->r, "the record is longer than %zu bytes (limit line-bytes)",
			w->records.max);
		return RP_OK;
	default:
		curve_lost(w->r, "the record is damaged: the rest of its block of %u bytes is lost",
			BLOCK);
		return RP_OK;
	}
}

static int read_wandb(struct curve_reading *r, struct error *e)
{
	struct wandb *w = calloc(1, sizeof *w);
	struct error why = ERROR_INIT;
	enum record_state state = RECORD_END;
	int status = RP_OK;

	if (!w)
		return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for a log of wandb");
	w->r = r;
	w->e = e;
	rows_init(&w->rows, r);
	records_init(&w->records, r->source, r->log->limits->line_bytes);
	while (status == RP_OK && (state = records_next(&w->records, &why)) < RECORD_END)
		status = take_record(w, state);
	if (status == RP_OK && state == RECORD_FAILED)
		status = curve_broke(r, &why, e);
	if (status == RP_OK)
		curve_know_writer(r, "wandb", false);
	rows_release(&w->rows);
	free(w->records.joined);
	free(w);
	return status;
}

const struct curve_reader curve_reader_wandb = {
	.name = "wandb",
	.span = CURVE_SPAN_LAUNCH,
	.probe = probe,
	.read = read_wandb,
	.begun = begun,
};
