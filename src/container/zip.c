/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "container/zip.h"

#include <libdeflate.h>
#include <stdlib.h>
#include <string.h>

#include "base/cursor.h"
#include "base/size.h"

#define LOCAL_SIGNATURE 0x04034b50u
#define ENTRY_SIGNATURE 0x02014b50u
#define END_SIGNATURE 0x06054b50u
#define END64_SIGNATURE 0x06064b50u
#define LOCATOR_SIGNATURE 0x07064b50u

#define LOCAL_SIZE 30u
#define ENTRY_SIZE 46u
#define END_SIZE 22u
#define END64_SIZE 56u
#define END64_LEADING 12u /* of these, not counted in the size that the record states */
#define LOCATOR_SIZE 20u
#define COMMENT_MAX 65535u

#define EXTRA_ZIP64 1u
#define FLAG_ENCRYPTED 1u
#define FLAG_DESCRIPTOR 8u /* sizes and checksum follow the payload */
/* Encrypted, patch data, strongly encrypted, a masked directory: no loader reads such an entry. */
#define FLAGS_UNREADABLE (FLAG_ENCRYPTED | 0x20u | 0x40u | 0x2000u)

#define ATTRIBUTE_FOLDER 0x10u /* of MS-DOS */

#define METHOD_STORED 0u
#define METHOD_DEFLATE 8u

/* How far back from the end of the file zeros are skipped to find the end of the archive. */
#define ZEROS_MAX ((uint64_t)64 << 20)
#define ZEROS_CHUNK 65536u

/* A finding and the error of the same words: what the directory says cannot be followed. */
__attribute__((format(printf, 5, 6))) static int malformed(const struct zip *z,
	struct findings *sink, struct error *e, uint64_t offset, const char *format, ...)
{
	struct error words = ERROR_INIT;
	va_list args;

	va_start(args, format);
	vsnprintf(words.text, sizeof words.text, format, args);
	va_end(args);
	if (sink)
		finding_place(sink, finding_add(sink, FINDING_I104, "%s", words.text), z->file,
			(struct slice){0}, offset);
	return fail(e, RP_E_FORMAT, offset, "%s", words.text);
}

/*
 * Where the last byte lies that is not zero, looking at most ZEROS_MAX back. File systems that lose
 * their delayed writes, and tools that copy by blocks, leave zeros at the end.
 */
static int content_end(const struct source *s, uint64_t *end, struct error *e)
{
	uint8_t *chunk = malloc(ZEROS_CHUNK);
	int status = RP_OK;

	if (!chunk)
		return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory");
	for (*end = s->size; *end > 0 && s->size - *end < ZEROS_MAX;) {
		size_t n = *end < ZEROS_CHUNK ? (size_t)*end : ZEROS_CHUNK;
		status = source_read(s, *end - n, chunk, n, e);
		if (status < 0)
			break;
		size_t left = n;
		while (left > 0 && chunk[left - 1] == 0)
			left--;
		*end -= n - left;
		if (left > 0)
			break;
	}
	free(chunk);
	return status;
}

/* PyTorch's reader refuses a file for it, though all of the archive may be there. */
static void several_volumes(const struct zip *z, uint64_t offset, struct findings *sink)
{
	finding_place(sink,
		finding_add(sink, FINDING_I104,
			"an end record of the zip archive tells of several volumes, of which this is one"),
		z->file, (struct slice){0}, offset);
}

/*
 * RP_OK, unless another archive ends at `begin`, where this one begins: no bytes that were put in,
 * but archives one after the other, as torch.distributed.checkpoint appends its tensors to a file.
 */
