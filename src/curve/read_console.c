/* SPDX-License-Identifier: MIT */
/*
 * Console logs of trainers: what a person saw. One table (console.def) says what lines look like; a
 * file may hold several kinds, several launches and several processes' lines. Most lines are
 * chatter, which costs one pass over their bytes (console_keys.c) and is never split or copied.
 *
 * Nothing of a line is kept but its numbers, so that memory depends on the points alone. A line of
 * any length is read in pieces that end in a carriage return, as progress bars print them.
 */
#define _GNU_SOURCE /* memmem() */
#include <math.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/text.h"
#include "curve/console.h"

#define PIECE ((size_t)1 << 20)         /* bytes of a line from which on it is read in pieces */
#define PLAIN_MAX ((size_t)1 << 16) /* bytes of a line with escape sequences that are looked at */
#define BELOW_MAX 16u               /* points that wait for their lines, of different ranks */
#define BELOW_LINES 4096u           /* lines after which one waits no longer */
#define PATTERN_MAX 16u             /* patterns of the user */
#define PATTERN_TEXT 4096u          /* bytes of a line they are tried on */
#define TRAINERS_MAX 4u             /* named in a file's writer */
#define NAME_MAX_BYTES 128u         /* of a series whose name is put together here */
#define KNOWN_SERIES 256u           /* that are found at once */
#define SHOWN_VALUES 32u            /* of a progress bar, to tell new ones from old ones */
#define HELD_FIELDS 16u             /* of a progress bar */

/* State ---------------------------------------------------------------------------------------- */

/* A point whose fields are on the lines that follow. */
struct below {
	int32_t rank;
	const struct console_shape *shape;
	double x, wall;
	enum curve_unit unit;
	uint64_t until; /* the last line that may belong to it */
};

/* What a progress bar shows at its place. */
struct held_field {
	char text[120]; /* the name, then the value */
	uint8_t name_n, value_n;
	bool running; /* a mean that runs over steps */
};

struct held_bar {
	const struct console_shape *shape;
	double x;
	uint64_t at;
	bool said; /* a bar that is drawn again later says nothing new */
	size_t count;
	struct held_field fields[HELD_FIELDS];
};

struct shown_value {
	uint64_t name; /* hashed */
	double value;
};

/* A series by what it was asked for with: a row of a table asks for the same ones again and again.
 */
struct known_series {
	uint64_t hash;
	uint32_t series;
};

/*
 * A row of Transformers', which says an epoch only, and the points that it made. The progress bar
 * that is printed again behind it says the step.
 */
struct epoch_row {
	size_t first, count; /* in the log's points */
	double epoch, step;  /* step NAN: no bar */
	float resolution;    /* of the epoch */
	bool launched;       /* it may be the first one of a launch */
};

struct pattern {
	const struct curve_pattern *said;
	regex_t compiled;
	bool with_x, by_word;
	double calls;
};

struct console {
	struct curve_reading *r;
	struct lines lines;
	struct console_index index;
	struct console_marks marks;
	struct known_series known[KNOWN_SERIES];
	char *plain;
	struct below below[BELOW_MAX];
	size_t below_count;
	/* Megatron: what the loss is called, and where the row before was. */
	char loss_name[NAME_MAX_BYTES];
	size_t loss_name_n;
	double before;
	uint64_t marks_seen;
	/* Of a line without an end: where it ends, since what touches that may be cut off. */
	const char *cut;
	bool torn;
	/* Progress bars. */
	double epoch; /* Keras: the one at hand; NAN: not known */
	double version;
	double batches; /* of an epoch, as Lightning's bar says; NAN: not known */
	struct held_bar bar;
	struct shown_value shown[SHOWN_VALUES];
	ARRAY(struct epoch_row) epoch_rows;
	bool bar_follows; /* if what follows the newest of them is one */
	bool launched;    /* since then */
	/* What else was asked for. */
	struct pattern patterns[PATTERN_MAX];
	size_t pattern_count;
	unsigned asked; /* roles, by bits, that patterns give */
	bool anything;  /* lines of no known trainer are taken, as long as no other was seen */
	const char *trainers[TRAINERS_MAX];
	size_t trainer_count;
	const char *note;
};

static uint64_t points_of(const struct curve_reading *r)
{
	return r->log->files.items[r->file].points;
}

/* Points --------------------------------------------------------------------------------------- */

static bool is_asked(const struct console *c, enum curve_role role, struct slice name)
{
	if (!c->asked)
		return false;
	if (role == CURVE_OTHER)
		role = curve_meaning_of(name).role;
	return role != CURVE_OTHER && c->asked >> role & 1;
}

/*
 * One unit in the last place where a program prints so many significant digits and leaves zeros at
 * the end out.
 */
static float unit_of_digits(double value, int digits)
{
	if (value == 0 || !isfinite(value))
		return 0;
	return (float)pow(10, floor(log10(fabs(value))) - digits + 1);
}

/* Where a value stands, and what is known of its line. */
struct place {
	const struct console_shape *shape;
	double x;
	enum curve_unit unit;
	int32_t rank;
	struct slice held_out; /* what the line calls its data: "validation", "validation-1" */
	enum curve_role role;  /* of what was added last */
};

/* Whether a value may go on behind the end of the file. */
static bool is_cut(const struct console *c, struct slice value)
{
	bool cut = c->cut && value.p + value.n >= c->cut;

	if (cut)
		c->r->log->files.items[c->r->file].torn = true;
	return cut;
}

static void meet_trainer(struct console *c, const char *trainer)
{
	c->anything = false;
	for (size_t i = 0; i < c->trainer_count; i++)
		if (strcmp(c->trainers[i], trainer) == 0)
			return;
	if (c->trainer_count < TRAINERS_MAX)
		c->trainers[c->trainer_count++] = trainer;
}

