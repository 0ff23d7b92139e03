/* SPDX-License-Identifier: MIT */
/* Family D over whole epochs: what is never consumed, padding, identical and shortened epochs. */
#include <stdlib.h>

#include "audit/case.h"
#include "audit/data.h"

#define ORDER_ROWS 4096u              /* samples of two epochs that are compared first */
#define LISTED 8u                     /* ids that a message lists */
#define LIST_SIZE ((uint64_t)1 << 26) /* the largest epoch of which missing ids are looked up */

static int64_t label_of(const struct case_line *c, size_t epoch)
{
	int32_t label = c->tally.epochs.items[epoch].label;
	return label >= 0 ? label : (int64_t)epoch;
}

/* Holes ---------------------------------------------------------------------------------------- */

/* Whether epochs are counted by their size, and a resume before this one moved their ends. */
static bool is_shifted(const struct case_line *c, size_t epoch)
{
	size_t end = seam_of_epoch(c, epoch);

	for (size_t k = 0; k < end && c->tally.how != EPOCHS_LOGGED; k++) {
		uint8_t outcome = c->judged.list.items[k].outcome;
		if ((outcome >= SEAM_SKIPPED && outcome <= SEAM_HOLE) || outcome == SEAM_SKIP_WRONG)
			return true;
	}
	return false;
}

uint64_t epoch_hole(const struct case_line *c, size_t epoch)
{
	uint64_t missing, explained = 0;

	if (c->judged.keys_change || c->tally.replacement || !epoch_missing(c, epoch, &missing))
		return 0;
	if (missing <= c->judged.dropped || is_shifted(c, epoch))
		return 0;
	/* Ranks that read the same from the epoch's start on leave out as much as they repeat. */
	if (data_ranks_overlap(
		    c, lineage_part_at(&c->lineage, c->tally.epochs.items[epoch].at), NULL))
		return 0;
	for (size_t k = seam_of_epoch(c, epoch); k < c->alignments.seams.count; k++) {
		const struct seam_judgement *j = &c->judged.list.items[k];
		if (c->alignments.seams.items[k].epoch != epoch)
			break;
		switch ((enum seam_outcome)j->outcome) {
		case SEAM_FROM_START:
		case SEAM_FROM_EPOCH:
		case SEAM_WINDOW:
		case SEAM_OTHER_EPOCH:
			explained += j->repeated;
			break;
		case SEAM_HOLE:
			explained += j->hole;
			break;
		case SEAM_SKIPPED:
			explained += j->declared;
			break;
		case SEAM_SKIP_WRONG:
		case SEAM_FRESH:
			explained += missing;
			break;
		default:
			break;
		}
	}
	/* A declared skip may pass over the epoch's end: the resume opens the next one then. */
	size_t next = seam_of_epoch(c, epoch + 1);
	if (next < c->alignments.seams.count && c->alignments.seams.items[next].opens &&
		c->alignments.seams.items[next].epoch == epoch + 1 &&
		c->judged.list.items[next].outcome == SEAM_SKIPPED)
		explained += c->judged.list.items[next].declared;
	explained += c->judged.dropped;
	return missing > explained ? missing - explained : 0;
}

/* Which samples an epoch lacks ----------------------------------------------------------------- */

