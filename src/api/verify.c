/* SPDX-License-Identifier: MIT */
#include "api/verify.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "api/choose.h"
#include "api/conclude.h"
#include "api/history.h"
#include "api/overview.h"
#include "api/run.h"
#include "api/subject.h"
#include "audit/case.h"
#include "base/text.h"

#define SETTLE_SECONDS 600u

struct verify_options verify_defaults(void)
{
	return (struct verify_options){.limits = limits_default(),
		.step = -1,
		.max_seconds = -1,
		.history_keep = HISTORY_KEEP,
		.settle = SETTLE_SECONDS};
}

/* A save that did not finish and is younger than the settle time may still be going on. */
static void mark_not_ready(struct report *r, const struct state *s, unsigned settle)
{
	if (r->findings.of_code[FINDING_I107] == 0)
		return;
	for (size_t i = 0; i < r->findings.list.count; i++) {
		struct finding *f = &r->findings.list.items[i];
		const char *cause = f->cause;
		if (f->code != FINDING_I107 && f->code != FINDING_I101 && f->code != FINDING_I102)
			continue;
		/* How old it is is said once. */
		if (conclude_waiting(r, f, s->mtime_ns, settle) && f->code != FINDING_I107)
			f->cause = cause;
	}
}

static const char *count_ranks(struct report *r, const struct state *s)
{
	int32_t last = NO_RANK;
	unsigned ranks = 0;

	for (size_t i = 0; i < s->streams.count; i++) {
		ranks += s->streams.items[i].rank != last || i == 0;
		last = s->streams.items[i].rank;
	}
	if (state_world(s) <= 1)
		return "";
	r->ranks = ranks;
	r->world = (unsigned)state_world(s);
	return report_text(r, ", %u of %u ranks", ranks, r->world);
}

static void take_evidence(struct report *r, struct audit_case *c, struct verdict_case *v)
{
	const struct state *s = c->current;
	uint64_t wanted = 0;

	for (size_t i = 0; i < s->files.count; i++)
		wanted += s->files.items[i].role != FILE_OTHER &&
			  s->files.items[i].role != FILE_LEFTOVER;
	v->inexact = c->inexact;
	if (c->original) {
		/* What was asked is whether it is a copy; what it lacks was lacking before. */
		v->inexact = NULL;
		v->consistent = report_text(r, "%s is what was saved: %llu of %zu tensors%s",
			checkpoint_name(s), (unsigned long long)c->copied,
			c->original->tensors.count,
			c->original->strong.count > 0 && s->strong.count > 0 ? " by SHA-256" : "");
	} else if (c->previous)
		v->consistent = report_text(r, "%s continues %s%s%s (%zu random stream%s%s)",
			checkpoint_name(s), checkpoint_name(c->previous),
			r->previous_from ? ", kept as " : "",
			r->previous_from ? r->previous_from : "", s->streams.count,
			s->streams.count == 1 ? "" : "s", count_ranks(r, s));
	else
		v->consistent = report_text(r,
			"%s is whole and agrees with itself (%llu file%s, %zu random stream%s%s)",
			checkpoint_name(s), (unsigned long long)wanted, wanted == 1 ? "" : "s",
			s->streams.count, s->streams.count == 1 ? "" : "s", count_ranks(r, s));
}

/* Look at the bytes of both states: what changed between them shows in values as well. */
static int look_at_bytes(struct subject *now, struct subject *before,
	const struct verify_options *o, struct byte_totals totals[2], struct audit_case *c,
	struct error *e)
{
	bool known;
	int status = subject_read_bytes(now, o->threads, o->limits.deadline, &totals[0], &known, e);

	c->bytes = known ? totals : NULL;
	c->no_bytes = known ? NULL : "the snapshot was taken without reading bytes (--quick)";
	if (status == RP_OK && before) {
		status = subject_read_bytes(
			before, o->threads, o->limits.deadline, &totals[1], &known, e);
		c->bytes_late = known && status == RP_OK && totals[1].late > 0;
	}
	c->bytes_late = c->bytes_late || (c->bytes && totals->late > 0);
	return status;
}

