/* SPDX-License-Identifier: MIT */
/* What the frameworks' known defects do to this checkpoint, and to a resume from it. */
#include <stdlib.h>

#include "audit/case.h"
#include "audit/defects.h"
#include "base/text.h"

#define TEXT_MAX 2000u

/* Who will read or wrote: the two sides of a requirement. */
enum side {
	SIDE_SAVED,
	SIDE_RESUMED,
};

/* A row whose condition is met and whose versions are not known. */
struct undecided {
	const struct defect *row;
	struct evidence seen;
	const char *missing; /* whose versions would decide */
};

struct deciding {
	struct audit_case *c;
	struct findings *sink;
	struct strbuf decided; /* "accelerate 1.10.1 (--with)": what is known, of the row at hand */
	struct strbuf missing; /* "accelerate": what is not, of the row at hand */
	struct strbuf unknown; /* the same of all rows */
	ARRAY(struct undecided) open;
	uint64_t rows;
};

/* The version that the checkpoint itself says wrote it, where that is this package's. */
static bool saved_version(const struct state *s, struct slice package, struct version *out)
{
	const char *text = state_fact_text(s, FACT_FRAMEWORK_VERSION);

	return s->profile->package && slice_is(package, s->profile->package) && text &&
	       version_parse(slice_of(text), out);
}

static void add_once(struct strbuf *b, struct slice word)
{
	if (slice_find(strbuf_slice(b), word) != SIZE_MAX)
		return;
	if (b->n > 0)
		strbuf_add_text(b, ", ");
	strbuf_add_slice(b, word);
}

/*
 * The version of a package on one side, and in words how it is known. Where nobody said what will
 * resume, what wrote the checkpoint is taken to.
 */
static const struct version *side_version(
	struct deciding *d, enum side side, struct slice package, struct version *room)
{
	const struct package *p;
	const struct state *s = d->c->current;

	if (side == SIDE_RESUMED) {
		enum package_known known = environment_find(d->c->environment, package, &p);
		if (known == PACKAGE_AMBIGUOUS)
			return NULL;
		if (known == PACKAGE_KNOWN) {
			add_once(&d->decided, slice_of(findings_text(d->sink, "%s %s (%s)", p->name,
						      findings_escaped(d->sink, slice_of(p->text)),
						      p->told ? "--with" : "installed")));
			return &p->version;
		}
	}
	if (!saved_version(s, package, room))
		return NULL;
	add_once(&d->decided,
		slice_of(findings_text(d->sink, "%.*s %s (%s)", (int)package.n, package.p,
			findings_escaped(
				d->sink, slice_of(state_fact_text(s, FACT_FRAMEWORK_VERSION))),
			side == SIDE_SAVED ? "saved it" : "saved it; taken to resume")));
	return room;
}

/* All clauses of one side together. Packages whose version is missing are noted. */
static enum truth side_holds(struct deciding *d, enum side side, const char *requirement)
{
	struct slice rest = slice_of(requirement);
	struct clause clause;
	enum truth all = TRUTH_YES;

	while (requirement_next(&rest, &clause) > 0) {
		struct version room;
		const struct version *v = side_version(d, side, clause.package, &room);
		enum truth one = clause_holds(&clause, v);
		if (one == TRUTH_NO)
			return TRUTH_NO;
		if (one == TRUTH_YES)
			continue;
		add_once(&d->missing, clause.package);
		all = TRUTH_UNKNOWN;
	}
	return all;
}

static enum truth versions_hold(struct deciding *d, const struct defect *row)
{
	strbuf_clear(&d->decided);
	strbuf_clear(&d->missing);
	enum truth saved = side_holds(d, SIDE_SAVED, row->saved);
	enum truth resumed = side_holds(d, SIDE_RESUMED, row->resumed);

	if (saved == TRUTH_NO || resumed == TRUTH_NO)
		return TRUTH_NO;
	return saved == TRUTH_YES && resumed == TRUTH_YES ? TRUTH_YES : TRUTH_UNKNOWN;
}

/* "accelerate>=1.7,<1.15; transformers<5", of both sides. */
static const char *range_text(struct findings *sink, const struct defect *row)
{
	bool both = *row->saved && *row->resumed;

	return findings_text(sink, "%s%s%s%s", row->saved, *row->saved ? " when saving" : "",
		both ? "; " : "", row->resumed);
}

static struct finding *defect_finding(struct deciding *d, const struct defect *row,
	const struct evidence *seen, enum severity severity, const char *message)
{
	struct finding *f = finding_add(d->sink, row->code, "%s", message);

	f->severity = severity;
	f->place.step_first = f->place.step_last = case_step(d->c);
	if (seen->fact)
		place_fact(d->sink, f, d->c->current, seen->fact);
	else
		place_file(d->sink, f, d->c->current, NO_FILE);
	f->meaning = seen->meaning;
	f->remedy = row->remedy;
	return f;
}

