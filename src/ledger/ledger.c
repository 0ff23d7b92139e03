/* SPDX-License-Identifier: MIT */
#include "ledger/ledger.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "base/text.h"
#include "ledger/build.h"

#define KEPT_MAX 100u         /* losses, and notes */
#define SPACES_MAX UINT16_MAX /* a space is 16 bits in a column */
#define COUNTS_MAX 64u        /* names of quantities */
#define TEXT_MAX 65536u       /* bytes of one name, or of an attempt's configuration */
#define ACCOUNT_EVERY 1024u   /* lines between two looks at what the tables hold */

static int no_memory(struct error *e)
{
	return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for the sample log");
}

static int no_room(struct error *e, const char *what)
{
	return fail(e, RP_E_LIMIT, ERROR_NO_OFFSET,
		"too many %s for the memory allowed (limit memory)", what);
}

static const struct ledger_dataset unknown_dataset = {
	.name = "", .fingerprint = "", .unit = "", .order = "", .repeat = 1};

static int dataset_zero(struct ledger *l, struct error *e)
{
	struct ledger_dataset *d = array_push(&l->datasets, SPACES_MAX);
	if (!d)
		return no_memory(e);
	*d = unknown_dataset;
	return RP_OK;
}

/* Life ----------------------------------------------------------------------------------------- */

int ledger_init(struct ledger *l, const char *path, const struct ledger_options *o, struct error *e)
{
	*l = (struct ledger){.path = path, .run = "", .max_steps = -1, .limits = o->limits};
	arena_init(&l->arena, o->limits->memory);
	l->budget.limit = o->memory;
	l->store = store_new(&l->budget, path);
	struct ledger_build *b = l->build = calloc(1, sizeof *l->build);
	if (!l->store || !b) {
		ledger_release(l);
		return no_memory(e);
	}
	strands_init(&b->strands, o->limits->memory);
	b->memory = o->memory;
	b->shares_at_hand = b->chain_step = LEDGER_NONE;
	if (dataset_zero(l, e) == RP_OK)
		return RP_OK;
	ledger_release(l);
	return e->status;
}

void build_free(struct ledger_build *b)
{
	if (!b)
		return;
	strands_release(&b->strands);
	lookup_release(&b->by_step);
	lookup_release(&b->by_attempt);
	lookup_release(&b->by_source);
	lookup_release(&b->by_count);
	array_release(&b->steps);
	array_release(&b->next_share);
	for (size_t i = 0; i < b->planes.count; i++)
		array_release(&b->planes.items[i].spaces);
	array_release(&b->planes);
	array_release(&b->share_of);
	free(b);
}

void ledger_release(struct ledger *l)
{
	build_free(l->build);
	store_free(l->store);
	array_release(&l->datasets);
	array_release(&l->sources);
	array_release(&l->spaces);
	array_release(&l->attempts);
	array_release(&l->weights);
	array_release(&l->skips);
	array_release(&l->stages);
	array_release(&l->geometries);
	array_release(&l->parts);
	array_release(&l->shares);
	array_release(&l->steps);
	array_release(&l->count_names);
	array_release(&l->counts);
	array_release(&l->checkpoints);
	array_release(&l->losses);
	array_release(&l->notes);
	arena_release(&l->arena);
	*l = (struct ledger){0};
}

const char *ledger_keep(struct ledger *l, struct slice text)
{
	if (text.n == 0)
		return "";
	if (text.n > TEXT_MAX)
		text.n = text_whole_prefix(text, TEXT_MAX);
	const char *copy = arena_strdup(&l->arena, text);
	l->no_memory |= !copy;
	return copy ? copy : "";
}

int ledger_whole(const struct ledger *l, struct error *e)
{
	return l->no_memory ? no_memory(e) : RP_OK;
}

/* What is wrong or odd -------------------------------------------------------------------------
 */

/* Files are few and losses many: the name before is mostly the same. */
static const char *keep_file(struct ledger *l, const struct ledger_loss *before, const char *file)
{
	if (before && before->file && strcmp(before->file, file) == 0)
		return before->file;
	return ledger_keep(l, slice_of(file));
}

