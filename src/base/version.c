/* SPDX-License-Identifier: MIT */
#include "base/version.h"

#include <ctype.h>

#include "base/text.h"

static struct slice rest_of(struct slice s, size_t from)
{
	return (struct slice){s.p + from, s.n - from};
}

static bool is_separator(char c)
{
	return c == '.' || c == '-' || c == '_';
}

static size_t digits_at_start(struct slice s)
{
	size_t n = 0;

	while (n < s.n && s.p[n] >= '0' && s.p[n] <= '9')
		n++;
	return n;
}

/* Take a number from the start. */
static bool take_number(struct slice *s, uint64_t *out)
{
	size_t n = digits_at_start(*s);

	if (n == 0 || !text_parse_u64((struct slice){s->p, n}, UINT64_MAX, out))
		return false;
	*s = rest_of(*s, n);
	return true;
}

/* Take a word in any case from the start, whatever follows. */
static bool take_word(struct slice *s, const char *word)
{
	size_t n = strlen(word);

	if (s->n < n)
		return false;
	for (size_t i = 0; i < n; i++)
		if (tolower((unsigned char)s->p[i]) != word[i])
			return false;
	*s = rest_of(*s, n);
	return true;
}

/* Skip one separator where there is one. */
static struct slice after_separator(struct slice s)
{
	return s.n > 0 && is_separator(s.p[0]) ? rest_of(s, 1) : s;
}

/* The number behind a word such as "rc"; none is 0. False where it is too large. */
static bool take_suffix_number(struct slice *s, uint64_t *out)
{
	struct slice behind = after_separator(*s);

	*out = 0;
	if (digits_at_start(behind) == 0)
		return true;
	*s = behind;
	return take_number(s, out);
}

static bool take_release(struct slice *s, struct version *v)
{
	size_t parts = 0;

	do {
		if (parts == VERSION_PARTS || !take_number(s, &v->release[parts++]))
			return false;
		if (s->n < 2 || s->p[0] != '.' || digits_at_start(rest_of(*s, 1)) == 0)
			return true;
		*s = rest_of(*s, 1);
	} while (true);
}

/* The longer of two words that start alike stands first. */
static bool take_pre(struct slice *s, struct version *v)
{
	static const struct {
		const char *word;
		enum version_pre pre;
	} words[] = {
		{"alpha", VERSION_ALPHA},
		{"a", VERSION_ALPHA},
		{"beta", VERSION_BETA},
		{"b", VERSION_BETA},
		{"preview", VERSION_CANDIDATE},
		{"pre", VERSION_CANDIDATE},
		{"rc", VERSION_CANDIDATE},
		{"c", VERSION_CANDIDATE},
	};
	struct slice behind = after_separator(*s);

	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		if (!take_word(&behind, words[i].word))
			continue;
		*s = behind;
		v->pre = words[i].pre;
		return take_suffix_number(s, &v->pre_number);
	}
	return true;
}

static bool take_post(struct slice *s, struct version *v)
{
	static const char *const words[] = {"post", "rev", "r"};
	struct slice behind = after_separator(*s);

	/* "1.0-1" is "1.0.post1". */
	if (s->n > 1 && s->p[0] == '-' && digits_at_start(rest_of(*s, 1)) > 0) {
		*s = rest_of(*s, 1);
		v->post = true;
		return take_number(s, &v->post_number);
	}
	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		if (!take_word(&behind, words[i]))
			continue;
		*s = behind;
		v->post = true;
		return take_suffix_number(s, &v->post_number);
	}
	return true;
}

static bool take_dev(struct slice *s, struct version *v)
{
	struct slice behind = after_separator(*s);

	if (!take_word(&behind, "dev"))
		return true;
	*s = behind;
	v->dev = true;
	return take_suffix_number(s, &v->dev_number);
}

