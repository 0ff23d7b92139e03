/* SPDX-License-Identifier: MIT */
/*
 * Text laid out for people: wrapping with a hanging indent, columns counted in characters, stress
 * by colour. Whatever is shown passes through here, and so does a last guard: a control byte, bad
 * UTF-8 or a mark that changes the direction of writing never leaves raw, even where somebody
 * forgot to escape.
 */
#ifndef REPORT_PAGE_H
#define REPORT_PAGE_H

#include <stdbool.h>

#include "base/strbuf.h"

enum page_style {
	STYLE_PLAIN,
	STYLE_BOLD,
	STYLE_DIM,
	STYLE_RED,
	STYLE_YELLOW,
	STYLE_GREEN,
};

struct page {
	struct strbuf *out;
	unsigned width; /* columns; 0: lines are not wrapped */
	bool color;
	unsigned column; /* of the next character in the line begun */
};

/* Text in the line begun, never wrapped. */
void page_put(struct page *p, enum page_style style, const char *text);

/* Spaces up to `column`; one space where the line is already there. */
void page_pad(struct page *p, unsigned column);

/*
 * Words from where the line stands, wrapped at the page's width; further lines start at `indent`. A
 * number in groups of three and a command in backquotes are one word.
 */
void page_flow(struct page *p, unsigned indent, enum page_style style, const char *text);

/* End the line. */
void page_line(struct page *p);

/* The number of columns that `text` takes as page_put() shows it. */
unsigned page_columns(const char *text);

#endif