void ledger_lost(
	struct ledger *l, const char *file, uint64_t line, uint64_t offset, const char *what)
{
	size_t n = l->losses.count;

	l->lines_lost++;
	struct ledger_loss *loss = array_push(&l->losses, KEPT_MAX);
	l->no_memory |= !loss && n < KEPT_MAX;
	if (!loss)
		return;
	loss->file = keep_file(l, n ? &l->losses.items[n - 1] : NULL, file);
	loss->line = line;
	loss->offset = offset;
	loss->what = ledger_keep(l, slice_of(what));
}

bool ledger_lost_of(const struct ledger *l, const char *file)
{
	for (size_t i = 0; i < l->losses.count; i++)
		if (strcmp(l->losses.items[i].file, file) == 0)
			return true;
	return l->lines_lost > l->losses.count;
}

bool ledger_lost_some(const struct ledger *l, const struct ledger_attempt *a)
{
	for (size_t i = 0; i < l->losses.count; i++)
		if (strcmp(l->losses.items[i].file, a->file) == 0)
			return true;
	return l->lines_lost > l->losses.count;
}

void ledger_note(struct ledger *l, const char *file, uint64_t line, const char *format, ...)
{
	size_t n = l->notes.count;
	char text[400];
	va_list ap;

	l->noted++;
	struct ledger_loss *note = array_push(&l->notes, KEPT_MAX);
	l->no_memory |= !note && n < KEPT_MAX;
	if (!note)
		return;
	va_start(ap, format);
	vsnprintf(text, sizeof text, format, ap);
	va_end(ap);
	note->file = keep_file(l, n ? &l->notes.items[n - 1] : NULL, file);
	note->line = line;
	note->what = ledger_keep(l, slice_of(text));
}

/* Names ---------------------------------------------------------------------------------------- */

static uint64_t hash_text(struct slice text)
{
	return XXH3_64bits(text.n ? text.p : "", text.n);
}

struct attempt_key {
	int64_t number;
	uint32_t again;
};

static bool same_attempt(const void *of, uint32_t row, const void *key)
{
	const struct ledger_attempt *a = &((const struct ledger *)of)->attempts.items[row];
	const struct attempt_key *k = key;

	return a->number == k->number && a->again == k->again;
}

static uint64_t hash_attempt(int64_t number, uint32_t again)
{
	return lookup_mix(lookup_mix((uint64_t)number) + again);
}

bool ledger_has_attempt(const struct ledger *l, int64_t number, uint32_t again, uint32_t *index)
{
	struct attempt_key key = {number, again};

	*index = lookup_find(
		&l->build->by_attempt, hash_attempt(number, again), same_attempt, l, &key);
	return *index != LOOKUP_NONE;
}

struct ledger_attempt ledger_attempt_empty(void)
{
	return (struct ledger_attempt){
		.launch = "",
		.code = "",
		.versions = "",
		.config = "",
		.from_step = LEDGER_NO_STEP,
		.from_attempt = LEDGER_NO_STEP,
		.from_path = "",
		.from_digest = "",
		.world = -1,
		.dp = -1,
		.global_batch = -1,
		.micro_batch = -1,
		.accumulation = -1,
		.workers = -1,
		.prefetch = -1,
		.epoch = -1,
		.drop_last = -1,
		.intent = {.seed_from = INT64_MIN,
			.seed_to = INT64_MIN,
			.lr_from = NAN,
			.lr_to = NAN,
			.batch_from = INT64_MIN,
			.batch_to = INT64_MIN},
		.end = "",
		.end_step = LEDGER_NO_STEP,
		.first_step = LEDGER_NO_STEP,
		.last_step = LEDGER_NO_STEP,
		.file = "",
	};
}