static int refuse_several(const struct zip *z, uint64_t begin, struct error *e)
{
	uint8_t raw[END_SIZE + 4];

	if (begin < END_SIZE || !range_inside(begin - END_SIZE, sizeof raw, z->source->size))
		return RP_OK;
	int status = source_read(z->source, begin - END_SIZE, raw, sizeof raw, e);
	if (status < 0 || load_le32(raw) != END_SIGNATURE ||
		load_le32(raw + END_SIZE) != LOCAL_SIGNATURE)
		return status;
	return fail(e, RP_E_UNSUPPORTED, begin,
		"several zip archives one after the other, as torch.distributed.checkpoint (DCP) writes "
		"its shards, which reprise does not read");
}

struct end_record {
	uint64_t offset; /* of the record in the file */
	uint64_t entries, directory_size, directory;
	uint64_t limit; /* the directory ends here at the latest */
};

/*
 * Find the end record, which a comment of up to 64 KiB may follow. The last signature wins, as it
 * does for miniz, the reader inside PyTorch.
 */
static int find_end(struct zip *z, struct end_record *end, struct findings *sink, struct error *e)
{
	const struct source *s = z->source;
	uint64_t content = 0;
	int status = content_end(s, &content, e);

	if (status < 0)
		return status;
	z->zeros = s->size - content;
	/* The record itself may end in zeros: of the high bytes of its offset and an empty comment.
	 */
	uint64_t last = s->size - content > END_SIZE ? content + END_SIZE : s->size;
	size_t n = last < END_SIZE + COMMENT_MAX ? (size_t)last : END_SIZE + COMMENT_MAX;
	uint8_t *tail = malloc(n ? n : 1);
	if (!tail)
		return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory");
	status = source_read(s, last - n, tail, n, e);
	if (status < 0) {
		free(tail);
		return status;
	}
	size_t at = n < END_SIZE ? SIZE_MAX : n - END_SIZE;
	while (at != SIZE_MAX && load_le32(tail + at) != END_SIGNATURE)
		at--;
	if (at == SIZE_MAX) {
		free(tail);
		z->truncated = true;
		return fail(e, RP_E_FORMAT, s->size,
			"the zip directory that should stand at the end is missing; the file has %llu bytes",
			(unsigned long long)s->size);
	}
	struct cursor c = cursor_over(tail + at, END_SIZE);
	cursor_take(&c, 4);
	unsigned disk = cursor_le16(&c), directory_disk = cursor_le16(&c);
	unsigned here = cursor_le16(&c);
	end->offset = last - n + at;
	end->entries = cursor_le16(&c);
	end->directory_size = cursor_le32(&c);
	end->directory = cursor_le32(&c);
	end->limit = end->offset;
	uint64_t whole = end->offset + END_SIZE + cursor_le16(&c);
	free(tail);
	if ((disk != 0 && disk != 0xffff) || (directory_disk != 0 && directory_disk != 0xffff))
		return fail(e, RP_E_UNSUPPORTED, end->offset, "a zip archive of several volumes");
	if (here != end->entries)
		several_volumes(z, end->offset, sink);
	if (whole != s->size) {
		bool more = whole < s->size;
		struct finding *f = finding_add(sink, FINDING_I104,
			more ? "%llu bytes follow the end of the zip archive"
			     : "the comment of the zip archive should have %llu bytes more",
			(unsigned long long)(more ? s->size - whole : whole - s->size));
		/* The loaders do not mind; who put them there is the question. */
		f->severity = SEVERITY_WARNING;
		finding_place(sink, f, z->file, (struct slice){0}, more ? whole : s->size);
	}
	return RP_OK;
}

static int read_end64_at(
	const struct zip *z, uint64_t at, uint8_t raw[END64_SIZE], bool *there, struct error *e)
{
	int status = source_read(z->source, at, raw, END64_SIZE, e);

	*there = status == RP_OK && load_le32(raw) == END64_SIGNATURE;
	return status;
}

/*
 * The bytes of the zip64 end record, which should be at `at`. It always ends at `latest`, where its
 * locator is: if one does that should be elsewhere, bytes came in before it, or went.
 */
static int find_end64(const struct zip *z, uint64_t at, uint64_t latest, uint8_t raw[END64_SIZE],
	struct findings *sink, struct error *e)
{
	uint64_t real = latest < END64_SIZE ? at : latest - END64_SIZE;
	bool there = false, displaced = false;
	int status = RP_OK;

