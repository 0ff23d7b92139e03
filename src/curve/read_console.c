/* SPDX-License-Identifier: MIT */
/*
 * Console logs of trainers: what a person saw. One table (console.def) says what lines look like; a
 * file may hold several kinds, several launches and several processes' lines. Most lines are
 * chatter, which costs one pass over their bytes (console_keys.c) and is never split or copied.
 *
 * Nothing of a line is kept but its numbers, so that memory depends on the points alone. A line of
 * any length is read in pieces that end in a carriage return, as progress bars print them.
 */
#define _GNU_SOURCE /* memmem() */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "curve/console_parts.h"

#define PIECE ((size_t)1 << 20)     /* bytes of a line from which on it is read in pieces */
#define PLAIN_MAX ((size_t)1 << 16) /* bytes of a line with escape sequences that are looked at */
#define BELOW_LINES 4096u           /* lines after which one waits no longer */

/* Points of several lines ---------------------------------------------------------------------- */

static int open_below(
	struct console *c, const struct console_line *l, const struct console_found *m)
{
	struct console_below *b = NULL;

	for (size_t i = 0; i < c->below_count; i++)
		if (c->below[i].rank == l->rank)
			b = &c->below[i];
	if (!b)
		b = &c->below[c->below_count < CONSOLE_BELOW_MAX ? c->below_count++
								 : CONSOLE_BELOW_MAX - 1];
	*b = (struct console_below){.rank = l->rank,
		.shape = m->shape,
		.x = m->head.x,
		.unit = m->shape->unit,
		.wall = c->r->wall,
		.until = c->lines.number + BELOW_LINES};
	if (m->shape->flags & CONSOLE_AT_LAST) {
		b->x = c->marks.last_x;
		b->unit = c->marks.unit;
	} else if (!isnan(m->head.epoch) && m->head.total > 0) {
		b->x = (m->head.epoch - 1) * m->head.total + m->head.x;
		b->from_epochs = true;
	}
	return RP_OK;
}

static void close_below(struct console *c, size_t i)
{
	c->below[i] = c->below[--c->below_count];
}

/* Whether the line belongs to a point that waits for it. */
static bool take_below(
	struct console *c, const struct console_line *l, int *status, struct error *e)
{
	struct slice text = {l->text.p + l->begin, l->text.n - l->begin};
	bool indented = text.n > 1 && (text.p[0] == '\t' || (text.p[0] == ' ' && text.p[1] == ' '));
	struct console_field f;

	for (size_t i = 0; i < c->below_count; i++) {
		struct console_below *b = &c->below[i];
		if (b->rank != l->rank)
			continue;
		size_t at = 0;
		if (!indented || c->lines.number > b->until || isnan(b->x) ||
			!console_next(text, b->shape->style, &at, &f)) {
			close_below(c, i);
			return false;
		}
		struct console_place place = {
			.shape = b->shape, .x = b->x, .unit = b->unit, .rank = -1};
		if (slice_starts(f.name, SLICE("Train ")))
			f.name = (struct slice){f.name.p + 6, f.name.n - 6};
		else if (slice_starts(f.name, SLICE("Eval ")))
			f.name = (struct slice){f.name.p + 5, f.name.n - 5};
		c->r->wall = b->wall;
		if (b->from_epochs)
			c->note = "steps are worked out from epochs and the batches of each";
		*status = console_add_field(c, &place, &f, e);
		return true;
	}
	return false;
}

/* Lines ---------------------------------------------------------------------------------------- */

/* "Epoch 3/10", alone on its line, which other programs print as well. */
static int take_turn(struct console *c, double epoch, struct error *e)
{
	c->epoch = epoch;
	return curve_mark(
		c->r, CURVE_EPOCH, CURVE_EPOCHS, epoch - 1, epoch, (struct slice){"", 0}, e);
}

static void meet_trainer(struct console *c, const char *trainer)
{
	c->anything = false;
	for (size_t i = 0; i < c->trainer_count; i++)
		if (strcmp(c->trainers[i], trainer) == 0)
			return;
	if (c->trainer_count < CONSOLE_TRAINERS_MAX)
		c->trainers[c->trainer_count++] = trainer;
}

