/* SPDX-License-Identifier: MIT */
#include "ledger/lineage.h"

#include <math.h>

#define ATTEMPTS_MAX ((size_t)UINT32_MAX - 1)
#define STEPS_MAX ((size_t)UINT32_MAX - 1)

static int64_t last_of(const struct ledger_attempt *a, int64_t from)
{
	return a->steps > 0 ? a->last_step : from;
}

uint32_t ledger_step_after(const struct ledger *l, const struct ledger_attempt *a, int64_t step)
{
	uint32_t low = a->first, high = a->first + a->steps;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (l->steps.items[middle].step <= step)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

uint32_t ledger_step_of_row(const struct ledger *l, uint64_t row)
{
	size_t low = 0, high = l->steps.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (l->steps.items[middle].row <= row)
			low = middle + 1;
		else
			high = middle;
	}
	return (uint32_t)(low > 0 ? low - 1 : 0);
}

/* Which attempts reached a step -----------------------------------------------------------------
 *
 * An attempt covers the steps (from, last]. Attempts come in order, so that painting a stretch with
 * the newest number and adding one to it are both simple trees over the steps that will be asked
 * for.
 */
struct cover_tree {
	int64_t *steps; /* sorted, without repeats */
	size_t count;
	uint32_t *newest; /* 2 * count nodes: attempt + 1, or 0 */
	uint32_t *added;  /* 2 * count nodes: how many cover all below the node */
};

