/* SPDX-License-Identifier: MIT */
/* A state that went through a snapshot is the same state, and what no state can be is refused. */
#define _GNU_SOURCE
#include "state/snapshot.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include <check.h>

#include "api/subject.h"
#include "support/bytes.h"

Suite *suite_snapshot(void);

static struct limits limits;
static struct subject subject;
static struct findings own, sink;
static struct coverage cover;
static struct state back;
static struct error e;
static char file[64];

static void begin(void)
{
	limits = limits_default();
	snprintf(file, sizeof file, "/tmp/reprise-snapshot-XXXXXX");
	int fd = mkstemp(file);
	ck_assert_int_ge(fd, 0);
	close(fd);
	findings_init(&own);
	findings_init(&sink);
	coverage_init(&cover);
	state_init(&back, &limits);
	e = ERROR_INIT;
}

static void end(void)
{
	unlink(file);
	findings_release(&own);
	findings_release(&sink);
	coverage_release(&cover);
	state_release(&back);
	subject_close(&subject);
}

static void load(const char *path)
{
	struct byte_totals totals;
	bool known;

	ck_assert_msg(subject_open_one(&subject, path, &limits, &own, &e) == RP_OK, "%s: %s", path,
		e.text);
	subject.state.wants_strong = true;
	ck_assert_int_eq(subject_read_bytes(&subject, 1, NULL, &totals, &known, &e), RP_OK);
	ck_assert_int_eq(subject_digest_files(&subject, &e), RP_OK);
}

static int write_it(const struct state *s)
{
	struct snapshot_about about = {
		.name = "the checkpoint", .findings = &own, .coverage = &cover};

	return snapshot_write(s, &about, file, &e);
}

static int read_it(void)
{
	state_release(&back);
	state_init(&back, &limits);
	e = ERROR_INIT;
	return snapshot_read(&back, AT_FDCWD, file, file, &limits, &sink, &e);
}

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

static bool same_double(double a, double b)
{
	return a == b || (isnan(a) && isnan(b));
}

static void compare_files(const struct state *a, const struct state *b)
{
	ck_assert_uint_eq(a->files.count, b->files.count);
	for (size_t i = 0; i < a->files.count; i++) {
		const struct state_file *x = &a->files.items[i], *y = &b->files.items[i];
		ck_assert(same_text(x->path, y->path) && x->size == y->size &&
			  x->mtime_ns == y->mtime_ns && x->rank == y->rank && x->role == y->role &&
			  x->status == y->status && x->container == y->container &&
			  same_text(x->error, y->error) && x->error_status == y->error_status &&
			  x->error_offset == y->error_offset && x->digested == y->digested &&
			  x->digest[0] == y->digest[0] && x->digest[1] == y->digest[1]);
	}
}

static void compare_facts(const struct state *a, const struct state *b)
{
	ck_assert_uint_eq(a->facts.count, b->facts.count);
	for (size_t i = 0; i < a->facts.count; i++) {
		const struct fact *x = &a->facts.items[i], *y = &b->facts.items[i];
		ck_assert(x->key == y->key && x->type == y->type && x->how == y->how &&
			  x->rank == y->rank && x->group == y->group && x->file == y->file &&
			  same_text(x->path, y->path) && fact_equal(x, y));
	}
}

static void compare_streams(const struct state *a, const struct state *b)
{
	ck_assert_uint_eq(a->bodies.count, b->bodies.count);
	ck_assert_uint_eq(a->streams.count, b->streams.count);
	for (size_t i = 0; i < a->streams.count; i++) {
		const struct stream *x = &a->streams.items[i], *y = &b->streams.items[i];
		ck_assert(x->rank == y->rank && x->device == y->device && x->file == y->file &&
			  same_text(x->owner, y->owner) && same_text(x->path, y->path));
		ck_assert(rng_equal(x->body, y->body) && x->body->digest == y->body->digest);
		ck_assert(x->body->algo != RNG_PCG64 || x->body->pcg.kind == y->body->pcg.kind);
	}
}

