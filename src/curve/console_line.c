/* SPDX-License-Identifier: MIT */
/* Lines of consoles taken apart. All of it is O(bytes of the line), and no byte is trusted. */
#include <math.h>
#include <string.h>

#include "curve/console.h"

#define CLOCK_WITHIN 256u /* bytes of a line in which its time is looked for */
#define LABEL_DIGITS 6    /* of a rank */

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_space(char c)
{
	return c == ' ' || c == '\t';
}

/* Escape sequences ----------------------------------------------------------------------------- */

/* The length of the escape sequence at the start of `text`, which begins with ESC. */
static size_t escape_length(struct slice text)
{
	size_t i = 2;

	if (text.n < 2)
		return text.n;
	if (text.p[1] == '[') {
		while (i < text.n && (unsigned char)text.p[i] >= 0x20 &&
			(unsigned char)text.p[i] < 0x40)
			i++;
		return i < text.n ? i + 1 : i;
	}
	if (text.p[1] == ']') {
		while (i < text.n && text.p[i] != '\a' && text.p[i] != '\x1b')
			i++;
		return i < text.n && text.p[i] == '\a' ? i + 1 : i;
	}
	return 2;
}

size_t console_plain(struct slice text, char *out, uint16_t *from)
{
	size_t n = 0;

	for (size_t i = 0; i < text.n;) {
		if (text.p[i] == '\x1b') {
			i += escape_length((struct slice){text.p + i, text.n - i});
			continue;
		}
		if (text.p[i] != '\b') {
			if (from)
				from[n] = (uint16_t)i;
			out[n++] = text.p[i];
		}
		i++;
	}
	return n;
}

/* Labels --------------------------------------------------------------------------------------- */

/* Digits at text.p[at]; where they end, and what they say. `at` itself where there are none. */
static size_t digits(struct slice text, size_t at, size_t most, double *value)
{
	size_t i = at;

	*value = 0;
	for (; i < text.n && i - at < most && is_digit(text.p[i]); i++)
		*value = *value * 10 + (text.p[i] - '0');
	return i;
}

/* "word7]" behind an opening bracket, where the word may be apart from the number. */
static size_t bracket_label(struct slice text, size_t at, double *rank)
{
	static const struct slice words[] = {
		{"default", 7}, {"rank", 4}, {"Rank", 4}, {"RANK", 4}, {"1,", 2}};

	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		struct slice rest = {text.p + at, text.n - at};
		if (!slice_starts(rest, words[i]))
			continue;
		size_t begin = at + words[i].n;
		if (begin < text.n && text.p[begin] == ' ')
			begin++;
		size_t end = digits(text, begin, LABEL_DIGITS, rank);
		if (end > begin && end < text.n && text.p[end] == ']')
			return end + 1;
	}
	return 0;
}

void console_label(struct console_line *l)
{
	struct slice text = l->text;
	double rank;
	size_t at = 0, end;

	l->rank = -1;
	l->begin = 0;
	while (at < text.n && is_space(text.p[at]))
		at++;
	/* srun's label is of the task, what follows of the process below it, which is told apart
	 * from the others of the task only. */
	end = digits(text, at, LABEL_DIGITS, &rank);
	if (end > at && end + 1 < text.n && text.p[end] == ':' && text.p[end + 1] == ' ') {
		l->rank = (int32_t)rank;
		l->begin = at = end + 2;
	}
	if (at >= text.n || text.p[at] != '[')
		return;
	end = bracket_label(text, at + 1, &rank);
	if (end == 0)
		return;
	l->rank = l->rank > 0 ? l->rank * 1000 + (int32_t)rank : (int32_t)rank;
	struct slice rest = {text.p + end, text.n - end};
	if (slice_starts(rest, SLICE("<stdout>:")) || slice_starts(rest, SLICE("<stderr>:")))
		end += 9;
	else if (rest.n > 0 && rest.p[0] == ':')
		end++;
	l->begin = end;
}

/* Clocks --------------------------------------------------------------------------------------- */

/* Days from 1970-01-01 to a day of the Gregorian calendar. */
static double days_to(int year, int month, int day)
{
	int y = month <= 2 ? year - 1 : year, m = month <= 2 ? month + 9 : month - 3;
	long era = y / 400, of_era = y - era * 400, of_year = (153 * m + 2) / 5 + day - 1;

	return (double)(era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468);
}

