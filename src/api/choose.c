/* SPDX-License-Identifier: MIT */
#include "api/choose.h"

#include <string.h>

#include "api/conclude.h"
#include "api/contender.h"
#include "base/text.h"

static const char standing_chosen[] = "resume from", standing_previous[] = "its predecessor",
		  standing_instead[] = "use instead";

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

/* Whether names may repeat, since checkpoints lie in several folders. */
static bool several_folders(const struct candidates *c)
{
	for (size_t i = 1; i < c->list.count; i++)
		if (strcmp(c->list.items[i].folder, c->list.items[0].folder) != 0)
			return true;
	return false;
}

/* How a candidate is called among the others: by its path below the root where names may repeat. */
static const char *called(struct report *r, const struct subject *s, size_t at, bool several)
{
	const struct candidate *c = &s->candidates.list.items[at];
	const char *below = c->path + (c->kept ? 0 : strlen(s->listing.root));

	if (c->kept)
		return report_text(r, "%s", below);
	if (!several)
		return report_text(r, "%s", c->name);
	return report_text(r, "%s", *below == '/' ? below + 1 : below);
}

static void tell(struct report *r, const struct subject *s, const struct contender *k,
	const size_t *order, const struct choice *choice)
{
	static const char *const columns[] = {"standing", "name", "step", "reason"};
	struct report_table *t = report_add_table(r, "candidates", NULL, columns, 4);
	const struct candidates *c = &s->candidates;
	bool several = several_folders(c);

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
			reason = report_text(r, "%s was %s after it", c->list.items[k[i].by].name,
				k[i].beside && k[k[i].by].beside ? "judged" : "saved");
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
			standing = standing_previous;
			if (!k[i].beside)
				r->instead = called(r, s, i, several);
		}
		const char *cells[] = {standing, called(r, s, i, several),
			k[i].step >= 0 ? report_text(r, "%lld", (long long)k[i].step) : NULL,
			reason};
		struct quantity values[4] = {{0}};
		if (k[i].step >= 0)
			values[2] = quantity_count(k[i].step);
		report_add_row_values(r, t, tone, cells, values);
	}
}

/* What is not to be resumed from, and what is there in its place. */
static void rename_judged(const struct report *r, struct report_table *table)
{
	for (size_t i = 0; i < table->rows.count; i++) {
		struct report_row *row = &table->rows.items[i];
		if (strcmp(row->cells[0], standing_chosen) == 0) {
			row->cells[0] = "judged";
			row->tone = TONE_BAD;
		} else if (r->instead && strcmp(row->cells[0], standing_previous) == 0) {
			row->cells[0] = standing_instead;
			row->cells[3] = "the newest one before it that is whole, by its metadata";
			row->tone = TONE_GOOD;
		}
	}
}

void choice_judged(struct report *r)
{
	bool sound = true;

	/* Other faults are of the run, and its earlier checkpoints may have them too. */
	if (r->exit != EXIT_STATUS_FINDINGS ||
		(r->word != VERDICT_PARTIAL && r->word != VERDICT_CORRUPT))
		r->instead = NULL;
	if (r->exit == 0)
		return;
	/* Those two speak of other checkpoints than the chosen one. */
	for (size_t i = 0; i < r->findings.list.count; i++) {
		const struct finding *f = &r->findings.list.items[i];
		if (f->code != FINDING_I106 && f->code != FINDING_I108 &&
			verdict_fails(f, report_failing(r)))
			sound = false;
	}
	if (sound && r->exit == EXIT_STATUS_FINDINGS) {
		r->instead = NULL;
		return;
	}
	for (size_t t = 0; t < r->tables.count; t++)
		if (strcmp(r->tables.items[t].name, "candidates") == 0)
			rename_judged(r, &r->tables.items[t]);
}

/* Newer checkpoints than the chosen one that cannot be used. */
static void report_rejected(struct report *r, const struct subject *s, const struct contender *k,
	size_t chosen, const struct verify_options *o)
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
		struct finding *f = finding_add(&r->findings, FINDING_I108, "%s %s: %s",
			c->list.items[i].name,
			chosen == SIZE_MAX ? "cannot be used" : "is newer and cannot be used",
			k[i].reason);
		f->place.file = findings_text(&r->findings, "%s", c->list.items[i].path);
		/* The Trainer resumes from the highest number, whatever is in it. */
		const struct profile *p = c->list.items[i].profile;
		if (i == highest && p && p->picks_highest && !c->list.items[i].leftover) {
			f->severity = SEVERITY_ERROR;
			f->cause = findings_text(&r->findings,
				"%s would resume from it, since it has the highest number",
				p->title);
		}
		/* A relaunch would lose it for want of a moment's patience. */
		if (k[i].unfinished && o->step < 0)
			conclude_waiting(r, f, k[i].mtime_ns, o->settle);
	}
}

