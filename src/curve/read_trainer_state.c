/* SPDX-License-Identifier: MIT */
/*
 * trainer_state.json of Transformers, and wandb-summary.json: one JSON document each.
 *
 * A trainer state's log_history is the one line that survived: a resume loads the checkpoint's and
 * goes on. Each loss is the mean of the steps since the row before; the last row's train_loss is
 * the sum since the launch divided by all steps.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/scan.h"
#include "curve/members.h"
#include "curve/rows.h"
#include "state/epoch_log.h"

/* The whole file as one line: JSON has line ends between its parts only. */
static int load(const struct curve_reading *r, char **text, struct slice *line, struct error *e)
{
	const struct source *s = r->source;
	size_t got;

	if (s->size > r->log->limits->header_bytes)
		return fail(e, RP_E_LIMIT, ERROR_NO_OFFSET,
			"it is longer than %llu bytes (limit header-bytes)",
			(unsigned long long)r->log->limits->header_bytes);
	*text = malloc((size_t)s->size + LINES_PADDING);
	if (!*text)
		return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for a file of %llu bytes",
			(unsigned long long)s->size);
	if (source_read_some(s, 0, *text, (size_t)s->size, &got, e) < 0)
		return e->status;
	for (size_t i = 0; i < got; i++)
		if ((*text)[i] == '\n')
			(*text)[i] = ' ';
	memset(*text + got, '\n', LINES_PADDING);
	*line = (struct slice){*text, got};
	return RP_OK;
}

struct document {
	struct rows rows;
	struct curve_reading *r;
	struct error *e;
	bool finished; /* a row that ends a training */
	double global_step;
	double step, epoch; /* of the row at hand, or NAN */
	struct epoch_log epochs;
};

static bool take_number(void *to, struct slice name, double value, float resolution)
{
	struct document *d = to;
	uint32_t column;

	d->finished |= slice_is(name, "train_runtime");
	if (slice_is(name, "step"))
		d->step = value;
	else if (slice_is(name, "epoch"))
		d->epoch = value;
	return rows_column(&d->rows, name, &column, d->e) == RP_OK &&
	       rows_cell(&d->rows, column, value, resolution, d->e) == RP_OK;
}

/* The settings that tell how a log is to be read. */
static int take_setting(struct document *d, struct slice key, struct slice value)
{
	static const char *const known[] = {"logging_steps", "save_steps", "eval_steps",
		"max_steps", "num_train_epochs", "train_batch_size"};
	char text[96];

	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		if (!slice_is(key, known[i]) || value.n > 40)
			continue;
		int n = snprintf(text, sizeof text, "%s=%.*s", known[i], (int)value.n, value.p);
		return curve_mark(d->r, CURVE_SETTING, CURVE_STEPS, (double)NAN, (double)NAN,
			(struct slice){text, (size_t)n}, d->e);
	}
	return RP_OK;
}

/* Where the epoch was set back, a launch began that read its data again. */
static int mark_set_back(struct document *d)
{
	struct slice none = {"", 0};

	if (isnan(d->step) || isnan(d->epoch) || !epoch_log_take(&d->epochs, d->step, d->epoch))
		return RP_OK;
	return curve_mark(d->r, CURVE_LAUNCH, CURVE_STEPS, (double)NAN, (double)NAN, none, d->e);
}

/* The rows of log_history; where the list ends, or NULL. */
static const char *take_history(struct document *d, const char *p)
{
	bool taken;

	if (*p != '[')
		return NULL;
	p = scan_space(p + 1);
	if (*p == ']')
		return p + 1;
	for (;;) {
		d->r->at++;
		d->step = d->epoch = (double)NAN;
		if (*p != '{' || !(p = members_scan(p, take_number, d, &taken))) {
			rows_drop(&d->rows);
			return NULL;
		}
		if (!taken || mark_set_back(d) < 0 || rows_end(&d->rows, d->e) < 0)
			return NULL;
		p = scan_space(p);
		if (*p == ']')
			return p + 1;
		if (*p != ',')
			return NULL;
		p = scan_space(p + 1);
	}
}

/* The members of the state; where it ends, or NULL. */
static const char *take_state(struct document *d, const char *p)
{
	struct slice key;
	bool escaped;
	float resolution;

	p = scan_space(p);
	if (*p != '{')
		return NULL;
	for (p = scan_space(p + 1); *p != '}';) {
		if (!(p = scan_string(p, &key, &escaped)) || *(p = scan_space(p)) != ':')
			return NULL;
		const char *value = scan_space(p + 1);
		if (slice_is(key, "log_history"))
			p = take_history(d, value);
		else
			p = scan_any(value);
		if (!p)
			return NULL;
		struct slice text = {value, (size_t)(p - value)};
		if (slice_is(key, "global_step"))
			curve_number(text, false, &d->global_step, &resolution);
		if (take_setting(d, key, text) < 0)
			return NULL;
		p = scan_space(p);
		if (*p == ',')
			p = scan_space(p + 1);
		else if (*p != '}')
			return NULL;
	}
	return p + 1;
}