int ledger_attempt_again(
	struct ledger *l, int64_t number, uint32_t again, uint32_t *index, struct error *e)
{
	if (ledger_has_attempt(l, number, again, index))
		return RP_OK;
	*index = (uint32_t)l->attempts.count;
	struct ledger_attempt *a = array_push(&l->attempts, l->limits->memory / sizeof *a);
	if (!a || !lookup_add(&l->build->by_attempt, hash_attempt(number, again), *index))
		return no_room(e, "attempts");
	*a = ledger_attempt_empty();
	a->number = number;
	a->again = again;
	a->implied = true;
	return RP_OK;
}

int ledger_attempt(struct ledger *l, int64_t number, uint32_t *index, struct error *e)
{
	return ledger_attempt_again(l, number, 0, index, e);
}

void ledger_attempt_name(const struct ledger *l, uint32_t attempt, struct strbuf *out)
{
	static const char *const ordinals[] = {"second", "third"};
	const struct ledger_attempt *a = &l->attempts.items[attempt];

	strbuf_printf(out, "%lld", (long long)a->number);
	if (a->again > 2)
		strbuf_printf(out, " (%luth)", a->again + 1ul);
	else if (a->again > 0)
		strbuf_printf(out, " (%s)", ordinals[a->again - 1]);
}

static bool same_source(const void *of, uint32_t row, const void *key)
{
	const struct ledger *l = of;

	return slice_eq(slice_of(l->sources.items[row].name), *(const struct slice *)key);
}

int ledger_source_named(struct ledger *l, struct slice name, uint32_t *index, struct error *e)
{
	uint64_t hash = hash_text(name);

	*index = lookup_find(&l->build->by_source, hash, same_source, l, &name);
	if (*index != LOOKUP_NONE)
		return RP_OK;
	if (name.n > TEXT_MAX || memchr(name.p ? name.p : "", '\0', name.n))
		return fail(
			e, RP_E_LIMIT, ERROR_NO_OFFSET, "a source's name has %zu bytes", name.n);
	*index = (uint32_t)l->sources.count;
	struct ledger_source *s = array_push(&l->sources, SPACES_MAX);
	if (!s || !lookup_add(&l->build->by_source, hash, *index))
		return fail(e, RP_E_LIMIT, ERROR_NO_OFFSET, "more than %u sources", SPACES_MAX);
	*s = (struct ledger_source){.name = ledger_keep(l, name),
		.weight = NAN,
		.epochs = NAN,
		.first_attempt = LEDGER_NONE,
		.last_attempt = LEDGER_NONE};
	return s->name[0] || name.n == 0 ? RP_OK : no_memory(e);
}

static bool same_count(const void *of, uint32_t row, const void *key)
{
	const struct ledger *l = of;

	return slice_eq(slice_of(l->count_names.items[row]), *(const struct slice *)key);
}

int ledger_count_named(struct ledger *l, struct slice name, uint32_t *index, struct error *e)
{
	uint64_t hash = hash_text(name);

	*index = lookup_find(&l->build->by_count, hash, same_count, l, &name);
	if (*index != LOOKUP_NONE)
		return RP_OK;
	*index = (uint32_t)l->count_names.count;
	const char **kept = array_push(&l->count_names, COUNTS_MAX);
	if (!kept || !lookup_add(&l->build->by_count, hash, *index))
		return fail(
			e, RP_E_LIMIT, ERROR_NO_OFFSET, "more than %u names in counts", COUNTS_MAX);
	*kept = ledger_keep(l, name);
	return RP_OK;
}

static bool same_dataset(const struct ledger_dataset *a, const struct ledger_dataset *b)
{
	return strcmp(a->name, b->name) == 0 && strcmp(a->fingerprint, b->fingerprint) == 0 &&
	       strcmp(a->unit, b->unit) == 0 && strcmp(a->order, b->order) == 0;
}

