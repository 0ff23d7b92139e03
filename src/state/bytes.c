/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "state/bytes.h"

#include <endian.h>
#include <libdeflate.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/source.h"
#include "state/gather.h"
#include "state/statistics.h"

#if defined(__x86_64__) && defined(__has_include)
#if __has_include(<xxh_x86dispatch.h>)
#define XXH_DISPATCH_DISABLE_REPLACE
#include <xxh_x86dispatch.h>
/* Weak: the static library of some systems comes without it. */
#pragma weak XXH3_128bits_dispatch
#define HAS_DISPATCH 1
#endif
#endif

#define PATH_BYTES 4096
#define THREADS_MAX 64
/* A block is read in one go: one leaf, or smaller pieces with gaps of at most this between them. */
#define BLOCK_BYTES LEAF_BYTES
#define BLOCK_GAP 4096u
/* Most blocks that a thread takes at once: a stretch of a file that the kernel reads ahead. */
#define CLAIM_MAX 8u
#define NO_LEAF UINT64_MAX

/*
 * Tensors that are gathered are read apart from the rest, and a few stored bytes can be repeated or
 * overlapped without end: what they amount to is bounded by the bytes that the storages have, and
 * by this, which lets small ones through.
 */
#define GATHERED_FACTOR 4u
#define GATHERED_FREE ((uint64_t)64 << 20)

/*
 * A zero byte multiplies the CRC register by x^8 modulo the polynomial, so n of them by x^(8n):
 * square and multiply in GF(2)[x], bits reflected. The register starts and ends inverted (ITU-T
 * V.42).
 */
static uint32_t multiply_modulo(uint32_t a, uint32_t b)
{
	uint32_t product = 0;

	for (uint32_t bit = 0x80000000u; bit; bit >>= 1) {
		if (a & bit)
			product ^= b;
		b = b & 1 ? b >> 1 ^ 0xedb88320u : b >> 1;
	}
	return product;
}

/* x^(8n) modulo the polynomial. */
static uint32_t power_of_bytes(uint64_t n)
{
	uint32_t factor = 0x00800000u, power = 0x80000000u; /* x^8 and x^0 */

	for (; n; n >>= 1) {
		if (n & 1)
			power = multiply_modulo(power, factor);
		factor = multiply_modulo(factor, factor);
	}
	return power;
}

uint32_t crc32_of_zeros(uint64_t n)
{
	return ~multiply_modulo(0xffffffffu, power_of_bytes(n));
}

uint32_t crc32_joined(uint32_t first, uint32_t second, uint64_t n)
{
	/* The CRC is linear: the first stretch as if zeros followed it, and the second as if zeros
	 * came before it. The inversions at the ends cancel out. */
	return multiply_modulo(first, power_of_bytes(n)) ^ second;
}

/* XXH3-128 as two words. */
static void digest_bytes(const void *p, size_t n, uint64_t digest[2])
{
	XXH128_hash_t h;

#ifdef HAS_DISPATCH
	if (XXH3_128bits_dispatch)
		h = XXH3_128bits_dispatch(p, n);
	else
#endif
		h = XXH3_128bits(p, n);
	digest[0] = h.low64;
	digest[1] = h.high64;
}

const struct tensor_summary *tensor_summary_of(const struct state *s, const struct state_tensor *t)
{
	size_t i = (size_t)(t - s->tensors.items);

	return i < s->summaries.count && s->summaries.items[i].known ? &s->summaries.items[i]
								     : NULL;
}

/* The storage that a tensor fills and whose stored checksum is thereby its own, or NULL. */
static const struct state_storage *checksum_of(const struct state *s, const struct state_tensor *t)
{
	const struct state_storage *of =
		t->whole && t->storage != NO_FILE ? &s->storages.items[t->storage] : NULL;

	return of && of->crc_known ? of : NULL;
}

enum zero_known tensor_zero(const struct state *s, const struct state_tensor *t)
{
	const struct tensor_summary *known = tensor_summary_of(s, t);
	const struct state_storage *of = checksum_of(s, t);

