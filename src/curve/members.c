/* SPDX-License-Identifier: MIT */
#include "curve/members.h"

#include "curve/number.h"

#define KEY_MAX 512u

struct object_scan {
	member_fn member;
	void *to;
	char name[KEY_MAX]; /* of what is nested: "outer/inner" */
	size_t outer;       /* bytes of it that are the outer name and its slash */
	bool stopped;
};

/* Empty where it does not fit. */
static struct slice member_name(struct object_scan *s, struct slice key, bool escaped)
{
	if (s->outer == 0 && !escaped)
		return key;
	size_t room = KEY_MAX - s->outer;
	if (key.n > room)
		return (struct slice){"", 0};
	size_t n = key.n;
	if (escaped)
		n = scan_unescape(key, s->name + s->outer);
	else
		memcpy(s->name + s->outer, key.p, n);
	return (struct slice){s->name, s->outer + n};
}

/* The end of a number at `p`, as JSON wants it and as most are written; else NULL. */
static const char *plain_number(const char *p, double *value, float *resolution)
{
	struct number n;
	const char *end = number_scan(p, &n), *first = p + (*p == '-');

	if (!end || n.written & NUMBER_GROUPED || (*first == '0' && n.whole > 1) ||
		!memchr(",}] \t\r\n", *end, 7))
		return NULL;
	struct slice text = {p, (size_t)(end - p)};
	return number_value(&n, text, value, resolution) ? end : NULL;
}

static const char *scan_object(struct object_scan *s, const char *p);

/* The end of a bare word, as C prints what is no number: nan, -nan, inf; else NULL. */
static const char *bare_word(const char *p, struct slice *text)
{
	size_t n = *p == '-';

	while ((p[n] | 0x20) >= 'a' && (p[n] | 0x20) <= 'z')
		n++;
	*text = (struct slice){p, n};
	return memchr(",}] \t\r\n", p[n], 7) ? p + n : NULL;
}

/* The text between quotes, or any other value, that may be a number; where it ends, or NULL. */
static const char *scan_scalar(const char *p, bool *number, double *value, float *resolution)
{
	const char *end = plain_number(p, value, resolution);
	struct slice text;
	bool escaped;

	*number = end != NULL;
	if (end)
		return end;
	if (*p == '"') {
		end = scan_string(p, &text, &escaped);
	} else {
		end = scan_any(p);
		text = (struct slice){p, end ? (size_t)(end - p) : 0};
	}
	bool bare = !end;
	if (bare)
		end = bare_word(p, &text);
	*number = end && curve_number(text, false, value, resolution);
	return bare && !*number ? NULL : end;
}

/* The value at `p`, and what it gives. */
static const char *scan_value(struct object_scan *s, const char *p, struct slice key, bool escaped)
{
	const char *end;
	bool number;
	double value;
	float resolution;

	if (*p == '{' && s->outer == 0) {
		struct slice name = member_name(s, key, escaped);
		if (name.n + 1 >= KEY_MAX)
			return scan_any(p);
		memmove(s->name, name.p, name.n);
		s->name[name.n] = '/';
		s->outer = name.n + 1;
		end = scan_object(s, p);
		s->outer = 0;
		return end;
	}
	end = scan_scalar(p, &number, &value, &resolution);
	if (!number || s->stopped)
		return end;
	struct slice name = member_name(s, key, escaped);
	s->stopped = name.n > 0 && !s->member(s->to, name, value, resolution);
	return end;
}

/* The object at `p`, an opening brace; where it ends, or NULL where it is none. */
static const char *scan_object(struct object_scan *s, const char *p)
{
	struct slice key;
	bool escaped;

	p = scan_space(p + 1);
	if (*p == '}')
		return p + 1;
	for (;;) {
		p = scan_string(p, &key, &escaped);
		if (!p)
			return NULL;
		p = scan_space(p);
		if (*p != ':')
			return NULL;
		p = scan_value(s, scan_space(p + 1), key, escaped);
		if (!p)
			return NULL;
		p = scan_space(p);
		if (*p == '}')
			return p + 1;
		if (*p != ',')
			return NULL;
		p = scan_space(p + 1);
	}
}

const char *members_scan(const char *p, member_fn member, void *to, bool *taken)
{
	struct object_scan s = {.member = member, .to = to};

	p = scan_object(&s, p);
	*taken = !s.stopped;
	return p;
}