int ledger_dataset_said(
	struct ledger *l, const struct ledger_dataset *said, uint32_t *index, struct error *e)
{
	struct ledger_dataset *first = l->datasets.items;
	*index = 0;
	if (same_dataset(said, &unknown_dataset) && said->size == 0)
		return RP_OK;
	if (same_dataset(first, &unknown_dataset) && !l->build->dataset_used) {
		*first = *said;
		return RP_OK;
	}
	for (; *index < l->datasets.count; (*index)++)
		if (same_dataset(said, &l->datasets.items[*index]))
			return RP_OK;
	struct ledger_dataset *d = array_push(&l->datasets, SPACES_MAX);
	if (!d)
		return fail(e, RP_E_LIMIT, ERROR_NO_OFFSET, "more than %u data sets", SPACES_MAX);
	*d = *said;
	return RP_OK;
}

/* Spaces --------------------------------------------------------------------------------------- */

static struct plane *plane_of(struct ledger *l, uint32_t dataset, uint8_t kind)
{
	struct ledger_build *b = l->build;

	for (size_t i = 0; i < b->planes.count; i++)
		if (b->planes.items[i].dataset == dataset && b->planes.items[i].kind == kind)
			return &b->planes.items[i];
	struct plane *p = array_push(&b->planes, 3 * (size_t)SPACES_MAX);
	if (p)
		*p = (struct plane){.dataset = dataset, .kind = kind};
	return p;
}

/* A space's number is its order of appearance; its id is the same in every ledger. */
static uint64_t space_id(const struct ledger *l, const struct ledger_space *s)
{
	const struct ledger_dataset *d = &l->datasets.items[s->dataset];

	return identity_space(d->name, d->unit, d->order,
		s->source == LEDGER_NONE ? "" : l->sources.items[s->source].name, s->kind);
}

static int new_space(
	struct ledger *l, const struct plane *p, uint32_t source, uint32_t *index, struct error *e)
{
	*index = (uint32_t)l->spaces.count;
	struct ledger_space *s = array_push(&l->spaces, SPACES_MAX);
	if (!s)
		return fail(e, RP_E_LIMIT, ERROR_NO_OFFSET,
			"more than %u combinations of data set, source and kind of id", SPACES_MAX);
	*s = (struct ledger_space){.source = source, .dataset = p->dataset, .kind = p->kind};
	s->id = space_id(l, s);
	l->build->dataset_used |= p->dataset == 0;
	return *index == 1 ? store_begin_column(l->store, STORE_SPACES, e) : RP_OK;
}

static int space_of(
	struct ledger *l, struct plane *p, uint32_t source, uint32_t *index, struct error *e)
{
	size_t at = source == LEDGER_NONE ? 0 : (size_t)source + 1;

	if (at < p->spaces.count && p->spaces.items[at] != LEDGER_NONE) {
		*index = p->spaces.items[at];
		return RP_OK;
	}
	while (p->spaces.count <= at) {
		uint32_t *slot = array_push(&p->spaces, (size_t)SPACES_MAX + 2);
		if (!slot)
			return no_memory(e);
		*slot = LEDGER_NONE;
	}
	if (new_space(l, p, source, index, e) < 0)
		return e->status;
	p->spaces.items[at] = *index;
	return RP_OK;
}

uint64_t ledger_mark(const struct ledger *l, uint32_t space, uint64_t key)
{
	if (l->spaces.count <= 1)
		return key;
	return lookup_mix(key + lookup_mix(l->spaces.items[space].id));
}

/* Steps ---------------------------------------------------------------------------------------- */

struct step_key {
	uint32_t attempt;
	int64_t step;
};

static bool same_step(const void *of, uint32_t row, const void *key)
{
	const struct ledger_step *s = &((const struct ledger *)of)->steps.items[row];
	const struct step_key *k = key;

	return s->attempt == k->attempt && s->step == k->step;
}

static int new_step(
	struct ledger *l, const struct step_key *key, uint64_t hash, uint32_t *row, struct error *e)
{
	struct ledger_build *b = l->build;

	*row = (uint32_t)l->steps.count;
	struct ledger_step *s = array_push(&l->steps, l->limits->memory / sizeof *s);
	struct building_step *sums = array_push(&b->steps, SIZE_MAX);
	if (!s || !sums || !lookup_add(&b->by_step, hash, *row))
		return no_room(e, "steps");
	sums->newest_share = LEDGER_NONE;
	*s = (struct ledger_step){.step = key->step,
		.attempt = key->attempt,
		.epoch = -1,
		.first_count = LEDGER_NONE,
		.applied = true,
		.loss = NAN,
		.lr = NAN,
		.grad_norm = NAN,
		.position = -1};
	return RP_OK;
}

