/* SPDX-License-Identifier: MIT */
/*
 * A strict reader of INI files: `[section]`, `key = value`, and comments, which begin with `#` or
 * `;` and stand on lines of their own. What it does not understand is an error with its line, never
 * skipped: no text before the first section, no line without `=`, no empty value, no section or key
 * twice. What the sections and keys mean is the caller's affair, who gives them as a table; what is
 * not in the table is an error too.
 */
#ifndef BASE_INI_H
#define BASE_INI_H

#include <stdbool.h>

#include "base/array.h"
#include "base/error.h"
#include "base/slice.h"

#define INI_FILE_MAX ((size_t)1 << 20) /* bytes of a file */
#define INI_LINE_MAX 4096u             /* bytes of a line */
#define INI_ENTRIES_MAX 4096u          /* sections and keys */

struct ini_entry {
	struct slice section;
	struct slice key;   /* p is NULL for the section's own line */
	struct slice value; /* without the spaces around it, never empty */
	unsigned line;      /* from 1 */
};

struct ini {
	char *text;                      /* owned, where a file was read */
	ARRAY(struct ini_entry) entries; /* in the file's order */
};

/* Read a file. Release it also after an error. */
int ini_read(struct ini *ini, const char *path, struct error *e);

/* The same from memory; `text` must outlive it. */
int ini_parse(struct ini *ini, struct slice text, struct error *e);

void ini_release(struct ini *ini);

/* A row of the caller's table of sections and keys. Rows of one section stand together. */
struct ini_key {
	const char *section; /* "policy"; "source." stands for every section that begins so */
	const char *key;     /* NULL: any */
	/* Take the entry; false after a complaint. */
	bool (*take)(void *context, const struct ini_entry *entry);
};

/* Give each key to its row, in the file's order, until one complains. RP_E_ARGUMENT where there is
 * no row. False after an error. */
bool ini_take(const struct ini *ini, const struct ini_key *rows, size_t count, void *context,
	struct error *e);

/* Record "line N: …" as RP_E_ARGUMENT; always false. */
bool ini_complain(struct error *e, const struct ini_entry *entry, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* "there is no WHAT 'WORD'; did you mean KNOWN?" */
bool ini_complain_unknown(struct error *e, const struct ini_entry *entry, const char *what,
	struct slice word, const char *const *known, size_t count);

/* How many bytes of a value a complaint shows, for "%.*s": whole characters. */
int ini_shown(struct slice value);

/* The next word of a list whose words stand apart by spaces; empty at its end. */
struct slice ini_next_word(struct slice *list);

#endif