/* curve_series_of(), which costs as much as all else of a field together, once for each series. */
static int find_series(struct console *c, const struct place *at, struct slice name,
	enum curve_role role, enum curve_mean mean, uint32_t *series, struct error *e)
{
	uint64_t asked = (uint64_t)at->unit << 48 | (uint64_t)mean << 40 | (uint64_t)role << 32 |
			 (uint32_t)at->rank;
	uint64_t hash = XXH3_64bits_withSeed(name.p, name.n, asked);
	struct known_series *k = &c->known[hash % KNOWN_SERIES];

	*series = k->series;
	if (k->hash == hash)
		return RP_OK;
	if (curve_series_of(c->r, name, role, at->unit, mean, at->rank, series, e) < 0)
		return e->status;
	*k = (struct known_series){hash, *series};
	if (*series == CURVE_NONE)
		return RP_OK;
	/* A row's mean is of its losses; all else, and what is evaluated, is as it was at the step.
	 */
	struct curve_series *s = &c->r->log->series.items[*series];
	if (s->mean == CURVE_OF_INTERVAL && s->role != CURVE_LOSS && s->role != CURVE_PART_LOSS &&
		s->role != CURVE_SOURCE_LOSS)
		s->mean = CURVE_OF_STEP;
	return RP_OK;
}

static int add_number(struct console *c, struct place *at, struct slice name, enum curve_role role,
	enum curve_mean mean, double value, float resolution, struct error *e)
{
	struct curve_reading *r = c->r;
	uint32_t series;
	double x = at->x;

	at->role = CURVE_OTHER;
	if (is_asked(c, role, name))
		return RP_OK;
	if (find_series(c, at, name, role, mean, &series, e) < 0)
		return e->status;
	if (series != CURVE_NONE)
		at->role = r->log->series.items[series].role;
	if (at->shape->flags & CONSOLE_FROM_0 && at->role != CURVE_VALID_LOSS)
		x += 1;
	if (at->role != CURVE_OTHER) {
		c->marks.last_x = x;
		c->marks.unit = at->unit;
	}
	int status = curve_add(r, series, x, value, resolution, e);
	c->marks.points = points_of(r);
	return status;
}

/* The name of a series of data that is not trained on: with the data's name behind it. */
static struct slice held_out_name(const struct place *at, struct slice name, char *out)
{
	struct slice data = at->held_out.n > 0 ? at->held_out : SLICE("validation");

	if (name.n + data.n + 1 > NAME_MAX_BYTES)
		return name;
	memcpy(out, name.p, name.n);
	out[name.n] = ' ';
	memcpy(out + name.n + 1, data.p, data.n);
	return (struct slice){out, name.n + 1 + data.n};
}

static float resolution_of(
	const struct console_shape *s, const struct console_field *f, double value, float printed)
{
	if (s->flags & CONSOLE_SHORT)
		return unit_of_digits(value, 3);
	if (s->style != CONSOLE_DICT)
		return printed;
	/* Dictionaries: Python leaves zeros at the end out. A loss is rounded to four decimals, or,
	 * as a text, to four digits; fairseq rounds it to three decimals. */
	if (strcmp(s->trainer, "Transformers") != 0)
		return printed > 1e-3f && value < 1000 ? 1e-3f : printed;
	if (f->quoted)
		return unit_of_digits(value, 4);
	return printed > 1e-4f && printed < 1 ? 1e-4f : printed;
}

static int add_field(
	struct console *c, struct place *at, const struct console_field *f, struct error *e)
{
	const struct console_shape *s = at->shape;
	const struct console_field_row *row = console_field_of(s, f->name);
	enum curve_role role = row ? (enum curve_role)row->role : CURVE_OTHER;
	enum curve_mean mean = row && row->mean != CURVE_ANY ? (enum curve_mean)row->mean : s->mean;
	struct slice name = row && row->other[0] ? slice_of(row->other) : f->name;
	char text[NAME_MAX_BYTES];
	double value;
	float resolution;

	at->role = CURVE_OTHER;
	if (is_cut(c, f->value) ||
		!curve_number(f->value, s->flags & CONSOLE_SHORT, &value, &resolution))
		return RP_OK;
	/* Ranks of a pipeline that do not know the loss print -1. */
	if (s->flags & CONSOLE_EACH_RANK && value == -1 && role != CURVE_OTHER)
		return RP_OK;
	if (s->flags & CONSOLE_HELD_OUT) {
		if (!row)
			return RP_OK;
		name = held_out_name(at, name, text);
	}
	resolution = resolution_of(s, f, value, resolution);
	return add_number(c, at, name, role, mean, value, resolution, e);
}

/* Megatron ------------------------------------------------------------------------------------- */

/* What a row of Megatron's says beside its points. */
struct megatron_row {
	bool has_loss;
	double skipped; /* NAN: not said */
};

static void notice_megatron(struct console *c, const struct place *at,
	const struct console_field *f, struct megatron_row *m)
{
	float resolution;

	if (at->role == CURVE_LOSS) {
		m->has_loss = true;
		c->loss_name_n = f->name.n <= NAME_MAX_BYTES ? f->name.n : 0;
		memcpy(c->loss_name, f->name.p, c->loss_name_n);
	} else if (at->role == CURVE_SKIP_COUNT &&
		   !curve_number(f->value, false, &m->skipped, &resolution)) {
		m->skipped = NAN;
	}
}

