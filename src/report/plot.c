/* SPDX-License-Identifier: MIT */
#include "report/plot.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#define LABEL 9u  /* columns for the values at the left, the axis included */
#define DOTS_X 2u /* of a Braille character */
#define DOTS_Y 4u
#define LOG_RATIO 4.0  /* highest by lowest value from which on the axis is logarithmic */
#define LABEL_EVERY 4u /* rows */

struct canvas {
	unsigned columns, rows; /* characters inside the axes */
	unsigned char *dots;    /* one byte per character: bits of the line */
	unsigned char *dead;
	double x0, x1, y0, y1;
	bool logarithm;
};

static double level(const struct canvas *c, double y)
{
	return c->logarithm ? log(y) : y;
}

/* Find the ranges; false where there is nothing to draw. */
static bool measure(struct canvas *c, const struct plot *p)
{
	double low = INFINITY, high = -INFINITY;
	size_t n = 0;

	c->x0 = INFINITY;
	c->x1 = -INFINITY;
	for (size_t i = 0; i < p->n; i++) {
		if (!isfinite(p->points[i].x) || !isfinite(p->points[i].y))
			continue;
		n++;
		c->x0 = fmin(c->x0, p->points[i].x);
		c->x1 = fmax(c->x1, p->points[i].x);
		low = fmin(low, p->points[i].y);
		high = fmax(high, p->points[i].y);
	}
	if (n < 2 || !(c->x1 > c->x0))
		return false;
	c->logarithm = low > 0 && high > LOG_RATIO * low;
	c->y0 = level(c, low);
	c->y1 = level(c, high);
	if (!(c->y1 > c->y0)) {
		c->y0 -= 0.5;
		c->y1 += 0.5;
	}
	return true;
}

static unsigned scale_to(double v, double from, double to, unsigned cells)
{
	double at = (v - from) / (to - from) * (double)cells;

	return at < 0 ? 0 : at >= (double)cells ? cells - 1 : (unsigned)at;
}

/* Row of dots from the top. */
static unsigned dot_row(const struct canvas *c, double y)
{
	unsigned rows = c->rows * DOTS_Y;

	return rows - 1 - scale_to(level(c, y), c->y0, c->y1, rows);
}

static unsigned dot_column(const struct canvas *c, double x)
{
	return scale_to(x, c->x0, c->x1, c->columns * DOTS_X);
}

static void set_dot(struct canvas *c, unsigned char *to, unsigned column, unsigned row)
{
	static const unsigned char bits[DOTS_X][DOTS_Y] = {{1, 2, 4, 64}, {8, 16, 32, 128}};

	to[(row / DOTS_Y) * c->columns + column / DOTS_X] |= bits[column % DOTS_X][row % DOTS_Y];
}

/* Points that stand in one column of dots are joined, so that a spike is seen at any width. */
static void draw_points(struct canvas *c, const struct plot *p, bool dead, unsigned char *to)
{
	unsigned column = 0, low = 0, high = 0;
	bool open = false;

	for (size_t i = 0; i <= p->n; i++) {
		bool end = i == p->n;
		if (!end && (p->points[i].dead != dead || !isfinite(p->points[i].x) ||
				    !isfinite(p->points[i].y)))
			continue;
		unsigned at = end ? 0 : dot_column(c, p->points[i].x);
		unsigned row = end ? 0 : dot_row(c, p->points[i].y);
		if (open && (end || at != column)) {
			for (unsigned r = low; r <= high; r++)
				set_dot(c, to, column, r);
			open = false;
		}
		if (end)
			break;
		low = open && low < row ? low : row;
		high = open && high > row ? high : row;
		column = at;
		open = true;
	}
}

static void add_cell(const struct canvas *c, size_t at, bool ascii, struct strbuf *out)
{
	char bytes[4];

	if (c->dots[at]) {
		if (ascii)
			strbuf_add_char(out, '*');
		else
			strbuf_add(out, bytes, text_utf8_put(bytes, 0x2800u + c->dots[at]));
	} else if (c->dead[at]) {
		strbuf_add_text(out, ascii ? "x" : "×");
	} else {
		strbuf_add_char(out, ' ');
	}
}

