/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "h5/h5_columns.h"

#include <stdio.h>
#include <string.h>

#include "base/size.h"
#include "h5/h5_driver.h"

#define FILE_NAME "/file" /* never opened; absolute, so that HDF5 does not ask where it stands */
#define LINKS_COMPACT                                                                              \
	1000            /* a group's list of columns stands in its header: heaps take kilobytes */
#define DEFLATE_LEVEL 6 /* noted in the file; what deflates chunks is not HDF5 */

/* HDF5 tells little of why; where the system refused, that is the reason. */
static enum frame_kind failed(struct h5_session *s, const char *why)
{
	int error = h5_driver_error();
	const char *words = error ? strerrordesc_np(error) : NULL;

	snprintf(s->fail, sizeof s->fail, "%s%s%s", why, words ? ": " : "", words ? words : "");
	return FRAME_FAILED;
}

static hid_t memory_type(uint32_t type)
{
	switch ((enum column_type)type) {
	case COLUMN_U8:
		return H5T_STD_U8LE;
	case COLUMN_U16:
		return H5T_STD_U16LE;
	case COLUMN_U32:
		return H5T_STD_U32LE;
	case COLUMN_U64:
		return H5T_STD_U64LE;
	case COLUMN_I32:
		return H5T_STD_I32LE;
	case COLUMN_I64:
		return H5T_STD_I64LE;
	case COLUMN_F64:
		return H5T_IEEE_F64LE;
	case COLUMN_F32:
		return H5T_IEEE_F32LE;
	case COLUMN_TEXT:
	case COLUMN_TYPE_COUNT:
		break;
	}
	return -1;
}

/* Whether a stored type is the wanted one but for the order of its bytes. */
static bool same_type(hid_t stored, uint32_t type)
{
	hid_t wanted = memory_type(type);
	H5T_class_t class = H5Tget_class(stored);

	if (wanted < 0 || class != H5Tget_class(wanted) ||
		H5Tget_size(stored) != H5Tget_size(wanted))
		return false;
	return class == H5T_FLOAT || H5Tget_sign(stored) == H5Tget_sign(wanted);
}

/* Names of lower case letters, digits and underscores with slashes between them: "/rng/streams". */
static bool take_path(struct cursor *body, char *path, size_t size)
{
	struct slice text = cursor_slice(body, cursor_left(body));

	if (!cursor_ok(body) || text.n < 2 || text.n >= size || text.p[0] != '/')
		return false;
	for (size_t i = 1; i < text.n; i++) {
		char c = text.p[i];
		bool name = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
		if (!name && (c != '/' || text.p[i - 1] == '/' || i + 1 == text.n))
			return false;
	}
	memcpy(path, text.p, text.n);
	path[text.n] = '\0';
	return true;
}

static enum frame_kind answer_open(struct h5_session *s, struct cursor *body)
{
	cursor_le64(body);
	if (!cursor_ok(body) || s->file >= 0 || s->writing)
		return failed(s, "it was asked to open a file that it cannot");
	s->file = H5Fopen(FILE_NAME, H5F_ACC_RDONLY, s->access);
	return s->file < 0 ? failed(s, "HDF5 does not open it") : FRAME_DONE;
}

/* 1 there, 0 not, -1 HDF5 fails. Each group on the way is asked for, as HDF5 wants it. */
static int path_exists(const struct h5_session *s, char *path)
{
	for (char *slash = strchr(path + 1, '/');; slash = strchr(slash + 1, '/')) {
		if (slash)
			*slash = '\0';
		htri_t there = H5Lexists(s->file, path, H5P_DEFAULT);
		if (slash)
			*slash = '/';
		if (there <= 0 || !slash)
			return there;
	}
}

/* Plain data, in this file, through the two filters that we write: nothing else is decoded. */
static bool plainly_stored(hid_t column)
{
	hid_t made = H5Dget_create_plist(column);
	bool plain = made >= 0 && H5Pget_external_count(made) == 0;

	if (plain) {
		H5D_layout_t layout = H5Pget_layout(made);
		plain = layout == H5D_COMPACT || layout == H5D_CONTIGUOUS || layout == H5D_CHUNKED;
	}
	int filters = plain ? H5Pget_nfilters(made) : -1;
	for (int i = 0; i < filters; i++) {
		unsigned flags;
		size_t values = 0;
		H5Z_filter_t f =
			H5Pget_filter2(made, (unsigned)i, &flags, &values, NULL, 0, NULL, NULL);
		plain = plain && (f == H5Z_FILTER_SHUFFLE || f == H5Z_FILTER_DEFLATE);
	}
	if (made >= 0)
		H5Pclose(made);
	return plain && filters >= 0;
}