	if (known && known->valued)
		return known->zeros == t->numel ? ZERO_YES : ZERO_NO;
	if (!of || of->length == 0)
		return ZERO_UNKNOWN;
	return of->crc == crc32_of_zeros(of->length) ? ZERO_YES : ZERO_NO;
}

int tensor_same(const struct state *a, const struct state_tensor *x, const struct state *b,
	const struct state_tensor *y)
{
	const struct tensor_summary *p = tensor_summary_of(a, x), *q = tensor_summary_of(b, y);
	const struct state_storage *of_x = checksum_of(a, x), *of_y = checksum_of(b, y);

	if (p && q)
		return p->digest[0] == q->digest[0] && p->digest[1] == q->digest[1];
	if (!of_x || !of_y)
		return -1;
	return of_x->length == of_y->length && of_x->crc == of_y->crc;
}

/* ---- the plan ---------------------------------------------------------------------------------
 */

/* A stretch of a storage that belongs to one leaf of one tensor, or to none. */
struct piece {
	uint64_t at;    /* in the file */
	uint64_t leaf;  /* index in the state's leaves, or NO_LEAF: the tensor is no larger */
	uint32_t bytes; /* at most LEAF_BYTES */
	uint32_t storage;
	uint32_t tensor; /* NO_FILE: no tensor is there, only the checksum wants it */
	uint32_t crc;
};

/* Pieces that are read in one go: they follow each other in one file and do not overlap. */
struct block {
	size_t first, count; /* pieces */
	uint64_t at;
	uint32_t bytes, file;
};

/* How a tensor comes to its summary. */
enum tensor_use {
	USE_NONE,     /* it gets none */
	USE_IN_ROW,   /* read with its storage */
	USE_SAME,     /* as one before it that has the same bytes */
	USE_GATHERED, /* read apart */
};

struct plan {
	struct state *state;
	const struct deadline *deadline;
	int dirfd;
	const char *prefix;
	uint32_t *order; /* storages that lie in a file, by place */
	size_t storages;
	uint32_t *users; /* tensors that can be read, by storage and place */
	size_t user_count;
	uint8_t *use;               /* of each tensor: enum tensor_use */
	uint32_t *same_as;          /* of each tensor with USE_SAME */
	struct statistics *partial; /* of each leaf */
	ARRAY(struct piece) pieces;
	ARRAY(struct block) blocks;
	ARRAY(uint32_t) gathered; /* tensors */
	bool *lost_storages;      /* something of it could not be read */
	bool *lost_tensors;       /* the same of gathered ones */
	bool *weak;               /* of each tensor: its SHA-256 was wanted and failed */
	bool *late_storages;      /* something of it was not read in time */
	bool *changed;            /* of each file: it changed meanwhile */
	size_t next_block, claim; /* what the threads take next, and how many */
	size_t next_gathered;
};

static uint64_t tensor_bytes(const struct state_tensor *t)
{
	return t->numel * dtype_size(t->dtype);
}

static uint64_t tensor_begin(const struct state_tensor *t)
{
	return t->first * dtype_size(t->dtype);
}

static int compare_places(const void *pa, const void *pb, void *context)
{
	const struct state *s = context;
	const struct state_storage *a = &s->storages.items[*(const uint32_t *)pa];
	const struct state_storage *b = &s->storages.items[*(const uint32_t *)pb];

	if (a->file != b->file)
		return a->file < b->file ? -1 : 1;
	return (a->offset > b->offset) - (a->offset < b->offset);
}

/*
 * By storage, place, length (longest first), type, and whether the elements lie in a row; in the
 * order of the table where all are equal.
 */
static int compare_users(const void *pa, const void *pb, void *context)
{
	const struct state *s = context;
	const uint32_t i = *(const uint32_t *)pa, k = *(const uint32_t *)pb;
	const struct state_tensor *a = &s->tensors.items[i], *b = &s->tensors.items[k];

	if (a->storage != b->storage)
		return a->storage < b->storage ? -1 : 1;
	if (tensor_begin(a) != tensor_begin(b))
		return tensor_begin(a) < tensor_begin(b) ? -1 : 1;
	if (tensor_bytes(a) != tensor_bytes(b))
		return tensor_bytes(a) > tensor_bytes(b) ? -1 : 1;
	if (a->dtype != b->dtype)
		return a->dtype < b->dtype ? -1 : 1;
	if (!a->stride != !b->stride)
		return a->stride ? 1 : -1;
	return (i > k) - (i < k);
}

