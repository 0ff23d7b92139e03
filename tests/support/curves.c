/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "support/curves.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "support/bytes.h"

void curves_init(struct curves *c)
{
	*c = (struct curves){.limits = limits_default(), .e = ERROR_INIT};
	c->options.limits = &c->limits;
}

void curves_release(struct curves *c)
{
	curve_release(&c->log);
	c->e = ERROR_INIT;
}

void curves_bytes(struct curves *c, const char *name, const void *bytes, size_t n)
{
	curves_release(c);
	ck_assert_msg(curve_open_memory(
			      &c->log, name, (struct slice){bytes, n}, &c->options, &c->e) == RP_OK,
		"%s: %s", name, c->e.text);
}

void curves_text(struct curves *c, const char *name, const char *text)
{
	curves_bytes(c, name, text, strlen(text));
}

void curves_path(struct curves *c, const char *path)
{
	curves_release(c);
	ck_assert_msg(curve_open(&c->log, &path, 1, &c->options, &c->e) == RP_OK, "%s: %s", path,
		c->e.text);
}

static void add(struct curves *c, size_t *n, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void add(struct curves *c, size_t *n, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	*n += (size_t)vsnprintf(c->text + *n, sizeof c->text - *n, format, ap);
	va_end(ap);
	ck_assert_uint_lt(*n, sizeof c->text);
}

const char *curves_points(struct curves *c, const char *series)
{
	size_t n = 0;

	c->text[0] = '\0';
	for (size_t i = 0; i < c->log.points.count; i++) {
		const struct curve_point *p = &c->log.points.items[i];
		if (strcmp(c->log.series.items[p->series].name, series) == 0)
			add(c, &n, "%s%.12g:%.7g", n ? " " : "", p->x, p->value);
	}
	return c->text;
}

char *curves_all(struct curves *c)
{
	struct strbuf b;

	strbuf_init(&b, (size_t)1 << 24);
	for (size_t i = 0; i < c->log.points.count; i++) {
		const struct curve_point *p = &c->log.points.items[i];
		strbuf_printf(&b, "%s\t%.9g\t%.9g\n", c->log.series.items[p->series].name, p->x,
			p->value);
	}
	char *text = strdup(strbuf_text(&b));
	strbuf_release(&b);
	ck_assert_ptr_nonnull(text);
	return text;
}

void curves_match(struct curves *c, const char *folder)
{
	char path[512];

	snprintf(path, sizeof path, "%s/points.tsv", folder);
	struct bytes wanted = bytes_of_file(path);
	bytes_add(&wanted, "", 1);
	c->options.others = true;
	curves_path(c, folder);
	char *found = curves_all(c);
	size_t same = 0;
	while (same < wanted.n && found[same] == (char)wanted.p[same] && found[same])
		same++;
	ck_assert_msg(same + 1 >= wanted.n, "byte %zu: %.60s, wanted %.60s", same, found + same,
		(const char *)wanted.p + same);
	ck_assert_uint_eq(c->log.lost, 0);
	free(found);
	bytes_release(&wanted);
}

const char *curves_series(struct curves *c)
{
	static const char *const means[] = {[CURVE_OF_STEP] = "step",
		[CURVE_OF_INTERVAL] = "interval",
		[CURVE_OF_EPOCH] = "epoch",
		[CURVE_OF_ALL] = "all",
		[CURVE_OF_UNKNOWN] = "?"};
	size_t n = 0;

	c->text[0] = '\0';
	for (size_t i = 0; i < c->log.series.count; i++) {
		const struct curve_series *s = &c->log.series.items[i];
		add(c, &n, "%s %s%s%s %s %s %llu\n", s->name, curve_role_name(s->role),
			s->source[0] ? "=" : "", s->source, curve_unit_name(s->unit),
			means[s->mean], (unsigned long long)s->points);
	}
	return c->text;
}

const char *curves_marks(struct curves *c)
{
	static const char *const kinds[] = {[CURVE_LAUNCH] = "launch",
		[CURVE_LOADED] = "loaded",
		[CURVE_SAVED] = "saved",
		[CURVE_PURGED] = "purged",
		[CURVE_SKIPPED] = "skipped",
		[CURVE_OVERFLOW] = "overflow",
		[CURVE_SETTING] = "setting",
		[CURVE_EPOCH] = "epoch",
		[CURVE_FINISHED] = "finished",
		[CURVE_KILLED] = "killed"};
	size_t n = 0;

	c->text[0] = '\0';
	for (size_t i = 0; i < c->log.marks.count; i++) {
		const struct curve_mark *m = &c->log.marks.items[i];
		add(c, &n, "%s %s %.12g %.7g \"%s\" @%llu\n", kinds[m->kind],
			curve_unit_name(m->unit), m->x, m->value, m->text,
			(unsigned long long)m->before);
	}
	return c->text;
}

const struct curve_series *curves_find(struct curves *c, const char *series)
{
	for (size_t i = 0; i < c->log.series.count; i++)
		if (strcmp(c->log.series.items[i].name, series) == 0)
			return &c->log.series.items[i];
	ck_abort_msg("no series is called %s", series);
	return NULL;
}

bool curves_lost(struct curves *c, const char *what)
{
	for (size_t i = 0; i < c->log.losses.count; i++)
		if (strstr(c->log.losses.items[i].what, what))
			return true;
	return false;
}
