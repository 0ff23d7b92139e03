/* SPDX-License-Identifier: MIT */
/*
 * Recognising the lines that console.def describes, and guessing at those of programs that it does
 * not know.
 */
#include <math.h>
#include <string.h>

#include "curve/console.h"

#define FIELD(name, role, mean, other) {{name, sizeof name - 1}, CURVE_##role, CURVE_##mean, other},
#define SHAPE(trainer, how, key, head, style, unit, mean, flags, fields)                           \
	{trainer, CONSOLE_##how, {key, sizeof key - 1}, head, CONSOLE_##style, CURVE_##unit,       \
		CURVE_##mean, flags,                                                               \
		(const struct console_field_row[]){fields{{NULL, 0}, 0, 0, NULL}}},

static const struct console_shape shapes[] = {
#include "curve/console.def"
};

#define SHAPES (sizeof shapes / sizeof *shapes)

_Static_assert(SHAPES <= CONSOLE_SHAPES_MAX, "a row of shapes is a bit of 64");

static bool has_digit(struct slice text)
{
	for (size_t i = 0; i < text.n; i++)
		if (text.p[i] >= '0' && text.p[i] <= '9')
			return true;
	return false;
}

void console_index_init(struct console_index *x)
{
	size_t n = console_mark_count;

	memset(x, 0, sizeof *x);
	memcpy(x->texts, console_mark_keys, n * sizeof *x->texts);
	for (size_t i = 0; i < SHAPES; i++) {
		size_t at = console_mark_count;
		while (at < n && !slice_eq(x->texts[at], shapes[i].key))
			at++;
		if (at == n)
			x->texts[n++] = shapes[i].key;
		x->rows[at] |= (uint64_t)1 << i;
		if (shapes[i].head)
			x->within[i] = slice_find(slice_of(shapes[i].head), shapes[i].key);
	}
	x->steady_keys = true;
	for (size_t i = 0; i < n; i++)
		x->steady_keys = x->steady_keys && !has_digit(x->texts[i]) &&
				 !slice_ends(x->texts[i], SLICE("  "));
	console_keys_init(&x->keys, x->texts, n);
}

const struct console_field_row *console_field_of(const struct console_shape *s, struct slice name)
{
	for (const struct console_field_row *f = s->fields; f->name.p; f++)
		if (slice_eq(f->name, name))
			return f;
	return NULL;
}

/* Rows ----------------------------------------------------------------------------------------- */

static bool is_word_byte(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '-';
}

/* Where the head of a row would begin, or SIZE_MAX. */
static size_t head_begin(
	const struct console_shape *s, const struct console_line *l, size_t key, size_t within)
{
	size_t at = l->begin;

	if (s->flags & CONSOLE_FIRST) {
		while (at < l->text.n && l->text.p[at] == ' ')
			at++;
		return at;
	}
	if (within == SIZE_MAX || key < within)
		return SIZE_MAX;
	at = key - within;
	return at > 0 && is_word_byte(l->text.p[at - 1]) && is_word_byte(l->text.p[at]) ? SIZE_MAX
											: at;
}

struct slice console_last_word(struct slice name)
{
	size_t at = name.n;

	while (at > 0 && name.p[at - 1] != ' ' && name.p[at - 1] != '\t')
		at--;
	return (struct slice){name.p + at, name.n - at};
}

bool console_shape_field(
	const struct console_shape *s, struct slice text, size_t *at, struct console_field *f)
{
	if (!console_next(text, s->style, at, f))
		return false;
	if (s->flags & CONSOLE_ONE_WORD)
		f->name = console_last_word(f->name);
	return true;
}

/* Whether the line has a field called so that is a number. */
static bool find_number(const struct console_shape *s, struct slice text, size_t at,
	const char *name, double *value)
{
	struct console_field f;
	float resolution;

	while (console_shape_field(s, text, &at, &f))
		if (slice_is(f.name, name))
			return curve_number(f.value, false, value, &resolution) && isfinite(*value);
	return false;
}

