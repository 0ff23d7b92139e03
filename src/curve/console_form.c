/* SPDX-License-Identifier: MIT */
/*
 * Rows of one trainer differ in their numbers only. The form of a row that was taken apart is kept:
 * the text between its numbers, how each number is written, and which series each is of. A later
 * line of that form is compared and read in one pass, and nothing of it is searched for.
 *
 * A line has the form only where taking it apart would go the same way step by step, so that its
 * points are the same with forms and without. What that rests on: no key of console.def has a
 * digit or more than a space at its end, so that keys stand in the text between numbers
 * (console_is_alone()); names stand there too; digits of numbers are looked at by nothing but what
 * reads the number, as long as sign, thousands, point and exponent are where they were (in
 * dictionaries, whose heads are not matched, these may differ as well); and of spaces before a
 * number only matters whether there are any. The time is looked for anew. Who adds a flag to
 * console.def that looks at x or a value must see to it here too (x_of(), take_fitting()).
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "curve/console_parts.h"
#include "curve/number.h"

#define FORMS_MAX 16u
#define LINE_BYTES 2048u /* of a line whose form is kept */
#define NUMBERS_MAX 96u  /* of such a line */
#define NAME_BYTES 2048u
#define WORDS_MAX (LINE_BYTES / 8 + NUMBERS_MAX + 1)
#define LEARNED_FREE 64u /* forms that are learned though few lines had them */
#define LEARNED_SHARE 4u /* then one in so many lines that had one */
#define WHOLE_DIGITS 15u /* that console_match() takes for a number */

/* Eight bytes of text: equal in `mask`, digits in `digit`. */
struct word {
	uint64_t text, mask, digit;
};

/* Text, and the number behind it. */
struct piece {
	uint16_t first_word, n;
	bool spaces;     /* more may follow the one at its end */
	bool has_number; /* all but the last piece */
	uint8_t written;
	bool loosely; /* only commas must be as they were */
};

/* A place in any line of the form. */
struct point {
	uint16_t piece, offset;
	bool at_number;
};

struct form_field {
	uint32_t series; /* CONSOLE_NO_SERIES: ask for it as for any line's */
	uint16_t piece;  /* the number's, where there is a series */
	struct point begin, end;
	uint16_t name_at, name_n;
	bool quoted;
};

struct form {
	const struct console_shape *shape;
	int32_t rank;
	size_t piece_count, field_count, word_count, name_bytes;
	uint16_t x_piece; /* its number is x */
	bool x_quoted;
	struct point x_begin, x_end;
	struct point clock; /* the end of where the time is looked for */
	struct piece pieces[NUMBERS_MAX + 1];
	struct form_field fields[CONSOLE_TAKEN_MAX];
	struct word words[WORDS_MAX];
	char names[NAME_BYTES];
};

/* Where the pieces of a line are. */
struct fit {
	const char *texts[NUMBERS_MAX + 1], *at[NUMBERS_MAX + 1], *ends[NUMBERS_MAX + 1];
	struct number numbers[NUMBERS_MAX + 1];
};

struct console_forms {
	size_t count, oldest;
	uint64_t fitted, learned;
	size_t newest;                /* the form of the line before */
	size_t behind[FORMS_MAX];     /* the form that came behind each one last */
	struct word begin[FORMS_MAX]; /* the first word of each */
	struct form forms[FORMS_MAX];
	struct fit fit;
};

struct console_forms *console_forms_new(void)
{
	return calloc(1, sizeof(struct console_forms));
}