static int take_match(struct console *c, const struct console_line *l,
	const struct console_found *m, struct error *e)
{
	const struct console_shape *s = m->shape;
	struct console_place at = {.shape = s,
		.x = m->head.x,
		.unit = s->unit,
		.rank = s->flags & CONSOLE_EACH_RANK ? l->rank : -1};

	/* What is there is of another line, which may be gone. */
	c->taken_count = 0;
	size_t fields = s->style == CONSOLE_DICT ? m->head.fields : m->key;
	c->r->wall = console_clock((struct slice){l->text.p, fields});
	/* What a bar showed last stands before what is on other lines. */
	if (s->how != CONSOLE_BAR && s->how != CONSOLE_KERAS && console_flush_bar(c, e) < 0)
		return e->status;
	if (s->how == CONSOLE_TURN)
		return take_turn(c, m->head.x, e);
	if (s->flags & CONSOLE_AT_LAUNCH && m->head.x <= 0)
		return console_launch(&c->marks, e);
	bool lightning = s->how == CONSOLE_BAR && slice_find(l->text, SLICE("v_num=")) != SIZE_MAX;
	meet_trainer(c, lightning ? "Lightning" : s->trainer);
	switch (s->how) {
	case CONSOLE_BELOW:
		return open_below(c, l, m);
	case CONSOLE_BAR:
		return console_take_bar(c, &at, l, m, e);
	case CONSOLE_KERAS:
		return console_take_keras(c, &at, l, m, e);
	case CONSOLE_ON_LINE:
	case CONSOLE_X_IS_FIELD:
	case CONSOLE_TURN:
		break;
	}
	if (s->flags & CONSOLE_BITS)
		c->note = CONSOLE_NOTE_BITS;
	if (s->flags & CONSOLE_DATA_BEFORE)
		at.held_out = console_held_out_of(l, m);
	/* Without its end a row may have any x. */
	if (s->how == CONSOLE_X_IS_FIELD && c->cut && l->text.p[l->text.n - 1] != '}') {
		c->r->log->files.items[c->r->file].torn = true;
		return RP_OK;
	}
	size_t first = c->r->log->points.count;
	if (console_take_fields(c, &at, l->text, m->head.fields, e) < 0)
		return e->status;
	return s->flags & CONSOLE_AS_STEPS ? console_keep_epoch_row(c, &at, &c->x_field, first, e)
					   : RP_OK;
}

static int take_marks(struct console *c, const struct console_line *l,
	const struct console_hit *hits, size_t n, struct error *e)
{
	size_t marks = c->r->log->marks.count;

	for (size_t i = 0; i < n; i++)
		if (hits[i].key < console_mark_count && console_flush_bar(c, e) < 0)
			return e->status;
	for (size_t i = 0; i < n; i++)
		if (hits[i].key < console_mark_count &&
			console_mark(&c->marks, hits[i].key, l, hits[i].at, e) < 0)
			return e->status;
	for (; marks < c->r->log->marks.count; marks++) {
		const struct curve_mark *k = &c->r->log->marks.items[marks];
		c->launched = c->launched || k->kind == CURVE_LAUNCH || k->kind == CURVE_LOADED;
		if (k->kind == CURVE_LAUNCH)
			c->before = c->epoch = NAN;
		else if (k->kind == CURVE_LOADED)
			c->before = k->x;
	}
	return RP_OK;
}

/* Lines of nobody ------------------------------------------------------------------------------ */

static const struct console_field_row no_fields = {{NULL, 0}, 0, 0, NULL};

static const struct console_shape any = {
	.trainer = "", .mean = CURVE_OF_UNKNOWN, .flags = CONSOLE_EACH_RANK, .fields = &no_fields};

/* Whether words of a line are about an x and a loss. `c`: the reader, or NULL. */
static bool guess_line(struct console *c, struct slice text, double *x, enum curve_unit *unit)
{
	bool within;
	struct console_field f;
	size_t from = 0;

	if (slice_find(text, SLICE("oss")) == SIZE_MAX || !console_guess_x(text, x, unit, &within))
		return false;
	/* What is said of a whole epoch stands at its end, as its last batch does. */
	if (c && within)
		c->within_epochs = true;
	else if (c && c->within_epochs && *unit == CURVE_EPOCHS && *x == floor(*x))
		*x += 1;
	while (console_next_guess(text, &from, &f)) {
		enum curve_role role =
			c ? console_name(c, f.name).role : curve_meaning_of(f.name).role;
		if (role == CURVE_LOSS || role == CURVE_VALID_LOSS)
			return true;
	}
	return false;
}

