/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "ledger/store.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/size.h"
#include "ledger/ledger.h"

#define WRITE_BYTES ((size_t)1 << 20) /* of one write to the temporary file */
#define CHUNK_BYTES (STORE_CHUNK * sizeof(uint64_t))
#define NO_CHUNK SIZE_MAX

/* Chunks of the file held in memory while rows are moved: at least this many bytes. */
#define MOVE_CACHE_LEAST ((uint64_t)32 << 20)

struct chunk {
	uint64_t base;  /* the smallest value */
	uint64_t at;    /* offset in the file, where on_disk */
	void *memory;   /* NULL: on disk, or of width 0 */
	uint16_t rows;  /* STORE_CHUNK, but for the last one */
	uint16_t moved; /* rows that store_move() has taken */
	uint8_t width;  /* bytes of a packed value: 0, 1, 2, 4 or 8 */
	bool on_disk;
};

struct column {
	ARRAY(struct chunk) chunks;
	uint64_t
		*staged; /* STORE_CHUNK values of the chunk that is not full yet; NULL: no column */
};

/* The unlinked file. */
struct spill {
	int fd; /* -1: none yet */
	uint64_t end;
	uint8_t *pending; /* written next, at end - n */
	size_t n;
	char folder[PATH_MAX];
};

struct store {
	struct store_budget *budget;
	const char *path;
	struct column columns[STORE_COLUMNS];
	uint64_t rows; /* with those that are staged */
	size_t staged;
	struct spill spill;
	uint64_t memory, disk;
	uint64_t serial; /* tells stores apart in buffers that outlive them */
	uint64_t cached; /* bytes of chunks on disk that store_move() holds */
	size_t clock[STORE_COLUMNS];
};

struct sample_buffer {
	uint64_t keys[STORE_CHUNK];
	uint16_t spaces[STORE_CHUNK];
	uint32_t tokens[STORE_CHUNK];
	float losses[STORE_CHUNK];
	/* Packed chunks that were read from a file. */
	uint64_t raw[STORE_COLUMNS][STORE_CHUNK];
	size_t chunk[STORE_COLUMNS];
	uint64_t serial[STORE_COLUMNS];
};

struct sample_buffer *sample_buffer_new(void)
{
	struct sample_buffer *b = malloc(sizeof *b);

	for (size_t i = 0; b && i < STORE_COLUMNS; i++)
		b->chunk[i] = NO_CHUNK;
	return b;
}

void sample_buffer_free(struct sample_buffer *b)
{
	free(b);
}

struct store *store_new(struct store_budget *budget, const char *path)
{
	static atomic_uint_fast64_t serials;
	struct store *s = calloc(1, sizeof *s);

	if (!s)
		return NULL;
	s->budget = budget;
	s->path = path;
	s->spill.fd = -1;
	s->serial = atomic_fetch_add(&serials, 1) + 1;
	s->columns[STORE_KEYS].staged = malloc(CHUNK_BYTES);
	if (!s->columns[STORE_KEYS].staged) {
		free(s);
		return NULL;
	}
	return s;
}

static size_t packed_bytes(const struct chunk *c)
{
	return (size_t)c->width * c->rows;
}

/* Give back the memory of a chunk, which may be a cached one of the file. */
static void drop_memory(struct store *s, struct chunk *c)
{
	if (!c->memory)
		return;
	free(c->memory);
	c->memory = NULL;
	if (c->on_disk) {
		s->cached -= packed_bytes(c);
		return;
	}
	s->memory -= packed_bytes(c);
	s->budget->used -= packed_bytes(c);
}

void store_free(struct store *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < STORE_COLUMNS; i++) {
		struct column *column = &s->columns[i];
		for (size_t k = 0; k < column->chunks.count; k++)
			drop_memory(s, &column->chunks.items[k]);
		array_release(&column->chunks);
		free(column->staged);
	}
	if (s->spill.fd >= 0)
		close(s->spill.fd);
	free(s->spill.pending);
	free(s);
}

uint64_t store_rows(const struct store *s)
{
	return s->rows;
}

bool store_has(const struct store *s, enum store_column column)
{
	return s->columns[column].staged != NULL;
}

void store_sizes(const struct store *s, uint64_t *memory, uint64_t *disk)
{
	*memory = s->memory;
	*disk = s->disk;
}

/* The temporary file --------------------------------------------------------------------------- */

/* A nameless file in `folder`, or -1 and errno. */
static int open_nameless(const char *folder)
{
	char name[PATH_MAX];
	int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd >= 0)
		return fd;
	/* Not every file system has O_TMPFILE. */
	if ((size_t)snprintf(name, sizeof name, "%s/reprise-XXXXXX", folder) >= sizeof name) {
		errno = ENAMETOOLONG;
		return -1;
	}
	fd = mkostemp(name, O_CLOEXEC);
	if (fd >= 0)
		unlink(name);
	return fd;
}

