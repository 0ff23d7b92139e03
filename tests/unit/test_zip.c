/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "container/zip.h"

#include <check.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cursor.h"
#include "base/size.h"
#include "support/bytes.h"

#define SMALL "tests/unit/data/torch/small.pt"
#define DEFLATED "tests/unit/data/torch/deflated.pt"

Suite *suite_zip(void);

/* What every test needs; torn down after it. */
static struct arena arena;
static struct limits limits;
static struct findings sink;
static struct error error;
static struct source source;
static struct zip zip;
static struct bytes file;

static void setup(void)
{
	arena_init(&arena, (size_t)1 << 30);
	limits = limits_default();
	findings_init(&sink);
	error = ERROR_INIT;
	zip = (struct zip){0};
	file = (struct bytes){0};
}

static void teardown(void)
{
	zip_release(&zip);
	findings_release(&sink);
	arena_release(&arena);
	bytes_release(&file);
}

static int read_file(void)
{
	source_from_memory(&source, file.p, file.n, "test");
	return zip_read(&zip, &source, &arena, &limits, "test.pt", &sink, &error);
}

static void again(void)
{
	struct bytes kept = file;

	file = (struct bytes){0};
	teardown();
	setup();
	file = kept;
}

/* A finding of `code` whose message has `text` in it. */
static bool found(enum finding_code code, const char *text)
{
	for (size_t i = 0; i < sink.list.count; i++)
		if (sink.list.items[i].code == code && strstr(sink.list.items[i].message, text))
			return true;
	return false;
}

static struct zip_entry *entry_named(const char *name)
{
	struct zip_entry *entry = zip_find(&zip, slice_of(name));

	ck_assert_msg(entry != NULL, "no entry %s", name);
	return entry;
}

START_TEST(reads_what_torch_wrote)
{
	struct slice bytes;

	file = bytes_of_file(SMALL);
	ck_assert_int_eq(read_file(), RP_OK);
	ck_assert_uint_eq(sink.list.count, 0);
	ck_assert_uint_eq(zip.count, 8);
	ck_assert(zip.zip64);
	ck_assert(slice_is(zip.entries[0].name, "small/data.pkl"));
	for (size_t i = 0; i < zip.count; i++) {
		ck_assert_int_eq(zip_locate(&zip, &zip.entries[i], &sink, &error), RP_OK);
		ck_assert_uint_eq(zip.entries[i].payload % 64, 0);
		ck_assert(zip_crc_known(&zip.entries[i]));
		ck_assert_int_eq(
			zip_load(&zip, &zip.entries[i], 65536, &sink, &bytes, &error), RP_OK);
		ck_assert_uint_eq(bytes.n, zip.entries[i].size);
	}
	ck_assert_uint_eq(sink.list.count, 0);
	ck_assert_int_eq(
		zip_load(&zip, entry_named("small/byteorder"), 6, &sink, &bytes, &error), RP_OK);
	ck_assert(slice_is(bytes, "little"));
	ck_assert_ptr_null(zip_find(&zip, SLICE("small/nothing")));
}
END_TEST

START_TEST(unpacks_deflated_entries)
{
	struct slice bytes;

	file = bytes_of_file(DEFLATED);
	ck_assert_int_eq(read_file(), RP_OK);
	ck_assert_uint_eq(entry_named("small/data.pkl")->method, 8);
	ck_assert_int_eq(
		zip_load(&zip, entry_named("small/data.pkl"), 65536, &sink, &bytes, &error), RP_OK);
	struct slice unpacked = bytes;
	again();
	struct bytes packed = file;
	file = bytes_of_file(SMALL);
	bytes_release(&packed);
	ck_assert_int_eq(read_file(), RP_OK);
	ck_assert_int_eq(
		zip_load(&zip, entry_named("small/data.pkl"), 65536, &sink, &bytes, &error), RP_OK);
	ck_assert_uint_eq(bytes.n, unpacked.n);
}
END_TEST