/* The row of a step, made where it is new. `hint` is a row that it may be, or stand behind. */
static int step_row(struct ledger *l, uint32_t attempt, int64_t step, uint32_t hint, uint32_t *row,
	struct error *e)
{
	struct step_key key = {attempt, step};

	for (uint64_t i = hint; i < (uint64_t)hint + 2 && i < l->steps.count; i++)
		if (same_step(l, (uint32_t)i, &key)) {
			*row = (uint32_t)i;
			return RP_OK;
		}
	uint64_t hash = lookup_mix(lookup_mix(attempt) + (uint64_t)step);
	*row = lookup_find(&l->build->by_step, hash, same_step, l, &key);
	return *row != LOOKUP_NONE ? RP_OK : new_step(l, &key, hash, row, e);
}

int ledger_goes_back(struct ledger *l, uint32_t attempt, uint32_t dp, uint16_t micro, int64_t step,
	struct error *e)
{
	struct track *t = strands_track(&l->build->strands, attempt, dp, micro);

	if (!t)
		return no_room(e, "ranks");
	return step == t->newest ? 0 : strands_seen(&l->build->strands, t, step, e);
}

bool ledger_rank_begins(
	const struct ledger *l, uint32_t attempt, uint32_t dp, uint16_t micro, int64_t *first)
{
	const struct track *t = strands_find(&l->build->strands, attempt, dp, micro);

	if (!t || t->first > t->last)
		return false;
	*first = t->first;
	return true;
}

bool ledger_has_rank(const struct ledger *l, uint32_t attempt, uint32_t dp)
{
	const struct strands *s = &l->build->strands;

	for (size_t i = 0; i < s->tracks.count; i++)
		if (s->tracks.items[i].attempt == attempt && s->tracks.items[i].dp == dp &&
			s->tracks.items[i].first <= s->tracks.items[i].last)
			return true;
	return false;
}

int ledger_irregular(struct ledger *l, uint32_t attempt, int64_t step, struct error *e)
{
	uint32_t row;

	if (step_row(l, attempt, step, (uint32_t)l->steps.count, &row, e) < 0)
		return e->status;
	l->steps.items[row].irregular = true;
	return RP_OK;
}

static double finite_sum(double a, double b)
{
	return fmin(fmax(a + b, -DBL_MAX), DBL_MAX);
}

/* The names may have become more since the step's first line: its counts then move to the end. */
static int add_counts(struct ledger *l, uint32_t row, const double *counts, struct error *e)
{
	struct ledger_step *s = &l->steps.items[row];
	struct building_step *b = &l->build->steps.items[row];
	size_t names = l->count_names.count, from = l->counts.count;

	if (b->counts < names) {
		if (from + names >= LEDGER_NONE || !array_reserve(&l->counts, from + names,
							   l->limits->memory / sizeof(double)))
			return no_room(e, "counts");
		for (size_t i = 0; i < names; i++)
			l->counts.items[from + i] =
				i < b->counts ? l->counts.items[s->first_count + i] : 0;
		l->counts.count = from + names;
		s->first_count = (uint32_t)from;
		b->counts = (uint32_t)names;
	}
	for (size_t i = 0; i < names; i++)
		l->counts.items[s->first_count + i] =
			finite_sum(l->counts.items[s->first_count + i], counts[i]);
	return RP_OK;
}

/* What a line says of its step as a whole; independent of the order of lines. */
static int add_facts(
	struct ledger *l, uint32_t row, const struct ledger_line *line, struct error *e)
{
	struct ledger_step *s = &l->steps.items[row];