static int compare_steps(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

static int cover_tree_init(struct cover_tree *t, size_t attempts, struct error *e)
{
	*t = (struct cover_tree){0};
	t->steps = calloc(attempts + 1, sizeof *t->steps);
	t->newest = calloc(2 * (attempts + 1), sizeof *t->newest);
	t->added = calloc(2 * (attempts + 1), sizeof *t->added);
	if (!t->steps || !t->newest || !t->added)
		return fail(
			e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for %zu attempts", attempts);
	return RP_OK;
}

static void cover_tree_release(struct cover_tree *t)
{
	free(t->steps);
	free(t->newest);
	free(t->added);
}

static void cover_tree_settle(struct cover_tree *t)
{
	size_t kept = 0;

	if (t->count == 0)
		return;
	qsort(t->steps, t->count, sizeof *t->steps, compare_steps);
	for (size_t i = 0; i < t->count; i++)
		if (kept == 0 || t->steps[i] != t->steps[kept - 1])
			t->steps[kept++] = t->steps[i];
	t->count = kept;
}

/* The first of the tree's steps that is greater than `step`. */
static size_t cover_tree_above(const struct cover_tree *t, int64_t step)
{
	size_t low = 0, high = t->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (t->steps[middle] <= step)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void cover_tree_add(struct cover_tree *t, int64_t from, int64_t last, uint32_t attempt)
{
	size_t low = cover_tree_above(t, from) + t->count,
	       high = cover_tree_above(t, last) + t->count;

	for (; low < high; low /= 2, high /= 2) {
		if (low & 1) {
			t->newest[low] = attempt + 1;
			t->added[low++]++;
		}
		if (high & 1) {
			t->newest[--high] = attempt + 1;
			t->added[high]++;
		}
	}
}

/* The newest attempt that covers a step of the tree, or LEDGER_NONE; how many do. */
static uint32_t cover_tree_find(const struct cover_tree *t, int64_t step, uint32_t *count)
{
	uint32_t newest = 0;
	size_t at = cover_tree_above(t, step);

	*count = 0;
	if (at == 0 || t->steps[at - 1] != step)
		return LEDGER_NONE;
	for (size_t node = at - 1 + t->count; node > 0; node /= 2) {
		newest = t->newest[node] > newest ? t->newest[node] : newest;
		*count += t->added[node];
	}
	return newest > 0 ? newest - 1 : LEDGER_NONE;
}

/* Parents ---------------------------------------------------------------------------------------
 */

static bool member_of(
	const struct ledger_attempt *a, enum attempt_kind kind, uint32_t tip, size_t i)
{
	return a->kind == kind || i == tip;
}

/* A declared skip over which the step counter jumped: the checkpoint lies before it. */
static bool jumped_from(const struct ledger *l, const struct ledger_attempt *a, int64_t *from)
{
	for (uint32_t i = 0; i < a->intent.skips; i++) {
		const struct ledger_skip *s = &l->skips.items[a->intent.first_skip + i];
		if (!s->samples && !s->new_order && s->to == a->first_step - 1) {
			*from = s->from - 1;
			return true;
		}
	}
	return false;
}

/* From which step an attempt went on, and how that is known. */
static void find_from_step(struct lineage *g, uint32_t i, const struct lineage_told *told,
	size_t count, uint32_t before)
{
	const struct ledger_attempt *a = &g->ledger->attempts.items[i];
	struct lineage_attempt *n = &g->attempts.items[i];

	for (size_t k = 0; k < count; k++) {
		if (told[k].attempt != a->number)
			continue;
		n->how = LINEAGE_TOLD;
		n->from_step = told[k].step;
		return;
	}
	if (a->from_step != LEDGER_NO_STEP) {
		n->how = LINEAGE_SAID;
		n->from_step = a->from_step;
		return;
	}
	n->how = LINEAGE_COUNTED;
	n->from_step = LEDGER_NO_STEP;
	if (a->steps > 0 && !jumped_from(g->ledger, a, &n->from_step))
		n->from_step = a->first_step - 1;
	/* It consumed nothing: as far as is known it went on where the one before ended. */
	if (a->steps == 0 && before != LEDGER_NONE)
		n->from_step = last_of(
			&g->ledger->attempts.items[before], g->attempts.items[before].from_step);
}

/* Whether one path is the end of the other: "ckpt/6210" of "/data/run/ckpt/6210". */
static bool same_path(const char *a, const char *b)
{
	struct slice x = slice_of(a), y = slice_of(b);

	while (x.n > 1 && x.p[x.n - 1] == '/')
		x.n--;
	while (y.n > 1 && y.p[y.n - 1] == '/')
		y.n--;
	if (x.n < y.n) {
		struct slice shorter = x;
		x = y;
		y = shorter;
	}
	return y.n > 0 && slice_ends(x, y) && (x.n == y.n || x.p[x.n - y.n - 1] == '/');
}

/* The newest attempt below `below` that is known to have written such a checkpoint. */
static uint32_t writer_of(
	const struct lineage *g, uint32_t below, int64_t step, const char *path, const char *digest)
{
	uint32_t by_digest = LEDGER_NONE, by_path = LEDGER_NONE;

	for (size_t i = 0; i < g->ledger->checkpoints.count; i++) {
		const struct ledger_checkpoint *c = &g->ledger->checkpoints.items[i];
		if (c->attempt >= below || c->step != step || !g->attempts.items[c->attempt].member)
			continue;
		if (digest && *digest && *c->digest && strcmp(c->digest, digest) == 0)
			by_digest = c->attempt;
		if (path && *path && *c->path && same_path(c->path, path))
			by_path = c->attempt;
	}
	return by_digest != LEDGER_NONE ? by_digest : by_path;
}

/* Up from an attempt to the one of its line that had not yet begun after `step`. */
static uint32_t ancestor_at(const struct lineage *g, uint32_t i, int64_t step)
{
	while (i != LEDGER_NONE && g->attempts.items[i].from_step != LEDGER_NO_STEP &&
		g->attempts.items[i].from_step >= step &&
		g->attempts.items[i].parent != LEDGER_NONE)
		i = g->attempts.items[i].parent;
	return i;
}

static uint32_t attempt_numbered(const struct ledger *l, int64_t number)
{
	size_t low = 0, high = l->attempts.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (l->attempts.items[middle].number < number)
			low = middle + 1;
		else
			high = middle;
	}
	return low < l->attempts.count && l->attempts.items[low].number == number ? (uint32_t)low
										  : LEDGER_NONE;
}

static void find_parent(struct lineage *g, uint32_t i, uint32_t before, const struct cover_tree *t)
{
	const struct ledger *l = g->ledger;
	const struct ledger_attempt *a = &l->attempts.items[i];
	struct lineage_attempt *n = &g->attempts.items[i];
	uint32_t count;

	n->parent = LEDGER_NONE;
	if (n->from_step == LEDGER_NO_STEP || n->from_step <= 0)
		return;
	uint32_t named = a->from_attempt == LEDGER_NO_STEP ? LEDGER_NONE
							   : attempt_numbered(l, a->from_attempt);
	if (named != LEDGER_NONE && named < i && g->attempts.items[named].member) {
		n->parent = ancestor_at(g, named, n->from_step);
	} else {
		uint32_t writer = writer_of(g, i, n->from_step, a->from_path, a->from_digest);
		n->parent = cover_tree_find(t, n->from_step, &count);
		n->rivals = count > 1 ? count - 1 : 0;
		if (writer != LEDGER_NONE) {
			n->parent = writer;
			n->rivals = 0;
		}
	}
	/* Nobody logged that step: the log of some steps before it is missing. */
	if (n->parent == LEDGER_NONE)
		n->parent = ancestor_at(g, before, n->from_step);
}

/* What the log lacks before an attempt's first step, as the parent is known. */
static void find_gap(struct lineage *g, uint32_t i)
{
	const struct ledger *l = g->ledger;
	const struct ledger_attempt *a = &l->attempts.items[i];
	struct lineage_attempt *n = &g->attempts.items[i];
	int64_t last = 0, stride = a->steps > 0 ? a->stride : 1;
	/* A declared skip may have moved the counter. */
	int64_t end = a->steps > 0 && a->intent.skips == 0 ? a->first_step - 1 : n->from_step;

	if (n->from_step == LEDGER_NO_STEP)
		return;
	if (n->parent != LEDGER_NONE) {
		const struct ledger_attempt *p = &l->attempts.items[n->parent];
		uint32_t behind = ledger_step_after(l, p, n->from_step);
		last = behind > p->first ? l->steps.items[behind - 1].step
					 : g->attempts.items[n->parent].from_step;
		if (last == LEDGER_NO_STEP)
			return;
		stride = p->stride > stride ? p->stride : stride;
	}
	if ((end - last) / stride <= 0)
		return;
	n->gap = (end - last) / stride;
	n->gap_first = last + stride;
	n->gap_last = end;
}

/* The line ------------------------------------------------------------------------------------- */

static struct line_part part_of(
	const struct ledger *l, uint32_t attempt, uint32_t first, uint32_t steps)
{
	const struct ledger_step *s = &l->steps.items[first];
	const struct ledger_step *last = s + (steps - 1);

	return (struct line_part){.attempt = attempt,
		.first = first,
		.steps = steps,
		.row = s->row,
		.rows = last->row + last->n - s->row,
		.first_step = s->step,
		.last_step = last->step};
}

/* From the tip up to the start, each attempt alive up to where the next went on. */
static void mark_alive(struct lineage *g)
{
	const struct ledger *l = g->ledger;
	int64_t until = INT64_MAX;
	uint32_t child = LEDGER_NONE;

	for (uint32_t i = g->last; i != LEDGER_NONE; i = g->attempts.items[i].parent) {
		const struct ledger_attempt *a = &l->attempts.items[i];
		struct lineage_attempt *n = &g->attempts.items[i];
		n->alive = ledger_step_after(l, a, until) - a->first;
		n->alive_rows = n->alive == 0 ? 0 : part_of(l, i, a->first, n->alive).rows;
		if (n->alive < a->steps)
			n->killed_by = child;
		until = n->from_step;
		child = i;
	}
}

static int add_part(struct lineage *g, uint32_t i, bool alive, struct error *e)
{
	const struct ledger_attempt *a = &g->ledger->attempts.items[i];
	const struct lineage_attempt *n = &g->attempts.items[i];
	uint32_t first = alive ? a->first : a->first + n->alive;
	uint32_t steps = alive ? n->alive : a->steps - n->alive;

	if (steps == 0)
		return RP_OK;
	struct line_part *p =
		alive ? array_push(&g->line, ATTEMPTS_MAX) : array_push(&g->dead, ATTEMPTS_MAX);
	if (!p)
		return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for the lineage");
	*p = part_of(g->ledger, i, first, steps);
	p->at = alive ? g->rows : g->dead_rows;
	*(alive ? &g->rows : &g->dead_rows) += p->rows;
	*(alive ? &g->steps : &g->dead_steps) += steps;
	return RP_OK;
}

/* Whoever took an ancestor's place is to blame for an attempt that is dead as a whole. */
static void blame(struct lineage *g)
{
	uint32_t after = LEDGER_NONE;

	for (size_t k = g->attempts.count; k-- > 0;) {
		struct lineage_attempt *n = &g->attempts.items[k];
		if (!n->member)
			continue;
		if (n->alive == 0 && n->killed_by == LEDGER_NONE &&
			g->ledger->attempts.items[k].steps > 0)
			n->killed_by = after;
		after = (uint32_t)k;
	}
}

/* What an attempt's part of the line consumed in a step on average, where the log says. */
static double usual_samples(const struct lineage *g, const struct line_part *p)
{
	uint32_t said = 0;

	for (uint32_t k = p->first; k < p->first + p->steps; k++)
		said += ledger_step_said(g->ledger, k);
	return said > 0 ? (double)p->rows / said : 0;
}

static int add_gap(struct lineage *g, struct line_gap gap, double samples, struct error *e)
{
	struct line_gap *kept = g->gaps.count > 0 ? &g->gaps.items[g->gaps.count - 1] : NULL;

	gap.samples = (uint64_t)llround(samples);
	g->missing_steps += gap.steps;
	g->missing_samples += gap.samples;
	if (kept && kept->at == gap.at) {
		kept->last = gap.last;
		kept->steps += gap.steps;
		kept->samples += gap.samples;
		return RP_OK;
	}
	kept = array_push(&g->gaps, STEPS_MAX);
	if (!kept)
		return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for the lineage");
	*kept = gap;
	return RP_OK;
}

/* Before a part's first step: up to the checkpoint the steps were the part's before it. */
static int add_gap_before(
	struct lineage *g, size_t part, double before, double each, struct error *e)
{
	const struct line_part *p = &g->line.items[part];
	const struct lineage_attempt *n = &g->attempts.items[p->attempt];
	double earlier = 0;

	if (n->gap == 0)
		return RP_OK;
	if (part > 0 && n->from_step >= n->gap_first)
		earlier = (double)n->gap * (double)(n->from_step - n->gap_first + 1) /
			  (double)(n->gap_last - n->gap_first + 1);
	struct line_gap gap = {
		.at = p->at, .first = n->gap_first, .last = n->gap_last, .steps = (uint64_t)n->gap};
	return add_gap(g, gap, earlier * before + ((double)n->gap - earlier) * each, e);
}

/* Inside a part: steps that were left out, and steps of which the log names no samples. */
static int add_gaps_inside(
	struct lineage *g, const struct line_part *p, double each, struct error *e)
{
	const struct ledger *l = g->ledger;

	for (uint32_t k = p->first; k < p->first + p->steps; k++) {
		const struct ledger_step *s = &l->steps.items[k];
		int64_t missing = ledger_missing_before(l, k), first = s->step;
		if (missing > 0)
			first = s[-1].step + l->attempts.items[p->attempt].stride;
		bool said = ledger_step_said(l, k);
		if (missing == 0 && said)
			continue;
		struct line_gap gap = {.at = p->at + (s->row - p->row),
			.first = first,
			.last = said ? s->step - 1 : s->step,
			.steps = (uint64_t)missing + !said};
		g->unsaid_steps += !said;
		if (add_gap(g, gap, (double)gap.steps * each, e) < 0)
			return e->status;
	}
	return RP_OK;
}

static int find_gaps(struct lineage *g, struct error *e)
{
	double before = 0;

	for (size_t i = 0; i < g->line.count && g->rows > 0; i++) {
		double each = usual_samples(g, &g->line.items[i]);
		if (add_gap_before(g, i, before, each, e) < 0 ||
			add_gaps_inside(g, &g->line.items[i], each, e) < 0)
			return e->status;
		before = each;
	}
	return RP_OK;
}

static int lay_line(struct lineage *g, struct error *e)
{
	int status = RP_OK;

	mark_alive(g);
	blame(g);
	for (uint32_t i = 0; i < g->attempts.count && status == RP_OK; i++) {
		if (!g->attempts.items[i].member)
			continue;
		status = add_part(g, i, true, e);
		if (status == RP_OK)
			status = add_part(g, i, false, e);
	}
	return status == RP_OK ? find_gaps(g, e) : status;
}

static int check_told(
	const struct lineage *g, const struct lineage_told *told, size_t count, struct error *e)
{
	for (size_t k = 0; k < count; k++) {
		if (attempt_numbered(g->ledger, told[k].attempt) == LEDGER_NONE)
			return fail(e, RP_E_ARGUMENT, ERROR_NO_OFFSET,
				"--resume %lld:%lld: the log has no attempt %lld",
				(long long)told[k].attempt, (long long)told[k].step,
				(long long)told[k].attempt);
	}
	return RP_OK;
}

static int build(struct lineage *g, const struct ledger *l, enum attempt_kind kind, uint32_t tip,
	const struct lineage_told *told, size_t count, struct error *e)
{
	struct cover_tree tree;
	uint32_t before = LEDGER_NONE;
	int status = check_told(g, told, count, e);
	if (status < 0)
		return status;
	if (l->attempts.count > 0 && !array_reserve(&g->attempts, l->attempts.count, ATTEMPTS_MAX))
		return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for the lineage");
	g->attempts.count = l->attempts.count;
	status = cover_tree_init(&tree, l->attempts.count, e);
	for (uint32_t i = 0; i < g->attempts.count && status == RP_OK; i++) {
		g->attempts.items[i] = (struct lineage_attempt){.parent = LEDGER_NONE,
			.killed_by = LEDGER_NONE,
			.from_step = LEDGER_NO_STEP,
			.member = member_of(&l->attempts.items[i], kind, tip, i)};
		if (!g->attempts.items[i].member)
			continue;
		find_from_step(g, i, told, count, before);
		if (g->attempts.items[i].from_step != LEDGER_NO_STEP)
			tree.steps[tree.count++] = g->attempts.items[i].from_step;
		before = i;
		g->members++;
	}
	cover_tree_settle(&tree);
	before = LEDGER_NONE;
	for (uint32_t i = 0; i < g->attempts.count && status == RP_OK; i++) {
		const struct ledger_attempt *a = &l->attempts.items[i];
		const struct lineage_attempt *n = &g->attempts.items[i];
		/* The tip comes last, whatever its number. */
		if (!n->member || i == tip)
			continue;
		find_parent(g, i, before, &tree);
		find_gap(g, i);
		if (a->steps > 0)
			cover_tree_add(&tree,
				n->from_step == LEDGER_NO_STEP ? a->first_step - 1 : n->from_step,
				a->last_step, i);
		before = g->last = i;
	}
	if (status == RP_OK && tip < g->attempts.count) {
		find_parent(g, tip, before, &tree);
		find_gap(g, tip);
		g->last = tip;
	}
	cover_tree_release(&tree);
	return status == RP_OK ? lay_line(g, e) : status;
}

int lineage_build_to(struct lineage *g, const struct ledger *l, enum attempt_kind kind,
	uint32_t tip, const struct lineage_told *told, size_t count, struct error *e)
{
	*g = (struct lineage){.ledger = l, .kind = (uint8_t)kind, .last = LEDGER_NONE};
	int status = build(g, l, kind, tip, told, count, e);
	if (status < 0)
		lineage_release(g);
	return status;
}

int lineage_build(struct lineage *g, const struct ledger *l, enum attempt_kind kind,
	const struct lineage_told *told, size_t count, struct error *e)
{
	return lineage_build_to(g, l, kind, LEDGER_NONE, told, count, e);
}

void lineage_release(struct lineage *g)
{
	array_release(&g->attempts);
	array_release(&g->line);
	array_release(&g->dead);
	array_release(&g->gaps);
}

/* Reading it ----------------------------------------------------------------------------------- */

static size_t part_index(const struct line_part *parts, size_t count, uint64_t at)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (parts[middle].at <= at)
			low = middle + 1;
		else
			high = middle;
	}
	return low > 0 ? low - 1 : 0;
}

