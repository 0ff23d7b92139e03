/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "ledger/read_journal.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/cursor.h"
#include "base/journal.h"
#include "base/source.h"
#include "container/json.h"
#include "ledger/read.h"
#include "ledger/said.h"

#define WINDOW ((size_t)1 << 20)

/* One file, read block by block through a window of bytes. */
struct journal {
	struct source source;
	const char *path, *name;
	uint8_t *window;
	size_t capacity, held; /* bytes in the window */
	uint64_t start;        /* where in the file the window begins */
	uint64_t key;          /* that its blocks are hashed with */
	/* From OPEN: */
	struct arena arena;
	struct val open;
	struct slice launch, uuid;
	int64_t time_ns, rank, dp, segment;
	bool sound; /* its prefix and OPEN could be read */
	/* Where its attempt goes. */
	uint32_t attempt, dataset;
	int64_t number;
	uint32_t again;
	ARRAY(uint32_t) sources; /* by the journal's own index */
	uint8_t kind;
	/* While it is read: */
	uint64_t offset, sequence, before;
	int64_t step;      /* the newest */
	uint64_t next_row; /* that the next block should begin with */
	bool closed;
	struct lookup *saved; /* rows of the ledger's checkpoints, shared by all journals */
};

struct head {
	uint8_t type, flags;
	uint32_t payload, rows;
	uint64_t sequence, before, payload_hash, hash;
};

bool journal_probe(struct slice head)
{
	return head.n >= 8 && memcmp(head.p, JOURNAL_PREFIX, 8) == 0;
}

/* Bytes [offset, offset + n) of the file, or NULL where it ends before them or memory does. */
static const uint8_t *bytes_at(struct journal *j, uint64_t offset, size_t n, struct error *e)
{
	if (offset > j->source.size || n > j->source.size - offset)
		return NULL;
	if (offset >= j->start && offset - j->start + n <= j->held)
		return j->window + (offset - j->start);
	size_t want = n > WINDOW ? n : WINDOW;
	if (want > j->capacity) {
		uint8_t *grown = realloc(j->window, want);
		if (!grown) {
			fail(e, RP_E_MEMORY, offset, "no memory for a block of %s", j->name);
			return NULL;
		}
		j->window = grown;
		j->capacity = want;
	}
	j->start = offset;
	j->held = 0;
	if (source_read_some(&j->source, offset, j->window, want, &j->held, e) != RP_OK)
		return NULL;
	return j->held >= n ? j->window : NULL;
}

/* A sound head at the offset: its magic and its own hash. */
static bool head_at(
	struct journal *j, uint64_t offset, uint64_t key, struct head *h, struct error *e)
{
	const uint8_t *p = bytes_at(j, offset, JOURNAL_HEAD_BYTES, e);
	if (!p)
		return false;
	struct cursor c = cursor_over(p, JOURNAL_HEAD_BYTES);
	uint32_t magic = cursor_le32(&c);
	h->type = cursor_u8(&c);
	h->flags = cursor_u8(&c);
	cursor_take(&c, 2);
	h->sequence = cursor_le64(&c);
	h->payload = cursor_le32(&c);
	h->rows = cursor_le32(&c);
	h->before = cursor_le64(&c);
	h->payload_hash = cursor_le64(&c);
	h->hash = cursor_le64(&c);
	return magic == JOURNAL_MAGIC && h->payload <= JOURNAL_PAYLOAD_MAX &&
	       h->hash == XXH3_64bits_withSeed(p, 40, key);
}

/* The payload of a block whose head is sound, or NULL where it is torn or damaged. */
static const uint8_t *payload_at(
	struct journal *j, uint64_t offset, uint64_t key, const struct head *h, struct error *e)
{
	const uint8_t *p = bytes_at(j, offset, (size_t)JOURNAL_HEAD_BYTES + h->payload, e);
	if (!p)
		return NULL;
	p += JOURNAL_HEAD_BYTES;
	return XXH3_64bits_withSeed(p, h->payload, key) == h->payload_hash ? p : NULL;
}

static uint64_t block_bytes(const struct head *h)
{
	return JOURNAL_HEAD_BYTES + (((uint64_t)h->payload + 7) & ~(uint64_t)7);
}

static int64_t member_i64(struct val v, const char *name, int64_t otherwise)
{
	int64_t out;
	return val_to_i64(val_get(v, name), &out) ? out : otherwise;
}

/* A step, a position, a count; what is none is as if it were not there. */
static int64_t member_whole(struct val v, const char *name, int64_t otherwise)
{
	int64_t out = member_i64(v, name, otherwise);
	return out >= 0 && out <= LEDGER_STEP_MAX ? out : otherwise;
}

static double member_double(struct val v, const char *name, double otherwise)
{
	double out;
	return val_to_double(val_get(v, name), &out) && isfinite(out) && out >= 0 ? out : otherwise;
}