void console_forms_free(struct console_forms *forms)
{
	free(forms);
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Fitting -------------------------------------------------------------------------------------- */

static uint64_t load(const char *p)
{
	uint64_t w;

	memcpy(&w, p, sizeof w);
	return w;
}

/* A low half of a byte that is above 9 carries into the bit above it. */
static bool word_fits(const struct word *w, uint64_t text)
{
	uint64_t above = ((text & w->digit) + 0x0606060606060606u) & 0x1010101010101010u;

	return ((text ^ w->text) & w->mask) == 0 && above == 0;
}

static bool is_written_like(const struct number *n, const struct piece *piece)
{
	unsigned differs = n->written ^ piece->written;

	if (piece->loosely)
		return !(differs & NUMBER_GROUPED);
	return differs == 0 && n->whole <= WHOLE_DIGITS;
}

/* Whether the line is of the form, and where its pieces are then. */
static bool fits(const struct form *f, struct slice line, struct fit *fit)
{
	const char *p = line.p;

	for (size_t i = 0; i < f->piece_count; i++) {
		const struct piece *piece = &f->pieces[i];
		const struct word *w = &f->words[piece->first_word];
		fit->texts[i] = p;
		for (size_t k = 0; k < piece->n; k += 8, w++)
			if (!word_fits(w, load(p + k)))
				return false;
		p += piece->n;
		if (piece->spaces)
			while (*p == ' ')
				p++;
		if (!piece->has_number)
			break;
		struct number *n = &fit->numbers[i];
		fit->at[i] = p;
		p = number_scan(p, n);
		if (!p || !is_written_like(n, piece))
			return false;
		fit->ends[i] = p;
	}
	return p == line.p + line.n;
}

static const char *place(const struct fit *fit, const struct point *at)
{
	return at->at_number ? fit->at[at->piece] : fit->texts[at->piece] + at->offset;
}

static struct slice between(const struct fit *fit, const struct point *a, const struct point *b)
{
	const char *begin = place(fit, a);

	return (struct slice){begin, (size_t)(place(fit, b) - begin)};
}

static bool x_of(const struct form *f, const struct fit *fit, double *x)
{
	const struct number *n = &fit->numbers[f->x_piece];
	float resolution;

	if (f->shape->how == CONSOLE_ON_LINE) {
		*x = (double)n->mantissa;
		return *x > 0 || !(f->shape->flags & CONSOLE_AT_LAUNCH);
	}
	return number_value(n, between(fit, &f->x_begin, &f->x_end), x, &resolution) &&
	       isfinite(*x);
}

static int take_field(struct console *c, struct console_place *at, const struct form *f,
	const struct form_field *to, const struct fit *fit, struct console_row *row,
	struct error *e)
{
	const struct console_shape *s = f->shape;
	struct console_field field = {.name = {f->names + to->name_at, to->name_n},
		.value = between(fit, &to->begin, &to->end),
		.quoted = to->quoted};
	double value;
	float resolution;
	int status;

	if (to->series == CONSOLE_NO_SERIES ||
		!number_value(&fit->numbers[to->piece], field.value, &value, &resolution) ||
		(s->flags & CONSOLE_EACH_RANK && value == -1))
		status = console_add_field(c, at, &field, e);
	else
		status = console_put(c, at, to->series, value,
			console_resolution_of(s, to->quoted, value, resolution), e);
	if (status == RP_OK && s->flags & CONSOLE_MEGATRON)
		console_notice(c, at, &field, row);
	return status;
}

static int take_fitting(struct console *c, const struct form *f, const struct fit *fit,
	struct slice line, double x, struct error *e)
{
	const struct console_shape *s = f->shape;
	struct console_place at = {.shape = s, .x = x, .unit = s->unit, .rank = f->rank};
	struct console_row row = {false, NAN};
	size_t first;

	c->cut = NULL;
	c->bar_follows = false;
	size_t before = (size_t)(place(fit, &f->clock) - line.p);
	c->r->wall = before < CONSOLE_CLOCK_MIN ? (double)NAN
						: console_clock((struct slice){line.p, before});
	if (c->bar.count > 0 && console_flush_bar(c, e) < 0)
		return e->status;
	if (s->flags & CONSOLE_BITS)
		c->note = CONSOLE_NOTE_BITS;
	first = c->r->log->points.count;
	for (size_t i = 0; i < f->field_count; i++)
		if (take_field(c, &at, f, &f->fields[i], fit, &row, e) < 0)
			return e->status;
	if (s->flags & CONSOLE_MEGATRON && console_end_row(c, &at, &row, e) < 0)
		return e->status;
	if (!(s->flags & CONSOLE_AS_STEPS))
		return RP_OK;
	struct console_field epoch = {
		.value = between(fit, &f->x_begin, &f->x_end), .quoted = f->x_quoted};
	return console_keep_epoch_row(c, &at, &epoch, first, e);
}

bool console_take_form(struct console *c, struct slice line, int *status, struct error *e)
{
	struct console_forms *forms = c->forms;
	uint64_t begin;
	double x;

	if (forms->count == 0 || line.n == 0 || line.n > LINE_BYTES || c->below_count > 0)
		return false;
	begin = load(line.p);
	/* The one that came next the last time is tried first. */
	size_t next = forms->behind[forms->newest];
	for (size_t i = 0; i < forms->count; i++) {
		size_t k = i == 0 ? next : i - (i <= next);
		if (!word_fits(&forms->begin[k], begin))
			continue;
		const struct form *f = &forms->forms[k];
		if (!fits(f, line, &forms->fit) || !x_of(f, &forms->fit, &x))
			continue;
		forms->behind[forms->newest] = k;
		forms->newest = k;
		forms->fitted++;
		*status = take_fitting(c, f, &forms->fit, line, x, e);
		return true;
	}
	return false;
}

/* Learning ------------------------------------------------------------------------------------- */

/* A line whose form is being made. Offsets are in the text that was taken apart, without escapes.
 */
struct learning {
	struct form *f;
	struct slice raw; /* the line as it stands in the file */
	char text[LINE_BYTES + LINES_PADDING];
	size_t n;
	uint16_t from[LINE_BYTES + 1]; /* where each byte stands in the line */
	bool named[LINE_BYTES];        /* it belongs to a name */
	size_t label,
		prefix; /* digits between them may change, one for one; what is before stays */
	size_t begins[NUMBERS_MAX + 1], ends[NUMBERS_MAX + 1]; /* of numbers */
	size_t texts[NUMBERS_MAX + 1];                         /* of texts, in the line */
};

static bool set_up(struct learning *g, struct slice raw, const struct console_line *l,
	const struct console_found *m)
{
	const struct console_shape *s = m->shape;

	g->raw = raw;
	g->n = l->text.n;
	if (l->text.p == raw.p) {
		memcpy(g->text, raw.p, raw.n);
		for (size_t i = 0; i < raw.n; i++)
			g->from[i] = (uint16_t)i;
	} else {
		g->n = console_plain(raw, g->text, g->from);
	}
	g->from[g->n] = (uint16_t)raw.n;
	memset(g->text + g->n, '\n', LINES_PADDING);
	g->label = l->begin;
	g->prefix = s->how == CONSOLE_ON_LINE || s->style == CONSOLE_DICT ? m->head.begin : 0;
	return g->n == l->text.n;
}

static size_t offset_of(const struct console_line *l, struct slice part)
{
	return (size_t)(part.p - l->text.p);
}

static void mark_names(struct learning *g, const struct console *c, const struct console_line *l)
{
	memset(g->named, 0, g->n);
	for (size_t i = 0; i < c->taken_count; i++) {
		struct slice name = c->taken[i].field.name;
		memset(g->named + offset_of(l, name), true, name.n);
	}
}

/* Whether a byte of the line, which escape sequences may surround, is a digit before the row. */
static bool may_change(const struct learning *g, size_t raw, size_t *next)
{
	while (*next < g->n && g->from[*next] < raw)
		++*next;
	size_t i = *next;
	return i < g->n && g->from[i] == raw && is_digit(g->text[i]) && !g->named[i] &&
	       i >= g->label && i < g->prefix;
}

/* Add the text of the line from `begin` to `end` to the form's. */
static bool add_text(struct learning *g, size_t begin, size_t end, bool before_number)
{
	struct form *f = g->f;
	struct piece *piece = &f->pieces[f->piece_count];
	size_t n = end - begin, run = 0, plain = 0;

	while (before_number && run < n && g->raw.p[end - 1 - run] == ' ')
		run++;
	/* A space may be a part of an escape sequence. */
	if (run > 0 && run < n && g->raw.p[end - 1 - run] == '\x1b')
		return false;
	n -= run > 1 ? run - 1 : 0;
	size_t words = (n + 7) / 8;
	if (f->word_count + words > WORDS_MAX)
		return false;
	*piece = (struct piece){
		.first_word = (uint16_t)f->word_count, .n = (uint16_t)n, .spaces = run > 0};
	for (size_t k = 0; k < words; k++) {
		char text[8] = {0}, mask[8] = {0}, digit[8] = {0};
		for (size_t i = 0; i < 8 && 8 * k + i < n; i++) {
			size_t at = begin + 8 * k + i;
			bool changes = may_change(g, at, &plain);
			text[i] = g->raw.p[at];
			mask[i] = (char)(changes ? 0xf0 : 0xff);
			digit[i] = changes ? 0x0f : 0;
		}
		f->words[f->word_count++] = (struct word){load(text), load(mask), load(digit)};
	}
	g->texts[f->piece_count] = begin;
	return true;
}

/* Whether a number begins at `i`, which is at the end of no other one, and where it ends. */
static bool number_at(const struct learning *g, size_t i, size_t *end, struct number *n)
{
	const char *p = g->text + i;

	if (!is_digit(*p) && !(*p == '-' && is_digit(p[1]) && (i == 0 || !is_digit(p[-1]))))
		return false;
	*end = (size_t)(number_scan(p, n) - g->text);
	for (size_t k = i; k < *end; k++)
		if (g->named[k] || g->from[k] != g->from[i] + (k - i))
			return false;
	return true;
}

/* Part the line into texts and numbers. */
static bool part(struct learning *g)
{
	struct form *f = g->f;
	struct number n;
	size_t i = g->label > g->prefix ? g->label : g->prefix, begin = 0, end;

	while (i < g->n) {
		if (!number_at(g, i, &end, &n)) {
			/* The rest of digits that belong to a name is no number. */
			bool digit = is_digit(g->text[i]);
			for (i++; digit && i < g->n && is_digit(g->text[i]);)
				i++;
			continue;
		}
		/* Whether a comma ends a value may depend on the digits behind it. */
		if (f->piece_count == NUMBERS_MAX || n.whole > WHOLE_DIGITS ||
			(g->text[end] == ',' && is_digit(g->text[end + 1])) ||
			!add_text(g, begin, g->from[i], true))
			return false;
		struct piece *piece = &f->pieces[f->piece_count];
		piece->has_number = true;
		piece->written = (uint8_t)n.written;
		g->begins[f->piece_count] = i;
		g->ends[f->piece_count] = end;
		f->piece_count++;
		begin = (size_t)g->from[end - 1] + 1;
		i = end;
	}
	if (!add_text(g, begin, g->raw.n, false))
		return false;
	f->piece_count++;
	return true;
}

/* The place of a byte of the text that begins something. */
static bool point_at(const struct learning *g, size_t at, struct point *point)
{
	const struct form *f = g->f;
	size_t raw = g->from[at];

	for (size_t i = 0; i < f->piece_count; i++) {
		const struct piece *piece = &f->pieces[i];
		if (piece->has_number && at >= g->ends[i])
			continue;
		if (piece->has_number && at >= g->begins[i]) {
			*point = (struct point){(uint16_t)i, 0, true};
			return at == g->begins[i];
		}
		*point = (struct point){(uint16_t)i, (uint16_t)(raw - g->texts[i]), false};
		return raw >= g->texts[i] && raw - g->texts[i] <= piece->n;
	}
	return false;
}

/* The place behind a byte of the text. */
static bool point_behind(const struct learning *g, size_t at, struct point *point)
{
	for (size_t i = 0; i + 1 < g->f->piece_count; i++)
		if (at + 1 == g->ends[i]) {
			*point = (struct point){(uint16_t)(i + 1), 0, false};
			return true;
		}
	if (!point_at(g, at, point) || point->at_number)
		return false;
	point->offset++;
	return true;
}

/* The piece whose number is the whole of a part of the text, or SIZE_MAX. */
static size_t number_of(const struct learning *g, size_t at, size_t n)
{
	for (size_t i = 0; i + 1 < g->f->piece_count; i++)
		if (g->begins[i] == at && g->ends[i] == at + n)
			return i;
	return SIZE_MAX;
}

/* Whether a value is none whatever its digits are. */
static bool is_never_number(struct slice value)
{
	for (size_t i = 0; i < value.n; i++)
		if (!memchr("0123456789+-.,eEnNaAiIfFtTyYkKMBG", value.p[i], 33))
			return true;
	return value.n == 0;
}

/* Where a value is, if it stands in one piece in the line. */
static bool place_value(
	const struct learning *g, size_t at, size_t n, struct point *begin, struct point *end)
{
	return n > 0 && (size_t)(g->from[at + n - 1] - g->from[at]) == n - 1 &&
	       point_at(g, at, begin) && point_behind(g, at + n - 1, end);
}

static bool add_field(struct learning *g, const struct console_taken *t, size_t name, size_t value)
{
	struct form *f = g->f;
	const struct console_field *field = &t->field;

	if (is_never_number(field->value))
		return true;
	struct form_field *to = &f->fields[f->field_count];
	if (!place_value(g, value, field->value.n, &to->begin, &to->end) ||
		f->name_bytes + field->name.n > NAME_BYTES)
		return false;
	size_t piece = number_of(g, value, field->value.n);
	bool known = t->series != CONSOLE_NO_SERIES && piece != SIZE_MAX;
	to->series = known ? t->series : CONSOLE_NO_SERIES;
	to->piece = (uint16_t)(known ? piece : 0);
	to->quoted = field->quoted;
	to->name_at = (uint16_t)f->name_bytes;
	to->name_n = (uint16_t)field->name.n;
	memcpy(f->names + f->name_bytes, g->text + name, field->name.n);
	f->name_bytes += field->name.n;
	f->field_count++;
	if (known && f->shape->style == CONSOLE_DICT)
		f->pieces[piece].loosely = true;
	return true;
}

static bool add_fields(struct learning *g, const struct console *c, const struct console_line *l)
{
	for (size_t i = 0; i < c->taken_count; i++) {
		const struct console_taken *t = &c->taken[i];
		if (!t->is_x &&
			!add_field(g, t, offset_of(l, t->field.name), offset_of(l, t->field.value)))
			return false;
	}
	return true;
}

static bool find_x(struct learning *g, const struct console *c, const struct console_line *l,
	const struct console_found *m)
{
	struct form *f = g->f;
	size_t piece;

	if (f->shape->how == CONSOLE_ON_LINE) {
		for (piece = 0; piece + 1 < f->piece_count; piece++)
			if (g->begins[piece] == m->head.x_at)
				break;
		f->x_piece = (uint16_t)piece;
		return piece + 1 < f->piece_count && f->pieces[piece].written == 0;
	}
	struct slice value = c->x_field.value;
	size_t at = offset_of(l, value);
	piece = number_of(g, at, value.n);
	f->x_piece = (uint16_t)piece;
	f->x_quoted = c->x_field.quoted;
	if (piece == SIZE_MAX || !place_value(g, at, value.n, &f->x_begin, &f->x_end))
		return false;
	f->pieces[piece].loosely = f->shape->style == CONSOLE_DICT;
	return true;
}

/* The time is looked for before the row's key or brace: no escape sequence may stand in there. */
static bool find_clock(struct learning *g, const struct console_found *m)
{
	size_t end = m->shape->style == CONSOLE_DICT ? m->head.fields : m->key;

	g->f->clock = (struct point){0};
	return end == 0 || (g->from[end - 1] == end - 1 && point_behind(g, end - 1, &g->f->clock));
}

static bool learn(struct learning *g, const struct console *c, struct slice raw,
	const struct console_line *l, const struct console_found *m)
{
	struct form *f = g->f;

	f->shape = m->shape;
	f->rank = m->shape->flags & CONSOLE_EACH_RANK ? l->rank : -1;
	f->piece_count = f->field_count = f->word_count = f->name_bytes = 0;
	if (!set_up(g, raw, l, m))
		return false;
	mark_names(g, c, l);
	return part(g) && add_fields(g, c, l) && find_x(g, c, l, m) && find_clock(g, m);
}

/* Whether the row is of a kind whose form says all. */
static bool can_learn(const struct console *c, struct slice raw, const struct console_line *l,
	const struct console_found *m)
{
	const struct console_forms *forms = c->forms;
	const struct console_shape *s = m->shape;

	return (s->how == CONSOLE_ON_LINE || s->how == CONSOLE_X_IS_FIELD) &&
	       !(s->flags & (CONSOLE_HELD_OUT | CONSOLE_DATA_BEFORE | CONSOLE_AT_LAST)) &&
	       !(s->how == CONSOLE_ON_LINE && s->style == CONSOLE_DICT) && !c->cut &&
	       c->pattern_count == 0 && raw.n <= LINE_BYTES && c->taken_count > 0 &&
	       c->taken_count <= CONSOLE_TAKEN_MAX &&
	       forms->learned <= LEARNED_FREE + forms->fitted / LEARNED_SHARE &&
	       slice_find(l->text, SLICE("%|")) == SIZE_MAX;
}

void console_learn_form(struct console *c, struct slice raw, const struct console_line *l,
	const struct console_found *m, const struct console_hit *hits, size_t n)
{
	struct console_forms *forms = c->forms;
	struct learning g;

	if (!can_learn(c, raw, l, m) || !console_is_alone(&c->index, hits, n, m))
		return;
	size_t to = forms->count < FORMS_MAX ? forms->count : forms->oldest;
	forms->learned++;
	g.f = &forms->forms[to];
	bool whole = learn(&g, c, raw, l, m);
	/* A form that is not whole fits nothing. */
	forms->begin[to] = whole && g.f->pieces[0].n > 0
				   ? g.f->words[0]
				   : (struct word){0, whole ? 0 : UINT64_MAX, 0};
	if (!whole)
		return;
	if (to == forms->count)
		forms->count++;
	else
		forms->oldest = (forms->oldest + 1) % FORMS_MAX;
	forms->behind[forms->newest] = to;
	forms->newest = to;
}