/* The rows of a column that is as wide as was asked for; false where it is not. */
static bool shape_of(hid_t column, uint32_t width, uint64_t *rows)
{
	hid_t space = H5Dget_space(column);
	hsize_t dims[2] = {0, 1};
	int rank = space < 0 ? -1 : H5Sget_simple_extent_ndims(space);
	bool fits = rank == (width == 1 ? 1 : 2) &&
		    H5Sget_simple_extent_dims(space, dims, NULL) == rank && dims[1] == width;

	if (space >= 0)
		H5Sclose(space);
	*rows = dims[0];
	return fits;
}

static void close_column(struct h5_session *s)
{
	if (s->column >= 0)
		H5Dclose(s->column);
	s->column = -1;
}

static enum frame_kind answer_find(struct h5_session *s, struct cursor *body)
{
	char path[COLUMN_PATH_MAX + 1];
	uint32_t type = cursor_le32(body), width = cursor_le32(body);

	close_column(s);
	if (!take_path(body, path, sizeof path) || s->file < 0 || memory_type(type) < 0 ||
		width == 0 || width > COLUMN_WIDTH_MAX)
		return failed(s, "it was asked for a column that cannot be");
	int there = path_exists(s, path);
	if (there <= 0)
		return there < 0 ? failed(s, "HDF5 cannot look a column up") : FRAME_ABSENT;
	s->column = H5Dopen2(s->file, path, H5P_DEFAULT);
	if (s->column < 0)
		return failed(s, "HDF5 cannot open a column");
	hid_t stored = H5Dget_type(s->column);
	bool same = stored >= 0 && same_type(stored, type);
	if (stored >= 0)
		H5Tclose(stored);
	if (!same)
		return failed(s, "a column has another type than its format says");
	if (!shape_of(s->column, width, &s->rows))
		return failed(s, "a column has another shape than its format says");
	if (!plainly_stored(s->column))
		return failed(s, "a column is stored in a way that is not read");
	s->type = type;
	s->width = width;
	for (s->n = 0; s->n < 8; s->n++)
		s->buffer[s->n] = (uint8_t)(s->rows >> 8 * s->n);
	return FRAME_FOUND;
}

/* Read or write rows of the current column; `bytes` hold them packed. */
static bool transfer(struct h5_session *s, uint64_t first, uint64_t count, void *bytes, bool put)
{
	hsize_t start[2] = {first, 0}, extent[2] = {count, s->width};
	int rank = s->width == 1 ? 1 : 2;
	hid_t stored = H5Dget_space(s->column);
	hid_t held = H5Screate_simple(rank, extent, NULL);
	bool ok = stored >= 0 && held >= 0 &&
		  H5Sselect_hyperslab(stored, H5S_SELECT_SET, start, NULL, extent, NULL) >= 0;

	if (ok && put)
		ok = H5Dwrite(s->column, memory_type(s->type), held, stored, H5P_DEFAULT, bytes) >=
		     0;
	else if (ok)
		ok = H5Dread(s->column, memory_type(s->type), held, stored, H5P_DEFAULT, bytes) >=
		     0;
	if (stored >= 0)
		H5Sclose(stored);
	if (held >= 0)
		H5Sclose(held);
	return ok;
}

static uint64_t row_bytes(const struct h5_session *s)
{
	return (uint64_t)column_type_size(s->type) * s->width;
}

static enum frame_kind answer_rows(struct h5_session *s, struct cursor *body)
{
	uint64_t first = cursor_le64(body);
	uint32_t count = cursor_le32(body);

	if (!cursor_ok(body) || s->column < 0 || count == 0 ||
		!range_inside(first, count, s->rows) || count > FRAME_ROWS_MAX / row_bytes(s))
		return failed(s, "it was asked for rows that are not there");
	if (!transfer(s, first, count, s->buffer, false))
		return failed(s, "HDF5 cannot read a column");
	s->n = (size_t)(count * row_bytes(s));
	return FRAME_DATA;
}

static bool take_name(struct cursor *body, size_t n, char *name, size_t size)
{
	struct slice text = cursor_slice(body, n);

	if (!cursor_ok(body) || text.n == 0 || text.n >= size)
		return false;
	for (size_t i = 0; i < text.n; i++)
		if ((text.p[i] < 'a' || text.p[i] > 'z') && text.p[i] != '_' &&
			(text.p[i] < '0' || text.p[i] > '9'))
			return false;
	memcpy(name, text.p, text.n);
	name[text.n] = '\0';
	return true;
}

/* Read an attribute that is a text of fixed length, or so many numbers. */
static enum frame_kind read_attribute(
	struct h5_session *s, hid_t attribute, uint32_t type, uint32_t count)
{
	hid_t stored = H5Aget_type(attribute), space = H5Aget_space(attribute);
	hssize_t values = space < 0 ? -1 : H5Sget_simple_extent_npoints(space);
	size_t size = stored < 0 ? 0 : H5Tget_size(stored);
	enum frame_kind answer = failed(s, "an attribute has another type than its format says");