/* In a checkpoint's folder, the file tells that it was saved. */
static int mark_saved(struct document *d)
{
	struct slice path = slice_of(d->r->log->files.items[d->r->file].path);
	struct slice name = slice_of(d->r->name);

	path.n -= path.n > name.n ? name.n + 1 : path.n;
	if (isnan(d->global_step) || slice_find(path, SLICE("checkpoint-")) == SIZE_MAX)
		return RP_OK;
	return curve_mark(d->r, CURVE_SAVED, CURVE_STEPS, d->global_step, (double)NAN, path, d->e);
}

/* What the series' names say elsewhere is not what they mean here. */
static void set_means(const struct curve_reading *r)
{
	for (size_t i = r->log->series.count; i > 0; i--) {
		struct curve_series *s = &r->log->series.items[i - 1];
		if (s->file != r->file)
			break;
		if (strcmp(s->name, "train_loss") == 0)
			s->mean = CURVE_OF_ALL;
		else if (s->role == CURVE_LR || s->role == CURVE_GRAD_NORM ||
			 s->role == CURVE_EPOCH_COUNT)
			s->mean = CURVE_OF_STEP;
	}
}

typedef const char *(*take_fn)(struct document *d, const char *p);

static int read_document(struct curve_reading *r, take_fn take, struct error *e)
{
	struct document d = {.r = r, .e = e, .global_step = NAN};
	struct error why = ERROR_INIT;
	struct slice line = {"", 0};
	char *text = NULL;

	rows_init(&d.rows, r);
	d.rows.mean = CURVE_OF_INTERVAL;
	if (load(r, &text, &line, &why) < 0) {
		curve_lost(r, "%s", why.text);
	} else {
		const char *p = take(&d, line.p);
		struct curve_file *file = &r->log->files.items[r->file];
		file->lines = r->at;
		if (e->status == RP_OK && (!p || scan_space(p) != line.p + line.n)) {
			file->torn = p == NULL;
			curve_lost(r,
				p ? "something stands behind the JSON object"
				  : "it is damaged, or ends too early: what stands before is read");
		}
	}
	if (e->status == RP_OK && d.finished)
		curve_mark(r, CURVE_FINISHED, CURVE_STEPS, d.global_step, (double)NAN,
			(struct slice){0}, e);
	if (e->status == RP_OK)
		mark_saved(&d);
	free(text);
	rows_release(&d.rows);
	return e->status;
}

static int read_trainer_state(struct curve_reading *r, struct error *e)
{
	int status = read_document(r, take_state, e);

	curve_writer(r, "Transformers");
	set_means(r);
	return status;
}

static double step_in(const char *head, size_t n)
{
	struct slice key = SLICE("\"global_step\":");
	size_t at = slice_find((struct slice){head, n}, key);
	uint64_t step;

	if (at == SIZE_MAX || !scan_u64(scan_space(head + at + key.n), &step))
		return (double)NAN;
	return (double)step;
}

static double begun(const char *name, const char *head, size_t n)
{
	(void)name;
	return step_in(head, n);
}

static bool is_object(const char *head, size_t n)
{
	struct slice text = slice_trim((struct slice){head, n});

	return text.n > 0 && text.p[0] == '{';
}

static int probe(const char *name, const char *head, size_t n)
{
	(void)name;
	return is_object(head, n) && !isnan(step_in(head, n)) &&
			       slice_find((struct slice){head, n}, SLICE("\"log_history\":")) !=
				       SIZE_MAX
		       ? 2
		       : 0;
}

const struct curve_reader curve_reader_trainer_state = {
	.name = "trainer-state",
	.span = CURVE_SPAN_RUN,
	.probe = probe,
	.read = read_trainer_state,
	.begun = begun,
};

/* wandb's summary: the last value of each series ---------------------------------------------- */

static const char *take_summary(struct document *d, const char *p)
{
	bool taken;

	p = scan_space(p);
	d->r->at = 1;
	if (*p != '{' || !(p = members_scan(p, take_number, d, &taken)))
		return NULL;
	return taken && rows_end(&d->rows, d->e) == RP_OK ? p : NULL;
}

/* It repeats the last row of the run's own log, so that it is read only where it is named. */
static int probe_summary(const char *name, const char *head, size_t n)
{
	return strcmp(name, "wandb-summary.json") == 0 && is_object(head, n);
}

static int read_wandb_summary(struct curve_reading *r, struct error *e)
{
	int status = read_document(r, take_summary, e);

	curve_know_writer(r, "wandb", false);
	curve_note(r, "a summary holds the last value of each series alone");
	return status;
}

const struct curve_reader curve_reader_wandb_summary = {
	.name = "wandb-summary", .probe = probe_summary, .read = read_wandb_summary};