/*
 * The loss is a mean over the iterations that were not skipped, and printed only where it is above
 * 0. A row without it, of which some iteration was not skipped, thus had no number: that is said
 * where an earlier row of the file had the field, so that it is known to be printed at all.
 */
static int end_megatron(
	struct console *c, struct place *at, const struct megatron_row *m, struct error *e)
{
	double covered = at->x - c->before;
	bool all_skipped = m->skipped > 0 && !(covered > m->skipped);

	c->before = at->x;
	if (m->skipped > 0 && curve_mark(c->r, CURVE_SKIPPED, CURVE_STEPS, at->x, m->skipped,
				      (struct slice){"", 0}, e) < 0)
		return e->status;
	if (m->has_loss || isnan(m->skipped) || all_skipped || c->loss_name_n == 0)
		return RP_OK;
	c->note = "a missing loss of iterations that were not skipped is taken for NaN";
	return add_number(c, at, (struct slice){c->loss_name, c->loss_name_n}, CURVE_LOSS,
		at->shape->mean, NAN, 0, e);
}

/* What stands before "loss at iteration": the name of the data. */
static struct slice held_out_of(const struct console_line *l, const struct console_found *m)
{
	struct slice before = slice_trim((struct slice){l->text.p + l->begin, m->key - l->begin});
	struct slice word = console_last_word(before);

	return word.n == 0 || slice_is(word, "valid") || word.n > 64 ? SLICE("validation") : word;
}

/* The fields of a line whose x is known. */
static int take_fields(
	struct console *c, struct place *at, struct slice text, size_t from, struct error *e)
{
	const struct console_shape *s = at->shape;
	struct megatron_row m = {false, NAN};
	struct console_field f;

	while (console_shape_field(s, text, &from, &f)) {
		if (s->how == CONSOLE_X_IS_FIELD && slice_is(f.name, s->head))
			continue;
		if (add_field(c, at, &f, e) < 0)
			return e->status;
		if (s->flags & CONSOLE_MEGATRON)
			notice_megatron(c, at, &f, &m);
	}
	return s->flags & CONSOLE_MEGATRON ? end_megatron(c, at, &m, e) : RP_OK;
}

/* Epochs as steps ------------------------------------------------------------------------------ */

/* Old versions round the epoch to two decimals, new ones print four digits of it. */
static float epoch_resolution(const struct console_field *f, double epoch, float printed)
{
	if (f->quoted)
		return unit_of_digits(epoch, 4);
	return printed >= 0.01f ? 0.01f : printed;
}

static int keep_epoch_row(struct console *c, const struct place *at, struct slice text,
	const struct console_found *m, size_t first, struct error *e)
{
	size_t from = m->head.fields;
	struct console_field f = {0};
	double epoch;
	float resolution = 0;

	while (console_shape_field(m->shape, text, &from, &f) && !slice_is(f.name, m->shape->head))
		;
	if (!curve_number(f.value, false, &epoch, &resolution))
		return RP_OK;
	struct epoch_row *row = array_push(&c->epoch_rows, c->r->log->limits->curve_points);
	if (!row)
		return c->epoch_rows.count >= c->r->log->limits->curve_points
			       ? RP_OK
			       : fail(e, RP_E_MEMORY, ERROR_NO_OFFSET,
					 "no memory for the rows of a console log");
	*row = (struct epoch_row){.first = first,
		.count = c->r->log->points.count - first,
		.epoch = at->x,
		.step = NAN,
		.resolution = epoch_resolution(&f, epoch, resolution),
		.launched = c->launched};
	c->launched = false;
	c->bar_follows = true;
	return RP_OK;
}

/* The first row behind the row `i` that may be of another launch. */
static size_t launch_end(const struct console *c, size_t i)
{
	for (i++; i < c->epoch_rows.count; i++)
		if (c->epoch_rows.items[i].launched ||
			c->epoch_rows.items[i].epoch < c->epoch_rows.items[i - 1].epoch)
			break;
	return i;
}

/*
 * Fill in the steps of the rows of a launch. False where they are not known, or where the bars do
 * not go with the epochs: then they are bars of something else, or the two streams were not joined
 * in the order in which they were written.
 */
static bool fill_steps(struct epoch_row *rows, size_t n)
{
	double steps = NAN;

	for (size_t i = 0; i < n; i++)
		if (!isnan(rows[i].step) && rows[i].epoch > 0)
			steps = rows[i].step / rows[i].epoch;
	for (size_t i = 0; i < n; i++) {
		double step = rows[i].epoch * steps, doubt = rows[i].resolution * steps;
		if (!(steps > 0) || (isnan(rows[i].step) && doubt > 0.9))
			return false;
		if (isnan(rows[i].step))
			rows[i].step = round(step);
		else if (fabs(rows[i].step - step) > 0.5 + doubt)
			return false;
		if (i > 0 && rows[i].epoch > rows[i - 1].epoch && rows[i].step <= rows[i - 1].step)
			return false;
	}
	return true;
}

/* Put the points of all rows at steps, if they can be known of all. */
static void put_at_steps(struct console *c)
{
	struct curve_log *l = c->r->log;

	for (size_t i = 0, end; i < c->epoch_rows.count; i = end) {
		end = launch_end(c, i);
		if (!fill_steps(&c->epoch_rows.items[i], end - i))
			return;
	}
	for (size_t i = 0; i < c->epoch_rows.count; i++) {
		const struct epoch_row *row = &c->epoch_rows.items[i];
		for (size_t k = row->first; k < row->first + row->count; k++) {
			l->points.items[k].x = row->step;
			l->series.items[l->points.items[k].series].unit = CURVE_STEPS;
		}
		c->note = "the rows say epochs; their steps are those of the progress bar";
	}
}

/* Points of several lines ---------------------------------------------------------------------- */

