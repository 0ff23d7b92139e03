/* SPDX-License-Identifier: MIT */
/* Family M: do data-parallel ranks see one mixture? */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "audit/mixture_table.h"
#include "base/text.h"
#include "ledger/lineage.h"
#include "ledger/mixture.h"

#define NOTICEABLE 0.05 /* of a share */
#define CHUNKS 16       /* stretches of the line in which ranks are compared */
#define MOST_RANKS 4096

/* Samples per (chunk, rank, source). */
struct by_rank {
	size_t k, ranks;
	uint64_t *n;
};

static uint64_t *of_rank(const struct by_rank *b, size_t chunk, size_t rank)
{
	return b->n + (chunk * b->ranks + rank) * b->k;
}

/* One pass over the line: each step's rows are its geometry's parts one after the other. */
static int count_by_rank(const struct audit_case *c, struct by_rank *b, struct error *e)
{
	const struct ledger *l = c->ledger;
	const struct lineage *g = c->lineage;
	struct sample_source all = ledger_samples(l);
	struct sample_buffer *buffer = sample_buffer_new();
	int status = buffer ? RP_OK : RP_E_MEMORY;
	uint64_t step_number = 0;

	for (size_t p = 0; p < g->line.count && status == RP_OK; p++) {
		const struct line_part *part = &g->line.items[p];
		struct sample_block block = {0};
		for (uint32_t i = 0; i < part->steps && status == RP_OK; i++, step_number++) {
			const struct ledger_step *s = &l->steps.items[part->first + i];
			const struct ledger_geometry *shape = &l->geometries.items[s->geometry];
			size_t chunk = (size_t)(step_number * CHUNKS / g->steps);
			uint64_t row = s->row;
			for (uint32_t q = 0; q < shape->parts && status == RP_OK; q++) {
				const struct ledger_part *place = &l->parts.items[shape->first + q];
				for (uint32_t j = 0; j < place->n; j++, row++) {
					if (row >= block.row + block.n)
						status = all.read(
							&all, row, 1 << 16, buffer, &block, e);
					if (status != RP_OK)
						break;
					uint32_t space =
						block.spaces ? block.spaces[row - block.row] : 0;
					uint32_t source = l->spaces.items[space].source;
					if (source != LEDGER_NONE)
						of_rank(b, chunk, place->dp)[source]++;
				}
			}
		}
	}
	sample_buffer_free(buffer);
	return status;
}

/*
 * How a rank's share of a source differs from all ranks' share, chunk by chunk: its mean, and how
 * many standard errors that is. Chunks are independent of each other even where samples come in
 * clumps.
 */
static double rank_offset(const struct by_rank *b, size_t rank, size_t source, double *errors)
{
	double sum = 0, squares = 0;
	size_t used = 0;
	*errors = 0;
	for (size_t chunk = 0; chunk < CHUNKS; chunk++) {
		uint64_t here = 0, mine = 0, all = 0, all_here = 0;
		for (size_t r = 0; r < b->ranks; r++) {
			const uint64_t *n = of_rank(b, chunk, r);
			for (size_t i = 0; i < b->k; i++) {
				all += n[i];
				mine += r == rank ? n[i] : 0;
			}
			all_here += n[source];
			here += r == rank ? n[source] : 0;
		}
		if (mine == 0 || all == mine)
			continue;
		double off = (double)here / (double)mine - (double)all_here / (double)all;
		sum += off;
		squares += off * off;
		used++;
	}
	if (used < CHUNKS / 2)
		return 0;
	double mean = sum / (double)used;
	double variance = squares / (double)used - mean * mean;
	*errors = fabs(mean) / sqrt(fmax(variance, 1e-12) / (double)used);
	return mean;
}

static void report_rank(struct audit_case *c, struct findings *sink, const struct by_rank *b,
	const int32_t *ranks, size_t count, size_t source, double largest)
{
	uint64_t all = 0, of_source = 0;
	for (size_t i = 0; i < CHUNKS * b->ranks * b->k; i++) {
		all += b->n[i];
		of_source += i % b->k == source ? b->n[i] : 0;
	}
	double share = (double)of_source / (double)all;
	struct finding *f = finding_add(sink, FINDING_M107,
		"%s see another share of %s than all together: %s instead of %s on the worst",
		counted_text(sink, count, "rank"),
		findings_escaped(sink, slice_of(c->ledger->sources.items[source].name)),
		mixture_percent(sink, share + largest), mixture_percent(sink, share));
	f->observed = quantity_real(share + largest);
	f->expected = quantity_real(share);
	f->unit = "of the samples";
	f->place.ranks = ranks_text(sink, ranks, count);
}

static void compare_ranks(struct audit_case *c, struct findings *sink, const struct by_rank *b)
{
	int32_t *off = calloc(b->ranks + 1, sizeof *off);
	if (!off) {
		sink->lost++;
		return;
	}
	for (size_t source = 0; source < b->k; source++) {
		size_t count = 0;
		double largest = 0;
		for (size_t rank = 0; rank < b->ranks; rank++) {
			double errors, mean = rank_offset(b, rank, source, &errors);
			if (fabs(mean) < NOTICEABLE || errors < 8)
				continue;
			off[count++] = (int32_t)rank;
			if (fabs(mean) > fabs(largest))
				largest = mean;
		}
		if (count)
			report_rank(c, sink, b, off, count, source, largest);
	}
	free(off);
}

static void run_rank_mixture(struct audit_case *c, struct findings *sink, struct coverage *cover)
{
	static const char *const name = "rank-mixture", *const subject = "mixture of each rank";
	const struct ledger *l = c->ledger;
	const char *reason = mixture_absent(c);
	struct by_rank b = {.k = l->sources.count};
	struct error e = {0};

	for (size_t i = 0; i < l->parts.count; i++)
		if (l->parts.items[i].dp >= b.ranks)
			b.ranks = (size_t)l->parts.items[i].dp + 1;
	if (!reason && b.ranks < 2)
		reason = "one data-parallel rank only";
	if (!reason && b.ranks > MOST_RANKS)
		reason = "more ranks than are compared";
	if (!reason && c->lineage->steps < 2 * CHUNKS)
		reason = "too few steps";
	if (reason) {
		cover_not_checked(cover, name, subject, "%s", reason);
		return;
	}
	b.n = calloc(CHUNKS * b.ranks * b.k, sizeof *b.n);
	int status = b.n ? count_by_rank(c, &b, &e) : RP_E_MEMORY;
	if (status == RP_OK) {
		compare_ranks(c, sink, &b);
		cover_ran(cover, name, subject, "ranks", b.ranks, b.ranks, NULL);
	} else {
		cover_not_checked(
			cover, name, subject, "%s", status == RP_E_MEMORY ? "no memory" : e.text);
	}
	free(b.n);
}

const struct rule rule_rank_mixture = {
	.name = "rank-mixture",
	.subject = "mixture of each rank",
	.needs = NEEDS_LEDGER,
	.run = run_rank_mixture,
};
