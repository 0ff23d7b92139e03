/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "recorder/opening.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "recorder/json_text.h"

bool opening_unused(const void *given, size_t known, size_t size)
{
	const unsigned char *p = given;
	for (size_t i = known; i < size; i++)
		if (p[i])
			return false;
	return true;
}

const char *opening_options(const struct rp_record_options *given, struct rp_record_options *o)
{
	const char *fault = NULL;
	rp_record_options_init(o, sizeof *o);
	if (given && (given->size < OPENING_OPTIONS_0 || given->size > OPENING_SIZE_MAX))
		return "the options' size is none that rp_record_options_init could have set";
	if (given) {
		memcpy(o, given, given->size < sizeof *o ? given->size : sizeof *o);
		if (!opening_unused(given, sizeof *o, given->size))
			fault = "options were set that this version of the library does not know";
	}
	o->size = sizeof *o;
	if (!o->folder || !*o->folder)
		o->folder = ".";
	o->dp_size = o->dp_size ? o->dp_size : 1;
	o->world_size = o->world_size ? o->world_size : o->dp_size;
	if (o->keys > RP_RECORD_CONTENT) {
		o->keys = RP_RECORD_IDS;
		fault = "the options' keys are of no kind that is known";
	}
	if (!o->sources || o->source_count > UINT16_MAX) {
		if (o->source_count)
			fault = "the options' sources are missing or too many";
		o->source_count = 0;
	}
	return fault;
}

static void describe_sources(struct json_text *t, const struct rp_record_options *o)
{
	if (o->source_count == 0)
		return;
	json_text_name(t, "sources");
	json_text_raw(t, "[", 1);
	for (size_t i = 0; i < o->source_count; i++) {
		json_text_raw(t, i ? ",{" : "{", i ? 2 : 1);
		json_text_string(t, "name", o->sources[i].name);
		json_text_count(t, "size", o->sources[i].size);
		json_text_real(t, "weight", o->sources[i].weight);
		json_text_real(t, "epochs", o->sources[i].epochs);
		json_text_raw(t, "}", 1);
	}
	json_text_raw(t, "]", 1);
}

static const char *const key_names[] = {"ids", "text", "content"};

/* Objects that the caller gives as text stay text: whether they are well-formed is the reader's
 * question. */
char *opening_text(const struct rp_record_options *o, const char *uuid, const char *launch)
{
	struct json_text t = {0};
	json_text_raw(&t, "{", 1);
	json_text_string(&t, "uuid", uuid);
	json_text_string(&t, "launch", launch);
	json_text_string(&t, "run", o->run);
	json_text_string(&t, "kind", o->kind);
	json_text_int(&t, "dp", o->dp);
	json_text_int(&t, "dp_size", o->dp_size);
	json_text_int(&t, "rank", o->rank);
	json_text_int(&t, "world_size", o->world_size);
	if (o->from_step >= 0)
		json_text_int(&t, "from_step", o->from_step);
	json_text_string(&t, "from_path", o->from_path);
	json_text_string(&t, "keys", key_names[o->keys]);
	json_text_string(&t, "dataset", o->dataset);
	json_text_string(&t, "fingerprint", o->fingerprint);
	json_text_string(&t, "unit", o->unit);
	json_text_string(&t, "order", o->order);
	json_text_string(&t, "sampling", o->sampling);
	json_text_count(&t, "size", o->dataset_size);
	json_text_real(&t, "repeat", o->repeat);
	describe_sources(&t, o);
	if (o->has_seed)
		json_text_int(&t, "seed", o->seed);
	json_text_count(&t, "global_batch", o->global_batch);
	json_text_count(&t, "micro_batch", o->micro_batch);
	json_text_count(&t, "accumulation", o->accumulation);
	json_text_count(&t, "workers", o->workers);
	json_text_count(&t, "prefetch", o->prefetch);
	if (o->drop_last)
		json_text_int(&t, "drop_last", o->drop_last > 0);
	json_text_string(&t, "code", o->code);
	json_text_string(&t, "versions", o->versions);
	json_text_string(&t, "config", o->config);
	json_text_string(&t, "intent", o->intent);
	json_text_string(&t, "recorder", rp_record_version());
	json_text_int(&t, "pid", getpid());
	json_text_now(&t);
	if (t.failed) {
		free(t.p);
		return NULL;
	}
	return t.p;
}
