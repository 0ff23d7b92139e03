/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "api/contender.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "audit/case.h"

#define SECOND_NS ((int64_t)1000000000)
/* Times closer than this say nothing about order: a copy writes many files in a moment. */
#define SAME_MOMENT_NS (60 * SECOND_NS)

static bool keep_log(struct contender *k, const struct state *s)
{
	k->log = calloc(s->log.count + 1, sizeof *k->log);
	if (!k->log)
		return false;
	if (s->log.count)
		memcpy(k->log, s->log.items, s->log.count * sizeof *k->log);
	k->log_count = s->log.count;
	return true;
}

/* What is wrong with a rejected one; where the message is about "the file", which file it is. */
static const char *reason_of(struct report *r, const struct candidate *c, const struct finding *f)
{
	size_t root = strlen(c->path);
	bool unnamed =
		f->code == FINDING_I102 || f->code == FINDING_I104 || f->code == FINDING_I114;

	if (unnamed && f->place.file && strncmp(f->place.file, c->path, root) == 0 &&
		f->place.file[root] == '/')
		return report_text(r, "%s: %s", f->place.file + root + 1, f->message);
	return report_text(r, "%s", f->message);
}

/* Whether all that is wrong with it is what a save that is going on looks like: parts that are not
 * there yet, or not whole. */
static bool looks_unfinished(const struct findings *own)
{
	for (size_t i = 0; i < own->list.count; i++) {
		const struct finding *f = &own->list.items[i];
		if (f->severity == SEVERITY_ERROR && f->code != FINDING_I107 &&
			f->code != FINDING_I101 && f->code != FINDING_I102)
			return false;
	}
	return true;
}

/* Look at one candidate: metadata only, its own parts and names. */
static int look(struct contender *k, struct report *r, struct subject *s,
	const struct candidate *candidate, const struct verify_options *o, struct error *e)
{
	struct findings own;
	struct coverage cover;
	struct state state;
	struct error why = ERROR_INIT;
	int64_t step;

	*k = (struct contender){.step = candidate->step,
		.epoch = -1,
		.mtime_ns = candidate->mtime_ns,
		.beside = candidate->snapshot && s->candidates.checkpoints,
		.kept_ns = candidate->snapshot ? candidate->mtime_ns : INT64_MIN,
		.by = SIZE_MAX};
	if (candidate->leftover) {
		k->standing = STANDING_REJECTED;
		k->unfinished = true;
		k->reason = "its name says that the save did not finish";
		return RP_OK;
	}
	findings_init(&own);
	coverage_init(&cover);
	state_init(&state, &o->limits);
	int status = checkpoint_load(
		&state, candidate, subject_listing(s, candidate), &o->limits, &own, &why);
	if (status == RP_OK) {
		k->profile = state.profile;
		k->mtime_ns = state.mtime_ns;
		struct audit_case c = {.current = &state, .limits = &o->limits, .no_previous = ""};
		rule_parts.run(&c, &own, &cover);
		rule_names.run(&c, &own, &cover);
		if (state_int(&state, FACT_STEP, &step))
			k->step = step;
		const struct fact *f = state_fact(&state, FACT_STEP);
		k->open = f && !state.profile->optimizer_counts_steps && state_step_in_epoch(f);
		double epoch;
		if (state_real(&state, FACT_EPOCH, &epoch) && epoch >= 0 && epoch < 9e15)
			k->epoch = (int64_t)epoch;
		k->resumable = state.optimizers.count > 0;
		k->point = trail_point_of(&state, candidate->name);
		if (!keep_log(k, &state))
			status = fail(e, RP_E_MEMORY, ERROR_NO_OFFSET,
				"no memory for a log of %zu points", state.log.count);
	} else if (status == RP_E_LIMIT && deadline_passed(o->limits.deadline)) {
		/* One that was seen in part must not count as rejected. */
		fail(e, status, ERROR_NO_OFFSET,
			"time ran out (--max-seconds) while its checkpoints were looked at");
	} else if (status == RP_E_IO || status == RP_E_CHANGED) {
		/* Nothing is known of it, which is no reason to pass over it. */
		k->profile = candidate->profile;
		k->resumable = true;
		status = RP_OK;
	} else if (status == RP_E_MEMORY) {
		fail(e, status, ERROR_NO_OFFSET, "%s", why.text);
	} else {
		k->standing = STANDING_REJECTED;
		k->reason = report_text(r, "%s", why.text);
		status = RP_OK;
	}
	findings_sort(&own);
	if (own.list.count > 0 && own.list.items[0].severity == SEVERITY_ERROR) {
		k->standing = STANDING_REJECTED;
		k->unfinished = looks_unfinished(&own);
		k->reason = reason_of(r, candidate, &own.list.items[0]);
		/* A framework finds it by its name, whatever is in it. */
		if (candidate->step >= 0)
			k->step = candidate->step;
	}
	if (status == RP_OK && own.lost + cover.lost > 0)
		status = fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory to look at checkpoints");
	state_release(&state);
	coverage_release(&cover);
	findings_release(&own);
	return status;
}

