/* SPDX-License-Identifier: MIT */
#include "ledger/csv_rows.h"

#include <stdlib.h>
#include <string.h>

static int compare_places(const struct row_place *a, const struct row_place *b)
{
	if (a->dp != b->dp)
		return a->dp < b->dp ? -1 : 1;
	if (a->micro != b->micro)
		return a->micro < b->micro ? -1 : 1;
	return (a->worker > b->worker) - (a->worker < b->worker);
}

static bool same_line(const struct row_place *a, const struct row_place *b)
{
	return compare_places(a, b) == 0 && a->epoch == b->epoch && a->kind == b->kind;
}

static int compare_stretches(const void *pa, const void *pb)
{
	const struct stretch *a = pa, *b = pb;
	int order = compare_places(&a->place, &b->place);

	/* Rows of one place keep their order. */
	return order ? order : (a->first > b->first) - (a->first < b->first);
}

static void order_stretches(struct csv_rows *c)
{
	const struct stretch *all = c->stretches.items;
	bool sorted = true;

	for (size_t i = 1; sorted && i < c->stretches.count; i++)
		sorted = compare_stretches(&all[i - 1], &all[i]) < 0;
	if (!sorted)
		qsort(c->stretches.items, c->stretches.count, sizeof *all, compare_stretches);
}

static int no_memory(struct error *e)
{
	return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for the rows of a step");
}

/* Room for `n` rows in the columns that the file has. */
static bool reserve_rows(const struct csv_rows *c, struct row_columns *to, size_t n)
{
	return array_reserve(&to->keys, n, SIZE_MAX) &&
	       (!c->sources || array_reserve(&to->sources, n, SIZE_MAX)) &&
	       (!c->tokens || array_reserve(&to->tokens, n, SIZE_MAX)) &&
	       (!c->losses || array_reserve(&to->losses, n, SIZE_MAX));
}

static void release_rows(struct row_columns *rows)
{
	array_release(&rows->keys);
	array_release(&rows->sources);
	array_release(&rows->tokens);
	array_release(&rows->losses);
}

/* The rows of stretches of one place, side by side. */
static bool join_stretches(struct csv_rows *c, const struct stretch *s, size_t count, size_t rows)
{
	const struct row_columns *from = &c->rows;
	struct row_columns *to = &c->line;
	size_t at = 0;

	if (!reserve_rows(c, to, rows))
		return false;
	for (size_t i = 0; i < count; at += s[i++].n) {
		size_t first = s[i].first, n = s[i].n;
		memcpy(to->keys.items + at, from->keys.items + first, n * sizeof(uint64_t));
		if (c->sources)
			memcpy(to->sources.items + at, from->sources.items + first,
				n * sizeof(uint32_t));
		if (c->tokens)
			memcpy(to->tokens.items + at, from->tokens.items + first,
				n * sizeof(uint32_t));
		if (c->losses)
			memcpy(to->losses.items + at, from->losses.items + first,
				n * sizeof(float));
	}
	return true;
}

static bool one_source(const uint32_t *sources, size_t n)
{
	size_t i = 1;

	while (i < n && sources[i] == *sources)
		i++;
	return i >= n;
}

/* Stretches of one place as a line. */
static int add_stretches(struct csv_rows *c, const struct stretch *s, size_t count, struct error *e)
{
	struct ledger_line line = ledger_line_empty();
	const struct row_columns *rows = &c->rows;
	size_t first = s->first;

	for (size_t i = 0; i < count; i++)
		line.n += s[i].n;
	if (count > 1) {
		if (!join_stretches(c, s, count, line.n))
			return no_memory(e);
		rows = &c->line;
		first = 0;
	}
	line.step = c->step;
	line.dp = s->place.dp;
	line.micro = s->place.micro;
	line.worker = s->place.worker;
	line.epoch = s->place.epoch;
	line.kind = s->place.kind;
	line.samples = true;
	line.keys = rows->keys.items + first;
	if (c->sources) {
		const uint32_t *sources = rows->sources.items + first;
		line.source = *sources;
		line.sources = one_source(sources, line.n) ? NULL : sources;
	}
	line.tokens = c->tokens ? rows->tokens.items + first : NULL;
	line.losses = c->losses ? rows->losses.items + first : NULL;
	c->r->line = s->line;
	return reading_line(c->r, c->attempt, &line, e);
}

int csv_rows_flush(struct csv_rows *c, struct error *e)
{
	const struct stretch *s = c->stretches.items;
	size_t count = c->stretches.count;
	uint64_t line = c->r->line;
	int status = RP_OK;

	order_stretches(c);
	for (size_t i = 0, end; i < count && status == RP_OK; i = end) {
		for (end = i + 1; end < count; end++)
			if (!same_line(&s[i].place, &s[end].place))
				break;
		status = add_stretches(c, &s[i], end - i, e);
	}
	c->r->line = line;
	c->rows.keys.count = c->stretches.count = 0;
	return status;
}

/* Whether a row is of the step at hand; there may be no more room for it. */
static bool goes_on(const struct csv_rows *c, const struct csv_row *row)
{
	return c->stretches.count > 0 && c->step == row->step && c->attempt == row->attempt &&
	       c->rows.keys.count < CSV_ROWS_MAX;
}

int csv_rows_add(struct csv_rows *c, const struct csv_row *row, uint64_t line, struct error *e)
{
	if (!goes_on(c, row) && csv_rows_flush(c, e) < 0)
		return e->status;
	size_t at = c->rows.keys.count, stretches = c->stretches.count;
	struct stretch *s = stretches ? &c->stretches.items[stretches - 1] : NULL;
	if (!s || !same_line(&s->place, &row->place)) {
		s = array_push(&c->stretches, CSV_ROWS_MAX);
		if (!s)
			return no_memory(e);
		*s = (struct stretch){.place = row->place, .line = line, .first = at};
		c->step = row->step;
		c->attempt = row->attempt;
	}
	if (!reserve_rows(c, &c->rows, at + 1))
		return no_memory(e);
	c->rows.keys.items[at] = row->key;
	if (c->sources)
		c->rows.sources.items[at] = row->source;
	if (c->tokens)
		c->rows.tokens.items[at] = row->tokens;
	if (c->losses)
		c->rows.losses.items[at] = row->loss;
	c->rows.keys.count++;
	s->n++;
	return RP_OK;
}

void csv_rows_release(struct csv_rows *c)
{
	release_rows(&c->rows);
	release_rows(&c->line);
	array_release(&c->stretches);
}