/* Whether a tensor's elements can be read: it has some, and they lie inside a storage in a file. */
static bool is_readable(const struct state *s, const struct state_tensor *t)
{
	uint64_t bytes;

	if (t->storage == NO_FILE || t->lazy || t->numel == 0 || dtype_size(t->dtype) == 0 ||
		__builtin_mul_overflow(t->numel, (uint64_t)dtype_size(t->dtype), &bytes))
		return false;
	const struct state_storage *of = &s->storages.items[t->storage];
	struct tensor shape = {.first = t->first,
		.numel = t->numel,
		.shape = t->shape,
		.stride = t->stride,
		.ndim = t->ndim,
		.dtype = t->dtype};
	return of->offset != UINT64_MAX && tensor_reach(&shape) <= of->length;
}

/* Whether a tensor's elements are those of the one before it in the plan's order. */
static bool same_elements(const struct state_tensor *t, const struct state_tensor *before)
{
	return t->storage == before->storage && t->first == before->first &&
	       t->numel == before->numel && t->dtype == before->dtype && !t->stride &&
	       !before->stride;
}

/*
 * Tensors that lie in a row and behind each other are read with their storage, equal ones once, the
 * others apart.
 */
static bool plan_uses(struct plan *p)
{
	const struct state_tensor *tensors = p->state->tensors.items, *last = NULL;
	uint64_t end = 0; /* of what is read with the storage */

	for (size_t i = 0; i < p->user_count; i++) {
		const uint32_t index = p->users[i];
		const struct state_tensor *t = &tensors[index];
		if (last && same_elements(t, last)) {
			p->use[index] = USE_SAME;
			p->same_as[index] = (uint32_t)(last - tensors);
			continue;
		}
		if (!last || last->storage != t->storage)
			end = 0;
		last = t;
		if (!t->stride && tensor_begin(t) >= end) {
			p->use[index] = USE_IN_ROW;
			end = tensor_begin(t) + tensor_bytes(t);
			continue;
		}
		uint32_t *gathered = array_push(&p->gathered, SIZE_MAX);
		if (!gathered)
			return false;
		*gathered = index;
		p->use[index] = USE_GATHERED;
	}
	return true;
}

/* Leave out gathered tensors that would be more work than a checkpoint can ask for. */
static void bound_gathered(struct plan *p)
{
	uint64_t left = GATHERED_FREE;
	size_t kept = 0;

	for (size_t i = 0; i < p->storages; i++) {
		uint64_t more, length = p->state->storages.items[p->order[i]].length;
		if (__builtin_mul_overflow(length, (uint64_t)GATHERED_FACTOR, &more) ||
			__builtin_add_overflow(left, more, &left))
			left = UINT64_MAX;
	}
	for (size_t i = 0; i < p->gathered.count; i++) {
		const uint32_t tensor = p->gathered.items[i];
		uint64_t bytes = tensor_bytes(&p->state->tensors.items[tensor]);
		if (bytes > left) {
			p->use[tensor] = USE_NONE;
			continue;
		}
		left -= bytes;
		p->gathered.items[kept++] = tensor;
	}
	p->gathered.count = kept;
}

static bool make_zeroed(struct strong_digest **items, size_t *count, size_t *capacity, size_t n)
{
	if (!array_reserve_((void **)items, capacity, n, sizeof **items, SIZE_MAX))
		return false;
	if (n > 0)
		memset(*items, 0, n * sizeof **items);
	*count = n;
	return true;
}

/* Room for SHA-256 of all tensors and leaves, where it is wanted. */
static bool plan_strong(struct state *s, uint64_t leaves)
{
	return !s->wants_strong ||
	       (make_zeroed(&s->strong.items, &s->strong.count, &s->strong.capacity,
			s->tensors.count) &&
		       make_zeroed(&s->strong_leaves.items, &s->strong_leaves.count,
			       &s->strong_leaves.capacity, leaves));
}

