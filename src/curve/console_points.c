/* SPDX-License-Identifier: MIT */
/*
 * Points out of the fields of console lines: what a field is a series of, and what one of
 * Megatron's rows says besides.
 */
#include <math.h>
#include <string.h>
#include <xxhash.h>

#include "curve/console_parts.h"

static bool is_asked(const struct console *c, enum curve_role role, struct slice name)
{
	if (!c->asked)
		return false;
	if (role == CURVE_OTHER)
		role = curve_meaning_of(name).role;
	return role != CURVE_OTHER && c->asked >> role & 1;
}

float console_unit_of_digits(double value, int digits)
{
	if (value == 0 || !isfinite(value))
		return 0;
	return (float)pow(10, floor(log10(fabs(value))) - digits + 1);
}

bool console_is_cut(const struct console *c, struct slice value)
{
	bool cut = c->cut && value.p + value.n >= c->cut;

	if (cut)
		c->r->log->files.items[c->r->file].torn = true;
	return cut;
}

struct console_known_name console_name(struct console *c, struct slice name)
{
	uint64_t hash = XXH3_64bits(name.p, name.n);
	struct console_known_name *k = &c->names[hash % CONSOLE_KNOWN_NAMES];

	if (k->hash != hash) {
		struct curve_meaning m = curve_meaning_of(name);
		*k = (struct console_known_name){
			hash, m.role, m.says_mean && m.mean == CURVE_OF_EPOCH};
	}
	return *k;
}

/* curve_series_of(), which costs as much as all else of a field together, once for each series. */
static int find_series(struct console *c, const struct console_place *at, struct slice name,
	enum curve_role role, enum curve_mean mean, uint32_t *series, struct error *e)
{
	uint64_t asked = (uint64_t)at->unit << 48 | (uint64_t)mean << 40 | (uint64_t)role << 32 |
			 (uint32_t)at->rank;
	uint64_t hash = XXH3_64bits_withSeed(name.p, name.n, asked);
	struct console_known_series *k = &c->known[hash % CONSOLE_KNOWN_SERIES];

	*series = k->series;
	if (k->hash == hash)
		return RP_OK;
	if (curve_series_of(c->r, name, role, at->unit, mean, at->rank, series, e) < 0)
		return e->status;
	*k = (struct console_known_series){hash, *series};
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

static bool counts_from_0(const struct console_shape *s, enum curve_role role)
{
	bool loss = role == CURVE_LOSS || role == CURVE_PART_LOSS || role == CURVE_SOURCE_LOSS;

	return (s->flags & CONSOLE_FROM_0 && role != CURVE_VALID_LOSS) ||
	       (s->flags & CONSOLE_LOSS_FROM_0 && loss);
}

int console_put(struct console *c, struct console_place *at, uint32_t series, double value,
	float resolution, struct error *e)
{
	struct curve_reading *r = c->r;
	double x = at->x;

	at->series = series;
	at->role = series == CURVE_NONE ? CURVE_OTHER : r->log->series.items[series].role;
	if (counts_from_0(at->shape, at->role))
		x += 1;
	if (at->role != CURVE_OTHER) {
		c->marks.last_x = x;
		c->marks.unit = at->unit;
	}
	int status = curve_add(r, series, x, value, resolution, e);
	c->marks.points = console_points_of(r);
	return status;
}

int console_add_number(struct console *c, struct console_place *at, struct slice name,
	enum curve_role role, enum curve_mean mean, double value, float resolution, struct error *e)
{
	uint32_t series;

	at->role = CURVE_OTHER;
	if (is_asked(c, role, name))
		return RP_OK;
	if (find_series(c, at, name, role, mean, &series, e) < 0)
		return e->status;
	return console_put(c, at, series, value, resolution, e);
}

/* The name of a series of data that is not trained on: with the data's name behind it. */
static struct slice held_out_name(const struct console_place *at, struct slice name, char *out)
{
	struct slice data = at->held_out.n > 0 ? at->held_out : SLICE("validation");

