/* SPDX-License-Identifier: MIT */
#include "report/write_log.h"

#include <math.h>
#include <stdlib.h>

#include "base/text.h"
#include "report/json_writer.h"

#define PIECE_BYTES 65536u
#define PIECE_MAX ((size_t)1 << 31)

struct log_writer {
	const struct ledger *l;
	struct sample_buffer *buffer;
	struct strbuf out;
	text_write_fn *write;
	void *context;
	struct error *e;
	uint32_t dataset; /* of the newest header; LEDGER_NONE: none yet */
	size_t checkpoint;
	bool csv, csv_keys, csv_epoch, csv_micro, csv_worker;
	/* The samples of a part. */
	ARRAY(uint64_t) keys;
	ARRAY(uint16_t) spaces;
	ARRAY(uint32_t) tokens;
	ARRAY(float) losses;
};

/* Numbers -------------------------------------------------------------------------------------- */

static void add_u64(struct strbuf *b, uint64_t v)
{
	char text[20];
	size_t at = sizeof text;

	do
		text[--at] = (char)('0' + v % 10);
	while ((v /= 10) > 0);
	strbuf_add(b, text + at, sizeof text - at);
}

static void add_hex(struct strbuf *b, uint64_t v)
{
	static const char digits[] = "0123456789abcdef";
	char text[16];

	for (size_t i = 16; i-- > 0; v >>= 4)
		text[i] = digits[v & 15];
	strbuf_add(b, text, sizeof text);
}

void log_add_float(struct strbuf *b, float v)
{
	size_t start = b->n;
	double back;

	if (isnan(v)) {
		strbuf_add_text(b, "null");
		return;
	}
	for (int digits = 6; digits <= 9; digits++) {
		strbuf_truncate(b, start);
		text_add_rounded(b, (double)v, digits);
		struct slice text = {b->p + start, b->n - start};
		if (b->failed || (text_parse_double(text, &back) && (float)back == v))
			return;
	}
}

static void add_member(struct log_writer *w, const char *name)
{
	strbuf_add_text(&w->out, ",\"");
	strbuf_add_text(&w->out, name);
	strbuf_add_text(&w->out, "\":");
}

static void add_quoted(struct log_writer *w, const char *text)
{
	struct json_writer json;

	json_writer_init(&json, &w->out, false);
	json_text(&json, text);
}

