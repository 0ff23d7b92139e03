/* SPDX-License-Identifier: MIT */
#include "audit/seams.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "audit/duplicates.h"
#include "base/size.h"

#define WINDOW_STEPS 64u /* the longest window in which batches take other turns */
#define MIXED_STEPS 8u   /* the longest in which samples take other batches; beyond it, an order */
#define SEQUENCE_ROWS 4096u
#define WRONG_SHARE 0.02 /* repeats inside attempts from which on guessed epochs are wrong */

const struct ledger_step *line_step_at(const struct lineage *g, uint64_t at)
{
	const struct line_part *p = &g->line.items[lineage_part_at(g, at)];
	return &g->ledger->steps.items[ledger_step_of_row(g->ledger, line_row(p, at))];
}

bool seam_fresh_declared(const struct ledger_attempt *a)
{
	return a->intent.seed || a->intent.order;
}

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Whether a word of the text begins so, as "finished" with "finish": none of BrokenPipeError begins
 * with "ok". */
static bool has_word(struct slice text, const char *word)
{
	size_t n = strlen(word);

	for (size_t i = 0; i + n <= text.n; i++)
		if (memcmp(text.p + i, word, n) == 0 && (i == 0 || !is_letter(text.p[i - 1])))
			return true;
	return false;
}

bool attempt_ended_well(const struct ledger_attempt *a)
{
	static const char *const words[] = {
		"finish", "complete", "done", "success", "exit 0", "normal", "ok", "max_steps"};

	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (has_word(slice_of(a->end), words[i]))
			return true;
	return false;
}

const struct ledger_geometry *part_geometry(const struct case_line *c, size_t part)
{
	const struct ledger *l = c->lineage.ledger;
	return &l->geometries.items[l->steps.items[c->lineage.line.items[part].first].geometry];
}

/* Expected places ------------------------------------------------------------------------------ */

struct interval {
	uint64_t low, high, n;
	bool holds; /* the ids are all of [low, high] */
};

/* The ids of some samples of the line as one interval, where they are one. */
static int interval_of(
	const struct lineage *g, uint64_t at, uint64_t n, struct interval *x, struct error *e)
{
	struct sample_source line = lineage_line(g);
	struct sample_buffer *buffer = sample_buffer_new();
	struct sample_block b;
	int status = buffer ? RP_OK : fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory to read");
	uint64_t sum = 0;

	*x = (struct interval){.low = UINT64_MAX};
	for (uint64_t done = 0; done < n && status == RP_OK; done += b.n) {
		status = line.read(&line, at + done, (size_t)(n - done), buffer, &b, e);
		for (size_t i = 0; i < b.n && status == RP_OK; i++) {
			x->low = b.keys[i] < x->low ? b.keys[i] : x->low;
			x->high = b.keys[i] > x->high ? b.keys[i] : x->high;
			sum += b.keys[i];
		}
	}
	sample_buffer_free(buffer);
	x->n = n;
	/* Width and sum agree: as good as all different, for ids that are not made to deceive. */
	x->holds = n > 0 && x->high - x->low == n - 1 &&
		   sum == n * x->low + (n % 2 ? (n - 1) / 2 * n : n / 2 * (n - 1));
	return status;
}

/* Whole steps from a place on, or before it, of at most so many samples. */
static uint64_t whole_steps(
	const struct lineage *g, uint64_t at, const struct line_part *p, bool before)
{
	uint64_t n = 0;

	for (uint32_t k = 0; k < p->steps && k < 8; k++) {
		uint32_t i = before ? p->first + p->steps - 1 - k : p->first + k;
		uint32_t more = g->ledger->steps.items[i].n;
		if (n + more > SEQUENCE_ROWS && n > 0)
			break;
		n += more;
	}
	(void)at;
	return n;
}