START_TEST(damaged_compression_is_a_finding_not_a_crash)
{
	struct slice bytes;

	file = bytes_of_file(DEFLATED);
	ck_assert_int_eq(read_file(), RP_OK);
	struct zip_entry *entry = entry_named("small/data.pkl");
	ck_assert_int_eq(zip_locate(&zip, entry, &sink, &error), RP_OK);
	for (uint64_t at = 0; at < entry->packed; at++) {
		struct error e = ERROR_INIT;
		size_t before = sink.of_code[FINDING_I103] + sink.of_code[FINDING_I104];
		file.p[entry->payload + at] ^= 0x55;
		zip_load(&zip, entry, 65536, &sink, &bytes, &e);
		ck_assert_uint_gt(sink.of_code[FINDING_I103] + sink.of_code[FINDING_I104], before);
		file.p[entry->payload + at] ^= 0x55;
	}
}
END_TEST

START_TEST(a_cut_file_is_truncated_wherever_it_is_cut)
{
	file = bytes_of_file(SMALL);
	size_t whole = file.n;
	for (size_t n = 0; n < whole; n++) {
		again();
		file.n = n;
		ck_assert_int_eq(read_file(), RP_E_FORMAT);
		ck_assert(zip.truncated);
		ck_assert_uint_eq(sink.list.count, 0);
	}
}
END_TEST

START_TEST(lost_writes_leave_zeros_that_are_counted)
{
	file = bytes_of_file(SMALL);
	memset(file.p + 1000, 0, file.n - 1000);
	ck_assert_int_eq(read_file(), RP_E_FORMAT);
	ck_assert(zip.truncated);
	ck_assert_uint_ge(zip.zeros, file.n - 1000);
}
END_TEST

START_TEST(every_damaged_byte_of_the_directory_stays_inside_the_file)
{
	static const uint8_t values[] = {0x00, 0x01, 0x7f, 0x80, 0xff};

	file = bytes_of_file(SMALL);
	ck_assert_int_eq(read_file(), RP_OK);
	uint64_t directory = zip.directory;
	for (size_t at = (size_t)directory; at < file.n; at++)
		for (size_t k = 0; k < sizeof values; k++) {
			uint8_t kept = file.p[at];
			again();
			file.p[at] = values[k];
			if (read_file() == RP_OK)
				for (size_t i = 0; i < zip.count; i++) {
					struct error e = ERROR_INIT;
					struct slice bytes;
					zip_load(&zip, &zip.entries[i], 65536, &sink, &bytes, &e);
					ck_assert(range_inside(zip.entries[i].header,
						zip.entries[i].packed, file.n));
				}
			else
				ck_assert(zip.truncated || sink.list.count > 0 ||
					  error.status == RP_E_UNSUPPORTED);
			file.p[at] = kept;
		}
}
END_TEST

/* Offset in the directory of the entry called `name`. */
static size_t directory_entry(const char *name)
{
	/* The local header has the name too; the directory comes second. */
	size_t at = bytes_find(&file, name, strlen(name), 1);

	ck_assert_uint_ne(at, SIZE_MAX);
	return at - 46;
}

START_TEST(two_entries_of_one_name_are_reported)
{
	file = bytes_of_file(SMALL);
	size_t at = directory_entry("small/data/1");
	file.p[at + 46 + 11] = '0';
	ck_assert_int_eq(read_file(), RP_OK);
	ck_assert(found(FINDING_I104, "two entries of this name"));
	ck_assert_str_eq(sink.list.items[0].place.path, "small/data/0");
	/* The first one is found, and the second quarrels with its own header. */
	ck_assert_uint_eq(entry_named("small/data/0")->size, 32);
	again();
	ck_assert_int_eq(read_file(), RP_OK);
	for (size_t i = 0; i < zip.count; i++)
		ck_assert_int_eq(zip_locate(&zip, &zip.entries[i], &sink, &error), RP_OK);
	ck_assert(found(FINDING_I104, "disagree about its name"));
}
END_TEST

START_TEST(overlapping_entries_are_reported)
{
	file = bytes_of_file(SMALL);
	size_t first = directory_entry("small/data/0"), second = directory_entry("small/data/1");
	bytes_set_le(&file, second + 42, load_le32(file.p + first + 42) + 8, 4);
	ck_assert_int_eq(read_file(), RP_OK);
	ck_assert(found(FINDING_I104, "overlap those of small/data/0"));
}
END_TEST