/* A version that was told: the command line goes before the policy. */
static int tell(struct environment *env, struct slice requirement, struct error *e)
{
	if (environment_tell(env, requirement))
		return RP_OK;
	return fail(e, RP_E_ARGUMENT, ERROR_NO_OFFSET, "'%.*s' is not NAME=VERSION",
		(int)text_whole_prefix(requirement, 60), requirement.p);
}

/* What will resume, from the options, the policy and the packages below a prefix. */
static int open_environment(
	struct environment *env, struct report *r, const struct verify_options *o, struct error *e)
{
	const char *prefix = o->env;
	int status = RP_OK;

	environment_init(env);
	for (size_t i = 0; i < o->with_count && status == RP_OK; i++) {
		const char *other = environment_contradiction(o->with, i, slice_of(o->with[i]));
		status = other ? fail(e, RP_E_ARGUMENT, ERROR_NO_OFFSET,
					 "%.100s and %.100s contradict each other", other,
					 o->with[i])
			       : tell(env, slice_of(o->with[i]), e);
	}
	for (size_t i = 0; o->policy && i < o->policy->with.count && status == RP_OK; i++)
		status = tell(env, slice_of(o->policy->with.items[i]), e);
	if (status != RP_OK)
		return status;
	if (!prefix && o->policy)
		prefix = o->policy->env;
	if (prefix) {
		status = environment_read(env, prefix, e);
		if (status != RP_OK)
			return fail_wrap(e, "the environment %s", prefix);
	} else if (o->env_default) {
		struct error ignored = ERROR_INIT;
		environment_read(env, o->env_default, &ignored);
	}
	if (env->prefix)
		report_add_input(r, env->prefix, "environment", "python");
	return RP_OK;
}

/* What is judged, and what with. */
struct judging {
	struct subject *now;
	struct subject before, older; /* where there are such */
	bool has_before, has_older;
	struct subject original;     /* what it should be a copy of, where that was asked for */
	const char *no_before;       /* why there is none, for coverage */
	const struct choice *choice; /* with all that lead to this one */
	struct trail_point pair[2];  /* that one and this one, where the user names it */
	struct run_in_use run;
	struct findings own;          /* that were recorded as it was read */
	struct byte_totals totals[2]; /* of this one and the one before */
	bool known;                   /* those of this one hold */
	bool whole;                   /* it was read, and all of it that was to be */
};

/* The counters of all that lead to this one; of it and the one that the user names. */
static struct trail trail_of(struct judging *j, const struct verify_options *o)
{
	if (!o->against)
		return (struct trail){j->choice->line.items, j->choice->line.count};
	if (!j->has_before)
		return (struct trail){0};
	j->pair[0] = trail_point_of(&j->before.state, checkpoint_name(&j->before.state));
	j->pair[1] = trail_point_of(&j->now->state, checkpoint_name(&j->now->state));
	return (struct trail){j->pair, 2};
}

/* Judge a state that has been read, against an earlier one where there is one. */
static int judge(
	struct report *r, struct judging *j, const struct verify_options *o, struct error *e)
{
	struct subject *now = j->now, *before = j->has_before ? &j->before : NULL,
		       *older = j->has_older ? &j->older : NULL;
	const struct state *original = o->snapshot ? &j->original.state : NULL;
	struct environment environment;
	struct audit_case c = {
		.current = &now->state,
		.previous = before ? &before->state : NULL,
		.no_previous = j->no_before,
		.older = older ? &older->state : NULL,
		.trail = trail_of(j, o),
		.original = original,
		.current_place = subject_place(now),
		.run = run_file_of(&j->run),
		.limits = &o->limits,
		.environment = &environment,
	};
	if (before)
		c.previous_place = subject_place(before);
	struct rng_search search;
	int status = open_environment(&environment, r, o, e);

