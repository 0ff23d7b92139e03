/* SPDX-License-Identifier: MIT */
/* Series that the user describes by a regular expression each. */
#include <math.h>
#include <string.h>

#include "curve/console_parts.h"

#define PATTERN_TEXT 4096u /* bytes of a line they are tried on */

void console_compile_patterns(struct console *c)
{
	const struct curve_options *o = c->r->options;
	char why[128];

	for (size_t i = 0; i < o->pattern_count && c->pattern_count < CONSOLE_PATTERNS_MAX; i++) {
		struct console_pattern *p = &c->patterns[c->pattern_count];
		if (!strchr(o->patterns[i].pattern, '('))
			continue;
		int failed = regcomp(&p->compiled, o->patterns[i].pattern, REG_EXTENDED);
		if (failed) {
			regerror(failed, &p->compiled, why, sizeof why);
			curve_lost(
				c->r, "the pattern of the series %s: %s", o->patterns[i].name, why);
			continue;
		}
		p->said = &o->patterns[i];
		p->with_x = p->compiled.re_nsub > 1;
		p->calls = 0;
		enum curve_role role = curve_role_named(slice_of(p->said->name));
		if (role != CURVE_OTHER)
			c->asked |= 1u << role;
		c->pattern_count++;
	}
}

void console_release_patterns(struct console *c)
{
	for (size_t i = 0; i < c->pattern_count; i++)
		regfree(&c->patterns[i].compiled);
}

static struct slice group_of(const char *text, const regmatch_t *m)
{
	return m->rm_so < 0 ? (struct slice){"", 0}
			    : (struct slice){text + m->rm_so, (size_t)(m->rm_eo - m->rm_so)};
}

/*
 * Where the value of a pattern stands: what its first group of two says, else what a word before a
 * number says, else the number of the match. One way for all matches of a pattern.
 */
static bool x_of_pattern(struct console_pattern *p, struct slice text, struct slice group,
	enum curve_unit *unit, double *x)
{
	float resolution;

	*unit = CURVE_STEPS;
	if (p->with_x)
		return curve_number(group, true, x, &resolution) && isfinite(*x);
	bool within, found = console_guess_x(text, x, unit, &within);
	if (p->calls == 0)
		p->by_word = found;
	p->calls++;
	if (p->by_word)
		return found;
	*unit = CURVE_CALLS;
	*x = p->calls;
	return true;
}

int console_take_patterns(struct console *c, const struct console_line *l, struct error *e)
{
	char text[PATTERN_TEXT];
	size_t n = l->text.n < sizeof text - 1 ? l->text.n : sizeof text - 1;
	regmatch_t m[3];
	double x, value;
	float resolution;
	enum curve_unit unit;
	uint32_t series;

	memcpy(text, l->text.p, n);
	text[n] = '\0';
	for (size_t i = 0; i < c->pattern_count; i++) {
		struct console_pattern *p = &c->patterns[i];
		const regmatch_t *group = &m[p->with_x ? 2 : 1];
		if (regexec(&p->compiled, text, 3, m, 0) != 0 ||
			(c->cut && group->rm_eo == (regoff_t)l->text.n) ||
			!curve_number(group_of(text, group), true, &value, &resolution) ||
			!x_of_pattern(p, l->text, group_of(text, &m[1]), &unit, &x))
			continue;
		c->r->wall = console_clock(l->text);
		struct slice name = slice_of(p->said->name);
		if (curve_series_of(c->r, name, curve_role_named(name), unit, CURVE_OF_UNKNOWN,
			    l->rank, &series, e) < 0 ||
			curve_add(c->r, series, x, value, resolution, e) < 0)
			return e->status;
		c->marks.last_x = x;
		c->marks.unit = unit;
		c->marks.points = console_points_of(c->r);
	}
	return RP_OK;
}