START_TEST(an_entry_inside_a_large_one_is_reported_past_its_neighbour)
{
	file = bytes_of_file(SMALL);
	/* data.pkl claims all that follows, so that each later entry lies inside it. */
	size_t at = directory_entry("small/data.pkl");
	bytes_set_le(&file, at + 20, 1000, 4);
	bytes_set_le(&file, at + 24, 1000, 4);
	ck_assert_int_eq(read_file(), RP_OK);
	ck_assert_uint_gt(sink.of_code[FINDING_I104], 3);
	for (size_t i = 0; i < sink.list.count; i++)
		ck_assert_ptr_nonnull(strstr(sink.list.items[i].message, "small/data.pkl"));
}
END_TEST

static size_t local_header(const char *name)
{
	return bytes_find(&file, name, strlen(name), 0) - 30;
}

START_TEST(a_local_header_that_disagrees_is_reported)
{
	static const struct {
		size_t offset, width;
		uint64_t value;
		const char *about;
	} cases[] = {
		{8, 2, 8, "its compression"}, {30, 1, 'S', "its name"}, {26, 2, 5, "its name"},
		{6, 2, 0x0800, "its size"}, /* without bit 3 the zeros count */
	};
	file = bytes_of_file(SMALL);
	size_t header = local_header("small/data/0");
	struct bytes kept = bytes_copy(&file);

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		again();
		memcpy(file.p, kept.p, kept.n);
		bytes_set_le(&file, header + cases[i].offset, cases[i].value, cases[i].width);
		ck_assert_int_eq(read_file(), RP_OK);
		zip_locate(&zip, entry_named("small/data/0"), &sink, &error);
		ck_assert_msg(found(FINDING_I104, cases[i].about), "%s", cases[i].about);
	}
	again();
	memcpy(file.p, kept.p, kept.n);
	file.p[header] = 'Q';
	ck_assert_int_eq(read_file(), RP_OK);
	ck_assert_int_eq(zip_locate(&zip, entry_named("small/data/0"), &sink, &error), RP_E_FORMAT);
	ck_assert(found(FINDING_I104, "there is no zip entry"));
	again();
	memcpy(file.p, kept.p, kept.n);
	bytes_set_le(&file, header + 28, 0xffff, 2);
	ck_assert_int_eq(read_file(), RP_OK);
	ck_assert_int_eq(zip_locate(&zip, entry_named("small/data/0"), &sink, &error), RP_E_FORMAT);
	bytes_release(&kept);
}
END_TEST

/* Each makes PyTorch's reader refuse the file, or fill a tensor with whatever was in memory. */
START_TEST(marks_of_the_directory_that_loaders_mind_are_reported)
{
	static const struct {
		size_t offset;
		uint8_t bit;
		const char *about;
	} cases[] = {
		{8, 0x01, "encrypted"},
		{8, 0x20, "as a patch"},
		{8, 0x40, "encrypted"},
		{9, 0x20, "encrypted"},
		{34, 0x01, "another volume"},
		{35, 0x80, "another volume"},
		{38, 0x10, "as a folder"},
	};
	file = bytes_of_file(SMALL);
	size_t at = directory_entry("small/data/0");

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		again();
		file.p[at + cases[i].offset] ^= cases[i].bit;
		ck_assert_int_eq(read_file(), RP_OK);
		ck_assert_uint_eq(sink.list.count, 1);
		ck_assert_msg(found(FINDING_I104, cases[i].about), "%s", cases[i].about);
		ck_assert_str_eq(sink.list.items[0].place.path, "small/data/0");
		file.p[at + cases[i].offset] ^= cases[i].bit;
	}
	/* No loader looks at these: time, versions, the other attributes. */
	again();
	file.p[at + 4] ^= 1;
	file.p[at + 12] ^= 1;
	file.p[at + 39] ^= 0xff;
	ck_assert_int_eq(read_file(), RP_OK);
	ck_assert_uint_eq(sink.list.count, 0);
}
END_TEST