static void folder_of(const char *path, char *out, size_t size)
{
	const char *slash = strrchr(path, '/');
	int n = slash ? (int)(slash - path) : 0;

	if (!slash)
		snprintf(out, size, ".");
	else
		snprintf(out, size, "%.*s", n > 0 ? n : 1, path);
}

static int open_spill(struct store *s, struct error *e)
{
	const char *chosen = getenv("TMPDIR");
	int first_error = 0;

	for (int i = chosen && *chosen ? 0 : 1; i < 3; i++) {
		if (i == 2)
			folder_of(s->path, s->spill.folder, sizeof s->spill.folder);
		else
			snprintf(s->spill.folder, sizeof s->spill.folder, "%s",
				i == 0 ? chosen : "/var/tmp");
		s->spill.fd = open_nameless(s->spill.folder);
		if (s->spill.fd >= 0)
			break;
		first_error = first_error ? first_error : errno;
	}
	if (s->spill.fd < 0)
		return fail_os(e, first_error,
			"the samples need more than the %llu MB of memory allowed for them, and no "
			"temporary file can be made in $TMPDIR, /var/tmp or beside the log",
			(unsigned long long)(s->budget->limit >> 20));
	s->spill.pending = malloc(WRITE_BYTES);
	return s->spill.pending ? RP_OK
				: fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for a buffer");
}

static int flush_spill(struct store *s, struct error *e)
{
	struct spill *f = &s->spill;
	size_t done = 0;

	while (done < f->n) {
		ssize_t r = pwrite(
			f->fd, f->pending + done, f->n - done, (off_t)(f->end - f->n + done));
		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0)
			return fail_os(e, r < 0 ? errno : ENOSPC,
				"writing to a temporary file in %s (%llu MB so far)", f->folder,
				(unsigned long long)(f->end >> 20));
		done += (size_t)r;
	}
	f->n = 0;
	return RP_OK;
}

static int spill(struct store *s, const void *packed, size_t bytes, uint64_t *at, struct error *e)
{
	struct spill *f = &s->spill;

	if (f->fd < 0 && open_spill(s, e) < 0)
		return e->status;
	if (f->n + bytes > WRITE_BYTES && flush_spill(s, e) < 0)
		return e->status;
	memcpy(f->pending + f->n, packed, bytes);
	*at = f->end;
	f->n += bytes;
	f->end += bytes;
	s->disk += bytes;
	return RP_OK;
}

static int read_spill(const struct store *s, uint64_t at, void *out, size_t bytes, struct error *e)
{
	size_t done = 0;

	while (done < bytes) {
		ssize_t r =
			pread(s->spill.fd, (char *)out + done, bytes - done, (off_t)(at + done));
		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0)
			return fail_os(e, r < 0 ? errno : EIO,
				"reading from the temporary file in %s", s->spill.folder);
		done += (size_t)r;
	}
	return RP_OK;
}

/* Packing -------------------------------------------------------------------------------------- */

static uint8_t width_of(uint64_t range)
{
	if (range == 0)
		return 0;
	if (range <= UINT8_MAX)
		return 1;
	if (range <= UINT16_MAX)
		return 2;
	return range <= UINT32_MAX ? 4 : 8;
}

#define PACK(type)                                                                                 \
	do {                                                                                       \
		type *p = out;                                                                     \
		for (size_t i = 0; i < n; i++)                                                     \
			p[i] = (type)(v[i] - base);                                                \
	} while (0)

static void pack(const uint64_t *v, size_t n, uint64_t base, uint8_t width, void *out)
{
	switch (width) {
	case 1:
		PACK(uint8_t);
		break;
	case 2:
		PACK(uint16_t);
		break;
	case 4:
		PACK(uint32_t);
		break;
	default:
		PACK(uint64_t);
	}
}

/* Rows from..from+n of a packed chunk as values of `to`. */
#define UNPACK(to)                                                                                 \
	do {                                                                                       \
		switch (width) {                                                                   \
		case 0:                                                                            \
			for (size_t i = 0; i < n; i++)                                             \
				out[i] = (to)base;                                                 \
			break;                                                                     \
		case 1:                                                                            \
			for (size_t i = 0; i < n; i++)                                             \
				out[i] = (to)(base + ((const uint8_t *)packed)[from + i]);         \
			break;                                                                     \
		case 2:                                                                            \
			for (size_t i = 0; i < n; i++)                                             \
				out[i] = (to)(base + ((const uint16_t *)packed)[from + i]);        \
			break;                                                                     \
		case 4:                                                                            \
			for (size_t i = 0; i < n; i++)                                             \
				out[i] = (to)(base + ((const uint32_t *)packed)[from + i]);        \
			break;                                                                     \
		default:                                                                           \
			for (size_t i = 0; i < n; i++)                                             \
				out[i] = (to)(base + ((const uint64_t *)packed)[from + i]);        \
		}                                                                                  \
	} while (0)