/* A dictionary counts only where a loss is in it, or what ends a training. */
static bool has_measure(const struct console_shape *s, struct slice text, size_t at)
{
	struct console_field f;

	while (console_shape_field(s, text, &at, &f)) {
		enum curve_role role = curve_meaning_of(f.name).role;
		if (role == CURVE_LOSS || role == CURVE_VALID_LOSS || role == CURVE_LR ||
			console_field_of(s, f.name))
			return true;
	}
	return false;
}

/* Where the fields of a row begin whose x is a field. */
static size_t fields_begin(const struct console_shape *s, const struct console_line *l, size_t key)
{
	if (s->style != CONSOLE_DICT)
		return l->begin;
	/* The last brace that opens before the key. */
	for (size_t i = key; i > l->begin; i--)
		if (l->text.p[i - 1] == '{')
			/* A JSON document a line is for another reader. */
			return s->key.p[0] == '"' && i - 1 == l->begin ? SIZE_MAX : i - 1;
	return SIZE_MAX;
}

static bool match_fields(const struct console_shape *s, const struct console_line *l, size_t key,
	struct console_head *h)
{
	size_t begin = fields_begin(s, l, key);

	*h = (struct console_head){NAN, NAN, NAN, NAN, begin, begin, SIZE_MAX};
	return begin != SIZE_MAX && find_number(s, l->text, begin, s->head, &h->x) &&
	       has_measure(s, l->text, begin);
}

bool console_bar(struct slice text, double *n, double *total)
{
	size_t done = slice_find(text, SLICE("%|"));
	struct console_head h;

	if (done == SIZE_MAX)
		return false;
	for (size_t bar = done + 2; bar < text.n; bar++)
		if (text.p[bar] == '|' && console_match(text, bar, "| %x/%n [", &h) != SIZE_MAX &&
			h.total > 0) {
			*n = h.x;
			*total = h.total;
			return h.x <= h.total;
		}
	return false;
}

bool console_bar_is_plain(struct slice text)
{
	size_t end = slice_find(text, SLICE("%|"));

	for (size_t i = 0; end != SIZE_MAX && i < end; i++)
		if (text.p[i] != ' ' && (text.p[i] < '0' || text.p[i] > '9'))
			return false;
	return end != SIZE_MAX;
}

/*
 * A progress bar of tqdm: "Epoch 3:  42%|███   | 210/500 [00:10<00:14, 20.5it/s, loss=0.3]". x is
 * the epoch with the part of it that is done.
 */
static bool match_bar(const struct console_line *l, size_t key, struct console_head *h)
{
	struct slice label = {l->text.p, key};
	size_t epoch = slice_find(label, SLICE("poch ")), done = slice_find(label, SLICE("%|"));
	double n, total;

	if (epoch == SIZE_MAX || done == SIZE_MAX || epoch > done ||
		!console_bar(l->text, &n, &total))
		return false;
	size_t end = console_match(l->text, epoch, "poch %e", h);
	if (end == SIZE_MAX)
		return false;
	/* "Epoch 1/20" counts from 1, Lightning's "Epoch 0" from 0. */
	h->x = h->epoch + n / total - (l->text.p[end] == '/');
	h->done = n;
	h->total = total;
	h->fields = key + 6;
	return true;
}

/* "  210/469 ━━━━ 1s 2ms/step - accuracy: 0.1 - loss: 2.3" below "Epoch 3/10". */
static bool match_keras(const struct console_line *l, struct console_head *h)
{
	return console_match(l->text, l->begin, " %x/%n ", h) != SIZE_MAX && h->total > 0 &&
	       h->x <= h->total;
}

static bool match_shape(const struct console_index *x, const struct console_shape *s,
	const struct console_line *l, size_t key, struct console_found *m)
{
	size_t at;

	m->shape = s;
	m->key = key;
	switch (s->how) {
	case CONSOLE_ON_LINE:
	case CONSOLE_BELOW:
		at = head_begin(s, l, key, x->within[s - shapes]);
		at = at != SIZE_MAX ? console_match(l->text, at, s->head, &m->head) : at;
		return at != SIZE_MAX && (!(s->flags & CONSOLE_WHOLE) || at == l->text.n);
	case CONSOLE_X_IS_FIELD:
		return match_fields(s, l, key, &m->head);
	case CONSOLE_BAR:
		return match_bar(l, key, &m->head);
	case CONSOLE_KERAS:
		return match_keras(l, &m->head);
	case CONSOLE_TURN:
		return console_match(l->text, l->begin, s->head, &m->head) == l->text.n;
	}
	return false;
}