static int open_below(
	struct console *c, const struct console_line *l, const struct console_found *m)
{
	struct below *b = NULL;

	for (size_t i = 0; i < c->below_count; i++)
		if (c->below[i].rank == l->rank)
			b = &c->below[i];
	if (!b)
		b = &c->below[c->below_count < BELOW_MAX ? c->below_count++ : BELOW_MAX - 1];
	*b = (struct below){.rank = l->rank,
		.shape = m->shape,
		.x = m->head.x,
		.unit = m->shape->unit,
		.wall = c->r->wall,
		.until = c->lines.number + BELOW_LINES};
	if (m->shape->flags & CONSOLE_AT_LAST) {
		b->x = c->marks.last_x;
		b->unit = c->marks.unit;
	} else if (!isnan(m->head.epoch) && m->head.total > 0) {
		b->x = m->head.epoch - 1 + m->head.x / m->head.total;
	}
	return RP_OK;
}

static void close_below(struct console *c, size_t i)
{
	c->below[i] = c->below[--c->below_count];
}

/* Whether the line belongs to a point that waits for it. */
static bool take_below(
	struct console *c, const struct console_line *l, int *status, struct error *e)
{
	struct slice text = {l->text.p + l->begin, l->text.n - l->begin};
	bool indented = text.n > 1 && (text.p[0] == '\t' || (text.p[0] == ' ' && text.p[1] == ' '));
	struct console_field f;

	for (size_t i = 0; i < c->below_count; i++) {
		struct below *b = &c->below[i];
		if (b->rank != l->rank)
			continue;
		size_t at = 0;
		if (!indented || c->lines.number > b->until || isnan(b->x) ||
			!console_next(text, b->shape->style, &at, &f)) {
			close_below(c, i);
			return false;
		}
		struct place place = {.shape = b->shape, .x = b->x, .unit = b->unit, .rank = -1};
		if (slice_starts(f.name, SLICE("Train ")))
			f.name = (struct slice){f.name.p + 6, f.name.n - 6};
		else if (slice_starts(f.name, SLICE("Eval ")))
			f.name = (struct slice){f.name.p + 5, f.name.n - 5};
		c->r->wall = b->wall;
		*status = add_field(c, &place, &f, e);
		return true;
	}
	return false;
}

/* Progress bars -------------------------------------------------------------------------------- */

/* Whether a value that is shown again and again changed: a mean of an epoch, an evaluation. */
static bool has_changed(struct console *c, struct slice name, double value)
{
	uint64_t hash = XXH3_64bits(name.p, name.n);
	struct shown_value *v = &c->shown[hash % SHOWN_VALUES];
	bool same = v->name == hash && v->value == value;

	*v = (struct shown_value){hash, value};
	return !same;
}

/*
 * Say what the bar showed last at its place: it is drawn again and again, at a new place with the
 * old values first.
 */
static int flush_bar(struct console *c, struct error *e)
{
	struct held_bar *b = &c->bar;
	uint64_t at = c->r->at;
	double wall = c->r->wall;
	const char *cut = c->cut;
	int status = RP_OK;

	if (b->count == 0)
		return RP_OK;
	c->r->at = b->at;
	c->r->wall = NAN;
	/* What was kept was whole. */
	c->cut = NULL;
	for (size_t i = 0; i < b->count && status == RP_OK; i++) {
		const struct held_field *h = &b->fields[i];
		struct place place = {
			.shape = b->shape, .x = b->x, .unit = b->shape->unit, .rank = -1};
		struct console_field f = {
			.name = {h->text, h->name_n}, .value = {h->text + h->name_n, h->value_n}};
		double value;
		float resolution;
		if (!h->running)
			status = add_field(c, &place, &f, e);
		else if (curve_number(f.value, false, &value, &resolution))
			status = add_number(c, &place, f.name, CURVE_LOSS, CURVE_OF_UNKNOWN, value,
				resolution, e);
	}
	b->count = 0;
	b->said = true;
	c->r->at = at;
	c->r->wall = wall;
	c->cut = cut;
	return status;
}

/* Keep a field of a bar until the bar moves on. */
static void hold_field(struct console *c, const struct console_field *f, bool running)
{
	struct held_bar *b = &c->bar;
	struct held_field *h = b->fields;
	size_t i = 0;

	if (b->said || is_cut(c, f->value) || f->name.n + f->value.n > sizeof h->text)
		return;
	while (i < b->count &&
		!slice_eq((struct slice){b->fields[i].text, b->fields[i].name_n}, f->name))
		i++;
	if (i == HELD_FIELDS)
		return;
	b->count += i == b->count;
	h = &b->fields[i];
	memcpy(h->text, f->name.p, f->name.n);
	memcpy(h->text + f->name.n, f->value.p, f->value.n);
	h->name_n = (uint8_t)f->name.n;
	h->value_n = (uint8_t)f->value.n;
	h->running = running;
}

static int move_bar(struct console *c, const struct console_shape *s, double x, struct error *e)
{
	if (c->bar.x != x || c->bar.shape != s) {
		if (flush_bar(c, e) < 0)
			return e->status;
		c->bar.said = false;
	}
	c->bar.shape = s;
	c->bar.x = x;
	c->bar.at = c->r->at;
	return RP_OK;
}

static int take_version(struct console *c, double version, struct error *e)
{
	bool first = isnan(c->version), same = c->version == version;

	c->version = version;
	return first || same ? RP_OK : console_launch(&c->marks, e);
}