	if (name.n + data.n + 1 > CONSOLE_NAME_MAX)
		return name;
	memcpy(out, name.p, name.n);
	out[name.n] = ' ';
	memcpy(out + name.n + 1, data.p, data.n);
	return (struct slice){out, name.n + 1 + data.n};
}

float console_resolution_of(const struct console_shape *s, bool quoted, double value, float printed)
{
	if (s->flags & CONSOLE_SHORT)
		return console_unit_of_digits(value, 3);
	if (s->style != CONSOLE_DICT || (!quoted && printed <= 1e-4f))
		return printed;
	/* Dictionaries: Python leaves zeros at the end out. A loss is rounded to four decimals, or,
	 * as a text, to four digits; fairseq rounds it to three decimals. */
	if (strcmp(s->trainer, "Transformers") != 0)
		return printed > 1e-3f && value < 1000 ? 1e-3f : printed;
	if (quoted)
		return console_unit_of_digits(value, 4);
	return printed > 1e-4f && printed < 1 ? 1e-4f : printed;
}

int console_add_field(
	struct console *c, struct console_place *at, const struct console_field *f, struct error *e)
{
	const struct console_shape *s = at->shape;
	const struct console_field_row *row = console_field_of(s, f->name);
	enum curve_role role = row ? (enum curve_role)row->role : CURVE_OTHER;
	enum curve_mean mean = row && row->mean != CURVE_ANY ? (enum curve_mean)row->mean : s->mean;
	struct slice name = row && row->other[0] ? slice_of(row->other) : f->name;
	char text[CONSOLE_NAME_MAX];
	double value;
	float resolution;

	at->role = CURVE_OTHER;
	if (console_is_cut(c, f->value) ||
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
	resolution = console_resolution_of(s, f->quoted, value, resolution);
	return console_add_number(c, at, name, role, mean, value, resolution, e);
}

/* Megatron ------------------------------------------------------------------------------------- */

void console_notice(struct console *c, const struct console_place *at,
	const struct console_field *f, struct console_row *row)
{
	float resolution;

	if (at->role == CURVE_LOSS) {
		row->has_loss = true;
		c->loss_name_n = f->name.n <= CONSOLE_NAME_MAX ? f->name.n : 0;
		memcpy(c->loss_name, f->name.p, c->loss_name_n);
	} else if (at->role == CURVE_SKIP_COUNT &&
		   !curve_number(f->value, false, &row->skipped, &resolution)) {
		row->skipped = NAN;
	}
}

/*
 * The loss is a mean over the iterations that were not skipped, and printed only where it is above
 * 0. A row without it, of which some iteration was not skipped, thus had no number: that is said
 * where an earlier row of the file had the field, so that it is known to be printed at all.
 */
int console_end_row(
	struct console *c, struct console_place *at, const struct console_row *row, struct error *e)
{
	double covered = at->x - c->before;
	bool all_skipped = row->skipped > 0 && !(covered > row->skipped);

	c->before = at->x;
	if (row->skipped > 0 && curve_mark(c->r, CURVE_SKIPPED, CURVE_STEPS, at->x, row->skipped,
					(struct slice){"", 0}, e) < 0)
		return e->status;
	if (row->has_loss || isnan(row->skipped) || all_skipped || c->loss_name_n == 0)
		return RP_OK;
	c->note = "a missing loss of iterations that were not skipped is taken for NaN";
	return console_add_number(c, at, (struct slice){c->loss_name, c->loss_name_n}, CURVE_LOSS,
		at->shape->mean, NAN, 0, e);
}

struct slice console_held_out_of(const struct console_line *l, const struct console_found *m)
{
	struct slice before = slice_trim((struct slice){l->text.p + l->begin, m->key - l->begin});
	struct slice word = console_last_word(before);

	return word.n == 0 || slice_is(word, "valid") || word.n > 64 ? SLICE("validation") : word;
}

int console_take_fields(struct console *c, struct console_place *at, struct slice text, size_t from,
	struct error *e)
{
	const struct console_shape *s = at->shape;
	struct console_row row = {false, NAN};
	struct console_field f;

	c->x_field = (struct console_field){0};
	c->taken_count = 0;
	while (console_shape_field(s, text, &from, &f)) {
		at->series = CONSOLE_NO_SERIES;
		bool is_x = s->how == CONSOLE_X_IS_FIELD && slice_is(f.name, s->head);
		if (!is_x && console_add_field(c, at, &f, e) < 0)
			return e->status;
		if (!is_x && s->flags & CONSOLE_MEGATRON)
			console_notice(c, at, &f, &row);
		if (is_x && !c->x_field.name.p)
			c->x_field = f;
		if (c->taken_count < CONSOLE_TAKEN_MAX)
			c->taken[c->taken_count] = (struct console_taken){f, at->series, is_x};
		c->taken_count++;
	}
	return s->flags & CONSOLE_MEGATRON ? console_end_row(c, at, &row, e) : RP_OK;
}