	c.current_place.deadline = c.previous_place.deadline = o->limits.deadline;
	rng_search_init(&search, o->limits.rng_search);
	search.deadline = o->limits.deadline;
	if (before && status == RP_OK)
		status = streams_relate(&c.streams, &before->state, &now->state, &search, e);
	if (older && status == RP_OK)
		status =
			streams_relate(&c.older_streams, &older->state, &before->state, &search, e);
	c.search_late = search.late;
	now->state.wants_strong = original && original->strong.count > 0;
	if (status == RP_OK && !o->quick)
		status = look_at_bytes(now, before, o, j->totals, &c, e);
	if (status == RP_OK && original)
		status = subject_digest_files(now, e);
	if (status == RP_OK) {
		audit_run(&c, &r->findings, &r->coverage);
		if (now->state.snapshot)
			cover_not_checked(&r->coverage, "files", "the checkpoint's files",
				"a snapshot was judged: what became of them since it was taken is not seen");
		mark_not_ready(r, &now->state, o->settle);
		struct verdict_case v = {.unreadable = subject_unreadable(r, &now->state, c.bytes)};
		j->known = c.bytes != NULL;
		j->whole = !v.unreadable;
		if (!v.unreadable && before)
			v.unreadable = subject_unreadable(
				r, &before->state, c.bytes ? &j->totals[1] : NULL);
		if (!v.unreadable && older)
			v.unreadable = subject_unreadable(r, &older->state, NULL);
		if (!v.unreadable)
			v.unreadable = c.unread ? c.unread : c.undecided;
		if (!v.unreadable && original && !c.compared)
			v.unreadable = "not all tensors could be held against the snapshot";
		take_evidence(r, &c, &v);
		conclude(r, &v,
			&(struct policy_subject){.state = &now->state,
				.has_previous = before != NULL,
				.bytes_late = c.bytes_late,
				.first = !before && now->candidates.root},
			o);
		r->summary = overview_line(r, &now->state);
	}
	stream_pairs_release(&c.streams);
	stream_pairs_release(&c.older_streams);
	rng_search_release(&search);
	environment_release(&environment);
	return status;
}

/* Read the candidate of that path, in a list that was made anew. */
static int read_again(struct subject *s, const char *path, const struct limits *limits,
	struct findings *sink, struct error *e)
{
	for (size_t i = 0; i < s->candidates.list.count; i++)
		if (strcmp(s->candidates.list.items[i].path, path) == 0)
			return subject_read(s, &s->candidates.list.items[i], limits, sink, e);
	return fail(e, RP_E_CHANGED, ERROR_NO_OFFSET, "%s is no longer there", path);
}

/* An earlier checkpoint: one that the user named, or candidate `at` of the root. Its own defects
 * are its own. */
static int open_earlier(struct report *r, struct subject *s, const char *named,
	const struct subject *now, size_t at, const struct verify_options *o, struct error *e)
{
	struct findings own;
	int status;

	findings_init(&own);
	if (named) {
		status = subject_open_one(s, named, &o->limits, &own, e);
		if (status < 0)
			fail_wrap(e, "--against %s", named);
	} else {
		status = subject_open(s, now->listing.root, &o->limits, e);
		if (status == RP_OK)
			status = history_add(s, r, o, e);
		if (status == RP_OK)
			status = read_again(
				s, now->candidates.list.items[at].path, &o->limits, &own, e);
	}
	findings_release(&own);
	return status;
}

/*
 * A checkpoint of which no file could be read. Where that is a defect of the files, the findings
 * are the answer; where we could not look, the error is.
 */