static void add_label(const struct canvas *c, unsigned row, struct strbuf *out)
{
	char memory[40];
	struct strbuf b;
	double at = c->y1 - (c->y1 - c->y0) * ((double)row + 0.5) / (double)c->rows;

	strbuf_over(&b, memory, sizeof memory);
	if (row % LABEL_EVERY == 0 || row + 1 == c->rows)
		text_add_rounded(&b, c->logarithm ? exp(at) : at, 4);
	strbuf_pad(out, ' ', b.n < LABEL - 2 ? LABEL - 2 - b.n : 0);
	strbuf_add_text(out, strbuf_text(&b));
}

/* Signs in the columns where something happened; of several in one column the first one. */
static bool add_marks(const struct canvas *c, const struct plot *p, struct strbuf *out)
{
	char *line = malloc(c->columns + 1);
	unsigned last = 0;

	if (!line)
		return false;
	memset(line, ' ', c->columns);
	for (size_t i = 0; i < p->mark_count; i++) {
		const struct plot_mark *m = &p->marks[i];
		if (!(m->x >= c->x0 && m->x <= c->x1))
			continue;
		unsigned at = dot_column(c, m->x) / DOTS_X;
		if (line[at] != ' ')
			continue;
		line[at] = m->sign;
		last = at + 1 > last ? at + 1 : last;
	}
	if (last > 0) {
		strbuf_pad(out, ' ', LABEL);
		strbuf_add(out, line, last);
		strbuf_add_char(out, '\n');
	}
	free(line);
	return true;
}

static void add_range(const struct canvas *c, const struct plot *p, struct strbuf *out)
{
	char memory[2][80];
	struct strbuf a, b;

	strbuf_over(&a, memory[0], sizeof memory[0]);
	strbuf_over(&b, memory[1], sizeof memory[1]);
	/* Epochs are few, and have fractions. */
	if (c->x1 - c->x0 < 10) {
		text_add_rounded(&a, c->x0, 4);
		text_add_rounded(&b, c->x1, 4);
	} else {
		text_add_signed_count(&a, llround(c->x0));
		text_add_signed_count(&b, llround(c->x1));
	}
	strbuf_printf(&b, " %s", p->unit);
	strbuf_pad(out, ' ', LABEL);
	strbuf_add_text(out, strbuf_text(&a));
	strbuf_pad(out, ' ', a.n + b.n < c->columns ? c->columns - a.n - b.n : 1);
	strbuf_add_text(out, strbuf_text(&b));
	strbuf_add_char(out, '\n');
}

bool plot_draw(const struct plot *p, struct strbuf *out)
{
	struct canvas c = {.columns = (p->width < 30 ? 30 : p->width) - LABEL,
		.rows = (p->height < 5 ? 5 : p->height) - 2};
	bool ok = true;

	if (!measure(&c, p))
		return true;
	c.dots = calloc((size_t)c.columns * c.rows, 1);
	c.dead = calloc((size_t)c.columns * c.rows, 1);
	if (!c.dots || !c.dead) {
		ok = false;
		goto out;
	}
	draw_points(&c, p, false, c.dots);
	draw_points(&c, p, true, c.dead);
	for (unsigned row = 0; row < c.rows; row++) {
		unsigned used = c.columns;
		add_label(&c, row, out);
		strbuf_add_text(out, p->ascii ? " |" : " │");
		while (used > 0 && !c.dots[row * c.columns + used - 1] &&
			!c.dead[row * c.columns + used - 1])
			used--;
		for (unsigned i = 0; i < used; i++)
			add_cell(&c, (size_t)row * c.columns + i, p->ascii, out);
		strbuf_add_char(out, '\n');
	}
	ok = add_marks(&c, p, out);
	add_range(&c, p, out);
out:
	free(c.dots);
	free(c.dead);
	return ok;
}