/* `n` digits, exactly. */
static bool fixed(struct slice text, size_t at, size_t n, int *value)
{
	*value = 0;
	if (at > text.n || text.n - at < n)
		return false;
	for (size_t i = 0; i < n; i++) {
		if (!is_digit(text.p[at + i]))
			return false;
		*value = *value * 10 + (text.p[at + i] - '0');
	}
	return true;
}

/* "hh:mm:ss" with a fraction behind '.' or ','; the seconds of the day, or NAN. */
static double time_of_day(struct slice text, size_t at, size_t *end)
{
	int h, m, s;

	if (!fixed(text, at, 2, &h) || !fixed(text, at + 3, 2, &m) || !fixed(text, at + 6, 2, &s) ||
		text.p[at + 2] != ':' || text.p[at + 5] != ':' || h > 23 || m > 59 || s > 60)
		return NAN;
	double seconds = h * 3600 + m * 60 + s, part = 0.1;
	size_t i = at + 8;
	if (i + 1 < text.n && (text.p[i] == '.' || text.p[i] == ',') && is_digit(text.p[i + 1]))
		for (i++; i < text.n && is_digit(text.p[i]); i++, part /= 10)
			seconds += part * (text.p[i] - '0');
	*end = i;
	return seconds;
}

/* What an offset behind a time adds to it, in seconds: "+02:00", "-0700". */
static double zone(struct slice text, size_t at)
{
	int h, m;

	if (at >= text.n || (text.p[at] != '+' && text.p[at] != '-') ||
		!fixed(text, at + 1, 2, &h) || at + 3 >= text.n)
		return 0;
	if (!fixed(text, at + 3 + (text.p[at + 3] == ':'), 2, &m))
		return 0;
	double offset = h * 3600 + m * 60;
	return text.p[at] == '+' ? -offset : offset;
}

/* The date and time at `at`, which is where a run of digits begins. */
static double clock_at(struct slice text, size_t at)
{
	int year, month, day, first, second;
	size_t end = 0;

	if (fixed(text, at, 4, &year) && fixed(text, at + 5, 2, &month) &&
		fixed(text, at + 8, 2, &day) && (text.p[at + 4] == '-' || text.p[at + 4] == '/') &&
		text.p[at + 7] == text.p[at + 4]) {
		/* As it is. */
	} else if (fixed(text, at, 2, &first) && fixed(text, at + 3, 2, &second) &&
		   fixed(text, at + 6, 4, &year) && text.p[at + 2] == '/' &&
		   text.p[at + 5] == '/') {
		month = first > 12 ? second : first;
		day = first > 12 ? first : second;
	} else {
		return NAN;
	}
	if (at + 10 >= text.n || (text.p[at + 10] != ' ' && text.p[at + 10] != 'T') || month < 1 ||
		month > 12 || day < 1 || day > 31 || year < 1970)
		return NAN;
	double seconds = time_of_day(text, at + 11, &end);
	return days_to(year, month, day) * 86400 + seconds + (isnan(seconds) ? 0 : zone(text, end));
}

double console_clock(struct slice text)
{
	if (text.n > CLOCK_WITHIN)
		text.n = CLOCK_WITHIN;
	for (size_t i = 0; i + CONSOLE_CLOCK_MIN <= text.n; i++) {
		if (!is_digit(text.p[i]) || (i > 0 && is_digit(text.p[i - 1])))
			continue;
		double clock = clock_at(text, i);
		if (!isnan(clock))
			return clock;
	}
	return NAN;
}

/* Heads ---------------------------------------------------------------------------------------- */

/* What stands behind '%' in a pattern. SIZE_MAX: it does not match. */
static size_t match_number(struct slice text, size_t at, char what, struct console_head *h)
{
	double value;

	if (what == 'f' && at < text.n && text.p[at] == '-')
		at++;
	size_t end = digits(text, at, 15, &value);
	if (what == 'f')
		while (end < text.n && (is_digit(text.p[end]) || text.p[end] == '.'))
			end++;
	if (what == 'n' && end == at)
		while (end < text.n && text.p[end] == '?')
			end++;
	if (end == at || (end < text.n && is_digit(text.p[end])))
		return SIZE_MAX;
	if (what == 'x') {
		h->x = value;
		h->x_at = at;
	} else if (what == 'e') {
		h->epoch = value;
	} else if (what == 'n' && !isnan(h->x) && is_digit(text.p[at])) {
		h->total = value;
	}
	return end;
}

