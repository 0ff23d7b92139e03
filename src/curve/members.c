/* SPDX-License-Identifier: MIT */
#include "curve/members.h"

#include "base/scan.h"
#include "curve/read.h"

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

static const char *scan_object(struct object_scan *s, const char *p);

/* The value at `p`, and what it gives. */
static const char *scan_value(struct object_scan *s, const char *p, struct slice key, bool escaped)
{
	struct slice text;
	const char *end;
	bool odd;
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
	if (*p == '"') {
		end = scan_string(p, &text, &odd);
	} else {
		end = scan_any(p);
		if (end)
			text = (struct slice){p, (size_t)(end - p)};
	}
	if (!end || s->stopped || !curve_number(text, false, &value, &resolution))
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