static void compare_optimizers(const struct state *a, const struct state *b)
{
	ck_assert_uint_eq(a->optimizers.count, b->optimizers.count);
	for (size_t i = 0; i < a->optimizers.count; i++) {
		const struct optimizer *x = &a->optimizers.items[i], *y = &b->optimizers.items[i];
		ck_assert(same_text(x->name, y->name) && x->adam == y->adam && x->file == y->file &&
			  x->rank == y->rank && same_text(x->path, y->path) &&
			  x->listed == y->listed && x->params.count == y->params.count);
		for (size_t k = 0; k < x->params.count; k++) {
			const struct opt_param *p = &x->params.items[k], *q = &y->params.items[k];
			ck_assert(p->id == q->id && p->group == q->group &&
				  p->has_step == q->has_step && p->has_moments == q->has_moments &&
				  p->cold == q->cold && same_double(p->step, q->step) &&
				  p->moment1 == q->moment1 && p->moment2 == q->moment2);
		}
	}
}

static void compare_tensors(const struct state *a, const struct state *b)
{
	ck_assert_uint_eq(a->tensors.count, b->tensors.count);
	for (size_t i = 0; i < a->tensors.count; i++) {
		const struct state_tensor *x = &a->tensors.items[i], *y = &b->tensors.items[i];
		ck_assert(same_text(x->name, y->name) && x->file == y->file &&
			  x->storage == y->storage && x->first == y->first &&
			  x->numel == y->numel && x->rank == y->rank && x->dtype == y->dtype &&
			  x->role == y->role && x->whole == y->whole && x->ndim == y->ndim);
		for (uint8_t k = 0; k < x->ndim; k++)
			ck_assert_int_eq(x->shape[k], y->shape[k]);
	}
	ck_assert_uint_eq(a->storages.count, b->storages.count);
	for (size_t i = 0; i < a->storages.count; i++) {
		const struct state_storage *x = &a->storages.items[i], *y = &b->storages.items[i];
		ck_assert(x->file == y->file && x->offset == y->offset && x->length == y->length &&
			  x->crc == y->crc && x->crc_known == y->crc_known &&
			  x->big_endian == y->big_endian && x->read == y->read &&
			  x->crc_found == y->crc_found);
	}
}

static void compare_summaries(const struct state *a, const struct state *b)
{
	ck_assert_uint_eq(a->summaries.count, b->summaries.count);
	for (size_t i = 0; i < a->summaries.count; i++) {
		const struct tensor_summary *x = &a->summaries.items[i],
					    *y = &b->summaries.items[i];
		ck_assert(memcmp(x->digest, y->digest, sizeof x->digest) == 0 &&
			  x->first_leaf == y->first_leaf && x->leaves == y->leaves &&
			  x->known == y->known && x->valued == y->valued &&
			  same_double(x->min, y->min) && same_double(x->max, y->max) &&
			  same_double(x->mean, y->mean) && same_double(x->rms, y->rms) &&
			  x->zeros == y->zeros && x->nans == y->nans &&
			  x->infinities == y->infinities &&
			  x->negative_infinities == y->negative_infinities &&
			  x->denormals == y->denormals);
	}
	ck_assert_uint_eq(a->leaves.count, b->leaves.count);
	for (size_t i = 0; i < a->leaves.count; i++)
		ck_assert_int_eq(
			memcmp(&a->leaves.items[i], &b->leaves.items[i], sizeof a->leaves.items[i]),
			0);
}

static void compare_strong(const struct state *a, const struct state *b)
{
	char x[SHA256_TEXT], y[SHA256_TEXT];

	ck_assert(a->strong.count == a->tensors.count && a->strong.count == b->strong.count);
	ck_assert(a->strong_leaves.count == b->strong_leaves.count);
	ck_assert(memcmp(a->strong.items, b->strong.items, a->strong.count * SHA256_BYTES) == 0);
	ck_assert(snapshot_root(a, x) && snapshot_root(b, y));
	ck_assert_str_eq(x, y);
}