static const char *member_kept(struct ledger *l, struct val v, const char *name)
{
	return ledger_keep(l, val_slice(val_get(v, name)));
}

/* The key is the first eight bytes of the uuid, which OPEN has as text. */
static bool key_of_uuid(struct slice uuid, uint64_t *key)
{
	unsigned digits = 0;
	uint8_t bytes[8] = {0};
	for (size_t i = 0; i < uuid.n && digits < 16; i++) {
		char c = uuid.p[i];
		if (c == '-')
			continue;
		int v = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
		if (v < 0)
			return false;
		bytes[digits / 2] = (uint8_t)(bytes[digits / 2] << 4 | v);
		digits++;
	}
	*key = 0;
	for (size_t i = 8; i-- > 0;)
		*key = *key << 8 | bytes[i];
	return digits == 16;
}

/* Decode a JSON object of a block; false where it is none. */
static bool object_of(
	struct ledger *l, struct journal *j, const uint8_t *p, size_t n, struct val *out)
{
	struct error own = ERROR_INIT;
	char *copy = arena_alloc(&j->arena, n + 1);
	if (copy) {
		memcpy(copy, p, n);
		json_decode((struct slice){copy, n}, &j->arena, l->limits, out, NULL, &own);
	}
	l->no_memory |= !copy || own.status == RP_E_MEMORY;
	return copy && own.status == RP_OK && val_is_dict(*out);
}

/* Prefix and OPEN. What is wrong with them is noted; only errors of memory and the system are
 * returned. */
static int read_open(struct ledger *l, struct journal *j, struct error *e)
{
	struct head h;
	const uint8_t *p = bytes_at(j, 0, JOURNAL_PREFIX_BYTES, e);
	if (!p) {
		ledger_lost(l, j->name, 0, 0, "the journal ends inside its first 16 bytes");
		return e->status;
	}
	struct cursor c = cursor_over(p, JOURNAL_PREFIX_BYTES);
	cursor_seek(&c, 8);
	unsigned major = cursor_le16(&c);
	if (major != JOURNAL_MAJOR) {
		ledger_lost(l, j->name, 0, 8,
			"the journal is of a newer version than this reprise reads");
		return RP_OK;
	}
	if (!head_at(j, JOURNAL_PREFIX_BYTES, 0, &h, e) || h.type != JOURNAL_OPEN ||
		!(p = payload_at(j, JOURNAL_PREFIX_BYTES, 0, &h, e)) ||
		!object_of(l, j, p, h.payload, &j->open)) {
		ledger_lost(l, j->name, 0, JOURNAL_PREFIX_BYTES,
			"the journal's first block, which says whose it is, is damaged");
		return e->status;
	}
	j->uuid = val_slice(val_get(j->open, "uuid"));
	j->launch = val_slice(val_get(j->open, "launch"));
	j->time_ns = member_i64(j->open, "time_ns", 0);
	j->rank = member_i64(j->open, "rank", 0);
	j->dp = member_i64(j->open, "dp", 0);
	j->segment = member_i64(j->open, "segment", 1);
	j->offset = JOURNAL_PREFIX_BYTES + block_bytes(&h);
	j->sequence = h.sequence + 1;
	j->before = h.hash;
	j->next_row = (uint64_t)member_whole(j->open, "first_row", 0);
	j->sound = key_of_uuid(j->uuid, &j->key) && j->dp >= 0 && j->dp < UINT32_MAX;
	if (!j->sound)
		ledger_lost(l, j->name, 0, JOURNAL_PREFIX_BYTES, "the journal has no uuid or rank");
	return RP_OK;
}

/* Attempts. --------------------------------------------------------------------------------------
 */

static int compare_i64(int64_t a, int64_t b)
{
	return (a > b) - (a < b);
}

static int by_launch(const void *a, const void *b)
{
	const struct journal *x = *(const struct journal *const *)a,
			     *y = *(const struct journal *const *)b;
	int c = slice_compare(x->launch, y->launch);
	c = c ? c : compare_i64(x->rank, y->rank);
	c = c ? c : compare_i64(x->time_ns, y->time_ns);
	c = c ? c : slice_compare(x->uuid, y->uuid);
	return c ? c : compare_i64(x->segment, y->segment);
}

/* A launch's attempt: the k-th journal that each rank opened under one launch id. */
struct launch {
	struct slice id;
	unsigned turn;
	int64_t time_ns; /* of the first rank to begin */
	ARRAY(struct journal *) files;
};

static int by_time(const void *a, const void *b)
{
	const struct launch *x = a, *y = b;
	int c = compare_i64(x->time_ns, y->time_ns);
	c = c ? c : slice_compare(x->id, y->id);
	return c ? c : compare_i64(x->turn, y->turn);
}

