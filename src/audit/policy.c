/* SPDX-License-Identifier: MIT */
#include "audit/policy.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "audit/case.h"
#include "base/text.h"

#define POLICY_MEMORY ((size_t)16 << 20)
#define WORD_MAX 64u
#define WITH_MAX 1000 /* versions that a policy names */
#define HINT_MAX 200u

static const char *const names[] = {"quick", "full", "strict"};
enum { QUICK, FULL, STRICT, NAME_COUNT };

/* The built-in ones -----------------------------------------------------------------------------
 */

static const struct {
	bool named;
	enum policy_need full, strict;
} built_in[RULE_COUNT] = {
#define NEED(rule, full, strict) [RULE_##rule] = {true, NEED_##full, NEED_##strict},
#include "audit/policies.def"
#undef NEED
};

/* What reads bytes is not asked for where none are read; that it may not be by name is
 * check_required()'s. */
static void settle_bytes(struct policy *p)
{
	for (size_t i = 0; i < RULE_COUNT; i++)
		if (!p->bytes && (rules[i]->needs & NEEDS_BYTES) && p->needs[i] != NEED_NAMED)
			p->needs[i] = NEED_NONE;
}

static void start_from(struct policy *p, int base)
{
	p->bytes = base != QUICK;
	p->failing = base == STRICT ? SEVERITY_WARNING : SEVERITY_ERROR;
	for (size_t i = 0; i < RULE_COUNT; i++) {
		enum policy_need otherwise = base == STRICT ? NEED_RUN : NEED_NONE;
		p->needs[i] = !built_in[i].named ? otherwise
			      : base == STRICT   ? built_in[i].strict
						 : built_in[i].full;
	}
}

static int base_named(struct slice name)
{
	for (int i = 0; i < NAME_COUNT; i++)
		if (slice_is(name, names[i]))
			return i;
	return NAME_COUNT;
}

/* Files -----------------------------------------------------------------------------------------
 */

struct reading {
	struct policy *p;
	struct ini ini;
	int64_t today;
	unsigned required_on[RULE_COUNT], optional_on[RULE_COUNT]; /* lines; 0: not named */
	struct error *e;
};

static bool severity_of(struct slice word, enum severity *out)
{
	for (int s = SEVERITY_OK; s <= SEVERITY_ERROR; s++) {
		if (slice_is(word, severity_name((enum severity)s))) {
			*out = (enum severity)s;
			return true;
		}
	}
	return false;
}

static bool take_base(void *context, const struct ini_entry *entry)
{
	(void)context;
	(void)entry;
	return true; /* find_base() took it */
}

static bool take_fail(void *context, const struct ini_entry *entry)
{
	struct reading *r = context;

	if (!severity_of(entry->value, &r->p->failing) || r->p->failing == SEVERITY_OK)
		return ini_complain(r->e, entry, "fail wants info, warning or error, not '%.*s'",
			ini_shown(entry->value), entry->value.p);
	r->p->fail_said = true;
	return true;
}

static bool each_rule(struct reading *r, const struct ini_entry *entry,
	bool (*take)(struct reading *r, const struct ini_entry *entry, size_t rule))
{
	struct slice list = entry->value;

	for (struct slice word = ini_next_word(&list); word.n > 0; word = ini_next_word(&list)) {
		size_t found = RULE_COUNT;
		for (size_t i = 0; i < RULE_COUNT; i++)
			if (slice_is(word, rules[i]->name))
				found = i;
		if (found == RULE_COUNT) {
			const char *known[RULE_COUNT];
			for (size_t i = 0; i < RULE_COUNT; i++)
				known[i] = rules[i]->name;
			return ini_complain_unknown(r->e, entry, "rule", word, known, RULE_COUNT);
		}
		if (!take(r, entry, found))
			return false;
	}
	return true;
}

static bool require_rule(struct reading *r, const struct ini_entry *entry, size_t rule)
{
	if (r->optional_on[rule])
		return ini_complain(r->e, entry, "'%s' is optional on line %u", rules[rule]->name,
			r->optional_on[rule]);
	r->p->needs[rule] = NEED_NAMED;
	r->required_on[rule] = entry->line;
	return true;
}

static bool take_require(void *context, const struct ini_entry *entry)
{
	struct reading *r = context;

	return each_rule(r, entry, require_rule);
}

static bool release_rule(struct reading *r, const struct ini_entry *entry, size_t rule)
{
	if (r->required_on[rule])
		return ini_complain(r->e, entry, "'%s' is required on line %u", rules[rule]->name,
			r->required_on[rule]);
	r->p->needs[rule] = NEED_NONE;
	r->optional_on[rule] = entry->line;
	return true;
}

