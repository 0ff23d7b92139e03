/* SPDX-License-Identifier: MIT */
/*
 * TensorBoard's event files: records of protobuf messages. Scalars are float32 in the old form and
 * tensors without dimensions in the new one; pictures, histograms, graphs and texts are passed
 * over.
 *
 * A file is one launch of a writer. A session that starts anew in it, or a SummaryWriter made with
 * purge_step, takes back all later steps by a START record. TensorBoard itself ignores the first
 * START that it meets, and so shows what the writer took back; here each counts.
 */
#define _GNU_SOURCE /* memrchr() */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "curve/find.h"
#include "curve/protobuf.h"
#include "curve/read.h"
#include "curve/tfrecord.h"
#include "value/tensor.h"

#define TAGS_MAX 65536u
#define EARLIER_MAX 1024u /* files among which that before one is looked for */

/* Numbers of fields, by message: see event.proto, summary.proto and tensor.proto of TensorFlow. */
enum event_field {
	EVENT_WALL_TIME = 1,
	EVENT_STEP = 2,
	EVENT_FILE_VERSION = 3,
	EVENT_SUMMARY = 5,
	EVENT_SESSION_LOG = 7,
};

enum summary_field { SUMMARY_VALUE = 1 };

enum value_field {
	VALUE_TAG = 1,
	VALUE_SIMPLE = 2,
	VALUE_TENSOR = 8,
	VALUE_METADATA = 9,
};

enum metadata_field {
	METADATA_PLUGIN_DATA = 1,
	METADATA_DATA_CLASS = 4,
	PLUGIN_NAME = 1,
	CLASS_SCALAR = 1,
};

enum tensor_field {
	TENSOR_DTYPE = 1,
	TENSOR_SHAPE = 2,
	TENSOR_CONTENT = 4,
	TENSOR_FLOATS = 5,
	TENSOR_DOUBLES = 6,
	TENSOR_INTS = 7,
	TENSOR_INT64S = 10,
	TENSOR_HALVES = 13,
	SHAPE_DIM = 2,
};

enum session_field { SESSION_STATUS = 1, SESSION_PATH = 2 };
enum session_status { SESSION_START = 1, SESSION_STOP = 2, SESSION_CHECKPOINT = 3 };

struct tag {
	const char *name;
	size_t n;
	uint32_t series; /* CURVE_NONE before its first value */
	bool has_series;
	bool scalar; /* its metadata say so */
};

struct events {
	struct curve_reading *r;
	struct tfrecord records;
	ARRAY(struct tag) tags;
	struct lookup by_name;
	uint32_t last; /* the tag of the value before */
	bool launched;
	bool summed_up; /* hyperparameters and the metrics of a run are in it */
	struct error *e;
};

struct event {
	double wall;
	int64_t step;
	struct slice session; /* p NULL: none */
};

struct value {
	struct slice tag, tensor;
	float simple;
	bool has_simple, has_tensor, scalar;
};

/* Values --------------------------------------------------------------------------------------- */

static enum dtype dtype_of(uint64_t number)
{
	switch (number) {
	case 1:
		return DTYPE_F32;
	case 2:
		return DTYPE_F64;
	case 3:
		return DTYPE_I32;
	case 9:
		return DTYPE_I64;
	case 14:
		return DTYPE_BF16;
	case 19:
		return DTYPE_F16;
	default:
		return DTYPE_UNKNOWN;
	}
}

/* Whether a shape has one element: no dimension, or only such of size 1. */
static bool is_single(struct slice shape)
{
	struct protobuf m = protobuf_over(shape);

	while (protobuf_next(&m)) {
		if (!protobuf_is(&m, SHAPE_DIM, PROTOBUF_BYTES))
			continue;
		struct protobuf dim = protobuf_over(m.bytes);
		uint64_t size = 0;
		while (protobuf_next(&dim))
			if (protobuf_is(&dim, 1, PROTOBUF_VARINT))
				size = dim.value;
		if (size != 1)
			return false;
	}
	return !m.failed;
}