static void compare_states(const struct state *a, const struct state *b)
{
	compare_files(a, b);
	compare_facts(a, b);
	compare_streams(a, b);
	compare_optimizers(a, b);
	compare_tensors(a, b);
	compare_summaries(a, b);
	compare_strong(a, b);
	ck_assert_uint_eq(a->placements.count, b->placements.count);
	for (size_t i = 0; i < a->placements.count; i++)
		ck_assert(same_text(a->placements.items[i].tensor, b->placements.items[i].tensor) &&
			  same_text(a->placements.items[i].file, b->placements.items[i].file) &&
			  a->placements.items[i].index == b->placements.items[i].index);
	ck_assert_uint_eq(a->log.count, b->log.count);
	for (size_t i = 0; i < a->log.count; i++)
		ck_assert(a->log.items[i].step == b->log.items[i].step &&
			  same_double(a->log.items[i].value, b->log.items[i].value));
	ck_assert(a->single == b->single && a->on_cuda == b->on_cuda && a->world == b->world &&
		  a->mtime_ns == b->mtime_ns && a->bytes_read == b->bytes_read &&
		  same_text(a->kind, b->kind));
}

static const char *const checkpoints[] = {
	"fixtures/transformers-5.24.0/sharded/out/checkpoint-16",
	"fixtures/transformers-5.24.0/world2-right/out/checkpoint-16",
	"fixtures/lightning-2.6.6/stateful/out/lightning_logs/version_0/checkpoints/epoch=1-step=12.ckpt",
	"fixtures/accelerate-1.15.0/random-states-missing/out/step_12",
	"fixtures/pytorch-2.13.0/ema-right/checkpoints/step_00030.pt",
};

START_TEST(gives_back_every_table)
{
	const char *path = checkpoints[_i];

	load(path);
	ck_assert_msg(write_it(&subject.state) == RP_OK, "%s", e.text);
	struct bytes first = bytes_of_file(file);
	ck_assert_msg(read_it() == RP_OK, "%s", e.text);
	compare_states(&subject.state, &back);
	ck_assert_str_eq(back.path, "the checkpoint");
	ck_assert_str_eq(back.snapshot, file);

	/* The state that came back makes the same file again. */
	back.path = subject.state.path;
	ck_assert_int_eq(write_it(&back), RP_OK);
	struct bytes again = bytes_of_file(file);
	ck_assert(first.n == again.n && memcmp(first.p, again.p, first.n) == 0);
	bytes_release(&first);
	bytes_release(&again);
}
END_TEST

START_TEST(keeps_generators_of_all_kinds)
{
	static const uint8_t mps[36] = {1, 2, 3};
	struct rng_state b;
	struct origin from = {.file = NO_FILE, .path = "x", .rank = 3};

	load(checkpoints[0]);
	struct state *s = &subject.state;
	size_t before = s->streams.count;
	ck_assert_int_eq(rng_decode_pcg64(RNG_LAYOUT_NUMPY_PCG64DXSM, (uint64_t[]){1, 2},
				 (uint64_t[]){3, 5}, true, 77, &b, &e),
		RP_OK);
	state_add_stream(s, &b, "dxsm", -1, from);
	rng_decode_seed(UINT64_MAX, &b);
	state_add_stream(s, &b, "seed", -1, from);
	rng_decode_opaque("whatever", 8, &b);
	state_add_stream(s, &b, "opaque", 2, from);
	ck_assert_int_eq(rng_decode_torch_mps(mps, sizeof mps, &b, &e), RP_OK);
	ck_assert(!b.has_offset);
	state_add_stream(s, &b, "mps", 0, from);
	state_finish(s);
	ck_assert_uint_eq(s->streams.count, before + 4);
	ck_assert_int_eq(write_it(s), RP_OK);
	ck_assert_msg(read_it() == RP_OK, "%s", e.text);
	compare_streams(s, &back);
}
END_TEST