struct launches {
	ARRAY(struct launch) list;
};

static struct launch *launch_of(struct launches *all, struct slice id, unsigned turn)
{
	/* Sorted by launch: it is among the newest ones, as many as a rank had turns. */
	for (size_t i = all->list.count; i-- > 0 && slice_eq(all->list.items[i].id, id);)
		if (all->list.items[i].turn == turn)
			return &all->list.items[i];
	struct launch *new = array_push(&all->list, SIZE_MAX);
	if (new) {
		new->id = id;
		new->turn = turn;
		new->time_ns = INT64_MAX;
	}
	return new;
}

/* Group journals into attempts, in the order of time. */
static bool group(struct journal **sorted, size_t count, struct launches *all)
{
	unsigned turn = 0;
	qsort(sorted, count, sizeof *sorted, by_launch);
	for (size_t i = 0; i < count; i++) {
		struct journal *j = sorted[i], *last = i ? sorted[i - 1] : NULL;
		if (!last || !slice_eq(last->launch, j->launch) || last->rank != j->rank)
			turn = 0;
		else if (!slice_eq(last->uuid, j->uuid))
			turn++;
		struct launch *a = launch_of(all, j->launch, turn);
		struct journal **slot = a ? array_push(&a->files, SIZE_MAX) : NULL;
		if (!slot)
			return false;
		*slot = j;
		if (j->time_ns < a->time_ns)
			a->time_ns = j->time_ns;
	}
	if (all->list.count)
		qsort(all->list.items, all->list.count, sizeof *all->list.items, by_time);
	return true;
}

static uint8_t attempt_kind_of(struct val open)
{
	static const char *const names[] = {"train", "rehearsal", "reference", "validation"};
	for (uint8_t i = 1; i < sizeof names / sizeof *names; i++)
		if (val_is_text(val_get(open, "kind"), names[i]))
			return i;
	return ATTEMPT_TRAIN;
}

static int describe_dataset(struct ledger *l, struct journal *j, struct error *e)
{
	struct val o = j->open;
	struct ledger_dataset d = {
		.name = member_kept(l, o, "dataset"),
		.fingerprint = member_kept(l, o, "fingerprint"),
		.unit = member_kept(l, o, "unit"),
		.order = member_kept(l, o, "order"),
		.size = (uint64_t)member_whole(o, "size", 0),
		.sampling = val_is_text(val_get(o, "sampling"), "with")     ? SAMPLING_WITH
			    : val_is_text(val_get(o, "sampling"), "stream") ? SAMPLING_STREAM
									    : SAMPLING_WITHOUT,
		.repeat = member_double(o, "repeat", 1),
	};
	const char *run = member_kept(l, o, "run");
	if (l->run[0] == '\0')
		l->run = run;
	else if (run[0] && strcmp(run, l->run) != 0)
		ledger_note(
			l, j->name, 0, "this is a log of run %s, others are of %s", run, l->run);
	int status = ledger_dataset_said(l, &d, &j->dataset, e);
	struct val sources = val_get(o, "sources");
	for (uint64_t i = 0; status == RP_OK && i < val_count(sources); i++) {
		struct val row = val_at(sources, i);
		uint32_t index, *slot = array_push(&j->sources, SIZE_MAX);
		if (!slot)
			return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for sources");
		status = ledger_source_named(l, val_slice(val_get(row, "name")), &index, e);
		if (status != RP_OK)
			break;
		*slot = index;
		struct ledger_source *source = &l->sources.items[index];
		if (source->size == 0)
			source->size = (uint64_t)member_whole(row, "size", 0);
		if (isnan(source->weight))
			source->weight = member_double(row, "weight", NAN);
		if (isnan(source->epochs))
			source->epochs = member_double(row, "epochs", NAN);
	}
	j->kind = val_is_text(val_get(o, "keys"), "content") ? KEY_CONTENT
		  : val_is_text(val_get(o, "keys"), "text")  ? KEY_TEXT
							     : KEY_ID;
	return status;
}

/* A JSON object that OPEN has as text. */
static const char *member_json(struct ledger *l, const struct journal *j, const char *name)
{
	struct arena scratch;

	arena_init(&scratch, l->limits->memory);
	return said_json(l, j->name, &scratch, name, val_slice(val_get(j->open, name)));
}

/* The weights that this launch was given: another one may be given others. */
static void describe_weights(struct ledger *l, const struct journal *j, struct ledger_attempt *a)
{
	struct val sources = val_get(j->open, "sources");

	a->first_weight = (uint32_t)l->weights.count;
	for (size_t i = 0; i < j->sources.count; i++) {
		double weight = member_double(val_at(sources, i), "weight", NAN);
		if (isnan(weight))
			continue;
		struct ledger_weight *w = array_push(&l->weights, l->limits->memory / sizeof *w);
		if (!w)
			return;
		*w = (struct ledger_weight){.source = j->sources.items[i], .weight = weight};
		a->weights++;
	}
}