/* Number the leaves of all tensors that are larger than one, in the order of the tensors. */
static bool plan_leaves(struct plan *p)
{
	struct state *s = p->state;
	uint64_t leaves = 0;

	for (size_t i = 0; i < s->tensors.count; i++) {
		uint64_t bytes = tensor_bytes(&s->tensors.items[i]);
		if ((p->use[i] != USE_IN_ROW && p->use[i] != USE_GATHERED) || bytes <= LEAF_BYTES)
			continue;
		s->summaries.items[i].first_leaf = leaves;
		s->summaries.items[i].leaves = (uint32_t)((bytes + LEAF_BYTES - 1) / LEAF_BYTES);
		leaves += s->summaries.items[i].leaves;
	}
	if (!plan_strong(s, leaves))
		return false;
	if (leaves == 0)
		return true;
	p->partial = calloc(leaves, sizeof *p->partial);
	if (!p->partial || !array_reserve(&s->leaves, leaves, SIZE_MAX))
		return false;
	memset(s->leaves.items, 0, leaves * sizeof *s->leaves.items);
	s->leaves.count = leaves;
	return true;
}

/* A stretch of a storage that one tensor fills, or none, in pieces. */
static bool plan_stretch(
	struct plan *p, uint32_t storage, uint64_t at, uint64_t bytes, uint32_t tensor)
{
	uint64_t leaf = tensor != NO_FILE && bytes > LEAF_BYTES
				? p->state->summaries.items[tensor].first_leaf
				: NO_LEAF;

	while (bytes > 0) {
		uint64_t n = bytes < LEAF_BYTES ? bytes : LEAF_BYTES;
		struct piece *piece = array_push(&p->pieces, SIZE_MAX);
		if (!piece)
			return false;
		*piece = (struct piece){.at = p->state->storages.items[storage].offset + at,
			.leaf = leaf,
			.bytes = (uint32_t)n,
			.storage = storage,
			.tensor = tensor};
		leaf += leaf != NO_LEAF;
		at += n;
		bytes -= n;
	}
	return true;
}

/* One storage: its tensors that lie in a row, and what is between them where it has a checksum. */
static bool plan_storage(struct plan *p, uint32_t storage, size_t user)
{
	const struct state *s = p->state;
	const struct state_storage *of = &s->storages.items[storage];
	uint64_t end = 0;

	for (; user < p->user_count; user++) {
		const uint32_t i = p->users[user];
		const struct state_tensor *t = &s->tensors.items[i];
		if (t->storage != storage)
			break;
		if (p->use[i] != USE_IN_ROW)
			continue;
		if (of->crc_known && !plan_stretch(p, storage, end, tensor_begin(t) - end, NO_FILE))
			return false;
		if (!plan_stretch(p, storage, tensor_begin(t), tensor_bytes(t), i))
			return false;
		end = tensor_begin(t) + tensor_bytes(t);
	}
	return !of->crc_known || plan_stretch(p, storage, end, of->length - end, NO_FILE);
}

/* All storages by place. Their users are found by storage, in which order they are sorted. */
static bool plan_pieces(struct plan *p)
{
	const size_t count = p->state->storages.count;
	size_t *first = calloc(count + 1, sizeof *first);
	bool ok = first != NULL;

	for (size_t i = p->user_count; ok && i-- > 0;)
		first[p->state->tensors.items[p->users[i]].storage] = i;
	for (size_t i = 0; ok && i < p->storages; i++)
		ok = plan_storage(p, p->order[i], first[p->order[i]]);
	free(first);
	return ok;
}

/* Put pieces that lie close together into blocks. */
static bool plan_blocks(struct plan *p)
{
	struct block *b = NULL;

	for (size_t i = 0; i < p->pieces.count; i++) {
		const struct piece *q = &p->pieces.items[i];
		uint32_t file = p->state->storages.items[q->storage].file;
		if (b && b->file == file && q->at >= b->at + b->bytes &&
			q->at - (b->at + b->bytes) <= BLOCK_GAP &&
			q->at + q->bytes - b->at <= BLOCK_BYTES) {
			b->bytes = (uint32_t)(q->at + q->bytes - b->at);
			b->count++;
			continue;
		}
		b = array_push(&p->blocks, SIZE_MAX);
		if (!b)
			return false;
		*b = (struct block){
			.first = i, .count = 1, .at = q->at, .bytes = q->bytes, .file = file};
	}
	return true;
}