/* A field of a bar. `running`: Lightning 1 shows a mean of the last 20 batches before v_num. */
static int take_bar_field(struct console *c, struct place *at, const struct console_field *f,
	bool running, struct error *e)
{
	double value;
	float resolution;

	if (!curve_number(f->value, false, &value, &resolution) || slice_is(f->name, "v_num"))
		return RP_OK;
	running = running && slice_is(f->name, "loss");
	if (running)
		c->note = "loss is a running mean of the last 20 batches";
	struct curve_meaning says = curve_meaning_of(f->name);
	if (says.role != CURVE_VALID_LOSS && !(says.says_mean && says.mean == CURVE_OF_EPOCH))
		hold_field(c, f, running);
	else if (has_changed(c, f->name, value))
		return add_field(c, at, f, e);
	return RP_OK;
}

static int take_bar(struct console *c, struct place *at, const struct console_line *l,
	const struct console_found *m, struct error *e)
{
	size_t from = m->head.fields;
	struct slice fields = {l->text.p + from, l->text.n - from};
	size_t v_num = slice_find(fields, SLICE("v_num="));
	struct console_field f;
	double version;

	if (v_num != SIZE_MAX && console_whole(fields, v_num, &version) && version != c->version) {
		if (flush_bar(c, e) < 0 || take_version(c, version, e) < 0)
			return e->status;
		c->bar.said = false;
	}
	if (move_bar(c, m->shape, at->x, e) < 0)
		return e->status;
	if (v_num != SIZE_MAX)
		c->batches = m->head.total;
	/* A bar of Lightning's that begins shows what the one before ended with. */
	c->bar.said = c->bar.said || (v_num != SIZE_MAX && m->head.done == 0);
	while (console_shape_field(m->shape, l->text, &from, &f)) {
		bool before = v_num != SIZE_MAX && f.name.p < fields.p + v_num;
		if (take_bar_field(c, at, &f, before, e) < 0)
			return e->status;
	}
	return RP_OK;
}

static int take_keras(struct console *c, struct place *at, const struct console_line *l,
	const struct console_found *m, struct error *e)
{
	struct console_field f;
	size_t from = m->head.fields;

	/* Without its epoch's line a bar tells nothing. */
	if (isnan(c->epoch))
		return RP_OK;
	at->x = c->epoch - 1 + m->head.x / m->head.total;
	if (move_bar(c, m->shape, at->x, e) < 0)
		return e->status;
	while (console_shape_field(m->shape, l->text, &from, &f))
		hold_field(c, &f, false);
	return RP_OK;
}

/*
 * Lightning's bars say epochs, its checkpoints' names steps and an epoch: epoch=1-step=12.ckpt. A
 * mark is put at the epochs of its step where that lies in the epoch that the name says, since
 * then a step is a batch.
 */
static void put_marks_at_epochs(struct console *c, size_t first)
{
	for (size_t i = first; i < c->r->log->marks.count && !isnan(c->batches); i++) {
		struct curve_mark *k = &c->r->log->marks.items[i];
		size_t at = slice_find(slice_of(k->text), SLICE("epoch="));
		double epoch;
		if ((k->kind != CURVE_LOADED && k->kind != CURVE_SAVED) || at == SIZE_MAX ||
			!console_whole(slice_of(k->text), at, &epoch))
			continue;
		double x = k->x / c->batches;
		if (!(x >= epoch && x <= epoch + 1))
			continue;
		k->x = x;
		k->unit = CURVE_EPOCHS;
	}
}

/* "Epoch 3/10", alone on its line, which other programs print as well. */
static int take_turn(struct console *c, double epoch, struct error *e)
{
	c->epoch = epoch;
	return curve_mark(
		c->r, CURVE_EPOCH, CURVE_EPOCHS, epoch - 1, epoch, (struct slice){"", 0}, e);
}

/* Lines ---------------------------------------------------------------------------------------- */

static int take_match(struct console *c, const struct console_line *l,
	const struct console_found *m, struct error *e)
{
	const struct console_shape *s = m->shape;
	struct place at = {.shape = s,
		.x = m->head.x,
		.unit = s->unit,
		.rank = s->flags & CONSOLE_EACH_RANK ? l->rank : -1};

	size_t fields = s->style == CONSOLE_DICT ? m->head.fields : m->key;
	c->r->wall = console_clock((struct slice){l->text.p, fields});
	/* What a bar showed last stands before what is on other lines. */
	if (s->how != CONSOLE_BAR && s->how != CONSOLE_KERAS && flush_bar(c, e) < 0)
		return e->status;
	if (s->how == CONSOLE_TURN)
		return take_turn(c, m->head.x, e);
	bool lightning = s->how == CONSOLE_BAR && slice_find(l->text, SLICE("v_num=")) != SIZE_MAX;
	meet_trainer(c, lightning ? "Lightning" : s->trainer);
	switch (s->how) {
	case CONSOLE_BELOW:
		return open_below(c, l, m);
	case CONSOLE_BAR:
		return take_bar(c, &at, l, m, e);
	case CONSOLE_KERAS:
		return take_keras(c, &at, l, m, e);
	case CONSOLE_ON_LINE:
	case CONSOLE_X_IS_FIELD:
	case CONSOLE_TURN:
		break;
	}
	if (s->flags & CONSOLE_BITS)
		c->note = "the losses are in bits, to the base 2";
	if (s->flags & CONSOLE_DATA_BEFORE)
		at.held_out = held_out_of(l, m);
	/* Without its end a row may have any x. */
	if (s->how == CONSOLE_X_IS_FIELD && c->cut && l->text.p[l->text.n - 1] != '}') {
		c->r->log->files.items[c->r->file].torn = true;
		return RP_OK;
	}
	size_t first = c->r->log->points.count;
	if (take_fields(c, &at, l->text, m->head.fields, e) < 0)
		return e->status;
	return s->flags & CONSOLE_AS_STEPS ? keep_epoch_row(c, &at, l->text, m, first, e) : RP_OK;
}