static void describe_attempt(struct ledger *l, const struct journal *j)
{
	struct ledger_attempt *a = &l->attempts.items[j->attempt];
	struct val o = j->open;
	if (!a->implied)
		return; /* another rank of it was there before */
	a->implied = false;
	a->kind = attempt_kind_of(o);
	a->launch = member_kept(l, o, "launch");
	a->code = member_kept(l, o, "code");
	a->versions = member_json(l, j, "versions");
	a->config = member_json(l, j, "config");
	a->from_step = member_whole(o, "from_step", LEDGER_NO_STEP);
	a->from_path = member_kept(l, o, "from_path");
	a->world = member_whole(o, "world_size", -1);
	a->dp = member_whole(o, "dp_size", -1);
	a->global_batch = member_whole(o, "global_batch", -1);
	a->micro_batch = member_whole(o, "micro_batch", -1);
	a->accumulation = member_whole(o, "accumulation", -1);
	a->workers = member_whole(o, "workers", -1);
	a->prefetch = member_whole(o, "prefetch", -1);
	a->drop_last =
		(int8_t)(member_whole(o, "drop_last", -1) > 0 ? 1
							      : member_whole(o, "drop_last", -1));
	a->has_seed = val_to_i64(val_get(o, "seed"), &a->seed);
	a->file = ledger_keep(l, slice_of(j->name));
	describe_weights(l, j, a);
	/* What was declared for the launch is not meant for a turn that its process takes later. */
	if (a->again == 0) {
		struct arena scratch;
		arena_init(&scratch, l->limits->memory);
		said_intent(l, j->name, &scratch, val_slice(val_get(o, "intent")), &a->intent);
	}
}

/* Columns. ---------------------------------------------------------------------------------------
 */

/* The columns of one STEP block, decoded. */
struct columns {
	uint64_t *keys;
	uint32_t *sources, *tokens;
	float *losses;
	uint32_t source; /* where it is one for all */
	ARRAY(uint32_t) micro;
	uint64_t step_tokens;
	double loss, lr, grad_norm;
	int64_t position;
	bool skipped, has_keys, has_sources, has_tokens, has_losses;
	size_t capacity;
	uint64_t *wide; /* one column before it is narrowed */
};

static uint64_t integer(const uint8_t *p, size_t width)
{
	uint64_t v = 0;
	for (size_t i = width; i-- > 0;)
		v = v << 8 | p[i];
	return v;
}

/* Decode n integers; false where the bytes do not make as many. */
static bool integers(
	const uint8_t *p, size_t bytes, unsigned encoding, size_t width, uint64_t *out, size_t n)
{
	if (n == 0 || (width != 1 && width != 2 && width != 4 && width != 8))
		return false;
	switch (encoding) {
	case JOURNAL_CONSTANT:
		if (bytes != width)
			return false;
		for (size_t i = 0; i < n; i++)
			out[i] = integer(p, width);
		return true;
	case JOURNAL_STRIDE:
		if (bytes != 16)
			return false;
		for (size_t i = 0; i < n; i++)
			out[i] = integer(p, 8) + i * integer(p + 8, 8);
		return true;
	case JOURNAL_DELTAS:
		if (bytes < 8 || (bytes - 8) / width != n - 1 || (bytes - 8) % width)
			return false;
		out[0] = integer(p, 8);
		for (size_t i = 1; i < n; i++) {
			uint64_t z = integer(p + 8 + (i - 1) * width, width);
			out[i] = out[i - 1] + (z >> 1 ^ (0 - (z & 1)));
		}
		return true;
	case JOURNAL_RAW:
		if (bytes / width != n || bytes % width)
			return false;
		for (size_t i = 0; i < n; i++)
			out[i] = integer(p + i * width, width);
		return true;
	default:
		return false;
	}
}

static double as_double(uint64_t bits)
{
	double v;
	memcpy(&v, &bits, sizeof v);
	return v;
}

static bool columns_room(struct columns *c, size_t n)
{
	if (n <= c->capacity)
		return true;
	uint64_t *keys = realloc(c->keys, n * sizeof *keys);
	c->keys = keys ? keys : c->keys;
	uint64_t *wide = realloc(c->wide, n * sizeof *wide);
	c->wide = wide ? wide : c->wide;
	uint32_t *sources = realloc(c->sources, n * sizeof *sources);
	c->sources = sources ? sources : c->sources;
	uint32_t *tokens = realloc(c->tokens, n * sizeof *tokens);
	c->tokens = tokens ? tokens : c->tokens;
	float *losses = realloc(c->losses, n * sizeof *losses);
	c->losses = losses ? losses : c->losses;
	if (!keys || !wide || !sources || !tokens || !losses)
		return false;
	c->capacity = n;
	return true;
}