/* Whether a word such as eval or validation stands by itself in the text, not as a part of a path.
 */
static bool names_held_out(struct slice text)
{
	for (size_t i = 0, n; i < text.n; i += n + 1) {
		for (n = 0; i + n < text.n && !memchr(" \t[](){}|:,=", text.p[i + n], 12);)
			n++;
		if (curve_is_held_out((struct slice){text.p + i, n}))
			return true;
	}
	return false;
}

/*
 * A line that no row fits, of a file without any that does: a word for x and a loss are wanted.
 * What the words mean is a guess, so nothing is taken of files of known trainers.
 */
static int take_anything(struct console *c, const struct console_line *l, struct error *e)
{
	struct slice text = {l->text.p + l->begin, l->text.n - l->begin};
	struct console_place at = {.shape = &any, .rank = l->rank};
	struct console_field f;

	if (!guess_line(c, text, &at.x, &at.unit))
		return RP_OK;
	c->r->wall = console_clock(l->text);
	c->note = "no known trainer: what is x and what is a loss was guessed from words";
	bool held_out = false; /* the line; what is before one name is about that alone */
	for (size_t from = 0, end = 0; console_next_guess(text, &from, &f); end = from) {
		enum curve_role role = console_name(c, f.name).role;
		struct slice before = {text.p + end, (size_t)(f.name.p - text.p) - end};
		bool said = names_held_out(before);
		held_out = held_out || (said && end == 0);
		if (said || held_out)
			continue;
		if (role != CURVE_OTHER && role != CURVE_EPOCH_COUNT &&
			console_add_field(c, &at, &f, e) < 0)
			return e->status;
	}
	return RP_OK;
}

/* Reading -------------------------------------------------------------------------------------- */

/* A line without carriage returns. `hits`, n: the keys in it; SIZE_MAX: not looked for yet. */
static int take_part(
	struct console *c, struct slice text, struct console_hit *hits, size_t n, struct error *e)
{
	struct console_line l = {.text = text};
	struct console_found m;
	int status = RP_OK;

	if (memchr(text.p, '\x1b', text.n) || memchr(text.p, '\b', text.n)) {
		l.text.n = console_plain(
			(struct slice){text.p, text.n < PLAIN_MAX ? text.n : PLAIN_MAX}, c->plain,
			NULL);
		l.text.p = c->plain;
		n = SIZE_MAX;
	}
	c->cut = c->torn ? l.text.p + l.text.n : NULL;
	if (c->bar_follows) {
		struct console_epoch_row *row = &c->epoch_rows.items[c->epoch_rows.count - 1];
		double step, total;
		c->bar_follows = false;
		if (console_bar_is_plain(l.text) && console_bar(l.text, &step, &total))
			row->step = step;
	}
	console_label(&l);
	if (c->pattern_count > 0 && console_take_patterns(c, &l, e) < 0)
		return e->status;
	if (c->chatter)
		return RP_OK;
	if (c->below_count > 0 && take_below(c, &l, &status, e))
		return status;
	if (n == SIZE_MAX)
		n = console_keys_find(&c->index.keys, l.text, hits);
	c->r->wall = NAN;
	c->marks.line = l.text;
	if (n > 0 && !c->cut && take_marks(c, &l, hits, n, e) < 0)
		return e->status;
	if (n > 0 && console_recognise(&c->index, &l, hits, n, &m)) {
		status = take_match(c, &l, &m, e);
		if (status == RP_OK)
			console_learn_form(c, text, &l, &m, hits, n);
		return status;
	}
	return c->anything ? take_anything(c, &l, e) : RP_OK;
}

/* A line without carriage returns that may be like one before. */
static int take_again(struct console *c, struct slice text, struct error *e)
{
	struct console_hit hits[CONSOLE_HITS_MAX];
	int status;

	if (!c->torn && console_take_form(c, text, &status, e))
		return status;
	return text.n > 0 ? take_part(c, text, hits, SIZE_MAX, e) : RP_OK;
}

/*
 * Rows like an earlier one and chatter leave here, after one pass over their bytes. `torn`: the
 * line has no end.
 */
