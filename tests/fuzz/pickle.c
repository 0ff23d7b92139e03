/* SPDX-License-Identifier: MIT */
/* Pickles: decoded and judged alone, then opened as a file, where tensors and arrays are rebuilt.
 */
#include "container/pickle.h"

#include <string.h>

#include "fuzz/fuzz.h"

#define MEMORY ((size_t)64 << 20)
#define NODES 200000u

/* A number for all that came out. */
static uint64_t decode_once(struct slice bytes)
{
	struct limits limits = limits_default();
	struct arena arena;
	struct findings sink;
	struct error e = ERROR_INIT;

	limits.memory = MEMORY;
	limits.nodes = NODES;
	arena_init(&arena, MEMORY);
	findings_init(&sink);
	struct pickle p = {.arena = &arena, .limits = &limits, .base = 1000};
	int status = pickle_decode(&p, bytes, &e);
	uint64_t digest = (uint64_t)(int64_t)status;
	MUST(p.end <= bytes.n && p.protocol >= 0 && p.protocol <= 5);
	if (status == RP_OK) {
		MUST(!p.truncated && p.root.kind != VAL_ABSENT && bytes.p[p.end - 1] == '.');
		digest = fuzz_digest(p.root) + p.end;
		for (size_t i = 0; i < p.classes.count; i++) {
			const struct klass *k = p.classes.items[i];
			MUST(k->offset >= 1000 && k->offset < 1000 + p.end);
		}
	} else {
		fuzz_check_error(&e, status);
		MUST(!p.truncated || status == RP_E_FORMAT);
		MUST(e.offset >= 1000 && e.offset <= 1000 + bytes.n);
	}
	for (size_t i = 0; i < p.deeds.count; i++) {
		const struct pickle_deed *deed = &p.deeds.items[i];
		MUST(deed->offset >= 1000 && deed->offset < 1000 + bytes.n);
		MUST(deed->kind != PICKLE_CALLS || deed->what.kind != VAL_CLASS ||
			deed->what.klass->called);
	}
	/* Also where decoding broke off: loading would have come as far. */
	pickle_judge(&p, "fuzz", &sink);
	fuzz_check_findings(&sink);
	digest = digest * 31 + sink.list.count;
	findings_release(&sink);
	pickle_release(&p);
	arena_release(&arena);
	return digest;
}

/* A pickle is one only with its last byte. */
static void check_prefix(struct slice bytes)
{
	struct limits limits = limits_default();
	struct arena arena;

	limits.memory = MEMORY;
	limits.nodes = NODES;
	arena_init(&arena, MEMORY);
	struct pickle p = {.arena = &arena, .limits = &limits};
	if (pickle_decode(&p, bytes, NULL) == RP_OK) {
		struct pickle cut = {.arena = &arena, .limits = &limits};
		MUST(pickle_decode(&cut, (struct slice){bytes.p, p.end - 1}, NULL) < 0);
		pickle_release(&cut);
	}
	pickle_release(&p);
	arena_release(&arena);
}

int fuzz_pickle(const uint8_t *data, size_t size)
{
	static const char proto[] = {'\x80', 2};
	struct slice bytes = {(const char *)data, size};

	MUST(decode_once(bytes) == decode_once(bytes));
	check_prefix(bytes);
	if (size > 0 && data[0] == 0x80) {
		fuzz_document(bytes);
		return 0;
	}
	/* A file is known for a pickle by its first opcode. */
	char *file = malloc(size + sizeof proto);
	MUST(file);
	memcpy(file, proto, sizeof proto);
	if (size > 0)
		memcpy(file + sizeof proto, data, size);
	fuzz_document((struct slice){file, size + sizeof proto});
	free(file);
	return 0;
}