START_TEST(keeps_findings_and_what_was_looked_at)
{
	load(checkpoints[0]);
	findings_release(&own);
	findings_init(&own);
	struct finding *f = finding_add(&own, FINDING_I104, "bad \033 byte");
	f->place.file = findings_text(&own, "%s/model.safetensors", subject.state.path);
	f->place.offset = 12;
	f->place.step_first = 3;
	f->observed = quantity_real(0.5);
	f->expected = quantity_text("half");
	f->unit = "cups";
	f->cause = "tea";
	f = finding_add(&own, FINDING_I104, "another");
	f->severity = SEVERITY_WARNING;
	own.of_code[FINDING_I104] += 40; /* counted, and not kept */
	cover_ran(&cover, "moments", "what", "tensors", 3, 4, "why");
	cover_not_checked(&cover, "other", "what else", "because");
	ck_assert_int_eq(write_it(&subject.state), RP_OK);
	ck_assert_msg(read_it() == RP_OK, "%s", e.text);
	ck_assert_uint_eq(sink.list.count, 2);
	ck_assert_uint_eq(sink.of_code[FINDING_I104], 42);
	f = &sink.list.items[0];
	ck_assert_str_eq(f->place.file, "the checkpoint/model.safetensors");
	ck_assert_str_eq(
		f->message, "bad \\x1b byte"); /* whoever wrote it, a terminal is not disturbed */
	ck_assert(f->severity == SEVERITY_ERROR && f->place.offset == 12 &&
		  f->place.step_first == 3 && f->place.step_last == PLACE_NO_STEP &&
		  f->observed.kind == QUANTITY_REAL && f->observed.real == 0.5);
	ck_assert_str_eq(f->expected.text, "half");
	ck_assert_str_eq(f->unit, "cups");
	ck_assert_str_eq(f->cause, "tea");
	ck_assert(!f->meaning && sink.list.items[1].severity == SEVERITY_WARNING);
	ck_assert_uint_eq(back.taken.count, 2);
	ck_assert(back.taken.items[0].done == 3 && back.taken.items[0].total == 4);
	ck_assert_str_eq(back.taken.items[0].reason, "why");
	ck_assert_int_eq(back.taken.items[1].status, COVER_NOT_CHECKED);
}
END_TEST

/* Each makes of a sound state one that none can be. */
static void tensor_without_file(struct state *s)
{
	s->tensors.items[0].file = (uint32_t)s->files.count;
}

static void tensor_without_storage(struct state *s)
{
	s->tensors.items[0].storage = (uint32_t)s->storages.count;
}

static void whole_tensor_of_nothing(struct state *s)
{
	s->tensors.items[0].storage = NO_FILE;
	s->tensors.items[0].whole = true;
}

static void wrong_count(struct state *s)
{
	s->tensors.items[0].numel++;
}

static void negative_dimension(struct state *s)
{
	static const int64_t shape[] = {-2, -2};
	s->tensors.items[0].shape = shape;
	s->tensors.items[0].ndim = 2;
	s->tensors.items[0].numel = 4;
}

static void huge_dimensions(struct state *s)
{
	static const int64_t shape[] = {INT64_MAX, 2, 2};
	s->tensors.items[0].shape = shape;
	s->tensors.items[0].ndim = 3;
	s->tensors.items[0].numel = (uint64_t)INT64_MAX * 4;
}

static void storage_nowhere(struct state *s)
{
	s->storages.items[0].file = NO_FILE;
}

static void storage_outside(struct state *s)
{
	s->storages.items[0].file = 1000000;
}

static void moment_outside(struct state *s)
{
	s->optimizers.items[0].params.items[0].moment1 = (uint32_t)s->tensors.count;
}

static void summaries_of_some(struct state *s)
{
	s->summaries.count = 0;
	*(struct tensor_summary *)array_push(&s->summaries, 1) =
		(struct tensor_summary){.leaves = 0};
}

static void leaves_outside(struct state *s)
{
	array_reserve(&s->summaries, s->tensors.count, SIZE_MAX);
	memset(s->summaries.items, 0, s->tensors.count * sizeof *s->summaries.items);
	s->summaries.count = s->tensors.count;
	s->summaries.items[0].first_leaf = UINT64_MAX;
	s->summaries.items[0].leaves = 2;
}