/* The first of the numbers of a repeated field, which stand packed or alone. */
static bool first_number(const struct protobuf *m, enum protobuf_wire wire, uint64_t *bits)
{
	struct protobuf packed = protobuf_over(m->bytes);

	*bits = m->value;
	if (m->wire == wire)
		return true;
	if (m->wire != PROTOBUF_BYTES || m->bytes.n == 0)
		return false;
	switch (wire) {
	case PROTOBUF_FIXED32:
		*bits = m->bytes.n >= 4 ? load_le32(m->bytes.p) : 0;
		return m->bytes.n >= 4;
	case PROTOBUF_FIXED64:
		*bits = m->bytes.n >= 8 ? load_le64(m->bytes.p) : 0;
		return m->bytes.n >= 8;
	default:
		*bits = protobuf_varint(&packed);
		return !packed.failed;
	}
}

/* The one number of a tensor; false where it has none, or many. */
static bool tensor_number(struct slice tensor, double *value)
{
	struct protobuf m = protobuf_over(tensor);
	enum dtype dtype = DTYPE_UNKNOWN;
	struct slice content = {0};
	bool single = true, found = false;
	uint64_t bits;
	uint8_t half[2];

	while (protobuf_next(&m)) {
		if (protobuf_is(&m, TENSOR_DTYPE, PROTOBUF_VARINT)) {
			dtype = dtype_of(m.value);
		} else if (protobuf_is(&m, TENSOR_SHAPE, PROTOBUF_BYTES)) {
			single = is_single(m.bytes);
		} else if (protobuf_is(&m, TENSOR_CONTENT, PROTOBUF_BYTES)) {
			content = m.bytes;
		} else if (m.field == TENSOR_FLOATS && first_number(&m, PROTOBUF_FIXED32, &bits)) {
			*value = (double)protobuf_float(bits);
			found = true;
		} else if (m.field == TENSOR_DOUBLES && first_number(&m, PROTOBUF_FIXED64, &bits)) {
			*value = protobuf_double(bits);
			found = true;
		} else if ((m.field == TENSOR_INTS || m.field == TENSOR_INT64S) &&
			   first_number(&m, PROTOBUF_VARINT, &bits)) {
			*value = (double)(int64_t)bits;
			found = true;
		} else if (m.field == TENSOR_HALVES && dtype != DTYPE_UNKNOWN &&
			   first_number(&m, PROTOBUF_VARINT, &bits)) {
			half[0] = (uint8_t)bits;
			half[1] = (uint8_t)(bits >> 8);
			found = dtype_size(dtype) == 2 &&
				dtype_to_double(dtype, half, false, value);
		}
	}
	if (m.failed || !single || dtype == DTYPE_UNKNOWN)
		return false;
	if (!found && content.n == dtype_size(dtype))
		found = dtype_to_double(dtype, (const uint8_t *)content.p, false, value);
	return found;
}

static bool says_scalar(struct slice metadata)
{
	struct protobuf m = protobuf_over(metadata);
	bool scalar = false;

	while (protobuf_next(&m)) {
		if (protobuf_is(&m, METADATA_DATA_CLASS, PROTOBUF_VARINT))
			scalar |= m.value == CLASS_SCALAR;
		if (!protobuf_is(&m, METADATA_PLUGIN_DATA, PROTOBUF_BYTES))
			continue;
		struct protobuf plugin = protobuf_over(m.bytes);
		while (protobuf_next(&plugin))
			if (protobuf_is(&plugin, PLUGIN_NAME, PROTOBUF_BYTES))
				scalar |= slice_is(plugin.bytes, "scalars");
	}
	return scalar;
}

static bool read_value(struct slice bytes, struct value *v)
{
	struct protobuf m = protobuf_over(bytes);

	*v = (struct value){0};
	while (protobuf_next(&m)) {
		if (protobuf_is(&m, VALUE_TAG, PROTOBUF_BYTES)) {
			v->tag = m.bytes;
		} else if (protobuf_is(&m, VALUE_SIMPLE, PROTOBUF_FIXED32)) {
			v->simple = protobuf_float(m.value);
			v->has_simple = true;
		} else if (protobuf_is(&m, VALUE_TENSOR, PROTOBUF_BYTES)) {
			v->tensor = m.bytes;
			v->has_tensor = true;
		} else if (protobuf_is(&m, VALUE_METADATA, PROTOBUF_BYTES)) {
			v->scalar = says_scalar(m.bytes);
		}
	}
	return !m.failed;
}

/* Tags ----------------------------------------------------------------------------------------- */