size_t console_match(struct slice text, size_t at, const char *pattern, struct console_head *h)
{
	*h = (struct console_head){NAN, NAN, NAN, NAN, SIZE_MAX, at, SIZE_MAX};
	for (const char *p = pattern; *p; p++) {
		if (*p == ' ') {
			while (at < text.n && is_space(text.p[at]))
				at++;
		} else if (*p == '^') {
			h->fields = at;
		} else if (*p == '%') {
			at = match_number(text, at, *++p, h);
			if (at == SIZE_MAX)
				return SIZE_MAX;
		} else {
			if (at >= text.n || text.p[at] != *p)
				return SIZE_MAX;
			at++;
		}
	}
	if (h->fields == SIZE_MAX)
		h->fields = at;
	return at;
}

/* Fields --------------------------------------------------------------------------------------- */

/*
 * The value at text.p[at]: what is in quotes, the first element of a list, or a word. A comma with
 * three digits behind it is one between thousands.
 */
static size_t take_value(struct slice text, size_t at, struct console_field *f)
{
	size_t i = at;

	while (i < text.n && is_space(text.p[i]))
		i++;
	f->quoted = i < text.n && (text.p[i] == '\'' || text.p[i] == '"');
	if (f->quoted) {
		const char *end = memchr(text.p + i + 1, text.p[i], text.n - i - 1);
		size_t stop = end ? (size_t)(end - text.p) : text.n;
		f->value = (struct slice){text.p + i + 1, stop - i - 1};
		return end ? stop + 1 : stop;
	}
	if (i < text.n && text.p[i] == '[')
		i++;
	size_t begin = i;
	for (; i < text.n; i++) {
		char c = text.p[i];
		if (is_space(c) || c == '|' || c == ';' || c == ')' || c == ']' || c == '}')
			break;
		if (c == ',' && !(i + 3 < text.n && i > begin && is_digit(text.p[i - 1]) &&
					is_digit(text.p[i + 1]) && is_digit(text.p[i + 2]) &&
					is_digit(text.p[i + 3]) &&
					!(i + 4 < text.n && is_digit(text.p[i + 4]))))
			break;
	}
	f->value = (struct slice){text.p + begin, i - begin};
	/* The rest of a list is passed over: it has no names. */
	if (begin > at && text.p[begin - 1] == '[') {
		const char *end = memchr(text.p + i, ']', text.n - i);
		return end ? (size_t)(end - text.p) + 1 : i;
	}
	return i;
}

/* Whether what stands at text.p[i] ends the field before: a bar, a comma, " - " as Keras has it. */
static bool ends_field(struct slice text, size_t i)
{
	switch (text.p[i]) {
	case '|':
	case ',':
	case ';':
	case '[':
	case ']':
	case '}':
		return true;
	case '-':
		return i > 0 && is_space(text.p[i - 1]) && i + 1 < text.n &&
		       is_space(text.p[i + 1]);
	default:
		return false;
	}
}

/* What stands before a value, without what ended the field before. */
static struct slice take_name(struct slice text, size_t begin, size_t end)
{
	for (size_t i = end; i > begin; i--)
		if (ends_field(text, i - 1)) {
			begin = i;
			break;
		}
	return slice_trim((struct slice){text.p + begin, end - begin});
}

static bool next_pair(struct slice text, char between, size_t *at, struct console_field *f)
{
	while (*at < text.n) {
		const char *sign = memchr(text.p + *at, between, text.n - *at);
		if (!sign)
			break;
		size_t q = (size_t)(sign - text.p);
		f->name = take_name(text, *at, q);
		*at = take_value(text, q + 1, f);
		if (*at <= q)
			*at = q + 1;
		if (f->name.n > 0 && f->value.n > 0)
			return true;
	}
	*at = text.n;
	return false;
}