static void columns_release(struct columns *c)
{
	free(c->keys);
	free(c->wide);
	free(c->sources);
	free(c->tokens);
	free(c->losses);
	array_release(&c->micro);
}

/* One column; false where it makes no sense. Names that are not known are passed over. */
static bool take_column(struct journal *j, struct columns *c, struct cursor *in, size_t rows)
{
	unsigned name = cursor_u8(in), encoding = cursor_u8(in), width = cursor_u8(in);
	cursor_u8(in);
	uint32_t bytes = cursor_le32(in);
	const uint8_t *p = cursor_take(in, bytes);
	if (!p)
		return false;
	uint64_t one = 0;
	if (name >= JOURNAL_STEP_TOKENS && !integers(p, bytes, encoding, width, &one, 1))
		return false;
	switch (name) {
	case JOURNAL_KEYS:
		c->has_keys = integers(p, bytes, encoding, width, c->keys, rows);
		return c->has_keys;
	case JOURNAL_SOURCES:
		if (!integers(p, bytes, encoding, width, c->wide, rows))
			return false;
		for (size_t i = 0; i < rows; i++) {
			if (c->wide[i] >= j->sources.count)
				return false;
			c->sources[i] = j->sources.items[c->wide[i]];
		}
		c->has_sources = true;
		return true;
	case JOURNAL_TOKENS:
		if (!integers(p, bytes, encoding, width, c->wide, rows))
			return false;
		for (size_t i = 0; i < rows; i++)
			c->tokens[i] = (uint32_t)c->wide[i];
		c->has_tokens = true;
		return true;
	case JOURNAL_LOSSES:
		if (!integers(p, bytes, encoding, width, c->wide, rows))
			return false;
		for (size_t i = 0; i < rows; i++) {
			uint32_t bits = (uint32_t)c->wide[i];
			memcpy(c->losses + i, &bits, sizeof bits);
		}
		c->has_losses = true;
		return true;
	case JOURNAL_STEP_TOKENS:
		c->step_tokens = one;
		return true;
	case JOURNAL_STEP_LOSS:
		c->loss = as_double(one);
		return true;
	case JOURNAL_STEP_LR:
		c->lr = as_double(one);
		return true;
	case JOURNAL_STEP_GRAD_NORM:
		c->grad_norm = as_double(one);
		return true;
	case JOURNAL_STEP_POSITION:
		c->position = one <= LEDGER_STEP_MAX ? (int64_t)one : -1;
		return true;
	case JOURNAL_STEP_SKIPPED:
		c->skipped = one != 0;
		return true;
	default:
		return true;
	}
}

/* The sizes of the step's micro-batches, which stand apart: their number is not that of the rows.
 */
static bool take_micro(
	struct columns *c, struct cursor in, unsigned columns, unsigned micro, uint64_t *sum)
{
	c->micro.count = 0;
	*sum = 0;
	for (unsigned i = 0; i < columns && cursor_ok(&in); i++) {
		unsigned name = cursor_u8(&in), encoding = cursor_u8(&in), width = cursor_u8(&in);
		cursor_u8(&in);
		uint32_t bytes = cursor_le32(&in);
		const uint8_t *p = cursor_take(&in, bytes);
		if (!p || name != JOURNAL_MICRO)
			continue;
		uint64_t *sizes = calloc(micro + 1, sizeof *sizes);
		bool ok = sizes && integers(p, bytes, encoding, width, sizes, micro);
		for (unsigned k = 0; ok && k < micro; k++) {
			uint32_t *slot = array_push(&c->micro, SIZE_MAX);
			ok = slot && sizes[k] <= UINT32_MAX;
			if (ok)
				*sum += *slot = (uint32_t)sizes[k];
		}
		free(sizes);
		return ok;
	}
	return true;
}

/* Steps. -----------------------------------------------------------------------------------------
 */

/* Hand rows [from, from + n) of the block to the ledger as one line. */
static int add_rows(struct ledger *l, struct journal *j, const struct columns *c, int64_t step,
	int32_t epoch, size_t micro, size_t from, size_t n, struct error *e)
{
	struct ledger_line line = ledger_line_empty();
	line.attempt = j->attempt;
	line.step = step;
	line.dp = (uint32_t)j->dp;
	line.micro = (uint16_t)micro;
	line.epoch = epoch;
	line.kind = j->kind;
	line.dataset = j->dataset;
	line.samples = true;
	line.n = n;
	line.keys = c->keys + from;
	line.sources = c->has_sources ? c->sources + from : NULL;
	line.tokens = c->has_tokens ? c->tokens + from : NULL;
	line.losses = c->has_losses ? c->losses + from : NULL;
	line.tokens_all = from == 0 ? c->step_tokens : 0;
	line.loss = (float)c->loss;
	line.lr = (float)c->lr;
	line.grad_norm = (float)c->grad_norm;
	line.position = c->position;
	line.applied = !c->skipped;
	return ledger_add_line(l, &line, e);
}

