/* SPDX-License-Identifier: MIT */
/*
 * A report as JSON, and the schema of it. All keys are always there and in the same order; what is
 * not known is null. A key may be added within reprise/1, none is renamed or dropped.
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

/* The schema ---------------------------------------------------------------------------------- */

/* {"type": …}, or {"type": […, "null"]} for what may be unknown. */
static void schema_type(struct json_writer *w, const char *key, const char *type, bool nullable)
{
	json_key(w, key);
	json_open_object(w);
	json_key(w, "type");
	if (nullable) {
		json_open_array(w);
		json_text(w, type);
		json_text(w, "null");
		json_close_array(w);
	} else {
		json_text(w, type);
	}
	json_close_object(w);
}

static void schema_count(struct json_writer *w, const char *key, bool nullable)
{
	json_key(w, key);
	json_open_object(w);
	json_key(w, "type");
	if (nullable) {
		json_open_array(w);
		json_text(w, "integer");
		json_text(w, "null");
		json_close_array(w);
	} else {
		json_text(w, "integer");
	}
	json_key(w, "minimum");
	json_i64(w, 0);
	json_close_object(w);
}

/* A finding's number or word, or a table's cell. */
static void schema_quantity(struct json_writer *w, const char *key)
{
	json_key(w, key);
	json_open_object(w);
	json_key(w, "type");
	json_open_array(w);
	json_text(w, "number");
	json_text(w, "string");
	json_text(w, "null");
	json_close_array(w);
	json_close_object(w);
}

static void schema_open_enum(struct json_writer *w, const char *key)
{
	json_key(w, key);
	json_open_object(w);
	json_key(w, "enum");
	json_open_array(w);
}

static void schema_close_enum(struct json_writer *w)
{
	json_close_array(w);
	json_close_object(w);
}

/* {"type": "object", "required": […], "properties": { — to be closed by schema_close_object(). */
static void schema_open_object(struct json_writer *w, const char *const *required)
{
	json_open_object(w);
	json_key(w, "type");
	json_text(w, "object");
	json_key(w, "required");
	json_open_array(w);
	for (; *required; required++)
		json_text(w, *required);
	json_close_array(w);
	json_key(w, "properties");
	json_open_object(w);
}

static void schema_close_object(struct json_writer *w)
{
	json_close_object(w);
	json_close_object(w);
}

static void schema_open_array(struct json_writer *w, const char *key)
{
	json_key(w, key);
	json_open_object(w);
	json_key(w, "type");
	json_text(w, "array");
	json_key(w, "items");
}

static void schema_place(struct json_writer *w)
{
	static const char *const required[] = {"file", "path", "ranks", "offset", "steps", NULL};

	json_key(w, "where");
	schema_open_object(w, required);
	schema_type(w, "file", "string", true);
	schema_type(w, "path", "string", true);
	schema_type(w, "ranks", "string", true);
	schema_count(w, "offset", true);
	json_key(w, "steps");
	json_open_object(w);
	json_key(w, "type");
	json_open_array(w);
	json_text(w, "array");
	json_text(w, "null");
	json_close_array(w);
	schema_type(w, "items", "integer", false);
	json_key(w, "minItems");
	json_i64(w, 2);
	json_key(w, "maxItems");
	json_i64(w, 2);
	json_close_object(w);
	schema_close_object(w);
}

static void schema_findings(struct json_writer *w)
{
	static const char *const required[] = {"code", "id", "severity", "not_ready", "accepted",
		"message", "where", "observed", "expected", "ratio", "unit", "cause", "meaning",
		"remedy", NULL};

	schema_open_array(w, "findings");
	schema_open_object(w, required);
	schema_open_enum(w, "code");
	for (int i = 0; i < FINDING_COUNT; i++)
		json_text(w, finding_rows[i].code);
	schema_close_enum(w);
	schema_open_enum(w, "id");
	for (int i = 0; i < FINDING_COUNT; i++)
		json_text(w, finding_rows[i].id);
	schema_close_enum(w);
	schema_open_enum(w, "severity");
	for (int s = SEVERITY_OK; s <= SEVERITY_ERROR; s++)
		json_text(w, severity_name((enum severity)s));
	schema_close_enum(w);
	schema_type(w, "not_ready", "boolean", false);
	schema_type(w, "accepted", "string", true);
	schema_type(w, "message", "string", false);
	schema_place(w);
	schema_quantity(w, "observed");
	schema_quantity(w, "expected");
	schema_type(w, "ratio", "number", true);
	schema_type(w, "unit", "string", true);
	schema_type(w, "cause", "string", true);
	schema_type(w, "meaning", "string", false);
	schema_type(w, "remedy", "string", false);
	schema_close_object(w);
	json_close_object(w);
}

