/* SPDX-License-Identifier: MIT */
#include "curve/own.h"

#include <string.h>

#include "curve/curve.h"

/* The next cell of a header without quotes, taken off its front. */
static struct slice take_cell(struct slice *line)
{
	const char *comma = line->n ? memchr(line->p, ',', line->n) : NULL;
	size_t n = comma ? (size_t)(comma - line->p) : line->n;
	struct slice cell = {line->p, n};

	n += comma != NULL;
	*line = (struct slice){line->p + n, line->n - n};
	return cell;
}

/* "grad_norm", or "source_loss:web": how a table of the stitched curve calls a quantity. */
static bool is_quantity(struct slice cell)
{
	const char *colon = cell.n ? memchr(cell.p, ':', cell.n) : NULL;
	char name[64];

	if (colon)
		cell.n = (size_t)(colon - cell.p);
	if (cell.n == 0 || cell.n >= sizeof name)
		return false;
	for (size_t i = 0; i < cell.n; i++)
		name[i] = cell.p[i] == '_' ? '-' : cell.p[i];
	return curve_role_named((struct slice){name, cell.n}) != CURVE_OTHER;
}

/* Whether the header is that of a table: see api/curves_rows.c. */
static bool is_header(struct slice line)
{
	static const char *const axes[] = {"step", "sample", "token", "epoch", "call"};
	struct slice cell = take_cell(&line);
	bool axis = false, quantity = false;

	for (size_t i = 0; i < sizeof axes / sizeof *axes; i++)
		axis = axis || slice_is(cell, axes[i]);
	if (!axis || !slice_is(take_cell(&line), "attempt"))
		return false;
	while (line.n > 0) {
		cell = take_cell(&line);
		if (line.n == 0)
			return quantity && slice_is(cell, "time");
		/* A name with a comma or a quote in it: what stood before is enough. */
		if (cell.n > 0 && cell.p[0] == '"')
			return quantity;
		if (!slice_is(cell, "state") && !is_quantity(cell))
			return false;
		quantity = quantity || !slice_is(cell, "state");
	}
	return false;
}

bool own_report(struct slice head)
{
	return slice_starts(head, SLICE("{\n  \"schema\": \"reprise/1\""));
}

bool own_table(struct slice head)
{
	const char *end = head.n ? memchr(head.p, '\n', head.n) : NULL;

	return end && is_header((struct slice){head.p, (size_t)(end - head.p)});
}

const char *own_output(struct slice head)
{
	if (own_report(head))
		return "is a report of this tool";
	if (own_table(head))
		return "looks like a table that `reprise stitch` wrote; name it to have it read as "
		       "a log";
	return NULL;
}
