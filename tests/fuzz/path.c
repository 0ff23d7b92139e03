/* SPDX-License-Identifier: MIT */
/*
 * Paths: the first line is a path, the rest JSON. Every way that matches is printed, and what was
 * printed must find the same value again, where no dict has a key twice.
 */
#include "value/path.h"

#include <string.h>

#include "base/text.h"
#include "container/json.h"
#include "fuzz/fuzz.h"

#define MEMORY ((size_t)64 << 20)
#define MATCHES_MAX 50u

struct way {
	struct slice text;
	struct val leads_to;
};

struct search {
	struct arena *arena;
	struct way ways[MATCHES_MAX];
	size_t count;
};

static bool keep_way(void *context, struct val v, const struct path_step *steps, size_t count)
{
	struct search *s = context;
	struct strbuf b;

	MUST(v.kind != VAL_ABSENT);
	strbuf_init(&b, MEMORY);
	path_add_steps(&b, steps, count);
	MUST(!b.failed && text_is_utf8(strbuf_slice(&b)));
	char *text = arena_strdup(s->arena, strbuf_slice(&b));
	MUST(text);
	if (count <= PATH_SEGMENTS_MAX)
		s->ways[s->count++] = (struct way){{text, strbuf_slice(&b).n}, v};
	strbuf_release(&b);
	return s->count < MATCHES_MAX;
}

static bool is_same(struct val a, struct val b)
{
	return a.kind == b.kind && a.n == b.n && a.i == b.i;
}

/* A printed way leads to one value, the one that it was printed for. */
static void follow(const struct way *way, struct val root, const struct limits *limits,
	struct arena *arena, struct path *p)
{
	struct search s = {.arena = arena};
	struct error e = ERROR_INIT;

	MUST(path_parse(p, way->text, arena, &e) == RP_OK);
	path_match(p, root, limits, keep_way, &s);
	MUST(s.count == 1 && is_same(s.ways[0].leads_to, way->leads_to));
	MUST(slice_eq(s.ways[0].text, way->text));
}

int fuzz_path(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data, *line = size ? memchr(text, '\n', size) : NULL;
	struct limits limits = limits_default();
	struct arena arena;
	struct error e = ERROR_INIT;
	struct val root;
	struct path p;
	uint64_t duplicates;

	if (!line)
		return 0;
	limits.depth = 50;
	limits.nodes = 20000;
	arena_init(&arena, MEMORY);
	struct search s = {.arena = &arena};
	struct slice typed = {text, (size_t)(line - text)};
	struct slice json = {line + 1, size - typed.n - 1};
	int status = path_parse(&p, typed, &arena, &e);
	if (status < 0) {
		fuzz_check_error(&e, status);
		MUST(status != RP_E_FORMAT || e.offset <= typed.n);
	} else if (json_decode(json, &arena, &limits, &root, &duplicates, NULL) == RP_OK) {
		path_match(&p, root, &limits, keep_way, &s);
		for (size_t i = 0; duplicates == 0 && i < s.count; i++)
			follow(&s.ways[i], root, &limits, &arena, &p);
	}
	arena_release(&arena);
	return 0;
}