size_t lineage_part_at(const struct lineage *g, uint64_t at)
{
	return part_index(g->line.items, g->line.count, at);
}

static int read_parts(const struct lineage *g, const struct line_part *parts, size_t count,
	uint64_t at, size_t n, struct sample_buffer *buffer, struct sample_block *out,
	struct error *e)
{
	const struct line_part *p = &parts[part_index(parts, count, at)];
	struct sample_source all = ledger_samples(g->ledger);
	uint64_t inside = at - p->at, left = p->rows - inside;
	int status = all.read(&all, p->row + inside, n < left ? n : (size_t)left, buffer, out, e);

	out->row = at;
	return status;
}

static int read_line(const struct sample_source *self, uint64_t row, size_t n,
	struct sample_buffer *buffer, struct sample_block *out, struct error *e)
{
	const struct lineage *g = self->of;
	return read_parts(g, g->line.items, g->line.count, row, n, buffer, out, e);
}

static int read_dead(const struct sample_source *self, uint64_t row, size_t n,
	struct sample_buffer *buffer, struct sample_block *out, struct error *e)
{
	const struct lineage *g = self->of;
	return read_parts(g, g->dead.items, g->dead.count, row, n, buffer, out, e);
}

struct sample_source lineage_line(const struct lineage *g)
{
	return (struct sample_source){.rows = g->rows, .read = read_line, .of = g};
}