static int take_line(struct console *c, struct slice line, bool torn, struct error *e)
{
	struct console_hit hits[CONSOLE_HITS_MAX];
	int status;

	while (line.n > 0 && line.p[line.n - 1] == '\r')
		line.n--;
	c->torn = torn;
	if (!torn && console_take_form(c, line, &status, e))
		return status;
	size_t n = console_keys_find(&c->index.keys, line, hits);
	c->chatter = n == 0 && c->below_count == 0 && !c->bar_follows &&
		     !(c->anything && memmem(line.p, line.n, "oss", 3));
	if (c->chatter && c->pattern_count == 0)
		return RP_OK;
	if (!memchr(line.p, '\r', line.n))
		return take_part(c, line, hits, n, e);
	while (line.n > 0) {
		const char *end = memchr(line.p, '\r', line.n);
		struct slice part = {line.p, end ? (size_t)(end - line.p) : line.n};
		c->torn = torn && !end;
		if (take_again(c, part, e) < 0)
			return e->status;
		size_t used = end ? part.n + 1 : part.n;
		line = (struct slice){line.p + used, line.n - used};
	}
	return RP_OK;
}

static void say_writer(struct console *c)
{
	char text[256];
	size_t n = 0;

	text[0] = '\0';
	for (size_t i = 0; i < c->trainer_count; i++)
		n += (size_t)snprintf(
			text + n, sizeof text - n, "%s%s", i > 0 ? ", " : "", c->trainers[i]);
	curve_writer(c->r, text);
	if (c->note)
		curve_note(c->r, "%s", c->note);
}

static int read_lines(struct console *c, struct error *e)
{
	struct curve_reading *r = c->r;
	struct error why = ERROR_INIT;
	enum line_state state = LINE_NONE;
	int status = RP_OK;

	while (status == RP_OK && (state = lines_next(&c->lines, &why)) < LINE_NONE) {
		r->at = c->lines.number;
		r->log->files.items[r->file].lines = c->lines.number;
		if (state == LINE_TOO_LONG)
			curve_lost(r, "a line that is longer than %llu bytes (limit line-bytes)",
				(unsigned long long)r->log->limits->line_bytes);
		else
			status = take_line(c, c->lines.text, state == LINE_LAST, e);
	}
	if (status == RP_OK && state == LINE_FAILED)
		status = curve_broke(r, &why, e);
	return status;
}

static int probe(const char *name, const char *head, size_t n);

static int read_console(struct curve_reading *r, struct error *e)
{
	struct console *c = calloc(1, sizeof *c);

	if (!c || !(c->plain = malloc(PLAIN_MAX)) || !(c->forms = console_forms_new())) {
		free(c ? c->plain : NULL);
		free(c);
		return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for reading a console log");
	}
	c->r = r;
	c->before = c->epoch = c->version = c->batches = NAN;
	c->marks = (struct console_marks){
		.r = r, .last_x = NAN, .mark_x = NAN, .mark_kind = -1, .overflow_of = -1};
	c->anything = probe(r->name, r->head, r->head_n) < 2;
	console_index_init(&c->index);
	for (size_t i = 0; i < CONSOLE_KNOWN_SERIES; i++)
		c->known[i].series = CURVE_NONE;
	console_compile_patterns(c);
	size_t first = r->log->marks.count;
	lines_init(&c->lines, r->source, r->log->limits->line_bytes);
	c->lines.piece = PIECE;
	int status = read_lines(c, e);
	if (status == RP_OK)
		status = console_flush_bar(c, e);
	if (status == RP_OK) {
		console_put_at_steps(c);
		console_put_marks_at_epochs(c, first);
		say_writer(c);
	}
	array_release(&c->epoch_rows);
	lines_release(&c->lines);
	console_release_patterns(c);
	console_forms_free(c->forms);
	free(c->plain);
	free(c);
	return status;
}

/* Recognising ---------------------------------------------------------------------------------- */

/* Whether a line of a file's beginning is one of a known trainer's. */
static bool is_known(const struct console_index *x, struct slice text, char *plain)
{
	struct console_hit hits[CONSOLE_HITS_MAX];
	struct console_line l = {.text = text};
	struct console_found m;

	if (console_keys_find(&x->keys, text, hits) == 0)
		return false;
	l.text = (struct slice){plain, console_plain(text, plain, NULL)};
	console_label(&l);
	size_t n = console_keys_find(&x->keys, l.text, hits);
	for (size_t i = 0; i < n; i++)
		if (hits[i].key < console_mark_count && console_mark_is_banner(hits[i].key))
			return true;
	return console_recognise(x, &l, hits, n, &m) && m.shape->how != CONSOLE_TURN;
}

