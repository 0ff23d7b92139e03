/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "profile/in_name.h"

#include <ctype.h>
#include <strings.h>

#include "base/text.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* Words in front of a number, the nearest first. Words that are not listed leave the number
 * unnamed. */
static const char *const step_words[] = {"step", "checkpoint", "ckpt", "iter", "iteration",
	"global_step", "ba", "it", "update", "steps"};
static const char *const rank_words[] = {"rank", "dp", "tp", "pp", "mp", "shard", "worker", "gpu",
	"proc", "process", "node", "rng_state", "random_states", "part"};

static bool word_before(struct slice name, size_t at, const char *const *words, size_t count)
{
	/* Between a word and its number: nothing, or one of - _ = . */
	if (at > 0 && strchr("-_=.", name.p[at - 1]))
		at--;
	for (size_t i = 0; i < count; i++) {
		struct slice word = slice_of(words[i]);
		if (at < word.n || strncasecmp(name.p + at - word.n, word.p, word.n) != 0)
			continue;
		if (at == word.n || !isalpha((unsigned char)name.p[at - word.n - 1]))
			return true;
	}
	return false;
}

/* Each run of digits in a name. */
struct number {
	size_t at, end;
	uint64_t value;
};

static bool next_number(struct slice name, size_t from, struct number *out)
{
	size_t at = from;

	while (at < name.n && !isdigit((unsigned char)name.p[at]))
		at++;
	if (at == name.n)
		return false;
	size_t end = at;
	while (end < name.n && isdigit((unsigned char)name.p[end]))
		end++;
	*out = (struct number){.at = at, .end = end};
	if (!text_parse_u64((struct slice){name.p + at, end - at}, INT64_MAX, &out->value))
		out->value = UINT64_MAX;
	return true;
}

/* Digits, a point, digits: a loss or an accuracy. */
static bool is_metric(struct slice text, const struct number *n)
{
	return text.n - n->end >= 2 && text.p[n->end] == '.' &&
	       isdigit((unsigned char)text.p[n->end + 1]);
}

int64_t step_in_name(const char *name)
{
	struct slice text = slice_of(name);
	struct number n;
	int64_t unnamed = -1;
	unsigned unnamed_count = 0;
	bool metric = false;

	for (size_t from = 0; next_number(text, from, &n); from = n.end) {
		if (n.value > INT64_MAX)
			continue;
		if (word_before(text, n.at, step_words, COUNT(step_words)))
			return (int64_t)n.value;
		metric |= is_metric(text, &n);
		/* A name that is only a number, or ends in one before its extension:
		 * "model_7000.pt". */
		bool bare = n.at == 0 || strchr("-_.", text.p[n.at - 1]);
		/* Both halves of a decimal fraction ("val_loss=0.31") are a measure's. */
		bool after = n.at > 1 && text.p[n.at - 1] == '.' &&
			     isdigit((unsigned char)text.p[n.at - 2]);
		bool before = n.end + 1 < text.n && text.p[n.end] == '.' &&
			      isdigit((unsigned char)text.p[n.end + 1]);
		if (after || before)
			continue;
		/* "00001-of-00003" is a shard. */
		if (slice_starts((struct slice){text.p + n.end, text.n - n.end}, SLICE("-of-")))
			continue;
		if (bare && !word_before(text, n.at, rank_words, COUNT(rank_words)) &&
			!word_before(text, n.at,
				(const char *const[]){"epoch", "ep", "of", "version", "v"}, 5)) {
			unnamed = (int64_t)n.value;
			unnamed_count++;
		}
	}
	/* Beside a loss a bare number is an epoch as likely as a step. */
	return unnamed_count == 1 && !metric ? unnamed : -1;
}

static const char *const epoch_words[] = {"epoch", "ep", "epochs"};

int64_t place_in_name(const char *name)
{
	struct slice text = slice_of(name);
	struct number n, first = {0}, last = {0};
	uint64_t date = 0;
	unsigned count = 0, parts = 0;
	bool metric = false;

	for (size_t from = 0; next_number(text, from, &n); from = n.end) {
		size_t digits = n.end - n.at;
		/* "e3", but not the exponent of "1e-3". */
		bool e = n.at > 0 && (text.p[n.at - 1] | 0x20) == 'e' &&
			 (n.at < 2 || !isalnum((unsigned char)text.p[n.at - 2]));
		if (n.value <= INT64_MAX &&
			(e || word_before(text, n.at, epoch_words, COUNT(epoch_words))))
			return (int64_t)n.value;
		if (n.value <= INT32_MAX && word_before(text, n.at, rank_words, COUNT(rank_words)))
			return -1;
		/* A year, then groups of two digits: 2026-03-01_12-30-00. */
		if (parts == 0 && digits == 4 && n.value >= 1990 && n.value < 2200) {
			date = n.value;
			parts = 1;
		} else if (parts > 0 && parts < 6 && digits == 2 && n.at == last.end + 1) {
			date = date * 100 + n.value;
			parts++;
		}
		metric |= count > 0 && is_metric(text, &n);
		if (count++ == 0)
			first = n;
		last = n;
	}
	if (parts >= 3)
		return (int64_t)date;
	return metric && !is_metric(text, &first) && first.value <= INT64_MAX ? (int64_t)first.value
									      : -1;
}

int64_t run_in_name(const char *name)
{
	static const char *const words[] = {"fold", "seed", "trial", "split", "cv"};
	struct slice text = slice_of(name);
	struct number n;

	for (size_t from = 0; next_number(text, from, &n); from = n.end)
		if (n.value <= INT64_MAX && word_before(text, n.at, words, COUNT(words)))
			return (int64_t)n.value;
	return -1;
}

int32_t rank_in_name(const char *name)
{
	struct slice text = slice_of(name);
	struct number n;

	for (size_t from = 0; next_number(text, from, &n); from = n.end)
		if (n.value <= INT32_MAX && word_before(text, n.at, rank_words, COUNT(rank_words)))
			return (int32_t)n.value;
	return -1;
}

int64_t launch_in_path(const char *path, const char *word, size_t *start, size_t *end)
{
	int64_t launch = -1;
	size_t n = strlen(word);

	for (const char *part = path; part;
		part = strchr(part, '/') ? strchr(part, '/') + 1 : NULL) {
		size_t digits = strncmp(part, word, n) == 0 ? strspn(part + n, "0123456789") : 0;
		uint64_t number;
		if (digits == 0 || (part[n + digits] != '/' && part[n + digits] != '\0') ||
			!text_parse_u64((struct slice){part + n, digits}, INT64_MAX, &number))
			continue;
		launch = (int64_t)number;
		*start = (size_t)(part - path) + n;
		*end = *start + digits;
	}
	return launch;
}