/* "ids 4–7, 12 and 3 more", or "" where they cannot be named. */
static const char *missing_ids(struct findings *sink, const struct case_line *c, size_t epoch)
{
	const struct lineage *g = &c->lineage;
	const struct line_epoch *p = &c->tally.epochs.items[epoch];
	uint64_t size = c->tally.size;
	struct sample_source line = lineage_line(g);
	struct sample_block b;
	struct strbuf text;

	if (g->ledger->spaces.count != 1 || g->ledger->spaces.items[0].kind != KEY_ID ||
		g->ledger->spaces.items[0].max_key >= size || size > LIST_SIZE)
		return "";
	uint8_t *seen = calloc((size_t)size, 1);
	struct sample_buffer *buffer = sample_buffer_new();
	bool whole = seen && buffer;
	for (uint64_t at = 0; whole && at < p->rows; at += b.n) {
		whole = line.read(&line, p->at + at, (size_t)(p->rows - at), buffer, &b, NULL) >= 0;
		for (size_t i = 0; whole && i < b.n; i++)
			seen[b.keys[i]] = 1;
	}
	strbuf_init(&text, 400);
	uint64_t left = 0;
	unsigned shown = 0;
	for (uint64_t id = 0; whole && id < size; id++) {
		if (seen[id])
			continue;
		uint64_t last = id;
		while (last + 1 < size && !seen[last + 1])
			last++;
		if (shown < LISTED)
			strbuf_printf(&text, last > id ? "%s%llu–%llu" : "%s%llu",
				shown > 0 ? ", " : ": ids ", (unsigned long long)id,
				(unsigned long long)last);
		else
			left += last - id + 1;
		shown++;
		id = last;
	}
	if (left > 0)
		strbuf_printf(&text, " and %llu more", (unsigned long long)left);
	const char *out = findings_take(sink, &text);
	sample_buffer_free(buffer);
	free(seen);
	return out;
}

/* Epochs that are shorter since a resume ------------------------------------------------------- */

/* Whether the log's last epoch, though not ended, is what was left of the resumed one, once more.
 */
static bool repeats_the_rest(const struct case_line *c, const struct seam *s, size_t epoch)
{
	const struct line_epoch *p = &c->tally.epochs.items[epoch];
	struct sample_source line = lineage_line(&c->lineage);

	if (c->tally.size == 0 || p->rows + s->behind != c->tally.size || p->rows != s->inside)
		return false;
	return align_run(&line, p->at, &line, s->at, p->rows, c->lineage.ledger, NULL) ==
	       (int64_t)p->rows;
}

/* How many epochs after a seam's lack as many samples as the seam's had before it; 0 where not all
 * do. */
static size_t shortened_epochs(const struct case_line *c, size_t k)
{
	const struct seam *s = &c->alignments.seams.items[k];
	size_t count = 0;
	size_t end = k + 1 < c->alignments.seams.count ? c->alignments.seams.items[k + 1].epoch
						       : c->tally.epochs.count;

	if (s->behind == 0 || s->opens)
		return 0;
	for (size_t e = s->epoch + 1; e < end; e++) {
		uint64_t missing, design = c->judged.dropped;
		bool known = epoch_missing(c, e, &missing);
		if (!known && (e + 1 < c->tally.epochs.count || !repeats_the_rest(c, s, e)))
			break;
		if (known && (missing <= design || missing + design < s->behind ||
				     missing > s->behind + design))
			return 0;
		count++;
	}
	return s->behind > c->judged.dropped ? count : 0;
}

static bool tell_shortened(struct findings *sink, const struct case_line *c, size_t k)
{
	const struct seam *s = &c->alignments.seams.items[k];
	size_t count = shortened_epochs(c, k);

	if (count == 0)
		return false;
	const struct line_epoch *first = &c->tally.epochs.items[s->epoch + 1];
	uint64_t batch = c->judged.batch;
	const char *steps = batch > 0 && s->behind % batch == 0
				    ? findings_text(sink, " (%s)",
					      counted_text(sink, s->behind / batch, "step"))
				    : "";
	struct finding *f = finding_add(sink, FINDING_D111,
		"since %s resumed %s into epoch %lld, %s lack%s %s%s: as many as the resume passed over",
		data_attempt(sink, c->lineage.ledger, s->to),
		counted_text(sink, s->behind, "sample"), (long long)label_of(c, s->epoch),
		count == 1 ? "the next epoch"
			   : findings_text(sink, "the next %zu epochs each", count),
		count == 1 ? "s" : "", counted_text(sink, s->behind, "sample"), steps);
	data_place(f, &c->lineage, first->at, first->rows);
	f->observed = quantity_count((int64_t)first->distinct);
	f->expected = quantity_count((int64_t)(first->distinct + s->behind));
	f->unit = "samples in an epoch";
	f->cause = "the resume's offset is applied again in each epoch";
	return true;
}