static int judge_unreadable(struct report *r, const struct candidate *c,
	const struct verify_options *o, struct error *e)
{
	bool defect = false;

	for (size_t i = 0; i < r->findings.list.count; i++)
		defect = defect || verdict_fails(&r->findings.list.items[i], SEVERITY_OK);
	if (!defect)
		return e->status;
	cover_not_checked(&r->coverage, "contents", "all that is in the checkpoint", "%s",
		e->status == RP_E_LIMIT && deadline_passed(o->limits.deadline)
			? case_late
			: "no file of it could be read");
	report_add_input(r, c->path, "checkpoint", c->profile ? c->profile->name : "");
	conclude(r, &(struct verdict_case){.unreadable = report_text(r, "%s", e->text)},
		&(struct policy_subject){0}, o);
	*e = ERROR_INIT;
	return RP_OK;
}

/* Whether two subjects are one checkpoint by two names. */
static bool same_file(const struct subject *a, const struct subject *b)
{
	const struct listed *x = &a->listing.files.items[a->chosen->files[0]];
	const struct listed *y = &b->listing.files.items[b->chosen->files[0]];

	return x->inode == y->inode && x->mtime_ns == y->mtime_ns && x->size == y->size &&
	       strcmp(x->name, y->name) == 0;
}

/* The original, or its snapshot. Its own defects are its own. */
static int open_original(
	struct report *r, struct subject *s, const struct verify_options *o, struct error *e)
{
	struct findings own;
	struct byte_totals ignored;
	bool known;

	if (o->quick)
		return fail(e, RP_E_ARGUMENT, ERROR_NO_OFFSET,
			"--snapshot and metadata only contradict each other: a copy is told by its bytes");
	findings_init(&own);
	int status = subject_open_one(s, o->snapshot, &o->limits, &own, e);
	findings_release(&own);
	if (status == RP_OK)
		status = subject_read_bytes(s, o->threads, o->limits.deadline, &ignored, &known, e);
	if (status == RP_OK)
		status = subject_digest_files(s, e);
	if (status < 0)
		return fail_wrap(e, "--snapshot %s", o->snapshot);
	overview_input(r, &s->state, "original");
	return RP_OK;
}

/*
 * Why an earlier checkpoint that could not be read is done without, or NULL: the time is over, or
 * another gate that keeps the same history has dropped it since it was listed.
 */
static const char *done_without(
	const struct judging *j, size_t at, int status, const struct verify_options *o)
{
	if (status == RP_E_LIMIT && deadline_passed(o->limits.deadline))
		return "time ran out (--max-seconds) before the earlier checkpoint was read";
	if ((status == RP_E_CHANGED || status == RP_E_NOT_FOUND) && at != SIZE_MAX &&
		j->now->candidates.list.items[at].kept)
		return "the history dropped the earlier checkpoint before it was read";
	return NULL;
}

static int open_if_there(struct report *r, struct judging *j, struct subject *s, bool *has,
	size_t at, const struct verify_options *o, struct error *e)
{
	int status = open_earlier(r, s, at == SIZE_MAX ? o->against : NULL, j->now, at, o, e);

	const char *reason = done_without(j, at, status, o);

	*has = !reason;
	if (!reason)
		return status;
	subject_close(s);
	*e = ERROR_INIT;
	j->no_before = reason;
	return RP_OK;
}

/* Open what it is compared with, and tell all of them what the run file says. */
static int open_others(struct report *r, struct judging *j, const struct choice *choice,
	const struct verify_options *o, struct error *e)
{
	int status = run_open(&j->run, r, o->run, j->now, e);

	if (status == RP_OK && (o->against || choice->previous != SIZE_MAX))
		status = open_if_there(r, j, &j->before, &j->has_before,
			o->against ? SIZE_MAX : choice->previous, o, e);
	if (status == RP_OK && j->has_before && !o->against && choice->older != SIZE_MAX)
		status = open_if_there(r, j, &j->older, &j->has_older, choice->older, o, e);
	if (status == RP_OK && o->against && j->has_before && same_file(j->now, &j->before))
		status = fail(e, RP_E_ARGUMENT, ERROR_NO_OFFSET,
			"--against %s is the checkpoint itself", o->against);
	if (status < 0)
		return status;
	run_tell(&j->run, j->now);
	if (j->has_before)
		run_tell(&j->run, &j->before);
	if (j->has_older)
		run_tell(&j->run, &j->older);
	return RP_OK;
}