	if (type == COLUMN_TEXT) {
		if (stored >= 0 && values == 1 && H5Tget_class(stored) == H5T_STRING &&
			H5Tis_variable_str(stored) == 0 && size > 0 && size <= count &&
			H5Aread(attribute, stored, s->buffer) >= 0) {
			s->n = size;
			answer = FRAME_DATA;
		}
	} else if (stored >= 0 && same_type(stored, type) && values == (hssize_t)count &&
		   H5Aread(attribute, memory_type(type), s->buffer) >= 0) {
		s->n = (size_t)count * column_type_size(type);
		answer = FRAME_DATA;
	}
	if (stored >= 0)
		H5Tclose(stored);
	if (space >= 0)
		H5Sclose(space);
	return answer;
}

static enum frame_kind answer_get_attribute(struct h5_session *s, struct cursor *body)
{
	char name[COLUMN_PATH_MAX + 1];
	uint32_t type = cursor_le32(body), count = cursor_le32(body);

	if (!take_name(body, cursor_left(body), name, sizeof name) || s->file < 0 || count == 0 ||
		column_type_size(type) == 0 || count > FRAME_ROWS_MAX / column_type_size(type))
		return failed(s, "it was asked for an attribute that cannot be");
	htri_t there = H5Aexists(s->file, name);
	if (there <= 0)
		return there < 0 ? failed(s, "HDF5 cannot look an attribute up") : FRAME_ABSENT;
	hid_t attribute = H5Aopen(s->file, name, H5P_DEFAULT);
	if (attribute < 0)
		return failed(s, "HDF5 cannot open an attribute");
	enum frame_kind answer = read_attribute(s, attribute, type, count);
	H5Aclose(attribute);
	return answer;
}

static enum frame_kind answer_create(struct h5_session *s)
{
	if (s->file >= 0 || !s->writing)
		return failed(s, "it was asked to make a file that it cannot");
	hid_t made = H5Pcreate(H5P_FILE_CREATE);
	bool ok = made >= 0 && H5Pset_userblock(made, USERBLOCK_BYTES) >= 0 &&
		  H5Pset_obj_track_times(made, false) >= 0 &&
		  H5Pset_link_phase_change(made, LINKS_COMPACT, 0) >= 0 &&
		  H5Pset_libver_bounds(s->access, H5F_LIBVER_V18, H5F_LIBVER_V18) >= 0;
	if (ok)
		s->file = H5Fcreate(FILE_NAME, H5F_ACC_TRUNC, made, s->access);
	if (made >= 0)
		H5Pclose(made);
	return s->file < 0 ? failed(s, "HDF5 cannot make the file") : FRAME_DONE;
}

static enum frame_kind answer_put_attribute(struct h5_session *s, struct cursor *body)
{
	char name[COLUMN_PATH_MAX + 1];
	uint32_t type = cursor_le32(body), count = cursor_le32(body), length = cursor_le32(body);
	bool text = type == COLUMN_TEXT;
	hsize_t values = text ? 1 : count;

	if (!take_name(body, length, name, sizeof name) || s->file < 0 || !s->writing ||
		count == 0 || cursor_left(body) != size_mul(count, column_type_size(type)))
		return failed(s, "it was given an attribute that cannot be");
	hid_t stored = text ? H5Tcopy(H5T_C_S1) : H5Tcopy(memory_type(type));
	hid_t space =
		text || count == 1 ? H5Screate(H5S_SCALAR) : H5Screate_simple(1, &values, NULL);
	bool ok = stored >= 0 && space >= 0;
	if (ok && text)
		ok = H5Tset_size(stored, count) >= 0 &&
		     H5Tset_strpad(stored, H5T_STR_NULLPAD) >= 0 &&
		     H5Tset_cset(stored, H5T_CSET_UTF8) >= 0;
	hid_t attribute =
		ok ? H5Acreate2(s->file, name, stored, space, H5P_DEFAULT, H5P_DEFAULT) : -1;
	ok = attribute >= 0 &&
	     H5Awrite(attribute, stored, cursor_take(body, cursor_left(body))) >= 0;
	if (attribute >= 0)
		H5Aclose(attribute);
	if (space >= 0)
		H5Sclose(space);
	if (stored >= 0)
		H5Tclose(stored);
	return ok ? FRAME_DONE : failed(s, "HDF5 cannot write an attribute");
}