/* Letters and digits, separated by single separators. */
static bool take_local(struct slice s, struct version *v)
{
	if (s.n == 0)
		return true;
	if (s.p[0] != '+' || s.n < 2 || s.n > VERSION_LOCAL_MAX)
		return false;
	s = rest_of(s, 1);
	for (size_t i = 0; i < s.n; i++) {
		bool separator = is_separator(s.p[i]);
		if (!separator && !isalnum((unsigned char)s.p[i]))
			return false;
		if (separator && (i == 0 || i + 1 == s.n || is_separator(s.p[i - 1])))
			return false;
		v->local[i] = separator ? '.' : (char)tolower((unsigned char)s.p[i]);
	}
	return true;
}

bool version_parse(struct slice text, struct version *out)
{
	struct slice s = slice_trim(text), behind;
	uint64_t number;

	*out = (struct version){.pre = VERSION_FINAL};
	if (s.n > 0 && (s.p[0] == 'v' || s.p[0] == 'V'))
		s = rest_of(s, 1);
	behind = s;
	if (take_number(&behind, &number) && behind.n > 0 && behind.p[0] == '!') {
		out->epoch = number;
		s = rest_of(behind, 1);
	}
	return take_release(&s, out) && take_pre(&s, out) && take_post(&s, out) &&
	       take_dev(&s, out) && take_local(s, out);
}

static int compare_numbers(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

/* Whether it is a development release of nothing more than the release itself: these come before
 * its alphas. */
static bool before_alphas(const struct version *v)
{
	return v->dev && v->pre == VERSION_FINAL && !v->post;
}

/* The next part of a local version. */
static struct slice next_part(struct slice *s)
{
	const char *dot = s->n ? memchr(s->p, '.', s->n) : NULL;
	struct slice part = {s->p, dot ? (size_t)(dot - s->p) : s->n};

	*s = rest_of(*s, part.n + (dot ? 1 : 0));
	return part;
}

/* Numbers without their leading zeros: the longer one is the larger, whatever its size. */
static int compare_digits(struct slice a, struct slice b)
{
	while (a.n > 1 && a.p[0] == '0')
		a = rest_of(a, 1);
	while (b.n > 1 && b.p[0] == '0')
		b = rest_of(b, 1);
	return a.n != b.n ? compare_numbers(a.n, b.n) : slice_compare(a, b);
}

static int compare_local(struct slice a, struct slice b)
{
	while (a.n > 0 && b.n > 0) {
		struct slice x = next_part(&a), y = next_part(&b);
		bool x_number = digits_at_start(x) == x.n, y_number = digits_at_start(y) == y.n;
		int order = x_number != y_number ? (x_number ? 1 : -1)
			    : x_number           ? compare_digits(x, y)
						 : slice_compare(x, y);
		if (order != 0)
			return order;
	}
	return (a.n > 0) - (b.n > 0);
}

int version_compare(const struct version *a, const struct version *b)
{
	int order = compare_numbers(a->epoch, b->epoch);

	for (size_t i = 0; i < VERSION_PARTS && order == 0; i++)
		order = compare_numbers(a->release[i], b->release[i]);
	if (order == 0)
		order = before_alphas(b) - before_alphas(a);
	if (order == 0)
		order = ((int)a->pre > (int)b->pre) - ((int)a->pre < (int)b->pre);
	if (order == 0)
		order = compare_numbers(a->pre_number, b->pre_number);
	if (order == 0)
		order = a->post - b->post;
	if (order == 0)
		order = compare_numbers(a->post_number, b->post_number);
	if (order == 0)
		order = b->dev - a->dev;
	if (order == 0)
		order = compare_numbers(a->dev_number, b->dev_number);
	return order ? order : compare_local(slice_of(a->local), slice_of(b->local));
}

bool version_leads_to(const struct version *v, const struct version *of)
{
	if (v->epoch != of->epoch || v->post || (v->pre == VERSION_FINAL && !v->dev))
		return false;
	for (size_t i = 0; i < VERSION_PARTS; i++)
		if (v->release[i] != of->release[i])
			return false;
	return true;
}
