/* SPDX-License-Identifier: MIT */
#include "api/init.h"

#include "api/choose.h"
#include "api/overview.h"
#include "api/run.h"
#include "base/text.h"

#define SHOWN_MAX 200u /* bytes of a name or path from the checkpoint */

struct drafting {
	struct init_draft *draft;
	struct strbuf *out;
	const struct state *s;
	const char *section; /* the one that was begun last */
};

static void line(struct drafting *d, const char *text)
{
	strbuf_add_text(d->out, text);
	strbuf_add_char(d->out, '\n');
}

/* A fact as the value of a key; false where it cannot be one. */
static bool value_of(const struct run_key *key, const struct fact *f, int64_t *n)
{
	double v;

	/* No checkpoint names its sampler in a way that all frameworks share. */
	if (key->kind == RUN_WORD || !fact_to_double(f, &v) || v < 0 || v > 9e15 ||
		v != (double)(int64_t)v)
		return false;
	*n = (int64_t)v;
	return key->kind == RUN_COUNT ? *n > 0 : key->kind == RUN_YESNO ? *n <= 1 : true;
}

/* The first fact under the key that could be its value. */
static const struct fact *found_fact(const struct state *s, const struct run_key *key, int64_t *n)
{
	for (size_t i = 0; i < s->facts.count; i++)
		if (s->facts.items[i].key == key->fact && value_of(key, &s->facts.items[i], n))
			return &s->facts.items[i];
	return NULL;
}

static int64_t found_number(const struct state *s, enum fact_key fact, int64_t otherwise)
{
	int64_t n;

	for (size_t i = 0; i < run_key_count; i++)
		if (run_keys[i].fact == fact && found_fact(s, &run_keys[i], &n))
			return n;
	return otherwise;
}

/* What a script calls a global batch may be none: only one that fits the other values is taken. */
static bool fits(const struct state *s, const struct run_key *key, int64_t global)
{
	int64_t micro = found_number(s, FACT_MICRO_BATCH, 0),
		accumulation = found_number(s, FACT_ACCUMULATION, 0),
		ranks = found_number(s, FACT_DP_SIZE, found_number(s, FACT_WORLD_SIZE, 0)), product;

	if (key->fact != FACT_GLOBAL_BATCH || micro == 0 || ranks == 0)
		return true;
	return !__builtin_mul_overflow(micro, ranks, &product) &&
	       !__builtin_mul_overflow(product, accumulation ? accumulation : 1, &product) &&
	       (accumulation ? product == global : global % product == 0);
}

static void comment_origin(struct drafting *d, const struct fact *f)
{
	strbuf_add_text(d->out, f->how == HOW_READ ? "# found in " : "# follows from ");
	const char *file = state_file_path(d->s, f->file);
	text_add_escaped(d->out, slice_of(*file ? file : "what the checkpoint holds"), SHOWN_MAX);
	if (*f->path) {
		strbuf_add_text(d->out, ", ");
		text_add_escaped(d->out, slice_of(f->path), SHOWN_MAX);
	}
	strbuf_add_char(d->out, '\n');
}

/* "key = value", or the same as a comment. */
static void add_key(struct drafting *d, bool found, const char *key, const char *value)
{
	strbuf_printf(d->out, "%s%s = %s\n", found ? "" : "# ", key, value);
	d->draft->found += found;
	d->draft->open += !found;
}

static void add_number(struct drafting *d, const struct run_key *key, bool found, int64_t n)
{
	char text[32];

	if (key->kind == RUN_YESNO)
		snprintf(text, sizeof text, "%s", n ? "yes" : "no");
	else
		snprintf(text, sizeof text, "%lld", (long long)n);
	add_key(d, found, key->key, text);
}

static void begin_section(struct drafting *d, const char *name)
{
	d->section = name;
	strbuf_printf(d->out, "\n[%s]\n", name);
}

static void draft_key(struct drafting *d, const struct run_key *key)
{
	int64_t n = 0;
	const struct fact *f = found_fact(d->s, key, &n);

	if (!d->section || strcmp(d->section, key->section) != 0)
		begin_section(d, key->section);
	strbuf_printf(d->out, "# %s\n", key->comment);
	if (key->fact == FACT_WORLD_SIZE && !f && d->s->world > 0) {
		/* One that is missing would go unnoticed for good. */
		line(d, "# so many left a state of their own; is one missing?");
		add_number(d, key, false, d->s->world);
	} else if (!f) {
		add_key(d, false, key->key, key->example);
	} else {
		comment_origin(d, f);
		/* What the counters give is checked against data set and batch, and so not told. */
		bool taken = f->how == HOW_READ && fits(d->s, key, n);
		if (f->how == HOW_READ && !taken)
			line(d, "# it is not micro x accumulation x ranks; which of them is meant otherwise?");
		add_number(d, key, taken, n);
	}
}

static bool has_stream(const struct state *s, const char *owner)
{
	for (size_t i = 0; i < s->streams.count; i++)
		if (strcmp(s->streams.items[i].owner, owner) == 0)
			return true;
	return false;
}