/* The groups that a column lies in, without times. */
static bool make_groups(struct h5_session *s, char *path)
{
	hid_t made = H5Pcreate(H5P_GROUP_CREATE);
	bool ok = made >= 0 && H5Pset_obj_track_times(made, false) >= 0 &&
		  H5Pset_link_phase_change(made, LINKS_COMPACT, 0) >= 0;

	for (char *slash = strchr(path + 1, '/'); ok && slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (H5Lexists(s->file, path, H5P_DEFAULT) == 0) {
			hid_t group = H5Gcreate2(s->file, path, H5P_DEFAULT, made, H5P_DEFAULT);
			ok = group >= 0 && H5Gclose(group) >= 0;
		}
		*slash = '/';
	}
	if (made >= 0)
		H5Pclose(made);
	return ok;
}

/* How a column is stored: in one piece, or in chunks of so many rows through both filters. */
static hid_t column_properties(const struct h5_session *s)
{
	hsize_t chunk[2] = {s->chunk_rows, s->width};
	hid_t made = H5Pcreate(H5P_DATASET_CREATE);
	bool ok = made >= 0 && H5Pset_obj_track_times(made, false) >= 0;

	if (ok && s->chunk_rows)
		ok = H5Pset_chunk(made, s->width == 1 ? 1 : 2, chunk) >= 0 &&
		     H5Pset_shuffle(made) >= 0 && H5Pset_deflate(made, DEFLATE_LEVEL) >= 0;
	if (!ok && made >= 0)
		H5Pclose(made);
	return ok ? made : -1;
}

static enum frame_kind answer_put_column(struct h5_session *s, struct cursor *body)
{
	char path[COLUMN_PATH_MAX + 1];

	close_column(s);
	s->type = cursor_le32(body);
	s->width = cursor_le32(body);
	s->rows = cursor_le64(body);
	s->chunk_rows = cursor_le64(body);
	if (!take_path(body, path, sizeof path) || s->file < 0 || !s->writing ||
		memory_type(s->type) < 0 || s->width == 0 || s->width > COLUMN_WIDTH_MAX ||
		s->chunk_rows > s->rows)
		return failed(s, "it was given a column that cannot be");
	hsize_t extent[2] = {s->rows, s->width};
	hid_t made = column_properties(s);
	hid_t space = H5Screate_simple(s->width == 1 ? 1 : 2, extent, NULL);
	if (made >= 0 && space >= 0 && make_groups(s, path))
		s->column = H5Dcreate2(
			s->file, path, memory_type(s->type), space, H5P_DEFAULT, made, H5P_DEFAULT);
	if (space >= 0)
		H5Sclose(space);
	if (made >= 0)
		H5Pclose(made);
	return s->column < 0 ? failed(s, "HDF5 cannot make a column") : FRAME_DONE;
}

static enum frame_kind answer_put_rows(struct h5_session *s, struct cursor *body)
{
	uint64_t first = cursor_le64(body);
	uint32_t count = cursor_le32(body), left_out = cursor_le32(body);
	size_t n = cursor_left(body);
	hsize_t start[2] = {first, 0};
	bool ok;

	if (!cursor_ok(body) || s->column < 0 || !s->writing ||
		!range_inside(first, count, s->rows) || n == 0)
		return failed(s, "it was given rows that have no place");
	if (s->chunk_rows) {
		ok = H5Dwrite_chunk(
			     s->column, H5P_DEFAULT, left_out, start, n, cursor_take(body, n)) >= 0;
	} else if (n == count * row_bytes(s) && n <= FRAME_BODY_MAX) {
		memcpy(s->buffer, cursor_take(body, n), n);
		ok = transfer(s, first, count, s->buffer, true);
	} else {
		return failed(s, "it was given fewer or more rows than it was told");
	}
	return ok ? FRAME_DONE : failed(s, "HDF5 cannot write a column");
}

static enum frame_kind answer_finish(struct h5_session *s)
{
	close_column(s);
	bool ok = s->file >= 0 && H5Fclose(s->file) >= 0;

	s->file = -1;
	return ok ? FRAME_DONE : failed(s, "HDF5 cannot finish the file");
}

enum frame_kind h5_answer(struct h5_session *s, uint32_t kind, struct cursor *body)
{
	s->n = 0;
	switch (kind) {
	case FRAME_OPEN:
		return answer_open(s, body);
	case FRAME_GET_ATTRIBUTE:
		return answer_get_attribute(s, body);
	case FRAME_FIND:
		return answer_find(s, body);
	case FRAME_ROWS:
		return answer_rows(s, body);
	case FRAME_CREATE:
		return answer_create(s);
	case FRAME_PUT_ATTRIBUTE:
		return answer_put_attribute(s, body);
	case FRAME_PUT_COLUMN:
		return answer_put_column(s, body);
	case FRAME_PUT_ROWS:
		return answer_put_rows(s, body);
	case FRAME_FINISH:
		return answer_finish(s);
	default:
		return failed(s, "it was asked for something that it does not know");
	}
}