/* A process that goes back by itself, to skip a spike, begins an attempt without a new launch. */
static int begin_again(struct ledger *l, struct journal *j, int64_t step, struct error *e)
{
	j->again++;
	int status = ledger_attempt_again(l, j->number, j->again, &j->attempt, e);
	if (status != RP_OK)
		return status;
	describe_attempt(l, j);
	l->attempts.items[j->attempt].from_step = step - 1;
	return RP_OK;
}

static int take_step(struct ledger *l, struct journal *j, const struct head *h, const uint8_t *p,
	struct columns *c, struct error *e)
{
	struct cursor in = cursor_over(p, h->payload);
	int64_t step = (int64_t)cursor_le64(&in);
	uint64_t first_row = cursor_le64(&in), micro_rows;
	cursor_take(&in, 24); /* the digests, which the ledger makes anew over all ranks */
	int32_t epoch = (int32_t)cursor_le32(&in);
	unsigned micro = cursor_le16(&in), columns = cursor_le16(&in);
	if (step < 0 || step > LEDGER_STEP_MAX || h->rows > JOURNAL_ROWS_MAX) {
		ledger_lost(
			l, j->name, 0, j->offset, "a block of a step or with rows that cannot be");
		return RP_OK;
	}
	if (!columns_room(c, (size_t)h->rows + 1))
		return fail(e, RP_E_MEMORY, j->offset, "no memory for a step of %s", j->name);
	c->has_keys = c->has_sources = c->has_tokens = c->has_losses = c->skipped = false;
	c->step_tokens = 0;
	c->loss = c->lr = c->grad_norm = NAN;
	c->position = -1;
	bool ok = take_micro(c, in, columns, micro, &micro_rows);
	for (unsigned i = 0; ok && i < columns; i++)
		ok = take_column(j, c, &in, h->rows);
	if (!ok || !cursor_ok(&in) || (h->rows > 0 && !c->has_keys)) {
		ledger_lost(l, j->name, 0, j->offset, "a step's columns make no sense");
		return RP_OK;
	}
	if (first_row > j->next_row)
		ledger_note(l, j->name, 0,
			"%llu samples before step %lld were lost with their blocks",
			(unsigned long long)(first_row - j->next_row), (long long)step);
	j->next_row = first_row + h->rows;
	if (step < j->step) {
		int status = begin_again(l, j, step, e);
		if (status != RP_OK)
			return status;
	}
	j->step = step;
	if (c->micro.count == 0 || micro_rows != h->rows)
		return add_rows(l, j, c, step, epoch, 0, 0, h->rows, e);
	size_t from = 0;
	for (size_t i = 0; i < c->micro.count; i++) {
		int status = add_rows(l, j, c, step, epoch, i, from, c->micro.items[i], e);
		if (status != RP_OK)
			return status;
		from += c->micro.items[i];
	}
	return RP_OK;
}

static bool same_checkpoint(const void *of, uint32_t row, const void *key)
{
	const struct ledger *l = of;
	const struct ledger_checkpoint *a = &l->checkpoints.items[row], *b = key;
	return a->attempt == b->attempt && a->step == b->step;
}

static int take_checkpoint(struct ledger *l, struct journal *j, struct val o, struct error *e)
{
	int64_t step = member_whole(o, "checkpoint", LEDGER_NO_STEP);
	if (step == LEDGER_NO_STEP)
		return RP_OK;
	struct ledger_checkpoint said = {.attempt = j->attempt, .step = step};
	uint64_t hash = lookup_mix(lookup_mix((uint64_t)step) ^ j->attempt);
	/* Every rank says so. */
	if (lookup_find(j->saved, hash, same_checkpoint, l, &said) != LOOKUP_NONE)
		return RP_OK;
	struct ledger_checkpoint *at = array_push(&l->checkpoints, l->limits->memory / sizeof *at);
	if (!at || !lookup_add(j->saved, hash, (uint32_t)l->checkpoints.count - 1))
		return fail(e, RP_E_MEMORY, j->offset, "no memory for checkpoints");
	said.position = member_whole(o, "position", -1);
	said.path = member_kept(l, o, "path");
	said.digest = member_kept(l, o, "digest");
	*at = said;
	return RP_OK;
}