bool console_recognise(const struct console_index *x, const struct console_line *l,
	const struct console_hit *hits, size_t n, struct console_found *m)
{
	uint64_t rows = 0;

	for (size_t k = 0; k < n; k++)
		rows |= x->rows[hits[k].key];
	for (; rows; rows &= rows - 1) {
		size_t i = (size_t)__builtin_ctzll(rows);
		for (size_t k = 0; k < n; k++)
			if (x->rows[hits[k].key] >> i & 1 &&
				match_shape(x, &shapes[i], l, hits[k].at, m))
				return true;
	}
	return false;
}

/*
 * What another row of the table does with a line before this one is tried must not depend on the
 * values of its fields: heads look at how numbers are written only.
 */
bool console_is_alone(const struct console_index *x, const struct console_hit *hits, size_t n,
	const struct console_found *m)
{
	uint64_t rows = 0, before = ((uint64_t)1 << (m->shape - shapes)) - 1;

	if (!x->steady_keys || n == CONSOLE_HITS_MAX)
		return false;
	for (size_t i = 0; i < n; i++) {
		if (hits[i].key < console_mark_count)
			return false;
		rows |= x->rows[hits[i].key] & before;
	}
	if (m->shape->style == CONSOLE_DICT && rows != 0)
		return false;
	for (; rows; rows &= rows - 1) {
		enum console_how how = shapes[__builtin_ctzll(rows)].how;
		if (how != CONSOLE_ON_LINE && how != CONSOLE_BELOW)
			return false;
	}
	return true;
}

/* Guesses -------------------------------------------------------------------------------------- */

/* Words before x, and its unit. */
static const struct {
	const char *word;
	enum curve_unit unit;
} x_words[] = {{"global_step", CURVE_STEPS}, {"global step", CURVE_STEPS}, {"step", CURVE_STEPS},
	{"iteration", CURVE_STEPS}, {"iter", CURVE_STEPS}, {"update", CURVE_STEPS},
	{"batch", CURVE_CALLS}, {"epoch", CURVE_EPOCHS}};

/* A word's place in the text, whatever its capitals, not as a part of another word. */
static size_t find_word(struct slice text, const char *word)
{
	size_t n = strlen(word);

	for (size_t i = 0; i + n <= text.n; i++) {
		size_t k = 0;
		while (k < n && (text.p[i + k] | 0x20) == (word[k] | 0x20))
			k++;
		if (k == n && (i == 0 || !is_word_byte(text.p[i - 1])) &&
			(i + n == text.n || !is_word_byte(text.p[i + n])))
			return i + n;
	}
	return SIZE_MAX;
}

/* A number with a fraction: so many epochs, but no count of steps ("ms/batch 8.11"). */
static bool take_fraction(struct slice text, size_t at, size_t end, double *value)
{
	float resolution;

	for (end++; end < text.n && text.p[end] >= '0' && text.p[end] <= '9'; end++)
		;
	return curve_number((struct slice){text.p + at, end - at}, false, value, &resolution);
}

/* "word 12", "word: 12", "word=12", "word [12/100]", "word #12": the number, and the one behind
 * '/'. */
static bool number_behind(struct slice text, const char *word, double *value, double *total)
{
	struct console_head h;
	size_t at = find_word(text, word);

	*total = NAN;
	if (at == SIZE_MAX)
		return false;
	while (at < text.n && memchr(" \t:=[(#'\"", text.p[at], 9))
		at++;
	size_t end = console_match(text, at, "%x", &h);
	if (end == SIZE_MAX)
		return false;
	*value = h.x;
	if (end + 1 < text.n && text.p[end] == '.' && text.p[end + 1] >= '0' &&
		text.p[end + 1] <= '9')
		return take_fraction(text, at, end, value);
	if (console_match(text, at, "%x/%n", &h) != SIZE_MAX ||
		console_match(text, at, "%x / %n", &h) != SIZE_MAX)
		*total = h.total;
	return true;
}

