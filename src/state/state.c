/* SPDX-License-Identifier: MIT */
#include "state/state.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/strbuf.h"
#include "base/text.h"

#define ROWS_MAX ((size_t)1 << 28)
#define TEXT_MAX 4096u
#define RANKS_MAX 65536 /* more than any run has */

const struct fact_row fact_rows[FACT_COUNT] = {
#define FACT(id, name, unit, flags, summary) {#id, name, unit, #flags[0], summary},
#include "state/facts.def"
#undef FACT
};

const char *file_role_name(enum file_role role)
{
	static const char *const names[FILE_ROLE_COUNT] = {
		[FILE_OTHER] = "other",
		[FILE_WEIGHTS] = "weights",
		[FILE_OPTIMIZER] = "optimizer",
		[FILE_SCHEDULER] = "scheduler",
		[FILE_SCALER] = "scaler",
		[FILE_RNG] = "random number state",
		[FILE_LOADER] = "data loader state",
		[FILE_COUNTERS] = "counters",
		[FILE_CONFIG] = "configuration",
		[FILE_INDEX] = "index",
		[FILE_WHOLE] = "resume state",
		[FILE_LEFTOVER] = "leftover of a save",
	};
	return names[role];
}

void state_init(struct state *s, const struct limits *limits)
{
	*s = (struct state){.path = "", .kind = ""};
	arena_init(&s->arena, limits->memory);
}

void state_release(struct state *s)
{
	for (size_t i = 0; i < s->optimizers.count; i++)
		array_release(&s->optimizers.items[i].params);
	array_release(&s->files);
	array_release(&s->facts);
	array_release(&s->streams);
	array_release(&s->optimizers);
	array_release(&s->tensors);
	array_release(&s->storages);
	array_release(&s->summaries);
	array_release(&s->leaves);
	array_release(&s->bodies);
	array_release(&s->log);
	array_release(&s->placements);
	array_release(&s->taken);
	array_release(&s->strong);
	array_release(&s->strong_leaves);
	arena_release(&s->arena);
}

const char *state_text(struct state *s, struct slice text)
{
	const char *copy = arena_strdup(&s->arena, text);

	if (!copy)
		s->no_memory = true;
	return copy ? copy : "";
}

const char *state_printf(struct state *s, const char *format, ...)
{
	char text[TEXT_MAX];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	return state_text(s, slice_of(text));
}

/* A new fact with everything but its value, or NULL. */
static struct fact *add_fact(
	struct state *s, enum fact_key key, enum fact_type type, int32_t group, struct origin from)
{
	struct fact *f = array_push(&s->facts, ROWS_MAX);

	if (!f) {
		s->no_memory = true;
		return NULL;
	}
	f->key = (uint16_t)key;
	f->type = (uint8_t)type;
	f->how = (uint8_t)from.how;
	f->rank = from.rank;
	f->group = group;
	f->file = from.file;
	f->path = from.path && *from.path ? state_text(s, slice_of(from.path)) : "";
	return f;
}

void state_add_int(
	struct state *s, enum fact_key key, int32_t group, int64_t value, struct origin from)
{
	struct fact *f = add_fact(s, key, FACT_INT, group, from);
	if (f)
		f->i = value;
}

void state_add_real(
	struct state *s, enum fact_key key, int32_t group, double value, struct origin from)
{
	struct fact *f = add_fact(s, key, FACT_REAL, group, from);
	if (f)
		f->f = value;
}

void state_add_text(
	struct state *s, enum fact_key key, int32_t group, struct slice value, struct origin from)
{
	struct fact *f = add_fact(s, key, FACT_TEXT, group, from);
	if (f)
		f->text = state_text(s, value);
}

void state_add_bool(
	struct state *s, enum fact_key key, int32_t group, bool value, struct origin from)
{
	struct fact *f = add_fact(s, key, FACT_BOOL, group, from);
	if (f)
		f->i = value;
}

bool state_add_value(
	struct state *s, enum fact_key key, int32_t group, struct val v, struct origin from)
{
	int64_t i;

	if (v.kind == VAL_BOOL)
		state_add_bool(s, key, group, v.i != 0, from);
	else if (val_to_i64(v, &i))
		state_add_int(s, key, group, i, from);
	else if (v.kind == VAL_FLOAT)
		state_add_real(s, key, group, v.f, from);
	else if (v.kind == VAL_TEXT)
		state_add_text(s, key, group, val_slice(v), from);
	else
		return false;
	return true;
}