static void plan_release(struct plan *p)
{
	free(p->order);
	free(p->users);
	free(p->use);
	free(p->same_as);
	free(p->partial);
	free(p->lost_storages);
	free(p->lost_tensors);
	free(p->weak);
	free(p->late_storages);
	free(p->changed);
	array_release(&p->pieces);
	array_release(&p->blocks);
	array_release(&p->gathered);
}

static bool plan_make(struct plan *p)
{
	struct state *s = p->state;
	const size_t tensors = s->tensors.count, storages = s->storages.count;

	p->order = calloc(storages + 1, sizeof *p->order);
	p->users = calloc(tensors + 1, sizeof *p->users);
	p->use = calloc(tensors + 1, sizeof *p->use);
	p->same_as = calloc(tensors + 1, sizeof *p->same_as);
	p->lost_storages = calloc(storages + 1, sizeof *p->lost_storages);
	p->lost_tensors = calloc(tensors + 1, sizeof *p->lost_tensors);
	p->weak = calloc(tensors + 1, sizeof *p->weak);
	p->late_storages = calloc(storages + 1, sizeof *p->late_storages);
	p->changed = calloc(s->files.count + 1, sizeof *p->changed);
	if (!p->order || !p->users || !p->use || !p->same_as || !p->lost_storages ||
		!p->lost_tensors || !p->weak || !p->late_storages || !p->changed ||
		!array_reserve(&s->summaries, tensors, SIZE_MAX))
		return false;
	if (tensors > 0)
		memset(s->summaries.items, 0, tensors * sizeof *s->summaries.items);
	s->summaries.count = tensors;
	for (uint32_t i = 0; i < storages; i++)
		if (s->storages.items[i].offset != UINT64_MAX)
			p->order[p->storages++] = i;
	for (uint32_t i = 0; i < tensors; i++)
		if (is_readable(s, &s->tensors.items[i]))
			p->users[p->user_count++] = i;
	qsort_r(p->order, p->storages, sizeof *p->order, compare_places, s);
	qsort_r(p->users, p->user_count, sizeof *p->users, compare_users, s);
	if (!plan_uses(p))
		return false;
	bound_gathered(p);
	return plan_leaves(p) && plan_pieces(p) && plan_blocks(p);
}

/* ---- the threads ------------------------------------------------------------------------------
 */

struct reader {
	struct plan *plan;
	struct source source;
	uint32_t file; /* open in source, or NO_FILE */
	char path[PATH_BYTES];
	uint8_t *buffer; /* LEAF_BYTES */
	struct gather gather;
};

static void set(bool *flag)
{
	__atomic_store_n(flag, true, __ATOMIC_RELAXED);
}

static void reader_close(struct reader *r)
{
	if (r->file == NO_FILE)
		return;
	if (source_check(&r->source, NULL) < 0)
		set(&r->plan->changed[r->file]);
	source_close(&r->source);
	r->file = NO_FILE;
}

/* Open the file that was looked through, not one that has come in its place. */
static bool reader_open(struct reader *r, uint32_t file)
{
	const struct plan *p = r->plan;
	const struct state_file *f = &p->state->files.items[file];

	if (r->file == file)
		return true;
	reader_close(r);
	int n = snprintf(
		r->path, sizeof r->path, "%s%s%s", p->prefix, *p->prefix ? "/" : "", f->path);
	if (n < 0 || (size_t)n >= sizeof r->path ||
		source_open(&r->source, p->dirfd, r->path, NULL) < 0)
		return false;
	r->file = file;
	if (r->source.size == f->size && r->source.mtime_ns == f->mtime_ns)
		return true;
	set(&r->plan->changed[file]);
	return false;
}