/* The seam before an epoch is the one that may have shortened it. */
static bool is_shortened(const struct case_line *c, size_t epoch)
{
	size_t k = seam_of_epoch(c, epoch);

	return k > 0 &&
	       epoch <= c->alignments.seams.items[k - 1].epoch + shortened_epochs(c, k - 1);
}

/* Holes, padding, remainders ------------------------------------------------------------------- */

static void tell_hole(struct findings *sink, const struct case_line *c, size_t epoch, uint64_t hole)
{
	const struct line_epoch *p = &c->tally.epochs.items[epoch];
	const char *where = "", *which = "";
	size_t first = seam_of_epoch(c, epoch), end = seam_of_epoch(c, epoch + 1);

	if (first < end)
		where = findings_text(sink, ", in which %s resumed,",
			data_attempt(
				sink, c->lineage.ledger, c->alignments.seams.items[end - 1].to));
	/* Looking them up takes a pass over the epoch; what is only counted needs none. */
	if (sink->of_code[FINDING_D104] < sink->keep)
		which = missing_ids(sink, c, epoch);
	struct finding *f = finding_add(sink, FINDING_D104,
		"%sepoch %lld%s is over, and %s of it were never consumed%s", c->what,
		(long long)label_of(c, epoch), where, counted_text(sink, hole, "sample"), which);
	data_place(f, &c->lineage, p->at, p->rows);
	f->observed = quantity_count((int64_t)p->distinct);
	f->expected = quantity_count((int64_t)(p->distinct + hole));
	f->unit = "different samples";
	/* Scattered holes of a stream after a resume are what a buffer held. */
	for (size_t k = first; k < end; k++) {
		const struct seam *s = &c->alignments.seams.items[k];
		const struct seam_judgement *j = &c->judged.list.items[k];
		if (j->outcome != SEAM_DIFFERS || s->ahead.heads == 0 || s->ahead.heads == s->head)
			continue;
		if (data_ranks_overlap(c, s->part, NULL)) {
			f->cause = "since the resume the ranks read each other's samples instead";
			continue;
		}
		if (2 * hole > s->inside)
			continue;
		const struct ledger_geometry *before = part_geometry(c, s->part - 1);
		const struct ledger_geometry *after = part_geometry(c, s->part);
		if (before->samples != after->samples) {
			f->cause = findings_text(sink,
				"since the resume a step takes %s samples where it took %s: a position "
				"in batches is another one in samples",
				count_text(sink, after->samples),
				count_text(sink, before->samples));
			continue;
		}
		f->cause = findings_text(sink,
			"what a shuffle buffer or a packing carry-over held at the resume is lost: "
			"about %s",
			counted_text(sink, hole, "sample"));
	}
}

/* Padding and dropped remainders, once for all epochs that have as many. */
static void tell_remainders(struct findings *sink, const struct case_line *c)
{
	const struct tally *t = &c->tally;
	uint64_t most_padded = 0, most_dropped = 0, missing;
	size_t padded = 0, dropped = 0;

	for (size_t i = 0; i < t->epochs.count; i++) {
		const struct line_epoch *p = &t->epochs.items[i];
		uint64_t tail = p->tail_own + p->tail_across, rows = p->at + p->rows - p->tail;
		size_t part = lineage_part_at(&c->lineage, p->tail);
		/* Where the epoch has other repeats too, those at its end are as likely of their
		 * kind. */
		if (tail > 0 && tail < rows && p->again == tail && !t->replacement &&
			!data_ranks_overlap(c, part, NULL)) {
			padded++;
			most_padded = tail > most_padded ? tail : most_padded;
		}
		if (epoch_missing(c, i, &missing) && missing > 0 && missing <= c->judged.dropped) {
			dropped++;
			most_dropped = missing > most_dropped ? missing : most_dropped;
		}
	}
	if (padded > 0) {
		struct finding *f = finding_add(sink, FINDING_D113,
			"%s read twice at the end of %s, to fill the last step",
			counted_text(sink, most_padded, "sample"),
			padded == 1 ? "an epoch"
				    : findings_text(sink, "each of %zu epochs", padded));
		f->observed = quantity_count((int64_t)most_padded);
		f->unit = "samples";
	}
	if (dropped > 0) {
		struct finding *f = finding_add(sink, FINDING_D113, "%s dropped at the end of %s",
			counted_text(sink, most_dropped, "sample"),
			dropped == 1 ? "an epoch"
				     : findings_text(sink, "each of %zu epochs", dropped));
		f->observed = quantity_count((int64_t)most_dropped);
		f->unit = "samples";
	}
}