START_TEST(end_records_of_several_volumes_are_reported)
{
	static const struct {
		const char *signature;
		size_t offset;
		const char *about;
	} cases[] = {
		{"PK\6\6", 4, "says that it has"},
		{"PK\6\6", 16, "several volumes"},
		{"PK\6\6", 20, "several volumes"},
		{"PK\6\6", 24, "several volumes"},
		{"PK\6\7", 4, "several volumes"},
		{"PK\6\7", 16, "several volumes"},
		{"PK\5\6", 8, "several volumes"},
	};
	file = bytes_of_file(SMALL);

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		again();
		size_t at = bytes_find(&file, cases[i].signature, 4, 0) + cases[i].offset;
		file.p[at] ^= 1;
		read_file();
		ck_assert_msg(found(FINDING_I104, cases[i].about), "case %zu", i);
		file.p[at] ^= 1;
	}
	again();
	ck_assert_int_eq(read_file(), RP_OK);
	ck_assert_uint_eq(sink.list.count, 0);
}
END_TEST

START_TEST(a_flipped_payload_bit_breaks_the_checksum)
{
	struct slice bytes;

	file = bytes_of_file(SMALL);
	ck_assert_int_eq(read_file(), RP_OK);
	struct zip_entry *entry = entry_named("small/data/0");
	ck_assert_int_eq(zip_locate(&zip, entry, &sink, &error), RP_OK);
	file.p[entry->payload + 5] ^= 4;
	ck_assert_int_eq(zip_load(&zip, entry, 65536, &sink, &bytes, &error), RP_OK);
	ck_assert(found(FINDING_I103, "CRC-32"));
	ck_assert_str_eq(sink.list.items[0].place.path, "small/data/0");
	ck_assert_uint_eq(sink.list.items[0].place.offset, entry->payload);
}
END_TEST

START_TEST(a_checksum_that_was_not_computed_is_not_checked)
{
	struct slice bytes;

	file = bytes_of_file("tests/unit/data/torch/nocrc.pt");
	ck_assert_int_eq(read_file(), RP_OK);
	struct zip_entry *entry = entry_named("nocrc/data/0");
	ck_assert(!zip_crc_known(entry));
	ck_assert_int_eq(zip_load(&zip, entry, 65536, &sink, &bytes, &error), RP_OK);
	ck_assert_uint_eq(sink.list.count, 0);
}
END_TEST

START_TEST(claimed_counts_cost_nothing)
{
	file = bytes_of_file(SMALL);
	size_t end64 = bytes_find(&file, "PK\6\6", 4, 0), end = file.n - 22;
	bytes_set_le(&file, end64 + 32, (uint64_t)1 << 60, 8);
	bytes_set_le(&file, end + 10, 0xffff, 2);
	ck_assert_int_eq(read_file(), RP_E_FORMAT);
	ck_assert(found(FINDING_I104, "do not fit"));
	again();
	bytes_set_le(&file, end64 + 32, 8, 8);
	bytes_set_le(&file, end64 + 40, (uint64_t)1 << 62, 8);
	bytes_set_le(&file, end + 12, UINT32_MAX, 4);
	ck_assert_int_eq(read_file(), RP_E_FORMAT);
	ck_assert_uint_lt(arena.held, 65536);
}
END_TEST

START_TEST(limits_stop_large_directories)
{
	file = bytes_of_file(SMALL);
	limits.entries = 3;
	ck_assert_int_eq(read_file(), RP_E_LIMIT);
	again();
	limits.directory_bytes = 100;
	ck_assert_int_eq(read_file(), RP_E_LIMIT);
	again();
	ck_assert_int_eq(read_file(), RP_OK);
	struct slice bytes;
	ck_assert_int_eq(
		zip_load(&zip, entry_named("small/data/0"), 31, &sink, &bytes, &error), RP_E_LIMIT);
}
END_TEST

START_TEST(end_records_that_disagree_are_reported)
{
	file = bytes_of_file(SMALL);
	bytes_set_le(&file, file.n - 22 + 10, 7, 2);
	ck_assert_int_eq(read_file(), RP_OK);
	ck_assert_uint_eq(zip.count, 8);
	ck_assert(found(FINDING_I104, "two end records"));
}
END_TEST

