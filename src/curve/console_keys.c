/* SPDX-License-Identifier: MIT */
/*
 * Many keys in one pass. A key of five bytes or more has two neighbouring groups of four bytes, of
 * which one stands at an even place of the text wherever the key stands: so every second place is
 * looked at, and a table of bits says whether any key has these four bytes there. It stays in the
 * first-level cache, and chatter costs about a nanosecond for two bytes.
 */
#include <assert.h>
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
	return w * 0x9e3779b1u >> 16;
}

static unsigned bucket(uint32_t w)
{
	return hash(w) >> 8;
}

/* How often a byte occurs in logs, roughly: the key's rarest part is looked for. */
static unsigned frequency(char c)
{
	static const char common[] = "kvbgyfwmpucldhrsnioate ";
	const char *at = memchr(common, c, sizeof common - 1);

	if (at)
		return (unsigned)(at - common) + 2;
	if ((c >= '0' && c <= '9') || c == '.')
		return 20;
	return c == '_' || c == '-' || c == '/' ? 6 : 1;
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

void console_keys_init(struct console_keys *k, const struct slice *keys, size_t n)
{
	struct console_gram grams[2 * CONSOLE_KEYS_MAX];
	size_t count = 0;

	assert(n <= CONSOLE_KEYS_MAX);
	memset(k, 0, sizeof *k);
	k->keys = keys;
	k->count = n;
	for (size_t i = 0; i < n; i++) {
		assert(keys[i].n >= CONSOLE_KEY_MIN && keys[i].n <= UINT8_MAX);
		size_t at = rarest(keys[i]);
		for (size_t o = at; o <= at + 1; o++) {
			uint32_t w = load(keys[i].p + o);
			k->bits[hash(w) >> 3] |= (uint8_t)(1u << (hash(w) & 7));
			grams[count++] = (struct console_gram){w, (uint8_t)i, (uint8_t)o};
		}
	}
	for (unsigned b = 0, filled = 0; b < 256; b++) {
		k->first[b] = (uint16_t)filled;
		for (size_t i = 0; i < count; i++)
			if (bucket(grams[i].bytes) == b)
				k->grams[filled++] = grams[i];
		k->first[b + 1] = (uint16_t)filled;
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

static size_t check(const struct console_keys *k, struct slice text, size_t at, uint32_t w,
	struct console_hit *hits, size_t n)
{
	unsigned b = bucket(w);

	for (unsigned i = k->first[b]; i < k->first[b + 1]; i++) {
		const struct console_gram *g = &k->grams[i];
		if (g->bytes != w || g->at > at)
			continue;
		struct slice key = k->keys[g->key];
		size_t begin = at - g->at;
		if (text.n - begin >= key.n && memcmp(text.p + begin, key.p, key.n) == 0)
			n = add_hit(hits, n, g->key, (uint32_t)begin);
	}
	return n;
}

size_t console_keys_find(const struct console_keys *k, struct slice text, struct console_hit *hits)
{
	size_t n = 0;

	for (size_t i = 0; i + 4 <= text.n; i += 2) {
		uint32_t w = load(text.p + i), h = hash(w);
		if (__builtin_expect(k->bits[h >> 3] >> (h & 7) & 1, 0))
			n = check(k, text, i, w, hits, n);
	}
	return n;
}
