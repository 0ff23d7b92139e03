/* SPDX-License-Identifier: MIT */
#include "audit/duplicates.h"

#include <math.h>

#define CHANGED_SHARE 0.9 /* new keys in later epochs from which on keys do not come again */

/* So many samples in a row that share an epoch: how many pairs they are, or how many of them come
 * again where each pair is one sample with chance `q`. */
static double pairs_of(double n, double q)
{
	return q > 0 ? n + expm1(-q * n) / q : n * n / 2;
}

/* The same summed over what a part of the line has of each epoch. */
static double part_again(const struct case_line *c, size_t part, double q)
{
	const struct line_part *p = &c->lineage.line.items[part];
	const struct tally *t = &c->tally;
	double sum = 0;

	for (size_t k = tally_epoch_at(t, p->at); k < t->epochs.count; k++) {
		const struct line_epoch *epoch = &t->epochs.items[k];
		uint64_t from = epoch->at > p->at ? epoch->at : p->at;
		uint64_t end = epoch->at + epoch->rows < p->at + p->rows ? epoch->at + epoch->rows
									 : p->at + p->rows;
		if (from >= end)
			break;
		sum += pairs_of((double)(end - from), q);
	}
	return sum;
}

double duplicates_pairs(const struct case_line *c, size_t part)
{
	return part_again(c, part, 0);
}

/*
 * Each sample counts once, however often it came before: of many pairs, those counted are too few.
 * By how much, were all samples equally likely.
 */
static double saturation(const struct case_line *c)
{
	double pairs = 0, again = (double)tally_repeats_inside(&c->tally), low = 0, high = 1;

	for (size_t i = 0; i < c->lineage.line.count; i++)
		pairs += duplicates_pairs(c, i);
	if (again < 1 || pairs < 1)
		return 1;
	for (int round = 0; round < 50; round++) {
		double middle = (low + high) / 2, sum = 0;
		for (size_t i = 0; i < c->lineage.line.count; i++)
			sum += part_again(c, i, middle);
		*(sum < again ? &low : &high) = middle;
	}
	double factor = low * pairs / again;
	return factor > 1 ? factor : 1;
}

/*
 * How likely two samples of an epoch are the same one, inside a rank and between ranks, from
 * repeats inside attempts. A replay inside an attempt would look like it; repeats in a row are no
 * chance and are taken out.
 */
void duplicates_find(struct case_line *c)
{
	const struct lineage *g = &c->lineage;
	const struct tally *t = &c->tally;
	double pairs = 0, cross_pairs = 0, again = 0, cross = 0, in_row = 0, kept = 0;

	for (size_t i = 0; i < t->repeats.count; i++) {
		const struct repeat *r = &t->repeats.items[i];
		size_t part = lineage_part_at(g, r->at);
		if (r->before < g->line.items[part].at)
			continue;
		kept++;
		/* Of anchors, those in a row lie apart. */
		uint64_t apart = i > 0 ? r->at - t->repeats.items[i - 1].at : 0;
		in_row += i > 0 && r->before - t->repeats.items[i - 1].before == apart &&
			  apart <= 8 * t->keys_per_anchor - 7;
	}
	for (size_t i = 0; i < g->line.count; i++) {
		double ranks = part_geometry(c, i)->ranks, here = duplicates_pairs(c, i);
		again += (double)t->parts.items[i].in_rank;
		cross += (double)t->parts.items[i].in_ranks;
		pairs += ranks > 0 ? here / ranks : here;
		cross_pairs += ranks > 1 ? here * (1 - 1 / ranks) : 0;
	}
	if (kept > 0 && in_row > 0.5 * kept)
		again *= 1 - in_row / kept;
	c->judged.measured = again + cross > 1 ? again + cross : 1;
	double factor = again + cross > 0 ? saturation(c) : 1;
	c->judged.duplicates = pairs > 0 ? factor * again / pairs : 0;
	c->judged.cross_duplicates = cross_pairs > 0 ? factor * cross / cross_pairs : 0;
}

double duplicates_expected(const struct case_line *c, const struct seam *s)
{
	double pairs = (double)s->behind * (double)s->inside;
	double ranks = part_geometry(c, s->part)->ranks;
	double most = (double)s->inside;

	if (ranks < 1)
		return 0;
	pairs *= c->judged.duplicates / ranks + c->judged.cross_duplicates * (1 - 1 / ranks);
	return pairs < most ? pairs : most;
}

bool duplicates_keys_change(const struct case_line *c)
{
	const struct ledger *l = c->lineage.ledger;
	uint64_t fresh = 0, rows = 0;

	for (size_t i = 0; i < l->spaces.count; i++)
		if (l->spaces.items[i].kind != KEY_CONTENT)
			return false;
	for (size_t i = 1; i < c->tally.epochs.count; i++) {
		fresh += c->tally.epochs.items[i].fresh;
		rows += c->tally.epochs.items[i].distinct;
	}
	return rows > 0 && c->tally.how != EPOCHS_NONE &&
	       (double)fresh > CHANGED_SHARE * (double)rows;
}

uint64_t duplicates_at_seam(const struct case_line *c, const struct seam *s)
{
	const struct line_epoch *epoch = &c->tally.epochs.items[s->epoch];
	uint64_t n = c->tally.parts.items[s->part].across;
	uint64_t end = epoch->at + epoch->rows;
	bool last = s->at + s->rows >= end;

	if (last && epoch->tail_across > c->tally.padding)
		n += epoch->tail_across;
	return n;
}

bool duplicates_exceeded(
	const struct case_line *c, const struct seam *s, uint64_t repeated, double expected)
{
	const struct ledger *l = c->lineage.ledger;

	if (repeated == 0)
		return false;
	if (align_in_order(&s->again) && s->again.votes >= 3 && s->again.run >= 3)
		return true;
	if (expected > 0) {
		/* Five deviations, the rate itself being known from so many duplicates only. */
		double scale = 1 + expected / c->judged.measured;
		return (double)repeated > expected + 5 * sqrt(expected * scale) + 3 * scale;
	}
	/* No duplicate was seen so far: ids have none, content may have some yet. */
	for (size_t i = 0; i < l->spaces.count; i++)
		if (l->spaces.items[i].kind == KEY_CONTENT)
			return repeated > 3 || repeated == s->inside || align_in_order(&s->again);
	return true;
}