START_TEST(bytes_behind_the_archive_are_a_warning)
{
	file = bytes_of_file(SMALL);
	bytes_add(&file, "appended", 8);
	ck_assert_int_eq(read_file(), RP_OK);
	ck_assert(found(FINDING_I104, "8 bytes follow the end"));
	ck_assert_int_eq(sink.list.items[0].severity, SEVERITY_WARNING);
	again();
	/* A megabyte of zeros, as a copy by blocks leaves it. */
	file.n -= 8;
	uint8_t *zeros = calloc(1, 1 << 20);
	bytes_add(&file, zeros, 1 << 20);
	free(zeros);
	ck_assert_int_eq(read_file(), RP_OK);
	ck_assert(found(FINDING_I104, "1048576 bytes follow the end"));
}
END_TEST

START_TEST(a_comment_is_no_defect)
{
	file = bytes_of_file(SMALL);
	bytes_set_le(&file, file.n - 2, 5, 2);
	bytes_add(&file, "hello", 5);
	ck_assert_int_eq(read_file(), RP_OK);
	ck_assert_uint_eq(sink.list.count, 0);
}
END_TEST

START_TEST(bytes_in_front_of_the_archive_are_counted)
{
	file = bytes_of_file(SMALL);
	bytes_splice(&file, 0, 0, "0123456789", 10);
	ck_assert_int_eq(read_file(), RP_E_FORMAT);
	ck_assert(found(FINDING_I104, "10 bytes were put into the file"));
	again();
	bytes_splice(&file, 0, 110, NULL, 0);
	ck_assert_int_eq(read_file(), RP_E_FORMAT);
	ck_assert(found(FINDING_I104, "100 bytes are missing from the file"));
}
END_TEST

START_TEST(the_first_entry_of_a_cut_file_is_known)
{
	struct zip_entry first;

	file = bytes_of_file(SMALL);
	file.n = 300;
	source_from_memory(&source, file.p, file.n, "test");
	ck_assert_int_eq(zip_first_entry(&source, &arena, &first, &error), RP_OK);
	ck_assert(slice_is(first.name, "small/data.pkl"));
	ck_assert_uint_eq(first.payload, 64);
}
END_TEST

/* An archive with one stored entry of more than 4 GiB that begins beyond 4 GiB, in a sparse file.
 */