static bool same_tag(const void *of, uint32_t row, const void *key)
{
	const struct tag *t = &((const struct events *)of)->tags.items[row];

	return slice_eq((struct slice){t->name, t->n}, *(const struct slice *)key);
}

/* The tag of a name; CURVE_NONE where there are too many. */
static int tag_of(struct events *ev, struct slice name, uint32_t *tag)
{
	/* Writers log the same tags in the same order, step by step. */
	uint32_t next = ev->last + 1 < ev->tags.count ? ev->last + 1 : 0;

	if (next < ev->tags.count && same_tag(ev, next, &name)) {
		*tag = ev->last = next;
		return RP_OK;
	}
	uint64_t hash = XXH3_64bits(name.n ? name.p : "", name.n);
	*tag = lookup_find(&ev->by_name, hash, same_tag, ev, &name);
	if (*tag == LOOKUP_NONE && ev->tags.count < TAGS_MAX) {
		*tag = (uint32_t)ev->tags.count;
		struct tag *t = array_push(&ev->tags, TAGS_MAX);
		const char *kept = arena_strdup(&ev->r->log->arena, name);
		if (!t || !kept || !lookup_add(&ev->by_name, hash, *tag))
			return fail(ev->e, RP_E_MEMORY, ERROR_NO_OFFSET,
				"no memory for the tags of an event file");
		*t = (struct tag){.name = kept, .n = name.n};
	}
	if (*tag != LOOKUP_NONE)
		ev->last = *tag;
	return RP_OK;
}

static int launch(struct events *ev)
{
	if (ev->launched)
		return RP_OK;
	ev->launched = true;
	return curve_mark(ev->r, CURVE_LAUNCH, CURVE_STEPS, (double)NAN, (double)NAN,
		(struct slice){0}, ev->e);
}

static int take_value(struct events *ev, const struct event *event, const struct value *v)
{
	uint32_t index;
	double value = (double)v->simple;

	ev->summed_up |= slice_is(v->tag, "_hparams_/session_end_info");
	if (!v->has_simple && !v->has_tensor)
		return RP_OK;
	if (tag_of(ev, v->tag, &index) < 0)
		return ev->e->status;
	if (index == CURVE_NONE) {
		ev->r->log->dropped++;
		return RP_OK;
	}
	struct tag *tag = &ev->tags.items[index];
	tag->scalar |= v->scalar;
	if (!v->has_simple && (!tag->scalar || !tensor_number(v->tensor, &value)))
		return RP_OK;
	if (launch(ev) < 0)
		return ev->e->status;
	if (!tag->has_series) {
		tag->has_series = true;
		if (curve_series_of(ev->r, v->tag, CURVE_OTHER, CURVE_STEPS, CURVE_OF_UNKNOWN, -1,
			    &tag->series, ev->e) < 0)
			return ev->e->status;
	}
	return curve_add(ev->r, tag->series, (double)event->step, value, 0, ev->e);
}

/* Events --------------------------------------------------------------------------------------- */

static int take_session(struct events *ev, const struct event *event)
{
	struct protobuf m = protobuf_over(event->session);
	uint64_t status = 0;
	struct slice path = {0};
	double step = (double)event->step;

	while (protobuf_next(&m)) {
		if (protobuf_is(&m, SESSION_STATUS, PROTOBUF_VARINT))
			status = m.value;
		if (protobuf_is(&m, SESSION_PATH, PROTOBUF_BYTES))
			path = m.bytes;
	}
	switch (m.failed ? 0 : status) {
	case SESSION_START:
		/* Behind points of its own it is a launch into the same file. */
		if (ev->r->log->files.items[ev->r->file].points > 0)
			ev->launched = false;
		if (launch(ev) < 0)
			return ev->e->status;
		return curve_mark(ev->r, CURVE_PURGED, CURVE_STEPS, step, (double)NAN,
			(struct slice){0}, ev->e);
	case SESSION_STOP:
		return curve_mark(ev->r, CURVE_FINISHED, CURVE_STEPS, step, (double)NAN,
			(struct slice){0}, ev->e);
	case SESSION_CHECKPOINT:
		return curve_mark(ev->r, CURVE_SAVED, CURVE_STEPS, step, (double)NAN, path, ev->e);
	default:
		return RP_OK;
	}
}