struct sample_source lineage_dead(const struct lineage *g)
{
	return (struct sample_source){.rows = g->dead_rows, .read = read_dead, .of = g};
}

/* Holes ---------------------------------------------------------------------------------------- */

#define DISTANCE_STEPS 64u /* that tell the distance */
#define BROKEN_STEPS                                                                               \
	(1u << 16) /* holes are looked for among so many: what lies behind is not compared */

int64_t steps_distance(const struct ledger_step *s, uint32_t n)
{
	int64_t least = INT64_MAX;

	for (uint32_t i = 1; i < n && i < DISTANCE_STEPS; i++)
		least = s[i].step - s[i - 1].step < least ? s[i].step - s[i - 1].step : least;
	return least;
}

uint32_t steps_unbroken(const struct ledger_step *s, uint32_t n)
{
	int64_t distance = steps_distance(s, n);

	for (uint32_t i = 1; i < n && i < BROKEN_STEPS; i++)
		if (s[i].step - s[i - 1].step > distance)
			return i;
	return n;
}

uint64_t lineage_consumed(const struct lineage *g, int64_t step, bool *reached)
{
	uint64_t rows = 0;

	*reached = false;
	for (size_t i = 0; i < g->line.count; i++) {
		const struct line_part *p = &g->line.items[i];
		uint32_t after =
			ledger_step_after(g->ledger, &g->ledger->attempts.items[p->attempt], step);
		if (after >= p->first + p->steps) {
			rows = p->at + p->rows;
			*reached = *reached || p->last_step == step;
			continue;
		}
		rows = p->at + (g->ledger->steps.items[after].row - p->row);
		*reached = *reached || p->first_step <= step ||
			   g->attempts.items[p->attempt].from_step == step;
		break;
	}
	return rows;
}

struct lineage_branch lineage_branch_of(
	const struct lineage *g, int64_t step, const char *path, const char *digest)
{
	uint32_t covering = 0, newest = LEDGER_NONE;
	struct lineage_branch b = {
		.attempt = writer_of(g, (uint32_t)g->attempts.count, step, path, digest)};

	for (uint32_t i = 0; i < g->attempts.count; i++) {
		const struct lineage_attempt *n = &g->attempts.items[i];
		const struct ledger_attempt *a = &g->ledger->attempts.items[i];
		if (!n->member || a->steps == 0 || a->last_step < step ||
			(n->from_step != LEDGER_NO_STEP ? n->from_step >= step
							: a->first_step > step))
			continue;
		newest = i;
		covering++;
	}
	if (b.attempt == LEDGER_NONE) {
		b.attempt = newest;
		b.rivals = covering > 1 ? covering - 1 : 0;
	}
	if (b.attempt != LEDGER_NONE) {
		const struct ledger_attempt *a = &g->ledger->attempts.items[b.attempt];
		b.alive = ledger_step_after(g->ledger, a, step) - a->first <=
				  g->attempts.items[b.attempt].alive &&
			  g->attempts.items[b.attempt].alive > 0;
	}
	return b;
}