/* Data that is read in order: how far the first ids after the seam lie beyond the next one. */
static int sequence_lag(const struct case_line *c, const struct seam *s, bool *known, int64_t *lag,
	uint64_t *next, struct error *e)
{
	const struct lineage *g = &c->lineage;
	const struct line_part *after = &g->line.items[s->part], *before = after - 1;
	struct interval a, b;

	*known = false;
	if (g->ledger->spaces.count != 1 || g->ledger->spaces.items[0].kind != KEY_ID || s->opens)
		return RP_OK;
	uint64_t n = whole_steps(g, s->at, before, true), m = whole_steps(g, s->at, after, false);
	n = n < s->behind ? n : s->behind;
	if (n < 2 || m < 2)
		return RP_OK;
	int status = interval_of(g, s->at - n, n, &a, e);
	if (status == RP_OK)
		status = interval_of(g, s->at, m, &b, e);
	*known = status == RP_OK && a.holds && b.holds && n + m >= 6;
	*lag = (int64_t)(b.low - (a.high + 1));
	*next = a.high + 1;
	return status;
}

/* Judging -------------------------------------------------------------------------------------- */

#define HOPS 64u /* replays of replays that are followed back */

/* Where a sample of the line came for the first time, as far as earlier replays tell. */
static uint64_t first_place(const struct case_line *c, uint64_t at)
{
	for (unsigned hop = 0; hop < HOPS; hop++) {
		size_t part = lineage_part_at(&c->lineage, at);
		if (part == 0)
			break;
		const struct seam *s = &c->alignments.seams.items[part - 1];
		const struct seam_judgement *j = &c->judged.list.items[part - 1];
		bool replay = j->outcome == SEAM_FROM_START || j->outcome == SEAM_FROM_EPOCH ||
			      j->outcome == SEAM_WINDOW;
		if (!replay || at - s->at >= j->run)
			break;
		at = j->source + (at - s->at);
	}
	return at;
}

/* How far into its epoch a seam lies, with what the log does not hold of it. */
static uint64_t place_in_epoch(const struct case_line *c, const struct seam *s)
{
	const struct lineage *g = &c->lineage;
	uint64_t n = s->behind;

	for (size_t i = 0; i < g->gaps.count; i++)
		if (g->gaps.items[i].at > s->at - s->behind && g->gaps.items[i].at <= s->at)
			n += g->gaps.items[i].samples;
	return n;
}

static void judge_replay(const struct case_line *c, const struct seam *s, struct seam_judgement *j)
{
	uint64_t source = align_source(s, &s->again), start = s->at - s->behind;
	uint64_t first = first_place(c, source);

	j->source = source;
	j->expected_at = place_in_epoch(c, s);
	j->observed_at = first > start ? first - start : 0;
	j->run = s->again.run > 0 ? s->again.first + s->again.run : j->repeated;
	j->outcome = first == 0 ? SEAM_FROM_START : first == start ? SEAM_FROM_EPOCH : SEAM_WINDOW;
}

/* The order of an earlier epoch, which was not that of this one before the seam. */
static bool judge_other_epoch(
	const struct case_line *c, const struct seam *s, struct seam_judgement *j)
{
	if (!align_in_order(&s->before) || s->followed || s->before.votes < 2)
		return false;
	/* Neighbouring epochs of one order are another matter, and so are all epochs alike. */
	if (s->opens && s->earlier + 1 == s->epoch)
		return false;
	const struct line_epoch *earlier = &c->tally.epochs.items[s->earlier];
	j->source = align_source(s, &s->before);
	j->expected_at = s->behind;
	j->observed_at = j->source - earlier->at;
	j->run = s->before.run > 0 ? s->before.first + s->before.run : s->inside;
	j->outcome = j->source == 0 && !s->opens ? SEAM_FROM_START : SEAM_OTHER_EPOCH;
	return true;
}

static void hole_at(const struct seam *s, struct seam_judgement *j, uint64_t lag)
{
	j->outcome = SEAM_HOLE;
	j->hole = lag;
	j->expected_at = s->behind;
	j->observed_at = s->behind + lag;
}

/* Sums of steps of both sides until they meet again. */
static uint32_t window_steps(
	const struct ledger *l, const struct line_part *p, const struct seam *s)
{
	uint64_t a[2] = {0}, b[2] = {0};

	for (uint32_t k = s->match.same; k < s->match.steps && k - s->match.same < WINDOW_STEPS;
		k++) {
		const struct ledger_step *x = &l->steps.items[p->first + k],
					 *y = &l->steps.items[s->key.first + k];
		a[1] += x->sum[1] + (a[0] + x->sum[0] < a[0]);
		a[0] += x->sum[0];
		b[1] += y->sum[1] + (b[0] + y->sum[0] < b[0]);
		b[0] += y->sum[0];
		if (a[0] == b[0] && a[1] == b[1])
			return k - s->match.same + 1;
	}
	return 0;
}