/* Why there is no earlier checkpoint, where there is none. */
static const char *no_earlier(const struct subject *now, const struct verify_options *o)
{
	if (o->history)
		return now->candidates.root
			       ? "neither the root nor its history holds an earlier checkpoint of this line"
			       : "its history holds no earlier checkpoint";
	return now->candidates.root ? "the root holds no earlier checkpoint of this line"
				    : "no earlier checkpoint was given (--against)";
}

static int judge_choice(struct report *r, struct judging *j, const struct choice *choice,
	const struct verify_options *o, struct error *e)
{
	struct subject *now = j->now;
	int status = subject_read(
		now, &now->candidates.list.items[choice->chosen], &o->limits, &j->own, e);

	findings_append(&r->findings, &j->own);
	if (status < 0)
		return judge_unreadable(r, now->chosen, o, e);
	status = choice_of_step(now, o, e);
	if (status < 0)
		return status;
	overview_input(r, &now->state, now->state.snapshot ? "snapshot" : "checkpoint");
	j->no_before = no_earlier(now, o);
	status = open_others(r, j, choice, o, e);
	if (status == RP_OK && j->has_before) {
		overview_input(r, &j->before.state, "against");
		r->previous_from = j->before.state.snapshot
					   ? report_text(r, "%s", j->before.state.snapshot)
					   : NULL;
	}
	if (status == RP_OK && o->snapshot)
		status = open_original(r, &j->original, o, e);
	if (status == RP_OK)
		status = judge(r, j, o, e);
	return status;
}

/* A checkpoint whose files are damaged or not all there stands for nothing. */
static bool worth_keeping(const struct report *r, const struct judging *j)
{
	return j->whole && r->exit != EXIT_STATUS_NOT_READY && r->exit != EXIT_STATUS_FAILED &&
	       (r->exit != EXIT_STATUS_FINDINGS ||
		       (r->word != VERDICT_UNSAFE && r->word != VERDICT_CORRUPT &&
			       r->word != VERDICT_PARTIAL));
}

static int verify_in_time(
	struct report *r, const char *path, const struct verify_options *o, struct error *e)
{
	struct subject now;
	struct choice choice = {.chosen = SIZE_MAX};
	struct judging j = {.now = &now,
		.choice = &choice,
		.before = SUBJECT_INIT,
		.older = SUBJECT_INIT,
		.original = SUBJECT_INIT};
	int status = subject_open(&now, path, &o->limits, e);

	findings_init(&j.own);
	if (status == RP_OK)
		status = history_add(&now, r, o, e);
	if (status == RP_OK)
		status = choose_checkpoint(&choice, r, &now, o, e);
	if (status == RP_OK && choice.chosen != SIZE_MAX)
		status = judge_choice(r, &j, &choice, o, e);
	report_finish(r);
	choice_judged(r);
	if (status == RP_OK && choice.chosen != SIZE_MAX)
		history_store(r, &now,
			&(struct history_entry){.whole = worth_keeping(r, &j),
				.own = &j.own,
				.bytes = j.known ? &j.totals[0] : NULL},
			o);
	subject_close(&j.before);
	subject_close(&j.older);
	subject_close(&j.original);
	run_release(&j.run);
	findings_release(&j.own);
	choice_release(&choice);
	subject_close(&now);
	return status;
}

int verify_path(struct report *r, const char *path, const struct verify_options *o, struct error *e)
{
	struct verify_options timed = *o;
	struct deadline deadline = {0};

	if (o->max_seconds >= 0) {
		deadline_set(&deadline, (uint64_t)o->max_seconds * 1000);
		timed.limits.deadline = &deadline;
	}
	return verify_in_time(r, path, &timed, e);
}
