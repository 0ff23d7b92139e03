/* SPDX-License-Identifier: MIT */
#include "audit/verdict.h"

#include <string.h>

bool verdict_fails(const struct finding *f, enum severity failing)
{
	if (failing == SEVERITY_OK)
		failing = SEVERITY_ERROR;
	return f->severity >= failing && !f->not_ready && !f->accepted;
}

/*
 * The word that a failing finding stands for. A policy may let a finding fail that never chooses a
 * word by itself; then the outcome is that something is not as it should be, and no more.
 */
static enum verdict_word word_of(const struct finding *f)
{
	return f->word < VERDICT_UNKNOWN ? f->word : VERDICT_INEXACT;
}

static const struct finding *deciding_finding(const struct verdict_case *c)
{
	const struct finding *best = NULL;

	for (size_t i = 0; i < c->findings->list.count; i++) {
		const struct finding *f = &c->findings->list.items[i];
		if (!verdict_fails(f, c->failing))
			continue;
		if (!best || word_of(f) < word_of(best) ||
			(word_of(f) == word_of(best) && finding_compare(f, best) < 0))
			best = f;
	}
	return best;
}

static const struct finding *not_ready_finding(const struct findings *findings)
{
	const struct finding *best = NULL;

	for (size_t i = 0; i < findings->list.count; i++) {
		const struct finding *f = &findings->list.items[i];
		if (f->not_ready && (!best || finding_compare(f, best) < 0))
			best = f;
	}
	return best;
}

/* What was required and did not run as required, the first in the order of the requirements; or
 * NULL.
 */
static const char *missing_text(const struct verdict_case *c)
{
	for (size_t i = 0; i < c->required_count; i++) {
		bool seen = false;
		for (size_t j = 0; j < c->coverage->list.count; j++) {
			const struct cover *cover = &c->coverage->list.items[j];
			if (strcmp(cover->rule, c->required[i].rule) != 0)
				continue;
			seen = true;
			if (cover->status == COVER_RAN ||
				(cover->status == COVER_PARTLY && c->required[i].some))
				continue;
			return findings_text(c->findings, "required but %s: %s (%s: %s)",
				cover->status == COVER_PARTLY ? "only partly checked"
							      : "not checked",
				cover->subject, cover->rule,
				cover->reason ? cover->reason : "incomplete");
		}
		if (!seen)
			return findings_text(
				c->findings, "required but not checked: %s", c->required[i].rule);
	}
	return NULL;
}

static struct verdict sound(const struct verdict_case *c)
{
	if (c->inexact)
		return (struct verdict){.word = VERDICT_INEXACT, .evidence = c->inexact};
	if (c->reshuffled)
		return (struct verdict){.word = VERDICT_RESHUFFLED, .evidence = c->reshuffled};
	if (c->exact)
		return (struct verdict){.word = VERDICT_EXACT, .evidence = c->exact};
	return (struct verdict){
		.word = VERDICT_CONSISTENT,
		.evidence =
			c->consistent ? c->consistent : "everything that could be checked agrees",
	};
}

struct verdict verdict_of(const struct verdict_case *c)
{
	struct verdict v;

	findings_sort(c->findings); /* the last one added counts too */
	const struct finding *f = deciding_finding(c);
	if (f) {
		v = (struct verdict){.word = word_of(f),
			.evidence = f->message,
			.deciding = f,
			.exit = EXIT_STATUS_FINDINGS};
	} else if ((f = not_ready_finding(c->findings))) {
		v = (struct verdict){.word = VERDICT_PARTIAL,
			.evidence = f->message,
			.deciding = f,
			.exit = EXIT_STATUS_NOT_READY};
	} else if (c->unreadable) {
		v = (struct verdict){.word = VERDICT_UNKNOWN,
			.evidence = c->unreadable,
			.exit = EXIT_STATUS_UNDECIDED};
	} else {
		const char *missing = missing_text(c);

		v = missing ? (struct verdict){.word = VERDICT_UNKNOWN,
				      .evidence = missing,
				      .exit = EXIT_STATUS_UNDECIDED}
			    : sound(c);
	}
	/* Where findings or coverage could not be kept, nothing but a proven fault is left to say.
	 */
	if (c->findings->lost > 0 || c->coverage->lost > 0) {
		if (v.exit != EXIT_STATUS_FINDINGS)
			v = (struct verdict){.word = VERDICT_UNKNOWN,
				.evidence = "memory ran out while findings were collected"};
		v.exit = EXIT_STATUS_FAILED;
	}
	return v;
}