static void swap_bytes(uint8_t *p, size_t n, size_t width)
{
	for (size_t i = 0; width > 1 && i + width <= n; i += width)
		for (size_t k = 0; k < width / 2; k++) {
			uint8_t low = p[i + k];
			p[i + k] = p[i + width - 1 - k];
			p[i + width - 1 - k] = low;
		}
}

/* SHA-256 of a leaf or a whole tensor. Where OpenSSL fails, the tensor counts as not read. */
static void strong_bytes(
	struct plan *p, uint32_t tensor, const void *bytes, size_t n, struct strong_digest *out)
{
	if (!sha256_of(bytes, n, out->bytes))
		set(&p->weak[tensor]);
}

/* Digest and statistics of one leaf; a tensor that is no larger has them to itself. */
static void take_leaf(struct plan *p, uint32_t tensor, uint64_t leaf, uint8_t *bytes, size_t n)
{
	struct state *s = p->state;
	const struct state_tensor *t = &s->tensors.items[tensor];
	struct tensor_summary *whole = &s->summaries.items[tensor];
	const size_t width = dtype_size(t->dtype);

	if (s->storages.items[t->storage].big_endian)
		swap_bytes(bytes, n,
			dtype_rows[t->dtype].kind == DTYPE_KIND_COMPLEX ? width / 2 : width);
	digest_bytes(bytes, n, leaf == NO_LEAF ? whole->digest : s->leaves.items[leaf].digest);
	if (s->wants_strong)
		strong_bytes(p, tensor, bytes, n,
			leaf == NO_LEAF ? &s->strong.items[tensor] : &s->strong_leaves.items[leaf]);
	if (!statistics_possible(t->dtype))
		return;
	struct statistics found = statistics_of(t->dtype, bytes, n / width);
	if (leaf == NO_LEAF)
		statistics_conclude(&found, t->numel, whole);
	else
		p->partial[leaf] = found;
}

static void take_block(struct reader *r, const struct block *b)
{
	struct plan *p = r->plan;
	struct piece *pieces = &p->pieces.items[b->first];
	bool late = deadline_passed(p->deadline);
	bool ok = !late && reader_open(r, b->file) &&
		  source_read(&r->source, b->at, r->buffer, b->bytes, NULL) == RP_OK;

	for (size_t i = 0; i < b->count; i++) {
		struct piece *q = &pieces[i];
		uint8_t *bytes = r->buffer + (q->at - b->at);
		if (!ok) {
			set(&p->lost_storages[q->storage]);
			if (late)
				set(&p->late_storages[q->storage]);
			continue;
		}
		if (p->state->storages.items[q->storage].crc_known)
			q->crc = libdeflate_crc32(0, bytes, q->bytes);
		if (q->tensor != NO_FILE)
			take_leaf(p, q->tensor, q->leaf, bytes, q->bytes);
	}
}

/* The next blocks, as many as a thread takes at once. */
static bool take_blocks(struct reader *r)
{
	struct plan *p = r->plan;
	size_t first = __atomic_fetch_add(&p->next_block, p->claim, __ATOMIC_RELAXED);

	for (size_t i = first; i < first + p->claim && i < p->blocks.count; i++)
		take_block(r, &p->blocks.items[i]);
	return first < p->blocks.count;
}

/* A tensor that comes in stretches, cut into leaves again. */
struct folding {
	struct reader *reader;
	uint32_t tensor;
	uint64_t leaf; /* the one that is being filled, or NO_LEAF */
	size_t filled;
};

static void fold_leaf(struct folding *f)
{
	take_leaf(f->reader->plan, f->tensor, f->leaf, f->reader->buffer, f->filled);
	f->leaf += f->leaf != NO_LEAF;
	f->filled = 0;
}

static bool fold(void *context, uint8_t *bytes, size_t n)
{
	struct folding *f = context;

	if (deadline_passed(f->reader->plan->deadline))
		return false;
	while (n > 0) {
		size_t room = LEAF_BYTES - f->filled, taken = n < room ? n : room;
		memcpy(f->reader->buffer + f->filled, bytes, taken);
		f->filled += taken;
		bytes += taken;
		n -= taken;
		if (f->filled == LEAF_BYTES)
			fold_leaf(f);
	}
	return true;
}

