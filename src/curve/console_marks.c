/* SPDX-License-Identifier: MIT */
/* The lines of a console that say what a process did. What they look like is in console.def. */
#include <math.h>
#include <string.h>
#include <xxhash.h>

#include "base/text.h"
#include "curve/console.h"

#define BANNER 0x80u
#define DOTS_MIN 3u

enum mark_how {
	ONCE,
	SEED,
	STEP,
	AT,
	PATH,
	FIRST_STEP,
	LAST_STEP,
	NEWEST,
	RESUMED,
	DEVICES,
	VALUE,
	DOTS,
	LOWERED,
	TURN
};

struct mark_row {
	uint8_t kind, how;
	const char *name;
};

static const struct mark_row rows[] = {
#define MARK(kind, key, how, name) {CURVE_##kind, (uint8_t)(how), name},
#include "curve/console.def"
};

const struct slice console_mark_keys[] = {
#define MARK(kind, key, how, name) {key, sizeof key - 1},
#include "curve/console.def"
};

const size_t console_mark_count = sizeof rows / sizeof *rows;

/* The arguments that matter when a resume is judged. */
static const char *const arguments[] = {"seed", "lr", "learning_rate", "min_lr", "micro_batch_size",
	"global_batch_size", "train_batch_size", "batch_size", "train_micro_batch_size_per_gpu",
	"gradient_accumulation_steps", "rampup_batch_size", "data_path", "train_data_path",
	"train_data_paths", "train_iters", "train_samples", "lr_warmup_iters", "lr_warmup_samples",
	"log_interval", "save_interval", "load"};

bool console_mark_is_banner(size_t row)
{
	return rows[row].how & BANNER;
}

/* Saying it ------------------------------------------------------------------------------------ */

static int say(struct console_marks *m, enum curve_mark_kind kind, double x, double value,
	struct slice text, struct error *e)
{
	if (kind == CURVE_LAUNCH)
		m->settings = 0;
	m->r->wall = console_clock(m->line);
	return curve_mark(m->r, kind, CURVE_STEPS, x, value, text, e);
}

/* Many processes say the same: the first one counts until there are new points. */
static int say_once(struct console_marks *m, enum curve_mark_kind kind, double x, struct slice text,
	struct error *e)
{
	bool same_x = m->mark_x == x || (isnan(m->mark_x) && isnan(x));
	/* Banners follow each other while a process comes up. */
	bool again = kind == CURVE_LAUNCH ? m->launched : m->mark_kind == (int)kind && same_x;

	if (again && m->mark_points == m->points)
		return RP_OK;
	m->launched = kind == CURVE_LAUNCH || (m->launched && m->mark_points == m->points);
	m->mark_kind = (int)kind;
	m->mark_x = x;
	m->mark_points = m->points;
	return say(m, kind, x, NAN, text, e);
}

int console_launch(struct console_marks *m, struct error *e)
{
	return say_once(m, CURVE_LAUNCH, NAN, (struct slice){"", 0}, e);
}

static int say_setting(
	struct console_marks *m, struct slice name, struct slice value, struct error *e)
{
	char text[256];
	size_t n = 0;

	for (size_t i = 0; i < name.n && n < 64; i++)
		text[n++] = name.p[i];
	text[n++] = '=';
	for (size_t i = 0; i < value.n && n < sizeof text; i++)
		text[n++] = value.p[i];
	uint64_t hash = XXH3_64bits(text, n);
	size_t held = sizeof m->setting_hashes / sizeof *m->setting_hashes;
	for (size_t i = 0; i < m->settings && i < held; i++)
		if (m->setting_hashes[i] == hash)
			return RP_OK;
	if (m->settings < held)
		m->setting_hashes[m->settings++] = hash;
	return say(m, CURVE_SETTING, NAN, NAN, (struct slice){text, n}, e);
}

/* What stands behind a key --------------------------------------------------------------------- */

static struct slice behind(struct slice text, size_t at)
{
	return at < text.n ? (struct slice){text.p + at, text.n - at} : (struct slice){"", 0};
}

static struct slice until(struct slice text, struct slice end)
{
	size_t at = slice_find(text, end);

	return at == SIZE_MAX ? text : (struct slice){text.p, at};
}

/* The number directly behind the key. */
static bool number_here(struct slice rest, double *value)
{
	rest = slice_trim(rest);
	return rest.n > 0 && rest.p[0] >= '0' && rest.p[0] <= '9' && console_whole(rest, 0, value);
}