/* A zero beside another: the hole that a crash or a log that was cut short left, not UTF-16. */
static bool in_hole(struct slice head, size_t i)
{
	return head.p[i] == '\0' &&
	       ((i > 0 && head.p[i - 1] == '\0') || (i + 1 < head.n && head.p[i + 1] == '\0'));
}

/* Text, coded as programs print it, not UTF-16 and nothing compressed. */
static bool is_text(struct slice head)
{
	if (head.n == 0 || (unsigned char)head.p[0] >= 0xfd)
		return false;
	for (size_t i = 0; i < head.n; i++)
		if ((unsigned char)head.p[i] < ' ' && !memchr("\n\r\t\b\a\f\v\x1b", head.p[i], 8) &&
			!in_hole(head, i))
			return false;
	return true;
}

/* Programs and documents quote logs. */
static bool is_document(const char *name)
{
	static const char *const ends[] = {".md", ".rst", ".py", ".sh", ".slurm", ".ipynb", ".html",
		".c", ".h", ".cu", ".json", ".jsonl", ".yaml", ".yml", ".tex", ".csv", ".tsv"};

	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
		if (slice_ends(slice_of(name), slice_of(ends[i])))
			return true;
	return false;
}

static int probe(const char *name, const char *head, size_t n)
{
	struct slice text = {head, n < CURVE_HEAD ? n : CURVE_HEAD};
	bool known = false;

	if (!is_text(text))
		return 0;
	if (is_document(name))
		return 1;
	struct console_index *x = malloc(sizeof *x);
	char *plain = malloc(CURVE_HEAD);
	if (x && plain) {
		console_index_init(x);
		while (!known && text.n > 0) {
			size_t end = 0;
			while (end < text.n && text.p[end] != '\n' && text.p[end] != '\r')
				end++;
			known = is_known(x, (struct slice){text.p, end}, plain);
			end += end < text.n;
			text = (struct slice){text.p + end, text.n - end};
		}
	}
	free(x);
	free(plain);
	return known ? 2 : 1;
}

/* How sure the line at hand makes that it is one of a training log; of a progress bar its parts. */
static int judge_line(const struct console_index *x, struct slice line, char *plain)
{
	int best = 0;

	while (line.n > 0 && best < 2) {
		const char *end = memchr(line.p, '\r', line.n);
		struct slice part = {line.p, end ? (size_t)(end - line.p) : line.n};
		struct console_line l = {.text = part};
		enum curve_unit unit;
		double at;
		size_t used = end ? part.n + 1 : part.n;
		line = (struct slice){line.p + used, line.n - used};
		if (part.n >= PLAIN_MAX)
			continue;
		if (is_known(x, part, plain)) {
			best = 2;
		} else if (best == 0 && slice_find(part, SLICE("oss")) != SIZE_MAX) {
			l.text = (struct slice){plain, console_plain(part, plain, NULL)};
			console_label(&l);
			l.text = (struct slice){l.text.p + l.begin, l.text.n - l.begin};
			best = guess_line(NULL, l.text, &at, &unit);
		}
	}
	return best;
}

/*
 * A job prints much before its first step: its script, its environment, its own source. Two passes
 * over the bytes.
 */
static int search(const struct source *source, uint64_t most, int enough, uint64_t *used)
{
	struct lines lines;
	struct error ignored = ERROR_INIT;
	struct source part = *source;
	enum line_state state;
	int best = 0;

	struct console_index *x = malloc(sizeof *x);
	char *plain = malloc(PLAIN_MAX);
	*used = 0;
	part.size = part.size < most ? part.size : most;
	if (x && plain) {
		console_index_init(x);
		lines_init(&lines, &part, PIECE);
		lines.piece = PLAIN_MAX;
		while (best < enough && (state = lines_next(&lines, &ignored)) < LINE_NONE) {
			int answer = state == LINE_TOO_LONG ? 0 : judge_line(x, lines.text, plain);
			best = answer > best ? answer : best;
			*used = lines.offset + lines.text.n;
		}
		lines_release(&lines);
	}
	free(x);
	free(plain);
	return best;
}

const struct curve_reader curve_reader_console = {
	.name = "console", .probe = probe, .read = read_console, .search = search};