	if (real != at)
		status = read_end64_at(z, real, raw, &displaced, e);
	if (status == RP_OK && displaced && real > at)
		status = refuse_several(z, real - at, e);
	if (status == RP_OK && range_inside(at, END64_SIZE, latest))
		status = read_end64_at(z, at, raw, &there, e);
	if (status < 0 || there)
		return status;
	if (displaced)
		return malformed(z, sink, e, real,
			"%llu bytes %s: the zip64 end record is at %llu and should be at %llu",
			(unsigned long long)(real > at ? real - at : at - real),
			real > at ? "were put into the file" : "are missing from the file",
			(unsigned long long)real, (unsigned long long)at);
	return malformed(z, sink, e, latest, "there is no zip64 end record at offset %llu",
		(unsigned long long)at);
}

/* What the zip64 end record says, in place of what does not fit the ordinary one. */
static void take_end64(const struct zip *z, struct end_record *end, const uint8_t raw[END64_SIZE],
	uint64_t at, uint64_t latest, struct findings *sink)
{
	struct end_record wide = *end;
	struct cursor c = cursor_over(raw, END64_SIZE);

	cursor_take(&c, 4);
	uint64_t rest = cursor_le64(&c);
	cursor_take(&c, 4); /* versions */
	uint32_t disk = cursor_le32(&c), directory_disk = cursor_le32(&c);
	uint64_t here = cursor_le64(&c);
	wide.entries = cursor_le64(&c);
	if (disk != 0 || directory_disk != 0 || here != wide.entries)
		several_volumes(z, at, sink);
	if (rest != latest - at - END64_LEADING) {
		struct finding *f = finding_add(sink, FINDING_I104,
			"the zip64 end record says that it has %llu bytes and has %llu",
			(unsigned long long)size_add(rest, END64_LEADING),
			(unsigned long long)(latest - at));
		finding_place(sink, f, z->file, (struct slice){0}, at);
	}
	wide.directory_size = cursor_le64(&c);
	wide.directory = cursor_le64(&c);
	wide.limit = at;
	if ((end->entries != 0xffff && end->entries != wide.entries) ||
		(end->directory_size != UINT32_MAX && end->directory_size != wide.directory_size) ||
		(end->directory != UINT32_MAX && end->directory != wide.directory)) {
		struct finding *f = finding_add(sink, FINDING_I104,
			"the two end records of the zip archive disagree about its directory");
		finding_place(sink, f, z->file, (struct slice){0}, end->offset);
	}
	*end = wide;
}

/* The zip64 end record, where a locator before the end record says that there is one. */
static int read_end64(struct zip *z, struct end_record *end, struct findings *sink, struct error *e)
{
	uint8_t raw[END64_SIZE];
	bool needed = end->entries == 0xffff || end->directory_size == UINT32_MAX ||
		      end->directory == UINT32_MAX;
	int status;

	if (end->offset >= LOCATOR_SIZE) {
		status = source_read(z->source, end->offset - LOCATOR_SIZE, raw, LOCATOR_SIZE, e);
		if (status < 0)
			return status;
		z->zip64 = load_le32(raw) == LOCATOR_SIGNATURE;
	}
	if (!z->zip64 && needed && end->entries != 0xffff)
		return malformed(z, sink, e, end->offset,
			"the end record points to a zip64 record, which is missing");
	if (!z->zip64)
		return RP_OK;
	uint64_t at = load_le64(raw + 8), latest = end->offset - LOCATOR_SIZE;
	if (load_le32(raw + 4) != 0 || load_le32(raw + 16) != 1)
		several_volumes(z, latest, sink);
	status = find_end64(z, at, latest, raw, sink, e);
	if (status == RP_OK)
		take_end64(z, end, raw, at, latest, sink);
	return status;
}