/* The step of the key, counted from the difference on, with the samples of one of ours; -1: none.
 */
static int32_t step_in_key(
	const struct ledger *l, const struct seam *s, const struct ledger_step *x)
{
	for (uint32_t k = s->match.same; k < s->key.steps && k - s->match.same < WINDOW_STEPS;
		k++) {
		const struct ledger_step *y = &l->steps.items[s->key.first + k];
		if (x->sum[0] == y->sum[0] && x->sum[1] == y->sum[1] && x->n == y->n)
			return (int32_t)(k - s->match.same);
	}
	return -1;
}

/* The same batches take other turns, or the same samples other batches, within a window. */
static bool judge_permuted(
	const struct case_line *c, const struct seam *s, struct seam_judgement *j)
{
	const struct ledger *l = c->lineage.ledger;
	const struct line_part *p = &c->lineage.line.items[s->part];

	if (s->match.by_samples || s->match.same >= s->match.steps)
		return false;
	uint32_t window = window_steps(l, p, s);
	int32_t first = step_in_key(l, s, &l->steps.items[p->first + s->match.same]);
	uint32_t known = 0, looked = 0;
	int32_t farthest = 0, forward = 0, back = 0;
	for (uint32_t k = s->match.same; k < s->match.steps && looked < WINDOW_STEPS;
		k++, looked++) {
		int32_t at = step_in_key(l, s, &l->steps.items[p->first + k]);
		int32_t moved = at - (int32_t)(k - s->match.same);
		known += at >= 0;
		if (at < 0)
			continue;
		farthest = abs(moved) > farthest ? abs(moved) : farthest;
		forward |= moved > 0;
		back |= moved < 0;
	}
	/* All of them moved one way: a step too many or too few, and no other turn. */
	if (window == 0 && !(forward && back))
		return false;
	j->batches_whole = looked > 1 && known == looked;
	/* Without the end of a window in the key: all batches known, none far from its turn. */
	bool turns = looked >= 3 && known + (uint32_t)farthest >= looked && farthest > 0 &&
		     farthest <= 16 && known >= 2;
	if ((window == 0 && !turns) || (window > MIXED_STEPS && !j->batches_whole && !turns))
		return false;
	j->outcome = SEAM_PERMUTED;
	j->window = window > 0 ? window : (uint32_t)farthest + 1;
	j->rotation = known >= 2 && first > 0 ? first : 0;
	return true;
}

/* The key comes again behind samples that were consumed right before the seam: these came twice. */
static int judge_behind(const struct case_line *c, const struct seam *s, struct seam_judgement *j,
	bool *found, struct error *e)
{
	struct sample_source line = lineage_line(&c->lineage);
	uint64_t back = s->ahead.offset < 0 ? (uint64_t)-s->ahead.offset : 0;

	*found = false;
	if (!align_in_order(&s->ahead) || s->ahead.by_rank || back == 0 || back > s->behind ||
		back > s->inside)
		return RP_OK;
	int64_t run = align_run(&line, s->at, &line, s->at - back, back, c->lineage.ledger, e);
	if (run < 0)
		return (int)run;
	*found = (uint64_t)run == back;
	if (!*found)
		return RP_OK;
	j->outcome = SEAM_WINDOW;
	j->source = s->at - back;
	j->run = back;
	j->repeated = back;
	j->expected_at = place_in_epoch(c, s);
	j->observed_at = j->expected_at - back;
	return RP_OK;
}

/*
 * New samples of the epoch, and none of the answer key's to the end of the epoch or of the run: the
 * key's were passed over.
 */
static void judge_passed_over(
	const struct case_line *c, const struct seam *s, struct seam_judgement *j)
{
	const struct line_epoch *epoch = &c->tally.epochs.items[s->epoch];
	const struct ledger_attempt *a = &c->lineage.ledger->attempts.items[s->to];

	if (s->ahead.heads > 0 || s->again.heads > 0 || s->head < s->inside || c->tally.size == 0 ||
		!(epoch->ended || attempt_ended_well(a)) || c->tally.size < epoch->distinct)
		return;
	uint64_t missing = c->tally.size - epoch->distinct;
	if (missing >= s->key.rows)
		hole_at(s, j, missing);
}

