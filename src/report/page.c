/* SPDX-License-Identifier: MIT */
#include "report/page.h"

#include <stdint.h>
#include <string.h>

static const char *const style_codes[] = {
	[STYLE_PLAIN] = "",
	[STYLE_BOLD] = "\033[1m",
	[STYLE_DIM] = "\033[2m",
	[STYLE_RED] = "\033[1;31m",
	[STYLE_YELLOW] = "\033[33m",
	[STYLE_GREEN] = "\033[32m",
};

/* Ranges of code points; the tables are sorted and do not overlap. */
struct range {
	uint32_t first, last;
};

/* Controls, and marks that reorder or hide what follows. */
static const struct range unsafe[] = {
	{0x0000, 0x001f},
	{0x007f, 0x009f},
	{0x061c, 0x061c},
	{0x200b, 0x200f},
	{0x2028, 0x202e},
	{0x2060, 0x206f},
	{0xfeff, 0xfeff},
	{0xfff9, 0xfffb},
	{0xe0000, 0xe007f},
};
static const struct range combining[] = {
	{0x0300, 0x036f},
	{0x1ab0, 0x1aff},
	{0x1dc0, 0x1dff},
	{0x20d0, 0x20ff},
	{0xfe00, 0xfe0f},
	{0xfe20, 0xfe2f},
};
static const struct range wide[] = {
	{0x1100, 0x115f},
	{0x2e80, 0xa4cf},
	{0xac00, 0xd7a3},
	{0xf900, 0xfaff},
	{0xfe30, 0xfe6f},
	{0xff00, 0xff60},
	{0xffe0, 0xffe6},
	{0x1f300, 0x1faff},
	{0x20000, 0x3fffd},
};

static bool in_ranges(uint32_t c, const struct range *ranges, size_t count)
{
	for (size_t i = 0; i < count && c >= ranges[i].first; i++)
		if (c <= ranges[i].last)
			return true;
	return false;
}

#define IN(c, ranges) in_ranges((c), (ranges), sizeof(ranges) / sizeof *(ranges))

/* The length of the character at `p` and its code point; 0 where it is not UTF-8. */
static size_t decode(const unsigned char *p, uint32_t *c)
{
	static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
	size_t n = p[0] < 0x80       ? 1
		   : p[0] >> 5 == 6  ? 2
		   : p[0] >> 4 == 14 ? 3
		   : p[0] >> 3 == 30 ? 4
				     : 0;

	if (n <= 1) {
		*c = p[0];
		return n;
	}
	*c = p[0] & (0xffu >> (n + 1));
	for (size_t i = 1; i < n; i++) {
		if (p[i] >> 6 != 2)
			return 0;
		*c = *c << 6 | (p[i] & 0x3f);
	}
	return *c < smallest[n] || *c > 0x10ffff || (*c >= 0xd800 && *c <= 0xdfff) ? 0 : n;
}

/*
 * The next character of `*text` in the form in which it is shown, as its bytes and its columns; a
 * line feed is shown as a space. False at the end.
 */
struct glyph {
	char bytes[16];
	size_t n;
	unsigned columns;
};

static bool next_glyph(const char **text, struct glyph *g)
{
	const unsigned char *p = (const unsigned char *)*text;
	uint32_t c;

	if (*p == '\0')
		return false;
	size_t n = decode(p, &c);
	if (n == 0 || (IN(c, unsafe) && c != '\n' && c != '\t')) {
		static const char hex[] = "0123456789abcdef";

		g->n = 0;
		g->bytes[g->n++] = '\\';
		if (n > 1) {
			g->bytes[g->n++] = 'u';
			g->bytes[g->n++] = '{';
			for (int shift = c > 0xffff ? 20 : 12; shift >= 0; shift -= 4)
				g->bytes[g->n++] = hex[c >> shift & 15];
			g->bytes[g->n++] = '}';
		} else {
			g->bytes[g->n++] = 'x';
			g->bytes[g->n++] = hex[*p >> 4];
			g->bytes[g->n++] = hex[*p & 15];
			n = 1;
		}
		g->columns = (unsigned)g->n;
	} else {
		memcpy(g->bytes, p, n);
		g->n = n;
		g->columns = IN(c, combining) ? 0 : IN(c, wide) ? 2 : 1;
		if (c == '\n' || c == '\t')
			g->bytes[0] = ' ';
	}
	*text += n;
	return true;
}

unsigned page_columns(const char *text)
{
	struct glyph g;
	unsigned columns = 0;

	while (next_glyph(&text, &g))
		columns += g.columns;
	return columns;
}

static void style_begin(struct page *p, enum page_style style)
{
	if (p->color && style != STYLE_PLAIN)
		strbuf_add_text(p->out, style_codes[style]);
}

static void style_end(struct page *p, enum page_style style)
{
	if (p->color && style != STYLE_PLAIN)
		strbuf_add_text(p->out, "\033[0m");
}

static void put_until(struct page *p, const char *text, const char *end)
{
	struct glyph g;

	while (text < end && next_glyph(&text, &g)) {
		strbuf_add(p->out, g.bytes, g.n);
		p->column += g.columns;
	}
}

void page_put(struct page *p, enum page_style style, const char *text)
{
	if (*text == '\0')
		return;
	style_begin(p, style);
	put_until(p, text, text + strlen(text));
	style_end(p, style);
}

void page_pad(struct page *p, unsigned column)
{
	unsigned n = p->column < column ? column - p->column : p->column > 0 ? 1 : 0;

	strbuf_pad(p->out, ' ', n);
	p->column += n;
}

void page_line(struct page *p)
{
	strbuf_add_char(p->out, '\n');
	p->column = 0;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_space(char c)
{
	return c == ' ' || c == '\n' || c == '\t';
}

/* The end of the word at `text`: the next space that is not inside a number or a command in
 * backquotes. */
static const char *word_end(const char *text)
{
	const char *p = text, *closing;

	while (*p != '\0') {
		if (*p == '`' && (closing = strchr(p + 1, '`')))
			p = closing;
		if (is_space(*p) && !(*p == ' ' && p > text && is_digit(p[-1]) && is_digit(p[1]) &&
					    is_digit(p[2]) && is_digit(p[3]) && !is_digit(p[4])))
			break;
		p++;
	}
	return p;
}

static unsigned columns_until(const char *text, const char *end)
{
	struct glyph g;
	unsigned columns = 0;

	while (text < end && next_glyph(&text, &g))
		columns += g.columns;
	return columns;
}

void page_flow(struct page *p, unsigned indent, enum page_style style, const char *text)
{
	bool fresh = true; /* nothing of this text in the line yet */

	style_begin(p, style);
	while (*text != '\0') {
		if (is_space(*text)) {
			text++;
			continue;
		}
		const char *end = word_end(text);
		unsigned columns = columns_until(text, end);

		if (p->width > 0 && p->column + !fresh + columns > p->width && p->column > indent) {
			style_end(p, style);
			page_line(p);
			page_pad(p, indent);
			style_begin(p, style);
			fresh = true;
		}
		if (!fresh) {
			strbuf_add_char(p->out, ' ');
			p->column++;
		}
		put_until(p, text, end);
		fresh = false;
		text = end;
	}
	style_end(p, style);
}