static bool take_optional(void *context, const struct ini_entry *entry)
{
	struct reading *r = context;

	return each_rule(r, entry, release_rule);
}

static bool take_bytes(void *context, const struct ini_entry *entry)
{
	struct reading *r = context;

	r->p->bytes = slice_is(entry->value, "yes");
	if (!r->p->bytes && !slice_is(entry->value, "no"))
		return ini_complain(r->e, entry, "bytes wants yes or no, not '%.*s'",
			ini_shown(entry->value), entry->value.p);
	return true;
}

/* The code that a key names, once in its section whatever its case. */
static bool code_of(struct reading *r, const struct ini_entry *entry, enum finding_code *code)
{
	char name[WORD_MAX];

	*code = FINDING_COUNT;
	if (entry->key.n < sizeof name) {
		memcpy(name, entry->key.p, entry->key.n);
		name[entry->key.n] = '\0';
		*code = finding_by_name(name);
	}
	if (*code == FINDING_COUNT) {
		const char *known[FINDING_COUNT];
		for (size_t i = 0; i < FINDING_COUNT; i++)
			known[i] = finding_rows[i].code;
		return ini_complain_unknown(
			r->e, entry, "finding", entry->key, known, FINDING_COUNT);
	}
	return true;
}

static bool take_severity(void *context, const struct ini_entry *entry)
{
	struct reading *r = context;
	enum finding_code code;
	struct policy_grade grade = {.set = true};

	if (!code_of(r, entry, &code))
		return false;
	if (r->p->grades[code].set)
		return ini_complain(
			r->e, entry, "%s is there twice in [severity]", finding_rows[code].code);
	if (!severity_of(entry->value, &grade.severity))
		return ini_complain(r->e, entry,
			"a severity is ok, info, warning or error, not '%.*s'",
			ini_shown(entry->value), entry->value.p);
	r->p->grades[code] = grade;
	return true;
}

static bool digits(const char *p, size_t n, unsigned *out)
{
	*out = 0;
	for (size_t i = 0; i < n; i++) {
		if (p[i] < '0' || p[i] > '9')
			return false;
		*out = *out * 10 + (unsigned)(p[i] - '0');
	}
	return true;
}

/* Days since 1970-01-01 in the Gregorian calendar, counted from March, so that February's end is a
 * year's. */
bool policy_parse_day(struct slice text, int64_t *day)
{
	static const unsigned char lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	unsigned y, m, d;

	if (text.n != 10 || text.p[4] != '-' || text.p[7] != '-' || !digits(text.p, 4, &y) ||
		!digits(text.p + 5, 2, &m) || !digits(text.p + 8, 2, &d) || y < 1970 || m < 1 ||
		m > 12 || d < 1)
		return false;
	bool leap = (y % 4 == 0 && y % 100 != 0) || y % 400 == 0;
	if (d > lengths[m - 1] + (unsigned)(m == 2 && leap))
		return false;
	int64_t year = (int64_t)y - (m <= 2), month = m <= 2 ? m + 9 : m - 3;
	*day = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + d - 1 -
	       719468;
	return true;
}

/* Whether the text speaks of a date, so that none is overlooked that is not written as it should
 * be. */
static bool speaks_of_until(struct slice s)
{
	size_t at = slice_find(s, SLICE("until "));

	return at != SIZE_MAX && memchr("0123456789", s.p[at + 6 < s.n ? at + 6 : at], 10);
}