static void take_gap(struct ledger *l, struct journal *j, const struct head *h, const uint8_t *p)
{
	struct cursor in = cursor_over(p, h->payload);
	long long first = (long long)cursor_le64(&in), last = (long long)cursor_le64(&in);
	unsigned long long rows = cursor_le64(&in);
	unsigned calls = cursor_le32(&in);
	int error = (int)cursor_le32(&in);
	char what[400], steps[60], samples[40] = "", words[80] = "";
	if (!cursor_ok(&in))
		return;
	size_t n = h->payload - JOURNAL_GAP_BYTES;
	n = n < JOURNAL_GAP_WORDS ? n : JOURNAL_GAP_WORDS;
	const char *why = (const char *)cursor_take(&in, n);
	if (rows)
		snprintf(samples, sizeof samples, " (%llu sample%s)", rows, rows == 1 ? "" : "s");
	if (first == last)
		snprintf(steps, sizeof steps, "step %lld", first);
	else
		snprintf(steps, sizeof steps, "steps %lld to %lld", first, last);
	const char *system = error ? strerror_r(error, words, sizeof words) : "";
	snprintf(what, sizeof what, "the recorder could not write %u call%s of %s%s: %s%s%.*s",
		calls, calls == 1 ? "" : "s", steps, samples, system, error && n ? ": " : "",
		(int)n, why ? why : "");
	ledger_lost(l, j->name, 0, j->offset, what);
}

/* How the process ended, and what only the recorder can know: that a forked one called it too. */
static void take_close(struct ledger *l, struct journal *j, struct val o)
{
	struct ledger_attempt *a = &l->attempts.items[j->attempt];
	int64_t forked = member_whole(o, "forked_calls", 0);
	char what[160];

	a->end = member_kept(l, o, "end");
	a->end_step = j->step;
	if (forked == 0)
		return;
	snprintf(what, sizeof what,
		"%lld call%s came from forked processes, which the recorder cannot write for",
		(long long)forked, forked == 1 ? "" : "s");
	ledger_lost(l, j->name, 0, j->offset, what);
}

static int take_block(struct ledger *l, struct journal *j, const struct head *h, const uint8_t *p,
	struct columns *c, struct error *e)
{
	struct val o;
	switch (h->type) {
	case JOURNAL_STEP:
		return take_step(l, j, h, p, c, e);
	case JOURNAL_GAP:
		take_gap(l, j, h, p);
		return RP_OK;
	case JOURNAL_EVENT:
		return object_of(l, j, p, h->payload, &o) ? take_checkpoint(l, j, o, e) : RP_OK;
	case JOURNAL_CLOSE:
		j->closed = true;
		if (object_of(l, j, p, h->payload, &o))
			take_close(l, j, o);
		return RP_OK;
	default:
		if (!(h->flags & JOURNAL_SKIP_IF_UNKNOWN))
			ledger_lost(
				l, j->name, 0, j->offset, "a block of a kind that is not known");
		return RP_OK;
	}
}

/*
 * After a block that does not verify: the next aligned offset where one does, or the file's end.
 * What lies between is lost, unless it is zeros to the end, which were never written.
 */
static int resynchronise(struct ledger *l, struct journal *j, struct error *e)
{
	uint64_t from = j->offset, at = from;
	bool zeros = true;
	struct head h;
	for (; at + JOURNAL_HEAD_BYTES <= j->source.size; at += 8) {
		const uint8_t *p = bytes_at(j, at, JOURNAL_HEAD_BYTES, e);
		if (!p)
			return e->status;
		zeros &= integer(p, 8) == 0;
		if (at > from && integer(p, 4) == JOURNAL_MAGIC && head_at(j, at, j->key, &h, e) &&
			payload_at(j, at, j->key, &h, e))
			break;
	}
	bool end = at + JOURNAL_HEAD_BYTES > j->source.size;
	if (end)
		at = j->source.size;
	if (end && zeros)
		ledger_note(l, j->name, 0, "%llu bytes at the end were never written",
			(unsigned long long)(at - from));
	else
		ledger_lost(l, j->name, 0, from,
			end ? "the journal's last block is torn" : "a damaged part of the journal");
	j->offset = at;
	return e->status;
}

static int read_blocks(struct ledger *l, struct journal *j, struct columns *c, struct error *e)
{
	int status = RP_OK;
	while (status == RP_OK && j->offset < j->source.size) {
		struct head h;
		const uint8_t *p = NULL;
		if (head_at(j, j->offset, j->key, &h, e))
			p = payload_at(j, j->offset, j->key, &h, e);
		if (!p) {
			status = e->status ? e->status : resynchronise(l, j, e);
			continue;
		}
		uint64_t bytes = block_bytes(&h);
		l->lines++;
		if (h.sequence < j->sequence) {
			ledger_note(l, j->name, 0, "block %llu is there twice",
				(unsigned long long)h.sequence);
		} else {
			if (h.sequence > j->sequence)
				ledger_note(l, j->name, 0,
					"%llu blocks are missing before byte %llu",
					(unsigned long long)(h.sequence - j->sequence),
					(unsigned long long)j->offset);
			else if (h.before != j->before)
				ledger_note(l, j->name, 0,
					"the block at byte %llu does not follow the one before it: "
					"spliced",
					(unsigned long long)j->offset);
			j->sequence = h.sequence + 1;
			j->before = h.hash;
			status = take_block(l, j, &h, p, c, e);
		}
		j->offset += bytes;
	}
	return status;
}