/* Whether "nan" or "inf" begins it, in whatever case: other languages than Python write NaN and
 * Inf. */
static bool starts_unreal(struct slice text)
{
	char low[3];

	if (text.n < sizeof low)
		return false;
	for (size_t i = 0; i < sizeof low; i++)
		low[i] = (char)(text.p[i] | 0x20);
	return memcmp(low, "nan", sizeof low) == 0 || memcmp(low, "inf", sizeof low) == 0;
}

/* Where a word begins as a number does, behind another one; or the length. */
static size_t number_word(struct slice part)
{
	size_t i = 1;

	for (; i < part.n; i++) {
		struct slice rest = {part.p + i, part.n - i};
		if (is_space(part.p[i - 1]) && (is_digit(rest.p[0]) || rest.p[0] == '-' ||
						       rest.p[0] == '.' || starts_unreal(rest)))
			break;
	}
	return i < part.n ? i : part.n;
}

/* "name value rest"; false where no word is a number. */
static bool split_words(struct slice part, struct console_field *f)
{
	size_t i = number_word(part);

	if (i >= part.n)
		return false;
	f->name = slice_trim((struct slice){part.p, i});
	take_value((struct slice){part.p + i, part.n - i}, 0, f);
	return true;
}

/* "name value rest" between commas and bars. */
static bool next_words(struct slice text, size_t *at, struct console_field *f)
{
	while (*at < text.n) {
		size_t begin = *at, end = begin;
		while (end < text.n && text.p[end] != '|' &&
			!(text.p[end] == ',' && (end + 1 >= text.n || is_space(text.p[end + 1]))))
			end++;
		*at = end < text.n ? end + 1 : end;
		if (split_words(slice_trim((struct slice){text.p + begin, end - begin}), f))
			return true;
	}
	return false;
}

/* "name: value", or "name value", between bars. */
static bool next_bar(struct slice text, size_t *at, struct console_field *f)
{
	while (*at < text.n) {
		const char *bar = memchr(text.p + *at, '|', text.n - *at);
		size_t end = bar ? (size_t)(bar - text.p) : text.n;
		struct slice part = slice_trim((struct slice){text.p + *at, end - *at});
		*at = bar ? end + 1 : end;
		const char *colon = part.n ? memchr(part.p, ':', part.n) : NULL;
		if (colon) {
			size_t n = (size_t)(colon - part.p);
			f->name = slice_trim((struct slice){part.p, n});
			take_value(part, n + 1, f);
			return true;
		}
		if (split_words(part, f))
			return true;
	}
	return false;
}

/* 'name': value */
static bool next_in_dict(struct slice text, size_t *at, struct console_field *f)
{
	while (*at < text.n) {
		char c = text.p[*at];
		if (c == '}')
			break;
		if (c != '\'' && c != '"') {
			++*at;
			continue;
		}
		size_t begin = *at + 1;
		const char *end = memchr(text.p + begin, c, text.n - begin);
		if (!end)
			break;
		f->name = (struct slice){text.p + begin, (size_t)(end - text.p) - begin};
		*at = (size_t)(end - text.p) + 1;
		if (*at >= text.n || text.p[*at] != ':')
			continue;
		*at = take_value(text, *at + 1, f);
		return true;
	}
	*at = text.n;
	return false;
}

bool console_next(
	struct slice text, enum console_style style, size_t *at, struct console_field *field)
{
	switch (style) {
	case CONSOLE_COLON:
		return next_pair(text, ':', at, field);
	case CONSOLE_EQUAL:
		return next_pair(text, '=', at, field);
	case CONSOLE_WORDS:
		return next_words(text, at, field);
	case CONSOLE_BARS:
		return next_bar(text, at, field);
	case CONSOLE_DICT:
		break;
	}
	return next_in_dict(text, at, field);
}

bool console_whole(struct slice text, size_t at, double *value)
{
	size_t begin, end;
	float resolution;

	while (at < text.n && !is_digit(text.p[at]))
		at++;
	begin = end = at;
	while (end < text.n && (is_digit(text.p[end]) || (text.p[end] == ',' && end + 1 < text.n &&
								 is_digit(text.p[end + 1]))))
		end++;
	return curve_number((struct slice){text.p + begin, end - begin}, false, value, &resolution);
}