static int judge_without_repeats(
	const struct case_line *c, const struct seam *s, struct seam_judgement *j, struct error *e)
{
	bool known = false;
	int64_t lag = 0;
	uint64_t next = 0;

	if (s->key.origin != KEY_NONE && s->match.differs) {
		/* As many as the key may hold beyond what was passed over. */
		uint64_t beyond = s->ahead.offset > 0 && (uint64_t)s->ahead.offset < s->key.rows
					  ? s->key.rows - (uint64_t)s->ahead.offset
					  : 0;
		if (align_in_order(&s->ahead) && s->ahead.offset > 0 &&
			2 * s->ahead.heads > (beyond < s->head ? beyond : s->head) &&
			!(s->match.same > 0 && !s->match.by_samples)) {
			hole_at(s, j, (uint64_t)s->ahead.offset);
			return RP_OK;
		}
		int status = judge_behind(c, s, j, &known, e);
		if (status < 0 || known)
			return status;
		if (judge_permuted(c, s, j) || judge_other_epoch(c, s, j))
			return RP_OK;
	}
	if (s->key.origin == KEY_NONE || s->match.differs) {
		int status = sequence_lag(c, s, &known, &lag, &next, e);
		if (status < 0)
			return status;
		if (known && lag > 0 && !(c->tally.size > 0 && next >= c->tally.size)) {
			hole_at(s, j, (uint64_t)lag);
			return RP_OK;
		}
		if (!known && align_in_order(&s->before) && s->followed && s->lag > 0 &&
			s->before.votes >= 2) {
			hole_at(s, j, (uint64_t)s->lag);
			return RP_OK;
		}
		if (!known && judge_other_epoch(c, s, j))
			return RP_OK;
	}
	j->outcome = s->key.origin != KEY_NONE && s->match.differs ? SEAM_DIFFERS : SEAM_SOUND;
	j->run = s->inside;
	if (j->outcome == SEAM_DIFFERS)
		judge_passed_over(c, s, j);
	return RP_OK;
}

/* Declared skips ------------------------------------------------------------------------------- */

/* Whether a step of the key, or the samples of it, are declared to be passed over. */
static bool is_skipped(const struct ledger *l, const struct ledger_attempt *a,
	const struct ledger_step *step, uint64_t place)
{
	for (uint32_t i = 0; i < a->intent.skips; i++) {
		const struct ledger_skip *k = &l->skips.items[a->intent.first_skip + i];
		int64_t first = k->samples ? (int64_t)place : step->step;
		int64_t last = k->samples ? (int64_t)(place + step->n) - 1 : step->step;
		if (!k->new_order && first >= k->from && last <= k->to)
			return true;
	}
	return false;
}

static bool speaks_of_key(const struct ledger *l, const struct ledger_attempt *a)
{
	for (uint32_t i = 0; i < a->intent.skips; i++)
		if (!l->skips.items[a->intent.first_skip + i].new_order)
			return true;
	return false;
}

/* Samples that are declared to be passed over behind the key's end: its last step is `last`. */
static uint64_t skipped_behind(const struct ledger *l, const struct ledger_attempt *a,
	const struct ledger_step *last, uint64_t place)
{
	uint64_t samples = 0;

	for (uint32_t i = 0; i < a->intent.skips; i++) {
		const struct ledger_skip *k = &l->skips.items[a->intent.first_skip + i];
		int64_t first = k->samples ? (int64_t)place : last->step + 1;
		first = k->from > first ? k->from : first;
		if (k->new_order || k->to < first)
			continue;
		uint64_t n = (uint64_t)(k->to - first) + 1;
		samples = size_add(samples, k->samples ? n : size_mul(n, last->n));
	}
	return samples;
}

