/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "state/bytes.h"

#include <fcntl.h>
#include <libdeflate.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/source.h"

#define CHUNK ((size_t)1 << 20)
#define PATH_BYTES 4096

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

uint32_t crc32_of_zeros(uint64_t n)
{
	uint32_t factor = 0x00800000u, power = 0x80000000u; /* x^8 and x^0 */

	for (; n; n >>= 1) {
		if (n & 1)
			power = multiply_modulo(power, factor);
		factor = multiply_modulo(factor, factor);
	}
	return ~multiply_modulo(0xffffffffu, power);
}

enum zero_known storage_zero(const struct state_storage *s)
{
	if (s->read)
		return s->zero ? ZERO_YES : ZERO_NO;
	if (!s->crc_known || s->length == 0)
		return ZERO_UNKNOWN;
	return s->crc == crc32_of_zeros(s->length) ? ZERO_YES : ZERO_NO;
}

int storage_same(const struct state_storage *a, const struct state_storage *b)
{
	if (a->length != b->length)
		return 0;
	if (a->read && b->read)
		return a->digest[0] == b->digest[0] && a->digest[1] == b->digest[1];
	uint32_t x = a->read ? a->crc_found : a->crc, y = b->read ? b->crc_found : b->crc;
	if (!(a->read || a->crc_known) || !(b->read || b->crc_known))
		return -1;
	return x == y;
}

/* The threads' common work: storages in file order, taken one by one. */
struct work {
	struct state *state;
	int dirfd;
	const char *prefix;
	const uint32_t *order;
	size_t count, next;
	pthread_mutex_t lock;
	struct byte_totals totals;
};

struct reader {
	struct source source;
	uint32_t file; /* open in source, or NO_FILE */
	char path[PATH_BYTES];
	uint8_t *buffer;
	XXH3_state_t *hash;
};

static bool reader_open(struct reader *r, const struct work *w, uint32_t file)
{
	if (r->file == file)
		return true;
	if (r->file != NO_FILE)
		source_close(&r->source);
	r->file = NO_FILE;
	const struct state_file *f = &w->state->files.items[file];
	int n = snprintf(
		r->path, sizeof r->path, "%s%s%s", w->prefix, *w->prefix ? "/" : "", f->path);
	if (n < 0 || (size_t)n >= sizeof r->path ||
		source_open(&r->source, w->dirfd, r->path, NULL) < 0)
		return false;
	r->file = file;
	/* The file whose directory was read, not one that has come in its place. */
	return r->source.size == f->size && r->source.mtime_ns == f->mtime_ns;
}

static bool all_zero(const uint8_t *p, size_t n)
{
	return n == 0 || (p[0] == 0 && memcmp(p, p + 1, n - 1) == 0);
}

/*
 * The largest magnitude of a stretch of floats as bits: with the sign off, bits of floats order as
 * integers, and NaN and infinity come last. One pass that the compiler vectorises; the counts need
 * a second one only where there is something to count.
 */
#define DEFINE_LARGEST(name, type, mask)                                                           \
	static uint64_t name(const uint8_t *bytes, size_t n)                                       \
	{                                                                                          \
		type most = 0;                                                                     \
		for (size_t i = 0; i < n; i++) {                                                   \
			type v;                                                                    \
			memcpy(&v, bytes + i * sizeof v, sizeof v);                                \
			v &= (mask);                                                               \
			most = v > most ? v : most;                                                \
		}                                                                                  \
		return most;                                                                       \
	}

DEFINE_LARGEST(largest16, uint16_t, 0x7fff)
DEFINE_LARGEST(largest32, uint32_t, 0x7fffffff)
DEFINE_LARGEST(largest64, uint64_t, 0x7fffffffffffffff)

static void count_special(struct state_storage *s, const uint8_t *p, size_t n, size_t width)
{
	for (size_t i = 0; i < n; i++) {
		double v;
		if (!dtype_to_double(s->dtype, p + i * width, false, &v))
			continue;
		if (isnan(v))
			s->nans++;
		else if (isinf(v))
			*(v > 0 ? &s->infinities : &s->negative_infinities) += 1;
		else if (fabs(v) > s->largest)
			s->largest = fabs(v);
	}
}

/* Add a stretch of whole elements to what is known of a storage's values. */
static void take_values(struct state_storage *s, const uint8_t *p, size_t bytes)
{
	size_t width = dtype_size(s->dtype), n = bytes / width;
	uint64_t bits = width == 2   ? largest16(p, n)
			: width == 4 ? largest32(p, n)
				     : largest64(p, n);
	uint8_t raw[8];
	double v;

	memcpy(raw, &bits, sizeof raw);
	if (dtype_to_double(s->dtype, raw, false, &v) && isfinite(v)) {
		if (v > s->largest)
			s->largest = v;
		return;
	}
	count_special(s, p, n, width);
}

