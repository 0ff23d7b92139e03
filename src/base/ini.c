/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "base/ini.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/source.h"
#include "base/text.h"

#define SHOWN_MAX 60 /* bytes of a name that an error shows */
#define HINT_MAX 200u
#define ROWS_MAX 100u /* of a table of sections and keys */

int ini_shown(struct slice s)
{
	return (int)text_whole_prefix(s, SHOWN_MAX);
}

static __attribute__((format(printf, 3, 4))) int fail_line(
	struct error *e, unsigned line, const char *format, ...)
{
	char text[200];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	return fail(e, RP_E_FORMAT, ERROR_NO_OFFSET, "line %u: %s", line, text);
}

static bool is_space(char c)
{
	return c == ' ' || c == '\t';
}

/* Letters, digits, '_', '-' and '.'; at least one. */
static bool is_name(struct slice s)
{
	for (size_t i = 0; i < s.n; i++) {
		char c = s.p[i];
		if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') &&
			c != '_' && c != '-' && c != '.')
			return false;
	}
	return s.n > 0;
}

/* The entry of that name: a section's own line where the key is NULL. */
static const struct ini_entry *find(const struct ini *ini, struct slice section, struct slice key)
{
	for (size_t i = 0; i < ini->entries.count; i++) {
		const struct ini_entry *entry = &ini->entries.items[i];
		if (slice_eq(entry->section, section) && !entry->key.p == !key.p &&
			slice_eq(entry->key, key))
			return entry;
	}
	return NULL;
}

static int add(struct ini *ini, const struct ini_entry *entry, struct error *e)
{
	if (ini->entries.count == INI_ENTRIES_MAX)
		return fail_line(e, entry->line, "more than %u sections and keys", INI_ENTRIES_MAX);
	struct ini_entry *kept = array_push(&ini->entries, INI_ENTRIES_MAX);
	if (!kept)
		return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for line %u", entry->line);
	*kept = *entry;
	return RP_OK;
}

static int take_section(
	struct ini *ini, struct slice line, struct slice *section, unsigned number, struct error *e)
{
	if (line.p[line.n - 1] != ']')
		return fail_line(e, number, "a section is [name], and no ']' ends the line");
	struct slice name = slice_trim((struct slice){line.p + 1, line.n - 2});
	if (!is_name(name))
		return fail_line(e, number,
			"a section's name is made of letters, digits, '_', '-' and '.', not '%.*s'",
			ini_shown(name), name.p);
	const struct ini_entry *before = find(ini, name, (struct slice){0});
	if (before)
		return fail_line(e, number, "[%.*s] is there twice, first on line %u",
			ini_shown(name), name.p, before->line);
	*section = name;
	return add(ini, &(struct ini_entry){.section = name, .line = number}, e);
}

static int take_key(
	struct ini *ini, struct slice line, struct slice section, unsigned number, struct error *e)
{
	const char *equals = memchr(line.p, '=', line.n);

	if (!equals)
		return fail_line(e, number,
			"neither [section], 'key = value' nor a comment: '%.*s'", ini_shown(line),
			line.p);
	struct slice key = slice_trim((struct slice){line.p, (size_t)(equals - line.p)});
	struct slice value =
		slice_trim((struct slice){equals + 1, line.n - (size_t)(equals + 1 - line.p)});
	if (!is_name(key))
		return fail_line(e, number,
			"a key is made of letters, digits, '_', '-' and '.', not '%.*s'",
			ini_shown(key), key.p);
	if (!section.p)
		return fail_line(e, number, "'%.*s' stands before the first [section]",
			ini_shown(key), key.p);
	if (value.n == 0)
		return fail_line(e, number, "'%.*s' has no value", ini_shown(key), key.p);
	const struct ini_entry *before = find(ini, section, key);
	if (before)
		return fail_line(e, number, "'%.*s' is there twice in [%.*s], first on line %u",
			ini_shown(key), key.p, ini_shown(section), section.p, before->line);
	return add(ini,
		&(struct ini_entry){.section = section, .key = key, .value = value, .line = number},
		e);
}

/* What no line may hold. */
static int check_line(struct slice line, unsigned number, struct error *e)
{
	if (line.n > INI_LINE_MAX)
		return fail_line(e, number, "longer than %u bytes", INI_LINE_MAX);
	if (!text_is_utf8(line))
		return fail_line(e, number, "not UTF-8");
	if (slice_starts(line, SLICE("\xef\xbb\xbf")))
		return fail_line(e, number, "a byte order mark, which does not belong into UTF-8");
	while (line.n > 0) {
		uint32_t c;
		size_t n = text_utf8_next(line, &c);
		line = (struct slice){line.p + n, line.n - n};
		if (c == '\t' || !text_disturbs(c))
			continue;
		/* What hides from the eye would let a policy say other than it seems to. */
		if (c >= 0x80)
			return fail_line(e, number,
				"a character that hides or reorders others (U+%04X)", (unsigned)c);
		return fail_line(e, number, c ? "a control character (byte 0x%02x)" : "a NUL byte",
			(unsigned)c);
	}
	return RP_OK;
}