static int check_directory_place(
	struct zip *z, const struct end_record *end, struct findings *sink, struct error *e)
{
	uint8_t signature[4];

	if (!range_inside(end->directory, end->directory_size, end->limit))
		return malformed(z, sink, e, end->offset,
			"the zip directory (%llu bytes at offset %llu) does not end before its end record at %llu",
			(unsigned long long)end->directory_size, (unsigned long long)end->directory,
			(unsigned long long)end->limit);
	if (end->entries == 0 || end->directory_size < ENTRY_SIZE)
		return RP_OK;
	int status = source_read(z->source, end->directory, signature, sizeof signature, e);
	if (status < 0)
		return status;
	if (load_le32(signature) == ENTRY_SIGNATURE)
		return RP_OK;
	uint64_t real = end->limit - end->directory_size;
	status = source_read(z->source, real, signature, sizeof signature, e);
	if (status < 0)
		return status;
	if (load_le32(signature) == ENTRY_SIGNATURE && real > end->directory)
		status = refuse_several(z, real - end->directory, e);
	if (status < 0)
		return status;
	if (load_le32(signature) == ENTRY_SIGNATURE)
		return malformed(z, sink, e, real,
			"%llu bytes were put into the file: its zip directory is at %llu and should be at %llu",
			(unsigned long long)(real - end->directory), (unsigned long long)real,
			(unsigned long long)end->directory);
	return malformed(z, sink, e, end->directory, "there is no zip directory at offset %llu",
		(unsigned long long)end->directory);
}

/* The zip64 extra field holds, in this order, what does not fit the entry's own fields. */
static bool read_zip64_extra(struct slice extra, uint64_t *size, uint64_t *packed, uint64_t *header)
{
	struct cursor c = cursor_over(extra.p, extra.n);

	while (cursor_left(&c) >= 4) {
		unsigned id = cursor_le16(&c);
		struct slice field = cursor_slice(&c, cursor_le16(&c));
		if (id != EXTRA_ZIP64)
			continue;
		struct cursor f = cursor_over(field.p, field.n);
		if (*size == UINT32_MAX)
			*size = cursor_le64(&f);
		if (*packed == UINT32_MAX)
			*packed = cursor_le64(&f);
		if (header && *header == UINT32_MAX)
			*header = cursor_le64(&f);
		return cursor_ok(&f) && cursor_ok(&c);
	}
	return *size != UINT32_MAX && *packed != UINT32_MAX && (!header || *header != UINT32_MAX);
}

/* What the directory says of an entry that nothing needs, and that makes loaders refuse it. */
struct entry_marks {
	uint32_t attributes; /* the lowest byte as MS-DOS has them */
	uint16_t disk;
};

static bool read_entry(struct cursor *c, struct zip_entry *entry, struct entry_marks *marks)
{
	if (cursor_le32(c) != ENTRY_SIGNATURE)
		return false;
	cursor_take(c, 4); /* versions */
	entry->flags = cursor_le16(c);
	entry->method = cursor_le16(c);
	cursor_take(c, 4); /* time and date */
	entry->crc = cursor_le32(c);
	entry->packed = cursor_le32(c);
	entry->size = cursor_le32(c);
	size_t name = cursor_le16(c), extra = cursor_le16(c), comment = cursor_le16(c);
	marks->disk = cursor_le16(c);
	cursor_take(c, 2); /* whether it is text */
	marks->attributes = cursor_le32(c);
	entry->header = cursor_le32(c);
	entry->payload = ZIP_NOT_LOCATED;
	entry->name = cursor_slice(c, name);
	struct slice fields = cursor_slice(c, extra);
	cursor_take(c, comment);
	return cursor_ok(c) &&
	       read_zip64_extra(fields, &entry->size, &entry->packed, &entry->header);
}

/* Bytes that an entry takes at the least: its header, its name and what is stored. */
static uint64_t entry_extent(const struct zip_entry *entry)
{
	return size_add(size_add(LOCAL_SIZE, entry->name.n), entry->packed);
}