static int take_marks(struct console *c, const struct console_line *l,
	const struct console_hit *hits, size_t n, struct error *e)
{
	size_t marks = c->r->log->marks.count;

	for (size_t i = 0; i < n; i++)
		if (hits[i].key < console_mark_count && flush_bar(c, e) < 0)
			return e->status;
	for (size_t i = 0; i < n; i++)
		if (hits[i].key < console_mark_count &&
			console_mark(&c->marks, hits[i].key, l, hits[i].at, e) < 0)
			return e->status;
	for (; marks < c->r->log->marks.count; marks++) {
		const struct curve_mark *k = &c->r->log->marks.items[marks];
		c->launched = c->launched || k->kind == CURVE_LAUNCH || k->kind == CURVE_LOADED;
		if (k->kind == CURVE_LAUNCH)
			c->before = c->epoch = NAN;
		else if (k->kind == CURVE_LOADED)
			c->before = k->x;
	}
	return RP_OK;
}

/* Lines of nobody ------------------------------------------------------------------------------ */

static const struct console_field_row no_fields = {{NULL, 0}, 0, 0, NULL};

static const struct console_shape any = {
	.trainer = "", .mean = CURVE_OF_UNKNOWN, .flags = CONSOLE_EACH_RANK, .fields = &no_fields};

/* Whether words of a line are about an x and a loss. */
static bool guess_line(struct slice text, double *x, enum curve_unit *unit)
{
	struct console_field f;
	size_t from = 0;

	if (slice_find(text, SLICE("oss")) == SIZE_MAX || !console_guess_x(text, x, unit))
		return false;
	while (console_next_guess(text, &from, &f)) {
		enum curve_role role = curve_meaning_of(f.name).role;
		if (role == CURVE_LOSS || role == CURVE_VALID_LOSS)
			return true;
	}
	return false;
}

/*
 * A line that no row fits, of a file without any that does: a word for x and a loss are wanted.
 * What the words mean is a guess, so nothing is taken of files of known trainers.
 */
static int take_anything(struct console *c, const struct console_line *l, struct error *e)
{
	struct slice text = {l->text.p + l->begin, l->text.n - l->begin};
	struct place at = {.shape = &any, .rank = l->rank};
	struct console_field f;
	size_t from;

	if (!guess_line(text, &at.x, &at.unit))
		return RP_OK;
	c->r->wall = console_clock(l->text);
	c->note = "no known trainer: what is x and what is a loss was guessed from words";
	for (from = 0; console_next_guess(text, &from, &f);)
		if (curve_meaning_of(f.name).role != CURVE_OTHER &&
			curve_meaning_of(f.name).role != CURVE_EPOCH_COUNT &&
			add_field(c, &at, &f, e) < 0)
			return e->status;
	return RP_OK;
}

/* Patterns of the user ------------------------------------------------------------------------- */

/* A pattern without a group is a name for other readers. */
static void compile_patterns(struct console *c)
{
	const struct curve_options *o = c->r->options;
	char why[128];

	for (size_t i = 0; i < o->pattern_count && c->pattern_count < PATTERN_MAX; i++) {
		struct pattern *p = &c->patterns[c->pattern_count];
		if (!strchr(o->patterns[i].pattern, '('))
			continue;
		int failed = regcomp(&p->compiled, o->patterns[i].pattern, REG_EXTENDED);
		if (failed) {
			regerror(failed, &p->compiled, why, sizeof why);
			curve_lost(
				c->r, "the pattern of the series %s: %s", o->patterns[i].name, why);
			continue;
		}
		p->said = &o->patterns[i];
		p->with_x = p->compiled.re_nsub > 1;
		p->calls = 0;
		enum curve_role role = curve_role_named(slice_of(p->said->name));
		if (role != CURVE_OTHER)
			c->asked |= 1u << role;
		c->pattern_count++;
	}
}

static struct slice group_of(const char *text, const regmatch_t *m)
{
	return m->rm_so < 0 ? (struct slice){"", 0}
			    : (struct slice){text + m->rm_so, (size_t)(m->rm_eo - m->rm_so)};
}

/*
 * Where the value of a pattern stands: what its first group of two says, else what a word before a
 * number says, else the number of the match. One way for all matches of a pattern.
 */
static bool x_of_pattern(
	struct pattern *p, struct slice text, struct slice group, enum curve_unit *unit, double *x)
{
	float resolution;

	*unit = CURVE_STEPS;
	if (p->with_x)
		return curve_number(group, true, x, &resolution) && isfinite(*x);
	bool found = console_guess_x(text, x, unit);
	if (p->calls == 0)
		p->by_word = found;
	p->calls++;
	if (p->by_word)
		return found;
	*unit = CURVE_CALLS;
	*x = p->calls;
	return true;
}

