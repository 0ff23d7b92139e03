/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "h5/h5_driver.h"

#include <H5version.h>
#if H5_VERSION_GE(1, 13, 0)
#include <H5FDdevelop.h>
#endif
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ADDRESS_MAX (((haddr_t)1 << 62) - 1)
#define DRIVER_VALUE 511 /* of 256 to 511, which are free for use within a place */

struct driver_file {
	H5FD_t base; /* HDF5's own part stands first */
	haddr_t allocated, size;
};

/* What the properties would carry in a driver for many files. */
static int driver_fd = -1;
static bool driver_writing, driver_opened;

static H5FD_t *driver_open(const char *name, unsigned flags, hid_t access, haddr_t most)
{
	struct stat st;

	(void)name;
	(void)flags;
	(void)access;
	(void)most;
	/* External links would open a second one. */
	if (driver_opened || fstat(driver_fd, &st) < 0 || st.st_size < 0)
		return NULL;
	struct driver_file *f = calloc(1, sizeof *f);
	if (!f)
		return NULL;
	driver_opened = true;
	f->size = (haddr_t)st.st_size;
	return &f->base;
}

static herr_t driver_close(H5FD_t *file)
{
	free(file);
	return 0;
}

static herr_t driver_query(const H5FD_t *file, unsigned long *flags)
{
	(void)file;
	*flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA |
		 H5FD_FEAT_DATA_SIEVE | H5FD_FEAT_AGGREGATE_SMALLDATA;
	return 0;
}

static haddr_t driver_get_eoa(const H5FD_t *file, H5FD_mem_t type)
{
	(void)type;
	return ((const struct driver_file *)file)->allocated;
}

static herr_t driver_set_eoa(H5FD_t *file, H5FD_mem_t type, haddr_t address)
{
	(void)type;
	((struct driver_file *)file)->allocated = address;
	return 0;
}

static haddr_t driver_get_eof(const H5FD_t *file, H5FD_mem_t type)
{
	(void)type;
	return ((const struct driver_file *)file)->size;
}

static int driver_error;

static herr_t refused(int error)
{
	driver_error = driver_error ? driver_error : error;
	return -1;
}

int h5_driver_error(void)
{
	return driver_error;
}

static herr_t driver_read(
	H5FD_t *file, H5FD_mem_t type, hid_t transfer, haddr_t at, size_t n, void *buffer)
{
	const struct driver_file *f = (const struct driver_file *)file;
	char *p = buffer;

	(void)type;
	(void)transfer;
	/* Bytes that the file does not have are not zeros. While writing they are: HDF5 may read
	 * what it has only set aside. */
	if (!driver_writing && (at > f->size || n > f->size - at))
		return -1;
	while (n > 0) {
		ssize_t got = pread(driver_fd, p, n, (off_t)at);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return refused(errno);
		if (got == 0 && !driver_writing)
			return -1;
		if (got == 0) {
			memset(p, 0, n);
			return 0;
		}
		p += got;
		at += (haddr_t)got;
		n -= (size_t)got;
	}
	return 0;
}

static herr_t driver_write(
	H5FD_t *file, H5FD_mem_t type, hid_t transfer, haddr_t at, size_t n, const void *buffer)
{
	struct driver_file *f = (struct driver_file *)file;
	const char *p = buffer;

	(void)type;
	(void)transfer;
	while (n > 0) {
		ssize_t put = pwrite(driver_fd, p, n, (off_t)at);
		if (put < 0 && errno == EINTR)
			continue;
		if (put <= 0)
			return refused(put < 0 ? errno : ENOSPC);
		p += put;
		at += (haddr_t)put;
		n -= (size_t)put;
	}
	if (at > f->size)
		f->size = at;
	return 0;
}

static herr_t driver_truncate(H5FD_t *file, hid_t transfer, hbool_t closing)
{
	struct driver_file *f = (struct driver_file *)file;

	(void)transfer;
	(void)closing;
	if (!driver_writing || f->size == f->allocated)
		return 0;
	if (ftruncate(driver_fd, (off_t)f->allocated) < 0)
		return -1;
	f->size = f->allocated;
	return 0;
}

static const H5FD_class_t driver_class = {
#if H5_VERSION_GE(1, 13, 0)
	.version = H5FD_CLASS_VERSION,
	.value = (H5FD_class_value_t)DRIVER_VALUE,
#endif
	.name = "descriptor",
	.maxaddr = ADDRESS_MAX,
	.fc_degree = H5F_CLOSE_STRONG,
	.open = driver_open,
	.close = driver_close,
	.query = driver_query,
	.get_eoa = driver_get_eoa,
	.set_eoa = driver_set_eoa,
	.get_eof = driver_get_eof,
	.read = driver_read,
	.write = driver_write,
	.truncate = driver_truncate,
	.fl_map = H5FD_FLMAP_DICHOTOMY,
};

hid_t h5_driver_access(int fd, bool writing)
{
	hid_t driver = H5FDregister(&driver_class);
	hid_t access = H5Pcreate(H5P_FILE_ACCESS);

	driver_fd = fd;
	driver_writing = writing;
	if (driver < 0 || access < 0 || H5Pset_driver(access, driver, NULL) < 0)
		return -1;
	return access;
}
