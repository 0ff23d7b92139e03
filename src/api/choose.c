/* SPDX-License-Identifier: MIT */
#include "api/choose.h"

#include <math.h>
#include <stdlib.h>

#include "api/conclude.h"
#include "audit/case.h"
#include "base/text.h"

/* Times closer than this say nothing about order: a copy writes many files in a moment. */
#define SAME_MOMENT_NS ((int64_t)60 * 1000000000)

enum standing {
	STANDING_LIVE,
	STANDING_REJECTED,
	STANDING_DEAD,
	STANDING_EARLIER, /* of an earlier launch of the same experiment */
	STANDING_UNCLEAR, /* another branch, and times do not tell which is newer */
};

static const char standing_chosen[] = "resume from";

/* What is known of one candidate after a look at its metadata. */
struct contender {
	enum standing standing;
	int64_t step;  /* inside, else from the name, else -1 */
	int64_t epoch; /* inside, else -1 */
	int64_t order; /* what they are ordered by: steps, or epochs, or the places in their names;
			  or -1 */
	int64_t mtime_ns; /* of its newest file; of a snapshot's checkpoint, not of the snapshot */
	bool beside;      /* a snapshot: it may be a predecessor, and nothing resumes from it */
	bool resumable;   /* has an optimizer's state */
	bool open;        /* its step may start again with each epoch, by its name */
	const char *reason; /* of a rejection */
	struct log_point *log;
	size_t log_count;
	const struct profile *profile; /* what its files turned out to be */
	size_t by;                     /* the candidate that killed it */
};

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
		.by = SIZE_MAX};
	if (candidate->leftover) {
		k->standing = STANDING_REJECTED;
		k->reason = "its name says that the save did not finish";
		return RP_OK;
	}
	findings_init(&own);
	coverage_init(&cover);
	state_init(&state, &o->limits);
	int status = checkpoint_load(&state, candidate, &s->listing, &o->limits, &own, &why);
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
		if (!keep_log(k, &state))
			status = fail(e, RP_E_MEMORY, ERROR_NO_OFFSET,
				"no memory for a log of %zu points", state.log.count);
	} else if (status == RP_E_LIMIT && deadline_passed(o->limits.deadline)) {
		/* One that was seen in part must not count as rejected. */
		fail(e, status, ERROR_NO_OFFSET,
			"time ran out (--max-seconds) while its checkpoints were looked at");
	} else if (status != RP_E_MEMORY) {
		k->standing = STANDING_REJECTED;
		k->reason = report_text(r, "%s", why.text);
		status = RP_OK;
	}
	findings_sort(&own);
	if (own.list.count > 0 && own.list.items[0].severity == SEVERITY_ERROR) {
		k->standing = STANDING_REJECTED;
		k->reason = reason_of(r, candidate, &own.list.items[0]);
		/* A framework finds it by its name, whatever is in it. */
		if (candidate->step >= 0)
			k->step = candidate->step;
	}
	state_release(&state);
	coverage_release(&cover);
	findings_release(&own);
	return status;
}

/* Whether `later` logged other values than `earlier` at a step that both cover: another branch. */
static bool logs_differ(const struct contender *earlier, const struct contender *later)
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
	       !logs_differ(earlier, later);
}

/*
 * Of several launches of one experiment, each in a folder of its own, the newest that left
 * something usable is the one that a relaunch continues. Earlier ones are no predecessors: a launch
 * may have started anew.
 */
static void find_earlier(struct contender *k, const struct candidates *c)
{
	for (size_t i = 0; i < c->list.count; i++) {
		const char *word = k[i].profile ? k[i].profile->launch_folder : NULL;
		const char *mine = c->list.items[i].folder;
		size_t start, end, other_start, other_end;
		int64_t launch = word ? launch_in_path(mine, word, &start, &end) : -1;
		int64_t newest = launch;
		for (size_t j = 0;
			launch >= 0 && j < c->list.count && k[i].standing == STANDING_LIVE; j++) {
			const char *theirs = c->list.items[j].folder;
			int64_t other =
				k[j].profile == k[i].profile && k[j].standing != STANDING_REJECTED
					? launch_in_path(theirs, word, &other_start, &other_end)
					: -1;
			if (other <= newest || start != other_start ||
				strncmp(mine, theirs, start) != 0 ||
				strcmp(mine + end, theirs + other_end) != 0)
				continue;
			newest = other;
			k[i].by = j;
		}
		if (newest > launch)
			k[i].standing = STANDING_EARLIER;
	}
}