static int check_entry(
	const struct zip *z, const struct zip_entry *entry, struct findings *sink, struct error *e)
{
	if (range_inside(entry->header, entry_extent(entry), z->directory)) {
		if (entry->method != METHOD_STORED || entry->packed == entry->size)
			return RP_OK;
		struct finding *f = finding_add(sink, FINDING_I104,
			"stored without compression, but %llu bytes are said to be %llu",
			(unsigned long long)entry->packed, (unsigned long long)entry->size);
		finding_place(sink, f, z->file, entry->name, entry->header);
		return fail(e, RP_E_FORMAT, entry->header,
			"an entry of the zip archive has two sizes, %llu and %llu",
			(unsigned long long)entry->packed, (unsigned long long)entry->size);
	}
	bool beyond = !range_inside(entry->header, entry_extent(entry), z->source->size);
	struct finding *f = finding_add(sink, beyond ? FINDING_I102 : FINDING_I104,
		"%llu bytes from offset %llu on lie outside the %s",
		(unsigned long long)entry->packed, (unsigned long long)entry->header,
		beyond ? "file" : "archive's data");
	finding_place(sink, f, z->file, entry->name, entry->header);
	return fail(e, RP_E_FORMAT, entry->header,
		"an entry of the zip archive (%llu bytes from offset %llu on) lies outside it",
		(unsigned long long)entry->packed, (unsigned long long)entry->header);
}

/*
 * Marks that no writer of checkpoints makes. PyTorch's reader (miniz) refuses the archive for them,
 * except for the mark of a folder: it then leaves the tensor's memory as it found it, and says
 * nothing.
 */
static void check_marks(const struct zip *z, const struct zip_entry *entry,
	const struct entry_marks *marks, uint64_t at, struct findings *sink)
{
	const char *what = NULL;

	if (entry->flags & FLAGS_UNREADABLE)
		what = "the zip directory marks it as encrypted or as a patch, which no loader reads";
	else if (marks->disk != 0)
		what = "the zip directory has it on another volume of the archive, which loaders refuse";
	else if (marks->attributes & ATTRIBUTE_FOLDER && entry->size > 0)
		what = "the zip directory marks it as a folder: torch.load would leave its memory unfilled";
	if (what)
		finding_place(sink, finding_add(sink, FINDING_I104, "%s", what), z->file,
			entry->name, at);
}

static int read_entries(
	struct zip *z, const uint8_t *raw, uint64_t entries, struct findings *sink, struct error *e)
{
	struct cursor c = cursor_over(raw, (size_t)z->directory_size);

	for (uint64_t i = 0; i < entries; i++) {
		struct zip_entry *entry = &z->entries[i];
		struct entry_marks marks = {0};
		uint64_t at = z->directory + c.pos;
		if (!read_entry(&c, entry, &marks))
			return malformed(z, sink, e, at,
				"entry %llu of %llu in the zip directory cannot be read",
				(unsigned long long)i + 1, (unsigned long long)entries);
		z->count++;
		check_marks(z, entry, &marks, at, sink);
		int status = check_entry(z, entry, sink, e);
		if (status < 0)
			return status;
		struct slice *known = names_add(&z->names, &entry->name);
		if (!known)
			return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory");
		if (known != &entry->name) {
			struct finding *f = finding_add(sink, FINDING_I104,
				"the zip directory has two entries of this name");
			finding_place(sink, f, z->file, entry->name, at);
		}
	}
	if (cursor_left(&c) > 0) {
		struct finding *f = finding_add(sink, FINDING_I104,
			"%zu bytes of the zip directory belong to no entry", cursor_left(&c));
		finding_place(sink, f, z->file, (struct slice){0}, z->directory + c.pos);
	}
	return RP_OK;
}

static int by_header(const void *pa, const void *pb)
{
	const struct zip_entry *a = *(struct zip_entry *const *)pa,
			       *b = *(struct zip_entry *const *)pb;

	if (a->header != b->header)
		return a->header < b->header ? -1 : 1;
	return a < b ? -1 : a > b;
}