/* 10^4 ranks must not need 10^4 descriptors and windows: a file is open while it is read. */
static int open_file(struct journal *j, const char *path, struct error *e)
{
	j->start = j->held = 0;
	return source_open(&j->source, AT_FDCWD, path, e);
}

static void close_file(struct journal *j)
{
	source_close(&j->source);
	free(j->window);
	j->window = NULL;
	j->capacity = j->held = 0;
}

static int read_file(struct ledger *l, struct journal *j, struct columns *c, struct error *e)
{
	int status = open_file(j, j->path, e);
	if (status == RP_OK)
		status = read_blocks(l, j, c, e);
	close_file(j);
	return status;
}

/* What a process recorded before this segment is in files that are not there. */
static void lost_segments(struct ledger *l, const struct journal *j)
{
	char what[160];
	int n = snprintf(what, sizeof what,
		"the files before this one (segment %lld) are missing, with %llu samples",
		(long long)j->segment, (unsigned long long)j->next_row);

	ledger_lost(l, j->name, 0, 0, ledger_keep(l, (struct slice){what, (size_t)n}));
}

static int read_launch(
	struct ledger *l, struct launch *a, int64_t number, struct columns *c, struct error *e)
{
	int status = RP_OK;
	for (size_t i = 0; i < a->files.count && status == RP_OK; i++) {
		struct journal *j = a->files.items[i], *last = i ? a->files.items[i - 1] : NULL;
		j->number = number;
		j->step = INT64_MIN;
		bool goes_on = last && slice_eq(last->uuid, j->uuid);
		if (goes_on) {
			j->step = last->step;
			j->again = last->again;
			if (j->sequence > last->sequence + 1)
				ledger_note(l, j->name, 0,
					"%llu blocks before this segment are missing",
					(unsigned long long)(j->sequence - last->sequence - 1));
		} else if (j->segment > 1) {
			lost_segments(l, j);
		}
		status = ledger_attempt_again(l, number, j->again, &j->attempt, e);
		if (status != RP_OK)
			break;
		status = describe_dataset(l, j, e);
		describe_attempt(l, j);
		/* Tensor- and pipeline-parallel ranks may record the same place: one is enough. */
		if (status == RP_OK && !goes_on &&
			ledger_has_rank(l, j->attempt, (uint32_t)j->dp)) {
			ledger_note(l, j->name, 0,
				"data-parallel rank %lld is recorded already: left out",
				(long long)j->dp);
			continue;
		}
		if (status == RP_OK)
			status = read_file(l, j, c, e);
		bool followed =
			i + 1 < a->files.count && slice_eq(a->files.items[i + 1]->uuid, j->uuid);
		if (status == RP_OK && !j->closed && !followed)
			ledger_note(l, j->name, 0,
				"no end was recorded: the process was killed, or still runs");
	}
	return status;
}

int journal_read(struct ledger *l, const char *const *paths, const char *const *names, size_t count,
	struct error *e)
{
	struct journal *all = calloc(count + 1, sizeof *all),
		       **sound = calloc(count + 1, sizeof *sound);
	struct launches launches = {0};
	struct columns columns = {0};
	struct lookup saved = {0};
	size_t opened = 0, good = 0;
	int status = all && sound ? RP_OK
				  : fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for journals");

	for (; status == RP_OK && opened < count; opened++) {
		struct journal *j = &all[opened];
		arena_init(&j->arena, l->limits->memory);
		j->path = paths[opened];
		j->name = names[opened];
		j->saved = &saved;
		status = open_file(j, j->path, e);
		if (status == RP_OK)
			status = read_open(l, j, e);
		if (j->sound)
			sound[good++] = j;
		close_file(j);
	}
	if (status == RP_OK && !group(sound, good, &launches))
		status = fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for journals");
	for (size_t i = 0; i < launches.list.count && status == RP_OK; i++)
		status = read_launch(l, &launches.list.items[i], (int64_t)i + 1, &columns, e);

	for (size_t i = 0; i < launches.list.count; i++)
		array_release(&launches.list.items[i].files);
	array_release(&launches.list);
	for (size_t i = 0; i < opened; i++) {
		arena_release(&all[i].arena);
		array_release(&all[i].sources);
	}
	columns_release(&columns);
	lookup_release(&saved);
	free(all);
	free(sound);
	return status;
}

static bool probe(const char *head, size_t n, bool named)
{
	(void)named;
	return journal_probe((struct slice){head, n});
}

const struct reader reader_journal = {
	.name = "journal", .opens_path = true, .probe = probe, .read_together = journal_read};