	s->epoch = line->epoch > s->epoch ? line->epoch : s->epoch;
	s->applied &= line->applied;
	s->position = line->position > s->position ? line->position : s->position;
	s->lr = isnan(s->lr) || line->lr > s->lr ? line->lr : s->lr;
	s->grad_norm = isnan(s->grad_norm) || line->grad_norm > s->grad_norm ? line->grad_norm
									     : s->grad_norm;
	return line->counts ? add_counts(l, row, line->counts, e) : RP_OK;
}

/* Shares ---------------------------------------------------------------------------------------
 */

/* Have the shares of a step at hand by source. */
static bool point_at_shares(struct ledger *l, uint32_t row)
{
	struct ledger_build *b = l->build;

	if (b->shares_at_hand == row && b->share_of.count > l->sources.count)
		return true;
	while (b->share_of.count <= l->sources.count) {
		struct share_slot *slot = array_push(&b->share_of, (size_t)SPACES_MAX + 2);
		if (!slot)
			return false;
		slot->row = LEDGER_NONE;
	}
	b->shares_at_hand = row;
	uint32_t i = b->steps.items[row].newest_share;
	for (; i != LEDGER_NONE; i = b->next_share.items[i])
		b->share_of.items[l->shares.items[i].source + 1u] = (struct share_slot){row, i};
	return true;
}

/* The share of a source in the step at hand, made where it is new. */
static struct ledger_share *share_of(struct ledger *l, uint32_t row, uint32_t source)
{
	struct ledger_build *b = l->build;
	struct building_step *step = &b->steps.items[row];
	struct share_slot *slot = &b->share_of.items[source + 1u]; /* LEDGER_NONE: 0 */

	if (slot->row == row)
		return &l->shares.items[slot->share];
	uint32_t made = (uint32_t)l->shares.count;
	struct ledger_share *share = array_push(&l->shares, l->limits->memory / sizeof *share);
	uint32_t *next = array_push(&b->next_share, SIZE_MAX);
	if (!share || !next || made == LEDGER_NONE)
		return NULL;
	share->source = source;
	*next = step->newest_share;
	b->shares_scattered |= step->newest_share != LEDGER_NONE && step->newest_share + 1 != made;
	step->newest_share = made;
	*slot = (struct share_slot){row, made};
	l->steps.items[row].shares++;
	return share;
}

/* How many of the first `n` samples of a line have one token more than the others. */
static uint64_t tokens_over(const struct ledger_line *line, size_t n)
{
	uint64_t over = line->tokens_all % line->n;

	return n < over ? n : over;
}

/* Samples from..to of a line, all of one source. */
static bool add_share(struct ledger *l, uint32_t row, const struct ledger_line *line, size_t from,
	size_t to, uint32_t source)
{
	struct ledger_share *share = share_of(l, row, source);

	if (!share)
		return false;
	share->n += (uint32_t)(to - from);
	if (line->tokens)
		for (size_t i = from; i < to; i++)
			share->tokens += line->tokens[i];
	else
		share->tokens += line->tokens_all / line->n * (to - from) + tokens_over(line, to) -
				 tokens_over(line, from);
	for (size_t i = from; line->losses && i < to; i++) {
		if (isnan(line->losses[i]))
			continue;
		share->loss += (double)line->losses[i];
		share->with_loss++;
	}
	return true;
}

static bool add_shares(struct ledger *l, uint32_t row, const struct ledger_line *line)
{
	if (line->n == 0)
		return true;
	if (!point_at_shares(l, row))
		return false;
	if (!line->sources)
		return add_share(l, row, line, 0, line->n, line->source);
	for (size_t i = 0, end; i < line->n; i = end) {
		for (end = i + 1; end < line->n && line->sources[end] == line->sources[i];)
			end++;
		if (!add_share(l, row, line, i, end, line->sources[i]))
			return false;
	}
	return true;
}

static void add_loss(struct ledger *l, uint32_t row, const struct ledger_line *line)
{
	struct building_step *b = &l->build->steps.items[row];

	if (!line->losses) {
		double weight = line->n ? (double)line->n : 1;
		if (!isnan(line->loss)) {
			b->loss += (double)line->loss * weight;
			b->weight += weight;
		}
		return;
	}
	for (size_t i = 0; i < line->n; i++) {
		if (isnan(line->losses[i]))
			continue;
		b->own += (double)line->losses[i];
		b->with_own++;
	}
}

