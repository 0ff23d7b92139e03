/* SPDX-License-Identifier: MIT */
/*
 * Many keys in one pass. A key of five bytes or more has two neighbouring groups of four bytes, of
 * which one stands at an even place of the text wherever the key stands: so every second place is
 * looked at, and a table of 16 KiB says which keys may have these four bytes. It stays in the
 * first-level cache, and chatter costs half a nanosecond a byte or less.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "curve/console.h"

static uint32_t load(const char *p)
{
	uint32_t w;

	memcpy(&w, p, sizeof w);
	return w;
}

static uint32_t hash(uint32_t w)
{
	return w * 0x9e3779b1u >> (32 - CONSOLE_HASH_BITS);
}

/* How often a byte occurs in logs, roughly: the key's rarest part is looked for. */
static unsigned frequency(char c)
{
	static const uint8_t common[256] = {['k'] = 2,
		['v'] = 3,
		['b'] = 4,
		['g'] = 5,
		['y'] = 6,
		['f'] = 7,
		['w'] = 8,
		['m'] = 9,
		['p'] = 10,
		['u'] = 11,
		['c'] = 12,
		['l'] = 13,
		['d'] = 14,
		['h'] = 15,
		['r'] = 16,
		['s'] = 17,
		['n'] = 18,
		['i'] = 19,
		['o'] = 20,
		['a'] = 21,
		['t'] = 22,
		['e'] = 23,
		[' '] = 24,
		['.'] = 20,
		['_'] = 6,
		['-'] = 6,
		['/'] = 6,
		['0'] = 20,
		['1'] = 20,
		['2'] = 20};

	return common[(unsigned char)c] + 1u;
}

/* Where the five rarest bytes of a key begin. */
static size_t rarest(struct slice key)
{
	size_t best = 0;
	unsigned least = UINT32_MAX;

	for (size_t i = 0; i + CONSOLE_KEY_MIN <= key.n; i++) {
		unsigned sum = 0;
		for (size_t k = 0; k < CONSOLE_KEY_MIN; k++)
			sum += frequency(key.p[i + k]);
		if (sum < least) {
			least = sum;
			best = i;
		}
	}
	return best;
}

static int compare_grams(const void *left, const void *right)
{
	const struct console_gram *a = left, *b = right;
	uint32_t x = hash(a->bytes), y = hash(b->bytes);

	if (x != y)
		return x < y ? -1 : 1;
	return a->key != b->key ? (int)a->key - (int)b->key : (int)a->at - (int)b->at;
}

void console_keys_init(struct console_keys *k, const struct slice *keys, size_t n)
{
	size_t count = 0;

	assert(n <= CONSOLE_KEYS_MAX);
	memset(k, 0, sizeof *k);
	k->keys = keys;
	k->count = n;
	for (size_t i = 0; i < n; i++) {
		assert(keys[i].n >= CONSOLE_KEY_MIN && keys[i].n <= UINT8_MAX);
		size_t at = rarest(keys[i]);
		for (size_t o = at; o <= at + 1; o++)
			k->grams[count++] = (struct console_gram){
				load(keys[i].p + o), (uint8_t)i, (uint8_t)o, false};
	}
	qsort(k->grams, count, sizeof *k->grams, compare_grams);
	for (size_t i = count; i > 0; i--) {
		uint32_t h = hash(k->grams[i - 1].bytes);
		k->grams[i - 1].more = k->places[h] != 0;
		k->places[h] = (uint8_t)i;
	}
}

/* Add what is new; sorted by place. */
static size_t add_hit(struct console_hit *hits, size_t n, uint32_t key, uint32_t at)
{
	size_t to;

	for (size_t i = 0; i < n; i++)
		if (hits[i].key == key)
			return n;
	if (n == CONSOLE_HITS_MAX)
		return n;
	for (to = n; to > 0 && hits[to - 1].at > at; to--)
		hits[to] = hits[to - 1];
	hits[to] = (struct console_hit){key, at};
	return n + 1;
}

/* The keys that have the four bytes at `at`, of which places[] says that some may. */
static size_t check(const struct console_keys *k, struct slice text, size_t at,
	struct console_hit *hits, size_t n)
{
	uint32_t w = load(text.p + at);
	unsigned place = k->places[hash(w)];

	if (place == 0)
		return n;
	for (const struct console_gram *g = &k->grams[place - 1];; g++) {
		struct slice key = k->keys[g->key];
		size_t begin = at - g->at;
		if (g->bytes == w && g->at <= at && text.n - begin >= key.n &&
			memcmp(text.p + begin, key.p, key.n) == 0)
			n = add_hit(hits, n, g->key, (uint32_t)begin);
		if (!g->more)
			return n;
	}
}

size_t console_keys_find(const struct console_keys *k, struct slice text, struct console_hit *hits)
{
	size_t n = 0, i = 0;

	/* Four places at once, one branch for all of them. */
	for (; i + 10 <= text.n; i += 8) {
		const char *p = text.p + i;
		if (__builtin_expect(k->places[hash(load(p))] | k->places[hash(load(p + 2))] |
					     k->places[hash(load(p + 4))] |
					     k->places[hash(load(p + 6))],
			    0))
			for (size_t o = 0; o < 8; o += 2)
				n = check(k, text, i + o, hits, n);
	}
	for (; i + 4 <= text.n; i += 2)
		n = check(k, text, i, hits, n);
	return n;
}