START_TEST(sizes_and_offsets_beyond_4_gib_come_from_the_zip64_field)
{
	const uint64_t begin = (uint64_t)5 << 30, size = ((uint64_t)5 << 30) + 1;
	const char name[] = "big/data/0";
	char path[] = "/tmp/reprise-zip64-XXXXXX";
	int fd = mkstemp(path);
	struct bytes b = {0};

	ck_assert_int_ge(fd, 0);
	unlink(path);
	bytes_add_le(&b, 0x04034b50, 4);
	bytes_add_le(&b, 45, 2);
	bytes_add_le(&b, 0, 2 + 2 + 4 + 4);
	bytes_add_le(&b, UINT32_MAX, 4);
	bytes_add_le(&b, UINT32_MAX, 4);
	bytes_add_le(&b, sizeof name - 1, 2);
	bytes_add_le(&b, 20, 2);
	bytes_add(&b, name, sizeof name - 1);
	bytes_add_le(&b, 1, 2);
	bytes_add_le(&b, 16, 2);
	bytes_add_le(&b, size, 8);
	bytes_add_le(&b, size, 8);
	ck_assert_int_eq(pwrite(fd, b.p, b.n, (off_t)begin), (ssize_t)b.n);
	uint64_t directory = begin + b.n + size;
	b.n = 0;
	bytes_add_le(&b, 0x02014b50, 4);
	bytes_add_le(&b, 45, 4);
	bytes_add_le(&b, 0, 2 + 2 + 4 + 4);
	bytes_add_le(&b, UINT32_MAX, 4);
	bytes_add_le(&b, UINT32_MAX, 4);
	bytes_add_le(&b, sizeof name - 1, 2);
	bytes_add_le(&b, 28, 2);
	bytes_add_le(&b, 0, 2 + 2 + 2 + 4);
	bytes_add_le(&b, UINT32_MAX, 4);
	bytes_add(&b, name, sizeof name - 1);
	bytes_add_le(&b, 1, 2);
	bytes_add_le(&b, 24, 2);
	bytes_add_le(&b, size, 8);
	bytes_add_le(&b, size, 8);
	bytes_add_le(&b, begin, 8);
	size_t length = b.n;
	bytes_add_le(&b, 0x06064b50, 4);
	bytes_add_le(&b, 44, 8);
	bytes_add_le(&b, 0, 2 + 2 + 4 + 4);
	bytes_add_le(&b, 1, 8);
	bytes_add_le(&b, 1, 8);
	bytes_add_le(&b, length, 8);
	bytes_add_le(&b, directory, 8);
	bytes_add_le(&b, 0x07064b50, 4);
	bytes_add_le(&b, 0, 4);
	bytes_add_le(&b, directory + length, 8);
	bytes_add_le(&b, 1, 4);
	bytes_add_le(&b, 0x06054b50, 4);
	bytes_add_le(&b, 0, 4);
	bytes_add_le(&b, 1, 2);
	bytes_add_le(&b, 1, 2);
	bytes_add_le(&b, length, 4);
	bytes_add_le(&b, UINT32_MAX, 4);
	bytes_add_le(&b, 0, 2);
	ck_assert_int_eq(pwrite(fd, b.p, b.n, (off_t)directory), (ssize_t)b.n);
	bytes_release(&b);

	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	ck_assert_int_eq(source_open(&source, AT_FDCWD, path, &error), RP_OK);
	ck_assert_int_eq(zip_read(&zip, &source, &arena, &limits, "big.pt", &sink, &error), RP_OK);
	ck_assert_uint_eq(zip.count, 1);
	ck_assert_uint_eq(zip.entries[0].size, size);
	ck_assert_uint_eq(zip.entries[0].header, begin);
	ck_assert_int_eq(zip_locate(&zip, &zip.entries[0], &sink, &error), RP_OK);
	ck_assert_uint_eq(zip.entries[0].payload, directory - size);
	ck_assert_uint_eq(sink.list.count, 0);
	source_close(&source);
	close(fd);
}
END_TEST

Suite *suite_zip(void)
{
	Suite *s = suite_create("zip");
	TCase *c = tcase_create("reading");

	tcase_add_checked_fixture(c, setup, teardown);
	tcase_add_test(c, reads_what_torch_wrote);
	tcase_add_test(c, unpacks_deflated_entries);
	tcase_add_test(c, a_checksum_that_was_not_computed_is_not_checked);
	tcase_add_test(c, a_comment_is_no_defect);
	tcase_add_test(c, sizes_and_offsets_beyond_4_gib_come_from_the_zip64_field);
	suite_add_tcase(s, c);
	c = tcase_create("damage");
	tcase_set_timeout(c, 60);
	tcase_add_checked_fixture(c, setup, teardown);
	tcase_add_test(c, damaged_compression_is_a_finding_not_a_crash);
	tcase_add_test(c, a_cut_file_is_truncated_wherever_it_is_cut);
	tcase_add_test(c, lost_writes_leave_zeros_that_are_counted);
	tcase_add_test(c, every_damaged_byte_of_the_directory_stays_inside_the_file);
	tcase_add_test(c, two_entries_of_one_name_are_reported);
	tcase_add_test(c, overlapping_entries_are_reported);
	tcase_add_test(c, an_entry_inside_a_large_one_is_reported_past_its_neighbour);
	tcase_add_test(c, a_local_header_that_disagrees_is_reported);
	tcase_add_test(c, marks_of_the_directory_that_loaders_mind_are_reported);
	tcase_add_test(c, end_records_of_several_volumes_are_reported);
	tcase_add_test(c, a_flipped_payload_bit_breaks_the_checksum);
	tcase_add_test(c, claimed_counts_cost_nothing);
	tcase_add_test(c, limits_stop_large_directories);
	tcase_add_test(c, end_records_that_disagree_are_reported);
	tcase_add_test(c, bytes_behind_the_archive_are_a_warning);
	tcase_add_test(c, bytes_in_front_of_the_archive_are_counted);
	tcase_add_test(c, the_first_entry_of_a_cut_file_is_known);
	suite_add_tcase(s, c);
	return s;
}