/* Samples -------------------------------------------------------------------------------------- */

/* Columns that a line is the first to need. */
static int begin_columns(struct ledger *l, const struct ledger_line *line, struct error *e)
{
	if (line->n == 0)
		return RP_OK;
	if ((line->tokens || line->tokens_all > 0) && !l->has_tokens) {
		l->has_tokens = true;
		if (store_begin_column(l->store, STORE_TOKENS, e) < 0)
			return e->status;
	}
	if (line->losses && !l->has_losses) {
		l->has_losses = true;
		if (store_begin_column(l->store, STORE_LOSSES, e) < 0)
			return e->status;
	}
	return RP_OK;
}

/* A run of samples that fits into the chunk at hand. */
struct batch {
	const struct ledger_line *line;
	size_t from, n;
	struct plane *plane;
	uint32_t space; /* of all, where the line has one source */
};

static int put_spaces(struct ledger *l, const struct batch *b, uint64_t *out, struct error *e)
{
	for (size_t i = 0; i < b->n; i++) {
		uint32_t space = b->space;
		if (b->line->sources &&
			space_of(l, b->plane, b->line->sources[b->from + i], &space, e) < 0)
			return e->status;
		out[i] = space;
	}
	return RP_OK;
}

static void put_tokens(const struct batch *b, uint64_t *out)
{
	const struct ledger_line *line = b->line;
	uint64_t each = line->tokens_all / line->n, over = line->tokens_all % line->n;

	for (size_t i = 0; i < b->n; i++)
		out[i] = line->tokens ? line->tokens[b->from + i] : each + (b->from + i < over);
}

static void put_losses(const struct batch *b, uint64_t *out)
{
	for (size_t i = 0; i < b->n; i++) {
		uint32_t bits = STORE_NO_LOSS;
		if (b->line->losses)
			memcpy(&bits, &b->line->losses[b->from + i], sizeof bits);
		out[i] = bits ^ STORE_NO_LOSS;
	}
}

static void digest_one_space(
	struct ledger *l, struct ledger_step *s, const uint64_t *keys, size_t n, uint32_t index)
{
	struct ledger_space *space = &l->spaces.items[index];
	uint64_t low = s->sum[0], high = s->sum[1], chain = s->chain, max = space->max_key;

	for (size_t i = 0; i < n; i++) {
		XXH128_hash_t h = identity_hash(space->id, keys[i]);
		high += h.high64 + __builtin_add_overflow(low, h.low64, &low);
		chain = identity_chain(chain, h);
		max = keys[i] > max ? keys[i] : max;
	}
	s->sum[0] = low;
	s->sum[1] = high;
	s->chain = chain;
	space->max_key = max;
	space->samples += n;
}

static void digest(struct ledger *l, uint32_t row, const struct batch *b, const uint64_t *spaces)
{
	struct ledger_step *s = &l->steps.items[row];
	const uint64_t *keys = b->line->keys + b->from;

	if (!b->line->sources) {
		digest_one_space(l, s, keys, b->n, b->space);
		return;
	}
	for (size_t i = 0, end; i < b->n; i = end) {
		for (end = i + 1; end < b->n && spaces[end] == spaces[i];)
			end++;
		digest_one_space(l, s, keys + i, end - i, (uint32_t)spaces[i]);
	}
}

static int add_batch(struct ledger *l, uint32_t row, const struct batch *b, struct error *e)
{
	uint64_t spaces[STORE_CHUNK];

	if (b->line->sources && put_spaces(l, b, spaces, e) < 0)
		return e->status;
	digest(l, row, b, spaces);
	memcpy(store_at(l->store, STORE_KEYS), b->line->keys + b->from, b->n * sizeof(uint64_t));
	if (store_has(l->store, STORE_SPACES)) {
		uint64_t *out = store_at(l->store, STORE_SPACES);
		if (b->line->sources)
			memcpy(out, spaces, b->n * sizeof *out);
		else
			put_spaces(l, b, out, e);
	}
	if (l->has_tokens)
		put_tokens(b, store_at(l->store, STORE_TOKENS));
	if (l->has_losses)
		put_losses(b, store_at(l->store, STORE_LOSSES));
	return store_advance(l->store, b->n, e);
}