/*
 * `b` starts behind `*widest`, the entry that reached furthest so far, or they overlap. Keeping the
 * widest instead of the one before finds entries that lie inside a large one.
 */
static void check_pair(const struct zip *z, const struct zip_entry **widest,
	const struct zip_entry *b, struct findings *sink)
{
	const struct zip_entry *a = *widest;
	uint64_t end = a->header + entry_extent(a);

	if (end > b->header) {
		const char *other = findings_escaped(sink, a->name);
		struct finding *f =
			finding_add(sink, FINDING_I104, "its bytes overlap those of %s", other);
		finding_place(sink, f, z->file, b->name, b->header);
	}
	if (b->header + entry_extent(b) > end)
		*widest = b;
}

/* Two entries must not share bytes. Writers list them in file order, so that sorting is for the
 * rest. */
static int check_overlaps(const struct zip *z, struct findings *sink, struct error *e)
{
	const struct zip_entry *widest = z->entries;
	bool sorted = true;

	for (size_t i = 1; i < z->count && sorted; i++)
		sorted = z->entries[i - 1].header <= z->entries[i].header;
	if (sorted) {
		for (size_t i = 1; i < z->count; i++)
			check_pair(z, &widest, &z->entries[i], sink);
		return RP_OK;
	}
	struct zip_entry **order = calloc(z->count, sizeof(struct zip_entry *));
	if (!order)
		return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory");
	for (size_t i = 0; i < z->count; i++)
		order[i] = &z->entries[i];
	qsort(order, z->count, sizeof *order, by_header);
	widest = order[0];
	for (size_t i = 1; i < z->count; i++)
		check_pair(z, &widest, order[i], sink);
	free(order);
	return RP_OK;
}

int zip_read(struct zip *z, const struct source *s, struct arena *a, const struct limits *limits,
	const char *file, struct findings *sink, struct error *e)
{
	struct end_record end = {0};

	*z = (struct zip){.source = s, .file = file, .arena = a};
	names_init(&z->names);
	int status = find_end(z, &end, sink, e);
	if (status == RP_OK)
		status = read_end64(z, &end, sink, e);
	if (status == RP_OK)
		status = check_directory_place(z, &end, sink, e);
	if (status < 0)
		return status;
	z->directory = end.directory;
	z->directory_size = end.directory_size;
	if (end.directory_size > limits->directory_bytes)
		return fail(e, RP_E_LIMIT, end.directory,
			"the zip directory has %llu bytes; the limit directory-bytes is %llu",
			(unsigned long long)end.directory_size,
			(unsigned long long)limits->directory_bytes);
	if (end.entries > end.directory_size / ENTRY_SIZE)
		return malformed(z, sink, e, end.offset,
			"%llu entries do not fit a zip directory of %llu bytes",
			(unsigned long long)end.entries, (unsigned long long)end.directory_size);
	if (end.entries > limits->entries)
		return fail(e, RP_E_LIMIT, end.offset,
			"the zip archive has %llu entries; the limit entries is %llu",
			(unsigned long long)end.entries, (unsigned long long)limits->entries);
	uint8_t *raw = arena_alloc(a, (size_t)end.directory_size);
	z->entries = arena_array(a, (size_t)end.entries, sizeof *z->entries);
	if (!raw || !z->entries)
		return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for the zip directory");
	status = source_read(s, end.directory, raw, (size_t)end.directory_size, e);
	if (status == RP_OK)
		status = read_entries(z, raw, end.entries, sink, e);
	if (status == RP_OK)
		status = check_overlaps(z, sink, e);
	return status;
}

void zip_release(struct zip *z)
{
	names_release(&z->names);
}

struct zip_entry *zip_find(const struct zip *z, struct slice name)
{
	return (struct zip_entry *)(void *)names_find(&z->names, name);
}