/* A path as programs print it: in quotes, or up to a space, without a full stop at the end. */
static struct slice path_in(struct slice rest)
{
	size_t n = 0;

	while (rest.n > 0 && (rest.p[0] == ':' || rest.p[0] == '=' || rest.p[0] == ' '))
		rest = behind(rest, 1);
	if (rest.n > 0 && (rest.p[0] == '\'' || rest.p[0] == '"')) {
		const char *end = memchr(rest.p + 1, rest.p[0], rest.n - 1);
		return (struct slice){rest.p + 1, end ? (size_t)(end - rest.p) - 1 : rest.n - 1};
	}
	while (n < rest.n && rest.p[n] != ' ' && rest.p[n] != '\t')
		n++;
	while (n > 0 && (rest.p[n - 1] == '.' || rest.p[n - 1] == ',' || rest.p[n - 1] == ':'))
		n--;
	return (struct slice){rest.p, n};
}

/*
 * The step in a path: behind step, iter, checkpoint or ba in its last parts (global_step1000,
 * checkpoint-500, step-1000, epoch=3-step=1000.ckpt, iter_0001000, ep0-ba100-rank0.pt), or a last
 * part that is a number.
 */
static double step_in(struct slice path)
{
	static const struct slice words[] = {
		{"step", 4}, {"checkpoint", 10}, {"iter", 4}, {"-ba", 3}};
	double value = NAN;

	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		for (size_t at = 0; at + words[i].n < path.n; at++) {
			if (memcmp(path.p + at, words[i].p, words[i].n) != 0)
				continue;
			size_t to = at + words[i].n;
			if (path.p[to] == '-' || path.p[to] == '_' || path.p[to] == '=')
				to++;
			double found;
			if (number_here(behind(path, to), &found))
				value = found;
		}
	if (!isnan(value))
		return value;
	while (path.n > 0 && path.p[path.n - 1] == '/')
		path.n--;
	size_t begin = path.n;
	while (begin > 0 && path.p[begin - 1] >= '0' && path.p[begin - 1] <= '9')
		begin--;
	if (begin < path.n && begin > 0 && path.p[begin - 1] == '/')
		console_whole(path, begin, &value);
	return value;
}

/* How ------------------------------------------------------------------------------------------ */

static int say_path(
	struct console_marks *m, enum curve_mark_kind kind, struct slice path, struct error *e)
{
	double x = step_in(path);

	/* A save whose step is not known tells nothing; a load does. */
	if (isnan(x) && (kind == CURVE_SAVED || !memchr(path.p, '/', path.n)))
		return RP_OK;
	return say_once(m, kind, x, path, e);
}

static int say_at(
	struct console_marks *m, enum curve_mark_kind kind, struct slice rest, struct error *e)
{
	static const struct slice before[] = {{"iteration", 9}, {"at step ", 8}, {"@", 1}};
	struct slice path;
	double x;

	for (size_t i = 0; i < sizeof before / sizeof *before; i++) {
		size_t at = slice_find(rest, before[i]);
		if (at == SIZE_MAX || !number_here(behind(rest, at + before[i].n), &x))
			continue;
		size_t to = slice_find(rest, SLICE(" to "));
		if (slice_starts(rest, SLICE("at ")) || slice_starts(rest, SLICE("from iter")))
			path = to == SIZE_MAX ? (struct slice){"", 0}
					      : path_in(behind(rest, to + 4));
		else
			path = slice_trim(
				until(until(until(rest, SLICE(" at ")), SLICE(" [")), SLICE(" (")));
		return say_once(m, kind, x, path, e);
	}
	return say_path(m, kind, path_in(rest), e);
}

/* A save whose path may not say the step: it is that of the newest point then. */
static int say_newest(
	struct console_marks *m, enum curve_mark_kind kind, struct slice path, struct error *e)
{
	double x = step_in(path);

	if (isnan(x) && m->unit == CURVE_STEPS)
		x = m->last_x;
	return isnan(x) ? RP_OK : say_once(m, kind, x, path, e);
}

/* A launch that goes on from a folder, or from a step. */
static int say_resumed(struct console_marks *m, struct slice rest, struct error *e)
{
	size_t at = slice_find(rest, SLICE("global step "));
	double x;

	if (say_once(m, CURVE_LAUNCH, NAN, (struct slice){"", 0}, e) < 0)
		return e->status;
	if (at != SIZE_MAX && number_here(behind(rest, at + 12), &x))
		return say_once(m, CURVE_LOADED, x, (struct slice){"", 0}, e);
	return say_once(m, CURVE_LOADED, NAN, path_in(rest), e);
}