static void unpack64(
	const void *packed, uint8_t width, uint64_t base, size_t from, size_t n, uint64_t *out)
{
	UNPACK(uint64_t);
}

static void unpack32(
	const void *packed, uint8_t width, uint64_t base, size_t from, size_t n, uint32_t *out)
{
	UNPACK(uint32_t);
}

static void unpack16(
	const void *packed, uint8_t width, uint64_t base, size_t from, size_t n, uint16_t *out)
{
	UNPACK(uint16_t);
}

/* Appending ------------------------------------------------------------------------------------ */

static int no_memory(struct error *e)
{
	return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for the samples");
}

int store_begin_column(struct store *s, enum store_column column, struct error *e)
{
	struct column *c = &s->columns[column];
	size_t chunks = s->columns[STORE_KEYS].chunks.count;

	if (c->staged)
		return RP_OK;
	uint64_t *staged = calloc(STORE_CHUNK, sizeof *staged);
	if (!staged || !array_reserve(&c->chunks, chunks, SIZE_MAX)) {
		free(staged);
		return no_memory(e);
	}
	c->staged = staged;
	c->chunks.count = chunks;
	if (chunks > 0)
		memset(c->chunks.items, 0, chunks * sizeof *c->chunks.items);
	return RP_OK;
}

size_t store_room(const struct store *s)
{
	return STORE_CHUNK - s->staged;
}

uint64_t *store_at(struct store *s, enum store_column column)
{
	return s->columns[column].staged + s->staged;
}

static int seal(struct store *s, struct column *column, struct error *e)
{
	const uint64_t *v = column->staged;
	uint64_t least = v[0], most = v[0];
	uint64_t packed[STORE_CHUNK];
	struct chunk *c = array_push(&column->chunks, SIZE_MAX);

	if (!c)
		return no_memory(e);
	c->rows = (uint16_t)s->staged;
	for (size_t i = 1; i < s->staged; i++) {
		least = v[i] < least ? v[i] : least;
		most = v[i] > most ? v[i] : most;
	}
	c->base = least;
	c->width = width_of(most - least);
	if (c->width == 0)
		return RP_OK;
	size_t bytes = packed_bytes(c);
	if (s->budget->used + bytes <= s->budget->limit && (c->memory = malloc(bytes))) {
		pack(v, c->rows, least, c->width, c->memory);
		s->memory += bytes;
		s->budget->used += bytes;
		return RP_OK;
	}
	c->on_disk = true;
	pack(v, c->rows, least, c->width, packed);
	return spill(s, packed, bytes, &c->at, e);
}

static int seal_all(struct store *s, struct error *e)
{
	for (size_t i = 0; i < STORE_COLUMNS; i++)
		if (s->columns[i].staged && seal(s, &s->columns[i], e) < 0)
			return e->status;
	s->staged = 0;
	return RP_OK;
}

int store_advance(struct store *s, size_t n, struct error *e)
{
	s->rows += n;
	s->staged += n;
	return s->staged < STORE_CHUNK ? RP_OK : seal_all(s, e);
}

int store_end(struct store *s, struct error *e)
{
	if (s->staged > 0 && seal_all(s, e) < 0)
		return e->status;
	return s->spill.n > 0 ? flush_spill(s, e) : RP_OK;
}

/* Reading -------------------------------------------------------------------------------------- */

/* The packed bytes of a chunk, wherever they are; NULL after an error, or for width 0. */
static const void *packed_of(const struct store *s, enum store_column column, size_t chunk,
	struct sample_buffer *b, struct error *e)
{
	const struct chunk *c = &s->columns[column].chunks.items[chunk];

	if (!c->on_disk)
		return c->memory;
	if (b->chunk[column] == chunk && b->serial[column] == s->serial)
		return b->raw[column];
	b->chunk[column] = NO_CHUNK;
	if (read_spill(s, c->at, b->raw[column], packed_bytes(c), e) < 0)
		return NULL;
	b->chunk[column] = chunk;
	b->serial[column] = s->serial;
	return b->raw[column];
}

