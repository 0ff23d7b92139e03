/* SPDX-License-Identifier: MIT */
#include "report/page.h"

#include <stdint.h>
#include <string.h>

#include "base/text.h"

#define SHOWN_MAX ((size_t)16 << 20)

static const char *const style_codes[] = {
	[STYLE_PLAIN] = "",
	[STYLE_BOLD] = "\033[1m",
	[STYLE_DIM] = "\033[2m",
	[STYLE_RED] = "\033[1;31m",
	[STYLE_YELLOW] = "\033[33m",
	[STYLE_GREEN] = "\033[32m",
};

/* Ranges of code points, sorted. */
struct range {
	uint32_t first, last;
};

/* Marks that are drawn over the character before them. */
/* clang-format off */
static const struct range combining[] = {
	{0x0300, 0x036f}, {0x1ab0, 0x1aff}, {0x1dc0, 0x1dff}, {0x200c, 0x200d}, {0x20d0, 0x20ff},
	{0xfe00, 0xfe0f}, {0xfe20, 0xfe2f},
};
/* Ideographs, syllables and pictures that take two columns. */
static const struct range wide[] = {
	{0x1100, 0x115f}, {0x2e80, 0xa4cf}, {0xac00, 0xd7a3}, {0xf900, 0xfaff}, {0xfe30, 0xfe6f},
	{0xff00, 0xff60}, {0xffe0, 0xffe6}, {0x1f300, 0x1faff}, {0x20000, 0x3fffd},
};
/* clang-format on */

static bool in_ranges(uint32_t c, const struct range *ranges, size_t count)
{
	for (size_t i = 0; i < count && c >= ranges[i].first; i++)
		if (c <= ranges[i].last)
			return true;
	return false;
}

#define IN(c, ranges) in_ranges((c), (ranges), sizeof(ranges) / sizeof *(ranges))

/* The columns of text that is escaped already. */
static unsigned columns_of(struct slice text)
{
	unsigned columns = 0;
	uint32_t c;

	while (text.n > 0) {
		size_t n = text_utf8_next(text, &c);
		if (n == 0) /* the escaping leaves none */
			n = 1;
		columns += IN(c, combining) ? 0 : IN(c, wide) ? 2 : 1;
		text.p += n;
		text.n -= n;
	}
	return columns;
}

/* The text as it may be shown; to be released. */
static struct slice escape(struct strbuf *b, const char *text)
{
	strbuf_init(b, SHOWN_MAX);
	text_add_escaped(b, slice_of(text), SHOWN_MAX / 8);
	return strbuf_slice(b);
}

static void release(struct page *p, struct strbuf *b)
{
	p->out->failed |= b->failed;
	strbuf_release(b);
}

unsigned page_columns(const char *text)
{
	struct strbuf b;
	struct slice shown = escape(&b, text);
	/* Without memory nothing will be shown; any width is right then. */
	unsigned columns = columns_of(b.no_memory ? slice_of(text) : shown);

	strbuf_release(&b);
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

void page_put(struct page *p, enum page_style style, const char *text)
{
	struct strbuf b;
	struct slice shown = escape(&b, text);

	if (shown.n > 0) {
		style_begin(p, style);
		strbuf_add_slice(p->out, shown);
		style_end(p, style);
		p->column += columns_of(shown);
	}
	release(p, &b);
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

/* Whether the space at `at` stands between groups of three digits of one number. */
static bool inside_number(const char *text, const char *at)
{
	return at > text && is_digit(at[-1]) && is_digit(at[1]) && is_digit(at[2]) &&
	       is_digit(at[3]) && !is_digit(at[4]);
}

/* The end of the word at `text`: the next space outside of a number and of a command in backquotes.
 */
static const char *word_end(const char *text)
{
	const char *p = text, *closing;

	while (*p != '\0' && (*p != ' ' || inside_number(text, p))) {
		if (*p == '`' && (closing = strchr(p + 1, '`')))
			p = closing;
		p++;
	}
	return p;
}

void page_flow(struct page *p, unsigned indent, enum page_style style, const char *text)
{
	struct strbuf b;
	const char *word = escape(&b, text).p, *end;
	bool fresh = true; /* nothing of this text in the line yet */

	style_begin(p, style);
	for (; *word != '\0'; word = end) {
		if (*word == ' ') {
			end = word + 1;
			continue;
		}
		end = word_end(word);
		struct slice piece = {word, (size_t)(end - word)};
		unsigned columns = columns_of(piece);

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
		strbuf_add_slice(p->out, piece);
		p->column += columns;
		fresh = false;
	}
	style_end(p, style);
	release(p, &b);
}