/* No checkpoint can be named: the report says so, and nothing was judged. */
static void give_up(
	struct report *r, const char *root, const char *evidence, const struct verify_options *o)
{
	report_add_input(r, root, "root", "");
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

static const char *pick(struct report *r, struct choice *choice, const struct subject *s,
	const struct contender *k, const struct verify_options *o)
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

/* Whether candidate `i` may be one that leads to `of`: sound, before it, and of its line. */
static bool leads_to(const struct contender *k, const struct candidates *c, size_t i, size_t of)
{
	return strcmp(c->list.items[i].folder, c->list.items[of].folder) == 0 &&
	       run_in_name(c->list.items[i].name) == run_in_name(c->list.items[of].name) &&
	       k[i].standing == STANDING_LIVE && k[i].order >= 0 && k[i].order < k[of].order &&
	       (k[i].resumable || !k[of].resumable) && !contender_logs_differ(&k[i], &k[of]);
}

/* The newest sound checkpoint before candidate `of` that is of its line, or SIZE_MAX. The
 * checkpoint itself rather than a snapshot of it: its elements can be read. `*at` is the place of
 * `of` among all by their order, and then that of what was found. */
static size_t predecessor(
	const struct contenders *all, const struct candidates *c, size_t of, size_t *at)
{
	const struct contender *k = all->items;
	size_t best = SIZE_MAX;

	for (size_t n = *at; n-- > 0;) {
		size_t i = all->by_order[n];
		if (best != SIZE_MAX && (k[i].order < k[best].order || !k[best].beside))
			break;
		if (!leads_to(k, c, i, of) || (best != SIZE_MAX && k[i].beside))
			continue;
		best = i;
		*at = n;
	}
	return best;
}

/* All that lead to the chosen one. */
static bool follow_back(
	struct choice *choice, const struct contenders *all, const struct candidates *c)
{
	size_t of = choice->chosen, at = 0;

	while (all->by_order[at] != of)
		at++;
	for (size_t n = 0; of != SIZE_MAX; n++) {
		struct trail_point *p = array_push(&choice->line, all->count);
		if (!p)
			return false;
		*p = all->items[of].point;
		of = predecessor(all, c, of, &at);
		if (n == 0)
			choice->previous = of;
		else if (n == 1)
			choice->older = of;
	}
	for (size_t i = 0, k = choice->line.count; i + 1 < k--; i++) {
		struct trail_point p = choice->line.items[i];
		choice->line.items[i] = choice->line.items[k];
		choice->line.items[k] = p;
	}
	return true;
}

void choice_release(struct choice *choice)
{
	array_release(&choice->line);
}

/* Whether a snapshot's own checkpoint is still there. */
static bool stands_for_none(const struct contender *k, const struct candidates *c, size_t of)
{
	for (size_t i = 0; i < c->list.count && k[of].beside; i++)
		if (!k[i].beside && k[i].standing == STANDING_LIVE && k[i].order == k[of].order &&
			strcmp(c->list.items[i].folder, c->list.items[of].folder) == 0)
			return true;
	return false;
}

/* Only the newest pair of a line is held against each other in full; that the earlier ones were not
 * is said. */
static void cover_line(struct report *r, const struct contender *k, const struct candidates *c)
{
	uint64_t live = 0;

	for (size_t i = 0; i < c->list.count; i++)
		live += k[i].standing == STANDING_LIVE && !stands_for_none(k, c, i);
	if (live > 2)
		cover_ran(&r->coverage, "line", "checkpoints against their predecessors", "pairs",
			1, live - 1,
			"the newest pair in full, earlier ones by their counters and schedule; --step N judges another");
}

int choose_checkpoint(struct choice *choice, struct report *r, struct subject *s,
	const struct verify_options *o, struct error *e)
{
	struct candidates *c = &s->candidates;

	*choice = (struct choice){.chosen = SIZE_MAX, .previous = SIZE_MAX, .older = SIZE_MAX};
	if (!c->root && c->list.count == 1) {
		choice->chosen = 0;
		return RP_OK;
	}
	struct contenders all;
	int status = contenders_find(&all, r, s, o, e);
	if (status == RP_OK) {
		const struct contender *k = all.items;
		const char *none = NULL;
		/* The one that was named, whatever its history says. */
		if (c->root)
			none = pick(r, choice, s, k, o);
		else
			choice->chosen = 0;
		if (choice->chosen != SIZE_MAX && !follow_back(choice, &all, c))
			status = fail(e, RP_E_MEMORY, ERROR_NO_OFFSET,
				"no memory for a line of %zu checkpoints", all.count);
		if (c->root) {
			report_rejected(r, s, k, choice->chosen, o);
			tell(r, s, k, all.by_step, choice);
			cover_line(r, k, c);
		}
		if (none)
			give_up(r, s->listing.root, none, o);
	}
	contenders_release(&all);
	return status;
}

int choice_of_step(const struct subject *s, const struct verify_options *o, struct error *e)
{
	int64_t step;

	if (o->step < 0 || s->candidates.root)
		return RP_OK;
	if (!state_int(&s->state, FACT_STEP, &step))
		step = s->chosen->step;
	if (step == o->step)
		return RP_OK;
	if (step < 0)
		return fail(e, RP_E_NOT_FOUND, ERROR_NO_OFFSET,
			"--step %lld: which step this checkpoint is of is not known",
			(long long)o->step);
	return fail(e, RP_E_NOT_FOUND, ERROR_NO_OFFSET,
		"--step %lld: this checkpoint is of step %lld", (long long)o->step,
		(long long)step);
}