/* Whether `later` logged other values than `earlier` at a step that both cover: another branch. */
bool contender_logs_differ(const struct contender *earlier, const struct contender *later)
{
	size_t k = 0;

	for (size_t i = 0; i < earlier->log_count; i++) {
		const struct log_point *p = &earlier->log[i];
		while (k < later->log_count && later->log[k].step < p->step)
			k++;
		if (k < later->log_count && later->log[k].step == p->step &&
			later->log[k].value != p->value &&
			!(isnan(later->log[k].value) && isnan(p->value)))
			return true;
	}
	return false;
}

static bool logs_agree(const struct contender *earlier, const struct contender *later)
{
	return earlier->log_count > 0 && later->log_count >= earlier->log_count &&
	       !contender_logs_differ(earlier, later);
}

/* ---- order ------------------------------------------------------------------------------------
 */

static int compare_numbers(int64_t a, int64_t b)
{
	return (a > b) - (a < b);
}

static int compare_orders(const void *pa, const void *pb, void *context)
{
	const struct contender *k = context;
	size_t a = *(const size_t *)pa, b = *(const size_t *)pb;
	int order = compare_numbers(k[a].order, k[b].order);

	return order ? order : (a > b) - (a < b);
}

static int compare_steps(const void *pa, const void *pb, void *context)
{
	const struct contender *k = context;
	size_t a = *(const size_t *)pa, b = *(const size_t *)pb;
	int order = compare_numbers(k[a].step, k[b].step);

	return order ? order : (a > b) - (a < b);
}

static int compare_epochs(const void *pa, const void *pb, void *context)
{
	const struct contender *k = context;
	size_t a = *(const size_t *)pa, b = *(const size_t *)pb;

	return compare_numbers(k[a].epoch, k[b].epoch);
}

/* Whether the steps start again with each epoch: one of a later epoch has the lower step. `order`
 * is room for as many indices. */
static bool counts_inside(struct contender *k, size_t count, size_t *order)
{
	int64_t most = INT64_MIN, most_before = INT64_MIN, epoch = INT64_MIN;
	size_t open = 0;

	for (size_t i = 0; i < count; i++)
		if (k[i].standing == STANDING_LIVE && k[i].open)
			order[open++] = i;
	qsort_r(order, open, sizeof *order, compare_epochs, k);
	for (size_t i = 0; i < open; i++) {
		const struct contender *x = &k[order[i]];
		if (x->epoch > epoch)
			most_before = most;
		epoch = x->epoch;
		if (x->step < most_before)
			return true;
		if (x->step > most)
			most = x->step;
	}
	return false;
}

/*
 * Order them by steps where all have one; else by epochs, else by the places that their names give.
 * Where only some have a step, the others have no place.
 */
static void settle_order(struct contenders *all, const struct candidates *c)
{
	struct contender *k = all->items;
	bool steps = true, epochs = true, places = true;
	int64_t most = 0;

	for (size_t i = 0; i < c->list.count; i++) {
		if (k[i].standing == STANDING_REJECTED)
			continue;
		steps &= k[i].step >= 0;
		if (k[i].step > most)
			most = k[i].step;
		epochs &= k[i].epoch >= 0;
		places &= c->list.items[i].place >= 0;
	}
	for (size_t i = 0; i < c->list.count; i++)
		k[i].order = steps    ? k[i].step
			     : epochs ? k[i].epoch
			     : places ? c->list.items[i].place
				      : k[i].step;
	if (steps && epochs && most < INT32_MAX && counts_inside(k, all->count, all->by_order))
		for (size_t i = 0; i < c->list.count; i++)
			k[i].order = k[i].epoch < INT32_MAX ? k[i].epoch * (most + 1) + k[i].step
							    : k[i].step;
	for (size_t i = 0; i < all->count; i++)
		all->by_order[i] = all->by_step[i] = i;
	qsort_r(all->by_order, all->count, sizeof *all->by_order, compare_orders, k);
	qsort_r(all->by_step, all->count, sizeof *all->by_step, compare_steps, k);
}