void state_add_stream(struct state *s, const struct rng_state *body, const char *owner,
	int32_t device, struct origin from)
{
	const struct rng_state *kept = NULL;

	for (size_t i = 0; i < s->bodies.count && !kept; i++)
		if (rng_equal(s->bodies.items[i], body))
			kept = s->bodies.items[i];
	if (!kept) {
		struct rng_state *copy = arena_new(&s->arena, struct rng_state);
		struct rng_state **slot = copy ? array_push(&s->bodies, ROWS_MAX) : NULL;
		if (!slot) {
			s->no_memory = true;
			return;
		}
		*copy = *body;
		*slot = copy;
		kept = copy;
	}
	struct stream *stream = array_push(&s->streams, ROWS_MAX);
	if (!stream) {
		s->no_memory = true;
		return;
	}
	*stream = (struct stream){
		.rank = from.rank,
		.device = device,
		.owner = state_text(s, slice_of(owner)),
		.body = kept,
		.file = from.file,
		.path = state_text(s, slice_of(from.path)),
	};
}

static int compare_int(int64_t a, int64_t b)
{
	return (a > b) - (a < b);
}

/* By what facts are looked up: key, whether the checkpoint itself says it, rank, group. */
static int compare_places(const struct fact *a, const struct fact *b)
{
	int order = compare_int(a->key, b->key);

	if (order == 0)
		order = compare_int(a->how >= HOW_TOLD, b->how >= HOW_TOLD);
	if (order == 0)
		order = compare_int(a->rank, b->rank);
	return order ? order : compare_int(a->group, b->group);
}

static int compare_facts(const void *pa, const void *pb)
{
	const struct fact *a = pa, *b = pb;
	int order = compare_places(a, b);

	/* What was read stands before what was derived, and that before what is assumed. */
	if (order == 0)
		order = compare_int(a->how, b->how);
	if (order == 0)
		order = text_natural_compare(slice_of(a->path), slice_of(b->path));
	return order ? order : compare_int(a->file, b->file);
}

int stream_kind_compare(const struct stream *a, const struct stream *b)
{
	int order = compare_int(a->rank, b->rank);

	if (order == 0)
		order = strcmp(a->owner, b->owner);
	return order ? order : compare_int(a->device, b->device);
}

static int compare_streams(const void *pa, const void *pb)
{
	const struct stream *a = pa, *b = pb;
	int order = stream_kind_compare(a, b);

	return order ? order : text_natural_compare(slice_of(a->path), slice_of(b->path));
}

void state_finish(struct state *s)
{
	if (s->facts.count > 1)
		qsort(s->facts.items, s->facts.count, sizeof *s->facts.items, compare_facts);
	s->facts_sorted = s->facts.count;
	if (s->streams.count > 1)
		qsort(s->streams.items, s->streams.count, sizeof *s->streams.items,
			compare_streams);
}

