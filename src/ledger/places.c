/* SPDX-License-Identifier: MIT */
#include "ledger/places.h"

#include <stdlib.h>

int place_index_init(struct place_index *x, const struct ledger *l, struct error *e)
{
	*x = (struct place_index){
		.ledger = l, .starts = calloc(l->parts.count + 1, sizeof *x->starts)};
	if (!x->starts)
		return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for the parts of steps");
	for (size_t i = 0; i < l->geometries.count; i++) {
		const struct ledger_geometry *g = &l->geometries.items[i];
		uint32_t before = 0;
		for (uint32_t k = 0; k < g->parts; k++) {
			x->starts[g->first + k] = before;
			before += l->parts.items[g->first + k].n;
		}
	}
	return RP_OK;
}

void place_index_release(struct place_index *x)
{
	free(x->starts);
	x->starts = NULL;
}

/* Steps of an attempt are mostly of one size, so that a guess is mostly right. */
uint32_t place_step_of(const struct ledger *l, uint64_t row, uint32_t first, uint32_t steps)
{
	const struct ledger_step *s = l->steps.items;
	uint32_t low = first, high = first + steps;
	uint32_t size = s[first].n > 0 ? s[first].n : 1;
	uint64_t guess = first + (row - s[first].row) / size;

	if (guess < high && s[guess].row <= row && row < s[guess].row + s[guess].n)
		return (uint32_t)guess;
	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;
		if (s[middle].row <= row)
			low = middle;
		else
			high = middle;
	}
	return low;
}

struct sample_place place_in(
	const struct place_index *x, uint64_t row, uint32_t first, uint32_t steps)
{
	const struct ledger *l = x->ledger;
	struct sample_place p = {.step = place_step_of(l, row, first, steps)};
	const struct ledger_step *s = &l->steps.items[p.step];
	const struct ledger_geometry *g = &l->geometries.items[s->geometry];
	uint32_t inside = (uint32_t)(row - s->row), low = 0, high = g->parts;

	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;
		if (x->starts[g->first + middle] <= inside)
			low = middle;
		else
			high = middle;
	}
	p.part = low;
	p.slot = inside - x->starts[g->first + low];
	p.of = &l->parts.items[g->first + low];
	return p;
}