/* "REASON" or "REASON; until 2027-01-31". */
static bool take_accept(void *context, const struct ini_entry *entry)
{
	struct reading *r = context;
	struct slice reason = entry->value, until = {0};
	enum finding_code code;
	int64_t day;

	if (!code_of(r, entry, &code))
		return false;
	struct policy_acceptance *a = &r->p->accepted[code];
	if (a->reason)
		return ini_complain(
			r->e, entry, "%s is there twice in [accept]", finding_rows[code].code);
	for (size_t i = reason.n; i-- > 0 && !until.p;) {
		struct slice after = slice_trim((struct slice){reason.p + i + 1, reason.n - i - 1});
		if (reason.p[i] != ';' ||
			(!slice_starts(after, SLICE("until ")) && !slice_is(after, "until")))
			continue;
		until = slice_trim((struct slice){after.p + 5, after.n - 5});
		reason = slice_trim((struct slice){reason.p, i});
	}
	if (until.p && !policy_parse_day(until, &day))
		return ini_complain(r->e, entry,
			"'until' wants a date such as 2027-01-31, not '%.*s'", ini_shown(until),
			until.p);
	if (reason.n == 0)
		return ini_complain(r->e, entry,
			"an acceptance wants a reason: %s = reason; until 2027-01-31",
			finding_rows[code].code);
	if (speaks_of_until(reason))
		return ini_complain(r->e, entry,
			"an expiry stands behind the reason and a semicolon: %s = reason; until 2027-01-31",
			finding_rows[code].code);
	a->reason = arena_strdup(&r->p->arena, reason);
	a->until = until.p ? arena_strdup(&r->p->arena, until) : NULL;
	a->expired = until.p && day < r->today;
	a->line = entry->line;
	if (!a->reason || (until.p && !a->until))
		fail(r->e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for the reasons of a policy");
	return r->e->status == RP_OK;
}

/* "103900000", or "100000000..110000000". */
static bool take_parameters(void *context, const struct ini_entry *entry)
{
	struct reading *r = context;

	if (!text_parse_range(entry->value, 1, &r->p->parameters_least, &r->p->parameters_most))
		return ini_complain(r->e, entry,
			"parameters wants a number, or a range such as 90000000..110000000, not '%.*s'",
			ini_shown(entry->value), entry->value.p);
	return r->p->expects_parameters = true;
}

static bool no_memory(struct reading *r)
{
	fail(r->e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for a policy");
	return false;
}

static bool take_env(void *context, const struct ini_entry *entry)
{
	struct reading *r = context;

	if (entry->value.n == 0)
		return ini_complain(r->e, entry, "env wants the prefix of a Python environment");
	r->p->env = arena_strdup(&r->p->arena, entry->value);
	return r->p->env || no_memory(r);
}

/* "accelerate=1.10.1 torch=2.6.0". */
static bool take_with(void *context, const struct ini_entry *entry)
{
	struct reading *r = context;
	struct slice list = entry->value;

	for (struct slice word = ini_next_word(&list); word.n > 0; word = ini_next_word(&list)) {
		struct environment one;
		environment_init(&one);
		bool sound = environment_tell(&one, word);
		environment_release(&one);
		if (!sound)
			return ini_complain(r->e, entry, "with wants NAME=VERSION, not '%.*s'",
				ini_shown(word), word.p);
		const char *other =
			environment_contradiction(r->p->with.items, r->p->with.count, word);
		if (other)
			return ini_complain(r->e, entry,
				"with says two versions: '%.60s' and '%.*s'", other,
				ini_shown(word), word.p);
		const char **slot = array_push(&r->p->with, WITH_MAX);
		if (!slot || !(*slot = arena_strdup(&r->p->arena, word)))
			return no_memory(r);
	}
	return true;
}

/* The one table of sections and keys; a key that is NULL stands for a finding's code. */
static const struct ini_key keys[] = {
	{"policy", "base", take_base},
	{"policy", "fail", take_fail},
	{"policy", "require", take_require},
	{"policy", "optional", take_optional},
	{"policy", "bytes", take_bytes},
	{"severity", NULL, take_severity},
	{"accept", NULL, take_accept},
	{"expect", "parameters", take_parameters},
	{"launch", "env", take_env},
	{"launch", "with", take_with},
};

/* What a file starts from is never guessed. */
static bool find_base(struct reading *r)
{
	for (size_t i = 0; i < r->ini.entries.count; i++) {
		const struct ini_entry *entry = &r->ini.entries.items[i];
		if (!slice_is(entry->section, "policy") || !slice_is(entry->key, "base"))
			continue;
		int base = base_named(entry->value);
		if (base == NAME_COUNT)
			return ini_complain_unknown(
				r->e, entry, "built-in policy", entry->value, names, NAME_COUNT);
		start_from(r->p, base);
		return true;
	}
	/* A key that was typed wrongly is the better answer. */
	start_from(r->p, 0);
	if (ini_take(&r->ini, keys, sizeof keys / sizeof *keys, r, r->e))
		fail(r->e, RP_E_ARGUMENT, ERROR_NO_OFFSET,
			"it does not say what it starts from: [policy] base = quick, full or strict");
	return false;
}

/* What must have been checked cannot be what is not read. */
static bool check_required(struct reading *r)
{
	for (size_t i = 0; i < RULE_COUNT; i++)
		if (r->required_on[i] && (rules[i]->needs & NEEDS_BYTES) && !r->p->bytes)
			return ini_complain(r->e, &(struct ini_entry){.line = r->required_on[i]},
				"'%s' is required and reads bytes, which the policy does not (bytes = yes)",
				rules[i]->name);
	return true;
}

static int read_file(struct policy *p, const char *path, int64_t today, struct error *e)
{
	struct reading r = {.p = p, .today = today, .e = e};
	int status = ini_read(&r.ini, path, e);

	if (status == RP_OK && find_base(&r)) {
		if (ini_take(&r.ini, keys, sizeof keys / sizeof *keys, &r, e))
			check_required(&r);
		settle_bytes(p);
	}
	ini_release(&r.ini);
	/* Nothing of a checkpoint is unreadable: the policy that was named cannot be used. */
	if (e->status != RP_OK && e->status != RP_E_MEMORY && e->status != RP_E_INTERNAL)
		e->status = RP_E_ARGUMENT;
	return e->status;
}

int policy_load(struct policy *p, const char *name_or_file, int64_t today, struct error *e)
{
	int base = base_named(slice_of(name_or_file));

	*p = (struct policy){0};
	arena_init(&p->arena, POLICY_MEMORY);
	p->name = arena_strdup(&p->arena, slice_of(name_or_file));
	if (!p->name)
		return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for a policy");
	if (base < NAME_COUNT) {
		start_from(p, base);
		settle_bytes(p);
		return RP_OK;
	}
	if (!strchr(name_or_file, '/') && access(name_or_file, F_OK) != 0) {
		struct strbuf hint;
		strbuf_init(&hint, HINT_MAX);
		text_add_nearest(&hint, slice_of(name_or_file), names, NAME_COUNT);
		fail(e, RP_E_ARGUMENT, ERROR_NO_OFFSET,
			"no file, and no built-in policy (quick, full, strict)%s",
			strbuf_text(&hint));
		strbuf_release(&hint);
		return e->status;
	}
	return read_file(p, name_or_file, today, e);
}

void policy_release(struct policy *p)
{
	array_release(&p->with);
	arena_release(&p->arena);
}

/* Applying
 * ----------------------------------------------------------------------------------------- */

/* A finding that time may heal is not accepted: the save may be going on. */
static void grade(const struct policy *p, struct findings *findings)
{
	for (size_t i = 0; i < findings->list.count; i++) {
		struct finding *f = &findings->list.items[i];
		const struct policy_acceptance *a = &p->accepted[f->code];
		if (p->grades[f->code].set)
			f->severity = p->grades[f->code].severity;
		if (!a->reason || a->expired || f->not_ready)
			continue;
		f->accepted =
			a->until ? findings_text(findings, "%s (until %s)", a->reason, a->until)
				 : findings_text(findings, "%s", a->reason);
	}
}

static void expect(const struct policy *p, struct verdict_case *v, struct state *s)
{
	if (s && expect_parameters(
			 v->findings, s, p->parameters_least, p->parameters_most, "policy"))
		return;
	if (!v->unreadable)
		v->unreadable = findings_text(v->findings,
			"required but not checked: %s parameters are expected, and their number is not known",
			count_text(v->findings, p->parameters_least));
}

/* How a rule is wanted of this checkpoint: what could not be asked for is no lack. */
static enum policy_need need_of(
	const struct policy *p, const struct policy_subject *subject, size_t rule)
{
	enum policy_need need = p->needs[rule];
	bool lacks_previous =
		(rules[rule]->needs & (NEEDS_PREVIOUS | NEEDS_RESUME)) && !subject->has_previous;
	bool of_samples = rules[rule]->needs & NEEDS_LEDGER;
	bool of_curves = rules[rule]->needs & NEEDS_CURVE;
	bool lacks_bytes = (rules[rule]->needs & NEEDS_BYTES) && (!p->bytes || subject->bytes_late);

	if (need == NEED_NAMED)
		return need;
	/* Of a log only what a log can show is asked for, and of a checkpoint the same. */
	if (of_samples != (subject->log && !subject->curves) || of_curves != subject->curves)
		return NEED_NONE;
	if (lacks_previous && subject->first)
		return NEED_NONE;
	return need == NEED_RUN && !lacks_previous && !lacks_bytes ? NEED_NONE : need;
}

void policy_apply(const struct policy *p, struct verdict_case *v,
	const struct policy_subject *subject, struct requirement *wanted)
{
	size_t count = 0;

	grade(p, v->findings);
	if (p->expects_parameters)
		expect(p, v, subject->state);
	for (size_t i = 0; i < RULE_COUNT; i++) {
		enum policy_need need = need_of(p, subject, i);
		if (need != NEED_NONE)
			wanted[count++] = (struct requirement){
				.rule = rules[i]->name, .some = need == NEED_SOME};
	}
	v->failing = subject->curves && !p->fail_said && p->failing == SEVERITY_ERROR
			     ? SEVERITY_WARNING
			     : p->failing;
	v->required = wanted;
	v->required_count = count;
}