/* ---- launches -----------------------------------------------------------------------------------
 */

/* The folder of a launch: what stands before and behind its number. */
struct launch {
	size_t contender;
	const struct profile *profile;
	const char *folder;
	size_t start, end; /* of the number in the folder's path */
	int64_t number;
	bool usable; /* something in it was not rejected */
};

/* By framework, and by the path around the number: launches of one experiment lie together. */
static int compare_experiments(const struct launch *a, const struct launch *b)
{
	if (a->profile != b->profile)
		return strcmp(a->profile->name, b->profile->name);
	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	int order = strncmp(a->folder, b->folder, a->start);
	return order ? order : strcmp(a->folder + a->end, b->folder + b->end);
}

static int compare_launches(const void *pa, const void *pb)
{
	const struct launch *a = pa, *b = pb;
	int order = compare_experiments(a, b);

	if (order == 0)
		order = compare_numbers(a->number, b->number);
	return order ? order : (a->contender > b->contender) - (a->contender < b->contender);
}

/* All but the newest launch that left something usable are earlier ones. */
static void settle_launches(struct contender *k, const struct launch *list, size_t count)
{
	const struct launch *newest = NULL;

	for (size_t i = 0; i < count; i++)
		if (list[i].usable && (!newest || list[i].number > newest->number))
			newest = &list[i];
	for (size_t i = 0; newest && i < count && list[i].number < newest->number; i++) {
		struct contender *x = &k[list[i].contender];
		if (x->standing != STANDING_LIVE)
			continue;
		x->standing = STANDING_EARLIER;
		x->by = newest->contender;
	}
}

/*
 * Of several launches of one experiment, each in a folder of its own, the newest that left
 * something usable is the one that a relaunch continues. Earlier ones are no predecessors: a launch
 * may have started anew.
 */
static bool find_earlier(struct contenders *all, const struct candidates *c)
{
	struct launch *list = calloc(all->count + 1, sizeof *list);
	size_t count = 0;

	for (size_t i = 0; list && i < all->count; i++) {
		const struct profile *p = all->items[i].profile;
		struct launch x = {.contender = i, .profile = p, .folder = c->list.items[i].folder};
		if (!p || !p->launch_folder)
			continue;
		x.number = launch_in_path(x.folder, p->launch_folder, &x.start, &x.end);
		x.usable = all->items[i].standing != STANDING_REJECTED;
		if (x.number >= 0)
			list[count++] = x;
	}
	if (list && count > 1)
		qsort(list, count, sizeof *list, compare_launches);
	for (size_t i = 0, end; list && i < count; i = end) {
		for (end = i + 1; end < count && compare_experiments(&list[i], &list[end]) == 0;)
			end++;
		settle_launches(all->items, &list[i], end - i);
	}
	free(list);
	return list != NULL;
}

/* ---- branches -----------------------------------------------------------------------------------
 */

/* Those that may kill others, by their order. */
struct killers {
	size_t *items;   /* indices of contenders */
	int64_t *newest; /* [i]: when the newest of the first i was saved */
	size_t count;
	bool logs; /* some carry a log */
};