/* All of a summary's values; *whole is false where it is damaged. */
static int take_summary(
	struct events *ev, const struct event *event, struct slice summary, bool *whole)
{
	struct protobuf m = protobuf_over(summary);
	struct value v;
	int status = RP_OK;

	while (status == RP_OK && protobuf_next(&m)) {
		if (!protobuf_is(&m, SUMMARY_VALUE, PROTOBUF_BYTES))
			continue;
		if (read_value(m.bytes, &v))
			status = take_value(ev, event, &v);
		else
			*whole = false;
	}
	*whole = *whole && !m.failed;
	return status;
}

static int take_event(struct events *ev)
{
	struct protobuf m = protobuf_over(ev->records.data), summary = {0};
	struct event event = {.wall = NAN};
	bool whole = true;
	int status = RP_OK;

	/* Time and step may stand behind the summary that they are of. */
	while (protobuf_next(&m)) {
		if (protobuf_is(&m, EVENT_WALL_TIME, PROTOBUF_FIXED64))
			event.wall = protobuf_double(m.value);
		else if (protobuf_is(&m, EVENT_STEP, PROTOBUF_VARINT))
			event.step = (int64_t)m.value;
		else if (protobuf_is(&m, EVENT_SESSION_LOG, PROTOBUF_BYTES))
			event.session = m.bytes;
		else if (!summary.p && protobuf_is(&m, EVENT_SUMMARY, PROTOBUF_BYTES))
			summary = m;
	}
	if (m.failed) {
		curve_lost(ev->r, "the record is no event");
		return RP_OK;
	}
	ev->r->wall = isfinite(event.wall) ? event.wall : (double)NAN;
	if (event.session.p)
		status = take_session(ev, &event);
	for (bool more = summary.p; more && status == RP_OK; more = protobuf_next(&summary))
		if (protobuf_is(&summary, EVENT_SUMMARY, PROTOBUF_BYTES))
			status = take_summary(ev, &event, summary.bytes, &whole);
	if (!whole)
		curve_lost(ev->r, "the record's summary is damaged");
	return status;
}

/* Files ---------------------------------------------------------------------------------------- */

/* What stands behind "tfevents." in the name: the time at which the file was begun. */
static double begun(const char *name, const char *head, size_t n)
{
	const char *at = strstr(name, "tfevents.");
	double seconds;
	float resolution;

	if (at) {
		at += strlen("tfevents.");
		struct slice digits = {at, strspn(at, "0123456789")};
		if (digits.n >= 9 && curve_number(digits, false, &seconds, &resolution))
			return seconds;
	}
	if (n < TFRECORD_HEAD + 9 || head[TFRECORD_HEAD] != (EVENT_WALL_TIME << 3 | 1))
		return (double)NAN;
	return protobuf_double(load_le64(head + TFRECORD_HEAD + 1));
}

/*
 * What stands behind the time in the name that PyTorch and TensorBoard give: the host, the process
 * and how many files that process had begun before, "host.1234.0". False of other names.
 */
static bool process_of(const char *path, struct slice *process, double *file)
{
	const char *at = strstr(curve_base_name(path), "tfevents.");
	float resolution;

	if (!at)
		return false;
	at += strlen("tfevents.");
	at += strspn(at, "0123456789");
	size_t n = strlen(at), digits = n;
	while (digits > 0 && at[digits - 1] >= '0' && at[digits - 1] <= '9')
		digits--;
	if (digits == n || digits < 4 || at[digits - 1] != '.' ||
		!curve_number((struct slice){at + digits, n - digits}, false, file, &resolution))
		return false;
	*process = (struct slice){at, digits - 1};
	/* tensorboardX says the host only, which may end in a number as well. */
	const char *number = memrchr(process->p, '.', process->n);
	return number && number + 1 < process->p + process->n &&
	       strspn(number + 1, "0123456789") == (size_t)(process->p + process->n - number - 1);
}

static bool same_folder(const char *a, const char *b)
{
	size_t na = (size_t)(curve_base_name(a) - a), nb = (size_t)(curve_base_name(b) - b);

	return na == nb && memcmp(a, b, na) == 0;
}

/* What the name of an event file says. */
struct event_name {
	struct slice process;
	double file, begun;
};

static bool read_name(const char *path, struct event_name *n)
{
	n->begun = begun(curve_base_name(path), "", 0);
	return process_of(path, &n->process, &n->file);
}