int store_read(const struct store *s, uint64_t row, size_t n, struct sample_buffer *b,
	struct sample_block *out, struct error *e)
{
	size_t chunk = (size_t)(row / STORE_CHUNK), from = (size_t)(row % STORE_CHUNK);
	const void *packed[STORE_COLUMNS] = {0};

	if (n > STORE_CHUNK - from)
		n = STORE_CHUNK - from;
	if (n > s->rows - row)
		n = (size_t)(s->rows - row);
	*out = (struct sample_block){.row = row, .n = n};
	for (enum store_column i = 0; i < STORE_COLUMNS; i++) {
		if (!store_has(s, i) || s->columns[i].chunks.items[chunk].width == 0)
			continue;
		packed[i] = packed_of(s, i, chunk, b, e);
		if (!packed[i])
			return e->status;
	}
	const struct chunk *c = &s->columns[STORE_KEYS].chunks.items[chunk];
	if (c->width == 8 && c->base == 0) {
		out->keys = (const uint64_t *)packed[STORE_KEYS] + from;
	} else {
		unpack64(packed[STORE_KEYS], c->width, c->base, from, n, b->keys);
		out->keys = b->keys;
	}
	if (store_has(s, STORE_SPACES)) {
		c = &s->columns[STORE_SPACES].chunks.items[chunk];
		unpack16(packed[STORE_SPACES], c->width, c->base, from, n, b->spaces);
		out->spaces = b->spaces;
	}
	if (store_has(s, STORE_TOKENS)) {
		c = &s->columns[STORE_TOKENS].chunks.items[chunk];
		unpack32(packed[STORE_TOKENS], c->width, c->base, from, n, b->tokens);
		out->tokens = b->tokens;
	}
	if (store_has(s, STORE_LOSSES)) {
		uint32_t bits[STORE_CHUNK];
		c = &s->columns[STORE_LOSSES].chunks.items[chunk];
		unpack32(packed[STORE_LOSSES], c->width, c->base, from, n, bits);
		for (size_t i = 0; i < n; i++) {
			bits[i] ^= STORE_NO_LOSS;
			memcpy(&b->losses[i], &bits[i], sizeof *bits);
		}
		out->losses = b->losses;
	}
	return RP_OK;
}

/* Moving --------------------------------------------------------------------------------------- */

/* Give up cached chunks, in the order in which they lie, until `bytes` more have room. */
static void make_room(struct store *s, struct column *column, size_t *hand, size_t bytes)
{
	uint64_t most = s->budget->limit / 4;

	if (most < MOVE_CACHE_LEAST)
		most = MOVE_CACHE_LEAST;
	for (size_t tried = 0; s->cached + bytes > most && tried < column->chunks.count; tried++) {
		struct chunk *c = &column->chunks.items[*hand];
		*hand = (*hand + 1) % column->chunks.count;
		if (c->on_disk)
			drop_memory(s, c);
	}
}

static int load(struct store *s, enum store_column i, struct chunk *c, struct error *e)
{
	if (c->memory || c->width == 0)
		return RP_OK;
	make_room(s, &s->columns[i], &s->clock[i], packed_bytes(c));
	c->memory = malloc(packed_bytes(c));
	if (!c->memory)
		return no_memory(e);
	s->cached += packed_bytes(c);
	return read_spill(s, c->at, c->memory, packed_bytes(c), e);
}

/* Rows of one chunk. */
static int move_rows(
	struct store *from, size_t chunk, size_t at, size_t n, struct store *to, struct error *e)
{
	uint64_t first = (uint64_t)chunk * STORE_CHUNK;
	uint64_t rows = from->rows - first < STORE_CHUNK ? from->rows - first : STORE_CHUNK;

	for (enum store_column i = 0; i < STORE_COLUMNS; i++) {
		if (!store_has(from, i))
			continue;
		struct chunk *c = &from->columns[i].chunks.items[chunk];
		if (load(from, i, c, e) < 0)
			return e->status;
		unpack64(c->memory, c->width, c->base, at, n, store_at(to, i));
		c->moved = (uint16_t)(c->moved + n);
		if (c->moved == rows)
			drop_memory(from, c);
	}
	return store_advance(to, n, e);
}

int store_move(struct store *from, uint64_t row, uint64_t n, struct store *to, struct error *e)
{
	while (n > 0) {
		size_t at = (size_t)(row % STORE_CHUNK), now = STORE_CHUNK - at;
		if (now > store_room(to))
			now = store_room(to);
		if (now > n)
			now = (size_t)n;
		if (move_rows(from, (size_t)(row / STORE_CHUNK), at, now, to, e) < 0)
			return e->status;
		row += now;
		n -= now;
	}
	return RP_OK;
}