/* Branches: a checkpoint that was saved later with a lower number kills the higher ones. */
static void find_dead(struct contender *k, const struct candidates *c)
{
	for (size_t i = 0; i < c->list.count; i++) {
		for (size_t j = 0; j < c->list.count; j++) {
			if (k[i].standing != STANDING_LIVE || k[j].standing == STANDING_REJECTED ||
				k[j].standing == STANDING_EARLIER || k[j].order >= k[i].order)
				continue;
			/* j has the lower number. Does i continue it? */
			if (logs_agree(&k[j], &k[i]))
				continue;
			int64_t later = k[j].mtime_ns - k[i].mtime_ns;
			bool differ = logs_differ(&k[j], &k[i]);
			if (later > 0 && (differ || later > SAME_MOMENT_NS)) {
				k[i].standing = differ && later < 1000000000 ? STANDING_UNCLEAR
									     : STANDING_DEAD;
				k[i].by = j;
			} else if (differ && later > -1000000000) {
				k[i].standing = STANDING_UNCLEAR;
				k[i].by = j;
			}
		}
	}
}

/* The candidate that a pointer's text names: a path's last part, or a number that is its step. */
static size_t pointed_at(const struct candidates *c, const struct contender *k, const char *target)
{
	const char *slash = strrchr(target, '/');
	struct slice name = slice_of(slash && slash[1] ? slash + 1 : target);
	uint64_t step;
	bool number = text_parse_u64(name, INT64_MAX, &step);

	for (size_t i = 0; i < c->list.count; i++)
		if (!k[i].beside && (slice_is(name, c->list.items[i].name) ||
					    (number && k[i].step == (int64_t)step)))
			return i;
	return SIZE_MAX;
}

/* The pointer decides, if what it names is there and sound. */
static size_t follow_pointers(
	struct report *r, const struct subject *s, const struct contender *k, size_t newest)
{
	const struct candidates *c = &s->candidates;
	size_t chosen = SIZE_MAX;

	for (size_t i = 0; i < c->pointers.count; i++) {
		const struct pointer *p = &c->pointers.items[i];
		size_t at = pointed_at(c, k, p->target);
		const char *target = findings_escaped(&r->findings, slice_of(p->target));
		struct finding *f = NULL;
		if (at == SIZE_MAX) {
			f = finding_add(&r->findings, FINDING_I106,
				"the pointer %s names %s, which is not there", p->file, target);
		} else if (k[at].standing == STANDING_REJECTED) {
			f = finding_add(&r->findings, FINDING_I106,
				"the pointer %s names %s, which cannot be used: %s", p->file,
				target, k[at].reason);
		} else {
			if (newest != SIZE_MAX && k[at].order < k[newest].order) {
				f = finding_add(&r->findings, FINDING_I106,
					"the pointer %s names %s, older than %s", p->file, target,
					c->list.items[newest].name);
				f->severity = SEVERITY_INFO;
			}
			chosen = at;
		}
		if (f) {
			f->place.file =
				findings_text(&r->findings, "%s/%s", s->listing.root, p->file);
			f->observed = quantity_text(target);
		}
	}
	return chosen;
}

/* How a candidate is called among the others: by its path below the root where folders may repeat
 * names. */
static const char *called(struct report *r, const struct subject *s, size_t at)
{
	const struct candidate *c = &s->candidates.list.items[at];
	const char *below = c->path + strlen(s->listing.root);

	for (size_t i = 0; i < s->candidates.list.count; i++)
		if (strcmp(s->candidates.list.items[i].folder, c->folder) != 0)
			return report_text(r, "%s", *below == '/' ? below + 1 : below);
	return report_text(r, "%s", c->name);
}