/* Whether the `n` bytes at `offset` are `name`: in pieces, since names may have 64 KiB. */
static int compare_name(
	const struct source *s, uint64_t offset, struct slice name, bool *same, struct error *e)
{
	char piece[512];

	*same = true;
	for (size_t at = 0; at < name.n && *same; at += sizeof piece) {
		size_t n = name.n - at < sizeof piece ? name.n - at : sizeof piece;
		int status = source_read(s, offset + at, piece, n, e);
		if (status < 0)
			return status;
		*same = memcmp(piece, name.p + at, n) == 0;
	}
	return RP_OK;
}

int zip_payload(const struct zip *z, const struct zip_entry *entry, struct findings *sink,
	uint64_t *payload, struct error *e)
{
	/* One read for header and name, where the name has an ordinary length. */
	uint8_t raw[LOCAL_SIZE + 256];
	size_t wanted = LOCAL_SIZE + entry->name.n, got;
	const char *quarrel = NULL;

	int status = source_read_some(
		z->source, entry->header, raw, wanted < sizeof raw ? wanted : sizeof raw, &got, e);
	if (status < 0)
		return status;
	if (got < LOCAL_SIZE || load_le32(raw) != LOCAL_SIGNATURE)
		return malformed(z, sink, e, entry->header,
			"there is no zip entry at offset %llu, where the directory has one",
			(unsigned long long)entry->header);
	unsigned flags = load_le16(raw + 6), method = load_le16(raw + 8);
	uint32_t crc = load_le32(raw + 14), packed = load_le32(raw + 18),
		 size = load_le32(raw + 22);
	size_t name = load_le16(raw + 26), extra = load_le16(raw + 28);
	bool same = name == entry->name.n;
	if (same && wanted <= sizeof raw)
		same = got >= wanted && memcmp(raw + LOCAL_SIZE, entry->name.p, name) == 0;
	else if (same)
		status = compare_name(z->source, entry->header + LOCAL_SIZE, entry->name, &same, e);
	if (status < 0)
		return status;
	if (!same)
		quarrel = "name";
	else if (method != entry->method)
		quarrel = "compression";
	else if (!(flags & FLAG_DESCRIPTOR) && ((packed != UINT32_MAX && packed != entry->packed) ||
						       (size != UINT32_MAX && size != entry->size)))
		quarrel = "size";
	else if (!(flags & FLAG_DESCRIPTOR) && crc != entry->crc)
		quarrel = "checksum";
	else if (flags != entry->flags)
		quarrel = "flags";
	if (quarrel && sink) {
		struct finding *f = finding_add(sink, FINDING_I104,
			"the zip directory and the entry itself disagree about its %s", quarrel);
		finding_place(sink, f, z->file, entry->name, entry->header);
	}
	*payload = entry->header + LOCAL_SIZE + name + extra;
	if (!range_inside(*payload, entry->packed, z->directory))
		return malformed(z, sink, e, entry->header,
			"the zip entry at offset %llu does not end before the directory",
			(unsigned long long)entry->header);
	return RP_OK;
}

int zip_locate(const struct zip *z, struct zip_entry *entry, struct findings *sink, struct error *e)
{
	if (entry->payload != ZIP_NOT_LOCATED)
		return RP_OK;
	uint64_t payload;
	int status = zip_payload(z, entry, sink, &payload, e);
	if (status == RP_OK)
		entry->payload = payload;
	return status;
}

static int inflate_entry(const struct zip *z, const struct zip_entry *entry, const uint8_t *packed,
	uint8_t *out, struct findings *sink, struct error *e)
{
	struct libdeflate_decompressor *d = libdeflate_alloc_decompressor();
	size_t written = 0;

	if (!d)
		return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory");
	enum libdeflate_result result = libdeflate_deflate_decompress(
		d, packed, (size_t)entry->packed, out, (size_t)entry->size, &written);
	libdeflate_free_decompressor(d);
	if (result != LIBDEFLATE_SUCCESS || written != entry->size)
		return malformed(z, sink, e, entry->payload,
			"the compressed entry at offset %llu does not unpack to %llu bytes",
			(unsigned long long)entry->payload, (unsigned long long)entry->size);
	return RP_OK;
}

