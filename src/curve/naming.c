/* SPDX-License-Identifier: MIT */
/*
 * What the name of a series says. First the table of names that loggers are known to use, then
 * rules over the words of the name. A role that is judged wants a name that says nothing else: a
 * word that is not known here keeps a loss from being the loss.
 */
#include <string.h>

#include "curve/read.h"

#define WORDS_MAX 16u
#define PLAIN_MAX 160u /* longer names are not looked up */

enum word_kind {
	WORD_UNKNOWN,
	WORD_HELD_OUT,
	WORD_LOSS,
	WORD_NEUTRAL,
	WORD_PART,
	WORD_NOT_MEAN,
	WORD_PER,
	WORD_SCALE,
	WORD_GRADIENT,
	WORD_NORM,
	WORD_RATE,
	WORD_LEARNING,
	WORD_RATE_OF,
	WORD_KINDS
};

struct word_row {
	struct slice word;
	enum word_kind kind;
};

static const struct word_row words[] = {
#define WORD(text, kind) {{text, sizeof text - 1}, WORD_##kind},
#include "curve/words.def"
#undef WORD
};

#define CURVE_ANY 0xff /* the name does not say what the mean is over */

struct name_row {
	struct slice pattern;
	uint8_t role, unit, mean;
};

static const struct name_row names[] = {
#define NAME(pattern, role, unit, mean)                                                            \
	{{pattern, sizeof pattern - 1}, CURVE_##role, CURVE_##unit, CURVE_##mean},
#include "curve/names.def"
#undef NAME
};

/* A name in small letters, with one space for each separator. */
struct plain {
	char text[PLAIN_MAX];
	size_t n;
};

static void make_plain(struct slice name, struct plain *p)
{
	p->n = name.n < PLAIN_MAX ? name.n : PLAIN_MAX;
	for (size_t i = 0; i < p->n; i++) {
		char c = name.p[i];
		if (c >= 'A' && c <= 'Z')
			c = (char)(c - 'A' + 'a');
		else if (c == '_' || c == '-' || c == '.' || c == '(' || c == ')')
			c = ' ';
		p->text[i] = c;
	}
}

/* '*' stands for anything. O(pattern * text) at the worst, both short. */
static bool matches(struct slice pattern, struct slice text)
{
	size_t p = 0, t = 0, star = SIZE_MAX, resume = 0;

	while (t < text.n) {
		if (p < pattern.n && pattern.p[p] == '*') {
			star = p++;
			resume = t;
		} else if (p < pattern.n && pattern.p[p] == text.p[t]) {
			p++;
			t++;
		} else if (star != SIZE_MAX) {
			p = star + 1;
			t = ++resume;
		} else {
			return false;
		}
	}
	while (p < pattern.n && pattern.p[p] == '*')
		p++;
	return p == pattern.n;
}

bool curve_name_matches(const char *pattern, struct slice name)
{
	struct plain p;

	make_plain(name, &p);
	return name.n <= PLAIN_MAX && matches(slice_of(pattern), (struct slice){p.text, p.n});
}

/* Words ---------------------------------------------------------------------------------------- */

struct named_word {
	size_t at, n; /* in the name */
	enum word_kind kind;
};

struct name_words {
	struct named_word items[WORDS_MAX];
	size_t count;
	unsigned kinds; /* bits of those that occur */
	bool many;      /* more than fit */
};

static bool has(const struct name_words *w, enum word_kind kind)
{
	return w->kinds >> kind & 1;
}

static enum word_kind kind_of(struct slice word)
{
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (slice_eq(words[i].word, word))
			return words[i].kind;
	return WORD_UNKNOWN;
}

bool curve_is_held_out(struct slice word)
{
	char low[16];

	if (word.n > sizeof low || word.n < 3)
		return false;
	for (size_t i = 0; i < word.n; i++)
		low[i] =
			(char)(word.p[i] >= 'A' && word.p[i] <= 'Z' ? word.p[i] | 0x20 : word.p[i]);
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (words[i].kind == WORD_HELD_OUT &&
			slice_eq(words[i].word, (struct slice){low, word.n}))
			return true;
	return false;
}

static bool is_word_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (unsigned char)c >= 0x80;
}

static void split_words(const struct plain *p, struct name_words *w)
{
	*w = (struct name_words){0};
	for (size_t i = 0, end; i < p->n; i = end) {
		for (end = i; end < p->n && is_word_char(p->text[end]); end++)
			;
		if (end == i) {
			end++;
			continue;
		}
		if (w->count == WORDS_MAX) {
			w->many = true;
			return;
		}
		enum word_kind kind = kind_of((struct slice){p->text + i, end - i});
		w->items[w->count++] = (struct named_word){i, end - i, kind};
		w->kinds |= 1u << kind;
	}
}

/* Whether nothing but these kinds of words occurs. */
static bool only(const struct name_words *w, unsigned kinds)
{
	return !w->many && (w->kinds & ~kinds) == 0;
}

#define BIT(kind) (1u << WORD_##kind)