/* Candidates by the step that is in them; a file that is called "last" has none in its name.
 * Insertion sort. */
static void order_by_step(const struct contender *k, size_t count, size_t *order)
{
	for (size_t i = 0; i < count; i++) {
		size_t at = i;
		for (; at > 0 && k[order[at - 1]].step > k[i].step; at--)
			order[at] = order[at - 1];
		order[at] = i;
	}
}

static void tell(struct report *r, const struct subject *s, const struct contender *k,
	const size_t *order, const struct choice *choice)
{
	static const char *const columns[] = {"standing", "name", "step", "reason"};
	struct report_table *t = report_add_table(r, "candidates", NULL, columns, 4);
	const struct candidates *c = &s->candidates;

	for (size_t n = c->list.count; n-- > 0;) {
		size_t i = order[n];
		const char *standing = "", *reason = NULL;
		enum cell_tone tone = TONE_PLAIN;
		switch (k[i].standing) {
		case STANDING_REJECTED:
			standing = "rejected";
			reason = k[i].reason;
			tone = TONE_BAD;
			break;
		case STANDING_DEAD:
			standing = "dead branch";
			reason = report_text(
				r, "%s was saved after it", c->list.items[k[i].by].name);
			tone = TONE_DIM;
			break;
		case STANDING_EARLIER:
			standing = "earlier launch";
			reason = report_text(r, "%s is newer; --against compares",
				c->list.items[k[i].by].folder);
			tone = TONE_DIM;
			break;
		case STANDING_UNCLEAR:
			standing = "unclear";
			reason = report_text(r,
				"another branch than %s; the files' times do not tell which is newer",
				c->list.items[k[i].by].name);
			tone = TONE_WARNING;
			break;
		case STANDING_LIVE:
			if (k[i].beside)
				standing = "snapshot";
			break;
		}
		if (i == choice->chosen) {
			standing = standing_chosen;
			tone = TONE_GOOD;
		} else if (i == choice->previous) {
			standing = "its predecessor";
		}
		const char *cells[] = {standing, called(r, s, i),
			k[i].step >= 0 ? report_text(r, "%lld", (long long)k[i].step) : NULL,
			reason};
		struct quantity values[4] = {{0}};
		if (k[i].step >= 0)
			values[2] = quantity_count(k[i].step);
		report_add_row_values(r, t, tone, cells, values);
	}
}

void choice_judged(struct report *r)
{
	bool sound = true;

	if (r->exit == 0)
		return;
	/* Those two speak of other checkpoints than the chosen one. */
	for (size_t i = 0; i < r->findings.list.count; i++) {
		const struct finding *f = &r->findings.list.items[i];
		if (f->code != FINDING_I106 && f->code != FINDING_I108 &&
			verdict_fails(f, report_failing(r)))
			sound = false;
	}
	if (sound && r->exit == 1)
		return;
	for (size_t t = 0; t < r->tables.count; t++) {
		struct report_table *table = &r->tables.items[t];
		for (size_t i = 0; i < table->rows.count; i++) {
			struct report_row *row = &table->rows.items[i];
			if (strcmp(table->name, "candidates") == 0 &&
				strcmp(row->cells[0], standing_chosen) == 0) {
				row->cells[0] = "judged";
				row->tone = TONE_BAD;
			}
		}
	}
}

/* Newer checkpoints than the chosen one that cannot be used. */
static void report_rejected(
	struct report *r, const struct subject *s, const struct contender *k, size_t chosen)
{
	const struct candidates *c = &s->candidates;
	size_t highest = SIZE_MAX;