static void affected(struct deciding *d, const struct defect *row, const struct evidence *seen)
{
	struct finding *f = defect_finding(d, row, seen, row->affected, row->message);

	const char *range = range_text(d->sink, row);
	f->cause = findings_text(d->sink, "known defect %s%s%s%s: %s (%s)", row->id,
		*range ? " (" : "", range, *range ? ")" : "", row->effect, row->source);
	f->observed = seen->observed;
	f->expected = seen->expected;
	f->unit = seen->unit;
	if (f->observed.kind == QUANTITY_NONE && d->decided.n > 0)
		f->observed = quantity_text(findings_text(d->sink, "%s", strbuf_text(&d->decided)));
}

/* Undecided rows of one code are one question: which version? The first stands for all. */
static void ask_for_version(struct deciding *d, size_t first)
{
	const struct undecided *u = &d->open.items[first];
	enum severity severity = SEVERITY_OK;
	const char *ranges = "";

	for (size_t i = 0; i < d->open.count; i++) {
		const struct defect *row = d->open.items[i].row;
		if (row->code != u->row->code)
			continue;
		if (i < first)
			return;
		if (severity < row->unsure)
			severity = row->unsure;
		ranges = findings_text(d->sink, "%s%s%s (%s)", ranges, *ranges ? ", or " : "",
			range_text(d->sink, row), row->source);
	}
	if (severity == SEVERITY_OK)
		return;
	struct finding *f = defect_finding(d, u->row, &u->seen, severity,
		findings_text(
			d->sink, "%s, if the version is one with a known defect", u->row->message));
	f->cause = findings_text(d->sink, "so it is with %s", ranges);
	if (!f->meaning)
		f->meaning = u->row->effect;
	f->observed =
		quantity_text(findings_text(d->sink, "%s of a version not known", u->missing));
	f->remedy = findings_text(d->sink,
		"Name what will resume: --with %.*s=VERSION, or --env PREFIX for all that is installed there.",
		(int)strcspn(u->missing, ","), u->missing);
}

/* Another rule found it; the table knows why it is so. */
static void explain(struct deciding *d, const struct defect *row)
{
	for (size_t i = 0; i < d->sink->list.count; i++) {
		struct finding *f = &d->sink->list.items[i];
		if (f->code != row->code ||
			(f->cause &&
				slice_find(slice_of(f->cause), SLICE("known defect")) != SIZE_MAX))
			continue;
		f->cause = findings_text(d->sink, "%s%sknown defect %s: %s (%s)",
			f->cause ? f->cause : "", f->cause ? "; " : "", row->id, row->effect,
			row->source);
	}
}

static void note_undecided(
	struct deciding *d, const struct defect *row, const struct evidence *seen)
{
	struct undecided *u = array_push(&d->open, defect_count);

	if (!u) {
		d->sink->lost++;
		return;
	}
	*u = (struct undecided){row, *seen, findings_text(d->sink, "%s", strbuf_text(&d->missing))};
	add_once(&d->unknown, strbuf_slice(&d->missing));
}

static void decide(struct deciding *d, const struct defect *row)
{
	struct evidence seen = {0};

	d->rows++;
	if (row->kind == DEFECT_EXPLAINS) {
		if (d->sink->of_code[row->code] > 0 && versions_hold(d, row) == TRUTH_YES)
			explain(d, row);
		return;
	}
	if (!row->condition(d->c, d->sink, &seen))
		return;
	enum truth holds = versions_hold(d, row);
	/* Where a version would not change the severity, what was seen leaves no doubt. */
	if (holds == TRUTH_YES || (holds == TRUTH_UNKNOWN && row->unsure == row->affected))
		affected(d, row, &seen);
	else if (holds == TRUTH_UNKNOWN)
		note_undecided(d, row, &seen);
}

static bool concerns(const struct defect *row, const struct state *s)
{
	return row->kind != DEFECT_UNSEEN &&
	       (*row->profile == '\0' || strcmp(row->profile, s->profile->name) == 0);
}

static void run_defects(struct audit_case *c, struct findings *sink, struct coverage *cover)
{
	struct deciding d = {.c = c, .sink = sink};

	strbuf_init(&d.decided, TEXT_MAX);
	strbuf_init(&d.missing, TEXT_MAX);
	strbuf_init(&d.unknown, TEXT_MAX);
	for (size_t i = 0; i < defect_count; i++)
		if (concerns(&defects[i], c->current))
			decide(&d, &defects[i]);
	for (size_t i = 0; i < d.open.count; i++)
		ask_for_version(&d, i);
	cover_ran(cover, "known-defects", "known defects of the frameworks", "defects",
		d.rows - d.open.count, d.rows,
		d.open.count > 0
			? findings_text(sink, "the version of %s is not known (--with, --env)",
				  strbuf_text(&d.unknown))
			: NULL);
	sink->lost += d.decided.failed || d.missing.failed || d.unknown.failed;
	strbuf_release(&d.decided);
	strbuf_release(&d.missing);
	strbuf_release(&d.unknown);
	array_release(&d.open);
}

const struct rule rule_known_defects = {
	.name = "known-defects",
	.subject = "known defects of the frameworks",
	.run = run_defects,
};