/* A step's samples against those that come next in the key without what is skipped. */
static void judge_skip(const struct case_line *c, const struct seam *s, struct seam_judgement *j)
{
	const struct ledger *l = c->lineage.ledger;
	const struct ledger_attempt *a = &l->attempts.items[s->to];
	const struct line_part *p = &c->lineage.line.items[s->part];
	uint64_t sum[2] = {0}, want[2] = {0}, n = 0, want_n = 0, place = s->at, before = 0;
	uint32_t i = 0, met = 0;
	bool differs = false;

	for (uint32_t k = 0; k < s->key.steps; k++) {
		const struct ledger_step *x = &l->steps.items[s->key.first + k];
		bool skipped = is_skipped(l, a, x, place);
		place += x->n;
		if (skipped) {
			j->declared += x->n;
			before += want_n == 0 ? x->n : 0;
			continue;
		}
		if (differs)
			continue;
		want[1] += x->sum[1] + (want[0] + x->sum[0] < want[0]);
		want[0] += x->sum[0];
		want_n += x->n;
		while (n < want_n && i < p->steps) {
			const struct ledger_step *y = &l->steps.items[p->first + i++];
			sum[1] += y->sum[1] + (sum[0] + y->sum[0] < sum[0]);
			sum[0] += y->sum[0];
			n += y->n;
		}
		if (n < want_n)
			continue;
		if (n > want_n)
			continue; /* another batch size: compare where the numbers meet */
		differs = sum[0] != want[0] || sum[1] != want[1];
		met = differs ? met : i;
	}
	uint64_t behind = 0;
	if (s->key.steps > 0)
		behind = skipped_behind(
			l, a, &l->steps.items[s->key.first + s->key.steps - 1], place);
	j->declared = size_add(j->declared, behind);
	j->proven = met;
	j->skipped = j->declared;
	j->outcome = SEAM_SKIPPED;
	if (!differs && (met > 0 || s->ahead.heads == 0))
		return;
	/* Nothing of the key was to come: ids of it in another order are those of a later epoch. */
	if (want_n == 0 && !align_in_order(&s->ahead))
		return;
	/* What did come: where in the key the first samples lie. */
	if (align_in_order(&s->ahead))
		j->skipped = s->ahead.offset > 0 ? (uint64_t)s->ahead.offset : 0;
	else if (s->ahead.heads > 0)
		j->skipped = 0;
	else if (!j->fresh_declared && differs && met == 0)
		j->skipped = UINT64_MAX; /* nothing of the key came again at all */
	else
		return;
	if (j->skipped != before || differs)
		j->outcome = SEAM_SKIP_WRONG;
}

/* The data set, in its order, whose samples a place of the line holds; LEDGER_NONE: unknown. */
static uint32_t dataset_at(const struct case_line *c, uint64_t at)
{
	struct sample_source line = lineage_line(&c->lineage);
	struct sample_buffer *buffer = sample_buffer_new();
	struct sample_block b;
	uint32_t dataset = LEDGER_NONE;

	if (buffer && line.read(&line, at, 1, buffer, &b, NULL) >= 0 && b.n > 0)
		dataset = c->lineage.ledger->spaces.items[b.spaces ? b.spaces[0] : 0].dataset;
	sample_buffer_free(buffer);
	return dataset;
}

/* Whether ids name other samples from the seam on: those of two orders are never compared. */
static bool is_renumbered(const struct case_line *c, const struct seam *s)
{
	const struct ledger *l = c->lineage.ledger;

	if (l->datasets.count < 2 || s->at == 0)
		return false;
	uint32_t a = dataset_at(c, s->at - 1), b = dataset_at(c, s->at);
	return a != b && a < l->datasets.count && b < l->datasets.count &&
	       strcmp(l->datasets.items[a].order, l->datasets.items[b].order) != 0;
}

/*
 * Steps are missing before the resume. What comes again in order is a replay all the same, unless
 * the missing ones may have ended the epoch; what was passed over, they may have consumed. True
 * where nothing else can be said.
 */
static bool judge_over_gap(
	const struct case_line *c, const struct seam *s, bool excess, struct seam_judgement *j)
{
	bool known = c->tally.how == EPOCHS_LOGGED || c->tally.how == EPOCHS_SIZED;

	if (excess && known && align_in_order(&s->again)) {
		judge_replay(c, s, j);
		return true;
	}
	if (!excess && s->key.origin != KEY_NONE)
		return false;
	if (excess && c->tally.how == EPOCHS_LOGGED)
		return false;
	j->outcome = SEAM_SOUND;
	j->why = "steps before a resume are not in the log";
	return true;
}

