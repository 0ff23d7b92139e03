/* SPDX-License-Identifier: MIT */
/*
 * JSON texts. What was decoded is written by our own writer and decoded again: the same must come
 * out.
 */
#include "container/json.h"

#include <math.h>
#include <stdlib.h>

#include "base/strbuf.h"
#include "base/text.h"
#include "fuzz/fuzz.h"
#include "report/json_writer.h"

#define MEMORY ((size_t)256 << 20)

/* False where the writer cannot say it: too deep, an integer of more than 64 bits. */
static bool write_value(struct json_writer *w, struct val v)
{
	bool whole = true;
	struct val key;

	if (w->depth + 2 >= JSON_WRITER_DEPTH)
		return false;
	switch (v.kind) {
	case VAL_NONE:
		json_null(w);
		return true;
	case VAL_BOOL:
		json_bool(w, v.i);
		return true;
	case VAL_INT:
		json_i64(w, v.i);
		return true;
	case VAL_FLOAT:
		json_double(w, v.f);
		return true;
	case VAL_TEXT:
		json_slice(w, val_slice(v));
		return true;
	case VAL_LIST:
		json_open_array(w);
		for (uint64_t i = 0; whole && i < val_count(v); i++)
			whole = write_value(w, val_at(v, i));
		if (whole)
			json_close_array(w);
		return whole;
	case VAL_DICT:
		json_open_object(w);
		for (uint64_t i = 0; whole && i < val_count(v); i++) {
			struct val part = val_part(v, i, &key);
			/* The writer's keys are ours: C strings. */
			char *name = calloc(1, (size_t)key.n + 1);
			if (!name)
				abort();
			memcpy(name, key.s, key.n);
			json_key(w, name);
			whole = strlen(name) == key.n && write_value(w, part);
			free(name);
		}
		if (whole)
			json_close_object(w);
		return whole;
	default:
		return false;
	}
}

static bool same_text(struct val a, struct val b)
{
	/* What is not UTF-8 (surrogates alone) became U+FFFD. */
	return slice_eq(val_slice(a), val_slice(b)) || !text_is_utf8(val_slice(a));
}

static bool same(struct val a, struct val b)
{
	struct val key_a, key_b;

	/* What JSON has no word for was written as null, and 1.0 as 1. */
	if (a.kind == VAL_FLOAT && !isfinite(a.f))
		return b.kind == VAL_NONE;
	if (a.kind == VAL_FLOAT && b.kind == VAL_INT)
		return a.f == (double)b.i;
	if (a.kind != b.kind || val_count(a) != val_count(b))
		return false;
	switch (a.kind) {
	case VAL_BOOL:
	case VAL_INT:
		return a.i == b.i;
	case VAL_FLOAT:
		return a.f == b.f;
	case VAL_TEXT:
		return same_text(a, b);
	default:
		for (uint64_t i = 0; i < val_count(a); i++) {
			struct val part_a = val_part(a, i, &key_a), part_b = val_part(b, i, &key_b);
			if ((a.kind == VAL_DICT && !same_text(key_a, key_b)) ||
				!same(part_a, part_b))
				return false;
		}
		return true;
	}
}

/* Sound in itself, whatever it is. The depth is bounded by the limit. */
static void check(struct val v)
{
	struct val key;

	if (v.kind == VAL_ABSENT || v.kind == VAL_TUPLE || v.kind > VAL_DICT)
		abort();
	if (v.kind == VAL_BIGINT && (v.n < 9 || v.n > 1800))
		abort();
	for (uint64_t i = 0; i < val_count(v); i++) {
		check(val_part(v, i, &key));
		if (v.kind == VAL_DICT && key.kind != VAL_TEXT)
			abort();
	}
}

static void check_error(const struct error *e, int status, size_t size)
{
	if (status != e->status || !e->text[0])
		abort();
	if (status != RP_E_FORMAT && status != RP_E_LIMIT && status != RP_E_MEMORY)
		abort();
	if (status == RP_E_FORMAT && e->offset > size)
		abort();
}

int fuzz_json(const uint8_t *data, size_t size)
{
	struct limits limits = limits_default();
	struct arena arena;
	struct error e = ERROR_INIT;
	struct val v, again;
	uint64_t duplicates, duplicates_again;

	limits.depth = 100;
	arena_init(&arena, MEMORY);
	int status = json_decode(
		(struct slice){(const char *)data, size}, &arena, &limits, &v, &duplicates, &e);
	if (status < 0) {
		check_error(&e, status, size);
		arena_release(&arena);
		return 0;
	}
	check(v);
	struct strbuf out;
	struct json_writer w;
	strbuf_init(&out, MEMORY);
	json_writer_init(&w, &out, size % 2);
	if (write_value(&w, v)) {
		if (out.failed || !text_is_utf8(strbuf_slice(&out)))
			abort();
		if (json_decode(
			    strbuf_slice(&out), &arena, &limits, &again, &duplicates_again, &e) < 0)
			abort();
		if (!same(v, again))
			abort();
		/* Keys that were made equal by U+FFFD are more. */
		if (duplicates_again < duplicates)
			abort();
	}
	strbuf_release(&out);
	arena_release(&arena);
	return 0;
}