/*
 * The file of the folder that the process wrote into before this one, from 1, or 0: some trainers
 * close their file at each evaluation. A process counts its files from 0, in all folders: one that
 * counts less is a later process of the same number, as containers have it.
 */
static uint32_t find_earlier(const struct curve_reading *r)
{
	const struct curve_file *files = r->log->files.items;
	const char *path = files[r->file].path;
	uint32_t least = r->file > EARLIER_MAX ? r->file - EARLIER_MAX : 0, i = r->file;
	struct event_name mine, before, other;

	if (!read_name(path, &mine))
		return 0;
	while (i > least &&
		!(same_folder(files[i - 1].path, path) && read_name(files[i - 1].path, &before) &&
			slice_eq(before.process, mine.process)))
		i--;
	if (i == least || before.file >= mine.file)
		return 0;
	for (uint32_t k = i; k < r->file; k++)
		if (read_name(files[k].path, &other) && slice_eq(other.process, mine.process) &&
			other.file <= before.file && other.begun > before.begun)
			return 0;
	return i;
}

static int probe(const char *name, const char *head, size_t n)
{
	if (tfrecord_begins(head, n)) {
		/* The first record of an event file says its version; other TFRecord files hold
		 * samples. */
		struct slice first = {head, n < 256 ? n : 256};
		if (slice_find(first, SLICE("brain.Event:")) != SIZE_MAX ||
			strstr(name, "tfevents"))
			return 2;
		return 0;
	}
	/* A damaged one is still one. */
	return strstr(name, "tfevents") ? 2 : 0;
}

static int take_record(struct events *ev, enum tfrecord_state state)
{
	struct curve_reading *r = ev->r;
	struct curve_file *file = &r->log->files.items[r->file];

	r->at = ev->records.offset + 1;
	file->lines++;
	switch (state) {
	case TFRECORD_WHOLE:
		return take_event(ev);
	case TFRECORD_DAMAGED:
		curve_lost(r, "the record's sum (CRC-32C) is wrong");
		return RP_OK;
	case TFRECORD_TOO_LONG:
		curve_lost(r, "the record is longer than %llu bytes (limit line-bytes)",
			(unsigned long long)ev->records.max);
		return RP_OK;
	case TFRECORD_LOST:
		curve_lost(r,
			"a record's length is damaged: %llu bytes in which no whole record begins",
			(unsigned long long)ev->records.passed);
		return RP_OK;
	default:
		file->torn = true;
		return RP_OK;
	}
}

/*
 * A file that was made for hyperparameters holds the last values of a run's metrics at step 0,
 * which are no points of a curve.
 */
static void drop_summary(struct curve_reading *r)
{
	struct curve_log *l = r->log;
	struct curve_file *file = &l->files.items[r->file];
	size_t first = l->points.count;

	while (first > 0 && l->series.items[l->points.items[first - 1].series].file == r->file)
		if (l->points.items[--first].x != 0)
			return;
	l->points.count = first;
	file->points = 0;
	for (size_t i = l->series.count; i > 0 && l->series.items[i - 1].file == r->file; i--)
		l->series.items[i - 1].points = 0;
	curve_note(r, "the values that stand beside hyperparameters are no points of a curve");
}

static int read_tensorboard(struct curve_reading *r, struct error *e)
{
	struct events ev = {.r = r, .e = e};
	struct error why = ERROR_INIT;
	enum tfrecord_state state = TFRECORD_END;
	int status = RP_OK;

	tfrecord_init(&ev.records, r->source, r->log->limits->line_bytes);
	while (status == RP_OK && (state = tfrecord_next(&ev.records, &why)) < TFRECORD_END)
		status = take_record(&ev, state);
	if (status == RP_OK && state == TFRECORD_FAILED)
		status = curve_broke(r, &why, e);
	tfrecord_release(&ev.records);
	array_release(&ev.tags);
	lookup_release(&ev.by_name);
	if (status == RP_OK && ev.summed_up)
		drop_summary(r);
	if (status == RP_OK)
		curve_know_writer(r, "TensorBoard", true);
	r->log->files.items[r->file].continues = find_earlier(r);
	return status;
}

const struct curve_reader curve_reader_tensorboard = {
	.name = "tensorboard",
	.span = CURVE_SPAN_LAUNCH,
	.probe = probe,
	.read = read_tensorboard,
	.begun = begun,
};
