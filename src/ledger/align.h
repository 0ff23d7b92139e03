/* SPDX-License-Identifier: MIT */
/*
 * What a resumed attempt consumed, held against what it should have and against what went before.
 *
 * At each seam of a line there may be an answer key: the samples that the interrupted attempt, a
 * sister or a reference run consumed after the same step. Step digests prove or refute it without
 * reading samples. The first samples after the seam are then looked up in everything that the line
 * consumed before and in the key: all occurrences vote for an offset, and the offset that wins is
 * verified sample by sample.
 */
#ifndef LEDGER_ALIGN_H
#define LEDGER_ALIGN_H

#include "ledger/answer_key.h"
#include "ledger/tally.h"

/* An offset at which samples after the seam occurred elsewhere. */
struct alignment {
	uint64_t heads; /* first samples after the seam with an occurrence of this kind */
	uint64_t votes; /* of those, at the offset */
	int64_t offset; /* of the occurrence against the sample's own place, in samples of the line;
			   for an answer key: how many samples of it lie before */
	uint64_t first; /* the first of them, counted from the seam */
	bool by_rank;   /* counted within each rank, as the batches are shifted against the steps */
	bool by_step;   /* to within a step, as steps share out what they have in another way */
	uint64_t run; /* samples in a row from the first vote on, verified; 0: by rank or step only
		       */
};

struct seam {
	size_t part;       /* of lineage.line, never the first */
	uint32_t from, to; /* attempts on its two sides */
	uint64_t at;       /* place on the line */
	uint64_t rows;     /* samples of the part */
	size_t epoch;      /* of the tally, in which the part begins */
	bool opens;        /* that epoch begins at the seam */
	uint64_t behind;   /* samples that this epoch had consumed at the seam */
	uint64_t inside;   /* samples of the part in that epoch */
	bool torn;         /* steps right before or behind it are not in the log */

	uint64_t padded; /* from here on, counted from the seam, repeats fill the epoch's last step
			  */

	struct answer_key key;
	struct key_match match;

	uint64_t head;           /* samples looked up */
	struct alignment again;  /* in this epoch, before the seam */
	struct alignment before; /* in earlier epochs */
	struct alignment ahead;  /* in the answer key */
	/* Where `before` is in order: */
	size_t earlier; /* the epoch in which those samples lie */
	int64_t lag;    /* how far on from the seam's own place in the epoch they lie there */
	bool followed;  /* the samples before the seam were those of that epoch too, place by
			   place: the two epochs have one order */
};

struct alignments {
	const struct lineage *lineage;
	const struct tally *tally;
	ARRAY(struct seam) seams;
};

/* Look at every seam of a line. The tally must be of the same lineage. */
int align_seams(struct alignments *a, const struct lineage *g, const struct tally *t,
	unsigned threads, struct error *e);
void align_release(struct alignments *a);

/*
 * How many samples from place `a` on equal those of another source from place `b` on, at most
 * `most`. Negative: the error.
 */
int64_t align_run(const struct sample_source *x, uint64_t a, const struct sample_source *y,
	uint64_t b, uint64_t most, const struct ledger *l, struct error *e);

/* Where on the line the first sample that voted occurred before; not for answer keys. */
uint64_t align_source(const struct seam *s, const struct alignment *a);

/* Whether an alignment says that samples come in the order in which they came before. */
bool align_in_order(const struct alignment *a);

#endif