/* O(patterns * bytes) on at most PATTERN_TEXT bytes, as fast as regexec(3) is. */
static int take_patterns(struct console *c, const struct console_line *l, struct error *e)
{
	char text[PATTERN_TEXT];
	size_t n = l->text.n < sizeof text - 1 ? l->text.n : sizeof text - 1;
	regmatch_t m[3];
	double x, value;
	float resolution;
	enum curve_unit unit;
	uint32_t series;

	memcpy(text, l->text.p, n);
	text[n] = '\0';
	for (size_t i = 0; i < c->pattern_count; i++) {
		struct pattern *p = &c->patterns[i];
		const regmatch_t *group = &m[p->with_x ? 2 : 1];
		if (regexec(&p->compiled, text, 3, m, 0) != 0 ||
			(c->cut && group->rm_eo == (regoff_t)l->text.n) ||
			!curve_number(group_of(text, group), true, &value, &resolution) ||
			!x_of_pattern(p, l->text, group_of(text, &m[1]), &unit, &x))
			continue;
		c->r->wall = console_clock(l->text);
		struct slice name = slice_of(p->said->name);
		if (curve_series_of(c->r, name, curve_role_named(name), unit, CURVE_OF_UNKNOWN,
			    l->rank, &series, e) < 0 ||
			curve_add(c->r, series, x, value, resolution, e) < 0)
			return e->status;
		c->marks.last_x = x;
		c->marks.unit = unit;
		c->marks.points = points_of(c->r);
	}
	return RP_OK;
}

/* Reading -------------------------------------------------------------------------------------- */

/* A line without carriage returns. `hits`, n: the keys in it; SIZE_MAX: not looked for yet. */
static int take_part(
	struct console *c, struct slice text, struct console_hit *hits, size_t n, struct error *e)
{
	struct console_line l = {.text = text};
	struct console_found m;
	int status = RP_OK;

	if (memchr(text.p, '\x1b', text.n) || memchr(text.p, '\b', text.n)) {
		l.text.n = console_plain(
			(struct slice){text.p, text.n < PLAIN_MAX ? text.n : PLAIN_MAX}, c->plain);
		l.text.p = c->plain;
		n = SIZE_MAX;
	}
	c->cut = c->torn ? l.text.p + l.text.n : NULL;
	if (c->bar_follows) {
		struct epoch_row *row = &c->epoch_rows.items[c->epoch_rows.count - 1];
		double step, total;
		c->bar_follows = false;
		if (console_bar_is_plain(l.text) && console_bar(l.text, &step, &total))
			row->step = step;
	}
	console_label(&l);
	if (c->pattern_count > 0 && take_patterns(c, &l, e) < 0)
		return e->status;
	if (c->below_count > 0 && take_below(c, &l, &status, e))
		return status;
	if (n == SIZE_MAX)
		n = console_keys_find(&c->index.keys, l.text, hits);
	c->r->wall = NAN;
	c->marks.line = l.text;
	if (n > 0 && !c->cut && take_marks(c, &l, hits, n, e) < 0)
		return e->status;
	if (n > 0 && console_recognise(&c->index, &l, hits, n, &m))
		return take_match(c, &l, &m, e);
	return c->anything ? take_anything(c, &l, e) : RP_OK;
}

/* Chatter leaves here, after one pass over its bytes. `torn`: the line has no end. */
static int take_line(struct console *c, struct slice line, bool torn, struct error *e)
{
	struct console_hit hits[CONSOLE_HITS_MAX];
	size_t n = console_keys_find(&c->index.keys, line, hits);

	if (n == 0 && c->below_count == 0 && c->pattern_count == 0 && !c->bar_follows &&
		!(c->anything && memmem(line.p, line.n, "oss", 3)))
		return RP_OK;
	while (line.n > 0 && line.p[line.n - 1] == '\r')
		line.n--;
	c->torn = torn;
	if (!memchr(line.p, '\r', line.n))
		return take_part(c, line, hits, n, e);
	while (line.n > 0) {
		const char *end = memchr(line.p, '\r', line.n);
		struct slice part = {line.p, end ? (size_t)(end - line.p) : line.n};
		c->torn = torn && !end;
		if (part.n > 0 && take_part(c, part, hits, SIZE_MAX, e) < 0)
			return e->status;
		size_t used = end ? part.n + 1 : part.n;
		line = (struct slice){line.p + used, line.n - used};
	}
	return RP_OK;
}

static void say_writer(struct console *c)
{
	char text[256];
	size_t n = 0;

	text[0] = '\0';
	for (size_t i = 0; i < c->trainer_count; i++)
		n += (size_t)snprintf(
			text + n, sizeof text - n, "%s%s", i > 0 ? ", " : "", c->trainers[i]);
	curve_writer(c->r, text);
	if (c->note)
		curve_note(c->r, "%s", c->note);
}

static int read_lines(struct console *c, struct error *e)
{
	struct curve_reading *r = c->r;
	struct error why = ERROR_INIT;
	enum line_state state = LINE_NONE;
	int status = RP_OK;

	while (status == RP_OK && (state = lines_next(&c->lines, &why)) < LINE_NONE) {
		r->at = c->lines.number;
		r->log->files.items[r->file].lines = c->lines.number;
		if (state == LINE_TOO_LONG)
			curve_lost(r, "a line that is longer than %llu bytes (limit line-bytes)",
				(unsigned long long)r->log->limits->line_bytes);
		else
			status = take_line(c, c->lines.text, state == LINE_LAST, e);
	}
	if (status == RP_OK && state == LINE_FAILED)
		curve_lost(r, "the rest was not read: %s", why.text);
	return status;
}

static int probe(const char *name, const char *head, size_t n);

static int read_console(struct curve_reading *r, struct error *e)
{
	struct console *c = calloc(1, sizeof *c);

	if (!c || !(c->plain = malloc(PLAIN_MAX))) {
		free(c);
		return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for reading a console log");
	}
	c->r = r;
	c->before = c->epoch = c->version = c->batches = NAN;
	c->marks = (struct console_marks){
		.r = r, .last_x = NAN, .mark_x = NAN, .mark_kind = -1, .overflow_of = -1};
	c->anything = probe(r->name, r->head, r->head_n) < 2;
	console_index_init(&c->index);
	for (size_t i = 0; i < KNOWN_SERIES; i++)
		c->known[i].series = CURVE_NONE;
	compile_patterns(c);
	size_t first = r->log->marks.count;
	lines_init(&c->lines, r->source, r->log->limits->line_bytes);
	c->lines.piece = PIECE;
	int status = read_lines(c, e);
	if (status == RP_OK)
		status = flush_bar(c, e);
	if (status == RP_OK) {
		put_at_steps(c);
		put_marks_at_epochs(c, first);
		say_writer(c);
	}
	array_release(&c->epoch_rows);
	lines_release(&c->lines);
	for (size_t i = 0; i < c->pattern_count; i++)
		regfree(&c->patterns[i].compiled);
	free(c->plain);
	free(c);
	return status;
}