static void run_data_epochs(struct audit_case *c, struct findings *sink, struct coverage *cover)
{
	for (size_t i = 0; i < c->line_count; i++) {
		const struct case_line *line = &c->lines[i];
		const struct tally *t = &line->tally;
		const char *subject =
			findings_text(sink, "what whole %sepochs consumed", line->what);
		uint64_t missing, known = 0, gaps = 0;

		/* A rehearsal ends where it likes. */
		if (line->from_part > 0)
			continue;
		if (t->replacement || line->judged.keys_change || t->how == EPOCHS_NONE) {
			cover_not_checked(cover, "data-epochs", subject, "%s",
				t->replacement
					? "samples are drawn with replacement or from a stream"
				: line->judged.keys_change
					? "content keys do not come again from epoch to epoch"
					: "where epochs end is not known");
			continue;
		}
		for (size_t k = 0; k < line->alignments.seams.count; k++)
			tell_shortened(sink, line, k);
		for (size_t k = 0; k < t->epochs.count; k++) {
			uint64_t hole = epoch_hole(line, k);
			known += epoch_missing(line, k, &missing);
			gaps += t->epochs.items[k].gaps;
			if (hole > 0 && !is_shortened(line, k))
				tell_hole(sink, line, k, hole);
		}
		tell_remainders(sink, line);
		cover_ran(cover, "data-epochs", subject, "epochs", known, t->epochs.count,
			known < t->epochs.count
				? gaps > 0      ? "steps or ranks of the others are not in the log"
				  : t->size > 0 ? "the last one is not over"
						: "how large the data set is, is not known"
				: NULL);
	}
}

const struct rule rule_data_epochs = {
	.name = "data-epochs",
	.subject = "what whole epochs consumed",
	.needs = NEEDS_LEDGER,
	.run = run_data_epochs,
};

/* The order of epochs -------------------------------------------------------------------------- */

/*
 * Whether ids rise inside the batches of ranks, as they do where data is read in order, but for a
 * wrap at the epoch's end: more often than in a shuffled order. True where no batch can tell.
 */
static bool rises_in_batches(const struct case_line *c, size_t epoch)
{
	const struct ledger *l = c->lineage.ledger;
	const struct line_epoch *p = &c->tally.epochs.items[epoch];
	struct sample_source line = lineage_line(&c->lineage);
	struct sample_buffer *buffer = sample_buffer_new();
	struct place_index places = {0};
	struct sample_block b;
	uint64_t rows = p->rows < ORDER_ROWS ? p->rows : ORDER_ROWS, rises = 0, pairs = 0;
	bool looked = buffer && place_index_init(&places, l, NULL) >= 0;

	for (uint64_t at = 0; looked && at < rows; at += b.n) {
		looked = line.read(&line, p->at + at, (size_t)(rows - at), buffer, &b, NULL) >= 0;
		for (size_t i = 1; looked && i < b.n; i++) {
			uint64_t place = p->at + at + i;
			const struct line_part *part =
				&c->lineage.line.items[lineage_part_at(&c->lineage, place)];
			if (place_in(&places, line_row(part, place), part->first, part->steps)
					.slot == 0)
				continue;
			pairs++;
			rises += b.keys[i] > b.keys[i - 1];
		}
	}
	place_index_release(&places);
	sample_buffer_free(buffer);
	return 10 * rises >= 6 * pairs;
}

