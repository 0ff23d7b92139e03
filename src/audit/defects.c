/* SPDX-License-Identifier: MIT */
/* The table of known defects, and what its requirements on versions mean. */
#include "audit/defects.h"

const struct defect defects[] = {
#define DEFECT(id, profile, code, affected, unsure, saved, resumed, condition, message, effect,    \
	remedy, source, proof)                                                                     \
	{id, profile, DEFECT_FOUND, FINDING_##code, SEVERITY_##affected, SEVERITY_##unsure, saved, \
		resumed, defect_##condition, message, effect, remedy, source, proof},
#define EXPLAINS(id, profile, code, saved, resumed, effect, source, proof)                         \
	{id, profile, DEFECT_EXPLAINS, FINDING_##code, SEVERITY_OK, SEVERITY_OK, saved, resumed,   \
		NULL, NULL, effect, NULL, source, proof},
#define UNSEEN(id, profile, saved, resumed, effect, source, proof)                                 \
	{id, profile, DEFECT_UNSEEN, FINDING_COUNT, SEVERITY_OK, SEVERITY_OK, saved, resumed,      \
		NULL, NULL, effect, NULL, source, proof},
#include "audit/defects.def"
#undef DEFECT
#undef EXPLAINS
#undef UNSEEN
};

const size_t defect_count = sizeof defects / sizeof *defects;

/* What stands before the separator, without spaces around it; `rest` goes on behind it. */
static struct slice cut(struct slice *rest, char separator)
{
	const char *at = rest->n ? memchr(rest->p, separator, rest->n) : NULL;
	struct slice part = {rest->p, at ? (size_t)(at - rest->p) : rest->n};

	rest->p += part.n + (at ? 1 : 0);
	rest->n -= part.n + (at ? 1 : 0);
	return slice_trim(part);
}

/* ">=1.7" or "<1.15". */
static bool take_bound(struct slice bound, struct clause *out)
{
	bool from = slice_starts(bound, SLICE(">="));
	size_t sign = from ? 2 : 1;

	if (!from && !slice_starts(bound, SLICE("<")))
		return false;
	*(from ? &out->has_from : &out->has_before) = true;
	return version_parse(
		(struct slice){bound.p + sign, bound.n - sign}, from ? &out->from : &out->before);
}

int requirement_next(struct slice *rest, struct clause *out)
{
	struct slice text = cut(rest, ';'), bounds = text;

	*out = (struct clause){.text = text, .package = text};
	if (text.n == 0)
		return 0;
	while (out->package.n > 0 && memchr(text.p, '<', out->package.n))
		out->package.n--;
	while (out->package.n > 0 && memchr(text.p, '>', out->package.n))
		out->package.n--;
	bounds = (struct slice){text.p + out->package.n, text.n - out->package.n};
	while (bounds.n > 0)
		if (!take_bound(cut(&bounds, ','), out))
			return -1;
	for (size_t i = 0; i < out->package.n; i++)
		if (!strchr("abcdefghijklmnopqrstuvwxyz0123456789-", out->package.p[i]))
			return -1;
	return out->package.n > 0 ? 1 : -1;
}

enum truth clause_holds(const struct clause *c, const struct version *v)
{
	if (!c->has_from && !c->has_before)
		return TRUTH_YES;
	if (!v)
		return TRUTH_UNKNOWN;
	if ((c->has_from && version_leads_to(v, &c->from)) ||
		(c->has_before && version_leads_to(v, &c->before)))
		return TRUTH_UNKNOWN;
	return (!c->has_from || version_compare(v, &c->from) >= 0) &&
			       (!c->has_before || version_compare(v, &c->before) < 0)
		       ? TRUTH_YES
		       : TRUTH_NO;
}