/* Recognising ---------------------------------------------------------------------------------- */

/* Whether a line of a file's beginning is one of a known trainer's. */
static bool is_known(const struct console_index *x, struct slice text, char *plain)
{
	struct console_hit hits[CONSOLE_HITS_MAX];
	struct console_line l = {.text = text};
	struct console_found m;

	if (console_keys_find(&x->keys, text, hits) == 0)
		return false;
	l.text = (struct slice){plain, console_plain(text, plain)};
	console_label(&l);
	size_t n = console_keys_find(&x->keys, l.text, hits);
	for (size_t i = 0; i < n; i++)
		if (hits[i].key < console_mark_count && console_mark_is_banner(hits[i].key))
			return true;
	return console_recognise(x, &l, hits, n, &m) && m.shape->how != CONSOLE_TURN;
}

/* A zero beside another: the hole that a crash or a log that was cut short left, not UTF-16. */
static bool in_hole(struct slice head, size_t i)
{
	return head.p[i] == '\0' &&
	       ((i > 0 && head.p[i - 1] == '\0') || (i + 1 < head.n && head.p[i + 1] == '\0'));
}

/* Text, coded as programs print it, not UTF-16 and nothing compressed. */
static bool is_text(struct slice head)
{
	if (head.n == 0 || (unsigned char)head.p[0] >= 0xfd)
		return false;
	for (size_t i = 0; i < head.n; i++)
		if ((unsigned char)head.p[i] < ' ' && !memchr("\n\r\t\b\a\f\v\x1b", head.p[i], 8) &&
			!in_hole(head, i))
			return false;
	return true;
}

/* Programs and documents quote logs. */
static bool is_document(const char *name)
{
	static const char *const ends[] = {".md", ".rst", ".py", ".sh", ".slurm", ".ipynb", ".html",
		".c", ".h", ".cu", ".json", ".jsonl", ".yaml", ".yml", ".tex", ".csv", ".tsv"};

	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
		if (slice_ends(slice_of(name), slice_of(ends[i])))
			return true;
	return false;
}

static int probe(const char *name, const char *head, size_t n)
{
	struct slice text = {head, n < CURVE_HEAD ? n : CURVE_HEAD};
	bool known = false;

	if (!is_text(text))
		return 0;
	if (is_document(name))
		return 1;
	struct console_index *x = malloc(sizeof *x);
	char *plain = malloc(CURVE_HEAD);
	if (x && plain) {
		console_index_init(x);
		while (!known && text.n > 0) {
			size_t end = 0;
			while (end < text.n && text.p[end] != '\n' && text.p[end] != '\r')
				end++;
			known = is_known(x, (struct slice){text.p, end}, plain);
			end += end < text.n;
			text = (struct slice){text.p + end, text.n - end};
		}
	}
	free(x);
	free(plain);
	return known ? 2 : 1;
}

/* How sure the line at hand makes that it is one of a training log; of a progress bar its parts. */
static int judge_line(const struct console_index *x, struct slice line, char *plain)
{
	int best = 0;

	while (line.n > 0 && best < 2) {
		const char *end = memchr(line.p, '\r', line.n);
		struct slice part = {line.p, end ? (size_t)(end - line.p) : line.n};
		struct console_line l = {.text = part};
		enum curve_unit unit;
		double at;
		size_t used = end ? part.n + 1 : part.n;
		line = (struct slice){line.p + used, line.n - used};
		if (part.n >= PLAIN_MAX)
			continue;
		if (is_known(x, part, plain)) {
			best = 2;
		} else if (best == 0 && slice_find(part, SLICE("oss")) != SIZE_MAX) {
			l.text = (struct slice){plain, console_plain(part, plain)};
			console_label(&l);
			l.text = (struct slice){l.text.p + l.begin, l.text.n - l.begin};
			best = guess_line(l.text, &at, &unit);
		}
	}
	return best;
}

/*
 * A job prints much before its first step: its script, its environment, its own source. Two passes
 * over the bytes.
 */
static int search(const struct source *source, uint64_t most, int enough, uint64_t *used)
{
	struct lines lines;
	struct error ignored = ERROR_INIT;
	struct source part = *source;
	enum line_state state;
	int best = 0;

	struct console_index *x = malloc(sizeof *x);
	char *plain = malloc(PLAIN_MAX);
	*used = 0;
	part.size = part.size < most ? part.size : most;
	if (x && plain) {
		console_index_init(x);
		lines_init(&lines, &part, PIECE);
		lines.piece = PLAIN_MAX;
		while (best < enough && (state = lines_next(&lines, &ignored)) < LINE_NONE) {
			int answer =
				state == LINE_TOO_LONG ? 0 : judge_line(x, lines.text, plain);
			best = answer > best ? answer : best;
			*used = lines.offset + lines.text.n;
		}
		lines_release(&lines);
	}
	free(x);
	free(plain);
	return best;
}

const struct curve_reader curve_reader_console = {
	.name = "console", .probe = probe, .read = read_console, .search = search};