static int judge_seam(
	const struct case_line *c, const struct seam *s, struct seam_judgement *j, struct error *e)
{
	const struct ledger *l = c->lineage.ledger;
	const struct ledger_attempt *a = &l->attempts.items[s->to];

	j->fresh_declared = seam_fresh_declared(a);
	j->expected = duplicates_expected(c, s);
	j->repeated = duplicates_at_seam(c, s);
	if (is_renumbered(c, s)) {
		j->outcome = SEAM_UNKNOWABLE;
		j->why = "the samples after it are numbered in another order";
		return RP_OK;
	}
	if (c->judged.keys_change) {
		j->outcome = SEAM_UNKNOWABLE;
		j->why = "content keys do not come again from epoch to epoch (augmentation?)";
		return RP_OK;
	}
	bool excess = duplicates_exceeded(c, s, j->repeated, j->expected);
	if (s->torn && judge_over_gap(c, s, excess, j))
		return RP_OK;
	/* What is read is the order of another epoch, of which a few samples happen to lie in
	 * order. */
	if (excess && !j->fresh_declared && s->before.votes > 2 * s->again.votes &&
		judge_other_epoch(c, s, j))
		return RP_OK;
	if (excess && align_in_order(&s->again)) {
		judge_replay(c, s, j);
		/* Where nothing tells epochs, all of the data once more in order may be one. */
		return RP_OK;
	}
	if (speaks_of_key(l, a) && s->key.origin != KEY_NONE) {
		judge_skip(c, s, j);
		if (j->outcome == SEAM_SKIP_WRONG || !excess)
			return RP_OK;
	}
	bool matched =
		s->key.origin != KEY_NONE && !s->match.differs && s->match.same > s->match.empty;
	if (matched && !excess) {
		j->proven = s->match.same - s->match.empty;
		j->outcome = s->match.by_samples               ? SEAM_BY_SAMPLES
			     : s->match.equal == s->match.same ? SEAM_EXACT
							       : SEAM_REARRANGED;
		return RP_OK;
	}
	if (s->torn && !excess) {
		j->outcome = SEAM_SOUND;
		j->why = "steps before a resume are not in the log";
		return RP_OK;
	}
	if (excess) {
		j->run = s->inside;
		if (!j->fresh_declared && judge_other_epoch(c, s, j))
			return RP_OK;
		j->outcome = j->fresh_declared ? SEAM_FRESH : SEAM_OTHER_ORDER;
		/* All of it was seen, nothing tells epochs: the data began a new one, as it seems.
		 */
		if (c->tally.how == EPOCHS_NONE && !j->fresh_declared &&
			s->again.heads == s->head && s->head >= 4 && s->inside <= s->behind) {
			j->outcome = SEAM_SOUND;
			j->why = "where an epoch ends is not known: all samples after the resume "
				 "were consumed before, in another order, as a new epoch would";
		}
		return RP_OK;
	}
	int status = judge_without_repeats(c, s, j, e);
	/* Another blend gives another order, and its dead branch is no answer key. */
	if (status == RP_OK && a->intent.weights &&
		(j->outcome == SEAM_DIFFERS || j->outcome == SEAM_PERMUTED)) {
		j->outcome = SEAM_SOUND;
		j->why = "the weights changed, as declared, and with them the order";
	}
	if (status == RP_OK && j->fresh_declared &&
		(j->outcome == SEAM_DIFFERS || j->outcome == SEAM_SOUND ||
			j->outcome == SEAM_OTHER_EPOCH || j->outcome == SEAM_PERMUTED))
		j->outcome = SEAM_FRESH;
	return status;
}

bool epoch_missing(const struct case_line *c, size_t epoch, uint64_t *missing)
{
	const struct tally *t = &c->tally;
	const struct line_epoch *p = &t->epochs.items[epoch];
	uint64_t size = c->judged.size;

	if (size == 0 || t->how == EPOCHS_NONE)
		return false;
	if (p->gaps)
		return false;
	/* Content that is twice in the data counts twice: what was replayed is told by itself. */
	uint64_t consumed = p->distinct;
	for (size_t i = 0; i < c->lineage.ledger->spaces.count; i++)
		if (c->lineage.ledger->spaces.items[i].kind == KEY_CONTENT)
			consumed = p->rows;
	*missing = size > consumed ? size - consumed : 0;
	return p->ended || p->rows >= size * t->repeat;
}

