/* SPDX-License-Identifier: MIT */
/*
 * Progress bars, and the rows beside them: what a bar shows counts when it moves on, and the bar
 * that is drawn again below a row of Transformers' says its step.
 */
#include <math.h>
#include <string.h>
#include <xxhash.h>

#include "curve/console_parts.h"

/* Bars ----------------------------------------------------------------------------------------- */

/* Whether a value that is shown again and again changed: a mean of an epoch, an evaluation. */
static bool has_changed(struct console *c, struct slice name, double value)
{
	uint64_t hash = XXH3_64bits(name.p, name.n);
	struct console_shown_value *v = &c->shown[hash % CONSOLE_SHOWN_VALUES];
	bool same = v->name == hash && v->value == value;

	*v = (struct console_shown_value){hash, value};
	return !same;
}

int console_flush_bar(struct console *c, struct error *e)
{
	struct console_held_bar *b = &c->bar;
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
		const struct console_held_field *h = &b->fields[i];
		struct console_place place = {
			.shape = b->shape, .x = b->x, .unit = b->shape->unit, .rank = -1};
		struct console_field f = {
			.name = {h->text, h->name_n}, .value = {h->text + h->name_n, h->value_n}};
		double value;
		float resolution;
		if (!h->running)
			status = console_add_field(c, &place, &f, e);
		else if (curve_number(f.value, false, &value, &resolution))
			status = console_add_number(c, &place, f.name, CURVE_LOSS, CURVE_OF_UNKNOWN,
				value, resolution, e);
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
	struct console_held_bar *b = &c->bar;
	struct console_held_field *h = b->fields;
	size_t i = 0;

	if (b->said || console_is_cut(c, f->value) || f->name.n + f->value.n > sizeof h->text)
		return;
	while (i < b->count &&
		!slice_eq((struct slice){b->fields[i].text, b->fields[i].name_n}, f->name))
		i++;
	if (i == CONSOLE_HELD_FIELDS)
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
		if (console_flush_bar(c, e) < 0)
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
static int take_bar_field(struct console *c, struct console_place *at,
	const struct console_field *f, bool running, struct error *e)
{
	double value;
	float resolution;

	if (!curve_number(f->value, false, &value, &resolution) || slice_is(f->name, "v_num"))
		return RP_OK;
	running = running && slice_is(f->name, "loss");
	if (running)
		c->note = "loss is a running mean of the last 20 batches";
	struct console_known_name says = console_name(c, f->name);
	if (says.role != CURVE_VALID_LOSS && !says.of_epoch)
		hold_field(c, f, running);
	else if (has_changed(c, f->name, value))
		return console_add_field(c, at, f, e);
	return RP_OK;
}

int console_take_bar(struct console *c, struct console_place *at, const struct console_line *l,
	const struct console_found *m, struct error *e)
{
	size_t from = m->head.fields;
	struct slice fields = {l->text.p + from, l->text.n - from};
	size_t v_num = slice_find(fields, SLICE("v_num="));
	struct console_field f;
	double version;

	if (v_num != SIZE_MAX && console_whole(fields, v_num, &version) && version != c->version) {
		if (console_flush_bar(c, e) < 0 || take_version(c, version, e) < 0)
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

int console_take_keras(struct console *c, struct console_place *at, const struct console_line *l,
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
void console_put_marks_at_epochs(struct console *c, size_t first)
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

/* Epochs as steps ------------------------------------------------------------------------------ */

/* Old versions round the epoch to two decimals, new ones print four digits of it. */
static float epoch_resolution(const struct console_field *f, double epoch, float printed)
{
	if (f->quoted)
		return console_unit_of_digits(epoch, 4);
	return printed >= 0.01f ? 0.01f : printed;
}

int console_keep_epoch_row(struct console *c, const struct console_place *at,
	const struct console_field *f, size_t first, struct error *e)
{
	double epoch;
	float resolution = 0;

	if (!curve_number(f->value, false, &epoch, &resolution))
		return RP_OK;
	struct console_epoch_row *row = array_push(&c->epoch_rows, c->r->log->limits->curve_points);
	if (!row)
		return c->epoch_rows.count >= c->r->log->limits->curve_points
			       ? RP_OK
			       : fail(e, RP_E_MEMORY, ERROR_NO_OFFSET,
					 "no memory for the rows of a console log");
	*row = (struct console_epoch_row){.first = first,
		.count = c->r->log->points.count - first,
		.epoch = at->x,
		.step = NAN,
		.resolution = epoch_resolution(f, epoch, resolution),
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

/* Steps as they grow with the epochs of a launch. */
struct epoch_line {
	double steps;  /* of an epoch */
	double offset; /* the step at epoch 0: other than 0 where a resume set the epoch back */
};

/* The line through 0 and the last row whose step is known. */
static struct epoch_line line_from_zero(const struct console_epoch_row *rows, size_t n)
{
	struct epoch_line line = {NAN, 0};

	for (size_t i = 0; i < n; i++)
		if (!isnan(rows[i].step) && rows[i].epoch > 0)
			line.steps = rows[i].step / rows[i].epoch;
	return line;
}

/* The line through the first and the last row whose steps are known, and another between them: two
 * would lie on some line anyway. */
static struct epoch_line line_of_ends(const struct console_epoch_row *rows, size_t n)
{
	const struct console_epoch_row *a = NULL, *b = NULL;
	size_t known = 0;

	for (size_t i = 0; i < n; i++) {
		if (isnan(rows[i].step))
			continue;
		a = a ? a : &rows[i];
		b = &rows[i];
		known++;
	}
	if (known < 3)
		return (struct epoch_line){NAN, 0};
	double steps = (b->step - a->step) / (b->epoch - a->epoch);
	return (struct epoch_line){steps, a->step - steps * a->epoch};
}

/* Fill in the steps of the rows of a launch by a line; false where it is not known, or where the
 * known ones do not lie on it. */
static bool fill_steps(struct console_epoch_row *rows, size_t n, struct epoch_line line)
{
	double before = -INFINITY;

	if (!(line.steps > 0) || !isfinite(line.steps))
		return false;
	for (size_t i = 0; i < n; i++) {
		double at = line.offset + rows[i].epoch * line.steps;
		double doubt = rows[i].resolution * line.steps;
		double step = isnan(rows[i].step) ? round(at) : rows[i].step;
		if (isnan(rows[i].step) ? doubt > 0.9 : fabs(step - at) > 0.5 + doubt)
			return false;
		if (i > 0 && rows[i].epoch > rows[i - 1].epoch && step <= before)
			return false;
		before = step;
	}
	for (size_t i = 0; i < n; i++)
		if (isnan(rows[i].step))
			rows[i].step = round(line.offset + rows[i].epoch * line.steps);
	return true;
}

/*
 * Not where the bars do not go with the epochs: then they are bars of something else, or the two
 * streams were not joined in the order in which they were written.
 */
void console_put_at_steps(struct console *c)
{
	struct curve_log *l = c->r->log;

	for (size_t i = 0, end; i < c->epoch_rows.count; i = end) {
		end = launch_end(c, i);
		struct console_epoch_row *rows = &c->epoch_rows.items[i];
		size_t n = end - i;
		if (!fill_steps(rows, n, line_from_zero(rows, n)) &&
			!fill_steps(rows, n, line_of_ends(rows, n)))
			return;
	}
	for (size_t i = 0; i < c->epoch_rows.count; i++) {
		const struct console_epoch_row *row = &c->epoch_rows.items[i];
		for (size_t k = row->first; k < row->first + row->count; k++) {
			l->points.items[k].x = row->step;
			l->series.items[l->points.items[k].series].unit = CURVE_STEPS;
		}
		c->note = "the rows say epochs; their steps are those of the progress bar";
	}
}