	for (size_t i = 0; i < c->list.count; i++)
		if (!k[i].beside && (highest == SIZE_MAX || k[i].order > k[highest].order))
			highest = i;
	for (size_t i = 0; i < c->list.count; i++) {
		if (k[i].standing != STANDING_REJECTED || k[i].beside ||
			(chosen != SIZE_MAX && k[i].order <= k[chosen].order))
			continue;
		struct finding *f = finding_add(&r->findings, FINDING_I108,
			"%s is newer and cannot be used: %s", c->list.items[i].name, k[i].reason);
		f->place.file = findings_text(&r->findings, "%s", c->list.items[i].path);
		/* The Trainer resumes from the highest number, whatever is in it. */
		const struct profile *p = c->list.items[i].profile;
		if (i == highest && p && p->picks_highest && !c->list.items[i].leftover) {
			f->severity = SEVERITY_ERROR;
			f->cause = findings_text(&r->findings,
				"%s would resume from it, since it has the highest number",
				p->title);
		}
	}
}

/* No checkpoint can be named: the report says so, and nothing was judged. */
static void give_up(struct report *r, const char *evidence, const struct verify_options *o)
{
	conclude(r, &(struct verdict_case){.unreadable = evidence}, &(struct policy_subject){0}, o);
}

/* Whether two names are the same but for their numbers. */
static bool same_words(const char *a, const char *b)
{
	static const char digits[] = "0123456789";

	for (;;) {
		a += strspn(a, digits);
		b += strspn(b, digits);
		if (*a != *b)
			return false;
		if (!*a)
			return true;
		a++;
		b++;
	}
}

/*
 * Whether candidate `a` is at least as new as `b`. A file that no number names ("best.pt",
 * "final.pt") is a copy of weights where it has no optimizer, and so is one of another kind
 * ("weights_3.pt" beside "checkpoint_3.pt"): no resume begins there while another one is to be had.
 */
static bool is_newer(const struct candidate *c, const struct contender *a,
	const struct candidate *other, const struct contender *b)
{
	bool unnumbered = c->step < 0 && c->place < 0;

	if (a->resumable != b->resumable &&
		(unnumbered || a->order == b->order || !same_words(c->name, other->name)))
		return a->resumable;
	return a->order >= b->order;
}

/* Whether the steps start again with each epoch: one of a later epoch has the lower step. */
static bool counts_inside(const struct contender *k, size_t count)
{
	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; j < count; j++)
			if (k[i].standing == STANDING_LIVE && k[j].standing == STANDING_LIVE &&
				k[i].open && k[j].open && k[i].epoch > k[j].epoch &&
				k[i].step < k[j].step)
				return true;
	return false;
}

/*
 * Order them by steps where all have one; else by epochs, else by the places that their names give.
 * Where only some have a step, the others have no place.
 */
static void settle_order(struct contender *k, const struct candidates *c)
{
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
	if (steps && epochs && most < INT32_MAX && counts_inside(k, c->list.count))
		for (size_t i = 0; i < c->list.count; i++)
			k[i].order = k[i].epoch < INT32_MAX ? k[i].epoch * (most + 1) + k[i].step
							    : k[i].step;
}

static const char *pick(struct report *r, struct choice *choice, const struct subject *s,
	struct contender *k, const struct verify_options *o)
{
	const struct candidates *c = &s->candidates;
	size_t newest = SIZE_MAX;

	for (size_t i = 0; i < c->list.count; i++) {
		if (k[i].beside)
			continue;
		if (o->step >= 0 && k[i].step == o->step)
			choice->chosen = i;
		if (k[i].standing == STANDING_LIVE &&
			(newest == SIZE_MAX || is_newer(&c->list.items[i], &k[i],
						       &c->list.items[newest], &k[newest])))
			newest = i;
	}
	size_t pointed = follow_pointers(r, s, k, newest);
	if (o->step >= 0)
		return choice->chosen == SIZE_MAX
			       ? report_text(r, "no checkpoint of step %lld", (long long)o->step)
			       : NULL;
	choice->chosen = pointed != SIZE_MAX ? pointed : newest;
	if (pointed != SIZE_MAX)
		return NULL;
	for (size_t i = 0; i < c->list.count; i++) {
		if (k[i].beside)
			continue;
		if (k[i].standing == STANDING_UNCLEAR) {
			choice->chosen = SIZE_MAX;
			return report_text(r,
				"%s and %s are of different branches, and nothing tells which one the run is on",
				c->list.items[k[i].by].name, c->list.items[i].name);
		}
		/* Two of the same number, or in two folders, are two runs. */
		if (newest != SIZE_MAX && i != newest && k[i].standing == STANDING_LIVE &&
			(strcmp(c->list.items[i].folder, c->list.items[newest].folder) != 0 ||
				run_in_name(c->list.items[i].name) !=
					run_in_name(c->list.items[newest].name))) {
			choice->chosen = SIZE_MAX;
			return report_text(r,
				"checkpoints of several runs are below %s: name one of them, such as %s",
				s->listing.root, c->list.items[newest].path);
		}
	}
	return choice->chosen == SIZE_MAX ? "no checkpoint here can be used" : NULL;
}