/*
 * "Epoch: [3][ 10/100]", "Epoch 3/7 [10/100]", "Train Epoch: 3 [640/6400 (10%)]": the epoch as it
 * is called, and how much of it is done. Whether the first one is 0 or 1 is not known of a log that
 * begins with another one. NAN where nothing is said of a place in the epoch.
 */
static double place_in_epoch(struct slice text)
{
	static const char *const forms[] = {"%e][ %x/%n", "%e [ %x/%n", "%e/%n [ %x/%n",
		"%e/%n] [ %x/%n", "%e] [ %x/%n", "%e | %x/ %n"};
	struct console_head h;
	size_t at = find_word(text, "epoch");

	while (at < text.n && memchr(" \t:=[(#", text.p[at], 7))
		at++;
	for (size_t i = 0; at < text.n && i < sizeof forms / sizeof *forms; i++)
		if (console_match(text, at, forms[i], &h) != SIZE_MAX && h.total > 0 &&
			h.x <= h.total)
			return h.epoch + h.x / h.total;
	return NAN;
}

bool console_guess_x(struct slice text, double *x, enum curve_unit *unit, bool *within)
{
	double epoch, epochs, total;
	bool has_epoch = number_behind(text, "epoch", &epoch, &epochs);

	*unit = CURVE_STEPS;
	*within = false;
	if (slice_starts(text, SLICE("Steps:")) && console_bar(text, x, &total))
		return true;
	for (size_t i = 0; i < sizeof x_words / sizeof *x_words; i++) {
		if (!number_behind(text, x_words[i].word, x, &total) ||
			(x_words[i].unit != CURVE_EPOCHS && *x != floor(*x)))
			continue;
		*unit = x_words[i].unit;
		/* What counts to a number of steps within an epoch is a part of it. */
		if (has_epoch && *unit != CURVE_EPOCHS && i > 1 && total > 0 && *x <= total) {
			*x = epoch + *x / total;
			*unit = CURVE_EPOCHS;
			*within = true;
		}
		double place = x_words[i].unit == CURVE_EPOCHS ? place_in_epoch(text) : NAN;
		if (!isnan(place)) {
			*x = place;
			*within = true;
		}
		return true;
	}
	return false;
}

/* What may stand between a name and its number, … */
static bool joins(char c)
{
	return c == ' ' || c == '\t' || c == ':' || c == '=' || c == '\'' || c == '"';
}

/* … what a number may begin with, and what ends it. */
static bool begins_number(char c)
{
	return (c >= '0' && c <= '9') || c == '-' || c == '.' || (c | 0x20) == 'n' ||
	       (c | 0x20) == 'i';
}

static bool ends_number(char c)
{
	switch (c) {
	case ' ':
	case '\t':
	case ',':
	case ';':
	case '|':
	case ')':
	case ']':
	case '}':
	case '\'':
	case '"':
		return true;
	default:
		return false;
	}
}

bool console_next_guess(struct slice text, size_t *at, struct console_field *f)
{
	size_t i = *at, end, digit;

	for (;; i = end) {
		while (i < text.n && !is_word_byte(text.p[i]))
			i++;
		for (end = i; end < text.n && (is_word_byte(text.p[end]) || text.p[end] == '/' ||
						      text.p[end] == '.');
			end++)
			;
		if (i >= text.n)
			break;
		for (digit = end; digit < text.n && joins(text.p[digit]); digit++)
			;
		if (digit == end || digit >= text.n || (text.p[i] >= '0' && text.p[i] <= '9') ||
			!begins_number(text.p[digit]))
			continue;
		f->name = (struct slice){text.p + i, end - i};
		for (end = digit; end < text.n && !ends_number(text.p[end]); end++)
			;
		f->value = (struct slice){text.p + digit, end - digit};
		f->quoted = false;
		*at = end;
		return true;
	}
	*at = text.n;
	return false;
}