static void take_gathered(struct reader *r, uint32_t tensor)
{
	const struct state *s = r->plan->state;
	const struct state_tensor *t = &s->tensors.items[tensor];
	const struct tensor_summary *whole = &s->summaries.items[tensor];
	struct folding f = {.reader = r,
		.tensor = tensor,
		.leaf = whole->leaves > 0 ? whole->first_leaf : NO_LEAF};

	if (deadline_passed(r->plan->deadline) || !reader_open(r, t->file) ||
		!gather_tensor(&r->gather, &r->source, s->storages.items[t->storage].offset, t,
			fold, &f)) {
		set(&r->plan->lost_tensors[tensor]);
		set(&r->plan->lost_storages[t->storage]);
		if (deadline_passed(r->plan->deadline))
			set(&r->plan->late_storages[t->storage]);
		return;
	}
	if (f.filled > 0)
		fold_leaf(&f);
}

static void *run_reader(void *context)
{
	struct plan *p = context;
	struct reader r = {.plan = p, .file = NO_FILE, .buffer = malloc(LEAF_BYTES)};

	while (r.buffer && take_blocks(&r))
		;
	while (r.buffer) {
		size_t i = __atomic_fetch_add(&p->next_gathered, 1, __ATOMIC_RELAXED);
		if (i >= p->gathered.count)
			break;
		take_gathered(&r, p->gathered.items[i]);
	}
	reader_close(&r);
	free(r.buffer);
	gather_release(&r.gather);
	return NULL;
}

unsigned team_size(unsigned wanted)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	return wanted ? wanted : cores > 0 ? (unsigned)cores : 1;
}

static void run_team(struct plan *p, unsigned threads)
{
	pthread_t team[THREADS_MAX];
	const size_t work = p->blocks.count + p->gathered.count;
	unsigned started = 0;

	p->claim = p->blocks.count / ((size_t)threads * 4);
	p->claim = p->claim < 1 ? 1 : p->claim < CLAIM_MAX ? p->claim : CLAIM_MAX;
	/* This thread is one of the team; a thread that cannot be started only makes it slower. */
	while (started + 1 < threads && started < THREADS_MAX && started + 1 < work &&
		pthread_create(&team[started], NULL, run_reader, p) == 0)
		started++;
	run_reader(p);
	for (unsigned i = 0; i < started; i++)
		pthread_join(team[i], NULL);
}

/* ---- the results ------------------------------------------------------------------------------
 */

/* The checksums of the storages from those of their pieces. */
static void join_checksums(struct plan *p)
{
	struct state *s = p->state;
	const uint32_t leaf_power = power_of_bytes(LEAF_BYTES);

	for (size_t i = 0; i < p->pieces.count; i++) {
		const struct piece *q = &p->pieces.items[i];
		struct state_storage *of = &s->storages.items[q->storage];
		of->crc_found = q->bytes == LEAF_BYTES
					? multiply_modulo(of->crc_found, leaf_power) ^ q->crc
					: crc32_joined(of->crc_found, q->crc, q->bytes);
	}
}

static void mark_storages(struct plan *p)
{
	for (size_t i = 0; i < p->storages; i++) {
		struct state_storage *of = &p->state->storages.items[p->order[i]];
		of->read = !p->lost_storages[p->order[i]] && !p->changed[of->file];
	}
}

void bytes_recount(const struct state *s, struct byte_totals *totals)
{
	*totals = (struct byte_totals){.storages_all = s->storages.count};
	for (size_t i = 0; i < s->storages.count; i++) {
		const struct state_storage *st = &s->storages.items[i];
		if (!st->read) {
			totals->unreadable += st->offset != UINT64_MAX;
			continue;
		}
		totals->storages++;
		totals->bytes += st->length;
		totals->with_checksum += st->crc_known;
		totals->mismatches += st->crc_known && st->crc != st->crc_found;
	}
}