/* How many of them have a lower number than `order`. */
static size_t count_lower(const struct killers *x, const struct contender *k, int64_t order)
{
	size_t low = 0, high = x->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (k[x->items[middle]].order < order)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Whether `j`, which has the lower number, kills `i`, or may do so. */
static enum standing judge_pair(const struct contender *j, const struct contender *i)
{
	int64_t later = j->mtime_ns - i->mtime_ns;

	if (logs_agree(j, i))
		return STANDING_LIVE;
	bool differ = contender_logs_differ(j, i);
	if (later > 0 && (differ || later > SAME_MOMENT_NS))
		return differ && later < SECOND_NS ? STANDING_UNCLEAR : STANDING_DEAD;
	return differ && later > -SECOND_NS ? STANDING_UNCLEAR : STANDING_LIVE;
}

/* The first of the `lower` killers that kills `i`, or lower. */
static size_t find_killer(
	const struct killers *x, const struct contender *k, size_t lower, size_t i)
{
	/* Without logs only times tell, and the first that is late enough is found by halving. */
	if (!x->logs || k[i].log_count == 0) {
		size_t low = 0, high = lower;
		while (low < high) {
			size_t middle = low + (high - low) / 2;
			if (x->newest[middle + 1] - k[i].mtime_ns > SAME_MOMENT_NS)
				high = middle;
			else
				low = middle + 1;
		}
		return low;
	}
	for (size_t n = 0; n < lower; n++)
		if (judge_pair(&k[x->items[n]], &k[i]) != STANDING_LIVE)
			return n;
	return lower;
}

/* Branches: a checkpoint that was saved later with a lower number kills the higher ones. */
static bool find_dead(struct contenders *all)
{
	struct contender *k = all->items;
	struct killers x = {.items = calloc(all->count + 1, sizeof *x.items),
		.newest = calloc(all->count + 1, sizeof *x.newest)};
	bool ok = x.items && x.newest;

	if (ok)
		x.newest[0] = INT64_MIN / 2;
	for (size_t n = 0; ok && n < all->count; n++) {
		size_t i = all->by_order[n];
		if (k[i].standing == STANDING_REJECTED || k[i].standing == STANDING_EARLIER)
			continue;
		x.items[x.count++] = i;
		x.newest[x.count] = k[i].mtime_ns > x.newest[x.count - 1] ? k[i].mtime_ns
									  : x.newest[x.count - 1];
		x.logs = x.logs || k[i].log_count > 0;
	}
	for (size_t i = 0; ok && i < all->count; i++) {
		size_t lower = k[i].standing == STANDING_LIVE ? count_lower(&x, k, k[i].order) : 0;
		/* In a line without rollbacks all lower ones were saved before. */
		if (lower == 0 || x.newest[lower] - k[i].mtime_ns <= -SECOND_NS)
			continue;
		size_t n = find_killer(&x, k, lower, i);
		if (n == lower)
			continue;
		k[i].standing = judge_pair(&k[x.items[n]], &k[i]);
		k[i].by = x.items[n];
	}
	free(x.items);
	free(x.newest);
	return ok;
}

/*
 * Snapshots are kept when their checkpoints are judged, for a relaunch as a rule. One of a lower
 * number that was kept later is a rollback, though the checkpoint itself was saved before: what was
 * kept of the higher ones is of a dead branch. Where that is wrong, an older ancestor is compared
 * with.
 */
static void find_dead_kept(struct contenders *all)
{
	struct contender *k = all->items;
	size_t newest = SIZE_MAX, newest_lower = SIZE_MAX;
	int64_t order = INT64_MIN;

	for (size_t n = 0; n < all->count; n++) {
		size_t i = all->by_order[n];
		if (!k[i].beside || k[i].standing == STANDING_REJECTED)
			continue;
		if (k[i].order > order)
			newest_lower = newest;
		order = k[i].order;
		if (newest_lower != SIZE_MAX && k[i].standing == STANDING_LIVE &&
			k[newest_lower].kept_ns - k[i].kept_ns > SECOND_NS) {
			k[i].standing = STANDING_DEAD;
			k[i].by = newest_lower;
		}
		if (newest == SIZE_MAX || k[i].kept_ns > k[newest].kept_ns)
			newest = i;
	}
}

bool contenders_settle(struct contenders *k, const struct candidates *c)
{
	settle_order(k, c);
	if (!find_earlier(k, c) || !find_dead(k))
		return false;
	find_dead_kept(k);
	return true;
}

int contenders_find(struct contenders *k, struct report *r, struct subject *s,
	const struct verify_options *o, struct error *e)
{
	const struct candidates *c = &s->candidates;
	int status = RP_OK;

	*k = (struct contenders){.count = c->list.count,
		.items = calloc(c->list.count + 1, sizeof *k->items),
		.by_order = calloc(c->list.count + 1, sizeof *k->by_order),
		.by_step = calloc(c->list.count + 1, sizeof *k->by_step)};
	bool memory = k->items && k->by_order && k->by_step;
	for (size_t i = 0; memory && i < k->count && status == RP_OK; i++)
		status =
			deadline_passed(o->limits.deadline)
				? fail(e, RP_E_LIMIT, ERROR_NO_OFFSET,
					  "time ran out (--max-seconds) when %zu of its %zu checkpoints had been looked at",
					  i, k->count)
				: look(&k->items[i], r, s, &c->list.items[i], o, e);
	if (memory && status == RP_OK)
		memory = contenders_settle(k, c);
	return memory ? status
		      : fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for %zu checkpoints",
				k->count);
}

void contenders_release(struct contenders *k)
{
	for (size_t i = 0; k->items && i < k->count; i++)
		free(k->items[i].log);
	free(k->items);
	free(k->by_order);
	free(k->by_step);
}