static int flush(struct log_writer *w, bool all)
{
	if (w->out.failed)
		return fail(w->e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for a line of the log");
	if (w->out.n == 0 || (w->out.n < PIECE_BYTES && !all))
		return RP_OK;
	int status = w->write(w->context, strbuf_slice(&w->out), w->e);
	strbuf_clear(&w->out);
	return status;
}

/* Header --------------------------------------------------------------------------------------- */

static void text_member(struct json_writer *w, const char *key, const char *text)
{
	if (!text[0])
		return;
	json_key(w, key);
	json_text(w, text);
}

static void whole_member(struct json_writer *w, const char *key, int64_t v)
{
	if (v < 0)
		return;
	json_key(w, key);
	json_i64(w, v);
}

static void real_member(struct json_writer *w, const char *key, double v)
{
	if (isnan(v))
		return;
	json_key(w, key);
	json_double(w, v);
}

static void write_sources(struct json_writer *w, const struct ledger *l)
{
	json_key(w, "sources");
	json_open_object(w);
	for (size_t i = 0; i < l->sources.count; i++) {
		const struct ledger_source *s = &l->sources.items[i];
		json_key(w, s->name);
		json_open_object(w);
		if (s->size > 0) {
			json_key(w, "size");
			json_u64(w, s->size);
		}
		real_member(w, "weight", s->weight);
		real_member(w, "epochs", s->epochs);
		json_close_object(w);
	}
	json_close_object(w);
}

static void write_dataset(struct json_writer *w, const struct ledger *l, uint32_t index)
{
	static const char *const sampling[] = {"without", "with", "stream"};
	const struct ledger_dataset *d = &l->datasets.items[index];

	json_key(w, "dataset");
	json_open_object(w);
	text_member(w, "name", d->name);
	text_member(w, "fingerprint", d->fingerprint);
	text_member(w, "unit", d->unit);
	text_member(w, "order", d->order);
	if (d->size > 0) {
		json_key(w, "size");
		json_u64(w, d->size);
	}
	text_member(w, "sampling", sampling[d->sampling]);
	if (l->sources.count > 0)
		write_sources(w, l);
	json_close_object(w);
	if (d->repeat > 1 || d->repeat < 1)
		real_member(w, "repeat", d->repeat);
}

static void write_weights(
	struct json_writer *w, const struct ledger *l, uint32_t first, uint32_t count)
{
	if (count == 0)
		return;
	json_key(w, "weights");
	json_open_object(w);
	for (uint32_t i = 0; i < count; i++) {
		const struct ledger_weight *k = &l->weights.items[first + i];
		real_member(w, l->sources.items[k->source].name, k->weight);
	}
	json_close_object(w);
}

static void write_stages(struct json_writer *w, const struct ledger *l)
{
	if (l->stages.count == 0)
		return;
	json_key(w, "stages");
	json_open_array(w);
	for (size_t i = 0; i < l->stages.count; i++) {
		const struct ledger_stage *s = &l->stages.items[i];
		json_open_object(w);
		text_member(w, "name", s->name);
		whole_member(w, "from", s->from);
		if (s->until < INT64_MAX)
			whole_member(w, "until", s->until);
		write_weights(w, l, s->first_weight, s->weights);
		json_close_object(w);
	}
	json_close_array(w);
}

static void write_header(struct log_writer *w, uint32_t dataset)
{
	struct json_writer json;

	if (w->dataset == dataset)
		return;
	w->dataset = dataset;
	json_writer_init(&json, &w->out, false);
	json_open_object(&json);
	text_member(&json, "reprise", "ledger/1");
	text_member(&json, "run", w->l->run);
	if (dataset < w->l->datasets.count)
		write_dataset(&json, w->l, dataset);
	if (w->l->max_steps >= 0 || w->l->stages.count > 0) {
		json_key(&json, "plan");
		json_open_object(&json);
		whole_member(&json, "max_steps", w->l->max_steps);
		write_stages(&json, w->l);
		json_close_object(&json);
	}
	json_close_object(&json);
	strbuf_add_char(&w->out, '\n');
}

/* Attempts ------------------------------------------------------------------------------------- */

static void change_whole(
	struct json_writer *w, const char *key, bool declared, int64_t from, int64_t to)
{
	if (!declared)
		return;
	json_key(w, key);
	if (to == INT64_MIN) {
		json_bool(w, true);
	} else if (from == INT64_MIN) {
		json_i64(w, to);
	} else {
		json_open_array(w);
		json_i64(w, from);
		json_i64(w, to);
		json_close_array(w);
	}
}

static void change_real(
	struct json_writer *w, const char *key, bool declared, double from, double to)
{
	if (!declared)
		return;
	json_key(w, key);
	if (isnan(to)) {
		json_bool(w, true);
	} else if (isnan(from)) {
		json_double(w, to);
	} else {
		json_open_array(w);
		json_double(w, from);
		json_double(w, to);
		json_close_array(w);
	}
}

static void flag(struct json_writer *w, const char *key, bool declared)
{
	if (!declared)
		return;
	json_key(w, key);
	json_bool(w, true);
}

static void write_skips(
	struct json_writer *w, const struct ledger *l, const struct ledger_intent *i)
{
	if (i->skips == 0)
		return;
	json_key(w, "skip");
	json_open_array(w);
	for (uint32_t k = 0; k < i->skips; k++) {
		const struct ledger_skip *s = &l->skips.items[i->first_skip + k];
		json_open_object(w);
		text_member(w, "unit", s->samples ? "sample" : "step");
		whole_member(w, "from", s->from);
		whole_member(w, "to", s->to);
		text_member(w, "of", s->new_order ? "new" : "dead");
		json_close_object(w);
	}
	json_close_array(w);
}

static void write_intent(
	struct json_writer *w, const struct ledger *l, const struct ledger_intent *i)
{
	if (!i->any)
		return;
	json_key(w, "intent");
	json_open_object(w);
	change_whole(w, "seed", i->seed, i->seed_from, i->seed_to);
	change_real(w, "lr", i->lr, i->lr_from, i->lr_to);
	change_whole(w, "batch", i->batch, i->batch_from, i->batch_to);
	flag(w, "weights", i->weights);
	flag(w, "order", i->order);
	flag(w, "world", i->world);
	flag(w, "code", i->code);
	flag(w, "rewarmup", i->rewarmup);
	write_skips(w, l, i);
	json_close_object(w);
}

static void write_from(struct json_writer *w, const struct ledger_attempt *a)
{
	whole_member(w, "from_step", a->from_step);
	if (a->from_attempt < 0 && !a->from_path[0] && !a->from_digest[0])
		return;
	json_key(w, "from");
	json_open_object(w);
	whole_member(w, "attempt", a->from_attempt);
	text_member(w, "path", a->from_path);
	text_member(w, "digest", a->from_digest);
	json_close_object(w);
}

static void raw_member(struct json_writer *w, const char *key, const char *json)
{
	if (!json[0])
		return;
	json_key(w, key);
	json_raw(w, json);
}

static void write_attempt(struct log_writer *w, const struct ledger_attempt *a)
{
	static const char *const kinds[] = {"train", "rehearsal", "reference", "validation"};
	struct json_writer json;

	json_writer_init(&json, &w->out, false);
	json_open_object(&json);
	json_key(&json, "attempt");
	json_i64(&json, a->number);
	write_from(&json, a);
	text_member(&json, "launch", a->launch);
	if (a->kind != ATTEMPT_TRAIN)
		text_member(&json, "kind", kinds[a->kind]);
	whole_member(&json, "world_size", a->world);
	whole_member(&json, "dp_size", a->dp);
	whole_member(&json, "global_batch", a->global_batch);
	whole_member(&json, "micro_batch", a->micro_batch);
	whole_member(&json, "accumulation", a->accumulation);
	whole_member(&json, "epoch", a->epoch);
	if (a->has_seed) {
		json_key(&json, "seed");
		json_i64(&json, a->seed);
	}
	text_member(&json, "code", a->code);
	raw_member(&json, "versions", a->versions);
	whole_member(&json, "workers", a->workers);
	whole_member(&json, "prefetch", a->prefetch);
	if (a->drop_last >= 0) {
		json_key(&json, "drop_last");
		json_bool(&json, a->drop_last);
	}
	write_weights(&json, w->l, a->first_weight, a->weights);
	raw_member(&json, "config", a->config);
	write_intent(&json, w->l, &a->intent);
	json_close_object(&json);
	strbuf_add_char(&w->out, '\n');
}

/* Checkpoints of an attempt up to a step. */
static void write_checkpoints(struct log_writer *w, uint32_t attempt, int64_t step)
{
	const struct ledger *l = w->l;

	for (; w->checkpoint < l->checkpoints.count; w->checkpoint++) {
		const struct ledger_checkpoint *c = &l->checkpoints.items[w->checkpoint];
		struct json_writer json;
		if (c->attempt > attempt || (c->attempt == attempt && c->step > step))
			return;
		json_writer_init(&json, &w->out, false);
		json_open_object(&json);
		json_key(&json, "checkpoint");
		json_i64(&json, c->step);
		if (l->attempts.items[c->attempt].implied) /* below 0: nothing */
			whole_member(&json, "attempt", l->attempts.items[c->attempt].number);
		text_member(&json, "path", c->path);
		whole_member(&json, "position", c->position);
		text_member(&json, "digest", c->digest);
		json_close_object(&json);
		strbuf_add_char(&w->out, '\n');
	}
}

static void write_end(struct log_writer *w, const struct ledger_attempt *a)
{
	struct json_writer json;

	if (!a->end[0])
		return;
	json_writer_init(&json, &w->out, false);
	json_open_object(&json);
	text_member(&json, "end", a->end);
	if (a->implied)
		whole_member(&json, "attempt", a->number);
	whole_member(&json, "step", a->end_step);
	json_close_object(&json);
	strbuf_add_char(&w->out, '\n');
}

/* Samples -------------------------------------------------------------------------------------- */

/* Have the samples of a part at hand. */
static int load(struct log_writer *w, uint64_t row, size_t n)
{
	struct sample_source source = ledger_samples(w->l);
	struct sample_block b;

	if (!array_reserve(&w->keys, n + 1, SIZE_MAX) ||
		!array_reserve(&w->spaces, n + 1, SIZE_MAX) ||
		!array_reserve(&w->tokens, n + 1, SIZE_MAX) ||
		!array_reserve(&w->losses, n + 1, SIZE_MAX))
		return fail(
			w->e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for the samples of a step");
	for (size_t at = 0; at < n; at += b.n) {
		if (source.read(&source, row + at, n - at, w->buffer, &b, w->e) < 0)
			return w->e->status;
		memcpy(w->keys.items + at, b.keys, b.n * sizeof *b.keys);
		for (size_t i = 0; i < b.n; i++) {
			w->spaces.items[at + i] = b.spaces ? b.spaces[i] : 0;
			w->tokens.items[at + i] = b.tokens ? b.tokens[i] : 0;
			w->losses.items[at + i] = b.losses ? b.losses[i] : NAN;
		}
	}
	return RP_OK;
}

static void write_keys(struct log_writer *w, uint8_t kind, const uint64_t *keys, size_t n)
{
	add_member(w, kind == KEY_ID ? "ids" : "keys");
	strbuf_add_char(&w->out, '[');
	for (size_t i = 0; i < n; i++) {
		if (i > 0)
			strbuf_add_char(&w->out, ',');
		if (kind == KEY_ID) {
			add_u64(&w->out, keys[i]);
		} else {
			strbuf_add_char(&w->out, '"');
			add_hex(&w->out, keys[i]);
			strbuf_add_char(&w->out, '"');
		}
	}
	strbuf_add_char(&w->out, ']');
}

static void write_source(struct log_writer *w, uint16_t space)
{
	uint32_t source = w->l->spaces.items[space].source;

	if (source == LEDGER_NONE)
		strbuf_add_text(&w->out, "null");
	else
		add_quoted(w, w->l->sources.items[source].name);
}

static void write_source_array(struct log_writer *w, const uint16_t *spaces, size_t n)
{
	bool one = true;

	for (size_t i = 1; one && i < n; i++)
		one = spaces[i] == spaces[0];
	if (one && w->l->spaces.items[spaces[0]].source == LEDGER_NONE)
		return;
	add_member(w, "source");
	if (one) {
		write_source(w, spaces[0]);
		return;
	}
	for (size_t i = 0; i < n; i++) {
		strbuf_add_char(&w->out, i ? ',' : '[');
		write_source(w, spaces[i]);
	}
	strbuf_add_char(&w->out, ']');
}

/* The sum alone, where it is spread as a reader spreads it. */
static void write_tokens(struct log_writer *w, const uint32_t *tokens, size_t n)
{
	uint64_t sum = 0;
	bool spread = true;

	for (size_t i = 0; i < n; i++)
		sum += tokens[i];
	if (sum == 0)
		return;
	for (size_t i = 0; spread && i < n; i++)
		spread = tokens[i] == sum / n + (i < sum % n);
	add_member(w, "tokens");
	if (spread) {
		add_u64(&w->out, sum);
		return;
	}
	for (size_t i = 0; i < n; i++) {
		strbuf_add_char(&w->out, i ? ',' : '[');
		add_u64(&w->out, tokens[i]);
	}
	strbuf_add_char(&w->out, ']');
}

/* Whether any sample has a loss of its own. */
static bool has_losses(const float *losses, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!isnan(losses[i]))
			return true;
	return false;
}

static void write_losses(struct log_writer *w, const float *losses, size_t n)
{
	add_member(w, "loss");
	for (size_t i = 0; i < n; i++) {
		strbuf_add_char(&w->out, i ? ',' : '[');
		log_add_float(&w->out, losses[i]);
	}
	strbuf_add_char(&w->out, ']');
}

static void float_member(struct log_writer *w, const char *name, float v)
{
	if (isnan(v))
		return;
	add_member(w, name);
	log_add_float(&w->out, v);
}

/* What the step says once. */
static void write_facts(struct log_writer *w, const struct ledger_step *s, bool own_losses)
{
	if (!own_losses)
		float_member(w, "loss", s->loss);
	float_member(w, "lr", s->lr);
	float_member(w, "grad_norm", s->grad_norm);
	if (s->position >= 0) {
		add_member(w, "position");
		add_u64(&w->out, (uint64_t)s->position);
	}
	if (!s->applied)
		strbuf_add_text(&w->out, ",\"applied\":false");
	if (s->first_count == LEDGER_NONE)
		return;
	for (size_t i = 0; i < w->l->count_names.count; i++) {
		if (i == 0)
			add_member(w, "counts");
		strbuf_add_char(&w->out, i ? ',' : '{');
		add_quoted(w, w->l->count_names.items[i]);
		strbuf_add_char(&w->out, ':');
		text_add_double(&w->out, w->l->counts.items[s->first_count + i]);
	}
	if (w->l->count_names.count > 0)
		strbuf_add_char(&w->out, '}');
}

static void begin_step(struct log_writer *w, const struct ledger_step *s)
{
	const struct ledger_attempt *a = &w->l->attempts.items[s->attempt];

	strbuf_add_text(&w->out, "{\"step\":");
	add_u64(&w->out, (uint64_t)s->step);
	/* An attempt that no line began goes on having none. Below 0: lines before the first one.
	 */
	if (a->implied && a->number >= 0) {
		add_member(w, "attempt");
		strbuf_printf(&w->out, "%lld", (long long)a->number);
	}
	if (s->epoch >= 0) {
		add_member(w, "epoch");
		add_u64(&w->out, (uint64_t)s->epoch);
	}
}

/* A stretch of samples that one line can hold: one data set, one kind of key. */
static size_t one_line(const struct log_writer *w, size_t from, size_t n)
{
	const struct ledger_space *spaces = w->l->spaces.items, *a = &spaces[w->spaces.items[from]];
	size_t end = from + 1;

	while (end < n && spaces[w->spaces.items[end]].dataset == a->dataset &&
		spaces[w->spaces.items[end]].kind == a->kind)
		end++;
	return end;
}

static void write_place(struct log_writer *w, const struct ledger_part *p)
{
	add_member(w, "dp");
	add_u64(&w->out, p->dp);
	if (p->micro > 0) {
		add_member(w, "micro");
		add_u64(&w->out, p->micro);
	}
	if (p->worker != UINT16_MAX) {
		add_member(w, "worker");
		add_u64(&w->out, p->worker);
	}
}

static int write_part(struct log_writer *w, const struct ledger_step *s,
	const struct ledger_part *p, uint64_t row, bool first, bool own)
{
	size_t from = 0;

	if (load(w, row, p->n) < 0)
		return w->e->status;
	do {
		size_t end = p->n ? one_line(w, from, p->n) : 0, n = end - from;
		uint16_t space = p->n ? w->spaces.items[from] : 0;
		uint8_t kind = p->n ? w->l->spaces.items[space].kind : KEY_ID;
		if (p->n > 0)
			write_header(w, w->l->spaces.items[space].dataset);
		begin_step(w, s);
		write_place(w, p);
		write_keys(w, kind, w->keys.items + from, n);
		if (n > 0) {
			write_source_array(w, w->spaces.items + from, n);
			write_tokens(w, w->tokens.items + from, n);
			if (has_losses(w->losses.items + from, n))
				write_losses(w, w->losses.items + from, n);
		}
		if (first)
			write_facts(w, s, own);
		strbuf_add_text(&w->out, "}\n");
		first = false;
		from = end;
	} while (from < p->n);
	return flush(w, false);
}

/* Whether the step's loss comes from losses of samples. */
static bool step_has_losses(const struct ledger *l, const struct ledger_step *s)
{
	for (uint32_t i = 0; i < s->shares; i++)
		if (l->shares.items[s->first_share + i].with_loss > 0)
			return true;
	return false;
}

static int write_step(struct log_writer *w, const struct ledger_step *s)
{
	const struct ledger_geometry *g = &w->l->geometries.items[s->geometry];
	bool own = step_has_losses(w->l, s);
	uint64_t row = s->row;

	if (g->parts == 0) {
		begin_step(w, s);
		write_facts(w, s, own);
		strbuf_add_text(&w->out, "}\n");
		return flush(w, false);
	}
	for (uint32_t i = 0; i < g->parts; i++) {
		const struct ledger_part *p = &w->l->parts.items[g->first + i];
		if (write_part(w, s, p, row, i == 0, own) < 0)
			return w->e->status;
		row += p->n;
	}
	return RP_OK;
}

static int write_jsonl(struct log_writer *w)
{
	const struct ledger *l = w->l;

	write_header(w, 0);
	for (uint32_t i = 0; i < l->attempts.count; i++) {
		const struct ledger_attempt *a = &l->attempts.items[i];
		if (!a->implied)
			write_attempt(w, a);
		for (uint32_t k = 0; k < a->steps; k++) {
			const struct ledger_step *s = &l->steps.items[a->first + k];
			write_checkpoints(w, i, s->step - 1);
			if (write_step(w, s) < 0)
				return w->e->status;
		}
		write_checkpoints(w, i, INT64_MAX);
		write_end(w, a);
	}
	return flush(w, true);
}

/* CSV ------------------------------------------------------------------------------------------ */

static int choose_columns(struct log_writer *w)
{
	const struct ledger *l = w->l;

	for (size_t i = 0; i < l->spaces.count; i++) {
		bool keys = l->spaces.items[i].kind != KEY_ID;
		if (i > 0 && keys != w->csv_keys)
			return fail(w->e, RP_E_UNSUPPORTED, ERROR_NO_OFFSET,
				"the log has ids beside keys, and CSV has room for one of them");
		w->csv_keys = keys;
	}
	for (size_t i = 0; i < l->steps.count; i++)
		w->csv_epoch |= l->steps.items[i].epoch >= 0;
	for (size_t i = 0; i < l->parts.count; i++) {
		w->csv_micro |= l->parts.items[i].micro > 0;
		w->csv_worker |= l->parts.items[i].worker != UINT16_MAX;
	}
	strbuf_printf(&w->out, "attempt,step,dp%s%s%s,%s%s%s%s\n", w->csv_micro ? ",micro" : "",
		w->csv_worker ? ",worker" : "", w->csv_epoch ? ",epoch" : "",
		w->csv_keys ? "key" : "id", l->sources.count > 0 ? ",source" : "",
		l->has_tokens ? ",tokens" : "", l->has_losses ? ",loss" : "");
	return RP_OK;
}

static void add_csv_text(struct strbuf *b, const char *text)
{
	if (!strpbrk(text, ",\"\r\n")) {
		strbuf_add_text(b, text);
		return;
	}
	strbuf_add_char(b, '"');
	for (const char *p = text; *p; p++) {
		if (*p == '"')
			strbuf_add_char(b, '"');
		strbuf_add_char(b, *p);
	}
	strbuf_add_char(b, '"');
}

/* What all rows of a part begin with. */
static void csv_place(const struct log_writer *w, const struct ledger_step *s,
	const struct ledger_part *p, struct strbuf *b)
{
	strbuf_printf(b, "%lld,%lld,%u", (long long)w->l->attempts.items[s->attempt].number,
		(long long)s->step, p->dp);
	if (w->csv_micro)
		strbuf_printf(b, ",%u", p->micro);
	if (w->csv_worker && p->worker != UINT16_MAX)
		strbuf_printf(b, ",%u", p->worker);
	else if (w->csv_worker)
		strbuf_add_char(b, ',');
	if (w->csv_epoch && s->epoch >= 0)
		strbuf_printf(b, ",%d", s->epoch);
	else if (w->csv_epoch)
		strbuf_add_char(b, ',');
	strbuf_add_char(b, ',');
}

static void csv_row(struct log_writer *w, size_t i)
{
	const struct ledger *l = w->l;
	struct strbuf *b = &w->out;

	if (w->csv_keys)
		add_hex(b, w->keys.items[i]);
	else
		add_u64(b, w->keys.items[i]);
	if (l->sources.count > 0) {
		uint32_t source = l->spaces.items[w->spaces.items[i]].source;
		strbuf_add_char(b, ',');
		if (source != LEDGER_NONE)
			add_csv_text(b, l->sources.items[source].name);
	}
	if (l->has_tokens) {
		strbuf_add_char(b, ',');
		if (w->tokens.items[i] > 0)
			add_u64(b, w->tokens.items[i]);
	}
	if (l->has_losses) {
		strbuf_add_char(b, ',');
		if (!isnan(w->losses.items[i]))
			log_add_float(b, w->losses.items[i]);
	}
	strbuf_add_char(b, '\n');
}

static int csv_step(struct log_writer *w, const struct ledger_step *s)
{
	const struct ledger_geometry *g = &w->l->geometries.items[s->geometry];
	struct strbuf place;
	uint64_t row = s->row;
	int status = RP_OK;

	strbuf_init(&place, 4096);
	for (uint32_t i = 0; i < g->parts && status == RP_OK; i++) {
		const struct ledger_part *p = &w->l->parts.items[g->first + i];
		status = load(w, row, p->n);
		strbuf_clear(&place);
		csv_place(w, s, p, &place);
		w->out.failed |= place.failed;
		for (size_t k = 0; k < p->n && status == RP_OK; k++) {
			strbuf_add_slice(&w->out, strbuf_slice(&place));
			csv_row(w, k);
			status = flush(w, false);
		}
		row += p->n;
	}
	strbuf_release(&place);
	return status;
}

static int write_csv(struct log_writer *w)
{
	if (choose_columns(w) < 0)
		return w->e->status;
	for (size_t i = 0; i < w->l->steps.count; i++)
		if (csv_step(w, &w->l->steps.items[i]) < 0)
			return w->e->status;
	return flush(w, true);
}

/* Both ----------------------------------------------------------------------------------------- */

static int write_log(const struct ledger *l, text_write_fn *write, void *context,
	int (*format)(struct log_writer *w), struct error *e)
{
	struct log_writer w = {
		.l = l, .write = write, .context = context, .e = e, .dataset = LEDGER_NONE};
	int status;

	strbuf_init(&w.out, PIECE_MAX);
	w.buffer = sample_buffer_new();
	status = w.buffer ? format(&w) : fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory");
	sample_buffer_free(w.buffer);
	strbuf_release(&w.out);
	array_release(&w.keys);
	array_release(&w.spaces);
	array_release(&w.tokens);
	array_release(&w.losses);
	return status;
}

int log_write_jsonl(const struct ledger *l, text_write_fn *write, void *context, struct error *e)
{
	return write_log(l, write, context, write_jsonl, e);
}

int log_write_csv(const struct ledger *l, text_write_fn *write, void *context, struct error *e)
{
	return write_log(l, write, context, write_csv, e);
}