/* XXH3-128 over the digests of leaves, as little-endian words: those of most machines. */
static void digest_leaves(struct leaf_digest *leaves, uint32_t count, uint64_t digest[2])
{
	for (uint32_t i = 0; i < count; i++)
		for (int k = 0; k < 2; k++)
			leaves[i].digest[k] = htole64(leaves[i].digest[k]);
	digest_bytes(leaves, count * sizeof *leaves, digest);
	for (uint32_t i = 0; i < count; i++)
		for (int k = 0; k < 2; k++)
			leaves[i].digest[k] = le64toh(leaves[i].digest[k]);
}

/* The digest over the digests of a tensor's leaves, and the statistics of them all. */
static void join_leaves(struct plan *p, uint32_t tensor)
{
	struct state *s = p->state;
	struct tensor_summary *whole = &s->summaries.items[tensor];
	const struct state_tensor *t = &s->tensors.items[tensor];
	struct statistics all = statistics_none;

	for (uint32_t i = 0; i < whole->leaves; i++)
		statistics_add(&all, &p->partial[whole->first_leaf + i]);
	if (statistics_possible(t->dtype))
		statistics_conclude(&all, t->numel, whole);
	digest_leaves(&s->leaves.items[whole->first_leaf], whole->leaves, whole->digest);
	if (s->wants_strong)
		strong_bytes(p, tensor, &s->strong_leaves.items[whole->first_leaf],
			whole->leaves * sizeof *s->strong_leaves.items, &s->strong.items[tensor]);
}

static void finish_summary(struct plan *p, uint32_t tensor)
{
	struct state *s = p->state;
	const struct state_tensor *t = &s->tensors.items[tensor];
	struct tensor_summary *out = &s->summaries.items[tensor];

	switch ((enum tensor_use)p->use[tensor]) {
	case USE_IN_ROW:
		out->known = !p->lost_storages[t->storage] && !p->changed[t->file];
		break;
	case USE_GATHERED:
		out->known = !p->lost_tensors[tensor] && !p->changed[t->file];
		break;
	case USE_SAME:
		*out = s->summaries.items[p->same_as[tensor]];
		if (s->wants_strong)
			s->strong.items[tensor] = s->strong.items[p->same_as[tensor]];
		return;
	case USE_NONE:
		if (t->storage == NO_FILE || t->numel > 0)
			return;
		/* What has no elements needs no reading. */
		digest_bytes(NULL, 0, out->digest);
		if (s->wants_strong)
			strong_bytes(p, tensor, NULL, 0, &s->strong.items[tensor]);
		if (statistics_possible(t->dtype))
			statistics_conclude(&statistics_none, 0, out);
		out->known = true;
		return;
	}
	if (out->known && out->leaves > 0)
		join_leaves(p, tensor);
	if (p->weak[tensor])
		out->known = false;
	if (!out->known)
		*out = (struct tensor_summary){0};
}

static void count_late(const struct plan *p, struct byte_totals *totals)
{
	for (size_t i = 0; i < p->storages; i++) {
		if (!p->late_storages[p->order[i]])
			continue;
		totals->late++;
		totals->unreadable -= !p->state->storages.items[p->order[i]].read;
	}
}

int bytes_read(struct state *s, int dirfd, const char *prefix, unsigned threads,
	const struct deadline *deadline, struct byte_totals *totals, struct error *e)
{
	struct plan p = {.state = s, .dirfd = dirfd, .prefix = prefix, .deadline = deadline};
	int status = RP_OK;

	if (!plan_make(&p))
		status = fail(e, RP_E_MEMORY, ERROR_NO_OFFSET,
			"no memory to plan reading %zu tensors", s->tensors.count);
	if (status == RP_OK) {
		run_team(&p, threads);
		/* Without a buffer in any thread, nothing was taken. */
		if (p.next_block < p.blocks.count || p.next_gathered < p.gathered.count)
			status = fail(
				e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for reading buffers");
	}
	if (status == RP_OK) {
		join_checksums(&p);
		mark_storages(&p);
		for (uint32_t i = 0; i < s->tensors.count; i++)
			finish_summary(&p, i);
		s->bytes_read = true;
		bytes_recount(s, totals);
		count_late(&p, totals);
	} else {
		array_release(&s->summaries);
		array_release(&s->leaves);
		array_release(&s->strong);
		array_release(&s->strong_leaves);
	}
	plan_release(&p);
	return status;
}