static void schema_coverage(struct json_writer *w)
{
	static const char *const required[] = {
		"rule", "subject", "status", "reason", "unit", "done", "total", NULL};

	schema_open_array(w, "coverage");
	schema_open_object(w, required);
	schema_type(w, "rule", "string", false);
	schema_type(w, "subject", "string", false);
	schema_open_enum(w, "status");
	for (int s = COVER_RAN; s <= COVER_NOT_CHECKED; s++)
		json_text(w, cover_status_name((enum cover_status)s));
	schema_close_enum(w);
	schema_type(w, "reason", "string", true);
	schema_type(w, "unit", "string", true);
	schema_count(w, "done", false);
	schema_count(w, "total", false);
	schema_close_object(w);
	json_close_object(w);
}

static void schema_verdict(struct json_writer *w)
{
	static const char *const required[] = {"word", "evidence", NULL};
	static const char *const would[] = {
#define VERDICT(id, word, forecast, text) "WOULD-" word,
#include "finding/verdicts.def"
#undef VERDICT
	};

	json_key(w, "verdict");
	json_open_object(w);
	json_key(w, "oneOf");
	json_open_array(w);
	schema_open_object(w, required);
	schema_open_enum(w, "word");
	for (int i = 0; i < VERDICT_COUNT; i++) {
		json_text(w, verdict_rows[i].word);
		if (verdict_rows[i].forecast)
			json_text(w, would[i]);
	}
	schema_close_enum(w);
	schema_type(w, "evidence", "string", false);
	schema_close_object(w);
	json_open_object(w);
	json_key(w, "type");
	json_text(w, "null");
	json_close_object(w);
	json_close_array(w);
	json_close_object(w);
}

void report_render_schema(struct strbuf *out)
{
	static const char *const required[] = {"schema", "command", "verdict", "policy", "summary",
		"findings", "counts", "coverage", "inputs", "tables", "incomplete", "exit", NULL};
	static const char *const required_of_input[] = {"path", "role", "kind", "step", NULL};
	struct json_writer w;

	json_writer_init(&w, out, true);
	json_open_object(&w);
	key_text(&w, "$schema", "http://json-schema.org/draft-07/schema#");
	key_text(&w, "title", "A report of reprise, schema " SCHEMA_NAME);
	key_text(&w, "description",
		"Every key is always there, null where nothing is known. Keys may be added within this version.");
	json_key(&w, "type");
	json_text(&w, "object");
	json_key(&w, "required");
	json_open_array(&w);
	for (const char *const *name = required; *name; name++)
		json_text(&w, *name);
	json_close_array(&w);
	json_key(&w, "properties");
	json_open_object(&w);
	json_key(&w, "schema");
	json_open_object(&w);
	key_text(&w, "const", SCHEMA_NAME);
	json_close_object(&w);
	schema_type(&w, "command", "string", false);
	schema_verdict(&w);
	schema_type(&w, "policy", "string", true);
	schema_type(&w, "summary", "string", true);
	schema_findings(&w);

	json_key(&w, "counts");
	json_open_object(&w);
	key_text(&w, "type", "object");
	key_text(&w, "description",
		"How many findings of each code there are in all; not all are listed.");
	schema_count(&w, "additionalProperties", false);
	json_close_object(&w);

	schema_coverage(&w);

	schema_open_array(&w, "inputs");
	schema_open_object(&w, required_of_input);
	schema_type(&w, "path", "string", true);
	schema_type(&w, "role", "string", true);
	schema_type(&w, "kind", "string", true);
	schema_type(&w, "step", "integer", true);
	schema_close_object(&w);
	json_close_object(&w);

	json_key(&w, "tables");
	json_open_object(&w);
	key_text(&w, "type", "object");
	key_text(&w, "description",
		"What the command shows beside its findings, by name: rows of named cells.");
	schema_open_array(&w, "additionalProperties");
	json_open_object(&w);
	key_text(&w, "type", "object");
	schema_quantity(&w, "additionalProperties");
	json_close_object(&w);
	json_close_object(&w);
	json_close_object(&w);

	schema_type(&w, "incomplete", "boolean", false);
	json_key(&w, "exit");
	json_open_object(&w);
	json_key(&w, "enum");
	json_open_array(&w);
	for (int status = EXIT_STATUS_FINE; status <= EXIT_STATUS_FAILED; status++)
		json_i64(&w, status);
	json_close_array(&w);
	json_close_object(&w);
	json_close_object(&w);
	json_close_object(&w);
	strbuf_add_char(out, '\n');
}