static void neither_true_nor_false(struct state *s)
{
	state_add_bool(s, FACT_SHUFFLE, NO_GROUP, true,
		(struct origin){.file = NO_FILE, .path = "", .rank = NO_RANK});
	s->facts.items[s->facts.count - 1].i = 2;
}

static void twister_past_its_block(struct state *s)
{
	for (size_t i = 0; i < s->bodies.count; i++)
		s->bodies.items[i]->mt.pos = 625;
}

static void twister_of_zeros(struct state *s)
{
	for (size_t i = 0; i < s->bodies.count; i++)
		memset(s->bodies.items[i]->mt.s, 0, sizeof s->bodies.items[i]->mt.s);
}

static void foreign_layout(struct state *s)
{
	s->bodies.items[0]->layout = RNG_LAYOUT_SEED;
}

static void broken_without_reason(struct state *s)
{
	s->files.items[0].status = FILE_BROKEN;
	s->files.items[0].error = NULL;
}

static void nameless_profile(struct state *s)
{
	s->kind = "";
}

static void wordless_finding(struct state *s)
{
	(void)s;
	finding_add(&own, FINDING_I104, "%s", "");
}

static const struct {
	void (*spoil)(struct state *s);
	const char *words;
} impossible[] = {
	{tensor_without_file, "/tensors/file: a row that is not there"},
	{tensor_without_storage, "/tensors/storage: a row that is not there"},
	{whole_tensor_of_nothing, "/tensors/whole"},
	{wrong_count, "/tensors/numel"},
	{negative_dimension, "/tensors/numel"},
	{huge_dimensions, "/tensors/numel"},
	{storage_nowhere, "/storages/file"},
	{storage_outside, "/storages/file: a row that is not there"},
	{moment_outside, "/params/moment1: a row that is not there"},
	{summaries_of_some, "/summaries: not one for each"},
	{leaves_outside, "/summaries/leaves: more than there are"},
	{neither_true_nor_false, "/facts/number: neither 0 nor 1"},
	{twister_past_its_block, "past its 624 words"},
	{twister_of_zeros, "all zero"},
	{foreign_layout, "do not belong together"},
	{broken_without_reason, "/files/error"},
	{wordless_finding, "/findings/message"},
	{nameless_profile, "attribute profile is missing"},
};

START_TEST(refuses_a_state_that_cannot_be)
{
	load(checkpoints[0]);
	impossible[_i].spoil(&subject.state);
	ck_assert_msg(write_it(&subject.state) == RP_OK, "%s", e.text);
	ck_assert_int_eq(read_it(), RP_E_FORMAT);
	ck_assert_msg(strstr(e.text, impossible[_i].words), "%s", e.text);
}
END_TEST

START_TEST(takes_no_more_memory_than_it_may)
{
	load(checkpoints[0]);
	ck_assert_int_eq(write_it(&subject.state), RP_OK);
	limits.memory = 20000;
	int status = read_it();
	ck_assert_msg(status == RP_E_LIMIT || status == RP_E_MEMORY, "%s", e.text);
	ck_assert_msg(strstr(e.text, "--limit memory"), "%s", e.text);
}
END_TEST

Suite *suite_snapshot(void)
{
	Suite *s = suite_create("snapshot");
	TCase *t = tcase_create("snapshot");

	tcase_add_checked_fixture(t, begin, end);
	tcase_set_timeout(t, 60);
	tcase_add_loop_test(
		t, gives_back_every_table, 0, sizeof checkpoints / sizeof checkpoints[0]);
	tcase_add_test(t, keeps_generators_of_all_kinds);
	tcase_add_test(t, keeps_findings_and_what_was_looked_at);
	tcase_add_loop_test(
		t, refuses_a_state_that_cannot_be, 0, sizeof impossible / sizeof impossible[0]);
	tcase_add_test(t, takes_no_more_memory_than_it_may);
	suite_add_tcase(s, t);
	return s;
}
