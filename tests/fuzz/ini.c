/* SPDX-License-Identifier: MIT */
/* INI files: what was read lies inside the text and, written again, reads the same. */
#include "base/ini.h"

#include <string.h>

#include "base/strbuf.h"
#include "fuzz/fuzz.h"

#define MEMORY ((size_t)1 << 20)

static bool is_inside(struct slice part, struct slice text)
{
	return part.p >= text.p && part.p + part.n <= text.p + text.n;
}

static void write_again(const struct ini *ini, struct slice text, struct strbuf *out)
{
	unsigned line = 0;

	for (size_t i = 0; i < ini->entries.count; i++) {
		const struct ini_entry *entry = &ini->entries.items[i];
		MUST(entry->line > line && is_inside(entry->section, text));
		line = entry->line;
		if (!entry->key.p) {
			strbuf_add_char(out, '[');
			strbuf_add_slice(out, entry->section);
			strbuf_add_text(out, "]\n");
			continue;
		}
		MUST(is_inside(entry->key, text) && is_inside(entry->value, text));
		MUST(entry->key.n > 0 && entry->value.n > 0);
		strbuf_add_slice(out, entry->key);
		strbuf_add_text(out, " = ");
		strbuf_add_slice(out, entry->value);
		strbuf_add_char(out, '\n');
	}
}

static void check_same(const struct ini *a, const struct ini *b)
{
	MUST(a->entries.count == b->entries.count);
	for (size_t i = 0; i < a->entries.count; i++) {
		const struct ini_entry *x = &a->entries.items[i], *y = &b->entries.items[i];
		MUST(slice_eq(x->section, y->section) && slice_eq(x->key, y->key));
		MUST(slice_eq(x->value, y->value) && !x->key.p == !y->key.p);
	}
}

int fuzz_ini(const uint8_t *data, size_t size)
{
	struct slice text = {(const char *)data, size};
	struct ini ini = {0}, again = {0};
	struct error e = ERROR_INIT;
	struct strbuf out;

	strbuf_init(&out, MEMORY);
	int status = ini_parse(&ini, text, &e);
	if (status < 0) {
		fuzz_check_error(&e, status);
	} else {
		write_again(&ini, text, &out);
		MUST(out.failed || ini_parse(&again, strbuf_slice(&out), &e) == RP_OK);
		if (!out.failed)
			check_same(&ini, &again);
	}
	strbuf_release(&out);
	ini_release(&again);
	ini_release(&ini);
	return 0;
}