/* The streams that are not saved are those that could be declared unused. */
static void draft_streams(struct drafting *d)
{
	static const struct {
		const char *owner, *name;
	} streams[] = {
		{"python", "python"}, {"numpy", "numpy"}, {"torch cpu", "torch"}, {"cuda", "cuda"}};
	char missing[64] = "";
	size_t n = 0;

	for (size_t i = 0; i < sizeof streams / sizeof *streams; i++)
		if (!has_stream(d->s, streams[i].owner) &&
			(strcmp(streams[i].owner, "cuda") != 0 || d->s->on_cuda))
			n += (size_t)snprintf(missing + n, sizeof missing - n, "%s%s", n ? " " : "",
				streams[i].name);
	begin_section(d, "streams");
	line(d, "# random streams that nothing in the training draws from, so that their absence is no fault:");
	line(d, "# python, numpy, torch (the CPU generator), cuda");
	if (n > 0)
		line(d, "# not saved in this checkpoint:");
	add_key(d, false, "unused", n > 0 ? missing : "numpy");
}

static void draft_model(struct drafting *d)
{
	int64_t n;
	char text[32];
	bool found = state_int(d->s, FACT_PARAMETERS, &n) && n > 0;

	begin_section(d, "model");
	line(d, "# the number of trained parameters that the model must have, or a range: 90000000..110000000");
	if (found)
		line(d, "# follows from the weights in the checkpoint: is it what you wanted to train?");
	snprintf(text, sizeof text, "%lld", (long long)(found ? n : 103900000));
	add_key(d, found, "parameters", text);
}

static void draft_resume(struct drafting *d)
{
	const struct profile *p = d->s->profile;

	begin_section(d, "resume");
	line(d, "# what a resume does with the data of an epoch that was begun, where no position is saved:");
	line(d, "# skips (the script passes over what was read) or restarts (it begins the epoch again)");
	if (!p->fallback && p->position_note)
		strbuf_printf(d->out, "# %s: %s\n", p->title, p->position_note);
	add_key(d, false, "data", "skips");
}

/* Examples alone: no checkpoint holds them. */
static void draft_mixture(struct drafting *d)
{
	static const char *const lines[] = {"",
		"# The data sets of a mixture, one section each: samples, weight (against the other weights) and the",
		"# epochs that it is to be read for.", "# [source.wiki]", "# samples = 600000",
		"# weight = 0.7", "# epochs = 2", "# [source.code]", "# samples = 200000",
		"# weight = 0.3", "",
		"# Stages with a mixture of their own: of the steps after `from`, up to `until`.",
		"# [stage.main]", "# from = 0", "# until = 90000", "# weights = wiki 0.7 code 0.3",
		"# [stage.anneal]", "# from = 90000", "# weights = wiki 0.2 code 0.8"};

	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
		line(d, lines[i]);
}

static void draft_head(struct drafting *d, const char *summary)
{
	line(d, "# What the checkpoints of this run do not say. verify, gate, compare and show read it; see reprise-run(5).");
	strbuf_add_text(d->out, "# Drafted from ");
	text_add_escaped(d->out, slice_of(d->s->path), SHOWN_MAX);
	strbuf_add_text(d->out, ": ");
	text_add_escaped(d->out, slice_of(summary), SHOWN_MAX);
	strbuf_add_text(d->out, ".\n#\n");
	line(d, "# A line with a value is from there. Take the # from the others where you know better than their example;");
	line(d, "# what is left out is not checked.");
}

static void draft_all(struct drafting *d, const char *summary)
{
	draft_head(d, summary);
	for (size_t i = 0; i < run_key_count; i++)
		draft_key(d, &run_keys[i]);
	draft_model(d);
	draft_resume(d);
	draft_streams(d);
	draft_mixture(d);
}

int init_path(struct init_draft *draft, struct strbuf *text, struct report *r, const char *path,
	const struct verify_options *o, struct error *e)
{
	struct subject s;
	struct choice choice = {.chosen = SIZE_MAX};
	int status = subject_open(&s, path, &o->limits, e);

	*draft = (struct init_draft){0};
	if (status == RP_OK)
		status = choose_checkpoint(&choice, r, &s, o, e);
	if (status == RP_OK && choice.chosen == SIZE_MAX)
		status = fail(e, RP_E_ARGUMENT, ERROR_NO_OFFSET, "%s", r->evidence);
	if (status == RP_OK)
		status = subject_read(
			&s, &s.candidates.list.items[choice.chosen], &o->limits, &r->findings, e);
	if (status == RP_OK)
		status = choice_of_step(&s, o, e);
	if (status == RP_OK) {
		struct drafting d = {.draft = draft, .out = text, .s = &s.state};
		draft->checkpoint = report_text(r, "%s", s.state.path);
		draft->place = run_place(r, &s);
		draft_all(&d, overview_line(r, &s.state));
		if (r->findings.lost > 0)
			status = fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for the draft");
	}
	choice_release(&choice);
	subject_close(&s);
	return status;
}
