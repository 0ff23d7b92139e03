/* SPDX-License-Identifier: MIT */
/*
 * A report as JSON, as share/reprise-1.schema.json describes it. All keys are always there and in
 * the same order; what is not known is null. A key may be added within reprise/1, none is renamed
 * or dropped.
 */
#include "report/json_writer.h"
#include "report/report.h"

#define SCHEMA_NAME "reprise/1"

static void key_text(struct json_writer *w, const char *key, const char *text)
{
	json_key(w, key);
	json_text(w, text);
}

static void write_quantity(struct json_writer *w, const struct quantity *q)
{
	switch (q->kind) {
	case QUANTITY_COUNT:
		json_i64(w, q->count);
		return;
	case QUANTITY_REAL:
		json_double(w, q->real);
		return;
	case QUANTITY_TEXT:
		json_text(w, q->text);
		return;
	case QUANTITY_NONE:
		break;
	}
	json_null(w);
}

static void write_place(struct json_writer *w, const struct place *place)
{
	json_open_object(w);
	key_text(w, "file", place->file);
	key_text(w, "path", place->path);
	key_text(w, "ranks", place->ranks);
	json_key(w, "offset");
	if (place->offset == PLACE_NO_OFFSET)
		json_null(w);
	else
		json_u64(w, place->offset);
	json_key(w, "steps");
	if (place->step_first == PLACE_NO_STEP) {
		json_null(w);
	} else {
		json_open_array(w);
		json_i64(w, place->step_first);
		json_i64(w,
			place->step_last == PLACE_NO_STEP ? place->step_first : place->step_last);
		json_close_array(w);
	}
	json_close_object(w);
}

static void write_finding(struct json_writer *w, const struct finding *f)
{
	const struct finding_row *row = &finding_rows[f->code];
	double ratio;

	json_open_object(w);
	key_text(w, "code", row->code);
	key_text(w, "id", row->id);
	key_text(w, "severity", severity_name(f->severity));
	json_key(w, "not_ready");
	json_bool(w, f->not_ready);
	key_text(w, "accepted", f->accepted);
	key_text(w, "message", *f->message ? f->message : row->summary);
	json_key(w, "where");
	write_place(w, &f->place);
	json_key(w, "observed");
	write_quantity(w, &f->observed);
	json_key(w, "expected");
	write_quantity(w, &f->expected);
	json_key(w, "ratio");
	if (finding_ratio(f, &ratio))
		json_double(w, ratio);
	else
		json_null(w);
	key_text(w, "unit", f->unit);
	key_text(w, "cause", f->cause);
	key_text(w, "meaning", f->meaning ? f->meaning : row->explain);
	key_text(w, "remedy", f->remedy ? f->remedy : row->remedy);
	json_close_object(w);
}

static void write_cover(struct json_writer *w, const struct cover *c)
{
	json_open_object(w);
	key_text(w, "rule", c->rule);
	key_text(w, "subject", c->subject);
	key_text(w, "status", cover_status_name(c->status));
	key_text(w, "reason", c->reason);
	key_text(w, "unit", c->unit);
	json_key(w, "done");
	json_u64(w, c->done);
	json_key(w, "total");
	json_u64(w, c->total);
	json_close_object(w);
}

static void write_input(struct json_writer *w, const struct report_input *input)
{
	json_open_object(w);
	key_text(w, "path", input->path);
	key_text(w, "role", input->role);
	key_text(w, "kind", input->kind);
	json_key(w, "step");
	if (input->has_step)
		json_i64(w, input->step);
	else
		json_null(w);
	json_close_object(w);
}

static void write_table(struct json_writer *w, const struct report_table *t)
{
	json_open_array(w);
	for (size_t i = 0; i < t->rows.count; i++) {
		const struct report_row *row = &t->rows.items[i];

		json_open_object(w);
		for (size_t c = 0; c < t->column_count; c++) {
			json_key(w, t->columns[c]);
			if (row->values && row->values[c].kind != QUANTITY_NONE)
				write_quantity(w, &row->values[c]);
			else
				json_text(w, row->cells[c]);
		}
		json_close_object(w);
	}
	json_close_array(w);
}

void report_render_json(const struct report *r, struct strbuf *out)
{
	struct json_writer w;

	json_writer_init(&w, out, true);
	json_open_object(&w);
	key_text(&w, "schema", SCHEMA_NAME);
	key_text(&w, "command", r->command);
	json_key(&w, "verdict");
	if (r->has_verdict) {
		json_open_object(&w);
		key_text(&w, "word", report_word(r));
		key_text(&w, "evidence", r->evidence ? r->evidence : verdict_rows[r->word].text);
		json_close_object(&w);
	} else {
		json_null(&w);
	}
	key_text(&w, "policy", r->policy);
	key_text(&w, "summary", r->summary);
	json_key(&w, "findings");
	json_open_array(&w);
	for (size_t i = 0; i < r->findings.list.count; i++)
		write_finding(&w, &r->findings.list.items[i]);
	json_close_array(&w);

	/* Of each code, how many there are in all: not every one of thousands is in the list above.
	 */
	json_key(&w, "counts");
	json_open_object(&w);
	for (int code = 0; code < FINDING_COUNT; code++) {
		if (r->findings.of_code[code] == 0)
			continue;
		json_key(&w, finding_rows[code].code);
		json_u64(&w, r->findings.of_code[code]);
	}
	json_close_object(&w);

	json_key(&w, "coverage");
	json_open_array(&w);
	for (size_t i = 0; i < r->coverage.list.count; i++)
		write_cover(&w, &r->coverage.list.items[i]);
	json_close_array(&w);
	json_key(&w, "inputs");
	json_open_array(&w);
	for (size_t i = 0; i < r->inputs.count; i++)
		write_input(&w, &r->inputs.items[i]);
	json_close_array(&w);
	json_key(&w, "tables");
	json_open_object(&w);
	for (size_t i = 0; i < r->tables.count; i++) {
		json_key(&w, r->tables.items[i].name);
		write_table(&w, &r->tables.items[i]);
	}
	json_close_object(&w);
	json_key(&w, "incomplete");
	json_bool(&w, r->incomplete);
	json_key(&w, "exit");
	json_i64(&w, r->exit);
	json_close_object(&w);
	strbuf_add_char(out, '\n');
}