static int add_samples(
	struct ledger *l, uint32_t row, const struct ledger_line *line, struct error *e)
{
	struct batch b = {.line = line};

	if (begin_columns(l, line, e) < 0)
		return e->status;
	b.plane = plane_of(l, line->dataset, line->kind);
	if (!b.plane)
		return no_memory(e);
	if (!line->sources && space_of(l, b.plane, line->source, &b.space, e) < 0)
		return e->status;
	for (; b.from < line->n; b.from += b.n) {
		b.n = line->n - b.from;
		if (b.n > store_room(l->store))
			b.n = store_room(l->store);
		if (add_batch(l, row, &b, e) < 0)
			return e->status;
	}
	return RP_OK;
}

/* The chain digest goes on, or another part of the step begins. */
static void chain_part(struct ledger *l, uint32_t row, const struct ledger_line *line)
{
	struct ledger_build *b = l->build;

	if (b->chain_step == row && b->chain_dp == line->dp && b->chain_micro == line->micro)
		return;
	struct ledger_step *s = &l->steps.items[row];
	s->chain = identity_chain_part(s->chain, line->dp, line->micro);
	b->chain_step = row;
	b->chain_dp = line->dp;
	b->chain_micro = line->micro;
}

/* Columns get the memory that the tables leave, and never less than an eighth of it. */
static void account(struct ledger *l)
{
	struct ledger_build *b = l->build;
	uint64_t held = strands_bytes(&b->strands) +
			l->steps.capacity * (sizeof(struct ledger_step) + sizeof *b->steps.items) +
			b->by_step.capacity * sizeof(struct lookup_slot) +
			l->shares.capacity * (sizeof(struct ledger_share) + sizeof(uint32_t)) +
			l->attempts.capacity * sizeof(struct ledger_attempt) +
			l->counts.capacity * sizeof(double) + l->arena.held;

	l->budget.limit = held < b->memory - b->memory / 8 ? b->memory - held : b->memory / 8;
}

struct ledger_line ledger_line_empty(void)
{
	return (struct ledger_line){.worker = UINT16_MAX,
		.epoch = -1,
		.source = LEDGER_NONE,
		.loss = NAN,
		.lr = NAN,
		.grad_norm = NAN,
		.position = -1,
		.applied = true};
}

int ledger_add_line(struct ledger *l, const struct ledger_line *line, struct error *e)
{
	struct ledger_build *b = l->build;
	uint32_t row;

	struct track *t = strands_track(&b->strands, line->attempt, line->dp, line->micro);
	if (!t)
		return no_room(e, "ranks");
	if (step_row(l, line->attempt, line->step, t->row, &row, e) < 0)
		return e->status;
	t->row = row;
	l->lines_late += line->step < t->last;
	struct ledger_step *s = &l->steps.items[row];
	if (line->n > UINT32_MAX - s->n)
		return fail(e, RP_E_LIMIT, ERROR_NO_OFFSET, "step %lld has more than %u samples",
			(long long)line->step, UINT32_MAX);
	if (line->samples) {
		if (strands_add(&b->strands, t, line->worker, line->step, store_rows(l->store),
			    (uint32_t)line->n, e) < 0)
			return e->status;
	}
	if (line->n > 0)
		chain_part(l, row, line);
	s->n += (uint32_t)line->n;
	if (add_facts(l, row, line, e) < 0)
		return e->status;
	add_loss(l, row, line);
	if (line->n > 0 && add_samples(l, row, line, e) < 0)
		return e->status;
	if (!add_shares(l, row, line))
		return no_room(e, "shares of sources");
	if (++b->lines % ACCOUNT_EVERY == 0)
		account(l);
	return RP_OK;
}