/* Ids that only go up, as those of data that is read in order do: its first half is a stretch. */
static bool reads_in_order(const struct case_line *c, size_t epoch)
{
	const struct lineage *g = &c->lineage;
	const struct line_epoch *p = &c->tally.epochs.items[epoch];
	struct sample_source line = lineage_line(g);
	struct sample_block b;
	uint64_t low = UINT64_MAX, high = 0, rows = p->rows / 2;

	if (g->ledger->spaces.count != 1 || g->ledger->spaces.items[0].kind != KEY_ID)
		return false;
	rows = rows < ORDER_ROWS ? rows : ORDER_ROWS;
	struct sample_buffer *buffer = sample_buffer_new();
	for (uint64_t at = 0; buffer && at < rows; at += b.n) {
		if (line.read(&line, p->at + at, (size_t)(rows - at), buffer, &b, NULL) < 0)
			break;
		for (size_t i = 0; i < b.n; i++) {
			low = b.keys[i] < low ? b.keys[i] : low;
			high = b.keys[i] > high ? b.keys[i] : high;
		}
	}
	sample_buffer_free(buffer);
	return rows > 0 && low <= high && high - low < rows + c->judged.batch &&
	       rises_in_batches(c, epoch);
}

static bool declared_unshuffled(const struct ledger *l)
{
	static const char *const words[] = {
		"sequential", "none", "unshuffled", "in order", "file order"};

	for (size_t i = 0; i < l->datasets.count; i++)
		for (size_t k = 0; k < sizeof words / sizeof *words; k++)
			if (slice_is(slice_of(l->datasets.items[i].order), words[k]))
				return true;
	return false;
}

static void tell_identical(
	struct findings *sink, const struct case_line *c, size_t first, size_t last)
{
	const struct line_epoch *p = &c->tally.epochs.items[first],
				*q = &c->tally.epochs.items[last];
	struct finding *f = finding_add(sink, FINDING_D107, "%sepochs %lld to %lld have one order",
		c->what, (long long)label_of(c, first), (long long)label_of(c, last));

	data_place(f, &c->lineage, p->at, q->at + q->rows - p->at);
	f->observed = quantity_count((int64_t)(last - first + 1));
	f->unit = "epochs of one order";
	for (size_t i = 0; i < c->lineage.ledger->spaces.count; i++) {
		if (c->lineage.ledger->spaces.items[i].kind == KEY_ID)
			continue;
		f->severity = SEVERITY_INFO;
		f->meaning = "that is as it should be where the data is not shuffled";
	}
}

/* Two epochs in the same order, as far as the second one goes. -1: cannot be told. */
static int same_order(const struct case_line *c, size_t a)
{
	const struct line_epoch *p = &c->tally.epochs.items[a], *q = p + 1;
	struct sample_source line = lineage_line(&c->lineage);
	uint64_t most = p->rows < q->rows ? p->rows : q->rows;

	most = most < ORDER_ROWS ? most : ORDER_ROWS;
	if (most < 4 || most < c->judged.batch)
		return -1;
	return align_run(&line, p->at, &line, q->at, most, c->lineage.ledger, NULL) ==
	       (int64_t)most;
}

static void run_data_order(struct audit_case *c, struct findings *sink, struct coverage *cover)
{
	for (size_t i = 0; i < c->line_count; i++) {
		const struct case_line *line = &c->lines[i];
		const struct tally *t = &line->tally;
		const char *subject = findings_text(sink, "the order of %sepochs", line->what);
		uint64_t compared = 0;

		if (line->from_part > 0)
			continue;
		if (t->epochs.count < 2 || line->judged.keys_change) {
			cover_not_checked(cover, "data-order", subject, "%s",
				line->judged.keys_change
					? "content keys do not come again from epoch to epoch"
					: "there are no two epochs to compare");
			continue;
		}
		for (size_t k = 0; k + 1 < t->epochs.count;) {
			size_t last = k;
			int same = -1;
			while (last + 1 < t->epochs.count && (same = same_order(line, last)) != 0) {
				compared += same > 0;
				if (same < 0)
					break;
				last++;
			}
			compared += same == 0;
			if (last > k && !declared_unshuffled(line->lineage.ledger) &&
				!reads_in_order(line, k))
				tell_identical(sink, line, k, last);
			k = last + 1;
		}
		cover_ran(cover, "data-order", subject, "pairs of epochs", compared,
			t->epochs.count - 1, NULL);
	}
}

const struct rule rule_data_order = {
	.name = "data-order",
	.subject = "the order of epochs",
	.needs = NEEDS_LEDGER,
	.run = run_data_order,
};