int ini_parse(struct ini *ini, struct slice text, struct error *e)
{
	struct slice section = {0};
	int status = RP_OK;

	*ini = (struct ini){0};
	for (unsigned number = 1; text.n > 0 && status == RP_OK; number++) {
		const char *end = memchr(text.p, '\n', text.n);
		struct slice line = {text.p, end ? (size_t)(end - text.p) : text.n};
		size_t used = line.n + (end != NULL);
		text = (struct slice){text.p + used, text.n - used};
		line = slice_without_return(line);
		status = check_line(line, number, e);
		line = slice_trim(line);
		if (status < 0 || line.n == 0 || line.p[0] == '#' || line.p[0] == ';')
			continue;
		status = line.p[0] == '[' ? take_section(ini, line, &section, number, e)
					  : take_key(ini, line, section, number, e);
	}
	return status;
}

int ini_read(struct ini *ini, const char *path, struct error *e)
{
	struct source s;
	char *text = NULL;

	*ini = (struct ini){0};
	int status = source_open(&s, AT_FDCWD, path, e);
	if (status < 0)
		return status;
	size_t size = (size_t)s.size;
	if (s.size > INI_FILE_MAX)
		status =
			fail(e, RP_E_LIMIT, ERROR_NO_OFFSET, "longer than %zu bytes", INI_FILE_MAX);
	else if (!(text = malloc(size + 1)))
		status = fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for %zu bytes", size);
	if (status == RP_OK)
		status = source_read(&s, 0, text, size, e);
	if (status == RP_OK)
		status = source_check(&s, e);
	source_close(&s);
	if (status == RP_OK)
		status = ini_parse(ini, (struct slice){text, size}, e);
	ini->text = text;
	return status;
}

void ini_release(struct ini *ini)
{
	array_release(&ini->entries);
	free(ini->text);
	*ini = (struct ini){0};
}

struct slice ini_next_word(struct slice *list)
{
	while (list->n > 0 && is_space(*list->p))
		*list = (struct slice){list->p + 1, list->n - 1};
	struct slice word = {list->p, 0};
	while (word.n < list->n && !is_space(word.p[word.n]))
		word.n++;
	*list = (struct slice){list->p + word.n, list->n - word.n};
	return word;
}

bool ini_complain(struct error *e, const struct ini_entry *entry, const char *format, ...)
{
	char text[200];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	fail(e, RP_E_ARGUMENT, ERROR_NO_OFFSET, "line %u: %s", entry->line, text);
	return false;
}

bool ini_complain_unknown(struct error *e, const struct ini_entry *entry, const char *what,
	struct slice word, const char *const *known, size_t count)
{
	struct strbuf hint;

	strbuf_init(&hint, HINT_MAX);
	text_add_nearest(&hint, word, known, count);
	ini_complain(e, entry, "there is no %s '%.*s'%s", what, ini_shown(word), word.p,
		strbuf_text(&hint));
	strbuf_release(&hint);
	return false;
}

/* "source." stands for "source.wiki", not for itself. */
static bool is_section(struct slice section, const char *row)
{
	struct slice name = slice_of(row);

	return name.n > 0 && name.p[name.n - 1] == '.'
		       ? section.n > name.n && slice_starts(section, name)
		       : slice_eq(section, name);
}

/* No row has the entry's section, or none of the section's has its key. */
static bool complain_unknown(
	const struct ini_entry *entry, const struct ini_key *rows, size_t count, struct error *e)
{
	const char *names[ROWS_MAX];
	size_t sections = 0, keys = 0;
	char what[ROWS_MAX];

	for (size_t i = 0; i < count; i++)
		if (is_section(entry->section, rows[i].section))
			names[keys++] = rows[i].key;
	if (keys > 0) {
		snprintf(what, sizeof what, "key of [%.*s]", ini_shown(entry->section),
			entry->section.p);
		return ini_complain_unknown(e, entry, what, entry->key, names, keys);
	}
	for (size_t i = 0; i < count; i++)
		if (sections == 0 || strcmp(names[sections - 1], rows[i].section) != 0)
			names[sections++] = rows[i].section;
	return ini_complain_unknown(e, entry, "section", entry->section, names, sections);
}

static bool take_entry(const struct ini_entry *entry, const struct ini_key *rows, size_t count,
	void *context, struct error *e)
{
	for (size_t i = 0; i < count; i++) {
		if (!is_section(entry->section, rows[i].section))
			continue;
		if (!entry->key.p)
			return true;
		if (!rows[i].key || slice_is(entry->key, rows[i].key))
			return rows[i].take(context, entry);
	}
	return complain_unknown(entry, rows, count, e);
}

bool ini_take(const struct ini *ini, const struct ini_key *rows, size_t count, void *context,
	struct error *e)
{
	if (count > ROWS_MAX)
		BUG("a table of keys is longer than thought");
	for (size_t i = 0; i < ini->entries.count; i++)
		if (!take_entry(&ini->entries.items[i], rows, count, context, e))
			return false;
	return true;
}