int zip_load(const struct zip *z, struct zip_entry *entry, uint64_t max, struct findings *sink,
	struct slice *out, struct error *e)
{
	*out = (struct slice){0};
	/* First: where the entry itself says otherwise, that is the finding. */
	int status = zip_locate(z, entry, sink, e);
	if (status < 0)
		return status;
	if (entry->flags & FLAG_ENCRYPTED)
		return fail(e, RP_E_UNSUPPORTED, entry->header, "an encrypted zip archive");
	if (entry->method != METHOD_STORED && entry->method != METHOD_DEFLATE)
		return fail(e, RP_E_UNSUPPORTED, entry->header, "zip compression method %u",
			(unsigned)entry->method);
	if (entry->size > max || entry->packed > max)
		return fail(e, RP_E_LIMIT, entry->header,
			"%llu bytes to read at once; the limit is %llu",
			(unsigned long long)entry->size, (unsigned long long)max);
	uint8_t *bytes = arena_alloc(z->arena, (size_t)entry->size);
	if (!bytes)
		return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for %llu bytes",
			(unsigned long long)entry->size);
	if (entry->method == METHOD_STORED) {
		status = source_read(z->source, entry->payload, bytes, (size_t)entry->size, e);
	} else {
		uint8_t *packed = malloc(entry->packed ? (size_t)entry->packed : 1);
		if (!packed)
			return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory");
		status = source_read(z->source, entry->payload, packed, (size_t)entry->packed, e);
		if (status == RP_OK)
			status = inflate_entry(z, entry, packed, bytes, sink, e);
		free(packed);
	}
	if (status < 0)
		return status;
	*out = (struct slice){(const char *)bytes, (size_t)entry->size};
	uint32_t crc = libdeflate_crc32(0, bytes, (size_t)entry->size);
	if (zip_crc_known(entry) && crc != entry->crc && sink) {
		const char *observed = findings_text(sink, "%08x", crc);
		const char *expected = findings_text(sink, "%08x", entry->crc);
		struct finding *f = finding_add(sink, FINDING_I103,
			"its bytes have the CRC-32 %s, the archive promises %s", observed,
			expected);
		finding_place(sink, f, z->file, entry->name, entry->payload);
		f->observed = quantity_text(observed);
		f->expected = quantity_text(expected);
		f->unit = "CRC-32";
	}
	return RP_OK;
}

int zip_first_entry(
	const struct source *s, struct arena *a, struct zip_entry *entry, struct error *e)
{
	uint8_t raw[LOCAL_SIZE];

	*entry = (struct zip_entry){.payload = ZIP_NOT_LOCATED};
	int status = source_read(s, 0, raw, sizeof raw, e);
	if (status < 0)
		return status;
	if (load_le32(raw) != LOCAL_SIGNATURE)
		return fail(e, RP_E_FORMAT, 0, "there is no zip entry at the start");
	entry->flags = load_le16(raw + 6);
	entry->method = load_le16(raw + 8);
	entry->crc = load_le32(raw + 14);
	size_t name = load_le16(raw + 26);
	char *text = arena_alloc(a, name);
	if (!text)
		return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory");
	status = source_read(s, LOCAL_SIZE, text, name, e);
	if (status < 0)
		return status;
	entry->name = (struct slice){text, name};
	entry->payload = LOCAL_SIZE + name + load_le16(raw + 28);
	/* Sizes that do not fit or follow the payload are left unknown. */
	if (!(entry->flags & FLAG_DESCRIPTOR) && load_le32(raw + 18) != UINT32_MAX) {
		entry->packed = load_le32(raw + 18);
		entry->size = load_le32(raw + 22);
	}
	return RP_OK;
}