/* The first fact that does not stand before a place, where they are sorted. O(log n). */
static size_t first_fact(const struct state *s, struct fact place)
{
	size_t low = 0, high = s->facts.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (compare_places(&s->facts.items[middle], &place) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Facts from `at` to before `end`: where those are that are looked for, and maybe others. */
struct fact_range {
	size_t at, end;
};

/* While a checkpoint is read they are not sorted, and all of them may be. */
static struct fact_range facts_between(const struct state *s, struct fact first, struct fact behind)
{
	if (s->facts_sorted != s->facts.count)
		return (struct fact_range){0, s->facts.count};
	return (struct fact_range){first_fact(s, first), first_fact(s, behind)};
}

static struct fact_range facts_under(const struct state *s, enum fact_key key)
{
	struct fact first = {.key = (uint16_t)key, .rank = INT32_MIN, .group = INT32_MIN};
	struct fact behind = first;

	behind.key++;
	return facts_between(s, first, behind);
}

/* Of one rank and one group, told or not. */
static struct fact_range facts_at(
	const struct state *s, enum fact_key key, bool told, int32_t rank, int32_t group)
{
	struct fact first = {.key = (uint16_t)key,
		.how = told ? HOW_TOLD : HOW_READ,
		.rank = rank,
		.group = group};
	struct fact behind = first;

	/* A snapshot may say anything. */
	if (group == INT32_MAX)
		return facts_under(s, key);
	behind.group++;
	return facts_between(s, first, behind);
}

const struct fact *state_group_fact(const struct state *s, enum fact_key key, int32_t group)
{
	const struct fact_range r = facts_under(s, key);

	for (size_t i = r.at; i < r.end; i++) {
		const struct fact *f = &s->facts.items[i];
		if (f->key == key && f->group == group)
			return f;
	}
	return NULL;
}

const struct fact *state_fact(const struct state *s, enum fact_key key)
{
	const struct fact_range r = facts_under(s, key);

	for (size_t i = r.at; i < r.end; i++)
		if (s->facts.items[i].key == key)
			return &s->facts.items[i];
	return NULL;
}

int32_t state_world(const struct state *s)
{
	int64_t known;

	if (!state_int(s, FACT_WORLD_SIZE, &known) || known <= s->world || known > RANKS_MAX)
		return s->world;
	return (int32_t)known;
}

const char *path_last_name(const char *path)
{
	const char *dot = strrchr(path, '.');
	return dot ? dot + 1 : path;
}

bool state_step_in_epoch(const struct fact *f)
{
	static const char *const names[] = {
		"step", "steps", "iteration", "current_step", "train_step"};
	const char *name = path_last_name(f->path);

	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return false;
}

static bool has_file(const struct state *s, const char *path)
{
	for (size_t i = 0; i < s->files.count; i++)
		if (strcmp(s->files.items[i].path, path) == 0)
			return true;
	return false;
}

const struct fact *state_same_fact(
	const struct state *s, const struct state *owner, const struct fact *of)
{
	const char *file = state_file_path(owner, of->file);
	const struct fact *elsewhere = NULL;

	for (int told = 0; told < 2; told++) {
		struct fact_range r =
			facts_at(s, (enum fact_key)of->key, told, of->rank, of->group);
		for (size_t i = r.at; i < r.end; i++) {
			const struct fact *f = &s->facts.items[i];
			if (f->key != of->key || f->rank != of->rank || f->group != of->group ||
				strcmp(f->path, of->path) != 0)
				continue;
			if (strcmp(state_file_path(s, f->file), file) == 0)
				return f;
			if (!elsewhere)
				elsewhere = f;
		}
	}
	return elsewhere && !has_file(s, file) ? elsewhere : NULL;
}

const struct fact *optimizer_group_fact(
	const struct state *s, const struct optimizer *o, enum fact_key key, int32_t group)
{
	const struct fact_range r = facts_at(s, key, false, o->rank, group);
	size_t n = strlen(o->path);

	for (size_t i = r.at; i < r.end; i++) {
		const struct fact *f = &s->facts.items[i];
		if (f->key == key && f->group == group && f->file == o->file &&
			f->rank == o->rank && strncmp(f->path, o->path, n) == 0 &&
			(n == 0 || f->path[n] == '.'))
			return f;
	}
	return NULL;
}

bool fact_to_double(const struct fact *f, double *out)
{
	if (!f || f->type == FACT_TEXT)
		return false;
	*out = f->type == FACT_REAL ? f->f : (double)f->i;
	return true;
}

bool state_int(const struct state *s, enum fact_key key, int64_t *out)
{
	const struct fact *f = state_fact(s, key);

	if (!f || f->type == FACT_TEXT)
		return false;
	if (f->type != FACT_REAL) {
		*out = f->i;
		return true;
	}
	if (!(fabs(f->f) < 9e15) || f->f != floor(f->f))
		return false;
	*out = (int64_t)f->f;
	return true;
}

bool state_real(const struct state *s, enum fact_key key, double *out)
{
	return fact_to_double(state_fact(s, key), out);
}

bool state_bool(const struct state *s, enum fact_key key, bool *out)
{
	const struct fact *f = state_fact(s, key);

	if (!f || f->type != FACT_BOOL)
		return false;
	*out = f->i != 0;
	return true;
}

const char *state_fact_text(const struct state *s, enum fact_key key)
{
	const struct fact *f = state_fact(s, key);
	return f && f->type == FACT_TEXT ? f->text : NULL;
}

bool fact_equal(const struct fact *a, const struct fact *b)
{
	double x, y;

	if (a->type == FACT_TEXT || b->type == FACT_TEXT)
		return a->type == b->type && strcmp(a->text, b->text) == 0;
	if (a->type != FACT_REAL && b->type != FACT_REAL)
		return a->i == b->i;
	fact_to_double(a, &x);
	fact_to_double(b, &y);
	return x == y || (isnan(x) && isnan(y));
}

void fact_print(struct strbuf *b, const struct fact *f)
{
	switch ((enum fact_type)f->type) {
	case FACT_INT:
		/* Seeds and settings are names, not amounts: their digits are not grouped. */
		if (*fact_rows[f->key].unit)
			text_add_signed_count(b, f->i);
		else
			strbuf_printf(b, "%lld", (long long)f->i);
		break;
	case FACT_REAL:
		text_add_rounded(b, f->f, 7);
		break;
	case FACT_TEXT:
		text_add_escaped(b, slice_of(f->text), 200);
		break;
	case FACT_BOOL:
		strbuf_add_text(b, f->i ? "yes" : "no");
		break;
	}
}

const char *state_file_path(const struct state *s, uint32_t file)
{
	return file < s->files.count ? s->files.items[file].path : "";
}

const char *state_whole_path(struct state *s, uint32_t file)
{
	const char *path = state_file_path(s, file);

	if (!*path || s->single)
		return s->path;
	return state_printf(s, "%s/%s", s->folder ? s->folder : s->path, path);
}