size_t seam_of_epoch(const struct case_line *c, size_t epoch)
{
	size_t low = 0, high = c->alignments.seams.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (c->alignments.seams.items[middle].epoch < epoch)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool is_undisturbed(const struct line_epoch *p)
{
	return p->ended && p->seams == 0;
}

/* The largest step, the size of an epoch, and how many samples epochs lack by design. */
static void find_sizes(struct case_line *c)
{
	const struct tally *t = &c->tally;
	const struct ledger *l = c->lineage.ledger;
	struct seam_judgements *j = &c->judged;
	uint64_t missing;
	bool seen = false, keeps = false;

	for (size_t i = 0; i < c->lineage.line.count; i++) {
		const struct line_part *p = &c->lineage.line.items[i];
		for (uint32_t k = 0; k < p->steps; k++) {
			uint32_t n = l->steps.items[p->first + k].n;
			j->batch = n > j->batch ? n : j->batch;
		}
	}
	j->size = t->size;
	/* What an undisturbed epoch has, where nobody says. */
	for (size_t i = 0; i < t->epochs.count && j->size == 0 && t->how == EPOCHS_LOGGED; i++)
		if (is_undisturbed(&t->epochs.items[i]) && t->epochs.items[i].again == 0)
			j->size = t->epochs.items[i].distinct;
	for (size_t i = 0; i < t->epochs.count; i++) {
		/* An epoch after a resume may be short for the resume's sake. */
		if (!is_undisturbed(&t->epochs.items[i]) || !epoch_missing(c, i, &missing) ||
			missing >= j->batch)
			continue;
		j->dropped = missing > j->dropped ? missing : j->dropped;
		seen = true;
	}
	for (size_t i = 0; i < l->attempts.count; i++)
		keeps = keeps || l->attempts.items[i].drop_last == 0;
	if (!seen && !keeps && j->batch > 0)
		j->dropped = t->size % j->batch;
}

/*
 * Where steps are missing, how far into an epoch they led is a guess. Too many repeats inside
 * attempts say that it was wrong, unless a resume began the data again, which moves epochs too.
 */
static bool guessed_wrong(const struct case_line *c)
{
	if (c->tally.how != EPOCHS_SIZED || c->lineage.gaps.count == 0 ||
		(double)tally_repeats_inside(&c->tally) <= WRONG_SHARE * (double)c->lineage.rows)
		return false;
	for (size_t i = 0; i < c->alignments.seams.count; i++)
		if (align_in_order(&c->alignments.seams.items[i].again))
			return false;
	return true;
}

int case_line_open(struct case_line *c, const struct ledger *l, enum attempt_kind kind,
	uint32_t tip, const struct lineage_told *told, size_t told_count, uint64_t memory,
	unsigned threads, struct error *e)
{
	*c = (struct case_line){.what = kind == ATTEMPT_VALIDATION ? "validation "
					: tip != LEDGER_NONE       ? "rehearsed "
								   : ""};
	int status = lineage_build_to(&c->lineage, l, kind, tip, told, told_count, e);
	if (status == RP_OK)
		status = tally_count(&c->tally, &c->lineage, memory, threads, e);
	if (status == RP_OK)
		status = align_seams(&c->alignments, &c->lineage, &c->tally, threads, e);
	if (status == RP_OK && guessed_wrong(c)) {
		align_release(&c->alignments);
		status = tally_without_epochs(&c->tally, memory, threads, e);
		if (status == RP_OK)
			status = align_seams(&c->alignments, &c->lineage, &c->tally, threads, e);
	}
	if (status < 0)
		return status;
	duplicates_find(c);
	c->judged.keys_change = duplicates_keys_change(c);
	find_sizes(c);
	/* A rehearsal is held against the history, and the history is not judged again. */
	if (tip != LEDGER_NONE && c->lineage.line.count > 0)
		c->from_part = c->lineage.line.count - 1;
	for (size_t i = 0; i < c->alignments.seams.count && status == RP_OK; i++) {
		struct seam_judgement *j = array_push(&c->judged.list, SIZE_MAX / sizeof *j);
		status = j ? judge_seam(c, &c->alignments.seams.items[i], j, e)
			   : fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for the seams");
	}
	return status;
}

void case_line_close(struct case_line *c)
{
	array_release(&c->judged.list);
	align_release(&c->alignments);
	tally_release(&c->tally);
	lineage_release(&c->lineage);
}
