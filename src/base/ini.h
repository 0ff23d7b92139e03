/* SPDX-License-Identifier: MIT */
/*
 * A strict reader of INI files: `[section]`, `key = value`, and comments, which begin with `#` or
 * `;` and stand on lines of their own. What it does not understand is an error with its line, never
 * skipped: no text before the first section, no line without `=`, no empty value, no section or key
 * twice. What the sections and keys mean is the caller's affair.
 */
#ifndef BASE_INI_H
#define BASE_INI_H

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

#endif
