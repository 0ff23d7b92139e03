/* SPDX-License-Identifier: MIT */
/* What the launches say of a rate. */
#define _GNU_SOURCE
#include <string.h>

#include "base/text.h"
#include "curve/rate.h"

static bool has_word(const char *name, const char *const *words)
{
	for (; *words; words++)
		if (strcasestr(name, *words))
			return true;
	return false;
}

static enum rate_declared declares(const char *name)
{
	static const char *const rates[] = {"lr", "learning", "warmup", "warm_up", "decay", "sched",
		"anneal", "cooldown", NULL};
	static const char *const lengths[] = {"max_steps", "train_iters", "train_samples",
		"total_steps", "max_iters", "num_iterations", "epochs", "batch", "accumulation",
		"max_duration", "train-iters", "train-samples", NULL};

	if (strcasestr(name, "weight") && strcasestr(name, "decay"))
		return RATE_UNDECLARED;
	return has_word(name, rates)     ? RATE_BY_NAME
	       : has_word(name, lengths) ? RATE_BY_LENGTH
					 : RATE_UNDECLARED;
}

enum rate_declared rate_declared(const struct stitch *s, uint32_t attempt, struct strbuf *out)
{
	uint32_t parent = s->attempts.items[attempt].parent;
	const struct stitch_setting *best = NULL;
	enum rate_declared how = RATE_UNDECLARED;

	for (size_t i = 0; i < s->settings.count && parent != CURVE_NONE; i++) {
		const struct stitch_setting *x = &s->settings.items[i];
		if (x->attempt != attempt || declares(x->name) <= how)
			continue;
		const char *before = stitch_setting_of(s, parent, x->name),
			   *after = stitch_setting_of(s, attempt, x->name);
		if (!before || !after || strcmp(before, after) == 0)
			continue;
		best = x;
		how = declares(x->name);
	}
	if (!best)
		return RATE_UNDECLARED;
	text_add_escaped(out, slice_of(best->name), 60);
	strbuf_add_char(out, ' ');
	text_add_escaped(out, slice_of(stitch_setting_of(s, parent, best->name)), 60);
	strbuf_add_text(out, " -> ");
	text_add_escaped(out, slice_of(stitch_setting_of(s, attempt, best->name)), 60);
	return how;
}