/* The newest sound checkpoint before candidate `of` that is of its line, or SIZE_MAX. The
 * checkpoint itself rather than a snapshot of it: its elements can be read. */
static size_t predecessor(const struct contender *k, const struct candidates *c, size_t of)
{
	size_t best = SIZE_MAX;

	for (size_t i = 0; i < c->list.count && of != SIZE_MAX; i++)
		if (strcmp(c->list.items[i].folder, c->list.items[of].folder) == 0 &&
			run_in_name(c->list.items[i].name) == run_in_name(c->list.items[of].name) &&
			k[i].standing == STANDING_LIVE && k[i].order >= 0 &&
			k[i].order < k[of].order && (k[i].resumable || !k[of].resumable) &&
			!logs_differ(&k[i], &k[of]) &&
			(best == SIZE_MAX || k[i].order > k[best].order ||
				(k[i].order == k[best].order && (!k[i].beside || k[best].beside))))
			best = i;
	return best;
}

/* Only the newest pair of a line is held against each other; that the earlier ones were not is
 * said. */
static void cover_line(struct report *r, const struct contender *k, size_t count)
{
	uint64_t live = 0;

	for (size_t i = 0; i < count; i++)
		live += k[i].standing == STANDING_LIVE;
	if (live > 2)
		cover_ran(&r->coverage, "line", "checkpoints against their predecessors", "pairs",
			1, live - 1, "the newest pair; --step N judges another");
}

int choose_checkpoint(struct choice *choice, struct report *r, struct subject *s,
	const struct verify_options *o, struct error *e)
{
	struct candidates *c = &s->candidates;
	int status = RP_OK;

	*choice = (struct choice){.chosen = SIZE_MAX, .previous = SIZE_MAX, .older = SIZE_MAX};
	if (!c->root) {
		choice->chosen = 0;
		return RP_OK;
	}
	struct contender *k = calloc(c->list.count + 1, sizeof *k);
	size_t *order = calloc(c->list.count + 1, sizeof *order);
	if (!k || !order) {
		free(k);
		free(order);
		return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for %zu checkpoints",
			c->list.count);
	}
	for (size_t i = 0; i < c->list.count && status == RP_OK; i++)
		status =
			deadline_passed(o->limits.deadline)
				? fail(e, RP_E_LIMIT, ERROR_NO_OFFSET,
					  "time ran out (--max-seconds) when %zu of its %zu checkpoints had been looked at",
					  i, c->list.count)
				: look(&k[i], r, s, &c->list.items[i], o, e);
	if (status == RP_OK) {
		settle_order(k, c);
		find_earlier(k, c);
		find_dead(k, c);
		const char *none = pick(r, choice, s, k, o);
		choice->previous = predecessor(k, c, choice->chosen);
		choice->older = predecessor(k, c, choice->previous);
		report_rejected(r, s, k, choice->chosen);
		order_by_step(k, c->list.count, order);
		tell(r, s, k, order, choice);
		cover_line(r, k, c->list.count);
		if (none)
			give_up(r, none, o);
	}
	for (size_t i = 0; i < c->list.count; i++)
		free(k[i].log);
	free(order);
	free(k);
	return status;
}