/*
 * An overflow: the loss scale is lowered, or the step is skipped only. Every rank prints it; the
 * first one is listened to.
 */
static int say_lowered(struct console_marks *m, struct slice rest, struct error *e)
{
	double rank, value = NAN;
	float resolution;
	size_t to = SIZE_MAX;

	if (slice_starts(rest, SLICE("Rank ")) && number_here(behind(rest, 5), &rank)) {
		if (m->overflow_of < 0)
			m->overflow_of = (int32_t)rank;
		if (m->overflow_of != (int32_t)rank)
			return RP_OK;
	}
	if (slice_find(rest, SLICE("hysteresis to")) != SIZE_MAX)
		return say(m, CURVE_SKIPPED, NAN, 1, (struct slice){"", 0}, e);
	for (size_t at = 0, next; at < rest.n; at = to + 3) {
		next = slice_find(behind(rest, at), SLICE(" to"));
		if (next == SIZE_MAX)
			break;
		to = at + next;
	}
	if (to != SIZE_MAX) {
		struct slice number = behind(rest, to + 3);
		if (number.n > 0 && number.p[0] == ':')
			number = behind(number, 1);
		number = path_in(number);
		if (!curve_number(number, false, &value, &resolution))
			value = NAN;
	}
	return say(m, CURVE_OVERFLOW, NAN, value, (struct slice){"", 0}, e);
}

/* "  name ......... value", with dots behind the value too (GPT-NeoX). */
static int say_argument(struct console_marks *m, struct slice text, size_t at, struct error *e)
{
	struct slice name = slice_trim((struct slice){text.p, at}), value = behind(text, at + 1);
	size_t dots = 0;

	for (size_t i = name.n; i > 0; i--)
		if (name.p[i - 1] == ' ' || name.p[i - 1] == ']') {
			name = behind(name, i);
			break;
		}
	while (dots < value.n && value.p[dots] == '.')
		dots++;
	if (dots < DOTS_MIN || dots >= value.n || value.p[dots] != ' ')
		return RP_OK;
	value = slice_trim(until(behind(value, dots), SLICE("....")));
	for (size_t i = 0; i < sizeof arguments / sizeof *arguments; i++)
		if (slice_is(name, arguments[i]))
			return say_setting(m, name, value, e);
	return RP_OK;
}

int console_mark(struct console_marks *m, size_t row, const struct console_line *line, size_t at,
	struct error *e)
{
	const struct mark_row *k = &rows[row];
	struct slice rest = behind(line->text, at + console_mark_keys[row].n);
	struct slice none = {"", 0};
	enum curve_mark_kind kind = k->kind;
	bool numbered = false;
	double value = NAN;

	numbered = number_here(rest, &value);
	switch ((enum mark_how)(k->how & ~BANNER)) {
	case ONCE:
		return say_once(m, kind, NAN, none, e);
	case SEED:
		if (say_once(m, kind, NAN, none, e) < 0)
			return e->status;
		return say_setting(m, slice_of(k->name), path_in(rest), e);
	case STEP:
		return numbered && value > 0 ? say_once(m, kind, value, none, e) : RP_OK;
	case AT:
		return say_at(m, kind, rest, e);
	case PATH:
		return say_path(m, kind, path_in(rest), e);
	case FIRST_STEP:
		return numbered && value > 1 ? say_once(m, kind, value - 1, none, e) : RP_OK;
	case LAST_STEP:
		if (!numbered)
			return RP_OK;
		return say_once(
			m, value > 0 ? kind : CURVE_LAUNCH, value > 0 ? value : NAN, none, e);
	case NEWEST:
		return say_newest(
			m, kind, rest.n > 0 && rest.p[0] != '(' ? path_in(rest) : none, e);
	case RESUMED:
		return say_resumed(m, rest, e);
	case DEVICES:
		return numbered && slice_find(rest, SLICE(" devices")) != SIZE_MAX
			       ? say_once(m, kind, NAN, none, e)
			       : RP_OK;
	case VALUE: {
		size_t sign = slice_find(rest, SLICE(" = "));
		struct slice number = path_in(behind(rest, sign == SIZE_MAX ? 0 : sign + 3));
		return say_setting(m, slice_of(k->name), number, e);
	}
	case DOTS:
		return say_argument(m, line->text, at, e);
	case LOWERED:
		return say_lowered(m, rest, e);
	case TURN:
		return numbered ? say(m, kind, NAN, value, none, e) : RP_OK;
	}
	return RP_OK;
}