/*
 * The data source of a loss per source: what stands behind the word loss (loss/web,
 * train/loss_code, loss_per_domain/law). What stands before it is a part of the objective more
 * often than data.
 */
static struct slice source_of(struct slice name, const struct name_words *w)
{
	size_t loss = 0;

	while (loss < w->count && w->items[loss].kind != WORD_LOSS)
		loss++;
	size_t first = loss + 1;
	for (size_t i = 0; i < loss; i++)
		if (w->items[i].kind == WORD_UNKNOWN)
			return (struct slice){0};
	while (first < w->count &&
		(w->items[first].kind == WORD_PER || w->items[first].kind == WORD_NEUTRAL))
		first++;
	if (first >= w->count)
		return (struct slice){0};
	return (struct slice){name.p + w->items[first].at, name.n - w->items[first].at};
}

static void judge_loss(struct slice name, const struct name_words *w, struct curve_meaning *m)
{
	if (has(w, WORD_SCALE))
		m->role = only(w, BIT(LOSS) | BIT(SCALE) | BIT(NEUTRAL)) ? CURVE_LOSS_SCALE
									 : CURVE_OTHER;
	else if (has(w, WORD_NOT_MEAN) || has(w, WORD_GRADIENT) || has(w, WORD_NORM))
		m->role = CURVE_OTHER;
	else if (has(w, WORD_HELD_OUT))
		m->role = CURVE_VALID_LOSS;
	else if (has(w, WORD_PART))
		m->role = CURVE_PART_LOSS;
	else if (only(w, BIT(LOSS) | BIT(NEUTRAL)))
		m->role = CURVE_LOSS;
	else if (!w->many && (m->source = source_of(name, w)).n > 0)
		m->role = CURVE_SOURCE_LOSS;
	else
		m->role = CURVE_PART_LOSS;
}

static void judge_words(struct slice name, const struct plain *p, struct curve_meaning *m)
{
	struct name_words w;

	split_words(p, &w);
	if (has(&w, WORD_LOSS))
		judge_loss(name, &w, m);
	else if (has(&w, WORD_GRADIENT) && has(&w, WORD_NORM))
		m->role = only(&w, BIT(GRADIENT) | BIT(NORM) | BIT(NEUTRAL)) ? CURVE_GRAD_NORM
									     : CURVE_OTHER;
	else if (has(&w, WORD_RATE) || (has(&w, WORD_LEARNING) && has(&w, WORD_RATE_OF)))
		m->role = only(&w, BIT(RATE) | BIT(LEARNING) | BIT(RATE_OF) | BIT(NEUTRAL))
				  ? CURVE_LR
				  : CURVE_OTHER;
	else if (has(&w, WORD_GRADIENT) && has(&w, WORD_SCALE))
		m->role = only(&w, BIT(GRADIENT) | BIT(SCALE) | BIT(NEUTRAL)) ? CURVE_LOSS_SCALE
									      : CURVE_OTHER;
}

/* Suffixes ------------------------------------------------------------------------------------- */

/* Take a suffix off the name, whatever its capitals and separators. */
static bool take_off(struct slice *name, struct plain *p, struct slice suffix)
{
	struct slice text = {p->text, p->n};

	if (p->n <= suffix.n || p->n < name->n || !slice_ends(text, suffix))
		return false;
	p->n -= suffix.n;
	name->n -= suffix.n;
	return true;
}

struct curve_meaning curve_meaning_of(struct slice name)
{
	struct curve_meaning m = {.role = CURVE_OTHER, .unit = CURVE_UNITS};
	struct plain p;
	size_t run = slice_find(name, SLICE(" - "));

	/* A chart's export puts the run's name before the series': "run - loss". */
	if (run != SIZE_MAX)
		name = (struct slice){name.p + run + 3, name.n - run - 3};
	make_plain(name, &p);
	if (name.n == 0 || name.n > PLAIN_MAX)
		return m;
	if (take_off(&name, &p, SLICE(" vs samples")))
		m.unit = CURVE_SAMPLES;
	else if (take_off(&name, &p, SLICE(" vs tokens")))
		m.unit = CURVE_TOKENS;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		const struct name_row *row = &names[i];
		if (!matches(row->pattern, (struct slice){p.text, p.n}))
			continue;
		m.role = (enum curve_role)row->role;
		if (m.unit == CURVE_UNITS)
			m.unit = (enum curve_unit)row->unit;
		m.says_mean = row->mean != CURVE_ANY;
		if (m.says_mean)
			m.mean = (enum curve_mean)row->mean;
		return m;
	}
	/* Lightning's, which logs the same name for each step and for each epoch. */
	if (take_off(&name, &p, SLICE(" step"))) {
		m.says_mean = true;
		m.mean = CURVE_OF_STEP;
	} else if (take_off(&name, &p, SLICE(" epoch"))) {
		m.says_mean = true;
		m.mean = CURVE_OF_EPOCH;
	}
	judge_words(name, &p, &m);
	return m;
}