static bool is_plain_float(uint8_t dtype)
{
	return dtype == DTYPE_F32 || dtype == DTYPE_BF16 || dtype == DTYPE_F16 ||
	       dtype == DTYPE_F64;
}

static bool read_storage(struct reader *r, struct state_storage *s)
{
	uint32_t crc = 0;
	bool zero = true, values = is_plain_float(s->dtype) && !s->big_endian;

	XXH3_128bits_reset(r->hash);
	for (uint64_t at = 0; at < s->length; at += CHUNK) {
		size_t n = s->length - at < CHUNK ? (size_t)(s->length - at) : CHUNK;
		if (source_read(&r->source, s->offset + at, r->buffer, n, NULL) < 0)
			return false;
		crc = libdeflate_crc32(crc, r->buffer, n);
		XXH3_128bits_update(r->hash, r->buffer, n);
		zero = zero && all_zero(r->buffer, n);
		/* A chunk is a whole number of elements; all but the last are. */
		if (values)
			take_values(s, r->buffer, n);
	}
	XXH128_hash_t digest = XXH3_128bits_digest(r->hash);
	s->crc_found = crc;
	s->digest[0] = digest.low64;
	s->digest[1] = digest.high64;
	s->zero = zero;
	s->valued = values;
	s->read = true;
	return true;
}

static void *run_reader(void *context)
{
	struct work *w = context;
	struct reader r = {.file = NO_FILE, .buffer = malloc(CHUNK), .hash = XXH3_createState()};
	struct byte_totals mine = {0};

	while (r.buffer && r.hash) {
		pthread_mutex_lock(&w->lock);
		size_t i = w->next < w->count ? w->next++ : SIZE_MAX;
		pthread_mutex_unlock(&w->lock);
		if (i == SIZE_MAX)
			break;
		struct state_storage *s = &w->state->storages.items[w->order[i]];
		if (!reader_open(&r, w, s->file) || !read_storage(&r, s)) {
			mine.unreadable++;
			continue;
		}
		mine.storages++;
		mine.bytes += s->length;
		mine.with_checksum += s->crc_known;
		mine.mismatches += s->crc_known && s->crc != s->crc_found;
	}
	if (r.file != NO_FILE)
		source_close(&r.source);
	pthread_mutex_lock(&w->lock);
	w->totals.storages += mine.storages;
	w->totals.bytes += mine.bytes;
	w->totals.with_checksum += mine.with_checksum;
	w->totals.mismatches += mine.mismatches;
	w->totals.unreadable += mine.unreadable;
	pthread_mutex_unlock(&w->lock);
	free(r.buffer);
	XXH3_freeState(r.hash);
	return NULL;
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

unsigned team_size(unsigned wanted)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	return wanted ? wanted : cores > 0 ? (unsigned)cores : 1;
}

#define THREADS_MAX 64

int bytes_read(struct state *s, int dirfd, const char *prefix, unsigned threads,
	struct byte_totals *totals, struct error *e)
{
	struct work w = {.state = s, .dirfd = dirfd, .prefix = prefix};
	uint32_t *order = calloc(s->storages.count + 1, sizeof *order);
	pthread_t team[THREADS_MAX];
	unsigned started = 0;

	*totals = (struct byte_totals){.storages_all = s->storages.count};
	if (!order)
		return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for a list of %zu storages",
			s->storages.count);
	for (uint32_t i = 0; i < s->storages.count; i++)
		if (s->storages.items[i].offset != UINT64_MAX)
			order[w.count++] = i;
	qsort_r(order, w.count, sizeof *order, compare_places, s);
	w.order = order;
	pthread_mutex_init(&w.lock, NULL);
	/* This thread is one of the team; a thread that cannot be started only makes it slower. */
	while (started + 1 < threads && started < THREADS_MAX && started + 1 < w.count &&
		pthread_create(&team[started], NULL, run_reader, &w) == 0)
		started++;
	run_reader(&w);
	for (unsigned i = 0; i < started; i++)
		pthread_join(team[i], NULL);
	pthread_mutex_destroy(&w.lock);
	free(order);
	w.totals.storages_all = s->storages.count;
	*totals = w.totals;
	s->bytes_read = true;
	if (w.next < w.count)
		return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for reading buffers");
	return RP_OK;
}
