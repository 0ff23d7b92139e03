/* SPDX-License-Identifier: MIT */
/* Run files: what is read makes sense, and can be told to a state without more ado. */
#include "state/run_file.h"

#include <math.h>

#include "fuzz/fuzz.h"

static void check_sources(const struct run_file *r)
{
	for (size_t i = 0; i < r->sources.count; i++) {
		const struct run_source *s = &r->sources.items[i];
		MUST(*s->name && s->samples >= 0 && s->line > 0);
		MUST(isfinite(s->weight) && s->weight >= 0 && isfinite(s->epochs) &&
			s->epochs >= 0);
	}
}

static void check_stages(const struct run_file *r)
{
	for (size_t i = 0; i < r->stages.count; i++) {
		const struct run_stage *s = &r->stages.items[i];
		MUST(s->from >= 0 && s->from < s->until && s->weight_count > 0);
		MUST(i == 0 || r->stages.items[i - 1].until <= s->from);
		MUST(run_file_stage(r, s->from) == s);
		for (size_t k = 0; k < s->weight_count; k++)
			MUST(s->weights[k].source < r->sources.count && s->weights[k].weight > 0);
	}
}

static void check_told(const struct run_file *r)
{
	struct limits limits = limits_default();
	struct epoch_length length;
	struct state s;

	state_init(&s, &limits);
	run_file_tell(r, &s);
	size_t told = s.facts.count;
	run_file_tell(r, &s);
	MUST(s.facts.count == told && !s.no_memory);
	if (epoch_length(&s, &length)) {
		MUST(length.batches_least >= 0 && length.batches_least <= length.batches_most);
		MUST(length.updates_least >= 0 && length.updates_least <= length.updates_most);
	}
	MUST(state_world(&s) >= 0);
	state_release(&s);
}

int fuzz_run_file(const uint8_t *data, size_t size)
{
	struct run_file r;
	struct error e = ERROR_INIT;
	int status = run_file_parse(&r, (struct slice){(const char *)data, size}, "run", &e);

	if (status < 0) {
		fuzz_check_error(&e, status);
	} else {
		check_sources(&r);
		check_stages(&r);
		check_told(&r);
	}
	run_file_release(&r);
	return 0;
}
